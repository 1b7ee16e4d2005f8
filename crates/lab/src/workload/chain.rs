//! Makes full, differential and log backups while a workload runs. Each backup comes with the state that a restore up
//! to its end must give.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checkpoint::BOOT_PAGE;
use super::engine::{By, Engine, Undo};
use super::entry::{Entry, context};
use super::journal::Step;
use super::pool::FilePages;
use super::table::TableState;
use super::{Stop, TableTruth, Truth, Values, Workload};
use crate::backup::live::{self, LiveKind, LiveSet};
use crate::bytes::put;
use crate::disk::LabError;
use crate::fixed::{STATUS, guid};
use crate::ids::{EXTENT, PageId};
use crate::page::Lsn;
use crate::random::{Random, mix};

/// The address of the differential map page of file 1. `ALWAYS_CHANGED` is the bit mask of the extents that stay marked
/// as changed when a full backup clears this map.
const DIFFERENTIAL_MAP: PageId = PageId::new(1, 6);
const ALWAYS_CHANGED: u8 = 0b11;
/// The number of extents that a backup copies between two steps of the workload.
const EXTENTS_PER_STEP: usize = 12;

/// A kind of backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetKind {
    /// All pages.
    Full,
    /// The extents that changed since the last full backup.
    Differential,
    /// The log since the last log backup.
    Log,
}

/// An event in the history of a database that is backed up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The workload runs for a while.
    Work,
    /// The workload runs until two conditions are true: no open transaction is giving a table its first page, and no
    /// transaction is in doubt. The database can then be restored to this point.
    Settle,
    /// A backup of this kind is made.
    BackUp(SetKind),
    /// The current point in time is remembered for a later restore.
    Remember,
    /// The storage makes a snapshot of the data files and log files, while the server runs: pages that are changed in memory
    /// are on disk only if the server has written them. If there are snapshots, full backups are named as differential
    /// bases in the data files.
    Snapshot,
    /// The database is restored to the most recently remembered point, and continues in a new recovery fork.
    Restore,
}

/// The options for writing backups.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChainOptions {
    /// WITH CHECKSUM.
    pub checksum: bool,
    /// WITH COMPRESSION.
    pub compressed: bool,
    /// The number of stripes; 0 means one stripe.
    pub stripes: u16,
}

/// A backup in a chain of backups.
#[derive(Clone, Debug)]
pub struct ChainSet {
    /// The kind of the backup.
    pub kind: SetKind,
    /// The files of the backup, one for each stripe, in the order of the stripes.
    pub files: Vec<PathBuf>,
    /// The first and the last LSN, as text. The last LSN is the LSN of the first record after the backup.
    pub lsns: (String, String),
    /// Whether changes in this backup were abandoned. This is the case if the database was later restored to a point
    /// before the end of this backup and continued from that point.
    pub is_left: bool,
    /// The state at the end of the backup. A restore of all backups up to and including this backup must give this
    /// state.
    pub truth: Truth,
}

/// A storage snapshot.
#[derive(Clone, Debug)]
pub struct ChainSnapshot {
    /// The number of backups that were made before.
    pub sets: usize,
    /// The data files and the log files.
    pub files: Vec<PathBuf>,
}

/// A chain of backups.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The storage snapshots in the order in which they were made.
    pub snapshots: Vec<ChainSnapshot>,
    /// The backups in the order in which they were made.
    pub sets: Vec<ChainSet>,
    /// The rows before the first transaction. Tables that DDL made follow; they have no rows yet.
    pub tables: Vec<TableTruth>,
    /// All commits of user transactions in order. The rows at any point in time are [`Chain::tables`] with the changes
    /// of all commits up to that point. Commits that a restore abandoned are left out.
    pub commits: Vec<Commit>,
}

/// Damages the data files of a backup. Gets the number of the backup from 0, its kind, and the files.
pub type Spoil<'s> = dyn FnMut(usize, SetKind, &[PathBuf]) -> std::io::Result<()> + 's;

/// The commit of a transaction.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The name of the transaction: `user_transaction`, or a mark.
    pub name: String,
    /// The LSN of the COMMIT_XACT record, as text.
    pub lsn: String,
    /// The time of the commit as text, in the server's local time with milliseconds.
    pub time: String,
    /// The row changes of the transaction.
    pub changes: Vec<RowChange>,
}

/// A row before and after a transaction that changed it. Its values are those of the columns that the table had then. If
/// a transaction added or dropped a column, it changed all rows of the table.
#[derive(Clone, Debug)]
pub struct RowChange {
    /// The table, as a position in [`Chain::tables`].
    pub table: usize,
    /// The row before the transaction; `None` if it did not exist.
    pub before: Option<Values>,
    /// The row after the transaction; `None` if it was deleted.
    pub after: Option<Values>,
}

