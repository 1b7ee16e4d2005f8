//! The places of a data file's extents in the tapes of a backup. Places are stored as layers of runs; later layers
//! override earlier layers.

use std::ops::Range;

use format::allocation::EXTENT_PAGES;
use format::page::PAGE_BYTES;

/// Length of an extent in bytes. A backup stores the pages of an extent together.
pub(crate) const FRAME_BYTES: u64 = EXTENT_PAGES as u64 * PAGE_BYTES as u64;
/// Number of bits for the tape offset in a place. The higher bits hold the number of the tape.
const TAPE_SHIFT: u32 = 48;
const PLACE_MASK: u64 = (1 << TAPE_SHIFT) - 1;

/// Consecutive extents that one tape stores without a gap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Run {
    pub(crate) extent: u32,
    pub(crate) count: u32,
    /// The place of the first extent: the number of the tape in the high bits, and the tape offset in the low bits.
    start: u64,
}

impl Run {
    /// A run of one extent.
    pub(crate) fn one(extent: u32, tape: u16, at: u64) -> Self {
        Self { extent, count: 1, start: u64::from(tape) << TAPE_SHIFT | at }
    }

    /// A run of several extents.
    pub(crate) fn new(extent: u32, count: u32, tape: u16, at: u64) -> Self {
        Self { count, ..Self::one(extent, tape, at) }
    }

    fn end(self) -> u32 {
        self.extent.saturating_add(self.count)
    }
}

/// The extents of one file in one region of a backup.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    /// Number of the region in its backup set.
    pub(crate) region: usize,
    runs: Vec<Run>,
    /// The ranges of extents (first extent, end) that this layer should contain but does not.
    missing: Vec<(u32, u32)>,
}

impl Layer {
    /// An empty layer.
    pub(crate) fn of_region(region: usize) -> Self {
        Self { region, ..Self::default() }
    }

    /// Returns the number of bytes in memory, on the assumption that the capacity of each list is one and a half times
    /// its length.
    pub(super) fn held_bytes(&self) -> usize {
        (size_of_val(self.runs.as_slice()) + size_of_val(self.missing.as_slice())) * 3 / 2
    }

    /// Adds a run at the end. If the run continues the last run both in the file and in the tape, the two runs are
    /// joined. The extents of a region should be added in ascending order.
    pub(crate) fn push(&mut self, run: Run) {
        if let Some(last) = self.runs.last_mut()
            && last.end() == run.extent
            && last.start + u64::from(last.count) * FRAME_BYTES == run.start
        {
            last.count += run.count;
        } else {
            self.runs.push(run);
        }
    }

    /// Adds a run of a layer that was sorted before. Returns false if the run is not after all others.
    pub(crate) fn push_known(&mut self, run: Run) -> bool {
        let is_after = self.runs.last().is_none_or(|last| last.end() <= run.extent);
        if is_after {
            self.runs.push(run);
        }
        is_after
    }

