//! Reads the transaction log: its blocks, their order, and the transactions and checkpoints in their records.
//!
//! [`Log`] opens the log files of one database, or the log in its backups, and finds the run of virtual log files
//! (VLFs) that contain the log. [`Walk`] visits the blocks from the oldest to the end, and verifies each; [`History`]
//! collects transactions and checkpoints. The memory does not depend on the size of the log: it contains one buffer, a
//! few words for each VLF, and the open transactions.
//!
//! `format::log` defines the layout of blocks and records; docs/format/log.md has the facts.

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
