//! Builds a page: header, records, slot array, page protection.

use crate::ids::{PAGE, PageId, UnitId};

const HEADER: usize = 96;
/// Bit of the type flags: the page has a CI record.
const HAS_INFORMATION: u8 = 0x80;
const TORN_FLAG: u16 = 0x100;
const CHECKSUM_FLAG: u16 = 0x200;

/// Page types that the lab writes.
pub(crate) mod page_type {
    #![allow(missing_docs)]
    pub(crate) const DATA: u8 = 1;
    pub(crate) const INDEX: u8 = 2;
    pub(crate) const TEXT_MIX: u8 = 3;
    pub(crate) const TEXT_TREE: u8 = 4;
    pub(crate) const GAM: u8 = 8;
    pub(crate) const SGAM: u8 = 9;
    pub(crate) const IAM: u8 = 10;
    pub(crate) const PFS: u8 = 11;
    pub(crate) const BOOT: u8 = 13;
    pub(crate) const FILE_HEADER: u8 = 15;
    pub(crate) const DIFFERENTIAL: u8 = 16;
    pub(crate) const MINIMALLY_LOGGED: u8 = 17;
}

/// The kind of page protection, which detects torn and damaged writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PageVerify {
    /// No protection.
    None,
    /// Torn-page protection: two bits in each sector.
    Torn,
    /// A page checksum.
    #[default]
    Checksum,
}

/// A page to which records are added in order.
pub(crate) struct Page {
    bytes: Box<[u8; PAGE]>,
    end: usize,
    used: usize,
    slots: usize,
    ghosts: u16,
}

impl Page {
    /// Creates an empty page of this type and level for an allocation unit. `fixed_length` is the value of pminlen.
    pub(crate) fn new(page_type: u8, level: u8, unit: UnitId, fixed_length: u16) -> Self {
        let mut page = Self { bytes: Box::new([0; PAGE]), end: HEADER, used: 0, slots: 0, ghosts: 0 };
        page.restart(page_type, level, unit, fixed_length);
        page
    }

    /// Empties the page for reuse.
    pub(crate) fn restart(&mut self, page_type: u8, level: u8, unit: UnitId, fixed_length: u16) {
        self.bytes.fill(0);
        (self.end, self.used, self.slots, self.ghosts) = (HEADER, 0, 0, 0);
        self.bytes[0] = 1;
        self.bytes[1] = page_type;
        self.bytes[3] = level;
        self.put_u16(6, unit.index());
        self.put_u16(14, fixed_length);
        self.bytes[24..28].copy_from_slice(&unit.object().to_le_bytes());
    }

    /// The maximum length in bytes of a record that still fits on the page, together with its entry in the slot array.
    pub(crate) fn room(&self) -> usize {
        (PAGE - self.end - 2 * self.slots).saturating_sub(2)
    }

    /// The number of bytes that records and their slot array entries use, out of 8,096.
    pub(crate) fn filled(&self) -> usize {
        self.used + 2 * self.slots
    }

    /// Adds a record in the next slot, after the last record. The caller must first call `room` to check that the
    /// record fits.
    pub(crate) fn push(&mut self, record: &[u8]) -> u16 {
        self.bytes[self.end..self.end + record.len()].copy_from_slice(record);
        let slot = self.slots;
        self.put_u16(PAGE - 2 - 2 * slot, self.end as u16);
        self.end += record.len();
        self.used += record.len();
        self.slots += 1;
        slot as u16
    }

    /// Adds a record and pads it to a multiple of `unit` bytes. The header counts the padding as used space, as on the
    /// pages of sysfiles1.
    pub(crate) fn push_padded(&mut self, record: &[u8], unit: usize) -> u16 {
        let slot = self.push(record);
        let end = self.end.next_multiple_of(unit);
        self.used += end - self.end;
        self.end = end;
        slot
    }

    /// Adds a ghost.
    pub(crate) fn push_ghost(&mut self, record: &[u8]) -> u16 {
        self.ghosts += 1;
        self.push(record)
    }

    /// Adds an empty slot, like the slot of a deleted heap row.
    pub(crate) fn push_empty_slot(&mut self) {
        self.slots += 1;
    }

    /// Overwrites part of a record.
    pub(crate) fn patch(&mut self, slot: u16, offset: usize, bytes: &[u8]) {
        let at = PAGE - 2 - 2 * usize::from(slot);
        let from = usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])) + offset;
        self.bytes[from..from + bytes.len()].copy_from_slice(bytes);
    }

    /// Number of ghosts on the page.
    pub(crate) fn ghosts(&self) -> u16 {
        self.ghosts
    }

    /// Sets the byte of type flags in the header.
    pub(crate) fn set_type_flags(&mut self, flags: u8) {
        self.bytes[2] = flags;
    }

    /// Sets m_flagBits in the header, for example to 0x2, or to 0x6 on pages of sysfiles1.
    pub(crate) fn set_flags(&mut self, flags: u16) {
        self.put_u16(4, flags);
    }

    /// Writes the CI record of a compressed page. The page must not have any records yet.
    pub(crate) fn push_information(&mut self, bytes: &[u8]) {
        self.bytes[HEADER..HEADER + bytes.len()].copy_from_slice(bytes);
        self.end = HEADER + bytes.len();
        self.used = bytes.len();
        self.bytes[2] |= HAS_INFORMATION;
    }

    /// Completes the header and the page protection, and returns the bytes of the page.
    pub(crate) fn finish(
        &mut self,
        id: PageId,
        (prev, next): (PageId, PageId),
        lsn: Lsn,
        verify: PageVerify,
    ) -> &[u8; PAGE] {
        self.bytes[8..14].copy_from_slice(&prev.bytes());
        self.bytes[16..22].copy_from_slice(&next.bytes());
        self.put_u16(22, self.slots as u16);
        self.put_u16(28, (8096 - self.used - 2 * self.slots) as u16);
        self.put_u16(30, self.end as u16);
        self.bytes[32..38].copy_from_slice(&id.bytes());
        self.bytes[40..50].copy_from_slice(&lsn.bytes());
        self.put_u16(58, self.ghosts);
        protect(&mut self.bytes, verify);
        &self.bytes
    }

    /// The bytes of the page in their current state.
    pub(crate) fn bytes(&self) -> &[u8; PAGE] {
        &self.bytes
    }

    fn put_u16(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
}

