//! CD records: rows under ROW or PAGE compression (docs/format/compression.md#records), audited before they are used.

use std::fmt;

use super::fault::{CdFault, CdIssue, CdTest};
use crate::bytes::{u8_at, u16_at};
use crate::record::{RecordKind, VERSION_TAG_BYTES};

/// Bits of a CD record's first byte.
pub mod cd_status {
    /// Set in every CD record.
    pub const COMPRESSED: u8 = 0x01;
    /// A 14-byte version tag ends the record.
    pub const VERSION_TAG: u8 = 0x02;
    /// The record type, shifted left by two.
    pub const TYPE_MASK: u8 = 0x1C;
    /// A long region follows the short one.
    pub const LONG_REGION: u8 = 0x20;
    /// Never seen.
    pub const RESERVED: u8 = 0xC0;
}

/// Columns that share a length byte.
const CLUSTER: usize = 30;
/// Flag in the first byte of a two-byte column count.
const WIDE_COUNT: u8 = 0x80;
/// Bits of the long region's first byte: two-byte offsets, and some column is complex.
const WIDE_OFFSETS: u8 = 0x01;
const HAS_COMPLEX: u8 = 0x02;
/// Bit of a long end offset: the column is not stored plainly.
const COMPLEX: u16 = 0x8000;

/// What a CD record is: bits 2 to 4 of its first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CdKind {
    /// A row where it belongs.
    Primary,
    /// A deleted row with nothing left of it.
    GhostEmpty,
    /// Left at the old place of a moved heap row.
    ForwardingStub,
    /// A deleted row of a data page.
    GhostData,
    /// A heap row moved here.
    Forwarded,
    /// A deleted forwarded row.
    GhostForwarded,
    /// A row of an index page.
    Index,
    /// A deleted row of an index page.
    GhostIndex,
}

impl CdKind {
    /// The kind named by a first byte.
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

    /// Whether the record is deleted and waits for cleanup.
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

    /// Name for people.
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

/// How a column is stored: half a byte per column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Descriptor {
    /// NULL.
    Null,
    /// No bytes: zero, the empty string, or the value of the anchor.
    Empty,
    /// This many bytes, 1 to 8, in the short region.
    Short(u8),
    /// The next long value.
    Long,
    /// A bit that is set.
    BitTrue,
    /// A one-byte symbol, in the short region.
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

    /// Its bytes in the short region.
    pub(super) const fn short_bytes(self) -> usize {
        match self {
            Self::Short(bytes) => bytes as usize,
            Self::Symbol => 1,
            Self::Null | Self::Empty | Self::Long | Self::BitTrue => 0,
        }
    }
}

/// A column as a CD record stores it, prefixes and symbols not resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CdColumn<'a> {
    /// How it is stored.
    pub descriptor: Descriptor,
    /// Its bytes in the short or long region.
    pub bytes: &'a [u8],
    /// A pointer to the value, or a value in a special format.
    pub is_complex: bool,
}

