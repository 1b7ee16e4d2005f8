//! Real databases at rest, with their logs. By undoing log records, a database is taken back to a point in time at
//! which it was in use.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use format::log::change::Change;
use format::log::{LogRecord, Operation, TransactionId};
use format::protection::undo_torn_bits;
use format::{Lsn, PageBytes, PageId, boot};
use log::{Log, Walk};
use recovery::PastPage;
use source::{MemoryFiles, PageSource};

use trials::in_use::is_allocated;
use trials::mutate::{Random, seal};

/// The maximum size of a file in bytes, because campaigns have several files in memory.
const MAX_BYTES: u64 = 48 << 20;
/// The offset of the parity in the header of a VLF. The next constant is the position of the sequence number.
const PARITY_AT: usize = 1;
const SEQUENCE: std::ops::Range<usize> = 4..8;

/// A database at rest, with its log.
pub(crate) struct Pair {
    pub(crate) name: String,
    source: MemoryFiles,
    log_name: PathBuf,
    log: Vec<u8>,
    /// For each log block, the LSN of its last record, and the offset of its end in the file.
    blocks: Vec<(Lsn, usize)>,
    /// The VLFs of the log. Each has its sequence number and its byte range in the file.
    vlfs: Vec<(u32, std::ops::Range<usize>)>,
    /// The log records of each page, oldest first.
    records: BTreeMap<PageId, Vec<(Lsn, Vec<u8>)>>,
    /// For each DELETE_SPLIT, the bytes of the INSERT_ROWS record that moved its rows.
    moved: HashMap<Lsn, Vec<u8>>,
    checkpoints: Vec<Checkpoint>,
    /// For each transaction, the LSNs of its first and its last record. The second LSN is `None` if the transaction had
    /// not ended when the log ended.
    transactions: Vec<(Lsn, Option<Lsn>)>,
    /// The earliest LSN to which the database can be taken back. At least one page cannot be taken back further.
    floor: Lsn,
}

#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    begin: Lsn,
    end: Lsn,
    redo_from: Lsn,
}

/// A point in time at which a database was in use.
pub(crate) struct Moment {
    /// The LSN of the last record that the log contained at this time.
    pub(crate) end: Lsn,
    checkpoint: Checkpoint,
}

impl Moment {
    /// Returns the LSN at which redo starts at this point in time.
    pub(crate) fn redo_from(&self) -> Lsn {
        self.checkpoint.redo_from
    }
}

/// The data files of the corpus, each with a log from its folder. Empty if the corpus is missing.
pub(crate) fn files() -> &'static [(PathBuf, PathBuf)] {
    static FILES: OnceLock<Vec<(PathBuf, PathBuf)>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut found = Vec::new();
        search(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus"), &mut found);
        found.sort();
        found
    })
}

fn search(folder: &Path, found: &mut Vec<(PathBuf, PathBuf)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let is_small = |path: &Path| fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
    let of = |wanted: &str| {
        let is_one = |path: &&PathBuf| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(wanted));
        paths.iter().filter(is_one).filter(|path| is_small(path)).cloned().collect::<Vec<_>>()
    };
    for data in of("mdf") {
        let id = log::binding_guid(&data);
        let is_its_own = |log: &PathBuf| id.is_some() && log::binding_guid(log) == id;
        found.extend(of("ldf").into_iter().filter(is_its_own).map(|log| (data.clone(), log)));
    }
    paths.iter().filter(|path| path.is_dir()).for_each(|path| search(path, found));
}

