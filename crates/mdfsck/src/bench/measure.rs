//! Runs a cell as a process of its own, so that nothing of one run helps or burdens the next, and reads what it cost.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};

use super::matrix::{Cache, Cell};
use crate::failure::Failure;

/// What one run cost.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) seconds: f64,
    pub(crate) bytes: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) read_wait_seconds: f64,
    pub(crate) idle_seconds: f64,
    pub(crate) spilled_bytes: f64,
    pub(crate) memory_peak: f64,
    pub(crate) findings: u64,
    /// (seconds, bytes, processor seconds, memory, spilled), totals since the start.
    pub(crate) series: Vec<[f64; 5]>,
}

/// The runs of a cell.
pub(crate) struct Measured {
    pub(crate) cell: Cell,
    pub(crate) runs: Vec<Run>,
}

impl Measured {
    fn sorted(&self, value: impl Fn(&Run) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.runs.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    /// The median of a figure over the runs.
    pub(crate) fn median(&self, value: impl Fn(&Run) -> f64) -> f64 {
        let values = self.sorted(value);
        values.get(values.len() / 2).copied().unwrap_or_default()
    }

    /// Fastest and slowest run, in seconds.
    pub(crate) fn spread(&self) -> (f64, f64) {
        let values = self.sorted(|run| run.seconds);
        (values.first().copied().unwrap_or_default(), values.last().copied().unwrap_or_default())
    }

    /// Bytes a second of the median run.
    pub(crate) fn throughput(&self) -> f64 {
        self.median(|run| run.bytes / run.seconds.max(1e-9))
    }

    /// The run whose time is the median.
    pub(crate) fn typical(&self) -> Option<&Run> {
        let median = self.median(|run| run.seconds);
        self.runs.iter().find(|run| run.seconds == median)
    }

    /// As it is saved.
    pub(crate) fn to_json(&self) -> Json {
        let run = |run: &Run| {
            json!({
                "seconds": run.seconds, "bytes": run.bytes, "cpu_seconds": run.cpu_seconds,
                "read_wait_seconds": run.read_wait_seconds, "idle_seconds": run.idle_seconds,
                "spilled_bytes": run.spilled_bytes, "memory_peak": run.memory_peak, "findings": run.findings,
                "series": run.series,
            })
        };
        json!({
            "cell": self.cell.name(),
            "configuration": self.cell.configuration.name,
            "maxdop": self.cell.maxdop,
            "memory": self.cell.memory,
            "cache": self.cell.cache.name(),
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
        })
    }
}

/// Runs a cell once.
pub(crate) fn run(cell: &Cell, files: &[PathBuf]) -> Result<Run, Failure> {
    prepare(cell.cache, files)?;
    let program = std::env::current_exe().map_err(|error| Failure::blind(format!("cannot run myself: {error}")))?;
    let output = Command::new(program).args(cell.arguments()).args(files).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::blind(format!("cannot run myself: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |kind: &str| {
        let lines = text.lines().rev().filter_map(|line| serde_json::from_str::<Json>(line).ok());
        lines.into_iter().find(|line| line["kind"] == kind)
    };
    let (Some(statistics), Some(summary)) = (line("statistics"), line("summary")) else {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::usage(format!("{}: {}", cell.name(), error.trim())));
    };
    Ok(read(&statistics, &summary))
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
        series: series.iter().map(sample).collect(),
    }
}

/// Brings the files into the cache, or out of it.
fn prepare(cache: Cache, files: &[PathBuf]) -> Result<(), Failure> {
    for path in files {
        let file = File::open(path).map_err(|error| Failure::blind(format!("{}: {error}", path.display())))?;
        match cache {
            Cache::Warm => {
                let read = std::io::copy(&mut &file, &mut std::io::sink());
                read.map_err(|error| Failure::blind(format!("{}: {error}", path.display())))?;
            }
            Cache::Cold => drop_from_cache(&file, path)?,
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn drop_from_cache(file: &File, path: &Path) -> Result<(), Failure> {
    let dropped = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    dropped.map_err(|error| Failure::blind(format!("{}: cannot be dropped from the cache: {error}", path.display())))
}

#[cfg(not(target_os = "linux"))]
fn drop_from_cache(_file: &File, _path: &Path) -> Result<(), Failure> {
    Err(Failure::usage("--cache cold: this system does not let a program drop files from its cache"))
}
