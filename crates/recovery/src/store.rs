//! Stores any number of log records and returns them sorted by page. Records beyond a memory limit are written to a
//! temporary file in sorted runs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;

use format::bytes::u32_at;
use format::{Lsn, PAGE_BYTES, PageBytes, PageId};
use source::read_fully_at;

/// Number of bytes before each record in a run. They contain the key and the length of the record.
const HEAD_BYTES: usize = LENGTH_AT + 4;
const LENGTH_AT: usize = size_of::<u128>();
/// Size in bytes of the memory chunks that hold pages. Pages are written to the file in chunks of the same size.
const PIECE_BYTES: usize = 1 << 18;
/// Number of bytes per write of records, and per read of a run. If there are many runs, reads are smaller.
const BUFFER_BYTES: usize = 64 << 10;
const LEAST_BUFFER_BYTES: usize = 4 << 10;

/// The sort key of a record: first the page, then the LSN. It is a single number, so that comparisons are fast.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key(u128);

impl Key {
    fn new((page, lsn): (PageId, Lsn)) -> Self {
        let page = u128::from(page.file) << 32 | u128::from(page.page);
        let lsn = u128::from(lsn.vlf) << 48 | u128::from(lsn.block) << 16 | u128::from(lsn.slot);
        Self(page << 80 | lsn)
    }

    fn page(self) -> PageId {
        PageId::new((self.0 >> 112) as u16, (self.0 >> 80) as u32)
    }

    fn lsn(self) -> Lsn {
        Lsn { vlf: (self.0 >> 48) as u32, block: (self.0 >> 16) as u32, slot: self.0 as u16 }
    }
}

/// A record in memory: its key, the offset of its bytes in the arena, and its length.
type Placed = (Key, usize, u32);

/// Collects records in any order and returns them sorted by page and LSN.
pub(crate) struct RecordStore {
    directory: Option<PathBuf>,
    memory_bytes: usize,
    keys: Vec<Placed>,
    arena: Vec<u8>,
    file: Option<File>,
    /// The start and the end of each run in the file.
    runs: Vec<(u64, u64)>,
}

impl RecordStore {
    pub(crate) fn new(directory: Option<PathBuf>, memory_bytes: usize) -> Self {
        Self { directory, memory_bytes, keys: Vec::new(), arena: Vec::new(), file: None, runs: Vec::new() }
    }

    pub(crate) fn push(&mut self, key: (PageId, Lsn), record: &[u8]) -> io::Result<()> {
        let needed = self.arena.len() + record.len() + (self.keys.len() + 1) * size_of::<Placed>();
        if needed > self.memory_bytes && !self.keys.is_empty() {
            self.write_run()?;
        }
        self.keys.push((Key::new(key), self.arena.len(), record.len() as u32));
        self.arena.extend_from_slice(record);
        Ok(())
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.keys.sort_unstable();
        let mut file = match self.file.take() {
            Some(file) => file,
            None => temporary(&self.directory)?,
        };
        let start = file.seek(SeekFrom::End(0))?;
        let mut out = io::BufWriter::with_capacity(BUFFER_BYTES, &mut file);
        let mut written = 0;
        for (key, at, length) in &self.keys {
            let record = self.arena.get(*at..at + *length as usize).unwrap_or_default();
            out.write_all(&key.0.to_le_bytes())?;
            out.write_all(&length.to_le_bytes())?;
            out.write_all(record)?;
            written += (HEAD_BYTES + record.len()) as u64;
        }
        out.flush()?;
        drop(out);
        self.file = Some(file);
        self.runs.push((start, start + written));
        self.keys.clear();
        self.arena.clear();
        Ok(())
    }

