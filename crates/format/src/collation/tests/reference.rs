//! Tests every decided comparison against a reference. The reference contains only orders of characters on which two
//! recordings of such orders agree. The test reads the reference with its own code, and not with the code under test.
//!
//! `MDFSCK_ROUNDS` sets the number of pairs of strings to test.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// The weights of a character in one recorded order.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Says {
    /// The first-level and the second-level weight.
    Weight(usize, u32),
    /// The character counts last or never.
    Nothing,
}

type Order = HashMap<u16, Says>;

fn reference() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("shared/reference"));
    let found = folder.into_iter().find(|folder| folder.join("order80.txt").is_file());
    if found.is_none() {
        println!("skipped: no shared/reference/order80.txt beside the clone");
    }
    found
}

fn read(path: &Path) -> Order {
    let mut order = Order::new();
    let text = fs::read_to_string(path).unwrap();
    let hex = |word: &str| u16::from_str_radix(word, 16).unwrap();
    for (line, text) in text.lines().enumerate() {
        if let Some(characters) = text.strip_prefix("# special: ").or_else(|| text.strip_prefix("# ign: ")) {
            order.extend(characters.split(' ').map(|word| (hex(word), Says::Nothing)));
        } else if !text.starts_with('#') {
            for word in text.split('\t').next().unwrap().split(' ') {
                let (unit, accent) = word.split_once(':').unwrap();
                order.insert(hex(unit), Says::Weight(line, accent.parse().unwrap()));
            }
        }
    }
    order
}

/// The first-level and the second-level weights of a string without trailing blanks; `None` if the order lacks a
/// character.
fn key(text: &[u16], order: &Order) -> Option<(Vec<usize>, Vec<u32>)> {
    let end = text.iter().rposition(|unit| *unit != 0x20).map_or(0, |last| last + 1);
    let mut key = (Vec::new(), Vec::new());
    for unit in &text[..end] {
        if let Says::Weight(first, second) = order.get(unit)? {
            key.0.push(*first);
            key.1.push(*second);
        }
    }
    Some(key)
}

/// The first-level order of two strings; the shorter one is padded with blanks.
fn first_level(a: &[usize], b: &[usize], blank: usize) -> Ordering {
    let padded = |key: &[usize], at: usize| key.get(at).copied().unwrap_or(blank);
    let differs = (0..a.len().max(b.len())).find(|at| padded(a, *at) != padded(b, *at));
    differs.map_or(Equal, |at| padded(a, at).cmp(&padded(b, at)))
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn one_of(&mut self, units: &[u16]) -> u16 {
        units[self.below(units.len())]
    }
}

#[test]
#[ignore = "full tier: reads the reference"]
fn the_shipped_order_is_that_of_the_reference() {
    let Some(folder) = reference() else { return };
    let orders = ["order80.txt", "order100.txt"].map(|name| read(&folder.join(name)));
    let [older, later] = &orders;
    let mut units: Vec<(u16, Says)> = older.iter().map(|(unit, says)| (*unit, *says)).collect();
    units.sort_unstable_by_key(|(unit, says)| match says {
        Says::Weight(first, second) => (*first, *second, *unit),
        Says::Nothing => (usize::MAX, 0, *unit),
    });
    let latin_80 = |a: u16, b: u16| compare_as(&[a], &[b], WINDOWS, Encoding::Unicode);
    let latin_100 = |a: u16, b: u16| compare_as(&[a], &[b], CollationId(0x0004_D008), Encoding::Unicode);
    let mut decided = [0; 2];
    for (at, (unit, says)) in units.iter().enumerate() {
        for (other, other_says) in units.iter().skip(at + 1).step_by(1 + at % 7).take(40) {
            let (Says::Weight(a, accent), Says::Weight(b, other_accent)) = (says, other_says) else { continue };
            let found = latin_80(*unit, *other);
            match (a.cmp(b), accent.cmp(other_accent)) {
                (Less, _) if *unit != 0x20 => assert_eq!(found, Comparison::Decided(Less), "{unit:x} {other:x}"),
                (Equal, Less) => assert_eq!(found, Comparison::ByAccents(Less), "{unit:x} {other:x}"),
                (Equal, _) => {
                    assert!(matches!(found, Comparison::SameLetters | Comparison::Equal), "{unit:x} {other:x}")
                }
                _ => {}
            }
            decided[0] += 1;
            if let (Some(Says::Weight(a_later, _)), Some(Says::Weight(b_later, _))) =
                (later.get(unit), later.get(other))
            {
                let agree = a.cmp(b) == a_later.cmp(b_later);
                let expected = if agree && a != b { Comparison::Decided(a.cmp(b)) } else { Comparison::Undecided };
                if *unit != 0x20 && a != b {
                    assert_eq!(latin_100(*unit, *other), expected, "{unit:x} {other:x}");
                }
                decided[1] += 1;
            }
        }
    }
    println!("{} characters; {decided:?} pairs of generations 80 and 100", units.len());
}

