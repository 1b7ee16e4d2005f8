//! The recovered database as a source of pages.

use format::allocation::PFS_PAGES;
use format::file_header::FileHeader;
use format::page::PAGE_BYTES;
use format::{Page, PageBytes, PageId};
use source::{BackupPages, Carved, DataFile, FileChange, PageSource, ReadError, ReadFaults};

use crate::apply::Recovery;
use crate::misfit::Misfit;
use crate::store::{PageWork, Stored};

/// Page ID of the first GAM page in the primary file.
const FIRST_GAM: PageId = PageId::new(1, 2);

/// The pages of a database in the state that recovery would produce: recovered pages, and all other pages from the
/// files.
pub struct RecoveredPages<'s> {
    source: &'s dyn PageSource,
    recovery: Recovery,
    files: Vec<DataFile>,
    in_flight: Vec<PageId>,
    damaged: Vec<PageId>,
}

impl<'s> RecoveredPages<'s> {
    /// Combines `recovery` with `source`. A recovered page takes precedence over the page in the files.
    pub fn new(source: &'s dyn PageSource, recovery: Recovery) -> Self {
        let mut files = source.files().to_vec();
        for file in &mut files {
            let header = PageId::new(file.file_id, 0);
            let size = |bytes: &PageBytes| FileHeader::read(Page::new(bytes)).map(|header| header.size_pages());
            let mut has_grown = false;
            if let Some(pages) = recovery.store.get(header).and_then(|bytes| size(&bytes)) {
                file.header_pages = Some(pages);
                // A file that is shorter than the stored header states was cut, and the log does not explain it.
                let before = source.read_page(header).and_then(|bytes| size(&bytes));
                has_grown = pages > file.pages && before.is_some_and(|before| before <= file.pages);
            }
            // A file that grew after the backup ends at the size that its file header states, even if the log changes
            // no page in the new part. If this size does not include the last recovered page, or extends beyond the PFS
            // interval of the last page, it is adjusted to that limit.
            let recovered = recovery.store.last_of(file.file_id).filter(|last| *last >= file.pages);
            if has_grown || recovered.is_some() {
                let last = recovered.unwrap_or(file.pages.saturating_sub(1));
                let limit = (last / PFS_PAGES + 1).saturating_mul(PFS_PAGES);
                file.pages = file.header_pages.unwrap_or(0).clamp(last.saturating_add(1), limit);
            }
        }
        let applied = &recovery.applied;
        let mut in_flight: Vec<PageId> = applied.not_recovered.iter().map(|entry| entry.page).collect();
        let damaged = applied.not_recovered.iter().filter(|entry| entry.why == Misfit::PageDamaged);
        let damaged = damaged.map(|entry| entry.page).collect();
        if recovery.may_be_of_another_copy() {
            in_flight.extend(recovery.store.pages().iter().map(|stored| stored.page));
        }
        if applied.transactions_not_undone > 0 {
            // It is unknown which extents a transaction that was not undone has allocated. Adding the first GAM page to
            // the list makes every allocation uncertain.
            in_flight.push(FIRST_GAM);
        }
        in_flight.sort_unstable();
        in_flight.dedup();
        Self { source, recovery, files, in_flight, damaged }
    }

    /// The recovery from which the recovered pages come.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The recovery from which the recovered pages come. Mutable, for calls of [`Recovery::keep_at_most`].
    pub fn recovery_mut(&mut self) -> &mut Recovery {
        &mut self.recovery
    }

    /// The numbers of changes that recovery redid and undid on a page; `None` if the page comes unchanged from the
    /// files.
    pub fn work(&self, page: PageId) -> Option<PageWork> {
        self.recovery.store.work(page)
    }
}

impl RecoveredPages<'_> {
    /// For each of `pages` pages from `first`, at most 128: whether recovery has made the page or changed it, or the file
    /// grew by it after the backup.
    fn made(&self, first: PageId, pages: u32) -> u128 {
        let stored = self.source.file(first.file).map_or(0, |file| file.pages);
        let recovered = self.recovery.store.pages();
        let start = recovered.partition_point(|stored| stored.page < first);
        let end = PageId::new(first.file, first.page.saturating_add(pages.min(u128::BITS)));
        let of_log = recovered.iter().skip(start).take_while(|stored| stored.page < end);
        let made = of_log.fold(0, |made, stored| made | 1 << (stored.page.page - first.page));
        let grown = (0..pages.min(u128::BITS)).filter(|bit| first.page.saturating_add(*bit) >= stored);
        grown.fold(made, |made, bit| made | 1 << bit)
    }

    /// Reads pages from the source. Pages by which a file grew after the backup are filled with zeros.
    fn read_stored(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let pages_of = |files: &[DataFile]| {
            files.iter().find(|file| file.file_id == first.file).map_or(0, |file| file.pages.saturating_sub(first.page))
        };
        let (stored, wanted) = (pages_of(self.source.files()), pages_of(&self.files));
        if wanted <= stored {
            return self.source.read(first, buffer);
        }
        let wanted = (wanted as usize).min(buffer.len() / PAGE_BYTES);
        let split = (stored as usize).min(wanted) * PAGE_BYTES;
        let (from_source, grown) = buffer.split_at_mut(split.min(buffer.len()));
        let read = if from_source.is_empty() { 0 } else { self.source.read(first, from_source)? };
        if read * PAGE_BYTES < from_source.len() {
            return Ok(read);
        }
        grown.iter_mut().take(wanted * PAGE_BYTES - split).for_each(|byte| *byte = 0);
        Ok(wanted)
    }
}

impl PageSource for RecoveredPages<'_> {
    fn files(&self) -> &[DataFile] {
        &self.files
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let read = self.read_stored(first, buffer)?;
        let pages = self.recovery.store.pages();
        let start = pages.partition_point(|stored| stored.page < first);
        let end = PageId::new(first.file, first.page.saturating_add(read as u32));
        for Stored { page, place, .. } in pages.iter().skip(start).take_while(|stored| stored.page < end).copied() {
            let at = (page.page - first.page) as usize * PAGE_BYTES;
            if let Some(bytes) = buffer.get_mut(at..at + PAGE_BYTES) {
                self.recovery.store.read(place, bytes).map_err(|cause| ReadError::Recovered { page, cause })?;
            }
        }
        Ok(read)
    }

    fn prefetch(&self, first: PageId, pages: u32) {
        self.source.prefetch(first, pages);
    }

    fn pages_per_read(&self, first: PageId) -> u32 {
        self.source.pages_per_read(first)
    }

    fn read_faults(&self) -> ReadFaults {
        self.source.read_faults()
    }

    fn changes(&self) -> Vec<FileChange> {
        self.source.changes().into_iter().chain(self.recovery.log_changes.iter().cloned()).collect()
    }

    fn backup(&self) -> Option<&BackupPages> {
        self.source.backup()
    }

    fn carved(&self) -> Option<&Carved> {
        self.source.carved()
    }

    fn above_base(&self, first: PageId, pages: u32) -> Option<u128> {
        Some(self.source.above_base(first, pages)? | self.made(first, pages))
    }

    fn above_base_as_stored(&self, first: PageId, pages: u32) -> Option<u128> {
        Some(self.source.above_base_as_stored(first, pages)? & !self.made(first, pages))
    }

    fn has_recovered_pages(&self) -> bool {
        !self.recovery.store.pages().is_empty()
    }

    fn in_flight(&self) -> Option<&[PageId]> {
        Some(&self.in_flight)
    }

    fn damaged_in_flight(&self) -> &[PageId] {
        &self.damaged
    }
}
