//! The entries that `mdfsck explain` can show: checks, messages of SQL Server, and limits. This module finds entries,
//! lists them, writes them as JSON, and suggests keys that resemble an unknown key.

use std::collections::BTreeSet;
use std::io;

use findings::registry::limits::{self, Limit};
use findings::registry::{self, Check, Repair};

use crate::explain::fault;
use crate::json::explain::{ExplainLine, ExplainedCheck, ExplainedLimit, ExplainedMessage, Listed};
use crate::json::line;
use crate::server_messages::{self, ServerMessage};
use crate::text_table::{padded, width};

/// Width of the list, in columns.
const LIST_WIDTH: usize = 80;
/// Maximum number of keys that are suggested for an unknown key.
const OFFERED: usize = 5;
/// Maximum number of characters of a key that are compared. Ignoring further characters bounds the work.
const LONGEST_KEY: usize = 64;

/// The entries that a key names.
#[derive(Debug, Default)]
pub struct Entries {
    /// Checks with this ID or number.
    pub checks: Vec<&'static Check>,
    /// Messages with this number.
    pub messages: Vec<&'static ServerMessage>,
    /// Limits with this ID.
    pub limits: Vec<&'static Limit>,
}

impl Entries {
    /// Finds the entries that `key` names. `key` is a number (`8976`, `Msg 8976, Level 16`, `Error: 824`) or an ID.
    /// Upper and lower case are not distinguished.
    pub fn find(key: &str) -> Self {
        match number_of(key) {
            Some(number) => Self {
                checks: registry::ALL.iter().copied().filter(|check| check.msg == number).collect(),
                messages: ServerMessage::find(number).into_iter().collect(),
                limits: Vec::new(),
            },
            None => {
                let id = key.trim().to_ascii_lowercase();
                Self {
                    checks: registry::ALL.iter().copied().filter(|check| check.id == id).collect(),
                    messages: Vec::new(),
                    limits: Limit::find(&id).into_iter().collect(),
                }
            }
        }
    }

    /// Whether no entry was found.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty() && self.messages.is_empty() && self.limits.is_empty()
    }

    /// Adds the entries that another key names.
    pub fn extend(&mut self, other: Self) {
        self.checks.extend(other.checks);
        self.messages.extend(other.messages);
        self.limits.extend(other.limits);
    }

    /// Writes the explanations of all these entries as text.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        crate::explain::write(&self.checks, out)?;
        if !self.checks.is_empty() && !self.messages.is_empty() {
            writeln!(out)?;
        }
        server_messages::write(&self.messages, out)?;
        let is_first = self.checks.is_empty() && self.messages.is_empty();
        if !self.limits.is_empty() && !is_first {
            writeln!(out)?;
        }
        crate::limits::write(&self.limits, out)
    }

    /// Writes the explanations of all these entries as JSON, one per line.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        for check in &self.checks {
            line(&ExplainLine::ExplainedCheck(explained_check(check)), out)?;
        }
        for message in &self.messages {
            let ServerMessage { number, title, meaning, look_at, action } = message;
            let explained = ExplainedMessage { number: *number, title, meaning, look_at, action };
            line(&ExplainLine::ExplainedMessage(explained), out)?;
        }
        for limit in &self.limits {
            let explained = ExplainedLimit {
                id: limit.id,
                kind_of: limit.kind.name(),
                is_note: limit.is_note(),
                what: limit.what,
                reason: crate::limits::reason(limit),
                action: limit.action,
            };
            line(&ExplainLine::ExplainedLimit(explained), out)?;
        }
        Ok(())
    }
}

fn explained_check(check: &'static Check) -> ExplainedCheck {
    ExplainedCheck {
        id: check.id,
        number: check.msg,
        message: crate::explain::message(check),
        must_be_true: check.invariant,
        cause: check.cause,
        action: check.action,
        repair: match check.repair {
            Repair::None => None,
            Repair::Rebuild | Repair::AllowDataLoss => check.repair.name(),
        },
        phase: check.phase.name(),
        physical_only: check.physical_only,
    }
}

