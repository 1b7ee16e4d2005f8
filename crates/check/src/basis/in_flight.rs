//! Pages in flight: pages of a backup that the log in the backup still changes, and pages of a database that are newer
//! than its snapshot. A finding that one of these pages could explain is no proof.

use std::collections::BTreeSet;

use catalog::Database;
use findings::Finding;
use findings::registry::{self, Check};
use format::allocation::FixedPage;
use format::{Page, PageId, PageType};
use source::PageSource;

/// The checks that verify the checksum or the torn bits of a page. They do not depend on the catalog.
pub(crate) const OF_CHECKSUMS: [&Check; 3] =
    [&registry::PAGE_IO, &registry::PAGE_IO_NO_METADATA, &registry::IAM_UNREADABLE];

/// The pages in flight, and the objects that own them. A page of a backup is in flight if a restore would still change
/// the page by redo or undo of the log in the backup. A page of a snapshot is in flight if the
/// snapshot takes it from its base although the page there is newer than the snapshot. A page of data files that are read
/// with their log is in flight if recovery could not recover it, or if its recovery is in doubt.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    pages: BTreeSet<PageId>,
    /// Damaged pages in flight that the log does not rewrite as a whole.
    damaged: BTreeSet<PageId>,
    objects: BTreeSet<i32>,
    /// Whether any finding may depend on a page in flight. This is so if one of these pages is an allocation map,
    /// belongs to a base table, or has an unknown owner.
    everything: bool,
}

impl InFlight {
    /// The pages in flight of a source; `None` if the source does not list its pages in flight.
    pub(crate) fn of(source: &dyn PageSource, database: &Database) -> Option<Self> {
        let mut this = Self { damaged: source.damaged_in_flight().iter().copied().collect(), ..Self::default() };
        for &page in source.in_flight()? {
            this.pages.insert(page);
            // No check compares the content of these pages at fixed addresses with other pages.
            let is_apart = matches!(
                FixedPage::at(page),
                Some(FixedPage::FileHeader | FixedPage::Boot | FixedPage::DiffMap | FixedPage::MlMap)
            );
            if is_apart {
                continue;
            }
            let owner = source.read_page(page).and_then(|bytes| {
                let header = Page::new(&bytes).header();
                // The survey compares the content of an IAM page with the pages of other units. So any finding may
                // depend on an IAM page in flight.
                let unit = Some(header.alloc_unit()).filter(|_| header.kind() != Some(PageType::Iam))?;
                let unit = database.units.get(database.unit_index(unit)?)?;
                Some(database.rowset_of(unit)?.object_id)
            });
            match owner.filter(|&object| FixedPage::at(page).is_none() && !database.is_system_table(object)) {
                Some(object) => drop(this.objects.insert(object)),
                None => this.everything = true,
            }
        }
        // A list of this length may have been cut off, so it may lack pages.
        this.everything |= source.snapshot().is_some() && this.pages.len() >= source::MOST_NEWER;
        Some(this)
    }

    /// Whether no page is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Whether applying the log may remove `finding`; `depends` says whether the finding is based on several places.
    pub(crate) fn touches(&self, finding: &Finding, depends: bool) -> bool {
        // The comparison with the log already considers which log records recovery applies. Findings about the
        // container do not depend on pages.
        if finding.check.is_apart_from_recovery() {
            return false;
        }
        let is_on = |page: Option<PageId>| page.is_some_and(|page| self.pages.contains(&page));
        let is_damaged = finding.page.is_some_and(|page| self.damaged.contains(&page));
        // No log record explains why a damaged page contradicts itself, so such a finding does not depend on the log.
        let is_by_itself = is_damaged && !depends && finding.ref_page.is_none();
        if !is_by_itself && (is_on(finding.page) || is_on(finding.ref_page)) {
            return true;
        }
        if self.everything {
            // Any check that uses other pages may depend on a page in flight, for example for the layout of rows. Only
            // the checks of a page's checksum or torn bits use no other page.
            return !OF_CHECKSUMS.contains(&finding.check);
        }
        let is_apart = finding.object_id().is_some_and(|object| !self.objects.contains(&object));
        depends && !self.pages.is_empty() && !is_apart
    }
}
