//! Log blocks (docs/format/log.md#log-blocks). SQL Server writes the log in blocks of 1 to 120 sectors.

use super::record::{HEADER_BYTES as RECORD_HEADER_BYTES, LogRecord};
use super::time::LogTime;
use crate::bytes::{u16_at, u32_at};
use crate::fields::{Structure, offset};
use crate::ids::Lsn;
use crate::protection::sectors_sum;

const fn at(name: &str, bytes: u32) -> usize {
    offset(Structure::LogBlock, name, bytes)
}

/// The slot number in the LSN of the first record of a block.
pub const FIRST_SLOT: u16 = 1;
/// The unit of block sizes, and of block numbers in LSNs, in bytes.
pub const SECTOR_BYTES: usize = crate::simd::SECTOR_BYTES;
/// The size of the largest block in bytes.
pub const MAX_BYTES: usize = 120 * SECTOR_BYTES;
/// The bits of a sector's status byte that have the parity of the VLF's current use.
const PARITY: u8 = 0xC0;
const FIRST: u8 = 0x10;
const LAST: u8 = 0x08;
/// The flag of a block that has a checksum.
const HAS_CHECKSUM: u16 = 2;
const IS_ENCRYPTED: u16 = 4;

/// The reason why a place does not have a usable log block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockFault {
    /// No block starts here, or the block is longer than the bytes that the caller passed.
    NoBlock,
    /// A sector belongs to another block, or to an earlier use of the VLF.
    OtherSector,
    /// The checksum is wrong.
    Checksum {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The format is unknown, or is that of SQL Server 2000.
    Format(u16),
    /// The header, the slot array and the records contradict each other.
    Records,
}

/// A sound block, restored: the status bytes of its sectors are replaced by the original bytes.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    bytes: &'a [u8],
    header_bytes: usize,
    used: usize,
    records: usize,
}

/// The size in bytes of the block that begins with `sector`; `None` if no block begins there. `sector` must be as on
/// disk, before [`Block::restore`].
pub fn size_on_disk(sector: &[u8]) -> Option<usize> {
    let size = usize::from(u16_at(sector, const { at("size", 2) })?);
    let is_block =
        sector.first()? & FIRST != 0 && size.is_multiple_of(SECTOR_BYTES) && (SECTOR_BYTES..=MAX_BYTES).contains(&size);
    is_block.then_some(size)
}

/// The parity bits of the block that begins with `sector`, which must be as on disk.
pub fn parity_on_disk(sector: &[u8]) -> u8 {
    sector.first().copied().unwrap_or_default() & PARITY
}

/// The LSN of the first record, which gives the place of the block. No status byte overwrites it.
pub fn first_lsn_on_disk(sector: &[u8]) -> Option<Lsn> {
    Lsn::read(sector, const { at("firstLSN", 10) })
}

/// The length of the block header in bytes, by format; `None` for SQL Server 2000, which has different records.
fn header_bytes(format: u16) -> Option<usize> {
    [(3, 28), (4, 40), (5, 48), (6, 72)].into_iter().find(|(known, _)| *known == format).map(|(_, bytes)| bytes)
}

impl<'a> Block<'a> {
    /// Verifies the block at the start of `bytes` and restores it in place. `bytes` must be as on disk.
    ///
    /// # Errors
    ///
    /// [`BlockFault`]. If the fault is [`BlockFault::Format`] or [`BlockFault::Records`], the status bytes of the
    /// sectors have been replaced. Otherwise `bytes` is unchanged.
    pub fn restore(bytes: &'a mut [u8]) -> Result<Self, BlockFault> {
        let size = size_on_disk(bytes).ok_or(BlockFault::NoBlock)?;
        let block = bytes.get_mut(..size).ok_or(BlockFault::NoBlock)?;
        let sectors = size / SECTOR_BYTES;
        let parity = parity_on_disk(block);
        if marks(block, parity).any(|mark| mark != Mark::Own) {
            return Err(BlockFault::OtherSector);
        }
        verify(block)?;
        for sector in 0..sectors {
            let displaced = block.get(size - 1 - sector).copied().unwrap_or_default();
            if let Some(status) = block.get_mut(sector * SECTOR_BYTES) {
                *status = displaced;
            }
        }
        Self::parse(block)
    }

