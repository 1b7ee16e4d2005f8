//! `mdfsck audit`: compares the pages of a database with the database's log.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use catalog::Database;
use findings::LogAudit;
use recovery::Refusal;
use source::PageSource;

use crate::cli::AuditArguments;
use crate::failure::{Failure, report_read_faults, warn};
use crate::recover::Found;
use crate::request::{RecoveryOptions, Request};
use crate::throttle::throttled;
use crate::{folders, output, recover};

/// An audit before a check may use 1/`SHARE` of the memory grant for its table of pages, and frees this memory before
/// the check.
const SHARE: u64 = 4;

/// The audit for the report of a check. `None` if the user named no log and no log is in the folders of the data files,
/// or if the log cannot be compared with the pages. This function reports no problem of a log, since recovery decides
/// which problems to report.
pub(crate) fn of_check(arguments: &Request, source: &dyn PageSource, database: &Database) -> Option<Arc<LogAudit>> {
    let is_of_pages = !arguments.scope.alloc && !arguments.scope.catalog && !arguments.estimate_only;
    if !is_of_pages {
        return None;
    }
    throttled(arguments, source, |source| of_log(&arguments.paths, &arguments.recovery, source, database))
}

/// Finds the log of the database and audits the pages. `None` if there is no log, or the log cannot be compared with
/// the pages.
pub(crate) fn of_log(
    paths: &[PathBuf],
    options: &RecoveryOptions,
    source: &dyn PageSource,
    database: &Database,
) -> Option<Arc<LogAudit>> {
    // SQL Server recreates tempdb at each start, so the log of tempdb need not match its pages.
    let is_of_files = source.backup().is_none() && source.snapshot().is_none() && source.carved().is_none();
    if options.no_log || !is_of_files || recover::is_tempdb(database) {
        return None;
    }
    let Found { logs, .. } = recover::find(paths, source, database);
    if logs.is_empty() {
        return None;
    }
    let log = recover::open(&logs, database).ok()?;
    let memory = options.room.memory.unwrap_or(findings::DEFAULT_MEMORY_BYTES) / SHARE;
    audit::audit(source, database, &log, memory).ok().map(Arc::new)
}

/// Runs `audit` on another thread while `recover` runs on this thread. `recover` receives a function that waits for the
/// audit and returns whether any page is newer than the log. If only one thread may be used, or if no thread can be
/// started, that function runs `audit` itself.
pub(crate) fn beside<T>(
    threads: u16,
    audit: impl Fn() -> Option<Arc<LogAudit>> + Sync,
    recover: impl FnOnce(&mut dyn FnMut() -> bool) -> T,
) -> (Option<Arc<LogAudit>>, T) {
    thread::scope(|scope| {
        let spawn = || thread::Builder::new().spawn_scoped(scope, &audit).ok();
        let mut running = if threads == 1 { None } else { spawn() };
        let mut done: Option<Option<Arc<LogAudit>>> = None;
        let mut ask = || {
            let found = done.get_or_insert_with(|| match running.take() {
                Some(running) => running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                None => audit(),
            });
            found.as_ref().is_some_and(|audit| audit.has_newer_pages())
        };
        let recovered = recover(&mut ask);
        ask();
        (done.flatten(), recovered)
    })
}

pub(crate) fn run(arguments: &AuditArguments) -> Result<u8, Failure> {
    let source = source::open(&arguments.paths, &[], false)?;
    if source.backup().is_some() {
        return Err(Failure::usage("audit compares data files with their log files; give both, not a backup"));
    }
    if source.snapshot().is_some() {
        return Err(Failure::usage(
            "audit compares data files with their log files; a snapshot has no log: give the files of its database",
        ));
    }
    let source = source.as_ref();
    let database = catalog::load(source);
    if recover::is_tempdb(&database) {
        let path = arguments.paths.first().map(|path| path.display().to_string()).unwrap_or_default();
        return Err(Failure::usage(format!(
            "{path}: is a file of tempdb. The server creates tempdb again at every start, so its pages need not agree with \
             its log; 'mdfsck check' checks each page without the log"
        )));
    }
    let Found { logs, passed_over, .. } = recover::find(&arguments.paths, source, &database);
    if logs.is_empty() {
        let text = match passed_over.as_slice() {
            [] => "no log of this database was given, and no log was found beside its data files".to_owned(),
            passed_over => format!("{}: no other log is beside the data files", passed_over.join("; ")),
        };
        return Err(Failure::usage(format!("{text}; give the .ldf files")));
    }
    passed_over.iter().for_each(warn);
    let memory = arguments.memory.unwrap_or(findings::DEFAULT_MEMORY_BYTES);
    let log = recover::open(&logs, &database).map_err(|refusal| cannot_compare(&logs, refusal))?;
    let audit = audit::audit(source, &database, &log, memory).map_err(|refusal| cannot_compare(&logs, refusal))?;
    let mut report = check::report_of_audit(source, &database, &audit, log.changes());
    report.read_errors.extend(source.read_faults().failed.into_iter().map(|failed| failed.text()));
    report.warnings.iter().for_each(|warning| warn(&warning.text));
    output::print(|out| match arguments.json {
        true => report::audit::write_json(&report, &audit, out),
        false => report::audit::write_text(&report, &audit, out),
    })?;
    let mut status = report_read_faults(&source.read_faults());
    if !report.findings.is_empty() {
        status |= Failure::CORRUPT;
    }
    if !report.complete() {
        status |= Failure::INCOMPLETE;
    }
    Ok(status)
}

fn cannot_compare(logs: &[PathBuf], refusal: Refusal) -> Failure {
    let logs = folders::names(logs);
    match refusal {
        Refusal::Log(error) => error.into(),
        Refusal::Encrypted => {
            Failure::unable(format!("{logs}: {refusal}: the changes in its records cannot be read without the key"))
        }
        Refusal::Damaged { .. }
        | Refusal::CheckpointDamaged { .. }
        | Refusal::CutOff { .. }
        | Refusal::TooShort { .. } => {
            Failure::unable(format!("{logs}: {refusal}; copy the log again, together with the data files"))
        }
        Refusal::NoBoot => {
            Failure::unable(format!("{logs}: {refusal}; 'mdfsck check' reports what is wrong with that page"))
        }
        _ => Failure::usage(format!("{logs}: {refusal}; give the log that was copied with the data files")),
    }
}
