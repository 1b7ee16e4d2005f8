//! Sorts any number of items in bounded memory. Items that do not fit into memory are written to files as sorted runs,
//! which are merged when the items are read.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::time::Instant;

use super::TempStore;

/// A type that can be sorted.
pub trait Item: Sized {
    /// The sort order.
    fn order(&self, other: &Self) -> Ordering;

    /// Approximate size in memory, in bytes.
    fn bytes(&self) -> usize;

    /// Appends the item to `out`.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads the output of [`Self::write`].
    fn read(bytes: &[u8]) -> Option<Self>;
}

/// The number of runs that are merged in one step. Each run has its own file, so the disk space of a run is free as
/// soon as the run is merged.
const FAN: usize = 16;
/// Number of bytes per write.
const WRITE_BYTES: usize = 1 << 16;
const LEAST_READ_BYTES: usize = 1 << 12;

/// Collects items, in any order, and sorts them.
pub struct Sorter<T> {
    space: TempStore,
    limit_bytes: usize,
    kept: Vec<T>,
    kept_bytes: usize,
    /// Sorted runs, grouped into levels. The runs of one level have about the same size, which is [`FAN`] times the
    /// size of runs on the level below.
    levels: Vec<Vec<RunFile>>,
}

/// A file of items, each preceded by its length.
struct RunFile {
    file: File,
    bytes: u64,
}

impl<T: Item> Sorter<T> {
    /// A sorter that keeps items of up to about `limit_bytes` in memory.
    pub fn new(limit_bytes: usize, space: &TempStore) -> Self {
        Self { space: space.clone(), limit_bytes, kept: Vec::new(), kept_bytes: 0, levels: Vec::new() }
    }

    /// Adds an item.
    pub fn push(&mut self, item: T) {
        self.kept_bytes += item.bytes();
        self.kept.push(item);
        if self.kept_bytes > self.limit_bytes {
            self.spill();
        }
    }

    /// Writes the items in memory to a sorted run. If files cannot be written, all items stay in memory, so that
    /// nothing is lost.
    fn spill(&mut self) {
        if self.space.has_failed() {
            return;
        }
        let start = Instant::now();
        self.kept.sort_by(T::order);
        let written = write_run::<_, T>(self.kept.iter().map(Ok), &self.space).and_then(|run| {
            (self.kept, self.kept_bytes) = (Vec::new(), 0);
            self.add(run)
        });
        if let Err(error) = written {
            self.space.failed(&error);
        }
        self.space.waited(start.elapsed());
    }

    fn add(&mut self, mut run: RunFile) -> io::Result<()> {
        for level in 0.. {
            if self.levels.len() <= level {
                self.levels.push(Vec::new());
            }
            let Some(runs) = self.levels.get_mut(level) else { break };
            runs.push(run);
            if runs.len() < FAN {
                break;
            }
            let sources = runs.iter().map(|run| Reader::new(&run.file, 0, run.bytes, self.limit_bytes / FAN));
            let merged: Merge<_, T> = Merge::new(sources.collect())?;
            run = write_run::<_, T>(merged, &self.space)?;
            runs.clear();
        }
        Ok(())
    }

    /// All items in sort order.
    pub fn into_sorted(mut self) -> Sorted<T> {
        if !self.levels.is_empty() && !self.kept.is_empty() {
            self.spill();
        }
        let runs: Vec<RunFile> = self.levels.into_iter().flatten().collect();
        let buffer = self.limit_bytes / runs.len().max(1);
        let readers = runs.into_iter().map(|run| Reader::new(run.file, 0, run.bytes, buffer).of(&self.space)).collect();
        let merge = Merge::new(readers).unwrap_or_else(|error| {
            self.space.failed(&error);
            Merge { sources: Vec::new(), heads: BinaryHeap::new() }
        });
        self.kept.sort_by(T::order);
        Sorted { space: self.space, merge, kept: self.kept.into_iter().peekable() }
    }
}

