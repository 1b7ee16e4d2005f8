//! Tests the program as users see it. For bad input, the program must print one clear line and end with the right exit
//! status. For good input, it must print the documented output.

#![expect(clippy::expect_used, reason = "a test harness of its own: a failed expectation is a failed test")]
#![expect(clippy::too_many_lines, reason = "the tests of a subject are one list")]

#[cfg(feature = "lab")]
mod advise;
mod backups;
#[cfg(feature = "lab")]
mod bench;
#[cfg(all(feature = "lab", unix))]
mod browser;
#[cfg(feature = "lab")]
mod carve;
#[cfg(feature = "lab")]
mod chains;
#[cfg(feature = "lab")]
mod changes;
#[cfg(feature = "lab")]
mod compare;
mod database;
#[cfg(feature = "lab")]
mod defaults;
#[cfg(all(feature = "lab", unix))]
mod engine;
#[cfg(feature = "lab")]
mod estate;
mod explain;
#[cfg(feature = "lab")]
mod export;
#[cfg(feature = "lab")]
mod first_pages;
mod forms;
mod full_tier;
#[cfg(feature = "lab")]
mod guides;
#[cfg(feature = "lab")]
mod history;
#[cfg(feature = "lab")]
mod html;
#[cfg(all(feature = "lab", unix))]
mod listener;
#[cfg(feature = "lab")]
mod logs;
#[cfg(feature = "lab")]
mod looks;
mod made;
#[cfg(feature = "lab")]
mod many;
#[cfg(all(feature = "lab", unix))]
mod pages;
mod pasted;
#[cfg(feature = "lab")]
mod patterns;
#[cfg(all(feature = "lab", unix))]
mod prove;
#[cfg(all(feature = "lab", target_os = "linux"))]
mod read_only;
#[cfg(feature = "lab")]
mod reports;
#[cfg(all(feature = "lab", unix))]
mod samples;
#[cfg(all(feature = "lab", unix))]
mod serve;
#[cfg(all(feature = "lab", target_os = "linux"))]
mod snapshot_with;
#[cfg(all(feature = "lab", target_os = "linux"))]
mod snapshots;
#[cfg(feature = "lab")]
mod spread;
mod subjects;
#[cfg(feature = "lab")]
mod terminal;
#[cfg(feature = "lab")]
mod watch;
#[cfg(feature = "lab")]
mod windows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
#[cfg(unix)]
use std::sync::{Arc, atomic::AtomicBool};

use format::page::PAGE_BYTES;
use format::protection::checksum;
#[cfg(feature = "lab")]
use libtest_mimic::Completion;
use libtest_mimic::{Arguments, Failed, Trial};
use tempfile::TempDir;
#[cfg(feature = "lab")]
use trials::tools::{is_here, without};

use backups::with_backups;
use database::with_database;
use explain::explanations;
use forms::forms;
use pasted::pasted_texts;
use subjects::with_databases;

/// The number of tests per processor that run at the same time.
const AT_ONCE: usize = 8;

type Test = fn(&Path) -> Result<(), Failed>;

fn main() {
    #[cfg(all(feature = "lab", unix))]
    prove::stand_in::run_if_asked();
    #[cfg(unix)]
    start_programs_that_take_ctrl_c();
    let mut arguments = Arguments::from_args();
    // Most of the time, a test waits for a disk, for a file to settle, or for a hanging program.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(AT_ONCE * processors);
    let alone = without_database().into_iter().chain(explanations()).chain(pasted_texts()).chain(with_lab());
    let mut trials: Vec<Trial> = alone.map(|(name, test)| trial(name, test, None)).collect();
    trials.extend(with_databases(with_database().into_iter().chain(forms()).collect()));
    trials.extend(subjects::with_chains(with_backups()));
    #[cfg(feature = "lab")]
    {
        #[cfg(unix)]
        trials.extend(pages::in_a_browser().into_iter().chain(html::in_a_browser()));
        #[cfg(unix)]
        trials.extend(estate::in_a_browser().into_iter().chain(serve::in_a_browser()));
        #[cfg(target_os = "linux")]
        trials.push(read_only::traced());
        trials.extend(history::with_other_tools());
        trials.extend(watch::with_other_tools());
    }
    let northwind = subjects::corpus("AhmadNaserTurnkeySolutions__NorthwindApp/NORTHWND.zip.d/NORTHWND.MDF");
    let name = "page shows the columns of a page that SQL Server 2000 wrote";
    let of_2000 = subjects::of_real_files(name, northwind.clone(), || in_a_folder(page_of_2000, Some(northwind)));
    trials.push(of_2000);
    // Tests of `watch` wait most of the time, so they start first, and other tests run meanwhile.
    trials.sort_by_key(|trial| !trial.name().starts_with("watch"));
    #[cfg(all(feature = "lab", unix))]
    assert_eq!(full_tier::unknown(&trials), [""; 0], "each has a test");
    let conclusion = libtest_mimic::run(&arguments, trials);
    made::forget();
    conclusion.exit();
}

