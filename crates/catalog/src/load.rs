//! From the boot page to the whole [`Database`], in the order in which each table makes the next one readable.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use format::bytes::utf16;
use format::collation::CollationId;
use format::compressed::Expansion;
use format::types::{TypeInfo, datetime_text, fixed_length, xtype};
use format::{AllocUnitId, Page, PageId, PageType};
use source::PageSource;

use crate::bootstrap;
use crate::chain::{self, Fetched};
use crate::database::{
    AllocUnit, Boot, Database, Expression, ExpressionKind, FileRow, Filegroup, Gap, Index, IndexColumn, IndexType,
    Object, Rowset, TableColumn, UnitKind,
};
use crate::layout::{RowsetColumn, column_status};
use crate::rows::{Place, Row, Start, row};
use crate::{constraints, encryption, partitions, whole};

const SYSROWSETCOLUMNS_2005: i32 = 4;
const SYSRSCOLS: i32 = 3;
const SYSROWSETS: i32 = 5;
const SYSALLOCUNITS: i32 = 7;
const SYSHOBTCOLUMNS_2005: i32 = 13;
/// Columns of a table at most, sparse ones included.
const MAX_COLUMNS: usize = 32_000;
const SYSCOLPARS: i32 = 41;
const SYSSEOBJVALUES: i32 = 9;

/// Reads the catalogue as far as it can be read. Never fails: what is missing is in [`Database::gaps`], and
/// [`Database::boot`] is `None` when there was nothing to start from.
pub fn load(source: &dyn PageSource) -> Database {
    let is_encrypted = encryption::is_encrypted(source);
    let mut database = Database { boot: read_boot(source), is_encrypted, ..Database::default() };
    if is_encrypted {
        return database;
    }
    let Some(boot) = &database.boot else { return database };
    let is_2005 = boot.version < 655;
    let first = boot.first_sysallocunits;
    load_units(source, &mut database, first);
    load_rowsets(source, &mut database, is_2005);
    if is_2005 {
        load_layouts_2005(source, &mut database)
    } else {
        load_layouts(source, &mut database)
    }
    Loader { source }.load_named_tables(&mut database, is_2005);
    database
}

fn read_boot(source: &dyn PageSource) -> Option<Boot> {
    let Fetched::Sound(bytes) = chain::fetch(source, PageId::BOOT) else { return None };
    let page = Page::new(&bytes);
    if page.header().kind() != Some(PageType::Boot) {
        return None;
    }
    let boot = format::boot::Boot::read(page)?;
    let text = |(ticks, days)| datetime_text(ticks, days);
    Some(Boot {
        name: boot.name(),
        version: boot.version(),
        create_version: boot.create_version(),
        status: boot.status(),
        database_id: boot.database_id(),
        compatibility_level: boot.compatibility_level(),
        checkpoint_lsn: boot.checkpoint_lsn(),
        collation: boot.collation(),
        created: text(boot.created()),
        modified: text(boot.modified()),
        last_known_good: text(boot.last_known_good()),
        data_purity: boot.dbcc_flags() & 2 != 0,
        engine_build: boot.engine_build(),
        first_sysallocunits: boot.first_sysallocunits(),
    })
}

/// Unit and rowset id of the clustered indexes whose ids are fixed.
fn fixed_id(object_id: i32) -> u64 {
    (object_id as u64) << 16
}

fn load_units(source: &dyn PageSource, database: &mut Database, first: PageId) {
    let mut units = Vec::new();
    let mut unreadable = 0;
    let unit = AllocUnitId(fixed_id(SYSALLOCUNITS));
    let place = Some(Place { unit, start: Start::FirstPage(first), expansion: None });
    let table = (SYSALLOCUNITS, "sysallocunits");
    bootstrap::table(source, &mut database.gaps, table, place, |record| match bootstrap::alloc_unit(&record) {
        Some(unit) => units.push(unit),
        None => unreadable += 1,
    });
    note_unreadable(database, table, unreadable);
    units.sort_by_key(|unit| unit.id);
    units.dedup_by_key(|unit| unit.id);
    units.shrink_to_fit();
    database.units = units;
}

