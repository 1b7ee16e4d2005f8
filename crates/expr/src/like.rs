//! LIKE, as far as each single character comparison is certain.

use format::collation::CollationId;

use crate::compare::{Chars, in_range, same_char};

/// What stands at a place of a pattern.
enum Piece {
    /// `%`
    Any,
    /// `_`
    One,
    /// A character.
    Char(u16),
    /// `[..]`: first and past-the-last unit of what is inside, negated.
    Set(usize, usize, bool),
}

/// Whether `value` matches `pattern`; `None` when that is not certain.
pub(crate) fn matches(value: Chars<'_>, pattern: Chars<'_>, escape: Option<u16>, id: CollationId) -> Option<bool> {
    let full = run(value, pattern, escape, id)?;
    let trimmed = value.trimmed();
    if full || trimmed.len() == value.len() {
        return Some(full);
    }
    // Trailing blanks of the value: char patterns ignore them, nchar ones count them, says one half of Microsoft's page
    // on LIKE; the other half ignores them always.
    match run(trimmed, pattern, escape, id)? {
        true if !value.wide => Some(true),
        true => None,
        false if value.len() - trimmed.len() == 1 => Some(false),
        false => ends_open(pattern).then_some(false),
    }
}

/// Whether the pattern cannot treat one trailing blank differently from two.
fn ends_open(pattern: Chars<'_>) -> bool {
    let last = pattern.len().checked_sub(1).and_then(|last| pattern.get(last));
    last.is_some_and(|unit| unit != u16::from(b'_') && unit != u16::from(b']') && unit != 0x20)
}

/// The pattern's piece at `at`, and where the next begins. `None`: not a valid pattern, or one we don't know.
fn piece(pattern: Chars<'_>, at: usize, escape: Option<u16>) -> Option<(Piece, usize)> {
    let unit = pattern.get(at)?;
    if escape == Some(unit) {
        return Some((Piece::Char(pattern.get(at + 1)?), at + 2));
    }
    match u8::try_from(unit) {
        Ok(b'%') => Some((Piece::Any, at + 1)),
        Ok(b'_') => Some((Piece::One, at + 1)),
        Ok(b'[') => {
            let negated = pattern.get(at + 1) == Some(u16::from(b'^'));
            let start = at + 1 + usize::from(negated);
            let mut end = start;
            while pattern.get(end)? != u16::from(b']') {
                // An escape inside a set is rare and its rules are told in half a sentence.
                if escape.is_some() && pattern.get(end) == escape {
                    return None;
                }
                end += 1;
            }
            (end > start).then_some((Piece::Set(start, end, negated), end + 1))
        }
        _ => Some((Piece::Char(unit), at + 1)),
    }
}

fn in_set(unit: u16, pattern: Chars<'_>, start: usize, end: usize, id: CollationId) -> Option<bool> {
    let mut at = start;
    let mut unsure = false;
    while at < end {
        let low = pattern.get(at)?;
        let is_range = at + 2 < end && pattern.get(at + 1) == Some(u16::from(b'-'));
        let found = if is_range { in_range(unit, low, pattern.get(at + 2)?, id) } else { same_char(unit, low, id) };
        match found {
            Some(true) => return Some(true),
            Some(false) => {}
            None => unsure = true,
        }
        at += if is_range { 3 } else { 1 };
    }
    (!unsure).then_some(false)
}

/// The usual walk with one way back, to the last `%`: a later one makes the earlier needless.
fn run(value: Chars<'_>, pattern: Chars<'_>, escape: Option<u16>, id: CollationId) -> Option<bool> {
    let (mut at, mut from) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    loop {
        let fits = if from == pattern.len() {
            if at == value.len() {
                return Some(true);
            }
            false
        } else {
            let (piece, next) = piece(pattern, from, escape)?;
            let unit = value.get(at);
            let fits = match (piece, unit) {
                (Piece::Any, _) => {
                    back = Some((at, next));
                    from = next;
                    continue;
                }
                (_, None) => false,
                // One character may be two bytes, a surrogate pair or a letter with its accent.
                (Piece::One, Some(unit)) => (unit < 0x80).then_some(true)?,
                (Piece::Char(wanted), Some(unit)) => same_char(unit, wanted, id)?,
                (Piece::Set(start, end, negated), Some(unit)) => in_set(unit, pattern, start, end, id)? != negated,
            };
            if fits {
                at += 1;
                from = next;
            }
            fits
        };
        if !fits {
            let Some((start, next)) = back.filter(|&(start, _)| start < value.len()) else { return Some(false) };
            back = Some((start + 1, next));
            (at, from) = (start + 1, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(value: &str, pattern: &str, escape: Option<char>) -> Option<bool> {
        let chars = |text: &'static [u8]| Chars { bytes: text, wide: false };
        let leak = |text: &str| &*Box::leak(text.as_bytes().to_vec().into_boxed_slice());
        matches(chars(leak(value)), chars(leak(pattern)), escape.map(|c| c as u16), CollationId(0x3400_D008))
    }

    #[test]
    fn microsofts_examples() {
        assert_eq!(like("5%", "5[%]", None), Some(true));
        assert_eq!(like("_n", "[_]n", None), Some(true));
        assert_eq!(like("-", "[-acdf]", None), Some(true));
        assert_eq!(like("abce", "abc[def]", None), Some(true));
        assert_eq!(like("abcg", "abc[def]", None), Some(false));
        assert_eq!(like("Larsen", "[C-P]arsen", None), Some(true));
        assert_eq!(like("Zarsen", "[C-P]arsen", None), Some(false));
        assert_eq!(like("Sheryl", "[CS]heryl", None), Some(true));
        assert_eq!(like("delete", "de[^l]%", None), Some(false));
        assert_eq!(like("Discount is 10-15% off", "%10-15!% off%", Some('!')), Some(true));
        assert_eq!(like("Discount is .10-.15 off", "%10-15!% off%", Some('!')), Some(false));
        assert_eq!(like("Robert King   ", "% King", None), Some(true));
    }

    #[test]
    fn pubs_and_northwind_patterns() {
        assert_eq!(like("9952", "99[0-9][0-9]", None), Some(true));
        assert_eq!(like("99x2", "99[0-9][0-9]", None), Some(false));
        assert_eq!(like("PMA42628M", "[A-Z][A-Z][A-Z][1-9][0-9][0-9][0-9][0-9][FM]", None), Some(true));
        assert_eq!(like("caf\u{e9}", "caf_", None), None);
        assert_eq!(like("\u{e9}", "e", None), None);
    }
}
