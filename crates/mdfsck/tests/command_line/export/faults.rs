//! Exports that cannot be finished. A file under its final name must be complete.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use libtest_mimic::Failed;

use super::{Test, ensure, mdfsck, refused, text};

const FORMATS: [&str; 4] = ["csv", "jsonl", "sql", "parquet"];

pub(super) fn faults() -> Vec<(&'static str, Test)> {
    let mut faults: Vec<(&'static str, Test)> = vec![
        ("an export into a file, below one, or with a folder in the place of a file is refused", other_places),
        ("an export of too small a grant says how much it needs", small_grants),
    ];
    #[cfg(unix)]
    faults.extend(unix::faults());
    faults
}

/// The contents of all files in a folder, by file name.
pub(super) fn all(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, Failed> {
    Ok(super::files(folder)?.into_iter().collect())
}

/// Requires that every file under its final name is complete.
fn is_whole(made: &BTreeMap<String, Vec<u8>>, whole: &BTreeMap<String, Vec<u8>>) -> Result<(), Failed> {
    let wrong = made.iter().find(|(name, bytes)| !name.ends_with(".partial") && whole.get(*name) != Some(*bytes));
    ensure(wrong.is_none(), format!("{:?} is not whole", wrong.map(|(name, _)| name)))
}

fn other_places(folder: &Path) -> Result<(), Failed> {
    super::sample(folder)?;
    fs::write(folder.join("file"), "mine")?;
    for place in ["file", "file/below"] {
        refused(&mdfsck(folder, &["export", "s", "-o", place]), 4, &[place, "cannot be written"])?;
    }
    ensure(fs::read(folder.join("file"))? == b"mine", "the file is as it was")?;
    let made = mdfsck(folder, &["export", "s", "-o", "not/there/yet", "--table", "visits"]);
    ensure(made.status.code() == Some(0) && folder.join("not/there/yet/dbo.visits.csv").is_file(), text(&made.stderr))?;
    fs::create_dir_all(folder.join("out/dbo.visits.csv"))?;
    refused(&mdfsck(folder, &["export", "s", "-o", "out", "--force"]), 8, &["dbo.visits.csv", "not a regular file"])?;
    fs::remove_dir(folder.join("out/dbo.visits.csv"))?;
    fs::create_dir(folder.join("out/dbo.visits.csv.partial"))?;
    let output = mdfsck(folder, &["export", "s", "-o", "out", "--table", "visits"]);
    refused(&output, 4, &["dbo.visits.csv.partial", "not a regular file"])?;
    ensure(all_names(&folder.join("out"))? == ["dbo.visits.csv.partial"], "nothing else is there")
}

fn all_names(folder: &Path) -> Result<Vec<String>, Failed> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect::<Result<_, Failed>>()
}

