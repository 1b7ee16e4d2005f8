//! `mdfsck chain`: shows the points in time to which backups can be restored.

mod proof;
mod verify;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jobs::failure::{Failure, report_read_faults};
use jobs::folders::MAX_DEPTH;
use jobs::inventory;
use jobs::keep;
use jobs::request::RecoveryOptions;
use recovery::Stop;
use report::chains::{Found, script};
use source::backup::{self, BackupMedia, DatabaseChains};
use source::storage::{self, Entry, Kind};

use crate::cli::ChainArguments;
use crate::output::{self, Target};
use crate::speaker::warn;
use proof::Proof;
use verify::Verifier;

pub(crate) fn run(arguments: &ChainArguments) -> Result<u8, Failure> {
    let script_file = script_file(arguments)?;
    let (paths, unchecked, mut status) = find_all(&arguments.paths);
    let (media, unread) = read_media(&paths);
    status |= unread;
    // Every file that is not a backup was already reported as an error.
    if media.is_empty() && status != 0 {
        return Ok(status);
    }
    if media.is_empty() {
        return Err(Failure::unable("no backup file found; give backup files, or the folder that holds them"));
    }
    let mut chains = backup::chains(&media);
    let recovery = RecoveryOptions::from(&arguments.recovery());
    let stop = arguments.at.as_ref().map(|at| Stop::At(at.time));
    let (history, unkept) = keep::usable(arguments.history.as_deref());
    status |= unkept;
    let proof = Proof::of(arguments, &recovery, history.as_deref());
    let verifier = arguments.verify.then_some(Verifier { options: &recovery, stop, proof });
    if let Some(verifier) = &verifier {
        for database in &mut chains {
            status |= take_sound_copies(database, arguments, verifier);
        }
    }
    let mut found = Vec::new();
    for database in &chains {
        let (answer, bits) = look(database, arguments, verifier.as_ref());
        found.push(answer);
        status |= bits;
    }
    let write_script = |out: &mut dyn io::Write| {
        found.iter().enumerate().try_for_each(|(number, found)| {
            if number > 0 {
                writeln!(out)?;
            }
            script::write(found, out)
        })
    };
    for media in &media {
        status |= report_read_faults(&media.read_faults);
    }
    let written = match (script_file, &arguments.script) {
        (None, Some(_)) => output::print(|out| write_script(out)),
        (target, _) => {
            // Writes the script before the list, so that the script exists even if the reader of the list closes the
            // pipe.
            let scripted = target.map_or(Ok(()), |target| target.write(write_script));
            status |= scripted.map_or_else(Failure::report, |()| 0);
            output::print(|out| {
                print(&found, arguments.json, out)?;
                let mut unchecked = unchecked.iter().filter(|_| !arguments.json);
                unchecked.try_for_each(|why| writeln!(out, "\nNOT CHECKED: {}", report::printable(why)))
            })
        }
    };
    Ok(status | written.map_or_else(Failure::report, |()| 0))
}

fn print(found: &[Found<'_>], is_json: bool, out: &mut dyn io::Write) -> io::Result<()> {
    for (number, found) in found.iter().enumerate() {
        if number > 0 && !is_json {
            writeln!(out)?;
        }
        match is_json {
            true => report::chains::write_json(found, out)?,
            false => report::chains::write(found, out)?,
        }
    }
    Ok(())
}

/// The file for the script; `None` if the script goes to standard output, or if no script is requested.
fn script_file(arguments: &ChainArguments) -> Result<Option<Target>, Failure> {
    let Some(path) = arguments.script.as_deref().filter(|path| path.as_os_str() != "-") else {
        return match arguments.script.is_some() && arguments.json {
            true => Err(Failure::usage(
                "--script - and --json cannot both write to standard output; give a file for the script",
            )),
            false => Ok(None),
        };
    };
    // The target may be an existing pipe or terminal, but not an existing file or folder.
    if fs::metadata(path).is_ok_and(|found| found.is_file() || found.is_dir()) {
        return Err(Failure::file_exists(path));
    }
    Target::at_new(path).map(Some)
}

/// Replaces damaged backups of the requested chain by copies. Each damaged backup is replaced by its first copy with
/// which a restore succeeds. Returns the exit-status bits for the damaged backups.
fn take_sound_copies(database: &mut DatabaseChains, arguments: &ChainArguments, verifier: &Verifier<'_>) -> u8 {
    let path = match &arguments.at {
        Some(at) => {
            let moment = database.moment(&at.shown());
            moment.chain.map(|chain| (chain, moment.stops))
        }
        None => database.newest().map(|chain| (chain.clone(), false)),
    };
    let Some((chain, stops)) = path else { return 0 };
    let passed_over = verifier.sound_copies(database, &chain, stops);
    for (damaged, used) in &passed_over {
        warn(format!("{}: is damaged; its copy {} is used instead", damaged.display(), used.display()));
    }
    if passed_over.is_empty() { 0 } else { Failure::CORRUPT }
}

/// Makes the report about a database. Also returns the exit-status bits.
fn look<'a>(
    database: &'a DatabaseChains,
    arguments: &ChainArguments,
    verifier: Option<&Verifier<'_>>,
) -> (Found<'a>, u8) {
    let mut found = Found { database, verified: Vec::new(), at: None, detour: None };
    let mut status = 0;
    if let Some(at) = &arguments.at {
        let time = at.shown();
        let moment = database.moment(&time);
        status |= if moment.chain.is_none() { Failure::INCOMPLETE } else { 0 };
        if let (Some(verifier), Some(chain)) = (verifier, &moment.chain) {
            let (judged, bits) = verifier.verify(database, chain, moment.stops);
            status |= bits;
            let path = |rest: &DatabaseChains| {
                let moment = rest.moment(&time);
                moment.chain.map(|chain| (chain, moment.stops))
            };
            found.detour = verifier.detour(database, (chain, &judged), path);
            found.verified.push(judged.verified);
        }
        found.at = Some((time, moment));
        return (found, status);
    }
    for (number, chain) in database.chains.iter().enumerate() {
        let Some(verifier) = verifier else { break };
        let is_newest = Some(number) == database.newest;
        let (judged, bits) = match is_newest {
            true => verifier.verify_last(database, chain),
            false => verifier.verify(database, chain, false),
        };
        status |= bits;
        if is_newest {
            let path = |rest: &DatabaseChains| rest.newest().map(|chain| (chain.clone(), false));
            found.detour = verifier.detour(database, (chain, &judged), path);
        }
        found.verified.push(judged.verified);
    }
    let has_gap = database.newest().is_none_or(|chain| chain.gap.is_some());
    if has_gap || database.sets.iter().any(|set| !set.is_whole()) {
        status |= Failure::INCOMPLETE;
    }
    (found, status)
}

