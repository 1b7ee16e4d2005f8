//! CD records: rows under ROW or PAGE compression (docs/format/compression.md#records). A record is audited before it
//! is used.

mod head;

use std::fmt;

use super::fault::{CdFault, CdIssue, CdTest};
use crate::bytes::{u8_at, u16_at};
use crate::record::{RecordKind, VERSION_TAG_BYTES};
use head::{CLUSTER, leading_clusters};

pub(super) use head::CdHead;

/// The bits of the first byte of a CD record.
pub mod cd_status {
    /// Set in every CD record.
    pub const COMPRESSED: u8 = 0x01;
    /// A 14-byte version tag ends the record.
    pub const VERSION_TAG: u8 = 0x02;
    /// The record type, shifted left by two.
    pub const TYPE_MASK: u8 = 0x1C;
    /// A long region follows the short one.
    pub const LONG_REGION: u8 = 0x20;
    /// These bits were never seen set.
    pub const RESERVED: u8 = 0xC0;
}

/// The flag in the long region's first byte that is set if end offsets have two bytes.
const WIDE_OFFSETS: u8 = 0x01;
const HAS_COMPLEX: u8 = 0x02;
/// The bit of a long value's end offset that marks the value as complex: a pointer, or a value in a special format.
const COMPLEX: u16 = 0x8000;

/// The type of a CD record: bits 2 to 4 of its first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CdKind {
    /// A row in its own place, as opposed to a forwarded row.
    Primary,
    /// A deleted row without any content.
    GhostEmpty,
    /// The stub at the old place of a moved heap row.
    ForwardingStub,
    /// A deleted row on a data page.
    GhostData,
    /// A heap row that was moved here from its old place.
    Forwarded,
    /// A deleted forwarded row.
    GhostForwarded,
    /// A row on an index page.
    Index,
    /// A deleted row on an index page.
    GhostIndex,
}

impl CdKind {
    /// The kind that the first byte of a record gives.
    pub fn of(status: u8) -> Self {
        match (status & cd_status::TYPE_MASK) >> 2 {
            0 => Self::Primary,
            1 => Self::GhostEmpty,
            2 => Self::ForwardingStub,
            3 => Self::GhostData,
            4 => Self::Forwarded,
            5 => Self::GhostForwarded,
            6 => Self::Index,
            _ => Self::GhostIndex,
        }
    }

    /// Whether the record is a ghost: deleted, but not yet removed by ghost cleanup.
    pub fn is_ghost(self) -> bool {
        matches!(self, Self::GhostEmpty | Self::GhostData | Self::GhostForwarded | Self::GhostIndex)
    }

    /// The kind of the equivalent uncompressed record.
    pub fn plain(self) -> RecordKind {
        match self {
            Self::Primary => RecordKind::Primary,
            Self::GhostEmpty | Self::GhostData | Self::GhostForwarded => RecordKind::GhostData,
            Self::ForwardingStub => RecordKind::ForwardingStub,
            Self::Forwarded => RecordKind::Forwarded,
            Self::Index => RecordKind::Index,
            Self::GhostIndex => RecordKind::GhostIndex,
        }
    }

    /// The name of the kind for messages and dumps.
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::GhostEmpty => "empty ghost",
            Self::ForwardingStub => "forwarding stub",
            Self::GhostData => "ghost data",
            Self::Forwarded => "forwarded",
            Self::GhostForwarded => "ghost forwarded",
            Self::Index => "index",
            Self::GhostIndex => "ghost index",
        }
    }
}

/// The way in which a column is stored. A record describes each column by half a byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Descriptor {
    /// The column is NULL.
    Null,
    /// The column has no bytes: its value is zero, the empty string, or the whole anchor.
    Empty,
    /// The column has this many bytes, 1 to 8, in the short region.
    Short(u8),
    /// The column has the next value of the long region.
    Long,
    /// The column is a set bit.
    BitTrue,
    /// The column has a one-byte symbol in the short region.
    Symbol,
}

impl Descriptor {
    pub(super) const fn of(nibble: u8) -> Option<Self> {
        Some(match nibble {
            0 => Self::Null,
            1 => Self::Empty,
            2..=9 => Self::Short(nibble - 1),
            10 => Self::Long,
            11 => Self::BitTrue,
            12 => Self::Symbol,
            _ => return None,
        })
    }

    /// The number of bytes of the column in the short region.
    pub(super) const fn short_bytes(self) -> usize {
        match self {
            Self::Short(bytes) => bytes as usize,
            Self::Symbol => 1,
            Self::Null | Self::Empty | Self::Long | Self::BitTrue => 0,
        }
    }
}