/// The families of the reference, and some families that the reference lacks.
const FAMILIES: [u8; 44] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
    36, 38, 40, 41, 42, 46, 47, 48, 56, 65, 71, 76, 99,
];

/// Replaces each Turkish letter with a pair that sorts in the same place: an ASCII letter and the distance from it.
fn as_turkish(text: &[u16]) -> Option<Vec<(usize, u8)>> {
    text.iter()
        .map(|unit| {
            let (base, step) = match char::from_u32((*unit).into())? {
                'ç' | 'Ç' => ('c', 1),
                'ğ' | 'Ğ' => ('g', 1),
                'ı' | 'I' => ('h', 1),
                'i' | 'İ' => ('i', 0),
                'ö' | 'Ö' => ('o', 1),
                'ş' | 'Ş' => ('s', 1),
                'ü' | 'Ü' => ('u', 1),
                letter @ ('a'..='z' | 'A'..='Z') => (letter.to_ascii_lowercase(), 0),
                _ => return None,
            };
            Some((base as usize, step))
        })
        .collect()
}

#[test]
#[ignore = "full tier: reads the reference"]
fn no_decided_comparison_is_against_the_reference() {
    let Some(folder) = reference() else { return };
    let rounds = std::env::var("MDFSCK_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(300_000);
    let orders = ["order80.txt", "order100.txt"].map(|name| read(&folder.join(name)));
    let blanks = orders.each_ref().map(|order| match order[&0x20] {
        Says::Weight(first, _) => first,
        Says::Nothing => panic!("a blank counts"),
    });
    let mut all: Vec<u16> = orders[0].keys().copied().collect();
    all.sort_unstable();
    let pools: [Vec<u16>; 5] = [
        (0x20..0x7F).collect(),
        "acdghiIlnstuzACHNT".encode_utf16().collect(),
        (0xA0..0x250).collect(),
        (0x370..0x460).chain(0x1EA0..0x1EFA).collect(),
        all,
    ];
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut decided = [0u64; 4];
    for round in 0..rounds {
        let id = u32::from(FAMILIES[random.below(FAMILIES.len())]) | [0xD000, 0xC000, 0x4_D000][random.below(3)];
        let collation = CollationId(id);
        let (first, second) = (random.below(5), random.below(5));
        let word = |from: usize, random: &mut Random| -> Vec<u16> {
            (0..random.below(5)).map(|_| random.one_of(&pools[from])).collect()
        };
        let shared = word(first, &mut random);
        let [a, b] = [(); 2].map(|()| [shared.clone(), word(second, &mut random), word(first, &mut random)].concat());
        let found = compare_as(&a, &b, collation, Encoding::Unicode);
        let (name, place) = match found {
            Comparison::Decided(order) => (order, 0),
            Comparison::ByAccents(order) => (order, 1),
            Comparison::Equal => (Equal, 2),
            Comparison::SameLetters | Comparison::Undecided => {
                decided[3] += 1;
                continue;
            }
        };
        decided[place] += 1;
        let told =
            || format!("round {round}: {:?} {:?} {id:#x}", String::from_utf16_lossy(&a), String::from_utf16_lossy(&b));
        let has_two_cases = collation.family() == 26;
        if has_two_cases && place == 0 {
            if let (Some(a), Some(b)) = (as_turkish(&a), as_turkish(&b)) {
                assert_eq!(a.cmp(&b), name, "{}", told());
            }
            continue;
        }
        // Vietnamese letters that consist of two ASCII letters have their own tests.
        if collation.family() == 32 && (a.is_ascii_text() && b.is_ascii_text()) {
            continue;
        }
        let is_oldest = collation.generation() == 0;
        for ((order, blank), is_used) in orders.iter().zip(blanks).zip([true, !is_oldest]) {
            let (Some(left), Some(right)) = (key(&a, order), key(&b, order)) else { continue };
            if !is_used {
                continue;
            }
            let by_letters = first_level(&left.0, &right.0, blank);
            match place {
                0 => assert_eq!(by_letters, name, "{}", told()),
                1 => assert_eq!((by_letters, left.1.cmp(&right.1)), (Equal, name), "{}", told()),
                _ => assert_eq!((by_letters, left.1 == right.1), (Equal, true), "{}", told()),
            }
        }
    }
    println!("of {rounds} pairs: first level, accents, equal, undecided: {decided:?}");
    assert!(decided[0] > rounds / 4, "{decided:?}");
}

trait AsciiText {
    fn is_ascii_text(&self) -> bool;
}

impl AsciiText for [u16] {
    fn is_ascii_text(&self) -> bool {
        self.iter().all(|unit| *unit < 0x80)
    }
}
