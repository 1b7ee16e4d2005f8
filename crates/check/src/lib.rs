//! The checks: survey, sweep, reckon, pinpoint (see ARCHITECTURE.md), and the registry of what they prove.

pub mod finding;
mod options;
mod progress;
pub mod registry;
mod report;

pub use finding::{Finding, Names, Owner, Value};
pub use options::{Options, Scope};
pub use progress::{Progress, Silent};
pub use report::{
    DatabaseSummary, ErrorCounts, FileSummary, FileTotals, NotVerified, PhaseStatistics, Report, RowsetCounts,
    Statistics, UnitTotals,
};

/// Checks a database.
pub fn run(
    _source: &dyn source::PageSource,
    _database: &catalog::Database,
    _options: &Options,
    _progress: &dyn Progress,
) -> Report {
    Report {
        database: DatabaseSummary::default(),
        options: Options::default(),
        rowsets: Vec::new(),
        findings: Vec::new(),
        not_verified: Vec::new(),
        read_errors: Vec::new(),
        file_totals: Vec::new(),
        statistics: Statistics::default(),
    }
}
