//! A data file in memory that tests can change page by page.
#![allow(clippy::unwrap_used)]

use format::{PAGE_BYTES, PageBytes};
use lab::Description;
use trials::mutate::seal;

/// A data file in memory.
#[derive(Clone)]
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
}

impl Image {
    /// Writes a database into `folder`, and reads its first file.
    pub(crate) fn write(description: &Description, folder: &std::path::Path) -> Self {
        let files = lab::write(description, folder).unwrap().files;
        Self { bytes: std::fs::read(&files[0]).unwrap() }
    }

    pub(crate) fn pages(&self) -> u32 {
        (self.bytes.len() / PAGE_BYTES) as u32
    }

    pub(crate) fn page(&self, page: u32) -> &PageBytes {
        self.bytes[page as usize * PAGE_BYTES..].first_chunk().unwrap()
    }

    /// Changes a page in its form on disk, and corrects its checksum.
    pub(crate) fn edit(&mut self, page: u32, change: impl FnOnce(&mut PageBytes)) {
        let bytes = self.bytes[page as usize * PAGE_BYTES..].first_chunk_mut().unwrap();
        change(bytes);
        seal(bytes);
    }
}
