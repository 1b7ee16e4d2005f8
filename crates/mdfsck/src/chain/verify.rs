//! `mdfsck chain --verify`: each chain is restored in memory, and the result is checked.

use check::{Options, RecoverySummary, Report, Silent};
use format::Lsn;
use log::{EndReason, Log, LogError, Walk};
use report::chains::Verified;
use report::log::lsn_text;
use source::backup::{Chain, DatabaseChains, Restore};

use crate::cli::RecoveryArguments;
use crate::failure::{Failure, warn};
use crate::input::Backups;
use crate::recover;

/// Restores a chain in memory and checks what comes of it: the containers of the backups, every block of their log, every
/// record against the page that it changes, and all pages and maps as `check --physical-only` does. With the bits of the exit
/// status.
pub(super) fn verify(database: &DatabaseChains, chain: &Chain, options: &RecoveryArguments) -> (Verified, u8) {
    if chain.omitted > 0 {
        let reason = format!("{} log backups are too many to be verified at once", chain.omitted + 1);
        return (Verified { reason: Some(reason), ..Verified::default() }, Failure::INCOMPLETE);
    }
    match restore(database, chain, options) {
        Ok(verified) => {
            let errors = if verified.errors > 0 { Failure::CORRUPT } else { 0 };
            (verified.clone(), errors | if verified.reason.is_some() { Failure::INCOMPLETE } else { 0 })
        }
        Err(failure) => (Verified { reason: Some(failure.text), ..Verified::default() }, failure.status),
    }
}

fn restore(database: &DatabaseChains, chain: &Chain, options: &RecoveryArguments) -> Result<Verified, Failure> {
    let backups = Backups::of(Restore::of_chain(database, chain, options.memory)?, None)?;
    let log = match &backups.log {
        Some(log) => read(log)?,
        None => ReadLog::default(),
    };
    let as_stored = catalog::load(&backups.pages);
    // Records after a damaged block are not there: what they do is not known.
    let recovered = match (recover::restore(&backups, options, &as_stored), &log.fault) {
        (Err(_), Some(fault)) => {
            return Ok(Verified { errors: 1, first_error: Some(fault.clone()), ..Verified::default() });
        }
        (recovered, _) => recovered?,
    };
    let kept_bytes = recovered.kept_bytes();
    let (source, catalog) = recovered.view(&backups.pages, as_stored);
    let options = Options {
        physical_only: true,
        recovery: recovered.summary.clone(),
        memory_bytes: options.memory.map(|memory| memory.saturating_sub(kept_bytes)),
        temp_dir: options.temp_dir.clone(),
        ..Options::default()
    };
    let report = check::run(source, &catalog, &options, &Silent);
    report.read_errors.iter().for_each(warn);
    Ok(judge(&report, recovered.summary.as_ref(), log))
}

fn judge(report: &Report, recovery: Option<&RecoverySummary>, log: ReadLog) -> Verified {
    let first = report.findings.iter().next().map(|finding| finding.text(&report.names()));
    let doubt = report.not_verified.iter().find(|entry| !report.is_allowed(entry.limit));
    let doubt = doubt.map(|entry| format!("{}, {}: {}", entry.what, entry.scope, entry.reason));
    Verified {
        errors: report.findings.len() as u64 + u64::from(log.fault.is_some()),
        first_error: log.fault.or(first),
        reason: doubt.or_else(|| report.read_errors.first().cloned()),
        is_restored: true,
        pages: report.statistics.pages_allocated,
        log_blocks: log.blocks,
        recovered_pages: recovery.map_or(0, |recovery| recovery.pages),
        transactions_undone: recovery.map_or(0, |recovery| recovery.transactions_undone),
    }
}

/// What all log of a chain is.
#[derive(Default)]
struct ReadLog {
    blocks: u64,
    /// A block that is damaged.
    fault: Option<String>,
}

/// Reads all of the log. That it is complete where it is needed shows when it is applied.
fn read(log: &Log) -> Result<ReadLog, LogError> {
    let (mut walk, mut found) = (Walk::new(log), ReadLog::default());
    while walk.next_block()?.is_some() {
        found.blocks += 1;
    }
    let Some(end) = walk.end() else { return Ok(found) };
    let reached = Lsn { vlf: end.at.vlf.sequence, block: end.block, slot: 1 };
    let path = log.files().get(end.at.file).map(|file| file.path.display().to_string()).unwrap_or_default();
    if matches!(end.reason, EndReason::Damaged { .. }) {
        found.fault = Some(format!("the log in {path} is damaged at {}", lsn_text(reached)));
    } else if walk.lost_bytes() > 0 {
        found.fault = Some(format!("the log is damaged before its first sound block: {} bytes", walk.lost_bytes()));
    }
    Ok(found)
}
