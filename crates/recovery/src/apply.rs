//! Making the pages: redo, then what had not ended is taken back.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use format::allocation::{PFS_PAGES, PfsByte, pfs_page_of};
use format::log::change::Change;
use format::log::{LogRecord, Operation, TransactionId};
use format::page::{HEADER_BYTES, page_flags};
use format::protection::undo_torn_bits;
use format::{Lsn, Page, PageBytes, PageId, PageType};
use log::Log;
use source::PageSource;

use crate::analysis::{Analysis, Loser, Refusal, each_block, readable};
use crate::page::{Misfit, WorkingPage, fullness, seal};
use crate::store::{PageStore, RecordStore};

/// Context of bulk operations.
const BULK: u8 = 29;
/// What the record of a transaction that had not ended takes besides its own bytes.
const LOSER_RECORD_BYTES: usize = 200;
/// Contexts of changes that leave other rows in their slots.
const KEEPS_SLOTS: [u8; 3] = [1, 5, 6];

/// Bounds of a recovery.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Memory for records, pages and tables while it works; about half of it stays in use afterwards.
    pub memory_bytes: u64,
    /// Folder for temporary files; the system's without one.
    pub temp_dir: Option<PathBuf>,
}

/// A page that could not be brought to the end of the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NotRecovered {
    /// The page.
    pub page: PageId,
    /// Why.
    pub why: Misfit,
}

/// What a recovery did.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// Pages that are not as they are in the files.
    pub pages: u64,
    /// Records that were applied to them.
    pub records: u64,
    /// Transactions that were taken back.
    pub transactions_undone: u64,
    /// Transactions that another database decides about; they were not taken back.
    pub in_doubt: u64,
    /// Transactions of which something could not be taken back.
    pub transactions_not_undone: u64,
    /// Pages that are not as they would be: records do not fit, or changes were not taken back.
    pub not_recovered: Vec<NotRecovered>,
}

/// A recovery that has been made.
pub struct Recovery {
    /// What the log says.
    pub analysis: Analysis,
    /// What was done.
    pub applied: Applied,
    pub(crate) store: PageStore,
}

/// A record of a transaction that had not ended.
struct LoserRecord {
    transaction: TransactionId,
    previous: Lsn,
    is_compensation: bool,
    bytes: Vec<u8>,
    /// Where its row is at the end of the log; `None` if it is nowhere.
    row: Option<(PageId, u16)>,
}

/// A change to take back on a page.
struct Undo {
    lsn: Lsn,
    slot: u16,
    bytes: Vec<u8>,
    moved: Vec<Vec<u8>>,
    as_a_whole: bool,
}

impl Recovery {
    /// Makes the pages.
    ///
    /// # Errors
    /// [`Refusal`] if the log cannot be read again, or a temporary file fails.
    pub fn new(source: &dyn PageSource, log: &Log, analysis: Analysis, settings: &Settings) -> Result<Self, Refusal> {
        let memory = usize::try_from(settings.memory_bytes / 2).unwrap_or(usize::MAX).max(1 << 20);
        let mut applied = Applied::default();
        let on_disk = lsns_on_disk(source, &analysis);
        let mut records = RecordStore::new(settings.temp_dir.clone(), memory / 2);
        let mut losers = Losers::new(&analysis);
        each_block(log, analysis.from, |block| {
            if losers.bytes > memory {
                return Err(Refusal::TooMuchToUndo { needed_bytes: losers.bytes as u64 * 2 });
            }
            for (lsn, record) in block.records() {
                losers.record(lsn, &record);
                let Some(change) = record.on_page() else { continue };
                if on_disk.get(&change.page).is_some_and(|on_disk| *on_disk < lsn) {
                    records.push((change.page, lsn), record.bytes())?;
                }
            }
            Ok(())
        })?;
        let mut undo = losers.plan(&analysis, &mut applied);
        let heaps = losers.heap_pages();
        let mut sorted = records.into_sorted()?;
        let mut store = PageStore::new(settings.temp_dir.clone(), memory / 2);
        let mut to_make: BTreeSet<PageId> = undo.keys().chain(&heaps).copied().collect();
        let mut failed: BTreeMap<PageId, Misfit> = std::mem::take(&mut applied.not_recovered)
            .into_iter()
            .map(|NotRecovered { page, why }| (page, why))
            .collect();
        let mut filled: BTreeMap<PageId, u8> = BTreeMap::new();
        while let Some(page) = [sorted.next_page(), to_make.first().copied()].into_iter().flatten().min() {
            to_make.remove(&page);
            let undo = undo.remove(&page).unwrap_or_default();
            let mut making = Making::new(source, page, analysis.has_bulk);
            let mut records = 0;
            while let Some((lsn, bytes)) = sorted.next_of(page)? {
                making.redo(lsn, &LogRecord::new(&bytes));
                records += 1;
            }
            let is_changed = records > 0 || !undo.is_empty();
            match making.finish(&undo) {
                Ok(bytes) => {
                    store.put(page, &bytes)?;
                    applied.records += records;
                    filled.extend(heaps.contains(&page).then(|| fullness(&bytes)).flatten().map(|class| (page, class)));
                }
                // One that is made for its fullness alone is as it should be.
                Err(_) if !is_changed => {}
                Err(why) => {
                    failed.insert(page, why);
                }
            }
        }
        set_fullness(source, &mut store, &filled)?;
        applied.pages = store.pages().len() as u64;
        let not_recovered = failed.into_iter().filter(|(page, _)| is_allocated(source, &store, *page));
        applied.not_recovered = not_recovered.map(|(page, why)| NotRecovered { page, why }).collect();
        Ok(Self { analysis, applied, store })
    }
}

