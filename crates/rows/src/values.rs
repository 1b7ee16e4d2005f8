//! Bytes of a column as a value (docs/format/types-and-keys.md#stored-values).

pub(crate) mod code_page;
mod hierarchy;
pub(crate) mod kind;
mod moment;
mod number;
mod shape;
pub(crate) mod text;
mod variant;
mod xml;

use std::ops::Range;

use self::kind::Kind;
use crate::{Unreadable, Value};

/// Values of a row that had to be converted, until the row is whole.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) arena: Vec<u8>,
    pub(crate) later: Vec<Piece>,
    /// Texts in which something was replaced.
    pub(crate) altered: u64,
    /// Values that are handed out as the bytes that are stored.
    pub(crate) as_stored: u64,
}

/// A converted value: its column and its place in the arena.
pub(crate) struct Piece {
    column: usize,
    range: Range<usize>,
    is_text: bool,
}

impl Piece {
    pub(crate) fn text(column: usize, range: Range<usize>) -> Self {
        Self { column, range, is_text: true }
    }

    fn bytes(column: usize, range: Range<usize>) -> Self {
        Self { column, range, is_text: false }
    }
}

impl Work {
    pub(crate) fn clear(&mut self) {
        // One long row must not keep its memory for all others.
        if self.arena.capacity() > KEPT_BYTES {
            self.arena = Vec::new();
        }
        self.arena.clear();
        self.later.clear();
        (self.altered, self.as_stored) = (0, 0);
    }

    /// Puts the converted values into their places.
    pub(crate) fn settle<'w>(&'w self, row: &mut [Value<'w>]) {
        for piece in &self.later {
            let bytes = self.arena.get(piece.range.clone()).unwrap_or_default();
            let Some(place) = row.get_mut(piece.column) else { continue };
            *place = match piece.is_text {
                false => Value::Bytes(bytes),
                true => std::str::from_utf8(bytes).map_or(Value::Unreadable(Unreadable::Impossible), Value::Text),
            };
        }
    }

    /// The value of bytes that are gone when the row is whole.
    pub(crate) fn copied(&mut self, kind: Kind, bytes: &[u8], column: usize) -> Value<'static> {
        let (copy, is_text) = match scalar(kind, bytes, column, self) {
            Value::Text(text) => (text.as_bytes(), true),
            Value::Bytes(bytes) => (bytes, false),
            Value::LongText(_) | Value::LongBytes(_) => return Value::Unreadable(Unreadable::Impossible),
            Value::Null => return Value::Null,
            Value::Bit(bit) => return Value::Bit(bit),
            Value::Integer(value) => return Value::Integer(value),
            Value::Decimal { unscaled, scale } => return Value::Decimal { unscaled, scale },
            Value::Real(value) => return Value::Real(value),
            Value::Float(value) => return Value::Float(value),
            Value::Date(day) => return Value::Date(day),
            Value::Time(time) => return Value::Time(time),
            Value::DateTime(moment) => return Value::DateTime(moment),
            Value::DateTimeOffset { utc, offset_minutes } => return Value::DateTimeOffset { utc, offset_minutes },
            Value::Guid(guid) => return Value::Guid(guid),
            Value::Unreadable(why) => return Value::Unreadable(why),
        };
        let start = self.arena.len();
        self.arena.extend_from_slice(copy);
        let range = start..self.arena.len();
        self.later.push(Piece { column, range, is_text });
        Value::Null
    }

    /// Runs a conversion to text that appends to the arena.
    fn convert(
        &mut self,
        column: usize,
        is_text: bool,
        convert: impl FnOnce(&mut Vec<u8>) -> Result<(), Unreadable>,
    ) -> Value<'static> {
        let start = self.arena.len();
        match convert(&mut self.arena) {
            Ok(()) => {
                let range = start..self.arena.len();
                self.later.push(if is_text { Piece::text(column, range) } else { Piece::bytes(column, range) });
                Value::Null
            }
            Err(why) => {
                self.arena.truncate(start);
                Value::Unreadable(why)
            }
        }
    }
}

/// Memory that is kept from row to row.
const KEPT_BYTES: usize = 4 << 20;

