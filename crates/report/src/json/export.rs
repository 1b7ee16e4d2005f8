//! The JSON lines of `mdfsck export`.

use serde::Serialize;

/// A line. Its first field, `kind`, names the kind of line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ExportLine<'a> {
    Table(ExportedTable<'a>),
    Definition(ExportedDefinition<'a>),
    Summary(ExportSummary),
}

/// A table, and the file with its rows.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ExportedTable<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Its name with schema.
    pub(crate) object: &'a str,
    /// Object id.
    pub(crate) object_id: i32,
    /// The file; null if the rows of the table cannot be read.
    pub(crate) file: Option<&'a str>,
    /// Why the rows cannot be read; absent if they can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
    /// Rows in the file.
    pub(crate) rows: u64,
    /// Rows in the second file of `--damaged`, from damaged pages or from pages that no other page refers to.
    pub(crate) doubtful: u64,
    /// Rows in the third file of `--damaged`, reconstructed from nonclustered indexes.
    pub(crate) rebuilt: u64,
    /// Rows that are known to be lost.
    pub(crate) known_lost: u64,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// The order of the rows.
    pub(crate) order: &'a str,
    /// Columns that are computed when they are read and are in no file.
    pub(crate) computed_columns: &'a [String],
    /// Values written as NULL because they cannot be read, or cannot be expressed in this format. A file
    /// `.unreadable.csv` lists them.
    pub(crate) unreadable_values: u64,
    /// Texts in which U+FFFD replaces invalid characters.
    pub(crate) altered_texts: u64,
    /// Spatial values, CLR values and client-encrypted values that are written as the stored bytes.
    pub(crate) values_as_stored: u64,
    /// Pages whose rows are not in the file.
    pub(crate) pages_left_out: u64,
    /// The first of these pages.
    pub(crate) left_out: Vec<PageLeftOut>,
    /// Records on sound pages that break a rule and are not in the file.
    pub(crate) records_left_out: u64,
}

/// A page whose rows are not in the file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PageLeftOut {
    /// File id and page number, as `1:153`.
    pub(crate) page: String,
    /// Why its rows are not in the file.
    pub(crate) why: String,
}

/// A procedure, function, view or trigger.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ExportedDefinition<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Its name with schema.
    pub(crate) object: &'a str,
    /// `PROCEDURE`, `FUNCTION`, `VIEW` or `TRIGGER`.
    pub(crate) type_name: &'a str,
    /// The file; null if its text cannot be read.
    pub(crate) file: Option<&'a str>,
    /// Why it cannot be read; absent if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
}

/// The last line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ExportSummary {
    /// Number of files with rows.
    pub(crate) tables: u64,
    /// Number of tables whose rows cannot be read.
    pub(crate) not_readable: u64,
    /// Number of rows.
    pub(crate) rows: u64,
    /// Bytes of the files.
    pub(crate) bytes: u64,
    /// Whether the files contain everything in the tables.
    pub(crate) complete: bool,
}
