//! Identifiers: page ID, record ID, log sequence number, allocation unit ID.

use std::fmt;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The address of a page: the file ID and the page number within the file. `(0:0)` means that there is no page.
///
/// Printed as SQL Server prints it: the file as an unsigned number, the page as a signed one
/// (docs/format/checkdb.md#order-of-lines).
///
/// ```
/// use format::PageId;
/// assert_eq!(PageId::new(1, 153).to_string(), "(1:153)");
/// assert_eq!(PageId::new(49344, 0xC0C0_C0C0).to_string(), "(49344:-1061109568)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PageId {
    /// The file ID; 1 for the primary data file.
    pub file: u16,
    /// The page number: the offset in the file divided by 8192.
    pub page: u32,
}

impl PageId {
    /// The null pointer `(0:0)`.
    pub const NONE: Self = Self { file: 0, page: 0 };
    /// The boot page of every database.
    pub const BOOT: Self = Self { file: 1, page: 9 };

    /// The page with number `page` in the file with ID `file`.
    pub const fn new(file: u16, page: u32) -> Self {
        Self { file, page }
    }

    /// Whether this is the null pointer `(0:0)`.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Reads the page pointer at `offset` of `bytes`: u32 page, u16 file. `None` if it is not inside `bytes`.
    pub fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        let raw = bytes.get(offset..)?.first_chunk::<6>()?;
        Some(Self {
            page: u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]),
            file: u16::from_le_bytes([raw[4], raw[5]]),
        })
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}:{})", self.file, self.page.cast_signed())
    }
}

/// The address of a record: its page and its slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct RecordId {
    /// The page that holds the record.
    pub page: PageId,
    /// The index of the record in the slot array of the page.
    pub slot: u16,
}

impl RecordId {
    /// Reads the record pointer at `offset` of `bytes`: a page pointer, then the u16 slot.
    pub fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        let page = PageId::read(bytes, offset)?;
        let slot = crate::bytes::u16_at(bytes, offset.checked_add(6)?)?;
        Some(Self { page, slot })
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}:{}:{})", self.page.file, self.page.page.cast_signed(), self.slot)
    }
}

/// A log sequence number: virtual log file, block, slot. Sorts in the order in which the log is written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Lsn {
    /// The sequence number of the virtual log file.
    pub vlf: u32,
    /// The place of the block within the virtual log file, in units of 512 bytes.
    pub block: u32,
    /// The number of the record within the block.
    pub slot: u16,
}

impl Lsn {
    /// Reads the 10-byte LSN at `offset` of `bytes`.
    pub fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        let raw = bytes.get(offset..)?.first_chunk::<10>()?;
        Some(Self {
            vlf: u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]),
            block: u32::from_le_bytes([raw[4], raw[5], raw[6], raw[7]]),
            slot: u16::from_le_bytes([raw[8], raw[9]]),
        })
    }

    /// The LSN in the ten bytes that pages use for it.
    pub fn bytes(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[..4].copy_from_slice(&self.vlf.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.block.to_le_bytes());
        bytes[8..].copy_from_slice(&self.slot.to_le_bytes());
        bytes
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}:{}:{})", self.vlf, self.block, self.slot)
    }
}

/// The ID of an allocation unit, made of two fields of a page header: m_indexId << 48 | m_objId << 16
/// (docs/format/page-header.md#header-fields).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct AllocUnitId(pub u64);

impl AllocUnitId {
    /// The allocation unit of file headers, allocation maps and the boot page (m_objId 99).
    pub const SYSTEM: Self = Self(99 << 16);

    /// The allocation unit of a page with these two fields in its header.
    ///
    /// ```
    /// assert_eq!(format::AllocUnitId::from_header(256, 93).0, 72057594044022784);
    /// ```
    pub const fn from_header(index_id: u16, object_id: u32) -> Self {
        Self((index_id as u64) << 48 | (object_id as u64) << 16)
    }

    /// The clustered index that may own a data page with this allocation unit in its header. Data pages that were last
    /// written by SQL Server 2000 have index ID 0 in their header (docs/format/README.md#index-id-0-on-data-pages).
    ///
    /// ```
    /// use format::AllocUnitId;
    /// let of = AllocUnitId::from_header;
    /// assert_eq!(of(0, 21575115).clustered_of_2000(), Some(of(1, 21575115)));
    /// assert_eq!(of(255, 21575115).clustered_of_2000(), None);
    /// ```
    pub fn clustered_of_2000(self) -> Option<Self> {
        const CLUSTERED: u64 = 1 << 48;
        (self.0 < CLUSTERED).then_some(Self(self.0 | CLUSTERED))
    }
}

impl fmt::Display for AllocUnitId {
    /// Prints the ID as a signed number, as SQL Server does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.cast_signed().fmt(f)
    }
}

/// A page pointer in the form that page headers use: u32 page, u16 file.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawPageId {
    /// The page number.
    pub page: U32,
    /// The file ID.
    pub file: U16,
}

impl From<RawPageId> for PageId {
    fn from(raw: RawPageId) -> Self {
        Self { file: raw.file.get(), page: raw.page.get() }
    }
}

/// An LSN in the form that page headers use.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawLsn {
    /// The sequence number of the virtual log file.
    pub vlf: U32,
    /// The place of the block within the virtual log file, in units of 512 bytes.
    pub block: U32,
    /// The number of the record within the block.
    pub slot: U16,
}

impl From<RawLsn> for Lsn {
    fn from(raw: RawLsn) -> Self {
        Self { vlf: raw.vlf.get(), block: raw.block.get(), slot: raw.slot.get() }
    }
}
