//! Records a run in the history, in one transaction.

use std::path::PathBuf;
use std::time::SystemTime;

use catalog::Database;
use findings::{PhaseStatistics, Report};
use rusqlite::{OptionalExtension, Transaction, params};
use source::PageSource;

use crate::coverage::{self, InWindow};
use crate::error::{HistoryError, Result};
use crate::file::History;
use crate::identity::{Identity, Ids, Naming, shown, storable, whole};
use crate::lease;
use crate::life::{self, Changes};
use crate::outbox::{self, About};
use crate::queue::{self, Claim, Outcome, Watched};
use crate::scope::Asked;
use crate::stored::stored;
use crate::{objects, time};

/// The maximum number of unverified places that the history stores in detail for one run. The number of unverified
/// places that is stored with the run also includes the places beyond this limit.
const MOST_NOT_VERIFIED: usize = 1000;

/// A run that reached its end and has a report.
pub struct Run<'a> {
    /// The result of the run.
    pub report: &'a Report,
    /// The source of the pages that the run checked.
    pub source: &'a dyn PageSource,
    /// The catalog of the database.
    pub database: &'a Database,
    /// The name of this machine, and the settings by which the machine identifies the database.
    pub naming: &'a Naming,
    /// When the run began.
    pub started: SystemTime,
    /// The exit status of the run.
    pub exit_status: u8,
    /// The ranges and the lease of the time window; `None` if the run was not in a time window.
    pub window: Option<InWindow<'a>>,
    /// The backup in a watcher's queue that the run checked, if any.
    pub watched: Option<Watched<'a>>,
    /// Whether changes of findings are recorded as events.
    pub has_listener: bool,
}

/// A run that ended with an error.
#[derive(Debug)]
pub struct FailedRun<'a> {
    /// The files that the run was asked to check.
    pub paths: &'a [PathBuf],
    /// The machine on which the run took place.
    pub host: &'a str,
    /// When the run began.
    pub started: SystemTime,
    /// The exit status of the run.
    pub exit_status: u8,
    /// The error that ended the run.
    pub error: &'a str,
    /// The claim on the backup in a watcher's queue that could not be checked, if any.
    pub watched: Option<&'a Claim>,
    /// Whether the failure is recorded as an event.
    pub has_listener: bool,
}

/// The number of the recorded run, and the numbers of findings that it changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recorded {
    /// The number of the run.
    pub run: i64,
    /// The number of findings that did not exist before.
    pub new: u64,
    /// The number of findings that existed before and still exist.
    pub confirmed: u64,
    /// The number of findings that the run looked for again and that no longer exist.
    pub gone: u64,
    /// The number of findings for which the run could not look again.
    pub not_looked_at: u64,
}

impl History {
    /// Records a run.
    ///
    /// # Errors
    ///
    /// If the history cannot be written, or another process is using this database. In both cases, the history is not
    /// changed.
    pub fn record(&mut self, run: &Run<'_>) -> Result<Recorded> {
        let now = SystemTime::now();
        let ended = time::text(now);
        // A page of data files may change as soon as it has been read. So the results are dated with the start of the
        // run, not its end.
        let started = time::text(run.started);
        let identity = Identity::of(&run.report.database, run.source, run.database, (run.naming, &started));
        let done = self.transaction(|transaction| {
            let ids = identity.ids(transaction, &ended)?;
            let own = run.window.and_then(|window| window.lease);
            if let Some(by) = lease::living_holder(transaction, ids.database, (&run.naming.host, now))?
                && own != Some(&by)
            {
                return Ok(Err(by.to_string()));
            }
            if let Some(Watched { claim, .. }) = run.watched
                && !queue::holds(transaction, claim)?
            {
                // Another process has taken over the backup and will record its own run.
                return Ok(Err(queue::ANOTHER.to_owned()));
            }
            let recorded = write(transaction, run, &identity, ids, &ended)?;
            match run.watched {
                Some(Watched { claim, doubt }) => {
                    let outcome = Outcome::of(run.report, doubt);
                    queue::finish(transaction, claim, Some(recorded.run), &outcome, (run.has_listener, &ended))?;
                }
                // The exit status is 0 if every unverified place is allowed by the user, or will be read in the next
                // time window. So such places raise no event.
                None if run.has_listener && run.exit_status != 0 => {
                    if let Some(why) = queue::why_unknown(run.report) {
                        outbox::failed(transaction, about(&identity), &why, &ended)?;
                    }
                }
                None => {}
            }
            Ok(Ok(recorded))
        })?;
        done.map_err(|by| HistoryError::Leased { path: self.path().to_owned(), by })
    }

    /// Records a run that failed.
    ///
    /// # Errors
    /// The errors of [`Self::record`].
    pub fn record_failure(&mut self, run: &FailedRun<'_>) -> Result<()> {
        let paths: Vec<String> = run.paths.iter().map(|path| shown(path)).collect();
        let (started, ended) = (time::text(run.started), time::text(SystemTime::now()));
        let paths = paths.join(", ");
        // Successful runs store absolute paths. So the paths of this run are made absolute, too, and are compared with
        // the stored paths to find the name of the database.
        let whole_paths: Vec<String> = run.paths.iter().map(|path| whole(path)).collect();
        let whole_paths = whole_paths.join(", ");
        self.transaction(|transaction| {
            let tries = match run.watched {
                Some(claim) => queue::fail(transaction, claim, None, run.error)?,
                None => Some(1),
            };
            // Another process has claimed the backup meanwhile and will record the failure itself.
            if tries.is_none() {
                return Ok(0);
            }
            // Only the first failed attempt to check a backup is recorded as an event.
            if run.has_listener && tries == Some(1) {
                let of = match run.watched {
                    Some(claim) => queue::names(transaction, claim.id)?,
                    None => names(transaction, run.host, &whole_paths)?,
                };
                let (database, family) = of.unwrap_or_default();
                let about = About { database: &database, family: &family, paths: &paths };
                outbox::failed(transaction, about, run.error, &ended)?;
            }
            transaction.execute(
                "INSERT INTO run (started, ended, host, version, command, options, paths, exit_status, complete, error, findings,
                 findings_new, findings_gone, allocation_errors, consistency_errors, not_verified, pages_in_use, pages_read,
                 bytes_read, rows, seconds, spilled_bytes)
                 VALUES (?1, ?2, ?3, ?4, '', '{}', ?5, ?6, 0, ?7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0)",
                params![
                    started,
                    ended,
                    run.host,
                    env!("CARGO_PKG_VERSION"),
                    whole_paths,
                    run.exit_status,
                    storable(run.error)
                ],
            )
        })
        .map(drop)
    }
}

