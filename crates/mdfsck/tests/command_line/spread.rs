//! `mdfsck plan`, `task` and `merge`. The results must equal those of `mdfsck check`, however the check is split into
//! tasks. If the plan or a part is invalid, the program must not print anything that looks like results.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::*;

pub(super) fn with_plans() -> Vec<(&'static str, Test)> {
    vec![
        ("tasks of any size in any order give what check prints, of data files with each kind of damage", data_files),
        ("tasks give what check prints, of backups in each form", backups),
        ("tasks give what check prints, whatever its scope and depth", scopes),
        ("tasks give what check prints, of a crashed database with its log", crashed),
        ("tasks give what check prints, of a restore to a moment and of one chosen in a folder", restores),
        (
            "looks that are too large for a merge are taken by tasks, round by round, and the results are the same",
            rounds,
        ),
        ("a part of an earlier round that is lost is made again, and the merge goes on", lost_in_rounds),
        ("a merge without all parts, or with damaged or foreign ones, is refused with nothing on stdout", guards),
        ("a part with any byte changed, or cut anywhere, is refused", changed_parts),
        ("maps that were changed, cut, or are those of another plan or task are refused", changed_maps),
        ("files that have changed since the plan was made are refused by task and merge", changed_files),
        ("a page that goes bad between the tasks and the merge is not verified, and accuses no other", rotten_since),
        ("plans that cannot be made or used are one line", refusals),
        ("a plan says how far it is, and which tasks are missing", status),
        ("a scheduler names the task in its environment", environment),
        ("a task that is killed leaves no part, and two that run at once leave one", killed),
        ("a task ends with its standard input if that is asked for", until_eof),
        ("a key that others may read is said", open_key),
    ]
}

/// Formats in which the output must be the same byte for byte. Statistics and summary contain the cost of a run (such
/// as time and memory), so they are compared separately.
const FORMATS: [&[&str]; 3] = [&["--format", "text"], &["--format", "json"], &["--tableresults"]];

/// The output without the lines that contain the cost of a run (such as time and memory).
fn results(output: &Output) -> String {
    let stdout = text(&output.stdout);
    let kept = stdout
        .lines()
        .filter(|line| !line.starts_with(r#"{"kind":"statistics""#) && !line.starts_with(r#"{"kind":"summary""#));
    kept.collect::<Vec<_>>().join("\n")
}

/// The JSON summary without the fields for the cost of a run (such as time and memory).
fn summary(output: &Output) -> Option<serde_json::Value> {
    let stdout = text(&output.stdout);
    let mut summary: serde_json::Value = serde_json::from_str(stdout.lines().last()?).ok()?;
    let fields = summary.as_object_mut()?;
    for cost in ["seconds", "phases", "memory_peak", "memory_granted", "spilled", "pages_read"] {
        fields.remove(cost);
    }
    Some(summary)
}

fn done(output: &Output) -> Result<String, Failed> {
    ensure(output.status.code() == Some(0), format!("{:?}: {}", output.status, text(&output.stderr)))?;
    Ok(text(&output.stdout))
}

/// Makes a plan. Returns the number of its tasks.
fn plan(folder: &Path, name: &str, arguments: &[&str]) -> Result<u32, Failed> {
    let made = mdfsck(folder, &[&["plan", "--dir", name, "--json"], arguments].concat());
    let made: serde_json::Value = serde_json::from_str(&done(&made)?)?;
    Ok(u32::try_from(made["tasks"].as_u64().ok_or("no number of tasks")?)?)
}

/// Runs all tasks of a plan. They do not run in the order of their numbers, and some processes run several tasks.
fn carry_out(folder: &Path, name: &str, tasks: u32) -> Result<(), Failed> {
    let mut ids: Vec<String> = (0..tasks).map(|id| id.to_string()).collect();
    ids.reverse();
    ids.rotate_left(tasks as usize / 3);
    for some in ids.chunks(7) {
        done(&mdfsck(folder, &["task", name, &some.join(","), "--maxdop", "2"]))?;
    }
    Ok(())
}

/// Requires that a plan for `paths` gives the same results as a check of `paths`. Returns the number of tasks. The
/// check gets absolute paths, because a plan contains absolute paths, and the results of the merge print these paths.
pub(super) fn same(folder: &Path, paths: &[&str], options: &[&str], task_size: &str) -> Result<u32, Failed> {
    let absolute: Vec<String> = paths.iter().map(|path| folder.join(path).display().to_string()).collect();
    let absolute: Vec<&str> = absolute.iter().map(String::as_str).collect();
    let name = format!("plan-{}", fs::read_dir(folder)?.count());
    let tasks = plan(folder, &name, &[&absolute, options, &["--task-size", task_size]].concat())?;
    carry_out(folder, &name, tasks)?;
    // CHECKCATALOG cannot be combined with TABLERESULTS.
    let has = |format: &&[&str]| !(options.contains(&"--catalog") && format.contains(&"--tableresults"));
    for format in FORMATS.into_iter().filter(has) {
        let expected = mdfsck(folder, &[&["check"], absolute.as_slice(), options, format].concat());
        let merged = mdfsck(folder, &[&["merge", &name], format].concat());
        ensure(
            merged.status.code() == expected.status.code(),
            format!("{:?} {}", merged.status, text(&merged.stderr)),
        )?;
        let (results, expected_results) = (results(&merged), results(&expected));
        let differ = expected_results.lines().zip(results.lines()).find(|(one, other)| one != other);
        ensure(
            results == expected_results && !results.is_empty(),
            format!("{paths:?} {options:?} {task_size}: {differ:?}"),
        )?;
        ensure(summary(&merged) == summary(&expected), format!("{:?}\n{:?}", summary(&merged), summary(&expected)))?;
    }
    fs::remove_dir_all(folder.join(name))?;
    Ok(tasks)
}

fn lab(folder: &Path, arguments: &[&str]) -> Result<(), Failed> {
    done(&mdfsck(folder, &[&["lab"], arguments].concat())).map(drop)
}

fn data_files(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "9MB", "--files", "2"])?;
    ensure(same(folder, &["sound"], &[], "1MB")? >= 9, "a task for each chunk")?;
    ensure(same(folder, &["sound"], &[], "1TB")? == 2, "a task for each file")?;
    for kind in [
        "bit-rot",
        "torn-write",
        "lost-write",
        "swapped-pages",
        "broken-link",
        "key-order",
        "zeroed-extent",
        "lost-extent",
        "truncated",
    ] {
        lab(folder, &["damage", "sound", "-o", kind, "--kind", kind])?;
        same(folder, &[kind], &["--constraints", "--identity"], "3MB")?;
    }
    Ok(())
}