    /// Returns all records, sorted by page and LSN.
    pub(crate) fn into_sorted(mut self) -> io::Result<SortedRecords> {
        self.keys.sort_unstable();
        let mut sorted = SortedRecords {
            keys: self.keys.into_iter().rev().collect(),
            arena: self.arena,
            file: self.file,
            runs: Vec::new(),
            heads: BinaryHeap::new(),
            read_bytes: (self.memory_bytes / self.runs.len().max(1)).clamp(LEAST_BUFFER_BYTES, BUFFER_BYTES),
            behind: None,
        };
        for (index, (at, end)) in self.runs.into_iter().enumerate() {
            sorted.runs.push(Run { at, end, buffer: Vec::new(), start: 0 });
            sorted.advance(index)?;
        }
        Ok(sorted)
    }
}

/// An unnamed temporary file.
pub(crate) fn temporary(directory: &Option<PathBuf>) -> io::Result<File> {
    match directory {
        Some(directory) => tempfile::tempfile_in(directory),
        None => tempfile::tempfile(),
    }
}

struct Run {
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    start: usize,
}

impl Run {
    /// Number of bytes that must still be read into the buffer to complete the next record. While the head of the
    /// record is incomplete, this counts only the missing bytes of the head.
    fn missing_bytes(&self) -> usize {
        let here = self.buffer.len().saturating_sub(self.start);
        let record_bytes = self.buffer.get(self.start..).and_then(|rest| u32_at(rest, LENGTH_AT));
        (HEAD_BYTES + record_bytes.unwrap_or(0) as usize).saturating_sub(here)
    }
}

/// Records sorted by page and LSN.
pub(crate) struct SortedRecords {
    /// The records in memory, in reverse order: the next record is the last one.
    keys: Vec<Placed>,
    arena: Vec<u8>,
    file: Option<File>,
    runs: Vec<Run>,
    /// The next key of each run, with the index of the run.
    heads: BinaryHeap<Reverse<(Key, usize)>>,
    /// Number of bytes per read of a run.
    read_bytes: usize,
    /// The run that contained the last returned record. The next key of this run has not been read yet.
    behind: Option<usize>,
}

impl SortedRecords {
    /// The page to which the next record belongs.
    pub(crate) fn next_page(&mut self) -> io::Result<Option<PageId>> {
        self.catch_up()?;
        let in_memory = self.keys.last().map(|(key, ..)| key.page());
        let in_runs = self.heads.peek().map(|Reverse((key, _))| key.page());
        Ok(match (in_memory, in_runs) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        })
    }

    fn catch_up(&mut self) -> io::Result<()> {
        match self.behind.take() {
            Some(index) => self.advance(index),
            None => Ok(()),
        }
    }

    /// The next record, if it belongs to `page`.
    pub(crate) fn next_of(&mut self, page: PageId) -> io::Result<Option<(Lsn, &[u8])>> {
        self.catch_up()?;
        let in_memory = self.keys.last().map(|(key, ..)| *key);
        let in_runs = self.heads.peek().map(|Reverse((key, _))| *key);
        let is_in_memory = match (in_memory, in_runs) {
            (Some(one), Some(other)) => one <= other,
            (one, _) => one.is_some(),
        };
        let key = if is_in_memory { in_memory } else { in_runs };
        if key.is_none_or(|key| key.page() != page) {
            return Ok(None);
        }
        if is_in_memory {
            let Some((key, at, length)) = self.keys.pop() else { return Ok(None) };
            return Ok(Some((key.lsn(), self.arena.get(at..at + length as usize).unwrap_or_default())));
        }
        let Some(Reverse((key, index))) = self.heads.pop() else { return Ok(None) };
        let Some(run) = self.runs.get_mut(index) else { return Ok(None) };
        let length = u32_at(&run.buffer, run.start + LENGTH_AT).unwrap_or_default() as usize;
        let start = run.start + HEAD_BYTES;
        run.start = start + length;
        self.behind = Some(index);
        Ok(Some((key.lsn(), run.buffer.get(start..start + length).unwrap_or_default())))
    }

    /// Reads the next record of a run into the run's buffer, and adds its key to `heads`.
    fn advance(&mut self, index: usize) -> io::Result<()> {
        let (Some(run), Some(file)) = (self.runs.get_mut(index), &mut self.file) else { return Ok(()) };
        while run.missing_bytes() > 0 && run.at < run.end {
            let wanted = run.missing_bytes().max(self.read_bytes).min((run.end - run.at) as usize);
            run.buffer.drain(..run.start.min(run.buffer.len()));
            run.start = 0;
            let before = run.buffer.len();
            run.buffer.resize(before + wanted, 0);
            let read = read_fully_at(file, run.buffer.get_mut(before..).unwrap_or_default(), run.at)?;
            if read < wanted {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            run.at += wanted as u64;
        }
        let head = run.buffer.get(run.start..run.start + HEAD_BYTES).and_then(|head| head.first_chunk());
        self.heads.extend(head.map(|key| Reverse((Key(u128::from_le_bytes(*key)), index))));
        Ok(())
    }
}

