//! `mdfsck check --window`: a check that is spread over several windows of time. An image is the database at one point
//! in time. It is closed when all its pages have been read and compared. The report of a closed image must equal that
//! of a single check, however often the check stops and whatever happens between windows. The result of an earlier
//! window is reused only if it is proven to be still valid.

use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use super::*;

pub(super) fn with_windows() -> Vec<(&'static str, Test)> {
    vec![
        ("windows of any length and ranges of any size give what check prints, of data files", data_files),
        ("windows give what check prints, of backups in each form", backups),
        ("an open window tells what it has found, and has no bit 16", open),
        ("a window that is killed at any instant goes on where it was, and gives what check prints", killed),
        ("files that change between windows are a new image, even if size and time are put back", changed),
        ("a backup of the same name is a new image if it is another one", replaced),
        ("files that were not shut down cleanly are a new image in each window", moving),
        ("a part that is damaged or gone is read again", parts),
        ("SIGTERM ends a window and keeps what was read", signal),
        ("two processes do not work on one database, and one that was killed is in nobody's way", lease),
        ("a window prints its report, whatever is wrong with the history", useless_histories),
        ("a promise that is broken sets bit 16, and one that is kept does not", promises),
        ("options of windows that do not fit each other are one line", refusals),
        ("an estimate says how many windows a cycle takes", estimate),
        ("several databases share a window", several),
        ("a range is as old as the window that read it, although later ones report its findings", dates),
        ("an image is checked again by a window after it was closed", again),
        ("each page counts once, read in full or as a page, in ranges of any size", depths),
    ]
}

/// Formats in which the output must be the same byte for byte. Statistics and summary contain the cost of a run (such
/// as time and memory), so they are not compared.
const FORMATS: [&[&str]; 3] = [&["--format", "text"], &["--format", "json"], &["--tableresults"]];

fn lab(folder: &Path, arguments: &[&str]) -> Result<(), Failed> {
    let made = mdfsck(folder, &[&["lab"], arguments].concat());
    ensure(made.status.success(), text(&made.stderr))
}

