//! Database snapshots. A snapshot is checked together with the files of its database. The check must see the database
//! as it was when the snapshot was created.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use format::Page;
use format::page::PAGE_BYTES;
use libtest_mimic::Failed;

use super::{Test, ensure, mdfsck, refused, refused_by_usage, text};

/// The path of the snapshot file. The next constant is the path of the data file of the same database at a later time.
const SNAPSHOT: &str = "snap/workload.recovered.ss";
const LATER: &str = "later/workload.mdf";

pub(crate) fn with_snapshots() -> Vec<(&'static str, Test)> {
    vec![
        ("a snapshot over its database is checked as the database was then, whatever the way", laid_over),
        ("a snapshot is known by what it lacks, not by its name alone", recognised),
        ("a snapshot that lost its holes is refused, as is one without its database, or with a log", refused_snapshots),
        ("a page that is newer than its snapshot is not verified, and no finding", newer_page),
        ("damage of the database or of the snapshot is found where one lies over the other", damaged),
        ("each file of a snapshot is laid over its own, and none is left out", several_files),
    ]
}

/// Makes a database at two points in time, and a snapshot that was created at the first of them.
fn moments(folder: &Path) -> Result<(), Failed> {
    for (name, records) in [("then", "150"), ("later", "600")] {
        let options = ["--seed", "5", "--rows", "100", "--after", records, "--flush", "all"];
        let made = mdfsck(folder, &[&["lab", "crash", name], &options[..]].concat());
        ensure(made.status.success(), text(&made.stderr))?;
    }
    for command in [
        &["extract", "--recovered", "-o", "first", "then"][..],
        &["lab", "snapshot", "first", "--now", "later", "-o", "snap"],
    ] {
        let made = mdfsck(folder, command);
        ensure(made.status.success(), text(&made.stderr))?;
    }
    Ok(())
}

/// Reads a page of a file.
fn page(file: &Path, number: u64) -> Result<[u8; PAGE_BYTES], Failed> {
    let mut bytes = [0; PAGE_BYTES];
    File::open(file)?.read_exact_at(&mut bytes, number * PAGE_BYTES as u64)?;
    Ok(bytes)
}

/// Writes a page to a file.
fn put(file: &Path, number: u64, bytes: &[u8]) -> Result<(), Failed> {
    Ok(File::options().write(true).open(file)?.write_all_at(bytes, number * PAGE_BYTES as u64)?)
}

fn laid_over(folder: &Path) -> Result<(), Failed> {
    moments(folder)?;
    let ways: [&[&str]; 8] = [
        &[],
        &["--maxdop", "1"],
        &["--memory", "64MB"],
        &["--constraints", "--identity"],
        &["--extended-logical-checks"],
        &["--physical-only"],
        &["--table", "dbo.accounts"],
        &["--no-log"],
    ];
    for way in ways {
        let first = mdfsck(folder, &[&["check", "first"], way].concat());
        let laid = mdfsck(folder, &[&["check", SNAPSHOT, LATER], way].concat());
        ensure(laid.stdout == first.stdout && laid.status == first.status, format!("{way:?} {}", text(&laid.stdout)))?;
        let said = text(&laid.stderr);
        ensure(said.contains("combined with later/workload.mdf") && !said.contains("shut down"), said)?;
    }
    let first = mdfsck(folder, &["check", "first"]);
    // The later database has different rows.
    let later = mdfsck(folder, &["check", "--no-log", "later"]);
    ensure(later.stdout != first.stdout, "the moments differ")?;
    let plan = mdfsck(folder, &["plan", SNAPSHOT, LATER, "--dir", "plan", "--task-size", "3MB"]);
    ensure(plan.status.success(), text(&plan.stderr))?;
    let missing = text(&mdfsck(folder, &["plan", "--status", "plan", "--missing"]).stdout);
    let done = mdfsck(folder, &["task", "plan", missing.trim()]);
    ensure(done.status.success() && missing.trim() != "1", text(&done.stderr))?;
    let merged = mdfsck(folder, &["merge", "plan"]);
    ensure(merged.stdout == first.stdout, text(&merged.stdout))?;
    // The time of the window is long enough to read everything, so the command ends with status 0.
    let window = ["check", SNAPSHOT, LATER, "--window", "1h", "--history", "h.db", "--image", "monday"];
    let window = mdfsck(folder, &window);
    ensure(window.status.code() == Some(0), text(&window.stderr))?;
    let made = mdfsck(folder, &["extract", "--recovered", "-o", "made", SNAPSHOT, LATER]);
    ensure(made.status.success(), text(&made.stderr))?;
    let made = mdfsck(folder, &["check", "made/workload.recovered.mdf"]);
    ensure(made.stdout == first.stdout, text(&made.stdout))?;
    let rows = |paths: &[&str]| mdfsck(folder, &[&["export", "-o", paths[0]], &paths[1..]].concat());
    ensure(rows(&["x", "first"]).status.success() && rows(&["y", SNAPSHOT, LATER]).status.success(), "export")?;
    for file in fs::read_dir(folder.join("x"))? {
        let name = file?.file_name();
        ensure(
            fs::read(folder.join("x").join(&name))? == fs::read(folder.join("y").join(&name))?,
            format!("{name:?}"),
        )?;
    }
    Ok(())
}

