//! Decides how many requests may be in progress at the same time (the depth). The depth is doubled while that raises
//! the rate.

use std::time::{Duration, Instant};

/// The depth at the start.
const FIRST: usize = 8;
/// The greatest depth.
const MOST: usize = 64;
/// After the depth was doubled, the doubled depth is kept only if the new rate exceeds the previous rate by more than
/// this factor.
const GAIN: f64 = 1.05;
/// Number of rounds before the depth may be doubled again, if the last doubling raised the rate too little or if the
/// greatest depth is reached.
const REST: usize = 32;
/// The shortest round over which a rate is measured.
const SHORTEST: Duration = Duration::from_millis(20);

/// The depth, and the measurements of the current round.
#[derive(Debug)]
pub(crate) struct Pace {
    depth: usize,
    since: Instant,
    bytes: u64,
    pieces: usize,
    /// Whether a reader had to wait in this round because its bytes did not arrive in time.
    has_waited: bool,
    /// The rate in bytes per second before the depth was doubled; `None` if the last round did not double the depth.
    before: Option<f64>,
    /// Number of rounds until the depth is doubled again. Doubling is tried again because the speed of networks
    /// changes.
    rest: usize,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Self { depth: FIRST, since: now, bytes: 0, pieces: 0, has_waited: false, before: None, rest: 0 }
    }

    /// The number of requests that may be in progress.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Notes that a reader must wait.
    pub(crate) fn waits(&mut self) {
        self.has_waited = true;
    }

    /// Notes that a large piece has arrived. When twice as many pieces as the depth have arrived, the round ends and
    /// its rate is judged.
    pub(crate) fn came(&mut self, bytes: u64, now: Instant) {
        self.bytes += bytes;
        self.pieces += 1;
        let took = now.saturating_duration_since(self.since);
        if self.pieces < 2 * self.depth || took < SHORTEST {
            return;
        }
        if self.has_waited {
            self.judge(self.bytes as f64 / took.as_secs_f64());
        }
        (self.since, self.bytes, self.pieces, self.has_waited) = (now, 0, 0, false);
    }

    fn judge(&mut self, rate: f64) {
        match self.before.take() {
            Some(before) if rate <= before * GAIN => {
                self.depth = (self.depth / 2).max(FIRST);
                self.rest = REST;
            }
            None if self.rest > 0 => self.rest -= 1,
            _ if self.depth >= MOST => self.rest = REST,
            _ => {
                self.depth *= 2;
                self.before = Some(rate);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The depth after some rounds on a simulated line. Each connection delivers `rate` pieces per second, and all
    /// connections together deliver at most `limit` pieces per second.
    fn settled(rate: f64, limit: f64, waits: bool) -> usize {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        for _ in 0..400 {
            now += Duration::from_secs_f64(1.0 / (pace.depth() as f64 * rate).min(limit));
            if waits {
                pace.waits();
            }
            pace.came(8 << 20, now);
        }
        pace.depth()
    }

    #[test]
    fn depth_grows_while_that_brings_more_and_not_further() {
        assert_eq!(settled(10.0, 1e9, true), MOST, "the line has room");
        assert_eq!(settled(10.0, 80.0, true), FIRST, "eight fill the line");
        assert!(matches!(settled(10.0, 160.0, true), 16 | 32));
        assert_eq!(settled(10.0, 1e9, false), FIRST, "nobody waits");
    }
}
