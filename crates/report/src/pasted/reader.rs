//! Reads a pasted text line by line, and collects its messages.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Read};

use events::error_log::Line;
use events::{Lines, Moment};

use super::cases::DETAILS;
use super::cause::{Layer, Rank};
use super::header::{self, Header};
use super::places::{Database, Places, short};
use super::{Event, Explained, Group, MOST_EVENTS, Pasted, Seen};
use crate::comparison::template::guessed_index;
use crate::heading::cut;
use crate::server_messages::OS_ERRORS;

/// Number of lines from which the order of an export is recognized: newest first, or oldest first.
const PEEKED: usize = 1000;
/// Number of lines that may belong to a message of DBCC.
const MOST_LINES: u8 = 4;
/// Maximum number of bytes of a message.
const MOST_TEXT: usize = 8192;
/// Maximum number of processes whose messages are open at the same time, and of names that are kept.
const MOST_OPEN: usize = 64;
const MOST_NAMES: usize = 10_000;
const MOST_UNKNOWN: usize = 100;
/// Maximum number of bytes of the name of a process.
const LONGEST_SOURCE: usize = 32;

pub(super) fn read(input: impl Read) -> io::Result<Pasted> {
    let mut lines = Lines::new(input);
    let (mut peeked, mut rising, mut last) = (VecDeque::new(), 0i64, None);
    while peeked.len() < PEEKED {
        let Some(line) = lines.next_line()? else { break };
        if let Some(at) = Line::read(&line).map(|line| line.at) {
            rising += last.map_or(0, |last| at.cmp(&last) as i64);
            last = Some(at);
        }
        peeked.push_back(line.into_owned());
    }
    let mut reader = Reader { is_newest_first: rising < 0, ..Reader::default() };
    for line in peeked {
        reader.line(&line);
    }
    while let Some(line) = lines.next_line()? {
        reader.line(&line);
    }
    Ok(reader.finish())
}

/// The database of an event, as far as it is known when the event is read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Of {
    Database(Database),
    /// The database that a later line of the same output of DBCC names.
    Output(u32),
    Nothing,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Object {
    Named(String),
    Id(u32),
}

type Key = (Of, Option<Object>, u16);

/// A message whose text may continue on the next line.
#[derive(Debug)]
struct Open {
    header: Header,
    at: Option<Moment>,
    text: String,
    lines: u8,
}

#[derive(Default)]
struct Reader {
    events: BTreeMap<Key, Seen>,
    open: BTreeMap<Box<str>, Open>,
    /// The last line of each process, for exports in which a message's text precedes its number.
    before: BTreeMap<Box<str>, String>,
    is_newest_first: bool,
    /// The first line of a finding that was copied without its number.
    wrapped: String,
    /// The number of outputs of DBCC that have ended, and the names that their last lines gave.
    outputs: u32,
    names_of_outputs: BTreeMap<u32, String>,
    databases: BTreeMap<u32, String>,
    /// The names of all databases in the text.
    names: BTreeSet<String>,
    objects: BTreeMap<u32, String>,
    unknown: BTreeMap<u32, u64>,
    dropped: u64,
    position: u64,
}

impl Reader {
    fn line(&mut self, line: &str) {
        self.position += 1;
        let read = Line::read(line);
        let (at, source, text) = match &read {
            Some(line) => (Some(line.at), line.source, line.text),
            None => (None, "", line.trim()),
        };
        let source = cut(source, LONGEST_SOURCE);
        if text.is_empty() {
            return self.close(source);
        }
        if let Some(header) = header::header(text) {
            return self.begin(header, at, source, text);
        }
        if self.continues(source, at, text) {
            return;
        }
        self.close(source);
        let inside = header::inside(text);
        for number in &inside {
            self.record(Header { number: *number, state: None }, at, text);
        }
        match header::by_words(text) {
            Some(number) => self.record(Header { number: u32::from(number), state: None }, at, text),
            None if inside.is_empty() => self.loose(at, source, text),
            None => {}
        }
    }

    fn begin(&mut self, header: Header, at: Option<Moment>, source: &str, text: &str) {
        self.close(source);
        let before = self.before.remove(source).filter(|_| self.is_newest_first);
        let is_whole = before.is_some();
        let text = format!("{}\n{text}", before.unwrap_or_default());
        if self.open.len() >= MOST_OPEN {
            let first = self.open.keys().next().cloned();
            first.into_iter().for_each(|source| self.close(&source));
        }
        self.open.insert(source.into(), Open { header, at, text, lines: 0 });
        if is_whole {
            self.close(source);
        }
    }

