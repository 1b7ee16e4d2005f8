//! Keyed hashes of facts, added up in any order. Equal sums show that they were made from equal sets of facts.
//!
//! Sums use wrapping addition, never XOR: under XOR, a surplus fact that occurs twice would cancel itself. Every run
//! uses a new key, so no one can craft a file whose facts cancel. The sums of different sets may be equal by chance,
//! but only with a probability of at most 2^-64 per comparison. Such a coincidence does not repeat in the next run.

mod key;

use std::hash::{BuildHasher, RandomState};

use format::bytes::unsigned;
use format::{PageId, RecordId};

pub use key::HashKey;

/// A hash of bytes under the run's key.
pub type Digest = [u8; 16];

/// Hashes facts under the run's key.
#[derive(Clone, Copy)]
pub struct FactHash {
    key: [u64; 4],
    words: WordKeys,
}

/// Hashes a sequence of values under the run's key.
pub struct Hasher<'k> {
    state: State,
    /// Whether the current pair of words has its first word but not yet its second.
    is_open: bool,
    keys: &'k WordKeys,
}

/// The role of a word within its value. Words of different roles hash differently, so an inner word is never mistaken
/// for the end of a value, and adjacent values stay separate.
pub type Role = usize;

/// The role of all words except the last word of a value. The last word has 0 to 8 bytes, and its length is its role.
pub const INNER: Role = 10;
/// The role of NULL; no word of a value has this role.
const NULL: Role = 9;

/// The secret numbers that are mixed with words: one for each role and each place in a pair. Without knowing them, no
/// one can craft a word that hashes like a word of another role.
#[derive(Clone, Copy, Default)]
struct WordKeys {
    first: [u64; INNER + 1],
    second: [u64; INNER + 1],
    start: State,
    finish: [u64; 4],
}

impl WordKeys {
    #[inline(always)]
    fn first(&self, role: Role) -> u64 {
        self.first.get(role).copied().unwrap_or_default()
    }

    #[inline(always)]
    fn second(&self, role: Role) -> u64 {
        self.second.get(role).copied().unwrap_or_default()
    }
}

/// The state of a hash. Words are added in pairs: one multiplication mixes the two words, and each half of the state
/// receives one half of the 128-bit product.
#[derive(Clone, Copy, Default)]
struct State(u64, u64);

impl State {
    /// Adds the first word of a pair.
    #[inline(always)]
    fn open(&mut self, key: u64, word: u64) {
        self.0 ^= word.wrapping_add(key);
    }

    /// Adds the second word of a pair.
    #[inline(always)]
    fn close(&mut self, key: u64, word: u64) {
        self.1 ^= word.wrapping_add(key);
        let product = u128::from(self.0) * u128::from(self.1);
        // The two halves are swapped while the product is added, so no information is lost if a factor is 0.
        *self = Self(self.1.wrapping_add(product as u64), self.0 ^ (product >> 64) as u64);
    }

    #[inline(always)]
    fn add(&mut self, keys: &WordKeys, is_open: &mut bool, role: Role, word: u64) {
        match *is_open {
            false => self.open(keys.first(role), word),
            true => self.close(keys.second(role), word),
        }
        *is_open = !*is_open;
    }

    #[inline(always)]
    fn finish(self, keys: [u64; 4]) -> (u64, u64) {
        let (Self(first, second), [k0, k1, k2, k3]) = (self, keys);
        (fold(first ^ k0, second ^ k1), fold(second ^ k2, first ^ k3))
    }
}