/// A PFS page as recovered, and where the byte of `page` is on it.
fn pfs_byte(source: &dyn PageSource, store: &PageStore, page: PageId) -> Option<(PageId, Box<PageBytes>, usize)> {
    /// The first byte of the record that is about a page.
    const BYTES_AT: usize = HEADER_BYTES + 4;
    let map = PageId::new(page.file, pfs_page_of(page.page));
    let bytes = store.get(map).or_else(|| readable(source, map))?;
    let header = Page::new(&bytes).header();
    let is_map = header.kind() == Some(PageType::Pfs) && header.page_id() == map;
    is_map.then_some((map, bytes, BYTES_AT + (page.page % PFS_PAGES) as usize))
}

/// How full heap and LOB pages are is not compensated when a transaction is taken back: the engine sets it anew.
fn set_fullness(source: &dyn PageSource, store: &mut PageStore, filled: &BTreeMap<PageId, u8>) -> Result<(), Refusal> {
    const CLASS: u8 = 7;
    for (page, class) in filled {
        let Some((map, mut bytes, at)) = pfs_byte(source, store, *page) else { continue };
        let Some(byte) = bytes.get_mut(at).filter(|byte| PfsByte(**byte).is_allocated() && **byte & CLASS != *class)
        else {
            continue;
        };
        *byte = *byte & !CLASS | class;
        let has_checksum = Page::new(&bytes).header().flags.get() & page_flags::CHECKSUM != 0;
        if has_checksum {
            seal(&mut bytes);
        } else {
            // Without its pattern of torn bits, which was undone.
            bytes = WorkingPage::load(&bytes).and_then(WorkingPage::finish).unwrap_or(bytes);
        }
        store.put(map, &bytes)?;
    }
    Ok(())
}

impl Recovery {
    /// Memory that stays in use.
    pub fn kept_bytes(&self) -> u64 {
        self.store.memory_bytes() as u64
    }
}

/// The LSN on disk of each page that the log changes later; zero of those that cannot be read.
fn lsns_on_disk(source: &dyn PageSource, analysis: &Analysis) -> HashMap<PageId, Lsn> {
    let mut found = HashMap::new();
    for page in analysis.pages_in_order() {
        if source.file(page.file).is_none() {
            // Of a file that is not there, or of the log's own header.
            continue;
        }
        let last = analysis.pages.get(&page).map(|history| history.last).unwrap_or_default();
        let lsn = source.read_page(page).filter(|bytes| format::protection::verify(bytes).is_ok());
        let lsn = lsn
            .map(|bytes| *Page::new(&bytes).header())
            .filter(|header| header.page_id() == page)
            .map(|header| header.lsn());
        let lsn = lsn.unwrap_or_default();
        if lsn < last {
            found.insert(page, lsn);
        }
    }
    found
}

