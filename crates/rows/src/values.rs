//! Converts the bytes of a column to a value (docs/format/types-and-keys.md#stored-values).

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
use crate::counts::RangeCounts;
use crate::{Text, Unreadable, Value};

/// Converted values, kept until their rows are complete.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) arena: Vec<u8>,
    pub(crate) later: Vec<Piece>,
    /// The number of texts in which a character was replaced.
    pub(crate) altered: u64,
    /// The number of values that are delivered as their stored bytes.
    pub(crate) as_stored: u64,
    /// The number of values that cannot be read.
    pub(crate) unreadable: u64,
}

/// A converted value: its position among the values of the rows, and its place in the arena.
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
        // The memory for a single long row must not be kept for all later rows.
        if self.arena.capacity() > KEPT_BYTES {
            self.arena = Vec::new();
        }
        self.arena.clear();
        self.later.clear();
        (self.altered, self.as_stored, self.unreadable) = (0, 0, 0);
    }

    /// Returns a value that cannot be read, and counts it.
    pub(crate) fn unreadable(&mut self, why: Unreadable) -> Value<'static> {
        self.unreadable += 1;
        Value::Unreadable(why)
    }

    /// Adds these counts to `counts`.
    pub(crate) fn count(&self, counts: &mut RangeCounts) {
        counts.unreadable_values += self.unreadable;
        counts.altered_texts += self.altered;
        counts.values_as_stored += self.as_stored;
    }

    /// Writes the converted values to their positions in the row.
    pub(crate) fn settle<'w>(&'w self, row: &mut [Value<'w>]) {
        for piece in &self.later {
            let bytes = self.arena.get(piece.range.clone()).unwrap_or_default();
            let Some(place) = row.get_mut(piece.column) else { continue };
            *place = match piece.is_text {
                false => Value::Bytes(bytes),
                true => Value::Text(Text::of_utf8(bytes)),
            };
        }
    }

    /// Converts bytes whose buffer is reused before the row is complete. Text and bytes are copied to the arena.
    pub(crate) fn copied(&mut self, kind: Kind, bytes: &[u8], column: usize) -> Value<'static> {
        let (copy, is_text) = match value(kind, bytes, column, self) {
            Value::Text(text) => (text.as_bytes(), true),
            Value::Bytes(bytes) => (bytes, false),
            Value::LongText(_) | Value::LongBytes(_) => return self.unreadable(Unreadable::Impossible),
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

    /// Runs `convert`, which appends text to the arena and returns whether it replaced a character.
    fn convert(
        &mut self,
        column: usize,
        convert: impl FnOnce(&mut Vec<u8>) -> Result<bool, Unreadable>,
    ) -> Value<'static> {
        let start = self.arena.len();
        match convert(&mut self.arena) {
            Ok(altered) => {
                self.altered += u64::from(altered);
                self.later.push(Piece::text(column, start..self.arena.len()));
                Value::Null
            }
            Err(why) => {
                self.arena.truncate(start);
                self.unreadable(why)
            }
        }
    }
}

/// The most memory of the arena, in bytes, that is kept for the next row.
const KEPT_BYTES: usize = 4 << 20;

/// Writes the value of these bytes to `place`, its position in the row. Returning the value and moving it would take
/// twice as long. If the value must be converted, the result goes to `work`, and `place` is filled when the row is
/// complete.
#[inline(always)]
pub(crate) fn put<'p>(kind: &Kind, bytes: &'p [u8], column: usize, work: &mut Work, place: &mut Value<'p>) {
    match *kind {
        Kind::Bit(bit) => set(place, work, bytes.first().map(|byte| Value::Bit(byte >> bit.min(7) & 1 != 0))),
        Kind::TinyInt => set(place, work, number::exact(bytes).map(|[byte]| Value::Integer(byte.into()))),
        Kind::SmallInt => set(place, work, number::exact(bytes).map(|b| Value::Integer(i16::from_le_bytes(b).into()))),
        Kind::Int => set(place, work, number::exact(bytes).map(|b| Value::Integer(i32::from_le_bytes(b).into()))),
        Kind::BigInt => set(place, work, number::exact(bytes).map(|b| Value::Integer(i64::from_le_bytes(b)))),
        Kind::Money => set(place, work, number::exact(bytes).map(|b| number::money(i64::from_le_bytes(b)))),
        Kind::SmallMoney => set(place, work, number::exact(bytes).map(|b| number::money(i32::from_le_bytes(b).into()))),
        Kind::Real => set(place, work, number::exact(bytes).map(|b| Value::Real(f32::from_le_bytes(b)))),
        Kind::Float => set(place, work, number::exact(bytes).map(|b| Value::Float(f64::from_le_bytes(b)))),
        Kind::DateTime => set(place, work, moment::datetime(bytes).map(Value::DateTime)),
        Kind::SmallDateTime => set(place, work, moment::small_datetime(bytes).map(Value::DateTime)),
        Kind::Date => set(place, work, moment::date(bytes).map(Value::Date)),
        Kind::Time(digits) => set(place, work, moment::time(bytes, digits).map(Value::Time)),
        Kind::DateTime2(digits) => set(place, work, moment::datetime2(bytes, digits).map(Value::DateTime)),
        Kind::DateTimeOffset(digits) => {
            let parts = moment::datetime_offset(bytes, digits);
            set(place, work, parts.map(|(utc, offset_minutes)| Value::DateTimeOffset { utc, offset_minutes }));
        }
        Kind::Decimal(info) => {
            let scale = info.scale;
            set(place, work, number::decimal(bytes, info).map(|unscaled| Value::Decimal { unscaled, scale }));
        }
        Kind::Guid => set(place, work, number::exact(bytes).map(Value::Guid)),
        Kind::Bytes => *place = Value::Bytes(bytes),
        Kind::Ansi(_) if bytes.is_ascii() => *place = Value::Text(Text::of_utf8(bytes)),
        Kind::Utf16 => {
            let start = work.arena.len();
            match text::utf16(bytes, &mut work.arena) {
                Ok(altered) => {
                    work.altered += u64::from(altered);
                    work.later.push(Piece::text(column, start..work.arena.len()));
                }
                Err(why) => *place = work.unreadable(why),
            }
        }
        kind => *place = rare(kind, bytes, column, work),
    }
}

