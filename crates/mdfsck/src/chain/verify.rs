//! `mdfsck chain --verify`: restores each chain in memory and checks the result.

use std::collections::HashSet;
use std::path::PathBuf;

use check::Silent;
use findings::{Options, RecoverySummary, Report};
use format::Lsn;
use jobs::failure::Failure;
use jobs::input::Backups;
use jobs::recover;
use jobs::request::RecoveryOptions;
use log::{EndReason, Log, LogError, Walk};
use recovery::Stop;
use report::chains::{Detour, Verified};
use report::log::lsn_text;
use source::backup::{Chain, ChainSet, DatabaseChains, Restore, SetKind};

use super::proof::Proof;
use crate::speaker::warn;

/// Restores chains of a database in memory.
pub(super) struct Verifier<'a> {
    pub(super) options: &'a RecoveryOptions,
    /// The point in time at which a restore stops; `None` for the end of the log. A chain whose log does not continue
    /// after this point is restored to the end of its log.
    pub(super) stop: Option<Stop>,
    /// How the last moment is proven by change; `None` without a history.
    pub(super) proof: Option<Proof>,
}

impl Verifier<'_> {
    /// Verifies a chain up to its end like [`Self::verify`]. Reads only what has changed if that proves the same result.
    pub(super) fn verify_last(&self, database: &DatabaseChains, chain: &Chain) -> (Judged, u8) {
        let proven = self.proof.as_ref().and_then(|proof| proof_of(proof, database, chain));
        match proven {
            Some(verified) => (Judged { verified, is_final: true, damaged: None }, 0),
            None => self.verify(database, chain, false),
        }
    }

    /// Restores a chain in memory and checks the result. Checks the structure of each backup file, every block of the
    /// log, and every log record against the page that it changes. Then checks all pages and allocation maps as `check
    /// --physical-only` does. Also returns the exit-status bits.
    pub(super) fn verify(&self, database: &DatabaseChains, chain: &Chain, stops: bool) -> (Judged, u8) {
        let failed = |reason: String| Verified { reason: Some(reason), ..Verified::default() };
        if chain.omitted > 0 {
            let reason = format!("{} log backups are too many to verify in one run", chain.omitted + 1);
            return (Judged { verified: failed(reason), ..Judged::default() }, Failure::INCOMPLETE);
        }
        match self.restore(database, chain, stops) {
            Ok(judged) => {
                let errors = if judged.verified.errors > 0 { Failure::CORRUPT } else { 0 };
                let doubts = if judged.verified.reason.is_some() { Failure::INCOMPLETE } else { 0 };
                (judged, errors | doubts)
            }
            Err(failure) => {
                // If the memory grant was too small, a larger grant may give another result.
                let is_final = failure.status != Failure::USAGE;
                (Judged { verified: failed(failure.text), is_final, damaged: None }, failure.status)
            }
        }
    }

    fn restore(&self, database: &DatabaseChains, chain: &Chain, stops: bool) -> Result<Judged, Failure> {
        let stop = self.stop.clone().filter(|_| stops);
        let backups = Backups::of(Restore::of_chain(database, chain, self.options.room.memory)?, stop)?;
        let log = match &backups.log {
            Some(log) => read(log)?,
            None => ReadLog::default(),
        };
        let as_stored = catalog::load(&backups.pages);
        // If the log has a damaged block and the restore fails, the damaged block is reported as the cause, since the
        // log records after the block are lost.
        let recovered = match (recover::restore(&backups, self.options, &as_stored, None), &log.fault) {
            (Err(_), Some(fault)) => {
                let verified = Verified { errors: 1, first_error: Some(fault.clone()), ..Verified::default() };
                return Ok(Judged { verified, is_final: true, damaged: log.damaged });
            }
            (recovered, _) => recovered?,
        };
        let kept_bytes = recovered.kept_bytes();
        let (source, catalog) = recovered.view(&backups.pages, as_stored);
        let options = Options {
            physical_only: true,
            recovery: recovered.summary.clone(),
            memory_bytes: self.options.room.memory.map(|memory| memory.saturating_sub(kept_bytes)),
            temp_dir: self.options.room.temp_dir.clone(),
            ..Options::default()
        };
        let report = check::run(source, &catalog, &options, &Silent);
        report.read_errors.iter().for_each(warn);
        let damaged = log.damaged.clone();
        Ok(Judged { verified: judge(&report, recovered.summary.as_ref(), log), is_final: true, damaged })
    }

    /// Replaces damaged files of a chain by sound copies. Returns pairs of a damaged file and its copy.
    pub(super) fn sound_copies(
        &self,
        database: &mut DatabaseChains,
        chain: &Chain,
        stops: bool,
    ) -> Vec<(PathBuf, PathBuf)> {
        let copies_of = |set: &ChainSet| if set.stripes == 1 { set.copies.clone() } else { Vec::new() };
        let has_copies = |step: &usize| database.sets.get(*step).is_some_and(|set| !copies_of(set).is_empty());
        if !chain.steps.iter().any(has_copies) || self.verify(database, chain, stops).0.verified.is_usable() {
            return Vec::new();
        }
        let mut exchanged = Vec::new();
        for (number, step) in chain.steps.iter().enumerate() {
            let Some(set) = database.sets.get(*step) else { continue };
            let (Some(known), copies) = (set.paths.first().cloned(), copies_of(set)) else { continue };
            if copies.is_empty() {
                continue;
            }
            // Restores only up to this backup, since later backups may be damaged too.
            let steps: Vec<usize> = chain.steps.iter().take(number + 1).copied().collect();
            let is_all = steps.len() == chain.steps.len();
            let until = Chain { steps, ..chain.clone() };
            if self.verify(database, &until, stops && is_all).0.verified.is_usable() {
                continue;
            }
            for copy in copies {
                let mut with_copy = database.clone();
                if let Some(set) = with_copy.sets.get_mut(*step) {
                    set.copies.retain(|path| *path != copy);
                    set.copies.push(known.clone());
                    set.paths = vec![copy.clone()];
                }
                if self.verify(&with_copy, &until, stops && is_all).0.verified.is_usable() {
                    *database = with_copy;
                    exchanged.push((known, copy));
                    break;
                }
            }
        }
        exchanged
    }

    /// If a chain is damaged, looks for a usable chain that avoids the backup set that likely causes the damage. First
    /// tries to avoid the damaged log backup, then the differential, then the full backup. `path` returns a chain that
    /// uses only the backup sets that it receives.
    pub(super) fn detour(
        &self,
        database: &DatabaseChains,
        (chain, judged): (&Chain, &Judged),
        path: impl Fn(&DatabaseChains) -> Option<(Chain, bool)>,
    ) -> Option<Detour> {
        if judged.verified.is_usable() || !judged.is_final {
            return None;
        }
        let sets = || chain.steps.iter().copied().filter_map(|step| Some((step, database.sets.get(step)?)));
        let holds = |set: &ChainSet| judged.damaged.as_ref().is_some_and(|damaged| set.paths.contains(damaged));
        let in_log: Vec<usize> = sets().filter(|(_, set)| holds(set)).map(|(step, _)| step).collect();
        let of_kind = |kind| sets().rfind(|(_, set)| set.set.kind == kind).map(|(step, _)| step);
        let differential = of_kind(SetKind::Differential);
        let suspects = in_log.into_iter().map(Some).chain([differential, of_kind(SetKind::Full)]).flatten();
        let mut tried: Vec<Vec<usize>> = Vec::new();
        for avoided in suspects {
            let rest = database.without(&HashSet::from([avoided]));
            let Some((chain, stops)) = path(&rest).filter(|(chain, _)| !tried.contains(&chain.steps)) else { continue };
            let (found, _) = self.verify(&rest, &chain, stops);
            if found.verified.is_usable() {
                return Some(Detour { avoided: vec![avoided], chain, stops, verified: found.verified });
            }
            tried.push(chain.steps);
        }
        None
    }
}

