//! `mdfsck audit`: compares the pages of a database with the database's log.

use std::path::PathBuf;

use jobs::failure::{Failure, report_read_faults};
use jobs::recover::Found;
use jobs::{folders, recover};
use recovery::Refusal;

use crate::cli::AuditArguments;
use crate::output;
use crate::speaker::warn;

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
