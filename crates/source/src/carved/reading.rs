//! Reads carved pages by their addresses.

use format::PageId;
use format::page::PAGE_BYTES;

use super::runs::Run;
use super::{Carved, Image, pass};
use crate::changes::FileChange;
use crate::cpu_cache::pages_per_copy;
use crate::faults::ReadFaults;
use crate::positioned::will_need;
use crate::{DataFile, PageSource, ReadError};

impl PageSource for Carved {
    fn files(&self) -> &[DataFile] {
        &self.files
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let Some(file) = self.file(first.file) else { return Err(ReadError::NoSuchFile { file_id: first.file }) };
        let wanted = (file.pages.saturating_sub(first.page) as usize).min(buffer.len() / PAGE_BYTES);
        let at = |done: usize| PageId::new(first.file, first.page.saturating_add(done as u32));
        // Nothing is read if a page is missing: the caller then asks for each page.
        let mut parts = Vec::new();
        let mut done = 0;
        while done < wanted {
            let page = at(done);
            let Some(run) = self.run_of(page) else { return Err(ReadError::NotFound { page }) };
            let pages = ((run.end() - page.page) as usize).min(wanted - done);
            parts.push((*run, page, pages));
            done += pages;
        }
        let mut rest = buffer;
        for (run, page, pages) in parts {
            let (bytes, more) = std::mem::take(&mut rest).split_at_mut(pages * PAGE_BYTES);
            self.read_run(&run, page.page, bytes)?;
            rest = more;
        }
        Ok(wanted)
    }

    fn prefetch(&self, first: PageId, pages: u32) {
        let mut page = first.page;
        let end = first.page.saturating_add(pages);
        while let Some(run) = self.run_of(PageId::new(first.file, page)).filter(|_| page < end) {
            let count = run.end().min(end) - page;
            if let Some(image) = self.images.get(usize::from(run.image)) {
                will_need(&image.handle, run.at(page), u64::from(count) * PAGE_BYTES as u64);
            }
            page += count;
        }
    }

    fn pages_per_read(&self, first: PageId) -> u32 {
        let image = self.run_of(first).and_then(|run| self.images.get(usize::from(run.image)));
        match image.filter(|image| image.handle.is_read_ahead()) {
            Some(image) => pages_per_copy(image.handle.is_in_memory()),
            None => u32::MAX,
        }
    }

    fn read_faults(&self) -> ReadFaults {
        let mut faults = ReadFaults::default();
        self.images.iter().for_each(|image| image.reads.add_to(&image.path, &mut faults));
        faults
    }

    fn changes(&self) -> Vec<FileChange> {
        let change = |image: &Image| {
            let kind = image.handle.change(&image.path)?;
            Some(FileChange { path: image.path.clone(), kind })
        };
        self.images.iter().filter_map(change).collect()
    }

    fn carved(&self) -> Option<&Carved> {
        Some(self)
    }
}

impl Carved {
    /// Reads adjacent pages of a run.
    fn read_run(&self, run: &Run, page: u32, bytes: &mut [u8]) -> Result<(), ReadError> {
        let Some(image) = self.images.get(usize::from(run.image)) else {
            return Err(ReadError::NoSuchFile { file_id: run.file });
        };
        let offset = run.at(page);
        let is_page = bytes.len() <= PAGE_BYTES;
        let mut attempt = || pass::read_exactly(&image.handle, bytes, offset);
        // Only reads of a single page are repeated here. If a read of several pages fails, the caller reads each page.
        let read = if is_page { image.reads.patiently(attempt) } else { attempt() };
        read.map_err(|cause| {
            if is_page {
                image.reads.failed(offset, &cause);
            }
            ReadError::Io { path: image.path.clone(), offset, cause }
        })
    }
}
