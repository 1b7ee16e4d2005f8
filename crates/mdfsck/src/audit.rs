//! `mdfsck audit`: pages against their log, as they lie in the files.

use log::Log;

use crate::cli::AuditArguments;
use crate::failure::{Failure, report_read_faults};
use crate::{output, recover};

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
