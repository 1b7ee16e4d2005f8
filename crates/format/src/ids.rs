//! Addresses and identities: page, row, log sequence number, allocation unit.

use std::fmt;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// Address of a page: file id and page number within the file. `(0:0)` stands for "none".
///
/// Prints as SQL Server does: file unsigned, page signed (docs/format/checkdb.md#order-of-lines).
///
/// ```
/// use format::PageId;
/// assert_eq!(PageId::new(1, 153).to_string(), "(1:153)");
/// assert_eq!(PageId::new(49344, 0xC0C0_C0C0).to_string(), "(49344:-1061109568)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PageId {
    /// File id, 1 for the primary data file.
    pub file: u16,
    /// Page number: offset in the file divided by 8192.
    pub page: u32,
}

impl PageId {
    /// The null pointer `(0:0)`.
    pub const NONE: Self = Self { file: 0, page: 0 };
    /// The boot page of every database.
    pub const BOOT: Self = Self { file: 1, page: 9 };

    /// The page `page` of the file with id `file`.
    pub const fn new(file: u16, page: u32) -> Self {
        Self { file, page }
    }

    /// Whether this is the null pointer `(0:0)`.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Page pointer at `offset` of `bytes`: u32 page, u16 file. `None` if not inside.
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

/// Address of a record: page and slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct RecordId {
    /// The page that holds the record.
    pub page: PageId,
    /// Index into the page's slot array.
    pub slot: u16,
}

impl RecordId {
    /// Record pointer at `offset` of `bytes`: page pointer, u16 slot.
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

/// Log sequence number: virtual log file, block, slot. Ordered as the log is written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Lsn {
    /// Sequence number of the virtual log file.
    pub vlf: u32,
    /// Block within it, in units of 512 bytes.
    pub block: u32,
    /// Record within the block.
    pub slot: u16,
}

impl Lsn {
    /// The 10-byte LSN at `offset` of `bytes`.
    pub fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        let raw = bytes.get(offset..)?.first_chunk::<10>()?;
        Some(Self {
            vlf: u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]),
            block: u32::from_le_bytes([raw[4], raw[5], raw[6], raw[7]]),
            slot: u16::from_le_bytes([raw[8], raw[9]]),
        })
    }

    /// The LSN as pages store it.
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

/// Identity of an allocation unit: page header's m_indexId << 48 | m_objId << 16
/// (docs/format/page-header.md#header-fields).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct AllocUnitId(pub u64);

impl AllocUnitId {
    /// The unit to which file headers, allocation maps and the boot page belong (m_objId 99).
    pub const SYSTEM: Self = Self(99 << 16);

    /// The unit that a page header with these two fields names.
    ///
    /// ```
    /// assert_eq!(format::AllocUnitId::from_header(256, 93).0, 72057594044022784);
    /// ```
    pub const fn from_header(index_id: u16, object_id: u32) -> Self {
        Self((index_id as u64) << 48 | (object_id as u64) << 16)
    }

    /// The clustered index whose data pages may name this unit: data pages that SQL Server 2000 wrote last have index
    /// id 0 (docs/format/README.md#index-id-0-on-data-pages).
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
    /// Prints signed, as SQL Server does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.cast_signed().fmt(f)
    }
}

/// A page pointer as stored in a page header: u32 page, u16 file.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawPageId {
    /// Page number.
    pub page: U32,
    /// File id.
    pub file: U16,
}

impl From<RawPageId> for PageId {
    fn from(raw: RawPageId) -> Self {
        Self { file: raw.file.get(), page: raw.page.get() }
    }
}

/// An LSN as stored in a page header.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawLsn {
    /// Sequence number of the virtual log file.
    pub vlf: U32,
    /// Block within it.
    pub block: U32,
    /// Record within the block.
    pub slot: U16,
}

impl From<RawLsn> for Lsn {
    fn from(raw: RawLsn) -> Self {
        Self { vlf: raw.vlf.get(), block: raw.block.get(), slot: raw.slot.get() }
    }
}
