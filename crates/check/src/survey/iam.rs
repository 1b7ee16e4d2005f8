//! IAM pages: found through PFS and through the chains, checked as chains, and their claims entered into the file maps.

use std::collections::{BTreeMap, BTreeSet};

use catalog::Database;
use format::allocation::{EXTENT_PAGES, FixedPage, INTERVAL_PAGES, IamHeader, PFS_PAGES, PfsByte, bitmap, set_bits};
use format::protection::undo_torn_bits;
use format::{AllocUnitId, Page, PageBytes, PageHeader, PageId, PageType};
use source::PageSource;

use super::PageSet;
use super::claims::{Claim, Interval, Intervals};
use super::maps::{Allocation, FileMap, Single};
use crate::audit::{self, FixedFault, IdentityFault};
use crate::coverage::Coverage;
use crate::finding::{Finding, Owner};
use crate::ledger::Ledger;
use crate::registry::{self, limits};
use crate::spill::Sorter;
use crate::units::{MAX_STRAY_UNITS, UnitIndex, Units};

/// A sound IAM page.
pub(super) struct IamPage {
    /// Where it lies.
    pub(super) id: PageId,
    /// The unit it counts for.
    pub(super) unit: UnitIndex,
    named: AllocUnitId,
    prev: PageId,
    next: PageId,
    header: IamHeader,
}

/// Extents behind the end of the file that are listed of one IAM page; more say nothing more.
const MAX_BEYOND_PER_PAGE: u64 = 200;

/// What following the chains gave.
pub(super) struct Chains {
    /// Sound IAM pages, by place.
    pub(super) pages: Vec<IamPage>,
    /// Units whose chain cannot be followed to its end.
    pub(super) broken: Vec<UnitIndex>,
    /// Units that have pages in files that were not given.
    pub(super) partial: BTreeSet<UnitIndex>,
    /// Units that claim extents which others claim too.
    pub(super) sharing: BTreeSet<UnitIndex>,
    /// IAM pages that the system could not read.
    pub(super) unread: Vec<PageId>,
    /// IAM pages that were left out, as no database has so many.
    pub(super) surplus: u64,
    /// The interval of each IAM page.
    pub(super) intervals: Intervals,
}

struct Follower<'a> {
    source: &'a dyn PageSource,
    database: &'a Database,
    units: &'a mut Units,
    findings: &'a mut Ledger,
    coverage: &'a mut Coverage,
    /// Sound IAM pages, by place.
    sound: BTreeMap<PageId, IamPage>,
    /// How many more there may be of units in the catalogue, and of others.
    room: [u64; 2],
    /// Sound ones for which there was none, and how many.
    left_out: PageSet,
    surplus: u64,
    broken: BTreeSet<UnitIndex>,
    /// Units whose chain goes on at a page that was left out.
    cut: BTreeSet<UnitIndex>,
    partial: BTreeSet<UnitIndex>,
    sharing: BTreeSet<UnitIndex>,
    unread: Vec<PageId>,
}

/// Follows all IAM chains and enters what they claim into `files`. Also gives the claims to extents that another unit
/// claimed before.
pub(super) fn follow(
    source: &dyn PageSource,
    database: &Database,
    units: &mut Units,
    files: &mut [FileMap],
    findings: &mut Ledger,
    coverage: &mut Coverage,
) -> (Chains, Sorter<Claim>) {
    // A unit has one IAM page an interval; some may be of units that are not in the catalogue.
    let intervals: u64 = files.iter().map(|file| u64::from(file.pages.div_ceil(INTERVAL_PAGES))).sum();
    let mut follower = Follower {
        source,
        database,
        room: [database.units.len() as u64 * intervals, MAX_STRAY_UNITS as u64],
        units,
        findings,
        coverage,
        sound: BTreeMap::new(),
        left_out: PageSet::new(files),
        surplus: 0,
        broken: BTreeSet::new(),
        cut: BTreeSet::new(),
        partial: BTreeSet::new(),
        sharing: BTreeSet::new(),
        unread: Vec::new(),
    };
    follower.collect(files);
    follower.check_heads();
    follower.check_links();
    follower.assign_units();
    let intervals = follower.check_intervals();
    let claims = follower.claim(files);
    for &unit in &follower.broken {
        if let Some(unit) = follower.units.get(unit) {
            follower.findings.push(Finding::new(&registry::IAM_INVALID).owner(unit.owner));
        }
    }
    if follower.surplus > 0 {
        follower.coverage.note(&limits::ALLOCATION_IAM_SURPLUS, "IAM pages", follower.surplus);
    }
    let chains = Chains {
        pages: follower.sound.into_values().collect(),
        broken: follower.broken.union(&follower.cut).copied().collect(),
        partial: follower.partial,
        sharing: follower.sharing,
        unread: follower.unread,
        surplus: follower.surplus,
        intervals,
    };
    (chains, claims)
}

