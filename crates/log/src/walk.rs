//! Walks through the log, block by block.

use format::Lsn;
use format::log::block::{self, MAX_BYTES, SECTOR_BYTES};
use format::log::{Block, BlockFault};

use crate::error::LogError;
use crate::file::{FIRST_BLOCK, Log, PlacedVlf};

/// The number of bytes to read in one call. They fit into the cache of a processor core.
const BUFFER_BYTES: usize = 1 << 18;
/// The greatest distance in bytes from a missing block to a complete block after it, if SQL Server was writing both
/// blocks when it crashed. SQL Server writes blocks concurrently, with at most 3840 KB of log writes in flight.
const UNDER_WAY_BYTES: u64 = 3840 << 10;

/// If one backup is damaged, other backups may contain an undamaged copy of a block. This constant limits the number of
/// copies that are tried for one block. The next constant limits the number of tries in the whole log.
const MOST_COPIES: usize = 16;
const MOST_TRIES: u32 = 100_000;

/// The fill bytes of log files before their first use. They depend on the release.
const BLANK: [u8; 2] = [0x00, 0xC0];

/// Visits the blocks of a log, from the oldest block to the end of the log, and verifies each block.
#[derive(Debug)]
pub struct Walk<'l> {
    log: &'l Log,
    /// The index of the current VLF in the run.
    at: usize,
    /// Another copy of the current VLF, which is read because the first copy is damaged.
    copy: Option<PlacedVlf>,
    /// The number of further copies of blocks that may be tried before the end of the log.
    tries: u32,
    /// The offset of the next block in the file.
    next: u64,
    buffer: Vec<u8>,
    /// The number of bytes in the buffer. The next field has the offset of the first of these bytes in the file.
    filled: usize,
    filled_from: u64,
    /// The size of the last block in bytes; `None` before the first block.
    last_size: Option<usize>,
    end: Option<End>,
    lost_bytes: u64,
    /// Whether the log starts with blocks of SQL Server 2000. These blocks cannot be read.
    starts_too_old: bool,
}

/// The place where the log ends, and the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// The VLF in which the log ends.
    pub at: PlacedVlf,
    /// The offset in the file at which the next block would start.
    pub offset: u64,
    /// The number of the next block.
    pub block: u32,
    /// The reason for the end.
    pub reason: EndReason,
}

impl End {
    /// The LSN of the next record, if the log continued.
    pub fn lsn(&self) -> Lsn {
        Lsn { vlf: self.at.vlf.sequence, block: self.block, slot: 1 }
    }

    /// Whether the log was read up to `ends_at`, the LSN at which it ends according to the backups.
    pub fn reaches(&self, ends_at: Lsn) -> bool {
        let next_vlf = Lsn { vlf: self.lsn().vlf.saturating_add(1), block: FIRST_BLOCK, slot: 1 };
        let is_full = self.offset >= self.at.vlf.end();
        self.lsn() >= ends_at || is_full && next_vlf >= ends_at
    }
}

/// The reason why the log ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndReason {
    /// No further block of the current use of the VLF was found.
    Written,
    /// The block at the end of the log is missing, but later blocks of the current use exist. The later blocks are so
    /// near that they may have been in flight when the server stopped writing, so they are not part of the log.
    UnderWay(LaterBlocks),
    /// The log continues, but it cannot be read here.
    Damaged {
        /// The evidence of damage.
        damage: Damage,
        /// The blocks of the current use that follow.
        later: LaterBlocks,
    },
}

/// The evidence that the log continues after an unreadable place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// The block at the unreadable place was written completely and has changed since.
    Block,
    /// The block at the unreadable place has an unknown format.
    Format(u16),
    /// The next block was found in a VLF although a VLF header says that this VLF does not contain it.
    Header {
        /// The index of the file in [`Log::files`].
        file: usize,
        /// The offset of the VLF in the file.
        offset: u64,
    },
    /// The VLFs that should contain the log have no readable block.
    NoBlock,
    /// The next block is missing, although the log must continue. Either later blocks of the current use of a VLF were
    /// found so far after the missing block that they cannot have been in flight, or the log is in a backup and ends
    /// before the place up to which the backup should contain it.
    Gap,
}

impl Damage {
    /// The evidence in words. `name` names a log file by its index in [`Log::files`].
    pub fn words(self, name: impl FnOnce(usize) -> String) -> String {
        match self {
            Self::Block => "the block there was written completely, and has changed since".to_owned(),
            Self::Format(format) => format!("the block there has the unknown format {format}"),
            Self::Header { file, offset } => format!(
                "the log continues in the virtual log file at byte {offset} of {}, but the header of this virtual log file does not show it",
                name(file)
            ),
            Self::NoBlock => "none of its virtual log files has a block of the current log".to_owned(),
            Self::Gap => "blocks are missing".to_owned(),
        }
    }
}

