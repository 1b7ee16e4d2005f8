//! Recognizes sequential reads. A stream is a sequence of reads, each of which continues near the end of the previous
//! one. An object may have several streams, and several threads may read one stream.

use std::collections::BTreeMap;

use crate::settings::MOST_HELD_BYTES;

/// The most streams of one object to track.
const MOST: usize = 8;
/// The most bytes that a read may skip and still continue a stream.
const GAP_BYTES: u64 = 1 << 20;
/// The most bytes that a large read may skip and still continue a stream. The limit is higher than for small reads,
/// because several threads make the large reads of one stream in turn.
const LARGE_GAP_BYTES: u64 = 64 << 20;
/// The most bytes by which one thread may be behind the other threads of its stream. While this thread waits for a late
/// piece, the other threads can read at most this far ahead.
const BEHIND_BYTES: u64 = MOST_HELD_BYTES;
/// A read of at least this many bytes counts as a large read, and not as a read of scattered pages.
const LARGE_BYTES: u64 = 256 << 10;
/// Number of consecutive reads that make a stream.
const RUN: u32 = 3;
/// The number of consecutive reads that make a new stream if they are a short distance behind an existing stream and
/// read bytes that were already dropped from memory. A shorter run of such reads may come from slow threads of the
/// existing stream. A longer run is a second pass over the object.
const RUN_AGAIN: u32 = 16;
/// A stream is forgotten when this number of reads have passed since its last read.
const FORGOTTEN_AFTER: u64 = 1024;

/// The key of a stream: the object, and the number of the stream in the object.
pub(crate) type StreamKey = (u32, usize);

/// The streams of all objects.
#[derive(Debug, Default)]
pub(crate) struct Streams(BTreeMap<StreamKey, Stream>);

#[derive(Debug, Default)]
struct Stream {
    /// The offset at which the furthest read ends.
    at: u64,
    /// Number of consecutive reads up to now (`run`), and the number that makes this a stream (`needed`).
    run: u32,
    needed: u32,
    /// The end of the bytes that were requested ahead.
    ahead: u64,
    /// The value of the clock at the last read.
    used: u64,
}

impl Stream {
    fn is_one(&self) -> bool {
        self.run >= self.needed
    }
}

impl Streams {
    /// Notes a read of `bytes` bytes from `offset` of an object; `clock` is the number of reads. `is_known` says
    /// whether these bytes have been requested and not dropped. Returns the stream of the read; `None` for a scattered
    /// read.
    pub(crate) fn note(
        &mut self,
        object: u32,
        (offset, bytes): (u64, u64),
        is_known: bool,
        clock: u64,
    ) -> Option<StreamKey> {
        self.0.retain(|_, stream| stream.used + FORGOTTEN_AFTER > clock);
        let is_large = bytes >= LARGE_BYTES;
        let gap = if is_large { LARGE_GAP_BYTES } else { GAP_BYTES };
        let goes_on = |stream: &Stream| (stream.at..=stream.at.saturating_add(gap)).contains(&offset);
        // The read is behind a stream: other threads of the stream have read on while this thread waited.
        let is_behind =
            |stream: &Stream| stream.is_one() && offset < stream.at && offset.saturating_add(BEHIND_BYTES) >= stream.at;
        let of_object = || self.0.range((object, 0)..=(object, usize::MAX));
        let found = of_object().filter(|(_, stream)| goes_on(stream) || is_known && is_behind(stream));
        let nearest = found.min_by_key(|(_, stream)| stream.at.abs_diff(offset)).map(|(key, _)| *key);
        let key = nearest.unwrap_or_else(|| self.free(object));
        if nearest.is_none() {
            let needed = if of_object().any(|(_, stream)| is_behind(stream)) { RUN_AGAIN } else { RUN };
            self.0.insert(key, Stream { at: offset, ahead: offset, needed, ..Stream::default() });
        }
        let stream = self.0.get_mut(&key)?;
        stream.used = clock;
        let end = offset + bytes;
        if end > stream.at {
            stream.at = end;
            stream.run = stream.run.saturating_add(if is_large && stream.needed == RUN { RUN } else { 1 });
        }
        stream.is_one().then_some(key)
    }

    /// The key for a new stream of an object. If the object already has the greatest number of streams, this is the key
    /// of the stream that was read longest ago.
    fn free(&self, object: u32) -> StreamKey {
        let of_object = || self.0.range((object, 0)..=(object, usize::MAX));
        let free = (0..MOST).map(|number| (object, number)).find(|key| !self.0.contains_key(key));
        let oldest = || of_object().min_by_key(|(_, stream)| stream.used).map(|(key, _)| *key);
        free.or_else(oldest).unwrap_or((object, 0))
    }

    /// Number of active streams of all objects.
    pub(crate) fn count(&self) -> usize {
        self.0.values().filter(|stream| stream.is_one()).count()
    }

    /// Whether the furthest read of a stream ends at or before `end`.
    pub(crate) fn is_front(&self, key: StreamKey, end: u64) -> bool {
        self.0.get(&key).is_some_and(|stream| stream.at <= end)
    }

    /// The next `step` bytes of a stream to request; `None` if all bytes up to `window` bytes after the furthest read
    /// have already been requested.
    pub(crate) fn next(&self, key: StreamKey, window: u64, step: u64) -> Option<(u64, u64)> {
        let stream = self.0.get(&key)?;
        let from = stream.ahead.max(stream.at);
        let to = from.saturating_add(step);
        (to <= stream.at.saturating_add(window)).then_some((from, to))
    }

    /// Notes that the bytes of a stream before `end` were requested.
    pub(crate) fn asked(&mut self, key: StreamKey, end: u64) {
        if let Some(stream) = self.0.get_mut(&key) {
            stream.ahead = stream.ahead.max(end);
        }
    }

