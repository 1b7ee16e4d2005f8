//! Keeping parts in groups: the sums of neighboring ranges are also kept merged, so that a later run in which no range of
//! the group has changed reads one piece instead of many.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use findings::FileRange;
use format::PageId;
use sums::CheckSums;
use sums::wire::{Output, SumsError, Wire};

use super::{Change, Part, PartKey, bounds_head, head_of, most_stood, promise};
use crate::checks::Sums;
use crate::sweep::check_list::Swept;
use crate::sweep::context::Context;
use crate::sweep::keeping::{Keeper, SweptRange};

/// The number of ranges in a group. In a larger group, more parts are read one by one if one range has changed.
const GROUP_RANGES: u32 = 32;
/// The most groups of which some ranges were swept and others were not yet. Each thread sweeps in one group, rarely in
/// two; if there are more groups, the one with the lowest address ends early.
const MOST_OPEN: usize = 256;
/// The sums of most ranges need fewer bytes, and so do their key bounds.
const PART_BYTES: usize = 2048;

/// The parts that a run keeps.
pub(super) struct Keeping<'c, M> {
    change: &'c Change<'c>,
    /// Counts the ranges of a group that are swept, given its file, its first page and its end.
    missing_in: M,
    open: Mutex<BTreeMap<(u16, u32), OpenGroup>>,
    keys: Mutex<BTreeMap<(u16, u32), PartKey>>,
}

/// A group of which some ranges were swept.
struct OpenGroup {
    /// The number of ranges that were not swept yet.
    left: usize,
    parts: Vec<(Part, Swept<Sums>)>,
}

impl<'c, M: Fn(&Change<'_>, u16, u32, u32) -> usize + Sync> Keeping<'c, M> {
    pub(super) fn new(change: &'c Change<'c>, missing_in: M) -> Self {
        Self { change, missing_in, open: Mutex::default(), keys: Mutex::default() }
    }

    /// Ends the groups of which ranges are still missing. Returns their sums, and the keys of all parts, except in the first
    /// run.
    pub(super) fn finish(self) -> (Swept<Sums>, BTreeMap<(u16, u32), PartKey>) {
        let mut rest = self.change.nothing();
        for (_, group) in std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner)) {
            rest.merge(self.end(group));
        }
        (rest, self.keys.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a range that was swept to its group. Returns the group if it is complete.
    fn add(&self, at: (u16, u32), is_counted: bool, part: Option<(Part, Swept<Sums>)>) -> Option<OpenGroup> {
        let (file, first) = at;
        let group_pages = self.change.range_pages * GROUP_RANGES;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (file, first - first % group_pages);
        let group = open.entry(place).or_insert_with(|| {
            let left = (self.missing_in)(self.change, file, place.1, place.1.saturating_add(group_pages));
            OpenGroup { left, parts: Vec::new() }
        });
        group.left = group.left.saturating_sub(usize::from(is_counted));
        group.parts.extend(part);
        if group.left == 0 {
            return open.remove(&place);
        }
        if open.len() > MOST_OPEN { open.pop_first().map(|(_, group)| group) } else { None }
    }

    /// Keeps the parts of a group. Returns their sums.
    fn end(&self, group: OpenGroup) -> Swept<Sums> {
        let context = self.change.context;
        let (mut parts, mut bounds, mut all) = (Vec::new(), Vec::new(), None::<Swept<Sums>>);
        let mut of_group = group.parts;
        of_group.sort_by_key(|(part, _)| part.key.range.first);
        for (part, mut swept) in of_group {
            bounds.extend(swept.sums.trees.take_bounds());
            match &mut all {
                Some(all) => {
                    all.merge(swept);
                    all.sums.gather(context.space);
                }
                None => all = Some(swept),
            }
            parts.push(part);
        }
        let Some(mut all) = all else { return self.change.nothing() };
        let merged = match parts.len() {
            1 => Ok(Vec::new()),
            _ => merged(context, &parts.iter().map(|part| part.key).collect::<Vec<_>>(), &mut all),
        };
        if let Ok(merged) = merged {
            self.change.ledger.keep(&parts, &merged);
        }
        all.sums.trees.add_bounds(bounds);
        all.sums.gather(context.space);
        all
    }
}

