//! Databases that have lost their beginning, or every n-th block, as ransomware leaves them. The catalog is put together
//! from the pages that are left, with or without a copy of the database. All rows of intact pages must be delivered with
//! their values, or as raw fields if their columns are lost; no row may be invented.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Database, Found, RestsOn};
use format::page::PAGE_BYTES;
use format::protection::seal;
use format::{PageBytes, PageId};
use rows::Table;
use rows::salvage::{PageSet, Request, Unreached, foreign, reach, salvage};
use rows::{Scan, ScanOptions};
use source::{MemoryFiles, PageSource};
use trials::mutate::Random;

use super::judge::{Kept, MEMORY};
use super::{files_of, with_sound};
use crate::campaigns::Bench;
use crate::outcome::{Outcome, Verdict};
use crate::sound::{Read, Row, Sound, read};

/// Memory for the search for pages of the catalog, in bytes.
const SEARCH_BYTES: usize = 8 << 20;
const MOST_STRAYS: usize = 10_000;
const MEGABYTE_PAGES: u32 = (1 << 20) / PAGE_BYTES as u32;
/// The text for an off-row value with a fragment on a lost page.
const LOST: &str = "<Lost(";
/// The text for a value that is only in the catalog.
const NO_DEFAULT: &str = "<Undocumented>";

pub(crate) fn trial(bench: &Bench, seed: u64) -> Outcome {
    with_sound(bench, seed, of)
}

fn of(bench: &Bench, sound: Sound<'_>, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let (kind, changes) = overwritten(sound.files, &mut random);
    let has_copy = random.below(2) == 0;
    let kind = format!("{kind}, {}", if has_copy { "with a copy" } else { "alone" });
    let what = format!("{} {} pages overwritten", sound.name, changes.len());
    let lost: BTreeSet<PageId> = changes.keys().copied().collect();
    let files = match sound.files.with_pages(changes) {
        Ok(files) => files,
        // A file needs three pages to be recognized.
        Err(_) if left(sound.files, &lost) < 3 => return Outcome::new(kind, what, Verdict::Kept),
        Err(error) => return Outcome::new(kind, what, Verdict::Broke(error.to_string())),
    };
    bench.keep(|| files_of(&files));
    let judged = complete(&files, sound, has_copy).and_then(|database| {
        let delivered = Delivered::of(&files, &database)?;
        delivered.judge(sound, &database, &lost, has_copy)
    });
    // The same pages with changed bytes under a right checksum: whatever they say, it may not hurt.
    if let Ok(files) = files.with_pages(mutated(&files, &lost, &mut random)) {
        let _ = complete(&files, sound, has_copy).and_then(|database| Delivered::of(&files, &database));
    }
    Outcome::new(kind, what, judged.map_or_else(Verdict::Broke, |()| Verdict::Kept))
}

/// The catalog, put together from what is left.
fn complete(files: &MemoryFiles, sound: Sound<'_>, has_copy: bool) -> Result<Database, String> {
    let found = Found::find(files, SEARCH_BYTES, &|_| ());
    let mut database = catalog::load_found(files, &found);
    if has_copy {
        catalog::complete_from(&mut database, sound.database).map_err(|why| why.to_string())?;
    }
    catalog::complete_by_records(&mut database, &found);
    Ok(database)
}

/// The number of pages in use of the first file that are not overwritten.
fn left(files: &MemoryFiles, lost: &BTreeSet<PageId>) -> usize {
    let Some(file) = files.files().first() else { return 0 };
    let pages = (0..file.pages).map(|page| PageId::new(file.file_id, page)).filter(|page| !lost.contains(page));
    pages.filter(|page| files.read_page(*page).is_some_and(|bytes| bytes[0] != 0)).count()
}

/// Overwrites pages. Returns the kind of damage, and the pages with their new bytes.
fn overwritten(files: &MemoryFiles, random: &mut Random) -> (&'static str, BTreeMap<PageId, PageBytes>) {
    let Some(file) = files.files().first() else { return ("nothing", BTreeMap::new()) };
    let head = |pages: u32| (0..pages.min(file.pages.saturating_sub(4))).collect::<Vec<u32>>();
    let (kind, pages) = match random.below(5) {
        0 => ("64 KB", head(8)),
        1 => ("1 MB", head(MEGABYTE_PAGES)),
        2 => ("a quarter", head(file.pages / 4)),
        3 => {
            let every = 2 + random.below(30) as u32;
            ("every n-th page", (0..file.pages).filter(|page| page % every == 0).collect())
        }
        _ => {
            let every = 2 + random.below(14) as u32;
            ("every n-th block of 64 KB", (0..file.pages).filter(|page| page / 8 % every == 0).collect())
        }
    };
    let fill = random.below(4);
    let mut changes = BTreeMap::new();
    for page in pages {
        let mut bytes = [[0, 0xFF, 0x20, 0][fill]; PAGE_BYTES];
        if fill == 3 {
            bytes.iter_mut().for_each(|byte| *byte = random.number() as u8);
        }
        changes.insert(PageId::new(file.file_id, page), bytes);
    }
    (kind, changes)
}

