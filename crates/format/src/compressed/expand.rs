//! Expands compressed rows to the equivalent uncompressed records.
//!
//! Code that reads records need not know about compression. An [`Expansion`] assigns a place to each column of a rowset
//! once, and then writes each row to a buffer as a FixedVar data record with its columns in those places.

mod together;

use super::fault::{CdFault, CdTest};
use super::info::{Anchor, CompressionInfo};
use super::record::{CdColumn, CdRecord, Descriptor};
use super::value::{Codec, Doubt, decode_fixed, unicode, uniquifier};
use crate::page::{HEADER_BYTES, PAGE_BYTES};
use crate::record::{COMPLEX, Record, RecordKind, VERSION_TAG_BYTES, status};
use crate::types::{TypeInfo, xtype};

pub use together::{BYTES_AFTER, CommonForm, ExpandedPage, ExpandedRow, PageColumns};

/// The bytes of a page after its header, for records and slots.
const BODY_BYTES: usize = PAGE_BYTES - HEADER_BYTES;
/// The offset of the first fixed column in a data record.
const FIXED_START: u16 = 4;
/// The maximum length of an expanded record in bytes, because the end offset of a variable column has 15 bits.
const MAX_IMAGE_BYTES: usize = 0x7FFF;
/// A limit above any real table: a table has at most 1024 columns that are not sparse, and dropped columns are added to
/// that number. Sparse columns cannot be compressed.
const MAX_COLUMNS: usize = 4096;
/// The maximum number of bytes in the variable columns of all rows of a page, if the page has no compression
/// information. One byte of compressed Unicode text becomes at most two bytes.
const MOST_VARIABLE_BYTES: usize = 2 * BODY_BYTES;
/// The maximum number of bytes in the variable columns of all rows of a page, if the page has compression information.
/// In the worst case, all rows have four nvarchar columns, and each column is a one-byte symbol for one dictionary
/// entry of 2,015 bytes. A row then has 10 bytes on the page and 16,120 bytes when expanded. A page has space for that
/// entry and 608 rows, which expand to 9.8 MB. Other numbers of columns, and anchors, give less. Real pages probably
/// expand to less, because the server seems to apply its limit of 8,060 bytes per row to expanded rows.
const MOST_COMPLETED_BYTES: usize = 10 << 20;
/// The length in bytes of the longest in-row root of an off-row value, which has five links
/// (docs/format/records.md#complex-columns).
const MOST_POINTER_BYTES: usize = 12 + 12 * 5;
/// The first byte of a prefix length that is stored in two bytes.
const WIDE_PREFIX: u8 = 0x80;
/// A back pointer that points to no row, as a placeholder for the back pointer of a forwarded row. The format of back
/// pointers in compressed rows is undocumented.
const BACK_POINTER: [u8; 10] = [0, 4, 0, 0, 0, 0, 0, 0, 0, 0];

/// A column of a compressed rowset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompressedColumn {
    /// The type of the column.
    pub info: TypeInfo,
    /// Whether the column is the uniquifier of a clustered index that is not unique. Uncompressed records store it as a
    /// variable int.
    pub is_uniquifier: bool,
}

#[derive(Clone, Copy, Hash, Debug)]
struct Slot {
    info: TypeInfo,
    codec: Codec,
    /// The offset of a fixed column in the expanded record; 0 for a variable column.
    fixed: u16,
    length: u16,
    /// The end of the fixed part in records that end with this column.
    fixed_end: u16,
    /// The number of variable columns in records that end with this column.
    variable: u16,
}

/// The rules by which rows of a compressed rowset are expanded.
#[derive(Clone, Hash, Debug)]
pub struct Expansion {
    slots: Vec<Slot>,
    /// Whether pages of the rowset may have compression information.
    has_information: bool,
}

/// The most memory that the rows of a page need in expanded form.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MostOfPage {
    /// The number of bytes of all rows.
    pub bytes: usize,
    /// The number of values in the rows.
    pub values: usize,
}

