//! Explanations of the messages of SQL Server that no check reports: the meaning, where to look, and what to do. Each
//! family of messages has its own file, ordered by number.

use std::fmt::Write as _;
use std::io;

use crate::explain::escaped;
use crate::text_table::wrap;

mod advice;
mod broker;
mod catalog;
mod columnstore;
mod dbcc;
mod dbcc_start;
mod engine;
mod filestream;
mod opening;
mod queries;
mod repair;
mod restore;
mod storage;

/// The families of messages, with their headings in docs/messages.md.
static FAMILIES: [(&str, &[ServerMessage]); 12] = [
    ("The machine: memory, processors, storage and operating system", storage::MESSAGES),
    ("Errors of the engine, of backup and restore", engine::MESSAGES),
    ("Databases that do not open", opening::MESSAGES),
    ("Backup and restore", restore::MESSAGES),
    ("Queries and connections", queries::MESSAGES),
    ("Snapshot and arguments of DBCC", dbcc_start::MESSAGES),
    ("What DBCC says about its own run", dbcc::MESSAGES),
    ("Repair", repair::MESSAGES),
    ("The catalog", catalog::MESSAGES),
    ("Columnstore indexes", columnstore::MESSAGES),
    ("FILESTREAM", filestream::MESSAGES),
    ("Service Broker", broker::MESSAGES),
];

/// The rows that explain errors of the operating system. Their numbers are no message numbers.
pub(crate) const OS_ERRORS: [u16; 5] = [112, 665, 1117, 1130, 1450];

/// The start of docs/messages.md.
const PREFACE: &str = "# Messages of SQL Server that no check gives

For DBAs with a message from the error log, from DBCC or from RESTORE: the meaning of the message, and what to do. The messages of the checks are
in [docs/checks.md](../docs/checks.md). Generated from `crates/report/src/server_messages` by `mdfsck explain --all --messages --markdown`; do not
edit.
";

/// Width of explanations, in columns.
const WIDTH: usize = 100;

/// A message of SQL Server.
#[derive(Debug)]
pub struct ServerMessage {
    /// The message's number.
    pub number: u16,
    /// The subject of the message, in a few words.
    pub title: &'static str,
    /// The meaning of the message.
    pub meaning: &'static str,
    /// Where a user should look.
    pub look_at: &'static str,
    /// The recommended action.
    pub action: &'static str,
}

impl ServerMessage {
    /// The message with this number.
    pub fn find(number: u16) -> Option<&'static Self> {
        rows().find(|message| message.number == number)
    }
}

fn rows() -> impl Iterator<Item = &'static ServerMessage> {
    FAMILIES.iter().flat_map(|(_, rows)| rows.iter())
}

/// The text of docs/messages.md.
pub fn markdown() -> String {
    let mut text = PREFACE.to_owned();
    for (title, rows) in FAMILIES {
        let _ = write!(text, "\n## {title}\n");
        for message in rows {
            let ServerMessage { number, title, meaning, look_at, action } = message;
            let _ = write!(text, "\n### {number}: {}\n\n", escaped(title));
            for (name, fact) in [("What it means", meaning), ("What to look at", look_at), ("What to do", action)] {
                let _ = writeln!(text, "- **{name}**: {}", escaped(fact));
            }
        }
    }
    text
}

/// All messages, by number.
pub fn all() -> Vec<&'static ServerMessage> {
    let mut all: Vec<&ServerMessage> = rows().collect();
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
/// If writing to `out` fails.
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
        for (_, family) in FAMILIES {
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
    fn docs_are_those_of_the_families() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/messages.md");
        let found = std::fs::read_to_string(path).unwrap_or_default().replace("\r\n", "\n");
        assert!(
            found == markdown(),
            "docs/messages.md differs from the families; regenerate it with\n  \
             cargo run -- explain --all --messages --markdown > docs/messages.md"
        );
    }

    #[test]
    fn a_message_is_found_by_its_number() {
        assert!(ServerMessage::find(823).is_some_and(|message| message.number == 823));
        assert!(ServerMessage::find(1).is_none());
    }
}
