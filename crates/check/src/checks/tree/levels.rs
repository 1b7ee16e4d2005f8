//! Sums over the pages of B-trees, and the facts that are kept about single pages.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::num::NonZero;

use format::PageId;
use format::bytes::{u8_at, u32_at, u64_at};
use format::key::{IMAGE_BYTES, KeyImage};
use sums::hash::Sum;
use sums::spill::{Fact, Run, TempStore, page_to};
use sums::wire::{Input, Output, SumsError, Wire, limit_of, wire};
use sums::{CheckSums, Merge, PerUnit, sums};

use super::page_filter::PageFilter;
use super::reach::Reach;
use crate::basis::units::UnitIndex;
use crate::sweep::context::Context;

/// A level of a tree. It consists either of data pages or of index pages, all with the same level number. Data pages
/// must have level number 0. Data pages with another number are kept as a level of their own, so that the comparison of
/// the sums finds them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum TreeLevel {
    /// Data pages with this level number.
    Data(u8),
    /// Index pages with this level number.
    Index(u8),
}

sums! {
    /// The sums that one thread adds up, or the merged sums of all threads.
    pub(crate) struct Sums {
        /// The sums of each unit, indexed by ordinal.
        pub(super) units: PerUnit<TreeSums>,
        /// Non-leaf pages, one run per thread.
        pub(super) nodes: Vec<Run<NodePage>>,
        /// Key bounds of the pages of B-trees, one run per thread.
        pub(super) bounds: Vec<Run<PageBounds>>,
        /// Units with pages that could not be read again when key bounds were compared.
        pub(super) unread: BTreeSet<UnitIndex>,
        /// Non-leaf pages that a later run must compare with their children again, because not all comparisons were
        /// decided without a finding. Only known if the sums of ranges are kept.
        pub(crate) open: BTreeSet<PageId>,
    }
}

impl Sums {
    /// Empty sums for this number of units.
    pub(super) fn new(units: usize) -> Self {
        Self {
            units: PerUnit::new(units),
            nodes: vec![Run::default()],
            bounds: vec![Run::default()],
            unread: BTreeSet::new(),
            open: BTreeSet::new(),
        }
    }

    /// Writes facts to temporary files if the thread has reached its limit. Key bounds may use twelve sixteenths of the
    /// memory for facts, and non-leaf pages one sixteenth. The remaining three sixteenths are reserved for reading
    /// facts back later: by then, the threads have released their memory, but the operating system may not have
    /// reclaimed it yet.
    pub(super) fn bound(&mut self, context: &Context<'_>) {
        let (share, threads) = (context.bytes_for_facts() / 16, context.options.threads());
        if let (Some(bounds), Some(nodes)) = (self.bounds.first_mut(), self.nodes.first_mut()) {
            bounds.bound(share * 12 / size_of::<PageBounds>() / threads, context.space);
            nodes.bound(share / size_of::<NodePage>() / threads, context.space);
        }
    }

    /// Adds the key bounds of a page. Each thread adds its pages in ascending order.
    pub(super) fn note_bounds(&mut self, bounds: PageBounds) {
        if let Some(run) = self.bounds.first_mut() {
            run.push(bounds);
        }
    }

    /// Takes the key bounds of the pages out of the sums.
    pub(crate) fn take_bounds(&mut self) -> Vec<Run<PageBounds>> {
        std::mem::replace(&mut self.bounds, vec![Run::default()])
    }

    /// Adds key bounds of other pages.
    pub(crate) fn add_bounds(&mut self, bounds: Vec<Run<PageBounds>>) {
        self.bounds.extend(bounds);
    }

    /// Calls `visit` with each non-leaf page and with the extents of its children.
    pub(crate) fn each_reach(&self, space: &TempStore, mut visit: impl FnMut(PageId, Reach)) {
        self.nodes.iter().for_each(|run| run.each(space, |node| visit(node.page, node.reach)));
    }

    /// Adds a non-leaf page. Each thread adds its pages in ascending order.
    pub(super) fn note_node(&mut self, node: NodePage) {
        if let Some(run) = self.nodes.first_mut() {
            run.push(node);
        }
    }
}

impl CheckSums for Sums {
    fn put_in_order(&mut self, space: &TempStore) {
        self.units.touched_mut().for_each(|(_, tree)| tree.levels.sort_unstable_by_key(|(level, _)| *level));
        self.nodes = vec![Run::in_order(std::mem::take(&mut self.nodes), limit_of::<NodePage>(space), space)];
        self.bounds = vec![Run::in_order(std::mem::take(&mut self.bounds), limit_of::<PageBounds>(space), space)];
    }

    fn gather(&mut self, space: &TempStore) {
        join(&mut self.nodes, space);
        join(&mut self.bounds, space);
    }

