//! The JSON lines of `mdfsck export`.

use serde::Serialize;

/// A line; its first field, `kind`, says which.
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
    /// Rows in the second file of `--damaged`, from damaged pages or pages that nothing leads to.
    pub(crate) doubtful: u64,
    /// Rows in the third file of `--damaged`, put together from nonclustered indexes.
    pub(crate) rebuilt: u64,
    /// Rows that are known to be lost.
    pub(crate) known_lost: u64,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// The order of the rows.
    pub(crate) order: &'a str,
    /// Columns that are computed when they are read, and stand in no file.
    pub(crate) computed_columns: &'a [String],
    /// Values that stand as NULL because they cannot be had, or not in this format. A file `.unreadable.csv` lists them.
    pub(crate) unreadable_values: u64,
    /// Texts in which U+FFFD stands for what is no character.
    pub(crate) altered_texts: u64,
    /// Shapes, CLR values and what the client encrypted, where they stand as the bytes that are stored.
    pub(crate) values_as_stored: u64,
    /// Pages whose rows are not in the file.
    pub(crate) pages_left_out: u64,
    /// The first of them.
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
    /// Why.
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
    /// Files with rows.
    pub(crate) tables: u64,
    /// Tables whose rows cannot be read.
    pub(crate) not_readable: u64,
    /// Rows.
    pub(crate) rows: u64,
    /// Bytes of the files.
    pub(crate) bytes: u64,
    /// Everything that the tables have is in the files.
    pub(crate) complete: bool,
}
