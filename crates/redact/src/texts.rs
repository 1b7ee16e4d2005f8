//! New texts of the same length, in the same order (docs/redact.md#texts).
//!
//! The *path* of a text is the sequence of its letters and digits, without case, accents and everything else. The paths
//! of all texts that are compared with each other form a tree. Where several letters follow a node, they are replaced
//! by other letters in the same order. Where only one letter follows, any letter may replace it. So two texts differ at
//! the same place as before, in the same direction.

use std::collections::BTreeMap;

use format::bytes::u16_at;

use crate::key::{Key, Stream};
use crate::letters::{CharacterKind, Form, each_character, other_letter, range_of};

/// What is known about the texts with one path.
#[derive(Default)]
struct Facts {
    /// The positions in the path that stand for a letter that is not ASCII in some text.
    others: Vec<u32>,
    /// Whether some text with this path must stay.
    stays: bool,
}

/// The memory for a path besides its letters, with its places in the map, in a list and in its node.
const BYTES_PER_PATH: usize = 160;
/// The memory for a position of a letter that is not ASCII, in the facts and in the list that the tree refers to.
const BYTES_PER_OTHER: usize = 2 * size_of::<u32>();
/// The memory for a node of the tree with one child, while the tree is built.
const BYTES_PER_NODE: usize = 128;

/// Collects the texts that are compared with each other.
pub(crate) struct Collected {
    form: Form,
    paths: BTreeMap<Box<[u16]>, Facts>,
    /// The approximate memory that the paths use.
    pub(crate) bytes: usize,
}

impl Collected {
    pub(crate) fn new(form: Form) -> Self {
        Self { form, paths: BTreeMap::new(), bytes: 0 }
    }

    /// Adds a text. If `stays` is set, the text will not be changed.
    pub(crate) fn add(&mut self, text: &[u8], stays: bool) {
        let (mut path, mut others) = (Vec::with_capacity(text.len()), Vec::new());
        each_character(self.form, text, |character| match character.kind {
            CharacterKind::Mark => {}
            CharacterKind::Plain(letter) => path.push(letter),
            CharacterKind::Other(letters) => {
                for letter in letters.into_iter().filter(|letter| *letter != 0) {
                    others.push(path.len() as u32);
                    path.push(letter);
                }
            }
        });
        if !self.paths.contains_key(path.as_slice()) {
            self.bytes += 2 * path.len() + BYTES_PER_PATH;
        }
        let facts = self.paths.entry(path.into()).or_default();
        facts.stays |= stays;
        if others.iter().any(|other| facts.others.binary_search(other).is_err()) {
            let before = facts.others.len();
            facts.others.extend(others);
            facts.others.sort_unstable();
            facts.others.dedup();
            self.bytes += BYTES_PER_OTHER * (facts.others.len() - before);
        }
    }

    /// The approximate memory that the tree of the paths will use. It has a node for each beginning that several paths
    /// share.
    pub(crate) fn tree_bytes(&self) -> usize {
        let (mut nodes, mut before, mut prior) = (1, 0, &[][..]);
        for path in self.paths.keys() {
            let shared = path.iter().zip(prior).take_while(|(one, other)| one == other).count();
            nodes += shared.saturating_sub(before);
            (before, prior) = (shared, path);
        }
        nodes * BYTES_PER_NODE
    }
}

/// Where a path leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Node(u32),
    /// Only one path continues here: every letter may be replaced by any other, except at the positions of this list
    /// ([`Texts::others`]), where some text has a letter that is not replaced.
    Alone(u32),
    /// Like `Alone`, but the next letter stays, because it may form one letter with the letter before.
    AloneSoon(u32),
    /// The rest of the path stays.
    Stays,
}

/// The place of a text's next character in the tree.
struct Place {
    next: Next,
    depth: u32,
    hash: u64,
}

struct Child {
    old: u16,
    new: u16,
    next: Next,
}

