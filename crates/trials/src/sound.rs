//! Sound databases with the rows of their tables, and the normal scan of a table.

use std::collections::BTreeMap;

use catalog::{Database, UnitKind, column_status};
use format::types::xtype;
use format::{Page, PageId, PageType, RecordId};
use rows::salvage::{PageSet, foreign, reach};
use rows::{Reader, Scan, ScanOptions, Table, Why};
use source::{MemoryFiles, PageSource};
use trials::mutate::{PageRole, Pages};
use trials::plain::plain;

/// A row as plain text.
pub(crate) type Row = Vec<Option<String>>;

/// A sound database.
#[derive(Clone, Copy)]
pub(crate) struct Sound<'a> {
    pub(crate) name: &'a str,
    pub(crate) files: &'a MemoryFiles,
    pub(crate) database: &'a Database,
    /// The pages of the database, by role.
    pub(crate) roles: &'a BTreeMap<PageRole, Vec<PageId>>,
    /// The tables that are judged.
    pub(crate) tables: &'a [Whole],
}

/// A table of a sound database.
pub(crate) struct Whole {
    pub(crate) table: Table,
    /// The rows of the table, by address.
    pub(crate) rows: BTreeMap<RecordId, Row>,
    /// The leaf pages or heap pages of the table, according to their page headers, with the partition number.
    pub(crate) leaves: BTreeMap<PageId, i32>,
    /// The clustering key of the table, if it is a single integer column.
    pub(crate) key: Option<IntegerKey>,
    /// Whether rows with equal clustering keys have a uniquifier, which is not part of any column.
    pub(crate) has_uniquifier: bool,
    /// Whether the row counts in the catalog are right for each partition.
    pub(crate) is_counted: bool,
}

/// A clustering key of one integer.
#[derive(Clone, Copy)]
pub(crate) struct IntegerKey {
    /// The position of the key column in a row.
    pub(crate) at: usize,
    pub(crate) is_descending: bool,
    /// Whether several rows may have the same key.
    pub(crate) has_equals: bool,
}

/// The result of the normal scan of a table.
pub(crate) struct Read {
    pub(crate) rows: BTreeMap<RecordId, Row>,
    pub(crate) left_out: Vec<(PageId, Why)>,
    pub(crate) reached: PageSet,
    pub(crate) by_partition: Vec<u64>,
    pub(crate) skipped_slots: u64,
}

/// Reads all tables of a sound lab database. Returns an error if the rows differ from the rows that the lab wrote.
pub(crate) fn lab_tables(
    files: &MemoryFiles,
    database: &Database,
    description: &lab::Description,
) -> Result<Vec<Whole>, String> {
    let mut tables = Vec::new();
    for truth in lab::truth::truth(description) {
        let id = Table::list(database)
            .into_iter()
            .find(|id| database.objects.get(id).is_some_and(|object| object.name == truth.table));
        let id = id.ok_or_else(|| format!("{} is not listed", truth.table))?;
        let table = Table::of(database, id).map_err(|why| format!("{}: {why}", truth.table))?;
        let whole = Whole::read(files, database, table)?;
        let columns = &whole.table.columns;
        let stored: Vec<usize> =
            truth.columns.iter().filter_map(|name| columns.iter().position(|column| column.name == *name)).collect();
        let mut found: Vec<Row> =
            whole.rows.values().map(|row| stored.iter().map(|at| row[*at].clone()).collect()).collect();
        let mut expected = truth.rows;
        // Columns whose values the reader cannot convert are left out of the comparison.
        for at in 0..stored.len() {
            if found.iter().any(|row| row[at].as_deref() == Some("<Undocumented>")) {
                found.iter_mut().chain(&mut expected).for_each(|row| row[at] = None);
            }
        }
        found.sort();
        expected.sort();
        if found != expected {
            let differ = found.iter().zip(&expected).find(|(found, expected)| found != expected);
            return Err(format!(
                "{} has {} rows of {}, first difference {differ:?}",
                truth.table,
                found.len(),
                expected.len()
            ));
        }
        tables.push(whole);
    }
    Ok(tables)
}

