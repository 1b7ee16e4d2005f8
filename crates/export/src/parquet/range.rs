//! The minimum and the maximum of a column, which let readers skip row groups.

use format::bytes::unsigned;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::statistics::{Statistics, ValueStatistics};

use super::plain::{LENGTH_BYTES, Plain};
use super::schema::Part;

/// The maximum length of a minimum or maximum, in bytes. Longer values do not help a reader, so they are not written.
const MOST_BYTES: usize = 64;

/// The statistics of a column for the footer of the file. `values` contains each distinct value at least once.
pub(super) fn statistics(part: Part, values: &Plain, nulls: usize) -> Statistics {
    let nulls = Some(nulls as u64);
    match part {
        Part::Bool => {
            let bits = || values.bytes.iter().map(|byte| *byte != 0);
            Statistics::boolean(bits().min(), bits().max(), None, nulls, false)
        }
        Part::Int32 | Part::Date | Part::Rest | Part::Offset => {
            let numbers = || values.bytes.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes));
            Statistics::int32(numbers().min(), numbers().max(), None, nulls, false)
        }
        Part::Int64 | Part::TimeMicros | Part::Moment => {
            let numbers = || values.bytes.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
            Statistics::int64(numbers().min(), numbers().max(), None, nulls, false)
        }
        Part::Real => {
            let numbers = || values.bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
            let nans = numbers().filter(|n| n.is_nan()).count() as u64;
            let known = || numbers().filter(|_| nans == 0);
            let (least, most) = (known().min_by(f32::total_cmp), known().max_by(f32::total_cmp));
            Statistics::Float(ValueStatistics::new(least, most, None, nulls, false).with_nan_count(Some(nans)))
        }
        Part::Float => {
            let numbers = || values.bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
            let nans = numbers().filter(|n| n.is_nan()).count() as u64;
            let known = || numbers().filter(|_| nans == 0);
            let (least, most) = (known().min_by(f64::total_cmp), known().max_by(f64::total_cmp));
            Statistics::Double(ValueStatistics::new(least, most, None, nulls, false).with_nan_count(Some(nans)))
        }
        Part::Fixed(_) | Part::Guid => {
            // Flipping the sign bit of a decimal, its highest bit, makes unsigned comparison right.
            let flip = if part == Part::Guid { 0 } else { 0x80 };
            let ordered = |value: &[u8]| {
                let mut key = [0; 16];
                key.iter_mut().zip(value).for_each(|(to, byte)| *to = *byte);
                u128::from_be_bytes(key) ^ flip << 120
            };
            let bytes = |value: &[u8]| FixedLenByteArray::from(value.to_vec());
            let least = values.values().min_by_key(|value| ordered(value)).map(bytes);
            let most = values.values().max_by_key(|value| ordered(value)).map(bytes);
            Statistics::fixed_len_byte_array(least, most, None, nulls, false)
        }
        Part::Text | Part::Bytes => {
            let range = of_bytes(values.values().filter_map(|value| value.get(LENGTH_BYTES..)));
            let range = range.filter(|(least, most)| least.len().max(most.len()) <= MOST_BYTES);
            let bytes = |value: &[u8]| ByteArray::from(value.to_vec());
            let (least, most) = range.map(|(least, most)| (bytes(least), bytes(most))).unzip();
            Statistics::byte_array(least, most, None, nulls, false)
        }
    }
}

fn of_bytes<'b>(values: impl Iterator<Item = &'b [u8]>) -> Option<(&'b [u8], &'b [u8])> {
    // Compares the first eight bytes as a number, which nearly always decides the order.
    let mut keyed = values.map(|value| (unsigned(value.get(..8).unwrap_or(value)).swap_bytes(), value));
    let first = keyed.next()?;
    let (mut least, mut most) = (first, first);
    for value in keyed {
        if value < least {
            least = value;
        }
        if value > most {
            most = value;
        }
    }
    Some((least.1, most.1))
}
