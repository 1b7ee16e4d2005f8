//! Decodes values under row compression to the bytes that an uncompressed record has for them
//! (docs/format/compression.md#values).

use super::scsu;
use super::vardecimal::{self, VardecimalFault};
use crate::types::{TypeInfo, fixed_length, xtype};

/// The encoding of the values of a column.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Codec {
    /// A big-endian integer in as few bytes as possible, with the sign bit inverted. A datetime is one integer of eight
    /// bytes: first the days, then the ticks.
    Integer,
    /// One byte, or no bytes for 0.
    Byte,
    /// A bit, which is stored in the descriptor and has no bytes.
    Bit,
    /// The value without the zero bytes at its start. These bytes are the low bytes of a little-endian number, or the
    /// high bytes of a rowversion.
    ZerosInFront,
    /// The value without the padding at its end. All bytes of the padding have the value of the field.
    PaddedWith(u8),
    /// All bytes of the value, or no bytes for zero.
    Whole,
    /// An nchar value: compressed text without trailing blanks.
    BlankPaddedUnicode,
    /// A decimal; see [`vardecimal`].
    Decimal,
    /// A uniquifier. It expands to a variable int, or to no bytes for 0.
    Uniquifier,
    /// An nvarchar value: compressed text.
    Unicode,
    /// The bytes of the value as in uncompressed records.
    Verbatim,
}

impl Codec {
    /// The encoding of the values of a type, and their uncompressed length in bytes; the length is `None` for variable
    /// columns.
    pub(super) fn of(info: TypeInfo) -> (Self, Option<u16>) {
        let is_max = matches!(info.length, 0 | u16::MAX);
        match info.xtype {
            xtype::TEXT | xtype::NTEXT | xtype::IMAGE => (Self::Verbatim, None),
            xtype::CHAR if !is_max => (Self::PaddedWith(b' '), Some(info.length)),
            xtype::BINARY if !is_max => (Self::PaddedWith(0), Some(info.length)),
            xtype::NCHAR if !is_max => (Self::BlankPaddedUnicode, Some(info.length)),
            xtype::NVARCHAR if !is_max => (Self::Unicode, None),
            _ => match fixed_length(info) {
                Some(length) => (Self::of_fixed(info), Some(length)),
                None => (Self::Verbatim, None),
            },
        }
    }

    fn of_fixed(info: TypeInfo) -> Self {
        match info.xtype {
            xtype::SMALLINT | xtype::INT | xtype::BIGINT | xtype::MONEY | xtype::SMALLMONEY => Self::Integer,
            xtype::DATETIME => Self::Integer,
            xtype::TINYINT => Self::Byte,
            xtype::BIT => Self::Bit,
            xtype::REAL | xtype::FLOAT | xtype::SMALLDATETIME | xtype::TIMESTAMP => Self::ZerosInFront,
            xtype::DATE | xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET => Self::PaddedWith(0),
            xtype::DECIMAL | xtype::NUMERIC => Self::Decimal,
            _ => Self::Whole,
        }
    }
}

/// The reason why an expanded record lacks a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doubt {
    /// The bytes are not a valid value of the column's type.
    OutOfDomain,
    /// The value is longer than the column.
    TooLong {
        /// The length of the value in bytes.
        length: u16,
        /// The length of the column in bytes.
        most: u16,
    },
    /// The form of the value is undocumented.
    Unknown(&'static str),
}

impl Doubt {
    pub(super) fn too_long(length: usize, most: usize) -> Self {
        Self::TooLong { length: length.min(u16::MAX.into()) as u16, most: most.min(u16::MAX.into()) as u16 }
    }
}

