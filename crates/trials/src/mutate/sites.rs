//! Finds the places, called sites, at which the fields of a database can be changed. Sites are grouped by structure and
//! field.

use std::collections::BTreeMap;
use std::ops::Range;

use catalog::Database;
use format::allocation::{EXTENT_PAGES, INTERVAL_PAGES, IamHeader, PFS_PAGES, PfsByte};
use format::fields::{Kind, Part, Place, Structure};
use format::instances::{FieldInstance, instances_of};
use format::{Page, PageBytes, PageId};
use source::PageSource;

use super::columns;
use super::pages::{PageRole, Pages};
use super::random::mix;
use super::verbs::Verb;

/// The number of sites to keep per field. Tests damage the first few of these sites, and use values of the remaining
/// sites as replacements.
const KEPT: usize = 24;
/// The number of bits to change behind the end of a bitmap, that is after the bit of the last page or extent in the
/// file.
const BITS_BEHIND_END: u32 = 4;

/// A place on a page that holds one value of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// The page of the site.
    pub page: PageId,
    /// The slot of the record that contains the site; `None` outside of records.
    pub slot: Option<u16>,
    /// The bytes of the site on the page. Torn bits of the page must be undone before these bytes are read.
    pub bytes: Range<usize>,
    /// The bit within the bytes, if the site is a single bit.
    pub bit: Option<u8>,
}

impl Site {
    /// The bytes of the site on `page`.
    pub fn value<'a>(&self, page: &'a PageBytes) -> &'a [u8] {
        page.get(self.bytes.clone()).unwrap_or_default()
    }

    /// Changes the site by `verb`. Returns false if the site already has the new value, or if the verb does not apply
    /// to a bit. `other` is the value of another site of the same field.
    pub fn apply(&self, page: &mut PageBytes, verb: Verb, other: Option<&[u8]>) -> bool {
        let Some(place) = page.get_mut(self.bytes.clone()) else { return false };
        match self.bit {
            Some(bit) => {
                let (Some(byte), Some(mask)) = (place.first_mut(), 1u8.checked_shl(bit.into())) else { return false };
                let is_set = *byte & mask != 0;
                let changes = matches!((verb, is_set), (Verb::Zeros, true) | (Verb::Ones, false));
                if changes {
                    *byte ^= mask;
                }
                changes
            }
            None => match verb.apply(place, other) {
                Some(changed) => {
                    place.copy_from_slice(&changed);
                    true
                }
                None => false,
            },
        }
    }
}

/// Some sites of one field, drawn at random from all pages with equal probability. The same seed leads to the same
/// draw.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    drawn: BTreeMap<u64, Site>,
    seen: u64,
}

impl Sites {
    fn put(&mut self, seed: u64, kept: usize, site: Site) {
        self.seen += 1;
        let place = u64::from(site.page.file) << 48 | u64::from(site.page.page) << 16 | site.bytes.start as u64;
        let order = mix(seed ^ mix(place << 3 | u64::from(site.bit.unwrap_or_default())));
        if self.drawn.len() < kept {
            self.drawn.insert(order, site);
        } else if self.drawn.last_key_value().is_some_and(|(last, _)| order < *last) {
            self.drawn.pop_last();
            self.drawn.insert(order, site);
        }
    }

    /// The drawn sites, in random order.
    pub fn drawn(&self) -> impl Iterator<Item = &Site> {
        self.drawn.values()
    }

    /// The number of sites of the field, including those not drawn.
    pub fn seen(&self) -> u64 {
        self.seen
    }
}

/// The sites of a database, by structure and field.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    fields: BTreeMap<(String, String), Sites>,
    seed: u64,
    /// The maximum number of sites to keep per field.
    kept: usize,
}

impl Survey {
    /// Finds the sites on all pages of `source`; `database` is its catalog. `seed` decides which sites are drawn.
    pub fn of(source: &dyn PageSource, database: &Database, seed: u64) -> Self {
        let mut this = Self { fields: BTreeMap::new(), seed, kept: KEPT };
        let pages = Pages::new(source, database);
        for id in pages.ids() {
            this.add(&pages, database, id);
        }
        this
    }

    /// All sites of one page.
    pub fn of_page(pages: &Pages<'_>, database: &Database, page: PageId) -> Self {
        let mut this = Self { fields: BTreeMap::new(), seed: 0, kept: usize::MAX };
        this.add(pages, database, page);
        this
    }

    /// The structure and name of each field that includes this bit of a page.
    pub fn at(&self, byte: usize, bit: u8) -> impl Iterator<Item = (&str, &str)> {
        let covers = move |site: &Site| site.bytes.contains(&byte) && site.bit.is_none_or(|own| own == bit);
        let covered = self.fields().filter(move |(.., sites)| sites.drawn().any(covers));
        covered.map(|(structure, field, _)| (structure, field))
    }

