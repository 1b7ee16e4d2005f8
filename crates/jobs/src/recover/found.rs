//! Finds the log of a database from its data files. The user may have named the log; otherwise it is looked for in the
//! folders of the data files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use catalog::{Database, FileRow};
use log::{Log, LogError};
use recovery::{Refusal, Start};
use source::{PageSource, storage};

use crate::logs;

/// The value of sysprufiles.filestate for a file in use.
const ONLINE: u8 = 0;

/// The result of the search for a log.
#[derive(Default)]
pub struct Found {
    /// The log files to use.
    pub logs: Vec<PathBuf>,
    /// Whether the user named these files.
    pub is_named: bool,
    /// Descriptions of log files that may belong to the database but are skipped. Each description has the reason.
    pub passed_over: Vec<String>,
    /// The reason why the log file with the name from the catalog cannot be used. `None` if there is no such file, or
    /// if it can be used.
    pub unusable: Option<String>,
}

/// Finds the log files to use: the log files that the user named or, if the user named none, the log files in the
/// folders of the data files.
pub fn find(paths: &[PathBuf], source: &dyn PageSource, database: &Database) -> Found {
    let logs: Vec<PathBuf> = paths.iter().filter(|path| logs::is_log(path)).cloned().collect();
    if logs.is_empty() { beside(paths, source, database) } else { Found { logs, is_named: true, ..Found::default() } }
}

/// Opens the log. All log files that the catalog lists as in use must be present.
///
/// # Errors
/// [`Refusal::Log`], [`Refusal::MissingFile`].
pub fn open(paths: &[PathBuf], database: &Database) -> Result<Log, Refusal> {
    let log = Log::open(paths)?;
    let is_there = |file_id: u16| log.files().iter().any(|file| file.file_id == file_id);
    let is_in_use = |row: &&FileRow| row.file_type == logs::LOG && row.state == ONLINE;
    match database.files.iter().filter(is_in_use).find(|row| !is_there(row.file_id)) {
        Some(row) => Err(Refusal::MissingFile { file_id: row.file_id, name: logs::base_name(row).to_owned() }),
        None => Ok(log),
    }
}

/// The first log file whose header belongs to another database. Only the header must be readable, not the log itself.
pub(super) fn foreign<'p>(logs: &'p [PathBuf], source: &dyn PageSource) -> Option<&'p PathBuf> {
    let binding = source.files().first().and_then(|file| file.binding_guid)?;
    logs.iter().find(|path| log::binding_guid(path).is_some_and(|found| found != binding))
}

/// The reason why a log cannot be opened, without the path of the log.
pub(super) fn damage(error: &LogError) -> String {
    match error {
        LogError::NoVlf { at, .. } => format!("the log is damaged or cut off: no virtual log file starts at byte {at}"),
        LogError::TooManyVlfs { most, .. } => format!("the log is damaged: it has more than {most} virtual log files"),
        LogError::TooOld { .. } => "the log was written by SQL Server 2000".to_owned(),
        LogError::Io { cause, .. } => format!("the log cannot be read: {cause}"),
        LogError::Empty { .. } => "the log file is empty".to_owned(),
        LogError::NotALog { .. } => "the file with the name of the log is not a log file".to_owned(),
        LogError::CutOff { at, .. } => {
            format!("the log is cut off: its file ends at byte {at}, before the part that holds the log")
        }
        error => error.to_string(),
    }
}

/// Finds the log files of this database. First looks for files with the names that the catalog has for the log, in the
/// folders of the data files, and for any log files in the named folders. If log files are still missing, also looks in
/// the folders of the data files for log files with other names.
fn beside(paths: &[PathBuf], source: &dyn PageSource, database: &Database) -> Found {
    let by_name: Vec<PathBuf> = logs::find(source, database).into_iter().filter_map(|log| log.path).collect();
    let folders = paths.iter().filter(|path| storage::is_folder(path));
    let mut in_folders: Vec<PathBuf> = folders.flat_map(|folder| storage::files_in(folder)).collect();
    in_folders.sort();
    let binding = source.files().first().and_then(|file| file.binding_guid);
    let mut search = Search { binding, ..Search::default() };
    // A file with the name of the log should be a log, so a problem with this file is reported.
    by_name.iter().for_each(|path| search.file(path, true));
    in_folders.iter().filter(|path| logs::is_log(path)).for_each(|path| search.file(path, false));
    let is_in_use = |row: &&FileRow| row.file_type == logs::LOG && row.state == ONLINE;
    let is_missing = |row: &FileRow| !search.files.contains_key(&row.file_id);
    if search.files.is_empty() || database.files.iter().filter(is_in_use).any(is_missing) {
        let is_ours = |path: &PathBuf| binding.is_some() && log::binding_guid(path) == binding && logs::is_log(path);
        logs::files_beside(source).iter().filter(|path| is_ours(path)).for_each(|path| search.file(path, false));
    }
    search.finish(source)
}

/// A search for the log files of a database.
#[derive(Default)]
struct Search {
    /// The binding GUID in the headers of the data files.
    binding: Option<[u8; 16]>,
    seen: BTreeSet<PathBuf>,
    /// The log files found, by file ID. Copies of a log file have the same ID.
    files: BTreeMap<u16, Vec<PathBuf>>,
    /// Log files that were created but never written.
    unused: Vec<PathBuf>,
    found: Found,
}

impl Search {
    /// Examines a file, unless it was examined before. `is_named` means that the name of the file is the name of the
    /// log in the catalog.
    fn file(&mut self, path: &PathBuf, is_named: bool) {
        if !self.seen.insert(storage::canonical(path).unwrap_or_else(|_| path.clone())) {
            return;
        }
        match Log::open(std::slice::from_ref(path)) {
            Ok(log) => match log.files().first() {
                Some(file) if Some(file.binding_guid) == self.binding => {
                    self.files.entry(file.file_id).or_default().push(path.clone());
                }
                // A log of another database is reported only if its file name is the name of the log in the catalog.
                _ if is_named => {
                    let reason = Refusal::OtherDatabase;
                    self.found.passed_over.push(format!("{}: {reason}; skipped", path.display()));
                }
                _ => {}
            },
            Err(LogError::NeverUsed { path }) => self.unused.push(path),
            Err(error) => {
                if is_named {
                    self.found.unusable = Some(damage(&error));
                }
                self.found.passed_over.push(format!("{error}; skipped"));
            }
        }
    }

    /// Chooses one copy of each log file if there are several copies. Returns all files of the log.
    fn finish(self, source: &dyn PageSource) -> Found {
        let Self { files, unused, mut found, .. } = self;
        // If a log file has several copies, chooses the copy that contains the checkpoint to which the data files
        // refer.
        let mut chosen = Vec::new();
        for mut copies in files.into_values() {
            let belongs =
                |path: &PathBuf| Log::open(std::slice::from_ref(path)).is_ok_and(|log| Start::of(source, &log).is_ok());
            let number = if copies.len() > 1 { copies.iter().position(belongs).unwrap_or_default() } else { 0 };
            let path = copies.swap_remove(number);
            let reason = format!("is another copy of the log file {}; skipped", path.display());
            found.passed_over.extend(copies.iter().map(|other| format!("{}: {reason}", other.display())));
            chosen.push(path);
        }
        // Some files of a log may never have been written. Each of these files is added if the log can still be opened
        // with it.
        for path in chosen.into_iter().chain(unused) {
            found.logs.push(path);
            if let Err(error) = Log::open(&found.logs) {
                found.passed_over.push(format!("{error}; skipped"));
                found.logs.pop();
            }
        }
        found
    }
}
