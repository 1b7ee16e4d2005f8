//! Recovers the database in memory. This needs the log of the database, which the user has named or which is in the
//! folders of the data files.

mod found;
mod summary;

use std::path::{Path, PathBuf};

use catalog::{Boot, Database, Fetched};
use findings::{RecoveryDoubtKind, RecoveryState, RecoverySummary};
use format::PageId;
use log::{Log, LogError};
use recovery::{Analysis, RecoveredPages, Recovery, Refusal, Settings, Stop};
use report::info::{self, Recovery as Need};
use source::{PageSource, Snapshot};

use crate::failure::Failure;
use crate::folders::names;
use crate::host::warn;
use crate::input::{Backups, Input};
use crate::request::RecoveryOptions;
use crate::{logs, size};
pub use found::{Found, find, open};
use found::{damage, foreign};
pub use summary::report_doubts;
use summary::{not_given, report, summarize, summary_of, unusable};

/// The memory for recovery without `--memory`, in bytes.
const DEFAULT_MEMORY_BYTES: u64 = 512 << 20;

/// Applies the log in backups, and goes on from where an earlier recovery of them stood if that is known.
pub trait GoingOn {
    /// Applies the log to the pages of the backups. Returns also whether it went on from an earlier recovery.
    ///
    /// # Errors
    /// [`Refusal`] if the whole log cannot be applied.
    fn recover(&mut self, backups: &Backups, log: &Log, settings: &Settings) -> Result<(Recovery, bool), Refusal>;
}

/// The result of recovery.
#[derive(Default)]
pub struct Outcome<'s> {
    /// The recovered pages; `None` if the caller should read the pages as stored.
    pub pages: Option<RecoveredPages<'s>>,
    /// A summary of recovery. `None` if recovery needed no log, or if no log was found and the files are complete
    /// without it.
    pub summary: Option<RecoverySummary>,
    /// Whether recovery went on from where an earlier proof stood.
    pub is_resumed: bool,
}

impl Outcome<'_> {
    /// The result for data files with pages that are newer than the end of the log. No page is recovered.
    pub fn of_another_moment() -> Self {
        let reason = "pages are newer than the end of the log: data files and log are from different points in time";
        Self { summary: Some(unusable(reason, RecoveryDoubtKind::Log)), ..Self::default() }
    }

    /// The pages and the catalog to read. If there are recovered pages, returns these pages and their catalog;
    /// otherwise, returns the pages and the catalog as stored.
    pub fn view<'a>(&'a self, source: &'a dyn PageSource, as_stored: Database) -> (&'a dyn PageSource, Database) {
        match &self.pages {
            Some(pages) => (pages, catalog::load(pages)),
            None => (source, as_stored),
        }
    }

    /// The recovered pages if there are any, otherwise `source`.
    pub fn pages_or<'a>(&'a self, source: &'a dyn PageSource) -> &'a dyn PageSource {
        self.pages.as_ref().map_or(source, |pages| pages)
    }

    /// Memory that the recovered pages use, in bytes.
    pub fn kept_bytes(&self) -> u64 {
        self.pages.as_ref().map_or(0, |pages| pages.recovery().kept_bytes())
    }

    /// Moves recovered pages from memory to temporary files. Stops when the pages that remain in memory use at most
    /// `bytes`, or when no further page can be moved.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn keep_at_most(&mut self, bytes: u64) -> Result<(), Failure> {
        let kept = self.pages.as_mut().map_or(Ok(()), |pages| pages.recovery_mut().keep_at_most(bytes));
        kept.map_err(|cause| Failure::unable(Refusal::Temporary(cause)))
    }
}

/// Whether the database is tempdb. The log of tempdb is neither applied nor compared with the pages.
pub fn is_tempdb(database: &Database) -> bool {
    database.boot.as_ref().is_some_and(Boot::is_tempdb)
}

