//! Checks columns and parameters (syscolpars). The type in each row is checked on its own. It is also compared with the
//! user type that the row names, and with the column that the table's rowset stores.

use std::collections::HashMap;

use catalog::{Rowset, RowsetColumn, column_status};
use format::collation::CollationId;
use format::types::{TypeInfo, xtype};

use super::super::evaluate::Tables;
use super::types::{self, Declared};
use super::{ColumnsById, Rowsets, Verdicts};

const SYSCOLPARS: i32 = 41;
const SYSROWSETS: i32 = 5;
/// Limit on the columns of a table, including sparse columns.
const MAX_COLUMNS: usize = 32_000;

/// Bits of syscolpars.status (docs/format/catalog.md#syscolpars).
mod status {
    pub(super) const NOT_NULL: i64 = 0x1;
    pub(super) const IDENTITY: i64 = 0x4;
    pub(super) const COMPUTED: i64 = 0x10;
    pub(super) const FILESTREAM: i64 = 0x20;
    pub(super) const SPARSE: i64 = 0x100_0000;
    pub(super) const COLUMN_SET: i64 = 0x200_0000;
}

/// A column of a table.
struct TableColumn {
    id: u32,
    status: i64,
    declared: Declared,
}

/// Checks all rows of syscolpars, table by table. The rows are sorted by table.
pub(super) fn check(
    tables: &Tables<'_>,
    rowsets: &Rowsets<'_>,
    user_types: &HashMap<i32, Declared>,
    verdicts: &mut Verdicts<'_>,
) {
    const SCOPE: &str = "sys.syscolpars";
    let columns = [
        "xtype",
        "utype",
        "length",
        "prec",
        "scale",
        "collationid",
        "id",
        "number",
        "colid",
        "status",
        "maxinrow",
        "idtval",
    ];
    let mut table = 0;
    let mut of_table: Vec<TableColumn> = Vec::new();
    let mut stored = ColumnsById::default();
    let read = tables.each(SYSCOLPARS, &columns, |at, row| {
        let Some((of_type, rest)) = row.split_at_checked(6) else { return };
        let &[Some(object), Some(number), Some(column), Some(status), Some(in_row), identity] = rest else { return };
        let (Some(declared), Ok(object), Ok(id)) =
            (Declared::of(of_type), i32::try_from(object), u32::try_from(column))
        else {
            return;
        };
        if number == 0 {
            let name = || format!("object_id={object},column_id={id}");
            types::judge(&declared, at, (SCOPE, "columns"), name, verdicts);
        } else {
            let name = || format!("object_id={object},parameter_id={id}");
            types::judge(&declared, at, (SCOPE, "parameters"), name, verdicts);
        }
        let place = || format!("column or parameter {id} of {}", tables.database.object_name(object));
        against_type(&declared, user_types.get(&declared.user_type), place, verdicts);
        // If maxinrow is 0, the whole value may be in the row. For a type without a length limit, maxinrow is 0, 8000
        // or 16; a pointer has 16 bytes.
        let in_row_is_right =
            in_row == 0 || in_row == declared.length || declared.length < 0 && [16, 8000].contains(&in_row);
        if !in_row_is_right {
            verdicts.doubt("sys.syscolpars, maxinrow", || {
                format!("{} has length {}, of which {in_row} bytes may be in the row", place(), declared.length)
            });
        }
        if identity.is_some() && status & self::status::IDENTITY == 0 {
            verdicts.doubt("sys.syscolpars, status", || {
                format!("{} has identity values, but is not an identity column", place())
            });
        }
        if object != table {
            against_rowsets((tables, rowsets), table, &of_table, &mut stored, verdicts);
            of_table.clear();
            table = object;
        }
        if number == 0 && of_table.len() < MAX_COLUMNS {
            of_table.push(TableColumn { id, status, declared });
        }
    });
    // Checks the last table. If syscolpars could not be read to its end, only the columns of this table that were read
    // are checked.
    against_rowsets((tables, rowsets), table, &of_table, &mut stored, verdicts);
    // The error is ignored, because the check of the references between base tables has already noted incomplete
    // tables.
    let _: Result<(), catalog::Unread> = read;
}

/// Checks that a column of a user type has the attributes of that type.
fn against_type(
    declared: &Declared,
    user_type: Option<&Declared>,
    place: impl Fn() -> String,
    verdicts: &mut Verdicts<'_>,
) {
    let Some(user_type) = user_type else { return };
    let pairs = [
        ("type", i64::from(declared.xtype), user_type.xtype.into()),
        ("length", declared.length, user_type.length),
        ("precision", declared.precision, user_type.precision),
        ("scale", declared.scale, user_type.scale),
    ];
    for (what, of_column, of_type) in pairs {
        if of_column != of_type {
            verdicts.doubt("sys.syscolpars and sys.sysscalartypes", || {
                format!("{} has {what} {of_column}, its type {} has {of_type}", place(), declared.user_type)
            });
        }
    }
}

