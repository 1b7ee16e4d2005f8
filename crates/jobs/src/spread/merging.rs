//! Merges the parts that tasks have written into one report.

use std::cell::Cell;

use catalog::Database;
use check::change::{Divided, Ledger, NotByChange, Reuse, merge_by_change};
use check::part::{Part as Sums, Rounds, SumsError, Surveyed};
use findings::{FileRange, Options, Report};
use parts::{Gathered, MOST_ROUNDS, Part, PartsError, Task};
use source::PageSource;

use super::ledger::PlannedLedger;
use super::rounds::OnRound;
use super::{Opened, rounds, sweeping};
use crate::failure::Failure;

/// The complete parts of a plan. There is one part for each task. While a check in windows has not yet read all ranges
/// of the image, only some of the tasks have parts.
pub struct Merge {
    /// The plan.
    pub opened: Opened,
    /// The parts of the first round.
    pub gathered: Gathered,
    /// The parts of each round after the first one.
    pub answers: Vec<Gathered>,
    /// Maximum number of bytes that a second look, which reads pages again to locate damage, may read in this process.
    /// A second look that would read more bytes is divided into tasks. `None` if no further tasks are possible.
    pub local_limit: Option<u64>,
    /// Reports another round of tasks; `None` if the caller needs no report.
    pub on_round: Option<OnRound>,
}

/// The reason why a merge ended early.
enum Stop {
    Sums(SumsError),
    Ledger(NotByChange),
    Failure(Failure),
}

impl From<SumsError> for Stop {
    fn from(error: SumsError) -> Self {
        Self::Sums(error)
    }
}

impl From<NotByChange> for Stop {
    fn from(error: NotByChange) -> Self {
        Self::Ledger(error)
    }
}

/// The ledger that a plan uses or makes.
pub struct ByLedger<'l> {
    /// The ledger.
    pub ledger: &'l dyn Ledger,
    /// What the plan says about it.
    pub planned: &'l PlannedLedger,
    /// Called after the maps are read.
    pub begin: &'l dyn Fn() -> Result<(), Failure>,
}

impl Merge {
    /// Verifies and collects the parts of a plan.
    ///
    /// # Errors
    /// If a part is missing or incomplete, or a source file has changed.
    pub fn gather(opened: Opened, local_limit: u64, on_round: Option<OnRound>) -> Result<Self, PartsError> {
        opened.plan.verify_files()?;
        let gathered = opened.folder.gather(&opened.plan)?;
        let answers = opened.rounds.iter().map(|round| round.folder.gather(&round.plan)).collect::<Result<_, _>>()?;
        Ok(Self { opened, gathered, answers, local_limit: Some(local_limit), on_round })
    }

    /// Merges the parts into the report of the check. If windows have not yet read all ranges, the report covers only
    /// the ranges read so far.
    ///
    /// # Errors
    /// If the database is not the planned one, or a part has changed since it was verified.
    pub fn run(
        &self,
        source: &dyn PageSource,
        database: &Database,
        options: &Options,
        listener: &dyn check::Progress,
    ) -> Result<Report, Failure> {
        let ranges: Vec<FileRange> = self.opened.plan.areas().map(Task::range).collect();
        let left = (self.opened.plan.tasks.len() - self.gathered.parts.len()) as u64;
        let merged = self.merge(&ranges, |rounds, begin, next| match (left, rounds) {
            (0, None) => check::part::merge(source, database, options, listener, &ranges, begin, next),
            (0, Some(rounds)) => {
                check::part::merge_in_rounds((source, database), options, listener, (&ranges, rounds), begin, next)
            }
            (left, _) => check::part::so_far((source, database), options, listener, (&ranges, left), begin, next),
        });
        merged.map_err(|stop| match stop {
            Ok(failure) => failure,
            Err(error) => Failure::unable(error),
        })
    }

