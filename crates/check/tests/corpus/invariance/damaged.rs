//! Lab databases with damage that depends on a seed: to fields, records and whole pages, and especially to the
//! ownership of pages.

use std::collections::BTreeMap;
use std::path::PathBuf;

use catalog::Database;
use format::allocation::{EXTENT_PAGES, IAM_SLOTS, INTERVAL_PAGES, IamHeader, bitmap};
use format::protection::undo_torn_bits;
use format::{PAGE_BYTES, Page, PageBytes, PageId, PageType};
use lab::Description;
use libtest_mimic::Failed;
use source::{MemoryFiles, PageSource};
use trials::mutate::{Damage, PageRole, Pages, Random, Site, Survey, Verb, damages, seal};

/// A sound database, with methods that damage copies of it.
pub struct Subject {
    pub files: MemoryFiles,
    pub written: Vec<PathBuf>,
    fields: Vec<Site>,
    damages: Vec<Damage>,
    iam_pages: Vec<PageId>,
    /// Pages with rows or off-row values.
    content: Vec<PageId>,
    _folder: tempfile::TempDir,
}

/// Changed pages, and at most one file that was truncated.
#[derive(Default)]
pub struct Changes {
    pages: BTreeMap<PageId, PageBytes>,
    cut: Option<(u16, usize)>,
    /// Whether allocation pages may have been changed. They determine which pages a backup contains.
    pub is_of_allocation: bool,
    /// Descriptions of the changes.
    pub what: Vec<String>,
}

impl Changes {
    /// The damaged database; `None` if its files are refused.
    pub fn of(&self, files: &MemoryFiles) -> Option<MemoryFiles> {
        let changed = files.with_pages(self.pages.iter().map(|(page, bytes)| (*page, *bytes))).ok()?;
        match self.cut {
            Some((file, length)) => changed.cut(file, length).ok(),
            None => Some(changed),
        }
    }

    /// Writes the changed pages to copies of the files.
    pub fn write(&self, files: &MemoryFiles, copies: &[PathBuf]) -> std::io::Result<()> {
        for (page, bytes) in &self.pages {
            let name = files.path(page.file).and_then(|path| path.file_name());
            let Some(copy) = copies.iter().find(|copy| copy.file_name() == name) else { continue };
            let file = std::fs::OpenOptions::new().write(true).open(copy)?;
            std::os::unix::fs::FileExt::write_all_at(&file, bytes, u64::from(page.page) * PAGE_BYTES as u64)?;
        }
        Ok(())
    }

    fn edit(&mut self, files: &MemoryFiles, page: PageId, change: impl FnOnce(&mut PageBytes)) {
        let Some(mut bytes) = self.pages.get(&page).copied().or_else(|| files.read_page(page).map(|bytes| *bytes))
        else {
            return;
        };
        undo_torn_bits(&mut bytes);
        change(&mut bytes);
        seal(&mut bytes);
        self.pages.insert(page, bytes);
    }
}

