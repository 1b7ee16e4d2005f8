//! Options from files, so that they need not be repeated in every job: defaults for the long options of any command, and
//! limits that no command line can exceed.

mod choose;
mod file;
mod limits;
mod show;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::CommandFactory;
use jobs::failure::Failure;

use crate::cli::Cli;
use file::{DefaultsFile, Origin};

pub(crate) use show::run;

/// The environment variable that names a file in place of the others.
const CONFIG: &str = "MDFSCK_CONFIG";
/// The environment variable that names the folder of the system's file, for tests. It is ignored on a machine that has such
/// a file: the limits of that file hold for everyone.
const SYSTEM_FOLDER: &str = "MDFSCK_ETC";
/// The name of the files.
const NAME: &str = "mdfsck.toml";

/// The options that came from files, as they would be typed, each with its file.
static USED: OnceLock<Vec<String>> = OnceLock::new();

/// Adds the options from files to the arguments of the user.
///
/// # Errors
/// If a file cannot be read or contains a mistake, or if the user asks for more than a limit allows.
pub(crate) fn applied(arguments: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let files = files()?;
    if files.is_empty() {
        return Ok(arguments);
    }
    let root = Cli::command();
    let (arguments, used) = choose::with_defaults(&root, arguments, &files)?;
    let arguments = limits::held(&root, arguments, &files)?;
    let _ = USED.set(used);
    Ok(arguments)
}

/// The options that came from files, as they would be typed, each with its file.
pub(crate) fn used() -> &'static [String] {
    USED.get().map(Vec::as_slice).unwrap_or_default()
}

/// The files that exist, the strongest last.
fn files() -> Result<Vec<DefaultsFile>, Failure> {
    let mut files = Vec::new();
    for (path, origin) in places() {
        files.extend(file::read(&path, origin)?);
    }
    // A file that is named explicitly replaces the defaults of the others; the limits of the system's file remain.
    if env::var_os(CONFIG).is_some() {
        files.iter_mut().filter(|file| file.origin != Origin::Named).for_each(|file| file.defaults.clear());
    }
    Ok(files)
}

/// The places of the files, the strongest last.
fn places() -> Vec<(PathBuf, Origin)> {
    let mut places: Vec<(PathBuf, Origin)> = system().map(|path| (path, Origin::System)).into_iter().collect();
    match env::var_os(CONFIG) {
        // An empty name stands for no file.
        Some(path) if path.is_empty() => {}
        Some(path) => places.push((path.into(), Origin::Named)),
        None => places.extend(of_user().map(|path| (path, Origin::User))),
    }
    places
}

/// The file of the system.
fn system() -> Option<PathBuf> {
    let own = match cfg!(windows) {
        true => env::var_os("ProgramData").map(|data| PathBuf::from(data).join("mdfsck").join(NAME)),
        false => Some(PathBuf::from("/etc").join(NAME)),
    };
    let other = env::var_os(SYSTEM_FOLDER).map(|folder| PathBuf::from(folder).join(NAME));
    other.filter(|_| own.as_ref().is_none_or(|own| !own.exists())).or(own)
}

/// The file of the user.
fn of_user() -> Option<PathBuf> {
    let folder = match cfg!(windows) {
        true => env::var_os("APPDATA").map(PathBuf::from),
        false => match env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()) {
            Some(folder) => Some(PathBuf::from(folder)),
            None => env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")),
        },
    };
    folder.filter(|folder| folder.is_absolute()).map(|folder| folder.join("mdfsck").join(NAME))
}
