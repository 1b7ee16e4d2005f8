//! Frees all pages of a rowset, and TRUNCATE TABLE.

use crate::ids::{EXTENT, PFS_INTERVAL, PageId, UnitId};
use crate::space::{ALLOCATED, MIXED};
use crate::workload::engine::{By, Engine};
use crate::workload::entry::context;
use crate::workload::journal::Step;
use crate::workload::key::page_id;
use crate::workload::space::{GAM_PAGE, SGAM_PAGE};
use crate::workload::table::Counts;

/// Offset of the pages in mixed extents in the first record of an IAM page, and their number.
const SINGLES: usize = 46;
const MOST_SINGLES: usize = 8;

impl Engine<'_> {
    /// Frees all pages and extents of a rowset, and its IAM page. The contents of the pages stay, and no other
    /// transaction gets the pages before this one commits: SQL Server keeps exclusive locks on the extents and pages
    /// until then (Paul Randal, "When are pages from a truncated table reused?"). A rowset of more than 128 extents is
    /// freed after the commit ("Dropping and rebuilding large objects" in Microsoft's documentation); the tables of a
    /// workload are smaller.
    pub(super) fn free_all(&mut self, by: By, rowset: usize) -> Step {
        let (iam, unit) = (self.rowsets[rowset].iam, self.rowsets[rowset].unit);
        if iam == PageId::NONE {
            return Ok(());
        }
        let head = self.pool.frame(iam).records[0].clone();
        let singles = (0..MOST_SINGLES).map(|at| page_id(&head[SINGLES + 6 * at..SINGLES + 6 * at + 6]));
        let mut singles: Vec<PageId> = singles.filter(|&page| page != PageId::NONE).collect();
        singles.push(iam);
        let mut freed = singles.len() as i64;
        for extent in self.rowsets[rowset].extents.clone() {
            for page in (extent * EXTENT..(extent + 1) * EXTENT).filter(|page| !page.is_multiple_of(PFS_INTERVAL)) {
                let page = PageId::new(1, page);
                if self.pfs(page) & ALLOCATED != 0 {
                    self.set_pfs(by, rowset, page, 0)?;
                    freed += 1;
                }
            }
            self.set_bit(by, context::IAM, (iam, None), extent, false)?;
            self.set_bit(by, context::GAM, (GAM_PAGE, Some(unit)), extent, true)?;
        }
        for page in singles {
            self.set_pfs(by, rowset, page, MIXED)?;
            // The mixed extent has a free page now.
            let extent = page.page / EXTENT;
            if !self.bit(SGAM_PAGE, extent) {
                self.set_bit(by, context::SGAM, (SGAM_PAGE, None), extent, true)?;
            }
        }
        self.note_pages(by, rowset, -freed)?;
        let target = &mut self.rowsets[rowset];
        (target.root, target.iam) = (PageId::NONE, PageId::NONE);
        (target.pages, target.extents) = (Vec::new(), Vec::new());
        let rows = target.counts.rows;
        target.counts = Counts { rows, ..Counts::default() };
        Ok(())
    }

    /// TRUNCATE TABLE: all pages are freed, and each allocation unit is replaced by a new one with a new ID and without
    /// pages (its first page, root and first IAM page are zero). The rowset keeps its ID. This is why a transaction can
    /// truncate a table and roll back: only allocations are logged, not rows.
    pub(super) fn truncate_table(&mut self) -> Step {
        let from = if self.dice.chance(60) { super::create::FIRST_TABLES } else { 0 };
        let Some(table) = self.any_table(from, |state| !state.rows.is_empty()) else {
            return Ok(());
        };
        let number = self.begin_ddl("TRUNCATE TABLE", table)?;
        let (by, end) = (By::Transaction(number), self.any_end(false));
        let before = self.table_rows(table);
        for rowset in self.rowsets_of(table) {
            self.free_all(by, rowset)?;
            self.renew_unit(rowset);
            self.rowsets[rowset].counts.rows = 0;
        }
        let after = self.table_rows(table);
        self.change_catalog(by, &before, &after)?;
        self.store_ids()?;
        let state = &mut self.tables[table];
        state.rows.clear();
        state.gone.clear();
        state.uniquifiers.clear();
        // The first rows come in the same step, as the rollback of a transaction that gives a table its first pages
        // leaves extents that recovery cannot find.
        self.end_ddl(number, end)?;
        if end == super::End::Committed {
            let rows = 1 + self.dice.below(60);
            self.insert_rows(table, rows)?;
        }
        Ok(())
    }

    /// Gives a rowset a new allocation unit, whose catalog row has no counts yet.
    pub(super) fn renew_unit(&mut self, rowset: usize) {
        if let Some(system) = &mut self.system {
            self.rowsets[rowset].unit = UnitId(system.ids.unit());
            self.counted[rowset] = Counts { rows: self.counted[rowset].rows, ..Counts::default() };
        }
    }
}
