//! Numbers, dates and bytes as text, without an allocation per value.

use format::types::power_of_ten;
use rows::{DateTime, TimeOfDay};

const HEX: &[u8; 16] = b"0123456789ABCDEF";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const NEGATIVE_ZERO: &[u8] = b"-0.0";
/// Ticks (100 ns) of a second.
const TICKS_PER_SECOND: u64 = 10_000_000;
const MINUTES_PER_DAY: i64 = 24 * 60;
const TICKS_PER_MINUTE: u64 = 60 * TICKS_PER_SECOND;

/// Eight digits are made at once.
const E8: u64 = 100_000_000;
/// The most digits of which every number is a `u64`.
const E19: u128 = 10_000_000_000_000_000_000;

/// The digits of a number below 10^8 with leading zeros, the first in the lowest byte: 4, 2 and 1 at a time, each half in a lane of
/// its own. The multiplications divide by 100 and 10.
#[inline]
fn eight(n: u64) -> u64 {
    let fours = n / 10_000 + ((n % 10_000) << 32);
    let hundreds = (fours * 10_486) >> 20 & 0x7F_0000_007F;
    let pairs = hundreds | (fours - hundreds * 100) << 16;
    let tens = (pairs * 103) >> 10 & 0x000F_000F_000F_000F;
    tens | (pairs - tens * 10) << 8
}

/// The same of a number below 10,000: four digits.
#[inline]
fn four(n: u32) -> u32 {
    let hundreds = n / 100;
    let pairs = hundreds | (n - hundreds * 100) << 16;
    let tens = (pairs * 103) >> 10 & 0x000F_000F;
    tens | (pairs - tens * 10) << 8
}

/// A zero in each byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Writes the first `length` of eight digits.
#[inline]
fn first_of(out: &mut Vec<u8>, digits: u64, length: usize) {
    let end = out.len() + length;
    out.extend_from_slice(&(digits | ZEROS).to_le_bytes());
    out.truncate(end);
}

/// Writes the last `length` of eight digits; one at least.
#[inline]
fn last_of(out: &mut Vec<u8>, digits: u64, length: usize) {
    first_of(out, digits >> (8 * (8 - length)), length);
}

/// Writes the last `length` of four digits; one at least.
#[inline]
fn last_of_four(out: &mut Vec<u8>, digits: u32, length: usize) {
    let end = out.len() + length;
    out.extend_from_slice(&((digits | ZEROS as u32) >> (8 * (4 - length))).to_le_bytes());
    out.truncate(end);
}

/// Decimal digits.
#[inline]
pub(crate) fn unsigned(out: &mut Vec<u8>, n: u64) {
    if n >= E8 {
        unsigned(out, n / E8);
        return first_of(out, eight(n % E8), 8);
    }
    // Where what follows is written does not wait for the digits.
    if n < 10_000 {
        let length = 1 + usize::from(n > 9) + usize::from(n > 99) + usize::from(n > 999);
        return last_of_four(out, four(n as u32), length);
    }
    let length = (n as u32).checked_ilog10().unwrap_or(0) + 1;
    last_of(out, eight(n), length as usize);
}

/// Decimal digits with a sign.
#[inline]
pub(crate) fn signed(out: &mut Vec<u8>, n: i64) {
    if n < 0 {
        out.push(b'-');
    }
    unsigned(out, n.unsigned_abs());
}

/// `n` with leading zeros: `length` digits, 1 to 19.
#[inline]
fn padded(out: &mut Vec<u8>, n: u64, length: usize) {
    if length <= 4 {
        return last_of_four(out, four((n % 10_000) as u32), length);
    }
    if length > 8 {
        padded(out, n / E8, length - 8);
    }
    last_of(out, eight(n % E8), length.min(8));
}

/// `unscaled / 10^scale`, with all digits of the scale.
#[inline]
pub(crate) fn decimal(out: &mut Vec<u8>, unscaled: i128, scale: u8) {
    if unscaled < 0 {
        out.push(b'-');
    }
    let power = power_of_ten(scale).unwrap_or(1);
    let scale = usize::from(scale);
    match (u64::try_from(unscaled.unsigned_abs()), u64::try_from(power)) {
        (Ok(magnitude), Ok(power)) => {
            unsigned(out, magnitude / power);
            if scale > 0 {
                out.push(b'.');
                padded(out, magnitude % power, scale);
            }
        }
        _ => long_decimal(out, unscaled.unsigned_abs(), scale, power),
    }
}

