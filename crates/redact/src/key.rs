//! The secret of a run, and pseudorandom numbers from it.

/// The secret from which all new names and values follow. A run draws it, uses it and forgets it.
#[derive(Clone, Copy)]
pub struct Key([u64; 2]);

impl Key {
    /// A random secret of the operating system.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn random() -> Result<Self, getrandom::Error> {
        Ok(Self([getrandom::u64()?, getrandom::u64()?]))
    }

    /// A secret that everybody can repeat, for tests.
    pub fn from_seed(seed: u64) -> Self {
        Self([seed, !seed])
    }

    /// SipHash-2-4 of these words. It can be computed only with the key, and does not reveal the key.
    pub(crate) fn hash(self, words: impl IntoIterator<Item = u64>) -> u64 {
        let [low, high] = self.0;
        let mut state = [
            low ^ 0x736f_6d65_7073_6575,
            high ^ 0x646f_7261_6e64_6f6d,
            low ^ 0x6c79_6765_6e65_7261,
            high ^ 0x7465_6462_7974_6573,
        ];
        let mut count = 0u64;
        for word in words {
            absorb(&mut state, word);
            count += 1;
        }
        // The original absorbs the length in bytes with the last bytes; all lengths here are multiples of 8.
        absorb(&mut state, count.wrapping_mul(8) << 56);
        state[2] ^= 0xFF;
        (0..4).for_each(|_| round(&mut state));
        state.iter().fold(0, |all, word| all ^ word)
    }

    /// The hash of a string of bytes.
    pub(crate) fn hash_bytes(self, tag: u64, bytes: &[u8]) -> u64 {
        let words = bytes.chunks(8).map(|chunk| chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        self.hash([tag, bytes.len() as u64].into_iter().chain(words))
    }

    /// A stream of pseudorandom numbers.
    pub(crate) fn stream(self, seed: u64) -> Stream {
        Stream { key: self, seed, count: 0 }
    }
}

fn absorb(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    (0..2).for_each(|_| round(state));
    state[0] ^= word;
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

/// A stream of pseudorandom numbers.
pub(crate) struct Stream {
    key: Key,
    seed: u64,
    count: u64,
}

impl Stream {
    pub(crate) fn next(&mut self) -> u64 {
        self.count += 1;
        self.key.hash([self.seed, self.count])
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or_default()
    }

    /// A number from 0 to `last`.
    pub(crate) fn up_to(&mut self, last: u128) -> u128 {
        let wide = u128::from(self.next()) << 64 | u128::from(self.next());
        last.checked_add(1).map_or(wide, |bound| wide % bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_siphash_2_4() {
        // The vector for eight bytes 0 to 7 and the key of bytes 0 to 15, from the paper on SipHash.
        let key = Key([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        assert_eq!(key.hash([0x0706_0504_0302_0100]).to_le_bytes(), [0x62, 0x24, 0x93, 0x9a, 0x79, 0xf5, 0xf5, 0x93]);
    }
}
