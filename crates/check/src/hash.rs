//! Keyed hashes of facts, added up in any order: two sides of a relation are equal sets if their sums are equal.
//!
//! Sums wrap and add; they never XOR, under which two equal surplus facts would cancel. The key is new in every run, so
//! that no file can be made whose facts cancel, and a chance miss (about 2^-120 per comparison) does not repeat.

use std::hash::{BuildHasher, RandomState};

use format::{PageId, RecordId};

/// Hashes facts under the run's key.
#[derive(Clone, Copy)]
pub(crate) struct FactHash {
    key: [u64; 4],
}

/// Hashes a sequence of values under the run's key.
pub(crate) struct Hasher {
    state: (u64, u64),
    key: [u64; 4],
}

impl Hasher {
    fn add_word(&mut self, word: u64) {
        let [k0, k1, ..] = self.key;
        self.state = (fold(self.state.0 ^ word, k0), fold(self.state.1 ^ word.rotate_left(32), k1));
    }

    /// Adds NULL.
    pub(crate) fn add_null(&mut self) {
        self.add_word(u64::MAX);
        self.add_word(1);
    }

    /// Adds a value; its length counts, so that neighbours do not run into each other.
    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in words.by_ref() {
            self.add_word(word.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)));
        }
        let rest = words.remainder().iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        self.add_word(rest ^ (bytes.len() as u64) << 56);
        self.add_word(bytes.len() as u64);
    }

    /// The hash.
    pub(crate) fn finish(&self) -> (u64, u64) {
        let [.., k2, k3] = self.key;
        (fold(self.state.0 ^ k2, self.state.1 | 1), fold(self.state.1 ^ k3, self.state.0 | 1))
    }
}

/// Order-free sum of hashed facts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Sum(u64, u64);

impl Sum {
    /// Adds a fact.
    pub(crate) fn add(&mut self, fact: Sum) {
        self.0 = self.0.wrapping_add(fact.0);
        self.1 = self.1.wrapping_add(fact.1);
    }
}

impl From<(u64, u64)> for Sum {
    fn from((first, second): (u64, u64)) -> Self {
        Self(first, second)
    }
}

impl FactHash {
    /// Hashes a sequence of values.
    pub(crate) fn hasher(&self) -> Hasher {
        let [_, _, k2, k3] = self.key;
        Hasher { state: (k2, k3), key: self.key.map(|key| key | 1) }
    }

    /// A hash with a key of its own.
    pub(crate) fn new() -> Self {
        let state = RandomState::new();
        Self { key: [1u8, 2, 3, 4].map(|number| state.hash_one(number)) }
    }

    fn hash(&self, a: u64, b: u64) -> Sum {
        let [k0, k1, k2, k3] = self.key;
        let first = fold(fold(a ^ k0, k1) ^ b, k2);
        let second = fold(fold(b ^ k1, k3) ^ a, k0);
        Sum(fold(first ^ k3, k2 | 1), fold(second ^ k2, k1 | 1))
    }

    /// A page exists.
    pub(crate) fn page(&self, page: PageId) -> Sum {
        self.hash(number(page), 0)
    }

    /// `from` points to `to`.
    pub(crate) fn link(&self, from: PageId, to: PageId) -> Sum {
        self.hash(number(from), number(to))
    }

    /// A stub at `stub` leads to the row at `row`.
    pub(crate) fn forward(&self, stub: RecordId, row: RecordId) -> Sum {
        self.hash(record_number(stub), record_number(row))
    }

    /// The record at `at` is a fragment of the off-row value `id`.
    pub(crate) fn fragment(&self, at: RecordId, id: u64) -> Sum {
        self.hash(record_number(at), id)
    }

    /// The fragment at `at`, `level` levels above the data, has `size` bytes of its value below it.
    pub(crate) fn part(&self, at: RecordId, size: u64, level: u16) -> Sum {
        let Sum(first, second) = self.hash(record_number(at), size);
        self.hash(first ^ u64::from(level), second)
    }

    /// Spreads records evenly over numbers.
    pub(crate) fn spread(&self, at: RecordId) -> u64 {
        self.hash(record_number(at), 0).0
    }
}

fn number(page: PageId) -> u64 {
    u64::from(page.file) << 32 | u64::from(page.page)
}

fn record_number(record: RecordId) -> u64 {
    number(record.page) << 16 | u64::from(record.slot)
}

/// 64 x 64 bit multiplication, folded.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_tell_sets_apart_and_do_not_depend_on_order() {
        let hash = FactHash::new();
        let pages: Vec<PageId> = (0..1000).map(|page| PageId::new(1, page)).collect();
        let sum = |pages: &mut dyn Iterator<Item = &PageId>| {
            let mut sum = Sum::default();
            pages.for_each(|page| sum.add(hash.page(*page)));
            sum
        };
        assert_eq!(sum(&mut pages.iter()), sum(&mut pages.iter().rev()));
        assert_ne!(sum(&mut pages.iter()), sum(&mut pages.iter().skip(1)));
        let twice = [pages[3], pages[3]];
        assert_ne!(sum(&mut twice.iter()), Sum::default(), "equal surplus facts must not cancel");
        assert_ne!(hash.link(pages[1], pages[2]), hash.link(pages[2], pages[1]));
    }
}
