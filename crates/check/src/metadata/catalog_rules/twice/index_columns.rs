//! Checks columns of indexes. Compares sysiscols with the columns in the index's rowset, and the columns in the index's
//! rowset with those in the table's rowset.

use catalog::{IndexType, Rowset, RowsetColumn, column_status};

use super::super::evaluate::Tables;
use super::{ColumnsById, Rowsets, Verdicts};

const SYSISCOLS: i32 = 55;
/// Bit of sysiscols.status that marks a column of an index rather than of statistics. The next constant is the bit that
/// marks a descending column.
const OF_INDEX: i64 = 2;
const DESCENDING: i64 = 4;

/// The columns of the first partition of an index, and of the first partition of its table.
#[derive(Default)]
struct Pair<'a> {
    of_index: ColumnsById<'a>,
    of_table: ColumnsById<'a>,
    table: Option<&'a Rowset>,
}

/// Checks all rows of sysiscols, index by index. The rows are sorted by index.
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
        // A partitioning column is skipped: the engine may have added it to the key without a key ordinal in this row.
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
        // The rowset of a clustered index uses the column IDs of the table; the rowset of any other index numbers its
        // own columns.
        let own = if index == 1 { column } else { position };
        let Some(stored) = pair.of_index.get(own) else {
            verdicts
                .doubt("sys.sysiscols and sys.sysrscols", || format!("{} has no place in the index's rows", place()));
            return;
        };
        if i64::from(stored.key_ordinal) != ordinal {
            verdicts.doubt("sys.sysiscols and sys.sysrscols, key order", || {
                format!(
                    "{} has place {ordinal} in the key, but place {} in the order of the rows",
                    place(),
                    stored.key_ordinal
                )
            });
        }
        let descends = stored.status & column_status::DESCENDING != 0;
        // In SQL Server 2005, only sysiscols stores whether a column is descending.
        let is_told_twice = tables.database.boot.as_ref().is_some_and(|boot| boot.version >= 655);
        if is_told_twice && descends != (status & DESCENDING != 0) {
            verdicts.doubt("sys.sysiscols and sys.sysrscols, descending", || {
                let [declared, stored] = if descends { ["ascends", "descends"] } else { ["descends", "ascends"] };
                format!("{} {declared} in its declaration, but {stored} in the stored rows", place())
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
                    "{} is {} with collation {}, but in the table {} with collation {}",
                    place(),
                    stored.info.declaration(),
                    stored.collation.0,
                    of_table.info.declaration(),
                    of_table.collation.0
                )
            });
        }
    });
    // The error is ignored, because the check of the references between base tables has already noted incomplete
    // tables.
    let _: Result<(), catalog::Unread> = read;
}

impl<'a> Pair<'a> {
    /// Loads the columns of an index and of its table; `None` if the index is not stored as rows.
    fn fill(&mut self, tables: &Tables<'_>, rowsets: &Rowsets<'a>, object: i32, index: i32) -> Option<()> {
        let kind = tables.database.indexes.get(&(object, index))?.index_type;
        let is_of_rows = matches!(kind, IndexType::Clustered | IndexType::Nonclustered);
        let stored = |rowset: &&'a Rowset| rowset.compression <= 2 && !rowset.layout.columns.is_empty();
        let columns = |rowset: &'a Rowset| rowset.layout.columns.iter().filter(|column| !column.is_dropped());
        let of_index = rowsets.partitions(object, index).find(stored).filter(|_| is_of_rows)?;
        let of_table = rowsets.of_table(object).find(stored)?;
        self.of_index.fill(columns(of_index));
        // The indexes of one table follow each other, so the table's columns may be loaded already.
        if !self.table.is_some_and(|table| std::ptr::eq(table, of_table)) {
            self.of_table.fill(columns(of_table));
            self.table = Some(of_table);
        }
        Some(())
    }
}
