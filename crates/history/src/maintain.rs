//! Changes that users make to a history: they can acknowledge a finding, and remove a database or old runs from the
//! history.

use std::time::SystemTime;

use rusqlite::{Transaction, params};

use crate::error::{HistoryError, Result};
use crate::file::History;
use crate::identity::{identity_of, storable};
use crate::lease;
use crate::query::{Filter, IS_WANTED, Named};
use crate::time;

/// The numbers of databases and runs that were removed from the history.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Forgotten {
    /// The number of databases that were removed.
    pub databases: u64,
    /// The number of runs that were removed.
    pub runs: u64,
}

impl History {
    /// Records who accepts a finding, why, and until when. Later runs still report the finding.
    ///
    /// # Errors
    ///
    /// If the history has no finding with this key, or cannot be written.
    pub fn acknowledge(&mut self, key: i64, who: &str, because: &str, until: Option<&str>) -> Result<()> {
        let now = time::text(SystemTime::now());
        let (who, because) = (storable(who), storable(because));
        let changed = self.transaction(|transaction| {
            transaction.execute(
                "UPDATE finding SET ack_by = ?2, ack_text = ?3, ack_at = ?4, ack_until = ?5 WHERE id = ?1",
                params![key, who, because, now, until],
            )
        })?;
        match changed {
            1 => Ok(()),
            _ => Err(HistoryError::Request(format!(
                "{}: has no finding {key}; 'mdfsck history FILE findings' lists their keys",
                self.path().display()
            ))),
        }
    }

    /// Removes a database from the history, with its copies, runs and findings.
    ///
    /// # Errors
    ///
    /// If no database has this name, another process is working on the database, or the history cannot be written.
    pub fn forget_database(&mut self, name: &str) -> Result<Forgotten> {
        let filter = Filter { database: Some(name.to_owned()), since: None };
        let now = SystemTime::now();
        let done = self.transaction(|transaction| {
            let mut forgotten = Forgotten::default();
            for database in filter.databases(transaction)? {
                let id = database.id;
                if let Some(by) = lease::holder(transaction, id, now)? {
                    return Ok(Err(by.to_string()));
                }
                let runs: u64 =
                    transaction.query_row("SELECT count(*) FROM run WHERE database = ?1", [id], |row| row.get(0))?;
                transaction.execute("DELETE FROM database WHERE id = ?1", [id])?;
                forget_backups(transaction, &database)?;
                forgotten.databases += 1;
                forgotten.runs += runs;
            }
            // A watcher may have queued backups of this database before any of them was checked.
            let mut queued = transaction.prepare(&format!(
                "SELECT DISTINCT 0, family, server, name FROM backup d WHERE state <> 'running' AND family <> '' AND {IS_WANTED}"
            ))?;
            let queued = queued.query_map([name], |row| {
                Ok(Named { id: row.get(0)?, family: row.get(1)?, server: row.get(2)?, name: row.get(3)? })
            })?;
            for database in queued.collect::<rusqlite::Result<Vec<Named>>>()? {
                forget_backups(transaction, &database)?;
                forgotten.databases += 1;
            }
            Ok(Ok(forgotten))
        })?;
        let forgotten = done.map_err(|by| HistoryError::Leased { path: self.path().to_owned(), by })?;
        if forgotten.databases == 0 {
            // This call is made only for its error: no database has this name.
            self.database_names(&filter)?;
        }
        self.shrink()?;
        Ok(forgotten)
    }

    /// Removes runs that began before `moment`. The last run and the last full run of each copy are kept. Findings, and
    /// the dates of reads and proofs, are also kept.
    ///
    /// # Errors
    ///
    /// If another process is working on the history, or the history cannot be written.
    pub fn forget_older(&mut self, moment: &str) -> Result<Forgotten> {
        let now = SystemTime::now();
        let done = self.transaction(|transaction| {
            if let Some(by) = lease::holder(transaction, 0, now)? {
                return Ok(Err(by.to_string()));
            }
            transaction.execute_batch("CREATE TEMP TABLE old (id INTEGER PRIMARY KEY)")?;
            transaction.execute(
                "INSERT INTO temp.old SELECT id FROM run r WHERE started < ?1
                 AND (database IS NULL OR id <> (SELECT max(id) FROM run WHERE database = r.database))
                 AND id NOT IN (
                     SELECT max(k.id) FROM run k JOIN image i ON i.id = k.image
                     GROUP BY i.source, k.command = 'CHECKDB' AND instr(k.options, '\"physical_only\":true') = 0
                         AND instr(k.options, '\"no_index\":true') = 0
                 )",
                [moment],
            )?;
            // The latest row and page counts of each object are kept, even if their run is removed. Such counts are
            // moved to the oldest run that is kept.
            transaction.execute(
                "INSERT OR IGNORE INTO object_count (object, run, rows, pages)
                 SELECT c.object, (SELECT min(r.id) FROM run r WHERE r.database = o.database AND r.id NOT IN temp.old),
                     c.rows, c.pages
                 FROM object_count c JOIN object o ON o.id = c.object
                 WHERE c.run = (SELECT max(run) FROM object_count WHERE object = c.object AND run IN temp.old)",
                [],
            )?;
            let runs = transaction.execute("DELETE FROM run WHERE id IN temp.old", [])?;
            transaction
                .execute("DELETE FROM window WHERE started < ?1 AND id NOT IN (SELECT window FROM part)", [moment])?;
            // Only backups that no longer exist are removed from the queue. If the row of an existing backup were
            // removed, the watcher would check the backup again.
            transaction.execute("DELETE FROM backup WHERE gone_at < ?1", [moment])?;
            transaction.execute_batch("DROP TABLE temp.old")?;
            Ok(Ok(Forgotten { databases: 0, runs: runs as u64 }))
        })?;
        let forgotten = done.map_err(|by| HistoryError::Leased { path: self.path().to_owned(), by })?;
        self.shrink()?;
        Ok(forgotten)
    }

    /// Returns the space of deleted rows to the file system.
    fn shrink(&self) -> Result<()> {
        self.connection().execute_batch("VACUUM").map_err(|error| self.failed(&error))
    }
}

/// Removes the backups of a database from the queue. If a backup still exists, a watcher will find it and check it
/// again.
fn forget_backups(transaction: &Transaction<'_>, database: &Named) -> rusqlite::Result<()> {
    let Named { family, server, name, .. } = database;
    transaction.execute(
        "DELETE FROM backup WHERE state <> 'running' AND family = ?1
         AND (?2 = '' OR server = '' OR server = ?2 COLLATE NOCASE AND name = ?3)",
        [family, server, name],
    )?;
    let identity = identity_of(family, server, name);
    transaction.execute("DELETE FROM progress WHERE identity = ?1", [&identity])?;
    transaction.execute("DELETE FROM alarm WHERE identity = ?1", [&identity]).map(drop)
}
