//! The JSON line of `mdfsck page`. Places are counted in bytes.

use serde::Serialize;

/// A page (`mdfsck page`), field by field.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Page<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Address of the page, `(1:9)`.
    pub(crate) page: String,
    /// Id of its file.
    pub(crate) file: u16,
    /// Its number in the file.
    pub(crate) number: u32,
    /// Where the page begins in the file.
    pub(crate) file_offset: u64,
    /// Type of the page.
    #[serde(rename = "type")]
    pub(crate) page_type: u8,
    /// Type of the page in words; null if the type is unknown.
    pub(crate) type_name: Option<&'static str>,
    /// The allocation unit that its header names.
    pub(crate) alloc_unit_id: String,
    /// Checksum or torn-page protection of the page, and whether it is right.
    pub(crate) protection: Protection,
    /// Whether the page is encrypted (TDE).
    pub(crate) encrypted: bool,
    /// State of the page in the allocation maps.
    pub(crate) allocation: Option<Allocation<'a>>,
    /// Fields of the page header.
    pub(crate) header: Vec<Field>,
    /// Fields of the compression information.
    pub(crate) compression_information: Vec<Field>,
    /// Where the record of each slot begins, according to the slot array.
    pub(crate) slots: Vec<Option<u16>>,
    /// The records, in slot order.
    pub(crate) records: Vec<Record>,
    /// Consecutive pages or extents with the same state, if this is an allocation page.
    pub(crate) map: Vec<MapRun>,
    /// The page after recovery; absent if recovery does not change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recovered: Option<Box<Recovered<'a>>>,
}

/// A page after recovery.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Recovered<'a> {
    /// LSN of the page in its file.
    pub(crate) on_disk_lsn: String,
    /// LSN of the page after recovery.
    pub(crate) lsn: String,
    /// Log records that the page lacked and that were applied.
    pub(crate) records_redone: u32,
    /// Changes of transactions that had not ended, which were rolled back.
    pub(crate) records_undone: u32,
    /// The page after recovery.
    pub(crate) page: Page<'a>,
}

/// Checksum or torn-page protection of a page, and whether it is right.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Protection {
    /// `checksum`, `torn_bits` or `none`.
    pub(crate) kind: &'static str,
    /// Whether the protection is right; null if the page has none.
    pub(crate) ok: Option<bool>,
    /// The checksum or torn bits stored in the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stored: Option<String>,
    /// The computed checksum, if the stored one is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) computed: Option<String>,
    /// The torn bits found in the sectors, if they are wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actual: Option<String>,
    /// Numbers of the sectors with wrong torn bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sectors: Option<Vec<u32>>,
}

/// State of a page in the allocation maps.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Allocation<'a> {
    /// The owner of the page, in words.
    pub(crate) owner: Option<&'a str>,
    /// The state in each map.
    pub(crate) maps: Vec<MapState>,
}

/// State of a page in one allocation map.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MapState {
    /// `PFS`, `GAM`, `SGAM`, `DIFF` or `ML`.
    pub(crate) map: &'static str,
    /// The page that contains the map.
    pub(crate) page: String,
    /// The state, in DBCC PAGE's words.
    pub(crate) state: String,
}

/// A field (docs/format).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Field {
    /// The structure that contains the field.
    pub(crate) structure: &'static str,
    /// Name of the field.
    pub(crate) name: &'static str,
    /// What the field means.
    pub(crate) label: &'static str,
    /// Where it begins in the page.
    pub(crate) at: usize,
    /// Where it begins in its record.
    pub(crate) offset: usize,
    /// Its length in bytes.
    pub(crate) length: usize,
    /// Its number, for fields that repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<u16>,
    /// Its bytes in hexadecimal; absent for whole maps, which are in `map`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<String>,
    /// Its value as text.
    pub(crate) value: String,
}

/// A record.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Record {
    /// Slot of the record.
    pub(crate) slot: u16,
    /// Where it begins in the page.
    pub(crate) at: usize,
    /// Bytes available to the record.
    pub(crate) space: usize,
    /// Bytes that the record uses; null if unknown.
    pub(crate) length: Option<usize>,
    /// Kind of record, in words.
    pub(crate) kind: String,
    /// Why the record cannot be parsed.
    pub(crate) fault: Option<Fault>,
    /// Its fields.
    pub(crate) fields: Vec<Field>,
    /// Bytes that no field describes.
    pub(crate) undescribed: Vec<Undescribed>,
    /// Columns of the record, if the catalog describes them.
    pub(crate) columns: Vec<Column>,
}

/// Why a record cannot be parsed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Fault {
    /// The failed test, as messages name it.
    pub(crate) test: &'static str,
    /// The first value of the test.
    pub(crate) value: i64,
    /// The second value of the test.
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
    /// Type of the column, as in a table definition.
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    /// Where it begins in the record.
    pub(crate) offset: usize,
    /// Its length in bytes; 0 if it is not stored.
    pub(crate) length: usize,
    /// Its value as text.
    pub(crate) value: String,
}

/// Consecutive pages or extents that have the same state in an allocation page.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MapRun {
    /// Id of their file.
    pub(crate) file: u16,
    /// The first page.
    pub(crate) first: u64,
    /// The last page; for extents, the first page of the last extent.
    pub(crate) last: u64,
    /// Number of pages or extents.
    pub(crate) count: u64,
    /// The state, in DBCC PAGE's words.
    pub(crate) state: String,
}
