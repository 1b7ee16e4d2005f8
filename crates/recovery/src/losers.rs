//! Tracks the transactions that were open at the end of the log: their changes, and the pages and slots to which later
//! records moved the changed rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use foldhash::fast::RandomState;
use format::log::change::Change;
use format::log::{LogRecord, Operation, TransactionId};
use format::{Lsn, PageId};
use log::Log;

use crate::analysis::{Loser, each_block};
use crate::applied::{Applied, NotRecovered};
use crate::misfit::Misfit;
use crate::page::KEEPS_SLOTS;
use crate::refusal::Refusal;
use crate::store::RecordStore;
use crate::undo::Undo;

/// Bytes of memory for a record, including its entry in the list of its page. That list may be half full.
const RECORD_BYTES: usize = size_of::<LoserRecord>() + 2 * size_of::<u32>();
/// Bytes of memory for the list of a page, or for the data of a page split.
const PAGE_BYTES: usize = 100;
/// The most records that a page split may have between the INSERT_ROWS with the moved rows and the DELETE_SPLIT that
/// removes them from the old page. Real page splits have only a few such records.
const MAX_SPLIT_RECORDS: usize = 100;

/// The effect of a record of an open transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deed {
    /// The record begins the transaction.
    Begin,
    /// The record undoes another record, or changes nothing that must be undone.
    Nothing,
    /// The record inserts this number of rows.
    Insert(u16),
    /// The record removes this number of rows from its page, because they were moved to another page.
    DropMoved(u16),
    /// The record changes a page in another way.
    Change,
    /// The record changes a page in a way that this code does not know.
    Unknown,
}

/// A record of an open transaction.
#[derive(Clone, Copy, Debug)]
struct LoserRecord {
    lsn: Lsn,
    transaction: TransactionId,
    previous: Lsn,
    /// The page that the record changes, if any.
    page: Option<PageId>,
    /// The page and slot of the record's row at the end of the log; `None` if the row no longer exists.
    row: Option<(PageId, u16)>,
    deed: Deed,
    /// Whether the page belongs to a heap or contains LOBs.
    is_heap: bool,
    /// Whether the record must be undone.
    is_undone: bool,
}

/// Records in the order of their LSNs. The records are stored in chunks, so that no record is copied when the list
/// grows.
#[derive(Default)]
struct Records(Vec<Vec<LoserRecord>>);

impl Records {
    const PIECE: usize = 1 << 14;

    /// Appends a record. Its LSN must be greater than that of all earlier records. Returns the position of the record.
    fn push(&mut self, record: LoserRecord) -> u32 {
        if self.0.last().is_none_or(|piece| piece.len() == Self::PIECE) {
            self.0.push(Vec::with_capacity(Self::PIECE));
        }
        let before = (self.0.len() - 1) * Self::PIECE;
        let Some(piece) = self.0.last_mut() else { return 0 };
        piece.push(record);
        (before + piece.len() - 1) as u32
    }

    fn at(&mut self, position: u32) -> Option<&mut LoserRecord> {
        self.0.get_mut(position as usize / Self::PIECE)?.get_mut(position as usize % Self::PIECE)
    }

    fn position(&self, lsn: Lsn) -> Option<(usize, usize)> {
        let piece =
            self.0.partition_point(|piece| piece.first().is_some_and(|first| first.lsn <= lsn)).checked_sub(1)?;
        let at = self.0.get(piece)?.binary_search_by_key(&lsn, |record| record.lsn).ok()?;
        Some((piece, at))
    }

    fn get(&self, lsn: Lsn) -> Option<&LoserRecord> {
        let (piece, at) = self.position(lsn)?;
        self.0.get(piece)?.get(at)
    }

    fn get_mut(&mut self, lsn: Lsn) -> Option<&mut LoserRecord> {
        let (piece, at) = self.position(lsn)?;
        self.0.get_mut(piece)?.get_mut(at)
    }

    fn iter(&self) -> impl Iterator<Item = &LoserRecord> {
        self.0.iter().flatten()
    }
}

/// Tracks the changes of open transactions, and the pages and slots of the changed rows.
pub(crate) struct Losers<'a> {
    losers: &'a BTreeMap<TransactionId, Loser>,
    records: Records,
    /// For each page, the positions in `records` of the records with a row on this page.
    on_page: HashMap<PageId, Vec<u32>, RandomState>,
    /// For each transaction, its last insert: the page, the first slot, and the number of rows. In a page split, this
    /// is the page that receives the moved rows.
    inserted: HashMap<TransactionId, (PageId, u16, u16), RandomState>,
    /// For each DELETE_SPLIT that must be undone, the LSN of the INSERT_ROWS record with the moved rows.
    moved_by: BTreeMap<Lsn, Lsn>,
    /// `last` is the LSN of each transaction's last record. `broken` lists the transactions with a record that does not
    /// name its predecessor. Undo of a broken transaction would skip records.
    last: BTreeMap<TransactionId, Lsn>,
    broken: BTreeSet<TransactionId>,
    /// The most bytes of memory that the lists may use.
    memory_bytes: usize,
    /// The number of bytes of memory that the lists need. Once it exceeds `memory_bytes`, nothing more is stored and
    /// the bytes are only counted.
    pub(crate) needed_bytes: usize,
    /// How many times the position of a row has been updated so far.
    pub(crate) steps: u64,
}

