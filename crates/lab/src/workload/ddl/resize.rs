//! Growth and shrinking of the data file. Neither belongs to a transaction: a rollback does not take it back.

use crate::bytes::put;
use crate::catalogue::base;
use crate::ids::{EXTENT, PFS_INTERVAL, PageId};
use crate::layout::Source;
use crate::workload::engine::{By, Engine, Undo};
use crate::workload::entry::Entry;
use crate::workload::journal::Step;
use crate::workload::space::GAM_PAGE;

/// The header page of the data file.
const HEADER_PAGE: PageId = PageId::new(1, 0);
/// The number of the variable-length column in the header record that has the size of the file in pages.
const SIZE_COLUMN: usize = 4;

/// The offset of the file size in the record of a header page. The record has no fixed-length columns after the first
/// eight bytes, and each variable-length column before the size has its end in the array of ends.
fn size_offset(record: &[u8]) -> usize {
    let word = |at: usize| usize::from(u16::from_le_bytes([record[at], record[at + 1]]));
    let fixed = word(2);
    let ends = fixed + 2 + word(fixed).div_ceil(8) + 2;
    word(ends + 2 * (SIZE_COLUMN - 1))
}

impl Engine<'_> {
    /// Adds free extents at the end of the data file. The maps already show them as free: the bits of GAM pages beyond
    /// the end of a file are set, and the file stays in its first PFS interval, whose PFS bytes are zero there. Returns
    /// whether the file could grow.
    pub(in crate::workload) fn grow_file(&mut self) -> Step<bool> {
        let pages = self.pool.pages(1) + EXTENT * (4 + self.dice.below(24) as u32);
        if pages > PFS_INTERVAL {
            return Ok(false);
        }
        self.pool.resize(1, pages);
        self.set_size(pages)?;
        Ok(true)
    }

    /// Removes free extents at the end of the data file. SQL Server does not shrink a file while a backup copies it.
    pub(super) fn shrink_file(&mut self) -> Step {
        let extents = self.pool.pages(1) / EXTENT;
        let used = (0..extents).rev().find(|&extent| !self.bit(GAM_PAGE, extent) || self.is_extent_freed(extent));
        let least = used.map_or(1, |used| used + 1);
        if self.is_copied || least >= extents {
            return Ok(());
        }
        let pages = EXTENT * (least + self.dice.below(u64::from(extents - least)) as u32);
        self.set_size(pages)?;
        self.pool.resize(1, pages);
        Ok(())
    }

    /// Sets the size of the data file in its header and in the catalog.
    fn set_size(&mut self, pages: u32) -> Step {
        let old = self.pool.frame(HEADER_PAGE).records[0].clone();
        let mut new = old.clone();
        put(&mut new, size_offset(&old), &pages.to_le_bytes());
        let entry = Entry::file_header(HEADER_PAGE, old, new.clone());
        self.change(By::Engine, entry, Undo::Nothing, |frame| frame.records[0] = new)?;
        let Some((rowset, ids, sizes)) = self.size_column() else { return Ok(()) };
        for page in self.leaves(rowset) {
            for mut record in self.pool.frame(page).records.clone() {
                if record.get(ids..ids + 4) == Some(&1u32.to_le_bytes()) {
                    put(&mut record, sizes, &pages.to_le_bytes());
                    self.modify_row(By::Engine, rowset, &record)?;
                }
            }
        }
        Ok(())
    }

    /// The clustered index of sysprufiles, and the offsets of the file ID and of the size in its rows.
    fn size_column(&self) -> Option<(usize, usize, usize)> {
        let system = self.system.as_ref()?;
        let rowset = *system.rowsets.get(&base::SYSPRUFILES)?.first()?;
        let fact = system.objects.iter().find(|object| object.id == base::SYSPRUFILES)?;
        let offset = |name: &str| {
            let at = fact.columns.iter().position(|column| column.name == name)?;
            let columns = &self.rowsets[rowset].keys.layout.columns;
            let column = columns.iter().find(|column| column.source == Source::Column(at))?;
            usize::try_from(column.leaf.offset).ok()
        };
        Some((rowset, offset("fileid")?, offset("size")?))
    }
}
