//! Finds base tables and the pages of tables by the headers of all pages, for a database that has lost the pages to which
//! its catalog hangs: the boot page, or pages of the base tables that describe all others.
//!
//! A page header names the allocation unit of the page. The allocation units of base tables have fixed IDs, so their
//! pages can be found without any other page. Pages of other units are counted, with the form of their records, so that
//! tables without a description can be delivered as raw fields.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use format::allocation::{PFS_PAGES, PfsByte, pfs_bytes, pfs_page_of};
use format::protection::{undo_torn_bits, verify};
use format::record::{Record, RecordKind};
use format::slots::SlotOrder;
use format::{AllocUnitId, Lsn, PAGE_BYTES, Page, PageBytes, PageId, PageType};
use source::PageSource;

/// The number of pages per read.
const BATCH: u32 = 64;
/// The memory for a leaf page of a base table, in bytes: its place and links, twice while they are compared. The catalog
/// of 100,000 tables has some 30,000 leaf pages.
const LEAF_BYTES: usize = 160;
/// The memory for an allocation unit with the form of its records, in bytes.
const UNIT_BYTES: usize = 400;
/// The most different lengths of fixed parts that are remembered of a unit.
const MOST_ENDS: usize = 16;
/// The number of cells into which a file is divided for a picture of what is left.
pub const CELLS: usize = 64;
/// Base tables have object IDs below this one.
const FIRST_OTHER_OBJECT: u64 = 100;
/// Object IDs of base tables that only SQL Server 2005 has (syshobtcolumns, sysrowsetcolumns), and of sysrscols, which
/// followed them.
const ONLY_2005: [i32; 2] = [13, 4];

/// What the headers of all pages say about a database.
#[derive(Debug, Default)]
pub struct Found {
    /// The leaf pages of base tables, by allocation unit. The page that was changed last comes last.
    leaves: BTreeMap<AllocUnitId, Vec<PageId>>,
    /// The records of all other allocation units that have data pages.
    pub units: BTreeMap<AllocUnitId, RecordForm>,
    /// What is left of each file.
    pub files: Vec<FileRemains>,
    /// The longest fixed part of the records of each base table, according to its page headers.
    lengths: BTreeMap<AllocUnitId, u16>,
    /// Whether there were too many pages or units to remember all of them.
    pub is_cut: bool,
}

/// What is left of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileRemains {
    /// The file ID.
    pub file_id: u16,
    /// All pages of the file.
    pub pages: PageCounts,
    /// The page after the last damaged page; 0 if no page is damaged.
    pub whole_from: u32,
    /// The pages of the file in at most [`CELLS`] parts of equal length.
    pub cells: Vec<PageCounts>,
}

/// The pages of a file or of a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// All pages.
    pub all: u32,
    /// Intact pages: their protection and page ID are right, and their type is known.
    pub intact: u32,
    /// Pages of zeros. They were never used, or they were overwritten.
    pub empty: u32,
}

impl PageCounts {
    /// Pages that are neither intact nor empty.
    pub fn damaged(self) -> u32 {
        self.all.saturating_sub(self.intact).saturating_sub(self.empty)
    }

    fn add(&mut self, state: State) {
        self.all += 1;
        self.intact += u32::from(state == State::Intact);
        self.empty += u32::from(state == State::Empty);
    }
}

/// The state of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Intact,
    Empty,
    Damaged,
}

/// The form of the records of an allocation unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordForm {
    /// The number of data pages.
    pub pages: u64,
    /// The number of records, without deleted rows and forwarding stubs.
    pub rows: u64,
    /// The lengths of the fixed parts; if there are more than 16, some of them, and always the longest.
    pub ends: BTreeSet<u16>,
    /// The highest number of columns in a record.
    pub columns: u16,
    /// The highest number of variable-length columns in a record.
    pub variables: u16,
    /// Whether some records are compressed. Their form is not described here.
    pub is_compressed: bool,
}

/// A leaf page of a base table.
struct Leaf {
    lsn: Lsn,
    page: PageId,
    prev: PageId,
    next: PageId,
    /// Whether the PFS page marks the page as in use; false if the PFS page cannot be read.
    is_allocated: bool,
}

impl Found {
    /// Reads all pages, and needs at most `memory` bytes for what they say. `progress` gets the number of pages after each
    /// read.
    pub fn find(source: &dyn PageSource, memory: usize, progress: &dyn Fn(u64)) -> Self {
        let most = (memory / 2 / LEAF_BYTES, memory / 2 / UNIT_BYTES);
        let mut search = Search { most, ..Search::default() };
        for file in source.files() {
            search.file(source, (file.file_id, file.pages), progress);
        }
        let Search { mut found, leaves, .. } = search;
        let current = leaves.into_iter().map(|(unit, leaves)| (unit, current(leaves)));
        found.leaves = current.filter(|(_, pages)| !pages.is_empty()).collect();
        found
    }

