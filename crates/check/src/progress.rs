//! The progress of a run.

use catalog::Database;
use format::PageId;
use source::PageSource;

use crate::report::Sample;

/// Receives the progress of a run. Called from several threads.
pub trait Progress: Sync {
    /// Reports the start of a phase ([`phase_words`] describes it). `pages` is the number of pages that the phase will
    /// process, or 0 if this number is unknown.
    fn phase(&self, name: &'static str, pages: u64);

    /// Reports that the phase has processed this many more pages.
    fn advance(&self, pages: u64);

    /// Reports the start of a run that checks this database and may use this many bytes of memory.
    fn begin(&self, _source: &dyn PageSource, _database: &Database, _granted_bytes: u64) {}

    /// Reports that the sweep has passed these pages: it has checked them, or they are not in scope.
    fn swept(&self, _first: PageId, _pages: u32) {}

    /// Reports that a sample was taken for the series in the statistics of the run.
    fn sample(&self, _sample: &Sample) {}
}

/// Descriptions of phases.
const PHASES: [(&str, &str); 14] = [
    ("spool", "copying standard input"),
    ("carve", "looking for pages"),
    ("load", "reading the catalog"),
    ("search", "looking for the catalog in all pages"),
    ("recover", "looking for changes in the log"),
    ("survey", "reading allocation maps"),
    ("sweep", "reading pages"),
    ("merge", "merging what was read"),
    ("compare", "comparing indexes with tables"),
    ("catalog", "checking the catalog"),
    ("constraints", "checking constraints"),
    ("export", "exporting rows"),
    ("salvage", "looking for rows of damaged pages"),
    ("container", "checking the rest of the backup"),
];

/// The description of a phase, or its name if it has none.
pub fn phase_words(name: &'static str) -> &'static str {
    PHASES.iter().find(|(known, _)| *known == name).map_or(name, |(_, words)| words)
}

/// The static name of a phase, for [`phase_words`]; `None` if there is no phase with this name.
pub fn phase_named(name: &str) -> Option<&'static str> {
    PHASES.iter().find(|(known, _)| *known == name).map(|(known, _)| *known)
}

/// Reports nothing.
pub struct Silent;

impl Progress for Silent {
    fn phase(&self, _name: &'static str, _pages: u64) {}
    fn advance(&self, _pages: u64) {}
}
