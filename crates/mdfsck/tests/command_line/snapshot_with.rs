//! `mdfsck check --snapshot-with`: the snapshot is removed however the check ends, and its check counts as one of the
//! original files.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};

use super::listener::program;
use super::*;

pub(super) fn with_snapshots_of_programs() -> Vec<(&'static str, Test)> {
    vec![
        ("check of a snapshot prints and ends as one of the files, and the snapshot is removed", life),
        ("a program that makes no snapshot is one clear error, and what it printed is removed", no_snapshot),
        ("a snapshot that cannot be removed costs bit 4 and no result, and the next run removes it", stuck),
        ("a snapshot of a check that was killed is removed by the next run", killed),
        ("a snapshot that was being made when the check was killed is removed when it is made", killed_early),
        ("two checks do not remove each other's snapshots", two_at_once),
        ("Ctrl+C ends a check of a snapshot, and the snapshot is removed when its files are closed", interrupted),
        ("Ctrl+C ends the program that makes a snapshot", interrupted_early),
        ("Ctrl+C does not end a step of the samples half-way", whole_steps),
        ("a step that outlives the program after Ctrl+C leaves a snapshot that a later run removes", long_step),
        ("each step of the samples keeps the file open by which mdfsck knows that it runs", steps_keep_stdout),
        ("Ctrl+C while an old snapshot is removed makes no new one", interrupted_before),
        ("checks of changing snapshots count for one copy in the history", one_copy),
        ("a snapshot of what has no local files, or of windows, is refused", refusals),
        ("the record of a snapshot is beside the history or in the folder of the user", places),
    ]
}

