//! Walks the leaf pages of a clustered index in key order, by the entries of the level above.

use catalog::{AllocUnit, Fetched, fetch};
use format::record::Record;
use format::{AllocUnitId, Page, PageBytes, PageId, PageType};
use source::PageSource;

use crate::leaf::names;

/// The most levels of a B-tree. With 8 KB pages and at most 2^31 pages, real trees have far fewer levels.
pub(super) const MAX_DEPTH: usize = 32;
/// The size of the child pointer, which is at the end of an entry's fixed-length part
/// (docs/format/index-records.md#non-leaf-entries).
const CHILD_BYTES: usize = 6;
/// Status bit of records in a compressed index. It is unknown where such records store the child pointer, so the walk
/// follows the links between leaf pages instead.
const COMPRESSED: u8 = format::record::status::COMPRESSED;

/// Walks the leaf pages of an allocation unit. The pages of a level form a doubly linked list, and the first page has
/// no left neighbor. The walk follows a link only if the next page links back, so it reaches no page twice.
pub(crate) struct Leaves<'a> {
    source: &'a dyn PageSource,
    unit: &'a AllocUnit,
    state: State,
}

enum State {
    Start,
    /// The tree has a single page, which is a leaf page.
    Only(PageId),
    /// The current page of the lowest level above the leaves, and the slot of its next entry.
    Parent {
        at: PageId,
        bytes: Box<PageBytes>,
        slot: u16,
    },
    /// The previous and the next leaf page, used if the walk follows the links between leaf pages.
    Linked {
        from: PageId,
        at: PageId,
    },
    End,
}

impl<'a> Leaves<'a> {
    pub(crate) fn of(source: &'a dyn PageSource, unit: &'a AllocUnit) -> Self {
        Self { source, unit, state: State::Start }
    }

    /// The entry for the leaf page that was delivered last: the page that contains the entry, and the record with the
    /// lowest key of the leaf. The first entry of the tree has no key. `None` if the walk does not use entries.
    pub(crate) fn entry(&self) -> Option<(PageId, Record<'_>)> {
        let State::Parent { at, bytes, slot } = &self.state else { return None };
        let page = Page::new(bytes);
        let space = page.slot_bytes(slot.checked_sub(1)?)?;
        Some((*at, Record::index(space, page.header().pminlen.get()).ok()?))
    }

    /// The next leaf page; `None` after the last one. `Err` names the page at which the walk failed.
    pub(crate) fn next_leaf(&mut self) -> Option<Result<PageId, PageId>> {
        loop {
            match &mut self.state {
                State::End => return None,
                State::Only(page) => {
                    let page = *page;
                    self.state = State::End;
                    return Some(Ok(page));
                }
                State::Start => match self.start() {
                    Ok(state) => self.state = state,
                    Err(page) => return self.cut(page),
                },
                State::Linked { from, at } => {
                    let (before, page) = (*from, *at);
                    let Fetched::Sound(bytes) = fetch(self.source, page) else { return self.cut(page) };
                    let header = Page::new(&bytes).header();
                    if header.kind() != Some(PageType::Data) || !names(header, self.unit.id) || header.prev() != before
                    {
                        return self.cut(page);
                    }
                    let next = header.next();
                    self.state = if next.is_none() { State::End } else { State::Linked { from: page, at: next } };
                    return Some(Ok(page));
                }
                State::Parent { at, bytes, slot } => {
                    let (parent, number) = (*at, *slot);
                    let page = Page::new(bytes);
                    let header = page.header();
                    if number < header.slot_count.get() {
                        *slot += 1;
                        let child = child(page, number).filter(|child| self.source.contains(*child));
                        return match child {
                            Some(child) => Some(Ok(child)),
                            None => self.cut(parent),
                        };
                    }
                    let next = header.next();
                    if next.is_none() {
                        self.state = State::End;
                        continue;
                    }
                    let level = header.level;
                    match node(self.source, self.unit.id, next, Some(level))
                        .filter(|bytes| Page::new(bytes).header().prev() == parent)
                    {
                        Some(bytes) => self.state = State::Parent { at: next, bytes, slot: 0 },
                        None => return self.cut(next),
                    }
                }
            }
        }
    }

