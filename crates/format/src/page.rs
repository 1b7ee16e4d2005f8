//! The page: 8192 bytes, with the header at the start and the slot array at the end (docs/format/page-header.md).

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::ids::{AllocUnitId, Lsn, PageId, RawLsn, RawPageId};

/// The size of a page in bytes.
pub const PAGE_BYTES: usize = 8192;
/// The size of the page header in bytes. No record starts before its end.
pub const HEADER_BYTES: usize = 96;
/// The bytes of one page.
pub type PageBytes = [u8; PAGE_BYTES];

/// The type of a page, from the type byte of its header (docs/format/page-header.md#page-types).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum PageType {
    /// A page of a heap, or of the leaf level of a clustered index.
    Data = 1,
    /// A page of a nonclustered index, or of a non-leaf level.
    Index = 2,
    /// A page with small off-row values, and with data nodes that may belong to different values.
    TextMix = 3,
    /// A page with tree nodes of large off-row values.
    TextTree = 4,
    /// A page with an intermediate result of a sort.
    Sort = 7,
    /// A global allocation map.
    Gam = 8,
    /// A shared global allocation map.
    Sgam = 9,
    /// An index allocation map.
    Iam = 10,
    /// A page free space page.
    Pfs = 11,
    /// The boot page, which is always (1:9).
    Boot = 13,
    /// The page with the server configuration, in master only.
    ServerConfig = 14,
    /// A file header, page 0 of a file.
    FileHeader = 15,
    /// A differential changed map.
    DiffMap = 16,
    /// A minimally logged map.
    MlMap = 17,
    /// A page that a repair is deallocating.
    RepairDeallocated = 18,
    /// A page that ALTER INDEX REORGANIZE is moving.
    ReorgTemporary = 19,
    /// A page that a bulk load has allocated in advance.
    BulkPreallocated = 20,
}

impl PageType {
    /// The page type with this number; `None` for a number that no page type has.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Data,
            2 => Self::Index,
            3 => Self::TextMix,
            4 => Self::TextTree,
            7 => Self::Sort,
            8 => Self::Gam,
            9 => Self::Sgam,
            10 => Self::Iam,
            11 => Self::Pfs,
            13 => Self::Boot,
            14 => Self::ServerConfig,
            15 => Self::FileHeader,
            16 => Self::DiffMap,
            17 => Self::MlMap,
            18 => Self::RepairDeallocated,
            19 => Self::ReorgTemporary,
            20 => Self::BulkPreallocated,
            _ => return None,
        })
    }

    /// The name of the page type in documents and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Index => "index",
            Self::TextMix => "text mix",
            Self::TextTree => "text tree",
            Self::Sort => "sort",
            Self::Gam => "GAM",
            Self::Sgam => "SGAM",
            Self::Iam => "IAM",
            Self::Pfs => "PFS",
            Self::Boot => "boot",
            Self::ServerConfig => "server configuration",
            Self::FileHeader => "file header",
            Self::DiffMap => "differential map",
            Self::MlMap => "minimally logged map",
            Self::RepairDeallocated => "deallocated by repair",
            Self::ReorgTemporary => "temporary of a reorganize",
            Self::BulkPreallocated => "preallocated by a bulk load",
        }
    }
}

/// The bits of the flag word in the page header (docs/format/page-header.md#flags).
pub mod page_flags {
    /// The page was changed by a system transaction that has not ended (message 5282).
    pub const IN_SYSXACT: u16 = 0x1;
    /// Records start at multiples of 4, as on pages of SQL Server 2000 and older (message 8940).
    pub const ALIGNED4: u16 = 0x2;
    /// Some record has a version tag. The bit may be missing: sound pages exist that have version tags but not this
    /// bit.
    pub const VERSION_INFO: u16 = 0x2000;
    /// Torn-page protection has replaced the low two bits of each sector's last byte by a pattern.
    pub const TORN_BITS: u16 = 0x100;
    /// The word at offset 60 is the checksum of the page.
    pub const CHECKSUM: u16 = 0x200;
    /// On a map page, this bit means that the body is encrypted (TDE). On heap and LOB pages, it means that some slots
    /// are empty.
    pub const ENCRYPTED: u16 = 0x08;
    /// The number of the key that encrypts the body; 0 on pages that are not encrypted.
    pub const ENCRYPTED_KEYS: u16 = 0xC00;
}

/// The bits of the type flag byte in the page header (docs/format/page-header.md#flags).
pub mod type_flags {
    /// The page has compression information (docs/format/compression.md#compression-information).
    pub const COMPRESSION_INFO: u8 = 0x80;
}

/// The page header: the first 96 bytes of a page (docs/format/page-header.md#header-fields).
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct PageHeader {
    /// The version of the header; 1 on every page that was ever written.
    pub header_version: u8,
    /// The number of the page type; see [`PageType`].
    pub page_type: u8,
    /// The type flags; see [`type_flags`].
    pub type_flags: u8,
    /// The level in the B-tree; 0 for the leaf level.
    pub level: u8,
    /// The page flags; see [`page_flags`].
    pub flags: U16,
    /// The high part of the allocation unit ID.
    pub index_id: U16,
    /// The left neighbour on this level, or (0:0).
    pub prev: RawPageId,
    /// The length in bytes of the fixed part of the page's records.
    pub pminlen: U16,
    /// The right neighbour on this level, or (0:0).
    pub next: RawPageId,
    /// The number of entries in the slot array.
    pub slot_count: U16,
    /// The low part of the allocation unit ID.
    pub object_id: U32,
    /// The number of free bytes on the page, contiguous or not.
    pub free_count: U16,
    /// The offset of the first byte after the last record.
    pub free_data: U16,
    /// The page ID of this page.
    pub page_id: RawPageId,
    /// The number of bytes that open transactions have reserved.
    pub reserved_count: U16,
    /// The LSN of the last change.
    pub lsn: RawLsn,
    /// The number of bytes that the transaction in `xdes_id` has reserved.
    pub xact_reserved: U16,
    /// The ID of the transaction to which `xact_reserved` belongs: u32, u16.
    pub xdes_id: [u8; 6],
    /// The number of ghost records on the page.
    pub ghost_count: U16,
    /// The torn bits or the checksum, depending on [`page_flags`].
    pub torn_bits: U32,
    /// Always zero.
    pub reserved: [u8; 32],
}

