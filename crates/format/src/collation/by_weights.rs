//! Compares strings by the weights of their characters, as Windows collations do
//! (docs/format/collations.md#comparing-by-weights).
//!
//! The first level compares the ranks of all characters that are not ignored, and the second level compares their
//! accents. The later levels (case, kana, width, hyphens) are not known well enough. For generations after 80, the
//! order of two strings is decided only if generations 80 and 100 agree on it.

use std::cmp::Ordering;

use super::exceptions::Exceptions;
use super::first_difference::first_difference;
use super::locales::{FRENCH, TURKISH, VIETNAMESE, may_contract, stays_in_place};
use super::text::Text;
use super::weights::{Kind, Weights};
use super::{CollationId, Comparison, Encoding};

mod element;

use element::{Element, Elements, Joins, Unknown};

/// Compares two strings under a collation that is neither binary nor an SQL collation for char.
pub(super) fn compare(a: Text<'_>, b: Text<'_>, collation: CollationId) -> Comparison {
    let Some(rules) = Rules::of(collation) else { return Comparison::Undecided };
    let (a, b) = (a.trimmed(), b.trimmed());
    let Some(shared) = rules.shared(a, b) else { return Comparison::Undecided };
    if !rules.is_vietnamese {
        return rules.compare(Elements::from(a, shared, rules), Elements::from(b, shared, rules));
    }
    // In Vietnamese, two letters may count as one letter. In an ASCII string, each such pair certainly counts as one
    // letter, unless it consists of a small letter and a following capital. If a string is not ASCII, the order is
    // decided only if it is the same whether the pairs count as one letter or as two.
    let start = rules.start_of_letters(a, shared);
    let compared = |joins: Joins| {
        let elements = |text| Elements::from(text, start, rules).joining(joins);
        rules.compare(elements(a), elements(b))
    };
    let joined = compared(Joins::Certain);
    let mut others = Vec::new();
    // The case of the letters decides whether the tables list a pair. So either all pairs of a small letter and a
    // following capital count as one letter, or none of these pairs does.
    if element::may_join_oddly(a) || element::may_join_oddly(b) {
        others.push(Joins::All);
    }
    if !a.is_ascii() || !b.is_ascii() {
        others.push(Joins::None);
    }
    let is_certain = others.into_iter().all(|joins| compared(joins) == joined);
    if is_certain { joined } else { Comparison::Undecided }
}

/// The order of two strings if their first different characters decide it, whatever characters follow. The result is
/// that of [`compare`], at less cost. On `None`, the caller must use [`compare`].
pub(super) fn at_first_difference(a: &[u8], b: &[u8], collation: CollationId, encoding: Encoding) -> Option<Ordering> {
    let rules = Rules::of(collation).filter(|rules| rules.is_plain || rules.is_turkish || rules.is_vietnamese)?;
    let (byte, shared) = first_difference(a, b);
    let (at, beyond_ascii) = encoding.place(byte);
    let (a, b) = (Text::of(a, collation, encoding), Text::of(b, collation, encoding));
    if shared & beyond_ascii != 0 {
        (0..at).try_for_each(|at| a.get(at)?.and_then(|unit| rules.kind(unit)).map(|_| ()))?;
    }
    if rules.is_vietnamese && (rules.may_join(a, at) || rules.may_join(b, at)) {
        return rules.joined(a, b, at);
    }
    let (left, right) = (rules.rank(a, at)?, rules.rank(b, at)?);
    let order = left.older.cmp(&right.older);
    let is_certain = left.is_settled && right.is_settled || rules.is_vietnamese && left.is_letter && right.is_letter;
    let is_same_later = || rules.is_oldest || left.later.cmp(&right.later) == order;
    (order.is_ne() && is_certain && is_same_later()).then_some(order)
}

/// The properties by which the first different characters of two strings are compared.
struct Rank {
    older: u32,
    later: u32,
    is_settled: bool,
    is_letter: bool,
}

/// Appends the ranks of a string. Strings that differ at the first level have different ranks. Returns false if a
/// character is unknown, or if the locale may move the character or join it with another.
pub(super) fn letters(text: Text<'_>, collation: CollationId, into: &mut Vec<u8>) -> bool {
    let Some(rules) = Rules::of(collation).filter(|rules| rules.is_oldest && (rules.is_plain || rules.is_turkish))
    else {
        return false;
    };
    let mut elements = Elements::from(text.trimmed(), 0, rules);
    // Comparisons pad the shorter string with blanks, so trailing elements with the rank of a blank do not count.
    let blank = elements.blank().older;
    let (start, mut end) = (into.len(), into.len());
    loop {
        match elements.next() {
            Ok(Some(element)) if rules.is_settled(&element) => {
                into.extend(element.older.to_be_bytes());
                if element.older != blank {
                    end = into.len();
                }
            }
            Ok(None) => break,
            Ok(Some(_)) | Err(Unknown) => {
                into.truncate(start);
                return false;
            }
        }
    }
    into.truncate(end);
    true
}

