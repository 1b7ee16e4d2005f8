//! What a sweep adds up. Everything merges in any order.

use std::collections::BTreeMap;

use format::PageId;
use format::bytes::{u8_at, u32_at, u64_at};
use format::key::{IMAGE_BYTES, KeyImage};

use crate::context::Context;
use crate::finding::Finding;
use crate::hash::Sum;
use crate::per_unit::PerUnit;
use crate::spill::{Fact, Run};
use crate::taken::Taken;
use crate::units::UnitIndex;
use crate::{columns, computed, constraints, identity, index_match, lob, partitions};

/// The sums of one thread, or of all.
pub(crate) struct Partial {
    /// By unit ordinal.
    pub(crate) units: PerUnit<UnitTally>,
    /// What was found on single pages and not handed over yet.
    pub(crate) findings: Vec<Finding>,
    /// Non-leaf pages, a run a thread.
    pub(crate) nodes: Vec<Run<NodePage>>,
    /// Key bounds of index pages, a run a thread.
    pub(crate) bounds: Vec<Run<PageBounds>>,
    /// What rows say of their columns.
    pub(crate) columns: columns::Sums,
    /// What rows say of persisted computed columns.
    pub(crate) computed: computed::Sums,
    /// What rows and text pages say of off-row values.
    pub(crate) lob: lob::Sums,
    /// What rows say of the indexes of their table.
    pub(crate) indexes: index_match::Sums,
    /// What rows say of the constraints of their table.
    pub(crate) constraints: constraints::Sums,
    /// How rows lie to the boundaries of their partitions.
    pub(crate) partitions: partitions::Sums,
    /// Values of identity columns.
    pub(crate) identities: identity::Sums,
    /// Pages of extents that several units claim, of another unit than the first to claim them.
    pub(crate) taken: Taken,
    /// Pages that could not be read.
    pub(crate) unread: UnreadPages,
    /// Pages read.
    pub(crate) pages_read: u64,
    /// Pages in use.
    pub(crate) pages_allocated: u64,
    /// Pages in use that no unit claims.
    pub(crate) unclaimed_pages: u64,
    /// Of a page in an extent that several units claim it could not be read whose it is.
    pub(crate) has_unread_shared: bool,
}

/// What was seen of a unit.
#[derive(Clone, Default, Debug)]
pub(crate) struct UnitTally {
    /// Data pages that passed their audit.
    pub(crate) data_pages: u64,
    /// Index pages that did.
    pub(crate) index_pages: u64,
    /// Text pages that did.
    pub(crate) text_pages: u64,
    /// Pages that did not, or that carry another unit.
    pub(crate) bad_pages: u64,
    /// Pages that could not be read.
    pub(crate) unread_pages: u64,
    /// Pages of which nobody knows whether they are in use.
    pub(crate) unknown_pages: u64,
    /// Pages that a repair, reorganize, bulk load or sort was working on.
    pub(crate) pages_in_transit: u64,
    /// Pages of extents that another unit was the first to claim; after the sweep, those that cannot be found again.
    pub(crate) taken_pages: u64,
    /// Forwarded rows without a back pointer of the known form.
    pub(crate) unexplained_forwards: u64,
    /// Live rows of the leaf level.
    pub(crate) rows: u64,
    /// Ghost records of the leaf level.
    pub(crate) ghosts: u64,
    /// Forwarded rows.
    pub(crate) forwarded: u64,
    /// Rows whose insides were not audited.
    pub(crate) unaudited_rows: u64,
    /// Entries of non-leaf pages likewise.
    pub(crate) unaudited_entries: u64,
    /// Pages with a record of which nobody knows how the header counts it.
    pub(crate) uncounted_pages: u64,
    /// Rows of which some value is not in their record, as its compressed form is not known.
    pub(crate) doubtful_rows: u64,
    /// Neighbouring keys whose order is undecided.
    pub(crate) undecided: u64,
    /// Links of the B-tree.
    pub(crate) tree: TreeSums,
    /// Forwarding stubs.
    pub(crate) stubs: Sum,
    /// Back pointers of forwarded rows.
    pub(crate) forwards: Sum,
}

impl UnitTally {
    /// Pages that passed their audit.
    pub(crate) fn pages(&self) -> u64 {
        self.data_pages + self.index_pages + self.text_pages
    }

    /// Pages of which nothing was added: damaged, not read, or of a kind nobody knows; and those that cannot be found again.
    pub(crate) fn lost_pages(&self) -> u64 {
        self.bad_pages + self.unread_pages + self.unknown_pages + self.pages_in_transit + self.taken_pages
    }

