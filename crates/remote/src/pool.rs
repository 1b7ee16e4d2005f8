//! Pieces of objects in memory: requested, or kept until they have been read and their memory is needed.
//!
//! The pace decides how many requests are under way for the streams. Each stream has a window, limited by its share of
//! the memory: it begins at the bytes being read, and contains the pieces that have arrived and those under way. It is
//! longer than the pieces under way, so that a late piece, for example after a failed request, does not block the
//! requests after it. A piece is done when all its bytes have been handed out. A piece that a thread waits for may
//! replace pieces in a window, the furthest first; no other piece may.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;

use crate::pace::Pace;
use crate::streams::{StreamKey, Streams};

/// The most bytes of objects to keep in memory, unless another limit is set.
pub const MOST_HELD_BYTES: u64 = 256 << 20;
/// The smallest limit that works.
const LEAST_HELD_BYTES: u64 = 4 << 20;
/// Bytes of the largest piece, which is one request.
const LARGE_BYTES: u64 = 8 << 20;
/// Bytes from which on a piece counts as large.
const LEAST_LARGE_BYTES: u64 = 256 << 10;
/// Announced reads shorter than this are single pages.
const LARGE_HINT_BYTES: u64 = 512 << 10;
/// Small pieces begin and end at multiples of this.
const SMALL_BYTES: u64 = 64 << 10;
/// The most pieces under way at once, not counting those that a thread waits for.
const MOST_UNDER_WAY: usize = 256;
/// Announced bytes that were not read within this number of reads will not be read.
const ANNOUNCED_FOR: u64 = 4096;

/// All pieces of all objects.
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
    /// The large pieces among them.
    large_under_way: usize,
    /// Number of reads so far.
    clock: u64,
    pace: Pace,
    streams: Streams,
    /// Reads under way: object, start and end.
    reading: Vec<(u32, u64, u64)>,
}

struct Piece {
    bytes: u64,
    /// The bytes; `None` while they are under way.
    content: Option<Bytes>,
    /// Bytes that were not handed out yet. For a small piece, handing out one page is enough.
    unread: u64,
    why: Why,
    /// The value of the clock when the piece was requested, and when it was last read.
    asked: u64,
    used: u64,
    /// Number of threads that wait for it.
    waiting: u32,
}

/// Why bytes are requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// A thread waits for them.
    Needed,
    /// A stream will reach them.
    Ahead,
    /// A caller announced that it will read them.
    Announced,
}

/// The bytes at a place of an object.
pub(crate) enum Found {
    /// The bytes from there on.
    Here(Bytes),
    /// Under way, in the piece that starts at this offset.
    UnderWay(u64),
    Nothing,
}

/// A read of an object, until [`State::ended`].
pub(crate) struct Read {
    object: u32,
    /// Length of the object in bytes.
    length: u64,
    from: u64,
    end: u64,
    /// The stream that it belongs to.
    stream: Option<StreamKey>,
}

impl Pool {
    /// A pool that keeps at most `most_bytes` bytes, or the minimum that it needs.
    pub(crate) fn new(most_bytes: u64) -> Self {
        Self { state: Mutex::new(State::new(most_bytes, Instant::now())), changed: Condvar::new() }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something has arrived: the piece of `object` that begins at `start`, if given.
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
        // A piece that no thread waits for any more may be replaced by another.
        let is_free = |piece: &Piece| piece.waiting == 0 && piece.content.is_some();
        if key.and_then(|key| state.pieces.get(&key)).is_some_and(is_free) {
            self.changed.notify_all();
        }
        state
    }

    /// Notes that a piece has arrived; `None` if it cannot be read.
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

    /// Keeps the bytes that were read when an object was opened, if there is enough memory.
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

    /// Ends a read, whether it got all its bytes or not.
    pub(crate) fn ended(&mut self, read: &Read) {
        let ended = (read.object, read.from, read.end);
        if let Some(at) = self.reading.iter().position(|reading| *reading == ended) {
            self.reading.swap_remove(at);
        }
    }

    /// The piece with the byte at `offset`.
    fn piece_at(&self, object: u32, offset: u64) -> Option<(u64, &Piece)> {
        let (&(_, start), piece) = self.pieces.range((object, 0)..=(object, offset)).next_back()?;
        (offset < start + piece.bytes).then_some((start, piece))
    }

