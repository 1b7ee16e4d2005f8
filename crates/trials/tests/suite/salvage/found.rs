use std::collections::BTreeMap;
use std::io;

use catalog::{Database, UnitKind};
use format::{Page, PageId, RecordId};
use rows::salvage::{Doubtful, PageSet, Request, Salvaged, Sink, salvage};
use rows::{Table, Value, Why};
use source::{MemoryFiles, PageSource};
use trials::plain::plain;

/// Salvaged rows as plain text.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) doubtful: Vec<(RecordId, Doubtful, Vec<Option<String>>)>,
    pub(crate) rebuilt: Vec<(String, Vec<Option<String>>)>,
}

impl Sink for Found {
    fn doubtful(&mut self, place: RecordId, why: Doubtful, values: &[Value<'_>]) -> io::Result<()> {
        self.doubtful.push((place, why, values.iter().map(plain).collect()));
        Ok(())
    }

    fn rebuilt(&mut self, indexes: &str, values: &[Value<'_>]) -> io::Result<()> {
        self.rebuilt.push((indexes.to_owned(), values.iter().map(plain).collect()));
        Ok(())
    }
}

/// Writes a lab database and opens it in memory.
pub(crate) fn opened(description: &lab::Description) -> (MemoryFiles, Database) {
    let folder = tempfile::tempdir().unwrap();
    let written = lab::write(description, folder.path()).unwrap();
    let contents = written.files.iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    let files = MemoryFiles::open(contents).unwrap();
    let database = catalog::load(&files);
    (files, database)
}

/// The leaf pages of a table in a sound database, according to the page headers.
pub(crate) fn leaf_pages(files: &MemoryFiles, database: &Database, table: &Table) -> Vec<PageId> {
    let units: Vec<_> = table
        .partitions
        .iter()
        .flat_map(|partition| database.rowsets[*partition].units.iter().map(|unit| &database.units[*unit]))
        .filter(|unit| unit.kind == UnitKind::InRow)
        .collect();
    let mut pages = Vec::new();
    for file in files.files() {
        for page in (0..file.pages).map(|page| PageId::new(file.file_id, page)) {
            let bytes = files.read_page(page).unwrap();
            let header = Page::new(&bytes).header();
            let is_leaf = header.kind() == Some(format::PageType::Data) && header.level == 0;
            if is_leaf && header.page_id() == page && units.iter().any(|unit| unit.id == header.alloc_unit()) {
                pages.push(page);
            }
        }
    }
    pages
}

/// Salvages a table of `files`. `pages` are pages of the table, and `damaged` are the damaged pages. The test
/// passes to the salvage that the normal scan reached all of `pages` except `missed`.
pub(crate) fn salvaged(
    (files, database, table): (&dyn PageSource, &Database, &Table),
    (pages, damaged, missed): (&[PageId], &[PageId], &[PageId]),
    (rows_read, ghosts, memory): (u64, bool, usize),
) -> (Found, Salvaged) {
    let left_out: Vec<(PageId, Why)> = damaged.iter().map(|page| (*page, Why::Damaged)).collect();
    let reached: Vec<PageId> = pages.iter().filter(|page| !missed.contains(page)).copied().collect();
    salvaged_of((files, database, table), (&reached, &left_out), (rows_read, ghosts, memory))
}

/// Salvages a table. The caller states that the normal scan reached the pages `met`, and that the scan left out the pages
/// `left_out`, each with the reason.
pub(crate) fn salvaged_of(
    (files, database, table): (&dyn PageSource, &Database, &Table),
    (met, left_out): (&[PageId], &[(PageId, Why)]),
    (rows_read, ghosts, memory): (u64, bool, usize),
) -> (Found, Salvaged) {
    let mut reached = PageSet::of(files);
    met.iter().for_each(|page| assert!(reached.insert(*page)));
    let mut found = Found::default();
    let request = Request {
        source: files,
        database,
        table,
        damaged: left_out,
        reached: &reached,
        unreached: None,
        rows_read: &[rows_read],
        ghosts,
        memory,
    };
    let done = salvage(&request, &mut found).unwrap();
    (found, done)
}

/// The rows that the lab wrote into a table. The key of each row is the text of one column.
pub(crate) fn by_column(
    description: &lab::Description,
    table: &str,
    column: usize,
) -> BTreeMap<String, Vec<Option<String>>> {
    let truth = lab::truth::truth(description).into_iter().find(|truth| truth.table == table).unwrap();
    truth.rows.into_iter().map(|row| (row[column].clone().unwrap_or_default(), row)).collect()
}
