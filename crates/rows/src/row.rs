//! Builds the values of rows without a memory allocation for each row.

use std::io;

use catalog::{Level, Stored};
use format::compressed::Doubt as ColumnDoubt;
use format::record::{Record, RecordKind};
use source::PageSource;

use crate::blob::{Blob, Blobs};
use crate::counts::RangeCounts;
use crate::long::{LONG_BYTES, LongSource};
use crate::plan::{Absent, ColumnPlan, Plan};
use crate::values::kind::Kind;
use crate::values::text::{Form, TextStream};
use crate::values::{Piece, Work, put, value};
use crate::{LongValue, Unreadable, Value};

/// Builds rows. Reuses its buffers.
pub(crate) struct RowBuilder<'a> {
    blobs: Blobs<'a>,
    values: Vec<Value<'static>>,
    work: Work,
    /// The buffer in which a value is assembled from its pieces.
    blob: Vec<u8>,
}

/// Empties the vector and reuses its memory for values with another lifetime.
fn emptied<'b>(mut values: Vec<Value<'_>>) -> Vec<Value<'b>> {
    values.clear();
    values.into_iter().map(|_| Value::Null).collect()
}

impl<'a> RowBuilder<'a> {
    pub(crate) fn new(source: &'a dyn PageSource) -> Self {
        Self { blobs: Blobs::new(source), values: Vec::new(), work: Work::default(), blob: Vec::new() }
    }