    /// Whether the base tables are those of SQL Server 2005, which have two tables in place of sysrscols.
    pub(crate) fn is_2005(&self) -> bool {
        let has = |object: i32| !self.leaves_of(object).1.is_empty();
        !has(3) && ONLY_2005.iter().any(|object| has(*object))
    }

    /// The allocation unit of a base table, and its leaf pages; the page that was changed last comes last.
    pub(crate) fn leaves_of(&self, object_id: i32) -> (AllocUnitId, &[PageId]) {
        let found = units_of(object_id).into_iter().find_map(|unit| Some((unit, self.leaves.get(&unit)?.as_slice())));
        found.unwrap_or_default()
    }

    /// The number of pages of base tables that were found.
    pub fn catalog_pages(&self) -> u64 {
        self.leaves.values().map(|pages| pages.len() as u64).sum()
    }

    /// The releases that may have written the database, by the tables of its catalog and the length of their rows
    /// (docs/format/catalog.md#known-columns); `None` if none of these tables was found.
    pub fn release(&self) -> Option<&'static str> {
        const SYSISCOLS: u32 = 55;
        if self.is_2005() {
            return Some("SQL Server 2005");
        }
        Some(match self.lengths.get(&AllocUnitId::from_header(1, SYSISCOLS))? {
            ..=26 => "SQL Server 2008 or 2008 R2",
            27 => "SQL Server 2012 or 2014",
            _ => "SQL Server 2016 or later",
        })
    }
}

/// The allocation units that may have the rows of a base table. sysrscols, sysrowsets, sysallocunits and their
/// predecessors have index ID 0 in their page headers; all others have the ID of their clustered index.
fn units_of(object_id: i32) -> [AllocUnitId; 2] {
    let object_id = object_id.unsigned_abs();
    [AllocUnitId::from_header(1, object_id), AllocUnitId::from_header(0, object_id)]
}

/// Whether a unit belongs to a base table, whichever of its indexes.
fn is_base(unit: AllocUnitId) -> bool {
    // The IDs of user tables' units begin at index ID 256.
    unit.0 >> 48 < 256 && unit.0 >> 16 & 0xFFFF_FFFF < FIRST_OTHER_OBJECT
}

/// The pages that are part of the table, in the order of their last change. A page whose PFS page is lost may have been
/// freed: it then keeps its content, but its neighbors do not point to it any more.
fn current(mut leaves: Vec<Leaf>) -> Vec<PageId> {
    leaves.sort_by_key(|leaf| (leaf.lsn, leaf.page));
    let by_page: HashMap<PageId, (PageId, PageId)> =
        leaves.iter().map(|leaf| (leaf.page, (leaf.prev, leaf.next))).collect();
    let is_current = |leaf: &&Leaf| {
        let from_left = by_page.get(&leaf.prev).map(|(_, next)| *next == leaf.page);
        let from_right = by_page.get(&leaf.next).map(|(prev, _)| *prev == leaf.page);
        let said = [from_left, from_right];
        leaf.is_allocated || said.contains(&Some(true)) || !said.contains(&Some(false))
    };
    leaves.iter().filter(is_current).map(|leaf| leaf.page).collect()
}

#[derive(Default)]
struct Search {
    found: Found,
    leaves: BTreeMap<AllocUnitId, Vec<Leaf>>,
    kept: usize,
    /// The most leaf pages of base tables, and the most other units, that are kept.
    most: (usize, usize),
    order: SlotOrder,
    /// The PFS page of the current interval; `None` if it cannot be read.
    pfs: Option<Box<PageBytes>>,
}

impl Search {
    fn file(&mut self, source: &dyn PageSource, (file_id, pages): (u16, u32), progress: &dyn Fn(u64)) {
        let cells = vec![PageCounts::default(); CELLS.min(pages as usize)];
        let mut remains = FileRemains { file_id, cells, ..FileRemains::default() };
        let mut buffer = vec![0; BATCH as usize * PAGE_BYTES];
        self.pfs = None;
        let mut first = 0;
        while first < pages {
            let wanted = BATCH.min(pages - first);
            let at = PageId::new(file_id, first);
            source.prefetch(PageId::new(file_id, first.saturating_add(wanted)), BATCH);
            let room = buffer.get_mut(..wanted as usize * PAGE_BYTES).unwrap_or_default();
            let read = source.read(at, room).unwrap_or_else(|_| one_by_one(source, at, room));
            for (bytes, page) in room.as_chunks_mut().0.iter_mut().take(read).zip(first..) {
                let state = self.page(PageId::new(file_id, page), bytes);
                remains.count((page, pages), state);
            }
            // A file that has become shorter has no more pages.
            (first + read as u32..first + wanted).for_each(|page| remains.count((page, pages), State::Damaged));
            progress(wanted.into());
            first += wanted;
        }
        self.found.files.push(remains);
    }

