//! Compares the tables that list files with each other and with the file headers. The tables are sysfiles1 and
//! sysprufiles or, in SQL Server 2005, sysfiles1 and sysdbfiles.
//!
//! In 227 databases, all 454 rows of sysprufiles agree with sysfiles1 in ID, name, path and kind. All 221 data files
//! agree with their headers in filegroup, size, limit, growth and name, and 218 of them in the GUID; the other 3 were
//! created by SQL Server 2000 and have no GUID in the header. The binding GUID of a header differs from that of the
//! boot page.

use std::collections::BTreeMap;

use catalog::{Fetched, fetch, read_base_table};
use format::bytes::utf16;
use format::file_header::FileHeader;
use format::{Page, PageId};

use super::super::evaluate::{Tables, number};
use super::Verdicts;

/// Display names of the attributes of a file that are stored twice.
const ATTRIBUTES: [&str; 8] =
    ["name", "path", "kind", "filegroup", "size in pages", "largest size in pages", "growth", "GUID"];
/// The names of the columns that store the [`ATTRIBUTES`], in the same order. The columns are in sysdbfiles in SQL
/// Server 2005, and in sysprufiles since SQL Server 2008.
const COLUMNS: [&str; 8] = ["lname", "pname", "filetype", "grpid", "size", "maxsize", "growth", "fileguid"];
/// The number of characters that fit into sysfiles1.filename.
const PATH_LENGTH: usize = 260;
const NO_LIMIT: &str = "-1";

