//! Compares two stored strings.

use std::cmp::Ordering;

use super::certain;
use super::first_difference::compare_at_first_difference;
use super::text::Text;
use super::{CollationId, Encoding, UTF_8, by_weights, code_pages, sort_52};
use crate::collation::ascii::equality_unit;

/// The proven facts about the order of two strings under a collation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// The strings differ at the first level: in their letters, digits or symbols.
    Decided(Ordering),
    /// The letters are equal, and the first different accent decides the order.
    ByAccents(Ordering),
    /// The strings are equal at every level that the collation compares.
    Equal,
    /// The letters are equal; it is unknown whether the later levels (accents, case, width, hyphens) are equal.
    SameLetters,
    /// Nothing is proven.
    Undecided,
}

impl Comparison {
    /// The order of the strings; `None` if it is not proven.
    pub fn order(self) -> Option<Ordering> {
        match self {
            Self::Decided(order) | Self::ByAccents(order) => Some(order),
            Self::Equal => Some(Ordering::Equal),
            Self::SameLetters | Self::Undecided => None,
        }
    }

    /// Whether the strings are equal; `None` if neither result is proven.
    pub fn is_equal(self) -> Option<bool> {
        self.order().map(Ordering::is_eq)
    }

    /// The result of the comparison if the two strings are swapped.
    #[must_use]
    pub fn reverse(self) -> Self {
        match self {
            Self::Decided(order) => Self::Decided(order.reverse()),
            Self::ByAccents(order) => Self::ByAccents(order.reverse()),
            same => same,
        }
    }
}

/// Compares two strings as stored: bytes of char and varchar, or UTF-16 of nchar and nvarchar, as `encoding` tells.
pub fn compare(a: &[u8], b: &[u8], collation: CollationId, encoding: Encoding) -> Comparison {
    if let Some(order) = compare_at_first_difference(a, b, collation, encoding) {
        return Comparison::Decided(order);
    }
    if encoding == Encoding::Unicode && !(a.len() | b.len()).is_multiple_of(2) {
        return Comparison::Undecided;
    }
    let is_by_weights = encoding == Encoding::Unicode || collation.sort_id() == 0;
    if is_by_weights && let Some(order) = by_weights::at_first_difference(a, b, collation, encoding) {
        return Comparison::Decided(order);
    }
    compare_whole(a, b, collation, encoding)
}

/// Compares two strings in full. This is needed if their first different characters do not decide the order.
pub(super) fn compare_whole(a: &[u8], b: &[u8], collation: CollationId, encoding: Encoding) -> Comparison {
    let (left, right) = (Text::of(a, collation, encoding), Text::of(b, collation, encoding));
    match certain::compare(left.raw_units(), right.raw_units(), collation, encoding) {
        Some(Ordering::Equal) => return Comparison::Equal,
        Some(order) => return Comparison::Decided(order),
        None if certain::is_equal_but_for_case(left.raw_units(), right.raw_units(), collation) => {
            return Comparison::Equal;
        }
        None => {}
    }
    match (encoding, collation.sort_id()) {
        (Encoding::Ansi, sort_52::ID) => sort_52::compare(a, b),
        (Encoding::Ansi, 1..) => Comparison::Undecided,
        _ => by_weights::compare(left, right, collation),
    }
}

/// Appends a key for the string `text` to `into`. Strings with different keys certainly differ; strings with equal keys
/// may differ too. Returns false, and leaves `into` unusable, if a character is not known well enough.
pub fn letters_of(text: &[u8], collation: CollationId, encoding: Encoding, into: &mut Vec<u8>) -> bool {
    if collation.is_doubtful() || collation.0 == 0 {
        return false;
    }
    let stored = Text::of(text, collation, encoding);
    if collation.is_bin() || collation.is_bin2() {
        into.extend(stored.trimmed().raw_units().flat_map(u16::to_be_bytes));
        return true;
    }
    match (encoding, collation.sort_id()) {
        (Encoding::Ansi, sort_52::ID) => sort_52::weights(text, into),
        // For other sort orders and later generations, the only known fact is that different ASCII characters differ.
        (encoding, id) if encoding == Encoding::Ansi && id != 0 || collation.generation() != 0 => {
            stored.trimmed().raw_units().all(|unit| {
                let folded = equality_unit(unit, collation).map(|unit| unit.to_be_bytes().to_ascii_lowercase());
                folded.map(|folded| into.extend(folded)).is_some()
            })
        }
        _ => by_weights::letters(stored, collation, into),
    }
}

/// Whether two characters, each compared alone, are the same letter, digit or symbol. `Some(true)` if they are equal or
/// differ only in case. `Some(false)` if each of them counts as exactly one letter and they differ at the first level.
/// `None` if neither is proven.
pub fn is_same_character(a: u16, b: u16, collation: CollationId, encoding: Encoding) -> Option<bool> {
    match (encoding, collation.sort_id()) {
        (Encoding::Ansi, sort_52::ID) => sort_52::is_same_character(a, b),
        (Encoding::Ansi, 1..) => None,
        _ => by_weights::is_same_character(a, b, collation, encoding),
    }
}

/// Whether a character may change the character before it, as a combining accent does. True for unknown characters, and
/// for bytes whose characters are not known.
pub fn may_join_previous(unit: u16, collation: CollationId, encoding: Encoding) -> bool {
    if unit < 0x80 || collation.is_bin() || collation.is_bin2() {
        return false;
    }
    match (encoding, code_pages::code_page(collation)) {
        (Encoding::Unicode, _) => by_weights::may_join_previous(unit),
        // `characters` returns `None` for a code page with two bytes per character, so the result for such a code page
        // is false. An East Asian character does not change a character of another script before it.
        (Encoding::Ansi, Some(page)) if page != UTF_8 => code_pages::characters(page).is_some_and(|characters| {
            let unit = characters.get(usize::from(unit & 0x7F)).copied().flatten();
            unit.is_none_or(by_weights::may_join_previous)
        }),
        (Encoding::Ansi, _) => true,
    }
}
