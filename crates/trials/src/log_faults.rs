//! Damage to a log.

use format::log::vlf;
use trials::log_layout::{Layout, Part, SECTOR_BYTES, seal};
use trials::mutate::Random;

/// Offset of the size of the previous block, in the header of a log block. The next constant is the offset of the
/// block's first LSN.
const PREVIOUS_SIZE: usize = 0x0A;
const FIRST_LSN: usize = 0x0C;
/// Fields in the header of a VLF: offset and length in bytes.
const VLF_FIELDS: [(usize, usize); 7] = [(0, 1), (1, 1), (2, 2), (4, 4), (8, 4), (16, 8), (24, 8)];

/// A changed log.
pub(crate) struct Changed {
    pub(crate) bytes: Vec<u8>,
    /// The kind of change.
    pub(crate) kind: &'static str,
    /// A description of the place of the change.
    pub(crate) what: String,
    /// Whether the checksums match the changed log.
    pub(crate) is_sealed: bool,
    /// Whether some sectors of a block are marked as left over from an earlier use of the VLF. After an interrupted
    /// write, a block has the same marks.
    pub(crate) leaves_a_cut_write: bool,
}

fn flip(bytes: &mut [u8], random: &mut Random) {
    let at = random.below(bytes.len());
    if let Some(byte) = bytes.get_mut(at) {
        *byte = match random.below(3) {
            0 => *byte ^ 1 << random.below(8),
            1 => [0, 0xFF, 0x80][random.below(3)],
            _ => random.number() as u8,
        };
    }
}

/// Copies `bytes` bytes from offset `from` of `source` to offset `to` of `target`. Stops at the end of `source` or
/// `target`.
fn copy(target: &mut [u8], to: usize, source: &[u8], from: usize, bytes: usize) {
    let place = target.get_mut(to..).unwrap_or_default();
    for (place, byte) in place.iter_mut().zip(source.get(from..).unwrap_or_default()).take(bytes) {
        *place = *byte;
    }
}

/// Makes a random change to a log. `foreign` is the log of another database.
pub(crate) fn changed(log: &[u8], layout: &Layout, foreign: &[u8], random: &mut Random) -> Changed {
    let mut bytes = log.to_vec();
    let nothing = Part { at: 0, bytes: 0 };
    // A third of the changes are to one of the last blocks of the log, because recovery depends most on these blocks.
    let near_the_end = layout.blocks.len().saturating_sub(1 + random.below(8));
    let number = if random.below(3) == 0 { near_the_end } else { random.below(layout.blocks.len()) };
    let block = layout.blocks.get(number).cloned().unwrap_or(nothing.clone());
    let other = random.pick(&layout.blocks).cloned().unwrap_or(nothing.clone());
    let vlf = random.pick(&layout.vlfs).cloned().unwrap_or(nothing);
    let range = block.at..block.at + block.bytes;
    let mut what = format!("block {number} of {} at {}", layout.blocks.len(), block.at);
    let mut is_sealed = false;
    let kind = match random.below(11) {
        0 => {
            let at = if random.below(2) == 0 { block.at } else { random.below(bytes.len()) };
            bytes.truncate(at);
            what = format!("at {at}");
            "cut"
        }
        1 => {
            (0..=random.below(3)).for_each(|_| flip(&mut bytes[range.clone()], random));
            // In one of 32 cases, the two flipped bits cancel each other out in the checksum, so the checksum of the
            // changed block is still right.
            let mut sealed = bytes[range.clone()].to_vec();
            seal(&mut sealed);
            is_sealed = sealed == bytes[range];
            "bytes"
        }
        2 => {
            (0..=random.below(3)).for_each(|_| flip(&mut bytes[range.clone()][1..], random));
            seal(&mut bytes[range]);
            is_sealed = true;
            "bytes, checksum right"
        }
        3 => {
            let sectors = 1 + random.below(40);
            let end = (block.at + sectors * SECTOR_BYTES).min(bytes.len());
            bytes[block.at..end].fill(0);
            "zeroed"
        }
        4 => {
            let (at, length) = random.pick(&VLF_FIELDS).copied().unwrap_or_default();
            (0..length.min(2)).for_each(|_| flip(&mut bytes[vlf.at + at..vlf.at + at + length], random));
            what = format!("VLF at {}, field at {at}", vlf.at);
            "VLF header"
        }
        5 => {
            // The changed size makes the VLF end where a randomly chosen VLF begins. This may be an earlier VLF, or
            // this VLF itself.
            let target = random.pick(&layout.vlfs).map_or(vlf::FIRST, |target| target.at as u64);
            let size = target.wrapping_sub(vlf.at as u64);
            copy(&mut bytes, vlf.at + 0x10, &size.to_le_bytes(), 0, 8);
            what = format!("VLF at {} to {target}", vlf.at);
            "cyclic"
        }
        6 => {
            copy(&mut bytes, block.at, log, other.at, other.bytes);
            copy(&mut bytes, other.at, log, block.at, block.bytes);
            "other order"
        }
        7 => {
            copy(&mut bytes, block.at, foreign, block.at, SECTOR_BYTES * (1 + random.below(200)));
            "of another database"
        }
        8 => {
            // Replaces everything except the header page, which names the database.
            copy(&mut bytes, vlf::FIRST as usize, foreign, vlf::FIRST as usize, usize::MAX);
            "another log under this header"
        }
        9 => {
            let at = [PREVIOUS_SIZE, FIRST_LSN, FIRST_LSN + 4, FIRST_LSN + 8, 2, 4][random.below(6)];
            flip(&mut bytes[range.clone()][at..at + 2], random);
            seal(&mut bytes[range]);
            is_sealed = true;
            "block header, checksum right"
        }
        _ => {
            // Marks the sector as part of an earlier use of the VLF.
            let sector = block.at + random.below(block.bytes / SECTOR_BYTES) * SECTOR_BYTES;
            if let Some(status) = bytes.get_mut(sector) {
                *status ^= 0xC0;
            }
            "sector of another use"
        }
    };
    let leaves_a_cut_write = leaves_a_cut_write(log, &bytes, &block);
    Changed { bytes, kind, what, is_sealed, leaves_a_cut_write }
}

/// Whether some sectors of `block` are now marked as left over from an earlier use of the VLF.
fn leaves_a_cut_write(log: &[u8], changed: &[u8], block: &Part) -> bool {
    let mut sectors = block.at / SECTOR_BYTES + 1..(block.at + block.bytes) / SECTOR_BYTES;
    changed.len() == log.len()
        && sectors.any(|sector| (changed[sector * SECTOR_BYTES] ^ log[sector * SECTOR_BYTES]) & 0xC0 != 0)
}
