//! What the pages of B-trees add up to, and what is kept of single ones.

use format::PageId;
use format::bytes::{u8_at, u32_at, u64_at};
use format::key::{IMAGE_BYTES, KeyImage};

use crate::hash::Sum;
use crate::spill::Fact;
use crate::units::UnitIndex;

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
    pub(crate) fn merge(&mut self, other: &Self) {
        self.pages += other.pages;
        self.selves.add(other.selves);
        self.next.add(other.next);
        self.prev.add(other.prev);
        self.children.add(other.children);
        self.child_links.add(other.child_links);
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