/// Decodes the value `stored` into the fixed column `into`, which must be zeroed.
pub(super) fn decode_fixed(
    codec: Codec,
    info: TypeInfo,
    stored: &[u8],
    into: &mut [u8],
    text: &mut Vec<u8>,
) -> Result<(), Doubt> {
    let width = into.len();
    if codec == Codec::Decimal {
        return decimal(info, stored, into);
    }
    if codec == Codec::BlankPaddedUnicode {
        text.clear();
        unicode(stored, text)?;
        let (value, padding) = into.split_at_mut_checked(text.len()).ok_or(Doubt::too_long(text.len(), width))?;
        value.copy_from_slice(text);
        padding.chunks_exact_mut(2).for_each(|unit| unit.copy_from_slice(&[b' ', 0]));
        return Ok(());
    }
    if stored.len() > width {
        return Err(Doubt::too_long(stored.len(), width));
    }
    match codec {
        Codec::Integer => {
            let bytes = integer(stored).to_le_bytes();
            // With one branch for each length, the compiler replaces the copy loop with single moves.
            if let Ok(into) = <&mut [u8; 4]>::try_from(&mut *into) {
                into.copy_from_slice(&bytes[..4]);
            } else if let Ok(into) = <&mut [u8; 8]>::try_from(&mut *into) {
                *into = bytes;
            } else {
                into.copy_from_slice(bytes.get(..width).unwrap_or_default());
            }
        }
        Codec::ZerosInFront => into.iter_mut().rev().zip(stored.iter().rev()).for_each(|(place, byte)| *place = *byte),
        Codec::PaddedWith(padding) => {
            let (value, rest) = into.split_at_mut(stored.len());
            value.copy_from_slice(stored);
            rest.fill(padding);
        }
        Codec::Bit if !stored.is_empty() => return Err(Doubt::Unknown("a bit with bytes of its own")),
        Codec::Whole if !stored.is_empty() && stored.len() != width => {
            return Err(Doubt::Unknown("a shortened value of a type that is stored whole"));
        }
        _ => into.iter_mut().zip(stored).for_each(|(place, byte)| *place = *byte),
    }
    Ok(())
}

/// Decodes a big-endian number of up to eight bytes. The stored number has a bias, so that it is never negative.
fn integer(stored: &[u8]) -> i64 {
    let stored = stored.get(..stored.len().min(8)).unwrap_or_default();
    biased(number(stored), stored.len())
}

/// Removes the bias from a number that is stored in `length` bytes, at most eight.
#[inline(always)]
pub(super) fn biased(number: u64, length: usize) -> i64 {
    /// The bias of a stored integer, by its length in bytes. It makes stored integers non-negative.
    const BIASES: [u64; 9] = [0, 1 << 7, 1 << 15, 1 << 23, 1 << 31, 1 << 39, 1 << 47, 1 << 55, 1 << 63];
    number.wrapping_sub(BIASES.get(length).copied().unwrap_or_default()).cast_signed()
}

/// A big-endian number of up to eight bytes; 0 if there are more.
#[inline]
pub(super) fn number(bytes: &[u8]) -> u64 {
    match (bytes, bytes.len()) {
        (_, length @ 4..=8) => {
            // The first four and the last four bytes of the number; they may overlap.
            let [first, last] = [bytes.first_chunk(), bytes.last_chunk()]
                .map(|four| four.map_or(0, |four| u64::from(u32::from_be_bytes(*four))));
            first << (8 * (length - 4)) | last
        }
        ([first, .., last], length @ 2..=3) => {
            let middle = bytes.get(length / 2).copied().unwrap_or_default();
            u64::from(*first) << (8 * (length - 1))
                | u64::from(middle) << (8 * (length - 1 - length / 2))
                | u64::from(*last)
        }
        ([only], _) => u64::from(*only),
        _ => 0,
    }
}

