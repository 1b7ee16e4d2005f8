//! The bytes of a page around a finding.

use std::fmt::Write;

use findings::Finding;
use format::protection::undo_torn_bits;
use format::{PAGE_BYTES, Page, PageBytes, PageId};
use serde::Serialize;
use source::PageSource;

/// Number of bytes shown for a finding.
const SHOWN_BYTES: usize = 64;
/// Maximum number of pages to read again in order to show their bytes. The limit keeps the wait short when storage is
/// slow.
const MOST_PAGES: usize = 256;

/// Some bytes of a page.
#[derive(Serialize)]
pub(super) struct Bytes {
    /// The place of the bytes, as text: page and slot.
    what: String,
    /// Offset of the first byte on the page.
    offset: usize,
    hex: String,
}

/// Reads pages again to show their bytes. Consecutive findings on the same page share one read.
pub(super) struct PageBytesReader<'a> {
    source: &'a dyn PageSource,
    last: Option<(PageId, Option<Box<PageBytes>>)>,
    left: usize,
}

impl<'a> PageBytesReader<'a> {
    pub(super) fn new(source: &'a dyn PageSource) -> Self {
        Self { source, last: None, left: MOST_PAGES }
    }

    /// The first bytes of the finding's record, or of its page if the record cannot be located. `None` if the finding
    /// names no page that can be read.
    pub(super) fn around(&mut self, finding: &Finding) -> Option<Bytes> {
        let at = finding.page.filter(|page| !page.is_none())?;
        let bytes = self.page(at)?;
        let record = finding.slot.and_then(|slot| Some((slot, record_offset(bytes, slot)?)));
        let (what, offset) = match record {
            Some((slot, offset)) => (format!("Page {at}, slot {slot}"), offset),
            None => (format!("Page {at}, its start"), 0),
        };
        let mut hex = String::new();
        for byte in bytes.get(offset..offset + SHOWN_BYTES)? {
            let _ = write!(hex, "{byte:02x}");
        }
        Some(Bytes { what, offset, hex })
    }

    fn page(&mut self, at: PageId) -> Option<&PageBytes> {
        if self.last.as_ref().is_none_or(|(page, _)| *page != at) {
            if self.left == 0 || !self.source.contains(at) {
                return None;
            }
            self.left -= 1;
            self.last = Some((at, self.source.read_page(at)));
        }
        self.last.as_ref()?.1.as_deref()
    }
}

/// The offset of a slot's record on the page. If fewer than [`SHOWN_BYTES`] bytes follow the offset, returns the offset
/// of the last [`SHOWN_BYTES`] bytes of the page.
fn record_offset(bytes: &PageBytes, slot: u16) -> Option<usize> {
    let mut plain = *bytes;
    undo_torn_bits(&mut plain);
    let offset = Page::new(&plain).slot_offset(slot).map(usize::from)?;
    (offset < PAGE_BYTES).then(|| offset.min(PAGE_BYTES - SHOWN_BYTES))
}
