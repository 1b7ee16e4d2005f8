//! A history as lines of JSON.

use std::io;

use history::baselines::Baseline;
use history::coverage::{Coverage, TableProof};
use history::maintain::Forgotten;
use history::query::{Difference, FindingRow, ObjectRow, RunRow};

use super::{LedgerRow, State, Throughput};
use crate::json::history::{
    HistoryAcknowledged, HistoryBaseline, HistoryCoverage, HistoryDifference, HistoryEvidence, HistoryFinding,
    HistoryForgotten, HistoryLedger, HistoryLedgerRun, HistoryLine, HistoryObject, HistoryRange, HistoryRelations,
    HistoryRun, HistoryState, HistoryTable, HistoryThroughput,
};
use crate::json::{VERSION, line};

/// Writes a line per database.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_states_json(states: &[State], out: &mut dyn io::Write) -> io::Result<()> {
    states.iter().try_for_each(|State { run, state, open, coverage }| {
        let state = HistoryState {
            v: VERSION,
            database: run.database.as_deref().unwrap_or_default(),
            family: run.family.as_deref().unwrap_or_default(),
            server: run.server.as_deref().unwrap_or_default(),
            state: state.word,
            why: state.why.as_deref(),
            run: run.id,
            started: &run.started,
            exit_status: run.exit_status,
            findings_open: *open,
            oldest_read: coverage.oldest.as_ref().filter(|_| coverage.never == 0).map(|(.., at)| at.as_str()),
            oldest_closed: coverage.oldest_closed.as_deref(),
        };
        line(&HistoryLine::State(state), out)
    })
}

/// Writes a line for each database: when the least recently read page was read, and when the least recently verified
/// cross-reference was verified.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_coverage_json(all: &[Coverage], out: &mut dyn io::Write) -> io::Result<()> {
    all.iter().try_for_each(|one| {
        let evidence =
            |name: &str| one.evidence.iter().filter(|(found, _)| found == name).map(|(_, pages)| pages).sum();
        let oldest = one.oldest.as_ref();
        let coverage = HistoryCoverage {
            v: VERSION,
            database: &one.database,
            family: &one.family,
            server: &one.server,
            within_seconds: one.within.map(|span| span.as_secs()),
            pages_in_use: one.pages_in_use,
            pages_within: one.pages_within,
            never: one.never,
            oldest: oldest.map(|(file, first, pages, at)| HistoryRange {
                file: *file,
                first: *first,
                pages: *pages,
                at,
            }),
            relations: HistoryRelations {
                total: one.relations,
                within: one.relations_within,
                oldest_at: one.oldest_closed.as_deref(),
            },
            evidence: HistoryEvidence {
                read: evidence("read"),
                object: evidence("object"),
                chain: evidence("chain"),
                vouched: evidence("vouched"),
            },
            kept: one.is_kept(),
        };
        line(&HistoryLine::Coverage(coverage), out)
    })
}

/// Writes a line per run.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_runs_json(runs: &[RunRow], out: &mut dyn io::Write) -> io::Result<()> {
    runs.iter().try_for_each(|run| {
        let written = HistoryRun {
            run: run.id,
            database: run.database.as_deref(),
            family: run.family.as_deref(),
            server: run.server.as_deref(),
            source: run.source.as_deref(),
            host: &run.host,
            paths: &run.paths,
            command: &run.command,
            started: &run.started,
            ended: &run.ended,
            taken_at: run.taken_at.as_deref(),
            verdict: run.verdict(),
            exit_status: run.exit_status,
            error: run.error.as_deref(),
            findings: run.findings,
            findings_new: run.findings_new,
            findings_gone: run.findings_gone,
            not_verified: run.not_verified,
            pages_in_use: run.pages_in_use,
            rows: run.rows,
            bytes_read: run.bytes_read,
            seconds: run.seconds,
            cpu_seconds: run.cpu_seconds,
            memory_peak: run.memory_peak,
        };
        line(&HistoryLine::Run(written), out)
    })
}

