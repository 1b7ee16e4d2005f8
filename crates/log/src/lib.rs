//! Reading the transaction log: which blocks it has, in which order, and what its records say together.
//!
//! [`Log`] opens the log files of one database, or the log in its backups, and finds the run of virtual log files (VLFs) that hold the log. [`Walk`]
//! goes through its blocks from the oldest to the end, verifying each; [`History`] adds up transactions and checkpoints.
//! Memory does not depend on the size of the log: one buffer, a few words per VLF, and what is open.
//!
//! What a block or record is made of is `format::log`'s; docs/format/log.md has the facts.

#![warn(clippy::indexing_slicing)]

mod error;
mod file;
mod history;
mod rate;
mod totals;
mod walk;

pub use error::LogError;
pub use file::{FIRST_BLOCK, Gap, Log, LogFile, PlacedVlf, binding_guid};
pub use history::{Checkpoint, Event, History, Outcome, Transaction};
pub use rate::{Rate, Step};
pub use totals::{Totals, duration_ms};
pub use walk::{Damage, End, EndReason, LaterBlocks, Walk};
