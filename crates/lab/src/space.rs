//! Allocates pages: GAM, SGAM, PFS, the differential and minimally-logged maps, and the IAM chains of allocation units.

use std::collections::{BTreeMap, VecDeque};

use crate::bits::BitSet;
use crate::disk::{Disk, LabError, file_id, file_index};
use crate::ids::{EXTENT, GAM_INTERVAL, PAGE, PFS_INTERVAL, PageId, UnitId};
use crate::page::{Page, PageVerify, page_type};
use crate::random::mix;

const EXTENTS_PER_INTERVAL: u32 = GAM_INTERVAL / EXTENT;
const MAP_BYTES: usize = 7988;
/// The header of the bitmap record on GAM, SGAM and IAM pages. Together with this header, the record has 7,992 bytes.
const MAP_HEADER: [u8; 4] = [0, 0, 0x38, 0x1F];
/// The maximum number of PFS intervals per file whose PFS bytes are kept in memory.
const CACHED_INTERVALS: usize = 128;

/// Bit of a PFS byte: the page is allocated.
pub(crate) const ALLOCATED: u8 = 0x40;
/// Bit of a PFS byte: the page belongs to a mixed extent.
pub(crate) const MIXED: u8 = 0x20;
/// Bit of a PFS byte: the page is an IAM page.
pub(crate) const IAM_PAGE: u8 = 0x10;
/// Bit of a PFS byte: the page has ghosts.
pub(crate) const GHOSTS: u8 = 0x08;

/// The PFS fullness class, 0 to 4, of a heap or LOB page with `filled` bytes.
pub(crate) fn fullness(filled: usize) -> u8 {
    match filled * 100 {
        0 => 0,
        percent if percent <= 8096 * 50 => 1,
        percent if percent <= 8096 * 80 => 2,
        percent if percent <= 8096 * 95 => 3,
        _ => 4,
    }
}

/// The allocation state of all files.
pub(crate) struct Space {
    /// The data files.
    pub disk: Disk,
    files: Vec<FileSpace>,
    /// The least number of pages of each file, up to which extents are reserved.
    least_pages: u32,
}

/// A saved allocation state, to which `return_to` can return.
pub(crate) struct Position(Vec<FileSpace>);

#[derive(Clone, Default)]
struct FileSpace {
    group: u16,
    used: BitSet,
    mixed: BitSet,
    /// Free pages of mixed extents. The first list is for the reserved extents at the start of the file, the second
    /// list for all other extents.
    singles: [VecDeque<u32>; 2],
    cursor: [u32; 2],
    highest: u32,
    pfs: BTreeMap<u32, Box<[u8; PFS_INTERVAL as usize]>>,
    spilled: BitSet,
}

/// An allocation unit under construction.
#[derive(Clone)]
pub(crate) struct Unit {
    /// Allocation unit ID.
    pub id: UnitId,
    /// The filegroup in which the unit allocates its pages.
    pub group: u16,
    /// Whether the unit belongs to a system table. Such units get their pages from the reserved extents at the start of
    /// file 1.
    pub system: bool,
    /// Whether the first eight pages of the unit come from mixed extents.
    pub mixed_first: bool,
    /// The share of the unit in the extents that are reserved without pages in use: its number, and the number of all
    /// such units. `None` if it has no such extents.
    pub(crate) share: Option<(u32, u32)>,
    /// Whether the pages of each extent are allocated in another order than that of their page numbers.
    pub(crate) fragmented: bool,
    /// The first page: the leftmost leaf page, or the first page of a heap.
    pub first: PageId,
    /// Root page.
    pub root: PageId,
    /// Number of pages in use, including IAM pages.
    pub used: u64,
    /// Number of leaf pages.
    pub data: u64,
    /// Number of reserved pages.
    pub reserved: u64,
    iams: Vec<Iam>,
    open: Option<(u16, u32, u32)>,
    turn: usize,
    singles: usize,
}

#[derive(Clone)]
struct Iam {
    page: PageId,
    file: u16,
    interval: u32,
    bits: BitSet,
    singles: Vec<PageId>,
}

impl Unit {
    /// Creates a unit without pages.
    pub(crate) fn new(id: UnitId, group: u16) -> Self {
        Self {
            id,
            group,
            system: false,
            mixed_first: false,
            share: None,
            fragmented: false,
            first: PageId::NONE,
            root: PageId::NONE,
            used: 0,
            data: 0,
            reserved: 0,
            iams: Vec::new(),
            open: None,
            turn: 0,
            singles: 0,
        }
    }

