//! Value domains: the byte strings that are valid values of a type (docs/format/types-and-keys.md#valid-values; message
//! 2570).

mod pieces;
mod spatial;

use crate::bytes::{u16_at, unsigned};
use crate::types::{TypeInfo, fixed_length, power_of_ten, user_type, xtype};

pub use pieces::Pieces;

/// The last day of date, datetime2 and datetimeoffset, 9999-12-31, in days since 0001-01-01.
const LAST_DAY: u64 = 3_652_058;
/// The valid days of a datetime, 1753-01-01 to 9999-12-31, in days since 1900-01-01.
const DATETIME_DAYS: std::ops::RangeInclusive<i32> = -53_690..=2_958_463;
/// The number of ticks of 1/300 second in a day.
const DATETIME_TICKS: u32 = 25_920_000;
/// The number of seconds in a day.
const DAY_SECONDS: u64 = 86_400;
/// The largest offset from UTC in minutes.
const MAX_OFFSET: u16 = 14 * 60;

/// The set of valid values of a type, among all byte strings of its length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Domain {
    /// All byte strings are valid.
    Any,
    /// u32 ticks of 1/300 second, then i32 days since 1900-01-01.
    DateTime,
    /// u16 minutes, then u16 days.
    SmallDateTime,
    /// Three bytes: days since 0001-01-01.
    Date,
    /// A time of day with this scale.
    Time(u8),
    /// A time of day with this scale, then a date.
    DateTime2(u8),
    /// A datetime2 of this scale, then an offset in minutes.
    DateTimeOffset(u8),
    /// A sign byte, then a magnitude below ten to the power of this precision.
    Decimal(u8),
    /// A normal number or zero in four bytes.
    Real,
    /// A normal number or zero in eight bytes.
    Float,
    /// UTF-16, which has an even number of bytes. Values that the client encrypted have their own format.
    Utf16,
    /// Binary XML, which begins with a signature and a version.
    Xml,
    /// Binary XML, or a document under the XML compression of SQL Server 2022, which has an unknown format.
    CompressibleXml,
    /// A sql_variant: a value preceded by its type.
    Variant,
    /// A geometry or geography. The lengths of its parts must add up to its own length.
    Spatial,
    /// A vector: a header with the number of dimensions, then one number for each dimension.
    Vector,
}

impl Domain {
    /// The domain of a type; `None` if uncertain (CLR types, json, undocumented types).
    ///
    /// ```
    /// use format::domain::Domain;
    /// use format::types::TypeInfo;
    /// let decimal = Domain::of(TypeInfo::from_ti(0x0002_056A)).unwrap();
    /// assert_eq!(decimal.contains(&[1, 0x9F, 0x86, 0x01, 0]), Some(true), "999.99");
    /// assert_eq!(decimal.contains(&[1, 0xA0, 0x86, 0x01, 0]), Some(false), "1000.00");
    /// ```
    pub fn of(info: TypeInfo) -> Option<Self> {
        Some(match info.xtype {
            xtype::TINYINT | xtype::SMALLINT | xtype::INT | xtype::BIGINT | xtype::BIT => Self::Any,
            xtype::MONEY | xtype::SMALLMONEY | xtype::UNIQUEIDENTIFIER | xtype::TIMESTAMP => Self::Any,
            xtype::CHAR | xtype::VARCHAR | xtype::BINARY | xtype::VARBINARY => Self::Any,
            xtype::TEXT | xtype::IMAGE => Self::Any,
            xtype::NCHAR | xtype::NVARCHAR | xtype::NTEXT => Self::Utf16,
            xtype::DATETIME => Self::DateTime,
            xtype::SMALLDATETIME => Self::SmallDateTime,
            xtype::DATE => Self::Date,
            xtype::TIME if info.scale <= 7 => Self::Time(info.scale),
            xtype::DATETIME2 if info.scale <= 7 => Self::DateTime2(info.scale),
            xtype::DATETIMEOFFSET if info.scale <= 7 => Self::DateTimeOffset(info.scale),
            xtype::DECIMAL | xtype::NUMERIC if (1..=38).contains(&info.precision) => Self::Decimal(info.precision),
            xtype::REAL => Self::Real,
            xtype::FLOAT => Self::Float,
            xtype::XML => Self::Xml,
            xtype::SQL_VARIANT => Self::Variant,
            _ => return None,
        })
    }