/// Checks the columns of a table against those of its rowsets.
fn against_rowsets<'a>(
    (tables, rowsets): (&Tables<'_>, &Rowsets<'a>),
    object: i32,
    columns: &[TableColumn],
    stored: &mut ColumnsById<'a>,
    verdicts: &mut Verdicts<'_>,
) {
    if columns.is_empty() {
        return;
    }
    for rowset in rowsets.of_table(object) {
        // Columnstore segments do not store rows, and an in-memory table has no columns in sysrscols.
        if rowset.compression > 2 || rowset.layout.columns.is_empty() {
            continue;
        }
        let is_declared =
            |column: &&RowsetColumn| !column.is_dropped() && column.status & column_status::UNIQUIFIER == 0;
        stored.fill(rowset.layout.columns.iter().filter(is_declared));
        for column in columns {
            match stored.get(column.id) {
                Some(stored) => pair(tables, rowset, column, stored, verdicts),
                None if column.status & (status::COMPUTED | status::COLUMN_SET) == 0 => {
                    verdicts.doubt("sys.syscolpars and sys.sysrscols", || {
                        let name = tables.database.object_name(object);
                        format!("column {} of {name} has no place in partition {}", column.id, rowset.partition)
                    });
                }
                None => {}
            }
        }
    }
}

/// Compares the table's declaration of a column with the description of the column in a rowset.
fn pair(
    tables: &Tables<'_>,
    rowset: &Rowset,
    column: &TableColumn,
    stored: &RowsetColumn,
    verdicts: &mut Verdicts<'_>,
) {
    let database = tables.database;
    let place = || format!("column {} of {}", column.id, database.object_name(rowset.object_id));
    if let Some(wanted) = column.declared.stored()
        && column.status & status::FILESTREAM == 0
        && !is_same_type(wanted, stored)
    {
        verdicts.doubt("sys.syscolpars and sys.sysrscols, type", || {
            format!("{} is declared {}, but stored as {}", place(), wanted.declaration(), stored.info.declaration())
        });
    }
    let is_not_null = column.status & status::NOT_NULL != 0;
    // The engine itself derives whether a computed column is nullable. Because of its columns sysrsguid and lockres,
    // the table sysrowsets is not checked (docs/format/catalog.md#sysrscols).
    let is_declared = column.status & status::COMPUTED == 0 && rowset.object_id != SYSROWSETS;
    if is_declared && is_not_null != (stored.status & column_status::NOT_NULL != 0) {
        verdicts.doubt("sys.syscolpars and sys.sysrscols, NOT NULL", || {
            let [declared, stored] = if is_not_null { ["NOT NULL", "NULL"] } else { ["NULL", "NOT NULL"] };
            format!("{} is declared {declared}, but stored as {stored}", place())
        });
    }
    if (column.status & status::SPARSE != 0) != stored.is_sparse() {
        verdicts.doubt("sys.syscolpars and sys.sysrscols, SPARSE", || {
            let [declared, stored] = if stored.is_sparse() { ["not ", ""] } else { ["", "not "] };
            format!("{} is {declared}declared SPARSE, but {stored}stored as sparse", place())
        });
    }
    let declared = CollationId(column.declared.collation as u32);
    if !super::is_same_collation(database, rowset.object_id, [declared, stored.collation]) {
        verdicts.doubt("sys.syscolpars and sys.sysrscols, collation", || {
            format!("{} is declared with collation {}, but stored with {}", place(), declared.0, stored.collation.0)
        });
    }
}

/// Whether a rowset stores a column with the type `wanted`.
fn is_same_type(wanted: TypeInfo, stored: &RowsetColumn) -> bool {
    const MAX_2005: u16 = 0xFFFF;
    let length = |info: TypeInfo| match info.length {
        MAX_2005 => 0,
        length => length,
    };
    let found = stored.info;
    let has_digits = matches!(found.xtype, xtype::DECIMAL | xtype::NUMERIC);
    let has_scale = has_digits || matches!(found.xtype, xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET);
    found.xtype == wanted.xtype
        && (length(found) == length(wanted) || found.xtype == xtype::SQL_VARIANT)
        && (found.precision == wanted.precision || !has_digits)
        && (found.scale == wanted.scale || !has_scale)
}
