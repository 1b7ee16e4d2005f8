//! New values for numbers, dates and GUIDs. Each value of a type gets a position among all valid values of the type,
//! in their order. The values that occur get new positions in the same order.

use std::collections::BTreeSet;

use format::bytes::unsigned;
use format::domain::Domain;
use format::types::{TypeInfo, fixed_length, power_of_ten, xtype};

use crate::key::Key;

/// How the positions of a type's values follow from their bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Scale {
    Signed,
    Unsigned,
    DateTime,
    SmallDateTime,
    Date,
    /// The scale of the time.
    Time(u8),
    DateTime2(u8),
    /// Positions do not contain the offset from UTC, which stays.
    DateTimeOffset(u8),
    /// The precision.
    Decimal(u8),
    Float,
    Guid,
    RowVersion,
}

/// Values of one scale and one length are compared with each other.
pub(crate) type NumberKind = (Scale, u16);

const DATETIME_TICKS: u128 = 25_920_000;
const DATETIME_FIRST: i64 = -53_690;
const DATETIME_DAYS: u128 = 2_958_463 + 53_690 + 1;
const DAYS: u128 = 3_652_059;
const DAY_MINUTES: u128 = 24 * 60;
const MIDDLE: u128 = 1 << 127;

impl Scale {
    /// The scale of a type; `None` for texts and other types without positions, and for types with a scale or precision
    /// that no type can have.
    pub(crate) fn of(info: TypeInfo) -> Option<Self> {
        Domain::of(info)?;
        Some(match info.xtype {
            xtype::SMALLINT | xtype::INT | xtype::BIGINT | xtype::MONEY | xtype::SMALLMONEY => Self::Signed,
            xtype::TINYINT => Self::Unsigned,
            xtype::DATE => Self::Date,
            xtype::TIME => Self::Time(info.scale),
            xtype::DATETIME => Self::DateTime,
            xtype::SMALLDATETIME => Self::SmallDateTime,
            xtype::DATETIME2 => Self::DateTime2(info.scale),
            xtype::DATETIMEOFFSET => Self::DateTimeOffset(info.scale),
            xtype::DECIMAL | xtype::NUMERIC => Self::Decimal(info.precision),
            xtype::REAL | xtype::FLOAT => Self::Float,
            xtype::UNIQUEIDENTIFIER => Self::Guid,
            xtype::TIMESTAMP => Self::RowVersion,
            _ => return None,
        })
    }

    /// The scale and length of a type's values.
    pub(crate) fn kind(info: TypeInfo) -> Option<NumberKind> {
        Some((Self::of(info)?, fixed_length(info)?))
    }

    /// The number of positions in a day.
    fn per_day(self) -> u128 {
        match self {
            Self::Time(scale) | Self::DateTime2(scale) | Self::DateTimeOffset(scale) => {
                86_400 * power_of_ten(scale).unwrap_or(1)
            }
            _ => 1,
        }
    }

    fn domain(self, length: u16) -> Domain {
        match self {
            Self::Signed | Self::Unsigned | Self::Guid | Self::RowVersion => Domain::Any,
            Self::DateTime => Domain::DateTime,
            Self::SmallDateTime => Domain::SmallDateTime,
            Self::Date => Domain::Date,
            Self::Time(scale) => Domain::Time(scale),
            Self::DateTime2(scale) => Domain::DateTime2(scale),
            Self::DateTimeOffset(scale) => Domain::DateTimeOffset(scale),
            Self::Decimal(precision) => Domain::Decimal(precision),
            Self::Float if length == 4 => Domain::Real,
            Self::Float => Domain::Float,
        }
    }

