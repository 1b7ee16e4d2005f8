//! Audits, in one pass, pages on which most records have the same shape.
//!
//! Records of one shape have equal status bytes, fixed lengths and column counts, so each column has the same place in
//! all of them. They may differ in their NULL columns and in the lengths of their variable columns. On nearly all
//! pages, all records have one shape. Some records of the shape may be *exceptions*: ghosts, or rows with a complex
//! column. The columns of exceptions must be examined row by row. On a data page, some slots may be empty, and some may
//! contain *others*: records of another shape, such as moved rows, forwarding stubs, and rows that were written before
//! a column was added.
//!
//! [`SameShapeRows::load`] proves everything that [`Record::data`] and [`Record::index`] would prove of each record, in
//! one loop without look-ups. If it finds anything unusual, it returns false, and the results are undefined. After it
//! returns true, a check can read one column of all rows at a time, without parsing each record again to find the
//! column.

mod alike;
mod exceptions;
mod expanded;
mod vectors;
mod view;

use crate::bytes::u16_at;
use crate::page::{HEADER_BYTES, PAGE_BYTES, Page, PageType, page_flags};
use crate::record::{COMPLEX, FIXED_AT, FIXED_END_AT, MIN_HEAP_RECORD_BYTES, Record, RecordKind, STATUS_B_AT};
use crate::record::{VERSION_TAG_BYTES, status};
use crate::slots::{MAX_SLOTS, SlotOrder, Span};
use vectors::Soundness;

pub use exceptions::Exception;
pub use vectors::Vectors;
pub use view::Rows;

/// The largest number of columns of a shape. It limits the number of words in which each null bitmap is stored.
/// [`SameShapeRows`] does not load rows with more columns.
const MAX_COLUMNS: u16 = 1024;
const WORD_BITS: u16 = 64;

/// The bits of the status byte in which records of one shape may differ.
const OPTIONAL: u8 = status::VARIABLE | status::VERSION_TAG;

/// The bits of the status byte in which a ghost differs from a live row. The record types are 0 and 6 on data pages, 3
/// and 5 on index pages.
const GHOST: u32 = (RecordKind::Primary as u32 ^ RecordKind::GhostData as u32) << 1;
const _: () = assert!(GHOST == (RecordKind::Index as u32 ^ RecordKind::GhostIndex as u32) << 1);

/// The properties that the records of a page share.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct RowShape {
    /// The first bytes of a live record, without the bits that may differ. For a data record, these are the bytes up to
    /// and including the length of its fixed part; for an index record, only the status byte.
    head: u32,
    /// Whether the records are rows of an index.
    is_index: bool,
    /// Whether the records begin like data records, with the length of the fixed part. Otherwise they begin like
    /// records of index pages.
    has_length: bool,
    /// The end of the fixed part.
    fixed_end: u16,
    /// The number of columns in the null bitmap; 0 without a null bitmap.
    column_count: u16,
    /// The start of the variable part, if a record has one.
    variable_at: u16,
}

/// The records of one page. Each page reuses the memory of the page before.
#[derive(Default)]
pub struct SameShapeRows {
    shape: RowShape,
    /// The place of each row's record.
    spans: Vec<Span>,
    /// The slot of each row; empty if every slot has a row of the shape.
    slots: Vec<u16>,
    /// If `slots` is used: the place of the record in each slot. Otherwise a work buffer.
    places: Vec<Span>,
    /// If `slots` is used: the slots that have records of another shape.
    others: Vec<u16>,
    /// The null bitmaps: the first word of every row, then the second word of every row, and so on. Out of date if the
    /// shape has no null bitmap.
    nulls: Vec<u64>,
    /// For each word of the null bitmaps: the bits that are set in at least one row.
    any_nulls: Vec<u64>,
    /// The number of variable columns that each row stores.
    variables: Vec<u16>,
    /// The exceptions, and the records of another shape, by ascending slot.
    exceptions: Vec<Exception>,
    /// False for each row that is an exception; empty if no row is an exception.
    are_plain: Vec<bool>,
    /// False for each row that is a ghost; empty if no row is an exception.
    are_live: Vec<bool>,
    /// The number of rows that are not exceptions.
    plain: usize,
    /// The number of live rows that have a complex column.
    complex: usize,
    /// The variable columns that are complex in some live row. The first column is the lowest bit; the highest bit
    /// means any column from the 64th on.
    complex_columns: u64,
    /// The place of the sparse vector of each row; empty for a ghost, and for a row without a sparse vector. Out of
    /// date while `soundness` is `Unknown`.
    vectors: Vec<Span>,
    /// The proven properties of the vectors.
    soundness: Soundness,
    /// Whether the last page had vectors, so that the next page probably has some too.
    expects_vectors: bool,
    ghosts: u32,
    totals: Totals,
    order: SlotOrder,
}

