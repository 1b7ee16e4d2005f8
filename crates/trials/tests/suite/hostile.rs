//! No input may do harm. The entry points of the fuzz targets get inputs that once broke them, and random bytes that
//! depend on a seed. The entry points must return without a panic.
//!
//! `MDFSCK_FUZZ_SECONDS` is the time for each entry point in seconds; the default is 0.1, or 2 in the full tier.
//! `MDFSCK_FUZZ_SEED` is the first seed.

#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use source::MemoryFiles;
use trials::hostile::inputs::{input, long_results, seeds};
use trials::hostile::{self, TARGETS};
use trials::mutate::Random;

/// A small database for the entry points that change a database. It is used if the corpus is available.
const BASE: &str = "../../target/corpus/dotnetdev-kr__nerddinner/@0998efcb/NerdDinner/App_Data/NerdDinner.mdf";
/// A small backup for the entry point that changes a backup.
const BACKUP: &str = "dataplat__appveyor-lab/detachattach/detachattach.bak";
/// A small compressed backup.
const COMPRESSED: &str = "Apress__pro-sql-server-2012-bi-solutions/_BookFiles/Chapter05Files/Chapter05_Complete/\
     PublicationsIndustries/DWPubsSales/DWPubsSales_BeforeETL.bak";
/// The maximum time for one input.
const LIMIT: Duration = Duration::from_secs(20);

fn number<N: FromStr>(name: &str, default: N) -> N {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The inputs that once broke an entry point.
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

/// The bytes of a file in the corpus; empty if the corpus is missing.
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
    let first: u64 = number("MDFSCK_FUZZ_SEED", 1);
    let end = Instant::now() + Duration::from_secs_f64(number("MDFSCK_FUZZ_SECONDS", 0.1));
    let mut executions = 0u64;
    while executions == 0 || Instant::now() < end {
        let seed = first.wrapping_add(executions);
        let mut random = Random::new(seed);
        let bytes = input(target, &mut random, &seeds, backup.len());
        guarded(&format!("seed {seed}"), &bytes);
        executions += 1;
    }
    println!("{target}: {executions} executions");
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

#[test]
fn any_part_is_merged_or_refused() {
    run("part");
}

#[test]
fn any_request_is_read_or_refused() {
    run("request");
}

#[test]
fn any_results_of_checkdb_are_compared_or_refused() {
    run("dbcc");
}

/// The work for results grows with their size, and not with its square.
#[test]
#[ignore = "full tier: takes seconds"]
fn long_results_of_checkdb_are_compared_in_time() {
    for (position, results) in long_results(110_000).into_iter().enumerate() {
        let start = Instant::now();
        hostile::dbcc(results.as_bytes());
        assert!(start.elapsed() < LIMIT, "{position}: {:?}", start.elapsed());
    }
}

#[test]
fn any_log_file_is_read_or_refused() {
    run("log_file");
}

#[test]
fn any_log_recovers_a_database_or_is_refused() {
    run("recovery");
}

#[test]
fn any_event_file_is_read_or_refused() {
    run("xel");
}

/// After an unreadable record, the reader must search for the next block only once. An earlier version of the reader
/// restarted this search at each sector, and took seconds for 300 kB.
#[test]
fn damaged_records_of_a_container_are_passed_over_once() {
    let base = corpus(COMPRESSED);
    if base.is_empty() {
        return;
    }
    for (name, bytes) in regressions("backup-compressed") {
        // A single run may be slow because the machine is busy, so at least one of ten runs must be fast.
        let is_soon = |_| {
            let start = Instant::now();
            hostile::backup(&base, &bytes);
            start.elapsed() < Duration::from_millis(700)
        };
        assert!((0..10).any(is_soon), "{name}");
    }
}

/// The fuzz targets of libFuzzer must be exactly the entry points that this test runs.
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
