//! Sets of extents of data files.

use std::ops::Range;

use format::allocation::{EXTENT_PAGES, FixedPage, bitmap, diff_maps, set_bits};
use format::protection::undo_torn_bits;
use format::{Page, PageId, PageType};

use crate::{DataFile, PageSource, read_settled};

/// Extents in a word.
const WORD: u32 = u64::BITS;
/// Bytes of a word in [`ExtentSet::to_bytes`]: its file, its number and its bits.
const ENTRY_BYTES: usize = 2 + 4 + 8;

/// A set of extents of certain files, with one bit for each extent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtentSet {
    files: Vec<OfFile>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct OfFile {
    file_id: u16,
    pages: u32,
    words: Vec<u64>,
}

impl ExtentSet {
    /// An empty set for extents of these files. Memory is used only up to the last extent that is added.
    pub fn of(files: &[DataFile]) -> Self {
        let of_file = |file: &DataFile| OfFile { file_id: file.file_id, pages: file.pages, words: Vec::new() };
        Self { files: files.iter().map(of_file).collect() }
    }

    /// The extents that the differential maps mark as changed since the last full backup.
    ///
    /// # Errors
    /// The first differential map page that is damaged or cannot be read.
    pub fn marked(source: &dyn PageSource) -> Result<Self, PageId> {
        let mut set = Self::of(source.files());
        for file in source.files() {
            for (map, first_extent) in diff_maps(file.pages) {
                let id = PageId::new(file.file_id, map);
                let (mut bytes, verified) = read_settled(source, id).ok_or(id)?;
                undo_torn_bits(&mut bytes);
                let page = Page::new(&bytes);
                let header = page.header();
                let is_map = FixedPage::at(id) == Some(FixedPage::DiffMap)
                    && header.kind() == Some(PageType::DiffMap)
                    && header.page_id() == id;
                let bits = bitmap(page).filter(|_| verified.is_ok() && is_map).ok_or(id)?;
                for bit in set_bits(bits) {
                    set.insert(PageId::new(
                        file.file_id,
                        first_extent.saturating_add(bit).saturating_mul(EXTENT_PAGES),
                    ));
                }
            }
        }
        Ok(set)
    }

    /// Adds the extent of a page, if the page is in one of the files.
    pub fn insert(&mut self, page: PageId) {
        let Some(file) = self.files.iter_mut().find(|file| file.file_id == page.file) else { return };
        if page.page >= file.pages {
            return;
        }
        let extent = page.page / EXTENT_PAGES;
        let word = (extent / WORD) as usize;
        if file.words.len() <= word {
            file.words.resize(word + 1, 0);
        }
        if let Some(word) = file.words.get_mut(word) {
            *word |= 1 << (extent % WORD);
        }
    }

    /// Adds the extents of another set, also those of other files.
    pub fn add(&mut self, other: &Self) {
        for from in &other.files {
            let Some(to) = self.files.iter_mut().find(|file| file.file_id == from.file_id) else {
                self.files.push(from.clone());
                continue;
            };
            if to.words.len() < from.words.len() {
                to.words.resize(from.words.len(), 0);
            }
            to.words.iter_mut().zip(&from.words).for_each(|(to, from)| *to |= from);
        }
    }

    fn word(&self, file_id: u16, word: u32) -> u64 {
        let file = self.files.iter().find(|file| file.file_id == file_id);
        file.and_then(|file| file.words.get(word as usize)).copied().unwrap_or_default()
    }

    /// Whether the set has the extent of a page.
    pub fn contains(&self, page: PageId) -> bool {
        let extent = page.page / EXTENT_PAGES;
        self.word(page.file, extent / WORD) & (1 << (extent % WORD)) != 0
    }

    /// For each of `pages` pages from `first`, at most 128: whether the set has its extent. Bit 0 is the first page.
    pub fn pages(&self, first: PageId, pages: u32) -> u128 {
        let of =
            |bit: u32| first.page.checked_add(bit).is_some_and(|page| self.contains(PageId::new(first.file, page)));
        (0..pages.min(u128::BITS)).filter(|bit| of(*bit)).fold(0, |mask, bit| mask | 1 << bit)
    }

