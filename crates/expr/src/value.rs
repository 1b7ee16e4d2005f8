//! Values, their stored form and their text.

use std::fmt;

use format::bytes::{array_at, unsigned};
use format::types::{TypeInfo, guid_text, xtype};

use crate::calendar;

/// A typed value. `B` holds the bytes of strings and binary values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Datum<B> {
    /// NULL of any type.
    Null,
    /// bit.
    Bit(bool),
    /// tinyint, smallint, int, bigint.
    Int(i64),
    /// decimal and numeric: the unscaled value, and the number of digits after the decimal point.
    Decimal(i128, u8),
    /// money and smallmoney, in units of 0.0001.
    Money(i64),
    /// float and real.
    Float(f64),
    /// date: days since 0001-01-01.
    Date(i32),
    /// time in units of 100 ns.
    Time(i64),
    /// datetime: days since 1900-01-01, ticks of 1/300 s.
    DateTime(i32, u32),
    /// smalldatetime: days since 1900-01-01, minutes.
    SmallDateTime(u16, u16),
    /// datetime2: days since 0001-01-01, units of 100 ns.
    DateTime2(i32, i64),
    /// datetimeoffset: UTC days since 0001-01-01, units of 100 ns, minutes of the offset.
    DateTimeOffset(i32, i64, i16),
    /// char and varchar, as bytes in their code page.
    Ansi(B),
    /// nchar and nvarchar as UTF-16LE.
    Unicode(B),
    /// binary, varbinary, timestamp.
    Binary(B),
    /// uniqueidentifier, as bytes in storage order.
    Guid([u8; 16]),
}

/// The result of an expression.
pub type Value<'a> = Datum<&'a [u8]>;

impl<B> Datum<B> {
    /// Whether the value is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The same value, with its bytes converted by `f`.
    #[inline]
    pub(crate) fn map<C>(self, f: impl FnOnce(B) -> C) -> Datum<C> {
        match self {
            Self::Null => Datum::Null,
            Self::Bit(value) => Datum::Bit(value),
            Self::Int(value) => Datum::Int(value),
            Self::Decimal(value, scale) => Datum::Decimal(value, scale),
            Self::Money(value) => Datum::Money(value),
            Self::Float(value) => Datum::Float(value),
            Self::Date(days) => Datum::Date(days),
            Self::Time(ticks) => Datum::Time(ticks),
            Self::DateTime(days, ticks) => Datum::DateTime(days, ticks),
            Self::SmallDateTime(days, minutes) => Datum::SmallDateTime(days, minutes),
            Self::DateTime2(days, ticks) => Datum::DateTime2(days, ticks),
            Self::DateTimeOffset(days, ticks, offset) => Datum::DateTimeOffset(days, ticks, offset),
            Self::Ansi(bytes) => Datum::Ansi(f(bytes)),
            Self::Unicode(bytes) => Datum::Unicode(f(bytes)),
            Self::Binary(bytes) => Datum::Binary(f(bytes)),
            Self::Guid(bytes) => Datum::Guid(bytes),
        }
    }
}

/// The number of 100 ns units in the smallest difference between two times of a type with this scale.
pub(crate) fn time_unit(scale: u8) -> i64 {
    10i64.pow(u32::from(7 - scale.min(7)))
}

/// Decodes the bytes that a FixedVar record stores for a column of type `info`. A bit is stored as one byte, 0 or 1.
/// `None` if the bytes are not a value of that type.
#[inline]
pub fn decode(bytes: &[u8], info: TypeInfo) -> Option<Value<'_>> {
    // The most common types are tested first, because they need no look-up of their length.
    match (info.xtype, bytes) {
        (xtype::INT, &[a, b, c, d]) => Some(Datum::Int(i32::from_le_bytes([a, b, c, d]).into())),
        (xtype::SMALLINT, &[a, b]) => Some(Datum::Int(i16::from_le_bytes([a, b]).into())),
        (xtype::BIGINT, _) => Some(Datum::Int(i64::from_le_bytes(bytes.try_into().ok()?))),
        (xtype::MONEY, _) => Some(Datum::Money(i64::from_le_bytes(bytes.try_into().ok()?))),
        _ => decode_other(bytes, info),
    }
}