    fn add(&mut self, pages: &Pages<'_>, database: &Database, page: PageId) {
        let Some(bytes) = pages.read(page) else { return };
        match pages.role(page, &bytes) {
            PageRole::Free => self.free(page),
            role => self.page(pages, database, page, &bytes, role),
        }
    }

    /// The fields with their sites.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str, &Sites)> {
        self.fields.iter().map(|((structure, field), sites)| (structure.as_str(), field.as_str(), sites))
    }

    fn put(&mut self, structure: &str, field: &str, site: Site) {
        let sites = self.fields.entry((structure.to_owned(), field.to_owned())).or_default();
        sites.put(self.seed, self.kept, site);
    }

    /// Adds an unallocated page. It has two fields: its header and its remaining bytes. A check must not report damage
    /// to them.
    fn free(&mut self, page: PageId) {
        self.put("page not in use", "header", Site { page, slot: None, bytes: 0..60, bit: None });
        self.put("page not in use", "rest", Site { page, slot: None, bytes: 96..8192, bit: None });
    }

    fn page(&mut self, pages: &Pages<'_>, database: &Database, page: PageId, bytes: &PageBytes, role: PageRole) {
        let view = Page::new(bytes);
        let rowset = pages.rowset(view.header().alloc_unit());
        let is_leaf = role != PageRole::Node;
        let instances = instances_of(bytes, is_leaf);
        // If the catalog describes the columns of the rows, each column of a row is a separate field.
        let has_columns = matches!(role, PageRole::Heap | PageRole::Clustered | PageRole::Leaf | PageRole::Node)
            && rowset.is_some_and(|rowset| !rowset.layout.columns.is_empty() && rowset.compression == 0);
        for instance in &instances {
            let is_column = matches!(
                instance.field.place,
                Place::Part(Part::FixedColumns | Part::VariableColumn | Part::NullBitmap)
            ) && matches!(instance.field.structure, Structure::DataRecord | Structure::IndexRecord);
            if has_columns && is_column {
                continue;
            }
            self.instance(pages, page, bytes, role, instance);
        }
        if let Some(rowset) = rowset.filter(|_| has_columns) {
            for (structure, field, site) in columns::sites(database, rowset, page, bytes, is_leaf, &instances) {
                self.put(&structure, &field, site);
            }
        }
    }

    fn instance(
        &mut self,
        pages: &Pages<'_>,
        page: PageId,
        bytes: &PageBytes,
        role: PageRole,
        instance: &FieldInstance,
    ) {
        let field = instance.field;
        let site = |bytes: Range<usize>, bit| Site { page, slot: instance.slot, bytes, bit };
        let structure = match field.structure {
            Structure::PageHeader | Structure::SlotArray => format!("{}, {}", field.structure.name(), role.name()),
            Structure::DataRecord | Structure::IndexRecord => match role {
                PageRole::FileHeader => format!("{}, {}", field.structure.name(), role.name()),
                _ => field.structure.name().to_owned(),
            },
            other => other.name().to_owned(),
        };
        match field.kind {
            Kind::PfsBytes => {
                let first = page.page / PFS_PAGES * PFS_PAGES;
                for at in instance.bytes.clone() {
                    let about = PageId::new(page.file, first + (at - instance.bytes.start) as u32);
                    let name = match pages.read(about) {
                        None => "behind the end".to_owned(),
                        Some(bytes) if pages.pfs(about).is_some_and(PfsByte::is_allocated) => {
                            pages.role(about, &bytes).name().to_owned()
                        }
                        Some(_) => PageRole::Free.name().to_owned(),
                    };
                    let is_far = name == "behind the end";
                    self.put(&structure, &format!("{} of a {name}", field.name), site(at..at + 1, None));
                    if is_far {
                        break;
                    }
                }
            }
            Kind::ExtentBits => {
                let start = match role {
                    PageRole::Iam => IamHeader::read(Page::new(bytes)).map_or(0, |header| header.start.page),
                    _ => page.page / INTERVAL_PAGES * INTERVAL_PAGES,
                };
                let end = pages.ids().filter(|id| id.file == page.file).count() as u32;
                let inside = end.saturating_sub(start).div_ceil(EXTENT_PAGES);
                let bits = (instance.bytes.len() * 8) as u32;
                for extent in 0..bits.min(inside + BITS_BEHIND_END) {
                    let at = instance.bytes.start + extent as usize / 8;
                    let bit = (extent % 8) as u8;
                    let is_set = bytes.get(at).is_some_and(|byte| byte >> bit & 1 == 1);
                    let name = match (extent < inside, is_set) {
                        (false, _) => "behind the end",
                        (true, true) => "1",
                        (true, false) => "0",
                    };
                    self.put(&structure, &format!("{}: {name}", field.name), site(at..at + 1, Some(bit)));
                }
            }
            _ => self.put(&structure, field.name, site(instance.bytes.clone(), None)),
        }
    }
}