fn backups(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "5MB"])?;
    lab(folder, &["damage", "sound", "-o", "hurt", "--kind", "key-order"])?;
    lab(folder, &["backup", "hurt", "-o", "plain", "--checksum"])?;
    lab(folder, &["backup", "hurt", "-o", "striped", "--stripes", "4"])?;
    lab(folder, &["backup", "hurt", "-o", "compressed", "--compressed"])?;
    lab(folder, &["backup", "hurt", "--since", "sound", "--kind", "diff", "-o", "differential"])?;
    for name in ["plain", "striped", "compressed", "differential"] {
        same(folder, &[name], &[], "1MB")?;
        same(folder, &[name], &["--physical-only"], "1GB")?;
        // Also damages the structure of the backup file itself, not only pages in it.
        let some =
            fs::read_dir(folder.join(name))?.find_map(|entry| entry.ok().map(|entry| entry.path())).ok_or("a file")?;
        let mut bytes = fs::read(&some)?;
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        fs::write(&some, bytes)?;
        same(folder, &[name], &[], "2MB")?;
    }
    Ok(())
}

fn scopes(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "5MB"])?;
    lab(folder, &["damage", "sound", "-o", "hurt", "--kind", "bit-rot"])?;
    for options in [
        &["--physical-only"][..],
        &["--noindex"],
        &["--table", "orders", "--table", "dbo.customers"],
        &["--filegroup", "PRIMARY"],
        &["--no-data-purity"],
        &["--extended-logical-checks"],
        &["--constraints=all"],
    ] {
        ensure(same(folder, &["hurt"], options, "2MB")? > 0, format!("{options:?}"))?;
    }
    for options in [&["--alloc"][..], &["--catalog"]] {
        ensure(same(folder, &["hurt"], options, "2MB")? == 0, "no page of a table is read")?;
    }
    Ok(())
}

fn crashed(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["crash", "snap", "--transactions", "60"])?;
    let files: Vec<String> = fs::read_dir(folder.join("snap"))?
        .filter_map(|entry| Some(format!("snap/{}", entry.ok()?.file_name().to_str()?)))
        .filter(|name| name.ends_with("df"))
        .collect();
    ensure(files.len() >= 2, format!("data file and log: {files:?}"))?;
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    same(folder, &files, &[], "1MB")?;
    same(folder, &files, &["--no-log"], "1MB")?;
    let data: Vec<&str> = files.iter().copied().filter(|name| name.ends_with(".mdf")).collect();
    same(folder, &data, &[], "1MB")?;
    // Makes a lost write: a page has earlier content with a right checksum. Only a comparison with the log reveals the
    // damage.
    lab(folder, &["new", "in-log", "--size", "2MB", "--in-log", "2"])?;
    same(folder, &["in-log"], &[], "1MB").map(drop)
}