/// See [`super::is_same_character`].
pub(super) fn is_same_character(a: u16, b: u16, collation: CollationId, encoding: Encoding) -> Option<bool> {
    let rules = Rules::of(collation).filter(|rules| rules.is_oldest && rules.is_plain)?;
    let character = |unit: u16| {
        let bytes = unit.to_le_bytes();
        let stored = if encoding == Encoding::Ansi { bytes.get(..1)? } else { &bytes };
        let unit = Text::of(stored, collation, encoding).get(0)??;
        let is_alone = rules.kind(unit)? == Kind::Ranked && !rules.exceptions.move_unit(unit);
        (is_alone && !(unit == u16::from(b'\\') && collation.moves_backslash())).then_some(unit)
    };
    let (a, b) = (character(a)?, character(b)?);
    if a == b {
        return Some(true);
    }
    if rules.weights.of(a).older != rules.weights.of(b).older {
        return Some(false);
    }
    (collation.ignores_case() && rules.folded(a) == rules.folded(b)).then_some(true)
}

/// Whether a character may change the character before it. Combining marks do so. An unknown character may do so too,
/// unless it is an East Asian letter.
pub(super) fn may_join_previous(unit: u16) -> bool {
    /// Letters of Chinese, Japanese and Korean, without marks that repeat, lengthen or voice the letter before them.
    const EAST_ASIAN: [std::ops::RangeInclusive<u16>; 5] =
        [0x3041..=0x3096, 0x30A1..=0x30FA, 0x3400..=0x9FFF, 0xAC00..=0xD7A3, 0xF900..=0xFAFF];
    match Weights::get().of(unit).kind {
        Kind::Mark => true,
        Kind::Unknown => !EAST_ASIAN.iter().any(|range| range.contains(&unit)),
        Kind::Ranked | Kind::Last | Kind::Ignored | Kind::Expanded => false,
    }
}

/// How the strings of one collation are compared.
#[derive(Clone, Copy)]
struct Rules {
    collation: CollationId,
    weights: &'static Weights,
    exceptions: &'static Exceptions,
    /// Whether the collation is of generation 80. Only the weights of this generation are certain.
    is_oldest: bool,
    /// Whether ASCII letters are in English order and no two of them count as one letter.
    is_plain: bool,
    is_turkish: bool,
    is_vietnamese: bool,
}

/// The result of comparing two elements at the same position of two strings.
enum Pair {
    Same,
    Differ(Ordering),
    Undecided,
}

impl Rules {
    /// The rules of a collation; `None` if its order is unknown.
    fn of(collation: CollationId) -> Option<Self> {
        /// A bit whose meaning is unknown.
        const UNKNOWN: u32 = 0x400;
        let is_binary = collation.is_bin() || collation.is_bin2();
        if is_binary || collation.is_doubtful() || collation.is_utf8() || collation.0 & UNKNOWN != 0 {
            return None;
        }
        let is_oldest = collation.generation() == 0;
        let (is_turkish, is_vietnamese) = (collation.family() == TURKISH, collation.family() == VIETNAMESE);
        if (is_turkish || is_vietnamese) && !is_oldest {
            return None;
        }
        Some(Self {
            collation,
            weights: Weights::get(),
            exceptions: Exceptions::of(collation)?,
            is_oldest,
            is_plain: collation.letters_are_plain(),
            is_turkish,
            is_vietnamese,
        })
    }

    /// The number of equal characters at the start of both strings; `None` if one of these characters is unknown.
    fn shared(self, a: Text<'_>, b: Text<'_>) -> Option<usize> {
        let mut at = 0;
        while let (Some(left), Some(right)) = (a.get(at), b.get(at)) {
            if left != right {
                break;
            }
            self.kind(left?)?;
            at += 1;
        }
        Some(at)
    }

    /// The rank of the character at an index; `None` if there is no character at this index, or if the character is not
    /// exactly one element.
    #[inline]
    fn rank(self, text: Text<'_>, at: usize) -> Option<Rank> {
        let unit = text.get(at)??;
        let weight = self.weights.of(unit);
        if weight.kind != Kind::Ranked || !(self.is_oldest || weight.is_lasting) {
            return None;
        }
        let (older, later) = element::ranks(unit, weight, self);
        let is_settled = self.is_unit_settled(unit);
        Some(Rank { older, later, is_settled, is_letter: !is_settled && self.is_letter(unit) })
    }

