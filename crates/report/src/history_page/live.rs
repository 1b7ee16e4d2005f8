//! A running check: its progress, charts of the resources that it uses, and the pages that it has processed.

use std::fmt::Write;

use findings::{Sample, phase_words};
use history::progress::{RunningCheck, Swept, SweptFile, Which};
use history::{History, Result};
use serde::Serialize;

use super::date;
use super::estate::{NAME_CHARS, TEXT_CHARS};
use crate::html::{Curves, shown_to};

/// Width of the plot of a curve, in SVG units.
const CURVE_WIDTH: f64 = 420.0;

/// A check that is running, or was killed.
#[derive(Serialize)]
pub(super) struct Running {
    id: i64,
    /// Number of the database in the history; `None` if the history does not have the database.
    database: Option<i64>,
    name: String,
    host: String,
    pid: u32,
    paths: String,
    started: String,
    /// The time of the check's last report.
    seen: String,
    is_stopped: bool,
    /// Seconds from the start to the last report.
    seconds: f64,
    /// The current phase. The next three fields are the seconds since the phase began, the number of pages processed in
    /// this phase, and the number of pages to process in it. If the number of pages to process is unknown, both numbers
    /// of pages are 0.
    phase: &'static str,
    phase_seconds: f64,
    done: u64,
    pages: u64,
    granted: Option<u64>,
    now: Option<Now>,
    files: Vec<File>,
}

/// The resources that a check currently uses.
#[derive(Serialize)]
struct Now {
    bytes_per_second: f64,
    processors: Option<f64>,
    memory: Option<u64>,
    spilled: u64,
    bytes: u64,
}

/// The pages of a file, and the ranges of pages that the check has processed.
#[derive(Serialize)]
struct File {
    id: u16,
    pages: u64,
    /// Consecutive ranges of pages, from page 0. Each range has its number of pages and a state: 2 if the check has
    /// processed all pages of the range, 1 if it has processed some, 0 if it has processed none.
    ranges: Vec<(u64, u8)>,
}

/// The checks that `which` selects, and their charts as HTML. `host` is the name of this machine. At most `most` checks
/// are returned.
pub(super) fn checks(history: &History, which: Which<'_>, (host, most): (&str, u32)) -> Result<(Vec<Running>, String)> {
    let found = history.running_checks(which, host, most)?;
    let mut charts = String::new();
    for check in found.iter().filter(|check| check.course.samples.len() > 1) {
        let _ = write!(charts, "<div hidden id=curves-{} class=grid>{}</div>", check.id, curves(check));
    }
    Ok((found.iter().map(Running::of).collect(), charts))
}

fn curves(check: &RunningCheck) -> String {
    let course = &check.course;
    let seconds = seconds(check);
    let ends = course.phases.iter().skip(1).map(|(_, begun)| *begun).chain([seconds]);
    let phases = course.phases.iter().zip(ends).scan(0.0, |before, ((name, _), end)| {
        let length = end - *before;
        *before = end;
        Some((*name, length.max(0.0)))
    });
    let phases: Vec<(&str, f64)> = phases.collect();
    Curves { samples: &course.samples, seconds, phases: &phases, granted: course.granted_bytes, width: CURVE_WIDTH }
        .html()
}

/// Seconds from the start to the last sample.
fn seconds(check: &RunningCheck) -> f64 {
    check.course.samples.last().map_or(0.0, |last| last.seconds)
}

impl Running {
    fn of(check: &RunningCheck) -> Self {
        let course = &check.course;
        let (phase, began) = course.phases.last().copied().unwrap_or(("", 0.0));
        Self {
            id: check.id,
            database: check.database,
            name: shown_to(&course.name, NAME_CHARS),
            host: shown_to(&check.host, NAME_CHARS),
            pid: check.pid,
            paths: shown_to(&check.paths, TEXT_CHARS),
            started: date(&check.started),
            seen: date(&check.seen),
            is_stopped: check.is_stopped,
            seconds: seconds(check),
            phase: phase_words(phase),
            phase_seconds: (seconds(check) - began).max(0.0),
            done: course.done,
            pages: course.pages,
            granted: course.granted_bytes,
            now: Now::of(&course.samples),
            files: course.files.iter().map(File::of).collect(),
        }
    }
}

impl Now {
    /// Computes rates over the last few samples, so that the figures do not jump. `None` if there are no samples.
    fn of(samples: &[Sample]) -> Option<Self> {
        const STEPS: usize = 5;
        let last = samples.last()?;
        let start = Sample { seconds: 0.0, bytes: 0, cpu_seconds: Some(0.0), memory_bytes: None, spilled_bytes: 0 };
        let first = samples.len().checked_sub(STEPS + 1).and_then(|at| samples.get(at)).unwrap_or(&start);
        let seconds = (last.seconds - first.seconds).max(1e-3);
        Some(Self {
            bytes_per_second: last.bytes.saturating_sub(first.bytes) as f64 / seconds,
            processors: last.cpu_seconds.zip(first.cpu_seconds).map(|(last, first)| (last - first).max(0.0) / seconds),
            memory: last.memory_bytes,
            spilled: last.spilled_bytes,
            bytes: last.bytes,
        })
    }
}

impl File {
    fn of(file: &SweptFile) -> Self {
        let mut ranges: Vec<(u64, u8)> = Vec::new();
        let mut first = 0;
        for cell in &file.cells {
            let pages = u64::from(file.cell_pages.min(file.pages.saturating_sub(first)));
            first = first.saturating_add(file.cell_pages);
            let state = match cell {
                Swept::Nothing => 0,
                Swept::Some => 1,
                Swept::All => 2,
            };
            match ranges.last_mut() {
                Some((known, last)) if *last == state => *known += pages,
                _ => ranges.push((pages, state)),
            }
        }
        Self { id: file.file, pages: file.pages.into(), ranges }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_have_all_pages_of_a_file() {
        let cells = [Swept::All, Swept::All, Swept::Some, Swept::Nothing, Swept::Nothing].to_vec();
        let file = File::of(&SweptFile { file: 1, pages: 600, cell_pages: 128, cells });
        assert_eq!(file.ranges, [(256, 2), (128, 1), (216, 0)]);
    }

    #[test]
    fn what_is_used_now_is_that_of_the_last_samples() {
        let sample = |second: u32| Sample {
            seconds: second.into(),
            bytes: u64::from(second.saturating_sub(10)) * 1000,
            cpu_seconds: Some(f64::from(second) * 1.5),
            memory_bytes: Some(second.into()),
            spilled_bytes: 3,
        };
        assert!(Now::of(&[]).is_none());
        let samples: Vec<Sample> = (1..=20).map(sample).collect();
        let now = Now::of(&samples).unwrap();
        assert!((now.bytes_per_second - 1000.0).abs() < 1e-6 && (now.processors.unwrap() - 1.5).abs() < 1e-6);
        assert_eq!((now.memory, now.spilled, now.bytes), (Some(20), 3, 10_000));
        // With too few samples, the rates are averages since the start.
        assert!((Now::of(&samples[..2]).unwrap().processors.unwrap() - 1.5).abs() < 1e-6);
    }
}
