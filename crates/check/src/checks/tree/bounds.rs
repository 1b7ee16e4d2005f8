//! Key bounds. All keys of a page must lie between two entries of its parent: the entry that names the page, and the
//! next entry (8933, 8934).
//!
//! For the first and last key of each page, the sweep keeps an image: the start of the key, in a fixed size. The
//! non-leaf pages, about one page in a hundred, are read again. The keys themselves are compared only if the images do
//! not decide the order.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering as Memory};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use findings::{Finding, registry};
use format::key::{self, KeyImage};
use format::record::Record;
use format::{Page, PageBytes, PageId};
use sums::PerUnit;
use sums::spill::{Found, Run, Window, Windows};
use sums::wire::limit_of;

use crate::basis::ledger::FindingCollector;
use crate::basis::tallies::Tallies;
use crate::basis::units::{Unit, UnitIndex};
use crate::checks::tree::levels::bounds_per_window;
use crate::checks::tree::page::{bounds_of, key_hash};
use crate::checks::tree::page_filter::PageFilter;
use crate::checks::tree::{NodePage, PageBounds, Sums, TreeSums, child};
use crate::page::page_records::record;
use crate::survey::PageSet;
use crate::sweep::context::{Context, Keys};
use crate::sweep::page_check::SoundPage;
use crate::sweep::pinpoint;
use crate::sweep::settled::Children;
use crate::sweep::{Target, crew};

/// The most pages that are noted for a later run. If there are as many, it compares all.
pub(crate) const MOST_OPEN: usize = 1 << 16;

/// Selects which children of a page are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Children in the same range as the page. If the database is swept as a whole, these are all children.
    Own,
    /// Children in other ranges.
    Apart,
}

/// Checks the children of every non-leaf page, after the sweep of the whole database or of a batch.
pub(super) fn check(context: &Context<'_>, swept: &mut Tallies, sums: &mut Sums, findings: &mut FindingCollector) {
    let nodes = std::mem::take(&mut sums.nodes);
    each_window(context, Which::Own, (sums, &nodes), findings, |_, _| {});
    end(swept, sums);
}

/// Checks the children that are in the same part as their parent. Children whose parents are in other parts are checked
/// later, so their bounds are kept.
pub(super) fn check_part(context: &Context<'_>, sums: &mut Sums, findings: &mut FindingCollector) {
    let limit = limit_of::<PageBounds>(context.space);
    let nodes = std::mem::take(&mut sums.nodes);
    let mut rest = Run::default();
    each_window(context, Which::Own, (sums, &nodes), findings, |window, checked| {
        for bounds in window.facts().filter(|bounds| !checked.contains(bounds.page)) {
            rest.push(bounds);
            rest.bound(limit, context.space);
        }
    });
    (sums.nodes, sums.bounds) = (nodes, vec![rest]);
}

/// Checks the children that are not in the same part as their parent. Called after all parts are merged.
pub(super) fn check_between_parts(
    context: &Context<'_>,
    swept: &mut Tallies,
    sums: &mut Sums,
    findings: &mut FindingCollector,
) {
    let nodes = std::mem::take(&mut sums.nodes);
    let unreadable = each_window(context, Which::Apart, (sums, &nodes), findings, |_, _| {});
    // If the sweep could not read some page of a unit, this unit already counts as unread. So only units without unread
    // pages are added.
    let is_new = |unit: &UnitIndex| swept.units.get(*unit as usize).is_some_and(|tally| tally.unseen_pages() == 0);
    sums.unread.extend(unreadable.into_iter().filter(is_new));
    end(swept, sums);
}

/// Counts one more unread page for each unit that has pages which could not be read again. This marks the unit as only
/// partly read.
fn end(swept: &mut Tallies, sums: &mut Sums) {
    for unit in std::mem::take(&mut sums.unread) {
        if let Some(tally) = swept.units.get_mut(unit as usize) {
            tally.unread_pages += 1;
        }
    }
}

