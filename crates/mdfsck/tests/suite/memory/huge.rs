//! A database whose allocation maps do not fit into the grant: 128 GB in sparse files, with 18 MB of map pages.

use std::fs;
use std::process::{Command, Stdio};

use lab::description::Filegroup;

use super::*;

/// Pages of each of the two files: 64 GB.
const FILE_PAGES: u32 = 8 << 20;

fn write(folder: &Path) {
    let mut description = lab::orders::orders(lab::Version::V852, 7, 0);
    description.filegroups = vec![Filegroup { name: "PRIMARY".to_owned(), files: 2 }];
    description.least_pages = FILE_PAGES;
    description.tables.iter_mut().for_each(|table| table.has_reserve = true);
    lab::write(&description, folder).unwrap();
}

/// Damages maps in the middle of each file: GAM bits of some extents in use, and a byte of a PFS page.
fn damage(folder: &Path) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let mut file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let mut edit = |number: u32, edit: &dyn Fn(&mut [u8; PAGE_BYTES])| {
            let (mut page, at) = ([0; PAGE_BYTES], SeekFrom::Start(u64::from(number) * PAGE_BYTES as u64));
            file.seek(at).unwrap();
            file.read_exact(&mut page).unwrap();
            edit(&mut page);
            file.seek(at).unwrap();
            file.write_all(&page).unwrap();
        };
        edit(7 * INTERVAL_PAGES, &|page| {
            page[300..303].iter_mut().for_each(|bits| *bits ^= 0xFF);
            seal(page);
        });
        edit(500 * PFS_PAGES, &|page| page[5000] ^= 1);
    }
}

fn mdfsck(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
    command.args(arguments).args(["--maxdop", "1"]);
    command
}

/// Runs a command, and returns the most memory that it had, in bytes. The operating system is asked again and again until
/// the command ends.
fn peak(arguments: &[&str]) -> u64 {
    let mut child = mdfsck(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        if let Some(ended) = child.try_wait().unwrap() {
            assert!(ended.success(), "{arguments:?}");
            return peak;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let kilobytes =
            text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        peak = peak.max(1024 * kilobytes.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// The results of a merge, without its statistics, and its peak memory.
fn merged(plan: &str, arguments: &[&str]) -> (String, u64) {
    let output = mdfsck(&[&["merge", plan, "--format", "json"], arguments].concat()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let statistics = text.find("{\"kind\":\"statistics\"").unwrap();
    let line: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    (text[..statistics].to_owned(), line["memory_peak"].as_u64().unwrap())
}

#[test]
#[ignore = "full tier: takes seconds"]
fn maps_that_do_not_fit_into_the_grant_give_the_same_plan_and_the_same_results() {
    let folder = tempfile::TempDir::new().unwrap();
    let (data, plan) = (folder.path().join("data"), folder.path().join("plan"));
    let (data_text, plan_text) = (data.to_str().unwrap(), plan.to_str().unwrap());
    fs::create_dir(&data).unwrap();
    write(&data);
    // All maps need 27 MB, and the blocks that are in memory 16 MB.
    let saved = 8 << 20;
    let least = least_grant_with(&data, &["--maxdop", "1"]);
    for is_damaged in [false, true] {
        if is_damaged {
            damage(&data);
        }
        let (expected, [with_all, _, spilled, findings]) = check(&data, &["--maxdop", "1"]);
        assert_eq!((findings > 0, spilled), (is_damaged, 0));
        let (found, [with_some, granted, spilled, _]) = check(&data, &["--maxdop", "1", "--memory", &least]);
        assert!(found == expected && spilled > 0);
        assert!(with_some <= granted && with_some + saved < with_all, "{with_some} of {granted}, {with_all}");

        let plan_arguments = ["plan", data_text, "--dir", plan_text, "--task-size", "64MB"];
        let with_all = peak(&plan_arguments);
        fs::remove_dir_all(&plan).unwrap();
        let with_some = peak(&[&plan_arguments[..], &["--memory", &least]].concat());
        assert!(with_some <= granted && with_some + saved < with_all, "{with_some} of {granted}, {with_all}");
        let missing = mdfsck(&["plan", "--status", plan_text, "--missing"]).output().unwrap().stdout;
        let missing = String::from_utf8(missing).unwrap();
        assert!(missing.matches(',').count() >= 7, "{missing}");
        assert!(mdfsck(&["task", plan_text, missing.trim()]).status().unwrap().success());
        for (memory, most) in [(&["--memory", &least][..], granted), (&[], u64::MAX)] {
            let (found, peak) = merged(plan_text, memory);
            assert!(found == expected, "{memory:?}");
            assert!(peak <= most, "{memory:?}: {peak} of {most}");
        }
        fs::remove_dir_all(&plan).unwrap();
    }
}