/// Properties of all rows of the shape together.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Totals {
    fewest_variables: u16,
    most_variables: u16,
    has_versions: bool,
    has_ghosts: bool,
    /// Whether some variable column of some record is complex.
    has_complex: bool,
    bytes: u32,
    padded_bytes: u32,
}

impl SameShapeRows {
    /// Audits the records of a page. Returns true if the header of the page is possible, most records are rows of one
    /// shape, and each record is complete and inside its space. If the result is false, the contents of `self` are
    /// undefined. Empty slots are accepted only if `may_be_empty` is true.
    pub fn load(&mut self, page: Page<'_>, may_be_empty: bool) -> bool {
        let header = page.header();
        let count = usize::from(header.slot_count.get());
        let is_possible = (1..=MAX_SLOTS).contains(&count) && usize::from(header.free_data.get()) <= PAGE_BYTES;
        if !is_possible || header.flags.get() & page_flags::ALIGNED4 != 0 {
            return false;
        }
        let is_index = match header.kind() {
            Some(PageType::Data) => false,
            Some(PageType::Index) => true,
            _ => return false,
        };
        self.slots.clear();
        let index_fixed_end = is_index.then_some(header.pminlen.get());
        // An index row on a data page, or a data row on an index page, is damage.
        if self.load_alike(page, count, index_fixed_end) {
            return self.shape.is_index == is_index;
        }
        let Some((has_empty, is_ascending)) = self.spaces(page, count) else { return false };
        if !has_empty && !is_ascending && self.audit_alike(page.bytes(), index_fixed_end) {
            return self.shape.is_index == is_index;
        }
        let is_one = !has_empty && {
            let first =
                self.spans.first().and_then(|first| RowShape::of(bytes_of(page.bytes(), *first), index_fixed_end));
            first.is_some_and(|shape| self.audit(page.bytes(), shape))
        };
        match is_one {
            true => self.shape.is_index == is_index,
            false if is_index || has_empty && !may_be_empty => false,
            false => {
                self.spaces(page, count);
                self.audit_most(page.bytes()) && !self.shape.is_index
            }
        }
    }

    /// Audits the records if some slots are empty or have a record of another shape. `spans` must contain the space of
    /// each record.
    fn audit_most(&mut self, bytes: &[u8]) -> bool {
        std::mem::swap(&mut self.spans, &mut self.places);
        let shape_of = |place: &Span| RowShape::of(bytes_of(bytes, *place), None);
        let Some(mut shape) = self.places.iter().find_map(shape_of) else { return false };
        self.gather(bytes, shape);
        // Perhaps only a minority of the rows has the shape of the first row.
        if self.spans.len() <= self.others.len()
            && let Some(second) = self.others.iter().find_map(|slot| shape_of(self.places.get(usize::from(*slot))?))
        {
            shape = second;
            self.gather(bytes, shape);
        }
        if self.spans.len() <= self.others.len() || !self.audit(bytes, shape) {
            return false;
        }
        for (slot, span) in self.slots.iter().zip(&self.spans) {
            if let Some(place) = self.places.get_mut(usize::from(*slot)) {
                *place = *span;
            }
        }
        for slot in &self.others {
            let Some(place) = self.places.get_mut(usize::from(*slot)) else { return false };
            let Ok(record) = Record::data(bytes_of(bytes, *place)) else { return false };
            place.length = record.bytes().len() as u16;
        }
        self.exceptions.extend(self.others.iter().map(|slot| Exception { slot: *slot, is_complex: false }));
        self.exceptions.sort_unstable_by_key(|exception| exception.slot);
        true
    }

