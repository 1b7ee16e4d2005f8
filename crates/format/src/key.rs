//! The order of index keys, where it is certain (docs/format/types-and-keys.md).

mod ascent;
mod image;

use std::cmp::Ordering;

use crate::bytes::unsigned;
use crate::collation::{self, CollationId, Encoding};
use crate::record::{Record, RecordKind};
use crate::types::{TypeInfo, xtype};

pub use ascent::Ascent;
pub use image::{IMAGE_BYTES, KeyImage};

/// The order of the values of a key column.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyOrder {
    /// A little-endian two's complement integer. An absent or empty value counts as 0, as for a uniquifier.
    Signed,
    /// A little-endian unsigned integer: a tinyint, or a part of a date or time type.
    Unsigned,
    /// One bit of a byte, by its position.
    Bit(u8),
    /// u32 ticks, then i32 days. The days are compared first.
    DateTime,
    /// u16 minutes, then u16 days. The days are compared first.
    SmallDateTime,
    /// A time with this number of bytes, then 3 bytes of days, then possibly an offset, which is not compared. The days
    /// are compared first.
    DayAndTime(u8),
    /// A sign byte, then the magnitude.
    Decimal,
    /// An IEEE floating-point number of 4 or 8 bytes.
    Float,
    /// A GUID. Bytes 10-15 are compared first, then 8-9, 6-7, 4-5, 0-3.
    Guid,
    /// Bytes, compared one by one without trailing zeros.
    Bytes,
    /// The address of a heap row, stored as page, file, slot. SQL Server compares it either byte by byte or as the
    /// numbers file, page, slot. No available index was large enough to show which of these two rules SQL Server uses.
    /// So an order is certain only if both rules give it.
    Locator,
    /// char or varchar.
    Ansi(CollationId),
    /// nchar or nvarchar.
    Unicode(CollationId),
    /// A type of unknown order: only the equality of equal bytes is certain.
    Unknown,
}

impl KeyOrder {
    /// The order of a column with this type and collation. `bit` is the position of a bit column in its byte.
    pub fn of(info: TypeInfo, collation: CollationId, bit: u8) -> Self {
        match info.xtype {
            xtype::SMALLINT | xtype::INT | xtype::BIGINT | xtype::MONEY | xtype::SMALLMONEY => Self::Signed,
            xtype::TINYINT | xtype::DATE | xtype::TIME => Self::Unsigned,
            xtype::BIT => Self::Bit(bit),
            xtype::DATETIME => Self::DateTime,
            xtype::SMALLDATETIME => Self::SmallDateTime,
            xtype::DATETIME2 => Self::DayAndTime((info.length.saturating_sub(3)) as u8),
            xtype::DATETIMEOFFSET => Self::DayAndTime((info.length.saturating_sub(5)) as u8),
            xtype::DECIMAL | xtype::NUMERIC => Self::Decimal,
            xtype::REAL | xtype::FLOAT => Self::Float,
            xtype::UNIQUEIDENTIFIER => Self::Guid,
            xtype::BINARY | xtype::VARBINARY | xtype::TIMESTAMP => Self::Bytes,
            xtype::CHAR | xtype::VARCHAR => Self::Ansi(collation),
            xtype::NCHAR | xtype::NVARCHAR => Self::Unicode(collation),
            _ => Self::Unknown,
        }
    }
}

/// A column of an index key, and its position in the records of one level.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KeyColumn {
    /// The order of the column's values.
    pub order: KeyOrder,
    /// The place of the column in a record. A positive number is a byte offset from the record's start. A negative
    /// number is a variable column, counted from -1. 0 means that the column is not stored.
    pub offset: i16,
    /// The length of a fixed column in bytes.
    pub length: u16,
    /// The number of the column in the null bitmap, counted from 1; 0 for a column without a null bit.
    pub null_bit: u16,
    /// Whether the column is sorted in descending order.
    pub descending: bool,
}

/// The value of a key column in one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum KeyValue<'a> {
    /// NULL, which sorts before all values.
    Null,
    Bytes(&'a [u8]),
    /// The record does not store the value, or stores it in a form that cannot be compared.
    Unknown,
}

