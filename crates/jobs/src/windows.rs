//! `mdfsck check --window` and `--within`: checks a database over several nights. Also tests whether the promise of
//! `--within` is kept: that all pages and cross-references were checked within a time span.

mod left;
pub mod signals;
mod window;

use std::time::{Duration, Instant, SystemTime};

use catalog::Database;
use findings::registry::limits;
use findings::{Coverage, RangeRead, Report, Scope};
use history::outbox::{Event, Judge, Promise, Raised};
use history::windows::promise::{self, Kept, Rhythm};
use history::windows::{Known, Opening, pace::Pace};
use history::{History, HistoryError, Naming};
use report::Format;
use report::windows::{Changed, Done, WindowView};
use source::PageSource;

use crate::ended::Ended;
use crate::failure::Failure;
use crate::host::warn;
use crate::input::Input;
use crate::keep;
use crate::prepare::{Prepared, prepare};
use crate::request::Request;
use crate::spread::{Before, Spread, What};
pub use left::left;
pub use window::Outcome;
use window::{Stored, Subject, Terms, WindowEnd, check as window};

/// Refuses an invalid combination of the options for windows.
///
/// # Errors
///
/// If an option requires another option that is missing, or contradicts another option.
pub fn refuse_options(request: &Request) -> Result<(), Failure> {
    let windows = &request.windows;
    let has_history = request.results.history.is_some();
    if request.estimate_only {
        if request.results.listener.is_there() {
            return Err(Failure::usage("--estimate-only checks nothing, so --on-event would receive no events"));
        }
        if request.keep_parts.is_some() && windows.window.is_none() {
            return Err(Failure::usage(
                "--estimate-only keeps nothing; with --window, --keep-parts asks how much windows have left",
            ));
        }
        return match (has_history, windows.window) {
            (true, None) => Err(Failure::usage(
                "--estimate-only checks nothing, so --history has nothing to record; with --window, the history shows how long a full cycle takes",
            )),
            _ => Ok(()),
        };
    }
    let lacks = |option: &str| {
        let text =
            "needs --history FILE, which records the pages read and the time; the file is created if it is missing";
        Err(Failure::usage(format!("{option} {text}")))
    };
    let is_confined = !request.scope.table.is_empty() || request.scope.filegroup.is_some();
    match (windows.window, windows.within) {
        (Some(_), _) if is_confined && request.keep_parts.is_none() => Err(Failure::usage(
            "--table and --filegroup with --window need --keep-parts SIZE, the space for what windows have added up",
        )),
        _ if has_history => Ok(()),
        (Some(_), _) => lacks("--window"),
        (None, Some(_)) => lacks("--within"),
        (None, None) => Ok(()),
    }
}

/// The result of a check in a window.
pub struct Windowed {
    /// The report on the whole image, or on the ranges that windows have read so far.
    pub report: Report,
    /// The result of the window. `None` if the database, for example an encrypted one, could not be divided into ranges
    /// and was checked as a whole.
    pub outcome: Option<Box<Outcome>>,
}

/// When the window of one database ends. Several databases share the time of one window. If the check of one database
/// ends early, the checks of the later databases get the remaining time.
fn ends(request: &Request, what: &What<'_>, length: Duration) -> Instant {
    let begun = request.windows.begun.unwrap_or_else(Instant::now);
    let all = begun.checked_add(length).unwrap_or(begun);
    let Some(place) = &what.place else { return all };
    let now = Instant::now();
    let share = (place.share * f64::from(request.databases.max(1))).clamp(0.0, 1.0);
    let mine = all.saturating_duration_since(now).mul_f64(share);
    now.checked_add(mine).unwrap_or(all).min(all)
}

