//! A set of numbers, stored as bits. The storage grows with the highest number.

/// One bit per number.
#[derive(Clone, Default)]
pub(crate) struct BitSet(Vec<u64>);

impl BitSet {
    /// Whether `n` is in the set.
    pub(crate) fn has(&self, n: u32) -> bool {
        self.0.get(n as usize / 64).is_some_and(|word| word >> (n % 64) & 1 == 1)
    }

    /// Adds `n`.
    pub(crate) fn insert(&mut self, n: u32) {
        let word = n as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (n % 64);
    }

    /// The bits `from .. from + 8 * count` as bytes, lowest bit first. `from` must be a multiple of 32.
    pub(crate) fn bytes(&self, from: u32, count: usize) -> Vec<u8> {
        let halves = self.0.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]);
        let halves = halves.skip(from as usize / 32).chain(std::iter::repeat(0));
        let mut out: Vec<u8> = halves.take(count.div_ceil(4)).flat_map(u32::to_le_bytes).collect();
        out.truncate(count);
        out
    }
}
