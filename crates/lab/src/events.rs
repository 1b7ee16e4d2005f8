//! Generates random histories ("stories") of checkpoints, and writes them as event files, as XML in several forms, and
//! as error logs. The checkpoints of a story are known, so the result of a program that reads these files can be
//! verified.

use std::fmt::Write;

use crate::random::{Random, mix};

/// Size of an event file's buffers, in bytes.
const BUFFER_BYTES: usize = 0x2000;
/// The time at which every story starts: 2016-07-09 03:00 UTC as a FILETIME.
const START: i64 = 131_125_068_000_000_000;
/// Ticks per second of the event clock.
const FREQUENCY: u64 = 3_515_625;

/// A checkpoint of a database, with its start and end in milliseconds since the start of the story.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Truth {
    /// Database ID.
    pub database_id: u32,
    /// Start, in milliseconds since the start of the story.
    pub began_ms: i64,
    /// End, in milliseconds since the start of the story.
    pub ended_ms: i64,
}

/// The recorded start or end of a checkpoint.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at_ms: i64,
    database_id: u32,
    is_end: bool,
    activity: u64,
}

/// A story: checkpoints of several databases, which may overlap in time.
#[derive(Clone, Debug)]
pub struct Story {
    /// The complete checkpoints, ordered by database and then by time.
    pub checkpoints: Vec<Truth>,
    /// The number of checkpoints without a recorded end.
    pub unpaired_begins: u64,
    /// The number of checkpoints without a recorded start.
    pub unpaired_ends: u64,
    /// Whether events have an activity ID (TRACK_CAUSALITY).
    pub tracks_causality: bool,
    marks: Vec<Mark>,
}

/// The form in which events are written as XML.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XmlForm {
    /// One event per line, like the column event_data of sys.fn_xe_file_target_read_file.
    Rows,
    /// One event per line, as query tools print the result of a query. The column name is on the first line, and the
    /// row count is on the last line.
    Column,
    /// Like `Column`, but as CSV: each event is in quotes, and inner quotes are doubled.
    Csv,
    /// All events inside one element, as SSMS exports them.
    Exported,
    /// The content of a ring buffer target, which names the type of each value.
    RingBuffer {
        /// Whether the ring buffer is marked as truncated.
        truncated: bool,
        /// The number of dropped events that the ring buffer reports.
        dropped: u64,
    },
}

/// The encoding of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextEncoding {
    /// UTF-8.
    Utf8,
    /// UTF-8 with a byte order mark.
    Utf8Mark,
    /// UTF-16 with a byte order mark, little-endian.
    Utf16Le,
    /// UTF-16 with a byte order mark, big-endian.
    Utf16Be,
}

impl TextEncoding {
    /// All encodings.
    pub const ALL: [Self; 4] = [Self::Utf8, Self::Utf8Mark, Self::Utf16Le, Self::Utf16Be];

    /// The bytes of a text file with `text` in this encoding.
    pub fn bytes(self, text: &str) -> Vec<u8> {
        let units =
            |unit: fn(u16) -> [u8; 2]| std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(unit).collect();
        match self {
            Self::Utf8 => text.into(),
            Self::Utf8Mark => format!("\u{FEFF}{text}").into(),
            Self::Utf16Le => units(u16::to_le_bytes),
            Self::Utf16Be => units(u16::to_be_bytes),
        }
    }
}

