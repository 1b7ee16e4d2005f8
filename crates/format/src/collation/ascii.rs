//! The certain facts about single ASCII characters, and about accented forms of ASCII letters.

use std::cmp::Ordering;

use super::locales::LATIN1_GENERAL;
use super::{CollationId, Encoding};

/// The certain facts about one character of a string key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CharClass {
    /// A blank, which sorts before every other character that is not ignored.
    Blank,
    /// A symbol that is not ignored. It sorts before every digit and letter; the order among symbols is undecided.
    Punctuation,
    /// A digit.
    Digit(u8),
    /// An ASCII letter as a small letter.
    Letter(u8),
}

/// Classifies a code unit; `None` if its place in the order is uncertain. `-` and `'` are uncertain, because Windows
/// collations compare them only if everything else is equal. All other ASCII symbols sort before digits and letters
/// (Microsoft's description of word sort).
pub fn classify(unit: u16) -> Option<CharClass> {
    let byte = u8::try_from(unit).ok()?;
    Some(match byte {
        b'-' | b'\'' => return None,
        b'0'..=b'9' => CharClass::Digit(byte),
        b'a'..=b'z' => CharClass::Letter(byte),
        b'A'..=b'Z' => CharClass::Letter(byte + 32),
        b' ' => CharClass::Blank,
        b'!'..=b'~' => CharClass::Punctuation,
        _ => return None,
    })
}

/// The ASCII symbols that Windows collations do not ignore, in order: the blank is first, and all sort before the
/// digits. The tables of all generations have the same order (docs/format/collations.md#order-of-ascii).
const SYMBOLS: &[u8; 31] = b" !\"#$%&()*,./:;?@[\\]^_`{|}~+<=>";

/// The index of a symbol in `SYMBOLS`; `None` for any other character.
fn symbol_rank(unit: u16) -> Option<usize> {
    SYMBOLS.iter().position(|symbol| u16::from(*symbol) == unit)
}

/// The base letter of a Latin-1 letter with a diacritic; `None` for any other character. A letter and its base letter
/// count as equal until all letters are compared, because a diacritic weighs less than any later letter.
fn base_letter(unit: u16) -> Option<u8> {
    Some(match unit {
        0xC0..=0xC5 | 0xE0..=0xE5 => b'a',
        0xC7 | 0xE7 => b'c',
        0xC8..=0xCB | 0xE8..=0xEB => b'e',
        0xCC..=0xCF | 0xEC..=0xEF => b'i',
        0xD1 | 0xF1 => b'n',
        0xD2..=0xD6 | 0xF2..=0xF6 => b'o',
        0xD9..=0xDC | 0xF9..=0xFC => b'u',
        0xDD | 0xFD | 0xFF => b'y',
        _ => return None,
    })
}

/// The certain facts about single characters in one collation.
#[derive(Clone, Copy)]
pub(super) struct Alphabet {
    pub(super) collation: CollationId,
    encoding: Encoding,
    /// Whether ASCII letters are in English order and no two of them count as one letter.
    pub(super) plain: bool,
}

impl Alphabet {
    pub(super) fn of(collation: CollationId, encoding: Encoding) -> Self {
        Self { collation, encoding, plain: collation.letters_are_plain() }
    }

    /// Whether the order is a string sort, which treats `-` and `'` like other symbols. A word sort compares `-` and
    /// `'` only if all other characters are equal.
    pub(super) fn is_string_sort(self) -> bool {
        self.encoding == Encoding::Ansi && self.collation.0 >> 24 != 0
    }

    /// Whether the case of a letter may weigh more than the letters after it. For case-sensitive sort orders this is
    /// undocumented.
    pub(super) fn may_put_case_first(self) -> bool {
        self.is_string_sort() && !self.collation.ignores_case()
    }

    /// The order of two different symbols; `None` if it is unknown.
    pub(super) fn order_of_symbols(self, one: u16, other: u16) -> Option<Ordering> {
        let is_moved = |unit: u16| unit == u16::from(b'\\') && self.collation.moves_backslash();
        // Each SQL sort order has its own order of symbols.
        if self.is_string_sort() || is_moved(one) || is_moved(other) {
            return None;
        }
        Some(symbol_rank(one)?.cmp(&symbol_rank(other)?))
    }

    fn is_mark(unit: u16) -> bool {
        matches!(unit, 0x27 | 0x2D)
    }

    /// Whether the character counts only if all other characters are equal. Always false if the collation may count two
    /// ASCII letters as one letter. Under such a collation, strings with `-` or `'` are undecided.
    pub(super) fn is_ignored(self, unit: u16) -> bool {
        self.plain && !self.is_string_sort() && Self::is_mark(unit)
    }

    pub(super) fn class(self, unit: u16) -> Option<CharClass> {
        if self.plain && self.is_string_sort() && Self::is_mark(unit) {
            return Some(CharClass::Punctuation);
        }
        let has_accents = self.encoding == Encoding::Unicode && self.collation.locale() == LATIN1_GENERAL;
        classify(unit).or_else(|| base_letter(unit).filter(|_| has_accents).map(CharClass::Letter))
    }
}

/// The value of a character for an equality test; `None` if uncertain. If all characters of two strings have values,
/// the strings without trailing blanks are equal if and only if these values are equal. Characters outside printable
/// ASCII are uncertain: a collation may ignore them or expand them to several characters.
pub fn equality_unit(unit: u16, collation: CollationId) -> Option<u16> {
    if collation.is_doubtful() || collation.0 == 0 {
        return None;
    }
    if collation.is_bin2() || collation.is_bin() {
        return Some(unit);
    }
    // All digits differ from each other in every alphabet.
    if (0x30..=0x39).contains(&unit) {
        return Some(unit);
    }
    if !collation.letters_are_plain() || !(0x20..0x7F).contains(&unit) {
        return None;
    }
    let is_upper = (0x41..=0x5A).contains(&unit) && collation.ignores_case();
    Some(if is_upper { unit + 0x20 } else { unit })
}
