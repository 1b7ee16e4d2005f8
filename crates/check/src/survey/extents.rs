//! Checks that GAM, SGAM, PFS and IAM pages agree about extents and pages (docs/format/checkdb.md#allocation-checks).

use std::collections::BTreeSet;
use std::iter::Peekable;

use catalog::{Database, Fetched, fetch};
use findings::registry::{self, limits};
use findings::{Coverage, FileTotals, Finding};
use format::allocation::{EXTENT_PAGES, FixedPage, PfsByte, gam_page_of, is_fixed_extent, pfs_page_of, sgam_page_of};
use format::{Page, PageId};
use source::PageSource;
use sums::spill::{Sorted, Sorter};

use super::claims::{Claim, claimants};
use super::iam::{Chains, expected_type_bits};
use super::maps::{Allocation, FileMap};
use crate::basis::ledger::FindingCollector;
use crate::basis::units::{UnitIndex, Units};

/// Checks all extents of all files; returns the totals of each file.
pub(super) fn check(
    (source, database): (&dyn PageSource, &Database),
    files: &[FileMap],
    (chains, claims): (&Chains, Sorter<Claim>),
    units: &Units,
    findings: &mut FindingCollector,
    coverage: &mut Coverage,
) -> Vec<FileTotals> {
    let mut totals = Vec::new();
    let mut claims = claims.into_sorted().peekable();
    for file in files {
        let totals_of_file = empty_totals(file.file_id);
        let claims = &mut claims;
        let mut checker =
            Checker { source, database, file, chains, claims, units, findings, coverage, totals: totals_of_file };
        // An extent without any sound map cannot be checked. The damaged maps have already been reported.
        let has_maps = |extent: &u32| file.extent_bits(*extent).is_some() || file.pfs_is_known(extent * EXTENT_PAGES);
        for extent in (0..file.extent_count()).filter(has_maps) {
            checker.extent(extent);
        }
        checker.single_pages();
        checker.lost_pages();
        totals.push(checker.totals);
    }
    totals
}

fn empty_totals(file_id: u16) -> FileTotals {
    FileTotals { file_id, extents: 0, used_pages: 0, reserved_pages: 0, mixed_extents: 0, mixed_pages: 0 }
}

struct Checker<'a> {
    source: &'a dyn PageSource,
    database: &'a Database,
    file: &'a FileMap,
    chains: &'a Chains,
    /// The claims, sorted by extent.
    claims: &'a mut Peekable<Sorted<Claim>>,
    units: &'a Units,
    findings: &'a mut FindingCollector,
    coverage: &'a mut Coverage,
    totals: FileTotals,
}

/// A unit or structure that claims an extent.
#[derive(Clone, Copy)]
enum Claimant {
    Gam,
    Sgam,
    /// The pages at fixed addresses at the start of a GAM interval.
    System,
    Unit(UnitIndex),
}

