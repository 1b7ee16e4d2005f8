//! The data files of one database, held in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use format::page::PAGE_BYTES;
use format::{PageBytes, PageId};

use crate::data_files::{check_one_database, describe};
use crate::identify::IDENTIFY_BYTES;
use crate::positioned::ReadAt;
use crate::{DataFile, OpenError, PageSource, ReadError};

/// The data files of one database, held in memory. Clones share the bytes of the files. If some pages of a clone are
/// replaced, only these pages need additional memory.
#[derive(Clone, Debug)]
pub struct MemoryFiles {
    contents: Vec<Content>,
    files: Vec<DataFile>,
}

#[derive(Clone, Debug)]
struct Content {
    path: PathBuf,
    bytes: Arc<Vec<u8>>,
    /// The number of available bytes. If the file was cut off, this number is less than the length of the content.
    length: usize,
    changed: BTreeMap<u32, Arc<PageBytes>>,
}

impl Content {
    fn page(&self, page: u32) -> Option<&PageBytes> {
        let at = (page as usize).checked_mul(PAGE_BYTES)?;
        if at.checked_add(PAGE_BYTES)? > self.length {
            return None;
        }
        match self.changed.get(&page) {
            Some(changed) => Some(changed),
            None => self.bytes.get(at..)?.first_chunk(),
        }
    }

    fn describe(&self) -> Result<Option<DataFile>, OpenError> {
        if self.length == 0 {
            return Err(OpenError::Empty { path: self.path.clone() });
        }
        let mut start = Vec::with_capacity(IDENTIFY_BYTES);
        for page in 0..(IDENTIFY_BYTES / PAGE_BYTES) as u32 {
            match self.page(page) {
                Some(bytes) => start.extend_from_slice(bytes),
                None => {
                    let rest = self.length.min(self.bytes.len());
                    start.extend_from_slice(self.bytes.get(start.len()..rest).unwrap_or_default());
                    break;
                }
            }
        }
        describe(&self.path, &start, self.length as u64, self)
    }
}

impl ReadAt for Content {
    /// Reads whole pages: only places of pages are read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (page, within) = (offset / PAGE_BYTES as u64, (offset % PAGE_BYTES as u64) as usize);
        let bytes = u32::try_from(page).ok().and_then(|page| self.page(page)?.get(within..)).unwrap_or_default();
        let length = bytes.len().min(buffer.len());
        buffer.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Ok(length)
    }
}

impl MemoryFiles {
    /// Opens the files of one database, in any order; log files are ignored.
    ///
    /// # Errors
    /// [`OpenError`] if the files are not the data files of one database of SQL Server 2005 or later.
    pub fn open(files: Vec<(PathBuf, Vec<u8>)>) -> Result<Self, OpenError> {
        let contents = files.into_iter().map(|(path, bytes)| {
            let length = bytes.len();
            Content { path, bytes: Arc::new(bytes), length, changed: BTreeMap::new() }
        });
        Self::of(contents.collect())
    }

    fn of(contents: Vec<Content>) -> Result<Self, OpenError> {
        let mut opened = Vec::new();
        for content in contents {
            if let Some(file) = content.describe()? {
                opened.push((file, content));
            }
        }
        opened.sort_by(|(a, _), (b, _)| (a.file_id, &a.path).cmp(&(b.file_id, &b.path)));
        let (files, contents) = opened.into_iter().unzip();
        let this = Self { contents, files };
        check_one_database(&this)?;
        Ok(this)
    }

    /// Returns the same database, in which the pages of `changes` replace the old pages. Pages outside the files are
    /// ignored.
    ///
    /// # Errors
    /// [`OpenError`] if the changed files are no longer the data files of one database.
    pub fn with_pages(&self, changes: impl IntoIterator<Item = (PageId, PageBytes)>) -> Result<Self, OpenError> {
        let mut contents = self.contents.clone();
        let mut describes_itself = false;
        for (page, bytes) in changes {
            let position = self.files.iter().position(|file| file.file_id == page.file && page.page < file.pages);
            if let Some(content) = position.and_then(|at| contents.get_mut(at)) {
                content.changed.insert(page.page, Arc::new(bytes));
                describes_itself |= page.page < (IDENTIFY_BYTES / PAGE_BYTES) as u32 || page == PageId::BOOT;
            }
        }
        if describes_itself { Self::of(contents) } else { Ok(Self { contents, files: self.files.clone() }) }
    }

