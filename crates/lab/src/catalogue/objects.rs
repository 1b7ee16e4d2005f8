//! Adds catalog rows for objects, columns and indexes to sysschobjs, syscolpars, sysidxstats, sysiscols and related
//! tables.

use super::Field::{Bytes, Number, Text};
use super::{Catalogue, base};
use crate::build::{BuiltRowset, Ids};
use crate::description::{Column, Index, Table, Values};
use crate::facts::ObjectFact;
use crate::statistics;
use crate::types::{SqlType, Storage};
use crate::version::Version;

const DBO: i64 = 1;
/// The values of sysschobjs.status: `USER_TABLE_STATUS` for user tables, `DEFAULT_STATUS` for DEFAULT constraints, and
/// `CHECK_STATUS` for CHECK constraints.
const USER_TABLE_STATUS: i64 = 0xE_0000;
const DEFAULT_STATUS: i64 = 0x2_0000;
const CHECK_STATUS: i64 = 0x12_0000;

/// Bit of sysidxstats.status: the row describes an index. The constants from `HAS_KEYS` to `FILTERED` are further bits
/// of sysidxstats.status.
const IS_INDEX: i64 = 0x1;
const HAS_KEYS: i64 = 0x2;
const UNIQUE: i64 = 0x8;
const PRIMARY_KEY: i64 = 0x20;
const AUTOMATIC_STATISTICS: i64 = 0x2000;
const FILTERED: i64 = 0x2_0000;
/// A bit of unknown meaning that all indexes have from SQL Server 2019 on.
const SINCE_2019: i64 = 0x8_0000;

/// Value of sysiscols.status for an ascending key column. The values for other columns are `DESCENDING_KEY`,
/// `OF_STATISTICS` (column of statistics) and `INCLUDED`.
const KEY: i64 = 3;
const DESCENDING_KEY: i64 = 7;
const OF_STATISTICS: i64 = 1;
const INCLUDED: i64 = 0x12;

/// Bit of syscolpars.status: the column is NOT NULL. The constants from `ANSI_PADDED` to `SPARSE` are further bits of
/// syscolpars.status.
const NOT_NULL: i64 = 0x1;
const ANSI_PADDED: i64 = 0x2;
const IDENTITY: i64 = 0x4;
const COMPUTED: i64 = 0x90;
const COMPUTED_PERSISTED: i64 = 0xD0;
const SPARSE: i64 = 0x100_0000;

/// Value of sysobjvalues.valclass for the text of a module. The constants from `COMPUTED_TEXT` to `FILTER_TEXT` are
/// further values of sysobjvalues.valclass.
const MODULE_TEXT: i64 = 1;
const COMPUTED_TEXT: i64 = 2;
const STATISTICS: i64 = 60;
const FILTER_TEXT: i64 = 66;
/// A sql_variant that contains the int 2: the type int, version 1, and the number 2. If a row of sysobjvalues stores a
/// text, this number in its column `value` means that each character of the text has one byte.
const SINGLE_BYTE_TEXT: [u8; 6] = [56, 1, 2, 0, 0, 0];

/// Class in syssingleobjrefs for references from a primary key or unique constraint to its index. SQL Server has
/// written such rows since SQL Server 2012.
const CONSTRAINT_INDEX: i64 = 93;
/// The classes of the references of a foreign key. `KEY_TABLE` is a reference to a table and its index, `KEY_FROM` to a
/// referencing column, and `KEY_TO` to a referenced column.
const KEY_TABLE: i64 = 27;
const KEY_FROM: i64 = 28;
const KEY_TO: i64 = 29;
/// `BOUND_USE` and `FILTER_USE` are classes of references in sysmultiobjrefs.
const BOUND_USE: i64 = 1;
const FILTER_USE: i64 = 5;

/// The object IDs of a table and of its constraints.
#[derive(Clone, Debug)]
pub(crate) struct TableIds {
    /// The object ID of the table.
    pub object: i32,
    /// The object ID of the primary key.
    pub key: Option<i32>,
    /// The object IDs of the DEFAULT constraints, by column.
    pub defaults: Vec<Option<i32>>,
}

fn object_status(kind: &str) -> i64 {
    match kind {
        "U" => USER_TABLE_STATUS,
        "D" => DEFAULT_STATUS,
        "C" => CHECK_STATUS,
        _ => 0,
    }
}