/// The output without the lines that contain the cost of a run (such as time and memory), and without the lines that
/// only a window prints.
fn results(output: &Output) -> String {
    let stdout = text(&output.stdout);
    let is_of_window = |line: &str| {
        ["Window: ", "Read:   ", "Closed: ", "Findings: ", r#"{"kind":"window""#]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let costs = [r#"{"kind":"statistics""#, r#"{"kind":"summary""#];
    let kept = stdout.lines().filter(|line| !is_of_window(line) && !costs.iter().any(|start| line.starts_with(start)));
    kept.collect::<Vec<_>>().join("\n")
}

/// Runs a check of `paths` in a window that reads at most `most` ranges.
fn window(folder: &Path, paths: &[&str], most: &str, options: &[&str]) -> Output {
    let fixed = ["--history", "h.db", "--window", "1h", "--most-ranges", most, "--progress", "none"];
    mdfsck(folder, &[&["check"], paths, &fixed, options].concat())
}

/// The JSON line of the kind `window`, which only a check with --window prints.
fn line(output: &Output) -> Result<Value, Failed> {
    let stdout = text(&output.stdout);
    let found = stdout.lines().rev().find(|line| line.starts_with(r#"{"kind":"window""#));
    let line = found.ok_or_else(|| format!("no line: {stdout} {}", text(&output.stderr)))?;
    Ok(serde_json::from_str(line)?)
}

/// Runs windows until the image is closed. Returns the output of the last window, the number of windows, and the number
/// of ranges that all windows read.
fn close(folder: &Path, paths: &[&str], most: &str, options: &[&str]) -> Result<(Output, u64, u64), Failed> {
    let (mut windows, mut ranges) = (0, 0);
    loop {
        let output = window(folder, paths, most, &[&["--json"], options].concat());
        let line = line(&output)?;
        windows += 1;
        ranges += line["done"]["ranges"].as_u64().unwrap_or_default();
        if line["done"]["is_closed"] == true {
            return Ok((output, windows, ranges));
        }
        ensure(output.status.code().is_some_and(|status| status & 28 == 0), format!("{output:?}"))?;
        ensure(windows < 200, format!("{line}"))?;
    }
}

fn forget(folder: &Path) -> Result<(), Failed> {
    for name in ["h.db", "h.db-wal", "h.db-shm"] {
        let _ = fs::remove_file(folder.join(name));
    }
    let left = fs::read_dir(folder.join("h.db.parts")).map_or(0, Iterator::count);
    ensure(left == 0, "the plan of an image that is closed is gone")
}

/// Requires that windows over `paths` give the same results as a single check, in each format. Returns the number of
/// windows.
fn same(folder: &Path, paths: &[&str], options: &[&str], (most, range): (&str, &str)) -> Result<u64, Failed> {
    let checked = options;
    let options = [options, &["--range", range]].concat();
    // First runs windows in JSON format until the image is closed, to learn how many windows are needed.
    let (_, windows, _) = close(folder, paths, most, &options)?;
    forget(folder)?;
    for format in FORMATS {
        let whole = mdfsck(folder, &[&["check"], paths, checked, format, &["--progress", "none"]].concat());
        for _ in 1..windows {
            window(folder, paths, most, &options);
        }
        let last = window(folder, paths, most, &[&options[..], format].concat());
        let what = format!("{paths:?} {options:?} {format:?} {windows} windows");
        ensure(results(&last) == results(&whole), format!("{what}:\n{}\n\n{}", results(&last), results(&whole)))?;
        ensure(last.status.code() == whole.status.code(), format!("{what}: {last:?}\n{whole:?}"))?;
        forget(folder)?;
    }
    Ok(windows)
}

fn data_files(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "9MB"])?;
    for kind in ["bit-rot", "key-order", "lost-extent", "missing-row"] {
        let made = mdfsck(folder, &["lab", "damage", "sound", "-o", kind, "--kind", kind, "--seed", "3"]);
        if !made.status.success() {
            continue;
        }
        ensure(same(folder, &[kind], &[], ("2", "1MB"))? > 2, kind)?;
    }
    ensure(same(folder, &["sound"], &[], ("3", "1MB"))? > 1, "several windows")?;
    ensure(same(folder, &["sound"], &["--physical-only"], ("3", "1MB"))? > 1, "several windows")?;
    ensure(same(folder, &["bit-rot"], &["--constraints"], ("1000", "64MB"))? == 1, "one window")
}

fn backups(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "5MB"])?;
    lab(folder, &["damage", "sound", "-o", "hurt", "--kind", "key-order"])?;
    lab(folder, &["backup", "hurt", "-o", "striped", "--stripes", "4", "--checksum"])?;
    lab(folder, &["backup", "hurt", "-o", "compressed", "--compressed"])?;
    lab(folder, &["backup", "hurt", "--since", "sound", "--kind", "diff", "-o", "differential"])?;
    lab(folder, &["chain", "chain", "--transactions", "40"])?;
    fs::remove_file(folder.join("chain/truth.json"))?;
    for name in ["striped", "compressed", "differential", "chain"] {
        ensure(same(folder, &[name], &[], ("1", "1MB"))? > 1, name)?;
    }
    Ok(())
}

