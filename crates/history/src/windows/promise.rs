//! Which range comes next, and whether a promise is kept: pure functions without a clock of their own.

use std::time::Duration;

/// A range of pages and when it was last read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Its number: ranges count from 0, by file and page.
    pub id: u32,
    /// Its bytes.
    pub bytes: u64,
    /// Whether any of its pages is in use.
    pub is_in_use: bool,
    /// When its pages were last read, in seconds since 1970; `None` if never.
    pub read_at: Option<i64>,
    /// Since when the range is known: pages that were never read count as this old.
    pub known_since: i64,
    /// Whether one of its pages has a new finding: the range then comes first, for a second look.
    pub is_doubted: bool,
}

impl Range {
    /// The date that counts for the age of the range.
    fn date(&self) -> i64 {
        self.read_at.unwrap_or(self.known_since)
    }
}

/// Puts ranges in the order in which they are read: those with new findings, those never read, then the oldest.
pub fn put_in_order(ranges: &mut [Range]) {
    ranges.sort_by_key(|range| (!range.is_doubted, range.read_at, range.id));
}

/// The time between windows, and how much one of them reads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rhythm {
    /// Bytes that a window reads; `None` if unknown yet.
    pub bytes: Option<f64>,
    /// The time from the start of a window to the start of the next one.
    pub every: Duration,
}

impl Rhythm {
    /// The number of windows that reading `bytes` takes; `None` if unknown.
    pub fn windows(&self, bytes: u64) -> Option<u64> {
        let each = self.bytes.filter(|bytes| *bytes >= 1.0)?;
        Some((bytes as f64 / each).ceil() as u64)
    }

    /// Seconds until that many further windows have ended.
    fn seconds(&self, windows: u64) -> i64 {
        let every = i64::try_from(self.every.as_secs()).unwrap_or(i64::MAX);
        i64::try_from(windows).unwrap_or(i64::MAX).saturating_mul(every)
    }
}

/// Whether a promise is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Kept, as far as can be foreseen.
    Yes,
    /// Broken: the oldest proof is from this time, in seconds since 1970.
    Broken(i64),
    /// Will be broken at the present speed: a cycle takes this number of windows.
    Never(u64),
    /// The image changes before all of it is read. One window would have to read it all; at the present speed that
    /// takes this number of windows.
    Moves(u64),
}

impl Kept {
    /// Whether it is kept.
    pub fn is_kept(self) -> bool {
        self == Self::Yes
    }
}

/// The basis on which promises are judged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judge {
    /// Now, in seconds since 1970.
    pub now: i64,
    /// The promised span, in seconds.
    pub within: i64,
    /// The time between windows, and how much one of them reads.
    pub rhythm: Rhythm,
}

impl Judge {
    /// Judges the promise that every page in use was read within the span. `ranges` are all ranges; `is_left` selects
    /// those that this image still needs.
    pub fn read(&self, ranges: &[Range], is_left: impl Fn(&Range) -> bool) -> Kept {
        let in_use = || ranges.iter().filter(|range| range.is_in_use);
        if let Some(oldest) = in_use().map(Range::date).min()
            && oldest < self.now.saturating_sub(self.within)
        {
            return Kept::Broken(oldest);
        }
        let all = ranges.iter().map(|range| range.bytes).sum();
        let Some(cycle) = self.rhythm.windows(all) else { return Kept::Yes };
        // The ranges that this image still needs come first; then the next image is read from its oldest range on.
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

    /// Judges the promise that every relation was proven within the span. `date` is the time of the last closed image,
    /// or since when the database is known. The present image still needs `left` of its `all` bytes, and must not
    /// change (`is_fixed`) until it is closed.
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
