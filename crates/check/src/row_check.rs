//! The seam between the sweep and the checks of rows.
//!
//! A check is a type with a plan, made before the sweep, that implements [`RowCheck`], and a line in `checks`. What is decided
//! about a row or a page of rows is decided once, by the sweep, and handed on as [`Row`] or [`RowPage`]. A check gets every live
//! row of the units that it wants until it says of a page that it is done with it: to forget something costs time, and never
//! leaves a row out.

use std::fmt::Debug;

use format::record::Record;
use format::slots::Span;
use format::uniform::Rows;
use format::{Page, PageId, RecordId};

use crate::beyond::Beyond;
use crate::context::Context;
use crate::coverage::Coverage;
use crate::expanded::{ColumnDoubt, ExpandedRows};
use crate::finding::Finding;
use crate::ledger::Ledger;
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

/// The rows of a sound leaf page, all of one form but a few exceptions, which come one by one.
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

/// What a check has done with the rows of a page, exceptions aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Handled<Rest> {
    /// Nothing: it wants them one by one.
    None,
    /// All that there is to do.
    All,
    /// A part: it wants them one by one, with this.
    Except(Rest),
}

impl<Rest: Copy + Default> Handled<Rest> {
    /// What is left to do for a row of the page; `None` if nothing is.
    #[inline]
    pub(crate) fn rest(self) -> Option<Rest> {
        match self {
            Self::None => Some(Rest::default()),
            Self::All => None,
            Self::Except(rest) => Some(rest),
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

/// What one thread, or all, added up.
pub(crate) trait RowSums: Send + Sized {
    /// Adds what another thread, or another part of the tables, has; in any order.
    fn merge(&mut self, other: Self);

    /// What it holds, for tests that compare two ways to the same sums.
    fn facts(&self) -> impl Debug + '_;
}

/// What checks report besides findings and what is not verified.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Rows whose columns were checked.
    pub(crate) rows_checked: u64,
    /// Values in them that were verified.
    pub(crate) column_values_checked: u64,
    /// Values in them that were not.
    pub(crate) column_values_not_verified: u64,
    /// Nonclustered indexes that the run covers.
    pub(crate) indexes_in_scope: u64,
    /// Those that were compared with their table.
    pub(crate) indexes_compared: u64,
    /// Their rows.
    pub(crate) index_rows_compared: u64,
    /// Constraints and identity columns.
    pub(crate) beyond: Beyond,
}

/// A check of rows. The type is its plan: what it knows before the sweep; the default is the plan of a run that does not
/// make it, and wants no rows.
pub(crate) trait RowCheck: Default + Sync {
    /// What each thread adds up.
    type Sums: RowSums;
    /// What a thread needs while it looks at rows; kept from row to row.
    type Scratch: Default;
    /// What is left of a page that was handled in part.
    type Rest: Copy + Default;
    /// When [`Self::settle`] is called.
    const STAGE: Stage = Stage::Reckon;

    /// Sums without any row, of so many units.
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
        Handled::None
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

/// Where results go.
pub(crate) struct Results<'a> {
    pub(crate) findings: &'a mut Ledger,
    pub(crate) coverage: &'a mut Coverage,
    pub(crate) outcome: &'a mut Outcome,
}

/// A list of checks, as [`row_checks!`](crate::row_check::row_checks) makes it.
pub(crate) trait RowChecks: Sync {
    /// The sums of all.
    type Sums: RowSums;
    /// What a thread needs for all.
    type Scratch: Default;
    /// What each has done with the rows of a page.
    type Handled: Copy;

    /// Sums without any row, of so many units.
    fn sums(&self, units: usize) -> Self::Sums;

    /// The checks that want rows of a unit, a bit each.
    fn wanted(&self, unit: UnitIndex) -> u32;

    /// Hands the rows of a page to the checks; whether all that want them have handled all.
    fn page(
        &self,
        context: &Context<'_>,
        page: &RowPage<'_>,
        wanted: u32,
        local: (&mut Self::Sums, &mut Self::Scratch),
    ) -> (Self::Handled, bool);

    /// Hands a row to the checks that want it; with what was done with its page, if it is no exception there.
    fn row(
        &self,
        context: &Context<'_>,
        row: &Row<'_>,
        wanted: (u32, Option<&Self::Handled>),
        local: (&mut Self::Sums, &mut Self::Scratch),
        findings: &mut Vec<Finding>,
    );

    /// Hands a page of values off the row to the checks.
    fn text_page(&self, context: &Context<'_>, page: &TextPage<'_>, sums: &mut Self::Sums, findings: &mut Vec<Finding>);
}

/// Makes a list of checks: a struct of their plans, one of their sums, one of their scratch, and what was handled of a page.
/// Calls are resolved at compile time.
macro_rules! row_checks {
    ($(#[$doc:meta])* $name:ident, $sums:ident, $scratch:ident, $handled:ident {
        $($(#[$field_doc:meta])* $field:ident: $check:ty,)+
    }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(crate) struct $name {
            $($(#[$field_doc])* pub(crate) $field: $check,)+
            /// By unit, the checks that want its rows, a bit each.
            wanted: Vec<u32>,
        }

        /// The sums of all checks.
        pub(crate) struct $sums {
            $(pub(crate) $field: <$check as $crate::row_check::RowCheck>::Sums,)+
        }

        /// What a thread needs for all checks.
        #[derive(Default)]
        pub(crate) struct $scratch {
            $($field: <$check as $crate::row_check::RowCheck>::Scratch,)+
        }

        /// What each check has done with the rows of a page.
        #[derive(Clone, Copy)]
        pub(crate) struct $handled {
            $($field: $crate::row_check::Handled<<$check as $crate::row_check::RowCheck>::Rest>,)+
        }

        impl $name {
            /// Asks each check once which units it wants.
            pub(crate) fn ask(mut self, context: &$crate::context::Context<'_>) -> Self {
                use $crate::row_check::RowCheck;
                let units = 0..context.units.list().len() as $crate::units::UnitIndex;
                self.wanted = units
                    .map(|unit| {
                        let mut bit = 1;
                        let mut wanted = 0;
                        $(
                            if self.$field.wants(context, unit) {
                                wanted |= bit;
                            }
                            bit <<= 1;
                        )+
                        let _: u32 = bit;
                        wanted
                    })
                    .collect();
                self
            }

            /// Settles the checks of a stage, and gives up their plans if they are not needed any more.
            pub(crate) fn settle(
                &mut self,
                stage: $crate::row_check::Stage,
                context: &$crate::context::Context<'_>,
                swept: &mut $crate::tallies::Tallies,
                sums: &mut $sums,
                to: &mut $crate::row_check::Results<'_>,
            ) {
                use $crate::row_check::{RowCheck, Stage};
                $(
                    if <$check>::STAGE == stage {
                        self.$field.settle(context, swept, &mut sums.$field, to);
                    }
                )+
                $(
                    if <$check>::STAGE == stage && stage == Stage::Reckon {
                        self.$field = <$check>::default();
                    }
                )+
            }

            /// What a finding of the sweep amounts to when all rows were seen; `None` if it is no proof.
            pub(crate) fn proven(
                &self,
                context: &$crate::context::Context<'_>,
                sums: &$sums,
                finding: $crate::finding::Finding,
                coverage: &mut $crate::coverage::Coverage,
            ) -> Option<$crate::finding::Finding> {
                use $crate::row_check::RowCheck;
                $(let finding = self.$field.proven(context, &sums.$field, finding, coverage)?;)+
                Some(finding)
            }
        }

        impl $crate::row_check::RowSums for $sums {
            fn merge(&mut self, other: Self) {
                $(self.$field.merge(other.$field);)+
            }

            fn facts(&self) -> impl std::fmt::Debug + '_ {
                ($((stringify!($field), self.$field.facts()),)+)
            }
        }

        impl $crate::row_check::RowChecks for $name {
            type Sums = $sums;
            type Scratch = $scratch;
            type Handled = $handled;

            fn sums(&self, units: usize) -> $sums {
                use $crate::row_check::RowCheck;
                $sums { $($field: self.$field.sums(units),)+ }
            }

            #[inline]
            fn wanted(&self, unit: $crate::units::UnitIndex) -> u32 {
                self.wanted.get(unit as usize).copied().unwrap_or_default()
            }

            #[inline]
            fn page(
                &self,
                context: &$crate::context::Context<'_>,
                page: &$crate::row_check::RowPage<'_>,
                wanted: u32,
                (sums, scratch): (&mut $sums, &mut $scratch),
            ) -> ($handled, bool) {
                use $crate::row_check::{Handled, RowCheck};
                let (mut wanted, mut is_done) = (wanted, true);
                $(
                    let $field = match wanted & 1 {
                        0 => Handled::All,
                        _ => self.$field.page(context, page, &mut sums.$field, &mut scratch.$field),
                    };
                    is_done &= matches!($field, Handled::All);
                    wanted >>= 1;
                )+
                let _ = wanted;
                ($handled { $($field,)+ }, is_done)
            }

            #[inline]
            fn row(
                &self,
                context: &$crate::context::Context<'_>,
                row: &$crate::row_check::Row<'_>,
                (wanted, handled): (u32, Option<&$handled>),
                (sums, scratch): (&mut $sums, &mut $scratch),
                findings: &mut Vec<$crate::finding::Finding>,
            ) {
                use $crate::row_check::RowCheck;
                let mut wanted = wanted;
                $(
                    if wanted & 1 != 0
                        && let Some(rest) = handled.map_or(Some(Default::default()), |handled| handled.$field.rest())
                    {
                        let local = (&mut sums.$field, &mut scratch.$field);
                        self.$field.row(context, row, rest, local, findings);
                    }
                    wanted >>= 1;
                )+
                let _ = wanted;
            }

            fn text_page(
                &self,
                context: &$crate::context::Context<'_>,
                page: &$crate::row_check::TextPage<'_>,
                sums: &mut $sums,
                findings: &mut Vec<$crate::finding::Finding>,
            ) {
                use $crate::row_check::RowCheck;
                $(self.$field.text_page(context, page, &mut sums.$field, findings);)+
            }
        }
    };
}

pub(crate) use row_checks;

#[cfg(test)]
mod tests;