fn long_decimal(out: &mut Vec<u8>, magnitude: u128, scale: usize, power: u128) {
    let (whole, rest) = (magnitude / power, magnitude % power);
    if whole >= E19 {
        // At most 38 digits: the upper part has 19 or, for bytes that are no decimal, 20.
        unsigned(out, u64::try_from(whole / E19).unwrap_or(u64::MAX));
        padded(out, (whole % E19) as u64, 19);
    } else {
        unsigned(out, whole as u64);
    }
    if scale > 0 {
        out.push(b'.');
        if scale > 19 {
            padded(out, (rest / E19) as u64, scale - 19);
        }
        padded(out, (rest % E19) as u64, scale.min(19));
    }
}

/// Two digits; `n` is below 100.
fn pair(n: u64) -> [u8; 2] {
    [b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8]
}

/// `2005-01-31` of a day number.
#[inline]
pub(crate) fn date(out: &mut Vec<u8>, day: u32) {
    out.extend_from_slice(&date_text(day));
}

#[inline]
fn date_text(day: u32) -> [u8; 10] {
    let (year, month, day) = civil(day);
    let digits = eight(u64::from(year * 10_000 + month * 100 + day)) | ZEROS;
    let [y1, y2, y3, y4, m1, m2, d1, d2] = digits.to_le_bytes();
    [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2]
}

/// Year, month and day of the day `number`, 0 for 0001-01-01.
pub(crate) fn civil(number: u32) -> (u32, u32, u32) {
    // Days since 0000-03-01, so that a leap day is the last of its year.
    let days = number + 306;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    (era * 400 + year_of_era + u32::from(month <= 2), month, day)
}

/// `23:59:59.1234567`, with as many digits as the type has.
#[inline]
pub(crate) fn time(out: &mut Vec<u8>, time: TimeOfDay) {
    out.extend_from_slice(&clock(time));
    fraction(out, time);
}

/// `23:59:59` of a time.
#[inline]
fn clock(time: TimeOfDay) -> [u8; 8] {
    let seconds = time.ticks / TICKS_PER_SECOND;
    let digits = eight(seconds / 3600 * 10_000 + seconds / 60 % 60 * 100 + seconds % 60) | ZEROS;
    let [_, _, h1, h2, m1, m2, s1, s2] = digits.to_le_bytes();
    [h1, h2, b':', m1, m2, b':', s1, s2]
}

/// The digits after the second, with the point before them.
#[inline]
fn fraction(out: &mut Vec<u8>, time: TimeOfDay) {
    let digits = usize::from(time.digits.min(7));
    if digits > 0 {
        out.push(b'.');
        first_of(out, eight(time.ticks % TICKS_PER_SECOND * 10), digits);
    }
}

/// Date, `between`, time.
pub(crate) fn date_time(out: &mut Vec<u8>, moment: DateTime, between: u8) {
    let [y1, y2, y3, y4, a, m1, m2, b, d1, d2] = date_text(moment.day);
    let [h1, h2, c, n1, n2, d, s1, s2] = clock(moment.time);
    out.extend_from_slice(&[y1, y2, y3, y4, a, m1, m2, b, d1, d2, between, h1, h2, c, n1, n2, d, s1, s2]);
    fraction(out, moment.time);
}

/// The local moment with its distance from UTC: `2005-01-31T23:59:59+01:00`.
pub(crate) fn date_time_offset(out: &mut Vec<u8>, utc: DateTime, offset_minutes: i16, between: u8) {
    date_time(out, local(utc, offset_minutes), between);
    out.push(if offset_minutes < 0 { b'-' } else { b'+' });
    let distance = u64::from(offset_minutes.unsigned_abs());
    let ([h1, h2], [m1, m2]) = (pair(distance / 60), pair(distance % 60));
    out.extend_from_slice(&[h1, h2, b':', m1, m2]);
}

