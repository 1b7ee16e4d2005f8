//! Facts about pages in bounded memory. Facts that do not fit into memory are written to temporary files.
//!
//! The facts that one thread has collected are a run. A run consists of the facts in memory and of sorted segments in a
//! file. All runs are read back in parallel, one window at a time. A window contains the facts about a range of pages.
//! If no facts were written to files, nothing is copied, and a single window contains all facts. Facts that are needed
//! in an order other than page order are sorted by a [`Sorter`].

mod paged;
mod sorter;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use format::{PageId, RecordId};

pub use paged::{Entry, Paged, Shelf, Values};
pub use sorter::{Item, Reader, Sorted, Sorter, read_item, write_item};

/// A fact about a page; all facts of one type have the same size.
pub trait Fact: Copy {
    /// Number of bytes of a fact in a file.
    const BYTES: usize;

    /// The page that the fact is about.
    fn page(&self) -> PageId;

    /// Writes the fact to `bytes`, which has [`Self::BYTES`] bytes.
    fn write(&self, bytes: &mut [u8]);

    /// Reads the output of [`Self::write`].
    fn read(bytes: &[u8]) -> Option<Self>;

    /// The fact with the present number of its unit, which `now` returns; `None` if the unit does not exist any more.
    fn translated(self, now: impl FnOnce(u32) -> Option<u32>) -> Option<Self>;

    /// Appends the fact to `out`, in a shorter form if it is similar to the fact `before`.
    fn pack(&self, _before: Option<&Self>, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + Self::BYTES, 0);
        self.write(out.get_mut(start..).unwrap_or_default());
    }

    /// Reads the output of [`Self::pack`], given the same `before`. `take` fills a buffer with the next bytes.
    fn unpack(_before: Option<&Self>, take: &mut dyn FnMut(&mut [u8]) -> Option<()>) -> Option<Self> {
        let mut bytes = vec![0; Self::BYTES];
        take(&mut bytes)?;
        Self::read(&bytes)
    }
}

/// Appends a page's address to `out`, in the format of [`PageId::read`].
pub fn page_to(out: &mut Vec<u8>, page: PageId) {
    out.extend(page.page.to_le_bytes());
    out.extend(page.file.to_le_bytes());
}

/// Appends a record's address to `out`, in the format of [`RecordId::read`].
pub fn record_to(out: &mut Vec<u8>, at: RecordId) {
    page_to(out, at.page);
    out.extend(at.slot.to_le_bytes());
}

/// The storage for spilled facts. All clones, in all threads, share one state.
#[derive(Clone, Debug, Default)]
pub struct TempStore(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    directory: Option<PathBuf>,
    memory_bytes: usize,
    bytes: AtomicU64,
    nanos: AtomicU64,
    error: Mutex<Option<String>>,
}

impl TempStore {
    /// Storage whose files are in `directory` or, if it is `None`, in the operating system's folder for temporary
    /// files. Files are created only when facts exceed `memory_bytes`.
    pub fn new(directory: Option<PathBuf>, memory_bytes: u64) -> Self {
        Self(Arc::new(Shared { directory, memory_bytes: memory_bytes as usize, ..Shared::default() }))
    }

