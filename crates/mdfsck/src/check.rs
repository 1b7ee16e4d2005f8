//! `mdfsck check`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use catalog::Database;
use check::part::Fingerprint;
use check::registry::limits::Limit;
use check::{Finding, NotVerified, Options, Report, Scope};
use report::databases::{Row, Verdict};
use report::errorlog::Statement;
use report::{Format, View};
use source::backup::{ChainSet, SetChoice};
use source::{PageSource, Throttled};

use crate::cli::{CheckArguments, Constraints, RoomArguments};
use crate::error_log::{self, ErrorLog};
use crate::failure::{Failure, report_read_faults, to_stderr, warn};
use crate::input::{Input, Reading};
use crate::many::{self, Planned, plan};
use crate::output::Target;
use crate::progress::Place;
use crate::spool::{self, Spool};
use crate::spread::Spread;
use crate::{audit, keep, nice, progress, recover, scope, size, terminal};

pub(crate) fn run(arguments: &CheckArguments) -> Result<u8, Failure> {
    set_up(arguments, |arguments| {
        let choice = arguments.sets()?;
        let planned = plan::plan(&arguments.paths, &choice, arguments.stop.until()).inspect_err(|failure| {
            keep::failed(arguments, SystemTime::now(), failure);
        })?;
        match planned {
            Planned::One(paths) => {
                let what =
                    What { named: &arguments.paths, choice: &choice, sets: None, place: None, spread: Spread::None };
                one(&arguments.of(paths), &what)
            }
            Planned::Several(plan) => many::run(arguments, &choice, plan),
        }
    })
}

/// Does what comes before any check, and runs `act` with the arguments as far as they can be kept.
///
/// # Errors
/// If something that was asked for cannot be done; those of `act`.
pub(crate) fn set_up(
    arguments: &CheckArguments,
    act: impl FnOnce(&CheckArguments) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    if arguments.run.nice
        && let Some(status) = nice::yield_to_others()
    {
        return Ok(status);
    }
    error_log::refuse_results(arguments.results.errorlog_line.as_deref(), arguments.results.output.as_deref())?;
    arguments.recovery.room.temp_dir.as_deref().map_or(Ok(()), spool::try_folder)?;
    arguments.sets()?;
    keep::refuse_results(arguments)?;
    // A history is an aid: whatever is wrong with it, the check runs.
    let (history, unkept) = keep::usable(arguments.results.history.as_deref());
    let mut arguments = arguments.clone();
    arguments.results.history = history;
    let done = act(&arguments);
    done.map(|status| status | unkept).map_err(|failure| Failure { status: failure.status | unkept, ..failure })
}

/// Which database is checked.
pub(crate) struct What<'a> {
    /// The paths as the user named them.
    pub(crate) named: &'a [PathBuf],
    /// `--set`.
    pub(crate) choice: &'a SetChoice,
    /// The backup sets, if they were chosen.
    pub(crate) sets: Option<&'a [ChainSet]>,
    /// Its place among several.
    pub(crate) place: Option<Place<'a>>,
    /// What part of a check over many processes it is.
    pub(crate) spread: Spread<'a>,
}

/// Checks one database; its results are all that is written.
///
/// # Errors
/// If it cannot be checked.
pub(crate) fn one(arguments: &CheckArguments, what: &What<'_>) -> Result<u8, Failure> {
    let target = |source: &dyn PageSource| Ok(Out::Target(Target::open(arguments.results.output.as_deref(), source)?));
    let checked = check(arguments, what, target)?;
    // If results could not be shown, the exit status still has them.
    Ok(checked.status | checked.written.map_or_else(Failure::report, |()| 0))
}

/// Where the results of one database go.
pub(crate) enum Out<'o> {
    Target(Target),
    /// Among those of others. An error of it is kept here.
    Among(&'o mut dyn io::Write, &'o mut Option<io::Error>),
}

impl Out<'_> {
    fn write(self, write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> Result<(), Failure> {
        match self {
            Self::Target(target) => target.write(write),
            Self::Among(out, failed) => write(out).map_err(|cause| {
                *failed = Some(cause);
                Failure::quiet()
            }),
        }
    }
}

