//! A set of pages.

use format::PageId;
use source::PageSource;

/// A set of pages: one bit for each page of the files.
#[derive(Clone, Debug, Default)]
pub struct PageSet {
    files: Vec<(u16, Vec<u64>)>,
}

impl PageSet {
    /// The size in bytes of a set that covers the pages of a source.
    pub fn bytes_for(source: &dyn PageSource) -> u64 {
        source.files().iter().map(|file| u64::from(file.pages).div_ceil(64) * 8).sum()
    }

    /// Creates an empty set that covers the pages of a source. It needs one bit per page, which is one byte for 64 KB
    /// of the files.
    pub fn of(source: &dyn PageSource) -> Self {
        let bits = |pages: u32| vec![0; (pages as usize).div_ceil(64)];
        Self { files: source.files().iter().map(|file| (file.file_id, bits(file.pages))).collect() }
    }

    /// Adds a page; returns false if the set already contains it. Pages outside the files are ignored.
    pub fn insert(&mut self, page: PageId) -> bool {
        let bits = self.files.iter_mut().find(|(file, _)| *file == page.file).map(|(_, bits)| bits);
        let Some(word) = bits.and_then(|bits| bits.get_mut(page.page as usize / 64)) else { return false };
        let bit = 1 << (page.page % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Whether the set contains a page.
    pub fn contains(&self, page: PageId) -> bool {
        let bits = self.files.iter().find(|(file, _)| *file == page.file).map(|(_, bits)| bits);
        bits.and_then(|bits| bits.get(page.page as usize / 64)).is_some_and(|word| word & 1 << (page.page % 64) != 0)
    }
}
