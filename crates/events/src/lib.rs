//! Reads Extended Events without SQL Server, from event files (.xel), from events exported as XML, and from error logs;
//! and finds the checkpoints among these events.
//!
//! [`xel::Reader`] and [`xml::Reader`] yield the same [`Event`]s, one at a time: they keep only one buffer of the file
//! and the metadata of its events in memory. [`error_log`] reads the lines about checkpoints in an error log.
//! [`checkpoints`] pairs the events at the start and at the end of each checkpoint, and computes totals.
//!
//! docs/format/events.md describes the file formats.

#![warn(clippy::indexing_slicing)]

pub mod checkpoints;
pub mod error_log;
mod event;
mod kind;
mod lines;
mod moment;
mod text;
pub mod xel;
pub mod xml;

pub use event::{Event, Value, unique_names};
pub use kind::{IDENTIFY_BYTES, Kind, identify};
pub use lines::Lines;
pub use moment::{Clock, Moment};
pub use text::Encoding;
