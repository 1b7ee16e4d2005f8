//! A group of parts as bytes, in a ledger and in the part of a task.
//!
//! | content | bytes |
//! |---|---|
//! | number of parts | 4 |
//! | length of the merged sums | 4 |
//! | for each part: its key, the lengths of its sums, of its key bounds and of its digests of extents | 58 + 4 + 4 + 4 |
//! | the merged sums | |
//! | the sums of all parts | |
//! | the key bounds of all parts | |
//! | the digests of extents of all parts | |

use super::{Part, PartKey};

/// More parts than any group has.
pub const MOST_PARTS: u64 = 128;
/// The number of pieces of a part.
pub const PIECES: usize = 3;
/// Bytes per part in the list of parts.
pub const ENTRY_BYTES: usize = PartKey::BYTES + 4 * PIECES;

/// The bytes of a group before the sums.
pub fn head(parts: &[Part], all: &[u8]) -> Vec<u8> {
    let mut head: Vec<u8> =
        [parts.len(), all.len()].into_iter().flat_map(|length| (length as u32).to_le_bytes()).collect();
    for part in parts {
        head.extend(part.key.to_bytes());
        let lengths: [usize; PIECES] = [part.sums.len(), part.bounds.len(), part.extents.len()];
        head.extend(lengths.into_iter().flat_map(|length| (length as u32).to_le_bytes()));
    }
    head
}

/// All bytes of a group. `head` is the result of [`head`].
pub fn pieces<'p>(head: &'p [u8], parts: &'p [Part], all: &'p [u8]) -> impl Iterator<Item = &'p [u8]> {
    let (sums, bounds) = (parts.iter().map(|part| &*part.sums), parts.iter().map(|part| &*part.bounds));
    [head, all].into_iter().chain(sums).chain(bounds).chain(parts.iter().map(|part| &*part.extents))
}

/// The parts of a group and their merged sums, from all of its bytes; `None` if the bytes are no group.
pub(super) fn unpacked(bytes: &[u8]) -> Option<(Vec<Part>, Vec<u8>)> {
    let mut rest = bytes;
    let (count, all) = (number(&mut rest)?, number(&mut rest)?);
    if count == 0 || count as u64 > MOST_PARTS {
        return None;
    }
    let mut lengths = Vec::new();
    let mut parts = Vec::new();
    for _ in 0..count {
        let key = PartKey::from_bytes(piece(&mut rest, PartKey::BYTES)?)?;
        lengths.push([number(&mut rest)?, number(&mut rest)?, number(&mut rest)?]);
        parts.push(Part { key, sums: Vec::new(), bounds: Vec::new(), extents: Vec::new() });
    }
    let all = piece(&mut rest, all)?.to_vec();
    for (part, [sums, ..]) in parts.iter_mut().zip(&lengths) {
        part.sums = piece(&mut rest, *sums)?.to_vec();
    }
    for (part, [_, bounds, _]) in parts.iter_mut().zip(&lengths) {
        part.bounds = piece(&mut rest, *bounds)?.to_vec();
    }
    for (part, [.., extents]) in parts.iter_mut().zip(&lengths) {
        part.extents = piece(&mut rest, *extents)?.to_vec();
    }
    rest.is_empty().then_some((parts, all))
}

fn piece<'b>(rest: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (piece, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(piece)
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    Some(u32::from_le_bytes(*piece(rest, 4)?.first_chunk()?) as usize)
}

#[cfg(test)]
mod tests {
    use findings::FileRange;

    use super::*;

    #[test]
    fn a_group_comes_back_from_its_bytes_and_from_no_others() {
        let part = |first: u32, sums: &[u8], bounds: &[u8], extents: &[u8]| {
            let range = FileRange { file_id: 1, first, pages: 32 };
            let key = PartKey { range, above: [1; 16], maps: [2; 16], meaning: [3; 16] };
            Part { key, sums: sums.to_vec(), bounds: bounds.to_vec(), extents: extents.to_vec() }
        };
        let parts = [part(0, b"sums", b"bounds", b""), part(32, b"", b"b", b"extents"), part(96, b"more", b"", b"e")];
        let head = head(&parts, b"all");
        let bytes: Vec<u8> = pieces(&head, &parts, b"all").flatten().copied().collect();
        assert_eq!(unpacked(&bytes), Some((parts.to_vec(), b"all".to_vec())));
        for length in 0..bytes.len() {
            assert_eq!(unpacked(&bytes[..length]), None, "{length}");
        }
        assert_eq!(unpacked(&[&bytes[..], b"x"].concat()), None);
        let mut many = bytes.clone();
        many[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(unpacked(&many), None);
    }
}
