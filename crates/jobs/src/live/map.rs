//! A map of the pages that a check has finished in each file, in cells of equal size.

use std::sync::atomic::{AtomicU32, Ordering};

use format::PageId;
use history::progress::{MOST_CELLS, MOST_FILES, Swept, SweptFile};
use source::DataFile;

/// Minimum number of pages per cell. The sweep reads this number of pages at a time.
const LEAST_PAGES: u32 = 128;

/// The files, with the number of finished pages in each cell.
pub(super) struct Map {
    files: Vec<File>,
    /// The binary logarithm of the number of pages per cell.
    shift: u32,
}

struct File {
    file: u16,
    pages: u32,
    done: Vec<AtomicU32>,
}

impl Map {
    /// An empty map of `files` with at most [`MOST_CELLS`] cells.
    pub(super) fn of(files: &[DataFile]) -> Self {
        let shown = files.get(..MOST_FILES).unwrap_or(files);
        Self::of_sizes(shown.iter().map(|file| (file.file_id, file.pages)))
    }

    fn of_sizes(files: impl Iterator<Item = (u16, u32)> + Clone) -> Self {
        let mut shift = LEAST_PAGES.ilog2();
        let cells = |shift: u32| -> u64 { files.clone().map(|(_, pages)| u64::from(cells_of(pages, shift))).sum() };
        while cells(shift) > MOST_CELLS as u64 && shift < u32::BITS - 1 {
            shift += 1;
        }
        let done = |pages| (0..cells_of(pages, shift)).map(|_| AtomicU32::new(0)).collect();
        Self { files: files.map(|(file, pages)| File { file, pages, done: done(pages) }).collect(), shift }
    }

    /// Marks `pages` pages as finished. The first of them is `first`.
    pub(super) fn swept(&self, first: PageId, pages: u32) {
        let Some(file) = self.files.iter().find(|file| file.file == first.file) else { return };
        let end = first.page.saturating_add(pages).min(file.pages);
        let mut page = first.page;
        while page < end {
            let cell = page >> self.shift;
            let next = u64::from(cell + 1) << self.shift;
            let next = u32::try_from(next).unwrap_or(u32::MAX).min(end);
            if let Some(done) = file.done.get(cell as usize) {
                done.fetch_add(next - page, Ordering::Relaxed);
            }
            page = next;
        }
    }

    /// Marks all pages as unfinished. Called before the check reads the files another time.
    pub(super) fn clear(&self) {
        self.files.iter().flat_map(|file| &file.done).for_each(|done| done.store(0, Ordering::Relaxed));
    }

    /// The current state of the map.
    pub(super) fn files(&self) -> Vec<SweptFile> {
        let cell_pages = 1 << self.shift;
        let files = self.files.iter().map(|file| {
            let cell = |(at, done): (usize, &AtomicU32)| {
                let first = (at as u32).saturating_mul(cell_pages);
                match done.load(Ordering::Relaxed) {
                    0 => Swept::Nothing,
                    done if done >= cell_pages.min(file.pages - first.min(file.pages)) => Swept::All,
                    _ => Swept::Some,
                }
            };
            let cells = file.done.iter().enumerate().map(cell).collect();
            SweptFile { file: file.file, pages: file.pages, cell_pages, cells }
        });
        files.collect()
    }
}

fn cells_of(pages: u32, shift: u32) -> u32 {
    pages.div_ceil(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_fills_up_and_has_a_bounded_number_of_cells() {
        let map = Map::of_sizes([(1, 1000), (3, 129)].into_iter());
        map.swept(PageId::new(1, 0), 128);
        map.swept(PageId::new(1, 896), 104);
        map.swept(PageId::new(1, 250), 10);
        map.swept(PageId::new(3, 0), 200);
        map.swept(PageId::new(2, 0), 200);
        map.swept(PageId::new(3, u32::MAX), u32::MAX);
        let files = map.files();
        let (all, some, none) = (Swept::All, Swept::Some, Swept::Nothing);
        assert_eq!((files[0].cell_pages, files[0].pages), (128, 1000));
        assert_eq!(files[0].cells, [all, some, some, none, none, none, none, all]);
        assert_eq!(files[1].cells, [all, all]);
        map.clear();
        assert!(map.files().iter().flat_map(|file| &file.cells).all(|cell| *cell == none));
        for sizes in [vec![(1, u32::MAX)], (1..=MOST_FILES as u16).map(|file| (file, u32::MAX)).collect(), vec![(1, 0)]]
        {
            let map = Map::of_sizes(sizes.iter().copied());
            let cells: usize = map.files().iter().map(|file| file.cells.len()).sum();
            assert!(cells <= MOST_CELLS, "{cells}");
            map.swept(PageId::new(1, 0), u32::MAX);
            assert!(map.files()[0].cells.iter().all(|cell| *cell == all));
        }
    }
}
