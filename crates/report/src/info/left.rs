//! What is left of a database without its boot page: a line of symbols for each file, and the tables that are still known.

use std::io;

use catalog::{Database, Found, PageCounts, RestsOn};
use format::PAGE_BYTES;

use crate::amounts::{counted, grouped};
use crate::json::catalog as lines;

/// The symbols of the picture.
const KEY: &str = "# intact, + partly intact, - damaged, . zeros";

/// Writes a picture of each file, and how many tables are known.
pub(super) fn write(database: &Database, found: &Found, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out)?;
    for file in &found.files {
        let picture: String = file.cells.iter().map(|cell| symbol(*cell)).collect();
        writeln!(out, "file {}  [{picture}]", file.file_id)?;
        let pages = file.pages;
        let from = match (file.whole_from, pages.damaged()) {
            (_, 0) => String::new(),
            (page, _) if page >= pages.all => "; damage reaches to the end of the file".to_owned(),
            (page, _) => {
                let byte = grouped(u64::from(page) * PAGE_BYTES as u64);
                format!("; no page is damaged from page {} (byte {byte}) on", grouped(page.into()))
            }
        };
        let (intact, all) = (grouped(pages.intact.into()), grouped(pages.all.into()));
        let (empty, damaged) = (grouped(pages.empty.into()), grouped(pages.damaged().into()));
        writeln!(out, "  {intact} of {all} pages are intact, {empty} are zeros, {damaged} are damaged{from}")?;
    }
    writeln!(out, "  ({KEY})")?;
    let of_users = |object: &i32| database.objects.get(object).is_some_and(|object| object.type_code == "U");
    let known = database.rests_on.iter().filter(|(object, on)| of_users(object) && **on != RestsOn::NoPages);
    let (raw, described): (Vec<_>, Vec<_>) =
        known.partition(|(_, on)| matches!(on, RestsOn::Records | RestsOn::RecordsAgainst(_)));
    let (raw, described) =
        (counted(raw.len() as u64, "table", "tables"), counted(described.len() as u64, "table", "tables"));
    writeln!(
        out,
        "{described} with columns, {raw} whose rows can be read only as raw fields; 'mdfsck tables' lists them"
    )
}

fn symbol(cell: PageCounts) -> char {
    match cell {
        PageCounts { all, empty, .. } if all == empty => '.',
        PageCounts { intact: 0, .. } => '-',
        cell if cell.damaged() == 0 => '#',
        _ => '+',
    }
}

/// The JSON form of what is left of a file.
pub(super) fn line(found: &Found, file_id: u16) -> Option<lines::Left> {
    let file = found.files.iter().find(|file| file.file_id == file_id)?;
    let PageCounts { intact, empty, .. } = file.pages;
    Some(lines::Left { intact, zeros: empty, damaged: file.pages.damaged(), whole_from: file.whole_from })
}
