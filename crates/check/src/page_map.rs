//! The page map: the use and owner of the extents of each file, as runs from which a picture can be drawn.

use format::PageId;
use format::allocation::EXTENT_PAGES;

/// The most runs of all files together: if there would be more, a cell of a file has 2, 4, 8 ... extents.
pub const MAX_RUNS: usize = 1 << 20;
/// The most heaps and indexes that are named; the extents of smaller ones have [`MapRun::UNNAMED`].
pub const MAX_OWNERS: usize = (1 << 12) - 1;
/// Bytes per run while runs are collected: a list exists twice while it grows.
const BYTES_PER_RUN: u64 = 2 * size_of::<MapRun>() as u64;
/// Bytes per unit, used to find the units with the most extents.
const BYTES_PER_UNIT: u64 = 96;
/// Counters of the states of one cell.
const BYTES_FOR_COUNTERS: u64 = ((MAX_OWNERS + 2) * MapState::ALL.len() * 12) as u64;

/// The most bytes of the grant that a map takes, given the number of pages and allocation units.
pub(crate) fn bytes(pages: u64, units: u64) -> u64 {
    let extents = pages / u64::from(EXTENT_PAGES) + 1;
    extents.min(MAX_RUNS as u64) * BYTES_PER_RUN + units * BYTES_PER_UNIT + BYTES_FOR_COUNTERS
}

/// The use of an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapState {
    /// Not allocated.
    Free,
    /// Rows of a heap or of a clustered index.
    Data,
    /// A nonclustered index.
    Index,
    /// LOB or row-overflow data.
    Lob,
    /// Columnstore and other kinds, or allocated without an owner.
    Other,
    /// Pages of several objects.
    Mixed,
    /// Allocated to an object; none of its pages is in use.
    Reserved,
    /// The allocation maps themselves.
    Maps,
    /// Unknown, because the allocation map that describes the extent cannot be used.
    Unknown,
}

impl MapState {
    /// All states, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Free,
        Self::Data,
        Self::Index,
        Self::Lob,
        Self::Other,
        Self::Mixed,
        Self::Reserved,
        Self::Maps,
        Self::Unknown,
    ];
}

/// Consecutive cells with the same use and owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapRun {
    /// The number of cells.
    pub cells: u32,
    /// Position in [`PageMap::owners`], from 1; [`Self::NO_OWNER`] or [`Self::UNNAMED`].
    pub owner: u16,
    /// The use of the extents.
    pub state: MapState,
}

impl MapRun {
    /// No single object owns the extents.
    pub const NO_OWNER: u16 = 0;
    /// An object without a number of its own.
    pub const UNNAMED: u16 = MAX_OWNERS as u16 + 1;
}

/// A heap or an index that owns extents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MapOwner {
    /// Object; 0 if the catalog does not know the allocation unit.
    pub object_id: i32,
    /// Index: 0 heap, 1 clustered; -1 if the catalog does not know it.
    pub index_id: i32,
}

/// The extents of a file.
#[derive(Clone, Debug, Default)]
pub struct MapOfFile {
    /// File id.
    pub file_id: u16,
    /// Whole pages in the file.
    pub pages: u32,
    /// The binary logarithm of the extents per cell. A cell of several extents has the most frequent use and owner
    /// among them.
    pub cell_shift: u32,
    /// All cells, from the start of the file.
    pub runs: Vec<MapRun>,
}

/// The extents of all files.
#[derive(Clone, Debug, Default)]
pub struct PageMap {
    /// By ascending file id.
    pub files: Vec<MapOfFile>,
    /// The owners with the most extents, largest first.
    pub owners: Vec<MapOwner>,
    /// Pages that could not be read: each unreadable allocation map, and for each file the first other unreadable page;
    /// each with the number of unreadable pages that the entry counts.
    pub unread: Vec<(PageId, u64)>,
}
