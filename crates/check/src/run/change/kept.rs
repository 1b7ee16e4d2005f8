//! Finds the parts of earlier runs whose inputs are the same now, and adds up their sums.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use findings::FileRange;
use format::PageId;
use sums::CheckSums;
use sums::names::{Names, Translation};
use sums::spill::Run as FactRun;
use sums::wire::{Digest, Input, SumsError, Wire};

use super::ledger::{Entry, KeptGroup, PartKey, Piece};
use super::states::{self, State, States};
use super::{Change, NotByChange, Reason, most_stood};
use crate::basis::progress::Progress;
use crate::checks::Sums;
use crate::checks::tree::PageBounds;
use crate::run::Run;
use crate::sweep::check_list::{CheckList, Swept};
use crate::sweep::settled::{Children, Marks, Settled};

/// The sums that were taken from earlier runs.
pub(super) struct Kept {
    pub(super) swept: Swept<Sums>,
    pub(super) states: States,
    /// The keys of the parts in use, of ranges that do not have a part of the first run in use now and at the latest run.
    pub(super) keys: BTreeMap<(u16, u32), PartKey>,
    pub(super) pages: u64,
}

/// Sums of an earlier run that are those of a sweep now.
pub(super) struct Found<'f> {
    /// The run, counted backwards.
    pub(super) run: usize,
    pub(super) fitting: Fitting<'f>,
    /// The group of which the parts are.
    pub(super) group: &'f mut dyn KeptGroup,
    pub(super) translation: &'f Translation,
    pub(super) swept: Swept<Sums>,
}