/// The value of a column in these bytes. What must be converted goes to `work`, and its place in the row is filled later.
#[inline]
pub(crate) fn scalar<'p>(kind: Kind, bytes: &'p [u8], column: usize, work: &mut Work) -> Value<'p> {
    const IMPOSSIBLE: Value<'static> = Value::Unreadable(Unreadable::Impossible);
    match kind {
        Kind::Bit(bit) => bytes.first().map_or(IMPOSSIBLE, |byte| Value::Bit(byte >> bit.min(7) & 1 != 0)),
        Kind::TinyInt => match bytes {
            [byte] => Value::Integer((*byte).into()),
            _ => IMPOSSIBLE,
        },
        Kind::SmallInt => number::exact(bytes).map_or(IMPOSSIBLE, |b| Value::Integer(i16::from_le_bytes(b).into())),
        Kind::Int => number::exact(bytes).map_or(IMPOSSIBLE, |b| Value::Integer(i32::from_le_bytes(b).into())),
        Kind::BigInt => number::exact(bytes).map_or(IMPOSSIBLE, |b| Value::Integer(i64::from_le_bytes(b))),
        Kind::Money => number::exact(bytes).map_or(IMPOSSIBLE, |b| number::money(i64::from_le_bytes(b))),
        Kind::SmallMoney => number::exact(bytes).map_or(IMPOSSIBLE, |b| number::money(i32::from_le_bytes(b).into())),
        Kind::Real => number::exact(bytes).map_or(IMPOSSIBLE, |b| Value::Real(f32::from_le_bytes(b))),
        Kind::Float => number::exact(bytes).map_or(IMPOSSIBLE, |b| Value::Float(f64::from_le_bytes(b))),
        Kind::DateTime => moment::datetime(bytes).map_or(IMPOSSIBLE, Value::DateTime),
        Kind::SmallDateTime => moment::small_datetime(bytes).map_or(IMPOSSIBLE, Value::DateTime),
        Kind::Date => moment::date(bytes).map_or(IMPOSSIBLE, Value::Date),
        Kind::Time(digits) => moment::time(bytes, digits).map_or(IMPOSSIBLE, Value::Time),
        Kind::DateTime2(digits) => moment::datetime2(bytes, digits).map_or(IMPOSSIBLE, Value::DateTime),
        Kind::DateTimeOffset(digits) => {
            let parts = moment::datetime_offset(bytes, digits);
            parts.map_or(IMPOSSIBLE, |(utc, offset_minutes)| Value::DateTimeOffset { utc, offset_minutes })
        }
        Kind::Decimal(info) => number::decimal(bytes, info).unwrap_or(IMPOSSIBLE),
        Kind::Vardecimal(info) => number::vardecimal(bytes, info),
        Kind::Guid => number::exact(bytes).map_or(IMPOSSIBLE, Value::Guid),
        Kind::Utf16 => {
            let start = work.arena.len();
            match text::utf16(bytes, &mut work.arena) {
                Ok(altered) => {
                    work.altered += u64::from(altered);
                    work.later.push(Piece::text(column, start..work.arena.len()));
                    Value::Null
                }
                Err(why) => Value::Unreadable(why),
            }
        }
        Kind::Ansi(page) => {
            if bytes.is_ascii() {
                return std::str::from_utf8(bytes).map_or(IMPOSSIBLE, Value::Text);
            }
            // What a client encrypted is text of no code page (docs/format/other-features.md#always-encrypted).
            if format::domain::may_be_encrypted(bytes) {
                return Value::Unreadable(Unreadable::Undocumented);
            }
            let mut altered = false;
            let value = work.convert(column, true, |arena| {
                altered = page.decode(bytes, arena)?;
                Ok(())
            });
            work.altered += u64::from(altered);
            value
        }
        Kind::Bytes => Value::Bytes(bytes),
        Kind::AsStored => {
            work.as_stored += 1;
            Value::Bytes(bytes)
        }
        Kind::HierarchyId => work.convert(column, true, |arena| hierarchy::path(bytes, arena)),
        Kind::Xml => {
            let mut altered = false;
            let value = work.convert(column, true, |arena| {
                altered = xml::text(bytes, arena)?;
                Ok(())
            });
            work.altered += u64::from(altered);
            value
        }
        Kind::Shape { is_geography } => {
            let start = work.arena.len();
            match shape::wkb(bytes, is_geography, &mut work.arena) {
                Some(()) => {
                    work.later.push(Piece::bytes(column, start..work.arena.len()));
                    Value::Null
                }
                None => {
                    work.arena.truncate(start);
                    work.as_stored += 1;
                    Value::Bytes(bytes)
                }
            }
        }
        Kind::Variant => match variant::inside(bytes) {
            Ok((kind, value)) => scalar(kind, value, column, work),
            Err(why) => Value::Unreadable(why),
        },
        Kind::Filestream | Kind::Unknown => Value::Unreadable(Unreadable::Undocumented),
        Kind::NotStored => Value::Unreadable(Unreadable::NotStored),
    }
}
