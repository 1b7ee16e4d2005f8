//! A compressed row as the equivalent uncompressed record.
//!
//! Code that reads records need not support compression: an [`Expansion`] assigns places to the columns of a rowset
//! once, and writes each row to a buffer as a FixedVar data record with its columns in those places.

mod together;

use super::fault::{CdFault, CdTest};
use super::info::{Anchor, CompressionInfo};
use super::record::{CdColumn, CdRecord, Descriptor};
use super::value::{Codec, Doubt, decode_fixed, unicode, uniquifier};
use crate::page::{HEADER_BYTES, PAGE_BYTES};
use crate::record::{COMPLEX, Record, RecordKind, VERSION_TAG_BYTES, status};
use crate::types::{TypeInfo, xtype};

pub use together::{CommonForm, ExpandedPage, ExpandedRow, PageColumns};

/// Bytes of a page for records and slots.
const BODY_BYTES: usize = PAGE_BYTES - HEADER_BYTES;
/// Start of the fixed columns in a data record.
const FIXED_START: u16 = 4;
/// End offsets of variable columns have 15 bits.
const MAX_IMAGE_BYTES: usize = 0x7FFF;
/// A table has at most 1024 columns that are not sparse, and sparse columns cannot be compressed; dropped columns are
/// added.
const MAX_COLUMNS: usize = 4096;
/// Most bytes that the variable columns of a page's rows have without compression information: one byte of compressed
/// Unicode becomes at most two.
const MOST_VARIABLE_BYTES: usize = 2 * BODY_BYTES;
/// Most bytes with compression information. A row of four nvarchar columns, each a one-byte symbol for the same 2,015
/// bytes, has 10 bytes on the page and 16,120 expanded. Beside that value, a page has space for 608 such rows: 9.8 MB.
/// Other column counts, and anchors, give less. A server writes less if, as is likely, its limit of 8,060 bytes per row
/// applies to the expanded form.
const MOST_COMPLETED_BYTES: usize = 10 << 20;
/// The in-row root of an off-row value, with five links (docs/format/records.md#complex-columns).
const MOST_POINTER_BYTES: usize = 12 + 12 * 5;
/// First byte of a prefix length of two bytes.
const WIDE_PREFIX: u8 = 0x80;
/// Placeholder for a forwarded row's back pointer, whose format in compressed rows is undocumented: it points nowhere.
const BACK_POINTER: [u8; 10] = [0, 4, 0, 0, 0, 0, 0, 0, 0, 0];

/// A column of a compressed rowset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompressedColumn {
    /// Its type.
    pub info: TypeInfo,
    /// The uniquifier of a clustered index that is not unique: a variable int in uncompressed records.
    pub is_uniquifier: bool,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    info: TypeInfo,
    codec: Codec,
    /// Offset of a fixed column; 0 for a variable one.
    fixed: u16,
    length: u16,
    /// End of the fixed part of a record that has no later columns.
    fixed_end: u16,
    /// Number of variable columns in such a record.
    variable: u16,
}

/// The rules by which rows of a compressed rowset are expanded.
#[derive(Clone, Debug)]
pub struct Expansion {
    slots: Vec<Slot>,
    /// Pages of the rowset may have compression information.
    has_information: bool,
}

/// The most memory that the rows of a page need in expanded form.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MostOfPage {
    /// Bytes of all rows.
    pub bytes: usize,
    /// Number of values in the rows.
    pub values: usize,
}

/// Buffers for expanded rows; reuses its allocations.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    image: Vec<u8>,
    value: Vec<u8>,
    text: Vec<u8>,
    doubts: Vec<(u16, Doubt)>,
}

/// An expanded row.
#[derive(Clone, Copy)]
pub struct Expanded<'s> {
    /// The uncompressed record.
    pub record: Record<'s>,
    /// Columns, by null bit, whose values are not in the record, and why not. The record has zero or an empty value for
    /// them.
    pub doubts: &'s [(u16, Doubt)],
}

