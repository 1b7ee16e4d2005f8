//! The results of a history, for people and programs: `mdfsck history`.

mod csv;
mod lines;

use std::collections::BTreeSet;
use std::io;

use history::coverage::{Coverage, TableProof};
use history::maintain::Forgotten;
use history::query::{Difference, FindingRow, ObjectRow, RunRow};
use history::state::DatabaseState;

use crate::text_table::{TextTable, printable};

pub use csv::{write_findings_csv, write_objects_csv, write_runs_csv};
pub use lines::{
    write_acknowledged_json, write_baselines_json, write_coverage_json, write_difference_json, write_findings_json,
    write_forgotten_json, write_ledgers_json, write_objects_json, write_runs_json, write_states_json,
    write_tables_json,
};

/// Maximum number of runs that the text shows, newest first. Output for programs has all runs.
const MOST_RUNS: usize = 100;

/// The state of a database.
pub struct State {
    /// The last run of the database.
    pub run: RunRow,
    /// The state in one word, and the reason if the database is not sound.
    pub state: DatabaseState,
    /// The number of open findings.
    pub open: u64,
    /// When the pages were last read, and when the relations (links, keys and rows) were last verified.
    pub coverage: Coverage,
}

/// The read speed of all runs that checked the same copy of a database.
pub struct Throughput {
    /// Name of the database.
    pub database: String,
    /// `files` or `backup`.
    pub source: String,
    /// The machine on which the runs were made.
    pub host: String,
    /// The DBCC command that corresponds to the options of the runs.
    pub command: String,
    /// Bytes per second of each run, ascending.
    pub rates: Vec<f64>,
}

impl Throughput {
    /// The median throughput, in bytes per second.
    pub fn median(&self) -> f64 {
        let at = |at: usize| self.rates.get(at).copied().unwrap_or_default();
        let half = self.rates.len() / 2;
        if self.rates.len().is_multiple_of(2) { (at(half.saturating_sub(1)) + at(half)) / 2.0 } else { at(half) }
    }

    fn slowest(&self) -> f64 {
        self.rates.first().copied().unwrap_or_default()
    }

    fn fastest(&self) -> f64 {
        self.rates.last().copied().unwrap_or_default()
    }

    /// The read speed of the runs for each copy of a database, ordered by database.
    pub fn of(runs: &[RunRow]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for run in runs.iter().filter(|run| run.seconds > 0.0 && run.bytes_read > 0) {
            let (Some(database), Some(source)) = (&run.database, &run.source) else { continue };
            let is_same = |one: &&mut Self| {
                (&one.database, &one.source, &one.host, &one.command) == (database, source, &run.host, &run.command)
            };
            let rate = run.bytes_read as f64 / run.seconds;
            match all.iter_mut().find(is_same) {
                Some(one) => one.rates.push(rate),
                None => all.push(Self {
                    database: database.clone(),
                    source: source.clone(),
                    host: run.host.clone(),
                    command: run.command.clone(),
                    rates: vec![rate],
                }),
            }
        }
        all.iter_mut().for_each(|one| one.rates.sort_by(f64::total_cmp));
        all.sort_by(|a, b| (&a.database, &a.source).cmp(&(&b.database, &b.source)));
        all
    }
}

/// Writes a line per database: its state, its last run, and the number of open findings. The line also shows when the
/// least recently read page was read, and when the least recently verified cross-reference was verified.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_states(states: &[State], out: &mut dyn io::Write) -> io::Result<()> {
    if states.is_empty() {
        return writeln!(out, "No database was checked yet.");
    }
    let shared = shared(states.iter().filter_map(|state| state.run.database.as_deref()));
    let mut table = TextTable::new(&[5]);
    table.row(["database", "state", "last run (UTC)", "oldest read", "oldest proof", "open findings"]);
    for State { run, state, open, coverage } in states {
        let oldest_read = match (&coverage.oldest, coverage.never) {
            (Some((.., at)), 0) => minute(at),
            (None, 0) => "-".to_owned(),
            _ => "not all yet".to_owned(),
        };
        let closed = match &coverage.oldest_closed {
            Some(at) => minute(at),
            None if coverage.relations == 0 => "-".to_owned(),
            None => "not all yet".to_owned(),
        };
        let name = full_name(run, &shared);
        table.row([&name, state.word, &minute(&run.started), &oldest_read, &closed, &open.to_string()]);
    }
    table.write(0, out)?;
    for State { run, state, .. } in states {
        let why = match (&state.why, &state.copy) {
            (Some(why), Some(copy)) => format!("{why} ({}: {})", copy.host, copy.location),
            (Some(why), None) => why.clone(),
            (None, Some(copy)) if state.word == "corrupt" => format!("{}: {}", copy.host, copy.location),
            _ => continue,
        };
        writeln!(out, "{}: {}: {}", printable(&full_name(run, &shared)), state.word, printable(&why))?;
    }
    Ok(())
}