/// Checks the children of non-leaf pages, for one window of key bounds at a time. Calls `then` with each window and
/// with the pages whose bounds have been compared so far. Returns the units with children that could not be read again.
fn each_window(
    context: &Context<'_>,
    which: Which,
    (sums, nodes): (&mut Sums, &[Run<NodePage>]),
    findings: &mut FindingCollector,
    mut then: impl FnMut(&Window<'_, PageBounds>, &PageSet),
) -> BTreeSet<UnitIndex> {
    let mut unreadable = BTreeSet::new();
    let Sums { units, bounds, unread, open, .. } = sums;
    let mut windows = Windows::new(std::mem::take(bounds), bounds_per_window(context), context.space);
    let mut checked = PageSet::of_ranges(context.range.into_iter().collect());
    while let Some(window) = windows.advance() {
        let pages = pages(context, &window);
        let (findings, unreadable, checked_now) = (&mut *findings, &mut unreadable, &mut checked);
        let outcome = Mutex::new(Outcome {
            findings,
            trees: &mut *units,
            unread: &mut *unread,
            open: &mut *open,
            unreadable,
            checked: checked_now,
        });
        let next = AtomicUsize::new(0);
        let look = || {
            let (last, target) = (Found::default(), Target::default());
            let mut checker = Checker { context, which, bounds: &window, last, target, outcome: &outcome };
            while let Some(run) = nodes.get(next.fetch_add(1, Memory::Relaxed)) {
                run.each(context.space, |node| {
                    let children = if which == Which::Own { node.children } else { node.apart };
                    if children.meets(pages) {
                        checker.node_if_open(&node);
                    }
                });
            }
        };
        let threads = nodes.iter().filter(|run| !run.is_small()).count().min(context.options.threads());
        thread::scope(|scope| {
            // The calling thread also checks the pages of threads that could not be started.
            crew::start(scope, (1..threads).map(|_| look));
            look();
        });
        then(&window, &checked);
    }
    unreadable
}

/// The pages to which a window extends.
fn pages(context: &Context<'_>, window: &Window<'_, PageBounds>) -> PageFilter {
    let (start, end) = window.ends();
    if start.is_none() && end.is_none() {
        return PageFilter::ALL;
    }
    let mut pages = PageFilter::default();
    for file in &context.survey.files {
        let is_from = start.is_none_or(|start| start.file <= file.file_id);
        if is_from && end.is_none_or(|end| file.file_id <= end.file) {
            let first = start.filter(|start| start.file == file.file_id).map_or(0, |start| start.page);
            let last = end.filter(|end| end.file == file.file_id).map_or(file.pages, |end| end.page);
            pages.merge(PageFilter::of_range(file.file_id, first, last));
        }
    }
    pages
}

struct Checker<'a> {
    context: &'a Context<'a>,
    which: Which,
    bounds: &'a Window<'a, PageBounds>,
    /// The position at which the bounds of the previous child were found. The bounds of the next child are usually
    /// stored right after this position, unless the index is fragmented.
    last: Found,
    target: Target,
    outcome: &'a Mutex<Outcome<'a>>,
}

/// The results, shared by all threads.
struct Outcome<'a> {
    findings: &'a mut FindingCollector,
    trees: &'a mut PerUnit<TreeSums>,
    /// Units with pages that could not be read again.
    unread: &'a mut BTreeSet<UnitIndex>,
    /// Pages that a later run must compare with their children again.
    open: &'a mut BTreeSet<PageId>,
    /// Units with a page for which no bounds were kept and that could not be read again to determine its bounds.
    unreadable: &'a mut BTreeSet<UnitIndex>,
    /// Pages whose bounds were compared; recorded only when a part is checked.
    checked: &'a mut PageSet,
}

/// An entry of a parent, which bounds the keys of a child.
struct Separator<'a> {
    record: Record<'a>,
    image: KeyImage,
    page: PageId,
    slot: u16,
    /// The child that the entry names.
    child: Option<PageId>,
}

