//! Turns the findings of a check into an ordered plan for the recovery. The plan states what the damage costs, and the
//! cheapest way to recover.
//!
//! [`plan`] groups the findings by the action that repairs them (`damage`), looks for copies of the damaged pages in
//! the backups ([`backups`]), and orders the steps, cheapest first. It runs nothing: a person must review the plan.

// Indexing is allowed only after a bounds check. A comment on each line that indexes names this check.
#![warn(clippy::indexing_slicing)]

pub mod backups;
mod damage;
mod keys;
mod losses;
mod lost_extents;
mod obstacle;
mod of_backup;
mod part;
mod plan;
mod repairs;
mod request;
mod restore;
mod restored;
mod set_maps;
mod statements;
mod step;
#[cfg(test)]
mod tests;
mod unrecovered;
mod unverified;
mod without_backup;

pub use plan::plan;
pub use request::Request;
pub use step::{Action, LossSummary, Plan, Situation, Step};
