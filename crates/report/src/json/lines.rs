//! The JSON lines of a check, and of all commands whose lines begin with their kind, as types. Fields are written in the
//! order in which they stand here; docs/json.md and docs/json.schema.json are written from these types.

use serde::{Serialize, Serializer};

use super::{catalog, cost, databases, page};

/// A line; its first field, `kind`, says which.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Line<'a> {
    Run(Run<'a>),
    Warning(Warning<'a>),
    Object(Object<'a>),
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
    Lint(catalog::Lint<'a>),
    Page(page::Page<'a>),
}

/// The first line of a check: what was checked, with what.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Run<'a> {
    /// Version of the lines; it changes when a field changes its meaning.
    pub(crate) v: u32,
    /// `mdfsck`.
    pub(crate) tool: &'static str,
    /// Version of the program.
    pub(crate) version: &'static str,
    /// Name of the database, as its boot page has it.
    pub(crate) database: &'a str,
    /// Internal version of the database: 904 for SQL Server 2019. That of the backup's label if the boot page is missing; null
    /// if unknown.
    pub(crate) db_version: Option<u16>,
    /// Whether the files hold everything, without the log; null if that is not known.
    pub(crate) clean_shutdown: Option<bool>,
    /// When somebody last updated system tables by hand (message 3859, no error); absent if never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) catalog_updated: Option<&'a str>,
    /// The data files.
    pub(crate) files: Vec<File<'a>>,
    /// The backup sets that were restored; absent for data files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sets: Option<Vec<databases::SetLine<'a>>>,
    /// What recovery from a log did; absent if there was none, or no reason to look for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recovery: Option<Recovery<'a>>,
    /// What was asked for.
    pub(crate) options: Options<'a>,
}

/// What the reader must know about the input first: missing files or stripes, sets that are not checked, a file that was
/// cut, pages in flight, a version that is too new.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Warning<'a> {
    /// `file.not-given`, `backup.stripes`, `pages.beyond-end`, `demoted.in-flight`, `backup.log`, `backup.moments`,
    /// `backup.other-sets`,
    /// `recovery.none`, `version.unknown`.
    pub(crate) id: &'static str,
    /// The warning.
    pub(crate) text: &'a str,
}

/// What recovery from a log did before the check.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Recovery<'a> {
    /// `not-needed`, `done`, `partial`, `refused`, `off`.
    pub(crate) state: &'static str,
    /// The LSN from which records were redone, as `00000022:00000a78:00a0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// The LSN of the last record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// Bytes of log in this range.
    pub(crate) log_bytes: u64,
    /// Records in this range.
    pub(crate) records: u64,
    /// Pages that differ from the files.
    pub(crate) pages: u64,
    /// Transactions that were taken back.
    pub(crate) transactions_undone: u64,
    /// Transactions that another server decides about.
    pub(crate) in_doubt: u64,
    /// Why it was not done whole; empty if it was.
    pub(crate) reason: &'a str,
}

/// A data file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct File<'a> {
    /// Where it is.
    pub(crate) path: String,
    /// Its number in page addresses.
    pub(crate) file_id: u16,
    /// Its logical name.
    pub(crate) logical_name: &'a str,
    /// Its size in pages.
    pub(crate) pages: u32,
}

/// What was asked for. Not the number of threads: the answer does not depend on it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Options<'a> {
    /// The DBCC command that the scope makes of it: `CHECKDB`, `CHECKTABLE`, `CHECKFILEGROUP`, `CHECKALLOC`, `CHECKCATALOG`.
    pub(crate) command: &'static str,
    /// Object ids of the tables that `--table` named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tables: Option<&'a [i32]>,
    /// Id of the filegroup that `--filegroup` named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) filegroup: Option<u16>,
    /// `--physical-only`.
    pub(crate) physical_only: bool,
    /// `--noindex`.
    pub(crate) no_index: bool,
    /// `--extended-logical-checks`.
    pub(crate) extended_logical_checks: bool,
    /// Whether column values are checked.
    pub(crate) data_purity: bool,
    /// `--constraints`.
    pub(crate) constraints: bool,
    /// `--constraints=all`; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) all_constraints: bool,
    /// `--identity`.
    pub(crate) identity: bool,
}

