//! The database as recovery would leave it, if its log is at hand.

use std::collections::BTreeMap;
use std::path::PathBuf;

use catalog::Database;
use check::{RecoveryDoubt, RecoveryDoubtKind, RecoveryState, RecoverySummary};
use log::Log;
use recovery::{Analysis, Applied, Misfit, RecoveredPages, Recovery, Refusal, Settings};
use source::PageSource;

use crate::failure::{Failure, warn};
use crate::{logs, size};

/// Memory without `--memory`.
const DEFAULT_MEMORY_BYTES: u64 = 512 << 20;
/// Pages that are named one by one in a reason.
const NAMED_PAGES: usize = 3;

/// What recovery needs to know of the command line.
pub(crate) struct Wanted<'a> {
    /// What was named.
    pub(crate) paths: &'a [PathBuf],
    /// `--no-log`.
    pub(crate) no_log: bool,
    /// `--memory`.
    pub(crate) memory: Option<u64>,
    /// `--temp-dir`.
    pub(crate) temp_dir: Option<PathBuf>,
}

/// What came of it.
#[derive(Default)]
pub(crate) struct Outcome<'s> {
    /// The recovered pages; `None` where the files are to be read as they are.
    pub(crate) pages: Option<RecoveredPages<'s>>,
    /// What happened; `None` if there was no reason to look for a log.
    pub(crate) summary: Option<RecoverySummary>,
}

/// Recovers the database in memory, with the log that was named, or with the one beside data files that were not shut down
/// cleanly.
///
/// # Errors
/// A log that was named and does not belong to the data files, or cannot be used; a temporary file that fails.
pub(crate) fn recover<'s>(
    wanted: &Wanted<'_>,
    source: &'s dyn PageSource,
    database: &Database,
) -> Result<Outcome<'s>, Failure> {
    let is_clean = database.boot.as_ref().is_some_and(catalog::Boot::clean_shutdown);
    let named: Vec<PathBuf> = wanted.paths.iter().filter(|path| logs::is_log(path)).cloned().collect();
    if source.backup().is_some() || is_clean && named.is_empty() {
        return Ok(Outcome::default());
    }
    if wanted.no_log {
        return Ok(Outcome { pages: None, summary: Some(summary_of(RecoveryState::Off, "--no-log")) });
    }
    let is_named = !named.is_empty();
    let paths = if is_named { named } else { beside(wanted.paths, source, database) };
    if paths.is_empty() {
        return Ok(Outcome::default());
    }
    let settings = Settings {
        grant_bytes: wanted.memory.unwrap_or(DEFAULT_MEMORY_BYTES),
        temp_dir: wanted.temp_dir.clone(),
        has_version_store: database.has_version_store(),
    };
    let made = make(&paths, source, &settings);
    let recovery = match made {
        Ok(recovery) => recovery,
        Err(refusal) if refusal.least_grant_bytes().is_some() => {
            let least = size::text(refusal.least_grant_bytes().unwrap_or_default());
            return Err(Failure::usage(format!("{}: {refusal}; --memory {least} is needed at least", names(&paths))));
        }
        Err(refusal @ Refusal::Temporary(_)) => return Err(Failure::unable(refusal)),
        Err(refusal) if is_named => {
            let text = format!(
                "{}: {refusal}; name the log that was copied with the data files, or use --no-log",
                names(&paths)
            );
            return Err(Failure::usage(text));
        }
        Err(refusal) => {
            warn(format!("{}: passed over: {refusal}", names(&paths)));
            let reason = refusal.to_string();
            return Ok(Outcome { pages: None, summary: Some(summary_of(RecoveryState::Refused, &reason)) });
        }
    };
    let summary = summarize(&recovery, is_clean);
    report(&summary, &recovery.applied);
    let pages = (summary.state != RecoveryState::NotNeeded).then(|| RecoveredPages::new(source, recovery));
    Ok(Outcome { pages, summary: Some(summary) })
}

fn make(paths: &[PathBuf], source: &dyn PageSource, settings: &Settings) -> Result<Recovery, Refusal> {
    let log = Log::open(paths)?;
    let analysis = Analysis::new(source, &log, settings)?;
    Recovery::new(source, &log, analysis, settings)
}

