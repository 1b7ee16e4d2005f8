//! Writes the system catalog: the rows of the base tables that describe the base tables themselves and the tables of
//! the lab.

mod objects;
mod physical;
mod rows;
mod store;

pub(crate) use objects::TableIds;
pub(crate) use rows::SystemRows;

use std::collections::{BTreeMap, HashMap};

use crate::build::{BuiltRowset, Ids};
use crate::description::Description;
use crate::disk::LabError;
use crate::facts::{self, ObjectFact};
use crate::fixed::{CREATED, growth, log_file_guid, log_file_id, log_suffix};
use crate::ids::PageId;
use crate::space::Space;
use crate::version::Version;

/// Object IDs of the base tables to which the lab adds rows.
pub(crate) mod base {
    #![allow(missing_docs)]
    pub(crate) const SYSRSCOLS: i32 = 3;
    pub(crate) const SYSROWSETCOLUMNS: i32 = 4;
    pub(crate) const SYSROWSETS: i32 = 5;
    pub(crate) const SYSALLOCUNITS: i32 = 7;
    pub(crate) const SYSFILES1: i32 = 8;
    pub(crate) const SYSSEOBJVALUES: i32 = 9;
    pub(crate) const SYSHOBTCOLUMNS: i32 = 13;
    pub(crate) const SYSHOBTS: i32 = 15;
    pub(crate) const SYSDBFILES: i32 = 20;
    pub(crate) const SYSPHFG: i32 = 23;
    pub(crate) const SYSSEREFS: i32 = 26;
    pub(crate) const SYSPRUFILES: i32 = 24;
    pub(crate) const SYSSCHOBJS: i32 = 34;
    pub(crate) const SYSCOLPARS: i32 = 41;
    pub(crate) const SYSIDXSTATS: i32 = 54;
    pub(crate) const SYSISCOLS: i32 = 55;
    pub(crate) const SYSOBJVALUES: i32 = 60;
    pub(crate) const SYSCLSOBJS: i32 = 64;
    pub(crate) const SYSSINGLEOBJREFS: i32 = 74;
    pub(crate) const SYSMULTIOBJREFS: i32 = 75;
    pub(crate) const SYSDBFILES_2005: i32 = 76;
}

/// The value of one column in a new row of a base table.
pub(crate) enum Field<'a> {
    /// A number of any integer type.
    Number(i64),
    /// Text of any string type.
    Text(&'a str),
    /// Bytes that are stored unchanged.
    Bytes(&'a [u8]),
    /// A page pointer.
    Page(PageId),
}

use Field::{Bytes, Number, Text};

/// The catalog under construction.
pub(crate) struct Catalogue<'a> {
    description: &'a Description,
    /// Facts about the base and internal tables, ordered by object ID.
    objects: Vec<ObjectFact>,
    rows: BTreeMap<i32, SystemRows>,
    /// The position of each described table, by its name.
    tables: HashMap<&'a str, usize>,
}

/// A file as the catalog describes it.
pub(crate) struct FileEntry {
    /// File ID.
    pub id: u16,
    /// Filegroup ID.
    pub group: u16,
    /// Logical name.
    pub name: String,
    /// Path of the file.
    pub path: String,
    /// Length in pages.
    pub pages: u32,
    /// Growth in pages.
    pub growth: u32,
    /// The GUID in the file header.
    pub guid: [u8; 16],
}

impl<'a> Catalogue<'a> {
    /// Creates the catalog of a new database for the version in `description`, with the rows that every new database
    /// has.
    pub(crate) fn new(description: &'a Description) -> Self {
        let objects = facts::objects(description.version);
        let tables = description.tables_by_name();
        let mut catalogue = Self { description, objects, rows: BTreeMap::new(), tables };
        for object in catalogue.objects.clone() {
            for row in &object.rows {
                let values = object.columns.iter().enumerate().map(|(at, column)| {
                    store::parse_fact(store::column_type(column), row.get(at).copied().unwrap_or("~"), description)
                });
                catalogue.rows.entry(object.id).or_default().push(values);
            }
            catalogue.describe_base_table(&object);
        }
        catalogue
    }

    /// Creates a catalog that collects only the rows that describe tables of the user. `objects` has the facts about the
    /// base tables of the version in `description`.
    pub(crate) fn of_tables(description: &'a Description, objects: Vec<ObjectFact>) -> Self {
        Self { description, objects, rows: BTreeMap::new(), tables: HashMap::new() }
    }

    /// The rows that were added, by base table.
    pub(crate) fn into_rows(self) -> BTreeMap<i32, SystemRows> {
        self.rows
    }

    /// Whether an object id belongs to a base or internal table.
    pub(crate) fn is_taken(&self, object: i32) -> bool {
        self.fact(object).is_some()
    }

    /// The facts about a base or internal table.
    fn fact(&self, object: i32) -> Option<&ObjectFact> {
        self.objects.get(self.objects.binary_search_by_key(&object, |fact| fact.id).ok()?)
    }

    /// Adds a row to a base table. Does nothing if this version of SQL Server does not have the base table. Columns
    /// that `fields` does not name are NULL, or 0 if they are NOT NULL.
    pub(crate) fn add(&mut self, table: i32, fields: &[(&str, Field)]) {
        let found = self.objects.binary_search_by_key(&table, |fact| fact.id);
        let Some(object) = found.ok().and_then(|at| self.objects.get(at)) else { return };
        let row = object.columns.iter().map(|column| {
            let ty = store::column_type(column);
            match fields.iter().find(|(name, _)| *name == column.name) {
                Some((_, field)) => Some(store::encode(ty, field)),
                None if column.name == "created" || column.name == "modified" => Some(CREATED.to_vec()),
                None if column.status & 1 == 0 => None,
                None => Some(store::zero(ty)),
            }
        });
        self.rows.entry(table).or_default().push(row);
    }

