//! The allocation maps of a file: PFS, GAM and SGAM, loaded completely. If they are larger than the memory for them, most of
//! them are in a temporary file. Also checks that the pages at fixed addresses have the required type.

mod stretch;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use catalog::{Fetched, fetch};
use findings::registry::{self, limits};
use findings::{Coverage, Finding};
use format::allocation::{
    EXTENT_PAGES, FixedPage, INTERVAL_EXTENTS, INTERVAL_PAGES, PFS_PAGES, PfsByte, bit, bitmap, gam_page_of, pfs_bytes,
    pfs_page_of, sgam_page_of,
};
use format::boot::Boot;
use format::protection::undo_torn_bits;
use format::{AllocUnitId, Page, PageBytes, PageId, PageType};
use source::{DataFile, PageSource, read_settled};
use sums::spill::{Entry, Paged, Shelf};

use super::ahead::Ahead;
use crate::basis::ledger::FindingCollector;
use crate::basis::units::{UnitIndex, Units};
use crate::page::audit::{self, FixedFault};

/// Whether a page is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Allocation {
    /// In use.
    Used(PfsByte),
    /// Not in use, so the content of the page is meaningless.
    Free,
    /// Unknown, because the PFS page is damaged.
    Unknown,
}

const ONE_CLAIM: u8 = 1 << 2;
/// The maximum number of units that are recorded for an extent in addition to its owner. A larger number would not be
/// useful.
const MAX_CLAIMS: u8 = 7;

/// The owners of the extents and pages of a file, or of a range of the file. Needs about two bytes per page, in memory or in
/// a temporary file.
#[derive(Default)]
pub(crate) struct FileMap {
    /// File id.
    pub(crate) file_id: u16,
    /// Number of whole pages in the file.
    pub(crate) pages: u32,
    /// The first page that the maps describe: 0, or the start of the range, which is the first page of an extent.
    first: u32,
    /// Whether a page of the file outside the range of these maps was looked up.
    missed: AtomicBool,
    /// Number of pages that are missing at the end of the file according to the file header. Greater than 0 if the file
    /// was truncated.
    pub(crate) lost_from_header: u32,
    /// The PFS byte of each page, up to the end of the last extent.
    pfs: Paged<u8>,
    /// For each PFS interval, starting with the interval of the first page: whether the PFS page is sound.
    pfs_is_sound: Vec<bool>,
    /// For each extent: bit 0 means "free" in GAM, bit 1 means "mixed with free pages" in SGAM. The higher bits count
    /// the units, other than the owner, that claim the extent, up to [`MAX_CLAIMS`].
    extents: Paged<u8>,
    /// For each GAM interval, starting with the interval of the first page: whether both the GAM page and the SGAM page
    /// are sound.
    gam_is_sound: Vec<bool>,
    /// For each extent: the ordinal of the unit whose IAM page claims the extent, plus 1; 0 if no unit claims it.
    owners: Paged<u32>,
    /// The temporary file that contains maps; `None` if all maps are in memory.
    shelf: Option<Shelf>,
    /// Pages in the single-page slots of IAM pages, and the IAM pages themselves.
    singles: BTreeMap<u32, Single>,
    /// Pages at fixed addresses (file header, boot page, allocation maps) that the operating system could not read.
    pub(crate) unread: Vec<PageId>,
    /// In database master, the page with the server's settings.
    config: Option<u32>,
    /// Whether the page that may contain the server's settings is unreadable.
    config_is_unread: bool,
}

/// The address of the page in which database master stores the server's settings
/// (docs/format/allocation.md#fixed-pages).
const CONFIG: PageId = PageId::new(1, 10);

/// The extents that a unit claims although they have other owners.
#[derive(Default)]
pub(crate) struct Shared {
    /// The owners of these extents.
    pub(crate) owners: BTreeSet<UnitIndex>,
    /// The extents for which the claim was recorded.
    pub(crate) listed: Vec<u32>,
}

/// A page that is assigned to a unit individually, not as part of an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Single {
    /// The unit.
    pub(crate) unit: UnitIndex,
    /// Whether the page is an IAM page. If the value is false, the page is listed in a single-page slot of an IAM page.
    pub(crate) is_iam: bool,
}

