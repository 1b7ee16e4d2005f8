//! What a run is asked to check.

/// How many objects are checked: which DBCC command it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// CHECKDB.
    #[default]
    Database,
    /// CHECKTABLE: these objects.
    Tables(Vec<i32>),
    /// CHECKFILEGROUP: objects on this filegroup.
    Filegroup(u16),
    /// CHECKALLOC: allocation only.
    Allocation,
}

impl Scope {
    /// The DBCC command's name.
    pub fn command(&self) -> &'static str {
        match self {
            Self::Database => "CHECKDB",
            Self::Tables(_) => "CHECKTABLE",
            Self::Filegroup(_) => "CHECKFILEGROUP",
            Self::Allocation => "CHECKALLOC",
        }
    }
}

/// Options of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// What is checked.
    pub scope: Scope,
    /// Pages, record headers and allocation only.
    pub physical_only: bool,
    /// Leave out the logical checks of nonclustered indexes of user tables.
    pub no_index: bool,
    /// Check that values lie in the domains of their types; on when `None`, never with `physical_only`.
    pub data_purity: Option<bool>,
    /// Threads; 0 for one a processor.
    pub max_threads: usize,
}

impl Options {
    /// Whether data purity is checked.
    pub fn checks_purity(&self) -> bool {
        self.data_purity.unwrap_or(true) && !self.physical_only
    }
}