    /// Separates the records that may have this shape from all other records.
    fn gather(&mut self, bytes: &[u8], shape: RowShape) {
        let Self { spans, slots, others, places, .. } = self;
        spans.clear();
        slots.clear();
        others.clear();
        for (slot, space) in (0..).zip(places).filter(|(_, space)| space.length > 0) {
            if shape.may_be_of(bytes_of(bytes, *space)) {
                spans.push(*space);
                slots.push(slot);
            } else {
                others.push(slot);
            }
        }
    }

    /// Audits the records, whose spaces are in `spans`. Returns false if a record does not have the shape, or is not
    /// inside its space.
    fn audit(&mut self, bytes: &[u8], shape: RowShape) -> bool {
        if !self.start(bytes, shape) {
            return false;
        }
        let totals = match (shape.has_length, shape.column_count) {
            (true, _) => self.records::<false, true>(bytes),
            (false, 0) => self.records::<true, false>(bytes),
            (false, _) => self.records::<true, true>(bytes),
        };
        let Some(totals) = totals else { return false };
        self.finish(bytes, totals);
        self.nulls_from(bytes, 1)
    }

    /// Sizes the buffers for records of this shape. Returns false if `bytes` is too small to contain these records.
    fn start(&mut self, bytes: &[u8], shape: RowShape) -> bool {
        let words = usize::from(shape.column_count.div_ceil(WORD_BITS).max(1));
        // A damaged record may claim more columns than it has. All null bitmaps together cannot be longer than the
        // page.
        if (words - 1) * size_of::<u64>() * self.spans.len() > bytes.len() {
            return false;
        }
        self.shape = shape;
        self.nulls.resize(words * self.spans.len(), 0);
        self.variables.resize(self.spans.len(), 0);
        self.any_nulls.clear();
        self.any_nulls.resize(words, 0);
        true
    }

    /// Stores the span of each record in `spans`. A span ends at the next record on the page or, for the last record,
    /// at the end of used space. Returns two flags: whether some slots are empty, and whether the offsets of the used
    /// slots ascend. `None` if a slot points into the header or beyond used space, or has the offset of another slot.
    fn spaces(&mut self, page: Page<'_>, count: usize) -> Option<(bool, bool)> {
        let free_data = page.header().free_data.get();
        let array = page.bytes().get(PAGE_BYTES - 2 * count..)?;
        self.spans.resize(count, Span::default());
        let (mut is_ascending, mut has_empty) = (true, false);
        let (mut next, mut lowest) = (free_data, u16::MAX);
        // The array begins with the last slot, which usually has the last record.
        for (entry, span) in array.as_chunks().0.iter().zip(self.spans.iter_mut().rev()) {
            let offset = u16::from_le_bytes(*entry);
            if offset == 0 {
                *span = Span::default();
                has_empty = true;
                continue;
            }
            is_ascending &= offset < next;
            lowest = lowest.min(offset);
            *span = Span { offset, length: next.wrapping_sub(offset) };
            next = offset;
        }
        (usize::from(lowest) >= HEADER_BYTES && (is_ascending || self.sorted_spaces(page)))
            .then_some((has_empty, is_ascending))
    }

    /// Stores in `spans` the spans of records that are not in the order of their slots. Returns false if two records
    /// have the same offset, or if a record is beyond used space.
    #[cold]
    fn sorted_spaces(&mut self, page: Page<'_>) -> bool {
        self.order.load(page);
        let mut next = page.header().free_data.get();
        for entry in self.order.entries().iter().rev() {
            if entry.offset >= next {
                return false;
            }
            if let Some(span) = self.spans.get_mut(usize::from(entry.slot)) {
                *span = Span { offset: entry.offset, length: next - entry.offset };
            }
            next = entry.offset;
        }
        true
    }

