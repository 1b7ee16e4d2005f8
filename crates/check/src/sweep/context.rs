//! Facts that a run knows before it reads ordinary pages, shared by all phases and threads.

use std::collections::BTreeSet;
use std::sync::Arc;

use catalog::{Database, Level, Rowset};
use findings::{FileRange, Options, Place, Ranges, Scope};
use format::compressed::Expansion;
use format::key::{KeyColumn, KeyOrder};
use format::types::xtype;
use format::{AllocUnitId, Page, PageHeader, PageId};
use source::PageSource;
use sums::PerUnit;
use sums::hash::FactHash;
use sums::spill::TempStore;

use crate::basis::in_flight::InFlight;
use crate::basis::taken::Taken;
use crate::basis::tallies::Tallies;
use crate::basis::units::{Unit, UnitIndex, Units, ids_named_by};
use crate::metadata::prechecks::Ended;
use crate::page::audit::AuditRules;
use crate::page::expanded;
use crate::survey::Survey;
use crate::sweep::rounds::Rounds;
use crate::sweep::settled::Settled;

/// Facts that a run knows before it reads ordinary pages.
pub(crate) struct Context<'a> {
    pub(crate) source: &'a dyn PageSource,
    pub(crate) database: &'a Database,
    pub(crate) options: &'a Options,
    pub(crate) units: Units,
    pub(crate) survey: Survey,
    /// The index of the current batch and the number of batches; `None` if the run has no batches.
    pub(crate) batch: Option<(u32, u32)>,
    /// The range of pages to sweep; `None` for all pages.
    pub(crate) range: Option<FileRange>,
    /// The page ranges of the parts of a divided run. A part knows only its own range; a merge knows all ranges.
    pub(crate) ranges: Ranges,
    /// The ranges of pages that no window of time has read yet, in ascending order; known after the sweep.
    pub(crate) open: Vec<FileRange>,
    /// Pages whose header names a different unit than the allocation maps; known after the sweep.
    pub(crate) taken: Arc<Taken>,
    /// Units with bad pages; known after the sweep.
    pub(crate) bad_units: Arc<BTreeSet<UnitIndex>>,
    /// The questions that other processes answer for this run: those for which many pages must be read again. `None` if
    /// this run reads all pages itself.
    pub(crate) rounds: Option<&'a Rounds<'a>>,
    /// The comparisons of non-leaf pages with their children that an earlier run has made. `None` if this run neither
    /// uses nor keeps sums of ranges.
    pub(crate) settled: Option<Settled>,
    /// The pages that the log of a backup still changes; `None` for data files.
    pub(crate) in_flight: Option<InFlight>,
    /// Tables whose pre-checks failed, unless the log may explain the failure.
    pub(crate) ended: Ended,
    /// The key columns of each B-tree. Only units that have pages have entries.
    keys: PerUnit<Option<Box<Keys>>>,
    /// Whether accelerated database recovery is on or was on before.
    rows_hold_versions: bool,
    pub(crate) hash: FactHash,
    /// Temporary storage for facts that exceed memory.
    pub(crate) space: &'a TempStore,
}

/// The key columns of a B-tree's rowset.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Keys {
    pub(crate) leaf: Vec<KeyColumn>,
    pub(crate) node: Vec<KeyColumn>,
    /// Length of the fixed part of leaf records, if they are index records.
    pub(crate) leaf_length: u16,
    /// Length of the fixed part of non-leaf records.
    pub(crate) node_length: u16,
}

