//! Reads the value inside a sql_variant (docs/format/types-and-keys.md#sql_variant).

use format::bytes::{u16_at, u32_at};
use format::collation::CollationId;
use format::types::{TypeInfo, xtype};

use super::code_page::CodePage;
use super::kind::{Kind, plain};
use crate::Unreadable;

/// The kind of the inner value, and its bytes.
pub(super) fn inside(bytes: &[u8]) -> Result<(Kind, &[u8]), Unreadable> {
    let Some((&[base, version], rest)) = bytes.split_first_chunk::<2>() else { return Err(Unreadable::Impossible) };
    if version != 1 {
        return Err(Unreadable::Undocumented);
    }
    let byte = |at: usize| rest.get(at).copied().ok_or(Unreadable::Impossible);
    let mut info = TypeInfo { xtype: base, ..TypeInfo::default() };
    let properties = match base {
        xtype::DECIMAL | xtype::NUMERIC => {
            (info.precision, info.scale) = (byte(0)?, byte(1)?);
            2
        }
        xtype::BINARY | xtype::VARBINARY => 2,
        xtype::CHAR | xtype::VARCHAR | xtype::NCHAR | xtype::NVARCHAR => 6,
        xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET => {
            info.scale = byte(0)?;
            1
        }
        xtype::TINYINT | xtype::SMALLINT | xtype::INT | xtype::BIGINT | xtype::BIT => 0,
        xtype::MONEY | xtype::SMALLMONEY | xtype::REAL | xtype::FLOAT | xtype::UNIQUEIDENTIFIER => 0,
        xtype::DATE | xtype::DATETIME | xtype::SMALLDATETIME => 0,
        _ => return Err(Unreadable::Undocumented),
    };
    let value = rest.get(properties..).ok_or(Unreadable::Impossible)?;
    let is_longer = matches!(properties, 2 | 6)
        && !matches!(base, xtype::DECIMAL | xtype::NUMERIC)
        && u16_at(rest, 0).is_none_or(|most| value.len() > most.into());
    if !info.is_possible() || is_longer {
        return Err(Unreadable::Impossible);
    }
    let kind = match base {
        xtype::CHAR | xtype::VARCHAR => {
            Kind::Ansi(CodePage::of(CollationId(u32_at(rest, 2).ok_or(Unreadable::Impossible)?)))
        }
        _ => plain(info),
    };
    Ok((kind, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_follows_its_type_and_the_properties_of_the_type() {
        assert_eq!(inside(&[0x28, 1, 0x5B, 0x95, 0x0A]), Ok((Kind::Date, &[0x5B, 0x95, 0x0A][..])));
        let (kind, value) = inside(&[0xE7, 1, 4, 0, 8, 0xD0, 0, 0x34, b'a', 0]).unwrap();
        assert_eq!((kind, value), (Kind::Utf16, &[b'a', 0][..]));
        assert_eq!(
            inside(&[0xE7, 1, 1, 0, 8, 0xD0, 0, 0x34, b'a', 0]),
            Err(Unreadable::Impossible),
            "longer than it may be"
        );
        assert_eq!(inside(&[0x28, 2, 0]), Err(Unreadable::Undocumented), "another version");
        assert_eq!(inside(&[0x28]), Err(Unreadable::Impossible));
    }
}
