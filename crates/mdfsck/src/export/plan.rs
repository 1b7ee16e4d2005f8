//! Decides to which file each table is written. Refuses invalid requests before any file is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ::export::{Destination, partial, stems};
use ::rows::{NoRows, Table};
use catalog::{Database, UnitKind};
use jobs::carve;
use jobs::failure::Failure;
use jobs::scope;
use source::PageSource;

use crate::cli::{ExportArguments, ExportFormat};
use crate::output::{refuse_database_files, refuse_sql_server_file, unwritable};

/// The folder for procedures, functions, views and triggers.
const DEFINITIONS: &str = "definitions";

/// The files that an export will write.
pub(super) struct Plan {
    /// The tables, in the order in which they are exported.
    pub(super) tables: Vec<Planned>,
    /// The folder for definitions of modules.
    pub(super) definitions: PathBuf,
    /// The script that adds foreign keys, if the format is SQL.
    pub(super) foreign_keys: Option<PathBuf>,
    /// Whether the export writes files of salvaged rows.
    salvages: bool,
    /// Whether existing files are replaced.
    pub(super) replaces: bool,
}

/// A table and the file for its rows.
pub(super) struct Planned {
    pub(super) object_id: i32,
    pub(super) name: String,
    /// `Ok` if the table has a file, otherwise the reason why it has none.
    pub(super) has_rows: Result<(), NoRows>,
    pub(super) destination: Destination,
}

impl Plan {
    /// Plans the files and creates the folder.
    ///
    /// # Errors
    /// A table that does not exist; a file that exists or belongs to the database; a folder that cannot be written.
    pub(super) fn new(
        arguments: &ExportArguments,
        pages: &dyn PageSource,
        database: &Database,
    ) -> Result<Self, Failure> {
        let all = objects(database);
        let wanted = match arguments.table.as_slice() {
            [] => {
                let system = all.iter().filter(|_| arguments.system).copied();
                let mut seen = BTreeSet::new();
                Table::list(database).into_iter().chain(system).filter(|id| seen.insert(*id)).collect()
            }
            names => {
                let mut ids = Vec::new();
                for name in names {
                    let id = scope::table(database, name).map_err(|failure| scope::nearest(failure, database, name))?;
                    if !ids.contains(&id) {
                        ids.push(id);
                    }
                }
                ids
            }
        };
        // File names are assigned to all objects and not only to the exported tables, so that a table gets the same
        // file name in every run.
        let named: Vec<i32> =
            all.iter().copied().chain(wanted.iter().copied()).collect::<BTreeSet<_>>().into_iter().collect();
        let stems = stems(database, &named);
        let is_asked = !arguments.table.is_empty();
        let planned = |id: &i32| planned(*id, database, &stems, arguments);
        let mut tables: Vec<Planned> = wanted.iter().map(planned).collect();
        // Drops system objects without rows, unless the user named them.
        tables.retain(|planned| is_asked || planned.has_rows != Err(NoRows::NoTable));
        let folder = &arguments.output;
        let plan = Self {
            tables,
            definitions: folder.join(DEFINITIONS),
            salvages: arguments.damaged,
            foreign_keys: (arguments.format == ExportFormat::Sql).then(|| folder.join("foreign-keys.sql")),
            replaces: arguments.force,
        };
        plan.refuse(pages)?;
        fs::create_dir_all(folder).map_err(|cause| unwritable(folder, &cause))?;
        Ok(plan)
    }

    /// The number of data pages of the tables, from the counts in the catalog.
    pub(super) fn pages(&self, database: &Database) -> u64 {
        let tables = self.tables.iter().filter(|planned| planned.has_rows.is_ok());
        let rowsets = tables.flat_map(|table| database.table_rowsets(table.object_id));
        let units = rowsets.flat_map(|rowset| &rowset.units).filter_map(|at| database.units.get(*at));
        let in_row = units.filter(|unit| unit.kind == UnitKind::InRow);
        in_row.fold(0, |sum, unit| sum.saturating_add_signed(unit.data_pages.max(0)))
    }

    /// Refuses files that must not be overwritten.
    fn refuse(&self, pages: &dyn PageSource) -> Result<(), Failure> {
        let inputs = carve::inputs(pages);
        let files = self.tables.iter().filter(|planned| planned.has_rows.is_ok());
        let own = |to: &Destination| [to.rows.clone(), to.unreadable.clone()];
        let files = files.flat_map(|planned| {
            let beside = super::salvage::files(&planned.destination);
            let beside = [own(&beside.doubtful), own(&beside.rebuilt)].into_iter().flatten();
            own(&planned.destination).into_iter().chain(beside.filter(|_| self.salvages))
        });
        for path in files.chain(self.foreign_keys.clone()) {
            let path = &path;
            for path in [path.clone(), partial(path)] {
                refuse_database_files("--output", &path, &inputs)?;
                refuse_sql_server_file(&path)?;
            }
            self.refuse_existing(path)?;
        }
        Ok(())
    }

    /// Refuses an existing file, unless existing files may be replaced. Always refuses a path that exists and is not a
    /// file.
    pub(super) fn refuse_existing(&self, path: &Path) -> Result<(), Failure> {
        match fs::symlink_metadata(path) {
            Ok(found) if self.replaces && found.is_file() => Ok(()),
            Ok(_) if self.replaces => {
                Err(Failure::usage(format!("{}: is not a regular file and will not be replaced", path.display())))
            }
            Ok(_) => {
                let text = format!("{}: exists; --force replaces it, or give another folder", path.display());
                Err(Failure::usage(text))
            }
            Err(_) => Ok(()),
        }
    }
}

/// IDs of all objects with rows, sorted by schema and name.
fn objects(database: &Database) -> Vec<i32> {
    let ids: BTreeSet<i32> = database.rowsets.iter().map(|rowset| rowset.object_id).collect();
    let mut ids: Vec<i32> = ids.into_iter().filter(|id| database.objects.contains_key(id)).collect();
    let name = |id: &i32| {
        let object = database.objects.get(id);
        object.map(|object| (database.schema_name(object).to_owned(), object.name.clone()))
    };
    ids.sort_by_key(name);
    ids
}

fn planned(id: i32, database: &Database, stems: &BTreeMap<i32, String>, arguments: &ExportArguments) -> Planned {
    let stem = stems.get(&id).cloned().unwrap_or_else(|| format!("object.{id}"));
    let end = match arguments.format {
        ExportFormat::Csv => "csv",
        ExportFormat::Jsonl => "jsonl",
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => "parquet",
        ExportFormat::Sql => "sql",
    };
    let object = database.objects.get(&id);
    let name = object.map(|object| format!("{}.{}", database.schema_name(object), object.name));
    Planned {
        object_id: id,
        name: name.unwrap_or_else(|| format!("object {id}")),
        has_rows: Table::of(database, id).map(|_| ()),
        destination: Destination {
            rows: arguments.output.join(format!("{stem}.{end}")),
            unreadable: arguments.output.join(format!("{stem}.unreadable.csv")),
            replaces: arguments.force,
        },
    }
}