/// A log sequence number: VLF sequence number, block, and slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Lsn(pub u32, pub u32, pub u16);

impl std::fmt::Display for Lsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}:{:08x}:{:04x}", self.0, self.1, self.2)
    }
}

impl Lsn {
    /// The LSN as ten bytes.
    pub(crate) fn bytes(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[..4].copy_from_slice(&self.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.1.to_le_bytes());
        bytes[8..].copy_from_slice(&self.2.to_le_bytes());
        bytes
    }
}

/// Applies page protection: sets the flag and the protection word in the header. If the page had torn-page protection
/// before, the caller must first call [`unprotect`].
pub(crate) fn protect(page: &mut [u8; PAGE], verify: PageVerify) {
    let flags = u16::from_le_bytes([page[4], page[5]]) & !(TORN_FLAG | CHECKSUM_FLAG);
    let flag = match verify {
        PageVerify::None => 0,
        PageVerify::Torn => TORN_FLAG,
        PageVerify::Checksum => CHECKSUM_FLAG,
    };
    page[4..6].copy_from_slice(&(flags | flag).to_le_bytes());
    page[60..64].fill(0);
    let word = match verify {
        PageVerify::None => return,
        PageVerify::Torn => take_torn_bits(page),
        PageVerify::Checksum => checksum(page),
    };
    page[60..64].copy_from_slice(&word.to_le_bytes());
}

/// Undoes torn-page protection, if the page is protected in this way.
pub(crate) fn unprotect(page: &mut [u8; PAGE]) {
    if u16::from_le_bytes([page[4], page[5]]) & TORN_FLAG != 0 {
        let word = u32::from_le_bytes([page[60], page[61], page[62], page[63]]);
        for sector in 1..16 {
            let last = &mut page[512 * sector + 511];
            *last = *last & !0b11 | (word >> (2 * sector) & 0b11) as u8;
        }
    }
}

/// Applies torn-page protection to each sector except the first: replaces the last two bits of the sector with the
/// pattern 01, and returns the replaced bits of all sectors as the protection word.
fn take_torn_bits(page: &mut [u8; PAGE]) -> u32 {
    const PATTERN: u8 = 0b01;
    let mut word = u32::from(PATTERN);
    for sector in 1..16 {
        let last = &mut page[512 * sector + 511];
        word |= u32::from(*last & 0b11) << (2 * sector);
        *last = *last & !0b11 | PATTERN;
    }
    word
}

/// Computes the page checksum. The words of each sector are combined by XOR into one word. This word is rotated left by
/// one bit for each sector that follows, and the rotated words are combined by XOR.
pub(crate) fn checksum(page: &[u8; PAGE]) -> u32 {
    let mut sum = 0;
    for (number, sector) in page.chunks_exact(512).enumerate() {
        // Sixteen parallel sums let the compiler use vector instructions.
        let mut lanes = [0u32; 16];
        for block in sector.chunks_exact(64) {
            for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(4)) {
                *lane ^= u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            }
        }
        let folded = lanes.iter().fold(0, |all, lane| all ^ lane);
        sum ^= folded.rotate_left(15 - number as u32);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protected_page_verifies_by_the_reference_definition() {
        let mut page = Page::new(page_type::DATA, 0, UnitId(0x0100_0000_0041_0000), 8);
        page.push(&[0x10, 0, 8, 0, 1, 2, 3, 255, 1, 0, 0]);
        let bytes = *page.finish(PageId::new(1, 77), Default::default(), Lsn(33, 1, 1), PageVerify::Checksum);
        let mut stored = bytes;
        stored[60..64].fill(0);
        let sum = (0..16usize).fold(0, |sum, sector| {
            let words = stored[512 * sector..512 * (sector + 1)].chunks(4);
            let folded = words.fold(0, |all, word| all ^ u32::from_le_bytes(word.try_into().unwrap()));
            sum ^ folded.rotate_left(15 - sector as u32)
        });
        assert_eq!(bytes[60..64], sum.to_le_bytes());
        assert_eq!(u16::from_le_bytes([bytes[28], bytes[29]]), 8096 - 11 - 2);
    }

    #[test]
    fn torn_bits_keep_what_they_replace() {
        let mut page = [0xFFu8; PAGE];
        protect(&mut page, PageVerify::Torn);
        assert_eq!(page[60..64], 0xFFFF_FFFDu32.to_le_bytes());
        assert!((1..16).all(|sector| page[512 * sector + 511] == 0xFD));
    }
}
