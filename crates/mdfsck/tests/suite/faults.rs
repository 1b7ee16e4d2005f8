//! Runs the program while the system refuses to do something. Examples are limits on threads and files, full disks,
//! closed pipes, dangling links and sparse files. Each run must give either the correct results, or one clear line and
//! a status that does not mean "sound".
// The tests need `mdfsck lab` to write databases.
#![cfg(all(target_os = "linux", feature = "lab"))]
#![expect(clippy::unwrap_used, reason = "helpers of tests: a failed expectation is a failed test")]

mod address_space;
mod lab;
mod links;
mod output;
mod reads;
mod sparse;
mod threads;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder with a sound database in `db` that a check can verify completely.
fn folder_with_database() -> TempDir {
    let folder = TempDir::new().unwrap();
    let made = mdfsck(folder.path(), &["lab", "new", "db", "--schema", "entries", "--size", "3MB"]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert_eq!(mdfsck(folder.path(), &["check", "db"]).status.code(), Some(0));
    folder
}

/// The data file of the database in the folder `db`.
fn data_file(folder: &Path) -> PathBuf {
    let mut entries = std::fs::read_dir(folder.join("db")).unwrap();
    entries.next().unwrap().unwrap().path()
}

fn mdfsck(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(arguments).current_dir(folder).output().unwrap()
}

/// Runs a shell script. The variable `$mdfsck` is the path of the program.
fn shell(folder: &Path, script: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_mdfsck");
    Command::new("bash").args(["-c", script]).env("mdfsck", program).current_dir(folder).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Requires the exit status `status`, and one line on stderr that contains all of `words`.
#[track_caller]
fn ends(output: &Output, status: i32, words: &[&str]) {
    let text = stderr(output);
    assert_eq!((output.status.code(), text.lines().count()), (Some(status), 1), "{text}");
    assert!(text.starts_with("mdfsck: ") && words.iter().all(|word| text.contains(word)), "{text}");
}
