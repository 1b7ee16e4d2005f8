//! The options of `export` and `rows`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{CarveArguments, DatabaseArguments, LikeArguments, OUTPUT, ProgressKind, RESOURCES, StopArguments};

#[derive(Args)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArguments,

    #[command(flatten)]
    pub(crate) carve: CarveArguments,

    #[command(flatten)]
    pub(crate) stop: StopArguments,

    #[command(flatten)]
    pub(crate) like: LikeArguments,

    /// Folder for the files; created if missing
    #[arg(short, long, value_name = "DIR", help_heading = OUTPUT)]
    pub(crate) output: PathBuf,

    /// Export only this table, by name or object ID; repeatable
    #[arg(long, value_name = "[SCHEMA.]NAME")]
    pub(crate) table: Vec<String>,

    /// Format of the files
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "csv", help_heading = OUTPUT)]
    pub(crate) format: ExportFormat,

    /// Also write the definitions of procedures, functions, views and triggers, to the folder definitions in DIR
    #[arg(long)]
    pub(crate) definitions: bool,

    /// Also salvage rows of damaged tables, and write them to separate files: NAME.doubtful and NAME.rebuilt
    ///
    /// Doubtful rows are complete records on damaged pages, and rows on pages to which no index or IAM page points any
    /// more. Rebuilt rows are rows of lost pages, which mdfsck assembles from the entries of nonclustered indexes.
    #[arg(long)]
    pub(crate) damaged: bool,

    /// With --damaged: also write deleted rows that are still on their pages, as doubtful rows
    #[arg(long, requires = "damaged")]
    pub(crate) ghosts: bool,

    /// Include system tables
    #[arg(long)]
    pub(crate) system: bool,

    /// Replace files of an earlier export
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) force: bool,

    /// Maximum number of threads (0 = one per processor)
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = RESOURCES)]
    pub(crate) maxdop: u16,

    /// Print one JSON object per table, and a summary
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,

    /// Progress display on stderr
    #[arg(long, value_enum, default_value_t = ProgressKind::Auto, value_name = "KIND", help_heading = OUTPUT)]
    pub(crate) progress: ProgressKind,
}

/// The file formats of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ExportFormat {
    /// RFC 4180; NULL is an empty field, and an empty string is ""
    Csv,
    /// For pandas, Polars, DuckDB, Spark
    #[cfg(feature = "parquet")]
    Parquet,
    /// One JSON object per row
    Jsonl,
    /// T-SQL: CREATE TABLE, INSERT, keys, indexes
    Sql,
}

#[derive(Args)]
pub(crate) struct RowsArguments {
    /// The table, by name or object ID
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,

    #[command(flatten)]
    pub(crate) database: DatabaseArguments,

    #[command(flatten)]
    pub(crate) carve: CarveArguments,

    #[command(flatten)]
    pub(crate) stop: StopArguments,

    #[command(flatten)]
    pub(crate) like: LikeArguments,

    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u64,

    /// Format of the rows
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text", help_heading = OUTPUT)]
    pub(crate) format: RowsFormat,
}

/// The formats of rows on standard output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum RowsFormat {
    /// An aligned table
    Text,
    /// CSV as 'mdfsck export' writes it
    Csv,
    /// One JSON object per row
    Jsonl,
}