/// What came of the check of one database.
pub(crate) struct Checked {
    /// The exit status.
    pub(crate) status: u8,
    /// Whether its results could be written.
    written: Result<(), Failure>,
    /// Its row in the table of several; `None` for an estimate.
    pub(crate) row: Option<Row>,
}

/// Checks one database and hands what was found, the pages and their catalog to `act`. Returns the bits of the exit status with
/// what `act` returns.
///
/// # Errors
/// If it cannot be checked.
pub(crate) fn judge<R>(
    arguments: &CheckArguments,
    what: &What<'_>,
    act: impl FnOnce(&Report, &dyn PageSource, &Database) -> R,
) -> Result<(u8, R), Failure> {
    let listener = progress::listener(arguments.run.progress, what.place.as_ref());
    let input = open(arguments, what, listener.as_ref())?;
    let prepared = prepare(arguments, &input, listener.as_ref(), what)?;
    let source = prepared.recovered.pages_or(input.pages());
    let report = run_check(arguments, what, source, &prepared, listener.as_ref())?;
    drop(listener);
    for notice in &report.notices {
        warn(notice);
    }
    let done = act(&report, source, &prepared.database);
    Ok((status(&report, arguments.results.exit_zero_on_incomplete), done))
}

/// Checks one database and records that. The results go to `out`, which is opened before the check.
///
/// # Errors
/// If it cannot be checked.
pub(crate) fn check<'o>(
    arguments: &CheckArguments,
    what: &What<'_>,
    out: impl FnOnce(&dyn PageSource) -> Result<Out<'o>, Failure>,
) -> Result<Checked, Failure> {
    let started = SystemTime::now();
    check_from(arguments, what, out, started).map_err(|failure| {
        // It is tried again alone.
        let is_last = !failure.needs_memory || arguments.databases <= 1;
        let unkept = if is_last { keep::failed(arguments, started, &failure) } else { 0 };
        Failure { status: failure.status | unkept, ..failure }
    })
}

fn check_from<'o>(
    arguments: &CheckArguments,
    what: &What<'_>,
    out: impl FnOnce(&dyn PageSource) -> Result<Out<'o>, Failure>,
    started: SystemTime,
) -> Result<Checked, Failure> {
    let listener = progress::listener(arguments.run.progress, what.place.as_ref());
    let input = open(arguments, what, listener.as_ref())?;
    let mut prepared = prepare(arguments, &input, listener.as_ref(), what)?;
    let source = input.pages();
    // Opened before the run, so that a path that cannot be written does not cost a night.
    let out = out(source)?;
    if arguments.estimate_only {
        drop(listener);
        return estimate(source, &mut prepared, (arguments, out));
    }
    let source = prepared.recovered.pages_or(source);
    let error_log = arguments.results.errorlog_line.as_deref().map(|path| ErrorLog::open(path, source)).transpose()?;
    let report = run_check(arguments, what, source, &prepared, listener.as_ref())?;
    let database = &prepared.database;
    // No bar among the results.
    drop(listener);
    let view = View { no_infomsgs: arguments.results.no_infomsgs, max_findings: arguments.results.max_findings };
    let status_now = || status(&report, arguments.results.exit_zero_on_incomplete);
    let written = out.write(|out| match arguments.results.wants_summary(terminal::is_stdout()) {
        true => terminal::write_summary(&report, view, (arguments, status_now(), what.place.is_some()), out),
        false => report::write(arguments.results.format(), &report, view, out),
    });
    // Findings that went to a temporary file may have failed to be read while they were written.
    let status = status_now();
    report_aside(arguments, &report, view, source);
    if error_log.is_some() || arguments.results.log {
        let who = error_log::who();
        let (no_infomsgs, data_purity) = (arguments.results.no_infomsgs, arguments.scope.data_purity);
        let lines = report::errorlog::lines(&report, Statement { who: &who, no_infomsgs, data_purity });
        let unwritten = if written.is_err() { Failure::UNABLE } else { 0 };
        error_log::write(error_log, arguments.results.log, &lines, status | unwritten);
    }
    let status = status | keep::checked(arguments, started, status, (&report, source, database));
    Ok(Checked { status, written, row: Some(row(&report, database, status)) })
}

