//! The JSON lines of a check, and of all commands with lines that begin with `kind`, as types. The order of the fields
//! is the order in the structs. docs/json.md and docs/json.schema.json are generated from these types.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::{catalog, cost, databases, page};

/// A line of a check or of another command. Its first field, `kind`, names the kind of line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Line<'a> {
    Run(Run<'a>),
    Warning(Warning<'a>),
    Object(Object<'a>),
    Pattern(Pattern),
    Finding(Finding<'a>),
    Demoted(Demoted<'a>),
    ServiceBroker(ServiceBroker),
    Constraint(Constraint<'a>),
    Identity(Identity<'a>),
    Error(ErrorText<'a>),
    NotVerified(NotVerified<'a>),
    Note(Note<'a>),
    Statistics(cost::Statistics),
    Summary(Summary),
    Databases(databases::Databases<'a>),
    Estimate(Estimate<'a>),
    Window(super::windows::Window<'a>),
    Info(Box<catalog::Database<'a>>),
    LogFile(catalog::LogFileInfo),
    Table(catalog::Table<'a>),
    TableStatistics(catalog::TableStatistics<'a>),
    Lint(catalog::Lint<'a>),
    Config(catalog::ConfigLine<'a>),
    Page(page::Page<'a>),
}

/// The first line of a check: the checked database and the options.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Run<'a> {
    /// Version of the JSON format, which changes when a field changes its meaning.
    pub(crate) v: u32,
    /// Always `mdfsck`.
    pub(crate) tool: &'static str,
    /// Version of the program.
    pub(crate) version: &'static str,
    /// Name of the database, from its boot page.
    pub(crate) database: &'a str,
    /// Internal version of the database, such as 904 for SQL Server 2019. If the boot page is missing, the version
    /// comes from the label of the backup; null if unknown.
    pub(crate) db_version: Option<u16>,
    /// Whether the database was shut down cleanly, so that the data files are complete without the log; null if
    /// unknown.
    pub(crate) clean_shutdown: Option<bool>,
    /// When system tables were last updated by hand (message 3859, which is not an error); absent if never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) catalog_updated: Option<&'a str>,
    /// The data files.
    pub(crate) files: Vec<File<'a>>,
    /// The backup sets that were restored; absent for data files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sets: Option<Vec<databases::SetLine<'a>>>,
    /// The result of recovery from a log; absent if there was no recovery and no need for a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recovery: Option<Recovery<'a>>,
    /// The options of the check.
    pub(crate) options: Options<'a>,
    /// The options that came from files, as they would be typed, each with its file (`mdfsck config`); absent if there are
    /// none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) defaults: &'a [String],
}

/// A fact about the input that the user must know first: missing files or stripes, sets that are not checked, a
/// truncated file, bytes after the last page of a file, pages that were being changed when they were copied, or a
/// version that is too new.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Warning<'a> {
    /// Id of the warning: `file.not-given`, `backup.stripes`, `pages.beyond-end`, `demoted.in-flight`, `backup.log`,
    /// `backup.moments`, `backup.other-sets`, `recovery.none`, `version.unknown`, `carve.found`, `carve.databases`,
    /// `carve.doubles`, `carve.left-out`, `file.tail-bytes`, `input.open`, `input.changed`.
    pub(crate) id: &'static str,
    /// The text of the warning.
    pub(crate) text: &'a str,
}

/// A pattern in the damaged pages, with its probable cause. It says what the pages of several findings have in common, and
/// adds no finding. The lines of all patterns come before those of the findings.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Pattern {
    /// Id of the pattern: `pattern.zeros`, `pattern.same-byte`, `pattern.text`, `pattern.noise`, `pattern.other-place`,
    /// `pattern.shifted`, `pattern.headers`, `pattern.changed`, `pattern.other-database`, `pattern.more`.
    pub(crate) id: &'static str,
    /// The pattern in words: the pages, what they contain, and the probable cause.
    pub(crate) text: String,
    /// The probable cause in words. It is likely, not proven; null if none is known.
    pub(crate) cause: Option<String>,
    /// File id.
    pub(crate) file: u16,
    /// Number of the first page in the file.
    pub(crate) first_page: u32,
    /// Number of the last page in the file.
    pub(crate) last_page: u32,
    /// Number of damaged pages of this pattern from the first to the last page.
    pub(crate) pages: u64,
    /// Number of runs of consecutive pages; pages that are not in use do not end a run.
    pub(crate) runs: u64,
    /// Offset in the data file of the first byte of the first page.
    pub(crate) first_byte: u64,
    /// Offset in the data file of the last byte of the last page.
    pub(crate) last_byte: u64,
    /// If the damage repeats at a fixed distance: the distance in pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) every_pages: Option<u32>,
    /// If the damage repeats at a fixed distance: the number of pages from the first to the last page of a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) block_pages: Option<u32>,
    /// The value of each byte, for `pattern.zeros` and `pattern.same-byte`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) byte: Option<u8>,
    /// The file in the headers of the pages, for `pattern.other-place`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) other_file: Option<u16>,
    /// The page numbers in the headers minus those of the places, for `pattern.other-place`; absent if they differ from
    /// page to page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) distance_pages: Option<i64>,
    /// Number of bytes by which the pages begin after their places, negative if before, for `pattern.shifted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shift_bytes: Option<i64>,
}

/// The result of recovery from a log before the check.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Recovery<'a> {
    /// Outcome of the recovery: `not-needed`, `done`, `partial`, `refused`, `off`.
    pub(crate) state: &'static str,
    /// The LSN at which redo started, such as `00000022:00000a78:00a0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// The LSN of the last log record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// Bytes of log from the LSN `from` to the LSN `to`.
    pub(crate) log_bytes: u64,
    /// Number of records from the LSN `from` to the LSN `to`.
    pub(crate) records: u64,
    /// Number of pages that recovery changed.
    pub(crate) pages: u64,
    /// Number of transactions that were rolled back.
    pub(crate) transactions_undone: u64,
    /// Number of in-doubt transactions, which are distributed transactions whose outcome another server decides.
    pub(crate) in_doubt: u64,
    /// Why recovery was not complete; empty if it was complete.
    pub(crate) reason: &'a str,
}

/// A data file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct File<'a> {
    /// Path of the file.
    pub(crate) path: String,
    /// Id of the file, as in page addresses.
    pub(crate) file_id: u16,
    /// Logical name of the file.
    pub(crate) logical_name: &'a str,
    /// Size of the file in pages.
    pub(crate) pages: u32,
}

/// The options of a check. The number of threads is not among them, because the results do not depend on it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Options<'a> {
    /// The DBCC command with the same scope: `CHECKDB`, `CHECKTABLE`, `CHECKFILEGROUP`, `CHECKALLOC` or `CHECKCATALOG`.
    pub(crate) command: &'static str,
    /// Object ids of the tables that `--table` named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tables: Option<&'a [i32]>,
    /// Id of the filegroup that `--filegroup` named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) filegroup: Option<u16>,
    /// Whether `--physical-only` was given.
    pub(crate) physical_only: bool,
    /// Whether `--noindex` was given.
    pub(crate) no_index: bool,
    /// Whether `--extended-logical-checks` was given.
    pub(crate) extended_logical_checks: bool,
    /// Whether column values are checked.
    pub(crate) data_purity: bool,
    /// Whether `--constraints` was given.
    pub(crate) constraints: bool,
    /// Whether `--constraints=all` was given; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) all_constraints: bool,
    /// Whether `--identity` was given.
    pub(crate) identity: bool,
}

/// A partition of a heap or index that has pages, with its counts.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Object<'a> {
    /// Id of the object.
    pub(crate) object_id: i32,
    /// Schema of the object.
    pub(crate) schema: &'a str,
    /// Name of the object.
    pub(crate) name: &'a str,
    /// Type of the object, as in `sys.objects`, such as `U`, `S` or `V`.
    #[serde(rename = "type")]
    pub(crate) type_code: &'a str,
    /// Id of the index: 0 for a heap, 1 for a clustered index.
    pub(crate) index_id: i32,
    /// Name of the index.
    pub(crate) index: &'a str,
    /// Number of the partition, from 1.
    pub(crate) partition: i32,
    /// Id of the partition.
    pub(crate) partition_id: String,
    /// Number of rows that were seen.
    pub(crate) rows: u64,
    /// Number of ghost rows: deleted rows that are still on their pages.
    pub(crate) ghost_rows: u64,
    /// Number of forwarded rows of a heap: moved rows that left a forwarding stub.
    pub(crate) forwarded_rows: u64,
    /// Number of pages that were seen, by their content.
    pub(crate) pages: Pages,
}

/// Number of pages by their content.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Pages {
    /// Number of pages with table rows.
    pub(crate) data: u64,
    /// Number of pages with index rows.
    pub(crate) index: u64,
    /// Number of IAM pages.
    pub(crate) iam: u64,
    /// Number of pages with LOB values.
    pub(crate) lob: u64,
    /// Number of pages with row-overflow values.
    pub(crate) overflow: u64,
}

/// A finding. It has the message, the object under which it is counted, the place of the damage, and the place to which
/// the message refers.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Finding<'a> {
    /// Id of the check (docs/checks.md).
    pub(crate) id: &'static str,
    /// Number of the message.
    pub(crate) msg: u16,
    /// Level of the message.
    pub(crate) level: u8,
    /// State of the message.
    pub(crate) state: u8,
    /// The minimum repair level that CHECKDB would name; null if no repair helps.
    pub(crate) repair: Option<&'static str>,
    /// Id of the object; null if no object is known.
    pub(crate) object_id: Option<i32>,
    /// Name of the object, with the schema.
    pub(crate) object: Option<&'a str>,
    /// Id of the index.
    pub(crate) index_id: Option<i32>,
    /// Name of the index; null for a heap, or if the name is unknown.
    pub(crate) index: Option<&'a str>,
    /// Id of the partition.
    pub(crate) partition_id: Option<String>,
    /// Id of the allocation unit.
    pub(crate) alloc_unit_id: Option<String>,
    /// Type of the allocation unit, as in the text of messages.
    pub(crate) alloc_type: Option<&'static str>,
    /// File id of the page.
    pub(crate) file: Option<u16>,
    /// Number of the page in its file.
    pub(crate) page: Option<u32>,
    /// The slot on the page.
    pub(crate) slot: Option<u16>,
    /// File id of the page that the message refers to.
    pub(crate) ref_file: Option<u16>,
    /// Number of the page that the message refers to.
    pub(crate) ref_page: Option<u32>,
    /// The slot that the message refers to.
    pub(crate) ref_slot: Option<u16>,
    /// The text of the message.
    pub(crate) text: String,
    /// Values that prove the finding, by name. They include the values in the message.
    pub(crate) evidence: Named<'a, Evidence<'a>>,
}

/// A value of a finding's evidence.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum Evidence<'a> {
    /// Any number.
    Number(i64),
    /// A page address, such as `(1:9)`.
    Page(String),
    /// A text.
    Text(&'a str),
    /// The object, index, partition and allocation unit that own pages.
    Owner(Owner),
}

/// An owner of pages: object, index, partition and allocation unit.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Owner {
    /// Id of the object.
    pub(crate) object_id: i32,
    /// Id of the index.
    pub(crate) index_id: i32,
    /// Id of the partition.
    pub(crate) partition_id: String,
    /// Id of the allocation unit.
    pub(crate) alloc_unit_id: String,
    /// Type of the allocation unit, as in the text of messages.
    pub(crate) alloc_type: &'static str,
}

/// A contradiction that does not prove damage, because of the limit that `limit` names. Without this limit, the
/// contradiction would be a finding.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Demoted<'a> {
    #[serde(flatten)]
    pub(crate) finding: Finding<'a>,
    /// Id of the limit (docs/limits.md).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<&'static str>,
    /// Kind of the limit: `damaged`, `undocumented`, `unsupported`, `not-given`, `unreadable`, `in-flight`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind_of: Option<&'static str>,
    /// Why the contradiction does not prove damage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
}

/// Number of Service Broker objects.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ServiceBroker {
    /// Number of objects of each kind, by the name of the kind in messages.
    pub(crate) analyzed: Named<'static, u64>,
}

/// The result for a constraint (`--constraints`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Constraint<'a> {
    /// The table, with its schema.
    pub(crate) table: &'a str,
    /// Name of the constraint.
    pub(crate) name: &'a str,
    /// Type of the constraint: `CHECK` or `FOREIGN KEY`.
    #[serde(rename = "type")]
    pub(crate) type_name: &'static str,
    /// Whether SQL Server trusts the constraint.
    pub(crate) trusted: bool,
    /// Whether SQL Server enforces the constraint for new rows.
    pub(crate) enabled: bool,
    /// Whether the constraint could be evaluated for every row.
    pub(crate) verified: bool,
    /// Number of rows for which the constraint was evaluated.
    pub(crate) rows: u64,
    /// Number of rows that violate the constraint.
    pub(crate) violations: u64,
}

/// The result for an identity column (`--identity`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Identity<'a> {
    /// The table, with its schema.
    pub(crate) table: &'a str,
    /// Name of the column.
    pub(crate) column: &'a str,
    /// The current identity value; null if no value was assigned yet, or if it cannot be read.
    pub(crate) current: Option<String>,
    /// The increment of the identity column.
    pub(crate) increment: Option<String>,
    /// The seed of the identity column.
    pub(crate) seed: Option<String>,
    /// The farthest value in the rows: the highest if the increment is positive, the lowest if it is negative.
    pub(crate) farthest: Option<String>,
    /// Whether the next identity value may already exist in a row.
    pub(crate) behind: bool,
}

/// Something that could not be read. If this is the only line of a command, it tells why the command failed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ErrorText<'a> {
    /// The file, if one of several databases could not be checked; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// The text of the error.
    pub(crate) text: &'a str,
    /// Version of the JSON format, if the command failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) v: Option<u32>,
    /// The exit status, if the command failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u8>,
}

impl<'a> ErrorText<'a> {
    /// A line about a thing that could not be read.
    pub(crate) fn of(text: &'a str) -> Self {
        Self { file: None, text, v: None, status: None }
    }
}

/// Something that the check was asked to verify but could not verify.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct NotVerified<'a> {
    #[serde(flatten)]
    pub(crate) note: Note<'a>,
    /// True if `--allow` accepts that this was not verified; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed: Option<bool>,
}

/// A useful fact about the input. A note never means that something was not verified.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Note<'a> {
    /// The subject of the line, in words.
    pub(crate) what: &'a str,
    /// The place, such as an object, an index or a page.
    pub(crate) scope: &'a str,
    /// The reason, in words.
    pub(crate) reason: &'a str,
    /// Number of rows, pages or values; `what` names the unit.
    pub(crate) count: u64,
    /// Id of the limit (docs/limits.md).
    pub(crate) id: &'static str,
    /// Kind of the limit: `damaged`, `undocumented`, `unsupported`, `not-given`, `unreadable`, `in-flight`.
    pub(crate) kind_of: &'static str,
}

/// The last line of a check. If the database could not be checked, the numbers are null and `complete` is false.
#[derive(Serialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Summary {
    /// Number of allocation errors.
    pub(crate) allocation_errors: Option<u64>,
    /// Number of consistency errors.
    pub(crate) consistency_errors: Option<u64>,
    /// Number of errors by object.
    pub(crate) counted_per_object: Vec<Counted>,
    /// Number of findings, including the findings that `--max-findings` hides.
    pub(crate) findings: Option<usize>,
    /// Number of findings that `--max-findings` hides.
    pub(crate) findings_hidden: Option<usize>,
    /// The minimum repair level that CHECKDB would name; null if no repair helps.
    pub(crate) repair_level: Option<&'static str>,
    /// Whether everything that was requested was verified.
    pub(crate) complete: bool,
    /// Number of pages that this run has read.
    pub(crate) pages_read: Option<u64>,
    /// What was not read because it has not changed since earlier runs; null if all pages were read.
    pub(crate) by_change: Option<ByChange>,
    /// Why all pages were read although parts of earlier runs were kept; otherwise null.
    pub(crate) not_by_change: Option<String>,
    /// Number of pages that are allocated.
    pub(crate) pages_allocated: Option<u64>,
    /// Number of rows that were seen.
    pub(crate) rows: Option<u64>,
    /// The amount of data that was verified.
    pub(crate) verified: Option<Verified>,
    /// Duration of the run in seconds.
    pub(crate) seconds: Option<f64>,
    /// The phases, in order.
    pub(crate) phases: Vec<cost::Phase>,
    /// Peak memory of the process in bytes; null if the system does not report it.
    pub(crate) memory_peak: Option<u64>,
    /// Bytes of memory that the run may use.
    pub(crate) memory_granted: Option<u64>,
    /// Bytes written to temporary files.
    pub(crate) spilled: Option<u64>,
}

