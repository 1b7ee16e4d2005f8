//! Changes map pages, and allocates pages and extents to rowsets.

use super::engine::{By, Engine, Undo};
use super::entry::{Entry, context};
use super::frame::{Frame, TYPE_FLAGS};
use super::journal::Step;
use crate::ids::{EXTENT, PFS_INTERVAL, PageId, UnitId};
use crate::log::operation;
use crate::page::page_type;
use crate::space::{ALLOCATED, GHOSTS, fullness};

/// The number of bytes before the bits in the record of a map.
const MAP_HEADER: usize = 4;
/// The slot of the bitmap on GAM, differential and IAM pages. A PFS page has only one record.
const MAP_SLOT: u16 = 1;
/// `GAM_PAGE` is the first GAM page, and `SGAM_PAGE` is the first SGAM page.
pub(super) const GAM_PAGE: PageId = PageId::new(1, 2);
pub(super) const SGAM_PAGE: PageId = PageId::new(1, 3);
/// The number of a bit in a PFS byte: the page has ghosts.
const GHOST_BIT: u32 = 3;

/// The PFS page that describes a page.
fn pfs_page(page: PageId) -> PageId {
    PageId::new(page.file, (page.page / PFS_INTERVAL * PFS_INTERVAL).max(1))
}

fn pfs_offset(page: PageId) -> usize {
    MAP_HEADER + (page.page % PFS_INTERVAL) as usize
}

fn set_bit(frame: &mut Frame, slot: u16, bit: u32, value: bool) {
    let byte = &mut frame.records[usize::from(slot)][MAP_HEADER + bit as usize / 8];
    let mask = 1 << (bit % 8);
    *byte = if value { *byte | mask } else { *byte & !mask };
}

