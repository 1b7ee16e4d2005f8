//! The checks of mdfsck. They run in four phases: survey, sweep, reckon, pinpoint (see ARCHITECTURE.md). Crate `findings`
//! has the registry that describes each check, and everything that a run returns.

// Indexing is allowed only after a bounds check. A comment on each line that indexes names this check.
#![warn(clippy::indexing_slicing)]

mod basis;
mod checks;
mod metadata;
mod page;
mod run;
mod survey;
mod sweep;
#[cfg(test)]
mod test_file;
#[cfg(test)]
mod test_pages;
#[cfg(test)]
mod test_tree;
mod values;

pub use basis::progress::{Progress, Silent};
pub use basis::system::process_usage;
pub use metadata::catalog_rules::{CatalogReference, catalog_references};
pub use run::estimate::{estimate, minimum_memory_bytes};
#[doc(hidden)]
pub use run::facts::{facts, facts_of_pages, run_with_sums_carried};
pub use run::{change, part, report_of_audit, run};
pub use sweep::single_page::SinglePages;
pub use sweep::warnings::{OTHER_SETS, carved, not_given, not_recovered, warnings};
