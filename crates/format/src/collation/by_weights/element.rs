//! The elements of a string: the parts that count in a comparison.

use super::Rules;
use crate::collation::text::Text;
use crate::collation::weights::{Kind, Weight};

/// The error for a character that is unknown, at least in this generation or locale.
pub(super) struct Unknown;

/// A part of a string that counts as one letter, digit or symbol.
pub(super) struct Element {
    /// The element's place in the order of generation 80.
    pub(super) older: u32,
    /// The element's place in the order of generation 100.
    pub(super) later: u32,
    pub(super) accent: u8,
    /// The character; two characters if the two count as one letter.
    pub(super) units: [u16; 2],
    /// The index of the character in the string.
    pub(super) at: usize,
}

/// The pairs of ASCII letters that count as one letter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Joins {
    None,
    /// Only pairs that are certainly joined: all pairs except a small letter before a capital.
    Certain,
    /// All pairs, including a small letter before a capital, and pairs that are separated by characters that are
    /// compared last, such as a hyphen.
    All,
}

/// The distance between two neighboring ranks. The additional letters of a locale get places between the ranks.
const STEP: u32 = 4;

/// The second-level weight of a letter without an accent.
const NO_ACCENT: u8 = 2;

/// The elements of a string.
#[derive(Clone)]
pub(super) struct Elements<'a> {
    pub(super) text: Text<'a>,
    at: usize,
    rules: Rules,
    /// The letters of an expanded character that [`Self::next`] has not returned yet.
    pending: &'static [u16],
    /// The pairs of Vietnamese letters that are joined.
    joins: Joins,
    /// Whether a combining mark or an expanded character has occurred so far. The accents of the string are then
    /// uncertain, because they do not belong to exactly one character each.
    pub(super) has_doubtful_accents: bool,
}

impl<'a> Elements<'a> {
    /// The elements of a string from index `at` on.
    pub(super) fn from(text: Text<'a>, at: usize, rules: Rules) -> Self {
        Self { text, at, rules, pending: &[], joins: Joins::None, has_doubtful_accents: false }
    }

    /// The same elements, except that each pair selected by `joins` is one letter.
    pub(super) fn joining(self, joins: Joins) -> Self {
        Self { joins, ..self }
    }

    /// The next element, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Element>, Unknown> {
        if let Some((letter, rest)) = self.pending.split_first() {
            self.pending = rest;
            return Ok(Some(self.part(*letter, self.at.saturating_sub(1))));
        }
        while let Some(unit) = self.text.get(self.at) {
            let unit = unit.ok_or(Unknown)?;
            let at = self.at;
            self.at += 1;
            match self.rules.kind(unit).ok_or(Unknown)? {
                Kind::Ranked => return Ok(Some(self.ranked(unit, at))),
                Kind::Expanded => {
                    self.has_doubtful_accents = true;
                    let (first, rest) = self.rules.weights.expansion(unit).split_first().ok_or(Unknown)?;
                    self.pending = rest;
                    return Ok(Some(self.part(*first, at)));
                }
                Kind::Mark => self.has_doubtful_accents = true,
                Kind::Last | Kind::Ignored | Kind::Unknown => {}
            }
        }
        Ok(None)
    }

    /// The blank that pads the shorter string.
    pub(super) fn blank(&self) -> Element {
        let blank = u16::from(b' ');
        element(blank, self.rules.weights.of(blank), usize::MAX)
    }

    /// Makes the element for one of the letters that an expanded character counts as. The first unit of the element is
    /// the expanded character.
    fn part(&self, letter: u16, at: usize) -> Element {
        let unit = self.text.get(at).flatten().unwrap_or(letter);
        Element { units: [unit, letter], ..element(letter, self.rules.weights.of(letter), at) }
    }

    fn ranked(&mut self, unit: u16, at: usize) -> Element {
        let weight = self.rules.weights.of(unit);
        let found = element(unit, weight, at);
        if self.rules.is_turkish && turkish(unit).is_some() {
            return Element { older: ranks(unit, weight, self.rules).0, accent: NO_ACCENT, ..found };
        }
        if !self.rules.is_vietnamese {
            return found;
        }
        match self.second(unit) {
            Some((second, step, after)) => {
                self.at = after;
                Element { older: found.older + step, units: [unit, second], ..found }
            }
            None => found,
        }
    }

    /// Returns three facts about the Vietnamese letter that consists of `first` and the next character: the second
    /// character, the distance of the letter from `first` in the order, and the index after the letter. `None` if
    /// `first` does not begin such a letter.
    fn second(&self, first: u16) -> Option<(u16, u32, usize)> {
        let mut at = self.at;
        while self.joins == Joins::All && self.text.get(at).flatten().is_some_and(counts_last) {
            at += 1;
        }
        let second = self.text.get(at).flatten()?;
        let is_taken = match self.joins {
            Joins::None => false,
            Joins::Certain => !is_odd(first, second),
            Joins::All => true,
        };
        Some((second, vietnamese(first, second).filter(|_| is_taken)?, at + 1))
    }
}