fn write_run<I: Borrow<T>, T: Item>(
    items: impl Iterator<Item = io::Result<I>>,
    space: &TempStore,
) -> io::Result<RunFile> {
    let (mut file, mut bytes) = (space.file()?, 0);
    let mut buffer = Vec::with_capacity(WRITE_BYTES);
    let mut flush = |buffer: &mut Vec<u8>| {
        bytes += buffer.len() as u64;
        space.wrote(buffer.len() as u64);
        let written = file.write_all(buffer);
        buffer.clear();
        written
    };
    for item in items {
        write_item(item?.borrow(), &mut buffer);
        if buffer.len() >= WRITE_BYTES {
            flush(&mut buffer)?;
        }
    }
    flush(&mut buffer)?;
    Ok(RunFile { file, bytes })
}

/// Writes the length of an item, then the item.
pub fn write_item<T: Item>(item: &T, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0; 4]);
    item.write(out);
    let length = (out.len() - start - 4) as u32;
    if let Some(head) = out.get_mut(start..start + 4) {
        head.copy_from_slice(&length.to_le_bytes());
    }
}

/// Reads a length and an item, and returns the item and the number of bytes that were read; `None` if `bytes` is too
/// short.
pub fn read_item<T: Item>(bytes: &[u8]) -> Option<io::Result<(T, usize)>> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = u32::from_le_bytes(*length) as usize;
    let item = T::read(rest.get(..length)?);
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "a temporary file was changed");
    Some(item.map(|item| (item, 4 + length)).ok_or_else(broken))
}

/// Reads the items in a range of a file, one after another. Several readers may share a file.
pub struct Reader<F, T> {
    file: F,
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    used: usize,
    at_once: usize,
    /// The storage that adds up the time of all reads; `None` if the time of this reader's reads is not counted.
    space: Option<TempStore>,
    item: PhantomData<T>,
}

impl<F: Borrow<File>, T: Item> Reader<F, T> {
    /// Reads the bytes from `start` to `end`, about `at_once` bytes per read.
    pub fn new(file: F, start: u64, end: u64, at_once: usize) -> Self {
        let at_once = at_once.clamp(LEAST_READ_BYTES, WRITE_BYTES);
        Self { file, next: start, end, buffer: Vec::new(), used: 0, at_once, space: None, item: PhantomData }
    }

    /// Adds the time of each read to the waiting time of `space`.
    fn of(mut self, space: &TempStore) -> Self {
        self.space = Some(space.clone());
        self
    }

    /// The next item; `None` after the last item.
    pub fn read_next(&mut self) -> io::Result<Option<T>> {
        loop {
            if let Some(item) = read_item(self.buffer.get(self.used..).unwrap_or_default()) {
                let (item, length) = item?;
                self.used += length;
                return Ok(Some(item));
            }
            if self.next >= self.end {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let length = (self.end - self.next).min(self.at_once as u64);
        let kept = self.buffer.len();
        self.buffer.resize(kept + length as usize, 0);
        let start = Instant::now();
        let mut file = self.file.borrow();
        file.seek(SeekFrom::Start(self.next))?;
        file.read_exact(self.buffer.get_mut(kept..).unwrap_or_default())?;
        self.next += length;
        if let Some(space) = &self.space {
            space.waited(start.elapsed());
        }
        Ok(())
    }
}

/// Merges several runs into one sorted sequence.
struct Merge<F, T> {
    sources: Vec<Reader<F, T>>,
    heads: BinaryHeap<Head<T>>,
}

/// The next item of one run, with the index of the run.
struct Head<T> {
    item: T,
    source: usize,
}

impl<T: Item> Ord for Head<T> {
    /// Reverses the order, because a binary heap returns its greatest element first, but the merge needs the smallest
    /// item first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.item.order(&self.item).then(other.source.cmp(&self.source))
    }
}

impl<T: Item> PartialOrd for Head<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Item> PartialEq for Head<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T: Item> Eq for Head<T> {}

impl<F: Borrow<File>, T: Item> Merge<F, T> {
    fn new(sources: Vec<Reader<F, T>>) -> io::Result<Self> {
        let mut merge = Self { heads: BinaryHeap::new(), sources };
        for source in 0..merge.sources.len() {
            merge.draw(source)?;
        }
        Ok(merge)
    }