    fn facts(&self, space: &TempStore) -> impl Debug + '_ {
        let mut units: Vec<_> = self.units.touched().map(|(at, tree)| (at, tree.clone())).collect();
        units.iter_mut().for_each(|(_, tree)| tree.levels.sort_by_key(|(level, _)| *level));
        let (mut nodes, mut bounds) = (Vec::new(), Vec::new());
        self.nodes.iter().for_each(|run| run.each(space, |node| nodes.push(node)));
        nodes.sort_unstable();
        self.bounds.iter().for_each(|run| run.each(space, |bound| bounds.push(bound)));
        bounds.sort_by_key(|bound| (bound.page, bound.low.to_bytes(), bound.high.to_bytes()));
        (units, nodes, bounds)
    }
}

/// Appends all runs to the first run.
fn join<F: Fact>(runs: &mut Vec<Run<F>>, space: &TempStore) {
    if let Some((all, others)) = runs.split_first_mut() {
        others.iter().for_each(|other| all.append(other, limit_of::<F>(space), space));
        runs.truncate(1);
    }
}

/// The number of key bounds that are read back per window; they use three sixteenths of the memory for facts.
pub(super) fn bounds_per_window(context: &Context<'_>) -> usize {
    context.bytes_for_facts() / 16 * 3 / size_of::<PageBounds>()
}

/// Sums over the links of one B-tree.
#[derive(Clone, Default, Debug)]
pub(crate) struct TreeSums {
    /// The sums of each level. A tree has only a few levels.
    pub(crate) levels: Vec<(TreeLevel, LevelSums)>,
    /// Number of pairs of adjacent keys whose order is undecided.
    pub(crate) undecided: u64,
}

impl TreeSums {
    /// The sums of a level, created if they do not exist.
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

    /// The sums of a level; empty if they do not exist.
    pub(crate) fn get(&self, level: TreeLevel) -> LevelSums {
        self.levels.iter().find(|(other, _)| *other == level).map(|(_, sums)| *sums).unwrap_or_default()
    }
}

wire!(TreeSums { levels, undecided });

impl Merge for TreeSums {
    fn merge(&mut self, other: Self) {
        let Self { levels, undecided } = other;
        self.undecided.merge(undecided);
        for (level, sums) in levels {
            self.level(level).merge(sums);
        }
    }
}

/// A level is encoded as a number for the type of its pages, followed by the level number.
impl Wire for TreeLevel {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        match *self {
            Self::Data(number) => (0u8, number).write(to),
            Self::Index(number) => (1u8, number).write(to),
        }
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        match Wire::read(from)? {
            (0u8, number) => Ok(Self::Data(number)),
            (1, number) => Ok(Self::Index(number)),
            _ => Err(from.damaged("a level")),
        }
    }
}

sums! {
    /// Sums over the pages of a level.
    #[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
    pub(crate) struct LevelSums {
        /// Number of pages.
        pub(crate) pages: u64,
        /// Sum of the page IDs.
        pub(crate) selves: Sum,
        /// Sum of the links given by next pointers.
        pub(crate) next: Sum,
        /// Sum of the links given by previous pointers.
        pub(crate) prev: Sum,
        /// Sum of the IDs of the children that the entries name.
        pub(crate) children: Sum,
        /// Sum of the links between children that follow from the order of the entries.
        pub(crate) child_links: Sum,
    }
}

/// A non-leaf page. About one page in a hundred is a non-leaf page; if keys are long, one page in ten.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct NodePage {
    /// The unit of the page.
    pub(crate) unit: UnitIndex,
    /// The level number in the page header.
    pub(crate) level: u8,
    /// The address of the page.
    pub(crate) page: PageId,
    /// The previous page of the page.
    pub(crate) prev: PageId,
    /// The child that the first entry names.
    pub(crate) first_child: PageId,
    /// The child that the last entry names.
    pub(crate) last_child: PageId,
    /// The children of the page.
    pub(crate) children: PageFilter,
    /// The children outside the page's own range ([`findings::ranges`]).
    pub(crate) apart: PageFilter,
    /// The extents of the children.
    pub(crate) reach: Reach,
}

impl Fact for NodePage {
    const BYTES: usize = 4 + 1 + 4 * 6 + 2 * 8 + Reach::BYTES;

    fn page(&self) -> PageId {
        self.page
    }

    fn translated(self, now: impl FnOnce(u32) -> Option<u32>) -> Option<Self> {
        Some(Self { unit: now(self.unit)?, ..self })
    }

