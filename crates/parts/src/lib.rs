//! One check as a folder of files: a plan that cuts the database into tasks, and the part that each task leaves. Any number of
//! processes, on machines that see the same paths, carry the tasks out in any order; one of them merges the parts.
//!
//! Nothing here knows how pages are checked: `check::part` does. This crate is about the files: whose they are, whether they are
//! whole, and whether each task has exactly one. All of them are untrusted input.

#![warn(clippy::indexing_slicing)]

mod error;
mod files;
mod folder;
mod gather;
mod head;
mod ids;
mod maps;
mod plan;
mod round;

pub use error::PartsError;
pub use files::SourceFile;
pub use folder::{Folder, new_key};
pub use gather::{Gathered, Part, Status};
pub use ids::{Ids, listed};
pub use maps::{MapsWriter, Piece, maps_path};
pub use plan::{Image, Plan, PlanId, Task, VERSION};
pub use round::{MOST_ROUNDS, OpenRound, Round, RoundTask, question_bound_to};
