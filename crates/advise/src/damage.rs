//! Groups the damage in the findings by the action that repairs it.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Database, IndexType, UnitKind};
use findings::registry::damage::{Damage as Kind, Iam, Index, Map, Reference, Row, Structure};
use findings::{Finding, Owner, Report, Value, registry};
use format::allocation::{EXTENT_PAGES, FixedPage};
use format::{PageId, RecordId};
use source::{DataFile, PageSource};

use crate::lost_extents;

mod maps;

use maps::WrongMaps;

/// IDs of the system tables that are needed to find all other tables, and of the system tables that list the files. The
/// pages of these tables cannot be restored one by one.
const CRITICAL_TABLES: [i32; 9] = [3, 4, 5, 7, 8, 13, 15, 23, 24];

/// The maximum number of rows that are named one by one.
const MOST_ROWS: usize = 50;

/// The object type of an indexed view, which can be rebuilt from its tables.
const VIEW: &str = "V";

/// A finding that something is missing or inconsistent: its kind, its check ID, and the pages that it names.
type Missing = (Kind, &'static str, [Option<PageId>; 2]);

/// The maximum number of pages, named by findings, that are examined per table.
const MOST_MISSING: usize = 4096;

/// The check IDs of findings.
pub(crate) type Ids = BTreeSet<&'static str>;

/// All damage of a database.
#[derive(Debug, Default)]
pub(crate) struct Damage {
    /// Wrong page and row counts in the catalog, by object.
    pub(crate) counts: BTreeMap<i32, Ids>,
    /// Damaged nonclustered indexes.
    pub(crate) indexes: BTreeMap<(i32, i32), Ids>,
    /// For each index: the number of rows that the index lacks, and the number of rows that are in the index but not in
    /// its table.
    pub(crate) index_rows: BTreeMap<(i32, i32), [u64; 2]>,
    /// Rows with impossible values, or rows that violate constraints, by table and fault.
    pub(crate) rows: BTreeMap<(i32, RowFault), WrongRows>,
    /// Damaged heaps, clustered indexes and off-row data, by table.
    pub(crate) tables: BTreeMap<i32, TableDamage>,
    /// Damaged pages at fixed addresses: file headers, boot pages and allocation maps.
    pub(crate) fixed: BTreeMap<PageId, Ids>,
    /// Damage of the catalog: damaged pages of system tables, or catalog rows that contradict each other.
    pub(crate) catalog: CatalogDamage,
    /// Allocation maps with wrong entries for sound pages.
    pub(crate) maps: WrongMaps,
    /// Allocated extents and pages that have no owner, or an owner that the catalog does not know.
    pub(crate) unowned: CatalogDamage,
    /// The extents in [`Self::unowned`].
    unowned_extents: BTreeSet<PageId>,
    /// IDs of findings about intervals that could not be checked because their map is damaged.
    unchecked_intervals: Ids,
    /// IDs of findings about the container of a backup.
    pub(crate) container: Ids,
    /// Any other damage, which only a restore repairs.
    pub(crate) other: CatalogDamage,
    /// Files that are shorter than the length in their header.
    pub(crate) cut_files: BTreeSet<u16>,
    /// Pages whose findings name no owner. Other findings may show which table or index owns the page.
    nameless: BTreeMap<PageId, Ids>,
    /// Damaged pages of nonclustered indexes, with their index.
    index_pages: BTreeMap<PageId, (i32, i32)>,
}

/// Damage that cannot be assigned to a user table.
#[derive(Debug, Default)]
pub(crate) struct CatalogDamage {
    pub(crate) ids: Ids,
    /// The damaged pages.
    pub(crate) pages: BTreeSet<PageId>,
    /// Whether one of the pages cannot be restored by a page restore.
    pub(crate) critical: bool,
    /// Whether some of the damage cannot be assigned to a page.
    pub(crate) is_logical: bool,
}

/// The fault of a row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum RowFault {
    /// A value is not valid for the type of its column.
    Purity {
        /// The column.
        column: String,
    },
    /// A NOT NULL column has NULL, or a computed value is wrong.
    Column,
    /// The row is in the wrong partition.
    Partition,
    /// The row violates a constraint.
    Constraint {
        /// The name of the constraint.
        name: String,
    },
}

impl RowFault {
    /// Whether the row of the table has the fault, even if the finding is about its copy in an index. A value that is not
    /// valid for its type in both has a finding for each.
    fn is_of_table(&self) -> bool {
        match self {
            Self::Constraint { .. } => true,
            Self::Purity { .. } | Self::Column | Self::Partition => false,
        }
    }
}

