//! Where the values of some rows are on their page, column by column, and what completes them there.

use super::super::{COMPLEX, Slot, WIDE_PREFIX};
use super::layouts::{BIT_TRUE, EMPTY, LONG, Layouts, NULL, Place, SYMBOL, Seen};
use crate::PageBytes;
use crate::bytes::u16_at;
use crate::compressed::info::{Anchor, CompressionInfo};
use crate::compressed::record::{CdHead, CdKind, CdRecord};
use crate::compressed::value::{Codec, number};
use crate::page::HEADER_BYTES;
use crate::record::VERSION_TAG_BYTES;

/// A column, with what completes its values on a page.
pub(super) struct Column<'a> {
    pub(super) slot: Slot,
    anchor: Anchor<'a>,
    /// The numbers that the first bytes of the anchor make, by how many they are; 0 where it has fewer.
    prefixes: [u64; 9],
}

/// A record, and where its next long value is: places on the page.
pub(super) struct Row {
    pub(super) kind: CdKind,
    pub(super) length: u16,
    /// Its version tag.
    pub(super) tag_at: Option<u16>,
    /// Where its expanded form begins.
    pub(super) place: u16,
    start: u16,
    /// Where the places of its short values begin.
    places_at: u16,
    long_end_at: u16,
    long_at: u16,
    long_start: u16,
}

/// What a record has for a column: some first bytes of the anchor, and then bytes of the page.
#[derive(Clone, Copy, Default)]
pub(super) struct Stored {
    pub(super) prefix: u16,
    pub(super) start: u16,
    pub(super) length: u16,
    half: u8,
    /// A pointer to the value, or a value in a special form.
    pub(super) is_complex: bool,
}

/// Finds what some rows have for the column of this number in their short regions.
pub(super) fn find_short(layouts: &Layouts, at: usize, rows: &[Row], found: &mut [Stored]) -> Option<()> {
    for (row, stored) in rows.iter().zip(found) {
        *stored = row.short(layouts, at)?;
    }
    Some(())
}

impl Row {
    /// The row of a record that starts there, and whose short values have these places; `None` if its end is unknown.
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
            start: start as u16,
            places_at,
            long_end_at: on_page(long_offsets_at.into()),
            long_at: on_page(long_at.into()),
            long_start: on_page(long_at.into()),
        })
    }

    /// The number that a column has in its short region, of at most eight bytes, and its length.
    #[inline(always)]
    pub(super) fn short_word(&self, page: &PageBytes, layouts: &Layouts, column: usize) -> Option<(u64, usize)> {
        let Place { end, length, .. } = layouts.place(self.places_at, column)?;
        Some((
            word_before(page, usize::from(self.start) + usize::from(end))? & MASKS.get(usize::from(length))?,
            length.into(),
        ))
    }

    /// What it has for a column in its short region.
    #[inline(always)]
    pub(super) fn short(&self, layouts: &Layouts, column: usize) -> Option<Stored> {
        let Place { end, length, half } = layouts.place(self.places_at, column)?;
        let start = self.start + end - u16::from(length);
        Some(Stored { prefix: 0, start, length: length.into(), half, is_complex: false })
    }
}

impl Stored {
    #[inline(always)]
    pub(super) fn is_null(&self) -> bool {
        self.half == NULL
    }

    /// A bit that is set.
    pub(super) fn is_set(&self) -> bool {
        self.half == BIT_TRUE
    }

