//! Pages whose records are all of one form, audited at one go.
//!
//! Nearly every page is such: its records have the same status, fixed length and column count, so that each column lies at
//! the same place in all of them, and they differ only in where they start, which columns are NULL and how long the
//! variable ones are. [`UniformRows::load`] proves all that [`Record::data`] and [`Record::index`] would prove of each
//! record, in one loop without a look-up; what is unusual makes it say no, and nothing is known then. Checks that read a
//! column of all rows, one after the other, need neither parse a record again nor look up where the column is.

use crate::bytes::u16_at;
use crate::page::{HEADER_BYTES, PAGE_BYTES, Page, PageBytes, PageType, page_flags};
use crate::record::{MIN_HEAP_RECORD_BYTES, Record, RecordKind, VERSION_TAG_BYTES, status};
use crate::slots::{MAX_SLOTS, SlotOrder, Span};

/// Columns whose null bits are kept; pages of wider rows are not uniform.
const MAX_COLUMNS: u16 = 64;

/// Bits of the status byte in which records of one form may differ.
const OPTIONAL: u8 = status::VARIABLE | status::VERSION_TAG;

/// What the records of a page have in common.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Form {
    /// Their first bytes without the bits that may differ: of data records up to the end of the fixed part's length, of
    /// index records the status alone.
    head: u32,
    /// They are records of an index page.
    is_index: bool,
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
    bytes: u32,
    padded_bytes: u32,
}

impl UniformRows {
    /// Audits the records of a page whose header was found possible: whether they are live rows of one form that lie one
    /// behind the other, each whole and inside its space. If not, nothing is known.
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
        let Some(form) = self.spans.first().and_then(|first| Form::of(page, *first, is_index)) else { return false };
        self.form = form;
        self.nulls.resize(count, 0);
        self.variables.resize(count, 0);
        let totals = match (is_index, form.column_count) {
            (false, _) => self.records::<false, true>(page.bytes()),
            (true, 0) => self.records::<true, false>(page.bytes()),
            (true, _) => self.records::<true, true>(page.bytes()),
        };
        self.totals = totals.unwrap_or_default();
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
    fn records<const IS_INDEX: bool, const HAS_BITMAP: bool>(&mut self, page: &PageBytes) -> Option<Totals> {
        let form = self.form;
        let fixed_end = usize::from(form.fixed_end);
        let variable_at = usize::from(form.variable_at);
        let columns = u64::MAX >> (64 - form.column_count.clamp(1, MAX_COLUMNS));
        let mut totals = Totals { fewest_variables: u16::MAX, ..Totals::default() };
        let rows = self.spans.iter_mut().zip(&mut self.nulls).zip(&mut self.variables);
        for ((span, null), variable) in rows {
            let start = usize::from(span.offset);
            let space = page.get(start..start + usize::from(span.length))?;
            let head = match IS_INDEX {
                true => u32::from(*space.first()?),
                false => u32::from_le_bytes(*space.first_chunk()?),
            };
            if head & !u32::from(OPTIONAL) != form.head {
                return None;
            }
            if HAS_BITMAP {
                // A record at the very end of the page is not uniform with others.
                let (count, bitmap) = page.get(start + fixed_end..)?.split_first_chunk()?;
                if u16::from_le_bytes(*count) != form.column_count {
                    return None;
                }
                *null = u64::from_le_bytes(*bitmap.first_chunk()?) & columns;
                totals.nulls |= *null;
            }
            let (mut end, mut stored) = (variable_at, 0);
            if head & u32::from(status::VARIABLE) != 0 {
                stored = u16_at(space, variable_at)?;
                let ends = space.get(variable_at + 2..variable_at + 2 + 2 * usize::from(stored))?;
                end += 2 + ends.len();
                for next in ends.as_chunks().0 {
                    let next = usize::from(u16::from_le_bytes(*next));
                    if next < end {
                        return None;
                    }
                    end = next;
                }
            }
            *variable = stored;
            totals.fewest_variables = totals.fewest_variables.min(stored);
            totals.most_variables = totals.most_variables.max(stored);
            if head & u32::from(status::VERSION_TAG) != 0 {
                totals.has_versions = true;
                end += VERSION_TAG_BYTES;
            }
            // An end with the mark of a complex column lies behind every space.
            if end > space.len() {
                return None;
            }
            span.length = end as u16;
            totals.bytes += end as u32;
            totals.padded_bytes += end.max(MIN_HEAP_RECORD_BYTES) as u32;
        }
        Some(totals)
    }

    /// Where the records lie, by slot.
    pub fn spans(&self) -> &[Span] {
        &self.spans
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
        Rows { rows: self, page: page.bytes() }
    }
}

