//! Compares pages for the tests of recovery.
#![allow(clippy::unwrap_used)]

use format::record::Record;
use format::{Page, PageBytes, PageId, PageType};

/// Position of the number of free bytes in the list of header fields that [`logical`] returns.
const FREE_COUNT: usize = 8;

/// The parts of a page that must be equal: the header fields that follow from log records, and the rows by slot.
pub(crate) fn logical(bytes: &PageBytes, with_lsn: bool) -> (Vec<u64>, Vec<Option<Vec<u8>>>) {
    let page = Page::new(bytes);
    let header = page.header();
    let link = |page: PageId| u64::from(page.file) << 32 | u64::from(page.page);
    let lsn = header.lsn();
    let mut fields = vec![
        header.page_type.into(),
        header.level.into(),
        header.pminlen.get().into(),
        link(header.prev()),
        link(header.next()),
        header.object_id.get().into(),
        header.index_id.get().into(),
        header.ghost_count.get().into(),
        header.free_count.get().into(),
    ];
    assert_eq!(fields.len(), FREE_COUNT + 1);
    if with_lsn {
        fields.extend([u64::from(lsn.vlf), lsn.block.into(), lsn.slot.into()]);
    }
    let count = header.slot_count.get();
    let mut places: Vec<usize> = (0..count).filter_map(|slot| page.slot_offset(slot)).map(usize::from).collect();
    places.push(header.free_data.get().into());
    places.sort_unstable();
    let mut rows: Vec<Option<Vec<u8>>> = (0..count)
        .map(|slot| {
            let at = usize::from(page.slot_offset(slot).unwrap());
            let end = places[places.partition_point(|place| *place <= at).min(places.len() - 1)];
            let space = &bytes[at..end.max(at)];
            // Version tags are not logged, so only the bytes before the version tag of a row are compared.
            let untagged = |record: Record<'_>| record.bytes().len() - record.version_tag().map_or(0, |tag| tag.len());
            let length = match header.kind() {
                Some(PageType::Data) => Record::data(space).map(untagged),
                Some(PageType::Index) => Record::index(space, header.pminlen.get()).map(untagged),
                Some(PageType::TextMix | PageType::TextTree) if space.len() > 4 => {
                    Ok(usize::from(u16::from_le_bytes([space[2], space[3]])).min(space.len()))
                }
                _ => Ok(space.len()),
            };
            (at != 0).then(|| space[..length.unwrap_or(space.len())].to_vec())
        })
        .collect();
    // Empty slots at the end of a page may disappear without a log record, so they are not compared.
    while rows.last().is_some_and(Option::is_none) {
        rows.pop();
        fields[FREE_COUNT] += 2;
    }
    (fields, rows)
}
