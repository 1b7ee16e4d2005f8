//! Comparing strings without the collation's tables: only what is certain
//! (docs/format/collations.md#comparing-without-tables).
//!
//! The order of letters and digits decided below held without exception in 1.9 million adjacent keys of real indexes.
//! Everything else stays undecided: an undecided comparison costs a line under "not verified", a wrong one costs a
//! false alarm.

use std::cmp::Ordering;

/// A collation id of the catalog.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CollationId(pub u32);

impl CollationId {
    /// Whether capitals and small letters are the same.
    fn ignores_case(self) -> bool {
        self.0 & 0x1000 != 0
    }

    /// Compares code units; bytes for char.
    pub fn is_bin2(self) -> bool {
        self.0 & 0x800 != 0
    }

    /// Compares the first character by code unit, the rest by byte.
    pub fn is_bin(self) -> bool {
        self.0 & 0x10000 != 0
    }

    /// Index of the locale; that of UTF-8 collations is none of those that are known.
    pub fn locale(self) -> u8 {
        self.0 as u8
    }

    /// The family: collations whose names begin alike, whether they are UTF-8 or not.
    pub fn family(self) -> u8 {
        self.locale() & 0x7F
    }

    /// Whether char and varchar are UTF-8 (from SQL Server 2019 on).
    pub fn is_utf8(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// 0 for collations without a number in their name, 1 for _90, 2 for _100, 3 for _140, 4 for _160.
    fn generation(self) -> u32 {
        self.0 >> 17 & 7
    }

    /// A SQL sort order for which nothing is certain: binary without the flag that says so (ids 30, 40, 50), capitals
    /// preferred (33, 43, 53, 56, 58, 183 to 186), version 1 (49), Scandinavian (59, 60) and Greek (120 to 122), whose
    /// letters may have moved, and EBCDIC, with digits after letters (210 to 217, and two later ones known by name
    /// only).
    fn is_doubtful(self) -> bool {
        let is_binary = self.is_bin() || self.is_bin2();
        !is_binary
            && matches!(self.0 >> 24, 30 | 33 | 40 | 43 | 49 | 50 | 53 | 56 | 58..=60 | 120..=122 | 183..=186 | 210..)
    }

    /// The name, where the id says it for certain; `None` for locales whose name is not known here, for most SQL collations,
    /// and with bits of more than one meaning.
    pub fn name(self) -> Option<String> {
        const KNOWN_BITS: u32 = 0xFF0F_F9FF;
        let family = match self.family() {
            LATIN1_GENERAL => "Latin1_General",
            0x15 => "Cyrillic_General",
            TURKISH => "Turkish",
            0x24 => "Chinese_PRC",
            _ => return None,
        };
        if self.0 & !KNOWN_BITS != 0 {
            return None;
        }
        match (self.0 >> 24, self.locale()) {
            (0, _) => {}
            (0x33, LATIN1_GENERAL) => return Some("SQL_Latin1_General_CP1_CS_AS".to_owned()),
            (0x34, LATIN1_GENERAL) => return Some("SQL_Latin1_General_CP1_CI_AS".to_owned()),
            (0x36, LATIN1_GENERAL) => return Some("SQL_Latin1_General_CP1_CI_AI".to_owned()),
            _ => return None,
        }
        let generation = ["", "_90", "_100", "_140"].get(self.generation() as usize)?;
        let mut name = format!("{family}{generation}");
        if self.is_bin2() || self.is_bin() {
            name.push_str(if self.is_bin2() { "_BIN2" } else { "_BIN" });
            name.push_str(if self.is_utf8() { "_UTF8" } else { "" });
            return Some(name);
        }
        let ignores = |bit: u32| self.0 & bit != 0;
        name.push_str(if ignores(0x1000) { "_CI" } else { "_CS" });
        name.push_str(if ignores(0x2000) { "_AI" } else { "_AS" });
        name.push_str(if ignores(0x4000) { "" } else { "_KS" });
        name.push_str(if ignores(0x8000) { "" } else { "_WS" });
        name.push_str(if self.0 & 0x100 != 0 { "_SC" } else { "" });
        name.push_str(if self.is_utf8() { "_UTF8" } else { "" });
        Some(name)
    }

    /// Whether plain ASCII letters keep their English order in this locale and are never part of a contraction. Only
    /// locales where this is known; for all others [`is_certain`] decides.
    fn letters_are_plain(self) -> bool {
        // Arabic, Chinese_Taiwan, Greek, Latin1_General, French, Hebrew, Japanese, Korean, Cyrillic, Thai, Chinese_PRC.
        matches!(self.locale(), 0x01 | 0x03 | 0x07 | 0x08 | 0x0B | 0x0C | 0x10 | 0x11 | 0x15 | 0x19 | 0x24)
    }
}

/// How the compared strings are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// char, varchar: bytes of a code page. SQL collations have their own order for these, in which every character
    /// counts in place; Windows collations order them as Unicode.
    Ansi,
    /// nchar, nvarchar: UTF-16 code units.
    Unicode,
}