impl Hasher<'_> {
    #[inline]
    fn add_word(&mut self, word: u64) {
        self.state.add(self.keys, &mut self.is_open, INNER, word);
    }

    /// Ends a value with its last bytes, eight at most.
    #[inline]
    fn end(&mut self, last: u64, length: usize) {
        self.state.add(self.keys, &mut self.is_open, length, last);
    }

    /// Adds NULL, as a last word with a role that no value uses.
    #[inline]
    pub fn add_null(&mut self) {
        self.end(0, NULL);
    }

    /// Adds a value.
    #[inline]
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        let last = self.add_words(bytes);
        self.end(unsigned(last), last.len());
    }

    /// Adds all words of a value except the last word, and returns the bytes of the last word.
    #[inline]
    fn add_words<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        while let Some((word, rest)) = bytes.split_first_chunk()
            && !rest.is_empty()
        {
            self.add_word(u64::from_le_bytes(*word));
            bytes = rest;
        }
        bytes
    }

    /// Finishes the hash.
    #[inline]
    pub fn finish(&self) -> (u64, u64) {
        self.state.finish(self.keys.finish)
    }

    /// Finishes the hash, and returns it as bytes.
    pub fn digest(&self) -> Digest {
        let (first, second) = self.finish();
        (u128::from(first) << 64 | u128::from(second)).to_le_bytes()
    }
}

/// Hash of a row.
pub type RowHash = (u64, u64);

/// The hashes of many rows. Each call adds one value to every row, so that the processor can overlap the
/// multiplications of different rows.
#[derive(Default)]
pub struct RowHashes {
    states: Vec<State>,
    /// Whether the rows wait for the second word of a pair; `None` if some rows do and others do not.
    are_open: Option<bool>,
    /// For each row, whether it waits for the second word of a pair; used only if `are_open` is `None`.
    open: Vec<bool>,
    keys: WordKeys,
}

impl RowHashes {
    /// Starts the hashes of `rows` rows, without any values.
    pub fn start(&mut self, hash: &FactHash, rows: usize) {
        self.keys = hash.words;
        self.states.clear();
        self.states.resize(rows, hash.words.start);
        self.open.resize(rows, false);
        self.are_open = Some(false);
    }

    /// Adds a value of eight bytes at most to each row; all values have the same length.
    #[inline(always)]
    pub fn add_short(&mut self, length: usize, values: impl Iterator<Item = u64>) {
        let states = self.states.iter_mut().zip(values);
        match self.are_open {
            Some(false) => {
                let key = self.keys.first(length);
                states.for_each(|(state, value)| state.open(key, value));
                self.are_open = Some(true);
            }
            Some(true) => {
                let key = self.keys.second(length);
                states.for_each(|(state, value)| state.close(key, value));
                self.are_open = Some(false);
            }
            None => {
                let states = states.zip(&mut self.open);
                states.for_each(|((state, value), is_open)| state.add(&self.keys, is_open, length, value));
            }
        }
    }

    /// Adds NULL to each row.
    pub fn add_null(&mut self) {
        self.add_short(NULL, std::iter::repeat(0));
    }

    /// Adds a value of eight bytes at most, or NULL, to each row.
    #[inline(always)]
    pub fn add_short_or_null(&mut self, length: usize, values: impl Iterator<Item = Option<u64>>) {
        self.add(values, |hasher, value| match value {
            Some(value) => hasher.end(value, length),
            None => hasher.add_null(),
        });
    }

    /// Adds a value to each row by calling `add` with the row's hasher.
    #[inline(always)]
    pub fn add<T>(&mut self, values: impl Iterator<Item = T>, add: impl Fn(&mut Hasher<'_>, T)) {
        if let Some(are_open) = self.are_open {
            self.open.fill(are_open);
        }
        let (mut any, mut all) = (false, true);
        for ((state, is_open), value) in self.states.iter_mut().zip(&mut self.open).zip(values) {
            let mut hasher = Hasher { state: *state, is_open: *is_open, keys: &self.keys };
            add(&mut hasher, value);
            (*state, *is_open) = (hasher.state, hasher.is_open);
            any |= hasher.is_open;
            all &= hasher.is_open;
        }
        self.are_open = (any == all).then_some(any);
    }

    /// The sum of the hashes of the selected rows, and the number of these rows.
    pub fn sum_of(&self, selected: impl Iterator<Item = bool>) -> (Sum, u64) {
        let (mut sum, mut count) = (Sum::default(), 0);
        for (state, is_selected) in self.states.iter().zip(selected) {
            sum.add_if(is_selected, state.finish(self.keys.finish));
            count += u64::from(is_selected);
        }
        (sum, count)
    }

    /// The sum of the hashes of all rows.
    pub fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        self.states.iter().for_each(|state| sum.add(state.finish(self.keys.finish).into()));
        sum
    }
}

