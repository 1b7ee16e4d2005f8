//! The digits of small numbers, from which all other numbers are composed.

/// The digits of all numbers below 10,000, with leading zeros. Each entry is a word with the first digit in the lowest
/// byte. Looking up the digits needs less than half the time of calculating them.
static FOURS: [u32; 10_000] = fours();

// Every index below is less than the array length. This function runs at compile time.
#[allow(clippy::indexing_slicing)]
const fn fours() -> [u32; 10_000] {
    let mut all = [0; 10_000];
    let mut n = 0;
    while n < all.len() {
        all[n] = u32::from_le_bytes([digit(n / 1000), digit(n / 100), digit(n / 10), digit(n)]);
        n += 1;
    }
    all
}

const fn digit(n: usize) -> u8 {
    b'0' + (n % 10) as u8
}

/// The character `0` in each byte.
pub(super) const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The four digits of a number below 10,000.
#[inline]
pub(super) fn four(n: u64) -> u32 {
    FOURS.get(n as usize).copied().unwrap_or(ZEROS as u32)
}

/// The eight digits of a number below 10^8, the first in the lowest byte.
#[inline]
pub(super) fn eight(n: u64) -> u64 {
    u64::from(four(n / 10_000)) | u64::from(four(n % 10_000)) << 32
}

/// Writes the first `length` of eight digits.
#[inline]
pub(super) fn first_of(out: &mut Vec<u8>, digits: u64, length: usize) {
    let end = out.len() + length;
    out.extend_from_slice(&digits.to_le_bytes());
    out.truncate(end);
}
