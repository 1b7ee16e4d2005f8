//! Log files and backups of the log, and the run of virtual log files that contain the log.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use format::file_header::FileHeader;
use format::log::block::{MAX_BYTES, first_lsn_on_disk};
use format::log::{Block, SECTOR_BYTES, Vlf, vlf};
use format::page::PAGE_BYTES;
use format::protection::undo_torn_bits;
use format::{Lsn, Page, PageBytes};
use source::backup::{BackupLog, LogPart, LogSet};
use source::storage::{self, Kind};
use source::{FileChange, FileKind, SharedFile, identify, read_fully_at};

use crate::error::{LogError, stripes_text};

/// The number of the first block of a VLF.
pub const FIRST_BLOCK: u32 = (vlf::HEADER_BYTES / SECTOR_BYTES as u64) as u32;

/// The most VLFs to accept. The smallest VLF has some 250 KB, so a log with this number of VLFs has at least 60 GB. No
/// real log has more VLFs.
const MAX_VLFS: usize = 250_000;

/// One log file, or the log of one backup set.
#[derive(Debug)]
pub struct LogFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The file ID; 2 for the first log file.
    pub file_id: u16,
    /// The logical name of the file; for a backup set, the type of backup.
    pub logical_name: String,
    /// The GUID that identifies the database. The data files of the database have the same GUID.
    pub binding_guid: [u8; 16],
    /// The size in bytes; for a backup set, the size of the log in it.
    pub bytes: u64,
    /// The VLFs in the order of their offsets; for a backup set, only the VLFs from which the set contains log.
    pub vlfs: Vec<Vlf>,
    /// The size in bytes according to the file header; 0 for a backup set.
    header_bytes: u64,
    reader: Reader,
}

/// The source of a log file's bytes.
#[derive(Debug)]
enum Reader {
    File(SharedFile),
    Backup(Arc<BackupLog>),
}

/// A VLF of the log, and the file in which the VLF is stored. For a backup, `from` and `to` are the bounds of the part
/// of the VLF that the backup contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacedVlf {
    /// The index of the file in [`Log::files`].
    pub file: usize,
    /// The VLF.
    pub vlf: Vlf,
    /// The offset in the log file at which the first block of the VLF starts.
    pub from: u64,
    /// The offset in the log file at which the blocks of the VLF end at the latest.
    pub to: u64,
    /// The part of the VLF that a backup contains; `None` for a log file.
    pub(crate) part: Option<LogPart>,
}

impl PlacedVlf {
    /// Whether the VLF is from a backup, which contains only whole blocks.
    pub fn is_of_a_backup(&self) -> bool {
        self.part.is_some()
    }
}

/// The log of one database.
#[derive(Debug)]
pub struct Log {
    files: Vec<LogFile>,
    run: Vec<PlacedVlf>,
    /// The parts of VLFs in all backups, by sequence number. If several backups contain the same log, this list
    /// contains the copy of each backup, but `run` contains only one copy.
    copies: Vec<PlacedVlf>,
    gaps: Vec<Gap>,
    ends_at: Option<Lsn>,
    sets: Vec<LogSet>,
}

/// A range of log that no backup contains, although later log exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The first missing LSN, which follows the log before the gap.
    pub from: Lsn,
    /// The first LSN after the gap.
    pub to: Lsn,
}

impl Log {
    /// Opens the log files of one database, shared and read-only, and reads the headers of their VLFs.
    ///
    /// # Errors
    /// [`LogError`] for a file that cannot be read or is no log file, for files of different databases, and for a log
    /// that was never used.
    pub fn open(paths: &[PathBuf]) -> Result<Self, LogError> {
        let mut files: Vec<LogFile> = Vec::new();
        for path in paths {
            let opened = LogFile::open(path)?;
            if let Some(other) = files.iter().find(|other| other.binding_guid != opened.binding_guid) {
                return Err(LogError::OtherDatabase { path: opened.path, other: other.path.clone() });
            }
            if let Some(other) = files.iter().find(|other| other.file_id == opened.file_id) {
                let (file_id, other) = (opened.file_id, other.path.clone());
                return Err(LogError::SameFile { path: opened.path, other, file_id });
            }
            files.push(opened);
        }
        files.sort_by_key(|file| file.file_id);
        let run = run(&files);
        let cut = files.iter().find(|file| file.is_cut());
        match (cut.or(files.first()), run.is_empty()) {
            (None, _) => Err(LogError::Nothing),
            (Some(file), true) if file.is_cut() => Err(LogError::CutOff { path: file.path.clone(), at: file.bytes }),
            (Some(file), true) => Err(LogError::NeverUsed { path: file.path.clone() }),
            _ => Ok(Self { files, run, copies: Vec::new(), gaps: Vec::new(), ends_at: None, sets: Vec::new() }),
        }
    }

