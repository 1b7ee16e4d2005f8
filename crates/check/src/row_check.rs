//! The seam between the sweep and the checks of rows.
//!
//! A check is a type with a plan, made before the sweep, that implements [`RowCheck`], and a line in `checks`. What is decided
//! about a row or a page of rows is decided once, by the sweep, and handed on as [`Row`] or [`RowPage`]. A check gets every live
//! row of the units that it wants until it says of a page that it is done with it: to forget something costs time, and never
//! leaves a row out.

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

/// A live row of a sound leaf page: no ghost, no forwarding stub; audited, and expanded if it was compressed.
pub(crate) struct Row<'r> {
    pub(crate) unit: UnitIndex,
    pub(crate) at: RecordId,
    /// The address by which a nonclustered index of a heap knows the row: its own, or its stub's if it was moved. `None` if it
    /// was moved and its back pointer is of an unknown form.
    pub(crate) locator: Option<RecordId>,
    pub(crate) record: Record<'r>,
    pub(crate) expanded: &'r ExpandedRows,
}

impl Row<'_> {
    /// The columns whose values are not in the record, as their compressed form is not known.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = ColumnDoubt> + Clone + '_ {
        self.expanded.doubts(usize::from(self.at.slot))
    }
}

/// The rows of a sound leaf page that have one form. Some are deleted, and checks leave those out; some may have a complex
/// column. All other rows of the page are checked one by one.
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

/// What a check has done with rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Done<Rest> {
    /// Nothing: it wants them one by one.
    Nothing,
    /// All that there is to do.
    All,
    /// A part: it wants them one by one, with this.
    Except(Rest),
}

/// What a check has done with the live rows of a page that have one form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Handled<Rest> {
    /// With those that are plain.
    pub(crate) plain: Done<Rest>,
    /// With those that have a complex column.
    pub(crate) complex: Done<Rest>,
}

impl<Rest: Copy + Default> Handled<Rest> {
    /// It wants all of them one by one.
    pub(crate) const NOTHING: Self = Self { plain: Done::Nothing, complex: Done::Nothing };
    /// All that there is to do.
    pub(crate) const ALL: Self = Self { plain: Done::All, complex: Done::All };
    /// All that there is to do with plain rows.
    pub(crate) const PLAIN: Self = Self { plain: Done::All, complex: Done::Nothing };

    /// What is left to do for such a row of the page; `None` if nothing is.
    #[inline]
    pub(crate) fn rest(self, is_complex: bool) -> Option<Rest> {
        match if is_complex { self.complex } else { self.plain } {
            Done::Nothing => Some(Rest::default()),
            Done::All => None,
            Done::Except(rest) => Some(rest),
        }
    }
}

/// When the sums of a check are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// With those of B-trees and heaps, before the catalog is compared with itself.
    Reckon,
    /// At the end.
    Beyond,
}

/// A check of rows. The type is its plan: what it knows before the sweep; the default is the plan of a run that does not
/// make it, and wants no rows.
pub(crate) trait RowCheck: Default + Sync {
    /// What each thread adds up.
    type Sums: CheckSums;
    /// What a thread needs while it looks at rows; kept from row to row.
    type Scratch: Default;
    /// What is left of a page that was handled in part.
    type Rest: Copy + Default;
    /// When [`Self::settle`] is called.
    const STAGE: Stage = Stage::Reckon;

    /// What a thread keeps at most besides sums per unit, in bytes.
    fn bytes_per_thread(_database: &Database) -> u64 {
        0
    }

    /// Sums without any row, for this number of units.
    fn sums(&self, units: usize) -> Self::Sums;

    /// Whether rows of this unit are looked at. Asked once per unit, before the sweep.
    fn wants(&self, context: &Context<'_>, unit: UnitIndex) -> bool;

    /// Does what can be done for the rows of a page together. It only proves that there is nothing to report: what may be
    /// wrong is looked at one by one.
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

    /// Looks at a row.
    fn row(
        &self,
        context: &Context<'_>,
        row: &Row<'_>,
        rest: Self::Rest,
        local: (&mut Self::Sums, &mut Self::Scratch),
        findings: &mut Vec<Finding>,
    );

    /// Looks at a page of values off the row.
    #[inline]
    fn text_page(
        &self,
        _context: &Context<'_>,
        _page: &TextPage<'_>,
        _sums: &mut Self::Sums,
        _findings: &mut Vec<Finding>,
    ) {
    }

    /// Compares the sums, after the sweep, and takes a second look where they differ. Checks are settled in the order of their
    /// list: what is damaged otherwise is not compared.
    fn settle(&self, context: &Context<'_>, swept: &mut Tallies, sums: &mut Self::Sums, to: &mut Results<'_>);

    /// What a finding of the sweep amounts to when all rows were seen; `None` if it is no proof.
    fn proven(&self, _: &Context<'_>, _: &Self::Sums, finding: Finding, _: &mut Coverage) -> Option<Finding> {
        Some(finding)
    }
}