/// Ensures that the programs that the tests start react to Ctrl+C. If a shell runs the tests in the background, the
/// tests ignore Ctrl+C, and the started programs would inherit this setting. A signal handler, even an empty one, is
/// not inherited, so the started programs then have the default action.
#[cfg(unix)]
fn start_programs_that_take_ctrl_c() {
    const IGNORED: &str = "SigIgn:";
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix(IGNORED)?.trim(), 16).ok());
    if ignored.is_some_and(|signals| signals & 1 << (signal_hook::consts::SIGINT - 1) != 0) {
        let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)));
    }
}

/// Shows page 268, a leaf page of the clustered index of Orders. The header of this page contains index ID 0. The test
/// needs a real file, because the lab does not write databases of SQL Server 2000.
fn page_of_2000(folder: &Path) -> Result<(), Failed> {
    let output = mdfsck(folder, &["page", "1:268", "a.mdf"]);
    let printed = text(&output.stdout);
    for wanted in ["m_indexId        0 ", "Orders (object ID 21575115), index PK_Orders (1)", "ShipCountry"] {
        ensure(printed.contains(wanted), format!("{wanted} is missing in\n{printed}"))?;
    }
    Ok(())
}

/// A test that runs in its own folder. The sample database, if there is one, is in this folder as `a.mdf`.
fn trial(name: &'static str, test: Test, sample: Option<PathBuf>) -> Trial {
    Trial::test(name, move || in_a_folder(test, sample)).with_ignored_flag(full_tier::NAMES.contains(&name))
}

fn in_a_folder(test: Test, sample: Option<PathBuf>) -> Result<(), Failed> {
    let folder = TempDir::new()?;
    if let Some(sample) = sample {
        let bytes = fs::read(sample)?;
        fs::write(folder.path().join("a.mdf"), bytes)?;
    }
    test(folder.path())
}

