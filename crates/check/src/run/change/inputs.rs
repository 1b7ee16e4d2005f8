//! The inputs of the sums of a range, as digests: the maps of the range and the meaning of its units.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use findings::{FileRange, Scope};
use format::PageId;
use format::allocation::EXTENT_PAGES;
use sums::names::Names;
use sums::wire::Digest;

use super::{PartKey, Reason};
use crate::basis::meaning::Meaning;
use crate::basis::units::UnitIndex;
use crate::checks::Checks;
use crate::page::rowsets::may_be_paused;
use crate::survey::Allocation;
use crate::sweep::check_list::CheckList;
use crate::sweep::context::Context;
use crate::sweep::keeping::{ALL_OF_BASE, bytes_above};
use crate::sweep::memory::CHUNK_PAGES;

/// The pages below which a page at a fixed address is not known by its address alone: the settings of a server, which
/// only database master has.
const FIXED: u32 = 16;

/// The most digests of bytes above the first set that are kept: some 64 MB.
const MOST_ABOVES: usize = 1 << 20;

/// The inputs of this run.
pub(super) struct Inputs {
    names: Names,
    /// The meanings that were computed so far.
    meanings: Mutex<HashMap<UnitIndex, Digest>>,
    /// For each range of which some part was compared: the digest of the bytes that do not come from the first set.
    aboves: Mutex<HashMap<(u16, u32), Option<Digest>>>,
}

impl Inputs {
    pub(super) fn of(context: &Context<'_>, checks: &Checks) -> Self {
        Self { names: checks.names(context), meanings: Mutex::default(), aboves: Mutex::default() }
    }

    /// The names of the units and plans of this run.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    /// A digest of what all ranges have in common. If it differs, no part can be used.
    pub(super) fn globals(&self, context: &Context<'_>) -> Digest {
        let (database, options) = (context.database, context.options);
        let mut to = self.digest(context);
        let boot = database.boot.as_ref();
        boot.map(|boot| boot.version).hash(&mut to);
        database.has_version_store().hash(&mut to);
        (options.no_index, options.checks_purity(), options.extended_logical_checks).hash(&mut to);
        // The objects of the scope: pages of others have no sums.
        match &options.scope {
            Scope::Tables(objects) => (1_u8, objects).hash(&mut to),
            Scope::Filegroup(filegroup) => (2_u8, filegroup).hash(&mut to),
            _ => {}
        }
        to.digest()
    }

    /// The first input of a range that differs from those of a part; `None` if all are the same. `known` returns the
    /// digest of the bytes above the first set if the bytes need not be read.
    pub(super) fn compare(
        &self,
        context: &Context<'_>,
        checks: &Checks,
        key: &PartKey,
        known: impl FnOnce(FileRange) -> Option<Digest>,
    ) -> Option<Reason> {
        if let Some(reason) = self.compare_maps(context, checks, key) {
            return Some(reason);
        }
        // The pages are read only if the maps and the meaning are the same, and once for all parts of a range.
        let range = key.range;
        let mask = context.source.above_base(PageId::new(range.file_id, range.first), range.pages);
        let above = match mask {
            None => None,
            Some(0) => Some(ALL_OF_BASE),
            Some(_) if key.above == ALL_OF_BASE => None,
            Some(_) => {
                let place = (range.file_id, range.first);
                let compute = || known(range).or_else(|| bytes_above(context, range));
                let mut aboves = self.aboves.lock().unwrap_or_else(PoisonError::into_inner);
                match aboves.get(&place) {
                    Some(above) => *above,
                    // Few ranges have several parts, so little is read twice.
                    None if aboves.len() >= MOST_ABOVES => compute(),
                    None => *aboves.entry(place).or_insert_with(compute),
                }
            }
        };
        (above != Some(key.above)).then_some(Reason::Bytes)
    }

    /// Whether the maps or the meaning of a range differ from those of a part.
    pub(super) fn compare_maps(&self, context: &Context<'_>, checks: &Checks, key: &PartKey) -> Option<Reason> {
        let Some((maps, meaning)) = self.of_range(context, checks, key.range) else { return Some(Reason::Maps) };
        if maps != key.maps {
            return Some(Reason::Maps);
        }
        (meaning != key.meaning).then_some(Reason::Meaning)
    }