/// The message number in `8976`, `Msg 8976, Level 16, State 1` or `Error: 824, Severity: 24`. `None` if `key` does not
/// have one of these forms.
fn number_of(key: &str) -> Option<u16> {
    let key = key.trim().to_ascii_lowercase();
    let text = without_word(&key);
    let digits = digits(text);
    let behind = text.get(digits.len()..).unwrap_or_default();
    if behind.is_empty() || behind.starts_with([',', '.', ':', ' ']) { digits.parse().ok() } else { None }
}

/// Removes a leading `msg`, `message` or `error`, and the colons and spaces after it. `key` must be in lower case.
fn without_word(key: &str) -> &str {
    let rest = ["msg", "message", "error"].iter().find_map(|word| key.strip_prefix(word)).unwrap_or(key);
    rest.trim_start_matches([':', ' '])
}

/// The digits at the start of a text.
fn digits(text: &str) -> String {
    text.chars().take_while(char::is_ascii_digit).collect()
}

/// Everything that can be explained: first the entries with a number, by number; then limits, by ID.
fn listed() -> Vec<Listed> {
    let checks =
        registry::ALL.iter().map(|check| Listed { number: Some(check.msg), id: Some(check.id), title: fault(check) });
    let messages = server_messages::all().into_iter().map(|message| Listed {
        number: Some(message.number),
        id: None,
        title: message.title.to_owned(),
    });
    let limits = limits::ALL.iter().map(|limit| Listed {
        number: None,
        id: Some(limit.id),
        title: format!("{}: {}", limit.what, crate::limits::reason(limit)),
    });
    let mut all: Vec<Listed> = checks.chain(messages).chain(limits).collect();
    all.sort_by_key(|entry| (entry.number.is_none(), entry.number, entry.id));
    all
}

/// Writes the list of everything that can be explained, one per line, cut to 80 columns.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_list(out: &mut dyn io::Write) -> io::Result<()> {
    const NUMBER: usize = 5;
    for entry in listed() {
        let number = entry.number.map(|number| number.to_string()).unwrap_or_default();
        let id = entry.id.map(|id| format!("{id}: ")).unwrap_or_default();
        let text = cut(&format!("{id}{}", entry.title), LIST_WIDTH - NUMBER - 2);
        writeln!(out, "{}  {text}", padded(&number, NUMBER))?;
    }
    Ok(())
}

/// Writes the list of everything that can be explained as JSON, one object per line.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_list_json(out: &mut dyn io::Write) -> io::Result<()> {
    listed().into_iter().try_for_each(|entry| line(&ExplainLine::Listed(entry), out))
}

/// `text` if it fits into `most` columns, otherwise its start followed by three dots.
fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let first = crate::text_table::wrap(text, most.saturating_sub(4)).into_iter().next().unwrap_or_default();
    format!("{} ...", first.trim_end_matches([',', ':', ';']))
}

/// The known numbers or IDs that most resemble an unknown key, the most similar first.
pub fn near(key: &str) -> Vec<String> {
    let key: String = key.trim().to_ascii_lowercase().chars().take(LONGEST_KEY).collect();
    let behind_word = without_word(&key);
    let mut near = match behind_word.starts_with(|c: char| c.is_ascii_digit()) {
        true => near_numbers(&digits(behind_word)),
        false => near_ids(&key),
    };
    near.truncate(OFFERED);
    near
}

/// Known numbers that differ from `digits` by one typing error and have the same subject, nearest first. A number of
/// another subject would send its reader to advice for another problem, so it is not offered.
fn near_numbers(digits: &str) -> Vec<String> {
    let Ok(number) = digits.parse::<u16>() else { return Vec::new() };
    let known: BTreeSet<u16> = listed().iter().filter_map(|entry| entry.number).collect();
    let mut near: Vec<_> = known
        .iter()
        .filter(|&&other| subject(other).is_some() && subject(other) == subject(number))
        .map(|&other| (other, other.to_string()))
        .filter(|(_, text)| distance(digits, text) <= 1)
        .map(|(other, _)| (other.abs_diff(number), other))
        .collect();
    near.sort_unstable();
    near.into_iter().map(|(_, other)| other.to_string()).collect()
}

