//! Adds the backups that a scan of the watched folders has found to the queue.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Row, Transaction, params};

use crate::error::Result;
use crate::file::History;
use crate::identity::storable;
use crate::queue::{Looked, Seen};
use crate::time;

/// The content of a backup.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// The whole database.
    Full,
    /// Changes since a full backup.
    Differential,
    /// The transaction log.
    Log,
    /// Some files of the database.
    Files,
    /// Another type of backup.
    Other,
    /// Data files, which are not a backup.
    Data,
    /// The content is unknown, because the file is not complete yet.
    Unknown,
}

impl Kind {
    const ALL: [(Self, &str); 7] = [
        (Self::Full, "full"),
        (Self::Differential, "differential"),
        (Self::Log, "log"),
        (Self::Files, "files"),
        (Self::Other, "other"),
        (Self::Data, "data"),
        (Self::Unknown, "unknown"),
    ];

    /// The word that the history stores for the kind.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("unknown", |(_, name)| name)
    }

    pub(super) fn of(name: &str) -> Self {
        Self::ALL.iter().find(|(_, known)| *known == name).map_or(Self::Unknown, |(kind, _)| *kind)
    }
}

/// A backup that a scan has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The identity of the backup.
    pub identity: String,
    /// The family: the database and all databases restored from its backups.
    pub family: String,
    /// The server that made the backup.
    pub server: String,
    /// The name of the database.
    pub name: String,
    /// The kind of the backup's content.
    pub kind: Kind,
    /// When the backup was finished. In a backup that a scan has just found, this time is the local time of this
    /// machine. In a backup that was read from the queue, it is UTC.
    pub taken_at: Option<String>,
    /// The paths of the backup's files, one file per stripe.
    pub paths: Vec<String>,
    /// The GUID of the backup set.
    pub set_guid: Option<String>,
    /// The position of the backup set in its files.
    pub position: u16,
    /// The size of the backup in bytes.
    pub size: u64,
    /// Whether the backup was taken WITH CHECKSUM.
    pub has_checksums: bool,
    /// Whether the labels of the backup are damaged.
    pub is_damaged: bool,
    /// For a differential backup, the files of the full backup on which it is based.
    pub base: Vec<String>,
    /// Why the backup is not ready; `None` if it is ready.
    pub waits_for: Option<String>,
    /// Whether backups of this kind cannot be checked at all. Such a backup goes into the queue as `done`, with the
    /// verdict unknown.
    pub is_refused: bool,
}

const OF_FILE: &str = "file ";

/// Returns the identity of a file while it is unknown which backup the file contains.
pub fn of_file(path: &str) -> String {
    format!("{OF_FILE}{path}")
}

/// Returns the identity of a backup set in one file: `set` identifies the set, `path` is the path of the file.
pub fn of_set_in(set: &str, path: &str) -> String {
    format!("{set}{IN}{path}")
}

const IN: &str = " in ";

/// Whether `identity` is one that [`of_file`] returns, which means that the backup in the file is still unknown.
pub fn is_of_file(identity: &str) -> bool {
    identity.starts_with(OF_FILE)
}

pub(super) fn read_list(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_default()
}

fn list(paths: &[String]) -> String {
    serde_json::to_string(paths).unwrap_or_default()
}

