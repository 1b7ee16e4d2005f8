//! Pieces of objects in memory. A piece is a range of bytes that is requested with one request. It is kept until it has
//! been read and its memory is needed.
//!
//! The pace (`pace`) decides how many requests for the streams may be in progress. Each stream has a window, which
//! begins at the bytes being read and is limited by the stream's share of the memory. The window contains the requested
//! pieces and additional pieces that have arrived. Because of the additional pieces, a late piece, for example after a
//! failed request, does not block the requests after it. A piece is done when callers have received all its bytes. Only
//! a piece for which a thread waits may replace pieces in a window; the pieces furthest ahead of the reads are replaced
//! first.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;

use crate::pace::Pace;
use crate::streams::{StreamKey, Streams};

/// The smallest memory limit with which the pool works.
const LEAST_HELD_BYTES: u64 = 4 << 20;
/// Size in bytes of the largest piece. Each piece is one request.
const LARGE_BYTES: u64 = 8 << 20;
/// Size in bytes from which a piece counts as large.
const LEAST_LARGE_BYTES: u64 = 256 << 10;
/// An announced read with fewer bytes than this counts as a read of single pages.
const LARGE_HINT_BYTES: u64 = 512 << 10;
/// Small pieces begin and end at multiples of this number of bytes.
const SMALL_BYTES: u64 = 64 << 10;
/// The most pieces that may be requested at the same time, not counting pieces for which a thread waits.
const MOST_UNDER_WAY: usize = 256;
/// If announced bytes are not read within this number of reads, the pool no longer expects that they will be read.
const ANNOUNCED_FOR: u64 = 4096;

/// The pool of all pieces of all objects.
pub(crate) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
}

/// The pieces in the pool, and the state of all reads.
pub(crate) struct State {
    pieces: BTreeMap<(u32, u64), Piece>,
    most_bytes: u64,
    held_bytes: u64,
    under_way: usize,
    /// Number of large pieces that have been requested and have not arrived yet.
    large_under_way: usize,
    /// Number of reads begun; it serves as a clock.
    clock: u64,
    pace: Pace,
    streams: Streams,
    /// The reads in progress: object, start and end.
    reading: Vec<(u32, u64, u64)>,
}

struct Piece {
    bytes: u64,
    /// The bytes of the piece; `None` until they arrive.
    content: Option<Bytes>,
    /// Number of bytes of the piece that callers have not received yet. A small piece counts as received completely
    /// after one read of it.
    unread: u64,
    why: Why,
    /// The clock when the piece was requested (`asked`), and when it was last read (`used`).
    asked: u64,
    used: u64,
    /// Number of threads that wait for the piece.
    waiting: u32,
}

/// The reason why a piece is requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// A thread waits for the piece.
    Needed,
    /// A read or a stream will reach the piece.
    Ahead,
    /// A caller announced that it will read the piece.
    Announced,
}

/// The result of looking for the bytes at an offset of an object.
pub(crate) enum Found {
    /// The bytes from that offset on.
    Here(Bytes),
    /// The bytes have been requested but have not arrived. The offset is the start of the piece that contains them.
    UnderWay(u64),
    Nothing,
}

/// A read of an object, which lasts until [`State::ended`].
pub(crate) struct Read {
    object: u32,
    /// Length of the object in bytes.
    length: u64,
    from: u64,
    end: u64,
    /// The stream to which the read belongs.
    stream: Option<StreamKey>,
}

