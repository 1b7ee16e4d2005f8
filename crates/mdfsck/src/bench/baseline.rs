//! Saved results, and what has changed since.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::measure::{Measured, median};
use crate::failure::Failure;
use crate::output;

/// Folder of baselines, in the current folder.
const FOLDER: &str = ".mdfsck-bench";

/// How a cell compares with its baseline.
pub(crate) struct Change {
    /// Time now, divided by the time then.
    pub(crate) ratio: f64,
    /// No run of one is as fast as a run of the other.
    pub(crate) is_outside_noise: bool,
}

fn path(name: &str) -> Result<PathBuf, Failure> {
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) && name != "..";
    if !is_plain {
        return Err(Failure::usage(format!(
            "{name}: the name of a baseline has letters, digits, '-', '_' and '.' only"
        )));
    }
    Ok(Path::new(FOLDER).join(format!("{name}.json")))
}

/// Saves results under a name.
pub(crate) fn save(name: &str, results: &Json) -> Result<(), Failure> {
    let path = path(name)?;
    fs::create_dir_all(FOLDER).map_err(|error| Failure::unable(format!("{FOLDER}: cannot be made: {error}")))?;
    output::save(&path, &format!("{results:#}\n"))
}

/// The results saved under a name.
pub(crate) fn load(name: &str) -> Result<Json, Failure> {
    let path = path(name)?;
    let failed = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("{}: no such baseline ({error}); make one with --save {name}", path.display()))
    };
    let text = fs::read_to_string(&path).map_err(|error| failed(&error))?;
    serde_json::from_str(&text).map_err(|error| failed(&error))
}

/// How a cell has changed; `None` if the baseline does not have it.
pub(crate) fn change(baseline: &Json, now: &Measured) -> Option<Change> {
    let cells = baseline["cells"].as_array()?;
    let then = cells.iter().find(|cell| cell["cell"] == now.cell.name())?;
    let mut seconds: Vec<f64> = then["runs"].as_array()?.iter().filter_map(|run| run["seconds"].as_f64()).collect();
    seconds.sort_by(f64::total_cmp);
    let (fastest, slowest) = (*seconds.first()?, *seconds.last()?);
    let (now_fastest, now_slowest) = now.spread();
    Some(Change {
        ratio: now.median(|run| run.seconds) / median(&seconds).max(1e-9),
        is_outside_noise: now_fastest > slowest || now_slowest < fastest,
    })
}