impl Keys {
    /// The columns by which the records of a page are sorted.
    pub(crate) fn of(&self, is_leaf: bool) -> &[KeyColumn] {
        if is_leaf { &self.leaf } else { &self.node }
    }
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        source: &'a dyn PageSource,
        database: &'a Database,
        options: &'a Options,
        units: Units,
        survey: Survey,
        space: &'a TempStore,
    ) -> Self {
        // If layouts are incomplete, a key may lack columns, and different rows would look equal.
        let knows_keys = database.layouts_are_complete();
        let heaps: BTreeSet<i32> =
            database.rowsets.iter().filter(|rowset| rowset.index_id == 0).map(|rowset| rowset.object_id).collect();
        let mut keys = PerUnit::new(units.list().len());
        for (at, unit) in survey.units_with_pages(&units).filter(|(_, unit)| knows_keys && unit.shape.is_tree()) {
            let rowset = unit.rowset.and_then(|rowset| database.rowsets.get(rowset));
            if let (Some(place), Some(rowset)) = (keys.get_mut(at as usize), rowset) {
                *place = keys_of(database, rowset, &heaps).map(Box::new);
            }
        }
        let rows_hold_versions = database.has_version_store();
        let mut context = Self {
            in_flight: InFlight::of(source, database),
            ended: Ended::default(),
            source,
            database,
            options,
            units,
            survey,
            batch: None,
            range: None,
            ranges: Ranges::default(),
            open: Vec::new(),
            taken: Arc::default(),
            bad_units: Arc::default(),
            rounds: None,
            settled: None,
            keys,
            rows_hold_versions,
            space,
            hash: options.fact_hash(),
        };
        if context.is_clean() {
            context.ended = Ended::by(source, database);
        }
        context
    }

    /// Stores the facts that become known only during the sweep. The phases after the sweep need these facts.
    pub(crate) fn learn(&mut self, swept: &mut Tallies) {
        self.taken = swept.take_taken().into();
        self.bad_units = swept.bad_units().into();
    }

    /// Whether a window of time has left any of these pages of a file.
    pub(crate) fn has_open(&self, file_id: u16, pages: std::ops::Range<u32>) -> bool {
        let next = self.open.partition_point(|range| (range.file_id, range.end()) <= (file_id, pages.start));
        self.open.get(next).is_some_and(|range| range.file_id == file_id && range.first < pages.end)
    }

    /// Bytes of the memory grant that the facts of one phase may use.
    pub(crate) fn bytes_for_facts(&self) -> usize {
        self.space.memory_bytes()
    }

    /// Whether cross-references between pages can be checked: the database was shut down cleanly, or it comes from a
    /// backup whose log contains no further changes.
    pub(crate) fn is_clean(&self) -> bool {
        self.database.is_recovered(self.source)
    }

    /// Whether the row counts of the catalog are current. The engine writes them only at checkpoints, and no log record
    /// updates them (docs/format/log.md#redo).
    pub(crate) fn counts_are_current(&self) -> bool {
        let is_shut_down = || self.database.boot.as_ref().is_some_and(|boot| boot.clean_shutdown());
        self.is_clean() && !self.source.has_recovered_pages() && (self.source.backup().is_some() || is_shut_down())
    }

    /// The facts that the audit of a unit's pages needs.
    pub(crate) fn known(&self, unit: &Unit) -> AuditRules<'_> {
        let expansion = self.expansion(unit);
        let version = self.database.boot.as_ref().map_or(u16::MAX, |boot| boot.version);
        AuditRules {
            rows_hold_versions: self.rows_hold_versions,
            rows_may_hold_versions: version >= VERSION_2019,
            expansion,
            row_by_row: self.options.row_by_row,
        }
    }

    /// How to expand a unit's rows; `None` if the rows are not compressed or the catalog does not describe them.
    pub(crate) fn expansion(&self, unit: &Unit) -> Option<&'a Expansion> {
        if !unit.compressed {
            return None;
        }
        expanded::expansion(self.database.rowsets.get(unit.rowset?)?)
    }

    /// Whether the current batch, or a run without batches, covers a unit. A table and its indexes are in the same
    /// batch.
    pub(crate) fn in_scope(&self, unit: &Unit) -> bool {
        if !self.is_in_batch(unit.owner.object_id) {
            return false;
        }
        match &self.options.scope {
            Scope::Database => true,
            Scope::Allocation | Scope::Catalog => false,
            Scope::Tables(objects) => objects.contains(&unit.owner.object_id),
            Scope::Filegroup(group) => {
                unit.row.and_then(|row| self.database.units.get(row)).is_some_and(|row| row.filegroup == *group)
            }
        }
    }

    /// Whether the current batch, or a run without batches, covers the pages of a unit. `None` means pages that are in
    /// use but that no unit claims.
    pub(crate) fn covers(&self, unit: Option<UnitIndex>) -> bool {
        unit.and_then(|unit| self.units.get(unit)).map_or_else(|| self.covers_unclaimed(), |unit| self.in_scope(unit))
    }

    /// Whether the run covers the facts that the catalog stores about an object.
    pub(crate) fn covers_object(&self, object_id: i32) -> bool {
        let is_in_scope = match &self.options.scope {
            Scope::Database => true,
            Scope::Tables(objects) => objects.contains(&object_id),
            Scope::Allocation | Scope::Catalog | Scope::Filegroup(_) => false,
        };
        is_in_scope && self.is_in_batch(object_id)
    }

    fn is_in_batch(&self, object_id: i32) -> bool {
        self.batch.is_none_or(|(batch, batches)| object_id.unsigned_abs() % batches == batch)
    }

    /// Whether the current batch, or a run without batches, covers pages that are in use but that no unit claims.
    fn covers_unclaimed(&self) -> bool {
        self.options.scope == Scope::Database && self.batch.is_none_or(|(batch, _)| batch == 0)
    }

    /// Whether the run covers a constraint. `units` are the units of the constraint's table.
    pub(crate) fn constraints_in_scope(&self, units: &[UnitIndex]) -> bool {
        match units {
            [] => self.options.scope == Scope::Database,
            units => units.iter().filter_map(|unit| self.units.get(*unit)).any(|unit| self.in_scope(unit)),
        }
    }

    /// Whether the logical checks of a unit's B-tree are requested and possible.
    pub(crate) fn checks_tree(&self, unit: &Unit) -> bool {
        !self.options.physical_only && !self.leaves_out(unit) && unit.shape.is_tree()
    }

    /// Whether NOINDEX excludes the logical checks of a unit.
    pub(crate) fn leaves_out(&self, unit: &Unit) -> bool {
        self.options.leaves_out(self.database, unit.owner.object_id, unit.owner.index_id)
    }

    /// Whether a page of a unit is on the unit's leaf level.
    pub(crate) fn is_leaf(&self, unit: UnitIndex, page: Page<'_>) -> bool {
        self.units.get(unit).is_some_and(|unit| unit.shape.is_leaf(page))
    }

    /// The key columns of a unit, if its layout is known.
    pub(crate) fn keys(&self, unit: UnitIndex) -> Option<&Keys> {
        let readable = |unit: &&Unit| unit.shape.is_tree() && (!unit.compressed || self.expansion(unit).is_some());
        self.units.get(unit).filter(readable)?;
        self.keys.get(unit as usize)?.as_deref()
    }

    /// Whether a page with this header belongs to `unit`.
    pub(crate) fn belongs(&self, unit: &Unit, header: &PageHeader) -> bool {
        ids_named_by(header).any(|id| id == unit.id)
    }

    /// Whether the catalog has the allocation unit in the header of a page, or may have it because part of the catalog is
    /// unknown.
    pub(crate) fn may_know(&self, header: &PageHeader) -> bool {
        header.alloc_unit() == AllocUnitId::SYSTEM
            || !self.database.units_are_complete()
            || self.units.named_by(header).next().is_some()
    }

    /// The display name of an index: `schema.table.index`.
    pub(crate) fn index_name(&self, unit: &Unit) -> String {
        let object = match unit.owner.object_id {
            0 => return format!("alloc unit ID {}", unit.id),
            id => self.database.object_name(id),
        };
        match self.database.indexes.get(&(unit.owner.object_id, unit.owner.index_id)) {
            Some(index) if !index.name.is_empty() => format!("{object}.{}", index.name),
            _ => object,
        }
    }

    /// The place that identifies a unit in notes.
    pub(crate) fn place_of(&self, unit: &Unit) -> Place {
        Place::of(unit.owner.object_id, self.index_name(unit))
    }

    /// The object that these units belong to, with `text` as its description in notes.
    pub(crate) fn place_in(&self, units: &[UnitIndex], text: impl Into<String>) -> Place {
        let object = units.iter().find_map(|unit| Some(self.units.get(*unit)?.owner.object_id));
        Place::of(object.unwrap_or_default(), text)
    }

    /// The unit that a page belongs to, according to the sweep.
    pub(crate) fn unit_of(&self, page: PageId) -> Option<UnitIndex> {
        self.taken.unit(page).or_else(|| self.survey.owner(page))
    }

    /// The root page of a unit, according to the catalog.
    pub(crate) fn root(&self, unit: &Unit) -> PageId {
        unit.row.and_then(|row| self.database.units.get(row)).map_or(PageId::NONE, |row| row.root)
    }
}

