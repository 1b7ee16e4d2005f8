//! Changes of bytes in a buffer, and the checksum of sectors.

/// Overwrites the bytes at `at` with `value`.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Adds sectors to a checksum: for each sector, rotates the sum left by one bit and combines it with the words of the
/// sector by XOR.
pub(crate) fn sectors(sum: u32, bytes: &[u8]) -> u32 {
    bytes.chunks(512).fold(sum, |sum, sector| {
        let words = sector.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        sum.rotate_left(1) ^ words.fold(0, |all, word| all ^ word)
    })
}