    /// The runs: first extent, number of extents, tape and tape offset. `None` if the layer lacks extents.
    pub(crate) fn known(&self) -> Option<impl Iterator<Item = (u32, u32, u16, u64)> + '_> {
        let run = |run: &Run| (run.extent, run.count, (run.start >> TAPE_SHIFT) as u16, run.start & PLACE_MASK);
        self.missing.is_empty().then(|| self.runs.iter().map(run))
    }

    /// Sorts the runs. If two runs contain the same extent, the run that sorts later keeps it.
    pub(crate) fn sort(&mut self) {
        self.runs.sort_unstable();
        let mut sorted: Vec<Run> = Vec::with_capacity(self.runs.len());
        for &run in &self.runs {
            while let Some(last) = sorted.last_mut().filter(|last| last.end() > run.extent) {
                last.count = run.extent - last.extent;
                if last.count > 0 {
                    break;
                }
                sorted.pop();
            }
            sorted.push(run);
        }
        self.runs = sorted;
    }

    /// Number of extents with a place.
    pub(crate) fn extents(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.count)).sum()
    }

    /// Every `step`th extent and the last extent, each with its tape offset.
    pub(crate) fn frames(&self, step: u32) -> Vec<(u32, u64)> {
        let total = self.extents();
        let (mut frames, mut before, mut next) = (Vec::new(), 0u64, 0u64);
        for run in &self.runs {
            let end = before + u64::from(run.count);
            while next < end {
                let index = (next - before) as u32;
                let at = (run.start & PLACE_MASK) + u64::from(index) * FRAME_BYTES;
                frames.push((run.extent + index, at));
                next = if next + 1 == total { total } else { (next + u64::from(step.max(1))).min(total - 1) };
            }
            before = end;
        }
        frames
    }

    pub(crate) fn contains(&self, extent: u32) -> bool {
        matches!(self.look_up(extent).0, Found::At(_))
    }

    /// Notes a range of extents that this layer should contain but that were not found. Ranges must be added in
    /// ascending order.
    pub(crate) fn push_missing(&mut self, extents: Range<u32>) {
        match self.missing.last_mut() {
            Some((_, end)) if *end == extents.start => *end = extents.end,
            _ if extents.is_empty() => {}
            _ => self.missing.push((extents.start, extents.end)),
        }
    }

    /// The parts of the range `extents` without a place, in ascending order.
    pub(crate) fn gaps(&self, extents: Range<u32>) -> impl Iterator<Item = Range<u32>> + '_ {
        let first = self.runs.partition_point(|run| run.end() <= extents.start);
        let runs = self.runs.get(first..).unwrap_or_default().iter().take_while(move |run| run.extent < extents.end);
        let mut next = extents.start;
        let mut gap = move |until: u32, then: u32| {
            let gap = next..until;
            next = then;
            gap
        };
        let ends = runs.map(|run| (run.extent, run.end())).chain([(extents.end, extents.end)]);
        ends.map(move |(until, then)| gap(until, then)).filter(|gap| !gap.is_empty())
    }

    /// Combines two layers; `upper` overrides this layer.
    fn overlaid(self, upper: Self) -> Self {
        let runs = upper.runs.iter().map(|run| (run.extent, run.end()));
        let mut cover: Vec<(u32, u32)> = runs.chain(upper.missing.iter().copied()).collect();
        cover.sort_unstable();
        let mut this = Self { region: self.region, ..Self::default() };
        for run in &self.runs {
            for (first, end) in uncovered(run.extent, run.end(), &cover) {
                let start = run.start + u64::from(first - run.extent) * FRAME_BYTES;
                this.runs.push(Run { extent: first, count: end - first, start });
            }
        }
        for &(first, end) in &self.missing {
            this.missing.extend(uncovered(first, end, &cover));
        }
        this.runs.extend(upper.runs);
        this.missing.extend(upper.missing);
        // Each list consists of two sorted parts, one from each layer, so sorting only has to merge them.
        this.runs.sort();
        this.missing.sort();
        this
    }

    /// Replaces the missing extents of this layer with those of `other`.
    pub(crate) fn take_missing(&mut self, other: Self) {
        self.missing = other.missing;
    }

    /// The state of `extent` in this layer, and the number of extents from `extent` on that have the same state.
    fn look_up(&self, extent: u32) -> (Found, u32) {
        let next = self.runs.partition_point(|run| run.extent <= extent);
        if let Some(run) = next.checked_sub(1).and_then(|at| self.runs.get(at)).filter(|run| extent < run.end()) {
            let skipped = extent - run.extent;
            return (Found::At(run.start + u64::from(skipped) * FRAME_BYTES), run.count - skipped);
        }
        let until_run = self.runs.get(next).map_or(u32::MAX, |run| run.extent) - extent;
        let next = self.missing.partition_point(|(first, _)| *first <= extent);
        let inside = next.checked_sub(1).and_then(|at| self.missing.get(at)).filter(|(_, end)| extent < *end);
        match inside {
            Some((_, end)) => (Found::Missing, until_run.min(end - extent)),
            None => {
                (Found::Nothing, until_run.min(self.missing.get(next).map_or(u32::MAX, |(first, _)| *first) - extent))
            }
        }
    }
}

