//! Databases that were stopped while in use. With any options, recovery must lead to the true content, which the lab
//! knows.

use std::path::Path;

use format::PageId;
use lab::workload::{Crashed, Flush, Stop};
use source::{DataFiles, PageSource};
use trials::mutate::Random;

use super::Bench;
use super::commands::{Answer, lasting};
use crate::outcome::{Outcome, Verdict};
use crate::process::Program;
use crate::subject::{check_pages, folder, store};
use trials::in_use::{self, Recovered, contents, differences, in_memory, live_rows, recover};

/// The maximum number of transactions in a workload.
const TRANSACTIONS: usize = 120;
/// In every fifth trial, the program, run as a process, also recovers the crashed database with each set of options.
const COMMANDS_EVERY: u64 = 5;
/// Memory grants of recoveries, in bytes. All data fits into the first grant. The second grant is so small that
/// recovery needs temporary files and has no memory for a table of pages.
pub(crate) const GRANTS: [u64; 2] = [64 << 20, 1 << 12];
/// Sets of options. The answer must be the same with each set.
const WAYS: [&[&str]; 4] = [
    &[],
    &["--maxdop", "1", "--memory", "40MB"],
    &["--maxdop", "3", "--batches", "3"],
    &["--readers", "2", "--memory", "300MB"],
];

pub(crate) fn trial(bench: &Bench, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let spec = in_use::spec(&mut random, TRANSACTIONS);
    let workload = in_use::workload(spec);
    let stop = match random.below(4) {
        0 | 1 => Stop::WithoutOpen,
        2 => Stop::WithOpen,
        // The workload writes at least one record before it stops, because a database without log records needs no
        // recovery.
        _ => Stop::After(1 + random.below(workload.records() as usize) as u64),
    };
    let flush = match random.below(6) {
        0 => Flush::None,
        1 => Flush::All,
        _ => Flush::Some(random.number()),
    };
    let crashed = workload.crash(stop, flush);
    bench.keep(|| contents(&crashed));
    let kind = match &crashed.truth.open {
        open if open.is_empty() => "nothing open",
        open if open.iter().any(|open| open.is_prepared) => "a transaction in doubt",
        _ => "open transactions",
    };
    let program = seed.is_multiple_of(COMMANDS_EVERY).then(|| bench.program());
    let older = workload.crash(Stop::After(1 + random.below(workload.records() as usize) as u64), Flush::None).log.1;
    let verdict = judge(&crashed, &older, program, seed).unwrap_or_else(|verdict| verdict);
    Outcome::new(kind, format!("{spec:?} {stop:?} {flush:?}"), verdict)
}

/// Judges the recovery; returns an error if it failed.
fn judge(crashed: &Crashed, older: &[u8], program: Option<&Program>, seed: u64) -> Result<Verdict, Verdict> {
    let broke = |text: String| Verdict::Broke(text);
    let folder = folder();
    let mut paths = store(&contents(crashed), folder.path()).map_err(|error| broke(error.to_string()))?;
    let log = paths.pop().ok_or_else(|| broke("no log".to_owned()))?;
    let source = DataFiles::open(&paths).map_err(|error| broke(error.to_string()))?;
    accuses_nothing(&source, older, seed)?;
    let [one, other] = GRANTS.map(|grant| recover(&source, &log, grant));
    let recovered = one.map_err(|refusal| broke(format!("refused: {refusal}")))?;
    let with_less = other.map_err(|refusal| broke(format!("refused with less memory: {refusal}")))?;
    same_pages(&recovered, &with_less)?;
    let report = check_pages(&recovered.pages, seed);
    if !recovered.audit.findings.is_empty() || !recovered.audit.doubts.is_empty() {
        return Err(Verdict::FalseAlarm(format!("against the log: {:?}", recovered.audit)));
    }
    if let Some(finding) = report.findings.first() {
        return Err(Verdict::FalseAlarm(finding.text(&report.names())));
    }
    let answer = Answer::of(&report);
    let doubt = recovered.doubt();
    match &doubt {
        Some(doubt) if crashed.truth.open.is_empty() => return Err(broke(format!("not recovered: {doubt}"))),
        Some(_) => {}
        None => as_the_truth(&recovered.pages, crashed)?,
    }
    if doubt.is_none() && !report.complete() {
        return Err(broke("recovered, and not verified all the same".to_owned()));
    }
    if let Some(program) = program {
        let is_changed = recovered.applied.pages > 0;
        commands(program, folder.path(), &answer, doubt.is_some(), is_changed)?;
    }
    Ok(if doubt.is_some() { Verdict::NotVerified } else { Verdict::Kept })
}

