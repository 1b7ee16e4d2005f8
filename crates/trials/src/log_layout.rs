//! The layout of a log file: the positions of its VLFs, blocks and records.

use format::Lsn;
use format::log::Vlf;
use format::protection::sectors_sum;
use log::{Log, Walk};

/// The size of a sector in bytes.
pub const SECTOR_BYTES: usize = 512;
/// Offsets of fields in the header of a block: the flags here, and the checksum in the next constant.
const FLAGS: usize = 8;
const CHECKSUM: usize = 0x18;
/// The flag that says that a block has a checksum.
const HAS_CHECKSUM: u8 = 2;

/// A block or a VLF of a log.
#[derive(Clone, Debug)]
pub struct Part {
    /// The offset of the part in the file.
    pub at: usize,
    /// The length of the part in bytes.
    pub bytes: usize,
}

/// The positions of the parts of a log.
#[derive(Clone, Debug)]
pub struct Layout {
    /// All VLFs of the file.
    pub vlfs: Vec<Part>,
    /// All blocks, in the order of the log.
    pub blocks: Vec<Part>,
    /// The LSNs of all records.
    pub lsns: Vec<Lsn>,
}

impl Layout {
    /// The layout of a log that has one file.
    pub fn of(log: &Log) -> Self {
        let part = |vlf: &Vlf| Part { at: vlf.offset as usize, bytes: vlf.bytes as usize };
        let vlfs = log.files().iter().flat_map(|file| file.vlfs.iter().map(part)).collect();
        let (mut blocks, mut lsns) = (Vec::new(), Vec::new());
        let mut walk = Walk::new(log);
        while let Ok(Some(block)) = walk.next_block() {
            let lsn = block.first_lsn();
            lsns.extend(block.records().map(|(lsn, _)| lsn));
            let placed = log.run().iter().find(|placed| placed.vlf.sequence == lsn.vlf);
            let at = placed.and_then(|placed| placed.vlf.block_offset(lsn.block)).unwrap_or_default() as usize;
            blocks.push(Part { at, bytes: block.size() });
        }
        Self { vlfs, blocks, lsns }
    }
}

/// Corrects the checksum of a block in its form on disk.
pub fn seal(block: &mut [u8]) {
    if block.get(FLAGS).is_some_and(|flags| flags & HAS_CHECKSUM != 0) && block.len().is_multiple_of(SECTOR_BYTES) {
        block[CHECKSUM..CHECKSUM + 4].fill(0);
        let sum = sectors_sum(0, block);
        block[CHECKSUM..CHECKSUM + 4].copy_from_slice(&sum.to_le_bytes());
    }
}
