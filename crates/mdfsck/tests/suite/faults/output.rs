//! Tests with results that cannot be written, or that can be written only in part.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{ends, folder_with_database, mdfsck, shell, stderr, stdout};

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into()).collect();
    names.sort();
    names
}

#[test]
fn results_that_do_not_fit_leave_the_old_file_and_nothing_beside_it() {
    let folder = folder_with_database();
    let here = folder.path();
    fs::write(here.join("out.txt"), "old").unwrap();
    // The limit of one kilobyte is smaller than the results. The limit applies only to files, so it does not apply to
    // stderr, which is a pipe.
    let output = shell(here, "ulimit -f 1; exec $mdfsck check db --format json --output out.txt");
    ends(&output, 4, &["out.txt", "cannot be written", "File too large"]);
    assert_eq!(
        (fs::read(here.join("out.txt")).unwrap(), names(here)),
        (b"old".to_vec(), vec!["db".into(), "out.txt".into()])
    );
    // In this run, stdout is redirected to a file, and the limit applies to this file.
    let output = shell(here, "ulimit -f 1; exec $mdfsck check db --format json > cut.txt");
    ends(&output, 4, &["standard output", "File too large"]);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_run_that_is_killed_leaves_the_old_file_and_a_new_one_is_whole_or_not_there() {
    let folder = folder_with_database();
    let here = folder.path();
    fs::write(here.join("old.json"), "old").unwrap();
    let whole = mdfsck(here, &["check", "db", "--format", "json"]);
    let last = stdout(&whole).lines().last().unwrap().to_owned();
    assert!(last.contains("\"summary\""));
    for step in 0..20 {
        for name in ["old.json", "new.json"] {
            let mut run = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
            let mut run =
                run.args(["check", "db", "--format", "json", "--output", name]).current_dir(here).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(step * 8));
            run.kill().unwrap();
            run.wait().unwrap();
            match fs::read_to_string(here.join(name)) {
                Ok(text) => {
                    assert!(text == "old" || text.lines().last().unwrap().contains("\"summary\""), "{name} {text}")
                }
                Err(_) => assert_eq!(name, "new.json"),
            }
        }
    }
}

#[test]
fn a_full_disk_a_closed_pipe_and_a_closed_output_never_read_as_sound() {
    let folder = folder_with_database();
    let here = folder.path();
    for arguments in
        ["check db", "info db", "tables db", "page 1:9 db", "explain --all", "lint db", "check --estimate-only db"]
    {
        let full = shell(here, &format!("exec $mdfsck {arguments} > /dev/full"));
        ends(&full, 4, &["standard output", "No space left"]);
        #[cfg(target_os = "linux")]
        {
            let none = shell(here, &format!("exec $mdfsck {arguments} >&-"));
            ends(&none, 4, &["standard output", "it is closed"]);
        }
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
        command.args(arguments.split(' ')).current_dir(here).stdout(writer).stderr(Stdio::piped());
        let run = command.spawn().unwrap();
        let closed = run.wait_with_output().unwrap();
        assert_eq!((closed.status.code(), stderr(&closed)), (Some(4), String::new()), "{arguments}");
    }
    // The program reports no error if the caller discards the results on purpose, or if the results are written to a
    // file.
    for quiet in
        ["check db < /dev/null > /dev/null", "check db <> /dev/null 1<> /dev/null", "check db --output kept >&-"]
    {
        assert_eq!(shell(here, &format!("exec $mdfsck {quiet}")).status.code(), Some(0), "{quiet}");
    }
    ends(&mdfsck(here, &["check", "db", "--output", "/dev/full"]), 4, &["/dev/full", "No space left"]);
}

#[test]
fn what_is_no_regular_file_is_written_as_it_is() {
    let folder = folder_with_database();
    let here = folder.path();
    let plain = stdout(&mdfsck(here, &["check", "db"]));
    assert_eq!(stdout(&mdfsck(here, &["check", "db", "--output", "/dev/stdout"])), plain);
    assert_eq!(mdfsck(here, &["check", "db", "--output", "/dev/null"]).status.code(), Some(0));
    let fifo = shell(here, "mkfifo fifo; cat fifo & $mdfsck check db --output fifo; status=$?; wait; exit $status");
    assert_eq!((fifo.status.code(), stdout(&fifo)), (Some(0), plain.clone()));
    // If the shell has opened the file for appending, the program appends its output.
    let appended = shell(here, "echo before > log; $mdfsck check db --output /dev/stdout >> log");
    assert_eq!(
        (appended.status.code(), fs::read_to_string(here.join("log")).unwrap()),
        (Some(0), format!("before\n{plain}"))
    );
    assert!(here.join("fifo").exists() && Path::new("/dev/null").exists());
}

#[test]
fn a_file_that_is_replaced_keeps_its_permissions_and_the_links_to_it() {
    let folder = folder_with_database();
    let here = folder.path();
    fs::write(here.join("out.txt"), "old").unwrap();
    fs::set_permissions(here.join("out.txt"), PermissionsExt::from_mode(0o640)).unwrap();
    symlink("out.txt", here.join("link.txt")).unwrap();
    assert_eq!(mdfsck(here, &["check", "db", "--output", "link.txt"]).status.code(), Some(0));
    assert_eq!(fs::metadata(here.join("out.txt")).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(here.join("link.txt")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(here.join("out.txt")).unwrap(), stdout(&mdfsck(here, &["check", "db"])));
    ends(&mdfsck(here, &["check", "db", "--output", "db"]), 4, &["db", "cannot be written", "directory"]);
    ends(&mdfsck(here, &["check", "db", "--output", "no/where"]), 4, &["no/where", "the folder no", "No such file"]);
}
