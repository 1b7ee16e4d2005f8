//! Sets of pages, with one bit per page. The pages are those of the data files, or those of ranges of the files.

use findings::FileRange;
use format::PageId;

use super::FileMap;

/// A set of pages. A page outside the files or ranges for which the set was created cannot be inserted; inserting it
/// has no effect.
pub(crate) struct PageSet {
    ranges: Vec<(FileRange, Vec<u64>)>,
}

impl PageSet {
    /// An empty set over the pages of `files`.
    pub(crate) fn new(files: &[FileMap]) -> Self {
        Self::of_ranges(
            files.iter().map(|file| FileRange { file_id: file.file_id, first: 0, pages: file.pages }).collect(),
        )
    }

    /// An empty set over the pages of these ranges, which do not overlap.
    pub(crate) fn of_ranges(ranges: Vec<FileRange>) -> Self {
        let bits = |range: &FileRange| vec![0; range.pages.div_ceil(u64::BITS) as usize];
        Self { ranges: ranges.into_iter().map(|range| (range, bits(&range))).collect() }
    }

    /// The word that contains the bit of a page, and a mask with this bit.
    fn word(&self, page: PageId) -> Option<(&u64, u64)> {
        let (range, words) = self.ranges.iter().find(|(range, _)| range.contains(page))?;
        let at = page.page - range.first;
        Some((words.get((at / u64::BITS) as usize)?, 1 << (at % u64::BITS)))
    }

    fn word_mut(&mut self, page: PageId) -> Option<(&mut u64, u64)> {
        let (range, words) = self.ranges.iter_mut().find(|(range, _)| range.contains(page))?;
        let at = page.page - range.first;
        Some((words.get_mut((at / u64::BITS) as usize)?, 1 << (at % u64::BITS)))
    }

    /// Adds a page.
    pub(crate) fn insert(&mut self, page: PageId) {
        if let Some((word, bit)) = self.word_mut(page) {
            *word |= bit;
        }
    }

    /// Removes a page; returns whether it was in the set.
    pub(crate) fn remove(&mut self, page: PageId) -> bool {
        let word = self.word_mut(page).filter(|(word, bit)| **word & bit != 0);
        word.is_some_and(|(word, bit)| {
            *word &= !bit;
            true
        })
    }

    /// Whether a page is in the set.
    pub(crate) fn contains(&self, page: PageId) -> bool {
        self.word(page).is_some_and(|(word, bit)| word & bit != 0)
    }

    /// The pages in the set, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PageId> + '_ {
        self.ranges.iter().flat_map(|(range, words)| {
            let words = words.iter().enumerate().filter(|(_, word)| **word != 0);
            words.flat_map(move |(at, word)| {
                let bits = (0..u64::BITS).filter(move |bit| word & 1 << bit != 0);
                bits.map(move |bit| PageId::new(range.file_id, range.first + at as u32 * u64::BITS + bit))
            })
        })
    }
}
