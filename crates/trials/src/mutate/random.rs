//! A small pseudo-random generator (splitmix64). Its numbers depend only on its seed.

/// Pseudo-random numbers from a seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// The next number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() % (limit.max(1) as u64)) as usize
    }

    /// A random element of `items`; `None` if there are no items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

/// Mixes the bits of `value`.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