fn small_grants(folder: &Path) -> Result<(), Failed> {
    super::sample(folder)?;
    for format in FORMATS {
        let args = |memory: &str, out: &str| -> Vec<String> {
            let args = ["export", "s", "-o", out, "--format", format, "--memory", memory];
            args.map(str::to_owned).into()
        };
        let run = |memory: &str, out: &str| {
            let args = args(memory, out);
            mdfsck(folder, &args.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let small = run("1MB", "small");
        refused(&small, 8, &["--memory 1 MB", "needs", "at least"])?;
        ensure(!folder.join("small").exists(), "nothing is made")?;
        let said = text(&small.stderr);
        let least = said.split("needs at least ").nth(1).and_then(|rest| rest.lines().next()).ok_or("no grant")?;
        let least = least.replace(' ', "");
        let (least, large) = (run(&least, &format!("{format}-least")), run("1GB", &format!("{format}-large")));
        ensure(least.status.code() == large.status.code(), text(&least.stderr))?;
        let of = |grant: &str| all(&folder.join(format!("{format}-{grant}")));
        ensure(of("least")? == of("large")?, format!("{format}: the grant changes nothing"))?;
    }
    Ok(())
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process};

    use super::super::super::who_may_not_read;
    use super::*;

    pub(super) fn faults() -> Vec<(&'static str, Test)> {
        vec![
            ("on a full disk the file in hand is gone, those before it are whole, and one line says so", full_disk),
            ("a file system that is full is the same", full_file_system),
            ("an export that is killed or interrupted leaves no file that looks whole, and can be run again", killed),
            ("an export into a folder that may not be written is one clear error", not_writable),
        ]
    }

    /// Requires that a run on a full disk leaves only complete files, and prints one line that names the first missing
    /// file.
    fn is_cut(folder: &Path, out: &str, whole: &BTreeMap<String, Vec<u8>>, stderr: &str) -> Result<(), Failed> {
        let made = all(&folder.join(out))?;
        is_whole(&made, whole)?;
        ensure(!made.keys().any(|name| name.ends_with(".partial")), format!("{:?}", made.keys()))?;
        ensure(!made.is_empty() && made.len() < whole.len(), format!("{:?}", made.keys()))?;
        let missing = whole.keys().find(|name| !made.contains_key(*name)).ok_or("all is there")?;
        let lines: Vec<&str> = stderr.lines().filter(|line| line.contains("cannot be written")).collect();
        ensure(lines.len() == 1 && lines[0].contains(missing.as_str()), format!("{missing}: {stderr}"))?;
        // Tables are written in the order of their names. No table after the failed table may have a file.
        ensure(made.keys().all(|name| name < missing), format!("{missing}: {:?}", made.keys()))
    }

    fn full_disk(folder: &Path) -> Result<(), Failed> {
        super::super::sample(folder)?;
        let program = env!("CARGO_BIN_EXE_mdfsck");
        for format in FORMATS {
            let full = format!("{format}-whole");
            mdfsck(folder, &["export", "s", "-o", &full, "--format", format]);
            let whole = all(&folder.join(&full))?;
            // The size limit is below the size of the second largest file, so two files are too large.
            let mut sizes: Vec<usize> = whole.values().map(Vec::len).collect();
            sizes.sort_unstable();
            let blocks = sizes[sizes.len() - 2] / 512 - 1;
            let command =
                format!("ulimit -f {blocks}; exec '{program}' export s -o {format} --format {format} --maxdop 2");
            let output = Command::new("sh").args(["-c", &command]).current_dir(folder).output()?;
            ensure(output.status.code() == Some(4), format!("{format}: {:?} {}", output.status, text(&output.stderr)))?;
            is_cut(folder, format, &whole, &text(&output.stderr))?;
            // The next run must refuse to replace the existing files, unless `--force` allows it.
            refused(&mdfsck(folder, &["export", "s", "-o", format, "--format", format]), 8, &["exists", "--force"])?;
            mdfsck(folder, &["export", "s", "-o", format, "--format", format, "--force"]);
            ensure(all(&folder.join(format))? == whole, "the next run")?;
        }
        Ok(())
    }

    fn full_file_system(folder: &Path) -> Result<(), Failed> {
        super::super::sample(folder)?;
        mdfsck(folder, &["export", "s", "-o", "whole"]);
        let whole = all(&folder.join("whole"))?;
        fs::create_dir(folder.join("small"))?;
        let program = env!("CARGO_BIN_EXE_mdfsck");
        let bytes: usize = whole.values().map(Vec::len).sum::<usize>() * 2 / 3;
        // Mounts a small file system that only this process sees. After the export, copies the files out of it.
        let script = format!(
            "mount -t tmpfs -o size={bytes} none small || exit 99; '{program}' export s -o small; status=$?; \
             mkdir left; cp small/* left/; exit $status"
        );
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]).current_dir(folder);
        let Ok(output) = command.output() else {
            eprintln!("SKIPPED: there is no unshare, and so no file system of its own");
            return Ok(());
        };
        if output.status.code() == Some(99) || text(&output.stderr).starts_with("unshare:") {
            eprintln!("SKIPPED: no file system can be mounted here: {}", text(&output.stderr).trim());
            return Ok(());
        }
        ensure(output.status.code() == Some(4), text(&output.stderr))?;
        ensure(text(&output.stderr).contains("No space left"), text(&output.stderr))?;
        is_cut(folder, "left", &whole, &text(&output.stderr))
    }

    fn killed(folder: &Path) -> Result<(), Failed> {
        super::super::sample(folder)?;
        for (format, signal) in [("csv", Signal::KILL), ("sql", Signal::INT), ("parquet", Signal::TERM)] {
            let args = ["export", "s", "--format", format, "--definitions", "--force", "-o"];
            mdfsck(folder, &[&args[..], &["whole"]].concat());
            fs::remove_dir_all(folder.join("whole/definitions"))?;
            let whole = all(&folder.join("whole"))?;
            let mut cut = 0;
            for round in 0..40_u64 {
                let _ = fs::remove_dir_all(folder.join("out"));
                let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
                command.args(args).arg("out").current_dir(folder);
                let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
                thread::sleep(Duration::from_micros(round.wrapping_mul(7919) % 60_000));
                // Sending the signal fails if the export has already ended.
                let _ = kill_process(Pid::from_child(&child), signal);
                let status = child.wait()?;
                ensure(status.success() || status.signal() == Some(signal.as_raw()), format!("{status:?}"))?;
                cut += u64::from(!status.success());
                if folder.join("out").exists() {
                    let _ = fs::remove_dir_all(folder.join("out/definitions"));
                    is_whole(&all(&folder.join("out"))?, &whole)?;
                }
                if round % 8 == 0 {
                    mdfsck(folder, &[&args[..], &["out"]].concat());
                    fs::remove_dir_all(folder.join("out/definitions"))?;
                    ensure(all(&folder.join("out"))? == whole, "the next run leaves only whole files")?;
                }
            }
            ensure(cut > 0, format!("{format}: no run was cut"))?;
            fs::remove_dir_all(folder.join("whole"))?;
        }
        Ok(())
    }

    fn not_writable(folder: &Path) -> Result<(), Failed> {
        super::super::sample(folder)?;
        // Allows every user to read and enter the folder.
        fs::set_permissions(folder, PermissionsExt::from_mode(0o755))?;
        fs::set_permissions(folder.join("s"), PermissionsExt::from_mode(0o755))?;
        fs::write(folder.join("secret"), "")?;
        fs::set_permissions(folder.join("secret"), PermissionsExt::from_mode(0o000))?;
        fs::create_dir(folder.join("out"))?;
        fs::set_permissions(folder.join("out"), PermissionsExt::from_mode(0o555))?;
        let Some(run) = who_may_not_read(folder, &folder.join("secret")) else {
            eprintln!("SKIPPED: the other user may not enter the folder of the program");
            return Ok(());
        };
        for place in ["out", "out/new"] {
            let output = run(&["export", "s", "-o", place])?;
            refused(&output, 4, &[place, "cannot be written", "ermission denied"])?;
        }
        ensure(fs::read_dir(folder.join("out"))?.count() == 0, "nothing is made")
    }
}