impl Pool {
    /// A pool that keeps at most `most_bytes` bytes; a limit that is too small is raised to the minimum.
    pub(crate) fn new(most_bytes: u64) -> Self {
        Self { state: Mutex::new(State::new(most_bytes, Instant::now())), changed: Condvar::new() }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the pool changes, for example because a piece has arrived. If the caller needs a certain piece of
    /// `object`, `start` is the offset of this piece, which counts as a piece for which a thread waits.
    pub(crate) fn wait<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        object: u32,
        start: Option<u64>,
    ) -> MutexGuard<'s, State> {
        let key = start.map(|start| (object, start));
        let waits = |state: &mut State, change: fn(u32) -> u32| {
            if let Some(piece) = key.and_then(|key| state.pieces.get_mut(&key)) {
                piece.waiting = change(piece.waiting);
            }
        };
        state.pace.waits();
        waits(&mut state, |waiting| waiting.saturating_add(1));
        let mut state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        waits(&mut state, |waiting| waiting.saturating_sub(1));
        // When no thread waits for an arrived piece any more, another piece may replace it, so the other threads are
        // woken.
        let is_free = |piece: &Piece| piece.waiting == 0 && piece.content.is_some();
        if key.and_then(|key| state.pieces.get(&key)).is_some_and(is_free) {
            self.changed.notify_all();
        }
        state
    }

    /// Notes that a request has ended. `content` holds the bytes of the piece, or `None` if they cannot be read.
    pub(crate) fn came(&self, object: u32, start: u64, content: Option<Bytes>) {
        self.state().came(object, start, content, Instant::now());
        self.changed.notify_all();
    }
}

impl State {
    fn new(most_bytes: u64, now: Instant) -> Self {
        Self {
            pieces: BTreeMap::new(),
            most_bytes: most_bytes.max(LEAST_HELD_BYTES),
            held_bytes: 0,
            under_way: 0,
            large_under_way: 0,
            clock: 0,
            pace: Pace::new(now),
            streams: Streams::default(),
            reading: Vec::new(),
        }
    }

    fn came(&mut self, object: u32, start: u64, content: Option<Bytes>, now: Instant) {
        let Some(piece) = self.pieces.get_mut(&(object, start)) else { return };
        let (bytes, is_here) = (piece.bytes, content.is_some());
        piece.content = content;
        self.under_way = self.under_way.saturating_sub(1);
        if bytes >= LEAST_LARGE_BYTES {
            self.large_under_way = self.large_under_way.saturating_sub(1);
        }
        if !is_here {
            self.pieces.remove(&(object, start));
            self.held_bytes -= bytes;
        } else if bytes >= LEAST_LARGE_BYTES {
            self.pace.came(bytes, now);
        }
    }

    /// Keeps the bytes that were read when the object was opened, if there is enough memory.
    pub(crate) fn keep(&mut self, object: u32, content: Bytes) {
        let bytes = content.len() as u64;
        if bytes > 0 && self.make_room(bytes, false) {
            let (asked, used) = (self.clock, self.clock);
            let piece = Piece { bytes, content: Some(content), unread: 0, why: Why::Needed, asked, used, waiting: 0 };
            self.pieces.insert((object, 0), piece);
            self.held_bytes += bytes;
        }
    }

    /// Begins a read of an object of `length` bytes.
    pub(crate) fn read(&mut self, object: u32, length: u64, (from, end): (u64, u64)) -> Read {
        self.clock += 1;
        let is_known = self.piece_at(object, from).is_some();
        let stream = self.streams.note(object, (from, end - from), is_known, self.clock);
        self.reading.push((object, from, end));
        Read { object, length, from, end, stream }
    }

    /// Ends a read, even if it did not get all its bytes.
    pub(crate) fn ended(&mut self, read: &Read) {
        let ended = (read.object, read.from, read.end);
        if let Some(at) = self.reading.iter().position(|reading| *reading == ended) {
            self.reading.swap_remove(at);
        }
    }

    /// The piece that contains the byte at `offset`, and the offset at which the piece starts.
    fn piece_at(&self, object: u32, offset: u64) -> Option<(u64, &Piece)> {
        let (&(_, start), piece) = self.pieces.range((object, 0)..=(object, offset)).next_back()?;
        (offset < start + piece.bytes).then_some((start, piece))
    }

    /// Finds the bytes of an object from `offset` on, at most `most` bytes.
    fn find(&mut self, object: u32, offset: u64, most: u64) -> Found {
        let Some((start, _)) = self.piece_at(object, offset) else { return Found::Nothing };
        let Some(piece) = self.pieces.get_mut(&(object, start)) else { return Found::Nothing };
        piece.used = self.clock;
        let Some(content) = &piece.content else { return Found::UnderWay(start) };
        let skipped = usize::try_from(offset - start).unwrap_or(usize::MAX).min(content.len());
        let end = skipped.saturating_add(usize::try_from(most).unwrap_or(usize::MAX)).min(content.len());
        let found = content.slice(skipped..end);
        let is_small = piece.bytes < LEAST_LARGE_BYTES;
        piece.unread = if is_small { 0 } else { piece.unread.saturating_sub(found.len() as u64) };
        Found::Here(found)
    }

