//! The input and the result of salvage.

use std::io;

use catalog::Database;
use format::protection::ProtectionFault;
use format::{PageId, RecordId};
use source::PageSource;

use super::rebuild::Rebuilt;
use super::strays::Unreached;
use crate::counts::Why;
use crate::loss::Loss;
use crate::page_set::PageSet;
use crate::table::Table;
use crate::value::Value;

/// Why a row is not among the certain rows of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doubtful {
    /// Its page is damaged, but its record is complete.
    Damaged(ProtectionFault),
    /// Its page is sound and names the table, but no tree or IAM page leads to it.
    NotReached {
        /// True if its PFS page marks the page as in use; false if the PFS page cannot be read.
        is_allocated: bool,
    },
    /// Its page is sound and in an extent of the table, but may have been freed.
    UseUnknown,
    /// Its page is damaged, and may have been freed.
    DamagedAndUseUnknown,
    /// Its page is damaged, and no tree or IAM page leads to it.
    DamagedAndNotReached,
    /// It was deleted, but is still on its page.
    Deleted,
}

impl Doubtful {
    /// The reason as short text.
    pub fn text(self) -> &'static str {
        match self {
            Self::Damaged(ProtectionFault::Checksum { .. }) => "wrong page checksum, record whole",
            Self::Damaged(ProtectionFault::Torn { .. }) => "torn page, record whole",
            Self::NotReached { is_allocated: true } => "no tree or IAM page leads to the page",
            Self::NotReached { is_allocated: false } => {
                "no tree or IAM page leads to the page, and its PFS page is damaged: it may have been freed"
            }
            Self::UseUnknown => "the PFS page of the page is damaged: it may have been freed",
            Self::DamagedAndUseUnknown => {
                "damaged page, record whole; its PFS page is damaged too: it may have been freed"
            }
            Self::DamagedAndNotReached => "damaged page that no tree or IAM page leads to, record whole",
            Self::Deleted => "deleted",
        }
    }
}

/// Receives salvaged rows. All rows have the table's columns.
pub trait Sink {
    /// Receives a row that is not proven to be current.
    ///
    /// # Errors
    /// If the row cannot be written.
    fn doubtful(&mut self, place: RecordId, why: Doubtful, values: &[Value<'_>]) -> io::Result<()>;

    /// Receives a row of a lost page, with the values that the nonclustered indexes named in `indexes` have.
    ///
    /// # Errors
    /// If the row cannot be written.
    fn rebuilt(&mut self, indexes: &str, values: &[Value<'_>]) -> io::Result<()>;
}

/// The input of salvage.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The pages.
    pub source: &'a dyn PageSource,
    /// The catalog.
    pub database: &'a Database,
    /// The table.
    pub table: &'a Table,
    /// Pages that the normal reading of the table left out, and why.
    pub damaged: &'a [(PageId, Why)],
    /// All pages that the normal reading reached, possibly with pages of other tables. See [`reach`](super::reach).
    pub reached: &'a PageSet,
    /// The result of one search for several tables; `None`: the files are searched for this table alone.
    pub unreached: Option<&'a Unreached>,
    /// Rows that the normal reading delivered, by partition; or one number for all partitions.
    pub rows_read: &'a [u64],
    /// Whether deleted rows are delivered too.
    pub ghosts: bool,
    /// Bytes of memory for finding lost rows.
    pub memory: usize,
}

/// The result of salvage.
#[derive(Clone, Default, Debug)]
pub struct Salvaged {
    /// Rows delivered as doubtful, without deleted rows.
    pub doubtful: u64,
    /// Deleted rows delivered.
    pub deleted: u64,
    /// Rows rebuilt from indexes.
    pub rebuilt: Rebuilt,
    /// Slots in use on damaged pages whose records are not proven complete.
    pub unproven: u64,
    /// Sound pages that name the table, but that no tree or IAM page leads to.
    pub strays: u64,
    /// Freed pages that name the table: their rows are out of date and not delivered.
    pub freed: u64,
    /// Pages with the image of another page, whose rows are not rows of the table.
    pub foreign: u64,
    /// Rows that the catalog counts, less those read, delivered as doubtful, or rebuilt.
    pub known_lost: u64,
    /// The loss from the damaged pages.
    pub losses: Vec<Loss>,
}
