//! The JSON line of `mdfsck page`. Offsets and lengths are in bytes.

use serde::Serialize;

/// A page (`mdfsck page`), field by field.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Page<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Address of the page, such as `(1:9)`.
    pub(crate) page: String,
    /// Id of the page's file.
    pub(crate) file: u16,
    /// Number of the page in the file.
    pub(crate) number: u32,
    /// Offset of the page in the file, in bytes.
    pub(crate) file_offset: u64,
    /// Type of the page, as a number.
    #[serde(rename = "type")]
    pub(crate) page_type: u8,
    /// Type of the page in words; null if the type is unknown.
    pub(crate) type_name: Option<&'static str>,
    /// Id of the allocation unit in the page header.
    pub(crate) alloc_unit_id: String,
    /// Protection of the page by a checksum or torn bits, and whether the protection matches the page.
    pub(crate) protection: Protection,
    /// Whether the page is encrypted (TDE).
    pub(crate) encrypted: bool,
    /// State of the page in the allocation maps.
    pub(crate) allocation: Option<Allocation<'a>>,
    /// Fields of the page header.
    pub(crate) header: Vec<Field>,
    /// Fields of the compression information.
    pub(crate) compression_information: Vec<Field>,
    /// Offset of each slot's record in the page, according to the slot array.
    pub(crate) slots: Vec<Option<u16>>,
    /// The records, in slot order.
    pub(crate) records: Vec<Record>,
    /// Runs of pages or extents with the same state, if this is an allocation page.
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
    /// Number of log records that the page lacked and that were applied.
    pub(crate) records_redone: u32,
    /// Number of changes that were rolled back, because their transactions had not ended.
    pub(crate) records_undone: u32,
    /// The page after recovery.
    pub(crate) page: Page<'a>,
}

/// Protection of a page by a checksum or torn bits, and whether the protection matches the page.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Protection {
    /// Kind of protection: `checksum`, `torn_bits` or `none`.
    pub(crate) kind: &'static str,
    /// Whether the protection matches the page; null if the page has no protection.
    pub(crate) ok: Option<bool>,
    /// The checksum or torn bits stored in the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stored: Option<String>,
    /// The computed checksum, if the stored one is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) computed: Option<String>,
    /// The torn bits found in the sectors, if they do not match the stored bits.
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
    /// A description of the page's owner.
    pub(crate) owner: Option<&'a str>,
    /// The state of the page in each map.
    pub(crate) maps: Vec<MapState>,
}

/// State of a page in one allocation map.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MapState {
    /// Name of the map: `PFS`, `GAM`, `SGAM`, `DIFF` or `ML`.
    pub(crate) map: &'static str,
    /// Address of the page that contains the map.
    pub(crate) page: String,
    /// The state, in the words of DBCC PAGE.
    pub(crate) state: String,
}

/// A field of a page or record (docs/format).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Field {
    /// The structure that contains the field.
    pub(crate) structure: &'static str,
    /// Name of the field.
    pub(crate) name: &'static str,
    /// Meaning of the field.
    pub(crate) label: &'static str,
    /// Offset of the field in the page, in bytes.
    pub(crate) at: usize,
    /// Offset of the field in its record or other structure, in bytes.
    pub(crate) offset: usize,
    /// Length of the field in bytes.
    pub(crate) length: usize,
    /// Number of the field, if the field repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<u16>,
    /// The bytes of the field in hexadecimal; absent if the field is a whole allocation map, which `map` shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<String>,
    /// Value of the field as text.
    pub(crate) value: String,
}

/// A record of the page.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Record {
    /// Slot of the record.
    pub(crate) slot: u16,
    /// Offset of the record in the page, in bytes.
    pub(crate) at: usize,
    /// Number of bytes available to the record.
    pub(crate) space: usize,
    /// Number of bytes that the record uses; null if unknown.
    pub(crate) length: Option<usize>,
    /// Kind of the record, in words.
    pub(crate) kind: String,
    /// Why the record cannot be parsed.
    pub(crate) fault: Option<Fault>,
    /// Fields of the record.
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
    /// The failed test, named as in messages.
    pub(crate) test: &'static str,
    /// The value that was tested.
    pub(crate) value: i64,
    /// The value or limit with which `value` was compared.
    pub(crate) against: i64,
}

/// Bytes of a record that no field describes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Undescribed {
    /// Offset of the bytes in the page.
    pub(crate) at: usize,
    /// Offset of the bytes in the record.
    pub(crate) offset: usize,
    /// The bytes in hexadecimal.
    pub(crate) bytes: String,
}

/// A column of a record.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Column {
    /// Name of the column.
    pub(crate) name: String,
    /// Type of the column, as in a table definition.
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    /// Offset of the column's value in the record, in bytes.
    pub(crate) offset: usize,
    /// Length of the column's value in bytes; 0 if the value is not stored.
    pub(crate) length: usize,
    /// Value of the column as text.
    pub(crate) value: String,
}

/// A run of pages or extents that have the same state in an allocation page.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MapRun {
    /// Id of the file with these pages.
    pub(crate) file: u16,
    /// Number of the first page.
    pub(crate) first: u64,
    /// Number of the last page. In a run of extents, the first page of the last extent.
    pub(crate) last: u64,
    /// Number of pages or extents.
    pub(crate) count: u64,
    /// The state, in the words of DBCC PAGE.
    pub(crate) state: String,
}
