//! Copies a database with other names and other values, so that a check of the copy has the same findings
//! (docs/redact.md).
//!
//! [`Redaction`] reads all pages, draws new names and values, and gives each page with them. [`differences`] compares
//! the reports of the database and of its copy. [`Kept`] lists what could not be changed.

// Bytes of files decide offsets: indexing is used only where no file can make it fail.
#![warn(clippy::indexing_slicing)]

mod cells;
mod formula;
mod kept;
mod key;
mod letters;
mod numbers;
mod plan;
mod redaction;
mod same;
mod texts;
mod wipe;

pub use kept::{Kept, Why};
pub use key::Key;
pub use redaction::{Redaction, Refused};
pub use same::differences;
