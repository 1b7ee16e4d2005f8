//! `mdfsck advise`: the steps for each kind of damage, and the backups from which the steps restore pages.

use serde_json::Value;

use super::database::edit;
use super::*;

pub(super) fn with_advice() -> Vec<(&'static str, Test)> {
    vec![
        ("advise names the steps for each kind of damage", |folder| {
            run(folder, &["lab", "new", "sound"])?;
            let last_resort = ["inspect", "export", "repair_allow_data_loss", "inspect"];
            let expected: [(&str, &[&str]); 9] = [
                ("bit-rot", &last_resort),
                ("torn-write", &last_resort),
                ("lost-write", &["rebuild_index", "inspect"]),
                ("swapped-pages", &last_resort),
                ("broken-link", &["rebuild_table", "inspect"]),
                ("key-order", &["rebuild_table", "inspect"]),
                ("zeroed-extent", &last_resort),
                ("lost-extent", &["rebuild_table", "export", "repair_allow_data_loss", "inspect"]),
                ("truncated", &["inspect", "inspect", "export", "export", "inspect"]),
            ];
            for (kind, steps) in expected {
                run(folder, &["lab", "damage", "sound", "-o", kind, "--kind", kind, "--seed", "3"])?;
                let lines = advise(folder, &[kind])?;
                ensure(actions(&lines) == steps, format!("{kind}: {:?}", actions(&lines)))?;
                let named = lines.iter().filter(|line| line["kind"] == "step");
                let is_told = |step: &Value| {
                    ["reason", "risk", "title"]
                        .iter()
                        .all(|key| step[*key].as_str().is_some_and(|text| !text.is_empty()))
                        && step["findings"].as_array().is_some_and(|ids| !ids.is_empty())
                };
                ensure(named.clone().all(is_told), format!("{kind}: {lines:?}"))?;
                let shown = text(&mdfsck(folder, &["advise", kind]).stdout);
                let is_statement = |line: &&str| line.starts_with("     ") || line.starts_with("   run ");
                let wide = shown.lines().find(|line| !is_statement(line) && line.chars().count() > 80);
                ensure(wide.is_none(), format!("{kind}: {wide:?}"))?;
                let file = format!("{kind}.sql");
                run_any(folder, &["advise", kind, "--script", &file]);
                let script = fs::read_to_string(folder.join(file))?;
                nothing_runs(&script)?;
                outside_comes_first(&script)?;
            }
            let lost = advise(folder, &["bit-rot"])?;
            let loss = lost.iter().find(|line| line["kind"] == "loss").ok_or("no loss")?;
            ensure(loss["object"] == "dbo.orders" && loss["first_key"].is_string(), loss.to_string())?;
            ensure(loss["columns_recoverable"].as_array().is_some_and(|columns| columns.len() > 2), loss.to_string())
        }),
        ("advice on a sound database is nothing to do", |folder| {
            run(folder, &["lab", "new", "sound", "--size", "9MB"])?;
            let output = mdfsck(folder, &["advise", "sound"]);
            ensure(output.status.code() == Some(0), text(&output.stderr))?;
            ensure(text(&output.stdout) == "orders is sound: nothing to do.\n", text(&output.stdout))
        }),
        ("an index is rebuilt with its whole definition at hand", |folder| {
            run(folder, &["lab", "new", "sound"])?;
            run(folder, &["lab", "damage", "sound", "-o", "hurt", "--kind", "lost-write", "--seed", "3"])?;
            let output = mdfsck(folder, &["advise", "hurt", "--script", "plan.sql"]);
            ensure(output.status.code() == Some(17), text(&output.stderr))?;
            let script = fs::read_to_string(folder.join("plan.sql"))?;
            let parts = [
                "USE [orders];\nALTER INDEX [ux_order_lines_tracking] ON [dbo].[order_lines] DISABLE;\n\
                 ALTER INDEX [ux_order_lines_tracking] ON [dbo].[order_lines] REBUILD;",
                "-- CREATE UNIQUE NONCLUSTERED INDEX [ux_order_lines_tracking] ON [dbo].[order_lines] (",
            ];
            ensure(parts.iter().all(|part| script.contains(part)), script.clone())?;
            nothing_runs(&script)?;
            refused(&mdfsck(folder, &["advise", "hurt", "--script", "plan.sql"]), 8, &["will not be overwritten"])?;
            ensure(fs::read_to_string(folder.join("plan.sql"))? == script, "the file is as it was")
        }),
        ("pages are restored from a backup whose copies are sound: exactly the damaged ones", |folder| {
            run(folder, &["lab", "new", "sound"])?;
            in_full_recovery(&folder.join("sound/orders.mdf"));
            run(folder, &["lab", "backup", "sound", "-o", "backups"])?;
            for kind in ["bit-rot", "torn-write", "swapped-pages", "zeroed-extent"] {
                run(folder, &["lab", "damage", "sound", "-o", kind, "--kind", kind, "--seed", "5"])?;
                let (was, is) =
                    (fs::read(folder.join("sound/orders.mdf"))?, fs::read(folder.join(kind).join("orders.mdf"))?);
                let pages = was.chunks_exact(PAGE_BYTES).zip(is.chunks_exact(PAGE_BYTES)).enumerate();
                let changed: Vec<String> =
                    pages.filter(|(_, (was, is))| was != is).map(|(page, _)| format!("1:{page}")).collect();
                let lines = advise(folder, &[kind, "--backups", "backups"])?;
                ensure(actions(&lines).first() == Some(&"restore_pages"), format!("{kind}: {:?}", actions(&lines)))?;
                let step = lines.iter().find(|line| line["kind"] == "step").ok_or("no step")?;
                ensure(step["pages"] == Value::from(changed.clone()), format!("{kind}: {changed:?}, {step}"))?;
                let list = format!("PAGE = '{}'", changed.join(", "));
                ensure(step["sql"].to_string().contains(&list), format!("{kind}: {step}"))?;
                for page in &changed {
                    let raw = |path: &str| mdfsck(folder, &["page", page, path, "--raw"]).stdout;
                    ensure(raw("sound") == raw("backups/full.bak") && !raw("sound").is_empty(), page.clone())?;
                }
                ensure(lines.iter().all(|line| line["kind"] != "loss"), "nothing is lost")?;
            }
            Ok(())
        }),
        ("without a kept log pages are not restored: the database is, after a look at what is lost by it", |folder| {
            run(folder, &["lab", "new", "sound"])?;
            run(folder, &["lab", "backup", "sound", "-o", "backups"])?;
            run(folder, &["lab", "damage", "sound", "-o", "hurt", "--kind", "bit-rot", "--seed", "3"])?;
            let lines = advise(folder, &["hurt", "--backups", "backups"])?;
            ensure(actions(&lines) == ["export", "restore_database", "inspect"], format!("{:?}", actions(&lines)))?;
            let step = &lines[1];
            ensure(step["reason"].as_str().is_some_and(|reason| reason.contains("simple recovery")), step.to_string())?;
            // In the script, the command that saves rows is only a comment. The statements that restore the database
            // come after this comment. Therefore, these statements must not run before the user edits the script.
            run_any(folder, &["advise", "hurt", "--backups", "backups", "--script", "plan.sql"]);
            let script = fs::read_to_string(folder.join("plan.sql"))?;
            ensure(script.contains(" REPLACE, NORECOVERY;"), script.clone())?;
            nothing_runs(&script)?;
            outside_comes_first(&script)?;
            ensure(step["cannot_restore"].as_str().is_some_and(|lost| lost.contains("2024-02-01")), step.to_string())
        }),
        ("a backup whose copy is damaged too is skipped for the next older one, and said", |folder| {
            let page = in_use(folder)?;
            let newest = advise(folder, &["hurt", "--backups", "here"])?;
            ensure(files_of(&newest[0]) == ["03_full.bak", "04_log.trn", "05_log.trn"], newest[0].to_string())?;
            spoil(folder, "here/03_full.bak", &page)?;
            let older = advise(folder, &["hurt", "--backups", "here"])?;
            ensure(actions(&older).first() == Some(&"restore_pages"), format!("{:?}", actions(&older)))?;
            let files = ["01_full.bak", "02_log.trn", "04_log.trn", "05_log.trn"];
            ensure(files_of(&older[0]) == files, older[0].to_string())?;
            let said = older.iter().find(|line| line["kind"] == "rejected").ok_or("not said")?;
            let is_named = said["set"].as_str().is_some_and(|set| set.contains("03_full.bak"));
            ensure(is_named && said["reason"].as_str().is_some_and(|why| why.contains(&page)), said.to_string())?;
            spoil(folder, "here/01_full.bak", &page)?;
            let none = advise(folder, &["hurt", "--backups", "here"])?;
            ensure(
                !actions(&none).iter().any(|action| action.starts_with("restore")),
                format!("{:?}", actions(&none)),
            )?;
            ensure(none.iter().filter(|line| line["kind"] == "rejected").count() == 2, format!("{none:?}"))?;
            ensure(none.iter().any(|line| line["kind"] == "loss"), format!("{none:?}"))
        }),
        ("log that is missing between the backups keeps pages from being restored, and is named", |folder| {
            in_use(folder)?;
            fs::remove_file(folder.join("here/04_log.trn"))?;
            let lines = advise(folder, &["hurt", "--backups", "here"])?;
            ensure(!actions(&lines).contains(&"restore_pages"), format!("{:?}", actions(&lines)))?;
            let restore = lines.iter().find(|line| line["action"] == "restore_database").ok_or("no restore")?;
            let reason = restore["reason"].as_str().unwrap_or_default();
            ensure(reason.contains("log backups are missing: from LSN"), restore.to_string())
        }),
        ("pages that RESTORE does not take one by one are never among those to be restored", |folder| {
            run(folder, &["lab", "new", "sound"])?;
            in_full_recovery(&folder.join("sound/orders.mdf"));
            run(folder, &["lab", "backup", "sound", "-o", "backups"])?;
            for page in [0, 1, 2, 3, 6, 7, 9] {
                let mut bytes = fs::read(folder.join("sound/orders.mdf"))?;
                bytes[page * PAGE_BYTES + 4000] ^= 0x55;
                fs::create_dir_all(folder.join("hurt"))?;
                fs::write(folder.join("hurt/orders.mdf"), bytes)?;
                let output = mdfsck(folder, &["advise", "hurt", "--backups", "backups", "--json"]);
                let shown = text(&output.stdout);
                ensure(!shown.contains("restore_pages") && !shown.contains("PAGE ="), format!("{page}: {shown}"))?;
                // A check of data files does not read page 7, the map of minimally logged extents, so it cannot see
                // damage to this page.
                let is_seen = page != 7;
                ensure(shown.contains("\"action\":\"restore_database\"") == is_seen, format!("{page}: {shown}"))?;
            }
            Ok(())
        }),
        ("advice on a damaged backup says which other one is clean, and what to do at the source", |folder| {
            let page = in_use(folder)?;
            spoil(folder, "here/03_full.bak", &page)?;
            let output = mdfsck(folder, &["advise", "here/03_full.bak", "--backups", "here", "--json"]);
            let lines = lines(&output)?;
            ensure(output.status.code().is_some_and(|code| code & 1 == 1), text(&output.stderr))?;
            ensure(actions(&lines).starts_with(&["inspect", "restore_database"]), format!("{:?}", actions(&lines)))?;
            ensure(files_of(&lines[1]).first().is_some_and(|file| file == "01_full.bak"), lines[1].to_string())?;
            ensure(lines[0]["sql"].to_string().contains("DBCC CHECKDB (N'workload')"), lines[0].to_string())
        }),
        ("what is missing of the input comes first, by name, and nothing of it is called damaged", |folder| {
            run(folder, &["lab", "new", "whole", "--size", "9MB", "--files", "2"])?;
            fs::create_dir(folder.join("one"))?;
            fs::copy(folder.join("whole/orders.mdf"), folder.join("one/orders.mdf"))?;
            run(folder, &["lab", "backup", "whole", "-o", "one", "--stripes", "2"])?;
            fs::remove_file(folder.join("one/full_2.bak"))?;
            let (file, stripe) =
                ("orders.mdf is 1 of 2 data files; give orders_2.ndf too", "stripe 2 of 2 is missing: ");
            for (input, first) in [("one/orders.mdf", file), ("one/full_1.bak", stripe)] {
                for arguments in [
                    &["check"][..],
                    &["check", "--identity", "--constraints"],
                    &["tables"],
                    &["lint"],
                    &["rows", "dbo.orders"],
                    &["export", "-o", &format!("out of {}", first.len())],
                    &["advise"],
                ] {
                    let output = mdfsck(folder, &[arguments, &[input]].concat());
                    let (shown, told) = (text(&output.stdout), text(&output.stderr));
                    let what = format!("{arguments:?} of {input}: {told}{shown}");
                    ensure(told.lines().next().is_some_and(|line| line.contains(first)), what.clone())?;
                    let words = ["damage ", "damaged", "shut down cleanly", "0 rows in 0 pages for object \"orders"];
                    let said = format!("{told}{shown}").replace("no damage was found", "").replace("--damaged", "");
                    let wrong = words.iter().find(|word| said.contains(**word));
                    ensure(wrong.is_none(), format!("{wrong:?} {what}"))?;
                }
                let lines = advise(folder, &[input])?;
                let title = lines[0]["title"].as_str().unwrap_or_default();
                ensure(title.starts_with("Provide the missing "), lines[0].to_string())?;
            }
            // The table also has pages in the missing file, so the check must not print the row count and page count of
            // the table.
            let checked = text(&mdfsck(folder, &["check", "one/orders.mdf"]).stdout);
            ensure(
                checked.contains("DBCC results for 'orders'.\n") && !checked.contains("pages for object \"orders\""),
                checked,
            )
        }),
        ("a database without its log is told what to do, in the order of harm", |folder| {
            run(folder, &["lab", "chain", "here", "--sets", "full,log"])?;
            run(folder, &["lab", "crash", "c", "--seed", "3", "--transactions", "200", "--open"])?;
            fs::remove_file(folder.join("c/workload_log.ldf"))?;
            let plain = ["inspect", "export", "inspect", "repair_allow_data_loss"];
            let lines = advise(folder, &["c", "--script", "plan.sql"])?;
            ensure(actions(&lines) == plain, format!("{:?}", actions(&lines)))?;
            let summary = lines.last().ok_or("no summary")?;
            ensure(summary["situation"] == "not_recovered", summary.to_string())?;
            let said = |line: &Value, words: &[&str]| {
                let line = line.to_string();
                ensure(words.iter().all(|word| line.contains(word)), line)
            };
            said(summary, &["was not recovered", "workload_log.ldf was not found"])?;
            said(&lines[0], &["Look for the log", "workload_log.ldf", "17207", "945", "mdfsck check c LOG"])?;
            said(&lines[1], &["mdfsck export c --no-log -o saved"])?;
            said(&lines[3], &["SET EMERGENCY", "stay half done", "written after the last checkpoint"])?;
            let script = fs::read_to_string(folder.join("plan.sql"))?;
            nothing_runs(&script)?;
            outside_comes_first(&script)?;
            // The command of the second step works as it is.
            ensure(mdfsck(folder, &["export", "c", "--no-log", "-o", "saved"]).status.code() == Some(16), "export")?;
            ensure(fs::read_dir(folder.join("saved"))?.count() > 1, "nothing was saved")?;
            // The objects in the last step are those that a check notes.
            let noted = text(&mdfsck(folder, &["check", "c", "--format", "json"]).stdout);
            let notes: Vec<Value> = noted.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
            let newer: Vec<&Value> = notes.iter().filter(|line| line["id"] == "recovery.newer-pages").collect();
            let lost = lines[3]["cannot_restore"].to_string();
            let is_named = |note: &&&Value| {
                let place = format!("{} ({})", note["scope"].as_str().unwrap_or_default(), note["count"]);
                lost.contains(&place)
            };
            ensure(
                !newer.is_empty() && newer.iter().take(5).filter(is_named).count() > 0,
                format!("{newer:?} {lost}"),
            )?;
            // Backups of another database are no help, and are named as such.
            let other = advise(folder, &["c", "--backups", "here"])?;
            said(&other[2], &["are of other databases"])?;
            // With its log, the database needs no advice.
            run(folder, &["lab", "crash", "whole", "--seed", "3", "--transactions", "200", "--open"])?;
            ensure(actions(&advise(folder, &["whole"])?).is_empty(), "with its log")
        }),
        ("a database without its log is restored if a backup is given, and its damage comes after", |folder| {
            let page = in_use(folder)?;
            for data in ["data", "hurt"] {
                edit(&folder.join(data).join("workload.recovered.mdf"), 9, |page| page[96 + 0x24 + 3] &= !0x40);
            }
            let lines = advise(folder, &["data", "--backups", "here"])?;
            let expected = ["inspect", "export", "restore_database", "repair_allow_data_loss"];
            ensure(actions(&lines) == expected, format!("{:?}", actions(&lines)))?;
            ensure(files_of(&lines[2]).first().is_some_and(|file| file == "03_full.bak"), lines[2].to_string())?;
            ensure(lines[2]["sql"].to_string().contains("REPLACE, NORECOVERY"), lines[2].to_string())?;
            let lines = advise(folder, &["hurt"])?;
            let said = lines.last().ok_or("no summary")?.to_string();
            ensure(said.contains("not_recovered") && said.contains("1 page is damaged"), said)?;
            let loss = lines.iter().find(|line| line["kind"] == "loss").ok_or("no loss")?;
            ensure(loss["pages"][0] == page, loss.to_string())?;
            ensure(lines[1]["command"].to_string().contains("--damaged"), lines[1].to_string())
        }),
        ("advice is for one database", |folder| {
            for seed in ["1", "2"] {
                run(folder, &["lab", "new", &format!("all/{seed}"), "--size", "9MB", "--seed", seed])?;
            }
            let both = ["advise", "all/1/orders.mdf", "all/2/orders.mdf"];
            refused(&mdfsck(folder, &both), 8, &["one database at a time"])
        }),
    ]
}

