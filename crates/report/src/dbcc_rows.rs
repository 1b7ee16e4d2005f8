//! Rows as DBCC DBINFO and DBCC PAGE print them WITH TABLERESULTS: ParentObject, Object, Field, VALUE.

use std::io;

use format::{Lsn, PageId};

use crate::server_text::lsn_text;
use crate::tableresults::io_error;

/// The cells of a row, one for each of the four columns ParentObject, Object, Field and VALUE.
pub(crate) type Row = [String; 4];

/// Writes rows as CSV, after a line with the names of the columns.
pub(crate) fn write(rows: impl IntoIterator<Item = Row>, out: &mut dyn io::Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(["ParentObject", "Object", "Field", "VALUE"]).map_err(io_error)?;
    for row in rows {
        csv.write_record(row).map_err(io_error)?;
    }
    csv.flush()
}

/// An LSN as DBCC prints it: `36:1587:1 (0x00000024:00000633:0001)`.
pub(crate) fn lsn(lsn: Lsn) -> String {
    format!("{}:{}:{} (0x{})", lsn.vlf, lsn.block, lsn.slot, lsn_text(lsn))
}

/// A page address in hexadecimal, as DBCC DBINFO prints it: `0001:00000014`.
pub(crate) fn first_page(page: PageId) -> String {
    format!("{:04x}:{:08x}", page.file, page.page)
}