impl Pair {
    /// Reads a data file and its log; `None` if they do not belong together, or if the database was not at rest.
    pub(crate) fn open(data: &Path, log_path: &Path) -> Option<Self> {
        let source = MemoryFiles::open(vec![(data.to_owned(), fs::read(data).ok()?)]).ok()?;
        let log = Log::open(&[log_path.to_owned()]).ok()?;
        let analysis = recovery::Analysis::new(&source, &log, &recovery::Settings::default()).ok()?;
        let boot = source.read_page(PageId::BOOT)?;
        let boot = boot::Boot::read(format::Page::new(&boot))?;
        let is_clean = boot.status() & boot::status::CLEAN_SHUTDOWN != 0;
        let last_checkpoint = boot.checkpoint_lsn();
        if !is_clean || analysis.blocks_after_the_end != 0 {
            return None;
        }
        let vlfs =
            log.run().iter().map(|placed| (placed.vlf.sequence, placed.vlf.offset as usize..placed.vlf.end() as usize));
        let mut this = Self {
            name: data.file_name()?.to_string_lossy().into_owned(),
            source,
            log_name: log_path.file_name()?.into(),
            log: fs::read(log_path).ok()?,
            blocks: Vec::new(),
            vlfs: vlfs.collect(),
            records: BTreeMap::new(),
            moved: HashMap::new(),
            checkpoints: Vec::new(),
            transactions: Vec::new(),
            floor: Lsn::default(),
        };
        this.read(&log)?;
        // Only checkpoints up to the one in the boot page are used. A later checkpoint may not have written all its
        // pages yet.
        this.checkpoints.retain(|checkpoint| checkpoint.begin <= last_checkpoint);
        this.find_floor();
        Some(this)
    }

    fn read(&mut self, log: &Log) -> Option<()> {
        let mut begun: HashMap<TransactionId, Lsn> = HashMap::new();
        let mut inserted: HashMap<TransactionId, Vec<u8>> = HashMap::new();
        let mut begin = None;
        let mut walk = Walk::new(log);
        while let Ok(Some(block)) = walk.next_block() {
            let first = block.first_lsn();
            let (_, vlf) = self.vlfs.iter().find(|(sequence, _)| *sequence == first.vlf)?;
            let end = vlf.start + first.block as usize * format::log::SECTOR_BYTES + block.size();
            let last = block.records().last().map_or(first, |(lsn, _)| lsn);
            self.blocks.push((last, end));
            for (lsn, record) in block.records() {
                let id = record.transaction();
                if record.begin_transaction().is_some() {
                    begun.insert(id, lsn);
                }
                if let Some((_, began)) = record.end_transaction() {
                    self.transactions.push((begun.remove(&id).unwrap_or(began), Some(lsn)));
                    inserted.remove(&id);
                }
                if record.begin_checkpoint().is_some() {
                    begin = Some(lsn);
                }
                if let (Some((_, redo_from)), Some(begin)) = (record.end_checkpoint(), begin) {
                    let redo_from = if redo_from == Lsn::default() { begin } else { redo_from.min(begin) };
                    self.checkpoints.push(Checkpoint { begin, end: lsn, redo_from });
                }
                let Some(place) = record.on_page() else { continue };
                match record.change() {
                    Some(Change::Insert { .. }) => drop(inserted.insert(id, record.bytes().to_vec())),
                    Some(Change::DropMoved { .. }) => {
                        self.moved.extend(inserted.get(&id).map(|insert| (lsn, insert.clone())))
                    }
                    _ => {}
                }
                if self.source.contains(place.page) {
                    self.records.entry(place.page).or_default().push((lsn, record.bytes().to_vec()));
                }
            }
        }
        // The remaining transactions had not ended when the log ended.
        self.transactions.extend(begun.into_values().map(|begin| (begin, None)));
        Some(())
    }

    /// Finds the earliest usable point in time by taking each page back as far as possible. A page cannot be taken back
    /// beyond a change without a log record.
    fn find_floor(&mut self) {
        let reached = self.records.keys().filter_map(|page| self.back(*page, 0).err());
        let pages =
            self.source.files().iter().flat_map(|file| (0..file.pages).map(|page| PageId::new(file.file_id, page)));
        let lsn_of = |page| Some(format::Page::new(&*self.source.read_page(page)?).header().lsn());
        let without_record = pages.filter(|page| !self.records.contains_key(page)).filter_map(lsn_of);
        self.floor = reached.chain(without_record).max().unwrap_or_default();
    }

    fn records_of(&self, page: PageId) -> &[(Lsn, Vec<u8>)] {
        self.records.get(&page).map_or(&[], Vec::as_slice)
    }

    /// The number of log records of a page up to and including `end`.
    fn records_until(&self, page: PageId, end: Lsn) -> usize {
        self.records_of(page).partition_point(|(lsn, _)| *lsn <= end)
    }

    /// The number of log records of a page before the start of redo. The page on disk already contains the changes of
    /// these records.
    fn records_before_redo(&self, page: PageId, moment: &Moment) -> usize {
        self.records_of(page).partition_point(|(lsn, _)| *lsn < moment.redo_from())
    }