/// Rows with the same fault.
#[derive(Debug, Default)]
pub(crate) struct WrongRows {
    pub(crate) ids: Ids,
    /// The addresses of the first rows with this fault.
    pub(crate) records: BTreeSet<RecordId>,
    pub(crate) count: u64,
}

/// Damage of a table's own pages and values.
#[derive(Debug, Default)]
pub(crate) struct TableDamage {
    pub(crate) ids: Ids,
    /// Pages with damaged content, which lost rows or values.
    pub(crate) pages: BTreeSet<PageId>,
    /// Whether links between sound pages are wrong, or keys are out of order. A rebuild repairs wrong links and wrong
    /// order.
    pub(crate) is_in_structure: bool,
    /// Whether allocation maps have wrong entries about the table's pages: wrong links or pages in IAM chains, wrong
    /// free space in PFS, or wrong owners of extents.
    pub(crate) is_in_allocation: bool,
    /// IAM pages that are missing from an IAM chain of the clustered index. The rows are still found through the index
    /// pages.
    unseen_maps: BTreeSet<PageId>,
    /// The IAM pages in [`Self::pages`] that are needed to find rows or off-row values. These IAM pages are damaged or
    /// have lost extents.
    pub(crate) needed_maps: BTreeSet<PageId>,
    /// Pages with wrong references to off-row values or forwarded rows. The references are in rows or in fragments of
    /// off-row values.
    pub(crate) values: BTreeSet<PageId>,
    /// IDs of the partitions that findings name.
    pub(crate) rowsets: BTreeSet<u64>,
    /// Pages with findings that are only consequences of other damage.
    consequences: BTreeSet<PageId>,
    /// Pages with keys in the wrong order. A rebuild keeps the wrong keys; a backup may have the right keys.
    pub(crate) keys: BTreeSet<PageId>,
    /// Findings that something is missing from the table's pages and values.
    missing: BTreeSet<Missing>,
}

impl Damage {
    /// Groups the findings of `report`, which is the result of a check of the pages in `source`.
    pub(crate) fn of(report: &Report, database: &Database, source: &dyn PageSource) -> Self {
        let is_cut = |file: &&DataFile| file.header_pages.is_some_and(|pages| pages > file.pages);
        let cut_files = source.files().iter().filter(is_cut).map(|file| file.file_id).collect();
        let mut damage = Self { cut_files, ..Self::default() };
        report.findings.iter().for_each(|finding| damage.add(&finding, database));
        // Removes the pages that do not exist, because a wrong pointer may refer to such a page.
        damage.tables.values_mut().for_each(|table| {
            table.values.retain(|page| !page.is_none() && source.contains(*page));
            table.needed_maps.retain(|page| source.contains(*page));
        });
        damage.find_lost_extents(source, database);
        damage.find_free_marks(source, database);
        damage.find_free_heap_pages(source, database);
        damage.maps.settle(source, database);
        damage.settle();
        damage
    }

    /// Handles extents without an owner whose pages belong to a table. An IAM page of the table no longer lists these
    /// extents.
    fn find_lost_extents(&mut self, source: &dyn PageSource, database: &Database) {
        let unowned = std::mem::take(&mut self.unowned_extents);
        for (object_id, lost) in lost_extents::of(source, database, &unowned) {
            let table = self.tables.entry(object_id).or_default();
            table.ids.insert(registry::EXTENT_UNOWNED.id);
            // If lost extents belong to the clustered index, its page links still lead to their rows, so the off-row
            // values of these rows are referenced.
            if lost.has_keys {
                table.is_in_allocation = true;
                table.values.clear();
            }
            for (map, extents) in lost.maps {
                table.pages.insert(map);
                table.needed_maps.insert(map);
                self.unowned.pages.retain(|extent| !extents.contains(extent));
            }
        }
        if self.unowned.pages.is_empty() && self.unowned.ids.iter().all(|id| *id == registry::EXTENT_UNOWNED.id) {
            self.unowned = CatalogDamage::default();
        }
    }