    /// The first IAM page; (0:0) if the unit has no pages.
    pub(crate) fn first_iam(&self) -> PageId {
        self.iams.first().map_or(PageId::NONE, |iam| iam.page)
    }
}

impl Space {
    /// Starts the allocation in new files. `groups` contains the filegroup of each file. The first `reserved` extents
    /// of file 1 are reserved for system tables. Each file has at least `least_pages` pages.
    pub(crate) fn new(disk: Disk, groups: &[u16], (reserved, least_pages): (u32, u32)) -> Result<Self, LabError> {
        let mut files: Vec<FileSpace> = Vec::with_capacity(groups.len());
        for &group in groups {
            let mut file = FileSpace { group, cursor: [1, 1], ..FileSpace::default() };
            file.used.insert(0);
            files.push(file);
        }
        let mut space = Self { disk, files, least_pages };
        for (index, file) in space.files.iter_mut().enumerate() {
            if index == 0 {
                // The file is at least long enough for the reserved extents, even if no table is stored after them.
                (file.cursor[1], file.highest) = (1 + reserved, reserved);
            }
            for page in [0, 1, 2, 3, 6, 7] {
                file.set_pfs(&mut space.disk, file_id(index), page, ALLOCATED | 4)?;
            }
        }
        Ok(space)
    }

    /// Allocates a page with a fixed address in a mixed extent of file 1: the boot page or a page of sysfiles1.
    pub(crate) fn take_fixed(&mut self, page: u32, pfs: u8) -> Result<(), LabError> {
        let file = &mut self.files[0];
        let extent = page / EXTENT;
        if !file.used.has(extent) {
            file.used.insert(extent);
            file.mixed.insert(extent);
            file.highest = file.highest.max(extent);
            file.singles[0].extend(extent * EXTENT..(extent + 1) * EXTENT);
        }
        file.singles[0].retain(|&free| free != page);
        file.set_pfs(&mut self.disk, 1, page, pfs)
    }

    /// Sets up the unit of sysfiles1, which has a data page and an IAM page with fixed addresses.
    pub(crate) fn fixed_unit(&mut self, unit: &mut Unit, iam: u32, page: u32) {
        let page = PageId::new(1, page);
        unit.iams.push(Iam {
            page: PageId::new(1, iam),
            file: 1,
            interval: 0,
            bits: BitSet::default(),
            singles: vec![page],
        });
        (unit.first, unit.root, unit.used, unit.data, unit.reserved) = (page, page, 2, 1, 2);
        unit.singles = 1;
    }

    /// Allocates the next page of a unit. `pfs` contains the bits of its PFS byte, except the bits for allocated pages
    /// and mixed extents, which are added here.
    pub(crate) fn page(&mut self, unit: &mut Unit, pfs: u8) -> Result<PageId, LabError> {
        unit.used += 1;
        if unit.mixed_first && unit.singles < 8 {
            return self.single_page(unit, pfs);
        }
        loop {
            if let Some((file, next, end)) = unit.open {
                unit.open = (next + 1 < end).then_some((file, next + 1, end));
                let next = if unit.fragmented { out_of_order(next) } else { next };
                // Any extent may contain a PFS page, which must be skipped.
                if next.is_multiple_of(PFS_INTERVAL) {
                    continue;
                }
                let id = PageId::new(file, next);
                self.files[file_index(file)].set_pfs(&mut self.disk, file, next, ALLOCATED | pfs)?;
                return Ok(id);
            }
            self.extend(unit)?;
        }
    }

    /// Replaces the PFS byte of an allocated page. The bits for allocated pages, mixed extents and IAM pages keep their
    /// values.
    pub(crate) fn mark(&mut self, page: PageId, pfs: u8) -> Result<(), LabError> {
        let file = &mut self.files[file_index(page.file)];
        let kept = file.pfs_byte(&mut self.disk, page)? & (ALLOCATED | MIXED | IAM_PAGE);
        file.set_pfs(&mut self.disk, page.file, page.page, kept | pfs)
    }

    fn single_page(&mut self, unit: &mut Unit, pfs: u8) -> Result<PageId, LabError> {
        let file = self.turn(unit)?;
        let iam = self.iam(unit, file, 0)?;
        let page = self.mixed_page(file, unit.system, pfs)?;
        unit.iams[iam].singles.push(page);
        unit.singles += 1;
        unit.reserved += 1;
        Ok(page)
    }

