//! Long lists of small numbers, such as the entries of allocation maps. A list is in memory, or it is divided into blocks
//! in a temporary file, and only the blocks that were used last are in memory.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::TempStore;

/// An entry of a list.
pub trait Entry: Copy + Default + PartialEq {
    /// Number of bytes of an entry: a power of two, at most 8.
    const BYTES: usize;

    /// Reads an entry at the start of `bytes`.
    fn read(bytes: &[u8]) -> Option<Self>;

    /// Writes the entry to the start of `bytes`.
    fn write(self, bytes: &mut [u8]);
}

impl Entry for u8 {
    const BYTES: usize = 1;

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.first().copied()
    }

    fn write(self, bytes: &mut [u8]) {
        if let Some(byte) = bytes.first_mut() {
            *byte = self;
        }
    }
}

impl Entry for u16 {
    const BYTES: usize = 2;

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().map(|bytes| Self::from_le_bytes(*bytes))
    }

    fn write(self, bytes: &mut [u8]) {
        if let Some(to) = bytes.first_chunk_mut() {
            *to = self.to_le_bytes();
        }
    }
}

impl Entry for u32 {
    const BYTES: usize = 4;

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().map(|bytes| Self::from_le_bytes(*bytes))
    }

    fn write(self, bytes: &mut [u8]) {
        if let Some(to) = bytes.first_chunk_mut() {
            *to = self.to_le_bytes();
        }
    }
}

/// The largest block: large enough for fast reads, and small enough that a few of them fit into any grant.
const MOST_BLOCK_BYTES: usize = 1 << 16;
/// The smallest block, for tests.
const LEAST_BLOCK_BYTES: usize = 1 << 6;
/// The smallest number of blocks in memory. Each thread uses the blocks of three maps at the same time.
const LEAST_BLOCKS: usize = 16;

/// A temporary file for the blocks of lists, and the blocks that were used last. All clones share one state.
#[derive(Clone)]
pub struct Shelf(Arc<Shared>);

struct Shared {
    space: TempStore,
    /// The number of bytes of a block is 2 to the power of this.
    block_shift: u32,
    most_blocks: usize,
    is_lost: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<File>,
    /// The end of the file.
    end: u64,
    /// Whether a write has failed. From then on, all blocks stay in memory, so that no entry is lost.
    cannot_write: bool,
    cached: HashMap<BlockId, Cached>,
    /// Counts the uses of blocks.
    clock: u64,
    /// Where blocks are in the file. A block without a place has only zeros.
    places: BTreeMap<BlockId, Place>,
    /// The positions of places that are no longer needed, by their capacity.
    free: BTreeMap<usize, Vec<u64>>,
}

/// The number of a list, and the number of a block in it.
type BlockId = (u64, usize);

struct Cached {
    bytes: Arc<Vec<u8>>,
    /// When the block was last used.
    used: u64,
    /// Whether the block differs from the file.
    is_changed: bool,
}

#[derive(Clone, Copy)]
struct Place {
    at: u64,
    length: usize,
    capacity: usize,
}

impl Shelf {
    /// A shelf that keeps blocks of about `memory_bytes` in memory, and writes the others to a file of `space`. The file
    /// is created when the first block does not fit into memory.
    pub fn new(space: TempStore, memory_bytes: usize) -> Self {
        let block = (memory_bytes / LEAST_BLOCKS).clamp(LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES);
        let block_shift = block.ilog2();
        let most_blocks = (memory_bytes >> block_shift).max(LEAST_BLOCKS);
        let (is_lost, state) = (AtomicBool::default(), Mutex::default());
        Self(Arc::new(Shared { space, block_shift, most_blocks, is_lost, state }))
    }

    /// Whether a block could not be read back, so that its entries are unknown.
    pub fn is_lost(&self) -> bool {
        self.0.is_lost.load(Ordering::Relaxed)
    }