/// The new letters of all texts that are compared with each other.
pub(crate) struct Texts {
    form: Form,
    key: Key,
    nodes: Vec<Vec<Child>>,
    /// Lists of positions; the first is empty.
    others: Vec<Vec<u32>>,
}

/// A node that is being built: its paths and its depth.
struct Open {
    paths: std::ops::Range<usize>,
    depth: usize,
    hash: u64,
    /// Whether several letters follow the node before.
    after_fork: bool,
}

impl Texts {
    pub(crate) fn draw(collected: Collected, key: Key) -> Self {
        let form = collected.form;
        let paths: Vec<(Box<[u16]>, Facts)> = collected.paths.into_iter().collect();
        let mut this = Self { form, key, nodes: Vec::new(), others: vec![Vec::new()] };
        let mut open = vec![Open { paths: 0..paths.len(), depth: 0, hash: form.id(), after_fork: false }];
        // Each node is added to `nodes` when it is opened. So its number is known before its children are.
        this.nodes.push(Vec::new());
        let mut numbers = vec![0u32];
        while let (Some(node), Some(number)) = (open.pop(), numbers.pop()) {
            let groups = groups(&paths, &node);
            let is_fork = forks(&paths, &node.paths, node.depth);
            let new = this.letters_at(&paths, &node, &groups, is_fork);
            let mut children = Vec::with_capacity(groups.len());
            for ((old, range), new) in groups.into_iter().zip(new) {
                let next = match paths.get(range.clone()).unwrap_or_default() {
                    [(_, Facts { stays: true, .. })] => Next::Stays,
                    [(_, Facts { others, .. })] => {
                        let others = this.list(others);
                        let may_join = is_fork && !orders_letters_plainly(form);
                        if may_join { Next::AloneSoon(others) } else { Next::Alone(others) }
                    }
                    _ => {
                        let number = this.nodes.len() as u32;
                        this.nodes.push(Vec::new());
                        let hash = key.hash([node.hash, old.into()]);
                        open.push(Open { paths: range, depth: node.depth + 1, hash, after_fork: is_fork });
                        numbers.push(number);
                        Next::Node(number)
                    }
                };
                children.push(Child { old, new, next });
            }
            if let Some(place) = this.nodes.get_mut(number as usize) {
                *place = children;
            }
        }
        this
    }

    /// The number of a list of positions.
    fn list(&mut self, others: &[u32]) -> u32 {
        if others.is_empty() {
            return 0;
        }
        self.others.push(others.to_vec());
        self.others.len() as u32 - 1
    }

    /// The new letters of the groups of a node.
    fn letters_at(
        &self,
        paths: &[(Box<[u16]>, Facts)],
        node: &Open,
        groups: &[(u16, std::ops::Range<usize>)],
        is_fork: bool,
    ) -> Vec<u16> {
        let of_node = paths.get(node.paths.clone()).unwrap_or_default();
        let has_others = of_node.iter().any(|(_, facts)| facts.others.binary_search(&(node.depth as u32)).is_ok());
        let leads_to_fork = || groups.iter().any(|(_, range)| forks(paths, range, node.depth + 1));
        let may_join = !orders_letters_plainly(self.form) && (is_fork || node.after_fork || leads_to_fork());
        let old: Vec<u16> = groups.iter().map(|(letter, _)| *letter).collect();
        if has_others || may_join {
            return old;
        }
        let stays = |range: &std::ops::Range<usize>| {
            paths.get(range.clone()).unwrap_or_default().iter().any(|(_, facts)| facts.stays)
        };
        let stays: Vec<bool> = groups.iter().map(|(_, range)| stays(range)).collect();
        let mut stream = self.key.stream(node.hash);
        let mut new = old.clone();
        for (first, last) in alphabets(self.form) {
            let of_alphabet = |letter: &u16| (*first..=*last).contains(letter);
            let from = old.partition_point(|letter| letter < first);
            let to = from + old.get(from..).unwrap_or_default().iter().take_while(|letter| of_alphabet(letter)).count();
            let (Some(old), Some(stays), Some(new)) = (old.get(from..to), stays.get(from..to), new.get_mut(from..to))
            else {
                continue;
            };
            in_order(old, stays, (*first, *last), &mut stream, new);
        }
        new
    }