    /// At most `most` bytes from `offset` of an object on.
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

    /// The bytes at offset `at` of a read, and the ranges to request: the bytes needed next, and those that its stream
    /// will reach then. If nothing is found and nothing can be requested, all other pieces are under way or waited for.
    pub(crate) fn go_on(&mut self, read: &Read, at: u64) -> (Found, Vec<(u64, u64)>) {
        let (large, window) = self.share();
        let mut begun = Vec::new();
        let from = at / SMALL_BYTES * SMALL_BYTES;
        let end = read.end.next_multiple_of(SMALL_BYTES).min(read.length);
        // A thread behind the others needs no more than this.
        let front = read.stream.filter(|key| self.streams.is_front(*key, read.end));
        let step = self.step(if front.is_some() { large } else { end - from });
        // Not requested yet, dropped before it was read, or there was not enough memory. Only this piece is waited for
        // now.
        if self.piece_at(read.object, at).is_none() {
            let to = (from + step).min(read.length);
            let reached = self.begin(read.object, (from, to), step, Why::Needed, &mut begun);
            front.into_iter().for_each(|key| self.streams.asked(key, reached));
        }
        // Must happen before anything is requested ahead, which may drop a piece that was read, even this one.
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

    /// The ranges to request because a caller announced that it will read `bytes` bytes from `offset` on.
    pub(crate) fn announced(&mut self, object: u32, length: u64, (offset, bytes): (u64, u64)) -> Vec<(u64, u64)> {
        let mut begun = Vec::new();
        // Bytes that a stream will reach are requested in larger pieces.
        if !self.streams.covers(object, offset) {
            let step = self.step(if bytes >= LARGE_HINT_BYTES { bytes } else { SMALL_BYTES });
            let end = offset.saturating_add(bytes).min(length).next_multiple_of(SMALL_BYTES).min(length);
            self.begin(object, (offset / SMALL_BYTES * SMALL_BYTES, end), step, Why::Announced, &mut begun);
        }
        begun
    }

    /// The bytes of one piece if `bytes` bytes are needed: small enough for several pieces in memory.
    fn step(&self, bytes: u64) -> u64 {
        bytes.min(LARGE_BYTES).min(self.most_bytes / 4).max(SMALL_BYTES) / SMALL_BYTES * SMALL_BYTES
    }

    /// Adds pieces under way for the missing bytes between `from` and `to` of an object, each of at most `step` bytes,
    /// as far as memory allows, and lists them in `begun`. Returns the offset up to which everything is there or under
    /// way.
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

    /// Whether a piece of `bytes` bytes must wait until others have arrived.
    fn is_full(&self, bytes: u64, why: Why) -> bool {
        // Each stream may have at least one.
        let most_large = self.pace.depth().max(self.streams.count());
        let is_full = bytes >= LEAST_LARGE_BYTES && self.large_under_way >= most_large;
        match why {
            Why::Needed => false,
            Why::Ahead => is_full || self.under_way >= MOST_UNDER_WAY,
            Why::Announced => self.under_way >= MOST_UNDER_WAY,
        }
    }

    /// Frees memory by dropping the pieces that are needed least; returns whether there is enough.
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

    /// The rank of a piece for dropping; `None` if it must stay. First pieces that are done, then pieces that no read
    /// will reach, each in the order in which they were last read. If a thread waits (`is_needed`), then also pieces
    /// that will be read, the furthest ahead first.
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

    /// The current size of a large piece, and of the window of each stream; all active streams share the memory. Beyond
    /// the pieces under way, the window has space for an eighth as many that have arrived, or for half as many if
    /// memory allows.
    fn share(&self) -> (u64, u64) {
        let streams = self.streams.count().max(1) as u64;
        // Pieces already read and scattered pages need memory too.
        let share = self.most_bytes / 8 * 7 / streams;
        let depth = (self.pace.depth() as u64 / streams).max(1);
        // One more piece is being read.
        let large = (share / (depth + depth / 8 + 2)).clamp(LEAST_LARGE_BYTES, LARGE_BYTES) / SMALL_BYTES * SMALL_BYTES;
        (large, (large * (depth + depth / 2 + 1)).min(share.saturating_sub(large)))
    }
}

#[cfg(test)]
mod tests;
