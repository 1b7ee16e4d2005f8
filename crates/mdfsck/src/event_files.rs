//! Reads the files of `mdfsck events` and `mdfsck checkpoints`. Identifies each file by its content. Reads one event at
//! a time, so that a large file needs little memory.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use events::xml::RingBuffer;
use events::{Event, IDENTIFY_BYTES, Kind, xel, xml};
use jobs::failure::{Failure, unreadable};
use source::storage::{self, Kind as PathKind};
use source::{FileKind, FromStart, SharedFile, read_fully_at};

use crate::speaker::warn;

/// Maximum number of faults to show per file; further faults are only counted.
const SHOWN_FAULTS: u64 = 10;

/// The kind of a file, identified by its content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// The file contains Extended Events, or is an error log.
    Events(Kind),
    /// A data file, a log file or a backup.
    Database(FileKind),
    /// The content is in no supported format.
    Other,
}

/// Identifies the file at `path`.
///
/// # Errors
/// If the file cannot be read, or the path is not a file.
pub(crate) fn content(path: &Path) -> Result<Content, Failure> {
    let failed = |cause| unreadable(path, &cause);
    let PathKind::File { .. } = storage::kind(path).map_err(failed)? else {
        return Err(Failure::unable(format!("{}: is not a file", path.display())));
    };
    let file = SharedFile::open(path).map_err(failed)?;
    let mut start = vec![0; IDENTIFY_BYTES];
    let read = read_fully_at(&file, &mut start, 0).map_err(failed)?;
    start.truncate(read);
    Ok(match (source::identify(&start), events::identify(&start)) {
        (FileKind::Other, None) => Content::Other,
        (FileKind::Other, Some(kind)) => Content::Events(kind),
        (kind, _) => Content::Database(kind),
    })
}

/// Reads the events of an event file or an XML file.
pub(crate) struct EventReader {
    path: PathBuf,
    form: Form,
    faults: u64,
}

enum Form {
    Xel(Box<xel::Reader<BufReader<FromStart>>>),
    Xml(Box<xml::Reader<FromStart>>),
}

impl EventReader {
    /// Opens a file of the given kind. In an event file, decodes only events with one of `names`, or all events if
    /// `names` is empty.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub(crate) fn open(path: &Path, kind: Kind, names: &[String]) -> Result<Self, Failure> {
        let unable = |cause: String| Failure::unable(format!("{}: {cause}", path.display()));
        let file = SharedFile::open(path).map(FromStart::new).map_err(|cause| unreadable(path, &cause))?;
        let form = match kind {
            Kind::Xel => {
                let reader = xel::Reader::new(BufReader::new(file)).map_err(|fault| unable(fault.to_string()))?;
                Form::Xel(Box::new(reader.only(names)))
            }
            Kind::Xml => Form::Xml(Box::new(xml::Reader::new(file))),
            Kind::ErrorLog => return Err(unable("is an error log, which has no events".to_owned())),
        };
        Ok(Self { path: path.to_owned(), form, faults: 0 })
    }

    /// The number of faults found so far.
    pub(crate) fn faults(&self) -> u64 {
        self.faults
    }

    /// The combined reports of all ring buffers in the file about missing events.
    pub(crate) fn ring_buffer(&self) -> RingBuffer {
        match &self.form {
            Form::Xel(_) => RingBuffer::default(),
            Form::Xml(reader) => reader.ring_buffer(),
        }
    }

    fn next(&mut self) -> Option<Result<Event, String>> {
        match &mut self.form {
            Form::Xel(reader) => reader.next().map(|next| next.map_err(|fault| fault.to_string())),
            Form::Xml(reader) => reader.next().map(|next| next.map_err(|fault| fault.to_string())),
        }
    }

    /// Passes each event to `event`, without reporting faults.
    pub(crate) fn each_quietly(&mut self, event: impl FnMut(Event) -> std::io::Result<()>) -> std::io::Result<()> {
        std::iter::from_fn(|| self.next()).flatten().try_for_each(event)
    }

    /// Passes each event to `event`. Warns about the first faults, and passes their texts to `fault`.
    pub(crate) fn each(
        &mut self,
        mut event: impl FnMut(Event) -> std::io::Result<()>,
        mut fault: impl FnMut(&str),
    ) -> std::io::Result<()> {
        while let Some(next) = self.next() {
            match next {
                Ok(next) => event(next)?,
                Err(text) => {
                    self.faults += 1;
                    if self.faults <= SHOWN_FAULTS {
                        let text = format!("{}: {text}", self.path.display());
                        warn(&text);
                        fault(&text);
                    }
                }
            }
        }
        if self.faults > SHOWN_FAULTS {
            warn(format!("{}: {} more faults of this kind", self.path.display(), self.faults - SHOWN_FAULTS));
        }
        let ring = self.ring_buffer();
        if ring.is_truncated || ring.dropped > 0 {
            warn(format!(
                "{}: the ring buffer {}dropped {} events, so events are missing, perhaps also the begin or end of \
                 checkpoints; use an event file, which keeps all events",
                self.path.display(),
                if ring.is_truncated { "was truncated when it was read and " } else { "" },
                ring.dropped
            ));
        }
        Ok(())
    }
}