/// A datetime as text. The result is correct only for days in March 2024; all workloads run in this month.
pub(super) fn time_text(time: [u8; 8]) -> String {
    let (day, (hour, minute, second), ms) = moment(time);
    format!("2024-03-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}")
}

/// Splits a datetime into the day of March 2024, the time (hour, minute, second), and the milliseconds.
fn moment(time: [u8; 8]) -> (u8, (u8, u8, u8), u32) {
    let [a, b, c, d, e, f, ..] = time;
    let (ticks, days) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]));
    let seconds = ticks / 300;
    let time = ((seconds / 3600) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8);
    // Day 45,350 since 1900-01-01 is 2024-03-01.
    ((days - 45_350) as u8 + 1, time, (ticks % 300 * 10).div_ceil(3))
}

impl Workload {
    /// Runs the workload under the full recovery model, and makes one backup for each element of `kinds`, at regular
    /// intervals. The first backup must be a full backup. The workload continues while pages are copied.
    pub fn chain(&self, kinds: &[SetKind], options: ChainOptions, folder: &Path) -> Result<Chain, LabError> {
        let events: Vec<Event> = kinds.iter().flat_map(|kind| [Event::Work, Event::BackUp(*kind)]).collect();
        self.story(&events, options, folder)
    }

    /// Runs the workload through a list of events. In addition to the steps of [`Self::chain`], this list may contain
    /// restores of the database.
    pub fn story(&self, events: &[Event], options: ChainOptions, folder: &Path) -> Result<Chain, LabError> {
        self.spoiled_story(events, options, folder, &mut |_, _, _| Ok(()))
    }

    /// Runs the workload through a list of events like [`Self::story`]. `spoil` may damage the data files of each backup
    /// before they are copied. The database itself stays sound.
    pub fn spoiled_story(
        &self,
        events: &[Event],
        options: ChainOptions,
        folder: &Path,
        spoil: &mut Spoil<'_>,
    ) -> Result<Chain, LabError> {
        let kinds = || events.iter().filter(|event| matches!(event, Event::BackUp(_)));
        if kinds().next() != Some(&Event::BackUp(SetKind::Full)) {
            return Err(LabError::Description("a chain of backups begins with a full one".to_owned()));
        }
        let transactions = self.spec.transactions / kinds().count() as u64;
        let mut engine = self.base.engine(&self.spec);
        // Keeps the log from the start until the first backup. The LSN 0 marks that no backup was made yet.
        engine.log_backed_up = Some(Lsn::default());
        engine.use_full_recovery();
        let mut tables = engine.tables();
        let full = |_| LabError::Description("the data file of the workload is too small".to_owned());
        engine.start().map_err(full)?;
        let (mut sets, mut base, mut step, mut forks) = (Vec::<ChainSet>::new(), None, 0, 0);
        let (mut snapshots, has_snapshots) = (Vec::new(), events.contains(&Event::Snapshot));
        let mut remembered = (engine.clone(), base, 0);
        for event in events {
            let kind = match *event {
                Event::BackUp(kind) => kind,
                Event::Work => {
                    engine.run(transactions).map_err(full)?;
                    continue;
                }
                Event::Settle => {
                    while engine.open.values().any(|open| !open.new_chains.is_empty() || open.is_prepared) {
                        engine.one_step().map_err(full)?;
                    }
                    continue;
                }
                Event::Snapshot => {
                    snapshots.push(self.snapshot(&engine, folder, (snapshots.len(), sets.len()))?);
                    continue;
                }
                Event::Remember => {
                    remembered = (engine.clone(), base, sets.len());
                    continue;
                }
                Event::Restore => {
                    forks += 1;
                    let now = std::mem::replace(&mut engine, remembered.0.clone());
                    base = remembered.1;
                    sets.iter_mut().skip(remembered.2).for_each(|set| set.is_left = true);
                    engine.begin_fork(&now, (self.spec.seed, forks)).map_err(full)?;
                    continue;
                }
            };
            step += 1;
            let copied = engine.back_up(kind).map_err(full)?;
            let work = tempfile::tempdir().map_err(|source| LabError::Io { path: folder.to_owned(), source })?;
            let files = self.base.write_files(&copied.pages, work.path())?;
            spoil(sets.len(), kind, &files).map_err(|source| LabError::Io { path: work.path().to_owned(), source })?;
            let set = LiveSet {
                kind: if kind == SetKind::Log { self.log_with_bulk() } else { copied.kind },
                files: &files,
                step,
                base,
                lsns: copied.lsns,
                times: copied.times,
                log: copied.log,
                log_files: engine.journal.files(),
                checksum: options.checksum,
                compressed: options.compressed,
                stripes: options.stripes,
            };
            let name = match kind {
                SetKind::Full => format!("{step:02}_full"),
                SetKind::Differential => format!("{step:02}_diff"),
                SetKind::Log => format!("{step:02}_log"),
            };
            let files = live::write(&set, folder, &name)?;
            let (first, checkpoint, last) = copied.lsns;
            if kind == SetKind::Full {
                base = Some((step, checkpoint));
                if has_snapshots {
                    engine.name_base(guid(self.spec.seed, 0x6000 + u64::from(step)), checkpoint);
                }
            }
            let truth = self.truth(engine.clone(), Stop::WithOpen);
            sets.push(ChainSet { kind, files, lsns: (first.to_string(), last.to_string()), is_left: false, truth });
        }
        tables.extend(engine.tables[tables.len()..].iter().map(TableState::without_rows));
        Ok(Chain { snapshots, sets, tables, commits: engine.commits })
    }

