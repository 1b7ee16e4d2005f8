//! The condition that selects one row: by the table's key, or by its address in a heap.

use catalog::{Database, Level, RowsetColumn, Stored, column_status};
use format::record::{Record, RecordKind};
use format::types::{TypeInfo, xtype};
use format::{Page, RecordId, value};
use script::Script;
use source::PageSource;

use crate::statements::is_plain;

/// A condition that selects the row by its key, such as `[OrderID] = 17 AND [Line] = 2`. The condition uses the row's
/// address instead if the table is a heap, if the key cannot be read, or if the type of a key column has no exact
/// literal. An address is valid until the row moves.
pub(crate) fn condition(
    source: &dyn PageSource,
    database: &Database,
    script: &Script<'_>,
    object_id: i32,
    at: RecordId,
) -> String {
    by_key(source, database, script, object_id, at).unwrap_or_else(|| by_place(at))
}

/// A condition on `%%physloc%%`. Its value is page, file and slot, each little-endian.
fn by_place(at: RecordId) -> String {
    let bytes = [&at.page.page.to_le_bytes()[..], &at.page.file.to_le_bytes(), &at.slot.to_le_bytes()].concat();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("%%physloc%% = 0x{hex} /* {at} */")
}

fn by_key(
    source: &dyn PageSource,
    database: &Database,
    script: &Script<'_>,
    object_id: i32,
    at: RecordId,
) -> Option<String> {
    let rowset = database.table_rowsets(object_id).find(|rowset| rowset.index_id == 1)?;
    // The row layout below does not apply to compressed rows.
    if rowset.is_row_compressed() {
        return None;
    }
    let catalog::Fetched::Sound(bytes) = catalog::fetch(source, at.page) else { return None };
    let record = Record::data(Page::new(&bytes).slot_bytes(at.slot)?).ok()?;
    if RecordKind::of(record.status()) != RecordKind::Primary {
        return None;
    }
    let mut keys: Vec<&RowsetColumn> = rowset.layout.columns.iter().filter(|column| column.key_ordinal > 0).collect();
    // The key of a clustered index that is not unique contains a uniquifier. This column has no name, so no condition
    // can use it.
    if keys.is_empty() || keys.iter().any(|column| column.status & column_status::UNIQUIFIER != 0) {
        return None;
    }
    keys.sort_by_key(|column| column.key_ordinal);
    let term = |column: &&RowsetColumn| {
        let name = script.column_name(object_id, column.id)?;
        match column.stored(Level::Leaf, &record) {
            Stored::Plain(bytes) => Some(format!("{name} = {}", literal(column.info, bytes, column.leaf_bit)?)),
            Stored::Null => Some(format!("{name} IS NULL")),
            Stored::Absent | Stored::Complex(_) => None,
        }
    };
    Some(keys.iter().map(term).collect::<Option<Vec<_>>>()?.join(" AND "))
}

/// A value as a literal; `None` for types without an exact literal, and for texts that a script runner might misread.
fn literal(info: TypeInfo, bytes: &[u8], bit: u8) -> Option<String> {
    exact(info, bytes, bit).filter(|literal| is_plain(literal))
}

fn exact(info: TypeInfo, bytes: &[u8], bit: u8) -> Option<String> {
    let text = || value::text(info, bytes, bit);
    Some(match info.xtype {
        xtype::TINYINT
        | xtype::SMALLINT
        | xtype::INT
        | xtype::BIGINT
        | xtype::BIT
        | xtype::DECIMAL
        | xtype::NUMERIC => text(),
        xtype::NCHAR | xtype::NVARCHAR => script::quote_text(&String::from_utf16(&units(bytes)).ok()?),
        // Only an ASCII string becomes a literal, because the meaning of other bytes depends on the code page.
        xtype::CHAR | xtype::VARCHAR if bytes.is_ascii() => {
            format!("'{}'", String::from_utf8_lossy(bytes).replace('\'', "''"))
        }
        xtype::UNIQUEIDENTIFIER => {
            let text = text();
            format!("'{}'", text.trim_matches('\''))
        }
        xtype::BINARY | xtype::VARBINARY | xtype::TIMESTAMP => {
            format!("0x{}", bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>())
        }
        _ => return None,
    })
}

fn units(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).filter_map(|pair| Some(u16::from_le_bytes([*pair.first()?, *pair.get(1)?]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use format::PageId;

    #[test]
    fn the_address_of_a_row_is_page_file_and_slot() {
        let at = RecordId { page: PageId::new(1, 0x1234), slot: 7 };
        assert_eq!(by_place(at), "%%physloc%% = 0x3412000001000700 /* (1:4660:7) */");
    }

    #[test]
    fn literals_are_exact_or_none() {
        let info = |xtype| TypeInfo { xtype, length: 4, ..TypeInfo::default() };
        assert_eq!(literal(info(xtype::INT), &[17, 0, 0, 0], 0).as_deref(), Some("17"));
        assert_eq!(literal(info(xtype::NVARCHAR), &[b'O', 0, b'\'', 0], 0).as_deref(), Some("N'O'''"));
        assert_eq!(literal(info(xtype::VARCHAR), &[0xE4], 0), None, "not the same in every code page");
        assert_eq!(literal(info(xtype::FLOAT), &[0; 8], 0), None);
        assert_eq!(literal(info(xtype::VARCHAR), b"a\nGO\nDROP TABLE b", 0), None, "no line of it is a statement");
        assert_eq!(literal(info(xtype::VARCHAR), b"$(x)", 0), None, "sqlcmd would replace it");
    }
}
