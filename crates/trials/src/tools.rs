//! Programs that tests use and that may be missing on a machine. `.ci/tools` defines the names of these programs.
//!
//! If such a program is missing, the test is skipped and prints a message. If the environment variable MDFSCK_REQUIRE
//! names the program, as in `MDFSCK_REQUIRE=chromium,promtool`, the test fails instead. Tests in other languages use
//! the same variable.

use std::process::{Command, Stdio};

/// Whether this program is installed. It counts as installed if it can be started with `--version`.
pub fn is_here(program: &str) -> bool {
    Command::new(program).arg("--version").stdin(Stdio::null()).output().is_ok()
}

/// Returns the message for skipping a test because these tools are missing.
///
/// # Errors
///
/// The message for failing the test, if MDFSCK_REQUIRE names one of the tools.
pub fn without(missing: &[&str], why: &str) -> Result<String, String> {
    judged(missing, why, &std::env::var("MDFSCK_REQUIRE").unwrap_or_default())
}

/// Prints the message for skipping a test because this tool is missing.
///
/// # Panics
///
/// If MDFSCK_REQUIRE names the tool.
#[expect(clippy::panic, reason = "a failed test")]
pub fn skip(tool: &str, why: &str) {
    match without(&[tool], why) {
        Ok(reason) => eprintln!("skipped: {reason}"),
        Err(failure) => panic!("{failure}"),
    }
}

fn judged(missing: &[&str], why: &str, required: &str) -> Result<String, String> {
    let reason = format!("{}: {why}", missing.join(", "));
    let mut required = required.split(',').map(str::trim);
    match required.find(|tool| missing.contains(tool)) {
        Some(tool) => Err(format!("{reason}, and MDFSCK_REQUIRE names {tool}")),
        None => Ok(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_without_its_tools_is_skipped_and_fails_where_one_is_required() {
        let judged = |required| judged(&["promtool", "node_exporter"], "not on the PATH", required);
        for required in ["", "chromium", "promtool2,chromium", "prom"] {
            assert_eq!(judged(required).unwrap(), "promtool, node_exporter: not on the PATH", "{required}");
        }
        for required in ["node_exporter", "chromium, node_exporter", "node_exporter,chromium"] {
            let failure = judged(required).unwrap_err();
            assert!(failure.ends_with("not on the PATH, and MDFSCK_REQUIRE names node_exporter"), "{failure}");
        }
    }

    #[test]
    fn a_program_is_here_if_it_can_be_started() {
        assert!(is_here("cargo") && !is_here("no-such-program"));
    }
}
