//! Time windows. A check that takes longer than one night continues in the time window of the next night. For this, the
//! history stores the ranges that were read, the results that need not be computed again, the speed of reading, and the
//! age of reads and proofs.

pub mod pace;
pub mod promise;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use catalog::Database;
use findings::RangeRead;
use format::page::PAGE_BYTES;
use rusqlite::{Connection, Transaction, params};
use source::PageSource;

use crate::coverage::{self, Row, TableProof, depth_of, promised, tables_of};
use crate::error::{HistoryError, Result};
use crate::file::History;
use crate::identity::{Identity, Ids, Naming};
use crate::lease::{self, Lease};
use crate::outbox::Raised;
use crate::stored::stored;
use crate::time;

use pace::{Swept, WINDOWS};
use promise::Range;

/// The maximum number of pages with new findings that are taken into account. The ranges that contain these pages are
/// read first, to see whether the findings are still there.
const MOST_DOUBTED: u32 = 100_000;
/// The assumed time between two time windows, while the real time is unknown.
const A_DAY: Duration = Duration::from_secs(86_400);
/// Limits for the time between two time windows, in seconds. A shorter or longer time is replaced by the nearest limit.
const RHYTHM_SECONDS: [i64; 2] = [43_200, 31 * 86_400];

/// The data that is needed to open a time window.
pub struct Opening<'a> {
    /// The source of the pages that the check reads.
    pub source: &'a dyn PageSource,
    /// The catalog of the database.
    pub database: &'a Database,
    /// The name of this machine, and the settings by which the machine identifies the database.
    pub naming: &'a Naming,
    /// When the window begins.
    pub started: SystemTime,
    /// How long the window may take.
    pub allowed: Duration,
    /// Whether the check has full depth, in which links, keys and rows are compared.
    pub is_full: bool,
}

/// An open time window. While it is open, no other process may work on its database.
#[derive(Debug)]
pub struct Window {
    id: i64,
    ids: Ids,
    depth: &'static str,
    taken_at: String,
    lease: Lease,
}

impl Window {
    /// The point in time of the image that is read in this time window.
    pub fn taken_at(&self) -> &str {
        &self.taken_at
    }

    /// The lease on the database.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }
}

/// A part: the stored result for one range of an image. Parts are kept until all ranges of the image have been read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartRow {
    /// Whether every page of the range could be read.
    pub is_read: bool,
    /// A fingerprint of those pages of the range that have findings; `None` if no page has findings.
    pub held: Option<String>,
    /// The start of the time window in which the range was read.
    pub started: String,
}

/// What the history knows about a database before or after a time window.
#[derive(Clone, PartialEq, Debug)]
pub struct Known {
    /// The ranges of the database, ordered by file and page.
    pub ranges: Vec<Range>,
    /// The file ID, first page and number of pages of each range in `ranges`.
    pub places: Vec<(u16, u32, u32)>,
    /// For each of the last time windows: the number of bytes that were read, and the number of seconds that reading
    /// and checking them took. The newest time window comes first.
    pub windows: Vec<Swept>,
    /// The time from the start of a time window to the start of the next one.
    pub every: Duration,
    /// The time since which the history has known the database, in seconds since 1970.
    pub known_since: i64,
    /// The point in time of the last image that was read completely, in seconds since 1970.
    pub closed: Option<i64>,
    /// The numbers of heaps, indexes and index comparisons, and how many of them are proven to be sound.
    pub relations: Relations,
    /// The proofs of all tables, the oldest first.
    pub tables: Vec<TableProof>,
}

impl Known {
    /// The time of the oldest proof of a table, in seconds since 1970; `None` if a table was never proven, or if there is
    /// none.
    pub fn oldest_proof(&self) -> Option<i64> {
        self.tables.first().and_then(|table| time::seconds(table.proven_at.as_deref()?))
    }
}

/// The number of relations of a database, and how many of them are proven to be sound. A relation is a heap or index
/// that is checked by itself, or an index that is compared with its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Relations {
    /// The number of heaps and indexes that are checked by themselves.
    pub units: u64,
    /// How many of the `units` are proven to be sound.
    pub units_sound: u64,
    /// The number of indexes that are compared with their tables.
    pub pairs: u64,
    /// How many of the `pairs` are proven to be sound.
    pub pairs_sound: u64,
}