/// The script of a program that copies the first path, and writes its calls to the file `calls`. It refuses to remove a
/// copy while mdfsck has its files open, as a system refuses to unmount a file system.
const COPIES: &str = r#"
echo "$*" >>calls
case $1 in
create) copy=$PWD/copy-$$ && mkdir "$copy" && echo "$copy" && cp "$2"/* "$copy" ;;
remove)
    if ls -l "/proc/$PPID/fd" 2>/dev/null | grep -q "$2/"; then echo "$2 is busy" >&2; exit 1; fi
    rm -r "$2" ;;
esac
"#;

/// Writes a sound database `d`, a copy `hurt` of it with four findings, and the program `snap`.
fn databases(folder: &Path) -> Result<(), Failed> {
    for arguments in [
        &["lab", "new", "d", "--size", "9MB"][..],
        &["lab", "damage", "d", "-o", "hurt", "--kind", "bit-rot", "--seed", "3"],
    ] {
        let made = mdfsck(folder, arguments);
        ensure(made.status.success(), text(&made.stderr))?;
    }
    program(folder, "snap", COPIES)
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
    command.args(["check", "--no-infomsgs", "--snapshot-with", "./snap"]).args(arguments).current_dir(folder);
    command.env("XDG_STATE_HOME", folder.join("state"));
    command
}

fn check(folder: &Path, arguments: &[&str]) -> Result<Output, Failed> {
    Ok(command(folder, arguments).output()?)
}

fn status(output: &Output, expected: i32) -> Result<(), Failed> {
    ensure(output.status.code() == Some(expected), format!("not {expected}: {output:?}"))
}

/// The calls of the program: the verb, and the name of the file or folder in the first argument.
fn calls(folder: &Path) -> Vec<(String, String)> {
    let calls = text(&fs::read(folder.join("calls")).unwrap_or_default());
    let call = |line: &str| {
        let (verb, path) = line.split_once(' ').unwrap_or((line, ""));
        (verb.to_owned(), path.rsplit('/').next().unwrap_or_default().to_owned())
    };
    calls.lines().map(call).collect()
}

fn verbs(folder: &Path) -> Vec<String> {
    calls(folder).into_iter().map(|(verb, _)| verb).collect()
}

/// The names in a folder that begin with `start`.
fn names(folder: &Path, start: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(start))
        .collect()
}

/// Requires that no snapshot and no record is left.
fn nothing_left(folder: &Path) -> Result<(), Failed> {
    let records = names(&folder.join("state/mdfsck/snapshots"), "");
    let copies = names(folder, "copy-");
    ensure(records.is_empty() && copies.is_empty(), format!("{records:?} {copies:?} {:?}", calls(folder)))
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) -> Result<(), Failed> {
    let begun = Instant::now();
    while !is_there() {
        ensure(begun.elapsed() < Duration::from_secs(60), format!("waited for {what}"))?;
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Starts a check that has made its snapshot and opened its files, and waits until a reader opens the pipe `name`, into
/// which it writes its results.
fn waiting(folder: &Path, name: &str, arguments: &[&str]) -> Result<Child, Failed> {
    ensure(Command::new("mkfifo").arg(name).current_dir(folder).status()?.success(), "mkfifo")?;
    let output = [&["--output", name][..], arguments].concat();
    let child = command(folder, &output).stderr(Stdio::piped()).spawn()?;
    let files = format!("/proc/{}/fd", child.id());
    wait_for("the files of the snapshot", || {
        let open = fs::read_dir(&files).into_iter().flatten().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|path| path.to_string_lossy().contains("/copy-"))
    })?;
    Ok(child)
}

fn send(child: &Child, signal: Signal) -> Result<(), Failed> {
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("no process")?;
    Ok(kill_process(process, signal)?)
}

fn life(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    let recursive = ["--recursive", "d"];
    for (name, arguments, expected) in [("d", &["d"][..], 0), ("hurt", &["hurt"], 17), ("d", &recursive, 0)] {
        let plain = mdfsck(folder, &["check", "--no-infomsgs", name]);
        let output = check(folder, arguments)?;
        status(&output, expected)?;
        ensure(output.stdout == plain.stdout, format!("{output:?}"))?;
        ensure(output.stderr == plain.stderr, format!("{output:?}"))?;
        nothing_left(folder)?;
    }
    // Files are found in the folder that the program prints.
    let output = check(folder, &["--snapshot-argument=-v;x", "--snapshot-argument", "a b", "d"])?;
    status(&output, 4)?;
    let last = fs::read_to_string(folder.join("calls"))?;
    let last = last.lines().last().unwrap_or_default();
    ensure(last == format!("-v;x a b create {}", folder.canonicalize()?.join("d").display()), last)?;
    // An error of the check removes the snapshot too.
    fs::create_dir(folder.join("empty"))?;
    fs::write(folder.join("empty/notes.txt"), "none")?;
    let output = check(folder, &["empty"])?;
    status(&output, 4)?;
    ensure(text(&output.stderr).contains("no SQL Server data file"), format!("{output:?}"))?;
    nothing_left(folder)
}

fn no_snapshot(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    let printed = |text: &str| format!("case $1 in create) printf '{text}' ;; remove) echo \"$*\" >>calls ;; esac\n");
    for (script, words, removals) in [
        (None, &["cannot be started", "No such file"][..], 0),
        (Some("echo no space >&2; exit 3\n".to_owned()), &["exit status: 3"], 0),
        (Some(format!("{}[ $1 = remove ]\n", printed("/half\\n"))), &["exit status: 1"], 1),
        (Some(printed("")), &["no line"], 0),
        (Some(printed("snapshots/d\\n")), &["'snapshots/d', which is not an absolute path"], 1),
        (Some(printed("/no/such/folder\\n")), &["/no/such/folder cannot be opened", "No such file"], 1),
        (Some(printed("/\\377\\n")), &["line 1 that it printed is not UTF-8"], 1),
        (Some(printed("/half\\n/half\\n")), &["2 lines for 1 path"], 1),
        // A path of the database itself is no snapshot, and no program is asked to remove it.
        (Some(format!("[ $1 != create ] || echo \"$2\"\n{}", printed(""))), &["/d is no copy of it"], 0),
        (Some(format!("[ $1 != create ] || dirname \"$2\"\n{}", printed(""))), &["is no copy of it"], 0),
        (Some("[ $1 = remove ] || yes /tmp\n".to_owned()), &["more than 64 KB"], 0),
    ] {
        let _ = fs::remove_file(folder.join("snap"));
        let _ = fs::remove_file(folder.join("calls"));
        if let Some(script) = &script {
            program(folder, "snap", script)?;
        }
        let output = check(folder, &["d"])?;
        let said = text(&output.stderr);
        let line = said.lines().last().unwrap_or_default();
        status(&output, 4)?;
        ensure(line.starts_with("mdfsck: ./snap create: ") && line.ends_with("; nothing was checked"), said.clone())?;
        ensure(words.iter().all(|word| line.contains(word)) && output.stdout.is_empty(), said.clone())?;
        ensure(calls(folder).len() == removals, format!("{script:?}: {:?}", calls(folder)))?;
        let others = said.lines().count() - 1;
        ensure(others == usize::from(said.starts_with("no space\n")), said)?;
        nothing_left(folder)?;
    }
    let output = check(folder, &["nowhere"])?;
    refused(&output, 4, &["nowhere: cannot be read"])
}

fn stuck(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    let plain = mdfsck(folder, &["check", "--no-infomsgs", "hurt"]);
    program(folder, "snap", &COPIES.replace("rm -r \"$2\"", "exit 3"))?;
    let output = check(folder, &["hurt"])?;
    status(&output, 17 + 4)?;
    let said = text(&output.stderr);
    ensure(output.stdout == plain.stdout, format!("{output:?}"))?;
    ensure(said.contains("./snap remove: it ended with exit status: 3; the snapshot may still exist"), said)?;
    program(folder, "snap", COPIES)?;
    let output = check(folder, &["d"])?;
    status(&output, 0)?;
    let said = text(&output.stderr);
    ensure(said.contains("an earlier run has left a snapshot of ") && said.contains("/hurt: removed"), said)?;
    ensure(verbs(folder) == ["create", "remove", "remove", "create", "remove"], format!("{:?}", calls(folder)))?;
    nothing_left(folder)
}

fn killed(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    let mut child = waiting(folder, "results", &["d"])?;
    send(&child, Signal::KILL)?;
    child.wait()?;
    let copies = names(folder, "copy-");
    ensure(copies.len() == 1 && verbs(folder) == ["create"], format!("{copies:?} {:?}", calls(folder)))?;
    // A check without a snapshot does not touch it.
    status(&mdfsck(folder, &["check", "d"]), 0)?;
    // A run with other arguments calls no program for it, but tells how to remove it.
    let output = check(folder, &["--snapshot-argument", "other", "d"])?;
    let said = text(&output.stderr);
    ensure(said.contains("made by another program: only a run with '/") && said.contains("/snap' removes it"), said)?;
    ensure(names(folder, "copy-") == copies, "the snapshot is kept")?;
    fs::remove_file(folder.join("calls"))?;
    let output = check(folder, &["d"])?;
    status(&output, 0)?;
    let said = text(&output.stderr);
    ensure(said.lines().count() == 1 && said.contains("/d: removed"), said)?;
    let calls = calls(folder);
    ensure(calls[0] == ("remove".to_owned(), copies[0].clone()), format!("{calls:?}"))?;
    ensure(verbs(folder) == ["remove", "create", "remove"], format!("{calls:?}"))?;
    nothing_left(folder)
}

fn killed_early(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    program(
        folder,
        "snap",
        &COPIES.replace("create)", "create) touch begun; while [ ! -e go ]; do sleep 0.02; done;"),
    )?;
    let mut child = command(folder, &["d"]).spawn()?;
    wait_for("the program", || folder.join("begun").exists())?;
    send(&child, Signal::KILL)?;
    child.wait()?;
    let first = thread::scope(|scope| {
        // The second run waits for its own snapshot.
        let output = scope.spawn(|| command(folder, &["d"]).output());
        wait_for("the second call", || verbs(folder).len() == 2)?;
        fs::write(folder.join("go"), "")?;
        Ok::<_, Failed>(output.join().map_err(|_| "the second run")??)
    })?;
    status(&first, 0)?;
    ensure(text(&first.stderr).contains("the program that makes it is still running"), format!("{first:?}"))?;
    let is_ended =
        || names(folder, "copy-").len() == 1 && !names(&folder.join(&names(folder, "copy-")[0]), "").is_empty();
    wait_for("the first snapshot", is_ended)?;
    // The program of the killed run may need a moment to end.
    wait_for("a run that removes it", || {
        check(folder, &["d"]).is_ok_and(|output| text(&output.stderr).contains("/d: removed"))
    })?;
    nothing_left(folder)
}

fn two_at_once(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    let first = waiting(folder, "results", &["d"])?;
    let copy = names(folder, "copy-");
    let second = check(folder, &["hurt"])?;
    status(&second, 17)?;
    ensure(!text(&second.stderr).contains("an earlier run"), format!("{second:?}"))?;
    ensure(names(folder, "copy-") == copy, "the second run removed the snapshot of the first")?;
    ensure(fs::read(folder.join("results"))?.is_empty(), "a sound database")?;
    let first = first.wait_with_output()?;
    status(&first, 0)?;
    nothing_left(folder)
}

fn interrupted(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    for (pipe, signal) in [("one", Signal::INT), ("two", Signal::TERM)] {
        let child = waiting(folder, pipe, &["--history", "h.db", "d"])?;
        send(&child, signal)?;
        let output = child.wait_with_output()?;
        let by = output.status.signal();
        ensure(by == Some(signal.as_raw()) && output.stderr.is_empty(), format!("{output:?}"))?;
        nothing_left(folder)?;
    }
    ensure(verbs(folder) == ["create", "remove", "create", "remove"], format!("{:?}", calls(folder)))
}

fn interrupted_early(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    program(folder, "snap", &COPIES.replace("&& cp", "&& touch begun && sleep 600 && cp"))?;
    let child = command(folder, &["d"]).stderr(Stdio::piped()).spawn()?;
    wait_for("the program", || folder.join("begun").exists())?;
    send(&child, Signal::INT)?;
    let begun = Instant::now();
    let output = child.wait_with_output()?;
    ensure(output.status.signal() == Some(Signal::INT.as_raw()), format!("{output:?}"))?;
    ensure(begun.elapsed() < Duration::from_secs(30), "the program has ended")?;
    ensure(verbs(folder) == ["create", "remove"], format!("{:?}", calls(folder)))?;
    nothing_left(folder)
}

fn whole_steps(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    fs::create_dir_all(folder.join("d/.zfs/snapshot"))?;
    fs::create_dir(folder.join("bin"))?;
    // A zfs with one dataset, which takes its time.
    program(
        &folder.join("bin"),
        "zfs",
        "case $* in\n\
         'list -H -o name -- '*) echo tank/d ;;\n\
         'list -H -t '*) [ -d d/.zfs/snapshot/\"${8#*@}\" ] ;;\n\
         'snapshot '*) mkdir d/.zfs/snapshot/\"${2#*@}\" && touch begun && sleep 1 && touch ended ;;\n\
         'destroy '*) rm -r d/.zfs/snapshot/\"${3#*@}\" ;;\n\
         esac\n",
    )?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/snapshots/zfs.sh");
    program(folder, "snap", &format!("PATH=$PWD/bin:$PATH exec '{}' \"$@\"\n", script.display()))?;
    let child = command(folder, &["d"]).stderr(Stdio::piped()).spawn()?;
    wait_for("the step", || folder.join("begun").exists())?;
    send(&child, Signal::INT)?;
    let output = child.wait_with_output()?;
    ensure(output.status.signal() == Some(Signal::INT.as_raw()), format!("{output:?}"))?;
    ensure(folder.join("ended").exists(), "the step was ended half-way")?;
    let left = names(&folder.join("d/.zfs/snapshot"), "");
    ensure(left.is_empty(), format!("{left:?} {output:?}"))?;
    nothing_left(folder)
}

/// The script of a sample, with a step that ends only when the file `go` is there.
fn long_step(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    fs::create_dir(folder.join("bin"))?;
    // d is a subvolume of btrfs.
    let stat = "case $* in '-f '*) echo btrfs ;; */d) echo 256 ;; *) echo 1 ;; esac\n";
    program(&folder.join("bin"), "stat", stat)?;
    program(
        &folder.join("bin"),
        "btrfs",
        "case \"$1 $2\" in\n\
         'subvolume snapshot') touch begun; while [ ! -e go ]; do sleep 0.02; done; mkdir \"$5\" && cp \"$4\"/* \"$5\" && touch ended ;;\n\
         'subvolume delete') rm -r \"$3\" ;;\n\
         esac\n",
    )?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/snapshots/btrfs.sh");
    program(folder, "snap", &format!("PATH=$PWD/bin:$PATH exec '{}' \"$@\"\n", script.display()))?;
    // Not a pipe, which the step would keep open.
    let stderr = folder.join("stderr");
    let mut child = command(folder, &["d"]).stderr(fs::File::create(&stderr)?).spawn()?;
    wait_for("the step", || folder.join("begun").exists())?;
    send(&child, Signal::INT)?;
    let status = child.wait()?;
    let said = fs::read_to_string(&stderr)?;
    ensure(
        status.signal() == Some(Signal::INT.as_raw()) && !folder.join("ended").exists(),
        format!("{status} {said}"),
    )?;
    ensure(said.contains("a step of it still runs; a later run"), said)?;
    let left = || (names(&folder.join("state/mdfsck/snapshots"), "").len(), names(&folder.join("d"), ".mdfsck-").len());
    ensure(left() == (2, 1), format!("{:?}", left()))?;
    fs::write(folder.join("go"), "")?;
    wait_for("the end of the step", || folder.join("ended").exists())?;
    // The shell around the step may need a moment to end.
    wait_for("a run that removes it", || {
        check(folder, &["d"]).is_ok_and(|output| text(&output.stderr).contains("/d: removed"))
    })?;
    ensure(left() == (0, 0), format!("{:?}", left()))
}