    /// Opens the log in backups: log backups, and the log portions of full and differential backups, in any order. Log
    /// that several backups contain is read once, from a backup in which it is not damaged.
    ///
    /// # Errors
    /// [`LogError`] for backup sets of different databases, and if no set contains log.
    pub fn of_backups(backups: BackupLog) -> Result<Self, LogError> {
        let backups = Arc::new(backups);
        let mut files: Vec<LogFile> = Vec::new();
        let mut parts: Vec<PlacedVlf> = Vec::new();
        for (number, set) in backups.sets().iter().enumerate() {
            let of_it: Vec<LogPart> = backups.parts().iter().filter(|part| part.set == number).copied().collect();
            let Some(first) = of_it.first() else { continue };
            if let Some(other) = files.iter().find(|other| other.binding_guid != set.binding_guid) {
                return Err(LogError::OtherDatabase { path: set.path.clone(), other: other.path.clone() });
            }
            let placed = |part: &LogPart| PlacedVlf {
                file: files.len(),
                vlf: part.vlf,
                from: part.from,
                to: part.to,
                part: Some(*part),
            };
            parts.extend(of_it.iter().map(placed));
            files.push(LogFile {
                path: set.path.clone(),
                file_id: first.file_id,
                logical_name: set.kind.name().to_owned(),
                binding_guid: set.binding_guid,
                bytes: of_it.iter().map(|part| part.to - part.from).sum(),
                vlfs: of_it.iter().map(|part| part.vlf).collect(),
                header_bytes: 0,
                reader: Reader::Backup(Arc::clone(&backups)),
            });
        }
        parts.sort_by_key(|part| (part.vlf.sequence, part.from, std::cmp::Reverse(part.to)));
        let (run, mut gaps) = join(&parts);
        let sets = backups.sets();
        let ends_at = sets.iter().filter_map(|set| set.last_lsn).max();
        if sets.is_empty() {
            return Err(LogError::Nothing);
        }
        if run.is_empty() {
            gaps = of_empty(sets, backups.unusable_parts())?;
        }
        Ok(Self { files, run, copies: parts, gaps, ends_at, sets: sets.to_vec() })
    }

    /// Whether the backups contain no log, according to their labels. In that case, nothing was written to the database
    /// since the previous log backup.
    pub fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    /// The backup sets from which the log is read; empty for log files.
    pub fn sets(&self) -> &[LogSet] {
        &self.sets
    }

    /// The missing stripes of the backup sets as text, each with the file of its set: `stripe 2 of 3 is not given`.
    pub fn missing_stripes(&self) -> impl Iterator<Item = (&Path, String)> {
        let missing = self.sets.iter().filter(|set| !set.missing.is_empty());
        missing.map(|set| (set.path.as_path(), format!("{} not given", stripes_text(&set.missing, set.stripes))))
    }

    /// The gaps between the backups. All gaps are before the run, because the run starts after the last gap.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The first LSN after the log, according to the backups; `None` for log files, which do not store it.
    pub fn ends_at(&self) -> Option<Lsn> {
        self.ends_at
    }

    /// Reads from a VLF of the run, starting at offset `at` of its log file. Returns fewer bytes than requested only at
    /// the end of the VLF, or where a backup is damaged.
    pub(crate) fn read_at(&self, placed: &PlacedVlf, buffer: &mut [u8], at: u64) -> Result<usize, LogError> {
        let Some(file) = self.files.get(placed.file) else { return Ok(0) };
        let failed = |cause| LogError::Io { path: file.path.clone(), at, cause };
        match (&file.reader, &placed.part) {
            (Reader::File(file), _) => read_fully_at(file, buffer, at).map_err(failed),
            // If the backup is damaged at this offset, no bytes are returned, so the log ends here.
            (Reader::Backup(backups), Some(part)) => match backups.read_at(part, buffer, at) {
                Err(cause) if cause.kind() == io::ErrorKind::InvalidData => Ok(0),
                read => read.map_err(failed),
            },
            (Reader::Backup(_), None) => Ok(0),
        }
    }

