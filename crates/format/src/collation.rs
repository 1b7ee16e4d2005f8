//! Comparing strings without the collation's tables: only what is certain (format.md 9).
//!
//! The order of letters and digits that the rule below decides held in 1.9 million adjacent keys of real indexes without
//! one exception; everything else is left undecided, because an undecided comparison costs a line under "not verified"
//! and a wrong one costs a false alarm.

use std::cmp::Ordering;

/// A collation id of the catalogue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CollationId(pub u32);

impl CollationId {
    /// Compares code units; bytes for char.
    pub fn is_bin2(self) -> bool {
        self.0 & 0x800 != 0
    }

    /// Compares the first character by code unit, the rest by byte.
    pub fn is_bin(self) -> bool {
        self.0 & 0x10000 != 0
    }

    /// Index of the locale.
    pub fn locale(self) -> u8 {
        self.0 as u8
    }

    /// 0 for collations without a number in their name, 1 for _90, 2 for _100, 3 for _140.
    fn generation(self) -> u32 {
        self.0 >> 17 & 7
    }

    /// A binary SQL sort order (ids 30, 40, 50) without the bit that says so: nothing is certain.
    fn is_doubtful(self) -> bool {
        matches!(self.0 >> 24, 30 | 40 | 50) && !self.is_bin() && !self.is_bin2()
    }

    /// Whether plain ASCII letters keep their English order in this locale and are never part of a contraction.
    /// Only locales of which this is known; in all others only what [`is_certain`] says.
    fn letters_are_plain(self) -> bool {
        // Arabic, Chinese_Taiwan, Greek, Latin1_General, French, Hebrew, Japanese, Korean, Cyrillic, Thai, Chinese_PRC.
        matches!(self.locale(), 0x01 | 0x03 | 0x07 | 0x08 | 0x0B | 0x0C | 0x10 | 0x11 | 0x15 | 0x19 | 0x24)
    }
}

/// Indexes of locales with rules of their own here.
const TURKISH: u8 = 0x1A;
const VIETNAMESE: u8 = 0x20;
/// Met in one database only, whose 6,500 neighbouring keys have all letters but z in English order.
const SOUTH_SLAVIC: u8 = 0x1C;

/// What is certain about one character of a string key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CharClass {
    /// A symbol that counts: below every digit and letter; among each other undecided.
    Punctuation,
    /// A digit.
    Digit(u8),
    /// An ASCII letter, case folded.
    Letter(u8),
}

/// Classifies a code unit; `None` when nothing is certain about its place. `-` and `'` are among these: Windows
/// collations ignore them until all else is equal.
pub fn classify(unit: u16) -> Option<CharClass> {
    let byte = u8::try_from(unit).ok()?;
    Some(match byte {
        b' ' | b'_' | b'@' | b'[' | b'#' | b'.' | b',' | b'/' | b'(' | b'&' => CharClass::Punctuation,
        b'0'..=b'9' => CharClass::Digit(byte),
        b'a'..=b'z' => CharClass::Letter(byte),
        b'A'..=b'Z' => CharClass::Letter(byte + 32),
        _ => return None,
    })
}

/// What a character counts as where strings are only equal or different: if all characters of two strings have such a
/// value, the strings are equal, trailing blanks apart, exactly if all values are. `None` when nothing is certain: outside
/// printable ASCII a character may be ignored, or stand for several.
pub fn equality_unit(unit: u16, collation: CollationId) -> Option<u16> {
    const CASE_INSENSITIVE: u32 = 0x1000;
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
    let is_upper = (0x41..=0x5A).contains(&unit) && collation.0 & CASE_INSENSITIVE != 0;
    Some(if is_upper { unit + 0x20 } else { unit })
}

/// Letters that the alphabet has not moved: in none of them, unless it is known, i and y (Turkish, Baltic), q, x (Azeri),
/// v and w (Swedish), z (Estonian).
fn stays_in_place(letter: u8, collation: CollationId) -> bool {
    match collation.locale() {
        TURKISH => letter != b'i',
        SOUTH_SLAVIC => letter != b'z',
        _ => letter.is_ascii_lowercase() && !matches!(letter, b'i' | b'q' | b'v'..=b'z'),
    }
}

