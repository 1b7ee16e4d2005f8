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

/// Bytes that look a little like what the target expects.
fn input(target: &str, random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = match random.pick(seeds) {
        Some(seed) if random.below(4) > 0 => seed.clone(),
        _ => (0..random.below(400)).map(|_| random.number() as u8).collect(),
    };
    if target == "expression" {
        const WORDS: &[&str] = &[
            "(",
            ")",
            "+",
            "-",
            "*",
            "/",
            "%",
            "[a]",
            "[bb]",
            "[ccc]",
            "'x'",
            "N'y'",
            "1",
            "0x1F",
            "1.5",
            " AND ",
            " OR ",
            "NOT ",
            "=",
            "<>",
            ",",
            "CONVERT([int],",
            "case when ",
            " then ",
            " else ",
            " end",
            " is null",
            "isnull(",
            "like ",
            "in (",
            "datediff(day,",
            "substring(",
            "~",
            "'",
            "[",
            "\u{1F600}",
            " between ",
            "NULL",
        ];
        return (0..random.below(30)).filter_map(|_| random.pick(WORDS)).flat_map(|word| word.bytes()).collect();
    }
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

/// Pages of a sound database, and their records, as a start for the targets that read such.
fn seeds(target: &str, base: Option<&MemoryFiles>) -> Vec<Vec<u8>> {
    use source::PageSource;
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

fn run(target: &'static str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(BASE);
    let base = std::fs::read(&path).ok().map(|bytes| MemoryFiles::open(vec![(path, bytes)]).expect("a sound database"));
    let (_, entry) = TARGETS.iter().find(|(name, _)| *name == target).expect("a target");
    let feed = |bytes: &[u8]| match (target, &base) {
        ("bootstrap", Some(base)) => hostile::bootstrap(Some(base), bytes),
        ("database", Some(base)) => hostile::database(Some(base), bytes),
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
