//! Pages that seem to contradict the log, and the evidence about each from a second pass over the log.

use std::collections::{BTreeMap, VecDeque};

use format::log::{Block, LogRecord, Operation, TransactionId};
use format::{AllocUnitId, Lsn, PageId};

use crate::missing::Missing;

/// Maximum number of suspects. The suspects with the lowest page addresses are kept, and the others are only counted.
pub(crate) const MAX_SUSPECTS: usize = 10_000;
/// Maximum number of stray LSNs to keep. A stray LSN is the LSN of a page for which the log has no record at this LSN.
const MAX_STRAYS: usize = 10_000;
/// Number of latest records to keep for a page with a broken chain. After a lost write, the next record names the LSN
/// of an earlier record; the kept records show whether the page really had this LSN.
const MAX_EARLIER: usize = 16;
/// Maximum number of pages to keep for each stray LSN.
const PAGES_PER_STRAY: usize = 8;

/// The reason why a page is a suspect.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Why {
    /// The page is newer than the end of the log.
    Newer,
    /// The page's LSN is too low: lower than the LSN of one of its records before the start of redo, or lower than the
    /// LSN that the page had before its first record, according to that record.
    Lost,
    /// The row in this slot lacks the bytes that the page's last record wrote.
    Image(u16),
    /// According to a log record, the LSN that the page had just before it was lower than the LSN of the page's
    /// previous record.
    Links,
    /// The page's LSN differs from the LSNs of all its records.
    Apart,
}

/// A page that seems to contradict the log.
#[derive(Clone, Debug)]
pub(crate) struct Suspect {
    pub(crate) why: Why,
    /// LSN of the page.
    pub(crate) lsn: Lsn,
    /// Allocation unit of the page, from its header.
    pub(crate) unit: AllocUnitId,
    /// The log record that the page contradicts.
    pub(crate) record: Option<Note>,
    /// The LSN that the page had before the change, according to `record`.
    pub(crate) expected: Lsn,
    /// The changes that the page lacks.
    pub(crate) missing: Missing,
    /// The evidence that `record` really concerns this page.
    pub(crate) confirmed: Confirmed,
    /// Whether `record` is in a log block without a checksum.
    pub(crate) is_unprotected: bool,
    /// The LSN of the page's previous record in this pass over the log.
    before: Option<Lsn>,
    /// The evidence that the record at `before` concerns this page.
    before_confirmed: Confirmed,
    /// The LSNs of the page's latest records in this pass; used only for [`Why::Links`].
    earlier: VecDeque<Lsn>,
    /// Whether a record has shown that the page does not contradict the log.
    pub(crate) is_cleared: bool,
}

/// Evidence that a record concerns the page that it names.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Confirmed {
    /// The record is linked with another record of the page: a later record names the LSN of this record as the LSN
    /// that the page had, or this record names the LSN of another known record. A record with a damaged page ID would
    /// not be linked in this way.
    pub(crate) is_linked: bool,
    /// The record formats the page, so the LSN that it names comes from an earlier use of the page.
    pub(crate) is_new_page: bool,
}

impl Confirmed {
    pub(crate) fn any(self) -> bool {
        self.is_linked || self.is_new_page
    }
}

/// A log record that a finding names as evidence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Note {
    pub(crate) lsn: Lsn,
    pub(crate) operation: Operation,
    pub(crate) transaction: TransactionId,
}

impl Note {
    fn of(lsn: Lsn, record: &LogRecord<'_>) -> Self {
        Self { lsn, operation: record.operation(), transaction: record.transaction() }
    }
}

/// An LSN that one or more pages have, and that lies in the range of the log, although the log has no record of these
/// pages at this LSN.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stray {
    /// Some of the pages with this LSN, each with its allocation unit.
    pub(crate) pages: Vec<(PageId, AllocUnitId)>,
    /// Number of all pages with this LSN.
    pub(crate) count: u64,
    /// Whether the log has a record with this LSN.
    pub(crate) is_found: bool,
    /// The page that the record with this LSN concerns.
    pub(crate) page: Option<PageId>,
    /// Whether the log block to which this LSN belongs has no checksum.
    pub(crate) is_unprotected: bool,
}

/// All suspects and stray LSNs, within limits.
#[derive(Default)]
pub(crate) struct Suspects {
    pub(crate) pages: BTreeMap<PageId, Suspect>,
    pub(crate) strays: BTreeMap<Lsn, Stray>,
    /// Number of pages that were not kept because the maximum number of suspects or of stray LSNs was reached.
    pub(crate) more: u64,
}

impl Suspects {
    /// Adds a suspect. If the page is a suspect already, keeps the first reason.
    pub(crate) fn add(&mut self, page: PageId, why: Why, lsn: Lsn, unit: AllocUnitId) {
        let suspect = Suspect {
            why,
            lsn,
            unit,
            record: None,
            expected: Lsn::default(),
            missing: Missing::default(),
            confirmed: Confirmed::default(),
            is_unprotected: false,
            before: None,
            before_confirmed: Confirmed::default(),
            earlier: VecDeque::new(),
            is_cleared: false,
        };
        self.pages.entry(page).or_insert(suspect);
        if self.pages.len() > MAX_SUSPECTS {
            self.pages.pop_last();
            self.more += 1;
        }
    }