    /// Replaces the letters of a text.
    pub(crate) fn replace(&self, text: &mut [u8]) {
        let mut changes: Vec<(usize, u16)> = Vec::new();
        let mut place = Place { next: Next::Node(0), depth: 0, hash: self.form.id() };
        let is_unicode = matches!(self.form, Form::Unicode(_));
        let unit_at = |at: usize| u16_at(text, at);
        each_character(self.form, text, |character| match character.kind {
            CharacterKind::Mark => {}
            CharacterKind::Plain(letter) => changes.push((character.at, self.step(&mut place, letter))),
            CharacterKind::Other(letters) => {
                let is_alone = matches!(place.next, Next::Alone(_));
                for letter in letters.into_iter().filter(|letter| *letter != 0) {
                    self.step(&mut place, letter);
                }
                let range = if is_alone && is_unicode { unit_at(character.at).and_then(range_of) } else { None };
                if let (Some((first, last)), Some(old)) = (range, unit_at(character.at)) {
                    changes.push((character.at, other_letter(old, (first, last), self.key.hash([place.hash, 0x52]))));
                }
            }
        });
        for (at, new) in changes {
            let Some(place) = text.get_mut(at) else { continue };
            match u8::try_from(new) {
                Ok(new) => {
                    let is_capital = !matches!(self.form, Form::Bytes) && place.is_ascii_uppercase();
                    *place = if is_capital { new.to_ascii_uppercase() } else { new };
                }
                Err(_) => {
                    if let Some(place) = text.get_mut(at..at + 2) {
                        place.copy_from_slice(&new.to_le_bytes());
                    }
                }
            }
        }
    }

    /// Follows a path by one letter, and returns the new letter.
    fn step(&self, at: &mut Place, letter: u16) -> u16 {
        at.hash = self.key.hash([at.hash, letter.into()]);
        let depth = at.depth;
        at.depth += 1;
        match at.next {
            Next::Node(node) => {
                let children = self.nodes.get(node as usize).map(Vec::as_slice).unwrap_or_default();
                let child = children.binary_search_by_key(&letter, |child| child.old).ok();
                match child.and_then(|child| children.get(child)) {
                    Some(child) => {
                        at.next = child.next;
                        child.new
                    }
                    None => {
                        at.next = Next::Alone(0);
                        self.any_letter(letter, at.hash)
                    }
                }
            }
            Next::Alone(others) => {
                let others = self.others.get(others as usize).map(Vec::as_slice).unwrap_or_default();
                if others.binary_search(&depth).is_ok() { letter } else { self.any_letter(letter, at.hash) }
            }
            Next::AloneSoon(others) => {
                at.next = Next::Alone(others);
                letter
            }
            Next::Stays => letter,
        }
    }

    /// Another letter of the same alphabet; the same letter if it is of none.
    fn any_letter(&self, letter: u16, hash: u64) -> u16 {
        let alphabet = alphabets(self.form).iter().find(|(first, last)| (*first..=*last).contains(&letter));
        alphabet.map_or(letter, |alphabet| other_letter(letter, *alphabet, hash))
    }
}

/// The ranges of letters that replace each other. A byte 0 stays, because it may be padding.
fn alphabets(form: Form) -> &'static [(u16, u16)] {
    const DIGITS: (u16, u16) = (b'0' as u16, b'9' as u16);
    const CAPITALS: (u16, u16) = (b'A' as u16, b'Z' as u16);
    const LETTERS: (u16, u16) = (b'a' as u16, b'z' as u16);
    match form {
        Form::Bytes => &[(1, 0xFF)],
        _ if form.collation().is_bin() || form.collation().is_bin2() => &[DIGITS, CAPITALS, LETTERS],
        _ => &[DIGITS, LETTERS],
    }
}