/// A range that has been read and checked.
#[derive(Clone, Copy, Debug)]
pub struct Done<'a> {
    /// The range, in the form in which it was passed when the time window was opened.
    pub range: &'a RangeRead,
    /// Whether every page of the range could be read.
    pub is_read: bool,
    /// Whether there are findings on the pages of the range.
    pub has_findings: bool,
    /// The key under which the result is stored: the plan of the check, and the number of the task that read this
    /// range. `None` if the result cannot be used again.
    pub part: Option<(&'a str, u32)>,
    /// A fingerprint of those pages of the range that have findings.
    pub held: Option<&'a str>,
    /// The number of bytes in the range, and the number of seconds that reading and checking it took.
    pub swept: Swept,
}

impl History {
    /// Opens a time window.
    ///
    /// # Errors
    ///
    /// [`HistoryError::Leased`] if another process is using this database; another error if the history cannot be
    /// written.
    pub fn open_window(&mut self, opening: &Opening<'_>) -> Result<Window> {
        let now = SystemTime::now();
        let (now_text, started) = (time::text(now), time::text(opening.started));
        let identity = identity(opening, &started);
        let depth = depth_of(opening.is_full);
        let opened = self.transaction(|transaction| {
            let ids = identity.ids(transaction, &now_text)?;
            let lease = match lease::take(transaction, ids.database, (&opening.naming.host, now))? {
                Ok(lease) => lease,
                Err(by) => return Ok(Err(by)),
            };
            transaction.execute(
                "INSERT INTO window (image, started, ended, allowed_seconds, ranges, bytes, seconds)
                 VALUES (?1, ?2, ?3, ?4, 0, 0, 0.0)",
                params![ids.image, started, now_text, opening.allowed.as_secs_f64()],
            )?;
            let id = transaction.last_insert_rowid();
            Ok(Ok(Window { id, ids, depth, taken_at: identity.taken_at.clone(), lease }))
        })?;
        opened.map_err(|by| HistoryError::Leased { path: self.path().to_owned(), by })
    }