/// Rows too short for the columns every version has.
fn note_unreadable(database: &mut Database, (object_id, table): (i32, &'static str), unreadable: u32) {
    if unreadable > 0 {
        match database.gaps.iter_mut().find(|gap| gap.object_id == object_id) {
            Some(gap) => gap.bad_records += unreadable,
            None => database.gaps.push(Gap { object_id, table, fault: None, bad_records: unreadable, missing_rows: 0 }),
        }
    }
}

/// Fewer rows than the catalogue counts: perhaps of a chain that was cut short, which would pass for the whole table. Tree
/// and IAM chain tell; the count alone proves nothing, as upgraded databases have stale ones
/// (docs/format/README.md#page-counts).
fn note_missing_rows(
    source: &dyn PageSource,
    database: &mut Database,
    (object_id, table): (i32, &'static str),
    found: usize,
) {
    let at = database.rowsets.binary_search_by_key(&fixed_id(object_id), |rowset| rowset.id);
    let counted = at.ok().and_then(|at| database.rowsets.get(at)).map_or(0, |rowset| rowset.rows);
    let missing_rows = u64::try_from(counted).unwrap_or_default().saturating_sub(found as u64);
    if missing_rows == 0 || database.gap(object_id).is_some() {
        return;
    }
    let is_its = |unit: &&AllocUnit| unit.owner_id == fixed_id(object_id) && unit.kind == UnitKind::InRow;
    let unit = database.units.iter().find(is_its);
    let is_whole = unit.is_some_and(|unit| {
        let first = chain::start(source, unit.id, unit.root, unit.first_page);
        first.is_ok_and(|first| whole::is_whole(source, unit, first))
    });
    if !is_whole {
        database.gaps.push(Gap { object_id, table, fault: None, bad_records: 0, missing_rows });
    }
}

/// Where a rowset's rows start: its in-row unit and root.
fn place_of<'a>(database: &Database, rowset_id: u64) -> Option<Place<'a>> {
    let unit = database.units.iter().find(|unit| unit.owner_id == rowset_id && unit.kind == UnitKind::InRow)?;
    let start = Start::Root { root: unit.root, first: unit.first_page };
    Some(Place { unit: unit.id, start, expansion: None })
}

/// The same for a rowset that may be compressed. The form of compressed non-leaf entries is not published: unless the
/// root is the only leaf, the walk starts at the catalogue's first page.
pub(crate) fn place_of_rowset<'a>(
    database: &Database,
    rowset: &Rowset,
    expansion: Option<&'a Expansion>,
) -> Option<Place<'a>> {
    let place = place_of(database, rowset.id)?;
    let unit = database.units.iter().find(|unit| unit.id == place.unit)?;
    Some(match rowset.is_row_compressed() && !unit.root.is_none() && unit.root != unit.first_page {
        true => Place { start: Start::Leftmost(unit.first_page), expansion, ..place },
        false => Place { expansion, ..place },
    })
}

fn load_rowsets(source: &dyn PageSource, database: &mut Database, is_2005: bool) {
    let place = place_of(database, fixed_id(SYSROWSETS));
    let mut rowsets: Vec<Rowset> = Vec::new();
    let mut unreadable = 0;
    let table = (SYSROWSETS, "sysrowsets");
    bootstrap::table(source, &mut database.gaps, table, place, |record| match bootstrap::rowset(&record, is_2005) {
        Some(rowset) => rowsets.push(rowset),
        None => unreadable += 1,
    });
    note_unreadable(database, table, unreadable);
    rowsets.sort_by_key(|rowset| rowset.id);
    rowsets.dedup_by_key(|rowset| rowset.id);
    rowsets.shrink_to_fit();
    for (at, unit) in database.units.iter_mut().enumerate() {
        unit.rowset = rowsets.binary_search_by_key(&unit.owner_id, |rowset| rowset.id).ok();
        if let Some(rowset) = unit.rowset.and_then(|rowset| rowsets.get_mut(rowset)) {
            // Most have one: a list grows by four at least.
            rowset.units.reserve_exact(1);
            rowset.units.push(at);
        }
    }
    let (units, found) = (database.units.len(), rowsets.len());
    database.rowsets = rowsets;
    note_missing_rows(source, database, table, found);
    note_missing_rows(source, database, (SYSALLOCUNITS, "sysallocunits"), units);
}

fn load_layouts(source: &dyn PageSource, database: &mut Database) {
    let place = place_of(database, fixed_id(SYSRSCOLS));
    let mut columns = Distributor::default();
    let mut unreadable = 0;
    let table = (SYSRSCOLS, "sysrscols");
    bootstrap::table(source, &mut database.gaps, table, place, |record| match bootstrap::rowset_column(&record) {
        Some(column) => columns.add(&mut database.rowsets, column),
        None => unreadable += 1,
    });
    note_unreadable(database, table, unreadable);
    columns.hand_over(&mut database.rowsets);
    note_missing_rows(source, database, table, columns.found);
    settle(database);
}

fn load_layouts_2005(source: &dyn PageSource, database: &mut Database) {
    let mut columns = Distributor::default();
    let place = place_of(database, fixed_id(SYSHOBTCOLUMNS_2005));
    let table = (SYSHOBTCOLUMNS_2005, "syshobtcolumns");
    bootstrap::table(source, &mut database.gaps, table, place, |record| {
        let column = bootstrap::hobt_column_2005(&record);
        column.into_iter().for_each(|column| columns.add(&mut database.rowsets, column));
    });
    columns.hand_over(&mut database.rowsets);
    settle(database);
    let place = place_of(database, fixed_id(SYSROWSETCOLUMNS_2005));
    let table = (SYSROWSETCOLUMNS_2005, "sysrowsetcolumns");
    bootstrap::table(source, &mut database.gaps, table, place, |record| {
        let Some(((rowset_id, physical), id)) = bootstrap::rowset_column_2005(&record) else { return };
        let rowset = database.rowsets.binary_search_by_key(&rowset_id, |rowset| rowset.id);
        let Some(rowset) = rowset.ok().and_then(|at| database.rowsets.get_mut(at)) else { return };
        let columns = &mut rowset.layout.columns;
        let first = columns.partition_point(|column| column.physical < physical);
        let of_place = columns.iter_mut().skip(first).take_while(|column| column.physical == physical);
        of_place.for_each(|column| bootstrap::name_column_2005(column, id));
    });
}

