//! Recovery with hostile logs. If a log was changed, the program must refuse the log, report what could not be
//! verified, or recover the true rows of the database.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use format::Lsn;
use lab::PageVerify;
use lab::workload::{Crashed, Flush, Spec, Stop, Workload};
use log::{History, Log, Walk};
use source::MemoryFiles;
use trials::in_use::{self, Recovered, contents, in_memory, live_rows, recover};
use trials::log_layout::Layout;
use trials::mutate::Random;

use super::{ANOTHER, Bench};
use crate::baseline::clocked;
use crate::log_faults::{Changed, changed};
use crate::outcome::{Outcome, Verdict};
use crate::process::Program;
use crate::subject::{Content, check_pages, folder, store};

/// The number of consecutive trials that use the same database.
const TRIALS_PER_DATABASE: u64 = 100;
/// The maximum number of transactions in a workload.
const TRANSACTIONS: usize = 40;
/// Every hundredth log is also given to the program as a process.
const COMMANDS_EVERY: u64 = 100;
/// The maximum time for the recovery of a small database.
const LIMIT: Duration = Duration::from_secs(20);
const GRANT_BYTES: u64 = 8 << 20;

/// A database that was in use, with its log.
pub(crate) struct InUse {
    spec: Spec,
    workload: Workload,
    stop: Stop,
    crashed: Crashed,
    source: MemoryFiles,
    layout: Layout,
    foreign: Vec<u8>,
}

/// The most recently used databases.
#[derive(Default)]
pub(crate) struct Used(Mutex<Vec<(u64, Arc<InUse>)>>);

impl Used {
    fn of(&self, seed: u64) -> Arc<InUse> {
        let number = seed / TRIALS_PER_DATABASE;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, used)) = kept.iter().find(|(own, _)| *own == number) {
            return Arc::clone(used);
        }
        let used = Arc::new(InUse::new(number));
        kept.push((number, Arc::clone(&used)));
        if kept.len() > 4 {
            kept.remove(0);
        }
        used
    }
}

impl InUse {
    fn new(number: u64) -> Self {
        let mut random = Random::new(number);
        let spec = in_use::spec(&mut random, TRANSACTIONS);
        let workload = in_use::workload(spec);
        let stop = if random.below(2) == 0 { Stop::WithOpen } else { Stop::WithoutOpen };
        let crashed = workload.crash(stop, Flush::Some(random.number()));
        let other = in_use::workload(Spec { seed: spec.seed.wrapping_add(ANOTHER), ..spec });
        let foreign = other.crash(Stop::WithOpen, Flush::None).log.1;
        let folder = folder();
        let stored = store(&contents(&crashed), folder.path()).unwrap_or_else(|error| panic!("{error}"));
        let log = Log::open(stored.get(stored.len() - 1..).unwrap_or_default());
        let layout = Layout::of(&log.unwrap_or_else(|error| panic!("{spec:?}: {error}")));
        let source = in_memory(&crashed.files);
        Self { spec, workload, stop, crashed, source, layout, foreign }
    }

    /// The expected result if the log ends at the record `end`: the state of the database if it had been stopped at
    /// this record.
    fn stopped_at(&self, end: Lsn) -> Crashed {
        let later = self.layout.lsns.iter().filter(|lsn| **lsn > end).count() as u64;
        self.workload.crash(Stop::After(self.crashed.truth.records.saturating_sub(later)), Flush::None)
    }
}

pub(crate) fn trial(bench: &Bench, seed: u64) -> Outcome {
    let used = bench.used.of(seed);
    let mut random = Random::new(seed);
    let changed = changed(&used.crashed.log.1, &used.layout, &used.foreign, &mut random);
    let name = &used.crashed.log.0;
    let with_log = || -> Vec<Content> {
        let data = used.crashed.files.iter().map(|(name, bytes)| (name.into(), bytes.clone()));
        data.chain([(name.into(), changed.bytes.clone())]).collect()
    };
    bench.keep(with_log);
    let folder = folder();
    let log = folder.path().join(name);
    let written = std::fs::write(&log, &changed.bytes);
    let ((verdict, harmless), time) = clocked(|| match &written {
        Ok(()) => judge(&used, &changed, &log, seed),
        Err(error) => (Verdict::Broke(error.to_string()), None),
    });
    let mut verdict = if time > LIMIT { Verdict::Hung(time.as_secs_f64()) } else { verdict };
    if seed.is_multiple_of(COMMANDS_EVERY)
        && let Err(text) = commands(bench.program(), with_log())
    {
        verdict = Verdict::Broke(text);
    }
    let what = format!("{:?} {:?} {}", used.spec, used.stop, changed.what);
    Outcome { harmless, ..Outcome::new(changed.kind, what, verdict) }
}

