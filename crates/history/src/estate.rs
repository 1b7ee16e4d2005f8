//! Queries for an overview of all databases, in which the databases with the worst state come first. Also queries for
//! the details of one database or one run; each query returns a limited number of rows.

use std::time::SystemTime;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params};

use crate::coverage::{Coverage, Range, each_range};
use crate::error::Result;
use crate::file::History;
use crate::identity::identity_of;
use crate::lease;
use crate::query::{FINDING_OF_PAGE, Filter, FindingRow, IS_WANTED, Named, RUN_OF_PAGE, RunRow, finding, run};
use crate::state::{self, DatabaseState, SourceRow};
use crate::time;

/// A database in the overview.
#[derive(Clone, PartialEq, Debug)]
pub struct DatabaseRow {
    /// The number of the database.
    pub id: i64,
    /// The name of the database.
    pub name: String,
    /// The family: the database and all databases restored from its backups.
    pub family: String,
    /// The server of the database; empty if databases of one family count as one database, whatever their servers.
    pub server: String,
    /// The copy of the database that the history recorded first.
    pub source: Option<SourceRow>,
    /// The number of copies of the database that the history knows.
    pub sources: u64,
    /// The state of the database, and the reason if it is not sound.
    pub state: DatabaseState,
    /// The last run over the database.
    pub run: Option<RunRow>,
    /// The open findings of the database.
    pub open: OpenFindings,
    /// The age of the reads and proofs of the database.
    pub coverage: Coverage,
    /// The last runs over the database, the oldest first.
    pub trend: Vec<TrendPoint>,
    /// The check of the database that is under way, if any.
    pub under_way: Option<UnderWay>,
}

/// The numbers of open findings, by state. Each finding is counted in exactly one state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenFindings {
    /// Findings that only one run has seen.
    pub new: u64,
    /// Findings that a later run has seen again.
    pub confirmed: u64,
    /// Findings that a user has acknowledged; see [`History::acknowledge`].
    pub acknowledged: u64,
}

impl OpenFindings {
    /// The number of all open findings.
    pub fn all(&self) -> u64 {
        self.new + self.confirmed + self.acknowledged
    }
}

/// A run in the trend of a database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrendPoint {
    /// When the run began.
    pub started: String,
    /// The number of findings of the run.
    pub findings: u64,
    /// Whether the run verified everything that it was asked to verify.
    pub complete: bool,
}

/// A check that is under way.
#[derive(Clone, PartialEq, Debug)]
pub struct UnderWay {
    /// The machine that runs the check.
    pub host: String,
    /// When the check began.
    pub started: String,
    /// If the check runs in a time window: the number of seconds that it may take, and the numbers of ranges and bytes
    /// that it has read so far.
    pub window: Option<(f64, u64, u64)>,
}

/// The number of databases in each state, see [`DatabaseState`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct States {
    /// Databases that have no open findings, and of which every known copy was checked in full.
    pub sound: u64,
    /// Databases with open findings.
    pub corrupt: u64,
    /// Databases that have no open findings, but of which some part was not verified or some copy was not checked in
    /// full.
    pub unknown: u64,
}

/// A place that a run could not verify.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotVerifiedRow {
    /// The ID of the limit that prevented the verification.
    pub limit_id: String,
    /// What was not verified.
    pub what: String,
    /// The object, page or file that was not verified.
    pub scope: String,
    /// The reason why it was not verified.
    pub reason: String,
    /// The number of places that were not verified because of this limit and for this reason.
    pub count: u64,
}

/// The page that a finding is about: its database, its page number and the files that contain it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageOfFinding {
    /// The number of the database.
    pub database: i64,
    /// The name of the database.
    pub name: String,
    /// The file ID and the page number.
    pub page: Option<(u16, u32)>,
    /// The files in which the finding was last seen. The run that saw the finding recorded their paths.
    pub paths: String,
    /// When the finding was last seen.
    pub last_seen: String,
    /// The machine that has these files.
    pub host: String,
    /// The numbers of the backup sets in the files that the run checked; empty for data files. `None` if the run
    /// restored the database from several backup sets in several files.
    pub sets: Option<Vec<u16>>,
    /// The family of the database: the text begins with the GUID that the database and its copies share, if they have
    /// such a GUID.
    pub family: String,
}

/// Reads the numbers of the backup sets from the identity of a backup's image. The identity consists of a GUID, the set
/// numbers, and the time at which the backup was finished. `None` if the identity names several images.
fn sets_of(identity: &str) -> Option<Vec<u16>> {
    if identity.contains(" + ") {
        return None;
    }
    identity.split(' ').nth(1)?.split('+').map(|number| number.parse().ok()).collect()
}

