//! Points in time, counted like a Windows FILETIME.

use std::fmt;

use format::types::civil;

/// Ticks per second.
const SECOND: i64 = 10_000_000;
const DAY: i64 = 86_400 * SECOND;
/// Days from 0001-01-01, the first day that [`civil`] counts, to 1601-01-01.
const DAYS_TO_1601: i64 = 584_388;

/// A point in time: the number of 100 ns ticks since 1601-01-01, like a FILETIME. The time zone is not included; a
/// separate [`Clock`] gives it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Moment(pub i64);

/// The clock by which a [`Moment`] was measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Clock {
    /// Universal time.
    Utc,
    /// The server's local time, with an unknown offset from UTC.
    Local,
}

impl Moment {
    /// Ticks per millisecond.
    pub const MILLISECOND: i64 = SECOND / 1000;

    /// Makes a point in time from a date and a time of day; `None` for invalid dates.
    pub fn of(year: i64, month: i64, day: i64, ticks_of_day: i64) -> Option<Self> {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = match month {
            2 => 28 + i64::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        if !(1601..=9999).contains(&year) || !(1..=length).contains(&day) || !(0..DAY).contains(&ticks_of_day) {
            return None;
        }
        // Counts years from March, so that the leap day is the last day of a year.
        let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let days = years * 365 + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 1;
        // 584,694 is the number of days that this formula gives for 1601-01-01.
        Some(Self((days - 584_694) * DAY + ticks_of_day))
    }

    /// Makes a point in time from the fields of a datetime in a data file: ticks of 1/300 second within the day, and
    /// days since 1900-01-01.
    pub fn of_datetime(ticks: u32, days: i32) -> Option<Self> {
        const DAYS_TO_1900: i64 = 109_207;
        let whole = (i64::from(days) + DAYS_TO_1900).checked_mul(DAY)?;
        (ticks < 25_920_000).then(|| Self(whole + i64::from(ticks) * SECOND / 300))
    }

    /// Parses `2016-07-09T03:30:14.0234567Z`. The T may be a blank, the Z may be an offset such as `+02:00`, and the
    /// fraction or the seconds may be missing. Without a Z or an offset, the time is in the server's local time.
    pub fn parse(text: &str) -> Option<(Self, Clock)> {
        let text = text.trim();
        let (moment, rest) = Self::parse_start(text)?;
        if rest.is_empty() {
            return Some((moment, Clock::Local));
        }
        if rest == "Z" || rest == "z" {
            return Some((moment, Clock::Utc));
        }
        Some((Self(moment.0.checked_sub(offset_minutes(rest)?.checked_mul(60 * SECOND)?)?), Clock::Utc))
    }

    /// Parses the date and time at the start of `text`. Also returns the remaining text.
    pub fn parse_start(text: &str) -> Option<(Self, &str)> {
        let (year, rest) = digits(text, 4)?;
        let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
        let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
        let (hour, rest) = digits(rest.strip_prefix(['T', 't', ' '])?, 2)?;
        let (minute, mut rest) = digits(rest.strip_prefix(':')?, 2)?;
        let mut ticks = 0;
        if let Some((seconds, after)) = rest.strip_prefix(':').and_then(|after| digits(after, 2)) {
            if seconds > 59 {
                return None;
            }
            (ticks, rest) = (seconds * SECOND, after);
            if let Some(parts) = rest.strip_prefix('.') {
                let length = parts.bytes().take_while(u8::is_ascii_digit).count();
                let (parts, after) = parts.split_at_checked(length).filter(|_| length > 0)?;
                let value = parts.bytes().chain(std::iter::repeat(b'0')).take(7);
                ticks += value.fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
                rest = after;
            }
        }
        if hour > 23 || minute > 59 {
            return None;
        }
        Some((Self::of(year, month, day, (hour * 60 + minute) * 60 * SECOND + ticks)?, rest))
    }

    /// The point in time that is `minutes` later.
    pub fn plus_minutes(self, minutes: i64) -> Self {
        Self(self.0.saturating_add(minutes.saturating_mul(60 * SECOND)))
    }

    /// The start of the hour that contains this point in time.
    pub fn hour(self) -> Self {
        Self(self.0.saturating_sub(self.0.rem_euclid(3600 * SECOND)))
    }

    /// This point in time, rounded to the nearest millisecond.
    #[must_use]
    pub fn rounded(self) -> Self {
        let half = self.0.saturating_add(Self::MILLISECOND / 2);
        Self(half.saturating_sub(half.rem_euclid(Self::MILLISECOND)))
    }

    /// Formats the time as ISO 8601: `2016-07-09T03:30:14.023Z`. Local time has no Z and is rounded to milliseconds,
    /// because logs in local time have no more than three digits of the fraction.
    pub fn iso(self, clock: Clock) -> String {
        match clock {
            Clock::Utc => self.to_string().replacen(' ', "T", 1) + "Z",
            Clock::Local => self.rounded().to_string().replacen(' ', "T", 1),
        }
    }
}

/// Formats the date and time with three digits of the fraction, or with seven digits if the time is not a whole number
/// of milliseconds.
impl fmt::Display for Moment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ticks) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        let (year, month, day) = civil(i32::try_from(days + DAYS_TO_1601).unwrap_or(i32::MAX));
        let (seconds, parts) = (ticks / SECOND, ticks % SECOND);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(out, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")?;
        match parts % Self::MILLISECOND {
            0 => write!(out, ".{:03}", parts / Self::MILLISECOND),
            _ => write!(out, ".{parts:07}"),
        }
    }
}