    /// Finds the bytes at offset `at` of a read. Also returns the ranges to request: the bytes that the read needs
    /// next, and then the bytes that its stream will reach. If this function finds no bytes and can request no range,
    /// every piece in memory either has not arrived yet or is needed by a waiting thread.
    pub(crate) fn go_on(&mut self, read: &Read, at: u64) -> (Found, Vec<(u64, u64)>) {
        let (large, window) = self.share();
        let mut begun = Vec::new();
        let from = at / SMALL_BYTES * SMALL_BYTES;
        let end = read.end.next_multiple_of(SMALL_BYTES).min(read.length);
        // If this read is the furthest read of its stream, a whole large piece is requested, also beyond the end of the
        // read. If another thread has read further, or if the read belongs to no stream, only bytes of this read are
        // requested.
        let front = read.stream.filter(|key| self.streams.is_front(*key, read.end));
        let step = self.step(if front.is_some() { large } else { end - from });
        // The bytes at `at` were never requested, were dropped before they were read, or did not fit into memory. The
        // thread waits only for the piece that contains them.
        if self.piece_at(read.object, at).is_none() {
            let to = (from + step).min(read.length);
            let reached = self.begin(read.object, (from, to), step, Why::Needed, &mut begun);
            front.into_iter().for_each(|key| self.streams.asked(key, reached));
        }
        // The found bytes must be taken before further bytes are requested. A request may drop any piece that has been
        // read, even the piece with the found bytes.
        let found = self.find(read.object, at, read.end - at);
        if self.begin(read.object, (from, end), step, Why::Ahead, &mut begun) < end {
            return (found, begun);
        }
        let next = |state: &Self| Some((read.stream?, state.streams.next(read.stream?, window, large)?));
        while let Some((key, (from, to))) = next(self).filter(|(_, (from, _))| *from < read.length) {
            let to = to.min(read.length);
            let reached = self.begin(read.object, (from, to), large, Why::Ahead, &mut begun);
            self.streams.asked(key, reached);
            if reached < to {
                break;
            }
        }
        (found, begun)
    }

    /// The ranges to request after a caller announced that it will read `bytes` bytes from `offset`.
    pub(crate) fn announced(&mut self, object: u32, length: u64, (offset, bytes): (u64, u64)) -> Vec<(u64, u64)> {
        let mut begun = Vec::new();
        // If a stream will reach the bytes, they will be requested in larger pieces later.
        if !self.streams.covers(object, offset) {
            let step = self.step(if bytes >= LARGE_HINT_BYTES { bytes } else { SMALL_BYTES });
            let end = offset.saturating_add(bytes).min(length).next_multiple_of(SMALL_BYTES).min(length);
            self.begin(object, (offset / SMALL_BYTES * SMALL_BYTES, end), step, Why::Announced, &mut begun);
        }
        begun
    }

    /// The size of a piece if `bytes` bytes are needed. It is limited so that several pieces fit into memory.
    fn step(&self, bytes: u64) -> u64 {
        bytes.min(LARGE_BYTES).min(self.most_bytes / 4).max(SMALL_BYTES) / SMALL_BYTES * SMALL_BYTES
    }

