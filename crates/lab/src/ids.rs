//! Plain addresses and numbers.

/// Bytes of a page.
pub(crate) const PAGE: usize = 8192;
/// Pages of an extent.
pub(crate) const EXTENT: u32 = 8;
/// Pages that one PFS page describes.
pub(crate) const PFS_INTERVAL: u32 = 8088;
/// Pages that one GAM, SGAM, differential, minimally-logged or IAM page describes.
pub(crate) const GAM_INTERVAL: u32 = 511_232;

/// Address of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PageId {
    /// File id, from 1; 0 together with page 0 stands for none.
    pub file: u16,
    /// Page number in the file.
    pub page: u32,
}

impl PageId {
    /// The null pointer.
    pub const NONE: Self = Self { file: 0, page: 0 };

    /// Page `page` of file `file`.
    pub const fn new(file: u16, page: u32) -> Self {
        Self { file, page }
    }

    /// The address as six bytes: page, file.
    pub(crate) fn bytes(self) -> [u8; 6] {
        let mut bytes = [0; 6];
        bytes[..4].copy_from_slice(&self.page.to_le_bytes());
        bytes[4..].copy_from_slice(&self.file.to_le_bytes());
        bytes
    }
}

/// Address of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RowId {
    /// The page.
    pub page: PageId,
    /// The slot on it.
    pub slot: u16,
}

impl RowId {
    /// The address as eight bytes: page, file, slot.
    pub(crate) fn bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.page.bytes());
        bytes[6..].copy_from_slice(&self.slot.to_le_bytes());
        bytes
    }
}

/// Id of an allocation unit. The page header stores it in two parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct UnitId(pub u64);

impl UnitId {
    /// The unit of the fixed pages: object 99.
    pub(crate) const FIXED_PAGES: Self = Self(99 << 16);

    /// m_objId in the page header.
    pub(crate) fn object(self) -> u32 {
        (self.0 >> 16) as u32
    }

    /// m_indexId in the page header.
    pub(crate) fn index(self) -> u16 {
        (self.0 >> 48) as u16
    }
}
