//! Tests the files that `mdfsck export` writes. They must have as many rows as an independent reader counted. Programs
//! that share no code with mdfsck must read the same values: Python's csv and json, pandas, Polars, DuckDB, PyArrow,
//! and two T-SQL parsers for scripts.
//!
//! Real database files are expected in `target/corpus` (see CONTRIBUTING.md). The reading programs are those that
//! `.ci/tools` has installed; without it, pip installs them into `target/read-back`. If files or programs are missing,
//! one ignored test reports that.

#![expect(clippy::expect_used, reason = "a test harness of its own: a failed expectation is a failed test")]

mod counts;
mod environment;
mod read_back;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    match corpus() {
        // Real files are tested in the full tier only.
        Some((files, lists)) => {
            trials.extend(counts::trials(&files, &lists).into_iter().map(|trial| trial.with_ignored_flag(true)))
        }
        None => trials.push(skipped("counts: skipped, no real database files in target/corpus")),
    }
    // Like the real files, the programs that pip installs are used only in the full tier.
    if arguments.include_ignored || arguments.ignored || arguments.filter.is_some() {
        trials.extend(read_back::trials(&arguments));
    } else {
        trials.push(skipped("read back: the full tier has them"));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// A test that is always ignored. Its name says why other tests cannot run.
fn skipped(why: &str) -> Trial {
    let reason = why.to_owned();
    Trial::ignorable_test(why, move || Ok(Completion::ignored_with(reason)))
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of the real files, and the folder of the lists with the row counts of these files.
fn corpus() -> Option<(PathBuf, PathBuf)> {
    if std::env::var_os("MDFSCK_WITHOUT_CORPUS").is_some() {
        return None;
    }
    let lists = std::env::var_os("MDFSCK_CORPUS_LISTS").map(PathBuf::from);
    let (files, lists) = (workspace().join("target/corpus"), lists.unwrap_or(workspace().join("../shared/corpus")));
    (files.is_dir() && lists.join("expected.tsv.gz").is_file()).then_some((files, lists))
}

/// Exports the database `database` to the folder `to`.
fn export(database: &Path, to: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
    command.arg("export").arg(database).arg("--output").arg(to).args(options).output().expect("mdfsck runs")
}

fn ensure(holds: bool, otherwise: impl Into<String>) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(otherwise.into().into()) }
}
