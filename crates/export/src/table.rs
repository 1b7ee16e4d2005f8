//! Writes the rows of a table to a file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rows::{Order, RangeCounts, Reader, Scan};

use crate::csv::Csv;
use crate::jsonl::JsonLines;
use crate::layout::Layout;
use crate::ordered::{Jobs, Turns, lock, run};
use crate::out::{Out, Piece, Valve};
use crate::target::Partial;
use crate::task::{EachRow, TableSource, Task, Totals};
use crate::text_file::{GapSink, RowText, Statements, TextSink};
use crate::tsql::Tsql;

/// The number of pages per job, for all forms of file that are text.
const TEXT_PAGES: usize = 128;

/// A format of exported files.
pub enum Form {
    /// CSV.
    Csv,
    /// JSON lines.
    JsonLines,
    /// T-SQL, with these statements before and after the rows.
    Sql(SqlFrame),
    /// Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// The statements before and after the rows of a script, and the columns that an INSERT names.
pub struct SqlFrame {
    /// The statements before the rows.
    pub before: String,
    /// The beginning of each INSERT: `INSERT INTO [dbo].[Orders] (`..`) VALUES` with a line break, or `INSERT INTO ..
    /// DEFAULT VALUES`.
    pub insert: String,
    /// IDs of the columns that the INSERT names, in ascending order.
    pub columns: Vec<u32>,
    /// The statements after the rows.
    pub after: String,
}

/// The paths of the files to write.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The file that gets the rows.
    pub rows: PathBuf,
    /// The file that lists unreadable values. It is written only if there are any.
    pub unreadable: PathBuf,
    /// Whether existing files are replaced.
    pub replaces: bool,
}

/// The result of an export.
#[derive(Clone, Debug)]
pub struct Written {
    /// The number of rows in the file.
    pub rows: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The number of values that are written as NULL although they are not NULL. [`Destination::unreadable`] lists
    /// them.
    pub unreadable_values: u64,
    /// The counts of the reader for the pages that it read.
    pub counts: RangeCounts,
    /// The order of the rows.
    pub order: Order,
}

