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

/// The reason why it is uncertain whether a row belongs to the current rows of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doubtful {
    /// The page of the row is damaged, but the record is complete.
    Damaged(ProtectionFault),
    /// The page of the row is sound and names the table, but no index page or IAM page points to it.
    NotReached {
        /// True if the PFS page marks the page as in use; false if the PFS page cannot be read.
        is_allocated: bool,
    },
    /// The page of the row is sound and in an extent of the table, but the page may have been freed.
    UseUnknown,
    /// The page of the row is damaged and may have been freed.
    DamagedAndUseUnknown,
    /// The page of the row is damaged, and no index page or IAM page points to the page.
    DamagedAndNotReached,
    /// The row was deleted, but is still on its page as a ghost.
    Deleted,
}

impl Doubtful {
    /// The reason as short text.
    pub fn text(self) -> &'static str {
        match self {
            Self::Damaged(ProtectionFault::Checksum { .. }) => "wrong page checksum, record whole",
            Self::Damaged(ProtectionFault::Torn { .. }) => "torn page, record whole",
            Self::NotReached { is_allocated: true } => "no tree or IAM page points to the page",
            Self::NotReached { is_allocated: false } => {
                "no tree or IAM page points to the page, and its PFS page is damaged: it may have been freed"
            }
            Self::UseUnknown => "the PFS page of the page is damaged: it may have been freed",
            Self::DamagedAndUseUnknown => {
                "damaged page, record whole; its PFS page is damaged too: it may have been freed"
            }
            Self::DamagedAndNotReached => "damaged page to which no tree or IAM page points, record whole",
            Self::Deleted => "deleted",
        }
    }
}

/// Receives salvaged rows. Each row has a value for every column of the table.
pub trait Sink {
    /// Receives a row that is not proven to be current.
    ///
    /// # Errors
    /// If the row cannot be written.
    fn doubtful(&mut self, place: RecordId, why: Doubtful, values: &[Value<'_>]) -> io::Result<()>;

    /// Receives a rebuilt row of a lost page. Its values come from the nonclustered indexes that `indexes` names.
    ///
    /// # Errors
    ///
    /// If the row cannot be written.
    fn rebuilt(&mut self, indexes: &str, values: &[Value<'_>]) -> io::Result<()>;
}

/// The input of salvage.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The source of the pages.
    pub source: &'a dyn PageSource,
    /// The catalog.
    pub database: &'a Database,
    /// The table.
    pub table: &'a Table,
    /// The pages that the normal reading of the table left out, each with the reason.
    pub damaged: &'a [(PageId, Why)],
    /// All pages that the normal reading of the table reached. The set may also contain pages of other tables. See
    /// [`reach`](super::reach).
    pub reached: &'a PageSet,
    /// The result of a search that found the unreachable pages of several tables at once. With `None`, the files are
    /// searched again for this table.
    pub unreached: Option<&'a Unreached>,
    /// The number of rows that the normal reading delivered, for each partition; or a single number for all partitions
    /// together.
    pub rows_read: &'a [u64],
    /// Whether deleted rows (ghosts) are delivered too.
    pub ghosts: bool,
    /// The memory for finding lost rows, in bytes.
    pub memory: usize,
}

/// The result of salvage.
#[derive(Clone, Default, Debug)]
pub struct Salvaged {
    /// The number of rows delivered as doubtful, not counting deleted rows.
    pub doubtful: u64,
    /// The number of deleted rows delivered.
    pub deleted: u64,
    /// Rows rebuilt from indexes.
    pub rebuilt: Rebuilt,
    /// The number of used slots on damaged pages whose records are not proven complete.
    pub unproven: u64,
    /// The number of sound pages that name the table in their header, but to which no index page or IAM page points.
    pub strays: u64,
    /// The number of freed pages that name the table. Their rows are out of date and are not delivered.
    pub freed: u64,
    /// The number of pages that contain the content of another page. Their rows are not delivered.
    pub foreign: u64,
    /// The row count in the catalog, minus the rows that were read, delivered as doubtful, or rebuilt.
    pub known_lost: u64,
    /// The losses from the damaged pages.
    pub losses: Vec<Loss>,
}
