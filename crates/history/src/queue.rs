//! The queue of the backups that watchers have found. The queue contains backups that cannot be checked yet, backups
//! that are ready to be checked, and backups that were checked, with the results. The queue is stored in the history,
//! so it survives the end of a watcher.

mod claim;
mod finding;
mod results;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use rusqlite::{OptionalExtension, Row, Transaction, params};

use crate::error::Result;
use crate::file::History;
use crate::identity::{identity_of, storable};
use crate::outbox::Raised;
use crate::time;

pub use crate::holder::Holder;
pub use claim::Claim;
pub use finding::{Found, Kind, is_of_file, of_file, of_set_in};
pub(crate) use results::{ANOTHER, Outcome, fail, finish, holds, why_unknown};
pub use results::{Verdict, Watched};

/// The state in which a scan has seen a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The path or URL of the file.
    pub path: String,
    /// The length of the file in bytes.
    pub size: u64,
    /// A text that changes when the file is written, even if a program sets the modification time of the file back. The
    /// text contains the modification time and, if the system records it, the time of the last change of any kind. For
    /// a URL, the text is the ETag.
    pub version: String,
}

impl Seen {
    /// Whether `self` and `now` are the same state of the file. `self` may come from the history, where an earlier
    /// version of the program may have stored only the modification time.
    fn is_same(&self, now: &Self) -> bool {
        let is_version = finding::is_version(&self.version, &now.version, 1);
        (self.path.as_str(), self.size) == (now.path.as_str(), now.size) && is_version
    }
}

/// A file that a scan of the watched folders has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Looked {
    /// The state of the file.
    pub seen: Seen,
    /// Whether the content of the file is known: the file has stopped changing, and its labels were read.
    pub is_known: bool,
    /// A fingerprint of the bytes at a few offsets of the file; `None` if these bytes were not read.
    pub fingerprint: Option<String>,
}

/// A file that a scan has seen, and how long it has been unchanged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileState {
    /// The state of the file.
    pub seen: Seen,
    /// When the file was first seen (milliseconds since 1970).
    pub first_seen: i64,
    /// The time since which the size and version of the file have been unchanged (milliseconds since 1970).
    pub since: i64,
    /// The content of the file's labels, if they were read since the file last changed.
    pub labels: Option<String>,
    /// A fingerprint of the bytes at a few offsets of the file; `None` if these bytes were not read since the file last
    /// changed.
    pub fingerprint: Option<String>,
}

/// A backup in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// The number of the backup in the queue.
    pub id: i64,
    /// The backup as a scan found it. If the backup is not ready, `waits_for` states the reason.
    pub found: Found,
    /// When the backup was first found.
    pub first_seen: String,
    /// The state in the queue: `waiting`, `ready`, `running`, `done` or `skipped`.
    pub state: String,
    /// Why the backup waits, was skipped or could not be checked. If the backup was checked, this is the first finding
    /// or, if there is none, the first place that could not be verified.
    pub reason: String,
    /// The number of failed attempts to check the backup.
    pub tries: u32,
    /// How many times the process that was checking the backup was killed.
    pub losses: u32,
    /// The earliest time at which the next attempt to check the backup may begin.
    pub not_before: Option<String>,
    /// When the check of the backup began.
    pub started: Option<String>,
    /// When the check of the backup ended.
    pub ended: Option<String>,
    /// The verdict on the backup.
    pub verdict: Option<String>,
    /// The number of findings.
    pub findings: u64,
    /// The number of places that could not be verified.
    pub not_verified: u64,
    /// The run that checked the backup.
    pub run: Option<i64>,
    /// When a watcher last reported the backup to the user.
    pub reported_at: Option<String>,
    /// Size and version of each file at the time when the backup was put into the queue.
    pub versions: String,
}

impl Item {
    /// The identity of the backup's database. If databases of one family count as one database (`are_replicas`), the
    /// identity is the family.
    pub fn database(&self, are_replicas: bool) -> String {
        let Found { family, server, name, .. } = &self.found;
        identity_of(family, if are_replicas { "" } else { server }, name)
    }

    /// Whether the files of the backup are unchanged since the backup was put into the queue.
    pub fn is_as_found(&self, files: &[Seen]) -> bool {
        finding::versions_of(files.iter().map(Some)) == self.versions
    }

    /// Whether the backup was skipped because its files were gone or overwritten.
    pub fn is_lost(&self) -> bool {
        self.state == "skipped" && finding::is_lost(&self.reason)
    }
}

