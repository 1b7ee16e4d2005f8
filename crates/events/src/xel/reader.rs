//! Reads event files one buffer at a time.

use std::io::{self, Read};
use std::sync::Arc;

use format::bytes::{u16_at, u32_at, u64_at};

use super::metadata::Metadata;
use super::values::{Payload, value};
use super::{MAGIC, VERSION, kind};
use crate::{Event, Value};

/// Size of the header of a file. The next constant is the size of the header of a buffer.
const FILE_HEADER_BYTES: usize = 24;
const BUFFER_HEADER_BYTES: usize = 32;
/// Size of the header of an event, which precedes its fields. The next constant is the size of the header of an action,
/// which precedes its value.
const EVENT_HEADER_BYTES: usize = 24;
const ACTION_HEADER_BYTES: usize = 8;
/// Maximum size of a buffer. Sessions use some megabytes, unless MAX_EVENT_SIZE is larger.
const MAX_BUFFER_BYTES: u32 = 256 << 20;

/// An error in an event file, with its offset in bytes.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The operating system could not read the file.
    #[error("cannot be read at byte {at}: {cause}")]
    Io {
        /// Offset in the file, in bytes.
        at: u64,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The file does not start with the header of an event file.
    #[error("is not an event file of Extended Events")]
    NotAnEventFile,
    /// The version of the file is not supported.
    #[error(
        "is an event file of version {found}; mdfsck reads only version {VERSION}, which SQL Server 2012 and later write"
    )]
    Version {
        /// The version in the file.
        found: u16,
    },
    /// The file ends inside a buffer.
    #[error(
        "is cut off at byte {at}, inside the buffer that starts at byte {buffer}: the rest is missing; copy the file again"
    )]
    Cut {
        /// Length of the file, in bytes.
        at: u64,
        /// Offset of the buffer in the file.
        buffer: u64,
    },
    /// Content that no server writes; the rest of the buffer is skipped.
    #[error("is damaged at byte {at}: {what}; the events up to byte {until} are missing")]
    Damaged {
        /// Offset of the damage.
        at: u64,
        /// A description of the damage.
        what: &'static str,
        /// Offset where reading continues.
        until: u64,
    },
    /// The file has content that no server writes, and reading cannot continue after it.
    #[error("is damaged at byte {at}: {what}; the events after it cannot be found")]
    Lost {
        /// Offset of the damage.
        at: u64,
        /// A description of the damage.
        what: &'static str,
    },
}

