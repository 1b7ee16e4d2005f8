//! Sets of pages, with one bit per page. The pages are those of the data files, or those of ranges of the files.

use findings::FileRange;
use format::PageId;
use sums::spill::{Paged, Shelf};

use super::FileMap;

/// A set of pages. A page outside the files or ranges for which the set was created cannot be inserted; inserting it
/// has no effect.
pub(crate) struct PageSet {
    ranges: Vec<(FileRange, Paged<u8>)>,
}

impl PageSet {
    /// An empty set over the pages of `files`. If the maps of the files are in a temporary file, so is the set.
    pub(crate) fn new(files: &[FileMap]) -> Self {
        let range = |file: &FileMap| FileRange { file_id: file.file_id, first: 0, pages: file.pages };
        Self { ranges: files.iter().map(|file| (range(file), bits(&range(file), file.shelf()))).collect() }
    }

    /// An empty set over the pages of these ranges, which do not overlap.
    pub(crate) fn of_ranges(ranges: Vec<FileRange>) -> Self {
        Self { ranges: ranges.into_iter().map(|range| (range, bits(&range, None))).collect() }
    }

    /// The position of the range of a page, the position of the byte of the page in this range, and a mask with the bit
    /// of the page.
    fn place(&self, page: PageId) -> Option<(usize, usize, u8)> {
        let is_before = |(range, _): &(FileRange, _)| (range.file_id, range.first) <= (page.file, page.page);
        let last = self.ranges.partition_point(is_before).checked_sub(1)?;
        let (range, _) = self.ranges.get(last).filter(|(range, _)| range.contains(page))?;
        let at = page.page - range.first;
        Some((last, (at / u8::BITS) as usize, 1 << (at % u8::BITS)))
    }

    fn edit(&mut self, page: PageId, mut change: impl FnMut(u8, u8) -> u8) {
        if let Some((range, at, bit)) = self.place(page)
            && let Some((_, bits)) = self.ranges.get_mut(range)
        {
            bits.edit([at], |_, byte| change(byte, bit));
        }
    }

    /// Adds a page.
    pub(crate) fn insert(&mut self, page: PageId) {
        self.edit(page, |byte, bit| byte | bit);
    }

    /// Removes a page; returns whether it was in the set.
    pub(crate) fn remove(&mut self, page: PageId) -> bool {
        let mut was_in = false;
        self.edit(page, |byte, bit| {
            was_in = byte & bit != 0;
            byte & !bit
        });
        was_in
    }

    /// Whether a page is in the set.
    pub(crate) fn contains(&self, page: PageId) -> bool {
        let byte = |(range, at, bit): (usize, usize, u8)| Some(self.ranges.get(range)?.1.get(at)? & bit != 0);
        self.place(page).and_then(byte).unwrap_or_default()
    }

    /// The pages in the set, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PageId> + '_ {
        self.ranges.iter().flat_map(|(range, bytes)| {
            let bytes = bytes.values(0..usize::MAX).enumerate().filter(|(_, byte)| *byte != 0);
            bytes.flat_map(move |(at, byte)| {
                let bits = (0..u8::BITS).filter(move |bit| byte & 1 << bit != 0);
                bits.map(move |bit| PageId::new(range.file_id, range.first + at as u32 * u8::BITS + bit))
            })
        })
    }
}

fn bits(range: &FileRange, shelf: Option<&Shelf>) -> Paged<u8> {
    Paged::new(range.pages.div_ceil(u8::BITS) as usize, shelf)
}
