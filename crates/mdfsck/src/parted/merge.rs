//! `mdfsck merge`: merges the parts of a plan into one report.

use crate::cli::MergeArguments;
use crate::failure::Failure;
use crate::html;
use crate::one::{one, set_up};
use crate::request::Request;
use crate::spread::{Merge, Opened, Spread, What};

pub(crate) fn run(arguments: &MergeArguments) -> Result<u8, Failure> {
    let opened = Opened::open(&arguments.folder)?;
    html::refuse_plan(arguments.results.html.as_deref(), opened.folder.path())?;
    let request = opened.arguments(&(&arguments.room).into(), &(&arguments.run).into());
    let check = Request { results: (&arguments.results).into(), ..request };
    set_up(&check, |check| {
        let (choice, sets) = (opened.choice(), opened.sets()?);
        let merge = Merge::gather(opened, arguments.local_limit)?;
        let spread = Spread::Merge(&merge);
        let what = What { named: &check.paths, choice: &choice, sets: sets.as_deref(), place: None, spread };
        one(check, &what)
    })
}
