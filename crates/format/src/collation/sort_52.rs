//! Sort order 52: the order of char and varchar in SQL_Latin1_General_CP1_CI_AS (docs/format/collations.md#sort-order-52).

use std::cmp::Ordering;

use super::Comparison;

/// The number of the sort order.
pub(super) const ID: u8 = 0x34;

/// A byte that the code page does not define.
const UNDEFINED: u8 = 0xFF;

/// The first-level weight of each byte of code page 1252. The weights were read from a server.
const WEIGHTS: [u8; 256] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
    31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 127, 128, 129, 130, 131, 132, 133, 134, 135,
    136, 48, 49, 50, 51, 52, 53, 54, 137, 139, 140, 141, 142, 143, 144, 145, 146, 147, 148, 149, 150, 151, 152, 153,
    154, 155, 156, 158, 159, 160, 161, 162, 163, 164, 55, 56, 57, 58, 59, 60, 137, 139, 140, 141, 142, 143, 144, 145,
    146, 147, 148, 149, 150, 151, 152, 153, 154, 155, 156, 158, 159, 160, 161, 162, 163, 164, 61, 62, 63, 64, 65, 66,
    255, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 255, 78, 255, 255, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90,
    255, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114,
    115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 137, 137, 137, 137, 137, 137, 138, 140, 142, 142, 142, 142, 146,
    146, 146, 146, 165, 151, 152, 152, 152, 152, 152, 125, 152, 159, 159, 159, 159, 163, 166, 157, 137, 137, 137, 137,
    137, 137, 138, 140, 142, 142, 142, 142, 146, 146, 146, 146, 165, 151, 152, 152, 152, 152, 152, 126, 152, 159, 159,
    159, 159, 163, 166, 163,
];

/// Compares strings byte by byte; the shorter one is padded with blanks. Only the first level is known.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Comparison {
    let weight = |text: &[u8], at: usize| {
        let byte = text.get(at).copied().unwrap_or(b' ');
        WEIGHTS.get(usize::from(byte)).copied().filter(|weight| *weight != UNDEFINED)
    };
    for at in 0..a.len().max(b.len()) {
        let (Some(left), Some(right)) = (weight(a, at), weight(b, at)) else { return Comparison::Undecided };
        match left.cmp(&right) {
            Ordering::Equal => {}
            order => return Comparison::Decided(order),
        }
    }
    Comparison::SameLetters
}

/// The bytes of letters that count as two letters in Unicode. It is unknown which characters count as equal to these
/// letters in a search.
const DOUBLE: [u16; 7] = [0x8C, 0x9C, 0xC6, 0xDE, 0xDF, 0xE6, 0xFE];

/// Whether two bytes are the same character; false if they differ at the first level. `None` for letters with different
/// accents or case, for letters that count as two in Unicode, and for bytes without a weight.
pub(super) fn is_same_character(a: u16, b: u16) -> Option<bool> {
    let weight = |byte: u16| {
        let weight = WEIGHTS.get(usize::from(byte)).copied();
        weight.filter(|weight| *weight != UNDEFINED && !DOUBLE.contains(&byte))
    };
    let (left, right) = (weight(a)?, weight(b)?);
    if a == b { Some(true) } else { (left != right).then_some(false) }
}

/// Appends the weights of a string without its trailing blanks. Returns false if a byte has no weight.
pub(super) fn weights(text: &[u8], into: &mut Vec<u8>) -> bool {
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    text.iter().take(end).all(|byte| {
        let weight = WEIGHTS.get(usize::from(*byte)).copied().filter(|weight| *weight != UNDEFINED);
        weight.map(|weight| into.push(weight)).is_some()
    })
}
