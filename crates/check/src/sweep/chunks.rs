//! The pieces in which files are read: in page order, and numbered without a list of them.

use format::PageId;

use crate::memory::CHUNK_PAGES;
use crate::survey::FileMap;

/// Pages that are read in one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Chunk {
    pub(super) first: PageId,
    pub(super) pages: u32,
}

/// All chunks of the files.
pub(super) struct Chunks {
    /// File id, pages, number of the first chunk.
    files: Vec<(u16, u32, u64)>,
    count: u64,
}

impl Chunks {
    /// The chunks of `files`.
    pub(super) fn of(files: &[FileMap]) -> Self {
        let mut count = 0;
        let mut list = Vec::new();
        for file in files {
            list.push((file.file_id, file.pages, count));
            count += u64::from(file.pages.div_ceil(CHUNK_PAGES));
        }
        Self { files: list, count }
    }

    /// The numbers of all chunks.
    pub(super) fn all(&self) -> std::ops::Range<u64> {
        0..self.count
    }

    /// The numbers of each file's chunks.
    pub(super) fn by_file(&self) -> Vec<std::ops::Range<u64>> {
        let chunks = |&(_, pages, first): &(u16, u32, u64)| first..first + u64::from(pages.div_ceil(CHUNK_PAGES));
        self.files.iter().map(chunks).collect()
    }

    /// Pages in all chunks.
    pub(super) fn pages(&self) -> u64 {
        self.files.iter().map(|(_, pages, _)| u64::from(*pages)).sum()
    }

    /// The chunk with a number.
    pub(super) fn get(&self, number: u64) -> Option<Chunk> {
        let at = self.files.partition_point(|(_, _, first)| *first <= number).checked_sub(1)?;
        let &(file, pages, first) = self.files.get(at)?;
        let page = u32::try_from((number - first) * u64::from(CHUNK_PAGES)).ok().filter(|page| *page < pages)?;
        Some(Chunk { first: PageId::new(file, page), pages: CHUNK_PAGES.min(pages - page) })
    }
}
