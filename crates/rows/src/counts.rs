//! What was read of some pages, and why some were not.

use std::fmt;

use format::{AllocUnitId, PageId, RecordId};

/// Why the rows of a page are not handed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The system could not read it.
    Unread,
    /// It is in a file that was not given, or beyond the end of its file.
    NoFile,
    /// It is not as it was written: its checksum is wrong, or it is torn.
    Damaged,
    /// It is the image of another page.
    OtherPage(PageId),
    /// It belongs to another unit.
    OtherUnit(AllocUnitId),
    /// It is no data page.
    OtherType(u8),
    /// It is encrypted.
    Encrypted,
    /// An IAM page that is damaged: the pages that it and those after it list are not known.
    AllocationMap,
    /// Neither PFS nor GAM can be read, so that the page may have been freed.
    UseUnknown,
    /// The clustered index could not be followed beyond this page, although it could before.
    TreeDamaged,
    /// The page's compression information is damaged, or in an undocumented form.
    CompressionInfo,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread => f.write_str("the system could not read the page"),
            Self::NoFile => f.write_str("the page is beyond the end of its file, or in a file that was not given"),
            Self::Damaged => f.write_str("the page is not as it was written: wrong checksum or torn"),
            Self::OtherPage(page) => write!(f, "the page is an image of page {page}"),
            Self::OtherUnit(unit) => write!(f, "the page belongs to allocation unit {unit}"),
            Self::OtherType(kind) => write!(f, "the page has type {kind}, not 1 (data)"),
            Self::Encrypted => f.write_str("the page is encrypted"),
            Self::AllocationMap => {
                f.write_str("the IAM page is damaged: the pages that it lists, and later ones, are not known")
            }
            Self::UseUnknown => f.write_str("PFS and GAM page are damaged: whether the page is in use is not known"),
            Self::TreeDamaged => f.write_str("the clustered index cannot be followed beyond the page"),
            Self::CompressionInfo => {
                f.write_str("the compression information of the page is damaged or not documented")
            }
        }
    }
}

/// What was read of a range. Counts of ranges add up in any order.
///
/// A value that is [`Value::Unreadable`](crate::Value::Unreadable) is counted here when its row is handed out. A long value is read only when the
/// receiver asks for its pieces: what the pieces cannot give, the receiver counts. [`Value::Unreadable`](crate::Value::Unreadable) with
/// [`crate::Unreadable::NotStored`], a computed column, is not counted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RangeCounts {
    /// Rows handed out.
    pub rows: u64,
    /// Pages whose rows were not, and why.
    pub damaged_pages: Vec<(PageId, Why)>,
    /// Slots of sound pages whose record breaks a rule.
    pub skipped_slots: u64,
    /// The first of them.
    pub first_skipped: Option<RecordId>,
    /// Values that cannot be had.
    pub unreadable_values: u64,
    /// Texts in which something was replaced by U+FFFD: an unpaired surrogate, a byte that the code page does not have.
    pub altered_texts: u64,
    /// Shapes that WKB cannot express, and CLR values: handed out as the bytes that are stored.
    pub values_as_stored: u64,
}

impl RangeCounts {
    /// Adds those of another range.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.damaged_pages.extend_from_slice(&other.damaged_pages);
        self.skipped_slots += other.skipped_slots;
        self.first_skipped = self.first_skipped.or(other.first_skipped);
        self.unreadable_values += other.unreadable_values;
        self.altered_texts += other.altered_texts;
        self.values_as_stored += other.values_as_stored;
    }
}