/// Writes a line per finding.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_findings_json(findings: &[FindingRow], out: &mut dyn io::Write) -> io::Result<()> {
    findings.iter().try_for_each(|found| {
        let finding = HistoryFinding {
            key: found.id,
            database: &found.database,
            family: &found.family,
            server: &found.server,
            source: &found.source,
            host: &found.host,
            location: &found.location,
            life: &found.life,
            id: &found.check_id,
            msg: found.msg,
            state: found.state,
            object: found.object.as_deref(),
            object_id: found.object_id,
            index_id: found.index_id,
            file: found.file,
            page: found.page,
            slot: found.slot,
            text: &found.text,
            first_seen: &found.first_seen,
            last_seen: &found.last_seen,
            last_looked: &found.last_looked,
            seen: found.seen,
            ack_by: found.ack_by.as_deref(),
            ack_text: found.ack_text.as_deref(),
            ack_until: found.ack_until.as_deref(),
        };
        line(&HistoryLine::Finding(finding), out)
    })
}

/// Writes a line per table.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_tables_json(tables: &[TableProof], out: &mut dyn io::Write) -> io::Result<()> {
    tables.iter().try_for_each(|table| {
        let written = HistoryTable {
            database: &table.database,
            table: &table.table,
            object_id: table.object_id,
            proven_at: table.proven_at.as_deref(),
            read_at: table.read_at.as_deref(),
            is_sound: table.is_sound,
        };
        line(&HistoryLine::Table(written), out)
    })
}

/// Writes a line per heap or index.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_objects_json(objects: &[ObjectRow], out: &mut dyn io::Write) -> io::Result<()> {
    objects.iter().try_for_each(|object| {
        let written = HistoryObject {
            database: &object.database,
            object: &object.object,
            object_id: object.object_id,
            index_id: object.index_id,
            index: &object.index,
            partition: object.partition,
            first_at: &object.first_at,
            first_rows: object.first.0,
            first_pages: object.first.1,
            last_at: &object.last_at,
            last_rows: object.last.0,
            last_pages: object.last.1,
            closed_at: object.closed_at.as_deref(),
        };
        line(&HistoryLine::Object(written), out)
    })
}

/// Writes the findings that appeared and the findings that disappeared between two runs, and the number of each.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_difference_json(difference: &Difference, out: &mut dyn io::Write) -> io::Result<()> {
    let Difference { from, to, new, gone, open } = difference;
    write_findings_json(new, out)?;
    write_findings_json(gone, out)?;
    let difference = HistoryDifference {
        database: to.database.as_deref().unwrap_or_default(),
        from: from.id,
        to: to.id,
        new: new.len() as u64,
        gone: gone.len() as u64,
        open: *open,
    };
    line(&HistoryLine::Difference(difference), out)
}

/// Writes the throughput of runs, and the baselines of `bench`.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_baselines_json(all: &[Throughput], saved: &[Baseline], out: &mut dyn io::Write) -> io::Result<()> {
    for one in all {
        let throughput = HistoryThroughput {
            database: &one.database,
            source: &one.source,
            host: &one.host,
            command: &one.command,
            runs: one.rates.len(),
            bytes_per_second: one.median(),
            slowest: one.slowest(),
            fastest: one.fastest(),
        };
        line(&HistoryLine::Throughput(throughput), out)?;
    }
    saved.iter().try_for_each(|Baseline { name, saved_at, .. }| {
        line(&HistoryLine::Baseline(HistoryBaseline { name, saved_at }), out)
    })
}

/// Writes the ledgers beside the history.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_ledgers_json(rows: &[LedgerRow], out: &mut dyn io::Write) -> io::Result<()> {
    rows.iter().try_for_each(|row| {
        let run =
            |(image, read_at): &(String, String)| HistoryLedgerRun { image: image.clone(), read_at: read_at.clone() };
        let ledger = HistoryLedger {
            database: &row.database,
            base_set: &row.set,
            base: &row.base,
            bytes: row.bytes,
            checks: row.runs.iter().map(run).collect(),
            not_usable: row.why_not.as_deref(),
        };
        line(&HistoryLine::Ledger(ledger), out)
    })
}

/// Writes a line that confirms that a finding was acknowledged.
///
/// # Errors
///
/// If writing to `out` fails.
pub fn write_acknowledged_json(key: i64, out: &mut dyn io::Write) -> io::Result<()> {
    line(&HistoryLine::Acknowledged(HistoryAcknowledged { key }), out)
}

/// Writes how many databases and runs were removed from the history.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_forgotten_json(forgotten: Forgotten, out: &mut dyn io::Write) -> io::Result<()> {
    let Forgotten { databases, runs } = forgotten;
    line(&HistoryLine::Forgotten(HistoryForgotten { databases, runs }), out)
}