/// Locales with special rules here.
const LATIN1_GENERAL: u8 = 0x08;
const TURKISH: u8 = 0x1A;
const VIETNAMESE: u8 = 0x20;
/// Seen in one database only, whose 6,500 adjacent keys have all letters but z in English order.
const SOUTH_SLAVIC: u8 = 0x1C;

/// What is certain about one character of a string key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CharClass {
    /// A blank: below every other character that counts.
    Blank,
    /// A symbol that counts: below every digit and letter; order among symbols undecided.
    Punctuation,
    /// A digit.
    Digit(u8),
    /// An ASCII letter, case folded.
    Letter(u8),
}

/// Classifies a code unit; `None` if its place is uncertain. That includes `-` and `'`, which Windows collations ignore
/// until all else is equal. All other ASCII symbols come before digits and letters (Microsoft's description of word
/// sort).
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

/// The base letter of a Latin-1 letter with a diacritic, which counts as equal until all letters are compared (the
/// diacritic weighs less than any later letter); `None` for any other character.
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

/// What is certain about single characters in a collation.
#[derive(Clone, Copy)]
struct Alphabet {
    collation: CollationId,
    encoding: Encoding,
    /// ASCII letters are in English order and never join.
    plain: bool,
}

impl Alphabet {
    fn of(collation: CollationId, encoding: Encoding) -> Self {
        Self { collation, encoding, plain: collation.letters_are_plain() }
    }

    /// Whether each character counts in place (string sort), instead of `-` and `'` last (word sort).
    fn is_string_sort(self) -> bool {
        self.encoding == Encoding::Ansi && self.collation.0 >> 24 != 0
    }

    /// Whether the case of a letter may weigh more than the letters after it: undocumented for the sort orders in which
    /// case counts.
    fn may_put_case_first(self) -> bool {
        self.is_string_sort() && !self.collation.ignores_case()
    }

    fn is_mark(unit: u16) -> bool {
        matches!(unit, 0x27 | 0x2D)
    }

    /// Whether a character counts only when all others are equal. Where letters may join, the letters around it stay
    /// undecided.
    fn is_ignored(self, unit: u16) -> bool {
        self.plain && !self.is_string_sort() && Self::is_mark(unit)
    }

    fn class(self, unit: u16) -> Option<CharClass> {
        if self.plain && self.is_string_sort() && Self::is_mark(unit) {
            return Some(CharClass::Punctuation);
        }
        let has_accents = self.encoding == Encoding::Unicode && self.collation.locale() == LATIN1_GENERAL;
        classify(unit).or_else(|| base_letter(unit).filter(|_| has_accents).map(CharClass::Letter))
    }
}

/// The value of a character for an equality test. If every character of two strings has such a value, the strings are
/// equal, trailing blanks aside, exactly when the values are. `None` if uncertain: outside printable ASCII a character
/// may be ignored or expand to several.
pub fn equality_unit(unit: u16, collation: CollationId) -> Option<u16> {
    if collation.is_doubtful() || collation.0 == 0 {
        return None;
    }
    if collation.is_bin2() || collation.is_bin() {
        return Some(unit);
    }
    // Digits differ from each other in every alphabet.
    if (0x30..=0x39).contains(&unit) {
        return Some(unit);
    }
    if !collation.letters_are_plain() || !(0x20..0x7F).contains(&unit) {
        return None;
    }
    let is_upper = (0x41..=0x5A).contains(&unit) && collation.ignores_case();
    Some(if is_upper { unit + 0x20 } else { unit })
}

/// Letters that the alphabet keeps in place. Excluded unless the locale is known: i and y (Turkish, Baltic), q, x
/// (Azeri), v and w (Swedish), z (Estonian).
fn stays_in_place(letter: u8, collation: CollationId) -> bool {
    match collation.locale() {
        // Turkish puts dotless i, whose capital is I, between h and i: relative to other letters both keep their place.
        TURKISH => letter.is_ascii_lowercase(),
        SOUTH_SLAVIC => letter != b'z',
        _ => letter.is_ascii_lowercase() && !matches!(letter, b'i' | b'q' | b'v'..=b'z'),
    }
}

