//! Damage to whole pages, extents, chains and files, as it occurs in real incidents.

use std::collections::BTreeMap;
use std::ops::Range;

use catalog::Database;
use format::allocation::EXTENT_PAGES;
use format::fields::Structure;
use format::instances::instances_of;
use format::page::{PAGE_BYTES, page_flags};
use format::{Page, PageBytes, PageId};
use source::PageSource;

use super::pages::{PageRole, Pages};
use super::random::Random;
use super::seal::seal;

const SECTOR_BYTES: usize = 512;
const PREVIOUS: Range<usize> = 8..14;
const NEXT: Range<usize> = 16..22;
const OWN_ID: Range<usize> = 32..38;

/// One piece of damage.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The kind of damage.
    pub kind: String,
    /// The first damaged page.
    pub page: PageId,
    /// The damaged pages in their form on disk.
    pub changes: Vec<(PageId, PageBytes)>,
    /// The ID of a truncated file, and its new length in bytes.
    pub cut: Option<(u16, usize)>,
}

/// Makes some pieces of damage of each kind; `seed` determines them. `older` is an earlier copy of the database.
pub fn damages(source: &dyn PageSource, database: &Database, older: Option<&dyn PageSource>, seed: u64) -> Vec<Damage> {
    let pages = Pages::new(source, database);
    let mut maker = Maker { pages, by_role: pages.by_role(), random: Random::new(seed), made: Vec::new() };
    maker.whole_pages();
    maker.extents();
    maker.torn_writes();
    maker.chains();
    maker.off_row();
    if let Some(older) = older {
        maker.older(older);
    }
    maker.cuts(source);
    maker.made
}

/// The number of pieces of damage per kind and page role.
const PIECES: usize = 3;

struct Maker<'a> {
    pages: Pages<'a>,
    by_role: BTreeMap<PageRole, Vec<PageId>>,
    random: Random,
    made: Vec<Damage>,
}

