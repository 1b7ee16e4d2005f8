//! The JSON lines of `mdfsck info` of data files, `mdfsck tables` and `mdfsck lint`.

use serde::Serialize;

use super::lines::Named;

/// A database (`mdfsck info` of data files). Fields that only the boot page provides are null if that page is damaged.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Database<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Name of the database.
    pub(crate) database: Option<&'a str>,
    /// Its internal version.
    pub(crate) db_version: Option<u16>,
    /// The SQL Server release with that internal version.
    pub(crate) product: Option<&'static str>,
    /// The internal version in which it was created.
    pub(crate) create_version: Option<u16>,
    /// The SQL Server release with that internal version.
    pub(crate) created_by: Option<&'static str>,
    /// The build of SQL Server that last wrote the boot page.
    pub(crate) engine_build: Option<String>,
    /// Id of the database on its server.
    pub(crate) database_id: Option<u16>,
    /// Whether the files are complete without the log.
    pub(crate) clean_shutdown: Option<bool>,
    /// What recovery would need; null if the boot page is damaged.
    pub(crate) recovery: Option<RecoveryNeed<'a>>,
    /// When CHECKDB last found no errors; null if never.
    pub(crate) last_good_check: Option<&'a str>,
    /// When the database was created.
    pub(crate) created: Option<&'a str>,
    /// When it was last modified.
    pub(crate) modified: Option<&'a str>,
    /// LSN of the last checkpoint.
    pub(crate) checkpoint_lsn: Option<String>,
    /// `simple`, `bulk-logged` or `full`.
    pub(crate) recovery_model: Option<&'static str>,
    /// `checksum`, `torn page detection` or `none`.
    pub(crate) page_verify: Option<&'static str>,
    /// Whether it is encrypted (TDE).
    pub(crate) encrypted: bool,
    /// Whether it is read-only.
    pub(crate) read_only: Option<bool>,
    /// Whether CHECKDB checks column values by default.
    pub(crate) data_purity_by_default: Option<bool>,
    /// The compatibility level.
    pub(crate) compatibility_level: Option<u16>,
    /// Id of the collation.
    pub(crate) collation_id: Option<u32>,
    /// Name of the collation; null if the id does not determine it.
    pub(crate) collation: Option<String>,
    /// Unusual features, with the number of occurrences of each.
    pub(crate) features: Named<'static, usize>,
    /// The data files that were given.
    pub(crate) files: Vec<DataFile<'a>>,
    /// The log files that the catalog or the name of a data file leads to.
    pub(crate) log_files: Vec<LogFile<'a>>,
    /// System tables that cannot be read completely.
    pub(crate) unreadable_system_tables: Vec<Gap<'a>>,
}

/// What recovery would need, according to the boot page and the headers of the log.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RecoveryNeed<'a> {
    /// `no`: the files are complete; `yes`: they were not shut down cleanly; `perhaps`: they were, but the log
    /// continues.
    pub(crate) needed: &'static str,
    /// LSN from which records are redone.
    pub(crate) from_lsn: String,
    /// Why the log cannot be used; null if nothing is wrong with it, or if no log is needed.
    pub(crate) problem: Option<&'a str>,
}

/// A data file that was given.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DataFile<'a> {
    /// Its number in page addresses.
    pub(crate) file_id: u16,
    /// Its logical name.
    pub(crate) logical_name: &'a str,
    /// Id of its filegroup.
    pub(crate) filegroup_id: u16,
    /// Name of its filegroup.
    pub(crate) filegroup: Option<String>,
    /// Its size in pages.
    pub(crate) pages: u32,
    /// The size in pages according to its header page.
    pub(crate) header_pages: Option<u32>,
    /// Bytes after the last whole page.
    pub(crate) tail_bytes: u32,
    /// Path of the file.
    pub(crate) path: String,
}

/// A log file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogFile<'a> {
    /// Name of the file.
    pub(crate) name: &'a str,
    /// Path of the file; null if it is not beside the data files.
    pub(crate) path: Option<String>,
}

/// A system table that cannot be read completely.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Gap<'a> {
    /// Id of the table.
    pub(crate) object_id: i32,
    /// Its name.
    pub(crate) table: &'a str,
}

