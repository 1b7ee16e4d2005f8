//! `mdfsck check`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;

use catalog::Database;
use check::registry::limits::Limit;
use check::{Finding, NotVerified, Options, Report, Scope};
use report::errorlog::Statement;
use report::{Format, View};
use source::{PageSource, Throttled};

use crate::cli::{CheckArguments, Constraints, RecoveryArguments};
use crate::error_log::{self, ErrorLog};
use crate::failure::{Failure, report_read_faults, warn};
use crate::input::{Input, Reading};
use crate::output::Target;
use crate::spool::{self, Spool};
use crate::{audit, nice, progress, recover, scope, size, terminal};

pub(crate) fn run(arguments: &CheckArguments) -> Result<u8, Failure> {
    if arguments.nice
        && let Some(status) = nice::yield_to_others()
    {
        return Ok(status);
    }
    let RecoveryArguments { memory, temp_dir, .. } = &arguments.recovery;
    temp_dir.as_deref().map_or(Ok(()), spool::try_folder)?;
    let listener = progress::listener(arguments.progress);
    let reading = Reading {
        sets: &arguments.set,
        direct: arguments.direct,
        spool: Spool { directory: temp_dir.as_deref(), limit: arguments.spool_limit, progress: listener.as_ref() },
        memory: *memory,
        stop: &arguments.stop,
    };
    let input = Input::open(&arguments.paths, &reading)?;
    let source = input.pages();
    listener.phase("load", 0);
    let as_stored = catalog::load(source);
    listener.phase("recover", 0);
    let (log_audit, recovered) = audit::beside(
        arguments.maxdop,
        || audit::of_check(arguments, source, &as_stored),
        |is_newer| input.recover(&arguments.paths, &arguments.recovery, &as_stored, is_newer),
    );
    let mut recovered = recovered?;
    let (pages, database) = recovered.view(source, as_stored);
    check::warnings(pages, &database).iter().for_each(|warning| warn(&warning.text));
    let mut options = Options {
        scope: scope_of(arguments, &database)?,
        physical_only: arguments.physical_only,
        no_index: arguments.noindex,
        data_purity: arguments.no_data_purity.then_some(false),
        constraints: arguments.constraints.is_some(),
        all_constraints: arguments.constraints == Some(Constraints::All),
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
        drop(listener);
        return estimate(source, &mut recovered, &database, &options, arguments);
    }
    let source = recovered.pages_or(source);
    // Opened before the run, so that a path that cannot be written does not cost a night.
    let out = Target::open(arguments.output.as_deref(), source)?;
    let error_log = arguments.errorlog_line.as_deref().map(|path| ErrorLog::open(path, source)).transpose()?;
    let report = match arguments.io_limit {
        Some(limit) => check::run(&Throttled::new(source, limit), &database, &options, listener.as_ref()),
        None => check::run(source, &database, &options, listener.as_ref()),
    };
    // No bar among the results.
    drop(listener);
    let view = View { no_infomsgs: arguments.no_infomsgs, max_findings: arguments.max_findings };
    let format = arguments.format();
    let status = status(&report, arguments.exit_zero_on_incomplete);
    let written = out.write(|out| match arguments.wants_summary(terminal::is_stdout()) {
        true => terminal::write_summary(&report, view, (arguments, status), out),
        false => report::write(format, &report, view, out),
    });
    for notice in &report.notices {
        warn(notice);
    }
    // That a file was cut was said before the run.
    let is_new = |error: &&str| report.warnings.iter().all(|warning| warning.text != *error);
    let read_errors = report.read_errors.iter().map(String::as_str).filter(is_new);
    for error in read_errors.chain(report.findings.error()).chain(report.demoted.error()) {
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
    let status = status | written.map_or_else(Failure::report, |()| 0);
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
    let (shown, follows) = report::not_verified::split(report);
    for entry in shown {
        let allowed = if report.is_allowed(entry.limit) { ", allowed" } else { "" };
        let NotVerified { what, scope, reason, limit, .. } = entry;
        warn(format!("not verified: {what}, {scope}: {reason} ({}{allowed})", limit.id));
    }
    if !follows.is_empty() {
        let more = follows.len();
        warn(format!("not verified: what depends on the missing stripes: {more} more (--format json lists all)"));
    }
    let folded: BTreeSet<&Limit> = follows.iter().map(|entry| entry.limit).collect();
    let is_shown = |finding: &Cow<'_, Finding>| finding.demoted_by.is_none_or(|limit| !folded.contains(limit));
    for finding in report.demoted.iter().filter(is_shown).take(view.max_findings.unwrap_or(usize::MAX)) {
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
