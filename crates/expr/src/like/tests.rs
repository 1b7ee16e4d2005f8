use proptest::prelude::*;

use super::*;
use crate::compare::same_ascii;
use crate::steps::STEPS_PER_ROW;

const CI: CollationId = CollationId(0x3400_D008);
const CS: CollationId = CollationId(0x0000_C008);
const TURKISH: CollationId = CollationId(0x0000_D01A);
const BIN2: CollationId = CollationId(0x0808);

/// The result of the match and the number of steps. The result is `None` if it is uncertain.
fn counted(value: &[u8], pattern: &[u8], escape: Option<u8>, collation: CollationId) -> (Option<bool>, u64) {
    let text = |bytes| Chars { bytes, wide: false };
    let pattern = Pattern::new(text(pattern), escape.map(u16::from), collation);
    let mut steps = Steps::default();
    steps.allow(STEPS_PER_ROW);
    steps.begin();
    let matched = pattern.matches(text(value), &steps, &mut Vec::new());
    assert!(matches!(matched, Ok(_) | Err(UNCERTAIN)), "{matched:?}");
    (matched.ok(), STEPS_PER_ROW - steps.allowed())
}

fn like(value: &str, pattern: &str, escape: Option<char>) -> Option<bool> {
    counted(value.as_bytes(), pattern.as_bytes(), escape.map(|c| c as u8), CI).0
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
    // 0xE9 is the letter e with an accent, in code page 1252. It is uncertain whether it equals e.
    assert_eq!(counted(b"\xE9", b"e", None, CI).0, None);
}

#[test]
fn letters_that_differ_at_the_first_level_do_not_match() {
    let wide = |value: &str, pattern: &str, id: u32| {
        let bytes = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
        let (value, pattern) = (bytes(value), bytes(pattern));
        let text = |bytes| Chars { bytes, wide: true };
        let pattern = Pattern::new(text(&pattern), None, CollationId(id));
        let mut steps = Steps::default();
        steps.allow(STEPS_PER_ROW);
        steps.begin();
        pattern.matches(text(&value), &steps, &mut Vec::new()).ok()
    };
    assert_eq!(wide("M\u{e9}xico", "Mx%", 0xD008), Some(false));
    assert_eq!(wide("M\u{e9}xico", "M\u{c9}X%", 0xD008), Some(true));
    assert_eq!(wide("M\u{e9}xico", "Me%", 0xD008), None, "an accent");
    assert_eq!(wide("\u{41c}\u{43e}\u{441}\u{43a}\u{432}\u{430}", "%\u{43a}\u{432}\u{430}", 0xD015), Some(true));
    assert_eq!(wide("M\u{e9}xico", "Mx%", 0x4_D008), None, "a later generation");
    assert_eq!(wide("\u{e6}", "b", 0xD008), None, "two letters");
}

#[test]
fn keys_of_characters_are_equal_where_the_characters_are() {
    for collation in [CI, CS, TURKISH, BIN2, CollationId(0x1_0008), CollationId(0)] {
        let keys = CharKeys::of(collation);
        for (a, b) in (0..0x100).flat_map(|a| (0..0x100).map(move |b| (a, b))) {
            let equal = keys.key(a).zip(keys.key(b)).map(|(a, b)| a == b);
            assert_eq!(equal, same_ascii(a, b, collation), "{a:x} {b:x} {collation:?}");
        }
    }
}

#[test]
fn a_character_that_may_be_several_leaves_the_end_undecided() {
    // 0xE6 is the letter ae, which some collations treat as two letters. So the result must be uncertain.
    for pattern in [&b"%ae"[..], b"%abc", b"%e", b"%a%e", b"%_"] {
        assert_eq!(counted(b"\xE6", pattern, None, CI).0, None, "{pattern:?}");
        assert_eq!(counted(b"5\xE6", pattern, None, CI).0, None, "{pattern:?}");
    }
    assert_eq!(counted(b"99\xE6", b"99%", None, CI).0, Some(true));
}

#[test]
fn characters_alone_take_steps_in_proportion_to_the_text() {
    let text = b"a".repeat(8000);
    let most = 10 * STEPS_PER_COMPARISON * text.len() as u64;
    for length in [1, 2, 28, 1000, 3999] {
        let many = b"a".repeat(length);
        let pattern = |parts: &[&[u8]]| parts.concat();
        for pattern in [
            pattern(&[b"%", &many, b"b"]),
            pattern(&[b"%", &many, b"b%"]),
            pattern(&[b"%", &many, b"b", &many, b"%"]),
            pattern(&[b"%b", &many, b"%"]),
            pattern(&[b"%", &many, b"%", &many, b"b%"]),
            pattern(&[b"a%a%a%a%", &many, b"b%"]),
        ] {
            let (matched, steps) = counted(&text, &pattern, None, CI);
            assert_eq!(matched, Some(false));
            assert!(steps < most, "{steps} steps for {length}");
        }
    }
}

#[test]
fn what_cannot_be_linear_ends_with_the_steps() {
    let pattern = [b"%".to_vec(), b"_".repeat(2000), b"b%".to_vec()].concat();
    let text = Chars { bytes: &b"a".repeat(8000), wide: false };
    let steps = Steps::default();
    let pattern = Pattern::new(Chars { bytes: &pattern, wide: false }, None, CI);
    assert_eq!(pattern.matches(text, &steps, &mut Vec::new()), Err(crate::steps::TOO_EXPENSIVE));
}

