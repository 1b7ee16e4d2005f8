//! Tests of comparisons that weights decide, and of comparisons that they leave undecided.

use super::*;

const GREEK: CollationId = CollationId(0xD007);
const FRENCH: CollationId = CollationId(0xD00B);
const VIETNAMESE: CollationId = CollationId(0xD020);
const LATIN1_100: CollationId = CollationId(0x0004_D008);

#[test]
fn symbols_are_in_the_order_of_all_windows_collations() {
    let symbols = " !\"#$%&()*,./:;?@[\\]^_`{|}~+<=>0aB";
    let all: Vec<String> = symbols.chars().map(|symbol| format!("x{symbol}x")).collect();
    for collation in [WINDOWS, LATIN1, LATIN1_100, TURKISH, VIETNAMESE, CollationId(0xD016)] {
        for pair in all.windows(2) {
            let found = order(&pair[0], &pair[1], collation);
            assert_eq!(found, Some(Less), "{pair:?} {:#x}", collation.0);
        }
    }
}

#[test]
fn letters_of_other_scripts_are_ordered_in_generation_80() {
    assert_eq!(comparison("\u{3b1}\u{3b2}", "\u{3b1}\u{3b3}", GREEK), Comparison::Decided(Less));
    assert_eq!(comparison("\u{41c}\u{43e}", "\u{41f}\u{430}", WINDOWS), Comparison::Decided(Less));
    assert_eq!(comparison("z", "\u{430}", WINDOWS), Comparison::Decided(Less), "Latin before Cyrillic");
    assert_eq!(comparison("\u{e6}b", "af", WINDOWS), Comparison::Decided(Less), "as ae");
    assert_eq!(comparison("stra\u{df}e", "strasse", WINDOWS), Comparison::SameLetters);
    assert_eq!(comparison("a\u{ad}b", "ac", WINDOWS), Comparison::Decided(Less), "a hyphen that is not seen");
    assert_eq!(comparison("co\u{2010}op", "coop", WINDOWS), Comparison::SameLetters);
    assert_eq!(comparison("e\u{301}a", "\u{e9}b", WINDOWS), Comparison::Decided(Less), "a mark");
    assert_eq!(comparison("\u{4e00}", "\u{4e8c}", WINDOWS), Comparison::Undecided);
    assert_eq!(comparison("\u{1F600}a", "\u{1F600}b", WINDOWS), Comparison::Undecided);
}

#[test]
fn later_generations_decide_what_both_orders_agree_on() {
    assert_eq!(comparison("\u{e9}a", "\u{e9}b", LATIN1_100), Comparison::Decided(Less));
    assert_eq!(comparison("\u{e9}", "f", LATIN1_100), Comparison::Decided(Less));
    assert_eq!(comparison("\u{f7}", "\u{a2}", WINDOWS), Comparison::Decided(Less));
    assert_eq!(comparison("\u{f7}", "\u{a2}", LATIN1_100), Comparison::Undecided);
    assert_eq!(comparison("resume", "r\u{e9}sum\u{e9}", LATIN1_100), Comparison::SameLetters);
    assert_eq!(comparison("\u{e9}a", "\u{e9}b", CollationId(0x0002_D008)), Comparison::Decided(Less), "90 as 100");
}

#[test]
fn accents_decide_where_they_count_from_the_start() {
    assert_eq!(comparison("cot\u{e9}", "c\u{f4}te", WINDOWS), Comparison::ByAccents(Less));
    assert_eq!(comparison("cot\u{e9}", "c\u{f4}te", FRENCH), Comparison::SameLetters);
    assert_eq!(comparison("cot\u{e9}", "c\u{f4}te", CollationId(0xF008)), Comparison::SameLetters, "they are ignored");
    assert_eq!(comparison("COT\u{c9}", "cot\u{e9}", CollationId(0xC008)), Comparison::SameLetters, "case counts");
}

#[test]
fn what_a_locale_moves_or_joins_is_undecided() {
    let spanish = CollationId(0xD028);
    assert_eq!(comparison("\u{f1}", "o", spanish), Comparison::Undecided);
    assert_eq!(comparison("ca\u{f1}a", "ca\u{f1}b", spanish), Comparison::Decided(Less), "the same in both");
    assert_eq!(comparison("\u{f1}", "o", WINDOWS), Comparison::Decided(Less));
    assert_eq!(comparison("n\u{303}a", "nb", spanish), Comparison::Undecided, "as two characters");
    let czech = CollationId(0xD004);
    assert_eq!(comparison("\u{e1}b", "\u{e1}d", czech), Comparison::Decided(Less));
    assert_eq!(comparison("\u{e1}ch", "\u{e1}d", czech), Comparison::Undecided);
    assert_eq!(comparison("\u{10d}", "d", czech), Comparison::Undecided);
    assert_eq!(comparison("\u{e9}a", "\u{e9}b", CollationId(0xD006)), Comparison::Undecided, "no list for Yakut");
    assert_eq!(comparison("\u{ff21}", "\u{ff22}", CollationId(0xD024)), Comparison::Undecided, "Chinese");
}

