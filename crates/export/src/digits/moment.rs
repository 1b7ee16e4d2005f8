//! Dates and times as text.

use rows::{DateTime, TimeOfDay};

use super::table::{ZEROS, eight, first_of, four};

/// Ticks (100 ns) per second.
const TICKS_PER_SECOND: u64 = 10_000_000;
const MINUTES_PER_DAY: i64 = 24 * 60;
const TICKS_PER_MINUTE: u64 = 60 * TICKS_PER_SECOND;

/// Two digits; `n` is below 100.
fn pair(n: u64) -> [u8; 2] {
    [b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8]
}

/// Writes the date of a day number as `2005-01-31`.
#[inline]
pub(crate) fn date(out: &mut Vec<u8>, day: u32) {
    out.extend_from_slice(&date_text(day));
}

#[inline]
fn date_text(day: u32) -> [u8; 10] {
    let [y1, y2, y3, y4, m1, m2, d1, d2] = date_digits(day).to_le_bytes();
    [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2]
}

/// The eight digits of a date.
#[inline]
fn date_digits(day: u32) -> u64 {
    let (year, month, day) = civil(day);
    u64::from(four(year.into())) | digits_of([month, day, 0, 0]) << 32
}

/// Returns the two digits of each of four numbers below 100.
#[inline]
fn digits_of([a, b, c, d]: [u32; 4]) -> u64 {
    let pairs = u64::from(a | b << 16) | u64::from(c | d << 16) << 32;
    let tens = (pairs * 103) >> 10 & 0x000F_000F_000F_000F;
    tens | (pairs - tens * 10) << 8 | ZEROS
}

/// Year, month and day of a day number; day 0 is 0001-01-01.
fn civil(number: u32) -> (u32, u32, u32) {
    // Counts days from 0000-03-01, so that a leap day is the last day of its year. The constants come from Neri and
    // Schneider, "Euclidean affine functions and their application to calendar algorithms".
    let quarters = 4 * (number + 306) + 3;
    let (century, of_century) = (quarters / 146_097, quarters % 146_097 / 4);
    let scaled = 2_939_745 * u64::from(4 * of_century + 3);
    let (year, of_year) = ((scaled >> 32) as u32, scaled as u32 / 2_939_745 / 4);
    let months = 2141 * of_year + 197_913;
    let (month, day) = (months >> 16, (months & 0xFFFF) / 2141);
    let is_next_year = of_year >= 306;
    let month = if is_next_year { month - 12 } else { month };
    (100 * century + year + u32::from(is_next_year), month, day + 1)
}

/// Writes a time as `23:59:59.1234567`, with as many fractional digits as the type has.
#[inline]
pub(crate) fn time(out: &mut Vec<u8>, time: TimeOfDay) {
    out.extend_from_slice(&clock(time));
    fraction(out, time);
}

/// A time as `23:59:59`.
#[inline]
fn clock(time: TimeOfDay) -> [u8; 8] {
    let [h1, h2, m1, m2, s1, s2, ..] = clock_digits(time).to_le_bytes();
    [h1, h2, b':', m1, m2, b':', s1, s2]
}

/// The six digits of hour, minute and second, followed by two zeros.
#[inline]
fn clock_digits(time: TimeOfDay) -> u64 {
    let seconds = (time.ticks / TICKS_PER_SECOND) as u32;
    let minutes = seconds / 60;
    digits_of([minutes / 60, minutes % 60, seconds % 60, 0])
}

/// Writes the decimal point and the fraction of a second.
#[inline]
fn fraction(out: &mut Vec<u8>, time: TimeOfDay) {
    let digits = usize::from(time.digits.min(7));
    if digits > 0 {
        out.push(b'.');
        first_of(out, eight(time.ticks % TICKS_PER_SECOND * 10), digits);
    }
}

/// Writes the date, the character `between`, and the time.
pub(crate) fn date_time(out: &mut Vec<u8>, moment: DateTime, between: u8) {
    // Composes words of eight bytes. If the code wrote single bytes and then read them as one word, the processor would
    // have to wait for the writes.
    let (date, clock) = (date_digits(moment.day), clock_digits(moment.time));
    let byte = |byte: u8, at: u32| u64::from(byte) << (8 * at);
    let year_and_month = date & 0xFFFF_FFFF | byte(b'-', 4) | (date >> 32 & 0xFFFF) << 40 | byte(b'-', 7);
    let day_to_minute =
        date >> 48 | byte(between, 2) | (clock & 0xFFFF) << 24 | byte(b':', 5) | (clock >> 16 & 0xFFFF) << 48;
    let digits = usize::from(moment.time.digits.min(7));
    let after_second = eight(moment.time.ticks % TICKS_PER_SECOND * 10);
    let second = byte(b':', 0) | (clock >> 32 & 0xFFFF) << 8 | byte(b'.', 3) | after_second << 32;
    let end = out.len() + if digits > 0 { 20 + digits } else { 19 };
    out.extend_from_slice(&year_and_month.to_le_bytes());
    out.extend_from_slice(&day_to_minute.to_le_bytes());
    out.extend_from_slice(&second.to_le_bytes());
    if digits > 4 {
        out.extend_from_slice(&((after_second >> 32) as u32).to_le_bytes());
    }
    out.truncate(end);
}