/// The result for a chain that was proven by change. `None` if it must be verified in another way.
fn proof_of(proof: &Proof, database: &DatabaseChains, chain: &Chain) -> Option<Verified> {
    if chain.omitted > 0 {
        return None;
    }
    let sets: Vec<ChainSet> =
        chain.steps.iter().map(|step| database.sets.get(*step).cloned()).collect::<Option<_>>()?;
    // Every block of the log is read, as without a proof.
    let is_sound = |log: &ReadLog| log.fault.is_none();
    let (report, log) = proof.prove(&sets, |log| log.map_or(Ok(ReadLog::default()), read).ok().filter(is_sound))?;
    Some(judge(&report, report.options.recovery.as_ref(), log))
}

/// The result of a restore in memory.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) verified: Verified,
    /// Whether the result would be the same with more memory. If this is false, no other chain is tried.
    is_final: bool,
    /// The file with the damaged part of the log.
    damaged: Option<PathBuf>,
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

/// The readable part of a chain's log.
#[derive(Default)]
struct ReadLog {
    blocks: u64,
    /// A description of the first damaged block, if there is one.
    fault: Option<String>,
    /// The file that holds the damaged block.
    damaged: Option<PathBuf>,
}

/// Reads the whole log. A missing part of the log is noticed only later, when recovery applies the log.
fn read(log: &Log) -> Result<ReadLog, LogError> {
    let (mut walk, mut found) = (Walk::new(log), ReadLog::default());
    while walk.next_block()?.is_some() {
        found.blocks += 1;
    }
    let Some(end) = walk.end() else { return Ok(found) };
    let reached = Lsn { vlf: end.at.vlf.sequence, block: end.block, slot: 1 };
    let path = log.files().get(end.at.file).map(|file| file.path.clone()).unwrap_or_default();
    if matches!(end.reason, EndReason::Damaged { .. }) {
        found.fault = Some(format!("the log in {} is damaged at {}", path.display(), lsn_text(reached)));
        found.damaged = Some(path);
    } else if walk.lost_bytes() > 0 {
        found.fault = Some(format!(
            "the log is damaged: {} bytes before its first sound block cannot be read",
            walk.lost_bytes()
        ));
    }
    Ok(found)
}
