//! Pieces of objects in memory: on their way, or there until they were read and others need their room.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;

use crate::pace::Pace;

/// What is kept of all objects at most, without another limit, in bytes.
pub const MOST_HELD_BYTES: u64 = 256 << 20;
/// The least that works.
const LEAST_HELD_BYTES: u64 = 4 << 20;
/// A large piece at most: one request.
const LARGE_BYTES: u64 = 8 << 20;
/// A large piece at least.
const LEAST_LARGE_BYTES: u64 = 256 << 10;
/// Small pieces begin and end at multiples of this.
pub(crate) const SMALL_BYTES: u64 = 64 << 10;
/// Pieces under way at once, without those that somebody waits for.
const MOST_UNDER_WAY: usize = 256;
/// A stream that was not read among so many reads is not counted.
const FORGOTTEN_AFTER: u64 = 1024;

/// All pieces of all objects.
pub(crate) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
}

/// What the pool holds.
pub(crate) struct State {
    pieces: BTreeMap<(u32, u64), Piece>,
    most_bytes: u64,
    held_bytes: u64,
    under_way: usize,
    clock: u64,
    pub(crate) pace: Pace,
    /// When each stream, by object and number, was last read.
    streams: BTreeMap<(u32, usize), u64>,
}

struct Piece {
    bytes: u64,
    /// `None` while it is on its way.
    content: Option<Bytes>,
    used: u64,
    was_read: bool,
    /// Threads that wait for it.
    waiting: u32,
}

/// What is at a place of an object.
pub(crate) enum Found {
    /// The bytes from there on.
    Here(Bytes),
    /// On its way: the start of its piece.
    UnderWay(u64),
    Nothing,
}

impl Pool {
    /// A pool that keeps at most `most_bytes` bytes, or the least it needs.
    pub(crate) fn new(most_bytes: u64) -> Self {
        let state = State {
            pieces: BTreeMap::new(),
            most_bytes: most_bytes.max(LEAST_HELD_BYTES),
            held_bytes: 0,
            under_way: 0,
            clock: 0,
            pace: Pace::new(Instant::now()),
            streams: BTreeMap::new(),
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something has come, for the piece of `object` that begins at `start` if there is one.
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
        // A piece that is no longer awaited may make room for another.
        let is_free = |piece: &Piece| piece.waiting == 0 && piece.content.is_some();
        if key.and_then(|key| state.pieces.get(&key)).is_some_and(is_free) {
            self.changed.notify_all();
        }
        state
    }

    /// A piece has come; `None` if it cannot be had.
    pub(crate) fn came(&self, object: u32, start: u64, content: Option<Bytes>) {
        let mut state = self.state();
        state.under_way = state.under_way.saturating_sub(1);
        match (content, state.pieces.get_mut(&(object, start))) {
            (Some(content), Some(piece)) => {
                let bytes = piece.bytes;
                piece.content = Some(content);
                if bytes >= LEAST_LARGE_BYTES {
                    state.pace.came(bytes, Instant::now());
                }
            }
            _ => {
                let piece = state.pieces.remove(&(object, start));
                state.held_bytes -= piece.map_or(0, |piece| piece.bytes);
            }
        }
        self.changed.notify_all();
    }

    /// Keeps what was read when an object was opened, if there is room.
    pub(crate) fn keep(&self, object: u32, content: Bytes) {
        let mut state = self.state();
        let bytes = content.len() as u64;
        if bytes > 0 && state.make_room(bytes, false) {
            state.clock += 1;
            let used = state.clock;
            let piece = Piece { bytes, content: Some(content), used, was_read: true, waiting: 0 };
            state.pieces.insert((object, 0), piece);
            state.held_bytes += bytes;
        }
    }
}

impl State {
    /// What is at `offset` of an object.
    pub(crate) fn find(&mut self, object: u32, offset: u64) -> Found {
        self.clock += 1;
        let clock = self.clock;
        match self.pieces.range_mut((object, 0)..=(object, offset)).next_back() {
            Some((&(_, start), piece)) if offset < start + piece.bytes => {
                piece.used = clock;
                match &piece.content {
                    Some(content) => {
                        piece.was_read = true;
                        let skipped = usize::try_from(offset - start).unwrap_or(usize::MAX);
                        Found::Here(content.slice(skipped.min(content.len())..))
                    }
                    None => Found::UnderWay(start),
                }
            }
            _ => Found::Nothing,
        }
    }

    /// Makes pieces, under way, of what is missing between `from` and `to` of an object, each of at most `step` bytes, as far as
    /// there is room; `is_needed` if somebody waits for them. Returns those that are to be asked for, and whether that is all.
    pub(crate) fn begin(
        &mut self,
        object: u32,
        (from, to): (u64, u64),
        step: u64,
        is_needed: bool,
    ) -> (Vec<(u64, u64)>, bool) {
        let (mut begun, mut at) = (Vec::new(), from);
        while at < to {
            let before = self.pieces.range((object, 0)..=(object, at)).next_back();
            if let Some((&(_, start), piece)) = before
                && start + piece.bytes > at
            {
                at = start + piece.bytes;
                continue;
            }
            let next = self.pieces.range((object, at)..=(object, u64::MAX)).next().map_or(to, |(&(_, start), _)| start);
            let end = next.min(to).min(at + step.max(SMALL_BYTES));
            let is_full = !is_needed && self.under_way >= MOST_UNDER_WAY;
            if is_full || !self.make_room(end - at, is_needed) {
                return (begun, false);
            }
            self.clock += 1;
            let piece = Piece { bytes: end - at, content: None, used: self.clock, was_read: false, waiting: 0 };
            self.pieces.insert((object, at), piece);
            self.held_bytes += end - at;
            self.under_way += 1;
            begun.push((at, end));
            at = end;
        }
        (begun, true)
    }

