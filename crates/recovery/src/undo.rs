//! The data needed to undo a record. It is stored as bytes until the page of the record is recovered.

use format::bytes::{u16_at, u32_at};
use format::log::LogRecord;
use format::log::change::Change;

/// Number of bytes before the records: the slot, the flag for undo as a whole, and the length of the INSERT_ROWS
/// record.
const HEAD_BYTES: usize = 8;

/// A change to undo on a page.
pub(crate) struct Undo<'a> {
    /// The slot that the changed row has at the end of the log. Later changes may have moved the row to this slot.
    pub(crate) slot: u16,
    /// Whether the change is part of a structural change, which is undone as a whole.
    pub(crate) as_a_whole: bool,
    /// The bytes of the INSERT_ROWS record with the moved rows, if the record to undo is a DELETE_SPLIT.
    pub(crate) moved: Option<&'a [u8]>,
    /// The record to undo.
    pub(crate) record: LogRecord<'a>,
}

impl<'a> Undo<'a> {
    /// Parses the bytes that [`Self::bytes`] returned.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let moved_bytes = u32_at(bytes, 4)? as usize;
        let (moved, record) = bytes.get(HEAD_BYTES..)?.split_at_checked(moved_bytes)?;
        Some(Self {
            slot: u16_at(bytes, 0)?,
            as_a_whole: *bytes.get(2)? != 0,
            moved: (!moved.is_empty()).then_some(moved),
            record: LogRecord::new(record),
        })
    }

    /// Converts the data to bytes, for [`Self::read`].
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let moved = self.moved.unwrap_or_default();
        let mut bytes = Vec::with_capacity(HEAD_BYTES + moved.len() + self.record.bytes().len());
        bytes.extend(self.slot.to_le_bytes());
        bytes.extend([self.as_a_whole.into(), 0]);
        bytes.extend((moved.len() as u32).to_le_bytes());
        bytes.extend(moved);
        bytes.extend(self.record.bytes());
        bytes
    }

    /// The rows that the page split moved.
    pub(crate) fn moved_rows(&self) -> Vec<&'a [u8]> {
        match self.moved.and_then(|moved| LogRecord::new(moved).change()) {
            Some(Change::Insert { images, .. }) => images,
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_read_again() {
        for moved in [None, Some(&[7u8; 9][..])] {
            let undo = Undo { slot: 513, as_a_whole: moved.is_some(), moved, record: LogRecord::new(&[1, 2, 3]) };
            let bytes = undo.bytes();
            let read = Undo::read(&bytes).expect("whole");
            assert_eq!((read.slot, read.as_a_whole, read.moved), (513, moved.is_some(), moved));
            assert_eq!(read.record.bytes(), [1, 2, 3]);
            assert!(Undo::read(&bytes[..7]).is_none());
        }
    }
}