    /// The same database with one file cut off after `length` bytes.
    ///
    /// # Errors
    /// [`OpenError`] if the remaining bytes are not a data file.
    pub fn cut(&self, file_id: u16, length: usize) -> Result<Self, OpenError> {
        let mut contents = self.contents.clone();
        let position = self.files.iter().position(|file| file.file_id == file_id);
        if let Some(content) = position.and_then(|at| contents.get_mut(at)) {
            content.length = content.length.min(length);
        }
        Self::of(contents)
    }

    /// The path that the caller of [`Self::open`] gave for a file.
    pub fn path(&self, file_id: u16) -> Option<&Path> {
        self.file(file_id).map(|file| file.path.as_path())
    }
}

impl PageSource for MemoryFiles {
    fn files(&self) -> &[DataFile] {
        &self.files
    }

    fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let position = self.files.iter().position(|file| file.file_id == first.file);
        let Some(content) = position.and_then(|at| self.contents.get(at)) else {
            return Err(ReadError::NoSuchFile { file_id: first.file });
        };
        let mut read = 0;
        for place in buffer.chunks_exact_mut(PAGE_BYTES) {
            let Some(bytes) = first.page.checked_add(read as u32).and_then(|page| content.page(page)) else { break };
            place.copy_from_slice(bytes);
            read += 1;
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use format::page::HEADER_BYTES;

    /// The smallest content that is recognized as a data file: allocation maps with their page IDs.
    fn maps(file_id: u16) -> Vec<u8> {
        let mut bytes = vec![0; 12 * PAGE_BYTES];
        for (page, kind) in [(1u32, 11u8), (2, 8), (3, 9)] {
            let at = page as usize * PAGE_BYTES;
            bytes[at..at + 2].copy_from_slice(&[1, kind]);
            bytes[at + 32..at + 36].copy_from_slice(&page.to_le_bytes());
            bytes[at + 36..at + 38].copy_from_slice(&file_id.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn a_changed_page_leaves_the_original_as_it_was() {
        let original = MemoryFiles::open(vec![("a.mdf".into(), maps(1))]).expect("a data file");
        let mut page = [0; PAGE_BYTES];
        page[HEADER_BYTES] = 7;
        let changed = original.with_pages([(PageId::new(1, 5), page)]).expect("still a data file");
        let byte = |files: &MemoryFiles| files.read_page(PageId::new(1, 5)).expect("page 5")[HEADER_BYTES];
        assert_eq!((byte(&original), byte(&changed)), (0, 7));
        let mut both = [0; 2 * PAGE_BYTES];
        assert_eq!(changed.read(PageId::new(1, 4), &mut both).expect("readable"), 2);
        assert_eq!(both[PAGE_BYTES + HEADER_BYTES], 7);
    }

    #[test]
    fn files_are_identified_again_when_their_first_pages_change() {
        let original = MemoryFiles::open(vec![("a.mdf".into(), maps(1))]).expect("a data file");
        let nothing = (1..4).map(|page| (PageId::new(1, page), [0; PAGE_BYTES]));
        assert!(matches!(original.with_pages(nothing), Err(OpenError::NotADataFile { .. })));
        assert!(matches!(MemoryFiles::open(vec![("b.ndf".into(), maps(3))]), Err(OpenError::NoPrimary { .. })));
    }

    #[test]
    fn a_cut_file_ends_where_it_was_cut() {
        let original = MemoryFiles::open(vec![("a.mdf".into(), maps(1))]).expect("a data file");
        let cut = original.cut(1, 5 * PAGE_BYTES + 100).expect("still a data file");
        assert_eq!((cut.files()[0].pages, cut.files()[0].tail_bytes), (5, 100));
        assert!(cut.read_page(PageId::new(1, 5)).is_none());
        assert!(matches!(original.cut(1, 0), Err(OpenError::Empty { .. })));
    }
}
