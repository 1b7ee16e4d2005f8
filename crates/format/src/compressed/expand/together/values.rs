//! Where the values of a record are on its page, and what completes them there.

use super::super::{COMPLEX, Slot, WIDE_PREFIX};
use crate::PageBytes;
use crate::bytes::u16_at;
use crate::compressed::info::{Anchor, CompressionInfo};
use crate::compressed::record::{CdParts, CdRecord, Descriptor};
use crate::compressed::value::number;
use crate::page::HEADER_BYTES;

/// The half-bytes that describe columns, but for those of short values, which are between the second and the third.
const NULL: u8 = 0;
const EMPTY: u8 = 1;
const LONG: u8 = 10;
const BIT_TRUE: u8 = 11;
const SYMBOL: u8 = 12;

/// By half-byte, the bytes in the short region.
#[expect(clippy::indexing_slicing, reason = "a constant, by each half-byte")]
const SHORT_BYTES: [u8; 16] = {
    let mut bytes = [0; 16];
    let mut half = 0;
    while half < 16 {
        if let Some(descriptor) = Descriptor::of(half as u8) {
            bytes[half] = descriptor.short_bytes() as u8;
        }
        half += 1;
    }
    bytes
};

/// A column, with what completes its values on a page.
pub(super) struct Column<'a> {
    pub(super) slot: Slot,
    anchor: Anchor<'a>,
    /// The numbers that the first bytes of the anchor make, by how many they are; 0 where it has fewer.
    prefixes: [u64; 9],
}

/// The columns of a record, one after the other.
pub(super) struct Values<'p> {
    page: &'p PageBytes,
    descriptors: &'p [u8],
    short_at: usize,
    long_end_at: usize,
    long_at: usize,
    long_start: usize,
}

/// What a record has for a column: its own bytes, on the page.
pub(super) struct Stored {
    half: u8,
    start: usize,
    length: usize,
    /// A pointer to the value, or a value in a special form.
    pub(super) is_complex: bool,
}

/// A value.
pub(super) enum Value {
    Bit(bool),
    Bytes(Bytes),
}

/// A value that begins with that many bytes of the anchor, and goes on with others of the page.
pub(super) struct Bytes {
    pub(super) prefix: usize,
    pub(super) start: usize,
    pub(super) length: usize,
}

impl<'p> Values<'p> {
    /// Those of a record that starts there.
    pub(super) fn of(page: &'p PageBytes, start: usize, record: &CdRecord<'_>) -> Self {
        let CdParts { descriptors_at, short_at, long_offsets_at, long_at } = record.parts();
        Self {
            page,
            descriptors: page.get(start + descriptors_at..).unwrap_or_default(),
            short_at: start + short_at,
            long_end_at: start + long_offsets_at.unwrap_or_default(),
            long_at: start + long_at,
            long_start: start + long_at,
        }
    }

    /// What the record has for the column of this number, which follows that before; `None` if it is nothing that is known here.
    #[inline(always)]
    pub(super) fn next(&mut self, at: usize, info: Option<&CompressionInfo<'_>>) -> Option<Stored> {
        let half = *self.descriptors.get(at / 2)? >> (4 * (at % 2)) & 0xF;
        let length = usize::from(*SHORT_BYTES.get(usize::from(half))?);
        let mut stored = Stored { half, start: self.short_at, length, is_complex: false };
        self.short_at += length;
        match half {
            NULL..LONG | BIT_TRUE => {}
            LONG => {
                let end = u16_at(self.page, self.long_end_at)?;
                (stored.start, stored.is_complex) = (self.long_start, end & COMPLEX != 0);
                self.long_start = self.long_at + usize::from(end & !COMPLEX);
                stored.length = self.long_start.checked_sub(stored.start)?;
                self.long_end_at += 2;
            }
            SYMBOL => {
                let place = info?.entry_place(*self.page.get(stored.start)?)?;
                (stored.start, stored.length) = (HEADER_BYTES + place.start, place.len());
            }
            _ => return None,
        }
        Some(stored)
    }
}

impl Stored {
    #[inline(always)]
    pub(super) fn is_null(&self) -> bool {
        self.half == NULL
    }
}

impl Bytes {
    /// Those that are not the anchor's.
    pub(super) fn own<'p>(&self, page: &'p PageBytes) -> Option<&'p [u8]> {
        page.get(self.start..self.start + self.length)
    }
}

impl<'a> Column<'a> {
    /// A column of a page that has this compression information.
    pub(super) fn of(slot: Slot, at: usize, info: Option<&CompressionInfo<'a>>) -> Self {
        let anchor = info.map_or(Anchor::None, |info| info.anchor(at));
        let prefixes = match anchor {
            Anchor::Bytes(bytes) => std::array::from_fn(|length| bytes.get(..length).map_or(0, number)),
            Anchor::None | Anchor::Bit(_) => [0; 9],
        };
        Self { slot, anchor, prefixes }
    }

    /// The value; `None` if it is none that is known here.
    #[inline(always)]
    pub(super) fn value(&self, page: &PageBytes, stored: &Stored) -> Option<Value> {
        let &Stored { half, start, length, is_complex } = stored;
        if half == BIT_TRUE {
            return Some(Value::Bit(true));
        }
        let of_anchor = |prefix| Some(Value::Bytes(Bytes { prefix, start, length: 0 }));
        match self.anchor {
            Anchor::None => Some(Value::Bytes(Bytes { prefix: 0, start, length })),
            _ if half == NULL => of_anchor(0),
            _ if is_complex => None,
            Anchor::Bytes(anchor) if half == EMPTY => of_anchor(anchor.len()),
            Anchor::Bytes(anchor) => {
                let (prefix, own) = match *page.get(start)? {
                    WIDE_PREFIX => (*page.get(start + 1)?, 2),
                    prefix @ 0..WIDE_PREFIX => (prefix, 1),
                    _ => return None,
                };
                let bytes = Bytes { prefix: prefix.into(), start: start + own, length: length.checked_sub(own)? };
                (bytes.prefix <= anchor.len()).then_some(Value::Bytes(bytes))
            }
            Anchor::Bit(bit) if half == EMPTY => Some(Value::Bit(bit)),
            // A prefix of no bytes and nothing after it: zero.
            Anchor::Bit(_) => (length == 1 && page.get(start) == Some(&0)).then_some(Value::Bit(false)),
        }
    }

    /// The bytes that a value takes from the anchor.
    pub(super) fn prefix(&self, bytes: &Bytes) -> Option<&'a [u8]> {
        match self.anchor {
            Anchor::Bytes(anchor) => anchor.get(..bytes.prefix),
            Anchor::None | Anchor::Bit(_) => Some(&[]),
        }
    }

    /// A value of at most eight bytes as a big-endian number.
    #[inline(always)]
    pub(super) fn word(&self, page: &PageBytes, bytes: &Bytes) -> Option<u64> {
        let bits = 8 * bytes.length as u32;
        // Whatever is before it, the header at least, is on the page too.
        let end = bytes.start + bytes.length;
        let own = u64::from_be_bytes(*page.get(end.checked_sub(8)?..end)?.first_chunk()?);
        let mask = u64::MAX.checked_shr(64 - bits).unwrap_or_default();
        Some(self.prefixes.get(bytes.prefix)?.checked_shl(bits).unwrap_or_default() | own & mask)
    }
}