/// The name of a database. If several databases have this name, the server and the files are added to it.
fn full_name(run: &RunRow, shared: &BTreeSet<&str>) -> String {
    let name = run.database.as_deref().unwrap_or_default();
    match shared.contains(name) {
        false => name.to_owned(),
        true => format!("{} ({})", on_server(name, run.server.as_deref().unwrap_or_default()), run.paths),
    }
}

/// The names that more than one database has.
fn shared<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).collect()
}

/// The name of a database with its server, in the form that `--database` accepts.
fn on_server(name: &str, server: &str) -> String {
    if server.is_empty() { name.to_owned() } else { format!("{name} on {server}") }
}

/// Writes, for each database, when the least recently read page was read, and when the least recently verified
/// cross-reference was verified.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_coverage(all: &[Coverage], out: &mut dyn io::Write) -> io::Result<()> {
    let shared = shared(all.iter().map(|one| one.database.as_str()));
    for (number, one) in all.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let promise = match one.within {
            Some(span) => format!(" within {}", span_text(span.as_secs())),
            None => String::new(),
        };
        let verdict = if one.is_kept() { "everything" } else { "not everything" };
        let name = match shared.contains(one.database.as_str()) {
            true => on_server(&one.database, &one.server),
            false => one.database.clone(),
        };
        writeln!(out, "{}: {verdict} was read and proven{promise}.", printable(&name))?;
        let mut read = format!("{} of {} pages in use{promise}", one.pages_within, one.pages_in_use);
        if one.never > 0 {
            read.push_str(&format!("; {} never read", one.never));
        }
        writeln!(out, "  read    {read}")?;
        if let Some((file, first, pages, at)) = &one.oldest {
            let last = u64::from(*first) + u64::from(*pages).saturating_sub(1);
            writeln!(out, "          oldest: {file}:{first} to {file}:{last}, {} UTC", minute(at))?;
        }
        writeln!(out, "  proven  {} of {} checks of tables and indexes{promise}", one.relations_within, one.relations)?;
        if let Some(at) = &one.oldest_closed {
            writeln!(out, "          oldest: {} UTC", minute(at))?;
        }
    }
    Ok(())
}

/// Writes a line per run, the newest first.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_runs(runs: &[RunRow], out: &mut dyn io::Write) -> io::Result<()> {
    let mut table = TextTable::new(&[0, 5, 6, 7, 8]);
    table.row([
        "run",
        "started (UTC)",
        "database",
        "command",
        "verdict",
        "findings",
        "new",
        "gone",
        "seconds",
        "files",
    ]);
    for run in runs.iter().take(MOST_RUNS) {
        table.row([
            run.id.to_string(),
            minute(&run.started),
            run.database.clone().unwrap_or_else(|| "-".to_owned()),
            run.command.clone(),
            run.verdict().to_owned(),
            run.findings.to_string(),
            run.findings_new.to_string(),
            run.findings_gone.to_string(),
            format!("{:.1}", run.seconds),
            run.error.clone().unwrap_or_else(|| run.paths.clone()),
        ]);
    }
    table.write(0, out)?;
    match runs.len().saturating_sub(MOST_RUNS) {
        0 => Ok(()),
        more => writeln!(out, "{more} older runs are not shown (--since, --json and --csv show others)."),
    }
}

