//! Writes what a pasted text says, as text and as JSON.

use std::io;

use events::{Clock, Moment};
use format::PageId;

use super::{Event, Group, Pasted};
use crate::json::explain::{ExplainLine, NextCommand, PastedCase, PastedEvent, PastedSummary};
use crate::json::line;
use crate::text_table::{printable, wrap};

/// Width of the text, in columns.
const WIDTH: usize = 100;
/// Width of the column of numbers and of the blanks behind it.
const INDENT: usize = 9;
/// Maximum number of pages to show for each event.
const SHOWN_PAGES: usize = 12;

impl Pasted {
    /// Writes what happened, causes first; what it means together; what each number means; and what to do next.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        writeln!(out, "What happened, causes first:")?;
        self.groups.iter().try_for_each(|group| write_group(group, out))?;
        self.write_limits(out)?;
        let cases = self.cases();
        if !cases.is_empty() {
            writeln!(out, "\nWhat these messages mean together:\n")?;
            cases.iter().try_for_each(|case| paragraph("  * ", case, out))?;
        }
        writeln!(out, "\nWhat each number means:\n")?;
        for (position, (_, explained)) in self.explanations().into_iter().enumerate() {
            if position > 0 {
                writeln!(out)?;
            }
            explained.entries().write(out)?;
        }
        let steps = self.next_steps();
        writeln!(
            out,
            "\nWhat to do next (FILES: the data and log files, or copies; BACKUPS: the folder of the backups):\n"
        )?;
        for (number, step) in steps.iter().enumerate() {
            paragraph(&format!("  {}. ", number + 1), step.what, out)?;
            step.command.map_or(Ok(()), |command| writeln!(out, "       {command}"))?;
        }
        Ok(())
    }

    fn write_limits(&self, out: &mut dyn io::Write) -> io::Result<()> {
        if !self.unknown.is_empty() {
            let numbers: Vec<String> = self.unknown.keys().map(u32::to_string).collect();
            let text = format!("Numbers without an explanation: {}", numbers.join(", "));
            writeln!(out)?;
            paragraph("", &text, out)?;
        }
        if self.is_cut {
            writeln!(out, "\nOnly the first {} MB of the text were read.", super::MOST_BYTES >> 20)?;
        }
        if self.dropped > 0 {
            writeln!(out, "\n{} more messages are not listed: there are too many different ones.", self.dropped)?;
        }
        Ok(())
    }

    /// Writes the same as JSON, one object per line.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        for group in &self.groups {
            for event in &group.events {
                line(&ExplainLine::PastedEvent(json_event(group, event)), out)?;
            }
        }
        let cases = self.cases();
        for case in &cases {
            line(&ExplainLine::PastedCase(PastedCase { text: case }), out)?;
        }
        for (_, explained) in self.explanations() {
            explained.entries().write_json(out)?;
        }
        let steps = self.next_steps();
        for (n, step) in steps.iter().enumerate() {
            line(&ExplainLine::NextCommand(NextCommand { n: n + 1, what: step.what, command: step.command }), out)?;
        }
        let summary = PastedSummary {
            messages: self.events().map(|event| event.seen.count).sum(),
            unknown: self.unknown.keys().copied().collect(),
            complete: !self.is_cut && self.dropped == 0,
        };
        line(&ExplainLine::PastedSummary(summary), out)
    }
}

fn write_group(group: &Group, out: &mut dyn io::Write) -> io::Result<()> {
    let name = group.database.as_deref().map(printable);
    writeln!(out, "\n{}", name.as_deref().unwrap_or("The server, or a database that the text does not name"))?;
    group.events.iter().try_for_each(|event| write_event(event, out))
}

fn write_event(event: &Event, out: &mut dyn io::Write) -> io::Result<()> {
    let Event { number, explained, object, seen, .. } = event;
    let times = if seen.count > 1 { format!(" ({} times)", seen.count) } else { String::new() };
    let follows = if event.rank.follows() { "; follows from others" } else { "" };
    paragraph(&format!("  {number:>5}  "), &format!("{}{times}{follows}", explained.title()), out)?;
    let mut details = Vec::new();
    details.extend(object.clone());
    details.extend(seen.index.map(|index| format!("index ID {index}")));
    details.extend(pages(event));
    details.extend((!seen.files.is_empty()).then(|| seen.files.iter().cloned().collect::<Vec<_>>().join(", ")));
    details.extend(
        seen.os_error
            .filter(|error| *error != u32::from(*number))
            .map(|error| format!("operating system error {error}")),
    );
    details.extend(span(seen.first, seen.last));
    match details.is_empty() {
        true => Ok(()),
        false => paragraph(&" ".repeat(INDENT), &details.join("; "), out),
    }
}

fn pages(event: &Event) -> Option<String> {
    let pages = &event.seen.pages;
    let shown: Vec<String> = pages.iter().take(SHOWN_PAGES).map(PageId::to_string).collect();
    let more = match pages.len().saturating_sub(SHOWN_PAGES) {
        0 => String::new(),
        more if pages.len() >= super::MOST_PAGES => format!(" and at least {more} more"),
        more => format!(" and {more} more"),
    };
    match shown.as_slice() {
        [] => None,
        [page] => Some(format!("page {page}")),
        pages => Some(format!("pages {}{more}", pages.join(", "))),
    }
}

/// The time of an event to the second: `2024-03-01 02:10:11`, or from the first to the last message.
fn span(first: Option<Moment>, last: Option<Moment>) -> Option<String> {
    let shown = |at: Moment| at.to_string().chars().take(19).collect::<String>();
    let (first, last) = (shown(first?), shown(last?));
    match first == last {
        true => Some(first),
        false => Some(format!("{first} to {last}")),
    }
}

fn json_event<'a>(group: &'a Group, event: &'a Event) -> PastedEvent<'a> {
    let Event { number, explained, rank, object, seen } = event;
    PastedEvent {
        number: *number,
        title: explained.title(),
        layer: rank.layer.name(),
        follows: rank.follows(),
        database: group.database.as_deref(),
        object: object.as_deref(),
        index_id: seen.index,
        pages: seen.pages.iter().map(|page| format!("{}:{}", page.file, page.page)).collect(),
        files: seen.files.iter().map(String::as_str).collect(),
        os_error: seen.os_error,
        count: seen.count,
        first: seen.first.map(|at| at.iso(Clock::Local)),
        last: seen.last.map(|at| at.iso(Clock::Local)),
    }
}

/// Writes a paragraph. `first` starts the first line; the other lines are indented by the width of `first`.
fn paragraph(first: &str, text: &str, out: &mut dyn io::Write) -> io::Result<()> {
    let margin = first.len();
    for (number, text) in wrap(&printable(text), WIDTH - margin).iter().enumerate() {
        match number {
            0 => writeln!(out, "{first}{text}")?,
            _ => writeln!(out, "{:margin$}{text}", "")?,
        }
    }
    Ok(())
}
