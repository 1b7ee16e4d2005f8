//! The checks of one state after another: by change, with the ledger of the full backup, and as a whole.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use check::Silent;
use check::change::{NotByChange, differing_parts};
use findings::{ByChange, Change, Options, Report};
use format::PageId;
use jobs::change;
use jobs::failure::Failure;
use jobs::input::Input;
use jobs::inventory;
use jobs::judge::status;
use jobs::prepare::{Prepared, open_hinted, prepare_with};
use jobs::redo::Redo;
use jobs::request::{Request, stop_moment};
use jobs::spread::{Spread, What};
use jobs::version::BUILD;
use lab::workload::{Chain, Commit, SetKind};
use parts::Ledger;
use report::{Format, View};
use serde_json::Value;
use source::PageSource;
use trials::mutate::Random;

use super::plan::Plan;
use super::planned::{self, Manner};
use super::{Figures, PARTS_KEPT, RESUMED, WITH_FINDINGS, windows};
use crate::outcome::Verdict;

/// The largest ID of a system table.
const LAST_SYSTEM_OBJECT: i32 = 100;
/// A ledger of this size has room for everything.
pub(super) const LARGE: u64 = 1 << 30;
/// The most characters of a line in the description of a difference.
const SHOWN: usize = 300;

/// The options of the checks of a trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// The number of pages in a range.
    pub(super) part_pages: u32,
    /// The most bytes of a ledger.
    pub(super) keep_bytes: u64,
    pub(super) threads: u16,
    /// Whether the full backup is not checked alone, so that the first later state makes the ledger.
    pub(super) is_base_left_out: bool,
    /// The state from which on values are not checked, and the one from which on indexes are not checked.
    pub(super) without: [Option<usize>; 2],
    /// A seed for a moment within the log.
    pub(super) stop: Option<u64>,
    /// The number of windows of time for each state, and the most ranges that one of them sweeps.
    pub(super) windows: (usize, u64),
    /// What other windows of the same number are confined to.
    pub(super) confined: Option<Confined>,
    pub(super) manner: Manner,
    /// A seed for damage to what was kept of redo.
    pub(super) redo_damage: Option<u64>,
}

/// The objects to which windows are confined.
#[derive(Clone, Copy, Debug)]
pub(super) enum Confined {
    /// The tables whose ID leaves this remainder after division by three.
    Tables(i32),
    /// The primary filegroup.
    Filegroup,
}

impl Confined {
    /// Confines a request. `false` if the database has none of these objects.
    fn confine(self, request: &mut Request, whole: &Report) -> bool {
        match self {
            Self::Filegroup => request.scope.filegroup = Some("1".to_owned()),
            Self::Tables(remainder) => {
                let is_one = |id: &i32| *id > LAST_SYSTEM_OBJECT && id.rem_euclid(3) == remainder;
                let ids: BTreeSet<i32> = whole.rowsets.iter().map(|rowset| rowset.object_id).filter(is_one).collect();
                request.scope.table = ids.iter().map(i32::to_string).collect();
                return !ids.is_empty();
            }
        }
        true
    }
}

impl Settings {
    pub(super) fn of(random: &mut Random) -> Self {
        let from = |random: &mut Random| (random.below(10) == 0).then(|| random.below(10));
        Self {
            part_pages: [8, 8, 16, 32][random.below(4)],
            keep_bytes: if random.below(6) == 0 { 5000 + random.below(60_000) as u64 } else { LARGE },
            threads: 1 + random.below(3) as u16,
            is_base_left_out: random.below(8) == 0,
            without: [from(random), from(random)],
            stop: (random.below(3) == 0).then(|| random.number()),
            windows: (random.below(4), 1 + random.below(80) as u64),
            confined: match random.below(6) {
                0 | 1 => Some(Confined::Tables(random.below(3) as i32)),
                2 => Some(Confined::Filegroup),
                _ => None,
            },
            manner: Manner::of(random),
            redo_damage: (random.below(4) == 0).then(|| random.number()),
        }
    }

