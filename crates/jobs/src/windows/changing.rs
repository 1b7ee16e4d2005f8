//! A window over a database that changes: tonight's backup or snapshot is checked with the sums that earlier windows have
//! kept in a ledger of all ranges that are still the same.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use check::change::{NotByChange, Reuse, Schedule, Turn, WindowDone, run_in_window, write_seen};
use findings::{Change, Options, Report};
use format::PageId;
use format::page::PAGE_BYTES;
use history::windows::pace::{Pace, Swept};
use history::windows::{Known, Opening};
use history::{History, time};
use source::PageSource;

use super::turns::Turns;
use super::window::{Outcome, Subject, Sweep, Terms};
use super::{ByTable, ends};
use crate::change::{Base, Opened};
use crate::failure::Failure;
use crate::host::warn;
use crate::throttle::throttled;

/// The bytes of the first batch, while the speed is unknown.
const FIRST_BATCH_BYTES: f64 = 64.0 * 1024.0 * 1024.0;
/// Limits for the bytes of a batch.
const BATCH_BYTES: [f64; 2] = [1024.0 * 1024.0, 1024.0 * 1024.0 * 1024.0];
/// How long a batch takes at the known speed.
const BATCH_SECONDS: f64 = 1.0;
/// The ledger is written this often in a window, but at most once in a second and at least every five minutes.
const CHECKPOINTS: u32 = 50;
const BETWEEN_CHECKPOINTS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(300)];
/// How often a window begins again because a page that was sound before is not sound any more.
const MOST_ATTEMPTS: usize = 16;

/// Checks as much as fits into the window. An error says why all pages must be read by the windows of an image instead.
///
/// # Errors
/// The outer error: the database cannot be checked.
pub(super) fn check(
    terms: &Terms<'_>,
    subject: &Subject<'_>,
) -> Result<Result<Outcome, String>, Failure> {
    let Subject { request, prepared, input, before, .. } = *subject;
    let source = prepared.recovered.pages_or(input.pages());
    let Some(history) = terms.history else { return Ok(Err("there is no history".to_owned())) };
    let mut keeper = super::window::Keeper::open(&Sweep { terms, subject, source })?;
    let Some(known) = known(terms, subject, source) else {
        return Ok(Err("the history cannot be read".to_owned()));
    };
    let mut forced = Vec::new();
    let mut swept_before = Swept::default();
    let mut ranges_before = 0;
    loop {
        let mut opened = match Opened::in_window(request, (history, before), input) {
            Ok(opened) => opened,
            Err(why) => return Ok(Err(why)),
        };
        let key = opened.ledger.key();
        if let Err(why) = opened.put_seen() {
            return Ok(Err(why));
        }
        let run_dates: Vec<String> = opened.ledger.runs().map(|run| run.read_at.clone()).collect();
        let night = Night::new(terms, subject, (&known, &opened), &run_dates);
        let options = Options { hash_key: Some(key), ..prepared.options.clone() };
        let done = throttled(request, source, |source| {
            let source = opened.source(source);
            run_in_window(
                (source.as_ref(), &prepared.database),
                &options,
                subject.listener,
                &opened.ledger,
                (&night, &forced),
            )
        });
        let (pace, swept) = night.measured();
        let turns = night.end(done.as_ref().ok().map(|(_, done)| done));
        let (order, ranges) = (turns, night.ranges.load(Ordering::Relaxed));
        drop(night);
        swept_before = Swept { bytes: swept_before.bytes + swept.bytes, seconds: swept_before.seconds + swept.seconds };
        ranges_before += ranges;
        match done {
            Ok((mut report, done)) => {
                if let Some(path) = opened.changed_file() {
                    return Err(Failure::unable(format!(
                        "{} was changed while it was read; the next window reads it again",
                        path.display()
                    )));
                }
                report.options.hash_key = prepared.options.hash_key.clone();
                opened.ledger.set_note(order.0.note());
                if let Some(object_id) = order.1 {
                    warn_too_fast(&report, object_id);
                }
                let of_dates = Dates { started: terms.started, runs: &run_dates };
                let outcome = outcome(terms, (report, &done), (pace, swept_before, ranges_before), &of_dates, &opened);
                let went_on = keeper.went_on(ranges_before, swept_before);
                opened.keep_window(request, terms.started, (done.reuse.ranges, outcome.is_closed()));
                let mut outcome = outcome;
                (outcome.window, outcome.heart, outcome.unkept) = keeper.taken();
                if !went_on {
                    warn("another process has taken this database over; the results are printed, and not recorded");
                }
                return Ok(Ok(outcome));
            }
            Err(NotByChange::Rotten(page)) if forced.len() < MOST_ATTEMPTS && !forced.contains(&page) => {
                warn(format!("page {page} was sound when an earlier window read it, and is not sound now"));
                forced.push(page);
                opened.keep_window(request, terms.started, (u64::MAX, false));
            }
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
}
