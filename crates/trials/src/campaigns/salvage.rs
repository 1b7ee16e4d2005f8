//! Damaged tables are read and salvaged: no row of an undamaged page is missing, none is invented, and what is put together
//! from indexes is as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use catalog::Database;
use format::page::PAGE_BYTES;
use format::{PageBytes, PageId, RecordId};
use lab::PageVerify;
use rows::salvage::{Doubtful, PageSet, Request, Salvaged, Sink, salvage};
use rows::{Reader, Scan, ScanOptions, Table, Value};
use source::{MemoryFiles, PageSource};
use trials::mutate::{PageRole, Random};
use trials::plain::plain;

use super::Bench;
use crate::outcome::{Outcome, Verdict};
use crate::subject::Subject;

/// Bytes of memory for what is lost.
const MEMORY: usize = 1 << 20;
/// Pages that are damaged at most.
const MOST_PAGES: usize = 4;
/// Bytes of a sector.
const SECTOR: usize = 512;
/// Bytes of the header that say how the page is protected.
const FLAGS: std::ops::Range<usize> = 4..6;
/// A value off the row that a damaged page had a piece of.
const LOST: &str = "<Lost(";

/// A row as plain text.
type Row = Vec<Option<String>>;

/// The rows of a table of a sound database by their places.
pub(crate) struct Whole {
    pub(crate) table: Table,
    pub(crate) rows: BTreeMap<RecordId, Row>,
}

/// What the ordinary reading of a table gives.
struct Read {
    rows: BTreeMap<RecordId, Row>,
    damaged: Vec<PageId>,
    reached: PageSet,
    by_partition: Vec<u64>,
}

/// All tables of a sound database; an error if they are not what the lab wrote.
pub(crate) fn whole(
    source: &dyn PageSource,
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
        let read = read(source, database, &table)?;
        let stored: Vec<usize> = truth
            .columns
            .iter()
            .filter_map(|name| table.columns.iter().position(|column| column.name == *name))
            .collect();
        let mut found: Vec<Row> =
            read.rows.values().map(|row| stored.iter().map(|at| row[*at].clone()).collect()).collect();
        let mut expected = truth.rows;
        // A column with values that the reader does not convert is compared with itself alone.
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
        tables.push(Whole { table, rows: read.rows });
    }
    Ok(tables)
}

fn read(source: &dyn PageSource, database: &Database, table: &Table) -> Result<Read, String> {
    let mut scan = Scan::new(source, database, table, ScanOptions::default());
    let mut reader = Reader::new(source, database, table, ScanOptions::default());
    let mut read = Read {
        rows: BTreeMap::new(),
        damaged: Vec::new(),
        reached: PageSet::of(source),
        by_partition: vec![0; table.partitions.len()],
    };
    let mut twice = None;
    while let Some(range) = scan.next_range() {
        for page in &range.pages {
            if !read.reached.insert(*page) && source.contains(*page) {
                return Err(format!("page {page} is handed out twice"));
            }
        }
        let counts = reader.read(&range, &mut |row| {
            if read.rows.insert(row.place, row.values.iter().map(plain).collect()).is_some() {
                twice = Some(row.place);
            }
            Ok(())
        });
        let counts = counts.map_err(|error| error.to_string())?;
        read.by_partition[range.partition] += counts.rows;
        read.damaged.extend(counts.damaged_pages.iter().map(|(page, _)| *page));
    }
    match twice {
        Some(place) => Err(format!("row {place} is handed out twice")),
        None => Ok(read),
    }
}

/// What was salvaged.
#[derive(Default)]
struct Kept {
    doubtful: BTreeMap<RecordId, Row>,
    rebuilt: Vec<Row>,
    twice: Option<RecordId>,
}