    /// Divides the stored read dates of a database at the bounds of the ranges `tiles`, which cover all of its pages.
    /// Returns what the history knows about these ranges.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn known_of(&mut self, window: &Window, tiles: &[RangeRead]) -> Result<Known> {
        let now = time::text(SystemTime::now());
        let Window { ids, depth, taken_at, .. } = window;
        self.transaction(|transaction| {
            coverage::retile(transaction, (ids.database, depth), tiles, (taken_at, &now))?;
            known(transaction, *ids, (depth, tiles), &now)
        })
    }

    /// Returns the stored parts of a plan. Their results can be used again. The key is the number of the task.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn parts(&self, plan: &str) -> Result<BTreeMap<u32, PartRow>> {
        let read = || {
            let mut statement = self.connection().prepare(
                "SELECT p.task, p.is_read, p.held, w.started FROM part p JOIN window w ON w.id = p.window WHERE p.plan = ?1",
            )?;
            let rows = statement.query_map([plan], |row| {
                Ok((row.get(0)?, PartRow { is_read: row.get(1)?, held: row.get(2)?, started: row.get(3)? }))
            })?;
            rows.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Deletes the parts of a plan.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn forget_parts(&mut self, plan: &str) -> Result<()> {
        self.transaction(|transaction| transaction.execute("DELETE FROM part WHERE plan = ?1", [plan])).map(drop)
    }

    /// Deletes the parts of all plans that are not in `plans`, because those plans no longer exist.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn keep_parts(&mut self, plans: &BTreeSet<String>) -> Result<()> {
        self.transaction(|transaction| {
            let mut known = transaction.prepare("SELECT DISTINCT plan FROM part")?;
            let known = known.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
            for plan in known.iter().filter(|plan| !plans.contains(*plan)) {
                transaction.execute("DELETE FROM part WHERE plan = ?1", [plan])?;
            }
            Ok(())
        })
    }

    /// Records in one transaction that a range was read and checked. If the range has findings, its date is recorded
    /// only when [`History::record`] stores these findings. So if the run is killed before, the range counts as unread.
    ///
    /// # Errors
    ///
    /// [`HistoryError::Leased`] if another process has taken the lease meanwhile; another error if the history cannot
    /// be written.
    pub fn range_done(&mut self, window: &Window, done: &Done<'_>) -> Result<()> {
        let now = time::text(SystemTime::now());
        let Window { id, ids, depth, taken_at, lease } = window;
        let is_own = self.transaction(|transaction| {
            if lease::beat(transaction, lease, &now)? == 0 {
                return Ok(false);
            }
            if done.is_read && !done.has_findings {
                coverage::mark(transaction, (ids.database, depth), done.range, (taken_at, ids.image), &now)?;
            }
            if let Some((plan, task)) = done.part {
                transaction.execute(
                    "INSERT OR REPLACE INTO part (plan, task, window, is_read, held) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![plan, task, id, done.is_read, done.held],
                )?;
            }
            transaction.execute(
                "UPDATE window SET ended = ?2, ranges = ranges + 1, bytes = bytes + ?3, seconds = seconds + ?4 WHERE id = ?1",
                params![id, now, stored(done.swept.bytes), done.swept.seconds],
            )?;
            Ok(true)
        })?;
        if is_own { Ok(()) } else { Err(self.leased()) }
    }

    /// Ends a time window, so that other processes may work on its database.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn end_window(&mut self, window: &Window) -> Result<()> {
        let now = time::text(SystemTime::now());
        self.transaction(|transaction| {
            transaction.execute("UPDATE window SET ended = ?2 WHERE id = ?1", params![window.id, now])
        })?;
        self.release(&window.lease)
    }

    /// Adds to the totals of a time window, and renews its lease.
    ///
    /// # Errors
    /// [`HistoryError::Leased`] if another process has taken the lease meanwhile; another error if the history cannot
    /// be written.
    pub fn window_went_on(&mut self, window: &Window, ranges: u64, swept: Swept) -> Result<()> {
        let now = time::text(SystemTime::now());
        let is_own = self.transaction(|transaction| {
            if lease::beat(transaction, &window.lease, &now)? == 0 {
                return Ok(false);
            }
            transaction.execute(
                "UPDATE window SET ended = ?2, ranges = ranges + ?3, bytes = bytes + ?4, seconds = seconds + ?5 WHERE id = ?1",
                params![window.id, now, stored(ranges), stored(swept.bytes), swept.seconds],
            )?;
            Ok(true)
        })?;
        if is_own { Ok(()) } else { Err(self.leased()) }
    }

    fn leased(&self) -> HistoryError {
        HistoryError::Leased { path: self.path().to_owned(), by: "another process".to_owned() }
    }

    /// Returns what the history knows about a database now, for each range in `ranges`. If `ranges` is empty, the
    /// result is for the stored ranges.
    ///
    /// # Errors
    ///
    /// If the history cannot be read or written.
    pub fn known(&mut self, opening: &Opening<'_>, ranges: &[RangeRead]) -> Result<Known> {
        let now = time::text(SystemTime::now());
        let identity = identity(opening, &time::text(opening.started));
        self.transaction(|transaction| {
            let ids = identity.ids(transaction, &now)?;
            known(transaction, ids, (depth_of(opening.is_full), ranges), &now)
        })
    }

    /// Returns the number of bytes read, and the number of seconds needed, in each of the last time windows in which a
    /// copy of the database was read. The newest time window comes first. Does not change the history.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn swept(&self, opening: &Opening<'_>) -> Result<Vec<Swept>> {
        let source = identity(opening, &time::text(opening.started)).source(self.connection());
        let swept = source.and_then(|source| match source {
            Some(source) => windows(self.connection(), source).map(|(swept, _)| swept),
            None => Ok(Vec::new()),
        });
        swept.map_err(|error| self.failed(&error))
    }
}

impl Opening<'_> {
    /// An alarm about the database of this time window, with the given text.
    pub fn raised(&self, text: String) -> Raised {
        let Identity { family, server, name, .. } = identity(self, "");
        Raised { family, server, name, text }
    }
}

fn identity(opening: &Opening<'_>, now: &str) -> Identity {
    let summary = findings::summary(opening.source, opening.database);
    Identity::of(&summary, opening.source, opening.database, (opening.naming, now))
}