    /// Handles pages that seem to be missing from a table because PFS marks them as free. These pages exist, and their
    /// rows and values are still on them.
    fn find_free_marks(&mut self, source: &dyn PageSource, database: &Database) {
        let maps = &mut self.maps;
        self.tables.retain(|&object_id, table| {
            let named: BTreeSet<PageId> =
                table.missing.iter().flat_map(|(.., pages)| pages).flatten().copied().collect();
            let is_free = |page: &PageId| maps::is_called_free(source, database, *page, object_id);
            let free: BTreeSet<PageId> = named.into_iter().take(MOST_MISSING).filter(is_free).collect();
            if free.is_empty() {
                return true;
            }
            // Off-row values seem unreferenced because the rows that refer to them are on the pages marked as free.
            let explains = |(kind, _, pages): &&Missing| {
                *kind == Kind::Reference(Reference::Unreferenced)
                    || pages.iter().flatten().any(|page| free.contains(page))
            };
            let explained: Ids = table.missing.iter().filter(explains).map(|(_, id, _)| *id).collect();
            let is_all = table.missing.iter().all(|missing| explains(&missing));
            maps.mark(object_id, free, if is_all { &table.ids } else { &explained });
            if is_all {
                table.is_in_structure = false;
                table.values.clear();
            }
            !is_all || table.is_in_allocation || table.loses_data()
        });
    }

    /// Handles heaps whose indexes have more rows than the heap. The rows that the heap seems to lack are on pages of
    /// the heap that PFS marks as free.
    fn find_free_heap_pages(&mut self, source: &dyn PageSource, database: &Database) {
        let has_more = |(_, [missing, surplus]): &(&(i32, i32), &[u64; 2])| surplus > missing;
        let lacking: BTreeSet<i32> =
            self.index_rows.iter().filter(has_more).map(|((object_id, _), _)| *object_id).collect();
        for object_id in lacking.into_iter().filter(|object_id| !database.indexes.contains_key(&(*object_id, 1))) {
            let pages = maps::called_free(source, database, object_id);
            if !pages.is_empty() {
                let of_it = self.indexes.iter().filter(|((id, _), _)| *id == object_id);
                let ids: Ids = of_it.flat_map(|(_, ids)| ids.iter().copied()).collect();
                self.maps.mark(object_id, pages, &ids);
            }
        }
    }

    /// Separates damage from its consequences, after all findings are added.
    pub(crate) fn settle(&mut self) {
        self.settle_nameless();
        if let ids @ [_, ..] = std::mem::take(&mut self.unchecked_intervals).into_iter().collect::<Vec<_>>().as_slice()
        {
            match self.fixed.values_mut().next() {
                Some(map) => map.extend(ids),
                None => {
                    self.other.ids.extend(ids);
                    self.other.is_logical = true;
                }
            }
        }
        for table in self.tables.values_mut() {
            table.settle(&self.unowned.pages);
            // If nothing shows where the table is damaged, it is unknown which pages to restore, and a rebuild may not
            // repair the damage. So only a restore of the database is certain to help.
            if !table.loses_data() && !table.is_in_structure && !table.is_in_allocation {
                self.other.ids.extend(&table.ids);
                self.other.is_logical = true;
            }
        }
    }

    /// Handles pages whose findings name no owner. If another finding connects the page with a table or an index, the
    /// page is assigned to that owner.
    fn settle_nameless(&mut self) {
        for (page, ids) in std::mem::take(&mut self.nameless) {
            let lacks = |table: &&mut TableDamage| table.pages.contains(&page) || table.unseen_maps.contains(&page);
            if let Some(table) = self.tables.values_mut().find(lacks) {
                table.ids.extend(ids);
                table.pages.insert(page);
            } else if let Some(known) = self.index_pages.get(&page).and_then(|index| self.indexes.get_mut(index)) {
                known.extend(ids);
            } else {
                self.other.ids.extend(ids);
                self.other.pages.insert(page);
            }
        }
    }

