//! A hash of the bytes that the last log record of a page wrote. The audit stores one for each page and compares it
//! with the page.
//!
//! The hash excludes bytes that the log does not determine: version tags of rows, the ghost state of a row, the padding
//! that makes a short heap row large enough for a forwarding stub, and the length field in rows of LOB pages
//! (docs/format/log.md#redo).

use std::hash::{BuildHasher, RandomState};

use format::bytes::unsigned;
use format::lob::Fragment;
use format::log::change::Change;
use format::log::{LogRecord, Operation};
use format::record::{Record, RecordKind};
use format::{Page, PageBytes, PageType};

/// Log record contexts for rows: heaps, clustered indexes, leaves and upper levels of indexes, LOB pages.
const ROWS: std::ops::RangeInclusive<u8> = 1..=6;
/// Log record contexts for LOB pages.
const LOB: [u8; 2] = [5, 6];
/// Log record contexts for IAM and PFS pages.
const MAPS: [u8; 2] = [10, 11];
/// Log record context for the counters of an object in its catalog row.
const COUNTERS: u8 = 18;
/// Bits of a status byte that may change without a log record: the record type, which changes when a row becomes a
/// ghost, and the version tag flag.
const UNLOGGED_STATUS: u8 = 0b0100_1110;
/// End of the length field of a row on a LOB page; the field follows the status bytes.
const LOB_LENGTH_END: u16 = 4;
const VERSIONED: u8 = 0b0100_0000;
const COMPRESSED: u8 = 1;

/// A hash of the bytes that a log record wrote, and where it wrote them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Image {
    hash: [u8; 8],
    kind: Kind,
    /// Slot of the row, or of the first of several rows.
    pub(crate) slot: u16,
    /// Offset of the bytes in the row; for [`Kind::Rows`], the number of rows.
    offset: u16,
    length: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Kind {
    /// The record wrote nothing that can be compared.
    #[default]
    None,
    /// Bytes at an offset in a row.
    Bytes,
    /// A whole row.
    Row,
    /// Several whole rows in consecutive slots.
    Rows,
}

/// Whether a page has the bytes of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnPage {
    Yes,
    No,
    /// The image and the page cannot be compared.
    Unknown,
}

/// The key of the hash. It is random in every run, so that no file can be crafted to collide with an image.
#[derive(Clone, Copy)]
pub(crate) struct ImageKey([u64; 2]);

impl ImageKey {
    pub(crate) fn new() -> Self {
        let random = RandomState::new();
        Self([random.hash_one(1u8), random.hash_one(2u8) | 1])
    }

    fn start(&self) -> u64 {
        self.0[0]
    }

    /// Adds the bytes and their count to the hash.
    fn add(&self, hash: u64, first: u8, rest: &[u8]) -> u64 {
        let [_, key] = self.0;
        let mut hash = fold(hash ^ u64::from(first) ^ (rest.len() as u64) << 8, key);
        let (words, last) = rest.as_chunks::<8>();
        for word in words {
            hash = fold(hash ^ u64::from_le_bytes(*word), key);
        }
        fold(hash ^ unsigned(last), key)
    }

    /// Adds bytes of a row to the hash. If they include the start of the row, masks the status bits that are not
    /// logged.
    fn add_piece(&self, hash: u64, bytes: &[u8], is_start: bool) -> u64 {
        match bytes {
            [status, rest @ ..] if is_start => self.add(hash, status & !UNLOGGED_STATUS, rest),
            [first, rest @ ..] => self.add(hash, *first, rest),
            [] => hash,
        }
    }

    /// The image of the bytes that a log record wrote; an empty image if they cannot be compared.
    pub(crate) fn of(&self, record: &LogRecord<'_>, slot: u16) -> Image {
        self.image(record, slot).unwrap_or_default()
    }

    fn image(&self, record: &LogRecord<'_>, slot: u16) -> Option<Image> {
        let context = record.context();
        match record.operation() {
            Operation::INSERT_ROWS if ROWS.contains(&context) => {
                let Change::Insert { images, .. } = record.change()? else { return None };
                match images.as_slice() {
                    [image] => {
                        let length = logged_length(image)?;
                        let hash = self.add_piece(self.start(), image.get(..length)?, true);
                        let (hash, length) = (hash.to_le_bytes(), length.try_into().ok()?);
                        Some(Image { hash, kind: Kind::Row, slot, offset: 0, length })
                    }
                    images => {
                        let is_plain = |row: &&[u8]| row.first().is_some_and(|status| status & VERSIONED == 0);
                        let plain = images.iter().all(is_plain).then_some(images)?;
                        let hash = plain.iter().fold(self.start(), |hash, row| self.add_piece(hash, row, true));
                        let offset = images.len().try_into().ok()?;
                        Some(Image { hash: hash.to_le_bytes(), kind: Kind::Rows, slot, offset, length: 0 })
                    }
                }
            }
            Operation::MODIFY_ROW if ROWS.contains(&context) || MAPS.contains(&context) || context == COUNTERS => {
                let Change::ModifyRow(piece) = record.change()? else { return None };
                let before = if LOB.contains(&context) { LOB_LENGTH_END.saturating_sub(piece.new_offset) } else { 0 };
                let after = piece.after.get(before.into()..).filter(|after| !after.is_empty())?;
                let offset = piece.new_offset.checked_add(before)?;
                let hash = self.add_piece(self.start(), after, offset == 0);
                let length = after.len().try_into().ok()?;
                Some(Image { hash: hash.to_le_bytes(), kind: Kind::Bytes, slot, offset, length })
            }
            _ => None,
        }
    }

