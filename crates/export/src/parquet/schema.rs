//! The columns of a Parquet file.

use std::collections::BTreeSet;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::Result;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type, TypePtr};

use crate::layout::{Field, Kind, Layout};

/// Fractional digits of a time in microseconds.
const MICRO_DIGITS: u8 = 6;

/// A column of the file.
pub(super) struct FileColumn {
    /// The position of the field in the layout.
    pub(super) field: usize,
    /// The position of the value in a row.
    pub(super) source: usize,
    /// The part of the value that the column holds.
    pub(super) part: Part,
    /// The description of the column for the library.
    pub(super) descriptor: ColumnDescPtr,
}

/// The part of a SQL Server value that a column of the file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Bool,
    Int32,
    Int64,
    /// A decimal of this many bytes.
    Fixed(usize),
    Real,
    Float,
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since midnight.
    TimeMicros,
    /// Microseconds since 1970-01-01; in UTC for a datetimeoffset.
    Moment,
    /// The number of 100 ns units after the last whole microsecond, 0 to 9.
    Rest,
    /// Minutes east of UTC.
    Offset,
    Guid,
    Text,
    Bytes,
}

/// Returns the schema of the file, and its columns in order.
pub(super) fn of(layout: &Layout) -> Result<(TypePtr, Vec<FileColumn>)> {
    let mut names: BTreeSet<String> = layout.fields.iter().map(|field| field.name.clone()).collect();
    let mut types = Vec::new();
    let mut parts = Vec::new();
    for (at, field) in layout.fields.iter().enumerate() {
        for (part, end) in parts_of(field.kind) {
            let name = if end.is_empty() { field.name.clone() } else { another(&mut names, &field.name, end) };
            types.push(Arc::new(column(&name, field, part)?));
            parts.push((at, field.source, part));
        }
    }
    let schema = Arc::new(Type::group_type_builder("schema").with_fields(types).build()?);
    let descriptor = SchemaDescriptor::new(Arc::clone(&schema));
    let columns = parts.into_iter().zip(descriptor.columns());
    let columns = columns.map(|((field, source, part), descriptor)| FileColumn {
        field,
        source,
        part,
        descriptor: Arc::clone(descriptor),
    });
    Ok((schema, columns.collect()))
}

/// A name that no other column has: `name` with the suffix `end`, and underscores if needed.
fn another(names: &mut BTreeSet<String>, name: &str, end: &str) -> String {
    let mut other = format!("{name}{end}");
    while !names.insert(other.clone()) {
        other.push('_');
    }
    other
}

/// The columns that hold a value, with the suffixes of their names. Times are stored in microseconds, because all
/// readers accept this unit. If a time has a seventh fractional digit, a second column holds this digit, so that no
/// precision is lost.
fn parts_of(kind: Kind) -> Vec<(Part, &'static str)> {
    let with_rest = |part: Part, digits: u8| {
        let mut parts = vec![(part, "")];
        parts.extend((digits > MICRO_DIGITS).then_some((Part::Rest, "_100ns")));
        parts
    };
    let part = match kind {
        Kind::Bit => Part::Bool,
        Kind::Integer { bits: 64 } => Part::Int64,
        Kind::Integer { .. } => Part::Int32,
        Kind::Decimal { precision: 0..=9, .. } => Part::Int32,
        Kind::Decimal { precision: 10..=18, .. } => Part::Int64,
        Kind::Decimal { precision, .. } => Part::Fixed(bytes_of(precision)),
        Kind::Real => Part::Real,
        Kind::Float => Part::Float,
        Kind::Date => Part::Date,
        Kind::Time { digits } => return with_rest(Part::TimeMicros, digits),
        Kind::DateTime { digits } => return with_rest(Part::Moment, digits),
        Kind::DateTimeOffset { digits } => {
            let mut parts = with_rest(Part::Moment, digits);
            parts.push((Part::Offset, "_offset"));
            return parts;
        }
        Kind::Guid => Part::Guid,
        Kind::Text | Kind::Hierarchy | Kind::Variant => Part::Text,
        Kind::Geometry | Kind::Geography | Kind::Bytes | Kind::RowVersion => Part::Bytes,
    };
    vec![(part, "")]
}

/// The minimum number of bytes for a decimal of this many digits.
fn bytes_of(precision: u8) -> usize {
    let bits = (10f64.powi(i32::from(precision.min(38))).log2() + 1.0).ceil();
    (bits as usize).div_ceil(8).clamp(1, 16)
}

fn column(name: &str, field: &Field, part: Part) -> Result<Type> {
    let (physical, logical, length) = match part {
        Part::Bool => (Physical::BOOLEAN, None, None),
        Part::Int32 | Part::Int64 | Part::Fixed(_) => {
            let physical = match part {
                Part::Int32 => Physical::INT32,
                Part::Int64 => Physical::INT64,
                _ => Physical::FIXED_LEN_BYTE_ARRAY,
            };
            let logical = match field.kind {
                Kind::Integer { bits } => Some(LogicalType::integer(bits as i8, bits != 8)),
                Kind::Decimal { precision, scale } => {
                    Some(LogicalType::decimal(i32::from(scale.min(precision)), i32::from(precision)))
                }
                _ => None,
            };
            (physical, logical, if let Part::Fixed(bytes) = part { Some(bytes) } else { None })
        }
        Part::Real => (Physical::FLOAT, None, None),
        Part::Float => (Physical::DOUBLE, None, None),
        Part::Date => (Physical::INT32, Some(LogicalType::Date), None),
        Part::TimeMicros => (Physical::INT64, Some(LogicalType::time(false, TimeUnit::MICROS)), None),
        Part::Moment => {
            let is_utc = matches!(field.kind, Kind::DateTimeOffset { .. });
            (Physical::INT64, Some(LogicalType::timestamp(is_utc, TimeUnit::MICROS)), None)
        }
        Part::Rest => (Physical::INT32, Some(LogicalType::integer(8, true)), None),
        Part::Offset => (Physical::INT32, Some(LogicalType::integer(16, true)), None),
        Part::Guid => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid), Some(16)),
        Part::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String), None),
        Part::Bytes => (Physical::BYTE_ARRAY, None, None),
    };
    let mut builder =
        Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL).with_logical_type(logical);
    if let Some(length) = length {
        builder = builder.with_length(length as i32);
    }
    // A decimal is declared twice, as the older converted type and as the newer logical type.
    if let (Part::Int32 | Part::Int64 | Part::Fixed(_), Kind::Decimal { precision, scale }) = (part, field.kind) {
        builder = builder.with_precision(i32::from(precision)).with_scale(i32::from(scale.min(precision)));
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_has_the_fewest_bytes_that_hold_all_its_values() {
        for precision in 19..=38u8 {
            let most = 10i128.pow(u32::from(precision)) - 1;
            let bytes = bytes_of(precision) as u32;
            let fits = |bytes: u32| bytes >= 16 || most < 1i128 << (8 * bytes - 1);
            assert!(fits(bytes) && !fits(bytes - 1), "{precision}: {bytes}");
        }
    }
}
