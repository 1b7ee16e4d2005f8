//! Pages whose records are all of one form, audited at one go.
//!
//! Nearly every page is such: its records have the same status, fixed length and column count, so that each column lies at
//! the same place in all of them, and they differ only in where they start, which columns are NULL and how long the
//! variable ones are. A few may be deleted, or have a value that is not stored plainly: these *exceptions* have the form, and
//! what is in their columns is looked at row by row. [`UniformRows::load`] proves all that [`Record::data`] and [`Record::index`] would prove of each
//! record, in one loop without a look-up; what is unusual makes it say no, and nothing is known then. Checks that read a
//! column of all rows, one after the other, need neither parse a record again nor look up where the column is.

use std::ops::Range;

use crate::bytes::u16_at;
use crate::page::{HEADER_BYTES, PAGE_BYTES, Page, PageType, page_flags};
use crate::record::{COMPLEX, FIXED_AT, FIXED_END_AT, MIN_HEAP_RECORD_BYTES, Record, RecordKind, STATUS_B_AT};
use crate::record::{VERSION_TAG_BYTES, status};
use crate::slots::{MAX_SLOTS, SlotOrder, Span};

/// Columns whose null bits are kept; pages of wider rows are not uniform.
const MAX_COLUMNS: u16 = 64;

/// Bits of the status byte in which records of one form may differ.
const OPTIONAL: u8 = status::VARIABLE | status::VERSION_TAG;

/// Bits of the status byte in which a deleted row differs from a living one: 0 and 6, of data records, or 3 and 5.
const GHOST: u32 = (RecordKind::Primary as u32 ^ RecordKind::GhostData as u32) << 1;
const _: () = assert!(GHOST == (RecordKind::Index as u32 ^ RecordKind::GhostIndex as u32) << 1);

/// What the records of a page have in common.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Form {
    /// The first bytes of a living one without the bits that may differ: of data records up to the end of the fixed part's length, of
    /// index records the status alone.
    head: u32,
    /// They are rows of an index.
    is_index: bool,
    /// They begin as data records do; others are those of index pages.
    has_length: bool,
    /// End of the fixed part.
    fixed_end: u16,
    /// Columns that the null bitmap counts; 0 without one.
    column_count: u16,
    /// Where the variable part begins, if there is one.
    variable_at: u16,
}

/// The records of one page at a time; keeps what it allocates.
#[derive(Default)]
pub struct UniformRows {
    form: Form,
    /// By slot.
    spans: Vec<Span>,
    /// By slot: the null bitmap; stale where the form has none.
    nulls: Vec<u64>,
    /// By slot: variable columns stored.
    variables: Vec<u16>,
    /// Slots of the exceptions.
    exceptions: Vec<u16>,
    /// By slot, whether it is none; empty where there is none.
    are_plain: Vec<bool>,
    ghosts: u32,
    totals: Totals,
    order: SlotOrder,
}

/// What is known of all records together.
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

