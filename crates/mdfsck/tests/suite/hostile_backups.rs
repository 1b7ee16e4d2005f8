//! Tests with malicious backups, and with compressed backups in which a long range is damaged. The program must keep
//! within limits on time and memory. It must report a clear error, and read all sound parts.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use format::{PAGE_BYTES, PageId};
use lab::backup::{BackupOptions, Container, Set, backup};
use lab::{Version, orders};
use source::{BackupPages, DataFiles, PageSource};
use tempfile::TempDir;

/// The address space of the program, in KB. It is sufficient for the program and a grant of 64 MB. It is not sufficient
/// for the memory that earlier versions of the program allocated for these backups.
const MOST_ADDRESSES: u32 = 400 << 10;
/// The time limit for one run. A run needs much less time, unless it never ends.
const MOST_TIME: Duration = Duration::from_secs(60);

/// Runs the program in a limited address space.
fn run(arguments: &[&str], file: &Path) -> (Output, String) {
    let start = Instant::now();
    let limited = format!("ulimit -v {MOST_ADDRESSES} && exec \"$0\" \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &limited, env!("CARGO_BIN_EXE_mdfsck")])
        .args(arguments)
        .arg(file)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(output.status.code().is_some_and(|code| code < 32), "{arguments:?}: {:?}: {said}", output.status);
    assert!(start.elapsed() < MOST_TIME, "{arguments:?} took {:?}", start.elapsed());
    (output, said)
}

/// Runs a check with a grant of 64 MB. Returns its exit status and stderr. If the check was not refused, its peak
/// memory must not exceed the grant.
fn check(file: &Path) -> (i32, String) {
    let (output, said) = run(&["check", "--memory", "64MB", "--maxdop", "1", "--format", "json"], file);
    if let Some(line) = String::from_utf8(output.stdout).unwrap().lines().find(|line| line.contains("memory_peak")) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let peak = line["memory_peak"].as_u64().unwrap();
        assert!(peak <= 64 << 20, "{peak} bytes");
    }
    (output.status.code().unwrap(), said)
}

/// Runs every command that opens a backup. Requires that each command reports `word` and keeps within the limits.
fn every_command_says(file: &Path, word: &str) {
    let (status, said) = check(file);
    assert!(said.contains(word) && said.contains(&file.display().to_string()) && status & 12 != 0, "{status}: {said}");
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("out");
    for command in [&["info"][..], &["chain"], &["tables"], &["extract", "-o", to.to_str().unwrap()]] {
        let (output, said) = run(command, file);
        assert!(said.contains(word), "{command:?}: {said}");
        assert_eq!(output.status.code(), Some(4), "{command:?}");
    }
}

fn xor(bytes: &[u8]) -> [u8; 2] {
    bytes.as_chunks::<2>().0.iter().fold(0, |sum, word| sum ^ u16::from_le_bytes(*word)).to_le_bytes()
}

