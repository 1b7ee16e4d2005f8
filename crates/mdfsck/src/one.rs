//! Checks one database, and writes and records its results.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::time::{Instant, SystemTime};

use catalog::Database;
use findings::registry::limits::Limit;
use findings::{Change, Finding, NotVerified, Report};
use history::InWindow;
use jobs::ended::Ended;
use jobs::failure::{Failure, report_faults};
use jobs::judge::{check_pages, report_changes, status};
use jobs::live::Live;
use jobs::prepare::{Prepared, open_hinted, prepare_with};
use jobs::redo::Redo;
use jobs::request::Request;
use jobs::spread::{Before, What};
use jobs::windows::{self, Windowed};
use jobs::{change, deliver, folders, keep, snapshot_with, spool};
use report::databases::{Row, Verdict};
use report::errorlog::Statement;
use report::estimate::{Left, Windows};
use report::{Format, View};
use source::PageSource;

use crate::error_log::{self, ErrorLog};
use crate::output::{self, Target};
use crate::speaker::{to_stderr, warn};
use crate::{defaults, html, nice, progress, terminal};

/// Validates the options and opens the history. Then runs `act` with adjusted arguments: a history that cannot be used
/// is left out, and subfolders are added if they were requested. With `--snapshot-with`, a program makes the snapshot
/// before `act`, and removes it afterwards.
///
/// # Errors
///
/// If an option requests something that cannot be done, or if `act` fails.
pub(crate) fn set_up(arguments: &Request, act: impl FnOnce(&Request) -> Result<u8, Failure>) -> Result<u8, Failure> {
    let begun = Instant::now();
    if arguments.run.nice
        && let Some(status) = nice::yield_to_others()
    {
        return Ok(status);
    }
    error_log::refuse_results(arguments.results.errorlog_line.as_deref(), arguments.results.output.as_deref())?;
    arguments.recovery.room.temp_dir.as_deref().map_or(Ok(()), spool::try_folder)?;
    arguments.sets()?;
    if arguments.scope.catalog && matches!(arguments.results.format(), Format::TableResults(_)) {
        return Err(Failure::usage(
            "--catalog: CHECKCATALOG has no TABLERESULTS (message 2532: one or more WITH options specified are not valid for this \
             command); use --json, which has a field for each of its columns",
        ));
    }
    refuse_history(arguments)?;
    windows::refuse_options(arguments)?;
    html::refuse_results(arguments)?;
    // The check runs even if the history cannot be used.
    let (history, unkept) = match arguments.estimate_only {
        // An estimate is not recorded in the history.
        true => (arguments.results.history.clone(), 0),
        false => keep::usable(arguments.results.history.as_deref()),
    };
    let mut arguments = arguments.clone();
    arguments.results.history = history;
    arguments.windows.begun = Some(begun);
    let act = |arguments: &Request| match arguments.recursive {
        true => act(&arguments.of(folders::with_subfolders(&arguments.paths)?)),
        false => act(arguments),
    };
    let (done, undelivered) = deliver::beside(&arguments.results, || snapshot_with::around(&arguments, act));
    let more = unkept | undelivered;
    done.map(|status| status | more).map_err(|failure| match failure.status {
        // If the merge needs another round of tasks, `mdfsck merge` will run again after these tasks. Only the last
        // merge adds the exit-status bits `more` to its status.
        Failure::MORE => failure,
        status => Failure { status: status | more, ..failure },
    })
}

/// Requires that the history is not the file of the results or of the error log.
///
/// # Errors
///
/// If the options name the history file also as the target of the results or of the error-log line.
fn refuse_history(arguments: &Request) -> Result<(), Failure> {
    let Some(history) = &arguments.results.history else { return Ok(()) };
    for (option, path) in
        [("--output", &arguments.results.output), ("--errorlog-line", &arguments.results.errorlog_line)]
    {
        if path.as_deref().is_some_and(|path| output::place(path) == output::place(history)) {
            let text = format!("{option} {}: is the file of --history; give another file", history.display());
            return Err(Failure::usage(text));
        }
    }
    Ok(())
}

/// Checks one database and writes its results.
///
/// # Errors
/// If the database cannot be checked.
pub(crate) fn one(arguments: &Request, what: &What<'_>) -> Result<u8, Failure> {
    let target = |source: &dyn PageSource| Ok(Out::Target(Target::open(arguments.results.output.as_deref(), source)?));
    let checked = check(arguments, what, target)?;
    // If the results cannot be written, the exit status still includes the bits that the check has set.
    Ok(checked.status | checked.written.map_or_else(Failure::report, |()| 0))
}

/// Where the results of one database go.
pub(crate) enum Out<'o> {
    Target(Target),
    /// An output that holds the results of several databases. A write error is stored in the second field.
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

/// The outcome of the check of one database.
pub(crate) struct Checked {
    /// The exit status.
    pub(crate) status: u8,
    /// The error if the results could not be written.
    written: Result<(), Failure>,
    /// The row for the table of several databases; `None` for an estimate.
    pub(crate) row: Option<Row>,
}