impl Engine<'_> {
    /// Reads a bit of a GAM, SGAM, differential or IAM page.
    pub(super) fn bit(&mut self, map: PageId, bit: u32) -> bool {
        self.pool.frame(map).records[usize::from(MAP_SLOT)][MAP_HEADER + bit as usize / 8] >> (bit % 8) & 1 == 1
    }

    /// Sets or clears a bit of a GAM, SGAM, differential or IAM page. The log record names the unit `owner` if it is
    /// given.
    pub(super) fn set_bit(
        &mut self,
        by: By,
        context: u8,
        (map, owner): (PageId, Option<UnitId>),
        bit: u32,
        value: bool,
    ) -> Step {
        let elements = usize::from(!matches!(by, By::Engine));
        let entry = Entry { owner, ..Entry::bit(context, (map, MAP_SLOT), 32 + bit, value, elements) };
        let undo = Undo::Bit(context, map, owner, bit, !value);
        self.change(by, entry, undo, |frame| set_bit(frame, MAP_SLOT, bit, value))?;
        if let (By::Rollback(..), context::IAM) = (by, context) {
            for rowset in self.rowsets.iter_mut().filter(|rowset| rowset.iam == map) {
                rowset.extents.retain(|&extent| extent != bit);
                rowset.counts.reserved -= i64::from(EXTENT);
            }
        }
        Ok(())
    }

    /// The PFS byte of a page.
    pub(super) fn pfs(&mut self, page: PageId) -> u8 {
        self.pool.frame(pfs_page(page)).records[0][pfs_offset(page)]
    }

    /// Sets the PFS byte of a page in a rowset, which makes the page allocated or free.
    pub(super) fn set_pfs(&mut self, by: By, rowset: usize, page: PageId, value: u8) -> Step {
        let (map, at) = (pfs_page(page), pfs_offset(page));
        let (old, owner) = (self.pfs(page), Some(self.rowsets[rowset].unit));
        let mut entry = Entry { owner, ..Entry::bytes(context::PFS, (map, 0), at, vec![old], &[value]) };
        if let By::Rollback(..) = by {
            entry.elements[2].clear();
        }
        self.change(by, entry, Undo::Pfs(rowset, page, old), |frame| frame.records[0][at] = value)?;
        Ok(())
    }

    /// Undoes a change of a PFS byte, so that the page is free again or allocated again.
    pub(super) fn take_back_pfs(&mut self, by: By, rowset: usize, page: PageId, value: u8) -> Step {
        self.set_pfs(by, rowset, page, value)?;
        let rowset = &mut self.rowsets[rowset];
        rowset.pages.retain(|&own| own != page);
        if value & ALLOCATED == 0 {
            rowset.counts.used -= 1;
        } else {
            rowset.pages.push(page);
            rowset.counts.used += 1;
        }
        Ok(())
    }

    /// Frees a page of a rowset. The content of the page is not erased.
    pub(super) fn free(&mut self, by: By, rowset: usize, page: PageId) -> Step {
        let value = self.pfs(page) & !ALLOCATED;
        self.set_pfs(by, rowset, page, value)?;
        self.rowsets[rowset].pages.retain(|&own| own != page);
        self.rowsets[rowset].counts.used -= 1;
        self.note_pages(by, rowset, -1)
    }

    /// Whether an open transaction other than `by` has made a change for which `test` is true. Until this open
    /// transaction ends, no other transaction may use the changed page or extent.
    fn is_held(&self, by: By, test: impl Fn(&Undo) -> bool) -> bool {
        let own = match by {
            By::Transaction(number) | By::Rollback(number, _) => Some(number),
            By::Engine => None,
        };
        let others = self.open.iter().filter(|(number, _)| Some(**number) != own);
        others.flat_map(|(_, transaction)| &transaction.undo).any(|(.., undo)| test(undo))
    }

    /// Whether another open transaction allocated the page, or any open transaction freed it.
    pub(super) fn is_page_held(&self, by: By, page: PageId) -> bool {
        let is_freed = |undo: &Undo| matches!(undo, Undo::Pfs(_, of, old) if *of == page && old & ALLOCATED != 0);
        self.is_held(by, |undo| matches!(undo, Undo::Pfs(_, held, _) if *held == page))
            || self.is_held(By::Engine, is_freed)
    }

    /// Whether an open transaction freed the extent. Other transactions must not use it.
    pub(super) fn is_extent_freed(&self, extent: u32) -> bool {
        self.is_held(By::Engine, |undo| matches!(undo, Undo::Bit(context::GAM, .., bit, false) if *bit == extent))
    }

    /// Updates the fullness of a heap or LOB page in its PFS byte.
    pub(super) fn set_fullness(&mut self, page: PageId) -> Step {
        if self.pool.frame(page).kind() == page_type::TEXT_TREE {
            // A tree page always counts as full.
            return Ok(());
        }
        let old = self.pfs(page);
        let new = old & !7 | fullness(self.pool.frame(page).filled());
        if new == old {
            return Ok(());
        }
        let (map, at) = (pfs_page(page), pfs_offset(page));
        let entry = Entry::free_space(map, at, old, new);
        self.change(By::Engine, entry, Undo::Nothing, |frame| frame.records[0][at] = new)?;
        Ok(())
    }

    /// Updates the ghost bit of an index page in its PFS byte.
    pub(super) fn set_ghost_bit(&mut self, page: PageId) -> Step {
        let (has, marked) = (self.pool.frame(page).ghosts() > 0, self.pfs(page) & GHOSTS != 0);
        if has == marked {
            return Ok(());
        }
        let (map, unit) = (pfs_page(page), self.pool.frame(page).unit());
        let flags = self.pool.frame(map).header(TYPE_FLAGS, 1);
        if has && flags == [0] {
            let entry = Entry::header(context::PFS, map, TYPE_FLAGS, flags, &[1]);
            self.change(By::Engine, entry, Undo::Nothing, |frame| frame.set_header(TYPE_FLAGS, &[1]))?;
        }
        let bit = page.page % PFS_INTERVAL * 8 + GHOST_BIT;
        let entry = Entry { owner: Some(unit), ..Entry::bit(context::PFS, (map, 0), 32 + bit, has, 0) };
        self.change(By::Engine, entry, Undo::Nothing, |frame| set_bit(frame, 0, bit, has))?;
        Ok(())
    }

    /// Allocates a page for a rowset, from one of its extents or from a new extent.
    pub(super) fn allocate(&mut self, by: By, rowset: usize, fullness: u8) -> Step<PageId> {
        let mut free = None;
        let iam = self.rowsets[rowset].iam;
        for extent in self.rowsets[rowset].extents.clone() {
            let of_extent =
                |undo: &Undo| matches!(undo, Undo::Bit(context::IAM, map, _, bit, _) if (*map, *bit) == (iam, extent));
            if free.is_none() && !self.is_held(by, of_extent) {
                free = self.free_page(by, extent);
            }
        }
        let page = match free {
            Some(page) => page,
            None => self.allocate_extent(by, rowset)?,
        };
        self.set_pfs(by, rowset, page, ALLOCATED | fullness)?;
        self.note_pages(by, rowset, 1)?;
        self.rowsets[rowset].counts.used += 1;
        Ok(page)
    }

    /// Writes a log record which says that the number of pages in a rowset changed by `pages`.
    pub(super) fn note_pages(&mut self, by: By, rowset: usize, pages: i64) -> Step {
        let id = self.rowsets[rowset].id;
        let mut note = vec![0; 64];
        note[0x18..0x20].copy_from_slice(&id.to_le_bytes());
        note[0x28..0x30].copy_from_slice(&pages.to_le_bytes());
        self.note(by, (operation::HOBT_DELTA, context::NONE), note, &[])?;
        Ok(())
    }

    fn free_page(&mut self, by: By, extent: u32) -> Option<PageId> {
        self.free_pages(by, extent).first().copied()
    }

    /// The pages of an extent that can be allocated.
    pub(super) fn free_pages(&mut self, by: By, extent: u32) -> Vec<PageId> {
        let pages = (extent * EXTENT..(extent + 1) * EXTENT).map(|page| PageId::new(1, page));
        let free = pages.into_iter().filter(|page| !page.page.is_multiple_of(PFS_INTERVAL));
        free.filter(|&page| self.pfs(page) & ALLOCATED == 0 && !self.is_page_held(by, page)).collect()
    }

    /// Allocates an extent to a rowset and sets its bit on the IAM page; returns the first page of the extent.
    fn allocate_extent(&mut self, by: By, rowset: usize) -> Step<PageId> {
        let iam = self.rowsets[rowset].iam;
        let (extent, first) = self.take_extent(by, rowset)?;
        self.set_bit(by, context::IAM, (iam, None), extent, true)?;
        self.rowsets[rowset].extents.push(extent);
        self.rowsets[rowset].counts.reserved += i64::from(EXTENT);
        Ok(first)
    }

    /// Allocates the first free extent of the file; returns the extent number and the first page.
    pub(super) fn take_extent(&mut self, by: By, rowset: usize) -> Step<(u32, PageId)> {
        let owner = Some(self.rowsets[rowset].unit);
        let extent = loop {
            let last = self.pool.pages(1) / EXTENT;
            let is_free = |this: &mut Self, extent: u32| {
                !(extent * EXTENT).is_multiple_of(PFS_INTERVAL)
                    && this.bit(GAM_PAGE, extent)
                    && !this.is_extent_freed(extent)
            };
            if let Some(extent) = (1..last).find(|&extent| is_free(self, extent)) {
                break extent;
            }
            // The data file of a workload without DDL should be large enough. If it is not, the run stops as if the disk
            // were full.
            if self.system.is_none() || !self.grow_file()? {
                return Err(super::journal::Halt);
            }
        };
        self.set_bit(by, context::GAM, (GAM_PAGE, owner), extent, false)?;
        let first = PageId::new(1, extent * EXTENT);
        let old = (0..8).map(|page| self.pfs(PageId::new(1, first.page + page))).collect::<Vec<u8>>();
        let entry = Entry::bytes(context::PFS, (pfs_page(first), 0), pfs_offset(first), old.clone(), &old);
        self.change(by, Entry { owner, ..entry }, Undo::Nothing, |_| ())?;
        Ok((extent, first))
    }

    /// Formats a page for rows.
    pub(super) fn format(&mut self, by: By, rowset: usize, page: PageId, level: u8, links: (PageId, PageId)) -> Step {
        let is_data = level == 0 && self.rowsets[rowset].is_base;
        let kind = if is_data { page_type::DATA } else { page_type::INDEX };
        self.format_as(by, rowset, page, (kind, level), links)
    }

    /// Formats a page of the type `kind` for a rowset.
    pub(super) fn format_as(
        &mut self,
        by: By,
        rowset: usize,
        page: PageId,
        kind: (u8, u8),
        links: (PageId, PageId),
    ) -> Step {
        let (entry, fresh) = self.new_page(rowset, page, kind, links);
        self.mark_formatted(by, entry, fresh)
    }

    /// A new page of the type `kind` for a rowset, and the record that formats it.
    pub(super) fn new_page(
        &self,
        rowset: usize,
        page: PageId,
        (kind, level): (u8, u8),
        links: (PageId, PageId),
    ) -> (Entry, Frame) {
        let target = &self.rowsets[rowset];
        let layout = &target.keys.layout;
        let (fixed, context) = match (kind, level) {
            (page_type::TEXT_MIX, _) => (0, context::TEXT_MIX),
            (page_type::TEXT_TREE, _) => (0, context::TEXT_TREE),
            (_, 0) => (layout.leaf_fixed, target.context(0)),
            _ => (layout.inner_fixed, target.context(level)),
        };
        let unit = target.unit;
        let mut fresh = Frame::fresh(page, (kind, level), unit, fixed, self.verify);
        fresh.set_header(super::frame::PREVIOUS, &links.0.bytes());
        fresh.set_header(super::frame::NEXT, &links.1.bytes());
        let entry = Entry::format(context, page, (kind, level), fixed, links);
        (Entry { owner: Some(unit), ..entry }, fresh)
    }

    /// Logs a FORMAT_PAGE record and replaces the page. Instead of the page's previous LSN, the record has the LSN of
    /// the transaction's previous record.
    pub(super) fn mark_formatted(&mut self, by: By, entry: Entry, fresh: Frame) -> Step {
        let page = entry.page;
        let before = self.pool.frame(page).clone();
        if let By::Transaction(number) = by
            && let Some(transaction) = self.open.get(&number)
        {
            let last = transaction.last;
            let mut blank = before.clone();
            blank.set_lsn(last);
            self.pool.replace(page, blank);
        }
        let done = self.change(by, entry, Undo::Nothing, |frame| *frame = fresh);
        if done.is_err() {
            // The run stops before this record, so the page keeps its LSN.
            self.pool.replace(page, before);
        }
        done.map(|_| ())
    }
}
