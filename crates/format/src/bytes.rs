//! Checked little-endian reads. They are used wherever an offset, or the length of a slice, comes from a file.

/// The byte at `offset`; `None` if it is outside `bytes`.
#[inline]
pub fn u8_at(bytes: &[u8], offset: usize) -> Option<u8> {
    bytes.get(offset).copied()
}

/// The `N` bytes at `offset`; `None` if they are not all inside `bytes`.
#[inline]
pub fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk::<N>().copied()
}

/// The little-endian `u16` at `offset`; `None` if it is not inside `bytes`.
///
/// ```
/// assert_eq!(format::bytes::u16_at(&[0, 0x34, 0x12], 1), Some(0x1234));
/// assert_eq!(format::bytes::u16_at(&[0, 0x34, 0x12], 2), None);
/// ```
#[inline]
pub fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    array_at(bytes, offset).map(u16::from_le_bytes)
}

/// The little-endian `u32` at `offset`; `None` if it is not inside `bytes`.
#[inline]
pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array_at(bytes, offset).map(u32::from_le_bytes)
}

/// The little-endian `u64` at `offset`; `None` if it is not inside `bytes`.
#[inline]
pub fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    array_at(bytes, offset).map(u64::from_le_bytes)
}

/// A little-endian unsigned integer of up to eight bytes.
#[inline]
pub fn unsigned(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h, ..] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        // The first and the last word overlap, but a byte that is in both has the same position in the result.
        _ => match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(low), Some(high)) => {
                let high = u64::from(u32::from_le_bytes(*high)) << (8 * (bytes.len() - 4));
                u64::from(u32::from_le_bytes(*low)) | high
            }
            _ => bytes.iter().rev().fold(0, |value, &byte| (value << 8) | u64::from(byte)),
        },
    }
}

/// The number of bytes before the first byte for which `is_special` is true. The search tests eight bytes at a time,
/// which is fast if `is_special` has no branches.
///
/// ```
/// assert_eq!(format::bytes::plain_start(b"a plain text, and more", |byte| byte == b','), 12);
/// ```
#[inline]
pub fn plain_start(bytes: &[u8], is_special: impl Fn(u8) -> bool) -> usize {
    let is_plain = |chunk: &&[u8; 8]| !chunk.iter().fold(false, |has, byte| has | is_special(*byte));
    let plain = 8 * bytes.as_chunks().0.iter().take_while(is_plain).count();
    let rest = bytes.get(plain..).unwrap_or_default();
    // The last eight bytes overlap bytes that were tested before.
    if rest.len() < 8 && bytes.last_chunk().is_some_and(|last| is_plain(&last)) {
        return bytes.len();
    }
    plain + rest.iter().take_while(|byte| !is_special(**byte)).count()
}

/// Decodes UTF-16LE text. Unpaired surrogates become U+FFFD; an odd last byte is dropped.
pub fn utf16(bytes: &[u8]) -> String {
    let units = bytes.as_chunks::<2>().0;
    // A fast path for ASCII, because nearly all names are ASCII.
    if units.iter().all(|pair| u16::from_le_bytes(*pair) < 0x80) {
        return units.iter().map(|[low, _]| char::from(*low)).collect();
    }
    let units = units.iter().map(|pair| u16::from_le_bytes(*pair));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