    /// The position of a value; `None` if the value is invalid or has another length than the type.
    pub(crate) fn position(self, length: u16, bytes: &[u8]) -> Option<u128> {
        if bytes.len() != usize::from(length) || self.domain(length).contains(bytes) != Some(true) {
            return None;
        }
        let number = |range: std::ops::Range<usize>| bytes.get(range).map(unsigned);
        let long = |bytes: &[u8]| bytes.iter().rev().fold(0u128, |all, byte| all << 8 | u128::from(*byte));
        Some(match self {
            Self::Unsigned => unsigned(bytes).into(),
            Self::Signed => offset_by(signed(unsigned(bytes), bytes.len())),
            Self::Date => unsigned(bytes).into(),
            Self::Time(_) => unsigned(bytes).into(),
            Self::DateTime => {
                let days = i64::from((number(4..8)? as u32).cast_signed()) - DATETIME_FIRST;
                u128::try_from(days).ok()? * DATETIME_TICKS + u128::from(number(0..4)?)
            }
            Self::SmallDateTime => u128::from(number(2..4)?) * DAY_MINUTES + u128::from(number(0..2)?),
            Self::DateTime2(_) | Self::DateTimeOffset(_) => {
                let day = self.time_bytes(length);
                u128::from(number(day..day + 3)?) * self.per_day() + u128::from(number(0..day)?)
            }
            Self::Decimal(_) => {
                let (sign, magnitude) = bytes.split_first()?;
                let magnitude = i128::try_from(long(magnitude)).ok()?;
                offset_by(if *sign == 0 { -magnitude } else { magnitude })
            }
            Self::Float => {
                let (bits, sign, least) = float_bits(unsigned(bytes), length);
                // Minus zero is valid and equals zero, but it must stay minus zero.
                if bits == 0 && sign {
                    return None;
                }
                let above_zero = i128::from(bits.saturating_sub(least - 1));
                offset_by(if sign { -above_zero } else { above_zero })
            }
            Self::Guid => guid(bytes)?,
            Self::RowVersion => bytes.iter().fold(0, |all, byte| all << 8 | u128::from(*byte)),
        })
    }

    /// The number of bytes before the days.
    fn time_bytes(self, length: u16) -> usize {
        let after = if matches!(self, Self::DateTimeOffset(_)) { 5 } else { 3 };
        usize::from(length.saturating_sub(after))
    }

    /// Writes the value at a position over a value of the same type.
    pub(crate) fn put(self, length: u16, position: u128, bytes: &mut [u8]) {
        let end = usize::from(length);
        let mut put = |range: std::ops::Range<usize>, value: u128| {
            if let Some(place) = bytes.get_mut(range) {
                place.iter_mut().zip(value.to_le_bytes()).for_each(|(byte, new)| *byte = new);
            }
        };
        let signed = |position: u128| position.wrapping_sub(MIDDLE).cast_signed();
        match self {
            Self::Unsigned | Self::Date | Self::Time(_) => put(0..end, position),
            Self::Signed => put(0..end, signed(position).cast_unsigned()),
            Self::DateTime => {
                put(0..4, position % DATETIME_TICKS);
                let days = (position / DATETIME_TICKS) as i64 + DATETIME_FIRST;
                put(4..8, i128::from(days).cast_unsigned());
            }
            Self::SmallDateTime => {
                put(0..2, position % DAY_MINUTES);
                put(2..4, position / DAY_MINUTES);
            }
            Self::DateTime2(_) | Self::DateTimeOffset(_) => {
                let day = self.time_bytes(length);
                put(0..day, position % self.per_day());
                put(day..day + 3, position / self.per_day());
            }
            Self::Decimal(_) => {
                let value = signed(position);
                put(0..1, u128::from(value >= 0));
                put(1..end, value.unsigned_abs());
            }
            Self::Float => {
                let value = signed(position);
                let (_, _, least) = float_bits(0, length);
                let bits = if value == 0 { 0 } else { value.unsigned_abs() + u128::from(least - 1) };
                let sign = if value < 0 { 1u128 << (8 * u32::from(length.max(1)) - 1) } else { 0 };
                put(0..end, bits | sign);
            }
            Self::Guid => {
                if let Some(place) = bytes.get_mut(0..16) {
                    place.copy_from_slice(&unguid(position));
                }
            }
            Self::RowVersion => {
                if let Some(place) = bytes.get_mut(0..8) {
                    place.copy_from_slice(&(position as u64).to_be_bytes());
                }
            }
        }
    }

    /// The first and the last position.
    fn limits(self, length: u16) -> (u128, u128) {
        let bits = 8 * u32::from(length.clamp(1, 15));
        let around_middle = |least: u128, most: u128| (MIDDLE - least, MIDDLE + most);
        match self {
            Self::Unsigned | Self::RowVersion => (0, (1 << bits) - 1),
            Self::Signed => around_middle(1 << (bits - 1), (1 << (bits - 1)) - 1),
            Self::Date => (0, DAYS - 1),
            Self::Time(_) => (0, self.per_day() - 1),
            Self::DateTime => (0, DATETIME_DAYS * DATETIME_TICKS - 1),
            Self::SmallDateTime => (0, DAY_MINUTES * 0x1_0000 - 1),
            Self::DateTime2(_) | Self::DateTimeOffset(_) => (0, DAYS * self.per_day() - 1),
            Self::Decimal(precision) => {
                let stored = 1u128.checked_shl(8 * u32::from(length.saturating_sub(1))).unwrap_or(MIDDLE) - 1;
                let most = power_of_ten(precision).map_or(stored, |limit| (limit - 1).min(stored));
                around_middle(most, most)
            }
            Self::Float => {
                let (_, _, least) = float_bits(0, length);
                let infinity = if length == 4 { 0x7F80_0000u64 } else { 0x7FF0 << 48 };
                let most = u128::from(infinity - least);
                around_middle(most, most)
            }
            Self::Guid => (0, u128::MAX),
        }
    }

