//! Usage errors: one line with the mistake and the correct form.

use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Cli;

/// Extensions of files that users sometimes name in place of a command.
const FILES: [&str; 6] = ["mdf", "ndf", "ldf", "bak", "trn", "dif"];

/// Rewrites arguments in forms that are common in other programs to the forms that clap expects: `mdfsck help check`,
/// `mdfsck -v`, `mdfsck page 1 153 FILE`, `mdfsck history -- FILE runs`.
pub(crate) fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = given.collect();
    let is = |at: usize, text: &str| arguments.get(at).is_some_and(|argument| argument == text);
    let is_number = |at: usize| {
        let text = arguments.get(at).and_then(|argument| argument.to_str()).unwrap_or_default();
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if is(1, "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    } else if is(1, "-v") && arguments.len() == 2 {
        arguments.pop();
        arguments.push("--version".into());
    } else if is(1, "page")
        && is_number(2)
        && is_number(3)
        && !arguments.get(3).is_some_and(|file| Path::new(file).exists())
    {
        let page = arguments.remove(3);
        if let Some(file) = arguments.get_mut(2) {
            file.push(":");
            file.push(page);
        }
    } else if is(1, "history")
        && let Some(at) = arguments.iter().position(|argument| argument == "--")
        && arguments.get(at + 2).and_then(|word| word.to_str()).is_some_and(is_verb_of_history)
    {
        // clap accepts no subcommand after `--`.
        arguments.remove(at);
        if let Some(file) = arguments.get_mut(at)
            && file.as_encoded_bytes().starts_with(b"-")
        {
            *file = Path::new(".").join(&*file).into();
        }
    }
    arguments
}

fn is_verb_of_history(word: &str) -> bool {
    Cli::command().find_subcommand("history").is_some_and(|history| history.find_subcommand(word).is_some())
}

/// The text of a clap error, in one line.
pub(crate) fn text(error: &clap::Error, arguments: &[OsString]) -> String {
    let value = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    };
    let (command, path) = command_of(arguments);
    match error.kind() {
        ErrorKind::InvalidSubcommand if path.is_empty() => {
            let given = value(ContextKind::InvalidSubcommand).concat();
            let extension = Path::new(&given).extension().map(|end| end.to_string_lossy().to_lowercase());
            if Path::new(&given).exists() || extension.is_some_and(|end| FILES.contains(&end.as_str())) {
                return format!("{given} is not a command; to check it: mdfsck check {given}");
            }
            let near = offer(&value(ContextKind::SuggestedSubcommand));
            format!("{given} is not a command{near}; 'mdfsck --help' lists all commands")
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = value(ContextKind::InvalidArg).join(" ");
            let example = example(&command).map_or_else(String::new, |example| format!(", for example: {example}"));
            format!("{path}: {missing} is missing{example}")
        }
        ErrorKind::UnknownArgument => {
            let given = value(ContextKind::InvalidArg).concat();
            let near = offer(&value(ContextKind::SuggestedArg));
            let help = if path.is_empty() { "mdfsck --help".to_owned() } else { format!("mdfsck {path} --help") };
            format!("unexpected argument '{given}'{near}; '{help}' lists all options")
        }
        _ => {
            let text = error.render().to_string();
            // clap appends tips, the usage and a hint to --help, each after an empty line.
            let ends = ["Usage:", "For more", "tip:"];
            let lines = text.lines().map(str::trim);
            let lines = lines.filter(|line| !line.is_empty() && !ends.iter().any(|end| line.starts_with(end)));
            let text = lines.collect::<Vec<_>>().join(" ");
            let near = [ContextKind::SuggestedValue, ContextKind::SuggestedSubcommand].map(|kind| offer(&value(kind)));
            format!("{}{}", text.trim_start_matches("error: "), near.concat())
        }
    }
}

/// Formats a suggestion such as `; did you mean a or b?`. Empty if there are no similar names.
fn offer(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

/// The command that the arguments name, and its name as the user wrote it. If the arguments name no command: the
/// program itself and an empty name.
fn command_of(arguments: &[OsString]) -> (clap::Command, String) {
    let (mut command, mut path) = (Cli::command(), String::new());
    for word in arguments.iter().skip(1).filter_map(|argument| argument.to_str()) {
        let Some(found) = command.find_subcommand(word).cloned() else { break };
        let separator = if path.is_empty() { "" } else { " " };
        path = format!("{path}{separator}{word}");
        command = found;
    }
    (command, path)
}

/// The first example in the help of a command, without its caption.
fn example(command: &clap::Command) -> Option<String> {
    let help = command.get_after_long_help().or_else(|| command.get_after_help())?.to_string();
    let line = help.lines().map(str::trim).find(|line| line.starts_with("mdfsck "))?;
    Some(line.split("  ").next().unwrap_or(line).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn refused(given: &str) -> String {
        let arguments = arguments(format!("mdfsck {given}").split(' ').map(OsString::from));
        match Cli::try_parse_from(&arguments) {
            Ok(_) => "accepted".to_owned(),
            Err(error) => text(&error, &arguments),
        }
    }

    #[test]
    fn what_is_wrong_is_one_line_with_a_way_out() {
        for (given, expected) in [
            ("sales.mdf", "sales.mdf is not a command; to check it: mdfsck check sales.mdf"),
            ("explan", "explan is not a command; did you mean plan or explain?; 'mdfsck --help' lists all commands"),
            ("check", "check: <PATH>... is missing, for example: mdfsck check sales.mdf sales_2.ndf"),
            ("info", "info: <PATH>... is missing, for example: mdfsck info sales.mdf"),
            ("check -5 a", "unexpected argument '-5'; 'mdfsck check --help' lists all options"),
            (
                "check --maxdp 3 a",
                "unexpected argument '--maxdp'; did you mean --maxdop?; 'mdfsck check --help' lists all options",
            ),
        ] {
            assert_eq!(refused(given), expected, "{given}");
        }
        assert!(!refused("check --format xml a").contains('\n'));
        assert_eq!((refused("page 1 153 a.mdf"), refused("page 1,153 a.mdf")), ("accepted".into(), "accepted".into()));
    }

    #[test]
    fn what_people_write_elsewhere_is_understood() {
        let words = |given: &str| {
            let words = arguments(given.split(' ').map(OsString::from));
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words("mdfsck help"), "mdfsck --help");
        assert_eq!(words("mdfsck help check"), "mdfsck check --help");
        assert_eq!(words("mdfsck -v"), "mdfsck --version");
        assert_eq!(words("mdfsck page 1 153 a.mdf"), "mdfsck page 1:153 a.mdf");
        assert_eq!(words("mdfsck check help -v"), "mdfsck check help -v");
        assert_eq!(words("mdfsck history --json -- h.db runs"), "mdfsck history --json h.db runs");
        assert_eq!(words("mdfsck history -- -h.db coverage"), "mdfsck history ./-h.db coverage");
        for as_it_is in
            ["mdfsck history --json -- h.db", "mdfsck history h.db forget -- runs", "mdfsck check -- a runs"]
        {
            assert_eq!(words(as_it_is), as_it_is);
        }
        assert_eq!(refused("history --json -- h.db runs"), "accepted");
    }
}
