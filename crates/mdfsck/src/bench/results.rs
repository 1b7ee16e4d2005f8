//! The results of `bench`. They can be saved, loaded, and compared with earlier results.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use events::{Clock, Moment};
use jobs::failure::Failure;
use jobs::size;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::machine::Machine;
use super::measure::Measured;
use super::raw::RawRead;
use crate::matrix::Cell;

/// The format version of saved results.
const FORM: u32 = 1;
/// 1970-01-01 as a [`Moment`].
const MOMENT_OF_1970: i64 = 116_444_736_000_000_000;

/// The measurements, together with a description of the database and the machine, and the time of the run. When older
/// saved results are loaded, fields that later versions of mdfsck added are empty.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Results {
    kind: String,
    v: u32,
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) date: Option<String>,
    #[serde(default)]
    pub(crate) machine: Machine,
    #[serde(default)]
    pub(crate) database: Subject,
    files: Vec<String>,
    processors: usize,
    /// Number of rounds; each round runs every cell once.
    #[serde(default)]
    pub(crate) repeat: u16,
    #[serde(default)]
    pub(crate) raw: Vec<RawRead>,
    pub(crate) cells: Vec<Measured>,
}

/// The database that was checked.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Subject {
    pub(crate) name: Option<String>,
    pub(crate) db_version: Option<u64>,
    /// Total size of all files, in bytes.
    pub(crate) bytes: Option<u64>,
    pub(crate) rows: Option<u64>,
}

