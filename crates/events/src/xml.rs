//! Reads events as XML (docs/format/events.md#xml): rows of `sys.fn_xe_file_target_read_file`, ring buffers, and
//! exports of SSMS.
//!
//! The input may have any number of root elements, and other text between the root elements. The quotes of the input
//! may be doubled, as in CSV files. Only the five predefined entities of XML and numeric character references are
//! expanded; document type declarations are skipped.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use quick_xml::XmlVersion;
use quick_xml::errors::SyntaxError;
use quick_xml::events::{BytesStart, Event as Token};

use crate::text::Utf8;
use crate::{Clock, Event, Moment, Value};

/// Maximum size of an event, in bytes. The next constant is the maximum size of a text or tag between events.
const MAX_EVENT_BYTES: u64 = 64 << 20;
const MAX_BETWEEN_BYTES: u64 = 1 << 20;
/// Maximum depth of the elements around an event. The next constant is the maximum depth of the elements inside an
/// event, which may contain a query plan.
const MAX_DEPTH_AROUND: usize = 16;
const MAX_DEPTH: usize = 2000;

/// An error in a file of events as XML. Reading cannot continue after it.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The operating system could not read the file.
    #[error("cannot be read: {0}")]
    Io(io::Error),
    /// The file ends inside an event.
    #[error("is cut off: it ends inside an event, after {events} complete events; export the events again")]
    Cut {
        /// Number of events before the cut event.
        events: u64,
    },
    /// The content is not XML.
    #[error(
        "is not XML at byte {at} of its text, after {events} events: {what}; the events after this byte cannot be read"
    )]
    NotXml {
        /// Offset in the decoded text, in bytes of UTF-8.
        at: u64,
        /// Number of events before this offset.
        events: u64,
        /// A description of the syntax error.
        what: String,
    },
}

/// The decoded UTF-8 text, from which tokens are read.
type Text<R> = Bounded<BufReader<CsvQuotes<BufReader<Utf8<R>>>>>;

/// Reads the events of a file, in order.
pub struct Reader<R: Read> {
    tokens: quick_xml::Reader<Text<R>>,
    token: Vec<u8>,
    depth: usize,
    events: u64,
    is_done: bool,
    ring_buffer: RingBuffer,
}

/// The report of a ring buffer about missing events.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RingBuffer {
    /// Whether the server left out events that did not fit into its output.
    pub is_truncated: bool,
    /// Number of events that were dropped before they reached the ring buffer.
    pub dropped: u64,
}

impl<R: Read> Reader<R> {
    /// Reads events from `input`, in UTF-8 or UTF-16.
    pub fn new(input: R) -> Self {
        let text = BufReader::new(CsvQuotes::new(BufReader::new(Utf8::new(input))));
        let tokens =
            quick_xml::Reader::from_reader(Bounded { input: text, left: MAX_BETWEEN_BYTES, is_exceeded: false });
        Self { tokens, token: Vec::new(), depth: 0, events: 0, is_done: false, ring_buffer: RingBuffer::default() }
    }

    /// The reports of all ring buffers read so far, combined.
    pub fn ring_buffer(&self) -> RingBuffer {
        self.ring_buffer
    }

    fn allow(&mut self, bytes: u64) {
        self.tokens.get_mut().left = bytes;
    }

