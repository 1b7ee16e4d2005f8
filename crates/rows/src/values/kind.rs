//! How a value is read, by the type of its column.

use format::types::{TypeInfo, xtype};

use super::code_page::CodePage;

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
    /// A CLR type, or a type whose form is undocumented: bytes as stored.
    AsStored,
    /// FILESTREAM: the value is in a separate file.
    Filestream,
    /// A type that no documentation names.
    Unknown,
    /// Not stored in the row.
    NotStored,
}

/// How a value is read if only the type matters, not the column.
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