    /// Allocates one more extent to the unit. The files of its filegroup are used in turn.
    fn extend(&mut self, unit: &mut Unit) -> Result<(), LabError> {
        let index = self.turn(unit)?;
        let extent = self.files[index].take_extent(usize::from(!unit.system));
        let iam = self.iam(unit, index, extent / EXTENTS_PER_INTERVAL)?;
        unit.iams[iam].bits.insert(extent % EXTENTS_PER_INTERVAL);
        unit.reserved += u64::from(EXTENT);
        unit.open = Some((file_id(index), extent * EXTENT, (extent + 1) * EXTENT));
        Ok(())
    }

    fn turn(&self, unit: &mut Unit) -> Result<usize, LabError> {
        for step in 0..self.files.len() {
            let index = (unit.turn + step) % self.files.len();
            if self.files[index].group == unit.group && !(unit.system && index > 0) {
                unit.turn = index + 1;
                return Ok(index);
            }
        }
        Err(LabError::Description(format!("filegroup {} has no file", unit.group)))
    }

    /// Reserves the unit's share of all free extents.
    fn reserve(&mut self, unit: &mut Unit, share: (u32, u32)) -> Result<(), LabError> {
        for index in 0..self.files.len() {
            if self.files[index].group != unit.group {
                continue;
            }
            let cursor = self.files[index].cursor;
            let first = cursor[0].max(cursor[1]);
            for interval in 0..self.least_pages / GAM_INTERVAL {
                // The IAM page is in its own interval or in one before it.
                self.files[index].cursor[1] = first.max(interval * EXTENTS_PER_INTERVAL);
                let iam = self.iam(unit, index, interval)?;
                let begin = interval * EXTENTS_PER_INTERVAL;
                let file = &mut self.files[index];
                for extent in first.max(begin + 1)..begin + EXTENTS_PER_INTERVAL {
                    if !file.used.has(extent) && is_of_share(share, index, extent) {
                        unit.iams[iam].bits.insert(extent - begin);
                        unit.reserved += u64::from(EXTENT);
                        file.used.insert(extent);
                        // One share is enough: each further one would read and write all PFS pages of a huge database.
                        if share.0 == 0 {
                            file.mark_freed(&mut self.disk, index, extent)?;
                        }
                    }
                }
            }
            self.files[index].cursor = cursor;
        }
        Ok(())
    }

    /// Returns the position, in the list of the unit's IAM pages, of the IAM page for an interval of a file. Allocates
    /// the IAM page if the unit does not have it yet.
    fn iam(&mut self, unit: &mut Unit, index: usize, interval: u32) -> Result<usize, LabError> {
        let file = file_id(index);
        if let Some(found) = unit.iams.iter().position(|iam| iam.file == file && iam.interval == interval) {
            return Ok(found);
        }
        let page = self.mixed_page(index, unit.system, IAM_PAGE)?;
        unit.used += 1;
        unit.reserved += 1;
        unit.iams.push(Iam { page, file, interval, bits: BitSet::default(), singles: Vec::new() });
        Ok(unit.iams.len() - 1)
    }

    fn mixed_page(&mut self, index: usize, system: bool, pfs: u8) -> Result<PageId, LabError> {
        let file = &mut self.files[index];
        let region = usize::from(!system);
        loop {
            if let Some(page) = file.singles[region].pop_front() {
                if page.is_multiple_of(PFS_INTERVAL) {
                    continue;
                }
                file.set_pfs(&mut self.disk, file_id(index), page, ALLOCATED | MIXED | pfs)?;
                return Ok(PageId::new(file_id(index), page));
            }
            let extent = file.take_extent(region);
            file.mixed.insert(extent);
            file.singles[region].extend(extent * EXTENT..(extent + 1) * EXTENT);
        }
    }

    /// Saves the current allocation state.
    pub(crate) fn position(&self) -> Position {
        Position(self.files.clone())
    }

    /// Undoes all allocations since the allocation state was saved as `position`.
    pub(crate) fn return_to(&mut self, position: &Position) {
        self.files.clone_from(&position.0);
    }

