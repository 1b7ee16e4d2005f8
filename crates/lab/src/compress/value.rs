//! Compresses single values as ROW compression does.

use super::Stored;
use crate::types::SqlType;

/// Returns the shortest encoding of a value.
pub(super) fn store(ty: SqlType, bytes: &[u8]) -> Stored {
    let stored = match ty.xtype {
        104 => return if bytes.first() == Some(&0) { Stored::Empty } else { Stored::Bit },
        48 => trim_end(bytes, 0),
        52 | 56 | 127 | 60 | 122 => integer(bytes),
        // A datetime is compressed as a single integer, with the days in the high half and the ticks in the low half.
        61 => integer(bytes),
        189 => trim_start(bytes, 0),
        58 | 59 | 62 => trim_start(bytes, 0),
        40..=43 | 173 => trim_end(bytes, 0),
        106 | 108 => vardecimal(ty, bytes),
        175 => trim_end(bytes, b' '),
        239 => unicode(blank_end(bytes)),
        231 if ty.length > 0 => unicode(bytes),
        _ => bytes.to_vec(),
    };
    if stored.is_empty() { Stored::Empty } else { Stored::Bytes(stored) }
}

fn trim_end(bytes: &[u8], padding: u8) -> Vec<u8> {
    let end = bytes.iter().rposition(|&byte| byte != padding).map_or(0, |last| last + 1);
    bytes[..end].to_vec()
}

fn trim_start(bytes: &[u8], padding: u8) -> Vec<u8> {
    let start = bytes.iter().position(|&byte| byte != padding).unwrap_or(bytes.len());
    bytes[start..].to_vec()
}

fn blank_end(bytes: &[u8]) -> &[u8] {
    let characters = bytes.len() / 2;
    let blanks = bytes.chunks_exact(2).rev().take_while(|pair| *pair == [b' ', 0]).count();
    &bytes[..2 * (characters - blanks)]
}

/// Encodes an integer in as few bytes as possible, in big-endian order. Zero has no bytes. In other numbers, the
/// highest bit is inverted, which adds half of the value range of the stored bytes.
fn integer(little_endian: &[u8]) -> Vec<u8> {
    let mut wide = [if little_endian.last().is_some_and(|&top| top & 0x80 != 0) { 0xFF } else { 0 }; 8];
    wide[..little_endian.len()].copy_from_slice(little_endian);
    let value = i64::from_le_bytes(wide);
    if value == 0 {
        return Vec::new();
    }
    let fits = |bytes: u32| bytes == 8 || (-(1i64 << (8 * bytes - 1))..1i64 << (8 * bytes - 1)).contains(&value);
    let length = (1..=8).find(|&length| fits(length)).unwrap_or(8) as usize;
    let mut bytes = value.to_be_bytes()[8 - length..].to_vec();
    bytes[0] ^= 0x80;
    bytes
}

/// Encodes a decimal. The first byte contains the sign and the exponent. Groups of three digits follow, in ten bits
/// each, without trailing zero bytes.
fn vardecimal(ty: SqlType, bytes: &[u8]) -> Vec<u8> {
    let mut wide = [0; 16];
    wide[..bytes.len() - 1].copy_from_slice(&bytes[1..]);
    let magnitude = u128::from_le_bytes(wide);
    if magnitude == 0 {
        return Vec::new();
    }
    let digits = magnitude.to_string().into_bytes();
    let exponent = digits.len() as i32 - 1 - i32::from(ty.scale);
    let mut out = vec![(if bytes[0] == 1 { 0x80 } else { 0 }) | (exponent + 64) as u8];
    let (mut pending, mut bits) = (0u32, 0);
    for group in digits.chunks(3) {
        let three = (0..3).fold(0, |all, at| all * 10 + u32::from(group.get(at).map_or(0, |digit| digit - b'0')));
        (pending, bits) = (pending << 10 | three, bits + 10);
        while bits >= 8 {
            bits -= 8;
            out.push((pending >> bits) as u8);
            pending &= (1 << bits) - 1;
        }
    }
    if bits > 0 {
        out.push((pending << (8 - bits)) as u8);
    }
    trim_end(&out, 0)
}

/// Encodes a Unicode text. An ASCII text is stored in SCSU if this is shorter; any other text is stored unchanged. The
/// stored SCSU text always has an odd number of bytes, which distinguishes it from UTF-16.
fn unicode(bytes: &[u8]) -> Vec<u8> {
    const FILLER: u8 = 0x10;
    let plain = |pair: &[u8]| pair[1] == 0 && (0x20..0x80).contains(&pair[0]);
    if bytes.is_empty() || !bytes.chunks_exact(2).all(plain) {
        return bytes.to_vec();
    }
    let mut scsu: Vec<u8> = bytes.chunks_exact(2).map(|pair| pair[0]).collect();
    if scsu.len().is_multiple_of(2) {
        scsu.push(FILLER);
    }
    if scsu.len() < bytes.len() { scsu } else { bytes.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(stored: Stored) -> Vec<u8> {
        match stored {
            Stored::Bytes(bytes) => bytes,
            _ => Vec::new(),
        }
    }

    #[test]
    fn integers_as_published() {
        let int = |value: i32| bytes(store(SqlType::INT, &value.to_le_bytes()));
        assert_eq!(int(0), []);
        assert_eq!(int(1), [0x81]);
        assert_eq!(int(-1), [0x7F]);
        assert_eq!(int(128), [0x80, 0x80]);
        assert_eq!(int(-128), [0x00]);
        assert_eq!(bytes(store(SqlType::BIGINT, &(-1i64).to_le_bytes())), [0x7F]);
    }

    #[test]
    fn decimals_as_published() {
        // The value 1.00 of a decimal(9, 2).
        assert_eq!(bytes(store(SqlType::decimal(9, 2), &[1, 100, 0, 0, 0])), [0xC0, 0x19]);
    }

    #[test]
    fn text_is_odd_when_compressed() {
        let text = |text: &str| {
            let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            bytes(store(SqlType::nvarchar(20), &wide))
        };
        assert_eq!(text("AB"), b"AB\x10");
        assert_eq!(text("ABC"), b"ABC");
        assert_eq!(text("\u{e9}"), [0xE9, 0]);
    }
}
