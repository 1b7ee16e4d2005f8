//! A comparison as text and as JSON.

use std::io;

use findings::Report;

use super::{Comparison, Counted, Entry, Form, MOST_MESSAGES, Message, Place, Results, State, Subject};
use crate::json::comparison::{
    ComparedCounts, ComparedError, ComparedMessage, ComparisonHead, ComparisonLine, ComparisonSummary, Explanation,
};
use crate::json::lines::{ErrorText, Line};
use crate::json::{VERSION, line, not_verified_line};
use crate::text_table::{TextTable, printable, wrap};
use crate::{View, not_verified};

/// Width of texts, in columns.
const WIDTH: usize = 100;

/// Whether both sides are complete, so that a missing message means something.
fn is_complete(results: &Results, report: &Report, comparison: &Comparison) -> bool {
    results.is_whole() && report.complete_as_allowed() && comparison.hidden == 0
}

/// Writes the comparison as lines of JSON.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(
    results: &Results,
    report: &Report,
    comparison: &Comparison,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let head = ComparisonHead {
        v: VERSION,
        tool: "mdfsck",
        version: env!("CARGO_PKG_VERSION"),
        database: &report.database.name,
        server_database: results.database.as_deref(),
        form: results.form.name(),
        localized: results.is_localized,
        messages: results.messages,
        not_understood: results.not_understood,
        hidden: comparison.hidden,
        whole: results.is_whole(),
    };
    line(&ComparisonLine::Comparison(head), out)?;
    for entry in &comparison.entries {
        line(&ComparisonLine::Compared(compared(entry)), out)?;
    }
    for counts in &comparison.counted {
        line(&ComparisonLine::Counted(counted(counts)), out)?;
    }
    for (reason, numbers) in &comparison.reasons {
        let explanation = Explanation {
            id: reason.id,
            why: reason.why,
            count: numbers.values().sum(),
            msgs: numbers.keys().copied().collect(),
        };
        line(&ComparisonLine::Explanation(explanation), out)?;
    }
    for text in &report.read_errors {
        line(&Line::Error(ErrorText::of(text)), out)?;
    }
    for entry in &report.not_verified {
        line(&Line::NotVerified(not_verified_line(report, entry)), out)?;
    }
    let counts = |state: State| comparison.counted.iter().filter(|counted| counted.state == state).count();
    let summary = ComparisonSummary {
        both: comparison.count(State::Both),
        server_only: comparison.count(State::ServerOnly),
        mdfsck_only: comparison.count(State::MdfsckOnly),
        other_number: comparison.count(State::OtherNumber),
        explained: comparison.count(State::Explained),
        counts_equal: counts(State::Both),
        counts_differ: counts(State::ServerOnly),
        differs: comparison.differs(),
        complete: is_complete(results, report, comparison),
    };
    line(&ComparisonLine::Summary(summary), out)
}

fn compared(entry: &Entry) -> ComparedError<'_> {
    let place = place(entry);
    ComparedError {
        state: entry.state.name(),
        object_id: place.object,
        index_id: place.index,
        file: place.page.map(|page| page.file),
        page: place.page.map(|page| page.page),
        slot: place.slot,
        server: entry.server.as_ref().map(message),
        mdfsck: entry.own.as_ref().map(message),
        explanation: entry.reason.map(|reason| reason.id),
        limit: entry.limit.map(|limit| limit.id),
    }
}

/// The place of an entry: that of this program's message, whose owner is always known, or else that of the server's.
fn place(entry: &Entry) -> Place {
    let of = |message: &Option<Message>| message.as_ref().map(|message| message.place);
    of(&entry.own).or_else(|| of(&entry.server)).unwrap_or_default()
}

fn message(message: &Message) -> ComparedMessage<'_> {
    ComparedMessage {
        msg: message.number,
        state: message.state,
        text: &message.text,
        id: message.check,
        from: if message.columns.is_some() { "row" } else { "text" },
        inferred: message.is_number_inferred,
    }
}

fn counted(counted: &Counted) -> ComparedCounts<'_> {
    let (msg, object) = match &counted.subject {
        Subject::Object(name) => (2593, Some(name.as_str())),
        Subject::Broker(number) => (*number, None),
    };
    ComparedCounts {
        state: match counted.state {
            State::Both => "equal",
            State::Explained => "explained",
            _ => "differs",
        },
        msg,
        object,
        server_rows: counted.server.0,
        server_pages: object.map(|_| counted.server.1),
        mdfsck_rows: counted.own.map(|(rows, _)| rows),
        mdfsck_pages: counted.own.filter(|_| object.is_some()).map(|(_, pages)| pages),
    }
}

/// Writes the comparison for people.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_text(
    results: &Results,
    report: &Report,
    comparison: &Comparison,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    head(results, report, comparison, out)?;
    let mut table = TextTable::new(&[1]);
    for (name, state) in [
        ("found by both", State::Both),
        ("found by the server alone", State::ServerOnly),
        ("found by mdfsck alone", State::MdfsckOnly),
        ("found under another number", State::OtherNumber),
        ("explained", State::Explained),
    ] {
        table.row([name.to_owned(), comparison.count(state).to_string()]);
    }
    writeln!(out)?;
    table.write(0, out)?;
    for (title, state) in [
        ("Found by the server alone", State::ServerOnly),
        ("Found by mdfsck alone", State::MdfsckOnly),
        ("Found under another number", State::OtherNumber),
        ("Explained", State::Explained),
    ] {
        section(title, comparison.entries.iter().filter(|entry| entry.state == state), out)?;
    }
    counts(comparison, out)?;
    explanations(comparison, out)?;
    writeln!(out)?;
    let verdict = match (comparison.differs(), is_complete(results, report, comparison)) {
        (true, _) => "The results differ.",
        (false, true) => "Nothing differs beyond what is explained.",
        (false, false) => "Nothing differs beyond what is explained, but not everything could be compared.",
    };
    writeln!(out, "{verdict}")?;
    not_verified::write(report, View::default(), out)
}

