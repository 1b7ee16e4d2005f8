//! Plans that use or make a ledger: tasks sweep only the ranges whose sums are not in it, and the process that merges
//! their parts adds what they have swept.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use check::Progress;
use check::change::{LeftOut, NotByChange, refused};
use check::part::Sweeper;
use findings::{Change, Report, Scope};
use format::page::PAGE_BYTES;
use parts::{Ledger, PartsError};
use source::backup::SetKind;
use source::{BackupPages, PageSource};
use sums::HashKey;

use super::{Opened, RANGE_PAGES, changed, former, path_of, wanted};
use crate::failure::Failure;
use crate::input::Input;
use crate::prepare::Prepared;
use crate::request::Request;
use crate::spread::ledger::{Base, PlannedLedger, PlannedLeftOut};
use crate::spread::merging::ByLedger;
use crate::spread::{Before, Merge};
use crate::throttle::throttled;
use crate::version::BUILD;

/// The ledger that a plan uses or makes.
pub struct ForPlan<'a> {
    base: Base,
    range_pages: u32,
    /// `None` if the plan makes the ledger.
    opened: Option<Opened<'a>>,
    started: SystemTime,
}

impl<'a> ForPlan<'a> {
    /// Opens the ledger for a plan. `None` if there is none, and none was asked for.
    ///
    /// # Errors
    /// Why there can be none, in one line.
    pub fn of(
        request: &'a Request,
        before: &Before,
        input: &'a Input,
        started: SystemTime,
    ) -> Result<Option<Self>, String> {
        let Some(history) = request.results.history.as_deref() else { return Ok(None) };
        let Input::Backups(backups) = input else {
            let why = "--keep-parts keeps the sums of backups only".to_owned();
            return request.keep_parts.map_or(Ok(None), |_| Err(why));
        };
        let pages = &backups.pages;
        let Some((path, base, is_new)) = wanted(request, (history, before), pages)? else { return Ok(None) };
        if is_new {
            let range_pages = request.part_pages.unwrap_or(RANGE_PAGES);
            return Ok(Some(Self { base, range_pages, opened: None, started }));
        }
        let mut ledger = former(&path, &base, request.keep_parts)?;
        if let Some(before) = request.reread.and_then(|reread| started.checked_sub(reread)) {
            ledger.read_again_before(history::time::text(before));
        }
        let range_pages = check::change::Ledger::range_pages(&ledger);
        let opened = Opened::with((ledger, false, path), before, pages, history);
        Ok(Some(Self { base, range_pages, opened: Some(opened), started }))
    }

    /// The key with which the facts of the ledger are hashed; `None` if the plan makes the ledger.
    pub fn key(&self) -> Option<HashKey> {
        self.opened.as_ref().map(|opened| opened.ledger.key())
    }

    /// Finds what the tasks need not read; `None` if they read all pages and make the ledger.
    ///
    /// # Errors
    /// Why the ledger can neither be used nor made, in one line.
    pub fn left_out(
        &self,
        prepared: &Prepared<'_>,
        sweeper: &Sweeper<'_, '_>,
        listener: &dyn Progress,
    ) -> Result<Option<LeftOut>, String> {
        let found = match &self.opened {
            None => refused(&prepared.database, &prepared.options).map(|()| None),
            Some(opened) => sweeper.left_out(&opened.ledger, listener).map(Some),
        };
        found.map_err(|error: NotByChange| error.to_string())
    }

    /// What the plan stores about the ledger. `pages_swept` is the number of pages that the tasks read.
    pub fn planned(self, left_out: Option<&LeftOut>, pages_swept: u64) -> PlannedLedger {
        let Self { base, range_pages, started, .. } = self;
        let left_out = left_out.map(|left_out| PlannedLeftOut {
            ranges: left_out.ranges,
            swept: left_out.swept.iter().map(|(reason, count)| (reason.name().to_owned(), *count)).collect(),
            bytes_swept: pages_swept * PAGE_BYTES as u64,
            bytes_kept: left_out.pages_kept * PAGE_BYTES as u64,
        });
        let planned_at = started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        PlannedLedger { base, range_pages, left_out, planned_at }
    }
}