/// Checks ranges of the database until the window ends. `before` has the identities that the files had before they were
/// opened. `whole` checks a database that cannot be divided into ranges.
///
/// # Errors
/// If the database cannot be checked.
pub fn check<'i>(
    request: &Request,
    what: &What<'_>,
    (input, before): (&'i Input, &Before),
    (length, started): (Duration, SystemTime),
    listener: &dyn check::Progress,
    whole: impl Fn(&Prepared<'i>) -> Result<Report, Failure>,
) -> Result<(Prepared<'i>, Windowed), Failure> {
    let is_interrupted = signals::watch();
    let naming = keep::naming(request);
    let terms = Terms {
        history: request.results.history.as_deref(),
        naming: &naming,
        started,
        ends: ends(request, what, length),
        allowed: length,
        is_interrupted: &is_interrupted,
    };
    let mut missed = Vec::new();
    if request.keep_parts.is_some() {
        let prepared = prepare(request, input, listener, what)?;
        if what.place.is_none() {
            let name = findings::database_name(prepared.recovered.pages_or(input.pages()), &prepared.database);
            request.windows.weights.refuse_unknown(std::iter::once(name.as_str()))?;
        }
        let subject = Subject { request, what, input, before, prepared: &prepared, listener };
        match window::changing::check(&terms, &subject)? {
            Ok(mut outcome) => {
                let report = std::mem::take(&mut outcome.report);
                return Ok((prepared, Windowed { report, outcome: Some(Box::new(outcome)) }));
            }
            Err(refused) if prepared.options.scope != Scope::Database => {
                return Err(Failure::unable(format!(
                    "{}; so windows cannot check single tables or filegroups of it",
                    refused.why
                )));
            }
            Err(refused) => {
                warn(format!("{}; the windows check one image after another", refused.why));
                missed = refused.missed;
            }
        }
    }
    let mut is_again = false;
    loop {
        let stored = Stored::find(terms.history, request, what, is_again)?;
        let prepared = {
            let spread = Spread::Plan(stored.common());
            let of_plan = What { named: what.named, choice: what.choice, sets: what.sets, place: None, spread };
            prepare(request, input, listener, &of_plan)?
        };
        let subject = Subject { request, what, input, before, prepared: &prepared, listener };
        let mut windowed = match window(&terms, &subject, stored)? {
            WindowEnd::Again => {
                is_again = true;
                continue;
            }
            WindowEnd::NoRanges => Windowed { report: whole(&prepared)?, outcome: None },
            WindowEnd::Done(mut outcome) => {
                Windowed { report: std::mem::take(&mut outcome.report), outcome: Some(outcome) }
            }
        };
        note_missed(&mut windowed.report, &missed);
        return Ok((prepared, windowed));
    }
}

/// Notes the extents of which the differential maps have missed a change.
fn note_missed(report: &mut Report, missed: &[String]) {
    if missed.is_empty() {
        return;
    }
    let mut coverage = Coverage::default();
    let scope = format!("the extents of pages {}", missed.join(", "));
    coverage.note(&limits::CHANGE_UNTRUSTED, scope, missed.len() as u64);
    let (_, notes) = coverage.into_lists();
    report.notes.extend(notes);
    report.notes.sort_by(|one, other| (&one.what, &one.scope).cmp(&(&other.what, &other.scope)));
}

/// The data to print after the report, about the window and about the promises (`--within`), and the exit-status bits.
pub struct Said {
    /// The data to print; `None` if the history could not be read.
    view: Option<View>,
    /// The exit-status bits.
    pub status: u8,
}

/// The time that a window has used, and the time that it was allowed to use.
struct Span {
    used: Duration,
    allowed: Duration,
    is_interrupted: bool,
}

/// The data for a [`WindowView`].
struct View {
    database: String,
    done: Option<Span>,
    outcome: Option<Box<Outcome>>,
    rhythm: Rhythm,
    known: Known,
    within: Option<Duration>,
    read: Kept,
    /// Whether all relations (links, keys and rows) were verified within the time span of `--within`. `None`
    /// with --physical-only, because such a check verifies no cross-references.
    closed: Option<Kept>,
    changed: Changed,
    /// Whether only some tables are checked.
    is_confined: bool,
    now: i64,
}

/// Records the run, and reports whether the promises of `--within` about the database are kept. `status` is the exit
/// status of the results.
pub fn record(request: &Request, ended: &Ended<'_>, outcome: Option<Box<Outcome>>, status: u8) -> Said {
    let mut outcome = outcome;
    let mut bits = outcome.as_ref().map_or(0, |outcome| outcome.unkept);
    let history = request.results.history.as_deref();
    let Some(path) = history else { return Said { view: None, status: bits } };
    let window = outcome.as_ref().map(|outcome| outcome.in_window());
    let (changed, unkept) = keep::checked(request, ended, status, window);
    bits |= unkept;
    if let Some(outcome) = &mut outcome
        && let Err(error) = outcome.end(path, unkept == 0)
    {
        bits |= keep::unkept(&error);
    }
    let (report, source, database) = (ended.report, ended.source, ended.database);
    match known(path, request, (source, database, ended.started), &report.ranges) {
        Ok(known) => {
            let view = judged(request, report, outcome, known, changed);
            if let Some(within) = view.within {
                let broken = report::windows::broken(&view.shown());
                if !broken.is_empty() {
                    bits |= Failure::INCOMPLETE;
                }
                let naming = keep::naming(request);
                let raised = opening(request, (source, database, ended.started), &naming).raised(broken.join(" "));
                let judge = if request.scope.physical_only { Judge::CheckOfPages } else { Judge::Check };
                let promise = Promise { broken: Event::PromiseBroken, judge, span: within };
                let raised = raise(path, &promise, (&raised, !broken.is_empty()), request.results.listener.is_there());
                bits |= raised.map_or_else(|error| keep::unkept(&error), |()| 0);
            }
            Said { view: Some(view), status: bits }
        }
        // The problem with the history was reported when the run was recorded.
        Err(_) if unkept != 0 => Said { view: None, status: bits },
        Err(error) => Said { view: None, status: bits | keep::unkept(&error) },
    }
}

/// Records whether the promise `promise` is broken. If the user has named a program for events, also records an event
/// when the promise becomes broken or is kept again.
fn raise(
    path: &std::path::Path,
    promise: &Promise,
    (raised, is_broken): (&Raised, bool),
    has_listener: bool,
) -> history::Result<()> {
    let identity = raised.key();
    let raised = if is_broken { std::slice::from_ref(raised) } else { &[] };
    History::open_or_create(path)?.raise(promise, raised, Some(&identity), has_listener).map(drop)
}

fn known(
    path: &std::path::Path,
    request: &Request,
    (source, database, started): (&dyn PageSource, &Database, SystemTime),
    ranges: &[RangeRead],
) -> Result<Known, HistoryError> {
    let naming = keep::naming(request);
    History::open_or_create(path)?.known(&opening(request, (source, database, started), &naming), ranges)
}

fn opening<'a>(
    request: &Request,
    (source, database, started): (&'a dyn PageSource, &'a Database, SystemTime),
    naming: &'a Naming,
) -> Opening<'a> {
    let allowed = request.windows.window.unwrap_or_default();
    Opening { source, database, naming, started, allowed, is_full: !request.scope.physical_only }
}

