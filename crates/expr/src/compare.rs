//! Equality and order of strings. In addition to `format::collation`, this module compares single ASCII characters for
//! equality.
//!
//! In every collation, two different printable ASCII characters are unequal, unless they are the capital and the small
//! form of one letter. The reason is that no printable ASCII character has a weight of zero. In locales that are known
//! to have no contractions of ASCII characters, this rule decides most tests of equality. In other locales, the rule
//! decides about letters only if each string is a single character. The reason is that several letters may form a unit:
//! Hungarian reads `ddz` as `dzdz`, and Spanish reads `ch` as one letter. For the order of strings, and for all
//! characters outside ASCII, see docs/format/collations.md#comparing.

use std::cmp::Ordering;

use format::collation::{self, CharClass, CollationId, Comparison, Encoding, classify};

/// The characters of a string: the bytes of a char value, or the code units of an nchar value.
#[derive(Clone, Copy)]
pub(crate) struct Chars<'s> {
    pub(crate) bytes: &'s [u8],
    pub(crate) wide: bool,
}

impl<'s> Chars<'s> {
    pub(crate) fn len(self) -> usize {
        if self.wide { self.bytes.len() / 2 } else { self.bytes.len() }
    }

    pub(crate) fn get(self, at: usize) -> Option<u16> {
        if self.wide {
            let pair = self.bytes.get(at * 2..at * 2 + 2)?;
            Some(u16::from_le_bytes([*pair.first()?, *pair.get(1)?]))
        } else {
            self.bytes.get(at).map(|&byte| byte.into())
        }
    }

    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = u16> + Clone + 's {
        (0..self.len()).map(move |at| self.get(at).unwrap_or(0))
    }

    pub(crate) fn is_ascii(self) -> bool {
        if self.wide {
            self.bytes.chunks_exact(2).all(|pair| matches!(pair, [0..=0x7F, 0]))
        } else {
            self.bytes.is_ascii()
        }
    }

    pub(crate) fn is_printable_ascii(self) -> bool {
        self.iter().all(|unit| (0x20..0x7F).contains(&unit))
    }

    /// The characters without trailing blanks.
    pub(crate) fn trimmed(self) -> Self {
        let blanks = self.iter().rev().take_while(|&unit| unit == 0x20).count();
        let width = if self.wide { 2 } else { 1 };
        Self { bytes: self.bytes.get(..(self.len() - blanks) * width).unwrap_or_default(), ..self }
    }
}

fn is_binary(id: CollationId) -> bool {
    id.is_bin() || id.is_bin2()
}

fn is_letter(unit: u16) -> bool {
    (0x61..=0x7A).contains(&folded(unit))
}

fn folded(unit: u16) -> u16 {
    if (0x41..=0x5A).contains(&unit) { unit + 0x20 } else { unit }
}

/// The rules by which characters are equal in a collation. They are determined once and used for many comparisons.
#[derive(Clone, Copy)]
pub(crate) struct CharKeys {
    is_binary: bool,
    pairs_case: bool,
    ignores_case: bool,
}

impl CharKeys {
    pub(crate) fn of(id: CollationId) -> Self {
        Self { is_binary: is_binary(id), pairs_case: id.letters_are_plain(), ignores_case: id.ignores_case() }
    }

    /// A key for a character. Equal characters have the same key, and unequal characters have different keys. `None` if
    /// [`same_char`] cannot decide.
    #[inline]
    pub(crate) fn key(self, unit: u16) -> Option<u16> {
        if self.is_binary {
            return Some(unit);
        }
        if !(0x20..0x7F).contains(&unit) || !self.pairs_case && is_letter(unit) {
            return None;
        }
        Some(if self.ignores_case { folded(unit) } else { unit })
    }
}

/// Whether two characters are equal; `None` if this is uncertain. `wide` is set for nchar values; in char values, a
/// character is one byte.
pub(crate) fn same_char(a: u16, b: u16, id: CollationId, wide: bool) -> Option<bool> {
    let encoding = if wide { Encoding::Unicode } else { Encoding::Ansi };
    same_ascii(a, b, id).or_else(|| collation::is_same_character(a, b, id, encoding))
}