/// A page on its way to the end of the log.
struct Making {
    id: PageId,
    /// The page so far; a reason why not, which a FORMAT_PAGE may still mend.
    page: Result<WorkingPage, Misfit>,
    /// A record did not fit: nothing mends that.
    misfit: Option<Misfit>,
    has_bulk: bool,
    /// A bulk operation may have filled it, without a record of its rows.
    is_bulk: bool,
}

impl Making {
    fn new(source: &dyn PageSource, id: PageId, has_bulk: bool) -> Self {
        let stored = if source.contains(id) { source.read_page(id) } else { None };
        let (page, misfit) = match stored {
            Some(stored) => (on_disk(id, &stored), None),
            None => (Err(Misfit::NotThere), Some(Misfit::NotThere)),
        };
        Self { id, page, misfit, has_bulk, is_bulk: false }
    }

    /// Applies a record, if the page does not have it yet.
    fn redo(&mut self, lsn: Lsn, record: &LogRecord<'_>) {
        if self.misfit.is_none() {
            self.misfit = self.apply(lsn, record).err();
        }
    }

    fn apply(&mut self, lsn: Lsn, record: &LogRecord<'_>) -> Result<(), Misfit> {
        if self.page.as_ref().is_ok_and(|page| page.lsn() >= lsn) {
            return Ok(());
        }
        let (Some(place), Some(change)) = (record.on_page(), record.change()) else {
            return Err(Misfit::RecordUnknown);
        };
        if let Change::Format(new) = &change {
            self.page = WorkingPage::format(self.id, (place.index_id, place.object_id), new);
            self.is_bulk = self.has_bulk || record.context() == BULK;
        } else if let Ok(page) = &mut self.page {
            if page.lsn() != place.page_lsn {
                return Err(Misfit::OtherMoment);
            }
            page.redo(place.slot, record.context(), &change)?;
        }
        if let Ok(page) = &mut self.page {
            page.set_lsn(lsn);
        }
        Ok(())
    }

    /// Takes back what had not ended, and lays the page out.
    fn finish(self, undo: &[Undo]) -> Result<Box<PageBytes>, Misfit> {
        if let Some(misfit) = self.misfit {
            return Err(misfit);
        }
        let mut page = self.page?;
        if self.is_bulk && page.is_empty() {
            return Err(Misfit::BulkRows);
        }
        for undo in undo {
            let record = LogRecord::new(&undo.bytes);
            let change = record.change().ok_or(Misfit::RecordUnknown)?;
            page.undo(undo.slot, record.context(), &change, &undo.moved, undo.as_a_whole)?;
        }
        page.finish()
    }
}

/// The page as stored on disk, if it is sound.
fn on_disk(id: PageId, stored: &PageBytes) -> Result<WorkingPage, Misfit> {
    if format::protection::verify(stored).is_err() {
        return Err(Misfit::PageDamaged);
    }
    let mut bytes = Box::new(*stored);
    undo_torn_bits(&mut bytes);
    let header = Page::new(&bytes).header();
    let is_blank = bytes.iter().take(HEADER_BYTES).all(|byte| *byte == 0);
    if header.page_id() != id && !is_blank {
        return Err(Misfit::PageDamaged);
    }
    WorkingPage::load(&bytes)
}

/// Whether a page is allocated after recovery, by its PFS page; one that no PFS page can be read for counts as such.
fn is_allocated(source: &dyn PageSource, store: &PageStore, page: PageId) -> bool {
    let byte = pfs_byte(source, store, page).and_then(|(_, bytes, at)| bytes.get(at).copied());
    byte.is_none_or(|byte| PfsByte(byte).is_allocated())
}

/// Follows what transactions that had not ended did, and where their rows went.
struct Losers<'a> {
    losers: &'a BTreeMap<TransactionId, Loser>,
    records: BTreeMap<Lsn, LoserRecord>,
    /// Records whose rows are on a page.
    on_page: HashMap<PageId, Vec<Lsn>>,
    /// Where each transaction inserted rows last: the receiver of a split.
    inserted: HashMap<TransactionId, (PageId, u16, u16)>,
    /// What the records take.
    bytes: usize,
}

impl<'a> Losers<'a> {
    fn new(analysis: &'a Analysis) -> Self {
        Self {
            losers: &analysis.losers,
            records: BTreeMap::new(),
            on_page: HashMap::new(),
            inserted: HashMap::new(),
            bytes: 0,
        }
    }

