//! Delivers the rows that a normal scan of a table leaves out, with the reasons why they may not be current rows.

mod difference;
mod ghosts;
mod identity;
mod mend;
mod overlay;
mod owned;
mod page_reader;
mod rebuild;
mod request;
mod run;
mod strays;

use std::io;

use format::{PageId, RecordId};

use crate::value::Value;

pub use rebuild::Rebuilt;
pub use request::{Doubtful, Request, Salvaged, Sink};

pub use crate::page_set::PageSet;
pub use strays::{Stray, Strays, Unreached, foreign, reach, strays};

/// The table or the index from which rows are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    /// The table.
    Table,
    /// The nonclustered index of the table at this position.
    Index(usize),
}

/// A function that receives a row: its address and its values.
pub(crate) type EachValues<'s> = dyn FnMut(RecordId, &[Value<'_>]) -> io::Result<()> + 's;

/// Reads the rows of single pages.
pub(crate) trait ReadPage {
    /// Calls `each` with the rows of a page of a partition.
    fn rows(&mut self, which: Which, partition: usize, page: PageId, each: &mut EachValues<'_>) -> io::Result<()>;
}

/// Delivers the rows that the normal reading of a table leaves out.
///
/// Rows come in the order of their pages. Rows rebuilt from indexes come last, ordered by a hash of their locators. The
/// available memory does not affect either order.
///
/// # Errors
///
/// Errors of the sink.
pub fn salvage(request: &Request<'_>, sink: &mut dyn Sink) -> io::Result<Salvaged> {
    let overlay = overlay::Overlay::new(request.source);
    let indexes = run::indexes(request);
    let tables = std::iter::once(request.table).chain(indexes.iter().map(|index| &index.table)).collect();
    let mut reader = page_reader::PageReader::new(&overlay, request.database, tables);
    run::run(request, &overlay, &indexes, &mut reader, sink)
}
