//! `mdfsck bench`: what a check costs, over a matrix of configurations.
//!
//! Cells take turns, so that a machine that slows down affects all of them alike.

mod baseline;
mod html;
mod matrix;
mod measure;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use serde_json::{Value as Json, json};
use source::{DataFiles, PageSource};

use crate::cli::BenchArguments;
use crate::failure::{Failure, warn};
use crate::output;
use matrix::Cell;
pub(crate) use matrix::{Cache, Configuration, configuration};
use measure::Measured;

/// Columns of the results.
const HEADS: [&str; 12] = [
    "cell",
    "median s",
    "mean s",
    "deviation",
    "fastest",
    "slowest",
    "GB/s",
    "processor s",
    "read wait s",
    "queue wait s",
    "peak MB",
    "spilled MB",
];

/// The figures of a cell, in the order of [`HEADS`].
fn figures(cell: &Measured) -> [String; 12] {
    let (fastest, slowest) = cell.spread();
    let (mean, deviation) = cell.mean(|run| run.seconds);
    [
        cell.cell.name(),
        format!("{:.3}", cell.median(|run| run.seconds)),
        format!("{mean:.3}"),
        format!("{:.1} %", 100.0 * deviation / mean.max(1e-9)),
        format!("{fastest:.3}"),
        format!("{slowest:.3}"),
        format!("{:.3}", cell.throughput() / 1e9),
        format!("{:.2}", cell.median(|run| run.cpu_seconds)),
        format!("{:.3}", cell.median(|run| run.read_wait_seconds)),
        format!("{:.3}", cell.median(|run| run.idle_seconds)),
        format!("{:.0}", cell.median(|run| run.memory_peak) / f64::from(1 << 20)),
        format!("{:.1}", cell.median(|run| run.spilled_bytes) / 1e6),
    ]
}

pub(crate) fn run(arguments: &BenchArguments) -> Result<u8, Failure> {
    let baseline = arguments.against.as_deref().map(baseline::load).transpose()?;
    let (files, _kept) = database(arguments)?;
    let mut measured: Vec<Measured> =
        cells(arguments).into_iter().map(|cell| Measured { cell, runs: Vec::new() }).collect();
    let rounds = usize::from(arguments.repeat.max(1));
    for round in 0..rounds {
        for cell in &mut measured {
            warn(format!("round {} of {rounds}: {}", round + 1, cell.cell.name()));
            cell.runs.push(measure::run(&cell.cell, &files)?);
        }
    }
    same_findings(&measured)?;
    let results = results(&files, &measured);
    if let Some(name) = &arguments.save {
        baseline::save(name, &results)?;
    }
    write(arguments.json.as_deref(), || Ok(format!("{results:#}\n")))?;
    write(arguments.csv.as_deref(), || csv(&measured))?;
    write(arguments.html.as_deref(), || Ok(html::page(&title(arguments, &files), &measured)))?;
    output::print(|out| {
        let change = |cell: &Measured| Some(change_text(baseline::change(baseline.as_ref()?, cell)));
        let rows = measured.iter().map(|cell| (figures(cell).to_vec(), change(cell)));
        report::statistics::write_figures(&HEADS, rows, out)
    })?;
    Ok(0)
}

/// What was built for the measurement.
#[cfg(feature = "lab")]
fn built(arguments: &BenchArguments) -> Option<String> {
    arguments.build.title()
}

/// Nothing can be built without the lab.
#[cfg(not(feature = "lab"))]
fn built(_: &BenchArguments) -> Option<String> {
    None
}

/// A description of what was measured.
fn title(arguments: &BenchArguments, files: &[PathBuf]) -> String {
    let first = files.first().map(|path| path.display().to_string()).unwrap_or_default();
    let count = match files.len() {
        0 | 1 => String::new(),
        files => format!(", {files} files"),
    };
    format!("mdfsck bench: {}{count}", built(arguments).unwrap_or(first))
}

fn change_text(change: Option<baseline::Change>) -> String {
    match change {
        None => "not in the baseline".to_owned(),
        Some(change) => {
            let noise = if change.is_outside_noise { "" } else { " (within noise)" };
            format!("{:+.1} %{noise}", (change.ratio - 1.0) * 100.0)
        }
    }
}

/// The data files to check; files built for the measurement are deleted with the folder.
fn database(arguments: &BenchArguments) -> Result<(Vec<PathBuf>, Option<TempDir>), Failure> {
    #[cfg(feature = "lab")]
    if let Some(built) = arguments.build.database(&arguments.paths)? {
        return Ok(built);
    }
    Ok((files(&arguments.paths)?, None))
}

/// The data files themselves: a folder means those in it.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
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
                for &maxdop in &arguments.maxdop {
                    cells.push(Cell { configuration, maxdop, memory, cache });
                }
            }
        }
    }
    cells
}

/// The answer does not depend on the way: cells of one depth must have the same findings.
fn same_findings(measured: &[Measured]) -> Result<(), Failure> {
    for physical in [false, true] {
        let of_depth = measured.iter().filter(|cell| cell.cell.configuration.name.starts_with("physical") == physical);
        let mut findings: Vec<u64> = of_depth.flat_map(|cell| cell.runs.iter().map(|run| run.findings)).collect();
        findings.dedup();
        if findings.len() > 1 {
            return Err(Failure::unable(
                "runs of the same depth did not find the same: the files change, or this is a defect",
            ));
        }
    }
    Ok(())
}

fn results(files: &[PathBuf], measured: &[Measured]) -> Json {
    json!({
        "kind": "bench",
        "v": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "files": files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "cells": measured.iter().map(Measured::to_json).collect::<Vec<_>>(),
    })
}

fn csv(measured: &[Measured]) -> Result<String, Failure> {
    let quoted = |cells: &mut dyn Iterator<Item = String>| cells.collect::<Vec<_>>().join(",") + "\n";
    let mut text = quoted(&mut HEADS.iter().map(|head| (*head).to_owned()));
    for cell in measured {
        text.push_str(&quoted(&mut figures(cell).into_iter()));
    }
    Ok(text)
}

fn write(path: Option<&Path>, text: impl FnOnce() -> Result<String, Failure>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    output::save(path, &text()?)
}