/// Pages that are left, with some of their bytes changed, most often in their headers.
fn mutated(files: &MemoryFiles, lost: &BTreeSet<PageId>, random: &mut Random) -> BTreeMap<PageId, PageBytes> {
    let mut changes = BTreeMap::new();
    let Some(file) = files.files().first() else { return changes };
    for _ in 0..1 + random.below(20) {
        let id = PageId::new(file.file_id, random.below(file.pages as usize) as u32);
        let Some(mut bytes) = files.read_page(id).filter(|_| !lost.contains(&id)) else { continue };
        for _ in 0..1 + random.below(6) {
            let at = if random.below(2) == 0 { random.below(96) } else { random.below(PAGE_BYTES) };
            bytes[at] = random.number() as u8;
        }
        seal(&mut bytes);
        changes.insert(id, *bytes);
    }
    changes
}

/// The rows of all tables.
struct Delivered {
    tables: Vec<(Table, BTreeMap<format::RecordId, Row>)>,
}

impl Delivered {
    /// Reads and salvages all tables, as `mdfsck export --damaged` does.
    fn of(files: &MemoryFiles, database: &Database) -> Result<Self, String> {
        let tables: Vec<Table> =
            Table::list(database).into_iter().filter_map(|id| Table::of(database, id).ok()).collect();
        let reads = tables.iter().map(|table| read(files, database, table)).collect::<Result<Vec<Read>, _>>()?;
        let mut reached = PageSet::of(files);
        for (table, read) in tables.iter().zip(&reads) {
            let foreign = foreign(&read.left_out);
            let mut scan = Scan::new(files, database, table, ScanOptions::default());
            while let Some(range) = scan.next_range() {
                reach(&mut reached, &range, &foreign);
            }
        }
        let unreached = Unreached::find(files, database, &tables, &reached, MOST_STRAYS);
        let mut delivered = Vec::new();
        for (table, read) in tables.into_iter().zip(reads) {
            let request = Request {
                source: files,
                database,
                table: &table,
                damaged: &read.left_out,
                reached: &reached,
                unreached: Some(&unreached),
                rows_read: &read.by_partition,
                ghosts: false,
                memory: MEMORY,
            };
            let mut kept = Kept::default();
            salvage(&request, &mut kept).map_err(|error| error.to_string())?;
            let mut rows = read.rows;
            for (place, row) in kept.doubtful {
                if rows.insert(place, row).is_some() {
                    return Err(format!("{}: row {place} is delivered twice", table.name));
                }
            }
            delivered.push((table, rows));
        }
        Ok(Self { tables: delivered })
    }

    fn judge(
        &self,
        sound: Sound<'_>,
        database: &Database,
        lost: &BTreeSet<PageId>,
        has_copy: bool,
    ) -> Result<(), String> {
        let mut places: BTreeMap<format::RecordId, (&Table, &Row)> = BTreeMap::new();
        for (table, rows) in &self.tables {
            for (place, row) in rows {
                if lost.contains(&place.page) {
                    return Err(format!("{}: row {place} comes from an overwritten page", table.name));
                }
                if let Some((other, _)) = places.insert(*place, (table, row)) {
                    return Err(format!("row {place} is in {} and in {}", other.name, table.name));
                }
            }
        }
        for whole in sound.tables {
            let name = &whole.table.name;
            for (place, row) in whole.rows.iter().filter(|(place, _)| !lost.contains(&place.page)) {
                let Some((table, delivered)) = places.remove(place) else {
                    // Compressed records of a table without a description cannot be cut into fields.
                    if !has_copy && is_compressed(sound.database, &whole.table) {
                        continue;
                    }
                    return Err(format!("{name}: row {place} of an intact page is missing"));
                };
                match database.rests_on.get(&table.object_id) {
                    Some(on @ (RestsOn::Records | RestsOn::RecordsAgainst(_))) if has_copy => {
                        return Err(format!("{name}: row {place} has raw fields although a copy describes it: {on}"));
                    }
                    Some(RestsOn::Records | RestsOn::RecordsAgainst(_)) => {}
                    _ if table.object_id != whole.table.object_id => {
                        return Err(format!("{name}: row {place} is in {}", table.name));
                    }
                    _ => same(&whole.table, row, table, delivered).map_err(|text| format!("{name} {place}: {text}"))?,
                }
            }
            // What remains on pages of the table would be invented.
            if let Some((place, _)) = places.iter().find(|(place, _)| whole.leaves.contains_key(&place.page)) {
                return Err(format!("{name}: row {place} is invented"));
            }
        }
        Ok(())
    }
}

fn is_compressed(database: &Database, table: &Table) -> bool {
    table.partitions.iter().any(|at| database.rowsets[*at].is_row_compressed())
}

/// Compares the columns that both tables have, by ID.
fn same(table: &Table, row: &Row, delivered: &Table, found: &Row) -> Result<(), String> {
    for (column, value) in table.columns.iter().zip(row) {
        let Some(at) = delivered.columns.iter().position(|other| other.id == column.id) else {
            // Names of computed columns that are not stored are lost without loss of a value.
            match column.place {
                rows::Place::Computed => continue,
                _ => return Err(format!("column {} is missing", column.name)),
            }
        };
        // The default of an added column may be lost too.
        let is_lost = |text: &str| text.starts_with(LOST) || text == NO_DEFAULT;
        let is_lost = found.get(at).is_some_and(|found| found.as_deref().is_some_and(is_lost));
        if found.get(at) != Some(value) && !is_lost {
            return Err(format!("column {}: {value:?} is {:?}", column.name, found.get(at)));
        }
    }
    Ok(())
}
