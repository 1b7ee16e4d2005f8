//! The kinds of damage. The row of each check names one kind.

/// What is damaged if a check has a finding. The steps of a repair depend on the kind of damage, so a kind is needed for
/// all damage that needs steps of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Damage {
    /// A page at a fixed address, or the entries of allocation maps.
    Map(Map),
    /// An IAM page or an IAM chain.
    Iam(Iam),
    /// The content of a page.
    Page,
    /// A record. Only another copy of its page has the right bytes.
    Record,
    /// The page in this place belongs to another allocation unit.
    Misplaced,
    /// The page contradicts the log.
    Log,
    /// Sound pages are connected or described wrongly. A rebuild from their rows corrects this.
    Structure(Structure),
    /// A reference between two places is wrong, and the finding does not show which of the places is wrong.
    Reference(Reference),
    /// A row of a table has a wrong value, or is in a wrong place. A statement corrects the row.
    Row(Row),
    /// An index and its table have different rows.
    Index(Index),
    /// The segments, dictionaries or row groups of a columnstore index.
    Columnstore,
    /// Row counts and page counts in the catalog.
    Counts,
    /// A page of a system table that is needed to find all other tables.
    Primitive,
    /// Rows of the catalog that contradict each other or the rest of the database.
    Catalog,
    /// The structures of a backup file that contain the pages.
    Container,
}

/// Damage of pages at fixed addresses, or of the entries in allocation maps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Map {
    /// A file header, a boot page or an allocation map cannot be used.
    FixedPage,
    /// The allocation of an interval could not be checked, because a map of the interval is damaged.
    Interval,
    /// An extent is marked as free in GAM and as mixed in SGAM.
    GamAndSgam,
    /// An extent has more than one owner.
    SharedExtent,
    /// A page has two owners.
    SharedPage,
    /// An allocated extent has no owner.
    UnownedExtent,
    /// An allocated page has no owner.
    UnownedPage,
    /// The PFS byte of a page contradicts the IAM pages.
    PfsType,
    /// The PFS byte of a page has a wrong amount of free space.
    PfsFreeSpace,
}

/// Damage of IAM pages and IAM chains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Iam {
    /// An IAM page cannot be read.
    Page,
    /// IAM pages do not fit into their chain: wrong links, numbers or intervals.
    Chain,
    /// No catalog row, or no previous IAM page, names an IAM page.
    Previous,
    /// An address is beyond the end of a file.
    Range,
    /// An IAM page is in the chain of another allocation unit.
    OfOther,
    /// An allocation unit could not be checked because its IAM chain is damaged.
    Unchecked,
    /// An IAM page lists a page twice.
    ListedTwice,
}

/// Damage of the structure between sound pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Structure {
    /// Keys on a page are out of order, or two keys are equal.
    Keys,
    /// The keys of a page contradict the key range in the parent page.
    KeyRange,
    /// Links or levels of pages are wrong, or pages are missing.
    Links,
    /// A page has no rows.
    EmptyPage,
    /// A page header has a wrong number of ghost records.
    GhostCount,
    /// A row of an online index build was not removed.
    BuildRemains,
}

/// Damage of a reference between two places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reference {
    /// A parent page names a child of another index.
    Child,
    /// A forwarding stub and a forwarded row do not name each other.
    Forward,
    /// A fragment of an off-row value and the pointer to the fragment do not match.
    OffRow,
    /// No row names a fragment of an off-row value.
    Unreferenced,
}

/// Damage of a row's values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Row {
    /// A value is not valid for the type of its column.
    Purity,
    /// A NOT NULL column has NULL, or a computed value is wrong.
    Column,
    /// The row is in the wrong partition.
    Partition,
    /// The row violates a constraint.
    Constraint,
}

/// Damage of an index that has the rows of a table once more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Index {
    /// The index lacks a row of the table.
    RowMissing,
    /// The table lacks a row of the index.
    RowSurplus,
    /// An XML index and the documents of its table differ.
    Xml,
}

impl Damage {
    /// Whether the page that the finding names is damaged as a whole, even if the finding does not say whose page it
    /// is.
    pub fn is_of_whole_page(self) -> bool {
        matches!(
            self,
            Self::Page
                | Self::Iam(Iam::Page)
                | Self::Structure(Structure::Keys | Structure::EmptyPage | Structure::GhostCount)
        )
    }

    /// Whether the catalog contradicts itself or cannot be read. The rows of the catalog about a columnstore index
    /// belong to the catalog, too.
    pub fn is_of_catalog(self) -> bool {
        matches!(self, Self::Primitive | Self::Catalog | Self::Columnstore)
    }
}