impl Form {
    /// The form of a record; `None` if pages of such are not looked at here: deleted, moved and compressed rows, rows
    /// without null bitmap in tables, more columns than are kept.
    fn of(page: Page<'_>, span: Span, is_index: bool) -> Option<Self> {
        let space = span.of(page);
        let status = *space.first()?;
        let expected = if is_index { RecordKind::Index } else { RecordKind::Primary };
        if status & (status::COMPRESSED | status::RESERVED) != 0 || RecordKind::of(status) != expected {
            return None;
        }
        let has_bitmap = status & status::NULL_BITMAP != 0;
        let (head, fixed_end) = match is_index {
            true => (u32::from(status), page.header().pminlen.get()),
            false => (u32::from_le_bytes(*space.first_chunk()?), u16_at(space, 2)?),
        };
        // The second status byte of a data record is 0.
        if !is_index && (!has_bitmap || space.get(1) != Some(&0) || fixed_end < 4) || fixed_end == 0 {
            return None;
        }
        let column_count = if has_bitmap { u16_at(space, fixed_end.into())? } else { 0 };
        if column_count > MAX_COLUMNS || has_bitmap && column_count == 0 {
            return None;
        }
        let bitmap_bytes = if has_bitmap { 2 + column_count.div_ceil(8) } else { 0 };
        let variable_at = fixed_end.checked_add(bitmap_bytes)?;
        Some(Self { head: head & !u32::from(OPTIONAL), is_index, fixed_end, column_count, variable_at })
    }
}

/// The rows of a uniform page.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    rows: &'a UniformRows,
    page: &'a PageBytes,
}

impl<'a> Rows<'a> {
    /// How many.
    pub fn count(&self) -> usize {
        self.rows.spans.len()
    }

