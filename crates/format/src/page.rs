//! The page: 8192 bytes, header in front, slot array at the end (docs/format/page-header.md).

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::ids::{AllocUnitId, Lsn, PageId, RawLsn, RawPageId};

/// Size of every page.
pub const PAGE_BYTES: usize = 8192;
/// Size of the header in front of every page; the first record starts here at the earliest.
pub const HEADER_BYTES: usize = 96;
/// The bytes of one page.
pub type PageBytes = [u8; PAGE_BYTES];

/// What a page holds: the header's type byte (docs/format/page-header.md#page-types).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum PageType {
    /// Rows of a heap, or the leaf level of a clustered index.
    Data = 1,
    /// Rows of a nonclustered index, or a non-leaf level.
    Index = 2,
    /// Small off-row values and data nodes of several values.
    TextMix = 3,
    /// Tree nodes of large off-row values.
    TextTree = 4,
    /// Intermediate result of a sort.
    Sort = 7,
    /// Global allocation map.
    Gam = 8,
    /// Shared global allocation map.
    Sgam = 9,
    /// Index allocation map.
    Iam = 10,
    /// Page free space.
    Pfs = 11,
    /// Boot page, (1:9) only.
    Boot = 13,
    /// Server configuration, in master only.
    ServerConfig = 14,
    /// File header, page 0 of a file.
    FileHeader = 15,
    /// Differential changed map.
    DiffMap = 16,
    /// Minimally logged map.
    MlMap = 17,
    /// Being deallocated by a repair.
    RepairDeallocated = 18,
    /// Being moved by ALTER INDEX REORGANIZE.
    ReorgTemporary = 19,
    /// Allocated ahead by a bulk load.
    BulkPreallocated = 20,
}

impl PageType {
    /// The type whose number is `byte`; `None` for a number that no page carries.
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

    /// Name for people, as documents and reports use it.
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

/// Bits of the header's flag word (docs/format/page-header.md#flags).
pub mod page_flags {
    /// Part of a system transaction that has not ended (message 5282).
    pub const IN_SYSXACT: u16 = 0x1;
    /// Records start at multiples of 4, as SQL Server 2000 and older lay out pages (message 8940).
    pub const ALIGNED4: u16 = 0x2;
    /// Some record has a version tag; sound pages with such records exist without it.
    pub const VERSION_INFO: u16 = 0x2000;
    /// The low two bits of each sector's last byte are replaced by a pattern.
    pub const TORN_BITS: u16 = 0x100;
    /// The word at 60 is the checksum of the page.
    pub const CHECKSUM: u16 = 0x200;
    /// On a map page: the body is encrypted (TDE). On pages of heaps and LOBs: there are empty slots.
    pub const ENCRYPTED: u16 = 0x08;
    /// Number of the encryption key of the body; never set on plain pages.
    pub const ENCRYPTED_KEYS: u16 = 0xC00;
}

/// Bits of the header's type flag byte (docs/format/page-header.md#flags).
pub mod type_flags {
    /// The page carries a compression information record (docs/format/compression.md#compression-information).
    pub const COMPRESSION_INFO: u8 = 0x80;
}

/// The 96 bytes in front of every page (docs/format/page-header.md#header-fields).
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct PageHeader {
    /// 1 on every page that was ever written.
    pub header_version: u8,
    /// See [`PageType`].
    pub page_type: u8,
    /// See [`type_flags`].
    pub type_flags: u8,
    /// Level in the B-tree, 0 for the leaf.
    pub level: u8,
    /// See [`page_flags`].
    pub flags: U16,
    /// High part of the allocation unit id.
    pub index_id: U16,
    /// Left neighbor in the level, or (0:0).
    pub prev: RawPageId,
    /// Length of the fixed part of the page's records.
    pub pminlen: U16,
    /// Right neighbor in the level, or (0:0).
    pub next: RawPageId,
    /// Entries of the slot array.
    pub slot_count: U16,
    /// Low part of the allocation unit id.
    pub object_id: U32,
    /// Free bytes, contiguous or not.
    pub free_count: U16,
    /// First byte after the last record.
    pub free_data: U16,
    /// The page's own address.
    pub page_id: RawPageId,
    /// Bytes reserved by open transactions.
    pub reserved_count: U16,
    /// LSN of the last change.
    pub lsn: RawLsn,
    /// Bytes reserved by the transaction named next.
    pub xact_reserved: U16,
    /// That transaction: u32, u16.
    pub xdes_id: [u8; 6],
    /// Ghost records on the page.
    pub ghost_count: U16,
    /// Torn bits or checksum, as [`page_flags`] says.
    pub torn_bits: U32,
    /// Always zero.
    pub reserved: [u8; 32],
}

const _: () = assert!(size_of::<PageHeader>() == HEADER_BYTES);

impl PageHeader {
    /// The page's own address, according to the header.
    pub fn page_id(&self) -> PageId {
        self.page_id.into()
    }

    /// Left neighbor.
    pub fn prev(&self) -> PageId {
        self.prev.into()
    }

    /// Right neighbor.
    pub fn next(&self) -> PageId {
        self.next.into()
    }

    /// LSN of the last change.
    pub fn lsn(&self) -> Lsn {
        self.lsn.into()
    }

    /// The allocation unit that the header names.
    pub fn alloc_unit(&self) -> AllocUnitId {
        AllocUnitId::from_header(self.index_id.get(), self.object_id.get())
    }

    /// Whether everything after the header is encrypted (TDE). A page that claims both torn bits and a checksum has
    /// garbage flags, which prove nothing.
    pub fn is_encrypted(&self) -> bool {
        const BOTH: u16 = page_flags::TORN_BITS | page_flags::CHECKSUM;
        let flags = self.flags.get();
        flags & page_flags::ENCRYPTED_KEYS != 0 && flags & BOTH != BOTH
    }

    /// The page type, if the number is a known one.
    pub fn kind(&self) -> Option<PageType> {
        PageType::from_byte(self.page_type)
    }
}

/// A view of one page, protection bits already undone (see [`crate::protection`]).
#[derive(Clone, Copy)]
pub struct Page<'a> {
    bytes: &'a PageBytes,
}

impl<'a> Page<'a> {
    /// A view of `bytes`.
    pub fn new(bytes: &'a PageBytes) -> Self {
        Self { bytes }
    }

    /// All 8192 bytes.
    pub fn bytes(self) -> &'a PageBytes {
        self.bytes
    }

    /// The header.
    pub fn header(self) -> &'a PageHeader {
        let (header, _) = self.bytes.split_first_chunk::<HEADER_BYTES>().unwrap_or((&[0; HEADER_BYTES], &[]));
        zerocopy::transmute_ref!(header)
    }

    /// Offset of the record in `slot` according to the slot array, unchecked. Slots count from the end of the page.
    /// `None` if the slot array entry itself would be inside the header.
    pub fn slot_offset(self, slot: u16) -> Option<u16> {
        let at = (PAGE_BYTES - 2).checked_sub(2 * usize::from(slot))?;
        if at < HEADER_BYTES {
            return None;
        }
        crate::bytes::u16_at(self.bytes, at)
    }

    /// The bytes from the record in `slot` to the end of the page, unchecked but inside the page.
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