/// What a run has read of a database, and what it has taken from earlier runs.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ByChange {
    /// GUID of the full backup on which the checked state builds.
    pub(crate) base_set: String,
    /// When the check of the full backup began, in UTC.
    pub(crate) base_read_at: String,
    /// Bytes of pages that this run has read.
    pub(crate) bytes_read: u64,
    /// Bytes of pages that were not read, because they have not changed.
    pub(crate) bytes_kept: u64,
    /// Bytes of pages that are left for later windows of time.
    pub(crate) bytes_open: u64,
    /// Number of ranges with pages in use.
    pub(crate) ranges: u64,
    /// Number of ranges that this run has swept.
    pub(crate) ranges_swept: u64,
    /// Number of ranges that this run has swept, by the reason: `bytes`, `maps`, `meaning`, `not_kept`, `findings` or
    /// `again`.
    pub(crate) reasons: BTreeMap<&'static str, u64>,
}

impl From<&findings::ByChange> for ByChange {
    fn from(change: &findings::ByChange) -> Self {
        Self {
            base_set: change.base_set.clone(),
            base_read_at: change.base_read_at.clone(),
            bytes_read: change.bytes_read,
            bytes_kept: change.bytes_kept,
            bytes_open: change.bytes_open,
            ranges: change.ranges,
            ranges_swept: change.ranges_swept(),
            reasons: change.reasons.iter().copied().collect(),
        }
    }
}

