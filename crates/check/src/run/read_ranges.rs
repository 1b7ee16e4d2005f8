//! The pages that a run has read, in ranges of equal size. The history of a database records when each range was last
//! read.

use std::ops::Range;

use findings::{FileRange, RangeRead, Scope};

use crate::basis::tallies::UnreadPages;
use crate::survey::{Allocation, FileMap};
use crate::sweep::context::Context;

/// The number of pages in a range. A full range has one gibibyte of pages.
const RANGE_PAGES: u32 = 131_072;

/// The ranges of all files, each with its number of pages in use. A range counts as unread if any of its pages may not
/// have been read.
pub(crate) fn read_ranges(context: &Context<'_>, unread: &UnreadPages) -> Vec<RangeRead> {
    if context.options.scope != Scope::Database {
        return Vec::new();
    }
    let mut ranges = Vec::new();
    for file in &context.survey.files {
        let mut first = 0;
        while first < file.pages {
            let end = first.saturating_add(RANGE_PAGES).min(file.pages);
            ranges.push(range_of(context, file, first..end, unread));
            first = end;
        }
    }
    ranges
}

/// Extends the ranges so that together they contain all pages of the files. The first range of a file is extended to
/// page 0, and each range is extended to the start of the next range.
pub(crate) fn tiles(context: &Context<'_>, ranges: &[FileRange]) -> Vec<RangeRead> {
    let tile = |(at, range): (usize, &FileRange)| {
        let file = context.survey.files.iter().find(|file| file.file_id == range.file_id)?;
        let is_first = at.checked_sub(1).and_then(|at| ranges.get(at)).is_none_or(|one| one.file_id != range.file_id);
        let next = ranges.get(at + 1).filter(|next| next.file_id == range.file_id);
        let first = if is_first { 0 } else { range.first };
        let end = next.map_or(file.pages, |next| next.first);
        Some(range_of(context, file, first..end, &UnreadPages::default()))
    };
    ranges.iter().enumerate().filter_map(tile).collect()
}

fn range_of(context: &Context<'_>, file: &FileMap, pages: Range<u32>, unread: &UnreadPages) -> RangeRead {
    let in_use = pages.clone().filter(|&page| !matches!(file.allocation(page), Allocation::Free)).count();
    let is_lost = |page: &format::PageId| page.file == file.file_id && pages.contains(&page.page);
    RangeRead {
        file_id: file.file_id,
        first: pages.start,
        pages: pages.end.saturating_sub(pages.start),
        in_use: u32::try_from(in_use).unwrap_or(u32::MAX),
        // Of maps that could not be read back from a temporary file, it is unknown which pages are in use.
        is_read: !context.survey.has_missed()
            && !unread.may_be_in(file.file_id, pages.clone())
            && !context.survey.unread.iter().any(is_lost)
            && !context.has_open(file.file_id, pages),
    }
}