/// The shell around each step has the stdout of the script, and no call redirects it.
fn steps_keep_stdout(_: &Path) -> Result<(), Failed> {
    for name in ["lvm.sh", "btrfs.sh", "zfs.sh"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/snapshots").join(name);
        let script = fs::read_to_string(path)?;
        let around = r#"sh -c '"$@" >/dev/null; exit $?' step "$@""#;
        ensure(script.matches(around).count() == 1, format!("{name}: step"))?;
        let calls = script.lines().filter_map(|line| {
            let at_start = line.trim_start().strip_prefix("step ");
            at_start.or_else(|| Some(line.split_once("|| step ")?.1))
        });
        let calls: Vec<&str> = calls.collect();
        ensure(!calls.is_empty() && calls.iter().all(|call| !call.contains('>')), format!("{name}: {calls:?}"))?;
    }
    Ok(())
}

fn interrupted_before(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    let mut child = waiting(folder, "results", &["d"])?;
    send(&child, Signal::KILL)?;
    child.wait()?;
    program(folder, "snap", &COPIES.replace("rm -r", "touch removing; sleep 1; rm -r"))?;
    fs::remove_file(folder.join("calls"))?;
    let child = command(folder, &["d"]).stderr(Stdio::piped()).spawn()?;
    wait_for("the removal", || folder.join("removing").exists())?;
    send(&child, Signal::INT)?;
    let output = child.wait_with_output()?;
    ensure(output.status.signal() == Some(Signal::INT.as_raw()), format!("{output:?}"))?;
    ensure(verbs(folder) == ["remove"], format!("{:?}", calls(folder)))?;
    nothing_left(folder)
}

