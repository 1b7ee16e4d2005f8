//! Base tables with stale row counts, and base tables without their last pages.
#![allow(clippy::unwrap_used, clippy::panic)]

use check::Silent;
use findings::{Options, Report};
use format::Page;
use lab::{Version, orders};

use crate::image::Image;

const SYSRSCOLS: u32 = 3;
const SYSROWSETS: u32 = 5;

/// A sample database.
fn sample() -> Image {
    let folder = tempfile::tempdir().unwrap();
    Image::write(&orders::orders(Version::V904, 5, 1 << 20), folder.path())
}

impl Image {
    /// The pages of a base table that have this page type.
    fn pages_of(&self, table: u32, page_type: u8) -> Vec<u32> {
        let is_its = |page: &u32| {
            let header = Page::new(self.page(*page)).header();
            header.page_type == page_type && header.object_id.get() == table && header.index_id.get() < 2
        };
        (10..self.pages()).filter(is_its).collect()
    }

    /// Increases the row count in the row of sysrowsets that describes sysrscols.
    fn count_more(&mut self, more: u64) {
        const ROWS: usize = 4 + 27;
        for page in self.pages_of(SYSROWSETS, 1) {
            let slots = Page::new(self.page(page)).header().slot_count.get();
            for slot in 0..slots {
                let at = usize::from(Page::new(self.page(page)).slot_offset(slot).unwrap());
                let id = u64::from_le_bytes(*self.page(page)[at + 4..].first_chunk().unwrap());
                if id == u64::from(SYSRSCOLS) << 16 {
                    self.edit(page, |bytes| {
                        let rows = u64::from_le_bytes(*bytes[at + ROWS..].first_chunk().unwrap()) + more;
                        bytes[at + ROWS..at + ROWS + 8].copy_from_slice(&rows.to_le_bytes());
                    });
                    return;
                }
            }
        }
        panic!("sysrscols is not in sysrowsets");
    }

    /// The last two leaf pages of sysrscols.
    fn last_leaves(&self) -> (u32, u32) {
        let header = |page: u32| Page::new(self.page(page)).header();
        let last = self.pages_of(SYSRSCOLS, 1).into_iter().find(|page| header(*page).next().is_none()).unwrap();
        (header(last).prev().page, last)
    }

    /// Returns the catalog, the report of a check, and whether contradictions in the catalog count as damage.
    fn check_catalog(&self) -> (catalog::Database, Report, bool) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("changed.mdf");
        std::fs::write(&file, &self.bytes).unwrap();
        let source = source::DataFiles::open(&[file]).unwrap();
        let database = catalog::load(&source);
        let report = check::run(&source, &database, &Options::default(), &Silent);
        let is_damaged = !database.gaps.is_empty() && database.is_recovered(&source);
        (database, report, is_damaged)
    }
}

#[test]
fn a_stored_row_count_above_the_rows_proves_nothing_where_tree_and_iam_chain_fit() {
    let mut image = sample();
    image.count_more(17);
    let (database, report, _) = image.check_catalog();
    assert!(database.gaps.is_empty() && report.findings.is_empty(), "{:?}", database.gaps);
    let of_base_tables = report.not_verified.iter().filter(|entry| !entry.scope.starts_with("price_history"));
    let told: Vec<_> = of_base_tables.map(|entry| (entry.what.as_str(), entry.scope.as_str())).collect();
    assert_eq!(told, [("row count", "sys.sysrscols.clst")], "a stale count is reported, and is no obstacle");
}

#[test]
fn a_chain_cut_short_is_noticed_by_the_tree_above_it() {
    let mut image = sample();
    let (before, _) = image.last_leaves();
    image.edit(before, |bytes| bytes[16..22].fill(0));
    let (database, report, is_damaged) = image.check_catalog();
    assert!(database.gap(3).is_some_and(|gap| gap.missing_rows > 0), "{:?}", database.gaps);
    assert!(is_damaged);
    assert!(report.not_verified.iter().any(|entry| entry.scope == "sys.sysrscols"));
}

#[test]
fn a_chain_cut_short_together_with_its_tree_is_noticed_by_the_iam_chain() {
    let mut image = sample();
    let (before, last) = image.last_leaves();
    image.edit(before, |bytes| bytes[16..22].fill(0));
    let parents = image.pages_of(SYSRSCOLS, 2);
    let names_last = |page: &&u32| {
        let page = Page::new(image.page(**page));
        let slots = page.header().slot_count.get();
        let at = usize::from(page.slot_offset(slots - 1).unwrap()) + usize::from(page.header().pminlen.get()) - 6;
        page.header().level == 1 && format::PageId::read(page.bytes(), at).is_some_and(|child| child.page == last)
    };
    let parent = *parents.iter().find(names_last).unwrap();
    image.edit(parent, |bytes| bytes[22] -= 1);
    let (database, ..) = image.check_catalog();
    assert!(database.gap(3).is_some_and(|gap| gap.missing_rows > 0), "{:?}", database.gaps);
}

#[test]
fn a_catalog_that_does_not_fit_is_not_called_damaged_where_the_log_was_not_applied() {
    let mut image = sample();
    let (_, last) = image.last_leaves();
    image.edit(last, |bytes| bytes[8..14].copy_from_slice(&[77, 0, 0, 0, 1, 0]));
    let (_, clean, is_damaged) = image.check_catalog();
    assert!(clean.findings.iter().any(|finding| finding.check.msg == 7987) && is_damaged);
    // Clears the clean-shutdown bit in the status field, at offset 36 of the boot page's record.
    image.edit(9, |bytes| bytes[96 + 36 + 3] &= !0x40);
    let (_, dirty, is_damaged) = image.check_catalog();
    assert!(dirty.findings.is_empty(), "{:?}", dirty.findings);
    assert!(!is_damaged);
    let reason = dirty.not_verified.iter().find(|entry| entry.scope == "sys.sysrscols").unwrap();
    assert!(
        reason.reason.starts_with("the database was not shut down cleanly, and its log was not applied"),
        "{reason:?}"
    );
}
