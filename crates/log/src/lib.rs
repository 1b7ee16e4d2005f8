//! Reads the transaction log: its blocks, their order, and the transactions and checkpoints in their records.
//!
//! [`Log`] opens the log files of one database, or the log in its backups, and finds the run of virtual log files
//! (VLFs) that contain the log. [`Walk`] visits the blocks from the oldest block to the end of the log, and verifies
//! each block. [`History`] collects transactions and checkpoints. Memory holds only one buffer, a few machine words for
//! each VLF, and the open transactions, so memory use hardly depends on the size of the log.
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
