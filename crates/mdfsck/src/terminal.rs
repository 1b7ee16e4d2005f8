//! Properties of the terminal on which results are shown: its width, and whether it supports colors. Also writes the
//! summary that is shown on a terminal.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;

use jobs::request::Request;
use report::View;
use report::summary::{Commands, Style};
use terminal_size::{Width, terminal_size_of};

/// Number of columns if the output is not a terminal.
const COLUMNS: usize = 80;
/// Maximum number of columns of a summary, since longer lines are hard to read.
const MOST_COLUMNS: usize = 100;
/// Minimum number of columns of a summary, since a message does not fit into shorter lines.
const LEAST_COLUMNS: usize = 40;

/// Whether stdout is a terminal.
pub(crate) fn is_stdout() -> bool {
    io::stdout().is_terminal()
}

/// The width of the terminal on stdout, in columns.
pub(crate) fn columns() -> usize {
    terminal_size_of(io::stdout()).map_or(COLUMNS, |(Width(columns), _)| usize::from(columns))
}

/// The width and the use of color for a summary on stdout or in a file.
pub(crate) fn style(output: Option<&Path>) -> Style {
    if output.is_some() || !is_stdout() {
        return Style { columns: COLUMNS, has_color: false };
    }
    let columns = terminal_size_of(io::stdout()).map_or(COLUMNS, |(Width(columns), _)| usize::from(columns));
    Style { columns: columns.clamp(LEAST_COLUMNS, MOST_COLUMNS), has_color: has_color() }
}

/// Whether the terminal supports colors, and neither NO_COLOR nor CLICOLOR=0 is set.
fn has_color() -> bool {
    let is_unwanted = anstyle_query::no_color() || anstyle_query::clicolor() == Some(false);
    // An old Windows console may refuse to enable colors.
    let has_escapes = || anstyle_query::windows::enable_ansi_colors().unwrap_or(true);
    !is_unwanted && anstyle_query::term_supports_color() && has_escapes()
}

/// Writes the summary of a check. The summary suggests commands that show more details. If the check is for one of
/// several databases, writes only the verdict, since a table of all databases follows at the end.
pub(crate) fn write_summary(
    report: &findings::Report,
    view: View,
    (arguments, status, is_one_of_several): (&Request, u8, bool),
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let style = style(arguments.results.output.as_deref());
    if is_one_of_several {
        return report::summary::write_verdict(report, view, style, out);
    }
    report::summary::write(report, view, style, Repeated::of(arguments).commands(status), out)
}

/// The command of this run, without secrets. Output texts that suggest the same command with other options build their
/// suggestions from this value.
pub(crate) struct Repeated {
    paths: String,
    command: &'static str,
    arguments: String,
}

impl Repeated {
    pub(crate) fn of(arguments: &Request) -> Self {
        let carve = arguments.carve.then(|| "--carve".to_owned());
        let paths = arguments.paths.iter().map(|path| source::argument(path));
        let paths: Vec<String> = carve.into_iter().chain(paths).collect();
        let is_merge = crate::arguments::shown().next().is_some_and(|command| command == "merge");
        let command = if is_merge { "merge" } else { "check" };
        let arguments = without_format(command, crate::arguments::shown());
        Self { paths: paths.join(" "), command, arguments }
    }

    /// The parts of the suggested commands, for a run that ended with the exit status `status`.
    pub(crate) fn commands(&self, status: u8) -> Commands<'_> {
        Commands { paths: &self.paths, command: self.command, arguments: &self.arguments, status }
    }

    /// The command as the user typed it, without secrets.
    pub(crate) fn command_line(&self) -> String {
        let arguments = crate::arguments::shown().map(|argument| source::argument(Path::new(&argument)));
        ["mdfsck".to_owned()].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
    }
}

/// The arguments after `command`, quoted for a shell, without --format and --html.
fn without_format(command: &str, arguments: impl Iterator<Item = OsString>) -> String {
    let mut arguments = arguments.skip_while(|argument| argument == command);
    let mut kept = Vec::new();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if text == "--format" || text == "--html" {
            arguments.next();
        } else if !text.starts_with("--format=") && !text.starts_with("--html=") {
            kept.push(source::argument(Path::new(&argument)));
        }
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_repeated_with_its_options_and_without_its_format() {
        let repeated = |text: &str| without_format("check", text.split(' ').map(OsString::from));
        assert_eq!(repeated("check --format summary --table T a.mdf"), "--table T a.mdf");
        assert_eq!(repeated("check a.mdf --format=summary --noindex"), "a.mdf --noindex");
        assert_eq!(repeated("check --html a.html a.mdf --html=b.html"), "a.mdf");
        let spaced = ["check", "my files", "it's $5"].map(OsString::from);
        assert_eq!(
            without_format("check", spaced.into_iter()),
            if cfg!(windows) { "\"my files\" \"it's $5\"" } else { "\"my files\" 'it'\\''s $5'" }
        );
    }
}
