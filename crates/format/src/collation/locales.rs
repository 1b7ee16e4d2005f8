//! The rules of the locales for letters.

use super::CollationId;
use super::ascii::{CharClass, classify};

/// The index of the locale Latin1_General. This constant and the constants below it are the indexes of the locales for
/// which this crate has special rules.
pub(super) const LATIN1_GENERAL: u8 = 0x08;
pub(super) const FRENCH: u8 = 0x0B;
pub(super) const TURKISH: u8 = 0x1A;
pub(super) const VIETNAMESE: u8 = 0x20;
/// The index of the locale Icelandic. In Icelandic_100, an o with a mark is a separate letter if it is written as two
/// characters.
const ICELANDIC: u8 = 0x0E;

impl CollationId {
    /// Whether ASCII letters keep their English order in this locale and no two of them count as one letter. True only
    /// if this is known for the locale: the lists of characters that locales move or join
    /// (docs/format/collations.md#locales) have no ASCII letter for it.
    pub fn letters_are_plain(self) -> bool {
        // The locales whose ASCII letters are plain: Arabic, Chinese_Taiwan_Stroke, Greek, Latin1_General, French,
        // Hebrew, Icelandic, Japanese, Korean, Polish, Romanian, Cyrillic, Thai, Ukrainian, Slovenian, Chinese_PRC,
        // Modern_Spanish, German_PhoneBook, Chinese_PRC_Stroke and Chinese_Taiwan_Bopomofo.
        match self.locale() {
            ICELANDIC => self.generation() <= 1,
            1 | 3 | 7 | 8 | 11 | 12 | 16 | 17 | 19..=21 | 25 | 27 | 28 | 36 | 40 | 41 | 46 | 47 => true,
            _ => false,
        }
    }

    /// Whether the backslash has a different place than in other locales. Japanese and Korean show it as a currency
    /// sign.
    pub(super) fn moves_backslash(self) -> bool {
        matches!(self.family(), 16 | 17 | 43 | 48 | 64 | 72 | 73)
    }
}

/// Whether the alphabet keeps a letter in its English place. For an unknown locale, these letters may move: i and y
/// (Turkish, Baltic), q, x (Azeri), v and w (Swedish), z (Estonian).
pub(super) fn stays_in_place(letter: u8, collation: CollationId) -> bool {
    match collation.locale() {
        // Turkish puts the dotless i, with capital I, between h and i. Both kinds of i keep their place relative to
        // other letters.
        TURKISH => letter.is_ascii_lowercase(),
        _ => letter.is_ascii_lowercase() && !matches!(letter, b'i' | b'q' | b'v'..=b'z'),
    }
}

/// Whether two ASCII characters, in upper or lower case, may be one letter of the alphabet
/// (docs/format/collations.md#comparing-without-weights lists the languages).
pub(super) fn may_contract(first: u16, second: u16, collation: CollationId) -> bool {
    const PAIRS: [&[u8; 2]; 27] = [
        b"aa", b"ch", b"cs", b"dd", b"dh", b"dz", b"ff", b"gh", b"gj", b"gy", b"lj", b"ll", b"ly", b"ng", b"nh", b"nj",
        b"ny", b"ph", b"rh", b"rr", b"sh", b"sz", b"th", b"ty", b"xh", b"zh", b"zs",
    ];
    // In Vietnamese, all of these pairs except ie are letters. SQL Server 2008 added collations of further languages in
    // which tr is one letter, and of Maltese, in which ie is one letter.
    const PAIRS_OF_SOME: [&[u8; 2]; 5] = [b"gi", b"ie", b"kh", b"qu", b"tr"];
    let fold = |unit: u16| u8::try_from(unit).map_or(0, |byte| byte.to_ascii_lowercase());
    let (first, second) = (fold(first), fold(second));
    let is_one_of = |pairs: &[&[u8; 2]]| pairs.iter().any(|pair| pair[0] == first && pair[1] == second);
    if collation.locale() == TURKISH {
        return false;
    }
    let has_more = collation.locale() == VIETNAMESE || collation.generation() > 0;
    // The apostrophe is for the Breton letter c'h.
    is_one_of(&PAIRS) || has_more && is_one_of(&PAIRS_OF_SOME) || first == b'\'' || second == b'\''
}

/// Whether the first difference of two strings is ordered as in English. `before` is the last shared character; each
/// pair is the first different character of one string and the character after it.
pub(super) fn is_certain(
    before: Option<u16>,
    (a, after_a): (u16, Option<u16>),
    (b, after_b): (u16, Option<u16>),
    collation: CollationId,
) -> bool {
    is_in_place(before, a, after_a, collation) && is_in_place(before, b, after_b, collation)
}

/// Whether an ASCII character is in its English place and is not part of a letter of several characters.
pub(super) fn is_in_place(before: Option<u16>, unit: u16, next: Option<u16>, collation: CollationId) -> bool {
    let stays = match classify(unit) {
        Some(CharClass::Letter(letter)) => stays_in_place(letter, collation),
        class => class.is_some(),
    };
    stays
        && !before.is_some_and(|before| may_contract(before, unit, collation))
        && !next.is_some_and(|next| may_contract(unit, next, collation))
}
