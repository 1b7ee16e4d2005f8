//! The checks of mdfsck. They run in four phases: survey, sweep, reckon, pinpoint (see ARCHITECTURE.md). This crate
//! also contains the registry that describes each check.

// Indexing is allowed only after a bounds check. A comment on each line that indexes names this check.
#![warn(clippy::indexing_slicing)]

mod accounting;
mod audit;
mod beyond;
mod broker;
mod budget;
mod by_plan;
mod catalog_rules;
mod check_list;
mod checks;
mod column_names;
mod columns;
mod columnstore;
mod computed;
mod constraints;
mod container;
mod content;
mod context;
mod counts;
mod coverage;
mod damage;
mod encryption;
mod estimate;
mod expanded;
mod extended;
mod facts;
pub mod finding;
mod findings;
mod forwarding;
mod hash;
mod heap;
mod identity;
#[cfg(test)]
mod imports;
mod in_flight;
mod index_match;
mod integers;
mod inventory;
mod ledger;
mod lob;
mod log_audit;
mod mapping;
mod memory;
mod metadata;
mod near;
mod off_row;
mod options;
mod outcome;
mod page_check;
mod page_lsn;
mod page_map;
mod page_records;
pub mod part;
mod partitions;
mod patterns;
mod per_unit;
mod pinpoint;
mod prechecks;
mod progress;
mod purity;
mod ranges;
mod read_ranges;
mod reckon;
pub mod registry;
mod report;
mod rereads;
mod rounds;
mod row_check;
mod rowsets;
mod run;
mod settle;
mod single_page;
mod spill;
mod statistics;
mod sums;
mod survey;
mod sweep;
mod system;
mod taken;
mod tallies;
#[cfg(test)]
mod test_file;
#[cfg(test)]
mod test_pages;
#[cfg(test)]
mod test_tree;
mod tree;
mod units;
mod unmatched;
mod unprotected;
mod values;
mod vectors;
mod warnings;
mod wire;
mod witness;

pub use beyond::{Beyond, ConstraintResult, IdentityResult};
pub use catalog_rules::{CatalogReference, catalog_references};
pub use content::Content;
pub use coverage::NotVerified;
pub use estimate::{Estimate, estimate, minimum_memory_bytes};
#[doc(hidden)]
pub use facts::{facts, facts_of_pages, run_with_sums_carried};
pub use finding::{Finding, Names, Owner, Value};
pub use findings::{ErrorCounts, Findings, Group};
pub use hash::HashKey;
pub use inventory::listed;
pub use log_audit::{LogAudit, LogAuditDoubt, LogAuditDoubtKind};
pub use options::{
    DEFAULT_MEMORY_BYTES, Options, Readers, RecoveryDoubt, RecoveryDoubtKind, RecoveryState, RecoverySummary, Scope,
};
pub use page_map::{MAX_OWNERS, MAX_RUNS, MapOfFile, MapOwner, MapRun, MapState, PageMap};
pub use patterns::{Pattern, PatternKind};
pub use progress::{Progress, Silent, phase_named, phase_words};
pub use ranges::FileRange;
pub use report::{
    BackupSummary, BrokerCount, DatabaseSummary, FileSummary, FileTotals, PhaseStatistics, RangeRead, Report,
    RowsetCounts, Sample, Statistics, UnitFileTotals, UnitTotals, Warning,
};
pub use run::{database_name, report_of_audit, run, summary};
pub use single_page::SinglePages;
pub use system::process_usage;
pub use warnings::{OTHER_SETS, TAIL_BYTES, carved, not_given, not_recovered, warnings};
#[doc(hidden)]
pub use wire::SumsError;
