//! Virtual log files (docs/format/log.md#files-and-vlfs).

use super::block::SECTOR_BYTES;
use crate::bytes::{u8_at, u16_at, u32_at, u64_at};
use crate::fields::{Structure, offset};
use crate::ids::Lsn;
use crate::page::PAGE_BYTES;

const fn at(name: &str, bytes: u32) -> usize {
    offset(Structure::VlfHeader, name, bytes)
}

/// The first byte of a VLF.
pub const SIGNATURE: u8 = 0xAB;
/// The length of the VLF header in bytes. The first block follows the header.
pub const HEADER_BYTES: u64 = PAGE_BYTES as u64;
/// The number of header bytes that [`Vlf::read`] needs.
pub const USED_BYTES: usize = at("createLSN", 10) + 10;
/// The offset in bytes of the first VLF in its file, directly after the file header page.
pub const FIRST: u64 = PAGE_BYTES as u64;

/// A virtual log file, described by its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vlf {
    /// The sequence number; 0 if the VLF was never used.
    pub sequence: u32,
    /// The parity, 0x40 or 0x80: the upper two bits of each sector's status byte. 0 if the VLF was never used.
    pub parity: u8,
    /// The format of the VLF: 2, 4 or 5.
    pub format: u16,
    /// The offset of the VLF in its file, in bytes.
    pub offset: u64,
    /// The size in bytes, including the header.
    pub bytes: u64,
    /// The LSN at which the VLF was created; zero if it was created with its file.
    pub created: Lsn,
}

impl Vlf {
    /// Reads the header of the VLF at `offset` of its file. `bytes` holds the first bytes of the VLF and must have at
    /// least [`USED_BYTES`] bytes. `None` if no VLF starts there: the signature or the offset is wrong, or the size is
    /// impossible.
    pub fn read(bytes: &[u8], offset: u64) -> Option<Self> {
        let vlf = Self {
            sequence: u32_at(bytes, const { at("FSeqNo", 4) })?,
            parity: u8_at(bytes, const { at("parity", 1) })?,
            format: u16_at(bytes, const { at("format", 2) })?,
            offset: u64_at(bytes, const { at("offset", 8) })?,
            bytes: u64_at(bytes, const { at("size", 8) })?,
            created: Lsn::read(bytes, const { at("createLSN", 10) })?,
        };
        let is_one = u8_at(bytes, const { at("signature", 1) })? == SIGNATURE
            && vlf.offset == offset
            && vlf.bytes > HEADER_BYTES
            && vlf.bytes.is_multiple_of(SECTOR_BYTES as u64)
            && offset.checked_add(vlf.bytes).is_some();
        is_one.then_some(vlf)
    }

    /// Whether the VLF was ever written.
    pub fn is_used(&self) -> bool {
        self.sequence != 0 && self.parity != 0
    }

    /// The offset in the file of the first byte after the VLF.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }

    /// The offset in the file of the block with this number; `None` if the VLF ends before it.
    pub fn block_offset(&self, block: u32) -> Option<u64> {
        let within = u64::from(block) * SECTOR_BYTES as u64;
        (HEADER_BYTES..self.bytes).contains(&within).then(|| self.offset.saturating_add(within))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(offset: u64, size: u64) -> Vec<u8> {
        let mut bytes = vec![0; USED_BYTES];
        (bytes[0], bytes[1], bytes[2]) = (SIGNATURE, 0x40, 5);
        bytes[4..8].copy_from_slice(&33u32.to_le_bytes());
        bytes[0x10..0x18].copy_from_slice(&size.to_le_bytes());
        bytes[0x18..0x20].copy_from_slice(&offset.to_le_bytes());
        bytes
    }

    #[test]
    fn a_header_is_one_only_at_its_own_offset_and_with_room_for_a_block() {
        let vlf = Vlf::read(&header(FIRST, 0x3E000), FIRST).unwrap();
        assert_eq!((vlf.sequence, vlf.parity, vlf.end()), (33, 0x40, 0x40000));
        assert_eq!(vlf.block_offset(0x10), Some(FIRST + HEADER_BYTES), "the first block has number 16");
        assert_eq!((vlf.block_offset(0xF), vlf.block_offset(0x3E000 / 512)), (None, None));
        assert_eq!(Vlf::read(&header(FIRST, 0x3E000), FIRST + 512), None);
        assert_eq!(Vlf::read(&header(FIRST, HEADER_BYTES), FIRST), None);
        assert_eq!(Vlf::read(&header(FIRST, u64::MAX - 511), FIRST), None, "its end is no number");
        assert_eq!(Vlf::read(&header(FIRST, 0x3E000)[1..], FIRST), None);
    }
}
