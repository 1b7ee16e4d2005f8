//! Reads the rows of single pages of a table and of its indexes.

use std::io;

use catalog::{Database, Fetched, fetch};
use format::PageId;
use source::PageSource;

use super::{EachValues, ReadPage, Which};
use crate::reader::Reader;
use crate::scan::ScanOptions;
use crate::table::Table;

/// Reads pages of a table and of its indexes.
pub(crate) struct PageReader<'a> {
    pages: &'a dyn PageSource,
    /// The table and its reader, then each index with its reader.
    readers: Vec<(&'a Table, Reader<'a>)>,
}

impl<'a> PageReader<'a> {
    pub(crate) fn new(pages: &'a dyn PageSource, database: &'a Database, tables: Vec<&'a Table>) -> Self {
        let reader = |table| (table, Reader::new(pages, database, table, ScanOptions::default()));
        Self { pages, readers: tables.into_iter().map(reader).collect() }
    }
}

impl ReadPage for PageReader<'_> {
    fn rows(&mut self, which: Which, partition: usize, page: PageId, each: &mut EachValues<'_>) -> io::Result<()> {
        let number = match which {
            Which::Table => 0,
            Which::Index(index) => index + 1,
        };
        let Some((table, reader)) = self.readers.get_mut(number) else { return Ok(()) };
        let Some(at) = table.partitions.iter().position(|own| *own == partition) else { return Ok(()) };
        let Fetched::Sound(bytes) = fetch(self.pages, page) else { return Ok(()) };
        reader.read_page(at, (page, &bytes), (None, false), &mut |row| each(row.place, row.values))?;
        Ok(())
    }
}