/// Recovers a database in memory, with its log.
///
/// # Errors
/// A named log that does not belong to the database or cannot be used; a temporary file that cannot be written.
pub fn of_input<'i>(
    input: &'i Input,
    paths: &[PathBuf],
    options: &RecoveryOptions,
    database: &Database,
    is_newer: impl FnOnce() -> bool,
    redo: Option<&mut dyn GoingOn>,
) -> Result<Outcome<'i>, Failure> {
    match input {
        Input::Files(files) => recover(paths, options, files.as_ref(), database, is_newer),
        Input::Backups(backups) => restore(backups, options, database, redo),
    }
}

/// Recovers the database in memory. Uses the log that the user named in `paths`, or else the log in the folders of the
/// data files. After the recovered pages are made, calls `is_newer`, which returns whether the audit found pages that
/// are newer than the log.
///
/// # Errors
///
/// A log that the user named, but that does not belong to the data files or cannot be read; a temporary file that
/// cannot be written.
pub fn recover<'s>(
    paths: &[PathBuf],
    options: &RecoveryOptions,
    source: &'s dyn PageSource,
    database: &Database,
    is_newer: impl FnOnce() -> bool,
) -> Result<Outcome<'s>, Failure> {
    if source.backup().is_some() {
        return Ok(Outcome::default());
    }
    if let Some(snapshot) = source.snapshot() {
        return of_snapshot(paths, snapshot);
    }
    let is_clean = database.boot.as_ref().is_some_and(Boot::clean_shutdown);
    if options.no_log {
        let off = || summary_of(RecoveryState::Off, "--no-log");
        let is_asked = !is_clean || paths.iter().any(|path| logs::is_log(path));
        return Ok(Outcome { summary: is_asked.then(off), ..Outcome::default() });
    }
    if source.carved().is_some() {
        let missing = || not_given("--carve finds the pages of data files only, not their log".to_owned());
        return Ok(Outcome { summary: (!is_clean && database.boot.is_some()).then(missing), ..Outcome::default() });
    }
    let is_tempdb = is_tempdb(database);
    if is_tempdb && !paths.iter().any(|path| logs::is_log(path)) {
        return Ok(Outcome::default());
    }
    let Found { logs, is_named, passed_over, unusable: reason } = find(paths, source, database);
    passed_over.iter().for_each(warn);
    if is_tempdb {
        return Err(Failure::usage(format!(
            "{}: is the log of tempdb, which is created again at every start of the server: nothing is recovered; leave the log out",
            names(&logs)
        )));
    }
    if logs.is_empty() {
        let missing = || match reason {
            Some(reason) => unusable(&reason, RecoveryDoubtKind::Log),
            None => not_given(logs::not_at_hand(database)),
        };
        return Ok(Outcome { summary: (!is_clean && database.boot.is_some()).then(missing), ..Outcome::default() });
    }
    if let Some(path) = foreign(&logs, source).filter(|_| is_named) {
        return refused(Refusal::OtherDatabase, std::slice::from_ref(path), is_named, is_clean);
    }
    let settings = settings(options, database);
    let made = make(&logs, source, database, &settings);
    // If the log is damaged or cut off, some pages are newer than its readable part for this reason alone.
    let is_cut_short = made.as_ref().is_err_and(is_unusable);
    if is_newer() && !is_cut_short {
        return Ok(Outcome::of_another_moment());
    }
    let recovery = match made {
        Ok(recovery) => recovery,
        Err(refusal) => return refused(refusal, &logs, is_named, is_clean),
    };
    let summary = summarize(&recovery, is_clean);
    report(&summary, &recovery.applied);
    let pages = (summary.state != RecoveryState::NotNeeded).then(|| RecoveredPages::new(source, recovery));
    Ok(Outcome { pages, summary: Some(summary), is_resumed: false })
}

/// The result for a database snapshot. A snapshot has no log, because SQL Server recovers it when it is created.
fn of_snapshot(paths: &[PathBuf], snapshot: &Snapshot) -> Result<Outcome<'static>, Failure> {
    if let Some(log) = paths.iter().find(|path| logs::is_log(path)) {
        return Err(Failure::usage(format!(
            "{}: a snapshot was recovered when it was made, and has no log: leave the log out",
            log.display()
        )));
    }
    let bases: Vec<PathBuf> = snapshot.bases().map(Path::to_owned).collect();
    warn(format!(
        "a database snapshot, combined with {}: the database as it was when the snapshot was created",
        names(&bases)
    ));
    Ok(Outcome::default())
}