impl Story {
    /// Creates a story of `databases` databases with `each` complete checkpoints per database. In a database with an
    /// even ID, one more checkpoint follows, of which only the start is recorded. In a database with an ID divisible by
    /// three, one more checkpoint precedes the others, of which only the end is recorded.
    pub fn new(seed: u64, databases: u32, each: u32, tracks_causality: bool) -> Self {
        let mut random = Random::new(seed);
        let (mut checkpoints, mut marks) = (Vec::new(), Vec::new());
        let (mut unpaired_begins, mut unpaired_ends) = (0, 0);
        for database_id in (5..).take(databases as usize) {
            let mut at = 1 + random.below(60_000) as i64;
            let mut mark = |at_ms, is_end, activity| marks.push(Mark { at_ms, database_id, is_end, activity });
            if database_id % 3 == 0 {
                mark(at, true, random.next());
                unpaired_ends += 1;
                at += 1;
            }
            for _ in 0..each {
                let (began_ms, activity) = (at, random.next());
                let ended_ms = began_ms + if random.chance(10) { 0 } else { random.below(20_000) as i64 };
                mark(began_ms, false, activity);
                mark(ended_ms, true, activity);
                checkpoints.push(Truth { database_id, began_ms, ended_ms });
                at = ended_ms + 1 + random.below(120_000) as i64;
            }
            if database_id % 2 == 0 {
                mark(at, false, random.next());
                unpaired_begins += 1;
            }
        }
        // If the start and the end of a checkpoint have the same time, the start comes first.
        marks.sort_by_key(|mark| (mark.at_ms, mark.database_id, mark.is_end));
        Self { checkpoints, unpaired_begins, unpaired_ends, tracks_causality, marks }
    }

    /// The start of every story, in units of 100 ns since 1601-01-01 UTC.
    pub const fn start() -> i64 {
        START
    }

    /// Writes the story as an event file. Its buffers are aligned to `alignment` bytes.
    pub fn event_file(&self, alignment: u16) -> Vec<u8> {
        let align = usize::from(alignment);
        let mut file = [0xEFAB_375Au32.to_le_bytes(), [10, 0, 0, 0]].concat();
        file.splice(6..8, alignment.to_le_bytes());
        file.extend((0..16).map(|at| at as u8));
        file.resize(align, 0);
        buffer(&mut file, 1, align, &metadata());
        let mut data = Vec::new();
        for mark in &self.marks {
            let event = self.event(mark);
            if data.len() + event.len() > BUFFER_BYTES {
                buffer(&mut file, 0, align, &data);
                data.clear();
            }
            data.extend(event);
        }
        buffer(&mut file, 0, align, &data);
        file
    }

    fn event(&self, mark: &Mark) -> Vec<u8> {
        let mut event = Writer::default();
        event.u32(id(kind::EVENT, u32::from(mark.is_end), 1));
        event.u32(10 | u32::from(self.tracks_causality) << 31);
        event.u32(0);
        event.u64((mark.at_ms as u64 * FREQUENCY).div_ceil(1000));
        event.u32(4);
        event.u32(mark.database_id);
        if self.tracks_causality {
            event.u32(id(kind::ACTION, 0, 0));
            event.u32(20);
            event.0.extend(activity(mark.activity));
            event.u32(mark.sequence());
            event.u32(id(kind::ACTION, 1, 1));
            event.u32(4);
            event.u32(7);
            // The list of actions ends with an ID that is not the ID of an action.
            event.u64(0);
        }
        event.0
    }

    /// Writes the story as XML.
    pub fn xml(&self, form: XmlForm) -> String {
        let events: Vec<String> = self.marks.iter().map(|mark| self.xml_event(mark, form)).collect();
        let count = events.len();
        match form {
            XmlForm::Rows => events.join("\n") + "\n",
            XmlForm::Column => format!("event_data\n----------\n{}\n\n({count} rows affected)\n", events.join("\n")),
            XmlForm::Csv => {
                let cells = events.iter().map(|event| format!("\"{}\",7\r\n", event.replace('"', "\"\"")));
                "event_data,offset\r\n".to_owned() + &cells.collect::<String>()
            }
            XmlForm::Exported => {
                format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!-- & -->\n<events>{}</events>", events.concat())
            }
            XmlForm::RingBuffer { truncated, dropped } => format!(
                "<RingBufferTarget truncated=\"{}\" processingTime=\"0\" totalEventsProcessed=\"{count}\" \
                 eventCount=\"{count}\" droppedCount=\"{dropped}\" memoryUsed=\"9\">{}</RingBufferTarget>",
                u8::from(truncated),
                events.concat()
            ),
        }
    }

