//! Messages of SQL Server that no check gives, for people: what they mean, what to look at, what to do. A file for each family
//! has them by number.

use std::io;

use crate::text_table::wrap;

mod advice;
mod broker;
mod catalog;
mod columnstore;
mod dbcc;
mod engine;
mod filestream;
mod repair;

/// The families.
static FAMILIES: [&[ServerMessage]; 7] = [
    engine::MESSAGES,
    dbcc::MESSAGES,
    repair::MESSAGES,
    catalog::MESSAGES,
    columnstore::MESSAGES,
    filestream::MESSAGES,
    broker::MESSAGES,
];

/// Width of explanations.
const WIDTH: usize = 100;

/// A message of SQL Server.
#[derive(Debug)]
pub struct ServerMessage {
    /// Its number.
    pub number: u16,
    /// What it is about, in a few words.
    pub title: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What to look at.
    pub look_at: &'static str,
    /// What to do.
    pub action: &'static str,
}

impl ServerMessage {
    /// The row of a number.
    pub fn find(number: u16) -> Option<&'static Self> {
        FAMILIES.iter().copied().flatten().find(|message| message.number == number)
    }
}

/// All of them, by number.
pub fn all() -> Vec<&'static ServerMessage> {
    let mut all: Vec<&ServerMessage> = FAMILIES.iter().copied().flatten().collect();
    all.sort_by_key(|message| message.number);
    all
}

const fn row(
    number: u16,
    title: &'static str,
    meaning: &'static str,
    look_at: &'static str,
    action: &'static str,
) -> ServerMessage {
    ServerMessage { number, title, meaning, look_at, action }
}

/// Writes the explanations of `messages`, one after another.
///
/// # Errors
/// Those of `out`.
pub fn write(messages: &[&ServerMessage], out: &mut dyn io::Write) -> io::Result<()> {
    for (position, message) in messages.iter().enumerate() {
        if position > 0 {
            writeln!(out)?;
        }
        writeln!(out, "Msg {}: {}", message.number, message.title)?;
        writeln!(out)?;
        let facts =
            [("what it means", message.meaning), ("what to look at", message.look_at), ("what to do", message.action)];
        for (name, text) in facts {
            for (number, line) in wrap(text, WIDTH - 19).iter().enumerate() {
                let name = if number == 0 { name } else { "" };
                writeln!(out, "  {name:<15}  {line}")?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend_and_every_row_is_whole() {
        for family in FAMILIES {
            assert!(family.is_sorted_by_key(|message| message.number));
        }
        assert!(all().windows(2).all(|pair| pair[0].number < pair[1].number), "each number once");
        for message in all() {
            assert!(!message.title.is_empty() && !message.title.ends_with('.'), "{}", message.number);
            for text in [message.meaning, message.look_at, message.action] {
                assert!(text.trim() == text && text.ends_with(['.', '?']), "{}: {text:?}", message.number);
            }
        }
    }

    #[test]
    fn a_message_is_found_by_its_number() {
        assert!(ServerMessage::find(823).is_some_and(|message| message.number == 823));
        assert!(ServerMessage::find(1).is_none());
    }
}
