//! What a check says of damage, against what is known of it.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use check::registry::Class;
use check::{Finding, NotVerified, Report, Value};
use format::protection::undo_torn_bits;
use format::{Page, PageId};
use lab::mutate::{PageRole, Pages, names_any};
use source::PageSource;

use crate::about::pages_about;
use crate::mutant::Mutant;
use crate::outcome::{Outcome, Verdict};
use crate::subject::{Subject, check_pages};

/// A trial may take so many times as long as the sound database.
pub(crate) const SLOWER: u32 = 10;
/// Below this it is never called a hang: the machine may have had something else to do.
pub(crate) const SLACK: Duration = Duration::from_millis(300);
/// Times that a trial that took too long is run again: the least time counts.
const RETRIES: usize = 4;

/// What a check said, and in how many times the time of the sound database.
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) time_ratio: Option<f64>,
}

/// What the damage may lead to findings about.
pub(crate) struct Reach {
    /// The pages that are not what they were.
    pub(crate) pages: BTreeSet<PageId>,
    /// What changed allocation pages say something else about.
    pub(crate) about: BTreeSet<PageId>,
    /// The indexes whose pages are whole, only older: a row that is not there has no page that a finding could name.
    pub(crate) older_indexes: BTreeSet<(i32, i32)>,
    /// The objects that they belong to; `None` if it may be any, as of allocation pages and system tables.
    pub(crate) objects: Option<BTreeSet<i32>>,
}

impl Reach {
    /// Of the pages of `damaged` that are not those of `sound`, a form of the subject; both are read.
    pub(crate) fn of(subject: &Subject, sound: &dyn PageSource, damaged: &dyn PageSource) -> Self {
        let mut pages = BTreeSet::new();
        for file in sound.files() {
            for page in (0..file.pages).map(|page| PageId::new(file.file_id, page)) {
                if sound.read_page(page) != damaged.read_page(page) {
                    pages.insert(page);
                }
            }
        }
        Self::of_pages(subject, damaged, pages)
    }

    /// Of these pages.
    pub(crate) fn of_pages(subject: &Subject, damaged: &dyn PageSource, pages: BTreeSet<PageId>) -> Self {
        let objects = pages.iter().try_fold(BTreeSet::new(), |mut objects, page| {
            objects.extend(reached(subject, damaged, *page)?);
            Some(objects)
        });
        let about = pages.iter().flat_map(|page| pages_about(&subject.files, damaged, *page)).collect();
        Self { pages, about, older_indexes: BTreeSet::new(), objects }
    }

    /// Where nothing is known.
    pub(crate) fn unknown() -> Self {
        Self { pages: BTreeSet::new(), about: BTreeSet::new(), older_indexes: BTreeSet::new(), objects: None }
    }

    /// The same damage, if each changed page is whole and only older.
    fn older(mut self, subject: &Subject) -> Self {
        let index = |page: &PageId| {
            let mut bytes = subject.files.read_page(*page)?;
            undo_torn_bits(&mut bytes);
            let unit = Page::new(&bytes).header().alloc_unit();
            Pages::new(&subject.files, &subject.database).rowset(unit).map(|rowset| (rowset.object_id, rowset.index_id))
        };
        self.older_indexes = self.pages.iter().filter_map(index).collect();
        self
    }

    /// Whether a finding names the damage.
    fn is_named_by(&self, finding: &Finding, report: &Report) -> bool {
        let index = finding.owner.map(|owner| (owner.object_id, owner.index_id));
        names_any(finding, report, &self.pages)
            || names_any(finding, report, &self.about)
            || index.is_some_and(|index| self.older_indexes.contains(&index))
    }

    /// Whether a finding may follow from the damage.
    fn explains(&self, finding: &Finding, report: &Report) -> bool {
        let Some(objects) = &self.objects else { return true };
        let owner = finding.owner.map(|owner| owner.object_id);
        let other = finding.evidence.iter().filter_map(|(_, value)| match value {
            Value::Owner(owner) => Some(owner.object_id),
            _ => None,
        });
        owner.into_iter().chain(other).any(|object| objects.contains(&object))
            || names_any(finding, report, &self.pages)
    }
}

