//! Decides which databases to check. Groups the files at the given paths by database, using the headers of data files
//! and the labels of backups.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use catalog::FileRow;
use source::backup::{self, BackupMedia, BackupPlan, ChainSet, SetChoice, SetKind, SetPlace, Until};
use source::storage::{self, Kind};
use source::{DataFile, Looked, OpenError, SharedFile, read_fully_at};

use crate::failure::Failure;
use crate::host::warn;
use crate::{logs, patterns};

/// Maximum number of file names in a message.
const MOST_NAMES: usize = 10;
/// Extensions of files that hold databases or backups.
const EXTENSIONS: [&str; 6] = ["mdf", "ndf", "bak", "trn", "dif", "diff"];

/// The result of planning a command.
pub enum Planned {
    /// The paths belong to one database.
    One(Vec<PathBuf>),
    /// The paths belong to several databases, which are checked separately.
    Several(Plan),
}

/// The databases to check, and the files to skip.
#[derive(Default)]
pub struct Plan {
    /// The databases and restores, in the order of their first paths.
    pub items: Vec<Item>,
    /// Files that were found in folders and are skipped because they belong to no database.
    pub passed_over: Vec<PathBuf>,
    /// Messages that tell the user what is checked and what is not.
    pub notes: Vec<String>,
}

/// A database to check, or the reason why it cannot be checked.
pub struct Item {
    /// The name of the database; if unknown, the name of its first file.
    pub name: String,
    /// The files of the database.
    pub paths: Vec<PathBuf>,
    /// How to check the database.
    pub job: Job,
}

/// How to check a database.
pub enum Job {
    /// Check the data files among the paths.
    Files {
        /// Whether the primary file is among the paths.
        has_primary: bool,
    },
    /// Restore and check these backup sets.
    Sets(Vec<ChainSet>),
    /// Do not check, but report this failure.
    Refused(Failure),
}

/// Groups the paths by the content of their files. Standard input counts as one database. A single file also counts as
/// one database, unless `choice` selects several backup sets.
///
/// # Errors
///
/// If a pattern has no match.
pub fn plan(paths: &[PathBuf], choice: &SetChoice, until: Until<'_>) -> Result<Planned, Failure> {
    let is_each = matches!(choice, SetChoice::Last | SetChoice::All)
        || matches!(choice, SetChoice::Positions(positions) if positions.len() > 1);
    let is_pipe = paths.iter().any(|path| path.as_os_str() == "-");
    let is_file = matches!(paths, [path] if storage::is_file(path));
    // A restore to a point in time may use any set of a file, and the sets of one file may belong to several databases.
    if is_pipe || is_file && !is_each && until == Until::End {
        return Ok(Planned::One(paths.to_vec()));
    }
    let mut found = Found::default();
    found.read(paths)?;
    Ok(found.decide(paths, choice, until))
}

/// Finds the only database in the paths, for a command that accepts one database. Returns its paths, and its backup
/// sets if they were selected.
///
/// # Errors
/// Errors of [`plan`]; several databases; a database that cannot be read.
pub fn one(
    command: &str,
    paths: &[PathBuf],
    choice: &SetChoice,
    until: Until<'_>,
) -> Result<(Vec<PathBuf>, Option<Vec<ChainSet>>), Failure> {
    let Plan { mut items, notes, .. } = match plan(paths, choice, until)? {
        Planned::One(paths) => return Ok((paths, None)),
        Planned::Several(plan) => plan,
    };
    if items.len() > 1 {
        let names = listed(items.iter().map(|item| item.name.clone()));
        return Err(Failure::usage(format!(
            "{command} reads one database at a time, but these paths hold {names}; give the files of one database"
        )));
    }
    notes.iter().for_each(warn);
    match items.pop() {
        Some(Item { job: Job::Refused(failure), .. }) => Err(failure),
        Some(Item { job: Job::Sets(sets), paths, .. }) => Ok((paths, Some(sets))),
        Some(Item { job: Job::Files { .. }, paths, .. }) => Ok((paths, None)),
        None => Ok((paths.to_vec(), None)),
    }
}