/// Writes the stored rows of a table. Calls `progress` with the number of pages that were read.
///
/// # Errors
/// If a file cannot be written. In this case no file gets its final name.
pub fn write_table(
    source: TableSource<'_>,
    form: Form,
    destination: &Destination,
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<Written> {
    let layout = Layout::of(source.table);
    let scan = Scan::new(source.pages, source.database, source.table, source.options);
    let order = *scan.order();
    let out = Partial::create(&destination.rows, destination.replaces)?;
    let totals = Mutex::new(Totals { gaps: gaps(destination, &layout), counts: RangeCounts::default() });
    let task = Task { source, scan, threads, totals: &totals, progress };
    let (out, rows) = match form {
        Form::Csv => in_turn(task, &Csv::new(&layout), None, out)?,
        Form::JsonLines => in_turn(task, &JsonLines::new(&layout), None, out)?,
        Form::Sql(frame) => {
            let text = Tsql::new(&layout, &|id| frame.columns.binary_search(&id).is_ok());
            in_turn(task, &text, Some(statements(frame)), out)?
        }
        #[cfg(feature = "parquet")]
        Form::Parquet => crate::parquet::write(task, &layout, out)?,
    };
    let Totals { gaps, counts } = totals.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let unreadable_values = gaps.count;
    Ok(Written { rows, bytes: finish(out, gaps, destination)?, unreadable_values, counts, order })
}

/// Writes rows that `fill` delivers one by one, in the same form of file as [`write_table`]. Returns the number of
/// rows. If there are no rows, no file is created.
///
/// # Errors
/// If a file cannot be written, and errors of `fill`. In this case no file gets its final name.
pub fn write_rows(
    layout: &Layout,
    form: Form,
    destination: &Destination,
    fill: &mut dyn FnMut(&mut EachRow<'_>) -> io::Result<()>,
) -> io::Result<u64> {
    let out = Partial::create(&destination.rows, destination.replaces)?;
    let mut gaps = gaps(destination, layout);
    let (out, rows) = match form {
        Form::Csv => one_by_one(&Csv::new(layout), None, out, &mut gaps, fill)?,
        Form::JsonLines => one_by_one(&JsonLines::new(layout), None, out, &mut gaps, fill)?,
        Form::Sql(frame) => {
            let text = Tsql::new(layout, &|id| frame.columns.binary_search(&id).is_ok());
            one_by_one(&text, Some(statements(frame)), out, &mut gaps, fill)?
        }
        #[cfg(feature = "parquet")]
        Form::Parquet => crate::parquet::one_by_one(layout, out, &mut gaps, fill)?,
    };
    if rows > 0 {
        finish(out, gaps, destination)?;
    } else if destination.replaces {
        remove(&destination.rows)?;
        remove(&destination.unreadable)?;
    }
    Ok(rows)
}

fn statements(frame: SqlFrame) -> Statements {
    let SqlFrame { before, insert, columns, after } = frame;
    let is_executed = !script::is_plain(&insert);
    Statements { before, insert, has_values: !columns.is_empty(), after, is_executed }
}

fn gaps(destination: &Destination, layout: &Layout) -> GapSink<Partial> {
    let (path, replaces) = (destination.unreadable.clone(), destination.replaces);
    let names = layout.fields.iter().map(|field| field.name.clone()).collect();
    GapSink::new(names, Box::new(move || Partial::create(&path, replaces)))
}

/// Gives the files their final names. The file of gaps gets its name first, because without this file the rows would
/// seem complete. If there are no gaps, removes a file of gaps that an earlier run left. Returns the size of the rows
/// file in bytes.
fn finish(rows: Partial, gaps: GapSink<Partial>, destination: &Destination) -> io::Result<u64> {
    let has_gaps = match gaps.finish() {
        Some(file) => file.finish().map(|_| true)?,
        None => false,
    };
    match (rows.finish(), has_gaps) {
        (Ok(bytes), true) => Ok(bytes),
        (Ok(bytes), false) if destination.replaces => remove(&destination.unreadable).map(|()| bytes),
        // The rows file could not get its name, so the name may still belong to the rows file of an earlier run. The
        // new file of gaps does not describe that file and is removed.
        (Err(error), true) if !destination.replaces => {
            let _ = remove(&destination.unreadable);
            Err(error)
        }
        (result, _) => result,
    }
}

/// Removes a file, if it exists.
fn remove(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn one_by_one(
    text: &dyn RowText,
    statements: Option<Statements>,
    out: Partial,
    gaps: &mut GapSink<Partial>,
    fill: &mut dyn FnMut(&mut EachRow<'_>) -> io::Result<()>,
) -> io::Result<(Partial, u64)> {
    let mut sink = TextSink::new(out, &text.head(), statements)?;
    let mut valve = Direct { sink: &mut sink, gaps };
    let mut pieces = Out::new(&mut valve, Piece::default());
    fill(&mut |place, values| text.row(place, values, &mut pieces))?;
    pieces.flush()?;
    let rows = sink.rows;
    Ok((sink.finish()?, rows))
}

/// Writes each piece immediately.
struct Direct<'a> {
    sink: &'a mut TextSink<Partial>,
    gaps: &'a mut GapSink<Partial>,
}

impl Valve for Direct<'_> {
    fn write(&mut self, piece: &Piece) -> io::Result<()> {
        self.sink.take(piece)?;
        self.gaps.take(&piece.gaps, 0)
    }
}

/// Writes the rows of a table as text, with several threads.
fn in_turn(
    task: Task<'_>,
    text: &dyn RowText,
    statements: Option<Statements>,
    out: Partial,
) -> io::Result<(Partial, u64)> {
    let Task { source, scan, threads, totals, progress } = task;
    let sink = Mutex::new(TextSink::new(out, &text.head(), statements)?);
    let jobs = Jobs::new(scan, TEXT_PAGES);
    run(threads, Turns::default(), &|turns| {
        let mut reader = Reader::new(source.pages, source.database, source.table, source.options);
        let mut buffer = Piece::default();
        while let Some((number, ranges)) = jobs.next() {
            let mut counts = RangeCounts::default();
            let mut valve = InTurn { turns, number, base: None, sink: &sink, totals };
            let mut out = Out::new(&mut valve, std::mem::take(&mut buffer));
            for range in &ranges {
                let read = reader.read(range, &mut |row| text.row(row.place, row.values, &mut out))?;
                counts.add(&read);
                progress(range.pages.len() as u64);
            }
            out.flush()?;
            buffer = out.into_buffer();
            lock(totals).counts.add(&counts);
            turns.done(number);
        }
        Ok(())
    })?;
    let sink = sink.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let rows = sink.rows;
    Ok((sink.finish()?, rows))
}

/// Waits for the turn of its job before it writes.
struct InTurn<'a> {
    turns: &'a Turns,
    number: u64,
    /// The number of rows in all earlier jobs. It is known only when it is the turn of this job.
    base: Option<u64>,
    sink: &'a Mutex<TextSink<Partial>>,
    totals: &'a Mutex<Totals>,
}

impl Valve for InTurn<'_> {
    fn write(&mut self, piece: &Piece) -> io::Result<()> {
        if self.base.is_none() {
            self.turns.wait(self.number)?;
        }
        let mut sink = lock(self.sink);
        let base = *self.base.get_or_insert(sink.rows);
        sink.take(piece)?;
        lock(self.totals).gaps.take(&piece.gaps, base)
    }
}
