//! The results of comparing the pages with the log, as data. Crate `audit` makes the comparison before a run, and the
//! run reports the results.

use format::Lsn;
use sums::wire::{Input, Output, SumsError, Wire, wire};

use crate::coverage::Coverage;
use crate::finding::Finding;
use crate::registry::limits::{self, Limit};

/// The results of comparing the pages with the log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogAudit {
    /// Proven contradictions, in no particular order.
    pub findings: Vec<Finding>,
    /// Pages whose LSN was compared with the log records about the page.
    pub pages_compared: u64,
    /// Pages that were found to contain the bytes written by their last change; they also count in
    /// [`Self::pages_compared`].
    pub images_compared: u64,
    /// Pages that were last changed before the oldest record of the log.
    pub pages_older: u64,
    /// Pages whose LSN is in the range of the log although the log has no record about the page itself, because the
    /// changes to the rows of the page were not logged.
    pub pages_without_records: u64,
    /// LSNs of the oldest and the last record of the log.
    pub range: Option<(Lsn, Lsn)>,
    /// LSN at which the redo phase of recovery starts.
    pub redo_from: Option<Lsn>,
    /// Pages and records that could not be compared, with the reason.
    pub doubts: Vec<LogAuditDoubt>,
}

/// The reason why pages or records could not be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LogAuditDoubtKind {
    /// The log is damaged at a place before its end.
    LogDamaged,
    /// Pages are newer than the end of the log: the end of the log was lost, or the log was copied before the pages.
    /// The bytes after the last log block do not show which of the two happened.
    LogEnd,
    /// Log records are encrypted.
    LogEncrypted,
    /// A contradiction depends on log blocks without a checksum.
    LogUnprotected,
    /// A contradiction depends on a single log record, which no other record about the page confirms.
    LogRecord,
    /// Pages could not be read, or are damaged.
    Pages,
    /// Pages are in a data file that was not given.
    FileNotGiven,
    /// Pages have not changed since the last full backup, and the log does not name them.
    Unchanged,
    /// There are more contradictions than the list contains.
    More,
}

impl LogAuditDoubtKind {
    const ALL: [Self; 9] = [
        Self::LogDamaged,
        Self::LogEnd,
        Self::LogEncrypted,
        Self::LogUnprotected,
        Self::LogRecord,
        Self::Pages,
        Self::FileNotGiven,
        Self::Unchanged,
        Self::More,
    ];

    /// The limit that describes this kind.
    pub fn limit(self) -> &'static Limit {
        match self {
            Self::LogDamaged => &limits::AUDIT_LOG_DAMAGED,
            Self::LogEnd => &limits::AUDIT_LOG_END,
            Self::LogEncrypted => &limits::AUDIT_LOG_ENCRYPTED,
            Self::LogUnprotected => &limits::AUDIT_LOG_UNPROTECTED,
            Self::LogRecord => &limits::AUDIT_LOG_RECORD,
            Self::Pages => &limits::AUDIT_PAGES,
            Self::FileNotGiven => &limits::AUDIT_FILE_NOT_GIVEN,
            Self::Unchanged => &limits::AUDIT_UNCHANGED,
            Self::More => &limits::AUDIT_MORE,
        }
    }
}

/// Pages or records that could not be compared, with the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogAuditDoubt {
    /// The reason.
    pub kind: LogAuditDoubtKind,
    /// The affected pages, records or file.
    pub scope: String,
    /// Number of pages; 0 if they cannot be counted.
    pub count: u64,
}

impl LogAudit {
    /// Returns whether some pages are newer than the end of the log. Recovery would bring only the other pages to the
    /// state at the end of the log, so the database would be inconsistent.
    pub fn has_newer_pages(&self) -> bool {
        self.doubts.iter().any(|doubt| doubt.kind == LogAuditDoubtKind::LogEnd)
    }

    /// Adds everything that could not be compared to `coverage`.
    pub fn note(&self, coverage: &mut Coverage) {
        for doubt in &self.doubts {
            coverage.note(doubt.kind.limit(), doubt.scope.clone(), doubt.count);
        }
    }
}

wire!(LogAudit {
    findings,
    pages_compared,
    images_compared,
    pages_older,
    pages_without_records,
    range,
    redo_from,
    doubts,
});
wire!(LogAuditDoubt { kind, scope, count });

/// Each kind has its own limit, so a kind is encoded as the ID of its limit.
impl Wire for LogAuditDoubtKind {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        self.limit().write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let limit = <&Limit>::read(from)?;
        Self::ALL.into_iter().find(|kind| kind.limit() == limit).ok_or_else(|| from.damaged("the kind of a doubt"))
    }
}