    /// Adds the rows that describe files and filegroups.
    pub(crate) fn describe_files(&mut self, files: &[FileEntry], log_files: u16) {
        for (number, group) in self.description.filegroups.iter().enumerate() {
            let id = number as i64 + 1;
            self.add(
                base::SYSPHFG,
                &[
                    ("dbfragid", Number(1)),
                    ("phfgid", Number(id)),
                    ("fgid", Number(id)),
                    ("type", Text("FG")),
                    ("name", Text(&group.name)),
                ],
            );
            if number > 0 {
                // A filegroup has a row of class 31 and a row of class 5. SQL Server 2005 writes only the row of class
                // 31.
                let classes = [(31, "FG"), (5, "")];
                for &(class, kind) in classes.iter().take(if self.description.version == Version::V611 { 1 } else { 2 })
                {
                    let fields = [
                        ("class", Number(class)),
                        ("id", Number(id)),
                        ("name", Text(&group.name)),
                        ("type", Text(kind)),
                    ];
                    self.add(base::SYSCLSOBJS, &fields);
                }
            }
        }
        let log = |number: u16| {
            let (suffix, primary) = (log_suffix(number), files.first());
            FileEntry {
                id: log_file_id(number, files.len()),
                group: 0,
                name: format!("{}{suffix}", self.description.name),
                path: primary.map(|file| file.path.replace(".mdf", &format!("{suffix}.ldf"))).unwrap_or_default(),
                pages: 96,
                growth: growth(self.description.version),
                guid: log_file_guid(self.description.seed, number),
            }
        };
        let logs: Vec<FileEntry> = (0..log_files).map(log).collect();
        for file in files.iter().chain(&logs) {
            let is_log = file.group == 0;
            // sysprufiles exists since SQL Server 2008. In SQL Server 2005, sysdbfiles contains these columns and
            // others.
            for table in [base::SYSPRUFILES, base::SYSDBFILES_2005] {
                self.add(
                    table,
                    &[
                        ("dbfragid", Number(1)),
                        ("fileid", Number(i64::from(file.id))),
                        ("grpid", Number(i64::from(file.group))),
                        ("status", Number(if is_log { 544 } else { 512 })),
                        ("filetype", Number(i64::from(is_log))),
                        ("size", Number(i64::from(file.pages))),
                        ("maxsize", Number(-1)),
                        ("growth", Number(i64::from(file.growth))),
                        ("fileguid", Bytes(&file.guid)),
                        ("lname", Text(&file.name)),
                        ("pname", Text(&file.path)),
                    ],
                );
            }
            self.add(
                base::SYSDBFILES,
                &[("dbfragid", Number(1)), ("fileid", Number(i64::from(file.id))), ("pname", Text(&file.path))],
            );
            self.add(
                base::SYSFILES1,
                &[
                    ("status", Number(if is_log { 66 } else { 2 })),
                    ("fileid", Number(i64::from(file.id))),
                    ("name", Text(&file.name)),
                    ("filename", Text(&file.path)),
                ],
            );
        }
    }

    /// Adds the rows that describe a written rowset of a table.
    pub(crate) fn describe_rowset(&mut self, rowset: &BuiltRowset) {
        self.describe_columns(rowset);
        self.describe_owners(rowset);
        self.describe_shape(rowset);
        self.describe_units(rowset);
    }

    /// Writes all base tables. Returns the first page of sysallocunits, and the rowsets of all base tables.
    ///
    /// Nearly all rows that describe the base tables are known before the base tables are written. Only page addresses
    /// are unknown; they are stored in sysallocunits, in columns of fixed length. Therefore sysallocunits is written
    /// twice to the same pages: first to find out its own page addresses, then with these addresses.
    pub(crate) fn write(mut self, space: &mut Space, ids: &mut Ids) -> Result<(PageId, Vec<BuiltRowset>), LabError> {
        let mut system = self.plan_rowsets(ids);
        for rowset in &system {
            self.describe_base_index(rowset);
        }
        for rowset in &system {
            self.describe_columns(rowset);
        }
        for rowset in &system {
            self.describe_owners(rowset);
        }
        self.count_rows(&mut system);
        for rowset in system.iter_mut().filter(|rowset| rowset.object != base::SYSALLOCUNITS) {
            self.write_rowset(space, rowset)?;
        }
        let (mut units, rest): (Vec<BuiltRowset>, Vec<BuiltRowset>) =
            system.into_iter().partition(|rowset| rowset.object == base::SYSALLOCUNITS);
        let before = space.position();
        let of_tables = self.row_count(base::SYSALLOCUNITS);
        for turn in 0..2 {
            if turn == 1 {
                space.return_to(&before);
            }
            self.rows.entry(base::SYSALLOCUNITS).or_default().truncate(of_tables);
            for rowset in rest.iter().chain(&units) {
                self.describe_units(rowset);
            }
            for rowset in &mut units {
                self.write_rowset(space, rowset)?;
            }
        }
        let clustered = units.iter().find(|rowset| rowset.index == 1);
        let first = clustered.and_then(|rowset| rowset.units.first()).map_or(PageId::NONE, |(_, unit)| unit.first);
        Ok((first, rest.into_iter().chain(units).collect()))
    }
}
