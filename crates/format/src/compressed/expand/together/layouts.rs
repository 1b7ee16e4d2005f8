//! How records begin: half a byte for each column, and so where their short values are. The records of a table begin in few
//! ways, so that most records need only be compared with one that was read before.

use crate::PageBytes;
use crate::compressed::record::{CdHead, Descriptor};

/// The half-bytes that describe columns, but for those of short values, which are between the second and the third.
pub(super) const NULL: u8 = 0;
pub(super) const EMPTY: u8 = 1;
pub(super) const LONG: u8 = 10;
pub(super) const BIT_TRUE: u8 = 11;
pub(super) const SYMBOL: u8 = 12;

/// By half-byte, the bytes in the short region.
#[expect(clippy::indexing_slicing, reason = "a constant, by each half-byte")]
const HALVES: [u8; 16] = {
    let mut halves = [0; 16];
    let mut half = 0;
    while half < 16 {
        if let Some(descriptor) = Descriptor::of(half as u8) {
            halves[half] = descriptor.short_bytes() as u8;
        }
        half += 1;
    }
    halves
};

/// Where more places of values than this are known, all layouts are forgotten before further rows are read.
const MOST_PLACES: usize = 4096;
/// Layouts that are found again, by a hash of the head.
const FOUND: usize = 256;
/// Odd, with bits everywhere: spreads what it is multiplied by to the highest bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Half a byte for a column, and the short value that it stands for.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    /// Its end, from the start of the record.
    pub(super) end: u16,
    pub(super) length: u8,
    pub(super) half: u8,
}

/// The half-bytes that some rows have for a column: a bit for each.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen(u16);

impl Seen {
    /// Stands for complex values; no column is described by this half-byte.
    const COMPLEX: u8 = 15;

    #[inline(always)]
    fn add(&mut self, half: u8) {
        self.0 |= 1 << (half & 0xF);
    }

    pub(super) fn add_complex(&mut self, is_complex: bool) {
        self.0 |= u16::from(is_complex) << Self::COMPLEX;
    }

    pub(super) fn has(self, half: u8) -> bool {
        self.0 >> half & 1 != 0
    }

    pub(super) fn has_nulls(self) -> bool {
        self.has(NULL)
    }

    pub(super) fn has_complex(self) -> bool {
        self.has(Self::COMPLEX)
    }
}

/// Ways in which records begin. A head is compared only if its column count takes one byte: what it says is then the same in every
/// rowset that has these columns.
#[derive(Default)]
pub(super) struct Layouts {
    /// By a hash of the head; the last one is that of a record that is not compared with others.
    found: Vec<Layout>,
    /// The places of one layout after those of another, each by column.
    places: Vec<Place>,
    /// First bytes of records, in whole words, all but the last one of each: no more than places.
    words: Vec<u64>,
    /// Where the places of those layouts begin that rows of this lot have: rows that are taken together.
    used: Vec<u16>,
    lot: u64,
    /// Columns of the records that are read, and the words that their heads take but for the last, with the bits of that one;
    /// none if such records are not compared with others.
    columns: u16,
    first_words: Option<(usize, u64)>,
}

/// A way in which records begin.
#[derive(Clone, Copy)]
struct Layout {
    /// The last word of their heads.
    last: u64,
    head: CdHead,
    /// Where those before it begin.
    words_at: u16,
    places_at: u16,
    /// The last lot that had such a row.
    lot: u64,
}

impl Layouts {
    /// Begins a lot: rows that are taken together.
    pub(super) fn next_lot(&mut self) {
        self.lot += 1;
        self.used.clear();
        if self.found.is_empty() || self.places.len() > MOST_PLACES {
            self.places.clear();
            self.words.clear();
            self.found.clear();
            let none = Layout { last: 0, head: CdHead::NONE, words_at: 0, places_at: 0, lot: 0 };
            self.found.resize(FOUND + 1, none);
        }
    }

    /// Begins records with this number of columns.
    pub(super) fn of_columns(&mut self, columns: u16) {
        const BYTES: usize = size_of::<u64>();
        self.columns = columns;
        self.first_words = CdHead::length_of(columns).map(|length| {
            let before = (length - 1) / BYTES;
            (before, u64::MAX >> (8 * (BYTES * (before + 1) - length)))
        });
    }