    fn draw(&mut self, source: usize) -> io::Result<()> {
        if let Some(reader) = self.sources.get_mut(source)
            && let Some(item) = reader.read_next()?
        {
            self.heads.push(Head { item, source });
        }
        Ok(())
    }
}

impl<F: Borrow<File>, T: Item> Iterator for Merge<F, T> {
    type Item = io::Result<T>;

    fn next(&mut self) -> Option<io::Result<T>> {
        let Head { item, source } = self.heads.pop()?;
        Some(self.draw(source).map(|()| item))
    }
}

/// An iterator over the items in sort order. Items that cannot be read back are lost, and the storage records the error.
pub struct Sorted<T> {
    space: TempStore,
    merge: Merge<File, T>,
    /// Items that are only in memory, because files could not be written or were not needed.
    kept: std::iter::Peekable<std::vec::IntoIter<T>>,
}

impl<T: Item> Iterator for Sorted<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let is_kept = match (self.kept.peek(), self.merge.heads.peek()) {
            (Some(kept), Some(head)) => kept.order(&head.item) != Ordering::Greater,
            (kept, _) => kept.is_some(),
        };
        if is_kept {
            return self.kept.next();
        }
        loop {
            match self.merge.next()? {
                Ok(item) => return Some(item),
                Err(error) => self.space.failed(&error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word of any length.
    #[derive(Clone, PartialEq, Debug)]
    struct Word(String);

    impl Item for Word {
        fn order(&self, other: &Self) -> Ordering {
            self.0.cmp(&other.0)
        }

        fn bytes(&self) -> usize {
            size_of::<Self>() + self.0.len()
        }

        fn write(&self, out: &mut Vec<u8>) {
            out.extend(self.0.as_bytes());
        }

        fn read(bytes: &[u8]) -> Option<Self> {
            String::from_utf8(bytes.to_vec()).ok().map(Self)
        }
    }

    /// Unsorted words. Some are longer than a single read, and some occur twice.
    fn words(count: u32) -> Vec<Word> {
        let word = |number: u32| {
            let number = (number / 2).wrapping_mul(2_654_435_761);
            Word(format!("{number:x}").repeat(if number.is_multiple_of(100) { 1000 } else { 3 }))
        };
        (0..count).map(word).collect()
    }

    fn sorted(limit: usize, space: &TempStore, words: &[Word]) -> Vec<Word> {
        let mut sorter = Sorter::new(limit, space);
        words.iter().for_each(|word| sorter.push(word.clone()));
        sorter.into_sorted().collect()
    }

    #[test]
    fn every_item_comes_in_order_whatever_was_spilled() {
        let words = words(30_000);
        let mut expected = words.clone();
        expected.sort_by(Word::order);
        // The smallest limit creates thousands of runs, which are merged in several steps.
        for limit in [usize::MAX, 1 << 20, 1 << 14, 1 << 9] {
            let space = TempStore::default();
            assert!(sorted(limit, &space, &words) == expected, "limit {limit}");
            assert_eq!(space.spilled_bytes() > 0, limit != usize::MAX, "limit {limit}");
            assert_eq!(space.error(), None);
        }
    }

    #[test]
    fn nothing_is_lost_where_nothing_can_be_written() {
        let space = TempStore::new(Some("/nowhere/at/all".into()), 0);
        let words = words(1000);
        assert_eq!(sorted(1000, &space, &words).len(), words.len());
        assert!(space.error().is_some());
    }
}