    /// A log backup with the extents of bulk operations.
    fn log_with_bulk(&self) -> LiveKind {
        LiveKind::Log((1..=self.spec.bulk_extents).map(|extent| (1, extent)).collect())
    }

    /// Writes the files as they are on disk at this moment, of which the server may have written any changed pages.
    fn snapshot(
        &self,
        engine: &Engine<'_>,
        folder: &Path,
        (number, sets): (usize, usize),
    ) -> Result<ChainSnapshot, LabError> {
        let folder = folder.join(format!("snapshot_{:02}", number + 1));
        let mut now = engine.clone();
        let percent = 25 * now.dice.below(5);
        let dirty: Vec<PageId> = now.pool.dirty().keys().copied().collect();
        let written = dirty.into_iter().filter(|_| now.dice.chance(percent)).collect();
        now.write_back(written);
        let failed = |source| LabError::Io { path: folder.clone(), source };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let mut files = Vec::new();
        for (name, bytes) in self.base.named(now.pool.files()).into_iter().chain(self.base.logs(&mut now.journal)) {
            let path = folder.join(name);
            std::fs::write(&path, bytes).map_err(failed)?;
            files.push(path);
        }
        Ok(ChainSnapshot { sets, files })
    }
}

/// The data that a backup copied.
struct Copied {
    kind: LiveKind,
    pages: Vec<FilePages>,
    /// The first LSN, the LSN of the checkpoint, and the LSN that follows the last record.
    lsns: (Lsn, Lsn, Lsn),
    log: (Vec<u8>, Vec<crate::log::Part>),
    /// The start and the end of the backup: the day of March 2024, and hour, minute and second.
    times: [(u8, (u8, u8, u8)); 2],
}

