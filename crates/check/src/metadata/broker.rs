//! Counts Service Broker objects of each kind, as CHECKDB lists them. The references between these objects are checked
//! with the other references of the catalog.

use catalog::{Database, Unread, read_base_table};
use findings::registry::limits;
use findings::{BrokerCount, Coverage, RowsetCounts};
use source::PageSource;

/// A kind of object, and the catalog rows that represent objects of this kind.
struct Kind {
    number: u16,
    name: &'static str,
    table: i32,
    /// The first database version that has the table.
    since: u16,
    /// The column and the value that select the rows; `None` selects all rows.
    only: Option<(&'static str, &'static [u8])>,
}

const MESSAGE_TYPE: &[u8] = &[21];
const CONTRACT: &[u8] = &[22];
const SERVICE: &[u8] = &[23];

/// All kinds, in the order of CHECKDB's lines. Each of 137 files has 14, 6, 3 and 3 objects of the first four kinds and
/// no objects of the other kinds; published transcripts of CHECKDB show the same numbers
/// (docs/format/checkdb.md#order-of-lines). If both sides of a conversation are in this database, each side has a row
/// in sysdercv.
const KINDS: [Kind; 8] = [
    Kind { number: 9675, name: "Message Types", table: 58, since: 0, only: Some(("class", MESSAGE_TYPE)) },
    Kind { number: 9676, name: "Service Contracts", table: 58, since: 0, only: Some(("class", CONTRACT)) },
    Kind { number: 9667, name: "Services", table: 58, since: 0, only: Some(("class", SERVICE)) },
    Kind { number: 9668, name: "Service Queues", table: 34, since: 0, only: Some(("type", b"SQ")) },
    Kind { number: CONVERSATION_ENDPOINTS, name: "Conversation Endpoints", table: SYSDERCV, since: 0, only: None },
    Kind { number: 9674, name: "Conversation Groups", table: 71, since: 0, only: None },
    Kind { number: 9670, name: "Remote Service Bindings", table: 67, since: 0, only: None },
    Kind { number: 9605, name: "Conversation Priorities", table: 17, since: 655, only: None },
];

const CONVERSATION_ENDPOINTS: u16 = 9669;
/// The kinds whose references are not checked: conversations, conversation groups, remote service bindings and
/// conversation priorities.
const UNFOLLOWED: [u16; 4] = [CONVERSATION_ENDPOINTS, 9674, 9670, 9605];
const SYSDERCV: i32 = 73;
const SYSDESEND: i32 = 72;
const SYSXMITQUEUE: i32 = 68;

/// Counts the objects of all kinds. A kind is skipped, with a note, if its table cannot be read.
pub(crate) fn count(source: &dyn PageSource, database: &Database, coverage: &mut Coverage) -> Vec<BrokerCount> {
    let version = database.boot.as_ref().map_or(0, |boot| boot.version);
    let rows = |table, only| rows(source, database, table, only);
    let mut counts = Vec::new();
    for kind in KINDS.iter().filter(|kind| version >= kind.since) {
        let sides_differ = || rows(SYSDESEND, None) != rows(SYSDERCV, None);
        if kind.number == CONVERSATION_ENDPOINTS && sides_differ() {
            coverage.note(&limits::BROKER_SIDES, kind.name, 0);
            continue;
        }
        match rows(kind.table, kind.only) {
            Ok(count) => counts.push(BrokerCount { number: kind.number, name: kind.name, count }),
            Err(_) => coverage.note(&limits::BROKER_TABLE, kind.name, 0),
        }
    }
    // No file was seen with objects of the kinds in `UNFOLLOWED`, so only the column names of their tables are known.
    for count in counts.iter().filter(|count| UNFOLLOWED.contains(&count.number) && count.count > 0) {
        coverage.note(&limits::BROKER_NOT_FOLLOWED, count.name, count.count);
    }
    if let Ok(messages @ 1..) = rows(SYSXMITQUEUE, None) {
        coverage.note(&limits::BROKER_NOT_FOLLOWED, "messages to be sent", messages);
    }
    counts
}

fn rows(
    source: &dyn PageSource,
    database: &Database,
    table: i32,
    only: Option<(&'static str, &'static [u8])>,
) -> Result<u64, Unread> {
    let columns: Vec<&'static str> = only.iter().map(|(column, _)| *column).collect();
    let mut count = 0;
    read_base_table(source, database, table, &columns, |_, row| {
        let is_one = only.is_none_or(|(_, wanted)| row.first().copied().flatten() == Some(wanted));
        count += u64::from(is_one);
    })?;
    Ok(count)
}

/// Notes the queues, because their activation is not checked, and notes the messages in queues. The three queues that
/// exist in every database have no activation, so these queues are not noted.
pub(crate) fn note_queues(database: &Database, rowsets: &[RowsetCounts], coverage: &mut Coverage) {
    const OF_EVERY_DATABASE: [&str; 3] =
        ["QueryNotificationErrorsQueue", "EventNotificationErrorsQueue", "ServiceBrokerQueue"];
    let queues = database.objects.values().filter(|object| object.type_code == "SQ");
    let own = queues.filter(|queue| !OF_EVERY_DATABASE.contains(&queue.name.as_str())).count() as u64;
    if own > 0 {
        coverage.note(&limits::BROKER_ACTIVATION, "queues", own);
    }
    let is_queue = |rowset: &&RowsetCounts| {
        rowset.type_code == "IT" && rowset.index_id <= 1 && rowset.name.starts_with("queue_messages_")
    };
    let messages: u64 = rowsets.iter().filter(is_queue).map(|rowset| rowset.rows).sum();
    if messages > 0 {
        coverage.note(&limits::BROKER_NOT_FOLLOWED, "messages in queues", messages);
    }
}