/// All databases and backups in the paths. They may belong to different databases or servers.
pub struct Inventory {
    /// The data files of each database, with its log files.
    pub databases: Vec<Vec<PathBuf>>,
    /// The labels of the backups.
    pub backups: Vec<BackupMedia>,
    /// The reasons why some paths cannot be read.
    pub problems: Vec<Failure>,
    /// Messages to the user.
    pub notes: Vec<String>,
}

/// Lists the databases and backups in the paths. Returns `None` if the paths name one database, only backups, or
/// nothing. In these cases the caller should open the paths unchanged.
///
/// # Errors
///
/// If a pattern has no match.
pub fn inventory(paths: &[PathBuf]) -> Result<Option<Inventory>, Failure> {
    if paths.iter().any(|path| path.as_os_str() == "-") || matches!(paths, [path] if storage::is_file(path)) {
        return Ok(None);
    }
    let mut found = Found::default();
    found.read(paths)?;
    let mut plan = Plan::default();
    let (laid, snapshots) = found.take_snapshots();
    found.databases(laid, &mut plan);
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
        notes: passed_over(&found.passed_over).into_iter().chain(snapshots).collect(),
    }))
}

/// A path that cannot be read.
struct Problem {
    path: PathBuf,
    failure: Failure,
    /// Whether the path is a log file.
    is_log: bool,
}

/// The files in the paths, grouped by type.
#[derive(Default)]
struct Found {
    /// Paths of files that the user named. Files that were found in folders are not included.
    named: HashSet<PathBuf>,
    /// The position of each path in the order in which the paths were found.
    places: HashMap<PathBuf, usize>,
    /// Folders that have log files and no other database files.
    folders_of_logs: Vec<PathBuf>,
    /// Whether the user named a pattern.
    has_patterns: bool,
    data: Vec<DataFile>,
    logs: Vec<PathBuf>,
    backups: Vec<BackupMedia>,
    problems: Vec<Problem>,
    passed_over: Vec<PathBuf>,
    /// The binding GUIDs of databases with several copies among the files.
    copied: HashSet<[u8; 16]>,
    /// Files of database snapshots.
    snapshots: Vec<DataFile>,
    /// The identities of the files seen so far. A file that has two paths is read only once.
    seen: HashSet<Identity>,
    /// The identities of the files that the user named.
    named_files: HashSet<Identity>,
}

impl Found {
    fn read(&mut self, paths: &[PathBuf]) -> Result<(), Failure> {
        let files = paths.iter().filter(|path| !storage::is_folder(path));
        self.named_files = files.filter_map(|path| identity(path)).collect();
        let mut unmatched = Vec::new();
        for path in paths {
            match patterns::expand(path) {
                Ok(Some(expanded)) => {
                    self.has_patterns = true;
                    for (folder, failure) in expanded.unreadable {
                        self.failed(&folder, failure);
                    }
                    for path in expanded.paths {
                        if storage::is_folder(&path) { self.folder(&path) } else { self.file(&path, false) }
                    }
                }
                Ok(None) if storage::is_folder(path) => self.folder(path),
                Ok(None) => self.file(path, true),
                Err(failure) => unmatched.push((path, failure)),
            }
        }
        let is_empty = self.places.is_empty() && self.problems.is_empty();
        // If nothing else was found, there is no table of databases in which the failure could be a row. The failure
        // then ends the command.
        let alone = if is_empty { unmatched.pop() } else { None };
        for (path, failure) in unmatched {
            match alone.is_some() {
                true => warn(&failure.text),
                false => {
                    self.has_patterns = true;
                    self.failed(path, failure);
                }
            }
        }
        alone.map_or(Ok(()), |(_, failure)| Err(failure))
    }