fn decode_other(bytes: &[u8], info: TypeInfo) -> Option<Value<'_>> {
    let fixed = format::types::fixed_length(info);
    let fits = match fixed {
        Some(length) => usize::from(length) == bytes.len(),
        // If ANSI_PADDING was OFF, even a char column may store fewer bytes than its declared length.
        None => matches!(info.length, 0 | 0xFFFF) || bytes.len() <= usize::from(info.length),
    };
    if !fits {
        return None;
    }
    let little = unsigned(bytes);
    let days_at = |at: usize| {
        let days = unsigned(bytes.get(at..at + 3)?) as i32;
        (days <= calendar::LAST_DAY).then_some(days)
    };
    let time_at = |length: usize| {
        let units = (unsigned(bytes.get(..length)?) as i64).checked_mul(time_unit(info.scale))?;
        (units < calendar::UNITS_PER_DAY).then_some(units)
    };
    let finite = |value: f64| value.is_finite().then_some(value);
    Some(match info.xtype {
        xtype::BIT => Datum::Bit(little & 1 != 0),
        xtype::TINYINT => Datum::Int(little as i64),
        xtype::SMALLMONEY => Datum::Money(i64::from(little as u32 as i32)),
        xtype::DECIMAL | xtype::NUMERIC => {
            let magnitude = bytes.get(1..)?.iter().rev().fold(0u128, |value, &byte| (value << 8) | u128::from(byte));
            let magnitude = i128::try_from(magnitude).ok()?;
            if magnitude.unsigned_abs() >= 10u128.checked_pow(info.precision.into())? {
                return None;
            }
            Datum::Decimal(if bytes.first() == Some(&0) { -magnitude } else { magnitude }, info.scale)
        }
        xtype::REAL => Datum::Float(finite(f32::from_bits(little as u32).into())?),
        xtype::FLOAT => Datum::Float(finite(f64::from_bits(little))?),
        xtype::DATE => Datum::Date(days_at(0)?),
        xtype::TIME => Datum::Time(time_at(bytes.len())?),
        xtype::DATETIME => {
            let days = i32::from_le_bytes(array_at(bytes, 4)?);
            let ticks = u32::from_le_bytes(array_at(bytes, 0)?);
            if !calendar::DATETIME_DAYS.contains(&days) || ticks >= calendar::TICKS_PER_DAY {
                return None;
            }
            Datum::DateTime(days, ticks)
        }
        xtype::SMALLDATETIME => {
            let (minutes, days) = (u16::from_le_bytes(array_at(bytes, 0)?), u16::from_le_bytes(array_at(bytes, 2)?));
            if minutes >= 1440 {
                return None;
            }
            Datum::SmallDateTime(days, minutes)
        }
        xtype::DATETIME2 => {
            let time = bytes.len().checked_sub(3)?;
            Datum::DateTime2(days_at(time)?, time_at(time)?)
        }
        xtype::DATETIMEOFFSET => {
            let time = bytes.len().checked_sub(5)?;
            let offset = i16::from_le_bytes(array_at(bytes, time + 3)?);
            Datum::DateTimeOffset(days_at(time)?, time_at(time)?, offset)
        }
        xtype::CHAR | xtype::VARCHAR => Datum::Ansi(bytes),
        xtype::NCHAR | xtype::NVARCHAR if bytes.len().is_multiple_of(2) => Datum::Unicode(bytes),
        xtype::BINARY | xtype::VARBINARY | xtype::TIMESTAMP => Datum::Binary(bytes),
        xtype::UNIQUEIDENTIFIER => Datum::Guid(array_at(bytes, 0)?),
        _ => return None,
    })
}

/// The bytes that a FixedVar record stores for `value` in a column of type `target`. `None` for NULL, for a value of
/// another type, and for a value that does not fit. Fixed-length strings and binary values are padded.
///
/// ```
/// use expr::{Datum, encode};
/// use format::types::TypeInfo;
/// assert_eq!(encode(Datum::Int(258), TypeInfo::from_ti(56)), Some(vec![2, 1, 0, 0]));
/// let decimal = TypeInfo::from_ti(0x0002_096A); // decimal(9,2)
/// assert_eq!(encode(Datum::Decimal(-150, 2), decimal), Some(vec![0, 150, 0, 0, 0]));
/// ```
pub fn encode(value: Value<'_>, target: TypeInfo) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    encode_into(value, target, &mut bytes).map(|()| bytes)
}

