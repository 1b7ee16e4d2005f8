//! The links of one B-tree, fact by fact: which message CHECKDB prints for what is missing (checkdb.md 1.3).

use std::collections::{BTreeMap, BTreeSet};

use format::{Page, PageId};

use super::for_each_sound;
use crate::context::Context;
use crate::finding::{Finding, Owner};
use crate::registry;
use crate::sweep::{Role, Target, TreeLevel, Verdict, child, level_of, role};
use crate::units::{Shape, UnitIndex};

/// What a page says of itself.
struct Fact {
    level: TreeLevel,
    prev: PageId,
    next: PageId,
    /// Children in order; empty for a leaf.
    children: Vec<PageId>,
}

/// A parent entry that names a page.
#[derive(Clone, Copy)]
struct Parent {
    page: PageId,
    slot: u16,
    /// The child before; `None` when the page that would name it was not seen.
    prev_child: Option<PageId>,
}

struct Tree<'a> {
    context: &'a Context<'a>,
    owner: Owner,
    shape: Shape,
    root: PageId,
    /// How entries name their children is known: not in compressed trees.
    entries_are_known: bool,
    pages: BTreeMap<PageId, Fact>,
    parents: BTreeMap<PageId, Vec<Parent>>,
    /// Pages whose next pointer names a page.
    siblings: BTreeMap<PageId, Vec<PageId>>,
    findings: Vec<Finding>,
}

/// Names what is wrong with the links of a B-tree.
pub(crate) fn tree(context: &Context<'_>, index: UnitIndex, pages: &[PageId]) -> Vec<Finding> {
    let Some(unit) = context.units.get(index) else { return Vec::new() };
    let mut tree = Tree {
        context,
        owner: unit.owner,
        shape: unit.shape,
        root: context.root(unit),
        entries_are_known: !unit.compressed,
        pages: BTreeMap::new(),
        parents: BTreeMap::new(),
        siblings: BTreeMap::new(),
        findings: Vec::new(),
    };
    for_each_sound(context, index, pages, |id, page, target| {
        let header = page.header();
        let children = if !tree.entries_are_known {
            Vec::new()
        } else if matches!(role(context, index, page), Role::Node | Role::Misplaced { is_node: true }) {
            target.spans().iter().filter_map(|span| child(page, *span)).collect()
        } else {
            Vec::new()
        };
        let fact = Fact { level: level_of(page), prev: header.prev(), next: header.next(), children };
        tree.pages.insert(id, fact);
    });
    tree.forget_entries_of_leaves();
    tree.gather();
    let targets: BTreeSet<PageId> =
        tree.pages.keys().chain(tree.parents.keys()).chain(tree.siblings.keys()).copied().collect();
    for page in targets {
        if tree.pages.contains_key(&page) { tree.seen(page) } else { tree.unseen(page) }
    }
    tree.findings
}

