//! Finds the values of several rows on the page, column by column, and the anchor bytes that complete them.

use super::super::{COMPLEX, Slot, WIDE_PREFIX};
use super::layouts::{BIT_TRUE, EMPTY, LONG, Layouts, NULL, Place, SYMBOL, Seen};
use crate::PageBytes;
use crate::bytes::u16_at;
use crate::compressed::info::{Anchor, CompressionInfo};
use crate::compressed::record::{CdHead, CdKind, CdRecord};
use crate::compressed::value::{Codec, number};
use crate::page::HEADER_BYTES;
use crate::record::VERSION_TAG_BYTES;

/// A column, and the anchor that completes its values on one page.
pub(super) struct Column<'a> {
    pub(super) slot: Slot,
    anchor: Anchor<'a>,
    /// The length of the anchor in bytes.
    anchor_length: u16,
    /// Element N is the first N bytes of the anchor as a number, or 0 if the anchor is shorter.
    prefixes: [u64; 9],
}

/// A way to find the values of one column in several rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// All values are stored completely in the short region. In expanded rows, the column has a fixed length.
    Short,
    /// Like `Short`, but a value may begin with bytes of the anchor.
    Anchored,
    /// The values may be stored anywhere. All of them are found before the first value of the rows is written.
    Any,
}

/// A record and its next long value. All positions are offsets on the page.
pub(super) struct Row {
    pub(super) kind: CdKind,
    pub(super) length: u16,
    /// The offset of the version tag.
    pub(super) tag_at: Option<u16>,
    /// The start of the expanded form in the buffer.
    pub(super) place: u16,
    /// The offset of the record on the page, minus eight. The sum of this number and the end of a value (an offset in
    /// the record) is the offset on the page of the eight bytes before that end.
    word_at: u16,
    /// The index of this record's first place among the places of all layouts.
    places_at: u16,
    long_end_at: u16,
    long_at: u16,
    long_start: u16,
}

/// The stored value of a column: the number of bytes to take from the start of the anchor, and the bytes on the page
/// that follow them.
#[derive(Clone, Copy, Default)]
pub(super) struct Stored {
    pub(super) prefix: u16,
    pub(super) start: u16,
    pub(super) length: u16,
    half: u8,
    /// Whether the bytes are a pointer to the value, or a value in a special form.
    pub(super) is_complex: bool,
}

impl Row {
    /// The row of the record at `start`, with the places of its short values; `None` if the end of the record is
    /// unknown.
    #[inline(always)]
    pub(super) fn of(start: usize, head: CdHead, record: &CdRecord<'_>, places_at: u16) -> Option<Self> {
        let (long_offsets_at, long_at) = record.long_parts();
        let length = record.length()?;
        let on_page = |at: usize| (start + at) as u16;
        Some(Self {
            kind: CdKind::of(head.status),
            length: length as u16,
            tag_at: head.is_versioned().then(|| on_page(length - VERSION_TAG_BYTES)),
            place: 0,
            word_at: start.checked_sub(size_of::<u64>())? as u16,
            places_at,
            long_end_at: on_page(long_offsets_at.into()),
            long_at: on_page(long_at.into()),
            long_start: on_page(long_at.into()),
        })
    }

    /// The value of a column in the short region, as a number, and the length of the value: at most eight bytes.
    #[inline(always)]
    pub(super) fn short_word(&self, page: &PageBytes, layouts: &Layouts, column: usize) -> Option<(u64, usize)> {
        let Place { end, length, .. } = layouts.place(self.places_at, column)?;
        let word = word_at(page, usize::from(self.word_at) + usize::from(end))?;
        Some((word & mask(length), length.into()))
    }

