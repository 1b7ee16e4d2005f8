//! The footer of a Parquet file, which describes every row group.
//!
//! The library would keep the descriptions of all row groups in memory, and a long table or many columns would need
//! unlimited memory. Here each description is kept in its encoded form. Descriptions beyond a limit go to a temporary
//! file.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

use parquet::basic::ColumnOrder;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::schema::types::SchemaDescPtr;

/// The maximum size in bytes of the descriptions that are kept in memory.
const MOST_IN_MEMORY: usize = 1 << 20;
/// The bytes after the footer: its length, and the magic bytes.
const TAIL_BYTES: usize = 8;
/// The header byte of a list of structs in Thrift's compact protocol, without the length. For a short list, the upper
/// four bits of the header byte are the length.
const STRUCTS: u8 = 0x0C;
/// The header byte of a list with one struct.
const ONE_STRUCT: u8 = 0x1C;
/// The upper four bits of the header byte for a longer list. The length of the list follows the header byte.
const LONG: u8 = 0xF0;
const LONGEST_SHORT: u64 = 14;

/// Collects the content of the footer.
pub(super) struct Footer {
    schema: SchemaDescPtr,
    properties: WriterPropertiesPtr,
    frame: Option<Frame>,
    /// The encoded descriptions of the row groups, one after another.
    described: Spool,
    groups: u64,
    rows: i64,
    last: Option<RowGroupMetaData>,
}

/// The encoded parts of a footer before and after the list of row groups.
struct Frame {
    /// The number of bytes before the list of row groups, without the bytes of the row count.
    before_bytes: usize,
    behind: Vec<u8>,
}

impl Footer {
    /// Creates a footer without row groups. Temporary files are created in `folder`.
    pub(super) fn new(schema: SchemaDescPtr, properties: WriterPropertiesPtr, folder: PathBuf) -> Self {
        let described = Spool { folder, bytes: Vec::new(), file: None };
        Self { schema, properties, frame: None, described, groups: 0, rows: 0, last: None }
    }

    /// The number of row groups.
    pub(super) fn groups(&self) -> u64 {
        self.groups
    }

    /// Adds a row group.
    pub(super) fn add(&mut self, group: &RowGroupMetaData) -> Result<()> {
        if self.frame.is_none() {
            self.frame = Some(self.frame_of(group.clone())?);
        }
        let whole = self.footer(vec![group.clone()])?;
        let (_, element) = self.split(&whole, group.num_rows())?;
        self.described.add(element)?;
        self.groups += 1;
        self.rows += group.num_rows();
        self.last = Some(group.clone());
        Ok(())
    }

    /// Writes the footer.
    pub(super) fn finish(mut self, out: &mut dyn Write) -> Result<()> {
        let Some(last) = self.last.take() else {
            out.write_all(&self.footer(Vec::new())?)?;
            return Ok(());
        };
        // The start of a footer contains the row count of the file. To get a start with the right count, this code
        // writes a footer for a single row group that has all rows.
        let whole = self.footer(vec![last.into_builder().set_num_rows(self.rows).build()?])?;
        let (before, _) = self.split(&whole, self.rows)?;
        let header = list_header(self.groups);
        let behind = self.frame.as_ref().map_or(&[][..], |frame| &frame.behind);
        let bytes = (before.len() + header.len() + behind.len()) as u64 + self.described.bytes()?;
        let bytes = u32::try_from(bytes)
            .map_err(|_| ParquetError::General("the metadata of all row groups is larger than 4 GB".to_owned()))?;
        out.write_all(before)?;
        out.write_all(&header)?;
        self.described.copy_to(out)?;
        out.write_all(behind)?;
        out.write_all(&bytes.to_le_bytes())?;
        out.write_all(whole.last_chunk::<4>().ok_or_else(unknown_form)?)?;
        Ok(())
    }

