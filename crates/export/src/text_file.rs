//! A text file of rows, with statements before, between and after the rows.

use std::io::{self, BufWriter, Write};

use format::RecordId;
use rows::Value;
use script::{Constant, EXECUTE, EXECUTED};

use crate::out::{Gap, Out, Piece};

/// The maximum number of rows that SQL Server accepts in an INSERT.
const BATCH_ROWS: u64 = 1000;
/// When the text of an INSERT reaches this many bytes, the INSERT ends, even if it has fewer rows than allowed.
const BATCH_BYTES: u64 = 4 << 20;

/// A form of file that stores rows as text. The text of a row does not depend on earlier rows.
pub(crate) trait RowText: Sync {
    /// The beginning of the file.
    fn head(&self) -> Vec<u8>;

    /// Writes a row. An implementation calls [`Out::begin_row`] first and [`Out::relieve`] last.
    fn row(&self, place: RecordId, values: &[Value<'_>], out: &mut Out<'_>) -> io::Result<()>;
}

/// The statements before, between and after the rows of a script.
pub(crate) struct Statements {
    /// The statements before the rows.
    pub(crate) before: String,
    /// The beginning of each INSERT.
    pub(crate) insert: String,
    /// Whether the INSERT has a VALUES list. Without a VALUES list, each row needs its own INSERT.
    pub(crate) has_values: bool,
    /// The statements after the rows.
    pub(crate) after: String,
    /// Whether each INSERT is written as a string constant that the server executes. This is needed if a script runner
    /// would misread a name in the INSERT.
    pub(crate) is_executed: bool,
}

/// Accepts pieces of rows.
pub(crate) struct TextSink<W: Write> {
    out: Inserts<BufWriter<W>>,
    statements: Option<Statements>,
    /// The number of rows of which at least the beginning was written.
    pub(crate) rows: u64,
    batch_rows: u64,
    batch_bytes: u64,
}

impl<W: Write> TextSink<W> {
    /// Writes the beginning of the file.
    pub(crate) fn new(out: W, head: &[u8], statements: Option<Statements>) -> io::Result<Self> {
        // The buffer is for the short texts between rows; large pieces of rows bypass it.
        let mut out = BufWriter::new(out);
        out.write_all(head)?;
        if let Some(statements) = &statements {
            out.write_all(statements.before.as_bytes())?;
        }
        let constant = statements.as_ref().filter(|statements| statements.is_executed).map(|_| Constant::default());
        let out = Inserts { out, constant, scratch: Vec::new() };
        Ok(Self { out, statements, rows: 0, batch_rows: 0, batch_bytes: 0 })
    }

    /// Writes complete rows, or parts of a row.
    pub(crate) fn take(&mut self, piece: &Piece) -> io::Result<()> {
        if self.statements.is_none() {
            self.rows += piece.starts.len() as u64;
            return self.out.write(&piece.bytes);
        }
        let mut at = 0;
        for start in &piece.starts {
            self.part(piece, at..*start)?;
            at = *start;
            self.between()?;
        }
        self.part(piece, at..piece.bytes.len())
    }

    fn part(&mut self, piece: &Piece, range: std::ops::Range<usize>) -> io::Result<()> {
        self.batch_bytes += range.len() as u64;
        self.out.write(piece.bytes.get(range).unwrap_or_default())
    }

    /// Writes what belongs before a row: the start of an INSERT, or a comma.
    fn between(&mut self) -> io::Result<()> {
        let Some(statements) = &self.statements else { return Ok(()) };
        let is_full = self.batch_rows == BATCH_ROWS || self.batch_bytes >= BATCH_BYTES;
        let begins = self.batch_rows == 0 || is_full || !statements.has_values;
        if begins {
            if self.batch_rows > 0 {
                self.out.end()?;
            }
            self.out.begin(statements.insert.as_bytes())?;
            (self.batch_rows, self.batch_bytes) = (0, 0);
        } else {
            self.out.write(b",\n")?;
        }
        self.batch_rows += 1;
        self.rows += 1;
        Ok(())
    }

    /// Writes the end of the file, and returns the output.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if let Some(statements) = &self.statements {
            if self.batch_rows > 0 {
                self.out.end()?;
            }
            self.out.out.write_all(statements.after.as_bytes())?;
        }
        self.out.out.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

/// Writes the rows of a file. In a script, it also writes the INSERT statements, each as a batch of its own.
struct Inserts<W> {
    out: W,
    /// The string constant for an INSERT that a script runner would misread; `None` if the INSERT is written directly.
    constant: Option<Constant>,
    scratch: Vec<u8>,
}

impl<W: Write> Inserts<W> {
    fn begin(&mut self, insert: &[u8]) -> io::Result<()> {
        if self.constant.is_some() {
            self.out.write_all(EXECUTE.as_bytes())?;
        }
        self.write(insert)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(constant) = &mut self.constant else { return self.out.write_all(bytes) };
        self.scratch.clear();
        constant.add(&mut self.scratch, bytes);
        self.out.write_all(&self.scratch)
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(constant) = &mut self.constant else { return self.out.write_all(b";\nGO\n") };
        self.scratch.clear();
        std::mem::take(constant).finish(&mut self.scratch);
        self.scratch.extend_from_slice(EXECUTED.as_bytes());
        self.out.write_all(&self.scratch)
    }
}

/// The file that lists the values that are written as NULL although they are not NULL. Each line has row, column, page,
/// slot and reason.
pub(crate) struct GapSink<W> {
    make: Box<dyn FnMut() -> io::Result<W> + Send>,
    out: Option<W>,
    columns: Vec<String>,
    /// The number of gaps.
    pub(crate) count: u64,
}

impl<W: Write> GapSink<W> {
    /// Creates the sink. Calls `make` to create the file when the first gap is written.
    pub(crate) fn new(columns: Vec<String>, make: Box<dyn FnMut() -> io::Result<W> + Send>) -> Self {
        Self { make, out: None, columns, count: 0 }
    }

    /// Writes gaps. Adds `base` to their row numbers.
    pub(crate) fn take(&mut self, gaps: &[Gap], base: u64) -> io::Result<()> {
        if gaps.is_empty() {
            return Ok(());
        }
        let mut text = Vec::new();
        if self.out.is_none() {
            self.out = Some((self.make)()?);
            text.extend_from_slice(b"row,column,page,slot,why\r\n");
        }
        for gap in gaps {
            crate::digits::unsigned(&mut text, base + gap.row + 1);
            text.push(b',');
            crate::quotes::text(&mut text, self.columns.get(gap.field).map_or(&[], |name| name.as_bytes()));
            text.extend_from_slice(format!(",{},{},", gap.place.page, gap.place.slot).as_bytes());
            crate::quotes::text(&mut text, gap.why.text().as_bytes());
            text.extend_from_slice(b"\r\n");
        }
        self.count += gaps.len() as u64;
        match &mut self.out {
            Some(out) => out.write_all(&text),
            None => Ok(()),
        }
    }

    /// Returns the file; `None` if there were no gaps.
    pub(crate) fn finish(self) -> Option<W> {
        self.out
    }
}