    /// Writes the IAM chain of a completed unit. Then frees the memory of its bitmaps, because a database may have very
    /// many units.
    pub(crate) fn close(&mut self, unit: &mut Unit) -> Result<(), LabError> {
        if let Some(share) = unit.share {
            self.reserve(unit, share)?;
        }
        for (number, iam) in unit.iams.iter().enumerate() {
            let neighbour =
                |at: Option<usize>| at.and_then(|at| unit.iams.get(at)).map_or(PageId::NONE, |iam| iam.page);
            let links = (neighbour(number.checked_sub(1)), neighbour(Some(number + 1)));
            // The pages of sysfiles1, including this IAM page, have an old format: they have no page protection, and
            // the offsets of their records are multiples of four.
            let old = unit.id.0 == 8 << 16;
            let mut page = map_page(page_type::IAM, unit.id, &iam.bits.bytes(0, MAP_BYTES), if old { 4 } else { 1 });
            page.patch(0, 4, &(number as u32).to_le_bytes());
            page.patch(0, 40, &PageId::new(iam.file, iam.interval * GAM_INTERVAL).bytes());
            for (place, single) in iam.singles.iter().enumerate() {
                page.patch(0, 46 + 6 * place, &single.bytes());
            }
            if old {
                page.set_flags(2);
            }
            let verify = if old { PageVerify::None } else { self.disk.verify };
            self.disk.write_as(&mut page, iam.page, links, verify)?;
        }
        for iam in &mut unit.iams {
            (iam.bits, iam.singles) = Default::default();
        }
        Ok(())
    }

    /// The number of pages in each file, which is at least `least`.
    pub(crate) fn sizes(&self, least: u32) -> Vec<u32> {
        self.files.iter().map(|file| ((file.highest + 1) * EXTENT).max(least.next_multiple_of(EXTENT))).collect()
    }

    /// Writes the allocation maps of all files. `sizes` has the number of pages in each file.
    pub(crate) fn write_maps(&mut self, sizes: &[u32]) -> Result<(), LabError> {
        for (index, &pages) in sizes.iter().enumerate() {
            let id = file_id(index);
            for interval in 0..pages.div_ceil(GAM_INTERVAL) {
                self.write_interval_maps(index, interval)?;
            }
            for interval in 0..pages.div_ceil(PFS_INTERVAL) {
                let place = if interval == 0 { 1 } else { interval * PFS_INTERVAL };
                if interval > 0 {
                    self.files[index].set_pfs(&mut self.disk, id, place, ALLOCATED)?;
                }
                let states = self.files[index].take_interval(&mut self.disk, id, interval)?;
                let mut page = Page::new(page_type::PFS, 0, UnitId::FIXED_PAGES, 0);
                let mut record = vec![0, 0, 0x9C, 0x1F];
                record.extend(&states[..]);
                page.push(&record);
                page.set_type_flags(u8::from(states.iter().any(|state| state & GHOSTS != 0)));
                self.disk.write(&mut page, PageId::new(id, place), Default::default())?;
            }
        }
        Ok(())
    }

    fn write_interval_maps(&mut self, index: usize, interval: u32) -> Result<(), LabError> {
        let id = file_id(index);
        let file = &mut self.files[index];
        let from = interval * EXTENTS_PER_INTERVAL;
        let base = interval * GAM_INTERVAL;
        // The extent with these maps.
        file.used.insert(from);
        let used = file.used.bytes(from, MAP_BYTES);
        let free: Vec<u8> = used.iter().map(|byte| !byte).collect();
        let mut with_room = BitSet::default();
        for &page in file.singles.iter().flatten().filter(|&&page| !page.is_multiple_of(PFS_INTERVAL)) {
            with_room.insert(page / EXTENT);
        }
        let with_room = with_room.bytes(from, MAP_BYTES);
        let (gam, sgam) = if interval == 0 { (2, 3) } else { (base, base + 1) };
        let maps = [
            (gam, page_type::GAM, free),
            (sgam, page_type::SGAM, with_room),
            (base + 6, page_type::DIFFERENTIAL, used),
            (base + 7, page_type::MINIMALLY_LOGGED, vec![0; MAP_BYTES]),
        ];
        for (place, kind, bits) in maps {
            file.set_pfs(&mut self.disk, id, place, ALLOCATED | 4)?;
            let verify = if kind == page_type::MINIMALLY_LOGGED { PageVerify::None } else { self.disk.verify };
            let mut page = map_page(kind, UnitId::FIXED_PAGES, &bits, 1);
            self.disk.write_as(&mut page, PageId::new(id, place), Default::default(), verify)?;
        }
        Ok(())
    }
}

/// Whether an extent belongs to this share of the reserved extents. Runs of eight extents belong to the same share, so the
/// maps cannot be compressed to nearly nothing. As many runs stay free as one share has.
fn is_of_share((number, of): (u32, u32), index: usize, extent: u32) -> bool {
    mix((index as u64) << 32 | u64::from(extent / 8)) % u64::from(of + 1) == u64::from(number)
}

