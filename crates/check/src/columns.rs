//! The columns of rows: NULL and length rules, data purity.

use catalog::Database;
use format::RecordId;
use format::record::Record;

use crate::context::Context;
use crate::coverage::Coverage;
use crate::finding::Finding;
use crate::sweep::Partial;
use crate::units::{UnitIndex, Units};

/// What is known of each unit before the sweep.
pub(crate) struct Plans {}

impl Plans {
    /// Plans for the units of a database.
    pub(crate) fn new(_database: &Database, _units: &Units) -> Self {
        Self {}
    }
}

/// What one thread, or all, added up.
pub(crate) struct Sums {}

impl Sums {
    /// Nothing yet.
    pub(crate) fn new(_units: usize) -> Self {
        Self {}
    }

    /// Adds what another thread has.
    pub(crate) fn merge(&mut self, _other: Self) {}
}

/// A record of the leaf level of a heap or index, ghosts included, uncompressed and audited.
pub(crate) fn row(
    _context: &Context<'_>,
    _unit: UnitIndex,
    _at: RecordId,
    _record: &Record<'_>,
    _sums: &mut Sums,
    _findings: &mut Vec<Finding>,
) {
}

/// After the sweep: what the sums say.
pub(crate) fn reckon(_context: &Context<'_>, _swept: &Partial, _findings: &mut Vec<Finding>, _coverage: &mut Coverage) {
}