    /// Audits each record, and shortens its span from the space of the record to the length of the record.
    fn records<const IS_INDEX: bool, const HAS_BITMAP: bool>(&mut self, page: &[u8]) -> Option<Totals> {
        let shape = self.shape;
        let fixed_end = usize::from(shape.fixed_end);
        let variable_at = usize::from(shape.variable_at);
        let columns = mask(shape.column_count);
        // There are only a few accumulators, so that all of them stay in registers.
        let (mut all_nulls, mut differences, mut all_ends) = (0, 0, 0);
        let rows = self.spans.iter_mut().zip(&mut self.nulls).zip(&mut self.variables);
        for ((span, null), variable) in rows {
            let start = usize::from(span.offset);
            let space = page.get(start..start + usize::from(span.length))?;
            let head = if IS_INDEX { u32::from(*space.first()?) } else { u32::from_le_bytes(*space.first_chunk()?) };
            let difference = head ^ shape.head;
            if difference & !u32::from(OPTIONAL) != 0 && difference & !u32::from(OPTIONAL) != GHOST {
                return None;
            }
            differences |= difference;
            if HAS_BITMAP {
                // Ten bytes are read from the column count on. If fewer bytes follow the column count of a record at
                // the end of the page, this function does not load the page.
                let bitmap: &[u8; 10] = page.get(start + fixed_end..)?.first_chunk()?;
                let (count, bits) = bitmap.split_first_chunk()?;
                if u16::from_le_bytes(*count) != shape.column_count {
                    return None;
                }
                *null = u64::from_le_bytes(*bits.first_chunk()?) & columns;
                all_nulls |= *null;
            }
            let (mut end, mut stored) = (variable_at, 0);
            if head & u32::from(status::VARIABLE) != 0 {
                stored = u16_at(space, variable_at)?;
                let ends = space.get(variable_at + 2..variable_at + 2 + 2 * usize::from(stored))?;
                end += 2 + ends.len();
                for next in ends.as_chunks().0 {
                    let next = u16::from_le_bytes(*next);
                    all_ends |= next;
                    let next = usize::from(next & !COMPLEX);
                    if next < end {
                        return None;
                    }
                    end = next;
                }
            }
            *variable = stored;
            if head & u32::from(status::VERSION_TAG) != 0 {
                end += VERSION_TAG_BYTES;
            }
            if end > space.len() {
                return None;
            }
            span.length = end as u16;
        }
        let [bytes, padded_bytes] = self.lengths();
        let bounds = |(least, most): (u16, u16), stored: &u16| (least.min(*stored), most.max(*stored));
        let (fewest_variables, most_variables) = self.variables.iter().fold((u16::MAX, 0), bounds);
        *self.any_nulls.first_mut()? = all_nulls;
        Some(Totals {
            fewest_variables,
            most_variables,
            has_versions: differences & u32::from(status::VERSION_TAG) != 0,
            has_ghosts: differences & GHOST != 0,
            has_complex: all_ends & COMPLEX != 0,
            bytes,
            padded_bytes,
        })
    }

    /// Returns two totals in bytes: the total length of all records, and the same total with the length of a forwarding
    /// stub for each record that is shorter than a stub.
    fn lengths(&self) -> [u32; 2] {
        let [mut bytes, mut padded_bytes] = [0; 2];
        for span in &self.spans {
            bytes += u32::from(span.length);
            padded_bytes += u32::from(span.length.max(MIN_HEAP_RECORD_BYTES as u16));
        }
        [bytes, padded_bytes]
    }

    /// Reads the null bitmaps of all rows, from the 64-bit word with number `first` on. Returns false if a bitmap may
    /// end outside the page.
    fn nulls_from(&mut self, page: &[u8], first: usize) -> bool {
        (first..self.any_nulls.len()).all(|word| self.null_word(page, word))
    }

    fn null_word(&mut self, page: &[u8], word: usize) -> bool {
        let Self { shape, spans, nulls, any_nulls, .. } = self;
        let at = usize::from(shape.fixed_end) + 2 + 8 * word;
        let columns = mask(shape.column_count - WORD_BITS * word as u16);
        let mut any = 0;
        for (span, null) in spans.iter().zip(nulls.iter_mut().skip(word * spans.len())) {
            let Some(bits) = page.get(usize::from(span.offset) + at..).and_then(|bits| bits.first_chunk()) else {
                return false;
            };
            *null = u64::from_le_bytes(*bits) & columns;
            any |= *null;
        }
        any_nulls.get_mut(word).map(|of_word| *of_word = any).is_some()
    }

