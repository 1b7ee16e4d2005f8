//! The compression information (CI) of a page under PAGE compression: anchor record and dictionary
//! (docs/format/compression.md#compression-information).

use std::ops::Range;

use super::fault::{CdFault, CdIssue, CdTest};
use super::record::{CdRecord, Descriptor};
use crate::bytes::{u8_at, u16_at};
use crate::fields::{Structure, offset};
use crate::page::{HEADER_BYTES, Page, type_flags};

/// The flag in the first byte that is set if there is an anchor record.
const HAS_ANCHOR: u8 = 0x02;
pub(crate) const HAS_DICTIONARY: u8 = 0x04;
/// The offset of the first field that depends on the flags. With a dictionary, this field is the offset of the
/// dictionary, and the total size follows it. Without a dictionary, this field is the total size.
pub(crate) const VARYING_AT: usize = offset(Structure::CompressionInfo, "pageModCount", 2) + 2;
/// The most dictionary entries: a symbol has one byte, and no symbols for further entries are documented.
const MAX_ENTRIES: u16 = 256;

/// The anchor of a column: a value from which the values of the rows take their first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor<'a> {
    /// The column has no anchor, so its values are stored whole.
    None,
    /// An anchor value, possibly empty. Values of rows begin with some of its first bytes.
    Bytes(&'a [u8]),
    /// The anchor of a bit column.
    Bit(bool),
}

/// The compression information of a page.
#[derive(Clone, Debug, Default)]
pub struct CompressionInfo<'a> {
    anchors: Vec<Anchor<'a>>,
    /// The bytes of the dictionary, from its entry count on; empty without a dictionary.
    dictionary: &'a [u8],
    entries: u16,
    size: u16,
}

impl<'a> CompressionInfo<'a> {
    /// The compression information of `page`; `None` if the page has no compression information. The page belongs to a
    /// rowset with `columns` columns, and its first record is at offset `first_record`. Returns [`CdIssue::Undecided`]
    /// if the information has a form that is not known from any page.
    pub fn of(page: Page<'a>, first_record: usize, columns: usize) -> Result<Option<Self>, CdIssue> {
        let space = page.bytes().get(HEADER_BYTES..first_record).unwrap_or_default();
        if page.header().type_flags & type_flags::COMPRESSION_INFO != 0 {
            return Self::read(space, columns).map(Some);
        }
        // Every known page with compression information has the flag COMPRESSION_INFO in its header. If a page lacks
        // this flag, but its bytes look like compression information, the result is `Undecided`.
        let seems = |flags: &u8| matches!(*flags, HAS_ANCHOR | 0x06);
        if space.first().is_some_and(seems) && Self::read(space, columns).is_ok() {
            return Err(CdIssue::Undecided("what looks like compression information without its page flag"));
        }
        Ok(None)
    }

    /// Reads the compression information at the start of `space`. The space must end where the first record begins.
    pub fn read(space: &'a [u8], columns: usize) -> Result<Self, CdIssue> {
        let length = space.len();
        let word = |at: usize| u16_at(space, at).map(usize::from).ok_or(CdFault::new(CdTest::InfoSize, at + 2, length));
        let flags = u8_at(space, 0).ok_or(CdFault::new(CdTest::InfoSize, 5, length))?;
        if flags != HAS_ANCHOR && flags != HAS_ANCHOR | HAS_DICTIONARY {
            return Err(CdIssue::Undecided("compression information with undocumented flags"));
        }
        let has_dictionary = flags & HAS_DICTIONARY != 0;
        let size_at = if has_dictionary { VARYING_AT + 2 } else { VARYING_AT };
        let (anchor_at, size) = (size_at + 2, word(size_at)?);
        if size > length || size < anchor_at {
            return Err(CdFault::new(CdTest::InfoSize, size, length).into());
        }
        let anchor_end = if has_dictionary { word(VARYING_AT)? } else { size };
        if !(anchor_at..=size).contains(&anchor_end) {
            return Err(CdFault::new(CdTest::DictionaryOffset, anchor_end, size).into());
        }
        let anchor = CdRecord::read(space.get(anchor_at..anchor_end).unwrap_or_default(), columns)?;
        if let Some(record_end) = anchor.length().map(|length| anchor_at + length)
            && record_end != anchor_end
        {
            return Err(CdIssue::Undecided("space after the anchor record"));
        }
        let mut info = Self {
            anchors: Vec::with_capacity(anchor.column_count().into()),
            dictionary: space.get(anchor_end..size).unwrap_or_default(),
            entries: 0,
            size: size as u16,
        };
        for column in anchor.columns() {
            info.anchors.push(match column.descriptor {
                Descriptor::Null => Anchor::None,
                Descriptor::Empty | Descriptor::Short(_) => Anchor::Bytes(column.bytes),
                Descriptor::Long if !column.is_complex => Anchor::Bytes(column.bytes),
                Descriptor::BitTrue => Anchor::Bit(true),
                Descriptor::Long | Descriptor::Symbol => {
                    return Err(CdIssue::Undecided("an anchor column that is complex or a symbol"));
                }
            });
        }
        if has_dictionary {
            info.entries = dictionary(info.dictionary)?;
        }
        Ok(info)
    }

    /// The size of the compression information in bytes.
    pub fn size(&self) -> usize {
        self.size.into()
    }