    /// Begins requests for the missing bytes between `from` and `to` of an object, in pieces of at most `step` bytes,
    /// until memory is full. Adds their ranges to `begun`. Returns the offset up to which all bytes have arrived or are
    /// requested.
    fn begin(&mut self, object: u32, (from, to): (u64, u64), step: u64, why: Why, begun: &mut Vec<(u64, u64)>) -> u64 {
        let mut at = from;
        while at < to {
            if let Some((start, piece)) = self.piece_at(object, at) {
                at = start + piece.bytes;
                continue;
            }
            let next = self.pieces.range((object, at)..=(object, u64::MAX)).next().map_or(to, |(&(_, start), _)| start);
            let end = next.min(to).min(at + step);
            if self.is_full(end - at, why) || !self.make_room(end - at, why == Why::Needed) {
                return at;
            }
            let bytes = end - at;
            let (asked, used) = (self.clock, self.clock);
            self.pieces
                .insert((object, at), Piece { bytes, content: None, unread: bytes, why, asked, used, waiting: 0 });
            self.held_bytes += bytes;
            self.under_way += 1;
            self.large_under_way += usize::from(bytes >= LEAST_LARGE_BYTES);
            begun.push((at, end));
            at = end;
        }
        at
    }

    /// Whether a piece of `bytes` bytes must not be requested until other pieces have arrived.
    fn is_full(&self, bytes: u64, why: Why) -> bool {
        // Each stream may have at least one large piece in progress.
        let most_large = self.pace.depth().max(self.streams.count());
        let is_full = bytes >= LEAST_LARGE_BYTES && self.large_under_way >= most_large;
        match why {
            Why::Needed => false,
            Why::Ahead => is_full || self.under_way >= MOST_UNDER_WAY,
            Why::Announced => self.under_way >= MOST_UNDER_WAY,
        }
    }

    /// Frees memory for `bytes` bytes by dropping the pieces that are needed least. Returns whether there is enough
    /// memory.
    fn make_room(&mut self, bytes: u64, is_needed: bool) -> bool {
        while self.held_bytes.saturating_add(bytes) > self.most_bytes {
            let ordered =
                self.pieces.iter().filter_map(|(key, piece)| Some((self.order(*key, piece, is_needed)?, *key)));
            let Some((_, (object, start))) = ordered.min() else { return false };
            self.held_bytes -= self.pieces.remove(&(object, start)).map_or(0, |piece| piece.bytes);
            self.streams.given_up(object, start);
        }
        true
    }

    /// The rank of a piece for dropping: the piece with the lowest rank is dropped first. `None` means that the piece
    /// must stay. Done pieces come first, then pieces that no read will reach. In each of these two groups, the pieces
    /// that were read longest ago come first. If a thread waits for the memory (`is_needed`), pieces that will be read
    /// follow, starting with the piece that is furthest ahead.
    fn order(&self, (object, start): (u32, u64), piece: &Piece, is_needed: bool) -> Option<(u8, u64, u64)> {
        if piece.content.is_none() || piece.waiting > 0 {
            return None;
        }
        if piece.unread == 0 {
            return Some((0, piece.used, start));
        }
        let end = start + piece.bytes;
        let is_announced = piece.why == Why::Announced && piece.asked + ANNOUNCED_FOR > self.clock;
        let being_read = self.reading.iter().filter(|&&(of, from, to)| of == object && from < end && start < to);
        let being_read = being_read.map(|(_, from, _)| start.saturating_sub(*from)).min();
        let of_stream = || self.streams.distance(object, (start, end));
        match is_announced.then_some(0).or(being_read).or_else(of_stream) {
            None => Some((1, piece.used, start)),
            Some(distance) => is_needed.then_some((2, u64::MAX - distance, u64::MAX - piece.asked)),
        }
    }

    /// The current size of a large piece, and the size of the window of each stream. All active streams share the
    /// memory. A window has space for the pieces in progress and for additional pieces that have arrived. The number of
    /// additional pieces is at least an eighth of the number of pieces in progress, or half of that number if memory
    /// allows.
    fn share(&self) -> (u64, u64) {
        let streams = self.streams.count().max(1) as u64;
        // An eighth of the memory is left for pieces that have been read and for scattered pages.
        let share = self.most_bytes / 8 * 7 / streams;
        let depth = (self.pace.depth() as u64 / streams).max(1);
        // The divisor counts the pieces in the window, and one more piece that is being read.
        let large = (share / (depth + depth / 8 + 2)).clamp(LEAST_LARGE_BYTES, LARGE_BYTES) / SMALL_BYTES * SMALL_BYTES;
        (large, (large * (depth + depth / 2 + 1)).min(share.saturating_sub(large)))
    }
}

#[cfg(test)]
mod tests;