fn recognised(folder: &Path) -> Result<(), Failed> {
    moments(folder)?;
    let first = mdfsck(folder, &["check", "first"]);
    // The allocation maps are missing from this sparse file (they are in a hole). This shows that the file is a
    // snapshot.
    fs::rename(folder.join(SNAPSHOT), folder.join("monday.mdf"))?;
    refused(&mdfsck(folder, &["check", "monday.mdf"]), 4, &["monday.mdf", "a database snapshot", "data file 1"])?;
    let laid = mdfsck(folder, &["check", "monday.mdf", LATER]);
    ensure(laid.stdout == first.stdout, text(&laid.stdout))?;
    // A snapshot in a folder is skipped, and a message says how to check it.
    let alone = mdfsck(folder, &["check", "later"]);
    fs::rename(folder.join("monday.mdf"), folder.join("later/monday.mdf"))?;
    let beside = mdfsck(folder, &["check", "later"]);
    let said = text(&beside.stderr);
    let command = "'mdfsck check later/monday.mdf later/workload.mdf'";
    ensure(beside.stdout == alone.stdout && said.contains("skipped") && said.contains(command), said)?;
    // If a snapshot is named on the command line, it is checked, even if its folder contains other files.
    let laid = mdfsck(folder, &["check", "later/monday.mdf", "later/workload.mdf"]);
    ensure(laid.stdout == first.stdout, text(&laid.stdout))?;
    // A complete file is not a snapshot, even if it is stored as a sparse file.
    let whole = fs::read(folder.join(LATER))?;
    let sparse = File::create(folder.join("sparse.mdf"))?;
    sparse.set_len(whole.len() as u64)?;
    for (number, bytes) in whole.chunks(PAGE_BYTES).enumerate().filter(|(_, bytes)| bytes.iter().any(|byte| *byte != 0))
    {
        sparse.write_all_at(bytes, (number * PAGE_BYTES) as u64)?;
    }
    let (dense, sparse) =
        (mdfsck(folder, &["check", "--no-log", LATER]), mdfsck(folder, &["check", "--no-log", "sparse.mdf"]));
    ensure(dense.stdout == sparse.stdout && dense.status == sparse.status, text(&sparse.stderr))
}

fn refused_snapshots(folder: &Path) -> Result<(), Failed> {
    moments(folder)?;
    refused(&mdfsck(folder, &["check", SNAPSHOT]), 4, &["a database snapshot", "together with data file 1"])?;
    let log = ["check", SNAPSHOT, LATER, "later/workload_log.ldf"];
    refused_by_usage(&mdfsck(folder, &log), &["workload_log.ldf", "leave the log out"])?;
    refused_by_usage(&mdfsck(folder, &["audit", SNAPSHOT, LATER]), &["a snapshot has no log"])?;
    fs::write(folder.join("lost.ss"), fs::read(folder.join(SNAPSHOT))?)?;
    refused(&mdfsck(folder, &["check", "lost.ss", LATER]), 4, &["lost.ss", "lost its holes"])?;
    // A snapshot file without holes is refused, even if its allocation maps are complete. In such a file, only a
    // comparison with the database shows which pages are missing.
    let mut full = fs::read(folder.join("first/workload.recovered.mdf"))?;
    full[200 * PAGE_BYTES..210 * PAGE_BYTES].fill(0);
    fs::write(folder.join("full.ss"), &full)?;
    refused(&mdfsck(folder, &["check", "full.ss", LATER]), 4, &["full.ss", "lost its holes"])?;
    // A truncated data file cannot be combined with the snapshot.
    let cut = fs::read(folder.join(LATER))?;
    fs::write(folder.join("cut.mdf"), &cut[..cut.len() / 2])?;
    refused(&mdfsck(folder, &["check", SNAPSHOT, "cut.mdf"]), 4, &["cut.mdf", "is shorter than"])?;
    // If a database has another binding ID, the snapshot does not belong to it.
    ensure(mdfsck(folder, &["lab", "new", "other", "--size", "2MB"]).status.success(), "lab new")?;
    let other = mdfsck(folder, &["check", SNAPSHOT, "other"]);
    ensure(text(&other.stdout).contains("NOT CHECKED"), text(&other.stdout))
}