/// The numbers of changes that recovery redid and undid on a page.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PageWork {
    /// Number of records that were applied because the page lacked their changes.
    pub redone: u32,
    /// Number of changes of open transactions that were undone.
    pub undone: u32,
}

/// Stores complete pages by page ID. Pages beyond a memory limit are written to a temporary file.
pub(crate) struct PageStore {
    directory: Option<PathBuf>,
    memory_bytes: usize,
    /// The pages, sorted by page ID.
    pages: Vec<Stored>,
    /// The bytes of the pages that are in memory. They are stored in chunks, so that no page is copied when the list
    /// grows.
    memory: Vec<Vec<u8>>,
    /// The temporary file with the pages that are not in memory.
    file: Option<File>,
    /// `waiting` contains pages that have not been written to the file yet. `waiting_at` is their offset in the file.
    waiting: Vec<u8>,
    waiting_at: u64,
}

/// A page in the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    /// ID of the page.
    pub(crate) page: PageId,
    /// Position of the page in the order in which pages were added, for [`PageStore::read`].
    pub(crate) place: u32,
    work: PageWork,
}

impl PageStore {
    pub(crate) fn new(directory: Option<PathBuf>, memory_bytes: usize) -> Self {
        Self {
            directory,
            memory_bytes,
            pages: Vec::new(),
            memory: Vec::new(),
            file: None,
            waiting: Vec::new(),
            waiting_at: 0,
        }
    }

    /// Adds a page. If the page was added before, replaces its bytes but keeps its `work`. Adding a page takes constant
    /// time if pages are added in ascending order.
    pub(crate) fn put(&mut self, page: PageId, bytes: &PageBytes, work: PageWork) -> io::Result<()> {
        let place = match self.position(page) {
            Ok(at) => self.pages.get(at).map_or(0, |stored| stored.place),
            Err(at) => {
                let place = self.pages.len() as u32;
                if self.pages.len() == self.pages.capacity() {
                    // The list grows by an eighth, so that little memory stays unused.
                    self.pages.reserve_exact(1024.max(self.pages.len() / 8));
                }
                self.pages.insert(at, Stored { page, place, work });
                place
            }
        };
        let at = place as usize * PAGE_BYTES;
        match self.in_memory(at) {
            Some((piece, at)) => {
                if piece >= self.memory.len() {
                    self.memory.push(Vec::with_capacity(PIECE_BYTES));
                }
                let piece = self.memory.get_mut(piece).ok_or(io::ErrorKind::UnexpectedEof)?;
                piece.resize(piece.len().max(at + PAGE_BYTES), 0);
                piece.get_mut(at..at + PAGE_BYTES).ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(bytes);
                Ok(())
            }
            None => self.write(at as u64, bytes),
        }
    }

    /// Replaces the numbers of changes on a page that was added before.
    pub(crate) fn set_work(&mut self, page: PageId, work: PageWork) {
        if let Some(stored) = self.position(page).ok().and_then(|at| self.pages.get_mut(at)) {
            stored.work = work;
        }
    }

    /// The number of changes that were redone on all pages.
    pub(crate) fn redone(&self) -> u64 {
        self.pages.iter().map(|stored| u64::from(stored.work.redone)).sum()
    }