/// Checks one database and records the run. Calls `out` before the check to open the output for the results.
///
/// # Errors
/// If the database cannot be checked.
pub(crate) fn check<'o>(
    arguments: &Request,
    what: &What<'_>,
    out: impl FnOnce(&dyn PageSource) -> Result<Out<'o>, Failure>,
) -> Result<Checked, Failure> {
    let started = SystemTime::now();
    check_from(arguments, what, out, started).map_err(|failure| {
        // If one of several databases needs more memory, it is checked a second time, while no other check runs. Only a
        // failure of the last attempt is recorded.
        let is_last = !failure.needs_memory || arguments.databases <= 1;
        let unkept = if is_last { keep::failed(arguments, started, &failure) } else { 0 };
        Failure { status: failure.status | unkept, ..failure }
    })
}

#[expect(clippy::too_many_lines, reason = "each step needs what the steps before it have found")]
fn check_from<'o>(
    arguments: &Request,
    what: &What<'_>,
    out: impl FnOnce(&dyn PageSource) -> Result<Out<'o>, Failure>,
    started: SystemTime,
) -> Result<Checked, Failure> {
    // The history shows the progress of the check until the run is recorded.
    let live = Live::begin(arguments, started);
    let listener = progress::listener(arguments.run.progress, what.place.as_ref());
    let listener = match &live {
        Some(live) => live.beside(listener),
        None => listener,
    };
    let window = arguments.windows.window.filter(|_| !arguments.estimate_only);
    let window = window.map(|length| (length, Before::of(arguments, what)));
    let of_estimate = (arguments.estimate_only && arguments.keep_parts.is_some()).then(|| Before::of(arguments, what));
    let kept = change::before(arguments, what);
    let input = open_hinted(arguments, what, listener.as_ref(), change::hints(arguments, what, kept.as_ref()))?;
    // The targets are opened before the run, so that a target that cannot be written is reported immediately and not
    // after hours.
    let mut page = None;
    let (prepared, out, error_log, windowed) = match window {
        None => {
            let mut redo = Redo::of(arguments, kept.as_ref(), &input);
            let mut prepared =
                prepare_with(arguments, &input, listener.as_ref(), what, redo.as_mut().map(Redo::going_on))?;
            let source = input.pages();
            let out = out(source)?;
            if arguments.estimate_only {
                let pages = prepared.recovered.pages_or(source);
                let left =
                    windows::left(arguments, (&input, of_estimate.as_ref()), (pages, &prepared), listener.as_ref());
                drop(listener);
                return estimate(source, &mut prepared, (arguments, left, out));
            }
            let source = prepared.recovered.pages_or(source);
            page = html::target(arguments, source)?;
            let error_log =
                arguments.results.errorlog_line.as_deref().map(|path| ErrorLog::open(path, source)).transpose()?;
            let report = change::check(
                arguments,
                what,
                (&input, kept.as_ref()),
                (source, &prepared),
                (listener.as_ref(), started),
            )?;
            if let Some(redo) = redo.filter(|_| matches!(report.change, Some(Change::Proven(_)))) {
                redo.commit();
            }
            (prepared, out, error_log, Windowed { report, outcome: None })
        }
        Some((length, before)) => {
            let before = before.with_beside(&input);
            let source = input.pages();
            let out = out(source)?;
            let error_log =
                arguments.results.errorlog_line.as_deref().map(|path| ErrorLog::open(path, source)).transpose()?;
            let listener = listener.as_ref();
            let whole = |prepared: &Prepared<'_>| {
                check_pages(arguments, what, prepared.recovered.pages_or(source), prepared, listener)
            };
            let (prepared, windowed) =
                windows::check(arguments, what, (&input, &before), (length, started), listener, whole)?;
            (prepared, out, error_log, windowed)
        }
    };
    let source = prepared.recovered.pages_or(input.pages());
    let Windowed { report, mut outcome } = windowed;
    let database = &prepared.database;
    // Removes the progress bar before results are printed.
    drop(listener);
    report_changes(&report);
    let is_open = outcome.as_ref().is_some_and(|outcome| !outcome.is_closed());
    let results = &arguments.results;
    // With `--window`, each run checks only a part of the database. Until all parts have been checked, only findings
    // are reported.
    let no_infomsgs = results.no_infomsgs || is_open;
    let findings_only = results.are_findings_only();
    let view = View { no_infomsgs, findings_only, max_findings: results.max_findings, defaults: defaults::used() };
    let status_now = || status(&report, results.exit_zero_on_incomplete || is_open);
    let ended = Ended { report: &report, source, database, started };
    let mut said = None;
    let written = out.write(|out| {
        match results.wants_summary(terminal::is_stdout()) {
            true => terminal::write_summary(&report, view, (arguments, status_now(), what.place.is_some()), out),
            false => report::write(results.format(), &report, view, out),
        }?;
        if !arguments.windows.are_asked_for() {
            return Ok(());
        }
        said.insert(windows::record(arguments, &ended, outcome.take(), status_now())).write(arguments, out)
    });
    // Computes the status again. Some findings are kept in a temporary file, and reading them back may have failed
    // while the results were written.
    let status = status_now();
    report_aside(arguments, &report, view, source);
    if error_log.is_some() || results.log {
        let who = error_log::who();
        let (no_infomsgs, data_purity) = (results.no_infomsgs, arguments.scope.data_purity);
        let lines = report::errorlog::lines(&report, Statement { who: &who, no_infomsgs, data_purity });
        let unwritten = if written.is_err() { Failure::UNABLE } else { 0 };
        error_log::write(error_log, results.log, &lines, status | unwritten);
    }
    let unwritten = page.map_or(0, |page| html::write(page, arguments, &ended, status));
    let status = status
        | unwritten
        | match said {
            Some(said) => said.status,
            // A window is normally recorded when its results are printed. The results could not be printed, so the
            // window is recorded here.
            None if outcome.is_some() => windows::record(arguments, &ended, outcome, status).status,
            None => {
                let read = change::read_at(&report, started);
                let tables = change::tables_read_at(&report);
                let read = read.as_ref().map(|read| InWindow { read, tables: tables.as_ref(), lease: None });
                keep::checked(arguments, &ended, status, read).1
            }
        };
    Ok(Checked { status, written, row: Some(row(&report, database, status)) })
}

