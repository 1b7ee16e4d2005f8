//! Reads base tables and finds their columns by name. The column names are in syscolpars, which must therefore be read
//! before all other tables.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use format::bytes::utf16;
use format::types::{TypeInfo, fixed_length, xtype};

use super::{SYSCOLPARS, SYSSEOBJVALUES, constraints, partitions, place_of_rowset};
use crate::bootstrap::{self, Pages};
use crate::database::{
    Database, Expression, ExpressionKind, FileRow, Filegroup, Index, IndexColumn, IndexType, Object, Rowset,
    TableColumn,
};
use crate::known;
use crate::layout::{RowsetColumn, column_status};
use crate::rows::{Row, row};

/// The column IDs and names of the columns of syscolpars. Some of these columns are needed to find the column names of
/// all other tables. The other columns in this list are read at the same time.
const SYSCOLPARS_COLUMNS: [(u32, &str); 9] = [
    (1, "id"),
    (2, "number"),
    (3, "colid"),
    (4, "name"),
    (5, "xtype"),
    (6, "utype"),
    (8, "prec"),
    (11, "status"),
    (16, "idtval"),
];

/// The IDs and names of the columns of a base table.
fn names_of(database: &Database, object_id: i32) -> Vec<(u32, &str)> {
    if object_id == SYSCOLPARS {
        return SYSCOLPARS_COLUMNS.to_vec();
    }
    let columns = database.columns.get(&object_id).into_iter().flatten();
    columns.map(|column| (column.id, column.name.as_str())).collect()
}

/// Reads base tables and finds their columns by name.
pub(crate) struct Loader<'a> {
    pub(super) pages: Pages<'a>,
}