fn restores(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["chain", "chain", "--transactions", "40"])?;
    fs::remove_file(folder.join("chain/truth.json"))?;
    same(folder, &["chain"], &[], "1MB")?;
    same(folder, &["chain"], &["--stop-at", "2090-01-01"], "1MB")?;
    // If there are several backup sets of one database, the newest is used.
    lab(folder, &["new", "sound", "--size", "2MB"])?;
    lab(folder, &["backup", "sound", "-o", "several", "--sets", "3"])?;
    same(folder, &["several"], &[], "1MB")?;
    let file = fs::read_dir(folder.join("several"))?.find_map(|entry| entry.ok()).ok_or("a file")?;
    let file = format!("several/{}", file.file_name().to_string_lossy());
    same(folder, &[&file], &["--set", "2"], "1MB").map(drop)
}

/// Merges a plan repeatedly until there are results. Before each further merge, runs the next round of tasks, which
/// compare index rows a second time. Returns the results, and the number of tasks in each round.
fn merged_in_rounds(folder: &Path, name: &str, format: &[&str]) -> Result<(Output, Vec<u64>), Failed> {
    let mut rounds = Vec::new();
    loop {
        let merged = mdfsck(folder, &[&["merge", name, "--local-limit", "0"], format].concat());
        if merged.status.code() != Some(32) {
            return Ok((merged, rounds));
        }
        ensure(merged.stderr.is_empty(), text(&merged.stderr))?;
        let line: serde_json::Value = serde_json::from_str(&text(&merged.stdout))?;
        ensure(line["kind"] == "round" && line["why"] == "index rows", format!("{line}"))?;
        ensure(line["round"] == rounds.len() as u64 + 1 && line["bytes"].as_u64() > Some(8192), format!("{line}"))?;
        let tasks = line["tasks"].as_u64().ok_or("tasks")?;
        // `merge` must refuse to run before these tasks are done, and must not write another round.
        refused(&mdfsck(folder, &["merge", name, "--local-limit", "0"]), 8, &["parts missing: 0"])?;
        let status: serde_json::Value = serde_json::from_str(&done(&mdfsck(folder, &["plan", "--status", name]))?)?;
        ensure(status["round"] == line["round"] && status["tasks"] == line["tasks"], format!("{status}"))?;
        let missing = done(&mdfsck(folder, &["plan", "--status", name, "--missing"]))?;
        for ids in missing.trim().split(',').collect::<Vec<_>>().chunks(5).rev() {
            done(&mdfsck(folder, &["task", name, &ids.join(",")]))?;
        }
        rounds.push(tasks);
    }
}

fn rounds(folder: &Path) -> Result<(), Failed> {
    let absolute = |name: &str| folder.join(name).display().to_string();
    lab(folder, &["new", "sound", "--size", "12MB", "--files", "2"])?;
    for seed in ["1", "2", "3"] {
        let name = format!("lost-{seed}");
        lab(folder, &["damage", "sound", "-o", &name, "--kind", "lost-write", "--seed", seed])?;
    }
    // Makes a database in which an index does not match its table and other pages are damaged.
    lab(folder, &["damage", "lost-1", "-o", "both", "--kind", "bit-rot"])?;
    lab(folder, &["backup", "lost-1", "-o", "backup", "--stripes", "2"])?;
    let mut all = 0;
    for name in ["sound", "lost-1", "lost-2", "lost-3", "both", "backup"] {
        for size in ["1MB", "1TB"] {
            let plan_name = format!("plan-{name}-{size}");
            let tasks = plan(folder, &plan_name, &[&absolute(name), "--task-size", size])?;
            carry_out(folder, &plan_name, tasks)?;
            let expected = mdfsck(folder, &["check", &absolute(name), "--format", "json"]);
            let (merged, rounds) = merged_in_rounds(folder, &plan_name, &["--format", "json"])?;
            ensure(merged.status.code() == expected.status.code(), format!("{name}: {:?}", merged.status))?;
            ensure(results(&merged) == results(&expected), format!("{name} {size}: {rounds:?}"))?;
            ensure(summary(&merged) == summary(&expected), format!("{name} {size}: {rounds:?}"))?;
            let has_rows = results(&expected).contains("\"message\":8951") || results(&expected).contains("8951");
            ensure(rounds.len() == if has_rows { 2 } else { 0 }, format!("{name} {size}: {rounds:?} {has_rows}"))?;
            all += rounds.len();
            // A later merge can use the parts of all rounds again.
            let text = mdfsck(folder, &["merge", &plan_name, "--format", "text"]);
            let expected = mdfsck(folder, &["check", &absolute(name), "--format", "text"]);
            ensure(results(&text) == results(&expected), format!("{name} {size}"))?;
        }
    }
    ensure(all >= 8, format!("{all} rounds"))?;
    // A damaged or missing part of a round is detected.
    let answer = folder.join("plan-lost-1-1MB/parts/1-00000.part");
    let bytes = fs::read(&answer)?;
    let refused_now = |words: &[&str]| refused(&mdfsck(folder, &["merge", "plan-lost-1-1MB"]), 8, words);
    for at in [30, bytes.len() / 2, bytes.len() - 3] {
        let mut changed = bytes.clone();
        changed[at] ^= 4;
        fs::write(&answer, changed)?;
        refused_now(&["1-00000.part"])?;
    }
    fs::write(&answer, &bytes)?;
    let round = folder.join("plan-lost-1-1MB/round-1.json");
    let json = fs::read_to_string(&round)?;
    fs::write(&round, json.replacen("\"of\": 0", "\"of\": 1", 1).replacen("\"bytes\": ", "\"bytes\": 1", 1))?;
    refused_now(&[".part", "is damaged"])?;
    fs::write(&round, json)?;
    let question = folder.join("plan-lost-1-1MB/round-1-00000.question");
    let mut bytes = fs::read(&question)?;
    bytes[5] ^= 1;
    fs::write(&question, bytes)?;
    refused_now(&["round-1-00000.question", "is damaged"])
}

