//! The order of the steps of a histogram, which depends on the type of the first column.

use std::cmp::Ordering;

use crate::bytes::{u8_at, u32_at};
use crate::collation::CollationId;
use crate::key::{self, KeyOrder};
use crate::statistics::Step;
use crate::types::{TypeInfo, fixed_length, xtype};

/// The order of the steps of a histogram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepOrder {
    /// The order of a key column's values.
    Key {
        /// The order in which the values are compared.
        order: KeyOrder,
        /// The length of each value in bytes, if the type has a fixed length.
        length: Option<u16>,
    },
    /// The order of sql_variant values. Values of one base type have the order of this type.
    Variant,
}

impl StepOrder {
    /// The order of a column's values; `None` for types of unknown order.
    pub fn of(info: TypeInfo, collation: CollationId) -> Option<Self> {
        let order = match info.xtype {
            xtype::SQL_VARIANT => return Some(Self::Variant),
            xtype::TEXT => KeyOrder::Ansi(collation),
            xtype::NTEXT => KeyOrder::Unicode(collation),
            xtype::IMAGE => KeyOrder::Bytes,
            _ => KeyOrder::of(info, collation, 0),
        };
        let length = match info.xtype {
            xtype::CHAR | xtype::NCHAR | xtype::BINARY => Some(info.length),
            // A histogram stores the values of these types, while a row of the table stores a pointer. So the length of
            // the stored column says nothing about the values.
            xtype::TEXT | xtype::NTEXT | xtype::IMAGE => None,
            _ => fixed_length(info),
        };
        (order != KeyOrder::Unknown).then_some(Self::Key { order, length })
    }

    /// Whether the value of the step has the length that the column requires.
    pub fn fits(self, step: &Step<'_>) -> bool {
        match (self, step.value) {
            (Self::Key { length: Some(length), .. }, Some(value)) => value.len() == usize::from(length),
            _ => true,
        }
    }

    /// Whether the value of the step `after` is greater than that of the step `before`; `None` if this is undecided.
    pub fn ascends(self, before: &Step<'_>, after: &Step<'_>) -> Option<bool> {
        match (before.value, after.value) {
            (_, None) => Some(false),
            (None, Some(_)) => Some(true),
            (Some(before), Some(after)) => match self.compare(before, after)? {
                Ordering::Less => Some(true),
                Ordering::Greater => Some(false),
                // A histogram may store only the beginning of a long value. So two steps may have equal texts or binary
                // values. Equal values of other types are an error, because SQL Server would have made one step of
                // them.
                Ordering::Equal => self.is_of_numbers().then_some(false),
            },
        }
    }

    fn compare(self, before: &[u8], after: &[u8]) -> Option<Ordering> {
        match self {
            Self::Key { order, .. } => key::compare_values(before, after, order),
            Self::Variant => compare_variants(before, after),
        }
    }

    /// Whether the order depends on a collation.
    pub fn is_of_text(self) -> bool {
        matches!(self, Self::Key { order: KeyOrder::Ansi(_) | KeyOrder::Unicode(_), .. })
    }

    fn is_of_numbers(self) -> bool {
        !self.is_of_text() && !matches!(self, Self::Key { order: KeyOrder::Bytes, .. } | Self::Variant)
    }
}

/// Compares two sql_variant values; `None` if their order is unknown. Values of one base type have the order of that
/// type. Values of different type families have the order that Microsoft documents
/// (docs/format/types-and-keys.md#sql_variant). Values of one family but of different types are not compared.
fn compare_variants(before: &[u8], after: &[u8]) -> Option<Ordering> {
    let (before, after) = (Variant::read(before)?, Variant::read(after)?);
    match before.family()?.cmp(&after.family()?) {
        Ordering::Equal if before.order == after.order && before.info.scale == after.info.scale => {
            key::compare_values(before.value, after.value, before.order)
        }
        Ordering::Equal => None,
        different => Some(different),
    }
}

/// A sql_variant value.
struct Variant<'a> {
    info: TypeInfo,
    order: KeyOrder,
    value: &'a [u8],
}

impl<'a> Variant<'a> {
    /// Parses the base type, the version, the properties of the type, and the value.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        const VERSION: u8 = 1;
        let (base, version) = (u8_at(bytes, 0)?, u8_at(bytes, 1)?);
        let mut info = TypeInfo { xtype: base, ..TypeInfo::default() };
        let mut collation = CollationId(0);
        let header = match base {
            xtype::DECIMAL | xtype::NUMERIC => {
                (info.precision, info.scale) = (u8_at(bytes, 2)?, u8_at(bytes, 3)?);
                4
            }
            xtype::BINARY | xtype::VARBINARY => 4,
            xtype::CHAR | xtype::VARCHAR | xtype::NCHAR | xtype::NVARCHAR => {
                collation = CollationId(u32_at(bytes, 4)?);
                8
            }
            xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET => {
                info.scale = u8_at(bytes, 2)?;
                3
            }
            _ => 2,
        };
        let value = bytes.get(header..).filter(|_| version == VERSION)?;
        info.length = u16::try_from(value.len()).ok()?;
        let order = KeyOrder::of(info, collation, 0);
        let is_whole = fixed_length(info).is_none_or(|length| length == info.length);
        (is_whole && order != KeyOrder::Unknown).then_some(Self { info, order, value })
    }

    /// The rank of the type's family. The lowest family has the lowest rank.
    fn family(&self) -> Option<u8> {
        Some(match self.info.xtype {
            xtype::UNIQUEIDENTIFIER => 0,
            xtype::BINARY | xtype::VARBINARY => 1,
            xtype::CHAR | xtype::VARCHAR | xtype::NCHAR | xtype::NVARCHAR => 2,
            xtype::BIT | xtype::TINYINT | xtype::SMALLINT | xtype::INT | xtype::BIGINT => 3,
            xtype::MONEY | xtype::SMALLMONEY | xtype::DECIMAL | xtype::NUMERIC => 3,
            xtype::REAL | xtype::FLOAT => 4,
            xtype::DATE | xtype::TIME | xtype::DATETIME | xtype::SMALLDATETIME => 5,
            xtype::DATETIME2 | xtype::DATETIMEOFFSET => 5,
            _ => return None,
        })
    }
}
