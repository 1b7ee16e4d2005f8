//! Hashes of foreign keys for comparison by equality, and rows in the notation of CHECKCONSTRAINTS.

use catalog::Stored;
use format::collation::{Encoding, equality_unit, letters_of};
use format::record::Record;
use format::types::xtype;
use format::value;
use sums::hash::{FactHash, Hasher};

use super::plan::Named;
use crate::values::Column;

/// The key of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeyValue {
    /// A key column is NULL, so the constraint requires nothing.
    Null,
    /// Two keys with equal hashes are equal. Two keys with different hashes are different if both keys are certain.
    Value {
        /// Keyed hash of the whole key.
        hash: (u64, u64),
        /// Whether it is fully known which other keys are equal to this key. This is so if no character of the key
        /// depends on collation tables.
        is_certain: bool,
        /// Keyed hash of the letters, the first level of comparison. Keys with different letters are different. `None`
        /// if the letters are not fully known.
        letters: Option<(u64, u64)>,
    },
    /// A key column is not stored in the record.
    Unknown,
}

/// The key of a row.
pub(super) fn key_value(key: &FactHash, columns: &[Named], record: &Record<'_>) -> KeyValue {
    let (mut hasher, mut of_letters) = (key.hasher(), key.hasher());
    let (mut is_certain, mut is_known, mut has_letters) = (true, true, true);
    for (_, column) in columns {
        match column.value(record) {
            Stored::Null => return KeyValue::Null,
            Stored::Plain(bytes) => {
                is_certain &= add(&mut hasher, column, bytes);
                has_letters = has_letters && add_letters(&mut of_letters, column, bytes);
            }
            Stored::Absent | Stored::Complex(_) => is_known = false,
        }
    }
    if !is_known {
        return KeyValue::Unknown;
    }
    hasher.add_bytes(&[is_certain.into()]);
    of_letters.add_bytes(b"letters");
    KeyValue::Value { hash: hasher.finish(), is_certain, letters: has_letters.then(|| of_letters.finish()) }
}

/// Adds the letters of a string, which are the first level of comparison in its collation. For a value of another type,
/// adds the same bytes as [`add`]. Equal values add the same bytes, but different strings may add the same bytes too.
/// Returns false if it is uncertain whether equal values add the same bytes.
fn add_letters(hasher: &mut Hasher<'_>, column: &Column, bytes: &[u8]) -> bool {
    let encoding = match column.column.info.xtype {
        xtype::CHAR | xtype::VARCHAR => Encoding::Ansi,
        xtype::NCHAR | xtype::NVARCHAR => Encoding::Unicode,
        _ => return add(hasher, column, bytes),
    };
    let mut letters = Vec::new();
    let is_known = bytes.len().is_multiple_of(if encoding == Encoding::Ansi { 1 } else { 2 })
        && letters_of(bytes, column.column.collation, encoding, &mut letters);
    hasher.add_bytes(&letters);
    is_known
}

/// Adds bytes that are the same only for equal values. Returns whether two values that add different bytes are certain
/// to be different.
fn add(hasher: &mut Hasher<'_>, column: &Column, bytes: &[u8]) -> bool {
    let trimmed = |trailing: u8| bytes.len() - bytes.iter().rev().take_while(|byte| **byte == trailing).count();
    match column.column.info.xtype {
        xtype::CHAR | xtype::VARCHAR => {
            let units = bytes.get(..trimmed(b' ')).unwrap_or_default().iter().map(|&byte| byte.into());
            add_text(hasher, column, units)
        }
        xtype::NCHAR | xtype::NVARCHAR => {
            let (pairs, rest) = bytes.as_chunks::<2>();
            let blanks = pairs.iter().rev().take_while(|pair| **pair == [b' ', 0]).count();
            let units = pairs.iter().take(pairs.len() - blanks).map(|pair| u16::from_le_bytes(*pair));
            add_text(hasher, column, units) && rest.is_empty()
        }
        // In comparisons, the shorter value is padded with zeros, so trailing zeros are not hashed.
        xtype::BINARY | xtype::VARBINARY => {
            hasher.add_bytes(bytes.get(..trimmed(0)).unwrap_or_default());
            true
        }
        // The time is stored in UTC, so the time zone offset does not affect equality.
        xtype::DATETIMEOFFSET => {
            hasher.add_bytes(bytes.get(..bytes.len().saturating_sub(2)).unwrap_or_default());
            true
        }
        // Zero may be stored with either sign; both forms are equal.
        xtype::REAL if matches!(bytes, [0, 0, 0, 0 | 0x80]) => add_zero(hasher),
        xtype::FLOAT if matches!(bytes, [0, 0, 0, 0, 0, 0, 0, 0 | 0x80]) => add_zero(hasher),
        xtype::DECIMAL | xtype::NUMERIC if bytes.iter().skip(1).all(|byte| *byte == 0) => add_zero(hasher),
        _ => {
            hasher.add_bytes(bytes);
            true
        }
    }
}

fn add_zero(hasher: &mut Hasher<'_>) -> bool {
    hasher.add_bytes(&[]);
    true
}

/// Adds a string, given without its trailing blanks. Returns whether equality is known for all its characters.
fn add_text(hasher: &mut Hasher<'_>, column: &Column, units: impl Iterator<Item = u16> + Clone) -> bool {
    let collation = column.column.collation;
    let is_certain = units.clone().all(|unit| equality_unit(unit, collation).is_some());
    let mut bytes = Vec::new();
    for unit in units {
        let unit = if is_certain { equality_unit(unit, collation).unwrap_or(unit) } else { unit };
        bytes.extend(unit.to_le_bytes());
    }
    hasher.add_bytes(&bytes);
    is_certain
}

