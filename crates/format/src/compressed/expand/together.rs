//! Expands the rows of a page into one buffer, with the same results as [`Expansion::audit`] and [`Expansion::expand`].
//! Several rows are expanded together, column by column, so that decisions about a column are made once and not for
//! each value. Pages with unusual records are not handled: for them, the caller must use the two functions above.

mod fixed;
mod layouts;
mod values;

use std::ops::Range;

use super::{COMPLEX, Expansion, FIXED_START, MAX_IMAGE_BYTES, joined, put, put_u16};
use crate::PageBytes;
use crate::compressed::info::CompressionInfo;
use crate::compressed::record::{CdHead, CdKind, CdRecord};
use crate::compressed::value::Codec;
use crate::record::{VERSION_TAG_BYTES, status};
use fixed::{Anchored, Short, Values};
use layouts::Layouts;
use values::{Column, Row, Stored, Way};

/// The size in bytes of the buffer for the expanded rows of a page. Offsets in this buffer fit into 16 bits.
const ROOM: usize = u16::MAX as usize;
/// Appending up to this many bytes copies a constant number of bytes, which is faster than copying the exact number.
const AT_ONCE: usize = 64;
/// The maximum number of rows to expand together. The limit keeps the data of these rows in the nearest cache.
const MOST_ROWS: usize = 64;
const MOST_VALUES: usize = 2048;

/// The expanded rows of one page. Each page reuses the memory of the page before.
#[derive(Default)]
pub struct ExpandedPage {
    /// A buffer of [`ROOM`] bytes; the bytes from `used` on are undefined.
    bytes: Vec<u8>,
    used: usize,
    form: Form,
    blank: Blank,
    layouts: Layouts,
    /// The rows that are read but not yet expanded.
    rows: Vec<Row>,
    /// The stored values of the columns that are read by [`Way::Any`], column-major.
    stored: Vec<Stored>,
    value: Vec<u8>,
    text: Vec<u8>,
}

/// Facts about the expanded rows of a page.
#[derive(Clone, Copy, Default)]
struct Form {
    /// The number of rows whose column count differs from that of the row before. The first row always counts, so the
    /// number is 1 if all rows have the same column count.
    counts: u32,
    has_nulls: bool,
    has_complex: bool,
}

/// The number of bytes that a buffer must have after its last record, because null bitmaps are read in whole words.
pub const BYTES_AFTER: usize = size_of::<u64>();

/// The common properties of a page's expanded rows. They exist only if all rows have the same column count, and either
/// all or none of them are index rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommonForm {
    /// The number of variable columns that each row stores.
    pub variables: u16,
    /// Whether some column of some row may be NULL.
    pub has_nulls: bool,
    /// Whether some row is a ghost.
    pub has_ghosts: bool,
    /// Whether some row ends with a version tag.
    pub has_versions: bool,
    /// Whether some variable column of some row is complex.
    pub has_complex: bool,
}

/// The expanded form of a row with a given column count, before any value is written to it.
#[derive(Default)]
struct Blank {
    columns: Option<u16>,
    /// The bytes of the row, padded to at least [`AT_ONCE`] bytes; only the first `length` bytes are used.
    image: Vec<u8>,
    length: usize,
    /// Start of the null bitmap.
    bitmap: usize,
    /// Start of the end offsets of variable columns.
    ends: usize,
    /// The numbers of the variable columns, counted from 0.
    variables: Vec<u16>,
    /// The most rows to expand together.
    most_rows: usize,
}

/// The columns of a rowset, with the anchors and the dictionary of a page.
pub struct PageColumns<'a> {
    columns: Vec<Column<'a>>,
    info: Option<&'a CompressionInfo<'a>>,
}

/// An expanded row.
pub struct ExpandedRow {
    /// The place of the row in the buffer of the page's rows.
    pub place: Range<u32>,
    /// The kind of the compressed record.
    pub kind: CdKind,
    /// The length of the compressed record in bytes.
    pub length: usize,
}

impl Expansion {
    /// The columns of the rowset for all rows of a page with this compression information.
    pub fn of_page<'a>(&self, info: Option<&'a CompressionInfo<'a>>) -> PageColumns<'a> {
        let columns = self.slots.iter().enumerate().map(|(number, slot)| Column::of(*slot, number, info));
        PageColumns { columns: columns.collect(), info }
    }
}

