//! Typed views of the changes that log records make to their pages (docs/format/log.md#changes).

use super::operation::Operation;
use super::record::LogRecord;
use crate::bytes::{u8_at, u16_at, u32_at, u64_at};
use crate::fields::{Structure, offset};
use crate::ids::PageId;

/// The context of a DELETE_ROWS record that turns a row into a ghost.
const MARK_AS_GHOST: u8 = 19;
/// The bit in the length field of an INSERT_ROWS record which means that the row overwrites the ghost in its slot.
const OVER_GHOST: u16 = 2;
/// The length in bytes of one counter in a COUNT_DELTA record.
const COUNTER_BYTES: usize = 16;

/// The change that a log record makes to its page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// The page is formatted.
    Format(NewPage<'a>),
    /// Rows are inserted, the first at the slot of the log record.
    Insert {
        /// The inserted rows.
        images: Vec<&'a [u8]>,
        /// Whether the row overwrites a ghost in its slot.
        over_ghost: bool,
    },
    /// A row is deleted.
    Delete {
        /// Whether the row becomes a ghost.
        marks_ghost: bool,
        /// The row before the change; empty if the log record does not contain the row.
        image: &'a [u8],
    },
    /// Bytes of a row are replaced.
    ModifyRow(Piece<'a>),
    /// Bytes of the page header are replaced.
    ModifyHeader(Piece<'a>),
    /// Several pieces of a row are replaced, in ascending order of offset.
    ModifyColumns(Vec<Piece<'a>>),
    /// Bits in the record of an allocation map are set or cleared.
    SetBits {
        /// The number of the first bit in the record.
        first: u16,
        /// The number of bits.
        count: u16,
        /// True to set the bits, false to clear them.
        value: bool,
    },
    /// A byte in the record of a PFS page is replaced.
    SetFreeSpace {
        /// The offset of the byte in the record.
        offset: u16,
        /// The byte after the change.
        new: u8,
        /// The byte before the change.
        old: u8,
    },
    /// Rows are deleted because they were moved to another page. The first of these rows is in the slot of the log
    /// record.
    DropMoved {
        /// The page to which the rows were moved; (0:0) in a reorganization.
        receiver: PageId,
        /// The number of rows.
        rows: u16,
    },
    /// The ghost in the slot is removed.
    Expunge,
    /// The whole record in slot 0 is replaced.
    ReplaceRecord {
        /// The record before the change.
        old: &'a [u8],
        /// The record after the change.
        new: &'a [u8],
    },
    /// Counters in a catalog row are set. Each has an offset in the row, a value, and a length in bytes.
    SetCounters(Vec<(u32, i64, u32)>),
    /// A page pointer in a row of sysallocunits is replaced by another.
    SetPointer {
        /// The offset of the pointer in the row.
        offset: u32,
        /// The pointer after the change, in its stored form.
        new: [u8; 6],
        /// The pointer before the change, in its stored form.
        old: [u8; 6],
    },
    /// Nothing on the page changes except its LSN.
    Touch,
}

/// A new page: the fields of its header, or all its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewPage<'a> {
    /// The page type.
    pub kind: u8,
    /// The level of the page in its index.
    pub level: u8,
    /// The left neighbour of the page.
    pub previous: PageId,
    /// The right neighbour of the page.
    pub next: PageId,
    /// The length of the fixed part of the page's records.
    pub pminlen: u16,
    /// The bytes of the page up to the end of its rows, as a fully logged index build logs them; empty for a page
    /// without rows.
    pub start: &'a [u8],
    /// The last bytes of the page, which are its slot array; empty if `start` is the whole page.
    pub end: &'a [u8],
}

/// A replacement of some bytes by others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece<'a> {
    /// The offset of the replaced bytes.
    pub old_offset: u16,
    /// The offset of the new bytes.
    pub new_offset: u16,
    /// The number of replaced bytes.
    pub old_length: u16,
    /// The bytes before the change; empty in compensation records.
    pub before: &'a [u8],
    /// The bytes after the change.
    pub after: &'a [u8],
}

impl<'a> LogRecord<'a> {
    /// The change to the page; `None` if the record names no page, or does not have the form of its operation.
    pub fn change(&self) -> Option<Change<'a>> {
        let bytes = self.bytes();
        let element = |index: usize| self.elements().nth(index);
        Some(match self.operation() {
            Operation::FORMAT_PAGE => Change::Format(self.new_page()?),
            Operation::INSERT_ROWS => self.insert()?,
            Operation::DELETE_ROWS => {
                Change::Delete { marks_ghost: self.context() == MARK_AS_GHOST, image: element(0).unwrap_or_default() }
            }
            Operation::MODIFY_ROW => Change::ModifyRow(self.piece()?),
            Operation::MODIFY_HEADER => Change::ModifyHeader(self.piece()?),
            Operation::MODIFY_COLUMNS | Operation::SET_GAM_BITS => Change::ModifyColumns(self.pieces()?),
            Operation::SET_BITS => {
                const FIRST: usize = offset(Structure::LogSetBits, "first", 2);
                const COUNT: usize = offset(Structure::LogSetBits, "count", 2);
                const VALUE: usize = offset(Structure::LogSetBits, "value", 1);
                let value = u8_at(bytes, VALUE)? != 0;
                Change::SetBits { first: u16_at(bytes, FIRST)?, count: u16_at(bytes, COUNT)?, value }
            }
            Operation::SET_FREE_SPACE => {
                const AT: usize = offset(Structure::LogSetFreeSpace, "offset", 2);
                const NEW: usize = offset(Structure::LogSetFreeSpace, "new", 1);
                const OLD: usize = offset(Structure::LogSetFreeSpace, "old", 1);
                Change::SetFreeSpace { offset: u16_at(bytes, AT)?, new: u8_at(bytes, NEW)?, old: u8_at(bytes, OLD)? }
            }
            Operation::DELETE_SPLIT => {
                const RECEIVER: usize = offset(Structure::LogDeleteSplit, "receiver", 6);
                const ROWS: usize = offset(Structure::LogDeleteSplit, "rows", 2);
                Change::DropMoved { receiver: PageId::read(bytes, RECEIVER)?, rows: u16_at(bytes, ROWS)? }
            }
            Operation::EXPUNGE_ROWS => Change::Expunge,
            Operation::FILE_HDR_MODIFY => {
                Change::ReplaceRecord { old: element(0).unwrap_or_default(), new: element(1)? }
            }
            Operation::COUNT_DELTA => Change::SetCounters(self.counters()?),
            Operation::ROOT_CHANGE => {
                const NEW: usize = offset(Structure::LogRootChange, "new", 6);
                const OLD: usize = offset(Structure::LogRootChange, "old", 6);
                const AT: usize = offset(Structure::LogRootChange, "offset", 4);
                let pointer = |at: usize| bytes.get(at..)?.first_chunk::<6>().copied();
                Change::SetPointer { offset: u32_at(bytes, AT)?, new: pointer(NEW)?, old: pointer(OLD)? }
            }
            Operation::INSYSXACT | Operation::PAGE_OPERATION_126 => Change::Touch,
            _ => return None,
        })
    }

    fn new_page(&self) -> Option<NewPage<'a>> {
        const KIND: usize = offset(Structure::LogFormatPage, "type", 1);
        const LEVEL: usize = offset(Structure::LogFormatPage, "level", 1);
        const PREVIOUS: usize = offset(Structure::LogFormatPage, "previous", 6);
        const NEXT: usize = offset(Structure::LogFormatPage, "next", 6);
        const PMINLEN: usize = offset(Structure::LogFormatPage, "pminlen", 2);
        let (bytes, mut elements) = (self.bytes(), self.elements());
        // A truncated image cannot be used.
        if self.elements().count() < self.element_count() {
            return None;
        }
        Some(NewPage {
            kind: u8_at(bytes, KIND)?,
            level: u8_at(bytes, LEVEL)?,
            previous: PageId::read(bytes, PREVIOUS)?,
            next: PageId::read(bytes, NEXT)?,
            pminlen: u16_at(bytes, PMINLEN)?,
            start: elements.next().unwrap_or_default(),
            end: elements.next().unwrap_or_default(),
        })
    }

    fn offset_and_length(&self) -> Option<(u16, u16)> {
        const OFFSET: usize = offset(Structure::LogPageRecord, "offset", 2);
        const LENGTH: usize = offset(Structure::LogPageRecord, "length", 2);
        Some((u16_at(self.bytes(), OFFSET)?, u16_at(self.bytes(), LENGTH)?))
    }

    fn insert(&self) -> Option<Change<'a>> {
        let (_, length) = self.offset_and_length()?;
        let elements: Vec<&[u8]> = self.elements().collect();
        // A page split logs several rows without the ID of a rowset. Two empty elements follow the rows.
        let is_bare = self.on_page()?.rowset == 0;
        let images = match elements.as_slice() {
            [rows @ .., [], []] if is_bare && !rows.is_empty() => rows.to_vec(),
            [image, ..] => vec![*image],
            [] => return None,
        };
        Some(Change::Insert { images, over_ghost: length & OVER_GHOST != 0 })
    }

    fn piece(&self) -> Option<Piece<'a>> {
        let (offset, old_length) = self.offset_and_length()?;
        let mut elements = self.elements();
        let (before, after) = (elements.next()?, elements.next()?);
        Some(Piece { old_offset: offset, new_offset: offset, old_length, before, after })
    }

    fn pieces(&self) -> Option<Vec<Piece<'a>>> {
        let mut elements = self.elements();
        let (offsets, lengths) = (elements.next()?, elements.next()?);
        let mut images = elements.skip(2);
        let offsets = offsets.as_chunks::<4>().0;
        let lengths = lengths.as_chunks::<2>().0;
        if offsets.len() > lengths.len() {
            return None;
        }
        let pieces = offsets.iter().zip(lengths).map(|([o0, o1, n0, n1], length)| {
            let (before, after) = (images.next()?, images.next()?);
            Some(Piece {
                old_offset: u16::from_le_bytes([*o0, *o1]),
                new_offset: u16::from_le_bytes([*n0, *n1]),
                old_length: u16::from_le_bytes(*length),
                before,
                after,
            })
        });
        pieces.collect()
    }

    fn counters(&self) -> Option<Vec<(u32, i64, u32)>> {
        const KIND: usize = offset(Structure::LogCountDelta, "kind", 4);
        const VALUES: usize = offset(Structure::LogCountDelta, "values", 128);
        let (first, count) = match u32_at(self.bytes(), KIND)? {
            0 => (VALUES, 3),
            1 => (VALUES, 1),
            // The ID of the column precedes the value.
            2 => (VALUES + 8, 1),
            3 | 4 => (VALUES, 2),
            _ => return None,
        };
        let values = self.bytes().get(first..first + count * COUNTER_BYTES)?;
        let counter = |value: &[u8; COUNTER_BYTES]| {
            let length = u32_at(value, 12)?;
            Some((u32_at(value, 8)?, u64_at(value, 0)?.cast_signed(), if length == 0 { 8 } else { length }))
        };
        values.as_chunks::<COUNTER_BYTES>().0.iter().map(counter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A COUNT_DELTA record of kind `kind`. It has four counters: the value 100 at offset 45 of the row, the value 101
    /// at offset 53, and so on. The kind may use fewer than four counters.
    fn count_delta(kind: u8, first_value: usize, lengths: u32) -> Vec<u8> {
        let mut bytes = vec![0x5A; 208 + 4];
        bytes[2..4].copy_from_slice(&208u16.to_le_bytes());
        (bytes[0x16], bytes[0x17]) = (18, 18);
        bytes[0x30..0x34].copy_from_slice(&[kind, 0, 0, 0]);
        for number in 0..4u32 {
            let at = first_value + COUNTER_BYTES * number as usize;
            bytes[at..at + 8].copy_from_slice(&i64::from(100 + number).to_le_bytes());
            bytes[at + 8..at + 12].copy_from_slice(&(45 + 8 * number).to_le_bytes());
            bytes[at + 12..at + 16].copy_from_slice(&lengths.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn counters_are_as_many_as_their_kind_says() {
        let counters = [(45, 100, 8), (53, 101, 8), (61, 102, 8)];
        // In a record of kind 1 (for a row of sysrowsets), no length is stored for the value. In a record of kind 2
        // (for a row of a column), the value follows the column ID.
        for (kind, first_value, lengths, count) in
            [(0, 0x50, 8, 3), (1, 0x50, 0, 1), (2, 0x58, 8, 1), (3, 0x50, 8, 2), (4, 0x50, 8, 2)]
        {
            let bytes = count_delta(kind, first_value, lengths);
            let change = LogRecord::new(&bytes).change();
            assert_eq!(change, Some(Change::SetCounters(counters[..count].to_vec())), "kind {kind}");
        }
        assert_eq!(LogRecord::new(&count_delta(5, 0x50, 8)).change(), None, "a kind that is not known");
        assert_eq!(LogRecord::new(&count_delta(0, 0x50, 8)[..0x70]).change(), None, "a record that is cut off");
    }

    /// A FORMAT_PAGE record of a data page with these elements.
    fn format_page(elements: &[&[u8]]) -> Vec<u8> {
        const FIXED: u16 = 84;
        let mut bytes = vec![0; FIXED.into()];
        bytes[2..4].copy_from_slice(&FIXED.to_le_bytes());
        (bytes[0x16], bytes[0x17]) = (Operation::FORMAT_PAGE.0, 2);
        bytes[0x37] = 1;
        if !elements.is_empty() {
            bytes.extend((elements.len() as u16).to_le_bytes());
            for element in elements {
                bytes.extend((element.len() as u16).to_le_bytes());
            }
            for element in elements {
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                bytes.extend_from_slice(element);
            }
        }
        bytes
    }

    #[test]
    fn the_page_of_an_index_build_is_in_its_format_page_record() {
        let images = |bytes: &[u8]| match LogRecord::new(bytes).change() {
            Some(Change::Format(page)) => Some((page.start.to_vec(), page.end.to_vec())),
            _ => None,
        };
        let whole = format_page(&[b"rows, from the header on", b"slots"]);
        assert_eq!(images(&whole), Some((b"rows, from the header on".to_vec(), b"slots".to_vec())));
        assert_eq!(images(&format_page(&[])), Some((Vec::new(), Vec::new())), "an empty page");
        assert_eq!(images(&whole[..whole.len() - 3]), None, "half of a page is none");
    }
}
