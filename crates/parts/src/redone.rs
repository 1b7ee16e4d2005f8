//! Pages that redo has made, kept beside a ledger, so that the recovery of a longer log goes on from them.
//!
//! | at | content |
//! |---|---|
//! | 0 | the kind of the file |
//! | 512, 1024 | two slots, which are written in turn, as in a ledger: the place of the index |
//! | 4096 | pages and indexes, one after another |
//!
//! An index has a digest of the rest under the key of the ledger, what the caller says about the pages, and for each page
//! its place and a digest under that key. Bytes that a slot refers to are never overwritten, and the slot is written last,
//! so a process that is killed leaves the file as it was before.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use check::part::{Digest, digest};
use source::read_fully_at;
use sums::HashKey;
use tempfile::NamedTempFile;

use crate::ledger::contents::{CONTENT, SLOTS, Slot, Span, digest_of, slot, span};
use crate::whole_file::{in_folder, persist};

const KIND: &[u8; 16] = b"mdfsck redone 1\n";
/// Number of bytes of a page in the index: its file, its number, its place, its length and its digest.
const ENTRY_BYTES: usize = 2 + 4 + 8 + 4 + 16;
/// Memory for a page in the index, and for its entry when the index is written.
pub const BYTES_PER_PAGE: u64 = 112;
/// The most bytes of a page, and of what the caller says about the pages.
const MOST_PAGE_BYTES: u32 = 1 << 20;
const MOST_ABOUT_BYTES: usize = 1 << 22;

/// A page: file ID and page number.
type Id = (u16, u32);

/// The place of a page in the file.
#[derive(Clone, Copy)]
struct Place {
    at: u64,
    bytes: u32,
    digest: Digest,
}

/// The limits of a file of pages.
#[derive(Clone, Copy)]
pub struct Room {
    /// The most bytes of the file.
    pub bytes: u64,
    /// The most pages.
    pub pages: u64,
}

/// A file of pages that this process has to itself.
pub struct RedoneFile {
    path: PathBuf,
    key: HashKey,
    file: File,
    /// The temporary name of a file that replaces another when it is complete.
    temporary: Option<NamedTempFile>,
    pages: BTreeMap<Id, Place>,
    sequence: u64,
    /// Where the next bytes are written, and the number of bytes that have been written and are not yet in the file.
    next: u64,
    waiting: Vec<u8>,
    room: Room,
    /// Whether a page could not be kept. The file then stays as it was.
    has_failed: bool,
}

impl RedoneFile {
    /// Makes an empty file, which replaces the file at `path` when it is complete.
    ///
    /// # Errors
    /// If no file can be made there.
    pub fn create(path: &Path, key: HashKey, room: Room) -> io::Result<Self> {
        let temporary = in_folder(path, 0o600)?;
        let mut file = temporary.reopen()?;
        file.write_all(KIND)?;
        Ok(Self {
            path: path.to_owned(),
            key,
            file,
            temporary: Some(temporary),
            pages: BTreeMap::new(),
            sequence: 0,
            next: CONTENT,
            waiting: Vec::new(),
            room,
            has_failed: false,
        })
    }

    /// Opens a file of pages, and returns what the caller has said about them. `None` if there is no such file, if it is
    /// damaged, if it has another key, or if another process uses it.
    pub fn open(path: &Path, key: HashKey, room: Room) -> Option<(Self, Vec<u8>)> {
        let mut file = OpenOptions::new().read(true).write(true).open(path).ok()?;
        file.try_lock().ok()?;
        let mut kind = [0; KIND.len()];
        let read = read_fully_at(&file, &mut kind, 0).ok()?;
        if read < kind.len() || &kind != KIND {
            return None;
        }
        let slots = SLOTS.iter().filter_map(|at| slot(&mut file, *at).ok().flatten());
        let newest = slots.max_by_key(|slot| slot.sequence)?;
        let most_bytes = room.pages.saturating_mul(ENTRY_BYTES as u64).saturating_add(MOST_ABOUT_BYTES as u64 + 20);
        if newest.head.bytes > most_bytes {
            return None;
        }
        let bytes = span(&mut file, newest.head).ok()?;
        let (own, rest) = bytes.split_first_chunk::<16>()?;
        if digest_of(own) != newest.digest || digest(&key, rest) != *own {
            return None;
        }
        let (about_bytes, rest) = rest.split_first_chunk::<4>()?;
        let (about, rest) = rest.split_at_checked(u32::from_le_bytes(*about_bytes) as usize)?;
        let pages = index(rest)?;
        let length = file.metadata().ok()?.len();
        let end = pages.values().map(|place| place.at.saturating_add(place.bytes.into())).max();
        let next = end.into_iter().chain([newest.head.end(), CONTENT]).max()?;
        if next > length || pages.len() as u64 > room.pages {
            return None;
        }
        let about = about.to_vec();
        let (path, sequence, waiting) = (path.to_owned(), newest.sequence, Vec::new());
        Some((
            Self { path, key, file, temporary: None, pages, sequence, next, waiting, room, has_failed: false },
            about,
        ))
    }

