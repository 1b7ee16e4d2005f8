//! Dates and times.

use format::bytes::unsigned;

use super::number::exact;
use crate::value::{DateTime, TimeOfDay};

/// Days from 0001-01-01 to 1900-01-01.
const DAYS_TO_1900: i64 = 693_595;
/// The last possible day, 9999-12-31, in days since 0001-01-01.
const LAST_DAY: u32 = 3_652_058;
/// Units of 100 ns in a second.
const TICKS_PER_SECOND: u64 = 10_000_000;
/// Seconds per day.
const SECONDS_PER_DAY: u64 = 86_400;
/// Units of 1/300 second in a day.
const DATETIME_TICKS: u32 = 25_920_000;
/// The first day of datetime, 1753-01-01, in days from 1900-01-01.
const FIRST_DATETIME_DAY: i64 = -53_690;
/// The largest offset from UTC in minutes.
const MAX_OFFSET: i16 = 14 * 60;

/// Reads a datetime: units of 1/300 second since midnight, then days since 1900-01-01. The time is rounded to
/// milliseconds that end in 0, 3 or 7, as SQL Server prints them. `None` if the value is not valid.
#[inline]
pub(super) fn datetime(bytes: &[u8]) -> Option<DateTime> {
    let (ticks, days) = exact::<8>(bytes)?.split_first_chunk::<4>().map(|(a, b)| (*a, exact::<4>(b)))?;
    let (ticks, days) = (u32::from_le_bytes(ticks), i64::from(i32::from_le_bytes(days?)));
    if ticks >= DATETIME_TICKS || days < FIRST_DATETIME_DAY {
        return None;
    }
    let milliseconds = (u64::from(ticks) * 10 + 1) / 3;
    let time = TimeOfDay { ticks: milliseconds * (TICKS_PER_SECOND / 1000), digits: 3 };
    Some(DateTime { day: day(days + DAYS_TO_1900)?, time })
}

/// Reads a smalldatetime: minutes since midnight, then days since 1900-01-01. `None` if the value is not valid.
#[inline]
pub(super) fn small_datetime(bytes: &[u8]) -> Option<DateTime> {
    let [a, b, c, d] = exact::<4>(bytes)?;
    let (minutes, days) = (u64::from(u16::from_le_bytes([a, b])), i64::from(u16::from_le_bytes([c, d])));
    let time = TimeOfDay { ticks: minutes * 60 * TICKS_PER_SECOND, digits: 0 };
    (minutes < 24 * 60).then_some(DateTime { day: day(days + DAYS_TO_1900)?, time })
}

/// Reads a date: three bytes with the number of days since 0001-01-01. `None` if the value is not valid.
#[inline]
pub(super) fn date(bytes: &[u8]) -> Option<u32> {
    let [a, b, c] = exact::<3>(bytes)?;
    day(u32::from_le_bytes([a, b, c, 0]).into())
}

fn day(days: i64) -> Option<u32> {
    u32::try_from(days).ok().filter(|day| *day <= LAST_DAY)
}

/// Reads a time: the number of units since midnight. `digits` is the scale; one unit is 1 second divided by
/// 10^`digits`. `None` if the value is not valid.
#[inline]
pub(super) fn time(bytes: &[u8], digits: u8) -> Option<TimeOfDay> {
    let length = match digits {
        0..=2 => 3,
        3..=4 => 4,
        5..=7 => 5,
        _ => return None,
    };
    if bytes.len() != length {
        return None;
    }
    let per_unit = 10_u64.checked_pow(7 - u32::from(digits))?;
    let ticks = unsigned(bytes).checked_mul(per_unit)?;
    (ticks < SECONDS_PER_DAY * TICKS_PER_SECOND).then_some(TimeOfDay { ticks, digits })
}

/// Reads a datetime2: the time, then the date. `None` if the value is not valid.
#[inline]
pub(super) fn datetime2(bytes: &[u8], digits: u8) -> Option<DateTime> {
    let (clock, days) = bytes.split_at_checked(bytes.len().checked_sub(3)?)?;
    Some(DateTime { day: date(days)?, time: time(clock, digits)? })
}

/// Reads a datetimeoffset: the date and time in UTC, then the offset in minutes. `None` if the value is not valid.
pub(super) fn datetime_offset(bytes: &[u8], digits: u8) -> Option<(DateTime, i16)> {
    let (moment, offset) = bytes.split_last_chunk::<2>()?;
    let offset = i16::from_le_bytes(*offset);
    let is_possible = (-MAX_OFFSET..=MAX_OFFSET).contains(&offset);
    datetime2(moment, digits).filter(|_| is_possible).map(|utc| (utc, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: u32) -> u64 {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&ticks.to_le_bytes());
        datetime(&bytes).unwrap().time.ticks / 10_000
    }

    #[test]
    fn a_datetime_is_rounded_to_0_3_and_7_milliseconds() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(at), [0, 3, 7, 10, 13, 17]);
        assert_eq!(at(DATETIME_TICKS - 1), 86_399_997);
        assert!(datetime(&[0, 0x82, 0x8B, 1, 0, 0, 0, 0]).is_none(), "a tick beyond the day");
    }

    #[test]
    fn dates_reach_from_year_1_to_9999() {
        assert_eq!(date(&[0, 0, 0]), Some(0));
        assert_eq!(date(&[0xDA, 0xB9, 0x37]), Some(LAST_DAY));
        assert_eq!(date(&[0xDB, 0xB9, 0x37]), None);
        let first = (-53_690_i32).to_le_bytes();
        let bytes = [0, 0, 0, 0, first[0], first[1], first[2], first[3]];
        assert_eq!(datetime(&bytes).map(|moment| moment.day), Some(639_905), "1753-01-01");
    }

    #[test]
    fn a_time_has_the_digits_of_its_type() {
        assert_eq!(time(&[1, 0, 0], 0), Some(TimeOfDay { ticks: TICKS_PER_SECOND, digits: 0 }));
        assert_eq!(time(&[1, 0, 0, 0, 0], 7), Some(TimeOfDay { ticks: 1, digits: 7 }));
        assert_eq!(time(&[0x80, 0x51, 1], 0), None, "24:00:00");
        assert_eq!(time(&[1, 0, 0], 7), None);
    }
}