    fn merge(&mut self, other: Self) {
        self.data_pages += other.data_pages;
        self.index_pages += other.index_pages;
        self.text_pages += other.text_pages;
        self.bad_pages += other.bad_pages;
        self.unread_pages += other.unread_pages;
        self.unknown_pages += other.unknown_pages;
        self.pages_in_transit += other.pages_in_transit;
        self.taken_pages += other.taken_pages;
        self.unexplained_forwards += other.unexplained_forwards;
        self.rows += other.rows;
        self.ghosts += other.ghosts;
        self.forwarded += other.forwarded;
        self.unaudited_rows += other.unaudited_rows;
        self.doubtful_rows += other.doubtful_rows;
        self.unaudited_entries += other.unaudited_entries;
        self.uncounted_pages += other.uncounted_pages;
        self.undecided += other.undecided;
        self.stubs.add(other.stubs);
        self.forwards.add(other.forwards);
        for (level, sums) in other.tree.levels {
            self.tree.level(level).merge(&sums);
        }
    }
}

/// A level of a tree: data pages, or index pages of a level number. Data pages of a level other than 0 stay apart, so
/// that no sum comes out right for them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum TreeLevel {
    /// Data pages.
    Data(u8),
    /// Index pages.
    Index(u8),
}

/// Sums over the links of a B-tree.
#[derive(Clone, Default, Debug)]
pub(crate) struct TreeSums {
    /// By level; a handful.
    pub(crate) levels: Vec<(TreeLevel, LevelSums)>,
}

impl TreeSums {
    /// The sums of a level, made if new.
    #[expect(clippy::indexing_slicing, reason = "the place of what was found, or put last")]
    pub(crate) fn level(&mut self, level: TreeLevel) -> &mut LevelSums {
        let position = match self.levels.iter().position(|(other, _)| *other == level) {
            Some(position) => position,
            None => {
                self.levels.push((level, LevelSums::default()));
                self.levels.len() - 1
            }
        };
        &mut self.levels[position].1
    }

    /// The sums of a level.
    pub(crate) fn get(&self, level: TreeLevel) -> LevelSums {
        self.levels.iter().find(|(other, _)| *other == level).map(|(_, sums)| *sums).unwrap_or_default()
    }
}

/// Sums over the pages of a level.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct LevelSums {
    /// Pages.
    pub(crate) pages: u64,
    /// The pages themselves.
    pub(crate) selves: Sum,
    /// Links by next pointers.
    pub(crate) next: Sum,
    /// Links by previous pointers.
    pub(crate) prev: Sum,
    /// Children that the pages name.
    pub(crate) children: Sum,
    /// Links between children that the order of entries within a page demands.
    pub(crate) child_links: Sum,
}

impl LevelSums {
    fn merge(&mut self, other: &Self) {
        self.pages += other.pages;
        self.selves.add(other.selves);
        self.next.add(other.next);
        self.prev.add(other.prev);
        self.children.add(other.children);
        self.child_links.add(other.child_links);
    }
}

/// Pages that could not be read: of each file the first, why, and how many.
#[derive(Clone, Default, Debug)]
pub(crate) struct UnreadPages(BTreeMap<u16, (PageId, String, u64)>);

impl UnreadPages {
    /// Adds a page.
    pub(crate) fn add(&mut self, page: PageId, why: impl FnOnce() -> String) {
        match self.0.get_mut(&page.file) {
            Some((first, error, pages)) => {
                *pages += 1;
                if page < *first {
                    (*first, *error) = (page, why());
                }
            }
            None => _ = self.0.insert(page.file, (page, why(), 1)),
        }
    }

    fn merge(&mut self, other: Self) {
        for (page, error, pages) in other.into_files() {
            self.add(page, || error);
            if let Some((.., all)) = self.0.get_mut(&page.file) {
                *all += pages - 1;
            }
        }
    }

    /// By file.
    pub(crate) fn into_files(self) -> impl Iterator<Item = (PageId, String, u64)> {
        self.0.into_values()
    }
}

/// A non-leaf page: one in a hundred, or one in ten where keys are long.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct NodePage {
    /// The unit.
    pub(crate) unit: UnitIndex,
    /// Level number in the header.
    pub(crate) level: u8,
    /// The page.
    pub(crate) page: PageId,
    /// Its left neighbour.
    pub(crate) prev: PageId,
    /// Child of its first entry.
    pub(crate) first_child: PageId,
    /// Child of its last entry.
    pub(crate) last_child: PageId,
    /// In which parts of the database it has children ([`crate::survey::Survey::part`]), a bit a part.
    pub(crate) child_parts: u64,
}

impl Fact for NodePage {
    const BYTES: usize = 4 + 1 + 4 * 6 + 8;

    fn page(&self) -> PageId {
        self.page
    }

    fn write(&self, bytes: &mut [u8]) {
        let pages = [self.page, self.prev, self.first_child, self.last_child];
        let pages = pages.into_iter().flat_map(|id| id.page.to_le_bytes().into_iter().chain(id.file.to_le_bytes()));
        let rest = self.child_parts.to_le_bytes().into_iter().chain(self.unit.to_le_bytes()).chain([self.level]);
        bytes.iter_mut().zip(pages.chain(rest)).for_each(|(to, from)| *to = from);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            page: PageId::read(bytes, 0)?,
            prev: PageId::read(bytes, 6)?,
            first_child: PageId::read(bytes, 12)?,
            last_child: PageId::read(bytes, 18)?,
            child_parts: u64_at(bytes, 24)?,
            unit: u32_at(bytes, 32)?,
            level: u8_at(bytes, 36)?,
        })
    }
}

