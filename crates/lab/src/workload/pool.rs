//! The pages of a database: their versions on disk and in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::frame::Frame;
use crate::disk::{file_id, file_index};
use crate::ids::{PAGE, PageId};
use crate::page::Lsn;

/// The pages of a file. Copies of this list share the memory of equal pages.
pub(super) type FilePages = Vec<Arc<[u8; PAGE]>>;

/// The bytes of a file.
pub(super) fn bytes_of(pages: &FilePages) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pages.len() * PAGE);
    pages.iter().for_each(|page| bytes.extend_from_slice(&page[..]));
    bytes
}

/// All pages of the database.
#[derive(Clone)]
pub(super) struct Pool {
    disk: Vec<FilePages>,
    frames: BTreeMap<PageId, Frame>,
    /// Pages with changes that are not on disk yet, each with the LSN of the first such change.
    dirty: BTreeMap<PageId, Lsn>,
    /// The versions of each page that were on disk earlier, from the oldest to the newest.
    earlier: BTreeMap<PageId, Vec<Arc<[u8; PAGE]>>>,
}

impl Pool {
    pub(super) fn new(disk: Vec<FilePages>) -> Self {
        Self { disk, frames: BTreeMap::new(), dirty: BTreeMap::new(), earlier: BTreeMap::new() }
    }

    /// The number of pages in a file.
    pub(super) fn pages(&self, file: u16) -> u32 {
        self.disk.get(file_index(file)).map_or(0, Vec::len) as u32
    }

    /// The addresses of all pages in all files.
    pub(super) fn ids(&self) -> Vec<PageId> {
        let of_file = |(index, pages): (usize, &FilePages)| {
            (0..pages.len() as u32).map(|page| PageId::new(file_id(index), page)).collect::<Vec<_>>()
        };
        self.disk.iter().enumerate().flat_map(of_file).collect()
    }

    /// A page in memory. If it is not in memory yet, it is read from disk.
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

    /// Pages with changes that are not on disk yet, each with the LSN of the first such change.
    pub(super) fn dirty(&self) -> &BTreeMap<PageId, Lsn> {
        &self.dirty
    }

    /// The versions of each page that were on disk earlier, from the oldest to the newest.
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

    /// The pages on disk, by file.
    pub(super) fn disk(&self) -> &[FilePages] {
        &self.disk
    }

    /// Changes the number of pages of a file. New pages are zero.
    pub(super) fn resize(&mut self, file: u16, pages: u32) {
        let is_kept = |page: &PageId| page.file != file || page.page < pages;
        self.frames.retain(|page, _| is_kept(page));
        self.dirty.retain(|page, _| is_kept(page));
        self.earlier.retain(|page, _| is_kept(page));
        self.disk[file_index(file)].resize_with(pages as usize, || Arc::new([0; PAGE]));
    }

    /// The bytes of the files on disk.
    pub(super) fn files(&self) -> Vec<Vec<u8>> {
        self.disk.iter().map(bytes_of).collect()
    }
}