impl Tree<'_> {
    fn finding(&self, check: &'static registry::Check, page: PageId) -> Finding {
        Finding::new(check).owner(self.owner).page(page)
    }

    /// Pages that by their place below the root are leaves name no children, whatever their level number says.
    fn forget_entries_of_leaves(&mut self) {
        if self.shape != Shape::Nonclustered {
            return;
        }
        let mut reached = BTreeSet::new();
        let mut queue = vec![(self.root, None)];
        while let Some((page, expected_level)) = queue.pop() {
            let Some(fact) = self.pages.get_mut(&page).filter(|_| reached.insert(page)) else { continue };
            let level = expected_level.unwrap_or(number(fact.level));
            if expected_level == Some(0) {
                fact.children.clear();
            }
            if let Some(below) = level.checked_sub(1) {
                queue.extend(fact.children.iter().map(|child| (*child, Some(below))));
            }
        }
    }

    /// Turns pointers into facts about the pages they name.
    fn gather(&mut self) {
        if !self.root.is_none() {
            let parent = Parent { page: PageId::NONE, slot: 0, prev_child: Some(PageId::NONE) };
            self.parents.entry(self.root).or_default().push(parent);
        }
        for (&page, fact) in &self.pages {
            if !fact.next.is_none() {
                self.siblings.entry(fact.next).or_default().push(page);
            }
            let mut prev_child = match fact.prev.is_none() {
                true => Some(PageId::NONE),
                false => self.pages.get(&fact.prev).and_then(|left| left.children.last().copied()),
            };
            for (slot, &child) in fact.children.iter().enumerate() {
                let parent = Parent { page, slot: slot as u16, prev_child };
                self.parents.entry(child).or_default().push(parent);
                prev_child = Some(child);
            }
        }
    }

    /// A page that exists.
    fn seen(&mut self, page: PageId) {
        let Some(fact) = self.pages.get(&page) else { return };
        let (level, prev, next) = (fact.level, fact.prev, fact.next);
        let parents = self.parents.get(&page).cloned().unwrap_or_default();
        let siblings = self.siblings.get(&page).cloned().unwrap_or_default();
        let mut found = Vec::new();
        match parents.as_slice() {
            _ if !self.entries_are_known => {
                if siblings.is_empty() && !prev.is_none() {
                    found.push(self.finding(&registry::TREE_PREV_UNSEEN, page).ref_page(prev));
                }
            }
            [] => {
                // Without neighbours it looks like a root that the catalogue does not name.
                let alone = siblings.is_empty() && (!prev.is_none() || next.is_none());
                found.push(if alone {
                    self.finding(&registry::TREE_UNREFERENCED, page).ref_page(prev)
                } else {
                    self.finding(&registry::TREE_PARENT_UNSEEN, page)
                });
            }
            [parent] => self.with_parent(page, level, prev, *parent, &siblings, &mut found),
            [first, second, ..] => found.push(
                self.finding(&registry::TREE_TWO_PARENTS, page)
                    .ref_at(first.page, first.slot)
                    .page_value("other_page", second.page)
                    .number("other_slot", second.slot),
            ),
        }
        for &left in &siblings {
            if prev != left {
                found.push(
                    self.finding(&registry::TREE_CHAIN_LINKAGE, page).ref_page(left).page_value("found_prev", prev),
                );
            }
            let left_level = self.pages.get(&left).map(|fact| number(fact.level));
            if let Some(left_level) = left_level.filter(|left_level| *left_level != number(level)) {
                found.push(
                    self.finding(&registry::TREE_LEVEL_SIBLING, page)
                        .ref_page(left)
                        .number("level", number(level))
                        .number("ref_level", left_level),
                );
            }
        }
        self.findings.extend(found);
    }

    fn with_parent(
        &self,
        page: PageId,
        level: TreeLevel,
        prev: PageId,
        parent: Parent,
        siblings: &[PageId],
        found: &mut Vec<Finding>,
    ) {
        let as_expected = parent.prev_child.is_none_or(|expected| expected == prev);
        if !as_expected {
            found.push(
                self.finding(&registry::TREE_PREV_NOT_AS_PARENT, page)
                    .ref_at(parent.page, parent.slot)
                    .page_value("found_prev", prev)
                    .page_value("expected_prev", parent.prev_child.unwrap_or(PageId::NONE)),
            );
        }
        if siblings.is_empty() && as_expected && !prev.is_none() {
            found.push(self.finding(&registry::TREE_PREV_UNSEEN, page).ref_page(prev));
        }
        if let Some(above) = self.pages.get(&parent.page)
            && !self.is_one_below(level, above.level)
        {
            found.push(
                self.finding(&registry::TREE_LEVEL_PARENT, page)
                    .ref_page(parent.page)
                    .number("level", number(level))
                    .number("ref_level", number(above.level)),
            );
        }
    }

    /// Whether a page of `level` may be a child of one of `above`. The lowest index level of a clustered tree may be 0
    /// or 1 (format.md 0, rule 4).
    fn is_one_below(&self, level: TreeLevel, above: TreeLevel) -> bool {
        match (self.shape, level, above) {
            (Shape::Clustered, TreeLevel::Data(0), TreeLevel::Index(0 | 1)) => true,
            (_, TreeLevel::Index(level), TreeLevel::Index(above)) => level.checked_add(1) == Some(above),
            _ => false,
        }
    }

    /// A page that others name and that does not exist in the tree.
    fn unseen(&mut self, page: PageId) {
        let parents = self.parents.get(&page).cloned().unwrap_or_default();
        let siblings = self.siblings.get(&page).cloned().unwrap_or_default();
        let elsewhere = self.elsewhere(page);
        let mut found = Vec::new();
        match (parents.first(), siblings.first()) {
            (Some(parent), _) if elsewhere.is_some() && !parent.page.is_none() => {
                if let Some((other, prev)) = elsewhere {
                    found.push(self.child_of_other(page, *parent, other, prev));
                }
            }
            (Some(parent), Some(left)) => found.push(
                self.finding(&registry::TREE_CHILD_UNSEEN, page)
                    .ref_at(parent.page, parent.slot)
                    .page_value("other_page", *left),
            ),
            (Some(parent), None) => found.push(
                self.finding(&registry::TREE_CHILDREN_UNSEEN, page)
                    .ref_at(parent.page, parent.slot)
                    .page_value("other_page", parent.prev_child.unwrap_or(PageId::NONE)),
            ),
            (None, _) => {}
        }
        if parents.is_empty() || elsewhere.is_some() {
            found.extend(siblings.iter().map(|left| match elsewhere {
                Some((other, _)) => {
                    self.finding(&registry::TREE_NEXT_OF_OTHER, page).ref_page(*left).other_owner(other)
                }
                None => self.finding(&registry::TREE_NEXT_UNSEEN, page).ref_page(*left),
            }));
        }
        self.findings.extend(found);
    }

    fn child_of_other(&self, page: PageId, parent: Parent, other: Owner, prev: PageId) -> Finding {
        let check =
            if prev.is_none() { &registry::TREE_CHILD_OF_OTHER } else { &registry::TREE_PARENT_AND_NEXT_OF_OTHER };
        let finding = self.finding(check, page).ref_at(parent.page, parent.slot).other_owner(other);
        if prev.is_none() { finding } else { finding.page_value("other_page", prev) }
    }

    /// The unit to which a page that is not in this tree soundly belongs, and its left neighbour there.
    fn elsewhere(&self, page: PageId) -> Option<(Owner, PageId)> {
        let owner = self.context.survey.owner(page)?;
        let mut bytes = self.context.source.read_page(page)?;
        match Target::default().look(self.context, page, &mut bytes) {
            Verdict::Sound(unit, _) if unit == owner => {
                let owner = self.context.units.get(unit)?.owner;
                (owner != self.owner).then(|| (owner, Page::new(&bytes).header().prev()))
            }
            _ => None,
        }
    }
}

fn number(level: TreeLevel) -> u8 {
    match level {
        TreeLevel::Data(level) | TreeLevel::Index(level) => level,
    }
}
