//! The input and the working memory of an evaluation: a row, and a buffer for strings.

use std::fmt::{self, Write as _};

use crate::Undecided;
use crate::compare::Chars;
use crate::steps::{MOST_BYTES_MADE, Steps, TOO_EXPENSIVE};
use crate::value::Datum;

/// The content of a column in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field<'a> {
    /// NULL.
    Null,
    /// The bytes that a FixedVar record stores. A bit is stored as one byte, 0 or 1.
    Bytes(&'a [u8]),
    /// A value that is stored off the row. The value is not NULL, but it is otherwise unknown.
    OffRow,
    /// An unknown value, which may be NULL.
    Unknown,
}

/// Provides the columns of a row.
pub trait Row {
    /// The content of a column. `index` is its position in [`crate::Program::columns`].
    fn field(&self, index: usize) -> Field<'_>;
}

impl Row for [Option<&[u8]>] {
    fn field(&self, index: usize) -> Field<'_> {
        self.get(index).copied().flatten().map_or(Field::Null, Field::Bytes)
    }
}

impl<const N: usize> Row for [Option<&[u8]>; N] {
    fn field(&self, index: usize) -> Field<'_> {
        self.as_slice().field(index)
    }
}

/// A buffer for the strings that an evaluation produces, and a count of its steps. The buffer is reused for each row,
/// so that no memory is allocated per row.
#[derive(Default, Debug)]
pub struct Scratch {
    pub(crate) bytes: Vec<u8>,
    /// Working memory for searches in LIKE, see [`crate::like`].
    pub(crate) borders: Vec<u32>,
    pub(crate) steps: Steps,
}

impl Scratch {
    /// Limits the total steps of all evaluations from now on. Each evaluation also has its own limit
    /// ([`crate::STEPS_PER_ROW`]). If this function is never called, the total is unlimited.
    pub fn allow(&mut self, steps: u64) {
        self.steps.allow(steps);
    }

    /// The number of steps that are left of the total limit.
    pub fn allowed(&mut self) -> u64 {
        self.steps.allowed()
    }

    /// The size of the buffers in bytes. It never exceeds a few hundred kB, whatever expressions were evaluated.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.borders.capacity() * size_of::<u32>()
    }
}

/// A string or binary value while an expression is evaluated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Text<'a> {
    /// Bytes that are stored in the row or in the program.
    Lent(&'a [u8]),
    /// Bytes in the scratch buffer, from the first offset to the second.
    Made(usize, usize),
}

pub(crate) type Cell<'a> = Datum<Text<'a>>;
pub(crate) type Outcome<'a> = Result<Cell<'a>, Undecided>;

pub(crate) struct Env<'a> {
    pub(crate) row: &'a dyn Row,
    pub(crate) scratch: &'a mut Scratch,
}

impl<'a> Env<'a> {
    pub(crate) fn bytes(&self, text: Text<'a>) -> &[u8] {
        match text {
            Text::Lent(bytes) => bytes,
            Text::Made(start, end) => self.scratch.bytes.get(start..end).unwrap_or_default(),
        }
    }

    /// The bytes of a text from offset `start` up to offset `end`.
    pub(crate) fn part(&self, text: Text<'a>, start: usize, end: usize) -> Text<'a> {
        match text {
            Text::Lent(bytes) => Text::Lent(bytes.get(start..end.min(bytes.len())).unwrap_or_default()),
            Text::Made(from, to) => Text::Made((from + start).min(to), (from + end).min(to)),
        }
    }

    /// Begins a new text. All bytes that are appended before the call of [`Env::made`] belong to this text.
    pub(crate) fn begin(&self) -> usize {
        self.scratch.bytes.len()
    }

    pub(crate) fn made(&self, start: usize) -> Text<'a> {
        Text::Made(start, self.scratch.bytes.len())
    }

