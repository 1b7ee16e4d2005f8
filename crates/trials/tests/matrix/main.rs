//! The mutation matrix. Every field of every structure is changed by every verb (a way to change a field, such as
//! flipping a bit). A check must notice each change, unless the field is on the list of fields whose damage may go
//! unnoticed; the list gives the reasons. docs/sensitivity.md shows the result.
//!
//! The real database files are not part of the repository. They are expected in `target/corpus` (see CONTRIBUTING.md).
//! Without them, the part of the matrix that uses them is reported as ignored.

#![expect(clippy::expect_used, clippy::panic, unreachable_pub, reason = "a test harness of its own")]

mod catalog;
mod logs;
mod run;
mod table;

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Completion, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = table::trials();
    trials.extend(catalog::trials());
    trials.extend(logs::trials());
    let real = || match corpus() {
        Some(folder) => table::compare(&folder).map(|()| Completion::Completed),
        None => Ok(Completion::ignored_with("no real database files in target/corpus")),
    };
    trials.push(Trial::ignorable_test("matrix: real databases", real));
    // The whole matrix takes minutes, so it runs only in the full tier of the tests.
    let trials = trials.into_iter().map(|trial| trial.with_ignored_flag(true)).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn corpus() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus");
    folder.is_dir().then_some(folder)
}
