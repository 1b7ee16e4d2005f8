//! Checks several databases and backups in one run.

use super::*;

/// The names of the sample databases. Database `b` is damaged.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Makes a folder `all` with three databases of the same name, and with unrelated files. Database `b` is damaged.
fn make(folder: &Path) -> Result<(), Failed> {
    fs::create_dir(folder.join("all"))?;
    for (name, seed) in NAMES.into_iter().zip(["1", "2", "3"]) {
        ensure(mdfsck(folder, &["lab", "new", name, "--size", "2MB", "--seed", seed]).status.success(), "lab new")?;
        let from = match name {
            "b" => {
                let damage = mdfsck(folder, &["lab", "damage", name, "-o", "damaged", "--kind", "key-order"]);
                ensure(damage.status.success(), text(&damage.stderr))?;
                "damaged"
            }
            name => name,
        };
        fs::copy(folder.join(from).join("orders.mdf"), folder.join(format!("all/{name}.mdf")))?;
    }
    fs::write(folder.join("all/notes.txt"), "mine")?;
    fs::write(folder.join("all/settings.bak"), "[settings]\nof = \"another program\"\n")?;
    Ok(())
}

/// Makes a folder `sets` with backups of a database that has two files. The backups are a full backup, and for each
/// file a newer backup set that contains only this file.
fn make_sets_of_files(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    use lab::backup::{BackupOptions, Set, backup};
    let made = mdfsck(folder, &["lab", "new", "db", "--size", "2MB", "--files", "2"]);
    ensure(made.status.success(), text(&made.stderr))?;
    fs::create_dir(folder.join("sets"))?;
    let files = ["db/orders.mdf", "db/orders_2.ndf"].map(|file| folder.join(file));
    let write = |step, name: &str, only| {
        let options = BackupOptions { only, ..BackupOptions::default() };
        backup(&[Set { files: &files, step, options }], &folder.join("sets"), name).map_err(|error| error.to_string())
    };
    let mut made = Vec::new();
    for (step, name, only) in [(1, "full", None), (2, "first", Some(&[1][..])), (3, "second", Some(&[3][..]))] {
        made.extend(write(step, name, only)?.files);
    }
    Ok(made)
}

/// The JSON lines of a report, without values that differ between runs.
fn lines(output: &Output) -> Vec<serde_json::Value> {
    let mut lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    lines.retain(|line| line["kind"] != "statistics");
    for line in &mut lines {
        for key in ["seconds", "phases", "memory_peak", "memory_granted", "spilled", "pages_read"] {
            line.as_object_mut().map(|fields| fields.remove(key));
        }
        for row in line["databases"].as_array_mut().into_iter().flatten() {
            row.as_object_mut().map(|fields| fields.remove("seconds"));
        }
    }
    lines
}

fn kinds(lines: &[serde_json::Value], of: &[&str]) -> Vec<String> {
    let kinds = lines.iter().filter_map(|line| line["kind"].as_str()).filter(|kind| of.contains(kind));
    kinds.map(str::to_owned).collect()
}