impl Sink for Kept {
    fn doubtful(&mut self, place: RecordId, _: Doubtful, values: &[Value<'_>]) -> io::Result<()> {
        if self.doubtful.insert(place, values.iter().map(plain).collect()).is_some() {
            self.twice = Some(place);
        }
        Ok(())
    }

    fn rebuilt(&mut self, _: &str, values: &[Value<'_>]) -> io::Result<()> {
        self.rebuilt.push(values.iter().map(plain).collect());
        Ok(())
    }
}

pub(crate) fn trial(bench: &Bench, seed: u64) -> Outcome {
    let subject = bench.subjects.of(seed);
    let tables = match subject.tables() {
        Ok(tables) => tables,
        Err(text) => return Outcome::new("sound tables", &subject.name, Verdict::Broke(text.clone())),
    };
    let mut random = Random::new(seed);
    let (kind, changes) = damage(&subject, &mut random);
    let pages: BTreeSet<PageId> = changes.iter().map(|(page, _)| *page).collect();
    let what = format!("{} pages {:?}", subject.name, pages.iter().map(ToString::to_string).collect::<Vec<_>>());
    let files = match subject.files.with_pages(changes) {
        Ok(files) => files,
        Err(error) => return Outcome::new(kind, what, Verdict::Broke(error.to_string())),
    };
    bench.keep(|| files_of(&files));
    let database = catalog::load(&files);
    let mut outcome = Outcome::new(kind, what, Verdict::Kept);
    outcome.executions = tables.len() as u64;
    for whole in tables {
        if let Err(text) = judge(&files, &database, whole, &pages) {
            outcome.verdict = Verdict::Broke(format!("{}: {text}", whole.table.name));
            break;
        }
    }
    outcome
}

fn files_of(files: &MemoryFiles) -> Vec<crate::subject::Content> {
    let content = |file: &source::DataFile| {
        let mut bytes = Vec::new();
        for page in 0..file.pages {
            let read = files.read_page(PageId::new(file.file_id, page));
            bytes.extend_from_slice(read.map_or([0; PAGE_BYTES], |bytes| *bytes).as_slice());
        }
        (file.path.clone(), bytes)
    };
    files.files().iter().map(content).collect()
}

/// Damages some pages of user tables, or allocation maps, so that it must be noticed.
fn damage(subject: &Subject, random: &mut Random) -> (String, Vec<(PageId, PageBytes)>) {
    const ROLES: [PageRole; 9] = [
        PageRole::Heap,
        PageRole::Heap,
        PageRole::Clustered,
        PageRole::Clustered,
        PageRole::Node,
        PageRole::Leaf,
        PageRole::Iam,
        PageRole::Text,
        PageRole::Pfs,
    ];
    let verify = subject.verify();
    loop {
        let kind = match (random.below(4), verify) {
            (0, _) => "zero page",
            (1, _) => "image of another page",
            (2, PageVerify::Checksum) => "bits",
            (3, PageVerify::Checksum | PageVerify::Torn) => "zero sector",
            _ => continue,
        };
        let mut changes: BTreeMap<PageId, PageBytes> = BTreeMap::new();
        for _ in 0..1 + random.below(MOST_PAGES) {
            let role = ROLES[random.below(ROLES.len())];
            let of_role: Vec<PageId> = subject.roles.get(&role).cloned().unwrap_or_default();
            let Some(page) = random.pick(&of_role).copied().filter(|page| subject.is_of_user(*page, role)) else {
                continue;
            };
            let (Some(before), Some(other)) = (subject.files.read_page(page), random.pick(&of_role).copied()) else {
                continue;
            };
            let mut bytes = *before;
            match kind {
                "zero page" => bytes.fill(0),
                "image of another page" if other != page => {
                    bytes = subject.files.read_page(other).map_or(bytes, |other| *other);
                }
                "bits" => {
                    for _ in 0..1 + random.below(8) {
                        let at = random.below(PAGE_BYTES);
                        bytes[at] ^= if FLAGS.contains(&at) { 0 } else { 1 << random.below(8) };
                    }
                }
                "zero sector" => {
                    let at = SECTOR * (1 + random.below(PAGE_BYTES / SECTOR - 1));
                    bytes[at..at + SECTOR].fill(0);
                }
                _ => {}
            }
            // A change that the protection does not show is none that storage makes.
            let is_shown =
                format::protection::verify(&bytes).is_err() || format::Page::new(&bytes).header().page_id() != page;
            if is_shown {
                changes.insert(page, bytes);
            }
        }
        if !changes.is_empty() {
            return (kind.to_owned(), changes.into_iter().collect());
        }
    }
}

fn judge(files: &MemoryFiles, database: &Database, whole: &Whole, damaged: &BTreeSet<PageId>) -> Result<(), String> {
    let table = Table::of(database, whole.table.object_id).map_err(|why| why.to_string())?;
    let read = read(files, database, &table)?;
    let request = Request {
        source: files,
        database,
        table: &table,
        damaged: &read.damaged,
        reached: &read.reached,
        unreached: None,
        rows_read: &read.by_partition,
        ghosts: false,
        memory: MEMORY,
    };
    let mut kept = Kept::default();
    let done: Salvaged = salvage(&request, &mut kept).map_err(|error| error.to_string())?;
    if let Some(place) = kept.twice {
        return Err(format!("doubtful row {place} is handed out twice"));
    }
    for (place, row) in &read.rows {
        let Some(before) = whole.rows.get(place) else { return Err(format!("row {place} is invented: {row:?}")) };
        if !is_same(row, before) {
            return Err(format!("row {place} is {row:?} and was {before:?}"));
        }
        if kept.doubtful.contains_key(place) {
            return Err(format!("row {place} is whole and doubtful"));
        }
    }
    let missing = |place: &RecordId| !read.rows.contains_key(place) && !kept.doubtful.contains_key(place);
    if let Some(place) = whole.rows.keys().find(|place| !damaged.contains(&place.page) && missing(place)) {
        return Err(format!("row {place} of an undamaged page is missing; {done:?}"));
    }
    // A doubtful row whose key was damaged is still missing for the indexes.
    let is_open = |place: &RecordId, before: &Row| {
        !read.rows.contains_key(place) && kept.doubtful.get(place).is_none_or(|row| row != before)
    };
    let open: Vec<&Row> =
        whole.rows.iter().filter(|(place, before)| is_open(place, before)).map(|(_, row)| row).collect();
    // A row of few columns may look like several that are lost.
    if let Some(row) = kept.rebuilt.iter().find(|row| !open.iter().any(|before| is_part(row, before))) {
        return Err(format!("put together from indexes, but not lost: {row:?}"));
    }
    if kept.rebuilt.len() > open.len() {
        return Err(format!("{} rows were put together, but {} are lost", kept.rebuilt.len(), open.len()));
    }
    Ok(())
}

/// Whether a row is as it was, but for values off the row that are lost.
fn is_same(row: &Row, before: &Row) -> bool {
    let is_lost = |value: &Option<String>| value.as_ref().is_some_and(|text| text.starts_with(LOST));
    row.len() == before.len() && row.iter().zip(before).all(|(now, then)| now == then || is_lost(now))
}

/// Whether all values that a row has are those of another one.
fn is_part(row: &Row, before: &Row) -> bool {
    let is_none = |value: &Option<String>| {
        value.as_ref().is_some_and(|text| text.starts_with('<') && text.ends_with(")>") || text == "<NotInAnyIndex>")
    };
    row.len() == before.len()
        && row.iter().zip(before).all(|(now, then)| {
            // An index stores computed columns that the table does not.
            now == then || is_none(now) || then.as_deref() == Some("<NotStored>")
        })
}