    /// Bytes of memory that the facts of one phase may use.
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes
    }

    /// Number of bytes written.
    pub fn spilled_bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Time that threads waited for writes and reads, in nanoseconds.
    pub fn spill_nanos(&self) -> u64 {
        self.0.nanos.load(Ordering::Relaxed)
    }

    /// One line that says why facts were lost, if any were.
    pub fn error(&self) -> Option<String> {
        self.0.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether writing or reading a file has failed.
    fn has_failed(&self) -> bool {
        self.0.error.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn waited(&self, time: Duration) {
        self.0.nanos.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Adds to the number of bytes written.
    pub fn wrote(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn path(&self) -> PathBuf {
        self.0.directory.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// Opens an unnamed file. It disappears when its handle is closed, even if the run is killed.
    pub fn file(&self) -> io::Result<File> {
        tempfile::tempfile_in(self.path())
    }

    /// Notes why facts could not be stored or read back.
    pub fn failed(&self, error: &io::Error) {
        let text = format!(
            "{}: temporary files cannot be written or read there: {error}; see --temp-dir and --memory",
            self.path().display()
        );
        self.0.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
    }
}

/// The facts that one thread has collected.
pub struct Run<F> {
    kept: Vec<F>,
    spilled: Option<Spilled>,
}

/// Facts in a file, divided into segments; each segment is sorted by page.
struct Spilled {
    file: File,
    /// Start and end of each segment, in bytes.
    segments: Vec<(u64, u64)>,
}

impl<F> Default for Run<F> {
    fn default() -> Self {
        Self { kept: Vec::new(), spilled: None }
    }
}

impl<F: Fact> Run<F> {
    /// Adds a fact. There may be only one fact per page.
    pub fn push(&mut self, fact: F) {
        self.kept.push(fact);
    }

    /// Writes the facts in memory to a file if there are `limit` or more. If writing fails, the facts are lost and
    /// `space` records the error.
    pub fn bound(&mut self, limit: usize, space: &TempStore) {
        if self.kept.len() < limit.max(1) {
            self.make_room(limit);
            return;
        }
        let start = Instant::now();
        // After a partial write, the positions of later segments would be wrong. So nothing is written after an error.
        if !space.has_failed()
            && let Err(error) = self.write(space)
        {
            space.failed(&error);
        }
        space.waited(start.elapsed());
        self.kept.clear();
    }

    /// Returns whether the run has few facts: starting a thread for them would cost more time than the thread would
    /// save.
    pub fn is_small(&self) -> bool {
        self.spilled.is_none() && self.kept.len() < FEW_FACTS
    }

    /// Calls `visit` with each fact. If the facts were added in ascending page order, they are visited in this order.
    /// Facts that cannot be read back are lost, and `space` records the error.
    pub fn each(&self, space: &TempStore, mut visit: impl FnMut(F)) {
        if let Some(Spilled { file, segments }) = &self.spilled {
            let end = segments.last().map_or(0, |(_, end)| *end);
            if let Err(error) = read_facts(file, 0..end, space, &mut visit) {
                space.failed(&error);
            }
        }
        self.kept.iter().copied().for_each(visit);
    }

    /// Merges several runs into one run that is sorted by page.
    pub fn in_order(mut runs: Vec<Self>, limit: usize, space: &TempStore) -> Self {
        let mut all = Self::default();
        if runs.iter().all(|run| run.spilled.is_none()) {
            all.kept = runs.pop().map(|run| run.kept).unwrap_or_default();
            runs.into_iter().for_each(|run| all.kept.extend(run.kept));
            all.kept.sort_unstable_by_key(Fact::page);
            return all;
        }
        let mut windows = Windows::new(runs, limit, space);
        let mut in_window = Vec::new();
        while let Some(window) = windows.advance() {
            in_window.extend(window.facts());
            in_window.sort_unstable_by_key(Fact::page);
            for fact in in_window.drain(..) {
                all.push(fact);
                all.bound(limit, space);
            }
        }
        all
    }

    /// Adds the facts of another run. Facts of the other run that are in memory stay there; the caller bounds the result.
    pub fn append(&mut self, other: &Self, limit: usize, space: &TempStore) {
        if other.spilled.is_none() {
            return self.kept.extend_from_slice(&other.kept);
        }
        other.each(space, |fact| {
            self.push(fact);
            self.bound(limit, space);
        });
    }

    /// Reserves memory for new facts, but for no more than `limit` facts in total. Without this, the vector would
    /// double its capacity whenever it is full, and might use twice the memory of `limit` facts.
    fn make_room(&mut self, limit: usize) {
        if self.kept.capacity() - self.kept.len() < LEAST_ROOM {
            let growth = self.kept.len().min(limit - self.kept.len()).max(LEAST_ROOM);
            self.kept.reserve_exact(growth);
        }
    }

    fn write(&mut self, space: &TempStore) -> io::Result<()> {
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            None => self.spilled.insert(Spilled { file: space.file()?, segments: Vec::new() }),
        };
        self.kept.sort_unstable_by_key(Fact::page);
        let start = spilled.segments.last().map_or(0, |(_, end)| *end);
        let mut end = start;
        let mut buffer = Vec::with_capacity(FACTS_PER_WRITE * F::BYTES);
        for facts in self.kept.chunks(FACTS_PER_WRITE) {
            buffer.resize(facts.len() * F::BYTES, 0);
            for (fact, bytes) in facts.iter().zip(buffer.chunks_exact_mut(F::BYTES)) {
                fact.write(bytes);
            }
            spilled.file.write_all(&buffer)?;
            end += buffer.len() as u64;
            space.wrote(buffer.len() as u64);
        }
        spilled.segments.push((start, end));
        Ok(())
    }
}

/// Calls `visit` with the facts in a byte range of a file.
fn read_facts<F: Fact>(
    mut file: &File,
    stretch: Range<u64>,
    space: &TempStore,
    mut visit: impl FnMut(F),
) -> io::Result<()> {
    file.seek(SeekFrom::Start(stretch.start))?;
    let mut left = (stretch.end - stretch.start) as usize;
    let mut buffer = vec![0; (FACTS_PER_WRITE * F::BYTES).min(left)];
    while left > 0 {
        let taken = left.min(buffer.len());
        let bytes = buffer.get_mut(..taken).unwrap_or_default();
        let start = Instant::now();
        file.read_exact(bytes)?;
        space.waited(start.elapsed());
        bytes.chunks_exact(F::BYTES).filter_map(F::read).for_each(&mut visit);
        left -= taken;
    }
    Ok(())
}

const FACTS_PER_WRITE: usize = 4096;
/// A number of facts that a thread processes in less time than starting the thread takes.
const FEW_FACTS: usize = 64;
/// The minimum capacity that is reserved: enough for the facts that are added between two calls of [`Run::bound`], with
/// a margin.
const LEAST_ROOM: usize = 256;

/// Reads all runs in parallel, one window at a time. A window contains the facts about a range of pages.
pub struct Windows<'a, F> {
    files: Vec<File>,
    cursors: Vec<Cursor<F>>,
    facts_a_cursor: usize,
    space: &'a TempStore,
    start: Option<PageId>,
    ended: bool,
}

/// The position up to which one sequence of sorted facts has been read: a segment of a file, or the facts that a run
/// has in memory.
struct Cursor<F> {
    /// The index of the file in [`Windows::files`], and the start and end of the bytes that have not been read yet.
    left: Option<(usize, u64, u64)>,
    window: Vec<F>,
}

impl<'a, F: Fact> Windows<'a, F> {
    /// Windows of about `facts` facts each. If nothing was spilled, a single window contains all facts. Otherwise the
    /// facts in memory are spilled too, so that only one window is in memory at a time.
    pub fn new(mut runs: Vec<Run<F>>, facts: usize, space: &'a TempStore) -> Self {
        let (mut files, mut cursors) = (Vec::new(), Vec::new());
        if runs.iter().any(|run| run.spilled.is_some()) {
            runs.iter_mut().for_each(|run| run.bound(run.kept.len(), space));
        }
        for Run { mut kept, spilled } in runs {
            kept.sort_unstable_by_key(Fact::page);
            cursors.push(Cursor { left: None, window: kept });
            if let Some(Spilled { file, segments }) = spilled {
                let cursor = |(start, end)| Cursor { left: Some((files.len(), start, end)), window: Vec::new() };
                cursors.extend(segments.into_iter().map(cursor));
                files.push(file);
            }
        }
        let facts_a_cursor = (facts / cursors.len().max(1)).max(LEAST_FACTS_PER_CURSOR);
        Self { files, cursors, facts_a_cursor, space, start: None, ended: false }
    }

    /// Returns the next window; `None` after the last window.
    pub fn advance(&mut self) -> Option<Window<'_, F>> {
        if self.ended {
            return None;
        }
        let mut end = None;
        for cursor in &mut self.cursors {
            if let Err(error) = cursor.fill(&mut self.files, self.start, self.facts_a_cursor, self.space) {
                self.space.failed(&error);
                cursor.left = None;
            }
            // As segments are sorted, the facts still in the file are about later pages.
            if cursor.left.is_some()
                && let Some(last) = cursor.window.last()
            {
                end = Some(end.map_or(last.page(), |end: PageId| end.min(last.page())));
            }
        }
        let start = std::mem::replace(&mut self.start, end);
        self.ended = end.is_none();
        Some(Window { cursors: &self.cursors, start, end })
    }
}

const LEAST_FACTS_PER_CURSOR: usize = 256;

impl<F: Fact> Cursor<F> {
    /// Drops the facts about pages up to `done` and reads more facts.
    fn fill(&mut self, files: &mut [File], done: Option<PageId>, facts: usize, space: &TempStore) -> io::Result<()> {
        let used = self.window.partition_point(|fact| done.is_some_and(|done| fact.page() <= done));
        self.window.drain(..used);
        let Some((index, start, end)) = self.left else { return Ok(()) };
        let wanted = facts.saturating_sub(self.window.len()) * F::BYTES;
        let wanted = (wanted as u64).min(end - start);
        if let Some(file) = files.get_mut(index) {
            self.window.reserve_exact(wanted as usize / F::BYTES);
            read_facts(file, start..start + wanted, space, |fact| self.window.push(fact))?;
        }
        self.left = (start + wanted < end).then_some((index, start + wanted, end));
        Ok(())
    }
}

/// The facts about the pages after `start`, up to and including `end`.
pub struct Window<'a, F> {
    cursors: &'a [Cursor<F>],
    start: Option<PageId>,
    end: Option<PageId>,
}

