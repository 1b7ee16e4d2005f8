//! The values of a row group, column by column.

use std::io;

use format::RecordId;
use parquet::errors::Result;
use rows::{DateTime, LongValue, Value};

use super::chunk::{Chunk, ChunkEncoder};
use super::plain::{LENGTH_BYTES, Plain, Presence};
use super::schema::{FileColumn, Part};
use crate::out::{Gap, GapReason, is_whole};
use crate::{digits, plain};

/// 1970-01-01 as days since 0001-01-01.
const EPOCH_DAY: i64 = 719_162;
const MICROS_PER_DAY: i64 = 86_400_000_000;
/// The maximum number of rows in a row group.
const GROUP_ROWS: usize = 1 << 20;
/// The columns of a row group that is being filled with rows.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    rows: usize,
    bytes: usize,
    /// The number of bytes that were added with the most recent row.
    of_row: usize,
    most_bytes: usize,
    gaps: Vec<Gap>,
    scratch: Vec<u8>,
    encoder: ChunkEncoder,
}

struct Lane {
    field: usize,
    source: usize,
    part: Part,
    values: Plain,
    presence: Presence,
}

/// A row group as the file stores it.
pub(super) struct Encoded {
    pub(super) columns: Vec<Chunk>,
    pub(super) rows: u64,
}