    /// Adds a line to the open message of the process. Returns whether the line belongs to it: in an error log, the
    /// next line of the same process; in the output of DBCC, the next lines.
    fn continues(&mut self, source: &str, at: Option<Moment>, text: &str) -> bool {
        let key = if at.is_none() && !self.open.contains_key(source) { self.open.keys().next_back() } else { None };
        let key = key.cloned().unwrap_or_else(|| source.into());
        let Some(open) = self.open.get_mut(&key) else { return false };
        let is_total = header::by_words(text).is_some();
        let is_next = match open.lines {
            0 => true,
            lines => lines < MOST_LINES && at.is_none() && !is_total && !text.starts_with("DBCC results for "),
        };
        if is_next && open.text.len() + text.len() < MOST_TEXT {
            open.lines += 1;
            open.text.push('\n');
            open.text.push_str(text);
        }
        is_next
    }

    /// A line that belongs to no message. It may name the database of an output, or an operating system error.
    fn loose(&mut self, at: Option<Moment>, source: &str, text: &str) {
        if let Some(name) = text.strip_prefix("DBCC results for '").and_then(|rest| rest.split_once('\'')) {
            let name = short(name.0);
            name.into_iter().for_each(|name| self.name_output(name));
        }
        self.finding(at, text);
        self.os_error(at, text, &Places::of(text));
        if self.is_newest_first && (self.before.len() < MOST_OPEN || self.before.contains_key(source)) {
            self.before.insert(source.into(), text.to_owned());
        }
    }

    /// A finding that was copied without its number, in one line or in two.
    fn finding(&mut self, at: Option<Moment>, text: &str) {
        let is_start = header::may_start_finding(text);
        let wrapped = std::mem::take(&mut self.wrapped);
        if !is_start && wrapped.is_empty() {
            return;
        }
        let text = if is_start { text.to_owned() } else { format!("{wrapped} {text}") };
        match header::by_template(&text) {
            Some(header) => self.record(header, at, &text),
            None if is_start => self.wrapped = text,
            None => {}
        }
    }

    /// Names the current output by its first line, `DBCC results for 'Shop'.` Only a total at its end says whether
    /// this name is the name of a database or of a table.
    fn name_output(&mut self, name: String) {
        let outputs = self.outputs;
        if self.names_of_outputs.len() < MOST_NAMES {
            self.names_of_outputs.entry(outputs).or_insert_with(|| format!("DBCC results for '{name}'"));
        }
    }

    fn close(&mut self, source: &str) {
        if let Some(open) = self.open.remove(source) {
            self.record(open.header, open.at, &open.text);
        }
    }

    fn record(&mut self, header: Header, at: Option<Moment>, text: &str) {
        let places = Places::of(text);
        self.os_error(at, text, &places);
        self.learn(&places);
        let Some(explained) = Explained::find(header.number, header.state) else {
            if self.unknown.len() < MOST_UNKNOWN || self.unknown.contains_key(&header.number) {
                *self.unknown.entry(header.number).or_default() += 1;
            }
            return;
        };
        let Ok(number) = u16::try_from(header.number) else { return };
        let layer = Rank::of(number, explained).layer;
        let is_of_output = matches!(layer, Layer::Findings | Layer::Run | Layer::Totals | Layer::Repair);
        let of = match &places.database {
            Some(database) => Of::Database(database.clone()),
            None if is_of_output => Of::Output(self.outputs),
            None => Of::Nothing,
        };
        // The totals of a database end an output.
        if matches!(number, 8989 | 8957 | 5235)
            && let Some(Database::Named(name)) = &places.database
        {
            if self.names_of_outputs.len() < MOST_NAMES {
                self.names_of_outputs.insert(self.outputs, name.clone());
            }
            self.outputs = self.outputs.saturating_add(1);
        }
        let named = places.object.clone().filter(|_| layer != Layer::Totals || number == 8990).map(Object::Named);
        let object = places.object_id.map(Object::Id).or(named);
        let total = total(number, text);
        // CHECKDB prints the total of each table too, before that of the database.
        let is_end = matches!(number, 8957 | 8989) || number == 8990 && text.contains("CHECKTABLE found ");
        let index = match number {
            8951 | 8952 => guessed_index(text).and_then(|(_, index)| u32::try_from(index).ok()),
            _ => places.index,
        };
        let index = index.filter(|_| layer == Layer::Findings);
        let is_os_error_of = matches!(layer, Layer::Storage | Layer::Files | Layer::Backup | Layer::Log);
        self.add(
            (of, object, number),
            Seen {
                pages: places.page.into_iter().collect(),
                files: places.file.into_iter().collect(),
                os_error: header::os_error(text).filter(|_| is_os_error_of),
                state: header.state,
                index,
                is_of_rows: layer == Layer::Findings
                    && !DETAILS.contains(&number)
                    && !index.is_some_and(is_nonclustered),
                least_errors: total,
                errors: total.unwrap_or_default(),
                is_end: is_end && total.is_some(),
                is_of_snapshot: places.is_of_snapshot,
                ..self.seen(at)
            },
        );
    }

    /// An operating system error inside a message is an event of its own, because it is the cause of the message.
    fn os_error(&mut self, at: Option<Moment>, text: &str, places: &Places) {
        let number = header::os_error(text).and_then(|number| u16::try_from(number).ok());
        let Some(number) = number.filter(|number| OS_ERRORS.contains(number)) else { return };
        let of = places.database.clone().map_or(Of::Nothing, Of::Database);
        let files = places.file.clone().into_iter().collect();
        self.add((of, None, number), Seen { files, is_of_snapshot: places.is_of_snapshot, ..self.seen(at) });
    }