    /// Adds a finding to the group for the action that repairs it.
    #[expect(clippy::too_many_lines, reason = "a branch for each kind of damage")]
    pub(crate) fn add(&mut self, finding: &Finding, database: &Database) {
        let check = finding.check;
        let owner = finding.owner.filter(|owner| owner.object_id != 0);
        if check.damage == Kind::Container {
            self.container.insert(check.id);
            return;
        }
        // The finding names the first page of the damaged map's interval, although this page is not damaged.
        if check.damage == Kind::Map(Map::Interval) {
            self.unchecked_intervals.insert(check.id);
            return;
        }
        if self.maps.take(finding) {
            return;
        }
        // If no page points to an IAM page, the finding names (0:0) as the page before the IAM page.
        if check.damage == Kind::Iam(Iam::Previous) && owner.is_none() {
            self.unowned.ids.insert(check.id);
            self.unowned.pages.extend(finding.ref_page);
            return;
        }
        let is_fixed = |page: &PageId| !page.is_none() && FixedPage::at(*page).is_some() && check.is_about_its_page();
        if let Some(page) = finding.page.filter(is_fixed) {
            self.fixed.entry(page).or_default().insert(check.id);
            return;
        }
        if check.damage == Kind::Iam(Iam::Range) && finding.page.is_some_and(|page| self.cut_files.contains(&page.file))
        {
            self.other.add(finding);
            return;
        }
        let is_columnstore = check.damage == Kind::Columnstore;
        let Some(owner) = owner else {
            match finding.page.filter(|_| check.damage.is_of_whole_page()) {
                Some(page) => drop(self.nameless.entry(page).or_default().insert(check.id)),
                None if check.damage.is_of_catalog() => self.catalog.add(finding),
                None => {
                    let is_extent = check.damage == Kind::Map(Map::UnownedExtent);
                    self.unowned_extents.extend(finding.page.filter(|_| is_extent));
                    self.unowned.add(finding);
                }
            }
            return;
        };
        let object_id = owner.object_id;
        if check.damage == Kind::Counts {
            self.counts.entry(object_id).or_default().insert(check.id);
            return;
        }
        if check.damage.is_of_catalog() && !is_columnstore {
            // A finding about catalog rows names the object that the rows describe, not the system table. Still, it
            // counts as damage of the catalog.
            self.catalog.add(finding);
            self.catalog.is_logical = true;
            return;
        }
        if database.is_system_table(object_id) {
            self.catalog.add(finding);
            self.catalog.critical |= CRITICAL_TABLES.contains(&object_id);
            return;
        }
        let kind = database.indexes.get(&(object_id, owner.index_id)).map(|index| index.index_type);
        let is_of_view = database.objects.get(&object_id).is_some_and(|object| object.type_code == VIEW);
        let is_copy = is_of_view || owner.index_id > 1 && (is_rebuilt(kind) || is_columnstore);
        if let Some(fault) = row_fault(finding).filter(|fault| !is_copy || fault.is_of_table()) {
            let rows = self.rows.entry((object_id, fault)).or_default();
            rows.ids.insert(check.id);
            rows.count += u64::from(!check.policy.follows);
            if let Some((page, slot)) = finding.page.zip(finding.slot).filter(|_| rows.records.len() < MOST_ROWS) {
                rows.records.insert(RecordId { page, slot });
            }
            return;
        }
        if is_copy {
            self.indexes.entry((object_id, owner.index_id)).or_default().insert(check.id);
            let [missing, surplus] = self.index_rows.entry((object_id, owner.index_id)).or_default();
            let is = |row: Index| check.damage == Kind::Index(row) && !check.policy.follows;
            *missing += u64::from(is(Index::RowMissing));
            *surplus += u64::from(is(Index::RowSurplus));
            self.index_pages.extend(finding.page.map(|page| (page, (object_id, owner.index_id))));
            return;
        }
        if is_columnstore || owner.index_id > 1 {
            self.other.add(finding);
            self.other.is_logical = true;
            return;
        }
        self.tables.entry(object_id).or_default().add(finding);
    }

    /// Whether there is no damage.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
            && self.indexes.is_empty()
            && self.rows.is_empty()
            && self.tables.is_empty()
            && self.fixed.is_empty()
            && self.container.is_empty()
            && self.maps.ids.is_empty()
            && [&self.catalog, &self.unowned, &self.other].iter().all(|kind| kind.ids.is_empty())
    }

    /// Whether there is damage that only a copy of the data can repair.
    pub(crate) fn needs_restore(&self) -> bool {
        let in_tables = self.tables.values().any(|table| table.loses_data());
        let elsewhere = [&self.catalog, &self.other].iter().any(|kind| !kind.ids.is_empty());
        in_tables || elsewhere || !self.fixed.is_empty()
    }

    /// Pages whose content only a restore can recover: pages of user tables and system tables, file headers, boot
    /// pages, and allocation maps.
    pub(crate) fn pages(&self) -> BTreeSet<PageId> {
        let tables = self.tables.values().flat_map(|table| table.pages.iter().chain(&table.values));
        let system = self.catalog.pages.iter().chain(&self.other.pages).chain(&self.maps.maps);
        tables.chain(system).chain(self.fixed.keys()).copied().collect()
    }
}

/// Whether an index of this type can be rebuilt from its table.
fn is_rebuilt(kind: Option<IndexType>) -> bool {
    matches!(kind, Some(IndexType::Nonclustered | IndexType::NonclusteredColumnstore))
}

fn row_fault(finding: &Finding) -> Option<RowFault> {
    let Kind::Row(row) = finding.check.damage else { return None };
    let text = |name: &str| match finding.value(name) {
        Some(Value::Text(text)) => text.clone(),
        _ => String::new(),
    };
    Some(match row {
        Row::Purity => RowFault::Purity { column: text("column") },
        Row::Column => RowFault::Column,
        Row::Partition => RowFault::Partition,
        Row::Constraint => RowFault::Constraint { name: text("constraint") },
    })
}

