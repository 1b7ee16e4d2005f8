//! Patterns of damage: what findings about many pages have in common.

/// What the damaged pages of a pattern contain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PatternKind {
    /// Each byte has this value.
    Same(u8),
    /// Text.
    Text,
    /// Bytes without structure, as in encrypted or compressed data.
    Noise,
    /// Whole pages of another place.
    OtherPlace {
        /// The file in the headers of the pages.
        file: u16,
        /// The page numbers in the headers minus the page numbers of the places; `None` if they differ from page to page.
        distance: Option<i64>,
        /// Whether the database has this file.
        has_file: bool,
        /// Whether most of the pages belong to allocation units that the catalog does not have.
        is_unknown: bool,
    },
    /// The pages begin this number of bytes after their places, or before them if the number is negative.
    Shifted(i64),
    /// The first bytes of each page are overwritten.
    Headers,
    /// Bytes behind the header of each page are changed.
    Changed,
    /// Whole pages with the right page IDs, of allocation units that the catalog does not have.
    Foreign,
    /// Damaged pages that no other pattern has, because there are too many patterns.
    More,
}

/// Damaged pages with the same kind of content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pattern {
    /// The file.
    pub file_id: u16,
    /// The first page.
    pub first: u32,
    /// The last page.
    pub last: u32,
    /// The number of damaged pages from the first to the last page that have this content.
    pub pages: u64,
    /// The number of runs of consecutive pages. Pages that are not in use do not end a run.
    pub runs: u64,
    /// If the pages repeat at a fixed distance: the distance in pages, and the number of pages from the first to the last
    /// page of a block.
    pub every: Option<(u32, u32)>,
    /// What the pages contain.
    pub kind: PatternKind,
}