/// A partition of a heap or index that has pages, and what was counted in it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Object<'a> {
    /// Id of the object.
    pub(crate) object_id: i32,
    /// Its schema.
    pub(crate) schema: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
    /// Its type as `sys.objects` has it: `U`, `S`, `V`.
    #[serde(rename = "type")]
    pub(crate) type_code: &'a str,
    /// 0 for a heap, 1 for a clustered index.
    pub(crate) index_id: i32,
    /// Name of the index.
    pub(crate) index: &'a str,
    /// Number of the partition, from 1.
    pub(crate) partition: i32,
    /// Id of the partition.
    pub(crate) partition_id: String,
    /// Rows that were seen.
    pub(crate) rows: u64,
    /// Rows that are deleted but still on their pages.
    pub(crate) ghost_rows: u64,
    /// Rows of a heap that were moved and left a forwarding stub.
    pub(crate) forwarded_rows: u64,
    /// Pages that were seen.
    pub(crate) pages: Pages,
}

/// Pages by what they hold.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Pages {
    /// Rows.
    pub(crate) data: u64,
    /// Index rows.
    pub(crate) index: u64,
    /// Allocation maps.
    pub(crate) iam: u64,
    /// LOB values.
    pub(crate) lob: u64,
    /// Row-overflow values.
    pub(crate) overflow: u64,
}

/// A finding: the message, what it is counted to, its place, and the place that it refers to.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Finding<'a> {
    /// Id of the check (docs/checks.md).
    pub(crate) id: &'static str,
    /// Number of the message.
    pub(crate) msg: u16,
    /// Its level.
    pub(crate) level: u8,
    /// Its state.
    pub(crate) state: u8,
    /// The least repair that CHECKDB would ask for; null if none helps.
    pub(crate) repair: Option<&'static str>,
    /// Id of the object; null if no object is known.
    pub(crate) object_id: Option<i32>,
    /// Its name, with the schema.
    pub(crate) object: Option<&'a str>,
    /// Id of the index.
    pub(crate) index_id: Option<i32>,
    /// Name of the index; null for a heap, and if it is not known.
    pub(crate) index: Option<&'a str>,
    /// Id of the partition.
    pub(crate) partition_id: Option<String>,
    /// Id of the allocation unit.
    pub(crate) alloc_unit_id: Option<String>,
    /// Type of the allocation unit, in the words of messages.
    pub(crate) alloc_type: Option<&'static str>,
    /// File of the page.
    pub(crate) file: Option<u16>,
    /// The page.
    pub(crate) page: Option<u32>,
    /// The slot.
    pub(crate) slot: Option<u16>,
    /// File of the page that the message refers to.
    pub(crate) ref_file: Option<u16>,
    /// The page that the message refers to.
    pub(crate) ref_page: Option<u32>,
    /// The slot that the message refers to.
    pub(crate) ref_slot: Option<u16>,
    /// The message.
    pub(crate) text: String,
    /// The values in the message, and others that prove it, by name.
    pub(crate) evidence: Named<'a, Evidence<'a>>,
}

/// A value of a finding's evidence.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum Evidence<'a> {
    /// A number.
    Number(i64),
    /// A page address, `(1:9)`.
    Page(String),
    /// A text.
    Text(&'a str),
    /// An owner.
    Owner(Owner),
}

/// An owner of pages as a value of evidence.
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
    /// Type of the allocation unit, in the words of messages.
    pub(crate) alloc_type: &'static str,
}

/// A contradiction that is no proof of damage: it would be a finding, had the limit not been in the way.
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
    /// Why it proves nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
}

/// How many objects of Service Broker there are.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ServiceBroker {
    /// Their number, by the name of their kind in messages.
    pub(crate) analyzed: Named<'static, u64>,
}

/// A constraint (`--constraints`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Constraint<'a> {
    /// The table, with its schema.
    pub(crate) table: &'a str,
    /// Name of the constraint.
    pub(crate) name: &'a str,
    /// `CHECK` or `FOREIGN KEY`.
    #[serde(rename = "type")]
    pub(crate) type_name: &'static str,
    /// Whether SQL Server relies on it.
    pub(crate) trusted: bool,
    /// Whether SQL Server holds new rows to it.
    pub(crate) enabled: bool,
    /// Whether every row could be judged.
    pub(crate) verified: bool,
    /// Rows that were judged.
    pub(crate) rows: u64,
    /// Rows that violate it.
    pub(crate) violations: u64,
}

/// An identity column (`--identity`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Identity<'a> {
    /// The table, with its schema.
    pub(crate) table: &'a str,
    /// Name of the column.
    pub(crate) column: &'a str,
    /// The current identity value; null if none was given out yet, or it cannot be read.
    pub(crate) current: Option<String>,
    /// The increment.
    pub(crate) increment: Option<String>,
    /// The seed.
    pub(crate) seed: Option<String>,
    /// The farthest value in the rows, in the direction of the increment.
    pub(crate) farthest: Option<String>,
    /// Whether the next value may exist already.
    pub(crate) behind: bool,
}

