//! The interface between the sweep and the checks of rows.
//!
//! A check is a type with a plan, made before the sweep, that implements [`RowCheck`], and a line in `checks`. The
//! sweep classifies a row or a page of rows once and passes the result on as [`Row`] or [`RowPage`]. A check receives
//! every live row of its units until it declares a page handled: forgetting to declare one costs time, but never skips
//! a row.

use catalog::Database;
use format::record::Record;
use format::same_shape::Rows;
use format::slots::Span;
use format::{Page, PageId, RecordId};

use crate::context::Context;
use crate::coverage::Coverage;
use crate::expanded::{ColumnDoubt, ExpandedRows};
use crate::finding::Finding;
use crate::outcome::Results;
use crate::sums::CheckSums;
use crate::tallies::Tallies;
use crate::units::UnitIndex;

/// A live row of a sound leaf page: neither ghost nor forwarding stub; audited, and expanded if it was compressed.
pub(crate) struct Row<'r> {
    pub(crate) unit: UnitIndex,
    pub(crate) at: RecordId,
    /// The address by which a nonclustered index of a heap refers to the row: its own, or that of its stub if it was
    /// forwarded. `None` if it was forwarded and its back pointer has an unknown form.
    pub(crate) locator: Option<RecordId>,
    pub(crate) record: Record<'r>,
    pub(crate) expanded: &'r ExpandedRows,
}

impl Row<'_> {
    /// The columns whose values the record lacks, as their compressed form is unknown.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = ColumnDoubt> + Clone + '_ {
        self.expanded.doubts(usize::from(self.at.slot))
    }
}

/// Rows of a sound leaf page that all have the same form. Some are deleted, which checks must skip; some may have a
/// complex column. All other rows of the page are checked one by one.
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

/// What a check has done with a group of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Done<Rest> {
    /// Nothing: the check wants the rows one by one.
    Nothing,
    /// Everything.
    All,
    /// A part: the check wants the rows one by one, and this value then.
    Except(Rest),
}

/// What a check has done with the live rows of a page that have the same form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Handled<Rest> {
    /// What was done with plain rows.
    pub(crate) plain: Done<Rest>,
    /// What was done with rows that have a complex column.
    pub(crate) complex: Done<Rest>,
}

impl<Rest: Copy + Default> Handled<Rest> {
    /// The check wants all rows one by one.
    pub(crate) const NOTHING: Self = Self { plain: Done::Nothing, complex: Done::Nothing };
    /// The check has handled all rows.
    pub(crate) const ALL: Self = Self { plain: Done::All, complex: Done::All };
    /// The check has handled all plain rows.
    pub(crate) const PLAIN: Self = Self { plain: Done::All, complex: Done::Nothing };

    /// What a check still has to do for such a row; `None` for nothing.
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
    /// With those of B-trees and heaps, before the catalog is compared with itself.
    Reckon,
    /// At the end.
    Beyond,
}

/// A check of rows. The type is its plan, the knowledge from before the sweep; the default plan belongs to a run that
/// does not make the check, and wants no rows.
pub(crate) trait RowCheck: Default + Sync {
    /// The sums that each thread adds up.
    type Sums: CheckSums;
    /// Scratch space of a thread, kept from row to row.
    type Scratch: Default;
    /// What is still to be done for the rows of a page that was handled in part.
    type Rest: Copy + Default;
    /// When [`Self::settle`] is called.
    const STAGE: Stage = Stage::Reckon;

    /// The most bytes that a thread keeps besides sums per unit.
    fn bytes_per_thread(_database: &Database) -> u64 {
        0
    }

    /// Sums without any row, for this number of units.
    fn sums(&self, units: usize) -> Self::Sums;

    /// Whether the check wants the rows of this unit. Called once per unit, before the sweep.
    fn wants(&self, context: &Context<'_>, unit: UnitIndex) -> bool;

    /// Handles the rows of a page together where possible. This can only show that there is nothing to report: rows
    /// that may be wrong are checked one by one.
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

    /// Compares the sums after the sweep, and takes a second look where they differ. Checks are settled in the order of
    /// their list; units that an earlier check found damaged are not compared.
    fn settle(&self, context: &Context<'_>, swept: &mut Tallies, sums: &mut Self::Sums, to: &mut Results<'_>);

    /// Reviews a finding of the sweep once all rows were seen; `None` if it is no proof.
    fn proven(&self, _: &Context<'_>, _: &Self::Sums, finding: Finding, _: &mut Coverage) -> Option<Finding> {
        Some(finding)
    }
}
