//! Progress reports on stderr.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use check::{Progress, Silent};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::ProgressKind;

/// The listener for `kind`.
pub(crate) fn listener(kind: ProgressKind) -> Box<dyn Progress> {
    match kind {
        ProgressKind::Auto if io::stderr().is_terminal() => Box::new(Bar::new()),
        ProgressKind::Bar => Box::new(Bar::new()),
        ProgressKind::Lines => Box::new(Lines::new(false)),
        ProgressKind::Json => Box::new(Lines::new(true)),
        ProgressKind::Auto | ProgressKind::None => Box::new(Silent),
    }
}

/// A bar that redraws itself and vanishes at the end.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{msg:12} [{bar:40}] {pos}/{len} pages, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        Self(bar)
    }
}

impl Progress for Bar {
    fn phase(&self, name: &'static str, pages: u64) {
        self.0.set_length(pages);
        self.0.set_message(name);
        self.0.reset();
    }

    fn advance(&self, pages: u64) {
        self.0.inc(pages);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Lines `phase current maximum`, or the same as JSON: at the start and end of a phase and once per second between.
struct Lines {
    json: bool,
    done: AtomicU64,
    phase: Mutex<Option<Phase>>,
}

struct Phase {
    name: &'static str,
    pages: u64,
    reported: Instant,
}

const INTERVAL: Duration = Duration::from_secs(1);

impl Lines {
    fn new(json: bool) -> Self {
        Self { json, done: AtomicU64::new(0), phase: Mutex::new(None) }
    }

    fn report(&self, phase: &Phase) {
        let (name, pages, done) = (phase.name, phase.pages, self.done.load(Ordering::Relaxed));
        let line = match self.json {
            true => serde_json::json!({"phase": name, "current": done, "maximum": pages}).to_string(),
            false => format!("{name} {done} {pages}"),
        };
        let _ = writeln!(io::stderr(), "{line}");
    }
}

impl Progress for Lines {
    fn phase(&self, name: &'static str, pages: u64) {
        let Ok(mut current) = self.phase.lock() else { return };
        if let Some(ended) = current.take() {
            self.report(&ended);
        }
        self.done.store(0, Ordering::Relaxed);
        self.report(current.insert(Phase { name, pages, reported: Instant::now() }));
    }

    fn advance(&self, pages: u64) {
        self.done.fetch_add(pages, Ordering::Relaxed);
        // The thread with the lock is already reporting.
        let Ok(mut current) = self.phase.try_lock() else { return };
        if let Some(phase) = current.as_mut().filter(|phase| phase.reported.elapsed() >= INTERVAL) {
            phase.reported = Instant::now();
            self.report(phase);
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if let Ok(Some(phase)) = self.phase.get_mut().map(Option::take) {
            self.report(&phase);
        }
    }
}