/// Recovers backups in memory. With `redo`, goes on from where an earlier proof of these backups stood. Applies the log if
/// there are later log backups, if the restore stops at a given point, or if pages changed while the backup copied them.
///
/// # Errors
///
/// A log that ends before the point where the restore stops, or that cannot be used; a temporary file that cannot be
/// written.
pub fn restore<'s>(
    backups: &'s Backups,
    options: &RecoveryOptions,
    database: &Database,
    redo: Option<&mut dyn GoingOn>,
) -> Result<Outcome<'s>, Failure> {
    let has_log = backups.log_backups > 0 || backups.stop.is_some();
    let is_in_flight = backups.pages.in_flight().is_some_and(|pages| !pages.is_empty());
    let Some(log) = backups.log.as_ref().filter(|_| has_log || is_in_flight) else { return Ok(Outcome::default()) };
    // If the pages come from file backups that were made at different times, the log of one backup cannot be applied to
    // the pages of the other backups.
    if !backups.pages.has_one_moment() {
        return Ok(Outcome::default());
    }
    if options.no_log {
        return Ok(Outcome { summary: Some(summary_of(RecoveryState::Off, "--no-log")), ..Outcome::default() });
    }
    // The log lacks what a bulk operation wrote. A server takes it from extents in the log backup, whose form is not known
    // from any real file.
    if let Some(finished) = &backups.bulk {
        let reason = format!(
            "the log backup of {finished} has extents that a bulk operation wrote (bulk-logged recovery model); mdfsck cannot \
             read them"
        );
        warn(format!("{reason}; the pages are read as they are before the log backups"));
        return Ok(Outcome { summary: Some(unusable(&reason, RecoveryDoubtKind::Unsupported)), ..Outcome::default() });
    }
    let settings = settings(options, database);
    let made = match redo {
        Some(redo) => redo.recover(backups, log, &settings),
        None => Analysis::of_restore(backups.start, log, backups.stop.as_ref(), &settings)
            .and_then(|analysis| Recovery::new(&backups.pages, log, analysis, &settings))
            .map(|recovery| (recovery, false)),
    };
    let (recovery, is_resumed) = match made {
        Ok(made) => made,
        Err(refusal) if has_log || refusal.least_grant_bytes().is_some() => return Err(not_restored(refusal)),
        Err(Refusal::Temporary(error)) => return Err(not_restored(Refusal::Temporary(error))),
        Err(refusal) => {
            warn(format!("the log in the backup cannot be applied: {refusal}"));
            return Ok(Outcome::default());
        }
    };
    let analysis = &recovery.analysis;
    if let (Some(Stop::At(_)), None) = (&backups.stop, analysis.until) {
        warn(format!(
            "the log ends at {}, and no commit in it is later than --stop-at: the restore stops at the end of the log",
            analysis.end
        ));
    }
    let summary = summarize(&recovery, true);
    report(&summary, &recovery.applied);
    let is_needed = summary.state != RecoveryState::NotNeeded;
    let pages = is_needed.then(|| RecoveredPages::new(&backups.pages, recovery));
    Ok(Outcome { pages, summary: Some(summary), is_resumed })
}

fn not_restored(refusal: Refusal) -> Failure {
    match refusal.least_grant_bytes() {
        Some(least) => Failure::small_grant(format!("{refusal}; at least --memory {} is needed", size::text(least))),
        None => match refusal {
            Refusal::StopTooEarly { .. }
            | Refusal::NoMark { .. }
            | Refusal::OtherDatabase
            | Refusal::OtherMoment { .. }
            | Refusal::FilesNewer { .. } => Failure::usage(refusal),
            Refusal::Log(error) => error.into(),
            _ => Failure::unable(format!("the log in the backups cannot be applied: {refusal}")),
        },
    }
}

