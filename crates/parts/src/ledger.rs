//! The ledger of a base: the parts of many small ranges of pages, kept by the check of a full backup and by later checks
//! of states that build on it. All parts are in one file.
//!
//! | at | content |
//! |---|---|
//! | 0 | the kind of the file |
//! | 512, 1024 | two slots, which are written in turn: the place of the list of contents, and digests |
//! | 4096 | groups of parts ([`groups`]), names and lists of contents, one after another |
//!
//! Bytes that a slot refers to are never overwritten, and the slot is written last. So a process that is killed leaves
//! the ledger as it was before.

mod compact;
pub(crate) mod contents;
mod groups;
mod writer;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use check::change::{self, Entry, NotByChange, Part, PartKey, packed};
use check::part::{Digest, digest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sums::HashKey;

use crate::error::PartsError;
use crate::random::random;
use crate::whole_file::in_folder;
use contents::{CONTENT, Head, KIND, Span, damaged, head_of, is_range, span};
use groups::Group;
use writer::Writer;

pub use contents::KeptRun;

/// What is in a ledger.
#[derive(Clone, Debug)]
pub struct LedgerContent<B> {
    /// The build of mdfsck that made the ledger; no other build can use it.
    pub build: String,
    /// The base, as the caller described it.
    pub base: B,
    /// The runs, the earliest first.
    pub runs: Vec<KeptRun>,
    /// The size of the file.
    pub bytes: u64,
}

/// A ledger that this process has to itself.
pub struct Ledger<B> {
    path: PathBuf,
    head: Head<B>,
    /// What was read before this time is read again.
    read_again_before: Option<String>,
    file: File,
    writer: Mutex<Writer>,
    /// What identifies the files of the later sets.
    later_sets: Option<Digest>,
}

impl<B: Serialize + DeserializeOwned> Ledger<B> {
    /// Makes an empty ledger of at most `most_bytes`, which replaces the ledger at `path` when a run is kept.
    ///
    /// # Errors
    /// If no file can be made there.
    pub fn create(path: &Path, build: &str, range_pages: u32, base: B, most_bytes: u64) -> Result<Self, PartsError> {
        let unwritable = PartsError::unwritable;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(unwritable(folder))?;
        }
        let temporary = in_folder(path, 0o600).map_err(unwritable(path))?;
        // On Windows, a lock keeps all other handles from the file, even those of this process. The two handles share one
        // position, so each read and each write sets it first.
        let opened = temporary.reopen().and_then(|file| {
            file.try_lock()?;
            Ok((file.try_clone()?, file))
        });
        let (mut of_writer, file) = opened.map_err(unwritable(path))?;
        of_writer.write_all(KIND).map_err(unwritable(path))?;
        let build = build.to_owned();
        let head = Head {
            build,
            key: random()?,
            range_pages,
            base,
            runs: Vec::new(),
            seen: Span::default(),
            standing: Span::default(),
            opened: Span::default(),
            later_seen: None,
            note: String::new(),
        };
        let writer = Mutex::new(Writer::new((of_writer, Some(temporary)), (CONTENT, 0), most_bytes));
        Ok(Self { path: path.to_owned(), head, read_again_before: None, file, writer, later_sets: None })
    }

    /// The facts of all runs are hashed with this key. The ledger must be new.
    #[must_use]
    pub fn with_key(mut self, key: &HashKey) -> Self {
        self.head.key = *key.bytes();
        self
    }

    /// Opens a ledger. No other process can use it until the returned value is dropped.
    ///
    /// # Errors
    /// If there is no ledger, if it is damaged, if another build of mdfsck has made it, or if another process uses it.
    pub fn open(path: &Path, build: &str) -> Result<Self, PartsError> {
        let unreadable = PartsError::unreadable;
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let mut file = opened.map_err(unreadable(path))?;
        let of_writer = file.try_clone().map_err(unreadable(path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(PartsError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(cause)) => return Err(unreadable(path)(cause)),
        }
        let (newest, head) = head_of::<B>(path, &mut file)?;
        if head.build != build {
            let (theirs, ours) = (head.build, build.to_owned());
            return Err(PartsError::OtherBuild { path: path.to_owned(), theirs, ours });
        }
        let length = file.metadata().map_err(unreadable(path))?.len();
        let of_runs = head.runs.iter().flat_map(|run| [run.names, run.content]);
        let others = [head.seen, head.standing, head.opened, newest.head];
        let spans = of_runs.chain(others).chain(head.later_seen.map(|(_, seen)| seen));
        let end = spans.map(Span::end).max().unwrap_or(CONTENT);
        if end > length || !is_range(head.range_pages) {
            return Err(damaged(path, "it is cut off"));
        }
        let writer = Mutex::new(Writer::new((of_writer, None), (end, newest.sequence), u64::MAX));
        Ok(Self { path: path.to_owned(), head, read_again_before: None, file, writer, later_sets: None })
    }

    /// The ledger may have at most this many bytes from here on. What it has already remains.
    pub fn hold_at_most(&mut self, most_bytes: u64) {
        self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).most_bytes = most_bytes;
    }

    /// Sets a digest of what identifies the files of the later sets of the backup.
    pub fn of_later_sets(&mut self, later_sets: Option<Digest>) {
        self.later_sets = later_sets;
    }

    /// What an earlier run has read of the container of the later sets, if their files are the same.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub fn later_seen(&self) -> Result<Option<Vec<u8>>, PartsError> {
        let known = self.head.later_seen.filter(|(of, _)| Some(*of) == self.later_sets);
        let read = |(_, place)| span(&mut &self.file, place).map_err(PartsError::unreadable(&self.path));
        known.map(read).transpose()
    }

    /// Keeps what this run has read of the container of the later sets, together with this run.
    pub fn keep_later_seen(&mut self, seen: Vec<u8>) {
        self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).later_seen = Some(seen);
    }

    /// Keeps what opening the base has found, together with this run.
    pub fn keep_opened(&mut self, opened: Option<Vec<u8>>) {
        self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).opened = opened;
    }

    /// What opening the base has found, if the ledger has it as it was kept.
    pub fn opened_bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = span(&mut &self.file, self.head.opened).ok()?;
        let own = *bytes.first_chunk::<16>()?;
        bytes.drain(..own.len());
        (digest(&self.key(), &bytes) == own).then_some(bytes)
    }

    /// Writes the ledger although no run has kept parts.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub fn keep_empty(self) -> Result<(), PartsError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.add((&self.path, &self.head, None), ("", ""), None)?;
        writer.put_in_place(&self.path)
    }

    /// What was read before this time is read again from here on.
    pub fn read_again_before(&mut self, time: String) {
        self.read_again_before = Some(time);
    }

    /// What the caller has noted; empty if nothing.
    pub fn note(&self) -> &str {
        &self.head.note
    }

    /// Notes something for the next run. It is written with the parts of this run.
    pub fn set_note(&mut self, note: String) {
        self.head.note = note;
    }

    /// What opening the base of a ledger has found, if it is the wanted base, and if there are at most `most_bytes` bytes.
    /// `None` if there is nothing, or if the ledger is damaged or of another build. Another process may be using the ledger.
    pub fn opened(path: &Path, build: &str, most_bytes: u64, is_wanted: impl FnOnce(&B) -> bool) -> Option<Vec<u8>> {
        let mut file = File::open(path).ok()?;
        let (_, head) = head_of::<B>(path, &mut file).ok()?;
        if head.build != build || head.opened.bytes > most_bytes || !is_wanted(&head.base) {
            return None;
        }
        let mut bytes = span(&mut file, head.opened).ok()?;
        let own = *bytes.first_chunk::<16>()?;
        bytes.drain(..own.len());
        (digest(&HashKey::new(head.key), &bytes) == own).then_some(bytes)
    }

    /// The key and the base of a ledger of this build, which another process may be using; `None` if there is no such
    /// ledger.
    pub fn key_of(path: &Path, build: &str) -> Option<(HashKey, B)> {
        let (_, head) = head_of::<B>(path, &mut File::open(path).ok()?).ok()?;
        (head.build == build).then(|| (HashKey::new(head.key), head.base))
    }

    /// What is in a ledger, which another process may be using.
    ///
    /// # Errors
    /// If there is no ledger, or if it is damaged.
    pub fn look(path: &Path) -> Result<LedgerContent<B>, PartsError> {
        let mut file = File::open(path).map_err(PartsError::unreadable(path))?;
        let (_, Head { build, base, runs, .. }) = head_of::<B>(path, &mut file)?;
        let bytes = file.metadata().map_err(PartsError::unreadable(path))?.len();
        Ok(LedgerContent { build, base, runs, bytes })
    }

    /// The key with which the facts of all runs are hashed.
    pub fn key(&self) -> HashKey {
        HashKey::new(self.head.key)
    }

    /// The base, as the caller described it.
    pub fn base(&self) -> &B {
        &self.head.base
    }

    /// The runs whose parts are in the ledger, the latest first.
    pub fn runs(&self) -> impl Iterator<Item = &KeptRun> {
        self.head.runs.iter().rev()
    }

    /// What the check of the base has read of the container.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub fn seen(&self) -> Result<Vec<u8>, PartsError> {
        let read = |mut file: &File| span(&mut file, self.head.seen);
        read(&self.file).map_err(PartsError::unreadable(&self.path))
    }

    /// Adds what this run has kept so far to the ledger. If the process is killed later, it stays there.
    ///
    /// # Errors
    /// If the ledger cannot be written. What was added before remains.
    pub fn checkpoint(&self, image: &str, read_at: &str) -> Result<(), PartsError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.parts == 0 && writer.error.is_none() {
            return Ok(());
        }
        writer.add((&self.path, &self.head, self.later_sets), (image, read_at), None)?;
        writer.put_in_place(&self.path)
    }

    /// Adds the parts of this run to the ledger, if there are any. `seen` is what was read of the container of the base.
    /// Returns whether all parts found room.
    ///
    /// # Errors
    /// If the ledger cannot be written. The parts of earlier runs remain.
    pub fn commit(self, image: String, read_at: String, seen: Option<&[u8]>) -> Result<bool, PartsError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_whole = !writer.is_full;
        let is_window = !writer.runs.is_empty() || seen.is_some() && !self.head.runs.is_empty();
        if writer.parts == 0 && writer.error.is_none() && !is_window {
            // There is nothing to keep: nothing has changed, or not even the names found room.
            return Ok(is_whole);
        }
        writer.add((&self.path, &self.head, self.later_sets), (&image, &read_at), seen)?;
        writer.put_in_place(&self.path)?;
        Ok(is_whole)
    }
}

