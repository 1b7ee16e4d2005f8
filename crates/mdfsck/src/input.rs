//! The database that a command reads, from data files or from backups. Several backups are combined as RESTORE would
//! combine them.

use std::path::PathBuf;

use catalog::Database;
use events::{Clock, Moment};
use format::log::LogTime;
use log::{Log, LogError};
use recovery::{RestoreStart, Stop};
use serde::{Deserialize, Serialize};
use source::backup::{BackupLog, ChainSet, Restore};
use source::{BackupPages, OpenError, PageSource, storage};

use crate::carve;
use crate::cli::{RecoveryArguments, StopArguments};
use crate::failure::{Failure, warn};
use crate::recover::{self, Outcome};
use crate::spool::{self, Spool};

/// A database as stored, before recovery.
pub(crate) enum Input {
    /// Data files.
    Files(Box<dyn PageSource>),
    /// Backups.
    Backups(Box<Backups>),
}

/// Backups of one database.
pub(crate) struct Backups {
    /// The pages of the full backup, with the changes of the differential backup if there is one; or the pages of file
    /// backups.
    pub(crate) pages: BackupPages,
    /// The log in these backups and in the later log backups; `None` if no log can be read.
    pub(crate) log: Option<Log>,
    /// The point in the log where the restore starts.
    pub(crate) start: RestoreStart,
    /// The number of later log backups.
    pub(crate) log_backups: usize,
    /// The point where the restore stops; `None` for the end of the log.
    pub(crate) stop: Option<Stop>,
}

/// The options for reading the input.
pub(crate) struct Reading<'a> {
    /// The paths that the user named, without files that were found in folders.
    pub(crate) named: &'a [PathBuf],
    /// The value of `--set`.
    pub(crate) sets: &'a [u16],
    /// Whether `--direct` was given.
    pub(crate) direct: bool,
    /// Whether `--carve` was given.
    pub(crate) carve: bool,
    /// Where to keep a copy of standard input.
    pub(crate) spool: Spool<'a>,
    /// The value of `--memory`, in bytes.
    pub(crate) memory: Option<u64>,
    /// The value of `--stop-at` and similar options.
    pub(crate) stop: &'a StopArguments,
}

impl Backups {
    /// Opens the log of a restore.
    ///
    /// # Errors
    /// [`LogError`] if the log cannot be opened.
    pub(crate) fn of(restore: Restore, stop: Option<Stop>) -> Result<Self, LogError> {
        Ok(Self {
            start: RestoreStart { from: restore.from, redo_from: restore.redo_from, pages_to: restore.pages_to },
            log: log_of(restore.log)?,
            pages: restore.pages,
            log_backups: restore.log_backups,
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
    pub(crate) fn open(paths: &[PathBuf], reading: &Reading<'_>) -> Result<Self, Failure> {
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
        let restore = Restore::open(&expanded, reading.sets, kept, reading.memory, reading.stop.until())?;
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
    pub(crate) fn of_sets(sets: &[ChainSet], memory: Option<u64>, stop: Option<Stop>) -> Result<Self, Failure> {
        let restore = Restore::of_sets(&sets.iter().collect::<Vec<_>>(), memory)?;
        Ok(Self::Backups(Box::new(Backups::of(restore, stop)?)))
    }

    /// The pages as they are stored, before recovery.
    pub(crate) fn pages(&self) -> &dyn PageSource {
        match self {
            Self::Files(files) => files.as_ref(),
            Self::Backups(backups) => &backups.pages,
        }
    }

    /// Recovers the database in memory, with its log.
    ///
    /// # Errors
    /// A named log that does not belong to the database or cannot be used; a temporary file that cannot be written.
    pub(crate) fn recover(
        &self,
        paths: &[PathBuf],
        options: &RecoveryArguments,
        database: &Database,
        is_newer: impl FnOnce() -> bool,
    ) -> Result<Outcome<'_>, Failure> {
        match self {
            Self::Files(files) => recover::recover(paths, options, files.as_ref(), database, is_newer),
            Self::Backups(backups) => recover::restore(backups, options, database),
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
pub(crate) fn expand(paths: &[PathBuf]) -> Vec<PathBuf> {
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

/// The point in time of `--stop-at`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct StopMoment {
    /// The time in the format of the log.
    pub(crate) time: LogTime,
    /// The time in the format of backup sets: `2020-05-12 13:30:00`.
    text: [u8; 19],
}

impl StopMoment {
    /// The time in the format of backup sets.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// The time in the format of reports. The fraction of a second is shown unless it is zero.
    pub(crate) fn shown(&self) -> String {
        let text =
            report::log::time_text(self.time).unwrap_or_else(|| String::from_utf8_lossy(&self.text).into_owned());
        text.strip_suffix(".000").map(str::to_owned).unwrap_or(text)
    }
}

impl TryFrom<String> for StopMoment {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        stop_moment(&text)
    }
}

impl From<StopMoment> for String {
    fn from(moment: StopMoment) -> Self {
        moment.shown()
    }
}

/// Parses a point in time, in the server's local time.
pub(crate) fn stop_moment(text: &str) -> Result<StopMoment, String> {
    const DAYS_FROM_1601_TO_1900: i64 = 109_207;
    const TICKS_PER_DAY: i64 = 864_000_000_000;
    let parsed = (|| {
        let (moment, clock) = Moment::parse(text).or_else(|| Moment::parse(&format!("{}T00:00", text.trim())))?;
        // A datetime has 300 ticks per second. Rounds to the nearest tick, since a time shown in milliseconds may be
        // earlier than its tick: the tick at .17333 is shown as .173.
        let rounded = moment.0.saturating_add(100_000 / 6);
        let days = i32::try_from(rounded.div_euclid(TICKS_PER_DAY) - DAYS_FROM_1601_TO_1900).ok()?;
        let ticks = u32::try_from(rounded.rem_euclid(TICKS_PER_DAY) * 3 / 100_000).ok()?;
        let text = *moment.to_string().as_bytes().first_chunk()?;
        (clock == Clock::Local).then_some(StopMoment { time: LogTime { days, ticks }, text })
    })();
    parsed.ok_or_else(|| {
        "expected a point in time in the local time of the server, for example 2020-05-12T13:30:00".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_in_the_ticks_of_the_log() {
        let moment = stop_moment("2024-03-01T00:00:10.5").unwrap();
        assert_eq!((moment.time, &moment.text), (LogTime { days: 45_350, ticks: 3150 }, b"2024-03-01 00:00:10"));
        // Servers also round to the nearest tick. A printed time is therefore converted back to the tick that was
        // printed.
        for (text, days, ticks) in [
            ("2024-03-01T00:00:00.003", 45_350, 1),
            ("2024-03-01T00:00:00.007", 45_350, 2),
            ("2024-03-01T00:00:00.173", 45_350, 52),
            ("2024-03-01T23:59:59.997", 45_350, 86_400 * 300 - 1),
            ("2024-03-01T23:59:59.999", 45_351, 0),
        ] {
            assert_eq!(stop_moment(text).unwrap().time, LogTime { days, ticks }, "{text}");
        }
        assert_eq!(stop_moment("1900-01-02").unwrap().time, LogTime { days: 1, ticks: 0 });
        for text in ["", "now", "2024-03-01T00:00:10Z", "2024-13-01"] {
            assert!(stop_moment(text).is_err(), "{text}");
        }
    }
}