    /// Finds the bytes before and after the list of row groups by comparing two footers: one without row groups, and
    /// one with an empty row group.
    fn frame_of(&self, group: RowGroupMetaData) -> Result<Frame> {
        let (empty, one) =
            (self.footer(Vec::new())?, self.footer(vec![group.into_builder().set_num_rows(0).build()?])?);
        let at = empty.iter().zip(&one).position(|(a, b)| a != b).ok_or_else(unknown_form)?;
        let end = empty.len().checked_sub(TAIL_BYTES).ok_or_else(unknown_form)?;
        match (empty.get(at), one.get(at), empty.get(at + 1..end)) {
            (Some(&STRUCTS), Some(&ONE_STRUCT), Some(behind)) => {
                Ok(Frame { before_bytes: at - varint_bytes(0), behind: behind.to_vec() })
            }
            _ => Err(unknown_form()),
        }
    }

    /// Splits the footer of a file with `rows` rows in one row group. Returns the bytes before the list of row groups,
    /// and the bytes of the only element in the list.
    fn split<'w>(&self, whole: &'w [u8], rows: i64) -> Result<(&'w [u8], &'w [u8])> {
        let split = || {
            let frame = self.frame.as_ref()?;
            let end = whole.len().checked_sub(TAIL_BYTES)?;
            let (before, list) = whole.get(..end)?.split_at_checked(frame.before_bytes + varint_bytes(rows))?;
            let (header, rest) = list.split_first()?;
            let element = rest.strip_suffix(frame.behind.as_slice())?;
            (*header == ONE_STRUCT).then_some((before, element))
        };
        split().ok_or_else(unknown_form)
    }

    /// The footer of a file with these row groups, as the library writes it.
    fn footer(&self, groups: Vec<RowGroupMetaData>) -> Result<Vec<u8>> {
        let order = |column: &parquet::schema::types::ColumnDescPtr| {
            ColumnOrder::column_order_for_type(
                column.logical_type_ref(),
                column.converted_type(),
                column.physical_type(),
            )
        };
        let file = FileMetaData::new(
            self.properties.writer_version().as_num(),
            0,
            Some(self.properties.created_by().to_owned()),
            None,
            self.schema.clone(),
            Some(self.schema.columns().iter().map(order).collect()),
        );
        let mut bytes = Vec::new();
        ParquetMetaDataWriter::new(&mut bytes, &ParquetMetaData::new(file, groups)).finish()?;
        Ok(bytes)
    }
}

/// The number of bytes of a row count in Thrift's variable-length encoding. Each byte holds seven bits of the encoded
/// number, and the lowest bit of this number is the sign.
fn varint_bytes(rows: i64) -> usize {
    let bits = u64::BITS - (rows.unsigned_abs() << 1).leading_zeros();
    bits.div_ceil(7).max(1) as usize
}

/// The header of a list of `count` structs.
fn list_header(count: u64) -> Vec<u8> {
    if count <= LONGEST_SHORT {
        return vec![(count as u8) << 4 | STRUCTS];
    }
    let (mut header, mut rest) = (vec![LONG | STRUCTS], count);
    while rest >= 0x80 {
        header.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    header.push(rest as u8);
    header
}

fn unknown_form() -> ParquetError {
    ParquetError::General("the footer of the file has an unknown format".to_owned())
}

/// A sequence of bytes that is kept in memory up to a limit, and in a temporary file beyond it.
struct Spool {
    folder: PathBuf,
    bytes: Vec<u8>,
    file: Option<File>,
}

impl Spool {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() < MOST_IN_MEMORY {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile_in(&self.folder)?),
        };
        file.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }

    fn bytes(&mut self) -> io::Result<u64> {
        let in_file = self.file.as_mut().map_or(Ok(0), Seek::stream_position)?;
        Ok(in_file + self.bytes.len() as u64)
    }

    fn copy_to(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            let written = file.stream_position()?;
            file.rewind()?;
            let copied = io::copy(&mut file.take(written), out)?;
            if copied != written {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        out.write_all(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_numbers_are_as_long_as_thrift_writes_them() {
        assert_eq!(list_header(0), [0x0C]);
        assert_eq!(list_header(14), [0xEC]);
        assert_eq!(list_header(15), [0xFC, 15]);
        assert_eq!(list_header(300), [0xFC, 0xAC, 2]);
        for (rows, bytes) in [(0, 1), (63, 1), (64, 2), (8191, 2), (8192, 3), (i64::MAX, 10)] {
            assert_eq!(varint_bytes(rows), bytes, "{rows}");
        }
    }
}
