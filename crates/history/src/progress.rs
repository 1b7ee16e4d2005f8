//! Records the checks that are under way, and their progress. Each check has a row, which it removes when it ends. If a
//! check is killed, its row stays.

mod lists;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process;
use std::time::{Duration, SystemTime};

use catalog::Database;
use findings::Sample;
use rusqlite::{Row, params};
use source::PageSource;

use crate::error::Result;
use crate::file::History;
use crate::identity::{Identity, Naming, storable, whole};
use crate::stored::stored;
use crate::{lease, time};

use lists::{files_of, files_text, phases_of, phases_text, samples_of, samples_text};

/// The most samples that are stored for one check.
pub const MOST_SAMPLES: usize = 512;
/// The most phases that are stored for one check.
pub const MOST_PHASES: usize = 64;
/// The most files that are stored for one check.
pub const MOST_FILES: usize = 256;
/// The maximum number of cells that are stored for all files of one check together. A cell is a range of pages; see
/// [`Swept`].
pub const MOST_CELLS: usize = 4096;
/// The maximum number of checks, including killed ones, that a query reads.
const MOST_CHECKS: u32 = 200;
/// The most characters of the paths that are stored.
const PATH_CHARS: usize = 4000;
const NAME_CHARS: usize = 400;
const LIST_CHARS: u32 = 1 << 16;
/// How long a killed check is shown if its database is not checked again.
const KILLED: Duration = Duration::from_secs(7 * 86_400);
/// The time without recorded progress, in seconds, after which a check counts as killed if its process no longer
/// exists. A check records its progress at least every ten seconds.
const SILENCE_SECONDS: i64 = 15;

/// The progress of a check.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Course {
    /// The identity of the database; empty until the catalog is read.
    pub identity: String,
    /// The name of the database; empty until the catalog is read.
    pub name: String,
    /// The phases, each with the number of seconds from the start of the check to the start of the phase. The last
    /// phase is under way.
    pub phases: Vec<(&'static str, f64)>,
    /// The number of pages that the last phase has processed.
    pub done: u64,
    /// The number of pages that the last phase must process; 0 if unknown.
    pub pages: u64,
    /// The number of bytes of memory that the check may use.
    pub granted_bytes: Option<u64>,
    /// Samples of the resources that the process has used, the oldest first.
    pub samples: Vec<Sample>,
    /// The pages that the check has processed, by file.
    pub files: Vec<SweptFile>,
}

/// The pages of a file that a check has processed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SweptFile {
    /// The file ID.
    pub file: u16,
    /// The number of pages in the file.
    pub pages: u32,
    /// The number of consecutive pages that one cell describes.
    pub cell_pages: u32,
    /// The cells of the file, starting at page 0.
    pub cells: Vec<Swept>,
}

/// How many pages of a cell the check has processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Swept {
    /// No page of the cell was processed.
    Nothing,
    /// Some pages of the cell were processed.
    Some,
    /// All pages of the cell were processed.
    All,
}

/// A check that is under way, or was killed.
#[derive(Clone, PartialEq, Debug)]
pub struct RunningCheck {
    /// The number of the check.
    pub id: i64,
    /// The number of the database; `None` if the history does not contain the database.
    pub database: Option<i64>,
    /// The machine that runs the check.
    pub host: String,
    /// The process ID.
    pub pid: u32,
    /// The files that the check reads.
    pub paths: String,
    /// When the check began.
    pub started: String,
    /// When the check last recorded its progress.
    pub seen: String,
    /// Whether the check has not recorded any progress for too long. Either the check was killed, or it can no longer
    /// write to the history.
    pub is_stopped: bool,
    /// The progress of the check.
    pub course: Course,
}

/// Selects the checks that a query returns.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// All checks, without samples and files.
    All,
    /// The checks of the database with this identity.
    Database(&'a str),
    /// The check with this number.
    Number(i64),
}

/// The identity and the name of the database that a check reads.
pub fn subject(source: &dyn PageSource, database: &Database, naming: &Naming) -> (String, String) {
    let identity = Identity::of(&findings::summary(source, database), source, database, (naming, &time::now()));
    (identity.database, identity.name)
}

impl History {
    /// Registers a check of `paths` as under way and returns its number. Removes the rows of killed checks of the same
    /// files.
    ///
    /// # Errors
    /// If the history cannot be written.
    pub fn begin_progress(&mut self, paths: &[PathBuf], host: &str, started: SystemTime) -> Result<i64> {
        let paths: Vec<String> = paths.iter().map(|path| whole(path)).collect();
        let paths: String = paths.join(", ").chars().take(PATH_CHARS).collect();
        let now = SystemTime::now();
        let (oldest, started) = (time::text(now.checked_sub(KILLED).unwrap_or(now)), time::text(started));
        self.transaction(|transaction| {
            let mut same = transaction
                .prepare("SELECT id, pid, heartbeat FROM progress WHERE host = ?1 AND paths = ?2 ORDER BY id LIMIT 1000")?;
            let same = same.query_map(params![host, paths], |row| {
                Ok((row.get::<_, i64>(0)?, has_stopped((host, row.get(1)?, &row.get::<_, String>(2)?), (host, now))))
            })?;
            for (id, has_stopped) in same.collect::<rusqlite::Result<Vec<_>>>()? {
                if has_stopped {
                    transaction.execute("DELETE FROM progress WHERE id = ?1", [id])?;
                }
            }
            transaction.execute(
                "DELETE FROM progress WHERE heartbeat < ?1 OR id NOT IN (SELECT id FROM progress ORDER BY id DESC LIMIT ?2)",
                params![oldest, MOST_CHECKS - 1],
            )?;
            transaction.execute(
                "INSERT INTO progress (identity, name, host, pid, paths, started, heartbeat, done, pages, phases, series, map)
                 VALUES ('', '', ?1, ?2, ?3, ?4, ?5, 0, 0, '[]', '[]', '[]')",
                params![host, process::id(), paths, started, time::text(now)],
            )?;
            Ok(transaction.last_insert_rowid())
        })
    }

