//! The program as a process, when what it needs fails: reads, temporary files, memory, threads, open files, the output,
//! the process itself; and the file that changes while it is read.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use format::page::PAGE_BYTES;
use format::protection::undo_torn_bits;
use lab::mutate::{PageRole, Pages, Random, seal};

use super::{Bench, fields, sealed};
use crate::outcome::{Outcome, Verdict};
use crate::process::{Done, Program};
use crate::subject::{Subject, folder, store};

/// What fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    ReadsFail,
    ReadsFailOnce,
    ReadsShort,
    ReadsInterrupted,
    TempDirGone,
    TempDirFull,
    OutputFull,
    Threads,
    OpenFiles,
    FileSize,
    Memory,
    Killed,
    ConcurrentWriter,
    StdoutClosed,
    StdoutFull,
    Grant,
}

const KINDS: [(Kind, &str); 16] = [
    (Kind::ReadsFail, "reads that fail"),
    (Kind::ReadsFailOnce, "reads that fail once"),
    (Kind::ReadsShort, "short reads"),
    (Kind::ReadsInterrupted, "interrupted reads"),
    (Kind::TempDirGone, "temp-dir that is gone"),
    (Kind::TempDirFull, "temp-dir that is full"),
    (Kind::OutputFull, "output on a full disk"),
    (Kind::Threads, "threads that cannot be started"),
    (Kind::OpenFiles, "a limit on open files"),
    (Kind::FileSize, "a limit on file size"),
    (Kind::Memory, "a limit on memory"),
    (Kind::Killed, "killed"),
    (Kind::ConcurrentWriter, "a writer beside it"),
    (Kind::StdoutClosed, "stdout that nobody reads"),
    (Kind::StdoutFull, "full stdout"),
    (Kind::Grant, "a grant"),
];

/// What was in the output file before.
const BEFORE: &str = "what an earlier check said\n";
/// Bits of the exit status.
const CORRUPT: i32 = 1;
const BLIND: i32 = 4;
/// Memory that a process has besides what it is granted: its code, its stacks.
const PROCESS_BYTES: u64 = 24 << 20;

struct Case<'a> {
    program: &'a Program,
    folder: PathBuf,
    paths: Vec<String>,
    is_sound: bool,
}

impl Case<'_> {
    fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let mut arguments = vec!["check"];
        arguments.extend(more);
        if !more.contains(&"--maxdop") {
            arguments.extend(["--maxdop", "2"]);
        }
        arguments.extend(self.paths.iter().map(String::as_str));
        arguments
    }

    fn undisturbed(&self) -> Done {
        self.program.run(&self.arguments(&[])).end()
    }

    /// The answer is that of a run that nothing disturbs.
    fn same(&self, done: &Done) -> Verdict {
        let clean = self.undisturbed();
        match done.code == clean.code && done.stdout == clean.stdout {
            true => Verdict::Kept,
            false => Verdict::Broke(format!("another answer: {} for {}", done.story(), clean.story())),
        }
    }

    /// The answer is that of a run that nothing disturbs, or says that it could not look; nothing sound is called corrupt.
    fn same_or_blind(&self, done: &Done) -> Verdict {
        if !done.is_orderly() {
            return Verdict::Broke(done.story());
        }
        let code = done.code.unwrap_or_default();
        match code & BLIND {
            0 => self.same(done),
            _ if self.is_sound && code & CORRUPT != 0 => Verdict::Broke(format!("called corrupt: {}", done.story())),
            _ if done.stderr.trim().is_empty() => Verdict::Broke("could not look, and does not say why".to_owned()),
            _ => Verdict::Kept,
        }
    }

    /// The output file has what was there before, or a whole answer.
    fn whole(&self, output: &Path) -> Result<(), String> {
        let clean = self.undisturbed().stdout;
        match std::fs::read_to_string(output) {
            Ok(text) if text == BEFORE || text == clean => Ok(()),
            Ok(text) => Err(format!("--output has {} bytes of {}", text.len(), clean.len())),
            Err(error) => Err(format!("--output is gone: {error}")),
        }
    }
}