/// Like [`encode`], but appends the bytes to `out`. If the result is `None`, `out` may have additional bytes of
/// undefined content.
pub fn encode_into(value: Value<'_>, target: TypeInfo, out: &mut Vec<u8>) -> Option<()> {
    let length = usize::from(target.length);
    let days = |days: i32| Little(i64::from(days), 3);
    let time = |ticks: i64, bytes: Option<usize>| {
        let unit = time_unit(target.scale);
        bytes.filter(|_| ticks % unit == 0).map(|bytes| Little(ticks / unit, bytes))
    };
    match (value, target.xtype) {
        (Datum::Bit(value), xtype::BIT) => out.push(value.into()),
        (Datum::Int(value), xtype::TINYINT) => out.push(u8::try_from(value).ok()?),
        (Datum::Int(value), xtype::SMALLINT) => out.extend(i16::try_from(value).ok()?.to_le_bytes()),
        (Datum::Int(value), xtype::INT) => out.extend(i32::try_from(value).ok()?.to_le_bytes()),
        (Datum::Int(value), xtype::BIGINT) => out.extend(value.to_le_bytes()),
        (Datum::Money(value), xtype::MONEY) => out.extend(value.to_le_bytes()),
        (Datum::Money(value), xtype::SMALLMONEY) => out.extend(i32::try_from(value).ok()?.to_le_bytes()),
        (Datum::Decimal(value, scale), xtype::DECIMAL | xtype::NUMERIC) if scale == target.scale => {
            let bytes = usize::from(format::types::fixed_length(target)?);
            if value.unsigned_abs() >= 10u128.checked_pow(target.precision.into())? {
                return None;
            }
            out.push(u8::from(value >= 0));
            out.extend(value.unsigned_abs().to_le_bytes().into_iter().take(bytes.checked_sub(1)?));
        }
        (Datum::Float(value), xtype::FLOAT) => out.extend(value.to_le_bytes()),
        (Datum::Float(value), xtype::REAL) => out.extend((value as f32).to_le_bytes()),
        (Datum::Date(day), xtype::DATE) => days(day).put(out),
        (Datum::Time(ticks), xtype::TIME) => time(ticks, Some(length))?.put(out),
        (Datum::DateTime(days, ticks), xtype::DATETIME) => {
            out.extend(ticks.to_le_bytes());
            out.extend(days.to_le_bytes());
        }
        (Datum::SmallDateTime(days, minutes), xtype::SMALLDATETIME) => {
            out.extend(minutes.to_le_bytes());
            out.extend(days.to_le_bytes());
        }
        (Datum::DateTime2(day, ticks), xtype::DATETIME2) => {
            time(ticks, length.checked_sub(3))?.put(out);
            days(day).put(out);
        }
        (Datum::DateTimeOffset(day, ticks, offset), xtype::DATETIMEOFFSET) => {
            time(ticks, length.checked_sub(5))?.put(out);
            days(day).put(out);
            out.extend(offset.to_le_bytes());
        }
        (Datum::Ansi(bytes), xtype::VARCHAR)
        | (Datum::Unicode(bytes), xtype::NVARCHAR)
        | (Datum::Binary(bytes), xtype::VARBINARY)
            if bytes.len() <= length || matches!(length, 0 | 0xFFFF) =>
        {
            out.extend_from_slice(bytes);
        }
        (Datum::Ansi(bytes), xtype::CHAR) => pad(bytes, b" ", length, out)?,
        (Datum::Unicode(bytes), xtype::NCHAR) => pad(bytes, b" \0", length, out)?,
        (Datum::Binary(bytes), xtype::BINARY) => pad(bytes, b"\0", length, out)?,
        (Datum::Binary(bytes), xtype::TIMESTAMP) if bytes.len() == length => out.extend_from_slice(bytes),
        (Datum::Guid(bytes), xtype::UNIQUEIDENTIFIER) => out.extend(bytes),
        _ => return None,
    }
    Some(())
}

/// A number of which the lowest bytes are written in little-endian order. The fields are the value and the number of
/// bytes.
struct Little(i64, usize);

impl Little {
    fn put(self, out: &mut Vec<u8>) {
        out.extend(self.0.to_le_bytes().into_iter().take(self.1));
    }
}

fn pad(bytes: &[u8], fill: &[u8], length: usize, out: &mut Vec<u8>) -> Option<()> {
    let missing = length.checked_sub(bytes.len())?;
    out.extend_from_slice(bytes);
    out.extend(fill.iter().cycle().take(missing));
    Some(())
}

/// The digits of a decimal with its decimal point, as SQL Server prints them.
pub(crate) fn decimal_text(value: i128, scale: u8) -> String {
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    let sign = if value < 0 { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

impl fmt::Display for Datum<&[u8]> {
    /// Prints the value as query tools do. In char and varchar, characters outside ASCII are printed as `?`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Null => f.write_str("NULL"),
            Self::Bit(value) => write!(f, "{}", u8::from(value)),
            Self::Int(value) => write!(f, "{value}"),
            Self::Decimal(value, scale) => f.write_str(&decimal_text(value, scale)),
            Self::Money(value) => f.write_str(&decimal_text(value.into(), 4)),
            Self::Float(value) => write!(f, "{value}"),
            Self::Date(days) => f.write_str(&calendar::date_text(days)),
            Self::Time(ticks) => f.write_str(&calendar::time_text(ticks, 7)),
            Self::DateTime(days, ticks) => {
                let milliseconds = (i64::from(ticks) * 10 + 1) / 3;
                let date = calendar::date_text(days + calendar::DAYS_TO_1900);
                write!(f, "{date} {}", calendar::time_text(milliseconds * 10_000, 3))
            }
            Self::SmallDateTime(days, minutes) => {
                let date = calendar::date_text(i32::from(days) + calendar::DAYS_TO_1900);
                write!(f, "{date} {}", calendar::time_text(i64::from(minutes) * 600_000_000, 0))
            }
            Self::DateTime2(days, ticks) => {
                write!(f, "{} {}", calendar::date_text(days), calendar::time_text(ticks, 7))
            }
            Self::DateTimeOffset(days, ticks, offset) => {
                write!(f, "{} {} UTC {offset:+}", calendar::date_text(days), calendar::time_text(ticks, 7))
            }
            Self::Ansi(bytes) => {
                bytes.iter().try_for_each(|&byte| write!(f, "{}", if byte < 0x80 { char::from(byte) } else { '?' }))
            }
            Self::Unicode(bytes) => f.write_str(&format::bytes::utf16(bytes)),
            Self::Binary(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
            }
            Self::Guid(bytes) => f.write_str(&guid_text(bytes)),
        }
    }
}