impl Checker<'_> {
    fn page_id(&self, page: u32) -> PageId {
        PageId::new(self.file.file_id, page)
    }

    /// The pages of the extent that exist in the file.
    fn pages(&self, extent: u32) -> std::ops::Range<u32> {
        let first = extent * EXTENT_PAGES;
        first..first.saturating_add(EXTENT_PAGES).min(self.file.pages)
    }

    fn is_fixed(&self, page: u32) -> bool {
        FixedPage::at(self.page_id(page)).is_some_and(|kind| kind != FixedPage::Boot)
    }

    fn extent(&mut self, extent: u32) {
        let first = self.page_id(extent * EXTENT_PAGES);
        let fixed = is_fixed_extent(extent);
        self.count(extent, fixed);
        self.fixed_pages(extent, fixed);
        let Some((free, mixed)) = self.file.extent_bits(extent) else { return };
        let (owner, is_shared) = (self.file.extent_owner(extent), self.file.is_shared(extent));
        if owner.is_some() && !(is_shared || free || mixed || fixed) {
            // Nearly all extents of a large database: no list of claimants is needed.
            return self.dedicated_pages(extent);
        }
        let mut owners: BTreeSet<UnitIndex> = owner.into_iter().collect();
        if is_shared {
            owners.extend(claimants(self.claims, first));
        }
        if free && mixed {
            self.findings.push(
                Finding::new(&registry::EXTENT_GAM_AND_SGAM)
                    .page(first)
                    .page_value("gam_page", self.page_id(gam_page_of(first.page)))
                    .page_value("sgam_page", self.page_id(sgam_page_of(first.page))),
            );
            return;
        }
        let mut claimants: Vec<Claimant> = owners.iter().map(|&unit| Claimant::Unit(unit)).collect();
        if free {
            // The GAM marks this extent as free. Units whose IAM chains list single pages of this extent also claim the
            // extent.
            let singles: BTreeSet<UnitIndex> =
                self.file.singles().range(self.pages(extent)).map(|(_, single)| single.unit).collect();
            claimants.extend(singles.difference(&owners).map(|&unit| Claimant::Unit(unit)));
        }
        if !claimants.is_empty() {
            if extent == 0 {
                // This extent contains the file header and the first allocation maps.
                claimants.insert(0, Claimant::System);
            } else if fixed {
                self.coverage.note(&limits::ALLOCATION_MAP_EXTENT_CLAIMED, format!("extent {first}"), 1);
            }
            if free {
                claimants.insert(0, Claimant::Gam);
            }
            if mixed {
                claimants.insert(0, Claimant::Sgam);
            }
            if claimants.len() > 1 {
                self.several_owners(first, &claimants);
            } else {
                self.dedicated_pages(extent);
            }
            return;
        }
        if free && fixed {
            self.several_owners(first, &[Claimant::Gam, Claimant::System]);
        } else if fixed && extent != 0 {
            // The extent contains the maps of a later GAM interval. The other pages of the extent are not checked,
            // because no real file was available to show their PFS bytes.
        } else if free || fixed {
            self.unowned_pages(extent, 0);
        } else if mixed {
            self.mixed_pages(extent);
        } else if !self.is_full_mixed(extent) && !self.is_unused_tail(extent) {
            match self.may_be_of_unknown_chain(self.pages(extent)) {
                true => self.note_owner_unknown(),
                false => {
                    let gam_page = self.page_id(gam_page_of(first.page));
                    self.findings.push(Finding::new(&registry::EXTENT_UNOWNED).page(first).ref_page(gam_page));
                }
            }
        }
    }

    /// Checks that PFS marks the pages at fixed addresses as in use. At the start of a GAM interval, these pages have
    /// an extent of their own. The boot page is in a mixed extent. Later PFS pages may be in any kind of extent
    /// (docs/format/allocation.md#legal-combinations).
    fn fixed_pages(&mut self, extent: u32, own_extent: bool) {
        for page in self.pages(extent) {
            let Some(kind) = FixedPage::at(self.page_id(page)) else { continue };
            let byte = self.file.pfs(page);
            let (is_right, expected) = match kind {
                FixedPage::Boot => (byte.is_allocated() && !byte.is_iam(), PfsByte::MIXED),
                _ if own_extent && extent == 0 => (byte.type_bits() == PfsByte::DEDICATED, PfsByte::DEDICATED),
                _ => (byte.is_allocated() && !byte.is_iam(), PfsByte::DEDICATED),
            };
            if !is_right && self.file.pfs_is_known(page) {
                self.wrong_type(page, byte, expected);
            }
        }
    }

    /// Whether the extent is the incomplete last extent of the file and none of its pages is in use. The last extent is
    /// incomplete if the number of pages in the file is not a multiple of 8. It is unknown which GAM and SGAM bits are
    /// right for this extent.
    fn is_unused_tail(&self, extent: u32) -> bool {
        let pages = self.pages(extent);
        pages.len() < EXTENT_PAGES as usize
            && pages.into_iter().all(|page| !matches!(self.file.allocation(page), Allocation::Used(_)))
    }

    fn several_owners(&mut self, extent: PageId, claimants: &[Claimant]) {
        let maps = claimants.iter().filter_map(|claimant| self.map_of(*claimant, extent));
        let mut head = Finding::new(&registry::EXTENT_SEVERAL_OWNERS).page(extent);
        head.ref_page = maps.into_iter().next();
        self.findings.push(head);
        for claimant in claimants {
            let name = match claimant {
                Claimant::Gam => "GAM".to_owned(),
                Claimant::Sgam => "SGAM".to_owned(),
                Claimant::System => "system allocation data".to_owned(),
                Claimant::Unit(unit) => match self.units.get(*unit) {
                    Some(unit) if unit.owner.object_id != 0 => self.database.object_name(unit.owner.object_id),
                    Some(unit) => format!("alloc unit ID {}", unit.id),
                    None => continue,
                },
            };
            let mut finding = Finding::new(&registry::EXTENT_OWNER).page(extent).text_value("owner_name", name);
            finding.ref_page = self.map_of(*claimant, extent);
            self.findings.push(finding);
        }
    }

    /// The allocation page that contains a claimant's claim to an extent.
    fn map_of(&self, claimant: Claimant, extent: PageId) -> Option<PageId> {
        Some(match claimant {
            Claimant::Gam => self.page_id(gam_page_of(extent.page)),
            Claimant::Sgam => self.page_id(sgam_page_of(extent.page)),
            Claimant::System => return None,
            Claimant::Unit(unit) => self.chains.intervals.page_of(unit, extent)?,
        })
    }

    /// Checks that allocated pages in a unit's own extent are marked neither as mixed nor as IAM pages. The mixed bit
    /// may remain set for pages that are not allocated (docs/format/README.md#sgam-and-mixed-bits).
    fn dedicated_pages(&mut self, extent: u32) {
        for page in self.pages(extent) {
            if let Allocation::Used(byte) = self.file.allocation(page)
                && !self.is_fixed(page)
                && byte.type_bits() != PfsByte::DEDICATED
            {
                self.wrong_type(page, byte, PfsByte::DEDICATED);
            }
        }
    }

    /// Checks that no page of a free extent, or of extent 0, is in use, except pages at fixed addresses and pages that
    /// an IAM chain lists one by one.
    fn unowned_pages(&mut self, extent: u32, expected: u8) {
        for page in self.pages(extent) {
            if let Allocation::Used(byte) = self.file.allocation(page)
                && !self.is_fixed(page)
                && !self.file.singles().contains_key(&page)
            {
                self.wrong_type(page, byte, expected);
            }
        }
    }

    /// Checks that each allocated page of a mixed extent is listed by some IAM chain: 8906.
    fn mixed_pages(&mut self, extent: u32) {
        for page in self.pages(extent) {
            let Allocation::Used(byte) = self.file.allocation(page) else { continue };
            let id = self.page_id(page);
            if self.file.singles().contains_key(&page) || self.file.is_fixed(page) {
                continue;
            }
            if self.may_be_of_unknown_chain(page..page + 1) {
                self.note_owner_unknown();
                continue;
            }
            self.findings.push(
                Finding::new(&registry::PAGE_UNOWNED)
                    .page(id)
                    .page_value("sgam_page", self.page_id(sgam_page_of(page)))
                    .page_value("pfs_page", self.page_id(pfs_page_of(page)))
                    .text_value("pfs_flags", byte.flags_text()),
            );
        }
    }

    /// Returns whether `pages`, which no known part of an IAM chain lists, may be listed in an unknown part of a chain.
    /// This is possible in three cases: one of the pages names a unit with an incomplete chain, one of the pages is too
    /// damaged to name a unit, or IAM pages were left out. A page that only a damaged IAM page listed counts as a page
    /// without an owner, as it does for a server.
    fn may_be_of_unknown_chain(&self, mut pages: std::ops::Range<u32>) -> bool {
        let Chains { may_have_more, broken, partial, has_surplus, .. } = self.chains;
        if *has_surplus {
            return true;
        }
        let is_open =
            |unit: UnitIndex| *may_have_more && broken.binary_search(&unit).is_ok() || partial.contains(&unit);
        (*may_have_more && !broken.is_empty() || !partial.is_empty())
            && pages.any(|page| match fetch(self.source, self.page_id(page)) {
                Fetched::Sound(bytes) => self.units.named_by(Page::new(&bytes).header()).any(is_open),
                Fetched::Damaged(_) | Fetched::WrongId(_) | Fetched::Unread => true,
                Fetched::Outside => false,
            })
    }

    fn note_owner_unknown(&mut self) {
        self.coverage.note(&limits::ALLOCATION_OWNER_UNKNOWN, "database", 1);
    }

    /// Returns whether the extent is, or may be, a mixed extent without free pages, which SGAM does not mark. Each page
    /// of such an extent must be listed by an IAM chain or be at a fixed address. If this is true of only some of its
    /// pages, reports the other pages.
    fn is_full_mixed(&mut self, extent: u32) -> bool {
        let pages = self.pages(extent);
        let listed =
            pages.clone().filter(|page| self.file.singles().contains_key(page) || self.file.is_fixed(*page)).count();
        if listed == pages.len() {
            return true;
        }
        // If any page of the extent is listed by an IAM chain or is at a fixed address, the extent is mixed. Any other
        // pages in use then have no owner.
        let unlisted_in_use = pages.clone().filter(|page| {
            matches!(self.file.allocation(*page), Allocation::Used(byte) if byte.is_mixed())
                && !self.file.singles().contains_key(page)
                && !self.file.is_fixed(*page)
        });
        if listed > 0 && listed + unlisted_in_use.count() == pages.len() {
            self.mixed_pages(extent);
            return true;
        }
        // Without a sound PFS page, it is unknown which pages are in use, so the extent may be a full mixed extent.
        pages.clone().any(|page| !self.file.pfs_is_known(page))
    }

    /// Checks the PFS type bits of the pages that IAM chains list one by one. Wrong bits are reported as 8948.
    fn single_pages(&mut self) {
        let wrong: Vec<(u32, PfsByte, u8)> = self
            .file
            .singles()
            .iter()
            .filter(|(page, _)| self.file.pfs_is_known(**page))
            .map(|(page, single)| (*page, self.file.pfs(*page), expected_type_bits(*single)))
            .filter(|(_, byte, expected)| byte.type_bits() != *expected)
            .collect();
        for (page, byte, expected) in wrong {
            self.wrong_type(page, byte, expected);
        }
    }

    /// Reports pages in use beyond the end of a file that was truncated within an extent: 8966. Whole extents beyond
    /// the end are reported as 2579.
    fn lost_pages(&mut self) {
        for page in self.file.lost_pages() {
            if !self.file.pfs(page).is_allocated() {
                continue;
            }
            let mut finding = Finding::new(&registry::PAGE_UNREADABLE).page(self.page_id(page));
            finding.owner = self.file.owner(page).and_then(|unit| self.units.get(unit)).map(|unit| unit.owner);
            self.findings.push(finding);
        }
    }

    fn wrong_type(&mut self, page: u32, byte: PfsByte, expected: u8) {
        self.findings.push(
            Finding::new(&registry::PFS_WRONG_TYPE)
                .page(self.page_id(page))
                .page_value("pfs_page", self.page_id(pfs_page_of(page)))
                .number("status", byte.type_bits())
                .number("expected", expected),
        );
    }

    fn count(&mut self, extent: u32, fixed: bool) {
        let used = self.pages(extent).filter(|page| matches!(self.file.allocation(*page), Allocation::Used(_))).count();
        let used = used as u64;
        let allocated = self.file.extent_bits(extent).is_some_and(|(free, _)| !free);
        if !allocated {
            return;
        }
        self.totals.extents += 1;
        self.totals.used_pages += used;
        let mixed = !fixed && self.file.extent_owner(extent).is_none();
        if mixed {
            self.totals.mixed_extents += 1;
            self.totals.mixed_pages += used;
        }
        self.totals.reserved_pages += if mixed { used } else { u64::from(EXTENT_PAGES) };
    }
}
