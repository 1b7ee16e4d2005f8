//! Pages whose records all have the same shape, audited in one go.
//!
//! Nearly all pages are like this: their records have the same status, fixed length and column count, so that each
//! column has the same place in all of them. They differ only in where they start, which columns are NULL and how long
//! the variable ones are. A few may be deleted, or have a value that is not stored plainly: these *exceptions* have the
//! shape, but their columns are examined row by row. [`SameShapeRows::load`] proves everything that [`Record::data`] and
//! [`Record::index`] would prove of each record, in one loop without look-ups; anything unusual makes it return false,
//! and nothing is known then. Checks that read a column of all rows in turn need neither parse a record again nor look
//! up the place of the column.

use std::ops::Range;

use crate::bytes::u16_at;
use crate::page::{HEADER_BYTES, PAGE_BYTES, Page, PageType, page_flags};
use crate::record::{COMPLEX, FIXED_AT, FIXED_END_AT, MIN_HEAP_RECORD_BYTES, Record, RecordKind, STATUS_B_AT};
use crate::record::{VERSION_TAG_BYTES, status};
use crate::slots::{MAX_SLOTS, SlotOrder, Span};

/// Columns whose null bits are kept; wider rows are not handled here.
const MAX_COLUMNS: u16 = 64;

/// Bits of the status byte in which records of one shape may differ.
const OPTIONAL: u8 = status::VARIABLE | status::VERSION_TAG;

/// Bits of the status byte in which a deleted row differs from a live one: 0 and 6 for data records, 3 and 5 for index
/// records.
const GHOST: u32 = (RecordKind::Primary as u32 ^ RecordKind::GhostData as u32) << 1;
const _: () = assert!(GHOST == (RecordKind::Index as u32 ^ RecordKind::GhostIndex as u32) << 1);

/// What the records of a page have in common.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct RowShape {
    /// The first bytes of a live record without the bits that may differ: for data records up to the end of the fixed
    /// part's length, for index records the status alone.
    head: u32,
    /// They are rows of an index.
    is_index: bool,
    /// They begin like data records; others begin like those of index pages.
    has_length: bool,
    /// End of the fixed part.
    fixed_end: u16,
    /// Columns that the null bitmap counts; 0 without one.
    column_count: u16,
    /// Where the variable part begins, if there is one.
    variable_at: u16,
}

/// The records of one page at a time; keeps its allocations.
#[derive(Default)]
pub struct SameShapeRows {
    shape: RowShape,
    /// By slot.
    spans: Vec<Span>,
    /// By slot: the null bitmap; stale if the shape has none.
    nulls: Vec<u64>,
    /// By slot: variable columns stored.
    variables: Vec<u16>,
    /// Slots of the exceptions.
    exceptions: Vec<u16>,
    /// Per slot: true unless the row is an exception; empty if the page has no exceptions.
    are_plain: Vec<bool>,
    ghosts: u32,
    totals: Totals,
    order: SlotOrder,
}

/// Properties of all records together.
#[derive(Clone, Copy, Default)]
struct Totals {
    /// Columns that are NULL in some record.
    nulls: u64,
    fewest_variables: u16,
    most_variables: u16,
    has_versions: bool,
    has_ghosts: bool,
    /// Some variable column of a record is complex.
    has_complex: bool,
    bytes: u32,
    padded_bytes: u32,
}

impl SameShapeRows {
    /// Audits the records of a page whose header was found possible: whether they are rows of one shape, in sequence,
    /// each whole and inside its space. If not, nothing is known.
    pub fn load(&mut self, page: Page<'_>) -> bool {
        let header = page.header();
        let count = usize::from(header.slot_count.get());
        if count == 0 || count > MAX_SLOTS || header.flags.get() & page_flags::ALIGNED4 != 0 {
            return false;
        }
        let is_index = match header.kind() {
            Some(PageType::Data) => false,
            Some(PageType::Index) => true,
            _ => return false,
        };
        if !self.spaces(page, count) {
            return false;
        }
        let index_fixed_end = is_index.then_some(header.pminlen.get());
        // An index row on a page of a table, or the reverse, is damage.
        self.audit_spaces(page.bytes(), index_fixed_end) && self.shape.is_index == is_index
    }