impl History {
    /// Adds the backups that a scan found to the queue. `files` contains all files that the scan has seen. A known
    /// backup is gone if none of its files exists. This is known only if `is_listed` returns true for all of its files,
    /// which means that the scan would have found them.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn enqueue(
        &mut self,
        found: &[Found],
        files: &HashMap<String, Looked>,
        is_listed: &dyn Fn(&str) -> bool,
    ) -> Result<()> {
        let now = time::now();
        self.transaction(|transaction| {
            let mut known = known(transaction)?;
            for found in found {
                let bytes = Bytes::of(&found.paths, files);
                let row = match known.remove(&storable(&found.identity)) {
                    Some(row) => Some(row),
                    None => adopt(transaction, found, &mut known)?,
                };
                match row {
                    None => insert(transaction, found, (&bytes, &now))?,
                    Some(row) => {
                        let is_own = row.paths.iter().all(|path| is_listed(path));
                        update(transaction, found, (&row, is_own), (&bytes, &now))?;
                    }
                }
            }
            for (identity, row) in known {
                let mut there = row.paths.iter().filter_map(|path| files.get(path)).peekable();
                let is_there = there.peek().is_some();
                if is_there && is_of_file(&identity) {
                    // The scan now knows which backup the file contains. So the row that was stored for the file while
                    // its backup was unknown is deleted.
                    transaction.execute("DELETE FROM backup WHERE id = ?1 AND state <> 'running'", [row.id])?;
                } else if is_there && there.all(|file| file.is_known) {
                    // The contents of all existing files of the backup are known, and this backup is not among them. So
                    // the backup was overwritten.
                    gone(transaction, &row, OVERWRITTEN, &now)?;
                } else if is_there && row.state == "ready" {
                    let reason = "its files are being written";
                    let waits = "UPDATE backup SET state = 'waiting', reason = ?2 WHERE id = ?1";
                    transaction.execute(waits, params![row.id, reason])?;
                } else if !is_there && !row.paths.is_empty() && row.paths.iter().all(|path| is_listed(path)) {
                    gone(transaction, &row, GONE, &now)?;
                }
            }
            Ok(())
        })
    }
}

/// Finds the row of a backup set that an earlier version of the program stored without a path, and gives it the
/// identity of `found`. Uses the row only if it names the same files, because only then is the result in the row a
/// result for these files.
fn adopt(
    transaction: &Transaction<'_>,
    found: &Found,
    known: &mut HashMap<String, Known>,
) -> rusqlite::Result<Option<Known>> {
    let path = found.paths.first().map(|path| format!("{IN}{path}")).unwrap_or_default();
    let Some(set) = found.identity.strip_suffix(&path).filter(|set| set.len() < found.identity.len()) else {
        return Ok(None);
    };
    let set = storable(set);
    if known.get(&set).is_none_or(|row| row.paths != found.paths) {
        return Ok(None);
    }
    let Some(row) = known.remove(&set) else { return Ok(None) };
    let named = "UPDATE OR IGNORE backup SET identity = ?2 WHERE id = ?1";
    transaction.execute(named, params![row.id, storable(&found.identity)])?;
    Ok(Some(row))
}

/// A backup in the history that still existed at the last scan.
struct Known {
    id: i64,
    state: String,
    reason: String,
    paths: Vec<String>,
    base: Vec<String>,
    /// The identity of the bytes of the backup's files at the time when the backup was put into the queue.
    bytes: Bytes,
}

/// Texts that identify the bytes of a backup, to notice when the same files have other contents. Each field is a list
/// with one text for each file of the backup.
#[derive(PartialEq, Eq)]
struct Bytes {
    /// Size and version of each file.
    versions: String,
    /// For each file, a fingerprint of the bytes at a few offsets; empty if these bytes were not read.
    fingerprints: String,
}

impl Bytes {
    fn of(paths: &[String], files: &HashMap<String, Looked>) -> Self {
        let versions = versions_of(paths.iter().map(|path| files.get(path).map(|file| &file.seen)));
        let fingerprint = |path| files.get(path).and_then(|file: &Looked| file.fingerprint.clone()).unwrap_or_default();
        Self { versions, fingerprints: list(&paths.iter().map(fingerprint).collect::<Vec<_>>()) }
    }

    /// Whether the backup may still have the bytes that `known` identifies.
    fn may_be(&self, known: &Self) -> bool {
        let (now, then) = (read_list(&self.fingerprints), read_list(&known.fingerprints));
        let may_be = |(now, then): (&String, &String)| now == then || now.is_empty() || then.is_empty();
        are_versions(&known.versions, &self.versions) && now.iter().zip(&then).all(may_be)
    }
}

pub(super) fn versions_of<'a>(files: impl Iterator<Item = Option<&'a Seen>>) -> String {
    let one = |seen: Option<&Seen>| seen.map_or_else(String::new, |seen| format!("{} {}", seen.size, seen.version));
    list(&files.map(one).collect::<Vec<_>>())
}

