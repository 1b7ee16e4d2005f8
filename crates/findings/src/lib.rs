//! The words of a check: the registry of checks and limits, findings, coverage, reports and options. They say what was
//! asked for and what came out; they read no page of a database. Crate `check` makes the checks.

// Indexing is allowed only after a bounds check. A comment on each line that indexes names this check.
#![warn(clippy::indexing_slicing)]

mod beyond;
mod by_change;
mod content;
mod coverage;
mod describe;
pub mod finding;
mod list;
mod log_audit;
mod options;
pub mod page_map;
mod pattern;
mod phases;
mod ranges;
pub mod registry;
mod report;

pub use beyond::{Beyond, ConstraintResult, IdentityResult};
pub use by_change::{ByChange, Change};
pub use content::Content;
pub use coverage::{Coverage, NotVerified, Place};
pub use describe::{database_name, listed, summary};
pub use finding::{Finding, Names, Owner, Value};
pub use list::{ErrorCounts, Findings, Group, List};
pub use log_audit::{LogAudit, LogAuditDoubt, LogAuditDoubtKind};
pub use options::{
    DEFAULT_MEMORY_BYTES, Options, Readers, RecoveryDoubt, RecoveryDoubtKind, RecoveryState, RecoverySummary, Scope,
};
pub use page_map::{MAX_OWNERS, MAX_RUNS, MapOfFile, MapOwner, MapRun, MapState, PageMap};
pub use pattern::{Pattern, PatternKind};
pub use phases::{phase_named, phase_words};
pub use ranges::{FileRange, Ranges};
pub use report::{
    BackupSummary, BrokerCount, DatabaseSummary, Estimate, FileSummary, FileTotals, PhaseStatistics, RangeRead, Report,
    RowsetCounts, Sample, Statistics, TAIL_BYTES, UnitFileTotals, UnitTotals, Warning,
};
