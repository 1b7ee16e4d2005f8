//! The index of the pages that were found, as runs: adjacent pages of a file at adjacent places of an image. Resolves
//! pages that were found more than once.

use std::ops::Range;

use format::page::PAGE_BYTES;
use format::{Lsn, Page, PageBytes, PageId};

/// Adjacent pages of a file at adjacent places of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) file: u16,
    /// The number of the image, from 0.
    pub(super) image: u16,
    /// The first page.
    pub(super) first: u32,
    /// The number of pages, at least one.
    pub(super) pages: u32,
    /// The offset of the first page in the image.
    pub(super) at: u64,
}

impl Run {
    pub(super) fn end(&self) -> u32 {
        self.first.saturating_add(self.pages)
    }

    /// The offset of a page of the run.
    pub(super) fn at(&self, page: u32) -> u64 {
        self.at + u64::from(page.saturating_sub(self.first)) * PAGE_BYTES as u64
    }

    /// The pages of `range`, all of which are in the run.
    fn part(&self, range: Range<u32>) -> Self {
        Self { first: range.start, pages: range.end.saturating_sub(range.start), at: self.at(range.start), ..*self }
    }
}

/// The index would have more runs than its share of memory allows.
#[derive(Debug)]
pub(super) struct Full {
    pub(super) image: u16,
    pub(super) at: u64,
}

/// A list of runs with a greatest length.
pub(super) struct Runs {
    pub(super) list: Vec<Run>,
    most: usize,
}

impl Runs {
    pub(super) fn new(most: usize) -> Self {
        Self { list: Vec::new(), most }
    }

    /// Adds a run at the end of the list. If it continues the last run, that one becomes longer.
    ///
    /// # Errors
    /// [`Full`] if the list has no room for another run.
    pub(super) fn push(&mut self, run: Run) -> Result<(), Full> {
        if let Some(last) = self.list.last_mut()
            && (last.file, last.image, last.end(), last.at(last.end())) == (run.file, run.image, run.first, run.at)
        {
            last.pages += run.pages;
            return Ok(());
        }
        if self.list.len() >= self.most {
            return Err(Full { image: run.image, at: run.at });
        }
        self.list.push(run);
        Ok(())
    }
}

/// A copy of a page in an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Copy {
    pub(super) image: u16,
    pub(super) at: u64,
    pub(super) lsn: Lsn,
}

/// A page that was found more than once, with different bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Double {
    pub(super) page: PageId,
    /// The copy that is read.
    pub(super) used: Copy,
    /// The newest of the other copies with other bytes.
    pub(super) other: Copy,
}

/// The pages that were found more than once.
#[derive(Default, Debug)]
pub(super) struct Doubles {
    /// The number of pages with copies that differ.
    pub(super) pages: u64,
    /// The number of copies, beyond the first of each page, with the bytes of the copy that is read.
    pub(super) same: u64,
    /// The first of the pages with copies that differ.
    pub(super) listed: Vec<Double>,
}

/// The most pages that are listed because their copies differ.
pub(super) const MOST_LISTED: usize = 20;
/// The pages of a run that are read at a time to compare them with their copies.
const BLOCK_PAGES: u32 = 32;

/// Sorts the runs by file and page, so that each page is in one run only: of several copies of a page, that with the
/// newest LSN stays; of several with the same LSN, the first one in the order of the images. `read` fills a buffer from
/// an offset of an image, and returns whether it could.
///
/// Only the pages with copies are read, each of them once. The work is linear in the number of pages: a range of pages
/// that `n` runs have in common is as long as its share of each of them.
pub(super) fn resolve(
    mut found: Vec<Run>,
    most: usize,
    read: impl FnMut(u16, u64, &mut [u8]) -> bool,
) -> Result<(Vec<Run>, Doubles), Full> {
    found.sort_unstable_by_key(|run| (run.file, run.first, run.image, run.at));
    let mut resolver =
        Resolver { runs: Runs::new(most), doubles: Doubles::default(), read, best: Vec::new(), other: Vec::new() };
    // The runs that have the present page. All of them begin with it, because the pages before it were cut off.
    let mut present: Vec<Run> = Vec::new();
    let mut rest = found.into_iter().peekable();
    loop {
        if present.is_empty() {
            match rest.next() {
                Some(run) => present.push(run),
                None => break,
            }
        }
        let Some(&Run { file, first, .. }) = present.first() else { break };
        while let Some(run) = rest.next_if(|run| (run.file, run.first) == (file, first)) {
            present.push(run);
        }
        let next = rest.peek().filter(|next| next.file == file).map(|next| next.first);
        let end = present.iter().map(Run::end).chain(next).min().unwrap_or(first);
        match present.as_mut_slice() {
            [only] => resolver.runs.push(only.part(first..end))?,
            several => {
                several.sort_unstable_by_key(|run| (run.image, run.at));
                resolver.choose(several, first..end)?;
            }
        }
        present.retain_mut(|run| {
            let is_left = run.end() > end;
            if is_left {
                *run = run.part(end..run.end());
            }
            is_left
        });
    }
    Ok((resolver.runs.list, resolver.doubles))
}