/// The findings in the JSON output.
fn findings(output: &Output) -> Vec<String> {
    text(&output.stdout).lines().filter(|line| line.starts_with(r#"{"kind":"finding""#)).map(str::to_owned).collect()
}

fn open(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "9MB"])?;
    lab(folder, &["damage", "sound", "-o", "hurt", "--kind", "bit-rot", "--seed", "3"])?;
    let whole = findings(&mdfsck(folder, &["check", "hurt", "--json"]));
    let mut seen = 0;
    for round in 0..100 {
        let output = window(folder, &["hurt"], "1", &["--json", "--range", "1MB"]);
        let line = line(&output)?;
        let found = findings(&output);
        ensure(found.len() >= seen, format!("what was found is not forgotten: {line}"))?;
        if line["done"]["is_closed"] == true {
            ensure(found == whole && round > 3, "closed")?;
            // The finding must be reported before the image is closed.
            return ensure(seen > 0, "a damaged page is told before the image is closed");
        }
        ensure(found.iter().all(|finding| whole.contains(finding)), format!("{found:?}"))?;
        let expected = i32::from(!found.is_empty());
        ensure(output.status.code() == Some(expected), format!("{:?}: {line}", output.status))?;
        ensure(!text(&output.stdout).contains(r#"{"kind":"object""#), "no counts of some of the rows")?;
        let new = if seen == 0 { found.len() } else { found.len() - seen };
        ensure(line["findings_new"] == new as u64 || seen > 0, format!("{line}"))?;
        seen = found.len();
    }
    Err("never closed".into())
}

fn spawn(folder: &Path, arguments: &[&str]) -> Result<Child, Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
    command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command.spawn()?)
}

/// Kills checks with a window at some 60 instants. Later windows must still close the image, with the results of a
/// single check.
fn killed(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "9MB"])?;
    lab(folder, &["damage", "sound", "-o", "hurt", "--kind", "bit-rot", "--seed", "3"])?;
    lab(folder, &["backup", "hurt", "-o", "striped", "--stripes", "3"])?;
    for name in ["sound", "hurt", "striped"] {
        let whole = mdfsck(folder, &["check", name, "--json"]);
        let fixed =
            ["check", name, "--history", "h.db", "--window", "1h", "--range", "1MB", "--json", "--most-ranges", "3"];
        let mut cycles = 0;
        for round in 0..20_u64 {
            let mut child = spawn(folder, &fixed)?;
            thread::sleep(Duration::from_micros(round.wrapping_mul(7919) % 90_000));
            child.kill()?;
            let output = child.wait_with_output()?;
            let is_closed = line(&output).is_ok_and(|line| line["done"]["is_closed"] == true);
            if is_closed && output.status.code().is_some() {
                ensure(results(&output) == results(&whole), format!("{name} {round}"))?;
                cycles += 1;
            }
        }
        let (last, ..) = close(folder, &[name], "1000", &["--range", "1MB"])?;
        ensure(results(&last) == results(&whole), format!("{name}: {} cycles before", cycles))?;
        let history = mdfsck(folder, &["history", "h.db", "runs", "--json"]);
        ensure(history.status.success() && history.stderr.is_empty(), text(&history.stderr))?;
    }
    Ok(())
}

/// Changes a byte of a file without changing its modification time.
fn change(path: &Path, at: usize, seal: bool) -> Result<(), Failed> {
    let modified = fs::metadata(path)?.modified()?;
    let mut bytes = fs::read(path)?;
    bytes[at] ^= 0x41;
    if seal {
        let page = at / PAGE_BYTES * PAGE_BYTES;
        let page: &mut [u8; PAGE_BYTES] = (&mut bytes[page..page + PAGE_BYTES]).try_into()?;
        let sum = checksum(page);
        page[60..64].copy_from_slice(&sum.to_le_bytes());
    }
    fs::write(path, bytes)?;
    fs::File::options().write(true).open(path)?.set_modified(modified)?;
    Ok(())
}

fn changed(folder: &Path) -> Result<(), Failed> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    lab(folder, &["new", "sound", "--size", "9MB"])?;
    let path = folder.join("sound/orders.mdf");
    let original = fs::read(&path)?;
    let pages = original.len() / PAGE_BYTES;
    // Changes one page at a time: a data page near the start, the boot page, a PFS page, a GAM page, a page of a base
    // table, a page near the end, and the file header. Each change is made once with a corrected checksum and once with
    // a wrong checksum.
    for (page, offset) in [(200, 500), (9, 3000), (1, 400), (2, 300), (20, 120), (pages - 40, 700), (0, 2000)] {
        for seal in [false, true] {
            fs::write(&path, &original)?;
            let first = window(folder, &["sound"], "4", &["--json", "--range", "1MB"]);
            ensure(line(&first)?["done"]["is_closed"] == false, "half")?;
            change(&path, page * PAGE_BYTES + offset, seal)?;
            let whole = mdfsck(folder, &["check", "sound", "--json"]);
            let next = window(folder, &["sound"], "4", &["--json", "--range", "1MB"]);
            ensure(text(&next.stderr).contains("begins a new image"), format!("page {page}: {}", text(&next.stderr)))?;
            let (last, ..) = close(folder, &["sound"], "1000", &["--range", "1MB"])?;
            let what = format!("page {page}, sealed {seal}:\n{}\n\n{}", results(&last), results(&whole));
            ensure(results(&last) == results(&whole) && last.status.code() == whole.status.code(), what)?;
        }
    }
    Ok(())
}