    /// Whether they are rows of an index page.
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
        let page = Page::new(self.page);
        let records = self.rows.spans.iter().map(move |span| span.of(page));
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
        let bytes = span.of(Page::new(self.page));
        match self.is_index() {
            true => Record::index(bytes, self.fixed_end()).ok(),
            false => Record::data(bytes).ok(),
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

    /// Variable column `number`, counted from 1, of each row, by slot; empty where a row does not store it.
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
            let read = |at: usize| u16_at(page, start + at).unwrap_or_default();
            // The entry before the first is the count.
            let first = if number == 1 { variable_at + 2 + 2 * usize::from(stored) } else { read(entry - 2).into() };
            page.get(start + first..start + usize::from(read(entry))).unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::{Ascent, KeyColumn, KeyOrder, compare};
    use std::cmp::Ordering;

    /// A page of rows of one form: a small number, a date, and up to two variable columns; `null` says which are NULL.
    fn page(is_index: bool, rows: &[(i16, u64, u8, Vec<u8>)], scattered: bool) -> PageBytes {
        let mut page = [0; PAGE_BYTES];
        (page[0], page[1]) = (1, if is_index { 2 } else { 1 });
        let fixed_end: u16 = if is_index { 11 } else { 14 };
        page[14..16].copy_from_slice(&fixed_end.to_le_bytes());
        page[22..24].copy_from_slice(&(rows.len() as u16).to_le_bytes());
        let mut end = HEADER_BYTES;
        let mut put = |slot: usize, (number, date, null, text): &(i16, u64, u8, Vec<u8>)| {
            let mut record = if is_index { vec![0x16] } else { vec![0x10, 0, fixed_end as u8, 0] };
            record.extend(number.to_le_bytes());
            record.extend(date.to_le_bytes());
            record.extend([4, 0, *null]);
            let stored = text.len().min(2);
            if stored > 0 {
                record[0] |= 0x20;
                record.extend([stored as u8, 0]);
                let first = record.len() + 2 * stored;
                let ends = [first + text.len() / 2, first + text.len()];
                let ends = if stored == 1 { &ends[1..] } else { &ends[..] };
                ends.iter().for_each(|end| record.extend((*end as u16).to_le_bytes()));
                record.extend(text);
            }
            page[end..end + record.len()].copy_from_slice(&record);
            let at = PAGE_BYTES - 2 - 2 * slot;
            page[at..at + 2].copy_from_slice(&(end as u16).to_le_bytes());
            end += record.len();
        };
        if scattered {
            rows.iter().enumerate().rev().for_each(|(slot, row)| put(slot, row));
        } else {
            rows.iter().enumerate().for_each(|(slot, row)| put(slot, row));
        }
        page[30..32].copy_from_slice(&(end as u16).to_le_bytes());
        page
    }

    /// Every record by itself, and every column of it, is what the page's rows say.
    fn agrees(rows: Rows<'_>, page: Page<'_>) {
        let mut order = SlotOrder::default();
        order.load(page);
        assert_eq!(order.entries().len(), rows.count());
        for (position, entry) in order.entries().iter().enumerate() {
            let space = order.space(page, position);
            let slot = usize::from(entry.slot);
            let record = match rows.is_index() {
                true => Record::index(space, page.header().pminlen.get()),
                false => Record::data(space),
            };
            let record = record.expect("the page was found sound");
            let span = rows.rows.spans[slot];
            assert_eq!((span.offset, usize::from(span.length)), (entry.offset, record.bytes().len()));
            assert_eq!((record.fixed_end(), record.column_count()), (rows.fixed_end(), rows.column_count()));
            assert!((rows.fewest_variables()..=rows.most_variables()).contains(&record.variable_count()));
            let nulls = rows.nulls_of_each().get(slot).copied().unwrap_or_default();
            assert_eq!(nulls, record.null_word(0));
            for number in 0..=rows.most_variables() + 1 {
                let (bytes, is_complex) = record.variable(number).unwrap_or_default();
                assert!(!is_complex, "a complex column is not uniform");
                assert_eq!(rows.variable(number).nth(slot), Some(bytes));
            }
            let start = rows.fixed_end() - 10;
            assert_eq!(&rows.fixed_of::<2>(slot, start)[..], record.fixed(start, 2).unwrap());
            assert_eq!(rows.fixed::<8>(start + 2).nth(slot).unwrap()[..], *record.fixed(start + 2, 8).unwrap());
            assert_eq!(rows.slices(start, 10).nth(slot), record.fixed(start, 10));
        }
        let pairs = || (1..rows.count()).filter_map(|slot| Some((rows.record(slot - 1)?, rows.record(slot)?)));
        let start = rows.fixed_end() as i16 - 10;
        let column =
            |order, offset, length, null_bit, descending| KeyColumn { order, offset, length, null_bit, descending };
        for keys in [
            [column(KeyOrder::Signed, start, 2, 1, false), column(KeyOrder::DateTime, start + 2, 8, 2, true)],
            [column(KeyOrder::Unsigned, start, 1, 1, true), column(KeyOrder::Bytes, -1, 0, 3, false)],
            [column(KeyOrder::DateTime, start + 2, 8, 0, false), column(KeyOrder::Signed, start, 2, 1, true)],
        ] {
            let orders: Vec<Option<Ordering>> = pairs().map(|(a, b)| compare(&a, &b, &keys)).collect();
            let ascends = !orders.contains(&Some(Ordering::Greater)) && !orders.contains(&Some(Ordering::Equal));
            let undecided = orders.iter().filter(|order| order.is_none()).count() as u64;
            assert_eq!(Ascent::default().undecided(rows, &keys), ascends.then_some(undecided), "{keys:?}");
        }
    }

    fn row() -> impl Strategy<Value = (i16, u64, u8, Vec<u8>)> {
        let null = prop_oneof![6 => Just(0u8), 1 => 0u8..16];
        (-3i16..3, 0u64..3, null, prop::collection::vec(any::<u8>(), 0..9))
    }

    proptest! {
        #[test]
        fn rows_of_one_form_are_what_each_record_says(
            is_index: bool,
            scattered: bool,
            is_sorted: bool,
            mut rows in prop::collection::vec(row(), 1..40),
            changes in prop::collection::vec((0usize..120, any::<u8>(), any::<bool>()), 0..3),
        ) {
            if is_sorted {
                rows.sort();
            }
            let mut bytes = page(is_index, &rows, scattered);
            let mut uniform = UniformRows::default();
            assert!(uniform.load(Page::new(&bytes)), "nothing is unusual");
            agrees(uniform.of(Page::new(&bytes)), Page::new(&bytes));
            for (at, byte, in_slots) in changes {
                bytes[if in_slots { PAGE_BYTES - 1 - at } else { HEADER_BYTES + at }] = byte;
            }
            if uniform.load(Page::new(&bytes)) {
                agrees(uniform.of(Page::new(&bytes)), Page::new(&bytes));
            }
        }

        #[test]
        fn any_bytes_are_taken(noise in prop::collection::vec((0usize..PAGE_BYTES, any::<u8>()), 0..200)) {
            let mut bytes = page(false, &[(1, 1, 0, vec![1, 2, 3]), (2, 1, 0, vec![])], false);
            for (at, byte) in noise {
                bytes[at] = byte;
            }
            let mut uniform = UniformRows::default();
            if uniform.load(Page::new(&bytes)) {
                let rows = uniform.of(Page::new(&bytes));
                assert!(rows.count() > 0 && rows.variable(1).chain(rows.slices(7000, 7000)).count() == 2 * rows.count());
            }
        }
    }

    proptest! {
        /// Of values that differ in one byte, whichever it is.
        #[test]
        fn keys_of_any_type_are_ordered_as_one_by_one(
            bytes in prop::collection::vec((0usize..16, 0u8..3), 1..6),
            is_sorted: bool,
            descending: bool,
        ) {
            for (order, length) in [
                (KeyOrder::Signed, 2u16), (KeyOrder::Signed, 4), (KeyOrder::Signed, 8), (KeyOrder::Unsigned, 1),
                (KeyOrder::Unsigned, 3), (KeyOrder::Unsigned, 4), (KeyOrder::Unsigned, 5), (KeyOrder::Bit(1), 1),
                (KeyOrder::DateTime, 8), (KeyOrder::SmallDateTime, 4), (KeyOrder::DayAndTime(3), 6),
                (KeyOrder::DayAndTime(4), 7), (KeyOrder::DayAndTime(5), 8), (KeyOrder::DayAndTime(4), 9),
                (KeyOrder::Guid, 16), (KeyOrder::Bytes, 8), (KeyOrder::Decimal, 9), (KeyOrder::Float, 8),
            ] {
                let key = [KeyColumn { order, offset: 1, length, null_bit: 0, descending }];
                let mut records: Vec<Vec<u8>> = Vec::new();
                for (at, byte) in &bytes {
                    let mut record = vec![0; 1 + usize::from(length)];
                    record[0] = 0x06;
                    record[1 + at % usize::from(length)] = byte.wrapping_sub(1);
                    records.push(record);
                }
                let order_of = |a: &Vec<u8>, b: &Vec<u8>| {
                    let of = |record| Record::index(record, 1 + length);
                    compare(&of(a).unwrap(), &of(b).unwrap(), &key)
                };
                if is_sorted {
                    records.sort_by(|a, b| order_of(a, b).unwrap_or(Ordering::Equal));
                }
                let mut page = [0; PAGE_BYTES];
                (page[0], page[1]) = (1, 2);
                page[14..16].copy_from_slice(&(1 + length).to_le_bytes());
                page[22] = records.len() as u8;
                let mut end = HEADER_BYTES;
                for (slot, record) in records.iter().enumerate() {
                    page[end..end + record.len()].copy_from_slice(record);
                    let at = PAGE_BYTES - 2 - 2 * slot;
                    page[at..at + 2].copy_from_slice(&(end as u16).to_le_bytes());
                    end += record.len();
                }
                page[30..32].copy_from_slice(&(end as u16).to_le_bytes());
                let mut uniform = UniformRows::default();
                assert!(uniform.load(Page::new(&page)));
                let pairs = records.windows(2);
                let orders: Vec<_> = pairs.map(|pair| order_of(&pair[0], &pair[1])).collect();
                let ascends = orders.iter().all(|order| !matches!(order, Some(Ordering::Greater | Ordering::Equal)));
                let undecided = orders.iter().filter(|order| order.is_none()).count() as u64;
                let found = Ascent::default().undecided(uniform.of(Page::new(&page)), &key);
                assert_eq!(found, ascends.then_some(undecided), "{order:?} {records:02x?}");
            }
        }
    }

    #[test]
    fn what_is_unusual_is_not_uniform() {
        let rows = vec![(1, 1, 0, vec![1, 2, 3]), (2, 1, 0, vec![4]), (3, 2, 0, vec![])];
        let sound = page(false, &rows, false);
        let load = |change: &dyn Fn(&mut PageBytes)| {
            let mut bytes = sound;
            change(&mut bytes);
            UniformRows::default().load(Page::new(&bytes))
        };
        assert!(load(&|_| {}));
        assert!(!load(&|bytes| bytes[HEADER_BYTES] = 0x3C), "a ghost");
        assert!(!load(&|bytes| bytes[HEADER_BYTES] = 0x32), "a forwarded row");
        assert!(!load(&|bytes| bytes[HEADER_BYTES + 1] = 1), "the second status byte");
        assert!(!load(&|bytes| bytes[HEADER_BYTES] = 0x70), "a version tag without room");
        assert!(!load(&|bytes| bytes[HEADER_BYTES + 22] |= 0x80), "a complex column");
        assert!(!load(&|bytes| bytes[HEADER_BYTES + 14] = 5), "a column more than in the other rows");
        assert!(!load(&|bytes| bytes[PAGE_BYTES - 2] += 1), "an overlap");
        assert!(!load(&|bytes| bytes[PAGE_BYTES - 4..PAGE_BYTES - 2].fill(0)), "an empty slot");
        assert!(!load(&|bytes| bytes[30] -= 1), "used space ends inside the last record");
        assert!(!load(&|bytes| bytes[22] = 0), "no row");
        assert!(!load(&|bytes| bytes[4] = 2), "aligned records");
        assert!(!load(&|bytes| bytes[1] = 3), "a text page");
    }
}
