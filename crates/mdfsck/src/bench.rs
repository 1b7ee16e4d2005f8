//! `mdfsck bench`: measures the cost of a check over a matrix of configurations.
//!
//! Each round runs every cell of the matrix once, so that a machine that slows down affects all cells equally. If a
//! cell cannot run, the results show the reason, and the measurement of the other cells continues.

mod baselines;
mod charts;
mod figures;
mod html;
mod machine;
mod measure;
mod raw;
mod results;

use std::path::PathBuf;

use jobs::failure::Failure;
use serde_json::Value as Json;
use source::{DataFiles, PageSource};
use tempfile::TempDir;

use crate::cli::BenchArguments;
use crate::matrix::Cell;
use crate::output::{self, Target};
use crate::speaker::warn;
use baselines::Place;
use measure::Measured;
use raw::RawRead;
use results::{Results, Subject};

pub(crate) fn run(arguments: &BenchArguments) -> Result<u8, Failure> {
    let place = Place::of(arguments.history.as_deref());
    let baseline = arguments.against.as_deref().map(|name| place.load(name)).transpose()?;
    // Tests the targets before hours of measurement, so that an unwritable target is reported early.
    let saved = arguments.save.as_deref().map(|name| place.target(name)).transpose()?;
    let target = |path: &Option<PathBuf>| path.as_deref().map(Target::at).transpose();
    let [json, csv, html] = [target(&arguments.json)?, target(&arguments.csv)?, target(&arguments.html)?];
    let (files, _kept) = database(arguments)?;
    let mut results = Results::new(&files, arguments.repeat);
    measure(cells(arguments), &files, &mut results);
    let compared = arguments.against.as_deref().zip(baseline.as_ref());
    // Prints the table before the files are written, so that the results are not lost if a file cannot be written.
    print(&results, baseline.as_ref())?;
    saved.map_or(Ok(()), |saved| saved.write(&results))?;
    write(json, || results.json())?;
    write(csv, || figures::csv(&results, baseline.as_ref()))?;
    write(html, || Ok(html::page(&title(arguments, &files), &results, compared)))?;
    if let Some((name, then)) = compared {
        for difference in results.differences(then) {
            warn(format!("the baseline {name} was measured under other conditions: {difference}"));
        }
    }
    same_findings(&results.cells)?;
    let failed = results.cells.iter().filter(|cell| cell.error.is_some()).count();
    Ok(match failed {
        0 => 0,
        all if all == results.cells.len() => Failure::UNABLE | Failure::INCOMPLETE,
        _ => Failure::INCOMPLETE,
    })
}

/// Prints the table, and the facts about the database and the machine.
fn print(results: &Results, baseline: Option<&Results>) -> Result<(), Failure> {
    output::print(|out| {
        report::statistics::write_figures(&figures::heads(), figures::rows(results, baseline), out)?;
        writeln!(out)?;
        report::statistics::write_facts(results.facts(), out)
    })
}

/// Runs all cells in rounds. At the start of each round, reads the files without a check, once for each combination of
/// cache state and number of threads.
fn measure(cells: Vec<Cell>, files: &[PathBuf], results: &mut Results) {
    for cell in &cells {
        let is_there = results.raw.iter().any(|raw| (raw.cache, raw.threads) == (cell.cache, cell.maxdop));
        if !is_there {
            results.raw.push(RawRead { cache: cell.cache, threads: cell.maxdop, bytes: 0, seconds: Vec::new() });
        }
    }
    results.cells = cells.into_iter().map(|cell| Measured { cell, runs: Vec::new(), error: None }).collect();
    let rounds = results.repeat;
    for round in 1..=rounds {
        // Ignores read errors here: the cells read the same files and report the errors.
        results.raw.retain_mut(|raw| raw.round(files).is_ok());
        for measured in results.cells.iter_mut().filter(|measured| measured.error.is_none()) {
            let name = measured.cell.name();
            warn(format!("round {round} of {rounds}: {name}"));
            match measure::run(&measured.cell, files) {
                Ok((run, about)) => {
                    results.database.learn(&about, run.rows);
                    measured.runs.push(run);
                }
                Err(failure) => {
                    warn(format!("{name}: could not run: {}", failure.text));
                    measured.runs.clear();
                    measured.error = Some(failure.text);
                }
            }
        }
    }
}