fn replaced(folder: &Path) -> Result<(), Failed> {
    for seed in ["1", "2"] {
        lab(folder, &["new", seed, "--size", "5MB", "--seed", seed])?;
        lab(folder, &["backup", seed, "-o", &format!("b{seed}")])?;
    }
    let file = |of: &str| -> Result<PathBuf, Failed> {
        Ok(fs::read_dir(folder.join(of))?.find_map(|entry| entry.ok()).ok_or("a file")?.path())
    };
    let (one, other) = (file("b1")?, file("b2")?);
    fs::copy(&one, folder.join("it.bak"))?;
    window(folder, &["it.bak"], "2", &["--json", "--range", "1MB"]);
    let whole = mdfsck(folder, &["check", &other.display().to_string(), "--json"]);
    fs::copy(&other, folder.join("new.bak"))?;
    fs::rename(folder.join("new.bak"), folder.join("it.bak"))?;
    let (last, _, ranges) = close(folder, &["it.bak"], "2", &["--range", "1MB"])?;
    let of_it = |output: &Output| results(output).lines().skip(1).collect::<Vec<_>>().join("\n");
    ensure(of_it(&last) == of_it(&whole), format!("{}\n{}", of_it(&last), of_it(&whole)))?;
    ensure(ranges >= 4, format!("all of it was read again: {ranges}"))
}

fn moving(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["crash", "snap", "--transactions", "60"])?;
    let data: Vec<String> = fs::read_dir(folder.join("snap"))?
        .filter_map(|entry| Some(format!("snap/{}", entry.ok()?.file_name().to_str()?)))
        .filter(|name| name.ends_with("df"))
        .collect();
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    let first = line(&window(folder, &data, "1", &["--json", "--range", "1MB"]))?;
    ensure(first["done"]["is_fixed"] == false && first["done"]["is_closed"] == false, first.to_string())?;
    ensure(fs::read_dir(folder.join("h.db.parts")).map_or(0, Iterator::count) == 0, "nothing is kept")?;
    // The history stores when each range was last read, even if the file may change between windows. The next window
    // therefore reads other ranges.
    let second = line(&window(folder, &data, "1", &["--json", "--range", "1MB"]))?;
    ensure(second["never_read_bytes"].as_u64() < first["never_read_bytes"].as_u64(), format!("{first}\n{second}"))?;
    ensure(second["done"]["image_bytes_done"] == first["done"]["image_bytes_done"], "of the image, one range each")?;
    let whole = mdfsck(folder, &[&["check"], &data[..], &["--json"]].concat());
    let all = window(folder, &data, "1000", &["--json", "--range", "1MB"]);
    ensure(results(&all) == results(&whole), "what fits into one window is the plain check")?;
    ensure(line(&all)?["done"]["is_closed"] == true, "closed")?;
    named_image(folder, &data, &whole)
}

