//! Parquet files.
//!
//! Each thread collects the columns of a row group in memory, encodes them, and appends them to the file in its turn.
//! The boundaries of row groups depend only on the rows, so the file is the same for any number of threads and any
//! amount of memory.

mod chunk;
mod dictionary;
mod footer;
mod hybrid;
mod lanes;
mod plain;
mod range;
mod schema;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::TrackedWrite;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, TypePtr};
use rows::{RangeCounts, Reader};

use self::footer::Footer;
use self::lanes::{Encoded, Lanes};
use crate::layout::Layout;
use crate::ordered::{Jobs, Turns, lock, run};
use crate::out::Gap;
use crate::target::Partial;
use crate::task::{EachRow, Task};
use crate::text_file::GapSink;

/// Pages per job: enough to fill a row group with rows that have no off-row values.
const JOB_PAGES: usize = 1024;
/// The approximate size of the values of a row group, and the maximum size of the values of a row, in bytes.
const GROUP_BYTES: usize = 8 << 20;
/// The bytes with which every file begins and ends.
const MAGIC: &[u8] = b"PAR1";

/// A file to which row groups are appended.
struct File<W: Write + Send> {
    out: TrackedWrite<W>,
    schema: SchemaDescPtr,
    footer: Footer,
    rows: u64,
}

impl<W: Write + Send> File<W> {
    fn new(schema: TypePtr, properties: &WriterPropertiesPtr, folder: PathBuf, out: W) -> io::Result<Self> {
        let schema = Arc::new(SchemaDescriptor::new(schema));
        let mut out = TrackedWrite::new(out);
        out.write_all(MAGIC)?;
        let footer = Footer::new(Arc::clone(&schema), Arc::clone(properties), folder);
        Ok(Self { out, schema, footer, rows: 0 })
    }

    fn add(&mut self, group: Encoded) -> io::Result<()> {
        let number = i32::try_from(self.footer.groups()).map_err(io::Error::other)?;
        let start = self.out.bytes_written() as i64;
        let mut described = RowGroupMetaData::builder(Arc::clone(&self.schema));
        let mut bytes = 0;
        for chunk in group.columns {
            let at = self.out.bytes_written() as i64;
            self.out.write_all(&chunk.bytes)?;
            bytes += chunk.described.uncompressed_size();
            let (data, dictionary) = (chunk.described.data_page_offset(), chunk.described.dictionary_page_offset());
            let placed = chunk.described.into_builder().set_data_page_offset(at + data);
            let placed = placed.set_dictionary_page_offset(dictionary.map(|dictionary| at + dictionary));
            described = described.add_column_metadata(placed.build().map_err(failure)?);
        }
        let described = described.set_num_rows(group.rows as i64).set_total_byte_size(bytes);
        let described = described.set_ordinal(number).set_file_offset(start).build().map_err(failure)?;
        self.footer.add(&described).map_err(failure)?;
        self.rows += group.rows;
        Ok(())
    }

    fn finish(mut self) -> io::Result<(W, u64)> {
        self.footer.finish(&mut self.out).map_err(failure)?;
        self.out.flush()?;
        Ok((self.out.into_inner().map_err(failure)?, self.rows))
    }
}

/// Returns the operating system's error if it caused the failure, so that the user sees, for example, that the disk is
/// full.
fn failure(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => *cause,
            Err(cause) => io::Error::other(cause.to_string()),
        },
        other => io::Error::other(other.to_string()),
    }
}

fn properties() -> WriterPropertiesPtr {
    Arc::new(WriterProperties::builder().set_created_by("mdfsck".to_owned()).build())
}

