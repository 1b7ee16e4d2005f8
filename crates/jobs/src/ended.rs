//! A finished run of a check.

use std::time::SystemTime;

use catalog::Database;
use findings::Report;
use source::PageSource;

/// A finished run.
#[derive(Clone, Copy)]
pub struct Ended<'a> {
    /// The report of the run.
    pub report: &'a Report,
    /// The pages that were checked.
    pub source: &'a dyn PageSource,
    /// The catalog of the checked pages.
    pub database: &'a Database,
    /// When the run began.
    pub started: SystemTime,
}