/// The parts from which the sums come.
#[derive(Clone, Copy)]
pub(super) enum Fitting<'f> {
    /// The merged sums of a group, of which all parts fit.
    Group(&'f [PartKey]),
    /// The sums of one part.
    Part(&'f PartKey),
}

impl Change<'_> {
    /// Adds up the parts of earlier runs whose inputs are the same now, without their key bounds.
    pub(super) fn kept(&self, run: &Run<'_>, states: States) -> Result<Kept, NotByChange> {
        let context = self.context;
        let (mut all, mut pages, mut keys) = (self.nothing(), 0, BTreeMap::new());
        let later_runs = self.ledger.runs().saturating_sub(1);
        let states = self.each_fitting(run.progress, states, |Found { run, fitting, swept, .. }| {
            pages += swept.tallies.pages_read;
            all.merge(swept);
            all.sums.gather(context.space);
            self.checks.bound(context, &mut all.sums);
            let of_parts = match fitting {
                Fitting::Group(keys) => keys,
                Fitting::Part(key) => std::slice::from_ref(key),
            };
            for key in of_parts {
                let stood = self.standing.as_ref().is_some_and(|standing| standing.has(key.range));
                // Without its key, a part of a later run counts as changed, which a part of the first run must not.
                if stood || run < later_runs && keys.len() < most_stood(context) {
                    keys.insert((key.range.file_id, key.range.first), *key);
                }
            }
            Ok(())
        })?;
        Ok(Kept { swept: all, states, keys, pages })
    }

    /// Calls `visit` with the sums of earlier runs whose inputs are the same now, once for each range.
    pub(super) fn each_fitting(
        &self,
        progress: &dyn Progress,
        mut states: States,
        mut visit: impl FnMut(Found<'_>) -> Result<(), NotByChange>,
    ) -> Result<States, NotByChange> {
        progress.phase("merge", 0);
        self.each_group(|run, translation, group| {
            let keys = group.keys().to_vec();
            let fitting = self.fitting(&keys, (run, translation.is_some()), &mut states);
            let Some(translation) = translation else { return Ok(()) };
            if fitting.len() == keys.len() && keys.len() > 1 {
                let swept = self.read(&head_of(&keys), translation, &group.read(Piece::All)?)?;
                if self.checks.last_checkpoint.has_all(&swept.sums.last_checkpoint) {
                    return visit(Found { run, fitting: Fitting::Group(&keys), group, translation, swept });
                }
            }
            for (at, key) in fitting {
                let swept = self.read(&key.to_bytes(), translation, &group.read(Piece::Sums(at))?)?;
                if self.checks.last_checkpoint.has_all(&swept.sums.last_checkpoint) {
                    visit(Found { run, fitting: Fitting::Part(&key), group: &mut *group, translation, swept })?;
                } else {
                    states.set(key.range, State::Other(Reason::Meaning));
                }
            }
            Ok(())
        })?;
        Ok(states)
    }

    /// The parts of a group whose inputs are the same now, of ranges for which no later run has such a part. Notes the
    /// states of their ranges. If the run was made under other conditions, none of its parts fits, but what it has found
    /// counts.
    fn fitting(&self, keys: &[PartKey], (run, is_alike): (usize, bool), states: &mut States) -> Vec<(usize, PartKey)> {
        let mut fitting = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            let Some(before) = states.get(key.range) else { continue };
            let mut state = before;
            // A range that is swept in any case is judged like one whose parts do not fit.
            if key.above == PartKey::FOUND && (state.may_be_kept() || state == State::Swept) {
                state.is_other(Reason::Findings);
                let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
                found.mark(PageId::new(key.range.file_id, key.range.first));
            } else if self.ledger.must_read_again(run) {
                state.is_other(Reason::Again);
            }
            if is_alike && state.may_be_kept() {
                match self.inputs.compare(self.context, self.checks, key, |range| self.above(range)) {
                    None => {
                        state = State::Kept(u16::try_from(run).unwrap_or(u16::MAX));
                        fitting.push((at, *key));
                    }
                    Some(reason) => state.is_other(reason),
                }
            }
            if state != before {
                states.set(key.range, state);
            }
        }
        fitting
    }

    /// Finds the parts whose inputs are the same now, without reading their sums.
    pub(super) fn find_kept(&self, progress: &dyn Progress) -> Result<States, NotByChange> {
        let mut states = States::of(self.context, self.range_pages);
        progress.phase("merge", 0);
        self.each_group(|of_run, translation, group| {
            self.fitting(group.keys(), (of_run, translation.is_some()), &mut states);
            Ok(())
        })?;
        Ok(states)
    }

    /// Adds up the sums of all parts that were found, with their key bounds. Returns the number of their pages.
    pub(super) fn merge_kept(
        &self,
        run: &Run<'_>,
        states: &mut States,
        all: &mut Swept<Sums>,
    ) -> Result<u64, NotByChange> {
        let mut pages = 0;
        run.progress.phase("merge", 0);
        self.each_group(|of_run, translation, group| {
            self.test_promises(group)?;
            let Some(translation) = translation else { return Ok(()) };
            let keys = group.keys().to_vec();
            let mut found = Vec::new();
            for (at, key) in keys.iter().enumerate() {
                // A run has swept each range once, so this is the part that was found.
                let state = states.get(key.range);
                let is_found = state.is_some_and(|state| matches!(state, State::Kept(of) if usize::from(of) == of_run));
                if is_found && self.inputs.compare_maps(self.context, self.checks, key).is_none() {
                    found.push((at, *key));
                }
            }
            let mut add = |mut swept: Swept<Sums>, of: &[(usize, PartKey)], group: &mut dyn KeptGroup| {
                if !self.checks.last_checkpoint.has_all(&swept.sums.last_checkpoint) {
                    return Ok::<_, NotByChange>(false);
                }
                for (at, key) in of {
                    let bounds = self.read_bounds(key, translation, &group.read(Piece::Bounds(*at))?)?;
                    swept.sums.trees.add_bounds(vec![bounds]);
                    states.set(key.range, State::Merged(u16::try_from(of_run).unwrap_or(u16::MAX)));
                }
                pages += swept.tallies.pages_read;
                all.merge(swept);
                all.sums.gather(self.context.space);
                self.checks.bound(self.context, &mut all.sums);
                Ok(true)
            };
            if found.len() == keys.len() && keys.len() > 1 {
                let swept = self.read(&head_of(&keys), translation, &group.read(Piece::All)?)?;
                if add(swept, &found, group)? {
                    return Ok(());
                }
            }
            for (at, key) in found {
                let swept = self.read(&key.to_bytes(), translation, &group.read(Piece::Sums(at))?)?;
                add(swept, &[(at, key)], group)?;
            }
            Ok(())
        })?;
        states.each_mut(|state| match *state {
            State::Merged(run) => *state = State::Kept(run),
            State::Kept(_) => *state = State::Other(Reason::Meaning),
            _ => {}
        });
        let broken = self.promises.broken();
        if broken.is_empty() { Ok(pages) } else { Err(NotByChange::Promise(broken)) }
    }

    /// Compares what this run has read again with what earlier runs have read.
    fn test_promises(&self, group: &mut dyn KeptGroup) -> Result<(), NotByChange> {
        for at in 0..group.keys().len() {
            let key = group.keys().get(at).copied().filter(|key| self.promises.is_of(key));
            if let Some(key) = key {
                self.promises.compare(&key, &group.read(Piece::Extents(at))?);
            }
        }
        Ok(())
    }

    /// Calls `visit` with each group that earlier runs have kept, the latest run first, and with the translation of its
    /// numbers, if the run was made under the same conditions.
    pub(super) fn each_group(
        &self,
        mut visit: impl FnMut(usize, Option<&Translation>, &mut dyn KeptGroup) -> Result<(), NotByChange>,
    ) -> Result<(), NotByChange> {
        let (mut runs, mut translation) = (0_usize, None);
        self.ledger.each(&mut |entry| {
            let group = match entry {
                Entry::Run(names) => {
                    runs += 1;
                    translation = self.translation(names)?;
                    return Ok(());
                }
                Entry::Group(group) => group,
            };
            // No part of a run that a state cannot name is used.
            let is_named = |run: usize| run < usize::from(states::MOST_RUNS);
            let of_run = |run| visit(run, translation.as_ref().filter(|_| is_named(run)), group);
            runs.checked_sub(1).map_or(Ok(()), of_run)
        })
    }

    /// The digest of the bytes of a range that do not come from the first set, if the latest run has read the same files.
    fn above(&self, range: FileRange) -> Option<Digest> {
        let standing = self.standing.as_ref().filter(|standing| standing.later.is_some())?;
        (standing.later == self.ledger.later_sets()).then(|| standing.above(range, self.stored_mask(range)?)).flatten()
    }

    /// How to translate the numbers of an earlier run; `None` if the run was made under other conditions.
    fn translation(&self, mut names: &[u8]) -> Result<Option<Translation>, NotByChange> {
        let context = self.context;
        let mut from = Input::new(&context.hash, RUN, (context.space, 0), &mut names);
        let (globals, names): (Digest, Names) = Wire::read(&mut from)?;
        from.finish()?;
        let is_same = globals == self.inputs.globals(context);
        Ok(is_same.then(|| Translation::new(&names, self.inputs.names())))
    }

    pub(super) fn read(
        &self,
        head: &[u8],
        translation: &Translation,
        mut part: &[u8],
    ) -> Result<Swept<Sums>, SumsError> {
        let context = self.context;
        let space = (context.space, context.units.list().len());
        let mut from = Input::new(&context.hash, head, space, &mut part).translated(translation);
        let swept = Swept::take(&mut from)?;
        from.finish()?;
        Ok(swept)
    }

    pub(super) fn read_bounds(
        &self,
        key: &PartKey,
        translation: &Translation,
        mut bounds: &[u8],
    ) -> Result<FactRun<PageBounds>, SumsError> {
        let (context, head) = (self.context, bounds_head(key));
        let space = (context.space, context.units.list().len());
        let mut from = Input::new(&context.hash, &head, space, &mut bounds).translated(translation);
        let bounds = Wire::read(&mut from)?;
        from.finish()?;
        Ok(bounds)
    }

    /// Adds the key bounds of the pages that must be compared with their parents or children.
    pub(super) fn add_bounds(&self, kept: &mut Kept, settled: &Settled) -> Result<(), NotByChange> {
        let context = self.context;
        let mut wanted = Marks::new(self.range_pages);
        kept.swept.sums.trees.each_reach(context.space, |page, reach| {
            if !settled.is_first && settled.children(page, reach.stretches()) == Children::All {
                let files = || context.survey.files.iter().map(|file| (file.file_id, file.pages));
                reach.stretches().for_each(|extents| wanted.mark_extents(extents, files()));
            }
        });
        let has_changed = |range: FileRange| settled.changed.contains(PageId::new(range.file_id, range.first));
        if !settled.is_first && wanted.is_empty() && !kept.states.kept().any(has_changed) {
            return Ok(());
        }
        self.each_group(|run, translation, group| {
            let Some(translation) = translation else { return Ok(()) };
            for at in 0..group.keys().len() {
                let Some(key) = group.keys().get(at).copied() else { break };
                let state = kept.states.get(key.range);
                let is_used = matches!(state, Some(State::Kept(of)) if usize::from(of) == run);
                let first = PageId::new(key.range.file_id, key.range.first);
                if is_used && (settled.is_first || wanted.contains(first) || settled.changed.contains(first)) {
                    let bounds = self.read_bounds(&key, translation, &group.read(Piece::Bounds(at))?)?;
                    let sums = &mut kept.swept.sums;
                    sums.trees.add_bounds(vec![bounds]);
                    sums.gather(context.space);
                    self.checks.bound(context, sums);
                }
            }
            Ok(())
        })
    }
}

/// The head with which the names of a run are encoded.
pub(super) const RUN: &[u8] = b"names of a run";

/// The head with which the merged sums of a group are encoded: they belong to exactly these parts.
pub(super) fn head_of(keys: &[PartKey]) -> Vec<u8> {
    let mut head = Vec::with_capacity(keys.len() * PartKey::BYTES);
    keys.iter().for_each(|key| head.extend_from_slice(&key.to_bytes()));
    head
}

/// The head with which the key bounds of a part are encoded.
pub(super) fn bounds_head(key: &PartKey) -> Vec<u8> {
    [&key.to_bytes()[..], b"bounds"].concat()
}
