//! Extended Events outside of SQL Server: event files (.xel), events exported as XML, and error logs; and the checkpoints
//! in them.
//!
//! [`xel::Reader`] and [`xml::Reader`] yield the same [`Event`]s, one at a time: they keep one buffer of the file and
//! the metadata of its events in memory. [`error_log`] reads the lines about checkpoints in an error log.
//! [`checkpoints`] pairs begins with ends and sums them.
//!
//! docs/format/events.md describes the bytes.

#![warn(clippy::indexing_slicing)]

pub mod checkpoints;
pub mod error_log;
mod event;
mod kind;
mod moment;
mod text;
pub mod xel;
pub mod xml;

pub use event::{Event, Value, unique_names};
pub use kind::{IDENTIFY_BYTES, Kind, identify};
pub use moment::{Clock, Moment};