impl<'a> Losers<'a> {
    pub(crate) fn of(losers: &'a BTreeMap<TransactionId, Loser>, memory_bytes: usize) -> Self {
        Self {
            losers,
            records: Records::default(),
            on_page: HashMap::default(),
            inserted: HashMap::default(),
            moved_by: BTreeMap::new(),
            last: BTreeMap::new(),
            broken: BTreeSet::new(),
            memory_bytes,
            needed_bytes: 0,
            steps: 0,
        }
    }

    /// Adds a record of the log. Records must be added in the order of the log.
    pub(crate) fn record(&mut self, lsn: Lsn, record: &LogRecord<'_>) {
        if self.losers.is_empty() {
            return;
        }
        let id = record.transaction();
        if matches!(record.operation(), Operation::COMMIT_XACT | Operation::ABORT_XACT) {
            self.inserted.remove(&id);
        }
        // An earlier transaction may have had the same ID.
        let loser = self.losers.get(&id).filter(|loser| lsn >= loser.first);
        // A structural transaction is undone as a whole. Its undo returns all rows to their places, so its moves are
        // not tracked.
        if loser.is_none_or(|loser| !loser.is_structural) {
            self.follow(record, id);
        }
        if loser.is_none() {
            return;
        }
        let before = self.last.insert(id, lsn).filter(|before| *before != record.previous_lsn());
        if record.operation() == Operation::BEGIN_XACT {
            self.broken.remove(&id);
        } else if before.is_some() && !record.is_compensation() {
            self.broken.insert(id);
        }
        self.needed_bytes += RECORD_BYTES;
        if self.needed_bytes > self.memory_bytes {
            // The recovery will be refused. Further records are only counted, so that the refusal can state how much
            // memory all records need.
            (self.records, self.on_page) = Default::default();
            return;
        }
        let place = record.on_page();
        let position = self.records.push(LoserRecord {
            lsn,
            transaction: id,
            previous: record.previous_lsn(),
            page: place.map(|place| place.page),
            row: place.map(|place| (place.page, place.slot)),
            deed: deed(record),
            is_heap: KEEPS_SLOTS.contains(&record.context()),
            is_undone: false,
        });
        if let Some(place) = place {
            let list = self.on_page.entry(place.page).or_default();
            self.needed_bytes += if list.is_empty() { PAGE_BYTES } else { 0 };
            list.push(position);
        }
    }

