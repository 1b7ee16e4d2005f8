//! `mdfsck check`: checks databases or backups for corruption.

use std::time::SystemTime;

use jobs::failure::Failure;
use jobs::inventory::{self, Planned};
use jobs::request::Request;
use jobs::spread::{Spread, What};
use jobs::{carve, keep, snapshot_with};

use crate::many;
use crate::one::{one, set_up};

pub(crate) fn run(arguments: &Request) -> Result<u8, Failure> {
    if let Some(status) = snapshot_with::after_signal(arguments) {
        return Ok(status);
    }
    carve::refuse_options(arguments)?;
    set_up(arguments, |arguments| {
        let choice = arguments.sets()?;
        if arguments.carve {
            // The paths are not looked at: their bytes belong to one database.
            let what = What { named: &arguments.paths, choice: &choice, sets: None, place: None, spread: Spread::None };
            return one(arguments, &what);
        }
        let planned = inventory::plan(&arguments.paths, &choice, arguments.stop.until()).inspect_err(|failure| {
            keep::failed(arguments, SystemTime::now(), failure);
        })?;
        match planned {
            Planned::One(paths) => {
                let what =
                    What { named: &arguments.paths, choice: &choice, sets: None, place: None, spread: Spread::None };
                one(&arguments.of(paths), &what)
            }
            Planned::Several(plan) => many::run(arguments, &choice, plan),
        }
    })
}