/// The parts of the range from `first` to `end` that `cover` does not contain; `cover` is sorted.
fn uncovered(first: u32, end: u32, cover: &[(u32, u32)]) -> impl Iterator<Item = (u32, u32)> + '_ {
    let from = cover.partition_point(|(_, covered)| *covered <= first);
    let covers = cover.get(from..).unwrap_or_default().iter().copied().take_while(move |(start, _)| *start < end);
    let mut next = first;
    covers.chain([(end, end)]).filter_map(move |(start, covered)| {
        let part = (next, start.min(end));
        next = next.max(covered);
        (part.0 < part.1).then_some(part)
    })
}

enum Found {
    At(u64),
    Missing,
    Nothing,
}

/// The place of an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In this tape, at this offset.
    At(u16, u64),
    /// In a missing part of the backup.
    Missing,
    /// Not in the backup, because the extent was free when the backup was taken.
    Free,
}

/// The places of one data file's extents.
#[derive(Debug, Default)]
pub(crate) struct FilePlaces {
    pub(crate) file_id: u16,
    /// The layers; later layers override earlier layers. A region that contains no extents of the file has no layer.
    pub(crate) layers: Vec<Layer>,
    /// The number of layers, from the first, that come from the first set. `None` if a layer has runs of several sets.
    pub(crate) base_layers: Option<usize>,
}

/// The most layers to keep: a full backup and a differential backup, each with a second region for extents that were
/// copied again. Further layers are combined, so that look-ups stay fast.
const MOST_LAYERS: usize = 4;

impl FilePlaces {
    /// Whether the file's first extent is in the first region.
    pub(super) fn has_start(&self) -> bool {
        self.layers.first().is_some_and(|layer| layer.region == 0 && layer.contains(0))
    }

    /// Combines neighboring layers until at most `MOST_LAYERS` remain. Only forged backups have more layers than this.
    pub(crate) fn flatten(&mut self) {
        while self.layers.len() > MOST_LAYERS {
            self.base_layers = None;
            let mut layers = std::mem::take(&mut self.layers).into_iter();
            while let Some(lower) = layers.next() {
                self.layers.push(match layers.next() {
                    Some(upper) => lower.overlaid(upper),
                    None => lower,
                });
            }
        }
    }

    /// Whether an extent comes from a later set than the first, or is missing in such a set; `None` if this is unknown.
    pub(crate) fn is_above_base(&self, extent: u32) -> Option<bool> {
        let above = self.layers.get(self.base_layers?..).unwrap_or_default();
        Some(above.iter().any(|layer| !matches!(layer.look_up(extent).0, Found::Nothing)))
    }

    /// The end of the last extent with a place.
    pub(crate) fn end(&self) -> u32 {
        self.layers.iter().filter_map(|layer| layer.runs.last()).map(|run| run.end()).max().unwrap_or_default()
    }

