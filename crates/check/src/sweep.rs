//! Sweep: one sequential pass over the files in page order, in parallel ranges. Each page is the target exactly once;
//! what relates two pages becomes a term of an order-free sum on both sides, what is an inequality a small fact.

mod tally;
mod target;
mod tree_page;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use format::page::PAGE_BYTES;
use format::{PageBytes, PageId};
use source::ReadError;

use crate::accounting::Meter;
use crate::context::Context;
use crate::memory::CHUNK_PAGES;
use crate::progress::Progress;

pub(crate) use tally::{LevelSums, NodePage, PageBounds, Partial, TreeLevel, UnitTally};
pub(crate) use target::{Forwarding, Role, Target, Verdict, any_in_scope, forwarding, is_leaf, is_leaf_of, role};
pub(crate) use tree_page::{child, level_of, record};

struct Chunk {
    first: PageId,
    pages: u32,
}

/// Reads every page of the scope once.
pub(crate) fn sweep(context: &Context<'_>, meter: &Meter, progress: &dyn Progress) -> Partial {
    let mut chunks = Vec::new();
    let mut total = 0;
    for file in &context.survey.files {
        for first in (0..file.pages).step_by(CHUNK_PAGES as usize) {
            let pages = CHUNK_PAGES.min(file.pages - first);
            chunks.push(Chunk { first: PageId::new(file.file_id, first), pages });
            total += u64::from(pages);
        }
    }
    progress.phase("sweep", total);
    let threads = context.options.threads();
    let next = AtomicUsize::new(0);
    let ends = Mutex::new(Vec::new());
    let merged = Mutex::new(Partial::new(context.units.list().len()));
    thread::scope(|scope| {
        for _ in 0..threads.min(chunks.len()).max(1) {
            scope.spawn(|| {
                let partial = work(context, &chunks, &next, meter, progress);
                let waits = Instant::now();
                let mut merged = merged.lock().unwrap_or_else(PoisonError::into_inner);
                meter.locked(waits.elapsed());
                merged.merge(partial);
                ends.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
            });
        }
    });
    // What the slowest thread took longer than each of the others.
    for end in ends.into_inner().unwrap_or_else(PoisonError::into_inner) {
        meter.idle(end.elapsed());
    }
    let mut merged = merged.into_inner().unwrap_or_else(PoisonError::into_inner);
    merged.sort();
    merged
}

/// Takes chunks until none is left.
fn work(
    context: &Context<'_>,
    chunks: &[Chunk],
    next: &AtomicUsize,
    meter: &Meter,
    progress: &dyn Progress,
) -> Partial {
    let mut partial = Partial::new(context.units.list().len());
    let mut target = Target::default();
    let mut buffer = vec![0; CHUNK_PAGES as usize * PAGE_BYTES];
    while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
        read_chunk(context, chunk, &mut buffer, &mut partial, |id, bytes, partial| {
            target.page(context, id, bytes, partial)
        });
        if let Some(run) = partial.bounds.first_mut() {
            run.bound(context.bounds_a_thread(), context.space);
        }
        meter.sample(context.space);
        progress.advance(chunk.pages.into());
    }
    partial
}

/// Reads a chunk; where the whole of it cannot be read, page by page, so that a bad sector costs one page.
fn read_chunk(
    context: &Context<'_>,
    chunk: &Chunk,
    buffer: &mut [u8],
    partial: &mut Partial,
    mut visit: impl FnMut(PageId, &mut PageBytes, &mut Partial),
) {
    let buffer = &mut buffer[..chunk.pages as usize * PAGE_BYTES];
    if !target::any_in_scope(context, chunk.first, chunk.pages) {
        return;
    }
    let whole = context.source.read(chunk.first, buffer);
    let failed = whole.is_err();
    for (page, bytes) in (chunk.first.page..).zip(buffer.chunks_exact_mut(PAGE_BYTES)).take(chunk.pages as usize) {
        let id = PageId::new(chunk.first.file, page);
        if failed && let Err(error) = context.source.read(id, bytes) {
            unread(context, id, &error, partial);
            continue;
        }
        partial.pages_read += 1;
        if let Some(bytes) = bytes.first_chunk_mut::<PAGE_BYTES>() {
            visit(id, bytes, partial);
        }
    }
}

/// A page that the system cannot read: not verified, and an error of the run if it is in use.
fn unread(context: &Context<'_>, id: PageId, error: &ReadError, partial: &mut Partial) {
    if !target::is_in_scope(context, id) {
        return;
    }
    partial.read_errors.push((id, error.to_string()));
    if let Some(unit) = context.survey.owner(id)
        && let Some(tally) = partial.units.get_mut(unit as usize)
    {
        tally.unread_pages += 1;
    }
}
