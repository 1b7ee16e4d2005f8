//! The pages of a database: as they are on disk, and as they are in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::frame::Frame;
use crate::disk::{file_id, file_index};
use crate::ids::{PAGE, PageId};
use crate::page::Lsn;

/// Pages of a file; copies share those that are the same.
pub(super) type FilePages = Vec<Arc<[u8; PAGE]>>;

/// The bytes of a file.
pub(super) fn bytes_of(pages: &FilePages) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pages.len() * PAGE);
    pages.iter().for_each(|page| bytes.extend_from_slice(&page[..]));
    bytes
}

/// All pages.
#[derive(Clone)]
pub(super) struct Pool {
    disk: Vec<FilePages>,
    frames: BTreeMap<PageId, Frame>,
    /// Changed pages that are not on disk yet, with the LSN of the first change.
    dirty: BTreeMap<PageId, Lsn>,
    /// Earlier versions of each page on disk, oldest first.
    earlier: BTreeMap<PageId, Vec<Arc<[u8; PAGE]>>>,
}

impl Pool {
    pub(super) fn new(disk: Vec<FilePages>) -> Self {
        Self { disk, frames: BTreeMap::new(), dirty: BTreeMap::new(), earlier: BTreeMap::new() }
    }

    /// Number of pages of a file.
    pub(super) fn pages(&self, file: u16) -> u32 {
        self.disk.get(file_index(file)).map_or(0, Vec::len) as u32
    }

    /// All pages of all files.
    pub(super) fn ids(&self) -> Vec<PageId> {
        let of_file = |(index, pages): (usize, &FilePages)| {
            (0..pages.len() as u32).map(|page| PageId::new(file_id(index), page)).collect::<Vec<_>>()
        };
        self.disk.iter().enumerate().flat_map(of_file).collect()
    }

    /// A page in memory.
    pub(super) fn frame(&mut self, id: PageId) -> &mut Frame {
        let disk = &self.disk;
        self.frames.entry(id).or_insert_with(|| Frame::read(&disk[file_index(id.file)][id.page as usize]))
    }

    /// Replaces a page in memory.
    pub(super) fn replace(&mut self, id: PageId, frame: Frame) {
        self.frames.insert(id, frame);
    }

    /// Notes that the record with this LSN changed a page.
    pub(super) fn touch(&mut self, id: PageId, lsn: Lsn) {
        self.dirty.entry(id).or_insert(lsn);
    }

    /// Changed pages that are not on disk yet, with the LSN of the first change.
    pub(super) fn dirty(&self) -> &BTreeMap<PageId, Lsn> {
        &self.dirty
    }

    /// Earlier versions of each page on disk, oldest first.
    pub(super) fn earlier(&self) -> &BTreeMap<PageId, Vec<Arc<[u8; PAGE]>>> {
        &self.earlier
    }

    /// Writes a page to disk.
    pub(super) fn flush(&mut self, id: PageId) {
        if let Some(frame) = self.frames.get(&id) {
            let place = &mut self.disk[file_index(id.file)][id.page as usize];
            let before = std::mem::replace(place, Arc::from(frame.bytes()));
            if Frame::read(&before).lsn() < frame.lsn() {
                self.earlier.entry(id).or_default().push(before);
            }
        }
        self.dirty.remove(&id);
    }

    /// The pages as they are on disk, by file.
    pub(super) fn disk(&self) -> &[FilePages] {
        &self.disk
    }

    /// The bytes of the files on disk.
    pub(super) fn files(&self) -> Vec<Vec<u8>> {
        self.disk.iter().map(bytes_of).collect()
    }
}
