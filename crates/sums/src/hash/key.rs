//! A key of 256 bits, for runs that pass sums from one process to another.

use std::fmt;

/// The key with which several processes hash facts. No message, report or debug output contains it.
#[derive(Clone, PartialEq, Eq)]
pub struct HashKey([u8; Self::BYTES]);

impl HashKey {
    /// Length of the key in bytes.
    pub const BYTES: usize = 32;

    /// The key with these bytes, which should come from the system's source of random numbers.
    pub fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes of the key. Store them only where only the processes of the run can read them.
    pub fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// The numbers derived from the key: the key stream of ChaCha20. Even with some of the numbers, no one can derive
    /// the key or the other numbers.
    pub(super) fn stream(&self) -> impl Iterator<Item = u64> + '_ {
        (0..).flat_map(|number| {
            let block = block(&self.0, number);
            let pairs: [[u32; 2]; 8] =
                std::array::from_fn(|at| [2 * at, 2 * at + 1].map(|at| block.get(at).copied().unwrap_or_default()));
            pairs.map(|[low, high]| u64::from(high) << 32 | u64::from(low))
        })
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(..)")
    }
}

/// A block of ChaCha20 (RFC 8439, 2.3) with a nonce of zeros.
#[expect(clippy::indexing_slicing, reason = "all places are below 16")]
fn block(key: &[u8; HashKey::BYTES], number: u32) -> [u32; 16] {
    let mut start = [0; 16];
    start[..4].copy_from_slice(&[0x6170_7865, 0x3320_646E, 0x7962_2D32, 0x6B20_6574]);
    for (to, word) in start[4..12].iter_mut().zip(key.chunks_exact(4)) {
        *to = word.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
    }
    start[12] = number;
    let mut state = start;
    let mut quarter = |a: usize, b: usize, c: usize, d: usize| {
        for [into, add, turned, by] in [[a, b, d, 16], [c, d, b, 12], [a, b, d, 8], [c, d, b, 7]] {
            state[into] = state[into].wrapping_add(state[add]);
            state[turned] = (state[turned] ^ state[into]).rotate_left(by as u32);
        }
    };
    for _ in 0..10 {
        for column in 0..4 {
            quarter(column, 4 + column, 8 + column, 12 + column);
        }
        for column in 0..4 {
            quarter(column, 4 + (column + 1) % 4, 8 + (column + 2) % 4, 12 + (column + 3) % 4);
        }
    }
    std::array::from_fn(|at| state[at].wrapping_add(start[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_that_of_the_standard() {
        // RFC 8439, A.1, test vectors 1 and 2.
        let key = [0; 32];
        assert_eq!(block(&key, 0)[..4], [0xADE0_B876, 0x903D_F1A0, 0xE56A_5D40, 0x28BD_8653]);
        assert_eq!(block(&key, 1)[..4], [0xBEE7_079F, 0x7A38_5155, 0x7C97_BA98, 0x0D08_2D73]);
        // Test vector 3: the last byte of the key is 1.
        let mut key = [0; 32];
        key[31] = 1;
        assert_eq!(block(&key, 1)[..4], [0x2452_EB3A, 0x9249_F8EC, 0x8D82_9D9B, 0xDDD4_CEB1]);
    }

    #[test]
    fn a_key_is_in_no_text() {
        assert_eq!(format!("{:?}", HashKey::new([77; 32])), "HashKey(..)");
    }
}
