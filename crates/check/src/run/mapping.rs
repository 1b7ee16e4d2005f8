//! Builds the page map from the survey, if the report needs one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use findings::{MAX_OWNERS, MAX_RUNS, MapOfFile, MapOwner, MapRun, MapState, PageMap};
use format::PageId;
use format::allocation::{EXTENT_PAGES, is_fixed_extent};

use crate::basis::tallies::UnreadPages;
use crate::basis::units::{Shape, UnitIndex};
use crate::survey::{Allocation, FileMap};
use crate::sweep::context::Context;

/// The minimum of the limit on the number of runs per file. For large files, the limit is in proportion to the size of
/// the file.
const LEAST_RUNS: usize = 16;
/// The maximum number of unread pages in the list.
const MAX_UNREAD: usize = 1 << 12;

/// The map of all files, with the uses and owners that the survey found.
pub(crate) fn page_map(context: &Context<'_>, unread: &UnreadPages) -> PageMap {
    let survey = &context.survey;
    let (owners, numbers) = owners(context);
    let total: u64 = survey.files.iter().map(|file| u64::from(file.pages)).sum();
    let mut counts = Counts::new(owners.len());
    let files = survey.files.iter().map(|file| {
        let share = MAX_RUNS as u64 * u64::from(file.pages) / total.max(1);
        let most = usize::try_from(share).unwrap_or(MAX_RUNS).max(LEAST_RUNS);
        let extent = |extent: u32| extent_of(context, file, extent, &numbers);
        let (cell_shift, runs) = runs(file.extent_count(), most, &mut counts, extent);
        MapOfFile { file_id: file.file_id, pages: file.pages, cell_shift, runs }
    });
    let files = files.collect();
    let of_sweep = unread.clone().into_files().map(|(page, _, count)| (page, count));
    let maps = survey.unread.iter().map(|page| (*page, 1));
    PageMap { files, owners, unread: each_once(of_sweep.chain(maps).take(MAX_UNREAD).collect()) }
}

/// Keeps only one entry per page: the entry with the largest count.
fn each_once(mut unread: Vec<(PageId, u64)>) -> Vec<(PageId, u64)> {
    unread.sort_unstable_by_key(|(page, count)| (*page, Reverse(*count)));
    unread.dedup_by_key(|(page, _)| *page);
    unread
}

/// Returns the heaps and indexes with the most extents and, for each unit, the position of its owner in this list.
fn owners(context: &Context<'_>) -> (Vec<MapOwner>, Vec<u16>) {
    let units = context.units.list();
    let owner_of = |unit: UnitIndex| {
        let owner = context.units.get(unit)?.owner;
        Some(MapOwner { object_id: owner.object_id, index_id: owner.index_id })
    };
    let mut extents = vec![0_u32; units.len()];
    for file in &context.survey.files {
        for unit in (0..file.extent_count()).filter_map(|extent| file.extent_owner(extent)) {
            if let Some(count) = extents.get_mut(unit as usize) {
                *count = count.saturating_add(1);
            }
        }
    }
    let mut by_owner: BTreeMap<MapOwner, u64> = BTreeMap::new();
    for (unit, &count) in (0..).zip(&extents).filter(|(_, count)| **count > 0) {
        if let Some(owner) = owner_of(unit) {
            *by_owner.entry(owner).or_default() += u64::from(count);
        }
    }
    let mut largest: Vec<(MapOwner, u64)> = by_owner.into_iter().collect();
    largest.sort_by(|(a, extents_a), (b, extents_b)| extents_b.cmp(extents_a).then(a.cmp(b)));
    let numbers: BTreeMap<MapOwner, u16> =
        largest.iter().take(MAX_OWNERS).zip(1..).map(|((owner, _), number)| (*owner, number)).collect();
    let number = |unit| owner_of(unit).and_then(|owner| numbers.get(&owner)).copied().unwrap_or(MapRun::UNNAMED);
    let of_units = (0..units.len() as UnitIndex).map(number).collect();
    (largest.into_iter().take(MAX_OWNERS).map(|(owner, _)| owner).collect(), of_units)
}

/// The use of an extent, and the position of its owner in the list of owners.
fn extent_of(context: &Context<'_>, file: &FileMap, extent: u32, numbers: &[u16]) -> (MapState, u16) {
    if is_fixed_extent(extent) {
        return (MapState::Maps, MapRun::NO_OWNER);
    }
    let first = extent * EXTENT_PAGES;
    let pages = first..first.saturating_add(EXTENT_PAGES).min(file.pages);
    if let Some(unit) = file.extent_owner(extent) {
        let owner = numbers.get(unit as usize).copied().unwrap_or(MapRun::UNNAMED);
        let is_empty = pages.into_iter().all(|page| file.allocation(page) == Allocation::Free);
        let state = match context.units.get(unit).map(|unit| unit.shape) {
            _ if is_empty => MapState::Reserved,
            Some(Shape::Heap | Shape::Clustered) => MapState::Data,
            Some(Shape::Nonclustered) => MapState::Index,
            Some(Shape::Text) => MapState::Lob,
            Some(Shape::Unknown) | None => MapState::Other,
        };
        return (state, owner);
    }
    let is_listed = || file.singles().range(pages.clone()).next().is_some();
    let state = match file.extent_bits(extent) {
        None => MapState::Unknown,
        Some((_, true)) => MapState::Mixed,
        Some((true, false)) if is_listed() => MapState::Mixed,
        Some((true, false)) => MapState::Free,
        Some((false, false)) if is_listed() => MapState::Mixed,
        Some((false, false)) => MapState::Other,
    };
    (state, MapRun::NO_OWNER)
}