    /// Parses a block whose bytes [`Self::restore`] has already verified and restored. Does not verify the bytes again.
    pub fn of_restored(bytes: &'a [u8]) -> Option<Self> {
        let field = |offset: usize| u16_at(bytes, offset).map(usize::from);
        let (records, used) = (field(const { at("records", 2) })?, field(const { at("used", 2) })?);
        let header_bytes = header_bytes(u16_at(bytes, const { at("format", 2) })?)?;
        (used <= bytes.len() && 2 * records <= used).then_some(Self { bytes, header_bytes, used, records })
    }

    /// Parses a block in restored bytes. Its records must be in order.
    fn parse(bytes: &'a [u8]) -> Result<Self, BlockFault> {
        let u16 = |offset: usize| u16_at(bytes, offset).map(usize::from).ok_or(BlockFault::Records);
        let format = u16_at(bytes, const { at("format", 2) }).ok_or(BlockFault::Records)?;
        let header_bytes = header_bytes(format).ok_or(BlockFault::Format(format))?;
        let (records, used) = (u16(const { at("records", 2) })?, u16(const { at("used", 2) })?);
        let block = Self { bytes, header_bytes, used, records };
        let is_inside = used <= bytes.len() && used.checked_sub(2 * records).is_some_and(|end| end >= header_bytes);
        if is_inside && (block.is_encrypted() || block.records_are_in_order()) {
            Ok(block)
        } else {
            Err(BlockFault::Records)
        }
    }

    /// Whether the records are in order between the header and the slot array, and each is at least as long as a record
    /// header.
    fn records_are_in_order(&self) -> bool {
        let Some(slots) = self.bytes.get(self.used - 2 * self.records..self.used) else { return false };
        let mut end = self.used - 2 * self.records;
        // The slot array grows downwards, so its first word belongs to the last record.
        for word in slots.as_chunks::<2>().0 {
            let start = usize::from(u16::from_le_bytes(*word));
            if end.checked_sub(start).is_none_or(|bytes| bytes < RECORD_HEADER_BYTES) {
                return false;
            }
            end = start;
        }
        end >= self.header_bytes
    }

    /// The size of the block on disk, in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The format of the block, 3 to 6.
    pub fn format(&self) -> u16 {
        self.u16(const { at("format", 2) })
    }

    /// The size in bytes of the block before this one, in this VLF or in the VLF before.
    pub fn previous_size(&self) -> usize {
        self.u16(const { at("previousSize", 2) }).into()
    }

    /// The LSN of the first record. In a block without records, this is the place of the block itself.
    pub fn first_lsn(&self) -> Lsn {
        Lsn::read(self.bytes, const { at("firstLSN", 10) }).unwrap_or_default()
    }

    /// Number of records.
    pub fn record_count(&self) -> usize {
        self.records
    }

    /// Whether the block has a checksum. If it has one, [`Self::restore`] verified it.
    pub fn has_checksum(&self) -> bool {
        self.u16(const { at("flags", 2) }) & HAS_CHECKSUM != 0
    }

    /// Whether the records are encrypted. If so, they cannot be read, and [`Self::records`] is empty.
    pub fn is_encrypted(&self) -> bool {
        self.u16(const { at("flags", 2) }) & IS_ENCRYPTED != 0
    }

    /// The time at which the block was closed, in the server's local time; `None` before format 6.
    pub fn closed(&self) -> Option<LogTime> {
        const FIELD: usize = at("closed", 8);
        if self.header_bytes >= FIELD + 8 { LogTime::read(self.bytes, FIELD) } else { None }
    }

    /// The records with their LSNs, in the order in which they were written.
    #[inline]
    pub fn records(&self) -> impl Iterator<Item = (Lsn, LogRecord<'a>)> + use<'a> {
        let count = if self.is_encrypted() { 0 } else { self.records };
        let first = self.first_lsn();
        let end_of_records = self.used - 2 * self.records;
        let slots = self.bytes.get(self.used - 2 * count..self.used).unwrap_or_default();
        let bytes = self.bytes;
        (0..count).map_while(move |index| {
            let slot = |index: usize| u16_at(slots, slots.len().checked_sub(2 * (index + 1))?).map(usize::from);
            let start = slot(index)?;
            let end = if index + 1 < count { slot(index + 1)? } else { end_of_records };
            let lsn = Lsn { slot: first.slot.wrapping_add(index as u16), ..first };
            Some((lsn, LogRecord::new(bytes.get(start..end)?)))
        })
    }

    fn u16(&self, offset: usize) -> u16 {
        u16_at(self.bytes, offset).unwrap_or_default()
    }
}

/// Whether the status byte of a sector fits the sector's place in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    /// The status byte fits.
    Own,
    /// The sector is from this use of the VLF, but from another place in a block.
    Misplaced,
    /// The sector is blank or from another use of the VLF: the write of the block did not reach it.
    Unwritten,
}

