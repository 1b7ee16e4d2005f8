//! Shows column values as text, from their stored bytes (docs/format/types-and-keys.md#stored-values).

use crate::bytes::{unsigned, utf16};
use crate::types::{TypeInfo, datetime_text, guid_text, xtype};

/// The length, in characters, of the longest value that is shown in full.
const MAX_CHARS: usize = 200;
/// The number of days from 0001-01-01 to 1900-01-01.
const DAYS_TO_1900: i32 = 693_595;

/// The value of a column of type `info` as text. `bytes` are its plain bytes; `bit` is the position of a bit column in
/// its byte. Bytes that are not a valid value of the type are shown raw.
pub fn text(info: TypeInfo, bytes: &[u8], bit: u8) -> String {
    known(info, bytes, bit).unwrap_or_else(|| hex(bytes))
}

fn known(info: TypeInfo, bytes: &[u8], bit: u8) -> Option<String> {
    let expected = crate::types::fixed_length(info).map(usize::from);
    if expected.is_some_and(|length| length != bytes.len()) {
        return None;
    }
    Some(match info.xtype {
        xtype::TINYINT => unsigned(bytes).to_string(),
        xtype::SMALLINT | xtype::INT | xtype::BIGINT => signed(bytes).to_string(),
        xtype::BIT => (unsigned(bytes) >> bit.min(7) & 1).to_string(),
        xtype::MONEY | xtype::SMALLMONEY => scaled(signed(bytes).unsigned_abs().into(), signed(bytes) < 0, 4),
        xtype::DECIMAL | xtype::NUMERIC => decimal(bytes, info.scale)?,
        xtype::REAL => f32::from_le_bytes(*bytes.first_chunk()?).to_string(),
        xtype::FLOAT => f64::from_le_bytes(*bytes.first_chunk()?).to_string(),
        xtype::UNIQUEIDENTIFIER => quoted(&guid_text(*bytes.first_chunk()?)),
        xtype::DATETIME => quoted(&datetime_text(unsigned(bytes.get(..4)?) as u32, signed(bytes.get(4..)?) as i32)?),
        xtype::SMALLDATETIME => {
            let minutes = unsigned(bytes.get(..2)?) as u32;
            quoted(datetime(minutes.checked_mul(60 * 300)?, unsigned(bytes.get(2..)?) as i32)?.get(..16)?)
        }
        xtype::DATE => quoted(&date(bytes)?),
        xtype::TIME => quoted(&time(bytes, info.scale)?),
        xtype::DATETIME2 => {
            let (clock, days) = bytes.split_at_checked(bytes.len().checked_sub(3)?)?;
            quoted(&format!("{} {}", date(days)?, time(clock, info.scale)?))
        }
        xtype::DATETIMEOFFSET => {
            let (clock, rest) = bytes.split_at_checked(bytes.len().checked_sub(5)?)?;
            let (days, offset) = rest.split_at_checked(3)?;
            let minutes = signed(offset);
            let sign = if minutes < 0 { '-' } else { '+' };
            let (hours, minutes) = (minutes.abs() / 60, minutes.abs() % 60);
            let utc = format!("{} {}", date(days)?, time(clock, info.scale)?);
            format!("'{utc}' UTC, offset {sign}{hours:02}:{minutes:02}")
        }
        xtype::NVARCHAR | xtype::NCHAR if bytes.len().is_multiple_of(2) => quoted(&utf16(bytes)),
        xtype::VARCHAR | xtype::CHAR if bytes.is_ascii() => {
            quoted(&bytes.iter().map(|&byte| char::from(byte)).collect::<String>())
        }
        _ => return None,
    })
}

/// Like `datetime_text`, but returns 1900-01-01 for the zero value, which `datetime_text` rejects.
fn datetime(ticks: u32, days: i32) -> Option<String> {
    if (ticks, days) == (0, 0) {
        return Some("1900-01-01 00:00:00.000".to_owned());
    }
    datetime_text(ticks, days)
}

fn date(bytes: &[u8]) -> Option<String> {
    // The type `date` begins in year 1, but `datetime` handles only years from 1753 on. So an earlier date is shifted
    // by whole cycles of 400 years, after which the calendar repeats.
    const CYCLE: i32 = 146_097;
    let days = i32::try_from(unsigned(bytes)).ok()?;
    let cycles = if days < 5 * CYCLE { 5 } else { 0 };
    let shifted = datetime(1, days - DAYS_TO_1900 + cycles * CYCLE)?;
    let year: i32 = shifted.get(..4)?.parse().ok()?;
    Some(format!("{:04}{}", year - 400 * cycles, shifted.get(4..10)?))
}

