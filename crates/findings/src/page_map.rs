//! The page map: the use and owner of the extents of each file. The extents are stored as runs, from which a picture
//! can be drawn.

use format::PageId;
use format::allocation::EXTENT_PAGES;

/// The maximum number of runs of all files together. The map of a file consists of cells of equal size. To stay within
/// this limit, each cell may contain 2, 4, 8 ... extents instead of one extent.
pub const MAX_RUNS: usize = 1 << 20;
/// The maximum number of heaps and indexes that are listed. Extents of smaller heaps and indexes have the owner
/// [`MapRun::UNNAMED`].
pub const MAX_OWNERS: usize = (1 << 12) - 1;
/// Bytes per run while the list of runs is built. When the list grows, it is copied, and for a short time both copies
/// are in memory.
const BYTES_PER_RUN: u64 = 2 * size_of::<MapRun>() as u64;
/// Bytes per unit while the units with the most extents are determined.
const BYTES_PER_UNIT: u64 = 96;
/// Bytes of the counters for the states and owners in one cell.
const BYTES_FOR_COUNTERS: u64 = ((MAX_OWNERS + 2) * MapState::ALL.len() * 12) as u64;

/// The maximum number of bytes that a map needs, given the number of pages and allocation units.
pub fn bytes(pages: u64, units: u64) -> u64 {
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
    /// Rows of a nonclustered index.
    Index,
    /// LOB or row-overflow data.
    Lob,
    /// Columnstore data, undocumented kinds of data, or an allocated extent without a known owner.
    Other,
    /// A mixed extent, with pages of several objects.
    Mixed,
    /// Allocated to an object, but none of its pages is in use.
    Reserved,
    /// Allocation maps.
    Maps,
    /// Unknown, because the allocation map that describes the extent cannot be used.
    Unknown,
}

impl MapState {
    /// All states, ordered by their numbers.
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
    /// The position of the owner in [`PageMap::owners`], counted from 1; or [`Self::NO_OWNER`] or [`Self::UNNAMED`].
    pub owner: u16,
    /// The use of the extents.
    pub state: MapState,
}

impl MapRun {
    /// The owner of extents that do not belong to a single object.
    pub const NO_OWNER: u16 = 0;
    /// The owner of extents that belong to an object outside [`PageMap::owners`].
    pub const UNNAMED: u16 = MAX_OWNERS as u16 + 1;
}

/// A heap or an index that owns extents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MapOwner {
    /// Object ID; 0 if the catalog does not contain the allocation unit.
    pub object_id: i32,
    /// Index ID: 0 for a heap, 1 for a clustered index; -1 if the catalog does not contain the allocation unit.
    pub index_id: i32,
}

/// The extents of a file.
#[derive(Clone, Debug, Default)]
pub struct MapOfFile {
    /// File id.
    pub file_id: u16,
    /// Number of whole pages in the file.
    pub pages: u32,
    /// The binary logarithm of the number of extents per cell. If the extents of a cell have different uses or owners,
    /// the cell gets the most frequent combination of use and owner.
    pub cell_shift: u32,
    /// All cells, from the start of the file.
    pub runs: Vec<MapRun>,
}

/// The extents of all files.
#[derive(Clone, Debug, Default)]
pub struct PageMap {
    /// The files, by ascending file ID.
    pub files: Vec<MapOfFile>,
    /// The owners with the most extents, in descending order of their extents.
    pub owners: Vec<MapOwner>,
    /// Pages that could not be read. Each unreadable allocation map has its own entry. All other unreadable pages of a
    /// file share one entry, with the address of the first page. The number in an entry is the number of its unreadable
    /// pages.
    pub unread: Vec<(PageId, u64)>,
}