    /// The domain of a column. `user` is the ID of its type in sysscalartypes.
    pub fn of_column(info: TypeInfo, user: i32) -> Option<Self> {
        match (info.xtype, user) {
            (xtype::CLR, user_type::GEOMETRY | user_type::GEOGRAPHY) => Some(Self::Spatial),
            (xtype::VARBINARY, user_type::VECTOR) => Some(Self::Vector),
            _ => Self::of(info),
        }
    }

    /// Whether `bytes` are a value of the domain; `None` if uncertain. `bytes` must be the value itself, not a pointer
    /// to an off-row value.
    #[inline]
    pub fn contains(self, bytes: &[u8]) -> Option<bool> {
        match self {
            Self::Any => Some(true),
            Self::DateTime => {
                let (ticks, days) = bytes.split_first_chunk::<4>()?;
                let days = i32::from_le_bytes(*days.first_chunk()?);
                Some(u32::from_le_bytes(*ticks) < DATETIME_TICKS && DATETIME_DAYS.contains(&days))
            }
            Self::SmallDateTime => Some(unsigned(bytes.first_chunk::<2>()?) < 24 * 60),
            Self::Date => Some(unsigned(bytes) <= LAST_DAY),
            Self::Time(scale) => Some(unsigned(bytes) < DAY_SECONDS * 10u64.checked_pow(scale.into())?),
            Self::DateTime2(scale) => {
                let (time, date) = bytes.split_at_checked(bytes.len().checked_sub(3)?)?;
                Some(Self::Time(scale).contains(time)? && Self::Date.contains(date)?)
            }
            Self::DateTimeOffset(scale) => {
                let (moment, offset) = bytes.split_last_chunk::<2>()?;
                let offset = i16::from_le_bytes(*offset).unsigned_abs();
                Some(Self::DateTime2(scale).contains(moment)? && offset <= MAX_OFFSET)
            }
            Self::Decimal(precision) => decimal(bytes, precision),
            Self::Real => Some(is_number(unsigned(bytes.first_chunk::<4>()?), 0x7F80_0000, 0x007F_FFFF)),
            Self::Float => {
                Some(is_number(u64::from_le_bytes(*bytes.first_chunk()?), 0x7FF0 << 48, 0x000F_FFFF_FFFF_FFFF))
            }
            Self::Utf16 => match bytes.len().is_multiple_of(2) {
                true => Some(true),
                false => (!may_be_encrypted(bytes)).then_some(false),
            },
            // An empty document may have no bytes at all.
            Self::Xml => Some(bytes.is_empty() || matches!(bytes, [0xDF, 0xFF, 1 | 2, ..])),
            Self::CompressibleXml => Self::Xml.contains(bytes).filter(|is_plain| *is_plain),
            Self::Variant => variant(bytes),
            Self::Spatial => spatial::is_whole(bytes).then_some(true),
            Self::Vector => vector(bytes),
        }
    }
}

/// The valid values of a decimal column with magnitudes of four or eight bytes.
#[derive(Clone, Copy, Debug)]
pub struct ShortDecimals {
    most: u64,
}

impl ShortDecimals {
    /// The valid values of a column with this precision.
    pub fn of(precision: u8) -> Self {
        // From a precision of 20 on, every magnitude of eight bytes is valid: ten to the power of 20 does not fit into
        // eight bytes.
        Self { most: 10u64.checked_pow(precision.into()).map_or(u64::MAX, |limit| limit - 1) }
    }

    /// Whether this sign byte and this magnitude are a valid value.
    #[inline]
    pub fn contains(self, sign: u8, magnitude: u64) -> bool {
        // Minus zero is invalid: Microsoft's lists of fixes name it among the values that CHECKDB reports
        // (docs/format/types-and-keys.md).
        sign <= 1 && magnitude <= self.most && u64::from(sign) | magnitude != 0
    }
}

/// Whether a floating-point number is zero or normal, which excludes denormal numbers, infinities and NaN.
fn is_number(bits: u64, exponent: u64, fraction: u64) -> bool {
    match bits & exponent {
        0 => bits & fraction == 0,
        all => all != exponent,
    }
}