/// Merges the parts of a plan that uses or makes a ledger.
///
/// # Errors
/// If the ledger cannot be used any more, or a part cannot be read.
pub(super) fn merge(
    request: &Request,
    (merge, planned): (&Merge, &PlannedLedger),
    (input, known): (&Input, Option<(&Before, &Path)>),
    (source, prepared): (&dyn PageSource, &Prepared<'_>),
    listener: &dyn Progress,
) -> Result<Report, Failure> {
    let Some((before, history)) = known else {
        let what = if planned.left_out.is_some() { "uses" } else { "makes" };
        return Err(Failure::usage(format!(
            "{}: the plan {what} a ledger beside a history; give --history FILE, with the history of the plan",
            merge.opened.folder.path().display()
        )));
    };
    let again = |why: &dyn std::fmt::Display| Failure::unable(format!("{why}; make a new plan"));
    let Input::Backups(backups) = input else { return Err(again(&"the files are not backups any more")) };
    let pages = &backups.pages;
    let key = merge.opened.folder.key();
    let path = path_of(history, &planned.base.set);
    if let Err(error @ PartsError::InUse { .. }) = Ledger::<Base>::open(&path, &BUILD) {
        return Err(Failure::unable(format!("{error}; merge again later")));
    }
    let opened = Opened::of_plan(request, (history, before), pages, (planned, key)).map_err(|why| again(&why))?;
    let begin = || {
        // What this process has read of the container for the maps, tasks have read too.
        pages.forget_seen();
        opened.put_seen().map_err(|why| again(&why))
    };
    let by_ledger = ByLedger { ledger: &opened.ledger, planned, begin: &begin };
    let done = throttled(request, source, |source| {
        merge.run_by_change(source, &prepared.database, &prepared.options, listener, &by_ledger)
    });
    let (report, mut reuse) = done.map_err(|stop| match stop {
        Ok(failure) => failure,
        Err(error @ NotByChange::Rotten(_)) => {
            Failure::unable(format!("{error}; make a new plan without --history, whose tasks read all pages"))
        }
        Err(error) => again(&format!("{}: {error}", path.display())),
    })?;
    if let Some(left_out) = &planned.left_out {
        let counted = |reason: check::change::Reason| Some((reason, *left_out.swept.get(reason.name())?));
        reuse.swept = check::change::Reason::ALL.into_iter().filter_map(counted).collect();
    }
    let planned_at = UNIX_EPOCH.checked_add(Duration::from_secs(planned.planned_at)).unwrap_or(UNIX_EPOCH);
    let mut report = opened.end(request, prepared, (report, reuse), planned_at).map_err(|why| again(&why))?;
    if let (Some(Change::Proven(change)), Some(left_out)) = (&mut report.change, &planned.left_out) {
        change.bytes_read += left_out.bytes_swept;
    }
    Ok(report)
}

impl<'a> Opened<'a> {
    /// Opens or makes the ledger of a plan. An error says why that cannot be done.
    fn of_plan(
        request: &Request,
        (history, before): (&'a Path, &Before),
        pages: &'a BackupPages,
        (planned, key): (&PlannedLedger, &HashKey),
    ) -> Result<Self, String> {
        let full = pages.sets().first().filter(|set| set.kind == SetKind::Full);
        let guid = planned.base.set.as_str();
        let full = full.filter(|set| set.guid.as_deref() == Some(guid));
        let full = full.ok_or("the backups do not begin with the full backup of the plan")?;
        let asked = request.keep_parts.unwrap_or(planned.base.most_bytes);
        let base = Base::of(full, before, (guid, pages), (Some(asked), &Scope::Database))?;
        if let Some((_, now)) = planned.base.files.iter().zip(&base.files).find(|(then, now)| then != now) {
            return Err(format!("{} since the plan was made", changed(now.path())));
        }
        let path = path_of(history, guid);
        if planned.left_out.is_none() {
            let ledger = Ledger::create(&path, &BUILD, planned.range_pages, base, asked);
            let ledger = ledger.map_err(|error| error.to_string())?.with_key(key);
            return Ok(Self::with((ledger, true, path), before, pages, history));
        }
        let ledger = former(&path, &base, request.keep_parts)?;
        if ledger.key().bytes() != key.bytes() || check::change::Ledger::range_pages(&ledger) != planned.range_pages {
            return Err(format!("{}: was made anew since the plan was made", path.display()));
        }
        Ok(Self::with((ledger, false, path), before, pages, history))
    }
}