    /// Merges the parts with the sums in a ledger into the report of the check, and adds the sums of the tasks to the
    /// ledger.
    ///
    /// # Errors
    /// The errors of [`Self::run`]; the inner error if the ledger cannot be used any more.
    pub fn run_by_change(
        &self,
        source: &dyn PageSource,
        database: &Database,
        options: &Options,
        listener: &dyn check::Progress,
        by_ledger: &ByLedger<'_>,
    ) -> Result<(Report, Reuse), Result<Failure, NotByChange>> {
        let ranges: Vec<FileRange> = self.opened.plan.areas().map(Task::range).collect();
        self.merge(&ranges, |rounds, verify, parts| {
            let mut begin = |surveyed: Surveyed<'_>| {
                verify(surveyed)?;
                (by_ledger.begin)().map_err(Stop::Failure)
            };
            let mut tasks = self.opened.plan.tasks.iter();
            let mut swept = || tasks.next().map(|task| sweeping::swept(&self.opened, task).map_err(Stop::Failure));
            let divided = Divided { ranges: ranges.clone(), swept: &mut swept, begin: &mut begin, parts };
            merge_by_change((source, database), options, (listener, rounds), by_ledger.ledger, divided)
        })
    }

    /// Verifies the plan, supplies the parts to `merge`, and asks for a further round if that is needed.
    fn merge<'s, R>(
        &'s self,
        ranges: &[FileRange],
        merge: impl FnOnce(
            Option<&Rounds<'s>>,
            &mut dyn FnMut(Surveyed<'_>) -> Result<(), Stop>,
            &mut dyn FnMut() -> Option<Result<Sums<'s>, Stop>>,
        ) -> Result<R, Stop>,
    ) -> Result<R, Result<Failure, NotByChange>> {
        let Opened { folder, plan, .. } = &self.opened;
        let current: Cell<Option<&Part>> = Cell::new(None);
        let mut parts = self.gathered.parts.iter();
        let mut next = || {
            let part = parts.next()?;
            current.set(Some(part));
            let read = folder.read(plan, part).map(|(head, from)| Sums { head, from });
            Some(read.map_err(|error| Stop::Failure(error.into())))
        };
        let mut begin = |surveyed: Surveyed<'_>| {
            self.opened.verify_maps(surveyed.fingerprint).map_err(Stop::Failure)?;
            // The allocation maps are the same as when the plan was made. An error here therefore means that the ranges
            // of the plan are wrong.
            surveyed.tile(ranges).map_err(|untiled| {
                let what = format!("its tasks do not cover each page exactly once: {untiled}");
                Stop::Failure(PartsError::Damaged { path: folder.path().join("plan.json"), what }.into())
            })
        };
        let asked = rounds::asked(&self.opened, &self.answers).map_err(Ok)?;
        // If no further round is allowed, the merge does all second looks in this process.
        let local_limit = self.local_limit.filter(|_| self.opened.rounds.len() < MOST_ROUNDS as usize);
        let rounds = local_limit.map(|limit| Rounds::new(limit, asked));
        let merged = merge(rounds.as_ref(), &mut begin, &mut next);
        let merged = merged.map_err(|stop| match (stop, current.get()) {
            (Stop::Sums(error), Some(part)) => Ok(PartsError::of_part(&part.path, part.task.id, error).into()),
            (Stop::Sums(error), None) => Ok(Failure::unable(error)),
            (Stop::Failure(failure), _) => Ok(failure),
            (Stop::Ledger(error), _) => Err(error),
        })?;
        // If a file was written to during the merge, the report would not describe its present content.
        self.opened.verify_files().map_err(Ok)?;
        match rounds.map_or(Ok(Vec::new()), Rounds::end).map_err(|error| Ok(Failure::unable(error)))?.as_slice() {
            [] => Ok(merged),
            wanted => Err(Ok(rounds::ask(&self.opened, wanted, self.on_round))),
        }
    }
}