/// If the user names the image of a snapshot with --image, later windows must continue the image, including its log. If
/// the name changes, or one of the files is written, a new image must begin.
fn named_image(folder: &Path, data: &[&str], whole: &Output) -> Result<(), Failed> {
    let named = |most: &str, name: &str| {
        let options = ["--json", "--range", "1MB", "--image", name];
        window(folder, data, most, &options)
    };
    let (first, second) = (line(&named("1", "LUN 7"))?, line(&named("1", "LUN 7"))?);
    let done = |line: &Value| line["done"]["image_bytes_done"].as_u64().unwrap_or_default();
    ensure(first["done"]["is_fixed"] == true && done(&second) > done(&first), format!("{first}\n{second}"))?;
    let other = named("1", "LUN 8");
    ensure(text(&other.stderr).contains("it has another name (--image)"), text(&other.stderr))?;
    ensure(done(&line(&other)?) == done(&first), "from the start")?;
    let last = named("1000", "LUN 8");
    ensure(results(&last) == results(whole), format!("{}\n\n{}", results(&last), results(whole)))?;
    ensure(last.status.code() == whole.status.code(), format!("{last:?}"))?;
    forget(folder)?;
    named("1", "LUN 7");
    let log = fs::read_dir(folder.join("snap"))?
        .flatten()
        .find(|entry| entry.path().extension().is_some_and(|is| is == "ldf"));
    let log = log.ok_or("a log")?.path();
    let bytes = fs::read(&log)?;
    fs::write(&log, &bytes)?;
    let written = named("1", "LUN 7");
    ensure(text(&written.stderr).contains("ldf was changed"), text(&written.stderr))?;
    let refused = named("1", " ");
    refused_by_usage(&refused, &["the name must not be empty"])
}

/// The files of all parts in the only plan of this test.
fn all_parts(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let plan = fs::read_dir(folder.join("h.db.parts"))?.find_map(|entry| entry.ok()).ok_or("a plan")?;
    let mut parts: Vec<PathBuf> =
        fs::read_dir(plan.path().join("parts"))?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    parts.sort();
    Ok(parts)
}

fn parts(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "9MB"])?;
    let whole = mdfsck(folder, &["check", "sound", "--json"]);
    let (_, _, all) = close(folder, &["sound"], "1000", &["--range", "1MB"])?;
    forget(folder)?;
    window(folder, &["sound"], "5", &["--range", "1MB"]);
    let parts = all_parts(folder)?;
    ensure(parts.len() == 5, format!("{parts:?}"))?;
    fs::remove_file(&parts[0])?;
    let mut bytes = fs::read(&parts[1])?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&parts[1], bytes)?;
    fs::copy(&parts[3], &parts[2])?;
    let (last, _, ranges) = close(folder, &["sound"], "1000", &["--range", "1MB"])?;
    ensure(results(&last) == results(&whole), results(&last))?;
    ensure(ranges == all - 5 + 3, format!("{ranges} of {all}"))?;
    // Damages the plan. The next windows must start again and read all ranges.
    window(folder, &["sound"], "5", &["--range", "1MB"]);
    let plan = all_parts(folder)?[0].parent().and_then(Path::parent).ok_or("a plan")?.join("plan.json");
    fs::write(&plan, b"{\"v\":1")?;
    let (last, _, ranges) = close(folder, &["sound"], "1000", &["--range", "1MB"])?;
    ensure(results(&last) == results(&whole) && ranges == all, format!("{ranges} of {all}"))?;
    window(folder, &["sound"], "5", &["--range", "1MB"]);
    // If the history is restored from an older copy, it does not list the newer parts. The ranges of these parts are
    // read again.
    fs::remove_file(folder.join("h.db"))?;
    let (last, _, ranges) = close(folder, &["sound"], "1000", &["--range", "1MB"])?;
    ensure(results(&last) == results(&whole) && ranges == all, format!("{ranges} of {all}"))
}

/// Starts a check with a window that takes about ten seconds. Returns when the check has read one range.
fn slow(folder: &Path) -> Result<Child, Failed> {
    let fixed =
        ["check", "sound", "--history", "h.db", "--window", "1h", "--range", "1MB", "--json", "--io-limit", "2MB"];
    let child = spawn(folder, &[&fixed[..], &["--maxdop", "1"]].concat())?;
    let begun = Instant::now();
    while all_parts(folder).map_or(0, |parts| parts.len()) < 2 {
        ensure(begun.elapsed() < Duration::from_secs(60), "a first part")?;
        thread::sleep(Duration::from_millis(20));
    }
    Ok(child)
}