    /// The position that keeps its value: zero. A new value cannot have another sign than the old one.
    fn fixed(self) -> Option<u128> {
        matches!(self, Self::Signed | Self::Decimal(_) | Self::Float).then_some(MIDDLE)
    }
}

fn offset_by(value: impl Into<i128>) -> u128 {
    value.into().cast_unsigned().wrapping_add(MIDDLE)
}

fn signed(value: u64, length: usize) -> i64 {
    let shift = 64 - 8 * length.clamp(1, 8) as u32;
    (value << shift).cast_signed() >> shift
}

/// The bits of a floating-point number without its sign, the sign, and the bits of the least normal number.
fn float_bits(bits: u64, length: u16) -> (u64, bool, u64) {
    match length {
        4 => (bits & 0x7FFF_FFFF, bits & 0x8000_0000 != 0, 0x0080_0000),
        _ => (bits & (u64::MAX >> 1), bits >> 63 != 0, 0x0010 << 48),
    }
}

/// The places of the bytes of a GUID, in the order in which they are compared.
const GUID_ORDER: [usize; 16] = [10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3];

fn guid(bytes: &[u8]) -> Option<u128> {
    GUID_ORDER.iter().try_fold(0, |all, at| Some(all << 8 | u128::from(*bytes.get(*at)?)))
}

fn unguid(position: u128) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (at, byte) in GUID_ORDER.iter().zip(position.to_be_bytes()) {
        if let Some(place) = bytes.get_mut(*at) {
            *place = byte;
        }
    }
    bytes
}

/// The new positions of the values of one kind that occur.
#[derive(Default)]
pub(crate) struct Numbers {
    old: Vec<u128>,
    new: Vec<u128>,
}

impl Numbers {
    /// Draws new positions in the order of the old ones.
    pub(crate) fn draw(kind: NumberKind, old: &BTreeSet<u128>, key: Key) -> Self {
        let (scale, length) = kind;
        let (first, last) = scale.limits(length);
        let fixed = scale.fixed();
        let mut new = Vec::with_capacity(old.len());
        let all: Vec<u128> = old.iter().copied().collect();
        let mut stream = key.stream(key.hash([0x4E, all.len() as u64, length.into()]));
        let middle = fixed.map_or(all.len(), |fixed| all.partition_point(|at| *at < fixed));
        let (below, above) = all.split_at(middle);
        match fixed {
            None => new.extend(spread(below, (first, last), &mut stream)),
            Some(fixed) => {
                new.extend(spread(below, (first, fixed - 1), &mut stream));
                let (zero, above) = above.split_at(usize::from(above.first() == Some(&fixed)));
                new.extend(zero);
                new.extend(spread(above, (fixed + 1, last), &mut stream));
            }
        }
        Self { old: all, new }
    }

    pub(crate) fn get(&self, old: u128) -> Option<u128> {
        self.old.binary_search(&old).ok().and_then(|at| self.new.get(at)).copied()
    }
}

/// How often a new position is drawn again if an old value has it.
const TRIES: u32 = 64;

