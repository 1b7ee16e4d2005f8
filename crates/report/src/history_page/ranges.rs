//! The ranges of each file, and when they were last read.

use history::{History, Result, time};
use serde::Serialize;

/// A data file and its ranges of pages.
#[derive(Serialize)]
pub(super) struct File {
    id: u16,
    pages: u64,
    /// Consecutive ranges of pages, from page 0. Each range has its number of pages and the time of its last read, in
    /// seconds since 1970. Instead of the time, -1 means that the pages were never read, and -2 that no page of the
    /// range is in use.
    ranges: Vec<(u64, i64)>,
}

const NEVER: i64 = -1;
const UNUSED: i64 = -2;

/// Maximum number of files that are shown.
const MOST_FILES: usize = 500;

/// The page ranges of a database's files, and the number of files left out. If there are more than `most` ranges,
/// adjacent ranges are merged in pairs. A merged range gets the older of the two times; a range without pages in use is
/// ignored for this.
pub(super) fn files(history: &History, database: i64, most: usize) -> Result<(Vec<File>, u64)> {
    let mut files: Vec<File> = Vec::new();
    let (mut count, mut more, mut last) = (0, 0, None);
    history.ranges(database, |range| {
        if files.last().is_none_or(|file| file.id != range.file) {
            if files.len() == MOST_FILES {
                more += u64::from(last != Some(range.file));
                last = Some(range.file);
                return;
            }
            files.push(File { id: range.file, pages: 0, ranges: Vec::new() });
        }
        let Some(file) = files.last_mut() else { return };
        let (first, pages) = (u64::from(range.first), u64::from(range.pages));
        if first < file.pages {
            return;
        }
        let read_at = match &range.read_at {
            _ if range.in_use == 0 => UNUSED,
            Some(at) => time::seconds(at).unwrap_or(NEVER),
            None => NEVER,
        };
        // The history has no facts about the pages between two ranges, so these pages count as never read.
        if first > file.pages {
            count += file.push(first - file.pages, NEVER);
        }
        count += file.push(pages, read_at);
        if count > most.max(2 * MOST_FILES) {
            files.iter_mut().for_each(File::halve);
            count = files.iter().map(|file| file.ranges.len()).sum();
        }
    })?;
    Ok((files, more))
}

impl File {
    /// Appends pages that were last read at `read_at`. Returns 1 if they become a new range, or 0 if they extend the
    /// last range.
    fn push(&mut self, pages: u64, read_at: i64) -> usize {
        self.pages += pages;
        match self.ranges.last_mut() {
            Some((known, at)) if *at == read_at => {
                *known += pages;
                0
            }
            _ => {
                self.ranges.push((pages, read_at));
                1
            }
        }
    }

    fn halve(&mut self) {
        let older = |one: i64, other: i64| match (one, other) {
            (UNUSED, at) | (at, UNUSED) => at,
            (one, other) => one.min(other),
        };
        let ranges = std::mem::take(&mut self.ranges);
        self.pages = 0;
        for pair in ranges.chunks(2) {
            let pages = pair.iter().map(|(pages, _)| pages).sum();
            self.push(pages, pair.iter().map(|(_, at)| *at).fold(UNUSED, older));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_of_several_ranges_is_as_old_as_the_oldest_in_use() {
        let mut file = File { id: 1, pages: 0, ranges: Vec::new() };
        for (pages, at) in [(8, 50), (8, 40), (8, UNUSED), (8, 60), (8, 70), (8, NEVER), (4, 80)] {
            file.push(pages, at);
        }
        file.halve();
        assert_eq!(file.ranges, [(16, 40), (16, 60), (16, NEVER), (4, 80)]);
        assert_eq!(file.pages, 52);
        assert_eq!(file.push(4, 80), 0);
        assert_eq!(file.ranges.last(), Some(&(8, 80)));
    }
}
