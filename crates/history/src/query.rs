//! Queries of the history: runs, findings, objects, differences.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use crate::error::{HistoryError, Result};
use crate::file::History;
use crate::identity::identity_of;

/// The part of the history that a query covers.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Selects the databases with this name or family GUID. The text `NAME on SERVER` selects the database with this
    /// name on this server; `None` selects all.
    pub database: Option<String>,
    /// Leaves out everything before this point in time.
    pub since: Option<String>,
}

/// The SQL condition that tests whether the filter `?1` selects the database `d`.
pub(crate) const IS_WANTED: &str = "(?1 IS NULL OR d.name = ?1 COLLATE NOCASE OR d.family = ?1 COLLATE NOCASE
    OR d.name || ' on ' || d.server = ?1 COLLATE NOCASE)";

/// A database of the history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Named {
    pub(crate) id: i64,
    pub(crate) family: String,
    pub(crate) server: String,
    pub(crate) name: String,
}

impl Filter {
    /// The databases that the filter selects, ordered by name.
    pub(crate) fn databases(&self, connection: &Connection) -> rusqlite::Result<Vec<Named>> {
        let query = format!("SELECT id, family, server, name FROM database d WHERE {IS_WANTED} ORDER BY name, id");
        let mut statement = connection.prepare(&query)?;
        let rows = statement.query_map([&self.database], |row| {
            Ok(Named { id: row.get(0)?, family: row.get(1)?, server: row.get(2)?, name: row.get(3)? })
        })?;
        rows.collect()
    }
}

/// A run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunRow {
    /// The number of the run.
    pub id: i64,
    /// The name of the database; `None` if the database could not be opened.
    pub database: Option<String>,
    /// The family: the database and all databases restored from its backups.
    pub family: Option<String>,
    /// The server of the database; empty if databases of one family count as one database, whatever their servers.
    pub server: Option<String>,
    /// `files` or `backup`.
    pub source: Option<String>,
    /// The machine on which the run took place.
    pub host: String,
    /// The files that the run read.
    pub paths: String,
    /// The DBCC command.
    pub command: String,
    /// When the run began.
    pub started: String,
    /// When the run ended.
    pub ended: String,
    /// The point in time of the database state that the run checked.
    pub taken_at: Option<String>,
    /// The exit status of the run.
    pub exit_status: u8,
    /// Whether the run verified everything that it was asked to verify.
    pub complete: bool,
    /// Why the run failed, if it did.
    pub error: Option<String>,
    /// The number of findings.
    pub findings: u64,
    /// The number of new findings.
    pub findings_new: u64,
    /// The number of findings that this run found to be gone.
    pub findings_gone: u64,
    /// The number of places that the run could not verify.
    pub not_verified: u64,
    /// The number of bytes read.
    pub bytes_read: u64,
    /// The number of pages in use.
    pub pages_in_use: u64,
    /// The number of rows read.
    pub rows: u64,
    /// The elapsed time in seconds.
    pub seconds: f64,
    /// The processor time in seconds.
    pub cpu_seconds: Option<f64>,
    /// The largest resident memory in bytes.
    pub memory_peak: Option<u64>,
}

impl RunRow {
    /// Whether this run and `other` checked the same database.
    fn is_of_database_of(&self, other: &Self) -> bool {
        let identity =
            |run: &Self| Some(identity_of(run.family.as_deref()?, run.server.as_deref()?, run.database.as_deref()?));
        identity(self) == identity(other)
    }

    /// The verdict on the part of the database that the run was asked to check: `sound`, `corrupt`, `unknown`, or
    /// `failed`. For the verdict on the whole database, see [`DatabaseState`](crate::state::DatabaseState).
    pub fn verdict(&self) -> &'static str {
        match self {
            Self { error: Some(_), .. } => "failed",
            Self { findings: 1.., .. } => "corrupt",
            Self { complete: true, .. } => "sound",
            _ => "unknown",
        }
    }
}

