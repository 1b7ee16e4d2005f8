//! Proof by change: what a run has read of a database, and what it has taken from the runs that read the rest.

/// How the pages of a database were checked, if the run could have used the parts of earlier runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Ranges that have not changed since earlier runs were not read again.
    Proven(ByChange),
    /// All pages were read, for this reason.
    Whole(String),
}

/// What a run has read, and what it has taken from earlier runs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ByChange {
    /// The GUID of the full backup on which the state builds.
    pub base_set: String,
    /// The full backup: its kind, and when it finished.
    pub base: String,
    /// When the check of the full backup began, in UTC.
    pub base_read_at: String,
    /// The state that is proven: the last backup set, and when it finished.
    pub image: String,
    /// The bytes of pages that this run has read.
    pub bytes_read: u64,
    /// The bytes of pages that this run has not read, because they have not changed.
    pub bytes_kept: u64,
    /// The bytes of pages that are left for later windows of time.
    pub bytes_open: u64,
    /// The number of ranges with pages in use.
    pub ranges: u64,
    /// The number of ranges that this run has swept, and the reason: `bytes`, `maps`, `meaning`, `not_kept`,
    /// `findings`, `again`.
    pub reasons: Vec<(&'static str, u64)>,
    /// The bytes of a range.
    pub range_bytes: u64,
    /// For each range of the report: when the oldest of its pages were read, if this run has not read all of them.
    pub read_at: Vec<Option<String>>,
    /// For each table, by object ID: when the oldest of its pages were read, if this run has not read all of them.
    pub tables_read_at: Vec<(i32, String)>,
}

impl ByChange {
    /// The number of ranges that this run has swept.
    pub fn ranges_swept(&self) -> u64 {
        self.reasons.iter().map(|(_, count)| count).sum()
    }
}