/// Judges a recovery with a changed log. If the verdict is `Silent`, also returns the reason why the change may go
/// unnoticed.
fn judge(used: &InUse, changed: &Changed, log: &std::path::Path, seed: u64) -> (Verdict, Option<String>) {
    read(log);
    let Ok(recovered) = recover(&used.source, log, GRANT_BYTES) else { return (Verdict::Refused, None) };
    let report = check_pages(&recovered.pages, seed);
    let is_protected = used.spec.verify == PageVerify::Checksum && !changed.is_sealed;
    let of_audit = recovered.audit.findings.iter().map(std::borrow::Cow::Borrowed);
    if let Some(finding) = of_audit.chain(&report.findings).next() {
        // If no checksum protects the log, its records may have any content, and so may the pages that recovery makes
        // from these records.
        let is_another_log = matches!(changed.kind, "of another database" | "another log under this header");
        // The blocks come from an intact log of another database. If they contradict the pages, it is not clear whether
        // the log or the pages are wrong.
        let is_contradicted = is_another_log && finding.check.is_of_log();
        return match is_protected && !is_contradicted {
            true => (Verdict::FalseAlarm(finding.text(&report.names())), None),
            false => (Verdict::Right, None),
        };
    }
    if recovered.doubt().is_some() || !recovered.audit.doubts.is_empty() || !report.complete() {
        return (Verdict::NotVerified, None);
    }
    match reason(used, changed, &recovered, is_protected) {
        Some(reason) => (Verdict::Silent, Some(reason.to_owned())),
        None => (Verdict::Silent, None),
    }
}

/// Returns the reason why a report without findings is allowed; `None` if the report should have findings.
fn reason(used: &InUse, changed: &Changed, recovered: &Recovered<'_>, is_protected: bool) -> Option<&'static str> {
    let rows = live_rows(&recovered.pages);
    if rows == live_rows(&in_memory(&used.crashed.truth.files)) {
        return Some("what was changed is not needed");
    }
    if !is_protected {
        return Some("no checksum protects the log");
    }
    // The recovered rows may be the rows of an earlier crash only if the change looks like an interrupted write. If a
    // completely written block was damaged later, recovery must report the damage.
    let is_as_cut = match changed.kind {
        "bytes" => changed.leaves_a_cut_write,
        "VLF header" | "cyclic" => false,
        _ => true,
    };
    if !is_as_cut {
        return None;
    }
    let earlier = used.stopped_at(recovered.end);
    let is_earlier = rows == live_rows(&in_memory(&earlier.truth.files));
    is_earlier.then_some("it is the log of a crash at an earlier moment")
}

/// Reads the whole log, as `mdfsck log` does.
fn read(log: &std::path::Path) {
    let Ok(log) = Log::open(&[log.to_owned()]) else { return };
    let (mut walk, mut history) = (Walk::new(&log), History::new());
    while let Ok(Some(block)) = walk.next_block() {
        history.block(&block, &mut drop);
        for (_, record) in block.records() {
            let _ = (record.change(), record.elements().count(), record.begin_checkpoint());
        }
    }
    history.finish(&mut drop);
}

/// The program must end with a documented status, and give a reason if it refuses.
fn commands(program: &Program, files: Vec<Content>) -> Result<(), String> {
    let folder = folder();
    let paths = store(&files, folder.path()).map_err(|error| error.to_string())?;
    let paths: Vec<&str> = paths.iter().filter_map(|path| path.to_str()).collect();
    let log = paths.last().copied().unwrap_or_default();
    let runs: [&[&str]; 4] = [&["log", log], &["log", "--records", log], &["checkpoints", log], &["check"]];
    for run in runs {
        let arguments = if run == ["check"] { [run, &paths].concat() } else { run.to_vec() };
        let done = program.run(&arguments).end();
        if !done.is_orderly() || done.stderr.contains("panicked") {
            return Err(format!("{run:?}: {}", done.story()));
        }
        if done.code.is_some_and(|code| code & 12 != 0) && done.stderr.trim().is_empty() {
            return Err(format!("{run:?}: refused without a reason"));
        }
    }
    Ok(())
}
