//! Splits a database into ranges, and verifies that ranges contain all pages.

use std::fmt;

use findings::FileRange;
use format::PageId;

use crate::sweep::any_in_scope;
use crate::sweep::context::Context;
use crate::sweep::memory::CHUNK_PAGES;

/// The error that some page to be read is in none of the ranges, or in more than one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Untiled {
    /// The first page that is not in exactly one range.
    pub page: PageId,
    /// What is wrong at this page.
    pub what: &'static str,
}

impl fmt::Display for Untiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}: {}", self.page, self.what)
    }
}

/// Returns the chunks of a file, each with its first page, its number of pages, and whether any of its pages must be
/// read.
fn chunks<'c>(context: &'c Context<'_>, file_id: u16, pages: u32) -> impl Iterator<Item = (u32, u32, bool)> + 'c {
    (0..pages).step_by(CHUNK_PAGES as usize).map(move |first| {
        let count = CHUNK_PAGES.min(pages - first);
        (first, count, any_in_scope(context, PageId::new(file_id, first), count))
    })
}

/// Ranges that together contain all pages to be read. Each range has about `most` of these pages, or fewer. Each range
/// begins at the start of one of the chunks into which a sweep of the whole database divides the files.
pub(super) fn ranges(context: &Context<'_>, most: u64) -> Vec<FileRange> {
    let counted = counted_ranges(context, (most, u64::MAX), |_, _, pages| pages);
    counted.into_iter().map(|(range, _)| range).collect()
}

/// Like [`ranges`], but of the pages of each chunk, only as many count as `count` says, given the file, the first page
/// and the number of pages. Each range has at most `most_counted` pages that count, and at most `most` pages to be read.
/// Returns the ranges with the numbers of their pages that count.
pub(super) fn counted_ranges(
    context: &Context<'_>,
    (most_counted, most): (u64, u64),
    count: impl Fn(u16, u32, u32) -> u32,
) -> Vec<(FileRange, u64)> {
    let mut ranges = Vec::new();
    for file in &context.survey.files {
        let mut open: Option<(FileRange, u64, u64)> = None;
        for (first, chunk, _) in chunks(context, file.file_id, file.pages).filter(|(.., is_read)| *is_read) {
            let counted_now = u64::from(count(file.file_id, first, chunk));
            let pages_now = u64::from(chunk);
            match &mut open {
                Some((range, counted, pages))
                    if *counted + counted_now <= most_counted && *pages + pages_now <= most =>
                {
                    *counted += counted_now;
                    *pages += pages_now;
                    range.pages = first + chunk - range.first;
                }
                open => {
                    ranges.extend(open.take().map(|(range, counted, _)| (range, counted)));
                    let range = FileRange { file_id: file.file_id, first, pages: chunk };
                    *open = Some((range, counted_now, pages_now));
                }
            }
        }
        ranges.extend(open.map(|(range, counted, _)| (range, counted)));
    }
    ranges
}

/// Verifies that these ranges contain each page to be read exactly once and consist of whole chunks.
pub(super) fn tile(context: &Context<'_>, ranges: &[FileRange]) -> Result<(), Untiled> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    let untiled = |file: u16, page: u32, what| Untiled { page: PageId::new(file, page), what };
    let mut left = sorted.as_slice();
    for file in &context.survey.files {
        let before = left.partition_point(|range| range.file_id < file.file_id);
        let (alien, rest) = left.split_at_checked(before).unwrap_or_default();
        if let Some(range) = alien.first() {
            return Err(untiled(range.file_id, range.first, "no file contains it"));
        }
        let (own, others) =
            rest.split_at_checked(rest.partition_point(|range| range.file_id == file.file_id)).unwrap_or_default();
        left = others;
        let mut end = 0;
        for range in own {
            let is_whole = |page: u32| page.is_multiple_of(CHUNK_PAGES) || page == file.pages;
            if range.first < end {
                return Err(untiled(file.file_id, range.first, "two ranges contain it"));
            }
            if range.pages == 0 || range.end() > file.pages || !is_whole(range.first) || !is_whole(range.end()) {
                return Err(untiled(file.file_id, range.first, "no whole range begins there"));
            }
            end = range.end();
        }
        let mut ranges = own.iter().peekable();
        for (first, _, is_read) in chunks(context, file.file_id, file.pages) {
            while ranges.next_if(|range| range.end() <= first).is_some() {}
            let page = PageId::new(file.file_id, first);
            if is_read && ranges.peek().is_none_or(|range| !range.contains(page)) {
                return Err(untiled(file.file_id, first, "no range contains it"));
            }
        }
    }
    match left.first() {
        Some(range) => Err(untiled(range.file_id, range.first, "no file contains it")),
        None => Ok(()),
    }
}
