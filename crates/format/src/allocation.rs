//! Allocation maps: the page numbers that the format reserves for certain pages, PFS bytes, bitmaps, IAM pages
//! (docs/format/allocation.md).

use crate::bytes::{u32_at, unsigned};
use crate::fields::{Structure, offset, series};
use crate::ids::PageId;
use crate::page::{Page, PageType};

/// Number of pages in an extent.
pub const EXTENT_PAGES: u32 = 8;
/// Number of pages that one PFS page describes.
pub const PFS_PAGES: u32 = 8088;
/// Number of extents that one GAM, SGAM, differential, minimally logged or IAM page describes.
pub const INTERVAL_EXTENTS: u32 = 63_904;
/// Number of pages that one GAM, SGAM, differential, minimally logged or IAM page describes.
pub const INTERVAL_PAGES: u32 = INTERVAL_EXTENTS * EXTENT_PAGES;
/// Length in bytes of the bitmap on a GAM, SGAM, differential, minimally logged or IAM page.
pub const BITMAP_BYTES: usize = INTERVAL_EXTENTS as usize / 8;
/// The offset of the bitmap in the record of slot 1.
const BITMAP_AT: usize = offset(Structure::IamBitmap, "extents", BITMAP_BYTES as u32);
const _: () = {
    let bytes = BITMAP_BYTES as u32;
    assert!(BITMAP_AT == offset(Structure::GamBitmap, "gam", bytes));
    assert!(BITMAP_AT == offset(Structure::SgamBitmap, "sgam", bytes));
    assert!(BITMAP_AT == offset(Structure::DiffBitmap, "diff", bytes));
    assert!(BITMAP_AT == offset(Structure::MlBitmap, "ml", bytes));
};
/// Number of single-page slots on an IAM page.
pub const IAM_SLOTS: usize = 8;

/// A kind of page that the format puts at fixed page numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FixedPage {
    /// Page 0 of every file.
    FileHeader,
    /// Page 1, then every page whose number is a multiple of 8088.
    Pfs,
    /// Page 2, then every page whose number is a multiple of 511232.
    Gam,
    /// Page 3, then pages 511232 k + 1 for k = 1, 2, ...
    Sgam,
    /// Pages 511232 k + 6 for k = 0, 1, ...
    DiffMap,
    /// Pages 511232 k + 7 for k = 0, 1, ...
    MlMap,
    /// Page (1:9), in the first file only.
    Boot,
}

impl FixedPage {
    /// The kind of page that the format puts at the address `page`, if it puts one there. Returns `None` at multiples
    /// of both 8088 and 511232 (the first is page 516,855,552): a PFS page and a GAM page would share the page there,
    /// and it is undocumented which of the two is moved to another page (docs/format/allocation.md#beyond-4-gb).
    ///
    /// ```
    /// use format::{PageId, allocation::FixedPage};
    /// assert_eq!(FixedPage::at(PageId::new(3, 16176)), Some(FixedPage::Pfs));
    /// assert_eq!(FixedPage::at(PageId::new(8, 4601094)), Some(FixedPage::DiffMap));
    /// assert_eq!(FixedPage::at(PageId::new(3, 9)), None);
    /// ```
    pub fn at(page: PageId) -> Option<Self> {
        if page == PageId::BOOT {
            return Some(Self::Boot);
        }
        match page.page {
            0 => return Some(Self::FileHeader),
            1 => return Some(Self::Pfs),
            2 => return Some(Self::Gam),
            3 => return Some(Self::Sgam),
            6 => return Some(Self::DiffMap),
            7 => return Some(Self::MlMap),
            8..PFS_PAGES => return None,
            _ => {}
        }
        let is_pfs = page.page.is_multiple_of(PFS_PAGES);
        let map = match page.page % INTERVAL_PAGES {
            0 if page.page >= INTERVAL_PAGES => Some(Self::Gam),
            1 if page.page >= INTERVAL_PAGES => Some(Self::Sgam),
            6 if page.page >= INTERVAL_PAGES => Some(Self::DiffMap),
            7 if page.page >= INTERVAL_PAGES => Some(Self::MlMap),
            _ => None,
        };
        match (is_pfs, map) {
            (true, None) => Some(Self::Pfs),
            (false, map) => map,
            (true, Some(_)) => None,
        }
    }

    /// The page type that the header of a page of this kind must contain.
    pub fn page_type(self) -> PageType {
        match self {
            Self::FileHeader => PageType::FileHeader,
            Self::Pfs => PageType::Pfs,
            Self::Gam => PageType::Gam,
            Self::Sgam => PageType::Sgam,
            Self::DiffMap => PageType::DiffMap,
            Self::MlMap => PageType::MlMap,
            Self::Boot => PageType::Boot,
        }
    }

