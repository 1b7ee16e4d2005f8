//! The JSON lines of `mdfsck compare-dbcc`, as types.

use serde::Serialize;

/// A line of `mdfsck compare-dbcc`. Its first field, `kind`, names the kind of line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ComparisonLine<'a> {
    Comparison(ComparisonHead<'a>),
    Compared(ComparedError<'a>),
    Counted(ComparedCounts<'a>),
    Explanation(Explanation),
    Summary(ComparisonSummary),
}

/// The first line: the results of the server.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ComparisonHead<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Always `mdfsck`.
    pub(crate) tool: &'static str,
    /// Version of the program.
    pub(crate) version: &'static str,
    /// Name of the checked database, from its boot page.
    pub(crate) database: &'a str,
    /// Name of the database in the results of the server; null if they do not name it. The names are not compared.
    pub(crate) server_database: Option<&'a str>,
    /// Form of the results: `table` for rows of WITH TABLERESULTS, `text` for messages. Rows made from text have only the
    /// values that the text names.
    pub(crate) form: &'static str,
    /// Whether the messages of the server are in another language than English.
    pub(crate) localized: bool,
    /// Number of messages in the results.
    pub(crate) messages: u64,
    /// Number of rows in the results that are no messages.
    pub(crate) not_understood: u64,
    /// Number of errors and counts of both programs that were not compared, because there are more than 100,000.
    pub(crate) hidden: u64,
    /// Whether the results are known to contain all errors of a finished run.
    pub(crate) whole: bool,
}

/// An error that at least one of the two programs found.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ComparedError<'a> {
    /// `both`, `server-only`, `mdfsck-only`, `other-number` (both found it, under different numbers) or `explained`.
    pub(crate) state: &'static str,
    /// Id of the object; null if the message names none.
    pub(crate) object_id: Option<i32>,
    /// Id of the index.
    pub(crate) index_id: Option<i32>,
    /// File id of the page.
    pub(crate) file: Option<u16>,
    /// Number of the page in its file.
    pub(crate) page: Option<u32>,
    /// The slot on the page.
    pub(crate) slot: Option<u16>,
    /// The message of the server; null if it printed none.
    pub(crate) server: Option<ComparedMessage<'a>>,
    /// The message of mdfsck; null if it printed none.
    pub(crate) mdfsck: Option<ComparedMessage<'a>>,
    /// Id of the explanation; null if there is none.
    pub(crate) explanation: Option<&'static str>,
    /// Id of the limit, if mdfsck lists the message, or all damage of its kind, as not verified.
    pub(crate) limit: Option<&'static str>,
}

/// A message of one of the two programs.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ComparedMessage<'a> {
    /// Number of the message.
    pub(crate) msg: u32,
    /// State of the message; 0 if only the text is known.
    pub(crate) state: u16,
    /// The text of the message, cut off after some hundred bytes.
    pub(crate) text: &'a str,
    /// Id of the check; null for a message of the server.
    pub(crate) id: Option<&'static str>,
    /// Where the place comes from: `row` for the columns of a row or the values of a finding, `text` if only the text is
    /// known.
    pub(crate) from: &'static str,
    /// Whether the number was found by the wording, because the text has no heading with a number.
    pub(crate) inferred: bool,
}

/// Counts that the server printed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ComparedCounts<'a> {
    /// `equal`, `differs` or `explained`.
    pub(crate) state: &'static str,
    /// Number of the message: 2593 for rows and pages of an object, 9605 to 9676 for Service Broker objects.
    pub(crate) msg: u32,
    /// Name of the object; null for Service Broker objects.
    pub(crate) object: Option<&'a str>,
    /// The server's number of rows, or of Service Broker objects.
    pub(crate) server_rows: u64,
    /// The server's number of pages; null for Service Broker objects.
    pub(crate) server_pages: Option<u64>,
    /// The number of rows that mdfsck counted; null if it does not list the object.
    pub(crate) mdfsck_rows: Option<u64>,
    /// The number of pages that mdfsck counted.
    pub(crate) mdfsck_pages: Option<u64>,
}

/// A reason why messages of one program are no difference.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Explanation {
    /// Id of the explanation.
    pub(crate) id: &'static str,
    /// The explanation.
    pub(crate) why: &'static str,
    /// Number of messages that it explains.
    pub(crate) count: u64,
    /// Numbers of these messages.
    pub(crate) msgs: Vec<u32>,
}

/// The last line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ComparisonSummary {
    /// Number of errors that both programs found.
    pub(crate) both: usize,
    /// Number of errors that only the server found.
    pub(crate) server_only: usize,
    /// Number of errors that only mdfsck found.
    pub(crate) mdfsck_only: usize,
    /// Number of errors that both programs found, under different numbers.
    pub(crate) other_number: usize,
    /// Number of errors that differ for a known reason.
    pub(crate) explained: usize,
    /// Number of counts that are equal.
    pub(crate) counts_equal: usize,
    /// Number of counts that differ without a known reason.
    pub(crate) counts_differ: usize,
    /// Whether anything differs without a known reason.
    pub(crate) differs: bool,
    /// Whether the results of the server contain all errors of a finished run, mdfsck verified everything, and all errors
    /// were compared.
    pub(crate) complete: bool,
}
