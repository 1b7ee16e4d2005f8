//! All of the log, from its oldest block to its end: also the part that recovery does not need.

use format::Lsn;
use format::file_header::FileHeader;
use format::log::block::{MAX_BYTES, first_lsn_on_disk, parity_on_disk};
use format::log::{Block, SECTOR_BYTES, vlf};
use format::page::PAGE_BYTES;
use format::protection::undo_torn_bits;
use format::{Page, PageBytes};
use log::{End, EndReason, Log, LogError, LogFile, Walk};
use recovery::Start;
use source::{SharedFile, read_fully_at};

/// What of the log could be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// The oldest record.
    pub(crate) oldest: Lsn,
    /// The last record.
    pub(crate) end: Lsn,
    /// Records between these two are not known: the log is damaged there.
    pub(crate) gap: Option<(Lsn, Lsn)>,
    /// Whether nothing follows the last record, as far as the file shows.
    pub(crate) is_end_certain: bool,
    /// It ends because it is damaged or cut off.
    pub(crate) is_end_damaged: bool,
    /// Some of its records are encrypted.
    pub(crate) has_encrypted: bool,
}

impl Extent {
    /// Whether the log has every record at `lsn`, if there is one.
    pub(crate) fn covers(&self, lsn: Lsn) -> bool {
        (self.oldest..=self.end).contains(&lsn) && !self.gap.is_some_and(|(from, to)| from < lsn && lsn < to)
    }
}

/// Goes through all blocks. `visit` gets each with the first record of the unbroken run of blocks that it is in.
pub(crate) fn each_block(log: &Log, start: &Start, visit: &mut dyn FnMut(&Block<'_>, Lsn)) -> Result<Extent, LogError> {
    let mut run = Run { visit, first: None, oldest: None, last: Lsn::default(), has_encrypted: false };
    let mut end = match run.follow(Walk::new(log)) {
        // A database that was upgraded: its log begins with that of SQL Server 2000.
        Err(LogError::TooOld { .. }) => None,
        end => end?,
    };
    let mut gap = None;
    let needed = start.redo_from.min(start.checkpoint);
    // Damaged before the part that recovery needs: go on there.
    if run.last < needed
        && let Some(walk) = Walk::from(log, needed)
    {
        let before = run.last;
        run.first = None;
        end = run.follow(walk)?;
        gap = run.first.filter(|_| run.oldest < run.first).map(|first| (before, first));
    }
    Ok(Extent {
        oldest: run.oldest.unwrap_or_default(),
        end: run.last,
        gap,
        is_end_certain: end.is_some_and(|end| is_certain(log, &end)),
        is_end_damaged: end
            .is_some_and(|end| matches!(end.reason, EndReason::Damaged { .. }) || log.cut_at(&end).is_some()),
        has_encrypted: run.has_encrypted,
    })
}

struct Run<'v> {
    visit: &'v mut dyn FnMut(&Block<'_>, Lsn),
    first: Option<Lsn>,
    oldest: Option<Lsn>,
    last: Lsn,
    has_encrypted: bool,
}

impl Run<'_> {
    fn follow(&mut self, mut walk: Walk<'_>) -> Result<Option<End>, LogError> {
        while let Some(block) = walk.next_block()? {
            if block.record_count() == 0 {
                continue;
            }
            self.has_encrypted |= block.is_encrypted();
            let first = block.first_lsn();
            let run = *self.first.get_or_insert(first);
            self.oldest.get_or_insert(first);
            self.last = Lsn { slot: first.slot.saturating_add(block.record_count() as u16 - 1), ..first };
            (self.visit)(&block, run);
        }
        Ok(walk.end())
    }
}

/// Whether the log ends there because nothing more was written, and not because what follows is damaged or cut off.
fn is_certain(log: &Log, end: &End) -> bool {
    let Some(file) = log.files().get(end.at.file) else { return false };
    if end.reason != EndReason::Written || log.files().iter().any(is_cut) {
        return false;
    }
    if end.offset >= end.at.vlf.end() {
        return true;
    }
    let mut bytes = vec![0; MAX_BYTES];
    let read = SharedFile::open(&file.path).and_then(|file| read_fully_at(&file, &mut bytes, end.offset));
    let Ok(read) = read else { return false };
    let left = usize::try_from(end.at.vlf.end() - end.offset).unwrap_or(usize::MAX);
    let bytes = bytes.get(..read.min(left)).unwrap_or_default();
    // What was there before this use of the VLF is blank, or has the other parity.
    let is_named = first_lsn_on_disk(bytes).is_some_and(|lsn| (lsn.vlf, lsn.block) == (end.at.vlf.sequence, end.block));
    !is_named && bytes.chunks(SECTOR_BYTES).all(|sector| parity_on_disk(sector) != end.at.vlf.parity)
}

/// Whether a log file is shorter than its header says, or does not end where its last VLF does.
fn is_cut(file: &LogFile) -> bool {
    if file.vlfs.last().is_none_or(|last| last.end() != file.bytes) {
        return true;
    }
    let mut page: PageBytes = [0; PAGE_BYTES];
    let read = SharedFile::open(&file.path).and_then(|open| read_fully_at(&open, &mut page, 0));
    if read.ok() != Some(PAGE_BYTES) {
        return true;
    }
    undo_torn_bits(&mut page);
    let size = FileHeader::read(Page::new(&page)).map(|header| header.size_pages());
    size.is_none_or(|pages| u64::from(pages) * PAGE_BYTES as u64 > file.bytes)
}

/// Whether a block that says that it has `lsn` lies in one of the files: then the log does not end before it, whatever else
/// is wrong.
pub(crate) fn is_on_disk(log: &Log, lsn: Lsn) -> bool {
    let has_it = |file: &LogFile| {
        let Ok(open) = SharedFile::open(&file.path) else { return true };
        file.vlfs.iter().any(|vlf| {
            let mut sector = [0; SECTOR_BYTES];
            let at = vlf.offset + u64::from(lsn.block) * SECTOR_BYTES as u64;
            let is_inside = at >= vlf.offset + vlf::HEADER_BYTES && at < vlf.end();
            let read = if is_inside { read_fully_at(&open, &mut sector, at).unwrap_or_default() } else { 0 };
            let first = first_lsn_on_disk(sector.get(..read).unwrap_or_default());
            first.is_some_and(|first| (first.vlf, first.block) == (lsn.vlf, lsn.block))
        })
    };
    log.files().iter().any(has_it)
}
