//! Facts that the pages of a B-tree yield about each other, in a form that can be sorted.

use std::cmp::Ordering;

use format::PageId;
use format::bytes::u16_at;
use sums::spill::{Item, page_to};

use crate::checks::tree::TreeLevel;

/// One fact about a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct LinkFact {
    pub(super) about: PageId,
    pub(super) what: LinkKind,
}

/// The kind of a fact. The facts about one page are sorted in the order of these variants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum LinkKind {
    /// The page exists.
    Seen { level: TreeLevel, prev: PageId, next: PageId },
    /// An entry names the page, or the catalog names it as the root.
    Parent { by: PageId, slot: u16, prev_child: Option<PageId>, level: Option<TreeLevel> },
    /// A next pointer names the page.
    Left { by: PageId, level: TreeLevel },
}

/// One of the two children at the boundary between the children of page `of` and the children of the next page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct End {
    pub(super) of: PageId,
    pub(super) what: EndKind,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum EndKind {
    /// The last child of page `of`.
    LastChild(PageId),
    /// The first child of page `by`, and the slot of the entry that names this child. Page `by` is the page after page
    /// `of`.
    Wanted { child: PageId, by: PageId, slot: u16, level: TreeLevel },
}

impl Item for LinkFact {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn bytes(&self) -> usize {
        2 * size_of::<Self>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        page_to(out, self.about);
        match self.what {
            LinkKind::Seen { level, prev, next } => {
                out.push(0);
                level_to(out, Some(level));
                page_to(out, prev);
                page_to(out, next);
            }
            LinkKind::Parent { by, slot, prev_child, level } => {
                out.push(1 + u8::from(prev_child.is_some()));
                level_to(out, level);
                page_to(out, by);
                page_to(out, prev_child.unwrap_or_default());
                out.extend(slot.to_le_bytes());
            }
            LinkKind::Left { by, level } => {
                out.push(3);
                level_to(out, Some(level));
                page_to(out, by);
            }
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let page = |at| PageId::read(bytes, at);
        let (kind, level) = (*bytes.get(6)?, level_at(bytes, 7)?);
        let what = match kind {
            0 => LinkKind::Seen { level: level?, prev: page(9)?, next: page(15)? },
            1 | 2 => {
                let prev_child = page(15).filter(|_| kind == 2);
                LinkKind::Parent { by: page(9)?, slot: u16_at(bytes, 21)?, prev_child, level }
            }
            _ => LinkKind::Left { by: page(9)?, level: level? },
        };
        Some(Self { about: page(0)?, what })
    }
}

impl Item for End {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn bytes(&self) -> usize {
        2 * size_of::<Self>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        page_to(out, self.of);
        match self.what {
            EndKind::LastChild(child) => {
                level_to(out, None);
                page_to(out, child);
            }
            EndKind::Wanted { child, by, slot, level } => {
                level_to(out, Some(level));
                page_to(out, child);
                page_to(out, by);
                out.extend(slot.to_le_bytes());
            }
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let page = |at| PageId::read(bytes, at);
        let what = match level_at(bytes, 6)? {
            None => EndKind::LastChild(page(8)?),
            Some(level) => EndKind::Wanted { child: page(8)?, by: page(14)?, slot: u16_at(bytes, 20)?, level },
        };
        Some(Self { of: page(0)?, what })
    }
}

fn level_to(out: &mut Vec<u8>, level: Option<TreeLevel>) {
    out.extend(match level {
        None => [0, 0],
        Some(TreeLevel::Data(number)) => [1, number],
        Some(TreeLevel::Index(number)) => [2, number],
    });
}

fn level_at(bytes: &[u8], at: usize) -> Option<Option<TreeLevel>> {
    let number = *bytes.get(at + 1)?;
    Some(match bytes.get(at)? {
        0 => None,
        1 => Some(TreeLevel::Data(number)),
        _ => Some(TreeLevel::Index(number)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let (one, two, three) = (PageId::new(1, 2), PageId::new(3, u32::MAX), PageId::new(5, 6));
        let (data, index) = (TreeLevel::Data(7), TreeLevel::Index(255));
        let said = [
            LinkKind::Seen { level: data, prev: two, next: three },
            LinkKind::Parent { by: two, slot: 9, prev_child: None, level: None },
            LinkKind::Parent { by: two, slot: 65_535, prev_child: Some(three), level: Some(index) },
            LinkKind::Left { by: three, level: index },
        ];
        let mut bytes = Vec::new();
        for what in said {
            bytes.clear();
            let said = LinkFact { about: one, what };
            said.write(&mut bytes);
            assert_eq!(LinkFact::read(&bytes), Some(said));
        }
        for what in [EndKind::LastChild(two), EndKind::Wanted { child: two, by: three, slot: 8, level: data }] {
            bytes.clear();
            let end = End { of: one, what };
            end.write(&mut bytes);
            assert_eq!(End::read(&bytes), Some(end));
        }
    }
}
