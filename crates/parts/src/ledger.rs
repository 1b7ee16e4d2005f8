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

mod groups;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use check::change::{self, Entry, KeptGroup, NotByChange, Part, Piece};
use check::part::{Digest, digest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sums::HashKey;
use tempfile::NamedTempFile;

use crate::error::PartsError;
use crate::random::random;
use crate::whole_file::{in_folder, persist};
use groups::Group;

const KIND: &[u8; 16] = b"mdfsck ledger 2\n";
const SLOTS: [u64; 2] = [512, 1024];
const CONTENT: u64 = 4096;
/// Number of bytes of a slot: a number, a place, a length, the digest of the list of contents, and that of the slot.
const SLOT_BYTES: usize = 3 * 8 + 2 * 16;
/// A limit, in bytes, for the list of contents. No real list reaches it: it has a few hundred bytes per run.
const MOST_HEAD_BYTES: u64 = 1 << 26;
/// A limit, in bytes, for a part and for the names of a run. No real part or list of names reaches it.
const MOST_PART_BYTES: u32 = 1 << 30;
/// The parts that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// A place in the file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
struct Span {
    at: u64,
    bytes: u64,
}

impl Span {
    fn end(self) -> u64 {
        self.at.saturating_add(self.bytes)
    }
}

/// A run whose parts are in the ledger.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptRun {
    /// The state of the database that the run has read: the last backup set, and when it was taken.
    pub image: String,
    /// When the run began, as the history writes it.
    pub read_at: String,
    /// The number of parts.
    pub parts: u64,
    names: Span,
    content: Span,
}

/// The list of contents.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Head<B, R = KeptRun> {
    build: String,
    /// The key with which all facts in the ledger are hashed.
    key: [u8; HashKey::BYTES],
    range_pages: u32,
    /// The base, as the caller describes it.
    base: B,
    /// The runs, the earliest first.
    runs: Vec<R>,
    /// What the check of the base has read of the container.
    seen: Span,
    /// What the latest run has noted for the next.
    standing: Span,
    /// What opening the base has found, and a digest of it under the key.
    opened: Span,
    /// What was read of the container of the later sets, and what identifies their files.
    later_seen: Option<(Digest, Span)>,
    /// What the caller wants to find again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    note: String,
}

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

/// Where the next part goes.
struct Writer {
    file: File,
    /// The file, as long as it has a temporary name: until the first parts are added.
    temporary: Option<NamedTempFile>,
    /// The number of the newest list of contents.
    sequence: u64,
    /// What this process has added to the list of contents.
    runs: Vec<KeptRun>,
    seen: Option<Span>,
    /// What opening the base has found, to be kept with this run.
    opened: Option<Vec<u8>>,
    /// Where that was written.
    opened_at: Option<Span>,
    /// What this run has read of the container of the later sets.
    later_seen: Option<Vec<u8>>,
    /// Where that was written, and what identifies the files.
    later_seen_at: Option<(Digest, Span)>,
    at: u64,
    buffer: Vec<u8>,
    names: Span,
    standing: Vec<u8>,
    from: u64,
    parts: u64,
    most_bytes: u64,
    is_full: bool,
    error: Option<io::Error>,
}

