//! The page as DBCC PAGE prints it WITH TABLERESULTS: header, allocation, records, their bytes and columns.
//!
//! DBCC PAGE also prints structures in the server's memory (BUFFER:). They have no rows here.

use format::PageId;
use format::record::{RecordKind, status};

use super::PageDump;
use super::parsed::Parsed;
use super::records::{self, RecordView};
use crate::columns::ColumnValue;
use crate::dbcc_rows::Row;

const HEADER: &str = "PAGE HEADER:";
/// Number of bytes per line of a memory dump, in groups of four.
const DUMP_LINE: usize = 20;
const DUMP_GROUP: usize = 4;

/// The IDs of the objects that own a page's allocation unit. DBCC PAGE prints them as metadata.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageOwner {
    /// Object ID.
    pub object_id: i32,
    /// Index ID.
    pub index_id: i32,
    /// Partition ID, which equals the rowset ID.
    pub partition_id: u64,
}

pub(super) fn rows(dump: &PageDump<'_>, owner: Option<PageOwner>) -> Vec<Row> {
    let parsed = dump.parsed();
    let mut rows = header(&parsed, owner);
    if let Some(allocation) = dump.allocation {
        let mut states = allocation.states();
        let order = ["GAM", "SGAM", "PFS", "DIFF", "ML"];
        states.sort_by_key(|(map, ..)| order.iter().position(|name| name == map));
        let row = |(map, page, state)| row(HEADER, "Allocation Status", format!("{map} {page}"), state);
        rows.extend(states.into_iter().map(row));
    }
    for record in records::of(&parsed, dump.columns) {
        of_record(&mut rows, &parsed, &record);
    }
    rows
}

fn row(parent: &str, object: &str, field: impl Into<String>, value: impl ToString) -> Row {
    [parent.to_owned(), object.to_owned(), field.into(), value.to_string()]
}

fn header(parsed: &Parsed, owner: Option<PageOwner>) -> Vec<Row> {
    let header = parsed.view().header();
    let PageOwner { object_id, index_id, partition_id } = owner.unwrap_or_default();
    let transaction: PageId = PageId::read(&header.xdes_id, 0).unwrap_or_default();
    let fields: [(&str, String); 23] = [
        ("m_pageId", header.page_id().to_string()),
        ("m_headerVersion", header.header_version.to_string()),
        ("m_type", header.page_type.to_string()),
        ("m_typeFlagBits", format!("0x{:x}", header.type_flags)),
        ("m_level", header.level.to_string()),
        ("m_flagBits", format!("0x{:x}", header.flags.get())),
        ("m_objId (AllocUnitId.idObj)", header.object_id.get().to_string()),
        ("m_indexId (AllocUnitId.idInd)", header.index_id.get().to_string()),
        ("Metadata: AllocUnitId", header.alloc_unit().to_string()),
        ("Metadata: PartitionId", partition_id.cast_signed().to_string()),
        ("Metadata: IndexId", if owner.is_some() { index_id } else { -1 }.to_string()),
        ("Metadata: ObjectId", object_id.to_string()),
        ("m_prevPage", header.prev().to_string()),
        ("m_nextPage", header.next().to_string()),
        ("pminlen", header.pminlen.get().to_string()),
        ("m_slotCnt", header.slot_count.get().to_string()),
        ("m_freeCnt", header.free_count.get().to_string()),
        ("m_freeData", header.free_data.get().to_string()),
        ("m_reservedCnt", header.reserved_count.get().to_string()),
        ("m_lsn", header.lsn().to_string()),
        ("m_xactReserved", header.xact_reserved.get().to_string()),
        ("m_xdesId", format!("({}:{})", transaction.file, transaction.page)),
        ("m_ghostRecCnt", header.ghost_count.get().to_string()),
    ];
    let torn = header.torn_bits.get().cast_signed().to_string();
    // The server prints a memory address here. This program prints the offset on the page.
    let object = format!("Page @0x{:016X}", 0);
    fields.into_iter().chain([("m_tornBits", torn)]).map(|(name, value)| row(HEADER, &object, name, value)).collect()
}

fn of_record(rows: &mut Vec<Row>, parsed: &Parsed, record: &RecordView<'_>) {
    let start = record.space.bytes.start;
    let length = record.length.unwrap_or(record.space.bytes.len());
    let slot = record.space.slot;
    let object = format!("Slot {slot} Offset 0x{start:x} Length {length}");
    let bytes = parsed.slice(&(start..start.saturating_add(length)));
    let first = bytes.first().copied().unwrap_or_default();
    rows.push(row(HEADER, &object, "Record Type", type_name(first)));
    rows.push(row(HEADER, &object, "Record Attributes", attributes(first)));
    rows.push(row(HEADER, &object, "Record Size", length));
    let dump = format!("Memory Dump @0x{start:016X}");
    for (number, line) in bytes.chunks(DUMP_LINE).enumerate() {
        rows.push(row(&object, &dump, "", dump_line(number * DUMP_LINE, line)));
    }
    for (number, column) in record.columns.iter().enumerate() {
        let ColumnValue { name, bytes, value, .. } = column;
        let length = bytes.len();
        let place = format!(
            "Slot {slot} Column {} Offset 0x{:x} Length {length} Length (physical) {length}",
            number + 1,
            bytes.start
        );
        rows.push(row(&object, &place, name.as_str(), bare(value)));
    }
}

/// A line of a memory dump: `0000000000000000:   30000800 01000000  0.......`.
fn dump_line(at: usize, bytes: &[u8]) -> String {
    let hex = |group: &[u8]| group.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let groups: Vec<String> = bytes.chunks(DUMP_GROUP).map(hex).collect();
    let shown = |byte: &u8| if (0x20..0x7F).contains(byte) { char::from(*byte) } else { '.' };
    let text: String = bytes.iter().map(shown).collect();
    let columns = DUMP_LINE * 2 + DUMP_LINE / DUMP_GROUP - 1;
    format!("{at:016x}:   {:<columns$}  {text}", groups.join(" "))
}

fn type_name(first: u8) -> &'static str {
    match RecordKind::of(first) {
        RecordKind::Primary => "PRIMARY_RECORD",
        RecordKind::Forwarded => "FORWARDED_RECORD",
        RecordKind::ForwardingStub => "FORWARDING_STUB",
        RecordKind::Index => "INDEX_RECORD",
        RecordKind::BlobFragment => "BLOB_FRAGMENT",
        RecordKind::GhostIndex => "GHOST_INDEX_RECORD",
        RecordKind::GhostData => "GHOST_DATA_RECORD",
        RecordKind::GhostVersion => "GHOST_VERSION_RECORD",
    }
}

fn attributes(first: u8) -> String {
    let names = [
        (status::NULL_BITMAP, " NULL_BITMAP"),
        (status::VARIABLE, " VARIABLE_COLUMNS"),
        (status::VERSION_TAG, " VERSIONING_INFO"),
    ];
    names.iter().filter(|(bit, _)| first & bit != 0).map(|(_, name)| *name).collect()
}

/// A value as the server prints it: strings without quotation marks, and NULL in square brackets.
fn bare(value: &str) -> &str {
    match value {
        "NULL" => "[NULL]",
        value => value.strip_prefix('\'').and_then(|value| value.strip_suffix('\'')).unwrap_or(value),
    }
}
