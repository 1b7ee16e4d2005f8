//! The lists in the progress of a check. They are stored as JSON without field names. A text that is too long, or that
//! is not a list of the expected form, is read as an empty list.

use findings::{Sample, phase_named};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{MOST_CELLS, MOST_FILES, MOST_PHASES, MOST_SAMPLES, Swept, SweptFile};

/// The fields of a sample: seconds since the start, bytes read, processor seconds, bytes of memory, bytes spilled to
/// disk.
type SampleLine = (f64, u64, Option<f64>, Option<u64>, u64);
/// The fields of a file: file ID, number of pages, pages per cell, and a text with one digit for each cell.
type FileLine = (u16, u32, u32, String);

pub(super) fn phases_text(phases: &[(&'static str, f64)]) -> String {
    text(phases.iter().map(|(name, second)| (*name, rounded(*second))))
}

pub(super) fn phases_of(text: &str) -> Vec<(&'static str, f64)> {
    let phases: Vec<(String, f64)> = list(text, MOST_PHASES);
    let known = |(name, second): (String, f64)| Some((phase_named(&name)?, second.max(0.0)));
    phases.into_iter().filter_map(known).collect()
}

pub(super) fn samples_text(samples: &[Sample]) -> String {
    let line = |sample: &Sample| -> SampleLine {
        let Sample { seconds, bytes, cpu_seconds, memory_bytes, spilled_bytes } = *sample;
        (rounded(seconds), bytes, cpu_seconds.map(rounded), memory_bytes, spilled_bytes)
    };
    text(samples.iter().map(line))
}

pub(super) fn samples_of(text: &str) -> Vec<Sample> {
    let lines: Vec<SampleLine> = list(text, MOST_SAMPLES);
    let sample = |(seconds, bytes, cpu_seconds, memory_bytes, spilled_bytes): SampleLine| Sample {
        seconds: seconds.max(0.0),
        bytes,
        cpu_seconds,
        memory_bytes,
        spilled_bytes,
    };
    let samples: Vec<Sample> = lines.into_iter().map(sample).collect();
    // If the samples are not in the order of time, all of them are discarded.
    if samples.is_sorted_by(|one, next| one.seconds <= next.seconds) { samples } else { Vec::new() }
}

pub(super) fn files_text(files: &[SweptFile]) -> String {
    let digit = |cell: &Swept| match cell {
        Swept::Nothing => '0',
        Swept::Some => '1',
        Swept::All => '2',
    };
    let line = |file: &SweptFile| -> FileLine {
        (file.file, file.pages, file.cell_pages, file.cells.iter().map(digit).collect())
    };
    text(files.iter().map(line))
}

pub(super) fn files_of(text: &str) -> Vec<SweptFile> {
    let lines: Vec<FileLine> = list(text, MOST_FILES);
    let cell = |digit: char| match digit {
        '0' => Swept::Nothing,
        '1' => Swept::Some,
        _ => Swept::All,
    };
    let files: Vec<SweptFile> = lines
        .into_iter()
        .map(|(file, pages, cell_pages, digits)| SweptFile {
            file,
            pages,
            cell_pages,
            cells: digits.chars().map(cell).collect(),
        })
        .collect();
    let is_whole =
        |file: &SweptFile| file.cell_pages > 0 && file.cells.len() == file.pages.div_ceil(file.cell_pages) as usize;
    let cells: usize = files.iter().map(|file| file.cells.len()).sum();
    if cells <= MOST_CELLS && files.iter().all(is_whole) { files } else { Vec::new() }
}

fn text<T: Serialize>(lines: impl Iterator<Item = T>) -> String {
    // Writing numbers and strings to memory cannot fail.
    serde_json::to_string(&lines.collect::<Vec<T>>()).unwrap_or_else(|_| "[]".to_owned())
}

fn list<T: DeserializeOwned>(text: &str, most: usize) -> Vec<T> {
    let list: Vec<T> = serde_json::from_str(text).unwrap_or_default();
    if list.len() <= most { list } else { Vec::new() }
}

/// Rounds a time to hundredths of a second, which is precise enough for a progress display and keeps the stored text
/// short.
fn rounded(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}
