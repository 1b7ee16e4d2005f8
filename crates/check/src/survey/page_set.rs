//! Sets of pages: one bit per page of the data files.

use format::PageId;

use super::FileMap;

/// A set of pages of the data files; it never contains other pages.
pub(crate) struct PageSet {
    files: Vec<(u16, u32, Vec<u64>)>,
}

impl PageSet {
    /// An empty set over the pages of `files`.
    pub(crate) fn new(files: &[FileMap]) -> Self {
        let bits = |file: &FileMap| vec![0; file.pages.div_ceil(u64::BITS) as usize];
        Self { files: files.iter().map(|file| (file.file_id, file.pages, bits(file))).collect() }
    }

    fn word(&self, page: PageId) -> Option<&u64> {
        let (_, pages, words) = self.files.iter().find(|(file_id, ..)| *file_id == page.file)?;
        words.get((page.page / u64::BITS) as usize).filter(|_| page.page < *pages)
    }

    fn word_mut(&mut self, page: PageId) -> Option<&mut u64> {
        let (_, pages, words) = self.files.iter_mut().find(|(file_id, ..)| *file_id == page.file)?;
        words.get_mut((page.page / u64::BITS) as usize).filter(|_| page.page < *pages)
    }

    /// Adds a page.
    pub(crate) fn insert(&mut self, page: PageId) {
        if let Some(word) = self.word_mut(page) {
            *word |= 1 << (page.page % u64::BITS);
        }
    }

    /// Removes a page; returns whether it was in the set.
    pub(crate) fn remove(&mut self, page: PageId) -> bool {
        let bit = 1 << (page.page % u64::BITS);
        let word = self.word_mut(page).filter(|word| **word & bit != 0);
        word.is_some_and(|word| {
            *word &= !bit;
            true
        })
    }

    /// Whether a page is in the set.
    pub(crate) fn contains(&self, page: PageId) -> bool {
        self.word(page).is_some_and(|word| word & 1 << (page.page % u64::BITS) != 0)
    }

    /// The pages in the set, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PageId> + '_ {
        self.files.iter().flat_map(|(file_id, _, words)| {
            let words = words.iter().enumerate().filter(|(_, word)| **word != 0);
            words.flat_map(move |(at, word)| {
                let bits = (0..u64::BITS).filter(move |bit| word & 1 << bit != 0);
                bits.map(move |bit| PageId::new(*file_id, at as u32 * u64::BITS + bit))
            })
        })
    }
}
