//! The history of checks: one SQLite file that records the checks, their findings, and when each page and each index
//! was last checked.
//!
//! The history is only an aid. A problem with the history never prevents a check: every function here returns an error
//! that says what is wrong with the file, and the caller checks the database anyway. If a file is damaged or is not a
//! history, nothing is written to it.

#![warn(clippy::indexing_slicing)]

pub mod baselines;
pub mod coverage;
mod doubts;
mod error;
pub mod estate;
mod file;
mod held;
mod holder;
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
mod stored;
pub mod time;
pub mod vitals;
pub mod windows;

pub use coverage::InWindow;
pub use error::{HistoryError, Result};
pub use file::{History, is_open};
pub use identity::{Naming, Originals, family_of, identity_of};
pub use lease::Lease;
pub use record::{FailedRun, Recorded, Run};
pub use schema::VERSION;