/// Writes the values of a column to the positions `first`, `first + width` and so on. Where a row has no value, NULL
/// remains. For the common kinds, the kind is matched once for all rows.
#[inline(always)]
pub(crate) fn put_all<'p>(
    kind: Kind,
    fields: impl Iterator<Item = Option<&'p [u8]>>,
    (first, width): (usize, usize),
    rows: &mut [Value<'p>],
    work: &mut Work,
) {
    // The compiler specializes each call for one kind.
    match kind {
        Kind::Bit(bit) => put_each(Kind::Bit(bit), fields, (first, width), rows, work),
        Kind::TinyInt => put_each(Kind::TinyInt, fields, (first, width), rows, work),
        Kind::SmallInt => put_each(Kind::SmallInt, fields, (first, width), rows, work),
        Kind::Int => put_each(Kind::Int, fields, (first, width), rows, work),
        Kind::BigInt => put_each(Kind::BigInt, fields, (first, width), rows, work),
        Kind::Money => put_each(Kind::Money, fields, (first, width), rows, work),
        Kind::DateTime => put_each(Kind::DateTime, fields, (first, width), rows, work),
        Kind::Decimal(info) => put_each(Kind::Decimal(info), fields, (first, width), rows, work),
        Kind::Ansi(page) => put_each(Kind::Ansi(page), fields, (first, width), rows, work),
        Kind::Utf16 => put_each(Kind::Utf16, fields, (first, width), rows, work),
        kind => put_each(kind, fields, (first, width), rows, work),
    }
}

#[inline(always)]
fn put_each<'p>(
    kind: Kind,
    fields: impl Iterator<Item = Option<&'p [u8]>>,
    (first, width): (usize, usize),
    rows: &mut [Value<'p>],
    work: &mut Work,
) {
    let mut at = first;
    for field in fields {
        if let (Some(bytes), Some(place)) = (field, rows.get_mut(at)) {
            put(&kind, bytes, at, work, place);
        }
        at += width;
    }
}

#[inline(always)]
fn set<'p>(place: &mut Value<'p>, work: &mut Work, value: Option<Value<'p>>) {
    match value {
        Some(value) => *place = value,
        None => *place = work.unreadable(Unreadable::Impossible),
    }
}

/// Like `put`, but returns the value.
#[inline(never)]
pub(crate) fn value<'p>(kind: Kind, bytes: &'p [u8], column: usize, work: &mut Work) -> Value<'p> {
    let mut value = Value::Null;
    put(&kind, bytes, column, work, &mut value);
    value
}

/// The value of a type that is rare, or whose conversion is slow anyway.
#[inline(never)]
fn rare<'p>(kind: Kind, bytes: &'p [u8], column: usize, work: &mut Work) -> Value<'p> {
    match kind {
        Kind::Vardecimal(info) => match number::vardecimal(bytes, info) {
            Ok(unscaled) => Value::Decimal { unscaled, scale: info.scale },
            Err(why) => work.unreadable(why),
        },
        Kind::Ansi(page) => {
            // The bytes of an encrypted text belong to no code page (docs/format/other-features.md#always-encrypted).
            if format::domain::may_be_encrypted(bytes) {
                return work.unreadable(Unreadable::Undocumented);
            }
            work.convert(column, |arena| page.decode(bytes, arena))
        }
        Kind::AsStored => {
            work.as_stored += 1;
            Value::Bytes(bytes)
        }
        Kind::HierarchyId => work.convert(column, |arena| hierarchy::path(bytes, arena).map(|()| false)),
        Kind::Xml => work.convert(column, |arena| xml::text(bytes, arena)),
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
            Ok((kind, inside)) => value(kind, inside, column, work),
            Err(why) => work.unreadable(why),
        },
        Kind::Filestream | Kind::Unknown => work.unreadable(Unreadable::Undocumented),
        Kind::NotStored => Value::Unreadable(Unreadable::NotStored),
        _ => work.unreadable(Unreadable::Impossible),
    }
}
