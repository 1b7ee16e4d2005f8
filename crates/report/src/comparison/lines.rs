//! Messages as DBCC prints them: pasted text, or the output of sqlcmd.

use super::message::{LONGEST, Message};
use crate::heading::{Heading, LEVELS, cut, digits, separated, start};

/// The beginnings, in small letters, of lines that a client prints when a command has ended. A text that has such a line
/// but no message is the output of a command that printed no message.
const ENDS: [&str; 3] = ["commands completed successfully", "completion time", "changed database context"];
/// Messages of level 10, which DBCC prints without a heading: the beginning, what follows somewhere, and the number.
const UNHEADED: [(&str, &str, u32); 26] = [
    ("DBCC results for ", "", 2536),
    ("There are ", " pages for object ", 2593),
    ("Service Broker Msg ", " analyzed: ", 8997),
    ("DBCC execution completed", "", 2528),
    ("Warning: NO_INDEX ", "", 7966),
    ("repair_", " is the minimum repair level ", 8958),
    ("CHECK", " errors not associated with any single object", 8954),
    ("CHECK", " consistency errors in table ", 8990),
    ("CHECK", " consistency errors in database ", 8989),
    ("Object ID ", " cannot be checked for this object because the common language runtime ", 2518),
    ("Computed columns and CLR types cannot be checked ", "", 2519),
    ("Cannot process rowset ID ", " which was not checked", 2594),
    ("Cannot process table ", " which was not checked", 2595),
    ("The check statement was aborted. DBCC CHECKCATALOG ", "", 5230),
    ("The check statement was aborted. DBCC CHECKALLOC ", "", 5253),
    ("Object ID ", " A deadlock occurred while trying to lock this object ", 5231),
    ("DBCC CHECKDB will not check ", "", 5232),
    ("DBCC ", " could not output results for this command ", 5271),
    ("Object ID ", " is not supported with memory optimized tables", 5296),
    ("DBCC CheckDatabase on resource database will be skipped ", "", 7994),
    ("DBCC cross-rowset check failed for object ", " due to an internal query error", 5237),
    ("DBCC cross-rowset check failed for object ", "", 8975),
    ("The Cross Rowset check on nonclustered columnstore index ", "", 5283),
    ("The Cross Rowset check between clustered columnstore index ", "", 5297),
    ("Warning: Could not complete filestream consistency checks ", "", 7951),
    ("Database tempdb allocation errors prevent ", "", 8999),
];

/// Number of bytes behind a heading among which the name of the server and the line are looked for.
const TAIL: usize = 300;

/// A piece of the text.
pub(super) enum Piece<'a> {
    /// A message with a heading.
    Message(Message),
    /// A message without a heading, or a line that is no message.
    Line(&'a str),
    /// A line that a client prints when a command has ended.
    End,
    /// Another line of a client: the command itself, or a number of rows.
    Between,
}

/// Passes each message and each line outside messages to `piece`. Returns whether any heading is in another language
/// than English.
pub(super) fn read<'a>(text: &'a str, mut piece: impl FnMut(Piece<'a>)) -> bool {
    let mut open: Option<(Heading, String)> = None;
    let mut is_localized = false;
    for line in text.lines() {
        let mut line = line.trim_start_matches(['>', ' ', '\t', '\u{feff}']).trim_end();
        if heading(line).is_none()
            && let Some((before, next)) = split(line)
        {
            append(&mut open, before, &mut piece);
            line = next;
        }
        while let Some((heading, rest)) = heading(line) {
            close(&mut open, &mut piece);
            is_localized |= !heading.is_english;
            open = Some((heading, String::new()));
            line = rest;
            let Some((before, next)) = split(line) else { break };
            append(&mut open, before, &mut piece);
            line = next;
        }
        let of_client = of_client(line);
        let has_text = open.as_ref().is_some_and(|(_, text)| !text.is_empty());
        // The text behind a heading may be that of a message that usually has none.
        let is_of_open = |number| open.as_ref().is_some_and(|(heading, _)| heading.number == number && !has_text);
        let is_unheaded = unheaded(line).is_some_and(|number| !is_of_open(number));
        if of_client.is_some() || is_unheaded || (line.is_empty() && has_text) {
            close(&mut open, &mut piece);
        }
        match of_client {
            Some(line) => piece(line),
            None => append(&mut open, line, &mut piece),
        }
    }
    close(&mut open, &mut piece);
    is_localized
}

fn close<'a>(open: &mut Option<(Heading, String)>, piece: &mut dyn FnMut(Piece<'a>)) {
    if let Some((heading, text)) = open.take() {
        piece(Piece::Message(Message::new(heading.number, heading.level, heading.state.into(), &text, None)));
    }
}

