//! Pseudo-random numbers that depend only on a seed.

/// Returns a number whose bits depend on all bits of `n` (the finalizer of SplitMix64).
pub(crate) fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ n >> 31
}

/// A sequence of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Starts the sequence for a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(bound);
        (wide >> 64) as u64
    }

    /// True with a probability of `percent` percent.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// An invertible shuffle of the numbers below `count`: `n * factor + offset` modulo `count`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shuffle {
    count: u64,
    factor: u64,
    inverse: u64,
    offset: u64,
}

impl Shuffle {
    /// Creates the shuffle that the seed determines.
    pub(crate) fn new(count: u64, seed: u64) -> Self {
        let count = count.max(1);
        let mut factor = mix(seed) % count;
        let inverse = loop {
            match inverse(factor, count) {
                Some(inverse) => break inverse,
                None => factor = (factor + 1) % count,
            }
        };
        Self { count, factor, inverse, offset: mix(seed ^ 1) % count }
    }

    /// The number to which the shuffle maps `n`.
    pub(crate) fn to(&self, n: u64) -> u64 {
        self.multiply_add(n, self.factor, self.offset)
    }

    /// The number that the shuffle maps to `n`.
    pub(crate) fn from(&self, n: u64) -> u64 {
        let moved = if n >= self.offset { n - self.offset } else { n + (self.count - self.offset) };
        self.multiply_add(moved, self.inverse, 0)
    }

    fn multiply_add(&self, n: u64, factor: u64, offset: u64) -> u64 {
        // 64-bit division is cheaper, and the product cannot overflow for up to 2^32 numbers.
        if self.count <= 1 << 32 {
            return (n * factor + offset) % self.count;
        }
        let wide = u128::from(n) * u128::from(factor) + u128::from(offset);
        (wide % u128::from(self.count)) as u64
    }
}

/// The inverse of `a` modulo `m`; `None` if it does not exist. Modulo 1, the inverse is 0.
fn inverse(a: u64, m: u64) -> Option<u64> {
    let (mut r0, mut r1) = (i128::from(m), i128::from(a));
    let (mut t0, mut t1) = (0i128, 1i128);
    while r1 != 0 {
        let q = r0 / r1;
        (r0, r1) = (r1, r0 - q * r1);
        (t0, t1) = (t1, t0 - q * t1);
    }
    (r0 == 1).then(|| t0.rem_euclid(i128::from(m)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_can_be_undone_and_misses_nothing() {
        for count in [1u64, 2, 3, 10, 97, 1000, 4096] {
            let shuffle = Shuffle::new(count, count * 31);
            let mut seen = vec![false; count as usize];
            for n in 0..count {
                assert_eq!(shuffle.from(shuffle.to(n)), n);
                seen[shuffle.to(n) as usize] = true;
            }
            assert!(seen.into_iter().all(|seen| seen));
        }
    }
}
