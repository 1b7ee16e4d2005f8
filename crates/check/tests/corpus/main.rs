//! Tests with real database files: a sound file must give no finding, and a damaged copy must give exactly the
//! documented messages.
//!
//! The files are not part of the repository. The tests expect them in `target/corpus` (see CONTRIBUTING.md). Without
//! the files, each group of tests is reported as one ignored test.

#![expect(
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test harness of its own: a failed expectation is a failed test"
)]

mod after_checkpoint;
mod anti_matter;
mod backups;
mod base_table;
mod beyond;
mod catalog;
mod columns;
mod columnstore;
mod compressed;
mod computed;
mod coverage;
mod damage;
mod extended;
mod hostile;
mod image;
mod index_rows;
mod invariance;
mod legal;
mod limits;
mod lob;
mod orders;
mod partitions;
mod rows;
mod sound;
mod sparse;
mod statistics;
mod subjects;
mod swapped;
mod together;
mod twice;
mod unprotected;
mod unread;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libtest_mimic::{Arguments, Completion, Trial};

fn main() {
    let arguments = Arguments::from_args();
    IS_FULL.get_or_init(|| arguments.include_ignored || arguments.ignored);
    let mut trials = Vec::new();
    trials.extend(unread::trials());
    for family in [
        damage::trials,
        columnstore::trials,
        partitions::trials,
        after_checkpoint::trials,
        unprotected::trials,
        anti_matter::trials,
        columns::trials,
        lob::trials,
        compressed::trials,
        index_rows::trials,
        backups::lab_trials,
        beyond::lab_trials,
        catalog::lab_trials,
        limits::lab_trials,
        computed::lab_trials,
        twice::lab_trials,
        statistics::lab_trials,
    ] {
        trials.extend(family());
    }
    if let Some(corpus) = corpus() {
        for family in [
            sound::trials,
            beyond::trials,
            catalog::trials,
            backups::trials,
            computed::trials,
            extended::trials,
            hostile::trials,
            invariance::trials,
            legal::trials,
            orders::trials,
            swapped::trials,
            sparse::trials,
            statistics::trials,
            together::trials,
            twice::trials,
        ] {
            trials.extend(family(&corpus));
        }
    } else {
        trials.extend(invariance::lab_trials());
        let why = || Ok(Completion::ignored_with("the full tier with real database files in target/corpus has them"));
        trials.push(Trial::ignorable_test("real files", why));
    }
    let is_whole_run = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list && !arguments.ignored;
    let conclusion = libtest_mimic::run(&arguments, trials);
    if is_whole_run {
        let wrong = coverage::wrong(corpus().is_some());
        if !wrong.is_empty() {
            eprintln!("not every check and limit has a trial that shows it:\n{}", wrong.join("\n"));
            std::process::exit(101);
        }
    }
    conclusion.exit();
}

/// The folder with the real files, and the folder with counts about these files that were made independently of this
/// program.
#[derive(Clone)]
pub struct Corpus {
    /// The unpacked files.
    pub files: PathBuf,
    /// The folder with inventory.tsv and expected.tsv.gz.
    pub lists: PathBuf,
}

/// Whether real files are tested too, as in the full tier.
static IS_FULL: OnceLock<bool> = OnceLock::new();

/// The corpus; `None` if it is not available or if only the quick tier runs. If `MDFSCK_WITHOUT_CORPUS` is set, the
/// corpus counts as unavailable, so that only the tests of a plain clone run.
pub fn corpus() -> Option<Corpus> {
    if IS_FULL.get() != Some(&true) || std::env::var_os("MDFSCK_WITHOUT_CORPUS").is_some() {
        return None;
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let corpus = Corpus { files: workspace.join("target/corpus"), lists: workspace.join("../shared/corpus") };
    (corpus.files.is_dir() && corpus.lists.join("inventory.tsv").is_file()).then_some(corpus)
}
