//! A point in time in the local time of a server, as `--stop-at` and other options name it.

use events::{Clock, Moment};
use format::log::LogTime;
use serde::{Deserialize, Serialize};

/// The point in time of `--stop-at`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StopMoment {
    /// The time in the format of the log.
    pub time: LogTime,
    /// The time in the format of backup sets: `2020-05-12 13:30:00`.
    text: [u8; 19],
}

impl StopMoment {
    /// The time in the format of backup sets.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// The time in the format of reports. The fraction of a second is shown unless it is zero.
    pub fn shown(&self) -> String {
        let text =
            report::log::time_text(self.time).unwrap_or_else(|| String::from_utf8_lossy(&self.text).into_owned());
        text.strip_suffix(".000").map(str::to_owned).unwrap_or(text)
    }
}

impl TryFrom<String> for StopMoment {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        stop_moment(&text)
    }
}

impl From<StopMoment> for String {
    fn from(moment: StopMoment) -> Self {
        moment.shown()
    }
}

/// Parses a point in time, in the server's local time.
pub fn stop_moment(text: &str) -> Result<StopMoment, String> {
    const DAYS_FROM_1601_TO_1900: i64 = 109_207;
    const TICKS_PER_DAY: i64 = 864_000_000_000;
    let parsed = (|| {
        let (moment, clock) = Moment::parse(text).or_else(|| Moment::parse(&format!("{}T00:00", text.trim())))?;
        // A datetime has 300 ticks per second. Rounds to the nearest tick, since a time shown in milliseconds may be
        // earlier than its tick: the tick at .17333 is shown as .173.
        let rounded = moment.0.saturating_add(100_000 / 6);
        let days = i32::try_from(rounded.div_euclid(TICKS_PER_DAY) - DAYS_FROM_1601_TO_1900).ok()?;
        let ticks = u32::try_from(rounded.rem_euclid(TICKS_PER_DAY) * 3 / 100_000).ok()?;
        let text = *moment.to_string().as_bytes().first_chunk()?;
        (clock == Clock::Local).then_some(StopMoment { time: LogTime { days, ticks }, text })
    })();
    parsed.ok_or_else(|| {
        "expected a point in time in the local time of the server, for example 2020-05-12T13:30:00".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_in_the_ticks_of_the_log() {
        let moment = stop_moment("2024-03-01T00:00:10.5").unwrap();
        assert_eq!((moment.time, &moment.text), (LogTime { days: 45_350, ticks: 3150 }, b"2024-03-01 00:00:10"));
        // Servers also round to the nearest tick. A printed time is therefore converted back to the tick that was
        // printed.
        for (text, days, ticks) in [
            ("2024-03-01T00:00:00.003", 45_350, 1),
            ("2024-03-01T00:00:00.007", 45_350, 2),
            ("2024-03-01T00:00:00.173", 45_350, 52),
            ("2024-03-01T23:59:59.997", 45_350, 86_400 * 300 - 1),
            ("2024-03-01T23:59:59.999", 45_351, 0),
        ] {
            assert_eq!(stop_moment(text).unwrap().time, LogTime { days, ticks }, "{text}");
        }
        assert_eq!(stop_moment("1900-01-02").unwrap().time, LogTime { days: 1, ticks: 0 });
        for text in ["", "now", "2024-03-01T00:00:10Z", "2024-13-01"] {
            assert!(stop_moment(text).is_err(), "{text}");
        }
    }
}
