//! Nothing that is read can hurt: the fuzz targets' entry points, fed with what broke them once and with bytes from a
//! seed, end without panic.
//!
//! `MDFSCK_FUZZ_SECONDS` says how long each is tried (2 seconds); `MDFSCK_FUZZ_SEED` where the seeds start.

#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use lab::hostile::{self, TARGETS};
use lab::mutate::Random;
use source::MemoryFiles;

/// A small database for the targets that change one, where real files are at hand.
const BASE: &str = "../../target/corpus/dotnetdev-kr__nerddinner/@0998efcb/NerdDinner/App_Data/NerdDinner.mdf";
/// A small backup for the target that changes one.
const BACKUP: &str = "dataplat__appveyor-lab/detachattach/detachattach.bak";
/// A small compressed backup.
const COMPRESSED: &str = "Apress__pro-sql-server-2012-bi-solutions/_BookFiles/Chapter05Files/Chapter05_Complete/\
     PublicationsIndustries/DWPubsSales/DWPubsSales_BeforeETL.bak";
/// No input may take longer.
const LIMIT: Duration = Duration::from_secs(20);

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The inputs that broke a target once.
fn regressions(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions").join(target);
    let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
    let mut inputs: Vec<(String, Vec<u8>)> = entries
        .filter_map(Result::ok)
        .map(|entry| {
            (entry.path().display().to_string(), std::fs::read(entry.path()).expect("a file that can be read"))
        })
        .collect();
    inputs.sort();
    inputs
}

/// Words of expressions.
const WORDS: &str = "( ) + - * / % [a] [bb] [ccc] 'x' N'y' 1 0x1F 1.5 and or not = <> , case when then else end is null isnull( \
     like in ( datediff(day, substring( ~ ' [ \u{1F600} between NULL CONVERT([int], CONVERT([decimal](38,20), dateadd(month, \
     round( power( stuff( str( replicate( nullif( coalesce( <= ^ & | len( charindex( 9223372036854775807 1e308";

