//! `mdfsck check`.

use std::io;

use catalog::Database;
use check::{NotVerified, Options, Report, Scope};
use format::version;
use report::errorlog::Statement;
use report::{Format, View};
use source::{PageSource, Throttled};

use crate::cli::{CheckArguments, RecoveryArguments};
use crate::error_log::{self, ErrorLog};
use crate::failure::{Failure, report_read_faults, warn};
use crate::input::{Input, Reading};
use crate::output::Target;
use crate::spool::Spool;
use crate::{audit, nice, progress, recover, scope, size};

pub(crate) fn run(arguments: &CheckArguments) -> Result<u8, Failure> {
    if arguments.nice
        && let Some(status) = nice::yield_to_others()
    {
        return Ok(status);
    }
    let RecoveryArguments { memory, temp_dir, .. } = &arguments.recovery;
    let reading = Reading {
        sets: &arguments.set,
        direct: arguments.direct,
        spool: Spool { directory: temp_dir.as_deref(), limit: arguments.spool_limit },
        memory: *memory,
        stop: &arguments.stop,
    };
    let input = Input::open(&arguments.paths, &reading)?;
    let source = input.pages();
    let as_stored = catalog::load(source);
    let (log_audit, recovered) = audit::beside(
        arguments.maxdop,
        || audit::of_check(arguments, source, &as_stored),
        |is_newer| input.recover(&arguments.paths, &arguments.recovery, &as_stored, is_newer),
    );
    let mut recovered = recovered?;
    let (pages, database) = recovered.view(source, as_stored);
    warn_about_files(pages, &database);
    let mut options = Options {
        scope: scope_of(arguments, &database)?,
        physical_only: arguments.physical_only,
        no_index: arguments.noindex,
        data_purity: arguments.no_data_purity.then_some(false),
        constraints: arguments.constraints,
        identities: arguments.identity,
        max_threads: arguments.maxdop.into(),
        extended_logical_checks: arguments.extended_logical_checks,
        readers: arguments.readers,
        batches: arguments.batches,
        memory_bytes: *memory,
        temp_dir: temp_dir.clone(),
        hash_seed: None,
        allowed: arguments.allow.clone(),
        recovery: recovered.summary.clone(),
        log_audit,
        row_by_row: false,
    };
    let least = check::minimum_memory_bytes(pages, &database, &options);
    if let Some(granted) = *memory {
        // What recovery has in memory makes room for the check.
        if granted < least.saturating_add(recovered.kept_bytes()) {
            recovered.keep_at_most(granted.saturating_sub(least))?;
        }
        refuse_small_grant(granted, least.saturating_add(recovered.kept_bytes()), &options)?;
        options.memory_bytes = Some(granted - recovered.kept_bytes());
    }
    if arguments.estimate_only {
        return estimate(source, &mut recovered, &database, &options, arguments);
    }
    let source = recovered.pages_or(source);
    // Opened before the run, so that a path that cannot be written does not cost a night.
    let out = Target::open(arguments.output.as_deref(), source)?;
    let error_log = arguments.errorlog_line.as_deref().map(|path| ErrorLog::open(path, source)).transpose()?;
    let report = {
        let listener = progress::listener(arguments.progress);
        match arguments.io_limit {
            Some(limit) => check::run(&Throttled::new(source, limit), &database, &options, listener.as_ref()),
            None => check::run(source, &database, &options, listener.as_ref()),
        }
    };
    let view = View { no_infomsgs: arguments.no_infomsgs, max_findings: arguments.max_findings };
    let format = arguments.format();
    let written = out.write(|out| report::write(format, &report, view, out));
    for notice in &report.notices {
        warn(notice);
    }
    for error in
        report.read_errors.iter().map(String::as_str).chain(report.findings.error()).chain(report.demoted.error())
    {
        warn(error);
    }
    // Not among the results: they are the same for a database and every backup of it.
    if source.backup().is_some() && !report.findings.is_empty() {
        warn(format!("no repair applies to a backup. {}", report::explain::IN_A_BACKUP));
    }
    if matches!(format, Format::TableResults(_)) {
        report_what_has_no_row(&report, view);
    }
    if arguments.stats {
        // If stderr is closed, the results are still valid.
        let _ = report::statistics::write(&report, &mut io::stderr().lock());
    }
    // If results could not be shown, the exit status still has them.
    let status = status(&report, arguments.exit_zero_on_incomplete) | written.map_or_else(Failure::report, |()| 0);
    if error_log.is_some() || arguments.log {
        let who = error_log::who();
        let (no_infomsgs, data_purity) = (arguments.no_infomsgs, arguments.data_purity);
        let lines = report::errorlog::lines(&report, Statement { who: &who, no_infomsgs, data_purity });
        error_log::write(error_log, arguments.log, &lines, status);
    }
    Ok(status)
}

/// The columns of TABLERESULTS have no place for what was not verified or not shown.
fn report_what_has_no_row(report: &Report, view: View) {
    for entry in &report.not_verified {
        let allowed = if report.is_allowed(entry.limit) { ", allowed" } else { "" };
        let NotVerified { what, scope, reason, limit, .. } = entry;
        warn(format!("not verified: {what}, {scope}: {reason} ({}{allowed})", limit.id));
    }
    for finding in report.demoted.iter().take(view.max_findings.unwrap_or(usize::MAX)) {
        let limit = finding.demoted_by.map_or("", |limit| limit.id);
        let (number, text) = (finding.check.msg, finding.text(&report.names()));
        warn(format!("not verified ({limit}): message {number}, state {}: {text}", finding.state));
    }
    for NotVerified { what, scope, reason, limit, .. } in report.notes.iter().filter(|_| !view.no_infomsgs) {
        warn(format!("note: {what}, {scope}: {reason} ({})", limit.id));
    }
    for result in report.beyond.identities.iter().filter(|result| result.is_behind()) {
        warn(report::identity_behind(result));
    }
    let hidden = report.findings.len().saturating_sub(view.max_findings.unwrap_or(usize::MAX));
    if hidden > 0 {
        warn(format!("{hidden} more findings are counted but not shown (--max-findings)"));
    }
}