    /// The value of a column with an anchor, as a number, and the length of the value in bytes.
    #[inline(always)]
    pub(super) fn anchored_word(
        &self,
        page: &PageBytes,
        layouts: &Layouts,
        (number, column): (usize, &Column<'_>),
    ) -> Option<(u64, usize)> {
        let Place { end, length, half } = layouts.place(self.places_at, number)?;
        let word = word_at(page, usize::from(self.word_at) + usize::from(end))?;
        // This path reads prefix lengths of one byte. `anchored` also reads prefix lengths of two bytes.
        let (own, prefix) = (length.wrapping_sub(1), (word & mask(length)) >> (8 * (length.wrapping_sub(1) & 7)));
        if matches!(half, NULL | EMPTY | BIT_TRUE) || prefix >= WIDE_PREFIX.into() {
            let stored = self.anchored(page, layouts, (number, column))?;
            let length = stored.whole_length();
            return (length <= size_of::<u64>()).then_some((column.word(page, &stored)?, length));
        }
        let number = *column.prefixes.get(prefix as usize)? << (8 * (own & 7)) | word & mask(own);
        let length = prefix as usize + usize::from(own);
        (prefix <= column.anchor_length.into() && length <= size_of::<u64>()).then_some((number, length))
    }

    /// The stored value of a column with an anchor. The value must be in the short region.
    #[inline]
    pub(super) fn anchored(
        &self,
        page: &PageBytes,
        layouts: &Layouts,
        (number, column): (usize, &Column<'_>),
    ) -> Option<Stored> {
        let mut stored = self.short(layouts, number)?;
        split(page, column.anchor_length, &mut stored)?;
        Some(stored)
    }

    /// The stored value of a column in the short region.
    #[inline(always)]
    pub(super) fn short(&self, layouts: &Layouts, column: usize) -> Option<Stored> {
        let Place { end, length, half } = layouts.place(self.places_at, column)?;
        let start = self.word_at + size_of::<u64>() as u16 + end - u16::from(length);
        Some(Stored { prefix: 0, start, length: length.into(), half, is_complex: false })
    }
}

impl Stored {
    #[inline(always)]
    pub(super) fn is_null(&self) -> bool {
        self.half == NULL
    }

    /// Whether the value is a set bit.
    pub(super) fn is_set(&self) -> bool {
        self.half == BIT_TRUE
    }

    /// The bytes of the value that are stored in the row, without those of the anchor.
    pub(super) fn own<'p>(&self, page: &'p PageBytes) -> Option<&'p [u8]> {
        page.get(self.start.into()..usize::from(self.start) + usize::from(self.length))
    }

    /// The length of the value, including the bytes of the anchor.
    #[inline(always)]
    pub(super) fn whole_length(&self) -> usize {
        usize::from(self.prefix) + usize::from(self.length)
    }
}

impl<'a> Column<'a> {
    /// A column of a page with this compression information.
    pub(super) fn of(slot: Slot, at: usize, info: Option<&CompressionInfo<'a>>) -> Self {
        let anchor = info.map_or(Anchor::None, |info| info.anchor(at));
        let bytes = match anchor {
            Anchor::Bytes(bytes) => bytes,
            Anchor::None | Anchor::Bit(_) => &[],
        };
        let prefixes = std::array::from_fn(|length| bytes.get(..length).map_or(0, number));
        Self { slot, anchor, anchor_length: bytes.len() as u16, prefixes }
    }

    /// Whether the column allows all of these half-bytes.
    pub(super) fn allows(&self, seen: Seen) -> bool {
        !(SYMBOL + 1..16).any(|half| seen.has(half)) && (!seen.has(BIT_TRUE) || self.slot.codec == Codec::Bit)
    }

    /// The way to find values with these half-bytes.
    pub(super) fn way(&self, seen: Seen) -> Way {
        match self.anchor {
            _ if self.slot.fixed == 0 || seen.has(LONG) || seen.has(SYMBOL) => Way::Any,
            Anchor::None => Way::Short,
            Anchor::Bytes(_) => Way::Anchored,
            Anchor::Bit(_) => Way::Any,
        }
    }

    /// Finds and completes the stored values of these rows in this column. The columns must be passed in order. Returns
    /// whether some value is complex, or `None` if a value has a form that is not handled here.
    pub(super) fn find(
        &self,
        (page, info): (&PageBytes, Option<&CompressionInfo<'_>>),
        (layouts, at): (&Layouts, usize),
        rows: &mut [Row],
        found: &mut [Stored],
    ) -> Option<bool> {
        let seen = layouts.seen(at);
        let mut has_complex = false;
        if seen.has(LONG) {
            has_complex = find_long(page, (layouts, at), rows, found)?;
            if has_complex && (self.slot.fixed > 0 || self.anchor != Anchor::None) {
                return None;
            }
        } else {
            for (row, stored) in rows.iter().zip(&mut *found) {
                *stored = row.short(layouts, at)?;
            }
        }
        if seen.has(SYMBOL) {
            for stored in found.iter_mut().filter(|stored| stored.half == SYMBOL) {
                let place = info?.entry_place(*page.get(usize::from(stored.start))?)?;
                (stored.start, stored.length) = ((HEADER_BYTES + place.start) as u16, place.len() as u16);
            }
        }
        match self.anchor {
            Anchor::None => {}
            Anchor::Bytes(_) => found.iter_mut().try_for_each(|found| split(page, self.anchor_length, found))?,
            Anchor::Bit(bit) => self.resolve_bits(page, bit, found)?,
        }
        Some(has_complex)
    }

    /// Decodes the values of a column that has a bit as its anchor.
    fn resolve_bits(&self, page: &PageBytes, bit: bool, found: &mut [Stored]) -> Option<()> {
        for stored in found.iter_mut().filter(|stored| !stored.is_null() && !stored.is_set()) {
            // The only byte is a prefix length of 0, which means the value zero.
            let is_zero = stored.length == 1 && page.get(usize::from(stored.start)) == Some(&0);
            let half = match stored.half {
                EMPTY if bit => BIT_TRUE,
                EMPTY => EMPTY,
                _ if is_zero => EMPTY,
                _ => return None,
            };
            if self.slot.codec != Codec::Bit {
                return None;
            }
            *stored = Stored { half, length: 0, ..*stored };
        }
        Some(())
    }

    /// The bytes of the anchor at the start of a value.
    pub(super) fn prefix(&self, stored: &Stored) -> Option<&'a [u8]> {
        match self.anchor {
            Anchor::Bytes(anchor) => anchor.get(..stored.prefix.into()),
            Anchor::None | Anchor::Bit(_) => Some(&[]),
        }
    }

