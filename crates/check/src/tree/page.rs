//! A page of a B-tree: order of its keys, its links as terms of the sums, its key bounds.

use std::cmp::Ordering;

use format::key::{self, Ascent, KeyColumn, KeyImage};
use format::record::{Record, RecordKind};
use format::slots::Span;
use format::{Page, PageId, PageType};

use super::sums::{NodePage, PageBounds, TreeLevel};
use crate::context::Context;
use crate::finding::Finding;
use crate::page_role::Role;
use crate::registry;
use crate::rowsets::may_be_paused;
use crate::sweep::Target;
use crate::tallies::Tallies;
use crate::units::{Unit, UnitIndex};

/// Pairs of keys out of order that are listed of one page; more say nothing more.
const MAX_PAIRS_A_PAGE: u32 = 10;

/// The level of a page of a tree.
pub(crate) fn level_of(page: Page<'_>) -> TreeLevel {
    match page.header().kind() {
        Some(PageType::Data) => TreeLevel::Data(page.header().level),
        _ => TreeLevel::Index(page.header().level),
    }
}

/// The child that an entry of a non-leaf page names: the last six bytes of the fixed part
/// (docs/format/index-records.md#non-leaf-entries). What is left of a deleted entry for the sake of its versions names
/// none.
pub(crate) fn child(page: Page<'_>, span: Span) -> Option<PageId> {
    let bytes = span.of(page);
    if RecordKind::is_tag_alone(*bytes.first()?) {
        return None;
    }
    PageId::read(bytes, usize::from(page.header().pminlen.get()).checked_sub(6)?)
}

/// Adds a sound page of a tree to the sums.
pub(crate) fn page(
    context: &Context<'_>,
    unit_index: UnitIndex,
    id: PageId,
    page: Page<'_>,
    role: Role,
    (target, ascent): (&Target, &mut Ascent),
    partial: &mut Tallies,
) {
    let header = page.header();
    let spans = target.spans();
    let hash = &context.hash;
    let Some(unit) = context.units.get(unit_index) else { return };
    let Some(tally) = partial.units.get_mut(unit_index as usize) else { return };
    let sums = tally.tree.level(level_of(page));
    sums.pages += 1;
    sums.selves.add(hash.page(id));
    if !header.next().is_none() {
        sums.next.add(hash.link(id, header.next()));
    }
    if !header.prev().is_none() {
        sums.prev.add(hash.link(header.prev(), id));
    }
    // Databases of SQL Server 2000 may have empty leaf pages.
    if spans.is_empty() && role != Role::Leaf {
        let level = header.level;
        partial
            .findings
            .push(Finding::new(&registry::TREE_EMPTY_PAGE).owner(unit.owner).page(id).number("level", level));
        return;
    }
    // How compressed entries name their children nobody has published.
    if role == Role::Node && unit.compressed {
        return;
    }
    if role == Role::Node {
        let mut left = None;
        let mut child_parts = 0;
        for span in spans {
            let Some(child) = child(page, *span) else { continue };
            child_parts |= 1 << context.survey.part(child);
            sums.children.add(hash.page(child));
            if let Some(left) = left {
                sums.child_links.add(hash.link(left, child));
            }
            left = Some(child);
        }
        let ends = spans.first().zip(spans.last());
        if let Some((Some(first_child), Some(last_child))) = ends.map(|(a, b)| (child(page, *a), child(page, *b))) {
            partial.note_node(NodePage {
                unit: unit_index,
                level: header.level,
                page: id,
                prev: header.prev(),
                first_child,
                last_child,
                child_parts,
            });
        }
    }
    if !matches!(role, Role::Misplaced { .. }) {
        keys(context, unit_index, id, page, role == Role::Leaf, (target, ascent), partial);
    }
}

