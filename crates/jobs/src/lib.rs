//! What a run of a check is, without a command line: which databases the paths hold, how they are opened and recovered,
//! how a check is spread over processes and windows of time, and what a history keeps of it.
//!
//! A program that checks one database and prints what is wrong with it:
//!
//! ```no_run
//! use check::Silent;
//! use jobs::failure::Failure;
//! use jobs::host::Host;
//! use jobs::inventory;
//! use jobs::judge::judge;
//! use jobs::request::Request;
//! use jobs::spread::{Spread, What};
//!
//! struct Program;
//!
//! impl Host for Program {
//!     fn warn(&self, text: &str) {
//!         eprintln!("{text}");
//!     }
//! }
//!
//! fn main() -> Result<(), Failure> {
//!     jobs::host::set(&Program);
//!     let named = vec!["sales.mdf".into(), "sales_log.ldf".into()];
//!     let request = Request::of_paths(named.clone());
//!     let choice = request.sets()?;
//!     let (paths, sets) = inventory::one("check", &named, &choice, request.stop.until())?;
//!     let request = request.of(paths);
//!     let what = What { named: &named, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
//!     let (status, ()) = judge(&request, &what, Box::new(Silent), |report, _, _| {
//!         for finding in &report.findings {
//!             println!("Msg {}: {}", finding.check.msg, finding.text(&report.names()));
//!         }
//!     })?;
//!     std::process::exit(status.into());
//! }
//! ```

// Indexing is allowed only after a bounds check. A comment on each line that indexes names this check.
#![warn(clippy::indexing_slicing)]

pub mod audit;
pub mod carve;
pub mod change;
pub mod deliver;
pub mod ended;
pub mod failure;
pub mod fingerprint;
pub mod folders;
pub mod host;
pub mod input;
pub mod inventory;
pub mod judge;
pub mod keep;
pub mod ledgers;
pub mod live;
pub mod logs;
pub mod machine;
pub mod patterns;
pub mod planning;
pub mod prepare;
pub mod program;
pub mod recover;
pub mod redo;
pub mod request;
pub mod scope;
pub mod size;
pub mod snapshot_with;
pub mod spool;
pub mod spread;
pub mod tasks;
pub mod throttle;
pub mod version;
pub mod windows;

#[cfg(test)]
mod tests;
