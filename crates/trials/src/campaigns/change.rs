//! Proof by change: a check that reads only what has changed since earlier checks must give the report of a whole check.
//!
//! A workload with changes of the schema runs, and up to 20 full, differential and log backups are made. Each state that
//! they can restore is checked by change, with the ledger of its full backup, and as a whole. It is also checked by a plan
//! with a ledger, its tasks and their merge, and in some windows of time, each of which may read only some ranges. In half
//! of the trials, storage snapshots are made too, and checked in windows. In a third of the trials,
//! some of the backups are damaged.

mod damage;
mod night;
mod plan;
mod planned;
mod snapshots;
#[cfg(test)]
mod tests;
mod windows;

use std::collections::BTreeMap;

use lab::workload::Workload;

use crate::outcome::{Outcome, Tally, Verdict};
use crate::subject::folder;

use damage::Spoiler;
use night::Nights;
use plan::Plan;
use snapshots::Snapshots;

/// The number of trials after which each figure in [`MUST_COUNT`] must be more than zero.
const TRIALS: u64 = 50;
/// Figures without which a campaign has tested nothing.
const MUST_COUNT: [&str; 15] = [
    PARTS_KEPT,
    RESUMED,
    "states proven by change",
    "ranges swept: bytes",
    "ranges swept: maps",
    "ranges swept: meaning",
    DAMAGE,
    WITH_FINDINGS,
    windows::CLOSED,
    windows::OPEN,
    planned::BY_PLAN,
    planned::LEFT_OUT,
    snapshots::STATES,
    snapshots::PROVEN,
    snapshots::PARTS,
];
const PARTS_KEPT: &str = "parts kept, each equal to a fresh sweep";
const RESUMED: &str = "states whose redo went on from the last proof, with all pages the same";
const DAMAGE: &str = "pieces of damage";
const WITH_FINDINGS: &str = "states with findings";

/// What the trials have counted, by its name.
pub(crate) type Figures = BTreeMap<String, u64>;

pub(crate) fn trial(seed: u64) -> Outcome {
    let made = folder();
    let mut plan = Plan::of(seed);
    let mut rot = std::mem::take(&mut plan.rot);
    let what = plan.to_string();
    let workload = Workload::new(plan.spec).unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut spoiler = Spoiler::new(&plan.blows);
    let chain = workload.spoiled_story(&plan.events, plan.options, made.path(), &mut |set, kind, files| {
        spoiler.spoil(set, kind, files)
    });
    let chain = chain.unwrap_or_else(|error| panic!("{what}: {error}"));
    spoiler.spoil_containers(&chain.sets).unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut figures = Figures::from([(DAMAGE.to_owned(), spoiler.done.len() as u64)]);
    for (kind, _) in &spoiler.done {
        *figures.entry(format!("damage: {kind}")).or_default() += 1;
    }
    let kind = spoiler.done.first().map_or("sound", |(kind, _)| kind.as_str()).to_owned();
    let what = format!("{what} {:?}", spoiler.done);
    let mut nights = Nights::new(made.path(), plan.settings, &mut figures);
    let verdict = nights.prove_all(&plan, &chain, spoiler.done.is_empty());
    let executions = nights.states;
    let mut of_snapshots = Snapshots::new(made.path(), plan.settings, &mut figures);
    let verdict = verdict.and_then(|()| of_snapshots.prove_all(&chain, &mut rot));
    let verdict = verdict.map_or_else(|verdict| verdict, |()| Verdict::Kept);
    Outcome { executions, figures, ..Outcome::new(kind, what, verdict) }
}

/// The reason why a campaign has tested too little; `None` if it has not.
pub(crate) fn shortfall(tally: &Tally) -> Option<String> {
    let is_missing = |name: &&&str| tally.figures.get(**name).is_none_or(|count| *count == 0);
    let missing: Vec<&str> = MUST_COUNT.iter().filter(is_missing).copied().collect();
    (tally.tried >= TRIALS && !missing.is_empty()).then(|| format!("nothing was counted as: {}", missing.join(", ")))
}
