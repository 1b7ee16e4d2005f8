//! How far a run is.

/// Listens to a run. Called from several threads.
pub trait Progress: Sync {
    /// A phase starts ([`phase_words`] says what happens in it); `pages` is its length if it can be foreseen, else 0.
    fn phase(&self, name: &'static str, pages: u64);

    /// So many more pages of the phase are done.
    fn advance(&self, pages: u64);
}

/// What happens in a phase, in words for people; its name where it has no other.
pub fn phase_words(name: &'static str) -> &'static str {
    match name {
        "spool" => "copying standard input",
        "load" => "reading the catalog",
        "recover" => "looking for changes in the log",
        "survey" => "reading allocation maps",
        "sweep" => "reading pages",
        "compare" => "comparing indexes with tables",
        "catalog" => "checking the catalog",
        "constraints" => "checking constraints",
        "export" => "exporting rows",
        "salvage" => "looking for rows of damaged pages",
        "container" => "checking the rest of the backup",
        name => name,
    }
}

/// Reports nothing.
pub struct Silent;

impl Progress for Silent {
    fn phase(&self, _name: &'static str, _pages: u64) {}
    fn advance(&self, _pages: u64) {}
}