    /// The name of the page in messages 8946 and 5250.
    pub fn message_name(self) -> &'static str {
        match self {
            Self::FileHeader => "file header",
            Self::Pfs => "PFS_PAGE",
            Self::Gam => "GAM_PAGE",
            Self::Sgam => "SGAM_PAGE",
            Self::DiffMap => "DIFF_MAP_PAGE",
            Self::MlMap => "ML_MAP_PAGE",
            Self::Boot => "boot",
        }
    }
}

/// The PFS page that describes `page` of a file.
pub fn pfs_page_of(page: u32) -> u32 {
    match page / PFS_PAGES {
        0 => 1,
        interval => interval * PFS_PAGES,
    }
}

/// The GAM page of the interval that holds `page`.
pub fn gam_page_of(page: u32) -> u32 {
    match page / INTERVAL_PAGES {
        0 => 2,
        interval => interval * INTERVAL_PAGES,
    }
}

/// The SGAM page of the interval that holds `page`.
pub fn sgam_page_of(page: u32) -> u32 {
    gam_page_of(page) + 1
}

/// The differential map pages of a file with this number of pages, each with the first extent that it describes.
pub fn diff_maps(pages: u32) -> impl Iterator<Item = (u32, u32)> {
    let firsts = (0..pages).step_by(INTERVAL_PAGES as usize);
    firsts.filter_map(|first| Some((first.checked_add(6)?, first / EXTENT_PAGES)))
}

/// Whether `extent` holds the allocation maps at the start of a GAM interval. Such an extent is allocated, but no
/// allocation unit owns it.
pub fn is_fixed_extent(extent: u32) -> bool {
    extent.is_multiple_of(INTERVAL_EXTENTS)
}

/// The PFS byte of one page.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PfsByte(pub u8);

impl PfsByte {
    /// The bits that give the kind of page: IAM, mixed, allocated.
    pub const TYPE_MASK: u8 = 0x70;
    /// The kind bits of a page in a dedicated (uniform) extent.
    pub const DEDICATED: u8 = 0x40;
    /// The kind bits of a single page in a mixed extent.
    pub const MIXED: u8 = 0x60;
    /// The kind bits of an IAM page, which is always in a mixed extent.
    pub const IAM: u8 = 0x70;

    /// Whether the page is allocated. If the page is not allocated, the other bits of the byte and the contents of the
    /// page are garbage (docs/format/README.md#unallocated-pages).
    pub fn is_allocated(self) -> bool {
        self.0 & 0x40 != 0
    }

    /// Whether the page is in a mixed extent.
    pub fn is_mixed(self) -> bool {
        self.0 & 0x20 != 0
    }