/// Appends the bytes of a uniquifier to `out`; a uniquifier of 0 has no bytes.
pub(super) fn uniquifier(stored: &[u8], out: &mut Vec<u8>) -> Result<(), Doubt> {
    if stored.len() > 4 {
        return Err(Doubt::too_long(stored.len(), 4));
    }
    let value = integer(stored) as i32;
    if value != 0 {
        out.extend_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

/// Decodes text: plain UTF-16 if the stored length is even, SCSU if it is odd (docs/format/compression.md#unicode).
pub(super) fn unicode(stored: &[u8], out: &mut Vec<u8>) -> Result<(), Doubt> {
    if stored.len().is_multiple_of(2) {
        out.extend_from_slice(stored);
        return Ok(());
    }
    let before = out.len();
    scsu::decode(stored, out).map_err(|_| {
        out.truncate(before);
        Doubt::Unknown("text that is no SCSU")
    })
}

/// Decodes a decimal and writes sign and magnitude, as in an uncompressed record.
fn decimal(info: TypeInfo, stored: &[u8], into: &mut [u8]) -> Result<(), Doubt> {
    let value = vardecimal::decode(stored, info).map_err(|fault| match fault {
        VardecimalFault::OutOfDomain => Doubt::OutOfDomain,
        VardecimalFault::Undescribed => Doubt::Unknown("a decimal whose first digit is 0"),
    })?;
    let Some((sign, magnitude)) = into.split_first_mut() else { return Ok(()) };
    *sign = u8::from(!value.negative);
    let bytes = value.magnitude.to_le_bytes();
    magnitude.copy_from_slice(bytes.get(..magnitude.len()).unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(kind: u8, scale: u8, stored: &[u8]) -> Result<Vec<u8>, Doubt> {
        let mut info = TypeInfo { xtype: kind, length: 10, precision: 18, scale };
        info.length = fixed_length(info).unwrap_or(info.length);
        let (codec, length) = Codec::of(info);
        let mut into = vec![0; length.unwrap().into()];
        decode_fixed(codec, info, stored, &mut into, &mut Vec::new()).map(|()| into)
    }

    fn whole(kind: u8, stored: &[u8]) -> i64 {
        let bytes = value(kind, 0, stored).unwrap();
        let unused = 64 - 8 * bytes.len() as u32;
        (crate::bytes::unsigned(&bytes) << unused).cast_signed() >> unused
    }

    #[test]
    fn integers_are_big_endian_and_biased() {
        assert_eq!(whole(xtype::INT, &[0x81]), 1, "reference vector");
        assert_eq!(whole(xtype::INT, &[0x7F]), -1);
        assert_eq!(whole(xtype::INT, &[0x80, 0x80]), 128);
        assert_eq!(whole(xtype::SMALLINT, &[0x00]), -128);
        assert_eq!(whole(xtype::BIGINT, &[0x7F, 0xFF]), -1);
        assert_eq!(whole(xtype::BIGINT, &[0x99, 0x8A]), 6538, "from a dump of SQL Server 2012");
        assert_eq!(whole(xtype::BIGINT, &[0; 8]), i64::MIN);
        assert_eq!(whole(xtype::MONEY, &[0xFF; 8]), i64::MAX);
        assert_eq!(whole(xtype::INT, &[]), 0);
        assert_eq!(value(xtype::TINYINT, 0, &[200]), Ok(vec![200]));
        assert_eq!(value(xtype::SMALLINT, 0, &[1, 2, 3]), Err(Doubt::TooLong { length: 3, most: 2 }));
    }

    #[test]
    fn a_datetime_is_one_integer_of_days_and_ticks() {
        // Date and time values from published dumps of CD records.
        let shown = |stored: &[u8]| {
            let bytes = value(xtype::DATETIME, 0, stored).unwrap();
            let ticks = u32::from_le_bytes(*bytes.first_chunk().unwrap());
            crate::types::datetime_text(ticks, i32::from_le_bytes(*bytes.last_chunk().unwrap())).unwrap_or_default()
        };
        assert_eq!(shown(&[0x7F, 0x2E, 0x46, 0, 0, 0, 0]), "1753-01-01 00:00:00.000");
        assert_eq!(shown(&[0x7E, 0x94, 0x01, 0x2E, 0xB9, 0x69]), "1899-01-02 18:22:11.123");
        assert_eq!(shown(&[0x81, 0x6F, 0x50, 0xF2]), "1900-01-01 22:17:21.447");
        assert_eq!(shown(&[0x80, 0xA3, 0x1E, 0, 0, 0, 0]), "2014-05-01 00:00:00.000");
        assert_eq!(value(xtype::DATETIME, 0, &[]), Ok(vec![0; 8]));
    }

    #[test]
    fn numbers_lose_their_low_zeros() {
        assert_eq!(value(xtype::REAL, 0, &[0x80, 0x3F]), Ok(1f32.to_le_bytes().to_vec()));
        assert_eq!(value(xtype::FLOAT, 0, &[0xF8, 0xBF]), Ok((-1.5f64).to_le_bytes().to_vec()));
        assert_eq!(value(xtype::SMALLDATETIME, 0, &[0x10, 0x27]), Ok(vec![0, 0, 0x10, 0x27]), "a pure date");
        let dumped = [0, 0, 0, 0, 0, 0, 0x07, 0xD1];
        assert_eq!(value(xtype::TIMESTAMP, 0, &[0x07, 0xD1]), Ok(dumped.to_vec()), "dumped in both forms");
        assert_eq!(value(xtype::DATE, 0, &[0x75, 0x25, 0x0B]), Ok(vec![0x75, 0x25, 0x0B]));
        assert_eq!(value(xtype::TIME, 3, &[1]), Ok(vec![1, 0, 0, 0]));
        assert_eq!(value(xtype::DATETIMEOFFSET, 0, &[]), Ok(vec![0; 8]));
    }

    #[test]
    fn text_is_filled_up() {
        assert_eq!(value(xtype::CHAR, 0, b"ab"), Ok(b"ab        ".to_vec()));
        assert_eq!(value(xtype::BINARY, 0, &[7]), Ok(vec![7, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(value(xtype::NCHAR, 0, b"S"), Ok(b"S\0 \0 \0 \0 \0".to_vec()), "one byte is SCSU");
        assert_eq!(value(xtype::NCHAR, 0, b"S\0T\0"), Ok(b"S\0T\0 \0 \0 \0".to_vec()), "an even length is UTF-16");
        assert_eq!(value(xtype::NCHAR, 0, b"ABCDEFG"), Err(Doubt::TooLong { length: 14, most: 10 }));
        assert_eq!(value(xtype::NCHAR, 0, &[0x0C]), Err(Doubt::Unknown("text that is no SCSU")));
        let mut out = Vec::new();
        // Eight bytes are plain UTF-16, even if they look like SCSU.
        unicode(&[0x43, 0x00, 0x0F, 0x1D, 0x80, 0x02, 0x8F, 0x02], &mut out).unwrap();
        assert_eq!(crate::bytes::utf16(&out), "C\u{1D0F}\u{280}\u{28F}");
    }

    #[test]
    fn decimals_have_a_sign_byte_and_a_magnitude() {
        let mut one = vec![0; 9];
        (one[0], one[1]) = (1, 100);
        assert_eq!(value(xtype::DECIMAL, 2, &[0xC0, 0x19]), Ok(one.clone()));
        one[0] = 0;
        assert_eq!(value(xtype::DECIMAL, 2, &[0x40, 0x19]), Ok(one));
        assert_eq!(value(xtype::NUMERIC, 2, &[]).map(|bytes| bytes[0]), Ok(1), "zero is positive");
        assert_eq!(value(xtype::DECIMAL, 2, &[0xC0, 0xFF, 0xFF]), Err(Doubt::OutOfDomain));
    }

    #[test]
    fn what_is_stored_whole_has_all_its_bytes_or_none() {
        assert_eq!(value(xtype::UNIQUEIDENTIFIER, 0, &[7; 16]), Ok(vec![7; 16]));
        assert_eq!(value(xtype::UNIQUEIDENTIFIER, 0, &[]), Ok(vec![0; 16]));
        assert!(matches!(value(xtype::UNIQUEIDENTIFIER, 0, &[7]), Err(Doubt::Unknown(_))));
    }
}