/// Hashes a value that arrives in pieces; the result equals the hash of the whole value.
#[derive(Default)]
pub struct Pieces {
    word: [u8; 8],
    filled: usize,
}

impl Pieces {
    /// Adds the next piece.
    pub fn add(&mut self, hasher: &mut Hasher<'_>, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.filled == self.word.len() {
                hasher.add_word(u64::from_le_bytes(self.word));
                self.filled = 0;
            }
            if self.filled == 0 {
                bytes = hasher.add_words(bytes);
            }
            let room = self.word.get_mut(self.filled..).unwrap_or_default();
            let taken = room.len().min(bytes.len());
            for (place, byte) in room.iter_mut().zip(bytes) {
                *place = *byte;
            }
            self.filled += taken;
            bytes = bytes.get(taken..).unwrap_or_default();
        }
    }

    /// Ends the value.
    pub fn end(self, hasher: &mut Hasher<'_>) {
        let last = self.word.get(..self.filled).unwrap_or_default();
        hasher.end(unsigned(last), self.filled);
    }
}

/// A sum of hashed facts that does not depend on their order.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Sum(u64, u64);

impl Sum {
    /// Adds a fact.
    #[inline]
    pub fn add(&mut self, fact: Sum) {
        self.0 = self.0.wrapping_add(fact.0);
        self.1 = self.1.wrapping_add(fact.1);
    }
}

impl Sum {
    /// Adds a row if it is selected.
    #[inline(always)]
    fn add_if(&mut self, is_counted: bool, (first, second): RowHash) {
        // Uses a mask instead of a branch, because the processor cannot predict which rows are selected.
        let mask = u64::from(is_counted).wrapping_neg();
        self.add(Self(first & mask, second & mask));
    }

    /// Both halves of the sum.
    pub fn parts(self) -> (u64, u64) {
        (self.0, self.1)
    }

    /// Removes a fact.
    pub fn remove(&mut self, fact: Sum) {
        self.0 = self.0.wrapping_sub(fact.0);
        self.1 = self.1.wrapping_sub(fact.1);
    }
}

impl From<(u64, u64)> for Sum {
    fn from((first, second): (u64, u64)) -> Self {
        Self(first, second)
    }
}

/// The keys for hashing rows of `N` words each. All rows have the same roles.
#[derive(Clone, Copy)]
struct WordsOf<const N: usize> {
    keys: [u64; N],
    start: State,
    finish: [u64; 4],
}

impl<const N: usize> WordsOf<N> {
    /// Adds a row to the sum and to the count, if the row is selected.
    #[inline(always)]
    fn add(&self, (mut sum, count): (Sum, u64), (values, is_counted): ([u64; N], bool)) -> (Sum, u64) {
        let mut state = self.start;
        for (at, (key, value)) in self.keys.into_iter().zip(values).enumerate() {
            match is_first(at) {
                true => state.open(key, value),
                false => state.close(key, value),
            }
        }
        sum.add_if(is_counted, state.finish(self.finish));
        (sum, count + u64::from(is_counted))
    }
}

