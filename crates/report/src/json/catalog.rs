//! The JSON lines of `mdfsck info` of data files, `mdfsck tables` and `mdfsck lint`.

use serde::Serialize;

use super::lines::Named;

/// A database (`mdfsck info` of data files). Fields that only the boot page provides are null if that page is damaged.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Database<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Name of the database.
    pub(crate) database: Option<&'a str>,
    /// Internal version of the database.
    pub(crate) db_version: Option<u16>,
    /// The SQL Server release of the internal version in `db_version`.
    pub(crate) product: Option<&'static str>,
    /// Internal version in which the database was created.
    pub(crate) create_version: Option<u16>,
    /// The SQL Server release of the internal version in `create_version`.
    pub(crate) created_by: Option<&'static str>,
    /// The build of SQL Server that last wrote the boot page.
    pub(crate) engine_build: Option<String>,
    /// Id of the database on its server.
    pub(crate) database_id: Option<u16>,
    /// Whether the database was shut down cleanly, so that the data files are complete without the log.
    pub(crate) clean_shutdown: Option<bool>,
    /// The need for recovery; null if the boot page is damaged.
    pub(crate) recovery: Option<RecoveryNeed<'a>>,
    /// When CHECKDB last found no errors; null if never.
    pub(crate) last_good_check: Option<&'a str>,
    /// When the database was created.
    pub(crate) created: Option<&'a str>,
    /// When the database was last modified.
    pub(crate) modified: Option<&'a str>,
    /// LSN of the last checkpoint.
    pub(crate) checkpoint_lsn: Option<String>,
    /// The recovery model: `simple`, `bulk-logged` or `full`.
    pub(crate) recovery_model: Option<&'static str>,
    /// The PAGE_VERIFY option: `checksum`, `torn page detection` or `none`.
    pub(crate) page_verify: Option<&'static str>,
    /// Whether the database is encrypted (TDE).
    pub(crate) encrypted: bool,
    /// Whether the database is read-only.
    pub(crate) read_only: Option<bool>,
    /// Whether CHECKDB checks column values by default.
    pub(crate) data_purity_by_default: Option<bool>,
    /// The compatibility level.
    pub(crate) compatibility_level: Option<u16>,
    /// Id of the collation.
    pub(crate) collation_id: Option<u32>,
    /// Name of the collation; null if the id does not determine it.
    pub(crate) collation: Option<String>,
    /// Unusual features, each with the number of times it occurs.
    pub(crate) features: Named<'static, usize>,
    /// The data files that were given.
    pub(crate) files: Vec<DataFile<'a>>,
    /// The log files. Their names are in the catalog, or were derived from the names of the data files.
    pub(crate) log_files: Vec<LogFile<'a>>,
    /// System tables that cannot be read completely.
    pub(crate) unreadable_system_tables: Vec<Gap<'a>>,
}

/// The need for recovery, according to the boot page and the headers of the log.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RecoveryNeed<'a> {
    /// `no`: the files are complete. `yes`: the database was not shut down cleanly. `perhaps`: it was shut down
    /// cleanly, but the log continues after the last checkpoint.
    pub(crate) needed: &'static str,
    /// LSN at which redo starts.
    pub(crate) from_lsn: String,
    /// Why the log cannot be used; null if no problem is known, or if no log is needed.
    pub(crate) problem: Option<&'a str>,
}

/// A data file that was given.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DataFile<'a> {
    /// Id of the file, as in page addresses.
    pub(crate) file_id: u16,
    /// Logical name of the file.
    pub(crate) logical_name: &'a str,
    /// Id of the file's filegroup.
    pub(crate) filegroup_id: u16,
    /// Name of the file's filegroup.
    pub(crate) filegroup: Option<String>,
    /// Size of the file in pages.
    pub(crate) pages: u32,
    /// Size of the file in pages, according to the header page of the file.
    pub(crate) header_pages: Option<u32>,
    /// Bytes after the last whole page.
    pub(crate) tail_bytes: u32,
    /// Path of the file.
    pub(crate) path: String,
    /// What is left of the file; absent unless the boot page is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left: Option<Left>,
}

/// What is left of a data file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Left {
    /// Number of intact pages.
    pub(crate) intact: u32,
    /// Number of pages of zeros.
    pub(crate) zeros: u32,
    /// Number of damaged pages.
    pub(crate) damaged: u32,
    /// The page after the last damaged page.
    pub(crate) whole_from: u32,
}

/// A log file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogFile<'a> {
    /// Name of the file.
    pub(crate) name: &'a str,
    /// Path of the file; null if the file is not next to the data files.
    pub(crate) path: Option<String>,
}

