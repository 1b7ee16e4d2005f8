//! Survey: determines the owner of each extent and page. It reads only a few of every thousand pages: file headers, the
//! boot page, GAM, SGAM, DIFF, ML and PFS pages, and IAM chains.

mod ahead;
mod claims;
mod extents;
mod iam;
mod maps;
mod page_set;
mod stretch;

use std::collections::BTreeSet;

use catalog::Database;
use findings::registry::limits;
use findings::{Coverage, FileTotals};
use format::allocation::EXTENT_PAGES;
use format::{PageHeader, PageId};
use source::PageSource;
use sums::spill::{Shelf, Sorter};

use crate::basis::ledger::FindingCollector;
use crate::basis::units::{Unit, UnitIndex, Units};

use claims::Claim;
use iam::Chains;
pub(crate) use iam::missing_files;
pub(crate) use maps::{Allocation, FileMap};
pub(crate) use page_set::PageSet;

/// The results of the survey.
pub(crate) struct Survey {
    /// The maps of the files, by ascending file ID.
    pub(crate) files: Vec<FileMap>,
    /// The number of IAM pages of each unit, indexed by ordinal.
    pub(crate) iam_pages: Vec<u64>,
    /// Units whose IAM chain cannot be followed to its end, so that not all of their pages are known.
    pub(crate) broken_chains: BTreeSet<UnitIndex>,
    /// Units that have pages in files that were not given.
    pub(crate) partial_units: BTreeSet<UnitIndex>,
    /// Units that claim extents that other units claim too.
    pub(crate) sharing: BTreeSet<UnitIndex>,
    /// The interval that each IAM page maps.
    intervals: claims::Intervals,
    /// Allocation pages that the operating system could not read: their content is unknown.
    pub(crate) unread: Vec<PageId>,
    /// The totals of each file.
    pub(crate) totals: Vec<FileTotals>,
}

/// Checks only the pages at fixed addresses. The returned maps contain the content of the allocation pages that could
/// be read. With a `shelf`, the maps are kept there.
pub(crate) fn fixed_pages(
    source: &dyn PageSource,
    shelf: Option<&Shelf>,
    units: &Units,
    findings: &mut FindingCollector,
    coverage: &mut Coverage,
) -> Vec<FileMap> {
    source.files().iter().map(|file| maps::load(source, (file, shelf), units, findings, coverage)).collect()
}

impl Survey {
    /// The map of a file.
    pub(crate) fn file(&self, file_id: u16) -> Option<&FileMap> {
        // The sweep calls this several times for each page, and a database may have hundreds of files.
        let at = self.files.binary_search_by_key(&file_id, |file| file.file_id).ok()?;
        self.files.get(at)
    }

    /// The allocation status of a page according to PFS.
    pub(crate) fn allocation(&self, page: PageId) -> Allocation {
        self.file(page.file).map_or(Allocation::Free, |file| file.allocation(page.page))
    }

    /// Returns whether a page was looked up that is outside the range of these maps, or whose maps could not be read back
    /// from a temporary file.
    pub(crate) fn has_missed(&self) -> bool {
        self.files.iter().any(FileMap::has_missed)
    }

    /// Whether several units claim the extent of `page`.
    pub(crate) fn is_shared(&self, page: PageId) -> bool {
        self.file(page.file).is_some_and(|file| file.is_shared(page.page / EXTENT_PAGES))
    }

    /// Determines which unit owns a page if several units claim the extent of the page. If the page header names one of
    /// these units, the result is this unit. If the header names another unit, or if at most one unit claims the
    /// extent, the result is `Some(None)`. If an IAM page that is needed for the decision could not be read, the result
    /// is `None`.
    pub(crate) fn claimant(
        &self,
        (source, units): (&dyn PageSource, &Units),
        page: PageId,
        header: &PageHeader,
    ) -> Option<Option<UnitIndex>> {
        if !self.is_shared(page) {
            return Some(None);
        }
        for unit in units.named_by(header) {
            if self.intervals.claims(source, unit, page)? {
                return Some(Some(unit));
            }
        }
        Some(None)
    }

    /// Returns whether a unit may have pages. A unit without IAM pages has no pages.
    pub(crate) fn has_pages(&self, unit: UnitIndex) -> bool {
        self.iam_pages.get(unit as usize).is_some_and(|pages| *pages > 0)
    }

    /// The units that may have pages, with their ordinals.
    pub(crate) fn units_with_pages<'u>(&self, units: &'u Units) -> impl Iterator<Item = (UnitIndex, &'u Unit)> {
        (0..).zip(units.list()).filter(|(at, _)| self.has_pages(*at))
    }

    /// The unit whose IAM pages claim `page`.
    pub(crate) fn owner(&self, page: PageId) -> Option<UnitIndex> {
        self.file(page.file)?.owner(page.page)
    }
}

/// The allocation structures after they were read, before they are compared with each other.
pub(crate) struct Maps {
    files: Vec<FileMap>,
    chains: Chains,
    claims: Sorter<Claim>,
}

impl Maps {
    /// Reads the allocation structures. With a `shelf`, the maps are kept there.
    pub(crate) fn read(
        (source, shelf): (&dyn PageSource, Option<&Shelf>),
        database: &Database,
        units: &mut Units,
        findings: &mut FindingCollector,
        coverage: &mut Coverage,
    ) -> Self {
        let mut files = fixed_pages(source, shelf, units, findings, coverage);
        let (chains, claims) = iam::follow(source, database, units, &mut files, findings, coverage);
        for file in &mut files {
            if let Some(page) = file.unread_config().filter(|page| !chains.unread.contains(page)) {
                file.unread.push(page);
                coverage.note(&limits::ALLOCATION_UNREADABLE, format!("page {page}"), 1);
            }
        }
        Self { files, chains, claims }
    }

    /// Compares the allocation structures with each other. The comparison examines the map entries of every page.
    pub(crate) fn compare(
        self,
        source: &dyn PageSource,
        database: &Database,
        units: &Units,
        findings: &mut FindingCollector,
        coverage: &mut Coverage,
    ) -> Survey {
        let Self { files, chains, claims } = self;
        let totals = extents::check((source, database), &files, (&chains, claims), units, findings, coverage);
        Survey { totals, ..Self::owners(files, chains, units) }
    }

    /// Returns the survey with the owners of pages but without the totals of files. A process that only sweeps does not
    /// need the totals.
    pub(crate) fn uncompared(self, units: &Units) -> Survey {
        Self::owners(self.files, self.chains, units)
    }

    fn owners(files: Vec<FileMap>, chains: Chains, units: &Units) -> Survey {
        let mut iam_pages = vec![0; units.list().len()];
        for page in &chains.pages {
            if let Some(count) = iam_pages.get_mut(page.unit as usize) {
                *count += 1;
            }
        }
        let unread = files.iter().flat_map(|file| &file.unread).chain(&chains.unread).copied().collect();
        Survey {
            files,
            iam_pages,
            partial_units: chains.partial,
            broken_chains: chains.broken.into_iter().collect(),
            sharing: chains.sharing,
            intervals: chains.intervals,
            unread,
            totals: Vec::new(),
        }
    }
}

/// Reads the allocation structures and compares them with each other. With a `shelf`, the maps are kept there.
pub(crate) fn survey(
    (source, shelf): (&dyn PageSource, Option<&Shelf>),
    database: &Database,
    units: &mut Units,
    findings: &mut FindingCollector,
    coverage: &mut Coverage,
) -> Survey {
    Maps::read((source, shelf), database, units, findings, coverage)
        .compare(source, database, units, findings, coverage)
}

#[cfg(test)]
mod tests;
