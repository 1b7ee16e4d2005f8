//! The columns of a file.

use format::types::{TypeInfo, user_type, xtype};
use rows::{Column, Place, Table};

/// A column of a file.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name.
    pub name: String,
    /// The kind of its values.
    pub kind: Kind,
    /// The position of its value in a row.
    pub source: usize,
    /// Column ID in the table; 0 for a column that the file has in addition to those of the table.
    pub column_id: u32,
}

/// The kind of the values of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// bit.
    Bit,
    /// An integer of `bits` bits; 8 bits have no sign.
    Integer {
        /// 8, 16, 32 or 64.
        bits: u8,
    },
    /// decimal, numeric, money, smallmoney.
    Decimal {
        /// Digits, at most 38.
        precision: u8,
        /// Digits after the point.
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
        /// Digits after the second.
        digits: u8,
    },
    /// datetime, smalldatetime, datetime2.
    DateTime {
        /// Digits after the second.
        digits: u8,
    },
    /// datetimeoffset.
    DateTimeOffset {
        /// Digits after the second.
        digits: u8,
    },
    /// uniqueidentifier.
    Guid,
    /// Text.
    Text,
    /// hierarchyid, as its path.
    Hierarchy,
    /// geometry.
    Geometry,
    /// geography.
    Geography,
    /// Bytes.
    Bytes,
    /// rowversion, which the server generates.
    RowVersion,
    /// sql_variant: each value has a type of its own.
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
    /// Names of columns that are computed when they are read, and are in no file.
    pub computed: Vec<String>,
}

impl Layout {
    /// The stored columns of a table. The values of a row are parallel to [`Table::columns`].
    pub fn of(table: &Table) -> Self {
        Self::behind(table, &[])
    }

    /// As [`Self::of`], with additional columns in front: a row has their values first. If the table already has a
    /// column of that name, the additional column gets another name.
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