/// A model of LIKE in as little code as possible. It covers only characters with certain comparisons, and does not
/// model the rule for trailing blanks.
fn means(value: &[u8], pattern: &[u8], escape: Option<u8>) -> Option<bool> {
    let Some((first, rest)) = pattern.split_first() else { return Some(value.is_empty()) };
    let same = |a: u8, b: u8| a.eq_ignore_ascii_case(&b);
    let next = |fits: bool, rest: &[u8]| match value.split_first() {
        Some((_, others)) if fits => means(others, rest, escape),
        // The value does not match here, but the result is `None` if the remaining pattern is invalid.
        _ => means(b"", rest, escape).map(|_| false),
    };
    let unit = value.first().copied();
    match first {
        escaped if Some(*escaped) == escape => {
            let (wanted, rest) = rest.split_first()?;
            next(unit.is_some_and(|unit| same(unit, *wanted)), rest)
        }
        b'%' => {
            (0..=value.len()).try_fold(false, |any, skipped| Some(any | means(value.get(skipped..)?, rest, escape)?))
        }
        b'_' => next(true, rest),
        b'[' => {
            let end = rest.iter().position(|byte| *byte == b']')?;
            let (set, rest) = (rest.get(..end)?, rest.get(end + 1..)?);
            let (negated, set) = match set.split_first() {
                Some((b'^', set)) => (true, set),
                _ => (false, set),
            };
            // Ranges mixed with other characters in a set are not modeled here.
            let has_other_ranges = set.contains(&b'-') && !matches!(set, [_, b'-', _]);
            if set.is_empty() || has_other_ranges || escape.is_some_and(|escape| set.contains(&escape)) {
                return None;
            }
            let is_in = |unit: u8| match set {
                [low, b'-', high] => (*low..=*high).contains(&unit),
                set => set.iter().any(|byte| same(*byte, unit)),
            };
            next(unit.is_some_and(|unit| is_in(unit) != negated), rest)
        }
        wanted => next(unit.is_some_and(|unit| same(unit, *wanted)), rest),
    }
}

/// The usual algorithm for LIKE, which backtracks only to the last `%`. Returns the result if it is certain. Its run
/// time is not limited.
fn walk(value: &[u8], pattern: Pattern<'_>) -> Option<bool> {
    let (mut at, mut from) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    loop {
        let mut fits = from == pattern.text.len();
        if fits && at == value.len() {
            return Some(true);
        } else if !fits {
            let (piece, next) = pattern.piece(from)?;
            if let Piece::Any = piece {
                (back, from) = (Some((at, next)), next);
                continue;
            }
            fits = match value.get(at) {
                Some(unit) => pattern.fits(piece, u16::from(*unit)).ok()?,
                None => false,
            };
            if fits {
                (at, from) = (at + 1, next);
            }
        } else {
            fits = false;
        }
        if !fits {
            let Some((start, next)) = back.filter(|&(start, _)| start < value.len()) else { return Some(false) };
            back = Some((start + 1, next));
            (at, from) = (start + 1, next);
        }
    }
}

fn pattern() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> =
        vec![b"%", b"%", b"_", b"a", b"a", b"b", b"B", b"1", b"[ab]", b"[^a]", b"[0-9]", b"!%", b"!!"];
    prop::collection::vec(proptest::sample::select(pieces), 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn certain_characters_match_as_the_meaning_says(value in "[aabB12%!]{0,14}", pattern in pattern(), escapes: bool) {
        let escape = escapes.then_some(b'!');
        let expected = means(value.as_bytes(), &pattern, escape);
        let (matched, _) = counted(value.as_bytes(), &pattern, escape, CI);
        prop_assert_eq!(matched, expected, "{:?}", String::from_utf8_lossy(&pattern));
    }

    #[test]
    fn broken_patterns_are_never_decided_wrongly(value in "[ab]{0,8}", pattern in "[ab%_!^\\[\\]-]{0,8}", escapes: bool) {
        let escape = escapes.then_some(b'!');
        let expected = means(value.as_bytes(), pattern.as_bytes(), escape);
        let (matched, _) = counted(value.as_bytes(), pattern.as_bytes(), escape, CI);
        if let (Some(matched), Some(expected)) = (matched, expected) {
            prop_assert_eq!(matched, expected, "{:?}", pattern);
        }
    }

    #[test]
    fn what_the_walk_is_certain_of_is_decided_so(
        value in prop::collection::vec(proptest::sample::select(b"aAbB1\xE6 ".to_vec()), 0..12),
        text in pattern(),
        collation in proptest::sample::select(vec![CI, CS, TURKISH, BIN2]),
    ) {
        let pattern = Pattern::new(Chars { bytes: &text, wide: false }, None, collation);
        let steps = Steps::default();
        let run = pattern.run(Chars { bytes: &value, wide: false }, &steps, &mut Vec::new());
        let walked = walk(&value, pattern);
        if walked.is_some() {
            prop_assert_eq!(run.ok(), walked, "{:?} {:?}", value, String::from_utf8_lossy(&text));
        }
        // No result may depend on the meaning of an uncertain character.
        if let (Ok(decided), false) = (run, collation == BIN2) {
            for other in [&b"ae"[..], b"a", b"b1", b"1", b"ab"] {
                let resolved: Vec<u8> = value.iter().flat_map(|unit| {
                    if *unit == 0xE6 { other.to_vec() } else { vec![*unit] }
                }).collect();
                if let Some(resolved) = walk(&resolved, pattern) {
                    prop_assert_eq!(resolved, decided, "{:?} {:?}", value, String::from_utf8_lossy(&text));
                }
            }
        }
    }
}
