//! Which reads go on where another ended: several streams in one object, each read by several threads.

/// Streams of one object that are followed.
const MOST: usize = 8;
/// What a read of a stream may leave out.
const GAP_BYTES: u64 = 1 << 20;
/// The same for large reads, which several threads make in turn.
const LARGE_GAP_BYTES: u64 = 64 << 20;
/// How far behind others a thread may be.
const BEHIND_BYTES: u64 = 64 << 20;
/// A read of at least this many bytes is not a scattered page.
const LARGE_BYTES: u64 = 256 << 10;
/// Reads in a row that make a stream.
const RUN: u32 = 3;

/// The streams of an object, by number.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    streams: Vec<Stream>,
    clock: u64,
}

#[derive(Debug, Default)]
struct Stream {
    /// Where the furthest read ended.
    at: u64,
    /// Reads in a row.
    run: u32,
    /// Up to where bytes were asked for ahead.
    ahead: u64,
    used: u64,
}

impl Streams {
    /// Notes a read. Returns the stream that it is of, if it is of one; scattered reads are not.
    pub(crate) fn note(&mut self, offset: u64, bytes: u64) -> Option<usize> {
        self.clock += 1;
        let end = offset + bytes;
        let is_large = bytes >= LARGE_BYTES;
        let gap = if is_large { LARGE_GAP_BYTES } else { GAP_BYTES };
        let is_of = |stream: &Stream| {
            let is_behind = stream.run >= RUN && offset.saturating_add(BEHIND_BYTES) >= stream.at;
            offset <= stream.at.saturating_add(gap) && (offset >= stream.at || is_behind)
        };
        let number = match self.streams.iter().position(is_of) {
            Some(number) => number,
            None => {
                let number = if self.streams.len() < MOST { self.streams.len() } else { self.oldest() };
                let stream = Stream { at: offset, ahead: offset, ..Stream::default() };
                match self.streams.get_mut(number) {
                    Some(old) => *old = stream,
                    None => self.streams.push(stream),
                }
                number
            }
        };
        let stream = self.streams.get_mut(number)?;
        stream.used = self.clock;
        if end > stream.at {
            stream.at = end;
            stream.run = stream.run.saturating_add(if is_large { RUN } else { 1 });
        }
        (stream.run >= RUN).then_some(number)
    }

    /// Where bytes of a stream should be asked for next, so that `ahead` of them are on their way before they are read; `None` if
    /// they are. The stream then counts on what is before the end that is returned.
    pub(crate) fn next(&mut self, number: usize, ahead: u64, step: u64) -> Option<(u64, u64)> {
        let stream = self.streams.get_mut(number)?;
        let from = stream.ahead.max(stream.at);
        (from < stream.at.saturating_add(ahead)).then_some((from, from.saturating_add(step)))
    }

    /// Bytes of a stream before `end` were asked for.
    pub(crate) fn asked(&mut self, number: usize, end: u64) {
        if let Some(stream) = self.streams.get_mut(number) {
            stream.ahead = stream.ahead.max(end);
        }
    }

    /// Whether a stream will come to `offset` soon.
    pub(crate) fn covers(&self, offset: u64) -> bool {
        let is_of = |stream: &Stream| {
            stream.run >= RUN && (stream.at..=stream.at.saturating_add(LARGE_GAP_BYTES)).contains(&offset)
        };
        self.streams.iter().any(is_of)
    }

    fn oldest(&self) -> usize {
        self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.used).map_or(0, |(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u64 = 1 << 10;
    const MB: u64 = 1 << 20;

    #[test]
    fn pages_in_a_row_are_a_stream_and_scattered_ones_are_not() {
        let mut streams = Streams::default();
        let found: Vec<_> = (0..5).map(|page| streams.note(page * 8 * KB, 8 * KB)).collect();
        assert_eq!(found, [None, None, Some(0), Some(0), Some(0)]);
        // The pages of allocation, 64 MB apart.
        let mut streams = Streams::default();
        assert!((0..100).all(|page| streams.note(page * 64 * MB, 8 * KB).is_none()));
        // A few bytes of every extent.
        let mut streams = Streams::default();
        assert!((0..100).map(|extent| streams.note(extent * 64 * KB, 40)).skip(2).all(|stream| stream == Some(0)));
    }

    #[test]
    fn several_threads_read_one_stream_and_several_streams_are_told_apart() {
        let mut streams = Streams::default();
        for chunk in [0, 3, 1, 2, 5, 4, 7, 6] {
            assert_eq!(streams.note(chunk * MB, MB), Some(0), "{chunk}");
        }
        for step in 0..10 {
            assert_eq!(streams.note((500 + step) * MB, MB), Some(1));
            assert_eq!(streams.note((8 + step) * MB, MB), Some(0));
        }
    }

    #[test]
    fn what_was_asked_for_is_not_asked_for_again() {
        let mut streams = Streams::default();
        let number = streams.note(0, MB).unwrap();
        assert_eq!(streams.next(number, 16 * MB, 8 * MB), Some((MB, 9 * MB)));
        streams.asked(number, 9 * MB);
        assert_eq!(streams.next(number, 16 * MB, 8 * MB), Some((9 * MB, 17 * MB)));
        streams.asked(number, 17 * MB);
        assert_eq!(streams.next(number, 16 * MB, 8 * MB), None);
        assert!(streams.covers(12 * MB) && !streams.covers(500 * MB));
    }
}
