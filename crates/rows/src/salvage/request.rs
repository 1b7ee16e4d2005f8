//! What salvage is asked for, and what it gives.

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

/// Why a row is not among those of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doubtful {
    /// Its page is not as it was written, and its record is whole.
    Damaged(ProtectionFault),
    /// Its page is sound, names the table, and no tree or IAM page leads to it.
    NotReached {
        /// Its PFS page says that it is in use; if not, that cannot be read.
        is_allocated: bool,
    },
    /// Its page is sound and in an extent of the table, and nothing says whether it was freed.
    UseUnknown,
    /// Its page is not as it was written, and nothing says whether it was freed.
    DamagedAndUseUnknown,
    /// Its page is not as it was written, and nothing leads to it.
    DamagedAndNotReached,
    /// It was deleted, and is still on its page.
    Deleted,
}

impl Doubtful {
    /// The reason in a few words.
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

/// Where salvaged rows go. All have the table's columns.
pub trait Sink {
    /// A row that is not proven to be one of today.
    ///
    /// # Errors
    /// If it cannot be written.
    fn doubtful(&mut self, place: RecordId, why: Doubtful, values: &[Value<'_>]) -> io::Result<()>;

    /// A row of a lost page as far as nonclustered indexes have it; `indexes` are their names.
    ///
    /// # Errors
    /// If it cannot be written.
    fn rebuilt(&mut self, indexes: &str, values: &[Value<'_>]) -> io::Result<()>;
}

/// What to salvage.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The pages.
    pub source: &'a dyn PageSource,
    /// The catalog.
    pub database: &'a Database,
    /// The table.
    pub table: &'a Table,
    /// Pages that the ordinary reading of the table left out, and why.
    pub damaged: &'a [(PageId, Why)],
    /// All pages that it met; those of other tables may be among them. See [`reach`](super::reach).
    pub reached: &'a PageSet,
    /// What was found in one go for several tables; `None`: the files are searched for this table.
    pub unreached: Option<&'a Unreached>,
    /// Rows that it read, by partition; or one number for all.
    pub rows_read: &'a [u64],
    /// Hand out deleted rows too.
    pub ghosts: bool,
    /// Bytes of memory for what is lost.
    pub memory: usize,
}

/// What was salvaged.
#[derive(Clone, Default, Debug)]
pub struct Salvaged {
    /// Rows handed out as doubtful, deleted ones left out.
    pub doubtful: u64,
    /// Deleted rows handed out.
    pub deleted: u64,
    /// Rows put together from indexes.
    pub rebuilt: Rebuilt,
    /// Slots in use on damaged pages whose records are not proven whole.
    pub unproven: u64,
    /// Sound pages that name the table, and that nothing leads to.
    pub strays: u64,
    /// Pages that name the table and were freed: rows of the past, which are not handed out.
    pub freed: u64,
    /// Pages with the image of another page, whose rows are not rows of the table.
    pub foreign: u64,
    /// Rows that the catalog counts, and that are neither read nor handed out as doubtful or rebuilt.
    pub known_lost: u64,
    /// What the damaged pages cost.
    pub losses: Vec<Loss>,
}
