//! Log records by page, however many: in memory up to a bound, beyond that in sorted runs in a temporary file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;

use format::bytes::u32_at;
use format::{Lsn, PAGE_BYTES, PageBytes, PageId};
use source::read_fully_at;

/// Bytes in front of each record in a run: page, LSN, length.
const HEAD_BYTES: usize = LENGTH_AT + 4;
const LENGTH_AT: usize = 6 + 10;
/// Written at once, and read at once of each run: less if there are many.
const BUFFER_BYTES: usize = 64 << 10;
const LEAST_BUFFER_BYTES: usize = 4 << 10;

/// Where a record belongs: pages in order, each page's records by LSN.
type Key = (PageId, Lsn);

/// Collects records in any order and gives them back by page and LSN.
pub(crate) struct RecordStore {
    directory: Option<PathBuf>,
    memory_bytes: usize,
    keys: Vec<(Key, usize, usize)>,
    arena: Vec<u8>,
    file: Option<File>,
    /// Where each run starts and ends.
    runs: Vec<(u64, u64)>,
}

impl RecordStore {
    pub(crate) fn new(directory: Option<PathBuf>, memory_bytes: usize) -> Self {
        Self { directory, memory_bytes, keys: Vec::new(), arena: Vec::new(), file: None, runs: Vec::new() }
    }

    pub(crate) fn push(&mut self, key: Key, record: &[u8]) -> io::Result<()> {
        let needed = self.arena.len() + record.len() + (self.keys.len() + 1) * size_of::<(Key, usize, usize)>();
        if needed > self.memory_bytes && !self.keys.is_empty() {
            self.write_run()?;
        }
        self.keys.push((key, self.arena.len(), record.len()));
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
        for ((page, lsn), at, length) in &self.keys {
            let record = self.arena.get(*at..at + length).unwrap_or_default();
            out.write_all(&page.page.to_le_bytes())?;
            out.write_all(&page.file.to_le_bytes())?;
            out.write_all(&lsn.vlf.to_le_bytes())?;
            out.write_all(&lsn.block.to_le_bytes())?;
            out.write_all(&lsn.slot.to_le_bytes())?;
            out.write_all(&(record.len() as u32).to_le_bytes())?;
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

    /// All records by page and LSN.
    pub(crate) fn into_sorted(mut self) -> io::Result<SortedRecords> {
        self.keys.sort_unstable();
        let mut sorted = SortedRecords {
            keys: self.keys.into_iter().rev().collect(),
            arena: self.arena,
            file: self.file,
            runs: Vec::new(),
            heads: BinaryHeap::new(),
            read_bytes: (self.memory_bytes / self.runs.len().max(1)).clamp(LEAST_BUFFER_BYTES, BUFFER_BYTES),
        };
        for (index, (at, end)) in self.runs.into_iter().enumerate() {
            sorted.runs.push(Run { at, end, buffer: Vec::new(), start: 0 });
            sorted.advance(index)?;
        }
        Ok(sorted)
    }
}

/// A temporary file that has no name.
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
    /// Bytes that are missing in the buffer for the head of the next record, or for the whole of it once its head is there.
    fn missing_bytes(&self) -> usize {
        let here = self.buffer.len().saturating_sub(self.start);
        let record_bytes = self.buffer.get(self.start..).and_then(|rest| u32_at(rest, LENGTH_AT));
        (HEAD_BYTES + record_bytes.unwrap_or(0) as usize).saturating_sub(here)
    }
}

/// Records by page and LSN.
pub(crate) struct SortedRecords {
    /// Those in memory, the next one last.
    keys: Vec<(Key, usize, usize)>,
    arena: Vec<u8>,
    file: Option<File>,
    runs: Vec<Run>,
    /// The next key of each run.
    heads: BinaryHeap<Reverse<(Key, usize)>>,
    /// Read at once of each run.
    read_bytes: usize,
}

impl SortedRecords {
    /// The page of the next record.
    pub(crate) fn next_page(&self) -> Option<PageId> {
        let in_memory = self.keys.last().map(|((page, _), ..)| *page);
        let in_runs = self.heads.peek().map(|Reverse(((page, _), _))| *page);
        match (in_memory, in_runs) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// The next record if it is of this page.
    pub(crate) fn next_of(&mut self, page: PageId) -> io::Result<Option<(Lsn, Vec<u8>)>> {
        let in_memory = self.keys.last().map(|(key, ..)| *key);
        let in_runs = self.heads.peek().map(|Reverse((key, _))| *key);
        let is_in_memory = match (in_memory, in_runs) {
            (Some(one), Some(other)) => one <= other,
            (one, _) => one.is_some(),
        };
        let key = if is_in_memory { in_memory } else { in_runs };
        if key.is_none_or(|(next, _)| next != page) {
            return Ok(None);
        }
        if is_in_memory {
            let Some(((_, lsn), at, length)) = self.keys.pop() else { return Ok(None) };
            return Ok(Some((lsn, self.arena.get(at..at + length).unwrap_or_default().to_vec())));
        }
        let Some(Reverse(((_, lsn), index))) = self.heads.pop() else { return Ok(None) };
        let Some(run) = self.runs.get_mut(index) else { return Ok(None) };
        let length = u32_at(&run.buffer, run.start + LENGTH_AT).unwrap_or_default() as usize;
        let start = run.start + HEAD_BYTES;
        let record = run.buffer.get(start..start + length).unwrap_or_default().to_vec();
        run.start = start + length;
        self.advance(index)?;
        Ok(Some((lsn, record)))
    }

    /// Makes the next record of a run whole in its buffer, and its key known.
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
        let Some(head) = run.buffer.get(run.start..run.start + HEAD_BYTES) else { return Ok(()) };
        if let (Some(page), Some(lsn)) = (PageId::read(head, 0), Lsn::read(head, 6)) {
            self.heads.push(Reverse(((page, lsn), index)));
        }
        Ok(())
    }
}

/// What was done to a page.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PageWork {
    /// Records that it lacked and that were applied.
    pub redone: u32,
    /// Changes of transactions that had not ended, taken back.
    pub undone: u32,
}