/// Blocks after the end of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaterBlocks {
    /// The number of blocks.
    pub count: u64,
    /// The bytes from the end of the log to the end of the last of these blocks.
    pub reach_bytes: u64,
}

/// The blocks of the current use in a VLF.
struct Found {
    count: u64,
    /// The offset of the first of these blocks in the file.
    first: Option<u64>,
    /// The offset in the file at which the last of these blocks ends.
    end: u64,
}

impl Log {
    /// Returns the length of a cut-off file, if the missing part of the file may have contained more log after `end`.
    /// This is possible if the log ends less than one maximum block size before the cut, or if the log fills its last
    /// VLF.
    pub fn cut_at(&self, end: &End) -> Option<u64> {
        let (number, file) = self.files().iter().enumerate().find(|(_, file)| file.is_cut())?;
        let is_at_the_cut = end.at.file == number && end.offset.saturating_add(MAX_BYTES as u64) > file.bytes;
        (is_at_the_cut || end.offset >= end.at.to).then_some(file.bytes)
    }
}

impl<'l> Walk<'l> {
    /// Starts a walk before the oldest block.
    pub fn new(log: &'l Log) -> Self {
        let next = log.run().first().map_or(0, |first| first.from);
        Self {
            log,
            at: 0,
            copy: None,
            tries: MOST_TRIES,
            next,
            buffer: vec![0; BUFFER_BYTES],
            filled: 0,
            filled_from: next,
            last_size: None,
            end: None,
            lost_bytes: 0,
            starts_too_old: false,
        }
    }

    /// Starts a walk at the block that contains `lsn`. `None` if no VLF of the log includes this place. Only reading
    /// shows whether a block exists there.
    pub fn from(log: &'l Log, lsn: Lsn) -> Option<Self> {
        let place = |placed: &PlacedVlf| {
            let offset = placed.vlf.block_offset(lsn.block).filter(|_| placed.vlf.sequence == lsn.vlf)?;
            (placed.from..placed.to).contains(&offset).then_some(offset)
        };
        let (at, next) = log.run().iter().enumerate().find_map(|(at, placed)| Some((at, place(placed)?)))?;
        Some(Self { at, next, filled_from: next, ..Self::new(log) })
    }