/// Order of the keys from slot to slot (2511, 2512), and the page's first and last key.
fn keys(
    context: &Context<'_>,
    unit_index: UnitIndex,
    id: PageId,
    page: Page<'_>,
    is_leaf: bool,
    (target, ascent): (&Target, &mut Ascent),
    partial: &mut Tallies,
) {
    let (Some(keys), Some(unit)) = (context.keys(unit_index), context.units.get(unit_index)) else { return };
    let columns = keys.of(is_leaf);
    let rows = target.uniform(page).filter(|_| is_leaf);
    let together = rows.and_then(|rows| {
        let ends = (rows.record(0)?, rows.record(rows.count() - 1)?);
        Some((ascent.undecided(rows, columns)?, Some(ends)))
    });
    let one_by_one = || pairs(context, unit, id, page, (columns, is_leaf), target, &mut partial.findings);
    let (undecided, ends) = together.unwrap_or_else(one_by_one);
    if let Some(tally) = partial.units.get_mut(unit_index as usize) {
        tally.undecided += undecided;
    }
    // Bounds are compared with entries of non-leaf pages.
    if let Some((first, last)) = ends.filter(|_| !unit.compressed) {
        partial.note_bounds(PageBounds {
            page: id,
            unit: unit_index,
            low: KeyImage::of(&first, columns),
            high: KeyImage::of(&last, columns),
        });
    }
}

/// Order of the keys of any page, pair by pair. How many pairs are undecided, and the first and last record that has a key.
fn pairs<'p>(
    context: &Context<'_>,
    unit: &Unit,
    id: PageId,
    page: Page<'p>,
    (columns, is_leaf): (&[KeyColumn], bool),
    target: &'p Target,
    findings: &mut Vec<Finding>,
) -> (u64, Option<(Record<'p>, Record<'p>)>) {
    // The first entry of a non-leaf level stands for "less than all"; its key means nothing. On other pages of the level
    // the first entry should have a key, but no real tree of three levels was at hand to prove it.
    let first_slot = usize::from(!is_leaf);
    let (mut undecided, mut listed) = (0, 0);
    let (mut backwards, mut forwards) = (0, 0);
    let mut prior: Option<Record<'_>> = None;
    let mut ends: Option<(Record<'_>, Record<'_>)> = None;
    for slot in first_slot..target.spans().len() {
        let record = target.record(page, slot).filter(|record| record.kind() != RecordKind::GhostVersion);
        let Some(current) = record else { continue };
        if target.doubts(slot).any(|(null_bit, _)| columns.iter().any(|column| column.null_bit == null_bit)) {
            undecided += 1;
            prior = None;
            continue;
        }
        if let Some(prior) = prior {
            let found = match key::compare(&prior, &current, columns) {
                Some(Ordering::Less) => None,
                Some(Ordering::Greater) => Some(&registry::KEY_ORDER),
                // A deleted row may keep the key of a living one only where both are ghosts of the same key's history.
                Some(Ordering::Equal) if is_leaf && !is_ghost(&prior) && !is_ghost(&current) => {
                    let rowset = unit.rowset.and_then(|rowset| context.database.rowsets.get(rowset));
                    let is_built = rowset.is_none_or(|rowset| !may_be_paused(context.database, rowset));
                    is_built.then_some(&registry::KEY_DUPLICATE)
                }
                Some(Ordering::Equal) => None,
                None => {
                    match key::locators_ascend_bytewise(&prior, columns, &current, columns) {
                        Some(false) => backwards += 1,
                        Some(true) => forwards += 1,
                        None => undecided += 1,
                    }
                    None
                }
            };
            if let Some(check) = found
                && listed < MAX_PAIRS_A_PAGE
            {
                listed += 1;
                findings.push(pair(check, unit.owner, id, slot as u16));
            }
        }
        prior = Some(current);
        ends = Some((ends.map_or(current, |(first, _)| first), current));
    }
    (undecided + backwards.min(forwards), ends)
}

fn is_ghost(record: &Record<'_>) -> bool {
    matches!(record.kind(), RecordKind::GhostIndex | RecordKind::GhostData | RecordKind::GhostVersion)
}

/// 2511 and 2512 name the slots `slot - 1` and `slot`.
fn pair(check: &'static registry::Check, owner: crate::Owner, id: PageId, slot: u16) -> Finding {
    Finding::new(check).owner(owner).at(id, slot.saturating_sub(1)).ref_at(id, slot)
}
