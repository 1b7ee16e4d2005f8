//! Vardecimal, the encoding of decimal values under row compression and in the vardecimal tables of SQL Server 2005 SP2
//! (docs/format/compression.md#decimals). The first byte has sign and exponent; groups of three decimal digits follow,
//! in ten bits each.

use crate::types::{self, TypeInfo};

/// The reason why bytes are not a decimal value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VardecimalFault {
    /// The bytes are not a value of the type: a group is above 999, digits go beyond the scale, or there are more
    /// digits than the precision allows.
    OutOfDomain,
    /// The first digit is 0. The place of the decimal point is then undocumented.
    Undescribed,
}

const POSITIVE: u8 = 0x80;
const EXPONENT_BIAS: i32 = 64;
const BITS_PER_GROUP: usize = 10;
const DIGITS_PER_GROUP: i32 = 3;
/// The largest possible number of groups in a decimal of 38 digits, whatever the position of its first digit in the
/// first group.
const MAX_GROUPS: usize = 14;

/// A decimal value, scaled to a whole number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scaled {
    /// Whether the value is below zero.
    pub negative: bool,
    /// The value without its sign.
    pub magnitude: u128,
}

impl Scaled {
    /// The signed number, for keys and comparisons; `None` if the magnitude has more than 127 bits.
    pub fn signed(self) -> Option<i128> {
        let magnitude = i128::try_from(self.magnitude).ok()?;
        Some(if self.negative { -magnitude } else { magnitude })
    }
}

/// The value of `stored`, times ten to the power of the column's scale.
///
/// ```
/// use format::compressed::vardecimal::{Scaled, decode};
/// use format::types::TypeInfo;
/// // 1.00 as decimal(38,2), from the announcement of the format.
/// let info = TypeInfo::from_ti(0x0002_266A);
/// assert_eq!(decode(&[0xC0, 0x19], info), Ok(Scaled { negative: false, magnitude: 100 }));
/// assert_eq!(decode(&[], info), Ok(Scaled { negative: false, magnitude: 0 }));
/// ```
pub fn decode(stored: &[u8], info: TypeInfo) -> Result<Scaled, VardecimalFault> {
    let Some((&first, mantissa)) = stored.split_first() else { return Ok(Scaled { negative: false, magnitude: 0 }) };
    let negative = first & POSITIVE == 0;
    // Zero bytes at the end add no digits.
    let used = mantissa.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let groups = (8 * used).div_ceil(BITS_PER_GROUP);
    let mantissa = mantissa.get(..used).unwrap_or_default();
    let exponent = i32::from(first & !POSITIVE) - EXPONENT_BIAS;
    let mut word = [0; 8];
    word.iter_mut().zip(mantissa).for_each(|(to, from)| *to = *from);
    let magnitude = match short(u64::from_be_bytes(word), used, exponent, info) {
        Some(magnitude) => magnitude.into(),
        None => of_any_length(mantissa, groups, exponent, info)?,
    };
    Ok(Scaled { negative, magnitude })
}

/// The value of the digit groups; `exponent` is the power of ten of the first group.
fn of_any_length(mantissa: &[u8], groups: usize, exponent: i32, info: TypeInfo) -> Result<u128, VardecimalFault> {
    use VardecimalFault::{OutOfDomain, Undescribed};
    if groups > MAX_GROUPS {
        return Err(OutOfDomain);
    }
    let mut digits: u128 = 0;
    // The number of digit places from the first digit to the last nonzero digit so far.
    let mut places = 0;
    let mut pending_zeros = 0;
    for group in 0..groups {
        let mut value = group_at(mantissa, group);
        if value > 999 {
            return Err(OutOfDomain);
        }
        if group == 0 && value < 100 {
            return Err(Undescribed);
        }
        if value == 0 {
            pending_zeros += DIGITS_PER_GROUP;
            continue;
        }
        // Zeros are added only when a nonzero digit follows them. Otherwise, a value of 38 digits could become a number
        // of 39 digits, because the last group is padded with zeros to three digits.
        let mut zeros = 0;
        while value.is_multiple_of(10) {
            value /= 10;
            zeros += 1;
        }
        let shift = pending_zeros + DIGITS_PER_GROUP - zeros;
        digits = power_of_ten(shift)
            .and_then(|power| digits.checked_mul(power))
            .and_then(|digits| digits.checked_add(value.into()))
            .ok_or(OutOfDomain)?;
        places += shift;
        pending_zeros = zeros;
    }
    if digits == 0 {
        return Err(Undescribed);
    }
    let shift = exponent - places + 1 + i32::from(info.scale);
    let magnitude = if shift >= 0 {
        power_of_ten(shift).and_then(|power| digits.checked_mul(power)).ok_or(OutOfDomain)?
    } else {
        let power = power_of_ten(-shift).ok_or(OutOfDomain)?;
        if !digits.is_multiple_of(power) {
            return Err(OutOfDomain);
        }
        digits / power
    };
    match power_of_ten(info.precision.into()) {
        Some(limit) if magnitude < limit => Ok(magnitude),
        _ => Err(OutOfDomain),
    }
}

