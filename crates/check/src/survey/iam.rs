//! IAM pages. This module finds the IAM pages through PFS and through their chains, checks the chains, and enters the
//! claims of the IAM pages into the file maps.

mod claim;
mod links;

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Database, FileRow};
use format::allocation::{INTERVAL_PAGES, IamHeader, PFS_PAGES, bitmap};
use format::protection::undo_torn_bits;
use format::{AllocUnitId, Page, PageBytes, PageHeader, PageId, PageType};
use source::{PageSource, read_settled};

pub(super) use claim::{expected_type_bits, iam_bitmap};

use findings::registry::{self, limits};
use findings::{Coverage, Finding};
use sums::spill::Sorter;

use super::PageSet;
use super::ahead::Ahead;
use super::claims::{Claim, Intervals};
use super::maps::{Allocation, FileMap};
use crate::basis::ledger::FindingCollector;
use crate::basis::units::{MAX_STRAY_UNITS, UnitIndex, Units};
use crate::page::audit::{self, FixedFault, IdentityFault};

/// A sound IAM page.
pub(super) struct IamPage {
    /// The address of the page.
    pub(super) id: PageId,
    /// The unit to which the page is assigned.
    pub(super) unit: UnitIndex,
    named: AllocUnitId,
    prev: PageId,
    next: PageId,
    header: IamHeader,
}

/// The maximum number of extents beyond the end of the file that are reported per IAM page. More reports would not be
/// useful.
const MAX_BEYOND_PER_PAGE: usize = 200;

/// The result of following the IAM chains.
pub(super) struct Chains {
    /// Sound IAM pages, by ascending address.
    pub(super) pages: Vec<IamPage>,
    /// Units whose chain cannot be followed to its end.
    pub(super) broken: Vec<UnitIndex>,
    /// Units that have pages in files that were not given.
    pub(super) partial: BTreeSet<UnitIndex>,
    /// Units that claim extents that other units claim too.
    pub(super) sharing: BTreeSet<UnitIndex>,
    /// IAM pages that the operating system could not read.
    pub(super) unread: Vec<PageId>,
    /// Whether there may be IAM pages whose content is unknown. There are three reasons. The operating system could not
    /// read an IAM page. An IAM page is beyond the end of a file, in a file that was not given, or marked only by a
    /// damaged PFS page. Or IAM pages were left out because there were more IAM pages than any database has. Damaged
    /// IAM pages do not count here, because they are no longer IAM pages.
    pub(super) may_have_more: bool,
    /// Whether IAM pages were left out because there were more IAM pages than any database has. The units of these
    /// pages may be unknown too.
    pub(super) has_surplus: bool,
    /// The interval that each IAM page maps.
    pub(super) intervals: Intervals,
}

struct Follower<'a> {
    source: &'a dyn PageSource,
    database: &'a Database,
    units: &'a mut Units,
    findings: &'a mut FindingCollector,
    coverage: &'a mut Coverage,
    /// Sound IAM pages, by address.
    sound: BTreeMap<PageId, IamPage>,
    /// How many more IAM pages are accepted: the first number is for units in the catalog, and the second for all other
    /// units.
    room: [u64; 2],
    /// Sound IAM pages that were not accepted, because the limit in `room` was reached. `surplus` is their number.
    left_out: PageSet,
    surplus: u64,
    /// Whether the next pointer of an IAM page names a page that no given file contains.
    leads_out: bool,
    broken: BTreeSet<UnitIndex>,
    /// Units whose chain continues at a page that was left out.
    cut: BTreeSet<UnitIndex>,
    partial: BTreeSet<UnitIndex>,
    sharing: BTreeSet<UnitIndex>,
    unread: Vec<PageId>,
}

/// Follows all IAM chains, and enters the claims of their IAM pages into `files`. Returns the chains, and a list of
/// those claims to extents that another unit had already claimed.
pub(super) fn follow(
    source: &dyn PageSource,
    database: &Database,
    units: &mut Units,
    files: &mut [FileMap],
    findings: &mut FindingCollector,
    coverage: &mut Coverage,
) -> (Chains, Sorter<Claim>) {
    // A unit has one IAM page per interval of a file. This limits the number of IAM pages for units in the catalog. The
    // number for units outside the catalog has a fixed limit.
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
        leads_out: false,
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
    let knows_pfs =
        files.iter().all(|file| (0..file.pages).step_by(PFS_PAGES as usize).all(|page| file.pfs_is_known(page)));
    let chains = Chains {
        may_have_more: follower.surplus > 0
            || !follower.unread.is_empty()
            || follower.leads_out
            || !knows_pfs
            // If a file is missing or truncated, a damaged IAM page may have pointed to an IAM page in the missing file
            // or in the truncated part.
            || missing_files(source, database).next().is_some()
            || source.files().iter().any(|file| file.header_pages.is_some_and(|pages| file.pages < pages)),
        has_surplus: follower.surplus > 0,
        pages: follower.sound.into_values().collect(),
        broken: follower.broken.union(&follower.cut).copied().collect(),
        partial: follower.partial,
        sharing: follower.sharing,
        unread: follower.unread,
        intervals,
    };
    (chains, claims)
}