    fn xml_event(&self, mark: &Mark, form: XmlForm) -> String {
        let name = ["checkpoint_begin", "checkpoint_end"][usize::from(mark.is_end)];
        let typed = matches!(form, XmlForm::RingBuffer { .. });
        let kind = |name| if typed { format!("<type name=\"{name}\" package=\"package0\" />") } else { String::new() };
        let mut text = format!(
            "<event name=\"{name}\" package=\"sqlserver\" timestamp=\"{}Z\"><data name=\"database_id\">{}<value>{}</value></data>",
            time(mark.at_ms, 'T', 3),
            kind("uint32"),
            mark.database_id
        );
        let _ = write!(
            text,
            "<action name=\"sql_text\" package=\"sqlserver\"><value>a &lt; &#98; &amp;&amp; 'c'</value></action>"
        );
        if self.tracks_causality {
            let _ = write!(
                text,
                "<action name=\"attach_activity_id\" package=\"package0\">{}<value>{}-{}</value></action>",
                kind("activity_id"),
                guid_text(activity(mark.activity)),
                mark.sequence()
            );
        }
        text + "</event>"
    }

    /// Writes an error log of SQL Server 2016, with the checkpoints that took longer than `slower_than_ms`. The times
    /// in the log are local times of a server that is `offset_minutes` minutes east of UTC.
    pub fn error_log(&self, slower_than_ms: i64, offset_minutes: i64) -> String {
        let sign = if offset_minutes < 0 { "-" } else { "" };
        let local = |ms: i64| time(ms + offset_minutes * 60_000, ' ', 2);
        let mut log = format!(
            "{} Server      Microsoft SQL Server 2016\n\tCopyright (c) Microsoft Corporation\n{} Server      UTC adjustment: {sign}{}:{:02}\n",
            local(0),
            local(0),
            offset_minutes.abs() / 60,
            offset_minutes.abs() % 60
        );
        let mut slow: Vec<&Truth> =
            self.checkpoints.iter().filter(|truth| truth.ended_ms - truth.began_ms > slower_than_ms).collect();
        slow.sort_by_key(|truth| truth.ended_ms);
        for truth in slow {
            let (ms, at) = (truth.ended_ms - truth.began_ms, local(truth.ended_ms));
            let source = format!("spid{}s", truth.database_id);
            let mut line = |text: String| {
                let _ = writeln!(log, "{at} {source:<11} {text}");
            };
            line(format!(
                "FlushCache: cleaned up {} bufs with {ms} writes in {ms} ms (avoided 3 new dirty bufs) for db {}:0",
                2 * ms,
                truth.database_id
            ));
            line("            average writes per second:  17.70 writes/sec".to_owned());
            line(
                "            average throughput:  24.49 MB/sec, I/O saturation: 68365, context switches 80348"
                    .to_owned(),
            );
            line("            last target outstanding: 1560, avgWriteLatency 15".to_owned());
        }
        log
    }
}

impl Mark {
    /// The sequence number of the event in its activity: 1 for the start and 2 for the end of a checkpoint.
    fn sequence(&self) -> u32 {
        1 + u32::from(self.is_end)
    }
}

/// Kinds of objects. The highest bits of an object ID contain the kind.
mod kind {
    pub(super) const EVENT: u32 = 0;
    pub(super) const ACTION: u32 = 1;
    pub(super) const MAP: u32 = 3;
    pub(super) const TYPE: u32 = 6;
}

/// The ID of an object. Package 0 is package0, and package 1 is sqlserver.
const fn id(kind: u32, object: u32, package: u32) -> u32 {
    kind << 28 | object << 10 | package
}

/// Makes the bytes of a GUID from a number.
fn activity(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..].copy_from_slice(&mix(number).to_le_bytes());
    bytes
}

/// A GUID as Windows prints it; the first three groups are stored as little-endian.
fn guid_text(bytes: [u8; 16]) -> String {
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut text = String::new();
    for (at, place) in order.into_iter().enumerate() {
        let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
        let _ = write!(text, "{dash}{:02X}", bytes[place]);
    }
    text
}

