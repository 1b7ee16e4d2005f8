//! Limits that no command line can exceed, as Resource Governor limits CHECKDB.

use std::ffi::OsString;
use std::path::Path;

use clap::{ArgMatches, Command};
use jobs::failure::Failure;
use jobs::size;
use toml::Value;

use super::file::{DefaultsFile, near, scalar};

/// A check without `--memory` never uses more than this.
const LARGEST_DEFAULT_MEMORY: u64 = 2 << 30;

/// The names of the limits, which are those of options.
pub(super) const NAMES: [&str; 3] = ["memory", "maxdop", "io-limit"];

/// The limits of a file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Limits {
    /// In the order of [`NAMES`]: bytes, threads, bytes per second.
    most: [Option<u64>; 3],
}

impl Limits {
    /// Sets a limit. An error is the reason without the place.
    pub(super) fn set(&mut self, name: &str, value: Value) -> Result<(), String> {
        let Some(place) = NAMES.iter().position(|known| *known == name).and_then(|at| self.most.get_mut(at)) else {
            return Err(format!("{name} is not a limit{}", near(name, NAMES.into_iter())));
        };
        *place = Some(amount(name, &scalar(name, value)?)?);
        Ok(())
    }

    /// The limits with their names.
    pub(super) fn each(self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.most).filter_map(|(name, most)| Some((name, most?)))
    }
}

/// A limit as a user would type it.
pub(super) fn text(name: &str, most: u64) -> String {
    if name == "maxdop" { most.to_string() } else { size::text(most).replace(' ', "") }
}

fn amount(name: &str, text: &str) -> Result<u64, String> {
    match name {
        "maxdop" => {
            let threads = text.parse::<u16>().ok().filter(|threads| *threads > 0);
            threads.map(u64::from).ok_or_else(|| format!("{name} must be a number from 1 to {}", u16::MAX))
        }
        _ => match size::bytes(text) {
            Ok(0) => Err(format!("{name} must be more than 0")),
            bytes => bytes.map_err(|cause| format!("{name}: {cause}")),
        },
    }
}

/// Refuses arguments that exceed a limit, and adds the limits where the arguments give nothing.
///
/// # Errors
/// If an argument exceeds a limit.
pub(super) fn held(
    root: &Command,
    mut arguments: Vec<OsString>,
    files: &[DefaultsFile],
) -> Result<Vec<OsString>, Failure> {
    let Some(command) = arguments.get(1).and_then(|name| root.find_subcommand(name)) else { return Ok(arguments) };
    // What cannot be parsed is refused by the caller.
    let Ok(matches) = root.clone().try_get_matches_from(&arguments) else { return Ok(arguments) };
    let Some((_, given)) = matches.subcommand() else { return Ok(arguments) };
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let mut added = Vec::new();
    for name in NAMES {
        let of_files = files.iter().flat_map(|file| file.limits.each().map(move |limit| (limit, file.path.as_path())));
        let lowest = of_files.filter(|((of, _), _)| *of == name).min_by_key(|((_, most), _)| *most);
        let Some(((_, most), path)) = lowest else { continue };
        let Some(option) = command.get_arguments().find(|option| option.get_long() == Some(name)) else { continue };
        // The number 0 of threads stands for all processors.
        let all = match name {
            "memory" => LARGEST_DEFAULT_MEMORY,
            "maxdop" => processors,
            _ => u64::MAX,
        };
        match typed(given, option.get_id().as_str()) {
            Some(asked) => refuse_more(name, &asked, (most, path), all)?,
            None if most < all => added.push(format!("--{name}={}", text(name, most)).into()),
            None => {}
        }
    }
    arguments.splice(2..2, added);
    Ok(arguments)
}

/// What the command line, or a default, gives for an option.
fn typed(given: &ArgMatches, id: &str) -> Option<String> {
    let is_given = given.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
    let value = given.try_get_raw(id).ok()??.next_back()?.to_string_lossy().into_owned();
    is_given.then_some(value)
}

fn refuse_more(name: &str, asked: &str, (most, path): (u64, &Path), all: u64) -> Result<(), Failure> {
    let amount = match asked {
        "0" if name == "maxdop" => all,
        // What is no amount is refused by the caller.
        asked => amount(name, asked).unwrap_or_default(),
    };
    if amount <= most {
        return Ok(());
    }
    let (path, most) = (path.display(), text(name, most));
    Err(Failure::usage(format!("--{name} {asked}: {path} allows at most {most} on this machine")))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::defaults::file::Origin;

    fn file(path: &str, limits: &[(&str, &str)]) -> DefaultsFile {
        let mut all = Limits::default();
        for (name, value) in limits {
            all.set(name, Value::String((*value).to_owned())).unwrap();
        }
        DefaultsFile { path: PathBuf::from(path), origin: Origin::System, defaults: Vec::new(), limits: all }
    }

    fn held_at(files: &[DefaultsFile], given: &str) -> Result<String, String> {
        let arguments = format!("mdfsck {given}").split(' ').map(OsString::from).collect();
        let held = held(&Cli::command(), arguments, files).map_err(|failure| failure.text)?;
        Ok(held.iter().skip(1).map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_lowest_limit_counts_and_a_command_line_cannot_exceed_it() {
        let files = [
            file("/etc/mdfsck.toml", &[("memory", "1GB"), ("maxdop", "1"), ("io-limit", "200MB")]),
            file("own", &[("memory", "4GB"), ("io-limit", "50MB")]),
        ];
        assert_eq!(
            held_at(&files, "check --memory 2GB a.mdf").unwrap_err(),
            "--memory 2GB: /etc/mdfsck.toml allows at most 1GB on this machine"
        );
        assert_eq!(
            held_at(&files, "check --io-limit 60MB a.mdf").unwrap_err(),
            "--io-limit 60MB: own allows at most 50MB on this machine"
        );
        assert!(held_at(&files, "check --maxdop 9 a.mdf").is_err());
        assert_eq!(
            held_at(&files, "check --memory 512MB --maxdop 1 --io-limit 50MB a.mdf").unwrap(),
            "check --memory 512MB --maxdop 1 --io-limit 50MB a.mdf"
        );
        let added = held_at(&files, "check --maxdop 1 a.mdf").unwrap();
        assert_eq!(added, "check --memory=1GB --io-limit=50MB --maxdop 1 a.mdf");
    }

    #[test]
    fn a_limit_above_the_default_and_one_that_a_command_lacks_change_nothing() {
        let files = [file("f", &[("memory", "64GB"), ("maxdop", "4096")])];
        for given in ["check a.mdf", "check --maxdop 0 a.mdf", "explain 824", "checks a.mdf", "check --nonsense"] {
            assert_eq!(held_at(&files, given).unwrap(), given);
        }
    }
}