    fn record(&mut self, lsn: Lsn, record: &LogRecord<'_>) {
        if self.losers.is_empty() {
            return;
        }
        let id = record.transaction();
        if matches!(record.operation(), Operation::COMMIT_XACT | Operation::ABORT_XACT) {
            self.inserted.remove(&id);
        }
        let loser = self.losers.get(&id);
        // What is taken back as a whole moves no rows in the end.
        if loser.is_none_or(|loser| !loser.is_structural) {
            self.follow(record, id);
        }
        if loser.is_none() {
            return;
        }
        let row = record.on_page().map(|place| (place.page, place.slot));
        if let Some((page, _)) = row {
            self.on_page.entry(page).or_default().push(lsn);
        }
        self.bytes += record.bytes().len() + LOSER_RECORD_BYTES;
        self.records.insert(
            lsn,
            LoserRecord {
                transaction: id,
                previous: record.previous_lsn(),
                is_compensation: record.is_compensation(),
                bytes: record.bytes().to_vec(),
                row,
            },
        );
    }

    /// Moves rows along with what a record does to their page.
    fn follow(&mut self, record: &LogRecord<'_>, id: TransactionId) {
        let Some(place) = record.on_page() else { return };
        let operation = record.operation();
        let is_insert = operation == Operation::INSERT_ROWS;
        if !is_insert && !self.on_page.contains_key(&place.page) {
            return;
        }
        let keeps_slots = KEEPS_SLOTS.contains(&record.context());
        match record.change() {
            Some(Change::Insert { images, over_ghost: false }) if !keeps_slots => {
                let count = images.len() as u16;
                self.inserted.insert(id, (place.page, place.slot, count));
                self.shift(place.page, |slot| if slot >= place.slot { slot.checked_add(count) } else { Some(slot) });
            }
            Some(Change::Delete { marks_ghost: false, .. } | Change::Expunge) if !keeps_slots => {
                self.shift(place.page, |slot| match slot.cmp(&place.slot) {
                    std::cmp::Ordering::Less => Some(slot),
                    std::cmp::Ordering::Equal => None,
                    std::cmp::Ordering::Greater => Some(slot - 1),
                });
            }
            Some(Change::DropMoved { rows, .. }) => self.split(place.page, place.slot, rows, id),
            Some(Change::Format(_)) => self.shift(place.page, |_| None),
            _ => {}
        }
    }

    fn shift(&mut self, page: PageId, to: impl Fn(u16) -> Option<u16>) {
        for lsn in self.on_page.get(&page).into_iter().flatten() {
            if let Some(record) = self.records.get_mut(lsn) {
                record.row =
                    record.row.and_then(
                        |(page, slot)| if slot == u16::MAX { Some((page, slot)) } else { Some((page, to(slot)?)) },
                    );
            }
        }
    }

    fn split(&mut self, page: PageId, slot: u16, rows: u16, id: TransactionId) {
        let receiver = self.inserted.get(&id).copied().filter(|(_, _, count)| *count == rows);
        let mut moved = Vec::new();
        if let Some(lsns) = self.on_page.get_mut(&page) {
            for lsn in lsns.iter() {
                let Some(record) = self.records.get_mut(lsn) else { continue };
                let Some((_, at)) = record.row.filter(|(_, at)| *at != u16::MAX && *at >= slot) else { continue };
                record.row = match (at - slot).checked_sub(rows) {
                    Some(beyond) => Some((page, slot + beyond)),
                    None => receiver.and_then(|(to, first, _)| {
                        moved.push((*lsn, to));
                        Some((to, first.checked_add(at - slot)?))
                    }),
                };
            }
            lsns.retain(|lsn| !moved.iter().any(|(moved, _)| moved == lsn));
        }
        for (lsn, to) in moved {
            self.on_page.entry(to).or_default().push(lsn);
        }
    }

    /// Pages of heaps and LOBs that transactions changed which had not ended.
    fn heap_pages(&self) -> BTreeSet<PageId> {
        let is_heap = |record: &&LoserRecord| KEEPS_SLOTS.contains(&LogRecord::new(&record.bytes).context());
        self.records.values().filter(is_heap).filter_map(|record| Some(record.row?.0)).collect()
    }

