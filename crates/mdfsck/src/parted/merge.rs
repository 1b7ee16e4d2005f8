//! `mdfsck merge`: merges the parts of a plan into one report.

use jobs::failure::Failure;
use jobs::request::Request;
use jobs::spread::{Merge, Opened, Spread, What};
use parts::Round;
use report::parts::RoundView;

use crate::cli::MergeArguments;
use crate::one::{one, set_up};
use crate::{html, output};

pub(crate) fn run(arguments: &MergeArguments) -> Result<u8, Failure> {
    let opened = Opened::open(&arguments.folder)?;
    html::refuse_plan(arguments.results.html.as_deref(), opened.folder.path())?;
    let request = opened.request(&(&arguments.room).into(), &(&arguments.run).into());
    let results = (&arguments.results).into();
    let check = Request { results, keep_parts: arguments.keep_parts, ..request };
    set_up(&check, |check| {
        let (choice, sets) = (opened.choice(), opened.sets()?);
        let merge = Merge::gather(opened, arguments.local_limit, Some(say_round))?;
        let spread = Spread::Merge(&merge);
        let what = What { named: &check.paths, choice: &choice, sets: sets.as_deref(), place: None, spread };
        one(check, &what)
    })
}

/// Prints a further round of tasks on stdout.
fn say_round(round: &Round) -> Result<(), Failure> {
    let Round { round, why, bytes, tasks, .. } = round;
    let view = RoundView { round: *round, tasks: tasks.len() as u32, why, bytes: *bytes };
    output::print(|out| report::parts::write_round_json(&view, out))
}
