//! Tests with logs that belong to their data files but cannot be used. The data files must be checked without recovery.
//! Everything that depends on the log must be listed as not verified, and the reason must be reported.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use format::PAGE_BYTES;
use format::log::{SECTOR_BYTES, Vlf, vlf};
use serde_json::Value;

const MDF: &str = "db/workload.mdf";
const LDF: &str = "db/workload_log.ldf";

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(arguments).current_dir(folder).output().unwrap()
}

/// Writes a lab database to the folder `db`. The database was in use when its server crashed.
fn crashed(seed: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let done = run(
        folder.path(),
        &["lab", "crash", "db", "--seed", seed, "--transactions", "80", "--open", "--flush", "none"],
    );
    assert!(done.status.success(), "{done:?}");
    folder
}

/// Runs `check --format json`. Returns its exit status, its lines, and stderr.
fn check(folder: &Path, arguments: &[&str]) -> (i32, Vec<Value>, String) {
    let done = run(folder, &[&["check", "--format", "json"], arguments].concat());
    let text = String::from_utf8(done.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (done.status.code().unwrap(), lines, String::from_utf8(done.stderr).unwrap())
}

fn vlfs(log: &[u8]) -> Vec<Vlf> {
    let mut found = Vec::new();
    let mut at = vlf::FIRST;
    while let Some(vlf) = log.get(at as usize..).and_then(|bytes| Vlf::read(bytes, at)) {
        at = vlf.end();
        found.push(vlf);
    }
    found
}

/// The offset, in the log file, of the checkpoint record to which the boot page refers.
fn checkpoint_at(folder: &Path, log: &[u8]) -> usize {
    let bytes = fs::read(folder.join(MDF)).unwrap();
    let boot: &format::PageBytes = bytes[9 * PAGE_BYTES..].first_chunk().unwrap();
    let lsn = format::boot::Boot::read(format::Page::new(boot)).unwrap().checkpoint_lsn();
    let vlf = vlfs(log).into_iter().find(|vlf| vlf.sequence == lsn.vlf).unwrap();
    vlf.block_offset(lsn.block).unwrap() as usize
}

/// The offset, in the log file, of the last block of a VLF.
fn last_block(log: &[u8], vlf: &Vlf) -> usize {
    let mut at = vlf.offset as usize + PAGE_BYTES;
    loop {
        let size = usize::from(u16::from_le_bytes([log[at + 6], log[at + 7]]));
        let next = log.get(at + size..).filter(|next| next[0] & 0x10 != 0 && next[0] & 0xC0 == vlf.parity);
        match next {
            Some(_) => at += size,
            None => return at,
        }
    }
}

/// Checks a database with a named log. Requires that recovery is listed as not verified, and that the reason contains
/// `words`. All other results must equal those of a check without the log.
fn is_not_verified(folder: &Path, what: &str, words: &str) {
    let (status, lines, stderr) = check(folder, &[MDF, LDF]);
    let lines_of = |lines: &[Value], kind: &str| -> Vec<Value> {
        lines.iter().filter(|line| line["kind"] == kind).cloned().collect()
    };
    assert_eq!(status, 16, "{what}: {stderr}");
    let recovery = &lines[0]["recovery"];
    assert!(
        recovery["state"] == "refused" && recovery["reason"].as_str().unwrap().contains(words),
        "{what}: {recovery}"
    );
    let not_verified = lines_of(&lines, "not_verified");
    let limit =
        not_verified.iter().find(|line| line["id"] == "recovery.log").unwrap_or_else(|| panic!("{what}: {lines:?}"));
    assert_eq!(limit["what"], "recovery", "{what}");
    let reason = limit["reason"].as_str().unwrap();
    assert!(reason.contains(words), "{what}: {reason}");
    assert!(stderr.contains(words), "{what}: {stderr}");
    let (_, without, _) = check(folder, &[MDF, "--no-log"]);
    for kind in ["object", "finding", "demoted"] {
        assert_eq!(lines_of(&lines, kind), lines_of(&without, kind), "{what}");
    }
    // A server can read an encrypted log, so only logs that are unusable for a server too are called lost.
    let advice = String::from_utf8(run(folder, &["advise", "--json", MDF, LDF]).stdout).unwrap();
    let situation = if words.contains("TDE") { "unverified" } else { "not_recovered" };
    assert!(advice.lines().last().unwrap().contains(&format!("\"situation\":\"{situation}\"")), "{what}: {advice}");
    // Other commands must show the files without recovery, and must warn.
    let tables = run(folder, &["tables", MDF, LDF]);
    assert!(tables.status.code() == Some(16) && !tables.stdout.is_empty(), "{what}: {tables:?}");
    let extracted = run(folder, &["extract", "--recovered", MDF, LDF, "--output", "out"]);
    assert!(extracted.status.code() == Some(16) && !folder.join("out").exists(), "{what}: {extracted:?}");
}

/// Runs `audit`. It must report that it could not compare the pages with the log, or with a part of the log. It must
/// not report that the log belongs to other files.
fn is_not_compared(folder: &Path, what: &str) {
    let audit = run(folder, &["audit", MDF, LDF]);
    let said = String::from_utf8([audit.stdout, audit.stderr].concat()).unwrap();
    let is_refused = audit.status.code() == Some(4) && said.contains(LDF) && said.lines().count() == 1;
    let is_partial = audit.status.code() == Some(16) && said.contains("pages against the log");
    assert!(is_refused || is_partial, "{what}: {said}");
    assert!(!said.contains("give the log that was copied"), "{what}: {said}");
}

/// Runs `log`. It must show the part of the log that it could read, and report that the log is truncated.
fn is_said_to_be_cut(folder: &Path, what: &str) {
    let log = run(folder, &["log", LDF]);
    let said = String::from_utf8(log.stderr).unwrap();
    let is_said = [LDF, "is cut off at byte", "copy the file again"].iter().all(|words| said.contains(words));
    let status = if log.stdout.is_empty() { 4 } else { 16 };
    assert!(log.status.code() == Some(status) && is_said && said.lines().count() == 1, "{what}: {said}");
}

type Damage<'d> = Box<dyn Fn(&mut Vec<u8>) + 'd>;

/// Each kind of damage is applied to a new copy of the log.
#[test]
#[ignore = "full tier: takes seconds"]
fn a_named_log_that_belongs_and_cannot_be_used_leaves_the_rest_judged() {
    let folder = crashed("5");
    let sound = fs::read(folder.path().join(LDF)).unwrap();
    let all = vlfs(&sound);
    let (active, checkpoint) = (
        all.iter().filter(|vlf| vlf.is_used()).max_by_key(|vlf| vlf.sequence).unwrap(),
        checkpoint_at(folder.path(), &sound),
    );
    let last = last_block(&sound, active);
    // The place of the first block that cannot be read.
    let at_checkpoint = format!("the checkpoint that the boot page names: byte {checkpoint} of its file 2: ");
    let at_last = format!(", byte {last} of its file 2: the block there was written completely, and has changed since");
    let damages: Vec<(&str, &str, Damage<'_>)> = vec![
        ("the header of a VLF", "no virtual log file starts at byte", Box::new(|log| log[all[1].offset as usize] = 0)),
        ("the checkpoint's block", &at_checkpoint, Box::new(|log| log[checkpoint + 100] ^= 0x55)),
        (
            "cut inside the VLF of the checkpoint",
            "is cut off",
            Box::new(|log| log.truncate(checkpoint + SECTOR_BYTES / 2)),
        ),
        (
            "cut inside its first VLF",
            "is cut off",
            Box::new(|log| {
                log.truncate(2 * PAGE_BYTES + 3 * SECTOR_BYTES);
                // Changes the VLF header so that the VLF seems never to have been used.
                log[PAGE_BYTES + 4..PAGE_BYTES + 16].fill(0);
            }),
        ),
        (
            "cut after the checkpoint",
            "is cut off",
            Box::new(|log| log.truncate(active.offset as usize + PAGE_BYTES + 3 * SECTOR_BYTES)),
        ),
        ("a bit of the last block", &at_last, Box::new(|log| log[last + 77] ^= 4)),
        ("the parity of the newest VLF", "is damaged", Box::new(|log| log[active.offset as usize + 1] ^= 1)),
        ("encrypted blocks", "the log is encrypted (TDE)", Box::new(|log| encrypt(log, checkpoint))),
        ("SQL Server 2000", "SQL Server 2000", Box::new(|log| of_2000(log, checkpoint))),
    ];
    for (what, words, damage) in damages {
        let mut log = sound.clone();
        damage(&mut log);
        fs::write(folder.path().join(LDF), &log).unwrap();
        is_not_verified(folder.path(), what, words);
        is_not_compared(folder.path(), what);
        if words == "is cut off" {
            is_said_to_be_cut(folder.path(), what);
        }
    }
}

const SIZE: usize = 6;
const FLAGS: usize = 8;
const HAS_CHECKSUM: u8 = 2;
const IS_ENCRYPTED: u8 = 4;

/// Marks the log block at `at` as encrypted.
fn encrypt(log: &mut [u8], at: usize) {
    log[at + FLAGS] = log[at + FLAGS] & !HAS_CHECKSUM | IS_ENCRYPTED;
}

/// Gives the log block at `at` the format of SQL Server 2000. On disk, the status byte of the first sector replaces the
/// low byte of the format, which is stored at the end of the block.
fn of_2000(log: &mut [u8], at: usize) {
    let size = usize::from(u16::from_le_bytes([log[at + SIZE], log[at + SIZE + 1]]));
    log[at + FLAGS] &= !HAS_CHECKSUM;
    log[at + size - 1] = 2;
}

#[test]
fn a_log_is_needed_with_the_boot_page_to_say_where_recovery_starts() {
    let folder = crashed("5");
    let mut bytes = fs::read(folder.path().join(MDF)).unwrap();
    bytes[9 * PAGE_BYTES + 5000] ^= 0x55;
    fs::write(folder.path().join(MDF), bytes).unwrap();
    let (status, lines, stderr) = check(folder.path(), &[MDF, LDF]);
    assert_eq!(status & 24, 16, "{stderr}");
    let limit = lines.iter().find(|line| line["id"] == "recovery.log").unwrap_or_else(|| panic!("{lines:?}"));
    assert!(limit["reason"].as_str().unwrap().contains("the boot page cannot be read"), "{limit}");
}

#[test]
fn a_damaged_log_of_another_database_is_refused_as_one() {
    let folder = crashed("5");
    let other = crashed("6");
    let mut foreign = fs::read(other.path().join(LDF)).unwrap();
    let second = vlfs(&foreign)[1].offset as usize;
    foreign[second] = 0;
    fs::write(folder.path().join("foreign.ldf"), foreign).unwrap();
    let (status, lines, stderr) = check(folder.path(), &[MDF, "foreign.ldf"]);
    assert!(status == 8 && is_refusal(&lines) && stderr.contains("of another database"), "{status} {stderr}");
}

#[test]
fn more_memory_is_asked_for_instead_of_a_check_without_the_log() {
    let folder = crashed("5");
    let (status, lines, stderr) = check(folder.path(), &[MDF, LDF, "--memory", "1KB"]);
    assert!(status == 8 && is_refusal(&lines), "{status} {stderr}");
}

/// Whether the program refused the request. If so, its only line is an error with the reason.
fn is_refusal(lines: &[Value]) -> bool {
    lines.len() == 1 && lines[0]["kind"] == "error"
}