/// Writes findings with their history: when runs saw each finding, when runs looked for it, and who acknowledged it.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_findings(findings: &[FindingRow], out: &mut dyn io::Write) -> io::Result<()> {
    if findings.is_empty() {
        return writeln!(out, "No findings.");
    }
    let mut last = None;
    for finding in findings {
        let copy = (&finding.database, &finding.host, &finding.location);
        if last != Some(copy) {
            let of = if finding.source == "backup" { "backups of" } else { "files" };
            let (database, location) = (printable(&finding.database), printable(&finding.location));
            writeln!(out, "{database} ({of} {location} on {}):", printable(&finding.host))?;
            last = Some(copy);
        }
        let (first, seen) = (minute(&finding.first_seen), minute(&finding.last_seen));
        let looked = match finding.last_looked == finding.last_seen {
            true => String::new(),
            false => format!(", looked for {}", minute(&finding.last_looked)),
        };
        let times = if finding.seen == 1 { "once".to_owned() } else { format!("{} times", finding.seen) };
        writeln!(out, "  {}  {}: {}", finding.id, finding.life, printable(&finding.text))?;
        writeln!(out, "     seen {times}, first {first}, last {seen}{looked} (UTC)")?;
        if let (Some(by), Some(text)) = (&finding.ack_by, &finding.ack_text) {
            let until = finding.ack_until.as_deref().map_or_else(String::new, |at| format!(" until {}", minute(at)));
            writeln!(out, "     acknowledged by {}{until}: {}", printable(by), printable(text))?;
        }
    }
    Ok(())
}

/// Writes a line for each heap or index, with the growth of its rows and pages.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_objects(objects: &[ObjectRow], out: &mut dyn io::Write) -> io::Result<()> {
    let mut table = TextTable::new(&[3, 4, 5, 6, 7]);
    let heads = ["database", "object", "index", "partition", "rows", "change", "pages", "change", "changed", "proven"];
    table.row(heads);
    let change = |first: u64, last: u64| match i128::from(last) - i128::from(first) {
        0 => "-".to_owned(),
        change => format!("{change:+}"),
    };
    for object in objects {
        table.row([
            object.database.clone(),
            object.object.clone(),
            object.index.clone(),
            object.partition.to_string(),
            object.last.0.to_string(),
            change(object.first.0, object.last.0),
            object.last.1.to_string(),
            change(object.first.1, object.last.1),
            minute(&object.last_at),
            object.closed_at.as_deref().map_or_else(|| "-".to_owned(), minute),
        ]);
    }
    table.write(0, out)
}

/// Writes a line per table: when it was last proven, and when the pages were read on which the proof rests.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_tables(tables: &[TableProof], out: &mut dyn io::Write) -> io::Result<()> {
    let mut table = TextTable::new(&[]);
    table.row(["database", "table", "proven (UTC)", "pages read (UTC)", "last check"]);
    let at = |at: &Option<String>| at.as_deref().map_or_else(|| "never".to_owned(), minute);
    for one in tables {
        let verdict = if one.is_sound { "sound" } else { "findings, or not verified" };
        table.row([one.database.clone(), one.table.clone(), at(&one.proven_at), at(&one.read_at), verdict.to_owned()]);
    }
    table.write(0, out)
}

/// Writes the differences between two runs.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_difference(difference: &Difference, out: &mut dyn io::Write) -> io::Result<()> {
    let Difference { from, to, new, gone, open } = difference;
    let database = to.database.as_deref().unwrap_or_default();
    writeln!(
        out,
        "{}: run {} ({} UTC) compared with run {} ({} UTC)",
        printable(database),
        to.id,
        minute(&to.started),
        from.id,
        minute(&from.started)
    )?;
    writeln!(out, "{} new, {} gone, {open} still open.", new.len(), gone.len())?;
    for (title, findings) in [("New", new), ("Gone", gone)] {
        if !findings.is_empty() {
            writeln!(out, "\n{title}:")?;
        }
        for finding in findings {
            writeln!(out, "  {}  {}", finding.id, printable(&finding.text))?;
        }
    }
    Ok(())
}