    /// Makes room by dropping what was read longest ago. What was not read yet is dropped only for what somebody waits for.
    fn make_room(&mut self, bytes: u64, is_needed: bool) -> bool {
        while self.held_bytes.saturating_add(bytes) > self.most_bytes {
            let may_go = |piece: &Piece| piece.content.is_some() && piece.waiting == 0 && (piece.was_read || is_needed);
            let oldest = self.pieces.iter().filter(|(_, piece)| may_go(piece));
            let oldest = oldest.min_by_key(|(_, piece)| (!piece.was_read, piece.used)).map(|(key, _)| *key);
            let Some(piece) = oldest.and_then(|key| self.pieces.remove(&key)) else { return false };
            self.held_bytes -= piece.bytes;
        }
        true
    }

    /// Notes that a stream is read. Returns the bytes of a large piece now, and how many bytes each stream may have ahead: all
    /// that are read share the memory.
    pub(crate) fn share(&mut self, object: u32, stream: usize) -> (u64, u64) {
        let clock = self.clock;
        self.streams.insert((object, stream), clock);
        if clock.is_multiple_of(64) {
            self.streams.retain(|_, used| *used + FORGOTTEN_AFTER > clock);
        }
        let streams = self.streams.len().max(1) as u64;
        // What is being read needs room too.
        let room = self.most_bytes / 8 * 7 / streams;
        let depth = (self.pace.depth() as u64 / streams).max(1);
        let large = (room / depth.max(2)).clamp(LEAST_LARGE_BYTES, LARGE_BYTES) / SMALL_BYTES * SMALL_BYTES;
        (large, (large * depth).min(room))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn pool(most_bytes: u64) -> Pool {
        Pool::new(most_bytes)
    }

    fn bytes(count: u64) -> Bytes {
        Bytes::from(vec![7; count as usize])
    }

    #[test]
    fn what_is_there_or_on_its_way_is_not_asked_for_again() {
        let pool = pool(64 * MB);
        assert_eq!(pool.state().begin(1, (MB, 2 * MB), 8 * MB, true), (vec![(MB, 2 * MB)], true));
        assert_eq!(pool.state().begin(1, (0, 3 * MB), 8 * MB, true), (vec![(0, MB), (2 * MB, 3 * MB)], true));
        assert_eq!(pool.state().begin(1, (0, 3 * MB), 8 * MB, true), (vec![], true));
        assert!(matches!(pool.state().find(1, 0), Found::UnderWay(0)));
        assert!(matches!(pool.state().find(2, 0), Found::Nothing));
        pool.came(1, 0, Some(bytes(MB)));
        assert!(matches!(pool.state().find(1, MB - 1), Found::Here(rest) if rest.len() == 1));
        assert!(matches!(pool.state().find(1, MB), Found::UnderWay(start) if start == MB));
    }

    #[test]
    fn memory_is_never_more_than_granted() {
        let pool = pool(8 * MB);
        for number in 0..100 {
            let (begun, _) = pool.state().begin(1, (number * MB, (number + 1) * MB), MB, number % 3 == 0);
            assert!(pool.state().held_bytes <= 8 * MB);
            for (start, end) in begun {
                pool.came(1, start, Some(bytes(end - start)));
                if number % 2 == 0 {
                    assert!(matches!(pool.state().find(1, start), Found::Here(_)));
                }
            }
        }
        let state = pool.state();
        assert_eq!(state.held_bytes, state.pieces.values().map(|piece| piece.bytes).sum::<u64>());
    }

    #[test]
    fn what_is_read_ahead_takes_no_room_of_what_was_not_read_yet() {
        let pool = pool(8 * MB);
        let (begun, is_all) = pool.state().begin(1, (0, 20 * MB), MB, false);
        assert!(begun.len() == 8 && !is_all);
        begun.iter().for_each(|&(start, end)| pool.came(1, start, Some(bytes(end - start))));
        assert_eq!(pool.state().begin(1, (10 * MB, 11 * MB), MB, false), (vec![], false));
        assert_eq!(pool.state().begin(1, (10 * MB, 11 * MB), MB, true).0.len(), 1, "somebody waits for it");
    }

    #[test]
    fn a_piece_that_cannot_be_had_leaves_no_trace() {
        let pool = pool(8 * MB);
        pool.state().begin(1, (0, MB), MB, true);
        pool.came(1, 0, None);
        let mut state = pool.state();
        assert!(state.held_bytes == 0 && matches!(state.find(1, 0), Found::Nothing));
    }

    #[test]
    fn many_streams_share_the_memory() {
        let pool = pool(MOST_HELD_BYTES);
        let mut state = pool.state();
        assert_eq!(state.share(1, 0), (LARGE_BYTES, 8 * LARGE_BYTES));
        let shares: Vec<(u64, u64)> = (2..66).map(|object| state.share(object, 0)).collect();
        let &(large, ahead) = shares.last().unwrap();
        assert!(65 * ahead <= MOST_HELD_BYTES && large >= MB && ahead >= large);
    }
}