    /// Takes a page back to its state after the first `kept` of its log records. If a record cannot be undone, the
    /// error is the LSN of this record. If the record that formats the page is undone, the result is a page of zeros,
    /// because the earlier content of the page is unknown.
    fn back(&self, id: PageId, kept: usize) -> Result<PastPage, Lsn> {
        let records = self.records_of(id);
        let last = records.last().map(|(lsn, _)| *lsn).unwrap_or_default();
        let stored = self.source.read_page(id).ok_or(last)?;
        let mut page = PastPage::new(id, &stored).map_err(|_| last)?;
        if page.lsn() != last {
            return Err(last);
        }
        let views: Vec<LogRecord<'_>> = records.iter().map(|(_, bytes)| LogRecord::new(bytes)).collect();
        for (number, (lsn, _)) in records.iter().enumerate().skip(kept).rev() {
            let insert = self.moved.get(lsn).and_then(|bytes| LogRecord::new(bytes).change());
            let moved = match &insert {
                Some(Change::Insert { images, .. }) => images.as_slice(),
                _ => &[],
            };
            page.take_back(*lsn, &views[number], &views[..number], moved).map_err(|_| *lsn)?;
            if views[number].operation() == Operation::FORMAT_PAGE {
                break;
            }
            // After a record is undone, the page LSN must equal the LSN of the record before it. Otherwise, a change
            // without a log record may have occurred between the two records.
            if number.checked_sub(1).is_some_and(|before| records[before].0 != page.lsn()) {
                return Err(*lsn);
            }
        }
        Ok(page)
    }

    /// The bytes of a page after the first `kept` of its log records.
    fn past(&self, id: PageId, kept: usize) -> Option<PageBytes> {
        Some(*self.back(id, kept).ok()?.finish().ok()?)
    }

    /// Returns the number of log records of a page that precede its earliest known state.
    fn reach(&self, page: PageId) -> usize {
        let formats = |(_, bytes): &(Lsn, Vec<u8>)| LogRecord::new(bytes).operation() == Operation::FORMAT_PAGE;
        match self.records_of(page).iter().rposition(formats) {
            None | Some(0) => 0,
            Some(format) => format + 1,
        }
    }

    /// A random point in time at which the database was in use; `None` if no such point is usable.
    pub(crate) fn moment(&self, random: &mut Random) -> Option<Moment> {
        let ends: Vec<Lsn> = self.blocks.iter().map(|(last, _)| *last).filter(|last| *last >= self.floor).collect();
        for _ in 0..20 {
            let end = *random.pick(&ends)?;
            let before: Vec<Checkpoint> =
                self.checkpoints.iter().filter(|checkpoint| checkpoint.end <= end).copied().collect();
            // In most cases, the last checkpoint is chosen. Sometimes an earlier checkpoint is chosen, because a boot
            // page may name an earlier one.
            let back = if random.below(3) == 0 { random.below(5) } else { 0 };
            let Some(checkpoint) = before.len().checked_sub(1 + back).and_then(|at| before.get(at)) else { continue };
            return Some(Moment { end, checkpoint: *checkpoint });
        }
        None
    }

    /// Whether a transaction was open at this point in time.
    pub(crate) fn has_open(&self, moment: &Moment) -> bool {
        let is_open =
            |(begin, end): &(Lsn, Option<Lsn>)| *begin <= moment.end && end.is_none_or(|end| end > moment.end);
        self.transactions.iter().any(is_open)
    }

    /// The state of all pages at this point in time; `None` if the state of some page is unknown.
    pub(crate) fn truth(&self, moment: &Moment) -> Option<MemoryFiles> {
        let mut changes = Vec::new();
        for page in self.records.keys() {
            let kept = self.records_until(*page, moment.end);
            if kept < self.records_of(*page).len() {
                changes.push((*page, self.past(*page, kept)?));
            }
        }
        let blank: Vec<PageId> =
            changes.iter().filter(|(_, bytes)| bytes.iter().all(|byte| *byte == 0)).map(|(page, _)| *page).collect();
        let truth = self.source.with_pages(changes).ok()?;
        blank.iter().all(|page| !is_allocated(&truth, *page)).then_some(truth)
    }

