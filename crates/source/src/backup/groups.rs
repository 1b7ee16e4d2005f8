//! The index of a compressed container: which part of the file holds which part of the tape.

use super::blocks::SECTOR_BYTES;
use super::version::MAX_SECTORS;

/// Memory for a group: its entry in a growing list, its bit, and its part of a step.
pub(super) const BYTES_PER_GROUP: usize = size_of::<Entry>() * 3 / 2 + 1;

/// An index entry: offset in the file, size in the tape, and how it is stored, in 64 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry(u64);

impl Entry {
    /// Uncompressed in the container: a soft filemark.
    pub(super) const LITERAL: u64 = 1 << 8;
    /// Unreadable records.
    pub(super) const LOST: u64 = 1 << 9;

    pub(super) fn new(offset: u64, sectors: u8, flags: u64) -> Self {
        Self(offset << 10 | flags | u64::from(sectors))
    }

    pub(super) fn offset(self) -> u64 {
        self.0 >> 10
    }

    pub(super) fn sectors(self) -> u8 {
        (self.0 & 0xFF) as u8
    }

    pub(super) fn bytes(self) -> usize {
        usize::from(self.sectors()) * SECTOR_BYTES
    }

    pub(super) fn is(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
}

/// The result of walking a container: groups of adjacent records that hold at most 64 KB of the tape, as much as one
/// record of the usual size. So the index grows with the tape, whatever the size of the records.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) entries: Vec<Entry>,
    /// Tape offsets where lost records end.
    pub(super) losses: Vec<u64>,
    /// Length of the tape.
    pub(super) length: u64,
    /// Offset in the file after which no record is found.
    pub(super) lost_end: Option<u64>,
    /// Whether the last record ends at the end of the file, except for padding after a soft filemark.
    pub(super) is_whole: bool,
    /// Bytes read by the walk, and bytes whose checksums were computed.
    pub(super) read_bytes: u64,
    pub(super) summed_bytes: u64,
}

impl Groups {
    /// Adds the record in the bytes `at` to `end` of the file.
    pub(super) fn add_record(&mut self, at: u64, sectors: u8, end: u64, header: usize) {
        self.length += u64::from(sectors) * SECTOR_BYTES as u64;
        if let Some(last) = self.entries.last_mut()
            && !last.is(Entry::LITERAL | Entry::LOST)
            && last.sectors().saturating_add(sectors) <= MAX_SECTORS
            && end - last.offset() <= (header + usize::from(u16::MAX)) as u64
        {
            *last = Entry::new(last.offset(), last.sectors() + sectors, 0);
        } else {
            self.entries.push(Entry::new(at, sectors, 0));
        }
    }

    /// Adds a soft filemark.
    pub(super) fn add_filemark(&mut self, at: u64, bytes: usize) {
        self.length += bytes as u64;
        self.entries.push(Entry::new(at, (bytes / SECTOR_BYTES) as u8, Entry::LITERAL));
    }

    /// Adds damage at `at` of the file, up to the next record. It counts as one lost record: the pages after it
    /// identify themselves.
    pub(super) fn add_loss(&mut self, at: u64) {
        self.entries.push(Entry::new(at, MAX_SECTORS, Entry::LOST));
        self.length += u64::from(MAX_SECTORS) * SECTOR_BYTES as u64;
        self.losses.push(self.length);
    }

    /// Number of entries; damage counts twice.
    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.losses.len()
    }

    /// Whether anything but damage was found.
    pub(super) fn has_records(&self) -> bool {
        self.entries.len() > self.losses.len()
    }

    pub(super) fn ends_with_filemark(&self) -> bool {
        self.entries.last().is_some_and(|last| last.is(Entry::LITERAL))
    }
}
