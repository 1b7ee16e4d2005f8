//! `mdfsck plan`, `task` and `merge`: one check in many processes. A watcher does the same through [`HandedOut`].

mod engine;
mod eof;
mod merge;
mod plan;
mod task;

pub(crate) use engine::{HandedOut, remove as remove_plan};
pub(crate) use merge::run as merge;
pub(crate) use plan::run as plan;
pub(crate) use task::run as task;
