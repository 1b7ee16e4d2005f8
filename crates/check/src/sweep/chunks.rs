//! The chunks in which files are read, numbered in page order. A chunk is computed from its number, not looked up in a
//! list.

use findings::FileRange;
use format::PageId;

use crate::survey::FileMap;
use crate::sweep::memory::CHUNK_PAGES;

/// Consecutive pages that are read in one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Chunk {
    pub(super) first: PageId,
    pub(super) pages: u32,
}

impl Chunk {
    /// Splits the chunk into its first `pages` pages and the remainder. If `pages` is greater than 1, the remainder is
    /// never a single page: a failed read of several pages is repeated page by page, but a failed read of a single page
    /// would not be repeated.
    pub(super) fn split(self, pages: u32) -> (Self, Option<Self>) {
        let pages = match self.pages.checked_sub(pages) {
            None | Some(0) => self.pages,
            Some(1) if pages > 1 => pages - 1,
            Some(_) => pages.max(1),
        };
        let first = PageId::new(self.first.file, self.first.page.saturating_add(pages));
        let rest = Self { first, pages: self.pages - pages };
        (Self { pages, ..self }, Some(rest).filter(|rest| rest.pages > 0))
    }
}

/// All chunks of the files, or of a range of pages.
pub(super) struct Chunks {
    /// The page ranges, each with the number of its first chunk.
    files: Vec<(FileRange, u64)>,
    count: u64,
}

impl Chunks {
    /// Divides `files` into chunks, or only `range` if it is given.
    pub(super) fn of(files: &[FileMap], range: Option<FileRange>) -> Self {
        let mut count = 0;
        let mut list = Vec::new();
        for file in files {
            let whole = FileRange { file_id: file.file_id, first: 0, pages: file.pages };
            let pages = match range {
                None => whole,
                Some(range) if range.file_id == file.file_id && range.end() <= file.pages => range,
                Some(_) => continue,
            };
            list.push((pages, count));
            count += u64::from(pages.pages.div_ceil(CHUNK_PAGES));
        }
        Self { files: list, count }
    }

    /// Divides these ranges into chunks. The ranges are ascending and do not overlap.
    pub(super) fn of_ranges(ranges: &[FileRange]) -> Self {
        let mut count = 0;
        let with_first = |range: &FileRange| {
            let first = count;
            count += u64::from(range.pages.div_ceil(CHUNK_PAGES));
            (*range, first)
        };
        let files = ranges.iter().map(with_first).collect();
        Self { files, count }
    }

    /// The numbers of all chunks.
    pub(super) fn all(&self) -> std::ops::Range<u64> {
        0..self.count
    }

    /// The number of chunks.
    pub(super) fn count(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }

    /// For each file, the numbers of its chunks.
    pub(super) fn by_file(&self) -> Vec<std::ops::Range<u64>> {
        let end = |&(range, first): &(FileRange, u64)| first + u64::from(range.pages.div_ceil(CHUNK_PAGES));
        let files = self.files.chunk_by(|(one, _), (other, _)| one.file_id == other.file_id);
        files.filter_map(|ranges| Some(ranges.first()?.1..end(ranges.last()?))).collect()
    }

    /// The number of pages in all chunks.
    pub(super) fn pages(&self) -> u64 {
        self.files.iter().map(|(range, _)| u64::from(range.pages)).sum()
    }

    /// The chunk with this number.
    pub(super) fn get(&self, number: u64) -> Option<Chunk> {
        let at = self.files.partition_point(|(_, first)| *first <= number).checked_sub(1)?;
        let &(range, first) = self.files.get(at)?;
        let skipped =
            u32::try_from((number - first) * u64::from(CHUNK_PAGES)).ok().filter(|page| *page < range.pages)?;
        let pages = CHUNK_PAGES.min(range.pages - skipped);
        Some(Chunk { first: PageId::new(range.file_id, range.first + skipped), pages })
    }
}