/// A CD record whose parts were proven to be inside its space, and whose clusters add up.
#[derive(Clone, Copy)]
pub struct CdRecord<'a> {
    bytes: &'a [u8],
    column_count: u16,
    descriptors_at: u16,
    short_at: u16,
    /// End offsets of the long values; their data follows the cluster counts.
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
    /// The record at the start of `space`, of a rowset with `columns` columns. Rows written before a column was added
    /// have fewer.
    // Inlined, because returning the result through memory takes longer than the audit itself.
    #[inline(always)]
    pub fn read(space: &'a [u8], columns: usize) -> Result<Self, CdIssue> {
        use CdTest::{ColumnCount, Compressed, Descriptors, ShortRegion};
        let length = space.len();
        let status = u8_at(space, 0).ok_or(CdFault::new(Descriptors, 2, length))?;
        if status & cd_status::COMPRESSED == 0 {
            return Err(CdFault::new(Compressed, status.into(), cd_status::COMPRESSED.into()).into());
        }
        if status & cd_status::RESERVED != 0 {
            return Err(CdIssue::Undecided("an undocumented bit of the first byte"));
        }
        match CdKind::of(status) {
            CdKind::ForwardingStub => return Err(CdIssue::Undecided("forwarding stub")),
            CdKind::GhostEmpty => return Err(CdIssue::Undecided("empty ghost")),
            _ => {}
        }
        let first = u8_at(space, 1).ok_or(CdFault::new(Descriptors, 2, length))?;
        let (column_count, descriptors_at) = if first & WIDE_COUNT == 0 {
            if usize::from(first) > columns {
                return Err(CdFault::new(ColumnCount, first.into(), columns).into());
            }
            (usize::from(first), 2)
        } else {
            // Which byte is the high one is an open question (docs/format/README.md#open-questions). A count that
            // equals the rowset's when read like other lengths of the format, high part first, is accepted.
            let second = u8_at(space, 2).ok_or(CdFault::new(Descriptors, 3, length))?;
            let count = usize::from(first & !WIDE_COUNT) << 8 | usize::from(second);
            if count != columns {
                return Err(CdIssue::Undecided("a two-byte column count that differs from the rowset's"));
            }
            (count, 3)
        };
        let clusters_at = descriptors_at + column_count.div_ceil(2);
        let descriptors =
            space.get(descriptors_at..clusters_at).ok_or(CdFault::new(Descriptors, clusters_at, length))?;
        // Every cluster but the last has its length before the short region.
        let leading = column_count.saturating_sub(1) / CLUSTER;
        let short_at = clusters_at + leading;
        let cluster_bytes = space.get(clusters_at..short_at).ok_or(CdFault::new(ShortRegion, short_at, length))?;
        let (short_bytes, long_values) = sums(descriptors, column_count, cluster_bytes)?;
        let short_end = short_at + short_bytes;
        if short_end > length {
            return Err(CdFault::new(ShortRegion, short_end, length).into());
        }
        let mut record = Self {
            bytes: space,
            column_count: column_count as u16,
            descriptors_at: descriptors_at as u16,
            short_at: short_at as u16,
            long_offsets_at: 0,
            long_count: 0,
            long_at: short_end as u16,
            // How a forwarded row ends, and how long that part is, is undocumented.
            has_length: !matches!(CdKind::of(status), CdKind::Forwarded | CdKind::GhostForwarded),
        };
        let mut end = match status & cd_status::LONG_REGION {
            0 if long_values > 0 => return Err(CdFault::new(CdTest::LongCount, 0, long_values).into()),
            0 => short_end,
            _ => record.long_region(short_end, long_values, descriptors)?,
        };
        if record.has_length {
            if status & cd_status::VERSION_TAG != 0 {
                end += VERSION_TAG_BYTES;
            }
            record.bytes = space.get(..end).ok_or(CdFault::new(CdTest::VersionTag, end, length))?;
        }
        Ok(record)
    }

    /// Proves the long region that begins at `start`; returns its end.
    #[inline(always)]
    fn long_region(&mut self, start: usize, long_values: usize, descriptors: &[u8]) -> Result<usize, CdIssue> {
        let (space, length) = (self.bytes, self.bytes.len());
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
        let leading = usize::from(self.column_count).saturating_sub(1) / CLUSTER;
        let data_at = clusters_at + leading;
        let cluster_counts =
            space.get(clusters_at..data_at).ok_or(CdFault::new(CdTest::LongRegion, data_at, length))?;
        for (cluster, &stored) in cluster_counts.iter().enumerate() {
            let bytes = descriptors.get(cluster * CLUSTER / 2..(cluster + 1) * CLUSTER / 2).unwrap_or_default();
            let counted = bytes.iter().flat_map(|byte| [byte & 0xF, byte >> 4]).filter(|nibble| *nibble == 10).count();
            if usize::from(stored) != counted {
                return Err(CdFault::new(CdTest::LongCluster, stored.into(), counted).into());
            }
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
        (self.long_offsets_at, self.long_count, self.long_at) = (offsets_at as u16, count, data_at as u16);
        Ok(end)
    }

    /// The record's bytes, version tag included; its whole space if its length is unknown.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its length, if known: not for forwarded rows.
    pub fn length(&self) -> Option<usize> {
        self.has_length.then_some(self.bytes.len())
    }

    /// What the record is.
    pub fn kind(&self) -> CdKind {
        CdKind::of(self.bytes.first().copied().unwrap_or_default())
    }

    /// Columns in the record.
    pub fn column_count(&self) -> u16 {
        self.column_count
    }

    /// The version tag, if one is known to be there.
    pub fn version_tag(&self) -> Option<&'a [u8; VERSION_TAG_BYTES]> {
        let is_versioned = self.bytes.first().is_some_and(|status| status & cd_status::VERSION_TAG != 0);
        self.bytes.last_chunk().filter(|_| is_versioned && self.has_length)
    }

    /// Offsets of the half-bytes, the short values and the long values: for dumps.
    pub fn parts(&self) -> CdParts {
        CdParts {
            descriptors_at: self.descriptors_at.into(),
            short_at: self.short_at.into(),
            long_offsets_at: (self.long_count > 0).then_some(self.long_offsets_at.into()),
            long_at: self.long_at.into(),
        }
    }

    /// The columns, in order.
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

