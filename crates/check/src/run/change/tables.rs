//! Which tables have pages in the ranges of the files.

use std::collections::BTreeMap;

use findings::FileRange;
use format::allocation::EXTENT_PAGES;

use super::Change;
use super::states::{State, States};
use crate::basis::units::UnitIndex;
use crate::survey::Allocation;

/// A table, and how much of it must be read until it can be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// The ID of the table.
    pub object_id: i32,
    /// The number of pages in use.
    pub pages: u64,
    /// The number of pages that no window has read, or that have changed since.
    pub open_pages: u64,
    /// The number of other pages whose last read is too long ago.
    pub old_pages: u64,
    /// The earliest run from which sums of the table were taken, counted backwards; `None` if this run has read all of it
    /// that is not open.
    pub oldest: Option<usize>,
}

impl Change<'_> {
    /// All tables with pages, by ID, and how much of each is left. `is_old` tells of each earlier run whether its reads are
    /// too long ago.
    pub(super) fn tables(&self, states: &States, is_old: impl Fn(usize) -> bool) -> Vec<Turn> {
        let (mut tables, mut owners) = (BTreeMap::<i32, Turn>::new(), Vec::new());
        for (range, state) in self.in_scope(states) {
            self.owners(range, &mut owners);
            for (object_id, pages) in self.by_object(&owners) {
                let nothing = Turn { object_id, pages: 0, open_pages: 0, old_pages: 0, oldest: None };
                let table = tables.entry(object_id).or_insert(nothing);
                table.pages += pages;
                match state {
                    State::Unknown | State::Other(_) => table.open_pages += pages,
                    State::Kept(run) | State::Merged(run) => {
                        table.oldest = Some(usize::from(run)).max(table.oldest);
                        table.old_pages += if is_old(run.into()) { pages } else { 0 };
                    }
                    State::Swept => {}
                }
            }
        }
        tables.into_values().collect()
    }

    /// The units in scope that own pages of a range, each with the number of its pages that are or may be in use.
    pub(super) fn owners(&self, range: FileRange, owners: &mut Vec<(Option<UnitIndex>, u64)>) {
        owners.clear();
        let Some(file) = self.context.survey.file(range.file_id) else { return };
        for page in range.first..range.end() {
            let unit = file.extent_owner(page / EXTENT_PAGES).or_else(|| file.owner(page));
            let is_in_use = match file.allocation(page) {
                Allocation::Used(_) => true,
                Allocation::Free => false,
                Allocation::Unknown => unit.is_some(),
            };
            if !is_in_use || !self.context.covers(unit) {
                continue;
            }
            match owners.iter_mut().find(|(owner, _)| *owner == unit) {
                Some((_, pages)) => *pages += 1,
                None => owners.push((unit, 1)),
            }
        }
    }

    /// The tables of units, each with the number of its pages.
    pub(super) fn by_object(&self, owners: &[(Option<UnitIndex>, u64)]) -> Vec<(i32, u64)> {
        let mut objects: Vec<(i32, u64)> = Vec::new();
        for (unit, pages) in owners {
            let unit = unit.and_then(|unit| self.context.units.get(unit));
            let Some(object_id) = unit.map(|unit| unit.owner.object_id) else { continue };
            match objects.iter_mut().find(|(object, _)| *object == object_id) {
                Some((_, all)) => *all += pages,
                None => objects.push((object_id, *pages)),
            }
        }
        objects
    }
}
