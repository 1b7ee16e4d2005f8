//! The reasons why damage may go unnoticed. Some come from the published list of the mutation matrix. The others are
//! additional rules, written after trials had found more damage of this kind.

use std::collections::BTreeSet;

use catalog::Rowset;
use format::page::page_flags;
use format::protection::{PROTECTION_WORD, undo_torn_bits};
use format::{Page, PageBytes, PageId};
use trials::mutate::exemptions::{exemptions, matches};
use trials::mutate::{PageRole, Pages, Survey, seal};

use crate::subject::Subject;

/// The additional rules, as a tab-separated table with the columns `structure`, `fields`, `where` and `reason`.
const RULES: &str = include_str!("../exemptions.tsv");
/// The reason why the checksum of a changed page may be right although it was not corrected.
pub(crate) const BLIND_SPOT: &str = "The checksum is the same: it cannot see a change done twice in one sector.";

/// The reason why changed bytes that belong to no field may go unnoticed.
const NO_FIELD: &str = "Space that no field has.";

/// The reason why damage to a field of a page may go unnoticed; `None` if it must be noticed.
pub(crate) fn reason(subject: &Subject, page: PageId, structure: &str, field: &str) -> Option<String> {
    if let Some(known) = exemptions().into_iter().find(|exemption| exemption.covers(structure, field)) {
        return Some(known.reason.to_owned());
    }
    let is_one = |line: &&str| {
        let parts: Vec<&str> = line.split('\t').collect();
        let [of, fields, place, _] = parts.as_slice() else { return false };
        matches(of, structure) && fields.split("; ").any(|own| matches(own, field)) && holds(subject, page, place)
    };
    RULES.lines().skip(1).find(is_one).and_then(|line| line.split('\t').nth(3)).map(str::to_owned)
}

/// The fields to which the changed bytes of a page belong.
pub(crate) struct Changes {
    /// The structure and field of one change: the first change that must be noticed, if there is one, or otherwise any
    /// change.
    pub(crate) kind: String,
    /// The reason why the changes may go unnoticed; `None` if the change to some field must be noticed.
    pub(crate) harmless: Option<String>,
}

/// Finds the fields that changes to a page affect. Each change is the offset of a byte, and the bits that are flipped
/// in it.
pub(crate) fn of_changes(subject: &Subject, page: PageId, flips: impl Iterator<Item = (usize, u8)>) -> Changes {
    let pages = Pages::new(&subject.files, &subject.database);
    let survey = Survey::of_page(&pages, &subject.database, page);
    let bits = flips.flat_map(|(at, flips)| (0..8).filter(move |bit| flips >> bit & 1 == 1).map(move |bit| (at, bit)));
    let fields: BTreeSet<(&str, &str)> = bits.flat_map(|(at, bit)| survey.at(at, bit)).collect();
    let name = |(structure, field): &(&str, &str)| format!("{structure}, {field}");
    let reason_of = |(structure, field): &(&str, &str)| reason(subject, page, structure, field);
    match (fields.iter().find(|field| reason_of(field).is_none()), fields.first()) {
        (Some(field), _) => Changes { kind: name(field), harmless: None },
        (None, Some(field)) => Changes { kind: name(field), harmless: reason_of(field) },
        (None, None) => Changes { kind: "no field".to_owned(), harmless: Some(NO_FIELD.to_owned()) },
    }
}

/// Whether a rule applies to a page.
fn holds(subject: &Subject, page: PageId, place: &str) -> bool {
    let pages = Pages::new(&subject.files, &subject.database);
    let rowset = || -> Option<&Rowset> {
        let bytes = pages.read(page)?;
        pages.rowset(Page::new(&bytes).header().alloc_unit())
    };
    match place {
        "any" => true,
        "compressed" => rowset().is_some_and(|rowset| rowset.compression != 0),
        "filtered" => rowset().is_some_and(|rowset| {
            let indexes = subject.database.indexes.iter();
            indexes.filter(|((object, _), _)| *object == rowset.object_id).any(|(_, index)| index.is_filtered())
        }),
        "empty file" => {
            let mut used = subject.roles.iter().filter(|(role, _)| lies_in_a_unit(**role)).flat_map(|(_, pages)| pages);
            !used.any(|own| own.file == page.file)
        }
        _ => false,
    }
}

/// Whether pages of this role belong to an allocation unit.
fn lies_in_a_unit(role: PageRole) -> bool {
    use PageRole::{Clustered, Heap, Iam, Leaf, Node, Text};
    matches!(role, Heap | Clustered | Node | Leaf | Text | Iam)
}

/// Whether a page has a checksum, and the checksum is right.
pub(crate) fn is_checksum_right(page: &PageBytes) -> bool {
    let mut sealed = *page;
    undo_torn_bits(&mut sealed);
    seal(&mut sealed);
    Page::new(page).header().flags.get() & page_flags::CHECKSUM != 0 && sealed == *page
}

/// Whether the protection of a page, in its form on disk, is wrong.
pub(crate) fn is_broken(page: &PageBytes) -> bool {
    let flags = Page::new(page).header().flags.get();
    match (flags & page_flags::CHECKSUM != 0, flags & page_flags::TORN_BITS != 0) {
        (true, _) => !is_checksum_right(page),
        (false, is_protected) => is_protected && is_torn(page),
    }
}

/// Whether the torn bits of some sector differ from the pattern in the page header.
fn is_torn(page: &PageBytes) -> bool {
    let pattern = page[PROTECTION_WORD] & 3;
    page.chunks_exact(512).skip(1).any(|sector| sector.last().is_some_and(|last| last & 3 != pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_place_that_is_known_and_a_reason() {
        for line in RULES.lines().skip(1) {
            let parts: Vec<&str> = line.split('\t').collect();
            assert_eq!(parts.len(), 4, "{line}");
            assert!(["any", "compressed", "filtered", "empty file"].contains(&parts[2]), "{line}");
            assert!(parts.iter().all(|part| !part.is_empty()), "{line}");
        }
    }

    #[test]
    fn every_rule_is_published() {
        let page = include_str!("../../../docs/trust.md");
        for line in RULES.lines().skip(1) {
            let (_, reason) = line.rsplit_once('\t').unwrap_or_default();
            assert!(page.contains(reason), "docs/trust.md lacks: {reason}");
        }
        assert!(page.contains(BLIND_SPOT));
    }

    #[test]
    fn a_checksum_does_not_see_the_same_change_twice_in_a_sector() {
        let mut page: PageBytes = [0; format::PAGE_BYTES];
        page[4..6].copy_from_slice(&page_flags::CHECKSUM.to_le_bytes());
        seal(&mut page);
        page[100] ^= 0x55;
        assert!(!is_checksum_right(&page));
        page[104] ^= 0x55;
        assert!(is_checksum_right(&page));
    }
}
