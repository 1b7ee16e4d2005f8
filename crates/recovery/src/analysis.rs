//! Reads a log before any page is changed. It finds out whether the log belongs to the database, where redo starts,
//! which transactions were open at the end of the log, and which pages the log changes.

mod standing;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use foldhash::fast::RandomState;
use format::log::{Block, LogRecord, LogTime, Operation, TransactionId};
use format::{Lsn, PageId};
use log::{End, EndReason, Log, Walk};
use source::{ExtentSet, PageSource};

use crate::log_damage::LogDamage;
use crate::order::{Known, LogOrder};
use crate::reached::{Reached, Resumed};
use crate::refusal::{MAX_OPEN, Refusal};
use crate::settings::Settings;
use crate::start::Start;
use crate::stop::{Search, Stop};

/// Memory in bytes per page: its entry in the table of pages, which may be half full, and in the list of the table's
/// keys.
const PAGE_ENTRY_BYTES: usize = 64;
/// Memory in bytes per open transaction.
const OPEN_BYTES: usize = 128;

/// The transactions that are open.
pub(crate) type Open = HashMap<TransactionId, Loser, RandomState>;

/// A transaction that was open at the end of the log.
#[derive(Clone, Debug)]
pub(crate) struct Loser {
    /// The LSN of the transaction's last record.
    pub(crate) last: Lsn,
    /// Whether the transaction's BEGIN_XACT is in the log that was read.
    pub(crate) has_begin: bool,
    /// Whether the transaction changes a structure (by a page split or an allocation), so that it is undone as a whole.
    pub(crate) is_structural: bool,
    /// Whether the transaction was prepared, so that another database decides whether it is committed.
    pub(crate) is_prepared: bool,
    /// Whether the transaction created an allocation chain; no record names the extents of such a chain.
    pub(crate) made_a_chain: bool,
    /// The LSN of the transaction's first record that was read.
    pub(crate) first: Lsn,
    /// An LSN at or before the first record of every transaction that was open when this one began. Reading from here
    /// shows all that undoing this transaction needs.
    pub(crate) needs: Lsn,
}

/// The points in the log at which a restore starts to read and starts to redo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestoreStart {
    /// The LSN of the oldest record that the backup needs: its checkpoint, or the start of the oldest transaction that
    /// was open at that checkpoint.
    pub from: Lsn,
    /// The LSN of the backup's checkpoint. Earlier records must not be redone, because their pages may have been free
    /// at the checkpoint.
    pub redo_from: Lsn,
    /// The first LSN after the backup's own log. No page of the backup has a later LSN.
    pub pages_to: Lsn,
}

/// The result of reading the log before any page is recovered.
#[derive(Debug)]
pub struct Analysis {
    /// The LSN of the checkpoint that the boot page names.
    pub checkpoint: Lsn,
    /// The LSN from which records are redone.
    pub redo_from: Lsn,
    /// The LSN from which the log was read. It may be before the checkpoint, because the oldest transaction that was
    /// open at the checkpoint may have begun earlier.
    pub(crate) from: Lsn,
    /// The LSN of the last record.
    pub end: Lsn,
    /// The time when the last transaction in the log was committed, in the local time of the server.
    pub last_commit: Option<LogTime>,
    /// The LSN of the first record to leave out, if a restore stops before the end of the log.
    pub until: Option<Lsn>,
    /// Number of complete blocks after the end of the log. Either they were being written when the server stopped, or
    /// the log is damaged.
    pub blocks_after_the_end: u64,
    /// The test of the order of the records; `None` for a restore.
    order: Option<LogOrder>,
    /// Bytes of log from the start of redo on.
    pub log_bytes: u64,
    /// Number of records from the start of redo to the end.
    pub records: u64,
    pub(crate) losers: BTreeMap<TransactionId, Loser>,
    /// For each page that the log changes, the LSN of its last record; `None` if the memory grant is too small for the
    /// table.
    pub(crate) pages: Option<HashMap<PageId, Lsn, RandomState>>,
    /// The extents of all pages that records from the start of redo on name, also of pages that need no redo. Empty for a
    /// restore.
    pub named: ExtentSet,
    /// Whether a bulk operation wrote pages and did not log their rows.
    pub has_bulk: bool,
    /// Whether the pages come from a backup.
    pub(crate) is_restore: bool,
    /// The point from which this recovery goes on, if an earlier one has read the log up to there.
    pub(crate) resumed: Option<Resumed>,
    /// An LSN at or before the first record of every open transaction, and the number of transactions that began since
    /// it was found.
    oldest_open: Lsn,
    begun_since: usize,
}

