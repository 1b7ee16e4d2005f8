//! What is to be checked: from paths to databases, by the headers of their files and the labels of their backups.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use source::backup::{self, BackupMedia, BackupPlan, ChainSet, SetChoice, SetPlace};
use source::{DataFile, Looked, OpenError};

use super::patterns;
use crate::failure::Failure;
use crate::logs;

/// Names in a message at most.
const MOST_NAMES: usize = 10;
/// Names of files that hold databases or their backups.
const EXTENSIONS: [&str; 6] = ["mdf", "ndf", "bak", "trn", "dif", "diff"];

/// What a command is to do.
pub(crate) enum Planned {
    /// There is one database: these paths are its.
    One(Vec<PathBuf>),
    /// Each of these by itself.
    Several(Plan),
}

/// What is to be checked, and what is not.
#[derive(Default)]
pub(crate) struct Plan {
    /// The databases and restores, in the order of their first files.
    pub(crate) items: Vec<Item>,
    /// Files in folders that have nothing to do with databases.
    pub(crate) passed_over: Vec<PathBuf>,
    /// What the user must know of the choice.
    pub(crate) notes: Vec<String>,
}

/// One database.
pub(crate) struct Item {
    /// Its name, or else that of its first file.
    pub(crate) name: String,
    /// Its files.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) job: Job,
}

/// What is to be done with it.
pub(crate) enum Job {
    /// Data files, among these paths.
    Files { has_primary: bool },
    /// Backups of one database, of which the log backups say what belongs together.
    Backups,
    /// These backup sets.
    Sets(Vec<ChainSet>),
    /// Nothing can be done.
    Refused(Failure),
}

/// Sorts the paths by what they hold. Without `choice`, backups are left as they are named.
///
/// # Errors
/// A pattern without a match.
pub(crate) fn plan(paths: &[PathBuf], choice: &SetChoice, is_stopped: bool) -> Result<Planned, Failure> {
    let is_each = matches!(choice, SetChoice::Last | SetChoice::All)
        || matches!(choice, SetChoice::Positions(positions) if positions.len() > 1);
    let is_pipe = paths.iter().any(|path| path.as_os_str() == "-");
    let is_file = matches!(paths, [path] if path.is_file());
    if is_pipe || is_file && !is_each {
        return Ok(Planned::One(paths.to_vec()));
    }
    let mut found = Found::default();
    found.read(paths)?;
    Ok(found.decide(paths, choice, is_stopped))
}

/// What the paths lead to, whatever belongs together.
pub(crate) struct Inventory {
    /// The data files of each database, with their logs.
    pub(crate) databases: Vec<Vec<PathBuf>>,
    /// Labels of backups.
    pub(crate) backups: Vec<BackupMedia>,
    /// What cannot be looked at.
    pub(crate) problems: Vec<Failure>,
    /// What the user must know.
    pub(crate) notes: Vec<String>,
}

/// Lists what the paths lead to; `None` if they are to be read as they are: they name one database, its backups, or nothing.
///
/// # Errors
/// A pattern without a match.
pub(crate) fn inventory(paths: &[PathBuf]) -> Result<Option<Inventory>, Failure> {
    if paths.iter().any(|path| path.as_os_str() == "-") || matches!(paths, [path] if path.is_file()) {
        return Ok(None);
    }
    let mut found = Found::default();
    found.read(paths)?;
    let mut plan = Plan::default();
    found.databases(&mut plan);
    let counts = (plan.items.len(), found.backups.len(), found.problems.len());
    let is_named = found.backups.iter().all(|media| found.named.contains(&media.path));
    let is_as_named = match counts {
        (0, 0, _) | (1, 0, 0) => !found.has_patterns,
        (0, _, 0) => is_named,
        _ => false,
    };
    if is_as_named {
        return Ok(None);
    }
    plan.items.sort_by_key(|item| found.place(item));
    Ok(Some(Inventory {
        databases: plan.items.into_iter().map(|item| item.paths).collect(),
        backups: found.backups,
        problems: found.problems.into_iter().map(|problem| problem.failure).collect(),
        notes: passed_over(&found.passed_over),
    }))
}

