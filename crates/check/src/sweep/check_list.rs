//! The interface through which the sweep calls the checks of pages and of rows: a trait for a list of checks, and the
//! macro that makes such a list. Calls are resolved at compile time.

use std::io::{Read, Write};

use catalog::Database;
use findings::Finding;
use sums::names::Names;
use sums::wire::{Input, Output, SumsError, Wire};
use sums::{CheckSums, Merge};

use crate::basis::meaning::Meaning;
use crate::basis::tallies::Tallies;
use crate::basis::units::UnitIndex;
use crate::sweep::context::Context;
use crate::sweep::page_check::SoundPage;
use crate::sweep::row_check::{Row, RowPage, TextPage};

/// The checks that want the pages of a unit and the checks that want its rows, each as a bit mask.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Wanted {
    pub(crate) pages: u32,
    pub(crate) rows: u32,
}

/// The result of a sweep: the tallies of pages and the sums of the checks.
pub(crate) struct Swept<S> {
    pub(crate) tallies: Tallies,
    pub(crate) sums: S,
}

impl<S: CheckSums> Swept<S> {
    /// An empty result.
    pub(crate) fn new(checks: &impl CheckList<Sums = S>, units: usize) -> Self {
        Self { tallies: Tallies::new(units), sums: checks.sums(units) }
    }

    /// Writes the result.
    pub(crate) fn write(&self, context: &Context<'_>, to: &mut dyn Write) -> Result<(), SumsError> {
        let mut to = Output::new(&context.hash, &[], context.space, to);
        self.put(&mut to)?;
        to.finish()
    }

    /// Reads the result that another run over the same database, with the same seed, has written.
    pub(crate) fn read(context: &Context<'_>, from: &mut dyn Read) -> Result<Self, SumsError> {
        let mut from = Input::new(&context.hash, &[], (context.space, context.units.list().len()), from);
        let this = Self::take(&mut from)?;
        from.finish()?;
        Ok(this)
    }

    /// Appends the result to `to`, which may already contain other output.
    pub(crate) fn put(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        self.tallies.write(to)?;
        self.sums.write(to)
    }

    /// Reads a result that [`Self::put`] wrote.
    pub(crate) fn take(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let (tallies, sums) = Wire::read(from)?;
        Ok(Self { tallies, sums })
    }

    /// Sorts the lists whose order depends on the threads, and drops incomplete lists. Afterwards, the same pages
    /// always give the same bytes, with any number of threads.
    pub(crate) fn put_in_order(&mut self, context: &Context<'_>) {
        self.tallies.put_in_order();
        self.sums.put_in_order(context.space);
    }

    /// Adds the result of another thread or batch.
    pub(crate) fn merge(&mut self, other: Self) {
        self.tallies.merge(other.tallies);
        self.sums.merge(other.sums);
    }
}

/// A list of checks. The macro [`check_list!`](crate::sweep::check_list::check_list) makes it.
pub(crate) trait CheckList: Sync {
    /// The sums of all checks.
    type Sums: CheckSums;
    /// The scratch space that a thread needs for all checks.
    type Scratch: Default;
    /// For each check, which rows of a page it has handled.
    type Handled: Copy;

    /// The most bytes that the checks keep per thread, not counting the sums per unit.
    fn bytes_per_thread(database: &Database) -> u64;

    /// Empty sums, for this number of units.
    fn sums(&self, units: usize) -> Self::Sums;

    /// The checks that want the pages and the checks that want the rows of a unit.
    fn wanted(&self, unit: UnitIndex) -> Wanted;

