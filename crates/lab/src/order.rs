//! Builds sort keys: bytes that have the same order as the values.
//!
//! In binary collations, strings are ordered by code unit. In all other collations, letters are case-folded, and
//! trailing blanks are ignored. `-` and `'` are also ignored (word sort). Other punctuation sorts before digits, and
//! digits sort before letters. For the ASCII strings that the lab writes, this is the order of the Latin collations. If
//! a collation has an [alphabet], its letters have the order of this alphabet.

use crate::alphabet;
use crate::types::SqlType;

/// Appends the sort key of a value.
pub(crate) fn push_sort_key(
    (ty, collation): (SqlType, u32),
    value: Option<&[u8]>,
    descending: bool,
    out: &mut Vec<u8>,
) {
    let from = out.len();
    match value {
        None => out.push(0),
        Some(bytes) => {
            out.push(1);
            push_value(ty, collation, bytes, out);
        }
    }
    if descending {
        for byte in &mut out[from..] {
            *byte = !*byte;
        }
    }
}

fn push_value(ty: SqlType, collation: u32, bytes: &[u8], out: &mut Vec<u8>) {
    let reversed = |bytes: &[u8]| bytes.iter().rev().copied().collect::<Vec<_>>();
    match ty.xtype {
        48 | 104 => out.extend(bytes),
        52 | 56 | 127 | 60 | 122 => push_signed(bytes, out),
        59 | 62 => {
            let mut big = reversed(bytes);
            let negative = big.first().is_some_and(|byte| byte & 0x80 != 0);
            for (place, byte) in big.iter_mut().enumerate() {
                *byte ^= if negative {
                    0xFF
                } else if place == 0 {
                    0x80
                } else {
                    0
                };
            }
            out.extend(big);
        }
        // A datetime: the last four bytes are the signed number of days, and the first four bytes are the ticks.
        61 => {
            push_signed(&bytes[4..8], out);
            out.extend(reversed(&bytes[..4]));
        }
        58 => {
            out.extend(reversed(&bytes[2..4]));
            out.extend(reversed(&bytes[..2]));
        }
        40 | 41 => out.extend(reversed(bytes)),
        42 => {
            let (time, day) = bytes.split_at(bytes.len() - 3);
            out.extend(reversed(day));
            out.extend(reversed(time));
        }
        // The time-zone offset at the end is not part of the sort key.
        43 => push_value(SqlType { xtype: 42, ..ty }, collation, &bytes[..bytes.len() - 2], out),
        106 | 108 => {
            let positive = bytes.first() == Some(&1);
            out.push(u8::from(positive));
            out.extend(reversed(&bytes[1..]).into_iter().map(|byte| if positive { byte } else { !byte }));
        }
        36 => {
            for group in [10..16, 8..10, 6..8, 4..6, 0..4] {
                out.extend(&bytes[group]);
            }
        }
        167 | 175 => push_text(bytes.iter().map(|&byte| u16::from(byte)), collation, out),
        231 | 239 => {
            push_text(bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])), collation, out);
        }
        165 | 173 => {
            // Trailing zero bytes are ignored. A byte 1 precedes each byte of the value, so that a value sorts after
            // its own prefixes.
            let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            out.extend(bytes[..end].iter().flat_map(|&byte| [1, byte]));
            out.push(0);
        }
        _ => out.extend(bytes),
    }
}

fn push_signed(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(bytes.iter().rev().enumerate().map(|(place, &byte)| if place == 0 { byte ^ 0x80 } else { byte }));
}

fn push_text(units: impl Iterator<Item = u16>, collation: u32, out: &mut Vec<u8>) {
    let mut units: Vec<u16> = units.collect();
    while units.last() == Some(&32) {
        units.pop();
    }
    let mut at = 0;
    while let Some(&unit) = units.get(at) {
        if let Some((place, length)) = alphabet::place(collation, units.get(at..).unwrap_or_default()) {
            out.extend((place as u16 + LETTERS).to_be_bytes());
            at += length;
            continue;
        }
        at += 1;
        let weight = match unit {
            _ if collation & BINARY != 0 => unit,
            0x2D | 0x27 => continue,
            0x30..=0x39 | 0x61..=0x7A => unit + 0x100,
            0x41..=0x5A => unit + 0x120,
            0x80.. => unit.saturating_add(0x200),
            // `SYMBOLS` lists the symbols, beginning with the blank, in the order of the Latin collations. A character
            // that is not in the list sorts before all symbols.
            _ => SYMBOLS.iter().position(|&symbol| u16::from(symbol) == unit).map_or(1, |place| place as u16 + 2),
        };
        out.extend(weight.to_be_bytes());
    }
    out.extend([0, 0]);
}

/// The weight of the first letter of an alphabet. It is greater than all weights of ASCII letters.
const LETTERS: u16 = 0x200;

/// Bits of the collation id for BIN and BIN2.
const BINARY: u32 = 0x1_0800;

const SYMBOLS: &[u8] = b" _,;:!?.\"()[]{}@*/\\&#%`^+<=>|~$";

#[cfg(test)]
mod tests {
    use super::*;

    fn key(ty: SqlType, value: &[u8], descending: bool) -> Vec<u8> {
        let mut out = Vec::new();
        push_sort_key((ty, 0x3400_D008), Some(value), descending, &mut out);
        out
    }

    #[test]
    fn keys_compare_as_numbers_do() {
        let types = [
            SqlType::INT,
            SqlType::BIGINT,
            SqlType::MONEY,
            SqlType::FLOAT,
            SqlType::REAL,
            SqlType::DATETIME,
            SqlType::DATE,
            SqlType::decimal(12, 2),
            SqlType::decimal(30, 4),
            SqlType::datetime2(7),
            SqlType::datetimeoffset(3),
        ];
        for ty in types {
            let keys: Vec<Vec<u8>> = [-900, -30, -1, 0, 1, 7, 300, 4000]
                .iter()
                .map(|&number| {
                    let mut bytes = Vec::new();
                    ty.encode_number(number, &mut bytes);
                    key(ty, &bytes, false)
                })
                .collect();
            assert!(keys.is_sorted(), "{ty:?}");
        }
    }

    #[test]
    fn strings_fold_case_and_ignore_hyphens() {
        let text = |text: &str| key(SqlType::varchar(40), text.as_bytes(), false);
        assert!(text("a b") < text("a_b"));
        assert!(text("a_b") < text("a1") && text("a1") < text("ab"));
        assert_eq!(text("ABC  "), text("abc"));
        let mut binary = [Vec::new(), Vec::new()];
        push_sort_key((SqlType::varchar(9), 0x808), Some(b"a_"), false, &mut binary[0]);
        push_sort_key((SqlType::varchar(9), 0x808), Some(b"aZ"), false, &mut binary[1]);
        assert!(binary[0] > binary[1]);
        assert!(text("A-C71970F") < text("AMD15433F") && text("AMD15433F") < text("A-R89858F"));
    }

    #[test]
    fn null_is_lowest_and_highest_when_descending() {
        let mut null = Vec::new();
        push_sort_key((SqlType::INT, 0), None, true, &mut null);
        assert!(null > key(SqlType::INT, &[0, 0, 0, 0], true));
    }
}