/// A child of a page, and the entries of the page between which the keys of the child must lie.
struct Child<'a> {
    id: PageId,
    unit_index: UnitIndex,
    unit: &'a Unit,
    keys: &'a Keys,
    /// The entry that names the child; `None` for the first entry of the page.
    low: Option<&'a Separator<'a>>,
    /// The next entry of the page; `None` for the last entry.
    high: Option<&'a Separator<'a>>,
}

impl<'a> Checker<'a> {
    fn outcome(&self) -> MutexGuard<'a, Outcome<'a>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bounds_of(&mut self, page: PageId, unit: UnitIndex) -> Option<PageBounds> {
        let known = self.bounds.get(page, &mut self.last);
        if self.which == Which::Apart && known.is_none() && self.bounds.contains(page) {
            // There are two possible reasons why no bounds were kept for the page. Either another parent, in the page's
            // own part, also names the page, and the page was checked there. Or the page has no bounds.
            return self.bounds_read_again(page, unit);
        }
        known.filter(|bounds| bounds.unit == unit)
    }

    fn bounds_read_again(&mut self, id: PageId, unit: UnitIndex) -> Option<PageBounds> {
        let context = self.context;
        match pinpoint::look_at_content(context, &mut self.target, id) {
            Err(_) => {
                // If the sweep failed to read the page too, the unit already counts as unread, and the caller ignores
                // this entry.
                if context.survey.owner(id) == Some(unit) && !context.survey.is_shared(id) {
                    self.outcome().unreadable.insert(unit);
                }
                None
            }
            Ok(found) => {
                let (index, content, bytes) = found.filter(|(index, ..)| *index == unit)?;
                let (page, records) = (Page::new(&bytes), &self.target.records);
                let unit = context.units.get(index)?;
                bounds_of(context, &SoundPage { index, unit, id, page, content: &content, records })
            }
        }
    }

    /// Reads a page again that the sweep found sound.
    fn read(&mut self, page: PageId, unit: UnitIndex) -> Option<Box<PageBytes>> {
        let found = pinpoint::sound(self.context, &mut self.target, unit, page).ok().flatten();
        if found.is_none() {
            self.outcome().unread.insert(unit);
        }
        found
    }

    /// Compares a page with those of its children that no earlier run has compared with it.
    fn node_if_open(&mut self, node: &NodePage) {
        let Some(settled) = &self.context.settled else {
            self.node(node, Children::All);
            return;
        };
        let wanted = settled.children(node.page, node.reach.stretches());
        if wanted != Children::None && !self.node(node, wanted) {
            let open = &mut *self.outcome().open;
            if open.len() < MOST_OPEN {
                open.insert(node.page);
            }
        }
    }

    /// Compares a page with its children. Returns whether all comparisons were decided, without a finding.
    fn node(&mut self, node: &NodePage, wanted: Children) -> bool {
        let context = self.context;
        // Without keys nothing can be compared, in no run with the same catalog.
        let (Some(unit), Some(keys)) = (context.units.get(node.unit), context.keys(node.unit)) else { return true };
        let Some(bytes) = self.read(node.page, node.unit) else { return false };
        let page = Page::new(&bytes);
        let spans = self.target.records.spans().to_vec();
        // The last child has no upper bound here. This bound would be the first entry of the next page on the level,
        // but it is not proven that this entry has a key. For the same reason, the first entry of this page is not used
        // as a lower bound.
        let mut next = None;
        let mut is_settled = true;
        let is_wanted = |child: &PageId| match &context.settled {
            Some(settled) if wanted == Children::Changed => settled.changed.contains(*child),
            _ => true,
        };
        for (slot, span) in spans.iter().enumerate().rev() {
            let Some(entry) = record(page, *span) else { return false };
            let (image, child) = (KeyImage::of(&entry, &keys.node), child(page, *span));
            let separator = Separator { record: entry, image, page: node.page, slot: slot as u16, child };
            let of_range = |child: &PageId| context.ranges.are_apart(node.page, *child) == (self.which == Which::Apart);
            if let Some(id) = child.filter(of_range).filter(is_wanted) {
                let low = (slot > 0).then_some(&separator);
                let of_page = Child { id, unit_index: node.unit, unit, keys, low, high: next.as_ref() };
                is_settled &= self.child(&of_page);
            }
            next = Some(separator);
        }
        is_settled
    }