/// Permutes the pages of an extent, so that they are allocated out of order.
fn out_of_order(page: u32) -> u32 {
    page / EXTENT * EXTENT + page * 3 % EXTENT
}

/// A map page with a header record and a bitmap record.
fn map_page(kind: u8, unit: UnitId, bits: &[u8], alignment: usize) -> Page {
    let mut page = Page::new(kind, 0, unit, 90);
    let mut head = vec![0; 94];
    head[2] = 0x5E;
    page.push_padded(&head, alignment);
    page.push(&[&MAP_HEADER[..], bits].concat());
    page
}

impl FileSpace {
    /// Leaves the mixed bit in the PFS bytes of some pages of an extent, as it is after such pages were freed.
    fn mark_freed(&mut self, disk: &mut Disk, index: usize, extent: u32) -> Result<(), LabError> {
        let random = mix((index as u64) << 32 | u64::from(extent) << 3 | 1);
        for page in (0..EXTENT).filter(|page| random >> (8 + page) & 1 == 1) {
            let page = extent * EXTENT + page;
            if !page.is_multiple_of(PFS_INTERVAL) {
                self.set_pfs(disk, file_id(index), page, MIXED)?;
            }
        }
        Ok(())
    }

    fn take_extent(&mut self, region: usize) -> u32 {
        let mut extent = self.cursor[region];
        // The first extent of each GAM interval is reserved for map pages.
        while self.used.has(extent) || extent.is_multiple_of(EXTENTS_PER_INTERVAL) {
            self.used.insert(extent);
            extent += 1;
        }
        self.used.insert(extent);
        self.cursor[region] = extent + 1;
        self.highest = self.highest.max(extent);
        extent
    }

    fn interval(
        &mut self,
        disk: &mut Disk,
        file: u16,
        interval: u32,
    ) -> Result<&mut [u8; PFS_INTERVAL as usize], LabError> {
        if !self.pfs.contains_key(&interval) {
            if self.pfs.len() >= CACHED_INTERVALS {
                self.spill(disk, file)?;
            }
            let states = self.take_interval(disk, file, interval)?;
            self.pfs.insert(interval, states);
        }
        Ok(self.pfs.entry(interval).or_insert_with(|| Box::new([0; PFS_INTERVAL as usize])))
    }

    /// Returns the PFS bytes of an interval. Removes them from memory or, if they were written to disk before, reads
    /// them from there.
    fn take_interval(
        &mut self,
        disk: &mut Disk,
        file: u16,
        interval: u32,
    ) -> Result<Box<[u8; PFS_INTERVAL as usize]>, LabError> {
        let mut states = self.pfs.remove(&interval);
        if states.is_none() && self.spilled.has(interval) {
            let page = disk.read(PageId::new(file, (interval * PFS_INTERVAL).max(1)))?;
            let mut read = Box::new([0; PFS_INTERVAL as usize]);
            read.copy_from_slice(&page[100..100 + PFS_INTERVAL as usize]);
            states = Some(read);
        }
        Ok(states.unwrap_or_else(|| Box::new([0; PFS_INTERVAL as usize])))
    }

    /// Frees memory: removes the PFS bytes of the lowest interval in memory, and writes them to the disk, from where
    /// `take_interval` can read them again.
    fn spill(&mut self, disk: &mut Disk, file: u16) -> Result<(), LabError> {
        if let Some((interval, states)) = self.pfs.pop_first() {
            let mut bytes = Box::new([0; PAGE]);
            bytes[100..100 + PFS_INTERVAL as usize].copy_from_slice(&states[..]);
            disk.put(PageId::new(file, (interval * PFS_INTERVAL).max(1)), &bytes)?;
            self.spilled.insert(interval);
        }
        Ok(())
    }

    fn set_pfs(&mut self, disk: &mut Disk, file: u16, page: u32, state: u8) -> Result<(), LabError> {
        self.interval(disk, file, page / PFS_INTERVAL)?[(page % PFS_INTERVAL) as usize] = state;
        Ok(())
    }

    fn pfs_byte(&mut self, disk: &mut Disk, page: PageId) -> Result<u8, LabError> {
        Ok(self.interval(disk, page.file, page.page / PFS_INTERVAL)?[(page.page % PFS_INTERVAL) as usize])
    }
}