    /// The pages, in ascending order.
    pub fn pages(&self) -> impl Iterator<Item = Id> {
        self.pages.keys().copied()
    }

    /// Whether the file has this page.
    pub fn has(&self, page: Id) -> bool {
        self.pages.contains_key(&page)
    }

    /// Number of bytes that the pages need, and number of bytes of the whole file.
    pub fn sizes(&self) -> (u64, u64) {
        (self.pages.values().map(|place| u64::from(place.bytes)).sum(), self.next)
    }

    /// Reads a page.
    ///
    /// # Errors
    /// If the file does not have it, or if it is not as it was written.
    pub fn read(&self, page: Id) -> io::Result<Vec<u8>> {
        let place = self.pages.get(&page).ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = vec![0; place.bytes as usize];
        let from_waiting = || {
            let at = usize::try_from(place.at.checked_sub(self.written())?).ok()?;
            self.waiting.get(at..at.checked_add(bytes.len())?)
        };
        if let Some(waiting) = from_waiting() {
            return Ok(waiting.to_vec());
        }
        let read = read_fully_at(&self.file, &mut bytes, place.at)?;
        if read < bytes.len() || self.digest_of(page, &bytes) != place.digest {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(bytes)
    }

    /// Adds a page, or replaces it. If there is no room, the file stays as it was before this process has opened it.
    pub fn put(&mut self, page: Id, bytes: &[u8]) {
        /// Number of bytes that are written at once.
        const BUFFER_BYTES: usize = 1 << 18;
        let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= MOST_PAGE_BYTES);
        let has_room = self.next.saturating_add(bytes.len() as u64) <= self.room.bytes
            && (self.has(page) || (self.pages.len() as u64) < self.room.pages);
        let Some(length) = length.filter(|_| has_room && !self.has_failed) else {
            self.has_failed = true;
            return;
        };
        let place = Place { at: self.next, bytes: length, digest: self.digest_of(page, bytes) };
        self.waiting.extend_from_slice(bytes);
        self.next += u64::from(length);
        self.pages.insert(page, place);
        if self.waiting.len() >= BUFFER_BYTES && self.flush().is_err() {
            self.has_failed = true;
        }
    }

    /// Where the bytes that wait belong.
    fn written(&self) -> u64 {
        self.next - self.waiting.len() as u64
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.written()))?;
        self.file.write_all(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }

    /// Whether a page could not be kept.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Writes the index, and forgets the pages. [`Ready::commit`] puts the index in place.
    ///
    /// # Errors
    /// If the file cannot be written, or if a page could not be kept. The file stays as it was.
    pub fn finish(mut self, about: &[u8]) -> io::Result<Ready> {
        if self.has_failed || about.len() > MOST_ABOUT_BYTES {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.flush()?;
        let mut rest = Vec::with_capacity(4 + about.len() + self.pages.len() * ENTRY_BYTES);
        rest.extend((about.len() as u32).to_le_bytes());
        rest.extend(about);
        for ((file, page), place) in &self.pages {
            rest.extend(file.to_le_bytes());
            rest.extend(page.to_le_bytes());
            rest.extend(place.at.to_le_bytes());
            rest.extend(place.bytes.to_le_bytes());
            rest.extend(place.digest);
        }
        let own = digest(&self.key, &rest);
        let head = Span { at: self.next, bytes: (own.len() + rest.len()) as u64 };
        if head.end() > self.room.bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.seek(SeekFrom::Start(head.at))?;
        self.file.write_all(&own)?;
        self.file.write_all(&rest)?;
        // The digest in the slot is that of the digest of the index.
        let slot = Slot { sequence: self.sequence + 1, head, digest: digest_of(&own) };
        Ok(Ready { path: self.path, file: self.file, temporary: self.temporary, slot })
    }

    fn digest_of(&self, (file, page): Id, bytes: &[u8]) -> Digest {
        let named = [&file.to_le_bytes()[..], &page.to_le_bytes(), bytes].concat();
        digest(&self.key, &named)
    }
}

/// A file whose pages and index are written, but whose slot still refers to the index before.
pub struct Ready {
    path: PathBuf,
    file: File,
    temporary: Option<NamedTempFile>,
    slot: Slot,
}

