//! The parts of a backup's container that this process has read. This information can be passed to another process, so
//! that the other process need not read these parts again.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::media::Media;
use super::{BackupPages, SetKind};
use crate::storage;

/// The parts of a backup's container that have been read.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ContainerSeen {
    /// For each region with a checksum: the checksum over the extents that were read, and the numbers of these extents.
    pub regions: Vec<(u32, Runs)>,
    /// For each file of a compressed backup: the groups of records that were read without error.
    pub records: Vec<Runs>,
}

/// The parts of one file of a backup that have been read.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct FileSeen {
    /// The absolute path of the file, or its URL.
    pub path: PathBuf,
    /// For each region with a checksum: its offset, the checksum over the extents that were read, and the numbers of
    /// these extents.
    pub regions: Vec<(u64, u32, Runs)>,
    /// If the backup is compressed: the groups of records that were read without error.
    pub records: Runs,
}

/// A set of numbers, as ascending runs (start, end).
pub type Runs = Vec<(u64, u64)>;

/// A path that is the same in every folder from which a program is started.
pub(super) fn lasting(path: &Path) -> PathBuf {
    match storage::url(path) {
        Some(_) => path.to_owned(),
        None => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    }
}

/// The numbers of the bits that are set.
fn runs_of(words: &[AtomicU64]) -> Runs {
    let mut runs = Runs::new();
    for (at, word) in (0..).step_by(64).zip(words) {
        let mut word = word.load(Ordering::Relaxed);
        while word != 0 {
            let first = word.trailing_zeros();
            let count = (word >> first).trailing_ones();
            let (start, end) = (at + u64::from(first), at + u64::from(first + count));
            match runs.last_mut() {
                Some((_, last)) if *last == start => *last = end,
                _ => runs.push((start, end)),
            }
            word &= u64::MAX.checked_shl(first + count).unwrap_or_default();
        }
    }
    runs
}

/// The indexes of the words that contain a run of bits, and the bits of the run in each word.
fn words_of(Range { start, end }: Range<u64>) -> impl Iterator<Item = (usize, u64)> {
    (start / 64..end.div_ceil(64)).map(move |word| {
        let (from, to) = (start.max(word * 64) % 64, end.min(word * 64 + 64) - word * 64);
        let below = |bits: u64| if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        (word as usize, below(to) & !below(from))
    })
}

/// Whether every run is non-empty and within the words, and all its bits are still zero.
fn are_new(words: &[AtomicU64], runs: &Runs) -> bool {
    let most = words.len() as u64 * 64;
    let is_free =
        |(word, bits): (usize, u64)| words.get(word).is_some_and(|word| word.load(Ordering::Relaxed) & bits == 0);
    runs.iter().all(|&(start, end)| start < end && end <= most && words_of(start..end).all(is_free))
}

fn set(words: &[AtomicU64], runs: &Runs) {
    let most = words.len() as u64 * 64;
    for (word, bits) in runs.iter().flat_map(|&(start, end)| words_of(start.min(most)..end.min(most))) {
        if let Some(word) = words.get(word) {
            word.fetch_or(bits, Ordering::Relaxed);
        }
    }
}

