//! Reading a file of defaults and limits.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command, CommandFactory};
use jobs::failure::Failure;
use toml::{Table, Value};

use super::limits::Limits;
use crate::cli::Cli;

/// The most bytes of a file.
const MOST_BYTES: u64 = 1 << 20;
/// The section with limits.
const LIMITS: &str = "limits";

/// Where a file comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// The system: for all users.
    System,
    /// The user's own folder.
    User,
    /// The environment names it.
    Named,
}

/// A file of defaults and limits.
#[derive(Debug)]
pub(super) struct DefaultsFile {
    pub(super) path: PathBuf,
    pub(super) origin: Origin,
    /// The defaults, in the order of the file.
    pub(super) defaults: Vec<Default>,
    pub(super) limits: Limits,
}

/// A default of an option of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Default {
    /// The name of the command.
    pub(super) command: String,
    /// The long name of the option, without hyphens.
    pub(super) option: String,
    /// How the option would be typed, once for each of its values; nothing if a flag is off.
    pub(super) typed: Vec<String>,
}

/// Reads a file. `None` if it does not exist, unless the user has named it.
///
/// # Errors
/// If the file cannot be read or contains a mistake. The error names the file, the place and the cause.
pub(super) fn read(path: &Path, origin: Origin) -> Result<Option<DefaultsFile>, Failure> {
    let mut text = String::new();
    match File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound && origin != Origin::Named => return Ok(None),
        Err(error) => return Err(failed(path, &format!("cannot be read: {error}"))),
    }
    if text.len() as u64 > MOST_BYTES {
        return Err(failed(path, "is larger than 1 MB"));
    }
    parsed(&text, path, origin).map(Some)
}

fn failed(path: &Path, cause: &str) -> Failure {
    Failure::usage(format!("{}: {cause}", path.display()))
}

fn parsed(text: &str, path: &Path, origin: Origin) -> Result<DefaultsFile, Failure> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let cause = error.message().replace('\n', "; ");
        failed(path, &format!("line {}: {cause}", before.matches('\n').count() + 1))
    })?;
    let root = Cli::command();
    let (mut defaults, mut limits) = (Vec::new(), Limits::default());
    for (section, content) in table {
        let Value::Table(content) = content else {
            return Err(failed(
                path,
                &format!("{section} is in no section; write it below [check] or another command"),
            ));
        };
        if section == LIMITS {
            for (name, value) in content {
                limits.set(&name, value).map_err(|cause| failed(path, &format!("[limits] {cause}")))?;
            }
            continue;
        }
        let Some(command) = root.get_subcommands().find(|command| command.get_name() == section) else {
            let names = root.get_subcommands().map(Command::get_name).chain([LIMITS]);
            return Err(failed(path, &format!("[{section}] is not a command{}", near(&section, names))));
        };
        for (name, value) in content {
            let option = default(command, &name, value);
            defaults.push(option.map_err(|cause| failed(path, &format!("[{section}] {cause}")))?);
        }
    }
    Ok(DefaultsFile { path: path.to_owned(), origin, defaults, limits })
}

/// A default of an option of a command. An error is the reason without the place.
fn default(command: &Command, name: &str, value: Value) -> Result<Default, String> {
    let options = || command.get_arguments().filter(|option| is_given(option));
    let Some(option) = options().find(|option| option.get_long() == Some(name)) else {
        return Err(format!("{name} is not an option{}", near(name, options().filter_map(Arg::get_long))));
    };
    let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
    let typed = match value {
        Value::Boolean(is_on) if is_flag => is_on.then(|| format!("--{name}")).into_iter().collect(),
        Value::Boolean(true) if option.get_num_args().is_some_and(|values| values.min_values() == 0) => {
            vec![format!("--{name}")]
        }
        _ if is_flag => return Err(format!("{name} must be true or false")),
        Value::Array(_) if !matches!(option.get_action(), ArgAction::Append) => {
            return Err(format!("{name} must have one value"));
        }
        Value::Array(values) => {
            let values = values.into_iter().map(|value| scalar(name, value)).collect::<Result<Vec<_>, _>>()?;
            values.into_iter().map(|value| format!("--{name}={value}")).collect()
        }
        value => vec![format!("--{name}={}", scalar(name, value)?)],
    };
    Ok(Default { command: command.get_name().to_owned(), option: name.to_owned(), typed })
}