    /// The maps of a range and the meaning of its units. `None` if its sums cannot be kept: several units claim a page of
    /// it, a map page could not be read, a page belongs to a system table, or no unit claims a page, whose content no check
    /// verifies.
    pub(super) fn of_range(
        &self,
        context: &Context<'_>,
        checks: &Checks,
        range: FileRange,
    ) -> Option<(Digest, Digest)> {
        let survey = &context.survey;
        let file = survey.file(range.file_id)?;
        if survey.unread.iter().any(|page| range.contains(*page)) {
            return None;
        }
        let (mut maps, mut meanings) = (self.digest(context), self.digest(context));
        let mut of_pages = [[0; 2]; CHUNK_PAGES as usize];
        let (mut last, mut of_extent) = (None, None);
        let singles = file.singles().range(range.first..range.end());
        let mut iam_pages = singles.filter(|(_, single)| single.is_iam).map(|(page, _)| *page).peekable();
        for (page, of_page) in (range.first..range.end()).zip(&mut of_pages) {
            let byte = match file.allocation(page) {
                Allocation::Used(byte) => Some(byte),
                Allocation::Free => None,
                Allocation::Unknown => return None,
            };
            let state = [byte.is_some(), iam_pages.next_if_eq(&page).is_some(), page < FIXED && file.is_fixed(page)];
            let bits = state.iter().fold(0, |bits, is_set| bits << 1 | u8::from(*is_set));
            *of_page = [bits, byte.map_or(0, |byte| byte.0)];
            if page.is_multiple_of(EXTENT_PAGES) {
                if file.is_shared(page / EXTENT_PAGES) {
                    return None;
                }
                of_extent = file.extent_owner(page / EXTENT_PAGES);
            }
            let owner = of_extent.or_else(|| file.owner(page));
            let [is_used, is_iam, _] = state;
            if owner.is_none() && is_used && !is_iam && !file.is_fixed(page) {
                return None;
            }
            if owner != last {
                page.hash(&mut maps);
                maps.units(owner.as_ref());
                if let Some(unit) = owner {
                    let is_system = |object| context.database.is_system_table(object);
                    context.units.get(unit).filter(|unit| unit.row.is_some() && !is_system(unit.owner.object_id))?;
                    self.meaning(context, checks, unit).hash(&mut meanings);
                }
                last = owner;
            }
        }
        maps.write(of_pages.get(..range.pages as usize)?.as_flattened());
        Some((maps.digest(), meanings.digest()))
    }

    fn meaning(&self, context: &Context<'_>, checks: &Checks, unit: UnitIndex) -> Digest {
        let known = |map: &HashMap<UnitIndex, Digest>| map.get(&unit).copied();
        if let Some(known) = known(&self.meanings.lock().unwrap_or_else(PoisonError::into_inner)) {
            return known;
        }
        let digest = self.meaning_of(context, checks, unit);
        self.meanings.lock().unwrap_or_else(PoisonError::into_inner).insert(unit, digest);
        digest
    }

    fn meaning_of(&self, context: &Context<'_>, checks: &Checks, index: UnitIndex) -> Digest {
        let mut to = self.digest(context);
        if let Some(unit) = context.units.get(index) {
            (unit.id, unit.owner, unit.shape, unit.compressed).hash(&mut to);
            context.keys(index).hash(&mut to);
            context.expansion(unit).hash(&mut to);
            let rowset = unit.rowset.and_then(|rowset| context.database.rowsets.get(rowset));
            rowset.map(|rowset| may_be_paused(context.database, rowset)).hash(&mut to);
        }
        checks.wanted(index).hash(&mut to);
        checks.meaning(index, &mut to);
        to.digest()
    }

    fn digest<'a>(&'a self, context: &'a Context<'_>) -> Meaning<'a> {
        Meaning::new(&context.hash, &context.units, &self.names)
    }
}