    /// The anchor of a column, counted from 0.
    pub fn anchor(&self, column: usize) -> Anchor<'a> {
        self.anchors.get(column).copied().unwrap_or(Anchor::None)
    }

    /// Number of entries in the dictionary.
    pub fn entries(&self) -> u16 {
        self.entries
    }

    /// The bytes of a dictionary entry.
    pub fn entry(&self, symbol: u8) -> Option<&'a [u8]> {
        self.dictionary.get(self.entry_in_dictionary(symbol)?)
    }

    /// The place of a dictionary entry, from the start of the compression information.
    pub(super) fn entry_place(&self, symbol: u8) -> Option<Range<usize>> {
        let Range { start, end } = self.entry_in_dictionary(symbol)?;
        let at = self.size() - self.dictionary.len();
        (start <= end && end <= self.dictionary.len()).then_some(at + start..at + end)
    }

    #[inline]
    fn entry_in_dictionary(&self, symbol: u8) -> Option<Range<usize>> {
        let symbol = usize::from(symbol);
        let entries = usize::from(self.entries);
        if symbol >= entries {
            return None;
        }
        let start = match symbol {
            0 => 2 + 2 * entries,
            _ => u16_at(self.dictionary, 2 * symbol)?.into(),
        };
        Some(start..u16_at(self.dictionary, 2 + 2 * symbol)?.into())
    }
}

/// Checks a dictionary: its entry count, the end offsets (from the dictionary's start), and the entries. Returns the
/// count.
fn dictionary(bytes: &[u8]) -> Result<u16, CdIssue> {
    let length = bytes.len();
    let count = u16_at(bytes, 0).ok_or(CdFault::new(CdTest::DictionaryEnd, 2, length))?;
    let mut end = 2 + 2 * usize::from(count);
    for entry in 0..usize::from(count) {
        let at = 2 + 2 * entry;
        let offset = u16_at(bytes, at).ok_or(CdFault::new(CdTest::DictionaryEnd, at + 2, length))?;
        if usize::from(offset) < end {
            return Err(CdFault::new(CdTest::DictionaryAscend, offset.into(), end).into());
        }
        end = offset.into();
    }
    if end != length {
        return Err(CdFault::new(CdTest::DictionaryEnd, end, length).into());
    }
    if count > MAX_ENTRIES {
        return Err(CdIssue::Undecided("a dictionary of more than 256 entries"));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An anchor with three columns: NULL, empty and "Silva". A dictionary with two entries follows.
    fn sample() -> Vec<u8> {
        let anchor = [&[0x01, 3, 0x10, 0x06][..], b"Silva"].concat();
        let mut bytes = vec![0x06, 15, 0, 0, 0, 0, 0];
        bytes.extend(&anchor);
        let dictionary_at = bytes.len() as u16;
        bytes.extend([2, 0, 8, 0, 10, 0, 0x02, 0x7E, 0x82, 0xC3]);
        bytes[3..5].copy_from_slice(&dictionary_at.to_le_bytes());
        let size = bytes.len() as u16;
        bytes[5..7].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    fn test_of(bytes: &[u8]) -> Option<CdTest> {
        match CompressionInfo::read(bytes, 3) {
            Err(CdIssue::Fault(fault)) => Some(fault.test),
            _ => None,
        }
    }

    #[test]
    fn anchors_and_entries() {
        let bytes = sample();
        let info = CompressionInfo::read(&bytes, 3).unwrap();
        assert_eq!(info.size(), bytes.len());
        let anchors = [Anchor::None, Anchor::Bytes(&[]), Anchor::Bytes(b"Silva"), Anchor::None];
        assert_eq!([0, 1, 2, 3].map(|column| info.anchor(column)), anchors);
        assert_eq!(
            (info.entry(0), info.entry(1), info.entry(2)),
            (Some(&[2, 0x7E][..]), Some(&[0x82, 0xC3][..]), None)
        );
    }

    #[test]
    fn without_a_dictionary_the_anchor_begins_two_bytes_earlier() {
        let anchor = [0x01, 1, 0x02, 0x81];
        let bytes = [&[0x02, 0, 0, 9, 0][..], &anchor].concat();
        let info = CompressionInfo::read(&bytes, 1).unwrap();
        assert_eq!((info.anchor(0), info.entries()), (Anchor::Bytes(&[0x81]), 0));
    }

    #[test]
    fn each_rule_is_tested() {
        let with = |at: usize, byte: u8| {
            let mut bytes = sample();
            bytes[at] = byte;
            test_of(&bytes)
        };
        assert_eq!(test_of(&sample()), None);
        let length = sample().len();
        assert_eq!(test_of(&sample()[..length - 1]), Some(CdTest::InfoSize));
        assert_eq!(with(5, 3), Some(CdTest::InfoSize), "smaller than its own head");
        assert_eq!(with(3, 0xFF), Some(CdTest::DictionaryOffset));
        assert_eq!(with(8, 4), Some(CdTest::ColumnCount), "more columns than the rowset");
        assert_eq!(with(10, 0x08), Some(CdTest::ShortRegion));
        assert_eq!(with(18, 5), Some(CdTest::DictionaryAscend));
        assert_eq!(with(20, 11), Some(CdTest::DictionaryEnd));
        assert_eq!(with(10, 0x0D), Some(CdTest::Descriptor));
        for flags in [0x00, 0x04, 0x07, 0x0E] {
            let mut bytes = sample();
            bytes[0] = flags;
            assert!(matches!(CompressionInfo::read(&bytes, 3), Err(CdIssue::Undecided(_))), "{flags}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..300), symbol: u8) {
            if let Some(first) = bytes.first_mut() {
                *first = 0x06;
            }
            if let Ok(info) = CompressionInfo::read(&bytes, 40) {
                let _ = info.entry(symbol).map(<[u8]>::len);
            }
        }
    }
}