/// Writes facts about the run to stderr if the format of the results has no place for them.
fn report_aside(arguments: &Request, report: &Report, view: View, source: &dyn PageSource) {
    for notice in &report.notices {
        warn(notice);
    }
    if !arguments.results.wants_summary(terminal::is_stdout()) {
        report::by_change::lines(report).iter().for_each(warn);
    }
    // Truncated files were already reported before the run.
    let is_new = |error: &&str| report.warnings.iter().all(|warning| warning.text != *error);
    let read_errors = report.read_errors.iter().map(String::as_str).filter(is_new);
    for error in read_errors.chain(report.findings.error()).chain(report.demoted.error()) {
        warn(error);
    }
    // This text goes to stderr because the results must be the same for a database and for every backup of it.
    if source.backup().is_some() && !report.findings.is_empty() {
        warn(format!("a backup cannot be repaired. {}", report::explain::IN_A_BACKUP));
    }
    if matches!(arguments.results.format(), Format::TableResults(_)) {
        report_what_has_no_row(report, view);
    }
    if view.findings_only {
        to_stderr(|out| report::write_not_verified(report, view, out));
    }
    if arguments.results.stats {
        // An error of the write is ignored: if stderr is closed, the results are still valid.
        to_stderr(|out| report::statistics::write(report, out));
    }
}

/// The number of errors as DBCC counts them; at least one if there is any finding.
fn errors(report: &Report) -> u64 {
    let counts = report.counts();
    let counted = counts.allocation + counts.consistency;
    counted.max(u64::from(!report.findings.is_empty()))
}

/// Makes the row of this database for the table of several databases.
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

/// Writes to stderr what was not verified and what is not shown, since TABLERESULTS has no columns for these facts.
fn report_what_has_no_row(report: &Report, view: View) {
    report::pattern_lines(report).for_each(warn);
    let (shown, follows) = report::not_verified::split(report);
    for entry in shown {
        let allowed = if report.is_allowed(entry.limit) { ", allowed" } else { "" };
        let NotVerified { what, scope, reason, limit, .. } = entry;
        warn(format!("not verified: {what}, {scope}: {reason} ({}{allowed})", limit.id));
    }
    if !follows.is_empty() {
        let more = follows.len();
        warn(format!("not verified: {more} more parts that depend on the missing stripes (--format json lists all)"));
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

/// Runs `--estimate-only`.
fn estimate(
    source: &dyn PageSource,
    Prepared { recovered, database, options, .. }: &mut Prepared<'_>,
    (arguments, left, out): (&Request, Option<Left>, Out<'_>),
) -> Result<Checked, Failure> {
    let mut estimate = check::estimate(recovered.pages_or(source), database, options);
    // Adds to the estimate the memory that holds recovered pages. The minimum grant, in contrast, includes only the
    // recovered pages that cannot be moved to temporary files.
    estimate.memory_bytes += recovered.kept_bytes();
    recovered.keep_at_most(0)?;
    estimate.minimum_memory_bytes += recovered.kept_bytes();
    let source = recovered.pages_or(source);
    let name = findings::database_name(source, database);
    let view = View { no_infomsgs: arguments.results.no_infomsgs, ..View::default() };
    let format = arguments.results.format();
    let rate = || windows::rate(arguments, source, database);
    let windows = arguments.windows.window.map(|window| Windows { window, rate: rate(), left });
    let written =
        out.write(|out| report::estimate::write((format, view), (estimate, windows), &options.scope, &name, out));
    // DBCC prints the estimate only for tempdb, as a line or a row. The memory that the check of this database needs is
    // therefore written to stderr.
    if !matches!(format, Format::Json) && written.is_ok() {
        warn(report::estimate::needs(estimate));
        windows.iter().for_each(|windows| warn(windows.text(estimate)));
        windows.iter().filter_map(|windows| windows.left_text()).for_each(warn);
    }
    Ok(Checked { status: report_faults(source), written, row: None })
}
