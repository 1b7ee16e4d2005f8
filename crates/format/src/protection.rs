//! Page protection: verifies checksums and torn bits, and restores the bits that torn-page protection replaced
//! (docs/format/checksums-and-torn-pages.md).

use crate::fields::{Structure, offset};
use crate::page::{PageBytes, page_flags};
use crate::simd::{self, SECTOR_BYTES, SECTORS};

/// The offset in the header of the word that has the checksum or the torn bits.
pub const PROTECTION_WORD: usize = offset(Structure::PageHeader, "m_tornBits", 4);
const FLAGS: usize = offset(Structure::PageHeader, "m_flagBits", 2);

/// The protection of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// The page has no protection: neither flag is set.
    None,
    /// The page has torn bits, and all sectors are from one write.
    TornBits,
    /// The page has a checksum, which is correct.
    Checksum,
}

/// The reason why a page differs from the page that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtectionFault {
    /// The stored checksum differs from the computed one.
    Checksum {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The sectors are from different writes: the pattern of at least one sector differs.
    Torn {
        /// The torn-bits word of the header. Its low two bits are the pattern of the last write.
        stored: u32,
        /// The word that the sectors' patterns form.
        actual: u32,
    },
}

/// The checksum of a page, computed as if the checksum field were zero. Each 512-byte sector is folded into one word by
/// XOR. The word of each sector is rotated left by 15 minus the sector number, and the rotated words are combined by
/// XOR (docs/format/checksums-and-torn-pages.md#checksum).
pub fn checksum(page: &PageBytes) -> u32 {
    simd::rotated_words(page) ^ stored_word(page).rotate_left(SECTORS as u32 - 1)
}

/// Adds whole sectors of 512 bytes to the checksum `sum`, which is 0 before the first sector. This is the algorithm of
/// the page checksum, for data of other lengths: log blocks (docs/format/log.md#log-blocks) and streams in backups
/// (docs/format/backups.md).
pub fn sectors_sum(sum: u32, sectors: &[u8]) -> u32 {
    simd::sectors_sum(sum, sectors)
}

/// The word at [`PROTECTION_WORD`].
pub fn stored_word(page: &PageBytes) -> u32 {
    crate::bytes::u32_at(page, PROTECTION_WORD).unwrap_or_default()
}

fn flags(page: &PageBytes) -> u16 {
    u16::from_le_bytes([page[FLAGS], page[FLAGS + 1]])
}

/// Verifies a page with the kind of protection that the flags in its header name. Other pages of the same database may
/// have another kind of protection.
#[expect(clippy::indexing_slicing, reason = "the last byte of each sector of a page")]
pub fn verify(page: &PageBytes) -> Result<Protection, ProtectionFault> {
    let flags = flags(page);
    let stored = stored_word(page);
    if flags & page_flags::CHECKSUM != 0 {
        let computed = checksum(page);
        if computed == stored { Ok(Protection::Checksum) } else { Err(ProtectionFault::Checksum { stored, computed }) }
    } else if flags & page_flags::TORN_BITS != 0 {
        let pattern = stored & 3;
        let mut actual = pattern;
        let mut whole = pattern == 1 || pattern == 2;
        for sector in 1..SECTORS {
            let bits = u32::from(page[sector * SECTOR_BYTES + SECTOR_BYTES - 1] & 3);
            actual |= bits << (2 * sector);
            whole &= bits == pattern;
        }
        if whole { Ok(Protection::TornBits) } else { Err(ProtectionFault::Torn { stored, actual }) }
    } else {
        Ok(Protection::None)
    }
}

/// Restores the bits that torn-page protection replaced, so that the page can be parsed. Pages without torn-page
/// protection stay unchanged. One of the replaced bytes is the last byte of sector 15, which is the high byte of slot
/// 0's offset. Until its bits are restored, this offset may be wrong by up to 768 (docs/format/README.md#torn-bits).
#[expect(clippy::indexing_slicing, reason = "the last byte of each sector of a page")]
pub fn undo_torn_bits(page: &mut PageBytes) {
    let flags = flags(page);
    if flags & page_flags::TORN_BITS == 0 || flags & page_flags::CHECKSUM != 0 {
        return;
    }
    let stored = stored_word(page);
    for sector in 1..SECTORS {
        let byte = &mut page[sector * SECTOR_BYTES + SECTOR_BYTES - 1];
        *byte = (*byte & !3) | ((stored >> (2 * sector)) & 3) as u8;
    }
}