/// The row in the notation of CHECKCONSTRAINTS, which can be used in a WHERE clause: `[a] = '1' AND [b] IS NULL`.
pub(super) fn place(columns: &[Named], record: &Record<'_>) -> String {
    let terms = columns.iter().map(|(name, column)| {
        let name = name.replace(']', "]]");
        match column.value(record) {
            Stored::Plain(bytes) => {
                let text = value::text(column.column.info, bytes, 0);
                if text.starts_with('\'') { format!("[{name}] = {text}") } else { format!("[{name}] = '{text}'") }
            }
            Stored::Null => format!("[{name}] IS NULL"),
            Stored::Absent | Stored::Complex(_) => format!("[{name}] = ?"),
        }
    });
    terms.collect::<Vec<_>>().join(" AND ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::RowsetColumn;
    use format::collation::CollationId;
    use format::types::TypeInfo;

    fn column(kind: u8, collation: u32) -> Column {
        let column = RowsetColumn {
            id: 1,
            physical: 1,
            info: TypeInfo { xtype: kind, length: 20, ..TypeInfo::default() },
            collation: CollationId(collation),
            status: 0,
            key_ordinal: 0,
            leaf_offset: -1,
            node_offset: 0,
            leaf_null_bit: 1,
            node_null_bit: 0,
            default: None,
            leaf_bit: 0,
            node_bit: 0,
        };
        Column::of_table(&column)
    }

    fn hashes(kind: u8, collation: u32, values: [&[u8]; 2]) -> ([bool; 2], bool) {
        let key = FactHash::new(Some(1));
        let column = column(kind, collation);
        let [first, second] = values.map(|bytes| {
            let mut hasher = key.hasher();
            (add(&mut hasher, &column, bytes), hasher.finish())
        });
        ([first.0, second.0], first.1 == second.1)
    }

    #[test]
    fn equal_values_have_equal_hashes_whatever_their_bytes() {
        const SQL_LATIN1_CI_AS: u32 = 0x3400_D008;
        const LATIN1_CS_AS: u32 = 0xC008;
        let text = |collation, a: &str, b: &str| hashes(xtype::VARCHAR, collation, [a.as_bytes(), b.as_bytes()]);
        assert_eq!(text(SQL_LATIN1_CI_AS, "ALFKI", "alfki  "), ([true; 2], true));
        assert_eq!(text(LATIN1_CS_AS, "ALFKI", "alfki"), ([true; 2], false));
        assert_eq!(text(0x0808, "a ", "a"), ([true; 2], true));
        assert_eq!(hashes(xtype::NVARCHAR, SQL_LATIN1_CI_AS, [b"A\0 \0", b"a\0"]), ([true; 2], true));
        assert_eq!(hashes(xtype::VARBINARY, 0, [&[1, 0], &[1]]), ([true; 2], true));
        assert_eq!(hashes(xtype::FLOAT, 0, [&[0; 8], &[0, 0, 0, 0, 0, 0, 0, 0x80]]), ([true; 2], true));
        assert_eq!(hashes(xtype::DECIMAL, 0, [&[0, 0, 0, 0, 0], &[1, 0, 0, 0, 0]]), ([true; 2], true));
        assert_eq!(hashes(xtype::INT, 0, [&[1, 0, 0, 0], &[2, 0, 0, 0]]), ([true; 2], false));
        let moment = [[1, 2, 3, 4, 5, 6, 7, 8, 60, 0], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0]];
        assert_eq!(hashes(xtype::DATETIMEOFFSET, 0, [&moment[0], &moment[1]]), ([true; 2], true));
    }

    #[test]
    fn strings_that_differ_in_their_letters_are_different_keys() {
        let key = FactHash::new(Some(1));
        let letters = |kind, collation, bytes: &[u8]| {
            let mut hasher = key.hasher();
            add_letters(&mut hasher, &column(kind, collation), bytes).then(|| hasher.finish())
        };
        let text = |collation, text: &str| {
            let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            letters(xtype::NVARCHAR, collation, &units)
        };
        assert!(text(0xD008, "Espa\u{f1}a").is_some());
        assert_ne!(text(0xD008, "Espa\u{f1}a"), text(0xD008, "Francia"));
        assert_eq!(text(0xD008, "Espa\u{f1}a "), text(0xD008, "espana"));
        assert_eq!(text(0xD028, "Espa\u{f1}a"), None, "a letter of its own");
        assert_eq!(text(0x4_D008, "Espa\u{f1}a"), None, "a later generation");
        assert_ne!(text(0x4_D008, "Espana"), text(0x4_D008, "Francia"));
        let sorted = |bytes: &[u8]| letters(xtype::VARCHAR, 0x3400_D008, bytes);
        assert_eq!(sorted(b"Espa\xF1a "), sorted(b"ESPANA"));
        assert_ne!(sorted(b"Espa\xF1a"), sorted(b"Espa\xDFa"));
    }

    #[test]
    fn strings_that_only_a_collation_can_tell_apart_are_not_certain() {
        const TURKISH: u32 = 0xD01A;
        assert_eq!(hashes(xtype::VARCHAR, 0xD008, [b"stra\xdfe", b"strasse"]).0, [false, true]);
        assert_eq!(hashes(xtype::VARCHAR, TURKISH, [b"i", b"I"]).0, [false, false]);
        assert_eq!(hashes(xtype::NVARCHAR, 0xD008, [b"a\0\x0b\x20", b"a\0"]).0, [false, true], "ignored character");
    }
}
