//! Checks a damaged database with different inputs and options, and compares all outputs. Neither the form of the input
//! nor the options may change the answer.

use std::path::PathBuf;

use check::Silent;
use findings::{Options, Readers, Scope};
use lab::backup::{BackupOptions, Base, Container, Set, backup};
use source::{PageSource, Throttled};
use trials::mutate::{PageRole, Random};

use super::commands::{Answer, Commands};
use super::{Bench, fields, sealed, storage};
use crate::mutant::{Damage, Mutant};
use crate::outcome::{Outcome, Verdict};
use crate::subject::{Content, Subject, folder, store};

/// The number of further checks in a trial. The output of each is compared with the output of the first check.
const WAYS: usize = 12;
/// The number of runs of the program as a process in a trial. The output of each is compared with the output of the
/// first check.
const COMMANDS: usize = 4;
/// An I/O limit, in bytes per second, that selects the throttled code but is too high to slow down a small database.
const IO_LIMIT: u64 = 4 << 30;

/// The way in which pages are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Input {
    Memory,
    Files,
    Direct,
    FilesInAnotherOrder,
    Throttled,
    Backup(Option<Container>, u16, bool),
    Differential,
}

fn check(pages: &dyn PageSource, options: &Options) -> Answer {
    let database = catalog::load(pages);
    let mut options = options.clone();
    // `memory_bytes` is given relative to the minimum grant, which depends on the database.
    if let Some(more) = options.memory_bytes {
        options.memory_bytes = Some(check::minimum_memory_bytes(pages, &database, &options) + more);
    }
    Answer::of(&check::run(pages, &database, &options, &Silent))
}

/// Damages a database between zero and four times.
fn damaged(subject: &Subject, foreign: &Subject, random: &mut Random) -> (Vec<Content>, String, bool) {
    let mut contents = subject.contents.clone();
    let mut what = Vec::new();
    let mut can_be_backed_up = true;
    let pieces = if random.below(4) == 0 { 0 } else { 1 + random.below(4) };
    for _ in 0..pieces {
        let mutant = match random.below(5) {
            0 | 1 => fields::mutant(subject, random),
            2 | 3 => sealed::mutant(subject, random),
            _ if what.is_empty() => storage::mutant(subject, foreign, random),
            _ => continue,
        };
        can_be_backed_up &= is_of_a_table(subject, &mutant);
        what.push(format!("{}: {}", mutant.kind, mutant.what));
        merge(&mut contents, subject, &mutant);
    }
    (contents, what.join("; "), can_be_backed_up)
}

/// Adds the damage of a mutant to files that may already be damaged.
fn merge(contents: &mut Vec<Content>, subject: &Subject, mutant: &Mutant) {
    let Damage::Page(page, bytes) = &mutant.damage else {
        *contents = mutant.contents(subject);
        return;
    };
    let path = subject.files.path(page.file);
    let at = page.page as usize * bytes.len();
    let content = contents.iter_mut().find(|(own, _)| Some(own.as_path()) == path);
    if let Some(place) = content.and_then(|(_, content)| content.get_mut(at..at + bytes.len())) {
        place.copy_from_slice(&**bytes);
    }
}

/// Whether the damage is limited to one page of a user table. Damage to another page may change which pages a backup
/// contains.
fn is_of_a_table(subject: &Subject, mutant: &Mutant) -> bool {
    let is_one =
        |role| matches!(role, PageRole::Heap | PageRole::Clustered | PageRole::Node | PageRole::Leaf | PageRole::Text);
    mutant.page().is_some_and(|page| is_one(subject.role(page)))
}