/// Parses an offset such as `+02:00` or `-8:00` as minutes.
pub(crate) fn offset_minutes(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, rest) = digits(hours, hours.len().clamp(1, 2))?;
    let (minutes, after) = digits(minutes, 2)?;
    (rest.is_empty() && after.is_empty() && hours <= 14 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
}

/// Parses a number of exactly `count` digits. Also returns the remaining text.
fn digits(text: &str, count: usize) -> Option<(i64, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_and_written_alike() {
        for text in ["2016-07-09T03:30:14.023Z", "1601-01-01T00:00:00.000Z", "2000-02-29T23:59:59.9999999Z"] {
            let (moment, clock) = Moment::parse(text).unwrap();
            assert_eq!((moment.iso(clock).as_str(), clock), (text, Clock::Utc));
        }
        assert_eq!(Moment::parse("1970-01-01 00:00").unwrap(), (Moment(134_774 * DAY), Clock::Local));
        let (east, _) = Moment::parse("2016-07-09T05:30:14.023+02:00").unwrap();
        assert_eq!(east.iso(Clock::Utc), "2016-07-09T03:30:14.023Z");
        let (west, _) = Moment::parse("2016-07-08T19:30:14.023-08:00").unwrap();
        assert_eq!(west, east);
        assert_eq!(Moment::of_datetime(300, 0), Moment::of(1900, 1, 1, SECOND));
        // The expected texts are those that SQL Server prints.
        let texts = [1, 2, 299].map(|ticks| Moment::of_datetime(ticks, 0).unwrap().iso(Clock::Local));
        assert_eq!(texts.map(|text| text[20..].to_owned()), ["003", "007", "997"]);
    }

    #[test]
    fn what_no_calendar_has_is_no_moment() {
        for text in
            ["2015-02-29T00:00Z", "2016-13-01T00:00Z", "2016-07-09T24:00Z", "2016-07-09", "2016-07-09T03:30X", ""]
        {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
        for text in ["2016-07-09T03:30:99Z", "2016-07-09T03:30:14.Z", "2016-07-09T03:30:14+99:00", "é016-07-09T03:30Z"]
        {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }

    #[test]
    fn any_number_of_ticks_has_a_text() {
        for ticks in [i64::MIN, -1, 0, i64::MAX] {
            let moment = Moment(ticks);
            assert!(!moment.to_string().is_empty() && moment.hour() <= moment && !moment.iso(Clock::Local).is_empty());
        }
    }

    #[test]
    fn offsets_are_minutes() {
        assert_eq!(offset_minutes("-8:00"), Some(-480));
        assert_eq!(offset_minutes("0:00"), Some(0));
        assert_eq!(offset_minutes("+5:30"), Some(330));
        assert_eq!(offset_minutes("x"), None);
    }
}