    fn write(&self, bytes: &mut [u8]) {
        let pages = [self.page, self.prev, self.first_child, self.last_child];
        let pages = pages.into_iter().flat_map(|id| id.page.to_le_bytes().into_iter().chain(id.file.to_le_bytes()));
        let filters = [self.children.0, self.apart.0].into_iter().flat_map(u64::to_le_bytes);
        let rest = filters.chain(self.unit.to_le_bytes()).chain([self.level]).chain(self.reach.to_bytes());
        bytes.iter_mut().zip(pages.chain(rest)).for_each(|(to, from)| *to = from);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            page: PageId::read(bytes, 0)?,
            prev: PageId::read(bytes, 6)?,
            first_child: PageId::read(bytes, 12)?,
            last_child: PageId::read(bytes, 18)?,
            children: PageFilter(u64_at(bytes, 24)?),
            apart: PageFilter(u64_at(bytes, 32)?),
            unit: u32_at(bytes, 40)?,
            level: u8_at(bytes, 44)?,
            reach: Reach::read(bytes, 45)?,
        })
    }
}

/// The first and last key of a page of a B-tree, as images of a fixed size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageBounds {
    /// The address of the page.
    pub(crate) page: PageId,
    /// The unit of the page.
    pub(crate) unit: UnitIndex,
    /// Image of the first key.
    pub(crate) low: KeyImage,
    /// Hash of the first key, if its image is incomplete. The hash is often enough to compare the key with a parent
    /// entry, because the key of a parent entry usually equals the first key of the child.
    pub(crate) low_hash: Option<NonZero<u64>>,
    /// Image of the last key.
    pub(crate) high: KeyImage,
}

impl Fact for PageBounds {
    const BYTES: usize = 10 + 2 * (IMAGE_BYTES + 1) + 8;

    fn page(&self) -> PageId {
        self.page
    }

    fn translated(self, now: impl FnOnce(u32) -> Option<u32>) -> Option<Self> {
        Some(Self { unit: now(self.unit)?, ..self })
    }

    fn write(&self, bytes: &mut [u8]) {
        let parts: [&[u8]; 6] = [
            &self.page.page.to_le_bytes(),
            &self.page.file.to_le_bytes(),
            &self.unit.to_le_bytes(),
            &self.low.to_bytes(),
            &self.high.to_bytes(),
            &self.low_hash.map_or(0, NonZero::get).to_le_bytes(),
        ];
        for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (low, rest) = bytes.get(10..)?.split_at_checked(IMAGE_BYTES + 1)?;
        let (high, low_hash) = rest.split_at_checked(IMAGE_BYTES + 1)?;
        Some(Self {
            page: PageId::read(bytes, 0)?,
            unit: u32_at(bytes, 6)?,
            low: KeyImage::from_bytes(low.first_chunk()?),
            low_hash: NonZero::new(u64_at(low_hash, 0)?),
            high: KeyImage::from_bytes(high.first_chunk()?),
        })
    }

    /// Writes the first key as the difference from the last key of the previous page, and the last key as the
    /// difference from the first key, because these keys are usually similar.
    fn pack(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        let next = before.map(|before| (PageId::new(before.page.file, before.page.page.wrapping_add(1)), before.unit));
        let is_next = next.is_some_and(|(page, _)| page == self.page);
        let is_same = next.is_some_and(|(_, unit)| unit == self.unit);
        out.push(u8::from(is_next) | u8::from(is_same) << 1 | u8::from(self.low_hash.is_some()) << 2);
        if !is_next {
            page_to(out, self.page);
        }
        if !is_same {
            out.extend(self.unit.to_le_bytes());
        }
        pack_image(self.low, before.map(|before| before.high), out);
        pack_image(self.high, Some(self.low), out);
        out.extend(self.low_hash.map(|hash| hash.get().to_le_bytes()).into_iter().flatten());
    }

    fn unpack(before: Option<&Self>, take: &mut dyn FnMut(&mut [u8]) -> Option<()>) -> Option<Self> {
        let mut flags = [0];
        take(&mut flags)?;
        let page = match flags[0] & 1 {
            0 => {
                let mut bytes = [0; 6];
                take(&mut bytes)?;
                PageId::read(&bytes, 0)?
            }
            _ => before.map(|before| PageId::new(before.page.file, before.page.page.wrapping_add(1)))?,
        };
        let unit = match flags[0] & 2 {
            0 => {
                let mut bytes = [0; 4];
                take(&mut bytes)?;
                u32::from_le_bytes(bytes)
            }
            _ => before?.unit,
        };
        let low = unpack_image(before.map(|before| before.high), take)?;
        let high = unpack_image(Some(low), take)?;
        let mut low_hash = [0; 8];
        if flags[0] & 4 != 0 {
            take(&mut low_hash)?;
        }
        Some(Self { page, unit, low, low_hash: NonZero::new(u64::from_le_bytes(low_hash)), high })
    }
}

