//! Comparisons of pages with each other that an earlier run has made, with the same pages as now.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use format::allocation::EXTENT_PAGES;
use format::{PageId, RecordId};

/// Ranges of pages of equal length, marked by number, in each file.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Marks {
    files: BTreeMap<u16, Bits>,
    /// The numbers that are marked in any file.
    any: Bits,
    range_pages: u32,
}

/// One bit per number, and above it, one bit for each word with bits, and so on: so a search skips empty stretches.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Bits {
    levels: Vec<Vec<u64>>,
}

/// Bits of a word.
const WORD: u64 = u64::BITS as u64;

impl Bits {
    fn set(&mut self, number: u32) {
        let mut number = u64::from(number);
        for level in 0.. {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let Some(words) = self.levels.get_mut(level) else { return };
            let at = (number / WORD) as usize;
            if words.len() <= at {
                words.resize(at + 1, 0);
            }
            let Some(word) = words.get_mut(at) else { return };
            *word |= 1 << (number % WORD);
            number /= WORD;
            if number == 0 {
                break;
            }
        }
    }

    /// Sets all numbers from `first` to `last`.
    fn fill(&mut self, first: u32, last: u32) {
        let (mut first, mut last) = (u64::from(first), u64::from(last));
        for level in 0.. {
            if first > last {
                return;
            }
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let (low, high) = ((first / WORD) as usize, (last / WORD) as usize);
            let Some(words) = self.levels.get_mut(level) else { return };
            if words.len() <= high {
                words.resize(high + 1, 0);
            }
            for (at, word) in words.iter_mut().enumerate().take(high + 1).skip(low) {
                let from = if at == low { u64::MAX << (first % WORD) } else { u64::MAX };
                let to = if at == high { u64::MAX >> (WORD - 1 - last % WORD) } else { u64::MAX };
                *word |= from & to;
            }
            if high == 0 {
                return;
            }
            (first, last) = (low as u64, high as u64);
        }
    }

    fn word(&self, level: usize, at: u64) -> u64 {
        self.levels.get(level).and_then(|words| words.get(at as usize)).copied().unwrap_or_default()
    }

    fn contains(&self, number: u32) -> bool {
        self.word(0, u64::from(number) / WORD) >> (u64::from(number) % WORD) & 1 != 0
    }

    /// Whether a number from `first` to `last` is set.
    fn meets(&self, mut first: u64, mut last: u64) -> bool {
        for (level, words) in self.levels.iter().enumerate() {
            last = last.min((words.len() as u64 * WORD).saturating_sub(1));
            if first > last {
                return false;
            }
            let (from, to) = (u64::MAX << (first % WORD), u64::MAX >> (WORD - 1 - last % WORD));
            let (low, high) = (first / WORD, last / WORD);
            if low == high {
                return self.word(level, low) & from & to != 0;
            }
            if self.word(level, low) & from != 0 || self.word(level, high) & to != 0 {
                return true;
            }
            // The words between both ends are bits of the next level.
            (first, last) = (low + 1, high - 1);
        }
        false
    }
}

impl Marks {
    /// No marks, for ranges of this number of pages.
    pub(crate) fn new(range_pages: u32) -> Self {
        Self { range_pages: range_pages.max(1), ..Self::default() }
    }

    /// Marks the range of a page.
    pub(crate) fn mark(&mut self, page: PageId) {
        let number = page.page / self.range_pages;
        self.files.entry(page.file).or_default().set(number);
        self.any.set(number);
    }

    /// Marks the ranges that have pages of these extents, in all files up to `pages` pages.
    pub(crate) fn mark_extents(&mut self, extents: Range<u64>, files: impl Iterator<Item = (u16, u32)>) {
        let numbers = self.numbers(&extents);
        for (file, pages) in files {
            let end = numbers.end.min(u64::from(pages.div_ceil(self.range_pages)));
            if numbers.start < end {
                let (first, last) = (numbers.start as u32, (end - 1) as u32);
                self.files.entry(file).or_default().fill(first, last);
                self.any.fill(first, last);
            }
        }
    }

    /// Whether nothing is marked.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether the range of a page is marked.
    pub(crate) fn contains(&self, page: PageId) -> bool {
        self.files.get(&page.file).is_some_and(|bits| bits.contains(page.page / self.range_pages))
    }

