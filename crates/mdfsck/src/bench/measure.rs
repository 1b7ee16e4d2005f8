//! Runs each cell in a separate process, so that runs do not affect each other. Measures the cost of each run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use jobs::failure::Failure;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::raw;
use crate::matrix::Cell;

/// A check that takes less than this number of seconds is too short to measure, since starting a process takes some
/// hundredths of a second.
const SMALLEST_SECONDS: f64 = 0.1;

/// The cost of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Run {
    pub(crate) seconds: f64,
    pub(crate) bytes: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) read_wait_seconds: f64,
    pub(crate) idle_seconds: f64,
    pub(crate) spilled_bytes: f64,
    pub(crate) memory_peak: f64,
    pub(crate) findings: u64,
    /// Number of table rows that the check has read.
    pub(crate) rows: u64,
    /// All counters of the run, by name. Some counters are sums over all phases of the check; the others come from the
    /// operating system.
    pub(crate) counters: BTreeMap<String, f64>,
    /// Samples of (elapsed seconds, bytes read, processor seconds, memory in bytes, spilled bytes). The first three
    /// values are totals since the start of the run.
    pub(crate) series: Vec<[f64; 5]>,
}

/// The median of `values`, which must be in ascending order: the middle value, or the mean of the two middle values.
pub(super) fn median(values: &[f64]) -> f64 {
    let middle = |at: usize| values.get(at).copied().unwrap_or_default();
    (middle(values.len().saturating_sub(1) / 2) + middle(values.len() / 2)) / 2.0
}

/// The runs of a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    #[serde(flatten)]
    pub(crate) cell: Cell,
    pub(crate) runs: Vec<Run>,
    /// The reason why the cell could not run.
    #[serde(default)]
    pub(crate) error: Option<String>,
}

impl Measured {
    fn sorted(&self, value: impl Fn(&Run) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.runs.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    /// The median of `value` over the runs.
    pub(crate) fn median(&self, value: impl Fn(&Run) -> f64) -> f64 {
        median(&self.sorted(value))
    }

    /// The mean and the standard deviation of `value` over the runs.
    pub(crate) fn mean(&self, value: impl Fn(&Run) -> f64) -> (f64, f64) {
        let count = self.runs.len().max(1) as f64;
        let mean = self.runs.iter().map(&value).sum::<f64>() / count;
        let squares: f64 = self.runs.iter().map(|run| (value(run) - mean).powi(2)).sum();
        (mean, (squares / (count - 1.0).max(1.0)).sqrt())
    }

    /// The times of the fastest and the slowest run, in seconds.
    pub(crate) fn spread(&self) -> (f64, f64) {
        let values = self.sorted(|run| run.seconds);
        (values.first().copied().unwrap_or_default(), values.last().copied().unwrap_or_default())
    }

    /// Bytes per second, computed with the median time.
    pub(crate) fn throughput(&self) -> f64 {
        self.median(|run| run.bytes) / self.median(|run| run.seconds).max(1e-9)
    }

    /// The run whose time is closest to the median.
    pub(crate) fn typical(&self) -> Option<&Run> {
        let median = self.median(|run| run.seconds);
        let distance = |run: &Run| (run.seconds - median).abs();
        self.runs.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    /// Whether the checks are so short that the start of the process dominates their time.
    pub(crate) fn is_too_small(&self) -> bool {
        !self.runs.is_empty() && self.median(|run| run.seconds) < SMALLEST_SECONDS
    }

    /// The mean and the standard deviation of every counter over the runs.
    pub(crate) fn counters(&self) -> Json {
        let mean = |name: &String| {
            let (mean, deviation) = self.mean(|run| run.counters.get(name).copied().unwrap_or_default());
            (name.clone(), json!({"mean": mean, "deviation": deviation}))
        };
        let names = self.runs.iter().flat_map(|run| run.counters.keys()).collect::<BTreeSet<_>>();
        Json::Object(names.into_iter().map(mean).collect())
    }
}

/// Runs a cell once. Returns the cost of the run, and the first line of the check's output, which describes the
/// database.
pub(crate) fn run(cell: &Cell, files: &[PathBuf]) -> Result<(Run, Json), Failure> {
    raw::prepare(cell.cache, files)?;
    let program =
        std::env::current_exe().map_err(|error| Failure::unable(format!("cannot start another mdfsck: {error}")))?;
    let output = Command::new(program).args(cell.arguments()).args(files).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::unable(format!("cannot start another mdfsck: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |kind: &str| {
        let lines = text.lines().rev().filter_map(|line| serde_json::from_str::<Json>(line).ok());
        lines.into_iter().find(|line| line["kind"] == kind)
    };
    let (Some(statistics), Some(summary)) = (line("statistics"), line("summary")) else {
        let error = String::from_utf8_lossy(&output.stderr);
        // The last line that the process wrote to stderr has the reason for the failure.
        let reason = error
            .lines()
            .last()
            .map_or("the check ended without a message", |line| line.trim().trim_start_matches("mdfsck: "));
        return Err(Failure::unable(reason));
    };
    Ok((read(&statistics, &summary), line("run").unwrap_or_default()))
}

fn read(statistics: &Json, summary: &Json) -> Run {
    let number = |value: &Json| value.as_f64().unwrap_or_default();
    let phases = statistics["phases"].as_array().map(Vec::as_slice).unwrap_or_default();
    let sum = |key: &str| phases.iter().map(|phase| number(&phase[key])).sum();
    let sample = |sample: &Json| {
        ["seconds", "bytes", "cpu_seconds", "memory_bytes", "spilled_bytes"].map(|key| number(&sample[key]))
    };
    let series = statistics["series"].as_array().map(Vec::as_slice).unwrap_or_default();
    Run {
        seconds: number(&statistics["seconds"]),
        bytes: sum("bytes"),
        cpu_seconds: sum("cpu_user_seconds") + sum("cpu_system_seconds"),
        read_wait_seconds: sum("read_wait_seconds"),
        idle_seconds: sum("idle_seconds"),
        spilled_bytes: number(&statistics["spilled_bytes"]),
        memory_peak: number(&statistics["memory_peak"]),
        findings: summary["findings"].as_u64().unwrap_or_default(),
        rows: summary["rows"].as_u64().unwrap_or_default(),
        counters: counters(statistics),
        series: series.iter().map(sample).collect(),
    }
}

/// All numbers in the statistics of a run. If several phases have a number with the same name, these numbers are added
/// up.
fn counters(statistics: &Json) -> BTreeMap<String, f64> {
    let mut counters = BTreeMap::new();
    let phases = statistics["phases"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_system = statistics["counters"].as_object();
    let of_phases = phases.iter().filter_map(Json::as_object).flatten().filter(|(name, _)| *name != "memory_peak");
    for (name, value) in of_system.into_iter().flatten().chain(of_phases) {
        let parts = value.as_object().into_iter().flatten().map(|(part, value)| (format!("{name}.{part}"), value));
        for (name, value) in parts.chain([(name.clone(), value)]) {
            if let Some(value) = value.as_f64() {
                *counters.entry(name).or_default() += value;
            }
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert_eq!([median(&[]), median(&[3.0]), median(&[1.0, 4.0]), median(&[1.0, 2.0, 9.0])], [0.0, 3.0, 2.5, 2.0]);
    }
}