impl Analysis {
    /// Reads the log from the start of recovery.
    ///
    /// # Errors
    /// [`Refusal`] if this log cannot recover these files.
    pub fn new(source: &dyn PageSource, log: &Log, settings: &Settings) -> Result<Self, Refusal> {
        let Start { checkpoint, redo_from, from } = Start::of(source, log)?;
        let order = Some(LogOrder::new(checkpoint));
        let named = ExtentSet::of(source.files());
        let mut this = Self { order, named, ..Self::empty(checkpoint, redo_from, from) };
        this.read(log, None, settings)?;
        Ok(this)
    }

    /// Reads the log of a restore. Starts at the oldest record that the backup needs, and ends at `stop` or at the end
    /// of the log.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if this log cannot bring the pages of the backup to the point at which the restore stops.
    pub fn of_restore(
        start: RestoreStart,
        log: &Log,
        stop: Option<&Stop>,
        settings: &Settings,
    ) -> Result<Self, Refusal> {
        let mut this = Self::empty(start.redo_from, start.redo_from, start.from.min(start.redo_from));
        this.is_restore = true;
        this.read(log, stop.map(|stop| Search::new(stop, start.pages_to)), settings)?;
        match (this.until, stop) {
            (Some(until), _) if until < start.pages_to => {
                Err(Refusal::StopTooEarly { until, pages_to: start.pages_to })
            }
            (None, Some(Stop::AtMark(name) | Stop::BeforeMark(name))) => {
                Err(Refusal::NoMark { name: name.clone(), from: this.from, to: this.end })
            }
            _ => Ok(this),
        }
    }

    fn empty(checkpoint: Lsn, redo_from: Lsn, from: Lsn) -> Self {
        Self {
            checkpoint,
            redo_from,
            from,
            end: checkpoint,
            last_commit: None,
            until: None,
            blocks_after_the_end: 0,
            order: None,
            log_bytes: 0,
            records: 0,
            losers: BTreeMap::new(),
            pages: Some(HashMap::default()),
            named: ExtentSet::of(&[]),
            has_bulk: false,
            is_restore: false,
            resumed: None,
            oldest_open: from,
            begun_since: usize::MAX,
        }
    }

    /// Reads the log of a restore after the point that an earlier recovery has reached.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the log does not go on from there; the whole log must then be read.
    pub fn after(start: RestoreStart, log: &Log, reached: &Reached, settings: &Settings) -> Result<Self, Refusal> {
        let mut this = Self::empty(start.redo_from, start.redo_from, start.from.min(start.redo_from));
        this.is_restore = true;
        let open = this.go_on_from(reached).ok_or(Refusal::NotResumed)?;
        this.go_on(log, None, (open, settings))?;
        match this.has_bulk {
            // A bulk operation makes earlier pages doubtful too.
            true => Err(Refusal::NotResumed),
            false => Ok(this),
        }
    }

    /// The LSN from which the records of open transactions are read.
    pub(crate) fn undo_from(&self) -> Lsn {
        self.resumed.map_or(self.from, |resumed| resumed.undo_from)
    }

    /// Whether an earlier recovery has redone the record with this LSN.
    pub(crate) fn is_done(&self, lsn: Lsn) -> bool {
        self.resumed.is_some_and(|resumed| lsn <= resumed.after)
    }

