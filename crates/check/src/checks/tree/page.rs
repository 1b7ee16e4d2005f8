//! Checks the order of the keys on one page of a B-tree. Adds the links of the page to the sums, and keeps the key
//! bounds of the page.

use std::cmp::Ordering;
use std::num::NonZero;

use findings::{Finding, registry};
use format::key::{self, Ascent, KeyColumn, KeyImage};
use format::record::{Record, RecordKind};
use format::slots::Span;
use format::{Page, PageId, PageType};
use sums::hash::FactHash;

use super::levels::{NodePage, PageBounds, Sums, TreeLevel};
use super::page_filter::PageFilter;
use super::reach::Reach;
use super::role::{Role, role};
use crate::page::rowsets::may_be_paused;
use crate::sweep::context::Context;
use crate::sweep::page_check::SoundPage;

/// The maximum number of pairs of keys in the wrong order that are listed per page. A larger number would not be
/// useful.
const MAX_PAIRS_PER_PAGE: u32 = 10;

/// The level of a page of a tree.
pub(super) fn level_of(page: Page<'_>) -> TreeLevel {
    match page.header().kind() {
        Some(PageType::Data) => TreeLevel::Data(page.header().level),
        _ => TreeLevel::Index(page.header().level),
    }
}

/// The child that an entry of a non-leaf page names, stored in the last six bytes of the fixed part
/// (docs/format/index-records.md#non-leaf-entries). `None` for the remains of a deleted entry, which are kept for row
/// versions and name no child.
pub(super) fn child(page: Page<'_>, span: Span) -> Option<PageId> {
    let bytes = span.of(page);
    if RecordKind::is_tag_alone(*bytes.first()?) {
        return None;
    }
    PageId::read(bytes, usize::from(page.header().pminlen.get()).checked_sub(6)?)
}

/// Adds a sound page of a tree to the sums.
pub(super) fn add(
    context: &Context<'_>,
    sound: &SoundPage<'_>,
    sums: &mut Sums,
    ascent: &mut Ascent,
    findings: &mut Vec<Finding>,
) {
    let SoundPage { index, unit, id, page, records, .. } = *sound;
    let header = page.header();
    let spans = records.spans();
    let hash = &context.hash;
    let role = role(context, index, page);
    let Some(tree) = sums.units.get_mut(index as usize) else { return };
    let level = tree.level(level_of(page));
    level.pages += 1;
    level.selves.add(hash.page(id));
    if !header.next().is_none() {
        level.next.add(hash.link(id, header.next()));
    }
    if !header.prev().is_none() {
        level.prev.add(hash.link(header.prev(), id));
    }
    // Databases of SQL Server 2000 may have empty leaf pages, so only an empty non-leaf page is reported.
    if spans.is_empty() && role != Role::Leaf {
        let number = header.level;
        findings.push(Finding::new(&registry::TREE_EMPTY_PAGE).owner(unit.owner).page(id).number("level", number));
        return;
    }
    // The children are unknown, because it is undocumented how compressed entries name their children.
    if role == Role::Node && unit.compressed {
        return;
    }
    if role == Role::Node {
        let mut left = None;
        let (mut children, mut apart) = (PageFilter::default(), PageFilter::default());
        for span in spans {
            let Some(child) = child(page, *span) else { continue };
            children.add(child);
            if context.ranges.are_apart(id, child) {
                apart.add(child);
            }
            level.children.add(hash.page(child));
            if let Some(left) = left {
                level.child_links.add(hash.link(left, child));
            }
            left = Some(child);
        }
        let ends = spans.first().zip(spans.last());
        if let Some((Some(first_child), Some(last_child))) = ends.map(|(a, b)| (child(page, *a), child(page, *b))) {
            sums.note_node(NodePage {
                unit: index,
                level: header.level,
                page: id,
                prev: header.prev(),
                first_child,
                last_child,
                children,
                apart,
                reach: Reach::of(spans.iter().filter_map(|span| self::child(page, *span))),
            });
        }
    }
    if !matches!(role, Role::Misplaced { .. }) {
        keys(context, sound, role == Role::Leaf, (sums, ascent), findings);
    }
}

/// Checks the order of the keys from slot to slot (messages 2511, 2512), and keeps the page's first and last key.
fn keys(
    context: &Context<'_>,
    sound: &SoundPage<'_>,
    is_leaf: bool,
    (sums, ascent): (&mut Sums, &mut Ascent),
    findings: &mut Vec<Finding>,
) {
    let SoundPage { index, page, records, .. } = *sound;
    let Some(keys) = context.keys(index) else { return };
    let columns = keys.of(is_leaf);
    let rows = records.same_shape(page).filter(|_| is_leaf);
    let together = rows.and_then(|rows| {
        let ends = (rows.record(0)?, rows.record(rows.count() - 1)?);
        Some((ascent.undecided(rows, columns)?, Some(ends)))
    });
    let one_by_one = || pairs(context, sound, (columns, is_leaf), findings);
    let (undecided, ends) = together.unwrap_or_else(one_by_one);
    if let Some(tree) = sums.units.get_mut(index as usize) {
        tree.undecided += undecided;
    }
    if let Some(ends) = ends
        && let Some(bounds) = bounds_between(context, sound, columns, ends)
    {
        sums.note_bounds(bounds);
    }
}