    /// The memory chunk that contains the page at byte position `at`, and the offset of the page in this chunk. `None`
    /// if the page is in the file.
    fn in_memory(&self, at: usize) -> Option<(usize, usize)> {
        let is_in_memory = at + PAGE_BYTES <= self.memory_bytes / PIECE_BYTES * PIECE_BYTES;
        is_in_memory.then_some((at / PIECE_BYTES, at % PIECE_BYTES))
    }

    /// Adds a page to the pages that wait to be written to the file together.
    fn write(&mut self, at: u64, bytes: &PageBytes) -> io::Result<()> {
        let is_next = at == self.waiting_at + self.waiting.len() as u64;
        if !is_next || self.waiting.len() >= PIECE_BYTES {
            self.flush()?;
            self.waiting_at = at;
        }
        self.waiting.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes the waiting pages to the file.
    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(temporary(&self.directory)?),
        };
        file.seek(SeekFrom::Start(self.waiting_at))?;
        file.write_all(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }

    /// Writes the remaining pages to the file. Must be called after the last page was added.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        self.waiting = Vec::new();
        Ok(())
    }

    /// Moves pages to the file until at most `bytes` bytes of memory are in use. If `bytes` is too small, more memory
    /// stays in use, because the list of pages is always in memory.
    pub(crate) fn keep_at_most(&mut self, bytes: usize) -> io::Result<()> {
        let over = self.memory_bytes().saturating_sub(bytes);
        let left = self.memory.len().saturating_sub(over.div_ceil(PIECE_BYTES));
        let moved = self.memory.split_off(left);
        self.memory_bytes = left * PIECE_BYTES;
        for (piece, bytes) in (left..).zip(moved) {
            self.flush()?;
            (self.waiting, self.waiting_at) = (bytes, (piece * PIECE_BYTES) as u64);
        }
        self.finish()
    }

    /// Number of bytes of memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.len() * PIECE_BYTES + self.waiting.capacity() + self.pages.capacity() * size_of::<Stored>()
    }

    /// All pages, sorted by page ID.
    pub(crate) fn pages(&self) -> &[Stored] {
        &self.pages
    }

    /// The numbers of changes that recovery redid and undid on `page`; `None` if the page was not added.
    pub(crate) fn work(&self, page: PageId) -> Option<PageWork> {
        self.position(page).ok().and_then(|at| self.pages.get(at)).map(|stored| stored.work)
    }

    fn position(&self, page: PageId) -> Result<usize, usize> {
        self.pages.binary_search_by_key(&page, |stored| stored.page)
    }

    /// The page number of the last page that was added for a file.
    pub(crate) fn last_of(&self, file_id: u16) -> Option<u32> {
        let end = self.pages.partition_point(|stored| stored.page.file <= file_id);
        let last = self.pages.get(end.checked_sub(1)?)?.page;
        (last.file == file_id).then_some(last.page)
    }

    /// The content of `page`; `None` if the page was not added or cannot be read back.
    pub(crate) fn get(&self, page: PageId) -> Option<Box<PageBytes>> {
        let at = self.position(page).ok()?;
        let mut bytes = Box::new([0; PAGE_BYTES]);
        self.read(self.pages.get(at)?.place, bytes.as_mut_slice()).ok()?;
        Some(bytes)
    }

    /// Reads the page at position `place`.
    pub(crate) fn read(&self, place: u32, buffer: &mut [u8]) -> io::Result<()> {
        let at = place as usize * PAGE_BYTES;
        let waiting =
            (at as u64).checked_sub(self.waiting_at).map(|at| at as usize).filter(|at| *at < self.waiting.len());
        let bytes = match (self.in_memory(at), waiting, &self.file) {
            (Some((piece, at)), ..) => self.memory.get(piece).and_then(|piece| piece.get(at..at + buffer.len())),
            (None, Some(at), _) => self.waiting.get(at..at + buffer.len()),
            (None, None, Some(file)) => {
                let read = read_fully_at(file, buffer, at as u64)?;
                return if read == buffer.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
            (None, None, None) => None,
        };
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_kept_by_address_in_memory_and_in_a_file() {
        for memory_bytes in [0, 3 * PAGE_BYTES, 1 << 20] {
            let mut store = PageStore::new(None, memory_bytes);
            for number in [5u8, 2, 9, 7, 2] {
                store
                    .put(PageId::new(1, number.into()), &[number + number / 2; PAGE_BYTES], PageWork::default())
                    .expect("room");
            }
            store.put(PageId::new(1, 9), &[99; PAGE_BYTES], PageWork::default()).expect("room");
            store.finish().expect("room");
            let pages: Vec<u32> = store.pages().iter().map(|stored| stored.page.page).collect();
            assert_eq!(pages, [2, 5, 7, 9]);
            let first = |page| store.get(PageId::new(1, page)).map(|bytes| bytes[0]);
            assert_eq!([first(2), first(5), first(9), first(3)], [Some(3), Some(7), Some(99), None]);
        }
    }

    #[test]
    fn keys_are_in_order_of_pages_and_then_of_lsns() {
        let lsn = |vlf, block, slot| Lsn { vlf, block, slot };
        let mut keys: Vec<(PageId, Lsn)> = Vec::new();
        for page in [PageId::new(1, 7), PageId::new(1, u32::MAX), PageId::new(2, 0), PageId::new(u16::MAX, u32::MAX)] {
            keys.extend(
                [lsn(0, 0, 0), lsn(0, 0, u16::MAX), lsn(0, 1, 0), lsn(0, u32::MAX, 9), lsn(1, 0, 0)]
                    .map(|lsn| (page, lsn)),
            );
            keys.push((page, lsn(u32::MAX, u32::MAX, u16::MAX)));
        }
        assert!(keys.is_sorted() && keys.iter().map(|key| Key::new(*key)).is_sorted());
        assert!(keys.iter().all(|key| (Key::new(*key).page(), Key::new(*key).lsn()) == *key));
    }

    #[test]
    fn pages_go_to_the_file_when_memory_is_needed_for_something_else() {
        let count = 4 * PIECE_BYTES / PAGE_BYTES;
        let page = |number: usize| PageId::new(1, number as u32);
        let mut store = PageStore::new(None, 3 * PIECE_BYTES);
        for number in 0..count {
            store.put(page(number), &[number as u8; PAGE_BYTES], PageWork::default()).expect("room");
        }
        store.finish().expect("room");
        let list = store.memory_bytes() - 3 * PIECE_BYTES;
        for (granted, kept) in [(usize::MAX, 3), (list + 2 * PIECE_BYTES, 2), (list + PIECE_BYTES + 1, 1), (0, 0)] {
            store.keep_at_most(granted).expect("room");
            assert_eq!(store.memory_bytes(), list + kept * PIECE_BYTES);
            assert!((0..count).all(|number| store.get(page(number)).expect("kept")[..] == [number as u8; PAGE_BYTES]));
        }
    }

    #[test]
    fn records_come_by_page_and_lsn_in_memory_and_from_runs() {
        // Some records are longer than one read.
        let words = |number: u32| if number % 50 == 49 { 25_000 } else { 1 + number as usize % 9 };
        for memory_bytes in [100, 3000, 4 << 20] {
            let mut store = RecordStore::new(None, memory_bytes);
            for number in 0..500u32 {
                let page = PageId::new(1, number.wrapping_mul(2_654_435_761) % 17);
                let lsn = Lsn { vlf: 5, block: 16 + number, slot: 1 };
                store.push((page, lsn), &number.to_le_bytes().repeat(words(number))).expect("room");
            }
            let mut sorted = store.into_sorted().expect("readable");
            let (mut count, mut last) = (0, None);
            while let Some(page) = sorted.next_page().expect("readable") {
                while let Some((lsn, record)) = sorted.next_of(page).expect("readable") {
                    assert!(last < Some((page, lsn)), "{memory_bytes}");
                    assert_eq!(u32_at(record, 0), Some(lsn.block - 16));
                    assert_eq!(record.len(), 4 * words(lsn.block - 16));
                    last = Some((page, lsn));
                    count += 1;
                }
            }
            assert_eq!(count, 500, "{memory_bytes}");
        }
    }
}