    /// Calls `each` with the position and the values of each uncompressed record of a page. Works column by column,
    /// which is twice as fast as row by row, because the steps for one column are the same in all rows.
    pub(crate) fn rows(
        &mut self,
        plan: &Plan<'_>,
        records: &[Record<'_>],
        counts: &mut RangeCounts,
        each: &mut dyn FnMut(usize, &[Value<'_>]) -> io::Result<()>,
    ) -> io::Result<()> {
        let width = plan.columns.len();
        let at_once = (HELD_VALUES / width.max(1)).max(1);
        for (nth, records) in records.chunks(at_once).enumerate() {
            let first = nth * at_once;
            // Off-row values and defaults may be long, so rows that need them are built one at a time.
            let are_long = plan.default_bytes > SHORT_BYTES || records.iter().any(Record::has_complex);
            match plan.columns.is_empty() || are_long {
                true => records
                    .iter()
                    .zip(first..)
                    .try_for_each(|(record, at)| self.row(plan, record, &[], counts, &mut |values| each(at, values)))?,
                false => self.in_row(plan, records, counts, &mut |at, values| each(first + at, values))?,
            }
        }
        Ok(())
    }

    /// Like `rows`, but for records without off-row values.
    fn in_row(
        &mut self,
        plan: &Plan<'_>,
        records: &[Record<'_>],
        counts: &mut RangeCounts,
        each: &mut dyn FnMut(usize, &[Value<'_>]) -> io::Result<()>,
    ) -> io::Result<()> {
        let Self { values, work, .. } = self;
        let width = plan.columns.len();
        let mut rows: Vec<Value<'_>> = emptied(std::mem::take(values));
        rows.resize(records.len() * width, Value::Null);
        let nulls: Vec<u64> = records.iter().map(|record| record.null_word(0)).collect();
        let are_complete = plan.are_complete(records);
        work.clear();
        for (at, column) in plan.columns.iter().enumerate() {
            if are_complete && column.put(records, &nulls, (at, width), &mut rows, work) {
                continue;
            }
            let places = rows.chunks_exact_mut(width).enumerate();
            let places = places.filter_map(|(nth, row)| Some((nth * width + at, row.get_mut(at)?)));
            let Some(stored) = column.column else {
                places.for_each(|(_, place)| *place = Value::Unreadable(Unreadable::NotStored));
                continue;
            };
            for (record, (at, place)) in records.iter().zip(places) {
                *place = match stored.stored(Level::Leaf, record) {
                    Stored::Null => Value::Null,
                    Stored::Plain(bytes) => value(column.kind, bytes, at, work),
                    Stored::Absent | Stored::Complex(_) => absent(column, at, work),
                };
            }
        }
        work.settle(&mut rows);
        work.count(counts);
        let result = (0..records.len()).zip(rows.chunks_exact(width)).try_for_each(|(at, row)| each(at, row));
        *values = emptied(rows);
        result
    }

    /// Calls `each` with the values of `record`, and counts values that cannot be read.
    pub(crate) fn row(
        &mut self,
        plan: &Plan<'_>,
        record: &Record<'_>,
        doubts: &[(u16, ColumnDoubt)],
        counts: &mut RangeCounts,
        each: &mut dyn FnMut(&[Value<'_>]) -> io::Result<()>,
    ) -> io::Result<()> {
        let Self { blobs, values, work, blob } = self;
        let mut row: Vec<Value<'_>> = emptied(std::mem::take(values));
        row.resize(plan.columns.len(), Value::Null);
        let mut longs: Vec<LongSource<'_>> = Vec::new();
        work.clear();
        for (at, (column, place)) in plan.columns.iter().zip(&mut row).enumerate() {
            let Some(stored) = column.column else {
                *place = Value::Unreadable(Unreadable::NotStored);
                continue;
            };
            if !doubts.is_empty() && doubts.iter().any(|(bit, _)| *bit == column.null_bit) {
                *place = work.unreadable(Unreadable::Undocumented);
                continue;
            }
            let bytes = match stored.stored(Level::Leaf, record) {
                Stored::Null => continue,
                Stored::Plain(bytes) => bytes,
                Stored::Complex(bytes) if is_back_pointer(record, bytes) => &[],
                Stored::Complex(pointer) => {
                    *place = off_row(column, pointer, at, (&mut *blobs, &mut *blob, &mut *work), &mut longs);
                    continue;
                }
                Stored::Absent => {
                    *place = absent(column, at, work);
                    continue;
                }
            };
            put(&column.kind, bytes, at, work, place);
        }
        let result = {
            let mut row: Vec<Value<'_>> = row;
            work.settle(&mut row);
            for long in &longs {
                let value = LongValue::new(long.stored_bytes(), long);
                if let Some(place) = row.get_mut(long.column()) {
                    *place = if long.is_text() { Value::LongText(value) } else { Value::LongBytes(value) };
                }
            }
            work.count(counts);
            let result = each(&row);
            *values = emptied(row);
            result
        };
        counts.altered_texts += longs.iter().filter(|long| long.was_altered()).count() as u64;
        result
    }
}

/// Whether `bytes` are the back pointer of a forwarded row. The back pointer is the last variable-length column that
/// the row stores. Empty columns at the end of a row are not stored, so the back pointer has the number of the first of
/// these columns (docs/format/forwarding.md#back-pointer).
fn is_back_pointer(record: &Record<'_>, bytes: &[u8]) -> bool {
    record.kind() == RecordKind::Forwarded
        && record.variable(record.variable_count()).is_some_and(|(last, _)| std::ptr::eq(last, bytes))
}

/// The value of a column that the row does not contain.
fn absent<'v>(column: &ColumnPlan<'v>, at: usize, work: &mut Work) -> Value<'v> {
    match column.absent {
        Absent::Null => Value::Null,
        Absent::Default(bytes) => value(default_kind(column.kind), bytes, at, work),
        Absent::Unknown => work.unreadable(Unreadable::Undocumented),
    }
}

/// Returns the kind with which a default of a column is decoded. A default stores a bit in a byte of its own, and a
/// vardecimal value as a normal decimal.
fn default_kind(kind: Kind) -> Kind {
    match kind {
        Kind::Bit(_) => Kind::Bit(0),
        Kind::Vardecimal(info) => Kind::Decimal(info),
        kind => kind,
    }
}

/// The value to which a pointer in the row points. If the value is long, the receiver reads it on request.
fn off_row<'v, 's>(
    column: &ColumnPlan<'_>,
    pointer: &[u8],
    at: usize,
    (blobs, bytes, work): (&mut Blobs<'s>, &mut Vec<u8>, &mut Work),
    longs: &mut Vec<LongSource<'s>>,
) -> Value<'v> {
    let form = match column.kind {
        Kind::Filestream => return work.unreadable(Unreadable::Undocumented),
        Kind::Ansi(page) => Some(Form::Ansi(page)),
        Kind::Utf16 => Some(Form::Utf16),
        Kind::Bytes | Kind::Xml | Kind::Variant | Kind::HierarchyId | Kind::Shape { .. } | Kind::AsStored => None,
        _ => return work.unreadable(Unreadable::Undocumented),
    };
    let blob: Blob = match blobs.open(pointer) {
        Ok(blob) => blob,
        Err(why) => return work.unreadable(why),
    };
    let row_bytes = work.arena.len() as u64 + blob.bytes();
    let is_long = blob.bytes() > LONG_BYTES || row_bytes > HELD_BYTES;
    if is_long && (form.is_some() || matches!(column.kind, Kind::Bytes | Kind::AsStored)) {
        work.as_stored += u64::from(column.kind == Kind::AsStored);
        longs.push(LongSource::new(blobs.source(), blob, at, form));
        return Value::Null;
    }
    if blob.bytes() > MOST_WHOLE_BYTES || row_bytes > 2 * MOST_WHOLE_BYTES {
        return work.unreadable(Unreadable::TooLong);
    }
    bytes.clear();
    match form {
        Some(form) => {
            let start = work.arena.len();
            let mut stream = TextStream::new(form, blob.bytes());
            let read = blobs.pieces(&blob, &mut |piece| {
                stream.push(piece, &mut work.arena);
                Ok(())
            });
            if let Ok(Err(why)) = read {
                work.arena.truncate(start);
                return work.unreadable(why);
            }
            match stream.finish(&mut work.arena) {
                Ok(altered) => {
                    work.altered += u64::from(altered);
                    work.later.push(Piece::text(at, start..work.arena.len()));
                    Value::Null
                }
                Err(why) => {
                    work.arena.truncate(start);
                    work.unreadable(why)
                }
            }
        }
        None => {
            let read = blobs.pieces(&blob, &mut |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            });
            match read {
                Ok(Err(why)) => work.unreadable(why),
                _ => work.copied(column.kind, bytes, at),
            }
        }
    }
}

/// Rows are built together only if the defaults of one row have at most this many bytes in total, because each row
/// keeps its own copy.
const SHORT_BYTES: usize = 256;

/// The number of values that are built together. They need 16 KB, half of a typical L1 cache.
const HELD_VALUES: usize = 512;

/// The most bytes of off-row values that are kept in memory for one row. Beyond this limit, values are delivered in
/// pieces like long values.
const HELD_BYTES: u64 = 4 << 20;

/// The greatest length, in bytes, of an off-row value that must be converted as a whole. The value and the values
/// already kept in memory for its row may together have at most twice this length.
const MOST_WHOLE_BYTES: u64 = 16 << 20;