/// A transaction log file that was given to `mdfsck info` without data files.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogFileInfo {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Path of the file.
    pub(crate) path: String,
    /// Size of the file in bytes.
    pub(crate) bytes: u64,
}

/// A partition of a heap or index (`mdfsck tables`), as the catalog describes it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Table<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Id of the object.
    pub(crate) object_id: i32,
    /// Its schema; null if the catalog has no such object.
    pub(crate) schema: Option<&'a str>,
    /// Its name.
    pub(crate) name: Option<&'a str>,
    /// Type of the object, as in `sys.objects`.
    #[serde(rename = "type")]
    pub(crate) type_code: Option<&'a str>,
    /// 0 for a heap, 1 for a clustered index.
    pub(crate) index_id: i32,
    /// Name of the index.
    pub(crate) index: &'a str,
    /// Type of the index: `heap`, `clustered`, `nonclustered` and so on.
    pub(crate) index_type: &'static str,
    /// Properties of the index: `primary key`, `unique`, `filtered`, `disabled`, and the compression.
    pub(crate) properties: Vec<&'static str>,
    /// Number of the partition, from 1.
    pub(crate) partition: i32,
    /// Id of the partition.
    pub(crate) partition_id: String,
    /// Number of rows according to the catalog.
    pub(crate) rows_in_catalog: i64,
    /// Number of pages according to the catalog.
    pub(crate) pages_in_catalog: i64,
    /// The key columns in order, descending ones followed by ` desc`; then the included columns in parentheses.
    pub(crate) key: Vec<String>,
    /// The filter of the index.
    pub(crate) filter: Option<&'a str>,
    /// Computed columns of the table, on the line of its heap or clustered index.
    pub(crate) computed_columns: Vec<ComputedColumn<'a>>,
}

/// A computed column.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ComputedColumn<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its expression; null if it is stored off the row.
    pub(crate) definition: Option<&'a str>,
}

/// Statistics of a table or view (`mdfsck tables --statistics`), as they were when SQL Server updated them last.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TableStatistics<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Id of the table.
    pub(crate) object_id: i32,
    /// Its schema; null if the catalog has no such object.
    pub(crate) schema: Option<&'a str>,
    /// Its name.
    pub(crate) name: Option<&'a str>,
    /// Number of the statistics; that of the index if they are of one.
    pub(crate) statistics_id: i32,
    /// Their name.
    pub(crate) statistics: &'a str,
    /// Whether SQL Server made them by itself, for a query.
    pub(crate) automatic: bool,
    /// Their columns in order; `?` for one that is not known.
    pub(crate) columns: Vec<String>,
    /// When they were updated; null if never, or not known.
    pub(crate) updated: Option<String>,
    /// Rows then.
    pub(crate) rows: Option<u64>,
    /// Rows with NULL in the first column.
    pub(crate) null_rows: Option<f32>,
    /// For the first column, the first two and so on, then with the clustering key: 1 divided by the number of different values.
    pub(crate) densities: Vec<Option<f32>>,
    /// The histogram of the first column, in order.
    pub(crate) steps: Vec<HistogramStep>,
    /// Why what is stored of them could not be read; null if it was, or nothing is stored.
    pub(crate) problem: Option<&'static str>,
}

/// A step of a histogram; a number that is none is null.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistogramStep {
    /// The highest value of the step, as `mdfsck page` shows it; null for NULL.
    pub(crate) value: Option<String>,
    /// Rows with this value.
    pub(crate) equal_rows: Option<f32>,
    /// Rows between the step before and this value.
    pub(crate) range_rows: Option<f32>,
    /// Rows for each different value between them.
    pub(crate) average_range_rows: Option<f32>,
}

/// A part of the schema that makes CHECKDB slow, or prevents it from seeing damage (`mdfsck lint`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Lint<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// The rule.
    pub(crate) rule: &'static str,
    /// An object, an index, or `database`.
    pub(crate) scope: &'a str,
    /// What was found there.
    pub(crate) seen: &'a str,
    /// Why it makes CHECKDB slow or hides damage.
    pub(crate) reason: &'static str,
    /// What to do.
    pub(crate) remedy: &'static str,
}