impl KeyColumn {
    fn value<'a>(&self, record: &Record<'a>) -> KeyValue<'a> {
        if record.null_bit(self.null_bit) == Some(true) {
            // An absent, empty or NULL uniquifier counts as 0 (docs/format/index-records.md#uniquifier).
            return if self.offset < 0 && self.order == KeyOrder::Signed {
                KeyValue::Bytes(&[])
            } else {
                KeyValue::Null
            };
        }
        let is_uniquifier = self.offset < 0 && self.order == KeyOrder::Signed;
        match self.offset {
            0 => KeyValue::Unknown,
            _ if !record.has_column(self.null_bit) && !is_uniquifier => KeyValue::Unknown,
            1.. => match record.fixed(self.offset.unsigned_abs(), self.length) {
                Some(bytes) => KeyValue::Bytes(bytes),
                None => KeyValue::Unknown,
            },
            _ => match record.variable(self.offset.unsigned_abs()) {
                Some((_, true)) => KeyValue::Unknown,
                Some((bytes, false)) => KeyValue::Bytes(bytes),
                None if RecordKind::is_tag_alone(record.status()) => KeyValue::Unknown,
                None => KeyValue::Bytes(&[]),
            },
        }
    }
}

/// Calls `add` with the stored value of each key column: a bit is passed as one byte, NULL as `None`. Returns false if
/// the record lacks one of the columns, or stores a value in a form that cannot be compared. Two keys are equal if
/// `add` receives the same values for both.
pub fn each_value<'a>(record: &Record<'a>, columns: &[KeyColumn], mut add: impl FnMut(Option<&'a [u8]>)) -> bool {
    columns.iter().all(|column| {
        match column.value(record) {
            KeyValue::Unknown => return false,
            KeyValue::Null => add(None),
            KeyValue::Bytes(bytes) => match column.order {
                // A bit column can have a different position in its byte at each level of the index.
                KeyOrder::Bit(bit) => match bit_value(bytes, bit) {
                    Some(is_set) => add(Some(if is_set { &[1] } else { &[0] })),
                    None => return false,
                },
                _ => add(Some(bytes)),
            },
        }
        true
    })
}

/// The order of the keys of two records of one level; `None` if it is undecided.
///
/// [`Ordering::Equal`] means that every column is certainly equal.
pub fn compare(a: &Record<'_>, b: &Record<'_>, columns: &[KeyColumn]) -> Option<Ordering> {
    compare_across(a, columns, b, columns)
}

/// Like [`compare`], for records of different levels, in which the columns have different positions. Compares only the
/// columns that both records have.
pub fn compare_across(
    a: &Record<'_>,
    a_columns: &[KeyColumn],
    b: &Record<'_>,
    b_columns: &[KeyColumn],
) -> Option<Ordering> {
    let mut is_identical = true;
    for (a_column, b_column) in a_columns.iter().zip(b_columns) {
        let order = match (a_column.value(a), b_column.value(b)) {
            (KeyValue::Null, KeyValue::Null) => Ordering::Equal,
            (KeyValue::Null, KeyValue::Bytes(_)) => Ordering::Less,
            (KeyValue::Bytes(_), KeyValue::Null) => Ordering::Greater,
            (KeyValue::Bytes(left), KeyValue::Bytes(right)) => {
                match compare_stored((left, a_column.order), (right, b_column.order)) {
                    // `compare_values` returns `Equal` for strings only if they are equal at all levels.
                    Some(Ordering::Equal) if matches!(a_column.order, KeyOrder::Ansi(_) | KeyOrder::Unicode(_)) => {
                        Ordering::Equal
                    }
                    // Different bytes may compare equal: trailing zeros, negative zero, or one time with two offsets.
                    // The order of the keys then depends on the next column, but keys with such values are not reported
                    // as duplicates.
                    Some(Ordering::Equal) if left != right && !matches!(a_column.order, KeyOrder::Bit(_)) => {
                        is_identical = false;
                        Ordering::Equal
                    }
                    Some(order) => order,
                    None => return None,
                }
            }
            _ => return None,
        };
        if order != Ordering::Equal {
            return Some(if a_column.descending { order.reverse() } else { order });
        }
    }
    is_identical.then_some(Ordering::Equal)
}

