//! The rows of a page expanded one after the other into one buffer: what [`Expansion::audit`] proves and what
//! [`Expansion::expand`] writes, in one pass over each record. Only the usual is done here; a record with anything else is
//! left to these two.

mod values;

use std::ops::Range;

use super::{COMPLEX, Expansion, FIXED_START, MAX_IMAGE_BYTES, joined, put, put_fixed, put_u16};
use crate::PageBytes;
use crate::compressed::info::CompressionInfo;
use crate::compressed::record::{CdKind, CdRecord};
use crate::compressed::value::{Codec, biased};
use crate::compressed::vardecimal;
use crate::record::status;
use values::{Bytes, Column, Value, Values};

/// Bytes of the expanded rows of a page, so that each has a place of 16 bits.
const ROOM: usize = u16::MAX as usize;
/// Bytes that may be read after the last row.
const AFTER: usize = 8;

/// The expanded rows of one page at a time; keeps its allocations.
#[derive(Clone, Debug, Default)]
pub struct ExpandedPage {
    /// [`ROOM`] bytes; meaningless from `used` on.
    bytes: Vec<u8>,
    used: usize,
    blank: Blank,
    value: Vec<u8>,
    text: Vec<u8>,
}

/// The expanded form of a row of a given number of columns, before any value is put into it.
#[derive(Clone, Debug, Default)]
struct Blank {
    columns: Option<u16>,
    image: Vec<u8>,
    /// Where the null bitmap begins.
    bitmap: usize,
    /// Where the ends of variable columns begin.
    ends: usize,
}

/// The columns of a rowset with what completes their values on a page.
pub struct PageColumns<'a> {
    columns: Vec<Column<'a>>,
    info: Option<&'a CompressionInfo<'a>>,
}

/// A row that was expanded.
pub struct ExpandedRow {
    /// Its place among the bytes of the page's rows.
    pub place: Range<u32>,
    /// What its record is.
    pub kind: CdKind,
    /// The length of its record.
    pub length: usize,
}

impl Expansion {
    /// What is the same for all rows of a page that has this compression information.
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
        let length = if variable > 0 { self.ends + 2 * usize::from(variable) } else { self.ends - 2 };
        self.image.clear();
        self.image.resize(length, 0);
        if let Some(first) = self.image.first_mut() {
            *first = status::NULL_BITMAP | if variable > 0 { status::VARIABLE } else { 0 };
        }
        put_u16(&mut self.image, 2, fixed_end.into());
        put_u16(&mut self.image, fixed_end.into(), count.into());
        if variable > 0 {
            put_u16(&mut self.image, self.ends - 2, variable.into());
        }
    }
}

impl ExpandedPage {
    /// Forgets the rows of the page before.
    pub fn clear(&mut self) {
        self.bytes.resize(ROOM, 0);
        self.used = 0;
        // The next page may be of another rowset.
        self.blank.columns = None;
    }

