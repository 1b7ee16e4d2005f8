//! Who works on a database of the history, or on all of it, for longer than a transaction.

use std::process;
use std::time::{Duration, SystemTime};

use rusqlite::{OptionalExtension, Transaction, params};

use crate::error::{HistoryError, Result};
use crate::file::History;
use crate::time;

/// A holder that says nothing for so long is gone. It says that it works every 30 seconds.
const SILENCE: Duration = Duration::from_secs(120);

/// The right to work on a database of a history.
#[derive(Debug, PartialEq, Eq)]
pub struct Lease {
    scope: i64,
    host: String,
    pid: u32,
    started: String,
}

impl History {
    /// Takes the lease on a database (its id), or on the whole history (0).
    ///
    /// # Errors
    /// [`HistoryError::Busy`] with who holds it.
    pub fn lease(&mut self, scope: i64, host: &str) -> Result<Lease> {
        let now = SystemTime::now();
        let lease = Lease { scope, host: host.to_owned(), pid: process::id(), started: time::text(now) };
        let holder = self.transaction(|transaction| {
            if let Some(holder) = holder(transaction, scope, now)? {
                return Ok(Some(holder));
            }
            transaction.execute(
                "INSERT OR REPLACE INTO lease (scope, host, pid, started, heartbeat) VALUES (?1, ?2, ?3, ?4, ?4)",
                params![scope, lease.host, lease.pid, lease.started],
            )?;
            Ok(None)
        })?;
        match holder {
            Some(by) => Err(HistoryError::Busy { path: self.path().to_owned(), by }),
            None => Ok(lease),
        }
    }

    /// Says that the holder still works.
    ///
    /// # Errors
    /// [`HistoryError::Busy`] if another has taken it meanwhile.
    pub fn renew(&mut self, lease: &Lease) -> Result<()> {
        let now = time::text(SystemTime::now());
        let renewed = self.transaction(|transaction| {
            transaction.execute(
                "UPDATE lease SET heartbeat = ?1 WHERE scope = ?2 AND host = ?3 AND pid = ?4 AND started = ?5",
                params![now, lease.scope, lease.host, lease.pid, lease.started],
            )
        })?;
        match renewed {
            1 => Ok(()),
            _ => Err(HistoryError::Busy { path: self.path().to_owned(), by: "another process".to_owned() }),
        }
    }

    /// Gives a lease back.
    ///
    /// # Errors
    /// If the history cannot be written; the lease then ends by itself.
    pub fn release(&mut self, lease: &Lease) -> Result<()> {
        self.transaction(|transaction| {
            transaction.execute(
                "DELETE FROM lease WHERE scope = ?1 AND host = ?2 AND pid = ?3 AND started = ?4",
                params![lease.scope, lease.host, lease.pid, lease.started],
            )
        })
        .map(drop)
    }
}

/// Who else holds a lease that covers `scope`, in words.
pub(crate) fn holder(transaction: &Transaction<'_>, scope: i64, now: SystemTime) -> rusqlite::Result<Option<String>> {
    let alive = time::text(now.checked_sub(SILENCE).unwrap_or(now));
    let mut statement = transaction.prepare(
        "SELECT host, pid, started FROM lease WHERE (scope IN (0, ?1) OR ?1 = 0) AND heartbeat >= ?2 ORDER BY scope",
    )?;
    let found = statement.query_row(params![scope, alive], |row| {
        let (host, pid, started): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(format!("process {pid} on {host} since {started}"))
    });
    found.optional()
}
