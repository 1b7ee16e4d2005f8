//! Checks the links of one B-tree fact by fact, and chooses the message that CHECKDB prints for each missing link
//! (docs/format/checkdb.md#logical-checks).
//!
//! Each page yields facts about itself, its right neighbor and its children. All facts are sorted by the page that the
//! fact is about. So each page can be checked independently, even if many pages are damaged.

use findings::{Finding, Owner, registry};
use format::{Page, PageId};
use sums::spill::Sorter;

use super::pinpoint_facts::{End, EndKind, LinkFact, LinkKind};
use super::role::{Role, role};
use crate::basis::ledger::FindingCollector;
use crate::basis::units::{Shape, UnitIndex};
use crate::checks::tree::{TreeLevel, child, level_of};
use crate::page::page_records::PageRecords;
use crate::survey::PageSet;
use crate::sweep::Target;
use crate::sweep::context::Context;
use crate::sweep::pinpoint::{PageRange, Unread, for_each_sound, look, sound};

/// A parent entry that names a page.
#[derive(Clone, Copy)]
struct Parent {
    page: PageId,
    slot: u16,
    /// The page that precedes the named page in the order of the parent entries; [`PageId::NONE`] if no page precedes
    /// it. `None` if the non-leaf page that names the preceding page was not seen.
    prev_child: Option<PageId>,
    /// The level of the parent page. For the root, which the catalog names, there is no parent page, and the value is
    /// usually `None`. But if the root contains rows although its level number is that of a non-leaf page, the value is
    /// the level directly above the leaf level.
    level: Option<TreeLevel>,
}

struct Tree<'a> {
    context: &'a Context<'a>,
    index: UnitIndex,
    stretch: PageRange,
    owner: Owner,
    shape: Shape,
    root: PageId,
    /// Whether it is known how entries name their children. It is unknown for compressed trees.
    entries_are_known: bool,
}

/// Reports the faults in the links of a B-tree.
///
/// # Errors
///
/// [`Unread`] if a page cannot be read. If this page belongs to the tree, no fault is reported. If only links from the
/// tree name this page, the other faults of the tree are still reported.
pub(crate) fn tree(
    context: &Context<'_>,
    index: UnitIndex,
    stretch: PageRange,
    findings: &mut FindingCollector,
) -> Result<(), Unread> {
    let Some(unit) = context.units.get(index) else { return Ok(()) };
    let tree = Tree {
        context,
        index,
        stretch,
        owner: unit.owner,
        shape: unit.shape,
        root: context.root(unit),
        entries_are_known: !unit.compressed,
    };
    let mut judged = PageLinks::of(PageId::NONE);
    let mut read = Ok(());
    for LinkFact { about, what } in tree.gather()?.into_sorted() {
        if about != judged.page {
            read = read.and(tree.close(&judged, findings));
            judged = PageLinks::of(about);
        }
        read = read.and(tree.hear(&mut judged, what, findings));
    }
    read.and(tree.close(&judged, findings))
}

/// The facts about the current page, in the order of [`LinkKind`].
struct PageLinks {
    page: PageId,
    /// The level, previous page and next page of the page, if it exists in the tree.
    seen: Option<(TreeLevel, PageId, PageId)>,
    /// The first two entries that name the page.
    parents: [Option<Parent>; 2],
    /// The first page whose next pointer names the page.
    left: Option<PageId>,
    /// For a page that does not exist in this tree but belongs to another unit: the owner and the previous page of the
    /// page. The outer `None` means that this was not looked up yet; the inner `None` means that no other unit has the
    /// page.
    elsewhere: Option<Result<Option<(Owner, PageId)>, Unread>>,
}

impl PageLinks {
    fn of(page: PageId) -> Self {
        Self { page, seen: None, parents: [None; 2], left: None, elsewhere: None }
    }
}

