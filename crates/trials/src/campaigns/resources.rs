//! Runs the program as a process while a resource fails: reads, temporary files, memory, threads, open files, the
//! output, or the process itself. In other trials the data file changes while the program reads it.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use format::page::PAGE_BYTES;
use format::protection::undo_torn_bits;
use lab::backup::{BackupOptions, Set, backup};
use trials::mutate::{PageRole, Pages, Random, seal};

use super::case::{BEFORE, BLIND, Case, agrees};
use super::{Bench, fields, sealed};
use crate::outcome::{Outcome, Verdict};
use crate::process::{Done, Program};
use crate::subject::{Subject, folder, store};

/// The resource that fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    ReadsFail,
    ReadsFailOnce,
    ReadFails,
    ReadsFailFrom,
    ReadsShort,
    ReadsInterrupted,
    Pipe,
    TempDir,
    OutputFull,
    Threads,
    OpenFiles,
    FileSize,
    Memory,
    AddressSpace,
    Killed,
    ConcurrentWriter,
    StdoutClosed,
    StdoutFull,
    Grant,
}

const KINDS: [(Kind, &str); 21] = [
    (Kind::ReadsFail, "reads that fail"),
    (Kind::ReadsFailOnce, "reads that fail once"),
    (Kind::ReadFails, "one read that fails"),
    (Kind::ReadsFailFrom, "reads that fail from some moment on"),
    (Kind::ReadsShort, "short reads"),
    (Kind::ReadsInterrupted, "interrupted reads"),
    (Kind::Pipe, "a pipe with faulty reads"),
    (Kind::TempDir, "temporary files"),
    (Kind::TempDir, "temporary files"),
    (Kind::TempDir, "temporary files"),
    (Kind::OutputFull, "output on a full disk"),
    (Kind::Threads, "threads that cannot be started"),
    (Kind::OpenFiles, "a limit on open files"),
    (Kind::FileSize, "a limit on file size"),
    (Kind::Memory, "a limit on memory"),
    (Kind::AddressSpace, "a limit on address space"),
    (Kind::Killed, "killed"),
    (Kind::ConcurrentWriter, "a writer beside it"),
    (Kind::StdoutClosed, "stdout without a reader"),
    (Kind::StdoutFull, "full stdout"),
    (Kind::Grant, "a grant"),
];

/// The memory in bytes that a process needs for its code and stacks, in addition to its grant.
const PROCESS_BYTES: u64 = 24 << 20;

pub(crate) fn trial(bench: &Bench, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let (kind, name) = KINDS[random.below(KINDS.len())];
    let program = bench.program();
    if kind == Kind::Grant {
        return super::grant::trial(program, &mut random, name);
    }
    if kind == Kind::TempDir {
        return super::temp_dir::trial(program, seed, &mut random);
    }
    let subject = bench.subjects.of(seed);
    let made = folder();
    let is_sound = random.below(2) == 0;
    let mut what = subject.name.clone();
    let contents = match random.below(2) {
        _ if is_sound => subject.contents.clone(),
        0 => damaged(&subject, fields::mutant(&subject, &mut random), &mut what),
        _ => damaged(&subject, sealed::mutant(&subject, &mut random), &mut what),
    };
    bench.keep(|| contents.clone());
    let paths = store(&contents, made.path()).unwrap_or_else(|error| panic!("{error}"));
    let paths = paths.iter().map(|path| path.display().to_string()).collect();
    let case = Case { program, folder: made.path().to_owned(), paths, is_sound };
    let verdict = run(&case, &subject, kind, seed, &mut random, &mut what);
    Outcome::new(name, what, verdict)
}

fn damaged(subject: &Subject, mutant: crate::mutant::Mutant, what: &mut String) -> Vec<crate::subject::Content> {
    what.push_str(&format!(" {}: {}", mutant.kind, mutant.what));
    mutant.contents(subject)
}

