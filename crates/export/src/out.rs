//! Where the text of rows goes, in pieces.

use std::io;

use format::RecordId;
use rows::{LongValue, Unreadable};

/// Bytes that are gathered before they are written.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// Takes text in pieces.
pub(crate) trait Valve {
    /// Takes what was gathered.
    fn write(&mut self, piece: &Piece) -> io::Result<()>;
}

/// Text of rows.
#[derive(Default)]
pub(crate) struct Piece {
    /// The text.
    pub(crate) bytes: Vec<u8>,
    /// Where rows begin in it; the first may have begun before.
    pub(crate) starts: Vec<usize>,
    /// Values that stand as NULL although they are not.
    pub(crate) gaps: Vec<Gap>,
}

/// A value that cannot be had, or not in this form of file.
#[derive(Clone, Debug)]
pub struct Gap {
    /// Which of the rows of its piece, from 0; at last the row of the file, from 1.
    pub row: u64,
    /// Where the row is in the database.
    pub place: RecordId,
    /// Which of the file's columns.
    pub field: usize,
    /// Why.
    pub why: GapReason,
}

/// Why a value is not in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GapReason {
    /// It cannot be had.
    Unreadable(Unreadable),
    /// It is longer than what a row group may hold.
    TooLong,
    /// The form of file has no such number: not a number, infinite, or outside the column's type.
    NoForm,
}

impl GapReason {
    /// The reason for a person.
    pub fn text(self) -> String {
        match self {
            Self::Unreadable(Unreadable::Lost(page)) => {
                format!("page {page} with a part of the value is damaged, unreadable or missing")
            }
            Self::Unreadable(Unreadable::Impossible) => "the bytes are no value of the type".to_owned(),
            Self::Unreadable(Unreadable::Undocumented) => {
                "the form in which the value is stored is not documented".to_owned()
            }
            Self::Unreadable(Unreadable::NotStored) => "the row does not store the value".to_owned(),
            Self::Unreadable(Unreadable::NotInAnyIndex) => "no index that is left has the column".to_owned(),
            Self::Unreadable(Unreadable::TooLong) => "the value is too long to be converted".to_owned(),
            Self::TooLong => "the value is longer than a row group may hold; csv and jsonl take it".to_owned(),
            Self::NoForm => "the format has no form for the value; csv and jsonl take it".to_owned(),
        }
    }
}

/// Gathers the text of rows, and lets it out when there is enough.
pub(crate) struct Out<'a> {
    piece: Piece,
    place: RecordId,
    valve: &'a mut dyn Valve,
    /// Rows that began in pieces already written.
    written_rows: u64,
}

impl<'a> Out<'a> {
    /// `buffer` is an empty piece, perhaps with room from an earlier use.
    pub(crate) fn new(valve: &'a mut dyn Valve, buffer: Piece) -> Self {
        Self { piece: buffer, place: RecordId::default(), valve, written_rows: 0 }
    }

    /// The emptied piece, for its room.
    pub(crate) fn into_buffer(self) -> Piece {
        self.piece
    }

    /// What is gathered.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.piece.bytes
    }

    /// A row begins here.
    pub(crate) fn begin_row(&mut self, place: RecordId) {
        self.place = place;
        self.piece.starts.push(self.piece.bytes.len());
    }

    /// A value of the row stands as NULL, and why.
    pub(crate) fn gap(&mut self, field: usize, why: GapReason) {
        let row = (self.written_rows + self.piece.starts.len() as u64).saturating_sub(1);
        self.piece.gaps.push(Gap { row, place: self.place, field, why });
    }

    /// Lets the text out if there is enough of it.
    pub(crate) fn relieve(&mut self) -> io::Result<()> {
        if self.piece.bytes.len() >= PIECE_BYTES { self.flush() } else { Ok(()) }
    }

    /// Lets all text out.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.valve.write(&self.piece)?;
        self.written_rows += self.piece.starts.len() as u64;
        self.piece.bytes.clear();
        self.piece.starts.clear();
        self.piece.gaps.clear();
        Ok(())
    }

    /// Writes a long value with `each`; `false` if it cannot be had, with nothing written and the gap noted.
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
        // It was whole a moment ago: the files changed, or fail now.
        written.map(|()| true).map_err(|_| io::Error::other("a long value could be read once, and then no more"))
    }
}

/// Whether all pieces of a long value can be had: only then does it begin, as what is written cannot be taken back.
pub(crate) fn is_whole(value: LongValue<'_>) -> io::Result<Result<(), Unreadable>> {
    value.pieces(&mut |_| Ok(()))
}