/// Whether two ASCII characters may be one letter of the alphabet (docs/format/collations.md#comparing-without-tables
/// lists the languages), case folded.
fn may_contract(first: u16, second: u16, collation: CollationId) -> bool {
    const PAIRS: [&[u8; 2]; 27] = [
        b"aa", b"ch", b"cs", b"dd", b"dh", b"dz", b"ff", b"gh", b"gj", b"gy", b"lj", b"ll", b"ly", b"ng", b"nh", b"nj",
        b"ny", b"ph", b"rh", b"rr", b"sh", b"sz", b"th", b"ty", b"xh", b"zh", b"zs",
    ];
    // tr also in languages whose collations came with SQL Server 2008; ie in Maltese, one of them.
    const PAIRS_OF_SOME: [&[u8; 2]; 5] = [b"gi", b"ie", b"kh", b"qu", b"tr"];
    let fold = |unit: u16| u8::try_from(unit).map_or(0, |byte| byte.to_ascii_lowercase());
    let (first, second) = (fold(first), fold(second));
    let is_one_of = |pairs: &[&[u8; 2]]| pairs.iter().any(|pair| pair[0] == first && pair[1] == second);
    if collation.locale() == TURKISH {
        return false;
    }
    let has_more = collation.locale() == VIETNAMESE || collation.generation() > 0;
    // c'h of Breton.
    is_one_of(&PAIRS) || has_more && is_one_of(&PAIRS_OF_SOME) || first == b'\'' || second == b'\''
}

/// Whether the first difference of two strings is ordered as in English: `before` is the last shared character,
/// followed by the first characters that differ and what follows those.
fn is_certain(before: Option<u16>, a: (u16, Option<u16>), b: (u16, Option<u16>), collation: CollationId) -> bool {
    let stays = |unit: u16| match classify(unit) {
        Some(CharClass::Letter(letter)) => stays_in_place(letter, collation),
        class => class.is_some(),
    };
    let joins = |(unit, next): (u16, Option<u16>)| {
        before.is_some_and(|before| may_contract(before, unit, collation))
            || next.is_some_and(|next| may_contract(unit, next, collation))
    };
    stays(a.0) && stays(b.0) && !joins(a) && !joins(b)
}

