//! The results of the server: its messages, divided into errors that are compared and lines that are not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::bytes;
use super::kinds::{self, Reason, Role};
use super::lines::{self, Piece};
use super::message::{Key, Message, Place};
use super::table::{self, Layout};
use super::template::Captured;
use crate::dbcc_run::gave_up;
use crate::heading::cut;

/// Maximum size of a file of results, in bytes.
pub const MOST_BYTES: u64 = 64 << 20;
/// Maximum number of different messages that are compared. This bounds the memory of a comparison.
pub(super) const MOST_MESSAGES: usize = if cfg!(test) { 1000 } else { 100_000 };

/// The form of the results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Rows of WITH TABLERESULTS.
    Table,
    /// Messages as text.
    Text,
}

impl Form {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Text => "text",
        }
    }
}

/// Why a file is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The file has no message of DBCC.
    NoResults,
    /// The file has the results of several databases.
    SeveralDatabases(String, String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResults => f.write_str(
                "no message of DBCC was found; give the rows of WITH TABLERESULTS as CSV, or the messages as text",
            ),
            Self::SeveralDatabases(one, other) => write!(
                f,
                "has results of the databases '{one}' and '{other}'; give a file with the results of one database"
            ),
        }
    }
}

/// Rows and pages of an object, as message 2593 counts them.
pub(super) type Counts = (u64, u64);

/// The results of the server.
#[derive(Debug)]
pub struct Results {
    /// The form.
    pub form: Form,
    /// The name of the database in the last line; `None` if the results do not name it.
    pub database: Option<String>,
    /// The number of messages.
    pub messages: u64,
    /// The number of rows that are no messages.
    pub not_understood: u64,
    /// The first row that is no message.
    pub example: Option<String>,
    /// The number of errors that were not compared, because there are too many of them.
    pub hidden: u64,
    /// The number of objects whose counts were not compared, because there are too many of them.
    pub(super) hidden_counts: u64,
    /// The total of the errors, from the line about the whole database or table.
    pub(super) total: Option<u64>,
    /// The number of errors, which includes errors that were printed twice.
    pub(super) errors: u64,
    /// Whether the messages are in another language than English.
    pub(super) is_localized: bool,
    /// The errors.
    pub(super) findings: BTreeMap<Key, Message>,
    /// The numbers of the messages that are not compared, by reason.
    pub(super) explained: BTreeMap<&'static Reason, BTreeMap<u32, u64>>,
    /// The counts of each object.
    pub(super) counted: BTreeMap<String, Counts>,
    /// The numbers of Service Broker objects, by the number of their message.
    pub(super) broker: BTreeMap<u32, u64>,
    /// The messages after which the run ended early.
    pub(super) gave_up: BTreeSet<u32>,
    /// Objects that were not checked further, or whose errors were not all printed.
    pub(super) skipped: BTreeSet<i32>,
    pub(super) cut: BTreeSet<i32>,
    /// An error that the next message may continue.
    open: Option<Message>,
}