fn time(bytes: &[u8], scale: u8) -> Option<String> {
    let units_per_second = 10_u64.checked_pow(scale.into())?;
    let units = unsigned(bytes);
    let (seconds, fraction) = (units / units_per_second, units % units_per_second);
    if seconds >= 86_400 {
        return None;
    }
    let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(if scale == 0 { clock } else { format!("{clock}.{fraction:0width$}", width = usize::from(scale)) })
}

fn decimal(bytes: &[u8], scale: u8) -> Option<String> {
    let (sign, magnitude) = bytes.split_first()?;
    let magnitude = magnitude
        .iter()
        .rev()
        .try_fold(0_u128, |value, &byte| value.checked_mul(256).map(|value| value + u128::from(byte)))?;
    Some(scaled(magnitude, *sign == 0, scale))
}

/// A number with `scale` decimal places as text.
fn scaled(magnitude: u128, negative: bool, scale: u8) -> String {
    let scale = usize::from(scale);
    let digits = format!("{magnitude:0width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if negative { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// A little-endian signed integer of up to eight bytes.
fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    (unsigned(bytes) << unused).cast_signed() >> unused
}

fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(MAX_CHARS).collect();
    let rest = text.chars().count() - shown.chars().count();
    if rest == 0 { format!("'{shown}'") } else { format!("'{shown}'... and {rest} more characters") }
}

fn hex(bytes: &[u8]) -> String {
    let shown: String = bytes.iter().take(MAX_CHARS / 2).map(|byte| format!("{byte:02x}")).collect();
    let rest = bytes.len().saturating_sub(MAX_CHARS / 2);
    if rest == 0 { format!("0x{shown}") } else { format!("0x{shown}... and {rest} more bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: u8, scale: u8, bytes: &[u8]) -> String {
        let mut info = TypeInfo { xtype: kind, scale, precision: 9, length: 0 };
        info.length = crate::types::fixed_length(info).unwrap_or(bytes.len() as u16);
        text(info, bytes, 0)
    }

    #[test]
    fn values_are_shown_as_sql_server_prints_them() {
        assert_eq!(shown(xtype::INT, 0, &[0xFE, 0xFF, 0xFF, 0xFF]), "-2");
        assert_eq!(shown(xtype::TINYINT, 0, &[0xFE]), "254");
        assert_eq!(shown(xtype::MONEY, 0, &(-12_345_i64).to_le_bytes()), "-1.2345");
        assert_eq!(shown(xtype::DECIMAL, 2, &[1, 5, 0, 0, 0]), "0.05");
        assert_eq!(shown(xtype::NVARCHAR, 0, &[b'a', 0, b'b', 0]), "'ab'");
        assert_eq!(shown(xtype::VARBINARY, 0, &[1, 0xAB]), "0x01ab");
        assert_eq!(shown(xtype::TIME, 3, &1_500_u32.to_le_bytes()), "'00:00:01.500'");
        assert_eq!(shown(xtype::SMALLDATETIME, 0, &[0, 0, 0, 0]), "'1900-01-01 00:00'");
    }

    #[test]
    fn dates_reach_from_year_1_to_9999() {
        let date = |days: u32| shown(xtype::DATE, 0, &days.to_le_bytes()[..3]);
        assert_eq!(date(0), "'0001-01-01'");
        assert_eq!(date(693_595), "'1900-01-01'");
        assert_eq!(date(730_484), "'2000-12-31'");
        assert_eq!(date(730_485), "'2001-01-01'");
        assert_eq!(date(3_652_058), "'9999-12-31'");
        assert_eq!(date(3_652_059), "0xdbb937", "outside the type");
    }

    #[test]
    fn bytes_of_the_wrong_length_are_shown_raw() {
        let int = TypeInfo { xtype: xtype::INT, length: 4, ..TypeInfo::default() };
        assert_eq!(text(int, &[1], 0), "0x01");
        let offset = TypeInfo { xtype: xtype::DATETIMEOFFSET, scale: 7, length: 10, ..TypeInfo::default() };
        assert_eq!(text(offset, &[0xFF; 10], 0), format!("0x{}", "ff".repeat(10)));
    }
}
