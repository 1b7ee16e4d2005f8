//! How many pages the files have whose pages were found. A page ID is only a number in some bytes, and each page of a
//! file costs memory and time wherever pages are counted, so a page far beyond all others is left out.

use std::ops::Range;

use format::PageId;
use format::allocation::EXTENT_PAGES;

use super::page::MAX_PAGES;
use super::runs::Run;

/// A file may end where this number of pages, for each page that was found up to there, is not exceeded.
const PAGES_PER_PAGE: u64 = 256;
/// In addition, all files together may have this number of pages (128 GB) for which there is no evidence: the pages
/// found may be the last ones of their files.
const FREE_PAGES: u64 = 1 << 24;

/// Pages that are left out because they are far beyond the other pages of their file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// The first of the pages.
    pub first: PageId,
    /// The number of pages that were found there.
    pub pages: u64,
}

/// The number of pages of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    /// The number of pages, a multiple of the pages of an extent. All pages at fixed addresses of an allocation map
    /// interval that begins in the file are then in the file too.
    pub(super) pages: u32,
    /// Whether the file header confirms it.
    pub(super) is_known: bool,
}

/// The runs of each file. `runs` are sorted.
pub(super) fn by_file(runs: &[Run]) -> impl Iterator<Item = (u16, &[Run])> {
    runs.chunk_by(|one, other| one.file == other.file).filter_map(|runs| Some((runs.first()?.file, runs)))
}

/// The number of pages of a file with these runs, if there are `files` files in all. `claimed` is the number of pages in
/// the file header, if it was found.
pub(super) fn of_file(runs: &[Run], files: usize, claimed: Option<u32>) -> (Extent, Option<LeftOut>) {
    let free = FREE_PAGES / files.max(1) as u64;
    let mut found = 0u64;
    let mut end = 0;
    for run in runs {
        found += u64::from(run.pages);
        if u64::from(run.end()) <= free + PAGES_PER_PAGE * found {
            end = run.end();
        }
    }
    let claimed = claimed.filter(|claimed| *claimed <= MAX_PAGES);
    let is_known = claimed.is_some_and(|claimed| u64::from(claimed) <= free + PAGES_PER_PAGE * found && claimed >= end);
    let end = claimed.filter(|_| is_known).unwrap_or(end);
    let pages = end.checked_next_multiple_of(EXTENT_PAGES).unwrap_or(MAX_PAGES).min(MAX_PAGES);
    let beyond = runs.iter().skip(runs.partition_point(|run| run.first < pages));
    let left_out = beyond.clone().next().map(|run| LeftOut {
        first: PageId::new(run.file, run.first),
        pages: beyond.map(|run| u64::from(run.pages)).sum(),
    });
    (Extent { pages, is_known: is_known && left_out.is_none() }, left_out)
}

/// The page numbers below `pages` that are in none of the runs of a file.
pub(super) fn holes(runs: &[Run], pages: u32) -> impl Iterator<Item = Range<u32>> {
    let starts = std::iter::once(0).chain(runs.iter().map(Run::end));
    let ends = runs.iter().map(|run| run.first).chain(std::iter::once(pages));
    starts.zip(ends).map(move |(start, end)| start..end.min(pages)).filter(|hole| !hole.is_empty())
}