/// Whether two ASCII characters may be one letter of the alphabet (format.md 9 lists them), case folded.
fn may_contract(first: u16, second: u16, collation: CollationId) -> bool {
    const PAIRS: [&[u8; 2]; 27] = [
        b"aa", b"ch", b"cs", b"dd", b"dh", b"dz", b"ff", b"gh", b"gj", b"gy", b"lj", b"ll", b"ly", b"ng", b"nh", b"nj",
        b"ny", b"ph", b"rh", b"rr", b"sh", b"sz", b"th", b"ty", b"xh", b"zh", b"zs",
    ];
    // tr also in languages whose collations came with SQL Server 2008.
    const PAIRS_OF_SOME: [&[u8; 2]; 4] = [b"gi", b"kh", b"qu", b"tr"];
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

/// Whether what two strings differ in is ordered as in English all the same: `before` is the last character they share,
/// then come the first that differ, and what follows these.
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
/// a char value.
pub fn compare(
    a: impl DoubleEndedIterator<Item = u16> + Clone,
    b: impl DoubleEndedIterator<Item = u16> + Clone,
    collation: CollationId,
) -> Option<Ordering> {
    if a.clone().eq(b.clone()) {
        return Some(Ordering::Equal);
    }
    // Id 0 stands for the database's default, which the caller has put in its place if it is known.
    if collation.is_doubtful() || collation.0 == 0 {
        return None;
    }
    if collation.is_bin2() || collation.is_bin() {
        return compare_binary(a, b, collation.is_bin2());
    }
    let (mut a, mut b) = (trim(a).peekable(), trim(b).peekable());
    let (mut before, mut identical) = (None, true);
    let plain = collation.letters_are_plain();
    loop {
        match (a.next(), b.next()) {
            // Equal only after folding: truly equal under some collations, not under others.
            (None, None) => return identical.then_some(Ordering::Equal),
            (Some(longer), None) => return is_longer(before, longer, a.peek(), collation).then_some(Ordering::Greater),
            (None, Some(longer)) => return is_longer(before, longer, b.peek(), collation).then_some(Ordering::Less),
            (Some(left), Some(right)) => {
                if left == right && left < 0x80 {
                    before = Some(left);
                    continue;
                }
                let (left_class, right_class) = (classify(left)?, classify(right)?);
                if left_class == right_class && left_class != CharClass::Punctuation {
                    // Cases of one letter; in Turkish i and I are two.
                    if !plain && left_class == CharClass::Letter(b'i') {
                        return None;
                    }
                    before = Some(left);
                    identical &= left == right;
                    continue;
                }
                let both = [left_class, right_class];
                let is_certain = match both {
                    [CharClass::Punctuation, CharClass::Punctuation] => false,
                    [CharClass::Digit(_), CharClass::Digit(_)] => true,
                    _ => {
                        let right = (right, b.peek().copied());
                        plain || is_certain(before, (left, a.peek().copied()), right, collation)
                    }
                };
                return is_certain.then(|| left_class.cmp(&right_class));
            }
        }
    }
}

/// Whether two strings that are not the same are surely equal all the same: they differ in the case of ASCII letters only,
/// and `collation` ignores that.
pub fn is_equal_but_for_case(
    a: impl DoubleEndedIterator<Item = u16> + Clone,
    b: impl DoubleEndedIterator<Item = u16> + Clone,
    collation: CollationId,
) -> bool {
    let is_certain = a.clone().chain(b.clone()).all(|unit| equality_unit(unit, collation).is_some());
    let fold = |unit| equality_unit(unit, collation);
    is_certain && trim(a).map(fold).eq(trim(b).map(fold))
}

/// Whether a string that goes on with `next` comes behind one that ends there: `next` must not be ignorable, nor change
/// what is before it.
fn is_longer(before: Option<u16>, next: u16, after: Option<&u16>, collation: CollationId) -> bool {
    let joins = || {
        before.is_some_and(|before| may_contract(before, next, collation))
            || after.is_some_and(|after| may_contract(next, *after, collation))
    };
    classify(next).is_some() && (collation.letters_are_plain() || !joins())
}

/// Without trailing blanks, which no comparison counts.
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
            return Some(left.cmp(&right));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Ordering::{Equal, Greater, Less};

    const LATIN1: CollationId = CollationId(0x3400_D008);
    const TURKISH: CollationId = CollationId(0x0000_D01A);

    fn order(a: &str, b: &str, collation: CollationId) -> Option<Ordering> {
        let (a, b): (Vec<u16>, Vec<u16>) = (a.encode_utf16().collect(), b.encode_utf16().collect());
        let forward = compare(a.iter().copied(), b.iter().copied(), collation);
        let backward = compare(b.iter().copied(), a.iter().copied(), collation);
        assert_eq!(forward, backward.map(Ordering::reverse), "{a:?} {b:?}");
        forward
    }

    #[test]
    fn digits_come_before_letters_and_blanks_before_both() {
        assert_eq!(order("abc1", "abcd", LATIN1), Some(Less));
        assert_eq!(order("abc", "ABD", LATIN1), Some(Less));
        assert_eq!(order("ab_", "ab0", LATIN1), Some(Less));
        assert_eq!(order("abc", "abc d", LATIN1), Some(Less));
        assert_eq!(order("abc  ", "abc", LATIN1), Some(Equal));
    }

    #[test]
    fn ignorable_and_unknown_characters_decide_nothing() {
        // "A-C71970F" < "AMD15433F" < "A-R89858F" is the true order of a real index.
        assert_eq!(order("A-C71970F", "AMD15433F", LATIN1), None);
        assert_eq!(order("caf\u{e9}", "cafz", LATIN1), None);
        assert_eq!(order("abc", "abc'", LATIN1), None);
        assert_eq!(order("a-", "a_", LATIN1), None);
        assert_eq!(order("a_", "a@", LATIN1), None);
        assert_eq!(order("abc", "ABC", LATIN1), None);
    }

    #[test]
    fn letters_stay_undecided_where_a_locale_moves_them() {
        assert_eq!(order("ha", "ia", TURKISH), None);
        assert_eq!(order("i1", "i2", TURKISH), Some(Less));
        assert_eq!(order("i1", "ia", TURKISH), Some(Less));
        assert_eq!(order("c", "ch", CollationId(0x0A)), None);
        assert_eq!(order("I2", "i1", TURKISH), None);
    }

    #[test]
    fn letters_that_no_alphabet_moves_or_joins_decide_in_every_locale() {
        let unknown = CollationId(0xD01C);
        assert_eq!(order("AccessFailedCount", "ConcurrencyStamp", unknown), Some(Less));
        assert_eq!(order("Email", "EmailConfirmed", unknown), Some(Less));
        assert_eq!(order("COLUMN_PRIVILEGES", "COLUMNS", unknown), Some(Less));
        // lj comes behind lz in Croatian, ch behind h in Czech, aa behind z in Danish, z before t in Estonian.
        assert_eq!(order("polja", "polka", unknown), None);
        assert_eq!(order("chata", "drat", unknown), None);
        assert_eq!(order("aarhus", "odense", unknown), None);
        assert_eq!(order("zagreb", "tallinn", unknown), None);
        assert_eq!(order("c", "ch", unknown), None);
    }

    #[test]
    fn case_is_ignored_only_where_the_collation_surely_does() {
        let equal = |a: &str, b: &str, id| {
            is_equal_but_for_case(
                a.encode_utf16().collect::<Vec<_>>().into_iter(),
                b.encode_utf16().collect::<Vec<_>>().into_iter(),
                CollationId(id),
            )
        };
        assert!(equal("@ACCYear", "@AccYear ", 0x3400_D008));
        assert!(!equal("@ACCYear", "@AccYear", 0xC008), "case-sensitive");
        assert!(!equal("@ACCYear", "@AccYear", 0xD01A), "Turkish");
        assert!(!equal("caf\u{e9}", "CAF\u{c9}", 0xD008), "beyond ASCII");
        assert!(!equal("ab", "ac", 0xD008));
    }

    #[test]
    fn what_both_strings_have_in_one_place_decides_nothing() {
        assert_eq!(order("724-08-9931", "724-80-9391", LATIN1), Some(Less));
        assert_eq!(order("PK_dbo.Item", "PK_dbo.Items", LATIN1), Some(Less));
        assert_eq!(order("HL Frame - Black, 38", "HL Frame - Black, 42", LATIN1), Some(Less));
    }

    #[test]
    fn equality_is_certain_for_printable_ascii_where_letters_are_plain() {
        let unit = |c: char, collation| equality_unit(c as u16, collation);
        assert_eq!(unit('A', LATIN1), unit('a', LATIN1));
        assert_ne!(unit('A', CollationId(0x0000_C008)), unit('a', CollationId(0x0000_C008)), "case-sensitive");
        assert_ne!(unit('-', LATIN1), unit('_', LATIN1));
        assert_eq!(unit('\u{e9}', LATIN1), None);
        assert_eq!(unit('\0', LATIN1), None, "ignored");
        assert_eq!(unit('a', TURKISH), None);
        assert_eq!(unit('7', TURKISH), Some(0x37));
        assert_eq!(unit('a', CollationId(0)), None);
        assert_eq!(unit('\u{e9}', CollationId(0x0808)), Some(0xE9));
    }

    #[test]
    fn binary_collations_compare_code_units_padded_with_blanks() {
        let bin2 = CollationId(0x0808);
        assert_eq!(order("a", "a\t", bin2), Some(Greater));
        assert_eq!(order("Z", "a", bin2), Some(Less));
        assert_eq!(order("\u{e9}", "\u{ea}", bin2), Some(Less));
        assert_eq!(order("\u{e9}", "\u{ea}", CollationId(0x1_0008)), None);
    }
}