    /// The bytes that are not the anchor's.
    pub(super) fn own<'p>(&self, page: &'p PageBytes) -> Option<&'p [u8]> {
        page.get(self.start.into()..usize::from(self.start) + usize::from(self.length))
    }

    /// The length of the value.
    #[inline(always)]
    pub(super) fn whole_length(&self) -> usize {
        usize::from(self.prefix) + usize::from(self.length)
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

    /// Whether values of these half-bytes are possible.
    pub(super) fn allows(&self, seen: Seen) -> bool {
        !(SYMBOL + 1..16).any(|half| seen.has(half)) && (!seen.has(BIT_TRUE) || self.slot.codec == Codec::Bit)
    }

    /// Whether values of these half-bytes are whole where they are in the short region, and have fixed places in expanded rows.
    pub(super) fn is_short(&self, seen: Seen) -> bool {
        self.slot.fixed > 0 && self.anchor == Anchor::None && !seen.has(LONG) && !seen.has(SYMBOL)
    }

    /// Completes what was found for each of these rows by [`find_short`], from column to column. `None` if one has something
    /// that is not known here.
    pub(super) fn complete(
        &self,
        (page, info): (&PageBytes, Option<&CompressionInfo<'_>>),
        rows: &mut [Row],
        found: &mut [Stored],
        mut seen: Seen,
    ) -> Option<Seen> {
        if seen.has(LONG) {
            self.find_long(page, rows, found, &mut seen)?;
        }
        if seen.has(SYMBOL) {
            for stored in found.iter_mut().filter(|stored| stored.half == SYMBOL) {
                let place = info?.entry_place(*page.get(usize::from(stored.start))?)?;
                (stored.start, stored.length) = ((HEADER_BYTES + place.start) as u16, place.len() as u16);
            }
        }
        match self.anchor {
            Anchor::None => {}
            _ if seen.has_complex() => return None,
            Anchor::Bytes(anchor) => split(page, anchor.len() as u16, found)?,
            Anchor::Bit(bit) => self.resolve_bits(page, bit, found)?,
        }
        Some(seen)
    }

    /// Finds the long values. Without branches: a processor cannot predict which rows have one.
    fn find_long(&self, page: &PageBytes, rows: &mut [Row], found: &mut [Stored], seen: &mut Seen) -> Option<()> {
        let mut all_ends = 0;
        for (row, stored) in rows.iter_mut().zip(found) {
            let is_long = u16::from(stored.half == LONG);
            let choose = |long: u16, other: u16| if is_long != 0 { long } else { other };
            // If the row has no long value here, this reads other bytes of the page, which are not used.
            let end = u16_at(page, row.long_end_at.into())?;
            let next = row.long_at.wrapping_add(end & !COMPLEX);
            stored.start = choose(row.long_start, stored.start);
            stored.length = choose(next.wrapping_sub(row.long_start), stored.length);
            stored.is_complex = choose(end, 0) & COMPLEX != 0;
            all_ends |= choose(end, 0);
            row.long_start = choose(next, row.long_start);
            row.long_end_at += 2 * is_long;
        }
        seen.add_complex(all_ends & COMPLEX != 0);
        (self.slot.fixed == 0 || !seen.has_complex()).then_some(())
    }

    /// Bits, of a column whose anchor is one.
    fn resolve_bits(&self, page: &PageBytes, bit: bool, found: &mut [Stored]) -> Option<()> {
        for stored in found.iter_mut().filter(|stored| !stored.is_null() && !stored.is_set()) {
            // A prefix of no bytes and nothing after it: zero.
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

    /// The bytes that a value takes from the anchor.
    pub(super) fn prefix(&self, stored: &Stored) -> Option<&'a [u8]> {
        match self.anchor {
            Anchor::Bytes(anchor) => anchor.get(..stored.prefix.into()),
            Anchor::None | Anchor::Bit(_) => Some(&[]),
        }
    }

    /// A value of at most eight bytes as a big-endian number.
    #[inline(always)]
    pub(super) fn word(&self, page: &PageBytes, stored: &Stored) -> Option<u64> {
        // Whatever is before it, the header at least, is on the page too.
        let own = word_before(page, usize::from(stored.start) + usize::from(stored.length))?;
        let own = own & MASKS.get(usize::from(stored.length))?;
        let bits = 8 * u32::from(stored.length);
        Some(self.prefixes.get(usize::from(stored.prefix))?.checked_shl(bits).unwrap_or_default() | own)
    }
}

/// The eight bytes that end there.
#[inline(always)]
fn word_before(page: &PageBytes, end: usize) -> Option<u64> {
    Some(u64::from_be_bytes(*page.get(end.checked_sub(8)?..end)?.first_chunk()?))
}

/// By length in bytes, the bits of a number.
const MASKS: [u64; 9] =
    [0, 0xFF, 0xFFFF, 0xFF_FFFF, 0xFFFF_FFFF, 0xFF_FFFF_FFFF, 0xFFFF_FFFF_FFFF, 0xFF_FFFF_FFFF_FFFF, u64::MAX];

/// Splits values of a column that has an anchor of this length: how many of its bytes they begin with comes first.
fn split(page: &PageBytes, anchor: u16, found: &mut [Stored]) -> Option<()> {
    for stored in found {
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
    }
    Some(())
}