/// The memory for recovery, in bytes.
pub(crate) fn granted(options: &RecoveryOptions) -> u64 {
    options.room.memory.unwrap_or(DEFAULT_MEMORY_BYTES)
}

fn settings(options: &RecoveryOptions, database: &Database) -> Settings {
    Settings {
        grant_bytes: granted(options),
        temp_dir: options.room.temp_dir.clone(),
        has_version_store: database.has_version_store(),
    }
}

/// Warns about missing files and stripes, about carved pages, and about a log that was not applied. `done` is the word for what the command
/// does with the pages, such as "shown" or "exported". Returns whether files or stripes are missing: the missing parts
/// may contain data that the command does not find.
pub fn warn_about_input(source: &dyn PageSource, database: &Database, done: &str) -> bool {
    let missing = check::not_given(source, database, &findings::Scope::Database, done);
    let others = check::carved(source).into_iter().chain(check::not_recovered(source, database, done));
    missing.iter().for_each(|warning| warn(&warning.text));
    others.for_each(|warning| warn(&warning.text));
    !missing.is_empty()
}

/// The reason to report when the boot page cannot be read and the catalog can therefore not be found.
pub fn without_boot_page(source: &dyn PageSource) -> &'static str {
    match catalog::fetch(source, PageId::BOOT) {
        Fetched::Unread | Fetched::Outside if source.carved().is_some() => {
            "the boot page (1:9) was not found in the image: the catalog cannot be found"
        }
        Fetched::Unread | Fetched::Outside if source.backup().is_some_and(|backup| backup.missing_stripes() == 0) => {
            "the boot page (1:9) is in a part of the backup that is damaged or missing: the catalog cannot be found"
        }
        Fetched::Unread | Fetched::Outside if source.backup().is_some() => {
            "the boot page (1:9) is in a part of the backup that was not given: the catalog cannot be found"
        }
        Fetched::Unread | Fetched::Outside if source.file(PageId::BOOT.file).is_none() => {
            "the boot page (1:9) is in the primary data file, which was not given: the catalog cannot be found"
        }
        _ => "the boot page (1:9) is damaged: the catalog cannot be found",
    }
}

/// Describes each system table that cannot be read completely. If files or stripes are missing, returns one text for
/// all system tables instead.
pub fn catalog_gaps(database: &Database, lacks_input: bool, why: &str, rest: &str) -> Vec<String> {
    match lacks_input && !database.gaps.is_empty() {
        true => vec![format!("without the missing parts the catalog cannot be read completely: {rest}")],
        false => database.gaps.iter().map(|gap| format!("system table {} {why}: {rest}", gap.table)).collect(),
    }
}

/// Whether recovery is needed and whether it is possible. Reads only the boot page and the headers of the log, but no
/// log record.
pub fn need(paths: &[PathBuf], source: &dyn PageSource, database: &Database) -> Option<Need> {
    // A snapshot has no log.
    let boot = database.boot.as_ref().filter(|_| source.snapshot().is_none())?;
    let Found { logs: found, unusable, .. } = find(paths, source, database);
    let log = match found.is_empty() {
        true => Err(unusable.unwrap_or_else(|| logs::not_at_hand(database))),
        false => open(&found, database).map_err(|refusal| refusal.to_string()),
    };
    let binding = source.files().first().and_then(|file| file.binding_guid);
    let log = log.and_then(|log| match log.files().first() {
        Some(file) if binding.is_some_and(|binding| binding != file.binding_guid) => {
            Err(Refusal::OtherDatabase.to_string())
        }
        _ if log.run().iter().all(|placed| placed.vlf.sequence != boot.redo_lsn.vlf) => {
            Err(Refusal::TooShort { lsn: boot.redo_lsn }.to_string())
        }
        _ => Ok(log),
    });
    let last = log.as_ref().ok().and_then(|log| log.run().last()).map_or(0, |placed| placed.vlf.sequence);
    let (need, problem) = match boot.clean_shutdown() {
        // After a clean shutdown, the database does not need its log. A log that belongs to another database is
        // therefore no problem.
        true if last <= boot.checkpoint_lsn.vlf => (info::Need::No, None),
        true => (info::Need::Perhaps, None),
        false => (info::Need::Yes, log.err()),
    };
    Some(Need { need, from: boot.redo_lsn, problem })
}