/// A test of the full tier that needs tools. For each tool, `tools` says whether it is installed. If a tool is missing,
/// the test is ignored with a message that names the tool. If MDFSCK_REQUIRE names the tool, the test fails instead.
#[cfg(feature = "lab")]
fn needs(tools: &[(&'static str, bool)], name: &'static str, test: Test) -> Trial {
    let missing: Vec<_> = tools.iter().filter(|(_, is_here)| !is_here).map(|(tool, _)| *tool).collect();
    let run = move || match missing.is_empty() {
        // The name of the folder is long and has no blanks: in pages, paths that are wider than the screen of a phone
        // must break.
        true => TempDir::with_prefix("a_folder_with_a_name_as_long_as_servers_have_")
            .map_err(Failed::from)
            .and_then(|folder| test(folder.path()))
            .map(|()| Completion::Completed),
        false => Ok(Completion::ignored_with(without(&missing, "not on the PATH")?)),
    };
    Trial::ignorable_test(name, run).with_ignored_flag(true)
}

fn mdfsck(folder: &Path, arguments: &[&str]) -> Output {
    made::or_copied(folder, arguments, |folder| {
        Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(arguments).current_dir(folder).output().expect("mdfsck runs")
    })
}

/// Returns a function that runs mdfsck in `folder` as a user without permission to read `file`. If the current user may
/// read everything, the function uses another user. Returns `None` if this other user cannot run the program.
#[cfg(unix)]
fn who_may_not_read(folder: &Path, file: &Path) -> Option<impl Fn(&[&str]) -> std::io::Result<Output> + use<>> {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    let (folder, may_read) = (folder.to_owned(), fs::File::open(file).is_ok());
    let run = move |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
        command.args(arguments).current_dir(&folder);
        if may_read { command.uid(NOBODY).gid(NOBODY).output() } else { command.output() }
    };
    run(&["--version"]).is_ok().then_some(run)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Requires this exit status, one line on stderr that contains all of `words`, and nothing on stdout.
fn refused(output: &Output, status: i32, words: &[&str]) -> Result<(), Failed> {
    let stderr = text(&output.stderr);
    let ok = output.status.code() == Some(status)
        && stderr.lines().count() == 1
        && stderr.starts_with("mdfsck: ")
        && output.stdout.is_empty()
        && words.iter().all(|word| stderr.contains(word));
    if ok { Ok(()) } else { Err(format!("status {:?}, stderr {stderr:?}", output.status.code()).into()) }
}

/// Requires exit status 8, a text on stderr that contains all of `words`, and nothing on stdout.
fn refused_by_usage(output: &Output, words: &[&str]) -> Result<(), Failed> {
    let stderr = text(&output.stderr);
    let ok =
        output.status.code() == Some(8) && output.stdout.is_empty() && words.iter().all(|word| stderr.contains(word));
    if ok { Ok(()) } else { Err(format!("status {:?}, stderr {stderr:?}", output.status.code()).into()) }
}

fn ensure(condition: bool, what: impl Into<String>) -> Result<(), Failed> {
    if condition { Ok(()) } else { Err(what.into().into()) }
}

#[cfg(feature = "lab")]
fn with_lab() -> Vec<(&'static str, Test)> {
    let mut all = logs::with_logs();
    all.extend(guides::guides());
    all.extend(export::exports());
    all.extend(bench::measurements());
    all.extend(looks::looks());
    #[cfg(target_os = "linux")]
    all.extend(snapshots::with_snapshots().into_iter().chain([read_only::judged()]));
    #[cfg(target_os = "linux")]
    all.extend(snapshot_with::with_snapshots_of_programs());
    all.extend(chains::with_chains());
    all.extend(advise::with_advice());
    all.extend(compare::comparisons());
    all.extend(first_pages::without_first_pages());
    all.extend(carve::with_images());
    all.extend(history::with_history());
    all.extend(html::with_pages());
    all.extend(patterns::with_patterns());
    all.extend(reports::of_reports());
    all.extend(estate::with_estates());
    #[cfg(unix)]
    all.extend(serve::with_servers());
    all.extend(many::with_many());
    #[cfg(unix)]
    all.extend(samples::samples().into_iter().chain(prove::kits()));
    all.extend(spread::with_plans());
    all.extend(windows::with_windows());
    all.extend(changes::with_changes());
    all.extend(defaults::with_defaults());
    all.extend(watch::with_watch());
    #[cfg(unix)]
    all.extend(listener::with_listeners().into_iter().chain(engine::with_engines()));
    all.extend(with_lab_databases());
    all.extend(terminal::with_terminal());
    all
}

#[cfg(feature = "lab")]
fn with_lab_databases() -> Vec<(&'static str, Test)> {
    vec![
        ("the demo finds each of its damages", |folder| {
            let output = mdfsck(folder, &["demo", "here"]);
            let stdout = text(&output.stdout);
            ensure(output.status.success() && stdout.contains("ms: 0 findings"), stdout.clone())?;
            ensure(
                ["8939 in", "8951 in orders", "8936 in", "8905"]
                    .iter()
                    .all(|msg| stdout.contains(&format!("Msg {msg}"))),
                stdout.clone(),
            )?;
            // Findings that are causes of other findings come first. The output says how many findings it leaves out.
            ensure(!stdout.contains("Msg 8928"), stdout.clone())?;
            ensure(stdout.contains("... and 2 more: mdfsck check here"), stdout)
        }),
        ("the demo runs again over its own folder, and over no other", |folder| {
            let read = |name: &str| std::fs::read(folder.join("here").join(name).join("orders.mdf")).ok();
            let names = ["0-sound", "1-bit-rot", "5-lost-extent"];
            ensure(mdfsck(folder, &["demo", "here"]).status.success(), "first")?;
            let first = names.map(read);
            ensure(first.iter().all(Option::is_some), "files")?;
            std::fs::write(folder.join("here/1-bit-rot/orders.mdf"), b"cut off")?;
            ensure(mdfsck(folder, &["demo", "here"]).status.success(), "again")?;
            ensure(names.map(read) == first, "the same files")?;
            let checked = mdfsck(folder, &["check", "here/0-sound"]);
            ensure(checked.status.code() == Some(0), text(&checked.stdout))?;
            for other in ["here/0-sound/mine.txt", "here/notes.txt"] {
                std::fs::write(folder.join(other), b"mine")?;
                refused(
                    &mdfsck(folder, &["demo", "here"]),
                    8,
                    &["here", "contains files that are not from a demo", "mdfsck demo FOLDER"],
                )?;
                ensure(names.map(read) == first, "nothing is removed")?;
                std::fs::remove_file(folder.join(other))?;
            }
            // A symbolic link does not belong to the demo, whatever it points to.
            #[cfg(unix)]
            {
                std::fs::rename(folder.join("here/0-sound"), folder.join("mine"))?;
                std::os::unix::fs::symlink(folder.join("mine"), folder.join("here/0-sound"))?;
                refused(&mdfsck(folder, &["demo", "here"]), 8, &["here", "contains files that are not from a demo"])?;
                ensure(names.map(read) == first, "nothing is removed through a link")?;
            }
            Ok(())
        }),
        ("a file that another program compressed is named as such, with the command that helps", |folder| {
            let starts: [(&str, &[u8], &str); 8] = [
                (
                    "a.gz",
                    &[0x1F, 0x8B, 8, 0],
                    "gzip: decompress it first; to check a backup without a decompressed copy: gunzip -c a.gz | mdfsck check -",
                ),
                ("a.zst", &[0x28, 0xB5, 0x2F, 0xFD], "zstd -dc a.zst | mdfsck check -"),
                ("a.xz", b"\xFD7zXZ\0", "xz -dc a.xz | mdfsck check -"),
                ("a.7z", b"7z\xBC\xAF\x27\x1C", "7z x -so a.7z | mdfsck check -"),
                ("a.zip", b"PK\x03\x04", "unzip -p a.zip | mdfsck check -"),
                ("a.bz2", b"BZh9", "bunzip2 -c a.bz2 | mdfsck check -"),
                ("a.lz4", &[0x04, 0x22, 0x4D, 0x18], "lz4 -dc a.lz4 | mdfsck check -"),
                ("a.rar", b"Rar!\x1A\x07\x01\0", "unrar p -inul a.rar | mdfsck check -"),
            ];
            for (name, start, remedy) in starts {
                std::fs::write(folder.join(name), [start, &[7; 9000]].concat())?;
                for command in ["check", "info", "tables", "chain"] {
                    refused(&mdfsck(folder, &[command, name]), 4, &[name, "is compressed with", remedy])?;
                }
                refused(&mdfsck(folder, &["extract", name, "-o", "e"]), 4, &[name, "is compressed with", remedy])?;
            }
            ensure(mdfsck(folder, &["lab", "new", "s", "--size", "9MB"]).status.success(), "lab new")?;
            let data_file = ["orders.mdf", "is not a SQL Server backup: it is a data file"];
            refused(&mdfsck(folder, &["chain", "s/orders.mdf"]), 4, &data_file)?;
            std::fs::write(folder.join("notes.txt"), b"mine")?;
            let other = ["notes.txt", "is not a SQL Server backup, or its start is damaged"];
            refused(&mdfsck(folder, &["chain", "notes.txt"]), 4, &other)?;
            std::fs::copy(folder.join("a.gz"), folder.join("a b.gz"))?;
            refused(&mdfsck(folder, &["check", "a b.gz"]), 4, &["gunzip -c \"a b.gz\" | mdfsck check -"])
        }),
        ("what holds a database without pages is named as such, and so is what to check in its place", |folder| {
            let starts: [(&str, &[u8], &str); 3] = [
                ("sales.bacpac", b"PK\x03\x04 DacMetadata.xml", "check the database from which it was exported"),
                ("disk.vhdx", b"vhdxfile", "mount the image read-only"),
                ("disk.vhd", b"conectix", "mount the image read-only"),
            ];
            for (name, start, remedy) in starts {
                fs::write(folder.join(name), [start, &[7; 9000]].concat())?;
                for command in ["check", "info", "tables", "chain"] {
                    refused(&mdfsck(folder, &[command, name]), 4, &[name, remedy])?;
                }
            }
            Ok(())
        }),
        ("what may hold a database and is not checked has a row in the table", |folder| {
            ensure(mdfsck(folder, &["lab", "new", "all", "--size", "2MB"]).status.success(), "lab new")?;
            fs::write(folder.join("all/readme.zip"), b"PK\x03\x04 of something else")?;
            let output = mdfsck(folder, &["check", "all"]);
            ensure(output.status.code() == Some(0), text(&output.stderr))?;
            for (name, start) in [("y.bak.gz", &[0x1F, 0x8B, 8, 0][..]), ("z.bacpac", b"PK\x03\x04 Origin.xml")] {
                fs::write(folder.join("all").join(name), [start, &[7; 9000]].concat())?;
                let output = mdfsck(folder, &["check", "all"]);
                let said = text(&output.stdout);
                let row = said.lines().find(|line| line.contains(name) && line.contains("NOT CHECKED"));
                ensure(output.status.code() == Some(4) && row.is_some(), said)?;
                fs::remove_file(folder.join("all").join(name))?;
            }
            Ok(())
        }),
        (
            "each command that takes a folder says of each file in it that may hold a database why it is not checked",
            |folder| {
                ensure(mdfsck(folder, &["lab", "new", "s", "--size", "9MB"]).status.success(), "lab new")?;
                ensure(mdfsck(folder, &["lab", "backup", "s", "-o", "all"]).status.success(), "lab backup")?;
                let disk = [&[0; 510][..], &[0x55, 0xAA]].concat();
                let starts: [(&str, &[u8], &str); 9] = [
                    ("a.bak.rar", b"Rar!\x1A\x07\x01\0", "is compressed with RAR"),
                    ("b.bak.bz2", b"BZh9", "is compressed with bzip2"),
                    ("c.trn.lz4", &[0x04, 0x22, 0x4D, 0x18], "is compressed with lz4"),
                    ("d.mdf.zst", &[0x28, 0xB5, 0x2F, 0xFD], "is compressed with zstd"),
                    ("e.bak.gz", &[0x1F, 0x8B, 8, 0], "is compressed with gzip"),
                    ("f.bacpac", b"PK\x03\x04 Data/1.bcp", "is an export of a database"),
                    ("g.vhdx", b"vhdxfile", "is a disk image (VHDX)"),
                    ("h.vhd", b"conectix", "is a disk image (VHD)"),
                    ("i.vhd", &disk, "is a disk image (VHD)"),
                ];
                for (name, start, _) in starts {
                    fs::write(folder.join("all").join(name), [start, &[7; 9000]].concat())?;
                }
                fs::write(folder.join("all/readme.rar"), b"Rar!\x1A\x07\x01\0 of something else")?;
                for command in [
                    &["check", "all"][..],
                    &["info", "all"],
                    &["chain", "all"],
                    &["watch", "all", "--history", "h.db", "--once", "--settle", "1s"],
                ] {
                    let output = mdfsck(folder, command);
                    let (said, warned) = (text(&output.stdout), text(&output.stderr));
                    let bit = if command[0] == "watch" { 16 } else { 4 };
                    ensure(
                        output.status.code().is_some_and(|code| code & bit != 0),
                        format!("{command:?}: {output:?}"),
                    )?;
                    for (name, _, why) in starts {
                        let is_said = said.lines().any(|line| line.contains(name) && line.contains(why))
                            && said.lines().any(|line| line.contains(name) && line.contains("NOT CHECKED"));
                        ensure(is_said, format!("{command:?} says nothing of {name}: {said}"))?;
                        ensure(
                            warned.contains(name) || command[0] == "watch",
                            format!("{command:?}: {name}: {warned}"),
                        )?;
                    }
                    ensure(!said.contains("readme.rar: ") && !said.contains("readme.rar was"), said)?;
                }
                Ok(())
            },
        ),
        ("a pattern that matches nothing is said to be one, as a shell passes it on", |folder| {
            for command in [
                "check",
                "info",
                "tables",
                "lint",
                "page 1:9",
                "rows t",
                "log",
                "audit",
                "chain",
                "advise",
                "checkpoints",
                "events",
                "export -o out",
                "extract -o out",
            ] {
                let words: Vec<&str> = command.split(' ').chain(["none*/*.bak"]).collect();
                let output = mdfsck(folder, &words);
                let said = text(&output.stderr);
                let is_one = said.lines().count() == 1 && said.contains("none*/*.bak: nothing matches this pattern");
                ensure(is_one && output.status.code() == Some(4), format!("{command}: {output:?}"))?;
            }
            Ok(())
        }),
        ("what another command reads is said of files of other kinds", |folder| {
            for (name, command) in [("trace.xel", "'mdfsck events'"), ("ERRORLOG.1", "'mdfsck checkpoints'")] {
                fs::write(folder.join(name), [7; 9000])?;
                for asked in ["check", "info"] {
                    refused(&mdfsck(folder, &[asked, name]), 4, &[name, command])?;
                }
            }
            Ok(())
        }),
        ("check and info search subfolders with -r", |folder| {
            for (at, seed) in [("all/one", "1"), ("all/two/deep", "2")] {
                let made = mdfsck(folder, &["lab", "new", at, "--size", "2MB", "--seed", seed]);
                ensure(made.status.success(), text(&made.stderr))?;
            }
            refused(&mdfsck(folder, &["check", "all"]), 4, &["all", "no SQL Server data file in this folder"])?;
            for command in ["check", "info"] {
                let output = mdfsck(folder, &[command, "-r", "all"]);
                let said = text(&output.stdout);
                ensure(output.status.code() == Some(0), format!("{command}: {said}"))?;
                ensure(said.matches("orders.mdf").count() >= 2, format!("{command}: {said}"))?;
            }
            Ok(())
        }),
        ("a file of a database snapshot is no database: refused by itself, skipped beside its database", |folder| {
            ensure(mdfsck(folder, &["lab", "new", "db", "--size", "2MB"]).status.success(), "lab new")?;
            let whole = fs::read(folder.join("db/orders.mdf"))?;
            let alone = mdfsck(folder, &["check", "db"]);
            ensure(alone.status.code() == Some(0), text(&alone.stderr))?;
            // A snapshot file has the same file header and binding ID as its database. Pages that have not changed
            // since the snapshot are zeros in the file.
            let mut pages = vec![0; whole.len()];
            for page in [0, 9, 20] {
                pages[page * PAGE_BYTES..][..PAGE_BYTES].copy_from_slice(&whole[page * PAGE_BYTES..][..PAGE_BYTES]);
            }
            for name in ["orders.mdf_MSSQL_DBCC11", "monday.ss"] {
                fs::write(folder.join(name), &pages)?;
                refused(
                    &mdfsck(folder, &["check", name]),
                    4,
                    &[name, "a database snapshot", "check the database without the snapshot"],
                )?;
                fs::rename(folder.join(name), folder.join("db").join(name))?;
                let beside = mdfsck(folder, &["check", "db"]);
                let said = text(&beside.stderr);
                ensure(beside.status.code() == Some(0) && beside.stdout == alone.stdout, text(&beside.stdout))?;
                ensure(said.contains("files of database snapshots, skipped") && said.contains(name), said)?;
                fs::remove_file(folder.join("db").join(name))?;
            }
            // The name of a file alone does not make it a snapshot.
            fs::copy(folder.join("db/orders.mdf"), folder.join("whole.ss"))?;
            ensure(mdfsck(folder, &["check", "whole.ss"]).status.code() == Some(0), "a whole database")
        }),
        ("the same file twice is one file", |folder| {
            ensure(mdfsck(folder, &["lab", "new", "s", "--size", "9MB"]).status.success(), "lab new")?;
            let once = mdfsck(folder, &["check", "s"]);
            ensure(once.status.code() == Some(0), text(&once.stdout))?;
            let mut ways =
                vec![vec!["check", "s", "s/orders.mdf"], vec!["check", "s/orders.mdf", "./s/../s/orders.mdf"]];
            if cfg!(unix) {
                #[cfg(unix)]
                std::os::unix::fs::symlink("orders.mdf", folder.join("s/link.mdf"))?;
                ways.push(vec!["check", "s/link.mdf", "s/orders.mdf"]);
            }
            for way in ways {
                let again = mdfsck(folder, &way);
                ensure(
                    again.status.code() == Some(0) && again.stdout == once.stdout,
                    format!("{way:?}: {}", text(&again.stderr)),
                )?;
            }
            // A copy of a file counts as a separate file.
            std::fs::copy(folder.join("s/orders.mdf"), folder.join("copy.mdf"))?;
            let both = mdfsck(folder, &["check", "s/orders.mdf", "copy.mdf"]);
            ensure(text(&both.stdout).contains("2 databases and backups: 2 sound"), text(&both.stdout))?;
            refused(&mdfsck(folder, &["tables", "s/orders.mdf", "copy.mdf"]), 8, &["both are file 1"])
        }),
        ("what is there already is said in one way and never overwritten", |folder| {
            ensure(mdfsck(folder, &["lab", "new", "s", "--size", "9MB"]).status.success(), "lab new")?;
            ensure(mdfsck(folder, &["lab", "backup", "s", "-o", "b"]).status.success(), "lab backup")?;
            ensure(mdfsck(folder, &["lab", "crash", "c"]).status.success(), "lab crash")?;
            ensure(mdfsck(folder, &["lab", "chain", "k", "--transactions", "20"]).status.success(), "lab chain")?;
            let backup = std::fs::read_dir(folder.join("b")).ok().and_then(|mut files| files.next()?.ok());
            let backup = backup.map(|file| file.path().display().to_string()).ok_or("no backup")?;
            let backup = backup.as_str();
            ensure(mdfsck(folder, &["extract", backup, "-o", "e"]).status.success(), "extract")?;
            let again: [&[&str]; 6] = [
                &["lab", "new", "s", "--size", "9MB"],
                &["lab", "damage", "s", "-o", "s", "--kind", "bit-rot"],
                &["lab", "backup", "s", "-o", "b"],
                &["lab", "crash", "c"],
                &["lab", "chain", "k", "--transactions", "20"],
                &["extract", backup, "-o", "e"],
            ];
            for arguments in again {
                refused(&mdfsck(folder, arguments), 8, &["exists and will not be overwritten; give another folder"])?;
            }
            Ok(())
        }),
        ("a database of the lab is sound, and its damaged copy is not", |folder| {
            let lab = |arguments: &[&str]| mdfsck(folder, &[&["lab"], arguments].concat());
            let new = ["new", "s", "--size", "9MB", "--version", "706", "--files", "2", "--verify", "torn"];
            ensure(lab(&new).status.success(), "lab new")?;
            let check = |name: &str| mdfsck(folder, &["check", "--exit-zero-on-incomplete", "--no-infomsgs", name]);
            ensure(check("s").status.code() == Some(0), text(&check("s").stdout))?;
            refused(&lab(&new), 8, &["orders.mdf"])?;
            let done = lab(&["damage", "s", "-o", "d", "--kind", "key-order"]);
            ensure(text(&done.stdout).contains("expect Msg 2511"), text(&done.stdout))?;
            ensure(text(&check("d").stdout).contains("Msg 2511"), text(&check("d").stdout))?;
            ensure(check("s").status.code() == Some(0), "the original is untouched")?;
            refused(&lab(&["damage", "s", "-o", "s", "--kind", "bit-rot"]), 8, &["will not be overwritten"])
        }),
    ]
}

/// Without the lab, the databases for these tests cannot be written, so the list of tests is empty.
#[cfg(not(feature = "lab"))]
fn with_lab() -> Vec<(&'static str, Test)> {
    Vec::new()
}

fn without_database() -> Vec<(&'static str, Test)> {
    vec![
        ("a text file is refused", |folder| {
            fs::write(folder.join("notes.mdf"), "not a database ".repeat(5000))?;
            refused(&mdfsck(folder, &["check", "notes.mdf"]), 4, &["notes.mdf", "not a SQL Server data file"])
        }),
        ("an empty file is refused", |folder| {
            fs::write(folder.join("empty.mdf"), "")?;
            refused(&mdfsck(folder, &["check", "empty.mdf"]), 4, &["empty.mdf", "0 bytes"])
        }),
        ("a file of a few bytes is refused", |folder| {
            fs::write(folder.join("tiny.mdf"), [1, 15, 0])?;
            refused(&mdfsck(folder, &["check", "tiny.mdf"]), 4, &["tiny.mdf"])
        }),
        ("a backup without a set is refused, whatever its name", |folder| {
            fs::write(folder.join("b.mdf"), [&b"TAPE"[..], &[0; 5000]].concat())?;
            refused(&mdfsck(folder, &["check", "b.mdf"]), 4, &["b.mdf", "no backup set", "ends too early"])
        }),
        ("a missing file is named with the cause", |folder| {
            refused(&mdfsck(folder, &["check", "nowhere.mdf"]), 4, &["nowhere.mdf", "cannot be opened"])
        }),
        ("a folder without data files is refused", |folder| {
            refused(&mdfsck(folder, &["check", "."]), 4, &["no SQL Server data file"])
        }),
        ("standard input without a byte is refused", |folder| {
            refused(&mdfsck(folder, &["check", "-"]), 8, &["-: ", "standard input is empty"])
        }),
        ("a wrong option is one line and status 8", |folder| {
            refused(&mdfsck(folder, &["check", "--no-such-thing", "a.mdf"]), 8, &["--no-such-thing"])
        }),
        ("help, version, completions and man pages exit 0", |folder| {
            for arguments in [&["--help"][..], &["--version"], &["check", "--help"], &["completions", "bash"], &["man"]]
            {
                let output = mdfsck(folder, arguments);
                ensure(output.status.code() == Some(0) && !output.stdout.is_empty(), format!("{arguments:?}"))?;
            }
            Ok(())
        }),
        ("-V is one line, and --version says what was built", |folder| {
            let short = text(&mdfsck(folder, &["-V"]).stdout);
            ensure(short == concat!("mdfsck ", env!("CARGO_PKG_VERSION"), "\n"), short.clone())?;
            let long = text(&mdfsck(folder, &["--version"]).stdout);
            let keys: Vec<&str> = long.lines().skip(1).filter_map(|line| Some(line.split_once(": ")?.0)).collect();
            ensure(long.starts_with(&short) && keys == ["commit", "target", "build", "features"], long)
        }),
        ("each manual page that another names is there", |folder| {
            let (mut wanted, mut seen) = (vec![Vec::new()], 0);
            while let Some(command) = wanted.pop() {
                let arguments: Vec<&str> = std::iter::once("man").chain(command.iter().map(String::as_str)).collect();
                let output = mdfsck(folder, &arguments);
                let page = text(&output.stdout);
                let name = ["mdfsck"].into_iter().chain(arguments[1..].iter().copied()).collect::<Vec<_>>().join("-");
                ensure(
                    output.status.success() && page.contains(&format!(".TH {} 1", name.to_uppercase())),
                    page.clone(),
                )?;
                // The manual page contains the name of the command, but not the build of the program.
                ensure(!page.contains("commit:"), page.clone())?;
                seen += 1;
                let start = format!("{}\\-", name.replace('-', "\\-"));
                let below = page.lines().filter_map(|line| line.strip_prefix(&start)?.strip_suffix("(1)"));
                wanted.extend(below.map(|part| [command.clone(), vec![part.replace("\\-", "-")]].concat()));
            }
            ensure(seen > 15, format!("{seen} pages"))?;
            refused(&mdfsck(folder, &["man", "lab", "nothing"]), 8, &["lab nothing: no such command"])
        }),
    ]
}
