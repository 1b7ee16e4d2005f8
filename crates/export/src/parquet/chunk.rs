//! A column of a row group in the form that the file stores.
//!
//! The library would write values one at a time, each as a separate object. Here the values are collected in the form
//! that a page stores, so that writing a page only copies bytes. The library only writes the descriptions of pages and
//! columns.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

use super::dictionary::Dictionary;
use super::plain::{Plain, Presence};
use super::schema::{FileColumn, Part};
use super::{hybrid, range};

/// A page ends when its values have at least this many bytes, so that the page fits into the processor's cache.
const PAGE_BYTES: usize = 256 << 10;
/// The maximum number of rows on a page; a multiple of eight.
const PAGE_ROWS: usize = 128 << 10;
/// Bytes of a column that are compressed as a sample, to decide whether compression is worthwhile.
const SAMPLE_BYTES: usize = 16 << 10;

/// A column of a row group.
pub(super) struct Chunk {
    /// The pages of the column.
    pub(super) bytes: Vec<u8>,
    /// The description of the column for the footer of the file, with page offsets into `bytes`.
    pub(super) described: ColumnChunkMetaData,
}

/// Encodes columns one after another, and reuses its allocations for each column.
pub(super) struct ChunkEncoder {
    snappy: snap::raw::Encoder,
    compressed: Vec<u8>,
}

/// The beginning or end of a page.
#[derive(Clone, Copy, Default)]
struct Place {
    row: usize,
    value: usize,
    byte: usize,
}

impl ChunkEncoder {
    /// Creates an encoder without allocations.
    pub(super) fn new() -> Self {
        Self { snappy: snap::raw::Encoder::new(), compressed: Vec::new() }
    }

    /// Encodes the values of one column.
    pub(super) fn encode(&mut self, column: &FileColumn, plain: &Plain, presence: &Presence) -> Result<Chunk> {
        let dictionary = if column.part == Part::Bool { None } else { Dictionary::of(plain) };
        let mut pages = Pages { out: TrackedWrite::new(Vec::new()), encoder: self, codec: None, uncompressed: 0 };
        let (mut from, mut count, mut data_offset) = (Place::default(), 0, 0);
        let encoding = if dictionary.is_some() { Encoding::RLE_DICTIONARY } else { Encoding::PLAIN };
        while from.row < presence.rows() {
            let to = page_end(from, plain, presence);
            let mut body = Vec::with_capacity(to.byte - from.byte + (to.row - from.row) / 8 + 64);
            hybrid::levels(&mut body, presence.bits(from.row..to.row), to.row - from.row);
            match &dictionary {
                Some(dictionary) => {
                    let numbers = dictionary.numbers.get(from.value..to.value).unwrap_or_default();
                    body.push(dictionary.width() as u8);
                    hybrid::numbers(&mut body, numbers, dictionary.width());
                }
                None => {
                    let values = plain.bytes.get(from.byte..to.byte).unwrap_or_default();
                    match column.part {
                        Part::Bool => hybrid::booleans(&mut body, values),
                        _ => body.extend_from_slice(values),
                    }
                }
            }
            if count == 0 {
                pages.choose(&body);
                if let Some(dictionary) = &dictionary {
                    pages.dictionary(dictionary)?;
                }
                data_offset = pages.out.bytes_written() as i64;
            }
            pages.data(body, to.row - from.row, encoding)?;
            count += 1;
            from = to;
        }
        let (codec, uncompressed) = (pages.codec.unwrap_or(Compression::UNCOMPRESSED), pages.uncompressed);
        let bytes = pages.out.into_inner()?;
        let mut encodings = vec![Encoding::PLAIN, Encoding::RLE];
        let mut page_kinds = vec![PageEncodingStats { page_type: PageType::DATA_PAGE, encoding, count }];
        if dictionary.is_some() {
            encodings.push(Encoding::RLE_DICTIONARY);
            let kind = PageEncodingStats { page_type: PageType::DICTIONARY_PAGE, encoding: Encoding::PLAIN, count: 1 };
            page_kinds.insert(0, kind);
        }
        let different = dictionary.as_ref().map_or(plain, |dictionary| &dictionary.values);
        let described = ColumnChunkMetaData::builder(column.descriptor.clone())
            .set_compression(codec)
            .set_encodings(encodings)
            .set_page_encoding_stats(page_kinds)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(uncompressed as i64)
            .set_num_values(presence.rows() as i64)
            .set_data_page_offset(data_offset)
            .set_dictionary_page_offset(dictionary.as_ref().map(|_| 0))
            .set_statistics(range::statistics(column.part, different, presence.nulls))
            .build()?;
        Ok(Chunk { bytes, described })
    }

    fn compress(&mut self, bytes: &[u8]) -> Result<&[u8]> {
        let most = snap::raw::max_compress_len(bytes.len());
        if self.compressed.len() < most {
            self.compressed.resize(most, 0);
        }
        let failure = |error: snap::Error| ParquetError::General(error.to_string());
        let length = self.snappy.compress(bytes, &mut self.compressed).map_err(failure)?;
        Ok(self.compressed.get(..length).unwrap_or_default())
    }
}

/// The end of the page that begins at `from`. The page has a multiple of eight rows, so that its presence bits fill
/// whole bytes. Only the page with the last row may have another number of rows.
fn page_end(from: Place, plain: &Plain, presence: &Presence) -> Place {
    let mut to = from;
    while to.row < presence.rows() && to.byte - from.byte < PAGE_BYTES && to.row - from.row < PAGE_ROWS {
        let present = presence.present(to.row);
        to.byte += plain.extent_of(to.byte, present);
        to.value += present;
        to.row = (to.row + 8).min(presence.rows());
    }
    to
}

/// The pages of a column.
struct Pages<'e> {
    out: TrackedWrite<Vec<u8>>,
    encoder: &'e mut ChunkEncoder,
    codec: Option<Compression>,
    uncompressed: usize,
}

impl Pages<'_> {
    /// Decides from the start of the first page whether to compress the column. The column is compressed only if the
    /// sample shrinks by at least a quarter. For a smaller gain, compression would take more time than the whole export
    /// without compression.
    fn choose(&mut self, body: &[u8]) {
        let sample = body.get(..SAMPLE_BYTES).unwrap_or(body);
        let is_compressible = self.encoder.compress(sample).is_ok_and(|bytes| bytes.len() * 4 <= sample.len() * 3);
        self.codec = Some(if is_compressible { Compression::SNAPPY } else { Compression::UNCOMPRESSED });
    }

    fn dictionary(&mut self, dictionary: &Dictionary) -> Result<()> {
        let num_values = dictionary.count.into();
        self.write(dictionary.values.bytes.clone(), |buf| Page::DictionaryPage {
            buf,
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        })
    }

    fn data(&mut self, body: Vec<u8>, rows: usize, encoding: Encoding) -> Result<()> {
        self.write(body, |buf| Page::DataPage {
            buf,
            num_values: rows as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        })
    }

    fn write(&mut self, body: Vec<u8>, page: impl FnOnce(Bytes) -> Page) -> Result<()> {
        let bytes = body.len();
        let body = match self.codec {
            Some(Compression::SNAPPY) => Bytes::copy_from_slice(self.encoder.compress(&body)?),
            _ => Bytes::from(body),
        };
        let spec = SerializedPageWriter::new(&mut self.out).write_page(CompressedPage::new(page(body), bytes))?;
        self.uncompressed += spec.uncompressed_size;
        Ok(())
    }
}