impl Loader<'_> {
    /// Reads all base tables with columns that are found by name.
    pub(super) fn load_named_tables(self, database: &mut Database, is_2005: bool) {
        let mut columns: BTreeMap<i32, Vec<TableColumn>> = BTreeMap::new();
        self.scan(database, (SYSCOLPARS, "syscolpars"), |row| {
            if row.number("number") == 0 {
                columns.entry(row.int("id")).or_default().push(TableColumn {
                    id: row.number("colid") as u32,
                    name: row.text("name"),
                    user_type: row.int("utype"),
                    status: row.number("status") as u32,
                });
            }
        });
        for columns in columns.values_mut() {
            columns.sort_by_key(|column| column.id);
            columns.shrink_to_fit();
        }
        database.columns = columns;
        self.load_schemas(database);
        self.load_objects(database);
        self.load_indexes(database);
        if is_2005 {
            mark_descending_2005(database);
        }
        self.load_defaults(database);
        self.load_expressions(database);
        constraints::load(&self, database);
        partitions::load(&self, database);
        self.load_files(database);
        self.load_columnstore(database);
    }

    /// Calls `visit` with each row of a base table.
    pub(crate) fn scan(
        &self,
        database: &mut Database,
        (object_id, table): (i32, &'static str),
        mut visit: impl FnMut(Row<'_>),
    ) {
        let base = |rowset: &&Rowset| rowset.object_id == object_id && rowset.index_id <= 1;
        let rowset = database.rowsets.iter().find(base);
        let names = names_of(database, object_id);
        let columns: Vec<(String, RowsetColumn)> = rowset
            .map(|rowset| {
                let by_id: HashMap<u32, &RowsetColumn> = rowset
                    .layout
                    .columns
                    .iter()
                    .filter(|column| !column.is_dropped())
                    .map(|column| (column.id, column))
                    .collect();
                let column = |(id, name): (u32, &str)| Some((name.to_owned(), RowsetColumn::clone(by_id.get(&id)?)));
                names.into_iter().filter_map(column).collect()
            })
            .unwrap_or_default();
        // The description of a base table may be lost with its catalog rows.
        let columns = match self.pages.found {
            Some(_) => known::columns(object_id).unwrap_or(columns),
            None => columns,
        };
        let rowset = rowset.filter(|_| !columns.is_empty());
        let expansion = rowset.and_then(|rowset| rowset.expansion.clone());
        let readable = rowset.filter(|rowset| expansion.is_some() || !rowset.is_row_compressed());
        let place = readable.and_then(|rowset| place_of_rowset(database, rowset, expansion.as_ref()));
        bootstrap::table(self.pages, &mut database.gaps, (object_id, table), place, |record| {
            visit(row(record, &columns));
        });
    }

    /// Whether the release of the database has this base table.
    fn has(&self, database: &Database, object_id: i32) -> bool {
        database.columns.contains_key(&object_id)
            || self.pages.found.is_some_and(|found| !found.leaves_of(object_id).1.is_empty())
    }

    fn load_schemas(&self, database: &mut Database) {
        const CLASS_SCHEMA: u64 = 50;
        let mut schemas = BTreeMap::new();
        self.scan(database, (64, "sysclsobjs"), |row| {
            if row.number("class") == CLASS_SCHEMA {
                schemas.insert(row.int("id"), row.text("name"));
            }
        });
        database.schemas = schemas;
    }

    fn load_objects(&self, database: &mut Database) {
        let (mut objects, mut object_ids) = (BTreeMap::new(), BTreeSet::new());
        self.scan(database, (34, "sysschobjs"), |row| {
            let id = row.int("id");
            let type_code = String::from_utf8_lossy(row.bytes("type").unwrap_or_default()).trim_end().to_owned();
            object_ids.insert(id);
            let object = Object {
                id,
                name: row.text("name"),
                schema_id: row.int("nsid"),
                type_code,
                parent_id: row.int("pid"),
                number: row.int("intprop"),
            };
            // Only rows with nsclass 0 name objects in schemas. In rows with other values of nsclass, the IDs are not
            // object IDs.
            if row.number("nsclass") == 0 {
                objects.insert(id, object);
            }
        });
        database.objects = objects;
        database.object_ids = object_ids;
    }

    fn load_indexes(&self, database: &mut Database) {
        const IS_INDEX: u32 = 0x1;
        let mut indexes = BTreeMap::new();
        self.scan(database, (54, "sysidxstats"), |row| {
            let status = row.number("status") as u32;
            let (object_id, index_id) = (row.int("id"), row.int("indid"));
            if status & IS_INDEX != 0 || index_id <= 1 {
                let index_type = IndexType::from_byte(row.number("type") as u8);
                let index = Index { object_id, index_id, name: row.text("name"), index_type, status };
                indexes.insert((object_id, index_id), index);
            }
        });
        database.indexes = indexes;
        let mut index_columns: BTreeMap<_, Vec<IndexColumn>> = BTreeMap::new();
        self.scan(database, (55, "sysiscols"), |row| {
            let status = row.number("status");
            if status & 2 != 0 {
                index_columns.entry((row.int("idmajor"), row.int("idminor"))).or_default().push(IndexColumn {
                    position: row.number("subid") as u32,
                    column_id: row.number("intprop") as u32,
                    descending: status & 4 != 0,
                    included: status & 0x10 != 0,
                });
            }
        });
        for columns in index_columns.values_mut() {
            columns.sort_by_key(|column| column.position);
            columns.shrink_to_fit();
        }
        database.index_columns = index_columns;
    }

    /// Reads the default values of columns that were added to a table that had rows (2012 and later;
    /// docs/format/catalog.md#added-column-defaults).
    fn load_defaults(&self, database: &mut Database) {
        const CLASS_DEFAULT: u64 = 1;
        if !database.columns.contains_key(&SYSSEOBJVALUES) {
            return;
        }
        let mut defaults = Vec::new();
        self.scan(database, (SYSSEOBJVALUES, "sysseobjvalues"), |row| {
            if let (CLASS_DEFAULT, Some(value)) = (row.number("valclass"), row.bytes("value")) {
                defaults.push((row.number("id"), row.number("subid") as u32, value.to_vec()));
            }
        });
        for (rowset_id, physical, value) in defaults {
            let at = database.rowsets.binary_search_by_key(&rowset_id, |rowset| rowset.id);
            let columns = at.ok().and_then(|at| database.rowsets.get_mut(at)).map(|rowset| &mut rowset.layout.columns);
            let column = columns.and_then(|columns| columns.iter_mut().find(|column| column.physical == physical));
            if let Some(column) = column.filter(|column| column.status & column_status::HAS_DEFAULT != 0) {
                column.default = default_of(&value, column.info);
            }
        }
    }

    fn load_expressions(&self, database: &mut Database) {
        let mut expressions = Vec::new();
        let is_check = |object: &&Object| object.type_code == "C";
        let checks: BTreeSet<i32> = database.objects.values().filter(is_check).map(|object| object.id).collect();
        self.scan(database, (60, "sysobjvalues"), |row| {
            let kind = match row.number("valclass") {
                1 if checks.contains(&row.int("objid")) => ExpressionKind::Check,
                2 => ExpressionKind::ComputedColumn,
                66 => ExpressionKind::Filter,
                _ => return,
            };
            // The int in the sql_variant `value` gives the encoding: 2 for one byte per character, 1 for UTF-16
            // (docs/format/expressions.md#encoding).
            let encoding = row.bytes("value").and_then(|bytes| bytes.get(2).copied());
            let text = row.bytes("imageval").and_then(|bytes| match encoding {
                Some(1) => Some(utf16(bytes)),
                Some(2) => Some(bytes.iter().map(|&byte| char::from(byte)).collect()),
                _ => None,
            });
            expressions.push(Expression { kind, object_id: row.int("objid"), sub_id: row.int("subobjid"), text });
        });
        expressions.sort_by_key(|expression| (expression.object_id, expression.kind, expression.sub_id));
        database.expressions = expressions;
    }

    fn load_files(&self, database: &mut Database) {
        let mut filegroups = Vec::new();
        // Base table 23 has existed since SQL Server 2008. SQL Server 2005 stores files and filegroups in other tables.
        if self.has(database, 23) {
            self.scan(database, (23, "sysphfg"), |row| {
                filegroups.push(Filegroup { id: row.number("fgid") as u16, name: row.text("name") });
            });
        }
        let mut files = Vec::new();
        if self.has(database, 24) {
            self.scan(database, (24, "sysprufiles"), |row| {
                files.push(FileRow {
                    file_id: row.number("fileid") as u16,
                    filegroup: row.number("grpid") as u16,
                    file_type: row.number("filetype") as u8,
                    state: row.number("filestate") as u8,
                    logical_name: row.text("lname"),
                    physical_name: row.text("pname"),
                });
            });
        }
        if files.is_empty() {
            // SQL Server 2005 lists the files of the database in this table. Status bit 0x40 marks a log file.
            const IS_LOG: u64 = 0x40;
            self.scan(database, (8, "sysfiles1"), |row| {
                files.push(FileRow {
                    file_id: row.number("fileid") as u16,
                    filegroup: 0,
                    file_type: u8::from(row.number("status") & IS_LOG != 0),
                    state: 0,
                    logical_name: row.text("name").trim_end().to_owned(),
                    physical_name: row.text("filename").trim_end().to_owned(),
                });
            });
        }
        filegroups.sort_by_key(|group| group.id);
        files.sort_by_key(|file| file.file_id);
        database.filegroups = filegroups;
        database.files = files;
    }
}

/// The value in a sql_variant; `None` unless its bytes are exactly those of a column of type `info`.
fn default_of(variant: &[u8], info: TypeInfo) -> Option<Box<[u8]>> {
    let value = variant_value(variant)?;
    let scale_at = match info.xtype {
        xtype::DECIMAL | xtype::NUMERIC => Some(3),
        xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET => Some(2),
        _ => None,
    };
    let length = match info.xtype {
        xtype::CHAR | xtype::NCHAR | xtype::BINARY => Some(info.length),
        _ => fixed_length(info),
    };
    // None of these types can be the base type of a sql_variant (docs/format/types-and-keys.md#sql_variant).
    const NEVER: [u8; 6] = [xtype::XML, xtype::TEXT, xtype::NTEXT, xtype::IMAGE, xtype::SQL_VARIANT, xtype::TIMESTAMP];
    let is_one = variant.first() == Some(&info.xtype)
        && !NEVER.contains(&info.xtype)
        && scale_at.is_none_or(|at| variant.get(at) == Some(&info.scale))
        && length.is_none_or(|length| value.len() == usize::from(length));
    is_one.then(|| Box::from(value))
}

/// The value in a sql_variant. The base type, the version and the properties of the type come before the value
/// (docs/format/types-and-keys.md#sql_variant).
pub(crate) fn variant_value(bytes: &[u8]) -> Option<&[u8]> {
    let properties = match *bytes.first()? {
        xtype::DECIMAL | xtype::NUMERIC | xtype::BINARY | xtype::VARBINARY => 2,
        xtype::CHAR | xtype::VARCHAR | xtype::NCHAR | xtype::NVARCHAR => 6,
        xtype::TIME | xtype::DATETIME2 | xtype::DATETIMEOFFSET => 1,
        _ => 0,
    };
    bytes.get(2 + properties..)
}

/// Marks the descending columns in databases of SQL Server 2005. It is unknown which bit of syshobtcolumns marks
/// descending columns (docs/format/README.md#open-questions). Instead, sysiscols shows which columns are descending. In
/// a nonclustered index, the columns of the clustering key that are used as the locator are marked too.
fn mark_descending_2005(database: &mut Database) {
    let descending = |object: i32, index: i32, position: u32| {
        database
            .index_columns
            .get(&(object, index))
            .and_then(|columns| columns.iter().find(|column| column.position == position))
            .is_some_and(|column| column.descending)
    };
    let by_column = |object: i32, column_id: u32| {
        database
            .index_columns
            .get(&(object, 1))
            .and_then(|columns| columns.iter().find(|column| column.column_id == column_id))
            .is_some_and(|column| column.descending)
    };
    let mut marks = Vec::new();
    for (at, rowset) in database.rowsets.iter().enumerate() {
        let own = database.index_columns.get(&(rowset.object_id, rowset.index_id)).map_or(0, Vec::len) as u32;
        for (position, column) in rowset.layout.columns.iter().enumerate() {
            let is_descending = match rowset.index_id {
                1 => by_column(rowset.object_id, column.id),
                _ if column.id <= own => descending(rowset.object_id, rowset.index_id, column.id),
                _ => false,
            };
            if is_descending {
                marks.push((at, position));
            }
        }
    }
    for (rowset, column) in marks {
        if let Some(column) = database.rowsets.get_mut(rowset).and_then(|rowset| rowset.layout.columns.get_mut(column))
        {
            column.status |= column_status::DESCENDING;
        }
    }
}
