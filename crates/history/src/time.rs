//! Times as the history stores them: UTC, `2026-11-21T22:00:00Z`. The alphabetical order of these texts is the order of
//! the times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY_SECONDS: i64 = 86_400;

/// The current time as text.
pub fn now() -> String {
    text(SystemTime::now())
}

/// A point in time as text.
pub fn text(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |passed| i64::try_from(passed.as_secs()).unwrap_or(0));
    text_of_seconds(seconds)
}

/// Seconds since 1970 as text.
pub fn text_of_seconds(seconds: i64) -> String {
    let (year, month, day) = date_of(seconds.div_euclid(DAY_SECONDS));
    let second = seconds.rem_euclid(DAY_SECONDS);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// Parses a date, `2026-11-21`, with or without a time of day, to seconds since 1970; `None` if the text is not a date.
pub fn seconds(text: &str) -> Option<i64> {
    let text = text.trim().trim_end_matches('Z');
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00"));
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let mut clock = time.split(':').map(|part| part.split('.').next()?.parse::<i64>().ok());
    let (hour, minute) = (clock.next()??, clock.next()??);
    let second = clock.next().unwrap_or(Some(0))?;
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..61).contains(&second);
    if !is_date || !is_time {
        return None;
    }
    let days = days_of(year, month, day);
    // A month of 30 days has no day 31. The computed number of days would be that of the first day of the next month.
    (date_of(days) == (year, month, day)).then_some(days * DAY_SECONDS + hour * 3600 + minute * 60 + second)
}

/// Parses a time span such as `14d`, `36h`, `90min`, `2w`.
///
/// # Errors
/// If the text is not a span.
pub fn span(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit.trim() {
        "s" => 1,
        "min" | "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => 0,
    };
    match number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds)) {
        Some(seconds @ 1..=3_155_760_000) => Ok(Duration::from_secs(seconds)),
        _ => Err("expected a number with s, min, h, d or w, such as 3h or 14d".to_owned()),
    }
}

/// Parses a point in time in the past. The text is a date (UTC), or a time span that is subtracted from the current
/// time.
///
/// # Errors
///
/// If the text is neither a date nor a time span.
pub fn moment(text: &str) -> Result<String, String> {
    if let Some(seconds) = seconds(text) {
        return Ok(text_of_seconds(seconds));
    }
    let ago = span(text).map_err(|_| "expected a date such as 2026-11-21 or a span such as 14d".to_owned())?;
    Ok(self::text(SystemTime::now().checked_sub(ago).unwrap_or(UNIX_EPOCH)))
}

/// Converts a number of days since 1970-01-01 to year, month and day.
fn date_of(days: i64) -> (i64, i64, i64) {
    // Years are counted from March, so that the leap day is the last day of a year.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// Days from 1970-01-01 to a date.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let shifted = (month + 9) % 12;
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_back() {
        assert_eq!(text_of_seconds(0), "1970-01-01T00:00:00Z");
        assert_eq!(text_of_seconds(951_827_696), "2000-02-29T12:34:56Z");
        for seconds in (0..4_102_444_800).step_by(86_399 * 7) {
            assert_eq!(super::seconds(&text_of_seconds(seconds)), Some(seconds));
        }
        assert_eq!(seconds("2026-11-21"), seconds("2026-11-21T00:00:00Z"));
        assert_eq!(seconds("2026-11-21 22:00:05.123"), seconds("2026-11-21T22:00:05Z"));
        for wrong in ["", "2026", "2026-13-01", "2026-02-29", "2026-11-31", "2026-11-21T24:00", "14d", "x-y-z"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn spans_have_a_unit() {
        assert_eq!(span("14d").unwrap().as_secs(), 14 * 86_400);
        assert_eq!(span("90min").unwrap().as_secs(), 5400);
        for wrong in ["", "d", "0d", "14", "14 parsecs", "99999999999999999999d"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
        assert!(moment("7d").unwrap() > moment("2w").unwrap());
    }
}