/// Returns the mark of each sector of a block, which must be as on disk.
fn marks(block: &[u8], parity: u8) -> impl Iterator<Item = Mark> {
    let sectors = block.len() / SECTOR_BYTES;
    block.chunks_exact(SECTOR_BYTES).enumerate().map(move |(index, sector)| {
        let first = if index == 0 { FIRST } else { 0 };
        let last = if index + 1 == sectors { LAST } else { 0 };
        match sector.first().copied().unwrap_or_default() {
            status if status == parity | first | last => Mark::Own,
            status if status & PARITY == parity => Mark::Misplaced,
            _ => Mark::Unwritten,
        }
    })
}

/// Whether a block was written at this place and its bytes have changed since. [`Block::restore`] rejects such a block,
/// and a torn write cannot be the cause. In a torn write, some sectors are written as a whole. The other sectors stay
/// blank, or keep their content from an earlier use of the VLF.
///
/// `bytes` must be as on disk, from block `number` of the VLF with sequence number `sequence` to the end of the VLF, or
/// at least [`MAX_BYTES`].
pub fn is_damaged(bytes: &[u8], sequence: u32, parity: u8, number: u32) -> bool {
    let names_its_place = first_lsn_on_disk(bytes).is_some_and(|lsn| (lsn.vlf, lsn.block) == (sequence, number));
    let Some(block) = size_on_disk(bytes).and_then(|size| bytes.get(..size)) else {
        // A disk writes each sector completely or not at all, so the header is not torn.
        return names_its_place;
    };
    let (mut is_whole, mut is_misplaced) = (true, false);
    for mark in marks(block, parity) {
        is_whole &= mark == Mark::Own;
        is_misplaced |= mark == Mark::Misplaced;
    }
    match is_whole {
        // All sectors of the block were written. Without a checksum, only the records can show damage, and only if the
        // block is from this use of the VLF.
        true => match Block::restore(&mut block.to_vec()) {
            Err(BlockFault::Checksum { .. }) => true,
            Err(_) => names_its_place,
            Ok(restored) => {
                names_its_place && (restored.first_lsn().slot != FIRST_SLOT || parity_on_disk(block) != parity)
            }
        },
        false => names_its_place && (is_misplaced || parity_on_disk(block) != parity),
    }
}