impl Blank {
    fn of(&mut self, columns: &[Column<'_>], count: u16) {
        let last = usize::from(count).checked_sub(1).and_then(|last| columns.get(last));
        let (fixed_end, variable) = last.map_or((FIXED_START, 0), |last| (last.slot.fixed_end, last.slot.variable));
        self.columns = Some(count);
        self.bitmap = usize::from(fixed_end) + 2;
        self.ends = self.bitmap + usize::from(count).div_ceil(8) + 2;
        self.length = if variable > 0 { self.ends + 2 * usize::from(variable) } else { self.ends - 2 };
        self.image.clear();
        self.image.resize(self.length.max(AT_ONCE), 0);
        if let Some(first) = self.image.first_mut() {
            *first = status::NULL_BITMAP | if variable > 0 { status::VARIABLE } else { 0 };
        }
        put_u16(&mut self.image, 2, fixed_end.into());
        put_u16(&mut self.image, fixed_end.into(), count.into());
        if variable > 0 {
            put_u16(&mut self.image, self.ends - 2, variable.into());
        }
        let is_variable = |(_, column): &(u16, &Column<'_>)| column.slot.fixed == 0;
        self.variables.clear();
        self.variables.extend((0..count).zip(columns).filter(is_variable).map(|(number, _)| number));
        self.most_rows = (MOST_VALUES / usize::from(count.max(1))).clamp(1, MOST_ROWS);
    }
}

impl ExpandedPage {
    /// Audits and expands the records in these spaces of a page, and calls `found` with each row. The spaces must not
    /// overlap. Returns false if a record has a form that only [`Expansion::audit`] and [`Expansion::expand`] handle,
    /// or if `found` returns false; the results are then undefined.
    pub fn load(
        &mut self,
        page: &PageBytes,
        spaces: impl Iterator<Item = Range<usize>>,
        columns: &PageColumns<'_>,
        found: impl FnMut(ExpandedRow) -> bool,
    ) -> bool {
        self.bytes.resize(ROOM, 0);
        (self.used, self.form) = (0, Form::default());
        // This page may belong to another rowset than the page before.
        self.blank.columns = None;
        self.rows.clear();
        self.layouts.next_page();
        self.expand(page, spaces, columns, found).is_some()
    }

    /// The bytes of all rows, and eight more bytes after the last row.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used + BYTES_AFTER).unwrap_or_default()
    }

    /// The common form of the rows; `None` if their column counts differ, or if some are index rows and others are not.
    pub fn form(&self) -> Option<CommonForm> {
        let Form { counts, has_nulls, has_complex } = self.form;
        let kinds = self.layouts.kinds();
        let is_one = counts == 1 && kinds.has_data != kinds.has_index;
        let variables = self.blank.variables.len() as u16;
        is_one.then_some(CommonForm {
            variables,
            has_nulls,
            has_ghosts: kinds.has_ghosts,
            has_versions: kinds.has_versions,
            has_complex,
        })
    }

    fn expand(
        &mut self,
        page: &PageBytes,
        spaces: impl Iterator<Item = Range<usize>>,
        columns: &PageColumns<'_>,
        mut found: impl FnMut(ExpandedRow) -> bool,
    ) -> Option<()> {
        for space in spaces {
            let start = space.start;
            let space = page.get(space)?;
            if self.rows.len() >= self.blank.most_rows {
                self.expand_rows(page, columns, &mut found)?;
            }
            let (head, places_at) = match self.layouts.known(page, start) {
                Some(known) => known,
                None => self.other_head(page, start, space, columns, &mut found)?,
            };
            let record = CdRecord::after(head, space).ok()?;
            self.rows.push(Row::of(start, head, &record, places_at)?);
        }
        self.expand_rows(page, columns, &mut found)
    }

    /// The layout of a record that may have a different column count than the record before it.
    #[inline(never)]
    fn other_head(
        &mut self,
        page: &PageBytes,
        start: usize,
        space: &[u8],
        columns: &PageColumns<'_>,
        found: &mut impl FnMut(ExpandedRow) -> bool,
    ) -> Option<(CdHead, u16)> {
        let count = CdHead::column_count_of(space)?;
        if self.blank.columns != Some(count) {
            self.expand_rows(page, columns, found)?;
            // A record cannot have more columns than the rowset.
            columns.columns.get(..count.into())?;
            self.blank.of(&columns.columns, count);
            self.layouts.of_columns(count);
            self.form.counts += 1;
            if let Some(known) = self.layouts.known(page, start) {
                return Some(known);
            }
        }
        self.layouts.add(page, start, space, columns.columns.len())
    }

    /// Expands the rows in `rows`, column by column.
    fn expand_rows(
        &mut self,
        page: &PageBytes,
        columns: &PageColumns<'_>,
        found: &mut impl FnMut(ExpandedRow) -> bool,
    ) -> Option<()> {
        let count = self.rows.len();
        if count == 0 {
            return Some(());
        }
        let PageColumns { columns, info } = columns;
        let columns = columns.get(..self.blank.columns?.into())?;
        let values = count * columns.len();
        if self.stored.len() < values {
            self.stored.resize(values, Stored::default());
        }
        let stored = self.stored.get_mut(..values)?.chunks_exact_mut(count);
        for ((at, column), stored) in columns.iter().enumerate().zip(stored) {
            let seen = self.layouts.seen(at);
            if !column.allows(seen) {
                return None;
            }
            self.form.has_nulls |= seen.has_nulls();
            if column.way(seen) == Way::Any {
                self.form.has_complex |= column.find((page, *info), (&self.layouts, at), &mut self.rows, stored)?;
            }
        }
        self.begin_rows(page, columns, found)?;
        let Self { bytes, rows, layouts, blank, stored, value, text, .. } = self;
        for ((at, column), stored) in columns.iter().enumerate().zip(stored.chunks_exact(count)) {
            let seen = layouts.seen(at);
            if seen.has_nulls() {
                for row in rows.iter() {
                    let byte = bytes.get_mut(usize::from(row.place) + blank.bitmap + at / 8)?;
                    *byte |= u8::from(row.short(layouts, at)?.is_null()) << (at % 8);
                }
            }
            let values = Values { page, rows, bytes };
            match column.way(seen) {
                Way::Short => column.put(values, Short { layouts, column: at }, (value, text))?,
                Way::Anchored => column.put(values, Anchored { layouts, column: at }, (value, text))?,
                Way::Any if column.slot.fixed > 0 => column.put(values, stored.iter(), (value, text))?,
                Way::Any => {}
            }
        }
        rows.clear();
        layouts.forget_many();
        Some(())
    }

    /// Begins the expanded form of each row. The null bits and the fixed columns are written later.
    fn begin_rows(
        &mut self,
        page: &PageBytes,
        columns: &[Column<'_>],
        found: &mut impl FnMut(ExpandedRow) -> bool,
    ) -> Option<()> {
        let Self { bytes, used, blank, rows, stored, value: whole, text, .. } = self;
        let (room, count) = (bytes.get_mut(..ROOM - BYTES_AFTER)?, rows.len());
        let mut start = *used;
        for (number, row) in rows.iter_mut().enumerate() {
            let image = room.get_mut(start..)?;
            let (mut end_at, mut end) = (blank.ends, 0);
            append(image, &mut end, &blank.image, blank.length)?;
            *image.first_mut()? |=
                (row.kind.plain() as u8) << 1 | if row.tag_at.is_some() { status::VERSION_TAG } else { 0 };
            for at in blank.variables.iter().map(|at| usize::from(*at)) {
                let (column, stored) = (columns.get(at)?, stored.get(at * count + number)?);
                if column.slot.codec == Codec::Verbatim || stored.is_complex {
                    if stored.prefix > 0 {
                        append(image, &mut end, column.prefix(stored)?, stored.prefix.into())?;
                    }
                    append(image, &mut end, page.get(stored.start.into()..)?, stored.length.into())?;
                } else if !stored.is_null() {
                    text.clear();
                    let bytes = joined(column.prefix(stored)?, stored.own(page)?, whole);
                    put(&column.slot, bytes, text, &mut Vec::new()).ok()?;
                    append(image, &mut end, text, text.len())?;
                }
                if end > MAX_IMAGE_BYTES {
                    return None;
                }
                put_u16(image, end_at, end | if stored.is_complex { COMPLEX.into() } else { 0 });
                end_at += 2;
            }
            if let Some(tag_at) = row.tag_at {
                append(image, &mut end, page.get(tag_at.into()..)?, VERSION_TAG_BYTES)?;
            }
            row.place = start as u16;
            let place = row.place.into()..(start + end) as u32;
            if !found(ExpandedRow { place, kind: row.kind, length: row.length.into() }) {
                return None;
            }
            start += end;
        }
        *used = start;
        Some(())
    }
}

/// Appends the first `length` bytes of `from` to a row.
#[inline(always)]
fn append(image: &mut [u8], end: &mut usize, from: &[u8], length: usize) -> Option<()> {
    let room = image.get_mut(*end..)?;
    // The next copy overwrites the surplus bytes.
    let is_done = length <= 32 && copied::<32>(from, room) || length <= AT_ONCE && copied::<AT_ONCE>(from, room);
    if !is_done {
        room.get_mut(..length)?.copy_from_slice(from.get(..length)?);
    }
    *end += length;
    Some(())
}

/// Copies N bytes and returns true. If `from` or `room` is shorter, copies nothing and returns false.
#[inline(always)]
fn copied<const N: usize>(from: &[u8], room: &mut [u8]) -> bool {
    match (from.first_chunk::<N>(), room.first_chunk_mut::<N>()) {
        (Some(from), Some(into)) => {
            *into = *from;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