/// Requires that a server executes no statement of a script until a person edits the script. SET NOEXEC ON makes a
/// server compile the following statements without executing them.
fn nothing_runs(script: &str) -> Result<(), Failed> {
    let mut is_on = false;
    for line in script.lines().filter(|line| !line.is_empty() && !line.starts_with("--")) {
        match line {
            "SET NOEXEC ON;" => is_on = true,
            "SET NOEXEC OFF;" => is_on = false,
            _ => ensure(is_on, format!("{line} runs in {script}"))?,
        }
    }
    Ok(())
}

/// Requires that everything to do outside of the server precedes the guard of the statements that depend on it: the
/// command to run, and the advice to copy files.
fn outside_comes_first(script: &str) -> Result<(), Failed> {
    for step in script.split("\n-- Step ").skip(1) {
        let guarded = step.split_once("SET NOEXEC ON;").map_or("", |(_, guarded)| guarded);
        ensure(
            !guarded.contains("-- Run: ") && !guarded.contains("opy the files") && !guarded.contains("opy its files"),
            step,
        )?;
    }
    let saves = script.find("mdfsck export");
    let destroys = ["REPAIR_ALLOW_DATA_LOSS)", " REPLACE,"].iter().filter_map(|statement| script.find(statement)).min();
    ensure(saves.is_none() || destroys.is_none() || saves < destroys, script)
}