    /// Whether the page is an IAM page.
    pub fn is_iam(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// Whether the page may hold ghosts. The bit can be out of date: set on a page without ghosts, or clear on a page
    /// with ghosts.
    pub fn has_ghosts(self) -> bool {
        self.0 & 0x08 != 0
    }

    /// The bits of [`Self::TYPE_MASK`].
    pub fn type_bits(self) -> u8 {
        self.0 & Self::TYPE_MASK
    }

    /// The upper bound of the page's fullness in percent, as SQL Server prints it.
    pub fn percent_full(self) -> u8 {
        match self.0 & 7 {
            0 => 0,
            1 => 50,
            2 => 80,
            3 => 95,
            _ => 100,
        }
    }

    /// The flags as message 8906 prints them.
    ///
    /// ```
    /// use format::allocation::PfsByte;
    /// assert_eq!(PfsByte(0x70).flags_text(), "IAM_PG MIXED_EXT ALLOCATED   0_PCT_FULL");
    /// assert_eq!(PfsByte(0x64).flags_text(), "MIXED_EXT ALLOCATED 100_PCT_FULL");
    /// ```
    pub fn flags_text(self) -> String {
        let mut text = String::new();
        for (set, name) in [
            (self.has_ghosts(), "HAS_GHOST "),
            (self.is_iam(), "IAM_PG "),
            (self.is_mixed(), "MIXED_EXT "),
            (self.is_allocated(), "ALLOCATED "),
        ] {
            if set {
                text.push_str(name);
            }
        }
        format!("{text}{:>3}_PCT_FULL", self.percent_full())
    }
}

/// The PFS bytes of a PFS page, one for each page of its interval, in page order. `None` if the record is missing or
/// too short.
pub fn pfs_bytes(page: Page<'_>) -> Option<&[u8; PFS_PAGES as usize]> {
    page.slot_bytes(0)?.get(const { offset(Structure::Pfs, "pfs", PFS_PAGES) }..)?.first_chunk()
}

/// The bitmap of a GAM, SGAM, differential, minimally logged or IAM page: the record in slot 1 without its 4-byte
/// header. The record usually starts at offset 190 of the page, but at 192 on the IAM page of sysfiles1
/// (docs/format/allocation.md#gam).
pub fn bitmap(page: Page<'_>) -> Option<&[u8; BITMAP_BYTES]> {
    page.slot_bytes(1)?.get(BITMAP_AT..)?.first_chunk()
}

/// Bit `index` of a bitmap. Index 0 is the lowest bit of the first byte.
pub fn bit(bitmap: &[u8; BITMAP_BYTES], index: u32) -> bool {
    bitmap.get(index as usize / 8).is_some_and(|byte| byte & (1 << (index % 8)) != 0)
}

/// The numbers of the set bits, ascending.
///
/// ```
/// use format::allocation::{BITMAP_BYTES, set_bits};
/// let mut bitmap = [0; BITMAP_BYTES];
/// (bitmap[0], bitmap[9], bitmap[BITMAP_BYTES - 1]) = (0b101, 0b1000_0000, 0b10);
/// assert_eq!(set_bits(&bitmap).collect::<Vec<_>>(), [0, 2, 79, 63_897]);
/// ```
pub fn set_bits(bitmap: &[u8; BITMAP_BYTES]) -> impl Iterator<Item = u32> + '_ {
    // Skip zero words first: nearly all words of nearly all bitmaps are 0.
    let words = bitmap.chunks(8).map(unsigned).zip((0..).step_by(64)).filter(|(word, _)| *word != 0);
    words.flat_map(|(word, first)| (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| first + bit))
}

/// The record in slot 0 of an IAM page.
#[derive(Clone, Copy, Debug)]
pub struct IamHeader {
    /// Position of the page in the IAM chain, counted from 0.
    pub sequence: u32,
    /// First page of the interval that the bitmap maps.
    pub start: PageId,
    /// The single pages in mixed extents; (0:0) in an empty slot.
    pub slots: [PageId; IAM_SLOTS],
}

impl IamHeader {
    /// Reads the header from an IAM page; `None` if the record is incomplete.
    pub fn read(page: Page<'_>) -> Option<Self> {
        const fn at(name: &str, bytes: u32) -> usize {
            offset(Structure::IamHeader, name, bytes)
        }
        const SLOTS: (usize, usize) = series(Structure::IamHeader, "singlePage", 6);
        let record = page.slot_bytes(0)?;
        let mut slots = [PageId::NONE; IAM_SLOTS];
        for (number, slot) in slots.iter_mut().enumerate() {
            *slot = PageId::read(record, SLOTS.0 + SLOTS.1 * number)?;
        }
        Some(Self {
            sequence: u32_at(record, const { at("sequenceNumber", 4) })?,
            start: PageId::read(record, const { at("start_pg", 6) })?,
            slots,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_pages_of_a_large_file_are_where_dbcc_page_showed_them() {
        // DBCC PAGE printed these numbers for page (8:5031979): docs/format/allocation.md#fixed-pages.
        assert_eq!(pfs_page_of(5_031_979), 5_030_736);
        assert_eq!(gam_page_of(5_031_979), 4_601_088);
        for (page, kind) in [
            (4_601_088, FixedPage::Gam),
            (4_601_089, FixedPage::Sgam),
            (4_601_094, FixedPage::DiffMap),
            (4_601_095, FixedPage::MlMap),
            (5_030_736, FixedPage::Pfs),
        ] {
            assert_eq!(FixedPage::at(PageId::new(8, page)), Some(kind));
        }
        assert_eq!(FixedPage::at(PageId::new(1, 516_855_552)), None, "two series meet");
    }

    #[test]
    fn set_bits_agree_with_bit() {
        let mut map = [0u8; BITMAP_BYTES];
        for index in [0u32, 7, 8, 1000, INTERVAL_EXTENTS - 1] {
            map[index as usize / 8] |= 1 << (index % 8);
        }
        assert_eq!(set_bits(&map).collect::<Vec<_>>(), [0, 7, 8, 1000, INTERVAL_EXTENTS - 1]);
        assert!(bit(&map, 1000) && !bit(&map, 1001) && !bit(&map, u32::MAX));
    }
}