fn lost_in_rounds(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "12MB", "--files", "2"])?;
    lab(folder, &["damage", "sound", "-o", "lost-1", "--kind", "lost-write", "--seed", "1"])?;
    let database = folder.join("lost-1").display().to_string();
    let tasks = plan(folder, "p", &[&database, "--task-size", "1MB"])?;
    carry_out(folder, "p", tasks)?;
    let merge = || mdfsck(folder, &["merge", "p", "--local-limit", "0", "--format", "json"]);
    let missing = || done(&mdfsck(folder, &["plan", "--status", "p", "--missing"])).map(|ids| ids.trim().to_owned());
    let mut rounds = 0;
    let merged = loop {
        let merged = merge();
        if merged.status.code() != Some(32) {
            break merged;
        }
        rounds += 1;
        let of_newest = missing()?;
        // After each new round was written, deletes one part of each earlier round. `merge` must report the missing
        // part, and a second run of its task must write the same part again.
        for (round, task) in [(0u32, 5u32), (1, 0)].into_iter().take(rounds) {
            let path = folder.join(format!("p/parts/{round}-{task:05}.part"));
            let bytes = fs::read(&path)?;
            fs::remove_file(&path)?;
            let id = task.to_string();
            ensure(missing()? == id, format!("round {round}: {}", missing()?))?;
            let state = done(&mdfsck(folder, &["plan", "--status", "p"]))?;
            let state: serde_json::Value = serde_json::from_str(&state)?;
            ensure(state["round"] == round && state["missing"][0] == task, format!("{state}"))?;
            let text = mdfsck(folder, &["merge", "p", "--local-limit", "0"]);
            refused(&text, 8, &["run mdfsck task", &format!("parts missing: {id} (1 of "), &format!("p {id}")])?;
            done(&mdfsck(folder, &["task", "p", &id]))?;
            ensure(fs::read(&path)? == bytes, "the same part")?;
        }
        ensure(missing()? == of_newest, missing()?)?;
        done(&mdfsck(folder, &["task", "p", &of_newest]))?;
    };
    ensure(rounds == 2, format!("{rounds} rounds"))?;
    let expected = mdfsck(folder, &["check", &database, "--format", "json"]);
    ensure(merged.status.code() == expected.status.code(), format!("{:?}", merged.status))?;
    ensure(results(&merged) == results(&expected), "the same results")
}

/// Makes a small plan and all of its parts. The plan has at least four parts.
fn small(folder: &Path) -> Result<u32, Failed> {
    lab(folder, &["new", "d", "--size", "5MB"])?;
    let tasks = plan(folder, "p", &["d", "--task-size", "1MB"])?;
    carry_out(folder, "p", tasks)?;
    ensure(tasks >= 4, format!("{tasks} tasks"))?;
    done(&mdfsck(folder, &["merge", "p"]))?;
    Ok(tasks)
}

fn part(folder: &Path, plan: &str, task: u32) -> PathBuf {
    folder.join(format!("{plan}/parts/0-{task:05}.part"))
}