    fn cut(&mut self, page: PageId) -> Option<Result<PageId, PageId>> {
        self.state = State::End;
        Some(Err(page))
    }

    /// Descends from the root to the leftmost page of the lowest level above the leaves.
    fn start(&self) -> Result<State, PageId> {
        let mut at = self.unit.root;
        if at.is_none() {
            return if self.unit.first_iam.is_none() { Ok(State::End) } else { Err(at) };
        }
        let mut level = None;
        for _ in 0..MAX_DEPTH {
            let Fetched::Sound(bytes) = fetch(self.source, at) else { return Err(at) };
            let page = Page::new(&bytes);
            let header = page.header();
            if header.kind() == Some(PageType::Data) && names(header, self.unit.id) {
                return match (level, header.prev().is_none()) {
                    (None, true) if header.next().is_none() => Ok(State::Only(at)),
                    (Some(_), true) => Ok(State::Linked { from: PageId::NONE, at }),
                    _ => Err(at),
                };
            }
            let is_node = header.kind() == Some(PageType::Index) && names(header, self.unit.id);
            let is_of_level = level.is_none_or(|level| is_level(level, header.level));
            if !is_node || !is_of_level || !header.prev().is_none() {
                return Err(at);
            }
            if is_compressed(page) {
                return self.start_of_compressed();
            }
            if !leads_to_nodes(self.source, page) {
                return Ok(State::Parent { at, bytes, slot: 0 });
            }
            level = header.level.checked_sub(1);
            at = child(page, 0).ok_or(at)?;
        }
        Err(at)
    }

    /// The first leaf page of a tree with compressed entries. The catalog names this page as the first page of the
    /// allocation unit. The page must have no left neighbor.
    fn start_of_compressed(&self) -> Result<State, PageId> {
        let at = self.unit.first_page;
        match fetch(self.source, at) {
            Fetched::Sound(bytes) if Page::new(&bytes).header().prev().is_none() => {
                Ok(State::Linked { from: PageId::NONE, at })
            }
            _ => Err(at),
        }
    }
}

/// Reads a page above the leaves of a unit. If `level` is given, the page must be of this level. `None` if the page is
/// damaged or is another kind of page.
pub(super) fn node(
    source: &dyn PageSource,
    unit: AllocUnitId,
    page: PageId,
    level: Option<u8>,
) -> Option<Box<PageBytes>> {
    let Fetched::Sound(bytes) = fetch(source, page) else { return None };
    let header = Page::new(&bytes).header();
    let is_node = header.kind() == Some(PageType::Index) && names(header, unit);
    (is_node && level.is_none_or(|level| is_level(level, header.level))).then_some(bytes)
}

/// Whether the pages below a sound index page are index pages too. The level number alone does not show this, because
/// the lowest index pages of a clustered index have level 0 or 1
/// (docs/format/README.md#level-of-the-lowest-index-pages).
pub(super) fn leads_to_nodes(source: &dyn PageSource, page: Page<'_>) -> bool {
    let header = page.header();
    if header.level != 1 {
        return header.level > 1;
    }
    let sound = |slot: u16| match fetch(source, child(page, slot)?) {
        Fetched::Sound(bytes) => Page::new(&bytes).header().kind(),
        _ => None,
    };
    (0..header.slot_count.get()).find_map(sound) == Some(PageType::Index)
}

/// Whether a page of level `own` is allowed where `level` is expected. Levels 0 and 1 count as equal, because the
/// lowest index pages may have either of these levels.
fn is_level(level: u8, own: u8) -> bool {
    level == own || level <= 1 && own <= 1
}

pub(super) fn is_compressed(page: Page<'_>) -> bool {
    page.slot_bytes(0).and_then(<[u8]>::first).is_some_and(|status| status & COMPRESSED != 0)
}

pub(super) fn child(page: Page<'_>, slot: u16) -> Option<PageId> {
    let at = usize::from(page.header().pminlen.get()).checked_sub(CHILD_BYTES)?;
    PageId::read(page.slot_bytes(slot)?, at)
}