/// Reads a database from four columns of a row. `at` is the index of the first of these columns.
fn named(row: &Row<'_>, at: usize) -> rusqlite::Result<Named> {
    Ok(Named { id: row.get(at)?, family: row.get(at + 1)?, server: row.get(at + 2)?, name: row.get(at + 3)? })
}

impl DatabaseRow {
    /// A text that distinguishes the database from all others.
    pub fn identity(&self) -> String {
        identity_of(&self.family, &self.server, &self.name)
    }
}

impl History {
    /// Passes the databases that `filter` selects to `take`, the worst first, until `take` returns false. The trend of
    /// each database has at most `runs` runs. Returns the number of databases in each state.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn estate(&self, filter: &Filter, runs: u32, mut take: impl FnMut(DatabaseRow) -> bool) -> Result<States> {
        let now = time::text(SystemTime::now());
        let mut read = || {
            let mut states = States::default();
            // The open findings of all copies of a database are counted. A finding in one copy stays open even if
            // another copy is sound.
            let mut statement = self.connection().prepare_cached(&format!(
                "WITH {}, opened AS (
                     SELECT s.database, count(*) AS open, sum(f.life = 'new' AND NOT (f.ack_by IS NOT NULL
                         AND coalesce(f.ack_until > ?2, 1))) AS new
                     FROM finding f JOIN source s ON s.id = f.source WHERE f.life <> 'gone' GROUP BY s.database
                 )
                 SELECT {}, d.id, substr(d.family, 1, 400), substr(d.server, 1, 400), substr(d.name, 1, 400), {} AS class
                 FROM database d {} LEFT JOIN run r ON r.id = (SELECT max(id) FROM run WHERE database = d.id)
                 LEFT JOIN opened o ON o.database = d.id
                 WHERE {IS_WANTED} ORDER BY class, o.new DESC, o.open DESC, r.started, d.name, d.id",
                state::parts(),
                state::COLUMNS,
                state::CLASS,
                state::JOINS
            ))?;
            let mut rows = statement.query(params![filter.database, now])?;
            let mut is_wanted = true;
            while let Some(row) = rows.next()? {
                match row.get(13)? {
                    0 => states.corrupt += 1,
                    1 => states.unknown += 1,
                    _ => states.sound += 1,
                }
                if is_wanted {
                    is_wanted = take(self.row_of(named(row, 9)?, state::read(row)?, runs, &now)?);
                }
            }
            Ok(states)
        };
        read().map_err(|error| self.failed(&error))
    }

    /// The database with the row ID `id`, with at most `runs` runs in its trend; `None` if there is no such database.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn database_row(&self, id: i64, runs: u32) -> Result<Option<DatabaseRow>> {
        let now = time::text(SystemTime::now());
        let read = || {
            let mut statement = self.connection().prepare_cached(&format!(
                "WITH {} SELECT {}, d.id, substr(d.family, 1, 400), substr(d.server, 1, 400), substr(d.name, 1, 400) FROM database d {} WHERE d.id = ?1",
                state::parts(),
                state::COLUMNS,
                state::JOINS
            ))?;
            let found = statement.query_row([id], |row| Ok((named(row, 9)?, state::read(row)?))).optional()?;
            found.map(|(database, state)| self.row_of(database, state, runs, &now)).transpose()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Like [`Self::database_row`], for a database of which the caller already knows the state. This avoids reading all
    /// runs to find the state.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn database_row_with(&self, id: i64, runs: u32, state: DatabaseState) -> Result<Option<DatabaseRow>> {
        let now = time::text(SystemTime::now());
        let read = || {
            let query = "SELECT id, substr(family, 1, 400), substr(server, 1, 400), substr(name, 1, 400) FROM database WHERE id = ?1";
            let mut statement = self.connection().prepare_cached(query)?;
            let found = statement.query_row([id], |row| named(row, 0)).optional()?;
            found.map(|database| self.row_of(database, state, runs, &now)).transpose()
        };
        read().map_err(|error| self.failed(&error))
    }

    fn row_of(&self, database: Named, state: DatabaseState, runs: u32, now: &str) -> rusqlite::Result<DatabaseRow> {
        let Named { id, family, server, name } = database.clone();
        let connection = self.connection();
        let mut last =
            connection.prepare_cached(&format!("{RUN_OF_PAGE} WHERE r.database = ?1 ORDER BY r.id DESC LIMIT 1"))?;
        let mut source = connection.prepare_cached(
            "SELECT kind, substr(host, 1, 400), substr(location, 1, 400), count(*) OVER () FROM source WHERE database = ?1
             ORDER BY id LIMIT 1",
        )?;
        let source = source.query_row([id], |row| {
            Ok((SourceRow { kind: row.get(0)?, host: row.get(1)?, location: row.get(2)? }, row.get(3)?))
        });
        let (source, sources) = source.optional()?.map_or((None, 0), |(source, count)| (Some(source), count));
        let mut open = connection.prepare_cached(
            "SELECT coalesce(sum(ack), 0), coalesce(sum(NOT ack AND life = 'new'), 0), coalesce(sum(NOT ack AND life <> 'new'), 0)
             FROM (SELECT f.life, f.ack_by IS NOT NULL AND coalesce(f.ack_until > ?2, 1) AS ack
                 FROM finding f JOIN source s ON s.id = f.source WHERE s.database = ?1 AND f.life <> 'gone')",
        )?;
        let open = open.query_row(params![id, now], |row| {
            Ok(OpenFindings { acknowledged: row.get(0)?, new: row.get(1)?, confirmed: row.get(2)? })
        })?;
        let mut trend = connection.prepare_cached(
            "SELECT substr(started, 1, 40), max(findings, 0), complete FROM run WHERE database = ?1 ORDER BY id DESC LIMIT ?2",
        )?;
        let trend = trend.query_map(params![id, runs], |row| {
            Ok(TrendPoint { started: row.get(0)?, findings: row.get(1)?, complete: row.get(2)? })
        })?;
        let mut trend = trend.collect::<rusqlite::Result<Vec<_>>>()?;
        trend.reverse();
        Ok(DatabaseRow {
            id,
            name,
            family,
            server,
            source,
            sources,
            state,
            run: last.query_row([id], run).optional()?,
            open,
            coverage: self.coverage_of(database, "")?,
            trend,
            under_way: self.under_way(id)?,
        })
    }

    /// The process that is working on a database. `None` if no process has renewed its lease on the database recently.
    fn under_way(&self, database: i64) -> rusqlite::Result<Option<UnderWay>> {
        let Some((host, started)) = lease::worker(self.connection(), database, SystemTime::now())? else {
            return Ok(None);
        };
        let mut window = self.connection().prepare_cached(
            "SELECT min(max(w.allowed_seconds, 0.0), 1e12), max(w.ranges, 0), max(w.bytes, 0) FROM window w JOIN image i ON i.id = w.image
             JOIN source s ON s.id = i.source WHERE s.database = ?1 ORDER BY w.id DESC LIMIT 1",
        )?;
        let window = window.query_row([database], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
        Ok(Some(UnderWay { host, started, window }))
    }

    /// The copies of a database, at most `most`.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn sources(&self, database: i64, most: u32) -> Result<Vec<SourceRow>> {
        let query = "SELECT kind, substr(host, 1, 1000), substr(location, 1, 1000) FROM source WHERE database = ?1 ORDER BY id LIMIT ?2";
        self.rows(query, &[database.into(), most.into()], |row| {
            Ok(SourceRow { kind: row.get(0)?, host: row.get(1)?, location: row.get(2)? })
        })
    }

    /// Passes each range of a database to `take`, ordered by file and first page.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn ranges(&self, database: i64, take: impl FnMut(Range)) -> Result<()> {
        each_range(self.connection(), database, take).map_err(|error| self.failed(&error))
    }

    /// The newest runs of a database, at most `most`, newest first.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn runs_of(&self, database: i64, most: u32) -> Result<Vec<RunRow>> {
        let query = format!("{RUN_OF_PAGE} WHERE r.database = ?1 ORDER BY r.id DESC LIMIT ?2");
        self.rows(&query, &[database.into(), most.into()], run)
    }

    /// The newest failed runs, at most `most`, newest first. A failed run is left out if a later run was able to check
    /// the same files.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn failed_runs(&self, most: u32) -> Result<Vec<RunRow>> {
        let is_same_place = state::is_same_place("l.paths", "rtrim(r.paths, '/\\')");
        let query = format!(
            "{RUN_OF_PAGE} WHERE r.error IS NOT NULL AND NOT EXISTS (SELECT 1 FROM run l WHERE l.id > r.id AND l.error IS NULL
             AND l.host = r.host AND rtrim(r.paths, '/\\') <> '' AND {is_same_place}) ORDER BY r.id DESC LIMIT ?1"
        );
        self.rows(&query, &[most.into()], run)
    }

    /// A run by its number, with the number of its database.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn run(&self, id: i64) -> Result<Option<(RunRow, Option<i64>)>> {
        let found = self.rows(&format!("{RUN_OF_PAGE} WHERE r.id = ?1"), &[id.into()], run)?.pop();
        let database = "SELECT database FROM run WHERE id = ?1";
        let database = self.rows(database, &[id.into()], |row| row.get(0))?.pop().flatten();
        Ok(found.map(|run| (run, database)))
    }

    /// The number of runs over a database, and the number of its findings, including those that are gone.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn counts(&self, database: i64) -> Result<(u64, u64)> {
        let query = "SELECT (SELECT count(*) FROM run WHERE database = ?1),
             (SELECT count(*) FROM finding f JOIN source s ON s.id = f.source WHERE s.database = ?1)";
        let counts = self.connection().query_row(query, [database], |row| Ok((row.get(0)?, row.get(1)?)));
        counts.map_err(|error| self.failed(&error))
    }

    /// The findings of a database, at most `most`: open findings first, ordered by object.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn findings_of(&self, database: i64, most: u32) -> Result<Vec<FindingRow>> {
        let query = format!(
            "{FINDING_OF_PAGE} WHERE s.database = ?1 ORDER BY f.life = 'gone', f.object_name, f.index_id, f.check_id, f.id LIMIT ?2"
        );
        self.rows(&query, &[database.into(), most.into()], finding)
    }

    /// Findings that appeared or disappeared in a run, at most `most`, each with its change.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn changes_of(&self, id: i64, most: u32) -> Result<Vec<(FindingRow, String)>> {
        let query = format!("{FINDING_OF_PAGE} WHERE f.id = ?1");
        let changes = "SELECT finding, life FROM finding_change WHERE run = ?1 ORDER BY life DESC, finding LIMIT ?2";
        let changes: Vec<(i64, String)> =
            self.rows(changes, &[id.into(), most.into()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut found = Vec::new();
        for (key, life) in changes {
            found.extend(self.rows(&query, &[key.into()], finding)?.into_iter().map(|finding| (finding, life.clone())));
        }
        Ok(found)
    }

    /// The places that a run could not verify, at most `most`.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn not_verified(&self, run: i64, most: u32) -> Result<Vec<NotVerifiedRow>> {
        let query =
            "SELECT substr(limit_id, 1, 100), substr(what, 1, 1000), substr(scope, 1, 1000), substr(reason, 1, 1000), max(count, 0)
             FROM not_verified WHERE run = ?1 ORDER BY rowid LIMIT ?2";
        self.rows(query, &[Value::Integer(run), most.into()], |row| {
            Ok(NotVerifiedRow {
                limit_id: row.get(0)?,
                what: row.get(1)?,
                scope: row.get(2)?,
                reason: row.get(3)?,
                count: row.get(4)?,
            })
        })
    }

    /// The page that a finding is about; `None` if the history has no finding with this key.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn page_of_finding(&self, key: i64) -> Result<Option<PageOfFinding>> {
        let query = "SELECT s.database, substr(d.name, 1, 1000), CASE WHEN f.file BETWEEN 0 AND 65535 THEN f.file END,
             CASE WHEN f.page BETWEEN 0 AND 4294967295 THEN f.page END, substr(coalesce(r.paths, s.location), 1, 100000), f.last_seen,
             substr(coalesce(r.host, s.host), 1, 1000), s.kind, substr(i.identity, 1, 1000), substr(d.family, 1, 1000)
             FROM finding f JOIN source s ON s.id = f.source JOIN database d ON d.id = s.database LEFT JOIN run r ON r.id = f.last_run
             LEFT JOIN image i ON i.id = f.last_image WHERE f.id = ?1";
        let found = self.rows(query, &[key.into()], |row| {
            let (file, page): (Option<u16>, Option<u32>) = (row.get(2)?, row.get(3)?);
            let (kind, identity): (String, Option<String>) = (row.get(7)?, row.get(8)?);
            let sets = if kind == "backup" { identity.as_deref().and_then(sets_of) } else { Some(Vec::new()) };
            Ok(PageOfFinding {
                database: row.get(0)?,
                name: row.get(1)?,
                page: file.zip(page),
                paths: row.get(4)?,
                last_seen: row.get(5)?,
                host: row.get(6)?,
                sets,
                family: row.get(9)?,
            })
        });
        Ok(found?.pop())
    }
}

#[cfg(test)]
mod tests {
    use super::sets_of;

    #[test]
    fn the_sets_of_a_backup_are_in_its_identity() {
        assert_eq!(sets_of("0a1b 1 2026-11-21 22:00:00"), Some(vec![1]));
        assert_eq!(sets_of(" 3+2 2026-11-21 22:00:00"), Some(vec![3, 2]));
        assert_eq!(sets_of("a 1 x + b 2 y"), None);
        assert_eq!(sets_of("a x y"), None);
        assert_eq!(sets_of(""), None);
    }
}