/// Whether an option can have a default: not help and version, and nothing that is hidden.
fn is_given(option: &Arg) -> bool {
    !option.is_hide_set() && matches!(option.get_action(), ArgAction::Set | ArgAction::Append | ArgAction::SetTrue)
}

/// A value as it would be typed.
pub(super) fn scalar(name: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Datetime(time) => Ok(time.to_string()),
        Value::Boolean(_) | Value::Array(_) | Value::Table(_) => Err(format!("{name} must be a text or a number")),
    }
}

/// The name nearest to one that is unknown, as an end of a sentence; empty if none is near.
pub(super) fn near<'n>(unknown: &str, names: impl Iterator<Item = &'n str>) -> String {
    let distance = |name: &str| jobs::scope::distance(&unknown.replace('_', "-"), name);
    let near = names.map(|name| (distance(name), name)).min().filter(|(changes, _)| *changes <= unknown.len() / 3 + 1);
    near.map(|(_, name)| format!("; did you mean {name}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<DefaultsFile, String> {
        parsed(text, Path::new("m.toml"), Origin::User).map_err(|failure| failure.text)
    }

    #[test]
    fn each_kind_of_option_is_typed_as_a_user_would() {
        let text = "[check]\nmemory = '4GB'\nmaxdop = 2\nnice = true\nno-infomsgs = false\ntable = ['a', 'dbo.b']\n\
                    constraints = true\n[watch]\nhistory = \"/h.db\"\n";
        let file = read_text(text).unwrap();
        let typed: Vec<(&str, String)> =
            file.defaults.iter().map(|one| (one.command.as_str(), one.typed.join(" "))).collect();
        let typed = |command: &str| {
            let mut of: Vec<&str> = typed
                .iter()
                .filter(|(name, typed)| *name == command && !typed.is_empty())
                .map(|(_, typed)| typed.as_str())
                .collect();
            of.sort_unstable();
            of.join(" ")
        };
        assert_eq!(typed("check"), "--constraints --maxdop=2 --memory=4GB --nice --table=a --table=dbo.b");
        assert_eq!(typed("watch"), "--history=/h.db");
        assert_eq!(read_text("").unwrap().defaults, []);
    }

    #[test]
    fn a_mistake_is_one_line_with_the_file_and_the_place() {
        for (text, expected) in [
            ("[check]\nmemory == 2", "m.toml: line 2: "),
            ("memory = '2GB'", "m.toml: memory is in no section; write it below [check] or another command"),
            ("[chek]\n", "m.toml: [chek] is not a command; did you mean check?"),
            ("[check]\nmax_dop = 2", "m.toml: [check] max_dop is not an option; did you mean maxdop?"),
            ("[check]\nqqqqqqqqqqq = 2", "m.toml: [check] qqqqqqqqqqq is not an option"),
            ("[check]\npart-pages = 8", "m.toml: [check] part-pages is not an option"),
            ("[check]\nhelp = true", "m.toml: [check] help is not an option"),
            ("[check]\nnice = 3", "m.toml: [check] nice must be true or false"),
            ("[check]\nmemory = ['1GB', '2GB']", "m.toml: [check] memory must have one value"),
            ("[check]\nmemory = { most = 1 }", "m.toml: [check] memory must be a text or a number"),
            ("[limits]\nmemroy = '1GB'", "m.toml: [limits] memroy is not a limit; did you mean memory?"),
            ("[limits]\nmaxdop = 0", "m.toml: [limits] maxdop must be a number from 1 to 65535"),
            ("[limits]\nmemory = 'much'", "m.toml: [limits] memory: not a size such as 256MB or 2GB"),
        ] {
            let failure = read_text(text).unwrap_err();
            assert!(failure.starts_with(expected) && !failure.contains('\n'), "{text}: {failure}");
        }
    }
}