    /// Returns the place of `extent`, and the number of extents from `extent` on to which this answer applies: extents
    /// that directly follow one another in the tape, or extents that are all missing or all free.
    pub(crate) fn locate(&self, extent: u32) -> (Place, u32) {
        let mut limit = u32::MAX;
        for layer in self.layers.iter().rev() {
            let (found, count) = layer.look_up(extent);
            limit = limit.min(count);
            match found {
                Found::At(start) => {
                    let tape = (start >> TAPE_SHIFT) as u16;
                    return (Place::At(tape, start & PLACE_MASK), limit);
                }
                Found::Missing => return (Place::Missing, limit),
                Found::Nothing => {}
            }
        }
        (Place::Free, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(extents: &[(u32, u64)]) -> Layer {
        let mut layer = Layer::default();
        for &(extent, frame) in extents {
            layer.push(Run::one(extent, 0, frame * FRAME_BYTES));
        }
        layer.sort();
        layer
    }

    #[test]
    fn consecutive_extents_make_a_run_and_later_layers_win() {
        let mut places = FilePlaces {
            file_id: 1,
            base_layers: None,
            layers: vec![layer(&[(0, 0), (1, 1), (2, 2), (5, 3), (6, 4)])],
        };
        assert_eq!(places.layers[0].runs.len(), 2);
        assert_eq!(places.locate(1), (Place::At(0, FRAME_BYTES), 2));
        assert_eq!(places.locate(3), (Place::Free, 2));
        places.layers.push(layer(&[(2, 9)]));
        assert_eq!(places.locate(1), (Place::At(0, FRAME_BYTES), 1), "the run ends where a later layer has more");
        assert_eq!(places.locate(2), (Place::At(0, 9 * FRAME_BYTES), 1));
        places.layers[1].push_missing(5..6);
        assert_eq!(
            places.locate(5),
            (Place::Missing, 1),
            "what the later backup changed is not taken from the earlier"
        );
        assert_eq!(places.locate(6).0, Place::At(0, 4 * FRAME_BYTES));
        assert_eq!(places.locate(7).0, Place::Free);
    }

    #[test]
    fn layers_put_together_say_what_they_said_one_by_one() {
        let mut state = 7u64;
        let mut dice = move |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for _ in 0..50 {
            let layers = |dice: &mut dyn FnMut(u64) -> u64| {
                let mut layer = Layer::default();
                let mut extent = 0;
                for _ in 0..dice(8) {
                    let (gap, count) = (dice(6) as u32, 1 + dice(5) as u32);
                    extent += gap;
                    if dice(3) == 0 {
                        layer.push_missing(extent..extent + count);
                    } else {
                        let at = dice(1000) * FRAME_BYTES;
                        for index in 0..count {
                            layer.push(Run::one(extent + index, 1, at + u64::from(index) * FRAME_BYTES));
                        }
                    }
                    extent += count;
                }
                layer
            };
            let all: Vec<Layer> = (0..23).map(|_| layers(&mut dice)).collect();
            let copies = all.iter().map(|layer| Layer {
                runs: layer.runs.clone(),
                missing: layer.missing.clone(),
                ..Layer::default()
            });
            let apart = FilePlaces { file_id: 1, base_layers: None, layers: copies.collect() };
            let mut together = FilePlaces { file_id: 1, base_layers: None, layers: all };
            together.flatten();
            assert!(together.layers.len() <= MOST_LAYERS);
            for extent in 0..100 {
                assert_eq!(apart.locate(extent).0, together.locate(extent).0, "extent {extent}");
            }
        }
    }

    #[test]
    fn gaps_are_what_the_runs_leave() {
        let layer = layer(&[(2, 0), (3, 1), (7, 2)]);
        assert_eq!(layer.gaps(0..10).collect::<Vec<_>>(), [0..2, 4..7, 8..10]);
        assert_eq!(layer.gaps(3..9).collect::<Vec<_>>(), [4..7, 8..9]);
        assert_eq!(layer.gaps(2..4).collect::<Vec<_>>(), Vec::<Range<u32>>::new());
    }

    #[test]
    fn the_later_place_of_an_extent_placed_twice_counts() {
        let twice = layer(&[(4, 0), (5, 1), (6, 2), (5, 7)]);
        assert!(twice.contains(5) && twice.extents() <= 3);
        let places = FilePlaces { file_id: 1, base_layers: None, layers: vec![twice] };
        assert_eq!(places.locate(5).0, Place::At(0, 7 * FRAME_BYTES));
    }
}
