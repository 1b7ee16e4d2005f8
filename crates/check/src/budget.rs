//! What the expressions of the catalog may cost. They come from the file, so that one may be made to take hours for a few
//! rows; the steps of its evaluations are counted, and beyond the limit it is not verified.
//!
//! The limit is one for each page: what the rows of a page take depends on the page alone, and every way of a run looks at
//! them in the same order. So a run costs a multiple of the pages that it reads, and its answer depends neither on threads
//! and batches nor on what other pages hold. Expressions that rows are computed by together take no steps (`expr::Integers`,
//! `expr::Selection`): it does not matter whether they are.

use format::PageId;

/// Steps that the expressions of a table may take for the rows of one page: of its indexes, its computed columns, and its
/// constraints each. A step is one to three nanoseconds. No expression of the tests' real databases takes more than
/// 308 for a row and 11,725 for a page.
const STEPS_PER_PAGE: u64 = 1 << 21;

/// What one of them may take of it.
const MOST_STEPS_PER_PAGE: u64 = STEPS_PER_PAGE / 4;

/// Steps per page that each of `expressions` expressions may take.
pub(crate) fn share(expressions: usize) -> u64 {
    (STEPS_PER_PAGE / (expressions as u64).max(1)).min(MOST_STEPS_PER_PAGE)
}

/// What a thread has left for the page that it looks at.
#[derive(Default)]
pub(crate) struct Purse {
    page: Option<PageId>,
    /// Steps taken, by the place of the expression among those of its table.
    taken: Vec<u64>,
}

impl Purse {
    /// Steps that the expression at `place` has left of its share for a row of this page.
    pub(crate) fn left(&mut self, page: PageId, place: usize, share: u64) -> u64 {
        if self.page != Some(page) {
            self.page = Some(page);
            self.taken.clear();
        }
        share.saturating_sub(self.taken.get(place).copied().unwrap_or_default())
    }

    /// Notes what is left now.
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
