//! Writes the data files. Consecutive pages are collected and written together.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use crate::ids::{PAGE, PageId};
use crate::page::{Lsn, Page, PageVerify};
use crate::staged::Staged;

/// The reason why a database could not be written.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The file system reported an error.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The description asks for something that the format or the lab does not support.
    #[error("{0}")]
    Description(String),
}

const BUFFER: usize = 1 << 20;
/// The number of log records per log block. The LSNs of the pages are computed from this number.
const RECORDS_PER_BLOCK: u64 = 64;

/// All files of the database being written.
pub(crate) struct Disk {
    files: Vec<DataFile>,
    /// The kind of page protection.
    pub verify: PageVerify,
    writes: u64,
}

struct DataFile {
    staged: Staged,
    buffer: Vec<u8>,
    /// The number of the first page in the buffer.
    from: u32,
}

impl DataFile {
    fn failed(&self, source: std::io::Error) -> LabError {
        LabError::Io { path: self.staged.path.clone(), source }
    }

    fn flush(&mut self) -> Result<(), LabError> {
        if !self.buffer.is_empty() {
            let at = u64::from(self.from) * PAGE as u64;
            let handle = self.staged.file();
            let done = handle.seek(SeekFrom::Start(at)).and_then(|_| handle.write_all(&self.buffer));
            done.map_err(|source| self.failed(source))?;
            self.buffer.clear();
        }
        Ok(())
    }
}

impl Disk {
    /// Creates the files. Their IDs are 1, 3, 4 and so on, because the log file has ID 2.
    pub(crate) fn create(paths: &[PathBuf], verify: PageVerify) -> Result<Self, LabError> {
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let staged = Staged::create(path).map_err(|source| LabError::Io { path: path.clone(), source })?;
            files.push(DataFile { staged, buffer: Vec::with_capacity(BUFFER), from: 0 });
        }
        Ok(Self { files, verify, writes: 0 })
    }

    /// Returns the LSN of the next change, which is greater than all LSNs returned before.
    pub(crate) fn next_lsn(&mut self) -> Lsn {
        self.writes += 1;
        let block = self.writes / RECORDS_PER_BLOCK;
        Lsn(
            40 + (block >> 24) as u32,
            16 + (block & 0xFF_FFFF) as u32 * 8,
            (self.writes % RECORDS_PER_BLOCK) as u16 + 1,
        )
    }

    /// Completes the header of a page and writes the page with the page protection of the database.
    pub(crate) fn write(&mut self, page: &mut Page, id: PageId, links: (PageId, PageId)) -> Result<(), LabError> {
        self.write_as(page, id, links, self.verify)
    }

    /// Completes the header of a page and writes the page with the page protection `verify`.
    pub(crate) fn write_as(
        &mut self,
        page: &mut Page,
        id: PageId,
        links: (PageId, PageId),
        verify: PageVerify,
    ) -> Result<(), LabError> {
        let lsn = self.next_lsn();
        self.put(id, page.finish(id, links, lsn, verify))
    }

    /// Writes the bytes of a page unchanged.
    pub(crate) fn put(&mut self, id: PageId, bytes: &[u8; PAGE]) -> Result<(), LabError> {
        let file = &mut self.files[file_index(id.file)];
        let next = file.from + (file.buffer.len() / PAGE) as u32;
        if id.page != next || file.buffer.len() >= BUFFER {
            file.flush()?;
            file.from = id.page;
        }
        file.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Reads a page that was written before.
    pub(crate) fn read(&mut self, id: PageId) -> Result<Box<[u8; PAGE]>, LabError> {
        let file = &mut self.files[file_index(id.file)];
        file.flush()?;
        let mut bytes = Box::new([0; PAGE]);
        let at = u64::from(id.page) * PAGE as u64;
        let handle = file.staged.file();
        let done = handle.seek(SeekFrom::Start(at)).and_then(|_| handle.read_exact(&mut bytes[..]));
        done.map_err(|source| file.failed(source))?;
        Ok(bytes)
    }

    /// Writes the buffer, sets the length of each file in pages, and gives the files their final names.
    pub(crate) fn finish(mut self, pages: &[u32]) -> Result<(), LabError> {
        for (file, &pages) in self.files.iter_mut().zip(pages) {
            file.flush()?;
            let done = file.staged.file().set_len(u64::from(pages) * PAGE as u64);
            done.map_err(|source| file.failed(source))?;
        }
        for DataFile { staged, .. } in self.files {
            let path = staged.path.clone();
            staged.publish().map_err(|source| LabError::Io { path, source })?;
        }
        Ok(())
    }
}

/// The ID of the file at this position. ID 2 is left out, because it belongs to the log file.
pub(crate) fn file_id(index: usize) -> u16 {
    if index == 0 { 1 } else { index as u16 + 2 }
}

/// The position of the file with this ID; the inverse of `file_id`.
pub(crate) fn file_index(id: u16) -> usize {
    if id == 1 { 0 } else { usize::from(id) - 2 }
}
