//! Reports the progress of a check on stderr.

#[cfg(unix)]
mod interrupt;

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use check::{Progress, Silent};
use findings::phase_words;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jobs::request::ProgressKind;
use jobs::spool::SPOOL;
use jobs::spread::Place;

/// The time between two frames of a spinner.
const TICK: Duration = Duration::from_millis(100);
/// Minimum width of a terminal, in columns, at which the progress bar also shows page numbers.
const WIDE_COLUMNS: u16 = 72;

/// Leaves SIGINT and SIGTERM to the code of a check with `--window` or `--snapshot-with`, which handles both signals
/// itself.
#[cfg(unix)]
pub(crate) fn leave_signals() {
    interrupt::leave();
}

/// The progress bar on the terminal, if there is one. Lines of text are written above it.
static ACTIVE: RwLock<Option<ProgressBar>> = RwLock::new(None);

/// Writes the line that announces the check of this database.
fn announce(place: &Place<'_>, is_json: bool) {
    let Place { number, of, name, .. } = place;
    let line = match is_json {
        true => serde_json::json!({"phase": "database", "current": number, "maximum": of, "text": name}).to_string(),
        false => format!("database - {number} {of} -"),
    };
    let _ = writeln!(io::stderr(), "{line}");
}

/// Makes the listener for `kind`. If databases are checked side by side, only the start of each check is reported.
pub(crate) fn listener(kind: ProgressKind, place: Option<&Place<'_>>) -> Box<dyn Progress> {
    if let (ProgressKind::Lines | ProgressKind::Json, Some(place)) = (kind, place) {
        announce(place, kind == ProgressKind::Json);
    }
    if place.is_some_and(|place| place.is_beside_others) {
        return Box::new(Silent);
    }
    match kind {
        ProgressKind::Auto if io::stderr().is_terminal() => Box::new(Bar::new(place)),
        ProgressKind::Bar => Box::new(Bar::new(place)),
        ProgressKind::Lines => Box::new(Lines::new(false)),
        ProgressKind::Json => Box::new(Lines::new(true)),
        ProgressKind::Auto | ProgressKind::None => Box::new(Silent),
    }
}

/// Hides the progress bar while `write` writes to stderr.
pub(crate) fn without_bar(write: impl FnOnce()) {
    match ACTIVE.read().ok().and_then(|active| active.clone()) {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Removes the present progress bar from the terminal, and shows `bar` instead.
fn replace_bar(bar: Option<ProgressBar>) {
    let Ok(mut active) = ACTIVE.write() else { return };
    if let Some(old) = active.take() {
        old.finish_and_clear();
    }
    if let Some(bar) = bar {
        // The bar is drawn only now that it is set up completely, so that no incomplete bar is ever visible.
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.enable_steady_tick(TICK);
        *active = Some(bar);
    }
}

/// Removes the progress bar from the terminal.
#[cfg(unix)]
pub(crate) fn clear_bar() {
    replace_bar(None);
}

/// Shows a progress bar for each phase, and removes it at the end of the phase. If the length of the phase is unknown,
/// shows a spinner instead.
struct Bar {
    /// Number and name of the database; empty if the command checks only one.
    prefix: String,
}

impl Bar {
    fn new(place: Option<&Place<'_>>) -> Self {
        #[cfg(unix)]
        interrupt::clear_bar_on_signals();
        let name = |name: &str| name.chars().filter(|c| !c.is_control()).collect::<String>();
        let prefix = place.map(|place| format!("{} of {}: {}: ", place.number, place.of, name(place.name)));
        Self { prefix: prefix.unwrap_or_default() }
    }
}

/// The layout of the bar for a phase of `pages` pages.
fn template(name: &str, pages: u64, columns: u16) -> &'static str {
    match (pages, columns) {
        (0, _) if name == SPOOL => "{spinner} {prefix}{msg}, {bytes}, {elapsed}",
        (0, _) => "{spinner} {prefix}{msg}, {elapsed}",
        (_, WIDE_COLUMNS..) => "{prefix}{msg} {percent:>3}% [{wide_bar}] {human_pos}/{human_len} pages, {eta} left",
        (..) => "{prefix}{msg} {percent:>3}% [{wide_bar}] {eta} left",
    }
}

impl Progress for Bar {
    fn phase(&self, name: &'static str, pages: u64) {
        let columns = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0);
        let style = ProgressStyle::with_template(template(name, pages, columns));
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let length = Some(pages).filter(|&pages| pages > 0);
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden())
            .with_style(style.progress_chars("=> ").tick_chars(r"-\|/ "))
            .with_prefix(self.prefix.clone())
            .with_message(phase_words(name));
        replace_bar(Some(bar));
    }

    fn advance(&self, pages: u64) {
        if let Ok(Some(bar)) = ACTIVE.read().as_deref() {
            bar.inc(pages);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        replace_bar(None);
    }
}