#[test]
fn turkish_has_letters_between_those_of_ascii() {
    let ascending =
        ["c\u{131}z", "\u{e7}a", "da", "ga", "\u{11f}a", "ha", "\u{131}a", "ia", "ja", "oz", "\u{f6}a", "pa"];
    for pair in ascending.windows(2) {
        assert_eq!(comparison(pair[0], pair[1], TURKISH), Comparison::Decided(Less), "{pair:?}");
    }
    assert_eq!(comparison("IRMAK", "\u{131}rmak", TURKISH), Comparison::Equal);
    assert_eq!(comparison("\u{15f}i\u{15f}e", "\u{15e}\u{130}\u{15e}E", TURKISH), Comparison::Equal);
    assert_eq!(comparison("kar", "k\u{e2}r", TURKISH), Comparison::ByAccents(Less));
}

#[test]
fn vietnamese_letters_of_two_follow_their_first() {
    let ascending = ["cz", "cha", "da", "gz", "gia", "kz", "kha", "la", "nz", "nga", "nha", "pz", "pha", "qa", "qua"];
    for pair in ascending.windows(2) {
        assert_eq!(comparison(pair[0], pair[1], VIETNAMESE), Comparison::Decided(Less), "{pair:?}");
    }
    assert_eq!(comparison("cHa", "cz", VIETNAMESE), Comparison::Undecided, "odd cases");
    assert_eq!(comparison("cHa", "cha", VIETNAMESE), Comparison::Undecided, "one letter or two");
    assert_eq!(comparison("c-ha", "cz", VIETNAMESE), Comparison::Undecided, "a hyphen between");
    assert_eq!(comparison("SanHang", "SanPham", VIETNAMESE), Comparison::Undecided, "nh or n and h");
    assert_eq!(comparison("chiTietKhach", "chiTietMau", VIETNAMESE), Comparison::Decided(Less));
    assert_eq!(comparison("Tr\u{1ea7}n", "Nguy\u{1ec5}n", VIETNAMESE), Comparison::Decided(Greater));
    assert_eq!(comparison("Ng\u{1ecd}c", "Nu", VIETNAMESE), Comparison::Undecided, "ng or n and g");
    assert_eq!(comparison("Nguy\u{1ec5}n", "Nguyen", VIETNAMESE), Comparison::Undecided);
    assert_eq!(comparison("ST d\u{e2}u", "ST \u{111}\u{1eb7}c", VIETNAMESE), Comparison::Undecided);
    assert_eq!(comparison("L\u{ea} A", "L\u{ca} B", VIETNAMESE), Comparison::Decided(Less));
    assert_eq!(comparison("L\u{ea}", "l\u{ca}", VIETNAMESE), Comparison::Equal);
    assert_eq!(comparison("\u{1ecd}", "p", VIETNAMESE), Comparison::Decided(Less));
    assert_eq!(comparison("L\u{ea}", "Lf", CollationId(0x0004_D020)), Comparison::Undecided, "a later generation");
}

#[test]
fn char_is_ordered_by_its_code_page() {
    let compared = |a: &[u8], b: &[u8], id| compare(a, b, CollationId(id), Encoding::Ansi);
    assert_eq!(compared(b"\xCC\xEE", b"\xCF\xE0", 0xD015), Comparison::Decided(Less), "Cyrillic");
    assert_eq!(compared(b"\x81", b"a", 0xD008), Comparison::Undecided, "no character");
    assert_eq!(compared(b"\x93\xFA", b"\x96\x7B", 0xD010), Comparison::Undecided, "two bytes");
    assert_eq!(compared(b"\xE9a", b"\xE9b", 0x0004_D188), Comparison::Undecided, "UTF-8");
    assert_eq!(compared(b"\xE9a", b"\xE9b", 0x3600_F008), Comparison::Undecided, "another sort order");
}

#[test]
fn sort_order_52_has_weights_of_its_own() {
    let compared = |a: &[u8], b: &[u8]| compare(a, b, LATIN1, Encoding::Ansi);
    assert_eq!(compared(b"a+b", b"a-b"), Comparison::Decided(Less));
    assert_eq!(compared(b"\x8A1", b"0"), Comparison::Decided(Less), "a letter below the digits");
    assert_eq!(compared(b"a\xC0a 066", b"aab 001"), Comparison::Decided(Less), "accents come last");
    assert_eq!(compared(b"\xE6", b"b"), Comparison::Decided(Less));
    assert_eq!(compared(b"caf\xE9", b"cafe"), Comparison::SameLetters);
    assert_eq!(compared(b"caf\x81", b"cafe"), Comparison::Undecided);
    assert_eq!(compared(b"ab\t", b"ab"), Comparison::Decided(Less), "padded with blanks");
    assert_eq!(compared(b"AB", b"ab "), Comparison::Equal);
}

#[test]
fn images_end_where_more_than_a_character_decides() {
    let image = |text: &str, id| {
        let units: Vec<u16> = text.encode_utf16().collect();
        let neighbour = |at: Option<usize>| at.and_then(|at| units.get(at)).copied();
        let byte = |at: usize| {
            let (before, next) = (neighbour(at.checked_sub(1)), neighbour(Some(at + 1)));
            image_of(before, units[at], next, CollationId(id), Encoding::Unicode)
        };
        String::from_utf8((0..units.len()).map_while(byte).collect()).unwrap()
    };
    assert_eq!(image("Abc1-d", 0xD008), "abc1");
    assert_eq!(image("abchd", 0xD004), "ab", "ch is a letter of Czech");
    assert_eq!(image("abId", 0xD01A), "ab", "dotless or not");
    assert_eq!(image("ab1", 0x3300_C008), "ab1", "the rules of Windows");
    assert_eq!(image("ab1", 0x0808), "");
}