impl FileMap {
    /// The number of extents that begin inside the file.
    pub(crate) fn extent_count(&self) -> u32 {
        self.pages.div_ceil(EXTENT_PAGES)
    }

    /// The PFS byte of a page; 0 beyond the end of the file.
    pub(crate) fn pfs(&self, page: u32) -> PfsByte {
        PfsByte(self.at(page, page, self.first, |at| self.pfs.get(at)).unwrap_or_default())
    }

    /// Returns the entry of a map for `page`, which is entry `number` of the whole file. The map begins with entry
    /// `first` of the file, and `get` returns the entry at a position of the map. If the map lacks the entry of a page of
    /// the file, sets `missed`.
    #[inline]
    fn at<T>(&self, page: u32, number: u32, first: u32, get: impl FnOnce(usize) -> Option<T>) -> Option<T> {
        let entry = number.checked_sub(first).and_then(|at| get(at as usize));
        if entry.is_none() && page < self.pages {
            self.missed.store(true, Ordering::Relaxed);
        }
        entry
    }

    #[inline]
    fn of_extent<T: Entry>(&self, extent: u32, map: &Paged<T>) -> Option<T> {
        self.at(extent.saturating_mul(EXTENT_PAGES), extent, self.first / EXTENT_PAGES, |at| map.get(at))
    }

    /// Returns whether a page of the file was looked up that is outside the range of these maps, or whose entry could not
    /// be read back from the temporary file.
    pub(crate) fn has_missed(&self) -> bool {
        self.missed.load(Ordering::Relaxed) || self.shelf.as_ref().is_some_and(Shelf::is_lost)
    }

    /// The temporary file that contains maps; `None` if all maps are in memory.
    pub(crate) fn shelf(&self) -> Option<&Shelf> {
        self.shelf.as_ref()
    }

    /// Whether the PFS page that describes `page` is sound.
    pub(crate) fn pfs_is_known(&self, page: u32) -> bool {
        let (number, first) = (page / PFS_PAGES, self.first / PFS_PAGES);
        self.at(page, number, first, |at| self.pfs_is_sound.get(at).copied()).unwrap_or_default()
    }

    /// Whether any page of a range of the file may be in use.
    pub(crate) fn may_be_used(&self, range: Range<u32>) -> bool {
        let intervals = range.clone().step_by(PFS_PAGES as usize).chain(range.end.checked_sub(1));
        let is_known = intervals.into_iter().all(|page| self.pfs_is_known(page));
        let is_in = range.start.checked_sub(self.first).zip(range.end.checked_sub(self.first));
        // `allocation` also notices that a page is outside the range of these maps.
        let Some((first, end)) = is_in.filter(|(_, end)| is_known && *end as usize <= self.pfs.len()) else {
            return true;
        };
        self.pfs.any(first as usize..end as usize, |bytes| bytes.iter().any(|byte| PfsByte(*byte).is_allocated()))
    }

    /// Whether `page` is in use.
    pub(crate) fn allocation(&self, page: u32) -> Allocation {
        let byte = self.pfs(page);
        match (page < self.pages, self.pfs_is_known(page)) {
            (false, _) => Allocation::Free,
            (true, false) => Allocation::Unknown,
            (true, true) if byte.is_allocated() => Allocation::Used(byte),
            (true, true) => Allocation::Free,
        }
    }

    /// The pages in use that PFS marks as IAM pages, in ascending order. Works only if the maps describe a whole file.
    pub(super) fn iam_pages_by_pfs(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        let starts = (0..self.pages).step_by(PFS_PAGES as usize).zip(&self.pfs_is_sound);
        let known = starts.filter(|(_, is_sound)| **is_sound).map(|(first, _)| first);
        let bytes = known.flat_map(|first| {
            let end = first.saturating_add(PFS_PAGES).min(self.pages);
            self.pfs.values(first as usize..end as usize).zip(first..)
        });
        let is_iam = |byte: PfsByte| byte.is_allocated() && byte.is_iam();
        bytes.filter(move |(byte, _)| is_iam(PfsByte(*byte))).map(|(_, page)| page)
    }