    fn block_bytes(&self) -> usize {
        1 << self.0.block_shift
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block; `None` if it could not be read back.
    fn block(&self, id: BlockId) -> Option<Arc<Vec<u8>>> {
        let mut state = self.state();
        state.clock += 1;
        let used = state.clock;
        if let Some(cached) = state.cached.get_mut(&id) {
            cached.used = used;
            return Some(cached.bytes.clone());
        }
        let bytes = Arc::new(self.read(&state, id)?);
        state.cached.insert(id, Cached { bytes: bytes.clone(), used, is_changed: false });
        self.make_room(&mut state);
        Some(bytes)
    }

    /// Takes a block out of the memory of the shelf, to change it. Also returns whether it differs from the file.
    fn take(&self, id: BlockId) -> Option<(Vec<u8>, bool)> {
        let mut state = self.state();
        match state.cached.remove(&id) {
            Some(cached) => Some((Arc::unwrap_or_clone(cached.bytes), cached.is_changed)),
            None => Some((self.read(&state, id)?, false)),
        }
    }

    /// Puts back a block that was taken.
    fn put_back(&self, id: BlockId, bytes: Vec<u8>, is_changed: bool) {
        let mut state = self.state();
        state.clock += 1;
        let used = state.clock;
        state.cached.insert(id, Cached { bytes: Arc::new(bytes), used, is_changed });
        self.make_room(&mut state);
    }

    fn read(&self, state: &State, id: BlockId) -> Option<Vec<u8>> {
        let Some(place) = state.places.get(&id) else { return Some(vec![0; self.block_bytes()]) };
        let start = Instant::now();
        let read = || -> io::Result<Vec<u8>> {
            let mut file = state.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
            file.seek(SeekFrom::Start(place.at))?;
            let mut packed = vec![0; place.length];
            file.read_exact(&mut packed)?;
            Ok(unpacked(&packed, self.block_bytes()).ok_or(io::ErrorKind::InvalidData)?)
        };
        let read = read();
        self.0.space.waited(start.elapsed());
        if let Err(error) = &read {
            self.0.space.failed(error);
            self.0.is_lost.store(true, Ordering::Relaxed);
        }
        read.ok()
    }

    /// Writes blocks that were not used for the longest time, until the others fit into memory. If blocks cannot be written,
    /// those that differ from the file stay in memory.
    fn make_room(&self, state: &mut State) {
        while state.cached.len() > self.0.most_blocks {
            let may_go = |cached: &Cached| !(state.cannot_write && cached.is_changed);
            let of_memory = state.cached.iter().filter(|(_, cached)| may_go(cached));
            let oldest = of_memory.min_by_key(|(_, cached)| cached.used).map(|(id, _)| *id);
            let Some((id, cached)) = oldest.and_then(|id| state.cached.remove_entry(&id)) else { return };
            if !cached.is_changed {
                continue;
            }
            let start = Instant::now();
            let written = self.write(state, id, &cached.bytes);
            self.0.space.waited(start.elapsed());
            if let Err(error) = written {
                self.0.space.failed(&error);
                state.cannot_write = true;
                state.cached.insert(id, cached);
            }
        }
    }

    fn write(&self, state: &mut State, id: BlockId, bytes: &[u8]) -> io::Result<()> {
        let packed = packed(bytes);
        // A place is only used for blocks of about its size.
        let (length, capacity) = (packed.len(), packed.len().next_power_of_two());
        let known = state.places.remove(&id);
        if let Some(place) = known.filter(|place| packed.is_empty() || place.capacity != capacity) {
            state.free(place);
        }
        if packed.is_empty() {
            return Ok(());
        }
        let at = match known.filter(|place| place.capacity == capacity) {
            Some(place) => place.at,
            None => state.free.get_mut(&capacity).and_then(Vec::pop).unwrap_or(state.end),
        };
        let file = match &mut state.file {
            Some(file) => file,
            None => state.file.insert(self.0.space.file()?),
        };
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&packed)?;
        state.end = state.end.max(at + capacity as u64);
        state.places.insert(id, Place { at, length, capacity });
        self.0.space.wrote(packed.len() as u64);
        Ok(())
    }

