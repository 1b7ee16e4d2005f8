//! Comparisons that are certain without weights (docs/format/collations.md#comparing-without-weights).
//!
//! These rules give an order of letters and digits. This order was right, without exception, for 1.9 million pairs of
//! adjacent keys in real indexes.

use std::cmp::Ordering;

use super::ascii::{Alphabet, CharClass, classify, equality_unit};
use super::locales::{TURKISH, is_certain, is_in_place, may_contract};
use super::{CollationId, Encoding};

/// The order of two strings under `collation`; `None` if it is uncertain. `encoding` tells whether `a` and `b` yield
/// UTF-16 code units or the bytes of char values.
pub(super) fn compare(
    a: impl DoubleEndedIterator<Item = u16> + Clone,
    b: impl DoubleEndedIterator<Item = u16> + Clone,
    collation: CollationId,
    encoding: Encoding,
) -> Option<Ordering> {
    if a.clone().eq(b.clone()) {
        return Some(Ordering::Equal);
    }
    // ID 0 means the database's default collation. A caller that knows the default replaces 0 with it.
    if collation.is_doubtful() || collation.0 == 0 {
        return None;
    }
    if collation.is_bin2() || collation.is_bin() {
        return compare_binary(a, b, collation.is_bin2());
    }
    let alphabet = Alphabet::of(collation, encoding);
    let is_counted = |unit: &u16| !alphabet.is_ignored(*unit);
    let marks_count = || a.clone().chain(b.clone()).any(|unit| alphabet.is_ignored(unit));
    let (mut left, mut right) =
        (trim(a.clone().filter(is_counted)).peekable(), trim(b.clone().filter(is_counted)).peekable());
    let (mut before, mut identical) = (None, true);
    loop {
        match (left.next(), right.next()) {
            // Strings that are equal only after folding, or only without their ignored characters, are equal in some
            // collations and different in others.
            (None, None) => return (identical && !marks_count()).then_some(Ordering::Equal),
            (Some(longer), None) => return is_longer(before, longer, left, alphabet).then_some(Ordering::Greater),
            (None, Some(longer)) => return is_longer(before, longer, right, alphabet).then_some(Ordering::Less),
            (Some(one), Some(other)) => {
                if one == other && one < 0x80 {
                    before = Some(one);
                    continue;
                }
                let (class, other_class) = (alphabet.class(one)?, alphabet.class(other)?);
                if class == other_class && class != CharClass::Punctuation {
                    // The two characters may be two cases of one letter. In Turkish, i and I are different letters.
                    if !alphabet.plain && class == CharClass::Letter(b'i') || alphabet.may_put_case_first() {
                        return None;
                    }
                    before = Some(one);
                    identical &= one == other;
                    continue;
                }
                let is_certain = match [class, other_class] {
                    [CharClass::Punctuation, CharClass::Punctuation] => return alphabet.order_of_symbols(one, other),
                    [CharClass::Digit(_), CharClass::Digit(_)] => true,
                    _ => {
                        let (one, other) = ((one, left.peek().copied()), (other, right.peek().copied()));
                        alphabet.plain || is_certain(before, one, other, collation)
                    }
                };
                return is_certain.then(|| class.cmp(&other_class));
            }
        }
    }
}

/// Whether two different strings are certainly equal: `collation` ignores case, and the strings differ only in the case
/// of ASCII letters.
pub(super) fn is_equal_but_for_case(
    a: impl DoubleEndedIterator<Item = u16> + Clone,
    b: impl DoubleEndedIterator<Item = u16> + Clone,
    collation: CollationId,
) -> bool {
    let is_certain = a.clone().chain(b.clone()).all(|unit| equality_unit(unit, collation).is_some());
    let fold = |unit| equality_unit(unit, collation);
    is_certain && trim(a).map(fold).eq(trim(b).map(fold))
}

/// Compares two strings that are equal until the shorter one ends. The shorter string is padded with blanks. The longer
/// string continues with `next` and `rest`. Returns whether the longer string certainly sorts after the shorter one.
/// This is certain only if `next` and `rest` contain a character that is not ignored, and if they do not change the
/// characters before `next`.
fn is_longer(before: Option<u16>, next: u16, mut rest: impl Iterator<Item = u16>, alphabet: Alphabet) -> bool {
    const BLANK: u16 = 0x20;
    let after = rest.next();
    let first_beyond_padding = [Some(next), after].into_iter().flatten().chain(rest).find(|unit| *unit != BLANK);
    let joins = || {
        before.is_some_and(|before| may_contract(before, next, alphabet.collation))
            || after.is_some_and(|after| may_contract(next, after, alphabet.collation))
    };
    first_beyond_padding.is_some_and(|unit| alphabet.class(unit).is_some()) && (alphabet.plain || !joins())
}

/// The string without trailing blanks, which comparisons ignore.
pub(super) fn trim(units: impl DoubleEndedIterator<Item = u16> + Clone) -> impl Iterator<Item = u16> {
    let blanks = units.clone().rev().take_while(|&unit| unit == 0x20).count();
    let length = units.clone().count() - blanks;
    units.take(length)
}

/// Compares code units; the shorter string is padded with blanks. For BIN (not BIN2) the order is certain only within
/// ASCII.
fn compare_binary(
    a: impl Iterator<Item = u16>,
    b: impl Iterator<Item = u16>,
    every_unit_is_certain: bool,
) -> Option<Ordering> {
    let (mut a, mut b) = (a, b);
    loop {
        let (left, right) = match (a.next(), b.next()) {
            (None, None) => return Some(Ordering::Equal),
            (left, right) => (left.unwrap_or(0x20), right.unwrap_or(0x20)),
        };
        if !every_unit_is_certain && (left > 0x7F || right > 0x7F) {
            return None;
        }
        if left != right {
            // It is unknown whether a binary collation compares a character above U+FFFF as one unit or as two halves.
            let is_half = |unit| (0xD800..0xE000).contains(&unit);
            let is_doubtful = is_half(left) && right >= 0xE000 || is_half(right) && left >= 0xE000;
            return (!is_doubtful).then(|| left.cmp(&right));
        }
    }
}

/// A byte that orders characters: of two characters with different bytes, the character with the smaller byte sorts
/// first. `None` if the place of the character in the order is uncertain, or if two characters with this byte might
/// sort differently.
pub(crate) fn image_of(
    before: Option<u16>,
    unit: u16,
    next: Option<u16>,
    collation: CollationId,
    encoding: Encoding,
) -> Option<u8> {
    if collation.is_bin() || collation.is_bin2() {
        return None;
    }
    let alphabet = Alphabet::of(collation, encoding);
    match classify(unit)? {
        CharClass::Digit(byte) => Some(byte),
        CharClass::Letter(byte) => {
            let is_known = collation.0 != 0 && !collation.is_doubtful() && !alphabet.may_put_case_first();
            // In Turkish, `byte` may mean the dotless or the dotted i.
            let is_one_letter = byte != b'i' || collation.locale() != TURKISH;
            let is_in_place = || is_one_letter && is_in_place(before, unit, next, collation);
            (is_known && (alphabet.plain || is_in_place())).then_some(byte)
        }
        CharClass::Blank | CharClass::Punctuation => None,
    }
}
