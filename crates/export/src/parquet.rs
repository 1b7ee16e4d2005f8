//! Parquet files.
//!
//! A thread makes the columns of a row group in memory and encodes them; in its turn it adds them to the file. Where row groups
//! end follows from the rows alone, so that the file is the same for every number of threads and every grant.

mod lanes;
mod schema;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;
use rows::{RangeCounts, Reader};

use self::lanes::{Encoded, Lanes};
use crate::layout::Layout;
use crate::ordered::{Jobs, Turns, lock, run};
use crate::out::Gap;
use crate::table::{EachRow, Task};
use crate::target::Partial;
use crate::text_file::GapSink;

/// Pages of a job: as many as a row group of rows without off-row values has.
const JOB_PAGES: usize = 1024;
/// Bytes of values at which a row group ends. A row has at most as many.
const GROUP_BYTES: usize = 8 << 20;
/// Rows at which a row group ends.
const GROUP_ROWS: usize = 1 << 20;

/// A file that row groups are added to.
struct File {
    writer: SerializedFileWriter<Partial>,
    rows: u64,
}

impl File {
    fn new(schema: TypePtr, properties: &Arc<WriterProperties>, out: Partial) -> io::Result<Self> {
        let writer = SerializedFileWriter::new(out, schema, Arc::clone(properties)).map_err(failure)?;
        Ok(Self { writer, rows: 0 })
    }

    fn add(&mut self, group: Encoded) -> io::Result<()> {
        let mut out = self.writer.next_row_group().map_err(failure)?;
        for (bytes, closed) in group.columns {
            out.append_column(&bytes, closed).map_err(failure)?;
        }
        out.close().map_err(failure)?;
        self.rows += group.rows;
        Ok(())
    }

    fn finish(self) -> io::Result<(Partial, u64)> {
        // This writes the end of the file.
        Ok((self.writer.into_inner().map_err(failure)?, self.rows))
    }
}

/// The cause where it is one of the system: what a person needs to see is that the disk is full.
fn failure(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => *cause,
            Err(cause) => io::Error::other(cause.to_string()),
        },
        other => io::Error::other(other.to_string()),
    }
}

fn properties() -> Arc<WriterProperties> {
    let properties = WriterProperties::builder()
        .set_created_by("mdfsck".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_page_size_limit(64 << 10)
        .set_offset_index_disabled(true);
    Arc::new(properties.build())
}

/// Writes the rows of a table.
pub(crate) fn write(task: Task<'_>, layout: &Layout, out: Partial) -> io::Result<(Partial, u64)> {
    let properties = properties();
    let (schema, columns) = schema::of(layout).map_err(failure)?;
    let file = Mutex::new(File::new(schema, &properties, out)?);
    let Task { source, scan, threads, totals, progress } = task;
    let jobs = Jobs::new(scan, JOB_PAGES);
    run(threads, Turns::default(), &|turns| {
        let mut reader = Reader::new(source.pages, source.database, source.table, source.options);
        let mut lanes = Lanes::new(&columns, GROUP_BYTES);
        while let Some((number, ranges)) = jobs.next() {
            let mut counts = RangeCounts::default();
            let add = |lanes: &mut Lanes| {
                let (group, gaps) = lanes.encode(&columns, &properties).map_err(failure)?;
                turns.wait(number)?;
                let mut file = lock(&file);
                lock(totals).gaps.take(&gaps, file.rows)?;
                file.add(group)
            };
            for range in &ranges {
                let read = reader.read(range, &mut |row| {
                    lanes.row(row.place, row.values)?;
                    if lanes.bytes() >= GROUP_BYTES || lanes.rows() >= GROUP_ROWS { add(&mut lanes) } else { Ok(()) }
                })?;
                counts.add(&read);
                progress(range.pages.len() as u64);
            }
            if lanes.rows() > 0 {
                add(&mut lanes)?;
            }
            turns.wait(number)?;
            lock(totals).counts.add(&counts);
            turns.done(number);
        }
        Ok(())
    })?;
    file.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
}

/// Writes rows that are handed out one by one.
pub(crate) fn one_by_one(
    layout: &Layout,
    out: Partial,
    sink: &mut GapSink<Partial>,
    fill: &mut dyn FnMut(&mut EachRow<'_>) -> io::Result<()>,
) -> io::Result<(Partial, u64)> {
    let properties = properties();
    let (schema, columns) = schema::of(layout).map_err(failure)?;
    let mut file = File::new(schema, &properties, out)?;
    let mut lanes = Lanes::new(&columns, GROUP_BYTES);
    let mut add = |lanes: &mut Lanes| -> io::Result<()> {
        let (group, gaps): (Encoded, Vec<Gap>) = lanes.encode(&columns, &properties).map_err(failure)?;
        sink.take(&gaps, file.rows)?;
        file.add(group)
    };
    fill(&mut |place, values| {
        lanes.row(place, values)?;
        if lanes.bytes() >= GROUP_BYTES || lanes.rows() >= GROUP_ROWS { add(&mut lanes) } else { Ok(()) }
    })?;
    if lanes.rows() > 0 {
        add(&mut lanes)?;
    }
    file.finish()
}
