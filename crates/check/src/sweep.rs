//! Sweep: one sequential pass over the files in page order, with several threads. Each page is read and checked once.
//! Sums show whether pages agree with each other. For example, each link between two pages adds the same term to two
//! sums: one page adds the term to the first sum, and the other page adds it to the second sum. The order does not
//! matter, and in the end the two sums must be equal. An inequality, such as a bound of keys, cannot be checked with
//! sums, so a small fact is recorded for it.

pub(crate) mod check_list;
mod chunks;
pub(crate) mod context;
pub(crate) mod crew;
pub(crate) mod damage;
mod feed;
pub(crate) mod keeping;
pub(crate) mod memory;
pub(crate) mod page_check;
pub(crate) mod pinpoint;
pub(crate) mod rereads;
pub(crate) mod rounds;
pub(crate) mod row_check;
pub(crate) mod settled;
pub(crate) mod single_page;
mod target;
pub(crate) mod unmatched;
pub(crate) mod warnings;

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use findings::{FileRange, Finding, Readers};
use format::PageId;
use format::page::PAGE_BYTES;
use source::{PageBuffer, ReadError};
use sums::CheckSums;

use crate::basis::accounting::{Lock, Meter};
use crate::basis::ledger::FindingCollector;
use crate::basis::progress::Progress;
use crate::basis::tallies::Tallies;
use crate::survey::Allocation;
use crate::sweep::check_list::{CheckList, Swept};
use crate::sweep::context::Context;
use crate::sweep::memory::CHUNK_PAGES;

use chunks::{Chunk, Chunks};
use feed::{Counter, Loaded, Queue};
use keeping::{Keeper, OpenRange};
pub(crate) use target::{Target, Verdict, any_in_scope, may_be_in_scope};

/// The number of findings that a thread collects before it delivers them.
const FINDINGS_PER_THREAD: usize = 256;

/// Reads and checks every page in scope once.
pub(crate) fn sweep<C: CheckList>(
    context: &Context<'_>,
    checks: &C,
    findings: &mut FindingCollector,
    meter: &Meter,
    progress: &dyn Progress,
) -> Swept<C::Sums> {
    let chunks = Chunks::of(&context.survey.files, context.range);
    progress.phase("sweep", chunks.pages());
    sweep_chunks((context, checks), &chunks, None, findings, (meter, progress))
}