/// A finding, with everything that the history has recorded about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FindingRow {
    /// The key of the finding.
    pub id: i64,
    /// The name of the database.
    pub database: String,
    /// The family: the database and all databases restored from its backups.
    pub family: String,
    /// The server of the database; empty if databases of one family count as one database, whatever their servers.
    pub server: String,
    /// `files` or `backup`.
    pub source: String,
    /// The machine or server to which the copy belongs.
    pub host: String,
    /// The path or URL of the copy.
    pub location: String,
    /// The state of the finding: `new`, `confirmed` or `gone`.
    pub life: String,
    /// The ID of the check.
    pub check_id: String,
    /// The number of the DBCC message.
    pub msg: u16,
    /// The state of the DBCC message.
    pub state: u8,
    /// The name of the object.
    pub object: Option<String>,
    /// The object ID.
    pub object_id: Option<i32>,
    /// The index ID.
    pub index_id: Option<i32>,
    /// The file ID.
    pub file: Option<u16>,
    /// The page number in the file.
    pub page: Option<u32>,
    /// The slot number on the page.
    pub slot: Option<u16>,
    /// The text of the message when the finding was last seen.
    pub text: String,
    /// When the finding was first seen.
    pub first_seen: String,
    /// When the finding was last seen.
    pub last_seen: String,
    /// When a run last looked for the finding.
    pub last_looked: String,
    /// The number of runs that saw the finding.
    pub seen: u64,
    /// The user who has acknowledged the finding.
    pub ack_by: Option<String>,
    /// Why the user has accepted the finding.
    pub ack_text: Option<String>,
    /// The point in time until which the finding is accepted.
    pub ack_until: Option<String>,
}

/// The row and page counts of a partition of a heap or index over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectRow {
    /// The name of the database.
    pub database: String,
    /// The name of the object, with its schema.
    pub object: String,
    /// The name of the index; empty for a heap.
    pub index: String,
    /// The partition number.
    pub partition: i32,
    /// The object ID.
    pub object_id: i32,
    /// The index ID.
    pub index_id: i32,
    /// The time of the first count of the partition within the requested time span.
    pub first_at: String,
    /// The numbers of rows and pages at the first count.
    pub first: (u64, u64),
    /// When the counts last changed.
    pub last_at: String,
    /// The numbers of rows and pages at the last count.
    pub last: (u64, u64),
    /// The time at which the partition was last proven to be sound. For an index that is checked by itself and also
    /// compared with its table, this is the older of the times of the two proofs.
    pub closed_at: Option<String>,
}

/// The changes between two runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// The earlier run.
    pub from: RunRow,
    /// The later run.
    pub to: RunRow,
    /// The findings that appeared.
    pub new: Vec<FindingRow>,
    /// The findings that disappeared.
    pub gone: Vec<FindingRow>,
    /// The number of findings that are open in both runs.
    pub open: u64,
}

pub(crate) const RUN: &str = "SELECT r.id, d.name, d.family, s.kind, r.host, r.paths, r.command, r.started, r.ended, i.taken_at, r.exit_status,
    r.complete, r.error, r.findings, r.findings_new, r.findings_gone, r.not_verified, r.bytes_read, r.pages_in_use, r.rows, r.seconds,
    r.cpu_seconds, r.memory_peak, d.server
    FROM run r LEFT JOIN database d ON d.id = r.database LEFT JOIN image i ON i.id = r.image LEFT JOIN source s ON s.id = i.source";

pub(crate) const FINDING: &str = "SELECT f.id, d.name, d.family, s.kind, s.host, s.location, f.life, f.check_id, f.msg, f.state, f.object_name,
    f.object_id, f.index_id, f.file, f.page, f.slot, f.text, f.first_seen, f.last_seen, f.last_looked, f.seen, f.ack_by, f.ack_text,
    f.ack_until, d.server
    FROM finding f JOIN source s ON s.id = f.source JOIN database d ON d.id = s.database";

/// Like [`RUN`], for HTML pages. Long texts are cut, so that many rows need little memory. Numbers outside their valid
/// range are replaced by valid numbers.
pub(crate) const RUN_OF_PAGE: &str = "SELECT r.id, substr(d.name, 1, 1000), substr(d.family, 1, 1000), s.kind, substr(r.host, 1, 1000),
    substr(r.paths, 1, 1000), substr(r.command, 1, 100), substr(r.started, 1, 40), substr(r.ended, 1, 40), substr(i.taken_at, 1, 40),
    r.exit_status & 255, r.complete, substr(r.error, 1, 1000), max(r.findings, 0), max(r.findings_new, 0), max(r.findings_gone, 0),
    max(r.not_verified, 0), max(r.bytes_read, 0), max(r.pages_in_use, 0), max(r.rows, 0), min(max(r.seconds, 0.0), 1e12),
    min(max(r.cpu_seconds, 0.0), 1e12), max(r.memory_peak, 0), substr(d.server, 1, 1000)
    FROM run r LEFT JOIN database d ON d.id = r.database LEFT JOIN image i ON i.id = r.image LEFT JOIN source s ON s.id = i.source";