fn guards(folder: &Path) -> Result<(), Failed> {
    let tasks = small(folder)?;
    let merge = || mdfsck(folder, &["merge", "p"]);
    let page = mdfsck(folder, &["merge", "p", "--html", "p/key"]);
    refused(&page, 8, &["--html p/key", "in the folder of the plan"])?;
    let (first, second) = (part(folder, "p", 0), part(folder, "p", 1));
    let bytes = fs::read(&first)?;
    // If two parts are missing, `merge` must name both tasks.
    fs::rename(&first, folder.join("kept"))?;
    fs::rename(&second, folder.join("kept2"))?;
    refused(&merge(), 8, &["parts missing: 0,1 ", &format!("(2 of {tasks})"), "mdfsck task", "p 0,1"])?;
    fs::rename(folder.join("kept"), &first)?;
    fs::rename(folder.join("kept2"), &second)?;
    // The temporary file that a killed task leaves does not count as a part.
    fs::write(folder.join("p/parts/.0-00000.part.x1y2.tmp"), b"half")?;
    done(&merge())?;
    // `merge` accepts two equal parts for one task.
    let again = folder.join("p/parts/again.part");
    fs::copy(&first, &again)?;
    done(&merge())?;
    // A second part for the task comes from the plan of another database and has different content. `merge` must refuse
    // this part.
    let other = folder.join("other");
    fs::create_dir(&other)?;
    lab(&other, &["new", "d", "--size", "5MB", "--seed", "2"])?;
    let of_other = plan(&other, "p", &["d", "--task-size", "1MB"])?;
    carry_out(&other, "p", of_other)?;
    fs::copy(part(&other, "p", 0), &again)?;
    refused(&merge(), 8, &["again.part", "is a part of another plan", "remove it"])?;
    fs::remove_file(&again)?;
    // Copies a part to the file name of another task. The head of the part names its real task, so the part of the
    // other task still counts as missing.
    fs::copy(&first, &second)?;
    refused(&merge(), 8, &["parts missing: 1 ", &format!("(1 of {tasks})")])?;
    let one_more = mdfsck(folder, &["task", "p", "1"]);
    done(&one_more)?;
    done(&merge())?;
    // Replaces a part by a file that is not a part, by a part with bytes after its end, and by an empty file. `merge`
    // must refuse each of them.
    for (wrong, words) in [
        (b"notes".repeat(100), &["0-00000.part", "is not a part"][..]),
        ([&bytes[..], b"x"].concat(), &["0-00000.part", "is damaged: bytes follow its end", "run task 0 again"]),
        (Vec::new(), &["0-00000.part", "is damaged: its head"]),
    ] {
        fs::write(&first, wrong)?;
        refused(&merge(), 8, words)?;
        let json = mdfsck(folder, &["merge", "p", "--json"]);
        let line: serde_json::Value = serde_json::from_str(text(&json.stdout).trim())?;
        ensure(line["kind"] == "error" && line["status"] == 8, format!("{line}"))?;
    }
    // Running the task again replaces the invalid part.
    fs::remove_file(&first)?;
    done(&mdfsck(folder, &["task", "p", "0"]))?;
    ensure(fs::read(&first)? == bytes, "the same part")?;
    // Changes the plan as if another build of the program had made it. The plan must then be refused.
    let file = folder.join("p/plan.json");
    let json = fs::read_to_string(&file)?;
    let at = json.find("\"build\": \"").ok_or("build")? + "\"build\": \"".len();
    let end = at + json[at..].find('"').ok_or("end")?;
    fs::write(&file, [&json[..at], "9.9.9+other", &json[end..]].concat())?;
    for command in [&["merge", "p"][..], &["task", "p", "0"], &["plan", "--status", "p", "--missing"]] {
        refused(&mdfsck(folder, command), 8, &["made by mdfsck 9.9.9+other", "need the same mdfsck"])?;
    }
    // If the plan is changed, the existing parts no longer belong to it.
    fs::write(&file, json.replace("\"noindex\": false", "\"noindex\": true"))?;
    refused(&merge(), 8, &[".part", "is damaged"])?;
    fs::write(&file, json.replace("\"v\": 1", "\"v\": 2"))?;
    refused(&merge(), 8, &["plan.json", "is a plan of form 2"])?;
    fs::write(&file, &json[..json.len() / 2])?;
    refused(&merge(), 8, &["plan.json", "is damaged"])?;
    fs::write(&file, &json)?;
    done(&merge())?;
    // With another key, a key of the wrong length, or no key, `merge` must refuse the plan or its parts.
    let key = fs::read(folder.join("p/key"))?;
    fs::write(folder.join("p/key"), [7; 32])?;
    refused(&merge(), 8, &[".part", "is damaged"])?;
    fs::write(folder.join("p/key"), [7; 31])?;
    refused(&merge(), 8, &["key", "a key has 32 bytes"])?;
    fs::remove_file(folder.join("p/key"))?;
    refused(&merge(), 4, &["key", "cannot be read"])?;
    fs::write(folder.join("p/key"), key)?;
    Ok(())
}

fn changed_parts(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "d", "--size", "2MB"])?;
    let tasks = plan(folder, "p", &["d", "--task-size", "1GB"])?;
    carry_out(folder, "p", tasks)?;
    let path = part(folder, "p", 0);
    let whole = fs::read(&path)?;
    // Truncates the part or changes one bit of it at some 40 positions. Tests of the library do the same at every
    // position.
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        for bytes in [&whole[..at], &changed] {
            fs::write(&path, bytes)?;
            refused(&mdfsck(folder, &["merge", "p"]), 8, &["0-00000.part"])
                .map_err(|failed| format!("at {at}: {}", failed.message().unwrap_or_default()))?;
        }
    }
    Ok(())
}

