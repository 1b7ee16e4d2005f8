//! A few rows of a table, to show to a user or to write to a pipe.

use std::io::{self, Write};

use rows::{RangeCounts, Reader, Scan, Value};

use crate::csv::Csv;
use crate::digits;
use crate::jsonl::JsonLines;
use crate::layout::Layout;
use crate::out::{Gap, Out, Piece, Valve};
use crate::plain;
use crate::task::TableSource;
use crate::text_file::RowText;

/// The maximum number of characters shown of a value.
const MOST_CHARS: usize = 200;
/// The maximum number of bytes shown of a binary value.
const MOST_BYTES: usize = 24;

/// A summary of what a preview showed.
#[derive(Clone, Debug)]
pub struct Previewed {
    /// The number of rows.
    pub rows: u64,
    /// Whether the table has more rows.
    pub has_more: bool,
    /// The counts of the reader for the pages that it read.
    pub counts: RangeCounts,
}

/// Writes at most `limit` rows as CSV or, if `is_json`, as JSON lines.
///
/// # Errors
/// Errors of `out`.
pub fn write_some(
    source: TableSource<'_>,
    is_json: bool,
    limit: u64,
    out: &mut dyn Write,
) -> io::Result<(Previewed, Vec<Gap>)> {
    let layout = Layout::of(source.table);
    let text: Box<dyn RowText> = if is_json { Box::new(JsonLines::new(&layout)) } else { Box::new(Csv::new(&layout)) };
    out.write_all(&text.head())?;
    let mut valve = To { out, gaps: Vec::new() };
    let mut pieces = Out::new(&mut valve, Piece::default());
    let read = some(source, limit, &mut |place, values| text.row(place, values, &mut pieces))?;
    pieces.flush()?;
    Ok((read, valve.gaps))
}

/// Rows of cells; `None` is NULL.
pub type Cells = Vec<Vec<Option<String>>>;

/// Returns the names of the columns, and at most `limit` rows. Each value is a text of one line; `None` is NULL.
///
/// # Errors
/// Errors of the reader.
pub fn cells(source: TableSource<'_>, limit: u64) -> io::Result<(Vec<String>, Cells, Previewed)> {
    let layout = Layout::of(source.table);
    let names = layout.fields.iter().map(|field| field.name.clone()).collect();
    let mut rows = Vec::new();
    let read = some(source, limit, &mut |_, values| {
        let value = |field: &crate::Field| cell(values.get(field.source).unwrap_or(&Value::Null));
        rows.push(layout.fields.iter().map(value).collect());
        Ok(())
    })?;
    Ok((names, rows, read))
}

fn cell(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Text(text) => shortened(text.as_str()),
        Value::Bytes(bytes) => {
            let mut text = b"0x".to_vec();
            digits::hex(&mut text, bytes.get(..MOST_BYTES).unwrap_or(bytes));
            let end = if bytes.len() > MOST_BYTES { format!("... ({} bytes)", bytes.len()) } else { String::new() };
            String::from_utf8_lossy(&text).into_owned() + &end
        }
        Value::LongText(long) | Value::LongBytes(long) => format!("({} bytes)", long.stored_bytes),
        Value::Unreadable(_) => "(unreadable)".to_owned(),
        other => {
            let mut text = Vec::new();
            plain::write(&mut text, other, b' ');
            String::from_utf8_lossy(&text).into_owned()
        }
    })
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Reads at most `limit` rows, and finds out whether the table has more rows.
fn some(
    source: TableSource<'_>,
    limit: u64,
    each: &mut dyn FnMut(format::RecordId, &[Value<'_>]) -> io::Result<()>,
) -> io::Result<Previewed> {
    let mut scan = Scan::new(source.pages, source.database, source.table, source.options);
    let mut reader = Reader::new(source.pages, source.database, source.table, source.options);
    let mut previewed = Previewed { rows: 0, has_more: false, counts: RangeCounts::default() };
    while !previewed.has_more
        && let Some(range) = scan.next_range()
    {
        let read = reader.read(&range, &mut |row| {
            if previewed.rows == limit {
                previewed.has_more = true;
                // The error stops the reading of this range.
                return Err(io::ErrorKind::Interrupted.into());
            }
            previewed.rows += 1;
            each(row.place, row.values)
        });
        match read {
            Ok(counts) => previewed.counts.add(&counts),
            Err(_) if previewed.has_more => {}
            Err(error) => return Err(error),
        }
    }
    Ok(previewed)
}

/// Writes each piece immediately, and keeps the gaps.
struct To<'a> {
    out: &'a mut dyn Write,
    gaps: Vec<Gap>,
}

impl Valve for To<'_> {
    fn write(&mut self, piece: &Piece) -> io::Result<()> {
        self.gaps.extend_from_slice(&piece.gaps);
        self.out.write_all(&piece.bytes)
    }
}