    /// Like `load` for records in a buffer, at most 65,535 of them, with eight more bytes after the last: the expanded
    /// form of compressed rows, which always begin like data records.
    pub fn load_expanded(&mut self, bytes: &[u8], places: &[Range<u32>]) -> bool {
        if bytes.len() > u16::MAX.into() || places.is_empty() {
            return false;
        }
        let span = |place: &Range<u32>| Span { offset: place.start as u16, length: place.len() as u16 };
        self.spans.clear();
        self.spans.extend(places.iter().map(span));
        self.audit_spaces(bytes, None)
    }

    /// Audits the records in their spaces; those of index pages have a fixed part of this length.
    fn audit_spaces(&mut self, bytes: &[u8], index_fixed_end: Option<u16>) -> bool {
        let first = self.spans.first().and_then(|first| RowShape::of(bytes_of(bytes, *first), index_fixed_end));
        let Some(shape) = first else { return false };
        self.shape = shape;
        self.nulls.resize(self.spans.len(), 0);
        self.variables.resize(self.spans.len(), 0);
        let totals = match (shape.has_length, shape.column_count) {
            (true, _) => self.records::<false, true>(bytes),
            (false, 0) => self.records::<true, false>(bytes),
            (false, _) => self.records::<true, true>(bytes),
        };
        self.totals = totals.unwrap_or_default();
        self.exceptions.clear();
        self.are_plain.clear();
        self.ghosts = 0;
        if self.totals.has_ghosts || self.totals.has_complex {
            self.find_exceptions(bytes);
        }
        totals.is_some()
    }

    /// Loads the space of each record: to the next one by place, or to the end of used space. False if a slot is empty,
    /// points into the header or beyond used space, or shares its place with another.
    fn spaces(&mut self, page: Page<'_>, count: usize) -> bool {
        let free_data = page.header().free_data.get();
        let Some(array) = page.bytes().get(PAGE_BYTES - 2 * count..) else { return false };
        self.spans.resize(count, Span::default());
        let mut is_ascending = true;
        let (mut next, mut lowest) = (free_data, u16::MAX);
        // From the last slot, which has the last record, to the first: the order of the array.
        for (entry, span) in array.as_chunks().0.iter().zip(self.spans.iter_mut().rev()) {
            let offset = u16::from_le_bytes(*entry);
            is_ascending &= offset < next;
            lowest = lowest.min(offset);
            *span = Span { offset, length: next.wrapping_sub(offset) };
            next = offset;
        }
        if usize::from(lowest) < HEADER_BYTES {
            return false;
        }
        is_ascending || self.sorted_spaces(page)
    }

    /// The same for records that are not in the order of their slots.
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

