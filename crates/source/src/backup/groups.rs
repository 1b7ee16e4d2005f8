//! The index of a compressed container; it maps tape offsets to file offsets.

use super::blocks::SECTOR_BYTES;
use super::version::MAX_SECTORS;

/// Memory in bytes for one group: its entry in a growing list, its bit in the list of groups that were read, and its
/// part of the coarse index.
pub(super) const BYTES_PER_GROUP: usize = size_of::<Entry>() * 3 / 2 + 1;

/// An index entry in 64 bits: the offset of the group in the file, the number of sectors that the group has in the
/// tape, and flags that say how the group is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry(pub(super) u64);

impl Entry {
    /// Flag of a soft filemark, which the container stores uncompressed.
    pub(super) const LITERAL: u64 = 1 << 8;
    /// Flag of an entry for lost records.
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

    /// How the group is stored.
    pub(super) fn flags(self) -> u64 {
        self.0 & (Self::LITERAL | Self::LOST)
    }

    pub(super) fn is(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
}

/// The index that results from a walk over a container. A group consists of adjacent records that together hold at most
/// 64 KB of the tape, the content of one record of the usual size. The size of the index therefore depends on the
/// length of the tape, and not on the number of records, which may be very small.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) entries: Vec<Entry>,
    /// The tape offsets at which lost records end.
    pub(super) losses: Vec<u64>,
    /// Length of the tape.
    pub(super) length: u64,
    /// The file offset after which no further record was found.
    pub(super) lost_end: Option<u64>,
    /// Whether the file ends with the last record, or with padding after a soft filemark.
    pub(super) is_whole: bool,
    /// `read_bytes` is the number of bytes that the walk read; `summed_bytes` is the number of bytes over which it
    /// computed checksums.
    pub(super) read_bytes: u64,
    pub(super) summed_bytes: u64,
}

impl Groups {
    /// Adds the record that occupies the bytes from `at` to `end` of the file.
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

    /// Adds damage that extends from file offset `at` to the next record. The damage counts as one lost record of the
    /// maximum size. Tape offsets after the damage may therefore be wrong. Wrong tape offsets do no harm, because pages
    /// are identified by their own headers.
    pub(super) fn add_loss(&mut self, at: u64) {
        self.entries.push(Entry::new(at, MAX_SECTORS, Entry::LOST));
        self.length += u64::from(MAX_SECTORS) * SECTOR_BYTES as u64;
        self.losses.push(self.length);
    }

    /// Returns the number of list elements kept in memory. Each damaged place counts twice, because both `entries` and
    /// `losses` have an element for it.
    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.losses.len()
    }

    /// Whether the container has any entry that is not damage.
    pub(super) fn has_records(&self) -> bool {
        self.entries.len() > self.losses.len()
    }

    pub(super) fn ends_with_filemark(&self) -> bool {
        self.entries.last().is_some_and(|last| last.is(Entry::LITERAL))
    }
}
