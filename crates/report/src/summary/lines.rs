//! Lines that fit the width of the terminal.

use std::io;

use anstyle::AnsiColor;

use super::Style;
use crate::text_table::{padded, printable, width, wrap};

/// The meaning of the verdict, shown as a color.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tone {
    Good,
    Bad,
    Doubtful,
}

/// Writes lines of the terminal's width.
pub(super) struct Lines<'a> {
    style: Style,
    out: &'a mut dyn io::Write,
}

impl<'a> Lines<'a> {
    pub(super) fn new(style: Style, out: &'a mut dyn io::Write) -> Self {
        Self { style, out }
    }

    pub(super) fn blank(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// Writes a paragraph. `first` starts the first line; the other lines are indented by the width of `first`. Control
    /// characters are escaped.
    pub(super) fn paragraph(&mut self, first: &str, text: &str) -> io::Result<()> {
        self.toned(None, first, text)
    }

    /// Writes a paragraph as [`Self::paragraph`] does, with `first` in a color.
    pub(super) fn toned(&mut self, tone: Option<Tone>, first: &str, text: &str) -> io::Result<()> {
        let (first, text) = (printable(first), printable(text));
        let margin = width(&first);
        let start = match tone.filter(|_| self.style.has_color) {
            Some(tone) => {
                let color = match tone {
                    Tone::Good => AnsiColor::Green,
                    Tone::Bad => AnsiColor::Red,
                    Tone::Doubtful => AnsiColor::Yellow,
                };
                let style = color.on_default().bold();
                let words = first.trim_end();
                let blanks = first.get(words.len()..).unwrap_or_default();
                format!("{style}{words}{style:#}{blanks}")
            }
            None => first.into_owned(),
        };
        for (number, line) in wrap(&text, self.style.columns.saturating_sub(margin)).iter().enumerate() {
            match number {
                0 => writeln!(self.out, "{}", format!("{start}{line}").trim_end())?,
                _ => writeln!(self.out, "{:margin$}{line}", "")?,
            }
        }
        Ok(())
    }

    /// Writes a text and as many places as fit into `most` lines, then the number of further places.
    pub(super) fn places(&mut self, margin: &str, what: &str, places: &[String], most: usize) -> io::Result<()> {
        let room = self.style.columns.saturating_sub(width(margin));
        let mut text = what.to_owned();
        for (at, place) in places.iter().enumerate() {
            let left = places.len() - at - 1;
            let comma = if left > 0 { "," } else { "" };
            let longer = format!("{text} {place}{comma}");
            let with_rest = if left > 0 { format!("{longer} and {left} more") } else { longer.clone() };
            if at > 0 && wrap(&with_rest, room).len() > most {
                text = format!("{} and {} more", text.trim_end_matches(','), places.len() - at);
                break;
            }
            text = longer;
        }
        self.paragraph(margin, &text)
    }

    /// Writes a command on a line of its own. The line is not wrapped, so that the command can be copied. The purpose
    /// follows if it fits.
    pub(super) fn command(&mut self, command: &str, what_for: &str) -> io::Result<()> {
        let command = padded(&printable(command), COMMAND_COLUMNS);
        let line = format!("  {command}  {what_for}");
        let line = if width(&line) <= self.style.columns { &line } else { &format!("  {command}") };
        writeln!(self.out, "{}", line.trim_end())
    }
}

/// Width of the column of commands.
const COMMAND_COLUMNS: usize = 50;