    /// Audits each record, and replaces the length of its space by its own.
    fn records<const IS_INDEX: bool, const HAS_BITMAP: bool>(&mut self, page: &[u8]) -> Option<Totals> {
        let shape = self.shape;
        let fixed_end = usize::from(shape.fixed_end);
        let variable_at = usize::from(shape.variable_at);
        let columns = u64::MAX >> (64 - shape.column_count.clamp(1, MAX_COLUMNS));
        // Few sums, so that all stay in registers.
        let (mut all_nulls, mut differences, mut all_ends) = (0, 0, 0);
        let rows = self.spans.iter_mut().zip(&mut self.nulls).zip(&mut self.variables);
        for ((span, null), variable) in rows {
            let start = usize::from(span.offset);
            let space = page.get(start..start + usize::from(span.length))?;
            let head = match IS_INDEX {
                true => u32::from(*space.first()?),
                false => u32::from_le_bytes(*space.first_chunk()?),
            };
            let difference = head ^ shape.head;
            if difference & !u32::from(OPTIONAL) != 0 && difference & !u32::from(OPTIONAL) != GHOST {
                return None;
            }
            differences |= difference;
            if HAS_BITMAP {
                // A record at the very end of the page is not handled here.
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
        let [mut bytes, mut padded_bytes] = [0; 2];
        for span in &self.spans {
            bytes += u32::from(span.length);
            padded_bytes += u32::from(span.length.max(MIN_HEAP_RECORD_BYTES as u16));
        }
        let bounds = |(least, most): (u16, u16), stored: &u16| (least.min(*stored), most.max(*stored));
        let (fewest_variables, most_variables) = self.variables.iter().fold((u16::MAX, 0), bounds);
        Some(Totals {
            nulls: all_nulls,
            fewest_variables,
            most_variables,
            has_versions: differences & u32::from(status::VERSION_TAG) != 0,
            has_ghosts: differences & GHOST != 0,
            has_complex: all_ends & COMPLEX != 0,
            bytes,
            padded_bytes,
        })
    }

    /// Finds the exceptions among the records, which are now known to be whole.
    #[cold]
    fn find_exceptions(&mut self, bytes: &[u8]) {
        let Self { shape, spans, variables, exceptions, are_plain, ghosts, .. } = self;
        let variable_at = usize::from(shape.variable_at) + 2;
        for ((slot, span), stored) in (0..).zip(spans).zip(variables) {
            let record = bytes_of(bytes, *span);
            let ends = record.get(variable_at..variable_at + 2 * usize::from(*stored)).unwrap_or_default();
            let is_complex = ends.as_chunks().0.iter().any(|end| u16::from_le_bytes(*end) & COMPLEX != 0);
            let is_ghost = record.first().is_some_and(|status| RecordKind::of(*status).is_ghost());
            *ghosts += u32::from(is_ghost);
            are_plain.push(!is_complex && !is_ghost);
            if is_complex || is_ghost {
                exceptions.push(slot);
            }
        }
    }

    /// Places of the records, by slot.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Number of deleted rows.
    pub fn ghosts(&self) -> u32 {
        self.ghosts
    }

    /// Total length of the records in bytes.
    pub fn bytes(&self) -> u32 {
        self.totals.bytes
    }

    /// The same with very short records counted as long as a forwarding stub.
    pub fn padded_bytes(&self) -> u32 {
        self.totals.padded_bytes
    }

    /// The rows of `page`, the last one loaded.
    pub fn of<'a>(&'a self, page: Page<'a>) -> Rows<'a> {
        self.of_bytes(page.bytes())
    }

    /// The rows in `bytes`, the last ones loaded.
    pub fn of_bytes<'a>(&'a self, bytes: &'a [u8]) -> Rows<'a> {
        Rows { rows: self, page: bytes }
    }
}

impl RowShape {
    /// The shape of a record; `None` if it is not handled here: moved and compressed rows, rows without null bitmap in
    /// tables, too many columns.
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
}

/// The bytes of a span; none if it ends outside.
fn bytes_of(bytes: &[u8], span: Span) -> &[u8] {
    let start = usize::from(span.offset);
    bytes.get(start..start + usize::from(span.length)).unwrap_or_default()
}

/// The rows of a page whose records have one shape.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    rows: &'a SameShapeRows,
    /// The page's bytes, or the buffer that holds the rows.
    page: &'a [u8],
}

impl<'a> Rows<'a> {
    /// Number of rows.
    pub fn count(&self) -> usize {
        self.rows.spans.len()
    }

    /// Slots of the exceptions: deleted rows, and rows with a complex column (off-row pointer, sparse vector).
    pub fn exceptions(&self) -> &'a [u16] {
        &self.rows.exceptions
    }

    /// Number of rows that are not exceptions.
    pub fn plain_count(&self) -> usize {
        self.count() - self.rows.exceptions.len()
    }

