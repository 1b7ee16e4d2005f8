//! Tests with threads that cannot be started.

use std::path::Path;
use std::process::{Command, Output};

use super::{folder_with_database, mdfsck, stderr, stdout};

/// Runs a check as a user who has no other processes. The user may have at most `processes` processes and threads at a
/// time; the check itself counts as one.
fn check_with(processes: u32, folder: &Path, more: &[&str]) -> Output {
    // The system limits the processes of each user, and tests run at the same time, so each test uses a different user.
    let user = 61_000 + processes + 10 * more.len() as u32;
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]);
    command.args(["prlimit".to_owned(), format!("--nproc={processes}")]);
    command.arg(env!("CARGO_BIN_EXE_mdfsck")).args(["check", "db", "--maxdop", "4"]).args(more);
    command.current_dir(folder).output().unwrap()
}

/// Whether this process may start a program as another user. The limit applies only to other users.
fn may_limit() -> bool {
    let tried = Command::new("setpriv").args(["--reuid=61000", "--clear-groups", "true"]).status();
    let may = tried.is_ok_and(|status| status.success());
    if !may {
        eprintln!("SKIPPED: only root can run a program as a user without processes");
    }
    may
}

#[test]
fn with_fewer_threads_than_wanted_the_results_are_the_same_and_one_line_says_so() {
    if !may_limit() {
        return;
    }
    let folder = folder_with_database();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let free = mdfsck(folder.path(), &["check", "db"]);
    for (more, wanted) in [(&[][..], 4), (&["--readers", "3"], 7), (&["--readers", "per-file", "--batches=2"], 5)] {
        for processes in 1..=3 {
            let output = check_with(processes, folder.path(), more);
            let text = stderr(&output);
            assert_eq!((output.status.code(), stdout(&output)), (Some(0), stdout(&free)), "{more:?} {text}");
            // When one thread has ended, another thread can start. The number of threads that could be started is
            // therefore known only if the limit is one process.
            let words = format!(" of {wanted} threads could be started (Resource temporarily unavailable");
            let is_told = text.contains(&words) && text.lines().count() == 1;
            assert!(is_told || processes > 1 && text.is_empty(), "{more:?} {text}");
            let none = if more.is_empty() { "mdfsck: only 1 of " } else { "mdfsck: only 0 of " };
            assert!(processes > 1 || text.starts_with(none), "{more:?} {text}");
        }
    }
}