fn stream(tag: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut bytes = [&tag[..], &[0; 4], &(data.len() as u64).to_le_bytes(), &[0; 4]].concat();
    bytes.extend(xor(&bytes));
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A descriptor block with the given fields and streams. It is padded to a multiple of 512 bytes.
fn block(fields: &[u8], streams: &[u8]) -> Vec<u8> {
    let mut block = fields.to_vec();
    block.resize(fields.len().next_multiple_of(4), 0);
    let first = (block.len() as u16).to_le_bytes();
    block[8..10].copy_from_slice(&first);
    let sum = xor(&block[..50]);
    block[50..52].copy_from_slice(&sum);
    block.extend(streams);
    let padding = (block.len() + 22).next_multiple_of(512) - block.len() - 22;
    block.extend(stream(b"SPAD", &vec![0; padding]));
    block
}

/// A configuration object for a database file. The file has 64 KB and no names.
fn file_object(file_id: u16, pages_copied: u32) -> Vec<u8> {
    let mut object = vec![0; 48];
    object[..4].copy_from_slice(b"SFIN");
    object[4] = 48;
    object[0x14..0x16].copy_from_slice(&file_id.to_le_bytes());
    object[0x18..0x1C].copy_from_slice(&pages_copied.to_le_bytes());
    object[0x1C] = 1;
    object[0x28..0x30].copy_from_slice(&65536u64.to_le_bytes());
    object
}

/// An uncompressed backup of a small database. The tests write changed copies of it.
struct Plain {
    folder: TempDir,
    bytes: Vec<u8>,
}

impl Plain {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut description = orders::orders(Version::V904, 5, 0);
        description.tables.truncate(1);
        let files = lab::write(&description, folder.path()).unwrap().files;
        let set = Set { files: &files, step: 1, options: BackupOptions::default() };
        let bytes = fs::read(&backup(&[set], folder.path(), "plain").unwrap().files[0]).unwrap();
        Self { folder, bytes }
    }

    /// The offset of the first block with this type tag, at or after `from`.
    fn find(&self, tag: &[u8; 4], from: usize) -> usize {
        (from..self.bytes.len()).step_by(512).find(|&at| self.bytes[at..].starts_with(tag)).unwrap()
    }

    /// Writes a changed copy of the backup. Adds `objects` to the first configuration block, and adds `blocks` after
    /// the pages.
    fn with(&self, objects: &[u8], blocks: &[u8]) -> PathBuf {
        let (start, pages) = (self.find(b"MSCI", 0), self.find(b"MSDA", 0));
        let behind = self.find(b"MSTL", pages);
        let configuration = &self.bytes[start..pages];
        let first = usize::from(u16::from_le_bytes([configuration[8], configuration[9]]));
        let at = configuration.windows(4).position(|tag| tag == b"MQCI").unwrap();
        let length = u64::from_le_bytes(configuration[at + 8..at + 16].try_into().unwrap()) as usize;
        let data = [&configuration[at + 22..at + 22 + length], objects].concat();
        let changed = block(&configuration[..first], &stream(b"MQCI", &data));
        let parts = [&self.bytes[..start], &changed, &self.bytes[pages..behind], blocks, &self.bytes[behind..]];
        self.write(&parts.concat())
    }

    fn write(&self, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(format!("changed{}.bak", fs::read_dir(&self.folder).unwrap().count()));
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// A block that contains `regions` regions of pages. Each region consists of two zero bytes and `data`.
fn pages(regions: usize, data: &[u8]) -> Vec<u8> {
    let mut fields = [0; 60];
    fields[..4].copy_from_slice(b"MSDA");
    block(&fields, &stream(b"MQDA", &[&[0, 0], data].concat()).repeat(regions))
}

#[test]
#[ignore = "full tier: takes seconds"]
fn thousands_of_files_and_regions_are_refused_as_no_server_writes_so_many() {
    let plain = Plain::new();
    let files: Vec<u8> = (0..3000).flat_map(|number| file_object(1 + number % 97, 0)).collect();
    every_command_says(&plain.with(&files, &pages(50, &[0]).repeat(400)), "regions of pages in one set");
    let files: Vec<u8> = (0..40_000u32).flat_map(|number| file_object(number as u16, 8)).collect();
    every_command_says(&plain.with(&files, &[]), "more than 32767 files");
    // With thousands of files in the backup, the check must either report findings or refuse its grant. It must never
    // hang.
    let files: Vec<u8> = (3..3003).flat_map(|file_id| file_object(file_id, 8)).collect();
    let changed = plain.with(&files, &pages(50, &[1; 3 * PAGE_BYTES]).repeat(20));
    let (status, said) = check(&changed);
    assert!(status & 1 == 1 || said.contains("needs"), "{status}: {said}");
    assert_eq!(run(&["info"], &changed).0.status.code(), Some(4), "its two configurations differ");
}

#[test]
#[ignore = "full tier: takes seconds"]
fn files_that_repeat_and_regions_of_a_few_bytes_leave_a_sound_backup_readable() {
    let plain = Plain::new();
    let sound = BackupPages::open(&[plain.write(&plain.bytes)], &[]).unwrap();
    let expected: Vec<u32> = sound.files().iter().map(|file| file.pages).collect();
    let files: Vec<u8> = (0..500).flat_map(|number| file_object(1 + number % 2, 8)).collect();
    let changed = plain.with(&files, &pages(10, &[0]).repeat(100));
    let pages = BackupPages::open(std::slice::from_ref(&changed), &[]).unwrap();
    assert_eq!(pages.files().iter().map(|file| file.pages).collect::<Vec<_>>(), expected);
    for page in 0..expected[0] {
        let id = PageId::new(1, page);
        assert!(pages.read_page(id) == sound.read_page(id), "{id}");
    }
    let (status, said) = check(&changed);
    assert_eq!(status & 1, 1, "what the configurations say differs: {said}");
}

/// Each damaged sector is a block header with a wrong checksum. The program counts each of them as a separate damaged
/// place.
#[test]
#[ignore = "full tier: takes seconds"]
fn damage_in_every_sector_is_refused_when_its_places_do_not_fit() {
    let plain = Plain::new();
    let mut fields = [0; 60];
    fields[..4].copy_from_slice(b"VOLB");
    let mut wrong = block(&fields, &[]);
    wrong[20] ^= 1;
    let mut changed = plain.bytes.clone();
    let behind = plain.find(b"MSTL", 0);
    changed.splice(behind..behind, wrong.repeat(20_000));
    let (status, _) = check(&plain.write(&changed));
    assert_eq!(status & 1, 1);
    let path = plain.write(&changed);
    let (output, said) = run(&["check", "--memory", "12MB", "--maxdop", "1"], &path);
    assert_eq!(output.status.code(), Some(8));
    assert!(said.contains("its damaged places need more memory than") && said.contains("--memory"), "{said}");
}

/// The backup is a compressed container with a million records of nine bytes each. No server writes records of this
/// size.
#[test]
fn a_million_small_records_take_memory_for_what_they_hold() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.bak");
    let record = [0x81, 1, 1, 0, b'x', 0, 0, 0, b'x'];
    fs::write(&file, [&b"MSSQLBAK\x01\0\0\0\x01\0\0\0"[..], &record.repeat(1_000_000)].concat()).unwrap();
    every_command_says(&file, "compressed backup in an unknown form");
}

/// The container has sound records with damage between them, but no backup set. Every command must report that no
/// backup set was found.
#[test]
fn a_container_without_a_set_is_never_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nothing.bak");
    let mut record = vec![0x81, 1, 0, 2];
    record.extend([0; 4 + 512]);
    let damage = b"\x81\x01\xFF\xFF".repeat(1 << 18);
    let parts = [&b"MSSQLBAK\x01\0\0\0\x01\0\0\0"[..], &record.repeat(3), &damage, &record.repeat(3)];
    fs::write(&file, parts.concat()).unwrap();
    let (output, said) = run(&["chain"], &file);
    assert!(output.status.code() == Some(4) && said.contains("no backup set in this file can be read"), "{said}");
    assert_eq!(run(&["info"], &file).0.status.code(), Some(4));
    assert_eq!(check(&file).0, 4);
}