/// Decides whether the promises of `--within` about the database are kept.
fn judged(
    request: &Request,
    report: &Report,
    outcome: Option<Box<Outcome>>,
    mut known: Known,
    changed: Changed,
) -> View {
    let is_confined = report.options.scope != Scope::Database;
    if let Some(outcome) = outcome.as_ref().filter(|_| is_confined) {
        known.tables.retain(|table| outcome.has_table(table.object_id));
    }
    let now = history::time::seconds(&history::time::text(SystemTime::now())).unwrap_or_default();
    let window = request.windows.window;
    let pace = outcome.as_ref().map_or_else(|| Pace::of(&known.windows), |outcome| outcome.pace);
    let bytes = window.and_then(|window| Some(pace.rate()? * window.as_secs_f64()));
    let rhythm = Rhythm { bytes, every: known.every };
    let within = request.windows.within;
    let span = within.map_or(i64::MAX, |within| i64::try_from(within.as_secs()).unwrap_or(i64::MAX));
    let judge = promise::Judge { now, within: span, rhythm };
    let left = outcome.as_ref().map(|outcome| outcome.left.clone()).unwrap_or_default();
    let is_left = |range: &history::windows::promise::Range| {
        // In the history, the first range of a file begins at page 0, and every other range begins at the first page of
        // its task.
        known.places.get(range.id as usize).is_some_and(|(file, first, pages)| {
            // `left` is in the order of the tasks, which are sorted by file and page.
            let next = left.partition_point(|place| *place < (*file, *first));
            left.get(next).is_some_and(|place| *place < (*file, first.saturating_add(*pages)))
        })
    };
    let read = judge.read(&known.ranges, is_left);
    let closed = (!request.scope.physical_only).then(|| match &outcome {
        Some(outcome) => judge.closed(
            match outcome.by_table {
                Some(_) => known.oldest_proof().unwrap_or(known.known_since),
                None => known.closed.unwrap_or(known.known_since),
            },
            (outcome.all_bytes - outcome.done_bytes, outcome.all_bytes),
            outcome.is_fixed || outcome.is_closed(),
        ),
        None => judge.closed(known.closed.unwrap_or(known.known_since), (0, 0), true),
    });
    let used = request.windows.begun.map(|begun| begun.elapsed()).unwrap_or_default();
    let span = |allowed| Span { used, allowed, is_interrupted: signals::is_raised() };
    let done = outcome.as_ref().and(window).map(span);
    View {
        database: report.database.name.clone(),
        done,
        outcome,
        rhythm,
        known,
        within,
        read,
        closed,
        changed,
        is_confined,
        now,
    }
}

