//! A window over a database that changes: checks tonight's backup, or tonight's data files, with the sums that earlier
//! windows have kept, in a ledger, of all ranges that are still the same.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use check::change::{NotByChange, Schedule, Turn, WindowDone, run_in_window};
use findings::{Change, Options, Report};
use format::page::PAGE_BYTES;
use history::windows::pace::{Pace, Swept};
use history::windows::{Known, Opening};
use history::{History, time};
use report::windows::ByTable;
use source::{PageSource, SinceBase};

use super::keeper::Keeper;
use super::turns::{Ages, Turns};
use super::{Outcome, Subject, Sweep, Terms};
use crate::change::{NoLedger, Opened, Snapshot};
use crate::failure::Failure;
use crate::host::warn;
use crate::input::Input;
use crate::throttle::throttled;

/// The bytes of the first batch, while the speed is unknown.
const FIRST_BATCH_BYTES: f64 = 64.0 * 1024.0 * 1024.0;
/// The least and the most bytes of a batch. It takes about a second.
const BATCH_BYTES: [f64; 2] = [1024.0 * 1024.0, 1024.0 * 1024.0 * 1024.0];
/// What was swept is added to the ledger this often in a window, but not less often than every five minutes.
const CHECKPOINTS: u32 = 100;
const BETWEEN_CHECKPOINTS: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(300)];
/// How often a window begins again because a page that was sound before is not sound any more.
const MOST_ATTEMPTS: usize = 16;

/// Checks as much as fits into the window. The inner error says why this window cannot use a ledger.
///
/// # Errors
/// If the database cannot be checked.
#[expect(clippy::too_many_lines, reason = "each attempt needs what was found before it")]
pub(crate) fn check(terms: &Terms<'_>, subject: &Subject<'_>) -> Result<Result<Outcome, NoLedger>, Failure> {
    let Subject { request, prepared, input, before, .. } = *subject;
    let Some(history) = terms.history else { return Ok(Err("there is no history".to_owned().into())) };
    let snapshot = match input {
        Input::Files(files) => match Snapshot::of(files.as_ref(), prepared) {
            Ok(snapshot) => Some(snapshot),
            Err(why) => return Ok(Err(why.into())),
        },
        Input::Backups(_) => None,
    };
    let pages = prepared.recovered.pages_or(input.pages());
    let since = snapshot.as_ref().map(|snapshot| SinceBase::new(pages, snapshot.changed.clone()));
    let source = since.as_ref().map_or(pages, |since| since as &dyn PageSource);
    let mut keeper = Keeper::open(&Sweep { terms, subject, source })?;
    let opening = Opening {
        source,
        database: &prepared.database,
        naming: terms.naming,
        started: terms.started,
        allowed: terms.allowed,
        is_full: true,
    };
    let known = match History::open_or_create(history).and_then(|mut history| history.known(&opening, &[])) {
        Ok(known) => known,
        Err(error) => return Ok(Err(error.to_string().into())),
    };
    let (mut forced, mut swept, mut ranges) = (Vec::new(), Swept::default(), 0);
    loop {
        let of_input = (input, &prepared.options.scope, snapshot.as_ref());
        let mut opened = match Opened::in_window(request, (history, before), of_input) {
            Ok(opened) => opened,
            Err(why) => return Ok(Err(why)),
        };
        if let Err(why) = opened.put_seen() {
            begin_again(opened, &why)?;
            continue;
        }
        let night = Night::new(terms, subject, (&known, &opened), pages);
        let options = Options { hash_key: Some(opened.ledger.key()), ..prepared.options.clone() };
        let done = throttled(request, source, |source| {
            let pages = (source, &prepared.database);
            run_in_window(pages, &options, subject.listener, &opened.ledger, (&night, &forced))
        });
        let Night { pace, turns, order, swept_ranges, .. } = night;
        let pace = pace.into_inner().pace;
        swept = Swept { bytes: swept.bytes + pace.now().bytes, seconds: swept.seconds + pace.now().seconds };
        ranges += swept_ranges.into_inner();
        match done {
            Ok((mut report, done)) => {
                let change = pages.changes().into_iter().find(|_| snapshot.is_some());
                if let Some(path) = opened.changed_file().or(change.as_ref().map(|change| change.path.as_path())) {
                    let path = path.display();
                    return Err(Failure::unable(format!(
                        "{path} was changed while it was read; the next window reads it"
                    )));
                }
                report.options.hash_key = prepared.options.hash_key.clone();
                let order = order.into_inner();
                let mut turns = next_turns(turns, &order, (&done, &report), terms);
                turns.leave(opened.image(), done.open_pages);
                opened.ledger.set_note(turns.note());
                let mut outcome = outcome(terms, &opened, (report, &done), (pace, swept, ranges));
                opened.keep_window(request, terms.started, done.reuse.ranges);
                keeper.went_on(ranges, swept);
                outcome.taken_at =
                    keeper.window.as_ref().map(|window| window.taken_at().to_owned()).unwrap_or_default();
                (outcome.window, outcome.heart, outcome.unkept) =
                    (keeper.window.take(), keeper.heart.take(), keeper.unkept);
                return Ok(Ok(outcome));
            }
            Err(NotByChange::Rotten(page)) if forced.len() < MOST_ATTEMPTS && !forced.contains(&page) => {
                warn(format!("page {page} was sound when an earlier window read it, and is not sound now"));
                forced.push(page);
                if snapshot.is_some() && !pages.changes().is_empty() {
                    return Err(Failure::unable(
                        "the data files were changed while they were read; the next window reads them",
                    ));
                }
                opened.keep_window(request, terms.started, u64::MAX);
            }
            Err(NotByChange::Promise(pages)) => return Ok(Err(opened.distrust(request, &pages))),
            Err(error @ (NotByChange::Sums(_) | NotByChange::Io(_))) if !opened.is_new() => {
                begin_again(opened, &error.to_string())?;
            }
            Err(error) => return Ok(Err(error.to_string().into())),
        }
    }
}