/// A database that can be checked.
pub(crate) struct Prepared<'i> {
    /// Its pages, if they are recovered.
    pub(crate) recovered: recover::Outcome<'i>,
    /// Its catalog.
    pub(crate) database: Database,
    /// What was read for it, if other processes must have read the same.
    pub(crate) catalog: Fingerprint,
    /// How it is checked.
    pub(crate) options: Options,
}

/// Reads the catalog, recovers the database with its log, and settles what the check may use.
///
/// # Errors
/// If it cannot be checked so.
pub(crate) fn prepare<'i>(
    arguments: &CheckArguments,
    input: &'i Input,
    listener: &dyn check::Progress,
    what: &What<'_>,
) -> Result<Prepared<'i>, Failure> {
    let memory = arguments.recovery.room.memory;
    // What is kept of objects is memory too; databases that are checked side by side share it.
    let held = source::storage::held_bytes() / u64::from(arguments.databases.max(1));
    let source = input.pages();
    let common = what.spread.common();
    listener.phase("load", 0);
    let load = |pages: &dyn PageSource| match common {
        Some(common) => check::part::load(pages, &common.key),
        None => (catalog::load(pages), Fingerprint::default()),
    };
    let (as_stored, of_stored) = load(source);
    listener.phase("recover", 0);
    let (log_audit, recovered) = audit::beside(
        arguments.run.maxdop,
        || match common.and_then(|common| common.audit.as_ref()) {
            Some(known) => known.clone(),
            None => audit::of_check(arguments, source, &as_stored),
        },
        |is_newer| input.recover(&arguments.paths, &arguments.recovery, &as_stored, is_newer),
    );
    let mut recovered = recovered?;
    let pages = recovered.pages_or(source);
    let (database, catalog) = if recovered.pages.is_some() { load(pages) } else { (as_stored, of_stored) };
    check::warnings(pages, &database).iter().for_each(|warning| warn(&warning.text));
    let mut options = Options {
        recovery: recovered.summary.clone(),
        log_audit,
        memory_bytes: memory,
        hash_key: common.map(|common| common.key.clone()),
        ..options(arguments, &database)?
    };
    let least = check::minimum_memory_bytes(pages, &database, &options);
    if let Some(granted) = memory {
        // What recovery has in memory makes room for the check.
        let least = least.saturating_add(held);
        if granted < least.saturating_add(recovered.kept_bytes()) {
            recovered.keep_at_most(granted.saturating_sub(least))?;
        }
        refuse_small_grant(granted, least.saturating_add(recovered.kept_bytes()), &options)?;
        options.memory_bytes = Some(granted - recovered.kept_bytes() - held);
    }
    let prepared = Prepared { recovered, database, catalog, options };
    what.spread.verify(arguments, what, input, &prepared)?;
    Ok(prepared)
}

/// Checks the pages, no faster than allowed.
fn run_check(
    arguments: &CheckArguments,
    what: &What<'_>,
    source: &dyn PageSource,
    prepared: &Prepared<'_>,
    listener: &dyn check::Progress,
) -> Result<Report, Failure> {
    let Prepared { database, options, .. } = prepared;
    throttled(arguments, source, |source| match what.spread {
        Spread::Merge(merge) => merge.run(source, database, options, listener),
        _ => Ok(check::run(source, database, options, listener)),
    })
}

/// Runs `act` with the pages, which are read no faster than allowed.
pub(crate) fn throttled<R>(
    arguments: &CheckArguments,
    source: &dyn PageSource,
    act: impl FnOnce(&dyn PageSource) -> R,
) -> R {
    match arguments.run.io_limit {
        Some(limit) => act(&Throttled::new(source, limit)),
        None => act(source),
    }
}

/// Opens the database.
///
/// # Errors
/// If it cannot be opened.
pub(crate) fn open(
    arguments: &CheckArguments,
    what: &What<'_>,
    progress: &dyn check::Progress,
) -> Result<Input, Failure> {
    let RoomArguments { memory, temp_dir } = &arguments.recovery.room;
    if let Some(sets) = what.sets {
        return Input::of_sets(sets, *memory, arguments.stop.stop());
    }
    let reading = Reading {
        named: what.named,
        sets: if let SetChoice::Positions(positions) = what.choice { positions } else { &[] },
        direct: arguments.run.direct,
        spool: Spool { directory: temp_dir.as_deref(), limit: arguments.spool_limit, progress },
        memory: *memory,
        stop: &arguments.stop,
    };
    Input::open(&arguments.paths, &reading)
}

