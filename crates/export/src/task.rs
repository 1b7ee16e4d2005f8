//! The work of exporting a table: what its threads read, and what they share.

use std::io;
use std::sync::Mutex;

use catalog::Database;
use format::RecordId;
use rows::{RangeCounts, Scan, ScanOptions, Table, Value};
use source::PageSource;

use crate::target::Partial;
use crate::text_file::GapSink;

/// A table to be exported.
#[derive(Clone, Copy)]
pub struct TableSource<'a> {
    /// The source of the database's pages.
    pub pages: &'a dyn PageSource,
    /// The catalog of the database.
    pub database: &'a Database,
    /// The table.
    pub table: &'a Table,
    /// Options of the scan that reads the table.
    pub options: ScanOptions,
}

/// Totals of all threads. Each thread adds to them in its turn.
pub(crate) struct Totals {
    pub(crate) gaps: GapSink<Partial>,
    pub(crate) counts: RangeCounts,
}

/// A callback that receives the address and the values of a row.
pub type EachRow<'a> = dyn FnMut(RecordId, &[Value<'_>]) -> io::Result<()> + 'a;

/// The data that the threads share.
pub(crate) struct Task<'a> {
    pub(crate) source: TableSource<'a>,
    pub(crate) scan: Scan<'a>,
    pub(crate) threads: usize,
    pub(crate) totals: &'a Mutex<Totals>,
    pub(crate) progress: &'a (dyn Fn(u64) + Sync),
}