/// Offsets of a CD record's parts from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CdParts {
    /// The half-bytes.
    pub descriptors_at: usize,
    /// The short values, after the lengths of their clusters.
    pub short_at: usize,
    /// The end offsets of the long values, if there are any.
    pub long_offsets_at: Option<usize>,
    /// The long values.
    pub long_at: usize,
}

/// Sums over the descriptors of some columns, at most the 30 of a cluster, so that nothing overflows: bytes in the short region,
/// from bit 16 on values in the long one, from bit 24 on half-bytes that are no valid descriptor.
#[derive(Clone, Copy, Default)]
struct PairSum(u32);

impl PairSum {
    /// Sums of the two descriptors in each byte.
    #[expect(clippy::indexing_slicing, reason = "a constant, by each byte")]
    const OF_BYTES: [Self; 256] = {
        let mut sums = [Self(0); 256];
        let mut byte = 0;
        while byte < 256 {
            sums[byte] = Self(Self::of(byte as u8 & 0xF) + Self::of(byte as u8 >> 4));
            byte += 1;
        }
        sums
    };

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "there is one for each byte")]
    fn of_byte(byte: u8) -> Self {
        Self::OF_BYTES[usize::from(byte)]
    }

    const fn of(nibble: u8) -> u32 {
        match Descriptor::of(nibble) {
            Some(descriptor) => descriptor.short_bytes() as u32 | (matches!(descriptor, Descriptor::Long) as u32) << 16,
            None => 1 << 24,
        }
    }

    /// Sums of the descriptors of `columns` columns, at most those of a cluster, which are in `bytes`.
    #[inline]
    fn of_cluster(bytes: &[u8], columns: usize) -> Self {
        // After the last column, half a byte may be unused.
        let (bytes, half) = match bytes.split_last() {
            Some((last, bytes)) if columns % 2 == 1 => (bytes, Self::of_byte(last & 0xF).0),
            _ => (bytes, 0),
        };
        Self(bytes.iter().fold(half, |sum, byte| sum + Self::of_byte(*byte).0))
    }

    fn short_bytes(self) -> usize {
        (self.0 & 0xFFFF) as usize
    }

    fn long_values(self) -> usize {
        (self.0 >> 16 & 0xFF) as usize
    }

    fn is_valid(self) -> bool {
        self.0 >> 24 == 0
    }
}

/// Bytes in the short region and values in the long one; clusters are proven to add up.
#[inline(always)]
fn sums(descriptors: &[u8], column_count: usize, cluster_bytes: &[u8]) -> Result<(usize, usize), CdIssue> {
    if column_count <= CLUSTER {
        let pairs = PairSum::of_cluster(descriptors, column_count);
        return match pairs.is_valid() {
            true => Ok((pairs.short_bytes(), pairs.long_values())),
            false => Err(invalid(descriptors, column_count)),
        };
    }
    sums_of_clusters(descriptors, column_count, cluster_bytes)
}

/// The same for more columns than a cluster has.
fn sums_of_clusters(descriptors: &[u8], column_count: usize, cluster_bytes: &[u8]) -> Result<(usize, usize), CdIssue> {
    let (mut short, mut long) = (0, 0);
    let mut clusters = cluster_bytes.iter();
    for (cluster, bytes) in descriptors.chunks(CLUSTER / 2).enumerate() {
        let columns = (column_count - cluster * CLUSTER).min(CLUSTER);
        let pairs = PairSum::of_cluster(bytes, columns);
        if !pairs.is_valid() {
            return Err(invalid(bytes, columns));
        }
        let cluster_short = pairs.short_bytes();
        long += pairs.long_values();
        if let Some(&stored) = clusters.next()
            && usize::from(stored) != cluster_short
        {
            return Err(CdFault::new(CdTest::ShortCluster, stored.into(), cluster_short).into());
        }
        short += cluster_short;
    }
    Ok((short, long))
}

/// The fault of the first half-byte that is no valid descriptor.
#[cold]
fn invalid(descriptors: &[u8], columns: usize) -> CdIssue {
    let nibbles = descriptors.iter().flat_map(|byte| [byte & 0xF, byte >> 4]).take(columns);
    let nibble = nibbles.into_iter().find(|nibble| Descriptor::of(*nibble).is_none()).unwrap_or_default();
    CdFault::new(CdTest::Descriptor, nibble.into(), 12).into()
}

/// The columns of a CD record.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    descriptors: &'a [u8],
    at: usize,
    count: usize,
    /// Short values still to come.
    short: &'a [u8],
    /// End offsets still to come.
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
