//! The mutation matrix: every field of every structure, changed by every verb, must be noticed, or be listed with the
//! reason why it cannot be. docs/sensitivity.md shows the result.
//!
//! The real database files are not part of the repository; they are looked for in `target/corpus` (see CONTRIBUTING.md).
//! Without them the matrix over them is reported as ignored.

#![expect(clippy::expect_used, clippy::panic, unreachable_pub, reason = "a test harness of its own")]

mod catalog;
mod logs;
mod run;
mod table;

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = table::trials();
    trials.extend(catalog::trials());
    trials.extend(logs::trials());
    match corpus() {
        // It takes minutes: the integration script asks for it.
        Some(folder) => {
            trials.push(Trial::test("matrix: real databases", move || table::compare(&folder)).with_ignored_flag(true))
        }
        None => {
            let name = "matrix: skipped, no real database files in target/corpus";
            trials.push(Trial::test(name, || Err("no real database files".into())).with_ignored_flag(true));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn corpus() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus");
    folder.is_dir().then_some(folder)
}