    /// The GAM and SGAM bits of an extent; `None` if the GAM page or the SGAM page is damaged.
    pub(crate) fn extent_bits(&self, extent: u32) -> Option<(bool, bool)> {
        let (page, first) = (extent.saturating_mul(EXTENT_PAGES), self.first / INTERVAL_PAGES);
        let is_sound = |at: usize| self.gam_is_sound.get(at).copied();
        let known = self.at(page, extent / INTERVAL_EXTENTS, first, is_sound).unwrap_or_default();
        let bits = self.of_extent(extent, &self.extents)?;
        known.then_some((bits & 1 != 0, bits & 2 != 0))
    }

    /// Returns, in ascending order, the pages of `range` that may have an owner: their extent is claimed, or a single
    /// page in the extent is claimed. All other extents must be skipped quickly, because a wrong file header can make
    /// the file seem to have a terabyte of such extents.
    pub(crate) fn claimed_pages(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let first = range.start / EXTENT_PAGES;
        // If the first or last page of `range` is outside the range of these maps, these two lookups record that.
        if let Some(last) = range.end.checked_sub(1).filter(|last| *last >= range.start) {
            let _ = (self.of_extent(first, &self.owners), self.of_extent(last / EXTENT_PAGES, &self.owners));
        }
        let owners = first.checked_sub(self.first / EXTENT_PAGES).map(|at| self.owners.values(at as usize..usize::MAX));
        let mut singles = self.singles.range(first * EXTENT_PAGES..).map(|(page, _)| page / EXTENT_PAGES).peekable();
        (first..)
            .zip(owners.into_iter().flatten())
            .take_while(move |(extent, _)| extent * EXTENT_PAGES < range.end)
            .filter(move |(extent, owner)| {
                let mut has_single = false;
                while singles.next_if_eq(extent).is_some() {
                    has_single = true;
                }
                *owner != 0 || has_single
            })
            .flat_map(|(extent, _)| extent * EXTENT_PAGES..(extent + 1) * EXTENT_PAGES)
            .filter(move |page| (range.start..range.end).contains(page))
    }

    /// The unit that owns the whole extent.
    pub(crate) fn extent_owner(&self, extent: u32) -> Option<UnitIndex> {
        self.of_extent(extent, &self.owners)?.checked_sub(1)
    }

    /// Claims extents for a unit. A claim to an extent that another unit already owns is recorded unless [`MAX_CLAIMS`]
    /// such claims were recorded before.
    pub(crate) fn claim_extents(&mut self, extents: impl Iterator<Item = u32>, unit: UnitIndex) -> Shared {
        // At this stage, the maps always describe a whole file.
        let mut shared = Shared::default();
        let mut taken = Vec::new();
        self.owners.edit(extents.map(|extent| extent as usize), |at, owner| match owner.checked_sub(1) {
            None => unit + 1,
            Some(other) => {
                if other != unit {
                    taken.push(at);
                    shared.owners.insert(other);
                }
                owner
            }
        });
        self.extents.edit(taken, |at, bits| {
            let is_listed = bits / ONE_CLAIM < MAX_CLAIMS;
            if is_listed {
                shared.listed.push(at as u32);
            }
            if is_listed { bits + ONE_CLAIM } else { bits }
        });
        shared
    }

    /// Whether several units claim an extent.
    pub(crate) fn is_shared(&self, extent: u32) -> bool {
        self.of_extent(extent, &self.extents).is_some_and(|bits| bits >= ONE_CLAIM)
    }

    /// The pages of the file's last extent that are beyond the end of the file but that exist according to its header.
    pub(crate) fn lost_pages(&self) -> Range<u32> {
        let end = self.pages.next_multiple_of(EXTENT_PAGES).min(self.pages.saturating_add(self.lost_from_header));
        self.pages..end
    }

    /// The IAM pages, and the pages that IAM chains list one by one, in ascending order.
    pub(crate) fn singles(&self) -> &BTreeMap<u32, Single> {
        &self.singles
    }