fn run(case: &Case<'_>, subject: &Subject, kind: Kind, seed: u64, random: &mut Random, what: &mut String) -> Verdict {
    let every = *random.pick(&[2, 5, 20, 100]).unwrap_or(&5);
    let output = case.folder.join("answer.txt");
    let with_output = case.arguments(&["--output", output.to_str().unwrap_or_default()]);
    let prepare = || std::fs::write(&output, BEFORE).unwrap_or_else(|error| panic!("{error}"));
    let faulty = |faults: &'static str, arguments: &[&str]| {
        let mut run = case.program.run(arguments);
        run.faults = faults;
        run.environment = vec![
            ("TRIALS_SEED", seed.to_string()),
            ("TRIALS_EVERY", every.to_string()),
            ("TRIALS_PATH", "df".to_owned()),
        ];
        run.end()
    };
    what.push_str(&format!(", every {every}"));
    match kind {
        Kind::ReadsFail => case.same_or_blind(&faulty("e", &case.arguments(&[]))),
        Kind::ReadsFailOnce => case.same_or_blind(&faulty("p", &case.arguments(&[]))),
        Kind::ReadsShort => case.same(&faulty("s", &case.arguments(&[]))),
        Kind::ReadsInterrupted => case.same(&faulty("i", &case.arguments(&[]))),
        Kind::ReadFails => case.same_or_blind(&at_some_moment(case, "TRIALS_AT", random)),
        Kind::ReadsFailFrom => case.same_or_blind(&at_some_moment(case, "TRIALS_FROM", random)),
        Kind::Pipe => piped(case, seed, random, what),
        Kind::OutputFull => {
            prepare();
            let done = faulty("w", &with_output);
            old_or_whole(case, &done, &output)
        }
        Kind::Threads => case.same(&faulty("t", &case.arguments(&["--maxdop", "8"]))),
        Kind::OpenFiles => {
            let mut run = case.program.run(&case.arguments(&[]));
            // The limit is at least four open files, because the dynamic loader needs one besides stdin, stdout and
            // stderr.
            run.limits = format!("ulimit -n {}; ", 4 + random.below(9));
            case.same_or_refused(&run.end())
        }
        Kind::FileSize => {
            prepare();
            let mut run = case.program.run(&with_output);
            // The unit of `ulimit -f` is 512 bytes. Some answers are shorter than the limit.
            run.limits = format!("ulimit -f {}; ", random.below(12));
            let done = run.end();
            old_or_whole(case, &done, &output)
        }
        Kind::Memory => memory(case),
        Kind::AddressSpace => {
            prepare();
            let mut run = case.program.run(&with_output);
            let kilobytes = (4 + random.below(200)) << 10;
            what.push_str(&format!(", {kilobytes} KB"));
            run.limits = format!("ulimit -v {kilobytes}; ");
            let done = run.end();
            // If the dynamic loader ran out of memory, the program never started. If the address space is smaller than
            // the help of --memory requires, a failed allocation may end the program with a message.
            let is_started = done.code != Some(127) && done.signal != Some(11);
            let is_refused = done.stderr.contains("memory allocation of") && done.stdout.is_empty();
            match case.whole(&output) {
                Err(text) => Verdict::Broke(format!("{text}; {}", done.story())),
                Ok(()) if is_started && !is_refused && !done.is_orderly() => Verdict::Broke(done.story()),
                Ok(()) => agrees(&done, &output),
            }
        }
        Kind::Killed => {
            prepare();
            killed(case, &with_output, &output, random)
        }
        Kind::ConcurrentWriter => beside_a_writer(case, subject, random),
        Kind::StdoutClosed | Kind::StdoutFull => {
            let mut run = case.program.run(&case.arguments(&[]));
            run.is_unheard = kind == Kind::StdoutClosed;
            run.redirections = if kind == Kind::StdoutFull { ">/dev/full" } else { "" };
            let done = run.end();
            if done.is_orderly() && done.code.is_some_and(|code| code & BLIND != 0) {
                Verdict::Kept
            } else {
                Verdict::Broke(format!("results that were not read: {}", done.story()))
            }
        }
        Kind::Grant | Kind::TempDir => Verdict::Kept,
    }
}

/// The verdict on a run whose output may fail: the file has its old content or the whole answer, and the exit status
/// agrees with it.
fn old_or_whole(case: &Case<'_>, done: &Done, output: &Path) -> Verdict {
    match case.whole(output) {
        Err(text) => Verdict::Broke(format!("{text}; {}", done.story())),
        Ok(()) if !done.is_orderly() => Verdict::Broke(done.story()),
        Ok(()) => agrees(done, output),
    }
}

/// Runs the program with a failing read of the data files, chosen at random. `which` says whether only this read fails,
/// or also all later reads.
fn at_some_moment(case: &Case<'_>, which: &'static str, random: &mut Random) -> Done {
    let counted = case.folder.join("counted");
    let arguments = case.arguments(&[]);
    let mut run = case.program.run(&arguments);
    run.faults = "c";
    run.environment = vec![("TRIALS_PATH", "df".to_owned()), ("TRIALS_COUNT", counted.display().to_string())];
    let _ = run.end();
    let counts = std::fs::read_to_string(&counted).unwrap_or_default();
    let reads = counts.lines().next().and_then(|count| count.parse::<usize>().ok()).unwrap_or(1);
    let mut run = case.program.run(&arguments);
    run.faults = "e";
    run.environment = vec![
        ("TRIALS_PATH", "df".to_owned()),
        ("TRIALS_EVERY", "1".to_owned()),
        (which, random.below(reads.max(1)).to_string()),
    ];
    run.end()
}