impl Writer {
    fn new((file, temporary): (File, Option<NamedTempFile>), (at, sequence): (u64, u64), most_bytes: u64) -> Self {
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

    fn put(&mut self, pieces: &[&[u8]]) -> bool {
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

    fn flush(&mut self) {
        let written = self.file.seek(SeekFrom::Start(self.at)).and_then(|_| self.file.write_all(&self.buffer));
        match written {
            Ok(()) => self.at += self.buffer.len() as u64,
            Err(error) => self.error = Some(error),
        }
        self.buffer.clear();
    }

    /// The place of what is put next.
    fn next(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }
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

    /// The base of a ledger, and what opening the base has found, if it has at most `most_bytes` bytes. `None` if there is
    /// nothing, or if the ledger is damaged or of another build. Another process may be using the ledger.
    pub fn opened(path: &Path, build: &str, most_bytes: u64) -> Option<(B, Vec<u8>)> {
        let mut file = File::open(path).ok()?;
        let (_, head) = head_of::<B>(path, &mut file).ok()?;
        if head.build != build || head.opened.bytes > most_bytes {
            return None;
        }
        let bytes = span(&mut file, head.opened).ok()?;
        let (own, opened) = bytes.split_first_chunk::<16>()?;
        (digest(&HashKey::new(head.key), opened) == *own).then(|| (head.base, opened.to_vec()))
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
        if writer.parts == 0 {
            return Ok(());
        }
        self.add((image, read_at), &mut writer, None)?;
        self.put_in_place(&mut writer)
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
        self.add((&image, &read_at), &mut writer, seen)?;
        self.put_in_place(&mut writer)?;
        Ok(is_whole)
    }

    /// Writes a ledger anew without the parts that parts of later runs have replaced.
    ///
    /// # Errors
    /// If the ledger cannot be opened, read or written. It remains as it was then.
    pub fn compact(path: &Path, build: &str) -> Result<(), PartsError>
    where
        B: Sync + Send + Clone,
    {
        let former: Self = Self::open(path, build)?;
        let Head { build, key, range_pages, base, note, .. } = former.head.clone();
        let mut compact: Self = Self::create(path, &build, range_pages, base, u64::MAX)?;
        (compact.head.key, compact.head.note) = (key, note);
        let unreadable = |cause: io::Error| PartsError::unreadable(path)(cause);
        // One bit for each range, 64 ranges in a word.
        let mut latest = BTreeMap::<(u16, u32), u64>::new();
        // A later run finds the runs in the same order: the latest is written last.
        let mut runs = Vec::new();
        for run in former.head.runs.iter().rev() {
            let mut wanted = Vec::new();
            let each = former.each_of(run, |group| {
                for key in group.keys() {
                    let at = key.range.first / range_pages.max(1);
                    let word = latest.entry((key.range.file_id, at / 64)).or_default();
                    wanted.push(*word & (1 << (at % 64)) == 0);
                    *word |= 1 << (at % 64);
                }
                Ok(())
            });
            each.map_err(unreadable)?;
            runs.push((run, wanted));
        }
        for (run, wanted) in runs.into_iter().rev().filter(|(_, wanted)| wanted.contains(&true)) {
            let mut file = &former.file;
            change::Ledger::begin(&compact, &span(&mut file, run.names).map_err(unreadable)?);
            let mut wanted = wanted.into_iter();
            let each = former.each_of(run, |group| {
                let kept: Vec<bool> = wanted.by_ref().take(group.keys().len()).collect();
                let mut parts = Vec::new();
                for (at, key) in group.keys().to_vec().into_iter().enumerate() {
                    if kept.get(at) == Some(&true) {
                        let (sums, bounds) = (group.read(Piece::Sums(at))?, group.read(Piece::Bounds(at))?);
                        parts.push(Part { key, sums, bounds });
                    }
                }
                if parts.len() == kept.len() {
                    change::Ledger::keep(&compact, &parts, &group.read(Piece::All)?);
                } else {
                    // The merged sums of the group are those of all of its parts.
                    parts.iter().for_each(|part| change::Ledger::keep(&compact, std::slice::from_ref(part), &[]));
                }
                Ok(())
            });
            each.map_err(unreadable)?;
            let mut writer = compact.writer.lock().unwrap_or_else(PoisonError::into_inner);
            compact.add((&run.image, &run.read_at), &mut writer, None)?;
        }
        let seen = former.seen()?;
        let mut file = &former.file;
        let opened = span(&mut file, former.head.opened).map_err(unreadable)?;
        drop(former);
        let mut writer = compact.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.opened = opened.get(16..).map(<[u8]>::to_vec);
        compact.add(("", ""), &mut writer, Some(&seen))?;
        compact.put_in_place(&mut writer)
    }

    /// Writes a list of contents with the parts that were kept since the last one.
    fn add(&self, (image, read_at): (&str, &str), writer: &mut Writer, seen: Option<&[u8]>) -> Result<(), PartsError> {
        let unwritable = PartsError::unwritable;
        let most_bytes = std::mem::replace(&mut writer.most_bytes, u64::MAX);
        let is_full = std::mem::take(&mut writer.is_full);
        let content = Span { at: writer.from, bytes: writer.next() - writer.from };
        if let Some(seen) = seen {
            writer.seen = Some(Span { at: writer.next(), bytes: seen.len() as u64 });
            writer.put(&[seen]);
        }
        // A standing belongs to the latest run, so that of an earlier run does not remain.
        let standing = std::mem::take(&mut writer.standing);
        let standing_at = Span { at: writer.next(), bytes: standing.len() as u64 };
        writer.put(&[&standing]);
        if let Some((of, seen)) = self.later_sets.zip(writer.later_seen.take()) {
            writer.later_seen_at = Some((of, Span { at: writer.next(), bytes: seen.len() as u64 }));
            writer.put(&[&seen]);
        }
        if let Some(opened) = writer.opened.take() {
            writer.opened_at = Some(Span { at: writer.next(), bytes: 16 + opened.len() as u64 });
            writer.put(&[&digest(&HashKey::new(self.head.key), &opened), &opened]);
        }
        if writer.parts > 0 {
            let (image, read_at, parts, names) = (image.to_owned(), read_at.to_owned(), writer.parts, writer.names);
            writer.runs.push(KeptRun { image, read_at, parts, names, content });
            writer.parts = 0;
        }
        let Head { build, key, range_pages, base, runs, seen, opened, later_seen, note, standing: _ } = &self.head;
        let head = Head {
            build: build.clone(),
            key: *key,
            range_pages: *range_pages,
            base,
            runs: runs.iter().chain(&writer.runs).collect::<Vec<&KeptRun>>(),
            seen: writer.seen.unwrap_or(*seen),
            standing: standing_at,
            opened: writer.opened_at.unwrap_or(*opened),
            later_seen: writer.later_seen_at.or(*later_seen),
            note: note.clone(),
        };
        let json = serde_json::to_vec(&head).map_err(|error| unwritable(&self.path)(error.into()))?;
        let head = Span { at: writer.next(), bytes: json.len() as u64 };
        writer.put(&[&json]);
        writer.flush();
        if let Some(error) = writer.error.take() {
            return Err(unwritable(&self.path)(error));
        }
        // Parts that follow are those of the same run.
        writer.from = writer.next();
        let slot = Slot { sequence: writer.sequence + 1, head, digest: digest_of(&json) };
        let mut write = || -> io::Result<()> {
            let file = &mut writer.file;
            file.sync_data()?;
            let [first, second] = SLOTS;
            file.seek(SeekFrom::Start(if slot.sequence.is_multiple_of(2) { first } else { second }))?;
            file.write_all(&slot.to_bytes())?;
            file.sync_data()
        };
        write().map_err(unwritable(&self.path))?;
        (writer.sequence, writer.most_bytes, writer.is_full) = (slot.sequence, most_bytes, is_full);
        Ok(())
    }

    /// Gives the file its name, if it has a temporary one.
    fn put_in_place(&self, writer: &mut Writer) -> Result<(), PartsError> {
        let temporary = writer.temporary.take();
        temporary.map_or(Ok(()), |temporary| persist(temporary, &self.path).map_err(PartsError::unwritable(&self.path)))
    }
}

fn damaged(path: &Path, what: &str) -> PartsError {
    PartsError::Damaged { path: path.to_owned(), what: what.to_owned() }
}

/// The newest list of contents, and its place.
fn head_of<B: DeserializeOwned>(path: &Path, file: &mut File) -> Result<(Slot, Head<B>), PartsError> {
    let unreadable = PartsError::unreadable;
    let mut kind = [0; KIND.len()];
    file.read_exact(&mut kind).map_err(unreadable(path))?;
    if &kind != KIND {
        return Err(damaged(path, "it is no ledger"));
    }
    let slots = SLOTS.iter().filter_map(|at| slot(file, *at).transpose());
    let slots = slots.collect::<io::Result<Vec<_>>>().map_err(unreadable(path))?;
    let newest = slots.into_iter().max_by_key(|slot| slot.sequence);
    let newest = newest.ok_or_else(|| damaged(path, "it has no contents"))?;
    let bytes = span(file, newest.head).map_err(unreadable(path))?;
    if digest_of(&bytes) != newest.digest {
        return Err(damaged(path, "its list of contents has changed"));
    }
    let head = serde_json::from_slice(&bytes).map_err(|error| damaged(path, &error.to_string()))?;
    Ok((newest, head))
}

/// Whether a range may have this number of pages.
fn is_range(pages: u32) -> bool {
    pages.is_power_of_two() && (8..=128).contains(&pages)
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
        writer.put(&[names]);
        (writer.from, writer.parts) = (writer.next(), 0);
    }

    fn keep(&self, parts: &[Part], all: &[u8]) {
        let head = groups::head(parts, all);
        let pieces: Vec<&[u8]> = groups::pieces(&head, parts, all).collect();
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.put(&pieces) {
            writer.parts += parts.len() as u64;
        }
    }

    fn stand(&self, standing: &[u8]) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.standing = standing.to_vec();
    }
}

