//! Pages of base tables: reads them, checks their protection and ID, and walks along a leaf chain.

use std::collections::HashSet;

use format::protection::{ProtectionFault, undo_torn_bits, verify};
use format::{AllocUnitId, Page, PageBytes, PageId, PageType};
use source::PageSource;

/// A page that was read, and whether it is sound.
pub enum Fetched {
    /// Protection and page id are right; protection bits are undone.
    Sound(Box<PageBytes>),
    /// Outside the files.
    Outside,
    /// Unknown: the system could not read it, no file with its id was given, or it is encrypted.
    Unread,
    /// The page fails its checksum or torn-bit check.
    Damaged(ProtectionFault),
    /// The image of another page, which its header names.
    WrongId(PageId),
}

/// Reads `page` and verifies its protection and page id.
pub fn fetch(source: &dyn PageSource, page: PageId) -> Fetched {
    if source.file(page.file).is_none() {
        // The page may be in a file of the database that was not given.
        return if page.file == 0 { Fetched::Outside } else { Fetched::Unread };
    }
    if !source.contains(page) {
        return Fetched::Outside;
    }
    let Some(mut bytes) = source.read_page(page) else { return Fetched::Unread };
    if let Err(fault) = verify(&bytes) {
        return Fetched::Damaged(fault);
    }
    undo_torn_bits(&mut bytes);
    let header = Page::new(&bytes).header();
    let id = header.page_id();
    match id == page {
        true if header.is_encrypted() => Fetched::Unread,
        true => Fetched::Sound(bytes),
        false => Fetched::WrongId(id),
    }
}

/// Why a leaf chain could not be followed to its end, by the cases of messages 7984 to 7988.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChainFault {
    /// 7985: the page is damaged, has another page's id or is outside the files.
    Unreadable {
        /// The page.
        page: PageId,
    },
    /// The system could not read the page. Its state is unknown, so there is no message.
    Unread {
        /// The page.
        page: PageId,
    },
    /// 7984: not a data page.
    PageType {
        /// The page.
        page: PageId,
        /// Its type.
        page_type: u8,
    },
    /// 7986: the next page belongs to another unit.
    OtherUnit {
        /// The page with the pointer.
        page: PageId,
        /// The page it points to.
        next: PageId,
        /// The unit of that page.
        found: AllocUnitId,
        /// The unit of the chain.
        expected: AllocUnitId,
    },
    /// 7987: the next page does not point back.
    Linkage {
        /// The page with the pointer.
        page: PageId,
        /// The page it points to.
        next: PageId,
        /// The page that `next` points back to.
        prev: PageId,
    },
    /// 7988: a page occurs again.
    Loop {
        /// The page.
        page: PageId,
    },
}

fn sound(source: &dyn PageSource, page: PageId) -> Result<Box<PageBytes>, ChainFault> {
    match fetch(source, page) {
        Fetched::Sound(bytes) => Ok(bytes),
        Fetched::Unread => Err(ChainFault::Unread { page }),
        Fetched::Outside | Fetched::Damaged(_) | Fetched::WrongId(_) => Err(ChainFault::Unreadable { page }),
    }
}

/// The start of a walk over leaves.
pub(crate) struct First {
    id: PageId,
    /// The page, if it has been read: most base tables have no other page.
    bytes: Option<Box<PageBytes>>,
}

impl From<PageId> for First {
    fn from(id: PageId) -> Self {
        Self { id, bytes: None }
    }
}

impl First {
    /// Whether it is a leaf of `unit` without a left neighbor.
    fn is_leftmost(&self, unit: AllocUnitId) -> bool {
        self.bytes.as_deref().is_some_and(|bytes| is_leftmost(Page::new(bytes), unit))
    }
}

/// Calls `visit` with each page of the leaf chain of `unit` that starts at `first`, up to the end or the first fault.
pub(crate) fn walk(
    source: &dyn PageSource,
    unit: AllocUnitId,
    first: impl Into<First>,
    mut visit: impl FnMut(Page<'_>),
) -> Result<(), ChainFault> {
    let mut seen = HashSet::new();
    let First { id, bytes: mut first } = first.into();
    let (mut from, mut at) = (PageId::NONE, id);
    while !at.is_none() {
        if !seen.insert(at) {
            return Err(ChainFault::Loop { page: at });
        }
        let bytes = match first.take() {
            Some(bytes) => bytes,
            None => sound(source, at)?,
        };
        let page = Page::new(&bytes);
        let header = page.header();
        if header.kind() != Some(PageType::Data) {
            return Err(ChainFault::PageType { page: at, page_type: header.page_type });
        }
        if header.alloc_unit() != unit {
            return Err(ChainFault::OtherUnit { page: from, next: at, found: header.alloc_unit(), expected: unit });
        }
        if header.prev() != from {
            return Err(ChainFault::Linkage { page: from, next: at, prev: header.prev() });
        }
        visit(page);
        (from, at) = (at, header.next());
    }
    Ok(())
}

/// Deepest tree to follow; a B-tree of 8 KB pages over 2^31 pages is far shallower.
pub(crate) const MAX_DEPTH: usize = 32;

/// The start of a walk over the leaves of `unit`: the leftmost leaf below `root`. If damage above the leaves leads
/// elsewhere, `first` is used if it starts an unbroken chain, so that all rows are read although the tree is damaged.
pub(crate) fn start(
    source: &dyn PageSource,
    unit: AllocUnitId,
    root: PageId,
    first: PageId,
) -> Result<First, ChainFault> {
    let below_root = leftmost_leaf(source, root);
    if below_root.as_ref().is_ok_and(|leaf| leaf.is_leftmost(unit)) {
        return below_root;
    }
    let is_whole_chain = leftmost(source, first, unit).is_ok_and(|leaf| walk(source, unit, leaf, |_| {}).is_ok());
    if is_whole_chain { Ok(first.into()) } else { below_root }
}

/// The leftmost leaf of a clustered index, found by descending from `root`: sysallocunits.pgfirst is not reliable
/// (docs/format/README.md#first-page).
fn leftmost_leaf(source: &dyn PageSource, root: PageId) -> Result<First, ChainFault> {
    let mut at = root;
    for _ in 0..MAX_DEPTH {
        let bytes = sound(source, at)?;
        let page = Page::new(&bytes);
        match page.header().kind() {
            Some(PageType::Data) => return Ok(First { id: at, bytes: Some(bytes) }),
            Some(PageType::Index) => {}
            _ => return Err(ChainFault::PageType { page: at, page_type: page.header().page_type }),
        }
        // The child pointer is the end of the fixed part (docs/format/index-records.md#non-leaf-entries).
        let child = usize::from(page.header().pminlen.get())
            .checked_sub(6)
            .and_then(|offset| PageId::read(page.slot_bytes(0)?, offset));
        at = child.ok_or(ChainFault::Unreadable { page: at })?;
    }
    Err(ChainFault::Loop { page: at })
}

/// `page`, if it is a leaf of `unit` without a left neighbor, so that a walk over all leaves may start there.
pub(crate) fn leftmost(source: &dyn PageSource, page: PageId, unit: AllocUnitId) -> Result<First, ChainFault> {
    let first = First { id: page, bytes: Some(sound(source, page)?) };
    // A page that is not leftmost is not damage: the catalog's first page is not reliable.
    if first.is_leftmost(unit) { Ok(first) } else { Err(ChainFault::Unread { page }) }
}

fn is_leftmost(page: Page<'_>, unit: AllocUnitId) -> bool {
    let header = page.header();
    header.kind() == Some(PageType::Data) && header.alloc_unit() == unit && header.prev().is_none()
}