/// The position at which [`Window::get`] found the previous fact; initially the first position.
#[derive(Clone, Copy, Default)]
pub struct Found {
    cursor: usize,
    at: usize,
    page: u32,
}

impl<F: Fact> Window<'_, F> {
    /// Returns the fact about a page; `None` if the page is not in the window or has no fact. No page has two facts.
    /// The method first guesses the position of the fact from the distance between `page` and the page found last. The
    /// guess is right if every page in between has a fact.
    pub fn get(&self, page: PageId, last: &mut Found) -> Option<F> {
        if !self.contains(page) {
            return None;
        }
        let fact_at = |found: &Found| {
            let fact = self.cursors.get(found.cursor)?.window.get(found.at)?;
            (fact.page() == page).then_some(*fact)
        };
        let pages_on = i64::from(page.page) - i64::from(last.page);
        let guess = Found { at: last.at.wrapping_add_signed(pages_on as isize), page: page.page, ..*last };
        if let Some(fact) = fact_at(&guess) {
            *last = guess;
            return Some(fact);
        }
        let found = self.cursors.iter().enumerate().find_map(|(number, cursor)| {
            let at = cursor.window.binary_search_by_key(&page, Fact::page).ok()?;
            Some(Found { cursor: number, at, page: page.page })
        })?;
        *last = found;
        fact_at(&found)
    }

    /// All facts about the pages in the window.
    pub fn facts(&self) -> impl Iterator<Item = F> + '_ {
        let (start, end) = (self.start, self.end);
        let is_inside =
            move |fact: &&F| start.is_none_or(|start| fact.page() > start) && end.is_none_or(|end| fact.page() <= end);
        self.cursors.iter().flat_map(|cursor| &cursor.window).filter(is_inside).copied()
    }

    /// Whether a page is in the window.
    pub fn contains(&self, page: PageId) -> bool {
        self.start.is_none_or(|start| page > start) && self.end.is_none_or(|end| page <= end)
    }

    /// The last page before the window, and the last page of the window. The first is `None` if the window begins at
    /// the first page, and the second is `None` if the window ends at the last page.
    pub fn ends(&self) -> (Option<PageId>, Option<PageId>) {
        (self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Number(u32);

    impl Fact for Number {
        const BYTES: usize = 4;

        fn page(&self) -> PageId {
            PageId::new(1, self.0)
        }

        fn translated(self, _: impl FnOnce(u32) -> Option<u32>) -> Option<Self> {
            Some(self)
        }

        fn write(&self, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.0.to_le_bytes());
        }

        fn read(bytes: &[u8]) -> Option<Self> {
            Some(Self(u32::from_le_bytes(*bytes.first_chunk()?)))
        }
    }

    /// Creates the runs of two threads that read chunks of 100 pages. One thread reads every third chunk, and the other
    /// thread reads all other chunks. The chunks are not in page order.
    fn runs(pages: u32, limit: usize, space: &TempStore) -> Vec<Run<Number>> {
        let mut runs = vec![Run::default(), Run::default()];
        for chunk in 0..pages / 100 {
            let run = &mut runs[usize::from(chunk % 3 == 0)];
            (0..100).for_each(|page| run.push(Number((chunk ^ 5) * 100 + page)));
            run.bound(limit, space);
        }
        runs
    }

    #[test]
    fn every_fact_is_in_exactly_one_window_whatever_was_spilled() {
        for limit in [usize::MAX, 30_000, 5000, 100] {
            let space = TempStore::default();
            let pages = 80_000;
            let mut windows = Windows::new(runs(pages, limit, &space), 10_000, &space);
            let mut seen = vec![0; pages as usize];
            while let Some(window) = windows.advance() {
                let mut last = Found::default();
                for (page, seen) in seen.iter_mut().enumerate() {
                    let fact = window.get(PageId::new(1, page as u32), &mut last);
                    *seen += u32::from(fact == Some(Number(page as u32)));
                }
            }
            assert!(seen.iter().all(|seen| *seen == 1), "limit {limit}");
            assert_eq!(space.spilled_bytes() > 0, limit != usize::MAX, "limit {limit}");
            assert_eq!(space.error(), None);
        }
    }

    #[test]
    fn facts_are_found_in_any_order_and_none_that_is_not_there() {
        let space = TempStore::default();
        // Every fifth page has no fact, and no page of another file has a fact.
        let mut runs = vec![Run::default(), Run::default()];
        let has_fact = |page: u32| page < 1000 && !page.is_multiple_of(5);
        (0..1000).filter(|page| has_fact(*page)).for_each(|page| runs[page as usize / 100 % 2].push(Number(page)));
        let mut windows = Windows::new(runs, usize::MAX, &space);
        let window = windows.advance().unwrap();
        let mut last = Found::default();
        let backwards = (0..1100).rev();
        let scattered = (0..1100).map(|page| page * 7 % 1100);
        for page in backwards.chain(scattered).chain(0..1100) {
            let expected = has_fact(page).then_some(Number(page));
            assert_eq!(window.get(PageId::new(1, page), &mut last), expected, "page {page}");
            assert_eq!(window.get(PageId::new(2, page), &mut last), None, "page {page}");
        }
        assert!(windows.advance().is_none());
    }

    #[test]
    fn a_run_gives_each_of_its_facts_again_and_again() {
        for limit in [usize::MAX, 5000, 100] {
            let space = TempStore::default();
            let mut runs = runs(20_000, limit, &space);
            for _ in 0..2 {
                let mut seen = vec![0; 20_000];
                runs.iter_mut().for_each(|run| run.each(&space, |fact| seen[fact.0 as usize] += 1));
                assert!(seen.iter().all(|seen| *seen == 1), "limit {limit}");
            }
            assert_eq!(space.error(), None);
        }
    }

    #[test]
    fn a_place_that_cannot_be_written_is_told_once_and_costs_only_the_facts() {
        let space = TempStore::new(Some("/nowhere/at/all".into()), 0);
        let mut windows = Windows::new(runs(10_000, 100, &space), 1000, &space);
        assert!(space.error().is_some_and(|error| error.contains("/nowhere/at/all")));
        assert!(windows.advance().is_some());
    }
}
