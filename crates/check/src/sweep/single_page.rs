//! Audits one page outside a run, to decide whether a restore may use the copy of a page from a backup.

use catalog::Database;
use findings::{Finding, registry};
use format::protection::undo_torn_bits;
use format::{Page, PageBytes, PageId, PageType};

use crate::basis::units::Units;
use crate::page::audit::{AuditRules, identity, identity_finding, named_owner};
use crate::page::expanded;
use crate::page::page_records::PageRecords;
use crate::sweep::context::VERSION_2019;

/// Audits single pages of a database.
pub struct SinglePages<'a> {
    database: &'a Database,
    units: Units,
    records: PageRecords,
}

impl<'a> SinglePages<'a> {
    /// Creates an audit for pages of `database`, or for copies of its pages.
    pub fn new(database: &'a Database) -> Self {
        Self { database, units: Units::of(database), records: PageRecords::default() }
    }

    /// The faults of page `id`; empty if the page is sound. `stored` contains the page as it is on disk. The protection
    /// and the page ID are always checked. If the page belongs to a unit of the catalog, its header, slots and records
    /// are checked too.
    pub fn findings(&mut self, stored: &PageBytes, id: PageId) -> Vec<Finding> {
        let header = Page::new(stored).header();
        if let Some(fault) = identity(stored, id) {
            return vec![identity_finding(&fault, id, header, named_owner(header, &self.units, true))];
        }
        let mut bytes = *stored;
        undo_torn_bits(&mut bytes);
        let page = Page::new(&bytes);
        let is_audited = matches!(
            page.header().kind(),
            Some(PageType::Data | PageType::Index | PageType::TextMix | PageType::TextTree)
        );
        let unit = self.units.named_by(page.header()).next().and_then(|at| self.units.get(at));
        let Some(unit) = unit.filter(|_| is_audited && !page.header().is_encrypted()) else { return Vec::new() };
        let rowset = unit.rowset.and_then(|at| self.database.rowsets.get(at));
        let version = self.database.boot.as_ref().map_or(u16::MAX, |boot| boot.version);
        let rules = AuditRules {
            rows_hold_versions: self.database.has_version_store(),
            rows_may_hold_versions: version >= VERSION_2019,
            expansion: rowset.filter(|_| unit.compressed).and_then(expanded::expansion),
            row_by_row: false,
        };
        let mut findings = Vec::new();
        self.records.audit(page, id, unit, rules, &mut findings);
        // The page may be part of a system transaction that the log of its backup ends.
        findings.retain(|finding| finding.check != &registry::PAGE_IN_SYSXACT);
        findings
    }
}