/// Reads and checks every page in scope of some ranges once, and passes the sums of each range to `keeper`.
pub(crate) fn sweep_ranges<C: CheckList>(
    (context, checks): (&Context<'_>, &C),
    ranges: &[FileRange],
    keeper: &dyn Keeper<C::Sums>,
    findings: &mut FindingCollector,
    (meter, progress): (&Meter, &dyn Progress),
) -> Swept<C::Sums> {
    let chunks = Chunks::of_ranges(ranges);
    sweep_chunks((context, checks), &chunks, Some(keeper), findings, (meter, progress))
}

fn sweep_chunks<C: CheckList>(
    (context, checks): (&Context<'_>, &C),
    chunks: &Chunks,
    keeper: Option<&dyn Keeper<C::Sums>>,
    findings: &mut FindingCollector,
    (meter, progress): (&Meter, &dyn Progress),
) -> Swept<C::Sums> {
    let sweep = Sweep {
        context,
        checks,
        keeper,
        findings: Mutex::new(findings),
        meter,
        progress,
        chunks,
        merged: Mutex::new(None),
        ends: Mutex::default(),
    };
    let threads = context.options.threads();
    match context.options.readers {
        Readers::Own => sweep.own(threads),
        Readers::Count(readers) => {
            let counter = Counter::new(chunks.all());
            sweep.queued(threads, &vec![&counter; usize::from(readers.max(1))]);
        }
        Readers::PerFile => {
            let counters: Vec<Counter> = chunks.by_file().into_iter().map(Counter::new).collect();
            sweep.queued(threads, &counters.iter().collect::<Vec<_>>());
        }
    }
    // A thread is idle from its own end to the end of the slowest thread.
    for end in sweep.ends.into_inner().unwrap_or_else(PoisonError::into_inner) {
        meter.idle(end.elapsed());
    }
    let merged = sweep.merged.into_inner().unwrap_or_else(PoisonError::into_inner);
    merged.unwrap_or_else(|| Swept::new(checks, context.units.list().len()))
}

struct Sweep<'a, C: CheckList> {
    context: &'a Context<'a>,
    checks: &'a C,
    /// Receives the sums of each range, if they are kept.
    keeper: Option<&'a dyn Keeper<C::Sums>>,
    findings: Mutex<&'a mut FindingCollector>,
    meter: &'a Meter,
    progress: &'a dyn Progress,
    chunks: &'a Chunks,
    merged: Mutex<Option<Swept<C::Sums>>>,
    ends: Mutex<Vec<Instant>>,
}

impl<C: CheckList> Sweep<'_, C> {
    /// Each thread reads and checks its own chunks.
    fn own(&self, threads: usize) {
        let counter = Counter::new(self.chunks.all());
        // The calling thread also works. With more threads than chunks, some threads would be idle.
        let wanted = self.chunks.count().min(threads).max(1);
        thread::scope(|scope| {
            let (started, cause) = crew::start(scope, (1..wanted).map(|_| || self.read_and_work(&counter)));
            self.meter.started_threads(started + 1, wanted, cause);
            self.read_and_work(&counter);
        });
    }

    /// Reads chunks and checks their pages.
    fn read_and_work(&self, counter: &Counter) {
        let pages = |first| self.context.source.pages_per_read(first).clamp(1, CHUNK_PAGES);
        let (mut spare, mut rest) = (Some(PageBuffer::new(CHUNK_PAGES)), None);
        self.work(|used| {
            let buffer = used.or_else(|| spare.take())?;
            let passed = |chunk| self.passed(chunk);
            feed::read_next(self.context, self.chunks, counter, (&mut rest, pages), buffer, passed)
        });
    }

    /// Starts one reading thread per entry of `counters`, and `threads` threads that check pages.
    fn queued(&self, threads: usize, counters: &[&Counter]) {
        let queue = Queue::new(counters.len(), memory::queue_buffers(counters.len(), threads));
        thread::scope(|scope| {
            let (wanted, queue) = (threads.max(1), &queue);
            let read = |counter: &Counter| {
                let passed = |chunk| self.passed(chunk);
                queue.read_all(self.context, self.chunks, counter, passed);
            };
            let judge = || {
                self.work(|used| {
                    used.into_iter().for_each(|buffer| queue.give_back(buffer));
                    queue.take(self.meter)
                });
            };
            let (readers, cause) = crew::start(scope, counters.iter().map(|&counter| move || read(counter)));
            let (judges, later) = crew::start(scope, (0..wanted).map(|_| judge));
            self.meter.started_threads(readers + judges, counters.len() + wanted, cause.or(later));
            // The calling thread does the work of threads that could not be started. It reads the chunks of the missing
            // readers. It checks pages only if no thread that checks pages could be started.
            for counter in counters.get(readers..).unwrap_or_default() {
                self.read_and_work(counter);
                queue.end_reader();
            }
            if judges == 0 {
                judge();
            }
        });
    }

    /// Checks the pages that `next` supplies. Each call of `next` receives the buffer of the previous chunk for reuse.
    fn work(&self, mut next: impl FnMut(Option<PageBuffer>) -> Option<Loaded>) {
        let context = self.context;
        let mut swept = Swept::new(self.checks, context.units.list().len());
        let mut scratch = C::Scratch::default();
        let mut target = Target::default();
        let (mut used, mut open) = (None, None);
        while let Some(mut loaded) = next(used.take()) {
            let local = (&mut target, &mut scratch);
            match self.keeper {
                None => _ = self.judge((loaded.chunk.first, loaded.failed), loaded.bytes(), &mut swept, local),
                Some(keeper) => self.judge_ranges(keeper, &mut loaded, &mut open, &mut swept, local),
            }
            self.checks.bound(context, &mut swept.sums);
            if let Some(sample) = self.meter.sample(context.space) {
                self.progress.sample(&sample);
            }
            self.passed(loaded.chunk);
            used = Some(loaded.buffer);
        }
        self.hand_over(&mut swept.tallies.findings);
        let waits = Instant::now();
        let mut merged = self.merged.lock().unwrap_or_else(PoisonError::into_inner);
        self.meter.locked(Lock::Merge, waits.elapsed());
        match merged.as_mut() {
            Some(merged) => merged.merge(swept),
            None => *merged = Some(swept),
        }
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
    }

    /// Reports to the progress display that the pages of a chunk were processed.
    fn passed(&self, chunk: Chunk) {
        self.progress.advance(chunk.pages.into());
        self.progress.swept(chunk.first, chunk.pages);
    }

    /// Checks the pages of a chunk range by range, and passes the sums of each complete range to `keeper`. A thread reads
    /// all pages of a range one after another, so at most one range is `open`.
    fn judge_ranges<'c>(
        &'c self,
        keeper: &dyn Keeper<C::Sums>,
        loaded: &mut Loaded,
        open: &mut Option<OpenRange<'c, C::Sums>>,
        swept: &mut Swept<C::Sums>,
        (target, scratch): (&mut Target, &mut C::Scratch),
    ) {
        let (Chunk { first, .. }, failed) = (loaded.chunk, loaded.failed);
        let (mut page, mut rest) = (first.page, loaded.bytes());
        while !rest.is_empty() {
            let id = PageId::new(first.file, page);
            let range = open.get_or_insert_with(|| OpenRange::new(self.context, self.checks, id, keeper.range_pages()));
            let length = (range.end().saturating_sub(page).max(1) as usize * PAGE_BYTES).min(rest.len());
            let (bytes, later) = rest.split_at_mut(length);
            match failed {
                false => range.add_bytes(page, bytes),
                true => range.forget_bytes(),
            }
            range.has_findings |= self.judge((id, failed), bytes, &mut range.swept, (&mut *target, &mut *scratch));
            page += (length / PAGE_BYTES) as u32;
            rest = later;
            if range.end() <= page
                && let Some(range) = open.take()
                && let Some(done) = keeper.keep(self.context, range.close())
            {
                swept.merge(done);
                swept.sums.gather(self.context.space);
            }
        }
    }

    /// Checks pages. If they could not be read in one request, reads them one by one, so that a bad sector makes only
    /// one page unreadable. Returns whether the pages have findings.
    fn judge(
        &self,
        (first, failed): (PageId, bool),
        bytes: &mut [u8],
        swept: &mut Swept<C::Sums>,
        (target, scratch): (&mut Target, &mut C::Scratch),
    ) -> bool {
        let context = self.context;
        let mut has_findings = false;
        for (page, bytes) in (first.page..).zip(bytes.chunks_exact_mut(PAGE_BYTES)) {
            let id = PageId::new(first.file, page);
            if failed {
                // Unused pages are skipped, because it does not matter whether they can be read.
                if !target::may_be_in_scope(context, id) {
                    continue;
                }
                if let Err(error) = context.source.read(id, bytes) {
                    unread(context, id, &error, &mut swept.tallies);
                    continue;
                }
            }
            swept.tallies.pages_read += 1;
            if let Some(bytes) = bytes.first_chunk_mut::<PAGE_BYTES>() {
                target.page(context, self.checks, id, bytes, swept, scratch);
            }
            has_findings |= !swept.tallies.findings.is_empty();
            if swept.tallies.findings.len() >= FINDINGS_PER_THREAD {
                self.hand_over(&mut swept.tallies.findings);
            }
        }
        has_findings
    }

    fn hand_over(&self, found: &mut Vec<Finding>) {
        let waits = Instant::now();
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        self.meter.locked(Lock::Findings, waits.elapsed());
        findings.extend(found.drain(..));
    }
}

/// Records that the operating system could not read a page. The page is not verified and, if it is in use, the failed
/// read is an error of the run.
fn unread(context: &Context<'_>, id: PageId, error: &ReadError, partial: &mut Tallies) {
    if context.survey.allocation(id) == Allocation::Free {
        return;
    }
    // If several units claim a page, only its header shows the owner. So the owner of an unreadable page is unknown.
    partial.has_unread_shared |= context.survey.is_shared(id);
    if !context.covers(context.survey.owner(id)) {
        return;
    }
    // The survey has already reported the pages that it failed to read.
    if !context.survey.unread.contains(&id) {
        partial.unread.add(id, || error.to_string());
    }
    if let Some(unit) = context.survey.owner(id)
        && let Some(tally) = partial.units.get_mut(unit as usize)
    {
        tally.unread_pages += 1;
    }
}
