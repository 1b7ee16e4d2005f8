//! Pages of a backup that its own log still changes, and pages that are newer than their snapshot: a finding that such a page could
//! explain is no proof.

use std::collections::BTreeSet;

use catalog::Database;
use format::allocation::FixedPage;
use format::{Page, PageId, PageType};
use source::PageSource;

use crate::finding::Finding;
use crate::registry::{self, Phase};

/// What the pages in flight touch.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    pages: BTreeSet<PageId>,
    /// Those that are damaged, and that the log does not make anew.
    damaged: BTreeSet<PageId>,
    objects: BTreeSet<i32>,
    /// Pages of allocation maps, of base tables or of unknown owners: anything may depend on them.
    everything: bool,
}

impl InFlight {
    /// `None` for a source that does not say.
    pub(crate) fn of(source: &dyn PageSource, database: &Database) -> Option<Self> {
        let mut this = Self { damaged: source.damaged_in_flight().iter().copied().collect(), ..Self::default() };
        for &page in source.in_flight()? {
            this.pages.insert(page);
            // What these hold is compared with nothing else.
            let is_apart = matches!(
                FixedPage::at(page),
                Some(FixedPage::FileHeader | FixedPage::Boot | FixedPage::DiffMap | FixedPage::MlMap)
            );
            if is_apart {
                continue;
            }
            let owner = source.read_page(page).and_then(|bytes| {
                let header = Page::new(&bytes).header();
                // What an IAM page says is compared with the pages of others.
                let unit = Some(header.alloc_unit()).filter(|_| header.kind() != Some(PageType::Iam))?;
                let unit = database.units.get(database.unit_index(unit)?)?;
                Some(database.rowset_of(unit)?.object_id)
            });
            match owner.filter(|&object| FixedPage::at(page).is_none() && !database.is_system_table(object)) {
                Some(object) => drop(this.objects.insert(object)),
                None => this.everything = true,
            }
        }
        // The rest is not listed.
        this.everything |= source.snapshot().is_some() && this.pages.len() >= source::MOST_NEWER;
        Some(this)
    }

    /// Whether no page is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Whether the log may settle `finding`; `depends` says whether it relates several places.
    pub(crate) fn touches(&self, finding: &Finding, depends: bool) -> bool {
        // The audit knows which records recovery applies, and rests on others.
        if matches!(finding.check.phase, Phase::Container | Phase::Log) {
            return false;
        }
        let is_on = |page: Option<PageId>| page.is_some_and(|page| self.pages.contains(&page));
        let is_damaged = finding.page.is_some_and(|page| self.damaged.contains(&page));
        // What a damaged page says against itself no record explains.
        let is_by_itself = is_damaged && !depends && finding.ref_page.is_none();
        if !is_by_itself && (is_on(finding.page) || is_on(finding.ref_page)) {
            return true;
        }
        if self.everything {
            // How rows are laid out is read from pages in flight, perhaps; a checksum depends on nothing.
            return *finding.check != registry::PAGE_IO;
        }
        let is_apart = finding.object_id().is_some_and(|object| !self.objects.contains(&object));
        depends && !self.pages.is_empty() && !is_apart
    }
}