/// What a line is that a client prints between messages; `None` for another line.
fn of_client<'a>(line: &str) -> Option<Piece<'a>> {
    let small: String = line.chars().take(40).map(|c| c.to_ascii_lowercase()).collect();
    let is_count =
        small.starts_with('(') && small.chars().nth(1).is_some_and(|c| c.is_ascii_digit()) && !small.contains(':');
    let argument =
        small.strip_prefix("dbcc check").map(|rest| rest.trim_start_matches(char::is_alphabetic).trim_start());
    let is_command = small == "go" || argument.is_some_and(|argument| argument.starts_with('('));
    if ENDS.iter().any(|end| small.starts_with(end)) {
        return Some(Piece::End);
    }
    (is_count || is_command).then_some(Piece::Between)
}

/// The number of a message that a line is without a heading.
pub(super) fn unheaded(line: &str) -> Option<u32> {
    let mut line = line.trim();
    // The name in a total may be any text, such as that of another total.
    if line.starts_with("CHECK") {
        line = line.split(['\'', '"']).next().unwrap_or_default();
        if line.contains(" fixed ") {
            return Some(8912);
        }
    }
    let is_it = |(begin, part, _): &&(&str, &str, u32)| line.starts_with(begin) && line.contains(part);
    UNHEADED.iter().find(is_it).map(|(.., number)| *number)
}

/// Adds a line to the message that is open. Without an open message, the line is a piece of its own.
fn append<'a>(open: &mut Option<(Heading, String)>, line: &'a str, piece: &mut dyn FnMut(Piece<'a>)) {
    match open {
        _ if line.trim().is_empty() => {}
        Some((_, text)) if text.len() < LONGEST => {
            text.push(' ');
            text.push_str(cut(line, LONGEST));
        }
        Some(_) => {}
        None => piece(Piece::Line(line)),
    }
}

/// Splits a line before the first English heading in it, as in text whose line breaks were lost.
fn split(line: &str) -> Option<(&str, &str)> {
    let at = line.match_indices("Msg ").map(|(at, _)| at).find(|&at| line.get(at..).and_then(english).is_some())?;
    let (before, heading) = line.split_at_checked(at)?;
    Some((before.strip_suffix("Server: ").unwrap_or(before), heading))
}

/// The heading at the start of a line, and the text after it.
fn heading(line: &str) -> Option<(Heading, &str)> {
    let line = line.strip_prefix("Server: ").unwrap_or(line);
    english(line).or_else(|| localized(line)).or_else(|| numbers(line))
}

/// `Msg 8928, Level 16, State 1, Line 1`; sqlcmd adds the server and the procedure.
fn english(line: &str) -> Option<(Heading, &str)> {
    let (heading, rest) = Heading::of(line).filter(|(heading, _)| heading.is_english)?;
    let line = start(rest, TAIL).split_once("Line ").filter(|(before, _)| before.starts_with(','));
    let rest = line
        .and_then(|(before, _)| rest.get(before.len() + "Line ".len()..))
        .map_or(rest, |after| digits(after).map_or(after, |(_, rest)| rest));
    Some((heading, rest.trim_start_matches([',', '.', ' '])))
}

/// A heading in another language. The number behind a further comma is that of the line.
fn localized(line: &str) -> Option<(Heading, &str)> {
    let (heading, rest) = Heading::of(line).filter(|(heading, _)| !heading.is_english)?;
    let rest = separated(rest).map_or(rest, |names| {
        let digit = start(names, TAIL).find(|c: char| c.is_ascii_digit());
        digit.and_then(|at| digits(names.get(at..)?)).map_or("", |(_, rest)| rest)
    });
    let rest = rest.trim();
    Some((heading, if rest.chars().nth(4).is_none() { "" } else { rest }))
}

/// A heading of three numbers, as in a table that was pasted without its separators: `8909 16 1`.
fn numbers(line: &str) -> Option<(Heading, &str)> {
    let (number, rest) = digits(line)?;
    let (level, rest) =
        digits(rest.strip_prefix([' ', '\t'])?.trim_start()).filter(|(level, _)| LEVELS.contains(level))?;
    let (state, rest) = digits(rest.strip_prefix([' ', '\t'])?.trim_start())?;
    let is_end = rest.is_empty() || rest.starts_with([' ', '\t']);
    let heading =
        Heading { number, level: u8::try_from(level).ok()?, state: u8::try_from(state).ok()?, is_english: true };
    (is_end && number >= 100).then_some((heading, rest.trim_start()))
}
