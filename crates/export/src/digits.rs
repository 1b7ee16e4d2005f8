//! Numbers, dates and bytes as text, without an allocation per value.

mod moment;
mod table;

use format::types::power_of_ten;

pub(crate) use self::moment::{date, date_time, date_time_offset, time};
use self::table::{eight, first_of, four};

const HEX: &[u8; 16] = b"0123456789ABCDEF";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const NEGATIVE_ZERO: &[u8] = b"-0.0";
/// Numbers below 10^8 have at most eight digits, which are written in one step.
const E8: u64 = 100_000_000;
/// 10^19. A number below it fits into a `u64`.
const E19: u128 = 10_000_000_000_000_000_000;

/// Writes the last `length` of the eight digits in `digits`; `length` is at least 1.
#[inline]
fn last_of(out: &mut Vec<u8>, digits: u64, length: usize) {
    first_of(out, digits >> (8 * (8 - length)), length);
}

/// Returns how many digits a number below 10,000 has. Calculates the count from the number, not from its digits, so
/// that the processor can start the next write before it has looked up the digits.
#[inline]
fn digits_below_10_000(n: u64) -> usize {
    1 + usize::from(n > 9) + usize::from(n > 99) + usize::from(n > 999)
}

/// Writes decimal digits.
#[inline]
pub(crate) fn unsigned(out: &mut Vec<u8>, n: u64) {
    if n < 10_000 {
        let length = digits_below_10_000(n);
        let end = out.len() + length;
        out.extend_from_slice(&(four(n) >> (8 * (4 - length))).to_le_bytes());
        out.truncate(end);
    } else if n < E8 {
        last_of(out, eight(n), 4 + digits_below_10_000(n / 10_000));
    } else {
        long_unsigned(out, n);
    }
}

/// Like `unsigned`, for numbers with at least nine digits.
fn long_unsigned(out: &mut Vec<u8>, n: u64) {
    let (upper, lower) = (n / E8, n % E8);
    match upper {
        0..10_000 => last_of(out, u64::from(four(upper)) << 32, digits_below_10_000(upper)),
        10_000..E8 => last_of(out, eight(upper), 4 + digits_below_10_000(upper / 10_000)),
        _ => unsigned(out, upper),
    }
    out.extend_from_slice(&eight(lower).to_le_bytes());
}

/// Writes decimal digits, with a minus sign if needed.
#[inline]
pub(crate) fn signed(out: &mut Vec<u8>, n: i64) {
    if n < 0 {
        out.push(b'-');
    }
    unsigned(out, n.unsigned_abs());
}

/// Writes `n` with leading zeros: `length` digits, 1 to 19.
#[inline]
fn padded(out: &mut Vec<u8>, n: u64, length: usize) {
    if length > 8 {
        padded(out, n / E8, length - 8);
    }
    last_of(out, eight(n % E8), length.min(8));
}

/// Writes `unscaled / 10^scale`, with exactly `scale` digits after the point.
#[inline]
pub(crate) fn decimal(out: &mut Vec<u8>, unscaled: i128, scale: u8) {
    if unscaled < 0 {
        out.push(b'-');
    }
    let power = power_of_ten(scale).unwrap_or(1);
    match (u64::try_from(unscaled.unsigned_abs()), u64::try_from(power)) {
        (Ok(magnitude), Ok(power)) => {
            // Division by a constant is several times as fast as division by a variable.
            let (whole, rest) = match scale {
                2 => (magnitude / 100, magnitude % 100),
                4 => (magnitude / 10_000, magnitude % 10_000),
                _ => (magnitude / power, magnitude % power),
            };
            unsigned(out, whole);
            if scale > 0 {
                out.push(b'.');
                padded(out, rest, scale.into());
            }
        }
        _ => long_decimal(out, unscaled.unsigned_abs(), scale.into(), power),
    }
}

#[inline(never)]
fn long_decimal(out: &mut Vec<u8>, magnitude: u128, scale: usize, power: u128) {
    let (whole, rest) = (magnitude / power, magnitude % power);
    if whole >= E19 {
        // A valid decimal has at most 38 digits, so `whole / E19` has at most 19 digits. If the stored bytes are not a
        // valid decimal, `whole / E19` can have 20 digits.
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

/// Writes a GUID as SQL Server prints it, in capitals. The first three groups of a GUID are stored little-endian.
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

/// The bytes of a GUID in the order of its text.
pub(crate) fn guid_bytes(b: &[u8; 16]) -> [u8; 16] {
    let [b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15] = *b;
    [b3, b2, b1, b0, b5, b4, b7, b6, b8, b9, b10, b11, b12, b13, b14, b15]
}

/// Writes bytes as a T-SQL binary constant: `0x00FF`. The prefix distinguishes them from a text.
pub(crate) fn hex_literal(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"0x");
    hex(out, bytes);
}

/// Writes bytes as hexadecimal digits in upper case.
#[inline]
pub(crate) fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() * 2);
    let digit = |n: u8| HEX.get(usize::from(n)).copied().unwrap_or(b'0');
    for byte in bytes {
        out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
}

/// Writes Base64 with padding; accepts the bytes in pieces.
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

    /// Writes the last bytes and the padding.
    pub(crate) fn finish(self, out: &mut Vec<u8>) {
        base64_group(out, &self.kept);
    }
}

/// Writes one to three bytes as four characters. Writes nothing for an empty group.
fn base64_group(out: &mut Vec<u8>, group: &[u8]) {
    let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
    let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    let used = if group.is_empty() { 0 } else { group.len() + 1 };
    for at in 0..if used == 0 { 0 } else { 4 } {
        let digit = BASE64.get((bits >> (18 - 6 * at) & 63) as usize).copied().unwrap_or(b'A');
        out.push(if at < used { digit } else { b'=' });
    }
}

/// Writes the shortest digits that read back as the same number: in plain notation between 10^-5 and 10^16, otherwise
/// with an exponent. Negative zero is written as `-0.0`, because many readers take `-0` for an integer and lose its
/// sign.
pub(crate) fn float(out: &mut Vec<u8>, n: f64) {
    use std::io::Write;
    let magnitude = n.abs();
    if magnitude == 0.0 && n.is_sign_negative() {
        return out.extend_from_slice(NEGATIVE_ZERO);
    }
    // Writing to memory cannot fail.
    let _ = match magnitude == 0.0 || (1e-5..1e16).contains(&magnitude) || !n.is_finite() {
        true => write!(out, "{n}"),
        false => write!(out, "{n:e}"),
    };
}

/// Like `float`, for a real.
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

    pub(super) fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_are_what_the_standard_library_prints() {
        for n in [0, 1, 9, 10, 99, 100, 101, 12_345, 1_000_000, i64::MAX, i64::MIN, -1, -10, -123] {
            assert_eq!(text(|out| signed(out, n)), n.to_string());
        }
        for n in (0..70_000).map(|n| n * 7).chain((0..70_000_i64).map(|n| (n * n * n).wrapping_mul(29_989))) {
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
