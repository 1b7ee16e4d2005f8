//! Facts about the input that a reader must know before reading the results. Each fact is one line. The facts that
//! explain most of the other results come first.

use catalog::{Boot, Database, FileRow};
use findings::registry::limits;
use findings::{Scope, TAIL_BYTES, Warning};
use format::page::PAGE_BYTES;
use format::version;
use source::{BackupPages, Carved, Carving, DataFile, PageCopy, PageSource};

use crate::survey;
use crate::sweep::rereads::Moved;

/// The maximum number of names in one line.
const MOST_NAMES: usize = 5;

/// The ID of the warning that a backup file also contains sets that are not checked.
pub const OTHER_SETS: &str = "backup.other-sets";

fn warning(id: &'static str, text: impl Into<String>) -> Warning {
    Warning { id, text: text.into() }
}

/// The warnings for checking this scope of a database, before the files are checked.
pub fn warnings(source: &dyn PageSource, database: &Database, scope: &Scope) -> Vec<Warning> {
    warnings_after(source, database, scope, &Moved::default())
}

/// The warnings for this scope of a database, after its files were checked.
pub(crate) fn warnings_after(
    source: &dyn PageSource,
    database: &Database,
    scope: &Scope,
    moved: &Moved,
) -> Vec<Warning> {
    let mut warnings = not_given(source, database, scope, "checked");
    warnings.extend(carved(source));
    warnings.extend(changed(moved));
    warnings.extend(open_elsewhere(source));
    // A file that has changed may have been growing when it was opened.
    let files = source.files().iter().filter(|file| !moved.has(&file.path));
    warnings.extend(files.clone().filter_map(cut).map(|text| warning(limits::PAGES_BEYOND_END.id, text)));
    warnings.extend(files.filter_map(tail));
    warnings.extend(source.backup().and_then(|backup| log_of_backup(source, backup)));
    warnings.extend(source.backup().and_then(other_sets));
    warnings.extend(not_recovered(source, database, "checked"));
    let newer = database.boot.as_ref().map(|boot| boot.version).filter(|&found| found > version::NEWEST);
    warnings.extend(newer.map(|found| {
        let newest = version::NEWEST;
        let text = format!("database version {found} is newer than {newest}, the newest that this program knows");
        warning(limits::VERSION_UNKNOWN.id, text)
    }));
    warnings
}

/// The warning about a data file that another program has open for writing.
fn open_elsewhere(source: &dyn PageSource) -> Option<Warning> {
    // The data files of a backup are named after those of its server.
    let files = source.files().iter().filter(|_| source.backup().is_none() && source.carved().is_none());
    let (path, program) = source::writer(files.map(|file| file.path.as_path()))?;
    let text = format!(
        "{}: is open for writing in {program}; if it is written to during the check, contradictions between pages are not \
         verified (better check a snapshot or a backup)",
        path.display()
    );
    Some(warning("input.open", text))
}

/// The most files that warnings about changes name.
const MOST_CHANGES: usize = 8;

/// Warnings about files that changed while they were read.
pub(crate) fn changed(moved: &Moved) -> Vec<Warning> {
    let hidden = moved.files.len().saturating_sub(MOST_CHANGES);
    let shown = moved.files.iter().take(MOST_CHANGES);
    let files = shown.map(|change| format!("{}: {}", change.path.display(), change.what()));
    let more = (hidden > 0).then(|| format!("{hidden} more files changed while they were read"));
    let pages = moved.pages.first().map(|first| match moved.pages.len() {
        1 => format!("page {first} was damaged at first, but not the same when it was read again"),
        pages => format!(
            "{pages} pages were damaged at first, but not the same when they were read again; the first is {first}"
        ),
    });
    files.chain(more).chain(pages).map(|line| warning(limits::INPUT_CHANGED.id, line)).collect()
}

/// Returns the warnings that name the missing parts of the input. They come first, because data that was not found may
/// be in the missing parts. `done` is the word for what the caller does with the other parts: "checked" or "read".
pub fn not_given(source: &dyn PageSource, database: &Database, scope: &Scope, done: &str) -> Vec<Warning> {
    let stripes = source.backup().and_then(missing_stripes).map(|which| {
        let rest = format!("only the pages in the files given are {done}; give all stripes of the backup");
        warning(limits::BACKUP_STRIPES.id, format!("{which}: {rest}"))
    });
    missing_files(source, database, scope).into_iter().chain(stripes).collect()
}