/// The place of a list of contents.
#[derive(Clone, Copy)]
struct Slot {
    sequence: u64,
    head: Span,
    digest: Digest,
}

impl Slot {
    fn to_bytes(self) -> Vec<u8> {
        let numbers = [self.sequence, self.head.at, self.head.bytes];
        let mut bytes: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).chain(self.digest).collect();
        bytes.extend(digest_of(&bytes));
        bytes
    }
}

/// Reads a slot; `None` if it was never written, or was written in part.
fn slot(file: &mut File, at: u64) -> io::Result<Option<Slot>> {
    let mut bytes = [0; SLOT_BYTES];
    file.seek(SeekFrom::Start(at))?;
    match file.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let Some((body, own)) = bytes.split_last_chunk::<16>() else { return Ok(None) };
    let number =
        |at: usize| body.get(at..).and_then(|bytes| bytes.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes));
    let (Some(sequence), Some(at), Some(bytes), Some(digest)) =
        (number(0), number(8), number(16), body.last_chunk::<16>())
    else {
        return Ok(None);
    };
    let is_number = (1..u64::MAX).contains(&sequence);
    let is_sound = digest_of(body) == *own && is_number && bytes <= MOST_HEAD_BYTES;
    Ok(is_sound.then_some(Slot { sequence, head: Span { at, bytes }, digest: *digest }))
}