impl Follower<'_> {
    fn sound(&self, page: PageId) -> Option<&IamPage> {
        self.sound.get(&page)
    }

    /// The units of the catalogue with the IAM page it names as first.
    fn heads(&self) -> Vec<(UnitIndex, PageId)> {
        let head = |(at, unit): (usize, &catalog::AllocUnit)| (at as UnitIndex, unit.first_iam);
        self.database.units.iter().enumerate().map(head).filter(|(_, head)| !head.is_none()).collect()
    }

    /// Reads every page that PFS, the catalogue or another IAM page calls an IAM page.
    fn collect(&mut self, files: &[FileMap]) {
        let mut visited = PageSet::new(files);
        for file in files {
            let intervals = (0..file.pages).step_by(PFS_PAGES as usize).filter(|first| file.pfs_is_known(*first));
            let pages = intervals.flat_map(|first| first..first.saturating_add(PFS_PAGES).min(file.pages));
            for page in pages.filter(|page| is_iam_by_pfs(file, *page)) {
                self.collect_chain(files, &mut visited, PageId::new(file.file_id, page));
            }
        }
        for (_, head) in self.heads() {
            self.collect_chain(files, &mut visited, head);
        }
    }

    /// Reads a page, and those to which its next pointer leads.
    fn collect_chain(&mut self, files: &[FileMap], visited: &mut PageSet, mut id: PageId) {
        // What lies behind the end that a file header tells is in no set of pages.
        while !visited.contains(id) && !self.sound.contains_key(&id) {
            visited.insert(id);
            let file = files.iter().find(|file| file.file_id == id.file);
            let by_pfs = file.is_some_and(|file| is_iam_by_pfs(file, id.page));
            let Some(page) = self.read(id, by_pfs) else { return };
            let next = page.next;
            self.sound.insert(id, page);
            if next.is_none() {
                return;
            }
            id = next;
        }
    }

    /// Reads one candidate. A damaged page is reported if PFS calls it an IAM page; otherwise it is another page of some
    /// unit, to which a pointer leads by mistake, and the sweep reports it.
    fn read(&mut self, id: PageId, by_pfs: bool) -> Option<IamPage> {
        if !self.source.contains(id) {
            return None;
        }
        let Some(mut bytes) = self.source.read_page(id) else {
            self.unread(id);
            return None;
        };
        let fault = audit::identity(&bytes, id);
        undo_torn_bits(&mut bytes);
        let page = Page::new(&bytes);
        let header = *page.header();
        if let Some(fault) = fault {
            if by_pfs {
                self.report_damage(&fault, id, &header);
            }
            return None;
        }
        match iam_page(&bytes, id) {
            Some((named, iam)) => {
                if let Some(fault) = audit::idle_field_fault(page) {
                    self.report_invalid(id, header.page_type, Some(fault));
                }
                if header.is_encrypted() {
                    self.coverage.note(&limits::ALLOCATION_FLAGGED_ENCRYPTED, format!("page {id}"), 1);
                }
                let unit = self.take_room(named);
                if unit.is_none() {
                    self.left_out.insert(id);
                    self.surplus += 1;
                }
                Some(IamPage { id, unit: unit?, named, prev: header.prev(), next: header.next(), header: iam })
            }
            // The header of an encrypted page still says what it is.
            None if header.is_encrypted() && header.kind() == Some(PageType::Iam) => {
                self.coverage.note(&limits::ALLOCATION_ENCRYPTED, format!("file {}", id.file), 1);
                self.unread.push(id);
                None
            }
            None => {
                if by_pfs && header.kind() == Some(PageType::Iam) {
                    self.report_invalid(id, header.page_type, audit::fixed_fault(Page::new(&bytes)));
                }
                None
            }
        }
    }

    /// An IAM page that the system could not read.
    fn unread(&mut self, id: PageId) {
        self.coverage.note(&limits::ALLOCATION_UNREADABLE, format!("page {id}"), 1);
        self.unread.push(id);
    }

    /// The unit of another IAM page, if there is room for that.
    fn take_room(&mut self, named: AllocUnitId) -> Option<UnitIndex> {
        let [of_known, of_strays] = &mut self.room;
        let unit = self.units.index_of_iam(named)?;
        let is_known = self.units.get(unit).is_some_and(|unit| unit.row.is_some());
        let room = if is_known { of_known } else { of_strays };
        *room = room.checked_sub(1)?;
        Some(unit)
    }

    fn report_damage(&mut self, fault: &IdentityFault, id: PageId, header: &PageHeader) {
        self.findings.push(audit::identity_finding(fault, id, header, self.units, true));
        match fault {
            IdentityFault::Protection(_) => {
                let owner = Owner::unknown(header.alloc_unit());
                self.findings.push(Finding::new(&registry::IAM_UNREADABLE).owner(owner).page(id));
            }
            IdentityFault::PageId => self.report_invalid(id, header.page_type, None),
        }
    }

    fn report_invalid(&mut self, id: PageId, page_type: u8, layout: Option<FixedFault>) {
        let finding = Finding::new(&registry::MAP_PAGE_INVALID).page(id).number("page_type", page_type);
        let finding = finding.text_value("page_name", "IAM_PAGE");
        self.findings.push(match layout {
            Some(layout) => layout.explain(finding),
            None => finding,
        });
    }

    /// The catalogue's pointers: 8968, 2575, 8959.
    fn check_heads(&mut self) {
        for (unit, head) in self.heads() {
            let Some(owner) = self.units.get(unit).map(|unit| unit.owner) else { continue };
            if self.is_in_missing_file(head) {
                self.partial.insert(unit);
                continue;
            }
            if !self.source.contains(head) {
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

    /// The pointers between IAM pages: 2575, 2576, 8969, 2577.
    fn check_links(&mut self) {
        let heads: BTreeMap<PageId, UnitIndex> = self.heads().into_iter().map(|(unit, head)| (head, unit)).collect();
        for page in self.sound.values() {
            if [page.next, page.prev].iter().any(|link| !link.is_none() && self.is_in_missing_file(*link)) {
                self.partial.insert(page.unit);
            }
            if self.left_out.contains(page.next) {
                self.cut.insert(page.unit);
            } else if self.loses_its_next(page) {
                self.broken.insert(page.unit);
            }
            let found = self.links_of(page, heads.contains_key(&page.id));
            self.findings.extend(found);
        }
    }

    /// Whether a page has a next one that is no sound IAM page.
    fn loses_its_next(&self, page: &IamPage) -> bool {
        let is_known = self.sound(page.next).is_some() || self.left_out.contains(page.next);
        !page.next.is_none() && !self.is_in_missing_file(page.next) && !is_known
    }

    /// What is wrong with the links of a page.
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
                // The catalogue's pointer counts as number -1: the first page has 0.
                true if page.header.sequence != 0 => found.push(sequence(owner, PageId::NONE, -1, page)),
                true => {}
                // Without the whole of sysallocunits nobody knows whether a row names it.
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

    /// Whom messages call the owner of an IAM page. A unit whose catalogue row names no IAM page is not loaded by
    /// CHECKDB, so that it prints as unknown (docs/format/cases.md#case-13).
    fn owner_of(&self, page: &IamPage) -> Owner {
        let unit = self.units.get(page.unit);
        let named =
            unit.and_then(|unit| self.database.units.get(unit.row?)).is_some_and(|row| !row.first_iam.is_none());
        unit.filter(|_| named).map_or(Owner::unknown(page.named), |unit| unit.owner)
    }

    /// A pointer into a file that the catalogue knows and that was not given: nothing can be said of it.
    fn is_in_missing_file(&self, page: PageId) -> bool {
        is_missing(self.source, self.database, page.file)
    }

    /// Pages of a chain that carry another unit's id: 8959. They count for the chain's unit, unless that other unit's
    /// own chain has them.
    fn assign_units(&mut self) {
        let mut in_own_chain = BTreeSet::new();
        let mut foreign = Vec::new();
        let mut visited = BTreeSet::new();
        for (unit, head) in self.heads() {
            let (mut from, mut at) = (PageId::NONE, head);
            while let Some(page) = self.sound(at) {
                if !visited.insert(at) {
                    // Another walk, or this one, has been here: of a unit that is not this one's, once is enough.
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

    /// The filegroup of each file by the units that have an IAM page for it, if there are several and all agree.
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

    /// One IAM page an interval (8947), in the right filegroup (8996). A file header that contradicts the catalogue and all
    /// who use the file is the one that is wrong (5250).
    fn check_intervals(&mut self) -> Intervals {
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

    /// Enters the claims of all IAM pages; returns those to extents that another unit claimed before.
    fn claim(&mut self, files: &mut [FileMap]) -> Sorter<Claim> {
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
            let Some(bits) = self.source.read_page(id).and_then(|bytes| iam_bitmap(&bytes)) else {
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
                    let mut beyond = 0u64;
                    for index in set_bits(&bits) {
                        let extent = start.page / EXTENT_PAGES + index;
                        let first = PageId::new(start.file, extent.saturating_mul(EXTENT_PAGES));
                        if extent >= file.extent_count() {
                            beyond += 1;
                            if beyond <= MAX_BEYOND_PER_PAGE {
                                self.findings.push(out_of_range(owner, first).ref_page(id));
                            }
                            continue;
                        }
                        if file.claim_extent(extent, page.unit) {
                            claims.push(Claim { extent: first, unit: page.unit });
                        }
                        if let Some(other) = file.extent_owner(extent).filter(|other| *other != page.unit) {
                            self.sharing.extend([page.unit, other]);
                        }
                    }
                    if let more @ 1.. = beyond.saturating_sub(MAX_BEYOND_PER_PAGE) {
                        self.coverage.note(&limits::ALLOCATION_IAM_BEYOND_END, "IAM pages", more);
                    }
                }
                // A file that was shrunk below the interval may leave its empty IAM page behind.
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

    /// A page listed twice: by two units 8910, by one 8973.
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

fn is_iam_by_pfs(file: &FileMap, page: u32) -> bool {
    matches!(file.allocation(page), Allocation::Used(byte) if byte.is_iam())
}

/// Whether `file_id` is a data file that the catalogue knows and that was not given.
pub(crate) fn is_missing(source: &dyn PageSource, database: &Database, file_id: u16) -> bool {
    const DATA: u8 = 0;
    source.file(file_id).is_none()
        && database.files.iter().any(|file| file.file_id == file_id && file.file_type == DATA)
}

fn out_of_range(owner: Owner, page: PageId) -> Finding {
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

/// The unit and header record of an IAM page; `None` when the page is not one.
fn iam_page(bytes: &PageBytes, id: PageId) -> Option<(AllocUnitId, IamHeader)> {
    let page = Page::new(bytes);
    let header = page.header();
    if header.kind() != Some(PageType::Iam) || header.page_id() != id {
        return None;
    }
    bitmap(page)?;
    if audit::fixed_fault(page).is_some() {
        return None;
    }
    Some((header.alloc_unit(), IamHeader::read(page)?))
}

/// The bitmap of an IAM page as it lies on disk.
pub(super) fn iam_bitmap(raw: &PageBytes) -> Option<[u8; format::allocation::BITMAP_BYTES]> {
    let mut bytes = *raw;
    undo_torn_bits(&mut bytes);
    bitmap(Page::new(&bytes)).copied()
}

/// The PFS type bits that a page in a chain's list must have.
pub(super) fn expected_type_bits(single: Single) -> u8 {
    if single.is_iam { PfsByte::IAM } else { PfsByte::MIXED }
}
