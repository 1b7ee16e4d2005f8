//! Extended Events outside of SQL Server: event files (.xel), events exported as XML, and error logs; and the checkpoints
//! that they tell of.
//!
//! [`xel::Reader`] and [`xml::Reader`] give the same [`Event`]s, one at a time: memory is one buffer of the file and what
//! describes its events. [`error_log`] reads the lines about checkpoints in an error log. [`checkpoints`] pairs begins with
//! ends and adds them up.
//!
//! What the bytes mean is in docs/format/events.md.

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