/// Writes the rows of a table.
pub(crate) fn write(task: Task<'_>, layout: &Layout, out: Partial) -> io::Result<(Partial, u64)> {
    let properties = properties();
    let (schema, columns) = schema::of(layout).map_err(failure)?;
    let file = Mutex::new(File::new(schema, &properties, out.folder(), out)?);
    let Task { source, scan, threads, totals, progress } = task;
    let jobs = Jobs::new(scan, JOB_PAGES);
    run(threads, Turns::default(), &|turns| {
        let mut reader = Reader::new(source.pages, source.database, source.table, source.options);
        let mut lanes = Lanes::new(&columns, GROUP_BYTES);
        while let Some((number, ranges)) = jobs.next() {
            let mut counts = RangeCounts::default();
            let add = |lanes: &mut Lanes| {
                let (group, gaps) = lanes.encode(&columns).map_err(failure)?;
                turns.wait(number)?;
                let mut file = lock(&file);
                lock(totals).gaps.take(&gaps, file.rows)?;
                file.add(group)
            };
            for range in &ranges {
                let read = reader.read(range, &mut |row| {
                    lanes.row(row.place, row.values)?;
                    if lanes.is_full() { add(&mut lanes) } else { Ok(()) }
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

/// Writes rows that the caller delivers one by one.
pub(crate) fn one_by_one(
    layout: &Layout,
    out: Partial,
    sink: &mut GapSink<Partial>,
    fill: &mut dyn FnMut(&mut EachRow<'_>) -> io::Result<()>,
) -> io::Result<(Partial, u64)> {
    let properties = properties();
    let (schema, columns) = schema::of(layout).map_err(failure)?;
    let mut file = File::new(schema, &properties, out.folder(), out)?;
    let mut lanes = Lanes::new(&columns, GROUP_BYTES);
    let mut add = |lanes: &mut Lanes| -> io::Result<()> {
        let (group, gaps): (Encoded, Vec<Gap>) = lanes.encode(&columns).map_err(failure)?;
        sink.take(&gaps, file.rows)?;
        file.add(group)
    };
    fill(&mut |place, values| {
        lanes.row(place, values)?;
        if lanes.is_full() { add(&mut lanes) } else { Ok(()) }
    })?;
    if lanes.rows() > 0 {
        add(&mut lanes)?;
    }
    file.finish()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use parquet::column::writer::ColumnCloseResult;
    use parquet::file::writer::SerializedFileWriter;
    use rows::Value;

    use super::*;
    use crate::layout::{Field, Kind};

    /// Writes a file of `groups` row groups with one row each.
    fn written(groups: usize, write: impl FnOnce(TypePtr, &WriterPropertiesPtr, Vec<Encoded>) -> Vec<u8>) -> Vec<u8> {
        let kinds = [Kind::Text, Kind::Integer { bits: 64 }, Kind::Decimal { precision: 38, scale: 2 }];
        let field = |(source, kind): (usize, Kind)| Field { name: format!("c{source}"), kind, source, column_id: 1 };
        let layout = Layout { fields: kinds.into_iter().enumerate().map(field).collect(), computed: Vec::new() };
        let properties = properties();
        let (schema, columns) = schema::of(&layout).unwrap();
        let mut lanes = Lanes::new(&columns, GROUP_BYTES);
        let encoded = (0..groups).map(|number| {
            let text = format!("row {number}");
            let decimal = Value::Decimal { unscaled: number as i128, scale: 2 };
            let row = [Value::Text(text.as_str().into()), Value::Integer(number as i64), decimal];
            lanes.row(format::RecordId::default(), &row).unwrap();
            lanes.encode(&columns).unwrap().0
        });
        let encoded = encoded.collect();
        write(schema, &properties, encoded)
    }

    #[test]
    fn a_file_is_the_one_that_the_library_writes_with_any_number_of_row_groups() {
        let folder = tempfile::tempdir().unwrap();
        // The descriptions of 5000 row groups exceed the memory limit of the footer and go to a temporary file.
        for groups in [0, 1, 2, 14, 15, 200, 5000] {
            let ours = written(groups, |schema, properties, encoded| {
                let mut file = File::new(schema, properties, folder.path().to_owned(), Vec::new()).unwrap();
                encoded.into_iter().for_each(|group| file.add(group).unwrap());
                let (bytes, rows) = file.finish().unwrap();
                assert_eq!(rows, groups as u64);
                bytes
            });
            let theirs = written(groups, |schema, properties, encoded| {
                let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::clone(properties)).unwrap();
                for group in encoded {
                    let mut out = writer.next_row_group().unwrap();
                    for chunk in group.columns {
                        let closed = ColumnCloseResult {
                            bytes_written: chunk.bytes.len() as u64,
                            rows_written: 1,
                            metadata: chunk.described,
                            bloom_filter: None,
                            column_index: None,
                            offset_index: None,
                        };
                        out.append_column(&Bytes::from(chunk.bytes), closed).unwrap();
                    }
                    out.close().unwrap();
                }
                writer.into_inner().unwrap()
            });
            assert!(ours == theirs, "{groups} row groups");
        }
    }
}