/// A table that lists files: its ID, its name, and the columns to compare, in the order of [`ATTRIBUTES`].
type List = (i32, &'static str, &'static [&'static str]);

/// The attributes of a file as one table or the file header stores them; `None` for an attribute that is not stored
/// there.
struct FileClaim {
    by: &'static str,
    attributes: [Option<String>; ATTRIBUTES.len()],
}

/// Limit on the files that are compared. Real databases have fewer files.
const MOST_FILES: usize = 2048;
/// The maximum number of places that store attributes of a file: sysprufiles, sysdbfiles, sysfiles1 and the file
/// header.
const MOST_PLACES: usize = 4;

/// The attributes that the tables and the file header store for each file, by file ID.
#[derive(Default)]
struct Files {
    said: BTreeMap<i64, Vec<FileClaim>>,
    left_out: u64,
}

impl Files {
    fn add(&mut self, file: i64, said: FileClaim) {
        let has_room = self.said.len() < MOST_FILES || self.said.contains_key(&file);
        let places = if has_room { Some(self.said.entry(file).or_default()) } else { None };
        match places.filter(|places| places.len() < MOST_PLACES) {
            Some(places) => places.push(said),
            None => self.left_out += 1,
        }
    }
}

pub(super) fn check(tables: &Tables<'_>, verdicts: &mut Verdicts<'_>) {
    let mut files = Files::default();
    let mut is_listed = false;
    // Since SQL Server 2008, sysdbfiles is not updated when a database is restored or upgraded: only its file IDs are
    // current.
    let is_2005 = tables.database.boot.as_ref().is_some_and(|boot| boot.version < 655);
    let lists: &[List] = if is_2005 {
        &[(76, "sys.sysdbfiles", &COLUMNS)]
    } else {
        &[(24, "sys.sysprufiles", &COLUMNS), (20, "sys.sysdbfiles", &[])]
    };
    for list in lists {
        is_listed |= listed(tables, list, &mut files, verdicts);
    }
    let has_first = of_sysfiles1(tables, &mut files);
    headers(tables, &mut files);
    // If the log is not applied yet, recovery may still change the values. In this case, the notes say so.
    let is_recovered = tables.database.is_recovered(tables.source);
    let suffix = if is_recovered { "" } else { "; its log was not applied" };
    if files.left_out > 0 {
        verdicts.doubt("files", || format!("{} rows more than any database has", files.left_out));
    }
    for (file, said) in &files.said {
        if let [only] = said.as_slice()
            && (is_listed && has_first || only.by == HEADER)
        {
            verdicts.doubt("files", || format!("only {} has file {file}{suffix}", only.by));
        }
        for (what, at) in ATTRIBUTES.iter().zip(0..) {
            let mut of_attribute = said.iter().filter_map(|said| Some((said.by, said.attributes.get(at)?.as_deref()?)));
            let Some((by, value)) = of_attribute.next() else { continue };
            for (other_by, other) in of_attribute.filter(|(_, other)| !is_same(what, value, other)) {
                verdicts.doubt("files", || {
                    format!("the {what} of file {file} is {value} in {by}, but {other} in {other_by}{suffix}")
                });
            }
        }
    }
}

/// Whether two places store the same value for the attribute `what`. Paths may differ in case, which Windows ignores.
fn is_same(what: &str, one: &str, other: &str) -> bool {
    one == other || what == "path" && one.to_lowercase() == other.to_lowercase()
}

/// Display name of the file header as a place that stores attributes.
const HEADER: &str = "its file header";

/// Collects the attributes of the files in use from a table with one row per file. Returns whether the table lists any
/// file in use.
fn listed(tables: &Tables<'_>, &(table, by, own): &List, files: &mut Files, verdicts: &mut Verdicts<'_>) -> bool {
    let known = tables.database.columns.get(&table);
    let has = |name: &str| known.is_some_and(|columns| columns.iter().any(|column| column.name == name));
    let own: Vec<(usize, &'static str)> = own.iter().copied().enumerate().filter(|(_, name)| has(name)).collect();
    let of_state: &[&str] = if has("filestate") { &["filestate"] } else { &[] };
    let columns: Vec<&'static str> =
        ["fileid"].into_iter().chain(own.iter().map(|(_, name)| *name)).chain(of_state.iter().copied()).collect();
    let mut is_listed = false;
    let read = read_base_table(tables.source, tables.database, table, &columns, |at, row| {
        let [Some(file), values @ ..] = row else { return };
        // Dropped and offline files are skipped, because not all tables list them.
        if values.get(own.len()).copied().flatten().is_some_and(|state| number(state) != 0) {
            return;
        }
        let mut attributes = [const { None }; ATTRIBUTES.len()];
        for ((place, name), value) in own.iter().zip(values) {
            if let (Some(to), Some(value)) = (attributes.get_mut(*place), value) {
                *to = shown(name, value);
            }
        }
        is_listed = true;
        row_alone(&attributes, || format!("page {}, slot {}", at.page, at.slot), verdicts);
        files.add(number(file), FileClaim { by, attributes });
    });
    // The error is ignored, because the check of the references between base tables has already noted incomplete
    // tables, and some versions lack one of the tables that list files.
    let _: Result<(), catalog::Unread> = read;
    is_listed
}

/// Checks the attributes of a file that one row stores. A log file must have no filegroup, a data file must have one,
/// and a size limit must not be below the size.
fn row_alone(attributes: &[Option<String>; ATTRIBUTES.len()], place: impl Fn() -> String, verdicts: &mut Verdicts<'_>) {
    let [_, _, kind, group, size, limit, ..] = attributes;
    if let (Some(kind @ ("data" | "log")), Some(group)) = (kind.as_deref(), group.as_deref())
        && (kind == "log") != (group == "0")
    {
        verdicts.doubt("files", || format!("{}: a {kind} file of filegroup {group}", place()));
    }
    let pages = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<i64>().ok());
    if let (Some(size), Some(limit)) = (pages(size), pages(limit))
        // The limit -1 means no limit, 0 means that the file cannot grow.
        && (size <= 0 || limit < -1 || limit > 0 && limit < size)
    {
        verdicts.doubt("files", || format!("{}: a file of {size} pages whose limit is {limit}", place()));
    }
}

/// Converts a value to text, so that values from different places can be compared. `None` for a missing GUID or an
/// unknown file type.
fn shown(column: &str, value: &[u8]) -> Option<String> {
    Some(match column {
        "lname" | "pname" => text(value),
        "filetype" => kind(match number(value) {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        })?,
        "fileguid" => guid(value)?,
        _ => number(value).to_string(),
    })
}

/// A name or path without padding, cut to its maximum length.
fn text(value: &[u8]) -> String {
    utf16(value.get(..2 * PATH_LENGTH).unwrap_or(value)).trim_end().to_owned()
}

fn kind(is_log: Option<bool>) -> Option<String> {
    Some(if is_log? { "log" } else { "data" }.to_owned())
}

/// The GUID as hexadecimal digits; `None` if it is zero, as in files that SQL Server 2000 created.
fn guid(bytes: &[u8]) -> Option<String> {
    let is_given = bytes.iter().any(|byte| *byte != 0);
    is_given.then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Collects the data files and log files that sysfiles1 lists. The server reads this table at startup. Its names are
/// padded to the full length. Returns whether the table could be read.
fn of_sysfiles1(tables: &Tables<'_>, files: &mut Files) -> bool {
    const SYSFILES1: i32 = 8;
    const IS_LOG: i64 = 0x40;
    let columns = ["fileid", "status", "name", "filename"];
    let read = read_base_table(tables.source, tables.database, SYSFILES1, &columns, |_, row| {
        let [Some(file), status, name, path] = row else { return };
        let mut attributes = [const { None }; ATTRIBUTES.len()];
        attributes[0] = name.map(text);
        attributes[1] = path.map(text).filter(|path| path.chars().count() < PATH_LENGTH);
        attributes[2] = kind(status.map(|status| number(status) & IS_LOG != 0));
        files.add(number(file), FileClaim { by: "sys.sysfiles1", attributes });
    });
    read.is_ok()
}

/// Collects the attributes from the headers of the data files that were given.
fn headers(tables: &Tables<'_>, files: &mut Files) {
    for file in tables.source.files().iter().filter(|file| file.header_is_sound) {
        let Fetched::Sound(bytes) = fetch(tables.source, PageId::new(file.file_id, 0)) else { continue };
        let Some(header) = FileHeader::read(Page::new(&bytes)) else { continue };
        // Headers written by SQL Server 2000 have neither a name nor a GUID.
        let name = Some(header.logical_name()).filter(|name| !name.is_empty());
        let limit = match header.max_size_pages() {
            u32::MAX => NO_LIMIT.to_owned(),
            pages => pages.to_string(),
        };
        let attributes = [
            name,
            None,
            kind(Some(false)),
            Some(header.filegroup().to_string()),
            Some(header.size_pages().to_string()),
            Some(limit),
            Some(header.growth().to_string()),
            guid(&header.file_guid()),
        ];
        files.add(file.file_id.into(), FileClaim { by: HEADER, attributes });
    }
}
