//! Loads the whole [`Database`], starting at the boot page. Each table is read after the tables that are needed to read
//! it.

use std::collections::BTreeMap;

use format::collation::CollationId;
use format::compressed::Expansion;
use format::types::{datetime_text, xtype};
use format::{AllocUnitId, Page, PageId, PageType};
use source::PageSource;

use crate::bootstrap::{self, Pages};
use crate::chain::{self, Fetched};
use crate::database::{AllocUnit, Boot, Database, Gap, Rowset, UnitKind};
use crate::found::Found;
use crate::layout::RowsetColumn;
use crate::rows::{Place, Start};
use crate::{encryption, whole};

mod columnstore;
mod constraints;
mod named;
mod partitions;

use named::{Loader, variant_value};

const SYSROWSETCOLUMNS_2005: i32 = 4;
const SYSRSCOLS: i32 = 3;
pub(crate) const SYSROWSETS: i32 = 5;
const SYSALLOCUNITS: i32 = 7;
const SYSHOBTCOLUMNS_2005: i32 = 13;
/// The most columns of a table, including sparse ones.
const MAX_COLUMNS: usize = 32_000;
const SYSCOLPARS: i32 = 41;
const SYSSEOBJVALUES: i32 = 9;

/// Reads the catalog as far as possible. This function never fails. [`Database::gaps`] lists the parts that could not
/// be read. [`Database::boot`] is `None` if the boot page cannot be read.
pub fn load(source: &dyn PageSource) -> Database {
    load_from(Pages { source, found: None })
}

/// Reads the catalog like [`load`], but without the boot page too, and reads base tables with a broken chain from the
/// pages that were found. [`Database::gaps`] still lists these tables, because pages of them may be lost.
pub fn load_found(source: &dyn PageSource, found: &Found) -> Database {
    let mut database = load_from(Pages { source, found: Some(found) });
    keep_last(&mut database);
    database
}

fn load_from(pages: Pages<'_>) -> Database {
    let is_encrypted = encryption::is_encrypted(pages.source);
    let mut database = Database { boot: read_boot(pages.source), is_encrypted, ..Database::default() };
    if is_encrypted {
        return database;
    }
    let (is_2005, first) = match (&database.boot, pages.found) {
        (Some(boot), _) => (boot.version < 655, Some(boot.first_sysallocunits)),
        (None, Some(found)) => (found.is_2005(), None),
        (None, None) => return database,
    };
    load_units(pages, &mut database, first);
    load_rowsets(pages, &mut database, is_2005);
    if is_2005 {
        load_layouts_2005(pages, &mut database)
    } else {
        load_layouts(pages, &mut database)
    }
    Loader { pages }.load_named_tables(&mut database, is_2005);
    database
}

/// Keeps one of several rows with the same key. Such rows come from pages that were freed and are still found by their
/// headers; the row of the page that was changed last is the current one, and was read last.
fn keep_last(database: &mut Database) {
    fn last<T, K: Ord>(rows: &mut Vec<T>, key: impl Fn(&T) -> K) {
        rows.reverse();
        rows.sort_by_key(|row| key(row));
        rows.dedup_by(|b, a| key(a) == key(b));
    }
    database.columns.values_mut().for_each(|columns| last(columns, |column| column.id));
    database.index_columns.values_mut().for_each(|columns| last(columns, |column| column.position));
    last(&mut database.expressions, |expression| (expression.object_id, expression.kind, expression.sub_id));
    last(&mut database.filegroups, |group| group.id);
    last(&mut database.files, |file| file.file_id);
}

/// Sorts rows by their key and keeps one row of each key: the first that was read, or the last if the rows come from
/// pages that were found.
fn sort_rows<T>(rows: &mut Vec<T>, pages: Pages<'_>, key: impl Fn(&T) -> u64) {
    if pages.found.is_some() {
        rows.reverse();
    }
    rows.sort_by_key(&key);
    rows.dedup_by_key(|row| key(row));
    rows.shrink_to_fit();
}

