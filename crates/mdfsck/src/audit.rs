//! `mdfsck audit`: pages against their log, as they lie in the files.

use std::sync::Arc;

use catalog::Database;
use check::{LogAudit, registry};
use log::Log;
use source::{PageSource, Throttled};

use crate::cli::{AuditArguments, CheckArguments};
use crate::failure::{Failure, report_read_faults};
use crate::{output, recover};

/// What part of the granted memory the table of pages takes before a check; it is given back then.
const SHARE: u64 = 4;

/// The audit that a check lists, if a log of the database is at hand. A log that cannot be compared is passed over: whether that
/// matters is for recovery to say.
pub(crate) fn of_check(
    arguments: &CheckArguments,
    source: &dyn PageSource,
    database: &Database,
) -> Option<Arc<LogAudit>> {
    let is_of_pages = !arguments.alloc && !arguments.catalog && !arguments.estimate_only;
    if arguments.recovery.no_log || !is_of_pages || source.backup().is_some() {
        return None;
    }
    let (logs, _) = recover::find(&arguments.paths, source, database);
    if logs.is_empty() {
        return None;
    }
    let log = Log::open(&logs).ok()?;
    let memory = arguments.recovery.memory.unwrap_or(check::DEFAULT_MEMORY_BYTES) / SHARE;
    let audit = match arguments.io_limit {
        Some(limit) => audit::audit(&Throttled::new(source, limit), database, &log, memory),
        None => audit::audit(source, database, &log, memory),
    };
    audit.ok().map(Arc::new)
}

/// Whether a page is newer than the end of the log: then files and log are not of one moment, and nothing can be recovered.
pub(crate) fn is_of_another_moment(audit: &LogAudit) -> bool {
    audit.findings.iter().any(|finding| *finding.check == registry::LOG_PAGE_NEWER)
}

pub(crate) fn run(arguments: &AuditArguments) -> Result<u8, Failure> {
    let source = source::open(&arguments.paths, &[], false)?;
    if source.backup().is_some() {
        return Err(Failure::usage("audit compares data files with their log files; name those"));
    }
    let source = source.as_ref();
    let database = catalog::load(source);
    let (logs, _) = recover::find(&arguments.paths, source, &database);
    if logs.is_empty() {
        return Err(Failure::usage(
            "no log of this database was named, and none is beside its data files; name the .ldf files",
        ));
    }
    let memory = arguments.memory.unwrap_or(check::DEFAULT_MEMORY_BYTES);
    let log = Log::open(&logs)?;
    let audit = audit::audit(source, &database, &log, memory).map_err(|refusal| {
        Failure::usage(format!(
            "{}: {refusal}; name the log that was copied with the data files",
            recover::names(&logs)
        ))
    })?;
    let mut report = check::report_of_audit(source, &database, &audit);
    report.read_errors.extend(source.read_faults().failed.into_iter().map(|failed| failed.text));
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