/// Whether each letter is compared by itself and has its place in the English alphabet.
fn orders_letters_plainly(form: Form) -> bool {
    let collation = form.collation();
    matches!(form, Form::Bytes) || collation.is_bin() || collation.is_bin2() || collation.letters_are_plain()
}

/// The paths of a node by their next letter.
fn groups(paths: &[(Box<[u16]>, Facts)], node: &Open) -> Vec<(u16, std::ops::Range<usize>)> {
    let mut groups: Vec<(u16, std::ops::Range<usize>)> = Vec::new();
    for at in node.paths.clone() {
        let Some(letter) = paths.get(at).and_then(|(path, _)| path.get(node.depth)) else { continue };
        match groups.last_mut().filter(|(last, _)| last == letter) {
            Some((_, range)) => range.end = at + 1,
            None => groups.push((*letter, at..at + 1)),
        }
    }
    groups
}

/// Whether these paths, which are equal up to `depth`, continue in different ways.
fn forks(paths: &[(Box<[u16]>, Facts)], range: &std::ops::Range<usize>, depth: usize) -> bool {
    let letter = |at: usize| paths.get(at).and_then(|(path, _)| path.get(depth));
    range.len() > 1 && letter(range.start) != letter(range.end - 1)
}

/// How often letters are drawn to find ones that are all new.
const TRIES: usize = 12;

/// Draws new letters in the order of the old ones. Letters that stay divide the alphabet.
fn in_order(old: &[u16], stays: &[bool], (first, last): (u16, u16), stream: &mut Stream, new: &mut [u16]) {
    let mut from = 0;
    while from < old.len() {
        if stays.get(from) == Some(&true) {
            from += 1;
            continue;
        }
        let count = stays.get(from..).unwrap_or_default().iter().take_while(|stays| !**stays).count();
        let to = from + count;
        let low = from.checked_sub(1).and_then(|at| old.get(at)).map_or(first, |before| before + 1);
        let high = old.get(to).map_or(last, |after| after - 1);
        let (Some(old), Some(new)) = (old.get(from..to), new.get_mut(from..to)) else { return };
        let mut most = 0;
        for _ in 0..TRIES {
            let drawn = choose(old.len(), (low, high), stream);
            let changed = drawn.iter().zip(old).filter(|(new, old)| new != old).count();
            if changed > most {
                most = changed;
                new.copy_from_slice(&drawn);
            }
            if changed == old.len() {
                break;
            }
        }
        from = to;
    }
}