fn about(identity: &Identity) -> About<'_> {
    About { database: &identity.name, family: &identity.family, paths: &identity.paths }
}

/// Returns the name and family of the database in these files, as recorded by the last run that could open the
/// database.
fn names(transaction: &Transaction<'_>, host: &str, paths: &str) -> rusqlite::Result<Option<(String, String)>> {
    let query = "SELECT d.name, d.family FROM run r JOIN database d ON d.id = r.database
         WHERE r.host = ?1 AND r.paths = ?2 ORDER BY r.id DESC LIMIT 1";
    transaction.query_row(query, [host, paths], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

fn write(
    transaction: &Transaction<'_>,
    run: &Run<'_>,
    identity: &Identity,
    ids: Ids,
    ended: &str,
) -> rusqlite::Result<Recorded> {
    let asked = Asked::of(&run.report.options);
    let number = insert_run(transaction, run, (identity, ids), &asked, ended)?;
    coverage::write(transaction, (run.report, run.window.as_ref()), &asked, ids, (&identity.taken_at, ended))?;
    let objects = objects::write(transaction, (run.report, run.database), &asked, (ids, number))?;
    let (changes, events) =
        life::write(transaction, run.report, &asked, (ids, number), (identity, &run.naming.host, ended))?;
    if run.has_listener {
        outbox::findings(transaction, about(identity), number, (&events, ended))?;
    }
    let of_tables = run.window.as_ref().and_then(|window| window.tables);
    coverage::write_relations(transaction, (run.report, of_tables), &asked, (ids, &objects), &identity.taken_at)?;
    write_not_verified(transaction, run.report, number)?;
    let Changes { new, confirmed, gone, not_looked_at } = changes;
    transaction.execute(
        "UPDATE run SET findings_new = ?2, findings_gone = ?3 WHERE id = ?1",
        params![number, stored(new), stored(gone)],
    )?;
    let has_ended_early = run.report.findings.groups().iter().any(|group| group.is_primitive);
    let is_compared = !objects::is_partly_open(run.report) && !has_ended_early && run.report.read_errors.is_empty();
    if asked.is_whole() && asked.is_full() && is_compared {
        let closed_at = if identity.kind == "files" { &identity.taken_at } else { ended };
        transaction.execute("UPDATE image SET closed_at = ?2 WHERE id = ?1", params![ids.image, closed_at])?;
    }
    Ok(Recorded { run: number, new, confirmed, gone, not_looked_at })
}

fn insert_run(
    transaction: &Transaction<'_>,
    run: &Run<'_>,
    (identity, ids): (&Identity, Ids),
    asked: &Asked,
    ended: &str,
) -> rusqlite::Result<i64> {
    let (report, statistics) = (run.report, &run.report.statistics);
    let counts = report.counts();
    let bytes: u64 = statistics.phases.iter().map(|phase| phase.bytes).sum();
    let cpu = |phase: &PhaseStatistics| Some(phase.cpu_user_seconds? + phase.cpu_system_seconds?);
    let cpu_seconds: Option<f64> = statistics.phases.iter().map(cpu).sum();
    transaction.execute(
        "INSERT INTO run (database, image, started, ended, host, version, command, options, paths, exit_status, complete, findings,
         findings_new, findings_gone, allocation_errors, consistency_errors, not_verified, pages_in_use, pages_read, bytes_read,
         rows, seconds, cpu_seconds, memory_peak, spilled_bytes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 0, 0, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)",
        params![
            ids.database,
            ids.image,
            time::text(run.started),
            ended,
            run.naming.host,
            env!("CARGO_PKG_VERSION"),
            asked.command,
            asked.json(),
            identity.paths,
            run.exit_status,
            report.complete(),
            stored(report.findings.len() as u64),
            stored(counts.allocation),
            stored(counts.consistency),
            stored((report.not_verified.len() + report.demoted.len()) as u64),
            stored(statistics.pages_allocated),
            stored(statistics.pages_read),
            stored(bytes),
            stored(statistics.rows),
            statistics.seconds,
            cpu_seconds,
            statistics.memory_peak.map(stored),
            stored(statistics.spilled_bytes),
        ],
    )?;
    Ok(transaction.last_insert_rowid())
}

fn write_not_verified(transaction: &Transaction<'_>, report: &Report, run: i64) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare(
        "INSERT INTO not_verified (run, limit_id, what, scope, reason, count) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for entry in report.not_verified.iter().take(MOST_NOT_VERIFIED) {
        let (what, scope, reason) = (storable(&entry.what), storable(&entry.scope), storable(&entry.reason));
        insert.execute(params![run, entry.limit.id, what, scope, reason, stored(entry.count)])?;
    }
    Ok(())
}
