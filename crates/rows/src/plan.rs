//! Determines how the columns of a partition are read, before the rows of the partition are read.

use catalog::{Rowset, RowsetColumn, column_status};
use format::record::Record;
use format::types::{user_type, xtype};

use crate::table::Place;
use crate::values::Work;
use crate::values::code_page::CodePage;
use crate::values::kind::{Kind, plain};
use crate::values::put_all;
use crate::{Table, Value};

/// How a column of the table is read from the rows of a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnPlan<'a> {
    pub(crate) kind: Kind,
    /// The column as the partition stores it; `None` if the partition does not store it.
    pub(crate) column: Option<&'a RowsetColumn>,
    /// The place of the column in a record that has all columns.
    place: InRecord,
    /// The number of the column's bit in the null bitmap of leaf records.
    pub(crate) null_bit: u16,
    /// The value in rows that were written before the column was added.
    pub(crate) absent: Absent<'a>,
}

/// The place of a column in a record that has all columns of its table.
#[derive(Clone, Copy, Debug)]
enum InRecord {
    Fixed {
        offset: u16,
        length: u16,
    },
    /// A variable-length column with this number, counted from 1.
    Variable(u16),
    /// Another place, which must be looked up in the layout for each record.
    Other,
}

/// The value of a column in rows that do not have it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Absent<'a> {
    Null,
    Default(&'a [u8]),
    /// Unknown: the column had a default, but the catalog does not contain its value.
    Unknown,
}

/// How the columns of a table are read from the rows of a partition. The columns are parallel to [`Table::columns`].
#[derive(Clone, Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) columns: Vec<ColumnPlan<'a>>,
    /// A record has all columns if its null bitmap contains bit `last_null_bit` and its fixed-length part extends at
    /// least to `fixed_end`, the end of the fixed-length columns.
    last_null_bit: u16,
    fixed_end: u16,
    /// A row may need defaults for columns that were added after the row was written. This is the total length of these
    /// defaults in bytes.
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
        let last_null_bit = columns.iter().map(|column| column.null_bit).max().unwrap_or(0);
        let fixed_end = columns.iter().map(end).max().unwrap_or(0);
        let default = |column: &ColumnPlan<'_>| match column.absent {
            Absent::Default(bytes) => bytes.len(),
            Absent::Null | Absent::Unknown => 0,
        };
        let default_bytes = columns.iter().map(default).sum();
        Self { columns, last_null_bit, fixed_end, default_bytes }
    }

    /// Whether all records have all columns. A record that was written before a column was added lacks that column.
    pub(crate) fn are_complete(&self, records: &[Record<'_>]) -> bool {
        let is_complete =
            |record: &Record<'_>| record.null_bit(self.last_null_bit).is_some() && record.fixed_end() >= self.fixed_end;
        records.iter().all(is_complete)
    }
}

impl ColumnPlan<'_> {
    /// Writes the values of a column to the positions `first`, `first + width` and so on of `rows`. The records must be
    /// complete and have no complex columns; `nulls` has the null bits 1 to 64 of each record. Returns false without
    /// writing if the place of the column must be looked up in the layout for each record.
    pub(crate) fn put<'b>(
        &self,
        records: &[Record<'b>],
        nulls: &[u64],
        places: (usize, usize),
        rows: &mut [Value<'b>],
        work: &mut Work,
    ) -> bool {
        if self.column.is_none() || !(1..=64).contains(&self.null_bit) {
            return false;
        }
        let nulls = (nulls, 1 << (self.null_bit - 1));
        match self.place {
            InRecord::Fixed { offset, length } => {
                put_fixed(self.kind, (offset, length), (records, nulls), places, rows, work);
            }
            InRecord::Variable(number) => put_variable(self.kind, number, (records, nulls), places, rows, work),
            InRecord::Other => return false,
        }
        true
    }
}

/// Records, the null bits of each record, and the mask of the column's null bit.
type Nullable<'r, 'b> = (&'r [Record<'b>], (&'r [u64], u64));

// Each kind of column has a separate function, because the processor has enough registers for each loop but not for all
// of them together.
#[inline(never)]
fn put_fixed<'b>(
    kind: Kind,
    (offset, length): (u16, u16),
    (records, (nulls, bit)): Nullable<'_, 'b>,
    places: (usize, usize),
    rows: &mut [Value<'b>],
    work: &mut Work,
) {
    let range = usize::from(offset)..usize::from(offset) + usize::from(length);
    // In a complete record the column is inside the fixed part.
    let field = |(record, nulls): (&Record<'b>, &u64)| match nulls & bit {
        0 => record.bytes().get(range.clone()),
        _ => None,
    };
    put_all(kind, records.iter().zip(nulls).map(field), places, rows, work);
}

#[inline(never)]
fn put_variable<'b>(
    kind: Kind,
    number: u16,
    (records, (nulls, bit)): Nullable<'_, 'b>,
    places: (usize, usize),
    rows: &mut [Value<'b>],
    work: &mut Work,
) {
    let field = |(record, nulls): (&Record<'b>, &u64)| match nulls & bit {
        // A record does not store empty variable-length columns at its end.
        0 => Some(record.variable(number).map_or(&[][..], |(bytes, _)| bytes)),
        _ => None,
    };
    put_all(kind, records.iter().zip(nulls).map(field), places, rows, work);
}

/// The place where [`RowsetColumn::stored`] finds the column, if the place is the same in all records that have the
/// column's null bit.
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
        // A rowset stores CLR types as varbinary, so only the column of the table tells the type.
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