impl Follower<'_> {
    fn sound(&self, page: PageId) -> Option<&IamPage> {
        self.sound.get(&page)
    }

    /// The units in the catalog, each with its first IAM page according to the catalog.
    fn heads(&self) -> Vec<(UnitIndex, PageId)> {
        let head = |(at, unit): (usize, &catalog::AllocUnit)| (at as UnitIndex, unit.first_iam);
        self.database.units.iter().enumerate().map(head).filter(|(_, head)| !head.is_none()).collect()
    }

    /// Reads every page that is an IAM page according to PFS, the catalog or another IAM page.
    fn collect(&mut self, files: &[FileMap]) {
        let mut visited = PageSet::new(files);
        for file in files {
            let pages = file.iam_pages_by_pfs().map(|page| PageId::new(file.file_id, page));
            let mut ahead = Ahead::new(self.source, pages.clone());
            for page in pages {
                ahead.advance();
                self.collect_chain(files, &mut visited, page);
            }
        }
        for (_, head) in self.heads() {
            self.collect_chain(files, &mut visited, head);
        }
    }

    /// Reads a page, and the pages that follow it along the next pointers.
    fn collect_chain(&mut self, files: &[FileMap], visited: &mut PageSet, mut id: PageId) {
        // `visited` ignores pages beyond the file size in the file header. So `sound` must be tested too, or a ring of
        // such pages would never end.
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

    /// Reads a page that may be an IAM page. If the page is damaged, this is reported only if PFS marks the page as an
    /// IAM page. If PFS does not, the pointer to the page was wrong: the page belongs to some unit, and the sweep
    /// reports the damage.
    fn read(&mut self, id: PageId, by_pfs: bool) -> Option<IamPage> {
        if !self.source.contains(id) {
            return None;
        }
        let Some((mut bytes, _)) = read_settled(self.source, id) else {
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
            // The header of an encrypted page is not encrypted, and shows that this is an IAM page.
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

    /// Notes an IAM page that the operating system could not read.
    fn unread(&mut self, id: PageId) {
        self.coverage.note(&limits::ALLOCATION_UNREADABLE, format!("page {id}"), 1);
        self.unread.push(id);
    }

    /// Returns the unit of an IAM page and counts the page in `room`. Returns `None` if there are already too many IAM
    /// pages, or too many units outside the catalog.
    fn take_room(&mut self, named: AllocUnitId) -> Option<UnitIndex> {
        let [of_known, of_strays] = &mut self.room;
        let unit = self.units.index_of_iam(named)?;
        let is_known = self.units.get(unit).is_some_and(|unit| unit.row.is_some());
        let room = if is_known { of_known } else { of_strays };
        *room = room.checked_sub(1)?;
        Some(unit)
    }

    fn report_damage(&mut self, fault: &IdentityFault, id: PageId, header: &PageHeader) {
        match fault {
            IdentityFault::Protection(fault) => self.findings.push(audit::unreadable_iam(fault, id)),
            IdentityFault::PageId => {
                let owner = audit::named_owner(header, self.units, true);
                self.findings.push(audit::identity_finding(fault, id, header, owner));
                self.report_invalid(id, header.page_type, None);
            }
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
}

fn is_iam_by_pfs(file: &FileMap, page: u32) -> bool {
    matches!(file.allocation(page), Allocation::Used(byte) if byte.is_iam())
}

/// The value of sysprufiles.filetype for a data file.
const DATA: u8 = 0;

/// Whether `file_id` is a data file that is in the catalog but was not given.
fn is_missing(source: &dyn PageSource, database: &Database, file_id: u16) -> bool {
    missing_files(source, database).any(|file| file.file_id == file_id)
}

/// The data files that are in the catalog but were not given.
pub(crate) fn missing_files<'d>(
    source: &'d dyn PageSource,
    database: &'d Database,
) -> impl Iterator<Item = &'d FileRow> {
    database.files.iter().filter(|file| file.file_type == DATA && source.file(file.file_id).is_none())
}

/// The unit and the header record of an IAM page; `None` if the page is not an IAM page.
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
