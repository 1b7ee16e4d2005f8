//! The columns of a file.

use format::types::{TypeInfo, user_type, xtype};
use rows::{Column, Place, Table};

/// A column of a file.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name of the column.
    pub name: String,
    /// The kind of the column's values.
    pub kind: Kind,
    /// The position of the column's value in a row.
    pub source: usize,
    /// The column ID in the table; 0 for a column that the table does not have.
    pub column_id: u32,
}

/// The kind of the values of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// bit.
    Bit,
    /// An integer of `bits` bits; an integer of 8 bits is unsigned.
    Integer {
        /// The number of bits: 8, 16, 32 or 64.
        bits: u8,
    },
    /// decimal, numeric, money, smallmoney.
    Decimal {
        /// The number of digits, at most 38.
        precision: u8,
        /// The number of digits after the decimal point.
        scale: u8,
    },
    /// real.
    Real,
    /// float.
    Float,
    /// date.
    Date,
    /// time.
    Time {
        /// The number of digits of the fraction of a second.
        digits: u8,
    },
    /// datetime, smalldatetime, datetime2.
    DateTime {
        /// The number of digits of the fraction of a second.
        digits: u8,
    },
    /// datetimeoffset.
    DateTimeOffset {
        /// The number of digits of the fraction of a second.
        digits: u8,
    },
    /// uniqueidentifier.
    Guid,
    /// Text.
    Text,
    /// hierarchyid, written as its path, such as `/1/2/`.
    Hierarchy,
    /// geometry.
    Geometry,
    /// geography.
    Geography,
    /// Bytes.
    Bytes,
    /// rowversion, which the server generates.
    RowVersion,
    /// sql_variant; each value has its own type.
    Variant,
}

impl Kind {
    /// The kind of a column's values.
    pub fn of(column: &Column) -> Self {
        if column.place == Place::Encrypted {
            return Self::Bytes;
        }
        match column.user_type {
            user_type::HIERARCHYID => return Self::Hierarchy,
            user_type::GEOMETRY => return Self::Geometry,
            user_type::GEOGRAPHY => return Self::Geography,
            _ => {}
        }
        let TypeInfo { precision, scale, .. } = column.info;
        match column.info.xtype {
            xtype::BIT => Self::Bit,
            xtype::TINYINT => Self::Integer { bits: 8 },
            xtype::SMALLINT => Self::Integer { bits: 16 },
            xtype::INT => Self::Integer { bits: 32 },
            xtype::BIGINT => Self::Integer { bits: 64 },
            xtype::DECIMAL | xtype::NUMERIC => {
                Self::Decimal { precision: precision.clamp(1, 38), scale: scale.min(38) }
            }
            xtype::MONEY => Self::Decimal { precision: 19, scale: 4 },
            xtype::SMALLMONEY => Self::Decimal { precision: 10, scale: 4 },
            xtype::REAL => Self::Real,
            xtype::FLOAT => Self::Float,
            xtype::DATE => Self::Date,
            xtype::TIME => Self::Time { digits: scale.min(7) },
            xtype::DATETIME => Self::DateTime { digits: 3 },
            xtype::SMALLDATETIME => Self::DateTime { digits: 0 },
            xtype::DATETIME2 => Self::DateTime { digits: scale.min(7) },
            xtype::DATETIMEOFFSET => Self::DateTimeOffset { digits: scale.min(7) },
            xtype::UNIQUEIDENTIFIER => Self::Guid,
            xtype::TEXT
            | xtype::NTEXT
            | xtype::VARCHAR
            | xtype::CHAR
            | xtype::NVARCHAR
            | xtype::NCHAR
            | xtype::XML
            | xtype::JSON => Self::Text,
            xtype::TIMESTAMP => Self::RowVersion,
            xtype::SQL_VARIANT => Self::Variant,
            _ => Self::Bytes,
        }
    }
}

/// The columns of a file.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The columns in order.
    pub fields: Vec<Field>,
    /// Names of computed columns that are not persisted. SQL Server calculates their values when they are read, so no
    /// data file contains them.
    pub computed: Vec<String>,
}

impl Layout {
    /// The stored columns of a table. A row has one value per entry of [`Table::columns`], in the same order.
    pub fn of(table: &Table) -> Self {
        Self::behind(table, &[])
    }

    /// Like [`Self::of`], with additional columns before those of the table. A row begins with the values of the
    /// additional columns. If the table already has a column of the same name, the additional column is renamed.
    pub fn behind(table: &Table, front: &[(&str, Kind)]) -> Self {
        let is_taken = |name: &str| table.columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
        let free = |name: &str| {
            let mut name = name.to_owned();
            while is_taken(&name) {
                name.push('_');
            }
            name
        };
        let field = |(source, (name, kind)): (usize, &(&str, Kind))| Field {
            name: free(name),
            kind: *kind,
            source,
            column_id: 0,
        };
        let mut fields: Vec<Field> = front.iter().enumerate().map(field).collect();
        let mut computed = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            match column.place {
                Place::Computed => computed.push(column.name.clone()),
                _ => fields.push(Field {
                    name: column.name.clone(),
                    kind: Kind::of(column),
                    source: front.len() + at,
                    column_id: column.id,
                }),
            }
        }
        Self { fields, computed }
    }
}