/// A path that cannot be looked at.
struct Problem {
    path: PathBuf,
    failure: Failure,
}

/// What the paths lead to.
#[derive(Default)]
struct Found {
    /// Paths that were named as they are.
    named: HashSet<PathBuf>,
    /// The place of each path among all.
    places: HashMap<PathBuf, usize>,
    /// Folders that hold logs and nothing else.
    folders_of_logs: Vec<PathBuf>,
    /// Whether a path was a pattern.
    has_patterns: bool,
    data: Vec<DataFile>,
    logs: Vec<PathBuf>,
    backups: Vec<BackupMedia>,
    problems: Vec<Problem>,
    passed_over: Vec<PathBuf>,
    seen: Seen,
}

impl Found {
    fn read(&mut self, paths: &[PathBuf]) -> Result<(), Failure> {
        for path in paths {
            match patterns::expand(path)? {
                Some(matching) => {
                    self.has_patterns = true;
                    for path in matching {
                        if path.is_dir() { self.folder(&path) } else { self.file(&path, false) }
                    }
                }
                None if path.is_dir() => self.folder(path),
                None => self.file(path, true),
            }
        }
        Ok(())
    }

    fn folder(&mut self, folder: &Path) {
        let entries = fs::read_dir(folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let mut files: Vec<PathBuf> = match entries {
            Ok(entries) => entries.into_iter().map(|entry| entry.path()).collect(),
            Err(cause) => {
                let path = folder.to_owned();
                return self.problem(folder, OpenError::Io { path, cause });
            }
        };
        files.sort();
        let count = |this: &Self| (this.data.len() + this.backups.len(), this.logs.len());
        let before = count(self);
        for file in &files {
            match fs::metadata(file) {
                Ok(metadata) if metadata.is_file() => self.file(file, false),
                // A link that leads nowhere; other files are gone since.
                Err(_) if has_database_name(file) => self.file(file, false),
                _ => {}
            }
        }
        let after = count(self);
        if after.0 == before.0 && after.1 > before.1 {
            self.folders_of_logs.push(folder.to_owned());
        }
    }

    fn file(&mut self, path: &Path, is_named: bool) {
        if is_named {
            self.named.insert(path.to_owned());
        }
        if !self.seen.is_new(path) {
            return;
        }
        let place = self.places.len();
        self.places.insert(path.to_owned(), place);
        match source::look(path) {
            Ok(Looked::Data(file)) => self.data.push(*file),
            Ok(Looked::Log) => self.logs.push(path.to_owned()),
            Ok(Looked::Backup) => match backup::media(path) {
                Ok(media) if media.sets.is_empty() => self.problem(path, backup::no_set(path)),
                Ok(media) if media.sets.iter().any(|set| set.is_encrypted) => {
                    self.problem(path, OpenError::EncryptedBackup { path: path.to_owned() });
                }
                Ok(media) => self.backups.push(media),
                Err(error) => self.problem(path, error),
            },
            Ok(Looked::Refused(error)) if is_named => self.problem(path, error),
            Ok(Looked::Refused(error)) if has_database_name(path) && !is_text(path) => self.problem(path, error),
            // What an empty or damaged log means, only its database says.
            Ok(Looked::Refused(_)) if has_log_name(path) => {}
            Ok(Looked::Refused(_)) => self.passed_over.push(path.to_owned()),
            Err(error) => self.problem(path, error),
        }
    }

    fn problem(&mut self, path: &Path, error: OpenError) {
        let next = self.places.len();
        self.places.entry(path.to_owned()).or_insert(next);
        self.problems.push(Problem { path: path.to_owned(), failure: error.into() });
    }

    /// The place of its first file.
    fn place(&self, item: &Item) -> Option<usize> {
        item.paths.iter().filter_map(|path| self.places.get(path)).min().copied()
    }

    /// Whether one database is meant, as always, or several.
    fn decide(mut self, paths: &[PathBuf], choice: &SetChoice, is_stopped: bool) -> Planned {
        let mut plan = Plan::default();
        let has_data = !self.data.is_empty();
        self.databases(&mut plan);
        let is_simple = self.backups(choice, is_stopped, &mut plan);
        let is_expected = |problem: &Problem| {
            self.named.contains(&problem.path) || has_log_name(&problem.path) || paths.contains(&problem.path)
        };
        let has_found_problems = self.problems.iter().any(|problem| !is_expected(problem));
        // Secondary files that were named belong to the database that was named, or to none.
        let is_named = |item: &Item| item.paths.first().is_some_and(|path| self.named.contains(path));
        let (mut primaries, mut others) = (0, 0);
        for item in &plan.items {
            match item.job {
                Job::Files { has_primary: true } => primaries += 1,
                Job::Files { has_primary: false } if is_named(item) => {}
                _ => others += 1,
            }
        }
        let is_of_one = primaries == 1 && others == 0;
        let is_one = match plan.items.as_slice() {
            [_, _, ..] if is_of_one && !has_found_problems => true,
            [] => !has_found_problems,
            [Item { job: Job::Sets(_), .. }] => is_simple && !has_found_problems,
            [_] => !has_found_problems,
            _ => false,
        };
        if is_one {
            let own = plan.items.pop().map(|item| item.paths).filter(|_| self.has_patterns && plan.items.is_empty());
            return Planned::One(own.unwrap_or_else(|| paths.to_vec()));
        }
        self.foreign_logs(has_data, &mut plan);
        for Problem { path, failure } in std::mem::take(&mut self.problems) {
            plan.items.push(Item { name: file_name(&path), paths: vec![path], job: Job::Refused(failure) });
        }
        plan.items.sort_by_key(|item| self.place(item));
        plan.notes.extend(passed_over(&self.passed_over));
        plan.passed_over = self.passed_over;
        Planned::Several(plan)
    }

    /// The databases of the data files.
    fn databases(&mut self, plan: &mut Plan) {
        for files in source::databases(std::mem::take(&mut self.data)) {
            let Some(first) = files.first() else { continue };
            let name = if first.file_id == 1 { source::database_name(&first.path) } else { None };
            let name = name.unwrap_or_else(|| file_name(&first.path));
            let mut paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
            let binding = files.iter().find_map(|file| file.binding_guid);
            let is_own =
                |path: &&PathBuf| self.named.contains(*path) && binding.is_some() && log::binding_guid(path) == binding;
            paths.extend(self.logs.iter().filter(is_own).cloned());
            paths.extend(self.folders_of_logs.iter().cloned());
            plan.items.push(Item { name, paths, job: Job::Files { has_primary: first.file_id == 1 } });
        }
    }

    /// The restores of the backups; whether they take all sets that were found.
    fn backups(&mut self, choice: &SetChoice, is_stopped: bool, plan: &mut Plan) -> bool {
        if let SetChoice::Positions(positions) = choice {
            let has = |media: &BackupMedia| media.sets.iter().any(|set| positions.contains(&set.position));
            let without: Vec<BackupMedia> = self.backups.extract_if(.., |media| !has(media)).collect();
            for media in without {
                let error = OpenError::NoSuchSet { path: media.path.clone(), sets: media.sets.len() };
                self.problem(&media.path, error);
            }
        }
        let named = &self.named;
        let plans = backup::plan(&self.backups, choice, is_stopped, &|path| named.contains(path));
        let mut is_simple = matches!(choice, SetChoice::Newest | SetChoice::Positions(_));
        let is_among_others = !plan.items.is_empty() || plans.len() > 1;
        for BackupPlan { database, restores, with_logs, unused, logs, refused, sets } in plans {
            is_simple &= restores.iter().map(Vec::len).sum::<usize>() == sets;
            let in_use = |(path, _): &SetPlace| restores.iter().flatten().any(|set| set.paths.contains(path));
            // Other sets of a file that is read are reported when it is.
            let unused: Vec<SetPlace> = unused.into_iter().filter(|set| !in_use(set)).collect();
            if !unused.is_empty() {
                let names = listed(unused.iter().map(|(path, position)| format!("{}, set {position}", path.display())));
                plan.notes.push(format!(
                    "{database}: older than the backups that are checked, and not checked: {names}; --set all checks each"
                ));
            }
            let (named_logs, found_logs): (Vec<_>, Vec<_>) =
                logs.into_iter().partition(|(path, _)| named.contains(path));
            let has_pages = !restores.is_empty();
            if !found_logs.is_empty() {
                let names: BTreeSet<String> = found_logs.iter().map(|(path, _)| path.display().to_string()).collect();
                plan.notes.push(format!(
                    "{database}: log backups are checked only together with their full backup{}: {}",
                    if has_pages { ", without --set last and --set all" } else { "" },
                    listed(names.into_iter())
                ));
            }
            for (path, position) in named_logs.into_iter().filter(|_| !has_pages) {
                let failure = match is_among_others {
                    true => Failure::usage(format!(
                        "{}: set {position} is a log backup of a database '{database}' whose full backup was not given; name \
                         that too, or leave the log backup out",
                        path.display()
                    )),
                    false => OpenError::LogBackup { path: path.clone(), position }.into(),
                };
                self.problems.push(Problem { path, failure });
            }
            let problem = |(path, error): (PathBuf, OpenError)| Problem { path, failure: error.into() };
            self.problems.extend(refused.into_iter().map(problem));
            if let Some(paths) = with_logs {
                plan.items.push(Item { name: database, paths, job: Job::Backups });
                continue;
            }
            for sets in restores {
                let mut paths: Vec<PathBuf> = Vec::new();
                for path in sets.iter().flat_map(|set| &set.paths) {
                    if !paths.contains(path) {
                        paths.push(path.clone());
                    }
                }
                plan.items.push(Item { name: database.clone(), paths, job: Job::Sets(sets) });
            }
        }
        is_simple
    }

    /// Logs that were named and belong to none of the databases.
    fn foreign_logs(&mut self, has_data: bool, plan: &mut Plan) {
        let used: HashSet<&PathBuf> = plan.items.iter().flat_map(|item| &item.paths).collect();
        let is_left = |path: &&PathBuf| self.named.contains(*path) && !used.contains(path);
        for path in self.logs.iter().filter(is_left) {
            let failure = match has_data {
                true => Failure::usage(format!(
                    "{}: is a log of none of these databases; name the data files of its database too, or leave it out",
                    path.display()
                )),
                false => OpenError::Log { path: path.clone() }.into(),
            };
            self.problems.push(Problem { path: path.clone(), failure });
        }
    }
}

/// Files that were met, so that a file with two names is looked at once.
#[derive(Default)]
struct Seen {
    #[cfg(unix)]
    files: HashSet<(u64, u64)>,
    #[cfg(not(unix))]
    files: HashSet<PathBuf>,
}

impl Seen {
    fn is_new(&mut self, path: &Path) -> bool {
        #[cfg(unix)]
        let identity = fs::metadata(path).ok().map(|metadata| {
            use std::os::unix::fs::MetadataExt as _;
            (metadata.dev(), metadata.ino())
        });
        #[cfg(not(unix))]
        let identity = fs::canonicalize(path).ok();
        identity.is_none_or(|identity| self.files.insert(identity))
    }
}

/// Names what was passed over, once.
fn passed_over(paths: &[PathBuf]) -> Vec<String> {
    if paths.is_empty() {
        return Vec::new();
    }
    let names = listed(paths.iter().map(|path| path.display().to_string()));
    vec![format!("neither data files, logs nor backups, passed over: {names}")]
}

/// The first of several names.
pub(super) fn listed(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().unwrap_or_default();
    extensions.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn has_database_name(path: &Path) -> bool {
    has_extension(path, &EXTENSIONS)
}

fn has_log_name(path: &Path) -> bool {
    has_extension(path, &["ldf"]) || logs::is_log(path)
}

/// Whether a file is text: other programs call their backups .bak too. What was a database may be empty, zeros or noise.
fn is_text(path: &Path) -> bool {
    const LOOKED_AT: u64 = 512;
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut start));
    let is_printable = |byte: &u8| *byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r');
    read.is_ok() && !start.is_empty() && start.iter().all(is_printable)
}