/// Gives each rowset its columns as they are read, so that no list of all of them is made. Those of a rowset follow each
/// other.
#[derive(Default)]
struct Distributor {
    rowset_id: u64,
    /// Columns of that rowset.
    columns: Vec<RowsetColumn>,
    /// Columns so far, of whichever rowset.
    found: usize,
}

impl Distributor {
    fn add(&mut self, rowsets: &mut [Rowset], (rowset_id, column): (u64, RowsetColumn)) {
        if rowset_id != self.rowset_id {
            self.hand_over(rowsets);
            self.rowset_id = rowset_id;
        }
        self.columns.push(column);
        self.found += 1;
    }

    fn hand_over(&mut self, rowsets: &mut [Rowset]) {
        let at = rowsets.binary_search_by_key(&self.rowset_id, |rowset| rowset.id);
        if let Some(rowset) = at.ok().and_then(|at| rowsets.get_mut(at)) {
            rowset.layout.columns.reserve_exact(self.columns.len());
            rowset.layout.columns.append(&mut self.columns);
        }
        self.columns.clear();
    }
}

/// Brings the columns of each rowset into physical order, and makes whole what the rows about them leave out.
fn settle(database: &mut Database) {
    let default_collation = CollationId(database.boot.as_ref().map_or(0, |boot| boot.collation));
    for rowset in &mut database.rowsets {
        rowset.layout.columns.sort_by_key(|column| column.physical);
        // No table has more columns; what has is a damaged catalogue.
        rowset.layout.columns.truncate(MAX_COLUMNS);
        for column in &mut rowset.layout.columns {
            let is_text = matches!(column.info.xtype, xtype::CHAR | xtype::VARCHAR | xtype::NCHAR | xtype::NVARCHAR);
            if is_text && column.collation == CollationId(0) {
                column.collation = default_collation;
            }
        }
        if rowset.is_row_compressed() {
            rowset.expansion = rowset.layout.expand();
        }
    }
}

/// The columns of syscolpars that make the names of all others readable, and those that are read with them, by column id.
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

/// Ids and names of the columns of a base table.
fn names_of(database: &Database, object_id: i32) -> Vec<(u32, &str)> {
    if object_id == SYSCOLPARS {
        return SYSCOLPARS_COLUMNS.to_vec();
    }
    let columns = database.columns.get(&object_id).into_iter().flatten();
    columns.map(|column| (column.id, column.name.as_str())).collect()
}

/// Reads tables whose columns are found by name.
pub(crate) struct Loader<'a> {
    source: &'a dyn PageSource,
}

impl Loader<'_> {
    fn load_named_tables(self, database: &mut Database, is_2005: bool) {
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
        let columns: HashMap<String, RowsetColumn> = rowset
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
        let rowset = rowset.filter(|_| !columns.is_empty());
        let expansion = rowset.and_then(|rowset| rowset.expansion.clone());
        let readable = rowset.filter(|rowset| expansion.is_some() || !rowset.is_row_compressed());
        let place = readable.and_then(|rowset| place_of_rowset(database, rowset, expansion.as_ref()));
        bootstrap::table(self.source, &mut database.gaps, (object_id, table), place, |record| {
            visit(row(record, &columns));
        });
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
            // Only class 1 rows name objects of schemas; others share the id space of their own class.
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

    /// Defaults of columns that were added to rows already written (2012 and later;
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
            // The sql_variant int in `value` names the encoding: 2 one byte a character, 1 UTF-16
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
        // Since 2008; 2005 keeps files and filegroups in tables of its own.
        if database.columns.contains_key(&23) {
            self.scan(database, (23, "sysphfg"), |row| {
                filegroups.push(Filegroup { id: row.number("fgid") as u16, name: row.text("name") });
            });
        }
        let mut files = Vec::new();
        if database.columns.contains_key(&24) {
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
            // 2005 lists its files here; status 0x40 marks a log.
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

/// The value in a sql_variant, if its bytes are just those that a column of type `info` would have.
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
    let is_one = variant.first() == Some(&info.xtype)
        && scale_at.is_none_or(|at| variant.get(at) == Some(&info.scale))
        && length.is_none_or(|length| value.len() == usize::from(length));
    is_one.then(|| Box::from(value))
}

/// The value in a sql_variant: behind base type, version and the properties of the type
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

/// In 2005 the descending bit of syshobtcolumns is not known (docs/format/README.md#open-questions): sysiscols tells
/// it, for the index's own columns and for the clustering key that a nonclustered index takes over as its locator.
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