/// Writes lines of the form `phase percent current maximum eta`, or the same values as JSON. Writes a line at the start
/// and at the end of a phase, and at most one line per second between them. Does not write the same line twice in a
/// row. Unknown values are shown as `-`.
struct Lines {
    json: bool,
    done: AtomicU64,
    phase: Mutex<Option<Phase>>,
}

struct Phase {
    name: &'static str,
    pages: u64,
    started: Instant,
    reported: Instant,
    /// The line that was written last.
    line: String,
}

const INTERVAL: Duration = Duration::from_secs(1);

impl Lines {
    fn new(json: bool) -> Self {
        Self { json, done: AtomicU64::new(0), phase: Mutex::new(None) }
    }

    /// Writes the line of a phase, unless it equals the line written last.
    fn report(&self, phase: &mut Phase) {
        let done = self.done.load(Ordering::Relaxed);
        let line = line(self.json, phase.name, (done, phase.pages), phase.started.elapsed());
        if line != phase.line {
            without_bar(|| _ = writeln!(io::stderr(), "{line}"));
            phase.line = line;
        }
    }
}

/// Formats the progress line of a phase. The phase has processed `done` of its `pages` pages, and started `elapsed`
/// ago.
fn line(json: bool, name: &'static str, (done, pages): (u64, u64), elapsed: Duration) -> String {
    let has_length = pages > 0;
    let percent = has_length.then(|| done.min(pages) * 100 / pages);
    let left = pages.saturating_sub(done);
    let eta = (has_length && done > 0).then(|| (elapsed.as_secs_f64() * left as f64 / done as f64).round() as u64);
    let words = phase_words(name);
    if json {
        let line = serde_json::json!({
            "phase": name, "current": done, "maximum": pages, "percent": percent, "eta_seconds": eta, "text": words,
        });
        return line.to_string();
    }
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    format!("{} {} {done} {pages} {}", words.replace(' ', "-"), number(percent), number(eta))
}

impl Progress for Lines {
    fn phase(&self, name: &'static str, pages: u64) {
        let Ok(mut current) = self.phase.lock() else { return };
        // If the current phase is announced again without a number of pages, the phase continues.
        if pages == 0 && current.as_ref().is_some_and(|phase| phase.name == name) {
            return;
        }
        if let Some(mut ended) = current.take() {
            self.report(&mut ended);
        }
        self.done.store(0, Ordering::Relaxed);
        let now = Instant::now();
        self.report(current.insert(Phase { name, pages, started: now, reported: now, line: String::new() }));
    }

    fn advance(&self, pages: u64) {
        self.done.fetch_add(pages, Ordering::Relaxed);
        // If another thread has the lock, that thread writes the report.
        let Ok(mut current) = self.phase.try_lock() else { return };
        if let Some(phase) = current.as_mut().filter(|phase| phase.reported.elapsed() >= INTERVAL) {
            phase.reported = Instant::now();
            self.report(phase);
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if let Ok(Some(mut phase)) = self.phase.get_mut().map(Option::take) {
            self.report(&mut phase);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_percent_and_time_left_where_they_are_known() {
        let after = |seconds| Duration::from_secs(seconds);
        assert_eq!(line(false, "sweep", (0, 464), after(0)), "reading-pages 0 0 464 -");
        assert_eq!(line(false, "sweep", (116, 464), after(10)), "reading-pages 25 116 464 30");
        assert_eq!(line(false, "sweep", (464, 464), after(40)), "reading-pages 100 464 464 0");
        assert_eq!(line(false, "survey", (0, 0), after(5)), "reading-allocation-maps - 0 0 -");
        // Even if more pages are read than expected, the line shows at most 100 percent.
        assert_eq!(line(false, "sweep", (500, 464), after(40)), "reading-pages 100 500 464 0");
        let json: serde_json::Value = serde_json::from_str(&line(true, "sweep", (116, 464), after(10))).unwrap();
        assert_eq!((&json["phase"], &json["current"], &json["maximum"]), (&"sweep".into(), &116.into(), &464.into()));
        assert_eq!((&json["percent"], &json["eta_seconds"]), (&25.into(), &30.into()));
        assert_eq!(json["text"], "reading pages");
    }

    #[test]
    fn a_phase_without_a_length_has_no_bar_and_a_narrow_bar_no_numbers() {
        for (name, pages, columns) in [("survey", 0, 80), (SPOOL, 0, 80), ("sweep", 10, 80), ("sweep", 10, 50)] {
            assert!(ProgressStyle::with_template(template(name, pages, columns)).is_ok());
        }
        assert!(!template("survey", 0, 80).contains("bar") && !template("sweep", 10, 50).contains("human_pos"));
    }
}