fn status(report: &Report, zero_on_incomplete: bool) -> u8 {
    let mut status = 0;
    if !report.findings.is_empty() {
        status |= Failure::CORRUPT;
    }
    if !report.read_errors.is_empty() || report.findings.error().is_some() || report.demoted.error().is_some() {
        status |= Failure::UNABLE;
    }
    if !report.complete_as_allowed() && !zero_on_incomplete {
        status |= Failure::INCOMPLETE;
    }
    status
}

fn scope_of(arguments: &CheckArguments, database: &Database) -> Result<Scope, Failure> {
    if let Some(filegroup) = &arguments.filegroup {
        return scope::filegroup(database, filegroup).map(Scope::Filegroup);
    }
    if arguments.alloc {
        return Ok(Scope::Allocation);
    }
    if arguments.catalog {
        return Ok(Scope::Catalog);
    }
    if arguments.table.is_empty() {
        return Ok(Scope::Database);
    }
    let mut ids = arguments.table.iter().map(|name| scope::table(database, name)).collect::<Result<Vec<_>, _>>()?;
    ids.sort_unstable();
    ids.dedup();
    Ok(Scope::Tables(ids))
}

/// What the reader of the results must know about the files.
fn warn_about_files(source: &dyn PageSource, database: &Database) {
    let backup = source.backup();
    match backup.map(|backup| (source.in_flight(), backup.missing_stripes())) {
        None | Some((Some([]), _)) => {}
        Some((Some(pages), _)) => warn(format!(
            "{} pages are in flight: the log in the backup still changes them; findings that may depend on them are not \
             verified",
            pages.len()
        )),
        Some((None, 0)) => warn("the backup's log could not be read; pages are checked without it"),
        Some((None, missing)) => {
            warn(format!("{missing} stripes of the backup are missing; only the pages in the others are checked"))
        }
    }
    if let Some(others) = backup.map(source::BackupPages::other_sets).filter(|others| !others.is_empty()) {
        let others: Vec<String> = others.iter().map(ToString::to_string).collect();
        warn(format!("other sets in the file are not checked: {} (--set N chooses)", others.join(", ")));
    }
    recover::warn_if_not_recovered(source, database, "checked");
    let Some(boot) = &database.boot else { return };
    if boot.version > version::NEWEST {
        warn(format!(
            "database version {} is newer than {}, the newest that this program knows",
            boot.version,
            version::NEWEST
        ));
    }
}

/// A grant that is too small is refused before the run, with the minimum.
fn refuse_small_grant(granted: u64, least: u64, options: &Options) -> Result<(), Failure> {
    if granted >= least {
        return Ok(());
    }
    let threads = match options.threads() {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads; fewer need less, see --maxdop"),
    };
    let (granted, least) = (size::text(granted), size::text(least));
    Err(Failure::usage(format!("--memory {granted}: this check needs {least} at least ({threads})")))
}

/// `--estimate-only`.
fn estimate(
    source: &dyn PageSource,
    recovered: &mut recover::Outcome<'_>,
    database: &Database,
    options: &Options,
    arguments: &CheckArguments,
) -> Result<u8, Failure> {
    let out = Target::open(arguments.output.as_deref(), source)?;
    let mut estimate = check::estimate(recovered.pages_or(source), database, options);
    // Recovered pages need memory too; --memory is accepted with what of them cannot go to temporary files.
    estimate.memory_bytes += recovered.kept_bytes();
    recovered.keep_at_most(0)?;
    estimate.minimum_memory_bytes += recovered.kept_bytes();
    let source = recovered.pages_or(source);
    let name = check::database_name(source, database);
    let view = View { no_infomsgs: arguments.no_infomsgs, max_findings: None };
    let format = arguments.format();
    out.write(|out| report::estimate::write((format, view), estimate, &options.scope, &name, out))?;
    if matches!(format, Format::TableResults(_)) {
        warn(report::estimate::needs(estimate));
    }
    Ok(report_read_faults(&source.read_faults()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use check::registry;

    #[test]
    fn bits_of_the_status_add() {
        let mut report = Report::default();
        assert_eq!(status(&report, false), 0);
        report.findings = vec![check::Finding::new(&registry::CATALOG_UNUSABLE)].into();
        report.read_errors.push("a.mdf: cannot read".to_owned());
        let entry = NotVerified {
            what: "columns".into(),
            scope: "database".into(),
            reason: "no catalog".into(),
            count: 0,
            limit: &registry::limits::COLUMNS_UNKNOWN,
        };
        report.not_verified.push(entry);
        assert_eq!((status(&report, false), status(&report, true)), (1 + 4 + 16, 1 + 4));
        report.options.allowed.push(&registry::limits::COLUMN_UNKNOWN);
        assert_eq!(status(&report, false), 1 + 4 + 16, "another limit is allowed");
        report.options.allowed.push(&registry::limits::COLUMNS_UNKNOWN);
        assert_eq!(status(&report, false), 1 + 4);
    }
}