/// Protects a changed page as its flags require: writes the checksum, or saves the bits that torn-page protection
/// replaces and writes a torn-bit pattern. There are two such patterns, which alternate from write to write. Before the
/// call, the bits that the previous pattern replaced must be restored.
#[expect(clippy::indexing_slicing, reason = "the last byte of each sector of a page, and its header")]
pub fn seal(page: &mut PageBytes) {
    let flags = flags(page);
    let word = if flags & page_flags::CHECKSUM != 0 {
        checksum(page)
    } else if flags & page_flags::TORN_BITS != 0 {
        let pattern = if stored_word(page) & 3 == 1 { 2 } else { 1 };
        let mut word = u32::from(pattern);
        for sector in 1..SECTORS {
            let byte = &mut page[sector * SECTOR_BYTES + SECTOR_BYTES - 1];
            word |= u32::from(*byte & 3) << (2 * sector);
            *byte = (*byte & !3) | pattern;
        }
        word
    } else {
        return;
    };
    page[PROTECTION_WORD..PROTECTION_WORD + 4].copy_from_slice(&word.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PAGE_BYTES;

    fn noise() -> PageBytes {
        let mut page = [0u8; PAGE_BYTES];
        let mut state = 1u32;
        for byte in &mut page {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
        page
    }

    #[test]
    fn checksum_of_one_word_is_rotated_by_its_sector() {
        let mut page = [0u8; PAGE_BYTES];
        page[SECTOR_BYTES * 3] = 1;
        assert_eq!(checksum(&page), 1 << 12);
        page[PROTECTION_WORD] = 0xFF;
        assert_eq!(checksum(&page), 1 << 12, "the field itself counts as zero");
    }

    #[test]
    fn any_flipped_bit_breaks_the_checksum() {
        let mut page = noise();
        page[4..6].copy_from_slice(&page_flags::CHECKSUM.to_le_bytes());
        let sum = checksum(&page);
        page[PROTECTION_WORD..PROTECTION_WORD + 4].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(verify(&page), Ok(Protection::Checksum));
        for at in (0..PAGE_BYTES).step_by(97).filter(|at| !(4..6).contains(at)) {
            page[at] ^= 0x10;
            assert!(verify(&page).is_err(), "byte {at}");
            page[at] ^= 0x10;
        }
    }

    #[test]
    fn a_sealed_page_is_as_its_flags_ask() {
        for (flags, expected) in [
            (page_flags::CHECKSUM, Protection::Checksum),
            (page_flags::TORN_BITS, Protection::TornBits),
            (0, Protection::None),
        ] {
            let mut page = noise();
            page[4..6].copy_from_slice(&flags.to_le_bytes());
            let original = page;
            for _ in 0..3 {
                seal(&mut page);
                assert_eq!(verify(&page), Ok(expected));
                undo_torn_bits(&mut page);
                assert_eq!(page[64..], original[64..]);
            }
        }
    }

    #[test]
    fn torn_bits_come_back_and_a_torn_write_shows() {
        let original = {
            let mut page = noise();
            page[4..6].copy_from_slice(&page_flags::TORN_BITS.to_le_bytes());
            page
        };
        let mut page = original;
        let mut word = 2u32;
        for sector in 1..SECTORS {
            let byte = &mut page[sector * SECTOR_BYTES + 511];
            word |= u32::from(*byte & 3) << (2 * sector);
            *byte = (*byte & !3) | 2;
        }
        page[PROTECTION_WORD..PROTECTION_WORD + 4].copy_from_slice(&word.to_le_bytes());
        assert_eq!(verify(&page), Ok(Protection::TornBits));
        let mut torn = page;
        torn[7 * SECTOR_BYTES + 511] ^= 3;
        assert!(matches!(verify(&torn), Err(ProtectionFault::Torn { .. })));
        undo_torn_bits(&mut page);
        assert_eq!(page[64..], original[64..]);
    }
}