const _: () = assert!(size_of::<PageHeader>() == HEADER_BYTES);

impl PageHeader {
    /// A view of these bytes as a page header.
    pub fn of(bytes: &[u8; HEADER_BYTES]) -> &Self {
        zerocopy::transmute_ref!(bytes)
    }

    /// The page ID of this page, according to the header.
    pub fn page_id(&self) -> PageId {
        self.page_id.into()
    }

    /// The left neighbour.
    pub fn prev(&self) -> PageId {
        self.prev.into()
    }

    /// The right neighbour.
    pub fn next(&self) -> PageId {
        self.next.into()
    }

    /// The LSN of the last change.
    pub fn lsn(&self) -> Lsn {
        self.lsn.into()
    }

    /// The allocation unit in the header.
    pub fn alloc_unit(&self) -> AllocUnitId {
        AllocUnitId::from_header(self.index_id.get(), self.object_id.get())
    }

    /// Whether everything after the header is encrypted (TDE). False if both the torn-bits flag and the checksum flag
    /// are set: the flags are then garbage and prove nothing.
    pub fn is_encrypted(&self) -> bool {
        const BOTH: u16 = page_flags::TORN_BITS | page_flags::CHECKSUM;
        let flags = self.flags.get();
        flags & page_flags::ENCRYPTED_KEYS != 0 && flags & BOTH != BOTH
    }

    /// The page type; `None` if its number is unknown.
    pub fn kind(&self) -> Option<PageType> {
        PageType::from_byte(self.page_type)
    }
}

/// A view of one page. Before the page is viewed, the bits that torn-page protection replaced must be restored (see
/// [`crate::protection`]).
#[derive(Clone, Copy)]
pub struct Page<'a> {
    bytes: &'a PageBytes,
}

impl<'a> Page<'a> {
    /// A view of the page in `bytes`.
    pub fn new(bytes: &'a PageBytes) -> Self {
        Self { bytes }
    }

    /// All 8192 bytes of the page.
    pub fn bytes(self) -> &'a PageBytes {
        self.bytes
    }

    /// The header of the page.
    pub fn header(self) -> &'a PageHeader {
        let (header, _) = self.bytes.split_first_chunk::<HEADER_BYTES>().unwrap_or((&[0; HEADER_BYTES], &[]));
        PageHeader::of(header)
    }

    /// The offset of the record in `slot`, read from the slot array and not checked. The slot array is read from the
    /// end of the page. `None` if the entry itself would be inside the header.
    pub fn slot_offset(self, slot: u16) -> Option<u16> {
        let at = (PAGE_BYTES - 2).checked_sub(2 * usize::from(slot))?;
        if at < HEADER_BYTES {
            return None;
        }
        crate::bytes::u16_at(self.bytes, at)
    }

    /// The bytes from the start of the record in `slot` to the end of the page. The record itself is not checked.
    pub fn slot_bytes(self, slot: u16) -> Option<&'a [u8]> {
        if slot >= self.header().slot_count.get() {
            return None;
        }
        let offset = usize::from(self.slot_offset(slot)?);
        if offset < HEADER_BYTES {
            return None;
        }
        self.bytes.get(offset..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_fields_are_where_the_reference_says() {
        let mut bytes = [0u8; PAGE_BYTES];
        bytes[..HEADER_BYTES].iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
        let header = *Page::new(&bytes).header();
        assert_eq!(header.index_id.get(), 0x0706);
        assert_eq!(header.prev(), PageId::new(0x0D0C, 0x0B0A_0908));
        assert_eq!(header.pminlen.get(), 0x0F0E);
        assert_eq!(header.next(), PageId::new(0x1514, 0x1312_1110));
        assert_eq!(header.slot_count.get(), 0x1716);
        assert_eq!(header.object_id.get(), 0x1B1A_1918);
        assert_eq!(header.free_count.get(), 0x1D1C);
        assert_eq!(header.free_data.get(), 0x1F1E);
        assert_eq!(header.page_id(), PageId::new(0x2524, 0x2322_2120));
        assert_eq!(header.lsn(), Lsn { vlf: 0x2B2A_2928, block: 0x2F2E_2D2C, slot: 0x3130 });
        assert_eq!(header.ghost_count.get(), 0x3B3A);
        assert_eq!(header.torn_bits.get(), 0x3F3E_3D3C);
    }

    #[test]
    fn slot_array_never_reaches_into_the_header() {
        let bytes = [0xFFu8; PAGE_BYTES];
        let page = Page::new(&bytes);
        assert_eq!(page.slot_offset(0), Some(0xFFFF));
        assert_eq!(page.slot_offset(4047), Some(0xFFFF));
        assert_eq!(page.slot_offset(4048), None);
        assert!(page.slot_bytes(0).is_none());
    }
}
