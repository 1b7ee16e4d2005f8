//! Leases. A lease records which process works on a database of the history, or on the whole history, for longer than
//! one transaction.

use std::fmt::{self, Display};
use std::path::Path;
use std::process;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::error::{HistoryError, Result};
use crate::file::History;
use crate::time;

/// The time without a renewal after which the holder of a lease is assumed to have ended. Holders renew their leases
/// every 30 seconds.
const SILENCE: Duration = Duration::from_secs(120);

/// The right to work on a database of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    scope: i64,
    host: String,
    pid: u32,
    started: String,
}

/// Prints the holder of the lease.
impl Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {} since {}", self.pid, self.host, self.started)
    }
}

impl History {
    /// Takes the lease on a database or on the whole history. `scope` is the ID of the database, or 0 for the whole
    /// history.
    ///
    /// # Errors
    ///
    /// [`HistoryError::Leased`] if another process holds the lease.
    pub fn lease(&mut self, scope: i64, host: &str) -> Result<Lease> {
        let now = SystemTime::now();
        match self.transaction(|transaction| take(transaction, scope, (host, now)))? {
            Err(by) => Err(HistoryError::Leased { path: self.path().to_owned(), by }),
            Ok(lease) => Ok(lease),
        }
    }

    /// Renews a lease, because its holder is still working.
    ///
    /// # Errors
    ///
    /// [`HistoryError::Leased`] if another process has taken the lease meanwhile.
    pub fn renew(&mut self, lease: &Lease) -> Result<()> {
        let now = time::text(SystemTime::now());
        let renewed = self.transaction(|transaction| beat(transaction, lease, &now))?;
        match renewed {
            1 => Ok(()),
            _ => Err(HistoryError::Leased { path: self.path().to_owned(), by: "another process".to_owned() }),
        }
    }

    /// Gives a lease back.
    ///
    /// # Errors
    ///
    /// If the history cannot be written. In this case, the lease ends when it expires.
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

/// Takes a lease within a transaction. If another process holds the lease, the result is an `Err` with a text that
/// names this process.
pub(crate) fn take(
    transaction: &Transaction<'_>,
    scope: i64,
    (host, now): (&str, SystemTime),
) -> rusqlite::Result<std::result::Result<Lease, String>> {
    began();
    if let Some(holder) = holder(transaction, scope, now)? {
        match is_gone(&holder, host) {
            true => _ = transaction.execute("DELETE FROM lease WHERE scope = ?1", [holder.scope])?,
            false => return Ok(Err(holder.to_string())),
        }
    }
    let lease = Lease { scope, host: host.to_owned(), pid: process::id(), started: time::text(now) };
    transaction.execute(
        "INSERT OR REPLACE INTO lease (scope, host, pid, started, heartbeat) VALUES (?1, ?2, ?3, ?4, ?4)",
        params![scope, lease.host, lease.pid, lease.started],
    )?;
    Ok(Ok(lease))
}

/// Renews a lease. Returns the number of rows changed, which is 0 if the holder no longer has the lease.
pub(crate) fn beat(transaction: &Transaction<'_>, lease: &Lease, now: &str) -> rusqlite::Result<usize> {
    transaction.execute(
        "UPDATE lease SET heartbeat = ?1 WHERE scope = ?2 AND host = ?3 AND pid = ?4 AND started = ?5",
        params![now, lease.scope, lease.host, lease.pid, lease.started],
    )
}

/// Whether the holder of a lease is a process on this machine that has ended without releasing the lease. Then the
/// lease may be taken before it expires. False if this process cannot see other processes.
fn is_gone(holder: &Lease, host: &str) -> bool {
    let is_former = holder.pid == process::id() && holder.started.as_str() < began();
    holder.host == host && is_former && sees_processes() || has_ended(&holder.host, holder.pid, host)
}

/// Whether a process on the machine `host` has ended. True only if `host` is this machine (`own`) and this process can
/// see other processes.
pub(crate) fn has_ended(host: &str, pid: u32, own: &str) -> bool {
    host == own && sees_processes() && !is_seen(pid)
}

fn sees_processes() -> bool {
    is_seen(process::id())
}

fn is_seen(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Whether a holder has stopped renewing its lease. A renewal time that is far in the future comes from a wrong clock,
/// and does not show that the holder is alive.
pub(crate) fn is_silent(heartbeat: &str, now: SystemTime) -> bool {
    let alive = time::text(now.checked_sub(SILENCE).unwrap_or(now));
    let latest = time::text(now.checked_add(SILENCE).unwrap_or(now));
    !(alive.as_str()..=latest.as_str()).contains(&heartbeat)
}

/// The time at which this process took its first lease. If a lease with the process ID of this process is older, it
/// belongs to a former process that had the same ID.
fn began() -> &'static str {
    static BEGAN: OnceLock<String> = OnceLock::new();
    BEGAN.get_or_init(|| time::text(SystemTime::now()))
}

/// Returns the machine of the process that works on a database, and the time at which the process took its lease.
/// `None` if no process holds the lease.
pub(crate) fn worker(
    connection: &Connection,
    database: i64,
    now: SystemTime,
) -> rusqlite::Result<Option<(String, String)>> {
    let lease = holder(connection, database, now)?.filter(|lease| lease.scope == database);
    Ok(lease.map(|lease| (lease.host, lease.started)))
}

/// Returns the holder of a lease that covers `scope`, unless it is a process on this machine (`host`) that has ended.
pub(crate) fn living_holder(
    connection: &Connection,
    scope: i64,
    (host, now): (&str, SystemTime),
) -> rusqlite::Result<Option<Lease>> {
    Ok(holder(connection, scope, now)?.filter(|holder| !is_gone(holder, host)))
}

/// Returns the holder of a lease that covers `scope`. A lease whose renewal time is far in the future is ignored,
/// because this time comes from a wrong clock.
pub(crate) fn holder(connection: &Connection, scope: i64, now: SystemTime) -> rusqlite::Result<Option<Lease>> {
    let alive = time::text(now.checked_sub(SILENCE).unwrap_or(now));
    let latest = time::text(now.checked_add(SILENCE).unwrap_or(now));
    let mut statement = connection.prepare_cached(
        "SELECT scope, host, pid, started FROM lease
         WHERE (scope IN (0, ?1) OR ?1 = 0) AND heartbeat BETWEEN ?2 AND ?3 ORDER BY scope",
    )?;
    let found = statement.query_row(params![scope, alive, latest], |row| {
        Ok(Lease { scope: row.get(0)?, host: row.get(1)?, pid: row.get(2)?, started: row.get(3)? })
    });
    found.optional()
}
