//! Divides one check into a folder of files: a plan that divides the database into tasks, and a part that each task
//! writes. Any number of processes can run the tasks in any order, on all machines that see the same paths. One process
//! then merges the parts.
//!
//! A [`Ledger`] holds the parts of many small ranges in one file, so that later checks need not sweep ranges that have not
//! changed.
//!
//! This crate does not check pages; `check::part` does. It tests to which plan a file belongs, whether the file is
//! complete, and whether each task has exactly one part. All files are untrusted input.

#![warn(clippy::indexing_slicing)]

mod error;
mod files;
mod folder;
mod gather;
mod head;
mod ids;
mod ledger;
mod maps;
mod plan;
mod random;
mod redone;
mod round;
mod whole_file;

pub use error::{PartsError, listed};
pub use files::SourceFile;
pub use folder::{Folder, new_key};
pub use gather::{Gathered, Part, Status};
pub use ids::Ids;
pub use ledger::{KeptRun, Ledger, LedgerContent};
pub use maps::{MapsWriter, Piece, maps_path};
pub use plan::{Image, Plan, PlanId, Task, VERSION};
pub use redone::{BYTES_PER_PAGE, Ready, RedoneFile, Room};
pub use round::{MOST_ROUNDS, OpenRound, Round, RoundTask, question_bound_to};
