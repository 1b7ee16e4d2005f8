//! What a page says by itself: its audit, its records, the expanded form of compressed records, and off-row values.

pub(crate) mod audit;
pub(crate) mod expanded;
pub(crate) mod forwarding;
pub(crate) mod off_row;
pub(crate) mod page_records;
pub(crate) mod rowsets;
