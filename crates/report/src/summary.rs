//! A report for a person at a terminal. It has the verdict, the findings with their objects (causes before
//! consequences), the recommended actions, the things that were not verified, and commands that show more details.
//!
//! Programs and scripts should use the other formats, because the form of this report may change.

pub(crate) mod findings;
pub(crate) mod head;
pub(crate) mod lines;
pub(crate) mod not_verified;
#[cfg(test)]
mod tests;

use std::io;

use ::findings::Report;

use crate::View;

use lines::Lines;

/// Number of findings that are shown if the view sets no limit.
const MOST_FINDINGS: usize = 20;

/// The width and color of a summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// Width of a line, in columns.
    pub columns: usize,
    /// Whether the verdict has a color.
    pub has_color: bool,
}

/// The parts from which a summary composes the commands that it suggests at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Commands<'a> {
    /// The checked paths, quoted for use in a command, after `--carve` if they are raw bytes.
    pub paths: &'a str,
    /// The command that printed the results: `check` or `merge`.
    pub command: &'a str,
    /// The command's options and paths, without its format.
    pub arguments: &'a str,
    /// The exit status.
    pub status: u8,
}

/// Writes `report` to `out`.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(
    report: &Report,
    view: View,
    style: Style,
    commands: Commands<'_>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut lines = Lines::new(style, out);
    head::write(report, &mut lines)?;
    head::write_patterns(report, &mut lines)?;
    let example = findings::write(report, view.max_findings.unwrap_or(MOST_FINDINGS), &mut lines)?;
    let limit = not_verified::write(report, &mut lines)?;
    head::write_beyond(report, &mut lines)?;
    head::write_end(report, commands, (example.as_ref(), limit), &mut lines)
}

/// Writes the results of one of several databases, followed by an empty line. No commands are suggested.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_verdict(report: &Report, view: View, style: Style, out: &mut dyn io::Write) -> io::Result<()> {
    let mut lines = Lines::new(style, out);
    head::write(report, &mut lines)?;
    head::write_patterns(report, &mut lines)?;
    findings::write(report, view.max_findings.unwrap_or(MOST_FINDINGS), &mut lines)?;
    not_verified::write(report, &mut lines)?;
    head::write_beyond(report, &mut lines)?;
    lines.blank()
}