    /// A possible state of the data file on disk at this point in time. Each page is in its state at the checkpoint, or
    /// in a later state.
    pub(crate) fn on_disk(&self, truth: &MemoryFiles, moment: &Moment, random: &mut Random) -> Option<MemoryFiles> {
        let flush = random.below(4);
        let mut changes = Vec::new();
        for page in self.records.keys().filter(|page| **page != PageId::BOOT) {
            let last = self.records_until(*page, moment.end);
            let first = self.records_before_redo(*page, moment).max(self.reach(*page));
            let kept = match flush {
                0 => first,
                1 => last,
                _ => first + random.below((last + 1).saturating_sub(first).max(1)),
            };
            if kept < last {
                changes.push((*page, self.past(*page, kept)?));
            }
        }
        changes.push((PageId::BOOT, self.boot(truth, moment)?));
        truth.with_pages(changes).ok()
    }

    fn boot(&self, truth: &MemoryFiles, moment: &Moment) -> Option<PageBytes> {
        let mut boot = truth.read_page(PageId::BOOT)?;
        undo_torn_bits(&mut boot);
        let checkpoint = moment.checkpoint;
        boot::in_use(&mut boot, checkpoint.begin, checkpoint.redo_from).then_some(())?;
        seal(&mut boot);
        Some(*boot)
    }

    /// The name of the data file, and the content of the file if it has these pages.
    pub(crate) fn contents(&self, pages: &MemoryFiles) -> (PathBuf, Vec<u8>) {
        let file = pages.files().first();
        let numbers = file.into_iter().flat_map(|file| (0..file.pages).map(|page| PageId::new(file.file_id, page)));
        let bytes = numbers.filter_map(|page| pages.read_page(page)).flat_map(|bytes| bytes.to_vec()).collect();
        (self.name.clone().into(), bytes)
    }

    /// The name of the log file, and the content of the file at this point in time.
    pub(crate) fn log(&self, moment: &Moment) -> (PathBuf, Vec<u8>) {
        let mut log = self.log.clone();
        let end = self.blocks.iter().find(|(last, _)| *last >= moment.end).map_or(log.len(), |(_, end)| *end);
        for (sequence, place) in &self.vlfs {
            let Some(vlf) = log.get_mut(place.clone()) else { continue };
            match sequence.cmp(&moment.end.vlf) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => vlf[end - place.start..].fill(0),
                std::cmp::Ordering::Greater => {
                    vlf[PARITY_AT] = 0;
                    vlf[SEQUENCE].fill(0);
                    // At this point in time, this VLF contained no block yet. A remaining block that continues the log
                    // would look like evidence of a damaged VLF header, so all blocks are overwritten with zeros.
                    vlf.iter_mut().skip(format::log::vlf::HEADER_BYTES as usize).for_each(|byte| *byte = 0);
                }
            }
        }
        (self.log_name.clone(), log)
    }

    /// The pages that log records change.
    pub(crate) fn pages(&self) -> Vec<PageId> {
        self.records.keys().copied().collect()
    }

    /// The last log record of a page up to this point in time.
    pub(crate) fn last_record(&self, page: PageId, moment: &Moment) -> Option<(Lsn, LogRecord<'_>)> {
        let last = self.records_until(page, moment.end).checked_sub(1)?;
        self.records_of(page).get(last).map(|(lsn, bytes)| (*lsn, LogRecord::new(bytes)))
    }

    /// Returns a page after a lost write: the page lacks the change of a log record that precedes the start of redo, so
    /// redo does not repair the page.
    pub(crate) fn before_redo(&self, page: PageId, moment: &Moment, random: &mut Random) -> Option<PageBytes> {
        let (reach, must_have) = (self.reach(page), self.records_before_redo(page, moment));
        let lacking = must_have.checked_sub(reach).filter(|lacking| *lacking > 0)?;
        let bytes = self.past(page, reach + random.below(lacking))?;
        bytes.iter().any(|byte| *byte != 0).then_some(bytes)
    }

    /// A page that is newer than the log: it contains the change of a log record from after this point in time.
    pub(crate) fn after(&self, page: PageId, moment: &Moment, random: &mut Random) -> Option<PageBytes> {
        let until = self.records_until(page, moment.end);
        let later = self.records_of(page).len() - until;
        (later > 0).then(|| self.past(page, until + 1 + random.below(later)))?
    }
}
