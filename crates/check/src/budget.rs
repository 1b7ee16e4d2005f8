//! A limit on the cost of the expressions of the catalog. The file supplies them, and a crafted one could take hours
//! for a few rows. So evaluation steps are counted; an expression that exceeds the limit is not verified.
//!
//! The limit applies to each page separately: the cost of a page's rows depends on that page alone, and every kind of
//! run evaluates them in the same order. So the cost of a run is bounded by a multiple of the pages that it reads, and
//! its result does not depend on threads, batches or other pages. Expressions that are evaluated for many rows at once
//! take no steps (`expr::Integers`, `expr::Selection`), so the result is the same whether they are used or not.

use format::PageId;

/// Steps that the expressions of a table may take for the rows of one page: its indexes, its computed columns and its
/// constraints have this many each. A step is one to three nanoseconds. No expression of the tests' real databases
/// takes more than 308 for a row and 11,725 for a page.
const STEPS_PER_PAGE: u64 = 1 << 21;

/// The most steps per page for a single expression.
const MOST_STEPS_PER_PAGE: u64 = STEPS_PER_PAGE / 4;

/// Steps per page that each of `expressions` expressions may take.
pub(crate) fn share(expressions: usize) -> u64 {
    (STEPS_PER_PAGE / (expressions as u64).max(1)).min(MOST_STEPS_PER_PAGE)
}

/// The steps that a thread has used for its current page.
#[derive(Default)]
pub(crate) struct Purse {
    page: Option<PageId>,
    /// Steps taken, by the index of the expression among those of its table.
    taken: Vec<u64>,
}

impl Purse {
    /// Steps of its share that the expression at index `place` may still take for the rows of this page.
    pub(crate) fn left(&mut self, page: PageId, place: usize, share: u64) -> u64 {
        if self.page != Some(page) {
            self.page = Some(page);
            self.taken.clear();
        }
        share.saturating_sub(self.taken.get(place).copied().unwrap_or_default())
    }

    /// Records how many steps are left after an evaluation.
    pub(crate) fn put_back(&mut self, place: usize, share: u64, left: u64) {
        if self.taken.len() <= place {
            self.taken.resize(place + 1, 0);
        }
        if let Some(taken) = self.taken.get_mut(place) {
            *taken = share - left.min(share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_and_each_expression_has_a_share_of_its_own() {
        let (first, second) = (PageId::new(1, 8), PageId::new(1, 9));
        let mut purse = Purse::default();
        assert_eq!(purse.left(first, 2, 100), 100);
        purse.put_back(2, 100, 30);
        assert_eq!([purse.left(first, 2, 100), purse.left(first, 1, 100)], [30, 100]);
        purse.put_back(2, 100, 0);
        assert_eq!(purse.left(first, 2, 100), 0);
        assert_eq!(purse.left(second, 2, 100), 100);
        assert_eq!(share(1), share(4));
        assert_eq!(share(1000), STEPS_PER_PAGE / 1000);
        assert!(share(1) >= expr::STEPS_PER_ROW, "a row may take what its page has");
    }
}