/// The value of a column, with prefix and symbol resolved.
enum Value<'a> {
    Null,
    Bit(bool),
    /// The first bytes come from the anchor, the others from the record.
    Bytes(&'a [u8], &'a [u8]),
    Complex(&'a [u8]),
    Unknown(&'static str),
}

impl Expansion {
    /// The expansion of a rowset whose CD columns are `columns`, in order. An element is `None` if the catalog lacks
    /// this column number but has higher ones. Returns `None` if no record can hold all columns.
    pub fn new(columns: &[Option<CompressedColumn>]) -> Option<Self> {
        if columns.len() > MAX_COLUMNS {
            return None;
        }
        let mut slots = Vec::with_capacity(columns.len());
        let (mut fixed_end, mut variable) = (FIXED_START, 0);
        for column in columns {
            let (info, codec, length) = match column {
                None => (TypeInfo::default(), Codec::Verbatim, None),
                Some(column) if column.is_uniquifier => (column.info, Codec::Uniquifier, None),
                Some(column) => {
                    let (codec, length) = Codec::of(column.info);
                    (column.info, codec, length)
                }
            };
            let fixed = if length.is_some() { fixed_end } else { 0 };
            match length {
                Some(length) => fixed_end = fixed_end.checked_add(length)?,
                None => variable += 1,
            }
            slots.push(Slot { info, codec, fixed, length: length.unwrap_or_default(), fixed_end, variable });
        }
        // Every place must be one that the catalog can express.
        (usize::from(fixed_end) <= MAX_IMAGE_BYTES).then_some(Self { slots, has_information: false })
    }

    /// Allows for PAGE compression: pages of the rowset may have anchors and dictionaries.
    pub fn with_information(self) -> Self {
        Self { has_information: true, ..self }
    }

    /// The most memory that the rows of a page need in expanded form. A column of fixed length that is NULL has half a
    /// byte on the page: 1,156 rows of an int and a `char(8000)` become 9 MB.
    pub fn most_of_page(&self) -> MostOfPage {
        let most_variable_bytes = if self.has_information { MOST_COMPLETED_BYTES } else { MOST_VARIABLE_BYTES };
        let (mut most, mut of_row) = (MostOfPage::default(), 0);
        // Rows written before the last columns were added have fewer columns.
        for count in 0..=self.slots.len() {
            let last = count.checked_sub(1).and_then(|last| self.slots.get(last));
            let (fixed_end, variable) = last.map_or((FIXED_START, 0), |last| (last.fixed_end, last.variable));
            let longest = |last: &Slot| match (last.info.xtype, usize::from(last.info.length)) {
                // Values of a (max) type, and of the older types with the option 'text in row', may be in the row.
                (_, 0) | (xtype::TEXT | xtype::NTEXT | xtype::IMAGE, _) => BODY_BYTES,
                // An off-row value has a pointer in the row.
                (_, length) => length.clamp(MOST_POINTER_BYTES, BODY_BYTES),
            };
            of_row += last.filter(|last| last.fixed == 0).map_or(0, longest);
            let ends = 2 + 2 * (usize::from(variable) + 1);
            let head = usize::from(fixed_end) + 2 + count.div_ceil(8) + ends + BACK_POINTER.len() + VERSION_TAG_BYTES;
            // One slot, and a record of a status byte, the column count, and the descriptors.
            let rows = BODY_BYTES / (2 + 2 + count.div_ceil(2));
            most.bytes = most.bytes.max(rows * head + (rows * of_row).min(most_variable_bytes));
            most.values = most.values.max(rows * count);
        }
        most
    }

    /// Number of columns of the rowset.
    pub fn columns(&self) -> usize {
        self.slots.len()
    }

    /// Place of a column, counted from 0, in expanded records: positive byte offset, or negative number of a variable
    /// column. Its null bit is the column's number from 1; a bit column is the lowest bit of its byte.
    pub fn place(&self, column: usize) -> Option<i16> {
        let slot = self.slots.get(column)?;
        let place = i16::try_from(if slot.fixed > 0 { slot.fixed } else { slot.variable }).ok()?;
        Some(if slot.fixed > 0 { place } else { -place })
    }

    /// Tests the rules that depend on the page and the column types: symbols, prefixes, the descriptor of a set bit.
    pub fn audit(&self, record: &CdRecord<'_>, info: Option<&CompressionInfo<'_>>) -> Result<(), CdFault> {
        for (number, (column, slot)) in record.columns().zip(&self.slots).enumerate() {
            match column.descriptor {
                Descriptor::Null | Descriptor::Empty => continue,
                Descriptor::BitTrue if slot.codec != Codec::Bit && slot.info != TypeInfo::default() => {
                    return Err(CdFault::new(CdTest::BitDescriptor, 11, slot.info.xtype.into()));
                }
                _ => {}
            }
            let stored = match (column.descriptor, column.bytes) {
                (Descriptor::Symbol, &[symbol, ..]) => {
                    let entries = info.map_or(0, CompressionInfo::entries);
                    info.and_then(|info| info.entry(symbol)).ok_or(CdFault::new(
                        CdTest::Symbol,
                        symbol.into(),
                        entries.into(),
                    ))?
                }
                (_, bytes) => bytes,
            };
            if let Some(Anchor::Bytes(anchor)) = info.map(|info| info.anchor(number))
                && !column.is_complex
                && let Some((prefix, _)) = split_prefix(stored)
                && prefix > anchor.len()
            {
                return Err(CdFault::new(CdTest::Prefix, prefix, anchor.len()));
            }
        }
        Ok(())
    }

    /// Expands a row into `scratch`; `Err` gives the reason if that is impossible.
    pub fn expand<'s>(
        &self,
        record: &CdRecord<'_>,
        info: Option<&CompressionInfo<'_>>,
        scratch: &'s mut Scratch,
    ) -> Result<Expanded<'s>, &'static str> {
        let Scratch { image, value: whole, text, doubts } = scratch;
        let kind = record.kind().plain();
        let count = usize::from(record.column_count());
        let (fixed_end, variable) = count
            .checked_sub(1)
            .and_then(|last| self.slots.get(last))
            .map_or((FIXED_START, 0), |last| (last.fixed_end, usize::from(last.variable)));
        let is_forwarded = kind == RecordKind::Forwarded;
        let variable_count = variable + usize::from(is_forwarded);
        let bitmap = usize::from(fixed_end) + 2;
        let offsets = bitmap + count.div_ceil(8) + 2;
        doubts.clear();
        image.clear();
        image.resize(if variable_count > 0 { offsets + 2 * variable_count } else { offsets - 2 }, 0);
        let tag = record.version_tag();
        let mut head = status::NULL_BITMAP | (kind as u8) << 1;
        head |= if variable_count > 0 { status::VARIABLE } else { 0 };
        head |= if tag.is_some() { status::VERSION_TAG } else { 0 };
        if let Some(first) = image.first_mut() {
            *first = head;
        }
        put_u16(image, 2, fixed_end.into());
        put_u16(image, fixed_end.into(), count);
        if variable_count > 0 {
            put_u16(image, offsets - 2, variable_count);
        }
        let mut entry = offsets;
        for (number, (column, slot)) in record.columns().zip(&self.slots).enumerate() {
            let value = resolve(&column, info, number);
            if let (Value::Null, Some(byte)) = (&value, image.get_mut(bitmap + number / 8)) {
                *byte |= 1 << (number % 8);
            }
            let is_complex = matches!(value, Value::Complex(_)) && slot.fixed == 0;
            let doubt = put_value(slot, value, image, (&mut *whole, &mut *text)).err();
            if let Some(doubt) = doubt {
                doubts.push((number as u16 + 1, doubt));
            }
            if slot.fixed == 0 {
                let end = image.len();
                if end > MAX_IMAGE_BYTES {
                    return Err("its values take more than a row can have");
                }
                put_u16(image, entry, end | if is_complex { COMPLEX.into() } else { 0 });
                entry += 2;
            }
        }
        if is_forwarded {
            image.extend_from_slice(&BACK_POINTER);
            let end = image.len();
            put_u16(image, entry, (end & MAX_IMAGE_BYTES) | usize::from(COMPLEX));
        }
        if let Some(tag) = tag {
            image.extend_from_slice(tag);
        }
        let record = Record::data(image).map_err(|_| "its values take more than a row can have")?;
        Ok(Expanded { record, doubts })
    }
}