    /// Adds a page whose LSN is in the log's range, although the log has no record of the page at this LSN.
    pub(crate) fn add_stray(&mut self, page: PageId, lsn: Lsn, unit: AllocUnitId) {
        let stray = self.strays.entry(lsn).or_default();
        stray.count += 1;
        if stray.pages.len() < PAGES_PER_STRAY {
            stray.pages.push((page, unit));
        }
        if self.strays.len() > MAX_STRAYS {
            self.more += self.strays.pop_last().map_or(0, |(_, stray)| stray.count);
        }
    }

    /// Whether a second pass over the log is needed.
    pub(crate) fn any(&self) -> bool {
        !self.pages.is_empty() || !self.strays.is_empty()
    }

    /// Processes the records of a log block. `run` is the first LSN of the sequence of undamaged blocks that contains
    /// the block.
    pub(crate) fn block(
        &mut self,
        block: &Block<'_>,
        run: Lsn,
        redo_from: Lsn,
        missing: &mut dyn FnMut(&LogRecord<'_>) -> String,
    ) {
        let first = block.first_lsn();
        let here = first..=Lsn { slot: u16::MAX, ..first };
        for (_, stray) in self.strays.range_mut(Lsn { slot: 0, ..first }..=*here.end()) {
            stray.is_unprotected = !block.has_checksum();
        }
        for (lsn, record) in block.records() {
            let place = record.on_page();
            if let Some(stray) = self.strays.get_mut(&lsn) {
                (stray.is_found, stray.page) = (true, place.map(|place| place.page));
            }
            let Some(place) = place else { continue };
            let Some(suspect) = self.pages.get_mut(&place.page) else { continue };
            suspect.record(lsn, &record, place.page_lsn, run, redo_from, missing);
            if suspect.record.is_some_and(|note| note.lsn == lsn) {
                suspect.is_unprotected = !block.has_checksum();
            }
        }
    }
}

impl Suspect {
    fn record(
        &mut self,
        lsn: Lsn,
        record: &LogRecord<'_>,
        page_lsn: Lsn,
        run: Lsn,
        redo_from: Lsn,
        missing: &mut dyn FnMut(&LogRecord<'_>) -> String,
    ) {
        let before = self.before.replace(lsn);
        let is_new_page = record.operation() == Operation::FORMAT_PAGE;
        let confirmed = Confirmed { is_linked: !is_new_page && before == Some(page_lsn), is_new_page };
        let before_confirmed = std::mem::replace(&mut self.before_confirmed, confirmed);
        let is_next = lsn > self.lsn && before.is_none_or(|before| before <= self.lsn);
        match self.why {
            Why::Newer => self.note(lsn, record, page_lsn),
            Why::Lost if lsn > self.lsn && (lsn < redo_from || self.record.is_none()) => {
                let linked_to = if is_next { Some(self.lsn) } else { before };
                self.confirm(Confirmed { is_linked: !is_new_page && linked_to == Some(page_lsn), is_new_page });
                self.note(lsn, record, page_lsn);
                if lsn < redo_from {
                    self.missing.add(|| missing(record));
                }
            }
            Why::Image(_) if lsn == self.lsn => {
                self.note(lsn, record, page_lsn);
                self.missing.add(|| missing(record));
            }
            Why::Links => {
                let is_broken = before.is_some_and(|before| page_lsn < before && before >= run) && !is_new_page;
                if is_broken {
                    // The record is confirmed if the page once had the LSN that the record names, and if a confirmed
                    // record has changed the page since then.
                    let had_it = self.earlier.contains(&page_lsn);
                    self.confirm(Confirmed { is_linked: before_confirmed.is_linked && had_it, is_new_page: false });
                    self.note(lsn, record, page_lsn);
                }
                if self.earlier.len() == MAX_EARLIER {
                    self.earlier.pop_front();
                }
                self.earlier.push_back(lsn);
            }
            Why::Apart if lsn == self.lsn => self.is_cleared = true,
            // If the next record names the LSN of the noted record, the noted record really concerns this page.
            Why::Apart if self.record.is_some_and(|note| before == Some(note.lsn) && page_lsn == note.lsn) => {
                self.confirm(Confirmed { is_linked: !is_new_page, is_new_page: false });
            }
            Why::Apart if is_next => {
                self.is_cleared |= is_new_page || page_lsn == self.lsn;
                self.note(lsn, record, page_lsn);
            }
            Why::Lost | Why::Image(_) | Why::Apart => {}
        }
    }

    fn confirm(&mut self, by: Confirmed) {
        self.confirmed.is_linked |= by.is_linked;
        self.confirmed.is_new_page |= by.is_new_page;
    }

    fn note(&mut self, lsn: Lsn, record: &LogRecord<'_>, page_lsn: Lsn) {
        self.record = Some(Note::of(lsn, record));
        self.expected = page_lsn;
    }
}