impl Results {
    /// Reads results in any form.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn read(bytes: &[u8]) -> Result<Self, Refused> {
        let text = bytes::text(bytes);
        let layout = Layout::of(&text);
        let form = if layout.is_some() { Form::Table } else { Form::Text };
        let mut results = Self::empty(form);
        let mut databases = BTreeSet::new();
        let is_known = match &layout {
            Some(layout) => {
                layout.rows(&text, |row| match row {
                    Ok(message) => results.add(message, &mut databases),
                    Err(line) => results.add_line(&line, &mut databases),
                });
                true
            }
            None => results.read_text(&text, &mut databases),
        };
        results.close();
        let mut databases = databases.into_iter();
        results.database = databases.next();
        match (results.database.clone(), databases.next()) {
            (Some(one), Some(other)) => Err(Refused::SeveralDatabases(one, other)),
            _ if is_known || results.is_of_dbcc() => Ok(results),
            _ => Err(Refused::NoResults),
        }
    }

    fn empty(form: Form) -> Self {
        Self {
            form,
            database: None,
            messages: 0,
            not_understood: 0,
            example: None,
            hidden: 0,
            hidden_counts: 0,
            total: None,
            errors: 0,
            is_localized: false,
            findings: BTreeMap::new(),
            explained: BTreeMap::new(),
            counted: BTreeMap::new(),
            broker: BTreeMap::new(),
            gave_up: BTreeSet::new(),
            skipped: BTreeSet::new(),
            cut: BTreeSet::new(),
            open: None,
        }
    }

    /// Reads text. Returns whether the text is known to be the output of a command that printed no message.
    fn read_text(&mut self, text: &str, databases: &mut BTreeSet<String>) -> bool {
        let (mut has_end, mut has_other) = (text.trim().is_empty(), false);
        let mut before = "";
        self.is_localized = lines::read(text, |piece| match piece {
            Piece::Message(message) => self.add(message, databases),
            Piece::End => has_end = true,
            Piece::Between => {}
            Piece::Line(line) => {
                let whole = format!("{before} {line}");
                match unheaded(line).or_else(|| Message::of_text(line)).or_else(|| Message::of_text(&whole)) {
                    Some(message) => {
                        before = "";
                        self.add(message, databases);
                    }
                    None => (before, has_other) = (line, true),
                }
            }
        });
        has_end && !has_other && self.messages == 0
    }

    /// Whether any message is one of DBCC's. Other statements may print any text and any message.
    fn is_of_dbcc(&self) -> bool {
        let of_others = self.explained.get(&kinds::OTHER_STATEMENT).map_or(0, |numbers| numbers.values().sum());
        self.messages > of_others
    }

    /// Whether the results are known to contain all errors of a finished run. The last line of a run has their number.
    pub fn is_whole(&self) -> bool {
        let has_all = match self.total {
            Some(total) => self.errors >= total,
            None => self.errors == 0 && self.may_be_sound_without_total(),
        };
        let is_compared = self.hidden == 0 && self.hidden_counts == 0;
        has_all && self.gave_up.is_empty() && self.not_understood == 0 && is_compared
    }

    /// Whether a run that finds no error may end like this: CHECKTABLE and CHECKCATALOG then print no total, and WITH
    /// NO_INFOMSGS nothing is printed. CHECKDB ends its list of tables with a total.
    fn may_be_sound_without_total(&self) -> bool {
        let has = |number| self.explained.values().any(|numbers| numbers.contains_key(&number));
        let is_of_database = self.counted.len() > 1 || !self.broker.is_empty();
        has(2528) || !(is_of_database || (has(2536) && self.counted.is_empty()))
    }

    /// Handles a row of a table that is no row: a line that a client printed.
    fn add_line(&mut self, line: &str, databases: &mut BTreeSet<String>) {
        let is_printed =
            line.is_empty() || line.starts_with('(') || table::is_dashes(line) || line.starts_with("#TYPE");
        if let Some(message) = unheaded(line) {
            self.add(message, databases);
        } else if !is_printed && !line.to_ascii_lowercase().starts_with("changed database context") {
            self.not_understood += 1;
            self.example.get_or_insert_with(|| cut(line, 80).to_owned());
        }
    }

    fn add(&mut self, message: Message, databases: &mut BTreeSet<String>) {
        self.messages += 1;
        let role = kinds::role(message.number, message.level, &message.text);
        if role == Role::Detail {
            self.tell(&kinds::DETAIL, message.number);
            if let Some(open) =
                self.open.as_mut().filter(|open| open.place.page.is_none() && message.place.page.is_some())
            {
                open.set_row(message.place);
            }
            self.close();
            return;
        }
        self.close();
        if gave_up(message.number) {
            self.gave_up.insert(message.number);
        }
        let object = message.place.object.or_else(|| message.captured().as_ref().and_then(object_of));
        self.skipped.extend(object.filter(|_| kinds::skips_object(message.number)));
        match role {
            Role::Finding => {
                self.errors += 1;
                self.open = Some(message);
            }
            Role::Counted => match counted(&message.text) {
                Some((name, counts)) if self.counted.len() < MOST_MESSAGES || self.counted.contains_key(&name) => {
                    self.counted.insert(name, counts);
                }
                Some(_) => self.hidden_counts += 1,
                None => {}
            },
            Role::Broker => self.broker.extend(broker(message.number, &message.text)),
            Role::Total => {
                self.tell(&kinds::TOTALS, message.number);
                self.add_total(&message, databases);
            }
            Role::Explained(reason) => {
                self.cut.extend(object.filter(|_| reason == &kinds::LIST_CUT));
                self.tell(reason, message.number);
            }
            Role::Detail => {}
        }
    }

    /// Reads the totals: of the database, or of the table of CHECKTABLE.
    fn add_total(&mut self, message: &Message, databases: &mut BTreeSet<String>) {
        let (before, rest) = message.text.split_once(['\'', '"']).unwrap_or((&message.text, ""));
        // In some languages, the name of the database precedes the numbers.
        let behind = rest.rsplit_once(['\'', '"']).map_or("", |(_, behind)| behind);
        let mut numbers = digits(before).chain(digits(behind));
        let Some((allocation, consistency)) = numbers.next().zip(numbers.next()) else { return };
        let errors = allocation.saturating_add(consistency);
        match message.number {
            8989 => {
                self.total = Some(errors);
                databases.extend(quoted(&message.text).map(str::to_owned));
            }
            // CHECKDB prints the total of each table too, before that of the database.
            _ if databases.is_empty() && before.contains("CHECKTABLE") => {
                self.total = Some(self.total.unwrap_or_default().saturating_add(errors));
            }
            _ => {}
        }
    }

    fn tell(&mut self, reason: &'static Reason, number: u32) {
        *self.explained.entry(reason).or_default().entry(number).or_default() += 1;
    }

    /// Whether the server says that it left out the checks of the catalog and of Service Broker.
    pub(super) fn is_catalog_skipped(&self) -> bool {
        self.explained.get(&kinds::SKIPPED).is_some_and(|numbers| numbers.contains_key(&5232))
    }

    /// Adds the error that no further message can continue.
    fn close(&mut self) {
        let Some(message) = self.open.take() else { return };
        let key = message.key();
        match self.findings.len() < MOST_MESSAGES || self.findings.contains_key(&key) {
            true => drop(self.findings.entry(key).or_insert(message)),
            false => self.hidden += 1,
        }
    }
}

fn object_of(captured: &Captured) -> Option<i32> {
    captured.place().and_then(|place: Place| place.object)
}

/// A message of level 10, which DBCC prints without a heading.
fn unheaded(line: &str) -> Option<Message> {
    Some(Message::new(lines::unheaded(line)?, 10, 1, line, None))
}

/// The name of the object and its counts in the text of message 2593.
fn counted(text: &str) -> Option<(String, Counts)> {
    let name = quoted(text)?;
    let mut numbers = digits(text.split(['\'', '"']).next().unwrap_or_default());
    Some((name.to_owned(), (numbers.next()?, numbers.next()?)))
}

/// The number of the message about Service Broker objects, and the number of objects in it.
fn broker(number: u32, text: &str) -> Option<(u32, u64)> {
    let mut numbers = digits(text);
    let inner = if number == 8997 { numbers.next()? } else { number.into() };
    Some((u32::try_from(inner).ok()?, numbers.last()?))
}

/// The text between the first quotation mark and the last one.
fn quoted(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(['\'', '"'])?;
    rest.rsplit_once(['\'', '"']).map(|(name, _)| name)
}

/// The numbers in a text.
fn digits(text: &str) -> impl Iterator<Item = u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok())
}
