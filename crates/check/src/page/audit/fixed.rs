//! Pages with records at fixed offsets: allocation maps, IAM pages, boot page, file header
//! (docs/format/allocation.md#fixed-pages).

use findings::Finding;
use format::bytes::u16_at;
use format::page::page_flags;
use format::record::{Record, status};
use format::{AllocUnitId, PAGE_BYTES, Page, PageType};

/// Length of the record of a PFS page, in bytes.
const PFS_RECORD_BYTES: usize = 8092;
/// Lengths of the two records of a bitmap page, in bytes. The first record contains filler bytes or the IAM header, and
/// the second record contains the bitmap.
const MAP_RECORD_BYTES: [usize; 2] = [94, 7992];

/// The first contradiction found on a page with records at fixed offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FixedFault {
    test: &'static str,
    value: usize,
    against: usize,
}

impl FixedFault {
    /// Adds the contradiction to `finding` as evidence.
    pub(crate) fn explain(self, finding: Finding) -> Finding {
        finding.text_value("test", self.test).number("value", self.value as i64).number("against", self.against as i64)
    }
}

/// The first contradiction between the header, the slot array and the records of the page, or the first record with a
/// length that its page type does not allow. In the sound files of all releases, every page with records at fixed
/// offsets has exactly the layout that this function requires.
pub(crate) fn fixed_fault(page: Page<'_>) -> Option<FixedFault> {
    layout(page).err()
}

fn layout(page: Page<'_>) -> Result<(), FixedFault> {
    let header = page.header();
    same("m_headerVersion == HEADER_7_0", header.header_version.into(), 1)?;
    let lengths = match header.kind() {
        Some(PageType::Pfs) => vec![PFS_RECORD_BYTES],
        Some(PageType::Boot | PageType::FileHeader) => vec![own_length(page)],
        _ => MAP_RECORD_BYTES.to_vec(),
    };
    same("m_slotCnt", header.slot_count.get().into(), lengths.len())?;
    let aligned = header.flags.get() & page_flags::ALIGNED4 != 0;
    let mut used = 0;
    let mut end = format::page::HEADER_BYTES;
    for (slot, &length) in (0u16..).zip(&lengths) {
        let offset = usize::from(page.slot_offset(slot).unwrap_or_default());
        let is_moved = header.kind() == Some(PageType::FileHeader) && offset > end;
        if !is_moved {
            same("sorted [i].offset", offset, end)?;
        }
        let taken = if aligned { length.next_multiple_of(4) } else { length };
        if header.kind() == Some(PageType::FileHeader) {
            let found = page.bytes().get(offset).copied().unwrap_or_default();
            // The record of a file header page has the status bits of a row with a null bitmap and variable columns, as
            // in 258 of 258 files.
            same("hdr->r_tagA", found.into(), (status::NULL_BITMAP | status::VARIABLE).into())?;
        } else {
            let status = u16_at(page.bytes(), offset).unwrap_or(u16::MAX);
            same("hdr->r_tagA == 0 && hdr->r_tagB == 0", status.into(), 0)?;
            same("record length", u16_at(page.bytes(), offset + 2).unwrap_or_default().into(), length)?;
        }
        end = offset + taken;
        used += taken;
    }
    let free_data = usize::from(header.free_data.get());
    let room = PAGE_BYTES - 2 * lengths.len();
    if header.kind() != Some(PageType::FileHeader) {
        same("m_freeData", free_data, end)?;
    } else if !(end..=room).contains(&free_data) {
        return Err(FixedFault { test: "m_freeData", value: free_data, against: end });
    }
    let free = room.saturating_sub(format::page::HEADER_BYTES).saturating_sub(used);
    same("m_freeCnt == freeCnt", header.free_count.get().into(), free)
}

/// The first wrong value in a header field that pages with records at fixed offsets do not use. Every release writes
/// the same value into each of these fields. The content of a page can be trusted even if one of these fields is wrong.
pub(crate) fn idle_field_fault(page: Page<'_>) -> Option<FixedFault> {
    idle_fields(page).err()
}

fn idle_fields(page: Page<'_>) -> Result<(), FixedFault> {
    let header = page.header();
    // The minimum record length in the header is 90 bytes on bitmap pages and 0 on PFS, boot and file header pages.
    let shortest = match header.kind() {
        Some(PageType::Pfs | PageType::Boot | PageType::FileHeader) => 0,
        _ => MAP_RECORD_BYTES[0] - 4,
    };
    same("m_level", header.level.into(), 0)?;
    same("m_ghostRecCnt", header.ghost_count.get().into(), 0)?;
    same("pminlen", header.pminlen.get().into(), shortest)?;
    if header.kind() == Some(PageType::Iam) {
        return Ok(());
    }
    // Except for IAM pages, the engine finds pages with records at fixed offsets by their page number alone. So these
    // pages belong to unit 99 and have no neighbors.
    same("alloc unit ID", header.alloc_unit().0 as usize, AllocUnitId::SYSTEM.0 as usize)?;
    for (link, page) in [("m_prevPage", header.prev()), ("m_nextPage", header.next())] {
        same(link, (usize::from(page.file) << 32) + page.page as usize, 0)?;
    }
    Ok(())
}

/// The length that the first record states; 0 if the record is incomplete.
fn own_length(page: Page<'_>) -> usize {
    match page.header().kind() {
        Some(PageType::FileHeader) => {
            page.slot_bytes(0).and_then(|bytes| Record::data(bytes).ok()).map_or(0, |record| record.bytes().len())
        }
        _ => page.slot_bytes(0).and_then(|bytes| u16_at(bytes, 2)).unwrap_or_default().into(),
    }
}

fn same(test: &'static str, value: usize, against: usize) -> Result<(), FixedFault> {
    if value == against { Ok(()) } else { Err(FixedFault { test, value, against }) }
}
