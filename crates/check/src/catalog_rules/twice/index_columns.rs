//! Columns of indexes: sysiscols against what the index's rowset stores, and its rowset against that of the table.

use catalog::{IndexType, Rowset, RowsetColumn, column_status};

use super::super::evaluate::Tables;
use super::{ColumnsById, Rowsets, Verdicts};

const SYSISCOLS: i32 = 55;
/// sysiscols.status: column of an index rather than of statistics; descending.
const OF_INDEX: i64 = 2;
const DESCENDING: i64 = 4;

/// The first partition of an index and of its table, with their columns.
#[derive(Default)]
struct Pair<'a> {
    of_index: ColumnsById<'a>,
    of_table: ColumnsById<'a>,
    table: Option<&'a Rowset>,
}

/// Compares all rows of sysiscols, index by index: they are sorted by index.
pub(super) fn check(tables: &Tables<'_>, rowsets: &Rowsets<'_>, verdicts: &mut Verdicts<'_>) {
    let columns = ["idmajor", "idminor", "subid", "status", "intprop", "tinyprop1", "tinyprop2"];
    let mut current = (0, 0);
    let mut pair = Pair::default();
    let mut is_stored = false;
    let read = tables.each(SYSISCOLS, &columns, |_, row| {
        let &[Some(object), Some(index), Some(position), Some(status), Some(column), Some(ordinal), Some(partition)] =
            row
        else {
            return;
        };
        let (Ok(object), Ok(index), Ok(position), Ok(column)) =
            (i32::try_from(object), i32::try_from(index), u32::try_from(position), u32::try_from(column))
        else {
            return;
        };
        // A column that only determines the partition may be added to the key without an entry here.
        if status & OF_INDEX == 0 || partition != 0 {
            return;
        }
        if current != (object, index) {
            current = (object, index);
            is_stored = pair.fill(tables, rowsets, object, index).is_some();
        }
        if !is_stored {
            return;
        }
        let place = || format!("column {position} of index {index} of {}", tables.database.object_name(object));
        // A clustered index stores the columns of its table; any other index stores its own.
        let own = if index == 1 { column } else { position };
        let Some(stored) = pair.of_index.get(own) else {
            verdicts
                .doubt("sys.sysiscols and sys.sysrscols", || format!("{} has no place in the index's rows", place()));
            return;
        };
        if i64::from(stored.key_ordinal) != ordinal {
            verdicts.doubt("sys.sysiscols and sys.sysrscols, key order", || {
                format!(
                    "{} has place {ordinal} in the key, its rows are ordered by it in place {}",
                    place(),
                    stored.key_ordinal
                )
            });
        }
        let descends = stored.status & column_status::DESCENDING != 0;
        // In 2005, only sysiscols has this fact.
        let is_told_twice = tables.database.boot.as_ref().is_some_and(|boot| boot.version >= 655);
        if is_told_twice && descends != (status & DESCENDING != 0) {
            verdicts.doubt("sys.sysiscols and sys.sysrscols, descending", || {
                let [declared, stored] = if descends { ["ascends", "descends"] } else { ["descends", "ascends"] };
                format!("{} {declared}, as its rows are stored it {stored}", place())
            });
        }
        let is_same = |other: &RowsetColumn| {
            let collations = [other.collation, stored.collation];
            other.info == stored.info && super::is_same_collation(tables.database, object, collations)
        };
        if let Some(of_table) = pair.of_table.get(column)
            && !is_same(of_table)
        {
            verdicts.doubt("sys.sysrscols, types of index columns", || {
                format!(
                    "{} is {} with collation {}, in the table it is {} with collation {}",
                    place(),
                    stored.info.declaration(),
                    stored.collation.0,
                    of_table.info.declaration(),
                    of_table.collation.0
                )
            });
        }
    });
    // An incomplete table is noted with its rules.
    let _: Result<(), catalog::Unread> = read;
}

impl<'a> Pair<'a> {
    /// Moves on to another index; `None` if it is not stored in rows.
    fn fill(&mut self, tables: &Tables<'_>, rowsets: &Rowsets<'a>, object: i32, index: i32) -> Option<()> {
        let kind = tables.database.indexes.get(&(object, index))?.index_type;
        let is_of_rows = matches!(kind, IndexType::Clustered | IndexType::Nonclustered);
        let stored = |rowset: &&'a Rowset| rowset.compression <= 2 && !rowset.layout.columns.is_empty();
        let columns = |rowset: &'a Rowset| rowset.layout.columns.iter().filter(|column| !column.is_dropped());
        let of_index = rowsets.partitions(object, index).find(stored).filter(|_| is_of_rows)?;
        let of_table = rowsets.of_table(object).find(stored)?;
        self.of_index.fill(columns(of_index));
        // Indexes of one table follow each other.
        if !self.table.is_some_and(|table| std::ptr::eq(table, of_table)) {
            self.of_table.fill(columns(of_table));
            self.table = Some(of_table);
        }
        Some(())
    }
}
