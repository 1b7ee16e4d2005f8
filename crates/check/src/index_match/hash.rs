//! The hash of the columns that an index has of a row, taken where they lie, in the row of the table or of the index.

use catalog::{Level, Stored};
use format::RecordId;
use format::record::Record;

use super::plan::Cell;
use crate::hash::{FactHash, Hasher};

/// Hash of a row.
pub(crate) type RowHash = (u64, u64);

/// The hash of the cells of a row whose locator is `locator`; `None` when a value is not in the record.
pub(crate) fn row_hash(key: &FactHash, cells: &[Cell], record: &Record<'_>, locator: RecordId) -> Option<RowHash> {
    let mut hasher = key.hasher();
    for cell in cells {
        value_hash(&mut hasher, cell, record, locator)?;
    }
    Some(hasher.finish())
}

fn value_hash(hasher: &mut Hasher, cell: &Cell, record: &Record<'_>, locator: RecordId) -> Option<()> {
    let Cell::Column(column) = cell else {
        let page = u64::from(locator.page.page) | u64::from(locator.page.file) << 32 | u64::from(locator.slot) << 48;
        hasher.add_bytes(&page.to_le_bytes());
        return Some(());
    };
    match column.value(record) {
        Stored::Null => hasher.add_null(),
        Stored::Plain(bytes) => match column.bit() {
            Some(bit) => hasher.add_bytes(&[bytes.first().copied().unwrap_or_default() >> bit & 1]),
            None => hasher.add_bytes(bytes),
        },
        Stored::Absent | Stored::Complex(_) => return None,
    }
    Some(())
}

impl super::plan::Column {
    /// The column's value in a leaf record, absent values resolved.
    pub(crate) fn value<'a>(&'a self, record: &Record<'a>) -> Stored<'a> {
        let stored = self.column.stored(Level::Leaf, record);
        match (self.is_uniquifier, stored) {
            // Absent, empty or NULL is 0 (format.md 7.2).
            (true, Stored::Absent | Stored::Null | Stored::Plain(&[])) => Stored::Plain(&[0; 4]),
            (false, Stored::Absent) => match (&self.column.default, self.has_default()) {
                _ if self.in_index => Stored::Plain(&[]),
                (Some(default), _) => Stored::Plain(default),
                (None, true) => Stored::Absent,
                (None, false) => Stored::Null,
            },
            (_, stored) => stored,
        }
    }
}