impl Whole {
    /// Reads a table of a sound database. Returns an error if a part of it cannot be read.
    pub(crate) fn read(files: &MemoryFiles, database: &Database, table: Table) -> Result<Self, String> {
        let read = read(files, database, &table)?;
        if !read.left_out.is_empty() || read.skipped_slots > 0 {
            return Err(format!("{} cannot be read whole", table.name));
        }
        let rowsets = || table.partitions.iter().map(|at| &database.rowsets[*at]);
        let counts = rowsets().zip(&read.by_partition);
        let is_counted = counts.into_iter().all(|(rowset, rows)| u64::try_from(rowset.rows) == Ok(*rows));
        let is_uniquifier = |column: &catalog::RowsetColumn| column.status & column_status::UNIQUIFIER != 0;
        Ok(Self {
            leaves: leaves(files, database, &table),
            key: integer_key(database, &table),
            has_uniquifier: rowsets().any(|rowset| rowset.layout.columns.iter().any(is_uniquifier)),
            is_counted,
            rows: read.rows,
            table,
        })
    }
}

/// The allocated leaf pages or heap pages of the table, according to their page headers.
fn leaves(files: &MemoryFiles, database: &Database, table: &Table) -> BTreeMap<PageId, i32> {
    let pages = Pages::new(files, database);
    let partition = |page: &PageId| {
        let bytes = pages.read(*page)?;
        let header = Page::new(&bytes).header();
        let is_leaf = header.kind() == Some(PageType::Data) && header.level == 0 && header.page_id() == *page;
        let unit = database.units.get(database.unit_index(header.alloc_unit()).filter(|_| is_leaf)?)?;
        let is_own = unit.kind == UnitKind::InRow && table.partitions.contains(&unit.rowset?);
        (is_own && pages.pfs(*page)?.is_allocated()).then_some(database.rowset_of(unit)?.partition)
    };
    pages.ids().filter_map(|page| Some((page, partition(&page)?))).collect()
}

fn integer_key(database: &Database, table: &Table) -> Option<IntegerKey> {
    let rowset = database.rowsets.get(*table.partitions.first()?)?;
    let of_key = rowset.layout.columns.iter().filter(|column| rowset.index_id == 1 && column.key_ordinal > 0);
    let (uniquifier, key): (Vec<_>, Vec<_>) = of_key.partition(|column| column.status & column_status::UNIQUIFIER != 0);
    let [key] = key.as_slice() else { return None };
    let is_integer = matches!(key.info.xtype, xtype::TINYINT | xtype::SMALLINT | xtype::INT | xtype::BIGINT);
    Some(IntegerKey {
        at: table.columns.iter().position(|column| column.id == key.id).filter(|_| is_integer)?,
        is_descending: rowset.layout.key(catalog::Level::Leaf).first()?.descending,
        has_equals: !uniquifier.is_empty(),
    })
}

/// Reads a table by the normal scan.
pub(crate) fn read(source: &dyn PageSource, database: &Database, table: &Table) -> Result<Read, String> {
    let mut scan = Scan::new(source, database, table, ScanOptions::default());
    let mut reader = Reader::new(source, database, table, ScanOptions::default());
    let mut read = Read {
        rows: BTreeMap::new(),
        left_out: Vec::new(),
        reached: PageSet::of(source),
        by_partition: vec![0; table.partitions.len()],
        skipped_slots: 0,
    };
    let mut twice = None;
    while let Some(range) = scan.next_range() {
        let counts = reader.read(&range, &mut |row| {
            if read.rows.insert(row.place, row.values.iter().map(plain).collect()).is_some() {
                twice = Some(row.place);
            }
            Ok(())
        });
        let counts = counts.map_err(|error| error.to_string())?;
        if !reach(&mut read.reached, &range, &foreign(&counts.damaged_pages)) {
            return Err("a page is handed out twice".to_owned());
        }
        read.by_partition[range.partition] += counts.rows;
        read.skipped_slots += counts.skipped_slots;
        read.left_out.extend(counts.damaged_pages);
    }
    match twice {
        Some(place) => Err(format!("row {place} is handed out twice")),
        None => Ok(read),
    }
}