/// Lists names in the form `a, b and c`. A long list is shortened to its first names.
fn listed(names: &[String]) -> String {
    let (shown, more) = names.split_at(names.len().min(MOST_NAMES));
    match (shown, more.len()) {
        ([], _) => String::new(),
        ([only], 0) => only.clone(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The warning about data files that the catalog lists and that the scope needs, but that were not given.
fn missing_files(source: &dyn PageSource, database: &Database, scope: &Scope) -> Option<Warning> {
    let missing = survey::missing_files(source, database).filter(|row| scope.needs(row.filegroup));
    let missing: Vec<String> = missing.map(|row| base_name(row).to_owned()).collect();
    if missing.is_empty() {
        return None;
    }
    let given = source.files().len();
    let all = given + missing.len();
    let names: Vec<String> = source
        .files()
        .iter()
        .map(|file| file.path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    let is_or_are = if given == 1 { "is" } else { "are" };
    let missing = listed(&missing);
    let text = match source.backup() {
        None if source.carved().is_some() => {
            format!("pages of {given} of {all} data files were found, but none of {missing}")
        }
        Some(_) if all - given == 1 => format!("the backup holds {given} of {all} data files: {missing} is missing"),
        Some(_) => format!("the backup holds {given} of {all} data files: {missing} are missing"),
        None => format!("{} {is_or_are} {given} of {all} data files; give {missing} too", listed(&names)),
    };
    Some(warning(limits::FILE_NOT_GIVEN.id, text))
}

/// The most pages with several copies that a warning names.
const MOST_DOUBLES: usize = 8;

/// The warnings about pages that were carved out of raw bytes: what was found, what was found more than once, and what
/// is left out.
pub fn carved(source: &dyn PageSource) -> Vec<Warning> {
    let Some(carved) = source.carved() else { return Vec::new() };
    let files: Vec<String> = source
        .files()
        .iter()
        .map(|file| match carved.found(file.file_id) {
            1 => format!("1 page of file {}", file.file_id),
            pages => format!("{pages} pages of file {}", file.file_id),
        })
        .collect();
    let mut warnings = vec![warning("carve.found", format!("carved: {} were found", listed(&files)))];
    if carved.databases() > 1 {
        let text = format!(
            "the image has file headers of {} databases; pages do not name their database, so the pages of all of them are mixed: \
             name only the part of the image with the files of one database",
            carved.databases()
        );
        warnings.push(warning("carve.databases", text));
    }
    warnings.extend(doubles(carved));
    let left_out = carved.left_out();
    let shown = left_out.iter().take(MOST_DOUBLES).map(|beyond| {
        let (first, file) = (beyond.first, beyond.first.file);
        match beyond.pages {
            1 => format!("page {first} is left out: it is far beyond the other pages of file {file}"),
            pages => {
                format!("{pages} pages from {first} on are left out: they are far beyond the others of file {file}")
            }
        }
    });
    let more = left_out.len().saturating_sub(MOST_DOUBLES);
    let more =
        (more > 0).then(|| format!("pages of {more} more files are left out: they are far beyond the other pages"));
    warnings.extend(shown.chain(more).map(|text| warning("carve.left-out", text)));
    warnings
}

/// The warning about pages that were found more than once, with different bytes.
fn doubles(carved: &Carved) -> Option<Warning> {
    let pages = carved.double_pages();
    let place = |copy: &PageCopy| {
        let name = copy.path.file_name().unwrap_or_default().to_string_lossy();
        format!("byte {} of {name} (LSN {})", copy.at, copy.lsn)
    };
    let line = |double: &Carving| format!("{} at {}, not {}", double.page, place(&double.used), place(&double.other));
    let shown: Vec<String> = carved.doubles().iter().take(MOST_DOUBLES).map(line).collect();
    let more = match pages.saturating_sub(shown.len() as u64) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let pages_were = if pages == 1 { "page was" } else { "pages were" };
    let text = format!(
        "{pages} {pages_were} found more than once, with different bytes; the copy with the newest LSN is read: {}{more}",
        shown.join("; ")
    );
    (pages > 0).then(|| warning("carve.doubles", text))
}

/// The name that a file had on the server, without its folders.
fn base_name(row: &FileRow) -> &str {
    let name = row.physical_name.rsplit(['\\', '/']).next().unwrap_or_default();
    if name.is_empty() { &row.logical_name } else { name }
}

/// A clause that says which stripes of a backup were not given.
pub(crate) fn missing_stripes(backup: &BackupPages) -> Option<String> {
    Some(match (backup.missing_stripes(), backup.missing_stripe_numbers()) {
        (0, _) => return None,
        (1, ([number], of)) => format!("stripe {number} of {of} is missing"),
        (_, (numbers @ [_, ..], of)) => {
            let numbers: Vec<String> = numbers.iter().map(u16::to_string).collect();
            format!("stripes {} of {of} are missing", listed(&numbers))
        }
        (1, (_, of)) => format!("one of the {of} stripes is missing"),
        (count, (_, of)) => format!("{count} of the {of} stripes are missing"),
    })
}

/// Describes the fault of a file that is shorter than its header says; `None` if the file is long enough. A file that
/// is longer than its header says has no fault, because pages beyond the size in the header do not belong to the
/// database.
pub(crate) fn cut(file: &DataFile) -> Option<String> {
    let claimed = file.header_pages.unwrap_or(file.pages);
    let is_cut = file.pages < claimed || file.tail_bytes != 0 && file.header_pages.is_none();
    is_cut.then(|| {
        let bytes = file.bytes();
        if file.header_pages.is_none() {
            return format!(
                "{}: has {bytes} bytes, not a multiple of the page size of {PAGE_BYTES} bytes, and no header gives its \
                size: the file was cut; copy or restore it again",
                file.path.display()
            );
        }
        format!(
            "{}: has {bytes} bytes, but its header says {claimed} pages ({} bytes): the file was cut; copy or restore it \
             again",
            file.path.display(),
            u64::from(claimed) * PAGE_BYTES as u64
        )
    })
}

/// The warning about bytes after the last page of a file that was not cut. A server writes only whole pages.
fn tail(file: &DataFile) -> Option<Warning> {
    let bytes = match file.tail_bytes {
        0 => return None,
        1 => "1 byte".to_owned(),
        bytes => format!("{bytes} bytes"),
    };
    cut(file).is_none().then(|| {
        let text = format!(
            "{}: has {bytes} after its last page, which are not checked: a server writes only whole pages, so another \
             program wrote them, as ransomware appends a note",
            file.path.display()
        );
        warning(TAIL_BYTES, text)
    })
}

fn log_of_backup(source: &dyn PageSource, backup: &BackupPages) -> Option<Warning> {
    match (source.in_flight(), backup.missing_stripes()) {
        (Some([]), _) => None,
        (Some(pages), _) => Some(warning(
            limits::DEMOTED_IN_FLIGHT.id,
            format!(
                "{} pages are in flight: the log in the backup still changes them; findings that may depend on them are \
                 not verified",
                pages.len()
            ),
        )),
        (None, _) if !backup.has_one_moment() => Some(warning(
            "backup.moments",
            "the files are from backups of different points in time; findings that may depend on the log between them are not \
             verified",
        )),
        (None, 0) => Some(warning("backup.log", "the backup's log could not be read; pages are checked without it")),
        // The log could not be read because stripes are missing. Another warning reports the missing stripes.
        (None, _) => None,
    }
}

fn other_sets(backup: &BackupPages) -> Option<Warning> {
    let others: Vec<String> = backup.other_sets().iter().map(ToString::to_string).collect();
    (!others.is_empty()).then(|| {
        let text = format!(
            "other sets in the file are not checked: {} (choose with --set N, --set last or --set all)",
            others.join(", ")
        );
        warning(OTHER_SETS, text)
    })
}

/// Whether the pages are those of files that lack changes of their log: the database was not shut down cleanly, and was
/// not recovered.
pub(crate) fn is_as_stored(source: &dyn PageSource, database: &Database) -> bool {
    let is_clean = database.boot.as_ref().is_none_or(Boot::clean_shutdown);
    !is_clean && source.in_flight().is_none() && source.backup().is_none()
}

/// Warns if the files lack changes of their log. `done` is the word for what the caller does with the files: "checked"
/// or "shown".
pub fn not_recovered(source: &dyn PageSource, database: &Database, done: &str) -> Option<Warning> {
    is_as_stored(source, database).then(|| {
        let text = format!(
            "the database was not shut down cleanly; its files are {done} as they are, without the changes in the log"
        );
        warning("recovery.none", text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_as_people_do_and_never_too_many() {
        let names = |count: usize| (1..=count).map(|number| number.to_string()).collect::<Vec<_>>();
        for (count, expected) in
            [(0, ""), (1, "1"), (2, "1 and 2"), (5, "1, 2, 3, 4 and 5"), (7, "1, 2, 3, 4, 5 and 2 more")]
        {
            assert_eq!(listed(&names(count)), expected);
        }
    }
}
