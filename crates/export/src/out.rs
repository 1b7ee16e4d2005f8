//! Collects the text of rows and passes it on in pieces of about 1 MB.

use std::io;

use format::RecordId;
use rows::{LongValue, Unreadable};

/// When the collected text has at least this many bytes, it is passed on.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// Accepts text in pieces.
pub(crate) trait Valve {
    /// Writes a piece.
    fn write(&mut self, piece: &Piece) -> io::Result<()>;
}

/// The text of several rows, or of a part of a row.
#[derive(Default)]
pub(crate) struct Piece {
    /// The text.
    pub(crate) bytes: Vec<u8>,
    /// Positions in `bytes` at which rows begin. The first bytes may belong to a row that began in an earlier piece.
    pub(crate) starts: Vec<usize>,
    /// Values that are written as NULL although they are not NULL.
    pub(crate) gaps: Vec<Gap>,
}

/// A value that cannot be read, or that the form of the written file cannot express.
#[derive(Clone, Debug)]
pub struct Gap {
    /// The number of the row: counted from 0 within a piece, and from 1 in the finished file.
    pub row: u64,
    /// The address of the row in the database.
    pub place: RecordId,
    /// The position of the column in the file.
    pub field: usize,
    /// The reason why the value is missing.
    pub why: GapReason,
}

/// The reason why a value is not in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GapReason {
    /// The value cannot be read.
    Unreadable(Unreadable),
    /// The value is longer than a row group allows.
    TooLong,
    /// The form of file cannot express the number, because it is NaN, infinite, or outside the range of the column's
    /// type.
    NoForm,
}

impl GapReason {
    /// A description of the reason, for users.
    pub fn text(self) -> String {
        match self {
            Self::Unreadable(Unreadable::Lost(page)) => {
                format!("page {page}, which has part of the value, is damaged, unreadable or missing")
            }
            Self::Unreadable(Unreadable::Impossible) => "the bytes are not a value of the type".to_owned(),
            Self::Unreadable(Unreadable::Undocumented) => {
                "the storage format of the value is not documented".to_owned()
            }
            Self::Unreadable(Unreadable::NotStored) => "the row does not store the value".to_owned(),
            Self::Unreadable(Unreadable::NotInAnyIndex) => "no remaining index has the column".to_owned(),
            Self::Unreadable(Unreadable::TooLong) => "the value is too long to convert".to_owned(),
            Self::TooLong => "the value is longer than a row group can be; csv and jsonl accept it".to_owned(),
            Self::NoForm => "the format cannot express the value; csv and jsonl can".to_owned(),
        }
    }
}

/// Collects the text of rows and passes each piece to a [`Valve`].
pub(crate) struct Out<'a> {
    piece: Piece,
    place: RecordId,
    valve: &'a mut dyn Valve,
    /// The number of rows that began in earlier pieces.
    written_rows: u64,
}

impl<'a> Out<'a> {
    /// Creates a collector. `buffer` is an empty piece with allocations to reuse.
    pub(crate) fn new(valve: &'a mut dyn Valve, buffer: Piece) -> Self {
        Self { piece: buffer, place: RecordId::default(), valve, written_rows: 0 }
    }

    /// Returns the empty piece, so that its allocations can be reused.
    pub(crate) fn into_buffer(self) -> Piece {
        self.piece
    }

    /// The text that was collected but not yet passed on.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.piece.bytes
    }

    /// Marks the beginning of a row.
    pub(crate) fn begin_row(&mut self, place: RecordId) {
        self.place = place;
        self.piece.starts.push(self.piece.bytes.len());
    }

    /// Records that a value of the current row is written as NULL, and why.
    pub(crate) fn gap(&mut self, field: usize, why: GapReason) {
        let row = (self.written_rows + self.piece.starts.len() as u64).saturating_sub(1);
        self.piece.gaps.push(Gap { row, place: self.place, field, why });
    }

    /// Passes the text on if it has at least [`PIECE_BYTES`] bytes.
    pub(crate) fn relieve(&mut self) -> io::Result<()> {
        if self.piece.bytes.len() >= PIECE_BYTES { self.flush() } else { Ok(()) }
    }

    /// Passes all collected text on.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.valve.write(&self.piece)?;
        self.written_rows += self.piece.starts.len() as u64;
        self.piece.bytes.clear();
        self.piece.starts.clear();
        self.piece.gaps.clear();
        Ok(())
    }

    /// Writes a long value by calling `each` for its pieces. If the value cannot be read, writes nothing, records a
    /// gap, and returns `false`.
    pub(crate) fn long(
        &mut self,
        field: usize,
        value: LongValue<'_>,
        each: &mut dyn FnMut(&mut Vec<u8>, &[u8]),
    ) -> io::Result<bool> {
        if let Err(why) = is_whole(value)? {
            self.gap(field, GapReason::Unreadable(why));
            return Ok(false);
        }
        let written = value.pieces(&mut |piece| {
            each(&mut self.piece.bytes, piece);
            self.relieve()
        })?;
        // `is_whole` has just read the whole value without an error. An error here means that the files have changed
        // since then or can no longer be read.
        written
            .map(|()| true)
            .map_err(|_| io::Error::other("a long value could be read the first time, but not the second time"))
    }
}

/// Whether all pieces of a long value can be read. Call this function before writing the value, because text that is
/// already written cannot be removed.
pub(crate) fn is_whole(value: LongValue<'_>) -> io::Result<Result<(), Unreadable>> {
    value.pieces(&mut |_| Ok(()))
}