impl UniformRows {
    /// Audits the records of a page whose header was found possible: whether they are rows of one form that lie one behind
    /// the other, each whole and inside its space. If not, nothing is known.
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
        // A row of an index on a page of a table, or the other way round, is damage.
        self.forms(page.bytes(), index_fixed_end) && self.form.is_index == is_index
    }

    /// The same for records that lie in other bytes than a page's, at most 65,535 of them, with eight more behind the last:
    /// those that compressed rows stand for, which begin as data records do, whatever they are.
    pub fn load_expanded(&mut self, bytes: &[u8], places: &[Range<u32>]) -> bool {
        if bytes.len() > u16::MAX.into() || places.is_empty() {
            return false;
        }
        let span = |place: &Range<u32>| Span { offset: place.start as u16, length: place.len() as u16 };
        self.spans.clear();
        self.spans.extend(places.iter().map(span));
        self.forms(bytes, None)
    }

    /// Audits the records in their spaces; those of index pages have a fixed part of this length.
    fn forms(&mut self, bytes: &[u8], index_fixed_end: Option<u16>) -> bool {
        let first = self.spans.first().and_then(|first| Form::of(bytes_of(bytes, *first), index_fixed_end));
        let Some(form) = first else { return false };
        self.form = form;
        self.nulls.resize(self.spans.len(), 0);
        self.variables.resize(self.spans.len(), 0);
        let totals = match (form.has_length, form.column_count) {
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
    /// points into the header or behind used space, or shares its place with another.
    fn spaces(&mut self, page: Page<'_>, count: usize) -> bool {
        let free_data = page.header().free_data.get();
        let Some(array) = page.bytes().get(PAGE_BYTES - 2 * count..) else { return false };
        self.spans.resize(count, Span::default());
        let mut is_ascending = true;
        let (mut next, mut lowest) = (free_data, u16::MAX);
        // From the last slot, whose record is the last, to the first: as they lie in the array.
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

    /// The same where records do not lie in the order of their slots.
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

    /// Audits each record, and has its length in place of its space's.
    fn records<const IS_INDEX: bool, const HAS_BITMAP: bool>(&mut self, page: &[u8]) -> Option<Totals> {
        let form = self.form;
        let fixed_end = usize::from(form.fixed_end);
        let variable_at = usize::from(form.variable_at);
        let columns = u64::MAX >> (64 - form.column_count.clamp(1, MAX_COLUMNS));
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
            let difference = head ^ form.head;
            if difference & !u32::from(OPTIONAL) != 0 && difference & !u32::from(OPTIONAL) != GHOST {
                return None;
            }
            differences |= difference;
            if HAS_BITMAP {
                // A record at the very end is not uniform with others.
                let bitmap: &[u8; 10] = page.get(start + fixed_end..)?.first_chunk()?;
                let (count, bits) = bitmap.split_first_chunk()?;
                if u16::from_le_bytes(*count) != form.column_count {
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

    /// Which of the records, now known to be whole, are exceptions.
    #[cold]
    fn find_exceptions(&mut self, bytes: &[u8]) {
        let Self { form, spans, variables, exceptions, are_plain, ghosts, .. } = self;
        let variable_at = usize::from(form.variable_at) + 2;
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

    /// Where the records lie, by slot.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// How many of them are deleted rows.
    pub fn ghosts(&self) -> u32 {
        self.ghosts
    }

    /// Bytes that the records take.
    pub fn bytes(&self) -> u32 {
        self.totals.bytes
    }

    /// The same if very short ones take as much as a forwarding stub.
    pub fn padded_bytes(&self) -> u32 {
        self.totals.padded_bytes
    }

    /// The rows of `page`, which was loaded last.
    pub fn of<'a>(&'a self, page: Page<'a>) -> Rows<'a> {
        self.of_bytes(page.bytes())
    }

    /// The rows in the bytes that were loaded last.
    pub fn of_bytes<'a>(&'a self, bytes: &'a [u8]) -> Rows<'a> {
        Rows { rows: self, page: bytes }
    }
}

impl Form {
    /// The form of a record; `None` if pages of such are not looked at here: moved and compressed rows, rows without null
    /// bitmap in tables, more columns than are kept.
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

/// The rows of a uniform page.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    rows: &'a UniformRows,
    /// The page's bytes, or others in which they lie.
    page: &'a [u8],
}

impl<'a> Rows<'a> {
    /// How many.
    pub fn count(&self) -> usize {
        self.rows.spans.len()
    }

    /// Slots of the exceptions: deleted rows, and rows with a complex column (off-row pointer, sparse vector).
    pub fn exceptions(&self) -> &'a [u16] {
        &self.rows.exceptions
    }

    /// How many are no exceptions.
    pub fn plain_count(&self) -> usize {
        self.count() - self.rows.exceptions.len()
    }

    /// By slot, whether a row is no exception; `None` if none is one.
    pub fn are_plain(&self) -> Option<&'a [bool]> {
        Some(&self.rows.are_plain[..]).filter(|plain| !plain.is_empty())
    }

    /// Whether they are rows of an index.
    pub fn is_index(&self) -> bool {
        self.rows.form.is_index
    }

    /// Columns that their null bitmaps count; 0 if they have none.
    pub fn column_count(&self) -> u16 {
        self.rows.form.column_count
    }

    /// End of their fixed part.
    pub fn fixed_end(&self) -> u16 {
        self.rows.form.fixed_end
    }

    /// The most variable columns that one of them stores.
    pub fn most_variables(&self) -> u16 {
        self.rows.totals.most_variables
    }

    /// The least.
    pub fn fewest_variables(&self) -> u16 {
        self.rows.totals.fewest_variables
    }

    /// Whether one of them ends with a version tag.
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

    /// Null bits, the first lowest, that are set in some of them.
    pub fn nulls(&self) -> u64 {
        self.rows.totals.nulls
    }

    /// Null bits by slot; empty if none is set in any of them.
    pub fn nulls_of_each(&self) -> &'a [u64] {
        if self.nulls() == 0 { &[] } else { &self.rows.nulls }
    }

    /// The row in a slot.
    pub fn record(&self, slot: usize) -> Option<Record<'a>> {
        let span = self.rows.spans.get(slot)?;
        let bytes = bytes_of(self.page, *span);
        match self.rows.form.has_length {
            true => Record::data(bytes).ok(),
            false => Record::index(bytes, self.fixed_end()).ok(),
        }
    }

    /// Whether all have `length` bytes at `offset` in their fixed part.
    pub fn has_fixed(&self, offset: u16, length: u16) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.fixed_end())
    }

    /// The `N` bytes at `offset` of each row, by slot. They lie in the row if [`Self::has_fixed`] says so.
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

    /// Variable column `number`, counted from 1, of each row, by slot; empty where a row does not store it. Of a complex
    /// one, what stands in the row.
    #[inline(always)]
    pub fn variable(&self, number: u16) -> impl Iterator<Item = &'a [u8]> + 'a {
        let page = self.page;
        let variable_at = usize::from(self.rows.form.variable_at);
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
