//! Messages as DBCC prints them: pasted text, or the output of sqlcmd.

use super::message::{LONGEST, Message};

/// The beginnings of lines, in small letters, that sqlcmd and SSMS print between messages.
const BETWEEN: [&str; 4] =
    ["commands completed successfully", "completion time", "changed database context", "dbcc checkdb ("];

/// The words with which messages without a heading begin, in small letters.
const UNHEADED: [&str; 8] = [
    "dbcc results for ",
    "there are ",
    "service broker msg ",
    "dbcc execution completed",
    "repair_allow_data_loss is ",
    "repair_rebuild is ",
    "repair_fast is ",
    "warning: no_index ",
];

/// A piece of the text.
pub(super) enum Piece<'a> {
    /// A message with a heading.
    Message(Message),
    /// A message without a heading, or a line that is no message.
    Line(&'a str),
    /// A line that a client prints when a command has ended.
    Between,
}

/// The number, level and state in a heading, and whether its words are English.
#[derive(Clone, Copy)]
struct Heading {
    number: u32,
    level: u8,
    state: u16,
    is_english: bool,
}

/// Passes each message and each line outside messages to `piece`. Returns whether any heading is in another language
/// than English.
pub(super) fn read<'a>(text: &'a str, mut piece: impl FnMut(Piece<'a>)) -> bool {
    let mut open: Option<(Heading, String)> = None;
    let mut is_localized = false;
    for line in text.lines() {
        let mut line = line.trim_start_matches(['>', ' ', '\t', '\u{feff}']).trim_end();
        if let Some((before, heading)) = split(line) {
            append(&mut open, before, &mut piece);
            line = heading;
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
        let is_between = is_between(line);
        let has_text = open.as_ref().is_some_and(|(_, text)| !text.is_empty());
        if is_between || is_unheaded(line) || (line.is_empty() && has_text) {
            close(&mut open, &mut piece);
        }
        match is_between {
            true => piece(Piece::Between),
            false => append(&mut open, line, &mut piece),
        }
    }
    close(&mut open, &mut piece);
    is_localized
}

fn close<'a>(open: &mut Option<(Heading, String)>, piece: &mut dyn FnMut(Piece<'a>)) {
    if let Some((heading, text)) = open.take() {
        piece(Piece::Message(Message::new(heading.number, heading.level, heading.state, &text, None)));
    }
}

fn small_start(line: &str) -> String {
    line.chars().take(40).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_between(line: &str) -> bool {
    let small = small_start(line);
    let is_count =
        small.starts_with('(') && small.chars().nth(1).is_some_and(|c| c.is_ascii_digit()) && !small.contains(':');
    is_count || small == "go" || BETWEEN.iter().any(|start| small.starts_with(start))
}

fn is_unheaded(line: &str) -> bool {
    let small = small_start(line);
    let is_total = small.starts_with("check") && [" found ", " fixed "].iter().any(|verb| small.contains(verb));
    is_total || UNHEADED.iter().any(|start| small.starts_with(start))
}

/// Adds a line to the message that is open. Without an open message, the line is a piece of its own.
fn append<'a>(open: &mut Option<(Heading, String)>, line: &'a str, piece: &mut dyn FnMut(Piece<'a>)) {
    match open {
        _ if line.trim().is_empty() => {}
        Some((_, text)) if text.len() < LONGEST => {
            text.push(' ');
            text.push_str(line.get(..LONGEST).unwrap_or(line));
        }
        Some(_) => {}
        None => piece(Piece::Line(line)),
    }
}

/// Splits a line before an English heading that is not at its start, as in text whose line breaks were lost.
fn split(line: &str) -> Option<(&str, &str)> {
    let at = line.match_indices("Msg ").map(|(at, _)| at).filter(|&at| at > 0).find(|&at| {
        let before = line.get(..at).unwrap_or_default();
        !before.ends_with("Server: ") && line.get(at..).is_some_and(|rest| english(rest).is_some())
    })?;
    line.split_at_checked(at)
}

/// The heading at the start of a line, and the text after it.
fn heading(line: &str) -> Option<(Heading, &str)> {
    let line = line.strip_prefix("Server: ").unwrap_or(line);
    english(line).or_else(|| localized(line)).or_else(|| numbers(line))
}

/// `Msg 8928, Level 16, State 1, Line 1`; sqlcmd adds the server and the procedure.
fn english(line: &str) -> Option<(Heading, &str)> {
    let (number, rest) = leading(line.strip_prefix("Msg ")?)?;
    let (level, rest) = leading(rest.strip_prefix(", Level ")?)?;
    let (state, rest) = leading(rest.strip_prefix(", State ")?)?;
    let heading =
        Heading { number, level: u8::try_from(level).ok()?, state: u16::try_from(state).ok()?, is_english: true };
    let rest = match rest.split_once("Line ") {
        Some((before, after)) if before.starts_with(',') && before.len() < 300 => {
            leading(after).map_or(after, |(_, rest)| rest)
        }
        _ => rest,
    };
    Some((heading, rest.trim_start_matches([',', '.', ' '])))
}

/// A heading in another language: a word, the number, a comma, a word, the level, a comma, a word, the state.
fn localized(line: &str) -> Option<(Heading, &str)> {
    let word = |text: &str, is_first: bool| {
        let digit = text.find(|c: char| c.is_ascii_digit()).filter(|&at| (1..=40).contains(&at))?;
        let before = text.get(..digit)?;
        let is_word = before.chars().any(char::is_alphabetic) && !before.contains(['(', ':', '\'', '"']);
        let has_comma = before.trim_start().starts_with([',', '\u{ff0c}', '\u{3001}']);
        (is_word && has_comma != is_first).then_some(digit)
    };
    let (number, rest) = leading(line.get(word(line, true)?..)?)?;
    let (level, rest) = leading(rest.get(word(rest, false)?..)?)?;
    let (state, rest) = leading(rest.get(word(rest, false)?..)?)?;
    let level = u8::try_from(level).ok().filter(|&level| level <= 25)?;
    let heading = Heading { number, level, state: u16::try_from(state).ok()?, is_english: false };
    // What follows names the server and the line.
    let rest =
        rest.find(|c: char| c.is_ascii_digit()).and_then(|at| leading(rest.get(at..)?)).map_or("", |(_, rest)| rest);
    let rest = rest.trim();
    Some((heading, if rest.chars().count() <= 4 { "" } else { rest }))
}

/// A heading of three numbers, as in a table that was pasted without its separators: `8909 16 1`.
fn numbers(line: &str) -> Option<(Heading, &str)> {
    let (number, rest) = leading(line)?;
    let (level, rest) = leading(rest.strip_prefix([' ', '\t'])?.trim_start())?;
    let (state, rest) = leading(rest.strip_prefix([' ', '\t'])?.trim_start())?;
    let level = u8::try_from(level).ok().filter(|level| (10..=25).contains(level))?;
    let is_end = rest.is_empty() || rest.starts_with([' ', '\t']);
    let heading = Heading { number, level, state: u16::try_from(state).ok()?, is_english: true };
    (is_end && number >= 100).then_some((heading, rest.trim_start()))
}

/// The number at the start of a text, and the rest.
pub(super) fn leading(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}
