//! Finds the log files that the user named, or the log files of a database. The log files of a database are found by
//! their names in the catalog, and by the usual names of log files in the folders of the data files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use catalog::{Database, FileRow};
use format::bytes::utf16;
use log::Log;
use report::info::LogFile;
use report::log::Logins;
use source::backup::BackupLog;
use source::{FileKind, PageSource, SharedFile, identify, read_fully_at, storage};

use crate::failure::Failure;
use crate::folders;

/// The value of sysprufiles.filetype for a log file.
pub const LOG: u8 = 1;

/// Opens the log at the paths that the user named: the log files of one database, or backups of its log. Ignores
/// backups in a folder that also has log files.
///
/// # Errors
/// [`log::LogError`], [`source::OpenError`], a folder without a log, log files mixed with backups.
pub fn open(paths: &[PathBuf]) -> Result<Log, Failure> {
    let is_wanted = |path: &Path| is_log(path) || source::is_backup(path);
    let mut files = folders::files(paths, "transaction log file or backup", is_wanted)?;
    files.retain(|path| !source::is_data_file(path));
    if files.is_empty() {
        return Err(Failure::usage(format!(
            "{}: is a data file, and no log was given; give the .ldf files of the database too",
            folders::names(paths)
        )));
    }
    let is_named = |path: &PathBuf| paths.contains(path);
    if files.iter().any(|path| is_log(path)) {
        // Ignores backups that the user did not name.
        files.retain(|path| is_named(path) || is_log(path));
    }
    let backups = files.iter().filter(|path| source::is_backup(path)).count();
    if backups == 0 {
        return Ok(Log::open(&files)?);
    }
    match files.iter().find(|path| !source::is_backup(path)) {
        Some(path) => Err(Failure::usage(source::OpenError::NotABackup { path: path.clone() })),
        None => Ok(Log::of_backups(BackupLog::open(&files, &[])?)?),
    }
}

/// The message that the log of a database was not found. The message contains the names that the catalog has for the
/// log files.
pub fn not_at_hand(database: &Database) -> String {
    /// Maximum number of names in the message.
    const LISTED: usize = 3;
    let names: Vec<&str> = database.files.iter().filter(|row| row.file_type == LOG).map(base_name).collect();
    match (names.as_slice(), names.len().saturating_sub(LISTED)) {
        ([], _) => "its log was not found".to_owned(),
        ([name], _) => format!("its log {name} was not found"),
        (names, 0) => format!("its log files {} were not found", names.join(", ")),
        (names, more) => {
            let listed: Vec<&str> = names.iter().take(LISTED).copied().collect();
            format!("its log files {} and {more} more were not found", listed.join(", "))
        }
    }
}

/// The catalog of the data files that were named together with a log, and the names of the database's principals;
/// `None` without data files.
///
/// # Errors
/// [`source::OpenError`] if the data files cannot be read; data files and log of different databases.
pub fn database(paths: &[PathBuf], log: &Log) -> Result<Option<(Database, Logins)>, Failure> {
    let data: Vec<PathBuf> = paths.iter().filter(|path| source::is_data_file(path)).cloned().collect();
    if data.is_empty() {
        return Ok(None);
    }
    let source = source::DataFiles::open(&data)?;
    if let (Some(file), Some(of)) = (source.files().first(), log.files().first())
        && file.binding_guid.is_some_and(|binding| binding != of.binding_guid)
    {
        return Err(Failure::usage(format!(
            "{}: is a data file of another database than the log {}; give the data files of the log's database, or no data files",
            file.path.display(),
            of.path.display()
        )));
    }
    let database = catalog::load(&source);
    let logins = logins(&source, &database);
    Ok(Some((database, logins)))
}

/// The names of the database's users and roles, by security identifier. Names that cannot be read are missing.
fn logins(source: &dyn PageSource, database: &Database) -> Logins {
    /// The object ID of the base table sys.sysowners.
    const PRINCIPALS: i32 = 27;
    /// A limit above the number of principals in any database.
    const MOST: usize = 100_000;
    let mut logins = Logins::new();
    let add = |_, row: &[Option<&[u8]>]| {
        if let [Some(sid), Some(name)] = row
            && logins.len() < MOST
        {
            logins.entry(sid.to_vec()).or_insert_with(|| utf16(name));
        }
    };
    // Ignores an error, since the names only make reports easier to read.
    let _ = catalog::read_base_table(source, database, PRINCIPALS, &["sid", "name"], add);
    logins
}

/// Whether a file is a log file, according to its content.
pub fn is_log(path: &Path) -> bool {
    let mut start = vec![0; 4 * format::PAGE_BYTES];
    let read = match storage::is_file(path) {
        true => SharedFile::open(path).and_then(|file| read_fully_at(&file, &mut start, 0)).unwrap_or_default(),
        false => 0,
    };
    identify(start.get(..read).unwrap_or_default()) == FileKind::Log
}

/// The name of a file on the server, without its folder.
pub fn base_name(row: &FileRow) -> &str {
    row.physical_name.rsplit(['\\', '/']).next().unwrap_or_default()
}

/// The possible log files of a database: the log files in the catalog, whether they exist or not, and all files with
/// usual log names in the folders of the data files.
pub fn find(source: &dyn PageSource, database: &Database) -> Vec<LogFile> {
    let beside = files_beside(source);
    let lookup = |name: &str| {
        let is_named = |path: &&PathBuf| {
            path.file_name().is_some_and(|found| found.to_string_lossy().to_lowercase() == name.to_lowercase())
        };
        beside.iter().find(is_named).cloned()
    };
    let mut logs: Vec<LogFile> = Vec::new();
    for row in database.files.iter().filter(|row| row.file_type == LOG) {
        let name = base_name(row).to_owned();
        logs.push(LogFile { path: lookup(&name), name });
    }
    for file in source.files() {
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
        for name in [format!("{stem}_log.ldf"), format!("{stem}.ldf")] {
            let is_new = |path: &PathBuf| logs.iter().all(|log| log.path.as_ref() != Some(path));
            if let Some(path) = lookup(&name).filter(is_new) {
                logs.push(LogFile {
                    name: path.file_name().unwrap_or_default().to_string_lossy().into(),
                    path: Some(path),
                });
            }
        }
    }
    logs
}

/// All files in the folders of the data files.
pub fn files_beside(source: &dyn PageSource) -> BTreeSet<PathBuf> {
    let folder = |path: &Path| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let folders: BTreeSet<PathBuf> = source.files().iter().map(|file| folder(&file.path)).collect();
    folders.iter().flat_map(|folder| storage::files_in(folder)).collect()
}
