//! Messages of Service Broker.

use super::advice::{AFTER_REPAIR, NOTHING, REPAIRED};
use super::{ServerMessage, row};

const BROKER_LOOK: &str = "The Service Broker object that the message names (sys.services, sys.service_contracts, sys.service_queues, \
                           sys.conversation_endpoints), and earlier messages about damage.";
const BROKER_MEND: &str = "Restore if the queued messages matter. Otherwise end the conversations WITH CLEANUP, or drop the object and \
                           create it again. REPAIR_ALLOW_DATA_LOSS drops objects that refer to missing objects.";
const BROKER_COUNT: &str = "The number in the message. If Service Broker is not in use, the number is 0 or small.";

/// The messages, by number.
pub(super) static MESSAGES: &[ServerMessage] = &[
    row(9605, "conversation priorities analyzed", "The message counts objects of this kind that the Service Broker checks examined.", BROKER_COUNT, NOTHING),
    row(9667, "services analyzed", "The message counts objects of this kind that the Service Broker checks examined.", BROKER_COUNT, NOTHING),
    row(9668, "service queues analyzed", "The message counts objects of this kind that the Service Broker checks examined.", BROKER_COUNT, NOTHING),
    row(9669, "conversation endpoints analyzed", "The message counts objects of this kind that the Service Broker checks examined.", BROKER_COUNT, NOTHING),
    row(9670, "remote service bindings analyzed", "The message counts objects of this kind that the Service Broker checks examined.", BROKER_COUNT, NOTHING),
    row(
        9671,
        "repair removed messages from the transmission queue",
        "Repair deleted messages whose conversation does not exist.",
        REPAIRED,
        AFTER_REPAIR,
    ),
    row(
        9672,
        "repair removed messages from a queue",
        "Repair deleted messages whose conversation does not exist.",
        REPAIRED,
        AFTER_REPAIR,
    ),
    row(
        9673,
        "repair disabled the activation of a queue",
        "The procedure or the user of the activation is missing.",
        "The activation of the queue in sys.service_queues.",
        "Set the activation again with ALTER QUEUE, then check.",
    ),
    row(9674, "conversation groups analyzed", "The message counts objects of this kind that the Service Broker checks examined.", BROKER_COUNT, NOTHING),
    row(9675, "message types analyzed", "The message counts objects of this kind that the Service Broker checks examined.", BROKER_COUNT, NOTHING),
    row(9676, "service contracts analyzed", "The message counts objects of this kind that the Service Broker checks examined.", BROKER_COUNT, NOTHING),
    row(
        9677,
        "a contract refers to a missing message type",
        "The message type of the contract is not in the catalog.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(
        9678,
        "a service refers to a missing contract",
        "The catalog does not have the contract.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(
        9679,
        "a service refers to a missing queue",
        "The queue of the service is not in the catalog.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(
        9680,
        "a conversation refers to a missing group",
        "The group of the conversation does not exist.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(
        9681,
        "a conversation refers to a missing contract",
        "The catalog does not have the contract.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(
        9682,
        "a conversation refers to a missing service",
        "The service is not in the catalog.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(
        9683,
        "a conversation group refers to a missing service",
        "The service is not in the catalog.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(9684, "repair dropped a service", "An object that the service needs was lost.", REPAIRED, AFTER_REPAIR),
    row(9685, "repair dropped a contract", "An object that the contract needs was lost.", REPAIRED, AFTER_REPAIR),
    row(
        9686,
        "repair dropped a conversation",
        "An object that the conversation needs was lost.",
        REPAIRED,
        AFTER_REPAIR,
    ),
    row(
        9687,
        "repair dropped a conversation group",
        "An object that the group needs was lost.",
        REPAIRED,
        AFTER_REPAIR,
    ),
    row(
        9705,
        "messages of an invalid conversation",
        "A queue holds messages whose conversation does not exist.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(
        9706,
        "a queue refers to an invalid procedure",
        "The procedure that the queue activates does not exist.",
        BROKER_LOOK,
        "Create the procedure, or set the activation again with ALTER QUEUE.",
    ),
    row(
        9707,
        "a queue refers to an invalid user",
        "The activation runs as a user that does not exist.",
        BROKER_LOOK,
        "Create the user, or set the activation again with ALTER QUEUE.",
    ),
    row(
        9708,
        "messages of an invalid conversation group",
        "A queue holds messages whose conversation group does not exist.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(
        9709,
        "messages of an invalid type",
        "A queue holds messages whose type does not exist.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(
        9710,
        "a conversation refers to an invalid group",
        "The group of the conversation does not exist, or does not list the conversation.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(
        9711,
        "the transmission queue refers to an invalid conversation",
        "The queue holds messages whose conversation does not exist.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(
        9712,
        "a remote binding refers to an invalid contract",
        "The catalog does not have the contract.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(
        9713,
        "a message type refers to an invalid XML schema",
        "The XML schema collection of the message type is not in the catalog.",
        BROKER_LOOK,
        "Create the collection and alter the message type, or restore.",
    ),
    row(
        9716,
        "a conversation group counts its conversations wrongly",
        "The group records a wrong number of conversations.",
        BROKER_LOOK,
        BROKER_MEND,
    ),
    row(
        9725,
        "repair removed an XML schema from a message type",
        "SQL Server no longer validates messages of this type.",
        "The message type in sys.service_message_types.",
        "Create the collection and alter the message type, then check.",
    ),
    row(
        9726,
        "repair dropped a remote service binding",
        "An object that the binding needs was lost.",
        REPAIRED,
        AFTER_REPAIR,
    ),
];
