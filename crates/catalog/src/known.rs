//! The columns of the base tables that name tables and columns. Their places in the rows are the same in all releases
//! from SQL Server 2005 to 2025: newer releases add columns only at the end (docs/format/catalog.md#known-columns). They
//! are used only if the part of the catalog that describes these tables is lost.

use format::collation::CollationId;
use format::types::{TypeInfo, xtype};

use crate::layout::RowsetColumn;

/// A column: name, type, length, position in the record (see [`RowsetColumn::leaf_offset`]).
type Known = (&'static str, u8, u16, i16);

const NAME: u8 = xtype::NVARCHAR;
const INT: u8 = xtype::INT;

/// The columns of each table, in the order of their null bits.
const TABLES: [(i32, &[Known]); 8] = [
    (
        23,
        &[
            ("dbfragid", INT, 4, 4),
            ("phfgid", INT, 4, 8),
            ("fgid", INT, 4, 12),
            ("type", xtype::CHAR, 2, 16),
            ("fgguid", xtype::UNIQUEIDENTIFIER, 16, 18),
            ("lgfgid", INT, 4, 34),
            ("status", INT, 4, 38),
            ("name", NAME, 256, -1),
        ],
    ),
    (
        24,
        &[
            ("dbfragid", INT, 4, 4),
            ("fileid", INT, 4, 8),
            ("grpid", INT, 4, 12),
            ("status", INT, 4, 16),
            ("filetype", xtype::TINYINT, 1, 20),
            ("filestate", xtype::TINYINT, 1, 21),
            ("size", INT, 4, 22),
            ("maxsize", INT, 4, 26),
            ("growth", INT, 4, 30),
            ("lname", NAME, 256, -1),
            ("pname", NAME, 520, -2),
        ],
    ),
    (
        34,
        &[
            ("id", INT, 4, 4),
            ("name", NAME, 256, -1),
            ("nsid", INT, 4, 8),
            ("nsclass", xtype::TINYINT, 1, 12),
            ("status", INT, 4, 13),
            ("type", xtype::CHAR, 2, 17),
            ("pid", INT, 4, 19),
            ("pclass", xtype::TINYINT, 1, 23),
            ("intprop", INT, 4, 24),
            ("created", xtype::DATETIME, 8, 28),
            ("modified", xtype::DATETIME, 8, 36),
        ],
    ),
    (
        41,
        &[
            ("id", INT, 4, 4),
            ("number", xtype::SMALLINT, 2, 8),
            ("colid", INT, 4, 10),
            ("name", NAME, 256, -1),
            ("xtype", xtype::TINYINT, 1, 14),
            ("utype", INT, 4, 15),
            ("length", xtype::SMALLINT, 2, 19),
            ("prec", xtype::TINYINT, 1, 21),
            ("scale", xtype::TINYINT, 1, 22),
            ("collationid", INT, 4, 23),
            ("status", INT, 4, 27),
            ("maxinrow", xtype::SMALLINT, 2, 31),
            ("xmlns", INT, 4, 33),
            ("dflt", INT, 4, 37),
            ("chk", INT, 4, 41),
            ("idtval", xtype::VARBINARY, 64, -2),
        ],
    ),
    (
        54,
        &[
            ("id", INT, 4, 4),
            ("indid", INT, 4, 8),
            ("name", NAME, 256, -1),
            ("status", INT, 4, 12),
            ("intprop", INT, 4, 16),
            ("fillfact", xtype::TINYINT, 1, 20),
            ("type", xtype::TINYINT, 1, 21),
            ("tinyprop", xtype::TINYINT, 1, 22),
            ("dataspace", INT, 4, 23),
            ("lobds", INT, 4, 27),
            ("rowset", xtype::BIGINT, 8, 31),
        ],
    ),
    (
        55,
        &[
            ("idmajor", INT, 4, 4),
            ("idminor", INT, 4, 8),
            ("subid", INT, 4, 12),
            ("status", INT, 4, 16),
            ("intprop", INT, 4, 20),
            ("tinyprop1", xtype::TINYINT, 1, 24),
            ("tinyprop2", xtype::TINYINT, 1, 25),
        ],
    ),
    (
        60,
        &[
            ("valclass", xtype::TINYINT, 1, 4),
            ("objid", INT, 4, 5),
            ("subobjid", INT, 4, 9),
            ("valnum", INT, 4, 13),
            ("value", xtype::SQL_VARIANT, 8016, -1),
            ("imageval", xtype::VARBINARY, 0, -2),
        ],
    ),
    (
        64,
        &[
            ("class", xtype::TINYINT, 1, 4),
            ("id", INT, 4, 5),
            ("name", NAME, 256, -1),
            ("status", INT, 4, 9),
            ("type", xtype::CHAR, 2, 13),
            ("intprop", INT, 4, 15),
            ("created", xtype::DATETIME, 8, 19),
            ("modified", xtype::DATETIME, 8, 27),
        ],
    ),
];

/// The columns of a base table by name; `None` if the table is not among those that are known.
pub(crate) fn columns(object_id: i32) -> Option<Vec<(String, RowsetColumn)>> {
    let (_, columns) = TABLES.iter().find(|(table, _)| *table == object_id)?;
    let column = |(number, &(name, xtype, length, leaf_offset)): (u16, &Known)| {
        let column = stored(u32::from(number), TypeInfo { xtype, length, precision: 0, scale: 0 }, leaf_offset);
        (name.to_owned(), RowsetColumn { leaf_null_bit: number, ..column })
    };
    Some((1..).zip(*columns).map(column).collect())
}

/// A column without a null bit, without a collation, and with a position only in leaf records.
pub(crate) fn stored(id: u32, info: TypeInfo, leaf_offset: i16) -> RowsetColumn {
    RowsetColumn {
        id,
        physical: id,
        info,
        collation: CollationId(0),
        status: 0,
        key_ordinal: 0,
        leaf_offset,
        node_offset: 0,
        leaf_null_bit: 0,
        node_null_bit: 0,
        default: None,
        leaf_bit: 0,
        node_bit: 0,
    }
}