/// The order of two values of one column. The values may be from different levels of the index. A bit column can have a
/// different position in its byte at each level.
fn compare_stored((left, left_order): (&[u8], KeyOrder), (right, right_order): (&[u8], KeyOrder)) -> Option<Ordering> {
    match (left_order, right_order) {
        (KeyOrder::Bit(left_bit), KeyOrder::Bit(right_bit)) => {
            Some(bit_value(left, left_bit)?.cmp(&bit_value(right, right_bit)?))
        }
        (order, _) => compare_values(left, right, order),
    }
}

/// The order of two values of one column; `None` if it is uncertain.
pub fn compare_values(a: &[u8], b: &[u8], order: KeyOrder) -> Option<Ordering> {
    Some(match order {
        KeyOrder::Signed => signed(a).cmp(&signed(b)),
        KeyOrder::Unsigned => unsigned(a).cmp(&unsigned(b)),
        KeyOrder::Bit(bit) => bit_value(a, bit)?.cmp(&bit_value(b, bit)?),
        KeyOrder::DateTime => datetime(a)?.cmp(&datetime(b)?),
        KeyOrder::SmallDateTime => small_datetime(a)?.cmp(&small_datetime(b)?),
        KeyOrder::DayAndTime(time) => day_and_time(a, time)?.cmp(&day_and_time(b, time)?),
        KeyOrder::Decimal => decimal(a)?.cmp(&decimal(b)?),
        KeyOrder::Float => float(a)?.partial_cmp(&float(b)?)?,
        KeyOrder::Guid => guid(a)?.cmp(&guid(b)?),
        KeyOrder::Bytes => without_trailing_zeros(a).cmp(without_trailing_zeros(b)),
        KeyOrder::Locator => {
            let by_number = locator(a)?.cmp(&locator(b)?);
            return (a.cmp(b) == by_number).then_some(by_number);
        }
        KeyOrder::Ansi(id) => return collation::compare(a, b, id, Encoding::Ansi).order(),
        KeyOrder::Unicode(id) => return collation::compare(a, b, id, Encoding::Unicode).order(),
        KeyOrder::Unknown => return (a == b).then_some(Ordering::Equal),
    })
}

fn units(bytes: &[u8]) -> impl DoubleEndedIterator<Item = u16> + Clone + '_ {
    bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair))
}

fn signed(bytes: &[u8]) -> i64 {
    let used = bytes.len().min(8);
    if used == 0 {
        return 0;
    }
    let shift = 64 - 8 * used as u32;
    (unsigned(bytes) << shift).cast_signed() >> shift
}

fn bit_value(bytes: &[u8], bit: u8) -> Option<bool> {
    Some(bytes.first()? & (1u8.checked_shl(bit.into())?) != 0)
}

fn datetime(bytes: &[u8]) -> Option<(i64, u64)> {
    Some((signed(bytes.get(4..8)?), unsigned(bytes.get(..4)?)))
}

fn small_datetime(bytes: &[u8]) -> Option<(u64, u64)> {
    Some((unsigned(bytes.get(2..4)?), unsigned(bytes.get(..2)?)))
}

fn day_and_time(bytes: &[u8], time: u8) -> Option<(u64, u64)> {
    let time = usize::from(time);
    Some((unsigned(bytes.get(time..time + 3)?), unsigned(bytes.get(..time)?)))
}

/// The signed value of a decimal. Zero is 0 with any sign byte.
fn decimal(bytes: &[u8]) -> Option<i128> {
    let (&sign, magnitude) = bytes.split_first()?;
    let magnitude = magnitude.iter().take(16).rev().fold(0u128, |value, &byte| (value << 8) | u128::from(byte));
    let magnitude = i128::try_from(magnitude).ok()?;
    Some(if sign == 0 { -magnitude } else { magnitude })
}

fn float(bytes: &[u8]) -> Option<f64> {
    let value = match bytes.len() {
        4 => f64::from(f32::from_bits(unsigned(bytes) as u32)),
        8 => f64::from_bits(unsigned(bytes)),
        _ => return None,
    };
    value.is_finite().then_some(value)
}