fn options(random: &mut Random, temp_dir: PathBuf) -> Options {
    let pick = |random: &mut Random, from: &[u64]| random.pick(from).copied().unwrap_or_default();
    Options {
        max_threads: pick(random, &[1, 2, 3, 8]) as usize,
        readers: *random
            .pick(&[Readers::Own, Readers::Count(1), Readers::Count(3), Readers::PerFile])
            .unwrap_or(&Readers::Own),
        batches: pick(random, &[0, 1, 2, 3, 5, 17]) as u16,
        memory_bytes: match random.below(3) {
            0 => None,
            1 => Some(0),
            _ => Some(pick(random, &[1, 4096, 1 << 20, 7 << 20, 2 << 30])),
        },
        temp_dir: (random.below(2) == 0).then_some(temp_dir),
        most_map_bytes: (random.below(3) == 0).then(|| pick(random, &[0, 4096, 1 << 20])),
        row_by_row: random.below(3) == 0,
        hash_seed: Some(random.number()),
        ..Options::default()
    }
}

/// Sets the depth and scope of the check. All checks of a trial have the same depth and scope.
fn scope(subject: &Subject, random: &mut Random, options: Options) -> Options {
    let is = |random: &mut Random, percent| random.below(100) < percent;
    let tables: Vec<i32> =
        subject.database.objects.values().filter(|object| object.type_code == "U").map(|object| object.id).collect();
    let scope = match (random.below(16), random.pick(&tables)) {
        (0, _) => Scope::Allocation,
        (1, _) => Scope::Catalog,
        (2, _) => Scope::Filegroup(1),
        (3, Some(table)) => Scope::Tables(vec![*table]),
        _ => Scope::Database,
    };
    let reads = scope.reads_pages();
    let physical_only = scope != Scope::Catalog && is(random, 10);
    Options {
        physical_only,
        no_index: reads && is(random, 10),
        extended_logical_checks: !physical_only && reads && is(random, 20),
        constraints: !physical_only && reads && is(random, 30),
        identities: !physical_only && reads && is(random, 30),
        scope,
        ..options
    }
}

fn input(random: &mut Random, can_be_backed_up: bool) -> Input {
    match random.below(if can_be_backed_up { 10 } else { 6 }) {
        0 | 1 => Input::Memory,
        2 => Input::Files,
        3 => Input::Direct,
        4 => Input::FilesInAnotherOrder,
        5 => Input::Throttled,
        6 => Input::Backup(None, 1, random.below(2) == 0),
        7 => Input::Backup(Some(Container::Version2), 1, true),
        8 => Input::Backup(None, 3, random.below(2) == 0),
        _ => Input::Differential,
    }
}

pub(crate) fn trial(bench: &Bench, seed: u64) -> Outcome {
    let subject = bench.subjects.of(seed);
    let foreign = bench.subjects.of(seed + super::ANOTHER);
    // First, the undamaged database: its rows must have the values that the lab wrote, even if columns were added or
    // dropped.
    if let Err(story) = subject.sound() {
        return Outcome::new("values", subject.name.clone(), Verdict::Differs(story.to_owned()));
    }
    let mut random = Random::new(seed);
    let (contents, what, can_be_backed_up) = damaged(&subject, &foreign, &mut random);
    let what = format!("{} {what}", subject.name);
    bench.keep(|| contents.clone());
    let made = folder();
    let Ok(memory) = source::MemoryFiles::open(contents.clone()) else {
        let paths = store(&contents, made.path()).unwrap_or_else(|error| panic!("{error}"));
        let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let arguments: Vec<&str> = ["check"].into_iter().chain(shown.iter().map(String::as_str)).collect();
        let done = bench.program().run(&arguments).end();
        let is_refused = done.is_orderly() && matches!(done.code, Some(4 | 8)) && !done.stderr.trim().is_empty();
        let verdict =
            if is_refused { Verdict::Kept } else { Verdict::Differs(format!("not refused: {}", done.story())) };
        return Outcome { executions: 2, ..Outcome::new("refused", what, verdict) };
    };
    let place = Place { subject: &subject, folder: made.path().to_owned(), contents: &contents };
    let paths = store(&contents, made.path()).unwrap_or_else(|error| panic!("{error}"));
    let common = scope(&subject, &mut random, Options { max_threads: 1, hash_seed: Some(seed), ..Options::default() });
    let expected = check(&memory, &common);
    for way in 0..WAYS {
        let options = Options { scope: common.scope.clone(), ..options(&mut random, made.path().to_owned()) };
        let options = Options {
            physical_only: common.physical_only,
            no_index: common.no_index,
            extended_logical_checks: common.extended_logical_checks,
            constraints: common.constraints,
            identities: common.identities,
            ..options
        };
        let input = input(&mut random, can_be_backed_up);
        let found = match input {
            Input::Memory => Ok(check(&memory, &options)),
            _ => place.check(input, &paths, &options, way),
        };
        let difference = match found {
            Ok(found) => expected.difference(&found),
            Err(error) => Some(format!("refused: {error}")),
        };
        if let Some(difference) = difference {
            let story = format!("{input:?} {}: {difference}", told(&options));
            return Outcome { executions: way as u64 + 2, ..Outcome::new("way", what, Verdict::Differs(story)) };
        }
    }
    let commands = Commands {
        program: bench.program(),
        subject: &subject,
        folder: made.path(),
        files: &paths,
        can_be_backed_up,
        options: &common,
        expected: &expected,
    };
    for way in 0..COMMANDS {
        if let Some(story) = commands.differs(&mut random, way) {
            let executions = (WAYS + way) as u64 + 2;
            return Outcome { executions, ..Outcome::new("command", what, Verdict::Differs(story)) };
        }
    }
    Outcome { executions: (WAYS + COMMANDS) as u64 + 1, ..Outcome::new("way", what, Verdict::Kept) }
}