    /// What is to be taken back on each page, the latest first.
    fn plan(&mut self, analysis: &Analysis, applied: &mut Applied) -> BTreeMap<PageId, Vec<Undo>> {
        let mut plan: BTreeMap<PageId, Vec<Undo>> = BTreeMap::new();
        let mut failed: BTreeSet<PageId> = BTreeSet::new();
        for (id, loser) in &analysis.losers {
            let of_it = |record: &&LoserRecord| record.transaction == *id;
            if loser.is_prepared {
                applied.in_doubt += 1;
                failed.extend(self.records.values().filter(of_it).filter_map(|record| Some(record.row?.0)));
                continue;
            }
            match self.chain(loser) {
                Some(lsns) => {
                    let mut is_whole = !loser.made_a_chain;
                    for lsn in lsns {
                        match self.undo_of(lsn, loser) {
                            Ok(Some((page, undo))) => plan.entry(page).or_default().push(undo),
                            Ok(None) => {}
                            Err(page) => {
                                is_whole = false;
                                failed.extend(page);
                            }
                        }
                    }
                    applied.transactions_undone += u64::from(is_whole);
                    applied.transactions_not_undone += u64::from(!is_whole);
                }
                None => {
                    applied.transactions_not_undone += 1;
                    failed.extend(self.records.values().filter(of_it).filter_map(|record| Some(record.row?.0)));
                }
            }
        }
        for undo in plan.values_mut() {
            undo.sort_by_key(|undo| std::cmp::Reverse(undo.lsn));
        }
        // A page is taken back whole or not at all.
        plan.retain(|page, _| !failed.contains(page));
        applied.not_recovered = failed.into_iter().map(|page| NotRecovered { page, why: Misfit::RowMissing }).collect();
        plan
    }

    /// The records of a transaction that nothing has taken back yet, the latest first; `None` if its chain is broken.
    fn chain(&self, loser: &Loser) -> Option<Vec<Lsn>> {
        let mut lsns = Vec::new();
        let mut at = loser.last;
        loop {
            let record = self.records.get(&at)?;
            if LogRecord::new(&record.bytes).operation() == Operation::BEGIN_XACT {
                return Some(lsns);
            }
            if !record.is_compensation {
                lsns.push(at);
            }
            // It leads towards the begin, and so to an end.
            if record.previous >= at || !loser.has_begin {
                return None;
            }
            at = record.previous;
        }
    }

    /// What takes a record back; the page that is not as it should be if nothing can.
    fn undo_of(&self, lsn: Lsn, loser: &Loser) -> Result<Option<(PageId, Undo)>, Option<PageId>> {
        let Some(found) = self.records.get(&lsn) else { return Err(None) };
        let record = LogRecord::new(&found.bytes);
        let Some(place) = record.on_page() else { return Ok(None) };
        let Some(change) = record.change() else { return Err(Some(place.page)) };
        if matches!(change, Change::Touch | Change::Format(_) | Change::Expunge | Change::SetCounters(_)) {
            return Ok(None);
        }
        let (page, slot) = match loser.is_structural {
            true => (place.page, place.slot),
            false => found.row.ok_or(Some(place.page))?,
        };
        let moved = match &change {
            Change::DropMoved { rows, .. } => self.moved_rows(lsn, found.transaction, *rows),
            _ => Vec::new(),
        };
        let undo = Undo { lsn, slot, bytes: found.bytes.clone(), moved, as_a_whole: loser.is_structural };
        Ok(Some((page, undo)))
    }

    /// The rows that a DELETE_SPLIT dropped: they are in the INSERT_ROWS of the same transaction before it.
    fn moved_rows(&self, before: Lsn, id: TransactionId, rows: u16) -> Vec<Vec<u8>> {
        let earlier = self.records.range(..before).rev().filter(|(_, record)| record.transaction == id);
        for (_, record) in earlier {
            if let Some(Change::Insert { images, .. }) = LogRecord::new(&record.bytes).change()
                && images.len() == usize::from(rows)
            {
                return images.into_iter().map(<[u8]>::to_vec).collect();
            }
        }
        Vec::new()
    }
}

/// Used by the overlay: pages that are not recovered.
pub(crate) fn pages_of(not_recovered: &[NotRecovered]) -> Vec<PageId> {
    let pages: HashSet<PageId> = not_recovered.iter().map(|entry| entry.page).collect();
    let mut pages: Vec<PageId> = pages.into_iter().collect();
    pages.sort_unstable();
    pages
}