impl CatalogDamage {
    fn add(&mut self, finding: &Finding) {
        let check = finding.check;
        self.ids.insert(check.id);
        let is_place = |page: &PageId| !page.is_none() && (check.is_about_its_page() || check.is_primitive());
        match finding.page.filter(is_place) {
            Some(page) => {
                self.pages.insert(page);
                self.critical |= check.is_primitive();
            }
            None => self.is_logical = true,
        }
    }
}

impl TableDamage {
    fn add(&mut self, finding: &Finding) {
        let check = finding.check;
        self.ids.insert(check.id);
        self.rowsets.extend(finding.owner.map(|owner| owner.partition_id));
        let page = finding.page.filter(|page| !page.is_none());
        if !check.policy.follows {
            self.missing.insert((check.damage, check.id, [page, finding.ref_page]));
        }
        let has_keys = |owner: Owner| owner.index_id == 1 && owner.kind == Some(UnitKind::InRow);
        match check.damage {
            Kind::Iam(Iam::Page | Iam::Chain | Iam::Previous | Iam::Range | Iam::OfOther) => {
                self.is_in_allocation = true;
                if finding.owner.is_some_and(has_keys) {
                    self.unseen_maps.extend(page);
                } else {
                    // Without the IAM pages, heap rows and off-row values are not found, not even by a rebuild.
                    let maps = [page, finding.ref_page].into_iter().flatten();
                    let is_iam = |page: &PageId| !page.is_none() && FixedPage::at(*page).is_none();
                    let maps: Vec<PageId> = maps.filter(is_iam).collect();
                    self.pages.extend(&maps);
                    self.needed_maps.extend(maps);
                }
            }
            Kind::Map(_) | Kind::Iam(Iam::Unchecked) => self.is_in_allocation = true,
            Kind::Page | Kind::Record | Kind::Misplaced | Kind::Log => self.pages.extend(page),
            // Either of the two pages is wrong, but the finding does not show which one.
            Kind::Reference(Reference::Child | Reference::Forward | Reference::OffRow | Reference::Unreferenced)
            | Kind::Iam(Iam::ListedTwice) => self.values.extend(page.into_iter().chain(finding.ref_page)),
            Kind::Structure(structure) => self.add_structure(structure, page, finding.ref_page),
            Kind::Index(Index::RowMissing | Index::RowSurplus | Index::Xml) => self.is_in_structure = true,
            // Damage of these kinds is not in a table's pages: the caller handles it.
            Kind::Row(_) | Kind::Columnstore | Kind::Counts | Kind::Primitive | Kind::Catalog | Kind::Container => {}
        }
    }

    fn add_structure(&mut self, structure: Structure, page: Option<PageId>, ref_page: Option<PageId>) {
        self.is_in_structure = true;
        match structure {
            Structure::Keys => self.add_keys(page, ref_page),
            Structure::KeyRange => {
                self.add_keys(page, ref_page);
                self.consequences.extend(page);
            }
            Structure::Links => self.consequences.extend(page),
            Structure::EmptyPage | Structure::GhostCount | Structure::BuildRemains => {}
        }
    }

    /// A parent page stores the key range of its child. If the range and the keys disagree, either page may be wrong, so
    /// both pages are added.
    fn add_keys(&mut self, page: Option<PageId>, ref_page: Option<PageId>) {
        self.keys.extend(page.into_iter().chain(ref_page).filter(|page| !page.is_none()));
    }

    /// Removes findings that are only consequences of other damage. If pages of the table are damaged, wrong links and
    /// references on other pages are such consequences.
    fn settle(&mut self, unowned: &BTreeSet<PageId>) {
        // A page that seems to be missing may exist in an extent for which no map names an owner. In this case, the
        // allocation maps are wrong.
        let extent = |page: &PageId| PageId::new(page.file, page.page / EXTENT_PAGES * EXTENT_PAGES);
        self.is_in_allocation |= self.consequences.iter().any(|page| unowned.contains(&extent(page)));
        if !self.pages.is_empty() {
            self.values.clear();
            self.is_in_structure = false;
        }
    }

    /// Treats pages with keys in the wrong order as damaged, so that they are restored and not rebuilt.
    pub(crate) fn restore_keys(&mut self) {
        if !self.keys.is_empty() {
            self.pages.append(&mut self.keys);
            self.is_in_structure = false;
        }
    }

    /// Whether rows or values of the table are lost.
    pub(crate) fn loses_data(&self) -> bool {
        !self.pages.is_empty() || !self.values.is_empty()
    }
}