    /// The places of all records by slot, including records of another shape. An empty slot has length 0.
    pub fn spans(&self) -> &[Span] {
        if self.slots.is_empty() { &self.spans } else { &self.places }
    }

    /// The number of rows of the shape, including ghosts.
    pub fn count(&self) -> usize {
        self.spans.len()
    }

    /// The slots of the records of another shape. [`Record::data`] found each of these records sound.
    pub fn others(&self) -> &[u16] {
        if self.slots.is_empty() { &[] } else { &self.others }
    }

    /// The number of ghosts among the rows of the shape.
    pub fn ghosts(&self) -> u32 {
        self.ghosts
    }

    /// Total length of the rows of the shape in bytes.
    pub fn bytes(&self) -> u32 {
        self.totals.bytes
    }

    /// The total length in bytes of the rows of the shape. A record that is shorter than a forwarding stub is counted
    /// with the length of a forwarding stub.
    pub fn padded_bytes(&self) -> u32 {
        self.totals.padded_bytes
    }

    /// The rows of the shape on `page`, which must be the page loaded last.
    pub fn of<'a>(&'a self, page: Page<'a>) -> Rows<'a> {
        self.of_bytes(page.bytes())
    }

    /// The rows of the shape in `bytes`, which must be the buffer loaded last.
    pub fn of_bytes<'a>(&'a self, bytes: &'a [u8]) -> Rows<'a> {
        Rows::new(self, bytes)
    }
}

impl RowShape {
    /// The shape of the record in `space`. `None` if this module does not handle such a record: a moved or compressed
    /// row, a row without a null bitmap on a data page, or a row with too many columns.
    fn of(space: &[u8], index_fixed_end: Option<u16>) -> Option<Self> {
        let status = *space.first()?;
        let (is_index, is_ghost) = match RecordKind::of(status) {
            RecordKind::Primary => (false, false),
            RecordKind::GhostData => (false, true),
            RecordKind::Index => (true, false),
            RecordKind::GhostIndex => (true, true),
            _ => return None,
        };
        let has_length = index_fixed_end.is_none();
        if status & (status::COMPRESSED | status::RESERVED) != 0 || !has_length && !is_index {
            return None;
        }
        let has_bitmap = status & status::NULL_BITMAP != 0;
        let (head, fixed_end) = match index_fixed_end {
            Some(fixed_end) => (u32::from(status), fixed_end),
            None => (u32::from_le_bytes(*space.first_chunk()?), u16_at(space, FIXED_END_AT)?),
        };
        // The second status byte of a data record is 0.
        if has_length && (!has_bitmap || space.get(STATUS_B_AT) != Some(&0) || fixed_end < FIXED_AT) || fixed_end == 0 {
            return None;
        }
        let column_count = if has_bitmap { u16_at(space, fixed_end.into())? } else { 0 };
        if column_count > MAX_COLUMNS || has_bitmap && column_count == 0 {
            return None;
        }
        let bitmap_bytes = if has_bitmap { 2 + column_count.div_ceil(8) } else { 0 };
        let variable_at = fixed_end.checked_add(bitmap_bytes)?;
        let head = head & !u32::from(OPTIONAL) ^ if is_ghost { GHOST } else { 0 };
        Some(Self { head, is_index, has_length, fixed_end, column_count, variable_at })
    }

    /// Whether a data record has the first bytes and the column count of this shape.
    fn may_be_of(&self, space: &[u8]) -> bool {
        let difference = space.first_chunk().map(|head| (u32::from_le_bytes(*head) ^ self.head) & !u32::from(OPTIONAL));
        difference.is_some_and(|difference| difference == 0 || difference == GHOST)
            && u16_at(space, self.fixed_end.into()) == Some(self.column_count)
    }
}

/// The bits that a word of a null bitmap uses, as a mask. `columns` is the number of columns from the first bit of the
/// word on; with 64 columns or more, the word uses all 64 bits.
fn mask(columns: u16) -> u64 {
    u64::MAX >> (WORD_BITS - columns.clamp(1, WORD_BITS))
}

/// The bytes of a span; empty if the span is not inside `bytes`.
#[inline]
fn bytes_of(bytes: &[u8], span: Span) -> &[u8] {
    let start = usize::from(span.offset);
    bytes.get(start..start + usize::from(span.length)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