/// Whether the version `now` of a file is the same as the version `known`. A version consists of words, of which the
/// first ones are times. Earlier releases of the program stored only the first `words` words. If `known` has only this
/// number of words, only these words are compared.
pub(super) fn is_version(known: &str, now: &str, words: usize) -> bool {
    let is_start = |rest: &str| rest.starts_with(' ') && known.split(' ').count() == words;
    known == now || now.strip_prefix(known).is_some_and(is_start)
}

/// Like [`is_version`], for the versions of all files of a backup. Here, the size of the file precedes each version.
fn are_versions(known: &str, now: &str) -> bool {
    let (known, now) = (read_list(known), read_list(now));
    known.len() == now.len() && known.iter().zip(&now).all(|(known, now)| is_version(known, now, 2))
}

/// Whether `reason` says that a backup was skipped because its files were gone or overwritten.
pub(super) fn is_lost(reason: &str) -> bool {
    [GONE, OVERWRITTEN].contains(&reason)
}

fn known(transaction: &Transaction<'_>) -> rusqlite::Result<HashMap<String, Known>> {
    let mut statement = transaction.prepare(&format!("SELECT identity, {KNOWN} FROM backup WHERE gone_at IS NULL"))?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, known_row(row, 1)?)))?;
    rows.collect()
}

const KNOWN: &str = "id, state, reason, paths, base, versions, fingerprints";

fn known_row(row: &Row<'_>, at: usize) -> rusqlite::Result<Known> {
    let (paths, base): (String, String) = (row.get(at + 3)?, row.get(at + 4)?);
    Ok(Known {
        id: row.get(at)?,
        state: row.get(at + 1)?,
        reason: row.get(at + 2)?,
        paths: read_list(&paths),
        base: read_list(&base),
        bytes: Bytes { versions: row.get(at + 5)?, fingerprints: row.get(at + 6)? },
    })
}

fn state_of(found: &Found) -> (&'static str, String) {
    match &found.waits_for {
        Some(reason) if found.is_refused => ("done", storable(reason)),
        Some(reason) => ("waiting", storable(reason)),
        None => ("ready", String::new()),
    }
}

fn insert(transaction: &Transaction<'_>, found: &Found, (bytes, now): (&Bytes, &str)) -> rusqlite::Result<()> {
    let (state, reason) = state_of(found);
    let query = format!("SELECT {KNOWN} FROM backup WHERE identity = ?1");
    let before = transaction.query_row(&query, [storable(&found.identity)], |row| known_row(row, 0)).optional()?;
    if let Some(row) = before {
        // The files of the backup were gone, and now exist again.
        transaction.execute("UPDATE backup SET gone_at = NULL WHERE id = ?1", [row.id])?;
        return update(transaction, found, (&row, true), (bytes, now));
    }
    transaction
        .prepare_cached(
            "INSERT INTO backup (identity, family, server, name, type, taken_at, paths, set_guid, position, size, has_checksums,
             is_damaged, base, first_seen, state, reason, versions, verdict, ended, fingerprints)
             VALUES (?1, ?2, ?3, ?4, ?5, strftime('%Y-%m-%dT%H:%M:%SZ', ?6, 'utc'), ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                 CASE WHEN ?15 = 'done' THEN 'unknown' END, CASE WHEN ?15 = 'done' THEN ?14 END, ?18)",
        )?
        .execute(params![
            storable(&found.identity),
            storable(&found.family),
            storable(&found.server),
            storable(&found.name),
            found.kind.name(),
            found.taken_at,
            list(&found.paths),
            found.set_guid,
            found.position,
            found.size.cast_signed(),
            found.has_checksums,
            found.is_damaged,
            list(&found.base),
            now,
            state,
            reason,
            bytes.versions,
            bytes.fingerprints,
        ])
        .map(drop)
}

