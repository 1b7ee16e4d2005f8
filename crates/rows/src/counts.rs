//! What was read of some pages, and why some were not.

use std::fmt;

use format::{AllocUnitId, PageId, RecordId};
use source::PageSource;

/// Why the rows of a page are not handed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The system could not read it.
    Unread,
    /// It is beyond the end of its file.
    NoFile,
    /// It is in a file that was not given.
    NotGiven,
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
    /// An IAM page that is in a file that was not given, likewise.
    MapNotGiven,
    /// An IAM page that is beyond the end of its file, likewise.
    MapBeyondEnd,
    /// The PFS page cannot be read, so that the page may have been freed.
    UseUnknown,
    /// The clustered index could not be followed beyond this page, although it could before.
    TreeDamaged,
    /// The page's compression information is damaged, or in an undocumented form.
    CompressionInfo,
}

impl Why {
    /// Why a page that no file has is not there.
    pub(crate) fn absent(source: &dyn PageSource, page: PageId) -> Self {
        if source.file(page.file).is_some() { Self::NoFile } else { Self::NotGiven }
    }

    /// Whether nothing is wrong but that a file was not given.
    pub fn is_not_given(self) -> bool {
        matches!(self, Self::NotGiven | Self::MapNotGiven)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread => f.write_str("the system could not read the page"),
            Self::NoFile => f.write_str("the page is beyond the end of its file"),
            Self::NotGiven => f.write_str("the page is in a file that was not given"),
            Self::Damaged => f.write_str("the page is not as it was written: wrong checksum or torn"),
            Self::OtherPage(page) => write!(f, "the page is an image of page {page}"),
            Self::OtherUnit(unit) => write!(f, "the page belongs to allocation unit {unit}"),
            Self::OtherType(kind) => write!(f, "the page has type {kind}, not 1 (data)"),
            Self::Encrypted => f.write_str("the page is encrypted"),
            Self::AllocationMap => {
                f.write_str("the IAM page is damaged: the pages that it lists, and later ones, are not known")
            }
            Self::MapNotGiven => f.write_str(
                "the IAM page is in a file that was not given: the pages that it lists, and later ones, are not known",
            ),
            Self::MapBeyondEnd => f.write_str(
                "the IAM page is beyond the end of its file: the pages that it lists, and later ones, are not known",
            ),
            Self::UseUnknown => f.write_str("its PFS page is damaged: whether the page is in use is not known"),
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
    /// Pages whose rows were not.
    pub pages_left_out: u64,
    /// Those of them that are in a file that was not given.
    pub pages_not_given: u64,
    /// The first [`MOST_LISTED`] of them, and why; of those on which nothing can be salvaged fewer.
    pub damaged_pages: Vec<(PageId, Why)>,
    /// Whether some that may have rows to salvage are counted only.
    pub is_list_cut: bool,
    /// Slots of sound pages whose record breaks a rule.
    pub skipped_slots: u64,
    /// The first of them.
    pub first_skipped: Option<RecordId>,
    /// Values that cannot be had.
    pub unreadable_values: u64,
    /// Texts in which something was replaced by U+FFFD: an unpaired surrogate, a byte that the code page does not have.
    pub altered_texts: u64,
    /// Shapes that WKB cannot express, CLR values, and what the client encrypted: handed out as the bytes that are stored.
    pub values_as_stored: u64,
}

/// Pages that are listed at most; all are counted.
pub const MOST_LISTED: usize = 50_000;
/// How long the list may be before pages on which nothing can be salvaged are counted only: a file that was cut lacks millions.
const MOST_GONE: usize = 1000;

impl RangeCounts {
    /// Counts a page whose rows are not handed out.
    pub(crate) fn leave_out(&mut self, page: PageId, why: Why) {
        self.pages_left_out += 1;
        self.pages_not_given += u64::from(why.is_not_given());
        self.list(page, why);
    }

    fn list(&mut self, page: PageId, why: Why) {
        let is_gone = matches!(why, Why::NoFile | Why::NotGiven | Why::Unread | Why::Encrypted);
        if self.damaged_pages.len() < if is_gone { MOST_GONE } else { MOST_LISTED } {
            self.damaged_pages.push((page, why));
        } else {
            self.is_list_cut |= !is_gone;
        }
    }

    /// Adds those of another range.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.pages_left_out += other.pages_left_out;
        self.pages_not_given += other.pages_not_given;
        self.is_list_cut |= other.is_list_cut;
        other.damaged_pages.iter().for_each(|&(page, why)| self.list(page, why));
        self.skipped_slots += other.skipped_slots;
        self.first_skipped = self.first_skipped.or(other.first_skipped);
        self.unreadable_values += other.unreadable_values;
        self.altered_texts += other.altered_texts;
        self.values_as_stored += other.values_as_stored;
    }
}
