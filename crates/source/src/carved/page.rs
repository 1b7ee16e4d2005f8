//! Decides whether the bytes at some place of an image are a page of a data file.

use std::mem::offset_of;

use format::file_header::FileHeader;
use format::page::{HEADER_BYTES, PAGE_BYTES, PageHeader};
use format::protection::{Protection, undo_torn_bits, verify};
use format::{Page, PageBytes, PageId, PageType};

/// The version of all page headers, and the first byte of a page.
const HEADER_VERSION: u8 = 1;
/// The most files of a database; file IDs are not greater
/// (learn.microsoft.com/sql/sql-server/maximum-capacity-specifications-for-sql-server).
const MOST_FILES: u16 = 32_767;
/// SQL Server's limit for the size of a file, 16 TiB, in pages.
pub(super) const MAX_PAGES: u32 = 1 << 31;

/// The bytes of an image around a place at which a page may begin.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// The bytes of one page from this place on.
    pub(super) page: &'a PageBytes,
    /// The same number of bytes before this place, as far as the image has them.
    pub(super) before: Option<&'a PageBytes>,
    /// The bytes after them, at least a page header.
    pub(super) after: Option<&'a [u8; HEADER_BYTES]>,
}

/// Whether a page may begin with these bytes. The test is cheap, because it is made at each sector of an image.
pub(super) fn may_begin(bytes: &[u8]) -> bool {
    matches!(bytes, [HEADER_VERSION, kind, ..] if PageType::from_byte(*kind).is_some())
}

impl Place<'_> {
    /// The ID of the page at this place; `None` if the bytes are no page of a data file. A page without checksum and
    /// without torn bits is a page only if its slots are inside it, and if a page beside it has the number beside its
    /// own.
    pub(super) fn page_id(&self) -> Option<PageId> {
        if !may_begin(self.page) {
            return None;
        }
        let id = id_in(self.page)?;
        let is_proven = match verify(self.page).ok()? {
            Protection::Checksum => true,
            // The pattern of torn bits has about 30 bits, which is few for an image of a terabyte.
            Protection::TornBits => self.is_consistent(),
            Protection::None => self.continues(id) && self.is_consistent(),
        };
        (is_proven && !self.is_of_log()).then_some(id)
    }

    /// Whether the page before or after this place has the page number before or after that of `id`.
    fn continues(&self, id: PageId) -> bool {
        let before = self.before.and_then(|bytes| id_in(bytes));
        let after = self.after.and_then(|bytes| id_in(bytes));
        let is_next = |first: PageId, second: PageId| first.file == second.file && first.page + 1 == second.page;
        before.is_some_and(|before| is_next(before, id)) || after.is_some_and(|after| is_next(id, after))
    }

    /// Whether the slot array and the records that it points to are inside the page. An entry of 0 is an empty slot.
    fn is_consistent(&self) -> bool {
        let mut undone = *self.page;
        undo_torn_bits(&mut undone);
        let page = Page::new(&undone);
        let slots = page.header().slot_count.get();
        let end = PAGE_BYTES.saturating_sub(2 * usize::from(slots));
        let is_inside = |slot: u16| {
            let offset = page.slot_offset(slot).map(usize::from);
            offset.is_some_and(|offset| offset == 0 || (HEADER_BYTES..end).contains(&offset))
        };
        end >= HEADER_BYTES && usize::from(page.header().free_data.get()) <= PAGE_BYTES && (0..slots).all(is_inside)
    }

    /// Whether the page is the header page of a log file. Log files have no filegroup, and no other pages.
    fn is_of_log(&self) -> bool {
        self.header_of_file().is_some_and(|(filegroup, _)| filegroup == 0)
    }

    /// The filegroup and the binding ID of a file header page.
    pub(super) fn header_of_file(&self) -> Option<(u16, [u8; 16])> {
        if self.page.get(1) != Some(&(PageType::FileHeader as u8)) {
            return None;
        }
        let mut undone = *self.page;
        undo_torn_bits(&mut undone);
        let header = FileHeader::read(Page::new(&undone))?;
        Some((header.filegroup(), header.binding_guid()))
    }
}

/// The page ID in a page header; `None` if no page of a data file can have it. The bits of torn page protection are not
/// in the header.
fn id_in(bytes: &[u8]) -> Option<PageId> {
    let id = PageId::read(bytes, offset_of!(PageHeader, page_id)).filter(|_| may_begin(bytes))?;
    (id.file != 0 && id.file <= MOST_FILES && id.page < MAX_PAGES).then_some(id)
}
