//! The interface between the sweep and the checks of pages: these look at a page and its place among others, not at its
//! rows.
//!
//! A check is a type that implements [`PageCheck`], and a line in `checks`.

use catalog::Database;
use format::{Page, PageId};

use crate::audit::PageContent;
use crate::context::Context;
use crate::finding::Finding;
use crate::ledger::FindingCollector;
use crate::outcome::Results;
use crate::page_records::PageRecords;
use crate::sums::CheckSums;
use crate::tallies::Tallies;
use crate::units::{Unit, UnitIndex};

/// A page that passed its audit.
pub(crate) struct SoundPage<'p> {
    pub(crate) index: UnitIndex,
    /// The unit that it belongs to.
    pub(crate) unit: &'p Unit,
    pub(crate) id: PageId,
    pub(crate) page: Page<'p>,
    pub(crate) content: &'p PageContent,
    pub(crate) records: &'p PageRecords,
}

/// A check of pages. The type is its plan; the default plan belongs to a run that does not make the check.
pub(crate) trait PageCheck: Default + Sync {
    /// The sums that each thread adds up.
    type Sums: CheckSums;
    /// Scratch space of a thread, kept from page to page.
    type Scratch: Default;

    /// The most bytes that a thread keeps, besides sums per unit and data that [`Self::bound`] writes out.
    fn bytes_per_thread(_database: &Database) -> u64 {
        0
    }

    /// Sums without any page, for this number of units.
    fn sums(&self, units: usize) -> Self::Sums;

    /// Whether the check wants the pages of this unit. Called once per unit, before the sweep.
    fn wants(&self, context: &Context<'_>, unit: &Unit) -> bool;

    /// Checks a sound page.
    fn page(
        &self,
        context: &Context<'_>,
        page: &SoundPage<'_>,
        local: (&mut Self::Sums, &mut Self::Scratch),
        findings: &mut Vec<Finding>,
    );

    /// Writes out data that exceeds a thread's memory. Called between pages.
    fn bound(&self, _context: &Context<'_>, _sums: &mut Self::Sums) {}

    /// Makes the comparisons that cannot wait for other batches and frees their memory. Called when the sweep of a
    /// batch has ended.
    fn end_batch(&self, _: &Context<'_>, _: &mut Tallies, _: &mut Self::Sums, _: &mut FindingCollector) {}

    /// Compares the facts that one part of the database shows by itself, before its sums are written.
    fn end_part(&self, _: &Context<'_>, _: &mut Self::Sums, _: &mut FindingCollector) {}

    /// Compares the sums after the sweep, and takes a second look where they differ. `judged` lists the units all of
    /// whose pages were seen or are known to be damaged, by ascending ordinal.
    fn settle(
        &self,
        context: &Context<'_>,
        judged: &[UnitIndex],
        swept: &mut Tallies,
        sums: &mut Self::Sums,
        to: &mut Results<'_>,
    );
}