/// Reads the events of a file, in order. Continues after a fault if possible.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    /// Number of bytes read so far.
    read: u64,
    metadata: Metadata,
    names: Vec<String>,
    passed_over: u64,
    /// The current buffer. The next field is its offset in the file.
    buffer: Vec<u8>,
    buffer_at: u64,
    /// Offset in the buffer of the next event. The next field is the offset at which the events of the buffer end.
    at: usize,
    end: usize,
    /// Whether the file ends inside the current buffer.
    is_cut: bool,
    is_done: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the header of the file.
    ///
    /// # Errors
    pub fn new(input: R) -> Result<Self, Fault> {
        let mut reader = Self {
            input,
            read: 0,
            metadata: Metadata::default(),
            names: Vec::new(),
            passed_over: 0,
            buffer: Vec::new(),
            buffer_at: 0,
            at: 0,
            end: 0,
            is_cut: false,
            is_done: false,
        };
        reader.fill(FILE_HEADER_BYTES as u64)?;
        if !reader.buffer.starts_with(&MAGIC) {
            return Err(Fault::NotAnEventFile);
        }
        match u16_at(&reader.buffer, 4) {
            Some(VERSION) => {}
            Some(found) => return Err(Fault::Version { found }),
            None => return Err(Fault::Cut { at: reader.read, buffer: 0 }),
        }
        // Buffers are aligned to disk sectors, so padding follows the header of the file.
        let alignment = u64::from(u16_at(&reader.buffer, 6).unwrap_or_default());
        let Some(rest) = alignment.checked_sub(FILE_HEADER_BYTES as u64) else {
            return match reader.buffer.len() < FILE_HEADER_BYTES {
                true => Err(Fault::Cut { at: reader.read, buffer: 0 }),
                false => Err(Fault::Lost { at: 6, what: "the alignment of its buffers is smaller than its header" }),
            };
        };
        reader.buffer.clear();
        reader.fill(rest)?;
        if (reader.buffer.len() as u64) < rest {
            return Err(Fault::Cut { at: reader.read, buffer: 0 });
        }
        Ok(reader)
    }

    /// Skips all events whose names are not in `names`; an empty list skips no event.
    #[must_use]
    pub fn only(mut self, names: &[String]) -> Self {
        self.names = names.to_vec();
        self
    }

    /// Number of events skipped so far because of their names.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Appends up to `count` bytes to the buffer. Memory grows with the bytes read, not with `count`.
    fn fill(&mut self, count: u64) -> Result<(), Fault> {
        let read = (&mut self.input).take(count).read_to_end(&mut self.buffer);
        self.read += read.map_err(|cause| {
            self.is_done = true;
            Fault::Io { at: self.read, cause }
        })? as u64;
        Ok(())
    }

    /// Reads the next buffer; `false` at the end of the file.
    fn next_buffer(&mut self) -> Result<bool, Fault> {
        (self.buffer_at, self.at, self.end) = (self.read, 0, 0);
        self.buffer.clear();
        self.fill(BUFFER_HEADER_BYTES as u64)?;
        if self.buffer.is_empty() {
            return Ok(false);
        }
        let nothing_here = Fault::Lost { at: self.buffer_at, what: "no buffer starts at this place" };
        if self.buffer.len() < BUFFER_HEADER_BYTES {
            return Err(self.cut());
        }
        if self.buffer.iter().all(|byte| *byte == 0) {
            // A server extends the file in steps, so the unwritten end of the file is zeros.
            return if self.rest_is_zeros()? { Ok(false) } else { Err(nothing_here) };
        }
        let header = &self.buffer;
        let fields = (|| {
            Some((
                u16_at(header, 12)?,
                u16_at(header, 14)?,
                u32_at(header, 16)?,
                u16_at(header, 22)?,
                u32_at(header, 24)?,
            ))
        })();
        let Some((version, kind, bytes, start, length)) = fields else { return Err(self.cut()) };
        if version != VERSION || !(BUFFER_HEADER_BYTES as u32..=MAX_BUFFER_BYTES).contains(&bytes) {
            return Err(nothing_here);
        }
        self.fill(u64::from(bytes) - BUFFER_HEADER_BYTES as u64)?;
        self.is_cut = self.buffer.len() < bytes as usize;
        let (start, end) = (usize::from(start), usize::from(start).saturating_add(length as usize));
        if start < BUFFER_HEADER_BYTES || end > bytes as usize {
            return Err(self.damaged(0, "the buffer's header contradicts itself"));
        }
        match kind {
            // Kind 0 is a buffer with events.
            0 => (self.at, self.end) = (start, end.min(self.buffer.len())),
            1 => {
                let data = self.buffer.get(start..end.min(self.buffer.len())).unwrap_or_default();
                match self.metadata.add(data) {
                    Err((at, what)) if !self.is_cut => return Err(self.damaged(start + at, what)),
                    _ => {}
                }
            }
            // Kinds 2 and 3 have no events and are skipped: the header of another part of the file, and an index of
            // buffers.
            2 | 3 => {}
            _ => return Err(self.damaged(14, "a buffer of an unknown kind")),
        }
        Ok(true)
    }

    fn rest_is_zeros(&mut self) -> Result<bool, Fault> {
        loop {
            self.buffer.clear();
            self.fill(1 << 16)?;
            if self.buffer.is_empty() {
                return Ok(true);
            }
            if self.buffer.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
        }
    }

    /// Makes the fault for damage in the current buffer, and skips the remainder of the buffer.
    fn damaged(&mut self, at: usize, what: &'static str) -> Fault {
        (self.at, self.end) = (0, 0);
        Fault::Damaged { at: self.buffer_at + at as u64, what, until: self.read }
    }

    /// Reads the next event; `None` if its name is not among the requested names.
    fn event(&mut self) -> Result<Option<Event>, Fault> {
        let start = self.at;
        let bytes = self.buffer.get(start..self.end).unwrap_or_default();
        let header =
            (|| Some((u32_at(bytes, 0)?, u32_at(bytes, 4)?, u64_at(bytes, 12)?, u32_at(bytes, 20)? as usize)))();
        let Some((id, flags, ticks, length)) = header else {
            return Err(self.misfit(start, "an event does not fit in its buffer"));
        };
        if flags & 0x3F != u32::from(VERSION) {
            return Err(self.damaged(start, "no event starts at this place"));
        }
        let Some((payload, rest)) = bytes.get(EVENT_HEADER_BYTES..).and_then(|rest| rest.split_at_checked(length))
        else {
            return Err(self.misfit(start, "an event does not fit in its buffer"));
        };
        let Some((actions, used)) = actions(rest, flags >> 31 != 0) else {
            return Err(self.misfit(start, "the actions of an event do not fit in its buffer"));
        };
        let event_type = self.metadata.events.get(&id);
        let name = event_type.map_or_else(|| Arc::from(format!("unknown event {id:08X}")), |found| found.name.clone());
        let is_wanted = self.names.is_empty() || self.names.iter().any(|wanted| **wanted == *name);
        let event = is_wanted.then(|| {
            let package = self.metadata.package_name(id);
            Event {
                name,
                package: package.map_or_else(|| Arc::from(""), |(name, _)| name.clone()),
                at: package.and_then(|(_, clock)| clock.moment(ticks)),
                fields: self.fields(event_type.map(|found| &**found), payload),
                actions: actions.into_iter().map(|(id, bytes)| self.action(id, bytes)).collect(),
            }
        });
        self.at = start + EVENT_HEADER_BYTES + length + used;
        Ok(event)
    }

    fn fields(&self, event_type: Option<&super::metadata::EventType>, bytes: &[u8]) -> Vec<(Arc<str>, Value)> {
        let Some(event_type) = event_type else {
            return vec![(Arc::from("data"), Value::Undecoded(bytes.to_vec()))];
        };
        let mut payload = Payload::new(bytes);
        let fields = &event_type.fields;
        let ends = fields.iter().skip(1).map(|field| field.offset).chain([bytes.len()]);
        let values =
            fields.iter().zip(ends).map(|(field, end)| (field.name.clone(), payload.field(&self.metadata, field, end)));
        values.collect()
    }

    fn action(&self, id: u32, bytes: &[u8]) -> (Arc<str>, Value) {
        match self.metadata.actions.get(&id) {
            Some(action) => (action.name.clone(), value(&self.metadata, action.type_id, bytes)),
            None => (Arc::from(format!("unknown action {id:08X}")), Value::Undecoded(bytes.to_vec())),
        }
    }

    /// Makes the fault for content that extends beyond its buffer. If the file ends in this buffer, the file is cut
    /// off; otherwise it is damaged.
    fn misfit(&mut self, at: usize, what: &'static str) -> Fault {
        match self.is_cut {
            true => self.cut(),
            false => self.damaged(at, what),
        }
    }

    fn cut(&mut self) -> Fault {
        self.is_done = true;
        Fault::Cut { at: self.read, buffer: self.buffer_at }
    }
}