fn signal(folder: &Path) -> Result<(), Failed> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    lab(folder, &["new", "sound", "--size", "24MB"])?;
    let child = slow(folder)?;
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
    ensure(sent.success(), "kill")?;
    let output = child.wait_with_output()?;
    let line = line(&output)?;
    ensure(output.status.code() == Some(0), format!("{output:?}"))?;
    ensure(line["done"]["is_interrupted"] == true && line["done"]["is_closed"] == false, line.to_string())?;
    let read = line["done"]["ranges"].as_u64().unwrap_or_default();
    let (_, _, rest) = close(folder, &["sound"], "1000", &["--range", "1MB"])?;
    forget(folder)?;
    let (_, _, all) = close(folder, &["sound"], "1000", &["--range", "1MB"])?;
    ensure(read > 0 && read + rest == all, format!("{read} + {rest} of {all}"))
}

fn lease(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "24MB"])?;
    let mut child = slow(folder)?;
    let other = window(folder, &["sound"], "1", &["--range", "1MB"]);
    let held = refused(&other, 8, &["h.db", "process", "is checking this database"]);
    child.kill()?;
    child.wait()?;
    held?;
    if cfg!(target_os = "linux") {
        close(folder, &["sound"], "1000", &["--range", "1MB"])?;
    }
    Ok(())
}

fn useless_histories(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "5MB"])?;
    let whole = mdfsck(folder, &["check", "sound"]);
    fs::write(folder.join("h.db"), b"no history")?;
    let output = window(folder, &["sound"], "1000", &["--range", "1MB"]);
    ensure(results(&output) == results(&whole), text(&output.stdout))?;
    ensure(output.status.code().is_some_and(|status| status & 12 != 0), format!("{:?}", output.status))?;
    ensure(text(&output.stderr).contains("h.db"), text(&output.stderr))?;
    ensure(fs::read(folder.join("h.db"))? == b"no history", "it is left alone")?;
    // A file has the path of the folder for parts, so no part can be stored. The check must still read everything.
    fs::remove_file(folder.join("h.db"))?;
    fs::write(folder.join("h.db.parts"), b"")?;
    let output = window(folder, &["sound"], "1000", &["--range", "1MB"]);
    ensure(results(&output) == results(&whole), text(&output.stdout))?;
    ensure(text(&output.stderr).contains("h.db.parts"), text(&output.stderr))
}

fn promises(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "5MB"])?;
    let kept = window(folder, &["sound"], "1", &["--range", "1MB", "--within", "14d"]);
    ensure(kept.status.code() == Some(0), format!("shorter than the database, and no more: {kept:?}"))?;
    ensure(text(&kept.stdout).contains("(promised 14 days)"), text(&kept.stdout))?;
    thread::sleep(Duration::from_millis(2500));
    let broken = window(folder, &["sound"], "1", &["--range", "1MB", "--within", "1s"]);
    ensure(broken.status.code() == Some(16), format!("{broken:?}"))?;
    let said = text(&broken.stdout);
    ensure(said.matches("PROMISE BROKEN").count() == 2, said)?;
    let line = line(&window(folder, &["sound"], "1", &["--range", "1MB", "--within", "1s", "--json"]))?;
    ensure(line["read"]["state"] == "broken" && line["closed"]["state"] == "broken", line.to_string())?;
    // With --physical-only, the check compares no structures with each other. Therefore no image is closed, and the
    // output does not mention closing.
    let physical = window(folder, &["sound"], "1000", &["--range", "1MB", "--within", "1d", "--physical-only"]);
    ensure(physical.status.code() == Some(0), format!("{physical:?}"))?;
    let said = text(&physical.stdout);
    ensure(said.contains("Read:   every page in use was read within") && !said.contains("Closed:"), said)?;
    // A check without a window reads everything, so the promise of `--within` is kept.
    let whole = mdfsck(folder, &["check", "sound", "--history", "h.db", "--within", "1d"]);
    ensure(whole.status.code() == Some(0), format!("{whole:?}"))?;
    let said = text(&whole.stdout);
    ensure(said.contains("Read:   every page in use was read within") && !said.contains("Window:"), said)?;
    let quiet = mdfsck(folder, &["check", "sound", "--history", "h.db", "--within", "1d", "--no-infomsgs"]);
    ensure(quiet.stdout.is_empty() && quiet.status.code() == Some(0), text(&quiet.stdout))
}