fn changed_maps(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "d", "--size", "5MB"])?;
    for name in ["p", "other"] {
        plan(folder, name, &["d", "--task-size", "1MB"])?;
    }
    let path = folder.join("p/maps.bin");
    let whole = fs::read(&path)?;
    let no_part = |bytes: &[u8]| -> Result<(), Failed> {
        fs::write(&path, bytes)?;
        refused(&mdfsck(folder, &["task", "p", "1"]), 8, &["maps.bin: is damaged: it", "make a new plan"])?;
        ensure(!part(folder, "p", 1).exists(), "no part")
    };
    // `maps.bin` consists of one piece that all tasks use, and one piece for each task. The offsets of the pieces are
    // stored at the end of the file, in the same order.
    let tasks = plan(folder, "third", &["d", "--task-size", "1MB"])? as usize;
    let places = whole.len() - (tasks + 1) * 8;
    let place = |task: usize| -> Result<usize, Failed> {
        let at = places + task * 8;
        let bytes = whole.get(at..at + 8).ok_or("places")?;
        Ok(usize::try_from(u64::from_le_bytes(bytes.try_into()?))?)
    };
    // A task must detect any change to the bytes that it reads. It must then not leave a part.
    let read = (place(0)?..place(1)?).step_by(13).chain((place(2)?..place(3)?).step_by(97));
    for at in read.chain(places..places + 8).chain(places + 16..places + 24) {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        no_part(&changed).map_err(|failed| format!("at {at}: {}", failed.message().unwrap_or_default()))?;
    }
    for length in (0..whole.len()).step_by(whole.len() / 20) {
        no_part(&whole[..length])?;
    }
    // Tries the `maps.bin` of another plan, and the maps of another task of the same plan. The task must refuse both
    // and leave no part.
    no_part(&fs::read(folder.join("other/maps.bin"))?)?;
    let mut exchanged = whole.clone();
    exchanged.copy_within(places + 8..places + 16, places + 16);
    no_part(&exchanged)?;
    fs::remove_file(&path)?;
    refused(&mdfsck(folder, &["task", "p", "1"]), 4, &["maps.bin: cannot be read"])?;
    fs::write(&path, &whole)?;
    done(&mdfsck(folder, &["task", "p", "1"])).map(drop)
}

fn changed_files(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "d", "--size", "2MB"])?;
    let file = folder.join("d/orders.mdf");
    let modified = fs::metadata(&file)?.modified()?;
    let whole = fs::read(&file)?;
    plan(folder, "p", &["d"])?;
    let put = |bytes: &[u8], modified| -> Result<(), Failed> {
        fs::write(&file, bytes)?;
        Ok(fs::File::options().write(true).open(&file)?.set_modified(modified)?)
    };
    let both = |words: &[&str]| -> Result<(), Failed> {
        refused(&mdfsck(folder, &["task", "p", "0"]), 4, words)?;
        ensure(!part(folder, "p", 0).exists(), "no part")
    };
    put(&whole, modified + Duration::from_secs(5))?;
    both(&["orders.mdf", "has been written to since the plan was made", "make a new plan"])?;
    put(&[&whole[..], &[0; 8192]].concat(), modified)?;
    both(&["orders.mdf", "has grown or shrunk"])?;
    // Changes a catalog page, then an allocation map, and keeps the size and the modification time of the file. The
    // change must be detected in both cases.
    let mut changed = whole.clone();
    changed[9 * PAGE_BYTES + 100] ^= 1;
    put(&changed, modified)?;
    both(&["orders.mdf", "has changed since the plan was made"])?;
    // A task uses the copies of the allocation maps in the plan. Only `merge` reads all maps from the files again,
    // including the differential map.
    let mut changed = whole.clone();
    changed[6 * PAGE_BYTES + 4000] ^= 1;
    put(&changed, modified)?;
    done(&mdfsck(folder, &["task", "p", "0"]))?;
    refused(&mdfsck(folder, &["merge", "p"]), 4, &["orders.mdf", "allocation maps have changed"])?;
    put(&whole, modified)?;
    done(&mdfsck(folder, &["merge", "p"]))?;
    put(&changed, modified)?;
    refused(&mdfsck(folder, &["merge", "p"]), 4, &["orders.mdf", "has changed since the plan was made"])?;
    fs::remove_file(&file)?;
    refused(&mdfsck(folder, &["merge", "p"]), 4, &["orders.mdf", "cannot be read"])
}