fn decimal(bytes: &[u8], precision: u8) -> Option<bool> {
    let (&sign, magnitude) = bytes.split_first()?;
    let in_range = match magnitude.len() {
        4 | 8 => return Some(ShortDecimals::of(precision).contains(sign, unsigned(magnitude))),
        12 | 16 => {
            let mut value = [0; 16];
            value.iter_mut().zip(magnitude).for_each(|(place, byte)| *place = *byte);
            u128::from_le_bytes(value) < power_of_ten(precision)?
        }
        _ => return None,
    };
    // Minus zero is invalid in decimals of any length.
    let is_minus_zero = sign == 0 && magnitude.iter().all(|byte| *byte == 0);
    Some(sign <= 1 && in_range && !is_minus_zero)
}

/// Whether a value may be encrypted by Always Encrypted: a byte 1, a tag of 32 bytes, an initialization vector of 16
/// bytes, then blocks of 16 bytes. The declared type of the column does not matter
/// (docs/format/other-features.md#always-encrypted).
pub fn may_be_encrypted(bytes: &[u8]) -> bool {
    may_begin_encrypted(bytes, bytes.len() as u64)
}

/// Whether a value of `stored_bytes` bytes that begins with `start` may be encrypted by Always Encrypted (see
/// [`may_be_encrypted`]).
pub fn may_begin_encrypted(start: &[u8], stored_bytes: u64) -> bool {
    let blocks_bytes = stored_bytes.checked_sub(49);
    start.first() == Some(&1) && blocks_bytes.is_some_and(|bytes| bytes >= 16 && bytes.is_multiple_of(16))
}

/// Checks a sql_variant: base type, version 1, properties, value (docs/format/types-and-keys.md#sql_variant). Values
/// with other headers are undecided.
fn variant(bytes: &[u8]) -> Option<bool> {
    let (&[base, 1], rest) = bytes.split_first_chunk::<2>()? else { return None };
    let mut info = TypeInfo { xtype: base, ..TypeInfo::default() };
    let properties = match base {
        xtype::DECIMAL | xtype::NUMERIC => {
            (info.precision, info.scale) = (*rest.first()?, *rest.get(1)?);
            2
        }
        xtype::BINARY | xtype::VARBINARY => 2,
        xtype::CHAR | xtype::VARCHAR | xtype::NCHAR | xtype::NVARCHAR => 6,
        xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET => {
            info.scale = *rest.first()?;
            1
        }
        xtype::TINYINT | xtype::SMALLINT | xtype::INT | xtype::BIGINT | xtype::BIT => 0,
        xtype::MONEY | xtype::SMALLMONEY | xtype::REAL | xtype::FLOAT | xtype::UNIQUEIDENTIFIER => 0,
        xtype::DATE | xtype::DATETIME | xtype::SMALLDATETIME => 0,
        _ => return None,
    };
    let (value, domain) = (rest.get(properties..)?, Domain::of(info)?);
    // The properties of binary and character values begin with their maximum length.
    if properties == 2 && fixed_length(info).is_none() || properties == 6 {
        let most = usize::from(u16_at(rest, 0)?);
        return domain.contains(value).filter(|_| value.len() <= most);
    }
    let is_whole = match fixed_length(info).map(usize::from) {
        // A decimal may have fewer bytes than its precision allows: XML indexes store 9 bytes at a precision of 38.
        Some(most) if matches!(domain, Domain::Decimal(_)) => value.len() <= most,
        Some(length) => value.len() == length,
        None => true,
    };
    domain.contains(value).filter(|_| is_whole)
}