const ITEM: &str = "SELECT id, identity, family, server, name, type, taken_at, paths, set_guid, position, size, has_checksums, is_damaged,
    base, first_seen, state, reason, tries, losses, not_before, started, ended, verdict, findings, not_verified, run, reported_at,
    versions FROM backup";

fn item(row: &Row<'_>) -> rusqlite::Result<Item> {
    let (kind, state, reason): (String, String, String) = (row.get(5)?, row.get(15)?, row.get(16)?);
    Ok(Item {
        id: row.get(0)?,
        found: Found {
            identity: row.get(1)?,
            family: row.get(2)?,
            server: row.get(3)?,
            name: row.get(4)?,
            kind: Kind::of(&kind),
            taken_at: row.get(6)?,
            paths: finding::read_list(&row.get::<_, String>(7)?),
            set_guid: row.get(8)?,
            position: row.get(9)?,
            size: row.get::<_, i64>(10)?.cast_unsigned(),
            has_checksums: row.get(11)?,
            is_damaged: row.get(12)?,
            base: finding::read_list(&row.get::<_, String>(13)?),
            waits_for: (state == "waiting").then(|| reason.clone()),
            is_refused: false,
        },
        first_seen: row.get(14)?,
        state,
        reason,
        tries: row.get(17)?,
        losses: row.get(18)?,
        not_before: row.get(19)?,
        started: row.get(20)?,
        ended: row.get(21)?,
        verdict: row.get(22)?,
        findings: row.get(23)?,
        not_verified: row.get(24)?,
        run: row.get(25)?,
        reported_at: row.get(26)?,
        versions: row.get(27)?,
    })
}