impl<M: Fn(&Change<'_>, u16, u32, u32) -> usize + Sync> Keeper<Sums> for Keeping<'_, M> {
    fn range_pages(&self) -> u32 {
        self.change.range_pages
    }

    fn keep(&self, context: &Context<'_>, mut done: SweptRange<Sums>) -> Option<Swept<Sums>> {
        let part = self.change.part(&mut done).filter(|part| {
            // A part without sums is in no group.
            let is_sums = part.key.above != PartKey::FOUND;
            if !is_sums {
                self.change.ledger.keep(std::slice::from_ref(part), &[]);
            }
            is_sums
        });
        let SweptRange { range, swept, .. } = done;
        let at = (range.file_id, range.first);
        // What the first run keeps need not be noted, and would be much.
        if let Some(part) = part.as_ref().filter(|_| self.change.ledger.runs() > 0) {
            let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            if keys.len() < most_stood(context) {
                keys.insert(at, part.key);
            }
        }
        let (part, own) = match part {
            Some(part) => (Some((part, swept)), None),
            None => (None, Some(swept)),
        };
        let complete = self.add(at, self.change.is_in_scope(range), part).map(|group| self.end(group));
        match (complete, own) {
            (Some(mut complete), Some(own)) => {
                complete.merge(own);
                complete.sums.gather(context.space);
                Some(complete)
            }
            (complete, own) => complete.or(own),
        }
    }
}

/// The merged sums of parts, as bytes.
pub(super) fn merged(context: &Context<'_>, keys: &[PartKey], all: &mut Swept<Sums>) -> Result<Vec<u8>, SumsError> {
    all.put_in_order(context);
    encoded(context, &head_of(keys), all)
}

fn encoded(context: &Context<'_>, head: &[u8], swept: &Swept<Sums>) -> Result<Vec<u8>, SumsError> {
    let mut bytes = Vec::with_capacity(PART_BYTES);
    let mut to = Output::new(&context.hash, head, context.space, &mut bytes);
    swept.put(&mut to)?;
    to.finish()?;
    Ok(bytes)
}

/// Writes the sums of a range; the sums are in order afterwards.
pub(super) fn part_of(context: &Context<'_>, key: PartKey, swept: &mut Swept<Sums>) -> Result<Part, SumsError> {
    swept.put_in_order(context);
    let bounds = swept.sums.trees.take_bounds();
    let sums = encoded(context, &key.to_bytes(), swept);
    let (mut packed, head) = (Vec::with_capacity(PART_BYTES), bounds_head(&key));
    let mut to = Output::new(&context.hash, &head, context.space, &mut packed);
    let written = bounds.iter().try_for_each(|run| run.write(&mut to)).and_then(|()| to.finish());
    swept.sums.trees.add_bounds(bounds);
    swept.sums.gather(context.space);
    written.and_then(|()| Ok(Part { key, sums: sums?, bounds: packed, extents: Vec::new() }))
}

impl Change<'_> {
    /// Whether the sums contain everything about their pages, and follow from these pages alone.
    fn is_complete(&self, Swept { tallies, sums }: &Swept<Sums>) -> bool {
        tallies.pages_allocated > 0
            && !self.context.survey.has_missed()
            && tallies.unclaimed_pages == 0
            && !tallies.has_unread_shared
            && tallies.unread.is_empty()
            && tallies.taken.is_empty()
            && tallies.units.touched().all(|(_, tally)| tally.lost_pages() == 0)
            && !sums.indexes.depend_on_other_pages()
            && self.checks.last_checkpoint.has_all(&sums.last_checkpoint)
    }

    /// Whether a part of this range may be kept, as far as its maps say.
    pub(super) fn may_keep(&self, range: FileRange) -> bool {
        self.inputs.of_range(self.context, self.checks, range).is_some()
    }

    /// The part of a range, if a later run may use it. The part has no sums if something was found in the range, or if a page
    /// could not be read; what is known from before needs no such part.
    fn part(&self, done: &mut SweptRange<Sums>) -> Option<Part> {
        let (maps, meaning) = self.inputs.of_range(self.context, self.checks, done.range)?;
        let tallies = &done.swept.tallies;
        let has_bad = tallies.units.touched().any(|(_, tally)| tally.bad_pages > 0);
        if done.has_findings || has_bad || !tallies.unread.is_empty() {
            let key = PartKey { range: done.range, above: PartKey::FOUND, maps, meaning };
            let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            let is_known = found.contains(PageId::new(done.range.file_id, done.range.first));
            return (!is_known).then(|| Part { key, sums: Vec::new(), bounds: Vec::new(), extents: Vec::new() });
        }
        let above = done.above.filter(|_| self.is_complete(&done.swept))?;
        let key = PartKey { range: done.range, above, maps, meaning };
        self.promises.note(done.range, maps, &done.extents, most_stood(self.context));
        let part = part_of(self.context, key, &mut done.swept).ok()?;
        Some(Part { extents: promise::written(&done.extents), ..part })
    }
}
