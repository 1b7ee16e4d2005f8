//! What all phases of a run share: the units of the catalog, the tallies of pages, findings that are being collected, and
//! the progress of the run.

pub(crate) mod accounting;
pub(crate) mod in_flight;
pub(crate) mod ledger;
pub(crate) mod meaning;
pub(crate) mod outcome;
pub(crate) mod progress;
pub(crate) mod system;
pub(crate) mod taken;
pub(crate) mod tallies;
pub(crate) mod units;
