//! What damage has cost, and the cheapest way back: from the findings of a check to an ordered plan.
//!
//! [`plan`] sorts the findings by what settles them (`damage`), asks the backups for copies of the damaged pages
//! ([`backups`]), and puts the steps in order, the cheapest first. Nothing is run: a plan is for a person to review.

// Indexing is used only where an earlier test proved the place; each such line says which.
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