/// Whether a character may change the meaning of the character before it, like a combining accent.
pub(crate) fn may_join_previous(unit: u16, id: CollationId, wide: bool) -> bool {
    collation::may_join_previous(unit, id, if wide { Encoding::Unicode } else { Encoding::Ansi })
}

pub(crate) fn same_ascii(a: u16, b: u16, id: CollationId) -> Option<bool> {
    let printable = |unit: u16| (0x20..0x7F).contains(&unit);
    if is_binary(id) {
        return Some(a == b);
    }
    if !printable(a) || !printable(b) {
        return None;
    }
    if !id.letters_are_plain() && (is_letter(a) || is_letter(b)) {
        return None;
    }
    same_alone(a, b, id)
}

/// Like [`same_char`], but only for printable characters that are not part of a contraction.
fn same_alone(a: u16, b: u16, id: CollationId) -> Option<bool> {
    if a == b || folded(a) != folded(b) {
        return Some(a == b);
    }
    if !id.ignores_case() {
        // Collation 0 is an unknown collation, which may or may not ignore case.
        return (id.0 != 0).then_some(false);
    }
    id.letters_are_plain().then_some(true)
}

/// The result of comparing two strings that are both char or both nchar.
fn compared(a: Chars<'_>, b: Chars<'_>, id: CollationId) -> Comparison {
    let encoding = if a.wide { Encoding::Unicode } else { Encoding::Ansi };
    collation::compare(a.bytes, b.bytes, id, encoding)
}

/// Whether two strings are equal; `None` if this is uncertain. Trailing blanks are ignored.
pub(crate) fn equal(a: Chars<'_>, b: Chars<'_>, id: CollationId) -> Option<bool> {
    if let Some(equal) = compared(a, b, id).is_equal() {
        return Some(equal);
    }
    let (a, b) = (a.trimmed(), b.trimmed());
    if a.wide == b.wide && a.bytes == b.bytes {
        return Some(true);
    }
    if is_binary(id) || !a.is_printable_ascii() || !b.is_printable_ascii() {
        return None;
    }
    let alone = a.len().max(b.len()) == 1;
    if !id.letters_are_plain() && !alone && a.iter().chain(b.iter()).any(is_letter) {
        return None;
    }
    if a.len() != b.len() {
        return Some(false);
    }
    let mut unsure = false;
    for (left, right) in a.iter().zip(b.iter()) {
        match same_alone(left, right, id) {
            Some(true) => {}
            Some(false) => return Some(false),
            None => unsure = true,
        }
    }
    (!unsure).then_some(true)
}

/// The order of two strings; `None` if it is uncertain.
pub(crate) fn order(a: Chars<'_>, b: Chars<'_>, id: CollationId) -> Option<Ordering> {
    compared(a, b, id).order().or_else(|| equal(a, b, id).and_then(|equal| equal.then_some(Ordering::Equal)))
}

/// Whether a character is in a range of a LIKE pattern; `None` if this is uncertain.
pub(crate) fn in_range(unit: u16, low: u16, high: u16, id: CollationId) -> Option<bool> {
    if is_binary(id) {
        return (id.is_bin2() || unit.max(low).max(high) < 0x80).then_some(low <= unit && unit <= high);
    }
    let (class, low_class, high_class) = (classify(unit)?, classify(low)?, classify(high)?);
    let letters = [class, low_class, high_class].iter().filter(|class| matches!(class, CharClass::Letter(_))).count();
    let is_symbol = |class: CharClass| matches!(class, CharClass::Blank | CharClass::Punctuation);
    if is_symbol(low_class) || is_symbol(high_class) {
        return None;
    }
    if letters > 1 && !id.letters_are_plain() {
        return None;
    }
    if class < low_class || class > high_class {
        return (id.letters_are_plain() || !is_symbol(class)).then_some(false);
    }
    // If the character differs only in case from a letter at an end of the range, a case-sensitive collation may place
    // it inside or outside the range.
    let at_end = |class_end: CharClass, end: u16| class == class_end && unit != end;
    if (at_end(low_class, low) || at_end(high_class, high)) && !id.ignores_case() {
        return None;
    }
    Some(true)
}
