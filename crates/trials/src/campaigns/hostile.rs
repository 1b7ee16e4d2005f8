//! Random bytes for the entry points that must accept any bytes: they must return and must not panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use trials::hostile::inputs::{input, seeds};
use trials::hostile::{self, TARGETS};
use trials::mutate::Random;

use super::Bench;
use crate::outcome::{Outcome, Verdict};
use crate::subject::Subject;

/// The duration of a trial. Most entry points process an input in some microseconds.
const TIME: Duration = Duration::from_millis(100);
/// The maximum time for one input.
const LIMIT: Duration = Duration::from_secs(20);
/// The maximum number of inputs in a trial.
const MOST: u64 = 5_000;

pub(crate) fn trial(bench: &Bench, seed: u64) -> Outcome {
    let (target, entry) = TARGETS[seed as usize % TARGETS.len()];
    let subject = bench.subjects.of(seed);
    let mut random = Random::new(seed);
    let seeds = seeds(target, Some(&subject.files));
    let backup = if target == "backup" { backup(&subject, &mut random) } else { Vec::new() };
    let feed = |bytes: &[u8]| match target {
        "bootstrap" => hostile::bootstrap(Some(&subject.files), bytes),
        "database" => hostile::database(Some(&subject.files), bytes),
        "backup" => hostile::backup(&backup, bytes),
        _ => entry(bytes),
    };
    let end = Instant::now() + TIME;
    let mut executions = 0;
    let mut verdict = Verdict::Kept;
    let mut last = Vec::new();
    while executions < MOST && Instant::now() < end && verdict == Verdict::Kept {
        last = input(target, &mut random, &seeds, backup.len());
        let start = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| feed(&last)));
        executions += 1;
        verdict = match done {
            Err(_) => Verdict::Panicked,
            Ok(()) if start.elapsed() > LIMIT => Verdict::Hung(start.elapsed().as_secs_f64()),
            Ok(()) => Verdict::Kept,
        };
    }
    let what = match verdict {
        Verdict::Kept => subject.name.clone(),
        _ => format!("{} execution {executions}: {}", subject.name, format::render::hex(&last, 200)),
    };
    Outcome { executions, ..Outcome::new(target, what, verdict) }
}

/// A backup of the subject, compressed or not.
fn backup(subject: &Subject, random: &mut Random) -> Vec<u8> {
    use lab::backup::{BackupOptions, Container, Set, backup};
    let made = crate::subject::folder();
    let files = subject.store(made.path()).unwrap_or_else(|error| panic!("{error}"));
    let container = *random.pick(&[None, Some(Container::Version1), Some(Container::Version2)]).unwrap_or(&None);
    let options = BackupOptions { container, checksum: random.below(2) == 0, ..BackupOptions::default() };
    let done = backup(&[Set { files: &files, step: 1, options }], made.path(), "backup");
    let done = done.unwrap_or_else(|error| panic!("{}: {error}", subject.name));
    done.files.first().and_then(|path| std::fs::read(path).ok()).unwrap_or_default()
}