/// A column as a CD record stores it: its prefix and its symbol are not resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CdColumn<'a> {
    /// The half-byte that describes the column.
    pub descriptor: Descriptor,
    /// The bytes of the column in the short or long region.
    pub bytes: &'a [u8],
    /// Whether the bytes are a pointer to the value, or a value in a special format.
    pub is_complex: bool,
}

/// A CD record that was audited: all its parts are inside the bytes that belong to it, and the stored length of each
/// cluster is the sum of its columns' lengths.
#[derive(Clone, Copy)]
pub struct CdRecord<'a> {
    bytes: &'a [u8],
    column_count: u16,
    descriptors_at: u16,
    short_at: u16,
    /// The offset at which the end offsets of the long values begin. Next come the numbers of long values per cluster,
    /// and then the long values.
    long_offsets_at: u16,
    long_count: u16,
    long_at: u16,
    has_length: bool,
}

impl fmt::Debug for CdRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} record of {} columns, {} bytes", self.kind().name(), self.column_count, self.bytes.len())
    }
}

impl<'a> CdRecord<'a> {
    /// The record at the start of `space`, in a rowset with `columns` columns. A row that was written before a column
    /// was added has fewer columns.
    // Inlined, because returning the result through memory takes longer than the audit itself.
    #[inline(always)]
    pub fn read(space: &'a [u8], columns: usize) -> Result<Self, CdIssue> {
        Self::after(CdHead::read(space, columns)?, space)
    }

    /// The record at the start of `space`. Its head was already read and is passed as `head`.
    #[inline(always)]
    pub(super) fn after(head: CdHead, space: &'a [u8]) -> Result<Self, CdIssue> {
        let length = space.len();
        let short_end = usize::from(head.short_at) + head.short_bytes as usize;
        if short_end > length {
            return Err(CdFault::new(CdTest::ShortRegion, short_end, length).into());
        }
        let long = match head.status & cd_status::LONG_REGION {
            0 if head.long_values > 0 => {
                return Err(CdFault::new(CdTest::LongCount, 0, head.long_values.into()).into());
            }
            0 => LongRegion { offsets_at: 0, data_at: short_end, end: short_end },
            _ => LongRegion::of(space, head, short_end)?,
        };
        // A forwarded row ends with a part of unknown format and length, so the length of the whole record is unknown
        // too.
        let has_length = !matches!(CdKind::of(head.status), CdKind::Forwarded | CdKind::GhostForwarded);
        let end = long.end + if head.status & cd_status::VERSION_TAG != 0 { VERSION_TAG_BYTES } else { 0 };
        let bytes = match has_length {
            true => space.get(..end).ok_or(CdFault::new(CdTest::VersionTag, end, length))?,
            false => space,
        };
        Ok(Self {
            bytes,
            column_count: head.column_count,
            descriptors_at: head.descriptors_at,
            short_at: head.short_at,
            long_offsets_at: long.offsets_at as u16,
            long_count: if long.offsets_at > 0 { head.long_values } else { 0 },
            long_at: long.data_at as u16,
            has_length,
        })
    }

    /// The bytes of the record, including the version tag. If the length of the record is unknown, returns all bytes of
    /// its space.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The length of the record in bytes; `None` for forwarded rows, because their length is unknown.
    pub fn length(&self) -> Option<usize> {
        self.has_length.then_some(self.bytes.len())
    }

    /// The kind of the record.
    pub fn kind(&self) -> CdKind {
        CdKind::of(self.bytes.first().copied().unwrap_or_default())
    }

    /// The number of columns in the record.
    pub fn column_count(&self) -> u16 {
        self.column_count
    }

    /// The version tag; `None` for a record without one, and for forwarded rows, because their end is unknown.
    pub fn version_tag(&self) -> Option<&'a [u8; VERSION_TAG_BYTES]> {
        let is_versioned = self.bytes.first().is_some_and(|status| status & cd_status::VERSION_TAG != 0);
        self.bytes.last_chunk().filter(|_| is_versioned && self.has_length)
    }

    /// Offsets of the half-bytes, the short values and the long values, for dumps.
    pub fn parts(&self) -> CdParts {
        CdParts {
            descriptors_at: self.descriptors_at.into(),
            short_at: self.short_at.into(),
            long_offsets_at: (self.long_count > 0).then_some(self.long_offsets_at.into()),
            long_at: self.long_at.into(),
        }
    }

    /// Returns where the end offsets of the long values start, and where the long values start, as offsets in the
    /// record. In a record without long values, the first number is meaningless.
    #[inline(always)]
    pub(super) fn long_parts(&self) -> (u16, u16) {
        (self.long_offsets_at, self.long_at)
    }

    /// The columns of the record, in order.
    pub fn columns(&self) -> Columns<'a> {
        Columns {
            descriptors: self.bytes.get(self.descriptors_at.into()..).unwrap_or_default(),
            at: 0,
            count: self.column_count.into(),
            short: self.bytes.get(self.short_at.into()..).unwrap_or_default(),
            long_ends: self.bytes.get(self.long_offsets_at.into()..).unwrap_or_default(),
            long: self.bytes.get(self.long_at.into()..).unwrap_or_default(),
            long_start: 0,
        }
    }
}

