//! Which defaults a command line gets: those that it neither gives itself nor contradicts.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use jobs::failure::Failure;

use super::file::{Default, DefaultsFile};

/// The arguments with the defaults that fit them, and these defaults as they would be typed, each with its file.
///
/// # Errors
/// If the value of a default is not valid.
pub(super) fn with_defaults(
    root: &Command,
    arguments: Vec<OsString>,
    files: &[DefaultsFile],
) -> Result<(Vec<OsString>, Vec<String>), Failure> {
    let Some(command) = arguments.get(1).and_then(|name| root.find_subcommand(name)) else {
        return Ok((arguments, Vec::new()));
    };
    // Of several files, the strongest counts.
    let mut wanted: Vec<(&Default, &DefaultsFile)> = Vec::new();
    for file in files.iter().rev() {
        for default in file.defaults.iter().filter(|default| default.command == command.get_name()) {
            if wanted.iter().all(|(other, _)| other.option != default.option) {
                wanted.push((default, file));
            }
        }
    }
    // Help and version need no defaults.
    let partial = root.clone().ignore_errors(true).try_get_matches_from(&arguments);
    let Some(given) = partial.ok().and_then(|mut matches| matches.remove_subcommand()) else {
        return Ok((arguments, Vec::new()));
    };
    wanted.retain(|(default, _)| !default.typed.is_empty() && !is_given(command, &given.1, &default.option));
    chosen(root, arguments, wanted)
}

/// Whether a command line gives an option itself.
fn is_given(command: &Command, given: &ArgMatches, option: &str) -> bool {
    let id = command.get_arguments().find(|argument| argument.get_long() == Some(option));
    id.is_some_and(|argument| {
        let id = argument.get_id().as_str();
        given.try_contains_id(id).unwrap_or_default() && given.value_source(id) == Some(ValueSource::CommandLine)
    })
}

/// Adds each default that causes no error. A default that needs another one is added after it.
fn chosen(
    root: &Command,
    arguments: Vec<OsString>,
    mut wanted: Vec<(&Default, &DefaultsFile)>,
) -> Result<(Vec<OsString>, Vec<String>), Failure> {
    let (mut all, mut used) = (arguments, Vec::new());
    let mut before = error(root, &all);
    loop {
        let left = wanted.len();
        let mut rest = Vec::new();
        for (default, file) in wanted {
            let mut with = all.clone();
            with.splice(2..2, default.typed.iter().map(OsString::from));
            let after = error(root, &with);
            match &after {
                Some((kind, text)) if is_of_value(*kind) && after != before => {
                    let (path, Default { command, option, .. }) = (file.path.display(), default);
                    return Err(Failure::usage(format!("{path}: [{command}] {option}: {text}")));
                }
                Some(_) if after != before => rest.push((default, file)),
                _ => {
                    let typed = default.typed.join(" ");
                    used.push(format!("{typed} ({})", file.path.display()));
                    (all, before) = (with, after);
                }
            }
        }
        if rest.len() == left {
            return Ok((all, used));
        }
        wanted = rest;
    }
}

/// Why arguments are refused; `None` if they are not.
fn error(root: &Command, arguments: &[OsString]) -> Option<(ErrorKind, String)> {
    let error = root.clone().try_get_matches_from(arguments).err()?;
    Some((error.kind(), crate::cli::usage::text(&error, arguments)))
}

/// Whether an error is about the value of an option, whatever the other options are.
fn is_of_value(kind: ErrorKind) -> bool {
    use ErrorKind::{InvalidValue, TooFewValues, TooManyValues, ValueValidation, WrongNumberOfValues};
    matches!(kind, InvalidValue | TooFewValues | TooManyValues | ValueValidation | WrongNumberOfValues)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::defaults::file::Origin;
    use crate::defaults::limits::Limits;

    fn file(path: &str, typed: &[&str]) -> DefaultsFile {
        let default = |typed: &&str| {
            let option = typed.trim_start_matches('-').split(['=', ' ']).next().unwrap().to_owned();
            Default { command: "check".to_owned(), option, typed: typed.split(' ').map(str::to_owned).collect() }
        };
        let defaults = typed.iter().map(default).collect();
        DefaultsFile { path: PathBuf::from(path), origin: Origin::User, defaults, limits: Limits::default() }
    }

    fn with(files: &[DefaultsFile], given: &str) -> Result<String, String> {
        let arguments = format!("mdfsck {given}").split(' ').map(OsString::from).collect();
        let (all, used) = with_defaults(&Cli::command(), arguments, files).map_err(|failure| failure.text)?;
        let mut added: Vec<String> = used.iter().map(|one| one.split(" (").next().unwrap().to_owned()).collect();
        let typed = added.iter().map(|one| one.split(' ').count()).sum::<usize>();
        assert_eq!(all.len() - 1, given.split(' ').count() + typed);
        added.sort();
        Ok(added.join(" "))
    }

    #[test]
    fn the_command_line_counts_more_than_a_file_and_a_later_file_more_than_an_earlier() {
        let files =
            [file("system", &["--memory=1GB", "--nice"]), file("own", &["--memory=2GB", "--table=a --table=b"])];
        assert_eq!(with(&files, "check x.mdf").unwrap(), "--memory=2GB --nice --table=a --table=b");
        assert_eq!(with(&files, "check --memory 64MB x.mdf").unwrap(), "--nice --table=a --table=b");
        assert_eq!(with(&files, "check --table c x.mdf").unwrap(), "--memory=2GB --nice");
        for without in ["info x.mdf", "check --help", "--version", "chek x.mdf", "completions bash"] {
            assert_eq!(with(&files, without).unwrap(), "", "{without}");
        }
    }

    #[test]
    fn a_default_that_the_command_line_contradicts_is_left_out() {
        let files = [file("own", &["--json", "--window=3h", "--history=h.db", "--range=2GB"])];
        assert_eq!(with(&files, "check x.bak").unwrap(), "--history=h.db --json --range=2GB --window=3h");
        assert_eq!(with(&files, "check --format text x.bak").unwrap(), "--history=h.db --range=2GB --window=3h");
        assert!(!with(&files, "check --alloc x.bak").unwrap().contains("window"));
        assert_eq!(with(&[file("own", &["--range=2GB"])], "check x.bak").unwrap(), "", "no window, so no ranges");
    }

    #[test]
    fn a_default_may_give_what_a_command_needs() {
        let of_watch = Default {
            command: "watch".to_owned(),
            option: "history".to_owned(),
            typed: vec!["--history=h.db".to_owned()],
        };
        let mut files = [file("own", &[])];
        files[0].defaults.push(of_watch);
        assert_eq!(with(&files, "watch b").unwrap(), "--history=h.db");
    }

    #[test]
    fn a_value_that_is_not_valid_is_named_with_its_file() {
        let failure = with(&[file("own", &["--window=3parsecs"])], "check x.mdf").unwrap_err();
        assert!(failure.starts_with("own: [check] window: "), "{failure}");
        assert!(with(&[file("own", &["--window=3parsecs"])], "check --window 3h x.mdf").is_ok());
    }
}
