//! `mdfsck chain` with lab backups: points in time, statements, missing and damaged backups.

use serde_json::Value;

use super::*;

pub(super) fn with_chains() -> Vec<(&'static str, Test)> {
    vec![
        ("chain has a use for log between a full backup and a differential", |folder| {
            make(folder, &[])?;
            let (status, output) = chain(folder, &["here"])?;
            ensure(status == 0, output.clone())?;
            let parts = [
                "points in time: ",
                "without gap\n  according to the backups' labels; pages were not read (--verify reads them)\n  can be restored until ",
                "not needed for the shortest path; needed for points in time between",
            ];
            ensure(parts.iter().all(|part| output.contains(part)) && !output.contains("in no chain"), output.clone())?;
            ensure(output.matches("02_log.trn").count() == 1 && output.lines().all(|line| line.len() <= 80), output)
        }),
        ("chain --verify takes the sound one of two copies, and names the rotten one", |folder| {
            make(folder, &[])?;
            for (good, copy) in [("01_full.bak", "zz_full.bak"), ("05_log.trn", "zz_log.trn")] {
                fs::copy(folder.join("here").join(good), folder.join("here").join(copy))?;
                let mut bytes = fs::read(folder.join("here").join(good))?;
                let quarter = bytes.len() / 4 - 1000;
                bytes[quarter] ^= 0x10;
                fs::write(folder.join("here").join(good), bytes)?;
            }
            let output = mdfsck(folder, &["chain", "here", "--verify"]);
            let (said, warned) = (text(&output.stdout), text(&output.stderr));
            ensure(!said.contains("cannot be restored"), said.clone())?;
            ensure(warned.contains("01_full.bak: is damaged; its copy "), warned.clone())?;
            ensure(warned.contains("zz_full.bak is used"), warned)?;
            ensure(output.status.code() == Some(1) && said.contains("zz_full.bak"), said)
        }),
        ("chain --at says from which backups, and its claim holds when the moment is restored", |folder| {
            make(folder, &[])?;
            let line = json(folder, &["here"])?;
            let span = |key: &str| line["points"][0][key].as_str().unwrap_or_default().replace(' ', "T");
            let (first, last) = (span("from"), span("to"));
            let middle = finished(&line, "03_log.trn").replace(' ', "T");
            for (moment, steps) in [(&first, 1), (&middle, 3), (&last, 4)] {
                let asked = json(folder, &["here", "--at", moment])?;
                let at = &asked["at"];
                let length = at["steps"].as_array().map_or(0, Vec::len);
                ensure(at["possible"] == true && length == steps, format!("{moment}: {at}"))?;
                let verified = json(folder, &["here", "--at", moment, "--verify"])?;
                ensure(verified["at"]["verified"]["state"] == "sound", format!("{moment}: {}", verified["at"]))?;
                // A backup may end in the same second as the requested point in time. This backup is then restored
                // completely, without STOPAT, because STOPAT could drop commits in that second.
                ensure(at["stop_at"] == (steps > 1), format!("{moment}: {at}"))?;
                if steps > 1 {
                    let checked = mdfsck(folder, &["check", "--physical-only", "here", "--stop-at", moment]);
                    ensure(checked.status.code() == Some(0), format!("{moment}: {}", text(&checked.stderr)))?;
                }
            }
            for (moment, word) in
                [("2020-01-01", "no complete full backup ended before that time"), ("2030-01-01", "on is missing")]
            {
                let (status, output) = chain(folder, &["here", "--at", moment])?;
                ensure(status == 16 && output.contains("no; ") && words(&output).contains(word), output.clone())?;
                ensure(output.contains("the nearest point in time"), output)?;
                let (status, output) = chain(folder, &["here", "--at", moment, "--script", "-"])?;
                ensure(status == 16 && output.starts_with("-- ") && !output.contains("RESTORE D"), output)?;
            }
            refused_by_usage(&mdfsck(folder, &["chain", "here", "--at", "yesterday"]), &["local time of the server"])
        }),
        ("chain --at names log that is missing, and the moments beside it", |folder| {
            make(folder, &[])?;
            let moment = finished(&json(folder, &["here"])?, "03_log.trn");
            fs::remove_file(folder.join("here/03_log.trn"))?;
            let asked = json(folder, &["here", "--at", &moment])?;
            let at = &asked["at"];
            let lsns = at["missing_lsns"].as_array().map(|lsns| lsns.iter().all(Value::is_string));
            ensure(at["possible"] == false && lsns == Some(true) && at["before"].is_string(), at.to_string())?;
            ensure(at["before"].as_str() < Some(&moment) && at["after"].as_str() > Some(&moment), at.to_string())
        }),
        (
            "chain --script writes statements in their order, with STOPAT and quoted names, and overwrites nothing",
            |folder| {
                make(folder, &["--stripes", "2"])?;
                fs::rename(folder.join("here"), folder.join("O'Brien]"))?;
                let line = json(folder, &["O'Brien]"])?;
                let moment = finished(&line, "03_log");
                let (status, _) =
                    chain(folder, &["O'Brien]", "--at", &moment.replace(' ', "T"), "--script", "restore.sql"])?;
                let script = fs::read_to_string(folder.join("restore.sql"))?;
                ensure(status == 0, script.clone())?;
                let order = [
                    "-- Restores",
                    "IF DB_ID(N'workload') IS NOT NULL SET NOEXEC ON;",
                    "USE [master];",
                    "RESTORE DATABASE [workload]",
                    "IF @@ERROR <> 0 SET NOEXEC ON;",
                    "RESTORE LOG",
                    "IF @@ERROR <> 0 SET NOEXEC ON;",
                    "RESTORE LOG",
                    "IF @@ERROR <> 0 SET NOEXEC ON;",
                    "WITH RECOVERY;",
                    "SET NOEXEC OFF;",
                ];
                let mut rest = script.as_str();
                for part in order {
                    rest = rest.split_once(part).ok_or(format!("{part} is not in its place: {script}"))?.1;
                }
                let first = script.lines().find(|line| !line.is_empty() && !line.starts_with("--"));
                ensure(first.is_some_and(|line| line.starts_with("IF DB_ID(")), "the guard is the first statement")?;
                let stop = format!("STOPAT = N'{}'", moment.replace(' ', "T"));
                let statements = script.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
                ensure(
                    script.contains(&stop) && script.contains("/O''Brien]/") && !statements.contains("REPLACE"),
                    script.clone(),
                )?;
                ensure(script.matches("DISK = ").count() == 6 && script.contains("--     MOVE N'"), script.clone())?;
                let again = mdfsck(folder, &["chain", "O'Brien]", "--script", "restore.sql"]);
                refused(&again, 8, &["restore.sql: exists and will not be overwritten; give another file"])?;
                ensure(fs::read_to_string(folder.join("restore.sql"))? == script, "unchanged")?;
                let both = mdfsck(folder, &["chain", "O'Brien]", "--json", "--script", "-"]);
                let (failure, words) = (text(&both.stdout), text(&both.stderr));
                ensure(
                    both.status.code() == Some(8) && words.contains("--script -") && words.contains("--json"),
                    words,
                )?;
                ensure(failure.lines().count() == 1 && failure.contains("\"kind\":\"error\""), failure)?;
                refused(
                    &mdfsck(folder, &["chain", "O'Brien]", "--script", "no/folder.sql"]),
                    4,
                    &["cannot be written"],
                )?;
                let (_, latest) = chain(folder, &["O'Brien]", "--script", "-"])?;
                ensure(latest.starts_with("-- Restores") && !latest.contains("STOPAT"), latest)
            },
        ),
        ("chain reports what it cannot read or search, and goes on", |folder| {
            make(folder, &[])?;
            let (status, whole) = chain(folder, &["here"])?;
            ensure(status == 0, whole.clone())?;
            fs::write(folder.join("here/lost.bak"), [0; 9000])?;
            fs::write(folder.join("here/settings.bak"), "[settings]\nof = \"another program\"\n")?;
            fs::create_dir_all(folder.join("here/1/2/3/4/5/6/7/8/9"))?;
            let output = mdfsck(folder, &["chain", "here"]);
            let stderr = text(&output.stderr);
            ensure(output.status.code() == Some(4) && text(&output.stdout) == whole, stderr.clone())?;
            ensure(
                stderr.contains("here/lost.bak: is not a SQL Server backup, or its start is damaged"),
                stderr.clone(),
            )?;
            ensure(stderr.contains("here/1/2/3/4/5/6/7/8/9: is more than 8 folders deep"), stderr.clone())?;
            ensure(!stderr.contains("settings.bak"), stderr)?;
            let missing = mdfsck(folder, &["chain", "here", "nowhere"]);
            ensure(missing.status.code() == Some(4) && text(&missing.stdout) == whole, text(&missing.stderr))
        }),
        #[cfg(unix)]
        ("chain goes on beside a folder and a backup that cannot be read", |folder| {
            use std::os::unix::fs::PermissionsExt;
            make(folder, &[])?;
            fs::create_dir(folder.join("here/lost+found"))?;
            fs::copy(folder.join("here/01_full.bak"), folder.join("here/z.bak"))?;
            let allow = |path: &str, mode| fs::set_permissions(folder.join(path), fs::Permissions::from_mode(mode));
            allow(".", 0o755)?;
            allow("here/lost+found", 0o000)?;
            allow("here/z.bak", 0o000)?;
            let Some(run) = who_may_not_read(folder, &folder.join("here/z.bak")) else { return Ok(()) };
            let output = run(&["chain", "here"])?;
            let stderr = text(&output.stderr);
            allow("here/lost+found", 0o755)?;
            ensure(output.status.code() == Some(4), stderr.clone())?;
            ensure(text(&output.stdout).contains("can be restored until"), text(&output.stdout))?;
            ensure(stderr.contains("here/lost+found: cannot be read: "), stderr.clone())?;
            ensure(stderr.contains("here/z.bak: cannot be read: "), stderr)
        }),
        #[cfg(target_os = "linux")]
        ("chain --script FILE is written even if the list cannot be", |folder| {
            make(folder, &[])?;
            let full = fs::OpenOptions::new().write(true).open("/dev/full")?;
            let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
            let output =
                command.args(["chain", "here", "--script", "a.sql"]).current_dir(folder).stdout(full).output()?;
            ensure(output.status.code() == Some(4), text(&output.stderr))?;
            ensure(fs::read_to_string(folder.join("a.sql"))?.contains("RESTORE DATABASE"), "the script")
        }),
        ("chain --verify without a path does not offer --verify", |folder| {
            make(folder, &[])?;
            let (status, output) = chain(folder, &["here", "--verify", "--at", "2020-01-01"])?;
            ensure(status == 16 && output.contains("pages were not read") && !output.contains("--verify"), output)
        }),
        ("a file name that sqlcmd would change is not written into statements", |folder| {
            make(folder, &[])?;
            fs::rename(folder.join("here/01_full.bak"), folder.join("here/$(x).bak"))?;
            let (status, script) = chain(folder, &["here", "--script", "-"])?;
            ensure(
                status == 0 && script.contains("cannot be restored") && !script.contains("RESTORE D"),
                script.clone(),
            )?;
            ensure(!script.contains("$("), script)
        }),
        ("chain names the stripe that is missing, and takes a copy of a stripe for a copy", |folder| {
            make(folder, &["--stripes", "2"])?;
            let line = json(folder, &["here"])?;
            let full = line["sets"][0]["paths"][1].as_str().ok_or("no second stripe")?.to_owned();
            let first = line["sets"][0]["paths"][0].as_str().ok_or("no first stripe")?.to_owned();
            fs::remove_file(folder.join(full))?;
            fs::copy(folder.join(first), folder.join("here/copy.bak"))?;
            let (status, output) = chain(folder, &["here"])?;
            ensure(status == 16 && output.contains("stripe 2 of 2 is missing"), output.clone())?;
            ensure(output.contains("nothing can be restored: no complete full backup"), output)
        }),
        ("chain --verify offers the way round a damaged differential, and the script takes it", |folder| {
            make(folder, &[])?;
            let path = folder.join("here/04_diff.bak");
            let mut bytes = fs::read(&path)?;
            let pages = bytes.windows(4).position(|tag| tag == b"MQDA").ok_or("no pages")?;
            // Damages pages with rows in the differential. These pages follow the file header and the allocation maps.
            let (from, to) = (pages + 24 + 8 * 8192 + 200, (pages + 24 + 60 * 8192).min(bytes.len() - 65_536));
            bytes[from..to].iter_mut().step_by(2048).for_each(|byte| *byte ^= 0x55);
            fs::write(&path, bytes)?;
            let (status, output) = chain(folder, &["here", "--verify", "--script", "round.sql"])?;
            ensure(status & 1 == 1, output.clone())?;
            ensure(output.contains("cannot be restored until"), output.clone())?;
            let (_, round) = output.split_once("by another path, without 04_diff.bak").ok_or(output.clone())?;
            ensure(round.contains("03_log.trn") && round.contains("restored and checked: "), output.clone())?;
            let script = fs::read_to_string(folder.join("round.sql"))?;
            ensure(!script.contains("04_diff.bak") && script.matches("RESTORE LOG").count() == 4, script)?;
            // For a point in time after the end of the damaged differential, the restore that uses the differential
            // must have errors. The other restore, which replaces the differential by log backups, must be sound.
            let moment = finished(&json(folder, &["here"])?, "05_log.trn").replace(' ', "T");
            let asked = json(folder, &["here", "--verify", "--at", &moment])?;
            let (at, detour) = (&asked["at"]["verified"], &asked["detour"]);
            ensure(at["state"] == "errors" && detour["verified"]["state"] == "sound", asked.to_string())?;
            // Without --verify, the program reads only the labels. The labels are sound, and the output says that the
            // pages were not read.
            let (status, output) = chain(folder, &["here"])?;
            ensure(status == 0 && output.contains("pages were not read"), output)
        }),
        ("chain --verify goes round a damaged full backup by an older one and all log since", |folder| {
            make_of(folder, "full,log,full,log", &[])?;
            let path = folder.join("here/03_full.bak");
            let mut bytes = fs::read(&path)?;
            let pages = bytes.windows(4).position(|tag| tag == b"MQDA").ok_or("no pages")?;
            let from = pages + 24 + 57 * 8192 + 200;
            bytes[from..from + 1024].iter_mut().for_each(|byte| *byte ^= 0x55);
            fs::write(&path, bytes)?;
            let line = json(folder, &["here", "--verify"])?;
            let detour = &line["detour"];
            let verified = line["chains"].as_array().into_iter().flatten().map(|chain| &chain["verified"]["state"]);
            ensure(verified.eq(["sound", "errors"]), line["chains"].to_string())?;
            ensure(detour["steps"].as_array().map(Vec::len) == Some(3), detour.to_string())?;
            ensure(
                detour["verified"]["state"] == "sound" && detour["until"] == line["chains"][1]["until"],
                detour.to_string(),
            )
        }),
    ]
}