    /// The next pages of the set, from `from` on and before `end`. More may follow immediately.
    pub fn next_pages(&self, from: PageId, end: u32) -> Option<Range<u32>> {
        let file = self.files.iter().find(|file| file.file_id == from.file)?;
        let mut extent = from.page / EXTENT_PAGES;
        loop {
            let word = file.words.get((extent / WORD) as usize)? >> (extent % WORD);
            if word == 0 {
                extent = (extent / WORD + 1).checked_mul(WORD)?;
                continue;
            }
            extent += word.trailing_zeros();
            let count = (word >> word.trailing_zeros()).trailing_ones();
            let first = extent.checked_mul(EXTENT_PAGES)?.max(from.page);
            let last = (extent + count).saturating_mul(EXTENT_PAGES).min(end);
            return (first < last).then_some(first..last);
        }
    }

    /// The number of extents.
    pub fn len(&self) -> u64 {
        self.files.iter().flat_map(|file| &file.words).map(|word| u64::from(word.count_ones())).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The words that are not zero.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for file in &self.files {
            for (number, word) in (0_u32..).zip(&file.words).filter(|(_, word)| **word != 0) {
                bytes.extend(file.file_id.to_le_bytes());
                bytes.extend(number.to_le_bytes());
                bytes.extend(word.to_le_bytes());
            }
        }
        bytes
    }

    /// The first page of an extent of a set, given as the output of [`Self::to_bytes`], that this set does not have;
    /// `None` if it has all of them.
    pub fn first_missing(&self, of: &[u8]) -> Option<PageId> {
        of.chunks(ENTRY_BYTES).find_map(|entry| {
            let number = |at: usize| entry.get(at..);
            let file_id = u16::from_le_bytes(*number(0)?.first_chunk()?);
            let at = u32::from_le_bytes(*number(2)?.first_chunk()?);
            let word = u64::from_le_bytes(*number(6)?.first_chunk()?);
            let missing = word & !self.word(file_id, at);
            let extent = at.saturating_mul(WORD).saturating_add(missing.trailing_zeros());
            (missing != 0).then(|| PageId::new(file_id, extent.saturating_mul(EXTENT_PAGES)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(pages: &[u32]) -> Vec<DataFile> {
        let file = |(file_id, pages): (u16, &u32)| DataFile {
            path: std::path::PathBuf::new(),
            file_id,
            filegroup: 1,
            logical_name: String::new(),
            pages: *pages,
            header_pages: None,
            tail_bytes: 0,
            binding_guid: None,
            header_is_sound: true,
        };
        (1..).zip(pages).map(file).collect()
    }

    #[test]
    fn a_set_has_the_extents_that_were_added_and_no_others() {
        let files = files(&[1000, 64]);
        let mut set = ExtentSet::of(&files);
        assert!(set.is_empty() && set.next_pages(PageId::new(1, 0), 1000).is_none());
        for page in [9, 16, 600, 1000, u32::MAX] {
            set.insert(PageId::new(1, page));
        }
        set.insert(PageId::new(9, 1));
        assert_eq!(set.len(), 3);
        assert!(
            set.contains(PageId::new(1, 8)) && set.contains(PageId::new(1, 23)) && set.contains(PageId::new(1, 607))
        );
        assert!(!set.contains(PageId::new(1, 24)) && !set.contains(PageId::new(1, 1000)));
        assert_eq!(set.pages(PageId::new(1, 4), 8), 0b1111_0000);
        let mut found = Vec::new();
        let mut next = 0;
        while let Some(pages) = set.next_pages(PageId::new(1, next), 604) {
            next = pages.end;
            found.push(pages);
        }
        assert_eq!(found, [8..24, 600..604]);
    }

    #[test]
    fn an_extent_that_is_not_marked_any_more_shows() {
        let files = files(&[1000, 64]);
        let (mut then, mut now) = (ExtentSet::of(&files), ExtentSet::of(&files));
        then.insert(PageId::new(1, 700));
        now.insert(PageId::new(1, 5));
        assert_eq!(now.first_missing(&then.to_bytes()), Some(PageId::new(1, 696)));
        now.add(&then);
        assert_eq!(now.first_missing(&then.to_bytes()), None);
        assert_eq!(now.first_missing(&[1, 0, 255]), None, "what is cut off names nothing");
        let far = [&1_u16.to_le_bytes()[..], &u32::MAX.to_le_bytes(), &u64::MAX.to_le_bytes()].concat();
        assert!(now.first_missing(&far).is_some());
    }
}