/// The folder of a trial's files.
struct Place<'a> {
    subject: &'a Subject,
    folder: PathBuf,
    contents: &'a [Content],
}

impl Place<'_> {
    fn check(&self, input: Input, paths: &[PathBuf], options: &Options, way: usize) -> Result<Answer, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let mut paths = match input {
            Input::Backup(..) | Input::Differential => self.back_up(input, paths, way)?,
            _ => paths.to_vec(),
        };
        if input == Input::FilesInAnotherOrder {
            paths.reverse();
        }
        // File systems in memory do not support direct reads.
        let direct = input == Input::Direct && source::open(&paths, &[], true).is_ok();
        let pages = source::open(&paths, &[], direct).map_err(|error| text(&error))?;
        Ok(match input {
            Input::Throttled => check(&Throttled::new(pages.as_ref(), IO_LIMIT), options),
            _ => check(pages.as_ref(), options),
        })
    }

    fn back_up(&self, input: Input, paths: &[PathBuf], way: usize) -> Result<Vec<PathBuf>, String> {
        debug_assert_eq!(self.contents.len(), paths.len());
        let name = format!("way{way}");
        let write = |set: Set<'_>, name: &str| {
            backup(&[set], &self.folder, name).map(|done| done.files).map_err(|error| error.to_string())
        };
        let Input::Backup(container, stripes, checksum) = input else {
            let before = self.folder.join(format!("before{way}"));
            let earlier = std::fs::create_dir(&before).and_then(|()| self.subject.store(&before));
            let earlier = earlier.map_err(|error| error.to_string())?;
            let full =
                write(Set { files: &earlier, step: 1, options: BackupOptions::default() }, &format!("{name}full"))?;
            let options = BackupOptions { base: Some(Base { files: &earlier, step: 1 }), ..BackupOptions::default() };
            let differential = write(Set { files: paths, step: 2, options }, &name)?;
            return Ok([full, differential].concat());
        };
        let options = BackupOptions { container, stripes, checksum, ..BackupOptions::default() };
        write(Set { files: paths, step: 1, options }, &name)
    }
}

/// Describes the options in a text.
fn told(options: &Options) -> String {
    format!(
        "threads {} readers {:?} batches {} memory least+{:?} maps {:?} temp-dir {} row-by-row {} physical-only {} no-index {} \
         extended {} constraints {} identities {}",
        options.max_threads,
        options.readers,
        options.batches,
        options.memory_bytes,
        options.most_map_bytes,
        options.temp_dir.is_some(),
        options.row_by_row,
        options.physical_only,
        options.no_index,
        options.extended_logical_checks,
        options.constraints,
        options.identities,
    )
}
