//! Describes the logged changes that a page lacks.

use catalog::{Database, Level, Rowset, Stored};
use format::log::LogRecord;
use format::log::change::Change;
use format::record::Record;
use format::{AllocUnitId, value};

/// Maximum number of changes to name.
const MAX_NAMED: usize = 5;
/// Maximum number of characters of a key to show.
const MAX_LETTERS: usize = 60;
/// The slot number in log records that concern no slot.
const NO_SLOT: u16 = u16::MAX;

/// Logged changes that a page lacks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missing {
    count: u64,
    named: Vec<String>,
}

impl Missing {
    /// Adds a change.
    pub(crate) fn add(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(text());
        }
    }

    /// Number of changes.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Describes all changes in one sentence; empty if no change is known.
    pub(crate) fn text(&self) -> String {
        let named = self.named.join(", ");
        match self.count {
            0 => String::new(),
            count if count > self.named.len() as u64 => format!("{count} changes are missing: {named}, ..."),
            1 => format!("One change is missing: {named}."),
            count => format!("{count} changes are missing: {named}."),
        }
    }
}

/// Describes the effect of a log record: its operation, and the key or slot of the row.
pub(crate) fn describe(database: &Database, record: &LogRecord<'_>) -> String {
    let operation = record.operation();
    let slot = record.on_page().map_or(NO_SLOT, |place| place.slot);
    match (key(database, record), slot) {
        (Some(key), _) => format!("{operation} {key}"),
        (None, NO_SLOT) => operation.to_string(),
        (None, slot) => format!("{operation} slot {slot}"),
    }
}

/// The key of the row that a log record inserts or deletes. `None` if the catalog does not have the key columns, or if
/// the record does not contain the row.
fn key(database: &Database, record: &LogRecord<'_>) -> Option<String> {
    let place = record.on_page()?;
    let image = match record.change()? {
        Change::Insert { images, .. } => *images.first()?,
        Change::Delete { image, .. } => image,
        _ => return None,
    };
    let unit = database.units.get(database.unit_index(AllocUnitId::from_header(place.index_id, place.object_id))?)?;
    let rowset = database.rowset_of(unit)?;
    /// Log record contexts for the leaf level of a clustered index, and of a nonclustered index.
    const LEAVES: [u8; 2] = [2, 3];
    if !LEAVES.contains(&record.context()) {
        return None;
    }
    let row = match rowset.index_id {
        1 => Record::data(image).ok()?,
        _ => Record::index(image, rowset.layout.index_fixed_length(Level::Leaf)).ok()?,
    };
    key_of(rowset, &row)
}

fn key_of(rowset: &Rowset, row: &Record<'_>) -> Option<String> {
    let mut columns: Vec<_> = rowset.layout.columns.iter().filter(|column| column.key_ordinal > 0).collect();
    columns.sort_by_key(|column| column.key_ordinal);
    let text = |column: &&catalog::RowsetColumn| match column.stored(Level::Leaf, row) {
        Stored::Plain(bytes) => value::text(column.info, bytes, column.place(Level::Leaf).2),
        _ => "NULL".to_owned(),
    };
    let key = columns.iter().map(text).collect::<Vec<_>>().join(", ");
    let shown: String = key.chars().take(MAX_LETTERS).collect();
    let more = if shown.len() < key.len() { "..." } else { "" };
    (!columns.is_empty()).then(|| format!("({shown}{more})"))
}