/// The state that the last window has checked, and the number of pages that it has left, as its ledger notes.
pub(crate) fn left_then(note: &str) -> Option<(String, u64)> {
    Turns::of_note(note).left()
}

/// Removes a ledger that cannot be used, so that the window begins with an empty one.
fn begin_again(opened: Opened<'_>, why: &str) -> Result<(), Failure> {
    let path = opened.remove().map_err(Failure::unable)?;
    warn(format!("{}: {why}; the windows begin again", path.display()));
    Ok(())
}

/// Decides whose turn it is in the next window.
fn next_turns(mut turns: Turns, order: &[Turn], (done, report): (&WindowDone, &Report), terms: &Terms<'_>) -> Turns {
    let left = done.reuse.tables.iter().map(|turn| (turn.object_id, turn.open_pages + turn.old_pages));
    let left: BTreeMap<i32, u64> = left.collect();
    let is_left = |object_id| left.get(&object_id).is_some_and(|pages| *pages > 0);
    if let Some(object_id) = turns.end(order, is_left, (done.pages_swept, &time::text(terms.started))) {
        let name = report.rowsets.iter().find(|rowset| rowset.object_id == object_id);
        let name =
            name.map_or_else(|| format!("object {object_id}"), |rowset| format!("{}.{}", rowset.schema, rowset.name));
        warn(format!(
            "{name} changes faster than these windows can read it, so it is not closed; other tables have their turns first now. A longer --window closes it"
        ));
    }
    turns
}

fn outcome(
    terms: &Terms<'_>,
    opened: &Opened<'_>,
    (mut report, done): (Report, &WindowDone),
    (pace, swept, ranges): (Pace, Swept, u64),
) -> Outcome {
    let change = opened.by_change(&report, (&done.reuse, done.open_pages), terms.started);
    let started = time::text(terms.started);
    let (mut read, mut left) = (BTreeMap::new(), Vec::new());
    for (tile, read_at) in report.ranges.iter().zip(&change.read_at) {
        let place = (tile.file_id, tile.first);
        if tile.is_read {
            read.insert(place, read_at.clone().unwrap_or_else(|| started.clone()));
        } else if done.open_pages > 0 {
            left.push(place);
        }
    }
    let tables: BTreeMap<i32, String> = done
        .reuse
        .tables
        .iter()
        .map(|table| (table.object_id, started.clone()))
        .chain(change.tables_read_at.iter().cloned())
        .collect();
    let closed = done.reuse.tables.iter().filter(|table| table.open_pages == 0).count() as u64;
    let by_table = ByTable { tables: done.reuse.tables.len() as u64, closed };
    report.change = Some(Change::Proven(change));
    Outcome {
        report,
        swept,
        ranges,
        all_bytes: done.pages * PAGE_BYTES as u64,
        done_bytes: (done.pages - done.open_pages.min(done.pages)) * PAGE_BYTES as u64,
        is_fixed: true,
        pace,
        unkept: 0,
        plan: None,
        read,
        left,
        tables,
        by_table: Some(by_table),
        taken_at: String::new(),
        window: None,
        heart: None,
    }
}

/// The speed of this window, and the time of its last batch.
struct Measured {
    pace: Pace,
    last: Instant,
    checkpoint: Instant,
}

/// The schedule of a window.
struct Night<'a> {
    terms: &'a Terms<'a>,
    opened: &'a Opened<'a>,
    /// The files whose pages are swept.
    source: &'a dyn PageSource,
    image: String,
    started: String,
    most_ranges: Option<u64>,
    /// When each table was proven, by object ID.
    proofs: BTreeMap<i32, String>,
    /// For each earlier run, the latest first: whether its reads are so old that they are repeated.
    old: Vec<bool>,
    /// When each earlier run began, the latest first.
    runs: Vec<String>,
    turns: Turns,
    /// The weights of tables, by object ID.
    weights: BTreeMap<i32, u32>,
    order: RefCell<Vec<Turn>>,
    begun: Instant,
    /// The time that is kept for what follows the sweep: adding up takes about as long as finding what is kept.
    reserve: OnceCell<Duration>,
    /// The time from one addition to the ledger to the next; `None` if it cannot be written.
    between_checkpoints: Cell<Option<Duration>>,
    swept_ranges: Cell<u64>,
    /// Those of them that have no pages of system tables, of which a test gives the most.
    of_tables: Cell<u64>,
    pace: RefCell<Measured>,
}

