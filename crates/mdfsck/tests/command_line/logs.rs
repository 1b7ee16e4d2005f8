//! Logs that belong to another database, cannot be read or are incomplete. For each log, the program must print one
//! clear line and end with the right exit status.

use super::*;

const HEADER: usize = PAGE_BYTES;
const VLF: usize = 0x3E000;

/// Writes to the folder `name` a lab database that crashed while it was in use.
fn crash(folder: &Path, name: &str, seed: &str) -> Result<(), Failed> {
    let done = mdfsck(folder, &["lab", "crash", name, "--seed", seed, "--open", "--transactions", "80"]);
    ensure(done.status.success(), text(&done.stderr))
}

/// Gives a database the name and the ID of tempdb.
fn become_tempdb(data: &Path) -> Result<(), Failed> {
    let mut bytes = fs::read(data)?;
    let boot = &mut bytes[9 * PAGE_BYTES..10 * PAGE_BYTES];
    let name: Vec<u8> = "tempdb".encode_utf16().flat_map(u16::to_le_bytes).collect();
    boot[96 + 0x138..96 + 0x13A].copy_from_slice(&2u16.to_le_bytes());
    boot[96 + 0x34..96 + 0x134].fill(0x20);
    boot[96 + 0x34..96 + 0x34 + name.len()].copy_from_slice(&name);
    boot[96 + 0x134..96 + 0x138].copy_from_slice(&(name.len() as u32).to_le_bytes());
    let sum = checksum((&*boot).try_into()?);
    boot[60..64].copy_from_slice(&sum.to_le_bytes());
    Ok(fs::write(data, bytes)?)
}

/// Moves the last VLFs of a log to a second file, as if the log had been created with two files.
fn split(log: &Path, second: &Path) -> Result<(), Failed> {
    const FILE_ID: usize = 36;
    let bytes = fs::read(log)?;
    let vlfs = (bytes.len() - HEADER) / VLF;
    let (first, rest) = bytes.split_at(HEADER + vlfs / 2 * VLF);
    let mut header: [u8; PAGE_BYTES] = bytes[..HEADER].try_into()?;
    header[FILE_ID] = 3;
    let slot = usize::from(u16::from_le_bytes([header[PAGE_BYTES - 2], header[PAGE_BYTES - 1]]));
    let found = format::file_header::FileHeader::read(format::Page::new(&header)).ok_or("a file header")?.file_id();
    ensure(found == 2, "the file ID of a log")?;
    // The record also contains the file ID. To find its offset, the test tries the bytes with the value 2 one by one:
    // it changes the byte to 3, and then reads the file ID from the changed header.
    let at = (slot..slot + 600).find(|&at| {
        let mut changed = header;
        changed[at] = if changed[at] == 2 { 3 } else { changed[at] };
        format::file_header::FileHeader::read(format::Page::new(&changed)).is_some_and(|header| header.file_id() == 3)
    });
    header[at.ok_or("the file ID")?] = 3;
    let sum = checksum(&header);
    header[60..64].copy_from_slice(&sum.to_le_bytes());
    let mut moved = header.to_vec();
    moved.extend(rest);
    for at in (HEADER..moved.len()).step_by(VLF) {
        moved[at + 0x18..at + 0x20].copy_from_slice(&(at as u64).to_le_bytes());
    }
    fs::write(second, moved)?;
    Ok(fs::write(log, first)?)
}