    fn folder(&mut self, folder: &Path) {
        let files: Vec<PathBuf> = match storage::list(folder) {
            Ok(entries) => entries.into_iter().filter(|entry| !entry.is_folder).map(|entry| entry.path).collect(),
            Err(cause) => {
                let path = folder.to_owned();
                return self.problem(folder, OpenError::Io { path, cause });
            }
        };
        storage::announce(files.iter().map(PathBuf::as_path));
        let count = |this: &Self| (this.data.len() + this.backups.len(), this.logs.len());
        let before = count(self);
        for file in &files {
            match storage::kind(file) {
                Ok(Kind::File { .. }) => self.file(file, false),
                // Reports a file with the extension of a database file or a backup even if it cannot be looked up, for
                // example because it is a dangling link. Ignores other such files, unless they may exist in object
                // storage.
                Err(cause) if has_database_name(file) || storage::may_be_there(file, &cause) => self.file(file, false),
                _ => {}
            }
        }
        let after = count(self);
        if after.0 == before.0 && after.1 > before.1 {
            self.folders_of_logs.push(folder.to_owned());
        }
    }

    fn file(&mut self, path: &Path, is_named: bool) {
        let identity = identity(path);
        // A file that is found in a folder counts as named if the user also named it, even by another path.
        let is_named = is_named || identity.as_ref().is_some_and(|identity| self.named_files.contains(identity));
        if identity.is_some_and(|identity| !self.seen.insert(identity)) {
            return;
        }
        if is_named {
            self.named.insert(path.to_owned());
        }
        let place = self.places.len();
        self.places.insert(path.to_owned(), place);
        match source::look(path) {
            Ok(Looked::Data(file)) => self.data.push(*file),
            Ok(Looked::Snapshot(file)) => self.snapshots.push(*file),
            Ok(Looked::Log) => self.logs.push(path.to_owned()),
            Ok(Looked::Backup) => match backup::media(path) {
                Ok(media) if media.sets.is_empty() => self.problem(path, backup::no_set(path)),
                Ok(media) => self.backups.push(media),
                Err(error) => self.problem(path, error),
            },
            Ok(Looked::Refused(error)) if is_named => self.problem(path, error),
            // The file may contain a database in a form that cannot be read, for example compressed, so it must be
            // reported.
            Ok(Looked::Refused(error)) if may_hold_database(path, &error) => self.problem(path, error),
            Ok(Looked::Refused(error)) if has_database_name(path) && !is_text(path) => self.problem(path, error),
            // An empty or damaged log file is not reported here, since it can be judged only together with its
            // database.
            Ok(Looked::Refused(_)) if has_log_name(path) => {}
            Ok(Looked::Refused(_)) => self.passed_over.push(path.to_owned()),
            Err(error) => self.problem(path, error),
        }
    }

    fn problem(&mut self, path: &Path, error: OpenError) {
        self.failed(path, error.into());
    }

    fn failed(&mut self, path: &Path, failure: Failure) {
        let next = self.places.len();
        self.places.entry(path.to_owned()).or_insert(next);
        self.problems.push(Problem { path: path.to_owned(), failure, is_log: has_log_name(path) });
    }

    /// The position at which the first file of an item was found.
    fn place(&self, item: &Item) -> Option<usize> {
        item.paths.iter().filter_map(|path| self.places.get(path)).min().copied()
    }