    /// Whether a range with pages of these extents is marked in any file.
    pub(crate) fn meets(&self, extents: &Range<u64>) -> bool {
        let numbers = self.numbers(extents);
        numbers.start < numbers.end && self.any.meets(numbers.start, numbers.end - 1)
    }

    /// The numbers of the ranges that have pages of these extents.
    fn numbers(&self, extents: &Range<u64>) -> Range<u64> {
        let (extent, range) = (u64::from(EXTENT_PAGES), u64::from(self.range_pages));
        extents.start * extent / range..(extents.end * extent).div_ceil(range)
    }
}

/// Values off the row that were read and found sound: the row and the column of each, and the pages of the value and the
/// number of bytes that were read of it.
pub(crate) type Verified = BTreeMap<(RecordId, u16), (Vec<PageId>, u64)>;

/// The most pages of a value that is noted. Longer values are read in each run.
const MOST_PAGES_PER_VALUE: usize = 64;
/// The most values that are noted: as many as a run reads at all.
const MOST_VALUES: usize = 1 << 14;

/// What need not be compared or read again.
pub(crate) struct Settled {
    /// The ranges whose pages are not those of the earlier run, or that were swept.
    pub(crate) changed: Marks,
    /// The pages whose comparisons the earlier run did not all decide, or which had findings.
    pub(crate) open: BTreeSet<PageId>,
    /// The values that the earlier run has found sound.
    pub(crate) values: Verified,
    /// The values that are sound in this run.
    pub(crate) values_now: Arc<Mutex<Verified>>,
    /// Whether there is no earlier run.
    pub(crate) is_first: bool,
}

/// Which children of a non-leaf page must be compared with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Children {
    /// All.
    All,
    /// Those in changed ranges.
    Changed,
    /// None.
    None,
}

impl Settled {
    /// The number of bytes of a value that was found sound, if it is at most `most_bytes`, and if neither its row nor its
    /// pages have changed since. `is_in_scope` says whether a page is in a range of which changes are noted.
    pub(crate) fn is_verified(
        &self,
        place: (RecordId, u16),
        most_bytes: u64,
        is_in_scope: impl Fn(&PageId) -> bool,
    ) -> Option<u64> {
        let known = self.values.get(&place).filter(|_| !self.is_first && !self.changed.contains(place.0.page));
        let (pages, bytes) = known.filter(|(_, bytes)| *bytes <= most_bytes)?;
        let is_same = pages.iter().all(|page| !self.changed.contains(*page) && is_in_scope(page));
        is_same.then(|| {
            self.verified(place, pages.clone(), *bytes);
            *bytes
        })
    }

    /// Notes a value that is sound.
    pub(crate) fn verified(&self, place: (RecordId, u16), mut pages: Vec<PageId>, bytes: u64) {
        pages.sort_unstable();
        pages.dedup();
        let mut now = self.values_now.lock().unwrap_or_else(PoisonError::into_inner);
        if pages.len() <= MOST_PAGES_PER_VALUE && now.len() < MOST_VALUES {
            now.insert(place, (pages, bytes));
        }
    }

