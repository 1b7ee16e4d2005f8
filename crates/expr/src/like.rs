//! Evaluates LIKE, if the comparison of each single character is certain.
//!
//! A pattern is split into segments at its `%`. The first segment must match at the start of the value, and the last
//! segment at the end of the value. Each segment in between is matched at the first possible place after the match of
//! the previous segment. Segments of plain characters are searched in linear time (Knuth, Morris, Pratt). Segments with
//! `_` or sets are tried at each place, and each character that is tried costs steps.

use format::collation::CollationId;

use crate::Undecided;
use crate::compare::{CharKeys, Chars, in_range, may_join_previous, same_char};
use crate::steps::{STEPS_PER_COMPARISON, Steps};

pub(crate) const UNCERTAIN: Undecided = Undecided { reason: "a LIKE depends on the collation" };

/// The longest segment, in characters, that is searched in linear time. The search needs a table with one entry for
/// each character of the segment.
const LONGEST_SEARCHED: usize = 8000;

/// The shortest segment, in characters, that is searched in linear time. A shorter segment is tried at each place,
/// because building the table would take longer.
const SHORTEST_SEARCHED: usize = 3;

/// A pattern, which is the right operand of LIKE.
#[derive(Clone, Copy)]
pub(crate) struct Pattern<'s> {
    text: Chars<'s>,
    escape: Option<u16>,
    collation: CollationId,
    keys: CharKeys,
}

/// One element of a pattern.
#[derive(Clone, Copy)]
enum Piece {
    /// `%`
    Any,
    /// `_`
    One,
    /// A character.
    Char(u16),
    /// `[..]`: the offset of the set's first character, the offset after its last character, and whether the set is
    /// negated.
    Set(usize, usize, bool),
}

/// The pieces of a pattern between two `%`. Each of these pieces matches one character of the value.
#[derive(Clone, Copy)]
struct Segment {
    /// The start of the segment in the pattern.
    start: usize,
    pieces: usize,
    /// Whether the segment has no `_`, set or escape. In such a segment, each piece is one unit of the pattern.
    is_plain: bool,
    /// Where the pattern continues after the `%` that ends the segment; `None` for the last segment.
    next: Option<usize>,
}

impl<'s> Pattern<'s> {
    pub(crate) fn new(text: Chars<'s>, escape: Option<u16>, collation: CollationId) -> Self {
        Self { text, escape, collation, keys: CharKeys::of(collation) }
    }

    /// Whether the pattern matches `value`. `borders` is a buffer for the table of the linear search.
    pub(crate) fn matches(self, value: Chars<'_>, steps: &Steps, borders: &mut Vec<u32>) -> Result<bool, Undecided> {
        let full = self.run(value, steps, borders)?;
        let trimmed = value.trimmed();
        if full || trimmed.len() == value.len() {
            return Ok(full);
        }
        // Microsoft's page on LIKE contradicts itself about trailing blanks of the value. In one place, it says that
        // trailing blanks are ignored if the pattern is char and count if the pattern is nchar. In another place, it
        // says that trailing blanks are always ignored.
        match self.run(trimmed, steps, borders)? {
            true if !value.wide => Ok(true),
            true => Err(UNCERTAIN),
            false if value.len() - trimmed.len() == 1 || self.ends_open() => Ok(false),
            false => Err(UNCERTAIN),
        }
    }

    /// Whether the last piece of the pattern is `%` or a character other than a blank. If a value has trailing blanks,
    /// their number does not change whether such a pattern matches the value.
    fn ends_open(self) -> bool {
        let last = self.text.len().checked_sub(1).and_then(|last| self.text.get(last));
        last.is_some_and(|unit| unit != u16::from(b'_') && unit != u16::from(b']') && unit != 0x20)
    }

    /// The piece at `at`, and the start of the next piece. `None` if the pattern is invalid or its meaning is unknown.
    #[inline(always)]
    fn piece(self, at: usize) -> Option<(Piece, usize)> {
        let unit = self.text.get(at)?;
        if self.escape == Some(unit) {
            return Some((Piece::Char(self.text.get(at + 1)?), at + 2));
        }
        match u8::try_from(unit) {
            Ok(b'%') => Some((Piece::Any, at + 1)),
            Ok(b'_') => Some((Piece::One, at + 1)),
            Ok(b'[') => {
                let negated = self.text.get(at + 1) == Some(u16::from(b'^'));
                let start = at + 1 + usize::from(negated);
                let mut end = start;
                while self.text.get(end)? != u16::from(b']') {
                    // An escape character inside a set is rare, and Microsoft hardly documents its rules.
                    if self.escape.is_some() && self.text.get(end) == self.escape {
                        return None;
                    }
                    end += 1;
                }
                (end > start).then_some((Piece::Set(start, end, negated), end + 1))
            }
            _ => Some((Piece::Char(unit), at + 1)),
        }
    }