impl Lanes {
    /// Creates columns without rows. The values of a row group have at most `most_bytes` bytes; the same limit applies
    /// to the values of a single row.
    pub(super) fn new(columns: &[FileColumn], most_bytes: usize) -> Self {
        let lane = |column: &FileColumn| Lane {
            field: column.field,
            source: column.source,
            part: column.part,
            values: Plain::new(column.part),
            presence: Presence::default(),
        };
        let lanes = columns.iter().map(lane).collect();
        let encoder = ChunkEncoder::new();
        Self { lanes, rows: 0, bytes: 0, of_row: 0, most_bytes, gaps: Vec::new(), scratch: Vec::new(), encoder }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the row group is full. It is full if it has the maximum number of rows, or if it has no space for
    /// another row of the same length as the last row.
    pub(super) fn is_full(&self) -> bool {
        self.bytes + self.of_row > self.most_bytes || self.rows >= GROUP_ROWS
    }

    /// Adds a row.
    pub(super) fn row(&mut self, place: RecordId, values: &[Value<'_>]) -> io::Result<()> {
        let Self { lanes, rows, bytes, of_row, most_bytes, gaps, scratch, .. } = self;
        let mut left = *most_bytes;
        let before = *bytes;
        for lane in lanes {
            let added = match values.get(lane.source).unwrap_or(&Value::Null) {
                Value::Null => None,
                value => Some(lane.add(value, left, scratch)?),
            };
            if let Some(Ok(added)) = added {
                *bytes += added;
                left = left.saturating_sub(added);
                continue;
            }
            lane.presence.null(*rows);
            *bytes += 1;
            // A value may occupy several columns; a gap is recorded only for the first of them.
            if let Some(Err(why)) = added
                && !matches!(lane.part, Part::Rest | Part::Offset)
            {
                gaps.push(Gap { row: *rows as u64, place, field: lane.field, why });
            }
        }
        *rows += 1;
        *of_row = *bytes - before;
        Ok(())
    }

    /// Encodes the columns in the form that the file stores, and removes the rows.
    pub(super) fn encode(&mut self, columns: &[FileColumn]) -> Result<(Encoded, Vec<Gap>)> {
        let mut encoded = Vec::with_capacity(self.lanes.len());
        for (lane, column) in self.lanes.iter_mut().zip(columns) {
            lane.presence.end(self.rows);
            encoded.push(self.encoder.encode(column, &lane.values, &lane.presence)?);
            lane.values.clear();
            lane.presence.clear();
        }
        let rows = std::mem::take(&mut self.rows) as u64;
        self.bytes = 0;
        Ok((Encoded { columns: encoded, rows }, std::mem::take(&mut self.gaps)))
    }
}

impl Lane {
    /// Adds a value that is not NULL, if its length is at most `left` bytes. Returns the length, or the reason why the
    /// value was not added.
    fn add(
        &mut self,
        value: &Value<'_>,
        left: usize,
        scratch: &mut Vec<u8>,
    ) -> io::Result<std::result::Result<usize, GapReason>> {
        let (part, to) = (self.part, &mut self.values.bytes);
        let added = match (value, part) {
            (Value::Text(text), Part::Text) => return Ok(add_bytes(to, text.as_bytes(), left)),
            (Value::Integer(n), Part::Int32) => i32::try_from(*n).ok().map(|n| push(to, n.to_le_bytes())),
            (Value::Integer(n), Part::Int64) => Some(push(to, n.to_le_bytes())),
            (Value::Unreadable(why), _) => return Ok(Err(GapReason::Unreadable(*why))),
            (Value::LongText(long) | Value::LongBytes(long), Part::Text | Part::Bytes) => {
                return add_long(to, *long, left);
            }
            (Value::Bytes(bytes), Part::Bytes) => return Ok(add_bytes(to, bytes, left)),
            (Value::Text(text), Part::Bytes) => return Ok(add_bytes(to, text.as_bytes(), left)),
            (value, Part::Text | Part::Bytes) => {
                scratch.clear();
                match value {
                    Value::Bytes(bytes) => digits::hex_literal(scratch, bytes),
                    other => plain::write(scratch, other, b'T'),
                }
                return Ok(add_bytes(to, scratch, left));
            }
            (Value::Decimal { unscaled, .. }, Part::Int64) => {
                i64::try_from(*unscaled).ok().map(|n| push(to, n.to_le_bytes()))
            }
            (Value::Decimal { unscaled, .. }, Part::Int32) => {
                i32::try_from(*unscaled).ok().map(|n| push(to, n.to_le_bytes()))
            }
            (Value::DateTime(moment), Part::Moment) => Some(push(to, micros(*moment).to_le_bytes())),
            (value, Part::Int64 | Part::TimeMicros | Part::Moment) => {
                number(value, part).map(|n| push(to, n.to_le_bytes()))
            }
            (value, Part::Int32 | Part::Date | Part::Rest | Part::Offset) => {
                number(value, part).and_then(|n| i32::try_from(n).ok()).map(|n| push(to, n.to_le_bytes()))
            }
            (Value::Decimal { unscaled, .. }, Part::Fixed(length)) => decimal(to, length, *unscaled),
            (Value::Guid(bytes), Part::Guid) => Some(push(to, digits::guid_bytes(bytes))),
            (Value::Bit(bit), Part::Bool) => Some(push(to, [u8::from(*bit)])),
            (Value::Real(n), Part::Real) => Some(push(to, n.to_le_bytes())),
            (Value::Float(n), Part::Float) => Some(push(to, n.to_le_bytes())),
            (_, Part::Fixed(_) | Part::Guid | Part::Bool | Part::Real | Part::Float) => None,
        };
        Ok(added.ok_or(GapReason::NoForm))
    }
}

/// Adds bytes, if there are at most `left` of them.
fn add_bytes(to: &mut Vec<u8>, bytes: &[u8], left: usize) -> std::result::Result<usize, GapReason> {
    let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= left).ok_or(GapReason::TooLong)?;
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(bytes);
    Ok(LENGTH_BYTES + bytes.len())
}

fn push<const N: usize>(to: &mut Vec<u8>, value: [u8; N]) -> usize {
    to.extend_from_slice(&value);
    N
}

/// Converts a date, a time or an offset to the integer that its column stores.
fn number(value: &Value<'_>, part: Part) -> Option<i64> {
    match (value, part) {
        (Value::Date(day), Part::Date) => Some(i64::from(*day) - EPOCH_DAY),
        (Value::Time(time), Part::TimeMicros) => Some((time.ticks / 10) as i64),
        (Value::Time(time), Part::Rest) => Some((time.ticks % 10) as i64),
        (Value::DateTime(moment), part) => part_of_moment(*moment, part),
        (Value::DateTimeOffset { offset_minutes, .. }, Part::Offset) => Some(i64::from(*offset_minutes)),
        (Value::DateTimeOffset { utc, .. }, part) => part_of_moment(*utc, part),
        _ => None,
    }
}

fn part_of_moment(moment: DateTime, part: Part) -> Option<i64> {
    match part {
        Part::Moment => Some(micros(moment)),
        Part::Rest => Some((moment.time.ticks % 10) as i64),
        _ => None,
    }
}

/// Microseconds since 1970-01-01.
fn micros(moment: DateTime) -> i64 {
    (i64::from(moment.day) - EPOCH_DAY) * MICROS_PER_DAY + (moment.time.ticks / 10) as i64
}

/// Appends a decimal as a big-endian number of `length` bytes. Returns `None` if the number is too large.
fn decimal(to: &mut Vec<u8>, length: usize, unscaled: i128) -> Option<usize> {
    let bytes = unscaled.to_be_bytes();
    let (sign, digits) = bytes.split_at_checked(bytes.len().checked_sub(length)?)?;
    // The upper bytes that are cut off must only repeat the sign.
    let is_negative = digits.first().is_some_and(|byte| byte & 0x80 != 0);
    let fill = if is_negative { 0xFF } else { 0 };
    if sign.iter().any(|byte| *byte != fill) {
        return None;
    }
    to.extend_from_slice(digits);
    Some(length)
}

fn add_long(
    bytes: &mut Vec<u8>,
    long: LongValue<'_>,
    left: usize,
) -> io::Result<std::result::Result<usize, GapReason>> {
    let before = bytes.len();
    bytes.extend_from_slice(&[0; LENGTH_BYTES]);
    let start = bytes.len();
    // Two stored bytes become at least one byte of UTF-8. So the text is too long if half the number of its stored
    // bytes is greater than `left`.
    let mut is_short = long.stored_bytes / 2 <= left as u64;
    let read = long.pieces(&mut |piece| {
        is_short &= bytes.len() - start + piece.len() <= left;
        if is_short {
            bytes.extend_from_slice(piece);
        }
        // Returning an error stops the reading of a value that is too long.
        if is_short { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    });
    let length = u32::try_from(bytes.len() - start).ok().filter(|_| is_short);
    let Some(length) = length else {
        bytes.truncate(before);
        bytes.shrink_to_fit();
        // If a value is both too long and unreadable, it is reported as unreadable.
        let why = is_whole(long)?.err().map_or(GapReason::TooLong, GapReason::Unreadable);
        return Ok(Err(why));
    };
    if let Err(why) = read? {
        bytes.truncate(before);
        return Ok(Err(GapReason::Unreadable(why)));
    }
    if let Some(place) = bytes.get_mut(before..start) {
        place.copy_from_slice(&length.to_le_bytes());
    }
    Ok(Ok(bytes.len() - before))
}
