//! The interface between the sweep and the checks of rows.
//!
//! Each check is a type that implements [`RowCheck`] and is listed in the module `checks`. A value of the type is the
//! plan of the check, which is made before the sweep. The sweep classifies each row, or each page of rows, only once,
//! and passes the result to all checks as [`Row`] or [`RowPage`]. If most rows of a page have the same form, a check
//! first sees these rows together, and may report them as handled. It then receives all other live rows one by one. So
//! a check that never handles rows together is slower, but does not miss a row.

use catalog::Database;
use findings::{Coverage, Finding};
use format::record::Record;
use format::same_shape::Rows;
use format::slots::Span;
use format::{Page, PageId, RecordId};
use sums::CheckSums;

use crate::basis::meaning::{Meaning, PlanNames};
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::{UnitIndex, Units};
use crate::page::expanded::{ColumnDoubt, ExpandedRows};
use crate::sweep::context::Context;

/// A live row of a sound leaf page, neither ghost nor forwarding stub. The row was audited, and expanded if it was
/// compressed.
pub(crate) struct Row<'r> {
    pub(crate) unit: UnitIndex,
    pub(crate) at: RecordId,
    /// The address by which nonclustered indexes of a heap refer to the row: its own address or, for a forwarded row,
    /// that of its stub. `None` if the back pointer of a forwarded row has an unknown form.
    pub(crate) locator: Option<RecordId>,
    pub(crate) record: Record<'r>,
    pub(crate) expanded: &'r ExpandedRows,
}

impl Row<'_> {
    /// The columns whose values are missing in the record, because their compressed form is unknown.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = ColumnDoubt> + Clone + '_ {
        self.expanded.doubts(usize::from(self.at.slot))
    }
}

/// The rows of a sound leaf page that have the same form. Some of these rows may be deleted, and checks must skip
/// deleted rows. Some of these rows may have a complex column. Rows of the page with another form are not included;
/// they are checked one by one.
pub(crate) struct RowPage<'p> {
    pub(crate) unit: UnitIndex,
    pub(crate) id: PageId,
    pub(crate) rows: Rows<'p>,
}

/// A sound page of a LOB or row-overflow unit.
pub(crate) struct TextPage<'p> {
    pub(crate) unit: UnitIndex,
    pub(crate) page: Page<'p>,
    pub(crate) spans: &'p [Span],
}

/// How much of its work a check has done for a group of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Done<Rest> {
    /// The check has done nothing. It must receive the rows one by one.
    Nothing,
    /// The check has done all its work for the rows.
    All,
    /// The check has done some of its work. It must still receive the rows one by one, together with this value, which
    /// says what work remains.
    Except(Rest),
}

/// How much of its work a check has done for the live rows of a page that have the same form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Handled<Rest> {
    /// The result for plain rows: rows without a complex column.
    pub(crate) plain: Done<Rest>,
    /// The result for rows that have a complex column.
    pub(crate) complex: Done<Rest>,
}

impl<Rest: Copy + Default> Handled<Rest> {
    /// The check must receive all rows one by one.
    pub(crate) const NOTHING: Self = Self { plain: Done::Nothing, complex: Done::Nothing };
    /// The check has handled all rows.
    pub(crate) const ALL: Self = Self { plain: Done::All, complex: Done::All };
    /// The check has handled all rows without a complex column.
    pub(crate) const PLAIN: Self = Self { plain: Done::All, complex: Done::Nothing };

    /// The work that remains for a row of the page. `is_complex` says whether the row has a complex column. `None` if
    /// no work remains.
    #[inline]
    pub(crate) fn rest(self, is_complex: bool) -> Option<Rest> {
        match if is_complex { self.complex } else { self.plain } {
            Done::Nothing => Some(Rest::default()),
            Done::All => None,
            Done::Except(rest) => Some(rest),
        }
    }
}

/// The stage at which the sums of a check are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The sums are compared together with the sums of B-trees and heaps, before the tables of the catalog are compared
    /// with each other.
    Reckon,
    /// The sums are compared after the check of the catalog, near the end of the run.
    Beyond,
}

/// A check of rows. A value of the implementing type is the plan of the check, made before the sweep. The default value
/// is the plan for a run in which the check is not made. With this plan, the check receives no rows.
pub(crate) trait RowCheck: Default + Sync {
    /// The sums that each thread adds up.
    type Sums: CheckSums;
    /// Buffers of a thread, reused from row to row.
    type Scratch: Default;
    /// The work that remains for the rows of a page if the check has done only some of its work for them.
    type Rest: Copy + Default;
    /// When [`Self::settle`] is called.
    const STAGE: Stage = Stage::Reckon;

    /// The maximum number of bytes that the check uses per thread. The sums per unit are not included.
    fn bytes_per_thread(_database: &Database) -> u64 {
        0
    }

    /// Empty sums for this number of units.
    fn sums(&self, units: usize) -> Self::Sums;

    /// Whether the check needs the rows of this unit. Called once per unit, before the sweep.
    fn wants(&self, context: &Context<'_>, unit: UnitIndex) -> bool;

    /// Adds a name for each plan, in the order of the plans' numbers in the sums. A check whose plans have no names adds
    /// none; its sums are then never used again.
    fn names(&self, _units: &Units, _to: &mut PlanNames<'_>) {}

    /// Adds everything by which the check judges the rows of a unit.
    fn meaning(&self, unit: UnitIndex, to: &mut Meaning<'_>);

    /// Handles as many rows of a page together as possible. This method never reports a finding: rows that may be wrong
    /// are left to [`Self::row`].
    #[inline]
    fn page(
        &self,
        _context: &Context<'_>,
        _page: &RowPage<'_>,
        _sums: &mut Self::Sums,
        _scratch: &mut Self::Scratch,
    ) -> Handled<Self::Rest> {
        Handled::NOTHING
    }

    /// Checks a row.
    fn row(
        &self,
        context: &Context<'_>,
        row: &Row<'_>,
        rest: Self::Rest,
        local: (&mut Self::Sums, &mut Self::Scratch),
        findings: &mut Vec<Finding>,
    );

    /// Checks a page of off-row values.
    #[inline]
    fn text_page(
        &self,
        _context: &Context<'_>,
        _page: &TextPage<'_>,
        _sums: &mut Self::Sums,
        _findings: &mut Vec<Finding>,
    ) {
    }

    /// Compares the sums after the sweep. If the sums differ, reads pages again to find the damage. The run calls this
    /// method for one check after another, in the order of the list of checks. A check skips units in which an earlier
    /// check found damage.
    fn settle(&self, context: &Context<'_>, swept: &mut Tallies, sums: &mut Self::Sums, to: &mut Results<'_>);

    /// Reviews a finding of the sweep after all rows were seen. Returns the final finding, or `None` if the finding is
    /// not proven.
    fn proven(&self, _: &Context<'_>, _: &Self::Sums, finding: Finding, _: &mut Coverage) -> Option<Finding> {
        Some(finding)
    }
}