/// Chooses `count` different letters of a range, in ascending order.
fn choose(count: usize, (low, high): (u16, u16), stream: &mut Stream) -> Vec<u16> {
    let (mut chosen, mut needed) = (Vec::with_capacity(count), count as u64);
    for letter in low..=high {
        let left = u64::from(high - letter) + 1;
        if stream.below(left) < needed {
            chosen.push(letter);
            needed -= 1;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use format::collation::{CollationId, Encoding, compare};

    use super::*;

    const LATIN: CollationId = CollationId(0x3400_D008);
    const BINARY: CollationId = CollationId(0x0000_0808);

    fn words(count: u64, key: Key) -> Vec<Vec<u8>> {
        let mut stream = key.stream(1);
        let letters = b"aabbbcdeeeEABCst09 -'\xE9\xDF";
        (0..count)
            .map(|_| {
                let length = 1 + stream.below(9);
                (0..length).map(|_| letters[stream.below(letters.len() as u64) as usize]).collect()
            })
            .collect()
    }

    fn redacted(form: Form, words: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut collected = Collected::new(form);
        words.iter().for_each(|word| collected.add(word, false));
        let texts = Texts::draw(collected, Key::from_seed(5));
        let replace = |word: &Vec<u8>| {
            let mut word = word.clone();
            texts.replace(&mut word);
            word
        };
        words.iter().map(replace).collect()
    }

    #[test]
    fn order_and_equality_stay() {
        for collation in [LATIN, BINARY, CollationId(0x0000_D01A)] {
            let old = words(400, Key::from_seed(u64::from(collation.0)));
            let new = redacted(Form::Ansi(collation), &old);
            for (one, new_one) in old.iter().zip(&new) {
                assert_eq!(one.len(), new_one.len());
                for (other, new_other) in old.iter().zip(&new) {
                    let [before, after] =
                        [(one, other), (new_one, new_other)].map(|(a, b)| compare(a, b, collation, Encoding::Ansi));
                    assert_eq!(one == other, new_one == new_other);
                    let is_kept = match (before.order(), after.order()) {
                        (Some(before), Some(after)) => before == after,
                        (Some(_), None) => false,
                        (None, after) => after.is_none(),
                    };
                    assert!(is_kept, "{collation:?} {one:?} {other:?} {new_one:?} {new_other:?}: {before:?} {after:?}");
                }
            }
        }
    }

    #[test]
    fn long_texts_change_and_texts_that_stay_do_not() {
        let mut collected = Collected::new(Form::Ansi(LATIN));
        collected.add(b"sysobjects", true);
        for word in ["systems", "Anderson", "Andersen", "Zoe"] {
            collected.add(word.as_bytes(), false);
        }
        let texts = Texts::draw(collected, Key::from_seed(1));
        let new = |word: &str| {
            let mut word = word.as_bytes().to_vec();
            texts.replace(&mut word);
            String::from_utf8(word).unwrap()
        };
        assert_eq!(new("sysobjects"), "sysobjects");
        for word in ["systems", "Anderson", "Andersen", "Zoe", "not collected"] {
            assert_ne!(new(word), word);
        }
        assert_eq!(new("ANDERSON").to_lowercase(), new("anderson"), "case stays");
        assert!(new("Andersen") < new("Anderson"));
    }

    #[test]
    fn the_memory_of_the_tree_is_reckoned_from_its_nodes() {
        for count in [1, 2, 30, 400] {
            let mut collected = Collected::new(Form::Ansi(LATIN));
            words(count, Key::from_seed(count)).iter().for_each(|word| collected.add(word, false));
            let reckoned = collected.tree_bytes();
            let texts = Texts::draw(collected, Key::from_seed(1));
            assert_eq!(reckoned, texts.nodes.len() * BYTES_PER_NODE, "{count} words");
        }
    }

    #[test]
    fn letters_that_are_not_ascii_use_memory() {
        let mut collected = Collected::new(Form::Unicode(LATIN));
        let wide = |text: String| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        collected.add(&wide("a".repeat(1000)), false);
        let before = collected.bytes;
        collected.add(&wide("\u{e1}".repeat(1000)), false);
        assert_eq!(collected.bytes - before, 1000 * BYTES_PER_OTHER, "the path is the same, its letters are others");
    }

    #[test]
    fn bytes_keep_their_order_and_their_zeros() {
        let old: Vec<Vec<u8>> = vec![vec![1, 0, 2], vec![1, 0, 3, 0], vec![9], vec![9, 200], vec![0, 7]];
        let new = redacted(Form::Bytes, &old);
        for (at, (one, new_one)) in old.iter().zip(&new).enumerate() {
            assert_ne!(one, new_one);
            for (other, new_other) in old.iter().zip(&new).skip(at + 1) {
                assert_eq!(one.cmp(other), new_one.cmp(new_other));
            }
            assert!(one.iter().zip(new_one).all(|(old, new)| (*old == 0) == (*new == 0)));
        }
    }
}
