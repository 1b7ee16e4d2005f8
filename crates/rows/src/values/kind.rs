//! The way in which a value is read, by the type of its column.

use format::types::{TypeInfo, xtype};

use super::code_page::CodePage;

/// The way in which the bytes of a column are read.
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
    /// As stored bytes: a CLR type, or a type whose storage format is undocumented.
    AsStored,
    /// FILESTREAM: the value is in a separate file outside the database files.
    Filestream,
    /// The type is not documented.
    Unknown,
    /// The row does not store the column.
    NotStored,
}

/// The way in which values of a type are read. [`Kind::Unknown`] for undocumented types, and for types for which it
/// also depends on the column.
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