/// Writes a resolved value to its place; a NULL has none.
#[inline]
fn put_value(
    slot: &Slot,
    value: Value<'_>,
    image: &mut Vec<u8>,
    (whole, text): (&mut Vec<u8>, &mut Vec<u8>),
) -> Result<(), Doubt> {
    match value {
        Value::Null => {}
        Value::Unknown(reason) => return Err(Doubt::Unknown(reason)),
        Value::Bit(bit) if slot.codec == Codec::Bit => {
            if let Some(byte) = image.get_mut(usize::from(slot.fixed)) {
                *byte = bit.into();
            }
        }
        Value::Bit(_) => return Err(Doubt::Unknown("a set bit in a column of another type")),
        Value::Complex(bytes) if slot.fixed == 0 => image.extend_from_slice(bytes),
        Value::Complex(_) => return Err(Doubt::Unknown("a pointer in a column of fixed length")),
        Value::Bytes(prefix, suffix) if slot.codec == Codec::Verbatim => {
            image.extend_from_slice(prefix);
            image.extend_from_slice(suffix);
        }
        Value::Bytes(prefix, suffix) => put(slot, joined(prefix, suffix, whole), image, text)?,
    }
    Ok(())
}

/// Decodes a value and writes it to its place.
fn put(slot: &Slot, stored: &[u8], image: &mut Vec<u8>, text: &mut Vec<u8>) -> Result<(), Doubt> {
    match slot.codec {
        Codec::Unicode => unicode(stored, image),
        Codec::Uniquifier => uniquifier(stored, image),
        _ => put_fixed(slot, stored, image, text),
    }
}

