//! Events for the program that the user names with `--on-event`. Each event is recorded in the transaction that causes
//! it. The program is called with the event again and again until one call succeeds.

mod alarms;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use rusqlite::{OptionalExtension, Transaction, params};
use serde::Serialize;

use crate::error::Result;
use crate::file::History;
use crate::holder::Holder;
use crate::identity::storable;
use crate::time;

pub use alarms::{Judge, Promise, Raised};

/// The maximum number of lines that the program gets in one call. Each line describes one event. The program also gets
/// the number of all events, which includes the events beyond this limit.
pub(crate) const MOST_LINES: usize = 1000;
/// The time that a process has to deliver an event. After this time, another process may take the event.
const DELIVERY: Duration = Duration::from_secs(180);
/// How long events are kept after delivery.
const KEPT: Duration = Duration::from_secs(30 * 86_400);

/// The kinds of events, the most urgent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Event {
    /// A finding that did not exist before.
    FindingNew,
    /// A backup or a database could not be checked.
    Failed,
    /// A database has no backup that is recent enough.
    BackupMissing,
    /// Within the promised time, some pages were not read, or some heaps or indexes were not proven to be sound.
    PromiseBroken,
    /// A run has seen a new finding again.
    FindingConfirmed,
    /// A broken promise is kept again.
    PromiseKeptAgain,
    /// A run has looked for a finding again, and the finding no longer exists.
    FindingGone,
}

impl Event {
    /// The name of the event.
    pub fn name(self) -> &'static str {
        match self {
            Self::FindingNew => "finding-new",
            Self::Failed => "failed",
            Self::BackupMissing => "backup-missing",
            Self::PromiseBroken => "promise-broken",
            Self::FindingConfirmed => "finding-confirmed",
            Self::PromiseKeptAgain => "promise-kept-again",
            Self::FindingGone => "finding-gone",
        }
    }
}

/// The line that describes an event to the program, as JSON.
#[derive(Default, Serialize)]
struct Line<'a> {
    v: u32,
    event: &'static str,
    at: &'a str,
    database: &'a str,
    family: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    msg: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<u16>,
    text: String,
}

/// The events of one database and one run, which are delivered in one call of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The number of the message.
    pub id: i64,
    /// The most urgent event in the message.
    pub event: String,
    /// The name of the database.
    pub database: String,
    /// The number of events in the message.
    pub count: u64,
    /// The lines of the message, each a JSON object.
    pub lines: String,
}

/// The database that an event is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) database: &'a str,
    pub(crate) family: &'a str,
    pub(crate) paths: &'a str,
}

/// Records the events for the changes that a run made to findings.
pub(crate) fn findings(
    transaction: &Transaction<'_>,
    about: About<'_>,
    run: i64,
    (changed, now): (&[(Event, i64)], &str),
) -> rusqlite::Result<()> {
    let mut changed: Vec<(Event, i64)> = changed.to_vec();
    changed.sort_unstable();
    let mut find = transaction.prepare(
        "SELECT f.msg, f.check_id, f.object_name, f.file, f.page, f.slot, f.text, s.host, s.kind FROM finding f
         JOIN source s ON s.id = f.source
         WHERE f.id = ?1 AND (f.ack_by IS NULL OR f.ack_until IS NOT NULL AND f.ack_until <= ?2)",
    )?;
    let (mut lines, mut count, mut worst) = (Vec::new(), 0, None);
    for (event, key) in changed {
        let line = find
            .query_row(params![key, now], |row| {
                Ok(Line {
                    v: 1,
                    event: event.name(),
                    at: now,
                    database: about.database,
                    family: about.family,
                    run: Some(run),
                    paths: Some(about.paths.to_owned()),
                    key: Some(key),
                    msg: row.get(0)?,
                    check: row.get(1)?,
                    object: row.get(2)?,
                    file: row.get(3)?,
                    page: row.get(4)?,
                    slot: row.get(5)?,
                    text: row.get(6)?,
                    server: row.get(7)?,
                    source: row.get(8)?,
                })
            })
            .optional()?;
        // Acknowledged findings raise no event.
        let Some(line) = line else { continue };
        count += 1;
        worst = worst.or(Some(event));
        if lines.len() < MOST_LINES {
            lines.push(line);
        }
    }
    match worst {
        Some(event) => put(transaction, event, about.database, &lines, (count, now)),
        None => Ok(()),
    }
}

/// Records the event that a backup or database could not be checked.
pub(crate) fn failed(transaction: &Transaction<'_>, about: About<'_>, error: &str, now: &str) -> rusqlite::Result<()> {
    let event = Event::Failed;
    let line = Line {
        v: 1,
        event: event.name(),
        at: now,
        database: about.database,
        family: about.family,
        paths: Some(about.paths.to_owned()),
        text: error.to_owned(),
        ..Line::default()
    };
    put(transaction, event, about.database, &[line], (1, now))
}

