//! Decides which range is read next, and whether a promise is kept. A promise says that every page in use was read, or
//! that every heap and index was proven to be sound, within a time span. All functions depend only on their arguments,
//! which include the present time.

use std::time::Duration;

/// A range of pages and when it was last read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The number of the range. Ranges are numbered from 0, ordered by file and page.
    pub id: u32,
    /// The size of the range in bytes.
    pub bytes: u64,
    /// Whether any page of the range is in use.
    pub is_in_use: bool,
    /// When the range was last read, in seconds since 1970; `None` if never.
    pub read_at: Option<i64>,
    /// The time since which the history has known the range, in seconds since 1970. The age of a range that was never
    /// read is counted from this time.
    pub known_since: i64,
    /// Whether a page of the range has a new finding. If so, the range is read first, to see whether the finding is
    /// still there.
    pub is_doubted: bool,
}

impl Range {
    /// The date from which the age of the range is counted.
    fn date(&self) -> i64 {
        self.read_at.unwrap_or(self.known_since)
    }
}

/// Sorts ranges into the order in which they are read: first the ranges with new findings, then the ranges that were
/// never read, then the ranges with the oldest reads.
pub fn put_in_order(ranges: &mut [Range]) {
    ranges.sort_by_key(|range| (!range.is_doubted, range.read_at, range.id));
}

/// The time between two time windows, and the number of bytes that are read in each of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rhythm {
    /// The number of bytes that are read in a time window; `None` if the number is not known yet.
    pub bytes: Option<f64>,
    /// The time from the start of a time window to the start of the next one.
    pub every: Duration,
}

impl Rhythm {
    /// The number of time windows needed to read `bytes`; `None` if unknown.
    pub fn windows(&self, bytes: u64) -> Option<u64> {
        let each = self.bytes.filter(|bytes| *bytes >= 1.0)?;
        Some((bytes as f64 / each).ceil() as u64)
    }

    /// The number of seconds until this number of further time windows has ended.
    fn seconds(&self, windows: u64) -> i64 {
        let every = i64::try_from(self.every.as_secs()).unwrap_or(i64::MAX);
        i64::try_from(windows).unwrap_or(i64::MAX).saturating_mul(every)
    }
}

/// Whether a promise is kept. A promise says that every page in use was read, or that every heap and index was proven
/// to be sound, within a time span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// The promise is kept, and will be kept at the present speed.
    Yes,
    /// The promise is broken. The value is the time of the oldest read or proof, in seconds since 1970.
    Broken(i64),
    /// The promise is still kept, but will be broken at the present speed. The value is the number of time windows that
    /// reading all pages takes.
    Never(u64),
    /// The promise cannot be kept, because the image changes from one time window to the next, so it must be read in a
    /// single time window. The value is the number of time windows that reading it takes at the present speed.
    Moves(u64),
}

impl Kept {
    /// Whether the promise is kept.
    pub fn is_kept(self) -> bool {
        self == Self::Yes
    }
}

/// The data with which promises are judged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judge {
    /// The present time, in seconds since 1970.
    pub now: i64,
    /// The time span that the promise allows, in seconds.
    pub within: i64,
    /// The time between two time windows, and the number of bytes that are read in each of them.
    pub rhythm: Rhythm,
}

impl Judge {
    /// Judges the promise that each page in use was read within the span `within`. `ranges` contains all ranges of the
    /// database. `is_left` returns true for a range that has not been read from the present image yet.
    pub fn read(&self, ranges: &[Range], is_left: impl Fn(&Range) -> bool) -> Kept {
        let in_use = || ranges.iter().filter(|range| range.is_in_use);
        if let Some(oldest) = in_use().map(Range::date).min()
            && oldest < self.now.saturating_sub(self.within)
        {
            return Kept::Broken(oldest);
        }
        let all = ranges.iter().map(|range| range.bytes).sum();
        let Some(cycle) = self.rhythm.windows(all) else { return Kept::Yes };
        // The unread ranges of the present image are read first. Then the next image is read, beginning with the range
        // that was read longest ago.
        let (mut left, mut done): (Vec<Range>, Vec<Range>) = ranges.iter().partition(|range| is_left(range));
        put_in_order(&mut left);
        put_in_order(&mut done);
        let mut bytes = 0;
        for range in left.iter().chain(&done) {
            bytes += range.bytes;
            let windows = self.rhythm.windows(bytes).unwrap_or_default();
            let read_at = self.now.saturating_add(self.rhythm.seconds(windows));
            if range.is_in_use && read_at.saturating_sub(range.date()) > self.within {
                return Kept::Never(cycle);
            }
        }
        Kept::Yes
    }

    /// Judges the promise that every heap and index was proven to be sound within the span `within`. `date` is the time
    /// of the last image that was read completely or, if there is none, the time since which the history has known the
    /// database. The present image has `all` bytes, of which `left` bytes are still unread. `is_fixed` tells whether
    /// the image stays the same from one time window to the next.
    pub fn closed(&self, date: i64, (left, all): (u64, u64), is_fixed: bool) -> Kept {
        if date < self.now.saturating_sub(self.within) {
            return Kept::Broken(date);
        }
        let Some(cycle) = self.rhythm.windows(all) else { return Kept::Yes };
        if !is_fixed && cycle > 1 {
            return Kept::Moves(cycle);
        }
        let left = self.rhythm.windows(left).unwrap_or_default();
        match self.now.saturating_add(self.rhythm.seconds(left)).saturating_sub(date) > self.within {
            true => Kept::Never(cycle),
            false => Kept::Yes,
        }
    }
}

#[cfg(test)]
#[path = "promise/tests.rs"]
mod tests;
