//! The page checksum, computed in the widest registers of the processor. Only this module has `unsafe` code: it calls
//! functions that need a processor feature, and detects the feature directly before each call. Each algorithm is
//! written once, in the safe [`folded_words`] and `folded_sectors`, which the compiler translates twice: with and
//! without AVX2.

use crate::page::{PAGE_BYTES, PageBytes};

/// The size of a sector in bytes. The checksum rotates once for each sector.
pub(crate) const SECTOR_BYTES: usize = 512;
/// The number of sectors in a page.
pub(crate) const SECTORS: usize = PAGE_BYTES / SECTOR_BYTES;

/// The checksum of all bytes of a page, including its checksum field. Each sector is folded into one word by XOR. The
/// word of each sector is rotated left by 15 minus the sector number, and the rotated words are combined by XOR
/// (docs/format/checksums-and-torn-pages.md#checksum). Uses AVX2 if the processor has it.
#[inline]
pub(crate) fn rotated_words(page: &PageBytes) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the processor has what the function needs")]
        // SAFETY: AVX2 was detected in the line above.
        return unsafe { with_avx2(page) };
    }
    folded_words(page)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(page: &PageBytes) -> u32 {
    folded_words(page)
}

/// Computes [`rotated_words`] on any processor.
#[inline(always)]
fn folded_words(page: &PageBytes) -> u32 {
    let mut sum = 0u32;
    for (sector, bytes) in page.as_chunks::<SECTOR_BYTES>().0.iter().enumerate() {
        sum ^= folded_sector(bytes).rotate_left((SECTORS - 1 - sector) as u32);
    }
    sum
}

/// Adds sectors to the checksum `sum`. For each sector, the checksum is rotated left by one bit and combined with the
/// words of the sector by XOR. For the sectors of a page, the result is that of [`rotated_words`]. Ignores bytes after
/// the last whole sector.
pub(crate) fn sectors_sum(sum: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the processor has what the function needs")]
        // SAFETY: AVX2 was detected in the line above.
        return unsafe { sectors_with_avx2(sum, bytes) };
    }
    folded_sectors(sum, bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sectors_with_avx2(sum: u32, bytes: &[u8]) -> u32 {
    folded_sectors(sum, bytes)
}

/// Adds sectors to a checksum on any processor.
#[inline(always)]
fn folded_sectors(sum: u32, bytes: &[u8]) -> u32 {
    bytes.as_chunks::<SECTOR_BYTES>().0.iter().fold(sum, |sum, sector| sum.rotate_left(1) ^ folded_sector(sector))
}

/// Combines all words of a sector by XOR, two words at a time, which is the form that compilers vectorize best.
#[inline(always)]
fn folded_sector(sector: &[u8; SECTOR_BYTES]) -> u32 {
    let words = sector.as_chunks().0.iter().fold(0, |folded, word| folded ^ u64::from_le_bytes(*word));
    words as u32 ^ (words >> 32) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_twins_agree_and_every_bit_counts(
            bytes in prop::collection::vec(any::<u8>(), PAGE_BYTES),
            at in 0..PAGE_BYTES,
            bit in 0..8u8,
        ) {
            let mut page = [0; PAGE_BYTES];
            page.copy_from_slice(&bytes);
            let sum = rotated_words(&page);
            prop_assert_eq!(sum, folded_words(&page));
            prop_assert_eq!(sum, sectors_sum(0, &page));
            let (front, back) = page.split_at(at / SECTOR_BYTES * SECTOR_BYTES);
            prop_assert_eq!(sum, folded_sectors(folded_sectors(0, front), back));
            page[at] ^= 1 << bit;
            prop_assert_ne!(rotated_words(&page), sum);
        }
    }
}