/// First and last key of an index page, as images of fixed size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageBounds {
    /// The page.
    pub(crate) page: PageId,
    /// The unit.
    pub(crate) unit: UnitIndex,
    /// First key.
    pub(crate) low: KeyImage,
    /// Last key.
    pub(crate) high: KeyImage,
}

impl Fact for PageBounds {
    const BYTES: usize = 10 + 2 * (IMAGE_BYTES + 1);

    fn page(&self) -> PageId {
        self.page
    }

    fn write(&self, bytes: &mut [u8]) {
        let parts: [&[u8]; 5] = [
            &self.page.page.to_le_bytes(),
            &self.page.file.to_le_bytes(),
            &self.unit.to_le_bytes(),
            &self.low.to_bytes(),
            &self.high.to_bytes(),
        ];
        for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (low, high) = bytes.get(10..)?.split_at_checked(IMAGE_BYTES + 1)?;
        Some(Self {
            page: PageId::read(bytes, 0)?,
            unit: u32_at(bytes, 6)?,
            low: KeyImage::from_bytes(low.first_chunk()?),
            high: KeyImage::from_bytes(high.first_chunk()?),
        })
    }
}

impl Partial {
    /// Nothing yet, of `units` units.
    pub(crate) fn new(units: usize) -> Self {
        Self {
            units: PerUnit::new(units),
            findings: Vec::new(),
            nodes: vec![Run::default()],
            bounds: vec![Run::default()],
            columns: columns::Sums::new(units),
            computed: computed::Sums::default(),
            lob: lob::Sums::new(units),
            indexes: index_match::Sums::default(),
            constraints: constraints::Sums::default(),
            partitions: partitions::Sums::default(),
            identities: identity::Sums::default(),
            taken: Taken::default(),
            unread: UnreadPages::default(),
            pages_read: 0,
            pages_allocated: 0,
            unclaimed_pages: 0,
            has_unread_shared: false,
        }
    }

    /// Adds what another thread has.
    pub(crate) fn merge(&mut self, other: Self) {
        self.units.merge(other.units, UnitTally::merge);
        self.findings.extend(other.findings);
        self.nodes.extend(other.nodes);
        self.bounds.extend(other.bounds);
        self.columns.merge(other.columns);
        self.computed.merge(other.computed);
        self.lob.merge(other.lob);
        self.indexes.merge(other.indexes);
        self.constraints.merge(other.constraints);
        self.partitions.merge(other.partitions);
        self.identities.merge(other.identities);
        self.taken.merge(other.taken);
        self.unread.merge(other.unread);
        self.pages_read += other.pages_read;
        self.pages_allocated += other.pages_allocated;
        self.unclaimed_pages += other.unclaimed_pages;
        self.has_unread_shared |= other.has_unread_shared;
    }

    /// The pages of extents that several units claim, to be looked up.
    pub(crate) fn take_taken(&mut self) -> Taken {
        let taken = std::mem::take(&mut self.taken).sorted();
        if taken.is_whole() {
            self.units.touched_mut().for_each(|(_, tally)| tally.taken_pages = 0);
        }
        taken
    }

    /// Notes the key bounds of a page behind all noted before by this thread.
    pub(crate) fn note_bounds(&mut self, bounds: PageBounds) {
        if let Some(run) = self.bounds.first_mut() {
            run.push(bounds);
        }
    }

    /// Notes a non-leaf page behind all noted before by this thread.
    pub(crate) fn note_node(&mut self, node: NodePage) {
        if let Some(run) = self.nodes.first_mut() {
            run.push(node);
        }
    }

    /// Writes facts out of which the thread has as many as it may keep.
    pub(crate) fn bound(&mut self, context: &Context<'_>) {
        if let (Some(bounds), Some(nodes)) = (self.bounds.first_mut(), self.nodes.first_mut()) {
            bounds.bound(context.bounds_a_thread(), context.space);
            nodes.bound(context.nodes_a_thread(), context.space);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_non_leaf_page_comes_back_whole() {
        let page = |page| PageId::new(3, page);
        let node = NodePage {
            unit: 70_000,
            level: 7,
            page: page(u32::MAX),
            prev: PageId::NONE,
            first_child: page(5),
            last_child: page(6),
            child_parts: 1 << 63 | 1,
        };
        let mut bytes = [0; NodePage::BYTES];
        node.write(&mut bytes);
        assert_eq!(NodePage::read(&bytes), Some(node));
        assert_eq!(NodePage::read(&bytes[1..]), None);
    }
}