fn read_boot(source: &dyn PageSource) -> Option<Boot> {
    let Fetched::Sound(bytes) = chain::fetch(source, PageId::BOOT) else { return None };
    let page = Page::new(&bytes);
    if page.header().kind() != Some(PageType::Boot) {
        return None;
    }
    let boot = format::boot::Boot::read(page)?;
    let text = |(ticks, days)| datetime_text(ticks, days);
    Some(Boot {
        name: boot.name(),
        version: boot.version(),
        create_version: boot.create_version(),
        status: boot.status(),
        database_id: boot.database_id(),
        compatibility_level: boot.compatibility_level(),
        checkpoint_lsn: boot.checkpoint_lsn(),
        redo_lsn: boot.redo_lsn(),
        log_backup_lsn: boot.log_backup_lsn(),
        log_backup_chain_origin: boot.log_backup_chain_origin(),
        collation: boot.collation(),
        family_guid: boot.family_guid(),
        created: text(boot.created()),
        modified: text(boot.modified()),
        last_known_good: text(boot.last_known_good()),
        // Databases of releases before SQL Server 2005 do not have this field. So a time before 2005 is not a valid
        // value.
        catalog_updated: text(boot.catalog_updated()).filter(|time| time.as_str() >= "2005"),
        data_purity: boot.dbcc_flags() & 2 != 0,
        engine_build: boot.engine_build(),
        first_sysallocunits: boot.first_sysallocunits(),
    })
}

/// Computes the allocation unit ID of the clustered index of a base table with fixed IDs. The rowset ID is the same
/// number.
pub(crate) fn fixed_id(object_id: i32) -> u64 {
    (object_id as u64) << 16
}

fn load_units(pages: Pages<'_>, database: &mut Database, first: Option<PageId>) {
    let mut units = Vec::new();
    let mut unreadable = 0;
    let unit = AllocUnitId(fixed_id(SYSALLOCUNITS));
    let place = first.map(|first| Place { unit, start: Start::FirstPage(first), expansion: None });
    let table = (SYSALLOCUNITS, "sysallocunits");
    bootstrap::table(pages, &mut database.gaps, table, place, |record| match bootstrap::alloc_unit(&record) {
        Some(unit) => units.push(unit),
        None => unreadable += 1,
    });
    note_unreadable(database, table, unreadable);
    sort_rows(&mut units, pages, |unit| unit.id.0);
    database.units = units;
}

/// Records the rows that are too short to contain all columns that their table has in every release.
fn note_unreadable(database: &mut Database, (object_id, table): (i32, &'static str), unreadable: u32) {
    if unreadable > 0 {
        match database.gaps.iter_mut().find(|gap| gap.object_id == object_id) {
            Some(gap) => gap.bad_records += unreadable,
            None => database.gaps.push(Gap { object_id, table, fault: None, bad_records: unreadable, missing_rows: 0 }),
        }
    }
}

/// If fewer rows were found than the catalog counts, compares the leaf chain with the tree and the IAM chain, and
/// records missing rows if the chain is incomplete. This is needed because a leaf chain that ends too early looks
/// complete. The count alone proves nothing, because upgraded databases have stale counts
/// (docs/format/README.md#page-counts).
fn note_missing_rows(
    source: &dyn PageSource,
    database: &mut Database,
    (object_id, table): (i32, &'static str),
    found: usize,
) {
    let at = database.rowsets.binary_search_by_key(&fixed_id(object_id), |rowset| rowset.id);
    let counted = at.ok().and_then(|at| database.rowsets.get(at)).map_or(0, |rowset| rowset.rows);
    let missing_rows = u64::try_from(counted).unwrap_or_default().saturating_sub(found as u64);
    if missing_rows == 0 || database.gap(object_id).is_some() {
        return;
    }
    let is_its = |unit: &&AllocUnit| unit.owner_id == fixed_id(object_id) && unit.kind == UnitKind::InRow;
    let unit = database.units.iter().find(is_its);
    let is_whole = unit.is_some_and(|unit| {
        let first = chain::start(source, unit.id, unit.root, unit.first_page);
        first.is_ok_and(|first| whole::is_whole(source, unit, first))
    });
    if !is_whole {
        database.gaps.push(Gap { object_id, table, fault: None, bad_records: 0, missing_rows });
    }
}

/// Returns the place of a rowset's rows: the in-row allocation unit and its root page. `None` if the rowset has no
/// in-row unit.
fn place_of<'a>(database: &Database, rowset_id: u64) -> Option<Place<'a>> {
    database.units.iter().find(|unit| unit.owner_id == rowset_id && unit.kind == UnitKind::InRow).map(place_in)
}

fn place_in<'a>(unit: &AllocUnit) -> Place<'a> {
    let start = Start::Root { root: unit.root, first: unit.first_page };
    Place { unit: unit.id, start, expansion: None }
}

/// Returns the place of a rowset's rows, which may be compressed; `None` if the rowset has no in-row unit. The form of
/// compressed non-leaf entries is undocumented, so their child pointers cannot be followed. Therefore, the scan of a
/// compressed rowset starts at the first page that the catalog names, unless the root is the only leaf.
pub(crate) fn place_of_rowset<'a>(
    database: &Database,
    rowset: &Rowset,
    expansion: Option<&'a Expansion>,
) -> Option<Place<'a>> {
    let mut units = rowset.units.iter().filter_map(|at| database.units.get(*at));
    let unit = units.find(|unit| unit.kind == UnitKind::InRow)?;
    let place = place_in(unit);
    Some(if rowset.is_row_compressed() && !unit.root.is_none() && unit.root != unit.first_page {
        Place { start: Start::Leftmost(unit.first_page), expansion, ..place }
    } else {
        Place { expansion, ..place }
    })
}

