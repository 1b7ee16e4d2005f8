//! Compares the pages of a database with its log, for a check or a command that recovers the database.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use catalog::Database;
use findings::LogAudit;
use source::{ExtentSet, PageSource};

use crate::recover;
use crate::recover::Found;
use crate::request::{RecoveryOptions, Request};
use crate::throttle::throttled;

/// An audit before a check may use 1/`SHARE` of the memory grant for its table of pages, and frees this memory before
/// the check.
const SHARE: u64 = 4;

/// The audit for the report of a check. `None` if the user named no log and no log is in the folders of the data files,
/// or if the log cannot be compared with the pages. `is_divided` says whether other processes or
/// other windows share the audit. This function reports no problem of a log, since recovery decides
/// which problems to report.
pub fn of_check(
    request: &Request,
    is_divided: bool,
    source: &dyn PageSource,
    database: &Database,
) -> Option<Arc<LogAudit>> {
    let is_of_pages = !request.scope.alloc && !request.scope.catalog && !request.estimate_only;
    if !is_of_pages {
        return None;
    }
    // A window over data files that change reads few pages, so the audit must not read all of them.
    let is_confined = request.keep_parts.is_some() && request.windows.window.is_some();
    let changed = if is_confined && !is_divided { ExtentSet::marked(source).ok() } else { None };
    throttled(request, source, |source| {
        of_log_within(&request.paths, &request.recovery, (source, database), changed.as_ref())
    })
}

/// Finds the log of the database and audits the pages. `None` if there is no log, or the log cannot be compared with
/// the pages.
pub fn of_log(
    paths: &[PathBuf],
    options: &RecoveryOptions,
    source: &dyn PageSource,
    database: &Database,
) -> Option<Arc<LogAudit>> {
    of_log_within(paths, options, (source, database), None)
}

/// Like [`of_log`], but if `changed` is given, audits only the pages of these extents and the pages that the log names.
fn of_log_within(
    paths: &[PathBuf],
    options: &RecoveryOptions,
    (source, database): (&dyn PageSource, &Database),
    changed: Option<&ExtentSet>,
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
    audit::audit_of(source, database, &log, (memory, changed)).ok().map(Arc::new)
}

/// Runs `audit` on another thread while `recover` runs on this thread. `recover` receives a function that waits for the
/// audit and returns whether any page is newer than the log. If only one thread may be used, or if no thread can be
/// started, that function runs `audit` itself.
pub fn beside<T>(
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
