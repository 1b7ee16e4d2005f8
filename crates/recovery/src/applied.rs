//! What a recovery has done.

use format::PageId;

use crate::misfit::Misfit;

/// A page that recovery could not bring to its state at the end of the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NotRecovered {
    /// ID of the page.
    pub page: PageId,
    /// The reason.
    pub why: Misfit,
}

/// A summary of the work of a recovery.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// Number of recovered pages that differ from the pages in the files.
    pub pages: u64,
    /// Number of records that were applied.
    pub records: u64,
    /// Number of transactions that were undone.
    pub transactions_undone: u64,
    /// Number of transactions that were not undone because another database decides whether they are committed.
    pub in_doubt: u64,
    /// Number of transactions that could not be undone completely.
    pub transactions_not_undone: u64,
    /// Pages that are not in their recovered state, because records did not match the page or because changes could not
    /// be undone.
    pub not_recovered: Vec<NotRecovered>,
}