/// Returns the key bounds of a page, taken from the first and last record that have a key. They are compared with the
/// entries of the parent page after the sweep.
fn bounds_between(
    context: &Context<'_>,
    sound: &SoundPage<'_>,
    columns: &[KeyColumn],
    (first, last): (Record<'_>, Record<'_>),
) -> Option<PageBounds> {
    if sound.unit.compressed {
        return None;
    }
    let (low, high) = (KeyImage::of(&first, columns), KeyImage::of(&last, columns));
    let low_hash = if low.is_complete() { None } else { key_hash(&context.hash, &first, columns) };
    Some(PageBounds { page: sound.id, unit: sound.index, low, low_hash, high })
}

/// The hash of a whole key: keys with the same hash are equal. `None` if some value of the key is unknown.
pub(super) fn key_hash(hash: &FactHash, record: &Record<'_>, columns: &[KeyColumn]) -> Option<NonZero<u64>> {
    let mut hasher = hash.hasher();
    let is_known = key::each_value(record, columns, |value| match value {
        Some(bytes) => hasher.add_bytes(bytes),
        None => hasher.add_null(),
    });
    NonZero::new(hasher.finish().0).filter(|_| is_known)
}

/// The key bounds that the sweep keeps for a page; `None` if it keeps none.
pub(super) fn bounds_of(context: &Context<'_>, sound: &SoundPage<'_>) -> Option<PageBounds> {
    let role = role(context, sound.index, sound.page);
    let is_passed_over = sound.records.spans().is_empty() && role != Role::Leaf
        || role == Role::Node && sound.unit.compressed
        || matches!(role, Role::Misplaced { .. });
    if is_passed_over {
        return None;
    }
    let (keys, is_leaf) = (context.keys(sound.index)?, role == Role::Leaf);
    let columns = keys.of(is_leaf);
    let (_, ends) = pairs(context, sound, (columns, is_leaf), &mut Vec::new());
    bounds_between(context, sound, columns, ends?)
}

/// Checks the order of the keys pair by pair, which is possible for any page. Returns the number of undecided pairs,
/// and the first and last record that have a key.
fn pairs<'p>(
    context: &Context<'_>,
    &SoundPage { unit, id, page, records, .. }: &SoundPage<'p>,
    (columns, is_leaf): (&[KeyColumn], bool),
    findings: &mut Vec<Finding>,
) -> (u64, Option<(Record<'p>, Record<'p>)>) {
    // The first entry of a non-leaf level means "less than all keys", and its key is meaningless. On the other pages of
    // the level, the first entry should have a meaningful key. But no real tree of three levels was available to prove
    // this, so no first entry is compared.
    let first_slot = usize::from(!is_leaf);
    let (mut undecided, mut listed) = (0, 0);
    let (mut backwards, mut forwards) = (0, 0);
    let mut prior: Option<Record<'_>> = None;
    let mut ends: Option<(Record<'_>, Record<'_>)> = None;
    for slot in first_slot..records.spans().len() {
        let record = records.record(page, slot).filter(|record| record.kind() != RecordKind::GhostVersion);
        let Some(current) = record else { continue };
        if records.doubts(slot).any(|(null_bit, _)| columns.iter().any(|column| column.null_bit == null_bit)) {
            undecided += 1;
            prior = None;
            continue;
        }
        if let Some(prior) = prior {
            let found = match key::compare(&prior, &current, columns) {
                Some(Ordering::Less) => None,
                Some(Ordering::Greater) => Some(&registry::KEY_ORDER),
                // A deleted row may have the same key as a live row. Equal keys are an error only if neither record is
                // a ghost.
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
                && listed < MAX_PAIRS_PER_PAGE
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

/// The finding 2511 or 2512 for the records in `slot - 1` and `slot`.
fn pair(check: &'static registry::Check, owner: findings::Owner, id: PageId, slot: u16) -> Finding {
    Finding::new(check).owner(owner).at(id, slot.saturating_sub(1)).ref_at(id, slot)
}

#[cfg(test)]
mod tests {
    use format::key::KeyOrder;

    use super::*;

    #[test]
    fn each_bit_of_a_key_changes_its_hash_and_its_place_does_not() {
        let column =
            |offset, length| KeyColumn { order: KeyOrder::Unknown, offset, length, null_bit: 0, descending: false };
        let hash = FactHash::new(Some(3));
        let of = |key: &[u8], before: &[u8]| {
            let bytes = [&[6][..], before, key, &[7; 6]].concat();
            let record = Record::index(&bytes, bytes.len() as u16).unwrap();
            let start = 1 + before.len() as i16;
            key_hash(&hash, &record, &[column(start, 9), column(start + 9, 4)]).unwrap()
        };
        let key: Vec<u8> = (1..14).collect();
        assert_eq!(of(&key, &[]), of(&key, &[0; 3]));
        for bit in 0..8 * key.len() {
            let mut changed = key.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(of(&changed, &[]), of(&key, &[]), "bit {bit}");
        }
        let record = [6, 1, 2, 3, 4];
        let record = Record::index(&record, 5).unwrap();
        assert_eq!(key_hash(&hash, &record, &[column(1, 4), column(0, 4)]), None, "not stored");
    }
}
