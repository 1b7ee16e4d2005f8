//! Writes the files of a database from its description.

use std::path::{Path, PathBuf};

use crate::build::{BuiltRowset, Ids, TableBuilder};
use crate::catalogue::{Catalogue, FileEntry, TableIds};
use crate::description::Description;
use crate::disk::{Disk, LabError, file_id};
use crate::fixed::{self, Boot};
use crate::ids::GAM_INTERVAL;
use crate::page::Lsn;
use crate::space::{ALLOCATED, IAM_PAGE, MIXED, Space};

/// The most pages of a file: 1,000 GAM intervals.
pub const MOST_FILE_PAGES: u32 = GAM_INTERVAL * 1000;

/// The files and tables of a written database.
#[derive(Clone, Debug)]
pub struct Written {
    /// The data files; the primary file is first.
    pub files: Vec<PathBuf>,
    /// The number of pages of each file.
    pub pages: Vec<u32>,
    /// The table names, each with the number of rows, not counting ghosts.
    pub tables: Vec<(String, u64)>,
}

/// Writes the database into a folder. The files must not exist yet.
pub fn write(description: &Description, folder: &Path) -> Result<Written, LabError> {
    Ok(write_tables(description, folder, &folder.display().to_string(), 1)?.written)
}

/// Refuses a file with too many pages.
fn refuse_long(files: &[PathBuf], pages: &[u32]) -> Result<(), LabError> {
    let long = files.iter().zip(pages).find(|(_, pages)| **pages > MOST_FILE_PAGES);
    long.map_or(Ok(()), |(file, _)| {
        Err(LabError::Description(format!(
            "{} would have more than {MOST_FILE_PAGES} pages (3,900 GB); spread the tables over more files",
            file.display()
        )))
    })
}

/// A written database with what its tables consist of.
pub(crate) struct WrittenTables {
    pub written: Written,
    /// The rowsets of each table, in the order of the tables.
    pub built: Vec<Vec<BuiltRowset>>,
    /// The object IDs of each table.
    pub objects: Vec<TableIds>,
    /// The rowsets of the base tables.
    pub system: Vec<BuiltRowset>,
    /// The sequences of IDs, for tables that are made later.
    pub ids: Ids,
}

/// Like [`write`], but the catalog names the folder `listed` as the place of the files, and describes `log_files` log
/// files.
pub(crate) fn write_tables(
    description: &Description,
    folder: &Path,
    listed: &str,
    log_files: u16,
) -> Result<WrittenTables, LabError> {
    description.check().map_err(LabError::Description)?;
    let groups: Vec<u16> = description
        .filegroups
        .iter()
        .enumerate()
        .flat_map(|(number, group)| (0..group.files).map(move |_| number as u16 + 1))
        .collect();
    if groups.first() != Some(&1) {
        return Err(LabError::Description("the primary filegroup needs a file".to_owned()));
    }
    let names: Vec<String> = (0..groups.len()).map(|index| logical_name(description, index)).collect();
    let files: Vec<PathBuf> = names
        .iter()
        .enumerate()
        .map(|(index, name)| folder.join(format!("{name}.{}", if index == 0 { "mdf" } else { "ndf" })))
        .collect();
    let disk = Disk::create(&files, description.verify)?;
    let mut space = Space::new(disk, &groups, (reserved_extents(description), description.least_pages))?;
    space.take_fixed(9, ALLOCATED | MIXED | 4)?;
    space.take_fixed(12, ALLOCATED | MIXED | IAM_PAGE | 4)?;
    space.take_fixed(32, ALLOCATED | MIXED | 1)?;

    let mut catalogue = Catalogue::new(description);
    let mut ids = Ids::new();
    let (mut tables, mut objects, mut built, mut table_ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, table) in description.tables.iter().enumerate() {
        let object = ids.object(|id| catalogue.is_taken(id));
        let has_key = table.clustered.iter().chain(&table.indexes).any(|index| index.primary_key);
        let key = has_key.then(|| ids.object(|id| catalogue.is_taken(id)));
        let defaults =
            table.columns.iter().map(|column| column.default.map(|_| ids.object(|id| catalogue.is_taken(id))));
        let defaults = defaults.collect();
        let rowsets = TableBuilder::new(description, number, object)?.build(&mut space, &mut ids)?;
        let of_table = TableIds { object, key, defaults };
        catalogue.describe_table(table, &of_table, &rowsets);
        table_ids.push(of_table);
        objects.push(object);
        let rows = rowsets.iter().filter(|rowset| rowset.index < 2).map(|rowset| rowset.rows).sum();
        tables.push((table.name.clone(), rows));
        rowsets.iter().for_each(|rowset| catalogue.describe_rowset(rowset));
        built.push(rowsets);
    }
    for table in 0..description.tables.len() {
        catalogue.describe_constraints(table, &objects, &mut ids);
        if let Some(&object) = objects.get(table) {
            catalogue.describe_statistics(table, object);
        }
    }
    // The length of the files is already known here, although the system tables are written later: their pages are at
    // the start of file 1, where extents are reserved for them.
    let pages = space.sizes(description.least_pages);
    let entries: Vec<FileEntry> = (0..groups.len())
        .map(|index| FileEntry {
            id: file_id(index),
            group: groups[index],
            name: names[index].clone(),
            path: Path::new(listed).join(files[index].file_name().unwrap_or_default()).display().to_string(),
            pages: pages[index],
            growth: fixed::growth(description.version),
            guid: fixed::file_guid(description.seed, index),
        })
        .collect();
    catalogue.describe_files(&entries, log_files);
    let (first_units, system) = catalogue.write(&mut space, &mut ids)?;
    let pages = space.sizes(description.least_pages);
    refuse_long(&files, &pages)?;
    for (index, &group) in groups.iter().enumerate() {
        fixed::write_header(&mut space.disk, description, (index, group), &names[index], pages[index])?;
    }
    space.write_maps(&pages)?;
    let last = space.disk.next_lsn();
    let boot = Boot {
        first_units,
        checkpoint: Lsn(last.0 + 1, 16, 1),
        next_unit: ids.unit_sequence(),
        last_object: ids.last_object(),
    };
    fixed::write_boot(&mut space.disk, description, &boot)?;
    space.disk.finish(&pages)?;
    let written = Written { files, pages, tables };
    Ok(WrittenTables { written, built, objects: table_ids, system, ids })
}

fn logical_name(description: &Description, index: usize) -> String {
    if index == 0 { description.name.clone() } else { format!("{}_{}", description.name, index + 1) }
}

/// Returns the number of extents to reserve for the base tables at the start of file 1. This is the number for a new
/// database, and one more extent for every forty columns of the tables. If there are very many columns, fewer extents
/// per column are enough, because most pages are then full.
fn reserved_extents(description: &Description) -> u32 {
    let columns: usize =
        description.tables.iter().map(|table| (table.columns.len() + 8) * (table.indexes.len() + 2)).sum();
    64 + (columns / 40).min(2_000 + columns / 1_000) as u32
}
