//! Checks of the critical system tables, of the catalog, and of Service Broker.

use super::{Check, Class, Phase, Policy, RESTORE_DATABASE, RESTORE_OR_CREATE, Repair, ReportOrder};

checks! {
    PRIMITIVE_PAGE_TYPE = "primitive.page-type", 7984 state 1, Primitive, Primitive, Uncounted, None, true,
        "System table pre-checks: Object ID {object_id}. Page {page} has unexpected page type {page_type}. Check statement terminated due to unrepairable error.",
        brief "page {page} of a critical system table has the wrong type",
        must "Every page in the leaf chain of sysallocunits, sysrowsets and sysrscols is a data page.",
        cause "A page of a critical system table was overwritten, or the pointer to the page was changed.",
        action RESTORE_DATABASE;
    PRIMITIVE_UNREADABLE = "primitive.unreadable", 7985 state 2, Primitive, Primitive, Uncounted, None, true,
        "System table pre-checks: Object ID {object_id}. Could not read and latch page {page} with latch type SH. Check statement terminated due to unrepairable error.",
        brief "page {page} of a critical system table cannot be read",
        must "The root and every page in the leaf chain of sysallocunits, sysrowsets and sysrscols can be read, has a correct checksum and its own page id.",
        cause "The disk, or a component between the disk and the engine, changed or lost the page.",
        action RESTORE_DATABASE;
    PRIMITIVE_OTHER_UNIT = "primitive.other-unit", 7986 state 1, Primitive, Primitive, Uncounted, None, true,
        "System table pre-checks: Object ID {object_id} has cross-object chain linkage. Page {page} points to {ref_page} in alloc unit ID {found_unit} (should be {expected_unit}). Check statement terminated due to unrepairable error.",
        brief "page {page} of a critical system table points to a page of another table",
        must "The pages in the leaf chain of a critical system table all belong to one allocation unit.",
        cause "A next pointer or an allocation unit id in a page header was changed.",
        action RESTORE_DATABASE;
    PRIMITIVE_LINKAGE = "primitive.linkage", 7987 state 1, Primitive, Primitive, Uncounted, None, true,
        "System table pre-checks: Object ID {object_id} has chain linkage mismatch. {page}->next = {ref_page}, but {ref_page}->prev = {found_prev}. Check statement terminated due to unrepairable error.",
        brief "pages {page} and {ref_page} of a system table do not point to each other",
        must "If a page of a critical system table points to a next page, the next page points back to it.",
        cause "A next or previous pointer was changed, or a page is stale (a lost write).",
        action RESTORE_DATABASE;
    PRIMITIVE_LOOP = "primitive.loop", 7988 state 1, Primitive, Primitive, Uncounted, None, true,
        "System table pre-checks: Object ID {object_id}. Loop in data chain detected at {page}. Check statement terminated due to unrepairable error.",
        brief "the page chain of a critical system table has a loop at {page}",
        must "The leaf chain of a critical system table visits no page twice.",
        cause "A next pointer was changed to a page earlier in the chain.",
        action RESTORE_DATABASE;
    CATALOG_UNUSABLE = "catalog.unusable", 7995 state 1, Metadata, Catalog, Uncounted, None, true listed Last,
        "Database '{database}': consistency errors in system catalogs prevent further DBCC {command} processing.",
        brief "the catalog cannot be read: the database was not checked",
        must "The system catalog can be read to its end.",
        cause "Pages of system tables are damaged; the other messages name them.",
        action "Restore from a backup. mdfsck checks everything that does not need the damaged part of the catalog, and lists everything else as not verified.";
    CATALOG_INCONSISTENT = "catalog.inconsistent", 8930 state 1, Metadata, Catalog, Uncounted, None, true,
        "Database error: Database {database_id} has inconsistent metadata. This error cannot be repaired and prevents further DBCC processing. Please restore from a backup.",
        brief "the catalog contradicts itself",
        must "Every allocation unit belongs to a rowset of the catalog, and every rowset with pages has columns.",
        cause "Rows of sysallocunits, sysrowsets or sysrscols were lost or changed.",
        action RESTORE_DATABASE;
    SYSTEM_TABLE_FILEGROUP = "catalog.system-table-filegroup", 8995 state 1, Metadata, Catalog, Consistency, None, true,
        "System table '{object_name}' (object ID {object_id}, index ID {index_id}) is in filegroup {found_filegroup}. All system tables must be in filegroup 1.",
        brief "a system table is in the wrong filegroup",
        must "The system base tables are in the primary filegroup.",
        cause "A row of sysallocunits was changed.",
        action RESTORE_DATABASE;

    ANTI_MATTER_COLUMN = "catalog.anti-matter-column", 5229 state 1, Metadata, Catalog, Consistency, Rebuild, false,
        "Table error: {owner} contains an anti-matter column, but is not a nonclustered index.",
        brief "the object has a column that only an index build may have",
        must "No table, and no clustered index, has the column that an online build of a nonclustered index needs.",
        cause "An online build of an index was not cleaned up, or a row of sysrscols was changed.",
        action "Rebuild the table; if that fails, restore from a backup.";

    CATALOG_DANGLING = "catalog.dangling", 8992 state 1, Catalog, Catalog, Consistency, None, false [checkcatalog],
        "Check Catalog Msg 3853, State 1: Attribute ({attribute}) of row ({row}) in sys.{table} does not have a matching row ({wanted}) in sys.{referenced}.",
        brief "a row in sys.{table} refers to something that does not exist",
        must "Everything that a row of the catalog refers to exists: the schema of an object, the table of a column, the column of an index.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action RESTORE_OR_CREATE;
    CATALOG_PARTNER_MISSING = "catalog.partner-missing", 8992 state 1, Catalog, Catalog, Consistency, None, false [checkcatalog],
        "Check Catalog Msg 3852, State 1: Row ({row}) in sys.{table} does not have a matching row ({wanted}) in sys.{referenced}.",
        brief "a row in sys.{table} lacks its counterpart",
        must "The catalog has rows for the columns of every foreign key, and of every index with columns.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action RESTORE_OR_CREATE;
    CATALOG_VALUE_OF_NOTHING = "catalog.value-of-nothing", 8992 state 1, Catalog, Catalog, Consistency, None, false [checkcatalog],
        "Check Catalog Msg 3855, State 1: Attribute ({attribute}) exists without a row ({wanted}) in sys.{referenced}.",
        brief "an attribute is stored for something that does not exist",
        must "Every stored attribute (owner, text, statistics) belongs to an existing object.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action RESTORE_DATABASE;
    CATALOG_VALUE_MISSING = "catalog.value-missing", 8992 state 1, Catalog, Catalog, Consistency, None, false [checkcatalog],
        "Check Catalog Msg 3857, State 1: The attribute ({attribute}) is required but is missing for row ({row}) in sys.{table}.",
        brief "a row in sys.{table} lacks a required attribute",
        must "Every object has the catalog rows that its kind requires: the text of a module, computed column or filter, the owner of a schema or role, the queue of a service.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action RESTORE_OR_CREATE;
    CATALOG_INVALID_VALUE = "catalog.invalid-value", 8992 state 1, Catalog, Catalog, Consistency, None, false [checkcatalog],
        "Check Catalog Msg 3858, State 1: The attribute ({attribute}) of row ({row}) in sys.{table} has an invalid value.",
        brief "a row in sys.{table} has an invalid attribute",
        must "A column, parameter or type has a length, precision, scale and collation that its data type allows.",
        cause "The catalog was changed by hand, or a page of it was damaged.",
        action RESTORE_OR_CREATE;
    BROKER_MESSAGE_TYPE_MISSING = "broker.message-type-missing", 8997 state 1, Catalog, Catalog, Consistency, AllowDataLoss, false,
        "Service Broker Msg 9677, State 1: The service contract with ID {from} is referencing the missing message type with ID {to}.",
        brief "a Service Broker contract names a missing message type",
        must "The message types that a contract names exist.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action "Restore from a backup, or drop the contract and the services that use it, and then create them again.";
    BROKER_CONTRACT_MISSING = "broker.contract-missing", 8997 state 1, Catalog, Catalog, Consistency, AllowDataLoss, false,
        "Service Broker Msg 9678, State 1: The service with ID {from} is referencing the missing service contract with ID {to}.",
        brief "a Service Broker service names a missing contract",
        must "The contracts that a service names exist.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action "Restore from a backup, or drop the service and create it again.";
    BROKER_QUEUE_MISSING = "broker.queue-missing", 8997 state 1, Catalog, Catalog, Consistency, AllowDataLoss, false,
        "Service Broker Msg 9679, State 1: The service with ID {from} is referencing the missing service queue with ID {to}.",
        brief "a Service Broker service names a missing queue",
        must "The queue of a service exists.",
        cause "The catalog was changed by hand, or a page of it is stale (a lost write).",
        action "Restore from a backup, or drop the service and create it again.";
}