    /// Whether the character at an index may form one Vietnamese letter together with a neighbor.
    fn may_join(self, text: Text<'_>, at: usize) -> bool {
        let neighbor = |at: Option<usize>| at.and_then(|at| text.get(at)).flatten().unwrap_or(u16::from(b' '));
        let unit = neighbor(Some(at));
        element::may_join(neighbor(at.checked_sub(1)), unit) || element::may_join(unit, neighbor(Some(at + 1)))
    }

    /// The order of two ASCII strings that first differ at `at`, if some pairs of characters count as one letter.
    /// `None` if it is uncertain which pairs do.
    fn joined(self, a: Text<'_>, b: Text<'_>, at: usize) -> Option<Ordering> {
        if !a.is_ascii() || !b.is_ascii() {
            return None;
        }
        let start = self.start_of_letters(a, at);
        if [a, b].into_iter().any(|text| element::may_join_oddly(text.between(start, at + 3))) {
            return None;
        }
        let elements = |text| Elements::from(text, start, self).joining(Joins::Certain);
        match self.compare(elements(a), elements(b)) {
            Comparison::Decided(order) => Some(order),
            _ => None,
        }
    }

    /// The start of the run of ASCII letters that ends at `at`. Two neighbors in this run may count as one letter.
    fn start_of_letters(self, text: Text<'_>, at: usize) -> usize {
        let is_letter = |at: usize| text.get(at).flatten().is_some_and(element::is_ascii_letter);
        (0..at).rev().find(|before| !is_letter(*before)).map_or(0, |before| before + 1)
    }

    /// Returns how a comparison under the collation treats a character; `None` if it is unknown.
    fn kind(self, unit: u16) -> Option<Kind> {
        let weight = self.weights.of(unit);
        match weight.kind {
            Kind::Unknown => None,
            Kind::Mark if self.exceptions.joins_marks => None,
            kind => (self.is_oldest || weight.is_lasting).then_some(kind),
        }
    }

    fn compare(self, mut a: Elements<'_>, mut b: Elements<'_>) -> Comparison {
        let (left_text, right_text) = (a.text, b.text);
        let mut by_accents = Ordering::Equal;
        loop {
            let (left, right) = match (a.next(), b.next()) {
                (Ok(left), Ok(right)) => (left, right),
                (Err(Unknown), _) | (_, Err(Unknown)) => return Comparison::Undecided,
            };
            let (left, right) = match (left, right) {
                (Some(left), Some(right)) => (left, right),
                (Some(longer), None) => return self.is_longer(longer, a),
                (None, Some(longer)) => return self.is_longer(longer, b).reverse(),
                (None, None) => break,
            };
            match self.pair(&left, &right, (left_text, right_text)) {
                Pair::Same => by_accents = by_accents.then(left.accent.cmp(&right.accent)),
                Pair::Differ(order) => return Comparison::Decided(order),
                Pair::Undecided => return Comparison::Undecided,
            }
        }
        let accents_count = self.is_oldest && !self.is_vietnamese && self.collation.family() != FRENCH;
        let are_known = accents_count && !a.has_doubtful_accents && !b.has_doubtful_accents;
        match by_accents {
            Ordering::Equal if self.is_oldest && self.are_cases(left_text, right_text) => Comparison::Equal,
            Ordering::Less | Ordering::Greater if are_known && !self.collation.ignores_accents() => {
                Comparison::ByAccents(by_accents)
            }
            _ => Comparison::SameLetters,
        }
    }

    /// Compares two strings that are equal until the shorter one ends. The longer string continues with `next` and
    /// `rest`; the shorter string is padded with blanks.
    fn is_longer(self, next: Element, mut rest: Elements<'_>) -> Comparison {
        let text = rest.text;
        let blank = rest.blank();
        let mut next = next;
        loop {
            match self.pair(&next, &blank, (text, text)) {
                Pair::Same => {}
                Pair::Differ(order) => return Comparison::Decided(order),
                Pair::Undecided => return Comparison::Undecided,
            }
            match rest.next() {
                Ok(Some(element)) => next = element,
                Ok(None) => return Comparison::SameLetters,
                Err(Unknown) => return Comparison::Undecided,
            }
        }
    }

