//! Which pages a run went through, in ranges of one size: a history keeps when each was read last.

use crate::context::Context;
use crate::options::Scope;
use crate::report::RangeRead;
use crate::survey::Allocation;
use crate::tallies::UnreadPages;

/// Pages of a range: a gigabyte.
const RANGE_PAGES: u32 = 131_072;

/// The ranges of all files with what is in use there. A range in which a page may not have been read is not read.
pub(crate) fn read_ranges(context: &Context<'_>, unread: &UnreadPages) -> Vec<RangeRead> {
    if context.options.scope != Scope::Database {
        return Vec::new();
    }
    let mut ranges = Vec::new();
    for file in &context.survey.files {
        let mut first = 0;
        while first < file.pages {
            let end = first.saturating_add(RANGE_PAGES).min(file.pages);
            let in_use = (first..end).filter(|&page| !matches!(file.allocation(page), Allocation::Free)).count();
            let is_lost = |page: &format::PageId| page.file == file.file_id && (first..end).contains(&page.page);
            ranges.push(RangeRead {
                file_id: file.file_id,
                first,
                pages: end - first,
                in_use: u32::try_from(in_use).unwrap_or(u32::MAX),
                is_read: !unread.may_be_in(file.file_id, first..end) && !context.survey.unread.iter().any(is_lost),
            });
            first = end;
        }
    }
    ranges
}