/// What could not be read; or, as the only line of a command, why it failed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ErrorText<'a> {
    /// The file, for one of several databases that could not be checked; absent elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// The error.
    pub(crate) text: &'a str,
    /// Version of the lines, where the command failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) v: Option<u32>,
    /// The exit status, where the command failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u8>,
}

impl<'a> ErrorText<'a> {
    /// What could not be read.
    pub(crate) fn of(text: &'a str) -> Self {
        Self { file: None, text, v: None, status: None }
    }
}

/// What was asked for and could not be verified.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct NotVerified<'a> {
    #[serde(flatten)]
    pub(crate) note: Note<'a>,
    /// True where `--allow` accepts it; absent elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed: Option<bool>,
}

/// What is worth knowing and leaves nothing unverified.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Note<'a> {
    /// What it is about.
    pub(crate) what: &'a str,
    /// The place: an object, an index, a page.
    pub(crate) scope: &'a str,
    /// Why.
    pub(crate) reason: &'a str,
    /// How many there are: rows, pages or values, as `what` says.
    pub(crate) count: u64,
    /// Id of the limit (docs/limits.md).
    pub(crate) id: &'static str,
    /// Kind of the limit: `damaged`, `undocumented`, `unsupported`, `not-given`, `unreadable`, `in-flight`.
    pub(crate) kind_of: &'static str,
}

/// The last line of a check. Of a database that could not be checked it has no figures: they are null, and it is not complete.
#[derive(Serialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Summary {
    /// Allocation errors.
    pub(crate) allocation_errors: Option<u64>,
    /// Consistency errors.
    pub(crate) consistency_errors: Option<u64>,
    /// The errors by object.
    pub(crate) counted_per_object: Vec<Counted>,
    /// Findings, shown or not.
    pub(crate) findings: Option<usize>,
    /// Findings that `--max-findings` keeps from being shown.
    pub(crate) findings_hidden: Option<usize>,
    /// The least repair that CHECKDB would ask for; null if none helps.
    pub(crate) repair_level: Option<&'static str>,
    /// Whether all that was asked for was verified.
    pub(crate) complete: bool,
    /// Pages that were read.
    pub(crate) pages_read: Option<u64>,
    /// Pages that are allocated.
    pub(crate) pages_allocated: Option<u64>,
    /// Rows that were seen.
    pub(crate) rows: Option<u64>,
    /// How much was verified.
    pub(crate) verified: Option<Verified>,
    /// Time of the run.
    pub(crate) seconds: Option<f64>,
    /// The phases, in order.
    pub(crate) phases: Vec<cost::Phase>,
    /// Memory that the process took at most, in bytes; null where the system does not report it.
    pub(crate) memory_peak: Option<u64>,
    /// Memory that the run may take, in bytes.
    pub(crate) memory_granted: Option<u64>,
    /// Bytes that were written to temporary files.
    pub(crate) spilled: Option<u64>,
}

/// Errors of an object.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Counted {
    /// Id of the object; null for errors that belong to no known object.
    pub(crate) object_id: Option<i32>,
    /// Its name, with the schema.
    pub(crate) object: Option<String>,
    /// Allocation errors.
    pub(crate) allocation_errors: u64,
    /// Consistency errors.
    pub(crate) consistency_errors: u64,
}

/// How much was verified.
#[derive(Serialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Verified {
    /// Rows.
    pub(crate) rows: u64,
    /// Column values.
    pub(crate) column_values: u64,
    /// Column values that were not verified.
    pub(crate) column_values_not_verified: u64,
    /// Indexes that were compared with their table.
    pub(crate) indexes: u64,
    /// Indexes that should have been.
    pub(crate) indexes_in_scope: u64,
    /// Their rows.
    pub(crate) index_rows: u64,
}

/// What a run would take (`--estimate-only`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Estimate<'a> {
    /// Version of the lines.
    pub(crate) v: u32,
    /// Name of the database.
    pub(crate) database: &'a str,
    /// The DBCC command that the scope makes of it.
    pub(crate) command: &'static str,
    /// Bytes that would be read.
    pub(crate) read_bytes: u64,
    /// Memory in which nothing goes to temporary files.
    pub(crate) memory_bytes: u64,
    /// The least memory.
    pub(crate) minimum_memory_bytes: u64,
    /// Bytes in temporary files, with the least memory.
    pub(crate) temp_bytes: u64,
    /// Length of a window (`--window`); absent without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window_seconds: Option<f64>,
    /// How fast the last windows read it; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_per_second: Option<f64>,
    /// Windows that a cycle takes; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cycle_windows: Option<u64>,
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
