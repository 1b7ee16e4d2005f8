//! A pasted error log, or the output of DBCC: what happened, causes first. For `mdfsck explain -`.
//!
//! The text is somebody else's, so nothing in it is trusted: the input is cut after [`MOST_BYTES`], each line after its
//! first 4,096 bytes, and each table of results has a maximum size.

mod cases;
mod cause;
mod header;
mod places;
mod reader;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use events::Moment;
use findings::registry::{self, Check};
use format::PageId;

use crate::directory::Entries;
use crate::server_messages::ServerMessage;

use cause::Rank;

/// Maximum number of bytes to read.
pub const MOST_BYTES: u64 = 64 << 20;
/// Maximum number of events to keep.
const MOST_EVENTS: usize = 10_000;
/// Maximum number of pages to keep for each event.
const MOST_PAGES: usize = 200;

/// What a pasted text says.
#[derive(Debug)]
pub struct Pasted {
    /// The databases, each with its events, causes first. The first or the last group is about no named database.
    groups: Vec<Group>,
    /// Numbers that cannot be explained, with the number of messages that have them.
    unknown: BTreeMap<u32, u64>,
    /// Whether the input is longer than [`MOST_BYTES`].
    is_cut: bool,
    /// Number of messages that are not in `groups`, because there are too many events.
    dropped: u64,
}

/// The events of a database.
#[derive(Debug)]
struct Group {
    /// The database as the text names it; `None` if the text names none.
    database: Option<String>,
    events: Vec<Event>,
}

/// Messages with the same number about the same object of a database.
#[derive(Debug)]
struct Event {
    number: u16,
    explained: Explained,
    rank: Rank,
    object: Option<String>,
    seen: Seen,
}

/// What the messages of an event say together.
#[derive(Clone, Debug, Default)]
struct Seen {
    count: u64,
    first: Option<Moment>,
    last: Option<Moment>,
    /// The position of the first message in the text.
    position: u64,
    /// The first page that each message names.
    pages: BTreeSet<PageId>,
    files: BTreeSet<String>,
    /// The operating system error in the messages, or the worst of several.
    os_error: Option<u32>,
    state: Option<u8>,
    /// The lowest index ID in the messages.
    index: Option<u32>,
    /// Whether a message is not about a nonclustered index, or names no index.
    is_of_rows: bool,
    /// The lowest number of errors in a total, and the sum of the numbers in all totals.
    least_errors: Option<u64>,
    errors: u64,
    /// Whether a message is a total that a command prints at its end.
    is_end: bool,
    /// Whether a message names a file of the hidden snapshot of DBCC.
    is_of_snapshot: bool,
}

/// The rank of an operating system error: one that is more than a shortage, then none, then a shortage.
fn rank_of_error(error: Option<u32>) -> u8 {
    match error {
        Some(error) if cases::is_shortage(error) => 0,
        None => 1,
        Some(_) => 2,
    }
}

impl Seen {
    fn merge(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.last = self.last.max(other.last);
        self.position = self.position.min(other.position);
        let room = MOST_PAGES.saturating_sub(self.pages.len());
        self.pages.extend(other.pages.into_iter().take(room));
        let room = places::MOST_FILES.saturating_sub(self.files.len());
        self.files.extend(other.files.into_iter().take(room));
        // A shortage explains an event only if all of its messages name one.
        self.os_error =
            [self.os_error, other.os_error].into_iter().max_by_key(|error| (rank_of_error(*error), *error)).flatten();
        self.state = self.state.or(other.state);
        self.index = [self.index, other.index].into_iter().flatten().min();
        self.is_of_rows |= other.is_of_rows;
        self.least_errors = [self.least_errors, other.least_errors].into_iter().flatten().min();
        self.errors = self.errors.saturating_add(other.errors);
        self.is_end |= other.is_end;
        self.is_of_snapshot |= other.is_of_snapshot;
    }
}

/// The entry that explains a number.
#[derive(Clone, Copy, Debug)]
enum Explained {
    Message(&'static ServerMessage),
    Check(&'static Check),
}

impl Explained {
    /// The explanation of a number. Several checks may report the same number with different states.
    fn find(number: u32, state: Option<u8>) -> Option<Self> {
        let number = u16::try_from(number).ok()?;
        if let Some(message) = ServerMessage::find(number) {
            return Some(Self::Message(message));
        }
        let checks = || registry::ALL.iter().copied().filter(|check| check.msg == number);
        let of = |state: u8| checks().find(|check| check.state == state);
        // Most messages have state 1.
        let check = state.and_then(of).or_else(|| of(1)).or_else(|| checks().next())?;
        Some(Self::Check(check))
    }

    fn entries(self) -> Entries {
        match self {
            Self::Message(message) => Entries { messages: vec![message], ..Entries::default() },
            Self::Check(check) => Entries { checks: vec![check], ..Entries::default() },
        }
    }

    fn title(self) -> String {
        match self {
            Self::Message(message) => crate::explain::capitalised(message.title),
            Self::Check(check) => crate::explain::fault(check),
        }
    }
}

impl Pasted {
    /// Reads a text in UTF-8 or UTF-16, up to [`MOST_BYTES`].
    ///
    /// # Errors
    /// Errors of `input`.
    pub fn read(input: impl Read) -> io::Result<Self> {
        Self::read_start(input, MOST_BYTES)
    }

    /// Reads at most the first `most` bytes of a text.
    fn read_start(input: impl Read, most: u64) -> io::Result<Self> {
        let mut input = input.take(most.saturating_add(1));
        let read = reader::read(&mut input)?;
        Ok(Self { is_cut: input.limit() == 0, ..read })
    }

    /// Whether no message was recognized.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The numbers in the text that cannot be explained, in ascending order.
    pub fn unknown(&self) -> impl Iterator<Item = u32> {
        self.unknown.keys().copied()
    }

    fn events(&self) -> impl Iterator<Item = &Event> {
        self.groups.iter().flat_map(|group| &group.events)
    }

    /// Each explained number once, causes first.
    fn explanations(&self) -> Vec<(u16, Explained)> {
        let mut all: Vec<&Event> = self.events().collect();
        all.sort_by_key(|event| event.rank);
        let mut seen = BTreeSet::new();
        all.retain(|event| seen.insert(event.number));
        all.into_iter().map(|event| (event.number, event.explained)).collect()
    }
}