pub(super) fn with_many() -> Vec<(&'static str, Test)> {
    vec![
        ("sets of files in a folder are one database beside the full backup", |folder| {
            make_sets_of_files(folder)?;
            let all = mdfsck(folder, &["check", "sets"]);
            let (stdout, stderr) = (text(&all.stdout), text(&all.stderr));
            ensure(all.status.success(), format!("{:?} {stderr}", all.status))?;
            ensure(stdout.contains("Backup of 'orders': sets/first.bak, set 1; sets/second.bak, set 1"), &stdout)?;
            let one = mdfsck(folder, &["check", "sets/first.bak", "sets/second.bak"]);
            ensure(text(&one.stderr).contains("of different points in time"), text(&one.stderr))?;
            let alone = mdfsck(folder, &["check", "sets/first.bak"]);
            ensure(text(&alone.stderr).contains("the backup holds 1 of 2 data files"), text(&alone.stderr))?;
            let without = mdfsck(folder, &["check", "sets/second.bak"]);
            ensure(without.status.code() == Some(4), text(&without.stderr))?;
            ensure(
                text(&without.stderr).contains("name the backup of the primary filegroup too"),
                text(&without.stderr),
            )?;
            for command in [
                &["plan", "sets/first.bak", "sets/second.bak", "--dir", "p", "--task-size", "1MB"][..],
                &["task", "p", "0-7"],
            ] {
                let done = mdfsck(folder, command);
                ensure(done.status.success(), text(&done.stderr))?;
            }
            let merged = mdfsck(folder, &["merge", "p"]);
            ensure(text(&merged.stdout) == text(&one.stdout), text(&merged.stderr))?;
            let moment =
                mdfsck(folder, &["check", "sets/first.bak", "sets/second.bak", "--stop-at", "2030-01-01T00:00:00"]);
            ensure(moment.status.code() == Some(4), text(&moment.stderr))?;
            let chain = text(&mdfsck(folder, &["chain", "sets"]).stdout);
            ensure(chain.contains("file or filegroup backup, which no chain uses"), &chain)?;
            let info = text(&mdfsck(folder, &["info", "sets/first.bak"]).stdout);
            ensure(info.contains("File or Filegroup"), &info)
        }),
        ("each database of a folder is checked, and a table of all has the worst status", |folder| {
            make(folder)?;
            let all = mdfsck(folder, &["check", "all"]);
            let (stdout, stderr) = (text(&all.stdout), text(&all.stderr));
            ensure(all.status.code() == Some(17), format!("{:?} {stderr}", all.status))?;
            let mut rest = stdout.as_str();
            for name in NAMES {
                let path = format!("all/{name}.mdf");
                let one = text(&mdfsck(folder, &["check", &path]).stdout);
                let block = format!("Database 'orders': {path}\n{one}\n");
                rest = rest.strip_prefix(&block).ok_or_else(|| format!("{path}: {rest}"))?;
            }
            let rows: Vec<Vec<&str>> = rest.lines().map(|line| line.split_whitespace().collect()).collect();
            let [header, a, b, c, total, bad] = rows.as_slice() else { return Err(rest.into()) };
            ensure(header[..3] == ["database", "verdict", "errors"], rest)?;
            ensure(a[..3] == ["a.mdf", "sound", "0"] && c[..3] == ["c.mdf", "sound", "0"], rest)?;
            ensure(b[..3] == ["b.mdf", "NOT", "SOUND"] && b[3] != "0", rest)?;
            ensure(total.join(" ") == "3 databases and backups: 2 sound, 1 not sound", rest)?;
            ensure(bad.join(" ") == "b.mdf is not sound: all/b.mdf", rest)?;
            let foreign =
                "skipped, because these files are not data files, logs or backups: all/notes.txt, all/settings.bak";
            ensure(stderr.matches(foreign).count() == 1, stderr.clone())?;
            // The databases can also be given as patterns, or by their file names.
            for paths in [&["all/*"][..], &["*/?.mdf"], &["all/a.mdf", "all/b.mdf", "all/c.mdf"]] {
                let again = mdfsck(folder, &[&["check"], paths].concat());
                ensure(again.stdout == all.stdout || paths[0].starts_with('*'), text(&again.stdout))?;
                ensure(again.status.code() == Some(17), text(&again.stderr))?;
            }
            Ok(())
        }),
        ("several databases as JSON are one run to its summary after another, and a line of all", |folder| {
            make(folder)?;
            fs::write(folder.join("all/empty.bak"), "")?;
            fs::write(folder.join("all/lost.mdf"), vec![0; 40_000])?;
            let all = mdfsck(folder, &["check", "--format", "json", "all"]);
            ensure(all.status.code() == Some(17 + 4), text(&all.stderr))?;
            let all = lines(&all);
            let order = ["run", "summary", "run", "summary", "run", "summary"];
            let order = [&order[..], &["error", "summary", "error", "summary", "databases"]].concat();
            ensure(kinds(&all, &["run", "summary", "error", "databases"]) == order, format!("{all:?}"))?;
            let last = all.last().ok_or("no line")?;
            let of = |key: &str| -> Vec<&serde_json::Value> {
                last["databases"].as_array().into_iter().flatten().map(|row| &row[key]).collect()
            };
            ensure(of("verdict") == ["sound", "not-sound", "sound", "not-checked", "not-checked"], last.to_string())?;
            ensure(of("exit_status") == [0, 17, 0, 4, 4] && last["exit_status"] == 21, last.to_string())?;
            ensure(last["passed_over"][1] == "all/settings.bak", last.to_string())?;
            let error = all.iter().find(|line| line["kind"] == "error").ok_or("no error")?;
            ensure(error["file"] == "all/empty.bak", error.to_string())?;
            // The lines of each database equal those of a check of this database alone.
            let one = lines(&mdfsck(folder, &["check", "--format", "json", "all/b.mdf"]));
            let start = all.iter().position(|line| *line == one[0]).ok_or("no such run")?;
            ensure(all[start..start + one.len()] == one, "the same lines")
        }),
        ("side by side is one after another, byte for byte, within one grant", |folder| {
            make(folder)?;
            fs::write(folder.join("all/empty.bak"), "")?;
            for options in [&[][..], &["--no-infomsgs"], &["--tableresults"], &["--physical-only", "--maxdop", "1"]] {
                let run = |more: &[&str]| mdfsck(folder, &[&["check", "all"], options, more].concat());
                let one = run(&[]);
                for more in
                    [&["--databases", "2"][..], &["--databases", "9"], &["--databases", "3", "--memory", "60MB"]]
                {
                    let beside = run(more);
                    ensure(beside.stdout == one.stdout, format!("{options:?} {more:?}: {}", text(&beside.stdout)))?;
                    ensure(beside.stderr == one.stderr, format!("{options:?} {more:?}: {}", text(&beside.stderr)))?;
                    ensure(beside.status.code() == one.status.code(), text(&beside.stderr))?;
                }
            }
            // A database that needs more memory than its share of the grant is checked alone. A database that needs
            // more than the whole grant is refused.
            let least = text(&mdfsck(folder, &["check", "--memory", "1MB", "all/a.mdf"]).stderr);
            let least =
                least.split("needs at least ").nth(1).and_then(|rest| rest.split(" (").next()).ok_or("least")?;
            let least = least.replace(' ', "");
            let tight = mdfsck(folder, &["check", "all", "--databases", "2", "--memory", &least]);
            ensure(tight.stdout == mdfsck(folder, &["check", "all"]).stdout, text(&tight.stderr))?;
            let refused = mdfsck(folder, &["check", "all", "--databases", "2", "--memory", "1MB"]);
            ensure(refused.status.code() == Some(4 + 8), text(&refused.stderr))?;
            ensure(text(&refused.stdout).contains("a.mdf was not checked: --memory 1 MB"), text(&refused.stdout))
        }),
        ("rows of several databases are under one line of columns, the table is on stderr", |folder| {
            make(folder)?;
            let rows = mdfsck(folder, &["check", "--tableresults", "all"]);
            let stdout = text(&rows.stdout);
            ensure(stdout.matches("\"Error\"").count() + stdout.matches("Error,Level").count() == 1, stdout.clone())?;
            let width = |line: &str| line.matches(',').count() >= 22;
            ensure(stdout.lines().all(width), stdout)?;
            ensure(text(&rows.stderr).contains("b.mdf     NOT SOUND"), text(&rows.stderr))
        }),
        ("results of several databases go to one file, whole or not at all", |folder| {
            make(folder)?;
            let to_stdout = mdfsck(folder, &["check", "all"]);
            let to_file = mdfsck(folder, &["check", "all", "--output", "out.txt"]);
            ensure(to_file.status.code() == Some(17) && to_file.stdout.is_empty(), text(&to_file.stderr))?;
            ensure(fs::read(folder.join("out.txt"))? == to_stdout.stdout, "the same text")?;
            let before = fs::read(folder.join("all/a.mdf"))?;
            let refused = mdfsck(folder, &["check", "all", "--output", "all/a.mdf"]);
            ensure(refused.status.code() == Some(8) && refused.stdout.is_empty(), text(&refused.stderr))?;
            ensure(fs::read(folder.join("all/a.mdf"))? == before, "it is unchanged")?;
            let missing = mdfsck(folder, &["check", "all", "--output", "none/out.txt"]);
            ensure(missing.status.code() == Some(4) && missing.stdout.is_empty(), text(&missing.stderr))
        }),
        ("one database among other files is as if it were alone", |folder| {
            make(folder)?;
            fs::remove_file(folder.join("all/b.mdf"))?;
            fs::remove_file(folder.join("all/c.mdf"))?;
            let one = mdfsck(folder, &["check", "all/a.mdf"]);
            for path in ["all", "all/*.mdf", "all/*", "a*/a.*"] {
                let again = mdfsck(folder, &["check", path]);
                ensure(again.stdout == one.stdout && again.status.code() == Some(0), text(&again.stdout))?;
            }
            // If the same file is given by two names, one of which is a symbolic link, it must be checked only once.
            #[cfg(unix)]
            std::os::unix::fs::symlink("a.mdf", folder.join("all/b.mdf"))?;
            fs::hard_link(folder.join("all/a.mdf"), folder.join("all/z.mdf"))?;
            let again = mdfsck(folder, &["check", "all", "all/a.mdf"]);
            ensure(again.stdout == one.stdout, text(&again.stdout))
        }),
        ("a pattern that matches nothing is named; a name with a star is that file", |folder| {
            make(folder)?;
            refused(&mdfsck(folder, &["check", "all/*.trn"]), 4, &["all/*.trn", "nothing matches this pattern"])?;
            refused(&mdfsck(folder, &["info", "none/*"]), 4, &["none/*", "nothing matches this pattern"])?;
            fs::copy(folder.join("all/a.mdf"), folder.join("all/[x] a.mdf"))?;
            let found = mdfsck(folder, &["check", "all/[x]*"]);
            ensure(found.status.code() == Some(0), text(&found.stderr))?;
            #[cfg(unix)]
            {
                fs::copy(folder.join("all/a.mdf"), folder.join("all/*.mdf"))?;
                let literal = mdfsck(folder, &["check", "all/*.mdf"]);
                ensure(literal.status.code() == Some(0), text(&literal.stdout))?;
            }
            Ok(())
        }),
        ("an empty folder names what to do, and subfolders are not searched", |folder| {
            make(folder)?;
            fs::create_dir(folder.join("empty"))?;
            let nothing = "no SQL Server data file in this folder, and no backup";
            refused(&mdfsck(folder, &["check", "empty"]), 4, &["empty", nothing, "name the folder"])?;
            let below = ["no SQL Server data file in this folder", "subfolders are not searched", "./*"];
            refused(&mdfsck(folder, &["check", "."]), 4, &below)?;
            // The command that the message suggests must work.
            let all = mdfsck(folder, &["check", "./*"]);
            ensure(text(&all.stdout).contains("7 databases and backups:"), text(&all.stdout))?;
            refused(&mdfsck(folder, &["check", "nowhere"]), 4, &["nowhere", "cannot be opened"])
        }),
        ("what is wrong with one database does not keep the others from being checked", |folder| {
            make(folder)?;
            let all = mdfsck(folder, &["check", "all", "--table", "no_such_table"]);
            ensure(all.status.code() == Some(8), text(&all.stderr))?;
            ensure(text(&all.stdout).matches("NOT CHECKED").count() == 3, text(&all.stdout))?;
            // Two files have the same file ID of the same database, and nothing shows which of them belongs to the
            // database.
            let new = ["lab", "new", "two", "--size", "4MB", "--files", "2", "--seed", "9"];
            ensure(mdfsck(folder, &new).status.success(), "lab new")?;
            for entry in fs::read_dir(folder.join("two"))? {
                let path = entry?.path();
                fs::copy(&path, folder.join("all").join(path.file_name().ok_or("name")?))?;
            }
            let second = "all/orders_2.ndf";
            fs::copy(folder.join(second), folder.join("all/copy.ndf"))?;
            let all = mdfsck(folder, &["check", "all"]);
            ensure(all.status.code() == Some(17 + 8), text(&all.stdout))?;
            let (stdout, both) = (text(&all.stdout), "all/copy.ndf and all/orders_2.ndf: both are file");
            ensure(stdout.contains(both) && stdout.contains("2 sound, 1 not sound, 1 not checked"), stdout.clone())?;
            // Deletes the primary file of the database with two files. The other databases must be checked, and the
            // missing primary file must be reported.
            fs::remove_file(folder.join("all/copy.ndf"))?;
            fs::remove_file(folder.join("all/orders.mdf"))?;
            let all = mdfsck(folder, &["check", "all"]);
            ensure(all.status.code() == Some(17 + 4), text(&all.stdout))?;
            ensure(text(&all.stdout).contains("its primary file"), text(&all.stdout))
        }),
        #[cfg(unix)]
        ("a file of a folder that cannot be read is a row of the table", |folder| {
            use std::os::unix::fs::PermissionsExt;
            make(folder)?;
            std::os::unix::fs::symlink("nowhere", folder.join("all/dangling.mdf"))?;
            let allow = |path: &str, mode| fs::set_permissions(folder.join(path), fs::Permissions::from_mode(mode));
            allow("all/c.mdf", 0o000)?;
            allow(".", 0o755)?;
            let Some(run) = who_may_not_read(folder, &folder.join("all/c.mdf")) else { return Ok(()) };
            let all = run(&["check", "all"])?;
            let stdout = text(&all.stdout);
            ensure(all.status.code() == Some(17 + 4), text(&all.stderr))?;
            ensure(stdout.contains("1 sound, 1 not sound, 2 not checked"), stdout.clone())?;
            ensure(stdout.contains("all/c.mdf was not checked: cannot be opened: Permission denied"), stdout.clone())?;
            ensure(stdout.contains("all/dangling.mdf was not checked: is a symbolic link to"), stdout)?;
            // If an unreadable folder is given together with other folders, the other folders must be checked, and the
            // unreadable folder must be reported.
            fs::create_dir(folder.join("closed"))?;
            allow("closed", 0o000)?;
            let all = run(&["check", "closed", "all"])?;
            ensure(text(&all.stdout).contains("closed was not checked: cannot be opened"), text(&all.stdout))?;
            refused(&run(&["check", "closed"])?, 4, &["closed", "Permission denied"])?;
            let info = run(&["info", "all"])?;
            ensure(
                info.status.code() == Some(4) && text(&info.stdout).matches("\nstate ").count() == 2,
                text(&info.stdout),
            )?;
            ensure(text(&info.stdout).contains("\nNOT CHECKED: all/c.mdf"), text(&info.stdout))?;
            allow("closed", 0o755)?;
            Ok(())
        }),
        (
            "info shows each database and backup, with an empty line between them and a line for each at the end",
            |folder| {
                make(folder)?;
                ensure(mdfsck(folder, &["lab", "backup", "a", "-o", "all"]).status.success(), "lab backup")?;
                let info = mdfsck(folder, &["info", "all"]);
                let stdout = text(&info.stdout);
                ensure(info.status.code() == Some(0), text(&info.stderr))?;
                let one = |name: &str| text(&mdfsck(folder, &["info", name]).stdout);
                let backup = fs::read_dir(folder.join("all"))?
                    .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
                    .find(|name| name.ends_with(".bak") && name != "settings.bak")
                    .ok_or("no backup")?;
                let names = ["all/a.mdf", "all/b.mdf", "all/c.mdf", &format!("all/{backup}")].map(one);
                let (blocks, table) = stdout.split_once("\ndatabase  product").ok_or("no table")?;
                ensure(blocks == names.join("\n"), stdout.clone())?;
                for line in ["a.mdf", "b.mdf", "c.mdf", backup.as_str()] {
                    ensure(table.lines().filter(|row| row.ends_with(line)).count() == 1, table)?;
                }
                ensure(table.contains("clean shutdown") && table.contains("\nbackup of"), table)?;
                let json = mdfsck(folder, &["info", "--json", "all"]);
                ensure(text(&json.stdout).lines().count() == 4, text(&json.stdout))
            },
        ),
        ("commands for one database name those that they were given, with an example", |folder| {
            make(folder)?;
            for command in ["tables", "lint", "audit", "bench"] {
                let words = ["2 databases: orders (a.mdf), orders (b.mdf)", &format!("mdfsck {command} all/a.mdf")];
                refused(&mdfsck(folder, &[command, "all/a.mdf", "all/b.mdf"]), 8, &words)?;
                let words = ["all: contains the data files of 3 databases", &format!("mdfsck {command} all/a.mdf")];
                refused(&mdfsck(folder, &[command, "all"]), 8, &words)?;
            }
            let words = ["for example: mdfsck page F:P all/a.mdf"];
            refused(&mdfsck(folder, &["page", "1:9", "all/a.mdf", "all/b.mdf"]), 8, &words)
        }),
        ("a log that was named goes to its database, and one of none is an error", |folder| {
            for (name, seed) in [("x", "5"), ("y", "6"), ("z", "7")] {
                ensure(mdfsck(folder, &["lab", "crash", name, "--seed", seed]).status.success(), "lab crash")?;
            }
            fs::create_dir(folder.join("logs"))?;
            for name in ["x", "y", "z"] {
                let from = folder.join(name).join("workload_log.ldf");
                fs::rename(from, folder.join(format!("logs/{name}.ldf")))?;
            }
            let check = |paths: &[&str]| mdfsck(folder, &[&["check", "--no-infomsgs"], paths].concat());
            let recovered = |output: &Output| text(&output.stderr).matches("recovered in memory").count();
            let named = check(&["x/workload.mdf", "y/workload.mdf", "logs/y.ldf", "logs/x.ldf"]);
            ensure(named.status.code() == Some(0) && recovered(&named) == 2, text(&named.stderr))?;
            ensure(text(&named.stderr).contains("mdfsck: workload: recovered in memory"), text(&named.stderr))?;
            let by_folder = check(&["x", "y", "logs"]);
            ensure(by_folder.status.code() == Some(0) && recovered(&by_folder) == 2, text(&by_folder.stderr))?;
            let foreign = check(&["x", "y", "logs/z.ldf", "logs/x.ldf", "logs/y.ldf"]);
            ensure(foreign.status.code() == Some(8) && recovered(&foreign) == 2, text(&foreign.stderr))?;
            let said = "logs/z.ldf was not checked: is a log of another database";
            ensure(text(&foreign.stdout).contains(said), text(&foreign.stdout))
        }),
        ("of backups in a folder the newest is checked, and said; --set last and --set all", |folder| {
            make(folder)?;
            // Writes two backup sets of a sound database, then two backup sets of a damaged database.
            let new = ["lab", "backup", "damaged", "--since", "b", "--kind", "diff", "--sets", "2", "-o", "bak"];
            ensure(mdfsck(folder, &new).status.success(), "lab backup")?;
            let check = |arguments: &[&str]| mdfsck(folder, &[&["check", "--no-infomsgs"], arguments].concat());
            let newest = check(&["bak"]);
            ensure(newest.status.code() == Some(17), text(&newest.stderr))?;
            let said = "checking the backup of 'orders': bak/full.bak, set 2; bak/diff.bak, set 2";
            ensure(text(&newest.stderr).contains(said), text(&newest.stderr))?;
            // If a file is named, a check uses its first backup set, as RESTORE does. An option requests other sets.
            ensure(check(&["bak/full.bak"]).status.code() == Some(0), "set 1")?;
            ensure(check(&["bak/full.bak", "--set", "2"]).status.code() == Some(0), "set 2")?;
            for wrong in [&["bak/full.bak", "--set", "3"][..], &["bak", "--set", "7", "--set", "9"]] {
                ensure(check(wrong).status.code() == Some(8), text(&check(wrong).stderr))?;
            }
            for wrong in ["0", "first", "-1"] {
                refused_by_usage(&check(&["bak", &format!("--set={wrong}")]), &["--set"])?;
            }
            let alone = "--set last and --set all cannot be combined";
            refused(&check(&["bak", "--set", "last", "--set", "1"]), 8, &[alone])?;
            let last = check(&["bak/full.bak", "--set", "last", "--json"]);
            let run = lines(&last).into_iter().next().ok_or("no line")?;
            ensure(run["sets"][0]["position"] == 2 && run["sets"][0]["backup_type"] == "Database", run.to_string())?;
            let all = check(&["bak", "--set", "all"]);
            let stdout = text(&all.stdout);
            let rows = ["full.bak, set 1", "full.bak, set 2", "diff.bak, set 1", "diff.bak, set 2"];
            // The table must have a row for each backup set. Both differentials are based on the second set of
            // full.bak.
            ensure(rows.iter().all(|row| stdout.contains(row)), stdout.clone())?;
            ensure(stdout.contains("4 databases and backups: 2 sound, 2 not sound"), stdout.clone())?;
            let beside = check(&["bak", "--set", "all", "--databases", "2"]);
            ensure(beside.stdout == all.stdout && beside.status == all.status, "side by side")?;
            // If a newer backup is in another file, older backups are listed as not checked.
            fs::create_dir(folder.join("days"))?;
            ensure(mdfsck(folder, &["lab", "backup", "a", "-o", "days"]).status.success(), "lab backup")?;
            ensure(mdfsck(folder, &["lab", "backup", "c", "-o", "other"]).status.success(), "lab backup")?;
            fs::rename(folder.join("days/full.bak"), folder.join("days/monday.bak"))?;
            ensure(
                mdfsck(folder, &["lab", "backup", "a", "-o", "days", "--sets", "2"]).status.success(),
                "lab backup",
            )?;
            fs::rename(folder.join("other/full.bak"), folder.join("days/other.bak"))?;
            let days = mdfsck(folder, &["check", "days"]);
            let older = "orders: not checked, because newer backups are checked: days/monday.bak, set 1; --set all";
            ensure(text(&days.stderr).contains(older), text(&days.stderr))?;
            ensure(text(&days.stdout).contains("2 databases and backups: 2 sound"), text(&days.stdout))?;
            // A copy of a backup must not be listed as an older backup.
            fs::create_dir(folder.join("twice"))?;
            fs::copy(folder.join("days/other.bak"), folder.join("twice/a.bak"))?;
            fs::copy(folder.join("days/other.bak"), folder.join("twice/b.bak"))?;
            let twice = mdfsck(folder, &["check", "twice"]);
            let copies = ": not checked, because these backups are copies of checked backups: twice/b.bak, set 1; give the copies";
            ensure(text(&twice.stderr).contains(copies), text(&twice.stderr))?;
            let both = mdfsck(folder, &["check", "twice/a.bak", "twice/b.bak"]);
            ensure(text(&both.stdout).contains("2 databases and backups: 2 sound"), text(&both.stdout))?;
            // If backups are named on the command line, all of them are checked.
            let days = ["days/monday.bak", "days/full.bak", "days/other.bak"];
            let named = mdfsck(folder, &[&["check"], &days[..]].concat());
            ensure(text(&named.stdout).contains("3 databases and backups: 3 sound"), text(&named.stdout))?;
            // All backups are sound, so nothing is printed.
            let silent = check(&days);
            ensure(silent.status.code() == Some(0) && silent.stdout.is_empty(), text(&silent.stdout))
        }),
        ("beside a chain of log backups each full backup that was named is checked, and others are named", |folder| {
            let lab = ["lab", "chain", "ch", "--sets", "full,log,full,log", "--seed", "5", "--transactions", "60"];
            ensure(mdfsck(folder, &lab).status.success(), "lab chain")?;
            let files = ["ch/01_full.bak", "ch/03_full.bak", "ch/02_log.trn", "ch/04_log.trn"];
            let named = mdfsck(folder, &[&["check"], &files[..]].concat());
            let (stdout, stderr) = (text(&named.stdout), text(&named.stderr));
            ensure(named.status.code() == Some(0), stderr.clone())?;
            ensure(stdout.contains("2 databases and backups: 2 sound"), stdout.clone())?;
            ensure(stdout.contains("ch/01_full.bak, set 1\n"), stdout)?;
            ensure(stderr.contains(": ch/02_log.trn, set 1"), stderr)?;
            // If only the folder is named, the newest full backup is checked.
            let found = mdfsck(folder, &["check", "ch"]);
            let stderr = text(&found.stderr);
            ensure(stderr.contains(": ch/01_full.bak, set 1, ch/02_log.trn, set 1"), stderr.clone())?;
            ensure(stderr.contains("ch/03_full.bak, set 1; ch/04_log.trn, set 1"), stderr)?;
            // --set all cannot be combined with a point in time.
            refused(
                &mdfsck(folder, &["check", "ch", "--set", "all", "--stop-at", "2024-01-01"]),
                8,
                &["combined with --stop-at"],
            )
        }),
        ("databases that share a backup device are each checked with their log backups", |folder| {
            for (name, seed) in [("x", "4"), ("y", "5")] {
                let lab = ["lab", "chain", name, "--sets", "full,log", "--seed", seed, "--transactions", "60"];
                ensure(mdfsck(folder, &lab).status.success(), "lab chain")?;
                fs::rename(folder.join(name).join("02_log.trn"), folder.join(name).join(format!("{name}.trn")))?;
            }
            // Appends the backup set of the second file to the first file. The appended set gets position 2.
            let mut device = fs::read(folder.join("x/01_full.bak"))?;
            let second = fs::read(folder.join("y/01_full.bak"))?;
            let at = second.chunks(512).position(|sector| sector.starts_with(b"SSET")).ok_or("no set")? * 512;
            let position = device.len() + 0x3E;
            device.extend(&second[at..]);
            device[position..position + 2].copy_from_slice(&2u16.to_le_bytes());
            fs::write(folder.join("device.bak"), device)?;
            let paths = ["device.bak", "x/x.trn", "y/y.trn"];
            let all = lines(&mdfsck(folder, &[&["check", "--json"], &paths[..]].concat()));
            let mut runs: Vec<String> = all
                .iter()
                .filter(|line| line["kind"] == "run")
                .map(|run| {
                    let set = |number: usize| {
                        format!("{} {}", run["sets"][number]["paths"][0], run["sets"][number]["position"])
                    };
                    format!("{}, {}", set(0), set(1))
                })
                .collect();
            runs.sort();
            let expected = ["\"device.bak\" 1, \"x/x.trn\" 1", "\"device.bak\" 2, \"y/y.trn\" 1"];
            ensure(runs == expected, format!("{runs:?}"))?;
            ensure(all.last().is_some_and(|last| last["exit_status"] == 0), format!("{:?}", all.last()))
        }),
        ("a file that is missing does not keep the others from being checked", |folder| {
            make(folder)?;
            ensure(mdfsck(folder, &["lab", "backup", "a", "-o", "bak"]).status.success(), "lab backup")?;
            for (given, missing) in [("bak/full.bak", "nosuch.bak"), ("all/a.mdf", "nosuch.mdf")] {
                let checked = mdfsck(folder, &["check", given, missing]);
                ensure(checked.status.code() == Some(4), text(&checked.stderr))?;
                let stdout = text(&checked.stdout);
                ensure(stdout.contains("1 sound, 1 not checked"), stdout.clone())?;
                ensure(stdout.contains(&format!("{missing} was not checked: cannot be opened")), stdout)?;
            }
            Ok(())
        }),
        ("a stray file with a damaged header does not make a sound database corrupt", |folder| {
            make(folder)?;
            fs::create_dir(folder.join("stray"))?;
            fs::copy(folder.join("all/a.mdf"), folder.join("stray/a.mdf"))?;
            for name in ["two", "own"] {
                let new = ["lab", "new", name, "--size", "4MB", "--files", "2", "--seed", "9"];
                ensure(mdfsck(folder, &new).status.success(), "lab new")?;
            }
            let mut bytes = fs::read(folder.join("two/orders_2.ndf"))?;
            bytes[..PAGE_BYTES].fill(0);
            fs::write(folder.join("stray/other.ndf"), &bytes)?;
            for paths in [&["stray"][..], &["stray/*"], &["stray/a.mdf", "stray/other.ndf"]] {
                let checked = mdfsck(folder, &[&["check"], paths].concat());
                let stdout = text(&checked.stdout);
                ensure(checked.status.code() == Some(4), format!("{paths:?}: {stdout}"))?;
                ensure(stdout.contains("1 sound, 1 not checked"), format!("{paths:?}: {stdout}"))?;
            }
            // A file that the catalog lists belongs to the database, so its damage is found.
            fs::write(folder.join("own/orders_2.ndf"), &bytes)?;
            let checked = mdfsck(folder, &["check", "own"]);
            ensure(checked.status.code().is_some_and(|status| status & 1 == 1), text(&checked.stdout))?;
            ensure(!text(&checked.stdout).contains("not checked"), text(&checked.stdout))
        }),
        ("of copies of a database each has the log in its folder", |folder| {
            ensure(mdfsck(folder, &["lab", "crash", "x", "--seed", "5"]).status.success(), "lab crash")?;
            fs::create_dir(folder.join("y"))?;
            fs::create_dir(folder.join("logs"))?;
            for (name, to) in [("workload.mdf", "y"), ("workload_log.ldf", "y"), ("workload_log.ldf", "logs")] {
                fs::copy(folder.join("x").join(name), folder.join(to).join(name))?;
            }
            let files = ["x/workload.mdf", "y/workload.mdf", "x/workload_log.ldf", "y/workload_log.ldf"];
            let both = mdfsck(folder, &[&["check"], &files[..]].concat());
            ensure(both.status.code() == Some(0), format!("{} {}", text(&both.stdout), text(&both.stderr)))?;
            let other = mdfsck(folder, &[&["check", "logs/workload_log.ldf"], &files[..]].concat());
            ensure(other.status.code() == Some(8), text(&other.stdout))?;
            ensure(text(&other.stdout).contains("several copies"), text(&other.stdout))?;
            ensure(text(&other.stdout).contains("2 sound, 1 not checked"), text(&other.stdout))
        }),
        ("info --json has an error line for what cannot be shown, and its bits", |folder| {
            make(folder)?;
            fs::write(folder.join("all/empty.bak"), "")?;
            let info = mdfsck(folder, &["info", "--json", "all"]);
            ensure(info.status.code() == Some(4), text(&info.stderr))?;
            let all = lines(&info);
            ensure(kinds(&all, &["info", "error"]) == ["info", "info", "info", "error"], text(&info.stdout))
        }),
        ("the line for the error log does not go to the file of the results", |folder| {
            make(folder)?;
            for path in ["out.txt", "./out.txt"] {
                let both = ["check", "all/a.mdf", "--output", "out.txt", "--errorlog-line", path];
                refused(&mdfsck(folder, &both), 8, &["--errorlog-line", "is the file of --output"])?;
                ensure(!folder.join("out.txt").exists(), "nothing is written")?;
            }
            Ok(())
        }),
        #[cfg(target_os = "linux")]
        ("a restore may open as many files as the system allows", |folder| {
            let sets = format!("full{}", ",log".repeat(30));
            let lab = ["lab", "chain", "ch", "--sets", &sets, "--transactions", "31"];
            ensure(mdfsck(folder, &lab).status.success(), "lab chain")?;
            let mut shell = Command::new("sh");
            let script = format!("ulimit -S -n 20; exec {} check ch", env!("CARGO_BIN_EXE_mdfsck"));
            let output = shell.args(["-c", &script]).current_dir(folder).output()?;
            ensure(output.status.code() == Some(0), text(&output.stderr))
        }),
        ("a pattern without a match does not keep the others from being checked", |folder| {
            make(folder)?;
            let checked = mdfsck(folder, &["check", "all/a.mdf", "none/*.mdf", "all/c.mdf"]);
            ensure(checked.status.code() == Some(4), text(&checked.stdout))?;
            ensure(text(&checked.stdout).contains("2 sound, 1 not checked"), text(&checked.stdout))?;
            ensure(
                text(&checked.stdout).contains("none/*.mdf was not checked: nothing matches this pattern"),
                text(&checked.stdout),
            )
        }),
        ("a file that is named beside its folder is named, however it is spelled", |folder| {
            make(folder)?;
            let backup = ["lab", "backup", "a", "-o", "bak", "--sets", "2"];
            ensure(mdfsck(folder, &backup).status.success(), "lab backup")?;
            // If a folder is named, its newest backup set is checked. If a file is named, its first set is checked.
            for named in ["bak/full.bak", "./bak/full.bak", "bak/../bak/full.bak"] {
                let run = lines(&mdfsck(folder, &["check", "--json", "bak", named])).into_iter().next();
                let run = run.ok_or("no line")?;
                ensure(run["sets"][0]["position"] == 1, format!("{named}: {run}"))?;
            }
            Ok(())
        }),
        #[cfg(target_os = "linux")]
        ("results of several databases that cannot be written leave the status of what was found", |folder| {
            make(folder)?;
            let full = |options: &[&str]| {
                let out = fs::OpenOptions::new().write(true).open("/dev/full")?;
                let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
                let output = command.arg("check").args(options).current_dir(folder).stdout(out).output()?;
                Ok::<_, Failed>(output.status.code())
            };
            for options in
                [&["all/b.mdf"][..], &["all/b.mdf", "all/a.mdf"], &["all/b.mdf", "all/a.mdf", "--databases", "2"]]
            {
                let status = full(options)?;
                ensure(status == Some(1 + 4 + 16), format!("{options:?}: {status:?}"))?;
            }
            Ok(())
        }),
        ("of a full backup and its differentials the newest is taken, and the other is named", |folder| {
            make(folder)?;
            let backup = |sets: &str, to: &str| {
                let new = ["lab", "backup", "damaged", "--since", "b", "--kind", "diff", "--sets", sets, "-o", to];
                mdfsck(folder, &new).status.success()
            };
            ensure(backup("1", "one") && backup("2", "two"), "lab backup")?;
            // The first differential in the second folder is based on a different full backup, so it cannot be checked
            // together with the full backup in the first folder.
            let named = mdfsck(folder, &["check", "--no-infomsgs", "one/full.bak", "two/diff.bak"]);
            ensure(named.status.code() == Some(4), text(&named.stderr))?;
            fs::copy(folder.join("one/diff.bak"), folder.join("one/copy.bak"))?;
            let both = mdfsck(folder, &["check", "--no-infomsgs", "one/full.bak", "one/diff.bak", "one/copy.bak"]);
            ensure(both.status.code() == Some(17), text(&both.stderr))?;
            let said = "copies of checked backups: one/copy.bak, set 1";
            ensure(text(&both.stderr).contains(said), text(&both.stderr))?;
            let one = mdfsck(folder, &["check", "--no-infomsgs", "one/full.bak", "one/diff.bak"]);
            ensure(both.stdout == one.stdout, "the same results")
        }),
        ("backups that are cut off or lack a stripe have rows that say so", |folder| {
            make(folder)?;
            for (name, to, stripes) in [("a", "bak", "1"), ("b", "cut", "1"), ("c", "striped", "2")] {
                let done = mdfsck(folder, &["lab", "backup", name, "-o", to, "--stripes", stripes]);
                ensure(done.status.success(), text(&done.stderr))?;
            }
            let bytes = fs::read(folder.join("cut/full.bak"))?;
            fs::write(folder.join("bak/cut.bak"), &bytes[..600])?;
            fs::write(folder.join("bak/half.bak"), &bytes[..bytes.len() / 2])?;
            for entry in fs::read_dir(folder.join("striped"))? {
                let path = entry?.path();
                fs::copy(&path, folder.join("bak").join(path.file_name().ok_or("name")?))?;
            }
            let check = || mdfsck(folder, &["check", "--format", "json", "bak"]);
            let verdicts = |output: &Output| -> Vec<String> {
                let last = lines(output).pop().unwrap_or_default();
                let rows = last["databases"].as_array().cloned().unwrap_or_default();
                rows.iter().map(|row| format!("{}: {}", row["paths"][0], row["verdict"])).collect()
            };
            let whole = check();
            let found = verdicts(&whole);
            let text_of = found.join(", ");
            ensure(found.len() == 4 && text_of.contains("\"bak/cut.bak\": \"not-checked\""), text_of.clone())?;
            ensure(text_of.contains("\"bak/half.bak\": \"not-sound\""), text_of.clone())?;
            ensure(text_of.contains("\"bak/full.bak\": \"sound\""), text_of)?;
            let stripe = fs::read_dir(folder.join("striped"))?.next().ok_or("no stripe")??.file_name();
            fs::remove_file(folder.join("bak").join(stripe))?;
            let lacking = verdicts(&check()).join(", ");
            ensure(lacking.contains("\"incomplete\"") || lacking.matches("not-sound").count() == 2, lacking)
        }),
    ]
}