/// Formats a point in time, given in milliseconds since the start of the story. The result is valid only until the end
/// of July 2016, about three weeks after the start.
fn time(ms: i64, between: char, digits: usize) -> String {
    let ms = ms + 3 * 3_600_000;
    let (day, ms) = (9 + ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let parts = format!("{:03}", ms % 1000);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("2016-07-{day:02}{between}{hour:02}:{minute:02}:{second:02}.{}", &parts[..digits])
}

/// Appends a buffer: the header, the data, then zeros up to the next multiple of `align`.
fn buffer(file: &mut Vec<u8>, kind: u16, align: usize, data: &[u8]) {
    const DATA_AT: usize = 76;
    let start = file.len();
    let padded = (DATA_AT + data.len()).next_multiple_of(align);
    let mut header = Writer::default();
    header.u64(0);
    header.u32(u32::MAX);
    header.u16(10);
    header.u16(kind);
    header.u32(padded as u32);
    header.u16(0);
    header.u16(DATA_AT as u16);
    header.u32(data.len() as u32);
    // The field contains a checksum. Its algorithm is unknown, so an arbitrary number is written.
    header.u32(mix(start as u64) as u32);
    file.extend(header.0);
    file.resize(start + DATA_AT, 0);
    file.extend(data);
    file.resize(start + padded, 0);
}

/// The packages with the metadata of the events.
fn metadata() -> Vec<u8> {
    let mut types = Writer::default();
    types.u32(0);
    types.u32(1);
    types.object(id(kind::ACTION, 0, 0), "attach_activity_id");
    types.u32(id(kind::TYPE, 24, 0));
    types.u64(0x14);
    types.u32(0);
    let sizes = [(7, "uint32", 4), (16, "guid_ptr", 8), (20, "unicode_string", 0), (24, "activity_id", 20)];
    types.u32(sizes.len() as u32);
    for (number, name, bytes) in sizes {
        types.object(id(kind::TYPE, number, 0), name);
        types.0.push(bytes);
    }
    let mut events = Writer::default();
    events.u32(2);
    for (number, name) in [(0, "checkpoint_begin"), (1, "checkpoint_end")] {
        events.object(id(kind::EVENT, number, 1), name);
        for count in [1, 0, 1, 1] {
            events.u16(count);
        }
        // The type of the field that follows, which contains the GUID of the event.
        events.u32(id(kind::TYPE, 16, 0));
        events.text("UUID");
        events.0.extend([number as u8; 16]);
        events.text("Globally Unique ID");
        events.u32(id(kind::TYPE, 7, 0));
        events.text("database_id");
        events.u32(0);
        events.text("");
    }
    events.u32(1);
    events.object(id(kind::ACTION, 1, 1), "session_id");
    events.u32(id(kind::TYPE, 7, 0));
    events.u64(4);
    events.u32(1);
    events.object(id(kind::MAP, 0, 1), "states");
    events.0.push(1);
    events.u16(1);
    events.u32(0);
    events.text("RUNNING");
    events.u32(0);
    [package(0, "package0", &types.0), package(1, "sqlserver", &events.0)].concat()
}

/// A package with the given objects. Its length is a multiple of eight.
fn package(number: u32, name: &str, objects: &[u8]) -> Vec<u8> {
    let mut package = Writer::default();
    package.u16(10);
    package.u32(0);
    package.0.extend([number as u8; 16]);
    package.0.extend([0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    package.u64(START as u64);
    package.u64(FREQUENCY);
    package.object(number, name);
    package.0.extend([0; 34]);
    package.u32(1);
    package.0.extend([0; 12]);
    package.0.extend(objects);
    let bytes = package.0.len().next_multiple_of(8);
    package.0.resize(bytes, 0);
    package.0.splice(2..6, (bytes as u32).to_le_bytes());
    package.0
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.0.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    }

    /// Appends the fields with which every object starts.
    fn object(&mut self, id: u32, name: &str) {
        self.u16(0);
        self.u16(0);
        self.u32(id);
        self.text(name);
        self.text("");
    }
}