fn load_rowsets(pages: Pages<'_>, database: &mut Database, is_2005: bool) {
    let place = place_of(database, fixed_id(SYSROWSETS));
    let mut rowsets: Vec<Rowset> = Vec::new();
    let mut unreadable = 0;
    let table = (SYSROWSETS, "sysrowsets");
    bootstrap::table(pages, &mut database.gaps, table, place, |record| match bootstrap::rowset(&record, is_2005) {
        Some(rowset) => rowsets.push(rowset),
        None => unreadable += 1,
    });
    note_unreadable(database, table, unreadable);
    sort_rows(&mut rowsets, pages, |rowset| rowset.id);
    for (at, unit) in database.units.iter_mut().enumerate() {
        unit.rowset = rowsets.binary_search_by_key(&unit.owner_id, |rowset| rowset.id).ok();
        if let Some(rowset) = unit.rowset.and_then(|rowset| rowsets.get_mut(rowset)) {
            // Most rowsets have one allocation unit. Without this line, the list would allocate memory for at least
            // four.
            rowset.units.reserve_exact(1);
            rowset.units.push(at);
        }
    }
    let (units, found) = (database.units.len(), rowsets.len());
    database.rowsets = rowsets;
    note_missing_rows(pages.source, database, table, found);
    note_missing_rows(pages.source, database, (SYSALLOCUNITS, "sysallocunits"), units);
}

fn load_layouts(pages: Pages<'_>, database: &mut Database) {
    let place = place_of(database, fixed_id(SYSRSCOLS));
    let mut columns = Distributor::default();
    let mut unreadable = 0;
    let table = (SYSRSCOLS, "sysrscols");
    bootstrap::table(pages, &mut database.gaps, table, place, |record| match bootstrap::rowset_column(&record) {
        Some(column) => columns.add(&mut database.rowsets, column),
        None => unreadable += 1,
    });
    note_unreadable(database, table, unreadable);
    columns.hand_over(&mut database.rowsets);
    note_missing_rows(pages.source, database, table, columns.found);
    complete_layouts(database, pages.found.is_some());
}