fn guid(bytes: &[u8]) -> Option<[u8; 16]> {
    let b: &[u8; 16] = bytes.try_into().ok()?;
    Some([b[10], b[11], b[12], b[13], b[14], b[15], b[8], b[9], b[6], b[7], b[4], b[5], b[0], b[1], b[2], b[3]])
}

/// The numbers of a row address: file, page, slot.
fn locator(bytes: &[u8]) -> Option<(u64, u64, u64)> {
    Some((unsigned(bytes.get(4..6)?), unsigned(bytes.get(..4)?), unsigned(bytes.get(6..8)?)))
}

/// Whether the row address in the first key is less than the row address in the second key, compared byte by byte.
/// `None` if a key does not end with a row address, or if the columns before it are not certainly equal. Use this
/// function only for pairs of records with an uncertain order. If the keys of a page are in order, the result is the
/// same for all such pairs on the page.
pub fn locators_ascend_bytewise(
    a: &Record<'_>,
    a_columns: &[KeyColumn],
    b: &Record<'_>,
    b_columns: &[KeyColumn],
) -> Option<bool> {
    let ((a_last, a_rest), (b_last, b_rest)) = (a_columns.split_last()?, b_columns.split_last()?);
    let is_last =
        a_last.order == KeyOrder::Locator && b_last.order == KeyOrder::Locator && a_rest.len() == b_rest.len();
    if !is_last || !a_rest.is_empty() && compare_across(a, a_rest, b, b_rest) != Some(Ordering::Equal) {
        return None;
    }
    match (a_last.value(a), b_last.value(b)) {
        (KeyValue::Bytes(left), KeyValue::Bytes(right)) => Some(left < right),
        _ => None,
    }
}