fn one_copy(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    let run = |arguments: &[&str]| check(folder, &[arguments, &["--history", "h.db"]].concat());
    status(&run(&["hurt"])?, 17)?;
    let again = run(&["hurt/orders.mdf"]);
    // A file without its log is found in the folder that has a copy of all files.
    program(folder, "snap", &COPIES.replace("\"$2\"/*", "\"${2%/orders.mdf}\"/*"))?;
    ensure(again?.status.code() == Some(4), "the copy of a file is no folder")?;
    for arguments in [&["hurt"][..], &["hurt/orders.mdf"]] {
        let output = run(arguments)?;
        status(&output, 17)?;
        let said = text(&output.stderr);
        ensure(said.contains("history: 0 new, 4 confirmed, 0 gone"), said)?;
    }
    // A check of the files themselves is one of the same copy.
    let plain = mdfsck(folder, &["check", "hurt", "--no-infomsgs", "--history", "h.db"]);
    ensure(text(&plain.stderr).contains("history: 0 new, 4 confirmed, 0 gone"), format!("{plain:?}"))?;
    let history = Connection::open(folder.join("h.db"))?;
    let all = |query: &str| -> Result<Vec<String>, Failed> {
        let mut query = history.prepare(query)?;
        let rows = query.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    };
    let original = folder.canonicalize()?.join("hurt/orders.mdf").display().to_string();
    let locations = all("SELECT location FROM source")?;
    ensure(locations == [original], format!("{locations:?}"))?;
    let paths = all("SELECT DISTINCT paths FROM run")?;
    ensure(paths.iter().all(|paths| !paths.contains("copy-")), format!("{paths:?}"))?;
    nothing_left(folder)
}

