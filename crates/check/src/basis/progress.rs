//! The progress of a run.

use catalog::Database;
use findings::Sample;
use format::PageId;
use source::PageSource;

/// Receives the progress of a run. Called from several threads.
pub trait Progress: Sync {
    /// Reports the start of a phase ([`findings::phase_words`] describes it). `pages` is the number of pages that the phase will
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

/// Reports nothing.
pub struct Silent;

impl Progress for Silent {
    fn phase(&self, _name: &'static str, _pages: u64) {}
    fn advance(&self, _pages: u64) {}
}