/// Buffers for expanded rows. They keep their memory from row to row.
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
    /// The null bits of the columns whose values could not be expanded, each with the reason. The record has zero or an
    /// empty value in place of such a value.
    pub doubts: &'s [(u16, Doubt)],
}

/// The value of a column after its prefix and symbol are resolved.
enum Value<'a> {
    Null,
    Bit(bool),
    /// The bytes that the value takes from the anchor, then the bytes that the record stores.
    Bytes(&'a [u8], &'a [u8]),
    Complex(&'a [u8]),
    Unknown(&'static str),
}

impl Expansion {
    /// The rules for a rowset. `columns` lists the columns of the rowset in the order of its CD records. An element is
    /// `None` if the catalog lacks the column with this number, but has columns with higher numbers. Returns `None` if
    /// the fixed columns do not fit into a record.
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
        // The catalog must be able to express the offset of every fixed column.
        (usize::from(fixed_end) <= MAX_IMAGE_BYTES).then_some(Self { slots, has_information: false })
    }

    /// Allows for PAGE compression, where pages of the rowset may have anchors and dictionaries.
    pub fn with_information(self) -> Self {
        Self { has_information: true, ..self }
    }

    /// The most memory that the rows of a page need in expanded form. A NULL in a fixed-length column takes half a byte
    /// on the page, but its full length when expanded. So 1,156 rows of an int and a `char(8000)` expand to 9 MB.
    pub fn most_of_page(&self) -> MostOfPage {
        let most_variable_bytes = if self.has_information { MOST_COMPLETED_BYTES } else { MOST_VARIABLE_BYTES };
        let (mut most, mut of_row) = (MostOfPage::default(), 0);
        // Rows that were written before the last columns were added have fewer columns.
        for count in 0..=self.slots.len() {
            let last = count.checked_sub(1).and_then(|last| self.slots.get(last));
            let (fixed_end, variable) = last.map_or((FIXED_START, 0), |last| (last.fixed_end, last.variable));
            let longest = |last: &Slot| match (last.info.xtype, usize::from(last.info.length)) {
                // A row may contain a whole value of a (max) type, or of text, ntext or image with the option 'text in
                // row'.
                (_, 0) | (xtype::TEXT | xtype::NTEXT | xtype::IMAGE, _) => BODY_BYTES,
                // A row may contain a pointer to an off-row value instead of the value.
                (_, length) => length.clamp(MOST_POINTER_BYTES, BODY_BYTES),
            };
            of_row += last.filter(|last| last.fixed == 0).map_or(0, longest);
            let ends = 2 + 2 * (usize::from(variable) + 1);
            let head = usize::from(fixed_end) + 2 + count.div_ceil(8) + ends + BACK_POINTER.len() + VERSION_TAG_BYTES;
            // The minimum size of a row: two bytes for its slot, one for the status, one for the column count, and the
            // descriptors.
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

    /// The place, in expanded records, of the column with the index `column`. A positive place is the byte offset of a
    /// fixed column, and a negative place is minus the number of a variable column. The null bit of a column is its
    /// index plus 1. A bit column is the lowest bit of its byte.
    pub fn place(&self, column: usize) -> Option<i16> {
        let slot = self.slots.get(column)?;
        let place = i16::try_from(if slot.fixed > 0 { slot.fixed } else { slot.variable }).ok()?;
        Some(if slot.fixed > 0 { place } else { -place })
    }

    /// Tests the rules that depend on the page and the column types: the symbols, the prefixes, and the descriptor of a
    /// set bit.
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

    /// Expands a row into `scratch`; `Err` gives the reason if the row cannot be expanded.
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

/// Writes a resolved value to its place. A NULL writes no bytes.
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

/// Returns `prefix` and `suffix` as one slice. Copies them to `whole` only if neither is empty.
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
        // The only byte is a prefix length of 0, which means the value zero.
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

/// The length of the anchor prefix of a value, and the bytes after it. Lengths below 128 have one byte, lengths from
/// 128 to 255 have two; the encoding of longer prefixes is undocumented.
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