fn without_trailing_zeros(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    bytes.get(..end).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index_record(key: &[u8]) -> Vec<u8> {
        [&[0x06][..], key].concat()
    }

    #[test]
    fn addresses_are_ordered_where_bytes_and_numbers_agree() {
        let address = |page: u32, slot: u8| [&page.to_le_bytes()[..], &[1, 0, slot, 0]].concat();
        let order = |a: &[u8], b: &[u8]| compare_values(a, b, KeyOrder::Locator);
        assert_eq!(order(&address(7, 1), &address(7, 2)), Some(Ordering::Less));
        assert_eq!(order(&address(0x109, 1), &address(0x108, 9)), Some(Ordering::Greater));
        assert_eq!(order(&address(0xFF, 0), &address(0x100, 0)), None);
        let column = |order, offset, length| KeyColumn { order, offset, length, null_bit: 0, descending: false };
        let columns = [column(KeyOrder::Unsigned, 1, 1), column(KeyOrder::Locator, 2, 8)];
        let ascend = |a: (u8, u32), b: (u8, u32)| {
            let bytes = [a, b].map(|(key, page)| index_record(&[&[key][..], &address(page, 0)].concat()));
            let [a, b] = bytes.each_ref().map(|bytes| Record::index(bytes, 10).unwrap());
            locators_ascend_bytewise(&a, &columns, &b, &columns)
        };
        assert_eq!(ascend((1, 0xFF), (1, 0x100)), Some(false));
        assert_eq!(ascend((1, 0x100), (1, 0xFF)), Some(true));
        assert_eq!(ascend((1, 0xFF), (2, 0x100)), None, "the key decides");
    }

    fn orders(order: KeyOrder, ascending: &[&[u8]]) {
        for descending in [false, true] {
            let column = KeyColumn { order, offset: 1, length: ascending[0].len() as u16, null_bit: 0, descending };
            for (a, left) in ascending.iter().enumerate() {
                for (b, right) in ascending.iter().enumerate() {
                    let (left, right) = (index_record(left), index_record(right));
                    let pminlen = left.len() as u16;
                    let (left, right) =
                        (Record::index(&left, pminlen).unwrap(), Record::index(&right, pminlen).unwrap());
                    let expected = if descending { b.cmp(&a) } else { a.cmp(&b) };
                    assert_eq!(compare(&left, &right, &[column]), Some(expected), "{order:?} {a} {b}");
                    let (left, right) = (KeyImage::of(&left, &[column]), KeyImage::of(&right, &[column]));
                    assert!(left.compare(&right).is_none_or(|order| order == expected), "image {order:?} {a} {b}");
                }
            }
        }
    }

    #[test]
    fn a_bit_is_the_same_wherever_each_level_has_it_in_its_byte() {
        let column =
            |bit| KeyColumn { order: KeyOrder::Bit(bit), offset: 1, length: 1, null_bit: 0, descending: false };
        for (leaf_bit, node_bit) in (0..8).flat_map(|leaf| (0..8).map(move |node| (leaf, node))) {
            let (leaf_columns, node_columns) = ([column(leaf_bit)], [column(node_bit)]);
            for (leaf, node) in
                (0..=255u8).flat_map(|leaf| [0, 1 << node_bit, 0xFF, !(1 << node_bit)].map(|node| (leaf, node)))
            {
                let bytes = [leaf, node].map(|byte| index_record(&[byte]));
                let [leaf_record, node_record] = bytes.each_ref().map(|bytes| Record::index(bytes, 2).unwrap());
                let expected = (leaf >> leaf_bit & 1).cmp(&(node >> node_bit & 1));
                let found = compare_across(&leaf_record, &leaf_columns, &node_record, &node_columns);
                assert_eq!(found, Some(expected), "bit {leaf_bit} of {leaf:#b}, bit {node_bit} of {node:#b}");
                let values = [(&leaf_record, leaf_columns), (&node_record, node_columns)].map(|(record, columns)| {
                    let mut values = Vec::new();
                    assert!(each_value(record, &columns, |value| values.push(value.map(<[u8]>::to_vec))));
                    values
                });
                assert_eq!(values[0] == values[1], expected.is_eq());
            }
        }
    }

    #[test]
    fn every_type_has_its_order_and_images_never_contradict_it() {
        orders(KeyOrder::Signed, &[&[0, 0, 0, 0x80], &[0xFF; 4], &[0; 4], &[1, 0, 0, 0], &[0, 1, 0, 0]]);
        orders(KeyOrder::Unsigned, &[&[0], &[1], &[0x80], &[0xFF]]);
        orders(
            KeyOrder::DateTime,
            &[&[9, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF], &[0; 8], &[9, 0, 0, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 1, 0, 0, 0]],
        );
        orders(KeyOrder::SmallDateTime, &[&[1, 0, 0, 0], &[0, 0, 1, 0], &[2, 0, 1, 0]]);
        orders(KeyOrder::DayAndTime(3), &[&[9, 9, 9, 1, 0, 0], &[0, 0, 0, 2, 0, 0], &[1, 0, 0, 2, 0, 0]]);
        orders(KeyOrder::Decimal, &[&[0, 5, 0, 0, 0], &[0, 1, 0, 0, 0], &[1, 0, 0, 0, 0], &[1, 0, 1, 0, 0]]);
        orders(KeyOrder::Float, &[&(-1.5f64).to_le_bytes(), &0f64.to_le_bytes(), &2.25f64.to_le_bytes()]);
        orders(KeyOrder::Bytes, &[&[0, 1], &[1, 0], &[1, 1]]);
        orders(KeyOrder::Ansi(CollationId(0xD008)), &[b"a1 ", b"a19", b"a2 ", b"ab ", b"abc"]);
        let guid = |at: usize| {
            let mut bytes = [0u8; 16];
            bytes[at] = 1;
            bytes
        };
        orders(KeyOrder::Guid, &[&guid(3), &guid(0), &guid(4), &guid(6), &guid(8), &guid(10)]);
    }

    #[test]
    fn null_sorts_lowest_and_an_absent_uniquifier_is_zero() {
        let column = KeyColumn { order: KeyOrder::Unsigned, offset: 1, length: 1, null_bit: 1, descending: false };
        let (null, zero) = ([0x16, 0, 1, 0, 1], [0x16, 0, 1, 0, 0]);
        let (null, zero) = (Record::index(&null, 2).unwrap(), Record::index(&zero, 2).unwrap());
        assert_eq!(compare(&null, &zero, &[column]), Some(Ordering::Less));
        let uniquifier = KeyColumn { order: KeyOrder::Signed, offset: -1, length: 4, null_bit: 0, descending: false };
        assert_eq!(compare(&null, &zero, &[uniquifier]), Some(Ordering::Equal));
    }
}