    /// Compares a child with its parent. Returns whether both comparisons were decided, without a finding. The result of a
    /// child of another window does not count.
    fn child(&mut self, child: &Child<'_>) -> bool {
        // These are checked:
        // 1. The first key of the child is not below the entry that names the child (8933). The first entry of a page
        //    need not have a key, so it is no bound.
        // 2. The last key of the child is below the next entry (8934).
        // Images of the keys decide most orders. If they leave an order open or violate a bound, the child is read again
        // and the keys themselves are compared. An order that is still open is counted as undecided.
        let &Child { id, unit_index, unit, keys, low, high } = child;
        let Some(bounds) = self.bounds_of(id, unit_index) else { return !self.bounds.contains(id) };
        if self.context.range.is_some() {
            self.outcome().checked.insert(id);
        }
        let hash_of = |separator: &Separator<'_>| key_hash(&self.context.hash, &separator.record, &keys.node);
        let is_first_key = |separator| bounds.low_hash.is_some() && bounds.low_hash == hash_of(separator);
        let mut low_order = low.map(|separator| {
            let order = bounds.low.compare(&separator.image);
            order.or_else(|| is_first_key(separator).then_some(Ordering::Equal))
        });
        let mut high_order = high.map(|separator| bounds.high.compare(&separator.image));
        let undecided = |order: &Option<Option<Ordering>>| matches!(order, Some(None));
        let mut level = 0;
        let violated = low_order.flatten() == Some(Ordering::Less)
            || matches!(high_order.flatten(), Some(Ordering::Greater | Ordering::Equal));
        if undecided(&low_order) || undecided(&high_order) || violated {
            let Some(bytes) = self.read(id, unit_index) else { return false };
            let page = Page::new(&bytes);
            level = page.header().level;
            let leaf = unit.shape.is_leaf(page);
            let columns = keys.of(leaf);
            let records = self.target.records.spans();
            let first_slot = usize::from(!leaf);
            let first = records.get(first_slot).and_then(|span| record(page, *span));
            let last = records.last().and_then(|span| record(page, *span));
            // If the order of row addresses is uncertain, either order is accepted.
            let exact = |record: Option<Record<'_>>, separator: &Separator<'_>, right: Ordering| {
                let (record, other) = (record?, &separator.record);
                let is_doubt = || key::locators_ascend_bytewise(&record, columns, other, &keys.node).is_some();
                key::compare_across(&record, columns, other, &keys.node).or_else(|| is_doubt().then_some(right))
            };
            low_order = low.map(|separator| exact(first, separator, Ordering::Greater));
            high_order = high.map(|separator| exact(last, separator, Ordering::Less));
        }
        let count = u64::from(undecided(&low_order)) + u64::from(undecided(&high_order));
        if count > 0
            && let Some(tree) = self.outcome().trees.get_mut(unit_index as usize)
        {
            tree.undecided += count;
        }
        let mut is_settled = count == 0;
        if let (Some(separator), Some(Ordering::Less)) = (low, low_order.flatten()) {
            is_settled = false;
            self.outcome().findings.push(
                Finding::new(&registry::TREE_LOW_KEY)
                    .owner(unit.owner)
                    .page(id)
                    .ref_at(separator.page, separator.slot)
                    .number("level", level),
            );
        }
        if let (Some(separator), Some(Ordering::Greater | Ordering::Equal)) = (high, high_order.flatten()) {
            is_settled = false;
            let next_page = separator.child.unwrap_or(PageId::NONE);
            self.outcome().findings.push(
                Finding::new(&registry::TREE_HIGH_KEY)
                    .owner(unit.owner)
                    .page(id)
                    .ref_at(separator.page, separator.slot)
                    .number("level", level)
                    .page_value("other_page", next_page),
            );
        }
        is_settled
    }
}

#[cfg(test)]
mod tests;
