//! The page map in an HTML page: names as JSON, runs and marks of damage as compressed bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::io::Write;

use catalog::Database;
use findings::{MapOwner, PageMap, Pattern, Report};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use format::PageId;
use serde::Serialize;

use crate::html::{Base64, Budget, push_number};
use crate::patterns;
use crate::summary::findings::{damaged_pages, is_consequence};

/// Maximum number of marks. If more marks would be needed, each mark covers 2, 4, 8 ... pages.
const MAX_MARKS: usize = 1 << 16;
/// Maximum number of files that are drawn.
const MOST_FILES: usize = 1000;
/// Maximum number of characters of an owner's name, because there may be thousands of owners.
const NAME_CHARS: usize = 80;
/// Bytes of encoded runs to collect before they are compressed.
const BUFFER_BYTES: usize = 1 << 16;

/// The data that the script needs in addition to the runs.
#[derive(Serialize)]
pub(super) struct Map {
    files: Vec<File>,
    /// The number of files that are not drawn.
    more_files: usize,
    /// Names of tables and other objects.
    tables: Vec<String>,
    /// Owners of extents, numbered from 1. Each entry has a position in `tables` and the name of an index of that
    /// table.
    owners: Vec<(usize, String)>,
}

#[derive(Serialize)]
struct File {
    id: u16,
    name: String,
    pages: u32,
    /// Number of extents in one cell of the map, as an exponent of 2.
    cell_shift: u32,
    /// The first run of several pages that were not read: its first page and its number of pages.
    unread: Option<(u32, u64)>,
    /// The patterns in the damaged pages: the first page, the number of pages up to the last one, and the pattern in words.
    patterns: Vec<(u32, u32, String)>,
}

/// The files and the names of owners. Once the text budget is used up, an ellipsis replaces each name.
pub(super) fn map(report: &Report, database: &Database, room: &mut Budget) -> Map {
    let empty = PageMap::default();
    let map = report.page_map.as_ref().unwrap_or(&empty);
    let files = map.files.iter().take(MOST_FILES).map(|file| {
        let summary = report.database.files.iter().find(|summary| summary.file_id == file.file_id);
        let unread = map.unread.iter().find(|(page, count)| page.file == file.file_id && *count > 1);
        File {
            id: file.file_id,
            name: summary.map_or_else(String::new, |summary| room.take_or_cut(&summary.logical_name, NAME_CHARS)),
            pages: file.pages,
            cell_shift: file.cell_shift,
            unread: unread.map(|(page, count)| (page.page, *count)),
            patterns: patterns_of(report, file.file_id),
        }
    });
    let files = files.collect();
    let more_files = map.files.len().saturating_sub(MOST_FILES);
    let mut tables = Vec::new();
    let mut numbers: BTreeMap<i32, usize> = BTreeMap::new();
    let mut owners = Vec::new();
    for owner in &map.owners {
        let table = *numbers.entry(owner.object_id).or_insert_with(|| {
            tables.push(table_name(database, owner.object_id, room));
            tables.len() - 1
        });
        owners.push((table, index_name(database, *owner, room)));
    }
    Map { files, more_files, tables, owners }
}

fn patterns_of(report: &Report, file_id: u16) -> Vec<(u32, u32, String)> {
    let of_file = report.patterns.iter().filter(|pattern| pattern.file_id == file_id);
    let range = |pattern: &Pattern| {
        let pages = pattern.last.saturating_sub(pattern.first).saturating_add(1);
        (pattern.first, pages, patterns::facts(pattern))
    };
    of_file.map(range).collect()
}

fn table_name(database: &Database, object_id: i32, room: &mut Budget) -> String {
    match object_id {
        0 => "unknown to the catalog".to_owned(),
        id => room.take_or_cut(&database.object_name(id), NAME_CHARS),
    }
}

fn index_name(database: &Database, owner: MapOwner, room: &mut Budget) -> String {
    let index = database.indexes.get(&(owner.object_id, owner.index_id));
    match index.map(|index| index.name.as_str()).filter(|name| !name.is_empty()) {
        Some(name) => room.take_or_cut(name, NAME_CHARS),
        None if owner.index_id == 0 => "heap".to_owned(),
        None if owner.index_id < 0 => String::new(),
        None => format!("index ID {}", owner.index_id),
    }
}

/// Writes the runs and marks of the drawn files, compressed with deflate and encoded as base64.
///
/// # Errors
/// If writing to `out` fails.
pub(super) fn write_runs(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(map) = &report.page_map else { return Ok(()) };
    let marks = Marks::of(report, map);
    let mut deflated = DeflateEncoder::new(Base64::new(out), Compression::default());
    let mut bytes = Vec::with_capacity(BUFFER_BYTES + 16);
    for file in map.files.iter().take(MOST_FILES) {
        push_number(file.runs.len() as u64, &mut bytes);
        for run in &file.runs {
            push_number(run.cells.into(), &mut bytes);
            push_number(u64::from(run.owner) << 4 | run.state as u64, &mut bytes);
            if bytes.len() >= BUFFER_BYTES {
                deflated.write_all(&bytes)?;
                bytes.clear();
            }
        }
        marks.write(file.file_id, &mut bytes);
    }
    deflated.write_all(&bytes)?;
    deflated.finish()?.finish()
}

/// The marks of the map: ranges of pages with findings, and ranges of pages that could not be verified.
struct Marks {
    /// File ID, number of the range in the file, and whether the range is damaged.
    places: BTreeSet<(u16, u32, bool)>,
    /// Number of pages in a range, as an exponent of 2.
    shift: u32,
}

impl Marks {
    fn of(report: &Report, map: &PageMap) -> Self {
        let mut marks = Self { places: BTreeSet::new(), shift: 0 };
        // Findings that are consequences of other damage may name sound pages. Their pages are marked only if there are
        // no other findings.
        let damaged = damaged_pages(report);
        let causes = report.findings.iter().filter(|finding| !is_consequence(finding, &damaged));
        causes.filter_map(|finding| finding.page).for_each(|page| marks.add(page, true));
        if marks.places.is_empty() {
            report.findings.iter().filter_map(|finding| finding.page).for_each(|page| marks.add(page, true));
        }
        for finding in &report.demoted {
            finding.page.into_iter().for_each(|page| marks.add(page, false));
        }
        map.unread.iter().for_each(|(page, _)| marks.add(*page, false));
        marks
    }

    fn add(&mut self, page: PageId, is_damaged: bool) {
        self.places.insert((page.file, page.page >> self.shift, is_damaged));
        while self.places.len() > MAX_MARKS && self.shift < u32::BITS - 1 {
            self.shift += 1;
            let places = std::mem::take(&mut self.places);
            self.places =
                places.into_iter().map(|(file, stretch, is_damaged)| (file, stretch >> 1, is_damaged)).collect();
        }
    }

    fn write(&self, file_id: u16, to: &mut Vec<u8>) {
        let of_file = self.places.range((file_id, 0, false)..=(file_id, u32::MAX, true));
        push_number(self.shift.into(), to);
        push_number(of_file.clone().count() as u64, to);
        let mut last = 0;
        for (_, stretch, is_damaged) in of_file {
            push_number(u64::from(stretch - last) << 1 | u64::from(*is_damaged), to);
            last = *stretch;
        }
    }
}
