//! What a run of a check is, without a command line: which databases the paths hold, how they are opened and recovered,
//! how a check is spread over processes and windows of time, and what a history keeps of it.

// Indexing is allowed only after a bounds check. A comment on each line that indexes names this check.
#![warn(clippy::indexing_slicing)]

pub mod audit;
pub mod carve;
pub mod deliver;
pub mod ended;
pub mod failure;
pub mod fingerprint;
pub mod folders;
pub mod host;
pub mod input;
pub mod inventory;
pub mod keep;
pub mod live;
pub mod logs;
pub mod machine;
pub mod patterns;
pub mod prepare;
pub mod program;
pub mod recover;
pub mod request;
pub mod scope;
pub mod size;
pub mod snapshot_with;
pub mod spool;
pub mod spread;
pub mod throttle;
pub mod version;
pub mod windows;
