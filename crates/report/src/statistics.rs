//! The cost of a run, as a table for people and as JSON.

use std::io;

use findings::Report;

use crate::json::cost;
use crate::text_table::TextTable;

/// Writes the table of phases.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let statistics = &report.statistics;
    let mut table = TextTable::new(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    table.row([
        "phase",
        "seconds",
        "user s",
        "system s",
        "MB read",
        "MB/s",
        "read wait s",
        "queue wait s",
        "merge lock s",
        "findings lock s",
        "MB spilled",
        "spill wait s",
        "peak MB",
    ]);
    for phase in &statistics.phases {
        let megabytes = phase.bytes as f64 / 1e6;
        let time = |seconds: f64| format!("{seconds:.3}");
        let [merge, findings] = phase.lock_waits.map(|(_, seconds)| time(seconds));
        let known = |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.2}"));
        table.row([
            findings::phase_words(phase.name),
            &time(phase.seconds),
            &known(phase.cpu_user_seconds),
            &known(phase.cpu_system_seconds),
            &format!("{megabytes:.1}"),
            &format!("{:.0}", megabytes / phase.seconds.max(1e-9)),
            &time(phase.read_wait_seconds),
            &time(phase.idle_seconds),
            &merge,
            &findings,
            &format!("{:.1}", phase.spilled_bytes as f64 / 1e6),
            &time(phase.spill_wait_seconds),
            &phase.memory_peak.map_or_else(|| "-".to_owned(), |peak| (peak >> 20).to_string()),
        ]);
    }
    table.write(0, out)?;
    if let Some(share) = crate::not_verified::share(report) {
        writeln!(out, "{share}")?;
    }
    let memory = statistics.memory_peak.map_or_else(|| "not known".to_owned(), |peak| format!("{} MB", peak >> 20));
    writeln!(
        out,
        "memory: {memory} at most, {} MB granted; {} threads",
        statistics.memory_granted >> 20,
        statistics.threads
    )?;
    let counters: Vec<String> =
        statistics.counters.iter().map(|(name, count)| format!("{} {count}", name.replace('_', " "))).collect();
    if counters.is_empty() { Ok(()) } else { writeln!(out, "system: {}", counters.join(", ")) }
}

/// Writes a table of measurements with headings. Each row has four columns that identify the measurement, then its
/// figures, then a remark.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_figures(
    heads: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut table = TextTable::new(&[1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    let rows: Vec<Vec<String>> = rows.collect();
    // If no row has a remark, the table has no column for remarks.
    let has_remarks = rows.iter().any(|row| row.last().is_some_and(|remark| !remark.is_empty()));
    let shown = heads.len() - usize::from(!has_remarks);
    table.row(heads.iter().take(shown).copied());
    rows.into_iter().for_each(|row| table.row(row));
    table.write(0, out)
}

/// Writes facts, one per line: the name, then the value.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_facts(facts: Vec<(&str, String)>, out: &mut dyn io::Write) -> io::Result<()> {
    let mut table = TextTable::new(&[]);
    facts.into_iter().for_each(|(name, value)| table.row([name.to_owned(), value]));
    table.write(0, out)
}

/// The cost of the run, with the samples taken during the run, as a JSON line.
pub(crate) fn line(report: &Report) -> cost::Statistics {
    let statistics = &report.statistics;
    let phase = |phase: &findings::PhaseStatistics| cost::PhaseCost {
        name: phase.name,
        seconds: phase.seconds,
        bytes: phase.bytes,
        reads: phase.reads,
        cpu_user_seconds: phase.cpu_user_seconds,
        cpu_system_seconds: phase.cpu_system_seconds,
        read_wait_seconds: phase.read_wait_seconds,
        idle_seconds: phase.idle_seconds,
        lock_wait_seconds: phase.lock_waits.into_iter().collect(),
        spilled_bytes: phase.spilled_bytes,
        spill_wait_seconds: phase.spill_wait_seconds,
        memory_peak: phase.memory_peak,
    };
    let sample = |sample: &findings::Sample| cost::Sample {
        seconds: sample.seconds,
        bytes: sample.bytes,
        cpu_seconds: sample.cpu_seconds,
        memory_bytes: sample.memory_bytes,
        spilled_bytes: sample.spilled_bytes,
    };
    cost::Statistics {
        seconds: statistics.seconds,
        threads: statistics.threads,
        memory_granted: statistics.memory_granted,
        memory_peak: statistics.memory_peak,
        spilled_bytes: statistics.spilled_bytes,
        counters: statistics.counters.iter().copied().collect(),
        phases: statistics.phases.iter().map(phase).collect(),
        series: statistics.series.iter().map(sample).collect(),
    }
}