/// New positions for ascending old ones, within the limits. The range is little larger than that of the old positions,
/// so that the new values look like the old ones.
fn spread(old: &[u128], (first, last): (u128, u128), stream: &mut crate::key::Stream) -> Vec<u128> {
    let (Some(&least), Some(&most)) = (old.first(), old.last()) else { return Vec::new() };
    let count = old.len() as u128;
    let margin = (most - least).max(64 * count).max(1 << 10);
    let first = first.max(least.saturating_sub(margin));
    let last = last.min(most.saturating_add(margin));
    let spare = (last - first).saturating_sub(count - 1);
    let mut drawn: Vec<u128> = old.iter().map(|_| stream.up_to(spare)).collect();
    drawn.sort_unstable();
    let mut new: Vec<u128> = drawn.iter().zip(0u128..).map(|(drawn, at)| first + drawn + at).collect();
    for at in 0..new.len() {
        let before = at.checked_sub(1).and_then(|at| new.get(at)).map_or(first, |before| before + 1);
        let after = new.get(at + 1).map_or(last, |after| after - 1);
        let Some(place) = new.get_mut(at) else { continue };
        for _ in 0..TRIES {
            if old.binary_search(place).is_err() {
                break;
            }
            *place = before + stream.up_to(after - before);
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(kind: u8, precision: u8, scale: u8) -> TypeInfo {
        TypeInfo { xtype: kind, length: 0, precision, scale }
    }

    const TYPES: [(u8, u8, u8); 19] = [
        (xtype::TINYINT, 0, 0),
        (xtype::SMALLINT, 0, 0),
        (xtype::INT, 0, 0),
        (xtype::BIGINT, 0, 0),
        (xtype::MONEY, 0, 0),
        (xtype::DATE, 0, 0),
        (xtype::TIME, 0, 3),
        (xtype::DATETIME, 0, 0),
        (xtype::SMALLDATETIME, 0, 0),
        (xtype::DATETIME2, 0, 7),
        (xtype::DATETIMEOFFSET, 0, 0),
        (xtype::DECIMAL, 9, 2),
        (xtype::DECIMAL, 19, 2),
        (xtype::DECIMAL, 28, 2),
        (xtype::DECIMAL, 38, 2),
        (xtype::REAL, 0, 0),
        (xtype::FLOAT, 0, 0),
        (xtype::UNIQUEIDENTIFIER, 0, 0),
        (xtype::TIMESTAMP, 0, 0),
    ];

    #[test]
    fn a_position_is_written_as_the_value_that_has_it() {
        for (kind, precision, scale) in TYPES {
            let info = info(kind, precision, scale);
            let (scale, length) = Scale::kind(info).unwrap();
            let (first, last) = scale.limits(length);
            let mut stream = Key::from_seed(7).stream(u64::from(kind));
            let drawn = (0..200).map(|_| first + stream.up_to(last - first));
            for position in drawn.chain([first, last]) {
                let mut bytes = vec![0; usize::from(length)];
                scale.put(length, position, &mut bytes);
                assert_eq!(scale.position(length, &bytes), Some(position), "{info:?} {bytes:02x?}");
            }
        }
    }

    #[test]
    fn new_values_are_other_values_in_the_same_order() {
        for (kind, precision, scale) in TYPES {
            let kind = Scale::kind(info(kind, precision, scale)).unwrap();
            let (first, last) = kind.0.limits(kind.1);
            let mut stream = Key::from_seed(8).stream(u64::from(kind.1));
            let span = (last - first).min(1_000_000);
            let old: BTreeSet<u128> = (0..50).map(|_| last - stream.up_to(span)).collect();
            let numbers = Numbers::draw(kind, &old, Key::from_seed(9));
            assert!(numbers.new.is_sorted_by(|one, next| one < next), "{kind:?}");
            assert_eq!(numbers.new.len(), old.len());
            let same = numbers.new.iter().filter(|new| old.contains(new) && Some(**new) != kind.0.fixed()).count();
            assert!(same == 0 || kind.1 == 1, "{kind:?}: {same}");
        }
    }

    #[test]
    fn an_impossible_scale_or_precision_has_no_positions() {
        for kind in [xtype::TIME, xtype::DATETIME2, xtype::DATETIMEOFFSET] {
            assert!(Scale::kind(info(kind, 0, 7)).is_some());
            assert_eq!(Scale::kind(info(kind, 0, 8)), None);
            assert_eq!(Scale::kind(info(kind, 0, 255)), None);
        }
        for precision in [0, 39, 255] {
            assert_eq!(Scale::kind(info(xtype::DECIMAL, precision, 2)), None);
        }
    }

    #[test]
    fn zero_stays_and_signs_stay() {
        let kind = Scale::kind(info(xtype::INT, 0, 0)).unwrap();
        let at = |value: i32| kind.0.position(4, &value.to_le_bytes()).unwrap();
        let old: BTreeSet<u128> = [-3, -2, 0, 1, 2, i32::MAX].map(at).into();
        let numbers = Numbers::draw(kind, &old, Key::from_seed(3));
        assert_eq!(numbers.get(at(0)), Some(at(0)));
        assert!(numbers.get(at(-2)).unwrap() < at(0) && numbers.get(at(1)).unwrap() > at(0));
        assert_eq!(numbers.get(at(77)), None, "a value that does not occur");
    }
}
