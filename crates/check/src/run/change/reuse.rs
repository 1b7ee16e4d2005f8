//! What a run took from earlier runs, or why it could take nothing.

use std::collections::BTreeMap;
use std::io;

use findings::{RangeRead, Report};
use format::PageId;
use sums::wire::SumsError;
use thiserror::Error;

use super::Turn;
use super::states::{State, States};

/// Why a run cannot use the sums of an earlier run. The caller makes a whole run instead.
#[derive(Debug, Error)]
pub enum NotByChange {
    /// The options ask for something that needs all pages.
    #[error("{0} needs all pages")]
    Options(&'static str),
    /// The database has no pages to sweep, or its catalog cannot be read completely.
    #[error("{0}")]
    Database(&'static str),
    /// The ledger cannot be read.
    #[error("the ledger cannot be used: {0}")]
    Sums(#[from] SumsError),
    /// The ledger cannot be read.
    #[error("the ledger cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The plan has left out a range whose sums are not kept.
    #[error(
        "it does not have the sums of {count} ranges any more, which the plan has left out; the first begins at page {first}"
    )]
    LeftOut {
        /// The number of ranges.
        count: u64,
        /// The first page of the first of these ranges.
        first: PageId,
    },
    /// A page that was sound in the earlier run is not sound any more, although nothing has changed it.
    #[error("page {0} was sound when the earlier check read it, and is not sound now")]
    Rotten(PageId),
    /// Extents, given by their first pages, have other bytes than before, although the differential maps of the data files
    /// do not mark them.
    #[error("the differential maps of the data files have missed a change")]
    Promise(Vec<PageId>),
}

/// Why a range was swept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// The bytes of its pages are others.
    Bytes,
    /// Its maps are others: which pages are in use, or which units own them.
    Maps,
    /// The catalog says something else about its units.
    Meaning,
    /// No earlier run has kept its sums.
    NotKept,
    /// The last run that has read it has found something in it, or could not read all of it.
    Findings,
    /// It was read once more, to find pages that went bad.
    Again,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 6] = [Self::Bytes, Self::Maps, Self::Meaning, Self::NotKept, Self::Findings, Self::Again];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Maps => "maps",
            Self::Meaning => "meaning",
            Self::NotKept => "not_kept",
            Self::Findings => "findings",
            Self::Again => "again",
        }
    }
}

/// What a run has read, and what it took from earlier runs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reuse {
    /// The number of ranges with pages in use.
    pub ranges: u64,
    /// The number of ranges that this run has swept, by the reason.
    pub swept: BTreeMap<Reason, u64>,
    /// The number of pages in the ranges that this run has not read.
    pub pages_kept: u64,
    /// For each range of the report: the earliest run from which sums were taken, counted backwards: 0 is the latest
    /// run. `None` if this run has read the whole range.
    pub oldest: Vec<Option<usize>>,
    /// All tables with pages, by ID.
    pub tables: Vec<Turn>,
}

/// For each range of a report: the earliest run from which sums were taken.
pub(super) fn oldest(report: &Report, states: &States) -> Vec<Option<usize>> {
    let mut oldest = vec![None; report.ranges.len()];
    let mut at = 0;
    for (range, state) in states.each() {
        let is_before =
            |tile: &RangeRead| (tile.file_id, tile.first.saturating_add(tile.pages)) <= (range.file_id, range.first);
        while report.ranges.get(at).is_some_and(is_before) {
            at += 1;
        }
        if let (State::Kept(run), Some(place)) = (state, oldest.get_mut(at)) {
            *place = Some(usize::from(run)).max(*place);
        }
    }
    oldest
}