    /// Takes up one page; returns its state.
    fn page(&mut self, id: PageId, bytes: &mut PageBytes) -> State {
        let is_map = pfs_page_of(id.page) == id.page;
        if is_map {
            self.pfs = None;
        }
        if verify(bytes).is_err() {
            return State::Damaged;
        }
        undo_torn_bits(bytes);
        let page = Page::new(bytes);
        let header = page.header();
        let Some(kind) = header.kind().filter(|_| header.page_id() == id && header.header_version == 1) else {
            let is_empty = bytes.iter().all(|byte| *byte == 0);
            return if is_empty { State::Empty } else { State::Damaged };
        };
        match kind {
            PageType::Pfs if is_map => self.pfs = Some(Box::new(*bytes)),
            PageType::Data if header.level == 0 && !header.is_encrypted() => self.data(id, page),
            _ => {}
        }
        State::Intact
    }

    /// Takes up a page with rows.
    fn data(&mut self, id: PageId, page: Page<'_>) {
        let in_use = self.pfs.as_deref().and_then(|map| {
            pfs_bytes(Page::new(map))?.get((id.page % PFS_PAGES) as usize).map(|byte| PfsByte(*byte).is_allocated())
        });
        if in_use == Some(false) {
            return;
        }
        let header = page.header();
        let unit = header.alloc_unit();
        if is_base(unit) {
            if self.kept == self.most.0 {
                self.found.is_cut = true;
                return;
            }
            self.kept += 1;
            let longest = self.found.lengths.entry(unit).or_default();
            *longest = header.pminlen.get().max(*longest);
            let (lsn, prev, next) = (header.lsn(), header.prev(), header.next());
            let leaf = Leaf { lsn, page: id, prev, next, is_allocated: in_use.is_some() };
            self.leaves.entry(unit).or_default().push(leaf);
            return;
        }
        if self.found.units.len() == self.most.1 && !self.found.units.contains_key(&unit) {
            self.found.is_cut = true;
            return;
        }
        self.order.load(page);
        self.found.units.entry(unit).or_default().add(page, &self.order);
    }
}

impl RecordForm {
    fn add(&mut self, page: Page<'_>, order: &SlotOrder) {
        /// The bit of a compressed record's first byte that records in the usual form do not have
        /// (docs/format/compression.md#recognizing-it).
        const COMPRESSED: u8 = 1;
        self.pages += 1;
        for position in 0..order.entries().len() {
            let space = order.space(page, position);
            if space.first().is_some_and(|status| status & COMPRESSED != 0) {
                self.is_compressed = true;
                continue;
            }
            let Ok(record) = Record::data(space) else { continue };
            if !matches!(RecordKind::of(record.status()), RecordKind::Primary | RecordKind::Forwarded) {
                continue;
            }
            self.rows += 1;
            self.columns = self.columns.max(record.column_count());
            // The last variable-length column of a forwarded row is its back pointer, not a column.
            let own = u16::from(record.kind() == RecordKind::Forwarded);
            self.variables = self.variables.max(record.variable_count().saturating_sub(own));
            let (end, longest) = (record.fixed_end(), self.ends.last().copied().unwrap_or_default());
            match self.ends.len() < MOST_ENDS {
                true => _ = self.ends.insert(end),
                // The longest one always counts: no byte of a record may be left out.
                false if end > longest => {
                    self.ends.remove(&longest);
                    self.ends.insert(end);
                }
                false => {}
            }
        }
    }
}

impl FileRemains {
    fn count(&mut self, (page, pages): (u32, u32), state: State) {
        let cell = u64::from(page) * self.cells.len() as u64 / u64::from(pages.max(1));
        self.cells.get_mut(cell as usize).into_iter().for_each(|cell| cell.add(state));
        self.pages.add(state);
        if state == State::Damaged {
            self.whole_from = page.saturating_add(1);
        }
    }
}

/// Reads page by page after a larger read has failed. A page that cannot be read is filled with zeros.
fn one_by_one(source: &dyn PageSource, first: PageId, room: &mut [u8]) -> usize {
    let mut pages = 0;
    for (bytes, page) in room.chunks_exact_mut(PAGE_BYTES).zip(first.page..) {
        match source.read_page(PageId::new(first.file, page)) {
            Some(read) => bytes.copy_from_slice(read.as_slice()),
            None => bytes.fill(0),
        }
        pages += 1;
    }
    pages
}
