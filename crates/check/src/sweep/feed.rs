//! Supplies chunks to the threads that check them. Either each thread reads its own chunks, or dedicated threads read
//! ahead.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use format::PageId;
use format::page::PAGE_BYTES;
use source::PageBuffer;

use super::chunks::{Chunk, Chunks};
use super::target;
use crate::basis::accounting::Meter;
use crate::sweep::context::Context;
use crate::sweep::memory::CHUNK_PAGES;

/// The number of chunks per thread that are announced to the operating system before they are read.
const CHUNKS_AHEAD: u64 = 4;

/// A chunk with its pages.
pub(super) struct Loaded {
    pub(super) chunk: Chunk,
    pub(super) buffer: PageBuffer,
    /// Whether the read of the whole chunk failed, so that its pages must be read one by one.
    pub(super) failed: bool,
}

impl Loaded {
    /// The bytes of the pages.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        let length = self.chunk.pages as usize * PAGE_BYTES;
        self.buffer.bytes().get_mut(..length).unwrap_or_default()
    }
}

/// Hands out the numbers of chunks in order.
pub(super) struct Counter {
    next: AtomicU64,
    end: u64,
}

impl Counter {
    pub(super) fn new(range: Range<u64>) -> Self {
        Self { next: AtomicU64::new(range.start), end: range.end }
    }

    fn take(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.end).then_some(number)
    }
}

/// Reads the chunk in `rest` or, if there is none, the next chunk that has pages in scope. `pages` returns the maximum
/// number of pages to read, given the first page of the chunk. If the chunk has more pages, the remainder is stored in
/// `rest` for the next call. Calls `passed` with each chunk that is skipped.
pub(super) fn read_next(
    context: &Context<'_>,
    chunks: &Chunks,
    counter: &Counter,
    (rest, pages): (&mut Option<Chunk>, impl Fn(PageId) -> u32),
    mut buffer: PageBuffer,
    passed: impl FnMut(Chunk),
) -> Option<Loaded> {
    let chunk = match rest.take() {
        Some(rest) => rest,
        None => next_in_scope(context, chunks, counter, passed)?,
    };
    let (chunk, unread) = chunk.split(pages(chunk.first));
    *rest = unread;
    let length = chunk.pages as usize * PAGE_BYTES;
    let failed = context.source.read(chunk.first, buffer.bytes().get_mut(..length).unwrap_or_default()).is_err();
    Some(Loaded { chunk, buffer, failed })
}

/// The next chunk that has pages in scope. Also announces a later chunk to the operating system.
fn next_in_scope(
    context: &Context<'_>,
    chunks: &Chunks,
    counter: &Counter,
    mut passed: impl FnMut(Chunk),
) -> Option<Chunk> {
    loop {
        let number = counter.take()?;
        let chunk = chunks.get(number)?;
        if !target::any_in_scope(context, chunk.first, chunk.pages) {
            passed(chunk);
            continue;
        }
        if let Some(later) = chunks.get(number + CHUNKS_AHEAD * context.options.threads() as u64) {
            context.source.prefetch(later.first, later.pages);
        }
        return Some(chunk);
    }
}

/// Connects reading threads with checking threads: readers add chunks, and the checking threads return the buffers.
pub(super) struct Queue {
    state: Mutex<State>,
    ready: Condvar,
    free: Condvar,
}

struct State {
    loaded: VecDeque<Loaded>,
    buffers: Vec<PageBuffer>,
    /// The number of buffers that may still be allocated.
    unmade: usize,
    readers: usize,
}

impl Queue {
    /// A queue with this many buffers, filled by this many readers.
    pub(super) fn new(readers: usize, buffers: usize) -> Self {
        let state = State { loaded: VecDeque::new(), buffers: Vec::new(), unmade: buffers, readers };
        Self { state: Mutex::new(state), ready: Condvar::new(), free: Condvar::new() }
    }

    /// Reads the chunks whose numbers `counter` hands out, and adds them to the queue.
    pub(super) fn read_all(&self, context: &Context<'_>, chunks: &Chunks, counter: &Counter, passed: impl Fn(Chunk)) {
        let whole = |_| CHUNK_PAGES;
        while let Some(loaded) = read_next(context, chunks, counter, (&mut None, whole), self.buffer(), &passed) {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).loaded.push_back(loaded);
            self.ready.notify_one();
        }
        self.end_reader();
    }

    /// Notes that a reader has ended, either because it has read everything or because another thread has done its
    /// work.
    pub(super) fn end_reader(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.readers = state.readers.saturating_sub(1);
        self.ready.notify_all();
    }

    fn buffer(&self) -> PageBuffer {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(buffer) = state.buffers.pop() {
                return buffer;
            }
            if state.unmade > 0 {
                state.unmade -= 1;
                return PageBuffer::new(CHUNK_PAGES);
            }
            state = self.free.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next chunk; `None` once all chunks were read and taken.
    pub(super) fn take(&self, meter: &Meter) -> Option<Loaded> {
        let start = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(loaded) = state.loaded.pop_front() {
                meter.idle(start.elapsed());
                return Some(loaded);
            }
            if state.readers == 0 {
                return None;
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns a buffer to the queue.
    pub(super) fn give_back(&self, buffer: PageBuffer) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).buffers.push(buffer);
        self.free.notify_one();
    }
}
