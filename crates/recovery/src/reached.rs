//! The point that a recovery has reached. A later recovery of the same backups with a longer log goes on from there.
//!
//! What redo has made of the pages is kept as it was *before* any change was undone, because the next log continues the
//! transactions that were open. The records of these transactions are read again, so nothing is kept about them but
//! where they begin.

use std::io;

use format::{Lsn, PageId};
use serde::{Deserialize, Serialize};

/// An LSN as numbers: the virtual log file, the block and the slot.
pub(crate) type Numbers = (u32, u32, u16);

/// The point in the log that a recovery has reached.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reached {
    /// The LSN from which the log was read, and the LSN from which records were redone.
    pub(crate) from: Numbers,
    pub(crate) redo_from: Numbers,
    /// The last record.
    pub(crate) end: Numbers,
    pub(crate) last_commit: Option<(i32, u32)>,
    pub(crate) log_bytes: u64,
    pub(crate) records: u64,
    pub(crate) open: Vec<OpenTransaction>,
}

/// A transaction that is open at that point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenTransaction {
    pub(crate) id: (u16, u32),
    pub(crate) first: Numbers,
    pub(crate) last: Numbers,
    pub(crate) needs: Numbers,
    pub(crate) has_begin: bool,
    pub(crate) is_structural: bool,
    pub(crate) is_prepared: bool,
    pub(crate) made_a_chain: bool,
}

/// The point from which a recovery goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resumed {
    /// The last record that an earlier recovery has redone.
    pub(crate) after: Lsn,
    /// The LSN from which the records of open transactions are read.
    pub(crate) undo_from: Lsn,
}

/// Pages that redo has made, before any change was undone. They are kept outside of this process, and are given back as
/// they were kept, or not at all.
pub trait RedonePages {
    /// The pages that an earlier recovery has kept, in ascending order.
    fn pages(&self) -> Vec<PageId>;

    /// Whether an earlier recovery has kept this page.
    fn has(&self, page: PageId) -> bool;

    /// What was kept of a page.
    ///
    /// # Errors
    /// If it was not kept, cannot be read, or is not what was kept.
    fn read(&self, page: PageId) -> io::Result<Vec<u8>>;

    /// Keeps a page, instead of what an earlier recovery has kept of it.
    fn keep(&mut self, page: PageId, bytes: &[u8]);
}
