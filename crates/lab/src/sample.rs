//! Single values, each with its stored bytes and its text. Bytes and text are made independently from the same parts,
//! for example a date and a time.

mod clr;
pub(crate) mod xml;

use crate::plain::{self, hex, scaled};
use crate::types::{SqlType, time_bytes};

/// A value as stored bytes and as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The stored bytes; `None` for NULL.
    pub(crate) bytes: Option<Vec<u8>>,
    /// The text that [`crate::truth`] writes.
    pub(crate) text: Option<String>,
}

/// The characters in the lab's texts that exist in code page 1252 but not in Latin-1, each with its byte in code page
/// 1252. The lab's collations use this code page.
const CODE_PAGE_1252: [(u8, char); 5] =
    [(0x80, '\u{20AC}'), (0x8A, '\u{160}'), (0x96, '\u{2013}'), (0x99, '\u{2122}'), (0x9F, '\u{178}')];

/// The number of days from 0001-01-01 to 1900-01-01, which is day 0 of datetime.
const DAY_1900: i64 = 693_595;

impl Sample {
    fn new(bytes: Vec<u8>, text: String) -> Self {
        Self { bytes: Some(bytes), text: Some(text) }
    }

    /// A NULL.
    pub(crate) fn null() -> Self {
        Self { bytes: None, text: None }
    }

    /// A value of type bit, tinyint, smallint, int or bigint.
    pub(crate) fn integer(ty: SqlType, n: i64) -> Self {
        let bytes = n.to_le_bytes();
        Self::new(bytes.iter().take(usize::from(ty.length)).copied().collect(), n.to_string())
    }

    /// A value of type money or smallmoney, from a number of ten-thousandths.
    pub(crate) fn money(ty: SqlType, n: i64) -> Self {
        Self { text: Some(scaled(i128::from(n), 4)), ..Self::integer(ty, n) }
    }

    /// A value of type decimal or numeric.
    pub(crate) fn decimal(ty: SqlType, unscaled: i128) -> Self {
        let mut bytes = vec![u8::from(unscaled >= 0)];
        bytes.extend(unscaled.unsigned_abs().to_le_bytes().iter().take(usize::from(ty.length) - 1));
        Self::new(bytes, scaled(unscaled, ty.scale))
    }

    /// A value of type real.
    pub(crate) fn real(n: f32) -> Self {
        Self::new(n.to_le_bytes().to_vec(), format!("{n:e}"))
    }

    /// A value of type float.
    pub(crate) fn float(n: f64) -> Self {
        Self::new(n.to_le_bytes().to_vec(), format!("{n:e}"))
    }

    /// Makes a datetime from a date, the number of whole seconds since midnight, and the number of further ticks of
    /// 1/300 second.
    pub(crate) fn datetime((year, month, day): (i64, i64, i64), seconds: i64, ticks: i64) -> Self {
        let number = plain::day(year, month, day);
        let mut bytes = ((seconds * 300 + ticks) as u32).to_le_bytes().to_vec();
        bytes.extend(((number - DAY_1900) as i32).to_le_bytes());
        // The ticks are converted to milliseconds and rounded as SQL Server does: 0, 3, 7, 10 and so on.
        let milliseconds = ticks / 3 * 10 + [0, 3, 7][(ticks % 3) as usize];
        Self::new(bytes, format!("{} {}", plain::date(number), plain::time(seconds, milliseconds, 3)))
    }

    /// A smalldatetime from a date and the minutes since midnight.
    pub(crate) fn smalldatetime((year, month, day): (i64, i64, i64), minutes: i64) -> Self {
        let number = plain::day(year, month, day);
        let mut bytes = (minutes as u16).to_le_bytes().to_vec();
        bytes.extend(((number - DAY_1900) as u16).to_le_bytes());
        Self::new(bytes, format!("{} {}", plain::date(number), plain::time(minutes * 60, 0, 0)))
    }

    /// A value of type date.
    pub(crate) fn date((year, month, day): (i64, i64, i64)) -> Self {
        let number = plain::day(year, month, day);
        Self::new(number.to_le_bytes()[..3].to_vec(), plain::date(number))
    }

    /// Makes a time from the number of seconds since midnight, and a fraction of a second in units of the last
    /// fractional digit.
    pub(crate) fn time(ty: SqlType, seconds: i64, fraction: i64) -> Self {
        let units = seconds * 10i64.pow(u32::from(ty.scale)) + fraction;
        let bytes = units.to_le_bytes()[..usize::from(time_bytes(ty.scale))].to_vec();
        Self::new(bytes, plain::time(seconds, fraction, ty.scale))
    }