/// The sign and magnitude of a value of at most eight bytes; `None` unless the value is certainly valid. `word` is the
/// stored value, read as a big-endian number.
#[inline(always)]
pub(super) fn of_word(word: u64, length: usize, info: TypeInfo) -> Option<(bool, u64)> {
    let Some(unused) = 8usize.checked_sub(length).filter(|_| length > 0) else {
        return (length == 0).then_some((false, 0));
    };
    let [first, ..] = (word << (8 * unused)).to_be_bytes();
    let bits = word << (8 * unused) << 8;
    let used = 8 - bits.trailing_zeros() as usize / 8;
    let exponent = i32::from(first & !POSITIVE) - EXPONENT_BIAS;
    Some((first & POSITIVE == 0, short(bits, used, exponent, info)?))
}

/// The magnitude of a value with at most five groups; `None` unless the value is certainly valid. Most decimals have at
/// most five groups. The groups are the highest bits of `bits`. The record stores the first `used` bytes of `bits`.
#[inline]
fn short(bits: u64, used: usize, exponent: i32, info: TypeInfo) -> Option<u64> {
    const GROUPS: usize = 5;
    const MOST_BYTES: usize = GROUPS * BITS_PER_GROUP / 8;
    if used == 0 || used > MOST_BYTES {
        return None;
    }
    /// The number 24 in each group. Adding it makes a group above 999 overflow its ten bits.
    const TO_1024: u64 = 24 * (1 | 1 << 10 | 1 << 20 | 1 << 30 | 1 << 40);
    /// The bits into which the groups overflow: the lowest bit above each group.
    const CARRIES: u64 = 1 << 10 | 1 << 20 | 1 << 30 | 1 << 40 | 1 << 50;
    // Groups after the stored bytes are 0. This is correct, because missing digits are zeros.
    let groups = bits >> (64 - GROUPS * BITS_PER_GROUP);
    let carried = (groups + TO_1024) ^ groups ^ TO_1024;
    let is_valid = carried & CARRIES == 0 && groups >> (4 * BITS_PER_GROUP) >= 100;
    // Turns each pair of groups into one number. In the bits, the first group of a pair has the factor 1024, but its
    // decimal factor is 1000.
    let pairs = groups - 24 * (groups >> BITS_PER_GROUP & (0x3FF | 0x3FF << 20));
    let digits = ((pairs >> 40) * 1_000_000 + (pairs >> 20 & 0xF_FFFF)) * 1_000_000 + (pairs & 0xF_FFFF);
    let shift = exponent - DIGITS_PER_GROUP * GROUPS as i32 + 1 + i32::from(info.scale);
    let power = *POWERS_OF_TEN.get(shift.unsigned_abs() as usize)?;
    let magnitude = match shift {
        0.. => digits.checked_mul(power)?,
        _ => divided(digits, shift.unsigned_abs())?,
    };
    let is_in_domain = POWERS_OF_TEN.get(usize::from(info.precision)).is_none_or(|limit| magnitude < *limit);
    (is_valid && is_in_domain && info.precision <= 38).then_some(magnitude)
}

/// Divides a number by 10^N; `None` if there is a remainder. 10^N is 2^N * 5^N. A shift divides by 2^N. 5^N has an
/// inverse modulo 2^64: if the number is a multiple of 5^N, its product with the inverse is the quotient. Otherwise the
/// product exceeds the largest possible quotient.
#[inline]
fn divided(number: u64, exponent: u32) -> Option<u64> {
    let (inverse, most) = *INVERSES_OF_FIVE.get(exponent as usize)?;
    let quotient = (number >> exponent).wrapping_mul(inverse);
    (number.trailing_zeros() >= exponent && quotient <= most).then_some(quotient)
}

