//! Measures how fast a database is read, and decides whether a range can be read in the remaining time of a time
//! window.

use std::time::Duration;

/// The number of past time windows from which the speed of reading a copy is computed.
pub const WINDOWS: usize = 5;
/// The number of seconds after which the speed measured in the present time window is taken into account.
const MEASURED_SECONDS: f64 = 10.0;

/// The number of bytes that were read and checked, and the seconds that this took.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Swept {
    /// The number of bytes.
    pub bytes: u64,
    /// The seconds that reading and checking these bytes took.
    pub seconds: f64,
}

impl Swept {
    /// Bytes per second; `None` if nothing was measured.
    pub fn rate(self) -> Option<f64> {
        (self.bytes > 0 && self.seconds > 0.0).then(|| self.bytes as f64 / self.seconds)
    }
}

/// How fast a database is read.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Pace {
    /// The median speed of the last time windows, in bytes per second.
    known: Option<f64>,
    /// The bytes and seconds of the ranges that were read in this time window so far.
    now: Swept,
}

impl Pace {
    /// Computes the median speed of the last time windows. `windows` begins with the newest time window.
    pub fn of(windows: &[Swept]) -> Self {
        let mut rates: Vec<f64> = windows.iter().filter_map(|window| window.rate()).take(WINDOWS).collect();
        rates.sort_by(f64::total_cmp);
        Self { known: rates.get(rates.len() / 2).copied(), now: Swept::default() }
    }

    /// Adds a range that was read in this time window.
    pub fn add(&mut self, swept: Swept) {
        self.now.bytes = self.now.bytes.saturating_add(swept.bytes);
        self.now.seconds += swept.seconds;
    }

    /// The number of bytes that were read in this time window, and the seconds that this took.
    pub fn now(&self) -> Swept {
        self.now
    }

    /// The expected speed in bytes per second: the speed in past time windows, or the speed in the present time window
    /// if it is lower. So the check also ends in time in a slow night. `None` if no speed was measured yet.
    pub fn rate(&self) -> Option<f64> {
        let measured = self.now.rate();
        match self.known {
            Some(known) if self.now.seconds < MEASURED_SECONDS => Some(known),
            Some(known) => Some(measured.map_or(known, |measured| measured.min(known))),
            None => measured,
        }
    }

    /// Whether reading and checking a range of `bytes` is expected to end within `left`. The first range of a time
    /// window may start if any time is left, so that each time window makes progress.
    pub fn fits(&self, bytes: u64, left: Duration) -> bool {
        if left.is_zero() {
            return false;
        }
        match self.rate() {
            Some(rate) if self.now.bytes > 0 => bytes as f64 / rate <= left.as_secs_f64(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swept(bytes: u64, seconds: f64) -> Swept {
        Swept { bytes, seconds }
    }

    #[test]
    fn the_pace_is_the_median_of_the_last_five_windows() {
        let windows =
            [swept(500, 1.0), swept(0, 0.0), swept(100, 1.0), swept(300, 1.0), swept(200, 1.0), swept(400, 1.0)];
        assert_eq!(Pace::of(&windows).rate(), Some(300.0));
        let older = [&windows[..], &[swept(9000, 1.0), swept(9000, 1.0)]].concat();
        assert_eq!(Pace::of(&older).rate(), Some(300.0));
        assert_eq!(Pace::of(&[]).rate(), None);
    }

    #[test]
    fn a_window_that_is_slower_than_those_before_goes_by_what_it_measures() {
        let mut pace = Pace::of(&[swept(1000, 1.0)]);
        pace.add(swept(900, 9.0));
        assert_eq!(pace.rate(), Some(1000.0), "nine seconds say little");
        pace.add(swept(100, 1.0));
        assert_eq!(pace.rate(), Some(100.0));
        assert!(pace.fits(1000, Duration::from_secs(10)) && !pace.fits(1001, Duration::from_secs(10)));
        let mut faster = Pace::of(&[swept(1000, 1.0)]);
        faster.add(swept(100_000, 20.0));
        assert_eq!(faster.rate(), Some(1000.0));
    }

    #[test]
    fn the_first_range_is_started_but_never_after_the_end() {
        let mut pace = Pace::of(&[swept(1, 1.0)]);
        assert!(pace.fits(1 << 30, Duration::from_secs(1)) && !pace.fits(1, Duration::ZERO));
        pace.add(swept(1, 1.0));
        assert!(!pace.fits(1 << 30, Duration::from_secs(1)));
    }
}
