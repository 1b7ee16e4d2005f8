//! The JSON line of `mdfsck page`. Places are counted in bytes.

use serde::Serialize;

/// A page (`mdfsck page`), field by field.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Page<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Its address, `(1:9)`.
    pub(crate) page: String,
    /// Its file.
    pub(crate) file: u16,
    /// Its number in the file.
    pub(crate) number: u32,
    /// Where it begins in the file.
    pub(crate) file_offset: u64,
    /// Its type.
    #[serde(rename = "type")]
    pub(crate) page_type: u8,
    /// Its type in words; null if it is none that is known.
    pub(crate) type_name: Option<&'static str>,
    /// The allocation unit that its header names.
    pub(crate) alloc_unit_id: String,
    /// Whether the page is as it was written.
    pub(crate) protection: Protection,
    /// Whether it is encrypted (TDE).
    pub(crate) encrypted: bool,
    /// What the allocation maps say of it.
    pub(crate) allocation: Option<Allocation<'a>>,
    /// Fields of the page header.
    pub(crate) header: Vec<Field>,
    /// Fields of the compression information.
    pub(crate) compression_information: Vec<Field>,
    /// Where each slot says that its record begins.
    pub(crate) slots: Vec<Option<u16>>,
    /// The records, in slot order.
    pub(crate) records: Vec<Record>,
    /// The runs of an allocation page.
    pub(crate) map: Vec<MapRun>,
    /// The page as recovery would leave it; absent if that is how it lies in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recovered: Option<Box<Recovered<'a>>>,
}

/// A page as recovery would leave it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Recovered<'a> {
    /// The LSN of the page in its file.
    pub(crate) on_disk_lsn: String,
    /// Its LSN after recovery.
    pub(crate) lsn: String,
    /// Log records that the page lacked and that were applied.
    pub(crate) records_redone: u32,
    /// Changes of transactions that had not ended, taken back.
    pub(crate) records_undone: u32,
    /// The page.
    pub(crate) page: Page<'a>,
}

/// Whether a page is as it was written.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Protection {
    /// `checksum`, `torn_bits` or `none`.
    pub(crate) kind: &'static str,
    /// Whether it is right; null if the page has none.
    pub(crate) ok: Option<bool>,
    /// The word in the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stored: Option<String>,
    /// The checksum of a page that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) computed: Option<String>,
    /// The torn bits of a page that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actual: Option<String>,
    /// The sectors of a page that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sectors: Option<Vec<u32>>,
}

/// What the allocation maps say of a page.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Allocation<'a> {
    /// Whose page it is, in words.
    pub(crate) owner: Option<&'a str>,
    /// Each map.
    pub(crate) maps: Vec<MapState>,
}

/// What an allocation map says of a page.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MapState {
    /// `PFS`, `GAM`, `SGAM`, `DIFF` or `ML`.
    pub(crate) map: &'static str,
    /// The page of the map.
    pub(crate) page: String,
    /// What it says, in DBCC PAGE's words.
    pub(crate) state: String,
}

/// A field (docs/format).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Field {
    /// The structure that has it.
    pub(crate) structure: &'static str,
    /// Its name.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) label: &'static str,
    /// Where it begins in the page.
    pub(crate) at: usize,
    /// Where it begins in its record.
    pub(crate) offset: usize,
    /// Its bytes.
    pub(crate) length: usize,
    /// Its number, of fields that repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<u16>,
    /// Its bytes in hexadecimal; absent for whole maps, which `map` has as runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<String>,
    /// Its value as text.
    pub(crate) value: String,
}

/// A record.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Record {
    /// Its slot.
    pub(crate) slot: u16,
    /// Where it begins in the page.
    pub(crate) at: usize,
    /// Bytes that it may take.
    pub(crate) space: usize,
    /// Bytes that it takes; null if that is not known.
    pub(crate) length: Option<usize>,
    /// What it is, in words.
    pub(crate) kind: String,
    /// Why it cannot be parsed.
    pub(crate) fault: Option<Fault>,
    /// Its fields.
    pub(crate) fields: Vec<Field>,
    /// Bytes that no field describes.
    pub(crate) undescribed: Vec<Undescribed>,
    /// Its columns, where the catalog knows them.
    pub(crate) columns: Vec<Column>,
}

/// Why a record cannot be parsed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Fault {
    /// The test that failed, as messages have it.
    pub(crate) test: &'static str,
    /// Its first value.
    pub(crate) value: i64,
    /// Its second value.
    pub(crate) against: i64,
}

/// Bytes of a record that no field describes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Undescribed {
    /// Where they begin in the page.
    pub(crate) at: usize,
    /// Where they begin in the record.
    pub(crate) offset: usize,
    /// The bytes in hexadecimal.
    pub(crate) bytes: String,
}

/// A column of a record.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// Its type as a table definition has it.
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    /// Where it begins in the record.
    pub(crate) offset: usize,
    /// Its bytes; 0 if it is not stored.
    pub(crate) length: usize,
    /// Its value as text.
    pub(crate) value: String,
}

/// Pages or extents in a row of which an allocation page says the same.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MapRun {
    /// Their file.
    pub(crate) file: u16,
    /// The first page.
    pub(crate) first: u64,
    /// The last page; for extents, the first page of the last extent.
    pub(crate) last: u64,
    /// How many pages or extents there are.
    pub(crate) count: u64,
    /// What the map says of them, in DBCC PAGE's words.
    pub(crate) state: String,
}
