//! Values that outlive their page.

use crate::value::{DateTime, LongValue, TimeOfDay, Unreadable, Value};

/// The most bytes that are kept of a value. A longer value is not rebuilt.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// A value that owns its bytes.
#[derive(Clone, Debug)]
pub(crate) enum Owned {
    Null,
    Bit(bool),
    Integer(i64),
    Decimal { unscaled: i128, scale: u8 },
    Real(f32),
    Float(f64),
    Date(u32),
    Time(TimeOfDay),
    DateTime(DateTime),
    DateTimeOffset { utc: DateTime, offset_minutes: i16 },
    Guid([u8; 16]),
    Text(String),
    Bytes(Vec<u8>),
    Unreadable(Unreadable),
}

impl Owned {
    /// A copy of a value.
    pub(crate) fn of(value: &Value<'_>) -> Self {
        match *value {
            Value::Null => Self::Null,
            Value::Bit(bit) => Self::Bit(bit),
            Value::Integer(number) => Self::Integer(number),
            Value::Decimal { unscaled, scale } => Self::Decimal { unscaled, scale },
            Value::Real(number) => Self::Real(number),
            Value::Float(number) => Self::Float(number),
            Value::Date(day) => Self::Date(day),
            Value::Time(time) => Self::Time(time),
            Value::DateTime(moment) => Self::DateTime(moment),
            Value::DateTimeOffset { utc, offset_minutes } => Self::DateTimeOffset { utc, offset_minutes },
            Value::Guid(bytes) => Self::Guid(bytes),
            Value::Text(text) => Self::Text(text.as_str().to_owned()),
            Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Value::LongText(long) => match whole(&long).map(String::from_utf8) {
                Ok(Ok(text)) => Self::Text(text),
                Ok(Err(_)) => Self::Unreadable(Unreadable::Impossible),
                Err(why) => Self::Unreadable(why),
            },
            Value::LongBytes(long) => whole(&long).map_or_else(Self::Unreadable, Self::Bytes),
            Value::Unreadable(why) => Self::Unreadable(why),
        }
    }

    /// The value, borrowed.
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bit(bit) => Value::Bit(*bit),
            Self::Integer(number) => Value::Integer(*number),
            Self::Decimal { unscaled, scale } => Value::Decimal { unscaled: *unscaled, scale: *scale },
            Self::Real(number) => Value::Real(*number),
            Self::Float(number) => Value::Float(*number),
            Self::Date(day) => Value::Date(*day),
            Self::Time(time) => Value::Time(*time),
            Self::DateTime(moment) => Value::DateTime(*moment),
            Self::DateTimeOffset { utc, offset_minutes } => {
                Value::DateTimeOffset { utc: *utc, offset_minutes: *offset_minutes }
            }
            Self::Guid(bytes) => Value::Guid(*bytes),
            Self::Text(text) => Value::Text(text.as_str().into()),
            Self::Bytes(bytes) => Value::Bytes(bytes),
            Self::Unreadable(why) => Value::Unreadable(*why),
        }
    }

    /// The number of bytes that the value has on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.capacity(),
            Self::Bytes(bytes) => bytes.capacity(),
            _ => 0,
        }
    }
}

/// Reads all pieces of a long value into one vector.
fn whole(long: &LongValue<'_>) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::new();
    let read = long.pieces(&mut |piece| {
        if bytes.len() + piece.len() > MOST_BYTES {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        bytes.extend_from_slice(piece);
        Ok(())
    });
    match read {
        Ok(Ok(())) => Ok(bytes),
        Ok(Err(why)) => Err(why),
        Err(_) => Err(Unreadable::NotInAnyIndex),
    }
}
