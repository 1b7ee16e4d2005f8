//! Checks a state with a plan, its tasks and their merge, with the ledger beside a history of its own. The report must be
//! that of a whole check, and the ledger must know what that of the checks knows.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use check::Silent;
use findings::{ByChange, Change, Report};
use jobs::change;
use jobs::failure::Failure;
use jobs::inventory;
use jobs::planning;
use jobs::prepare::{open_hinted, prepare};
use jobs::request::{Request, RoomOptions};
use jobs::spread::{Merge, Opened, Spread, What};
use jobs::tasks::Work;
use trials::mutate::Random;

use super::Figures;
use super::night::{first_difference, said};
use crate::outcome::Verdict;

pub(super) const BY_PLAN: &str = "states proven by a plan with a ledger";
pub(super) const LEFT_OUT: &str = "ranges that plans have left out";
/// The most rounds of a merge.
const MOST_ROUNDS: usize = 100;

/// How the tasks of a plan are run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// The size of a task.
    pub(super) task_bytes: u64,
    /// From this number of bytes on, second looks are left to further rounds.
    pub(super) local_limit: u64,
    /// A seed for the order of the tasks, and for those that run twice.
    pub(super) seed: u64,
}

impl Manner {
    pub(super) fn of(random: &mut Random) -> Self {
        Self {
            task_bytes: (1 << 20) * (1 + random.below(4) as u64),
            local_limit: if random.below(2) == 0 { 0 } else { u64::MAX },
            seed: random.number(),
        }
    }
}

/// Checks a state with a plan in `folder`.
pub(super) fn report(request: &Request, folder: &Path, manner: Manner) -> Result<Report, Failure> {
    let _ = fs::remove_dir_all(folder);
    let choice = request.sets()?;
    let (paths, sets) = inventory::one("plan", &request.paths, &choice, request.stop.until())?;
    let what =
        What { named: &request.paths, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
    parts::Folder::reserve(folder)?;
    planning::make(folder, &request.of(paths), &what, manner.task_bytes, Box::new(Silent))?;
    let mut random = Random::new(manner.seed);
    for _ in 0..MOST_ROUNDS {
        let opened = Opened::open(folder)?;
        let work = Work::of(&opened)?;
        let check = opened.request(&RoomOptions::default(), &request.run);
        let mut tasks = work.plan.tasks.clone();
        while !tasks.is_empty() {
            let task = tasks.swap_remove(random.below(tasks.len()));
            work.run(&check, std::slice::from_ref(&task), Box::new(Silent))?;
            if random.below(8) == 0 {
                // A task that runs twice writes the same part.
                let path = work.folder.part_path(work.plan, &task);
                let first = fs::read(&path).map_err(Failure::unable)?;
                work.run(&check, std::slice::from_ref(&task), Box::new(Silent))?;
                if fs::read(&path).map_err(Failure::unable)? != first {
                    return Err(Failure::unable("a task that ran twice has written another part"));
                }
            }
        }
        match merged(opened, request, manner.local_limit) {
            Err(failure) if failure.status == Failure::MORE => {}
            done => return done,
        }
    }
    Err(Failure::unable("the rounds do not end"))
}

/// Merges the parts, as the program does.
fn merged(opened: Opened, request: &Request, local_limit: u64) -> Result<Report, Failure> {
    let (choice, sets) = (opened.choice(), opened.sets()?);
    let of_plan = opened.request(&RoomOptions::default(), &request.run);
    let check = Request { results: request.results.clone(), ..of_plan };
    let merge = Merge::gather(opened, local_limit, None)?;
    let spread = Spread::Merge(&merge);
    let what = What { named: &check.paths, choice: &choice, sets: sets.as_deref(), place: None, spread };
    let before = change::before(&check, &what);
    let input = open_hinted(&check, &what, &Silent, change::hints(&check, &what, before.as_ref()))?;
    let prepared = prepare(&check, &input, &Silent, &what)?;
    let source = prepared.recovered.pages_or(input.pages());
    change::check(&check, &what, (&input, before.as_ref()), (source, &prepared), (&Silent, SystemTime::now()))
}

/// Compares the report of a merge with that of a whole check, and what it says about the ledger with what the check by
/// change says. The ledger of the check has room for everything if `is_roomy`.
pub(super) fn compare(
    (whole, by_change): (&Report, &Report),
    planned: &Report,
    is_roomy: bool,
    figures: &mut Figures,
) -> Result<(), Verdict> {
    // The key of the plan is in the options of the report.
    let same_options = |report: &Report| {
        let mut lines = said(report);
        lines.iter_mut().filter(|line| line.starts_with("Options")).for_each(String::clear);
        lines
    };
    if let Some(line) = first_difference(&same_options(whole), &same_options(planned)) {
        return Err(Verdict::Differs(line));
    }
    let mut count = |name: &str, count: u64| *figures.entry(name.to_owned()).or_default() += count;
    match (&by_change.change, &planned.change) {
        (Some(Change::Proven(check)), Some(Change::Proven(plan))) => {
            count(BY_PLAN, 1);
            let swept: u64 = plan.reasons.iter().map(|(_, count)| count).sum();
            count(LEFT_OUT, plan.ranges - swept.min(plan.ranges));
            let facts = |change: &ByChange| {
                let swept: u64 = change.reasons.iter().map(|(_, count)| count).sum();
                format!("{} of {} ranges, {} bytes", swept, change.ranges, change.bytes_kept)
            };
            if is_roomy && facts(check) != facts(plan) {
                return Err(Verdict::Differs(format!("check: {}; plan: {}", facts(check), facts(plan))));
            }
        }
        (None, None) => count("states that made a ledger by a plan", 1),
        _ => count("states that a plan has divided as a whole", 1),
    }
    Ok(())
}