fn refusals(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    refused(&check(folder, &["-"])?, 8, &["-: is standard input", "--snapshot-with makes a snapshot of local files"])?;
    if cfg!(feature = "cloud") {
        refused(&check(folder, &["s3://bucket/a.bak"])?, 8, &["s3://bucket/a.bak: is a URL"])?;
    }
    let window = check(folder, &["d", "--history", "h.db", "--window", "1h"])?;
    refused_by_usage(&window, &["--snapshot-with", "--window"])?;
    let argument = mdfsck(folder, &["check", "--snapshot-argument", "a", "d"]);
    refused_by_usage(&argument, &["--snapshot-with"])?;
    let plan = mdfsck(folder, &["plan", "--snapshot-with", "./snap", "--dir", "p", "d"]);
    refused_by_usage(&plan, &["unexpected argument '--snapshot-with'"])?;
    ensure(calls(folder).is_empty(), "no snapshot was made")?;
    // An estimate reads the maps of the files, so it reads the snapshot too.
    status(&check(folder, &["--estimate-only", "d"])?, 0)?;
    ensure(verbs(folder) == ["create", "remove"], format!("{:?}", calls(folder)))?;
    nothing_left(folder)
}

fn places(folder: &Path) -> Result<(), Failed> {
    databases(folder)?;
    let lists = COPIES.replace("create)", "create) ls h.db.snapshots state/mdfsck/snapshots >>listed 2>/dev/null;");
    program(folder, "snap", &lists)?;
    let listed = || fs::read_to_string(folder.join("listed")).unwrap_or_default();
    status(&check(folder, &["d", "--history", "h.db"])?, 0)?;
    ensure(listed().starts_with("h.db.snapshots:\nsnapshot-") && listed().contains(".json\n"), listed())?;
    fs::remove_file(folder.join("listed"))?;
    fs::remove_dir(folder.join("h.db.snapshots"))?;
    status(&check(folder, &["d"])?, 0)?;
    ensure(listed().contains("snapshots:\nsnapshot-") || listed().starts_with("snapshot-"), listed())?;
    // If the environment names no folder, the error says what to do.
    let without = |option: &[&str]| {
        command(folder, &[&["d"][..], option].concat()).env_remove("XDG_STATE_HOME").env_remove("HOME").output()
    };
    refused(&without(&[])?, 8, &["give --history FILE, or set XDG_STATE_HOME or HOME"])?;
    status(&without(&["--history", "h.db"])?, 0)?;
    nothing_left(folder)
}
