//! Claims. Before a process checks a backup, it claims the backup, so that no other process checks it. The claim ends
//! when the process ends.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use rusqlite::params;

use crate::error::Result;
use crate::file::History;
use crate::holder::Holder;
use crate::identity::storable;
use crate::{lease, time};

/// The right to check a backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The number of the backup.
    pub id: i64,
    pub(crate) token: String,
}

impl History {
    /// Claims a backup that is ready; `None` if another process has claimed it first.
    ///
    /// # Errors
    /// If the history cannot be written.
    pub fn claim(&mut self, id: i64, holder: &Holder) -> Result<Option<Claim>> {
        let now = time::now();
        let taken = self.transaction(|transaction| {
            transaction.execute(
                "UPDATE backup SET state = 'running', holder = ?2, host = ?3, pid = ?4, heartbeat = ?5, started = ?5, ended = NULL
                 WHERE id = ?1 AND state = 'ready' AND (not_before IS NULL OR not_before <= ?5)",
                params![id, holder.token, holder.host(), holder.pid(), now],
            )
        })?;
        Ok((taken == 1).then(|| Claim { id, token: holder.token.clone() }))
    }

    /// Renews the claims of the backups in `working`, to show that this process is still checking them. Backups that
    /// this process has not claimed are not changed.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn beat(&mut self, holder: &Holder, working: &BTreeSet<i64>) -> Result<()> {
        let now = time::now();
        self.transaction(|transaction| {
            for id in working {
                let beat = "UPDATE backup SET heartbeat = ?2 WHERE id = ?3 AND state = 'running' AND holder = ?1";
                transaction.execute(beat, params![holder.token, now, id])?;
            }
            Ok(())
        })
    }

    /// Makes abandoned backups ready again, and returns their number. A backup is abandoned if the process that claimed
    /// it was killed, or if this process claimed it and it is not in `working`.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn reclaim(&mut self, holder: &Holder, working: &BTreeSet<i64>) -> Result<usize> {
        let now = SystemTime::now();
        self.transaction(|transaction| {
            let mut running =
                transaction.prepare("SELECT id, holder, host, pid, heartbeat FROM backup WHERE state = 'running'")?;
            let rows = running.query_map([], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, String>(2)?,
                    row.get::<_, u32>(3)?,
                    row.get::<_, String>(4)?,
                ))
            })?;
            let mut lost = 0;
            for row in rows.collect::<rusqlite::Result<Vec<_>>>()? {
                let (id, token, host, pid, heartbeat) = row;
                let is_former = host == holder.host() && pid == holder.pid();
                let is_gone = lease::is_silent(&heartbeat, now) || is_former || lease::has_ended(&host, pid, holder.host());
                let is_left = if token == holder.token { !working.contains(&id) } else { is_gone };
                if is_left {
                    lost += transaction.execute(
                        "UPDATE backup SET state = 'ready', losses = losses + 1, holder = NULL, started = NULL WHERE id = ?1",
                        [id],
                    )?;
                }
            }
            Ok(lost)
        })
    }

    /// Releases all claims of this process, so that the claimed backups become ready again.
    ///
    /// # Errors
    ///
    /// If the history cannot be written. In this case, the claims end when the process ends.
    pub fn release_all(&mut self, holder: &Holder) -> Result<()> {
        self.transaction(|transaction| {
            transaction.execute(
                "UPDATE backup SET state = 'ready', holder = NULL, started = NULL WHERE state = 'running' AND holder = ?1",
                [&holder.token],
            )
        })
        .map(drop)
    }

    /// Releases a claimed backup that cannot be checked yet. `reason` says what the backup waits for.
    ///
    /// # Errors
    /// If the history cannot be written.
    pub fn give_back(&mut self, claim: &Claim, reason: &str) -> Result<()> {
        self.transaction(|transaction| {
            transaction.execute(
                "UPDATE backup SET state = 'waiting', reason = ?3, holder = NULL, started = NULL
                 WHERE id = ?1 AND holder = ?2 AND state = 'running'",
                params![claim.id, claim.token, storable(reason)],
            )
        })
        .map(drop)
    }

    /// Skips a claimed backup, because its files have vanished.
    ///
    /// # Errors
    /// If the history cannot be written.
    pub fn is_gone(&mut self, claim: &Claim) -> Result<()> {
        let now = time::now();
        self.transaction(|transaction| {
            transaction.execute(
                "UPDATE backup SET state = 'skipped', reason = ?3, ended = ?4, gone_at = ?4, holder = NULL, reported_at = NULL
                 WHERE id = ?1 AND holder = ?2 AND state = 'running'",
                params![claim.id, claim.token, super::finding::GONE, now],
            )
        })
        .map(drop)
    }
}

/// The time until the next attempt to check a backup, after `tries` failed attempts.
pub(super) fn backoff(tries: u32) -> Duration {
    Duration::from_secs(match tries {
        0 | 1 => 60,
        2 => 240,
        // The cause may be a network share that is unavailable for a while, so attempts continue. It may also be a
        // broken disk, which stays broken, so the pauses grow to six hours.
        more => 3600 * (1_u64 << (more - 3).min(3)).min(6),
    })
}