    /// A value of at most eight bytes as a big-endian number.
    #[inline(always)]
    pub(super) fn word(&self, page: &PageBytes, stored: &Stored) -> Option<u64> {
        // The eight bytes up to the end of the value are on the page, because the page header precedes the value.
        let end = usize::from(stored.start) + usize::from(stored.length);
        let own = word_at(page, end.checked_sub(size_of::<u64>())?)?;
        let own = own & mask(u8::try_from(stored.length).ok().filter(|length| *length <= 8)?);
        let bits = 8 * u32::from(stored.length);
        Some(self.prefixes.get(usize::from(stored.prefix))?.checked_shl(bits).unwrap_or_default() | own)
    }
}

/// Finds the values of a column if some of them are long. Returns whether some long value is complex. The loop has no
/// branches, because a processor cannot predict which rows have a long value.
fn find_long(
    page: &PageBytes,
    (layouts, at): (&Layouts, usize),
    rows: &mut [Row],
    found: &mut [Stored],
) -> Option<bool> {
    let mut all_ends = 0;
    for (row, stored) in rows.iter_mut().zip(found) {
        let short = row.short(layouts, at)?;
        let is_long = u16::from(short.half == LONG);
        let choose = |long: u16, other: u16| if is_long != 0 { long } else { other };
        // If the row has no long value in this column, this reads unrelated bytes of the page, which are not used.
        let end = u16_at(page, row.long_end_at.into())?;
        let next = row.long_at.wrapping_add(end & !COMPLEX);
        let long_end = choose(end, 0);
        *stored = Stored {
            start: choose(row.long_start, short.start),
            length: choose(next.wrapping_sub(row.long_start), short.length),
            is_complex: long_end & COMPLEX != 0,
            ..short
        };
        all_ends |= long_end;
        row.long_start = choose(next, row.long_start);
        row.long_end_at += 2 * is_long;
    }
    Some(all_ends & COMPLEX != 0)
}

/// The eight bytes at `at`, as a big-endian number.
#[inline(always)]
fn word_at(page: &PageBytes, at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(*page.get(at..at + size_of::<u64>())?.first_chunk()?))
}

/// A mask for the low `length` bytes, at most eight.
#[inline(always)]
fn mask(length: u8) -> u64 {
    MASKS.get(usize::from(length) & 15).copied().unwrap_or_default()
}

/// The masks that [`mask`] returns, by length in bytes. Lengths above eight do not occur.
#[expect(clippy::indexing_slicing, reason = "a constant, whose places are below 8")]
const MASKS: [u64; 16] = {
    let mut masks = [u64::MAX; 16];
    let mut length = 0;
    while length < 8 {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

/// Splits a stored value into the part from the anchor and its own bytes. The length of the part from the anchor is
/// stored before these bytes. `anchor` is the length of the anchor.
#[inline(always)]
fn split(page: &PageBytes, anchor: u16, stored: &mut Stored) -> Option<()> {
    match stored.half {
        NULL | BIT_TRUE => {}
        EMPTY => stored.prefix = anchor,
        _ => {
            let start = usize::from(stored.start);
            let (prefix, own) = match *page.get(start)? {
                WIDE_PREFIX => (*page.get(start + 1)?, 2),
                prefix @ 0..WIDE_PREFIX => (prefix, 1),
                _ => return None,
            };
            (stored.prefix, stored.start) = (prefix.into(), stored.start + own);
            stored.length = stored.length.checked_sub(own)?;
            if stored.prefix > anchor {
                return None;
            }
        }
    }
    Some(())
}