    /// Finds the VLF in which the log continues, if a wrong VLF header hides this VLF. Either its own header states an
    /// earlier use, or the header of another VLF has a size that covers this VLF. Returns the file and the offset of
    /// the VLF; `None` if no such VLF is found.
    ///
    /// The VLF must start with the first block of use `sequence`. If its header says that the VLF was never used, this
    /// block must also state `previous_size` as the size of the block before it. If its header says that the VLF was
    /// used, the VLF may also start with the first block of a later use.
    pub(crate) fn first_block(&self, sequence: u32, previous_size: usize) -> Result<Option<(usize, u64)>, LogError> {
        let mut block = vec![0; MAX_BYTES];
        for (number, log) in self.files.iter().enumerate() {
            let Reader::File(file) = &log.reader else { continue };
            let known = log.vlfs.iter().filter(|vlf| vlf.sequence != sequence || !vlf.is_used());
            // A VLF that was never used may contain blocks of another file that was stored at this place on the disk
            // before.
            let known = known.map(|vlf| (vlf.offset, vlf.end(), vlf.sequence != 0 || vlf.parity != 0));
            let hidden = log.places_of_hidden_vlfs().map(|(offset, end)| {
                let mut header = [0; vlf::USED_BYTES];
                let read = read_fully_at(file, &mut header, offset).unwrap_or_default();
                let vlf = Vlf::read(header.get(..read).unwrap_or_default(), offset);
                (offset, end, vlf.is_some_and(|vlf| vlf.is_used()))
            });
            for (offset, end, was_used) in known.chain(hidden) {
                let at = offset.saturating_add(vlf::HEADER_BYTES);
                let failed = |cause| LogError::Io { path: log.path.clone(), at, cause };
                let read =
                    read_fully_at(file, block.get_mut(..SECTOR_BYTES).unwrap_or_default(), at).map_err(failed)?;
                let lsn = first_lsn_on_disk(block.get(..read).unwrap_or_default()).unwrap_or_default();
                if lsn.block != FIRST_BLOCK || !(lsn.vlf == sequence || was_used && lsn.vlf > sequence) {
                    continue;
                }
                let left = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(MAX_BYTES);
                let read = read_fully_at(file, block.get_mut(..left).unwrap_or_default(), at).map_err(failed)?;
                let found = Block::restore(block.get_mut(..read).unwrap_or_default());
                if found.is_ok_and(|block| was_used || block.previous_size() == previous_size) {
                    return Ok(Some((number, offset)));
                }
            }
        }
        Ok(None)
    }

    /// Returns the copies of a block in all backups. `placed` is the part of the run that contains the block, and `at`
    /// is the offset of the block. Each copy is the part of the VLF in one backup, cut to end no later than `placed`.
    pub(crate) fn copies(&self, placed: &PlacedVlf, at: u64) -> impl Iterator<Item = PlacedVlf> {
        let PlacedVlf { vlf: Vlf { sequence, offset, .. }, to, .. } = *placed;
        let first = self.copies.partition_point(|copy| copy.vlf.sequence < sequence);
        let of_it = self.copies.iter().skip(first).take_while(move |copy| copy.vlf.sequence == sequence);
        let has_it = move |copy: &&PlacedVlf| copy.vlf.offset == offset && (copy.from..copy.to).contains(&at);
        of_it.filter(has_it).map(move |copy| PlacedVlf { to: copy.to.min(to), ..*copy })
    }

    /// The files, by file ID.
    pub fn files(&self) -> &[LogFile] {
        &self.files
    }

    /// The files that have changed since they were opened. A backup from which several sets are read is listed once.
    pub fn changes(&self) -> Vec<FileChange> {
        let mut changes: Vec<FileChange> = Vec::new();
        for change in self.files.iter().flat_map(LogFile::changes) {
            if !changes.contains(&change) {
                changes.push(change);
            }
        }
        changes
    }

    /// The VLFs that contain the log, oldest first. Their sequence numbers are consecutive, and the last one is the
    /// highest. All other VLFs contain only blocks of earlier uses.
    pub fn run(&self) -> &[PlacedVlf] {
        &self.run
    }
}

/// The binding GUID in the header of a log file, even if the file is damaged elsewhere; `None` if the header cannot be
/// read.
pub fn binding_guid(path: &Path) -> Option<[u8; 16]> {
    let mut page = [0; PAGE_BYTES];
    let read = SharedFile::open(path).and_then(|file| read_fully_at(&file, &mut page, 0)).ok()?;
    if read < PAGE_BYTES {
        return None;
    }
    Identity::of(&mut page).map(|identity| identity.binding_guid)
}