/// The bytes between sound records look like the starts of many long records.
#[test]
fn damage_that_looks_like_records_costs_no_more_than_other_damage() {
    let sample = Compressed::new(8 << 20);
    let lying = b"\x21\x01\xFF\xFF".repeat(1 << 18);
    sample.all_but_the_damaged_records_are_read(&lying);
}

/// A compressed backup of a database.
struct Compressed {
    folder: TempDir,
    files: Vec<PathBuf>,
    bytes: Vec<u8>,
    /// The offsets of the compressed records.
    records: Vec<usize>,
}

impl Compressed {
    fn new(size: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = lab::write(&orders::orders(Version::V904, 5, size), folder.path()).unwrap().files;
        let options = BackupOptions { container: Some(Container::Version2), ..BackupOptions::default() };
        let set = Set { files: &files, step: 1, options };
        let bytes = fs::read(&backup(&[set], folder.path(), "packed").unwrap().files[0]).unwrap();
        let (mut records, mut at) = (Vec::new(), 0x1E0);
        while bytes[at] == 0x21 {
            records.push(at);
            at += 28 + usize::from(u16::from_le_bytes([bytes[at + 2], bytes[at + 3]]));
        }
        // The first part of the container ends with a filemark. The pages are stored after the filemark, in one record
        // per 64 KB.
        let at = at.next_multiple_of(512);
        let mut at = (at..).step_by(512).find(|&at| bytes[at] == 0x21).unwrap();
        while bytes[at] == 0x21 {
            records.push(at);
            at += 28 + usize::from(u16::from_le_bytes([bytes[at + 2], bytes[at + 3]]));
        }
        Self { folder, files, bytes, records }
    }