/// A moment in UTC as it is so many minutes east of it. Beyond the calendar's ends it stays at them.
fn local(utc: DateTime, offset_minutes: i16) -> DateTime {
    const LAST_DAY: i64 = 3_652_058;
    let minutes =
        i64::from(utc.day) * MINUTES_PER_DAY + (utc.time.ticks / TICKS_PER_MINUTE) as i64 + i64::from(offset_minutes);
    let day = minutes.div_euclid(MINUTES_PER_DAY).clamp(0, LAST_DAY);
    let ticks = minutes.rem_euclid(MINUTES_PER_DAY) as u64 * TICKS_PER_MINUTE + utc.time.ticks % TICKS_PER_MINUTE;
    DateTime { day: day as u32, time: TimeOfDay { ticks, digits: utc.time.digits } }
}

/// As SQL Server prints it, in capitals; the first three groups are little-endian.
pub(crate) fn guid(out: &mut Vec<u8>, bytes: &[u8; 16]) {
    let ordered = guid_bytes(bytes);
    let mut rest = ordered.as_slice();
    for (at, length) in [4, 2, 2, 2, 6].into_iter().enumerate() {
        if at > 0 {
            out.push(b'-');
        }
        let (group, others) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        hex(out, group);
        rest = others;
    }
}

/// The bytes in the order of the text.
pub(crate) fn guid_bytes(b: &[u8; 16]) -> [u8; 16] {
    let [b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15] = *b;
    [b3, b2, b1, b0, b5, b4, b7, b6, b8, b9, b10, b11, b12, b13, b14, b15]
}

/// Bytes as a constant of T-SQL, which tells them from a text: `0x00FF`.
pub(crate) fn hex_literal(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"0x");
    hex(out, bytes);
}

/// Hexadecimal capitals.
#[inline]
pub(crate) fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() * 2);
    let digit = |n: u8| HEX.get(usize::from(n)).copied().unwrap_or(b'0');
    for byte in bytes {
        out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
}

/// Base 64 with padding, piece by piece.
#[derive(Default)]
pub(crate) struct Base64 {
    kept: Vec<u8>,
}

impl Base64 {
    /// Adds bytes.
    pub(crate) fn add(&mut self, out: &mut Vec<u8>, bytes: &[u8]) {
        let mut rest = bytes;
        while !self.kept.is_empty() && self.kept.len() < 3 {
            let Some((first, others)) = rest.split_first() else { return };
            self.kept.push(*first);
            rest = others;
        }
        base64_group(out, &self.kept);
        self.kept.clear();
        out.reserve(rest.len() / 3 * 4 + 4);
        let groups = rest.chunks_exact(3);
        self.kept.extend_from_slice(groups.remainder());
        groups.for_each(|group| base64_group(out, group));
    }

    /// Ends the text.
    pub(crate) fn finish(self, out: &mut Vec<u8>) {
        base64_group(out, &self.kept);
    }
}

/// One to three bytes as four characters; none as none.
fn base64_group(out: &mut Vec<u8>, group: &[u8]) {
    let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
    let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    let used = if group.is_empty() { 0 } else { group.len() + 1 };
    for at in 0..if used == 0 { 0 } else { 4 } {
        let digit = BASE64.get((bits >> (18 - 6 * at) & 63) as usize).copied().unwrap_or(b'A');
        out.push(if at < used { digit } else { b'=' });
    }
}

/// The shortest digits that mean the same number: as they are between 10^-5 and 10^16, otherwise with an exponent. Many readers
/// take `-0` for an integer, which loses its sign.
pub(crate) fn float(out: &mut Vec<u8>, n: f64) {
    use std::io::Write;
    let magnitude = n.abs();
    if magnitude == 0.0 && n.is_sign_negative() {
        return out.extend_from_slice(NEGATIVE_ZERO);
    }
    // Writing to memory does not fail.
    let _ = match magnitude == 0.0 || (1e-5..1e16).contains(&magnitude) || !n.is_finite() {
        true => write!(out, "{n}"),
        false => write!(out, "{n:e}"),
    };
}