    /// Claims a single page. If the page is already claimed, keeps the earlier claim and returns it.
    pub(crate) fn claim_single(&mut self, page: u32, single: Single) -> Option<Single> {
        match self.singles.entry(page) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(single);
                None
            }
            std::collections::btree_map::Entry::Occupied(entry) => Some(*entry.get()),
        }
    }

    /// The unit that owns `page`, either through its extent or as a single page.
    pub(crate) fn owner(&self, page: u32) -> Option<UnitIndex> {
        self.extent_owner(page / EXTENT_PAGES).or_else(|| self.singles.get(&page).map(|single| single.unit))
    }

    /// Whether `page` is at a fixed address, so that no allocation unit owns it.
    pub(crate) fn is_fixed(&self, page: u32) -> bool {
        FixedPage::at(PageId::new(self.file_id, page)).is_some() || self.config == Some(page)
    }

    /// The page that may contain the server's settings, if it could not be read and has no owner.
    pub(crate) fn unread_config(&self) -> Option<PageId> {
        (self.config_is_unread && self.owner(CONFIG.page).is_none()).then_some(CONFIG)
    }

    /// Whether `page` is an IAM page of a chain.
    pub(crate) fn is_iam(&self, page: u32) -> bool {
        self.singles.get(&page).is_some_and(|single| single.is_iam)
    }
}

/// The number of pages of `file` that belong to the database. If the file has grown on disk but its header has not been
/// updated yet, the database ends where the header says.
pub(super) fn pages_of(file: &DataFile) -> u32 {
    file.header_pages.filter(|&claimed| claimed > 0).map_or(file.pages, |claimed| claimed.min(file.pages))
}

/// Loads the maps of `file`, and checks its pages at fixed addresses. With a `shelf`, the maps are kept there.
pub(crate) fn load(
    source: &dyn PageSource,
    (file, shelf): (&DataFile, Option<&Shelf>),
    units: &Units,
    findings: &mut FindingCollector,
    coverage: &mut Coverage,
) -> FileMap {
    let file = &DataFile { pages: pages_of(file), ..file.clone() };
    let extents = file.pages.div_ceil(EXTENT_PAGES);
    let mut map = FileMap {
        file_id: file.file_id,
        pages: file.pages,
        lost_from_header: file.header_pages.unwrap_or_default().saturating_sub(file.pages),
        pfs: Paged::new(file.pages.next_multiple_of(EXTENT_PAGES) as usize, shelf),
        extents: Paged::new(extents as usize, shelf),
        owners: Paged::new(extents as usize, shelf),
        shelf: shelf.cloned(),
        ..FileMap::default()
    };
    let mut reader = FixedPages {
        source,
        units,
        findings,
        coverage,
        unread: Vec::new(),
        config_is_unread: false,
        unchecked: None,
        is_one_interval: true,
    };
    reader.heads(file);
    let pfs_pages = (0..file.pages).step_by(PFS_PAGES as usize);
    let mut ahead = Ahead::new(source, pfs_pages.clone().map(|first| PageId::new(file.file_id, pfs_page_of(first))));
    for first in pfs_pages {
        ahead.advance();
        let page = PageId::new(file.file_id, pfs_page_of(first));
        let bytes = reader.map_page(page, FixedPage::Pfs);
        let source_bytes = bytes.as_deref().and_then(|bytes| pfs_bytes(Page::new(bytes)));
        if let Some(source_bytes) = source_bytes {
            map.pfs.fill(first as usize, source_bytes);
        } else {
            reader.unchecked(page, file.pages, PFS_PAGES, first);
        }
        map.pfs_is_sound.push(source_bytes.is_some());
    }
    reader.note_unchecked(file.file_id);
    let intervals = (0..file.pages).step_by(INTERVAL_PAGES as usize);
    // The GAM page and the SGAM page of an interval are adjacent, so it is enough to announce the GAM page.
    let mut ahead = Ahead::new(source, intervals.clone().map(|first| PageId::new(file.file_id, gam_page_of(first))));
    for first in intervals {
        ahead.advance();
        let gam_page = PageId::new(file.file_id, gam_page_of(first));
        let sgam_page = PageId::new(file.file_id, sgam_page_of(first));
        let gam = reader.map_page(gam_page, FixedPage::Gam);
        let sgam = reader.map_page(sgam_page, FixedPage::Sgam);
        let gam_bits = gam.as_deref().and_then(|bytes| bitmap(Page::new(bytes)));
        let sgam_bits = sgam.as_deref().and_then(|bytes| bitmap(Page::new(bytes)));
        map.gam_is_sound.push(gam_bits.is_some() && sgam_bits.is_some());
        if let (Some(gam_bits), Some(sgam_bits)) = (gam_bits, sgam_bits) {
            let start = (first / EXTENT_PAGES) as usize;
            map.extents.edit(start..start + INTERVAL_EXTENTS as usize, |at, _| {
                let index = (at - start) as u32;
                u8::from(bit(gam_bits, index)) | u8::from(bit(sgam_bits, index)) << 1
            });
        } else {
            let bad = if gam_bits.is_none() { gam_page } else { sgam_page };
            reader.unchecked(bad, file.pages, INTERVAL_PAGES, first);
        }
        let (diff, ml) = if first == 0 { (6, 7) } else { (first + 6, first + 7) };
        for (page, kind) in [(diff, FixedPage::DiffMap), (ml, FixedPage::MlMap)] {
            if page < file.pages {
                reader.map_page(PageId::new(file.file_id, page), kind);
            }
        }
    }
    reader.note_unchecked(file.file_id);
    map.config = reader.config(file);
    map.config_is_unread = reader.config_is_unread;
    map.unread = reader.unread;
    map
}