/// A digest that shows accidents. Parts and names have digests under the key of the ledger.
fn digest_of(bytes: &[u8]) -> Digest {
    digest(&HashKey::new([0; HashKey::BYTES]), bytes)
}

/// Reads a place of the file. The buffer grows with the bytes that are read, whatever length the file states.
fn span(file: &mut (impl Read + Seek), span: Span) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(span.at))?;
    let mut bytes = Vec::new();
    let read = file.take(span.bytes.min(MOST_PART_BYTES.into())).read_to_end(&mut bytes)?;
    if read as u64 == span.bytes { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use change::{Ledger as _, PartKey, Piece};
    use findings::FileRange;

    fn key(first: u32) -> PartKey {
        let range = FileRange { file_id: 1, first, pages: 32 };
        PartKey { range, above: [1; 16], maps: [2; 16], meaning: [first as u8; 16] }
    }

    fn part(first: u32, sums: usize) -> Part {
        Part { key: key(first), sums: vec![7; sums], bounds: vec![8; 3] }
    }

    /// Everything in the ledger, as text.
    fn content(ledger: &Ledger<String>) -> Vec<String> {
        let mut content = Vec::new();
        let read = ledger.each(&mut |entry| {
            content.push(match entry {
                Entry::Run(names) => String::from_utf8_lossy(names).into_owned(),
                Entry::Group(group) => {
                    let keys = group.keys().to_vec();
                    let all = group.read(Piece::All)?.len();
                    let part = |(at, key): (usize, &PartKey)| {
                        let (sums, bounds) = (group.read(Piece::Sums(at))?, group.read(Piece::Bounds(at))?);
                        assert_eq!((&sums, bounds), (&vec![7; sums.len()], vec![8; 3]));
                        Ok(format!("{} {}", key.range.first, sums.len()))
                    };
                    let parts = keys.iter().enumerate().map(part).collect::<io::Result<Vec<_>>>()?;
                    format!("{all}: {}", parts.join(", "))
                }
            });
            Ok(())
        });
        read.unwrap();
        content
    }

    fn with_two_runs(path: &Path) {
        let ledger = Ledger::create(path, "build", 32, "base".to_owned(), u64::MAX).unwrap();
        ledger.begin(b"names");
        ledger.keep(&[part(0, 100), part(32, 200_000)], &[1; 50]);
        ledger.keep(&[part(64, 3)], &[]);
        ledger.stand(b"first");
        assert!(ledger.commit("full".to_owned(), "monday".to_owned(), Some(b"seen")).unwrap());
        let ledger: Ledger<String> = Ledger::open(path, "build").unwrap();
        ledger.begin(b"other names");
        ledger.keep(&[part(32, 5)], &[]);
        assert!(ledger.commit("diff".to_owned(), "tuesday".to_owned(), None).unwrap());
    }

    #[test]
    fn the_latest_run_comes_first_and_an_abandoned_one_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parts").join("x.ledger");
        with_two_runs(&path);
        let expected = ["other names", "0: 32 5", "names", "50: 0 100, 32 200000", "0: 64 3"];
        for _ in 0..3 {
            let ledger: Ledger<String> = Ledger::open(&path, "build").unwrap();
            assert_eq!(content(&ledger), expected);
            assert_eq!((ledger.base().as_str(), ledger.seen().unwrap().as_slice()), ("base", &b"seen"[..]));
            assert_eq!(ledger.runs().map(|run| run.read_at.as_str()).collect::<Vec<_>>(), ["tuesday", "monday"]);
            let other = Ledger::<String>::open(&path, "build");
            assert!(matches!(other, Err(PartsError::InUse { .. })), "two processes at a time");
            // Not committed.
            ledger.begin(b"lost");
            ledger.stand(b"lost");
            (0..3000).for_each(|first| ledger.keep(&[part(first * 32, 1000)], &[]));
        }
        assert!(matches!(Ledger::<String>::open(&path, "other"), Err(PartsError::OtherBuild { .. })));
    }

    #[test]
    fn what_was_added_stays_when_the_process_is_killed_and_the_rest_of_the_run_follows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ledger");
        let mut ledger = Ledger::create(&path, "build", 32, "base".to_owned(), u64::MAX).unwrap();
        ledger.keep_opened(Some(b"opened".to_vec()));
        ledger.begin(b"names");
        ledger.keep(&[part(0, 5000), part(32, 100)], &[1; 50]);
        ledger.checkpoint("tonight", "monday").unwrap();
        assert!(matches!(Ledger::<String>::open(&path, "build"), Err(PartsError::InUse { .. })));
        ledger.keep(&[part(64, 0)], &[]);
        ledger.checkpoint("tonight", "monday").unwrap();
        ledger.keep(&[part(96, 9)], &[]);
        drop(ledger);
        let killed: Ledger<String> = Ledger::open(&path, "build").unwrap();
        assert_eq!(content(&killed), ["names", "0: 64 0", "names", "50: 0 5000, 32 100"]);
        drop(killed);
        let mut ledger: Ledger<String> = Ledger::open(&path, "build").unwrap();
        ledger.begin(b"later");
        ledger.keep(&[part(96, 9)], &[]);
        ledger.checkpoint("tonight", "tuesday").unwrap();
        ledger.keep(&[part(0, 8)], &[]);
        ledger.set_note("remember".to_owned());
        assert!(ledger.commit("tonight".to_owned(), "tuesday".to_owned(), Some(b"seen")).unwrap());
        let said = |ledger: &Ledger<String>| {
            let opened = Ledger::<String>::opened(&path, "build", 100).map(|(_, opened)| opened);
            (ledger.note().to_owned(), ledger.seen().unwrap(), opened, ledger.key().bytes().to_vec())
        };
        let ledger: Ledger<String> = Ledger::open(&path, "build").unwrap();
        let latest = ["later", "0: 0 8", "later", "0: 96 9", "names", "0: 64 0", "names"];
        assert_eq!(content(&ledger), [&latest[..], &["50: 0 5000, 32 100"]].concat());
        let (before, bytes) = (said(&ledger), fs::metadata(&path).unwrap().len());
        assert_eq!(
            (before.0.as_str(), &*before.1, before.2.as_deref()),
            ("remember", &b"seen"[..], Some(&b"opened"[..]))
        );
        drop(ledger);
        // Without what was replaced, everything else is as it was.
        Ledger::<String>::compact(&path, "build").unwrap();
        let ledger: Ledger<String> = Ledger::open(&path, "build").unwrap();
        assert_eq!(content(&ledger), [&latest[..], &["0: 32 100"]].concat());
        assert_eq!(said(&ledger), before);
        let dates = ["tuesday", "tuesday", "monday", "monday"];
        assert_eq!(ledger.runs().map(|run| run.read_at.as_str()).collect::<Vec<_>>(), dates);
        assert!(fs::metadata(&path).unwrap().len() < bytes);
    }

    #[test]
    fn a_ledger_that_is_full_keeps_what_found_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ledger");
        let ledger = Ledger::create(&path, "build", 8, String::new(), CONTENT + 600).unwrap();
        ledger.begin(b"names");
        (0..10).for_each(|first| ledger.keep(&[part(first * 8, 100)], &[]));
        assert!(!ledger.commit(String::new(), String::new(), None).unwrap());
        let ledger = Ledger::open(&path, "build").unwrap();
        assert_eq!(content(&ledger), ["names", "0: 0 100", "0: 8 100", "0: 16 100"]);
    }

    #[test]
    fn a_cut_or_changed_ledger_is_refused_or_says_what_it_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ledger");
        with_two_runs(&path);
        let whole = fs::read(&path).unwrap();
        let expected = content(&Ledger::open(&path, "build").unwrap());
        let read = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let ledger = Ledger::<String>::open(&path, "build").ok()?;
            let mut count = 0;
            let is_read = ledger.each(&mut |entry| {
                count += 1;
                if let Entry::Group(group) = entry {
                    for at in 0..group.keys().len() {
                        group.read(Piece::Sums(at))?;
                    }
                }
                Ok(())
            });
            Some((count, is_read.is_ok()))
        };
        for length in [0, 10, 16, 600, 1080, CONTENT as usize, whole.len() - 1] {
            assert_eq!(read(&whole[..length]), None, "{length}");
        }
        for at in (0..whole.len()).step_by(whole.len() / 200).chain(512..580).chain(1024..1100) {
            let mut changed = whole.clone();
            changed[at] ^= 0x55;
            // A change of the latest slot leaves the contents before the latest run; parts verify themselves.
            if let Some((count, is_read)) = read(&changed) {
                assert!(!is_read || count == expected.len() || count == 3, "{at}: {count}");
            }
        }
    }
}