fn put(
    transaction: &Transaction<'_>,
    event: Event,
    database: &str,
    lines: &[Line<'_>],
    (count, now): (u64, &str),
) -> rusqlite::Result<()> {
    let mut text = String::new();
    for line in lines {
        text.push_str(
            &serde_json::to_string(line).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?,
        );
        text.push('\n');
    }
    transaction
        .execute(
            "INSERT INTO outbox (created, event, database, count, lines) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![now, event.name(), storable(database), count.cast_signed(), storable(&text)],
        )
        .map(drop)
}

impl History {
    /// Whether an event is due.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn has_event(&self) -> Result<bool> {
        let query =
            "SELECT EXISTS (SELECT 1 FROM outbox WHERE done_at IS NULL AND (not_before IS NULL OR not_before <= ?1))";
        self.connection().query_row(query, [time::now()], |row| row.get(0)).map_err(|error| self.failed(&error))
    }

    /// Takes the oldest event that is due. Events with ten failed deliveries come last, so that they do not delay other
    /// events.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn take_event(&mut self, holder: &Holder) -> Result<Option<Message>> {
        let now = SystemTime::now();
        let until = time::text(now.checked_add(DELIVERY).unwrap_or(now));
        let before = time::text(now.checked_sub(KEPT).unwrap_or(now));
        let now = time::text(now);
        self.transaction(|transaction| {
            transaction.execute("DELETE FROM outbox WHERE done_at < ?1", [before])?;
            let due = "SELECT id, event, database, count, lines FROM outbox
                 WHERE done_at IS NULL AND (not_before IS NULL OR not_before <= ?1) ORDER BY tries >= 10, id LIMIT 1";
            let message = transaction
                .query_row(due, [&now], |row| {
                    Ok(Message {
                        id: row.get(0)?,
                        event: row.get(1)?,
                        database: row.get(2)?,
                        count: row.get(3)?,
                        lines: row.get(4)?,
                    })
                })
                .optional()?;
            if let Some(message) = &message {
                let take = "UPDATE outbox SET holder = ?2, not_before = ?3 WHERE id = ?1";
                transaction.execute(take, params![message.id, holder.token, until])?;
            }
            Ok(message)
        })
    }

    /// Records that an event was delivered, or why its delivery failed. After each failure, the next attempt follows
    /// after a longer pause.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn passed_on(&mut self, message: &Message, error: Option<&str>) -> Result<()> {
        let now = SystemTime::now();
        self.transaction(|transaction| {
            let Some(error) = error else {
                let done =
                    "UPDATE outbox SET done_at = ?2, tries = tries + 1, holder = NULL, error = NULL WHERE id = ?1";
                return transaction.execute(done, params![message.id, time::text(now)]);
            };
            let tries: u32 =
                transaction.query_row("SELECT tries FROM outbox WHERE id = ?1", [message.id], |row| row.get(0))?;
            // The pause before the next attempt grows from half a minute to an hour.
            let again = now.checked_add(Duration::from_secs((30_u64 << tries.min(7)).min(3600))).unwrap_or(now);
            let later = "UPDATE outbox SET tries = tries + 1, not_before = ?2, holder = NULL, error = ?3 WHERE id = ?1";
            transaction.execute(later, params![message.id, time::text(again), storable(error)])
        })
        .map(drop)
    }

    /// Makes all undelivered events due, except those that another process is delivering now.
    ///
    /// # Errors
    /// If the history cannot be written.
    pub fn retry_events(&mut self, holder: &Holder) -> Result<()> {
        self.transaction(|transaction| {
            let mut held = transaction
                .prepare("SELECT DISTINCT holder FROM outbox WHERE done_at IS NULL AND holder IS NOT NULL")?;
            let held = held.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
            for token in held.iter().filter(|token| holder.outlives(token)) {
                transaction.execute("UPDATE outbox SET holder = NULL WHERE holder = ?1", [token])?;
            }
            transaction.execute("UPDATE outbox SET not_before = NULL WHERE done_at IS NULL AND holder IS NULL", [])
        })
        .map(drop)
    }

    /// The number of events that this process leaves undelivered. An event is counted if it is in `failed`, that is, if
    /// this process could not deliver it. If `gave_up` is set, each event that is due is counted too. Events that
    /// another process has delivered, is delivering, or could not deliver are not counted.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn events_left(&self, holder: &Holder, (failed, gave_up): (&BTreeSet<i64>, bool)) -> Result<u64> {
        let query = "SELECT id, not_before IS NULL OR not_before <= ?2 FROM outbox
             WHERE done_at IS NULL AND (holder IS NULL OR holder = ?1 OR not_before <= ?2)";
        let count = || -> rusqlite::Result<u64> {
            let (mut left, mut count) = (self.connection().prepare(query)?, 0);
            let mut rows = left.query(params![holder.token, time::now()])?;
            while let Some(row) = rows.next()? {
                let (id, is_due): (i64, bool) = (row.get(0)?, row.get(1)?);
                count += u64::from(failed.contains(&id) || gave_up && is_due);
            }
            Ok(count)
        };
        count().map_err(|error| self.failed(&error))
    }
}
