//! The order of characters under Windows collations. The recorded orders are in the folder `weights`. They are parsed
//! on first use.

use std::sync::LazyLock;

/// How a comparison treats a character.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Kind {
    /// It is unknown how the character counts.
    #[default]
    Unknown,
    /// The character counts by its first-level rank.
    Ranked,
    /// The character counts only if everything else is equal.
    Last,
    /// The character never counts.
    Ignored,
    /// The character is a mark that changes the accent of the character before it.
    Mark,
    /// The character counts as several letters.
    Expanded,
}

/// The weights of a character.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Weight {
    /// The first-level rank in generation 80, from 1.
    pub(super) older: u16,
    /// The first-level rank in generation 100, from 1; 0 if it is unknown.
    pub(super) later: u16,
    /// The second-level weight in generation 80.
    pub(super) accent: u8,
    pub(super) kind: Kind,
    /// Whether `kind` is the same in generations 80 and 100.
    pub(super) is_lasting: bool,
}

/// The weights of all characters.
pub(super) struct Weights {
    /// For each high byte of a code unit, the index in `pages` of the 256 weights with this high byte; 0 if there are
    /// none.
    index: [u8; 256],
    pages: Vec<[Weight; 256]>,
    /// The letters of each expanded character, ordered by its code unit.
    expansions: Vec<(u16, Vec<u16>)>,
}

/// The second-level weight of a character without an accent.
const NO_ACCENT: u8 = 2;

/// The recorded orders, written by `orders.py`.
const RECORDS: &str = include_str!("weights/orders.txt");

static WEIGHTS: LazyLock<Weights> = LazyLock::new(|| Weights::read(RECORDS));

impl Weights {
    /// The weights, which all comparisons share.
    pub(super) fn get() -> &'static Self {
        &WEIGHTS
    }

    /// The weight of a code unit.
    #[inline]
    pub(super) fn of(&self, unit: u16) -> Weight {
        let page = self.index.get(usize::from(unit >> 8)).copied().unwrap_or_default();
        let page = self.pages.get(usize::from(page));
        page.and_then(|page| page.get(usize::from(unit & 0xFF))).copied().unwrap_or_default()
    }

    /// The letters that are compared in place of an expanded character.
    pub(super) fn expansion(&self, unit: u16) -> &[u16] {
        let found = self.expansions.binary_search_by_key(&unit, |(unit, _)| *unit);
        found.ok().and_then(|at| self.expansions.get(at)).map_or(&[], |(_, letters)| letters)
    }

    fn place(&mut self, unit: u16) -> Option<&mut Weight> {
        let index = self.index.get_mut(usize::from(unit >> 8))?;
        if *index == 0 {
            *index = u8::try_from(self.pages.len()).ok()?;
            self.pages.push([Weight::default(); 256]);
        }
        self.pages.get_mut(usize::from(*index))?.get_mut(usize::from(unit & 0xFF))
    }

    fn read(records: &str) -> Self {
        let mut weights = Self { index: [0; 256], pages: vec![[Weight::default(); 256]], expansions: Vec::new() };
        let (mut older, mut later) = (0, 0);
        for line in records.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            let name = words.next().unwrap_or_default();
            let is_lasting = name.ends_with('*');
            for word in words {
                match name.trim_end_matches('*') {
                    "older" => each(word, |unit, accent, is_next| {
                        older += u16::from(is_next);
                        weights.add(unit, Weight { older, accent, kind: Kind::Ranked, ..Weight::default() });
                    }),
                    "later" => each(word, |unit, _, is_next| {
                        later += u16::from(is_next);
                        if let Some(weight) = weights.place(unit) {
                            (weight.later, weight.is_lasting) = (later, true);
                        }
                    }),
                    "expand" => {
                        let (unit, letters) = word.split_once('=').unwrap_or((word, ""));
                        let letters = letters.split('+').filter_map(hex).collect();
                        if let Some(unit) = hex(unit) {
                            weights.add(unit, Weight { kind: Kind::Expanded, is_lasting, ..Weight::default() });
                            weights.expansions.push((unit, letters));
                        }
                    }
                    name => {
                        let kind = match name {
                            "last" => Kind::Last,
                            "ignored" => Kind::Ignored,
                            "marks" => Kind::Mark,
                            _ => Kind::Unknown,
                        };
                        each(word, |unit, _, _| weights.add(unit, Weight { kind, is_lasting, ..Weight::default() }));
                    }
                }
            }
        }
        weights.expansions.sort_unstable();
        weights
    }

    fn add(&mut self, unit: u16, weight: Weight) {
        if let Some(place) = self.place(unit) {
            *place = weight;
        }
    }
}

fn hex(digits: &str) -> Option<u16> {
    u16::from_str_radix(digits, 16).ok()
}

/// Calls `add` with each character of a word, its accent, and whether it is the first character with its weight.
fn each(word: &str, mut add: impl FnMut(u16, u8, bool)) {
    if let Some((first, last)) = word.split_once('-') {
        if let (Some(first), Some(last)) = (hex(first), hex(last)) {
            (first..=last).for_each(|unit| add(unit, NO_ACCENT, true));
        }
        return;
    }
    let mut is_first = true;
    for character in word.split(',') {
        let (unit, accent) = character.split_once(':').unwrap_or((character, ""));
        let Some(unit) = hex(unit) else { continue };
        add(unit, accent.parse().unwrap_or(NO_ACCENT), is_first);
        is_first = false;
    }
}