    /// Settings under which all parts of small files are kept.
    #[cfg(test)]
    pub(super) fn plain(part_pages: u32) -> Self {
        let without = [None; 2];
        Self {
            part_pages,
            keep_bytes: LARGE,
            threads: 2,
            is_base_left_out: false,
            without,
            stop: None,
            windows: (2, 40),
            confined: Some(Confined::Tables(0)),
            manner: Manner { task_bytes: 1 << 20, local_limit: 0, seed: 1 },
            redo_damage: None,
        }
    }
}

/// The states of a database, which are checked one after another with the same ledgers.
pub(crate) struct Nights<'f> {
    history: PathBuf,
    settings: Settings,
    figures: &'f mut Figures,
    /// The number of states that were checked.
    pub(crate) states: u64,
}

/// A backup that is opened and prepared for a check.
pub(super) struct Opened<'a> {
    pub(super) request: &'a Request,
    pub(super) what: &'a What<'a>,
    pub(super) input: &'a Input,
    pub(super) prepared: &'a Prepared<'a>,
}

impl Opened<'_> {
    pub(super) fn source(&self) -> &dyn PageSource {
        self.prepared.recovered.pages_or(self.input.pages())
    }
}

impl<'f> Nights<'f> {
    pub(crate) fn new(folder: &Path, settings: Settings, figures: &'f mut Figures) -> Self {
        Self { history: folder.join("history.db"), settings, figures, states: 0 }
    }

    /// Checks all states that the backups of a trial can restore. If `is_sound`, none may have findings.
    pub(super) fn prove_all(&mut self, plan: &Plan, chain: &Chain, is_sound: bool) -> Result<(), Verdict> {
        let files = |sets: &[usize]| -> Vec<PathBuf> {
            sets.iter().filter_map(|set| chain.sets.get(*set)).flat_map(|set| set.files.clone()).collect()
        };
        let mut last = None;
        for (at, sets) in plan.restores().iter().enumerate() {
            if sets.len() == 1 && self.settings.is_base_left_out {
                continue;
            }
            self.prove(&files(sets), None, is_sound)
                .map_err(|verdict| of_state(verdict, &format!("after set {} ({sets:?} from 0)", at + 1)))?;
            last = Some(sets.clone());
        }
        // The last state is checked twice, the second time perhaps up to an earlier moment.
        let Some(last) = last else { return Ok(()) };
        let set = |at: usize| last.get(at).and_then(|set| chain.sets.get(*set));
        let pages = last.iter().filter_map(|set| chain.sets.get(*set)).rfind(|set| set.kind != SetKind::Log);
        let (from, to) = (pages.map(|set| &set.lsns.1), set(last.len() - 1).map(|set| &set.lsns.1));
        let is_in_log = |commit: &&Commit| Some(&commit.lsn) > from && Some(&commit.lsn) < to;
        let within: Vec<&Commit> = chain.commits.iter().filter(is_in_log).collect();
        let stop = self.settings.stop.and_then(|seed| Random::new(seed).pick(&within).copied());
        let stop = stop.map(|commit| commit.time.as_str());
        self.prove(&files(&last), stop, is_sound)
            .map_err(|verdict| of_state(verdict, &format!("after the last set, again, up to {stop:?}")))
    }

