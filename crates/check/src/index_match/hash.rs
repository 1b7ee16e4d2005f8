//! The hash of the columns that an index has of a row, taken where they lie, in the row of the table or of the index.

use catalog::Stored;
use format::RecordId;
use format::record::Record;

use super::plan::{Cell, Work};
use crate::hash::{FactHash, Hasher};
use crate::values::{Room, is_zero_decimal};

/// Hash of a row.
pub(crate) type RowHash = (u64, u64);

/// What a row is to an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// It has a row there, with this hash.
    Indexed(RowHash),
    /// The filter leaves it out.
    LeftOut,
    /// A value is not in the record, or an expression is not certain.
    Unknown,
}

/// What a row whose locator is `locator` is to the index of `work`.
pub(crate) fn standing(
    key: &FactHash,
    work: &Work,
    record: &Record<'_>,
    locator: RecordId,
    room: &mut Room,
) -> Standing {
    if let Some(filter) = &work.filter {
        match filter.matches(record, room) {
            Some(true) => {}
            Some(false) => return Standing::LeftOut,
            None => return Standing::Unknown,
        }
    }
    let mut hasher = key.hasher();
    for cell in &work.cells {
        if value_hash(&mut hasher, cell, record, locator, room).is_none() {
            return Standing::Unknown;
        }
    }
    Standing::Indexed(hasher.finish())
}

fn value_hash(hasher: &mut Hasher, cell: &Cell, record: &Record<'_>, locator: RecordId, room: &mut Room) -> Option<()> {
    let column = match cell {
        Cell::Column(column) => column,
        Cell::Computed(formula) => {
            match formula.value(record, room)? {
                Some(bytes) if is_zero_decimal(formula.target, bytes) => hasher.add_bytes(&[]),
                Some(bytes) => hasher.add_bytes(bytes),
                None => hasher.add_null(),
            }
            return Some(());
        }
        Cell::Locator => {
            let page =
                u64::from(locator.page.page) | u64::from(locator.page.file) << 32 | u64::from(locator.slot) << 48;
            hasher.add_bytes(&page.to_le_bytes());
            return Some(());
        }
    };
    match column.value(record) {
        Stored::Null => hasher.add_null(),
        Stored::Plain(bytes) if column.is_computed && is_zero_decimal(column.column.info, bytes) => {
            hasher.add_bytes(&[])
        }
        Stored::Plain(bytes) => hasher.add_bytes(bytes),
        Stored::Absent | Stored::Complex(_) => return None,
    }
    Some(())
}