    /// Whether recovery includes the record with this LSN.
    pub(crate) fn includes(&self, lsn: Lsn) -> bool {
        lsn >= self.from && self.until.is_none_or(|until| lsn < until)
    }

    /// The reason to doubt that the log and the data files belong together; `None` if there is no such reason.
    pub fn contradiction(&self) -> Option<&'static str> {
        self.order.as_ref().and_then(LogOrder::doubt)
    }

    /// Number of transactions that were open at the end of the log.
    pub fn open_transactions(&self) -> usize {
        self.losers.len()
    }

    fn read(&mut self, log: &Log, search: Option<Search<'_>>, settings: &Settings) -> Result<(), Refusal> {
        self.go_on(log, search, (Open::default(), settings))
    }

    fn go_on(
        &mut self,
        log: &Log,
        mut search: Option<Search<'_>>,
        (mut open, settings): (Open, &Settings),
    ) -> Result<(), Refusal> {
        let (redo_from, checkpoint, after) = (self.redo_from, self.checkpoint, self.resumed.map(|own| own.after));
        // The block that was read last is read again: it shows that the next block follows it.
        let from = after.unwrap_or(self.from);
        let is_read = |lsn: Lsn| lsn >= from && Some(lsn) != after;
        let mut reaches_checkpoint = false;
        let end = each_block(log, from, None, |block| {
            if block.is_encrypted() && block.record_count() > 0 {
                return Err(Refusal::Encrypted);
            }
            if block.first_lsn() >= redo_from && after.is_none_or(|after| block.first_lsn() > after) {
                self.log_bytes += block.size() as u64;
            }
            for (lsn, record) in block.records().filter(|(lsn, _)| is_read(*lsn)) {
                reaches_checkpoint |= lsn >= checkpoint;
                if let Some(search) = &mut search {
                    self.until = search.decide(lsn, &record)?;
                }
                // A restore to a mark (STOPATMARK) includes the commit of the mark; a stop at a time does not include
                // the first later commit.
                if self.until.is_none_or(|until| lsn < until) {
                    self.record(lsn, &record, &mut open)?;
                }
                if self.until.is_some() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let open_bytes = (open.len() * OPEN_BYTES) as u64;
            let table_bytes = self.pages.as_ref().map_or(0, |pages| pages.len() * PAGE_ENTRY_BYTES) as u64;
            if open_bytes > settings.open_bytes() {
                return Err(Refusal::TooManyOpen { needed_bytes: open_bytes });
            }
            if table_bytes + open_bytes > settings.table_bytes() {
                self.pages = None;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if let (Some(end), Some(ends_at)) = (end, log.ends_at()) {
            reaches(&end, ends_at)?;
        }
        if let Some(at) = end.and_then(|end| log.cut_at(&end)) {
            return Err(Refusal::CutOff { at });
        }
        if let Some(End { reason: EndReason::UnderWay(later), .. }) = end {
            self.blocks_after_the_end = later.count;
        }
        // An earlier step found the checkpoint record. If reading from the start of an older transaction ends before
        // the checkpoint, the log has a gap at the place where reading ended.
        if let Some(end) = end
            && (matches!(end.reason, EndReason::Damaged { .. })
                || !reaches_checkpoint && !self.is_restore
                || self.end < self.checkpoint)
        {
            return Err(Refusal::Damaged { lsn: end.lsn(), damage: LogDamage::at(log, &end) });
        }
        self.losers = open.into_iter().collect();
        Ok(())
    }

    /// An LSN at or before the first record of every open transaction. It is searched for again only when as many
    /// transactions have begun as are open, so that the search takes constant time per transaction.
    fn oldest_of(&mut self, open: &Open, lsn: Lsn) -> Lsn {
        if self.begun_since >= open.len() {
            self.oldest_open = open.values().map(|loser| loser.first).min().unwrap_or(lsn);
            self.begun_since = 0;
        }
        self.begun_since += 1;
        self.oldest_open
    }

    fn record(&mut self, lsn: Lsn, record: &LogRecord<'_>, open: &mut Open) -> Result<(), Refusal> {
        self.end = lsn;
        self.records += u64::from(lsn >= self.redo_from);
        let operation = record.operation();
        match operation {
            Operation::VERSION_STEP if lsn > self.checkpoint => return Err(Refusal::Upgrade),
            Operation::BUF_WRITE => self.has_bulk = true,
            Operation::COMMIT_XACT => {
                self.last_commit = record.end_transaction().and_then(|(ended, _)| ended).or(self.last_commit);
            }
            _ => {}
        }
        if let Some(order) = &mut self.order {
            let known = open.get(&record.transaction());
            order.add(lsn, record, known.map(|loser| Known { last: loser.last, has_begin: loser.has_begin }));
        }
        if let Some(change) = record.on_page().filter(|_| lsn >= self.redo_from) {
            self.named.insert(change.page);
            self.pages.as_mut().and_then(|pages| pages.insert(change.page, lsn));
        }
        let id = record.transaction();
        if id == TransactionId::NONE {
            return Ok(());
        }
        match operation {
            Operation::COMMIT_XACT | Operation::ABORT_XACT => drop(open.remove(&id)),
            // FORGET_XACT may follow the end of its transaction; it does not open the transaction again.
            Operation::FORGET_XACT if !open.contains_key(&id) => {}
            _ => {
                if open.len() >= MAX_OPEN {
                    return Err(Refusal::TooManyTransactions);
                }
                let begins = operation == Operation::BEGIN_XACT;
                if begins || !open.contains_key(&id) {
                    let needs = self.oldest_of(open, lsn);
                    open.insert(id, Loser::new((lsn, needs), begins));
                }
                let Some(loser) = open.get_mut(&id) else { return Ok(()) };
                loser.last = lsn;
                loser.is_prepared |= operation == Operation::PREP_XACT;
                loser.made_a_chain |= operation == Operation::CREATE_ALLOCCHAIN;
                loser.is_structural |= matches!(operation, Operation::INSYSXACT | Operation::DELETE_SPLIT);
            }
        }
        Ok(())
    }
}

impl Loser {
    pub(crate) fn new((first, needs): (Lsn, Lsn), has_begin: bool) -> Self {
        Self {
            last: first,
            has_begin,
            is_structural: false,
            is_prepared: false,
            made_a_chain: false,
            first,
            needs: needs.min(first),
        }
    }
}

/// Calls `visit` for each block, from the block of `from` to the block of `until`, or until `visit` breaks. Returns how
/// the log ends if its end was reached.
pub(crate) fn each_block(
    log: &Log,
    from: Lsn,
    until: Option<Lsn>,
    mut visit: impl FnMut(&Block<'_>) -> Result<ControlFlow<()>, Refusal>,
) -> Result<Option<End>, Refusal> {
    let mut walk = Walk::from(log, from).ok_or(Refusal::TooShort { lsn: from })?;
    let mut is_first = true;
    while let Some(block) = walk.next_block()? {
        let first = block.first_lsn();
        if is_first && (first.vlf, first.block) != (from.vlf, from.block) {
            return Err(Refusal::TooShort { lsn: from });
        }
        is_first = false;
        if until.is_some_and(|until| first >= until) || visit(&block)?.is_break() {
            return Ok(None);
        }
    }
    if is_first { Err(Refusal::TooShort { lsn: from }) } else { Ok(walk.end()) }
}

/// Returns an error if the log in backups ends before the LSN that the backups state as its end.
fn reaches(end: &End, ends_at: Lsn) -> Result<(), Refusal> {
    if end.reaches(ends_at) { Ok(()) } else { Err(Refusal::Incomplete { reached: end.lsn(), ends_at }) }
}
