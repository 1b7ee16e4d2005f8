//! Transactions that had not ended where the log does: what they did, and where their rows went since.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use format::log::change::Change;
use format::log::{LogRecord, Operation, TransactionId};
use format::{Lsn, PageId};

use crate::analysis::{Analysis, Loser};
use crate::apply::{Applied, NotRecovered, Settings};
use crate::misfit::Misfit;
use crate::page::KEEPS_SLOTS;

/// What the record of a transaction that had not ended takes besides its own bytes.
const LOSER_RECORD_BYTES: usize = 200;
/// Records of a page split between the rows that it moves and the DELETE_SPLIT that drops them; there are a few.
const MAX_SPLIT_RECORDS: usize = 100;

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
pub(crate) struct Undo {
    lsn: Lsn,
    pub(crate) slot: u16,
    pub(crate) bytes: Vec<u8>,
    pub(crate) moved: Vec<Vec<u8>>,
    pub(crate) as_a_whole: bool,
}

/// Follows what transactions that had not ended did, and where their rows went.
pub(crate) struct Losers<'a> {
    losers: &'a BTreeMap<TransactionId, Loser>,
    records: BTreeMap<Lsn, LoserRecord>,
    /// Records whose rows are on a page.
    on_page: HashMap<PageId, Vec<Lsn>>,
    /// Where each transaction inserted rows last: the receiver of a split.
    inserted: HashMap<TransactionId, (PageId, u16, u16)>,
    /// What the records take.
    pub(crate) bytes: usize,
    /// Rows that were moved along so far.
    pub(crate) steps: u64,
}

impl<'a> Losers<'a> {
    pub(crate) fn new(analysis: &'a Analysis) -> Self {
        Self {
            losers: &analysis.losers,
            records: BTreeMap::new(),
            on_page: HashMap::new(),
            inserted: HashMap::new(),
            bytes: 0,
            steps: 0,
        }
    }

    pub(crate) fn record(&mut self, lsn: Lsn, record: &LogRecord<'_>) {
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
            self.steps += 1;
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
            self.steps += lsns.len() as u64;
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
            // In the same order as they were found in.
            let mut gone = moved.iter().map(|(lsn, _)| *lsn).peekable();
            lsns.retain(|lsn| gone.next_if_eq(lsn).is_none());
        }
        for (lsn, to) in moved {
            self.on_page.entry(to).or_default().push(lsn);
        }
    }

    /// Pages of heaps and LOBs that transactions changed which had not ended.
    pub(crate) fn heap_pages(&self) -> BTreeSet<PageId> {
        let is_heap = |record: &&LoserRecord| KEEPS_SLOTS.contains(&LogRecord::new(&record.bytes).context());
        self.records.values().filter(is_heap).filter_map(|record| Some(record.row?.0)).collect()
    }

    /// What is to be taken back on each page, the latest first.
    pub(crate) fn plan(&self, settings: &Settings, applied: &mut Applied) -> BTreeMap<PageId, Vec<Undo>> {
        let mut plan: BTreeMap<PageId, Vec<Undo>> = BTreeMap::new();
        let mut failed: BTreeMap<PageId, Misfit> = BTreeMap::new();
        let mut left: BTreeMap<TransactionId, Misfit> = BTreeMap::new();
        for (id, loser) in self.losers {
            if loser.is_prepared {
                applied.in_doubt += 1;
                left.insert(*id, Misfit::InDoubt);
                continue;
            }
            if settings.has_version_store && !loser.is_structural {
                applied.transactions_not_undone += 1;
                left.insert(*id, Misfit::Versions);
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
                                failed.extend(page.map(|page| (page, Misfit::RowMissing)));
                            }
                        }
                    }
                    applied.transactions_undone += u64::from(is_whole);
                    applied.transactions_not_undone += u64::from(!is_whole);
                }
                None => {
                    applied.transactions_not_undone += 1;
                    left.insert(*id, Misfit::RowMissing);
                }
            }
        }
        for record in self.records.values() {
            if let (Some(why), Some((page, _))) = (left.get(&record.transaction), record.row) {
                failed.insert(page, *why);
            }
        }
        for undo in plan.values_mut() {
            undo.sort_by_key(|undo| std::cmp::Reverse(undo.lsn));
        }
        // A page is taken back whole or not at all.
        plan.retain(|page, _| !failed.contains_key(page));
        applied.not_recovered = failed.into_iter().map(|(page, why)| NotRecovered { page, why }).collect();
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
            Change::DropMoved { rows, .. } => self.moved_rows(found, *rows),
            _ => Vec::new(),
        };
        let undo = Undo { lsn, slot, bytes: found.bytes.clone(), moved, as_a_whole: loser.is_structural };
        Ok(Some((page, undo)))
    }

    /// The rows that a DELETE_SPLIT dropped: they are in the INSERT_ROWS of the same transaction before it.
    fn moved_rows(&self, split: &LoserRecord, rows: u16) -> Vec<Vec<u8>> {
        let earlier = std::iter::successors(Some(split), |record| self.records.get(&record.previous));
        for record in earlier.take(MAX_SPLIT_RECORDS) {
            if let Some(Change::Insert { images, .. }) = LogRecord::new(&record.bytes).change()
                && images.len() == usize::from(rows)
            {
                return images.into_iter().map(<[u8]>::to_vec).collect();
            }
        }
        Vec::new()
    }
}
