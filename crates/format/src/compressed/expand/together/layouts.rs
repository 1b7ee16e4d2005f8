//! Remembers the heads of records. A head has half a byte for each column, and so determines the places of the short
//! values. The records of a table have few different heads. So most heads need not be read: they equal a head that was
//! read before.

use crate::PageBytes;
use crate::compressed::record::{CdHead, CdKind, Descriptor};

/// The half-byte of a NULL column. The half-bytes of short values are the numbers between `EMPTY` and `LONG`, and need
/// no constants.
pub(super) const NULL: u8 = 0;
pub(super) const EMPTY: u8 = 1;
pub(super) const LONG: u8 = 10;
pub(super) const BIT_TRUE: u8 = 11;
pub(super) const SYMBOL: u8 = 12;

/// The number of bytes of a column in the short region, by its half-byte.
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

/// The maximum number of places to keep in all layouts together. If there are more, all layouts are dropped before the
/// next rows are expanded.
pub(super) const MOST_PLACES: usize = 4096;
/// The number of layouts that can be found by a hash of the head.
const FOUND: usize = 256;
/// A hash multiplier. It is odd and has set bits throughout, so a multiplication spreads a number to the highest bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The half-byte of a column, and the place of its value in the short region.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    /// The end of the value, as an offset from the start of the record.
    pub(super) end: u16,
    pub(super) length: u8,
    pub(super) half: u8,
}

/// The half-bytes that a run of rows has in one column: bit N is set if some row has half-byte N.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen(u16);

impl Seen {
    fn add(&mut self, half: u8) {
        self.0 |= 1 << (half & 0xF);
    }

    pub(super) fn has(self, half: u8) -> bool {
        self.0 >> half & 1 != 0
    }

    pub(super) fn has_nulls(self) -> bool {
        self.has(NULL)
    }
}

/// The kinds of records on a page.
#[derive(Clone, Copy, Default)]
pub(super) struct Kinds {
    pub(super) has_data: bool,
    pub(super) has_index: bool,
    pub(super) has_ghosts: bool,
    /// Whether some records end with a version tag.
    pub(super) has_versions: bool,
}

impl Kinds {
    fn add(&mut self, head: CdHead) {
        let kind = CdKind::of(head.status);
        let is_index = matches!(kind, CdKind::Index | CdKind::GhostIndex);
        self.has_data |= !is_index;
        self.has_index |= is_index;
        self.has_ghosts |= kind.is_ghost();
        self.has_versions |= head.is_versioned();
    }
}

/// The known layouts of records. A head is compared with known heads only if its column count has one byte, because the
/// meaning of such a head does not depend on the rowset. For such heads, `first_words` has the number of 8-byte words
/// before the last word of the head, and a mask for the last word.
#[derive(Default)]
pub(super) struct Layouts {
    /// The layouts. The index of a layout is a hash of its head. The last entry holds the layout of the most recent
    /// record whose head cannot be compared.
    found: Vec<Layout>,
    /// The places of all layouts, one layout after another; within a layout, by column.
    places: Vec<Place>,
    /// The 8-byte words of each head except its last word. There are never more words than places.
    words: Vec<u64>,
    /// The half-bytes seen in this lot, by column. A lot is a run of consecutive rows of a page that have the same
    /// column count. A lot also ends when the layouts are dropped.
    seen: Vec<Seen>,
    lot: u64,
    kinds: Kinds,
    /// The column count of the records in this lot.
    columns: u16,
    first_words: Option<(usize, u64)>,
}

/// The layout of all records with one head.
#[derive(Clone, Copy)]
struct Layout {
    /// The last 8-byte word of the head, masked.
    last: u64,
    head: CdHead,
    /// The index in `words` of the first word of the head.
    words_at: u16,
    places_at: u16,
    /// The number of the last lot that had a row with this head.
    lot: u64,
}

impl Layouts {
    /// Starts a new page.
    pub(super) fn next_page(&mut self) {
        self.forget_many();
        // The column count of the records on this page is not known yet.
        self.first_words = None;
        self.kinds = Kinds::default();
    }

    /// The kinds of records on this page.
    pub(super) fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// Drops the layouts if there are too many. All rows that refer to a layout must already be expanded.
    pub(super) fn forget_many(&mut self) {
        if self.found.is_empty() || self.places.len() > MOST_PLACES {
            self.places.clear();
            self.words.clear();
            self.found.clear();
            let none = Layout { last: 0, head: CdHead::NONE, words_at: 0, places_at: 0, lot: 0 };
            self.found.resize(FOUND + 1, none);
            self.next_lot();
        }
    }

