//! A limit on the cost of evaluating the expressions of the catalog. The expressions come from the file, and evaluating
//! a crafted expression could take hours for a few rows. So evaluation steps are counted, and an expression that
//! exceeds the limit is reported as not verified.
//!
//! The limit applies to each page separately. The number of steps for a page's rows depends on that page alone, because
//! every kind of run evaluates the rows in the same order. So the cost of a run grows at most in proportion to the
//! number of pages that the run reads. The result of a run does not depend on threads, batches or other pages.
//! Expressions that are evaluated for many rows at once (`expr::Integers`, `expr::Selection`) use no steps, so the
//! result does not depend on whether they are evaluated in this way.

use format::PageId;

/// The number of evaluation steps that a group of expressions may use for the rows of one page. A table has three
/// groups: the expressions of its indexes, of its computed columns and of its constraints. A step takes one to three
/// nanoseconds. In the real databases of the tests, no expression uses more than 308 steps for a row or 11,725 steps
/// for a page.
const STEPS_PER_PAGE: u64 = 1 << 21;

/// The most steps per page for a single expression.
const MOST_STEPS_PER_PAGE: u64 = STEPS_PER_PAGE / 4;

/// The number of steps per page that each expression may use in a group of `expressions` expressions.
pub(crate) fn share(expressions: usize) -> u64 {
    (STEPS_PER_PAGE / (expressions as u64).max(1)).min(MOST_STEPS_PER_PAGE)
}

/// The steps that a thread has used for its current page.
#[derive(Default)]
pub(crate) struct Purse {
    page: Option<PageId>,
    /// Steps used, by the index of the expression in its table's list.
    taken: Vec<u64>,
}

impl Purse {
    /// The number of steps that the expression at index `place` may still use for the rows of this page.
    pub(crate) fn left(&mut self, page: PageId, place: usize, share: u64) -> u64 {
        if self.page != Some(page) {
            self.page = Some(page);
            self.taken.clear();
        }
        share.saturating_sub(self.taken.get(place).copied().unwrap_or_default())
    }

    /// Records how many steps the expression has left after an evaluation.
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