/// Finds the named files and the backup files in the named folders, and lists each file once. Also returns two more
/// values: the reasons why some files that may hold a backup are skipped, and the exit-status bits for files that
/// cannot be read. The unreadable files are already reported.
pub(crate) fn find_all(named: &[PathBuf]) -> (Vec<PathBuf>, Vec<String>, u8) {
    let mut search = Search::default();
    for path in named {
        match storage::is_folder(path) {
            true => search.folder(path, MAX_DEPTH),
            false => search.paths.push(path.clone()),
        }
    }
    let Search { mut paths, unchecked, status } = search;
    paths.sort();
    // A symbolic link and its target count as one file.
    let mut seen = BTreeSet::new();
    paths.retain(|path| storage::canonical(path).map_or(true, |file| seen.insert(file)));
    (paths, unchecked, status)
}

/// Reads the labels of backup files. Also returns the exit-status bits for files that hold no backup or cannot be read.
pub(crate) fn read_media(paths: &[PathBuf]) -> (Vec<BackupMedia>, u8) {
    let (mut media, mut status) = (Vec::new(), 0);
    for path in paths {
        match backup::media(path) {
            Ok(read) if read.sets.is_empty() => {
                warn(backup::no_set(path));
                status |= Failure::UNABLE;
            }
            Ok(read) => media.push(read),
            Err(error) => status |= Failure { status: Failure::UNABLE, ..Failure::from(error) }.report(),
        }
    }
    (media, status)
}

/// The backup files found so far, and the exit-status bits for files that could not be read.
#[derive(Default)]
struct Search {
    paths: Vec<PathBuf>,
    unchecked: Vec<String>,
    status: u8,
}

impl Search {
    /// Searches a folder and its subfolders. Follows symbolic links only to files, so that the search cannot go in
    /// circles.
    fn folder(&mut self, folder: &Path, depth: usize) {
        let entries = match storage::list(folder) {
            Ok(entries) => entries,
            Err(cause) => return self.unread(folder, &cause),
        };
        storage::announce(entries.iter().filter(|entry| !entry.is_folder).map(|entry| entry.path.as_path()));
        for Entry { path, is_folder } in entries {
            match (is_folder, depth.checked_sub(1)) {
                (true, Some(depth)) => self.folder(&path, depth),
                (true, None) => {
                    warn(format!(
                        "{}: is more than {MAX_DEPTH} folders deep and was not searched; give this folder too",
                        path.display()
                    ));
                    self.status |= Failure::UNABLE;
                }
                (false, _) => self.file(path),
            }
        }
    }

    fn file(&mut self, path: PathBuf) {
        match storage::kind(&path) {
            // Skips pipes, and links to folders.
            Ok(Kind::Folder | Kind::Pipe | Kind::Other) => {}
            // If the kind of a path cannot be read, for example because the path is a dangling link, only its name
            // shows whether it might be a backup.
            Err(cause) if inventory::has_backup_name(&path) || storage::may_be_there(&path, &cause) => {
                self.unread(&path, &cause)
            }
            Err(_) => {}
            Ok(_) => match source::starts_backup(&path) {
                Ok(true) => self.paths.push(path),
                // The file may be a backup with a damaged start.
                Ok(false) if inventory::is_lost_backup(&path) => {
                    warn(backup::no_set(&path));
                    self.status |= Failure::UNABLE;
                }
                Ok(false) => {
                    if let Some(error) = inventory::unchecked(&path) {
                        warn(&error);
                        self.unchecked.push(error.to_string());
                        self.status |= Failure::UNABLE;
                    }
                }
                Err(cause) => self.unread(&path, &cause),
            },
        }
    }

    fn unread(&mut self, path: &Path, cause: &io::Error) {
        warn(format!("{}: cannot be read: {cause}{}", path.display(), source::remedy(cause)));
        self.status |= Failure::UNABLE;
    }
}
