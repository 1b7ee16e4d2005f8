//! A database in memory that tests can damage.

use std::io::Write;
use std::path::Path;

use catalog::{AllocUnit, Database, UnitKind};
use check::{Progress, Silent};
use findings::{Options, Report};
use format::page::{PAGE_BYTES, page_flags};
use format::protection::{self, undo_torn_bits};
use format::slots::SlotOrder;
use format::{Page, PageBytes, PageId, PageType};
use lab::Description;
use source::DataFiles;

/// A copy of a data file.
#[derive(Clone)]
pub struct Image {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
}

impl Image {
    /// Reads the data file at `path`.
    pub fn load(path: &Path) -> Self {
        Self { bytes: std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())) }
    }

    /// Lets the lab write a database, which must have one data file, and reads this file.
    pub fn write(description: &Description) -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let written = lab::write(description, folder.path()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(written.files.len(), 1, "{}: data files", description.name);
        Self::load(&written.files[0])
    }

    fn raw(&mut self, page: u32) -> &mut PageBytes {
        self.bytes[page as usize * PAGE_BYTES..].first_chunk_mut().expect("page inside the file")
    }

    /// The page as it is in memory. The bits that torn-page protection replaced are restored.
    pub fn page(&self, page: u32) -> PageBytes {
        let mut bytes = *self.bytes[page as usize * PAGE_BYTES..].first_chunk().expect("page inside the file");
        undo_torn_bits(&mut bytes);
        bytes
    }

    /// Changes a page and corrects its protection.
    pub fn edit(&mut self, page: u32, change: impl FnOnce(&mut PageBytes)) {
        let mut bytes = self.page(page);
        change(&mut bytes);
        seal(&mut bytes);
        *self.raw(page) = bytes;
    }

    /// Changes a page as stored on disk, without correcting its protection.
    pub fn edit_unsealed(&mut self, page: u32, change: impl FnOnce(&mut PageBytes)) {
        change(self.raw(page));
    }

    /// Checks the database.
    pub fn check(&self) -> Report {
        self.check_with(&Options::default())
    }

    /// Checks the database with options.
    pub fn check_with(&self, options: &Options) -> Report {
        self.with_files(|files| {
            let database = catalog::load(files);
            let report = check::run(files, &database, options, &Silent);
            crate::coverage::record(&report);
            report
        })
    }

    /// Checks the database with a changed catalog.
    pub fn check_as(&self, alter: impl FnOnce(&mut Database)) -> Report {
        self.with_files(|files| {
            let mut database = catalog::load(files);
            alter(&mut database);
            let report = check::run(files, &database, &Options::default(), &Silent);
            crate::coverage::record(&report);
            report
        })
    }

    /// Checks the database with options and a changed catalog.
    pub fn check_changed(&self, options: &Options, change: impl FnOnce(&mut Database)) -> Report {
        self.with_files(|files| {
            let mut database = catalog::load(files);
            change(&mut database);
            let report = check::run(files, &database, options, &Silent);
            crate::coverage::record(&report);
            report
        })
    }

    /// The catalog of the database.
    pub fn database(&self) -> Database {
        self.with_files(|files| catalog::load(files))
    }

    /// Like [`Self::check_with`]; `None` when the file is refused.
    pub fn try_check_with(&self, options: &Options, progress: &dyn Progress) -> Option<Report> {
        let mut file = tempfile::NamedTempFile::new().expect("temporary file");
        file.write_all(&self.bytes).expect("temporary file");
        let files = DataFiles::open(&[file.path().to_owned()]).ok()?;
        let database = catalog::load(&files);
        let report = check::run(&files, &database, options, progress);
        // Every finding must have a printable message.
        assert!(report.findings.iter().all(|finding| !finding.text(&report.names()).is_empty()));
        Some(report)
    }

    fn with_files<T>(&self, then: impl FnOnce(&DataFiles) -> T) -> T {
        let mut file = tempfile::NamedTempFile::new().expect("temporary file");
        file.write_all(&self.bytes).expect("temporary file");
        let files = DataFiles::open(&[file.path().to_owned()]).unwrap_or_else(|error| panic!("{error}"));
        then(&files)
    }

    /// Changes the record of a base table whose first column, a 64-bit number, is `id`. Returns the record's page.
    pub fn edit_row(&mut self, table: u64, id: u64, change: impl FnOnce(&mut [u8])) -> u32 {
        self.edit_row_by(table, &id.to_le_bytes(), change)
    }

    /// Changes the record of a base table whose fixed columns begin with the bytes `key`. Returns the record's page.
    pub fn edit_row_by(&mut self, table: u64, key: &[u8], change: impl FnOnce(&mut [u8])) -> u32 {
        for page in 0..(self.bytes.len() / PAGE_BYTES) as u32 {
            let bytes = self.page(page);
            let header = *Page::new(&bytes).header();
            let in_use = self.page(1)[100 + page as usize] & 0x40 != 0;
            if header.page_type != 1 || header.alloc_unit().0 != table << 16 || !in_use {
                continue;
            }
            for slot in 0..header.slot_count.get() {
                let at = offset_of(&bytes, slot);
                if bytes[at + 4..].starts_with(key) {
                    self.edit(page, |bytes| change(&mut bytes[at..]));
                    return page;
                }
            }
        }
        panic!("{key:x?} is not in base table {table}")
    }

    /// Changes all records of a base table.
    pub fn edit_each_row(&mut self, table: u64, mut change: impl FnMut(&mut [u8])) {
        for page in 0..(self.bytes.len() / PAGE_BYTES) as u32 {
            let bytes = self.page(page);
            let header = *Page::new(&bytes).header();
            let in_use = || self.page(1)[100 + page as usize] & 0x40 != 0;
            if header.page_type != 1 || header.alloc_unit().0 != table << 16 || !in_use() {
                continue;
            }
            self.edit(page, |bytes| {
                for slot in 0..header.slot_count.get() {
                    let at = offset_of(bytes, slot);
                    change(&mut bytes[at..]);
                }
            });
        }
    }

    /// Changes the record of an object in sysschobjs. Returns the record's page.
    pub fn edit_object(&mut self, object: i32, change: impl FnOnce(&mut [u8])) -> u32 {
        let database = self.database();
        let base =
            |unit: &&AllocUnit| database.rowset_of(unit).is_some_and(|row| (row.object_id, row.index_id) == (34, 1));
        let unit = database.units.iter().find(base).expect("sysschobjs").id;
        for page in 0..(self.bytes.len() / PAGE_BYTES) as u32 {
            let bytes = self.page(page);
            let header = *Page::new(&bytes).header();
            if header.page_type != 1 || header.alloc_unit() != unit || self.page(1)[100 + page as usize] & 0x40 == 0 {
                continue;
            }
            for slot in 0..header.slot_count.get() {
                let at = offset_of(&bytes, slot);
                if bytes[at + 4..at + 8] == object.to_le_bytes() {
                    self.edit(page, |bytes| change(&mut bytes[at..]));
                    return page;
                }
            }
        }
        panic!("object {object} is not in sysschobjs")
    }

    /// Returns the B-tree with the most leaf pages among all user tables. `clustered` says whether clustered or
    /// nonclustered indexes are searched.
    pub fn tree(&self, clustered: bool) -> Tree {
        let database = self.database();
        let mut best: Option<Tree> = None;
        for (at, unit) in database.units.iter().enumerate() {
            let Some(rowset) = database.rowset_of(unit) else { continue };
            let user = database.objects.get(&rowset.object_id).is_some_and(|object| object.type_code == "U");
            if !user
                || unit.kind != UnitKind::InRow
                || unit.root.is_none()
                || (rowset.index_id == 1) != clustered
                || rowset.index_id == 0
            {
                continue;
            }
            let root = self.page(unit.root.page);
            if Page::new(&root).header().kind() != Some(PageType::Index)
                || Page::new(&root).header().level == 0 && !clustered
            {
                continue;
            }
            let children = children(&root);
            if best.as_ref().is_none_or(|best| best.leaves.len() < children.len()) {
                best = Some(Tree { unit: database.units[at].clone(), root: unit.root.page, leaves: children });
            }
        }
        best.expect("a tree with a root above its leaves")
    }
}