/// The places of a character in the orders of generations 80 and 100.
pub(super) fn ranks(unit: u16, weight: Weight, rules: Rules) -> (u32, u32) {
    let older = match turkish(unit).filter(|_| rules.is_turkish) {
        Some((base, step, _)) => u32::from(rules.weights.of(base).older) * STEP + step,
        None => u32::from(weight.older) * STEP,
    };
    (older, u32::from(weight.later) * STEP)
}

fn element(unit: u16, weight: Weight, at: usize) -> Element {
    Element {
        older: u32::from(weight.older) * STEP,
        later: u32::from(weight.later) * STEP,
        accent: weight.accent,
        units: [unit, 0],
        at,
    }
}

pub(super) fn is_ascii_letter(unit: u16) -> bool {
    u8::try_from(unit).is_ok_and(|byte| byte.is_ascii_alphabetic())
}

/// The place of a Turkish letter whose place differs from the default order. Returns the ASCII letter that it equals or
/// follows, the distance from that ASCII letter, and the small form of the Turkish letter.
pub(super) fn turkish(unit: u16) -> Option<(u16, u32, u16)> {
    let (base, step, small) = match unit {
        0xC7 | 0xE7 => (b'c', 1, 0xE7),
        0x11E | 0x11F => (b'g', 1, 0x11F),
        // The dotless i and its capital.
        0x49 | 0x131 => (b'h', 1, 0x131),
        0x69 | 0x130 => (b'i', 0, 0x69),
        0xD6 | 0xF6 => (b'o', 1, 0xF6),
        0x15E | 0x15F => (b's', 1, 0x15F),
        0xDC | 0xFC => (b'u', 1, 0xFC),
        _ => return None,
    };
    Some((base.into(), step, small))
}

/// The distance in the order from the ASCII letter `first` to the Vietnamese letter that consists of `first` and
/// `second`; `None` if the two are not one Vietnamese letter.
fn vietnamese(first: u16, second: u16) -> Option<u32> {
    let fold = |unit: u16| u8::try_from(unit).map(|byte| byte.to_ascii_lowercase()).ok();
    match (fold(first)?, fold(second)?) {
        (b'c' | b'k' | b'p' | b't', b'h') | (b'g', b'i') | (b'q', b'u') | (b'n', b'g') => Some(1),
        (b'n', b'h') | (b't', b'r') => Some(2),
        _ => None,
    }
}

/// Whether two neighboring characters may be one Vietnamese letter. Also true if one of the characters is compared
/// last, like a hyphen, because such a character may be between the two parts of a letter.
pub(super) fn may_join(first: u16, second: u16) -> bool {
    counts_last(first) || counts_last(second) || vietnamese(first, second).is_some()
}

/// Whether `first` is a small letter and `second` is a capital. It is uncertain whether a pair of letters with these
/// cases counts as one letter.
fn is_odd(first: u16, second: u16) -> bool {
    let is_capital = |unit: u16| (0x41..=0x5A).contains(&unit);
    is_capital(second) && !is_capital(first)
}

/// Whether an ASCII character counts only if everything else is equal.
fn counts_last(unit: u16) -> bool {
    matches!(unit, 0x27 | 0x2D | 0x7F | ..0x20)
}

/// Whether it is uncertain if two letters of an ASCII string count as one Vietnamese letter. This is so if a small
/// letter precedes a capital, or if the two letters are separated by a character that is compared last, such as a
/// hyphen.
pub(super) fn may_join_oddly(text: Text<'_>) -> bool {
    let (mut before, mut is_apart) = (0, false);
    text.raw_units().any(|unit| {
        if counts_last(unit) {
            is_apart = true;
            return false;
        }
        let is_doubtful = vietnamese(before, unit).is_some() && (is_apart || is_odd(before, unit));
        (before, is_apart) = (unit, false);
        is_doubtful
    })
}