impl Subject {
    /// Stores the database's name and version from the first line of a check's output, and the number of rows.
    fn learn(&mut self, about: &Json, rows: u64) {
        self.name = about["database"].as_str().map(str::to_owned);
        self.db_version = about["db_version"].as_u64();
        self.rows = self.rows.max(Some(rows));
    }
}

/// A description of the database that the lab built for the measurement; `None` if it built no database.
#[cfg(feature = "lab")]
fn built(arguments: &BenchArguments) -> Option<String> {
    arguments.build.title()
}

/// Returns `None`, since a build without the lab cannot build a database.
#[cfg(not(feature = "lab"))]
fn built(_: &BenchArguments) -> Option<String> {
    None
}

/// A description of the database that was measured.
fn title(arguments: &BenchArguments, files: &[PathBuf]) -> String {
    let first = files.first().map(|path| path.display().to_string()).unwrap_or_default();
    let count = match files.len() {
        0 | 1 => String::new(),
        files => format!(", {files} files"),
    };
    format!("mdfsck bench: {}{count}", built(arguments).unwrap_or(first))
}

/// The data files to check. If the lab has built them, also returns the folder that contains them. The folder is
/// deleted when the returned value is dropped.
fn database(arguments: &BenchArguments) -> Result<(Vec<PathBuf>, Option<TempDir>), Failure> {
    #[cfg(feature = "lab")]
    if let Some(built) = arguments.build.database(&arguments.paths)? {
        return Ok(built);
    }
    Ok((files(&arguments.paths)?, None))
}

/// The data files in the named paths and folders. If one of the paths is a backup, returns the paths unchanged.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if paths.iter().any(|path| path.as_os_str() == "-") {
        return Err(Failure::usage(
            "-: a benchmark reads its files several times; standard input can be read only once",
        ));
    }
    if paths.iter().any(|path| source::is_backup(path)) {
        source::open(paths, &[], false)?;
        return Ok(paths.to_vec());
    }
    Ok(DataFiles::open(paths)?.files().iter().map(|file| file.path.clone()).collect())
}

fn cells(arguments: &BenchArguments) -> Vec<Cell> {
    let memories: Vec<Option<u64>> = match arguments.memory.as_slice() {
        [] => vec![None],
        sizes => sizes.iter().copied().map(Some).collect(),
    };
    let mut cells = Vec::new();
    for &cache in &arguments.cache {
        for &memory in &memories {
            for &configuration in &arguments.configurations {
                for maxdop in arguments.maxdop.iter().map(|&maxdop| threads(maxdop)) {
                    let cell = Cell { configuration, maxdop, memory, cache };
                    if !cells.contains(&cell) {
                        cells.push(cell);
                    }
                }
            }
        }
    }
    cells
}

/// Number of threads for a degree of parallelism. As in a check, 0 means one thread per processor.
fn threads(maxdop: u16) -> u16 {
    if maxdop == 0 { u16::try_from(machine::processors()).unwrap_or(u16::MAX) } else { maxdop }
}

/// Requires that all cells with the same depth of check have the same findings. Only the depth may change the findings;
/// the other settings of a configuration must not.
fn same_findings(measured: &[Measured]) -> Result<(), Failure> {
    for physical in [false, true] {
        let of_depth = measured.iter().filter(|cell| cell.cell.configuration.is_physical() == physical);
        let mut findings: Vec<u64> = of_depth.flat_map(|cell| cell.runs.iter().map(|run| run.findings)).collect();
        findings.dedup();
        if findings.len() > 1 {
            return Err(Failure::unable(
                "runs of the same depth had different findings: the files changed between runs, or mdfsck has a defect",
            ));
        }
    }
    Ok(())
}

fn write(target: Option<Target>, text: impl FnOnce() -> Result<String, Failure>) -> Result<(), Failure> {
    let Some(target) = target else { return Ok(()) };
    let text = text()?;
    target.write(|out| out.write_all(text.as_bytes()))
}
