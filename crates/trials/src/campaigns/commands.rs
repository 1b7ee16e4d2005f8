//! Runs the program with different inputs (files in any order, folders, links, pipes) and with options that only affect
//! how the program reads. The answer must always be the same.

use std::path::{Path, PathBuf};

use findings::{Options, Report, Scope};
use lab::backup::{BackupOptions, Base, Container, Set, backup};
use report::{Format, View};
use trials::mutate::Random;

use super::resources::least_grant;
use crate::process::{Done, Program};
use crate::subject::{Subject, store};

/// Kinds of JSON lines that differ between runs, because they contain times, memory, options or paths.
const OF_THE_RUN: [&str; 4] = ["run", "statistics", "summary", "error"];

/// A report in all formats, and the exit status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    text: String,
    json: String,
    csv: String,
    code: i32,
}

impl Answer {
    pub(super) fn of(report: &Report) -> Self {
        let is_corrupt = !report.findings.is_empty();
        let bits = [(1, is_corrupt), (4, !report.read_errors.is_empty()), (16, !report.complete())];
        Self {
            text: written(Format::Text, report),
            json: lasting(&written(Format::Json, report)),
            csv: written(Format::TableResults(report::Columns::Newer), report),
            code: bits.iter().filter(|(_, is_set)| *is_set).map(|(bit, _)| bit).sum(),
        }
    }

    /// Whether `lines` equal the JSON lines of this answer. Lines that differ between runs are not compared.
    pub(super) fn is_json(&self, lines: &str) -> bool {
        self.json == lines
    }

    /// Describes the first line that differs between the answers, or the different exit status; `None` if the answers
    /// are equal.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let code = || (self.code != other.code).then(|| format!("expected exit {}, found {}", self.code, other.code));
        difference(&self.text, &other.text)
            .or_else(|| difference(&self.json, &other.json))
            .or_else(|| difference(&self.csv, &other.csv))
            .or_else(code)
    }

    /// Describes how the output of a run in this format differs from this answer; `None` if it does not differ.
    fn difference_of(&self, format: &str, done: &Done, results: &str) -> Option<String> {
        let lines = match format {
            "json" => difference(&self.json, &lasting(results)),
            "tableresults" => difference(&self.csv, results),
            _ => difference(&self.text, results),
        };
        let is_same = done.code == Some(self.code);
        lines.or_else(|| (!is_same).then(|| format!("expected exit {}, found {}", self.code, done.story())))
    }
}

fn written(format: Format, report: &Report) -> String {
    let mut out = Vec::new();
    let view = View::default();
    match report::write(format, report, view, &mut out) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(error) => format!("cannot be written: {error}"),
    }
}

/// The JSON lines of a report that do not differ between runs.
pub(super) fn lasting(json: &str) -> String {
    let is_lasting = |line: &&str| {
        let kind = serde_json::from_str::<serde_json::Value>(line).map(|line| line["kind"].clone());
        kind.is_ok_and(|kind| kind.as_str().is_some_and(|kind| !OF_THE_RUN.contains(&kind)))
    };
    json.lines().filter(is_lasting).map(|line| format!("{line}\n")).collect()
}

fn difference(expected: &str, found: &str) -> Option<String> {
    let (mut ours, mut theirs) = (expected.lines(), found.lines());
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return None,
            (ours, theirs) if ours == theirs => {}
            (ours, theirs) => return Some(format!("expected {ours:?}, found {theirs:?}")),
        }
    }
}

/// The way in which the program gets its input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Given {
    Files,
    Folder,
    Links,
    FolderOfLinks,
    /// A backup that the program reads from a pipe.
    Pipe(Option<Container>),
    /// The program reads a full backup from a file, and the differential based on it from a pipe.
    DifferentialPipe,
    Stripes,
}