/// Like [`FINDING`], for the HTML pages of one database. The columns that name the database and its copy are empty.
pub(crate) const FINDING_OF_PAGE: &str = "SELECT f.id, '', '', '', '', '', f.life, substr(f.check_id, 1, 100), f.msg & 65535, f.state & 255,
    substr(f.object_name, 1, 1000), min(max(f.object_id, -2147483648), 2147483647), min(max(f.index_id, -2147483648), 2147483647),
    CASE WHEN f.file BETWEEN 0 AND 65535 THEN f.file END, CASE WHEN f.page BETWEEN 0 AND 4294967295 THEN f.page END,
    CASE WHEN f.slot BETWEEN 0 AND 65535 THEN f.slot END, substr(f.text, 1, 2000), substr(f.first_seen, 1, 40), substr(f.last_seen, 1, 40),
    substr(f.last_looked, 1, 40), max(f.seen, 0), substr(f.ack_by, 1, 1000), substr(f.ack_text, 1, 1000), substr(f.ack_until, 1, 40), ''
    FROM finding f JOIN source s ON s.id = f.source";

pub(crate) fn run(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        id: row.get(0)?,
        database: row.get(1)?,
        family: row.get(2)?,
        source: row.get(3)?,
        host: row.get(4)?,
        paths: row.get(5)?,
        command: row.get(6)?,
        started: row.get(7)?,
        ended: row.get(8)?,
        taken_at: row.get(9)?,
        exit_status: row.get(10)?,
        complete: row.get(11)?,
        error: row.get(12)?,
        findings: row.get(13)?,
        findings_new: row.get(14)?,
        findings_gone: row.get(15)?,
        not_verified: row.get(16)?,
        bytes_read: row.get(17)?,
        pages_in_use: row.get(18)?,
        rows: row.get(19)?,
        seconds: row.get(20)?,
        cpu_seconds: row.get(21)?,
        memory_peak: row.get(22)?,
        server: row.get(23)?,
    })
}

pub(crate) fn finding(row: &Row<'_>) -> rusqlite::Result<FindingRow> {
    Ok(FindingRow {
        id: row.get(0)?,
        database: row.get(1)?,
        family: row.get(2)?,
        source: row.get(3)?,
        host: row.get(4)?,
        location: row.get(5)?,
        life: row.get(6)?,
        check_id: row.get(7)?,
        msg: row.get(8)?,
        state: row.get(9)?,
        object: row.get(10)?,
        object_id: row.get(11)?,
        index_id: row.get(12)?,
        file: row.get(13)?,
        page: row.get(14)?,
        slot: row.get(15)?,
        text: row.get(16)?,
        first_seen: row.get(17)?,
        last_seen: row.get(18)?,
        last_looked: row.get(19)?,
        seen: row.get(20)?,
        ack_by: row.get(21)?,
        ack_text: row.get(22)?,
        ack_until: row.get(23)?,
        server: row.get(24)?,
    })
}

impl History {
    /// The names of the databases that a filter selects, in alphabetical order.
    ///
    /// # Errors
    ///
    /// If the history cannot be read, or contains no database that the filter selects.
    pub fn database_names(&self, filter: &Filter) -> Result<Vec<String>> {
        let found = filter.databases(self.connection()).map_err(|error| self.failed(&error))?;
        match &filter.database {
            Some(name) if found.is_empty() => Err(HistoryError::Request(format!(
                "{}: has no database '{name}'; 'mdfsck history FILE' lists all databases",
                self.path().display()
            ))),
            _ => Ok(found.into_iter().map(|database| database.name).collect()),
        }
    }