/// The program reads a backup from a pipe. Reads of the pipe fail, return fewer bytes, or are interrupted.
fn piped(case: &Case<'_>, seed: u64, random: &mut Random, what: &mut String) -> Verdict {
    let files: Vec<PathBuf> = case.paths.iter().map(PathBuf::from).collect();
    let set = Set { files: &files, step: 1, options: BackupOptions::default() };
    let Ok(done) = backup(&[set], &case.folder, "full") else { return Verdict::Kept };
    let Some(path) = done.files.first().map(|path| path.display().to_string()) else { return Verdict::Kept };
    let clean = case.program.run(&["check", &path]).end();
    let fault = *random.pick(&["e", "s", "i"]).unwrap_or(&"s");
    what.push_str(&format!(", fault {fault}"));
    let mut run = case.program.run(&["check", "-"]);
    run.limits = format!("cat '{path}' | ");
    run.faults = fault;
    run.environment =
        vec![("TRIALS_SEED", seed.to_string()), ("TRIALS_EVERY", "5".to_owned()), ("TRIALS_PATH", "pipe:".to_owned())];
    let done = run.end();
    match fault {
        "e" => case.same_or_told(&clean, &done),
        _ => case.same_as(&clean, &done),
    }
}

/// The minimum grant, taken from the message with which the program refuses a smaller grant.
pub(super) fn least_grant(program: &Program, arguments: &[&str]) -> Option<String> {
    let refused = program.run(&[arguments, &["--memory", "1KB"]].concat()).end();
    let (_, number) = refused.stderr.split_once("needs at least ")?;
    Some(number.split_whitespace().take(2).collect())
}

/// The program must complete the check if its memory is limited to the grant plus [`PROCESS_BYTES`].
fn memory(case: &Case<'_>) -> Verdict {
    let Some(least) = least_grant(case.program, &case.arguments(&[])) else {
        return Verdict::Broke("no least grant is named".to_owned());
    };
    let done = case.program.run(&case.arguments(&["--memory", &least, "--format", "json"])).end();
    let Some(granted) = super::grant::number(&done.stdout, "memory_granted") else {
        return Verdict::Broke(done.story());
    };
    let mut run = case.program.run(&case.arguments(&["--memory", &least]));
    run.limits = format!("ulimit -d {}; ", (granted as u64 + PROCESS_BYTES) >> 10);
    case.same(&run.end())
}

/// Kills the program at a random moment. The output file must then contain its previous content or a complete answer.
fn killed(case: &Case<'_>, arguments: &[&str], output: &Path, random: &mut Random) -> Verdict {
    let run = case.program.run(arguments);
    let (out, err) = (case.folder.join("out"), case.folder.join("err"));
    let time = case.undisturbed().time;
    let mut child = run.start(Some(&out), &err).unwrap_or_else(|error| panic!("{error}"));
    std::thread::sleep(Duration::from_secs_f64(time.as_secs_f64() * 1.1 * random.below(1000) as f64 / 1000.0));
    let _ = child.kill();
    let _ = child.wait();
    match case.whole(output) {
        Ok(()) => Verdict::Kept,
        Err(text) => Verdict::Broke(format!("killed: {text}")),
    }
}

/// Writes pages and truncates the file while the program reads it. The program must end with a documented status.
fn beside_a_writer(case: &Case<'_>, subject: &Subject, random: &mut Random) -> Verdict {
    let Some(path) = case.paths.first() else { return Verdict::Kept };
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let pages = Pages::new(&subject.files, &subject.database);
    let writable: Vec<_> = subject
        .roles
        .iter()
        .filter(|(role, _)| **role != PageRole::FileHeader)
        .flat_map(|(_, pages)| pages)
        .filter(|page| page.file == 1)
        .copied()
        .collect();
    let run = case.program.run(&case.arguments(&[]));
    let (out, err) = (case.folder.join("out"), case.folder.join("err"));
    let mut child = run.start(Some(&out), &err).unwrap_or_else(|error| panic!("{error}"));
    let start = std::time::Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if start.elapsed() > Duration::from_secs(60) => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            _ => {}
        }
        if random.below(500) == 0 {
            // Truncates the file, then extends it to its old length.
            let _ = file.set_len(random.below(length as usize) as u64).and_then(|()| file.set_len(length));
        }
        let Some(&page) = random.pick(&writable) else { continue };
        let Some(mut bytes) = pages.read(page) else { continue };
        let at = random.below(PAGE_BYTES);
        bytes[at] ^= 1 << random.below(8);
        undo_torn_bits(&mut bytes);
        seal(&mut bytes);
        // In half of the cases, writes the sound page back.
        let bytes = if random.below(2) == 0 { bytes } else { pages.raw(page).unwrap_or(bytes) };
        let _ = file.write_at(&*bytes, u64::from(page.page) * PAGE_BYTES as u64);
    };
    match status {
        None => Verdict::Hung(start.elapsed().as_secs_f64()),
        Some(status) if status.code().is_some_and(|code| code & !(1 | 4 | 8 | 16) == 0) => Verdict::Kept,
        Some(status) => {
            let stderr = std::fs::read_to_string(&err).unwrap_or_default();
            Verdict::Broke(format!("{status}: {}", stderr.lines().last().unwrap_or_default()))
        }
    }
}