fn options(arguments: &CheckArguments, database: &Database) -> Result<Options, Failure> {
    Ok(Options {
        scope: scope_of(arguments, database)?,
        physical_only: arguments.scope.physical_only,
        no_index: arguments.scope.noindex,
        data_purity: arguments.scope.no_data_purity.then_some(false),
        constraints: arguments.scope.constraints.is_some(),
        all_constraints: arguments.scope.constraints == Some(Constraints::All),
        identities: arguments.scope.identity,
        max_threads: arguments.run.maxdop.into(),
        extended_logical_checks: arguments.scope.extended_logical_checks,
        readers: arguments.run.readers,
        batches: arguments.batches,
        temp_dir: arguments.recovery.room.temp_dir.clone(),
        hash_seed: None,
        allowed: arguments.results.allow.clone(),
        row_by_row: false,
        ..Options::default()
    })
}

/// What a report says on stderr.
fn report_aside(arguments: &CheckArguments, report: &Report, view: View, source: &dyn PageSource) {
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
    if matches!(arguments.results.format(), Format::TableResults(_)) {
        report_what_has_no_row(report, view);
    }
    if arguments.results.stats {
        // If stderr is closed, the results are still valid.
        to_stderr(|out| report::statistics::write(report, out));
    }
}

/// As DBCC counts them, and at least one if there is any finding.
fn errors(report: &Report) -> u64 {
    let counts = report.counts();
    let counted = counts.allocation + counts.consistency;
    counted.max(u64::from(!report.findings.is_empty()))
}

/// The row of a database in the table of several.
fn row(report: &Report, database: &Database, status: u8) -> Row {
    let files = &report.database.files;
    Row {
        database: report.database.name.clone(),
        paths: files.iter().map(|file| file.path.clone()).collect(),
        sets: report.database.sets.clone(),
        verdict: Verdict::of(!report.findings.is_empty(), !report.complete_as_allowed()),
        errors: errors(report),
        not_verified: (report.not_verified.len() + report.demoted.len()) as u64,
        bytes: Some(files.iter().map(|file| u64::from(file.pages) * format::PAGE_BYTES as u64).sum()),
        seconds: Some(report.statistics.seconds),
        last_good_check: database.boot.as_ref().and_then(|boot| boot.last_known_good.clone()),
        status,
        error: None,
    }
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
    if let Some(filegroup) = &arguments.scope.filegroup {
        return scope::filegroup(database, filegroup).map(Scope::Filegroup);
    }
    if arguments.scope.alloc {
        return Ok(Scope::Allocation);
    }
    if arguments.scope.catalog {
        return Ok(Scope::Catalog);
    }
    if arguments.scope.table.is_empty() {
        return Ok(Scope::Database);
    }
    let mut ids =
        arguments.scope.table.iter().map(|name| scope::table(database, name)).collect::<Result<Vec<_>, _>>()?;
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
    Err(Failure::small_grant(format!("--memory {granted}: this check needs {least} at least ({threads})")))
}

/// `--estimate-only`.
fn estimate(
    source: &dyn PageSource,
    Prepared { recovered, database, options, .. }: &mut Prepared<'_>,
    (arguments, out): (&CheckArguments, Out<'_>),
) -> Result<Checked, Failure> {
    let mut estimate = check::estimate(recovered.pages_or(source), database, options);
    // Recovered pages need memory too; --memory is accepted with what of them cannot go to temporary files.
    estimate.memory_bytes += recovered.kept_bytes();
    recovered.keep_at_most(0)?;
    estimate.minimum_memory_bytes += recovered.kept_bytes();
    let source = recovered.pages_or(source);
    let name = check::database_name(source, database);
    let view = View { no_infomsgs: arguments.results.no_infomsgs, max_findings: None };
    let format = arguments.results.format();
    let written = out.write(|out| report::estimate::write((format, view), estimate, &options.scope, &name, out));
    if matches!(format, Format::TableResults(_)) {
        warn(report::estimate::needs(estimate));
    }
    Ok(Checked { status: report_read_faults(&source.read_faults()), written, row: None })
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