impl History {
    /// Records which files exist at `now` (milliseconds since 1970), and returns how long each file has been unchanged.
    /// A known file that is not in `seen` is forgotten if `is_listed` returns true for it, which means that the scan
    /// would have found the file if it still existed.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn see(&mut self, seen: &[Seen], now: i64, is_listed: &dyn Fn(&str) -> bool) -> Result<Vec<FileState>> {
        self.transaction(|transaction| {
            let mut known = files(transaction)?;
            let listed: HashSet<&str> = seen.iter().map(|seen| seen.path.as_str()).collect();
            let mut states = Vec::new();
            for seen in seen {
                let state = match known.get(&seen.path).cloned() {
                    Some(state) if state.seen == *seen && state.since <= now => state,
                    // A stored time later than `now` comes from a wrong clock and is replaced by `now`.
                    Some(state) if state.seen == *seen => {
                        let again = "UPDATE watched_file SET since = ?2 WHERE path = ?1";
                        transaction.prepare_cached(again)?.execute(params![seen.path, now])?;
                        FileState { since: now, ..state }
                    }
                    Some(state) if state.seen.is_same(seen) && state.since <= now => {
                        let whole = "UPDATE watched_file SET version = ?2 WHERE path = ?1";
                        transaction.prepare_cached(whole)?.execute(params![seen.path, seen.version])?;
                        FileState { seen: seen.clone(), ..state }
                    }
                    before => {
                        let first_seen = before.map_or(now, |before| before.first_seen);
                        transaction
                            .prepare_cached(
                                "INSERT OR REPLACE INTO watched_file (path, size, version, first_seen, since) VALUES (?1, ?2, ?3, ?4, ?5)",
                            )?
                            .execute(params![seen.path, seen.size.cast_signed(), seen.version, first_seen, now])?;
                        FileState { seen: seen.clone(), first_seen, since: now, labels: None, fingerprint: None }
                    }
                };
                // The list of seen files may contain a file twice.
                known.insert(seen.path.clone(), state.clone());
                states.push(state);
            }
            let is_gone = |path: &&String| !listed.contains(path.as_str()) && is_listed(path.as_str());
            for path in known.keys().filter(is_gone) {
                transaction.prepare_cached("DELETE FROM watched_file WHERE path = ?1")?.execute([path])?;
            }
            Ok(states)
        })
    }

    /// Stores the content of a file's labels, unless the file has changed since it was seen.
    ///
    /// # Errors
    /// If the history cannot be written.
    pub fn keep_labels(&mut self, seen: &Seen, labels: &str) -> Result<()> {
        self.transaction(|transaction| {
            transaction.execute(
                "UPDATE watched_file SET labels = ?4 WHERE path = ?1 AND size = ?2 AND version = ?3",
                params![seen.path, seen.size.cast_signed(), seen.version, storable(labels)],
            )
        })
        .map(drop)
    }

    /// Stores a fingerprint of the bytes at a few offsets of a file, unless the file has changed since the scan saw it.
    /// If the fingerprint differs from the stored one, the file has changed, although its size and times are the same.
    /// Then `now` (milliseconds since 1970) is recorded as the time of the change.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn keep_fingerprint(&mut self, state: &mut FileState, fingerprint: &str, now: i64) -> Result<()> {
        let has_changed = state.fingerprint.as_deref().is_some_and(|known| known != fingerprint);
        let Seen { path, size, version } = &state.seen;
        self.transaction(|transaction| {
            transaction.execute(
                "UPDATE watched_file SET fingerprint = ?4, since = CASE WHEN ?5 THEN ?6 ELSE since END,
                     labels = CASE WHEN ?5 THEN NULL ELSE labels END WHERE path = ?1 AND size = ?2 AND version = ?3",
                params![path, size.cast_signed(), version, fingerprint, has_changed, now],
            )
        })?;
        state.fingerprint = Some(fingerprint.to_owned());
        if has_changed {
            (state.since, state.labels) = (now, None);
        }
        Ok(())
    }

    /// The backups in the queue with the state `waiting`, `ready` or `running`.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn queued(&self) -> Result<Vec<Item>> {
        self.items("WHERE state IN ('waiting', 'ready', 'running') ORDER BY id")
    }

    /// All known backups, newest last.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn backups(&self) -> Result<Vec<Item>> {
        self.items("ORDER BY taken_at, id")
    }

    /// Whether a backup is ready to be checked now.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn has_ready(&self) -> Result<bool> {
        let query =
            "SELECT EXISTS (SELECT 1 FROM backup WHERE state = 'ready' AND (not_before IS NULL OR not_before <= ?1))";
        self.connection().query_row(query, [time::now()], |row| row.get(0)).map_err(|error| self.failed(&error))
    }

    /// Whether a check of some backup has ended or failed, and the backup was not reported to the user since.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn has_unreported(&self) -> Result<bool> {
        let query = "SELECT EXISTS (SELECT 1 FROM backup WHERE reported_at IS NULL
             AND (state IN ('done', 'skipped') OR state = 'ready' AND tries > 0))";
        self.connection().query_row(query, [], |row| row.get(0)).map_err(|error| self.failed(&error))
    }

    /// The databases that have no full or differential backup younger than `most`. If `are_replicas` is set, all
    /// databases of one family count as one database. Otherwise, two backups of one family belong to the same database
    /// only if they also have the same name and server. Only a backup that exists, is complete, and is not known to be
    /// corrupt is taken into account.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn families_without_backup(&self, most: Duration, are_replicas: bool) -> Result<Vec<Raised>> {
        let now = SystemTime::now();
        let oldest = time::text(now.checked_sub(most).unwrap_or(now));
        let read = || {
            // A backup that the policy of the watcher has skipped (`not chosen:`) is complete, so it is taken into
            // account.
            let mut statement = self.connection().prepare(
                "SELECT family, name, max(CASE WHEN gone_at IS NULL AND verdict IS NOT 'corrupt'
                     AND (state IN ('ready', 'running', 'done') OR state = 'skipped' AND reason LIKE 'not chosen:%')
                     THEN taken_at END) AS newest, CASE WHEN ?2 THEN '' ELSE server END AS place
                 FROM backup WHERE type IN ('full', 'differential') GROUP BY family, lower(place), CASE WHEN ?2 THEN '' ELSE name END
                 HAVING newest < ?1 OR newest IS NULL AND min(first_seen) < ?1 ORDER BY name, family, place",
            )?;
            let rows = statement.query_map(params![oldest, are_replicas], |row| {
                let (family, name, newest): (String, String, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let text = match newest {
                    Some(newest) => format!("the newest backup is from {newest}"),
                    None => "no backup is both complete and free of corruption".to_owned(),
                };
                let server: String = row.get(3)?;
                let text = if server.is_empty() { text } else { format!("server {server}: {text}") };
                Ok(Raised { family, server, name, text })
            })?;
            rows.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|error| self.failed(&error))
    }

    fn items(&self, condition: &str) -> Result<Vec<Item>> {
        let read = || {
            let mut statement = self.connection().prepare(&format!("{ITEM} {condition}"))?;
            let rows = statement.query_map([], item)?;
            rows.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Returns when the last full check of each database ended. This may be the check of a backup or of data files. The
    /// key is the identity of the database, or the family of the database if `are_replicas` is set.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn last_checked(&self, are_replicas: bool) -> Result<HashMap<String, String>> {
        let read = || {
            let mut statement = self.connection().prepare(
                "SELECT family, server, name, max(ended) FROM (
                     SELECT family, server, name, ended FROM backup WHERE state = 'done' AND run IS NOT NULL
                     UNION ALL
                     SELECT d.family, d.server, d.name, r.ended FROM run r JOIN database d ON d.id = r.database
                     WHERE r.command = 'CHECKDB' AND r.complete = 1
                 ) WHERE ended IS NOT NULL GROUP BY family, server, name ORDER BY 4",
            )?;
            let rows = statement.query_map([], |row| {
                let (family, server, name): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok((identity_of(&family, if are_replicas { "" } else { &server }, &name), row.get(3)?))
            })?;
            // Several rows may have the same key. The map keeps the last of these rows, which is the newest.
            rows.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Skips backups that are ready, and stores a reason for each of them.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn skip(&mut self, chosen: &[(i64, String)]) -> Result<()> {
        let now = time::now();
        self.transaction(|transaction| {
            for (id, reason) in chosen {
                transaction.execute(
                    "UPDATE backup SET state = 'skipped', reason = ?2, ended = ?3, reported_at = NULL
                     WHERE id = ?1 AND state = 'ready'",
                    params![id, storable(reason), now],
                )?;
            }
            Ok(())
        })
    }

    /// The backups that must be reported to the user. A backup whose check has ended or failed is reported once. A
    /// backup that has been waiting since before `patience`, or whose check failed and will be tried again, is reported
    /// again if its last report was not after `reminded`.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn unreported(&self, patience: &str, reminded: &str) -> Result<Vec<Item>> {
        let read = || {
            let mut statement = self.connection().prepare(&format!(
                "{ITEM} WHERE (state IN ('done', 'skipped') OR state = 'ready' AND tries > 0) AND reported_at IS NULL
                 OR state = 'waiting' AND first_seen <= ?1 AND (reported_at IS NULL OR reported_at <= ?2)
                 OR state = 'ready' AND tries > 0 AND reported_at <= ?2 ORDER BY id"
            ))?;
            let rows = statement.query_map([patience, reminded], item)?;
            rows.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Records that these backups were reported. If `has_listener` is set, the first report of a backup that has waited
    /// too long is also recorded as an event.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn reported(&mut self, items: &[Item], has_listener: bool) -> Result<()> {
        let now = time::now();
        self.transaction(|transaction| {
            for item in items {
                // If the state of a backup has changed since `items` was read, its row stays unreported, so the new
                // state will be reported next time.
                let noted = transaction.execute(
                    "UPDATE backup SET reported_at = ?2 WHERE id = ?1 AND state = ?3 AND tries = ?4",
                    params![item.id, now, item.state, item.tries],
                )?;
                if noted == 1 && has_listener && item.state == "waiting" && item.reported_at.is_none() {
                    results::tell(transaction, item.id, &item.reason, &now)?;
                }
            }
            Ok(())
        })
    }

    /// The number of minutes since midnight, in the time zone of this machine.
    ///
    /// # Errors
    ///
    /// If SQLite cannot determine the local time.
    pub fn minute_of_day(&self) -> Result<u16> {
        let query = "SELECT CAST(strftime('%H', 'now', 'localtime') AS INTEGER) * 60
             + CAST(strftime('%M', 'now', 'localtime') AS INTEGER)";
        self.connection().query_row(query, [], |row| row.get(0)).map_err(|error| self.failed(&error))
    }
}

/// The name and the family of a backup's database.
pub(crate) fn names(transaction: &Transaction<'_>, id: i64) -> rusqlite::Result<Option<(String, String)>> {
    let query = "SELECT name, family FROM backup WHERE id = ?1";
    transaction.query_row(query, [id], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

fn files(transaction: &Transaction<'_>) -> rusqlite::Result<HashMap<String, FileState>> {
    let mut statement =
        transaction.prepare("SELECT path, size, version, first_seen, since, labels, fingerprint FROM watched_file")?;
    let rows = statement.query_map([], |row| {
        let path: String = row.get(0)?;
        let size: i64 = row.get(1)?;
        let seen = Seen { path: path.clone(), size: size.cast_unsigned(), version: row.get(2)? };
        let (labels, fingerprint) = (row.get(5)?, row.get(6)?);
        Ok((path, FileState { seen, first_seen: row.get(3)?, since: row.get(4)?, labels, fingerprint }))
    })?;
    rows.collect()
}

#[cfg(test)]
mod tests;