impl Catalogue<'_> {
    /// Adds the rows that describe a base or internal table, without the rows for its indexes.
    pub(super) fn describe_base_table(&mut self, object: &ObjectFact) {
        let id = i64::from(object.id);
        self.add(
            base::SYSSCHOBJS,
            &[
                ("id", Number(id)),
                ("name", Text(object.name)),
                ("nsid", Number(i64::from(object.schema))),
                ("status", Number(object.status)),
                ("type", Text(object.kind)),
                ("pclass", Number(1)),
                ("intprop", Number(object.intprop)),
                ("status2", Number(object.status2)),
            ],
        );
        for column in &object.columns {
            let collation = column.collation.unwrap_or(self.description.collation);
            self.add(
                base::SYSCOLPARS,
                &[
                    ("id", Number(id)),
                    ("colid", Number(i64::from(column.id))),
                    ("name", Text(column.name)),
                    ("xtype", Number(i64::from(column.xtype))),
                    ("utype", Number(column.utype)),
                    ("length", Number(i64::from(column.length))),
                    ("prec", Number(i64::from(column.precision))),
                    ("scale", Number(i64::from(column.scale))),
                    ("collationid", Number(i64::from(collation as i32))),
                    ("status", Number(column.status)),
                    ("maxinrow", Number(column.max_in_row)),
                ],
            );
        }
        for index in &object.indexes {
            for column in &index.columns {
                self.add_index_column(
                    (id, index.id),
                    column.number,
                    column.status,
                    i64::from(column.column),
                    column.ordinal,
                );
            }
        }
    }

    /// Adds the rows that describe an index of a base table.
    pub(super) fn describe_base_index(&mut self, rowset: &BuiltRowset) {
        let found = self.fact(rowset.object);
        let found = found.and_then(|object| object.indexes.iter().find(|index| index.id == rowset.index));
        if let Some(index) = found.cloned() {
            self.add_index(rowset, index.name, index.kind, index.status);
        }
    }

    fn add_index(&mut self, rowset: &BuiltRowset, name: &str, kind: u8, status: i64) {
        // From SQL Server 2012 on, the column `dataspace` is 0 in every row.
        let group = rowset.units.first().map_or(1, |(_, unit)| i64::from(unit.group));
        let data_space = if self.description.version < Version::V706 { group } else { 0 };
        let mut fields = vec![
            ("id", Number(i64::from(rowset.object))),
            ("indid", Number(i64::from(rowset.index))),
            ("status", Number(status)),
            ("fillfact", Number(i64::from(rowset.fill_factor))),
            ("type", Number(i64::from(kind))),
            ("dataspace", Number(data_space)),
            ("rowset", Number(rowset.id as i64)),
        ];
        if !name.is_empty() {
            fields.push(("name", Text(name)));
        }
        self.add(base::SYSIDXSTATS, &fields);
    }

    fn add_index_column(&mut self, (object, index): (i64, i32), number: i64, status: i64, column: i64, ordinal: i64) {
        self.add(
            base::SYSISCOLS,
            &[
                ("idmajor", Number(object)),
                ("idminor", Number(i64::from(index))),
                ("subid", Number(number)),
                ("status", Number(status)),
                ("intprop", Number(column)),
                ("tinyprop1", Number(ordinal)),
            ],
        );
    }

    fn add_object(&mut self, id: i32, parent: i32, kind: &str, name: &str, columns: usize) {
        self.add(
            base::SYSSCHOBJS,
            &[
                ("id", Number(i64::from(id))),
                ("name", Text(name)),
                ("nsid", Number(DBO)),
                ("status", Number(object_status(kind))),
                ("type", Text(kind)),
                ("pid", Number(i64::from(parent))),
                ("pclass", Number(1)),
                ("intprop", Number(columns as i64)),
            ],
        );
    }

    /// Adds the rows that describe a user table.
    pub(crate) fn describe_table(&mut self, table: &Table, ids: &TableIds, built: &[BuiltRowset]) {
        let &TableIds { object, key: constraint, ref defaults } = ids;
        self.add_object(object, 0, "U", &table.name, table.columns.len());
        for (at, (column, default)) in table.columns.iter().zip(defaults).enumerate() {
            if column.is_dropped() {
                continue;
            }
            self.describe_table_column(table, object, at as i64 + 1, column, *default);
            if let (Some(id), Some(value)) = (*default, column.default) {
                self.add_object(id, object, "D", &format!("df_{}_{}", table.name, column.name), at + 1);
                self.add_text(MODULE_TEXT, id, 0, &format!("(({value}))"));
            }
        }
        let mut seen = None;
        for rowset in built {
            if seen == Some(rowset.index) {
                continue;
            }
            seen = Some(rowset.index);
            let index = match rowset.index {
                0 => None,
                1 => table.clustered.as_ref(),
                id => table.indexes.get(id as usize - 2),
            };
            let since = if self.description.version >= Version::V904 { SINCE_2019 } else { 0 };
            let Some(index) = index else {
                self.add_index(rowset, "", 0, IS_INDEX | since);
                continue;
            };
            let flag = |set: bool, bit: i64| if set { bit } else { 0 };
            let status = IS_INDEX
                | HAS_KEYS
                | since
                | flag(index.unique, UNIQUE)
                | flag(index.primary_key, PRIMARY_KEY)
                | flag(index.filter.is_some(), FILTERED);
            self.add_index(rowset, &index.name, if rowset.index == 1 { 1 } else { 2 }, status);
            self.describe_index_columns(table, object, rowset.index, index);
            if let (true, Some(constraint)) = (index.primary_key, constraint) {
                self.add_object(constraint, object, "PK", &index.name, 0);
                if self.description.version >= Version::V706 {
                    self.add_single_reference(CONSTRAINT_INDEX, (constraint, 0), (rowset.index, 0));
                }
            }
        }
    }

    /// Adds the rows that describe the statistics of a table.
    pub(crate) fn describe_statistics(&mut self, number: usize, object: i32) {
        let description = self.description;
        let Some(table) = description.tables.get(number) else { return };
        for (at, &column) in table.statistics.iter().enumerate() {
            // Statistics IDs are assigned after the IDs of the heap or clustered index and of the nonclustered indexes.
            let id = (table.indexes.len() + 2 + at) as i32;
            let name = format!("_WA_Sys_{:08X}_{object:08X}", column + 1);
            self.add(
                base::SYSIDXSTATS,
                &[
                    ("id", Number(i64::from(object))),
                    ("indid", Number(i64::from(id))),
                    ("name", Text(&name)),
                    ("status", Number(HAS_KEYS | AUTOMATIC_STATISTICS)),
                ],
            );
            self.add_index_column((i64::from(object), id), 1, OF_STATISTICS, column as i64 + 1, 0);
            let blob = statistics::blob(description, number, column);
            // A sql_variant that contains a bigint.
            let value = [&[127, 1][..], &table.rows.to_le_bytes()].concat();
            self.add(
                base::SYSOBJVALUES,
                &[
                    ("valclass", Number(STATISTICS)),
                    ("objid", Number(i64::from(object))),
                    ("subobjid", Number(i64::from(id))),
                    ("value", Bytes(&value)),
                    ("imageval", Bytes(&blob)),
                ],
            );
        }
    }

    /// Adds the rows that describe the CHECK constraints and foreign keys of a table. `objects` has the object IDs of
    /// all tables.
    pub(crate) fn describe_constraints(&mut self, table: usize, objects: &[i32], ids: &mut Ids) {
        let description = self.description;
        let (Some(table), Some(&object)) = (description.tables.get(table), objects.get(table)) else { return };
        for (name, condition) in &table.checks {
            let id = ids.object(|id| self.is_taken(id));
            let column = condition.column() + 1;
            self.add_object(id, object, "C", name, column);
            self.add_text(MODULE_TEXT, id, 0, &condition.text(&table.columns));
            self.add_reference(BOUND_USE, (id, 0), (object, column as i64));
        }
        for key in &table.foreign_keys {
            let Some((referred, index)) = description.referred(&self.tables, key) else { continue };
            let Some(&referred) = objects.get(referred) else { continue };
            let id = ids.object(|id| self.is_taken(id));
            self.add_object(id, object, "F", &key.name, key.column + 1);
            self.add_single_reference(KEY_TABLE, (id, 0), (referred, i64::from(index)));
            self.add_single_reference(KEY_FROM, (id, 1), (object, key.column as i64 + 1));
            self.add_single_reference(KEY_TO, (id, 1), (referred, key.key as i64 + 1));
        }
    }

    fn describe_index_columns(&mut self, table: &Table, object: i32, number: i32, index: &Index) {
        let owner = (i64::from(object), number);
        for (at, &(key, descending)) in index.keys.iter().enumerate() {
            let status = if descending { DESCENDING_KEY } else { KEY };
            self.add_index_column(owner, at as i64 + 1, status, key as i64 + 1, at as i64 + 1);
        }
        for (at, &column) in index.included.iter().enumerate() {
            self.add_index_column(owner, (index.keys.len() + at) as i64 + 1, INCLUDED, column as i64 + 1, 0);
        }
        if let Some(filter) = &index.filter {
            self.add_text(FILTER_TEXT, object, i64::from(number), &filter.text(&table.columns));
            self.add_reference(FILTER_USE, (object, i64::from(number)), (object, filter.column() as i64 + 1));
        }
    }

    fn describe_table_column(&mut self, table: &Table, object: i32, id: i64, column: &Column, default: Option<i32>) {
        let ty = column.ty;
        let flag = |set: bool, bit: i64| if set { bit } else { 0 };
        let padded = matches!(ty.xtype, 165 | 167 | 173 | 175 | 231 | 239);
        let status = flag(!column.nullable, NOT_NULL)
            | flag(padded, ANSI_PADDED)
            | flag(column.sparse, SPARSE)
            | flag(column.identity, IDENTITY)
            | column.computed.as_ref().map_or(0, |c| if c.persisted { COMPUTED_PERSISTED } else { COMPUTED });
        let max = ty.storage() == Storage::Max;
        let collation = if ty.is_string() { self.description.collation } else { 0 };
        let mark = identity_mark(column, table.rows);
        let mark = mark.as_ref().map(|mark| ("idtval", Bytes(mark)));
        let fields: Vec<_> = [
            ("id", Number(i64::from(object))),
            ("colid", Number(id)),
            ("name", Text(&column.name)),
            ("xtype", Number(i64::from(ty.xtype))),
            ("utype", Number(i64::from(if ty.is_encrypted() { ty.xtype } else { ty.user_type }))),
            ("length", Number(if max { -1 } else { i64::from(ty.length) })),
            ("prec", Number(precision(ty))),
            ("scale", Number(i64::from(ty.scale))),
            ("collationid", Number(i64::from(collation as i32))),
            ("status", Number(status)),
            ("maxinrow", Number(if max { 8000 } else { i64::from(ty.length) })),
            ("dflt", Number(i64::from(default.unwrap_or_default()))),
        ]
        .into_iter()
        .chain(mark)
        .collect();
        self.add(base::SYSCOLPARS, &fields);
        if let Some(computed) = &column.computed {
            self.add_text(COMPUTED_TEXT, object, id, &computed.expression.text(&table.columns));
            let (a, b) = computed.expression.operands();
            for operand in if a == b { vec![a] } else { vec![a, b] } {
                self.add_reference(BOUND_USE, (object, id), (object, operand as i64 + 1));
            }
        }
    }

    fn add_text(&mut self, class: i64, object: i32, part: i64, text: &str) {
        self.add(
            base::SYSOBJVALUES,
            &[
                ("valclass", Number(class)),
                ("objid", Number(i64::from(object))),
                ("subobjid", Number(part)),
                ("value", Bytes(&SINGLE_BYTE_TEXT)),
                ("imageval", Bytes(text.as_bytes())),
            ],
        );
    }

    fn add_single_reference(&mut self, class: i64, from: (i32, i64), to: (i32, i64)) {
        self.add(
            base::SYSSINGLEOBJREFS,
            &[
                ("class", Number(class)),
                ("depid", Number(i64::from(from.0))),
                ("depsubid", Number(from.1)),
                ("indepid", Number(i64::from(to.0))),
                ("indepsubid", Number(to.1)),
            ],
        );
    }

    fn add_reference(&mut self, class: i64, from: (i32, i64), to: (i32, i64)) {
        self.add(
            base::SYSMULTIOBJREFS,
            &[
                ("class", Number(class)),
                ("depid", Number(i64::from(from.0))),
                ("depsubid", Number(from.1)),
                ("indepid", Number(i64::from(to.0))),
                ("indepsubid", Number(to.1)),
            ],
        );
    }
}

/// Returns the value of syscolpars.idtval for an identity column: the last value, the increment and the seed, each with
/// the length of the type, and then a byte that is 1 if no row has a value yet. `None` for other columns.
fn identity_mark(column: &Column, rows: u64) -> Option<Vec<u8>> {
    let Values::Serial { start, step } = column.values else { return None };
    let current = start + step * (rows.max(1) - 1) as i64;
    let mut mark = Vec::new();
    for number in [current, step, start] {
        column.ty.encode_number(number, &mut mark);
    }
    mark.push(u8::from(rows == 0));
    column.identity.then_some(mark)
}

/// syscolpars.prec. It is 0 for string and binary types.
fn precision(ty: SqlType) -> i64 {
    i64::from(ty.precision)
}
