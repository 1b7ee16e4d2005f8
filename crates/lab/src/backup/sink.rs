//! Writes the bytes of a tape to a plain file or to the records of a compressed container.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;

use super::xpress;

/// A destination for the bytes of a tape.
pub(super) trait Sink {
    /// Writes bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Tells the destination that the next byte begins a descriptor block.
    fn boundary(&mut self) -> io::Result<()>;
    /// Writes a soft filemark.
    fn filemark(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Ends the output. `places` are the byte ranges of the tape that a checksum covers. Returns the byte ranges of the
    /// file that a checksum covers.
    fn finish(&mut self, places: Vec<Range<u64>>) -> io::Result<Vec<Range<u64>>>;
}

/// A file that contains the tape unchanged.
pub(super) struct Plain(pub(super) BufWriter<File>);

impl Sink for Plain {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn boundary(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn filemark(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn finish(&mut self, places: Vec<Range<u64>>) -> io::Result<Vec<Range<u64>>> {
        self.0.flush()?;
        Ok(places)
    }
}

const SECTOR: usize = 512;
/// The maximum number of tape bytes that a compressed record contains.
const RECORD: usize = 128 * SECTOR;

/// The version of the container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Container {
    /// The format of SQL Server 2008.
    Version1,
    /// The format of SQL Server 2008 R2 and later.
    Version2,
}

/// A compressed container.
pub(super) struct Compressed {
    out: BufWriter<File>,
    container: Container,
    /// Number of bytes written to the file.
    at: u64,
    /// Bytes of the tape that are not yet in a record.
    waiting: Vec<u8>,
    /// Ranges of the file that a checksum covers.
    places: Vec<Range<u64>>,
}

impl Compressed {
    pub(super) fn new(file: File, container: Container) -> io::Result<Self> {
        let mut this = Self {
            out: BufWriter::with_capacity(1 << 20, file),
            container,
            at: 0,
            waiting: Vec::new(),
            places: Vec::new(),
        };
        let mut header = vec![0; if container == Container::Version1 { 0x10 } else { 0x1E0 }];
        header[..8].copy_from_slice(b"MSSQLBAK");
        let (version, algorithm) = if container == Container::Version1 { (1, 1) } else { (2, 3) };
        (header[8], header[12]) = (version, algorithm);
        this.put(&header)?;
        Ok(this)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Compresses whole sectors and writes them as a record. If compression does not make the data smaller, writes each
    /// half of the data as a record of its own.
    fn record(&mut self, data: &[u8]) -> io::Result<()> {
        let packed = xpress::compress(data);
        if packed.len() >= data.len() && data.len() > SECTOR {
            let (first, second) = data.split_at((data.len() / 2).next_multiple_of(SECTOR));
            self.record(first)?;
            return self.record(second);
        }
        let size = (packed.len() as u16).to_le_bytes();
        let sectors = (data.len() / SECTOR) as u8;
        let sum = checksum(&packed).to_le_bytes();
        let mut header = Vec::with_capacity(28);
        match self.container {
            Container::Version1 => header.extend([0x81, sectors, size[0], size[1]]),
            Container::Version2 => {
                header.extend([0x21, sectors, size[0], size[1]]);
                header.extend([0; 20]);
            }
        }
        // The tag and the sizes are not part of a checksum. They are still listed as covered, because a reader notices a
        // change of these bytes: it cannot read the record.
        self.places.push(self.at..self.at + 4);
        let from = self.at + header.len() as u64;
        self.places.push(from..from + 4 + packed.len() as u64);
        header.extend(sum);
        self.put(&header)?;
        self.put(&packed)
    }

    /// Pads the file to a multiple of `unit` with an empty record, which has no checksum, as in all known compressed
    /// backups. If the header of this record does not fit before the next multiple of `unit`, the padding extends to
    /// the multiple after that.
    fn filler(&mut self, unit: u64) -> io::Result<()> {
        let (tag, length) = if self.container == Container::Version1 { (0x84, 4) } else { (0x24, 24) };
        if self.at.is_multiple_of(unit) {
            return Ok(());
        }
        let mut filler = vec![0; length];
        filler.resize(((self.at + length as u64).next_multiple_of(unit) - self.at) as usize, 0);
        let size = ((filler.len() - length) as u16).to_le_bytes();
        (filler[0], filler[2], filler[3]) = (tag, size[0], size[1]);
        self.put(&filler)
    }

    fn flush_records(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        for data in waiting.chunks(RECORD) {
            self.record(data)?;
        }
        Ok(())
    }
}

impl Sink for Compressed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.waiting.extend_from_slice(bytes);
        let whole = self.waiting.len() / RECORD * RECORD;
        if whole > 0 {
            let rest = self.waiting.split_off(whole);
            let full = std::mem::replace(&mut self.waiting, rest);
            for data in full.chunks(RECORD) {
                self.record(data)?;
            }
        }
        Ok(())
    }

    fn boundary(&mut self) -> io::Result<()> {
        // A record that is not full ends only where a descriptor block begins, so that it contains whole blocks.
        if self.waiting.len() < RECORD / 4 { Ok(()) } else { self.flush_records() }
    }

    fn filemark(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.flush_records()?;
        self.filler(bytes.len() as u64)?;
        let at = self.at;
        self.places.push(at..at + 52);
        self.put(bytes)
    }

    fn finish(&mut self, _places: Vec<Range<u64>>) -> io::Result<Vec<Range<u64>>> {
        self.flush_records()?;
        self.out.flush()?;
        Ok(std::mem::take(&mut self.places))
    }
}

/// Computes the checksum of a record: for each four-byte word, rotates the sum left by one bit and combines it with the
/// word by XOR. The last word is padded with zeros.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.chunks(4).fold(0, |sum: u32, chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        sum.rotate_left(1) ^ u32::from_le_bytes(word)
    })
}