    /// Uses up one step for each byte of the strings in `cells`, because these bytes will be read.
    #[inline]
    pub(crate) fn look_at(&self, cells: &[Cell<'a>]) -> Result<(), Undecided> {
        for cell in cells {
            if let Datum::Ansi(text) | Datum::Unicode(text) | Datum::Binary(text) = *cell {
                self.scratch.steps.take_bytes(self.bytes(text).len())?;
            }
        }
        Ok(())
    }

    /// Uses up steps and buffer space for `bytes` bytes that will be appended.
    #[inline]
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), Undecided> {
        self.scratch.steps.take_bytes(bytes)?;
        if self.scratch.bytes.len().saturating_add(bytes) > MOST_BYTES_MADE {
            return Err(TOO_EXPENSIVE);
        }
        Ok(())
    }

    pub(crate) fn append(&mut self, text: Text<'a>) -> Result<(), Undecided> {
        self.reserve(self.bytes(text).len())?;
        match text {
            Text::Lent(bytes) => self.scratch.bytes.extend_from_slice(bytes),
            Text::Made(start, end) => self.scratch.bytes.extend_from_within(start..end),
        }
        Ok(())
    }

    /// Appends these bytes to the buffer and returns them as a text.
    pub(crate) fn append_bytes(&mut self, bytes: &[u8]) -> Result<Text<'a>, Undecided> {
        self.reserve(bytes.len())?;
        let start = self.begin();
        self.scratch.bytes.extend_from_slice(bytes);
        Ok(self.made(start))
    }

    /// Appends one character. The caller must have reserved space for it.
    pub(crate) fn push(&mut self, unit: u16, wide: bool) {
        let bytes = unit.to_le_bytes();
        self.scratch.bytes.extend_from_slice(if wide { &bytes } else { &bytes[..1] });
    }

    /// Cuts the text that began at `start` to a length of `bytes`.
    pub(crate) fn cut(&mut self, start: usize, bytes: usize) {
        self.scratch.bytes.truncate(start + bytes);
    }

    /// Prints the digits of an integer as char or nchar.
    pub(crate) fn print_integer(&mut self, wide: bool, number: i64) -> Result<Text<'a>, Undecided> {
        let mut digits = [0; 20];
        let (mut rest, mut first) = (number.unsigned_abs(), digits.len());
        for (place, digit) in digits.iter_mut().enumerate().rev() {
            *digit = b'0' + (rest % 10) as u8;
            (rest, first) = (rest / 10, place);
            if rest == 0 {
                break;
            }
        }
        self.reserve(2 * (digits.len() + 1))?;
        let start = self.begin();
        if number < 0 {
            self.push(b'-'.into(), wide);
        }
        for &digit in digits.get(first..).unwrap_or_default() {
            self.push(digit.into(), wide);
        }
        Ok(self.made(start))
    }

    /// Prints ASCII text as char or nchar. The text may have at most a few hundred characters.
    pub(crate) fn print(&mut self, wide: bool, text: fmt::Arguments<'_>) -> Result<Text<'a>, Undecided> {
        struct Printer<'b>(&'b mut Vec<u8>, bool);
        impl fmt::Write for Printer<'_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                for byte in text.bytes() {
                    self.0.push(byte);
                    if self.1 {
                        self.0.push(0);
                    }
                }
                Ok(())
            }
        }
        let start = self.begin();
        // Writing to a vector cannot fail.
        let _ = Printer(&mut self.scratch.bytes, wide).write_fmt(text);
        self.reserve(self.begin() - start)?;
        Ok(self.made(start))
    }
}

/// The characters of a string value.
pub(crate) fn chars<'e>(cell: Cell<'e>, env: &'e Env<'_>) -> Option<Chars<'e>> {
    let (text, wide) = match cell {
        Datum::Ansi(text) => (text, false),
        Datum::Unicode(text) => (text, true),
        _ => return None,
    };
    let bytes = match text {
        Text::Lent(bytes) => bytes,
        Text::Made(start, end) => env.scratch.bytes.get(start..end).unwrap_or_default(),
    };
    Some(Chars { bytes, wide })
}