/// Divides a file into cells of equal size, and returns runs of cells with the same use and owner. The cells are just
/// large enough that there are at most `most` runs. The first result is the binary logarithm of the number of extents
/// per cell.
fn runs(extents: u32, most: usize, counts: &mut Counts, extent: impl Fn(u32) -> (MapState, u16)) -> (u32, Vec<MapRun>) {
    let mut shift = 0;
    loop {
        let mut runs: Vec<MapRun> = Vec::new();
        let mut first = 0;
        while first < extents && runs.len() <= most {
            let end = first.saturating_add(1 << shift).min(extents);
            let (state, owner) = match end - first {
                1 => extent(first),
                _ => counts.most((first..end).map(&extent)),
            };
            match runs.last_mut().filter(|run| (run.state, run.owner) == (state, owner)) {
                Some(run) => run.cells += 1,
                None => runs.push(MapRun { cells: 1, owner, state }),
            }
            first = end;
        }
        if runs.len() <= most {
            runs.shrink_to_fit();
            return (shift, runs);
        }
        shift += 1;
    }
}

/// Counts the extents of a cell for each state and owner.
struct Counts {
    counts: Vec<u32>,
    seen: Vec<usize>,
}

impl Counts {
    fn new(owners: usize) -> Self {
        Self { counts: vec![0; (owners.max(MAX_OWNERS) + 2) * MapState::ALL.len()], seen: Vec::new() }
    }

    /// The most frequent combination of state and owner; the first one if several are equally frequent.
    fn most(&mut self, extents: impl Iterator<Item = (MapState, u16)>) -> (MapState, u16) {
        let states = MapState::ALL.len();
        for (state, owner) in extents {
            let at = usize::from(owner) * states + state as usize;
            if let Some(count) = self.counts.get_mut(at) {
                if *count == 0 {
                    self.seen.push(at);
                }
                *count += 1;
            }
        }
        let (mut best, mut most) = (0, 0);
        for at in self.seen.drain(..) {
            let count = self.counts.get_mut(at).map(std::mem::take).unwrap_or_default();
            if count > most {
                (best, most) = (at, count);
            }
        }
        let state = MapState::ALL.get(best % states).copied().unwrap_or(MapState::Unknown);
        (state, u16::try_from(best / states).unwrap_or(MapRun::UNNAMED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(extents: u32, most: usize, extent: impl Fn(u32) -> (MapState, u16)) -> (u32, Vec<MapRun>) {
        runs(extents, most, &mut Counts::new(9), extent)
    }

    #[test]
    fn an_unread_page_is_marked_once_and_stands_for_all_of_its_file() {
        let page = PageId::new;
        let unread = vec![(page(1, 9), 4000), (page(3, 5), 2), (page(1, 9), 1), (page(1, 2), 1)];
        assert_eq!(each_once(unread), [(page(1, 2), 1), (page(1, 9), 4000), (page(3, 5), 2)]);
    }

    #[test]
    fn extents_that_are_used_alike_are_one_run() {
        let used = |extent: u32| if extent < 5 { (MapState::Data, 1) } else { (MapState::Free, 0) };
        let expected = vec![
            MapRun { cells: 5, owner: 1, state: MapState::Data },
            MapRun { cells: 4, owner: 0, state: MapState::Free },
        ];
        assert_eq!(cells(9, 100, used), (0, expected));
        assert_eq!(cells(0, 100, used), (0, Vec::new()));
    }

    #[test]
    fn a_file_that_changes_often_has_larger_cells_each_of_what_most_of_its_extents_are() {
        // Three of every four extents belong to one table, and the fourth extent to another.
        let used = |extent: u32| if extent % 4 == 3 { (MapState::Index, 2) } else { (MapState::Data, 1) };
        let (shift, found) = cells(1000, 16, used);
        assert_eq!(shift, 1);
        assert_eq!(found, [MapRun { cells: 1000_u32.div_ceil(1 << shift), owner: 1, state: MapState::Data }]);
        // Adjacent extents have different owners. The number of runs must not exceed the limit, and the cells must
        // cover all extents.
        let owners = |extent: u32| (MapState::Data, (extent.wrapping_mul(2_654_435_761) >> 20) as u16);
        for (extents, most) in [(1, 16), (17, 16), (100_000, 16), (100_000, 1000), (1 << 20, 4096)] {
            let (shift, found) = cells(extents, most, owners);
            assert!(found.len() <= most);
            assert_eq!(found.iter().map(|run| run.cells).sum::<u32>(), extents.div_ceil(1 << shift));
            // Cells must not be larger than needed.
            assert!(found.len() * 3 > most || shift == 0, "{extents}, {most}: {shift}, {}", found.len());
        }
    }
}
