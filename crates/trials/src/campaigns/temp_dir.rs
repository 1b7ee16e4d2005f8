//! Failing temporary files. The folder for spilled data is on a full disk, missing or read-only, or the program cannot
//! read its spilled data back.

use std::path::Path;
use std::time::Duration;

use format::page::PAGE_BYTES;
use format::{Page, PageType};
use lab::Version;
use trials::mutate::{Random, seal};

use super::case::Case;
use super::grant;
use super::resources::least_grant;
use crate::outcome::{Outcome, Verdict};
use crate::process::Program;
use crate::subject::folder;

/// What fails when the program uses temporary files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    Gone,
    ReadOnly,
    AFile,
    Full,
    FullFromSomeTime,
    Vanishes,
    ReadsFail,
    ReadsShort,
    ReadsInterrupted,
}

pub(super) const FAULTS: [(Fault, &str); 9] = [
    (Fault::Gone, "temp-dir that is gone"),
    (Fault::ReadOnly, "temp-dir that is read-only"),
    (Fault::AFile, "temp-dir that is a file"),
    (Fault::Full, "temp-dir that is full"),
    (Fault::FullFromSomeTime, "temp-dir that fills up"),
    (Fault::Vanishes, "temp-dir that vanishes"),
    (Fault::ReadsFail, "temporary files that cannot be read again"),
    (Fault::ReadsShort, "temporary files with short reads"),
    (Fault::ReadsInterrupted, "temporary files with interrupted reads"),
];

/// Sizes of databases, in bytes. They are so large that damage to every row gives more findings than fit into the
/// minimum grant.
const BYTES: [u64; 2] = [12 << 20, 24 << 20];
/// A system folder in which no user can create a file, not even root.
const READ_ONLY: &str = "/proc/self/fdinfo";

pub(super) fn trial(program: &Program, seed: u64, random: &mut Random) -> Outcome {
    let (fault, name) = FAULTS[random.below(FAULTS.len())];
    let version = *random.pick(&Version::ALL).unwrap_or(&Version::V957);
    let bytes = *random.pick(&BYTES).unwrap_or(&BYTES[0]);
    let made = folder();
    let description = lab::orders::orders(version, random.number(), bytes);
    let written = lab::write(&description, made.path()).unwrap_or_else(|error| panic!("{error}"));
    let at = 8 + random.below(6);
    let rows: u32 = written.files.iter().map(|path| damage_rows(path, at)).sum();
    let what = format!("orders {version:?} of {} MB, byte {at} of {rows} rows", bytes >> 20);
    let paths: Vec<String> = written.files.iter().map(|path| path.display().to_string()).collect();
    let case = Case { program, folder: made.path().to_owned(), paths, is_sound: false };
    Outcome::new(name, what, run(&case, fault, seed, random))
}

fn run(case: &Case<'_>, fault: Fault, seed: u64, random: &mut Random) -> Verdict {
    let Some(least) = least_grant(case.program, &case.arguments(&[])) else {
        return Verdict::Broke("no least grant is named".to_owned());
    };
    let temp = case.folder.join("temporary");
    std::fs::create_dir(&temp).unwrap_or_else(|error| panic!("{}: {error}", temp.display()));
    let file = case.folder.join("file");
    std::fs::write(&file, "").unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let gone = case.folder.join("gone");
    let directory: &Path = match fault {
        Fault::Gone => &gone,
        Fault::ReadOnly => Path::new(READ_ONLY),
        Fault::AFile => &file,
        _ => &temp,
    };
    let with = |directory: &Path| {
        let more = ["--memory", &least, "--temp-dir", directory.to_str().unwrap_or_default()];
        case.arguments(&more).iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()
    };
    let arguments = with(&temp);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let counted = case.folder.join("counted");
    let mut run = case.program.run(&[&arguments[..], &["--format", "json"]].concat());
    run.faults = "c";
    run.environment = vec![("TRIALS_PATH", "/temporary/".to_owned()), ("TRIALS_COUNT", counted.display().to_string())];
    let measured = run.end();
    if grant::number(&measured.stdout, "spilled_bytes").is_none_or(|bytes| bytes <= 0.0) {
        return Verdict::Broke(format!("nothing was spilled, so that nothing is tried: {}", measured.story()));
    }
    let calls = |line| {
        let counts = std::fs::read_to_string(&counted).unwrap_or_default();
        counts.lines().nth(line).and_then(|count| count.parse::<usize>().ok()).unwrap_or(1).max(1)
    };
    let clean = case.program.run(&arguments).end();
    let arguments = with(directory);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut run = case.program.run(&arguments);
    let (faults, first) = match fault {
        Fault::Full => ("w", 0),
        Fault::FullFromSomeTime => ("w", random.below(calls(1))),
        Fault::ReadsFail => ("e", random.below(calls(0))),
        Fault::ReadsShort => ("s", 0),
        Fault::ReadsInterrupted => ("i", 0),
        _ => ("", 0),
    };
    run.faults = faults;
    run.environment = vec![
        ("TRIALS_SEED", seed.to_string()),
        ("TRIALS_EVERY", if faults == "s" || faults == "i" { "2" } else { "1" }.to_owned()),
        ("TRIALS_FROM", first.to_string()),
        ("TRIALS_PATH", "/temporary/".to_owned()),
        ("TRIALS_WRITES", "/temporary/".to_owned()),
    ];
    let done = match fault {
        Fault::Vanishes => std::thread::scope(|scope| {
            let time = Duration::from_secs_f64(clean.time.as_secs_f64() * random.below(1000) as f64 / 1000.0);
            let temp = &temp;
            scope.spawn(move || {
                std::thread::sleep(time);
                let _ = std::fs::remove_dir_all(temp);
            });
            run.end()
        }),
        _ => run.end(),
    };
    match fault {
        Fault::ReadsShort | Fault::ReadsInterrupted => case.same_as(&clean, &done),
        // Writes succeed, so findings can be lost only when they are read back.
        Fault::ReadsFail => case.same_or_told(&clean, &done),
        _ => case.same_findings_or_refused(&clean, &done),
    }
}

/// Changes one byte in every row of the user tables. Returns the number of rows.
fn damage_rows(path: &Path, at: usize) -> u32 {
    let mut bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut changed = 0;
    for page in bytes.as_chunks_mut::<PAGE_BYTES>().0 {
        let header = Page::new(page).header();
        if header.kind() != Some(PageType::Data) || header.alloc_unit().0 >> 48 <= 1 {
            continue;
        }
        let rows: Vec<usize> = (0..header.slot_count.get())
            .filter_map(|slot| Page::new(page).slot_offset(slot))
            .map(|row| usize::from(row) + at)
            .collect();
        for place in rows {
            if let Some(byte) = page.get_mut(place) {
                *byte ^= 0x11;
                changed += 1;
            }
        }
        seal(page);
    }
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    changed
}