    /// The pieces from `start` to the next `%`.
    fn segment(self, start: usize, steps: &Steps) -> Result<Segment, Undecided> {
        let mut segment = Segment { start, pieces: 0, is_plain: true, next: None };
        let mut at = start;
        while at < self.text.len() {
            let (piece, next) = self.piece(at).ok_or(UNCERTAIN)?;
            steps.take((next - at) as u64)?;
            if let Piece::Any = piece {
                segment.next = Some(next);
                break;
            }
            segment.pieces += 1;
            segment.is_plain &= matches!(piece, Piece::Char(_)) && next == at + 1;
            at = next;
        }
        Ok(segment)
    }

    fn run(self, value: Chars<'_>, steps: &Steps, borders: &mut Vec<u32>) -> Result<bool, Undecided> {
        // The segment before the first `%`.
        let (mut at, mut from) = (0, 0);
        let mut next = None;
        while from < self.text.len() {
            let (piece, after) = self.piece(from).ok_or(UNCERTAIN)?;
            from = after;
            if let Piece::Any = piece {
                next = Some(after);
                break;
            }
            let Some(unit) = value.get(at) else { return Ok(false) };
            if !self.fits(piece, unit)? {
                return Ok(false);
            }
            at += 1;
        }
        self.check_end(value, at)?;
        steps.take(STEPS_PER_COMPARISON * from as u64)?;
        let is_open = next.is_some();
        while let Some(start) = next {
            let segment = self.segment(start, steps)?;
            next = segment.next;
            if segment.pieces == 0 {
                continue;
            }
            if segment.next.is_none() {
                return match self.ends(segment, value, at, steps) {
                    Err(UNCERTAIN) => self.ends_somewhere(segment, value, at, steps),
                    known => known,
                };
            }
            let found = match self.borders(segment, steps, borders)? {
                // The search needs a key for each character. Without a key, the comparison of two characters may still
                // be certain.
                true => match self.search(segment, value, at, steps, borders) {
                    Err(UNCERTAIN) => self.try_each(segment, value, at, steps)?,
                    found => found?,
                },
                false => self.try_each(segment, value, at, steps)?,
            };
            let Some(end) = found else { return Ok(false) };
            at = end;
            self.check_end(value, at)?;
        }
        // A pattern with a `%` reaches this line only if it ends with `%`.
        Ok(is_open || at == value.len())
    }

    /// Returns an error if the character of the value at `at` may be a part of the character before it, like a
    /// combining accent.
    fn check_end(self, value: Chars<'_>, at: usize) -> Result<(), Undecided> {
        let joins = |unit| may_join_previous(unit, self.collation, value.wide);
        if at > 0 && value.get(at).is_some_and(joins) { Err(UNCERTAIN) } else { Ok(()) }
    }

    /// Whether a piece matches a character of the value.
    #[inline(always)]
    fn fits(self, piece: Piece, unit: u16) -> Result<bool, Undecided> {
        let fits = match piece {
            Piece::Any => None,
            // `_` matches one character, which may be two bytes, a surrogate pair, or a letter with its accent.
            Piece::One => (unit < 0x80).then_some(true),
            Piece::Char(wanted) => match self.keys.key(unit).zip(self.keys.key(wanted)) {
                Some((a, b)) => Some(a == b),
                None => same_char(unit, wanted, self.collation, self.text.wide),
            },
            Piece::Set(start, end, negated) => self.in_set(unit, start, end).map(|found| found != negated),
        };
        fits.ok_or(UNCERTAIN)
    }

    fn in_set(self, unit: u16, start: usize, end: usize) -> Option<bool> {
        let mut at = start;
        let mut unsure = false;
        while at < end {
            let low = self.text.get(at)?;
            let is_range = at + 2 < end && self.text.get(at + 1) == Some(u16::from(b'-'));
            let found = match is_range {
                true => in_range(unit, low, self.text.get(at + 2)?, self.collation),
                false => same_char(unit, low, self.collation, self.text.wide),
            };
            match found {
                Some(true) => return Some(true),
                Some(false) => {}
                None => unsure = true,
            }
            at += if is_range { 3 } else { 1 };
        }
        (!unsure).then_some(false)
    }

    /// Whether the segment matches at place `at` of the value.
    #[inline]
    fn stands_at(self, segment: Segment, value: Chars<'_>, at: usize, steps: &Steps) -> Result<bool, Undecided> {
        let mut from = segment.start;
        let mut stands = true;
        for place in at..at + segment.pieces {
            let (piece, next) = self.piece(from).ok_or(UNCERTAIN)?;
            from = next;
            stands = match value.get(place) {
                Some(unit) => self.fits(piece, unit)?,
                None => false,
            };
            if !stands {
                break;
            }
        }
        steps.take(STEPS_PER_COMPARISON * (from - segment.start) as u64)?;
        Ok(stands)
    }