    /// Updates the positions of tracked rows that a record moves on its page.
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
        for position in self.on_page.get(&page).into_iter().flatten() {
            self.steps += 1;
            if let Some(record) = self.records.at(*position) {
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
        if let Some(positions) = self.on_page.get_mut(&page) {
            self.steps += positions.len() as u64;
            for position in positions.iter() {
                let Some(record) = self.records.at(*position) else { continue };
                let Some((_, at)) = record.row.filter(|(_, at)| *at != u16::MAX && *at >= slot) else { continue };
                record.row = match (at - slot).checked_sub(rows) {
                    Some(beyond) => Some((page, slot + beyond)),
                    None => receiver.and_then(|(to, first, _)| {
                        moved.push((*position, to));
                        Some((to, first.checked_add(at - slot)?))
                    }),
                };
            }
            // `moved` and `positions` are in the same order.
            let mut gone = moved.iter().map(|(position, _)| *position).peekable();
            positions.retain(|position| gone.next_if_eq(position).is_none());
        }
        for (position, to) in moved {
            let list = self.on_page.entry(to).or_default();
            self.needed_bytes += if list.is_empty() { PAGE_BYTES } else { 0 };
            list.push(position);
        }
    }

    /// The heap and LOB pages that open transactions changed.
    pub(crate) fn heap_pages(&self) -> BTreeSet<PageId> {
        let heap = self.records.iter().filter(|record| record.is_heap);
        heap.filter_map(|record| Some(record.row?.0)).collect()
    }

    /// Decides which records are undone. Pages with changes that cannot be undone are added to `applied.not_recovered`.
    pub(crate) fn plan(&mut self, has_version_store: bool, applied: &mut Applied) {
        let mut failed: BTreeMap<PageId, Misfit> = BTreeMap::new();
        let mut left: BTreeMap<TransactionId, Misfit> = BTreeMap::new();
        let losers = self.losers;
        for (id, loser) in losers {
            if loser.is_prepared {
                applied.in_doubt += 1;
                left.insert(*id, Misfit::InDoubt);
                continue;
            }
            if has_version_store && !loser.is_structural {
                applied.transactions_not_undone += 1;
                left.insert(*id, Misfit::Versions);
                continue;
            }
            let mut is_whole = !loser.made_a_chain;
            if !self.broken.contains(id) && self.has_whole_chain(loser) {
                let mut at = loser.last;
                while let Some(record) = self.records.get(at).copied().filter(|record| record.deed != Deed::Begin) {
                    if let Err(page) = self.mark(&record, loser) {
                        is_whole = false;
                        failed.extend(page.map(|page| (page, Misfit::RowMissing)));
                    }
                    at = record.previous;
                }
            } else {
                is_whole = false;
                left.insert(*id, Misfit::RowMissing);
            }
            applied.transactions_undone += u64::from(is_whole);
            applied.transactions_not_undone += u64::from(!is_whole);
        }
        for record in self.records.iter() {
            if let (Some(why), Some((page, _))) = (left.get(&record.transaction), record.row) {
                failed.insert(page, *why);
            }
        }
        applied.not_recovered = failed.into_iter().map(|(page, why)| NotRecovered { page, why }).collect();
    }

    /// Whether the links between a transaction's records lead from the last record to its BEGIN_XACT.
    fn has_whole_chain(&self, loser: &Loser) -> bool {
        let mut at = loser.last;
        loop {
            match self.records.get(at) {
                Some(record) if record.deed == Deed::Begin => return true,
                // Each link must point to an earlier record, so the loop ends.
                Some(record) if record.previous < at && loser.has_begin => at = record.previous,
                _ => return false,
            }
        }
    }

    /// Marks a record to be undone. Returns an error if the record cannot be undone. The error contains the page that
    /// stays unrecovered, or `None` if the record changes no page.
    fn mark(&mut self, record: &LoserRecord, loser: &Loser) -> Result<(), Option<PageId>> {
        match record.deed {
            Deed::Begin | Deed::Nothing => return Ok(()),
            Deed::Unknown => return Err(record.page),
            Deed::DropMoved(rows) => {
                let insert = self.moved_by(record, rows).ok_or(record.page)?;
                self.moved_by.insert(record.lsn, insert);
                self.needed_bytes += PAGE_BYTES;
            }
            Deed::Insert(_) | Deed::Change => {}
        }
        if record.row.is_none() && !loser.is_structural {
            return Err(record.page);
        }
        if let Some(record) = self.records.get_mut(record.lsn) {
            record.is_undone = true;
        }
        Ok(())
    }

    /// Finds the LSN of the INSERT_ROWS record with the rows that a DELETE_SPLIT removed. This INSERT_ROWS is an
    /// earlier record of the same transaction.
    fn moved_by(&self, split: &LoserRecord, rows: u16) -> Option<Lsn> {
        let earlier = std::iter::successors(Some(split), |record| self.records.get(record.previous));
        let mut earlier = earlier.take(MAX_SPLIT_RECORDS);
        earlier.find(|record| record.deed == Deed::Insert(rows)).map(|record| record.lsn)
    }

    /// Reads the log once more, and adds to `store` the changes that must be undone. They are sorted by page, and on
    /// each page the latest change comes first. Pages in `failed` are left out, because either all changes of a page
    /// are undone or none.
    pub(crate) fn collect(
        &self,
        log: &Log,
        failed: &BTreeMap<PageId, Misfit>,
        store: &mut RecordStore,
        memory_bytes: usize,
    ) -> Result<(), Refusal> {
        let needed: BTreeSet<Lsn> = self.moved_by.values().copied().collect();
        let is_wanted = |record: &&LoserRecord| record.is_undone || needed.contains(&record.lsn);
        let mut wanted = self.records.iter().filter(is_wanted).peekable();
        let Some(first) = wanted.peek().map(|record| record.lsn) else { return Ok(()) };
        let mut inserts: BTreeMap<Lsn, Vec<u8>> = BTreeMap::new();
        let mut held = 0;
        each_block(log, first, None, |block| {
            for (lsn, record) in block.records() {
                while wanted.next_if(|wanted| wanted.lsn < lsn).is_some() {}
                let Some(found) = wanted.next_if(|wanted| wanted.lsn == lsn) else { continue };
                if needed.contains(&lsn) {
                    held += record.bytes().len();
                    inserts.insert(lsn, record.bytes().to_vec());
                }
                let is_structural = self.losers.get(&found.transaction).is_some_and(|loser| loser.is_structural);
                let place = record.on_page().map(|place| (place.page, place.slot));
                let Some((page, slot)) = (if is_structural { place } else { found.row }) else { continue };
                if !found.is_undone || failed.contains_key(&page) {
                    continue;
                }
                let moved = self.moved_by.get(&lsn).and_then(|insert| inserts.get(insert));
                let undo = Undo { slot, as_a_whole: is_structural, moved: moved.map(Vec::as_slice), record };
                store.push((page, latest_first(lsn)), &undo.bytes())?;
                if let Some(insert) = self.moved_by.get(&lsn).and_then(|insert| inserts.remove(insert)) {
                    held -= insert.len();
                }
            }
            match held > memory_bytes {
                true => Err(Refusal::TooMuchToUndo { needed_bytes: held as u64 }),
                false if wanted.peek().is_none() => Ok(ControlFlow::Break(())),
                false => Ok(ControlFlow::Continue(())),
            }
        })?;
        Ok(())
    }
}

/// A key that sorts records from the latest to the earliest.
fn latest_first(lsn: Lsn) -> Lsn {
    Lsn { vlf: !lsn.vlf, block: !lsn.block, slot: !lsn.slot }
}

fn deed(record: &LogRecord<'_>) -> Deed {
    if record.operation() == Operation::BEGIN_XACT {
        return Deed::Begin;
    }
    if record.is_compensation() || record.on_page().is_none() {
        return Deed::Nothing;
    }
    match record.change() {
        None => Deed::Unknown,
        Some(Change::Touch | Change::Format(_) | Change::Expunge | Change::SetCounters(_)) => Deed::Nothing,
        Some(Change::Insert { images, .. }) => Deed::Insert(images.len() as u16),
        Some(Change::DropMoved { rows, .. }) => Deed::DropMoved(rows),
        Some(_) => Deed::Change,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of transaction 7 that changes no page.
    fn record() -> Vec<u8> {
        let mut bytes = vec![0; 24];
        bytes[0x10] = 7;
        bytes[0x16] = 221;
        bytes
    }

    #[test]
    fn beyond_the_memory_records_are_only_counted() {
        let bytes = record();
        let record = LogRecord::new(&bytes);
        let lost = Loser::new((Lsn::default(), Lsn::default()), true);
        let losers: BTreeMap<TransactionId, Loser> = [(record.transaction(), lost)].into();
        let mut found = Losers::of(&losers, 100 * RECORD_BYTES);
        for block in 1..=1000 {
            found.record(Lsn { vlf: 1, block, slot: 1 }, &record);
            let kept = found.records.iter().count();
            assert_eq!(kept, if block <= 100 { block as usize } else { 0 });
        }
        assert_eq!(found.needed_bytes, 1000 * RECORD_BYTES);
    }

    #[test]
    fn a_record_that_passes_over_another_of_its_transaction_leaves_it_not_undone() {
        for (named, is_whole) in [(2, true), (1, false)] {
            let lsn = |block: u32| Lsn { vlf: 1, block, slot: 1 };
            let (mut begin, plain) = (record(), record());
            begin[0x16] = 128;
            let links = |block: u32| [&plain[..4], &lsn(block).bytes(), &plain[14..]].concat();
            let id = LogRecord::new(&plain).transaction();
            let lost = Loser { last: lsn(3), ..Loser::new((lsn(1), lsn(1)), true) };
            let losers: BTreeMap<TransactionId, Loser> = [(id, lost)].into();
            let mut found = Losers::of(&losers, 100 * RECORD_BYTES);
            for (block, bytes) in (1..).zip([begin, links(1), links(named)]) {
                found.record(lsn(block), &LogRecord::new(&bytes));
            }
            let mut applied = Applied::default();
            found.plan(false, &mut applied);
            let undone = (applied.transactions_undone, applied.transactions_not_undone);
            assert_eq!(undone, (u64::from(is_whole), u64::from(!is_whole)));
        }
    }

    #[test]
    fn records_are_found_by_lsn_in_every_piece() {
        let mut records = Records::default();
        let bytes = record();
        let lsn = |number: u32| Lsn { vlf: 1 + number / 1000, block: number % 1000 * 2, slot: 1 };
        for number in 0..2 * Records::PIECE as u32 + 5 {
            let position = records.push(LoserRecord {
                lsn: lsn(number),
                transaction: LogRecord::new(&bytes).transaction(),
                previous: Lsn::default(),
                page: None,
                row: None,
                deed: Deed::Insert(number as u16),
                is_heap: false,
                is_undone: false,
            });
            assert_eq!(position, number);
        }
        for number in (0..2 * Records::PIECE as u32 + 5).step_by(7) {
            let found = records.get(lsn(number)).map(|record| record.deed);
            assert_eq!(found, Some(Deed::Insert(number as u16)));
            assert_eq!(records.at(number).map(|record| record.lsn), Some(lsn(number)));
            assert!(records.get(Lsn { slot: 2, ..lsn(number) }).is_none());
        }
    }
}