/// Number of errors in an object.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Counted {
    /// Id of the object; null for errors that belong to no known object.
    pub(crate) object_id: Option<i32>,
    /// Name of the object, with the schema.
    pub(crate) object: Option<String>,
    /// Number of allocation errors.
    pub(crate) allocation_errors: u64,
    /// Number of consistency errors.
    pub(crate) consistency_errors: u64,
}

/// The amount of data that was verified.
#[derive(Serialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Verified {
    /// Number of verified rows.
    pub(crate) rows: u64,
    /// Number of verified column values.
    pub(crate) column_values: u64,
    /// Number of column values that could not be verified.
    pub(crate) column_values_not_verified: u64,
    /// Number of indexes that were compared with their table.
    pub(crate) indexes: u64,
    /// Number of indexes in the scope of the check. All of them should have been compared with their tables.
    pub(crate) indexes_in_scope: u64,
    /// Number of rows of the compared indexes.
    pub(crate) index_rows: u64,
}

/// The estimated needs of a run (`--estimate-only`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Estimate<'a> {
    /// Version of the JSON format.
    pub(crate) v: u32,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// The DBCC command with the same scope.
    pub(crate) command: &'static str,
    /// Bytes that the run would read.
    pub(crate) read_bytes: u64,
    /// Bytes of memory with which the run needs no temporary files.
    pub(crate) memory_bytes: u64,
    /// Minimum number of bytes of memory for the run.
    pub(crate) minimum_memory_bytes: u64,
    /// Bytes of temporary files if the run has only the minimum memory.
    pub(crate) temp_bytes: u64,
    /// Length of a window in seconds (`--window`); absent without `--window`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window_seconds: Option<f64>,
    /// Read speed in the last windows, in bytes per second; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_per_second: Option<f64>,
    /// Number of windows needed to read everything once; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cycle_windows: Option<u64>,
    /// Number of tables with pages; absent without `--keep-parts`, or if there was no window yet. The same holds for the
    /// fields that follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tables: Option<u64>,
    /// Number of tables of which windows know every page as it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tables_closed: Option<u64>,
    /// Bytes of the pages that no window has read as they are now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left_bytes: Option<u64>,
    /// The part of `left_bytes` that has come since the last window; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) new_bytes: Option<u64>,
    /// Number of windows until all tables are closed; absent if unknown, or if more changes from one window to the next than
    /// a window reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) windows_left: Option<u64>,
}

/// Values by name, written as one object in the order of the list.
pub(crate) struct Named<'a, T>(pub(crate) Vec<(&'a str, T)>);

impl<T: Serialize> Serialize for Named<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'a, T> FromIterator<(&'a str, T)> for Named<'a, T> {
    fn from_iter<I: IntoIterator<Item = (&'a str, T)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}