    /// Whether `image` matches the page. The torn-page bits in `bytes` must have been restored.
    pub(crate) fn is_on(&self, image: &Image, bytes: &PageBytes) -> OnPage {
        let page = Page::new(bytes);
        let found = match image.kind {
            Kind::None => return OnPage::Unknown,
            Kind::Bytes | Kind::Row => {
                let (start, length) = (usize::from(image.offset), usize::from(image.length));
                let Some(row) = row_space(page, image.slot) else { return OnPage::No };
                // The compared bytes may extend into the version tag, which is not logged. In this case, the comparison
                // proves nothing.
                let is_versioned = row.first().is_some_and(|status| status & VERSIONED != 0);
                if image.kind == Kind::Bytes
                    && is_versioned
                    && known_length(page, row).is_none_or(|known| known < start + length)
                {
                    return OnPage::Unknown;
                }
                let Some(piece) = row.get(start..start + length) else { return OnPage::No };
                self.add_piece(self.start(), piece, start == 0)
            }
            Kind::Rows => {
                let mut hash = self.start();
                for index in 0..image.offset {
                    let Some(row) = row_space(page, image.slot.saturating_add(index)) else { return OnPage::No };
                    let is_odd = row.first().is_some_and(|status| status & (COMPRESSED | VERSIONED) != 0);
                    let Some(row) = known_length(page, row).and_then(|length| row.get(..length)).filter(|_| !is_odd)
                    else {
                        return OnPage::Unknown;
                    };
                    hash = self.add_piece(hash, row, true);
                }
                hash
            }
        };
        if found.to_le_bytes() == image.hash { OnPage::Yes } else { OnPage::No }
    }
}

/// The bytes of the page from the start of the row in `slot` to the end of the page; `None` if the slot is empty or
/// does not exist.
fn row_space<'p>(page: Page<'p>, slot: u16) -> Option<&'p [u8]> {
    let is_there = slot < page.header().slot_count.get();
    page.bytes().get(usize::from(page.slot_offset(slot).filter(|at| is_there && *at != 0)?)..)
}

/// Length of a row on a page, without its version tag, computed from the bytes of the row. `None` if the row is invalid
/// or its length is unknown.
fn known_length(page: Page<'_>, row: &[u8]) -> Option<usize> {
    let header = page.header();
    let logged = |record: Record<'_>| record.bytes().len() - record.version_tag().map_or(0, |tag| tag.len());
    match header.kind()? {
        PageType::Data => Record::data(row).map(logged).ok(),
        PageType::Index => Record::index(row, header.pminlen.get()).map(logged).ok(),
        PageType::TextMix | PageType::TextTree => Fragment::read(row).map(|fragment| fragment.bytes().len()).ok(),
        _ => None,
    }
}

/// Returns the number of bytes to compare in the image of a row: all bytes except the version tag and the padding for a
/// forwarding stub. `None` if the place of the version tag is unknown.
fn logged_length(image: &[u8]) -> Option<usize> {
    let status = *image.first()?;
    let is_of_data = !matches!(RecordKind::of(status), RecordKind::Index | RecordKind::GhostIndex);
    match Record::data(image).ok().filter(|_| is_of_data && status & COMPRESSED == 0) {
        Some(record) => Some(record.bytes().len() - record.version_tag().map_or(0, |tag| tag.len())),
        // The row has a version tag at an unknown place, so the tag cannot be excluded.
        None if status & VERSIONED != 0 => None,
        None => Some(image.len()),
    }
}

/// Multiplies `a` and `b`, and combines the two halves of the 128-bit product with XOR.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_for_a_stub_is_not_compared_and_a_compressed_row_is_compared_whole() {
        // A row with one int column, followed by three bytes of padding.
        let row = [0x10, 0, 8, 0, 1, 2, 3, 4, 1, 0, 0];
        let with_room = [&row[..], &[0xEE; 3]].concat();
        assert_eq!((logged_length(&row), logged_length(&with_room)), (Some(11), Some(11)));
        let compressed = [COMPRESSED, 1, 2, 9, 9, 9, 9];
        assert_eq!(logged_length(&compressed), Some(compressed.len()));
    }
}
