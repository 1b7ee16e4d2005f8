//! The layout of rows on a page: the length of a row, and the fullness of the page.

use std::ops::Range;

use format::bytes::u16_at;
use format::lob::Fragment;
use format::page::{HEADER_BYTES, PAGE_BYTES};
use format::record::{Record, status};
use format::{Page, PageBytes, PageId, PageType};

use crate::misfit::Misfit;

/// The fullness class of a heap or LOB page in its PFS byte; `None` for pages with a class that does not depend on
/// their rows (docs/format/allocation.md#pfs).
pub(crate) fn fullness(bytes: &PageBytes) -> Option<u8> {
    /// 50, 80 and 95 percent of the 8096 bytes that follow the page header.
    const LIMITS: [usize; 3] = [4048, 6476, 7691];
    let header = Page::new(bytes).header();
    let depends = matches!(header.kind()?, PageType::TextMix | PageType::Data);
    let used = (PAGE_BYTES - HEADER_BYTES).saturating_sub(header.free_count.get().into());
    let is_empty = used <= 2 * usize::from(header.slot_count.get());
    let class = 1 + LIMITS.iter().filter(|limit| used > **limit).count() as u8;
    depends.then_some(if is_empty { 0 } else { class })
}

/// The six bytes with which a row stores a pointer to `page`.
pub(crate) fn pointer(page: PageId) -> [u8; 6] {
    let ([a, b, c, d], [e, f]) = (page.page.to_le_bytes(), page.file.to_le_bytes());
    [a, b, c, d, e, f]
}

/// Whether pages of type `kind` contain rows whose length can be computed from their bytes.
pub(crate) fn has_rows(kind: Option<PageType>) -> bool {
    matches!(
        kind,
        Some(
            PageType::Data
                | PageType::Index
                | PageType::TextMix
                | PageType::TextTree
                | PageType::ReorgTemporary
                | PageType::BulkPreallocated
        )
    )
}

/// Length of the row at the start of `space`. For records that do not state their length, such as those of allocation
/// maps, this is the length of `space`, but at most `rest` bytes.
pub(crate) fn row_length(page: Page<'_>, space: &[u8], rest: usize) -> Result<usize, Misfit> {
    let header = page.header();
    let length = match header.kind() {
        Some(PageType::Index) => Record::index(space, header.pminlen.get()).map(|record| record.bytes().len()),
        Some(PageType::TextMix | PageType::TextTree) => Fragment::read(space).map(|record| record.bytes().len()),
        kind if has_rows(kind) => Record::data(space).map(|record| record.bytes().len()),
        // The records of allocation maps, boot pages and file headers extend to the next record.
        _ => return Ok(space.len().min(rest)),
    };
    let is_compressed = space.first().is_some_and(|status| status & 1 != 0);
    length.map_err(|_| if is_compressed { Misfit::Compressed } else { Misfit::PageDamaged })
}

/// Builds a row from its image in a log record. The version tag of a row is not logged. The length field in the image
/// of a LOB row with a version tag is therefore wrong (docs/format/log.md#changes). The length field of the result is
/// set to the length of the image.
pub(crate) fn row_of_image(page: Page<'_>, image: &[u8]) -> Vec<u8> {
    let mut row = image.to_vec();
    let is_lob = matches!(page.header().kind(), Some(PageType::TextMix | PageType::TextTree));
    let has_tag = image.first().is_some_and(|bits| bits & status::VERSION_TAG != 0);
    if is_lob
        && has_tag
        && let Some(length) = row.get_mut(FRAGMENT_LENGTH)
        && let Ok(own) = u16::try_from(image.len())
    {
        length.copy_from_slice(&own.to_le_bytes());
    }
    row
}

/// Offset of the length field (u16) in a LOB fragment.
pub(crate) const FRAGMENT_LENGTH: Range<usize> = 2..4;

