//! The values of a row group, column by column.

use std::io;

use bytes::Bytes;
use format::RecordId;
use parquet::basic::Compression;
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use rows::{DateTime, LongValue, Value};

use super::schema::{FileColumn, Part};
use crate::out::{Gap, GapReason, is_whole};
use crate::{digits, plain};

/// 1970-01-01 as days since 0001-01-01.
const EPOCH_DAY: i64 = 719_162;
const MICROS_PER_DAY: i64 = 86_400_000_000;
/// Bytes of a column that say whether it is worth compressing.
const SAMPLE_BYTES: usize = 16 << 10;
/// Rows at which a row group ends.
const GROUP_ROWS: usize = 1 << 20;
/// Values that are handed to the library at once.
const BATCH: usize = 8192;
/// Bytes of values at which there are enough of them.
const BATCH_BYTES: usize = 256 << 10;

/// The columns of a row group while rows are added.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    rows: usize,
    bytes: usize,
    /// Bytes of the last row.
    of_row: usize,
    most_bytes: usize,
    gaps: Vec<Gap>,
    scratch: Vec<u8>,
    uncompressed: WriterPropertiesPtr,
}

struct Lane {
    field: usize,
    source: usize,
    part: Part,
    data: Data,
    /// 1 for a value, 0 for NULL.
    levels: Vec<i16>,
}

enum Data {
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Real(Vec<f32>),
    Float(Vec<f64>),
    /// All values, and where each ends.
    Bytes(Vec<u8>, Vec<usize>),
    /// All values, and how long each is.
    Fixed(Vec<u8>, usize),
}

/// A row group as it stands in the file.
pub(super) struct Encoded {
    pub(super) columns: Vec<(Bytes, ColumnCloseResult)>,
    pub(super) rows: u64,
}