/// Writes the throughput of runs, and the baselines of `bench`.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_baselines(
    throughput: &[Throughput],
    saved: &[history::baselines::Baseline],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut table = TextTable::new(&[4, 5, 6, 7]);
    table.row(["database", "source", "host", "command", "runs", "median MB/s", "slowest", "fastest"]);
    let megabytes = |rate: f64| format!("{:.0}", rate / 1e6);
    for one in throughput {
        table.row([
            one.database.clone(),
            one.source.clone(),
            one.host.clone(),
            one.command.clone(),
            one.rates.len().to_string(),
            megabytes(one.median()),
            megabytes(one.slowest()),
            megabytes(one.fastest()),
        ]);
    }
    if !throughput.is_empty() {
        table.write(0, out)?;
    }
    for baseline in saved {
        writeln!(out, "bench --against {}: saved {} UTC", printable(&baseline.name), minute(&baseline.saved_at))?;
    }
    if throughput.is_empty() && saved.is_empty() {
        writeln!(out, "No runs and no baselines yet.")?;
    }
    Ok(())
}

/// A ledger beside the history: what checks have kept of a full backup and of later states that build on it.
pub struct LedgerRow {
    /// Name of the database.
    pub database: String,
    /// GUID of the full backup.
    pub set: String,
    /// The full backup: its kind, and when it finished.
    pub base: String,
    /// Size of the ledger.
    pub bytes: u64,
    /// The checks whose sums are kept, the earliest first: the checked state, and when the check began.
    pub runs: Vec<(String, String)>,
    /// Why the ledger cannot be used any more; `None` if it can.
    pub why_not: Option<String>,
}

/// Writes the ledgers beside the history.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_ledgers(rows: &[LedgerRow], out: &mut dyn io::Write) -> io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "No ledgers. 'mdfsck check FULL.bak --history FILE --keep-parts SIZE' makes one.");
    }
    let mut table = TextTable::new(&[3, 4]);
    table.row(["database", "full backup", "checked", "size", "checks", "state"]);
    for row in rows {
        table.row([
            row.database.clone(),
            row.base.clone(),
            row.runs.first().map(|(_, read_at)| minute(read_at)).unwrap_or_default(),
            crate::databases::size(row.bytes),
            row.runs.len().to_string(),
            row.why_not.as_deref().map_or_else(|| "usable".to_owned(), |why| format!("not usable: {why}")),
        ]);
    }
    table.write(0, out)
}

/// Writes how many databases and runs were removed from the history.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_forgotten(forgotten: Forgotten, out: &mut dyn io::Write) -> io::Result<()> {
    let runs = if forgotten.runs == 1 { "1 run".to_owned() } else { format!("{} runs", forgotten.runs) };
    match forgotten.databases {
        0 => writeln!(out, "{runs} forgotten."),
        1 => writeln!(out, "1 database with {runs} forgotten."),
        databases => writeln!(out, "{databases} databases with {runs} forgotten."),
    }
}

/// A time to the minute: `2026-11-21 22:00` for `2026-11-21T22:00:00Z`.
pub(crate) fn minute(at: &str) -> String {
    at.get(..16).unwrap_or(at).replace('T', " ")
}

/// A span of time in words, such as `14 days` or `36 hours`.
pub(crate) fn span_text(seconds: u64) -> String {
    let (number, unit) = match seconds {
        seconds if seconds.is_multiple_of(86_400) => (seconds / 86_400, "day"),
        seconds if seconds.is_multiple_of(3600) => (seconds / 3600, "hour"),
        seconds if seconds.is_multiple_of(60) => (seconds / 60, "minute"),
        seconds => (seconds, "second"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_in_the_largest_unit_that_fits() {
        assert_eq!(span_text(14 * 86_400), "14 days");
        assert_eq!(span_text(36 * 3600), "36 hours");
        assert_eq!(span_text(60), "1 minute");
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        let of = |rates: &[f64]| Throughput {
            database: String::new(),
            source: String::new(),
            host: String::new(),
            command: String::new(),
            rates: rates.to_vec(),
        };
        assert_eq!(of(&[1.0, 3.0]).median(), 2.0);
        assert_eq!(of(&[1.0, 3.0, 9.0]).median(), 3.0);
        assert_eq!(of(&[]).median(), 0.0);
    }
}