/// A system table that cannot be read completely.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Gap<'a> {
    /// Object id of the system table.
    pub(crate) object_id: i32,
    /// Name of the system table.
    pub(crate) table: &'a str,
}

/// A transaction log file that was given to `mdfsck info` without data files.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogFileInfo {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Path of the file.
    pub(crate) path: String,
    /// Size of the file in bytes.
    pub(crate) bytes: u64,
}

/// A partition of a heap or index, as the catalog describes it (`mdfsck tables`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Table<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Id of the object.
    pub(crate) object_id: i32,
    /// Schema of the object; null if the catalog does not have the object.
    pub(crate) schema: Option<&'a str>,
    /// Name of the object.
    pub(crate) name: Option<&'a str>,
    /// Type of the object, as in `sys.objects`.
    #[serde(rename = "type")]
    pub(crate) type_code: Option<&'a str>,
    /// Id of the index: 0 for a heap, 1 for a clustered index.
    pub(crate) index_id: i32,
    /// Name of the index.
    pub(crate) index: &'a str,
    /// Type of the index: `heap`, `clustered`, `nonclustered` or another type.
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
    /// The key columns in order, with ` desc` after descending columns; then the included columns in parentheses.
    pub(crate) key: Vec<String>,
    /// The filter of a filtered index.
    pub(crate) filter: Option<&'a str>,
    /// Computed columns of the table. Only the line of the heap or clustered index lists them.
    pub(crate) computed_columns: Vec<ComputedColumn<'a>>,
    /// What the columns of the table rest on; absent if the catalog could be read in the usual way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rests_on: Option<String>,
}

/// A computed column.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ComputedColumn<'a> {
    /// Name of the computed column.
    pub(crate) name: &'a str,
    /// Expression of the computed column; null if the expression is stored off the row.
    pub(crate) definition: Option<&'a str>,
}

/// Statistics of a table or view (`mdfsck tables --statistics`), as of their last update by SQL Server.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TableStatistics<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Id of the table.
    pub(crate) object_id: i32,
    /// Schema of the table; null if the catalog does not have the table.
    pub(crate) schema: Option<&'a str>,
    /// Name of the table.
    pub(crate) name: Option<&'a str>,
    /// Id of the statistics; statistics of an index have the id of the index.
    pub(crate) statistics_id: i32,
    /// Name of the statistics.
    pub(crate) statistics: &'a str,
    /// Whether SQL Server created the statistics automatically for a query.
    pub(crate) automatic: bool,
    /// Columns of the statistics in order; `?` for an unknown column.
    pub(crate) columns: Vec<String>,
    /// When the statistics were last updated; null if never, or if the time is unknown.
    pub(crate) updated: Option<String>,
    /// Number of rows at the last update.
    pub(crate) rows: Option<u64>,
    /// Number of rows with NULL in the first column.
    pub(crate) null_rows: Option<f32>,
    /// Densities: first for the first column, then for the first two columns, and so on. The last ones include the
    /// columns of the clustering key. A density is 1 divided by the number of different values.
    pub(crate) densities: Vec<Option<f32>>,
    /// The steps of the histogram of the first column, in order.
    pub(crate) steps: Vec<HistogramStep>,
    /// Why the stored statistics could not be read; null if they could be read, or if nothing is stored.
    pub(crate) problem: Option<&'static str>,
}

/// A step of a histogram. A stored value that is not a finite number is null.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistogramStep {
    /// The highest value of the step, as `mdfsck page` shows it; null for NULL.
    pub(crate) value: Option<String>,
    /// Number of rows with this value.
    pub(crate) equal_rows: Option<f32>,
    /// Number of rows with values between the value of the previous step and this value.
    pub(crate) range_rows: Option<f32>,
    /// Average number of rows for each different value between the value of the previous step and this value.
    pub(crate) average_range_rows: Option<f32>,
}

/// A part of the schema that makes CHECKDB slow, or prevents it from seeing damage (`mdfsck lint`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Lint<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Name of the rule.
    pub(crate) rule: &'static str,
    /// The place: an object, an index, or `database`.
    pub(crate) scope: &'a str,
    /// The facts that the rule found at this place.
    pub(crate) seen: &'a str,
    /// Why the feature makes CHECKDB slow or hides damage.
    pub(crate) reason: &'static str,
    /// The recommended action.
    pub(crate) remedy: &'static str,
}

/// A default or a limit of a machine (`mdfsck config`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ConfigLine<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// The file.
    pub(crate) file: &'a str,
    /// The section: the name of a command, or `limits`.
    pub(crate) section: &'a str,
    /// The long name of the option.
    pub(crate) option: &'a str,
    /// The value, or several values.
    pub(crate) value: &'a str,
    /// The file whose value counts in place of this one; null if this one counts.
    pub(crate) replaced_by: Option<&'a str>,
}
