//! The ledger of a plan, as the plan stores it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::evidence::FileIdentity;

/// The full backup on which a ledger builds.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Base {
    /// The GUID of the set.
    pub(crate) set: String,
    /// The name of the database.
    pub(crate) database: String,
    /// The set for people: its kind, and when it finished.
    pub(crate) label: String,
    /// The objects to which windows are confined; empty for the whole database.
    pub(crate) scope: String,
    pub(crate) files: Vec<FileIdentity>,
    /// The largest size of the ledger.
    pub(crate) most_bytes: u64,
    /// For data files, whose own identity says nothing: what names the full backup on which their differential maps are
    /// based.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) bases: Vec<String>,
    /// The extents of which the differential maps have missed a change, so that no window relies on the maps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) missed: Vec<String>,
}

/// The ledger of a plan, as the plan stores it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedLedger {
    /// The full backup on which the ledger builds.
    pub(crate) base: Base,
    /// The number of pages in a range whose sums are kept apart.
    pub range_pages: u32,
    /// What the tasks leave out; `None` if the plan makes the ledger.
    pub left_out: Option<PlannedLeftOut>,
    /// When the plan was made, in seconds since 1970. No task has read anything before, so this is the date of the parts.
    pub(crate) planned_at: u64,
}

/// What the tasks of a plan leave out.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedLeftOut {
    /// The number of ranges with pages in use.
    pub(crate) ranges: u64,
    /// The number of ranges that the tasks sweep, by the reason.
    pub(crate) swept: BTreeMap<String, u64>,
    /// The number of bytes that the tasks read.
    pub bytes_swept: u64,
    /// The number of bytes that are left out.
    pub bytes_kept: u64,
}

impl PlannedLedger {
    /// The number of bytes that no task reads.
    pub fn bytes_kept(&self) -> u64 {
        self.left_out.as_ref().map_or(0, |left_out| left_out.bytes_kept)
    }
}
