//! Facts as sums: what a check adds up about pages and rows, hashed, kept in bounded memory, and carried from one process
//! to another. Which facts these are is decided in crate `check`; docs/sums.md says what equal sums prove.

// Indexing is allowed only after a bounds check. A comment on each line that indexes names this check.
#![warn(clippy::indexing_slicing)]

mod by_plan;
mod collected;
pub mod hash;
mod merge;
mod per_unit;
mod sparse;
pub mod spill;
pub mod wire;

pub use by_plan::ByPlan;
pub use collected::CheckSums;
pub use hash::HashKey;
pub use merge::Merge;
pub use per_unit::PerUnit;
pub use summed_fields as sums;