    /// Starts a lot: a run of records with this column count.
    pub(super) fn of_columns(&mut self, columns: u16) {
        const BYTES: usize = size_of::<u64>();
        self.columns = columns;
        self.first_words = CdHead::length_of(columns).map(|length| {
            let before = (length - 1) / BYTES;
            (before, u64::MAX >> (8 * (BYTES * (before + 1) - length)))
        });
        self.next_lot();
    }

    fn next_lot(&mut self) {
        self.lot += 1;
        self.seen.clear();
        self.seen.resize(self.columns.into(), Seen::default());
    }

    /// Returns the head of the record at `start`, and the index in `places` of the first place of its layout, if the
    /// layout of an equal head is known. `None` if it is not known, or if the head cannot be compared. Heads with
    /// different column counts are never equal.
    #[inline(always)]
    pub(super) fn known(&mut self, page: &PageBytes, start: usize) -> Option<(CdHead, u16)> {
        let (place, last) = self.find(page, start)?;
        let layout = self.found.get_mut(place)?;
        let is_known = layout.head.column_count == self.columns
            && layout.last == last
            && are_words(page, start, self.words.get(layout.words_at.into()..)?, self.first_words);
        if !is_known {
            return None;
        }
        let (head, places_at) = (layout.head, layout.places_at);
        if layout.lot != self.lot {
            layout.lot = self.lot;
            self.see(head, places_at);
        }
        Some((head, places_at))
    }

    /// Returns the index of the layout for a record, which is a hash of the record's head, and the last word of the
    /// head. `None` if the head is not compared.
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

    /// Adds the layout of the record at the start of `space`, which begins at offset `start` of the page. `columns` is
    /// the number of columns of the rowset. Only the head of the record is examined. `None` if the head is not sound.
    #[inline(never)]
    pub(super) fn add(
        &mut self,
        page: &PageBytes,
        start: usize,
        space: &[u8],
        columns: usize,
    ) -> Option<(CdHead, u16)> {
        let (place, last) = self.find(page, start).unwrap_or((FOUND, 0));
        let head = CdHead::read(space, columns).ok()?;
        let (places_at, words_at) = (self.places.len() as u16, self.words.len() as u16);
        if let Some((before, _)) = self.first_words {
            // `CdHead::read` proved that the head is inside the space.
            let words = space.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
            self.words.extend(words.take(before));
        }
        self.places.resize(self.places.len() + usize::from(head.column_count), Place::default());
        let mut end = head.short_at;
        let mut of_half = |half: u8| {
            let length = HALVES.get(usize::from(half)).copied().unwrap_or_default();
            // If the end is beyond the record, a later test rejects the record, so wrapping does no harm.
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
        self.see(head, places_at);
        Some((head, places_at))
    }

    /// Notes that some row of this lot has this head. `places_at` is the index of the first place of the head's layout.
    #[inline(never)]
    fn see(&mut self, head: CdHead, places_at: u16) {
        self.kinds.add(head);
        for (seen, place) in self.seen.iter_mut().zip(self.places.iter().skip(places_at.into())) {
            seen.add(place.half);
        }
    }

    /// The half-bytes that the rows of this lot have in one column.
    pub(super) fn seen(&self, column: usize) -> Seen {
        self.seen.get(column).copied().unwrap_or_default()
    }

    /// The place of the value of a column. `places_at` is the index of the first place of the row.
    #[inline(always)]
    pub(super) fn place(&self, places_at: u16, column: usize) -> Option<Place> {
        self.places.get(usize::from(places_at) + column).copied()
    }
}

/// An 8-byte word of the record at `start`; `None` if it is not inside the page.
#[inline(always)]
fn word_at(page: &PageBytes, start: usize, word: usize) -> Option<u64> {
    let start = start + size_of::<u64>() * word;
    Some(u64::from_le_bytes(*page.get(start..start + size_of::<u64>())?.first_chunk()?))
}

/// Whether the record at `start` begins with the known words, which are all words of a head except the last.
#[inline(always)]
fn are_words(page: &PageBytes, start: usize, known: &[u64], first_words: Option<(usize, u64)>) -> bool {
    let before = first_words.map_or(0, |(before, _)| before);
    before <= known.len()
        && known.iter().take(before).enumerate().all(|(at, known)| word_at(page, start, at) == Some(*known))
}
