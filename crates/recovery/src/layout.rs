//! How rows are laid out on a page: how long they are, how full they make it.

use format::lob::Fragment;
use format::page::{HEADER_BYTES, PAGE_BYTES};
use format::record::Record;
use format::{Page, PageBytes, PageId, PageType};

use crate::misfit::Misfit;

/// The class of fullness that the PFS page has for a page of a heap, or of LOBs; `None` where it does not depend on the rows
/// (docs/format/allocation.md#pfs).
pub(crate) fn fullness(bytes: &PageBytes) -> Option<u8> {
    /// Half of what a page can hold, 80 and 95 percent of it.
    const LIMITS: [usize; 3] = [4048, 6476, 7691];
    let header = Page::new(bytes).header();
    let depends = matches!(header.kind()?, PageType::TextMix | PageType::Data);
    let used = (PAGE_BYTES - HEADER_BYTES).saturating_sub(header.free_count.get().into());
    let is_empty = used <= 2 * usize::from(header.slot_count.get());
    let class = 1 + LIMITS.iter().filter(|limit| used > **limit).count() as u8;
    depends.then_some(if is_empty { 0 } else { class })
}

/// A page pointer as pages store it.
pub(crate) fn pointer(page: PageId) -> [u8; 6] {
    let ([a, b, c, d], [e, f]) = (page.page.to_le_bytes(), page.file.to_le_bytes());
    [a, b, c, d, e, f]
}

/// Whether a page of this kind holds rows: records that say how long they are.
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

/// Length of the row at the start of `space`; `rest` is what the page has of it at most.
pub(crate) fn row_length(page: Page<'_>, space: &[u8], rest: usize) -> Result<usize, Misfit> {
    let header = page.header();
    let length = match header.kind() {
        Some(PageType::Index) => Record::index(space, header.pminlen.get()).map(|record| record.bytes().len()),
        Some(PageType::TextMix | PageType::TextTree) => Fragment::read(space).map(|record| record.bytes().len()),
        kind if has_rows(kind) => Record::data(space).map(|record| record.bytes().len()),
        // The records of maps, of the boot page and of file headers reach to the next one.
        _ => return Ok(space.len().min(rest)),
    };
    let is_compressed = space.first().is_some_and(|status| status & 1 != 0);
    length.map_err(|_| if is_compressed { Misfit::Compressed } else { Misfit::PageDamaged })
}

/// Whether a row on a page is the one that a record has the image of: version tags are not logged, and heap rows have room
/// for a stub.
pub(crate) fn is_same_row(row: &[u8], image: &[u8]) -> bool {
    let logged = |bytes: &[u8]| {
        Record::data(bytes).map_or(bytes.len(), |record| match record.version_tag() {
            Some(tag) => record.bytes().len() - tag.len(),
            None => record.bytes().len(),
        })
    };
    let (row, image) = match (row.get(..logged(row)), image.get(..logged(image))) {
        (Some(row), Some(image)) => (row, image),
        _ => (row, image),
    };
    row == image
}