/// A B-tree of two levels.
pub struct Tree {
    /// The allocation unit of the tree.
    pub unit: AllocUnit,
    /// Root page.
    pub root: u32,
    /// Leaf pages in key order.
    pub leaves: Vec<u32>,
}

/// The child pages of a non-leaf page.
pub fn children(page: &PageBytes) -> Vec<u32> {
    let view = Page::new(page);
    let at = usize::from(view.header().pminlen.get()) - 6;
    (0..view.header().slot_count.get())
        .map(|slot| PageId::read(page, usize::from(view.slot_offset(slot).expect("slot")) + at).expect("child").page)
        .collect()
}

/// Writes a 16-bit field.
pub fn put16(page: &mut PageBytes, at: usize, value: u16) {
    page[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

/// Writes a page pointer.
pub fn put_page(page: &mut PageBytes, at: usize, value: PageId) {
    page[at..at + 4].copy_from_slice(&value.page.to_le_bytes());
    page[at + 4..at + 6].copy_from_slice(&value.file.to_le_bytes());
}

/// Reads a 16-bit field.
pub fn get16(page: &PageBytes, at: usize) -> u16 {
    u16::from_le_bytes([page[at], page[at + 1]])
}

/// Offset of a slot's entry in the slot array.
pub fn slot_at(slot: u16) -> usize {
    // On a damaged page, the slot count can be any number, so the subtraction must not wrap.
    PAGE_BYTES.saturating_sub(2 + 2 * usize::from(slot))
}

/// Offset of the record in a slot.
pub fn offset_of(page: &PageBytes, slot: u16) -> usize {
    usize::from(get16(page, slot_at(slot)))
}

/// The slots, in the order of the offsets of their records.
pub fn by_place(page: &PageBytes) -> Vec<u16> {
    let mut order = SlotOrder::default();
    order.load(Page::new(page));
    order.entries().iter().map(|entry| entry.slot).collect()
}

/// Corrects the protection of a changed page: its checksum or its torn-page bits.
pub fn seal(page: &mut PageBytes) {
    let flags = get16(page, 4);
    if flags & page_flags::CHECKSUM != 0 {
        let sum = protection::checksum(page);
        page[60..64].copy_from_slice(&sum.to_le_bytes());
    } else if flags & page_flags::TORN_BITS != 0 {
        let mut word = 1u32;
        for sector in 1..16 {
            let byte = &mut page[sector * 512 + 511];
            word |= u32::from(*byte & 3) << (2 * sector);
            *byte = (*byte & !3) | 1;
        }
        page[60..64].copy_from_slice(&word.to_le_bytes());
    }
}