/// Decodes a value of fixed length and writes it to its place.
fn put_fixed(slot: &Slot, stored: &[u8], image: &mut [u8], text: &mut Vec<u8>) -> Result<(), Doubt> {
    let place = usize::from(slot.fixed)..usize::from(slot.fixed) + usize::from(slot.length);
    match image.get_mut(place) {
        Some(into) => decode_fixed(slot.codec, slot.info, stored, into, text),
        None => Ok(()),
    }
}

/// Prefix and suffix as one slice, copied to `whole` only if both have bytes.
fn joined<'a>(prefix: &'a [u8], suffix: &'a [u8], whole: &'a mut Vec<u8>) -> &'a [u8] {
    match (prefix, suffix) {
        ([], only) | (only, []) => only,
        _ => {
            whole.clear();
            whole.extend_from_slice(prefix);
            whole.extend_from_slice(suffix);
            whole
        }
    }
}

#[inline]
fn resolve<'a>(column: &CdColumn<'a>, info: Option<&CompressionInfo<'a>>, number: usize) -> Value<'a> {
    let anchor = info.map_or(Anchor::None, |info| info.anchor(number));
    let stored = match column.descriptor {
        Descriptor::Null => return Value::Null,
        Descriptor::BitTrue => return Value::Bit(true),
        Descriptor::Empty => {
            return match anchor {
                Anchor::None => Value::Bytes(&[], &[]),
                Anchor::Bytes(anchor) => Value::Bytes(anchor, &[]),
                Anchor::Bit(bit) => Value::Bit(bit),
            };
        }
        Descriptor::Short(_) | Descriptor::Long => column.bytes,
        Descriptor::Symbol => {
            let symbol = column.bytes.first().copied().unwrap_or_default();
            match info.and_then(|info| info.entry(symbol)) {
                Some(entry) => entry,
                None => return Value::Unknown("a symbol without a dictionary"),
            }
        }
    };
    match anchor {
        Anchor::None if column.is_complex => Value::Complex(stored),
        Anchor::None => Value::Bytes(&[], stored),
        _ if column.is_complex => Value::Unknown("a pointer in a column that has an anchor"),
        // A prefix length of 0 and no bytes after it: zero.
        Anchor::Bit(_) if stored == [0] => Value::Bit(false),
        Anchor::Bit(_) => Value::Unknown("a bit with bytes of its own"),
        Anchor::Bytes(anchor) => match split_prefix(stored) {
            Some((prefix, suffix)) if prefix <= anchor.len() => {
                Value::Bytes(anchor.get(..prefix).unwrap_or_default(), suffix)
            }
            _ => Value::Unknown("a prefix length in an undocumented form"),
        },
    }
}

/// The length of the anchor prefix of a value, and the bytes after it. One byte gives the length, or two from 128 to
/// 255; the encoding of longer ones is undocumented.
fn split_prefix(stored: &[u8]) -> Option<(usize, &[u8])> {
    match stored {
        [WIDE_PREFIX, length, suffix @ ..] => Some(((*length).into(), suffix)),
        [length, suffix @ ..] if *length < WIDE_PREFIX => Some(((*length).into(), suffix)),
        _ => None,
    }
}

fn put_u16(image: &mut [u8], at: usize, value: usize) {
    if let Some(place) = image.get_mut(at..at + 2) {
        place.copy_from_slice(&(value as u16).to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
