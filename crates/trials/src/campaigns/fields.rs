//! Changes one field of one structure by a verb (a way to change a field, such as flipping a bit). The page protection
//! is corrected after the change, or is left wrong.

use format::Page;
use format::page::page_flags;
use source::PageSource;
use trials::mutate::{PROTECTED_WORD, PageRole, Pages, Random, Site, Survey, Verb, seal};

use crate::mutant::{Damage, Mutant, drawn};
use crate::rules;
use crate::subject::Subject;

/// One in eight mutants, on average, keeps its old checksum, which no longer matches the page.
const STALE_EVERY: usize = 8;

/// A field to change, and the values that the same field has at other places.
struct Choice {
    structure: String,
    field: String,
    site: Site,
    others: Vec<Vec<u8>>,
}

fn choose(subject: &Subject, random: &mut Random) -> Option<Choice> {
    let pages = Pages::new(&subject.files, &subject.database);
    let page = subject.any_page(random);
    let survey = Survey::of_page(&pages, &subject.database, page);
    let fields: Vec<_> = survey.fields().collect();
    let (structure, field, sites) = random.pick(&fields)?;
    let drawn: Vec<&Site> = sites.drawn().collect();
    let bytes = pages.read(page)?;
    Some(Choice {
        structure: (*structure).to_owned(),
        field: (*field).to_owned(),
        site: (*random.pick(&drawn)?).clone(),
        others: drawn.iter().map(|site| site.value(&bytes).to_vec()).collect(),
    })
}

/// A database with one field changed.
pub(crate) fn mutant(subject: &Subject, random: &mut Random) -> Mutant {
    drawn(random, |random| choose(subject, random).and_then(|choice| damage(subject, &choice, random)))
}

fn damage(subject: &Subject, choice: &Choice, random: &mut Random) -> Option<Mutant> {
    let site = &choice.site;
    let pages = Pages::new(&subject.files, &subject.database);
    let sound = pages.read(site.page)?;
    let mut page = sound.clone();
    let verb = *random.pick(&Verb::ALL)?;
    let old = site.value(&sound).to_vec();
    let other = random.pick(&choice.others).filter(|value| value.len() == old.len());
    if !site.apply(&mut page, verb, other.map(Vec::as_slice)) {
        return None;
    }
    let new = site.value(&page).to_vec();
    let has_checksum = Page::new(&sound).header().flags.get() & page_flags::CHECKSUM != 0;
    let is_protection = site.bytes == PROTECTED_WORD;
    let is_stale = has_checksum && (is_protection || random.below(STALE_EVERY) == 0);
    if is_protection && !has_checksum || is_stale {
        // The change is applied to the page as it is on disk, so that its sectors keep their torn bits.
        page = subject.files.read_page(site.page)?;
        let flips = old.iter().zip(&new).map(|(old, new)| old ^ new);
        page.get_mut(site.bytes.clone())?.iter_mut().zip(flips).for_each(|(byte, flips)| *byte ^= flips);
    } else {
        seal(&mut page);
    }
    let claims_checksum = Page::new(&page).header().flags.get() & page_flags::CHECKSUM != 0;
    let is_free = subject.role(site.page) == PageRole::Free;
    let harmless = if is_stale && claims_checksum && !is_free {
        rules::is_checksum_right(&page).then(|| rules::BLIND_SPOT.to_owned())
    } else {
        rules::reason(subject, site.page, &choice.structure, &choice.field)
    };
    let what = format!(
        "{} slot {:?} bytes {:?} bit {:?}{}: {} -> {}",
        site.page,
        site.slot,
        site.bytes,
        site.bit,
        if is_stale { " (checksum stale)" } else { "" },
        format::render::hex(&old, 16),
        format::render::hex(&new, 16),
    );
    let kind = format!("{}, {}", choice.structure, choice.field);
    Some(Mutant { kind, what, harmless, is_older: false, damage: Damage::Page(site.page, page) })
}