/// Internal version of SQL Server 2019, the first with accelerated database recovery.
pub(crate) const VERSION_2019: u16 = 904;

/// Whether the last key column of an index on a heap is the row's address, which is not a column of the table.
fn ends_with_locator(database: &Database, rowset: &Rowset) -> bool {
    let key = rowset.layout.columns.iter().filter(|column| column.key_ordinal > 0);
    let own = database.index_columns.get(&(rowset.object_id, rowset.index_id));
    key.max_by_key(|column| column.key_ordinal).is_some_and(|last| {
        let is_address = (last.info.xtype, last.info.length) == (xtype::BINARY, 8);
        is_address && own.is_none_or(|own| own.iter().all(|column| column.position != last.id))
    })
}

/// The maximum number of columns of a key: an index has at most 32 columns of its own and a locator of at most 32
/// columns. A longer key means that the catalog is damaged.
const MAX_KEY_COLUMNS: usize = 64;

fn keys_of(database: &Database, rowset: &Rowset, heaps: &BTreeSet<i32>) -> Option<Keys> {
    let layout = &rowset.layout;
    let (mut leaf, mut node) = (layout.key(Level::Leaf), layout.key(Level::Node));
    if rowset.index_id > 1 && heaps.contains(&rowset.object_id) && ends_with_locator(database, rowset) {
        let is_in_both = leaf.len() == node.len();
        let lasts = [leaf.last_mut(), node.last_mut().filter(|_| is_in_both)];
        lasts.into_iter().flatten().for_each(|column| column.order = KeyOrder::Locator);
    }
    let (leaf_length, node_length) = (layout.index_fixed_length(Level::Leaf), layout.index_fixed_length(Level::Node));
    (1..=MAX_KEY_COLUMNS).contains(&leaf.len()).then_some(Keys { leaf, node, leaf_length, node_length })
}