/// Writes a chain of lab backups in this order: a full backup, two log backups, a differential, and two log backups.
fn make(folder: &Path, options: &[&str]) -> Result<(), Failed> {
    make_of(folder, "full,log,log,diff,log,log", options)
}

fn make_of(folder: &Path, sets: &str, options: &[&str]) -> Result<(), Failed> {
    let fixed = ["lab", "chain", "here", "--sets", sets, "--transactions", "60"];
    let made = mdfsck(folder, &[&fixed[..], options].concat());
    ensure(made.status.success(), text(&made.stderr))
}

fn chain(folder: &Path, arguments: &[&str]) -> Result<(i32, String), Failed> {
    let output = mdfsck(folder, &[&["chain"], arguments].concat());
    Ok((output.status.code().ok_or("killed")?, text(&output.stdout)))
}

fn json(folder: &Path, arguments: &[&str]) -> Result<Value, Failed> {
    let (_, line) = chain(folder, &[&["--json"], arguments].concat())?;
    Ok(serde_json::from_str(&line)?)
}

/// The finish time of the backup set in the file whose name contains `name`.
fn finished(line: &Value, name: &str) -> String {
    let sets = line["sets"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_it = |set: &&Value| set["paths"][0].as_str().is_some_and(|path| path.contains(name));
    sets.iter().find(is_it).and_then(|set| set["finished"].as_str()).unwrap_or_default().to_owned()
}

/// The words of a text, separated by single spaces.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
