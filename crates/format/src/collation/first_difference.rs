//! Compares strings whose order is decided by their first difference, regardless of the characters after it.

use std::cmp::Ordering;

use super::{CollationId, Encoding};

/// The order of two strings as stored, if their first difference alone decides it. This requires that the text before
/// the difference is ASCII, that both strings have a letter or digit at the difference, and that ASCII letters are in
/// English order. On `None`, the caller must use [`compare`](super::compare). The two functions never contradict each
/// other.
pub fn compare_at_first_difference(a: &[u8], b: &[u8], collation: CollationId, encoding: Encoding) -> Option<Ordering> {
    if !is_decided_by_first_difference(collation) {
        return None;
    }
    let (byte, shared) = first_difference(a, b);
    let (at, beyond_ascii) = encoding.place(byte);
    if shared & beyond_ascii != 0 {
        return None;
    }
    let unit = |bytes: &[u8]| match (encoding, bytes.get(at * encoding.width()..)?) {
        (Encoding::Ansi, [byte, ..]) | (Encoding::Unicode, [byte, 0, ..]) => Some(*byte),
        _ => None,
    };
    let (left, right) = (fold(unit(a)?)?, fold(unit(b)?)?);
    (left != right).then(|| left.cmp(&right))
}

/// Whether the first different letters or digits of two strings decide the order, if all characters before them are
/// ASCII.
fn is_decided_by_first_difference(collation: CollationId) -> bool {
    let is_special = collation.is_bin2() || collation.is_bin() || collation.is_doubtful() || collation.0 == 0;
    !is_special && collation.letters_are_plain()
}

/// Tests whether strings of one collation are certainly in order by their first eight bytes, by the rules of
/// [`compare_at_first_difference`]. The test has no branches, because it runs on many strings.
#[derive(Clone, Copy)]
pub(crate) struct Beginnings {
    /// The number of bits in a character: 8 or 16.
    width: u32,
    beyond_ascii: u64,
}

impl Beginnings {
    /// The test for a collation; `None` if the first difference does not decide the order under this collation.
    pub(crate) fn of(collation: CollationId, encoding: Encoding) -> Option<Self> {
        let (_, beyond_ascii) = encoding.place(0);
        is_decided_by_first_difference(collation).then_some(Self { width: 8 * encoding.width() as u32, beyond_ascii })
    }

    /// Whether a string with this number of bytes consists of whole characters.
    #[inline(always)]
    pub(crate) fn are_whole(self, bytes: usize) -> bool {
        bytes.is_multiple_of((self.width / 8) as usize)
    }

    /// The first eight bytes of a string. Returns 0, for which no order is certain, if the string is shorter or ends
    /// with half a character.
    #[inline(always)]
    pub(crate) fn of_text(self, text: &[u8]) -> u64 {
        let is_whole = self.are_whole(text.len());
        text.first_chunk().filter(|_| is_whole).map_or(0, |first| u64::from_le_bytes(*first))
    }

    /// Whether the string that begins with `left` is certainly less than the string that begins with `right`. Also
    /// false if the first eight bytes do not decide.
    #[inline(always)]
    pub(crate) fn is_less(self, left: u64, right: u64) -> bool {
        // The bit position of the first different character; 0 if the eight bytes are equal.
        let at = (left ^ right).trailing_zeros() & (u64::BITS - self.width);
        let is_ascii_before = left & !(u64::MAX << at) & self.beyond_ascii == 0;
        let fold = |word: u64| {
            let unit = word >> at & (u64::MAX >> (u64::BITS - self.width));
            FOLDED.get(unit.min(0xFF) as usize).copied().unwrap_or_default()
        };
        let (left, right) = (fold(left), fold(right));
        is_ascii_before & (left != 0) & (left < right)
    }
}

/// The result of [`fold`] for each byte; 0 for a byte that is no letter or digit.
#[expect(clippy::indexing_slicing, reason = "a constant, by each byte")]
const FOLDED: [u8; 256] = {
    let mut folded = [0; 256];
    let mut byte = 0;
    while byte < folded.len() {
        folded[byte] = match fold(byte as u8) {
            Some(folded) => folded,
            None => 0,
        };
        byte += 1;
    }
    folded
};

/// Returns the position of the first difference between two byte strings. If one string begins with the other, this is
/// the length of the shorter one. Also returns the bitwise OR of all bytes before this position. In the returned
/// number, the even bytes combine the bytes at even positions of the strings, and the odd bytes combine those at odd
/// positions.
pub(super) fn first_difference(a: &[u8], b: &[u8]) -> (usize, u64) {
    let (mut at, mut shared) = (0, 0);
    for (left, right) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        let (left, right) = (u64::from_le_bytes(*left), u64::from_le_bytes(*right));
        if left != right {
            let same_bits = (left ^ right).trailing_zeros() & !7;
            return (at + (same_bits / 8) as usize, shared | left & !(u64::MAX << same_bits));
        }
        shared |= left;
        at += 8;
    }
    for (left, right) in a.iter().zip(b).skip(at) {
        if left != right {
            break;
        }
        shared |= u64::from(*left) << (8 * (at % 2));
        at += 1;
    }
    (at, shared)
}

/// A digit, or an ASCII letter as a small letter. The results sort like the characters.
const fn fold(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' | b'a'..=b'z' => Some(byte),
        b'A'..=b'Z' => Some(byte + 32),
        _ => None,
    }
}