/// A database on disk, and the expected answer of a check.
pub(super) struct Commands<'a> {
    pub(super) program: &'a Program,
    pub(super) subject: &'a Subject,
    /// A folder for the files of this trial.
    pub(super) folder: &'a Path,
    pub(super) files: &'a [PathBuf],
    pub(super) can_be_backed_up: bool,
    pub(super) options: &'a Options,
    pub(super) expected: &'a Answer,
}

impl Commands<'_> {
    /// Runs the program once, with random input and options. If the answer differs from the expected answer, returns
    /// the difference and the command line.
    pub(super) fn differs(&self, random: &mut Random, way: usize) -> Option<String> {
        let given = self.given(random);
        let made = self.folder.join(format!("command{way}"));
        let (paths, piped) = match self.lay_out(given, &made, random) {
            Ok(done) => done,
            Err(error) => return Some(format!("{given:?}: cannot be laid out: {error}")),
        };
        let output = made.join("answer");
        let (arguments, format) = self.arguments(random, &paths, &made, piped.is_some());
        let with_output = random.below(4) == 0;
        let mut all: Vec<&str> = arguments.iter().map(String::as_str).collect();
        if with_output {
            all.extend(["--output", output.to_str().unwrap_or_default()]);
        }
        let least = match random.below(4) {
            0 if piped.is_none() => least_grant(self.program, &all),
            1 => Some("256MB".to_owned()),
            _ => None,
        };
        if let Some(least) = &least {
            all.extend(["--memory", least]);
        }
        let mut run = self.program.run(&all);
        run.limits = piped.as_ref().map_or(String::new(), |path| format!("cat '{}' | ", path.display()));
        let done = run.end();
        let results = match with_output {
            true => std::fs::read_to_string(&output).unwrap_or_else(|error| format!("{}: {error}", output.display())),
            false => done.stdout.clone(),
        };
        let _ = std::fs::remove_dir_all(&made);
        let difference = self.expected.difference_of(format, &done, &results)?;
        Some(format!("{given:?}, mdfsck {}: {difference}; {}", all.join(" "), done.story()))
    }

    fn given(&self, random: &mut Random) -> Given {
        match random.below(if self.can_be_backed_up { 9 } else { 5 }) {
            0 | 1 => Given::Files,
            2 => Given::Folder,
            3 => Given::Links,
            4 => Given::FolderOfLinks,
            5 => Given::Pipe(None),
            6 => Given::Pipe(Some(Container::Version2)),
            7 => Given::DifferentialPipe,
            _ => Given::Stripes,
        }
    }

    /// Creates the input files in `made`. Returns the paths for the command line in random order, and the file that is
    /// sent through the pipe.
    fn lay_out(
        &self,
        given: Given,
        made: &Path,
        random: &mut Random,
    ) -> Result<(Vec<String>, Option<PathBuf>), String> {
        let text = |error: std::io::Error| error.to_string();
        std::fs::create_dir(made).map_err(text)?;
        std::fs::create_dir(made.join("temp")).map_err(text)?;
        let shown = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        let write = |files: &[PathBuf], step, options, name: &str| {
            backup(&[Set { files, step, options }], made, name)
                .map(|done| done.files)
                .map_err(|error| error.to_string())
        };
        let mut paths = match given {
            Given::Files => shown(self.files),
            Given::Folder => {
                let folder = made.join("files");
                std::fs::create_dir(&folder).map_err(text)?;
                for file in self.files {
                    std::fs::copy(file, folder.join(file.file_name().unwrap_or_default())).map_err(text)?;
                }
                vec![folder.display().to_string()]
            }
            Given::Links | Given::FolderOfLinks => {
                let folder = made.join("links");
                std::fs::create_dir(&folder).map_err(text)?;
                let link = |file: &PathBuf| {
                    let link = folder.join(file.file_name().unwrap_or_default());
                    std::os::unix::fs::symlink(file, &link).map(|()| link)
                };
                let links = self.files.iter().map(link).collect::<Result<Vec<_>, _>>().map_err(text)?;
                if given == Given::Links { shown(&links) } else { vec![folder.display().to_string()] }
            }
            Given::Pipe(container) => {
                let options = BackupOptions { container, checksum: random.below(2) == 0, ..BackupOptions::default() };
                return Ok((vec!["-".to_owned()], write(self.files, 1, options, "full")?.pop()));
            }
            Given::DifferentialPipe => {
                let before = made.join("before");
                std::fs::create_dir(&before).map_err(text)?;
                let earlier = store(&self.subject.contents, &before).map_err(text)?;
                let full = write(&earlier, 1, BackupOptions::default(), "full")?;
                let options =
                    BackupOptions { base: Some(Base { files: &earlier, step: 1 }), ..BackupOptions::default() };
                let paths = shown(&full).into_iter().chain(["-".to_owned()]).collect();
                return Ok((paths, write(self.files, 2, options, "differential")?.pop()));
            }
            Given::Stripes => {
                let options = BackupOptions { stripes: 3, checksum: true, ..BackupOptions::default() };
                shown(&write(self.files, 1, options, "stripe")?)
            }
        };
        for last in (1..paths.len()).rev() {
            paths.swap(last, random.below(last + 1));
        }
        Ok((paths, None))
    }

    fn arguments(
        &self,
        random: &mut Random,
        paths: &[String],
        made: &Path,
        is_piped: bool,
    ) -> (Vec<String>, &'static str) {
        let mut arguments = vec!["check".to_owned()];
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        let format = *random.pick(&["text", "json", "tableresults"]).unwrap_or(&"text");
        // CHECKCATALOG cannot be combined with TABLERESULTS.
        let format = if self.options.scope == Scope::Catalog && format == "tableresults" { "text" } else { format };
        add(&["--format", format]);
        let one_of: [(&str, &[&str]); 5] = [
            ("--maxdop", &["1", "2", "3", "8"]),
            ("--readers", &["1", "3", "per-file"]),
            ("--batches", &["auto", "one", "2", "5", "17"]),
            ("--progress", &["none", "lines", "json", "bar"]),
            ("--io-limit", &["4GB"]),
        ];
        for (option, values) in one_of {
            if let (0, Some(value)) = (random.below(2), random.pick(values)) {
                add(&[option, value]);
            }
        }
        for option in ["--nice", "--stats"] {
            if random.below(4) == 0 {
                add(&[option]);
            }
        }
        let temp = made.join("temp").display().to_string();
        if is_piped || random.below(2) == 0 {
            add(&["--temp-dir", &temp]);
        }
        if is_piped && random.below(2) == 0 {
            add(&["--spool-limit", "1GB"]);
        }
        let is_direct = |path: &String| source::open(&[PathBuf::from(path)], &[], true).is_ok();
        // The option is used only where direct reads are possible: file systems in memory do not support them.
        if !is_piped && random.below(4) == 0 && paths.len() == 1 && paths.iter().all(is_direct) {
            add(&["--direct"]);
        }
        add(&scope(self.options).iter().map(String::as_str).collect::<Vec<_>>());
        add(&paths.iter().map(String::as_str).collect::<Vec<_>>());
        (arguments, format)
    }
}

/// The options of the command line that select the scope of a check.
fn scope(options: &Options) -> Vec<String> {
    let mut words = match &options.scope {
        Scope::Database => Vec::new(),
        Scope::Tables(ids) => ids.iter().flat_map(|id| ["--table".to_owned(), id.to_string()]).collect(),
        Scope::Filegroup(id) => vec!["--filegroup".to_owned(), id.to_string()],
        Scope::Allocation => vec!["--alloc".to_owned()],
        Scope::Catalog => vec!["--catalog".to_owned()],
    };
    let flags = [
        (options.physical_only, "--physical-only"),
        (options.no_index, "--noindex"),
        (options.extended_logical_checks, "--extended-logical-checks"),
        (options.constraints, "--constraints"),
        (options.identities, "--identity"),
    ];
    words.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| (*flag).to_owned()));
    words
}
