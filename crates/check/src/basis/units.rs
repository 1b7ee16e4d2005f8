//! Allocation units, numbered by ordinals: first the units of the catalog, then the units that only IAM pages name.

use std::collections::HashMap;

use catalog::{AllocUnit, Database, IndexType, UnitKind};
use findings::Owner;
use format::{AllocUnitId, Page, PageHeader, PageType};

/// Ordinal of a unit within a run.
pub(crate) type UnitIndex = u32;

/// The shape of a unit: which kinds of pages it has, and how they are linked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Shape {
    /// Data pages without links.
    Heap,
    /// A B-tree with data pages as leaf pages.
    Clustered,
    /// A B-tree that consists only of index pages.
    Nonclustered,
    /// Text pages.
    Text,
    /// Columnstore and undocumented kinds, for which no rules are known.
    Unknown,
}

impl Shape {
    /// Whether the unit may have pages of `kind` (message 8938). In units with rows, page types that exist only during
    /// an operation, such as a sort, are always accepted.
    pub(crate) fn allows(self, kind: PageType) -> bool {
        use PageType::{BulkPreallocated, Data, Index, ReorgTemporary, RepairDeallocated, Sort, TextMix, TextTree};
        if matches!(kind, ReorgTemporary | BulkPreallocated | RepairDeallocated | Sort) {
            return self.is_rows();
        }
        match self {
            Self::Heap => kind == Data,
            Self::Clustered => matches!(kind, Data | Index),
            Self::Nonclustered => kind == Index,
            Self::Text => matches!(kind, TextMix | TextTree),
            Self::Unknown => matches!(kind, Data | Index | TextMix | TextTree),
        }
    }

    /// Whether the pages of the unit contain rows.
    pub(crate) fn is_rows(self) -> bool {
        self != Self::Text
    }

    /// Whether a page belongs to the leaf level. Depending on the shape, the page type or the level number shows this.
    pub(crate) fn is_leaf(self, page: Page<'_>) -> bool {
        match self {
            Self::Nonclustered => page.header().level == 0,
            _ => page.header().kind() == Some(PageType::Data),
        }
    }

    /// Whether the pages of the unit form a B-tree.
    pub(crate) fn is_tree(self) -> bool {
        matches!(self, Self::Clustered | Self::Nonclustered)
    }
}

/// An allocation unit of the run.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// The unit ID in page headers.
    pub(crate) id: AllocUnitId,
    /// The owner that messages print.
    pub(crate) owner: Owner,
    /// The kinds of pages that the unit holds.
    pub(crate) shape: Shape,
    /// Index into [`Database::rowsets`].
    pub(crate) rowset: Option<usize>,
    /// Index into [`Database::units`]; `None` for a unit outside the catalog.
    pub(crate) row: Option<usize>,
    /// Whether the rows of the unit are compressed (CD records).
    pub(crate) compressed: bool,
}

/// All units of the run.
pub(crate) struct Units {
    list: Vec<Unit>,
    by_id: HashMap<AllocUnitId, UnitIndex>,
    /// The number of units outside the catalog.
    strays: usize,
}

/// The maximum number of units outside the catalog. Without a limit, each page of a damaged file could name a different
/// unit.
pub(crate) const MAX_STRAY_UNITS: usize = 1 << 12;

impl Units {
    /// The units of the catalog.
    pub(crate) fn of(database: &Database) -> Self {
        let list: Vec<Unit> =
            database.units.iter().enumerate().map(|(row, unit)| known_unit(database, row, unit)).collect();
        let by_id = list.iter().enumerate().map(|(at, unit)| (unit.id, at as UnitIndex)).collect();
        Self { list, by_id, strays: 0 }
    }

    /// All units, ordered by ordinal.
    pub(crate) fn list(&self) -> &[Unit] {
        &self.list
    }

    /// The units outside the catalog, ordered by ordinal.
    pub(crate) fn strays(&self) -> impl Iterator<Item = AllocUnitId> {
        self.list.iter().skip(self.list.len() - self.strays).map(|unit| unit.id)
    }

    /// The unit with this ordinal.
    pub(crate) fn get(&self, index: UnitIndex) -> Option<&Unit> {
        self.list.get(index as usize)
    }

    /// The ordinal of a unit.
    pub(crate) fn index_of(&self, id: AllocUnitId) -> Option<UnitIndex> {
        self.by_id.get(&id).copied()
    }

    /// The units that a page with this header may belong to.
    pub(crate) fn named_by(&self, header: &PageHeader) -> impl Iterator<Item = UnitIndex> {
        ids_named_by(header).filter_map(|id| self.index_of(id))
    }

    /// The owner that messages print for a page with this header.
    pub(crate) fn owner_named_by(&self, header: &PageHeader) -> Owner {
        let unit = self.named_by(header).next().and_then(|index| self.get(index));
        unit.map_or(Owner::unknown(header.alloc_unit()), |unit| unit.owner)
    }

    /// The ordinal of a unit that an IAM page names. If the unit is not in the catalog, it is added. `None` if there
    /// are too many units outside the catalog.
    pub(crate) fn index_of_iam(&mut self, id: AllocUnitId) -> Option<UnitIndex> {
        if let Some(index) = self.index_of(id) {
            return Some(index);
        }
        if self.strays == MAX_STRAY_UNITS {
            return None;
        }
        self.strays += 1;
        let index = self.list.len() as UnitIndex;
        let owner = Owner::unknown(id);
        self.list.push(Unit { id, owner, shape: Shape::Unknown, rowset: None, row: None, compressed: false });
        self.by_id.insert(id, index);
        Some(index)
    }

    /// The owner that messages print for the unit `id`.
    pub(crate) fn owner_of(&self, id: AllocUnitId) -> Owner {
        self.index_of(id).and_then(|index| self.get(index)).map_or(Owner::unknown(id), |unit| unit.owner)
    }
}

/// Returns the units that a page with this header may belong to. The first is the unit that the header names. The
/// second is the unit of the clustered index of the same object, because data pages of this index that SQL Server 2000
/// wrote last have index ID 0 in the header.
pub(crate) fn ids_named_by(header: &PageHeader) -> impl Iterator<Item = AllocUnitId> {
    let named = header.alloc_unit();
    let clustered = named.clustered_of_2000().filter(|_| header.kind() != Some(PageType::Index));
    std::iter::once(named).chain(clustered)
}

fn known_unit(database: &Database, row: usize, unit: &AllocUnit) -> Unit {
    let owner = Owner::of_unit(database, unit);
    let Some(rowset) = database.rowset_of(unit) else {
        return Unit { id: unit.id, owner, shape: Shape::Unknown, rowset: None, row: Some(row), compressed: false };
    };
    let index_type = database.indexes.get(&(rowset.object_id, rowset.index_id)).map(|index| index.index_type);
    let unknown = index_type.is_some_and(|index_type| {
        !matches!(index_type, IndexType::Heap | IndexType::Clustered | IndexType::Nonclustered)
    });
    let shape = match (unit.kind, rowset.index_id) {
        _ if unknown || rowset.compression > 2 || rowset.owner_type != 1 => Shape::Unknown,
        (UnitKind::Lob | UnitKind::Overflow, _) => Shape::Text,
        (UnitKind::Other(_), _) => Shape::Unknown,
        (UnitKind::InRow, 0) => Shape::Heap,
        (UnitKind::InRow, 1) => Shape::Clustered,
        (UnitKind::InRow, _) => Shape::Nonclustered,
    };
    Unit { id: unit.id, owner, shape, rowset: unit.rowset, row: Some(row), compressed: rowset.compression > 0 }
}
