//! The proof of a chain's last moment by change: with the ledger of the full backup, only what has changed is read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use check::Silent;
use check::part::Fingerprint;
use findings::{Change, Options, Report};
use jobs::change;
use jobs::failure::Failure;
use jobs::input::Input;
use jobs::ledgers;
use jobs::prepare::Prepared;
use jobs::recover;
use jobs::redo::Redo;
use jobs::request::{RecoveryOptions, Request};
use jobs::spread::{Spread, What};
use log::Log;
use source::backup::{ChainSet, SetChoice};

use crate::cli::ChainArguments;
use crate::speaker::warn;

/// Proves the last moment of chains by change.
pub(super) struct Proof {
    request: Request,
}

impl Proof {
    /// `None` if there is no history to look for ledgers beside it.
    pub(super) fn of(arguments: &ChainArguments, recovery: &RecoveryOptions, history: Option<&Path>) -> Option<Self> {
        let mut request = Request::of_paths(Vec::new());
        request.recovery = recovery.clone();
        request.results.history = Some(history?.to_owned());
        request.keep_parts = arguments.keep_parts;
        Some(Self { request })
    }

    /// The report of a whole check of the moment to which these sets lead, if it was proven by change, is sound and lacks
    /// nothing. `None` if the moment must be checked in the usual way, which then finds what is not sound.
    /// Also returns what `read` has found in the log; `None` if it is damaged.
    pub(super) fn prove<L>(
        &self,
        sets: &[ChainSet],
        read: impl FnOnce(Option<&Log>) -> Option<L>,
    ) -> Option<(Report, L)> {
        // The usual check reports what is wrong with the backups.
        self.try_to(sets, read).ok().flatten()
    }

    fn try_to<L>(
        &self,
        sets: &[ChainSet],
        read: impl FnOnce(Option<&Log>) -> Option<L>,
    ) -> Result<Option<(Report, L)>, Failure> {
        let paths: Vec<PathBuf> = sets.iter().flat_map(|set| set.paths.clone()).collect();
        let choice = SetChoice::All;
        let mut request = self.request.of(paths.clone());
        let has_ledger = sets.first().and_then(|full| full.set.guid.as_deref()).is_some_and(|guid| {
            let history = request.results.history.as_deref();
            history.is_some_and(|history| ledgers::has_ledger(history, guid))
        });
        if !has_ledger && request.keep_parts.is_none() {
            return Ok(None);
        }
        let why = Arc::new(Mutex::new(None));
        // Without a ledger, a whole check makes one.
        request.only_by_change = has_ledger.then(|| Arc::clone(&why));
        let what = What { named: &paths, choice: &choice, sets: Some(sets), place: None, spread: Spread::None };
        let before = change::before(&request, &what);
        let hints = change::hints(&request, &what, before.as_ref());
        let memory = request.recovery.room.memory;
        let input = Input::of_sets(sets, (memory, &hints), None)?;
        let Input::Backups(backups) = &input else { return Ok(None) };
        let Some(log) = read(backups.log.as_ref()) else { return Ok(None) };
        let as_stored = catalog::load(&backups.pages);
        let mut redo = Redo::of(&request, before.as_ref(), &input);
        let recovered = recover::restore(backups, &request.recovery, &as_stored, redo.as_mut().map(Redo::going_on))?;
        let kept_bytes = recovered.kept_bytes();
        let database =
            if recovered.pages.is_some() { catalog::load(recovered.pages_or(&backups.pages)) } else { as_stored };
        let options = Options {
            recovery: recovered.summary.clone(),
            memory_bytes: memory.map(|memory| memory.saturating_sub(kept_bytes)),
            temp_dir: request.recovery.room.temp_dir.clone(),
            ..Options::default()
        };
        let prepared = Prepared { recovered, database, catalog: Fingerprint::default(), options };
        let source = prepared.recovered.pages_or(&backups.pages);
        let opened = (&input, before.as_ref());
        let done = change::check(&request, &what, opened, (source, &prepared), (&Silent, SystemTime::now()));
        if let Some(why) = why.lock().unwrap_or_else(PoisonError::into_inner).take() {
            warn(format!("all pages were read: {why}"));
        }
        let report = done?;
        let is_whole = report.findings.is_empty() && report.read_errors.is_empty() && report.complete_as_allowed();
        if let Some(redo) = redo.filter(|_| matches!(report.change, Some(Change::Proven(_)))) {
            redo.commit();
        }
        if is_whole {
            report::by_change::lines(&report).iter().for_each(warn);
            return Ok(Some((report, log)));
        }
        warn("all pages were read: the proof by change has found something, or lacks something");
        Ok(None)
    }
}