    /// The runs that a filter selects, newest first.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn runs(&self, filter: &Filter) -> Result<Vec<RunRow>> {
        let query = format!("{RUN} WHERE {IS_WANTED} AND (?2 IS NULL OR r.started >= ?2) ORDER BY r.id DESC");
        self.rows(&query, &[text(&filter.database), text(&filter.since)], run)
    }

    /// The findings that a filter selects, ordered by database and object. If `is_all` is false, only open findings are
    /// returned; otherwise, findings that are gone are returned too. If the filter has a point in time, only findings
    /// whose state has changed since that time are returned.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn findings(&self, filter: &Filter, is_all: bool) -> Result<Vec<FindingRow>> {
        let query = format!(
            "{FINDING} WHERE {IS_WANTED} AND (?2 IS NULL OR f.since >= ?2) AND (?3 OR f.life <> 'gone') ORDER BY d.name, d.id, f.object_name, f.id"
        );
        self.rows(&query, &[text(&filter.database), text(&filter.since), Value::Integer(is_all.into())], finding)
    }

    /// The row and page counts of the objects that a filter selects, over time.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn objects(&self, filter: &Filter) -> Result<Vec<ObjectRow>> {
        let query = format!(
            "WITH counted AS (
                SELECT c.object, c.rows, c.pages, r.started, row_number() OVER (PARTITION BY c.object ORDER BY c.run) AS up,
                    row_number() OVER (PARTITION BY c.object ORDER BY c.run DESC) AS down
                FROM object_count c JOIN run r ON r.id = c.run WHERE ?2 IS NULL OR r.started >= ?2
            )
            SELECT d.name, o.schema_name || '.' || o.object_name, o.index_name, o.partition, o.object_id, o.index_id,
                a.started, a.rows, a.pages, z.started, z.rows, z.pages,
                (SELECT min(closed_at) FROM relation e WHERE e.object = o.id)
            FROM object o JOIN database d ON d.id = o.database
            JOIN counted a ON a.object = o.id AND a.up = 1 JOIN counted z ON z.object = o.id AND z.down = 1
            WHERE {IS_WANTED} ORDER BY d.name, d.id, o.schema_name, o.object_name, o.index_id, o.partition"
        );
        self.rows(&query, &[text(&filter.database), text(&filter.since)], |row| {
            Ok(ObjectRow {
                database: row.get(0)?,
                object: row.get(1)?,
                index: row.get(2)?,
                partition: row.get(3)?,
                object_id: row.get(4)?,
                index_id: row.get(5)?,
                first_at: row.get(6)?,
                first: (row.get(7)?, row.get(8)?),
                last_at: row.get(9)?,
                last: (row.get(10)?, row.get(11)?),
                closed_at: row.get(12)?,
            })
        })
    }

    /// The changes between two runs of one database. If `runs` is `None`, these are the last two runs of the database.
    ///
    /// # Errors
    ///
    /// If one of the runs does not exist, or the runs are of different databases.
    pub fn difference(&self, filter: &Filter, runs: Option<(i64, i64)>) -> Result<Difference> {
        let request = |what: String| HistoryError::Request(format!("{}: {what}", self.path().display()));
        let (from, to) = match runs {
            Some((from, to)) => {
                let of = |id: i64| {
                    let found = self.rows(&format!("{RUN} WHERE r.id = ?1"), &[Value::Integer(id)], run)?;
                    let missing = || request(format!("has no run {id}; 'mdfsck history FILE runs' lists them"));
                    found.into_iter().next().ok_or_else(missing)
                };
                (of(from.min(to))?, of(from.max(to))?)
            }
            None => {
                let mut found = self.runs(filter)?.into_iter().filter(|run| run.family.is_some());
                let to = found.next().ok_or_else(|| request("has no runs yet".to_owned()))?;
                let is_like = |run: &RunRow| run.is_of_database_of(&to);
                let from = found.find(is_like);
                (from.ok_or_else(|| request("has only one run: there is nothing to compare it with".to_owned()))?, to)
            }
        };
        if !from.is_of_database_of(&to) || from.family.is_none() {
            return Err(request(format!("runs {} and {} are of different databases", from.id, to.id)));
        }
        // A finding that appeared and disappeared between the two runs is left out.
        let changed = |life: &str, before: &str| {
            let query = format!(
                "{FINDING} WHERE d.id = (SELECT database FROM run WHERE id = ?2)
                 AND (SELECT life FROM finding_change WHERE finding = f.id AND run <= ?2 ORDER BY run DESC LIMIT 1) = ?3
                 AND coalesce((SELECT life FROM finding_change WHERE finding = f.id AND run <= ?1 ORDER BY run DESC LIMIT 1), 'gone') = ?4
                 ORDER BY f.object_name, f.id"
            );
            let (life, before) = (Value::Text(life.to_owned()), Value::Text(before.to_owned()));
            self.rows(&query, &[Value::Integer(from.id), Value::Integer(to.id), life, before], finding)
        };
        let (new, gone) = (changed("new", "gone")?, changed("gone", "new")?);
        let open = changed("new", "new")?.len() as u64;
        Ok(Difference { from, to, new, gone, open })
    }

    pub(crate) fn rows<T>(
        &self,
        query: &str,
        values: &[Value],
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let all = || {
            let mut statement = self.connection().prepare(query)?;
            let rows = statement.query_map(params_from_iter(values), |row| read(row))?;
            rows.collect::<rusqlite::Result<Vec<T>>>()
        };
        all().map_err(|error| self.failed(&error))
    }
}

fn text(value: &Option<String>) -> Value {
    value.clone().map_or(Value::Null, Value::Text)
}
