//! Ranges of pages. A database may be swept one range at a time.

use format::PageId;

/// Consecutive pages of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FileRange {
    /// The file.
    pub file_id: u16,
    /// The first page.
    pub first: u32,
    /// The number of pages.
    pub pages: u32,
}

impl FileRange {
    /// The number of the page after the last page of the range.
    pub fn end(&self) -> u32 {
        self.first.saturating_add(self.pages)
    }

    /// Whether the range contains a page.
    pub fn contains(&self, page: PageId) -> bool {
        page.file == self.file_id && (self.first..self.end()).contains(&page.page)
    }
}

/// The page ranges into which a run is divided, one per part, in ascending order. Empty if the database is swept as a
/// whole.
#[derive(Default, Debug)]
pub struct Ranges(Vec<FileRange>);

impl Ranges {
    /// Creates the list from `ranges`, which must not overlap, and sorts it.
    pub fn new(mut ranges: Vec<FileRange>) -> Self {
        ranges.sort_unstable();
        Self(ranges)
    }

    /// All ranges.
    pub fn list(&self) -> &[FileRange] {
        &self.0
    }

    /// Whether the database is swept as a whole.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The range that contains `page`; `None` if no range contains it.
    pub fn of(&self, page: PageId) -> Option<&FileRange> {
        let next = self.0.partition_point(|range| (range.file_id, range.first) <= (page.file, page.page));
        self.0.get(next.checked_sub(1)?).filter(|range| range.contains(page))
    }

    /// Whether no single range contains both pages. Always false if the database is swept as a whole. Pages of
    /// different ranges can be compared only after the results of all parts are merged.
    pub fn are_apart(&self, page: PageId, other: PageId) -> bool {
        !self.0.is_empty() && self.of(page).is_none_or(|range| !range.contains(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_apart_unless_one_range_has_both() {
        let range = |file_id, first, pages| FileRange { file_id, first, pages };
        let page = PageId::new;
        assert!(!Ranges::default().are_apart(page(1, 1), page(2, 9)), "a database in one piece");
        let ranges = Ranges::new(vec![range(3, 0, 128), range(1, 128, 128), range(1, 0, 128)]);
        for (one, other, apart) in [
            ((1, 0), (1, 127), false),
            ((1, 127), (1, 128), true),
            ((1, 128), (1, 255), false),
            ((1, 255), (1, 256), true),
            ((3, 5), (3, 6), false),
            ((3, 5), (1, 5), true),
            ((2, 5), (2, 5), true),
        ] {
            let are_apart = |a: (u16, u32), b: (u16, u32)| ranges.are_apart(page(a.0, a.1), page(b.0, b.1));
            assert_eq!(are_apart(one, other), apart, "{one:?} {other:?}");
        }
    }
}