    /// Reads the next event; `None` at the end of the file.
    fn read(&mut self) -> Result<Option<Event>, Fault> {
        loop {
            self.allow(MAX_BETWEEN_BYTES);
            self.token.clear();
            let token = self.tokens.read_event_into(&mut self.token);
            match token {
                Ok(Token::Start(tag)) => {
                    if tag.name().as_ref() == "event" {
                        let event = Unfinished::of(&tag);
                        self.allow(MAX_EVENT_BYTES);
                        return self.event(event).map(Some);
                    }
                    self.ring_buffer.add(&tag);
                    self.depth += 1;
                    if self.depth > MAX_DEPTH_AROUND {
                        return Err(self.fault("elements are nested too deeply"));
                    }
                }
                Ok(Token::Empty(tag)) => {
                    if tag.name().as_ref() == "event" {
                        return Ok(Some(Unfinished::of(&tag).event));
                    }
                    self.ring_buffer.add(&tag);
                }
                Ok(Token::End(_)) => self.depth = self.depth.saturating_sub(1),
                Ok(Token::Eof) if self.depth > 0 => return Err(Fault::Cut { events: self.events }),
                Ok(Token::Eof) => return Ok(None),
                Ok(_) => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }

    /// Reads the remainder of an event.
    fn event(&mut self, mut event: Unfinished) -> Result<Event, Fault> {
        let mut depth = 0;
        loop {
            self.token.clear();
            match self.tokens.read_event_into(&mut self.token) {
                Ok(Token::Start(tag)) => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return Err(self.fault("elements are nested too deeply"));
                    }
                    event.start(depth, &tag);
                }
                Ok(Token::Empty(tag)) => {
                    event.start(depth + 1, &tag);
                    event.end(depth + 1, "", true);
                }
                Ok(Token::End(_)) if depth == 0 => return Ok(event.event),
                Ok(Token::End(tag)) => {
                    event.end(depth, tag.name().as_ref(), false);
                    depth -= 1;
                }
                Ok(Token::Text(text)) => event.text(depth, &text),
                Ok(Token::CData(text)) => event.text(depth, &text),
                Ok(Token::GeneralRef(name)) => match name.resolve_char_ref() {
                    Ok(Some(letter)) => event.text(depth, letter.encode_utf8(&mut [0; 4])),
                    _ => match quick_xml::escape::resolve_xml_entity(&name) {
                        Some(text) => event.text(depth, text),
                        None => event.text(depth, &format!("&{};", &*name)),
                    },
                },
                Ok(Token::Eof) => return Err(Fault::Cut { events: self.events }),
                Ok(_) => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }

    fn fault(&self, what: &str) -> Fault {
        Fault::NotXml { at: self.tokens.buffer_position(), events: self.events, what: what.to_owned() }
    }

    fn failed(&self, error: &quick_xml::Error) -> Fault {
        match error {
            quick_xml::Error::Io(_) if self.tokens.get_ref().is_exceeded => {
                self.fault("a tag, text or event is larger than any server writes")
            }
            quick_xml::Error::Io(cause) => Fault::Io(io::Error::new(cause.kind(), cause.to_string())),
            quick_xml::Error::Syntax(error) if is_cut(error) => Fault::Cut { events: self.events },
            _ => Fault::NotXml { at: self.tokens.error_position(), events: self.events, what: error.to_string() },
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Event, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let next = self.read().transpose();
        match &next {
            Some(Ok(_)) => self.events += 1,
            _ => self.is_done = true,
        }
        next
    }
}

/// Whether the error means that the text ends inside a token.
fn is_cut(error: &SyntaxError) -> bool {
    !matches!(error, SyntaxError::InvalidBangMarkup)
}

impl RingBuffer {
    fn add(&mut self, tag: &BytesStart<'_>) {
        if tag.name().as_ref() == "RingBufferTarget" {
            self.is_truncated |= attribute(tag, "truncated").is_some_and(|value| value != "0");
            let dropped = attribute(tag, "droppedCount").and_then(|value| value.parse().ok()).unwrap_or(0);
            self.dropped = self.dropped.saturating_add(dropped);
        }
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = tag.attributes();
    let found = attributes.with_checks(false).filter_map(Result::ok).find(|found| found.key.as_ref() == name)?;
    Some(match found.normalized_value(XmlVersion::Explicit1_0) {
        Ok(value) => value.into_owned(),
        Err(_) => found.value.into_owned(),
    })
}

/// An event that was read in part, and its current value.
struct Unfinished {
    event: Event,
    is_action: bool,
    name: Arc<str>,
    type_name: String,
    value: Option<String>,
    text: Option<String>,
    part: Part,
}

/// The part of a value that the current text belongs to.
#[derive(PartialEq)]
enum Part {
    Nothing,
    Value,
    Text,
}

impl Unfinished {
    fn of(tag: &BytesStart<'_>) -> Self {
        let at = attribute(tag, "timestamp").and_then(|text| Moment::parse(&text));
        let event = Event {
            name: attribute(tag, "name").unwrap_or_default().into(),
            package: attribute(tag, "package").unwrap_or_default().into(),
            // Timestamps of events are in UTC and marked as UTC; any other timestamp is ignored.
            at: at.filter(|(_, clock)| *clock == Clock::Utc).map(|(moment, _)| moment),
            fields: Vec::new(),
            actions: Vec::new(),
        };
        let (name, part) = (Arc::from(""), Part::Nothing);
        Self { event, is_action: false, name, type_name: String::new(), value: None, text: None, part }
    }

    /// Handles the start of an element. Elements at depth 1 are `data` and `action`, those at depth 2 are their parts,
    /// and deeper elements are the content of a value.
    fn start(&mut self, depth: usize, tag: &BytesStart<'_>) {
        let name = tag.name();
        match (depth, name.as_ref()) {
            (1, name) => {
                self.is_action = name == "action";
                self.name = attribute(tag, "name").unwrap_or_default().into();
                (self.value, self.text, self.part) = (None, None, Part::Nothing);
                self.type_name.clear();
            }
            (2, "type") => self.type_name = attribute(tag, "name").unwrap_or_default(),
            (2, "value") => (self.value, self.part) = (Some(String::new()), Part::Value),
            (2, "text") => (self.text, self.part) = (Some(String::new()), Part::Text),
            (2, _) => self.part = Part::Nothing,
            _ => self.inside(&["<", tag, ">"]),
        }
    }

    fn end(&mut self, depth: usize, name: &str, is_empty: bool) {
        match depth {
            1 => {
                let values = if self.is_action { &mut self.event.actions } else { &mut self.event.fields };
                let value = match (self.text.take().filter(|text| !text.is_empty()), self.value.take()) {
                    (Some(text), _) => Value::Text(text),
                    (None, value) => typed(&self.type_name, value.unwrap_or_default()),
                };
                values.push((self.name.clone(), value));
            }
            2 => self.part = Part::Nothing,
            _ if is_empty => {
                // The element is empty, but the start tag `<name>` was already added to the text. So this tag is
                // changed to `<name/>`.
                if let Some(text) = self.at_hand()
                    && text.pop().is_some()
                {
                    text.push_str("/>");
                }
            }
            _ => self.inside(&["</", name, ">"]),
        }
    }

    fn at_hand(&mut self) -> Option<&mut String> {
        match self.part {
            Part::Nothing => None,
            Part::Value => self.value.as_mut(),
            Part::Text => self.text.as_mut(),
        }
    }

    fn inside(&mut self, parts: &[&str]) {
        if let Some(text) = self.at_hand() {
            parts.iter().for_each(|part| text.push_str(part));
        }
    }

    fn text(&mut self, depth: usize, text: &str) {
        match depth {
            0 | 1 => {}
            2 => self.inside(&[text]),
            // Escapes text inside a value that is XML, so that the value stays XML.
            _ => self.inside(&[&quick_xml::escape::partial_escape(text)]),
        }
    }
}

/// Decodes a value. `type_name` is the name of its type.
fn typed(type_name: &str, value: String) -> Value {
    let known = match type_name {
        "int8" | "int16" | "int32" | "uint8" | "uint16" | "uint32" => value.parse().ok().map(Value::Int),
        "int64" => value.parse().ok().map(Value::BigInt),
        "uint64" | "cpu_cycle" => value.parse().ok().map(Value::BigUint),
        "float32" | "float64" => value.parse().ok().map(Value::Float),
        "boolean" => value.parse().ok().map(Value::Boolean),
        _ => None,
    };
    known.unwrap_or(Value::Text(value))
}

/// Limits the number of bytes to read; a read beyond the limit fails.
struct Bounded<R> {
    input: R,
    left: u64,
    is_exceeded: bool,
}

impl<R: BufRead> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let bytes = self.input.fill_buf()?;
        if self.left == 0 && !bytes.is_empty() {
            self.is_exceeded = true;
            return Err(io::Error::other("too large"));
        }
        Ok(bytes)
    }

    fn consume(&mut self, count: usize) {
        self.left = self.left.saturating_sub(count as u64);
        self.input.consume(count);
    }
}

/// Replaces doubled quotes by single ones, for events in a column of a CSV file.
struct CsvQuotes<R> {
    input: R,
    /// Whether the input doubles quotes; `None` before its first bytes.
    are_doubled: Option<bool>,
    /// Whether the previous byte was a quote, and was not dropped.
    after_quote: bool,
}

impl<R: BufRead> CsvQuotes<R> {
    fn new(input: R) -> Self {
        Self { input, are_doubled: None, after_quote: false }
    }
}

impl<R: BufRead> Read for CsvQuotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let bytes = self.input.fill_buf()?;
            let (are_doubled, taken) = (&mut self.are_doubled, bytes.len().min(buffer.len()));
            let are_doubled =
                *are_doubled.get_or_insert_with(|| bytes.windows(14).any(|part| part == b"<event name=\"\""));
            let mut count = 0;
            for byte in bytes.iter().take(taken) {
                let is_second = are_doubled && *byte == b'"' && self.after_quote;
                self.after_quote = *byte == b'"' && !is_second;
                if !is_second && let Some(place) = buffer.get_mut(count) {
                    *place = *byte;
                    count += 1;
                }
            }
            self.input.consume(taken);
            if count > 0 || taken == 0 {
                return Ok(count);
            }
        }
    }
}
