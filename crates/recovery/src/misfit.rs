//! Why a page cannot be recovered.

/// Why a record cannot be applied to a page, or taken back from it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Misfit {
    /// The page is not sound, and no record makes it anew.
    PageDamaged,
    /// The page cannot be read, or is beyond the end of its file.
    NotThere,
    /// The record does not have the form of its operation, or the operation is not understood.
    RecordUnknown,
    /// The page is of an earlier or later moment than the record says: the log is another one, or a write was lost.
    OtherMoment,
    /// The row that the record is about is not where it must be, or is not the row.
    RowMissing,
    /// The rows do not fit on the page any more.
    TooFull,
    /// Rows are compressed.
    Compressed,
    /// A bulk operation filled the page, and the log does not have its rows.
    BulkRows,
    /// A transaction over several databases changed the page, and another database decides whether it was committed.
    InDoubt,
    /// A transaction that had not ended changed the page, and row versions say what is left of it (accelerated database
    /// recovery).
    Versions,
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::PageDamaged => "the log changes pages that are damaged in the files",
            Self::NotThere => "the log changes pages that cannot be read",
            Self::RecordUnknown => "the log changes pages in a way that is not understood",
            Self::OtherMoment => {
                "pages are of another moment than the log says: a write was lost, or the log is another one"
            }
            Self::RowMissing => "rows that the log changes are not where they must be",
            Self::TooFull => "rows that the log brings back do not fit on their page",
            Self::Compressed => "the log changes compressed pages",
            Self::InDoubt => "transactions changed pages, and another database decides whether they were committed",
            Self::Versions => {
                "accelerated database recovery: row versions say what open transactions leave on pages that they changed"
            }
            Self::BulkRows => "a bulk operation filled pages that were not written, and the log does not have its rows",
        })
    }
}