impl<B> Ledger<B> {
    /// Calls `visit` with each group of a run.
    fn each_of<E: From<io::Error>>(
        &self,
        run: &KeptRun,
        mut visit: impl FnMut(&mut Group<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = run.content.at;
        while at < run.content.end() {
            let mut group = Group::open(&self.file, at, run.content.end())?;
            at = group.end();
            visit(&mut group)?;
        }
        Ok(())
    }
}

impl<B: Sync + Send> change::Ledger for Ledger<B> {
    fn range_pages(&self) -> u32 {
        self.head.range_pages
    }

    fn runs(&self) -> usize {
        self.head.runs.len()
    }

    fn must_read_again(&self, run: usize) -> bool {
        let runs = &self.head.runs;
        let read_at = run.checked_add(1).and_then(|run| runs.get(runs.len().checked_sub(run)?)).map(|run| &run.read_at);
        self.read_again_before.as_ref().zip(read_at).is_some_and(|(before, read_at)| read_at < before)
    }

    fn each(&self, visit: &mut dyn FnMut(Entry<'_>) -> Result<(), NotByChange>) -> Result<(), NotByChange> {
        for run in self.head.runs.iter().rev() {
            let mut file = &self.file;
            visit(Entry::Run(&span(&mut file, run.names)?))?;
            self.each_of(run, |group| visit(Entry::Group(group)))?;
        }
        Ok(())
    }

    fn standing(&self) -> Result<Option<Vec<u8>>, NotByChange> {
        let mut file = &self.file;
        Ok((self.head.standing.bytes > 0).then(|| span(&mut file, self.head.standing)).transpose()?)
    }

    fn later_sets(&self) -> Option<Digest> {
        self.later_sets
    }

    fn begin(&self, names: &[u8]) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.names = Span { at: writer.next(), bytes: names.len() as u64 };
        writer.put_always(&[names]);
        (writer.from, writer.parts) = (writer.next(), 0);
    }

    fn keep(&self, parts: &[Part], all: &[u8]) {
        let head = packed::head(parts, all);
        let pieces: Vec<&[u8]> = packed::pieces(&head, parts, all).collect();
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // What was found must hide the sums of earlier runs, however full the ledger is.
        let has_sums = parts.iter().any(|part| part.key.above != PartKey::FOUND);
        let is_put = if has_sums { writer.put(&pieces) } else { writer.put_always(&pieces) };
        if is_put {
            writer.parts += parts.len() as u64;
        }
    }

    fn stand(&self, standing: &[u8]) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.standing = standing.to_vec();
    }
}

#[cfg(test)]
mod tests;
