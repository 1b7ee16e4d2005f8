//! Figures about each database, for monitoring systems.

use crate::error::Result;
use crate::file::History;
use crate::{state, time};

/// Figures of a database.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Vital {
    /// The name of the database.
    pub name: String,
    /// The family: the database and all databases restored from its backups.
    pub family: String,
    /// The server of the database; empty if databases of one family count as one database, whatever their servers.
    pub server: String,
    /// The state of the database, see [`DatabaseState`](crate::state::DatabaseState): `sound`, `corrupt` or `unknown`.
    pub state: String,
    /// The number of new findings.
    pub new: u64,
    /// The number of open findings that a later run has seen again.
    pub confirmed: u64,
    /// The number of open findings that are acknowledged.
    pub acknowledged: u64,
    /// The time at which the last sound CHECKDB ended, in seconds since 1970. A CHECKDB is sound if it verified
    /// everything and found nothing. CHECKDBs of any depth are taken into account.
    pub verified_physical: Option<i64>,
    /// Like `verified_physical`, but only for checks in full depth.
    pub verified_full: Option<i64>,
    /// The fraction of the pages in use that were read at least once.
    pub coverage: Option<f64>,
    /// The total number of pages that the runs over the database have read.
    pub pages_read: u64,
    /// When the newest sound full backup was taken (seconds since 1970).
    pub backup_full: Option<i64>,
    /// When the newest sound differential backup was taken (seconds since 1970).
    pub backup_differential: Option<i64>,
}

/// Figures of all databases, and of the queue.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Vitals {
    /// The databases, by name.
    pub databases: Vec<Vital>,
    /// The number of backups that are not complete yet.
    pub waiting: u64,
    /// The number of backups that are ready to be checked, or are being checked.
    pub ready: u64,
    /// The number of events that are not delivered yet.
    pub events: u64,
    /// When the last run ended (seconds since 1970), and its exit status.
    pub last_run: Option<(i64, u8)>,
}

const DATABASES: &str = r#"SELECT l.database, l.family, CASE c.rank WHEN 0 THEN 'corrupt' WHEN 9 THEN 'sound' ELSE 'unknown' END,
    (SELECT count(*) FROM finding f JOIN source s ON s.id = f.source WHERE s.database = d.id AND f.life = 'new' AND NOT (ACK)),
    (SELECT count(*) FROM finding f JOIN source s ON s.id = f.source WHERE s.database = d.id AND f.life = 'confirmed' AND NOT (ACK)),
    (SELECT count(*) FROM finding f JOIN source s ON s.id = f.source WHERE s.database = d.id AND f.life <> 'gone' AND (ACK)),
    (SELECT max(ended) FROM run r WHERE r.database = d.id AND r.findings = 0 AND r.complete = 1 AND r.command = 'CHECKDB'),
    (SELECT max(ended) FROM run r WHERE r.database = d.id AND r.findings = 0 AND r.complete = 1 AND r.command = 'CHECKDB'
        AND instr(r.options, '"physical_only":true') = 0 AND instr(r.options, '"no_index":true') = 0),
    (SELECT 1.0 - 1.0 * v.pages_never_read / nullif(v.pages_in_use, 0) FROM v_coverage v WHERE v.identity = l.identity),
    (SELECT coalesce(sum(pages_read), 0) FROM run r WHERE r.database = d.id),
    (SELECT max(b.taken_at) FROM backup b JOIN run r ON r.id = b.run WHERE r.database = d.id AND b.type = 'full' AND b.verdict = 'sound'),
    (SELECT max(b.taken_at) FROM backup b JOIN run r ON r.id = b.run WHERE r.database = d.id AND b.type = 'differential'
        AND b.verdict = 'sound'), l.server
    FROM v_last l JOIN database d ON d.identity = l.identity LEFT JOIN worst c ON c.database = d.id AND c.place = 1
    ORDER BY l.database, d.id"#;

/// The SQL condition that tests whether a finding is acknowledged.
const ACKNOWLEDGED: &str = "f.ack_by IS NOT NULL AND (f.ack_until IS NULL OR f.ack_until > ?1)";

impl History {
    /// The figures of all databases.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn vitals(&self) -> Result<Vitals> {
        let read = || {
            let mut databases = self.connection().prepare(&format!(
                "WITH {} {}",
                state::parts(),
                DATABASES.replace("ACK", ACKNOWLEDGED)
            ))?;
            let moment = |text: Option<String>| text.and_then(|text| time::seconds(&text));
            let rows = databases.query_map([time::now()], |row| {
                Ok(Vital {
                    name: row.get(0)?,
                    family: row.get(1)?,
                    state: row.get(2)?,
                    new: row.get(3)?,
                    confirmed: row.get(4)?,
                    acknowledged: row.get(5)?,
                    verified_physical: moment(row.get(6)?),
                    verified_full: moment(row.get(7)?),
                    coverage: row.get(8)?,
                    pages_read: row.get(9)?,
                    backup_full: moment(row.get(10)?),
                    backup_differential: moment(row.get(11)?),
                    server: row.get(12)?,
                })
            })?;
            let databases = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            let count = |query: &str| self.connection().query_row(query, [], |row| row.get(0));
            let mut last = self.connection().prepare("SELECT ended, exit_status FROM run ORDER BY id DESC LIMIT 1")?;
            let mut last = last.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, u8>(1)?)))?;
            let last_run = last.next().transpose()?.and_then(|(ended, status)| Some((time::seconds(&ended)?, status)));
            Ok(Vitals {
                databases,
                waiting: count("SELECT count(*) FROM backup WHERE state = 'waiting'")?,
                ready: count("SELECT count(*) FROM backup WHERE state IN ('ready', 'running')")?,
                events: count("SELECT count(*) FROM outbox WHERE done_at IS NULL")?,
                last_run,
            })
        };
        read().map_err(|error: rusqlite::Error| self.failed(&error))
    }
}