/// Order of two strings under `collation`, as far as it is certain. `a` and `b` yield UTF-16 code units, or the bytes of
/// a char value, as `encoding` says.
pub fn compare(
    a: impl DoubleEndedIterator<Item = u16> + Clone,
    b: impl DoubleEndedIterator<Item = u16> + Clone,
    collation: CollationId,
    encoding: Encoding,
) -> Option<Ordering> {
    if a.clone().eq(b.clone()) {
        return Some(Ordering::Equal);
    }
    // Id 0 means the database's default; the caller replaces it when the default is known.
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
            // Equal only after folding, or except for ignored characters: truly equal in some collations, not in
            // others.
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
                    // Two cases of one letter; in Turkish i and I are different letters.
                    if !alphabet.plain && class == CharClass::Letter(b'i') || alphabet.may_put_case_first() {
                        return None;
                    }
                    before = Some(one);
                    identical &= one == other;
                    continue;
                }
                let is_certain = match [class, other_class] {
                    [CharClass::Punctuation, CharClass::Punctuation] => false,
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

/// Order of two strings as stored, decided by the first difference alone: everything before it is ASCII, both sides
/// have a letter or digit there, and the alphabet is plain. `None` decides nothing; [`compare`] has to. Never
/// contradicts [`compare`].
pub fn compare_at_first_difference(a: &[u8], b: &[u8], collation: CollationId, encoding: Encoding) -> Option<Ordering> {
    if !is_decided_by_first_difference(collation) {
        return None;
    }
    let (at, shared) = first_difference(a, b);
    let (at, beyond_ascii) = match encoding {
        Encoding::Ansi => (at, 0x8080_8080_8080_8080),
        Encoding::Unicode => (at & !1, 0xFF80_FF80_FF80_FF80),
    };
    if shared & beyond_ascii != 0 {
        return None;
    }
    let unit = |bytes: &[u8]| match (encoding, bytes.get(at..)?) {
        (Encoding::Ansi, [byte, ..]) | (Encoding::Unicode, [byte, 0, ..]) => Some(*byte),
        _ => None,
    };
    let (left, right) = (fold(unit(a)?)?, fold(unit(b)?)?);
    (left != right).then(|| left.cmp(&right))
}

/// Whether the first different letters or digits decide the order of strings of ASCII before them.
fn is_decided_by_first_difference(collation: CollationId) -> bool {
    let is_special = collation.is_bin2() || collation.is_bin() || collation.is_doubtful() || collation.0 == 0;
    !is_special && collation.letters_are_plain()
}

/// Whether strings of one collation are certainly in order by their first eight bytes, as [`compare_at_first_difference`] has it;
/// without a branch, for many of them.
#[derive(Clone, Copy)]
pub(crate) struct Beginnings {
    /// Bits of a character.
    width: u32,
    beyond_ascii: u64,
}

impl Beginnings {
    /// `None` if other rules decide in this collation.
    pub(crate) fn of(collation: CollationId, encoding: Encoding) -> Option<Self> {
        is_decided_by_first_difference(collation).then_some(match encoding {
            Encoding::Ansi => Self { width: 8, beyond_ascii: 0x8080_8080_8080_8080 },
            Encoding::Unicode => Self { width: 16, beyond_ascii: 0xFF80_FF80_FF80_FF80 },
        })
    }

    /// Whether strings of this many bytes end with a whole character.
    #[inline(always)]
    pub(crate) fn are_whole(self, bytes: usize) -> bool {
        bytes.is_multiple_of((self.width / 8) as usize)
    }

    /// The beginning of a string; of one that is too short or ends with half a character, one that is in no order.
    #[inline(always)]
    pub(crate) fn of_text(self, text: &[u8]) -> u64 {
        let is_whole = self.are_whole(text.len());
        text.first_chunk().filter(|_| is_whole).map_or(0, |first| u64::from_le_bytes(*first))
    }

    /// Whether the string of the first beginning is less. False also where more than the beginnings decides.
    #[inline(always)]
    pub(crate) fn is_less(self, left: u64, right: u64) -> bool {
        // The first character where they differ; of equal ones, the first.
        let at = (left ^ right).trailing_zeros() & (u64::BITS - self.width);
        let is_ascii_before = left & !(u64::MAX << at) & self.beyond_ascii == 0;
        let fold = |word: u64| {
            let unit = word >> at & (u64::MAX >> (u64::BITS - self.width));
            FOLDED.get(unit.min(0xFF) as usize).copied().unwrap_or_default()
        };
        let (left, right) = (fold(left), fold(right));
        is_ascii_before & (left != 0) & (left < right)
    }
}

/// By byte: [`fold`], 0 for what is no letter or digit.
#[expect(clippy::indexing_slicing, reason = "a constant, by each byte")]
const FOLDED: [u8; 256] = {
    let mut folded = [0; 256];
    let mut byte = 0;
    while byte < folded.len() {
        folded[byte] = match fold(byte as u8) {
            Some(folded) => folded,
            None => 0,
        };
        byte += 1;
    }
    folded
};

/// Position of the first difference between two byte strings, or of the shorter one's end; and the union of all bits
/// before it, bytes at even places in the even bytes of the number.
fn first_difference(a: &[u8], b: &[u8]) -> (usize, u64) {
    let (mut at, mut shared) = (0, 0);
    for (left, right) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        let (left, right) = (u64::from_le_bytes(*left), u64::from_le_bytes(*right));
        if left != right {
            let same_bits = (left ^ right).trailing_zeros() & !7;
            return (at + (same_bits / 8) as usize, shared | left & !(u64::MAX << same_bits));
        }
        shared |= left;
        at += 8;
    }
    for (left, right) in a.iter().zip(b).skip(at) {
        if left != right {
            break;
        }
        shared |= u64::from(*left) << (8 * (at % 2));
        at += 1;
    }
    (at, shared)
}

/// A digit, or an ASCII letter without its case, in order.
const fn fold(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' | b'a'..=b'z' => Some(byte),
        b'A'..=b'Z' => Some(byte + 32),
        _ => None,
    }
}

/// Whether two different strings are certainly equal: they differ only in the case of ASCII letters, and `collation`
/// ignores case.
pub fn is_equal_but_for_case(
    a: impl DoubleEndedIterator<Item = u16> + Clone,
    b: impl DoubleEndedIterator<Item = u16> + Clone,
    collation: CollationId,
) -> bool {
    let is_certain = a.clone().chain(b.clone()).all(|unit| equality_unit(unit, collation).is_some());
    let fold = |unit| equality_unit(unit, collation);
    is_certain && trim(a).map(fold).eq(trim(b).map(fold))
}

/// Whether a string that continues with `next` and `rest` sorts after one that ends there and is padded with blanks:
/// what follows must not be ignorable, nor change what is before it.
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

/// Without trailing blanks, which comparisons ignore.
fn trim(units: impl DoubleEndedIterator<Item = u16> + Clone) -> impl Iterator<Item = u16> {
    let blanks = units.clone().rev().take_while(|&unit| unit == 0x20).count();
    let length = units.clone().count() - blanks;
    units.take(length)
}

/// Code unit order, the shorter string padded with blanks. BIN (not BIN2) is only certain within ASCII.
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
            // It is unknown whether a character above U+FFFF counts as one unit or as its two halves.
            let is_half = |unit| (0xD800..0xE000).contains(&unit);
            let is_doubtful = is_half(left) && right >= 0xE000 || is_half(right) && left >= 0xE000;
            return (!is_doubtful).then(|| left.cmp(&right));
        }
    }
}

#[cfg(test)]
mod tests;