impl Maker<'_> {
    fn put(&mut self, kind: &str, role: PageRole, changes: Vec<(PageId, PageBytes)>) {
        let really = changes.iter().any(|(page, bytes)| self.pages.raw(*page).is_some_and(|old| *old != *bytes));
        if let (true, Some((page, _))) = (really, changes.first()) {
            let kind = format!("{kind}, {}", role.name());
            self.made.push(Damage { kind, page: *page, changes, cut: None });
        }
    }

    /// A page with some of its bytes replaced and its protection corrected.
    fn edited(&self, page: PageId, edits: &[(Range<usize>, &[u8])]) -> Option<PageBytes> {
        let mut bytes = *self.pages.read(page)?;
        for (place, value) in edits {
            let place = bytes.get_mut(place.clone())?;
            if place.len() != value.len() {
                return None;
            }
            place.copy_from_slice(value);
        }
        seal(&mut bytes);
        Some(bytes)
    }

    /// A page with the content of `page` and the page ID of `place`.
    fn relabelled(&self, page: PageId, place: PageId) -> Option<PageBytes> {
        self.edited(page, &[(OWN_ID, &pointer(place))])
    }

    fn roles(&self) -> Vec<(PageRole, Vec<PageId>)> {
        self.by_role
            .iter()
            .filter(|(role, _)| **role != PageRole::Free)
            .map(|(role, pages)| (*role, pages.clone()))
            .collect()
    }

    fn whole_pages(&mut self) {
        for (role, pages) in self.roles() {
            for _ in 0..PIECES.min(pages.len()) {
                let Some(&a) = self.random.pick(&pages) else { continue };
                self.put("page zeroed", role, vec![(a, [0; PAGE_BYTES])]);
                let Some(&b) = self.random.pick(&pages) else { continue };
                if a == b {
                    continue;
                }
                if let (Some(of_a), Some(of_b)) = (self.pages.raw(a), self.pages.raw(b)) {
                    self.put("two pages swapped", role, vec![(a, *of_b), (b, *of_a)]);
                    self.put("page written to the place of another", role, vec![(a, *of_b)]);
                }
                if let Some(copy) = self.relabelled(b, a) {
                    self.put("page written to the place of another, its id made right", role, vec![(a, copy)]);
                }
            }
        }
    }

    fn extents(&mut self) {
        for (role, pages) in self.roles() {
            for _ in 0..PIECES.min(pages.len()) {
                let (Some(&a), Some(&b)) = (self.random.pick(&pages), self.random.pick(&pages)) else { continue };
                let zeroed = extent(a).map(|page| (page, [0; PAGE_BYTES])).collect();
                self.put("extent zeroed", role, zeroed);
                if a.page / EXTENT_PAGES == b.page / EXTENT_PAGES {
                    continue;
                }
                let copied: Vec<_> =
                    extent(a).zip(extent(b)).filter_map(|(a, b)| Some((a, *self.pages.raw(b)?))).collect();
                self.put("extent written to the place of another", role, copied);
                let relabelled: Vec<_> =
                    extent(a).zip(extent(b)).filter_map(|(a, b)| Some((a, self.relabelled(b, a)?))).collect();
                self.put("extent written to the place of another, its ids made right", role, relabelled);
            }
        }
    }

    /// Torn writes: only the first sectors of a page reached the disk, so its other sectors have their old content.
    fn torn_writes(&mut self) {
        for (role, pages) in self.roles() {
            let Some(&page) = self.random.pick(&pages) else { continue };
            let Some(raw) = self.pages.raw(page) else { continue };
            let flags = Page::new(&raw).header().flags.get();
            for sector in 1..PAGE_BYTES / SECTOR_BYTES {
                let mut torn = *raw;
                let rest = torn.get_mut(sector * SECTOR_BYTES..).unwrap_or_default();
                if flags & page_flags::CHECKSUM != 0 {
                    rest.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                } else if flags & page_flags::TORN_BITS != 0 {
                    for sector in rest.chunks_exact_mut(SECTOR_BYTES) {
                        if let Some(last) = sector.last_mut() {
                            *last ^= 3;
                        }
                    }
                }
                self.put("torn write", role, vec![(page, torn)]);
            }
        }
    }

    /// Adds damaged links. Either the next page of a page is the page itself or a page of another chain, or an index
    /// page is its own child.
    fn chains(&mut self) {
        for (role, pages) in self.roles() {
            if !matches!(role, PageRole::Iam | PageRole::Clustered | PageRole::Leaf | PageRole::Node) {
                continue;
            }
            for _ in 0..PIECES.min(pages.len()) {
                let (Some(&a), Some(&b)) = (self.random.pick(&pages), self.random.pick(&pages)) else { continue };
                let linked = |from: PageId, to: PageId| self.edited(from, &[(NEXT, &pointer(to))]);
                let back = |from: PageId, to: PageId| self.edited(from, &[(PREVIOUS, &pointer(to))]);
                let (own, across, behind) = (linked(a, a), linked(a, b), back(b, a));
                if let Some(own) = own {
                    self.put("chain that leads to itself", role, vec![(a, own)]);
                }
                if let (Some(across), Some(behind), true) = (across, behind, a != b) {
                    self.put("chain that leads into another", role, vec![(a, across)]);
                    self.put("two chains joined", role, vec![(a, across), (b, behind)]);
                }
            }
        }
        for page in self.by_role.get(&PageRole::Node).cloned().unwrap_or_default() {
            let Some(bytes) = self.pages.read(page) else { continue };
            let children = instances_of(&bytes, false);
            let child = children.iter().filter(|instance| instance.field.name == "child").nth(1);
            if let Some(child) = child
                && let Some(changed) = self.edited(page, &[(child.bytes.clone(), &pointer(page))])
            {
                self.put("node that is its own child", PageRole::Node, vec![(page, changed)]);
            }
        }
    }

    /// Off-row values with fragments that point to themselves.
    fn off_row(&mut self) {
        for page in self.by_role.get(&PageRole::Text).cloned().unwrap_or_default() {
            let Some(bytes) = self.pages.read(page) else { continue };
            for instance in instances_of(&bytes, true) {
                let is_link = instance.field.name == "link"
                    && matches!(instance.field.structure, Structure::LobRoot | Structure::LobInternal);
                let Some(slot) = instance.slot.filter(|_| is_link && instance.index == Some(0)) else { continue };
                let own = [&pointer(page)[..], &slot.to_le_bytes()].concat();
                if let Some(changed) = self.edited(page, &[(instance.bytes.clone(), &own)]) {
                    self.put("fragment that is its own child", PageRole::Text, vec![(page, changed)]);
                }
            }
        }
    }

    /// Lost writes: a page has its content from an earlier copy of the database.
    fn older(&mut self, older: &dyn PageSource) {
        for (role, pages) in self.roles() {
            for page in pages {
                let (Some(now), Some(then)) = (self.pages.raw(page), older.read_page(page)) else { continue };
                let (now, then_header) = (*Page::new(&now).header(), *Page::new(&then).header());
                // The earlier page must have the same page type and owner as the present page.
                if now.page_type == then_header.page_type && now.alloc_unit() == then_header.alloc_unit() {
                    self.put("page of an earlier copy", role, vec![(page, *then)]);
                }
            }
        }
    }

    /// Truncated files: the end of the file is cut off at an extent boundary, or within a page.
    fn cuts(&mut self, source: &dyn PageSource) {
        for file in source.files() {
            let pages = (0..16.min(file.pages)).chain((16..file.pages).step_by(EXTENT_PAGES as usize));
            for page in pages {
                for more in [0, SECTOR_BYTES] {
                    let length = page as usize * PAGE_BYTES + more;
                    let kind = match more {
                        0 => "file cut between pages",
                        _ => "file cut inside a page",
                    };
                    self.made.push(Damage {
                        kind: kind.to_owned(),
                        page: PageId::new(file.file_id, page),
                        changes: Vec::new(),
                        cut: Some((file.file_id, length)),
                    });
                }
            }
        }
    }
}

fn extent(page: PageId) -> impl Iterator<Item = PageId> {
    let first = page.page / EXTENT_PAGES * EXTENT_PAGES;
    (first..first.saturating_add(EXTENT_PAGES)).map(move |number| PageId::new(page.file, number))
}

fn pointer(page: PageId) -> [u8; 6] {
    let ([a, b, c, d], [e, f]) = (page.page.to_le_bytes(), page.file.to_le_bytes());
    [a, b, c, d, e, f]
}