/// Whole pages by address: in memory up to a bound, beyond that in a temporary file.
pub(crate) struct PageStore {
    directory: Option<PathBuf>,
    memory_bytes: usize,
    /// By address.
    pages: Vec<Stored>,
    memory: Vec<u8>,
    file: Option<File>,
}

/// A page in the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    /// Its address.
    pub(crate) page: PageId,
    /// Its place among all, for [`PageStore::read`].
    pub(crate) place: u32,
    work: PageWork,
}

impl PageStore {
    pub(crate) fn new(directory: Option<PathBuf>, memory_bytes: usize) -> Self {
        Self { directory, memory_bytes, pages: Vec::new(), memory: Vec::new(), file: None }
    }

    /// Adds a page, or replaces it: then what was done to it before stays. In order of addresses it takes constant time.
    pub(crate) fn put(&mut self, page: PageId, bytes: &PageBytes, work: PageWork) -> io::Result<()> {
        let place = match self.position(page) {
            Ok(at) => self.pages.get(at).map_or(0, |stored| stored.place),
            Err(at) => {
                let place = self.pages.len() as u32;
                self.pages.insert(at, Stored { page, place, work });
                place
            }
        };
        let start = place as usize * PAGE_BYTES;
        if self.file.is_none() && start + PAGE_BYTES > self.memory_bytes {
            let mut file = temporary(&self.directory)?;
            file.write_all(&self.memory)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => {
                file.seek(SeekFrom::Start(start as u64))?;
                file.write_all(bytes)
            }
            None => {
                self.memory.resize(self.memory.len().max(start + PAGE_BYTES), 0);
                let place = self.memory.get_mut(start..start + PAGE_BYTES);
                place.ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.len() + self.pages.len() * size_of::<Stored>()
    }

    /// The pages by address.
    pub(crate) fn pages(&self) -> &[Stored] {
        &self.pages
    }

    /// What was done to `page`, if it was added.
    pub(crate) fn work(&self, page: PageId) -> Option<PageWork> {
        self.position(page).ok().and_then(|at| self.pages.get(at)).map(|stored| stored.work)
    }

    fn position(&self, page: PageId) -> Result<usize, usize> {
        self.pages.binary_search_by_key(&page, |stored| stored.page)
    }

    /// The number of the last page of a file.
    pub(crate) fn last_of(&self, file_id: u16) -> Option<u32> {
        let end = self.pages.partition_point(|stored| stored.page.file <= file_id);
        let last = self.pages.get(end.checked_sub(1)?)?.page;
        (last.file == file_id).then_some(last.page)
    }

    /// The page `page`, if it was added.
    pub(crate) fn get(&self, page: PageId) -> Option<Box<PageBytes>> {
        let at = self.position(page).ok()?;
        let mut bytes = Box::new([0; PAGE_BYTES]);
        self.read(self.pages.get(at)?.place, bytes.as_mut_slice()).ok()?;
        Some(bytes)
    }

    /// Reads the page at a place.
    pub(crate) fn read(&self, place: u32, buffer: &mut [u8]) -> io::Result<()> {
        let at = place as usize * PAGE_BYTES;
        match &self.file {
            Some(file) => match read_fully_at(file, buffer, at as u64)? {
                read if read == buffer.len() => Ok(()),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            },
            None => {
                buffer.copy_from_slice(self.memory.get(at..at + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
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
            let pages: Vec<u32> = store.pages().iter().map(|stored| stored.page.page).collect();
            assert_eq!(pages, [2, 5, 7, 9]);
            let first = |page| store.get(PageId::new(1, page)).map(|bytes| bytes[0]);
            assert_eq!([first(2), first(5), first(9), first(3)], [Some(3), Some(7), Some(99), None]);
        }
    }

    #[test]
    fn records_come_by_page_and_lsn_in_memory_and_from_runs() {
        // Some are longer than what is read at once.
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
            while let Some(page) = sorted.next_page() {
                while let Some((lsn, record)) = sorted.next_of(page).expect("readable") {
                    assert!(last < Some((page, lsn)), "{memory_bytes}");
                    assert_eq!(u32_at(&record, 0), Some(lsn.block - 16));
                    assert_eq!(record.len(), 4 * words(lsn.block - 16));
                    last = Some((page, lsn));
                    count += 1;
                }
            }
            assert_eq!(count, 500, "{memory_bytes}");
        }
    }
}
