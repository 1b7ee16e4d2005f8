//! Addresses, IDs and sizes of the file format.

/// Size of a page in bytes.
pub(crate) const PAGE: usize = 8192;
/// Number of pages in an extent.
pub(crate) const EXTENT: u32 = 8;
/// Number of pages that one PFS page describes.
pub(crate) const PFS_INTERVAL: u32 = 8088;
/// Number of pages that one GAM, SGAM, differential, minimally-logged or IAM page describes.
pub(crate) const GAM_INTERVAL: u32 = 511_232;

/// The address of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PageId {
    /// File ID, from 1. File 0 with page 0 is the null pointer.
    pub file: u16,
    /// Page number in the file.
    pub page: u32,
}

impl PageId {
    /// The null pointer.
    pub const NONE: Self = Self { file: 0, page: 0 };

    /// The address of page `page` in file `file`.
    pub const fn new(file: u16, page: u32) -> Self {
        Self { file, page }
    }

    /// The address as six bytes: page number, then file ID.
    pub(crate) fn bytes(self) -> [u8; 6] {
        let mut bytes = [0; 6];
        bytes[..4].copy_from_slice(&self.page.to_le_bytes());
        bytes[4..].copy_from_slice(&self.file.to_le_bytes());
        bytes
    }
}

/// The address of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RowId {
    /// The page.
    pub page: PageId,
    /// The slot on the page.
    pub slot: u16,
}

impl RowId {
    /// The address as eight bytes: page number, file ID, slot.
    pub(crate) fn bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.page.bytes());
        bytes[6..].copy_from_slice(&self.slot.to_le_bytes());
        bytes
    }
}

/// ID of an allocation unit. The page header stores it in two fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct UnitId(pub u64);

impl UnitId {
    /// The unit of pages with a fixed address, which has object ID 99.
    pub(crate) const FIXED_PAGES: Self = Self(99 << 16);

    /// The value of m_objId in the page header.
    pub(crate) fn object(self) -> u32 {
        (self.0 >> 16) as u32
    }

    /// The value of m_indexId in the page header.
    pub(crate) fn index(self) -> u16 {
        (self.0 >> 48) as u16
    }
}