/// The subjects of SQL Server's messages, each with the first and last number of a range.
const SUBJECTS: [(&str, u16, u16); 22] = [
    ("pages and memory", 800, 859),
    ("opening a database", 900, 999),
    ("space", 1100, 1199),
    ("creating a database", 1800, 1899),
    ("DBCC", 2500, 2599),
    ("backup and restore", 3000, 3299),
    ("recovery", 3300, 3499),
    ("catalog", 3850, 3859),
    ("restore of the log", 4300, 4399),
    ("changing a database", 5000, 5099),
    ("files", 5100, 5199),
    ("DBCC", 5200, 5299),
    ("FILESTREAM", 5500, 5599),
    ("checkpoints", 5900, 5999),
    ("off-row values", 7100, 7199),
    ("DBCC", 7900, 7999),
    ("running a query", 8600, 8699),
    ("DBCC", 8900, 8999),
    ("log", 9000, 9099),
    ("Service Broker", 9600, 9799),
    ("start of the server", 17000, 17299),
    ("encryption", 33100, 33199),
];

/// The subject of a message number; `None` if it is unknown, or if the number is one of the operating system.
fn subject(number: u16) -> Option<&'static str> {
    let is_of_system = server_messages::OS_ERRORS.contains(&number);
    let (name, ..) = SUBJECTS.iter().find(|(_, first, last)| (*first..=*last).contains(&number))?;
    (!is_of_system).then_some(name)
}

/// IDs that contain `key`, then IDs that differ from `key` in a few letters.
fn near_ids(key: &str) -> Vec<String> {
    if key.is_empty() {
        return Vec::new();
    }
    let slips = (key.chars().count() / 3).max(2);
    let mut near: Vec<(usize, &str)> = listed()
        .iter()
        .filter_map(|entry| entry.id)
        .filter_map(|id| {
            let rank = if id.contains(key) { 0 } else { distance(key, id) };
            (rank <= slips).then_some((rank, id))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().map(|(_, id)| id.to_owned()).collect()
}

/// The edit distance: how many letters to insert, delete, change, or swap with the next letter to turn `left` into
/// `right`.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    // The last two rows of the distance table. The cost of swapping two letters depends on the row before the last.
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut previous_letter = None;
    for (row, letter) in left.chars().enumerate() {
        let mut current = vec![row + 1];
        let mut previous_other = None;
        for (column, &other) in right.iter().enumerate() {
            let of = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
            let mut best = (of(&last, column) + usize::from(letter != other))
                .min(of(&last, column + 1) + 1)
                .min(of(&current, column) + 1);
            if column > 0 && previous_letter == Some(other) && previous_other == Some(letter) {
                best = best.min(of(&before_last, column - 1) + 1);
            }
            current.push(best);
            previous_other = Some(other);
        }
        before_last = std::mem::replace(&mut last, current);
        previous_letter = Some(letter);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_what_is_wrong_and_never_the_rule_alone() {
        let title = |id: &str| listed().into_iter().find(|entry| entry.id == Some(id)).map(|entry| entry.title);
        assert_eq!(title("iam.unreadable").as_deref(), Some("An IAM page cannot be read"));
        for check in registry::ALL {
            assert_ne!(title(check.id).as_deref(), Some(check.invariant.trim_end_matches('.')));
        }
    }

    #[test]
    fn a_slip_of_the_finger_is_one_letter_away() {
        for (left, right, expected) in [
            ("8976", "8976", 0),
            ("8967", "8976", 1),
            ("897", "8976", 1),
            ("89976", "8976", 1),
            ("8975", "8976", 1),
            ("", "abc", 3),
            ("abc", "", 3),
            ("tree", "page", 3),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
        }
    }

    #[test]
    fn a_number_is_read_as_people_paste_it() {
        for key in [
            "8976",
            " 8976 ",
            "Msg 8976",
            "MSG8976",
            "msg 8976, Level 16, State 1",
            "Error: 8976, Severity: 16",
            "8976,",
        ] {
            assert_eq!(number_of(key), Some(8976), "{key}");
        }
        for key in ["", "tree", "8976x", "msg", "99999999999999"] {
            assert_eq!(number_of(key), None, "{key}");
        }
    }
}