/// A bit of the first byte of a packed image. If the bit is set, the packed image has the same length as the image from
/// which it is written as a difference. The other bits give the number of leading bytes that are equal in both images.
const SAME_LENGTH: u8 = 0x80;

/// Writes an image as the difference from a similar image.
fn pack_image(image: KeyImage, like: Option<KeyImage>, out: &mut Vec<u8>) {
    let ([bytes @ .., length], like) = (image.to_bytes(), like.map(KeyImage::to_bytes).unwrap_or_default());
    let shared = shared_bytes(&bytes, &like);
    let is_same = like.last() == Some(&length);
    out.push(shared as u8 | if is_same { SAME_LENGTH } else { 0 });
    if !is_same {
        out.push(length);
    }
    out.extend(bytes.get(shared..usize::from(length >> 1)).unwrap_or_default());
}

/// The number of leading bytes that are equal, in whole words of eight bytes of the shorter list.
fn shared_bytes(one: &[u8], other: &[u8]) -> usize {
    let mut shared = 0;
    let (one, other) = (one.as_chunks::<8>().0, other.as_chunks::<8>().0);
    for (one, other) in one.iter().zip(other) {
        let differing = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        shared += differing.trailing_zeros() as usize / 8;
        if differing != 0 {
            break;
        }
    }
    shared
}

/// Reads the output of [`pack_image`].
fn unpack_image(like: Option<KeyImage>, take: &mut dyn FnMut(&mut [u8]) -> Option<()>) -> Option<KeyImage> {
    let like = like.map(KeyImage::to_bytes).unwrap_or_default();
    let (mut first, mut length) = ([0], [0]);
    take(&mut first)?;
    match first[0] & SAME_LENGTH {
        0 => take(&mut length)?,
        _ => length[0] = *like.last()?,
    }
    let shared = usize::from(first[0] & !SAME_LENGTH);
    let mut image = [0; IMAGE_BYTES + 1];
    // `shared` may exceed the length of the image, because unused bytes of the images are compared too.
    let kept = shared.min(usize::from(length[0] >> 1));
    image.get_mut(..kept)?.copy_from_slice(like.get(..kept)?);
    if let Some(rest) = image.get_mut(..IMAGE_BYTES)?.get_mut(kept..usize::from(length[0] >> 1)) {
        take(rest)?;
    }
    *image.last_mut()? = length[0];
    Some(KeyImage::from_bytes(&image))
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
            children: PageFilter(1 << 63 | 1),
            apart: PageFilter(1 << 62),
            reach: Reach::of([page(5), page(u32::MAX)].into_iter()),
        };
        let mut bytes = [0; NodePage::BYTES];
        node.write(&mut bytes);
        assert_eq!(NodePage::read(&bytes), Some(node));
        assert_eq!(NodePage::read(&bytes[1..]), None);
    }

    #[test]
    fn packed_bounds_come_back_whole_and_are_short() {
        let image = |key: u64, length: u8, is_complete: u8| {
            let mut bytes = [0; IMAGE_BYTES + 1];
            bytes[..8].copy_from_slice(&key.to_be_bytes());
            bytes[usize::from(length)..].fill(0);
            bytes[IMAGE_BYTES] = length << 1 | is_complete;
            KeyImage::from_bytes(&bytes)
        };
        let mut random = 1u64;
        let bounds: Vec<PageBounds> = (0..2000u32)
            .map(|at| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let is_odd = random >> 60 == 0;
                let (length, key) = (if is_odd { (random >> 50) as u8 % 25 } else { 8 }, u64::from(at) * 100);
                PageBounds {
                    page: PageId::new(1 + at as u16 / 500, if is_odd { random as u32 } else { at }),
                    unit: 7 + u32::from(is_odd),
                    low: image(if is_odd { random } else { key }, length.min(8), 1),
                    low_hash: NonZero::new(random).filter(|_| is_odd),
                    high: image(key + 99, 8, u8::from(!is_odd)),
                }
            })
            .collect();
        let (mut bytes, mut before) = (Vec::new(), None);
        for bound in &bounds {
            bound.pack(before, &mut bytes);
            before = Some(bound);
        }
        assert!(bytes.len() < bounds.len() * 9, "{} bytes of {}", bytes.len(), bounds.len() * PageBounds::BYTES);
        let mut rest = bytes.as_slice();
        let mut read = Vec::new();
        while !rest.is_empty() {
            let before = read.last().copied();
            let bound = PageBounds::unpack(before.as_ref(), &mut |to| {
                let (taken, left) = rest.split_at_checked(to.len())?;
                to.copy_from_slice(taken);
                rest = left;
                Some(())
            });
            read.push(bound.unwrap());
        }
        assert_eq!(read, bounds);
    }
}