fn rotten_since(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "6MB"])?;
    lab(folder, &["damage", "sound", "-o", "hurt", "--kind", "broken-link", "--seed", "3"])?;
    for name in ["sound", "hurt"] {
        let plan_name = format!("plan-{name}");
        let tasks = plan(folder, &plan_name, &[name, "--task-size", "2MB"])?;
        carry_out(folder, &plan_name, tasks)?;
        let merge = || mdfsck(folder, &["merge", &plan_name, "--json"]);
        let expected = merge();
        let findings = |output: &Output| -> Vec<String> {
            let stdout = text(&output.stdout);
            stdout.lines().filter(|line| line.contains(r#""kind":"finding""#)).map(str::to_owned).collect()
        };
        let file = folder.join(name).join("orders.mdf");
        let modified = fs::metadata(&file)?.modified()?;
        let whole = fs::read(&file)?;
        // `merge` reads a few pages again. Most of them are index pages above the leaf level, which contain the key
        // bounds of other pages.
        let is_index = |page: &usize| whole.get(page * PAGE_BYTES + 1) == Some(&2);
        let pages = (150..whole.len() / PAGE_BYTES).filter(|page| is_index(page) || page % 37 == 0);
        let mut unread = 0;
        for page in pages {
            let mut changed = whole.clone();
            changed[page * PAGE_BYTES + 4000] ^= 4;
            fs::write(&file, &changed)?;
            fs::File::options().write(true).open(&file)?.set_modified(modified)?;
            let merged = merge();
            if merged.status.code() == Some(4) {
                // The page belongs to the catalog, so the plan no longer matches the files.
                continue;
            }
            let known = findings(&expected);
            let others: Vec<String> = findings(&merged).into_iter().filter(|line| !known.contains(line)).collect();
            ensure(others.is_empty(), format!("{name}: {others:?} because of page {page}"))?;
            let is_unread = text(&merged.stdout).contains("pages.unreadable");
            let status = expected.status.code().map(|status| if is_unread { status & !1 | 16 } else { status });
            let (clean, found) = (status, status.map(|status| status | 1));
            ensure([clean, found].contains(&merged.status.code()), format!("{name}, {page}: {:?}", merged.status))?;
            unread += u32::from(is_unread);
        }
        ensure(unread > 0, "some page was read again")?;
    }
    Ok(())
}

fn refusals(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "d", "--size", "2MB"])?;
    lab(folder, &["new", "e", "--size", "2MB", "--seed", "2"])?;
    let run = |arguments: &[&str]| mdfsck(folder, arguments);
    refused(&run(&["plan", "d"]), 8, &["plan: --dir <PLAN> is missing"])?;
    refused(&run(&["plan", "--dir", "p"]), 8, &["plan: <PATH>... is missing"])?;
    refused(&run(&["plan", "-", "--dir", "p"]), 8, &["-: ", "standard input can be read once"])?;
    refused(&run(&["plan", "nowhere.mdf", "--dir", "p"]), 4, &["nowhere.mdf", "cannot be opened"])?;
    refused(&run(&["plan", "d/orders.mdf", "e/orders.mdf", "--dir", "q"]), 8, &["plan reads one database at a time"])?;
    refused(&run(&["plan", "d", "--dir", "d"]), 8, &["d: exists and will not be overwritten"])?;
    fs::write(folder.join("file"), "mine")?;
    refused(&run(&["plan", "d", "--dir", "file"]), 8, &["file: exists and will not be overwritten"])?;
    refused(&run(&["plan", "d", "--dir", "file/p"]), 4, &["file/p", "cannot be written"])?;
    refused(&run(&["plan", "d", "--dir", "t", "--table", "nothing"]), 8, &["nothing"])?;
    for command in [&["merge", "nowhere"][..], &["task", "nowhere", "0"], &["plan", "--status", "nowhere", "--missing"]]
    {
        refused(&run(command), 8, &["nowhere: holds no plan", "mdfsck plan"])?;
    }
    let tasks = plan(folder, "whole", &["d"])?;
    ensure(tasks == 1, format!("{tasks}"))?;
    refused(&run(&["plan", "e", "--dir", "whole"]), 8, &["whole: exists"])?;
    refused(&run(&["task", "whole", "1"]), 8, &["task 1: the plan has one task, 0"])?;
    refused(&run(&["task", "whole", "first"]), 8, &["first: is not a list of numbers", "3,7-9"])?;
    refused(&run(&["task", "whole"]), 8, &["<ID>... is missing"])?;
    refused(&run(&["task", "whole", "0", "--memory", "1MB"]), 8, &["--memory 1 MB", "at least"])?;
    // `plan` accepts an empty folder as its output folder.
    fs::create_dir(folder.join("empty"))?;
    plan(folder, "empty", &["d"]).map(drop)
}

fn status(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "d", "--size", "5MB"])?;
    let tasks = plan(folder, "p", &["d", "--task-size", "1MB"])?;
    let missing = || done(&mdfsck(folder, &["plan", "--status", "p", "--missing"]));
    let all: Vec<String> = (0..tasks).map(|id| id.to_string()).collect();
    ensure(missing()?.trim() == all.join(","), missing()?)?;
    done(&mdfsck(folder, &["task", "p", "1-2"]))?;
    let state = done(&mdfsck(folder, &["plan", "--status", "p"]))?;
    let state: serde_json::Value = serde_json::from_str(&state)?;
    ensure(state["kind"] == "plan_status" && state["tasks"] == tasks && state["done"] == 2, format!("{state}"))?;
    ensure(state["missing"][0] == 0 && state["missing"][1] == 3, format!("{state}"))?;
    // `task` accepts the list of missing tasks in the form in which the program prints it.
    done(&mdfsck(folder, &["task", "p", missing()?.trim()]))?;
    ensure(missing()? == "\n", missing()?)?;
    // A finished task does not run again, so its part is not written again.
    let before = fs::metadata(part(folder, "p", 0))?.modified()?;
    done(&mdfsck(folder, &["task", "p", "0"]))?;
    ensure(fs::metadata(part(folder, "p", 0))?.modified()? == before, "untouched")?;
    let shown = mdfsck(folder, &["plan", "d", "--dir", "q", "--task-size", "1MB"]);
    let shown = done(&shown)?;
    ensure(shown.contains(&format!("{tasks} tasks (0 to {})", tasks - 1)) && shown.contains("mdfsck merge"), shown)
}

