//! The cost of damage, and the cheapest way to recover: from the findings of a check to an ordered plan.
//!
//! [`plan`] sorts the findings by what repairs them (`damage`), looks for copies of the damaged pages in the backups
//! ([`backups`]), and puts the steps in order, cheapest first. It runs nothing: a person reviews the plan.

// Indexing is used only after a bounds check; a comment there names it.
#![warn(clippy::indexing_slicing)]

pub mod backups;
mod damage;
mod keys;
mod losses;
mod lost_extents;
mod maps;
mod obstacle;
mod of_backup;
mod part;
mod plan;
mod repairs;
mod restore;
mod set_maps;
mod statements;
mod step;
#[cfg(test)]
mod tests;
mod unverified;
mod without_backup;

pub use plan::{Plan, Request, Situation, plan};
pub use step::{Action, LossSummary, Step};