struct Resolver<R> {
    runs: Runs,
    doubles: Doubles,
    read: R,
    /// The bytes of the best copies so far of a block of pages.
    best: Vec<u8>,
    other: Vec<u8>,
}

/// What is known about the copies of one page.
#[derive(Clone, Copy, Default)]
struct Best {
    /// The copy that is the best so far, with the number of its run.
    copy: Option<(usize, Lsn)>,
    /// The newest copy with other bytes.
    other: Option<(usize, Lsn)>,
    same: u64,
}

impl<R: FnMut(u16, u64, &mut [u8]) -> bool> Resolver<R> {
    /// Chooses a copy of each page in `range`, all of which are in all of the `runs`.
    fn choose(&mut self, runs: &[Run], range: Range<u32>) -> Result<(), Full> {
        for first in range.clone().step_by(BLOCK_PAGES as usize) {
            let pages = first..range.end.min(first.saturating_add(BLOCK_PAGES));
            let bests = self.compare(runs, pages.clone());
            for (page, best) in pages.zip(bests) {
                // If no copy can be read again, the first one is kept: reads of it will fail, and name the cause.
                let (used, lsn) = best.copy.unwrap_or_default();
                let Some(run) = runs.get(used) else { continue };
                self.runs.push(run.part(page..page + 1))?;
                self.doubles.same += best.same;
                let Some((other, other_lsn)) = best.other else { continue };
                self.doubles.pages += 1;
                if let Some(other) = runs.get(other).filter(|_| self.doubles.listed.len() < MOST_LISTED) {
                    let copy = |run: &Run, lsn| Copy { image: run.image, at: run.at(page), lsn };
                    let page = PageId::new(run.file, page);
                    self.doubles.listed.push(Double { page, used: copy(run, lsn), other: copy(other, other_lsn) });
                }
            }
        }
        Ok(())
    }

    /// Compares the copies of a block of pages.
    fn compare(&mut self, runs: &[Run], pages: Range<u32>) -> Vec<Best> {
        let mut bests = vec![Best::default(); pages.len()];
        self.best.resize(pages.len() * PAGE_BYTES, 0);
        self.other.resize(pages.len() * PAGE_BYTES, 0);
        for (number, run) in runs.iter().enumerate() {
            if !(self.read)(run.image, run.at(pages.start), &mut self.other) {
                continue;
            }
            let (best_pages, _) = self.best.as_chunks_mut::<PAGE_BYTES>();
            let (other_pages, _) = self.other.as_chunks::<PAGE_BYTES>();
            for ((best, kept), other) in bests.iter_mut().zip(best_pages).zip(other_pages) {
                best.meet((number, Page::new(other).header().lsn()), kept, other);
            }
        }
        bests
    }
}

impl Best {
    /// Compares another copy with the best one, whose bytes are `kept`.
    fn meet(&mut self, copy: (usize, Lsn), kept: &mut PageBytes, bytes: &PageBytes) {
        let loser = match self.copy {
            None => None,
            Some(_) if kept == bytes => {
                self.same += 1;
                return;
            }
            Some((_, lsn)) if lsn >= copy.1 => Some(copy),
            Some(old) => Some(old),
        };
        if let Some(loser) = loser
            && self.other.is_none_or(|(_, lsn)| lsn < loser.1)
        {
            self.other = Some(loser);
        }
        if loser != Some(copy) {
            *kept = *bytes;
            self.copy = Some(copy);
            self.same = 0;
        }
    }
}