    /// Decides whether the paths belong to one database or to several.
    fn decide(mut self, paths: &[PathBuf], choice: &SetChoice, until: Until<'_>) -> Planned {
        let mut plan = Plan::default();
        let has_data = !self.data.is_empty();
        // If the header of a file is damaged, it is unknown to which database the file belongs.
        let nameless = self.data.iter().filter(|file| file.binding_guid.is_none()).map(|file| file.path.clone());
        let nameless: HashSet<PathBuf> = nameless.collect();
        let (laid, snapshots) = self.take_snapshots();
        self.databases(laid, &mut plan);
        let is_simple = self.backups(choice, until, &mut plan);
        let is_expected = |problem: &Problem| {
            self.named.contains(&problem.path) || has_log_name(&problem.path) || paths.contains(&problem.path)
        };
        let has_found_problems = self.problems.iter().any(|problem| !is_expected(problem));
        // A path that cannot be read becomes a row of the table, since other databases can still be checked.
        let has_rows = self.problems.iter().any(|problem| !problem.is_log);
        // A secondary file that the user named belongs either to the only named database or to none. It is not counted
        // as another database.
        let is_named =
            |item: &Item| item.paths.first().is_some_and(|path| self.named.contains(path) && !nameless.contains(path));
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
            [] => !has_found_problems,
            _ if has_found_problems || has_rows => false,
            [Item { job: Job::Sets(_), .. }] => is_simple,
            [_] => true,
            [_, _, ..] => is_of_one,
        };
        if is_one {
            snapshots.iter().for_each(warn);
            let own = plan.items.pop().map(|item| item.paths).filter(|_| self.has_patterns && plan.items.is_empty());
            return Planned::One(own.unwrap_or_else(|| paths.to_vec()));
        }
        self.foreign_logs(has_data, &mut plan);
        for Problem { path, failure, .. } in std::mem::take(&mut self.problems) {
            plan.items.push(Item { name: file_name(&path), paths: vec![path], job: Job::Refused(failure) });
        }
        plan.items.sort_by_key(|item| self.place(item));
        plan.notes.extend(passed_over(&self.passed_over));
        plan.notes.extend(snapshots);
        plan.passed_over = self.passed_over;
        Planned::Several(plan)
    }

    /// Removes the snapshot files. Returns the snapshot files that the user named, which are later combined with the
    /// files of their database. Also returns a message about the snapshot files that were found in folders.
    fn take_snapshots(&mut self) -> (Vec<DataFile>, Option<String>) {
        let copies = source::copies_without_holes(&self.data.iter().collect::<Vec<_>>());
        self.snapshots.extend(self.data.extract_if(.., |file| copies.contains(&file.path)));
        let (laid, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.snapshots).into_iter().partition(|file| self.named.contains(&file.path));
        let said = passed_over_snapshots(&others, &self.data);
        (laid, said)
    }

    /// Groups the data files into databases. Adds to each database the snapshot files of this database that the user
    /// named.
    fn databases(&mut self, mut laid: Vec<DataFile>, plan: &mut Plan) {
        let groups = source::databases(std::mem::take(&mut self.data), &catalog_has);
        let mut logs: HashMap<[u8; 16], Vec<&PathBuf>> = HashMap::new();
        for path in self.logs.iter().filter(|path| self.named.contains(*path)) {
            if let Some(binding) = log::binding_guid(path) {
                logs.entry(binding).or_default().push(path);
            }
        }
        let binding = |files: &[DataFile]| files.iter().find_map(|file| file.binding_guid);
        let mut copies: HashMap<[u8; 16], usize> = HashMap::new();
        groups.iter().filter_map(|files| binding(files)).for_each(|binding| *copies.entry(binding).or_default() += 1);
        copies.retain(|_, count| *count > 1);
        self.copied = copies.into_keys().collect();
        for files in groups {
            let Some(first) = files.first() else { continue };
            let name = if first.file_id == 1 { source::database_name(&first.path) } else { None };
            let name = name.unwrap_or_else(|| file_name(&first.path));
            let mut paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
            let binding = binding(&files);
            // If there are several copies of a database, each copy has its log in its own folder.
            let is_copy = binding.is_some_and(|binding| self.copied.contains(&binding));
            // If there are several copies of a database, it is unknown to which copy a snapshot belongs, so no snapshot
            // files are added.
            let over = laid.extract_if(.., |file| !is_copy && binding.is_some() && file.binding_guid == binding);
            paths.extend(over.map(|file| file.path));
            let is_beside = |path: &Path| files.iter().any(|file| is_same_folder(path, &file.path));
            let own = binding.and_then(|binding| logs.get(&binding)).into_iter().flatten().copied();
            paths.extend(own.filter(|path| !is_copy || is_beside(path)).cloned());
            paths.extend(self.folders_of_logs.iter().cloned());
            plan.items.push(Item { name, paths, job: Job::Files { has_primary: first.file_id == 1 } });
        }
        for DataFile { path, file_id, .. } in laid {
            self.problem(&path, OpenError::Snapshot { path: path.clone(), file_id });
        }
    }

    /// Adds the restores of the backups to the plan. Returns whether the restores use all backup sets that were found.
    fn backups(&mut self, choice: &SetChoice, until: Until<'_>, plan: &mut Plan) -> bool {
        if let SetChoice::Positions(positions) = choice {
            let has = |media: &BackupMedia| media.sets.iter().any(|set| positions.contains(&set.position));
            let without: Vec<BackupMedia> = self.backups.extract_if(.., |media| !has(media)).collect();
            for media in without {
                let error = OpenError::NoSuchSet { path: media.path.clone(), sets: media.sets.len() };
                self.problem(&media.path, error);
            }
        }
        let named = &self.named;
        let plans = backup::plan(&self.backups, choice, until, &|path| named.contains(path));
        let mut is_simple = matches!(choice, SetChoice::Newest | SetChoice::Positions(_));
        let is_among_others = !plan.items.is_empty() || plans.len() > 1;
        for BackupPlan { database, restores, unused, logs, refused_logs, refused, sets } in plans {
            let copies = copies_of(&self.backups, restores.iter().flatten());
            // The sum includes named log backups that do not continue the other backups. They are refused later, when
            // all backups are opened together.
            is_simple &= restores.iter().map(Vec::len).sum::<usize>() + refused_logs.len() == sets;
            let has_log = |sets: &&Vec<ChainSet>| sets.iter().any(|set| set.set.kind == SetKind::Log);
            // When a backup file is checked, the check itself reports the unused sets in this file, so they are left
            // out here. But if the restore has log backups, the check does not report unused sets.
            let in_use: HashSet<&PathBuf> =
                restores.iter().filter(|sets| !has_log(sets)).flatten().flat_map(|set| &set.paths).collect();
            let unused: Vec<SetPlace> = unused.into_iter().filter(|(path, _)| !in_use.contains(path)).collect();
            // Unused copies of a checked set are listed separately. A copy has the same content as the set, but its
            // bytes may be damaged.
            let is_copy = |place: &SetPlace| copies.contains(place);
            let (of_copies, unused): (Vec<SetPlace>, Vec<SetPlace>) = unused.into_iter().partition(is_copy);
            if !of_copies.is_empty() {
                let names =
                    listed(of_copies.iter().map(|(path, position)| format!("{}, set {position}", path.display())));
                plan.notes.push(format!(
                    "{database}: not checked, because these backups are copies of checked backups: {names}; give the copies to check them too"
                ));
            }
            if !unused.is_empty() {
                let names = listed(unused.iter().map(|(path, position)| format!("{}, set {position}", path.display())));
                plan.notes.push(match until {
                    Until::End => format!(
                        "{database}: not checked, because newer backups are checked: {names}; --set all checks each full and \
                        differential backup"
                    ),
                    _ => format!(
                        "{database}: not checked, because a restore to this point in time does not need these backups: {names}"
                    ),
                });
            }
            let has_files = restores.iter().flatten().any(|set| set.set.kind.is_of_files());
            let has_full = restores.iter().flatten().any(|set| !set.set.kind.is_of_files());
            let (named_logs, found_logs): (Vec<_>, Vec<_>) =
                logs.into_iter().partition(|(path, _)| !has_full && named.contains(path));
            if !found_logs.is_empty() {
                let names: BTreeSet<String> = found_logs.iter().map(|(path, _)| path.display().to_string()).collect();
                plan.notes.push(format!(
                    "{database}: log backups are checked only together with a complete full backup{}: {}",
                    if has_full { ", without --set last and --set all" } else { "" },
                    listed(names.into_iter())
                ));
            }
            for (path, position) in named_logs {
                let failure = match is_among_others {
                    _ if has_files => OpenError::LogOfFiles { path: path.clone(), position }.into(),
                    true => Failure::usage(format!(
                        "{}: set {position} is a log backup, and no full backup of its database '{database}' was given; name \
                         the full backup too, or leave the log backup out",
                        path.display()
                    )),
                    false => OpenError::LogBackup { path: path.clone(), position }.into(),
                };
                self.problems.push(Problem { path, failure, is_log: false });
            }
            for (path, error) in refused_logs {
                match named.contains(&path) {
                    true => self.problems.push(Problem { path, failure: Failure::usage(error), is_log: true }),
                    false => plan.notes.push(format!("{error}; skipped")),
                }
            }
            let problem = |(path, error): (PathBuf, OpenError)| Problem { path, failure: error.into(), is_log: false };
            self.problems.extend(refused.into_iter().map(problem));
            for sets in restores {
                let mut seen = HashSet::new();
                let paths = sets.iter().flat_map(|set| &set.paths).filter(|path| seen.insert(*path));
                let paths: Vec<PathBuf> = paths.cloned().collect();
                plan.items.push(Item { name: database.clone(), paths, job: Job::Sets(sets) });
            }
        }
        is_simple
    }

    /// Refuses log files that the user named and that belong to none of the databases.
    fn foreign_logs(&mut self, has_data: bool, plan: &mut Plan) {
        let used: HashSet<&PathBuf> = plan.items.iter().flat_map(|item| &item.paths).collect();
        let is_left = |path: &&PathBuf| self.named.contains(*path) && !used.contains(path);
        for path in self.logs.iter().filter(is_left) {
            let is_of_copies = || log::binding_guid(path).is_some_and(|binding| self.copied.contains(&binding));
            let failure = match has_data {
                true if is_of_copies() => Failure::usage(format!(
                    "{}: is the log of a database that was given in several copies; move the log into the folder of its copy, or \
                     leave it out",
                    path.display()
                )),
                true => Failure::usage(format!(
                    "{}: is a log of another database; give the data files of its database too, or leave the log out",
                    path.display()
                )),
                false => OpenError::Log { path: path.clone() }.into(),
            };
            self.problems.push(Problem { path: path.clone(), failure, is_log: true });
        }
    }
}