fn update(
    transaction: &Transaction<'_>,
    found: &Found,
    (row, is_own): (&Known, bool),
    (bytes, now): (&Bytes, &str),
) -> rusqlite::Result<()> {
    let has_ended = matches!(row.state.as_str(), "done" | "skipped");
    let is_lost = row.state == "skipped" && is_lost(&row.reason);
    // The backup was checked when it was complete, and now some of its files are missing. Its row stays unchanged, so
    // that it still has the versions of the files that were checked.
    if row.state == "running" || has_ended && !is_lost && found.waits_for.is_some() {
        return Ok(());
    }
    let is_same = (&row.paths, &row.base, &row.bytes) == (&found.paths, &found.base, bytes);
    if !is_same {
        transaction.execute(
            "UPDATE backup SET paths = ?2, base = ?3, is_damaged = ?4, size = ?5, versions = ?6, fingerprints = ?7
             WHERE id = ?1",
            params![
                row.id,
                list(&found.paths),
                list(&found.base),
                found.is_damaged,
                found.size.cast_signed(),
                bytes.versions,
                bytes.fingerprints
            ],
        )?;
    }
    // A result is valid only for the bytes that the check read. If the files have changed, for example grown, the
    // backup must be checked again. If only the paths differ, the backup counts as changed only if this scan lists the
    // known paths; otherwise another watcher may have found it under its own paths.
    let has_changed = !bytes.may_be(&row.bytes) || is_own && row.paths != found.paths;
    if is_lost || has_ended && has_changed {
        return again(transaction, found, row, now);
    }
    if has_changed && matches!(row.state.as_str(), "ready" | "waiting") {
        let at_once = "UPDATE backup SET tries = 0, not_before = NULL WHERE id = ?1";
        transaction.execute(at_once, [row.id])?;
    }
    let (state, reason) = state_of(found);
    // The reasons of a ready backup are not compared. Its `reason` is the error of the last attempt to check it, not
    // something that it waits for.
    let is_moved = match row.state.as_str() {
        "waiting" => row.state != state || row.reason != reason,
        "ready" => state == "waiting",
        _ => false,
    };
    if is_moved {
        let moved = "UPDATE backup SET state = ?2, reason = ?3,
             reported_at = CASE WHEN ?2 = 'ready' AND tries = 0 OR ?2 = 'done' THEN NULL ELSE reported_at END,
             verdict = CASE WHEN ?2 = 'done' THEN 'unknown' END, ended = CASE WHEN ?2 = 'done' THEN ?4 END,
             started = NULL, first_seen = coalesce(first_seen, ?4) WHERE id = ?1";
        transaction.execute(moved, params![row.id, state, reason, now])?;
    }
    Ok(())
}

/// Puts a backup into the queue again.
fn again(transaction: &Transaction<'_>, found: &Found, row: &Known, now: &str) -> rusqlite::Result<()> {
    let (state, reason) = state_of(found);
    transaction
        .execute(
            "UPDATE backup SET state = ?2, reason = ?3, first_seen = ?4, tries = 0, losses = 0, not_before = NULL, started = NULL,
             ended = CASE WHEN ?2 = 'done' THEN ?4 END, verdict = CASE WHEN ?2 = 'done' THEN 'unknown' END, findings = 0,
             not_verified = 0, run = NULL, reported_at = NULL WHERE id = ?1 AND state <> 'running'",
            params![row.id, state, reason, now],
        )
        .map(drop)
}

/// The reason for skipping a backup that vanished before it was checked.
pub(super) const GONE: &str = "gone";
/// The reason for skipping a backup if its files now contain something else.
const OVERWRITTEN: &str = "overwritten";

fn gone(transaction: &Transaction<'_>, row: &Known, reason: &str, now: &str) -> rusqlite::Result<()> {
    if row.state == "running" {
        return Ok(());
    }
    transaction.execute("UPDATE backup SET gone_at = ?2 WHERE id = ?1", params![row.id, now])?;
    let skipped = "UPDATE backup SET state = 'skipped', reason = ?2, ended = ?3, reported_at = NULL
         WHERE id = ?1 AND state IN ('waiting', 'ready')";
    transaction.execute(skipped, params![row.id, reason, now]).map(drop)
}
