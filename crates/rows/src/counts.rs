//! Counts of the pages and rows that were read, and the reasons why other pages were not read.

use std::fmt;

use format::{AllocUnitId, PageId, RecordId};
use source::PageSource;

/// The reason why the rows of a page are not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The operating system reported an error when the page was read.
    Unread,
    /// The page is beyond the end of its file.
    NoFile,
    /// The page is in a file that was not given.
    NotGiven,
    /// The page was not found in the image from which the pages were carved.
    NotFound,
    /// The page has changed since SQL Server wrote it: its checksum is wrong, or the page is torn.
    Damaged,
    /// The page contains the content of another page.
    OtherPage(PageId),
    /// The page belongs to another allocation unit.
    OtherUnit(AllocUnitId),
    /// The page is not a data page.
    OtherType(u8),
    /// The page is encrypted.
    Encrypted,
    /// The page is a damaged IAM page. The pages listed by this IAM page, and by the later IAM pages of its chain, are
    /// unknown.
    AllocationMap,
    /// The page is an IAM page in a file that was not given. The pages listed by this IAM page, and by the later IAM
    /// pages of its chain, are unknown.
    MapNotGiven,
    /// The page is an IAM page that was not found in the image from which the pages were carved. The pages listed by this
    /// IAM page, and by the later IAM pages of its chain, are unknown.
    MapNotFound,
    /// The page is an IAM page beyond the end of its file. The pages listed by this IAM page, and by the later IAM
    /// pages of its chain, are unknown.
    MapBeyondEnd,
    /// The PFS page that describes this page cannot be read, so this page may have been freed.
    UseUnknown,
    /// The walk through the clustered index failed at this page, although an earlier walk of the same index succeeded.
    TreeDamaged,
    /// The page's compression information is damaged or has an undocumented format.
    CompressionInfo,
}

impl Why {
    /// The reason why a page cannot be read if none of the given files contains it.
    pub(crate) fn absent(source: &dyn PageSource, page: PageId) -> Self {
        if source.file(page.file).is_some() { Self::NoFile } else { Self::NotGiven }
    }

    /// Whether the rows are missing only because a file was not given, or because the page is not in the image.
    pub fn is_not_given(self) -> bool {
        matches!(self, Self::NotGiven | Self::MapNotGiven | Self::NotFound | Self::MapNotFound)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread => f.write_str("the system could not read the page"),
            Self::NoFile => f.write_str("the page is beyond the end of its file"),
            Self::NotGiven => f.write_str("the page is in a file that was not given"),
            Self::NotFound => f.write_str("the page was not found in the image"),
            Self::Damaged => f.write_str("the page is not what was written: its checksum is wrong, or it is torn"),
            Self::OtherPage(page) => write!(f, "the page's header names page {page}"),
            Self::OtherUnit(unit) => write!(f, "the page belongs to allocation unit {unit}"),
            Self::OtherType(kind) => write!(f, "the page has type {kind}, not 1 (data)"),
            Self::Encrypted => f.write_str("the page is encrypted"),
            Self::AllocationMap => {
                f.write_str("the IAM page is damaged: the pages that it lists, and later ones, are unknown")
            }
            Self::MapNotGiven => f.write_str(
                "the IAM page is in a file that was not given: the pages that it lists, and later ones, are unknown",
            ),
            Self::MapNotFound => f.write_str(
                "the IAM page was not found in the image: the pages that it lists, and later ones, are unknown",
            ),
            Self::MapBeyondEnd => f.write_str(
                "the IAM page is beyond the end of its file: the pages that it lists, and later ones, are unknown",
            ),
            Self::UseUnknown => {
                f.write_str("the PFS page of the page is damaged: it is unknown whether the page is in use")
            }
            Self::TreeDamaged => f.write_str("the clustered index cannot be followed beyond the page"),
            Self::CompressionInfo => {
                f.write_str("the compression information of the page is damaged or not documented")
            }
        }
    }
}

/// The counts of a range of pages. Counts of several ranges can be added in any order.
///
/// A value that is [`Value::Unreadable`](crate::Value::Unreadable) is counted when its row is delivered. A long value
/// is read only when the receiver asks for its pieces, so the receiver must count pieces that cannot be read. A
/// computed column, which is [`Value::Unreadable`](crate::Value::Unreadable) with [`crate::Unreadable::NotStored`], is
/// not counted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RangeCounts {
    /// The number of rows delivered.
    pub rows: u64,
    /// The number of pages whose rows were not delivered.
    pub pages_left_out: u64,
    /// The number of left-out pages in files that were not given, and of those that were not found in an image.
    pub pages_not_given: u64,
    /// The first left-out pages, at most [`MOST_LISTED`], each with the reason. A page without salvageable rows is
    /// added only while the list has fewer than `MOST_GONE` pages.
    pub damaged_pages: Vec<(PageId, Why)>,
    /// Whether the list is incomplete: it lacks left-out pages that may have salvageable rows.
    pub is_list_cut: bool,
    /// The number of slots on sound pages that were skipped because their record breaks a rule of the format.
    pub skipped_slots: u64,
    /// The first skipped slot.
    pub first_skipped: Option<RecordId>,
    /// The number of values that cannot be read.
    pub unreadable_values: u64,
    /// The number of texts in which U+FFFD replaces an unpaired surrogate or a byte that the code page does not define.
    pub altered_texts: u64,
    /// The number of values delivered as their stored bytes: shapes that WKB cannot express, json and vector values,
    /// CLR values, and values that the client encrypted.
    pub values_as_stored: u64,
}

/// The most left-out pages that are listed. All left-out pages are counted.
pub const MOST_LISTED: usize = 50_000;
/// When the list has this many pages, further pages without salvageable rows are only counted, because a truncated file
/// can lack millions of pages.
const MOST_GONE: usize = 1000;

impl RangeCounts {
    /// Counts a page whose rows are not delivered.
    pub(crate) fn leave_out(&mut self, page: PageId, why: Why) {
        self.pages_left_out += 1;
        self.pages_not_given += u64::from(why.is_not_given());
        self.list(page, why);
    }

    fn list(&mut self, page: PageId, why: Why) {
        let is_gone = matches!(why, Why::NoFile | Why::NotGiven | Why::NotFound | Why::Unread | Why::Encrypted);
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
