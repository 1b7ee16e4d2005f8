//! Names what a report is about: the database, its files and its rowsets.

use std::collections::BTreeSet;

use catalog::{Database, Rowset};
use source::PageSource;
use source::backup::BackupPages;

use crate::report::{BackupSummary, DatabaseSummary, FileSummary, RowsetCounts};

/// The name that messages print for a database. If the boot page cannot be read, the name is derived from the name of
/// the file.
pub fn database_name(source: &dyn PageSource, database: &Database) -> String {
    let by_file = || Some(source.files().first()?.path.file_stem()?.to_string_lossy().into_owned());
    let own = database.boot.as_ref().map(|boot| boot.name.clone()).filter(|name| !name.is_empty());
    own.or_else(by_file).unwrap_or_default()
}

/// Describes the database that a report is about.
pub fn summary(source: &dyn PageSource, database: &Database) -> DatabaseSummary {
    let files = source.files();
    let boot = database.boot.as_ref();
    let label = source.backup().map(BackupPages::set);
    DatabaseSummary {
        name: database_name(source, database),
        id: boot.map_or(0, |boot| boot.database_id),
        version: boot.map(|boot| boot.version).or(label.and_then(|label| label.version)).unwrap_or_default(),
        // For a snapshot, it does not matter how its source database was shut down, so the value is `None`.
        clean_shutdown: boot.filter(|_| source.snapshot().is_none()).map(catalog::Boot::clean_shutdown),
        catalog_updated: boot.and_then(|boot| boot.catalog_updated.clone()),
        files: files
            .iter()
            .map(|file| FileSummary {
                path: file.path.clone(),
                file_id: file.file_id,
                logical_name: file.logical_name.clone(),
                pages: file.pages,
            })
            .collect(),
        sets: source.backup().map(|backup| backup.sets().to_vec()).unwrap_or_default(),
        backup: label.map(|label| BackupSummary {
            kind: label.kind.name(),
            set: label.position,
            finished: label.finished.clone(),
        }),
    }
}

/// All rowsets in the catalog with their names but without counts, sorted by object, index and partition.
pub fn listed(database: &Database) -> Vec<RowsetCounts> {
    let in_memory = database.memory_optimized_tables();
    let mut all: Vec<RowsetCounts> =
        database.rowsets.iter().map(|rowset| RowsetCounts::named(database, rowset, &in_memory)).collect();
    all.sort_unstable_by_key(|rowset| (rowset.object_id, rowset.index_id, rowset.partition, rowset.partition_id));
    all
}

impl RowsetCounts {
    /// A rowset of the catalog with its names but without counts. `in_memory` has the IDs of the memory-optimized tables.
    pub fn named(database: &Database, rowset: &Rowset, in_memory: &BTreeSet<i32>) -> Self {
        let object = database.objects.get(&rowset.object_id);
        let index = database.indexes.get(&(rowset.object_id, rowset.index_id));
        Self {
            object_id: rowset.object_id,
            schema: object.map_or_else(|| "dbo".to_owned(), |object| database.schema_name(object).to_owned()),
            name: object.map_or_else(|| format!("object ID {}", rowset.object_id), |object| object.name.clone()),
            type_code: object.map(|object| object.type_code.clone()).unwrap_or_default(),
            index_id: rowset.index_id,
            index_name: index.map(|index| index.name.clone()).unwrap_or_default(),
            partition: rowset.partition,
            partition_id: rowset.id,
            memory_optimized: in_memory.contains(&rowset.object_id),
            ..Self::default()
        }
    }
}