    /// Returns the next block; `None` at the end of the log. [`Self::end`] then describes the end.
    ///
    /// # Errors
    /// [`LogError::Io`] if the file cannot be read, [`LogError::TooOld`] for a log of SQL Server 2000.
    pub fn next_block(&mut self) -> Result<Option<Block<'_>>, LogError> {
        let size = match self.find()? {
            Some(size) => size,
            None => return Ok(None),
        };
        let start = (self.next - self.filled_from) as usize;
        self.next += size as u64;
        self.last_size = Some(size);
        // `find` verified and restored the block.
        Ok(self.buffer.get(start..start + size).and_then(Block::of_restored))
    }

    /// The place where the log ends, and the reason; `None` until [`Self::next_block`] returns `None`.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Returns the number of lost bytes before the first readable block of the log. Lost bytes are the remains of
    /// damaged blocks; fill bytes from before the first use of the file are not included.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// The index in [`Log::run`] of the VLF with the last returned block.
    pub fn position(&self) -> usize {
        self.at
    }

    fn vlf(&self) -> Option<PlacedVlf> {
        self.log.run().get(self.at).copied()
    }

    /// Finds the next block and restores it in the buffer. Returns its size; `None` at the end of the log.
    fn find(&mut self) -> Result<Option<usize>, LogError> {
        while self.end.is_none() {
            let Some(placed) = self.vlf() else { return Ok(None) };
            if self.next >= placed.to && self.at + 1 < self.log.run().len() {
                self.enter(self.at + 1);
                continue;
            }
            let read_from = self.copy.unwrap_or(placed);
            self.fill(read_from)?;
            let fault = match self.restore(read_from) {
                Ok(size) => return Ok(Some(size)),
                Err(fault) => fault,
            };
            if let Some(size) = self.restore_another_copy(placed)? {
                return Ok(Some(size));
            }
            self.starts_too_old |= fault == BlockFault::Format(2) && self.last_size.is_none();
            match fault {
                // A database restore writes log to its original place, so the first block may be anywhere in the oldest
                // VLF.
                _ if self.last_size.is_none() && self.skip_to_first(placed)? => {}
                _ if self.last_size.is_none() && self.at + 1 < self.log.run().len() => {
                    self.lost_bytes += if placed.is_of_a_backup() { placed.to - placed.from } else { 0 };
                    self.enter(self.at + 1);
                }
                _ if self.last_size.is_none() && self.starts_too_old => {
                    let path = self.log.files().get(placed.file).map(|file| file.path.clone()).unwrap_or_default();
                    return Err(LogError::TooOld { path });
                }
                _ => self.end = Some(self.ended(placed, fault)?),
            }
        }
        Ok(None)
    }

    fn enter(&mut self, at: usize) {
        self.at = at;
        self.next = self.vlf().map_or(0, |placed| placed.from);
        self.read_from(None);
    }

    /// Continues to read from another copy of the VLF; `None` means the copy in the run.
    fn read_from(&mut self, copy: Option<PlacedVlf>) {
        self.copy = copy;
        (self.filled, self.filled_from) = (0, self.next);
    }

    /// If the next block is damaged or missing in the current copy, restores it from another backup and continues
    /// there. Returns the size of the block; `None` if no backup contains it undamaged.
    fn restore_another_copy(&mut self, placed: PlacedVlf) -> Result<Option<usize>, LogError> {
        let before = self.copy.unwrap_or(placed).part;
        let log = self.log;
        let others = log.copies(&placed, self.next).filter(|copy| copy.part != before);
        for copy in others.take(MOST_COPIES) {
            let Some(left) = self.tries.checked_sub(1) else { break };
            self.tries = left;
            self.read_from(Some(copy));
            self.fill(copy)?;
            if let Ok(size) = self.restore(copy) {
                return Ok(Some(size));
            }
        }
        self.read_from(None);
        Ok(None)
    }

    /// Fills the buffer from the next block on, with at least the maximum size of a block, or up to the end of the VLF.
    fn fill(&mut self, placed: PlacedVlf) -> Result<(), LogError> {
        let left = usize::try_from(placed.to.saturating_sub(self.next)).unwrap_or(usize::MAX);
        let start = (self.next - self.filled_from) as usize;
        let has = self.filled.saturating_sub(start);
        if has >= left.min(MAX_BYTES) {
            return Ok(());
        }
        self.buffer.copy_within(start.min(self.filled)..self.filled, 0);
        (self.filled, self.filled_from) = (has, self.next);
        let wanted = left.min(self.buffer.len());
        let at = self.next + has as u64;
        let read = self.log.read_at(&placed, self.buffer.get_mut(has..wanted).unwrap_or_default(), at)?;
        self.filled = has + read;
        Ok(())
    }

    /// Verifies the block at the start of the unread bytes in the buffer, and restores the block.
    fn restore(&mut self, placed: PlacedVlf) -> Result<usize, BlockFault> {
        let start = (self.next - self.filled_from) as usize;
        let number = ((self.next - placed.vlf.offset) / SECTOR_BYTES as u64) as u32;
        let bytes = self.buffer.get_mut(start..self.filled).unwrap_or_default();
        belongs(bytes, placed, number)?;
        let block = Block::restore(bytes)?;
        // Each block stores the size of the previous block, even if the previous block is in another VLF.
        match self.last_size {
            Some(size) if size != block.previous_size() => Err(BlockFault::OtherSector),
            _ => Ok(block.size()),
        }
    }

    /// Describes the end of the log. The log ends before the next block, which cannot be read.
    fn ended(&mut self, placed: PlacedVlf, fault: BlockFault) -> Result<End, LogError> {
        let mut later = LaterBlocks { count: 0, reach_bytes: 0 };
        // Only the first sector of the unreadable block is skipped, because the block's size is unknown.
        let (mut from, mut before) = (self.next + SECTOR_BYTES as u64, SECTOR_BYTES as u64);
        for (index, placed) in self.log.run().iter().enumerate().skip(self.at) {
            if index > self.at {
                from = placed.from;
            }
            let found = self.blocks_after(*placed, from)?;
            if found.count > 0 {
                later.count += found.count;
                later.reach_bytes = before + (found.end - from);
            }
            before += placed.to.saturating_sub(from);
        }
        let block = ((self.next - placed.vlf.offset) / SECTOR_BYTES as u64) as u32;
        let damage = match fault {
            BlockFault::Format(format) => Some(Damage::Format(format)),
            _ => self.damage(placed, block)?,
        };
        let reason = match damage {
            Some(damage) => EndReason::Damaged { damage, later },
            // A backup contains complete blocks up to its end, so a place before the end without a block is damaged.
            None if placed.is_of_a_backup() && self.next < placed.to => {
                EndReason::Damaged { damage: Damage::Gap, later }
            }
            None if later.count == 0 => EndReason::Written,
            None if later.reach_bytes <= UNDER_WAY_BYTES => EndReason::UnderWay(later),
            None => EndReason::Damaged { damage: Damage::Gap, later },
        };
        Ok(End { at: placed, offset: self.next, block, reason })
    }

    /// Looks for evidence that the log continues although the next block cannot be read. Such evidence is damage in the
    /// next block, or a first block of the next VLF that `Log::first_block` finds. If no block of a log file could be
    /// read, this is evidence too. `None` if there is no evidence.
    fn damage(&mut self, placed: PlacedVlf, block: u32) -> Result<Option<Damage>, LogError> {
        self.read_from(None);
        self.fill(placed)?;
        let left = usize::try_from(placed.to.saturating_sub(self.next)).unwrap_or(usize::MAX);
        let bytes = self.buffer.get(..self.filled).unwrap_or_default();
        // In a file that is cut off, the end of the block may be missing rather than damaged.
        let has_all = bytes.len() >= left.min(MAX_BYTES);
        if has_all && block::is_damaged(bytes, placed.vlf.sequence, placed.vlf.parity, block) {
            return Ok(Some(Damage::Block));
        }
        if placed.is_of_a_backup() {
            return Ok(None);
        }
        let Some(size) = self.last_size else { return Ok(Some(Damage::NoBlock)) };
        let next = placed.vlf.sequence.saturating_add(1);
        let goes_on = self.log.first_block(next, size)?;
        Ok(goes_on.map(|(file, offset)| Damage::Header { file, offset }))
    }

    /// Moves to the first readable block of the oldest VLF. The block may be anywhere in the VLF. Returns `false` if no
    /// readable block exists.
    fn skip_to_first(&mut self, placed: PlacedVlf) -> Result<bool, LogError> {
        let found = self.blocks_after(placed, self.next + SECTOR_BYTES as u64)?;
        let Some(first) = found.first else { return Ok(false) };
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut at = self.next;
        while at < first {
            let wanted = usize::try_from(first - at).unwrap_or(usize::MAX).min(buffer.len());
            let read = self.log.read_at(&placed, buffer.get_mut(..wanted).unwrap_or_default(), at)?;
            let bytes = buffer.get(..read).unwrap_or_default();
            let is_blank = BLANK.iter().any(|blank| bytes.iter().all(|byte| byte == blank));
            self.lost_bytes += if is_blank || self.starts_too_old { 0 } else { read as u64 };
            at += wanted as u64;
        }
        (self.next, self.filled, self.filled_from) = (first, 0, first);
        Ok(true)
    }

    /// Finds the whole blocks of the current use in a VLF, from offset `from` on.
    fn blocks_after(&self, placed: PlacedVlf, from: u64) -> Result<Found, LogError> {
        let mut buffer = vec![0; BUFFER_BYTES + MAX_BYTES];
        let mut found = Found { count: 0, first: None, end: from };
        let mut at = from;
        while at < placed.to {
            let wanted = usize::try_from(placed.to - at).unwrap_or(usize::MAX).min(buffer.len());
            let read = self.log.read_at(&placed, buffer.get_mut(..wanted).unwrap_or_default(), at)?;
            let mut within = 0;
            while within < read.min(BUFFER_BYTES) {
                let number = ((at + within as u64 - placed.vlf.offset) / SECTOR_BYTES as u64) as u32;
                let bytes = buffer.get_mut(within..read).unwrap_or_default();
                let belongs = belongs(bytes, placed, number).is_ok();
                match if belongs { Block::restore(bytes).ok() } else { None } {
                    Some(block) => {
                        found.first = found.first.or(Some(at + within as u64));
                        within += block.size();
                        found.count += 1;
                        found.end = at + within as u64;
                    }
                    None => within += SECTOR_BYTES,
                }
            }
            if read < wanted || within == 0 {
                break;
            }
            at += within as u64;
        }
        Ok(found)
    }
}

/// Returns an error if the first sector of a block does not belong to this place or to this use of the VLF.
fn belongs(bytes: &[u8], placed: PlacedVlf, number: u32) -> Result<(), BlockFault> {
    let size = block::size_on_disk(bytes).filter(|size| *size <= bytes.len()).ok_or(BlockFault::NoBlock)?;
    let lsn = block::first_lsn_on_disk(bytes).unwrap_or_default();
    let expected = Lsn { vlf: placed.vlf.sequence, block: number, slot: block::FIRST_SLOT };
    let is_of_this_use = block::parity_on_disk(bytes) == placed.vlf.parity && lsn == expected;
    if is_of_this_use && size <= bytes.len() { Ok(()) } else { Err(BlockFault::OtherSector) }
}
