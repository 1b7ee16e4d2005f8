//! The pages of a database, and the role of each.

use std::collections::BTreeMap;

use catalog::{Database, Rowset};
use format::allocation::{PfsByte, pfs_bytes, pfs_page_of};
use format::bytes::u8_at;
use format::protection::undo_torn_bits;
use format::{AllocUnitId, Page, PageBytes, PageId, PageType};
use source::PageSource;

/// The role of a page. Two pages have different roles if the same header field is important on one page and less
/// important on the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PageRole {
    /// Page 0 of a file.
    FileHeader,
    /// Boot page.
    Boot,
    /// PFS page.
    Pfs,
    /// GAM page.
    Gam,
    /// SGAM page.
    Sgam,
    /// Differential map.
    DiffMap,
    /// Minimally logged map.
    MlMap,
    /// IAM page.
    Iam,
    /// Data page of a heap.
    Heap,
    /// Data page of a clustered index.
    Clustered,
    /// Page above the leaf level of a clustered or nonclustered index.
    Node,
    /// Leaf page of a nonclustered index.
    Leaf,
    /// Page of a LOB or row-overflow allocation unit.
    Text,
    /// Allocated page of another type, or of an allocation unit that the catalog does not name.
    Other,
    /// Unallocated page.
    Free,
}

impl PageRole {
    /// The name of the role, for human readers and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::FileHeader => "file header page",
            Self::Boot => "boot page",
            Self::Pfs => "PFS page",
            Self::Gam => "GAM page",
            Self::Sgam => "SGAM page",
            Self::DiffMap => "differential map",
            Self::MlMap => "minimally logged map",
            Self::Iam => "IAM page",
            Self::Heap => "heap page",
            Self::Clustered => "clustered leaf",
            Self::Node => "index node",
            Self::Leaf => "index leaf",
            Self::Text => "text page",
            Self::Other => "other page",
            Self::Free => "page not in use",
        }
    }
}

/// The pages of a database.
#[derive(Clone, Copy)]
pub struct Pages<'a> {
    source: &'a dyn PageSource,
    database: &'a Database,
}

impl<'a> Pages<'a> {
    /// The pages of `source`; `database` is its catalog.
    pub fn new(source: &'a dyn PageSource, database: &'a Database) -> Self {
        Self { source, database }
    }

    /// The IDs of all pages, file by file.
    pub fn ids(&self) -> impl Iterator<Item = PageId> + use<'a> {
        let files = self.source.files().iter();
        files.flat_map(|file| (0..file.pages).map(|page| PageId::new(file.file_id, page)))
    }

    /// The page as stored on disk.
    pub fn raw(&self, page: PageId) -> Option<Box<PageBytes>> {
        self.source.read_page(page)
    }

    /// The page after its torn bits are undone.
    pub fn read(&self, page: PageId) -> Option<Box<PageBytes>> {
        let mut bytes = self.raw(page)?;
        undo_torn_bits(&mut bytes);
        Some(bytes)
    }

    /// The PFS byte of the page.
    pub fn pfs(&self, page: PageId) -> Option<PfsByte> {
        let map = self.read(PageId::new(page.file, pfs_page_of(page.page)))?;
        let first = match pfs_page_of(page.page) {
            1 => 0,
            map => map,
        };
        u8_at(pfs_bytes(Page::new(&map))?, page.page.checked_sub(first)? as usize).map(PfsByte)
    }

    /// The rowset to which an allocation unit belongs.
    pub fn rowset(&self, unit: AllocUnitId) -> Option<&'a Rowset> {
        let unit = self.database.unit_index(unit).and_then(|at| self.database.units.get(at))?;
        self.database.rowset_of(unit)
    }

    /// All pages, by role.
    pub fn by_role(&self) -> BTreeMap<PageRole, Vec<PageId>> {
        let mut by_role: BTreeMap<PageRole, Vec<PageId>> = BTreeMap::new();
        for id in self.ids() {
            if let Some(bytes) = self.read(id) {
                by_role.entry(self.role(id, &bytes)).or_default().push(id);
            }
        }
        by_role
    }

    /// The role of `page`; `bytes` is its content.
    pub fn role(&self, page: PageId, bytes: &PageBytes) -> PageRole {
        let header = Page::new(bytes).header();
        let Some(kind) = header.kind() else { return PageRole::Free };
        let role = match kind {
            PageType::FileHeader => PageRole::FileHeader,
            PageType::Boot => PageRole::Boot,
            PageType::Pfs => PageRole::Pfs,
            PageType::Gam => PageRole::Gam,
            PageType::Sgam => PageRole::Sgam,
            PageType::DiffMap => PageRole::DiffMap,
            PageType::MlMap => PageRole::MlMap,
            PageType::Iam => PageRole::Iam,
            PageType::TextMix | PageType::TextTree => PageRole::Text,
            PageType::Data | PageType::Index => match (self.rowset(header.alloc_unit()), kind) {
                (Some(rowset), PageType::Data) if rowset.index_id == 0 => PageRole::Heap,
                (Some(rowset), PageType::Data) if rowset.index_id == 1 => PageRole::Clustered,
                (Some(rowset), PageType::Index) if rowset.index_id == 1 || header.level > 0 => PageRole::Node,
                (Some(_), PageType::Index) => PageRole::Leaf,
                _ => PageRole::Other,
            },
            _ => PageRole::Other,
        };
        let in_use = self.pfs(page).is_some_and(PfsByte::is_allocated);
        if in_use { role } else { PageRole::Free }
    }
}
