//! Writes a tape: a sequence of descriptor blocks and streams in Microsoft Tape Format.

use std::io;
use std::ops::Range;

use super::sink::Sink;
use crate::bytes::{put, sectors};

/// Length of a block header in bytes.
const HEADER: usize = 52;
/// Length of a stream header in bytes.
const STREAM: usize = 22;
/// Operating system: Windows NT, which SQL Server writes on every system.
const SYSTEM: [u8; 2] = [0x0E, 1];

/// Media attributes of a stream.
pub(super) mod attribute {
    /// Padding before data, so that the data starts at a block boundary.
    pub(crate) const PADDING: u16 = 0x80;
    /// The stream contains pages.
    pub(crate) const DATA: u16 = 2;
    /// The empty stream after the pages.
    pub(crate) const DATA_END: u16 = 6;
    /// A checksum follows the stream.
    pub(crate) const SUMMED: u16 = 0x100;
}

/// The size of a block, in bytes. Descriptor blocks start at multiples of this size, and block numbers count in this
/// unit.
pub(super) const BLOCK: u64 = 1024;

/// A backup device, described by its sector size in bytes. A filemark takes up one sector. The data of a stream, and
/// the first block after a filemark, start at a multiple of the sector size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Device {
    pub(super) sector: usize,
}

/// A disk with sectors of 512 bytes.
pub(super) const SMALL: Device = Device { sector: 512 };
/// A disk with sectors of 4096 bytes. Compressed backups always use this size.
pub(super) const LARGE: Device = Device { sector: 4096 };

impl Device {
    /// The alignment of data in bytes.
    fn unit(self) -> u64 {
        BLOCK.max(self.sector as u64)
    }
}

/// A tape that is being written.
pub(super) struct Tape {
    sink: Box<dyn Sink>,
    pub(super) device: Device,
    /// Whether the tape has the format of SQL Server 2005.
    pub(super) is_of_2005: bool,
    /// Number of bytes written.
    at: u64,
    /// Offset of the end of the last filemark, from which blocks are counted.
    origin: u64,
    /// Offsets of the filemarks.
    filemarks: Vec<u64>,
    /// Number of the next block within its set.
    control: u32,
    /// Checksum of the data in the current stream.
    sum: u32,
    /// Offset of the data in the current stream.
    data_at: u64,
    /// Byte ranges that a checksum covers.
    places: Vec<Range<u64>>,
}

/// A descriptor block without its streams.
pub(super) struct Block<'a> {
    pub(super) tag: &'a [u8; 4],
    pub(super) attributes: u32,
    /// Text encoding: 2 for Unicode.
    pub(super) strings: u8,
    /// The bytes after the header.
    pub(super) fields: Vec<u8>,
}

impl Tape {
    pub(super) fn new(sink: Box<dyn Sink>, device: Device) -> Self {
        Self {
            sink,
            device,
            is_of_2005: false,
            at: 0,
            origin: 0,
            filemarks: Vec::new(),
            control: 0,
            sum: 0,
            data_at: 0,
            places: Vec::new(),
        }
    }

    /// Number of bytes written so far.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The number of bytes that were written since the last filemark. Always a multiple of the block size.
    pub(super) fn since_filemark(&self) -> u64 {
        self.at - self.origin
    }

    /// Restarts the numbering of blocks at the start of a set.
    pub(super) fn start_set(&mut self) {
        self.control = 0;
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.sink.write(bytes)
    }

    /// Records that a checksum covers the next `bytes` bytes of the tape.
    fn covered(&mut self, bytes: u64) {
        self.places.push(self.at..self.at + bytes);
    }

    /// Writes a descriptor block. The caller writes the streams of the block next.
    pub(super) fn block(&mut self, block: &Block<'_>) -> io::Result<()> {
        self.sink.boundary()?;
        let length = (HEADER + block.fields.len()).next_multiple_of(4);
        let mut bytes = vec![0; length];
        bytes[..4].copy_from_slice(block.tag);
        put(&mut bytes, 4, &block.attributes.to_le_bytes());
        put(&mut bytes, 8, &(length as u16).to_le_bytes());
        put(&mut bytes, 10, &SYSTEM);
        // The TAPE block and the ESET block have no block number.
        if !matches!(block.tag, b"TAPE" | b"ESET") {
            put(&mut bytes, 0x14, &((self.at - self.origin) / BLOCK).to_le_bytes());
            put(&mut bytes, 0x24, &self.control.to_le_bytes());
            self.control += 1;
        }
        if block.tag == b"SSET" {
            // The field for the data about the operating system: length 21, offset 0x64.
            put(&mut bytes, 0x2C, &[0x15, 0, 0x64, 0]);
        }
        bytes[0x30] = block.strings;
        put(&mut bytes, HEADER, &block.fields);
        let sum = words(&bytes[..50]);
        put(&mut bytes, 50, &sum.to_le_bytes());
        self.covered(HEADER as u64);
        self.write(&bytes)
    }

