//! Compares the report of a check with the known damage.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use findings::registry::Class;
use findings::{Finding, NotVerified, Report};

use crate::baseline::{Baseline, clocked, told};
use crate::mutant::Mutant;
use crate::outcome::{Outcome, Verdict};
use crate::reach::Reach;
use crate::subject::{Content, Subject, check_pages};

/// The maximum ratio of the time of a trial to the time of a check of the sound database.
pub(crate) const SLOWER: u32 = 10;
/// A trial that takes less time than this never counts as a hang, because the machine may have been busy.
pub(crate) const SLACK: Duration = Duration::from_millis(300);
/// How often a trial is repeated if it took too long. The shortest time of all its runs counts.
const RETRIES: usize = 4;

/// A verdict, and the time of the trial divided by the time of a check of the sound database.
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) time_ratio: Option<f64>,
}

/// Judges the report of `check` on a damaged database. `check` returns an error if it refuses the database.
pub(crate) fn judge(
    baseline: &Baseline,
    check: impl Fn() -> Result<Report, String>,
    reach: impl FnOnce() -> Reach,
) -> Judged {
    let of = |verdict, time_ratio| Judged { verdict, time_ratio };
    let Ok((report, mut elapsed)) = catch_unwind(AssertUnwindSafe(|| clocked(&check))) else {
        return of(Verdict::Panicked, None);
    };
    let limit = (baseline.time * SLOWER).max(SLACK);
    for _ in 0..RETRIES {
        if elapsed > limit {
            // The check is timed again, because the machine may have been busy the first time. The shortest time is
            // used.
            elapsed = elapsed.min(clocked(&check).1);
        }
    }
    let ratio = (elapsed > SLACK).then(|| elapsed.as_secs_f64() / baseline.time.as_secs_f64().max(1e-6));
    if elapsed > limit {
        return of(Verdict::Hung(elapsed.as_secs_f64()), ratio);
    }
    let verdict = match report {
        Ok(report) => verdict(baseline, &report, &reach()),
        Err(error) => refused(&[error], &reach()),
    };
    of(verdict, ratio)
}

/// Checks a damaged database and judges the report.
pub(crate) fn judge_mutant(subject: &Subject, mutant: Mutant, seed: u64) -> Outcome {
    let files = mutant.files(subject);
    let reach = || {
        let reach = match (&files, mutant.page()) {
            (Ok(files), Some(_)) => Reach::of_pages(subject, files, mutant.pages()),
            (Ok(files), None) if mutant.is_older => Reach::of(subject, &subject.files, files).older(subject),
            (Ok(files), None) => Reach::of(subject, &subject.files, files),
            (Err(_), _) => Reach::default(),
        };
        reach.in_files(changed_files(&subject.contents, &mutant.contents(subject)))
    };
    let check = || match &files {
        Ok(files) => Ok(check_pages(files, seed)),
        Err(error) => Err(error.to_string()),
    };
    let judged = judge(&subject.baseline, check, reach);
    let what = format!("{} {}", subject.name, mutant.what);
    Outcome {
        harmless: mutant.harmless,
        time_ratio: judged.time_ratio,
        ..Outcome::new(mutant.kind, what, judged.verdict)
    }
}

/// The names of the files whose bytes differ. Each name has the byte range from the first to the last difference.
pub(crate) fn changed_files(before: &[Content], now: &[Content]) -> Vec<(String, std::ops::Range<u64>)> {
    let changed = |((path, before), (_, now)): (&Content, &Content)| {
        let pairs = || before.iter().zip(now).enumerate().filter(|(_, (before, now))| before != now);
        let shared = before.len().min(now.len());
        let is_resized = before.len() != now.len();
        let first = pairs().next().map(|(at, _)| at).or(is_resized.then_some(shared))?;
        let last =
            if is_resized { before.len().max(now.len()) } else { pairs().next_back().map_or(first, |(at, _)| at) };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Some((name, first as u64..last as u64 + 1))
    };
    before.iter().zip(now).filter_map(changed).collect()
}

/// Returns the verdict on a report. The sound database has no findings, so all findings come from the damage. A "not
/// verified" line is used only if it is new: if the report on the sound database lacks this line, or has it with a
/// lower count.
fn verdict(baseline: &Baseline, report: &Report, reach: &Reach) -> Verdict {
    if report.findings.is_empty() && !report.read_errors.is_empty() {
        return refused(&report.read_errors, reach);
    }
    if report.findings.is_empty() {
        let now = told(report);
        let is_of_the_damage = |line: &&NotVerified| reach.explains_doubt(line);
        let added: Vec<&NotVerified> = added(&baseline.not_verified, &now).collect();
        return match (added.iter().find(|line| is_of_the_damage(line)), added.first()) {
            (Some(_), _) => Verdict::NotVerified,
            (None, Some(line)) => Verdict::Unrelated(format!("{} of {}: {}", line.what, line.scope, line.reason)),
            (None, None) => Verdict::Silent,
        };
    }
    let text = |finding: &Finding| format!("{} {}", finding.check.id, finding.text(&report.names()));
    // A finding of the class `Uncounted` only continues the finding before it, so it is not judged separately.
    for finding in report.findings.iter().filter(|finding| finding.class() != Class::Uncounted) {
        if !reach.explains(&finding, report) {
            return Verdict::FalseAlarm(text(&finding));
        }
    }
    if report.findings.iter().any(|finding| reach.is_named_by(&finding, report)) {
        Verdict::Right
    } else {
        Verdict::Elsewhere(report.findings.first().map(|finding| text(&finding)).unwrap_or_default())
    }
}

/// Judges a refusal. If the error text names a changed file or page, the damage counts as detected.
fn refused(errors: &[String], reach: &Reach) -> Verdict {
    if errors.iter().any(|error| reach.is_named_in(error)) {
        Verdict::Refused
    } else {
        Verdict::Unrelated(errors.first().cloned().unwrap_or_default())
    }
}

/// The lines of `now` that `before` does not contain, or contains with a lower count.
fn added<'a>(before: &'a [NotVerified], now: &'a [NotVerified]) -> impl Iterator<Item = &'a NotVerified> {
    let is_same = |own: &NotVerified, line: &NotVerified| {
        own.what == line.what && own.scope == line.scope && own.reason == line.reason && own.count >= line.count
    };
    now.iter().filter(move |line| !before.iter().any(|own| is_same(own, line)))
}