/// The objects that a damaged page belonged to, and that it claims to belong to now; `None` if they may be any.
fn reached(subject: &Subject, damaged: &dyn PageSource, page: PageId) -> Option<BTreeSet<i32>> {
    match subject.role(page) {
        PageRole::Free => return Some(BTreeSet::new()),
        PageRole::Heap | PageRole::Clustered | PageRole::Node | PageRole::Leaf | PageRole::Text => {}
        _ => return None,
    }
    let unit = |source: &dyn PageSource| {
        let mut bytes = source.read_page(page)?;
        undo_torn_bits(&mut bytes);
        Some(Page::new(&bytes).header().alloc_unit())
    };
    let before = unit(&subject.files).and_then(|unit| subject.object(unit))?;
    let now = unit(damaged).and_then(|unit| subject.object(unit));
    let objects: BTreeSet<i32> = [before].into_iter().chain(now).collect();
    // What system tables say is said about others.
    let is_system = objects.iter().any(|object| subject.database.is_system_table(*object));
    (!is_system).then_some(objects)
}

/// What a check says of the sound database.
pub(crate) struct Baseline {
    /// What it cannot verify.
    pub(crate) not_verified: Vec<NotVerified>,
    /// The time it takes.
    pub(crate) time: Duration,
}

/// Judges what `check` says of damage; it returns nothing when it refuses to look.
pub(crate) fn judge(baseline: &Baseline, check: impl Fn() -> Option<Report>, reach: impl FnOnce() -> Reach) -> Judged {
    let of = |verdict, time_ratio| Judged { verdict, time_ratio };
    let Ok((report, mut elapsed)) = catch_unwind(AssertUnwindSafe(|| clocked(&check))) else {
        return of(Verdict::Panicked, None);
    };
    let limit = (baseline.time * SLOWER).max(SLACK);
    for _ in 0..RETRIES {
        if elapsed > limit {
            // Perhaps the machine had something else to do.
            elapsed = elapsed.min(clocked(&check).1);
        }
    }
    let ratio = (elapsed > SLACK).then(|| elapsed.as_secs_f64() / baseline.time.as_secs_f64().max(1e-6));
    if elapsed > limit {
        return of(Verdict::Hung(elapsed.as_secs_f64()), ratio);
    }
    of(report.map_or(Verdict::Refused, |report| verdict(baseline, &report, reach)), ratio)
}

/// Judges a mutant of a database.
pub(crate) fn judge_mutant(subject: &Subject, mutant: Mutant, seed: u64) -> Outcome {
    let files = mutant.files(subject);
    let reach = || match (&files, mutant.page()) {
        (Ok(files), Some(_)) => Reach::of_pages(subject, files, mutant.pages()),
        (Ok(files), None) if mutant.is_older => Reach::of(subject, &subject.files, files).older(subject),
        (Ok(files), None) => Reach::of(subject, &subject.files, files),
        (Err(_), _) => Reach::unknown(),
    };
    let check = || files.as_ref().ok().map(|files| check_pages(files, seed));
    let judged = judge(&subject.baseline, check, reach);
    let what = format!("{} {}", subject.name, mutant.what);
    Outcome {
        harmless: mutant.harmless,
        time_ratio: judged.time_ratio,
        ..Outcome::new(mutant.kind, what, judged.verdict)
    }
}

/// What a report says.
fn verdict(baseline: &Baseline, report: &Report, reach: impl FnOnce() -> Reach) -> Verdict {
    if report.findings.is_empty() {
        return match (report.read_errors.is_empty(), report.not_verified == baseline.not_verified) {
            (false, _) => Verdict::Refused,
            (true, false) => Verdict::NotVerified,
            (true, true) => Verdict::Silent,
        };
    }
    let reach = reach();
    let text = |finding: &Finding| format!("{} {}", finding.check.id, finding.text(&report.names()));
    // Lines that no summary counts belong to the one before them.
    for finding in report.findings.iter().filter(|finding| finding.class() != Class::Uncounted) {
        if !is_of_the_container(&finding) && !reach.explains(&finding, report) {
            return Verdict::FalseAlarm(text(&finding));
        }
    }
    let is_right = |finding: &Finding| is_of_the_container(finding) || reach.is_named_by(finding, report);
    match report.findings.iter().any(|finding| is_right(&finding)) {
        true => Verdict::Right,
        false => Verdict::Elsewhere(report.findings.first().map(|finding| text(&finding)).unwrap_or_default()),
    }
}

/// Findings about a backup name a place in its file, not a page.
fn is_of_the_container(finding: &Finding) -> bool {
    finding.check.id.starts_with("backup.")
}

/// Runs `action` and returns how long it took.
pub(crate) fn clocked<T>(action: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = action();
    (done, start.elapsed())
}