impl LogFile {
    fn changes(&self) -> Vec<FileChange> {
        match &self.reader {
            Reader::File(file) => {
                let change = file.change(&self.path).map(|kind| FileChange { path: self.path.clone(), kind });
                change.into_iter().collect()
            }
            Reader::Backup(backups) => backups.changes(),
        }
    }

    /// Whether the end of the file is missing: the file ends inside its last VLF, or is shorter than the size in its
    /// header.
    pub fn is_cut(&self) -> bool {
        let is_short = self.vlfs.last().is_none_or(|last| last.end() > self.bytes) || self.header_bytes > self.bytes;
        matches!(self.reader, Reader::File(_)) && is_short
    }

    /// Guesses the starts and ends of VLFs that are hidden because the header of the VLF before them has a wrong size.
    /// The right size may be that of a neighboring VLF, because VLFs that were added in one growth of the file have
    /// equal sizes. It may also be the wrong size with one bit cleared.
    fn places_of_hidden_vlfs(&self) -> impl Iterator<Item = (u64, u64)> {
        self.vlfs.iter().enumerate().flat_map(|(number, vlf)| {
            let beside = [number.checked_sub(1), number.checked_add(1)].into_iter().flatten();
            let of_neighbors = beside.filter_map(|number| self.vlfs.get(number)).map(|neighbor| neighbor.bytes);
            let one_bit_less = (0..u64::BITS).map(|bit| vlf.bytes & !(1 << bit));
            let sizes: BTreeSet<u64> = of_neighbors.chain(one_bit_less).collect();
            let is_room = |size: &u64| *size > vlf::HEADER_BYTES && size.saturating_add(vlf::HEADER_BYTES) < vlf.bytes;
            sizes
                .into_iter()
                .filter(is_room)
                .map(|size| (vlf.offset.saturating_add(size), vlf.end()))
                .collect::<Vec<_>>()
        })
    }

    fn open(path: &Path) -> Result<Self, LogError> {
        let failed = |at| move |cause| LogError::Io { path: path.to_owned(), at, cause };
        let Kind::File { .. } = storage::kind(path).map_err(failed(0))? else {
            return Err(LogError::NotALog { path: path.to_owned() });
        };
        let file = SharedFile::open(path).map_err(failed(0))?;
        let bytes = file.length().map_err(failed(0))?;
        if bytes == 0 {
            return Err(LogError::Empty { path: path.to_owned() });
        }
        let mut start = vec![0; 4 * PAGE_BYTES];
        let read = read_fully_at(&file, &mut start, 0).map_err(failed(0))?;
        start.truncate(read);
        if identify(&start) != FileKind::Log {
            return Err(LogError::NotALog { path: path.to_owned() });
        }
        let Some(mut page) = start.first_chunk::<PAGE_BYTES>().copied() else {
            return Err(LogError::NotALog { path: path.to_owned() });
        };
        let Some(identity) = Identity::of(&mut page) else {
            return Err(LogError::NotALog { path: path.to_owned() });
        };
        let vlfs = vlfs(path, &file, bytes)?;
        let end = vlfs.last().map_or(vlf::FIRST, Vlf::end);
        // The last VLF must end at the end of the file. If it does not, although the file is as long as its header
        // says, then some VLF header has a wrong size. This size may hide the VLFs after it.
        if end != bytes && identity.bytes == bytes {
            return Err(LogError::NoVlf { path: path.to_owned(), at: end });
        }
        let Identity { file_id, logical_name, binding_guid, bytes: header_bytes } = identity;
        let (path, reader) = (path.to_owned(), Reader::File(file));
        Ok(Self { path, file_id, logical_name, binding_guid, bytes, header_bytes, vlfs, reader })
    }
}

/// The data from the header page of a log file.
struct Identity {
    file_id: u16,
    logical_name: String,
    binding_guid: [u8; 16],
    /// The size of the file in bytes.
    bytes: u64,
}

impl Identity {
    fn of(page: &mut PageBytes) -> Option<Self> {
        undo_torn_bits(page);
        let header = FileHeader::read(Page::new(page))?;
        Some(Self {
            file_id: header.file_id(),
            logical_name: header.logical_name(),
            binding_guid: header.binding_guid(),
            bytes: u64::from(header.size_pages()) * PAGE_BYTES as u64,
        })
    }
}

