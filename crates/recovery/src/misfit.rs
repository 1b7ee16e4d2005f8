//! The reasons why a page cannot be recovered.

/// The reason why a record cannot be applied to a page, or cannot be undone on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Misfit {
    /// The page is damaged, and no later record formats it anew.
    PageDamaged,
    /// The page cannot be read, or is beyond the end of its file.
    NotThere,
    /// The content of the record does not fit its operation, or the operation is unknown.
    RecordUnknown,
    /// The LSN of the page is not the LSN that the record expects. The log belongs to another copy of the database, or
    /// a write was lost.
    OtherMoment,
    /// The row that the record changes is not in its slot, or the slot contains another row.
    RowMissing,
    /// After the change, the rows no longer fit on the page.
    TooFull,
    /// The rows are compressed.
    Compressed,
    /// A bulk operation filled the page, and the log does not contain its rows.
    BulkRows,
    /// A distributed transaction changed the page, and only another database knows whether the transaction is
    /// committed.
    InDoubt,
    /// An open transaction changed the page, and row versions decide which of its changes are kept (accelerated
    /// database recovery).
    Versions,
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::PageDamaged => {
                "the log changes pages that are damaged in the files: a server that recovers these files stops at such a page with \
                 message 824 and then 3414, and the database becomes SUSPECT"
            }
            Self::NotThere => {
                "the log changes pages that cannot be read: a server that recovers these files stops at such a page with message 823 \
                 and then 3414, and the database becomes SUSPECT"
            }
            Self::RecordUnknown => "the log changes pages in an unknown way",
            Self::OtherMoment => {
                "pages are from another point in time than the log: a write was lost, or the log does not belong to these files"
            }
            Self::RowMissing => "rows that the log changes are not at the place that the log names",
            Self::TooFull => "rows that the log restores do not fit on their page",
            Self::Compressed => "the log changes compressed pages",
            Self::InDoubt => "transactions changed pages, and only another database shows whether these transactions were committed",
            Self::Versions => {
                "accelerated database recovery: only row versions show which changes of open transactions remain on their pages"
            }
            Self::BulkRows => "a bulk operation filled pages that were not written to disk, and the log does not contain its rows",
        })
    }
}