impl Engine<'_> {
    /// Switches to the full recovery model, which keeps the log until it is backed up.
    fn use_full_recovery(&mut self) {
        const SIMPLE: u8 = 8;
        self.pool.frame(BOOT_PAGE).records[0][STATUS] &= !SIMPLE;
        self.pool.flush(BOOT_PAGE);
    }

    /// Turns this engine into the restored database after a restore. The state of the engine must be that of the
    /// restore point. Rolls back the open transactions and starts a new recovery fork. `other` is the database before
    /// the restore. All times in the new fork are later than the times in `other`.
    fn begin_fork(&mut self, other: &Self, (seed, number): (u64, u64)) -> Step {
        /// Offsets of the recovery fork fields on the boot page. `FORK` is for the GUID of the current fork, `POINT`
        /// for the LSN at which the current fork began, and `EARLIER` for the GUID of the previous fork.
        const FORK: usize = 0x1C8;
        const POINT: usize = 0x1D8;
        const EARLIER: usize = 0x1E4;
        let point = self.journal.end();
        self.journal.wait_for(&other.journal);
        self.dice = Random::new(mix(seed ^ (0xF0_4B << 32) ^ number));
        let record = &mut self.pool.frame(BOOT_PAGE).records[0];
        let earlier = record[FORK..FORK + 16].to_vec();
        put(record, EARLIER, &earlier);
        put(record, POINT, &point.bytes());
        put(record, FORK, &guid(seed, 0x4000 + number));
        self.pool.flush(BOOT_PAGE);
        self.recover()?;
        self.checkpoint(0)
    }

    fn now(&self) -> (u8, (u8, u8, u8)) {
        let (day, time, _) = moment(self.journal.time());
        (day, time)
    }

    fn back_up(&mut self, kind: SetKind) -> Step<Copied> {
        let began = self.now();
        if kind == SetKind::Log {
            let last = self.journal.end();
            let first = self.log_backed_up.unwrap_or(last);
            let (blocks, mut parts) = self.journal.copy(first);
            parts.retain(|part| !part.copied.is_empty());
            let log = (blocks, parts);
            self.log_backed_up = Some(last);
            return Ok(Copied {
                kind: LiveKind::Log(Vec::new()),
                pages: self.pool.disk().to_vec(),
                lsns: (first, self.checkpoint, last),
                log,
                times: [began, self.now()],
            });
        }
        self.checkpoint(0)?;
        let checkpoint = self.checkpoint;
        let oldest = self.open.values().map(|transaction| transaction.begin).min();
        let first = oldest.map_or(checkpoint, |oldest| oldest.min(checkpoint));
        let live = match kind {
            SetKind::Differential => LiveKind::Differential(self.changed_extents()),
            _ => LiveKind::Full,
        };
        if kind == SetKind::Full {
            self.clear_changed()?;
        }
        self.is_copied = true;
        let pages = self.copy_pages()?;
        self.is_copied = false;
        let last = self.journal.end();
        if self.log_backed_up == Some(Lsn::default()) {
            // The first log backup contains the log from the start of the first full backup on.
            self.log_backed_up = Some(first);
        }
        let times = [began, self.now()];
        Ok(Copied { kind: live, pages, lsns: (first, checkpoint, last), log: self.journal.copy(first), times })
    }

    /// Copies all pages from disk, a few extents at a time, while the transactions continue.
    fn copy_pages(&mut self) -> Step<Vec<FilePages>> {
        let mut copied: Vec<FilePages> = self.pool.disk().to_vec();
        for (file, pages) in copied.iter_mut().enumerate() {
            let mut from = 0;
            for chunk in pages.chunks_mut(EXTENTS_PER_STEP * EXTENT as usize) {
                for (page, now) in chunk.iter_mut().zip(&self.pool.disk()[file][from..]) {
                    *page = Arc::clone(now);
                }
                from += chunk.len();
                self.one_step()?;
            }
        }
        Ok(copied)
    }

    /// Names a full backup as the differential base of the database and of each file. This is not logged.
    fn name_base(&mut self, set: [u8; 16], checkpoint: Lsn) {
        /// Offsets of the differential base on the boot page.
        const BASE_LSN: usize = 0x150;
        const BASE_SET: usize = 0x1F4;
        /// Columns of the differential base in a file header.
        const FILE_LSN: usize = 8;
        const FILE_SET: usize = 21;
        let boot = &mut self.pool.frame(BOOT_PAGE).records[0];
        put(boot, BASE_LSN, &checkpoint.bytes());
        put(boot, BASE_SET, &set);
        let mut pages = vec![BOOT_PAGE];
        for page in self.pool.ids().into_iter().filter(|page| page.page == 0) {
            let header = &mut self.pool.frame(page).records[0];
            for (column, value) in [(FILE_LSN, &checkpoint.bytes()[..]), (FILE_SET, &set)] {
                if let Some(at) = variable_column(header, column) {
                    put(header, at, value);
                }
            }
            pages.push(page);
        }
        self.write_back(pages);
    }

    fn changed_extents(&mut self) -> Vec<(u16, u32)> {
        let extents = self.pool.pages(1) / EXTENT;
        (0..extents).filter(|&extent| self.bit(DIFFERENTIAL_MAP, extent)).map(|extent| (1, extent)).collect()
    }

    /// Clears the differential map at the start of a full backup.
    fn clear_changed(&mut self) -> Step {
        let old = self.pool.frame(DIFFERENTIAL_MAP).records[1].clone();
        let mut new = old.clone();
        new[4..].fill(0);
        new[4] = ALWAYS_CHANGED;
        if let Some(entry) = Entry::map_change(context::DIFFERENTIAL_MAP, (DIFFERENTIAL_MAP, 1), &old, &new) {
            self.change(By::Engine, entry, Undo::Nothing, |frame| frame.records[1] = new)?;
            self.write_back(vec![DIFFERENTIAL_MAP]);
        }
        Ok(())
    }
}

/// The offset of a variable column in a record, counted from 0; `None` if the column is missing or empty.
fn variable_column(record: &[u8], column: usize) -> Option<usize> {
    let word = |at: usize| Some(usize::from(u16::from_le_bytes(*record.get(at..)?.first_chunk()?)));
    let fixed_end = word(2)?;
    let count_at = fixed_end + 2 + word(fixed_end)?.div_ceil(8);
    let end = |column: usize| word(count_at + 2 + 2 * column);
    let first = count_at + 2 + 2 * word(count_at)?;
    let from = if column == 0 { first } else { end(column - 1)? };
    (column < word(count_at)? && from < end(column)?).then_some(from)
}
