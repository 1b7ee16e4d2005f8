//! The hash of the columns that an index has of a row, taken where they lie, in the row of the table or of the index.

use catalog::{Level, Stored};
use format::RecordId;
use format::record::Record;

use super::plan::{Cell, Formula, Work};
use crate::hash::{FactHash, Hasher};

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
    scratch: &mut expr::Scratch,
) -> Standing {
    if let Some(filter) = &work.filter {
        match filter.matches(record, scratch) {
            Some(true) => {}
            Some(false) => return Standing::LeftOut,
            None => return Standing::Unknown,
        }
    }
    let mut hasher = key.hasher();
    for cell in &work.cells {
        if value_hash(&mut hasher, cell, record, locator, scratch).is_none() {
            return Standing::Unknown;
        }
    }
    Standing::Indexed(hasher.finish())
}

fn value_hash(
    hasher: &mut Hasher,
    cell: &Cell,
    record: &Record<'_>,
    locator: RecordId,
    scratch: &mut expr::Scratch,
) -> Option<()> {
    let column = match cell {
        Cell::Column(column) => column,
        Cell::Computed(formula) => {
            match formula.value(record, scratch)? {
                Some(bytes) => hasher.add_bytes(&bytes),
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
        Stored::Plain(bytes) => match column.bit() {
            Some(bit) => hasher.add_bytes(&[bytes.first().copied().unwrap_or_default() >> bit & 1]),
            None => hasher.add_bytes(bytes),
        },
        Stored::Absent | Stored::Complex(_) => return None,
    }
    Some(())
}

/// The columns of a row as an expression sees them.
struct Columns<'a> {
    values: Vec<Stored<'a>>,
}

impl expr::Row for Columns<'_> {
    fn column(&self, index: usize) -> Option<&[u8]> {
        match self.values.get(index)? {
            Stored::Plain(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn is_available(&self, index: usize) -> bool {
        !matches!(self.values.get(index), Some(Stored::Complex(_)))
    }
}

impl Formula {
    /// The columns it names; `None` when one of them is not known of this row.
    fn columns<'a>(&'a self, record: &Record<'a>) -> Option<Columns<'a>> {
        let values = self.columns.iter().map(|column| match (column.value(record), column.bit()) {
            (Stored::Absent, _) => None,
            (Stored::Plain(bytes), Some(bit)) => {
                let is_set = bytes.first().is_some_and(|byte| byte >> bit & 1 != 0);
                Some(Stored::Plain(if is_set { &[1] } else { &[0] }))
            }
            (stored, _) => Some(stored),
        });
        Some(Columns { values: values.collect::<Option<Vec<_>>>()? })
    }

    /// Whether the row satisfies the filter; `None` when that is not certain.
    fn matches(&self, record: &Record<'_>, scratch: &mut expr::Scratch) -> Option<bool> {
        self.program.matches(&self.columns(record)?, scratch).ok()
    }

    /// The value's stored bytes, `Some(None)` for NULL; `None` when it is not certain.
    pub(crate) fn value(&self, record: &Record<'_>, scratch: &mut expr::Scratch) -> Option<Option<Vec<u8>>> {
        let columns = self.columns(record)?;
        let value = self.program.evaluate(&columns, scratch).ok()?;
        if value.is_null() { Some(None) } else { expr::encode(value, self.target).map(Some) }
    }
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