    /// Replaces four records in the middle of the backup by `damage`. Requires that all pages outside these records are
    /// read.
    fn all_but_the_damaged_records_are_read(&self, damage: &[u8]) {
        let middle = self.records.len() / 2;
        let (first, behind) = (self.records[middle], self.records[middle + 4]);
        // Adds padding, so that the records after the damage keep their offsets within blocks.
        let shift = (behind - first) % 4096 + 4096 - damage.len() % 4096;
        let bytes = [&self.bytes[..first], damage, &vec![0x5A; shift], &self.bytes[behind..]].concat();
        let file = self.folder.path().join("damaged.bak");
        fs::write(&file, bytes).unwrap();
        let sound = DataFiles::open(&self.files).unwrap();
        let pages = BackupPages::open(std::slice::from_ref(&file), &[]).unwrap();
        let copied = BackupPages::open(&[self.folder.path().join("packed.bak")], &[]).unwrap();
        let mut lost = 0;
        for page in 0..sound.files()[0].pages {
            let id = PageId::new(1, page);
            match (pages.read_page(id), copied.read_page(id)) {
                (found, expected) if found == expected => {}
                (None, _) => lost += 1,
                (Some(_), _) => panic!("{id} is another page"),
            }
        }
        // The lost pages are the pages in the four records, and all other pages of extents that are partly in these
        // records.
        assert!((24..=40).contains(&lost), "{lost} of {} pages are lost", sound.files()[0].pages);
        let (status, said) = check(&file);
        assert_eq!(status & 1, 1, "{said}");
        let (output, _) = run(&["check", "--maxdop", "1"], &file);
        let text = String::from_utf8(output.stdout).unwrap();
        let about = |word: &str| text.lines().filter(|line| line.contains(word)).collect::<Vec<_>>();
        let lost = about("No record of the compressed backup starts at byte");
        assert!(lost.len() == 1 && lost[0].ends_with(&format!(" {first}.")), "{first}: {lost:#?}");
        for wrong in ["was terminated while it was being created", "before the end of the backup", "belong to no block"]
        {
            assert_eq!(about(wrong), [""; 0]);
        }
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn all_that_follows_long_damage_of_a_compressed_backup_is_found() {
    let sample = Compressed::new(8 << 20);
    assert!(sample.records.len() > 40);
    let mut state = 88172645463325252u64;
    let mut noise = |megabytes: usize| {
        let mut word = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        (0..megabytes << 17).flat_map(|_| word()).collect::<Vec<u8>>()
    };
    for megabytes in [1, 3, 20] {
        sample.all_but_the_damaged_records_are_read(&noise(megabytes));
    }
    sample.all_but_the_damaged_records_are_read(&vec![0; 2 << 20]);
}
