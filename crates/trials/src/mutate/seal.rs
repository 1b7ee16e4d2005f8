//! Corrects the protection of a changed page (docs/format/checksums-and-torn-pages.md).

use std::ops::Range;

use format::PageBytes;
use format::bytes::u16_at;
use format::page::page_flags;
use format::protection::{PROTECTION_WORD, checksum};

const SECTOR_BYTES: usize = 512;

/// The bytes of the page header that contain the checksum or the torn bits.
pub const PROTECTED_WORD: Range<usize> = PROTECTION_WORD..PROTECTION_WORD + 4;

/// Corrects the checksum or the torn bits of `page`, as its flags require. If the page has torn bits, the caller must
/// undo them before it changes the page.
pub fn seal(page: &mut PageBytes) {
    let flags = u16_at(page, 4).unwrap_or_default();
    if flags & page_flags::CHECKSUM != 0 {
        let sum = checksum(page);
        page[PROTECTED_WORD].copy_from_slice(&sum.to_le_bytes());
    } else if flags & page_flags::TORN_BITS != 0 {
        // The torn bits of a sector alternate between 1 and 2 with each write of the page.
        let pattern = match page[PROTECTION_WORD] & 3 {
            2 => 2u8,
            _ => 1,
        };
        let mut word = u32::from(pattern);
        for (sector, bytes) in page.chunks_exact_mut(SECTOR_BYTES).enumerate().skip(1) {
            if let Some(last) = bytes.last_mut() {
                word |= u32::from(*last & 3) << (2 * sector);
                *last = (*last & !3) | pattern;
            }
        }
        page[PROTECTED_WORD].copy_from_slice(&word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use format::page::PAGE_BYTES;
    use format::protection::{undo_torn_bits, verify};

    #[test]
    fn a_sealed_page_verifies_and_is_the_same_page() {
        for flags in [page_flags::CHECKSUM, page_flags::TORN_BITS, 0] {
            let mut page = [0xA7; PAGE_BYTES];
            page[4..6].copy_from_slice(&flags.to_le_bytes());
            let mut sealed = page;
            seal(&mut sealed);
            assert!(verify(&sealed).is_ok());
            undo_torn_bits(&mut sealed);
            assert_eq!((&sealed[..60], &sealed[64..]), (&page[..60], &page[64..]));
        }
    }
}
