//! Telling how far a run is.

/// Listens to a run. Called from several threads.
pub trait Progress: Sync {
    /// A phase starts; `pages` is its length if it can be foreseen, else 0.
    fn phase(&self, name: &'static str, pages: u64);

    /// So many more pages of the phase are done.
    fn advance(&self, pages: u64);
}

/// Reports nothing.
pub struct Silent;

impl Progress for Silent {
    fn phase(&self, _name: &'static str, _pages: u64) {}
    fn advance(&self, _pages: u64) {}
}
