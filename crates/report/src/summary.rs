//! A report as a person at a terminal wants it: the verdict, causes before consequences with the names of objects, what to do,
//! what was not verified by its causes, and the commands that show more.
//!
//! Programs and scripts get the other formats; this one may change.

pub(crate) mod findings;
pub(crate) mod head;
pub(crate) mod lines;
pub(crate) mod not_verified;
#[cfg(test)]
mod tests;

use std::io;

use check::Report;

use crate::View;
use lines::Lines;

/// Findings that are shown unless the view says otherwise.
const MOST_FINDINGS: usize = 20;

/// What a summary may look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// Columns of a line.
    pub columns: usize,
    /// Whether the verdict has a color.
    pub has_color: bool,
}

/// What stands in the commands that a summary ends with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Commands<'a> {
    /// The paths that were checked, as they stand in a command.
    pub paths: &'a str,
    /// What printed the results: `check`, or `merge`.
    pub command: &'a str,
    /// Its options and paths, without its format.
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
    let example = findings::write(report, view.max_findings.unwrap_or(MOST_FINDINGS), &mut lines)?;
    let limit = not_verified::write(report, &mut lines)?;
    head::write_beyond(report, &mut lines)?;
    head::write_end(report, commands, (example.as_ref(), limit), &mut lines)
}

/// Writes the results of one of several databases without the commands that show more, and a blank line after them.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_verdict(report: &Report, view: View, style: Style, out: &mut dyn io::Write) -> io::Result<()> {
    let mut lines = Lines::new(style, out);
    head::write(report, &mut lines)?;
    findings::write(report, view.max_findings.unwrap_or(MOST_FINDINGS), &mut lines)?;
    not_verified::write(report, &mut lines)?;
    head::write_beyond(report, &mut lines)?;
    lines.blank()
}