    fn pair(self, left: &Element, right: &Element, (left_text, right_text): (Text<'_>, Text<'_>)) -> Pair {
        if left.units == right.units {
            return Pair::Same;
        }
        if !self.is_plain && !self.is_turkish && !self.is_vietnamese {
            let are_certain = self.is_certain(left, left_text) && self.is_certain(right, right_text);
            if !are_certain {
                return Pair::Undecided;
            }
        }
        let order = left.older.cmp(&right.older);
        if !self.is_oldest && left.later.cmp(&right.later) != order {
            return Pair::Undecided;
        }
        let are_cases = left.units.map(|unit| self.folded(unit)) == right.units.map(|unit| self.folded(unit));
        if order.is_eq() && are_cases {
            return Pair::Same;
        }
        match (self.is_settled(left) && self.is_settled(right), order) {
            (true, Ordering::Equal) => Pair::Same,
            (true, order) => Pair::Differ(order),
            // The place of a Vietnamese letter such as ă is uncertain, but only between the ASCII letters around its
            // base letter a. So its order relative to a letter with another base letter is certain.
            (false, Ordering::Less | Ordering::Greater)
                if self.is_vietnamese && self.is_letter(left.units[0]) && self.is_letter(right.units[0]) =>
            {
                Pair::Differ(order)
            }
            (false, _) => Pair::Undecided,
        }
    }

    /// Whether the place of an element in the order is known: its default place, or the place that the locale gives it.
    fn is_settled(self, element: &Element) -> bool {
        let [unit, _] = element.units;
        self.is_unit_settled(unit)
    }

    fn is_unit_settled(self, unit: u16) -> bool {
        if unit == u16::from(b'\\') && self.collation.moves_backslash() {
            return false;
        }
        !self.exceptions.move_unit(unit) || self.is_turkish && element::turkish(unit).is_some()
    }

    /// Whether a character ranks like an ASCII letter, whatever its accent.
    fn is_letter(self, unit: u16) -> bool {
        let rank = |unit: u16| self.weights.of(unit).older;
        (b'a'..=b'z').any(|letter| rank(letter.into()) == rank(unit))
    }

    /// Whether an element certainly keeps its place and is not joined with a neighbor, in a locale that moves or joins
    /// ASCII letters.
    fn is_certain(self, element: &Element, text: Text<'_>) -> bool {
        let [unit, _] = element.units;
        let neighbour = |at: Option<usize>| at.and_then(|at| text.get(at));
        let (before, next) = (neighbour(element.at.checked_sub(1)), neighbour(element.at.checked_add(1)));
        let folded = u8::try_from(unit).map_or(0, |byte| byte.to_ascii_lowercase());
        let is_apart = |other: Option<Option<u16>>| match other {
            None => true,
            Some(None) => false,
            Some(Some(unit)) => matches!(self.kind(unit), Some(Kind::Ranked | Kind::Expanded)),
        };
        let joins = |first: Option<u16>, second: Option<u16>| {
            first.zip(second).is_some_and(|(first, second)| may_contract(first, second, self.collation))
        };
        (!folded.is_ascii_alphabetic() || stays_in_place(folded, self.collation))
            && is_apart(before)
            && is_apart(next)
            && !joins(before.flatten(), Some(unit))
            && !joins(Some(unit), next.flatten())
            && !next.flatten().is_some_and(|next| self.exceptions.move_unit(next))
    }

    /// Whether the collation ignores case and two strings certainly differ only in the case of letters.
    fn are_cases(self, a: Text<'_>, b: Text<'_>) -> bool {
        let folded = |text: Text<'_>, at: usize| text.get(at).flatten().map(|unit| self.folded(unit));
        self.collation.ignores_case()
            && a.len() == b.len()
            && (0..a.len()).all(|at| folded(a, at).is_some_and(|unit| folded(b, at) == Some(unit)))
    }

    /// The small form of a letter. Folds only letters of scripts for which all tables contain the case pairs.
    fn folded(self, unit: u16) -> u16 {
        if unit < 0x80 && !(self.is_turkish && unit == b'I'.into()) {
            return u8::try_from(unit).map_or(unit, |byte| byte.to_ascii_lowercase().into());
        }
        if self.is_turkish
            && let Some((_, _, small)) = element::turkish(unit)
        {
            return small;
        }
        if !matches!(unit, 0x80..0x0530 | 0x1E00..0x1F00) {
            return unit;
        }
        let mut small = char::from_u32(unit.into()).into_iter().flat_map(char::to_lowercase);
        match (small.next(), small.next()) {
            (Some(small), None) => u16::try_from(u32::from(small)).unwrap_or(unit),
            _ => unit,
        }
    }
}
