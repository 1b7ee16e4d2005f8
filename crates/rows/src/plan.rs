//! What is known of the columns of a partition before its rows are read.

use catalog::{Rowset, RowsetColumn, column_status};
use format::record::Record;
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
    /// Where a record that has all columns has it.
    place: InRecord,
    /// Its null bit in leaf records.
    pub(crate) null_bit: u16,
    /// What a row has that was written before the column was added.
    pub(crate) absent: Absent<'a>,
}

/// The place of a column in a record that has all columns of its table.
#[derive(Clone, Copy, Debug)]
enum InRecord {
    Fixed {
        offset: u16,
        length: u16,
    },
    /// A variable column, counted from 1.
    Variable(u16),
    /// What the layout says of each record.
    Other,
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
    /// A record with this number of columns and of bytes of fixed columns has all of them.
    column_count: u16,
    fixed_end: u16,
    /// What a row may have that was written before columns were added, in bytes.
    pub(crate) default_bytes: usize,
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
            let place = stored.map_or(InRecord::Other, in_record);
            ColumnPlan {
                kind,
                column: stored,
                place,
                null_bit: stored.map_or(0, |stored| stored.leaf_null_bit),
                absent,
            }
        });
        let columns: Vec<ColumnPlan<'_>> = columns.collect();
        let end = |column: &ColumnPlan<'_>| match column.place {
            InRecord::Fixed { offset, length } => offset.saturating_add(length),
            InRecord::Variable(_) | InRecord::Other => 0,
        };
        let column_count = columns.iter().map(|column| column.null_bit).max().unwrap_or(0);
        let fixed_end = columns.iter().map(end).max().unwrap_or(0);
        let default = |column: &ColumnPlan<'_>| match column.absent {
            Absent::Default(bytes) => bytes.len(),
            Absent::Null | Absent::Unknown => 0,
        };
        let default_bytes = columns.iter().map(default).sum();
        Self { columns, column_count, fixed_end, default_bytes }
    }

    /// What records without complex columns hold for a column, `None` for NULL. `nulls` are their null bits 1 to 64. False if the
    /// layout has to be asked for each of them.
    pub(crate) fn fields<'b>(
        &self,
        column: &ColumnPlan<'_>,
        records: &[Record<'b>],
        nulls: &[u64],
        fields: &mut Vec<Option<&'b [u8]>>,
    ) -> bool {
        // All records have all columns but those that were written before a column was added.
        let has_all =
            |record: &Record<'_>| record.column_count() >= self.column_count && record.fixed_end() >= self.fixed_end;
        if !(1..=64).contains(&column.null_bit) || !records.iter().all(has_all) {
            return false;
        }
        fields.clear();
        let bit = 1 << (column.null_bit - 1);
        let records = records.iter().zip(nulls.iter().map(|nulls| nulls & bit != 0));
        match column.place {
            InRecord::Fixed { offset, length } => {
                fields.extend(records.map(|(record, is_null)| record.fixed(offset, length).filter(|_| !is_null)))
            }
            InRecord::Variable(number) => fields.extend(records.map(|(record, is_null)| match is_null {
                true => None,
                // Trailing empty columns are omitted.
                false => Some(record.variable(number).map_or(&[][..], |(bytes, _)| bytes)),
            })),
            InRecord::Other => return false,
        }
        true
    }
}

/// As [`RowsetColumn::stored`] reads it, for all records that have the column's null bit.
fn in_record(column: &RowsetColumn) -> InRecord {
    match column.leaf_offset {
        _ if column.is_sparse() || column.leaf_null_bit == 0 => InRecord::Other,
        offset @ 1.. => InRecord::Fixed { offset: offset.unsigned_abs(), length: column.info.length },
        0 => InRecord::Other,
        number => InRecord::Variable(number.unsigned_abs()),
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