/// Reads the headers of all VLFs of a file, one after another.
fn vlfs(path: &Path, file: &SharedFile, bytes: u64) -> Result<Vec<Vlf>, LogError> {
    let mut found: Vec<Vlf> = Vec::new();
    let mut at = vlf::FIRST;
    // The end of a file that was cut is inside its last VLF, or so close after this VLF that no further VLF header
    // fits.
    while at.saturating_add(vlf::HEADER_BYTES) < bytes {
        let mut header = [0; vlf::USED_BYTES];
        let read =
            read_fully_at(file, &mut header, at).map_err(|cause| LogError::Io { path: path.to_owned(), at, cause })?;
        let Some(vlf) = Vlf::read(header.get(..read).unwrap_or_default(), at) else {
            return Err(LogError::NoVlf { path: path.to_owned(), at });
        };
        if found.len() == MAX_VLFS {
            return Err(LogError::TooManyVlfs { path: path.to_owned(), most: MAX_VLFS });
        }
        at = vlf.end();
        found.push(vlf);
    }
    Ok(found)
}

/// The VLFs with consecutive sequence numbers, up to the VLF with the highest number.
fn run(files: &[LogFile]) -> Vec<PlacedVlf> {
    let placed = |(file, log): (usize, &LogFile)| {
        let used = log.vlfs.iter().filter(|vlf| vlf.is_used());
        let placed = move |vlf: &Vlf| PlacedVlf {
            file,
            vlf: *vlf,
            from: vlf.offset.saturating_add(vlf::HEADER_BYTES),
            to: vlf.end(),
            part: None,
        };
        used.map(placed).collect::<Vec<_>>()
    };
    let mut all: Vec<PlacedVlf> = files.iter().enumerate().flat_map(placed).collect();
    all.sort_by_key(|placed| placed.vlf.sequence);
    let follows = |pair: &[PlacedVlf]| match pair {
        [one, next] => one.vlf.sequence.checked_add(1) == Some(next.vlf.sequence),
        _ => false,
    };
    let start = all.windows(2).rposition(|pair| !follows(pair)).map_or(0, |before| before + 1);
    all.split_off(start)
}

/// Returns the gaps between backup sets if no set contains log. A log backup of an idle database contains no log:
/// according to its label, its log ends where it starts. Fails if a stripe is missing, because the stripe could contain
/// log. Also fails if a set should contain log, or if the sets belong to different databases.
fn of_empty(sets: &[LogSet], unusable: usize) -> Result<Vec<Gap>, LogError> {
    if let Some(set) = sets.iter().find(|set| !set.missing.is_empty()) {
        let LogSet { path, position, missing, stripes, .. } = set.clone();
        return Err(LogError::StripesMissing { path, position, missing, stripes });
    }
    if let Some(set) = sets.iter().find(|set| !set.is_empty() || unusable > 0) {
        return Err(LogError::NoLog { path: set.path.clone(), position: set.position });
    }
    if let Some((first, other)) =
        sets.first().and_then(|first| Some((first, sets.iter().find(|set| set.binding_guid != first.binding_guid)?)))
    {
        return Err(LogError::OtherDatabase { path: other.path.clone(), other: first.path.clone() });
    }
    let moments: BTreeSet<Lsn> = sets.iter().filter_map(|set| set.first_lsn).collect();
    Ok(moments.iter().zip(moments.iter().skip(1)).map(|(&from, &to)| Gap { from, to }).collect())
}

/// Joins sorted parts of backups into the newest run of consecutive log, and removes overlaps. Also returns the gaps
/// before that run.
fn join(parts: &[PlacedVlf]) -> (Vec<PlacedVlf>, Vec<Gap>) {
    let (mut run, mut gaps): (Vec<PlacedVlf>, Vec<Gap>) = Default::default();
    for part in parts {
        let mut part = *part;
        if let Some(last) = run.last().copied() {
            let is_same = part.vlf.sequence == last.vlf.sequence && part.vlf.offset == last.vlf.offset;
            if is_same && part.to <= last.to {
                continue;
            }
            let is_next = last.vlf.sequence.checked_add(1) == Some(part.vlf.sequence)
                && part.from == part.vlf.offset.saturating_add(vlf::HEADER_BYTES);
            if is_same && part.from <= last.to {
                part.from = last.to;
            } else if !is_next {
                gaps.push(Gap { from: block_at(&last, last.to), to: block_at(&part, part.from) });
                run.clear();
            }
        }
        run.push(part);
    }
    (run, gaps)
}

/// The LSN of the first record of the block at offset `at`.
fn block_at(placed: &PlacedVlf, at: u64) -> Lsn {
    let block = at.saturating_sub(placed.vlf.offset) / SECTOR_BYTES as u64;
    Lsn { vlf: placed.vlf.sequence, block: u32::try_from(block).unwrap_or(u32::MAX), slot: 1 }
}