    /// Writes the header of a stream of `length` bytes.
    fn stream_header(&mut self, tag: &[u8; 4], attributes: u16, length: u64) -> io::Result<()> {
        let mut bytes = [0; STREAM];
        bytes[..4].copy_from_slice(tag);
        put(&mut bytes, 6, &attributes.to_le_bytes());
        put(&mut bytes, 8, &length.to_le_bytes());
        let sum = words(&bytes[..20]);
        put(&mut bytes, 20, &sum.to_le_bytes());
        self.covered(STREAM as u64);
        self.write(&bytes)
    }

    /// Writes a stream.
    pub(super) fn stream(&mut self, tag: &[u8; 4], attributes: u16, data: &[u8]) -> io::Result<()> {
        self.stream_header(tag, attributes, data.len() as u64)?;
        self.write(data)?;
        self.align(4)
    }

    /// Starts a stream of pages or log with `length` bytes of data, and pads the tape so that the data is aligned. The
    /// caller must then write the data with `data`, and call `end_data`.
    pub(super) fn start_data(&mut self, tag: &[u8; 4], attributes: u16, length: u64) -> io::Result<()> {
        // In the stream, two zero bytes precede the data.
        self.pad(b"APAD", attribute::PADDING, (STREAM as u64 + 2, self.device.unit()))?;
        self.stream_header(tag, attributes, length + 2)?;
        self.sum = 0;
        self.write(&[0; 2])?;
        self.data_at = self.at;
        Ok(())
    }

    /// Writes whole sectors of data.
    pub(super) fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum = sectors(self.sum, bytes);
        self.write(bytes)
    }

    /// Ends the data, and writes its checksum if `with_checksum` is true.
    pub(super) fn end_data(&mut self, with_checksum: bool) -> io::Result<()> {
        self.align(4)?;
        if !with_checksum {
            return Ok(());
        }
        self.places.push(self.data_at..self.at);
        let sum = self.sum.to_le_bytes();
        // The checksum does not include the bytes that pad the data to a multiple of four.
        let stored_at = self.at + STREAM as u64;
        self.stream(b"CSUM", 0, &sum)?;
        self.places.push(stored_at..stored_at + sum.len() as u64);
        Ok(())
    }

    /// Ends a block with a padding stream.
    pub(super) fn spad(&mut self) -> io::Result<()> {
        self.pad(b"SPAD", 0, (0, BLOCK))
    }

    /// Ends a block with a padding stream that extends to an offset at which the device allows a filemark.
    pub(super) fn spad_device(&mut self) -> io::Result<()> {
        self.pad(b"SPAD", 0, (0, self.device.unit()))
    }

    /// Writes a stream of zeros up to the next multiple of the device's unit.
    pub(super) fn opad(&mut self) -> io::Result<()> {
        self.pad(b"OTCP", 0, (0, self.device.unit()))
    }

    /// Writes a stream of zeros, such that the offset `ahead` bytes after its end is a multiple of `unit`.
    fn pad(&mut self, tag: &[u8; 4], attributes: u16, (ahead, unit): (u64, u64)) -> io::Result<()> {
        let least = self.at + STREAM as u64 + ahead - self.origin;
        let length = least.next_multiple_of(unit) - least;
        self.stream_header(tag, attributes, length)?;
        self.write(&vec![0; length as usize])
    }

    fn align(&mut self, unit: u64) -> io::Result<()> {
        let missing = self.at.next_multiple_of(unit) - self.at;
        self.write(&vec![0; missing as usize])
    }

    /// Writes a soft filemark with a list of the previous filemarks.
    pub(super) fn filemark(&mut self) -> io::Result<()> {
        let mut bytes = vec![0; self.device.sector];
        // The offset of the list of filemarks in this block. From SQL Server 2008 on, the block itself also contains
        // this offset.
        let list = if self.is_of_2005 { 0x3C } else { 0x48 };
        let room = (self.device.sector - list) / 8;
        bytes[..4].copy_from_slice(b"SFMB");
        put(&mut bytes, 8, &(self.device.sector as u16).to_le_bytes());
        put(&mut bytes, 10, &SYSTEM);
        put(&mut bytes, 0x34, &(room as u32).to_le_bytes());
        put(&mut bytes, 0x38, &(self.filemarks.len().min(room) as u32).to_le_bytes());
        if !self.is_of_2005 {
            put(&mut bytes, 4, &0x8000_0000u32.to_le_bytes());
            put(&mut bytes, 0x3C, &(list as u32).to_le_bytes());
        }
        for (number, at) in self.filemarks.iter().rev().take(room).enumerate() {
            put(&mut bytes, list + 8 * number, &at.to_le_bytes());
        }
        let sum = words(&bytes[..50]);
        put(&mut bytes, 50, &sum.to_le_bytes());
        self.covered(HEADER as u64);
        self.filemarks.push(self.at);
        self.at += bytes.len() as u64;
        self.origin = self.at;
        self.sink.filemark(&bytes)
    }

    /// Ends the file. Returns the byte ranges that a checksum of the backup covers. Ranges that are covered only by the
    /// checksums of pages or log blocks are not included.
    pub(super) fn finish(mut self) -> io::Result<Vec<Range<u64>>> {
        self.sink.finish(self.places)
    }
}

/// The XOR of 16-bit words.
fn words(bytes: &[u8]) -> u16 {
    bytes.chunks_exact(2).fold(0, |sum, pair| sum ^ u16::from_le_bytes([pair[0], pair[1]]))
}
