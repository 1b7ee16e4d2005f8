//! Gives a table its first page. An IAM page is allocated together with the first page, and the addresses of both pages
//! are written to the catalog.

use super::engine::{By, Engine, Undo};
use super::entry::{Entry, context};
use super::frame::Frame;
use super::journal::Step;
use super::space::{GAM_PAGE, SGAM_PAGE};
use crate::ids::{EXTENT, PFS_INTERVAL, PageId};
use crate::log::operation;
use crate::page::page_type;
use crate::space::{ALLOCATED, IAM_PAGE, MIXED};

/// Offset of the pointer to the first page in a row of sysallocunits. `ROOT_PAGE` and `FIRST_IAM` are the offsets of
/// the pointers to the root page and to the first IAM page.
pub(super) const FIRST_PAGE: usize = 0x1B;
pub(super) const ROOT_PAGE: usize = 0x21;
const FIRST_IAM: usize = 0x27;
/// `IAM_FIXED` is pminlen of an IAM page. `IAM_START` is an offset in the first record of an IAM page, where the record
/// stores the first page of the interval that the IAM page maps.
const IAM_FIXED: u16 = 90;
const IAM_START: usize = 40;

impl Engine<'_> {
    /// Gives a heap or an index its first page, which is also the root of an index. A system transaction allocates the extent and commits, but the IAM page and the
    /// pointers belong to the user's transaction. If this transaction is rolled back, only its log record about the new
    /// IAM chain shows that the extent must be freed too.
    pub(super) fn add_first_page(&mut self, by: By, rowset: usize) -> Step<PageId> {
        let system = self.begin("AllocFirstPage", true)?;
        let inner = By::Transaction(system);
        let (extent, page) = self.take_extent(inner, rowset)?;
        self.set_pfs(inner, rowset, page, ALLOCATED)?;
        let iam = self.mixed_page(rowset)?;
        self.set_pfs(by, rowset, iam, ALLOCATED | MIXED | IAM_PAGE)?;
        self.format_iam(by, rowset, iam)?;
        self.note_pages(by, rowset, 1)?;
        self.set_bit(inner, context::IAM, (iam, None), extent, true)?;
        self.note_chain(by, rowset, iam)?;
        if let By::Transaction(number) = by
            && let Some(transaction) = self.open.get_mut(&number)
        {
            transaction.new_chains.push((rowset, extent));
        }
        self.commit(system)?;
        self.note_pages(by, rowset, 1)?;
        self.change_pointer(by, rowset, FIRST_IAM, iam)?;
        self.change_pointer(by, rowset, FIRST_PAGE, page)?;
        self.format(by, rowset, page, 0, Default::default())?;
        self.change_pointer(by, rowset, ROOT_PAGE, page)?;
        let target = &mut self.rowsets[rowset];
        (target.iam, target.extents) = (iam, vec![extent]);
        if target.is_heap {
            target.pages.push(page);
        } else {
            target.root = page;
        }
        target.counts.data += 1;
        target.counts.used += 2;
        target.counts.reserved += i64::from(EXTENT) + 1;
        Ok(page)
    }

    /// Writes the log record about a new IAM chain.
    fn note_chain(&mut self, by: By, rowset: usize, iam: PageId) -> Step {
        let unit = self.rowsets[rowset].unit;
        let mut note = vec![0; 40];
        note[0x18..0x1E].copy_from_slice(&iam.bytes());
        note[0x20..0x24].copy_from_slice(&unit.object().to_le_bytes());
        note[0x26..0x28].copy_from_slice(&unit.index().to_le_bytes());
        self.note(by, (operation::CREATE_ALLOCATION_CHAIN, context::NONE), note, &[])?;
        Ok(())
    }

    /// Gives a rowset an IAM page, but no other page. The whole chain belongs to the transaction.
    pub(super) fn add_chain(&mut self, by: By, rowset: usize) -> Step {
        let iam = self.mixed_page(rowset)?;
        self.set_pfs(by, rowset, iam, ALLOCATED | MIXED | IAM_PAGE)?;
        self.format_iam(by, rowset, iam)?;
        self.note_pages(by, rowset, 1)?;
        self.note_chain(by, rowset, iam)?;
        self.change_pointer(by, rowset, FIRST_IAM, iam)?;
        let target = &mut self.rowsets[rowset];
        target.iam = iam;
        target.counts.used += 1;
        target.counts.reserved += 1;
        Ok(())
    }

    /// Sets a page pointer in the catalog row of the rowset's allocation unit.
    pub(super) fn change_pointer(&mut self, by: By, rowset: usize, at: usize, page: PageId) -> Step {
        let target = &self.rowsets[rowset];
        let (id, unit, row) = (target.id, target.unit, target.unit_row);
        let slot = usize::from(row.1);
        let old = super::key::page_id(&self.pool.frame(row.0).records[slot][at..at + 6]);
        let entry = Entry::root_change(row, id, unit, (page, old), at as u32);
        self.change(by, entry, Undo::Pointer(rowset, at, old), |frame| {
            frame.records[slot][at..at + 6].copy_from_slice(&page.bytes());
        })?;
        Ok(())
    }

    fn format_iam(&mut self, by: By, rowset: usize, iam: PageId) -> Step {
        let unit = self.rowsets[rowset].unit;
        let mut fresh = Frame::fresh(iam, (page_type::IAM, 0), unit, IAM_FIXED, self.verify);
        let mut head = vec![0; 94];
        head[2] = 0x5E;
        head[IAM_START..IAM_START + 6].copy_from_slice(&PageId::new(iam.file, 0).bytes());
        fresh.records = vec![head, [&[0, 0, 0x38, 0x1F][..], &[0; 7988]].concat()];
        let entry = Entry::format(context::IAM, iam, (page_type::IAM, 0), IAM_FIXED, Default::default());
        self.mark_formatted(by, Entry { owner: Some(unit), ..entry }, fresh)
    }

    /// Finds a free page in a mixed extent that has at least one more free page. If no mixed extent has two free pages,
    /// allocates a new mixed extent and returns its first page.
    fn mixed_page(&mut self, rowset: usize) -> Step<PageId> {
        let extents = self.pool.pages(1) / EXTENT;
        let shared: Vec<u32> = (0..extents).filter(|&extent| self.bit(SGAM_PAGE, extent)).collect();
        for extent in shared {
            let free = self.free_pages(By::Engine, extent);
            if let [page, _, ..] = free[..] {
                return Ok(page);
            }
        }
        let number = self.begin("AllocMixedExtent", true)?;
        let by = By::Transaction(number);
        let (extent, page) = self.take_extent(by, rowset)?;
        self.set_bit(by, context::SGAM, (SGAM_PAGE, None), extent, true)?;
        self.commit(number)?;
        Ok(page)
    }

    /// Frees the extent that was allocated for a new IAM chain, because the transaction that created the chain was
    /// rolled back.
    pub(super) fn drop_chain(&mut self, rowset: usize, extent: u32) -> Step {
        if !self.bit(GAM_PAGE, extent) {
            self.set_bit(By::Engine, context::GAM, (GAM_PAGE, None), extent, true)?;
        }
        for page in extent * EXTENT..(extent + 1) * EXTENT {
            let page = PageId::new(1, page);
            if !page.page.is_multiple_of(PFS_INTERVAL) && self.pfs(page) & ALLOCATED != 0 {
                self.set_pfs(By::Engine, rowset, page, 0)?;
            }
        }
        Ok(())
    }
}
