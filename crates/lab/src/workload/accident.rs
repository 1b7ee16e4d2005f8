//! Additional damage when a server stops: a lost page write, or log blocks that were not completely written.

use super::checkpoint::{BOOT_PAGE, redo_start};
use super::{Crashed, Flush, Stop, Workload};
use crate::disk::file_index;
use crate::ids::{PAGE, PageId};
use crate::random::{Random, mix};
use crate::space::ALLOCATED;

/// A page whose last write was lost. The page on disk is an older version with a correct checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostWrite {
    /// The address of the page.
    pub page: PageId,
    /// The type of the page.
    pub page_type: u8,
    /// The LSN of the page on disk, as text.
    pub on_disk: String,
    /// The LSN that the page should have, as text. It is the LSN of the last log record for the page, and it is less
    /// than the LSN at which redo starts.
    pub last: String,
    /// Whether the log still contains the record with the LSN `last`. The log does not contain this record if the
    /// record's VLF, or any later VLF, was used again.
    pub is_in_log: bool,
}

/// The number of blocks near the end of the log among which the block that is missing after a crash is chosen.
const MOST_UNDER_WAY: u64 = 8;

impl Workload {
    /// Simulates a crash or shutdown of a database in which an earlier page write was lost. If `page_type` is given,
    /// only the write of a page of this type is lost. Returns `None` if no suitable page was written twice.
    pub fn with_lost_write(&self, stop: Stop, page_type: Option<u8>, seed: u64) -> Option<(Crashed, LostWrite)> {
        let mut engine = self.run(stop);
        let start = redo_start(&engine.pool.frame(BOOT_PAGE).records[0]);
        let oldest = engine.journal.oldest();
        let mut found = Vec::new();
        for (page, images) in engine.pool.earlier().clone() {
            let frame = engine.pool.frame(page);
            let (kind, last) = (frame.kind(), frame.lsn());
            let is_settled = last < start && !engine.pool.dirty().contains_key(&page) && page != BOOT_PAGE;
            if is_settled && page_type.is_none_or(|wanted| wanted == kind) && engine.pfs(page) & ALLOCATED != 0 {
                found.push((page, kind, last, images));
            }
        }
        let mut dice = Random::new(mix(seed ^ self.spec.seed));
        let (page, page_type, last, images) = found.get(dice.below(found.len() as u64) as usize)?;
        let image = images.get(dice.below(images.len() as u64) as usize)?;
        let mut crashed = self.crash(stop, Flush::Some(seed));
        let from = page.page as usize * PAGE;
        crashed.files[file_index(page.file)].1[from..from + PAGE].copy_from_slice(&image[..]);
        let on_disk = super::frame::Frame::read(image).lsn();
        let lost = LostWrite {
            page: *page,
            page_type: *page_type,
            on_disk: on_disk.to_string(),
            last: last.to_string(),
            is_in_log: last.0 >= oldest,
        };
        Some((crashed, lost))
    }

    /// Simulates a crash after about `records` log records, while several log blocks were being written. One block is
    /// missing, but later blocks are on disk. The log ends before the missing block.
    pub fn with_blocks_under_way(&self, records: u64, seed: u64) -> Option<Crashed> {
        let mut engine = self.run(Stop::After(records));
        engine.journal.close();
        let blocks = engine.journal.newest_blocks();
        let mut dice = Random::new(mix(seed ^ self.spec.seed));
        let count = blocks.len() as u64;
        let back = 2 + dice.below(MOST_UNDER_WAY.min(count.checked_sub(2)?));
        let missing = blocks.get((count - back) as usize)?.clone();
        let mut crashed = self.crash(Stop::After(missing.records_before), Flush::Some(seed));
        let mut log = self.base.logs(&mut engine.journal).remove(0).1;
        log[missing.place].fill(0);
        crashed.log.1 = log;
        Some(crashed)
    }
}