impl Lanes {
    /// Lanes without rows. A row group, and a single row, has at most `most_bytes` bytes of values.
    pub(super) fn new(columns: &[FileColumn], most_bytes: usize) -> Self {
        let lane = |column: &FileColumn| Lane {
            field: column.field,
            source: column.source,
            part: column.part,
            data: empty(column.part),
            levels: Vec::new(),
        };
        let lanes = columns.iter().map(lane).collect();
        let uncompressed = super::properties(Compression::UNCOMPRESSED);
        Self { lanes, rows: 0, bytes: 0, of_row: 0, most_bytes, gaps: Vec::new(), scratch: Vec::new(), uncompressed }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether it is enough for a row group: another row like the last one would have no room.
    pub(super) fn is_full(&self) -> bool {
        self.bytes + self.of_row > self.most_bytes || self.rows >= GROUP_ROWS
    }

    /// Adds a row.
    pub(super) fn row(&mut self, place: RecordId, values: &[Value<'_>]) -> io::Result<()> {
        let Self { lanes, rows, bytes, of_row, most_bytes, gaps, scratch, .. } = self;
        let mut left = *most_bytes;
        let before = *bytes;
        for lane in lanes {
            let value = values.get(lane.source).unwrap_or(&Value::Null);
            let added = match value {
                Value::Null => Ok(0),
                value => lane.add(value, left, scratch)?,
            };
            let is_value = added.is_ok() && !matches!(value, Value::Null);
            lane.levels.push(i16::from(is_value));
            match added {
                Ok(added) => {
                    *bytes += added + size_of::<i16>();
                    left = left.saturating_sub(added);
                }
                // What a second column has of the value is missing for the same reason.
                Err(why) => {
                    *bytes += size_of::<i16>();
                    if !matches!(lane.part, Part::Rest | Part::Offset) {
                        gaps.push(Gap { row: *rows as u64, place, field: lane.field, why });
                    }
                }
            }
        }
        *rows += 1;
        *of_row = *bytes - before;
        Ok(())
    }

    /// The columns as they stand in the file; there are no rows then.
    pub(super) fn encode(
        &mut self,
        columns: &[FileColumn],
        properties: &WriterPropertiesPtr,
    ) -> Result<(Encoded, Vec<Gap>)> {
        let mut encoded = Vec::with_capacity(self.lanes.len());
        for (lane, column) in self.lanes.iter_mut().zip(columns) {
            let mut out = TrackedWrite::new(Vec::new());
            let pages = Box::new(SerializedPageWriter::new(&mut out));
            let properties = if is_compressible(&lane.data) { properties } else { &self.uncompressed };
            let mut writer = get_column_writer(column.descriptor.clone(), properties.clone(), pages);
            let data = std::mem::replace(&mut lane.data, empty(lane.part));
            lane.data = write(&mut writer, data, &lane.levels)?;
            lane.levels.clear();
            let closed = writer.close()?;
            encoded.push((Bytes::from(out.into_inner()?), closed));
        }
        let rows = std::mem::take(&mut self.rows) as u64;
        self.bytes = 0;
        Ok((Encoded { columns: encoded, rows }, std::mem::take(&mut self.gaps)))
    }
}

/// Whether Snappy takes a tenth off the first values of a column at least. Where it does not, as with numbers that have all their
/// digits, it costs more time than everything else that is done for the file.
fn is_compressible(data: &Data) -> bool {
    fn first<const N: usize>(values: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
        values.take(SAMPLE_BYTES / N).flatten().collect()
    }
    let sample = match data {
        Data::Bool(_) => return true,
        Data::Int32(values) => first(values.iter().map(|n| n.to_le_bytes())),
        Data::Int64(values) => first(values.iter().map(|n| n.to_le_bytes())),
        Data::Real(values) => first(values.iter().map(|n| n.to_le_bytes())),
        Data::Float(values) => first(values.iter().map(|n| n.to_le_bytes())),
        Data::Bytes(bytes, _) | Data::Fixed(bytes, _) => bytes.get(..SAMPLE_BYTES).unwrap_or(bytes).to_vec(),
    };
    let compressed = snap::raw::Encoder::new().compress_vec(&sample);
    compressed.map_or(true, |compressed| compressed.len() * 10 <= sample.len() * 9)
}

fn empty(part: Part) -> Data {
    match part {
        Part::Bool => Data::Bool(Vec::new()),
        Part::Int32 | Part::Date | Part::Rest | Part::Offset => Data::Int32(Vec::new()),
        Part::Int64 | Part::TimeMicros | Part::Moment => Data::Int64(Vec::new()),
        Part::Real => Data::Real(Vec::new()),
        Part::Float => Data::Float(Vec::new()),
        Part::Fixed(bytes) => Data::Fixed(Vec::new(), bytes),
        Part::Guid => Data::Fixed(Vec::new(), 16),
        Part::Text | Part::Bytes => Data::Bytes(Vec::new(), Vec::new()),
    }
}

impl Lane {
    /// Adds a value that is not NULL, if it has at most `left` bytes; returns how many it has, or why it is not added.
    fn add(
        &mut self,
        value: &Value<'_>,
        left: usize,
        scratch: &mut Vec<u8>,
    ) -> io::Result<std::result::Result<usize, GapReason>> {
        let part = self.part;
        let added = match (value, &mut self.data) {
            (Value::Text(text), Data::Bytes(to, ends)) => return Ok(add_bytes(to, ends, text.as_bytes(), left)),
            (Value::Integer(n), Data::Int32(to)) if part == Part::Int32 => i32::try_from(*n).ok().map(|n| push(to, n)),
            (Value::Integer(n), Data::Int64(to)) if part == Part::Int64 => Some(push(to, *n)),
            (Value::Unreadable(why), _) => return Ok(Err(GapReason::Unreadable(*why))),
            (Value::LongText(long) | Value::LongBytes(long), Data::Bytes(to, ends)) => {
                return add_long(to, ends, *long, left);
            }
            (Value::Bytes(bytes), Data::Bytes(to, ends)) if part == Part::Bytes => {
                return Ok(add_bytes(to, ends, bytes, left));
            }
            (value, Data::Bytes(to, ends)) => {
                scratch.clear();
                match value {
                    Value::Bytes(bytes) => digits::hex_literal(scratch, bytes),
                    other => plain::write(scratch, other, b'T'),
                }
                return Ok(add_bytes(to, ends, scratch, left));
            }
            (value, Data::Int32(to)) => number(value, part).and_then(|n| i32::try_from(n).ok()).map(|n| push(to, n)),
            (value, Data::Int64(to)) => number(value, part).map(|n| push(to, n)),
            (value, Data::Fixed(to, length)) => fixed(to, *length, value),
            (Value::Bit(bit), Data::Bool(to)) => Some(push(to, *bit)),
            (Value::Real(n), Data::Real(to)) => Some(push(to, *n)),
            (Value::Float(n), Data::Float(to)) => Some(push(to, *n)),
            (_, Data::Bool(_) | Data::Real(_) | Data::Float(_)) => None,
        };
        Ok(added.ok_or(GapReason::NoForm))
    }
}

/// Adds bytes, if there are at most `left`.
fn add_bytes(
    to: &mut Vec<u8>,
    ends: &mut Vec<usize>,
    bytes: &[u8],
    left: usize,
) -> std::result::Result<usize, GapReason> {
    if bytes.len() > left {
        return Err(GapReason::TooLong);
    }
    to.extend_from_slice(bytes);
    ends.push(to.len());
    Ok(bytes.len() + size_of::<usize>())
}

fn push<T>(to: &mut Vec<T>, value: T) -> usize {
    to.push(value);
    size_of::<T>()
}

/// The value as the integer that the column has of it.
fn number(value: &Value<'_>, part: Part) -> Option<i64> {
    match (value, part) {
        (Value::Integer(n), Part::Int32 | Part::Int64) => Some(*n),
        (Value::Decimal { unscaled, .. }, Part::Int32 | Part::Int64) => i64::try_from(*unscaled).ok(),
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
        Part::Moment => Some((i64::from(moment.day) - EPOCH_DAY) * MICROS_PER_DAY + (moment.time.ticks / 10) as i64),
        Part::Rest => Some((moment.time.ticks % 10) as i64),
        _ => None,
    }
}

/// A decimal as a big-endian number of this many bytes, a uniqueidentifier in the order of its text.
fn fixed(to: &mut Vec<u8>, length: usize, value: &Value<'_>) -> Option<usize> {
    match value {
        Value::Guid(bytes) => to.extend_from_slice(&digits::guid_bytes(bytes)),
        Value::Decimal { unscaled, .. } => {
            let bytes = unscaled.to_be_bytes();
            let (sign, digits) = bytes.split_at_checked(bytes.len().checked_sub(length)?)?;
            // What is cut off must say no more than the sign.
            let is_negative = digits.first().is_some_and(|byte| byte & 0x80 != 0);
            let fill = if is_negative { 0xFF } else { 0 };
            if sign.iter().any(|byte| *byte != fill) {
                return None;
            }
            to.extend_from_slice(digits);
        }
        _ => return None,
    }
    Some(length)
}

fn add_long(
    bytes: &mut Vec<u8>,
    ends: &mut Vec<usize>,
    long: LongValue<'_>,
    left: usize,
) -> io::Result<std::result::Result<usize, GapReason>> {
    let start = bytes.len();
    // A character takes one byte at least, and two as it is stored.
    let mut is_short = long.stored_bytes / 2 <= left as u64;
    let read = long.pieces(&mut |piece| {
        is_short &= bytes.len() - start + piece.len() <= left;
        if is_short {
            bytes.extend_from_slice(piece);
        }
        // The rest need not be read.
        if is_short { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    });
    if !is_short {
        bytes.truncate(start);
        bytes.shrink_to_fit();
        // One that cannot be had is no matter of length.
        let why = is_whole(long)?.err().map_or(GapReason::TooLong, GapReason::Unreadable);
        return Ok(Err(why));
    }
    if let Err(why) = read? {
        bytes.truncate(start);
        return Ok(Err(GapReason::Unreadable(why)));
    }
    ends.push(bytes.len());
    Ok(Ok(bytes.len() - start + size_of::<usize>()))
}

/// Hands values to the library; returns the emptied column, with its room where that is possible.
fn write(writer: &mut ColumnWriter<'_>, data: Data, levels: &[i16]) -> Result<Data> {
    let levels = Some(levels);
    Ok(match (writer, data) {
        (ColumnWriter::BoolColumnWriter(writer), Data::Bool(mut values)) => {
            writer.write_batch(&values, levels, None)?;
            values.clear();
            Data::Bool(values)
        }
        (ColumnWriter::Int32ColumnWriter(writer), Data::Int32(mut values)) => {
            writer.write_batch(&values, levels, None)?;
            values.clear();
            Data::Int32(values)
        }
        (ColumnWriter::Int64ColumnWriter(writer), Data::Int64(mut values)) => {
            writer.write_batch(&values, levels, None)?;
            values.clear();
            Data::Int64(values)
        }
        (ColumnWriter::FloatColumnWriter(writer), Data::Real(mut values)) => {
            writer.write_batch(&values, levels, None)?;
            values.clear();
            Data::Real(values)
        }
        (ColumnWriter::DoubleColumnWriter(writer), Data::Float(mut values)) => {
            writer.write_batch(&values, levels, None)?;
            values.clear();
            Data::Float(values)
        }
        (ColumnWriter::ByteArrayColumnWriter(writer), Data::Bytes(bytes, mut ends)) => {
            let bytes = Bytes::from(bytes);
            let mut from = 0;
            let values = ends.iter().map(|end| ByteArray::from(bytes.slice(std::mem::replace(&mut from, *end)..*end)));
            let size = |value: &ByteArray| value.len();
            in_batches(values, size, levels, |values, levels| writer.write_batch(values, levels, None).map(|_| ()))?;
            ends.clear();
            Data::Bytes(Vec::new(), ends)
        }
        (ColumnWriter::FixedLenByteArrayColumnWriter(writer), Data::Fixed(bytes, length)) => {
            let bytes = Bytes::from(bytes);
            let value = |at: usize| FixedLenByteArray::from(ByteArray::from(bytes.slice(at..at + length)));
            let values = (0..bytes.len() / length.max(1)).map(|nth| value(nth * length));
            let size = |_: &FixedLenByteArray| length;
            in_batches(values, size, levels, |values, levels| writer.write_batch(values, levels, None).map(|_| ()))?;
            Data::Fixed(Vec::new(), length)
        }
        _ => return Err(ParquetError::General("a column has values of another type".to_owned())),
    })
}

/// Calls `write` with some thousand rows at a time: each value is an object of the library. It looks at what it has in memory only
/// after a batch, so that a batch of long values has few rows.
fn in_batches<T>(
    mut values: impl Iterator<Item = T>,
    size: impl Fn(&T) -> usize,
    levels: Option<&[i16]>,
    mut write: impl FnMut(&[T], Option<&[i16]>) -> Result<()>,
) -> Result<()> {
    let mut rest = levels.unwrap_or_default();
    let mut batch = Vec::with_capacity(BATCH.min(rest.len()));
    while !rest.is_empty() {
        batch.clear();
        let (mut rows, mut bytes) = (0, 0);
        for level in rest.iter().take(BATCH) {
            if bytes >= BATCH_BYTES {
                break;
            }
            if *level == 1
                && let Some(value) = values.next()
            {
                bytes += size(&value);
                batch.push(value);
            }
            rows += 1;
        }
        let (now, later) = rest.split_at_checked(rows).unwrap_or((rest, &[]));
        write(&batch, Some(now))?;
        rest = later;
    }
    Ok(())
}
