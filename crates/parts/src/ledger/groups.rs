//! A group of parts in the file of a ledger, in the form of [`check::change::packed`].

use std::fs::File;
use std::io;

use check::change::packed::{ENTRY_BYTES, MOST_PARTS, PIECES};
use check::change::{KeptGroup, PartKey, Piece};

use super::contents::{Span, span};

/// Bytes before the list of parts.
const HEAD_BYTES: u64 = 8;
/// A group that is read.
pub(super) struct Group<'f> {
    file: &'f File,
    keys: Vec<PartKey>,
    all: Span,
    /// The places of the sums, of the key bounds and of the digests of extents of each part.
    places: Vec<[Span; PIECES]>,
    /// The sums of all parts, once some of them were read.
    sums: Option<Vec<u8>>,
    end: u64,
}

impl<'f> Group<'f> {
    /// Opens the group at a place of the file. It must end at `end` at the latest.
    pub(super) fn open(mut file: &'f File, at: u64, end: u64) -> io::Result<Self> {
        let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let within = |span: Span| if span.end() <= end { Ok(span) } else { Err(cut()) };
        let head = span(&mut file, within(Span { at, bytes: HEAD_BYTES })?)?;
        let number = |bytes: &[u8], at: usize| {
            let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk()).ok_or_else(cut)?;
            Ok::<_, io::Error>(u64::from(u32::from_le_bytes(*bytes)))
        };
        let (count, all) = (number(&head, 0)?, number(&head, 4)?);
        if count > MOST_PARTS {
            return Err(cut());
        }
        let list = within(Span { at: at + HEAD_BYTES, bytes: count * ENTRY_BYTES as u64 })?;
        let entries = span(&mut file, list)?;
        let all = within(Span { at: list.end(), bytes: all })?;
        let (mut keys, mut lengths) = (Vec::new(), Vec::new());
        for entry in entries.chunks_exact(ENTRY_BYTES) {
            keys.push(PartKey::from_bytes(entry).ok_or_else(cut)?);
            let length = |piece: usize| number(entry, PartKey::BYTES + 4 * piece);
            lengths.push([length(0)?, length(1)?, length(2)?]);
        }
        if keys.is_empty() {
            return Err(cut());
        }
        let mut next = all.end();
        let mut places = vec![[Span::default(); PIECES]; lengths.len()];
        for piece in 0..PIECES {
            for (place, lengths) in places.iter_mut().zip(&lengths) {
                if let (Some(place), Some(length)) = (place.get_mut(piece), lengths.get(piece)) {
                    *place = within(Span { at: next, bytes: *length })?;
                    next = place.end();
                }
            }
        }
        Ok(Self { file, keys, all, places, sums: None, end: next })
    }

    /// Where the group ends.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    fn sums_of(&mut self, [sums, ..]: [Span; PIECES]) -> io::Result<Vec<u8>> {
        let mut file = self.file;
        let end = self.places.last().map_or(sums.end(), |[last, ..]| last.end());
        let of_all = Span { at: self.all.end(), bytes: end - self.all.end() };
        let bytes = match self.sums.take() {
            Some(bytes) => bytes,
            None => span(&mut file, of_all)?,
        };
        let from = (sums.at - of_all.at) as usize;
        let found = bytes.get(from..from + sums.bytes as usize).unwrap_or_default().to_vec();
        self.sums = Some(bytes);
        Ok(found)
    }
}

impl KeptGroup for Group<'_> {
    fn keys(&self) -> &[PartKey] {
        &self.keys
    }

    fn read(&mut self, piece: Piece) -> io::Result<Vec<u8>> {
        let mut file = self.file;
        let place = |at: usize| self.places.get(at).copied().ok_or(io::Error::from(io::ErrorKind::InvalidInput));
        match piece {
            Piece::All => span(&mut file, self.all),
            Piece::Sums(at) => self.sums_of(place(at)?),
            Piece::Bounds(at) => place(at).and_then(|[_, bounds, _]| span(&mut file, bounds)),
            Piece::Extents(at) => place(at).and_then(|[.., extents]| span(&mut file, extents)),
        }
    }
}
