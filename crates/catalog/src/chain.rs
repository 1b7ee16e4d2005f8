//! Reads the pages of base tables, verifies their protection and page ID, and follows a leaf chain.

use std::collections::HashSet;

use format::protection::{ProtectionFault, undo_torn_bits};
use format::{AllocUnitId, Page, PageBytes, PageId, PageType};
use source::{PageSource, read_settled};

/// The result of reading a page.
pub enum Fetched {
    /// The protection and the page ID are right. Bits that torn-page protection replaced are restored.
    Sound(Box<PageBytes>),
    /// The page is beyond the end of its file, or its file ID is 0.
    Outside,
    /// The content of the page is unknown. Either the operating system could not read the page, or its file was not
    /// given, or the page is encrypted.
    Unread,
    /// The page fails its checksum or torn-bit check.
    Damaged(ProtectionFault),
    /// The page header contains this page ID instead.
    WrongId(PageId),
}

/// Reads `page`, and verifies its protection and page ID.
pub fn fetch(source: &dyn PageSource, page: PageId) -> Fetched {
    if source.file(page.file).is_none() {
        // File 0 does not exist. Any other file may be a file of the database that was not given.
        return if page.file == 0 { Fetched::Outside } else { Fetched::Unread };
    }
    if !source.contains(page) {
        return Fetched::Outside;
    }
    let Some((mut bytes, verified)) = read_settled(source, page) else { return Fetched::Unread };
    if let Err(fault) = verified {
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

/// Why a leaf chain could not be followed to its end. Most cases have a DBCC message of their own, from 7984 to 7988.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChainFault {
    /// 7985: the page is damaged, has another page's ID, or is outside the files.
    Unreadable {
        /// The page.
        page: PageId,
    },
    /// The operating system could not read the page. The state of the page is unknown, so no message is reported.
    Unread {
        /// The page.
        page: PageId,
    },
    /// 7984: the page is not a data page.
    PageType {
        /// The page.
        page: PageId,
        /// The type of the page.
        page_type: u8,
    },
    /// 7986: the next page belongs to another allocation unit.
    OtherUnit {
        /// The page that contains the pointer to the next page.
        page: PageId,
        /// The next page, to which the pointer points.
        next: PageId,
        /// The allocation unit of the next page.
        found: AllocUnitId,
        /// The allocation unit to which the chain belongs.
        expected: AllocUnitId,
    },
    /// 7987: the next page does not point back.
    Linkage {
        /// The page that contains the pointer to the next page.
        page: PageId,
        /// The next page, to which the pointer points.
        next: PageId,
        /// The page that `next` names as its previous page.
        prev: PageId,
    },
    /// 7988: a page occurs more than once in the chain.
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

/// The page at which a walk over the leaves starts.
pub(crate) struct First {
    id: PageId,
    /// The bytes of the page, if it has already been read. Most base tables have only this page.
    bytes: Option<Box<PageBytes>>,
}

impl From<PageId> for First {
    fn from(id: PageId) -> Self {
        Self { id, bytes: None }
    }
}

impl First {
    /// Whether the page is a leaf of `unit` without a left neighbor.
    fn is_leftmost(&self, unit: AllocUnitId) -> bool {
        self.bytes.as_deref().is_some_and(|bytes| is_leftmost(Page::new(bytes), unit))
    }
}

/// Calls `visit` with each page of the leaf chain of `unit`, from `first` to the end of the chain or the first fault.
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

/// Calls `visit` with the page, if it is a sound leaf of `unit`.
pub(crate) fn leaf(source: &dyn PageSource, page: PageId, unit: AllocUnitId, visit: impl FnOnce(Page<'_>)) {
    if let Ok(bytes) = sound(source, page) {
        let page = Page::new(&bytes);
        if page.header().kind() == Some(PageType::Data) && page.header().alloc_unit() == unit {
            visit(page);
        }
    }
}

/// The maximum number of tree levels that are followed. A B-tree of 8 KB pages over 2^31 pages has far fewer levels.
pub(crate) const MAX_DEPTH: usize = 32;

/// Finds the page at which a walk over the leaves of `unit` starts. This is the leftmost leaf below `root`. If damage
/// above the leaves prevents finding that leaf, the walk starts at `first`, provided that an unbroken chain starts
/// there. All rows can then be read although the tree is damaged.
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

/// Finds the leftmost leaf of a clustered index by descending from `root`. The value of sysallocunits.pgfirst is not
/// used, because it is not reliable (docs/format/README.md#first-page).
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
        // The child pointer is at the end of the fixed part of the entry
        // (docs/format/index-records.md#non-leaf-entries).
        let child = usize::from(page.header().pminlen.get())
            .checked_sub(6)
            .and_then(|offset| PageId::read(page.slot_bytes(0)?, offset));
        at = child.ok_or(ChainFault::Unreadable { page: at })?;
    }
    Err(ChainFault::Loop { page: at })
}

/// Returns `page` if it is a leaf of `unit` without a left neighbor. A walk over all leaves may start at such a page.
pub(crate) fn leftmost(source: &dyn PageSource, page: PageId, unit: AllocUnitId) -> Result<First, ChainFault> {
    let first = First { id: page, bytes: Some(sound(source, page)?) };
    // If the page is not the leftmost leaf, the page may still be sound, because the first page in the catalog is not
    // reliable. So no damage is reported.
    if first.is_leftmost(unit) { Ok(first) } else { Err(ChainFault::Unread { page }) }
}

fn is_leftmost(page: Page<'_>, unit: AllocUnitId) -> bool {
    let header = page.header();
    header.kind() == Some(PageType::Data) && header.alloc_unit() == unit && header.prev().is_none()
}
