//! Values as plain text, in the form that CSV uses between commas.

use rows::Value;

use crate::digits;

/// Writes a value of any kind, except a text, bytes or a long value.
#[inline(always)]
pub(crate) fn write(out: &mut Vec<u8>, value: &Value<'_>, between: u8) {
    match value {
        Value::Bit(bit) => out.push(if *bit { b'1' } else { b'0' }),
        Value::Integer(n) => digits::signed(out, *n),
        Value::Decimal { unscaled, scale } => digits::decimal(out, *unscaled, *scale),
        Value::Real(n) => digits::real(out, *n),
        Value::Float(n) => digits::float(out, *n),
        Value::Date(day) => digits::date(out, *day),
        Value::Time(time) => digits::time(out, *time),
        Value::DateTime(moment) => digits::date_time(out, *moment, between),
        Value::DateTimeOffset { utc, offset_minutes } => {
            digits::date_time_offset(out, *utc, *offset_minutes, between);
        }
        Value::Guid(bytes) => digits::guid(out, bytes),
        Value::Null
        | Value::Text(_)
        | Value::Bytes(_)
        | Value::LongText(_)
        | Value::LongBytes(_)
        | Value::Unreadable(_) => {}
    }
}