    /// Which children of a page must be compared, given the extents in which its children may be.
    pub(crate) fn children(&self, page: PageId, extents: impl Iterator<Item = Range<u64>>) -> Children {
        if self.is_first || self.changed.contains(page) || self.open.contains(&page) {
            return Children::All;
        }
        let mut extents = extents;
        if extents.any(|extents| self.changed.meets(&extents)) { Children::Changed } else { Children::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_by_page_and_by_extent() {
        let mut marks = Marks::new(32);
        for page in [PageId::new(1, 0), PageId::new(3, 5000), PageId::new(3, 64 * 32)] {
            marks.mark(page);
        }
        assert!(marks.contains(PageId::new(1, 31)) && !marks.contains(PageId::new(1, 32)));
        assert!(!marks.contains(PageId::new(3, 31)) && !marks.contains(PageId::new(2, 0)));
        let numbers = [0_u64, 64, 5000 / 32];
        for first in 0..200_u64 {
            for end in first + 1..200 {
                let meets = numbers.iter().any(|number| (first * 8 / 32..(end * 8).div_ceil(32)).contains(number));
                assert_eq!(marks.meets(&(first..end)), meets, "{first}..{end}");
            }
        }
        assert!(marks.meets(&(0..u64::MAX / 8)) && !marks.meets(&(1000..u64::MAX / 8)));
        let mut more = Marks::new(32);
        more.mark_extents(3..6, [(1, 1000), (2, 32), (4, 0)].into_iter());
        let marked = |file| (0..100).filter(|number| more.contains(PageId::new(file, number * 32))).collect::<Vec<_>>();
        assert_eq!((marked(1), marked(2), marked(4)), (vec![0, 1], vec![0], vec![]));
    }

    #[test]
    fn numbers_that_are_set_together_are_those_that_are_set_one_by_one() {
        for (first, last) in [(0, 0), (0, 63), (5, 64), (60, 70), (63, 4096), (64, 127), (100, 300_000), (4096, 4097)] {
            let (mut filled, mut single) = (Bits::default(), Bits::default());
            filled.fill(first, last);
            (first..=last).for_each(|number| single.set(number));
            assert_eq!(filled.levels.first(), single.levels.first(), "{first} to {last}");
            let ends =
                [0, 1, 5, 62, 63, 64, 65, 99, 100, 127, 128, 4095, 4096, 4097, 299_999, 300_000, 300_001, 900_000];
            for (from, to) in ends.iter().flat_map(|from| ends.iter().map(move |to| (*from, *to))) {
                assert_eq!(filled.meets(from, to), single.meets(from, to), "{first} to {last}: {from} to {to}");
            }
        }
    }

    fn settled(open: BTreeSet<PageId>) -> Settled {
        let (values, values_now) = (Verified::new(), Arc::default());
        Settled { changed: Marks::new(32), open, values, values_now, is_first: false }
    }

    #[test]
    fn a_value_is_read_again_if_its_row_or_one_of_its_pages_has_changed() {
        let mut earlier = settled(BTreeSet::new());
        let row = |page| RecordId { page: PageId::new(1, page), slot: 3 };
        let [near, far] = [40, 400].map(|page| PageId::new(1, page));
        earlier.verified((row(10), 1), vec![far, near, far], 100);
        earlier.verified((row(10), 2), vec![near], 200);
        earlier.verified((row(10), 3), (0..65).map(|page| PageId::new(1, page)).collect(), 300);
        let mut now = settled(BTreeSet::new());
        now.values = std::mem::take(&mut *earlier.values_now.lock().unwrap());
        assert_eq!(now.values.len(), 2, "a long value is not noted");
        let is_verified =
            |now: &Settled, column| now.is_verified((row(10), column), 200, |page| page.page != 41).is_some();
        assert_eq!([1, 2, 3, 4].map(|column| is_verified(&now, column)), [true, true, false, false]);
        assert_eq!(*now.values_now.lock().unwrap(), now.values);
        assert_eq!(now.is_verified((row(10), 2), 200, |_| true), Some(200));
        assert_eq!(now.is_verified((row(10), 2), 199, |_| true), None, "a whole run would reach its limit");
        now.changed.mark(far);
        assert_eq!([1, 2].map(|column| is_verified(&now, column)), [false, true]);
        now.changed.mark(row(10).page);
        assert!(!is_verified(&now, 2));
        earlier.values = Verified::from([((row(10), 2), (vec![PageId::new(1, 41)], 0))]);
        assert!(!is_verified(&earlier, 2), "changes of this page are not noted");
        earlier.values = Verified::from([((row(10), 2), (vec![near], 0))]);
        assert!(is_verified(&earlier, 2));
        earlier.is_first = true;
        assert!(!is_verified(&earlier, 2));
    }

    #[test]
    fn a_page_is_compared_if_it_or_a_child_has_changed_or_if_it_was_undecided() {
        let (page, open) = (PageId::new(1, 10), PageId::new(1, 11));
        let mut settled = settled(BTreeSet::from([open]));
        settled.changed.mark(PageId::new(1, 320));
        let children = |settled: &Settled, page, extent| settled.children(page, std::iter::once(extent..extent + 1));
        assert_eq!(children(&settled, page, 39), Children::None);
        assert_eq!(children(&settled, page, 43), Children::Changed);
        assert_eq!(children(&settled, open, 39), Children::All);
        assert_eq!(children(&settled, PageId::new(1, 330), 39), Children::All);
        settled.is_first = true;
        assert_eq!(children(&settled, page, 39), Children::All);
    }
}