    /// The rows, with eight more bytes after the last.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used + AFTER).unwrap_or_default()
    }

    /// Audits and expands the record in a space of a page. `None`, and the rows so far are of no use, if the record must be
    /// audited and expanded by itself.
    pub fn add(&mut self, page: &PageBytes, space: Range<usize>, columns: &PageColumns<'_>) -> Option<ExpandedRow> {
        let record = CdRecord::read(page.get(space.clone())?, columns.columns.len()).ok()?;
        let length = record.length()?;
        let count = record.column_count();
        if self.blank.columns != Some(count) {
            self.blank.of(&columns.columns, count);
        }
        let Self { bytes, used, blank, value: whole, text } = self;
        let image = bytes.get_mut(*used..ROOM - AFTER)?;
        image.get_mut(..blank.image.len())?.copy_from_slice(&blank.image);
        let tag = record.version_tag();
        let kind = record.kind();
        *image.first_mut()? |= (kind.plain() as u8) << 1 | if tag.is_some() { status::VERSION_TAG } else { 0 };
        let mut values = Values::of(page, space.start, &record);
        let (mut end_at, mut end) = (blank.ends, blank.image.len());
        for (at, column) in columns.columns.iter().enumerate().take(count.into()) {
            let stored = values.next(at, columns.info)?;
            *image.get_mut(blank.bitmap + at / 8)? |= u8::from(stored.is_null()) << (at % 8);
            let slot = &column.slot;
            let bytes = match column.value(page, &stored)? {
                Value::Bytes(bytes) => bytes,
                Value::Bit(bit) => {
                    *image.get_mut(usize::from(slot.fixed)).filter(|_| slot.codec == Codec::Bit)? = bit.into();
                    continue;
                }
            };
            if slot.fixed == 0 {
                if slot.codec == Codec::Verbatim || stored.is_complex {
                    if bytes.prefix > 0 {
                        append(image, &mut end, column.prefix(&bytes)?, bytes.prefix)?;
                    }
                    append(image, &mut end, page.get(bytes.start..)?, bytes.length)?;
                } else if !stored.is_null() {
                    text.clear();
                    let stored = joined(column.prefix(&bytes)?, bytes.own(page)?, whole);
                    put(slot, stored, text, &mut Vec::new()).ok()?;
                    append(image, &mut end, text, text.len())?;
                }
                if end > MAX_IMAGE_BYTES {
                    return None;
                }
                put_u16(image, end_at, end | if stored.is_complex { COMPLEX.into() } else { 0 });
                end_at += 2;
            } else if stored.is_complex {
                return None;
            } else if !stored.is_null() {
                put_number(column, page, &bytes, image).or_else(|| {
                    let stored = joined(column.prefix(&bytes)?, bytes.own(page)?, whole);
                    put_fixed(slot, stored, image, text).ok()
                })?;
            }
        }
        if let Some(tag) = tag {
            append(image, &mut end, tag, tag.len())?;
        }
        let start = *used as u32;
        *used += end;
        Some(ExpandedRow { place: start..*used as u32, kind, length })
    }
}

/// Puts a number of at most eight bytes into its place; `None` for what is not one.
#[inline(always)]
fn put_number(column: &Column<'_>, page: &PageBytes, bytes: &Bytes, image: &mut [u8]) -> Option<()> {
    let length = bytes.prefix + bytes.length;
    if length > 8 || !matches!(column.slot.codec, Codec::Integer | Codec::Decimal) {
        return None;
    }
    let into = image.get_mut(column.slot.fixed.into()..)?.get_mut(..column.slot.length.into())?;
    let word = column.word(page, bytes)?;
    if column.slot.codec == Codec::Decimal {
        let (is_negative, magnitude) = vardecimal::of_word(word, length, column.slot.info)?;
        let (sign, into) = into.split_first_mut()?;
        *sign = u8::from(!is_negative);
        return put_little_endian(magnitude, into);
    }
    if length > into.len() {
        return None;
    }
    put_little_endian(biased(word, length).cast_unsigned(), into)
}

/// Puts the low bytes of a number where there is room for them; the bytes after them are zero.
#[inline(always)]
fn put_little_endian(number: u64, into: &mut [u8]) -> Option<()> {
    let number = number.to_le_bytes();
    // One length each, so that the compiler removes the loop.
    match into.len() {
        4 => *into.first_chunk_mut::<4>()? = *number.first_chunk()?,
        8.. => *into.first_chunk_mut::<8>()? = number,
        length => into.copy_from_slice(number.get(..length)?),
    }
    Some(())
}

/// Copies the first `length` bytes to the end of a row.
#[inline(always)]
fn append(image: &mut [u8], end: &mut usize, from: &[u8], length: usize) -> Option<()> {
    let room = image.get_mut(*end..)?;
    // What is copied too much is overwritten by what comes next.
    match (from.first_chunk::<16>(), room.first_chunk_mut::<16>()) {
        (Some(from), Some(into)) if length <= 16 => *into = *from,
        _ => match (from.first_chunk::<32>(), room.first_chunk_mut::<32>()) {
            (Some(from), Some(into)) if length <= 32 => *into = *from,
            _ => room.get_mut(..length)?.copy_from_slice(from.get(..length)?),
        },
    }
    *end += length;
    Some(())
}

#[cfg(test)]
mod tests;
