//! What is known of the columns of a partition before its rows are read.

use catalog::{Rowset, RowsetColumn, column_status};
use format::types::{TypeInfo, user_type, xtype};

use crate::Table;
use crate::table::Place;
use crate::values::code_page::CodePage;

/// How the bytes of a column are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Bit(u8),
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Money,
    SmallMoney,
    Real,
    Float,
    DateTime,
    SmallDateTime,
    Date,
    Time(u8),
    DateTime2(u8),
    DateTimeOffset(u8),
    Decimal(TypeInfo),
    Vardecimal(TypeInfo),
    Guid,
    Ansi(CodePage),
    Utf16,
    Bytes,
    Xml,
    Variant,
    HierarchyId,
    Shape {
        is_geography: bool,
    },
    /// A CLR type or one whose form is not documented: bytes as stored.
    AsStored,
    /// FILESTREAM: the value is in a file of its own.
    Filestream,
    /// A type that no documentation names.
    Unknown,
    /// Not in the row.
    NotStored,
}

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

/// How a value of a type is read that has nothing to do with its column.
pub(crate) fn plain(info: TypeInfo) -> Kind {
    match info.xtype {
        xtype::TINYINT => Kind::TinyInt,
        xtype::SMALLINT => Kind::SmallInt,
        xtype::INT => Kind::Int,
        xtype::BIGINT => Kind::BigInt,
        xtype::BIT => Kind::Bit(0),
        xtype::MONEY => Kind::Money,
        xtype::SMALLMONEY => Kind::SmallMoney,
        xtype::REAL => Kind::Real,
        xtype::FLOAT => Kind::Float,
        xtype::DATETIME => Kind::DateTime,
        xtype::SMALLDATETIME => Kind::SmallDateTime,
        xtype::DATE => Kind::Date,
        xtype::TIME => Kind::Time(info.scale),
        xtype::DATETIME2 => Kind::DateTime2(info.scale),
        xtype::DATETIMEOFFSET => Kind::DateTimeOffset(info.scale),
        xtype::DECIMAL | xtype::NUMERIC => Kind::Decimal(info),
        xtype::UNIQUEIDENTIFIER => Kind::Guid,
        xtype::NCHAR | xtype::NVARCHAR | xtype::NTEXT => Kind::Utf16,
        xtype::BINARY | xtype::VARBINARY | xtype::IMAGE | xtype::TIMESTAMP => Kind::Bytes,
        xtype::XML => Kind::Xml,
        xtype::SQL_VARIANT => Kind::Variant,
        xtype::JSON => Kind::AsStored,
        _ => Kind::Unknown,
    }
}