    fn seen(&self, at: Option<Moment>) -> Seen {
        Seen { count: 1, first: at, last: at, position: self.position, ..Seen::default() }
    }

    fn add(&mut self, key: Key, seen: Seen) {
        let has_room = self.events.len() < MOST_EVENTS;
        match self.events.get_mut(&key) {
            Some(event) => event.merge(seen),
            None if has_room => drop(self.events.insert(key, seen)),
            None => self.dropped += 1,
        }
    }

    fn learn(&mut self, places: &Places) {
        if let Some(Database::Named(name)) = &places.database
            && self.names.len() < MOST_NAMES
        {
            self.names.insert(name.clone());
        }
        if let Some((id, name)) = &places.names_database
            && self.databases.len() < MOST_NAMES
        {
            self.databases.entry(*id).or_insert_with(|| name.clone());
        }
        if let (Some(id), Some(name)) = (places.object_id, &places.object)
            && self.objects.len() < MOST_NAMES
        {
            self.objects.entry(id).or_insert_with(|| name.clone());
        }
    }

    fn finish(mut self) -> Pasted {
        for source in self.open.keys().cloned().collect::<Vec<_>>() {
            self.close(&source);
        }
        let mut merged: BTreeMap<(Option<String>, Option<String>, u16), Seen> = BTreeMap::new();
        for ((of, object, number), seen) in std::mem::take(&mut self.events) {
            let key = (self.database(&of, &seen), object.map(|object| self.object(object)), number);
            match merged.get_mut(&key) {
                Some(event) => event.merge(seen),
                None => drop(merged.insert(key, seen)),
            }
        }
        let mut groups: BTreeMap<Option<String>, Vec<Event>> = BTreeMap::new();
        for ((database, object, number), seen) in merged {
            let Some(explained) = Explained::find(u32::from(number), seen.state) else { continue };
            let rank = Rank::of(number, explained);
            groups.entry(database).or_default().push(Event { number, explained, rank, object, seen });
        }
        let mut groups: Vec<Group> = groups.into_iter().map(|(database, events)| Group { database, events }).collect();
        for group in &mut groups {
            group.events.sort_by_key(|event| (event.rank, event.seen.position));
        }
        groups.sort_by_key(Group::order);
        Pasted { groups, unknown: self.unknown, is_cut: false, dropped: self.dropped }
    }

    fn database(&self, of: &Of, seen: &Seen) -> Option<String> {
        match of {
            Of::Database(Database::Named(name)) => Some(name.clone()),
            Of::Database(Database::Id(id)) => {
                let name = self.databases.get(id).cloned().or_else(|| self.name_of_file(seen));
                Some(name.unwrap_or_else(|| format!("database ID {id}")))
            }
            Of::Output(output) => self.names_of_outputs.get(output).cloned(),
            Of::Nothing => self.name_of_file(seen),
        }
    }

    /// The database with the name of a file of the event: usually, the primary data file has the name of its database.
    fn name_of_file(&self, seen: &Seen) -> Option<String> {
        let mut stems = seen.files.iter().filter_map(|file| Some(file.rsplit_once('.')?.0));
        stems.find_map(|stem| self.names.iter().find(|name| name.eq_ignore_ascii_case(stem))).cloned()
    }

    fn object(&self, object: Object) -> String {
        match object {
            Object::Named(name) => name,
            Object::Id(id) => self.objects.get(&id).cloned().unwrap_or_else(|| format!("object ID {id}")),
        }
    }
}

impl Group {
    /// Events of no named database come first if the machine or its storage caused them, otherwise last.
    fn order(&self) -> (u8, u64) {
        let lowest = self.events.first().map(|event| event.rank.layer);
        let place = match (&self.database, lowest) {
            (Some(_), _) => 1,
            (None, Some(Layer::Machine | Layer::Storage)) => 0,
            (None, _) => 2,
        };
        (place, self.events.iter().map(|event| event.seen.position).min().unwrap_or_default())
    }
}

/// Whether an index has this ID and is no heap, no clustered index, and no storage of text (255 in SQL Server 2000).
fn is_nonclustered(index: u32) -> bool {
    index > 1 && !(251..=255).contains(&index)
}

/// The number of errors that a total gives: `found 3 errors`, `found 0 allocation errors and 2 consistency errors`.
fn total(number: u16, text: &str) -> Option<u64> {
    // A name may contain ` found `.
    let before = |mark: &str| text.split_once(mark)?.0.rsplit(' ').next()?.parse::<u64>().ok();
    match number {
        8957 => before(" errors and repaired "),
        8954 | 8989 | 8990 => Some(before(" allocation errors and ")?.saturating_add(before(" consistency errors ")?)),
        _ => None,
    }
}