/// Verifies the checksum of a block that is as on disk. A block without a checksum passes. The algorithm is the same as
/// for pages, but for any number of sectors (docs/format/checksums-and-torn-pages.md#checksum).
fn verify(block: &[u8]) -> Result<(), BlockFault> {
    if u16_at(block, const { at("flags", 2) }).is_none_or(|flags| flags & HAS_CHECKSUM == 0) {
        return Ok(());
    }
    let stored = u32_at(block, const { at("checksum", 4) }).unwrap_or_default();
    // The checksum field itself counts as zero. It is in the first sector, which is rotated by the most bits.
    let field = stored.rotate_left((block.len() / SECTOR_BYTES).wrapping_sub(1) as u32);
    let computed = sectors_sum(0, block) ^ field;
    if computed == stored { Ok(()) } else { Err(BlockFault::Checksum { stored, computed }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A block of format 5 with these records, in its form on disk.
    fn on_disk(records: &[Vec<u8>]) -> Vec<u8> {
        const HEADER: usize = 48;
        let used = HEADER + records.iter().map(|record| record.len() + 2).sum::<usize>();
        let size = (used + MAX_BYTES / SECTOR_BYTES).next_multiple_of(SECTOR_BYTES);
        let mut block = vec![0; size];
        for (field, value) in [5, records.len(), used, size, 3, 512].into_iter().enumerate() {
            block[2 * field..2 * field + 2].copy_from_slice(&(value as u16).to_le_bytes());
        }
        block[12..22].copy_from_slice(&[33, 0, 0, 0, 16, 0, 0, 0, 1, 0]);
        let mut start = HEADER;
        for (number, record) in records.iter().enumerate() {
            block[start..start + record.len()].copy_from_slice(record);
            block[used - 2 * (number + 1)..][..2].copy_from_slice(&(start as u16).to_le_bytes());
            start += record.len();
        }
        for sector in 0..size / SECTOR_BYTES {
            block[size - 1 - sector] = block[sector * SECTOR_BYTES];
            block[sector * SECTOR_BYTES] = 0x40;
        }
        block[0] |= FIRST;
        block[size - SECTOR_BYTES] |= LAST;
        let sum = sectors_sum(0, &block);
        block[0x18..0x1C].copy_from_slice(&sum.to_le_bytes());
        block
    }

    fn records() -> Vec<Vec<u8>> {
        (0..40u8).map(|number| vec![number; RECORD_HEADER_BYTES + usize::from(number) * 4]).collect()
    }

    #[test]
    fn records_come_as_they_were_written_with_their_lsns() {
        let mut bytes = on_disk(&records());
        assert!(bytes.len() > 5 * SECTOR_BYTES, "several sectors");
        bytes.extend([0xAA; 100]);
        let block = Block::restore(&mut bytes).unwrap();
        assert_eq!((block.record_count(), block.previous_size(), block.format()), (40, 512, 5));
        for (number, (lsn, record)) in block.records().enumerate() {
            assert_eq!(lsn, Lsn { vlf: 33, block: 16, slot: 1 + number as u16 });
            assert_eq!(record.bytes(), records()[number]);
        }
        assert_eq!(block.records().count(), 40);
    }

    #[test]
    fn an_encrypted_block_has_no_records_to_read() {
        let mut bytes = on_disk(&records());
        bytes[8] |= 4;
        bytes[0x18..0x1C].fill(0);
        let sum = sectors_sum(0, &bytes);
        bytes[0x18..0x1C].copy_from_slice(&sum.to_le_bytes());
        let block = Block::restore(&mut bytes).unwrap();
        assert_eq!((block.is_encrypted(), block.record_count(), block.records().count()), (true, 40, 0));
    }

    #[test]
    fn a_whole_block_under_a_parity_that_no_use_has_is_not_the_end() {
        let bytes = on_disk(&records()[..3]);
        assert_eq!(bytes.len(), SECTOR_BYTES, "its one sector has both marks");
        assert_eq!(
            [0x40, 0x48, 0x50, 0x80].map(|parity| is_damaged(&bytes, 33, parity, 16)),
            [false, true, true, true]
        );
    }

    proptest! {
        #[test]
        fn every_bit_of_a_block_with_a_checksum_counts(at in any::<prop::sample::Index>(), bit in 0..8u8) {
            let sound = on_disk(&records());
            let mut bytes = sound.clone();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let flags_off = at == 8 && bit == 1;
            prop_assert!(Block::restore(&mut bytes).is_err() || flags_off);
        }

        #[test]
        fn a_flipped_bit_is_damage_where_it_is_not_what_a_cut_write_leaves(at in any::<prop::sample::Index>(), bit in 0..8u8) {
            let sound = on_disk(&records());
            let mut bytes = sound.clone();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let flags_off = at == 8 && bit == 1;
            // If the parity of a later sector differs, this looks like a torn write. A changed parity of the first
            // sector does not look like a torn write, because the LSN in this sector identifies the use of the VLF.
            let is_as_cut = at > 0 && at.is_multiple_of(SECTOR_BYTES) && bit >= 6;
            prop_assert_eq!(is_damaged(&bytes, 33, 0x40, 16), !flags_off && !is_as_cut);
        }

        #[test]
        fn a_write_that_was_cut_off_is_no_damage(kept in prop::collection::vec(any::<bool>(), 8), fill in any::<bool>()) {
            let sound = on_disk(&records());
            let mut bytes = sound.clone();
            for (sector, kept) in bytes.chunks_exact_mut(SECTOR_BYTES).zip(&kept) {
                if !kept {
                    // The sector is blank, or has its content from the previous use of the VLF.
                    sector.fill(if fill { 0xC0 } else { 0 });
                    sector[0] = if fill { 0xC0 } else { 0x80 };
                }
            }
            prop_assert!(!is_damaged(&bytes, 33, 0x40, 16));
        }

        #[test]
        fn any_bytes_without_a_checksum_can_be_opened(changes in prop::collection::vec((0..600usize, any::<u8>()), 1..6)) {
            let mut bytes = on_disk(&records());
            bytes[8] = 1;
            for (at, value) in changes {
                bytes[at] = value;
            }
            if let Ok(block) = Block::restore(&mut bytes) {
                let total: usize = block.records().map(|(_, record)| record.bytes().len()).sum();
                prop_assert!(total <= block.size());
                // A single changed byte can set the encryption flag; the records are then not read.
                prop_assert!(block.is_encrypted() || block.records().count() == block.record_count());
            }
        }
    }
}