impl Subject {
    pub fn new(description: &Description) -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let written = lab::write(description, folder.path())?.files;
        let read = |path: &PathBuf| Ok((path.clone(), std::fs::read(path)?));
        let files = MemoryFiles::open(written.iter().map(read).collect::<std::io::Result<_>>()?)?;
        let database: Database = catalog::load(&files);
        let survey = Survey::of(&files, &database, description.seed);
        let fields = survey.fields().flat_map(|(_, _, sites)| sites.drawn().cloned()).collect();
        let pages = Pages::new(&files, &database);
        let (mut iam_pages, mut content) = (Vec::new(), Vec::new());
        for id in pages.ids() {
            let Some(bytes) = pages.read(id) else { continue };
            match pages.role(id, &bytes) {
                PageRole::Iam => iam_pages.push(id),
                PageRole::Heap | PageRole::Clustered | PageRole::Node | PageRole::Leaf | PageRole::Text => {
                    content.push(id);
                }
                _ => {}
            }
        }
        let damages = damages(&files, &database, None, description.seed);
        Ok(Self { damages, fields, iam_pages, content, written, files, _folder: folder })
    }

    /// One to four changes of any kind.
    pub fn damage(&self, seed: u64) -> Changes {
        self.damaged(seed, 0)
    }

    /// One to four changes to single pages with rows or off-row values, or to a field of any page.
    pub fn damage_to_content(&self, seed: u64) -> Changes {
        self.damaged(seed, 4)
    }

    fn damaged(&self, seed: u64, first_kind: usize) -> Changes {
        let mut random = Random::new(seed);
        let mut changes = Changes::default();
        for _ in 0..=random.below(4) {
            match first_kind + random.below(if first_kind == 0 { 10 } else { 5 }) {
                0..=2 => self.claim_extent(&mut changes, &mut random),
                3 => self.claim_page(&mut changes, &mut random),
                4 => self.rename(&mut changes, &mut random),
                5 => self.copy(&mut changes, &mut random),
                6 => self.record(&mut changes, &mut random),
                7 => self.noise(&mut changes, &mut random),
                8 => self.field(&mut changes, &mut random),
                _ => self.whole(&mut changes, &mut random),
            }
        }
        changes
    }

    /// A single change: the header of one page names the unit of another page.
    pub fn renamed(&self, seed: u64) -> Changes {
        let mut changes = Changes::default();
        self.rename(&mut changes, &mut Random::new(seed));
        changes
    }

    /// Finds a user table and returns two sets of changes. The first set breaks a link in the table's B-tree. The
    /// second set breaks the same link, and also makes the first IAM page of another unit claim an extent of the tree.
    /// This extent does not contain the page with the broken link.
    pub fn broken_and_claimed(&self, database: &Database) -> Option<(i32, Changes, Changes)> {
        let header = |page: &PageId| self.files.read_page(*page).map(|bytes| *Page::new(&bytes).header());
        let is_tree = |unit: &&catalog::AllocUnit| {
            let rowset = database.rowset_of(unit).filter(|_| unit.kind == catalog::UnitKind::InRow);
            rowset.is_some_and(|rowset| rowset.index_id == 1 && !database.is_system_table(rowset.object_id))
        };
        let unit = database.units.iter().find(is_tree)?;
        let is_leaf = |page: &&PageId| {
            header(page).is_some_and(|header| header.alloc_unit() == unit.id && header.kind() == Some(PageType::Data))
        };
        let leaves: Vec<PageId> = self.content.iter().filter(is_leaf).copied().collect();
        let (&link, &extent) = (leaves.get(leaves.len() / 3)?, leaves.get(leaves.len() * 2 / 3)?);
        let iam =
            self.iam_pages.iter().find(|page| header(page).is_some_and(|header| header.alloc_unit() != unit.id))?;
        let (mut broken, mut claimed) = (Changes::default(), Changes::default());
        [&mut broken, &mut claimed]
            .into_iter()
            .for_each(|changes| changes.edit(&self.files, link, |bytes| bytes[16] ^= 1));
        claimed.edit(&self.files, *iam, |bytes| claim(bytes, extent, false));
        (link.page / EXTENT_PAGES != extent.page / EXTENT_PAGES).then_some(())?;
        Some((database.rowset_of(unit)?.object_id, broken, claimed))
    }

    /// Lets one to three IAM pages claim the extent of a page, or in some cases the adjacent extent.
    fn claim_extent(&self, changes: &mut Changes, random: &mut Random) {
        changes.is_of_allocation = true;
        let Some(&target) = random.pick(&self.content) else { return };
        let is_beside = random.below(8) == 0;
        for _ in 0..=random.below(3) {
            let Some(&iam) = random.pick(&self.iam_pages) else { return };
            changes.what.push(format!("IAM page {iam} claims the extent of {target}"));
            changes.edit(&self.files, iam, |bytes| claim(bytes, target, is_beside));
        }
    }

    /// Makes an IAM page list a page as a single page, or makes an IAM page no longer claim one of its extents.
    fn claim_page(&self, changes: &mut Changes, random: &mut Random) {
        changes.is_of_allocation = true;
        let (Some(&target), Some(&iam)) = (random.pick(&self.content), random.pick(&self.iam_pages)) else { return };
        let (slot, at) = (random.below(IAM_SLOTS), random.below(64));
        let is_listed = random.below(3) > 0;
        changes.what.push(format!("IAM page {iam} lists {target} or loses an extent"));
        changes.edit(&self.files, iam, |bytes| {
            let view = Page::new(bytes);
            let (Some(header), Some(map)) = (view.slot_offset(0), view.slot_offset(1)) else { return };
            if is_listed {
                let at = usize::from(header) + 46 + 6 * slot;
                bytes[at..at + 4].copy_from_slice(&target.page.to_le_bytes());
                bytes[at + 4..at + 6].copy_from_slice(&target.file.to_le_bytes());
            } else {
                bytes[usize::from(map) + 4 + at / 8] &= !(1 << (at % 8));
            }
        });
    }

    /// Makes the header of a page name the unit of another page.
    fn rename(&self, changes: &mut Changes, random: &mut Random) {
        let (Some(&page), Some(&other)) = (random.pick(&self.content), random.pick(&self.content)) else { return };
        let Some(from) = self.files.read_page(other) else { return };
        changes.what.push(format!("{page} names the unit of {other}"));
        changes.edit(&self.files, page, |bytes| {
            for field in [6..8, 24..28] {
                bytes[field.clone()].copy_from_slice(&from[field]);
            }
        });
    }

    /// Replaces a page by a copy of another page, which keeps the page ID of the replaced page.
    fn copy(&self, changes: &mut Changes, random: &mut Random) {
        let (Some(&page), Some(&other)) = (random.pick(&self.content), random.pick(&self.content)) else { return };
        let Some(mut from) = self.files.read_page(other) else { return };
        undo_torn_bits(&mut from);
        changes.what.push(format!("{page} is a copy of {other}"));
        changes.edit(&self.files, page, |bytes| {
            let own = bytes[32..38].to_owned();
            *bytes = *from;
            bytes[32..38].copy_from_slice(&own);
        });
    }

    /// Changes one of the first 14 bytes of a record.
    fn record(&self, changes: &mut Changes, random: &mut Random) {
        let Some(&page) = random.pick(&self.content) else { return };
        let (slot, at, value) = (random.number(), random.below(14), random.number() as u8);
        changes.what.push(format!("a record of {page}"));
        changes.edit(&self.files, page, |bytes| {
            let view = Page::new(bytes);
            let slots = u64::from(view.header().slot_count.get().max(1));
            let offset = view.slot_offset((slot % slots) as u16).map_or(0, usize::from);
            if let Some(byte) = bytes.get_mut(offset + at).filter(|_| offset >= 96) {
                *byte = if at == 0 { value & 0x7E } else { value };
            }
        });
    }

    fn noise(&self, changes: &mut Changes, random: &mut Random) {
        let Some(&page) = random.pick(&self.content) else { return };
        let (at, bit) = (random.below(PAGE_BYTES), random.below(8));
        let header = random.below(3) == 0;
        changes.what.push(format!("a bit of {page}"));
        changes.edit(&self.files, page, |bytes| bytes[if header { at % 60 } else { at }] ^= 1 << bit);
    }

    fn field(&self, changes: &mut Changes, random: &mut Random) {
        let (Some(site), Some(&verb)) = (random.pick(&self.fields), random.pick(&Verb::ALL)) else { return };
        changes.what.push(format!("{} at {:?} of {}", verb.name(), site.bytes, site.page));
        let kind = self.files.read_page(site.page).and_then(|bytes| Page::new(&bytes).header().kind());
        changes.is_of_allocation |=
            !matches!(kind, Some(PageType::Data | PageType::Index | PageType::TextMix | PageType::TextTree));
        changes.edit(&self.files, site.page, |bytes| {
            site.apply(bytes, verb, None);
        });
    }

    fn whole(&self, changes: &mut Changes, random: &mut Random) {
        let Some(damage) = random.pick(&self.damages) else { return };
        changes.what.push(format!("{} at {}", damage.kind, damage.page));
        changes.is_of_allocation = true;
        changes.pages.extend(damage.changes.iter().copied());
        changes.cut = damage.cut.or(changes.cut);
    }
}

/// Lets an IAM page claim the extent of a page in the same file or, with `is_beside`, the adjacent extent.
fn claim(bytes: &mut PageBytes, target: PageId, is_beside: bool) {
    let view = Page::new(bytes);
    let start = IamHeader::read(view).map(|header| header.start).unwrap_or_default();
    let Some(slot) = view.slot_offset(1).filter(|_| bitmap(view).is_some()) else { return };
    if start.file == target.file {
        let extent = (target.page % INTERVAL_PAGES / EXTENT_PAGES) as usize ^ usize::from(is_beside);
        bytes[usize::from(slot) + 4 + extent / 8] |= 1 << (extent % 8);
    }
}
