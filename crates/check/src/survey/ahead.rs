//! Announces scattered pages to the page source before they are read. Storage with a high latency per page can then
//! fetch many pages in parallel.

use format::PageId;
use source::PageSource;

/// The number of pages that are announced ahead of the page that is being read.
const PAGES: usize = 256;

/// Announces pages before they are read.
pub(super) struct Ahead<'s, I> {
    source: &'s dyn PageSource,
    pages: I,
}

impl<'s, I: Iterator<Item = PageId>> Ahead<'s, I> {
    /// Announces the first pages of the sequence.
    pub(super) fn new(source: &'s dyn PageSource, mut pages: I) -> Self {
        pages.by_ref().take(PAGES).for_each(|page| source.prefetch(page, 1));
        Self { source, pages }
    }

    /// Announces one more page, because one of the announced pages is about to be read.
    pub(super) fn advance(&mut self) {
        if let Some(page) = self.pages.next() {
            self.source.prefetch(page, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use source::{DataFile, ReadError};

    use super::*;

    #[derive(Default)]
    struct Announced(Mutex<Vec<u32>>);

    impl PageSource for Announced {
        fn files(&self) -> &[DataFile] {
            &[]
        }

        fn read(&self, _: PageId, _: &mut [u8]) -> Result<usize, ReadError> {
            Ok(0)
        }

        fn prefetch(&self, first: PageId, pages: u32) {
            assert_eq!(pages, 1);
            self.0.lock().unwrap().push(first.page);
        }
    }

    #[test]
    fn each_page_is_announced_once_and_no_more_than_are_to_be_read_soon() {
        let source = Announced::default();
        let mut ahead = Ahead::new(&source, (0..1000).map(|page| PageId::new(1, page)));
        for read in 0..1000 {
            ahead.advance();
            let announced = source.0.lock().unwrap().len();
            assert_eq!(announced, (PAGES + 1 + read).min(1000), "before page {read} is read");
        }
        assert_eq!(*source.0.lock().unwrap(), (0..1000).collect::<Vec<_>>());
    }
}