impl Subject {
    /// Describes the database as text.
    pub(crate) fn text(&self) -> String {
        let version = self.db_version.and_then(|version| format::version::product(u16::try_from(version).ok()?));
        let parts = [
            self.name.clone(),
            version.map(str::to_owned),
            self.bytes.map(size::text),
            self.rows.map(|rows| format!("{rows} rows")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// The comparison of a cell with the cell of the baseline that has the same settings.
pub(crate) struct Change {
    /// The median time of this cell divided by the median time of the cell in the baseline.
    pub(crate) ratio: f64,
    /// Whether the change is larger than the variation between runs: every new run is faster than all runs of the
    /// baseline, or every new run is slower than all runs of the baseline.
    pub(crate) is_outside_noise: bool,
}

impl Change {
    /// The change of the time in percent; negative if the check became faster.
    pub(crate) fn percent(&self) -> f64 {
        (self.ratio - 1.0) * 100.0
    }

    /// Formats the change as text.
    pub(crate) fn text(&self) -> String {
        let noise = if self.is_outside_noise { "" } else { " (within noise)" };
        format!("{:+.1} %{noise}", self.percent())
    }
}

impl Results {
    /// Describes this machine, the files and the present time. The new results contain no measurements yet.
    pub(crate) fn new(files: &[PathBuf], repeat: u16) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
        let ticks = i64::try_from(now).ok().and_then(|now| now.checked_mul(1000 * Moment::MILLISECOND));
        let date = ticks
            .and_then(|ticks| ticks.checked_add(MOMENT_OF_1970))
            .map(|ticks| Moment(ticks).iso(Clock::Utc).replacen(".000Z", "Z", 1));
        let bytes = files.iter().map(|file| file.metadata().map(|metadata| metadata.len())).sum::<Result<u64, _>>();
        Self {
            kind: "bench".to_owned(),
            v: FORM,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            date,
            machine: Machine::this(files.first().map(PathBuf::as_path)),
            database: Subject { bytes: bytes.ok(), ..Subject::default() },
            files: files.iter().map(|path| path.display().to_string()).collect(),
            processors: super::machine::processors(),
            repeat,
            raw: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// Formats the results as JSON. Includes the figures that are computed from the runs of each cell.
    pub(crate) fn json(&self) -> Result<String, Failure> {
        let unwritten = |error| Failure::unable(format!("the results cannot be written as JSON: {error}"));
        let mut json = serde_json::to_value(self).map_err(unwritten)?;
        let cells = json.get_mut("cells").and_then(Json::as_array_mut).into_iter().flatten();
        for (json, cell) in cells.zip(&self.cells).filter_map(|(json, cell)| Some((json.as_object_mut()?, cell))) {
            json.insert("cell".to_owned(), cell.cell.name().into());
            json.insert("too_small".to_owned(), cell.is_too_small().into());
            json.insert("speed_up".to_owned(), self.speed_up(cell).into());
            json.insert("counters".to_owned(), cell.counters());
        }
        Ok(format!("{json:#}\n"))
    }

    /// The facts about the database and the machine, as pairs of a name and a value.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![("database", self.database.text()), ("files", self.files.join(", "))];
        facts.extend(self.machine.facts());
        facts.extend(self.date.clone().map(|date| ("date", date)));
        facts.push(("version", format!("mdfsck {}", self.version)));
        facts.push(("runs", format!("{} of each cell", self.repeat)));
        facts
    }

    /// The raw read with the same cache state and the same number of threads as `cell`.
    pub(crate) fn raw(&self, cell: &Cell) -> Option<&RawRead> {
        let of_cell = |raw: &&RawRead| (raw.cache, raw.threads) == (cell.cache, cell.maxdop);
        self.raw.iter().find(of_cell).filter(|raw| !raw.seconds.is_empty())
    }

    /// The speed of `cell` divided by the speed of the cell with the fewest threads and otherwise the same settings.
    pub(crate) fn speed_up(&self, cell: &Measured) -> Option<f64> {
        let is_like = |other: &&Measured| Cell { maxdop: cell.cell.maxdop, ..other.cell } == cell.cell;
        let seconds = |cell: &Measured| cell.median(|run| run.seconds);
        let measured = |cell: &&Measured| !cell.runs.is_empty() && !cell.is_too_small();
        let fewest = self.cells.iter().filter(is_like).filter(measured).min_by_key(|other| other.cell.maxdop)?;
        measured(&cell).then(|| seconds(fewest) / seconds(cell))
    }

    /// The cell of these results with the same settings as `cell`. In older saved results, a number of 0 threads means
    /// one thread per processor.
    pub(crate) fn like(&self, cell: &Cell) -> Option<&Measured> {
        let threads = |maxdop: u16| if maxdop == 0 { self.processors } else { usize::from(maxdop) };
        let is_like = |other: &&Measured| {
            let other = other.cell;
            threads(other.maxdop) == usize::from(cell.maxdop) && Cell { maxdop: cell.maxdop, ..other } == *cell
        };
        self.cells.iter().find(is_like).filter(|cell| !cell.runs.is_empty())
    }

    /// Compares the cell `now` with the cell of these results that has the same settings. `None` if these results have
    /// no such cell, or if one of the two cells has no runs.
    pub(crate) fn change(&self, now: &Measured) -> Option<Change> {
        let then = self.like(&now.cell).filter(|_| !now.runs.is_empty())?;
        let ((then_fastest, then_slowest), (fastest, slowest)) = (then.spread(), now.spread());
        Some(Change {
            ratio: now.median(|run| run.seconds) / then.median(|run| run.seconds).max(1e-9),
            is_outside_noise: fastest > then_slowest || slowest < then_fastest,
        })
    }

    /// The reasons why these results should not be compared with `then`.
    pub(crate) fn differences(&self, then: &Self) -> Vec<String> {
        let (now_bytes, then_bytes) = (self.database.bytes, then.database.bytes);
        let sizes = now_bytes.zip(then_bytes).filter(|(now, then)| now != then);
        let database = sizes.map(|(now, then)| format!("database {}, now {}", size::text(then), size::text(now)));
        database.into_iter().chain(self.machine.differences(&then.machine)).collect()
    }
}

/// Parses results that were saved as JSON.
///
/// # Errors
/// If the text does not hold results, or holds results in a newer format.
pub(super) fn read(text: &str) -> Result<Results, String> {
    let results: Results = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match (results.kind.as_str(), results.v) {
        ("bench", FORM) => Ok(results),
        ("bench", v) => Err(format!("its version {v} is newer than this mdfsck can read")),
        (kind, _) => Err(format!("its kind is '{kind}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as earlier versions of `--save` wrote it, before machine, database and raw reads were added to the
    /// format.
    const OLD: &str = r#"{"kind": "bench", "v": 1, "version": "0.1.0", "files": ["a.mdf"], "processors": 2, "cells": [
        {"cell": "full dop 0 memory default warm", "configuration": "full", "maxdop": 0, "memory": null, "cache": "warm",
         "counters": {}, "runs": [{"seconds": 0.25, "bytes": 100.0, "cpu_seconds": 0.2, "read_wait_seconds": 0.0,
         "idle_seconds": 0.0, "spilled_bytes": 0.0, "memory_peak": 1.0, "findings": 0, "counters": {}, "series": []}]}]}"#;

    fn cell(maxdop: u16) -> Cell {
        Cell {
            configuration: crate::matrix::configuration("full").unwrap(),
            maxdop,
            memory: None,
            cache: crate::matrix::Cache::Warm,
        }
    }

    #[test]
    fn what_was_saved_before_is_still_read() {
        let old: Results = serde_json::from_str(OLD).unwrap();
        assert!(old.machine == Machine::default() && old.raw.is_empty());
        assert!(old.like(&cell(2)).is_some() && old.like(&cell(1)).is_none());
        let mut now = old.cells[0].clone();
        (now.cell, now.runs[0].seconds) = (cell(2), 0.5);
        let change = old.change(&now).unwrap();
        assert!(change.ratio == 2.0 && change.is_outside_noise && change.text() == "+100.0 %");
        assert!(old.differences(&old).is_empty());
    }

    #[test]
    fn speed_up_is_against_the_fewest_threads() {
        let mut results: Results = serde_json::from_str(OLD).unwrap();
        let with = |maxdop, seconds| {
            let mut measured = results.cells[0].clone();
            (measured.cell, measured.runs[0].seconds) = (cell(maxdop), seconds);
            measured
        };
        results.cells = vec![with(4, 0.25), with(1, 1.0), with(8, 0.01)];
        let speed_ups: Vec<Option<f64>> = results.cells.iter().map(|cell| results.speed_up(cell)).collect();
        // A cell that is too short to measure has no speed-up.
        assert_eq!(speed_ups, [Some(4.0), Some(1.0), None]);
    }
}