/// Bytes that look a little like what the target expects.
fn input(target: &str, random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    if target == "expression" {
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        let chosen: Vec<&str> = (0..random.below(30)).filter_map(|_| random.pick(&words)).copied().collect();
        return chosen.join(" ").into_bytes();
    }
    let mut bytes = match random.pick(seeds) {
        Some(seed) if random.below(4) > 0 => seed.clone(),
        _ => (0..random.below(400)).map(|_| random.number() as u8).collect(),
    };
    for _ in 0..1 + random.below(6) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[at] = random.number() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = [0, 0xFF, 0x80, 0x7F, 1][random.below(5)],
            3 => bytes.truncate(at),
            _ => {
                let from = random.below(bytes.len());
                let piece: Vec<u8> = bytes[from..].iter().take(16).copied().collect();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

/// Changes of a database: pages near the start are those by which all others are found.
fn changes(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..1 + random.below(8) {
        let page = match random.below(3) {
            0 => random.below(24),
            _ => random.below(1 << 16),
        } as u16;
        let offset = match random.below(4) {
            0 => random.below(96),
            1 => 8191 - random.below(64),
            _ => random.below(8192),
        } as u16;
        let length = 1 + random.below(12);
        bytes.extend(page.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        bytes.push(length as u8);
        let fill = [0, 0xFF, 0x80, 1, 2, 3][random.below(6)];
        let is_noise = random.below(2) == 0;
        bytes.extend((0..length).map(|_| if is_noise { random.number() as u8 } else { fill }));
    }
    bytes
}

/// Changes of a backup: headers lie at its start, and the log at its end.
fn changes_of_backup(random: &mut Random, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..1 + random.below(4) {
        let place = match random.below(3) {
            0 => random.below(8192.min(length)),
            1 => length - 1 - random.below(32_768.min(length)),
            _ => random.below(length),
        };
        let is_righted = random.below(2) << 31;
        bytes.extend((place as u32 | is_righted as u32).to_le_bytes());
        let value = [&[0][..], &[0xFF], &[0xFF; 4], &[1, 0], &[0x80], &[0xFF, 0x7F]][random.below(6)];
        bytes.push(value.len() as u8);
        bytes.extend(value);
    }
    bytes
}

/// A row of three int columns under page compression: anchor, a dictionary of two entries, a row with two symbols.
fn compressed_row() -> Vec<u8> {
    let anchor = [0x01, 3, 0x10, 0x03, 0x83, 0xE8];
    let info = [&[0x06, 0, 0, 13, 0, 23, 0][..], &anchor, &[2, 0, 8, 0, 10, 0, 0x01, 0xE9, 0x82, 0xC3]].concat();
    let row = [0x01, 3, 0x3C, 0x0C, 1, 0x00, 0x85, 0];
    [&[3, 0, 0, 0, info.len() as u8, 0][..], &info, &row].concat()
}

/// A block whose 512 symbols have codes of nine bits.
fn xpress_block() -> Vec<u8> {
    [&[0, 2][..], &[0x99; 256], &[0x5A; 400]].concat()
}

/// A block of one record: a row inserted into page (1:80).
fn log_block() -> Vec<u8> {
    let mut block = vec![0; 512];
    for (at, value) in [(0, 0x50), (2, 1), (4, 0xFE), (5, 1), (7, 2), (508, 48), (511, 5)] {
        block[at] = value;
    }
    for (at, value) in [(0x10, 9), (0x16, 2), (0x18, 80), (0x1C, 1)] {
        block[48 + at] = value;
    }
    block
}

/// What the targets start from: pages of a sound database and their records, or the least that is whole.
fn seeds(target: &str, base: Option<&MemoryFiles>) -> Vec<Vec<u8>> {
    use source::PageSource;
    match target {
        "compressed" => return vec![compressed_row()],
        "xpress" => return vec![xpress_block()],
        "log" => return vec![log_block()],
        _ => {}
    }
    let Some(base) = base else { return Vec::new() };
    let pages = (0..base.files()[0].pages).filter_map(|page| base.read_page(format::PageId::new(1, page)));
    match target {
        "page" => pages.map(|page| page.to_vec()).collect(),
        "record" => pages
            .flat_map(|page| {
                let spaces = format::fields::record_spaces(format::Page::new(&page));
                spaces.into_iter().take(3).map(|space| page[space.bytes].to_vec()).collect::<Vec<_>>()
            })
            .filter(|record| record.len() < 2000)
            .collect(),
        _ => Vec::new(),
    }
}

/// What is read from the corpus to be changed; nothing where it is not at hand.
fn corpus(path: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus").join(path)).unwrap_or_default()
}

fn run(target: &'static str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(BASE);
    let base = std::fs::read(&path).ok().map(|bytes| MemoryFiles::open(vec![(path, bytes)]).expect("a sound database"));
    let backup = corpus(BACKUP);
    let (_, entry) = TARGETS.iter().find(|(name, _)| *name == target).expect("a target");
    let feed = |bytes: &[u8]| match (target, &base) {
        ("bootstrap", Some(base)) => hostile::bootstrap(Some(base), bytes),
        ("database", Some(base)) => hostile::database(Some(base), bytes),
        ("backup", _) => hostile::backup(&backup, bytes),
        _ => entry(bytes),
    };
    let guarded = |name: &str, bytes: &[u8]| {
        let start = Instant::now();
        if catch_unwind(AssertUnwindSafe(|| feed(bytes))).is_err() || start.elapsed() > LIMIT {
            if let Some(folder) = std::env::var_os("MDFSCK_FUZZ_CRASHES") {
                let file = Path::new(&folder).join(format!("{target}-{}", name.rsplit('/').next().unwrap_or("input")));
                std::fs::write(file, bytes).expect("a folder that can be written");
            }
            panic!("{target}: {name} breaks it ({:?})", start.elapsed());
        }
    };
    for (name, bytes) in regressions(target) {
        guarded(&name, &bytes);
        entry(&bytes);
    }
    let seeds = seeds(target, base.as_ref());
    let (first, end) =
        (number("MDFSCK_FUZZ_SEED", 1), Instant::now() + Duration::from_secs(number("MDFSCK_FUZZ_SECONDS", 2)));
    let mut executions = 0u64;
    while Instant::now() < end {
        let seed = first.wrapping_add(executions);
        let mut random = Random::new(seed);
        let bytes = match target {
            "bootstrap" | "database" => changes(&mut random),
            "backup" if !backup.is_empty() => changes_of_backup(&mut random, backup.len()),
            _ => input(target, &mut random, &seeds),
        };
        guarded(&format!("seed {seed}"), &bytes);
        executions += 1;
    }
    println!("{target}: {executions} executions");
    assert!(executions > 0);
}

#[test]
fn any_page_is_read() {
    run("page");
}

#[test]
fn any_record_is_read() {
    run("record");
}

#[test]
fn any_compressed_row_is_expanded_or_refused() {
    run("compressed");
}

#[test]
fn any_expression_is_compiled_or_refused() {
    run("expression");
}

#[test]
fn any_catalogue_is_read() {
    run("bootstrap");
}

#[test]
fn any_database_is_checked() {
    run("database");
}

#[test]
fn any_backup_is_checked_or_refused() {
    run("backup");
}

#[test]
fn any_block_is_decompressed_or_refused() {
    run("xpress");
}

#[test]
fn any_log_block_is_read_or_refused() {
    run("log");
}

/// Behind a record that cannot be read the next block was searched from each sector anew: seconds for 300 kB.
#[test]
fn damaged_records_of_a_container_are_passed_over_once() {
    let base = corpus(COMPRESSED);
    if base.is_empty() {
        return;
    }
    for (name, bytes) in regressions("backup-compressed") {
        let start = Instant::now();
        hostile::backup(&base, &bytes);
        assert!(start.elapsed() < Duration::from_millis(700), "{name}: {:?}", start.elapsed());
    }
}

/// What libFuzzer runs is what is replayed here.
#[test]
fn every_fuzz_target_is_an_entry_point() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let files = std::fs::read_dir(folder).expect("the fuzz targets");
    let mut names: Vec<String> = files
        .map(|file| file.expect("a file").path().file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    let mut known: Vec<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.sort();
    known.sort();
    assert_eq!(names, known);
}