impl Tree<'_> {
    fn finding(&self, check: &'static registry::Check, page: PageId) -> Finding {
        Finding::new(check).owner(self.owner).page(page)
    }

    /// A sorter that uses half of the memory for facts, because two sorters are in use at a time.
    fn sorter<T: sums::spill::Item>(&self) -> Sorter<T> {
        Sorter::new(self.context.bytes_for_facts() / 2, self.context.space)
    }

    /// Calls `visit` with each child that the entries of a page name, and with the slot of the entry.
    fn children(&self, page: Page<'_>, records: &PageRecords, mut visit: impl FnMut(u16, PageId)) {
        if self.names_children(page) {
            let children = records.spans().iter().filter_map(|span| child(page, *span));
            children.zip(0..).for_each(|(child, slot)| visit(slot, child));
        }
    }

    fn names_children(&self, page: Page<'_>) -> bool {
        let is_node = matches!(role(self.context, self.index, page), Role::Node | Role::Misplaced { is_node: true });
        self.entries_are_known && is_node
    }

    /// Collects the facts from all pages of the tree.
    fn gather(&self) -> Result<Sorter<LinkFact>, Unread> {
        let leaves = self.leaves_with_entries()?;
        let (mut said, mut ends) = (self.sorter(), self.sorter());
        let mut above_root = None;
        for_each_sound(self.context, self.index, self.stretch, |id, page, records| {
            let header = page.header();
            let (level, prev, next) = (level_of(page), header.prev(), header.next());
            said.push(LinkFact { about: id, what: LinkKind::Seen { level, prev, next } });
            if !next.is_none() {
                said.push(LinkFact { about: next, what: LinkKind::Left { by: id, level } });
            }
            if id == self.root && role(self.context, self.index, page) == (Role::Misplaced { is_node: false }) {
                // The root contains rows, so it is a leaf. The level above it must be the level above a leaf, whatever
                // level number the root has.
                above_root = Some(TreeLevel::Index(1));
            }
            if leaves.as_ref().is_some_and(|leaves| leaves.contains(id)) {
                return;
            }
            let mut prev_child = None;
            self.children(page, records, |slot, child| {
                match prev_child {
                    // Only the entries of the left neighbor show which child precedes the first child of this page.
                    None if !prev.is_none() => {
                        ends.push(End { of: prev, what: EndKind::Wanted { child, by: id, slot, level } });
                    }
                    None | Some(_) => {
                        let prev_child = Some(prev_child.unwrap_or(PageId::NONE));
                        said.push(LinkFact {
                            about: child,
                            what: LinkKind::Parent { by: id, slot, prev_child, level: Some(level) },
                        });
                    }
                }
                prev_child = Some(child);
            });
            if let Some(last) = prev_child {
                ends.push(End { of: id, what: EndKind::LastChild(last) });
            }
        })?;
        if !self.root.is_none() {
            let prev_child = Some(PageId::NONE);
            said.push(LinkFact {
                about: self.root,
                what: LinkKind::Parent { by: PageId::NONE, slot: 0, prev_child, level: above_root },
            });
        }
        let mut last = None;
        for End { of, what } in ends.into_sorted() {
            match what {
                EndKind::LastChild(child) => last = Some((of, child)),
                EndKind::Wanted { child, by, slot, level } => {
                    let prev_child = last.filter(|(page, _)| *page == of).map(|(_, child)| child);
                    said.push(LinkFact {
                        about: child,
                        what: LinkKind::Parent { by, slot, prev_child, level: Some(level) },
                    });
                }
            }
        }
        Ok(said)
    }

    /// Returns the pages that are leaves because of their depth below the root. Their records must not be read as
    /// entries, whatever the level number of the page is. `None` for a clustered index, in which the page type shows
    /// which pages are leaves.
    fn leaves_with_entries(&self) -> Result<Option<PageSet>, Unread> {
        if self.shape != Shape::Nonclustered {
            return Ok(None);
        }
        let files = &self.context.survey.files;
        // These sets contain pages with entries. `nodes` contains the pages that have not been reached yet. `level`
        // contains the pages on the current level, and `below` contains the pages on the level below.
        let (mut nodes, mut level) = (PageSet::new(files), PageSet::new(files));
        let mut number = None;
        for_each_sound(self.context, self.index, self.stretch, |id, page, _| {
            if self.names_children(page) {
                nodes.insert(id);
            }
            if id == self.root {
                number = Some(page.header().level);
            }
        })?;
        if nodes.remove(self.root) {
            level.insert(self.root);
        }
        let mut target = Target::default();
        for _ in 0..number.unwrap_or_default() {
            let mut below = PageSet::new(files);
            for id in level.iter() {
                let Some(bytes) = sound(self.context, &mut target, self.index, id)? else { continue };
                self.children(Page::new(&bytes), &target.records, |_, child| {
                    if nodes.remove(child) {
                        below.insert(child);
                    }
                });
            }
            level = below;
        }
        // If the level number of the root is 0, the root counts as a leaf page, and no set is returned. Whether the
        // level number is right is not checked here.
        Ok(number.filter(|number| *number > 0).map(|_| level))
    }

    /// Stores one fact about a page. A fact about a next pointer is also checked against the facts that arrived before.
    fn hear(&self, judged: &mut PageLinks, what: LinkKind, findings: &mut FindingCollector) -> Result<(), Unread> {
        match what {
            LinkKind::Seen { level, prev, next } => judged.seen = Some((level, prev, next)),
            LinkKind::Parent { by, slot, prev_child, level } => {
                let parent = Parent { page: by, slot, prev_child, level };
                if let Some(free) = judged.parents.iter_mut().find(|parent| parent.is_none()) {
                    *free = Some(parent);
                }
            }
            LinkKind::Left { by, level } => {
                judged.left = judged.left.or(Some(by));
                match judged.seen {
                    Some(seen) => self.with_left(judged.page, seen, by, level, findings),
                    None => self.unseen_next(judged, by, findings)?,
                }
            }
        }
        Ok(())
    }

    /// Checks a page when all facts about it have been stored.
    fn close(&self, judged: &PageLinks, findings: &mut FindingCollector) -> Result<(), Unread> {
        match judged.seen {
            Some((level, prev, next)) => self.seen(judged, level, prev, next, findings),
            None => findings.extend(self.unseen(judged)?),
        }
        Ok(())
    }

    /// Checks a page that exists in the tree.
    fn seen(&self, judged: &PageLinks, level: TreeLevel, prev: PageId, next: PageId, findings: &mut FindingCollector) {
        let page = judged.page;
        let has_left = judged.left.is_some();
        match judged.parents {
            _ if !self.entries_are_known => {
                if !has_left && !prev.is_none() {
                    findings.push(self.finding(&registry::TREE_PREV_UNSEEN, page).ref_page(prev));
                }
            }
            [None, _] => {
                // If no page names this page as its next page, the reference from a previous page is missing too, unless
                // the page is the leftmost page of its level. A leftmost page names a next page, but no previous page. A page that names neither looks like
                // a root that the catalog does not name.
                let alone = !has_left && (!prev.is_none() || next.is_none());
                findings.push(if alone {
                    self.finding(&registry::TREE_UNREFERENCED, page).ref_page(prev)
                } else {
                    self.finding(&registry::TREE_PARENT_UNSEEN, page)
                });
            }
            [Some(parent), None] => self.with_parent(page, level, prev, parent, has_left, findings),
            [Some(first), Some(second)] => findings.push(
                self.finding(&registry::TREE_TWO_PARENTS, page)
                    .ref_at(first.page, first.slot)
                    .page_value("other_page", second.page)
                    .number("other_slot", second.slot),
            ),
        }
    }

    /// Checks a page that exists in the tree and that the next pointer of another page names.
    fn with_left(
        &self,
        page: PageId,
        (level, prev, _): (TreeLevel, PageId, PageId),
        left: PageId,
        left_level: TreeLevel,
        findings: &mut FindingCollector,
    ) {
        if prev != left {
            let finding = self.finding(&registry::TREE_CHAIN_LINKAGE, page);
            findings.push(finding.ref_page(left).page_value("found_prev", prev));
        }
        if number(left_level) != number(level) {
            findings.push(
                self.finding(&registry::TREE_LEVEL_SIBLING, page)
                    .ref_page(left)
                    .number("level", number(level))
                    .number("ref_level", number(left_level)),
            );
        }
    }

    fn with_parent(
        &self,
        page: PageId,
        level: TreeLevel,
        prev: PageId,
        parent: Parent,
        has_left: bool,
        findings: &mut FindingCollector,
    ) {
        let as_expected = parent.prev_child.is_none_or(|expected| expected == prev);
        if !as_expected {
            findings.push(
                self.finding(&registry::TREE_PREV_NOT_AS_PARENT, page)
                    .ref_at(parent.page, parent.slot)
                    .page_value("found_prev", prev)
                    .page_value("expected_prev", parent.prev_child.unwrap_or(PageId::NONE)),
            );
        }
        if !has_left && as_expected && !prev.is_none() {
            findings.push(self.finding(&registry::TREE_PREV_UNSEEN, page).ref_page(prev));
        }
        if let Some(above) = parent.level.filter(|above| !self.is_one_below(level, *above)) {
            findings.push(
                self.finding(&registry::TREE_LEVEL_PARENT, page)
                    .ref_page(parent.page)
                    .number("level", number(level))
                    .number("ref_level", number(above)),
            );
        }
    }

    /// Whether a page on level `level` may be a child of a page on level `above`. The lowest index level of a clustered
    /// tree may be 0 or 1 (docs/format/README.md#level-of-the-lowest-index-pages).
    fn is_one_below(&self, level: TreeLevel, above: TreeLevel) -> bool {
        match (self.shape, level, above) {
            (Shape::Clustered, TreeLevel::Data(0), TreeLevel::Index(0 | 1)) => true,
            (_, TreeLevel::Index(level), TreeLevel::Index(above)) => level.checked_add(1) == Some(above),
            _ => false,
        }
    }

    /// The finding for a page that does not exist in the tree although parent entries name it. The finding names the
    /// first of these entries as evidence.
    fn unseen(&self, judged: &PageLinks) -> Result<Option<Finding>, Unread> {
        let page = judged.page;
        let Some(parent) = judged.parents[0] else { return Ok(None) };
        if !parent.page.is_none()
            && let Some((other, prev)) = judged.elsewhere.unwrap_or_else(|| self.elsewhere(page))?
        {
            return Ok(Some(self.child_of_other(page, parent, other, prev)));
        }
        let (check, other) = match judged.left {
            Some(left) => (&registry::TREE_CHILD_UNSEEN, left),
            None => (&registry::TREE_CHILDREN_UNSEEN, parent.prev_child.unwrap_or(PageId::NONE)),
        };
        let finding = self.finding(check, page).ref_at(parent.page, parent.slot);
        Ok(Some(finding.page_value("other_page", other)))
    }

    /// Reports a page that does not exist in the tree but that a next pointer names.
    fn unseen_next(&self, judged: &mut PageLinks, left: PageId, findings: &mut FindingCollector) -> Result<(), Unread> {
        let page = judged.page;
        let elsewhere = *judged.elsewhere.get_or_insert_with(|| self.elsewhere(page));
        match elsewhere? {
            Some((other, _)) => {
                findings.push(self.finding(&registry::TREE_NEXT_OF_OTHER, page).ref_page(left).other_owner(other))
            }
            None if judged.parents[0].is_none() => {
                findings.push(self.finding(&registry::TREE_NEXT_UNSEEN, page).ref_page(left));
            }
            None => {}
        }
        Ok(())
    }

    fn child_of_other(&self, page: PageId, parent: Parent, other: Owner, prev: PageId) -> Finding {
        let check =
            if prev.is_none() { &registry::TREE_CHILD_OF_OTHER } else { &registry::TREE_PARENT_AND_NEXT_OF_OTHER };
        let finding = self.finding(check, page).ref_at(parent.page, parent.slot).other_owner(other);
        if prev.is_none() { finding } else { finding.page_value("other_page", prev) }
    }

    /// The owner and the previous page of a page, if it is a sound page of another unit. `None` for any other page.
    fn elsewhere(&self, page: PageId) -> Result<Option<(Owner, PageId)>, Unread> {
        let Some(owner) = self.context.unit_of(page) else { return Ok(None) };
        let found = look(self.context, &mut Target::default(), page)?;
        Ok(found.filter(|(unit, _)| *unit == owner).and_then(|(unit, bytes)| {
            let owner = self.context.units.get(unit)?.owner;
            (owner != self.owner).then(|| (owner, Page::new(&bytes).header().prev()))
        }))
    }
}

fn number(level: TreeLevel) -> u8 {
    match level {
        TreeLevel::Data(level) | TreeLevel::Index(level) => level,
    }
}

#[cfg(test)]
mod tests;