impl BackupPages {
    /// Forgets which parts of the container have been read.
    pub fn forget_seen(&self) {
        for sum in &self.sums {
            sum.sum.store(0, Ordering::Relaxed);
            sum.seen.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        self.media.iter().flat_map(|media| media.seen()).for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// The parts of the container that were read since [`Self::forget_seen`].
    pub fn seen(&self) -> ContainerSeen {
        ContainerSeen {
            regions: self.sums.iter().map(|sum| (sum.sum.load(Ordering::Relaxed), runs_of(&sum.seen))).collect(),
            records: self.media.iter().map(|media| runs_of(media.seen())).collect(),
        }
    }

    /// The parts of the first set's files that have been read.
    pub fn seen_of_base(&self) -> Vec<FileSeen> {
        self.seen_of(|media| self.is_of_base(media))
    }

    /// The parts of the files of later sets, without log backups, that have been read.
    pub fn seen_of_later(&self) -> Vec<FileSeen> {
        self.seen_of(|media| self.is_of_later(media))
    }

    fn seen_of(&self, is_wanted: impl Fn(&Media) -> bool) -> Vec<FileSeen> {
        let of_media = |(tape, media): (usize, &Media)| {
            let own = self.sums.iter().filter(|sum| usize::from(sum.tape) == tape);
            let regions = own.map(|sum| (sum.region.at, sum.sum.load(Ordering::Relaxed), runs_of(&sum.seen))).collect();
            FileSeen { path: lasting(&media.path), regions, records: runs_of(media.seen()) }
        };
        self.media.iter().enumerate().filter(|(_, media)| is_wanted(media)).map(of_media).collect()
    }

    /// Replaces the knowledge of what was read of the first set's files by `seen`, which an earlier run has gathered
    /// from the same files.
    pub fn put_seen_of_base(&self, seen: &[FileSeen]) {
        self.put_seen(seen, |media| self.is_of_base(media));
    }

    /// Replaces the knowledge of what was read of the files of later sets, without log backups, like
    /// [`Self::put_seen_of_base`].
    pub fn put_seen_of_later(&self, seen: &[FileSeen]) {
        self.put_seen(seen, |media| self.is_of_later(media));
    }

    fn put_seen(&self, seen: &[FileSeen], is_wanted: impl Fn(&Media) -> bool) {
        for (tape, media) in self.media.iter().enumerate().filter(|(_, media)| is_wanted(media)) {
            let path = lasting(&media.path);
            let Some(of_file) = seen.iter().find(|seen| seen.path == path) else { continue };
            for sum in self.sums.iter().filter(|sum| usize::from(sum.tape) == tape) {
                let Some((_, value, runs)) = of_file.regions.iter().find(|(at, ..)| *at == sum.region.at) else {
                    continue;
                };
                sum.seen.iter().for_each(|word| word.store(0, Ordering::Relaxed));
                set(&sum.seen, runs);
                sum.sum.store(*value, Ordering::Relaxed);
            }
            set(media.seen(), &of_file.records);
        }
    }

    /// A file may have both the first set and later ones.
    fn is_of_later(&self, media: &Media) -> bool {
        let later = self.sets.iter().skip(1).filter(|set| set.kind != SetKind::Log);
        !self.is_of_base(media) && later.flat_map(|set| &set.paths).any(|path| *path == media.path)
    }

    fn is_of_base(&self, media: &Media) -> bool {
        self.sets.first().is_some_and(|base| base.paths.contains(&media.path))
    }

    /// Adds the parts of this backup that another process has read. If both processes have read an extent of a region,
    /// the two checksums of the region cannot be combined. In this case the checksum of the other process is ignored,
    /// and the extents that only the other process has read are read again at the end.
    pub fn add_seen(&self, seen: &ContainerSeen) {
        for (sum, (of_others, runs)) in self.sums.iter().zip(&seen.regions) {
            if are_new(&sum.seen, runs) {
                set(&sum.seen, runs);
                sum.sum.fetch_xor(*of_others, Ordering::Relaxed);
            }
        }
        for (media, runs) in self.media.iter().zip(&seen.records) {
            set(media.seen(), runs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn runs_are_the_bits_that_are_set() {
        for runs in [vec![], vec![(0, 1)], vec![(63, 65)], vec![(0, 192)], vec![(5, 64), (65, 70), (128, 192)]] {
            let all = words(3);
            assert!(are_new(&all, &runs));
            set(&all, &runs);
            assert_eq!(runs_of(&all), runs);
            assert_eq!(are_new(&all, &runs), runs.is_empty(), "set a second time");
        }
    }

    #[test]
    fn runs_that_are_no_runs_are_not_new_and_do_no_harm() {
        let all = words(3);
        for runs in [vec![(5, 5)], vec![(9, 3)], vec![(100, 193)], vec![(u64::MAX - 1, u64::MAX)]] {
            assert!(!are_new(&all, &runs), "{runs:?}");
            set(&all, &runs);
        }
        assert_eq!(runs_of(&all), [(100, 192)]);
    }
}