fn environment(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "d", "--size", "5MB"])?;
    plan(folder, "p", &["d", "--task-size", "1MB"])?;
    for (task, variable) in
        (0..).zip(["JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID", "AWS_BATCH_JOB_ARRAY_INDEX", "AZ_BATCH_TASK_ID"])
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
        command.args(["task", "p", "env"]).current_dir(folder).env(variable, task.to_string());
        done(&command.output()?)?;
        ensure(part(folder, "p", task).exists(), variable)?;
    }
    let without = mdfsck(folder, &["task", "p", "env"]);
    refused(&without, 8, &["env: none of JOB_COMPLETION_INDEX", "is set"])
}

fn start(folder: &Path, arguments: &[&str]) -> Result<Child, Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
    command.args(arguments).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command.spawn()?)
}

fn killed(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "d", "--size", "9MB"])?;
    let tasks = plan(folder, "p", &["d", "--task-size", "3MB"])?;
    let names = || -> Result<Vec<String>, Failed> {
        let entries = fs::read_dir(folder.join("p/parts"))?.flatten();
        Ok(entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.ends_with(".part"))
            .collect())
    };
    // Kills a slow task at many instants. If the task has left no part, `merge` must report that the part is missing.
    for round in 0..20u64 {
        let mut task = start(folder, &["task", "p", "0", "--io-limit", "40MB"])?;
        std::thread::sleep(Duration::from_millis(4 * round));
        task.kill()?;
        task.wait()?;
        if names()?.is_empty() {
            refused(&mdfsck(folder, &["merge", "p"]), 8, &["parts missing"])?;
        }
    }
    // Two processes run the same tasks at the same time. Later, one of the tasks runs again. The parts must be the same
    // each time.
    let mut both = [start(folder, &["task", "p", "0-1"])?, start(folder, &["task", "p", "0-1", "--maxdop", "1"])?];
    for task in &mut both {
        ensure(task.wait()?.success(), "both end well")?;
    }
    let part_bytes = fs::read(part(folder, "p", 1))?;
    fs::remove_file(part(folder, "p", 1))?;
    carry_out(folder, "p", tasks)?;
    ensure(fs::read(part(folder, "p", 1))? == part_bytes, "the same part")?;
    ensure(names()?.len() == tasks as usize, format!("{:?}", names()?))?;
    done(&mdfsck(folder, &["merge", "p"])).map(drop)
}

fn until_eof(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "d", "--size", "9MB"])?;
    plan(folder, "p", &["d"])?;
    // The read rate is so low that the task would take a minute.
    let mut task = start(folder, &["task", "p", "0", "--io-limit", "100KB", "--until-eof"])?;
    let mut input = task.stdin.take().ok_or("no input")?;
    input.write_all(b"still here\n")?;
    std::thread::sleep(Duration::from_millis(300));
    ensure(task.try_wait()?.is_none(), "it runs while its input is open")?;
    drop(input);
    let ended = task.wait_with_output()?;
    refused(&ended, 4, &["standard input has ended"])?;
    ensure(!part(folder, "p", 0).exists(), "no part")
}

fn open_key(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "d", "--size", "2MB"])?;
    plan(folder, "p", &["d"])?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let key = folder.join("p/key");
        ensure(fs::metadata(&key)?.permissions().mode() & 0o777 == 0o600, "only its owner may read it")?;
        ensure(mdfsck(folder, &["task", "p", "0"]).stderr.is_empty(), "nothing is said")?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644))?;
        let merged = mdfsck(folder, &["merge", "p"]);
        ensure(
            merged.status.code() == Some(0) && text(&merged.stderr).contains("others may read the key"),
            text(&merged.stderr),
        )?;
    }
    // No other file contains the key.
    let key = fs::read(folder.join("p/key"))?;
    for file in ["p/plan.json", "p/parts/0-00000.part"] {
        let path = folder.join(file);
        if path.exists() {
            let bytes = fs::read(path)?;
            ensure(!bytes.windows(8).any(|piece| key.windows(8).any(|of_key| piece == of_key)), file)?;
        }
    }
    Ok(())
}
