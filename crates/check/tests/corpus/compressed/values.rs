//! Encodes values in the format of ROW compression. The code follows only the published description
//! (docs/format/compression.md#values).

use format::types::{TypeInfo, xtype};

/// A value in a column of a compressed record.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stored {
    /// NULL.
    Null,
    /// A bit, which has no bytes: the descriptor contains its value.
    Bit(bool),
    /// A value that is stored as bytes.
    Bytes(Vec<u8>),
    /// A pointer to an off-row value.
    Complex(Vec<u8>),
}

/// Encodes a value of a type. `plain` is the value as uncompressed records store it.
pub fn encode(info: TypeInfo, plain: &[u8]) -> Vec<u8> {
    match info.xtype {
        xtype::SMALLINT | xtype::INT | xtype::BIGINT | xtype::MONEY | xtype::SMALLMONEY | xtype::DATETIME => {
            integer(plain)
        }
        xtype::TINYINT => without_suffix(plain, 0),
        xtype::REAL | xtype::FLOAT | xtype::SMALLDATETIME | xtype::TIMESTAMP => {
            let zeros = plain.iter().take_while(|byte| **byte == 0).count();
            plain[zeros..].to_vec()
        }
        xtype::DATE | xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET | xtype::BINARY => {
            without_suffix(plain, 0)
        }
        xtype::CHAR => without_suffix(plain, b' '),
        xtype::DECIMAL | xtype::NUMERIC => decimal(plain, info.scale),
        xtype::UNIQUEIDENTIFIER if plain.iter().all(|byte| *byte == 0) => Vec::new(),
        xtype::NCHAR => {
            let units = units(plain);
            let used = units.iter().rposition(|unit| *unit != 0x20).map_or(0, |last| last + 1);
            unicode(&units[..used])
        }
        xtype::NVARCHAR if !matches!(info.length, 0 | u16::MAX) => unicode(&units(plain)),
        _ => plain.to_vec(),
    }
}

fn without_suffix(plain: &[u8], padding: u8) -> Vec<u8> {
    let used = plain.iter().rposition(|byte| *byte != padding).map_or(0, |last| last + 1);
    plain[..used].to_vec()
}

fn integer(plain: &[u8]) -> Vec<u8> {
    let mut wide = [if plain.last().is_some_and(|byte| byte & 0x80 != 0) { 0xFF } else { 0 }; 8];
    wide[..plain.len()].copy_from_slice(plain);
    let value = i64::from_le_bytes(wide);
    if value == 0 {
        return Vec::new();
    }
    let fits = |bytes: u32| bytes == 8 || (-(1i64 << (8 * bytes - 1))..1i64 << (8 * bytes - 1)).contains(&value);
    let bytes = (1..=8u32).find(|bytes| fits(*bytes)).expect("eight bytes fit");
    let biased = (i128::from(value) + (1i128 << (8 * bytes - 1))) as u64;
    biased.to_be_bytes()[8 - bytes as usize..].to_vec()
}

fn decimal(plain: &[u8], scale: u8) -> Vec<u8> {
    let magnitude = plain[1..].iter().rev().fold(0u128, |value, byte| value << 8 | u128::from(*byte));
    if magnitude == 0 {
        return Vec::new();
    }
    let digits = magnitude.to_string();
    let exponent = digits.len() as i32 - 1 - i32::from(scale);
    let mut bits = Vec::new();
    for group in digits.as_bytes().chunks(3) {
        let value =
            (0..3).fold(0u16, |value, at| 10 * value + u16::from(group.get(at).map_or(0, |digit| digit - b'0')));
        bits.extend((0..10).rev().map(|bit| value >> bit & 1));
    }
    let mut bytes = vec![(u8::from(plain[0] != 0) << 7) | (exponent + 64) as u8];
    bytes.extend(
        bits.chunks(8).map(|eight| (0..8).fold(0u8, |byte, at| byte << 1 | eight.get(at).map_or(0, |bit| *bit as u8))),
    );
    without_suffix(&bytes, 0)
}

fn units(plain: &[u8]) -> Vec<u16> {
    plain.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// Encodes a string as SCSU with an odd number of bytes if that is shorter than UTF-16, otherwise as UTF-16.
fn unicode(units: &[u16]) -> Vec<u8> {
    let mut text = scsu(units);
    if text.len().is_multiple_of(2) && !text.is_empty() {
        text.push(0x10);
    }
    if text.len() < 2 * units.len() { text } else { units.iter().flat_map(|unit| unit.to_le_bytes()).collect() }
}

/// Encodes a string as SCSU: with one window if it contains all characters, otherwise in Unicode mode.
fn scsu(units: &[u16]) -> Vec<u8> {
    let is_literal = |unit: u16| matches!(unit, 0x00 | 0x09 | 0x0A | 0x0D | 0x20..=0x7F);
    for (tag, window) in [(None, 0x80u16), (Some(0x12), 0x400), (Some(0x13), 0x600)] {
        let in_window = |unit: u16| (window..window + 0x80).contains(&unit);
        if units.iter().all(|unit| is_literal(*unit) || in_window(*unit)) {
            let byte = |unit: &u16| if is_literal(*unit) { *unit as u8 } else { (*unit - window) as u8 | 0x80 };
            return tag.into_iter().chain(units.iter().map(byte)).collect();
        }
    }
    let mut bytes = vec![0x0F];
    for unit in units {
        if (0xE0..=0xF2).contains(&(unit >> 8)) {
            bytes.push(0xF0);
        }
        bytes.extend(unit.to_be_bytes());
    }
    bytes
}