impl<'a> Night<'a> {
    fn new(
        terms: &'a Terms<'a>,
        subject: &Subject<'_>,
        (known, opened): (&Known, &'a Opened<'a>),
        source: &'a dyn PageSource,
    ) -> Self {
        let windows = &subject.request.windows;
        let proven = |table: &history::coverage::TableProof| Some((table.object_id, table.proven_at.clone()?));
        // What is read again in two thirds of the promised time leaves windows for the tables that change. Simulated nights
        // (`turns`) show that this keeps most reads within the promise if a window reads a tenth of the database.
        let oldest = windows.within.and_then(|within| terms.started.checked_sub(within * 2 / 3)).map(time::text);
        let is_old = |read_at: &str| oldest.as_ref().is_some_and(|oldest| read_at < oldest.as_str());
        let [least, most] = BETWEEN_CHECKPOINTS;
        let now = Instant::now();
        Self {
            terms,
            opened,
            source,
            image: opened.image(),
            started: time::text(terms.started),
            most_ranges: windows.most_ranges,
            proofs: known.tables.iter().filter_map(proven).collect(),
            old: opened.ledger.runs().map(|run| is_old(&run.read_at)).collect(),
            runs: opened.ledger.runs().map(|run| run.read_at.clone()).collect(),
            turns: Turns::of_note(opened.ledger.note()),
            weights: windows.weights.of_tables(&subject.prepared.database),
            order: RefCell::default(),
            begun: now,
            reserve: OnceCell::new(),
            between_checkpoints: Cell::new(Some((terms.allowed / CHECKPOINTS).clamp(least, most))),
            swept_ranges: Cell::new(0),
            of_tables: Cell::new(0),
            pace: RefCell::new(Measured { pace: Pace::of(&known.windows), last: now, checkpoint: now }),
        }
    }
}

impl Schedule for Night<'_> {
    fn is_over(&self) -> bool {
        let left = self.terms.ends.saturating_duration_since(Instant::now());
        let reserve = *self.reserve.get_or_init(|| {
            self.pace.borrow_mut().last = Instant::now();
            self.begun.elapsed().min(left / 2)
        });
        let has_most = self.most_ranges.is_some_and(|most| self.of_tables.get() >= most);
        has_most || (self.terms.is_interrupted)() || left <= reserve
    }

    fn is_old(&self, run: usize) -> bool {
        self.old.get(run).copied().unwrap_or_default()
    }

    fn batch_pages(&self) -> u64 {
        let [least, most] = BATCH_BYTES;
        let bytes = self.pace.borrow().pace.rate().unwrap_or(FIRST_BATCH_BYTES).clamp(least, most);
        let pages = bytes as u64 / PAGE_BYTES as u64;
        let range_pages = u64::from(check::change::Ledger::range_pages(&self.opened.ledger));
        let left = self.most_ranges.map(|most| most.saturating_sub(self.of_tables.get()));
        left.map_or(pages, |left| pages.min(left.saturating_mul(range_pages)))
    }

    fn order(&self, turns: Vec<Turn>) -> Vec<Turn> {
        let seconds = |date: &str| time::seconds(date).unwrap_or_default();
        let now = seconds(&self.started);
        let since = |date: &str| now.saturating_sub(seconds(date)).max(0).unsigned_abs();
        let ages = Ages { proofs: &self.proofs, runs: &self.runs, weights: &self.weights, since: &since };
        let order = self.turns.order(&ages, turns);
        self.order.replace(order.clone());
        order
    }

    fn swept(&self, ranges: u64, pages: u64, of_system: bool) {
        self.swept_ranges.set(self.swept_ranges.get() + ranges);
        if !of_system {
            self.of_tables.set(self.of_tables.get() + ranges);
        }
        let mut measured = self.pace.borrow_mut();
        let now = Instant::now();
        let seconds = now.duration_since(measured.last).as_secs_f64();
        measured.pace.add(Swept { bytes: pages * PAGE_BYTES as u64, seconds });
        measured.last = now;
        let is_time = |between| now.duration_since(measured.checkpoint) >= between;
        if self.between_checkpoints.get().is_some_and(is_time) {
            measured.checkpoint = now;
            // The ledger does not identify data files, so what was read of files that have changed must not get into it.
            if !self.opened.has_identity() && !self.source.changes().is_empty() {
                self.between_checkpoints.set(None);
                return;
            }
            // The end of the window tells of the error, which remains.
            if self.opened.ledger.checkpoint(&self.image, &self.started).is_err() {
                self.between_checkpoints.set(None);
            }
        }
    }
}