struct FixedPages<'a> {
    source: &'a dyn PageSource,
    units: &'a Units,
    findings: &'a mut FindingCollector,
    coverage: &'a mut Coverage,
    unread: Vec<PageId>,
    config_is_unread: bool,
    /// The pages of adjacent intervals that cannot be checked and that have not been noted yet.
    unchecked: Option<Range<u32>>,
    is_one_interval: bool,
}

impl FixedPages<'_> {
    /// Checks the file header and, in file 1, the boot page: message 5250.
    fn heads(&mut self, file: &DataFile) {
        let mut invalid: Vec<(PageId, FixedPage, Option<FixedFault>)> = Vec::new();
        let header = PageId::new(file.file_id, 0);
        if !file.header_is_sound {
            invalid.push((header, FixedPage::FileHeader, None));
        } else if let Some(mut bytes) = self.source.read_page(header) {
            // The record of the file header could be read, so the page is not encrypted, whatever its flags say.
            undo_torn_bits(&mut bytes);
            let page = Page::new(&bytes);
            if let Some(fault) = audit::fixed_fault(page).or_else(|| audit::idle_field_fault(page)) {
                invalid.push((header, FixedPage::FileHeader, Some(fault)));
            }
        } else {
            self.unread(header);
        }
        if file.file_id == PageId::BOOT.file {
            match fetch(self.source, PageId::BOOT) {
                Fetched::Unread => self.unread(PageId::BOOT),
                Fetched::Sound(bytes) => {
                    let page = Page::new(&bytes);
                    let is_boot = page.header().kind() == Some(FixedPage::Boot.page_type())
                        && page.header().alloc_unit() == AllocUnitId::SYSTEM
                        && Boot::read(page).is_some();
                    let fault = audit::fixed_fault(page).or_else(|| audit::idle_field_fault(page)).filter(|_| is_boot);
                    if !is_boot || fault.is_some() {
                        invalid.push((PageId::BOOT, FixedPage::Boot, fault));
                    }
                }
                _ => invalid.push((PageId::BOOT, FixedPage::Boot, None)),
            }
        }
        for (page, kind, fault) in invalid {
            let finding =
                Finding::new(&registry::FIXED_PAGE_INVALID).page(page).text_value("page_name", kind.message_name());
            self.findings.push(match fault {
                Some(fault) => fault.explain(finding),
                None => finding,
            });
        }
    }

    /// The page with the server's settings, if the database has one. Only its checksum and page ID are checked.
    fn config(&mut self, file: &DataFile) -> Option<u32> {
        if file.file_id != CONFIG.file || file.pages <= CONFIG.page {
            return None;
        }
        let Some(bytes) = self.source.read_page(CONFIG) else {
            self.config_is_unread = true;
            return None;
        };
        let header = *Page::new(&bytes).header();
        if header.kind() != Some(PageType::ServerConfig) || header.page_id() != CONFIG {
            return None;
        }
        let fault = audit::identity(&bytes, CONFIG);
        self.findings.extend(fault.map(|fault| {
            audit::identity_finding(&fault, CONFIG, &header, audit::named_owner(&header, self.units, true))
        }));
        Some(CONFIG.page)
    }

    /// Reads an allocation map page. If the page is not sound or has the wrong type, reports message 8946 and the
    /// faults that the audit of the page found.
    fn map_page(&mut self, id: PageId, kind: FixedPage) -> Option<Box<PageBytes>> {
        if !self.source.contains(id) {
            // The file was truncated before this page.
            let finding = Finding::new(&registry::MAP_PAGE_INVALID).page(id).number("page_type", 0);
            self.findings.push(finding.text_value("page_name", kind.message_name()));
            return None;
        }
        let Some((mut bytes, _)) = read_settled(self.source, id) else {
            self.unread(id);
            return None;
        };
        let fault = audit::identity(&bytes, id);
        undo_torn_bits(&mut bytes);
        let header = *Page::new(&bytes).header();
        let right_header = header.kind() == Some(kind.page_type()) && header.alloc_unit() == AllocUnitId::SYSTEM;
        let content = match kind {
            FixedPage::Pfs => pfs_bytes(Page::new(&bytes)).is_some(),
            _ => bitmap(Page::new(&bytes)).is_some(),
        };
        let layout = if right_header { audit::fixed_fault(Page::new(&bytes)) } else { None };
        let is_sound = fault.is_none() && right_header && content && layout.is_none();
        let idle = audit::idle_field_fault(Page::new(&bytes));
        if fault.is_none() && right_header && header.is_encrypted() && idle.is_none() {
            match is_sound {
                // Encrypted data would not have the layout of a map, so the page is not encrypted, whatever its flags
                // say.
                true => self.coverage.note(&limits::ALLOCATION_FLAGGED_ENCRYPTED, format!("page {id}"), 1),
                false => {
                    self.unread.push(id);
                    self.coverage.note(&limits::ALLOCATION_ENCRYPTED, format!("file {}", id.file), 1);
                    return None;
                }
            }
        }
        let layout = if is_sound { idle } else { layout };
        if is_sound && layout.is_none() {
            return Some(bytes);
        }
        let finding = Finding::new(&registry::MAP_PAGE_INVALID)
            .page(id)
            .text_value("page_name", kind.message_name())
            .number("page_type", header.page_type);
        self.findings.push(match layout.filter(|_| fault.is_none()) {
            Some(layout) => layout.explain(finding),
            None => finding,
        });
        if let Some(fault) = fault {
            // Messages print the owner of a page at a fixed address as unknown, because no catalog lists this page.
            self.findings.push(audit::identity_finding(
                &fault,
                id,
                &header,
                audit::named_owner(&header, self.units, true),
            ));
        }
        is_sound.then_some(bytes)
    }

    /// Notes a page that the operating system could not read.
    fn unread(&mut self, id: PageId) {
        self.unread.push(id);
        self.coverage.note(&limits::ALLOCATION_UNREADABLE, format!("page {id}"), 1);
    }

    /// Reports message 8998 for the interval that cannot be checked because its map page is damaged.
    fn unchecked(&mut self, bad: PageId, file_pages: u32, interval: u32, first: u32) {
        if self.unread.contains(&bad) {
            return;
        }
        let file = bad.file;
        let last = first.saturating_add(interval - 1).min(file_pages.saturating_sub(1));
        let (from, to) = (PageId::new(file, first), PageId::new(file, last));
        self.findings.push(Finding::new(&registry::INTERVAL_UNCHECKED).page(from).ref_page(to));
        let start = match self.unchecked.clone().filter(|run| run.end == first) {
            Some(run) => run.start,
            None => {
                self.note_unchecked(file);
                first
            }
        };
        self.unchecked = Some(start..last + 1);
        self.is_one_interval = start == first;
    }

    /// Notes the adjacent intervals that cannot be checked. All of them share one note, because a sparse file that is
    /// mostly a hole has thousands of such intervals.
    fn note_unchecked(&mut self, file: u16) {
        let Some(run) = self.unchecked.take() else { return };
        let (from, to) = (PageId::new(file, run.start), PageId::new(file, run.end - 1));
        let limit = match self.is_one_interval {
            true => &limits::ALLOCATION_INTERVAL_DAMAGED,
            false => &limits::ALLOCATION_INTERVALS_DAMAGED,
        };
        self.coverage.note(limit, format!("pages {from} to {to}"), run.len() as u64);
    }
}
