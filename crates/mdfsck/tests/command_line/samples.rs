//! Requires that the commands in the samples use only options and fields that this program has. `samples/test` runs
//! these commands.

use std::path::Path;
use std::process::Command;

use libtest_mimic::Failed;

use super::{Test, ensure, text};

pub(crate) fn samples() -> Vec<(&'static str, Test)> {
    vec![("the commands of the samples run, and the PowerShell module knows the fields", samples_run)]
}

fn samples_run(folder: &Path) -> Result<(), Failed> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/test");
    let output =
        Command::new("sh").arg(script).env("MDFSCK", env!("CARGO_BIN_EXE_mdfsck")).current_dir(folder).output()?;
    ensure(output.status.success(), text(&output.stdout) + &text(&output.stderr))
}