    /// Forgets the blocks of a list.
    fn forget(&self, list: u64) {
        let mut state = self.state();
        state.cached.retain(|(of, _), _| *of != list);
        let gone: Vec<BlockId> = state.places.range((list, 0)..(list + 1, 0)).map(|(id, _)| *id).collect();
        for id in gone {
            if let Some(place) = state.places.remove(&id) {
                state.free(place);
            }
        }
    }
}

impl State {
    fn free(&mut self, place: Place) {
        self.free.entry(place.capacity).or_default().push(place.at);
    }
}

const WORD_BYTES: usize = size_of::<u64>();
const RUN_BYTES: usize = size_of::<u32>() + WORD_BYTES;

/// A block in a shorter form: as runs of equal words if they are shorter, otherwise unchanged. Empty for a block of
/// zeros. Most maps describe long stretches of pages that are all in use or all free.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let words = bytes.as_chunks::<WORD_BYTES>().0;
    let mut packed = Vec::new();
    for run in words.chunk_by(|one, next| one == next) {
        packed.extend((run.len() as u32).to_le_bytes());
        packed.extend(run.first().into_iter().flatten());
        if packed.len() >= bytes.len() {
            return bytes.to_vec();
        }
    }
    match words.iter().any(|word| *word != [0; WORD_BYTES]) {
        true => packed,
        false => Vec::new(),
    }
}

/// The block from which `packed` was made.
fn unpacked(packed: &[u8], block_bytes: usize) -> Option<Vec<u8>> {
    if packed.len() == block_bytes {
        return Some(packed.to_vec());
    }
    let mut bytes = Vec::with_capacity(block_bytes);
    for run in packed.as_chunks::<RUN_BYTES>().0 {
        let (count, word) = run.split_first_chunk()?;
        let count = u32::from_le_bytes(*count) as usize;
        if count > (block_bytes - bytes.len()) / WORD_BYTES {
            return None;
        }
        bytes.extend(std::iter::repeat_n(word, count).flatten());
    }
    (bytes.len() == block_bytes).then_some(bytes)
}

/// A list of numbers.
pub struct Paged<T> {
    length: usize,
    kept: Kept<T>,
}

enum Kept<T> {
    Whole(Vec<T>),
    Blocks(Blocks),
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Self { length: 0, kept: Kept::Whole(Vec::new()) }
    }
}

impl<T> From<Vec<T>> for Paged<T> {
    fn from(entries: Vec<T>) -> Self {
        Self { length: entries.len(), kept: Kept::Whole(entries) }
    }
}

impl<T: Entry> Paged<T> {
    /// A list of `length` zeros. Without a shelf, the list is in memory.
    pub fn new(length: usize, shelf: Option<&Shelf>) -> Self {
        match shelf {
            None => vec![T::default(); length].into(),
            Some(shelf) => Self { length, kept: Kept::Blocks(Blocks::new(shelf)) },
        }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the list has no entries.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// An entry; `None` beyond the end of the list, and if the entry could not be read back.
    #[inline]
    pub fn get(&self, at: usize) -> Option<T> {
        match &self.kept {
            Kept::Whole(entries) => entries.get(at).copied(),
            Kept::Blocks(blocks) if at < self.length => blocks.get(at),
            Kept::Blocks(_) => None,
        }
    }

    /// The entries of a range, up to the end of the list.
    pub fn values(&self, range: Range<usize>) -> Values<'_, T> {
        Values { list: self, at: range.start, end: range.end.min(self.length), block: None }
    }

    /// Replaces the entries from `first` on by `values`. Values beyond the end of the list are dropped.
    pub fn fill(&mut self, first: usize, values: &[T]) {
        let mut values = values.iter();
        let end = first.saturating_add(values.len()).min(self.length);
        self.edit(first..end, |_, entry| values.next().copied().unwrap_or(entry));
    }