/// The number of bytes of a row that are logged: all bytes except the version tag.
pub(crate) fn logged_length(page: Page<'_>, row: &[u8]) -> usize {
    let header = page.header();
    let without_tag = |record: Record<'_>| record.bytes().len() - record.version_tag().map_or(0, |tag| tag.len());
    let length = match header.kind() {
        Some(PageType::Index) => Record::index(row, header.pminlen.get()).map(without_tag).ok(),
        Some(PageType::TextMix | PageType::TextTree) => u16_at(row, FRAGMENT_LENGTH.start).map(usize::from),
        _ => Record::data(row).map(without_tag).ok(),
    };
    length.unwrap_or(row.len()).min(row.len())
}

/// Whether a row on a page equals the image in a log record. The version tag is ignored, because it is not logged.
/// Padding of a heap row to the size of a forwarding stub is ignored too.
pub(crate) fn is_same_row(page: Page<'_>, row: &[u8], image: &[u8]) -> bool {
    let image = row_of_image(page, image);
    row.get(..logged_length(page, row)) == image.get(..logged_length(page, &image))
}

#[cfg(test)]
mod tests {
    use format::page::HEADER_BYTES;

    use super::*;

    /// An empty page of this type; `pminlen` is the length of the fixed part of its rows.
    fn page(kind: PageType, pminlen: u16) -> PageBytes {
        let mut bytes = [0; PAGE_BYTES];
        (bytes[0], bytes[1]) = (1, kind as u8);
        bytes[14..16].copy_from_slice(&pminlen.to_le_bytes());
        assert_eq!((HEADER_BYTES, Page::new(&bytes).header().pminlen.get()), (96, pminlen));
        bytes
    }

    /// A LOB row of five bytes with a version tag. Returns its image in the log, and the row as stored on the page.
    fn lob_row() -> (Vec<u8>, Vec<u8>) {
        let on_page = [&[0x48, 0, 19, 0, 1, 2, 3, 4, 5, 6, 7, 8, 3, 0][..], b"value", &[0xAA; 14]].concat();
        let mut image = on_page[..19].to_vec();
        image[2] = 5;
        (image, on_page)
    }

    #[test]
    fn the_image_of_a_lob_row_with_a_version_tag_names_a_length_without_the_tag() {
        let ((image, on_page), bytes) = (lob_row(), page(PageType::TextMix, 0));
        let row = row_of_image(Page::new(&bytes), &image);
        assert_eq!(row, on_page[..19]);
        let mut space = row;
        space.resize(19 + 14, 0);
        assert_eq!(row_length(Page::new(&bytes), &space, 19), Ok(33));
        // Without a version tag, and on pages of other types, the image equals the row.
        let plain = [&[0x08, 0, 19, 0][..], &image[4..]].concat();
        assert_eq!(row_of_image(Page::new(&bytes), &plain), plain);
        assert_eq!(row_of_image(Page::new(&page(PageType::Data, 8)), &image), image);
    }

    #[test]
    fn a_row_is_the_one_of_an_image_whatever_its_version_tag() {
        let (image, on_page) = lob_row();
        let lob = page(PageType::TextMix, 0);
        assert!(is_same_row(Page::new(&lob), &on_page, &image));
        let mut other = on_page;
        other[18] ^= 1;
        assert!(!is_same_row(Page::new(&lob), &other, &image));
        // An index row with a status byte and four bytes of key. On the page, a version tag follows the row.
        let index = page(PageType::Index, 5);
        let row = [&[0x46, 1, 2, 3, 4][..], &[0xBB; 14]].concat();
        assert_eq!(logged_length(Page::new(&index), &row), 5);
        assert!(is_same_row(Page::new(&index), &row, &[&row[..5], &[0; 14]].concat()));
        assert!(!is_same_row(Page::new(&index), &row, &[0x46, 1, 2, 3, 5]));
        // A table row with status bits, the end of the fixed part, a value, the column count and the NULL bitmap.
        let data = page(PageType::Data, 8);
        let row = [&[0x50, 0, 8, 0, 9, 9, 9, 9, 1, 0, 0][..], &[0xCC; 14]].concat();
        assert_eq!(logged_length(Page::new(&data), &row), 11);
        assert!(is_same_row(Page::new(&data), &row, &[&row[..11], &[0; 14]].concat()));
    }
}
