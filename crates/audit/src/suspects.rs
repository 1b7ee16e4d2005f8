//! Pages that contradict the log at first sight, and what the second pass over the log says of each.

use std::collections::{BTreeMap, VecDeque};

use format::log::{Block, LogRecord, Operation, TransactionId};
use format::{AllocUnitId, Lsn, PageId};

use crate::missing::Missing;

/// Suspects that are kept: those with the lowest addresses. The others are counted.
pub(crate) const MAX_SUSPECTS: usize = 10_000;
/// LSNs of pages without a record of their own that are kept.
const MAX_STRAYS: usize = 10_000;
/// Records that are kept of a page whose chain is broken: those between the write that was lost and the next reading of the page.
const MAX_EARLIER: usize = 16;
/// Pages that are kept of each of them.
const PAGES_PER_STRAY: usize = 8;

/// What is wrong with a page at first sight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Why {
    /// It is newer than the end of the log.
    Newer,
    /// It is older than a record before the start of redo, or than the LSN that its first record names.
    Lost,
    /// What its last record wrote in this slot is not there.
    Image(u16),
    /// A record names an LSN of the page that is older than the record before it.
    Links,
    /// Its LSN is not that of one of its records.
    Apart,
}

/// A page that contradicts the log.
#[derive(Clone, Debug)]
pub(crate) struct Suspect {
    pub(crate) why: Why,
    /// Its LSN.
    pub(crate) lsn: Lsn,
    /// Its allocation unit, by its header.
    pub(crate) unit: AllocUnitId,
    /// The record that it contradicts.
    pub(crate) record: Option<Note>,
    /// The LSN of the page that this record names.
    pub(crate) expected: Lsn,
    /// What is missing on it.
    pub(crate) missing: Missing,
    /// What confirms that the record is about this page.
    pub(crate) confirmed: Confirmed,
    /// The record is in a block that has no checksum.
    pub(crate) is_unprotected: bool,
    /// The record before the one that is looked at.
    before: Option<Lsn>,
    /// What confirms that record.
    before_confirmed: Confirmed,
    /// Its last records, if what they name is in question.
    earlier: VecDeque<Lsn>,
    /// Nothing contradicts it after all.
    pub(crate) is_cleared: bool,
}

/// What confirms that a record is about the page that it names.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Confirmed {
    /// A record names the LSN of the page, or of another one that the page lacks: no damage of the log makes that.
    pub(crate) is_linked: bool,
    /// It makes the page anew: what it names is of an earlier use of the page.
    pub(crate) is_new_page: bool,
}

impl Confirmed {
    pub(crate) fn any(self) -> bool {
        self.is_linked || self.is_new_page
    }
}

/// A record that evidence names.
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

/// An LSN in the log's time that pages have which it has no record of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stray {
    /// Some of the pages, with their units.
    pub(crate) pages: Vec<(PageId, AllocUnitId)>,
    /// All of them.
    pub(crate) count: u64,
    /// There is a record with this LSN.
    pub(crate) is_found: bool,
    /// The page that it is about.
    pub(crate) page: Option<PageId>,
    /// It would be in a block without a checksum.
    pub(crate) is_unprotected: bool,
}

/// What contradicts the log at first sight, as much of it as is kept.
#[derive(Default)]
pub(crate) struct Suspects {
    pub(crate) pages: BTreeMap<PageId, Suspect>,
    pub(crate) strays: BTreeMap<Lsn, Stray>,
    /// Pages beyond those that are kept.
    pub(crate) more: u64,
}

impl Suspects {
    /// Adds a page; the first suspicion stays.
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

    /// Adds a page whose LSN is in the log's time, and that the log has no record of.
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

    /// Whether the log must be read once more.
    pub(crate) fn any(&self) -> bool {
        !self.pages.is_empty() || !self.strays.is_empty()
    }

    /// Looks at a block, which is in an unbroken run of blocks from `run` on.
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
                    // The page had this LSN once, and was changed by the record before.
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
            // The next record confirms that the one after the LSN of the page is about this page.
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
