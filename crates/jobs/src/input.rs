//! The database that a command reads, from data files or from backups. Several backups are combined as RESTORE would
//! combine them.

use std::path::PathBuf;

use log::{Log, LogError};
use recovery::{RestoreStart, Stop};
use source::backup::{BackupLog, ChainSet, Hints, Restore};
use source::{BackupPages, OpenError, PageSource, storage};

use crate::carve;
use crate::failure::Failure;
use crate::host::warn;
use crate::request::StopOptions;
use crate::spool::{self, Spool};

/// A database as stored, before recovery.
pub enum Input {
    /// Data files.
    Files(Box<dyn PageSource>),
    /// Backups.
    Backups(Box<Backups>),
}

/// Backups of one database.
pub struct Backups {
    /// The pages of the full backup, with the changes of the differential backup if there is one; or the pages of file
    /// backups.
    pub pages: BackupPages,
    /// The log in these backups and in the later log backups; `None` if no log can be read.
    pub log: Option<Log>,
    /// The point in the log where the restore starts.
    pub start: RestoreStart,
    /// The number of later log backups.
    pub log_backups: usize,
    /// When the first of them finished that has extents of bulk operations; `None` if none has any.
    pub bulk: Option<String>,
    /// The point where the restore stops; `None` for the end of the log.
    pub stop: Option<Stop>,
}

/// The options for reading the input.
pub struct Reading<'a> {
    /// The paths that the user named, without files that were found in folders.
    pub named: &'a [PathBuf],
    /// The value of `--set`.
    pub sets: &'a [u16],
    /// Whether `--direct` was given.
    pub direct: bool,
    /// Whether `--carve` was given.
    pub carve: bool,
    /// Where to keep a copy of standard input.
    pub spool: Spool<'a>,
    /// The value of `--memory`, in bytes.
    pub memory: Option<u64>,
    /// The value of `--stop-at` and similar options.
    pub stop: &'a StopOptions,
    /// What an earlier opening of the same files has found.
    pub hints: Hints,
}

impl Backups {
    /// Opens the log of a restore.
    ///
    /// # Errors
    /// [`LogError`] if the log cannot be opened.
    pub fn of(restore: Restore, stop: Option<Stop>) -> Result<Self, LogError> {
        Ok(Self {
            start: RestoreStart { from: restore.from, redo_from: restore.redo_from, pages_to: restore.pages_to },
            log: log_of(restore.log)?,
            pages: restore.pages,
            log_backups: restore.log_backups,
            bulk: restore.bulk,
            stop,
        })
    }
}

impl Input {
    /// Opens the named paths: data files with their logs, or backups. The path `-` is a backup from standard input. With
    /// `--carve`, the paths are raw bytes.
    ///
    /// # Errors
    /// [`OpenError`]; a named log backup that does not continue the other backups.
    pub fn open(paths: &[PathBuf], reading: &Reading<'_>) -> Result<Self, Failure> {
        if reading.carve {
            carve::refuse_beside(reading.sets, reading.stop)?;
            return Ok(Self::Files(carve::open(paths, reading.memory, reading.spool.progress)?));
        }
        let expanded = expand(paths);
        let is_backup = |path: &PathBuf| path.as_os_str() == "-" || source::is_backup(path);
        if !expanded.iter().any(is_backup) {
            if reading.stop.is_given() {
                return Err(Failure::usage(
                    "--stop-at and marks work only with backups: data files cannot be restored to a point in time",
                ));
            }
            return Ok(Self::Files(source::open_within(paths, reading.sets, reading.direct, reading.memory)?));
        }
        if let Some(path) = expanded.iter().find(|path| !is_backup(path)) {
            return Err(OpenError::NotABackup { path: path.clone() }.into());
        }
        let kept = spool::keep_input(&expanded, &reading.spool)?;
        let stop = reading.stop.stop();
        let restore = Restore::open_hinted(
            &expanded,
            reading.sets,
            kept,
            reading.memory,
            (reading.stop.until(), &reading.hints),
        )?;
        for (path, error) in &restore.refused {
            match reading.named.contains(path) {
                true => return Err(Failure::usage(error)),
                false => warn(format!("{error}; skipped")),
            }
        }
        Ok(Self::Backups(Box::new(Backups::of(restore, stop)?)))
    }

    /// Opens these backup sets for a restore up to `stop`.
    ///
    /// # Errors
    /// [`OpenError`]; errors of the log.
    pub fn of_sets(
        sets: &[ChainSet],
        (memory, hints): (Option<u64>, &Hints),
        stop: Option<Stop>,
    ) -> Result<Self, Failure> {
        let restore = Restore::of_sets_hinted(&sets.iter().collect::<Vec<_>>(), memory, hints)?;
        Ok(Self::Backups(Box::new(Backups::of(restore, stop)?)))
    }

    /// The pages as they are stored, before recovery.
    pub fn pages(&self) -> &dyn PageSource {
        match self {
            Self::Files(files) => files.as_ref(),
            Self::Backups(backups) => &backups.pages,
        }
    }
}

/// Opens the log in backups; `None` if the backups contain no log that can be used.
fn log_of(backups: BackupLog) -> Result<Option<Log>, LogError> {
    match Log::of_backups(backups) {
        Ok(log) => Ok(Some(log).filter(|log| !log.is_empty())),
        Err(LogError::Nothing | LogError::StripesMissing { .. } | LogError::NoLog { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces each folder that has backups, but no data files, by the backups in it.
pub fn expand(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut expanded = Vec::new();
    for path in paths {
        let files = if storage::is_folder(path) { storage::files_in(path) } else { Vec::new() };
        let backups: Vec<PathBuf> = files.iter().filter(|file| source::is_backup(file)).cloned().collect();
        let has_data = || files.iter().any(|file| source::is_data_file(file));
        match backups.is_empty() || has_data() {
            true => expanded.push(path.clone()),
            false => expanded.extend(backups),
        }
    }
    expanded
}
