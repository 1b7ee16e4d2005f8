//! The JSON lines of `mdfsck export`.

use serde::Serialize;

/// A line of `mdfsck export`. Its first field, `kind`, names the kind of line.
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
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Name of the table, with its schema.
    pub(crate) object: &'a str,
    /// Object id of the table.
    pub(crate) object_id: i32,
    /// Name of the file; null if the rows of the table cannot be read.
    pub(crate) file: Option<&'a str>,
    /// Why the rows cannot be read; absent if they can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
    /// Number of rows in the file.
    pub(crate) rows: u64,
    /// Number of rows in the second file of `--damaged`. These rows are from damaged pages, or from pages that no other
    /// page refers to.
    pub(crate) doubtful: u64,
    /// Number of rows in the third file of `--damaged`. These rows were rebuilt from nonclustered indexes.
    pub(crate) rebuilt: u64,
    /// Number of rows that are known to be lost.
    pub(crate) known_lost: u64,
    /// Size of the file in bytes.
    pub(crate) bytes: u64,
    /// The order of the rows in the file.
    pub(crate) order: &'a str,
    /// Columns that no file contains, because SQL Server computes them when they are read.
    pub(crate) computed_columns: &'a [String],
    /// Number of values that are NULL in the file, because they cannot be read, or because the format of the file
    /// cannot express them. A file `.unreadable.csv` lists these values.
    pub(crate) unreadable_values: u64,
    /// Number of texts in which U+FFFD replaces invalid characters.
    pub(crate) altered_texts: u64,
    /// Number of spatial values, CLR values and client-encrypted values that are written as the stored bytes.
    pub(crate) values_as_stored: u64,
    /// Number of pages with rows that are not in the file.
    pub(crate) pages_left_out: u64,
    /// The first pages with rows that are not in the file.
    pub(crate) left_out: Vec<PageLeftOut>,
    /// Number of records that are on sound pages but break a rule and are therefore not in the file.
    pub(crate) records_left_out: u64,
    /// What the columns of the table rest on; absent if the catalog could be read in the usual way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rests_on: Option<&'a str>,
}

/// A page with rows that are not in the file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PageLeftOut {
    /// File id and page number, such as `1:153`.
    pub(crate) page: String,
    /// Why the rows of the page are not in the file.
    pub(crate) why: String,
}

/// A procedure, function, view or trigger.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ExportedDefinition<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Name of the procedure, function, view or trigger, with its schema.
    pub(crate) object: &'a str,
    /// Type of the object: `PROCEDURE`, `FUNCTION`, `VIEW` or `TRIGGER`.
    pub(crate) type_name: &'a str,
    /// Name of the file; null if the text of the definition cannot be read.
    pub(crate) file: Option<&'a str>,
    /// Why the text of the definition cannot be read; absent if it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
}

/// The last line of `mdfsck export`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ExportSummary {
    /// Number of tables with a file.
    pub(crate) tables: u64,
    /// Number of tables with rows that cannot be read.
    pub(crate) not_readable: u64,
    /// Number of rows in all files.
    pub(crate) rows: u64,
    /// Size of all files in bytes.
    pub(crate) bytes: u64,
    /// Whether the files contain everything in the tables.
    pub(crate) complete: bool,
}
