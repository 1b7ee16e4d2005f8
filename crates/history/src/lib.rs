//! The history of checks: one SQLite file that records the checks, their findings, and the age of each proof.
//!
//! The history is an aid, and a problem with it never prevents a check: every function here returns an error that says
//! what is wrong with the file, and the caller checks the database anyway. A file that is damaged or not a history is
//! never written to.

#![warn(clippy::indexing_slicing)]

pub mod baselines;
pub mod coverage;
mod doubts;
mod error;
pub mod estate;
mod file;
mod held;
mod identity;
mod lease;
mod life;
pub mod maintain;
mod objects;
pub mod outbox;
pub mod progress;
pub mod query;
pub mod queue;
mod record;
mod schema;
mod scope;
pub mod state;
pub mod time;
pub mod vitals;
pub mod windows;

pub use coverage::InWindow;
pub use error::{HistoryError, Result};
pub use file::{History, is_open};
pub use identity::{Naming, family_of, identity_of};
pub use lease::Lease;
pub use record::{FailedRun, Recorded, Run};
pub use schema::VERSION;