/// Checks a sound database without its log, and with the log of another point in time. Neither of the two checks may
/// have findings.
fn accuses_nothing(source: &dyn PageSource, other_log: &[u8], seed: u64) -> Result<(), Verdict> {
    let is_silent = |pages: &dyn PageSource, what: &str| {
        let report = check_pages(pages, seed);
        match report.findings.first() {
            Some(finding) => Err(Verdict::FalseAlarm(format!("{what}: {}", finding.text(&report.names())))),
            None => Ok(()),
        }
    };
    is_silent(source, "without its log")?;
    // The log is stored outside of the folder that the program reads.
    let beside = folder();
    let path = beside.path().join("other.ldf");
    std::fs::write(&path, other_log).map_err(|error| Verdict::Broke(error.to_string()))?;
    // The program may also refuse the log.
    let Ok(recovered) = recover(source, &path, GRANTS[0]) else { return Ok(()) };
    if let Some(finding) = recovered.audit.findings.first() {
        return Err(Verdict::FalseAlarm(format!("against another log: {}", finding.check.id)));
    }
    is_silent(&recovered.pages, "with another log")
}

/// Checks that two recoveries lead to the same bytes on all pages.
pub(crate) fn same_pages(one: &Recovered<'_>, other: &Recovered<'_>) -> Result<(), Verdict> {
    for file in one.pages.files() {
        for number in 0..file.pages {
            let page = PageId::new(file.file_id, number);
            if one.pages.read_page(page) != other.pages.read_page(page) {
                return Err(Verdict::Differs(format!("{page} is another one with less memory")));
            }
        }
    }
    let is_same = one.applied.not_recovered == other.applied.not_recovered;
    if is_same { Ok(()) } else { Err(Verdict::Differs("other pages are not recovered with less memory".to_owned())) }
}

/// Checks that the recovered rows equal the true rows. If no transaction was open at the crash, the recovered pages
/// must also equal the true pages.
fn as_the_truth(recovered: &dyn PageSource, crashed: &Crashed) -> Result<(), Verdict> {
    let truth = &crashed.truth;
    if truth.open.is_empty()
        && let Some(page) = differences(recovered, &in_memory(&truth.redone)).first()
    {
        return Err(Verdict::Broke(format!("wrong: {page} is not as of its last record")));
    }
    let (found, expected) = (live_rows(recovered), live_rows(&in_memory(&truth.files)));
    let units = found.keys().chain(expected.keys());
    let differs = |unit: &&(u32, u16)| found.get(unit) != expected.get(unit);
    match units.filter(|unit| differs(unit)).min() {
        Some(unit) => Err(Verdict::Broke(format!("wrong: the rows of unit {unit:?}"))),
        None => Ok(()),
    }
}

/// Checks that the program gives the same answer as the library, with each set of options.
fn commands(
    program: &Program,
    folder: &Path,
    expected: &Answer,
    is_partial: bool,
    is_changed: bool,
) -> Result<(), Verdict> {
    let mut first = None;
    for way in WAYS {
        let path = folder.to_string_lossy();
        let done = program.run(&[&["check", "--format", "json"], way, &[&*path]].concat()).end();
        let run = done.stdout.lines().next().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let state = run.map(|run| run["recovery"]["state"].clone()).unwrap_or_default();
        let is_said = match state.as_str() {
            Some("done") => !is_partial,
            Some("partial") => is_partial,
            _ => !is_partial && !is_changed,
        };
        let code = if is_partial { 16 } else { 0 };
        if !is_said || done.code != Some(code) {
            return Err(Verdict::Broke(format!("{way:?}: recovery {state}, expected exit {code}: {}", done.story())));
        }
        let lines = lasting(&done.stdout);
        // In a partial recovery, the program's output also lists what could not be recovered. The answer expected from
        // the library has no such lines, so the output is not compared with it.
        let is_same = if is_partial { true } else { expected.is_json(&lines) };
        if !is_same || *first.get_or_insert_with(|| lines.clone()) != lines {
            return Err(Verdict::Differs(format!("{way:?}: another answer")));
        }
    }
    Ok(())
}