/// The result for a log that cannot recover the database. A log that does not belong to the database is an error if the
/// user named it, and is skipped if it was only found in a folder.
fn refused<'s>(refusal: Refusal, logs: &[PathBuf], is_named: bool, is_clean: bool) -> Result<Outcome<'s>, Failure> {
    if let Some(least) = refusal.least_grant_bytes() {
        let least = size::text(least);
        return Err(Failure::small_grant(format!("{}: {refusal}; at least --memory {least} is needed", names(logs))));
    }
    match refusal {
        Refusal::Temporary(_) => Err(Failure::unable(refusal)),
        _ if is_unusable(&refusal) => {
            warn(format!("{}; the files are read as they are, without the log", with_name(&refusal, logs)));
            // After a clean shutdown, the data files need no log.
            let kind = if is_unsupported(&refusal) { RecoveryDoubtKind::Unsupported } else { RecoveryDoubtKind::Log };
            let summary = (is_named || !is_clean).then(|| unusable(&cause(&refusal), kind));
            Ok(Outcome { summary, ..Outcome::default() })
        }
        Refusal::Log(error) if is_named => Err(error.into()),
        _ if is_named => Err(Failure::usage(format!(
            "{}: {refusal}; give the log that was copied with the data files, or use --no-log",
            names(logs)
        ))),
        _ => {
            warn(format!("{}; skipped", with_name(&refusal, logs)));
            // The files of a database that was shut down cleanly need no log.
            let summary =
                (!is_clean).then(|| not_given(format!("the log beside the data files cannot be used: {refusal}")));
            Ok(Outcome { summary, ..Outcome::default() })
        }
    }
}

/// Whether the log belongs to the data files but is unusable. False if the log belongs to other data files.
fn is_unusable(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Damaged { .. }
            | Refusal::CheckpointDamaged { .. }
            | Refusal::CutOff { .. }
            | Refusal::TooShort { .. }
            | Refusal::Encrypted
            | Refusal::Upgrade
            | Refusal::NoBoot
            | Refusal::TooEntangled
            | Refusal::TooManyTransactions
            | Refusal::Log(
                LogError::NoVlf { .. }
                    | LogError::TooManyVlfs { .. }
                    | LogError::TooOld { .. }
                    | LogError::CutOff { .. }
            )
    )
}

/// Whether a server may be able to use a log that is unusable here. A server has the key of an encrypted log, for
/// example, and has no limit for the number of transactions.
fn is_unsupported(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Encrypted
            | Refusal::Upgrade
            | Refusal::NoBoot
            | Refusal::TooEntangled
            | Refusal::TooManyTransactions
            | Refusal::Log(LogError::TooManyVlfs { .. })
    )
}

/// The text of a refusal for a report. The text contains no paths, since reports of the same files must be equal in
/// every folder.
fn cause(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Log(error) => damage(error),
        _ => refusal.to_string(),
    }
}

/// Returns the text of a refusal, preceded by the names of the log files. No names are added to the text of a log
/// error, since this text already begins with the name of the file.
fn with_name(refusal: &Refusal, logs: &[PathBuf]) -> String {
    match refusal {
        Refusal::Log(error) => error.to_string(),
        _ => format!("{}: {refusal}", names(logs)),
    }
}

fn make(
    paths: &[PathBuf],
    source: &dyn PageSource,
    database: &Database,
    settings: &Settings,
) -> Result<Recovery, Refusal> {
    let log = open(paths, database)?;
    let analysis = Analysis::new(source, &log, settings)?;
    Recovery::new(source, &log, analysis, settings)
}
