//! What a comparison of the pages with the log found, as data: crate `audit` makes it before a run, and a run lists it.

use format::Lsn;

use crate::coverage::Coverage;
use crate::finding::Finding;
use crate::registry::limits::{self, Limit};
use crate::wire::{Input, Output, SumsError, Wire, wire};

/// What a comparison of the pages with the log found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogAudit {
    /// Proofs, in no certain order.
    pub findings: Vec<Finding>,
    /// Pages whose LSN was compared with the records that the log has of them.
    pub pages_compared: u64,
    /// Pages whose last change wrote bytes that were found on them; counted among [`Self::pages_compared`].
    pub images_compared: u64,
    /// Pages that were last changed before the oldest record of the log.
    pub pages_older: u64,
    /// Pages in the log's time without a record of their own: written without logging their rows.
    pub pages_without_records: u64,
    /// The oldest record of the log, and the last.
    pub range: Option<(Lsn, Lsn)>,
    /// From where recovery redoes.
    pub redo_from: Option<Lsn>,
    /// What could not be compared.
    pub doubts: Vec<LogAuditDoubt>,
}

/// Why something could not be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LogAuditDoubtKind {
    /// The log is damaged before its end.
    LogDamaged,
    /// Pages are newer than the end of the log: it lost its end, or was copied before them. What follows its last block never
    /// shows which.
    LogEnd,
    /// Records are encrypted.
    LogEncrypted,
    /// A contradiction rests on log blocks without a checksum.
    LogUnprotected,
    /// A contradiction rests on one record, which no other record of the page confirms.
    LogRecord,
    /// Pages could not be read, or are damaged.
    Pages,
    /// Pages are in a file that was not given.
    FileNotGiven,
    /// More than are listed.
    More,
}

impl LogAuditDoubtKind {
    const ALL: [Self; 8] = [
        Self::LogDamaged,
        Self::LogEnd,
        Self::LogEncrypted,
        Self::LogUnprotected,
        Self::LogRecord,
        Self::Pages,
        Self::FileNotGiven,
        Self::More,
    ];

    /// The limit that says so.
    pub fn limit(self) -> &'static Limit {
        match self {
            Self::LogDamaged => &limits::AUDIT_LOG_DAMAGED,
            Self::LogEnd => &limits::AUDIT_LOG_END,
            Self::LogEncrypted => &limits::AUDIT_LOG_ENCRYPTED,
            Self::LogUnprotected => &limits::AUDIT_LOG_UNPROTECTED,
            Self::LogRecord => &limits::AUDIT_LOG_RECORD,
            Self::Pages => &limits::AUDIT_PAGES,
            Self::FileNotGiven => &limits::AUDIT_FILE_NOT_GIVEN,
            Self::More => &limits::AUDIT_MORE,
        }
    }
}

/// Something that could not be compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogAuditDoubt {
    /// Why.
    pub kind: LogAuditDoubtKind,
    /// Where.
    pub scope: String,
    /// How many pages; 0 where they cannot be counted.
    pub count: u64,
}

impl LogAudit {
    /// Whether pages are newer than the end of the log: then recovery would leave them beside older ones.
    pub fn has_newer_pages(&self) -> bool {
        self.doubts.iter().any(|doubt| doubt.kind == LogAuditDoubtKind::LogEnd)
    }

    /// Notes what could not be compared.
    pub(crate) fn note(&self, coverage: &mut Coverage) {
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

/// By the id of its limit, which each has for itself.
impl Wire for LogAuditDoubtKind {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        self.limit().write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let limit = <&Limit>::read(from)?;
        Self::ALL.into_iter().find(|kind| kind.limit() == limit).ok_or_else(|| from.damaged("the kind of a doubt"))
    }
}

impl Wire for Lsn {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        (self.vlf, self.block, self.slot).write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let (vlf, block, slot) = Wire::read(from)?;
        Ok(Self { vlf, block, slot })
    }
}