    /// Notes that bytes of an object from `start` on, which had been requested ahead, were dropped. They will be
    /// requested again when the stream reaches them.
    pub(crate) fn given_up(&mut self, object: u32, start: u64) {
        for (_, stream) in self.0.range_mut((object, 0)..=(object, usize::MAX)) {
            if stream.at <= start && start < stream.ahead {
                stream.ahead = start;
            }
        }
    }

    /// Returns how many bytes the range from `from` to `to` of an object is ahead of the nearest stream that will reach
    /// it; `None` if no stream has requested the range ahead.
    pub(crate) fn distance(&self, object: u32, (from, to): (u64, u64)) -> Option<u64> {
        let comes = |stream: &&Stream| stream.is_one() && stream.at < to && from < stream.ahead;
        let streams = self.0.range((object, 0)..=(object, usize::MAX)).map(|(_, stream)| stream);
        streams.filter(comes).map(|stream| from.saturating_sub(stream.at)).min()
    }

    /// Whether a stream will reach `offset` soon.
    pub(crate) fn covers(&self, object: u32, offset: u64) -> bool {
        let is_of = |stream: &Stream| {
            stream.is_one() && (stream.at..=stream.at.saturating_add(LARGE_GAP_BYTES)).contains(&offset)
        };
        self.0.range((object, 0)..=(object, usize::MAX)).any(|(_, stream)| is_of(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u64 = 1 << 10;
    const MB: u64 = 1 << 20;

    /// The streams, and the number of reads up to now.
    #[derive(Default)]
    struct Noted(Streams, u64);

    impl Noted {
        fn note(&mut self, offset: u64, bytes: u64, is_known: bool) -> Option<usize> {
            self.1 += 1;
            self.0.note(1, (offset, bytes), is_known, self.1).map(|(_, number)| number)
        }
    }

    #[test]
    fn pages_in_a_row_are_a_stream_and_scattered_ones_are_not() {
        let mut streams = Noted::default();
        let found: Vec<_> = (0..5).map(|page| streams.note(page * 8 * KB, 8 * KB, false)).collect();
        assert_eq!(found, [None, None, Some(0), Some(0), Some(0)]);
        // Reads allocation pages, which are 64 MB apart here. These reads must not count as a stream.
        let mut streams = Noted::default();
        assert!((0..100).all(|page| streams.note(page * 64 * MB, 8 * KB, false).is_none()));
        // Reads a few bytes in every extent. From the third read on, the reads must count as a stream.
        let mut streams = Noted::default();
        let mut found = (0..100).map(|extent| streams.note(extent * 64 * KB, 40, false)).skip(2);
        assert!(found.all(|stream| stream == Some(0)));
    }

    #[test]
    fn several_threads_read_one_stream_and_several_streams_are_told_apart() {
        let mut streams = Noted::default();
        for chunk in [0, 3, 1, 2, 5, 4, 7, 6] {
            assert_eq!(streams.note(chunk * MB, MB, chunk > 0), Some(0), "{chunk}");
        }
        for step in 0..10 {
            assert_eq!(streams.note((500 + step) * MB, MB, false), Some(1));
            assert_eq!(streams.note((8 + step) * MB, MB, true), Some(0));
        }
        assert_eq!(streams.0.count(), 2);
        assert_eq!(streams.0.note(2, (0, MB), false, streams.1), Some((2, 0)), "another object");
    }

    #[test]
    fn a_thread_whose_piece_was_late_makes_no_stream_of_its_own_and_a_second_pass_does() {
        let mut streams = Noted::default();
        (0..500).for_each(|chunk| assert_eq!(streams.note(chunk * MB, MB, true), Some(0)));
        assert_eq!(streams.note(300 * MB, MB, true), Some(0), "its piece is there now");
        assert_eq!(streams.0.count(), 1);
        // First one thread reads a piece that was dropped; this read must not count as a stream. Then all threads make
        // a second pass, which must become a new stream.
        assert_eq!(streams.note(400 * MB, MB, false), None);
        let found: Vec<_> = (300..320).map(|chunk| streams.note(chunk * MB, MB, false)).collect();
        assert!(found[..15].iter().all(Option::is_none) && found[15..].iter().all(|stream| *stream == Some(2)));
        // Several threads begin a stream in any order. Their reads must count as one stream.
        let mut streams = Noted::default();
        for chunk in [3, 0, 1, 2, 4, 5] {
            streams.note(chunk * MB, MB, chunk > 3);
        }
        assert_eq!(streams.0.count(), 1);
    }

    #[test]
    fn what_was_asked_for_is_not_asked_for_again_unless_it_was_given_up() {
        let Noted(mut streams, _) = Noted::default();
        let key = streams.note(1, (0, MB), false, 1).unwrap();
        assert_eq!(streams.next(key, 16 * MB, 8 * MB), Some((MB, 9 * MB)));
        streams.asked(key, 9 * MB);
        assert_eq!(streams.next(key, 16 * MB, 8 * MB), Some((9 * MB, 17 * MB)));
        streams.asked(key, 17 * MB);
        assert_eq!(streams.next(key, 16 * MB, 8 * MB), None);
        assert!(streams.covers(1, 12 * MB) && !streams.covers(1, 500 * MB) && !streams.covers(2, 12 * MB));
        assert_eq!(streams.distance(1, (9 * MB, 17 * MB)), Some(8 * MB));
        assert_eq!(streams.distance(1, (0, MB)), None);
        streams.given_up(1, 9 * MB);
        assert_eq!(streams.next(key, 16 * MB, 8 * MB), Some((9 * MB, 17 * MB)));
    }
}