pub(crate) fn trial(bench: &Bench, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let (kind, name) = KINDS[random.below(KINDS.len())];
    let program = bench.program();
    if kind == Kind::Grant {
        return super::grant::trial(program, &mut random, name);
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
        Kind::TempDirGone => {
            let gone = case.folder.join("gone");
            let done = case.program.run(&case.arguments(&["--temp-dir", gone.to_str().unwrap_or_default()])).end();
            same_or_refused(case, &done)
        }
        Kind::TempDirFull => case.same_or_blind(&faulty("w", &case.arguments(&[]))),
        Kind::OutputFull => {
            prepare();
            let done = faulty("w", &with_output);
            match case.whole(&output) {
                Err(text) => Verdict::Broke(format!("{text}; {}", done.story())),
                Ok(()) if !done.is_orderly() => Verdict::Broke(done.story()),
                Ok(()) => agrees(&done, &output),
            }
        }
        Kind::Threads => case.same(&faulty("t", &case.arguments(&["--maxdop", "8"]))),
        Kind::OpenFiles => {
            let mut run = case.program.run(&case.arguments(&[]));
            // The loader needs one of its own.
            run.limits = format!("ulimit -n {}; ", 4 + random.below(9));
            same_or_refused(case, &run.end())
        }
        Kind::FileSize => {
            prepare();
            let mut run = case.program.run(&with_output);
            // In blocks of 512 bytes: some answers are shorter.
            run.limits = format!("ulimit -f {}; ", random.below(12));
            let done = run.end();
            match case.whole(&output) {
                Err(text) => Verdict::Broke(format!("{text}; {}", done.story())),
                Ok(()) if !done.is_orderly() => Verdict::Broke(done.story()),
                Ok(()) => agrees(&done, &output),
            }
        }
        Kind::Memory => memory(case),
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
            match done.is_orderly() && done.code.is_some_and(|code| code & BLIND != 0) {
                true => Verdict::Kept,
                false => Verdict::Broke(format!("results that nobody got: {}", done.story())),
            }
        }
        Kind::Grant => Verdict::Kept,
    }
}

/// A status without bit 4 means that the output is there.
fn agrees(done: &Done, output: &Path) -> Verdict {
    let is_written = std::fs::read_to_string(output).is_ok_and(|text| text != BEFORE);
    match (done.code.unwrap_or(BLIND) & BLIND != 0, is_written) {
        (false, false) => Verdict::Broke(format!("nothing was written, and that is not said: {}", done.story())),
        _ => Verdict::Kept,
    }
}

fn same_or_refused(case: &Case<'_>, done: &Done) -> Verdict {
    let is_refused = done.is_orderly() && done.code.is_some_and(|code| code & (BLIND | 8) != 0);
    match is_refused && !done.stderr.trim().is_empty() {
        true if case.is_sound && done.code.is_some_and(|code| code & CORRUPT != 0) => {
            Verdict::Broke(format!("called corrupt: {}", done.story()))
        }
        true => Verdict::Kept,
        false => case.same(done),
    }
}

/// The least grant that the program names when it refuses a smaller one.
pub(super) fn least_grant(program: &Program, arguments: &[&str]) -> Option<String> {
    let refused = program.run(&[arguments, &["--memory", "1KB"]].concat()).end();
    let (_, number) = refused.stderr.split_once("needs ")?;
    Some(number.split_whitespace().take(2).collect())
}

/// With as much memory as is granted and what a process has besides, all goes well.
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

/// Killed at any time, the output file is what it was, or whole.
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

/// While it reads, another process writes pages: it ends, and says something.
fn beside_a_writer(case: &Case<'_>, subject: &Subject, random: &mut Random) -> Verdict {
    let Some(path) = case.paths.first() else { return Verdict::Kept };
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap_or_else(|error| panic!("{path}: {error}"));
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
        let Some(&page) = random.pick(&writable) else { continue };
        let Some(mut bytes) = pages.read(page) else { continue };
        let at = random.below(PAGE_BYTES);
        bytes[at] ^= 1 << random.below(8);
        undo_torn_bits(&mut bytes);
        seal(&mut bytes);
        // The same page again: half of the time it is sound.
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