fn run_any(folder: &Path, arguments: &[&str]) {
    drop(mdfsck(folder, arguments));
}

fn run(folder: &Path, arguments: &[&str]) -> Result<(), Failed> {
    let output = mdfsck(folder, arguments);
    ensure(output.status.success(), format!("{arguments:?}: {}", text(&output.stderr)))
}

/// Runs `advise` and returns its JSON lines.
fn advise(folder: &Path, arguments: &[&str]) -> Result<Vec<Value>, Failed> {
    lines(&mdfsck(folder, &[&["advise", "--json"], arguments].concat()))
}

fn lines(output: &Output) -> Result<Vec<Value>, Failed> {
    let stdout = text(&output.stdout);
    let lines: Vec<Value> = stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure(lines.last().is_some_and(|line| line["kind"] == "summary"), text(&output.stderr))?;
    Ok(lines)
}

fn actions(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(|line| line["action"].as_str()).collect()
}

/// The names of the backup files that a step uses.
fn files_of(step: &Value) -> Vec<String> {
    let files = step["from"].as_array().map(Vec::as_slice).unwrap_or_default();
    let name = |file: &Value| Some(Path::new(file.as_str()?).file_name()?.to_string_lossy().into_owned());
    files.iter().filter_map(name).collect()
}

/// Sets a lab database to the full recovery model, so that its log is kept for log backups
/// (docs/format/boot-and-file-headers.md#boot-page).
fn in_full_recovery(file: &Path) {
    const RECORD: usize = 96;
    const SIMPLE: u8 = 0x8;
    edit(file, 9, |page| {
        page[RECORD + 0x24] &= !SIMPLE;
        let checkpoint: [u8; 10] = page[RECORD + 0x15C..][..10].try_into().expect("an LSN");
        page[RECORD + 0x280..][..10].copy_from_slice(&checkpoint);
    });
}