fn refusals(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "2MB"])?;
    let check = |options: &[&str]| mdfsck(folder, &[&["check", "sound"], options].concat());
    refused(&check(&["--window", "3h"]), 8, &["--window", "needs --history"])?;
    refused(&check(&["--within", "14d"]), 8, &["--within", "needs --history"])?;
    for (options, word) in [
        (&["--window", "3 parsecs"][..], "3 parsecs"),
        (&["--window", "0h"], "0h"),
        (&["--window", "3h", "--range", "1KB"], "1KB"),
        (&["--range", "1GB"], "--window"),
        (&["--window", "3h", "--table", "orders"], "--table"),
        (&["--window", "3h", "--alloc"], "--alloc"),
        (&["--window", "3h", "--catalog"], "--catalog"),
        (&["--within", "3h", "--filegroup", "PRIMARY"], "--filegroup"),
        (&["--within", "3h", "--estimate-only"], "--estimate-only"),
    ] {
        refused_by_usage(&check(&[options, &["--history", "h.db"]].concat()), &[word])?;
    }
    ensure(!folder.join("h.db").exists(), "nothing is made")
}

fn estimate(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "5MB"])?;
    let options = ["check", "sound", "--estimate-only", "--window", "3h", "--history", "h.db"];
    let unknown = mdfsck(folder, &options);
    ensure(
        text(&unknown.stderr).contains("The number of windows of 3 h in a cycle is unknown"),
        text(&unknown.stderr),
    )?;
    window(folder, &["sound"], "3", &["--range", "1MB"]);
    let known = mdfsck(folder, &options);
    ensure(text(&known.stderr).contains("A cycle takes 1 window of 3 h: "), text(&known.stderr))?;
    let json: Value = serde_json::from_str(&text(&mdfsck(folder, &[&options[..], &["--json"]].concat()).stdout))?;
    ensure(json["cycle_windows"] == 1 && json["bytes_per_second"].as_f64() > Some(0.0), json.to_string())?;
    let without = mdfsck(folder, &["check", "sound", "--estimate-only", "--window", "3h"]);
    ensure(
        without.status.success() && text(&without.stderr).contains(" in a cycle is unknown"),
        text(&without.stderr),
    )?;
    let absent = mdfsck(folder, &["check", "sound", "--estimate-only", "--window", "3h", "--history", "none.db"]);
    ensure(text(&absent.stderr).contains(" in a cycle is unknown"), text(&absent.stderr))?;
    ensure(!folder.join("none.db").exists(), "an estimate makes no history")
}

