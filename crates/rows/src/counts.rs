//! How much of some pages was read, and why some pages were not.

use std::fmt;

use format::{AllocUnitId, PageId, RecordId};
use source::PageSource;

/// Why the rows of a page are not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The system could not read the page.
    Unread,
    /// The page is beyond the end of its file.
    NoFile,
    /// The page is in a file that was not given.
    NotGiven,
    /// The page is not as it was written: its checksum is wrong, or it is torn.
    Damaged,
    /// The page holds the image of another page.
    OtherPage(PageId),
    /// The page belongs to another unit.
    OtherUnit(AllocUnitId),
    /// The page is not a data page.
    OtherType(u8),
    /// The page is encrypted.
    Encrypted,
    /// A damaged IAM page: the pages that it and later ones of its chain list are unknown.
    AllocationMap,
    /// The same for an IAM page in a file that was not given.
    MapNotGiven,
    /// The same for an IAM page beyond the end of its file.
    MapBeyondEnd,
    /// The PFS page cannot be read, so the page may have been freed.
    UseUnknown,
    /// The clustered index could not be followed beyond this page, although an earlier walk could follow it.
    TreeDamaged,
    /// The page's compression information is damaged, or in an undocumented form.
    CompressionInfo,
}

impl Why {
    /// Why a page cannot be read that no given file contains.
    pub(crate) fn absent(source: &dyn PageSource, page: PageId) -> Self {
        if source.file(page.file).is_some() { Self::NoFile } else { Self::NotGiven }
    }

    /// Whether the only problem is that a file was not given.
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
                f.write_str("the IAM page is damaged: the pages that it lists, and later ones, are unknown")
            }
            Self::MapNotGiven => f.write_str(
                "the IAM page is in a file that was not given: the pages that it lists, and later ones, are unknown",
            ),
            Self::MapBeyondEnd => f.write_str(
                "the IAM page is beyond the end of its file: the pages that it lists, and later ones, are unknown",
            ),
            Self::UseUnknown => f.write_str("its PFS page is damaged: it is unknown whether the page is in use"),
            Self::TreeDamaged => f.write_str("the clustered index cannot be followed beyond the page"),
            Self::CompressionInfo => {
                f.write_str("the compression information of the page is damaged or not documented")
            }
        }
    }
}

/// The counts of a range. Counts of ranges add up in any order.
///
/// A value that is [`Value::Unreadable`](crate::Value::Unreadable) is counted here when its row is delivered. A long
/// value is read only when the receiver asks for its pieces, so the receiver counts pieces that cannot be read. A
/// computed column, [`Value::Unreadable`](crate::Value::Unreadable) with [`crate::Unreadable::NotStored`], is not
/// counted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RangeCounts {
    /// Rows delivered.
    pub rows: u64,
    /// Pages whose rows were not delivered.
    pub pages_left_out: u64,
    /// Those of these pages that are in a file that was not given.
    pub pages_not_given: u64,
    /// The first [`MOST_LISTED`] of these pages, and why; fewer if nothing can be salvaged on them.
    pub damaged_pages: Vec<(PageId, Why)>,
    /// Whether the list lacks pages that may have rows to salvage.
    pub is_list_cut: bool,
    /// Slots of sound pages whose record breaks a rule.
    pub skipped_slots: u64,
    /// The first such slot.
    pub first_skipped: Option<RecordId>,
    /// Values that cannot be read.
    pub unreadable_values: u64,
    /// Texts in which U+FFFD replaces an unpaired surrogate, or a byte that the code page does not have.
    pub altered_texts: u64,
    /// Shapes that WKB cannot express, CLR values, and values that the client encrypted: delivered as the stored bytes.
    pub values_as_stored: u64,
}

/// The most pages that are listed; all are counted.
pub const MOST_LISTED: usize = 50_000;
/// The most pages in the list before pages on which nothing can be salvaged are only counted: a truncated file lacks
/// millions.
const MOST_GONE: usize = 1000;

impl RangeCounts {
    /// Counts a page whose rows are not delivered.
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

    /// Adds the counts of another range.
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
