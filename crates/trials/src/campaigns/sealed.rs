//! Changes bits and bytes anywhere on a page and corrects the page protection, so that only the meaning of the bytes
//! can reveal the change.

use std::collections::BTreeMap;

use trials::mutate::{Pages, Random, Survey, seal};

use crate::mutant::{Damage, Mutant, drawn};
use crate::rules;
use crate::subject::Subject;

/// A database with a few bits or bytes changed.
pub(crate) fn mutant(subject: &Subject, random: &mut Random) -> Mutant {
    drawn(random, |random| damage(subject, random))
}

/// Draws the offset of a change: in a field, in the page header, in the slot array, or anywhere.
pub(super) fn place(survey: &Survey, random: &mut Random) -> usize {
    match random.below(8) {
        0 => random.below(96),
        1 => 8191 - random.below(64),
        2 => random.below(8192),
        _ => {
            let fields: Vec<_> = survey.fields().collect();
            let sites: Vec<_> = random.pick(&fields).map(|(.., sites)| sites.drawn().collect()).unwrap_or_default();
            let site = random.pick(&sites).map(|site| site.bytes.clone()).unwrap_or_default();
            site.start + random.below(site.len())
        }
    }
}

fn damage(subject: &Subject, random: &mut Random) -> Option<Mutant> {
    let pages = Pages::new(&subject.files, &subject.database);
    let page = subject.any_page(random);
    let survey = Survey::of_page(&pages, &subject.database, page);
    let sound = pages.read(page)?;
    let mut bytes = sound.clone();
    let mut places: BTreeMap<usize, u8> = BTreeMap::new();
    let at = place(&survey, random);
    match random.below(4) {
        // One byte is changed.
        0 => *places.entry(at).or_default() = 1 + random.below(255) as u8,
        // A few bytes are changed.
        1 => {
            for at in (at..8192).take(2 + random.below(7)) {
                places.insert(at, random.number() as u8);
            }
        }
        _ => *places.entry(at).or_default() = 1 << random.below(8),
    }
    // The checksum word is not changed here, because sealing overwrites it.
    places.retain(|at, flips| !(60..64).contains(at) && *flips != 0);
    for (&at, &flips) in &places {
        *bytes.get_mut(at)? ^= flips;
    }
    seal(&mut bytes);
    if places.is_empty() || bytes == sound {
        return None;
    }
    let rules::Changes { kind, harmless } =
        rules::of_changes(subject, page, places.iter().map(|(at, flips)| (*at, *flips)));
    let changes: Vec<String> = places
        .iter()
        .map(|(at, flips)| {
            let old = sound.get(*at).copied().unwrap_or_default();
            format!("byte {at}: {old:02X} -> {:02X}", old ^ flips)
        })
        .collect();
    let what = format!("{page} {}", changes.join(", "));
    Some(Mutant { kind, what, harmless, is_older: false, damage: Damage::Page(page, bytes) })
}
