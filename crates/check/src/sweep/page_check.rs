//! The interface between the sweep and the checks of pages. A page check examines a page and its place among the other
//! pages, but not its rows.
//!
//! Each page check is a type that implements [`PageCheck`] and is listed in the module `checks`.

use catalog::Database;
use findings::Finding;
use format::{Page, PageId};
use sums::CheckSums;

use crate::basis::ledger::FindingCollector;
use crate::basis::meaning::Meaning;
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::{Unit, UnitIndex};
use crate::page::audit::PageContent;
use crate::page::page_records::PageRecords;
use crate::sweep::context::Context;

/// A page that passed its audit.
pub(crate) struct SoundPage<'p> {
    pub(crate) index: UnitIndex,
    /// The unit that the page belongs to.
    pub(crate) unit: &'p Unit,
    pub(crate) id: PageId,
    pub(crate) page: Page<'p>,
    pub(crate) content: &'p PageContent,
    pub(crate) records: &'p PageRecords,
}

/// A check of pages. A value of a type that implements this trait is the plan of the check; its default value is the
/// plan for a run that does not make the check.
pub(crate) trait PageCheck: Default + Sync {
    /// The sums that each thread adds up.
    type Sums: CheckSums;
    /// Buffers of a thread, reused from page to page.
    type Scratch: Default;

    /// The maximum number of bytes that a thread keeps, not counting the sums per unit and the data that
    /// [`Self::bound`] writes out.
    fn bytes_per_thread(_database: &Database) -> u64 {
        0
    }

    /// Empty sums for this number of units.
    fn sums(&self, units: usize) -> Self::Sums;

    /// Whether the check needs the pages of this unit. Called once per unit, before the sweep.
    fn wants(&self, context: &Context<'_>, unit: &Unit) -> bool;

    /// Adds everything by which the check judges pages, apart from the units and their keys.
    fn meaning(&self, to: &mut Meaning<'_>);

    /// Checks a sound page.
    fn page(
        &self,
        context: &Context<'_>,
        page: &SoundPage<'_>,
        local: (&mut Self::Sums, &mut Self::Scratch),
        findings: &mut Vec<Finding>,
    );

    /// Writes the data of a thread to temporary files if the data exceeds the memory that the thread may use. Called
    /// between pages.
    fn bound(&self, _context: &Context<'_>, _sums: &mut Self::Sums) {}

    /// Makes the comparisons for which the sweep of one batch is enough, and frees the memory that these comparisons
    /// needed.
    fn end_batch(&self, _: &Context<'_>, _: &mut Tallies, _: &mut Self::Sums, _: &mut FindingCollector) {}

    /// Makes the comparisons that need only one part of a divided run. Called before the sums of the part are written.
    fn end_part(&self, _: &Context<'_>, _: &mut Self::Sums, _: &mut FindingCollector) {}

    /// Compares the sums after the sweep. If the sums of a unit differ, reads the pages of this unit a second time.
    /// `judged` lists, by ascending ordinal, the units for which every page was either seen or found damaged.
    fn settle(
        &self,
        context: &Context<'_>,
        judged: &[UnitIndex],
        swept: &mut Tallies,
        sums: &mut Self::Sums,
        to: &mut Results<'_>,
    );
}