fn load_layouts_2005(pages: Pages<'_>, database: &mut Database) {
    let mut columns = Distributor::default();
    let place = place_of(database, fixed_id(SYSHOBTCOLUMNS_2005));
    let table = (SYSHOBTCOLUMNS_2005, "syshobtcolumns");
    bootstrap::table(pages, &mut database.gaps, table, place, |record| {
        let column = bootstrap::hobt_column_2005(&record);
        column.into_iter().for_each(|column| columns.add(&mut database.rowsets, column));
    });
    columns.hand_over(&mut database.rowsets);
    complete_layouts(database, pages.found.is_some());
    let place = place_of(database, fixed_id(SYSROWSETCOLUMNS_2005));
    let table = (SYSROWSETCOLUMNS_2005, "sysrowsetcolumns");
    bootstrap::table(pages, &mut database.gaps, table, place, |record| {
        let Some(((rowset_id, physical), id)) = bootstrap::rowset_column_2005(&record) else { return };
        let rowset = database.rowsets.binary_search_by_key(&rowset_id, |rowset| rowset.id);
        let Some(rowset) = rowset.ok().and_then(|at| database.rowsets.get_mut(at)) else { return };
        let columns = &mut rowset.layout.columns;
        let first = columns.partition_point(|column| column.physical < physical);
        let of_place = columns.iter_mut().skip(first).take_while(|column| column.physical == physical);
        of_place.for_each(|column| bootstrap::name_column_2005(column, id));
    });
}

/// Moves the columns to their rowsets while they are read, so that all columns need not be stored in one list. The
/// columns of one rowset are adjacent in the base table.
#[derive(Default)]
struct Distributor {
    rowset_id: u64,
    /// The columns of the current rowset that were read so far.
    columns: Vec<RowsetColumn>,
    /// The number of columns read so far, over all rowsets.
    found: usize,
}

impl Distributor {
    fn add(&mut self, rowsets: &mut [Rowset], (rowset_id, column): (u64, RowsetColumn)) {
        if rowset_id != self.rowset_id {
            self.hand_over(rowsets);
            self.rowset_id = rowset_id;
        }
        self.columns.push(column);
        self.found += 1;
    }

    fn hand_over(&mut self, rowsets: &mut [Rowset]) {
        let at = rowsets.binary_search_by_key(&self.rowset_id, |rowset| rowset.id);
        if let Some(rowset) = at.ok().and_then(|at| rowsets.get_mut(at)) {
            rowset.layout.columns.reserve_exact(self.columns.len());
            rowset.layout.columns.append(&mut self.columns);
        }
        self.columns.clear();
    }
}

/// The collation that most text columns have. Without the boot page, it stands for the default collation.
fn usual_collation(database: &Database) -> CollationId {
    let mut columns: BTreeMap<u32, usize> = BTreeMap::new();
    let all = database.rowsets.iter().flat_map(|rowset| &rowset.layout.columns);
    for column in all.filter(|column| column.collation != CollationId(0)) {
        *columns.entry(column.collation.0).or_default() += 1;
    }
    let most = columns.into_iter().max_by_key(|(id, columns)| (*columns, std::cmp::Reverse(*id)));
    CollationId(most.map_or(0, |(id, _)| id))
}

/// Sorts the columns of each rowset into physical order, and adds collations and expansions, which the rows of the
/// catalog do not contain.
fn complete_layouts(database: &mut Database, keeps_last: bool) {
    let default_collation = match &database.boot {
        Some(boot) => CollationId(boot.collation),
        None => usual_collation(database),
    };
    for rowset in &mut database.rowsets {
        rowset.layout.columns.sort_by_key(|column| column.physical);
        if keeps_last {
            // Rows from pages that were found may be there twice. The last one is the current one.
            rowset.layout.columns.reverse();
            rowset.layout.columns.dedup_by_key(|column| (column.physical, column.id));
            rowset.layout.columns.reverse();
        }
        // Only a damaged catalog has more columns than this limit.
        rowset.layout.columns.truncate(MAX_COLUMNS);
        for column in &mut rowset.layout.columns {
            let is_text = matches!(column.info.xtype, xtype::CHAR | xtype::VARCHAR | xtype::NCHAR | xtype::NVARCHAR);
            if is_text && column.collation == CollationId(0) {
                column.collation = default_collation;
            }
        }
        if rowset.is_row_compressed() {
            let expansion = rowset.layout.expand();
            rowset.expansion =
                if rowset.is_page_compressed() { expansion.map(Expansion::with_information) } else { expansion };
        }
    }
}