    /// The layout of the record at the start of `space`, which starts at `start` of the page, of a rowset with `columns` columns;
    /// `None` if its head is not sound. The rest of the record is not looked at.
    #[inline(always)]
    pub(super) fn of(&mut self, page: &PageBytes, start: usize, space: &[u8], columns: usize) -> Option<(CdHead, u16)> {
        let (mut place, last) = self.find(page, start).unwrap_or((FOUND, 0));
        let layout = self.found.get_mut(place)?;
        let is_known = layout.head.column_count == self.columns
            && layout.last == last
            && are_words(page, start, self.words.get(layout.words_at.into()..)?, self.first_words);
        if !is_known || place == FOUND {
            place = self.add(place, last, space, columns)?;
        } else if layout.lot != self.lot {
            layout.lot = self.lot;
            self.used.push(layout.places_at);
        }
        let layout = self.found.get(place)?;
        Some((layout.head, layout.places_at))
    }

    /// Where the layout of a record would be, and the last word of its head; `None` if the record is not compared.
    #[inline(always)]
    fn find(&self, page: &PageBytes, start: usize) -> Option<(usize, u64)> {
        let (before, mask) = self.first_words?;
        let mut mixed = 0;
        for at in 0..before {
            mixed = (mixed ^ word_at(page, start, at)?).wrapping_mul(SPREAD);
            mixed ^= mixed >> 32;
        }
        let last = word_at(page, start, before)? & mask;
        Some((((mixed ^ last).wrapping_mul(SPREAD) >> (u64::BITS - FOUND.ilog2())) as usize, last))
    }

    /// Adds the layout of the record at the start of `space` in this place.
    #[inline(never)]
    fn add(&mut self, place: usize, last: u64, space: &[u8], columns: usize) -> Option<usize> {
        let head = CdHead::read(space, columns).ok()?;
        let (places_at, words_at) = (self.places.len() as u16, self.words.len() as u16);
        if let Some((before, _)) = self.first_words {
            // The head is in the space.
            let words = space.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
            self.words.extend(words.take(before));
        }
        self.used.push(places_at);
        self.places.resize(self.places.len() + usize::from(head.column_count), Place::default());
        let mut end = head.short_at;
        let mut of_half = |half: u8| {
            let length = HALVES.get(usize::from(half)).copied().unwrap_or_default();
            // If it is beyond the record's end, the record is not sound.
            end = end.wrapping_add(length.into());
            Place { end, length, half }
        };
        let places = self.places.get_mut(places_at.into()..)?;
        for (pair, byte) in places.chunks_mut(2).zip(head.descriptors(space)) {
            if let [first, rest @ ..] = pair {
                *first = of_half(byte & 0xF);
                rest.iter_mut().for_each(|second| *second = of_half(byte >> 4));
            }
        }
        *self.found.get_mut(place)? = Layout { last, head, words_at, places_at, lot: self.lot };
        Some(place)
    }

    /// Puts into `seen`, for each of this number of columns, the half-bytes that the rows of this lot have.
    pub(super) fn seen(&self, columns: usize, seen: &mut Vec<Seen>) -> Option<()> {
        seen.clear();
        seen.resize(columns, Seen::default());
        for at in self.used.iter().map(|at| usize::from(*at)) {
            for (seen, place) in seen.iter_mut().zip(self.places.get(at..at + columns)?) {
                seen.add(place.half);
            }
        }
        Some(())
    }

    /// The place of the value of a column, by where the row's places begin.
    #[inline(always)]
    pub(super) fn place(&self, places_at: u16, column: usize) -> Option<Place> {
        self.places.get(usize::from(places_at) + column).copied()
    }
}

/// A word of a record; `None` if it is not on the page.
#[inline(always)]
fn word_at(page: &PageBytes, start: usize, word: usize) -> Option<u64> {
    let start = start + size_of::<u64>() * word;
    Some(u64::from_le_bytes(*page.get(start..start + size_of::<u64>())?.first_chunk()?))
}

/// Whether a record begins with the first of these words, all but the last one of its head.
#[inline(always)]
fn are_words(page: &PageBytes, start: usize, known: &[u64], first_words: Option<(usize, u64)>) -> bool {
    let before = first_words.map_or(0, |(before, _)| before);
    before <= known.len()
        && known.iter().take(before).enumerate().all(|(at, known)| word_at(page, start, at) == Some(*known))
}
