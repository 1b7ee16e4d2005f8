//! A catalog that cannot be read along its own pointers, because the boot page or pages of system tables are lost, is put
//! together from all pages of the files, from a copy of the database, and from the form of the records.

use std::path::PathBuf;

use catalog::{Database, Fetched, Found, RestsOn};
use check::Progress;
use format::PageId;
use jobs::failure::Failure;
use jobs::size::DEFAULT_BYTES;
use source::PageSource;

use crate::speaker::warn;

/// The system tables without which no table has a place: the predecessors of sysrscols in 2005, sysrscols, sysrowsets and
/// sysallocunits.
const DESCRIBING: [i32; 5] = [3, 4, 5, 7, 13];

/// When all pages are read to find the catalog.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// If no table can be read without it.
    IfNeeded,
    /// If any system table cannot be read to its end: the command reads all pages anyway.
    IfIncomplete,
}

/// The part of the grant that a search for the pages of the catalog may use, in bytes. The search ends before rows are read.
pub(crate) fn memory_for_search(granted: Option<u64>) -> u64 {
    granted.unwrap_or(DEFAULT_BYTES) / 2
}

/// Completes the catalog, if it is so incomplete that all pages are read for it. `memory` is the memory for that, in bytes.
///
/// # Errors
/// A copy that cannot be opened, or that is no copy of this database.
pub(crate) fn complete(
    source: &dyn PageSource,
    database: Database,
    (like, search): (&[PathBuf], Search),
    memory: u64,
    listener: &dyn Progress,
) -> Result<Database, Failure> {
    let can_be_found = !like.is_empty() || has_primary(source);
    if database.is_encrypted || !can_be_found || !is_lost(&database, search, !like.is_empty()) {
        if !like.is_empty() && !database.is_encrypted {
            warn("--like is not needed: the catalog can be read");
        }
        return Ok(database);
    }
    let copy = (!like.is_empty()).then(|| source::open(like, &[], false)).transpose()?;
    let pages = source.files().iter().map(|file| u64::from(file.pages)).sum();
    listener.phase("search", pages);
    let found = Found::find(source, usize::try_from(memory).unwrap_or(usize::MAX), &|pages| listener.advance(pages));
    let mut complete = catalog::load_found(source, &found);
    if let Some(copy) = copy {
        let name = like.first().map(|path| path.display().to_string()).unwrap_or_default();
        let of_copy = catalog::load(copy.as_ref());
        catalog::complete_from(&mut complete, &of_copy)
            .map_err(|why| Failure::usage(format!("--like {name}: {why}")))?;
    }
    catalog::complete_by_records(&mut complete, &found);
    if found.is_cut {
        warn("the files have more pages of system tables than --memory has room for: the catalog is not complete");
    }
    warn(summary(&complete, &found));
    Ok(complete)
}

/// What is left of a database without its boot page, and its catalog as far as pages of it were found.
pub(crate) fn look(source: &dyn PageSource, database: Database) -> (Database, Option<Found>) {
    if database.boot.is_some() || database.is_encrypted || !has_primary(source) {
        return (database, None);
    }
    let memory = usize::try_from(memory_for_search(None)).unwrap_or(usize::MAX);
    let found = Found::find(source, memory, &|_| ());
    let mut database = catalog::load_found(source, &found);
    catalog::complete_by_records(&mut database, &found);
    (database, Some(found))
}

/// Whether the file of the catalog was given, so that its pages are lost if they are not found. What was not given should
/// be given instead.
fn has_primary(source: &dyn PageSource) -> bool {
    let is_read = || !matches!(catalog::fetch(source, PageId::BOOT), Fetched::Unread);
    let has_all = source.backup().is_none_or(|backup| backup.missing_stripes() == 0);
    source.file(PageId::BOOT.file).is_some() && (has_all || is_read())
}

fn is_lost(database: &Database, search: Search, has_copy: bool) -> bool {
    let is_wanted = search == Search::IfIncomplete || has_copy;
    database.boot.is_none()
        || DESCRIBING.iter().any(|table| database.gap(*table).is_some())
        || is_wanted && !database.gaps.is_empty()
}

/// What the catalog was put together from.
fn summary(database: &Database, found: &Found) -> String {
    let mut parts: Vec<(&str, usize)> = Vec::new();
    let tables = database
        .rests_on
        .iter()
        .filter(|(table, _)| database.objects.get(table).is_some_and(|object| object.type_code == "U"));
    for (_, rests_on) in tables {
        let words = match rests_on {
            RestsOn::OwnPages => "from these pages",
            RestsOn::OwnPagesWithoutNames => "from these pages without all names",
            RestsOn::Copy => "from the copy",
            RestsOn::Records | RestsOn::RecordsAgainst(_) => "only as raw fields",
            RestsOn::NoPages => "without their pages",
        };
        match parts.iter_mut().find(|(known, _)| *known == words) {
            Some((_, tables)) => *tables += 1,
            None => parts.push((words, 1)),
        }
    }
    parts.sort_unstable();
    let listed: Vec<String> = parts.into_iter().map(|(words, tables)| format!("{tables} {words}")).collect();
    let why = match database.boot {
        None => "the boot page (1:9) cannot be read",
        Some(_) => "system tables cannot be read to their end",
    };
    let tables =
        if listed.is_empty() { "no table is known".to_owned() } else { format!("tables: {}", listed.join(", ")) };
    let pages = found.catalog_pages();
    format!("{why}; pages of system tables found by their headers: {pages}; {tables}")
}