/// Checks a vector: A9 01, number of dimensions, zeros, then a four-byte float for each dimension
/// (docs/format/other-features.md#json-and-vector). Values with other headers are undecided.
fn vector(bytes: &[u8]) -> Option<bool> {
    let &[0xA9, 1, low, high, 0, 0, 0, 0, ref values @ ..] = bytes else { return None };
    Some(values.len() == usize::from(u16::from_le_bytes([low, high])) * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: u8, precision: u8, scale: u8) -> Domain {
        Domain::of(TypeInfo { xtype: kind, length: 0, precision, scale }).unwrap()
    }

    fn in_and_out(domain: Domain, inside: &[&[u8]], outside: &[&[u8]]) {
        for (values, expected) in [(inside, true), (outside, false)] {
            for bytes in values {
                assert_eq!(domain.contains(bytes), Some(expected), "{domain:?} {bytes:02x?}");
            }
        }
    }

    fn datetime(ticks: u32, days: i32) -> [u8; 8] {
        (u64::from(ticks) | u64::from(days.cast_unsigned()) << 32).to_le_bytes()
    }

    #[test]
    fn date_and_time_types() {
        in_and_out(
            of(xtype::DATETIME, 0, 0),
            &[&datetime(0, 0), &datetime(25_919_999, 2_958_463), &datetime(0, -53_690)],
            &[&datetime(25_920_000, 0), &datetime(0, 2_958_464), &datetime(0, -53_691)],
        );
        in_and_out(of(xtype::SMALLDATETIME, 0, 0), &[&[0x9F, 5, 0xFF, 0xFF]], &[&[0xA0, 5, 0, 0]]);
        in_and_out(of(xtype::DATE, 0, 0), &[&[0xDA, 0xB9, 0x37]], &[&[0xDB, 0xB9, 0x37]]);
        in_and_out(of(xtype::TIME, 0, 0), &[&[0x7F, 0x51, 1]], &[&[0x80, 0x51, 1]]);
        let last = (86_400u64 * 10_000_000 - 1).to_le_bytes();
        let over = (86_400u64 * 10_000_000).to_le_bytes();
        in_and_out(of(xtype::TIME, 0, 7), &[&last[..5]], &[&over[..5]]);
        let moment = |time: &[u8], day: [u8; 3], rest: &[u8]| [time, &day, rest].concat();
        in_and_out(
            of(xtype::DATETIME2, 0, 7),
            &[&moment(&last[..5], [0xDA, 0xB9, 0x37], &[])],
            &[&moment(&over[..5], [0, 0, 0], &[]), &moment(&last[..5], [0xDB, 0xB9, 0x37], &[])],
        );
        in_and_out(
            of(xtype::DATETIMEOFFSET, 0, 7),
            &[
                &moment(&last[..5], [0; 3], &840i16.to_le_bytes()),
                &moment(&last[..5], [0; 3], &(-840i16).to_le_bytes()),
            ],
            &[&moment(&last[..5], [0; 3], &841i16.to_le_bytes()), &moment(&last[..5], [0; 3], &i16::MIN.to_le_bytes())],
        );
    }

    #[test]
    fn numbers() {
        in_and_out(
            of(xtype::DECIMAL, 9, 0),
            &[&[1, 0, 0, 0, 0], &[0, 1, 0, 0, 0], &[1, 0xFF, 0xC9, 0x9A, 0x3B]],
            &[&[0, 0, 0, 0, 0], &[2, 0, 0, 0, 0], &[1, 0, 0xCA, 0x9A, 0x3B]],
        );
        for precision in [10, 19, 20, 28, 29, 38] {
            let info = TypeInfo { xtype: xtype::NUMERIC, precision, ..TypeInfo::default() };
            let length = usize::from(fixed_length(info).unwrap());
            let limit = 10u128.pow(precision.into());
            let bytes = |value: u128| [&[1], &value.to_le_bytes()[..length - 1]].concat();
            in_and_out(of(xtype::NUMERIC, precision, 2), &[&bytes(limit - 1)], &[&bytes(limit)]);
        }
        let real = |value: u32| value.to_le_bytes();
        in_and_out(
            of(xtype::REAL, 0, 0),
            &[&real(0), &real(0x8000_0000), &1.5f32.to_le_bytes(), &f32::MIN_POSITIVE.to_le_bytes()],
            &[&real(1), &f32::NAN.to_le_bytes(), &f32::NEG_INFINITY.to_le_bytes()],
        );
        in_and_out(
            of(xtype::FLOAT, 0, 0),
            &[&0f64.to_le_bytes(), &(-0f64).to_le_bytes(), &f64::MAX.to_le_bytes()],
            &[&1u64.to_le_bytes(), &f64::INFINITY.to_le_bytes(), &f64::NAN.to_le_bytes()],
        );
    }

    #[test]
    fn short_decimals_end_where_their_precision_does() {
        for precision in 1..=38 {
            let limit = 10u128.pow(precision.into());
            let domain = ShortDecimals::of(precision);
            let near = (0..=20).map(|power| 10u128.pow(power)).chain([limit, 1 << 32, 1 << 63, 1 << 64]);
            for magnitude in near.flat_map(|power| [power - 1, power, power + 1]) {
                for sign in [0, 1, 2, 0x80, 0xFF] {
                    let is_value = sign <= 1 && magnitude < limit && (sign, magnitude) != (0, 0);
                    let bytes = [&[sign], &magnitude.to_le_bytes()[..]].concat();
                    let of_length = |length: usize| Domain::Decimal(precision).contains(&bytes[..length]);
                    if let Ok(short) = u64::try_from(magnitude) {
                        assert_eq!(domain.contains(sign, short), is_value, "{sign} {short}, precision {precision}");
                        assert_eq!(of_length(9), Some(is_value), "{sign} {short}, precision {precision}");
                    }
                    if u32::try_from(magnitude).is_ok() {
                        assert_eq!(of_length(5), Some(is_value), "{sign} {magnitude}, precision {precision}");
                    }
                    // The same number with a magnitude of 16 bytes must give the same result.
                    assert_eq!(of_length(17), Some(is_value), "{sign} {magnitude}, precision {precision}");
                }
            }
        }
    }

    #[test]
    fn texts_and_documents() {
        let mut encrypted = vec![1; 49 + 32];
        assert_eq!(Domain::Utf16.contains(&encrypted), None, "may be encrypted by the client");
        encrypted[0] = 2;
        in_and_out(Domain::Utf16, &[&[], &[0x41, 0]], &[&[0x41], &encrypted]);
        assert_eq!(Domain::CompressibleXml.contains(&[0xDF, 0xFF, 1, 0xB0, 4]), Some(true));
        assert_eq!(Domain::CompressibleXml.contains(&[0x3C, 0x61]), None);
        in_and_out(Domain::Xml, &[&[], &[0xDF, 0xFF, 1, 0xB0, 4]], &[&[0xDF], &[0xDF, 0xFF, 3], &[0x3C, 0x61]]);
    }

    #[test]
    fn variants() {
        let date = [0x28, 1, 0x5B, 0x95, 0x0A];
        let text = [0xE7, 1, 0x40, 0x1F, 8, 0xD0, 0, 0x34, 0x41, 0];
        let decimal = [0x6A, 1, 9, 2, 1, 5, 0, 0, 0];
        let short = [0x6C, 1, 38, 10, 1, 0, 0x18, 0x7B, 0xBD, 0x12, 1, 0, 0];
        in_and_out(
            Domain::Variant,
            &[&date, &text, &decimal, &short],
            &[&[0x28, 1, 0xFF, 0xFF, 0xFF], &text[..9], &[0x6A, 1, 3, 2, 1, 0xE8, 3, 0, 0]],
        );
        let longer = [0xE7, 1, 2, 0, 8, 0xD0, 0, 0x34, 0x41, 0, 0x42, 0];
        for undecided in [&date[..4], &longer, &[0x28, 2, 0, 0, 0], &[0x22, 1, 0], &[]] {
            assert_eq!(Domain::Variant.contains(undecided), None, "{undecided:02x?}");
        }
    }

    #[test]
    fn types_known_by_their_type_id() {
        let varbinary = TypeInfo { xtype: xtype::VARBINARY, length: 8000, ..TypeInfo::default() };
        let clr = TypeInfo { xtype: xtype::CLR, ..TypeInfo::default() };
        assert_eq!(Domain::of_column(varbinary, 165), Some(Domain::Any));
        assert_eq!(Domain::of_column(clr, user_type::GEOGRAPHY), Some(Domain::Spatial));
        assert_eq!(Domain::of_column(clr, 300), None, "a type of the user's");
        let vector = Domain::of_column(varbinary, user_type::VECTOR).unwrap();
        // The vector [1, 2, 3] as published.
        let bytes = [0xA9, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3F, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40];
        in_and_out(vector, &[&bytes], &[&bytes[..19], &bytes[..16]]);
        assert_eq!(vector.contains(&[0xA9, 1, 3, 0, 1, 0, 0, 0]), None);
    }

    #[test]
    fn bytes_of_another_length_are_never_out_of_range_by_accident() {
        for kind in 0..=255 {
            for scale in 0..=8 {
                let Some(domain) = Domain::of(TypeInfo { xtype: kind, length: 0, precision: 9, scale }) else {
                    continue;
                };
                for length in 0..=20 {
                    let _ = domain.contains(&vec![0xFF; length]);
                }
            }
        }
    }
}
