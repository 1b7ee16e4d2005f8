//! B-trees: order of keys, links between pages, key bounds. For each page, the sweep adds the links of the page to
//! sums. If the sums of a tree differ, a second look at the tree finds the damaged pages.

pub(crate) mod bounds;
mod levels;
mod links;
mod page;
mod page_filter;
mod pinpoint;
mod pinpoint_facts;
mod reach;
mod role;

use findings::Finding;
use findings::registry::limits;
use format::key::Ascent;
use sums::spill::Fact;

use crate::basis::ledger::FindingCollector;
use crate::basis::meaning::Meaning;
use crate::basis::outcome::Results;
use crate::basis::tallies::{Tallies, UnitTally};
use crate::basis::units::{Unit, UnitIndex};
use crate::sweep::context::Context;
use crate::sweep::page_check::{PageCheck, SoundPage};
use crate::sweep::pinpoint::second_look;

pub(crate) use levels::PageBounds;
use levels::{LevelSums, NodePage, Sums, TreeLevel, TreeSums};
use page::{child, level_of};

/// Bytes per tree page that the facts about the page need in temporary files.
pub(crate) const FACT_BYTES_PER_PAGE: usize = PageBounds::BYTES;

/// The check of B-trees.
#[derive(Default)]
pub(crate) struct Trees;

impl PageCheck for Trees {
    type Sums = Sums;
    /// Buffers for checking the keys of pages whose rows all have the same form.
    type Scratch = Ascent;

    fn sums(&self, units: usize) -> Sums {
        Sums::new(units)
    }

    fn wants(&self, context: &Context<'_>, unit: &Unit) -> bool {
        context.checks_tree(unit)
    }

    fn meaning(&self, _: &mut Meaning<'_>) {}

    fn page(
        &self,
        context: &Context<'_>,
        sound: &SoundPage<'_>,
        (sums, ascent): (&mut Sums, &mut Ascent),
        findings: &mut Vec<Finding>,
    ) {
        page::add(context, sound, sums, ascent, findings);
    }

    fn bound(&self, context: &Context<'_>, sums: &mut Sums) {
        sums.bound(context);
    }

    fn end_batch(&self, context: &Context<'_>, swept: &mut Tallies, sums: &mut Sums, findings: &mut FindingCollector) {
        links::join_neighbors(context, sums);
        if context.options.physical_only {
            return;
        }
        match context.ranges.is_empty() {
            true => bounds::check(context, swept, sums, findings),
            false => bounds::check_between_parts(context, swept, sums, findings),
        }
    }

    fn end_part(&self, context: &Context<'_>, sums: &mut Sums, findings: &mut FindingCollector) {
        bounds::check_part(context, sums, findings);
    }

    fn settle(
        &self,
        context: &Context<'_>,
        judged: &[UnitIndex],
        swept: &mut Tallies,
        sums: &mut Sums,
        to: &mut Results<'_>,
    ) {
        if context.options.physical_only {
            return;
        }
        note(context, swept, sums, to);
        let differs = |index: &UnitIndex| {
            let at = *index as usize;
            let (unit, tree, tally) = (context.units.get(*index), sums.units.get(at), swept.units.get(at));
            let (Some(unit), Some(tree), Some(tally)) = (unit, tree, tally) else { return false };
            context.checks_tree(unit)
                && match unit.compressed {
                    false => !links::is_sound(context, *index, tree, tally.bad_pages),
                    true => !links::chains_agree(tree),
                }
        };
        let suspects = judged.iter().copied().filter(differs).collect();
        second_look(context, &suspects, swept, to, pinpoint::tree);
    }
}

/// Notes what could not be verified in B-trees.
fn note(context: &Context<'_>, swept: &Tallies, sums: &Sums, to: &mut Results<'_>) {
    // Key bounds that could not be stored were not compared.
    if context.space.error().is_some() {
        let pages = swept.units.iter().map(UnitTally::pages).sum();
        to.coverage.note(&limits::TREE_KEY_BOUNDS_LOST, "database", pages);
    }
    for (at, tally) in swept.units.touched().filter(|(_, tally)| tally.pages() > 0) {
        let index = at as UnitIndex;
        let is_asked_for = |unit: &&Unit| context.in_scope(unit) && context.checks_tree(unit);
        let Some(unit) = context.units.get(index).filter(is_asked_for) else { continue };
        let place = || context.place_of(unit);
        let undecided = sums.units.get(at).map_or(0, |tree| tree.undecided);
        if undecided > 0 {
            to.coverage.note(&limits::TREE_KEY_ORDER_COLLATION, place(), undecided);
        }
        if tally.unaudited_entries > 0 && unit.compressed {
            to.coverage.note(&limits::TREE_COMPRESSED_ENTRIES, place(), tally.unaudited_entries);
        }
        if context.keys(index).is_none() {
            to.coverage.note(&limits::TREE_COLUMNS_UNKNOWN, place(), tally.rows);
        }
    }
}