/// Logs of this database that are beside its data files under their names, or in a folder that was named.
fn beside(paths: &[PathBuf], source: &dyn PageSource, database: &Database) -> Vec<PathBuf> {
    let by_name = logs::find(source, database).into_iter().filter_map(|log| log.path);
    let folders = paths.iter().filter(|path| path.is_dir()).filter_map(|folder| std::fs::read_dir(folder).ok());
    let in_folders = folders.flatten().flatten().map(|entry| entry.path());
    let binding = source.files().first().and_then(|file| file.binding_guid);
    let mut found: BTreeMap<u16, PathBuf> = BTreeMap::new();
    for path in by_name.chain(in_folders).filter(|path| logs::is_log(path)) {
        // One that cannot be opened, or is of another database, merely is there.
        let Ok(log) = Log::open(std::slice::from_ref(&path)) else { continue };
        let of_it = log.files().first().filter(|file| Some(file.binding_guid) == binding);
        if let Some(file) = of_it {
            found.entry(file.file_id).or_insert(path);
        }
    }
    found.into_values().collect()
}

fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn summary_of(state: RecoveryState, reason: &str) -> RecoverySummary {
    RecoverySummary {
        state,
        reason: reason.to_owned(),
        range: None,
        log_bytes: 0,
        records: 0,
        pages: 0,
        transactions_undone: 0,
        in_doubt: 0,
        doubts: Vec::new(),
    }
}

fn summarize(recovery: &Recovery, is_clean: bool) -> RecoverySummary {
    let (analysis, applied) = (&recovery.analysis, &recovery.applied);
    let doubts = doubts(analysis, applied);
    let state = match (doubts.is_empty(), applied.pages) {
        (false, _) => RecoveryState::Partial,
        (true, 0) if is_clean => RecoveryState::NotNeeded,
        (true, _) => RecoveryState::Done,
    };
    let reason = doubts.first().map(|doubt| doubt.kind.limit().id.to_owned()).unwrap_or_default();
    RecoverySummary {
        range: Some((analysis.redo_from, analysis.end)),
        log_bytes: analysis.log_bytes,
        records: analysis.records,
        pages: applied.pages,
        transactions_undone: applied.transactions_undone,
        in_doubt: applied.in_doubt,
        doubts,
        ..summary_of(state, &reason)
    }
}

fn doubts(analysis: &Analysis, applied: &Applied) -> Vec<RecoveryDoubt> {
    let doubt = |kind, scope: &str, count| RecoveryDoubt { kind, scope: scope.to_owned(), count };
    let mut doubts = Vec::new();
    let mut by_cause: BTreeMap<Misfit, Vec<String>> = BTreeMap::new();
    for entry in &applied.not_recovered {
        by_cause.entry(entry.why).or_default().push(entry.page.to_string());
    }
    for (why, pages) in by_cause {
        let more = if pages.len() > NAMED_PAGES { ", ..." } else { "" };
        let named: Vec<&str> = pages.iter().take(NAMED_PAGES).map(String::as_str).collect();
        doubts.push(RecoveryDoubt {
            kind: RecoveryDoubtKind::Pages(why.to_string()),
            scope: format!("{}{more}", named.join(", ")),
            count: pages.len() as u64,
        });
    }
    if applied.in_doubt > 0 {
        doubts.push(doubt(RecoveryDoubtKind::InDoubt, "transactions", applied.in_doubt));
    }
    if applied.transactions_not_undone > 0 {
        doubts.push(doubt(RecoveryDoubtKind::Transaction, "transactions", applied.transactions_not_undone));
    }
    if analysis.blocks_after_the_end > 0 {
        doubts.push(doubt(
            RecoveryDoubtKind::LogEnd,
            &format!("after {}", analysis.end),
            analysis.blocks_after_the_end,
        ));
    }
    doubts
}

fn report(summary: &RecoverySummary, applied: &Applied) {
    match summary.state {
        RecoveryState::Done | RecoveryState::Partial => warn(format!(
            "recovered in memory from its log: {} pages, {} records, {} transactions taken back; the files are unchanged{}",
            applied.pages,
            applied.records,
            applied.transactions_undone,
            if summary.state == RecoveryState::Partial { "; recovery is not complete, see below" } else { "" }
        )),
        RecoveryState::NotNeeded | RecoveryState::Refused | RecoveryState::Off => {}
    }
}
