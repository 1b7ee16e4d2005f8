//! Keeping: while the sweep adds up the sums of the whole database, it also makes the sums of each small range of pages
//! apart, so that a later run can use them again if the range has not changed.

use findings::FileRange;
use format::PageId;
use format::allocation::{EXTENT_PAGES, FixedPage};
use format::page::PAGE_BYTES;
use sums::CheckSums;
use sums::hash::Hasher;
use sums::wire::Digest;

use crate::survey::Allocation;
use crate::sweep::check_list::{CheckList, Swept};
use crate::sweep::context::Context;
use crate::sweep::memory::CHUNK_PAGES;

/// Receives the sums of each range.
pub(crate) trait Keeper<S>: Sync {
    /// The number of pages of a range: a power of two, at most [`CHUNK_PAGES`].
    fn range_pages(&self) -> u32;

    /// Takes the sums of a range. Returns sums that the caller must add to its own: those of the range, of several
    /// ranges that are complete now, or none yet.
    fn keep(&self, context: &Context<'_>, done: SweptRange<S>) -> Option<Swept<S>>;
}

/// The sums of one range.
pub(crate) struct SweptRange<S> {
    /// The pages of the range.
    pub(crate) range: FileRange,
    /// A digest of the bytes that do not come from the first set of a backup; `None` if it is unknown which these are.
    pub(crate) above: Option<Digest>,
    /// A digest of each extent, zero if there is none. There are some only if the differential maps promise that the other
    /// extents do not change, and if nothing was found in the range.
    pub(crate) extents: Vec<u64>,
    /// The sums of the pages.
    pub(crate) swept: Swept<S>,
    /// Whether the pages have findings.
    pub(crate) has_findings: bool,
}

/// The range of which a thread reads pages.
pub(super) struct OpenRange<'c, S> {
    context: &'c Context<'c>,
    range: FileRange,
    /// Which pages do not come from the first set of a backup; `None` if this is unknown.
    mask: Option<u128>,
    above: Hasher<'c>,
    /// For each extent whose pages should never change: a hash of its pages in use.
    extents: Vec<Option<Hasher<'c>>>,
    pub(super) swept: Swept<S>,
    pub(super) has_findings: bool,
}

/// The range that contains a page, given the number of pages in the file.
pub(crate) fn range_of(page: PageId, range_pages: u32, file_pages: u32) -> FileRange {
    let first = page.page - page.page % range_pages.max(1);
    FileRange { file_id: page.file, first, pages: range_pages.min(file_pages.saturating_sub(first)) }
}

/// The digest for ranges in which all pages come from the first set of a backup.
pub(crate) const ALL_OF_BASE: Digest = [0; 16];

impl<'c, S: CheckSums> OpenRange<'c, S> {
    /// Begins the range that contains a page.
    pub(super) fn new(
        context: &'c Context<'_>,
        checks: &impl CheckList<Sums = S>,
        page: PageId,
        range_pages: u32,
    ) -> Self {
        let file_pages = context.survey.file(page.file).map_or(0, |file| file.pages);
        let range = range_of(page, range_pages.min(CHUNK_PAGES), file_pages);
        let mask = context.source.above_base(PageId::new(range.file_id, range.first), range.pages);
        let of_extents = 0..range.pages.div_ceil(EXTENT_PAGES);
        let hasher = |extent: u32| {
            let of_extent = mask?.checked_shr(extent * EXTENT_PAGES)? & ((1 << EXTENT_PAGES) - 1);
            (of_extent == 0).then(|| context.hash.hasher())
        };
        Self {
            context,
            range,
            mask,
            above: context.hash.hasher(),
            extents: if context.source.has_promise() { of_extents.map(hasher).collect() } else { Vec::new() },
            swept: Swept::new(checks, context.units.list().len()),
            has_findings: false,
        }
    }

    /// The end of the range.
    pub(super) fn end(&self) -> u32 {
        self.range.end()
    }

    /// Adds the bytes of pages, as they were read.
    pub(super) fn add_bytes(&mut self, first: u32, bytes: &[u8]) {
        for (page, bytes) in (first..).zip(bytes.chunks_exact(PAGE_BYTES)) {
            add_page(&mut self.above, self.mask, self.range, page, bytes);
            let extent = page.wrapping_sub(self.range.first) / EXTENT_PAGES;
            let Some(Some(hasher)) = self.extents.get_mut(extent as usize) else { continue };
            // The server writes map pages, the boot page and file headers without marking them, and a free page may have any
            // content.
            let id = PageId::new(self.range.file_id, page);
            let is_in_use = matches!(self.context.survey.allocation(id), Allocation::Used(_));
            if is_in_use && FixedPage::at(id).is_none() {
                hasher.add_bytes(&page.to_le_bytes());
                hasher.add_bytes(bytes);
            }
        }
    }

    /// The bytes of some pages are not known.
    pub(super) fn forget_bytes(&mut self) {
        self.mask = None;
        self.extents.clear();
    }

    /// Ends the range.
    pub(super) fn close(self) -> SweptRange<S> {
        let Self { range, mask, above, extents, swept, has_findings, .. } = self;
        let digest = |hasher: &Option<Hasher<'_>>| hasher.as_ref().map_or(0, |hasher| short(hasher.digest()));
        let extents = if has_findings { Vec::new() } else { extents.iter().map(digest).collect() };
        SweptRange { range, above: mask.map(|mask| digest_above(mask, &above)), extents, swept, has_findings }
    }
}

/// The first bytes of a digest, as a number that is not zero.
fn short(digest: Digest) -> u64 {
    digest.first_chunk().map_or(1, |bytes| u64::from_le_bytes(*bytes)).max(1)
}

fn add_page(above: &mut Hasher<'_>, mask: Option<u128>, range: FileRange, page: u32, bytes: &[u8]) {
    let bit = page.wrapping_sub(range.first);
    if mask.is_some_and(|mask| mask.checked_shr(bit).is_some_and(|mask| mask & 1 != 0)) {
        above.add_bytes(&bit.to_le_bytes());
        above.add_bytes(bytes);
    }
}

fn digest_above(mask: u128, above: &Hasher<'_>) -> Digest {
    if mask == 0 { ALL_OF_BASE } else { above.digest() }
}

/// Reads the pages of a range that do not come from the first set of a backup, and returns the same digest as a sweep of
/// the range. `None` if it is unknown which pages these are, or if one cannot be read.
pub(crate) fn bytes_above(context: &Context<'_>, range: FileRange) -> Option<Digest> {
    let mask = context.source.above_base(PageId::new(range.file_id, range.first), range.pages)?;
    let mut above = context.hash.hasher();
    let mut buffer = Vec::new();
    let mut bit = 0;
    while bit < range.pages {
        let run = mask.checked_shr(bit).unwrap_or_default().trailing_ones().min(range.pages - bit);
        if run > 0 {
            buffer.resize(run as usize * PAGE_BYTES, 0);
            let first = PageId::new(range.file_id, range.first + bit);
            let read = context.source.read(first, &mut buffer).ok()?;
            if read != run as usize {
                return None;
            }
            for (page, bytes) in (first.page..).zip(buffer.chunks_exact(PAGE_BYTES)) {
                add_page(&mut above, Some(mask), range, page, bytes);
            }
        }
        bit += run.max(1);
    }
    Some(digest_above(mask, &above))
}