/// For each exponent N: the inverse of 5^N modulo 2^64, and the largest quotient of a u64 divided by 5^N.
#[expect(clippy::indexing_slicing, reason = "a constant, whose places are below 20")]
const INVERSES_OF_FIVE: [(u64, u64); 20] = {
    // 5 * INVERSE is 4 * 2^64 + 1, which is 1 modulo 2^64.
    const INVERSE: u64 = 0xCCCC_CCCC_CCCC_CCCD;
    let mut inverses: [(u64, u64); 20] = [(1, u64::MAX); 20];
    let mut at = 1;
    while at < 20 {
        let (inverse, most) = inverses[at - 1];
        inverses[at] = (inverse.wrapping_mul(INVERSE), most / 5);
        at += 1;
    }
    inverses
};

/// All powers of ten below 2^64.
#[expect(clippy::indexing_slicing, reason = "a constant, whose places are below 20")]
const POWERS_OF_TEN: [u64; 20] = {
    let mut powers = [1; 20];
    let mut at = 1;
    while at < 20 {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// The group with this index: ten bits, most significant bit first. Bits beyond the end are 0.
fn group_at(mantissa: &[u8], group: usize) -> u16 {
    let bit = group * BITS_PER_GROUP;
    let byte = |at: usize| u32::from(mantissa.get(at).copied().unwrap_or_default());
    let at = bit / 8;
    let window = byte(at) << 16 | byte(at + 1) << 8 | byte(at + 2);
    (window >> (24 - BITS_PER_GROUP - bit % 8)) as u16 & 0x3FF
}

fn power_of_ten(exponent: i32) -> Option<u128> {
    types::power_of_ten(u8::try_from(exponent).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::xtype;
    use proptest::prelude::*;

    fn info(precision: u8, scale: u8) -> TypeInfo {
        TypeInfo { xtype: xtype::DECIMAL, length: 17, precision, scale }
    }

    proptest! {
        #[test]
        fn multiples_of_powers_of_ten_are_divided_as_by_division(number: u64, factor: u64, exponent in 0u32..20) {
            let power = 10u64.pow(exponent);
            let multiple = factor % (u64::MAX / power).saturating_add(1) * power;
            for number in [number, multiple, multiple.wrapping_add(1), multiple >> 1, 0, u64::MAX] {
                let expected = number.is_multiple_of(power).then_some(number / power);
                prop_assert_eq!(divided(number, exponent), expected);
            }
        }
    }

    /// Encodes a value digit by digit, as in the announcement of the format.
    fn encode(negative: bool, magnitude: u128, scale: u8) -> Vec<u8> {
        if magnitude == 0 {
            return Vec::new();
        }
        let digits = magnitude.to_string();
        let exponent = digits.len() as i32 - 1 - i32::from(scale);
        let mut bits = String::new();
        for group in digits.as_bytes().chunks(3) {
            let text = std::str::from_utf8(group).unwrap();
            let value: u16 = format!("{text:0<3}").parse().unwrap();
            bits.push_str(&format!("{value:010b}"));
        }
        let mut bytes = vec![if negative { 0 } else { 0x80 } | (exponent + 64) as u8];
        for eight in bits.as_bytes().chunks(8) {
            let text = format!("{:0<8}", std::str::from_utf8(eight).unwrap());
            bytes.push(u8::from_str_radix(&text, 2).unwrap());
        }
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        bytes
    }

    #[test]
    fn the_published_value() {
        assert_eq!(encode(false, 100, 2), [0xC0, 0x19]);
        assert_eq!(decode(&[0xC0, 0x19], info(38, 2)).unwrap().signed(), Some(100));
        assert_eq!(decode(&[0x40, 0x19], info(38, 2)).unwrap().signed(), Some(-100));
    }

    #[test]
    fn what_is_no_value_of_the_type() {
        use VardecimalFault::{OutOfDomain, Undescribed};
        assert_eq!(decode(&[0xC0, 0xFF, 0xC0], info(38, 2)), Err(OutOfDomain), "group 1023");
        assert_eq!(
            decode(&encode(false, 1234, 3), info(38, 2)),
            Err(OutOfDomain),
            "three places where two are declared"
        );
        assert_eq!(decode(&encode(false, 100_000, 2), info(5, 2)), Err(OutOfDomain), "six digits where five are");
        assert_eq!(decode(&encode(false, 99_999, 2), info(5, 2)).unwrap().signed(), Some(99_999));
        assert_eq!(decode(&[0xC4, 0x03, 0x15, 0x90], info(5, 0)), Err(Undescribed), "first group 012");
        assert_eq!(decode(&[0xC0], info(5, 0)), Err(Undescribed));
    }

    #[test]
    fn short_values_end_where_their_precision_does() {
        for precision in 1..=38u8 {
            let limit = 10u128.pow(precision.into());
            for (magnitude, is_value) in [(limit - 1, true), (limit, false), (limit + 1, false), (limit / 10, true)] {
                for (negative, scale) in
                    [false, true].into_iter().flat_map(|sign| [0, 2, precision].map(|scale| (sign, scale)))
                {
                    let (stored, info) = (encode(negative, magnitude, scale), info(precision, scale));
                    let expected =
                        if is_value { Ok(Scaled { negative, magnitude }) } else { Err(VardecimalFault::OutOfDomain) };
                    assert_eq!(decode(&stored, info), expected, "{magnitude} as decimal({precision},{scale})");
                    let Ok(number) =
                        <[u8; 8]>::try_from([&vec![0; 8usize.saturating_sub(stored.len())], &stored[..]].concat())
                    else {
                        continue;
                    };
                    let quick = of_word(u64::from_be_bytes(number), stored.len(), info);
                    match u64::try_from(magnitude) {
                        Ok(magnitude) if is_value => assert!(quick.is_none_or(|quick| quick == (negative, magnitude))),
                        _ => assert_eq!(quick, None, "{magnitude} as decimal({precision},{scale})"),
                    }
                    // A valid value below 10^12 has at most five groups, so `short` (called by `of_word`) must decode
                    // it.
                    assert!(
                        quick.is_some() == is_value || magnitude >= 10u128.pow(12),
                        "{magnitude} as decimal({precision},{scale})"
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn values_come_back(magnitude in 0u128..10u128.pow(38), cut in 0u32..38, scale in 0u8..=38, negative: bool) {
            let magnitude = magnitude / 10u128.pow(cut);
            let scaled = decode(&encode(negative, magnitude, scale), info(38, scale)).unwrap();
            prop_assert_eq!(scaled.magnitude, magnitude);
            prop_assert_eq!(scaled.negative, negative && magnitude != 0);
        }

        #[test]
        fn short_values_are_what_values_of_any_length_are(
            stored in prop_oneof![
                prop::collection::vec(any::<u8>(), 1..8),
                (0u128..10u128.pow(16), 0u32..16, 0u8..=6)
                    .prop_map(|(value, cut, scale)| encode(false, 1 + value / 10u128.pow(cut), scale)),
            ],
            precision in 1u8..=38,
            scale in 0u8..=8,
        ) {
            let (first, mantissa) = stored.split_first().unwrap();
            let used = mantissa.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            let groups = (8 * used).div_ceil(BITS_PER_GROUP);
            let (mantissa, exponent) = (&mantissa[..used], i32::from(first & !POSITIVE) - EXPONENT_BIAS);
            let mut word = [0; 8];
            word.iter_mut().zip(mantissa).for_each(|(to, from)| *to = *from);
            let quick = short(u64::from_be_bytes(word), used, exponent, info(precision, scale));
            if let Ok(number) = <[u8; 8]>::try_from([&vec![0; 8usize.saturating_sub(stored.len())], &stored[..]].concat()) {
                let expected = quick.map(|value| (first & POSITIVE == 0, value));
                prop_assert_eq!(of_word(u64::from_be_bytes(number), stored.len(), info(precision, scale)), expected);
            }
            let slow = of_any_length(mantissa, groups, exponent, info(precision, scale));
            match quick {
                Some(value) => prop_assert_eq!(slow, Ok(value.into())),
                None => prop_assert!(slow.is_err() || groups > 5 || slow.unwrap() >= 1 << 63 || exponent < 0, "{slow:?}"),
            }
        }

        #[test]
        fn any_bytes_decode_or_are_refused(stored in prop::collection::vec(any::<u8>(), 0..40), scale in 0u8..=38) {
            if let Ok(scaled) = decode(&stored, info(38, scale)) {
                prop_assert!(scaled.magnitude < 10u128.pow(38));
            }
        }
    }
}
