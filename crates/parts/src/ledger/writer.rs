//! Writing to a ledger: parts, one after another, and lists of contents.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use check::part::{Digest, digest};
use serde::Serialize;
use sums::HashKey;
use tempfile::NamedTempFile;

use super::contents::{Head, KeptRun, SLOTS, Slot, Span, digest_of};
use crate::error::PartsError;
use crate::whole_file::persist;

/// The parts that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// Where the next part goes.
pub(super) struct Writer {
    pub(super) file: File,
    /// The file, as long as it has a temporary name: until the first parts are added.
    pub(super) temporary: Option<NamedTempFile>,
    /// The number of the newest list of contents.
    pub(super) sequence: u64,
    /// What this process has added to the list of contents.
    pub(super) runs: Vec<KeptRun>,
    pub(super) seen: Option<Span>,
    /// What opening the base has found, to be kept with this run.
    pub(super) opened: Option<Vec<u8>>,
    /// Where that was written.
    pub(super) opened_at: Option<Span>,
    /// What this run has read of the container of the later sets.
    pub(super) later_seen: Option<Vec<u8>>,
    /// Where that was written, and what identifies the files.
    pub(super) later_seen_at: Option<(Digest, Span)>,
    pub(super) at: u64,
    pub(super) buffer: Vec<u8>,
    pub(super) names: Span,
    pub(super) standing: Vec<u8>,
    pub(super) from: u64,
    pub(super) parts: u64,
    pub(super) most_bytes: u64,
    pub(super) is_full: bool,
    pub(super) error: Option<io::Error>,
}

impl Writer {
    pub(super) fn new(
        (file, temporary): (File, Option<NamedTempFile>),
        (at, sequence): (u64, u64),
        most_bytes: u64,
    ) -> Self {
        Self {
            file,
            temporary,
            sequence,
            runs: Vec::new(),
            seen: None,
            opened: None,
            opened_at: None,
            later_seen: None,
            later_seen_at: None,
            at,
            buffer: Vec::new(),
            names: Span::default(),
            standing: Vec::new(),
            from: at,
            parts: 0,
            most_bytes,
            is_full: false,
            error: None,
        }
    }

    pub(super) fn put(&mut self, pieces: &[&[u8]]) -> bool {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        self.is_full |= (self.at + self.buffer.len() as u64 + bytes as u64) > self.most_bytes;
        if self.is_full || self.error.is_some() {
            return false;
        }
        pieces.iter().for_each(|piece| self.buffer.extend_from_slice(piece));
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush();
        }
        self.error.is_none()
    }

    /// Puts something small that must not be left out, however full the ledger is.
    pub(super) fn put_always(&mut self, pieces: &[&[u8]]) -> bool {
        let limit = (std::mem::replace(&mut self.most_bytes, u64::MAX), std::mem::take(&mut self.is_full));
        let is_put = self.put(pieces);
        (self.most_bytes, self.is_full) = limit;
        is_put
    }

    fn flush(&mut self) {
        let written = self.file.seek(SeekFrom::Start(self.at)).and_then(|_| self.file.write_all(&self.buffer));
        match written {
            Ok(()) => self.at += self.buffer.len() as u64,
            Err(error) => self.error = Some(error),
        }
        self.buffer.clear();
    }

    /// The place of what is put next.
    pub(super) fn next(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    /// Writes a list of contents with the parts that were kept since the last one.
    ///
    /// # Errors
    /// If the ledger cannot be written, now or at an earlier attempt. What was added before remains.
    pub(super) fn add<B: Serialize>(
        &mut self,
        (path, former, later_sets): (&Path, &Head<B>, Option<Digest>),
        (image, read_at): (&str, &str),
        seen: Option<&[u8]>,
    ) -> Result<(), PartsError> {
        let unwritable = PartsError::unwritable;
        let content = Span { at: self.from, bytes: self.next() - self.from };
        if let Some(seen) = seen {
            self.seen = Some(Span { at: self.next(), bytes: seen.len() as u64 });
            self.put_always(&[seen]);
        }
        // A standing belongs to the latest run, so that of an earlier run does not remain.
        let standing = std::mem::take(&mut self.standing);
        let standing_at = Span { at: self.next(), bytes: standing.len() as u64 };
        self.put_always(&[&standing]);
        if let Some((of, seen)) = later_sets.zip(self.later_seen.take()) {
            self.later_seen_at = Some((of, Span { at: self.next(), bytes: seen.len() as u64 }));
            self.put_always(&[&seen]);
        }
        if let Some(opened) = self.opened.take() {
            self.opened_at = Some(Span { at: self.next(), bytes: 16 + opened.len() as u64 });
            self.put_always(&[&digest(&HashKey::new(former.key), &opened), &opened]);
        }
        if self.parts > 0 {
            let (image, read_at, parts, names) = (image.to_owned(), read_at.to_owned(), self.parts, self.names);
            self.runs.push(KeptRun { image, read_at, parts, names, content });
            self.parts = 0;
        }
        let Head { build, key, range_pages, base, runs, seen, opened, later_seen, note, standing: _ } = former;
        let head = Head {
            build: build.clone(),
            key: *key,
            range_pages: *range_pages,
            base,
            runs: runs.iter().chain(&self.runs).collect::<Vec<&KeptRun>>(),
            seen: self.seen.unwrap_or(*seen),
            standing: standing_at,
            opened: self.opened_at.unwrap_or(*opened),
            later_seen: self.later_seen_at.or(*later_seen),
            note: note.clone(),
        };
        let json = serde_json::to_vec(&head).map_err(|error| unwritable(path)(error.into()))?;
        let head = Span { at: self.next(), bytes: json.len() as u64 };
        self.put_always(&[&json]);
        self.flush();
        // Nothing is written after an error: a list of contents must not name what is not there.
        if let Some(error) = &self.error {
            return Err(unwritable(path)(io::Error::new(error.kind(), error.to_string())));
        }
        // Parts that follow are those of the same run.
        self.from = self.next();
        let slot = Slot { sequence: self.sequence + 1, head, digest: digest_of(&json) };
        let mut write = || -> io::Result<()> {
            let file = &mut self.file;
            file.sync_data()?;
            let [first, second] = SLOTS;
            file.seek(SeekFrom::Start(if slot.sequence.is_multiple_of(2) { first } else { second }))?;
            file.write_all(&slot.to_bytes())?;
            file.sync_data()
        };
        write().map_err(unwritable(path))?;
        self.sequence = slot.sequence;
        Ok(())
    }

    /// Gives the file its name, if it has a temporary one.
    pub(super) fn put_in_place(&mut self, path: &Path) -> Result<(), PartsError> {
        let temporary = self.temporary.take();
        temporary.map_or(Ok(()), |temporary| persist(temporary, path).map_err(PartsError::unwritable(path)))
    }
}