    /// Replaces each entry of `places` by the result of `change`. Neighboring places should follow each other. Places
    /// beyond the end of the list are left out.
    pub fn edit(&mut self, places: impl IntoIterator<Item = usize>, mut change: impl FnMut(usize, T) -> T) {
        let places = places.into_iter().filter(|at| *at < self.length);
        match &mut self.kept {
            Kept::Whole(entries) => {
                for at in places {
                    if let Some(entry) = entries.get_mut(at) {
                        *entry = change(at, *entry);
                    }
                }
            }
            Kept::Blocks(blocks) => blocks.edit(places, change),
        }
    }
}

impl Paged<u8> {
    /// Calls `is_it` with one piece of a range after the other, up to the end of the list, until it returns true. Returns
    /// whether it did. Much faster than a look at each entry.
    pub fn any(&self, range: Range<usize>, mut is_it: impl FnMut(&[u8]) -> bool) -> bool {
        let (mut at, end) = (range.start, range.end.min(self.length));
        let blocks = match &self.kept {
            Kept::Whole(entries) => return entries.get(at..end).is_some_and(is_it),
            Kept::Blocks(blocks) => blocks,
        };
        while at < end {
            let (number, within) = blocks.place::<u8>(at);
            let block = blocks.shelf.block((blocks.list, number));
            let length = (blocks.shelf.block_bytes() - within).min(end - at);
            if block.is_some_and(|bytes| bytes.get(within..within + length).is_some_and(&mut is_it)) {
                return true;
            }
            at += length;
        }
        false
    }
}

/// The blocks of a list on a shelf.
struct Blocks {
    shelf: Shelf,
    list: u64,
    /// Counts the changes of the list, so that a thread notices that its last block is out of date.
    version: u64,
}

/// The block of a list that a thread has used last.
struct Recent {
    list: u64,
    version: u64,
    number: usize,
    bytes: Arc<Vec<u8>>,
}

/// Each thread remembers one block of the lists whose numbers have the same remainder. The maps of a file are made one
/// after the other, so they do not displace each other.
const LANES: usize = 4;

thread_local! {
    static RECENT: RefCell<[Option<Recent>; LANES]> = const { RefCell::new([const { None }; LANES]) };
}

impl Blocks {
    fn new(shelf: &Shelf) -> Self {
        static LISTS: AtomicU64 = AtomicU64::new(0);
        Self { shelf: shelf.clone(), list: LISTS.fetch_add(1, Ordering::Relaxed), version: 0 }
    }

    /// The block with an entry, and the position of the entry in this block in bytes.
    #[inline]
    fn place<T: Entry>(&self, at: usize) -> (usize, usize) {
        let at = at * T::BYTES;
        (at >> self.shelf.0.block_shift, at & (self.shelf.block_bytes() - 1))
    }

    fn get<T: Entry>(&self, at: usize) -> Option<T> {
        let (number, within) = self.place::<T>(at);
        RECENT.with_borrow_mut(|recent| {
            let recent = recent.get_mut(self.list as usize % LANES)?;
            if let Some(recent) = recent
                && (recent.list, recent.version, recent.number) == (self.list, self.version, number)
            {
                return T::read(recent.bytes.get(within..)?);
            }
            let bytes = self.shelf.block((self.list, number))?;
            let entry = T::read(bytes.get(within..)?);
            *recent = Some(Recent { list: self.list, version: self.version, number, bytes });
            entry
        })
    }

    fn edit<T: Entry>(&mut self, places: impl Iterator<Item = usize>, mut change: impl FnMut(usize, T) -> T) {
        self.version += 1;
        // The block that this thread remembers is out of date now, and would have to be copied.
        RECENT.with_borrow_mut(|recent| {
            if let Some(lane) = recent.get_mut(self.list as usize % LANES) {
                lane.take_if(|recent| recent.list == self.list);
            }
        });
        let mut open: Option<(usize, Vec<u8>, bool)> = None;
        for at in places {
            let (number, within) = self.place::<T>(at);
            if open.as_ref().is_none_or(|(of, ..)| *of != number) {
                self.close(open.take());
                let taken = self.shelf.take((self.list, number));
                open = taken.map(|(bytes, is_changed)| (number, bytes, is_changed));
            }
            let Some((_, bytes, is_changed)) = &mut open else { continue };
            let Some(bytes) = bytes.get_mut(within..) else { continue };
            let Some(entry) = T::read(bytes) else { continue };
            let now = change(at, entry);
            if now != entry {
                now.write(bytes);
                *is_changed = true;
            }
        }
        self.close(open);
    }

