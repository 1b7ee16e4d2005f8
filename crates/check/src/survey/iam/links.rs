//! Checks the links of IAM chains: the first page according to the catalog, the pointers between IAM pages, and their
//! sequence numbers.

use std::collections::BTreeMap;

use findings::{Finding, Owner, registry};
use format::PageId;

use super::{Follower, IamPage, is_missing};
use crate::basis::units::UnitIndex;

impl Follower<'_> {
    /// Checks the catalog's pointers to first IAM pages: 8968, 2575.
    pub(super) fn check_heads(&mut self) {
        for (unit, head) in self.heads() {
            let Some(owner) = self.units.get(unit).map(|unit| unit.owner) else { continue };
            if self.is_in_missing_file(head) {
                self.partial.insert(unit);
                continue;
            }
            if !self.source.contains(head) {
                self.leads_out = true;
                self.broken.insert(unit);
                let finding = Finding::new(&registry::IAM_POINTER_OUT_OF_RANGE).owner(owner).page(head);
                self.findings.push(finding.text_value("pointer", "IAM"));
            } else if self.sound(head).is_none() {
                if self.left_out.contains(head) {
                    self.cut.insert(unit);
                    continue;
                }
                self.broken.insert(unit);
                let finding = Finding::new(&registry::IAM_NEXT_UNSEEN).owner(owner).page(head);
                self.findings.push(finding.ref_page(PageId::NONE));
            }
        }
    }

    /// Checks the pointers between IAM pages: 2575, 2576, 8969, 2577.
    pub(super) fn check_links(&mut self) {
        let heads: BTreeMap<PageId, UnitIndex> = self.heads().into_iter().map(|(unit, head)| (head, unit)).collect();
        for page in self.sound.values() {
            if [page.next, page.prev].iter().any(|link| !link.is_none() && self.is_in_missing_file(*link)) {
                self.partial.insert(page.unit);
            }
            if self.left_out.contains(page.next) {
                self.cut.insert(page.unit);
            } else if self.loses_its_next(page) {
                self.leads_out |= !self.source.contains(page.next);
                self.broken.insert(page.unit);
            }
            let found = self.links_of(page, heads.contains_key(&page.id));
            self.findings.extend(found);
        }
    }

    /// Whether the next pointer of a page refers to a page that is not a sound IAM page.
    fn loses_its_next(&self, page: &IamPage) -> bool {
        let is_known = self.sound(page.next).is_some() || self.left_out.contains(page.next);
        !page.next.is_none() && !self.is_in_missing_file(page.next) && !is_known
    }

    /// The faults in the links of a page.
    fn links_of(&self, page: &IamPage, is_head: bool) -> Vec<Finding> {
        let (id, owner) = (page.id, self.owner_of(page));
        let mut found = Vec::new();
        if self.loses_its_next(page) {
            found.push(Finding::new(&registry::IAM_NEXT_UNSEEN).owner(owner).page(page.next).ref_page(id));
        } else if let Some(next) = self.sound(page.next) {
            if next.prev != id {
                found.push(linkage(owner, id, page.next, page.next, next.prev));
            }
            if page.header.sequence.checked_add(1) != Some(next.header.sequence) {
                found.push(sequence(owner, id, page.header.sequence.into(), next));
            }
        }
        if page.prev.is_none() {
            match is_head {
                // Message 2577 numbers the catalog's pointer as -1; the first IAM page must have sequence number 0.
                true if page.header.sequence != 0 => found.push(sequence(owner, PageId::NONE, -1, page)),
                true => {}
                // If sysallocunits is incomplete, one of its missing rows may name this page.
                false if !self.database.units_are_complete() => {}
                false => {
                    found.push(Finding::new(&registry::IAM_PREV_UNSEEN).owner(owner).page(PageId::NONE).ref_page(id));
                }
            }
        } else if !self.is_in_missing_file(page.prev) && !self.left_out.contains(page.prev) {
            match self.sound(page.prev) {
                None => found.push(Finding::new(&registry::IAM_PREV_UNSEEN).owner(owner).page(page.prev).ref_page(id)),
                Some(prev) if prev.next != id => found.push(linkage(owner, page.prev, prev.next, id, page.prev)),
                Some(_) => {}
            }
        }
        found
    }

    /// The owner that messages print for an IAM page. CHECKDB does not load a unit whose catalog row names no IAM page,
    /// so it prints this owner as unknown (docs/format/cases.md#case-13).
    pub(super) fn owner_of(&self, page: &IamPage) -> Owner {
        let unit = self.units.get(page.unit);
        let named =
            unit.and_then(|unit| self.database.units.get(unit.row?)).is_some_and(|row| !row.first_iam.is_none());
        unit.filter(|_| named).map_or(Owner::unknown(page.named), |unit| unit.owner)
    }

    /// Whether a page is in a file that the catalog lists but that was not given, so that the page cannot be checked.
    pub(super) fn is_in_missing_file(&self, page: PageId) -> bool {
        is_missing(self.source, self.database, page.file)
    }
}

pub(super) fn out_of_range(owner: Owner, page: PageId) -> Finding {
    Finding::new(&registry::IAM_EXTENT_OUT_OF_RANGE).owner(owner).page(page)
}

fn linkage(owner: Owner, page: PageId, next: PageId, other: PageId, prev: PageId) -> Finding {
    Finding::new(&registry::IAM_LINKAGE)
        .owner(owner)
        .page(page)
        .ref_page(next)
        .page_value("other_page", other)
        .page_value("found_prev", prev)
}

fn sequence(owner: Owner, page: PageId, number: i64, next: &IamPage) -> Finding {
    Finding::new(&registry::IAM_SEQUENCE)
        .owner(owner)
        .page(page)
        .ref_page(next.id)
        .number("sequence", number)
        .number("next_sequence", next.header.sequence)
}