    /// Stores the progress of a check. Returns whether the history still contains the row of the check.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn note_progress(&mut self, id: i64, course: &Course) -> Result<bool> {
        let name: String = storable(&course.name).chars().take(NAME_CHARS).collect();
        let changed = self.transaction(|transaction| {
            transaction.execute(
                "UPDATE progress SET heartbeat = ?2, identity = ?3, name = ?4, done = ?5, pages = ?6, granted = ?7, phases = ?8,
                 series = ?9, map = ?10 WHERE id = ?1",
                params![
                    id,
                    time::now(),
                    course.identity,
                    name,
                    stored(course.done),
                    stored(course.pages),
                    course.granted_bytes.map(stored),
                    phases_text(&course.phases),
                    samples_text(&course.samples),
                    files_text(&course.files),
                ],
            )
        })?;
        Ok(changed > 0)
    }

    /// Removes the row of a check that has ended.
    ///
    /// # Errors
    /// If the history cannot be written.
    pub fn end_progress(&mut self, id: i64) -> Result<()> {
        self.transaction(|transaction| transaction.execute("DELETE FROM progress WHERE id = ?1", [id])).map(drop)
    }

    /// The checks that are under way or were killed, newest first, at most `most`. A killed check is left out if its
    /// database was checked later. `host` is the name of this machine: only for checks on this machine can the program
    /// see whether the process still exists.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn running_checks(&self, which: Which<'_>, host: &str, most: u32) -> Result<Vec<RunningCheck>> {
        let (is_whole, filter, value): (bool, &str, rusqlite::types::Value) = match which {
            Which::All => (false, "?1 IS NULL", rusqlite::types::Value::Null),
            Which::Database(identity) => (true, "p.identity = ?1 AND ?1 <> ''", identity.to_owned().into()),
            Which::Number(id) => (true, "p.id = ?1", id.into()),
        };
        let lists = match is_whole {
            true => format!("substr(p.series, 1, {LIST_CHARS}), substr(p.map, 1, {LIST_CHARS})"),
            false => "'', ''".to_owned(),
        };
        // Times are stored in whole seconds. So a run that has the same start time as the check may have begun before
        // the check, and is not taken for a later run.
        let query = format!(
            "SELECT p.id, d.id, substr(p.host, 1, {NAME_CHARS}), p.pid, substr(p.paths, 1, {PATH_CHARS}), substr(p.started, 1, 40),
                 substr(p.heartbeat, 1, 40), substr(p.identity, 1, {NAME_CHARS}), substr(p.name, 1, {NAME_CHARS}), max(p.done, 0),
                 max(p.pages, 0), max(p.granted, 0), substr(p.phases, 1, {LIST_CHARS}), {lists},
                 EXISTS (SELECT 1 FROM run r WHERE r.database = d.id AND r.started > p.started)
             FROM progress p LEFT JOIN database d ON d.identity = p.identity
             WHERE {filter} ORDER BY p.id DESC LIMIT {MOST_CHECKS}"
        );
        let now = SystemTime::now();
        let found = self.rows(&query, &[value], |row| Ok((check(row, (host, now))?, row.get::<_, bool>(15)?)))?;
        let is_shown = |(check, was_checked_since): &(RunningCheck, bool)| !(check.is_stopped && *was_checked_since);
        Ok(found.into_iter().filter(is_shown).map(|(check, _)| check).take(most as usize).collect())
    }
}

fn check(row: &Row<'_>, seen_from: (&str, SystemTime)) -> rusqlite::Result<RunningCheck> {
    let (host, pid, seen): (String, i64, String) = (row.get(2)?, row.get(3)?, row.get(6)?);
    let text = |at: usize| row.get::<_, String>(at);
    Ok(RunningCheck {
        id: row.get(0)?,
        database: row.get(1)?,
        is_stopped: has_stopped((&host, pid, &seen), seen_from),
        host,
        pid: u32::try_from(pid).unwrap_or_default(),
        paths: row.get(4)?,
        started: row.get(5)?,
        seen,
        course: Course {
            identity: row.get(7)?,
            name: row.get(8)?,
            done: row.get(9)?,
            pages: row.get(10)?,
            granted_bytes: row.get(11)?,
            phases: phases_of(&text(12)?),
            samples: samples_of(&text(13)?),
            files: files_of(&text(14)?),
        },
    })
}

/// Whether a check was killed, as seen from machine `own` at `now`. For a check on another machine, only the time since
/// its last progress is known. The clocks of the two machines may differ.
fn has_stopped((host, pid, seen): (&str, i64, &str), (own, now): (&str, SystemTime)) -> bool {
    let silent = time::seconds(&time::text(now)).zip(time::seconds(seen)).map(|(now, seen)| now - seen);
    let is_gone = u32::try_from(pid).is_ok_and(|pid| lease::has_ended(host, pid, own));
    is_gone && silent.is_none_or(|seconds| seconds >= SILENCE_SECONDS) || lease::is_silent(seen, now)
}