/// Writes the local time with its offset from UTC: `2005-01-31T23:59:59+01:00`.
pub(crate) fn date_time_offset(out: &mut Vec<u8>, utc: DateTime, offset_minutes: i16, between: u8) {
    date_time(out, local(utc, offset_minutes), between);
    out.push(if offset_minutes < 0 { b'-' } else { b'+' });
    let distance = u64::from(offset_minutes.unsigned_abs());
    let ([h1, h2], [m1, m2]) = (pair(distance / 60), pair(distance % 60));
    out.extend_from_slice(&[h1, h2, b':', m1, m2]);
}

/// Converts a UTC time to the local time `offset_minutes` east of UTC. The day is limited to the calendar of SQL
/// Server, 0001-01-01 to 9999-12-31.
fn local(utc: DateTime, offset_minutes: i16) -> DateTime {
    const LAST_DAY: i64 = 3_652_058;
    let minutes =
        i64::from(utc.day) * MINUTES_PER_DAY + (utc.time.ticks / TICKS_PER_MINUTE) as i64 + i64::from(offset_minutes);
    let day = minutes.div_euclid(MINUTES_PER_DAY).clamp(0, LAST_DAY);
    let ticks = minutes.rem_euclid(MINUTES_PER_DAY) as u64 * TICKS_PER_MINUTE + utc.time.ticks % TICKS_PER_MINUTE;
    DateTime { day: day as u32, time: TimeOfDay { ticks, digits: utc.time.digits } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digits::tests::text;

    #[test]
    fn days_are_those_of_the_calendar() {
        // 1900-01-01 is day 693,595; the last day that SQL Server supports is 3,652,058.
        for (day, expected) in
            [(0, "0001-01-01"), (693_595, "1900-01-01"), (730_178, "2000-02-29"), (3_652_058, "9999-12-31")]
        {
            assert_eq!(text(|out| date(out, day)), expected);
        }
        for day in (0..3_652_059).step_by(37) {
            let (year, month, of_month) = format::types::civil(day);
            assert_eq!(civil(day as u32), (year as u32, month, of_month), "{day}");
        }
    }

    #[test]
    fn times_have_the_digits_of_their_type() {
        let at = |ticks, digits| TimeOfDay { ticks, digits };
        assert_eq!(text(|out| time(out, at(863_999_999_999, 7))), "23:59:59.9999999");
        for digits in 1..=7 {
            let expected = format!("01:02:03.{}", &"0123456"[..usize::from(digits)]);
            assert_eq!(text(|out| time(out, at(37_230_123_456, digits))), expected);
        }
        assert_eq!(text(|out| time(out, at(450_610_030_000, 3))), "12:31:01.003");
        assert_eq!(text(|out| time(out, at(0, 0))), "00:00:00");
    }

    #[test]
    fn a_moment_is_its_date_and_its_time() {
        for day in (0..3_652_059).step_by(9973) {
            for digits in 0..=7 {
                let time_of_day = TimeOfDay { ticks: u64::from(day) * 236_581 % 864_000_000_000, digits };
                let mut expected = text(|out| date(out, day)) + "T";
                expected += &text(|out| time(out, time_of_day));
                assert_eq!(text(|out| date_time(out, DateTime { day, time: time_of_day }, b'T')), expected);
            }
        }
    }

    #[test]
    fn a_local_moment_may_be_on_another_day_than_in_utc() {
        let utc = DateTime { day: 693_595, time: TimeOfDay { ticks: 23 * 3600 * TICKS_PER_SECOND, digits: 0 } };
        assert_eq!(text(|out| date_time_offset(out, utc, 90, b'T')), "1900-01-02T00:30:00+01:30");
        assert_eq!(text(|out| date_time_offset(out, utc, -840, b' ')), "1900-01-01 09:00:00-14:00");
    }
}