impl Ready {
    /// Puts the index in place.
    ///
    /// # Errors
    /// If the file cannot be written. It stays as it was.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        let at = SLOTS.get((self.slot.sequence % 2) as usize).copied().unwrap_or_default();
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(&self.slot.to_bytes())?;
        match self.temporary {
            Some(temporary) => persist(temporary, &self.path),
            None => self.file.sync_all(),
        }
    }
}

/// Reads the places of the pages; `None` if they are not in ascending order or too long.
fn index(bytes: &[u8]) -> Option<BTreeMap<Id, Place>> {
    if !bytes.len().is_multiple_of(ENTRY_BYTES) {
        return None;
    }
    let mut pages = BTreeMap::new();
    for entry in bytes.chunks_exact(ENTRY_BYTES) {
        let (file, rest) = entry.split_first_chunk::<2>()?;
        let (page, rest) = rest.split_first_chunk::<4>()?;
        let (at, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let id = (u16::from_le_bytes(*file), u32::from_le_bytes(*page));
        let (at, bytes) = (u64::from_le_bytes(*at), u32::from_le_bytes(*length));
        let is_next = pages.last_key_value().is_none_or(|(last, _)| *last < id);
        if !is_next || bytes > MOST_PAGE_BYTES {
            return None;
        }
        pages.insert(id, Place { at, bytes, digest: *rest.first_chunk()? });
    }
    Some(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { bytes: 1 << 20, pages: 100 };

    fn key(byte: u8) -> HashKey {
        HashKey::new([byte; HashKey::BYTES])
    }

    fn page(number: u32, version: u8) -> Vec<u8> {
        vec![version; 50 + number as usize]
    }

    /// A file with pages that were kept in two steps.
    fn kept(path: &Path) {
        let mut file = RedoneFile::create(path, key(1), ROOM).unwrap();
        (0..10).for_each(|number| file.put((1, number), &page(number, 1)));
        file.finish(b"one").unwrap().commit().unwrap();
        let (mut file, about) = RedoneFile::open(path, key(1), ROOM).unwrap();
        assert_eq!(about, b"one");
        (8..12).for_each(|number| file.put((1, number), &page(number, 2)));
        assert_eq!(file.read((1, 11)).unwrap(), page(11, 2), "not written yet");
        file.finish(b"two").unwrap().commit().unwrap();
    }

    #[test]
    fn pages_are_kept_in_steps_and_a_step_that_does_not_end_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("redone");
        kept(&path);
        let look = |about: &[u8]| {
            let (file, said) = RedoneFile::open(&path, key(1), ROOM).unwrap();
            assert_eq!((said.as_slice(), file.pages().count()), (about, 12));
            for number in 0..12 {
                assert_eq!(file.read((1, number)).unwrap(), page(number, if number < 8 { 1 } else { 2 }));
            }
            file
        };
        let mut file = look(b"two");
        file.put((1, 3), &page(3, 9));
        assert!(RedoneFile::open(&path, key(1), ROOM).is_none(), "another process has it");
        drop(file);
        // The index is written, but not put in place.
        let mut file = look(b"two");
        file.put((1, 3), &page(3, 9));
        drop(file.finish(b"three").unwrap());
        look(b"two");
        let few = Room { pages: 12, ..ROOM };
        let (mut file, _) = RedoneFile::open(&path, key(1), few).unwrap();
        file.put((1, 12), &page(12, 3));
        assert!(file.has_failed() && file.finish(b"four").is_err());
        look(b"two");
        assert!(RedoneFile::open(&path, key(2), ROOM).is_none());
    }

    #[test]
    fn a_file_with_any_byte_changed_or_cut_gives_only_pages_that_were_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("redone");
        kept(&path);
        let bytes = std::fs::read(&path).unwrap();
        let (mut refused, mut older, mut bad) = (0, 0, 0);
        let cut = (0..bytes.len()).map(|length| bytes[..length].to_vec());
        let changed = (0..bytes.len()).map(|at| {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            changed
        });
        for bytes in cut.chain(changed) {
            std::fs::write(&path, bytes).unwrap();
            let Some((file, about)) = RedoneFile::open(&path, key(1), ROOM) else {
                refused += 1;
                continue;
            };
            let is_older = about == b"one";
            assert!(is_older || about == b"two");
            older += u32::from(is_older);
            for (id, number) in file.pages().map(|id| (id, id.1)).collect::<Vec<_>>() {
                match file.read(id) {
                    Ok(read) => assert_eq!(read, page(number, if number < 8 || is_older { 1 } else { 2 })),
                    Err(_) => bad += 1,
                }
            }
        }
        assert!(refused > 5000 && older > 50 && bad > 500, "{refused} refused, {older} older, {bad} bad pages");
    }
}