/// The same of a real.
pub(crate) fn real(out: &mut Vec<u8>, n: f32) {
    use std::io::Write;
    let magnitude = n.abs();
    if magnitude == 0.0 && n.is_sign_negative() {
        return out.extend_from_slice(NEGATIVE_ZERO);
    }
    let _ = match magnitude == 0.0 || (1e-5..1e16).contains(&magnitude) || !n.is_finite() {
        true => write!(out, "{n}"),
        false => write!(out, "{n:e}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_are_what_the_standard_library_prints() {
        for n in [0, 1, 9, 10, 99, 100, 101, 12_345, 1_000_000, i64::MAX, i64::MIN, -1, -10, -123] {
            assert_eq!(text(|out| signed(out, n)), n.to_string());
        }
        for n in (0..70_000).map(|n| n * 7).chain((0..70_000).map(|n| n * n * n * 29_989)) {
            assert_eq!(text(|out| signed(out, n)), n.to_string());
        }
        for (at, n) in (0..20).map(|at| (at, 10u64.pow(at))) {
            assert_eq!(text(|out| unsigned(out, n)), n.to_string());
            assert_eq!(text(|out| unsigned(out, n - 1)), (n - 1).to_string(), "{at} nines");
        }
        assert_eq!(text(|out| unsigned(out, u64::MAX)), u64::MAX.to_string());
    }

    #[test]
    fn decimals_have_all_digits_of_their_scale() {
        assert_eq!(text(|out| decimal(out, -5, 2)), "-0.05");
        assert_eq!(text(|out| decimal(out, 0, 4)), "0.0000");
        assert_eq!(text(|out| decimal(out, 12_345, 2)), "123.45");
        assert_eq!(text(|out| decimal(out, 7, 0)), "7");
        let most = 10i128.pow(38) - 1;
        assert_eq!(text(|out| decimal(out, most, 38)), format!("0.{most}"));
        assert_eq!(text(|out| decimal(out, -most, 0)), format!("-{most}"));
        assert_eq!(text(|out| decimal(out, 10i128.pow(20), 1)), "10000000000000000000.0");
        let digits = "12345678901234567890123456789012345678";
        for length in 1..=38 {
            let digits = &digits[..length];
            for scale in 0..=38 {
                let padded = format!("{digits:0>0$}", scale + 1);
                let (whole, rest) = padded.split_at(padded.len() - scale);
                let expected = if scale == 0 { whole.to_owned() } else { format!("{whole}.{rest}") };
                assert_eq!(text(|out| decimal(out, digits.parse().unwrap(), scale as u8)), expected);
            }
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        // 1900-01-01 is day 693,595, and the last day of SQL Server is 3,652,058.
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
    fn a_local_moment_may_be_on_another_day_than_in_utc() {
        let utc = DateTime { day: 693_595, time: TimeOfDay { ticks: 23 * 3600 * TICKS_PER_SECOND, digits: 0 } };
        assert_eq!(text(|out| date_time_offset(out, utc, 90, b'T')), "1900-01-02T00:30:00+01:30");
        assert_eq!(text(|out| date_time_offset(out, utc, -840, b' ')), "1900-01-01 09:00:00-14:00");
    }

    #[test]
    fn base64_is_that_of_rfc_4648_however_the_bytes_come() {
        for (bytes, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            for cut in 0..=bytes.len() {
                let (first, second) = bytes.as_bytes().split_at(cut);
                let mut base64 = Base64::default();
                let made = text(|out| {
                    base64.add(out, first);
                    base64.add(out, second);
                    base64.finish(out);
                });
                assert_eq!(made, expected);
            }
        }
    }

    #[test]
    fn floats_are_short_and_mean_the_same_number() {
        assert_eq!(text(|out| float(out, 0.1)), "0.1");
        assert_eq!(text(|out| float(out, 1e300)), "1e300");
        assert_eq!(text(|out| float(out, -5e-324)), "-5e-324");
        assert_eq!(text(|out| float(out, -0.0)), "-0.0");
        assert_eq!(text(|out| real(out, -0.0)), "-0.0");
        assert_eq!(text(|out| real(out, 16_777_216.0)), "16777216");
        for n in [f64::MAX, f64::MIN_POSITIVE, 1.0 / 3.0, 123_456.789, 9_007_199_254_740_993.0] {
            assert_eq!(text(|out| float(out, n)).parse::<f64>().unwrap().to_bits(), n.to_bits());
        }
    }
}