impl FactHash {
    /// Hashes a sequence of values.
    #[inline]
    pub fn hasher(&self) -> Hasher<'_> {
        Hasher { state: self.words.start, is_open: false, keys: &self.words }
    }

    /// The sum of the hashes of the selected rows, and the number of these rows. The words of each row have the given
    /// `roles`. The result equals that of [`RowHashes`], but it is computed in one pass instead of one pass per value.
    #[inline(always)]
    pub fn sum_of_words<const N: usize>(
        &self,
        roles: [Role; N],
        rows: impl Iterator<Item = ([u64; N], bool)>,
    ) -> (Sum, u64) {
        let words = self.words_of(roles);
        let mut sum = (Sum::default(), 0);
        // Uses a `for` loop, because a closure would keep its values in memory instead of registers.
        for row in rows {
            sum = words.add(sum, row);
        }
        sum
    }

    /// Like `sum_of_words`, for rows whose words come from several joined iterators. Joined iterators are faster with
    /// `fold` than with a `for` loop.
    #[inline(always)]
    pub fn sum_of_joined_words<const N: usize>(
        &self,
        roles: [Role; N],
        rows: impl Iterator<Item = ([u64; N], bool)>,
    ) -> (Sum, u64) {
        let words = self.words_of(roles);
        rows.fold((Sum::default(), 0), move |sum, row| words.add(sum, row))
    }

    #[inline(always)]
    fn words_of<const N: usize>(&self, roles: [Role; N]) -> WordsOf<N> {
        let keys = std::array::from_fn(|at| {
            let role = roles.get(at).copied().unwrap_or_default();
            if is_first(at) { self.words.first(role) } else { self.words.second(role) }
        });
        WordsOf { keys, start: self.words.start, finish: self.words.finish }
    }

    /// A hash with a key derived from `seed`, or with a random key.
    pub fn new(seed: Option<u64>) -> Self {
        let random = RandomState::new();
        let mut drawn = 0u64;
        Self::drawn(|| {
            drawn += 1;
            seed.map_or_else(|| random.hash_one(drawn), |seed| spread(seed, drawn))
        })
    }

    /// A hash with a key that several processes share.
    pub fn of_key(key: &HashKey) -> Self {
        let mut stream = key.stream();
        Self::drawn(|| stream.next().unwrap_or_default())
    }

    fn drawn(mut draw: impl FnMut() -> u64) -> Self {
        let key = [(); 4].map(|()| draw());
        let mut draw_some = || [(); INNER + 1].map(|()| draw());
        let (first, second) = (draw_some(), draw_some());
        let (start, finish) = (State(draw(), draw()), [(); 4].map(|()| draw()));
        Self { key, words: WordKeys { first, second, start, finish } }
    }

    fn hash(&self, a: u64, b: u64) -> Sum {
        let [k0, k1, k2, k3] = self.key;
        let first = fold(fold(a ^ k0, k1) ^ b, k2);
        let second = fold(fold(b ^ k1, k3) ^ a, k0);
        Sum(fold(first ^ k3, k2 | 1), fold(second ^ k2, k1 | 1))
    }

    /// Hashes the fact that a page exists.
    pub fn page(&self, page: PageId) -> Sum {
        self.hash(number(page), 0)
    }

    /// Hashes the fact that `from` points to `to`.
    pub fn link(&self, from: PageId, to: PageId) -> Sum {
        self.hash(number(from), number(to))
    }

    /// Hashes the fact that the forwarding stub at `stub` points to the row at `row`.
    pub fn forward(&self, stub: RecordId, row: RecordId) -> Sum {
        self.hash(record_number(stub), record_number(row))
    }

    /// Hashes the fact that the record at `at` is a fragment of the off-row value `id`.
    pub fn fragment(&self, at: RecordId, id: u64) -> Sum {
        self.hash(record_number(at), id)
    }

    /// Hashes the fact that the subtree under the fragment at `at` has `size` bytes of the value. The fragment is
    /// `level` levels above the data.
    pub fn part(&self, at: RecordId, size: u64, level: u16) -> Sum {
        let Sum(first, second) = self.hash(record_number(at), size);
        self.hash(first ^ u64::from(level), second)
    }

    /// A keyed number for a record. The numbers of different records are evenly distributed.
    pub fn spread(&self, at: RecordId) -> u64 {
        self.hash(record_number(at), 0).0
    }
}

/// Whether the word at this index, counted from 0, is the first of its pair.
#[inline(always)]
fn is_first(at: usize) -> bool {
    at.is_multiple_of(2)
}

fn number(page: PageId) -> u64 {
    u64::from(page.file) << 32 | u64::from(page.page)
}

fn record_number(record: RecordId) -> u64 {
    number(record.page) << 16 | u64::from(record.slot)
}

/// Multiplies two 64-bit numbers and XORs the halves of the 128-bit product.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

/// Output number `number` of the generator SplitMix64, started from `seed`.
fn spread(seed: u64, number: u64) -> u64 {
    let state = seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let state = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ state >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ state >> 31
}

#[cfg(test)]
mod tests;