/// What the history knows about a database at `now`. A date after `now` comes from a wrong clock and is ignored.
fn known(
    transaction: &Transaction<'_>,
    ids: Ids,
    (depth, tiles): (&str, &[RangeRead]),
    now: &str,
) -> rusqlite::Result<Known> {
    let now_seconds = time::seconds(now).unwrap_or(i64::MAX);
    let first_seen: String =
        transaction.query_row("SELECT first_seen FROM database WHERE id = ?1", [ids.database], |row| row.get(0))?;
    let rows = promised(transaction, (ids.database, depth), tiles, now)?;
    let doubted = doubted(transaction, ids)?;
    // For a backup, this is the time at which the database had the state of the image (`taken_at`). For data files,
    // each time window changes `taken_at`, so the time at which all ranges had been read (`closed_at`) is used.
    let closed: Option<String> = transaction.query_row(
        "SELECT max(CASE s.kind WHEN 'files' THEN i.closed_at ELSE i.taken_at END)
         FROM image i JOIN source s ON s.id = i.source WHERE s.database = ?1 AND i.closed_at <= ?2",
        params![ids.database, now],
        |row| row.get(0),
    )?;
    let known_since = time::seconds(&first_seen).unwrap_or_default().min(now_seconds);
    let (windows, every) = windows(transaction, ids.source)?;
    let range = |(id, row): (u32, &Row)| {
        let end = u64::from(row.first) + u64::from(row.pages);
        let from = doubted.range((row.file, row.first)..).next();
        Range {
            id,
            bytes: u64::from(row.pages) * PAGE_BYTES as u64,
            is_in_use: row.in_use > 0,
            read_at: row.read_at.as_deref().and_then(time::seconds).filter(|at| *at <= now_seconds),
            known_since: row.known_since.as_deref().and_then(time::seconds).unwrap_or(known_since).min(now_seconds),
            is_doubted: from.is_some_and(|(file, page)| *file == row.file && u64::from(*page) < end),
        }
    };
    let relations = transaction.query_row(
        "SELECT coalesce(sum(e.kind = 'unit'), 0), coalesce(sum(e.kind = 'unit' AND e.verdict = 'sound'), 0),
             coalesce(sum(e.kind = 'pair'), 0), coalesce(sum(e.kind = 'pair' AND e.verdict = 'sound'), 0)
         FROM relation e JOIN object o ON o.id = e.object WHERE o.database = ?1",
        [ids.database],
        |row| {
            Ok(Relations { units: row.get(0)?, units_sound: row.get(1)?, pairs: row.get(2)?, pairs_sound: row.get(3)? })
        },
    )?;
    Ok(Known {
        ranges: (0..).zip(&rows).map(range).collect(),
        places: rows.iter().map(|row| (row.file, row.first, row.pages)).collect(),
        windows,
        every,
        known_since,
        closed: closed.as_deref().and_then(time::seconds),
        relations,
        tables: tables_of(transaction, ids.database, "")?,
    })
}

/// Returns the pages of a copy that have a new finding. Pages with confirmed findings are left out, because their
/// ranges need not be read first.
fn doubted(connection: &Connection, ids: Ids) -> rusqlite::Result<BTreeSet<(u16, u32)>> {
    let mut statement = connection.prepare(
        "SELECT DISTINCT file, page FROM finding WHERE source = ?1 AND life = 'new' AND file IS NOT NULL AND page IS NOT NULL
         LIMIT ?2",
    )?;
    let rows = statement.query_map(params![ids.source, MOST_DOUBTED], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Returns the number of bytes read and the number of seconds needed in each of the last time windows in which a copy
/// of the database was read. The newest time window comes first. Also returns the median time between the starts of
/// these time windows, within the limits `RHYTHM_SECONDS`, or a day if there are fewer than three time windows.
fn windows(connection: &Connection, source: i64) -> rusqlite::Result<(Vec<Swept>, Duration)> {
    let mut statement = connection.prepare(
        "SELECT w.bytes, w.seconds, w.started FROM window w JOIN image i ON i.id = w.image
         WHERE i.source = ?1 AND w.bytes > 0 ORDER BY w.id DESC LIMIT ?2",
    )?;
    let rows = statement.query_map(params![source, WINDOWS as i64], |row| {
        let (bytes, seconds, started): (i64, f64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok((Swept { bytes: bytes.unsigned_abs(), seconds }, time::seconds(&started).unwrap_or_default()))
    })?;
    let (swept, starts): (Vec<Swept>, Vec<i64>) = rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().unzip();
    let mut between: Vec<i64> =
        starts.iter().zip(starts.iter().skip(1)).map(|(later, earlier)| later - earlier).collect();
    between.sort_unstable();
    let [least, most] = RHYTHM_SECONDS;
    let every = match between.get(between.len() / 2) {
        Some(median) if between.len() >= 2 => Duration::from_secs(median.clamp(&least, &most).unsigned_abs()),
        _ => A_DAY,
    };
    Ok((swept, every))
}
