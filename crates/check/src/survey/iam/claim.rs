//! The claims of IAM pages: units, mapped intervals, extents and single pages.

use std::collections::{BTreeMap, BTreeSet};

use findings::registry::{self, limits};
use findings::{Finding, Owner};
use format::allocation::{EXTENT_PAGES, FixedPage, INTERVAL_PAGES, PfsByte, bitmap, set_bits};
use format::protection::undo_torn_bits;
use format::{AllocUnitId, Page, PageBytes, PageId};
use source::read_settled;
use sums::spill::Sorter;

use super::links::out_of_range;
use super::{Follower, IamPage, MAX_BEYOND_PER_PAGE, is_missing};
use crate::basis::units::UnitIndex;
use crate::page::audit;
use crate::survey::claims::{Claim, Interval, Intervals};
use crate::survey::maps::{FileMap, Single};

impl Follower<'_> {
    /// Reports pages of a chain that have the ID of another unit: 8959. Assigns such a page to the unit of the chain,
    /// unless the own chain of the other unit contains the page too.
    pub(super) fn assign_units(&mut self) {
        let mut in_own_chain = BTreeSet::new();
        let mut foreign = Vec::new();
        let mut visited = BTreeSet::new();
        for (unit, head) in self.heads() {
            let (mut from, mut at) = (PageId::NONE, head);
            while let Some(page) = self.sound(at) {
                if !visited.insert(at) {
                    // This chain or an earlier chain already contains the page, so the walk ends here. If the page has
                    // the ID of another unit, this link to it is reported too.
                    if page.unit != unit {
                        foreign.push((unit, from, at));
                    }
                    break;
                }
                if page.unit == unit {
                    in_own_chain.insert(at);
                } else {
                    foreign.push((unit, from, at));
                }
                (from, at) = (at, page.next);
            }
        }
        for (unit, from, at) in foreign {
            let (Some(chain), Some(page)) = (self.units.get(unit), self.sound(at)) else { continue };
            let named = self.units.owner_of(page.named);
            let finding = Finding::new(&registry::IAM_OTHER_UNIT).owner(named).page(at).ref_page(from);
            self.findings.push(finding.other_owner(chain.owner));
            if in_own_chain.contains(&at) {
                self.broken.insert(unit);
            } else if let Some(page) = self.sound.get_mut(&at) {
                page.unit = unit;
            }
        }
    }

    /// Returns the filegroup of each file, derived from the units that have an IAM page for the file. The filegroup is
    /// known only if there are several such units and all of them are in the same filegroup.
    fn filegroups_by_units(&self) -> BTreeMap<u16, Option<u16>> {
        let mut units: BTreeMap<u16, BTreeSet<(u16, UnitIndex)>> = BTreeMap::new();
        for page in self.sound.values() {
            let row = self.units.get(page.unit).and_then(|unit| self.database.units.get(unit.row?));
            if let Some(row) = row {
                units.entry(page.header.start.file).or_default().insert((row.filegroup, page.unit));
            }
        }
        let agreed = |units: BTreeSet<(u16, UnitIndex)>| {
            let (&(first, _), &(last, _)) = (units.first()?, units.last()?);
            (units.len() > 1 && first == last).then_some(first)
        };
        units.into_iter().map(|(file, units)| (file, agreed(units))).collect()
    }

    /// Checks that each unit has one IAM page per interval (message 8947), and that the file of the interval is in the
    /// unit's filegroup (message 8996). A file header is reported as wrong (message 5250) if its filegroup contradicts
    /// the catalog, or contradicts all units that use the file.
    pub(super) fn check_intervals(&mut self) -> Intervals {
        let mut wrong_headers = BTreeSet::new();
        let agreed = self.filegroups_by_units();
        for (&id, page) in &self.sound {
            let Some(unit) = self.units.get(page.unit) else { continue };
            let row = unit.row.and_then(|row| self.database.units.get(row));
            let file = self.source.file(page.header.start.file);
            if let (Some(row), Some(file)) = (row, file)
                && file.header_is_sound
                && row.filegroup != file.filegroup
            {
                let is_of =
                    |known: &catalog::FileRow| known.file_id == file.file_id && known.filegroup == row.filegroup;
                if self.database.files.iter().any(is_of) || agreed.get(&file.file_id) == Some(&Some(row.filegroup)) {
                    wrong_headers.insert(file.file_id);
                    continue;
                }
                self.findings.push(
                    Finding::new(&registry::IAM_FILEGROUP)
                        .owner(unit.owner)
                        .page(id)
                        .ref_page(PageId::new(file.file_id, 0))
                        .number("found_filegroup", file.filegroup)
                        .number("expected_filegroup", row.filegroup),
                );
            }
        }
        self.findings.extend(wrong_headers.into_iter().map(|file| {
            let header = Finding::new(&registry::FIXED_PAGE_INVALID).page(PageId::new(file, 0));
            header.text_value("page_name", FixedPage::FileHeader.message_name())
        }));
        let interval = |page: &IamPage| Interval { unit: page.unit, start: page.header.start, page: page.id };
        let intervals = Intervals::new(self.sound.values().map(interval).collect());
        for (first, second) in intervals.doubles() {
            let Some(unit) = self.units.get(first.unit) else { continue };
            let finding = Finding::new(&registry::IAM_SAME_INTERVAL).owner(unit.owner);
            self.findings.push(finding.page(first.page).ref_page(second.page));
        }
        intervals
    }

    /// Enters the claims of all IAM pages into `files`. Returns the claims to extents that another unit had already
    /// claimed.
    pub(super) fn claim(&mut self, files: &mut [FileMap]) -> Sorter<Claim> {
        let (mut claims, mut unread) = (self.findings.sorter(), Vec::new());
        for (&id, page) in &self.sound {
            let Some(owner) = self.units.get(page.unit).map(|unit| unit.owner) else { continue };
            if let Some(file) = files.iter_mut().find(|file| file.file_id == id.file) {
                file.claim_single(id.page, Single { unit: page.unit, is_iam: true });
            }
            for slot in page.header.slots.into_iter().filter(|slot| !slot.is_none()) {
                let single = Single { unit: page.unit, is_iam: false };
                match files.iter_mut().find(|file| file.file_id == slot.file && slot.page < file.pages) {
                    None if is_missing(self.source, self.database, slot.file) => {
                        self.partial.insert(page.unit);
                    }
                    None => self.findings.push(out_of_range(owner, slot).ref_page(id)),
                    Some(file) if file.is_fixed(slot.page) => {
                        let finding = Finding::new(&registry::PAGE_TWO_OWNERS).owner(owner).page(slot).ref_page(id);
                        self.findings.push(finding.other_owner(Owner::unknown(AllocUnitId::SYSTEM)));
                    }
                    Some(file) => {
                        if let Some(other) = file.claim_single(slot.page, single) {
                            let finding = self.claimed_twice(owner, slot, other, page.unit);
                            self.findings.push(finding);
                        }
                    }
                }
            }
            let start = page.header.start;
            let Some(bits) = read_settled(self.source, id).and_then(|(bytes, _)| iam_bitmap(id, &bytes)) else {
                unread.push(id);
                continue;
            };
            let file = files.iter_mut().find(|file| file.file_id == start.file);
            if file.is_none() && is_missing(self.source, self.database, start.file) {
                self.partial.insert(page.unit);
                continue;
            }
            let valid = start.page.is_multiple_of(INTERVAL_PAGES);
            let file_is_open = file.is_some();
            match file {
                Some(file) if valid && start.page < file.pages => {
                    let first = start.page / EXTENT_PAGES;
                    let (inside, outside): (Vec<u32>, Vec<u32>) =
                        set_bits(&bits).map(|index| first + index).partition(|extent| *extent < file.extent_count());
                    let id_of = |extent: u32| PageId::new(start.file, extent.saturating_mul(EXTENT_PAGES));
                    for extent in outside.iter().take(MAX_BEYOND_PER_PAGE) {
                        self.findings.push(out_of_range(owner, id_of(*extent)).ref_page(id));
                    }
                    let shared = file.claim_extents(inside.into_iter(), page.unit);
                    for extent in shared.listed {
                        claims.push(Claim { extent: id_of(extent), unit: page.unit });
                    }
                    if !shared.owners.is_empty() {
                        self.sharing.insert(page.unit);
                        self.sharing.extend(shared.owners);
                    }
                    let beyond = outside.len() as u64;
                    if let more @ 1.. = beyond.saturating_sub(MAX_BEYOND_PER_PAGE as u64) {
                        self.coverage.note(&limits::ALLOCATION_IAM_BEYOND_END, "IAM pages", more);
                    }
                }
                // If the file was shrunk and now ends before the interval, an empty IAM page for the interval may still
                // exist.
                _ if valid && file_is_open && set_bits(&bits).next().is_none() => {}
                _ => self.findings.push(
                    Finding::new(&registry::IAM_POINTER_OUT_OF_RANGE)
                        .owner(owner)
                        .page(start)
                        .ref_page(id)
                        .text_value("pointer", "IAM interval"),
                ),
            }
        }
        unread.into_iter().for_each(|id| self.unread(id));
        claims
    }

    /// The finding for a page that is listed twice: 8910 if two units list it, 8973 if one unit lists it twice.
    fn claimed_twice(&self, owner: Owner, page: PageId, other: Single, unit: UnitIndex) -> Finding {
        let other_owner = self.units.get(other.unit).map(|unit| unit.owner);
        match other_owner {
            Some(other_owner) if other.unit != unit => {
                Finding::new(&registry::PAGE_TWO_OWNERS).owner(owner).page(page).other_owner(other_owner)
            }
            _ => Finding::new(&registry::PAGE_TWICE).owner(owner).at(page, 0),
        }
    }
}

/// The PFS type bits that are required for a page that a chain lists one by one.
pub(crate) fn expected_type_bits(single: Single) -> u8 {
    if single.is_iam { PfsByte::IAM } else { PfsByte::MIXED }
}

/// Returns the bitmap of the IAM page `id`, which was sound when its chain was followed. `raw` contains the page as it
/// is on disk now. `None` if the page has become damaged.
pub(crate) fn iam_bitmap(id: PageId, raw: &PageBytes) -> Option<[u8; format::allocation::BITMAP_BYTES]> {
    if audit::identity(raw, id).is_some() {
        return None;
    }
    let mut bytes = *raw;
    undo_torn_bits(&mut bytes);
    bitmap(Page::new(&bytes)).copied()
}