pub(crate) fn with_logs() -> Vec<(&'static str, Test)> {
    vec![
        ("a log in two files recovers as one does, and each is missed when it is not there", |folder| {
            crash(folder, "db", "5")?;
            let tables = |arguments: &[&str]| mdfsck(folder, &[&["check", "--no-infomsgs"], arguments].concat());
            let state = |output: &Output| text(&output.stderr).lines().next().unwrap_or_default().to_owned();
            let whole = tables(&["db/workload.mdf"]);
            ensure(state(&whole).contains("recovered in memory"), state(&whole))?;
            split(&folder.join("db/workload_log.ldf"), &folder.join("db/second.ldf"))?;
            for way in [&["db"][..], &["db/workload.mdf", "db/second.ldf", "db/workload_log.ldf"]] {
                let both = tables(way);
                ensure(both.status.code() == Some(0) && state(&both) == state(&whole), state(&both))?;
            }
            let lacks_first = tables(&["db/workload.mdf", "db/second.ldf"]);
            let words = ["second.ldf", "workload_log.ldf (file ID 2)", "all files of the log are needed"];
            refused(&lacks_first, 8, &words)?;
            // If an incomplete log is found in the folder but not named on the command line, it is skipped, and this is
            // reported.
            fs::rename(folder.join("db/workload_log.ldf"), folder.join("elsewhere.ldf"))?;
            let beside = tables(&["db"]);
            let is_said = words.iter().all(|word| text(&beside.stderr).contains(word));
            let is_refused = beside.status.code() == Some(16) && !text(&beside.stderr).contains("recovered in memory");
            ensure(is_said && is_refused, text(&beside.stderr))
        }),
        ("logs that are not those of the data files", |folder| {
            crash(folder, "db", "5")?;
            crash(folder, "other", "6")?;
            let (data, log, foreign) = ("db/workload.mdf", "db/workload_log.ldf", "other/workload_log.ldf");
            let check = |arguments: &[&str]| mdfsck(folder, &[&["check"], arguments].concat());
            refused(&check(&[log]), 4, &["workload_log.ldf", "log"])?;
            refused(&check(&[data, foreign]), 8, &["other/workload_log.ldf", "--no-log"])?;
            refused(&check(&[data, log, foreign]), 8, &["other/workload_log.ldf", "give the log"])?;
            refused(&check(&[data, log, log]), 8, &["same file ID 2", "name each log file once"])?;
            fs::copy(folder.join(log), folder.join("copy.ldf"))?;
            refused(&check(&[data, log, "copy.ldf"]), 8, &["copy.ldf", "same file ID 2"])?;
            refused(&mdfsck(folder, &["log", log, "copy.ldf"]), 8, &["copy.ldf", "same file ID 2"])?;
            // A log of the same database may end before the checkpoint that the boot page names.
            let done = mdfsck(folder, &["lab", "crash", "early", "--seed", "5", "--after", "20"]);
            ensure(done.status.success(), text(&done.stderr))?;
            refused(&check(&[data, "early/workload_log.ldf"]), 8, &["from another point in time", "--no-log"])
        }),
        ("logs that hold nothing, or are cut", |folder| {
            crash(folder, "db", "5")?;
            let (data, log) = ("db/workload.mdf", "db/workload_log.ldf");
            let bytes = fs::read(folder.join(log))?;
            let check = |name: &str| mdfsck(folder, &["check", data, name]);
            fs::write(folder.join("empty.ldf"), [])?;
            refused(&check("empty.ldf"), 4, &["empty.ldf", "is empty (0 bytes)"])?;
            refused(
                &mdfsck(folder, &["log", "empty.ldf"]),
                4,
                &["empty.ldf", "is empty (0 bytes)", "copy the file again"],
            )?;
            let mut unused = bytes.clone();
            for at in (HEADER..unused.len()).step_by(VLF) {
                unused[at + 1] = 0;
                unused[at + 4..at + 16].fill(0);
            }
            fs::write(folder.join("unused.ldf"), unused)?;
            refused(&check("unused.ldf"), 4, &["unused.ldf", "never been written"])?;
            refused(&mdfsck(folder, &["log", "unused.ldf"]), 4, &["unused.ldf", "never been written"])?;
            // If a truncated log is found in the folder but not named on the command line, it is skipped, and this is
            // reported.
            fs::write(folder.join(log), &bytes[..HEADER])?;
            let cut = mdfsck(folder, &["tables", data]);
            let said = ["workload_log.ldf", "skipped", "without the changes in the log"];
            ensure(said.iter().all(|words| text(&cut.stderr).contains(words)), text(&cut.stderr))
        }),
        ("a log is found by what it says of itself, not by its name, and in a folder of its own", |folder| {
            crash(folder, "db", "5")?;
            crash(folder, "other", "6")?;
            let check = |arguments: &[&str]| mdfsck(folder, &[&["check", "--no-infomsgs"], arguments].concat());
            let beside = check(&["db/workload.mdf"]);
            let is_recovered = |output: &Output| {
                let is_same = output.status.code() == Some(0) && output.stdout == beside.stdout;
                ensure(is_same && output.stderr == beside.stderr, text(&output.stderr))
            };
            ensure(text(&beside.stderr).contains("recovered in memory"), text(&beside.stderr))?;
            is_recovered(&beside)?;
            // The file name of the log does not show to which data file the log belongs. The folder also contains the
            // log of another database.
            fs::rename(folder.join("db/workload_log.ldf"), folder.join("db/copy of monday.bin"))?;
            fs::copy(folder.join("other/workload_log.ldf"), folder.join("db/foreign.ldf"))?;
            is_recovered(&check(&["db/workload.mdf"]))?;
            is_recovered(&check(&["db"]))?;
            fs::create_dir(folder.join("logs"))?;
            fs::rename(folder.join("db/copy of monday.bin"), folder.join("logs/monday.ldf"))?;
            is_recovered(&check(&["db/workload.mdf", "logs"]))?;
            is_recovered(&check(&["logs", "db"]))?;
            let audit = mdfsck(folder, &["audit", "db/workload.mdf", "logs"]);
            ensure(audit.status.code() == Some(0), text(&audit.stderr))?;
            let without = check(&["db/workload.mdf"]);
            ensure(text(&without.stderr).contains("without the changes in the log"), text(&without.stderr))?;
            // If a folder on the command line contains neither data files nor logs, this is an error.
            fs::create_dir(folder.join("empty"))?;
            refused(&check(&["db/workload.mdf", "empty"]), 4, &["empty", "no SQL Server data file in this folder"])?;
            refused(&mdfsck(folder, &["log", "empty"]), 4, &["empty", "no transaction log file"])
        }),
        ("a log without its data files: log and checkpoints read it, the others say what is missing", |folder| {
            crash(folder, "db", "5")?;
            fs::remove_file(folder.join("db/workload.mdf"))?;
            let log = "db/workload_log.ldf";
            for command in ["log", "checkpoints"] {
                let output = mdfsck(folder, &[command, log]);
                ensure(output.status.code() == Some(0) && output.stderr.is_empty(), text(&output.stderr))?;
                ensure(text(&output.stdout).lines().count() > 2, text(&output.stdout))?;
            }
            for command in ["check", "tables", "info", "audit"] {
                // `info` accepts a log file and describes it.
                for path in [log, "db"].into_iter().filter(|path| (command, *path) != ("info", log)) {
                    let words = [log, "is a transaction log file", "name the .mdf and .ndf files"];
                    refused(&mdfsck(folder, &[command, path]), 4, &words)?;
                }
            }
            Ok(())
        }),
        ("the log of tempdb is refused, and tempdb needs none", |folder| {
            crash(folder, "db", "5")?;
            let (data, log) = ("db/workload.mdf", "db/workload_log.ldf");
            become_tempdb(&folder.join(data))?;
            let words = [log, "the log of tempdb", "created again at every start", "leave the log out"];
            for command in ["check", "tables"] {
                refused(&mdfsck(folder, &[command, data, log]), 8, &words)?;
            }
            for way in [data, "db"] {
                let output = mdfsck(folder, &["check", way]);
                let is_said = text(&output.stdout).contains("tempdb") && !text(&output.stderr).contains("recovered");
                ensure(is_said && output.status.code() == Some(16), text(&output.stderr))?;
            }
            let output = mdfsck(folder, &["log", log]);
            ensure(output.status.code() == Some(0), text(&output.stderr))
        }),
        ("the pages of tempdb are not held against its log", |folder| {
            let made = [
                "lab",
                "crash",
                "db",
                "--seed",
                "5",
                "--transactions",
                "40",
                "--rows",
                "100",
                "--flush",
                "all",
                "--after",
                "20",
            ];
            ensure(mdfsck(folder, &made).status.success(), "lab crash")?;
            let data = "db/workload.mdf";
            // Changes a byte of a row on a page whose last change is in the log.
            let mut bytes = fs::read(folder.join(data))?;
            let page = &mut bytes[596 * PAGE_BYTES..597 * PAGE_BYTES];
            let slots = usize::from(u16::from_le_bytes([page[22], page[23]]));
            let entry = PAGE_BYTES - 2 * slots;
            let row = usize::from(u16::from_le_bytes([page[entry], page[entry + 1]]));
            page[row + 8] ^= 1;
            let sum = checksum((&*page).try_into()?);
            page[60..64].copy_from_slice(&sum.to_le_bytes());
            fs::write(folder.join(data), bytes)?;
            let of_log = |findings: &Output| text(&findings.stdout).contains("Msg 832");
            let (check, audit) = (mdfsck(folder, &["check", "db"]), mdfsck(folder, &["audit", "db"]));
            ensure(of_log(&check) && of_log(&audit), "another database's pages are")?;
            become_tempdb(&folder.join(data))?;
            let check = mdfsck(folder, &["check", "db"]);
            ensure(!of_log(&check) && check.status.code() == Some(16), text(&check.stdout))?;
            refused(&mdfsck(folder, &["audit", "db"]), 8, &["tempdb", "creates tempdb again at every start"])
        }),
        ("several databases in a folder are named, with the command for one of them", |folder| {
            for (name, seed) in [("a", "5"), ("b", "6"), ("c", "7")] {
                crash(folder, name, seed)?;
            }
            fs::create_dir(folder.join("all of them"))?;
            for name in ["a", "b", "c"] {
                fs::copy(folder.join(name).join("workload.mdf"), folder.join(format!("all of them/{name}.mdf")))?;
                fs::copy(folder.join(name).join("workload_log.ldf"), folder.join(format!("all of them/{name}.ldf")))?;
            }
            fs::copy(folder.join("c/workload.mdf"), folder.join("all of them/copy of c.mdf"))?;
            let named = "3 databases: workload (a.mdf), workload (b.mdf), workload (c.mdf)";
            let command = "give the files of one database, for example: mdfsck tables \"all of them/a.mdf\"\n";
            refused(&mdfsck(folder, &["tables", "all of them"]), 8, &["all of them", named, command])?;
            let check = mdfsck(folder, &["check", "all of them"]);
            ensure(text(&check.stdout).contains("4 databases and backups: 4 sound"), text(&check.stdout))?;
            ensure(text(&check.stderr).matches("recovered in memory").count() == 4, text(&check.stderr))?;
            // The command that the message suggests must work, and must use the log of the named database.
            let one = mdfsck(folder, &["check", "--no-infomsgs", "all of them/a.mdf"]);
            let is_recovered = text(&one.stderr).contains("recovered in memory");
            ensure(one.status.code() == Some(0) && is_recovered, text(&one.stderr))?;
            // If there are two folders with one database each, the program prints a different message.
            refused(&mdfsck(folder, &["tables", "a", "b"]), 8, &["the files belong to 2 databases"])
        }),
        #[cfg(unix)]
        ("a log that must not be read is named, with what to do", |folder| {
            use std::os::unix::fs::PermissionsExt;
            crash(folder, "db", "5")?;
            let (data, log) = ("db/workload.mdf", "db/workload_log.ldf");
            let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
            allow(&folder.join(log), 0o000)?;
            allow(folder, 0o755)?;
            let Some(run) = who_may_not_read(folder, &folder.join(log)) else { return Ok(()) };
            let words = [log, "Permission denied", "as a user who may read this file"];
            for arguments in
                [&["check", data, log][..], &["check", "db"], &["log", log], &["log", "db"], &["audit", data, log]]
            {
                refused(&run(arguments)?, 4, &words)?;
            }
            refused(&run(&["audit", data])?, 8, &words)?;
            // If an unreadable log is found in the folder but not named on the command line, it is skipped, and this is
            // reported.
            let check = run(&["check", data])?;
            let is_said = words.iter().all(|word| text(&check.stderr).contains(word))
                && text(&check.stdout).contains("the log cannot be read: Permission denied");
            ensure(is_said && check.status.code() == Some(16), text(&check.stderr))
        }),
    ]
}
