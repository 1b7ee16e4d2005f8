//! A test of the differential maps of data files. The maps promise that the pages of an extent which they do not mark are
//! as they were at the last full backup. So whenever a window reads a range again, the pages of these extents must have the
//! bytes that an earlier window has read. If they do not, the maps cannot be trusted, and no part that rests on them may
//! be used.
//!
//! An extent is compared only if nothing was found in its range: what a checksum shows is a finding, and proves nothing
//! about the maps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use findings::FileRange;
use format::PageId;
use format::allocation::EXTENT_PAGES;
use sums::wire::Digest;

use super::PartKey;

/// The most extents that are named.
const MOST_NAMED: usize = 16;

/// What this run has read of extents that have not changed.
#[derive(Default)]
pub(super) struct Promises {
    seen: Mutex<BTreeMap<(u16, u32), Seen>>,
    /// The first pages of extents whose pages have other bytes than before.
    broken: Mutex<BTreeSet<PageId>>,
}

struct Seen {
    maps: Digest,
    extents: Vec<u64>,
}

impl Promises {
    /// Notes what was read of a range. If there are more than `most` ranges, the others are not tested.
    pub(super) fn note(&self, range: FileRange, maps: Digest, extents: &[u64], most: usize) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() < most && extents.iter().any(|extent| *extent != 0) {
            seen.insert((range.file_id, range.first), Seen { maps, extents: extents.to_vec() });
        }
    }

    /// Whether this run has read pages that a part tells of: those of the same range, with the same maps.
    pub(super) fn is_of(&self, key: &PartKey) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&(key.range.file_id, key.range.first)).is_some_and(|seen| seen.maps == key.maps)
    }

    /// Compares what this run has read with what the run of a part has read.
    pub(super) fn compare(&self, key: &PartKey, extents: &[u8]) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(now) = seen.get(&(key.range.file_id, key.range.first)) else { return };
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        let firsts = (key.range.first..key.range.end()).step_by(EXTENT_PAGES as usize);
        for ((first, now), then) in firsts.zip(&now.extents).zip(read(extents)) {
            if *now != 0 && then != 0 && *now != then && broken.len() < MOST_NAMED {
                broken.insert(PageId::new(key.range.file_id, first));
            }
        }
    }

    /// The first pages of the extents whose pages have other bytes than before, as far as they are named.
    pub(super) fn broken(&self) -> Vec<PageId> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

/// The digests of extents as bytes of a part; no bytes if there is none.
pub(super) fn written(extents: &[u64]) -> Vec<u8> {
    match extents.iter().any(|extent| *extent != 0) {
        true => extents.iter().flat_map(|extent| extent.to_le_bytes()).collect(),
        false => Vec::new(),
    }
}

fn read(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes))
}