/// The number of a page of a table. The snapshot has its own copy of this page.
fn copied_page(folder: &Path) -> Result<u64, Failed> {
    let (snapshot, later) = (folder.join(SNAPSHOT), folder.join(LATER));
    let pages = fs::metadata(&snapshot)?.len() / PAGE_BYTES as u64;
    for number in 100..pages {
        let (own, later) = (page(&snapshot, number)?, page(&later, number)?);
        let is_data = |bytes| Page::new(bytes).header().kind() == Some(format::PageType::Data);
        if is_data(&own)
            && is_data(&later)
            && Page::new(&own).header().alloc_unit() == Page::new(&later).header().alloc_unit()
        {
            return Ok(number);
        }
    }
    Err("no page".into())
}

fn newer_page(folder: &Path) -> Result<(), Failed> {
    moments(folder)?;
    let number = copied_page(folder)?;
    put(&folder.join(SNAPSHOT), number, &[0; PAGE_BYTES])?;
    for way in [&[][..], &["--maxdop", "1"], &["--constraints"]] {
        let output = mdfsck(folder, &[&["check", SNAPSHOT, LATER], way].concat());
        let said = text(&output.stdout);
        ensure(output.status.code() == Some(16), format!("{:?} {said}", output.status.code()))?;
        ensure(said.contains("found 0 allocation errors and 0 consistency errors"), &said)?;
        ensure(said.contains("(snapshot.newer)"), said)?;
    }
    Ok(())
}

fn damaged(folder: &Path) -> Result<(), Failed> {
    moments(folder)?;
    let number = copied_page(folder)?;
    // If the snapshot has its own copy of a page, a check reads this copy. It must find damage to the copy, and ignore
    // damage to the page in the database.
    let (own, later) = (page(&folder.join(SNAPSHOT), number)?, page(&folder.join(LATER), number)?);
    let flipped = |mut bytes: [u8; PAGE_BYTES]| {
        bytes[4000] ^= 1;
        bytes
    };
    put(&folder.join(LATER), number, &flipped(later))?;
    ensure(mdfsck(folder, &["check", SNAPSHOT, LATER]).status.code() == Some(0), "a page that the snapshot has")?;
    put(&folder.join(LATER), number, &later)?;
    put(&folder.join(SNAPSHOT), number, &flipped(own))?;
    let output = mdfsck(folder, &["check", SNAPSHOT, LATER]);
    let place = format!("(1:{number})");
    ensure(output.status.code().is_some_and(|code| code & 1 != 0), text(&output.stdout))?;
    ensure(text(&output.stdout).contains(&place), text(&output.stdout))?;
    put(&folder.join(SNAPSHOT), number, &own)?;
    // Finds a page that has not changed since the snapshot, and damages it in the database.
    let shared = (100..1200).find(|&number| {
        let own = page(&folder.join(SNAPSHOT), number).unwrap_or([1; PAGE_BYTES]);
        let later = page(&folder.join(LATER), number).unwrap_or([0; PAGE_BYTES]);
        own == [0; PAGE_BYTES] && Page::new(&later).header().kind() == Some(format::PageType::Data)
    });
    let shared = shared.ok_or("no page that both have")?;
    let bytes = page(&folder.join(LATER), shared)?;
    put(&folder.join(LATER), shared, &flipped(bytes))?;
    let output = mdfsck(folder, &["check", SNAPSHOT, LATER]);
    let place = format!("(1:{shared})");
    ensure(output.status.code().is_some_and(|code| code & 1 != 0), text(&output.stdout))?;
    ensure(text(&output.stdout).contains(&place), text(&output.stdout))
}

fn several_files(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "new", "d", "--size", "4MB", "--files", "2"]).status.success(), "lab new")?;
    let names = ["orders.mdf", "orders_2.ndf"];
    let mut found: Vec<String> = fs::read_dir(folder.join("d"))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_, std::io::Error>>()?;
    found.sort();
    ensure(found == names, format!("{found:?}"))?;
    let made = mdfsck(folder, &["lab", "snapshot", "d", "--now", "d", "-o", "snap"]);
    ensure(made.status.success(), text(&made.stderr))?;
    let first = mdfsck(folder, &["check", "d"]);
    let all = ["check", "snap/orders.ss", "snap/orders_2.ss", "d/orders.mdf", "d/orders_2.ndf"];
    let laid = mdfsck(folder, &all);
    ensure(laid.stdout == first.stdout && laid.status.code() == Some(0), text(&laid.stderr))?;
    let folder_and_names = mdfsck(folder, &["check", "d", "snap/orders_2.ss", "snap/orders.ss"]);
    ensure(folder_and_names.stdout == first.stdout, text(&folder_and_names.stderr))?;
    refused_by_usage(
        &mdfsck(folder, &["check", "snap/orders.ss", "d"]),
        &["orders_2.ndf", "name all files of the snapshot"],
    )?;
    refused(&mdfsck(folder, &["check", "snap/orders_2.ss", "d/orders.mdf"]), 4, &["orders_2.ss", "data file 3"])?;
    Ok(())
}
