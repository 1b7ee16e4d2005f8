//! What is known of the columns of a partition before its rows are read.

use catalog::{Rowset, RowsetColumn, column_status};
use format::types::{user_type, xtype};

use crate::Table;
use crate::table::Place;
use crate::values::code_page::CodePage;
use crate::values::kind::{Kind, plain};

/// A column of the table in the rows of a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnPlan<'a> {
    pub(crate) kind: Kind,
    /// Where it is; `None` if the rows of the partition do not have it.
    pub(crate) column: Option<&'a RowsetColumn>,
    /// Its null bit in leaf records.
    pub(crate) null_bit: u16,
    /// What a row has that was written before the column was added.
    pub(crate) absent: Absent<'a>,
}

/// The value of a column in rows that do not have it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Absent<'a> {
    Null,
    Default(&'a [u8]),
    /// It had a default that the catalog does not show.
    Unknown,
}

/// The columns of a table in the rows of a partition, parallel to [`Table::columns`].
#[derive(Clone, Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) columns: Vec<ColumnPlan<'a>>,
}

impl<'a> Plan<'a> {
    pub(crate) fn of(table: &Table, rowset: &'a Rowset) -> Self {
        let columns = table.columns.iter().map(|column| {
            let stored = rowset.layout.column(column.id);
            let kind = match (column.place, stored) {
                (Place::Computed, _) | (_, None) => Kind::NotStored,
                (Place::Encrypted, _) => Kind::AsStored,
                (Place::Stored | Place::Persisted, Some(stored)) => kind_of(stored, column.user_type),
            };
            let absent = match stored {
                Some(stored) if stored.status & column_status::HAS_DEFAULT != 0 => {
                    stored.default.as_deref().map_or(Absent::Unknown, Absent::Default)
                }
                _ => Absent::Null,
            };
            ColumnPlan { kind, column: stored, null_bit: stored.map_or(0, |stored| stored.leaf_null_bit), absent }
        });
        Self { columns: columns.collect() }
    }
}

fn kind_of(column: &RowsetColumn, user: i32) -> Kind {
    let info = column.info;
    if !info.is_possible() {
        return Kind::Unknown;
    }
    if column.status & column_status::FILESTREAM != 0 {
        return Kind::Filestream;
    }
    match info.xtype {
        xtype::DECIMAL | xtype::NUMERIC if column.is_vardecimal() => Kind::Vardecimal(info),
        xtype::BIT => Kind::Bit(column.leaf_bit),
        xtype::CHAR | xtype::VARCHAR | xtype::TEXT => Kind::Ansi(CodePage::of(column.collation)),
        // The rows of CLR types say varbinary; only the table's own column says which type it is.
        xtype::CLR | xtype::VARBINARY => match user {
            user_type::HIERARCHYID => Kind::HierarchyId,
            user_type::GEOMETRY => Kind::Shape { is_geography: false },
            user_type::GEOGRAPHY => Kind::Shape { is_geography: true },
            user_type::VECTOR => Kind::AsStored,
            _ if info.xtype == xtype::CLR => Kind::AsStored,
            _ => plain(info),
        },
        _ => plain(info),
    }
}