/// The long region of a record, as offsets from the record's start.
struct LongRegion {
    offsets_at: usize,
    data_at: usize,
    end: usize,
}

impl LongRegion {
    /// Checks the long region that begins at `start`.
    #[inline(always)]
    fn of(space: &[u8], head: CdHead, start: usize) -> Result<Self, CdIssue> {
        let length = space.len();
        let long_values = usize::from(head.long_values);
        let flags = u8_at(space, start).ok_or(CdFault::new(CdTest::LongRegion, start + 3, length))?;
        if flags & WIDE_OFFSETS == 0 || flags & !(WIDE_OFFSETS | HAS_COMPLEX) != 0 {
            return Err(CdIssue::Undecided("a long region without two-byte offsets"));
        }
        let count = u16_at(space, start + 1).ok_or(CdFault::new(CdTest::LongRegion, start + 3, length))?;
        if usize::from(count) < long_values {
            return Err(CdFault::new(CdTest::LongCount, count.into(), long_values).into());
        }
        if usize::from(count) > long_values {
            return Err(CdIssue::Undecided("more long values than columns that have one"));
        }
        let offsets_at = start + 3;
        let clusters_at = offsets_at + 2 * usize::from(count);
        let data_at = clusters_at + leading_clusters(head.column_count.into());
        let cluster_counts =
            space.get(clusters_at..data_at).ok_or(CdFault::new(CdTest::LongRegion, data_at, length))?;
        if !cluster_counts.is_empty() {
            long_clusters(cluster_counts, space.get(head.descriptors_at.into()..).unwrap_or_default())?;
        }
        let mut prior = 0;
        for offset in space.get(offsets_at..clusters_at).unwrap_or_default().as_chunks().0 {
            let offset = u16::from_le_bytes(*offset) & !COMPLEX;
            if offset < prior {
                return Err(CdFault::new(CdTest::LongAscend, offset.into(), prior.into()).into());
            }
            prior = offset;
        }
        let end = data_at + usize::from(prior);
        if end > length {
            return Err(CdFault::new(CdTest::LongEnd, end, length).into());
        }
        Ok(Self { offsets_at, data_at, end })
    }
}

/// Tests that each cluster except the last has as many long values as its stored count says.
fn long_clusters(counts: &[u8], descriptors: &[u8]) -> Result<(), CdIssue> {
    for (stored, bytes) in counts.iter().zip(descriptors.chunks(CLUSTER / 2)) {
        let counted = bytes.iter().flat_map(|byte| [byte & 0xF, byte >> 4]).filter(|nibble| *nibble == 10).count();
        if usize::from(*stored) != counted {
            return Err(CdFault::new(CdTest::LongCluster, (*stored).into(), counted).into());
        }
    }
    Ok(())
}

/// The parts of a CD record, as offsets from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CdParts {
    /// The start of the half-bytes.
    pub descriptors_at: usize,
    /// The start of the short values, which follow the lengths of the clusters.
    pub short_at: usize,
    /// The start of the end offsets of the long values; `None` without long values.
    pub long_offsets_at: Option<usize>,
    /// The start of the long values.
    pub long_at: usize,
}

/// An iterator over the columns of a CD record.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    descriptors: &'a [u8],
    at: usize,
    count: usize,
    /// The short values that are not returned yet.
    short: &'a [u8],
    /// The end offsets of the long values that are not returned yet.
    long_ends: &'a [u8],
    long: &'a [u8],
    long_start: usize,
}

impl<'a> Iterator for Columns<'a> {
    type Item = CdColumn<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.count {
            return None;
        }
        let byte = *self.descriptors.get(self.at / 2)?;
        let nibble = if self.at.is_multiple_of(2) { byte & 0xF } else { byte >> 4 };
        self.at += 1;
        let descriptor = Descriptor::of(nibble)?;
        if descriptor == Descriptor::Long {
            let (end, rest) = self.long_ends.split_first_chunk()?;
            let end = u16::from_le_bytes(*end);
            let place = self.long_start..usize::from(end & !COMPLEX);
            (self.long_ends, self.long_start) = (rest, place.end);
            return Some(CdColumn { descriptor, bytes: self.long.get(place)?, is_complex: end & COMPLEX != 0 });
        }
        let (bytes, rest) = self.short.split_at_checked(descriptor.short_bytes())?;
        self.short = rest;
        Some(CdColumn { descriptor, bytes, is_complex: false })
    }
}

#[cfg(test)]
mod tests;