/// Whether the catalog in a primary data file lists `file`. Compares the file ID and, if the catalog contains names,
/// also the name.
fn catalog_has(primary: &DataFile, file: &DataFile) -> bool {
    let Ok(source) = source::DataFiles::open(std::slice::from_ref(&primary.path)) else { return false };
    let name = file_name(&file.path).to_lowercase();
    let is_it = |row: &FileRow| {
        let known = logs::base_name(row).to_lowercase();
        row.file_id == file.file_id && row.file_type != logs::LOG && (known.is_empty() || known == name)
    };
    catalog::load(&source).files.iter().any(is_it)
}

fn is_same_folder(one: &Path, other: &Path) -> bool {
    let folder = |path: &Path| match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => storage::canonical(folder).ok(),
        _ => storage::canonical(Path::new(".")).ok(),
    };
    folder(one).is_some_and(|one| Some(one) == folder(other))
}

/// Identifies a file even if it is found by several paths: by its inode where possible, otherwise by its canonical path
/// or its URL.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    #[cfg(unix)]
    Inode(u64, u64),
    Name(PathBuf),
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    if storage::url(path).is_some() {
        return Some(Identity::Name(path.to_owned()));
    }
    fs::metadata(path).ok().map(|metadata| Identity::Inode(metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    storage::canonical(path).ok().map(Identity::Name)
}

/// A message that lists the skipped files.
fn passed_over(paths: &[PathBuf]) -> Vec<String> {
    if paths.is_empty() {
        return Vec::new();
    }
    let names = listed(paths.iter().map(|path| path.display().to_string()));
    vec![format!("skipped, because these files are not data files, logs or backups: {names}")]
}

/// A message that lists the snapshot files that are not checked, and says how to check them.
fn passed_over_snapshots(snapshots: &[DataFile], data: &[DataFile]) -> Option<String> {
    let first = snapshots.first()?;
    let names = listed(snapshots.iter().map(|file| file.path.display().to_string()));
    let is_of = |file: &&DataFile| file.binding_guid.is_some() && file.binding_guid == first.binding_guid;
    let (own, bases): (Vec<&DataFile>, Vec<&DataFile>) =
        (snapshots.iter().filter(is_of).collect(), data.iter().filter(is_of).collect());
    let ids = |files: &[&DataFile]| files.iter().map(|file| file.file_id).collect::<BTreeSet<_>>();
    let is_one = own.len() == ids(&own).len() && bases.len() == ids(&bases).len() && ids(&own) == ids(&bases);
    let how = match is_one {
        true => {
            let paths: Vec<PathBuf> = own.iter().chain(&bases).map(|file| file.path.clone()).collect();
            format!("'mdfsck check {}' checks a snapshot together with its database", source::arguments(&paths))
        }
        false => "to check a snapshot, name its files together with the files of its database".to_owned(),
    };
    Some(format!("files of database snapshots, skipped: {names}; {how}"))
}

/// The reason why a file in a folder is not checked although it may contain a database or backup. `None` for data
/// files, logs and backups, which are checked, and for unrelated files.
pub fn unchecked(path: &Path) -> Option<OpenError> {
    match source::look(path) {
        Ok(Looked::Refused(error)) if may_hold_database(path, &error) => Some(error),
        _ => None,
    }
}

fn may_hold_database(path: &Path, error: &OpenError) -> bool {
    match error {
        OpenError::Held { .. } => true,
        OpenError::Compressed { .. } => has_database_name(&unpacked(path)),
        _ => false,
    }
}

/// The path without its last extension, which is the extension that a compression program has added.
fn unpacked(path: &Path) -> PathBuf {
    path.with_extension("")
}

/// The first names of a list, followed by the number of names that are left out.
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

/// Whether a file has the extension of a database file or a backup.
pub fn has_database_name(path: &Path) -> bool {
    has_extension(path, &EXTENSIONS)
}

/// Whether a file has the extension of a backup.
pub fn has_backup_name(path: &Path) -> bool {
    has_extension(path, &["bak", "trn", "dif", "diff"])
}

/// Whether a file may be a backup with a damaged start. Such a file has the extension of a backup, but its content is
/// neither a data file nor text. Text is excluded because other programs use .bak for text files.
pub fn is_lost_backup(path: &Path) -> bool {
    has_backup_name(path) && !is_text(path) && !source::is_data_file(path)
}

fn has_log_name(path: &Path) -> bool {
    has_extension(path, &["ldf"]) || logs::is_log(path)
}

/// The places of all sets that have the same GUID as a set in `read`. These are the sets in `read` and all their
/// copies.
fn copies_of<'s>(media: &[BackupMedia], read: impl Iterator<Item = &'s ChainSet>) -> HashSet<SetPlace> {
    let guids: HashSet<&str> = read.filter_map(|set| set.set.guid.as_deref()).collect();
    let sets = media.iter().flat_map(|media| media.sets.iter().map(move |set| (media, set)));
    let copies = sets.filter(|(_, set)| set.guid.as_deref().is_some_and(|guid| guids.contains(guid)));
    copies.map(|(media, set)| (media.path.clone(), set.position)).collect()
}

/// Whether the content of a file is text. Other programs use .bak for text files. A damaged database file is not text:
/// it may be empty, or contain zeros or random bytes.
pub fn is_text(path: &Path) -> bool {
    let mut start = [0; 512];
    let read = SharedFile::open(path).and_then(|file| read_fully_at(&file, &mut start, 0));
    let start = start.get(..*read.as_ref().unwrap_or(&0)).unwrap_or_default();
    let is_printable = |byte: &u8| *byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r');
    read.is_ok() && !start.is_empty() && start.iter().all(is_printable)
}
