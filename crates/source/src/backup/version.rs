//! The versions of the compressed container, and the format of the records in each version
//! (docs/format/backups.md#compressed-containers).

use format::bytes::{u16_at, u32_at};

/// Number of sectors in the largest record. The number is stored in one byte, but no writer uses the whole range.
pub(super) const MAX_SECTORS: u8 = 128;

/// The properties in which container versions differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    /// File offset of the first record.
    pub(super) first: u64,
    pub(super) tag: u8,
    /// `header` is the length of a record's header; `checksum` is the offset of the checksum in this header.
    pub(super) header: usize,
    pub(super) checksum: usize,
    /// `filler` is the tag of a filler; `filler_header` is the length of a filler's header.
    filler: u8,
    filler_header: usize,
}

/// The container of SQL Server 2008.
pub(super) const V1: Version =
    Version { first: 0x10, tag: 0x81, header: 8, checksum: 4, filler: 0x84, filler_header: 4 };
/// The container of SQL Server 2008 R2 and later.
pub(super) const V2: Version =
    Version { first: 0x1E0, tag: 0x21, header: 28, checksum: 24, filler: 0x24, filler_header: 24 };
/// This bit is set in a filler's tag if the filler contains anything other than zeros. The contents are apparently the
/// places of the set's streams.
const CONTENTS: u8 = 8;

impl Version {
    /// The number of bytes at the start of a filler that are needed to find its length.
    pub(super) const FILLER_START: usize = 24 + 12;

    /// The container version that two words after the magic bytes identify. The words of the known versions are 1 and
    /// 1, or 2 and 3. `None` for other words, because other versions use other algorithms.
    pub(super) fn of(words: &[u8]) -> Option<Self> {
        match words {
            [1, 0, 0, 0, 1, 0, 0, 0] => Some(V1),
            [2, 0, 0, 0, 3, 0, 0, 0] => Some(V2),
            _ => None,
        }
    }

    /// Length in bytes of the longest record, with its header.
    pub(super) fn most_bytes(self) -> u64 {
        (self.header + usize::from(u16::MAX)) as u64
    }

    /// The number of sectors and the payload of the record at the start of `bytes`; `None` if the record is invalid or
    /// has a wrong checksum.
    pub(super) fn record(self, bytes: &[u8]) -> Option<(u8, &[u8])> {
        let &[tag, sectors, low, high] = bytes.first_chunk()?;
        let size = usize::from(u16::from_le_bytes([low, high]));
        let payload = bytes.get(self.header..self.header + size)?;
        let is_sound = tag == self.tag
            && (1..=MAX_SECTORS).contains(&sectors)
            && size > 0
            && u32_at(bytes, self.checksum) == Some(checksum(payload));
        is_sound.then_some((sectors, payload))
    }

    /// Returns the length of the filler at the start of `bytes`. A filler is a record of zero sectors with no checksum
    /// in its header. An empty filler stores its size at the place where a record stores its size. A filler with
    /// contents stores its size in the third word of the contents.
    ///
    /// The 9 known compressed files, of both versions, contain 29 soft filemarks. A filler precedes each of these
    /// filemarks; nothing else occurs between records.
    pub(super) fn filler(self, bytes: &[u8]) -> Option<u64> {
        let &[tag, 0] = bytes.first_chunk()? else { return None };
        let size = match (tag ^ self.filler, u16_at(bytes, 2)?) {
            (0, size) => u32::from(size),
            (CONTENTS, 0) => u32_at(bytes, self.filler_header + 8)?,
            _ => return None,
        };
        Some(self.filler_header as u64 + u64::from(size))
    }
}

/// Checksum of a record: the sum is rotated left by one bit and XORed with the next 4-byte word. The last word is
/// padded with zeros.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    // Words at a distance of 32 words are rotated equally, so 32 independent sums can be computed in parallel.
    let (groups, rest) = bytes.as_chunks::<128>();
    let mut lanes = [0u32; 32];
    for group in groups {
        for (lane, word) in lanes.iter_mut().zip(group.as_chunks::<4>().0) {
            *lane ^= u32::from_le_bytes(*word);
        }
    }
    let sum = lanes.iter().fold(0u32, |sum, lane| sum.rotate_left(1) ^ lane);
    let (words, rest) = rest.as_chunks::<4>();
    let sum = words.iter().fold(sum, |sum, word| sum.rotate_left(1) ^ u32::from_le_bytes(*word));
    if rest.is_empty() {
        return sum;
    }
    let last = rest.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
    sum.rotate_left(1) ^ last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_pads_with_zeros() {
        assert_eq!(checksum(&[]), 0);
        assert_eq!(checksum(&[1, 0, 0, 0, 2]), 2 ^ 2);
        assert_eq!(checksum(&[1, 0, 0, 0, 2, 0, 0, 0]), checksum(&[1, 0, 0, 0, 2]));
        assert_eq!(checksum(&[0, 0, 0, 0x80, 0, 0, 0, 0]), 1, "the top bit comes back below");
        let bytes: Vec<u8> = (0..1003u32).map(|n| (n * n / 8) as u8).collect();
        for length in 0..bytes.len() {
            let one_by_one = bytes[..length].chunks(4).fold(0u32, |sum, chunk| {
                let mut word = [0; 4];
                word[..chunk.len()].copy_from_slice(chunk);
                sum.rotate_left(1) ^ u32::from_le_bytes(word)
            });
            assert_eq!(checksum(&bytes[..length]), one_by_one, "{length} bytes");
        }
    }

    #[test]
    fn a_fillers_length_is_in_its_header_if_empty_and_else_in_its_contents() {
        // The first bytes of fillers in real files.
        let old = [&[0x8C, 0, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0, 0x16, 2, 0, 0][..], &[0; 24]].concat();
        let new = [&[0x2C, 0, 0, 0][..], &[0; 20], &[1, 0, 1, 0, 2, 0, 0, 0, 0x1C, 1, 0, 0]].concat();
        assert_eq!((V1.filler(&old), V2.filler(&new)), (Some(538), Some(308)));
        assert_eq!((V1.filler(&[0x84, 0, 0x82, 0]), V2.filler(&[0x24, 0, 0x8A, 0])), (Some(134), Some(162)));
        assert_eq!(V2.filler(&[0x24, 1, 0x8A, 0]), None, "it holds something");
        assert_eq!(V2.filler(&[0x21, 0, 0x8A, 0]), None, "a record");
        assert_eq!(V1.filler(&[0x24, 0, 0x8A, 0]), None, "of the other version");
        assert_eq!((V2.filler(&new[..35]), V2.filler(&[0; 36]), V2.filler(&[])), (None, None, None));
    }
}