    /// The names of the units and of the plans of all checks.
    fn names(&self, context: &Context<'_>) -> Names;

    /// Adds everything by which the checks judge the pages and rows of a unit.
    fn meaning(&self, unit: UnitIndex, to: &mut Meaning<'_>);

    /// Passes a sound page to the checks of pages in the bit mask `wanted`.
    fn page(
        &self,
        context: &Context<'_>,
        page: &SoundPage<'_>,
        wanted: u32,
        local: (&mut Self::Sums, &mut Self::Scratch),
        findings: &mut Vec<Finding>,
    );

    /// Lets each check write its sums to a file if they exceed the memory of a thread.
    fn bound(&self, context: &Context<'_>, sums: &mut Self::Sums);

    /// Passes the rows of a page to the checks of rows. Returns what each check has handled, and two flags. The first
    /// flag says whether every check that wants the rows has handled all rows without a complex column. The second flag
    /// says whether every such check has handled all rows with a complex column.
    fn rows(
        &self,
        context: &Context<'_>,
        page: &RowPage<'_>,
        wanted: u32,
        local: (&mut Self::Sums, &mut Self::Scratch),
    ) -> (Self::Handled, [bool; 2]);

    /// Passes a row to the checks that want it. The row may be one of the rows of a page that were passed together
    /// before. In this case, `wanted` also says which rows each check handled then, and whether this row has a complex
    /// column.
    fn row(
        &self,
        context: &Context<'_>,
        row: &Row<'_>,
        wanted: (u32, Option<(&Self::Handled, bool)>),
        local: (&mut Self::Sums, &mut Self::Scratch),
        findings: &mut Vec<Finding>,
    );

    /// Passes a page of off-row values to the checks of rows.
    fn text_page(&self, context: &Context<'_>, page: &TextPage<'_>, sums: &mut Self::Sums, findings: &mut Vec<Finding>);
}

/// Makes a list of checks: structs for their plans, their sums, their scratch space, and the rows of a page that each
/// check has handled.
macro_rules! check_list {
    ($(#[$doc:meta])* $name:ident, $sums:ident, $scratch:ident, $handled:ident {
        pages { $($(#[$page_doc:meta])* $of_pages:ident: $page_check:ty,)* }
        rows { $($(#[$row_doc:meta])* $of_rows:ident: $row_check:ty,)* }
    }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(crate) struct $name {
            $($(#[$page_doc])* pub(crate) $of_pages: $page_check,)*
            $($(#[$row_doc])* pub(crate) $of_rows: $row_check,)*
            /// For each unit, in the order of the units: the checks that need its pages, and the checks that need its
            /// rows.
            wanted: Vec<$crate::sweep::check_list::Wanted>,
        }

        /// The sums of all checks.
        pub(crate) struct $sums {
            $(pub(crate) $of_pages: <$page_check as $crate::sweep::page_check::PageCheck>::Sums,)*
            $(pub(crate) $of_rows: <$row_check as $crate::sweep::row_check::RowCheck>::Sums,)*
        }

        /// The scratch space that a thread needs for all checks.
        #[derive(Default)]
        pub(crate) struct $scratch {
            $($of_pages: <$page_check as $crate::sweep::page_check::PageCheck>::Scratch,)*
            $($of_rows: <$row_check as $crate::sweep::row_check::RowCheck>::Scratch,)*
        }

        /// For each check, which rows of a page it has handled.
        #[derive(Clone, Copy)]
        pub(crate) struct $handled {
            $($of_rows: $crate::sweep::row_check::Handled<<$row_check as $crate::sweep::row_check::RowCheck>::Rest>,)*
        }

        impl $name {
            /// Asks each check which units it wants, and stores the answers in `wanted`.
            pub(crate) fn ask(mut self, context: &$crate::sweep::context::Context<'_>) -> Self {
                use $crate::sweep::page_check::PageCheck;
                use $crate::sweep::row_check::RowCheck;
                let wanted = (0..).zip(context.units.list()).map(|(index, unit)| {
                    let of_pages: &[bool] = &[$(self.$of_pages.wants(context, unit),)*];
                    let of_rows: &[bool] = &[$(self.$of_rows.wants(context, index),)*];
                    let _: (&$crate::basis::units::Unit, $crate::basis::units::UnitIndex) = (unit, index);
                    let bits = |all: &[bool]| all.iter().rev().fold(0, |bits, wants| bits << 1 | u32::from(*wants));
                    $crate::sweep::check_list::Wanted { pages: bits(of_pages), rows: bits(of_rows) }
                });
                self.wanted = wanted.collect();
                self
            }

            /// Lets the checks of pages make the comparisons that must be made before the next batch.
            pub(crate) fn end_batch(
                &self,
                context: &$crate::sweep::context::Context<'_>,
                swept: &mut $crate::sweep::check_list::Swept<$sums>,
                findings: &mut $crate::basis::ledger::FindingCollector,
            ) {
                let _ = (context, &swept.tallies, &findings);
                $($crate::sweep::page_check::PageCheck::end_batch(
                    &self.$of_pages, context, &mut swept.tallies, &mut swept.sums.$of_pages, findings,
                );)*
            }

            /// Lets the checks of pages compare the facts of one part of a divided run before the part is written.
            #[allow(dead_code, reason = "a list of a test is not swept in parts")]
            pub(crate) fn end_part(
                &self,
                context: &$crate::sweep::context::Context<'_>,
                swept: &mut $crate::sweep::check_list::Swept<$sums>,
                findings: &mut $crate::basis::ledger::FindingCollector,
            ) {
                let _ = (context, &swept.tallies, &findings);
                $($crate::sweep::page_check::PageCheck::end_part(&self.$of_pages, context, &mut swept.sums.$of_pages, findings);)*
            }

            /// Lets the checks of pages compare their sums after the sweep. `judged` lists the units that can be
            /// judged: each page of such a unit was either seen in the sweep or is known to be damaged.
            pub(crate) fn settle_pages(
                &self,
                context: &$crate::sweep::context::Context<'_>,
                judged: &[$crate::basis::units::UnitIndex],
                swept: &mut $crate::sweep::check_list::Swept<$sums>,
                to: &mut $crate::basis::outcome::Results<'_>,
            ) {
                let _ = (context, judged, &swept.tallies, &to);
                $($crate::sweep::page_check::PageCheck::settle(
                    &self.$of_pages, context, judged, &mut swept.tallies, &mut swept.sums.$of_pages, to,
                );)*
            }

            /// Lets the checks of rows that belong to `stage` evaluate their sums, and drops the plans that no later
            /// stage needs.
            pub(crate) fn settle(
                &mut self,
                stage: $crate::sweep::row_check::Stage,
                context: &$crate::sweep::context::Context<'_>,
                swept: &mut $crate::sweep::check_list::Swept<$sums>,
                to: &mut $crate::basis::outcome::Results<'_>,
            ) {
                use $crate::sweep::row_check::{RowCheck, Stage};
                $(
                    if <$row_check>::STAGE == stage {
                        self.$of_rows.settle(context, &mut swept.tallies, &mut swept.sums.$of_rows, to);
                    }
                )*
                $(
                    if <$row_check>::STAGE == stage && stage == Stage::Reckon {
                        self.$of_rows = <$row_check>::default();
                    }
                )*
            }

            /// Decides, after all rows were seen, whether a finding of the sweep is proven; `None` if it is not.
            pub(crate) fn proven(
                &self,
                context: &$crate::sweep::context::Context<'_>,
                sums: &$sums,
                finding: findings::Finding,
                coverage: &mut findings::Coverage,
            ) -> Option<findings::Finding> {
                use $crate::sweep::row_check::RowCheck;
                $(let finding = self.$of_rows.proven(context, &sums.$of_rows, finding, coverage)?;)*
                Some(finding)
            }
        }

        impl sums::wire::Wire for $sums {
            fn write(&self, to: &mut sums::wire::Output<'_>) -> Result<(), sums::wire::SumsError> {
                let Self { $($of_pages,)* $($of_rows,)* } = self;
                let _ = &to;
                $(sums::wire::Wire::write($of_pages, to)?;)*
                $(sums::wire::Wire::write($of_rows, to)?;)*
                Ok(())
            }

            fn read(from: &mut sums::wire::Input<'_>) -> Result<Self, sums::wire::SumsError> {
                let _ = &from;
                Ok(Self {
                    $($of_pages: { from.of_check(stringify!($of_pages)); sums::wire::Wire::read(from)? },)*
                    $($of_rows: { from.of_check(stringify!($of_rows)); sums::wire::Wire::read(from)? },)*
                })
            }
        }

        impl sums::Merge for $sums {
            fn merge(&mut self, other: Self) {
                let Self { $($of_pages,)* $($of_rows,)* } = other;
                $(sums::Merge::merge(&mut self.$of_pages, $of_pages);)*
                $(sums::Merge::merge(&mut self.$of_rows, $of_rows);)*
            }
        }

        impl sums::CheckSums for $sums {
            fn put_in_order(&mut self, space: &sums::spill::TempStore) {
                let _ = space;
                $(sums::CheckSums::put_in_order(&mut self.$of_pages, space);)*
                $(sums::CheckSums::put_in_order(&mut self.$of_rows, space);)*
            }

            fn gather(&mut self, space: &sums::spill::TempStore) {
                let _ = space;
                $(sums::CheckSums::gather(&mut self.$of_pages, space);)*
                $(sums::CheckSums::gather(&mut self.$of_rows, space);)*
            }

            fn facts(&self, space: &sums::spill::TempStore) -> impl std::fmt::Debug + '_ {
                (
                    ($((stringify!($of_pages), self.$of_pages.facts(space)),)*),
                    ($((stringify!($of_rows), self.$of_rows.facts(space)),)*),
                )
            }
        }

        impl $crate::sweep::check_list::CheckList for $name {
            type Sums = $sums;
            type Scratch = $scratch;
            type Handled = $handled;

            fn bytes_per_thread(database: &catalog::Database) -> u64 {
                let of_pages: &[u64] =
                    &[$(<$page_check as $crate::sweep::page_check::PageCheck>::bytes_per_thread(database),)*];
                let of_rows: &[u64] = &[$(<$row_check as $crate::sweep::row_check::RowCheck>::bytes_per_thread(database),)*];
                of_pages.iter().chain(of_rows).sum()
            }

            fn sums(&self, units: usize) -> $sums {
                use $crate::sweep::page_check::PageCheck;
                use $crate::sweep::row_check::RowCheck;
                $sums { $($of_pages: self.$of_pages.sums(units),)* $($of_rows: self.$of_rows.sums(units),)* }
            }

            #[inline]
            fn wanted(&self, unit: $crate::basis::units::UnitIndex) -> $crate::sweep::check_list::Wanted {
                self.wanted.get(unit as usize).copied().unwrap_or_default()
            }

            fn names(&self, context: &$crate::sweep::context::Context<'_>) -> sums::names::Names {
                use $crate::sweep::row_check::RowCheck;
                let units = context.units.list().iter().map(|unit| sums::names::Name(unit.id.0)).collect();
                let plans = vec![$({
                    let mut names = $crate::basis::meaning::PlanNames::new(&context.hash);
                    self.$of_rows.names(&context.units, &mut names);
                    (stringify!($of_rows).to_owned(), names.into_list())
                },)*];
                sums::names::Names { units, plans }
            }

            fn meaning(&self, unit: $crate::basis::units::UnitIndex, to: &mut $crate::basis::meaning::Meaning<'_>) {
                use $crate::sweep::page_check::PageCheck;
                use $crate::sweep::row_check::RowCheck;
                let _ = (&unit, &to);
                $(to.of_check(stringify!($of_pages)); self.$of_pages.meaning(to);)*
                $(to.of_check(stringify!($of_rows)); self.$of_rows.meaning(unit, to);)*
            }

            #[inline]
            fn page(
                &self,
                context: &$crate::sweep::context::Context<'_>,
                page: &$crate::sweep::page_check::SoundPage<'_>,
                mut wanted: u32,
                (sums, scratch): (&mut $sums, &mut $scratch),
                findings: &mut Vec<findings::Finding>,
            ) {
                use $crate::sweep::page_check::PageCheck;
                $(
                    if wanted & 1 != 0 {
                        let local = (&mut sums.$of_pages, &mut scratch.$of_pages);
                        self.$of_pages.page(context, page, local, findings);
                    }
                    wanted >>= 1;
                )*
                let _ = (context, page, wanted, sums, scratch, findings);
            }

            fn bound(&self, context: &$crate::sweep::context::Context<'_>, sums: &mut $sums) {
                $($crate::sweep::page_check::PageCheck::bound(&self.$of_pages, context, &mut sums.$of_pages);)*
                let _ = (context, sums);
            }

            #[inline]
            fn rows(
                &self,
                context: &$crate::sweep::context::Context<'_>,
                page: &$crate::sweep::row_check::RowPage<'_>,
                mut wanted: u32,
                (sums, scratch): (&mut $sums, &mut $scratch),
            ) -> ($handled, [bool; 2]) {
                use $crate::sweep::row_check::{Done, Handled, RowCheck};
                let mut are_done = [true; 2];
                $(
                    let $of_rows = match wanted & 1 {
                        0 => Handled::ALL,
                        _ => self.$of_rows.page(context, page, &mut sums.$of_rows, &mut scratch.$of_rows),
                    };
                    for (is_done, done) in are_done.iter_mut().zip([&$of_rows.plain, &$of_rows.complex]) {
                        *is_done &= matches!(done, Done::All);
                    }
                    wanted >>= 1;
                )*
                let _ = wanted;
                ($handled { $($of_rows,)* }, are_done)
            }

            #[inline]
            fn row(
                &self,
                context: &$crate::sweep::context::Context<'_>,
                row: &$crate::sweep::row_check::Row<'_>,
                (mut wanted, handled): (u32, Option<(&$handled, bool)>),
                (sums, scratch): (&mut $sums, &mut $scratch),
                findings: &mut Vec<findings::Finding>,
            ) {
                use $crate::sweep::row_check::RowCheck;
                $(
                    if wanted & 1 != 0
                        && let Some(rest) = match handled {
                            Some((handled, is_complex)) => handled.$of_rows.rest(is_complex),
                            None => Some(Default::default()),
                        }
                    {
                        let local = (&mut sums.$of_rows, &mut scratch.$of_rows);
                        self.$of_rows.row(context, row, rest, local, findings);
                    }
                    wanted >>= 1;
                )*
                let _ = wanted;
            }

            fn text_page(
                &self,
                context: &$crate::sweep::context::Context<'_>,
                page: &$crate::sweep::row_check::TextPage<'_>,
                sums: &mut $sums,
                findings: &mut Vec<findings::Finding>,
            ) {
                use $crate::sweep::row_check::RowCheck;
                $(self.$of_rows.text_page(context, page, &mut sums.$of_rows, findings);)*
            }
        }
    };
}

pub(crate) use check_list;

#[cfg(test)]
mod tests;
