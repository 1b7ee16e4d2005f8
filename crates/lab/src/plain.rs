//! Formats values as plain text. The text is made from the numbers from which a value is generated, and never from its
//! stored bytes; see [`crate::truth`].

use crate::types::SqlType;

/// The day number of 2005-01-01, counted from 0001-01-01. In a date column, this date is generated for the number 0.
const FIRST_DAY: i64 = 731_946;

/// The text of the value that [`SqlType::encode_number`] encodes for the number `n`.
pub(crate) fn number(ty: SqlType, n: i64) -> String {
    match ty.xtype {
        48 => n.rem_euclid(256).to_string(),
        52 => (n.rem_euclid(65_536) - 32_768).to_string(),
        56 | 98 => (n as i32).to_string(),
        127 => n.to_string(),
        104 => (n & 1).to_string(),
        60 => scaled(i128::from(n), 4),
        122 => scaled(i128::from(n as i32), 4),
        59 => format!("{:e}", n as f32),
        62 => format!("{:e}", n as f64),
        61 | 58 => {
            let most = if ty.xtype == 61 { 2_000_000 } else { 27_000 };
            let day = date(FIRST_DAY + n.div_euclid(1440).clamp(-30_000, most));
            let minute = n.rem_euclid(1440);
            let rest = if ty.xtype == 61 { ":00.000" } else { ":00" };
            format!("{day} {:02}:{:02}{rest}", minute / 60, minute % 60)
        }
        40 => date(FIRST_DAY + n.clamp(-700_000, 2_900_000)),
        41 => time(n.rem_euclid(86_400), 0, ty.scale),
        42 => format!("{} {}", day_of(n, 0), time(n.rem_euclid(86_400), 0, ty.scale)),
        // The local time is one hour ahead of UTC.
        43 => {
            let local = n.rem_euclid(86_400) + 3600;
            format!("{} {} +01:00", day_of(n, local / 86_400), time(local % 86_400, 0, ty.scale))
        }
        106 | 108 => {
            let magnitude = i128::from(n.unsigned_abs()) % 10i128.pow(u32::from(ty.precision.min(18)));
            scaled(if n < 0 { -magnitude } else { magnitude }, ty.scale)
        }
        36 => {
            let first = (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let last = n as u64 & 0xFFFF_FFFF_FFFF;
            format!("{:08X}-{:04X}-{:04X}-4000-{last:012X}", first & 0xFFFF_FFFF, first >> 32 & 0xFFFF, first >> 48)
        }
        189 => hex(&n.to_be_bytes()),
        165 | 173 => {
            let mut bytes = Vec::new();
            ty.encode_number(n, &mut bytes);
            hex(&bytes)
        }
        34 => hex(digits(ty, n).as_bytes()),
        _ => digits(ty, n),
    }
}

/// Formats a number in base 36, padded with zeros on the left. If the type has a fixed length, blanks are appended up
/// to the length of the type.
fn digits(ty: SqlType, n: i64) -> String {
    let unit = if ty.is_unicode() { 2 } else { 1 };
    let is_fixed = matches!(ty.xtype, 175 | 239);
    let room = if ty.is_lob() { 8 } else { usize::from(ty.length) / unit };
    let (mut rest, mut text) = (n.unsigned_abs(), Vec::new());
    for _ in 0..room.min(8) {
        text.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(rest % 36) as usize]);
        rest /= 36;
    }
    text.reverse();
    if is_fixed {
        text.resize(room, b' ');
    }
    text.into_iter().map(char::from).collect()
}

/// The date that is `seconds` seconds and `later` days after 2005-01-01.
fn day_of(seconds: i64, later: i64) -> String {
    date(FIRST_DAY + seconds.div_euclid(86_400).clamp(-700_000, 2_900_000) + later)
}

/// The value `unscaled / 10^scale`, always with `scale` digits after the decimal point.
pub(crate) fn scaled(unscaled: i128, scale: u8) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let scale = usize::from(scale);
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// A time of day. `fraction` is written with `digits` digits after the second.
pub(crate) fn time(seconds: i64, fraction: i64, digits: u8) -> String {
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if digits == 0 { text } else { format!("{text}.{fraction:0width$}", width = usize::from(digits)) }
}

/// The date with this day number in the Gregorian calendar. Day 0 is 0001-01-01.
pub(crate) fn date(day: i64) -> String {
    let mut rest = day;
    let mut year = 1 + rest / 146_097 * 400;
    rest %= 146_097;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if rest < length {
            break;
        }
        (rest, year) = (rest - length, year + 1);
    }
    let mut month = 1;
    while rest >= days_of(year, month) {
        rest -= days_of(year, month);
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", rest + 1)
}

/// The day number of a date. Day 0 is 0001-01-01.
pub(crate) fn day(year: i64, month: i64, day: i64) -> i64 {
    let years = year - 1;
    let before = years * 365 + years / 4 - years / 100 + years / 400;
    before + (1..month).map(|month| days_of(year, month)).sum::<i64>() + day - 1
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The bytes in hexadecimal, as SQL Server prints them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    format!("0x{}", hex_digits(bytes).to_uppercase())
}

/// Two hexadecimal digits for each byte.
pub fn hex_digits(bytes: &[u8]) -> String {
    let both = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    both.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        // Day numbers published by Microsoft: 1900-01-01 is day 693,595, and the last day is 3,652,058.
        assert_eq!(date(0), "0001-01-01");
        assert_eq!(day(1900, 1, 1), 693_595);
        assert_eq!(date(3_652_058), "9999-12-31");
        assert_eq!(date(FIRST_DAY), "2005-01-01");
        for number in (0..3_652_058).step_by(97) {
            let text = date(number);
            let mut parts = text.split('-').map(|part| part.parse::<i64>().expect("a number"));
            let mut part = || parts.next().expect("a part");
            assert_eq!(day(part(), part(), part()), number);
        }
    }

    #[test]
    fn decimals_have_all_their_digits() {
        assert_eq!(scaled(-5, 2), "-0.05");
        assert_eq!(scaled(12_345, 2), "123.45");
        assert_eq!(scaled(7, 0), "7");
    }
}
