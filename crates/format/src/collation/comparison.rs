//! Comparing two stored strings.

use std::cmp::Ordering;

use super::certain;
use super::first_difference::compare_at_first_difference;
use super::text::Text;
use super::{CollationId, Encoding, by_weights, sort_52};
use crate::collation::ascii::equality_unit;

/// What is proven about two strings under a collation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// They differ in what counts first: in the letters, digits and symbols themselves.
    Decided(Ordering),
    /// The letters are the same, and the first that differ in their accents decide.
    ByAccents(Ordering),
    /// They are equal in all that the collation looks at.
    Equal,
    /// The letters are the same; what counts after them (accents, case, width, hyphens) is not known to be.
    SameLetters,
    /// Nothing is proven.
    Undecided,
}

impl Comparison {
    /// The order, where it is proven.
    pub fn order(self) -> Option<Ordering> {
        match self {
            Self::Decided(order) | Self::ByAccents(order) => Some(order),
            Self::Equal => Some(Ordering::Equal),
            Self::SameLetters | Self::Undecided => None,
        }
    }

    /// Whether the strings are equal, where that is proven.
    pub fn is_equal(self) -> Option<bool> {
        self.order().map(Ordering::is_eq)
    }

    /// The comparison of the same strings the other way round.
    #[must_use]
    pub fn reverse(self) -> Self {
        match self {
            Self::Decided(order) => Self::Decided(order.reverse()),
            Self::ByAccents(order) => Self::ByAccents(order.reverse()),
            same => same,
        }
    }
}

/// Compares two strings as stored: bytes of char and varchar, UTF-16 of nchar and nvarchar, as `encoding` says.
pub fn compare(a: &[u8], b: &[u8], collation: CollationId, encoding: Encoding) -> Comparison {
    if let Some(order) = compare_at_first_difference(a, b, collation, encoding) {
        return Comparison::Decided(order);
    }
    if encoding == Encoding::Unicode && !(a.len() | b.len()).is_multiple_of(2) {
        return Comparison::Undecided;
    }
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

/// Appends a form of a string such that strings with different forms certainly differ; the same form says nothing. False,
/// with nothing that can be used, if a character is not known well enough.
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
        // Of other sort orders and later generations, only that characters of ASCII differ.
        (encoding, id) if encoding == Encoding::Ansi && id != 0 || collation.generation() != 0 => {
            stored.trimmed().raw_units().all(|unit| {
                let folded = equality_unit(unit, collation).map(|unit| unit.to_be_bytes().to_ascii_lowercase());
                folded.map(|folded| into.extend(folded)).is_some()
            })
        }
        _ => by_weights::letters(stored, collation, into),
    }
}

/// Whether two characters, each alone, are the same letter, digit or symbol, where that is proven: they are the same or
/// differ in case only, or they differ at the first level and neither counts as more or less than one.
pub fn is_same_character(a: u16, b: u16, collation: CollationId, encoding: Encoding) -> Option<bool> {
    match (encoding, collation.sort_id()) {
        (Encoding::Ansi, 1..) => None,
        _ => by_weights::is_same_character(a, b, collation, encoding),
    }
}