/// The ID and value of an action.
type RawAction<'a> = (u32, &'a [u8]);

/// Reads the actions after an event, if `follow` is true; otherwise there are none. Returns the actions and the number
/// of bytes that the actions occupy. `None` if an action extends beyond `bytes`.
fn actions(bytes: &[u8], follow: bool) -> Option<(Vec<RawAction<'_>>, usize)> {
    let (mut found, mut at) = (Vec::new(), 0usize);
    if !follow {
        return Some((found, at));
    }
    loop {
        let (id, length) = (u32_at(bytes, at)?, u32_at(bytes, at.checked_add(4)?)? as usize);
        at += ACTION_HEADER_BYTES;
        if kind::of(id) != kind::ACTION {
            return Some((found, at));
        }
        let end = at.checked_add(length)?;
        found.push((id, bytes.get(at..end)?));
        at = end;
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Event, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_done {
            if self.at < self.end {
                match self.event() {
                    Ok(Some(event)) => return Some(Ok(event)),
                    Ok(None) => self.passed_over += 1,
                    Err(fault) => return Some(Err(fault)),
                }
                continue;
            }
            if self.is_cut {
                return Some(Err(self.cut()));
            }
            match self.next_buffer() {
                Ok(true) => {}
                Ok(false) => self.is_done = true,
                Err(fault) => {
                    self.is_done |= matches!(fault, Fault::Lost { .. });
                    return Some(Err(fault));
                }
            }
        }
        None
    }
}