    /// Checks a state by change and as a whole, and compares the reports.
    pub(crate) fn prove(&mut self, files: &[PathBuf], stop: Option<&str>, is_sound: bool) -> Result<(), Verdict> {
        let request = self.request(files, stop);
        self.states += 1;
        let whole = opened(&request, |opened, _| {
            let report =
                jobs::judge::check_pages(opened.request, opened.what, opened.source(), opened.prepared, &Silent)?;
            let of_checks = self.compare_parts(opened, &self.history);
            let of_plans = self.compare_parts(opened, &self.plans());
            Ok((report, of_plans.and(of_checks), digest_of_pages(opened.source())))
        });
        self.damage_redo();
        let mut with_ledger = request.clone();
        with_ledger.results.history = Some(self.history.clone());
        with_ledger.keep_parts = Some(self.settings.keep_bytes);
        with_ledger.part_pages = Some(self.settings.part_pages);
        let by_change = opened(&with_ledger, |opened, before| {
            let Opened { request, what, input, prepared } = *opened;
            let pages = (opened.source(), prepared);
            let resumed = prepared.recovered.is_resumed.then(|| digest_of_pages(opened.source()));
            let report = change::check(request, what, (input, before), pages, (&Silent, SystemTime::now()))?;
            Ok((report, resumed))
        });
        if let Ok((whole, ..)) = &whole {
            self.windows(&request, whole)?;
            let mut confined = request.clone();
            if self.settings.confined.is_some_and(|confine| confine.confine(&mut confined, whole)) {
                let check = |opened: &Opened<'_>| {
                    jobs::judge::check_pages(opened.request, opened.what, opened.source(), opened.prepared, &Silent)
                };
                let whole = opened(&confined, |opened, _| check(opened));
                let whole = whole.map_err(|failure| Verdict::Broke(format!("of some tables: {}", failure.text)))?;
                self.count("states of which windows checked some tables", 1);
                self.windows(&confined, &whole).map_err(|verdict| of_state(verdict, "some tables only"))?;
            }
        }
        let ((whole, parts, pages), (by_change, resumed)) = match (whole, by_change) {
            (Ok(whole), Ok(by_change)) => (whole, by_change),
            // A sound chain can always be restored to the end of its last backup.
            (Err(whole), Err(_)) if is_sound && stop.is_none() => return Err(Verdict::Broke(whole.text)),
            (Err(whole), Err(by_change)) if whole.text == by_change.text => {
                self.count(&format!("states refused: {}", without_numbers(&whole.text)), 1);
                return Ok(());
            }
            (whole, by_change) => {
                let text = |failure: Option<Failure>| failure.map_or("a report".to_owned(), |failure| failure.text);
                let (whole, by_change) = (text(whole.err()), text(by_change.err()));
                return Err(Verdict::Differs(format!("whole: {whole}; by change: {by_change}")));
            }
        };
        if resumed.is_some_and(|resumed| resumed != pages) {
            return Err(Verdict::Differs("redo that went on from the last proof has made other pages".to_owned()));
        }
        self.count(RESUMED, u64::from(resumed.is_some()));
        let kept = parts.map_err(Verdict::Differs)?;
        self.compare(&whole, &by_change, kept)?;
        self.prove_by_plan(&with_ledger, (&whole, &by_change)).map_err(|verdict| of_state(verdict, "by a plan"))?;
        self.count(WITH_FINDINGS, u64::from(!whole.findings.is_empty()));
        match (whole.findings.iter().next(), &by_change.change) {
            (Some(finding), _) if is_sound => {
                Err(Verdict::FalseAlarm(format!("{} {}", finding.check.id, finding.text(&whole.names()))))
            }
            (None, Some(Change::Whole(why))) if is_sound => {
                Err(Verdict::Broke(format!("sound, and all pages were read: {why}")))
            }
            // Nothing changes the files between the checks.
            (_, Some(Change::Whole(why))) if why.contains("is not sound now") => Err(Verdict::Broke(why.clone())),
            _ => Ok(()),
        }
    }

    /// Checks a state in windows, and compares each with a whole check.
    fn windows(&mut self, request: &Request, whole: &Report) -> Result<(), Verdict> {
        for _ in 0..self.settings.windows.0 {
            let request = self.window_request(request);
            let window = opened(&request, |opened, _| window(opened));
            let window = window.map_err(|failure| Verdict::Broke(format!("in a window: {}", failure.text)))?;
            windows::compare(whole, &window, self.figures).map_err(|verdict| of_state(verdict, "in a window"))?;
        }
        Ok(())
    }

    /// The history of the checks by plans.
    fn plans(&self) -> PathBuf {
        self.history.with_file_name("plans.db")
    }

    /// Checks a state by a plan, and compares the report.
    fn prove_by_plan(&mut self, request: &Request, (whole, by_change): (&Report, &Report)) -> Result<(), Verdict> {
        let (mut request, folder) = (request.clone(), self.history.with_file_name("plan"));
        request.results.history = Some(self.plans());
        let manner = Manner { seed: self.settings.manner.seed ^ self.states, ..self.settings.manner };
        let planned = planned::report(&request, &folder, manner).or_else(|failure| {
            // Pages that are damaged in the base may be read again, which only a whole check may do.
            if !failure.text.contains("make a new plan without --history") {
                return Err(failure);
            }
            self.count("plans that were made again", 1);
            (request.results.history, request.keep_parts) = (None, None);
            planned::report(&request, &folder, manner)
        });
        let planned = planned.map_err(|failure| Verdict::Broke(format!("{} {}", failure.status, failure.text)))?;
        planned::compare((whole, by_change), &planned, self.settings.keep_bytes == LARGE, self.figures)
    }

    fn request(&self, files: &[PathBuf], stop: Option<&str>) -> Request {
        let mut request = Request::of_paths(files.to_vec());
        let Settings { threads, without: [values, indexes], .. } = self.settings;
        let is_from = |from: Option<usize>| from.is_some_and(|from| self.states >= from as u64);
        request.run.maxdop = threads;
        (request.scope.no_data_purity, request.scope.noindex) = (is_from(values), is_from(indexes));
        request.stop.stop_at = stop.and_then(|text| stop_moment(text).ok());
        request
    }

    /// The request for a window over the state.
    fn window_request(&self, request: &Request) -> Request {
        let mut request = request.clone();
        request.results.history = Some(self.history.with_file_name("windows.db"));
        request.keep_parts = Some(LARGE);
        request.part_pages = Some(self.settings.part_pages);
        request.windows.window = Some(Duration::from_secs(3600));
        request.windows.most_ranges = Some(self.settings.windows.1);
        request
    }

    /// Changes a byte of what was kept of redo, or cuts it off.
    fn damage_redo(&mut self) {
        let Some(seed) = self.settings.redo_damage else { return };
        let mut random = Random::new(seed.wrapping_add(self.states));
        let entries =
            std::fs::read_dir(self.history.with_file_name("history.db.parts")).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "redo")) {
            let Ok(mut bytes) = std::fs::read(&path) else { continue };
            let at = random.below(bytes.len().max(1));
            match (random.below(3), bytes.get_mut(at)) {
                (0, _) => bytes.truncate(at),
                (1, Some(byte)) => *byte ^= 1 << random.below(8),
                _ => continue,
            }
            if std::fs::write(&path, bytes).is_ok() {
                self.count("kept pages of redo that were damaged", 1);
            }
        }
    }

    /// Compares each part of the ledger that would be used with a fresh sweep of its range. Returns the number of parts;
    /// `None` if there is no ledger, or if it cannot be used.
    fn compare_parts(&self, opened: &Opened<'_>, history: &Path) -> Result<Option<u64>, String> {
        let Input::Backups(backups) = opened.input else { return Err("no backup".to_owned()) };
        let full = backups.pages.sets().first().and_then(|set| set.guid.clone());
        let path = full.map(|guid| jobs::ledgers::path_of(history, &guid));
        let Some(path) = path.filter(|path| path.is_file() && backups.pages.sets().len() > 1) else { return Ok(None) };
        let ledger: Ledger<Value> = Ledger::open(&path, &BUILD).map_err(|error| error.to_string())?;
        let options = Options { hash_key: Some(ledger.key()), ..opened.prepared.options.clone() };
        match differing_parts(opened.source(), &opened.prepared.database, &options, &ledger) {
            Ok((count, differing)) if differing.is_empty() => Ok(Some(count)),
            Ok((count, differing)) => Err(format!(
                "{} of {count} parts are not what a sweep gives, first {:?}",
                differing.len(),
                differing.first()
            )),
            Err(NotByChange::Database(_)) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Compares the report of a check by change with that of a whole check.
    fn compare(&mut self, whole: &Report, by_change: &Report, kept: Option<u64>) -> Result<(), Verdict> {
        let (expected, found) = (said(whole), said(by_change));
        if let Some(line) = first_difference(&expected, &found) {
            return Err(Verdict::Differs(line));
        }
        match &by_change.change {
            None if kept.is_some() => return Err(Verdict::Broke("the ledger was not used".to_owned())),
            None => self.count("states that made a ledger", 1),
            Some(Change::Whole(why)) => self.count(&format!("states checked whole: {}", without_numbers(why)), 1),
            Some(Change::Proven(ByChange { bytes_kept, ranges, reasons, range_bytes, .. })) => {
                self.count("states proven by change", 1);
                self.count("ranges", *ranges);
                for (reason, count) in reasons {
                    self.count(&format!("ranges swept: {reason}"), *count);
                }
                let swept: u64 = reasons.iter().map(|(_, count)| count).sum();
                // A part may be of a range without pages of tables, which counts in no range.
                let kept = kept.unwrap_or_default();
                if kept < ranges - swept {
                    return Err(Verdict::Broke(format!("{} ranges were kept, but {kept} parts", ranges - swept)));
                }
                self.count(PARTS_KEPT, kept);
                let most = kept * range_bytes;
                if *bytes_kept > most {
                    return Err(Verdict::Broke(format!("{bytes_kept} bytes were kept in {kept} parts")));
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, name: &str, count: u64) {
        *self.figures.entry(name.to_owned()).or_default() += count;
    }
}

/// Adds the state to a verdict.
pub(super) fn of_state(verdict: Verdict, state: &str) -> Verdict {
    match verdict {
        Verdict::Differs(text) => Verdict::Differs(format!("{state}: {text}")),
        Verdict::FalseAlarm(text) => Verdict::FalseAlarm(format!("{state}: {text}")),
        Verdict::Broke(text) => Verdict::Broke(format!("{state}: {text}")),
        other => other,
    }
}

/// Opens and prepares the database of a request, as the program does.
pub(super) fn opened<R>(
    request: &Request,
    act: impl FnOnce(&Opened<'_>, Option<&jobs::spread::Before>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let choice = request.sets()?;
    let (paths, sets) = inventory::one("check", &request.paths, &choice, request.stop.until())?;
    let what =
        What { named: &request.paths, choice: &choice, sets: sets.as_deref(), place: None, spread: Spread::None };
    let request = &request.of(paths);
    let before = change::before(request, &what);
    let hints = change::hints(request, &what, before.as_ref());
    let input = open_hinted(request, &what, &Silent, hints)?;
    let mut redo = Redo::of(request, before.as_ref(), &input);
    let prepared = prepare_with(request, &input, &Silent, &what, redo.as_mut().map(Redo::going_on))?;
    let done = act(&Opened { request, what: &what, input: &input, prepared: &prepared }, before.as_ref())?;
    redo.into_iter().for_each(Redo::commit);
    Ok(done)
}

/// A digest of all pages of a database.
fn digest_of_pages(source: &dyn PageSource) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in source.files() {
        for page in (0..file.pages).map(|page| PageId::new(file.file_id, page)) {
            source.read_page(page).map(|bytes| bytes.to_vec()).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Checks a state in a window of time, and records it.
pub(super) fn window(opened: &Opened<'_>) -> Result<Report, Failure> {
    let Opened { request, what, input, .. } = *opened;
    let (before, started) = (jobs::spread::Before::of(request, what), SystemTime::now());
    let whole = |_: &Prepared<'_>| Err(Failure::unable("a window cannot be divided into ranges"));
    let length = request.windows.window.unwrap_or_default();
    let (prepared, mut windowed) =
        jobs::windows::check(request, what, (input, &before), (length, started), &Silent, whole)?;
    let (source, database) = (prepared.recovered.pages_or(input.pages()), &prepared.database);
    let report = &windowed.report;
    let ended = jobs::ended::Ended { report, source, database, started };
    let _ = jobs::windows::record(request, &ended, windowed.outcome.take(), 0);
    Ok(windowed.report)
}

/// What a report says: everything but the cost of the run, and what was not read.
pub(super) fn said(report: &Report) -> Vec<String> {
    let Report { database, warnings, options, rowsets, findings, demoted, patterns, beyond, not_verified, .. } = report;
    let Report { notes, read_errors, notices, file_totals, ranges, page_map, service_broker, statistics, .. } = report;
    let mut lines = vec![
        format!("{database:?}"),
        format!("{options:?}"),
        format!("{patterns:?} {beyond:?} {page_map:?} {service_broker:?}"),
        format!("{:?} {:?} {read_errors:?}", findings.error(), demoted.error()),
        format!("{warnings:?} {notices:?} {file_totals:?} {ranges:?}"),
    ];
    lines.extend(findings.iter().map(|finding| format!("{finding:?}")));
    lines.extend(demoted.iter().map(|finding| format!("demoted {finding:?}")));
    lines.extend(rowsets.iter().map(|rowset| format!("{rowset:?}")));
    lines.extend(not_verified.iter().map(|entry| format!("not verified {entry:?}")));
    lines.extend(notes.iter().map(|entry| format!("note {entry:?}")));
    let of_rows = (statistics.rows, statistics.rows_checked, statistics.pages_allocated);
    let of_values = (statistics.column_values_checked, statistics.column_values_not_verified);
    let of_indexes = (statistics.indexes_in_scope, statistics.indexes_compared, statistics.index_rows_compared);
    lines.push(format!("{of_rows:?} {of_values:?} {of_indexes:?} status {}", status(report, false)));
    // Only the last two of the lines for programs say what the run has cost.
    let mut json = Vec::new();
    let written = report::write(Format::Json, report, View::default(), &mut json);
    let json = String::from_utf8_lossy(&json);
    let is_cost = |line: &&str| line.starts_with(r#"{"kind":"statistics""#) || line.starts_with(r#"{"kind":"summary""#);
    lines.extend(json.lines().filter(|line| !is_cost(line)).map(str::to_owned));
    lines.extend(written.err().map(|error| error.to_string()));
    lines
}

pub(super) fn first_difference(expected: &[String], found: &[String]) -> Option<String> {
    let end = "the end".to_owned();
    let at = (0..expected.len().max(found.len())).find(|at| expected.get(*at) != found.get(*at))?;
    let line = |lines: &[String]| lines.get(at).unwrap_or(&end).clone();
    let (expected, found) = (line(expected), line(found));
    // What both lines have in common says little.
    let same = expected.chars().zip(found.chars()).take_while(|(one, other)| one == other).count();
    let cut = |line: &str| line.chars().skip(same.saturating_sub(SHOWN / 2)).take(SHOWN).collect::<String>();
    Some(format!("whole: {}\n  by change: {}", cut(&expected), cut(&found)))
}

/// A reason without the pages and files that it names, so that equal reasons are counted together.
fn without_numbers(why: &str) -> String {
    let words = why.split(' ').map(|word| {
        let is_place = word.contains('/') || word.chars().any(|letter| letter.is_ascii_digit());
        if is_place { "..." } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}