    /// Whether the value ends with the last segment, which must begin at `at` or later. Also compares each character
    /// between `at` and the segment with the first piece of the segment. If such a character is uncertain, this
    /// comparison returns an error, because the character may count as several characters.
    fn ends(self, segment: Segment, value: Chars<'_>, at: usize, steps: &Steps) -> Result<bool, Undecided> {
        let rest = value.len() - at;
        for place in at..value.len() - segment.pieces.min(rest) {
            let (piece, next) = self.piece(segment.start).ok_or(UNCERTAIN)?;
            steps.take(STEPS_PER_COMPARISON * (next - segment.start) as u64)?;
            self.fits(piece, value.get(place).ok_or(UNCERTAIN)?)?;
        }
        let (mut from, mut fits) = (segment.start, rest >= segment.pieces);
        for place in value.len() - segment.pieces.min(rest)..value.len() {
            let (piece, next) = self.piece(from).ok_or(UNCERTAIN)?;
            fits &= self.fits(piece, value.get(place).ok_or(UNCERTAIN)?)?;
            from = next;
        }
        steps.take(STEPS_PER_COMPARISON * (from - segment.start) as u64)?;
        Ok(fits)
    }

    /// Like [`Self::ends`], but tries the segment at each place. This may avoid a comparison with an uncertain
    /// character.
    fn ends_somewhere(self, segment: Segment, value: Chars<'_>, at: usize, steps: &Steps) -> Result<bool, Undecided> {
        for start in at..value.len() {
            if self.stands_at(segment, value, start, steps)? && start + segment.pieces == value.len() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tries the segment at each place from `at` on. Returns the end of its first match.
    fn try_each(
        self,
        segment: Segment,
        value: Chars<'_>,
        at: usize,
        steps: &Steps,
    ) -> Result<Option<usize>, Undecided> {
        let (first, next) = self.piece(segment.start).ok_or(UNCERTAIN)?;
        let first_steps = STEPS_PER_COMPARISON * (next - segment.start) as u64;
        for start in at..value.len() {
            let unit = value.get(start).ok_or(UNCERTAIN)?;
            steps.take(first_steps)?;
            if self.fits(first, unit)? && self.stands_at(segment, value, start, steps)? {
                return Ok(Some(start + segment.pieces));
            }
        }
        Ok(None)
    }

    /// For each prefix of a segment, stores the length of its longest border in `borders`. A border is a shorter string
    /// with which the prefix both begins and ends. Returns false if the segment is not plain, is too long or too short
    /// for the table, or has uncertain characters.
    fn borders(self, segment: Segment, steps: &Steps, borders: &mut Vec<u32>) -> Result<bool, Undecided> {
        if !segment.is_plain || !(SHORTEST_SEARCHED..=LONGEST_SEARCHED).contains(&segment.pieces) {
            return Ok(false);
        }
        borders.clear();
        let mut border = 0u32;
        for at in 0..segment.pieces {
            let Some(key) = self.key(segment, at) else { return Ok(false) };
            if at > 0 {
                border = self.longer(segment, key, border, steps, borders)?;
            }
            borders.push(border);
        }
        Ok(true)
    }

    /// Like [`Self::try_each`], but uses the table in `borders`.
    fn search(
        self,
        segment: Segment,
        value: Chars<'_>,
        at: usize,
        steps: &Steps,
        borders: &[u32],
    ) -> Result<Option<usize>, Undecided> {
        let mut found = 0;
        for place in at..value.len() {
            let key = value.get(place).and_then(|unit| self.keys.key(unit)).ok_or(UNCERTAIN)?;
            found = self.longer(segment, key, found, steps, borders)?;
            if found as usize == segment.pieces {
                return Ok(Some(place + 1));
            }
        }
        Ok(None)
    }

    /// Returns the length of the longest prefix of the segment that matches the value up to and including the current
    /// character, whose key is `key`. `found` is the length of the longest prefix that matches up to the character
    /// before.
    #[inline(always)]
    fn longer(
        self,
        segment: Segment,
        key: u16,
        mut found: u32,
        steps: &Steps,
        borders: &[u32],
    ) -> Result<u32, Undecided> {
        loop {
            steps.take(STEPS_PER_COMPARISON)?;
            if self.key(segment, found as usize) == Some(key) {
                return Ok(found + 1);
            }
            match found.checked_sub(1).and_then(|last| borders.get(last as usize)) {
                Some(border) => found = *border,
                None => return Ok(0),
            }
        }
    }

    #[inline(always)]
    fn key(self, segment: Segment, at: usize) -> Option<u16> {
        self.text.get(segment.start + at).and_then(|unit| self.keys.key(unit))
    }
}

#[cfg(test)]
mod tests;