    fn close(&self, open: Option<(usize, Vec<u8>, bool)>) {
        if let Some((number, bytes, is_changed)) = open {
            self.shelf.put_back((self.list, number), bytes, is_changed);
        }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.shelf.forget(self.list);
    }
}

/// The entries of a range, in order. An entry that could not be read back is zero here, and the shelf is lost.
pub struct Values<'p, T> {
    list: &'p Paged<T>,
    at: usize,
    end: usize,
    /// The block of the last entry, with its number.
    block: Option<(usize, Option<Arc<Vec<u8>>>)>,
}

impl<T> Clone for Values<'_, T> {
    fn clone(&self) -> Self {
        Self { list: self.list, at: self.at, end: self.end, block: self.block.clone() }
    }
}

impl<T: Entry> Iterator for Values<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.at >= self.end {
            return None;
        }
        let at = self.at;
        self.at += 1;
        let blocks = match &self.list.kept {
            Kept::Whole(entries) => return entries.get(at).copied(),
            Kept::Blocks(blocks) => blocks,
        };
        let (number, within) = blocks.place::<T>(at);
        if self.block.as_ref().is_none_or(|(of, _)| *of != number) {
            self.block = Some((number, blocks.shelf.block((blocks.list, number))));
        }
        let bytes = self.block.as_ref().and_then(|(_, bytes)| bytes.as_ref()?.get(within..));
        Some(bytes.and_then(T::read).unwrap_or_default())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.saturating_sub(self.at);
        (left, Some(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % end
        }
    }

    fn same<T: Entry + std::fmt::Debug + From<u8> + Sync>(memory_bytes: usize) {
        let space = TempStore::new(None, 0);
        let shelf = Shelf::new(space.clone(), memory_bytes);
        let length = 100_003;
        let mut lists: Vec<(Paged<T>, Paged<T>)> =
            (0..3).map(|_| (Paged::new(length, None), Paged::new(length, Some(&shelf)))).collect();
        let mut random = Random(memory_bytes as u64);
        for round in 0..300 {
            let (whole, paged) = &mut lists[round % 3];
            let (first, count) = (random.below(length), random.below(4000));
            let value = T::from(random.below(3) as u8);
            if round % 2 == 0 {
                let values: Vec<T> =
                    (0..count).map(|at| if round % 4 == 0 { value } else { T::from(at as u8) }).collect();
                whole.fill(first, &values);
                paged.fill(first, &values);
            } else {
                let step = 1 + random.below(300);
                let places = (first..length + 9).step_by(step).take(count);
                whole.edit(places.clone(), |_, _| value);
                paged.edit(places, |_, _| value);
            }
            let at = random.below(length);
            assert_eq!(whole.get(at), paged.get(at), "{at}");
            assert!(whole.values(at..at + 999).eq(paged.values(at..at + 999)), "{at}");
        }
        for (whole, paged) in &lists {
            assert_eq!((paged.len(), paged.get(length)), (length, None));
            assert!(whole.values(0..length).eq(paged.values(0..usize::MAX)));
            assert!((0..length).all(|at| whole.get(at) == paged.get(at)));
            // Each thread sees the last change, although it remembers blocks.
            std::thread::scope(|scope| {
                for first in 0..3 {
                    scope.spawn(move || assert!((first..length).step_by(3).all(|at| whole.get(at) == paged.get(at))));
                }
            });
        }
        assert!(space.spilled_bytes() > 0 && !shelf.is_lost());
    }

    #[test]
    fn a_list_in_blocks_is_the_same_as_in_memory_whatever_memory_it_has() {
        for memory_bytes in [0, 5_000, 50_000] {
            same::<u8>(memory_bytes);
            same::<u32>(memory_bytes);
        }
    }

    #[test]
    fn the_pieces_of_a_range_are_its_entries() {
        let shelf = Shelf::new(TempStore::new(None, 0), 0);
        let mut lists = [Paged::<u8>::new(5000, None), Paged::new(5000, Some(&shelf))];
        for list in &mut lists {
            list.edit(0..5000, |at, _| (at / 7) as u8);
            for range in [0..0, 0..1, 63..65, 100..4000, 4999..9000, 6000..7000] {
                let mut pieces = Vec::new();
                assert!(!list.any(range.clone(), |piece| {
                    pieces.extend_from_slice(piece);
                    false
                }));
                assert!(pieces.into_iter().eq(list.values(range.clone())), "{range:?}");
            }
            assert!(list.any(0..5000, |piece| piece.contains(&9)) && !list.any(0..63, |piece| piece.contains(&9)));
        }
    }

    #[test]
    fn no_more_blocks_are_in_memory_than_fit_and_those_of_dropped_lists_are_written_over() {
        let shelf = Shelf::new(TempStore::new(None, 0), 1 << 20);
        let mut end = 0;
        for round in 0..5 {
            let mut list = Paged::<u32>::new(1 << 20, Some(&shelf));
            list.edit(0..1 << 20, |at, _| (at as u32).wrapping_mul(2_654_435_761));
            assert!((0..1 << 20).all(|at| list.get(at) == Some((at as u32).wrapping_mul(2_654_435_761))));
            let state = shelf.state();
            assert!(state.cached.len() <= (1 << 20) / MOST_BLOCK_BYTES, "{}", state.cached.len());
            match round {
                0 => end = state.end,
                _ => assert_eq!(state.end, end),
            }
        }
        assert!(shelf.state().cached.is_empty() && shelf.state().places.is_empty());
    }

    #[test]
    fn zeros_need_no_space_and_runs_little() {
        let space = TempStore::new(None, 0);
        let shelf = Shelf::new(space.clone(), 0);
        let mut list = Paged::<u8>::new(1 << 20, Some(&shelf));
        list.edit(0..1 << 20, |_, entry| entry);
        assert!(list.values(0..1 << 20).all(|entry| entry == 0));
        assert_eq!(space.spilled_bytes(), 0);
        list.edit(0..1 << 20, |_, _| 0x40);
        let written = space.spilled_bytes();
        assert!((1..(1 << 20) / 4).contains(&written), "{written}");
        for block in [vec![0; 64], vec![7; 64], (0..64).collect(), [vec![1; 32], (0..32).collect()].concat()] {
            let packed = packed(&block);
            assert!(packed.len() <= block.len());
            if !packed.is_empty() {
                assert_eq!(unpacked(&packed, 64), Some(block));
            }
        }
        assert_eq!(unpacked(&[9, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1], 64), None, "more than a block");
    }

    #[test]
    fn entries_stay_in_memory_if_they_cannot_be_written_and_are_unknown_if_they_cannot_be_read() {
        let nowhere = TempStore::new(Some("/nowhere/at/all".into()), 0);
        let shelf = Shelf::new(nowhere.clone(), 0);
        let mut list = Paged::<u32>::new(10_000, Some(&shelf));
        list.edit(0..10_000, |at, _| at as u32);
        assert!((0..10_000).all(|at| list.get(at) == Some(at as u32)));
        assert!(nowhere.error().is_some() && !shelf.is_lost());

        let shelf = Shelf::new(TempStore::new(None, 0), 0);
        let mut list = Paged::<u32>::new(10_000, Some(&shelf));
        list.edit(0..10_000, |at, _| at as u32);
        shelf.state().file.as_ref().unwrap().set_len(0).unwrap();
        assert_eq!(list.get(0), None);
        assert!(shelf.is_lost());
    }
}