/// Writes backups of a database in use to `here`. Writes the database at the time of the last backup to `data`, and a
/// copy with a damaged page to `hurt`. Returns the damaged page.
pub(super) fn in_use(folder: &Path) -> Result<String, Failed> {
    run(folder, &["lab", "chain", "here", "--sets", "full,log,full,log,log"])?;
    let backups =
        ["01_full.bak", "02_log.trn", "03_full.bak", "04_log.trn", "05_log.trn"].map(|name| format!("here/{name}"));
    let paths: Vec<&str> = backups.iter().map(String::as_str).collect();
    run(folder, &[&["extract"], &paths[..], &["--recovered", "-o", "data"]].concat())?;
    in_full_recovery(&folder.join("data/workload.recovered.mdf"));
    run(folder, &["lab", "damage", "data", "-o", "hurt", "--kind", "bit-rot", "--seed", "3"])?;
    let hurt = advise(folder, &["hurt"])?;
    let page = hurt.iter().find_map(|line| line["pages"][0].as_str()).ok_or("no page")?;
    Ok(page.to_owned())
}

/// Damages a page in an uncompressed backup.
pub(super) fn spoil(folder: &Path, backup: &str, page: &str) -> Result<(), Failed> {
    let path = folder.join(backup);
    let mut bytes = fs::read(&path)?;
    let (file, number) = page.split_once(':').ok_or("no page")?;
    let id = [&number.parse::<u32>()?.to_le_bytes()[..], &file.parse::<u16>()?.to_le_bytes()].concat();
    let is_it = |at: &usize| bytes[*at] == 1 && bytes[at + 32..at + 38] == id;
    let at = (0..bytes.len() - PAGE_BYTES).step_by(512).find(is_it).ok_or("no copy")?;
    bytes[at + 200] ^= 0x40;
    Ok(fs::write(&path, bytes)?)
}