fn several(folder: &Path) -> Result<(), Failed> {
    fs::create_dir(folder.join("all"))?;
    for seed in ["1", "2"] {
        lab(folder, &["new", seed, "--size", "5MB", "--seed", seed])?;
        lab(folder, &["backup", seed, "-o", &format!("b{seed}")])?;
        let file = fs::read_dir(folder.join(format!("b{seed}")))?.find_map(|entry| entry.ok()).ok_or("a file")?;
        fs::copy(file.path(), folder.join(format!("all/{seed}.bak")))?;
    }
    let count =
        |output: &Output| text(&output.stdout).lines().filter(|line| line.starts_with(r#"{"kind":"window""#)).count();
    let listed = mdfsck(folder, &["check", "all/1.bak", "all/2.bak", "--json"]);
    let databases = text(&listed.stdout).matches(r#"{"kind":"run""#).count();
    for options in [&[][..], &["--databases", "2"]] {
        let output =
            window(folder, &["all/1.bak", "all/2.bak"], "2", &[&["--json", "--range", "1MB"], options].concat());
        ensure(count(&output) == databases && databases > 0, format!("{databases}: {output:?}"))?;
        ensure(output.status.code() == Some(0), format!("{output:?}"))?;
    }
    Ok(())
}

fn again(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "5MB"])?;
    let before = SystemTime::now();
    let (_, _, first) = close(folder, &["sound"], "2", &["--range", "1MB"])?;
    let (last, _, second) = close(folder, &["sound"], "2", &["--range", "1MB"])?;
    ensure(first == second && first > 2, format!("{first} {second}"))?;
    let line = line(&last)?;
    ensure(line["units_sound"] == line["units"] && line["pairs"].as_u64() > Some(0), line.to_string())?;
    ensure(line["never_read_bytes"] == 0 && before <= SystemTime::now(), line.to_string())?;
    // After the first window of the next cycle, no structures can be compared yet. The JSON line of this window must
    // still count the heaps and indexes that were proven sound in the previous cycle.
    let next = window(folder, &["sound"], "1", &["--range", "1MB", "--json"]);
    let line = self::line(&next)?;
    ensure(line["done"]["is_closed"] == false && line["units_sound"] == line["units"], line.to_string())?;
    // `history coverage` must also report that the promise is kept.
    let kept = mdfsck(folder, &["history", "h.db", "coverage", "--within", "1d", "--json"]);
    ensure(kept.status.code() == Some(0), text(&kept.stdout))
}

fn dates(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "5MB"])?;
    let first = line(&window(folder, &["sound"], "1", &["--json", "--range", "1MB"]))?;
    ensure(first["read"]["oldest_at"].is_string(), first.to_string())?;
    thread::sleep(Duration::from_millis(2500));
    let second = line(&window(folder, &["sound"], "1", &["--json", "--range", "1MB"]))?;
    ensure(second["done"]["is_closed"] == false, second.to_string())?;
    ensure(second["read"]["oldest_at"] == first["read"]["oldest_at"], format!("{first}\n{second}"))?;
    let (last, ..) = close(folder, &["sound"], "1000", &["--range", "1MB"])?;
    let last = line(&last)?;
    ensure(last["read"]["oldest_at"] == first["read"]["oldest_at"], format!("closed: {first}\n{last}"))
}

fn depths(folder: &Path) -> Result<(), Failed> {
    lab(folder, &["new", "sound", "--size", "5MB"])?;
    let coverage = || -> Result<Value, Failed> {
        let output = mdfsck(folder, &["history", "h.db", "coverage", "--within", "1d", "--json"]);
        Ok(serde_json::from_str(&text(&output.stdout))?)
    };
    line(&window(folder, &["sound"], "1000", &["--json", "--range", "1MB", "--physical-only"]))?;
    let pages_only = coverage()?;
    let count = &pages_only["pages_in_use"];
    ensure(count.as_u64() > Some(100) && pages_only["pages_within"] == *count, pages_only.to_string())?;
    // The next window checks a few ranges completely. The window before it checked only the pages themselves.
    let full = line(&window(folder, &["sound"], "1", &["--json", "--range", "3MB"]))?;
    ensure(
        full["never_read_bytes"].as_u64() > Some(0),
        format!("what was read as pages was not read in full: {full}"),
    )?;
    let both = coverage()?;
    ensure(both["pages_in_use"] == *count && both["pages_within"] == *count, format!("{pages_only}\n{both}"))?;
    // `forget` may return an error, because the plan of the image that was not closed still exists.
    let _ = forget(folder);
    ensure(mdfsck(folder, &["check", "sound", "--history", "h.db"]).status.code() == Some(0), "sound")?;
    let physical = line(&window(folder, &["sound"], "0", &["--json", "--range", "1MB", "--physical-only"]))?;
    ensure(physical["never_read_bytes"] == 0, format!("what was read in full was read as pages: {physical}"))?;
    ensure(coverage()?["pages_in_use"] == *count, "once each")
}