fn head(results: &Results, report: &Report, comparison: &Comparison, out: &mut dyn io::Write) -> io::Result<()> {
    let form = match results.form {
        Form::Table => "rows of TABLERESULTS",
        Form::Text => "text, so that places are those that the messages name",
    };
    let of = results.database.as_ref().map_or_else(String::new, |name| format!(" of '{}'", printable(name)));
    let name = printable(&report.database.name);
    writeln!(out, "DBCC results{of} against a check of '{name}'")?;
    writeln!(out, "{} messages, from {form}", results.messages)?;
    if results.messages == 0 {
        writeln!(out, "The results have no message, as WITH NO_INFOMSGS prints for a sound database.")?;
    }
    if let Some(example) = &results.example {
        writeln!(out, "{} rows are no messages; the first is: {}", results.not_understood, printable(example))?;
    }
    if comparison.hidden > 0 {
        writeln!(
            out,
            "{} errors or counts were not compared: there are more than {MOST_MESSAGES}.",
            comparison.hidden
        )?;
    }
    if !results.gave_up.is_empty() {
        let numbers: Vec<String> = results.gave_up.iter().map(u32::to_string).collect();
        writeln!(out, "The server's run ended early: message {}", numbers.join(", "))?;
    } else if let Some(total) = results.total.filter(|&total| total > results.errors) {
        writeln!(out, "The last line counts {total} errors, but the results contain {}.", results.errors)?;
    } else if !results.is_whole() && results.total.is_none() {
        match results.is_localized {
            true => writeln!(
                out,
                "The line with the number of errors is known only in English, so the results may be an excerpt."
            )?,
            false => writeln!(out, "The line with the number of errors is missing, so the results may be an excerpt.")?,
        }
    }
    Ok(())
}

fn section<'a>(title: &str, entries: impl Iterator<Item = &'a Entry>, out: &mut dyn io::Write) -> io::Result<()> {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    for entry in entries {
        let number = |message: &Option<Message>| message.as_ref().map(|message| message.number.to_string());
        let numbers = match (number(&entry.server), number(&entry.own)) {
            (Some(server), Some(own)) if server != own => format!("{server} (mdfsck: {own})"),
            (Some(number), _) | (None, Some(number)) => number,
            (None, None) => String::new(),
        };
        let reason = entry.reason.map_or_else(String::new, |reason| format!(": {}", reason.id));
        let limit = entry.limit.map_or_else(String::new, |limit| format!(" ({})", limit.id));
        writeln!(out, "  {numbers}  {}{reason}{limit}", place(entry))?;
        let text = entry.server.as_ref().or(entry.own.as_ref()).map_or("", |message| message.text.as_str());
        for line in wrap(&printable(text), WIDTH - 8) {
            writeln!(out, "        {line}")?;
        }
    }
    Ok(())
}

fn counts(comparison: &Comparison, out: &mut dyn io::Write) -> io::Result<()> {
    if comparison.counted.is_empty() {
        return Ok(());
    }
    let equal = comparison.counted.iter().filter(|counted| counted.state == State::Both).count();
    writeln!(out, "\nCounts: {equal} of {} are equal", comparison.counted.len())?;
    let mut table = TextTable::new(&[1, 2]);
    table.row(["", "server", "mdfsck", ""]);
    for counted in comparison.counted.iter().filter(|counted| counted.state != State::Both) {
        let is_object = matches!(counted.subject, Subject::Object(_));
        let shown = |(rows, pages): (u64, u64)| match is_object {
            true => format!("{rows} rows, {pages} pages"),
            false => rows.to_string(),
        };
        let name = match &counted.subject {
            Subject::Object(name) => name.clone(),
            Subject::Broker(number) => format!("message {number}"),
        };
        let own = counted.own.map_or_else(|| "not listed".to_owned(), shown);
        let note = if counted.state == State::Explained { "explained: damaged-counts" } else { "" };
        table.row([name, shown(counted.server), own, note.to_owned()]);
    }
    if equal < comparison.counted.len() { table.write(2, out) } else { Ok(()) }
}

fn explanations(comparison: &Comparison, out: &mut dyn io::Write) -> io::Result<()> {
    if comparison.reasons.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nExplanations")?;
    for (reason, numbers) in &comparison.reasons {
        let count: u64 = numbers.values().sum();
        let numbers: Vec<String> = numbers.keys().map(u32::to_string).collect();
        let messages = if count == 1 { "message" } else { "messages" };
        writeln!(out, "  {}: {count} {messages} ({})", reason.id, numbers.join(", "))?;
        for line in wrap(reason.why, WIDTH - 4) {
            writeln!(out, "    {line}")?;
        }
    }
    Ok(())
}