    /// A value of type datetime2.
    pub(crate) fn datetime2(ty: SqlType, date: (i64, i64, i64), seconds: i64, fraction: i64) -> Self {
        Self::time(ty, seconds, fraction).after(&Self::date(date))
    }

    /// A datetimeoffset from a date and time in UTC and an offset in minutes east of UTC.
    pub(crate) fn datetimeoffset(
        ty: SqlType,
        (date, seconds, fraction): ((i64, i64, i64), i64, i64),
        east: i64,
    ) -> Self {
        let mut bytes = Self::datetime2(ty, date, seconds, fraction).bytes.unwrap_or_default();
        bytes.extend((east as i16).to_le_bytes());
        let local = seconds + east * 60;
        let day = plain::day(date.0, date.1, date.2) + local.div_euclid(86_400);
        let time = plain::time(local.rem_euclid(86_400), fraction, ty.scale);
        let sign = if east < 0 { '-' } else { '+' };
        let (hours, minutes) = (east.abs() / 60, east.abs() % 60);
        Self::new(bytes, format!("{} {time} {sign}{hours:02}:{minutes:02}", plain::date(day)))
    }

    /// Combines a time with a date. The time comes first in the bytes, and the date comes first in the text.
    fn after(self, date: &Self) -> Self {
        let bytes = [self.bytes.unwrap_or_default(), date.bytes.clone().unwrap_or_default()].concat();
        let text = format!("{} {}", date.text.clone().unwrap_or_default(), self.text.unwrap_or_default());
        Self::new(bytes, text)
    }

    /// A uniqueidentifier from the numbers of its five groups.
    pub(crate) fn guid(a: u32, b: u16, c: u16, d: u16, e: u64) -> Self {
        let mut bytes = a.to_le_bytes().to_vec();
        bytes.extend(b.to_le_bytes());
        bytes.extend(c.to_le_bytes());
        bytes.extend(d.to_be_bytes());
        bytes.extend(&e.to_be_bytes()[2..]);
        Self::new(bytes, format!("{a:08X}-{b:04X}-{c:04X}-{d:04X}-{e:012X}"))
    }

    /// A value of a string type. If the type has a fixed length, the text is padded with blanks.
    pub(crate) fn text(ty: SqlType, text: &str) -> Self {
        let mut text = text.to_owned();
        let encode = |text: &str| -> Vec<u8> {
            if ty.is_unicode() {
                return text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            }
            text.chars().map(narrow).collect()
        };
        let mut bytes = encode(&text);
        while matches!(ty.xtype, 175 | 239) && bytes.len() < usize::from(ty.length) {
            text.push(' ');
            bytes = encode(&text);
        }
        Self::new(bytes, text)
    }

    /// Makes a value of a type that is shown as hexadecimal bytes. If the type has a fixed length, the bytes are padded
    /// with zeros.
    pub(crate) fn bytes(ty: SqlType, bytes: &[u8]) -> Self {
        let mut bytes = bytes.to_vec();
        if matches!(ty.xtype, 173 | 189) {
            bytes.resize(usize::from(ty.length), 0);
        }
        let text = hex(&bytes);
        Self::new(bytes, text)
    }

    /// A sql_variant that contains a value with its base type (docs/format/types-and-keys.md#sql_variant).
    pub(crate) fn variant(ty: SqlType, collation: u32, value: Self) -> Self {
        let mut bytes = vec![ty.xtype, 1];
        match ty.xtype {
            106 | 108 => bytes.extend([ty.precision, ty.scale]),
            165 | 173 => bytes.extend(ty.length.to_le_bytes()),
            167 | 175 | 231 | 239 => {
                bytes.extend(ty.length.to_le_bytes());
                bytes.extend(collation.to_le_bytes());
            }
            41..=43 => bytes.push(ty.scale),
            _ => {}
        }
        bytes.extend(value.bytes.unwrap_or_default());
        Self { bytes: Some(bytes), text: value.text }
    }

    /// A value from bytes and a text that the caller has already made.
    pub(crate) fn made(bytes: Vec<u8>, text: String) -> Self {
        Self::new(bytes, text)
    }
}

/// The byte of a character in code page 1252.
fn narrow(character: char) -> u8 {
    let special = CODE_PAGE_1252.iter().find(|(_, special)| *special == character).map(|(byte, _)| *byte);
    special.or_else(|| u8::try_from(u32::from(character)).ok()).unwrap_or(b'?')
}
