//! The head of a CD record: status, number of columns, and half a byte for each column.

use super::{CdKind, Descriptor, cd_status};
use crate::bytes::u8_at;
use crate::compressed::fault::{CdFault, CdIssue, CdTest};

/// The number of columns in a cluster; all clusters except the last have a length byte.
pub(super) const CLUSTER: usize = 30;
/// The flag in the first byte that marks a column count of two bytes.
const WIDE_COUNT: u8 = 0x80;

/// The head of a CD record: everything before its short region. Records of one rowset with equal heads have equal
/// layouts.
#[derive(Clone, Copy, Debug)]
pub(in crate::compressed) struct CdHead {
    pub(in crate::compressed) status: u8,
    pub(in crate::compressed) column_count: u16,
    pub(super) descriptors_at: u16,
    pub(in crate::compressed) short_at: u16,
    /// The number of bytes in the short region.
    pub(super) short_bytes: u32,
    /// The number of values in the long region.
    pub(super) long_values: u16,
}

impl CdHead {
    /// A placeholder that equals the head of no record.
    pub(in crate::compressed) const NONE: Self =
        Self { status: 0, column_count: u16::MAX, descriptors_at: 0, short_at: 0, short_bytes: 0, long_values: 0 };

    /// Reads the head of the record at the start of `space`, in a rowset with `columns` columns.
    #[inline(always)]
    pub(in crate::compressed) fn read(space: &[u8], columns: usize) -> Result<Self, CdIssue> {
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
            // It is an open question which byte is the high one (docs/format/README.md#open-questions). The count is
            // read like other lengths of the format, with the high byte first, and accepted if it then equals the
            // number of columns in the rowset.
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
        let short_at = clusters_at + leading_clusters(column_count);
        let cluster_bytes = space.get(clusters_at..short_at).ok_or(CdFault::new(ShortRegion, short_at, length))?;
        let (short_bytes, long_values) = sums(descriptors, column_count, cluster_bytes)?;
        Ok(Self {
            status,
            column_count: column_count as u16,
            descriptors_at: descriptors_at as u16,
            short_at: short_at as u16,
            short_bytes: short_bytes as u32,
            long_values: long_values as u16,
        })
    }

    /// The length in bytes of the head of a record with a one-byte column count; `None` from 128 columns on, because
    /// the count then has two bytes.
    pub(in crate::compressed) fn length_of(columns: u16) -> Option<usize> {
        let count = usize::from(columns);
        (columns < WIDE_COUNT.into()).then_some(2 + count.div_ceil(2) + leading_clusters(count))
    }

    /// The column count of the record at the start of `space`. `None` if the space is too short, or if a count below
    /// 128 is stored in two bytes: the head is then longer than in other records with this count.
    #[inline(always)]
    pub(in crate::compressed) fn column_count_of(space: &[u8]) -> Option<u16> {
        let first = *space.get(1)?;
        match first & WIDE_COUNT {
            0 => Some(first.into()),
            _ => {
                let count = u16::from(first & !WIDE_COUNT) << 8 | u16::from(*space.get(2)?);
                Some(count).filter(|count| *count >= WIDE_COUNT.into())
            }
        }
    }

    /// Whether the version tag bit is set. The place of the version tag is known only if the end of the record is
    /// known. The end of a forwarded row is unknown.
    #[inline(always)]
    pub(in crate::compressed) fn is_versioned(self) -> bool {
        self.status & cd_status::VERSION_TAG != 0
    }

    /// The bytes of a record from its half-bytes on, if the record begins with this head. Each byte has the half-bytes
    /// of two columns.
    pub(in crate::compressed) fn descriptors(self, space: &[u8]) -> &[u8] {
        space.get(self.descriptors_at.into()..).unwrap_or_default()
    }
}

/// The number of clusters that have a length byte before the short region: all except the last.
#[inline(always)]
pub(super) fn leading_clusters(columns: usize) -> usize {
    columns.saturating_sub(1) / CLUSTER
}

/// Three sums over descriptors: the low 16 bits count bytes in the short region, bits 16 to 23 count values in the long
/// region, and the higher bits count half-bytes that are no valid descriptor. The sums cover at most the 30 columns of
/// a cluster, so they cannot overflow.
#[derive(Clone, Copy, Default)]
struct PairSum(u32);

impl PairSum {
    /// The sums of the two descriptors in a byte, by the value of the byte.
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

    /// The sums of the descriptors in `bytes`, which belong to `columns` columns of one cluster.
    #[inline]
    fn of_cluster(bytes: &[u8], columns: usize) -> Self {
        // The high half of the last byte may be unused.
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

/// Returns the number of bytes in the short region, and the number of values in the long region. Returns a fault if a
/// descriptor is invalid, or if the stored length of a cluster is not the sum of its columns' lengths.
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

/// The sums for records of more than one cluster.
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

/// The fault for the first half-byte that is no valid descriptor.
#[cold]
fn invalid(descriptors: &[u8], columns: usize) -> CdIssue {
    let nibbles = descriptors.iter().flat_map(|byte| [byte & 0xF, byte >> 4]).take(columns);
    let nibble = nibbles.into_iter().find(|nibble| Descriptor::of(*nibble).is_none()).unwrap_or_default();
    CdFault::new(CdTest::Descriptor, nibble.into(), 12).into()
}