impl View {
    fn shown(&self) -> WindowView<'_> {
        let done = self.done.as_ref().zip(self.outcome.as_ref());
        let done = done.map(|(span, outcome)| Done {
            used: span.used,
            allowed: span.allowed,
            ranges: outcome.ranges,
            bytes: outcome.swept.bytes,
            taken_at: &outcome.taken_at,
            done_bytes: outcome.done_bytes,
            all_bytes: outcome.all_bytes,
            is_fixed: outcome.is_fixed,
            is_interrupted: span.is_interrupted,
            by_table: outcome.by_table,
        });
        WindowView {
            database: &self.database,
            done,
            rhythm: self.rhythm,
            known: &self.known,
            within: self.within,
            read: self.read,
            closed: self.closed,
            changed: self.changed,
            is_confined: self.is_confined,
            now: self.now,
        }
    }
}

impl Said {
    /// Writes the text about the window and the promises, which follows the results. Writes it to stderr if the format
    /// of the results has no place for it.
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    pub fn write(&self, request: &Request, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        let Some(view) = &self.view else { return Ok(()) };
        let shown = view.shown();
        match request.results.format() {
            Format::Json => report::windows::write_json(&shown, out),
            Format::TableResults(_) => {
                report::windows::lines(&shown).iter().for_each(warn);
                Ok(())
            }
            // If a promise is broken, the text is printed even WITH NO_INFOMSGS.
            Format::Text if request.results.no_infomsgs && self.status & Failure::INCOMPLETE == 0 => Ok(()),
            Format::Text => report::windows::write(&shown, out),
        }
    }
}

/// Returns the rate, in bytes per second, at which checks in earlier time windows read this database. An estimate uses
/// this rate. `None` if no rate is known.
pub fn rate(request: &Request, source: &dyn PageSource, database: &Database) -> Option<f64> {
    // An estimate must not create a history, and must not record the promise of `--within`.
    let path = request.results.history.as_deref().filter(|path| path.exists())?;
    let naming = keep::naming(request);
    let opening = opening(request, (source, database, SystemTime::now()), &naming);
    match History::open(path).and_then(|history| history.swept(&opening)) {
        Ok(swept) => Pace::of(&swept).rate(),
        Err(error) => {
            warn(&error);
            None
        }
    }
}