    /// Per slot: true unless the row is an exception; `None` if there are no exceptions.
    pub fn are_plain(&self) -> Option<&'a [bool]> {
        Some(&self.rows.are_plain[..]).filter(|plain| !plain.is_empty())
    }

    /// Whether they are rows of an index.
    pub fn is_index(&self) -> bool {
        self.rows.shape.is_index
    }

    /// Columns counted by their null bitmaps; 0 if they have none.
    pub fn column_count(&self) -> u16 {
        self.rows.shape.column_count
    }

    /// End of their fixed part.
    pub fn fixed_end(&self) -> u16 {
        self.rows.shape.fixed_end
    }

    /// The largest number of variable columns stored in a row.
    pub fn most_variables(&self) -> u16 {
        self.rows.totals.most_variables
    }

    /// The smallest.
    pub fn fewest_variables(&self) -> u16 {
        self.rows.totals.fewest_variables
    }

    /// Whether some row ends with a version tag.
    pub fn has_versions(&self) -> bool {
        self.rows.totals.has_versions
    }

    /// The version tags of those that have one.
    pub fn version_tags(&self) -> impl Iterator<Item = &'a [u8; VERSION_TAG_BYTES]> + 'a {
        let page = self.page;
        let records = self.rows.spans.iter().map(move |span| bytes_of(page, *span));
        let has_tag = |record: &&[u8]| record.first().is_some_and(|status| status & status::VERSION_TAG != 0);
        records.filter(has_tag).filter_map(|record| record.last_chunk())
    }

    /// Null bits, the first lowest, that are set in some row.
    pub fn nulls(&self) -> u64 {
        self.rows.totals.nulls
    }

    /// Null bits by slot; empty if none is set in any row.
    pub fn nulls_of_each(&self) -> &'a [u64] {
        if self.nulls() == 0 { &[] } else { &self.rows.nulls }
    }

    /// The row in a slot.
    pub fn record(&self, slot: usize) -> Option<Record<'a>> {
        let span = self.rows.spans.get(slot)?;
        let bytes = bytes_of(self.page, *span);
        match self.rows.shape.has_length {
            true => Record::data(bytes).ok(),
            false => Record::index(bytes, self.fixed_end()).ok(),
        }
    }

    /// Whether all rows have `length` bytes at `offset` in their fixed part.
    pub fn has_fixed(&self, offset: u16, length: u16) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.fixed_end())
    }

    /// The `N` bytes at `offset` of each row, by slot. They are inside the row if [`Self::has_fixed`] says so.
    #[inline(always)]
    pub fn fixed<const N: usize>(&self, offset: u16) -> impl Iterator<Item = [u8; N]> + 'a {
        let page = self.page;
        self.rows.spans.iter().map(move |span| {
            let start = usize::from(span.offset) + usize::from(offset);
            page.get(start..start + N).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; N])
        })
    }

    /// The `N` bytes at `offset` of the row in a slot.
    #[inline(always)]
    pub fn fixed_of<const N: usize>(&self, slot: usize, offset: u16) -> [u8; N] {
        let start = self.rows.spans.get(slot).map_or(0, |span| usize::from(span.offset)) + usize::from(offset);
        self.page.get(start..start + N).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; N])
    }

    /// The `length` bytes at `offset` of each row, by slot.
    pub fn slices(&self, offset: u16, length: u16) -> impl Iterator<Item = &'a [u8]> + 'a {
        let page = self.page;
        self.rows.spans.iter().map(move |span| {
            let start = usize::from(span.offset) + usize::from(offset);
            page.get(start..start + usize::from(length)).unwrap_or_default()
        })
    }

    /// Variable column `number`, counted from 1, of each row, by slot; empty if a row does not store it. For a complex
    /// column, the bytes stored in the row.
    #[inline(always)]
    pub fn variable(&self, number: u16) -> impl Iterator<Item = &'a [u8]> + 'a {
        let page = self.page;
        let variable_at = usize::from(self.rows.shape.variable_at);
        let entry = variable_at + 2 * usize::from(number);
        self.rows.spans.iter().zip(&self.rows.variables).map(move |(span, &stored)| {
            if number == 0 || number > stored {
                return &[][..];
            }
            let start = usize::from(span.offset);
            let read = |at: usize| u16_at(page, start + at).unwrap_or_default() & !COMPLEX;
            // The entry before the first is the count.
            let first = if number == 1 { variable_at + 2 + 2 * usize::from(stored) } else { read(entry - 2).into() };
            page.get(start + first..start + usize::from(read(entry))).unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests;
