//! Recognizes a data file by its other pages if its first pages are overwritten, as by ransomware. Each page of a data
//! file has its own page number in its header, so a few pages at different places prove which file they belong to.

use std::collections::{BTreeMap, BTreeSet};

use format::protection::{self, undo_torn_bits};
use format::{PAGE_BYTES, Page, PageBytes, PageId};

use crate::positioned::{ReadAt, read_fully_at};

/// The least number of pages that must be at their places.
const LEAST_PAGES: usize = 3;
/// Number of pages to look at that are spread over the file, for pages in their places. All pages of a file with at most
/// [`SMALL`] pages are looked at.
const SPREAD: u64 = 512;
const SMALL: u64 = 4096;
/// Number of pages to look at that are evenly spread over the file, for pages at other places. The same number is enough for
/// the places that double their distance from the start: they cover files of up to 16 TB, of which only the beginning may
/// be in use.
const EVENLY: u64 = 32;
/// The distance of two neighboring places is not a multiple of the same number everywhere, because every n-th block of the
/// file may be overwritten.
const UNEVENLY: u64 = 37;
/// The number of places, evenly spread, at which [`phases`] looks: an image may have pages in a few places only, and is
/// read as a whole afterwards.
const EVENLY_FOR_PHASES: u64 = 512;
/// The most phases of a file.
const MOST_PHASES: usize = 4;
/// The version of all page headers, and the first byte of a page.
const HEADER_VERSION: u8 = 1;

/// What the pages of a file say about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Remains {
    /// Pages are at their places in a data file with this ID.
    InPlace(u16),
    /// Pages are at other places: each of them is this number of bytes behind its place in a data file.
    Moved {
        /// The file ID in the pages.
        file_id: u16,
        /// The distance in bytes. It is negative if the beginning of the file is missing.
        by: i64,
    },
    /// Too few places have pages.
    Nothing,
}

impl Remains {
    /// Looks at places of a file of `length` bytes. Places that cannot be read count as places without a page.
    pub(crate) fn of(file: &dyn ReadAt, length: u64) -> Self {
        let all = match length / PAGE_BYTES as u64 {
            pages @ 0..=SMALL => (0..pages).collect(),
            _ => places(length, SPREAD),
        };
        in_place(file, &all).or_else(|| moved(file, &places(length, EVENLY))).unwrap_or(Self::Nothing)
    }
}

/// Places of a file of `length` bytes, counted in pages: `evenly` places that are about evenly spread, and those that
/// double their distance from the start.
fn places(length: u64, evenly: u64) -> BTreeSet<u64> {
    let pages = length / PAGE_BYTES as u64;
    let spread = (0..evenly).map(|number| pages.saturating_mul(number) / evenly + number * number % UNEVENLY);
    let doubled = (3..=31).map(|exponent| 1u64 << exponent);
    spread.chain(doubled).filter(|place| *place < pages).collect()
}

/// The offsets within a sector at which pages begin at some places of a file of `length` bytes, in ascending order. 0 is
/// always one of them, and there are at most [`MOST_PHASES`].
pub(crate) fn phases(file: &dyn ReadAt, length: u64, sector: usize) -> Vec<usize> {
    let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
    let places = places(length, EVENLY_FOR_PHASES);
    for (at, _) in firsts_of_two(file, &places) {
        *counts.entry((at % sector as u64) as usize).or_default() += 1;
    }
    let mut others: Vec<(usize, u32)> = counts.into_iter().filter(|(phase, _)| *phase != 0).collect();
    others.sort_by_key(|(phase, count)| (std::cmp::Reverse(*count), *phase));
    let mut phases: Vec<usize> = others.into_iter().take(MOST_PHASES - 1).map(|(phase, _)| phase).collect();
    phases.push(0);
    phases.sort_unstable();
    phases
}

/// The file whose pages are at their places, if most of them name the same file.
fn in_place(file: &dyn ReadAt, places: &BTreeSet<u64>) -> Option<Remains> {
    let mut buffer = [0; PAGE_BYTES];
    let mut found = Vec::new();
    for &place in places {
        let is_read = read_fully_at(file, &mut buffer, place * PAGE_BYTES as u64).is_ok_and(|read| read == PAGE_BYTES);
        found.extend(is_read.then(|| page_id(&buffer)).flatten().filter(|id| u64::from(id.page) == place));
    }
    let pages_of = |file: u16| found.iter().filter(|id| id.file == file).count();
    let most = found.iter().map(|id| id.file).max_by_key(|file| pages_of(*file))?;
    // A single page may name another file, because it is damaged or because it was written to the wrong place.
    let is_clear = pages_of(most) >= LEAST_PAGES && pages_of(most) * 2 > found.len();
    is_clear.then_some(Remains::InPlace(most))
}

/// The distance of the pages from their places, if it is the same at enough places.
fn moved(file: &dyn ReadAt, places: &BTreeSet<u64>) -> Option<Remains> {
    let mut found = Vec::new();
    for (at, id) in firsts_of_two(file, places) {
        let by = at.cast_signed() - i64::from(id.page) * PAGE_BYTES as i64;
        found.push((id.file, by));
        let same = found.iter().filter(|other| **other == (id.file, by)).count();
        if same >= LEAST_PAGES && by != 0 {
            return Some(Remains::Moved { file_id: id.file, by });
        }
    }
    None
}

/// The first page at or after each of these places, with its offset in the file, if another page follows it.
fn firsts_of_two(file: &dyn ReadAt, places: &BTreeSet<u64>) -> impl Iterator<Item = (u64, PageId)> {
    // Two whole pages begin in the first page of the buffer, or at its end.
    let mut buffer = vec![0; 3 * PAGE_BYTES];
    places.iter().filter_map(move |&place| {
        let at = place * PAGE_BYTES as u64;
        let read = read_fully_at(file, &mut buffer, at).unwrap_or_default();
        let bytes = buffer.get(..read).unwrap_or_default();
        (0..PAGE_BYTES).find_map(|offset| Some((at + offset as u64, first_of_two(bytes, offset)?)))
    })
}

/// The page at `offset`, if the next page follows it. Most offsets have no page: they are excluded by the page numbers,
/// before a checksum is computed.
pub(crate) fn first_of_two(bytes: &[u8], offset: usize) -> Option<PageId> {
    let bytes = bytes.get(offset..).filter(|bytes| bytes.first() == Some(&HEADER_VERSION))?;
    let first: &PageBytes = bytes.first_chunk()?;
    let second: &PageBytes = bytes.get(PAGE_BYTES..)?.first_chunk()?;
    let follows = |first: PageId, second: PageId| {
        first.file == second.file && first.page.checked_add(1).is_some_and(|next| next == second.page)
    };
    // The bits of torn page protection are not in the header.
    if !follows(Page::new(first).header().page_id(), Page::new(second).header().page_id()) {
        return None;
    }
    page_id(second).and(page_id(first))
}

/// The ID of an intact page; `None` if the bytes are no page.
fn page_id(bytes: &PageBytes) -> Option<PageId> {
    if bytes.first() != Some(&HEADER_VERSION) || protection::verify(bytes).is_err() {
        return None;
    }
    let mut undone = *bytes;
    undo_torn_bits(&mut undone);
    let header = Page::new(&undone).header();
    let id = header.page_id();
    (header.kind().is_some() && id.file != 0).then_some(id)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    struct Bytes(Vec<u8>);

    impl ReadAt for Bytes {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let rest = self.0.get(offset as usize..).unwrap_or_default();
            let length = rest.len().min(buffer.len());
            buffer[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        }
    }

    fn of(bytes: Vec<u8>) -> Remains {
        let length = bytes.len() as u64;
        Remains::of(&Bytes(bytes), length)
    }

    /// The first data file of a lab database.
    fn sample() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let written = lab::write(&lab::orders::orders(lab::Version::V904, 5, 0), folder.path()).unwrap();
        std::fs::read(&written.files[0]).unwrap()
    }

    #[test]
    fn a_file_is_known_by_its_last_quarter() {
        let mut bytes = sample();
        let pages = bytes.len() / PAGE_BYTES;
        bytes[..pages / 4 * PAGE_BYTES].fill(0xA7);
        assert_eq!(of(bytes.clone()), Remains::InPlace(1));
        bytes[..(pages - 1) * PAGE_BYTES].fill(0);
        assert_eq!(of(bytes), Remains::Nothing, "one page is no evidence");
    }

    #[test]
    fn a_file_is_known_although_every_nth_block_is_overwritten() {
        // A file with more pages than are looked at one by one.
        let page = |number: u32| {
            let mut bytes = [0; PAGE_BYTES];
            (bytes[0], bytes[1], bytes[36]) = (HEADER_VERSION, 1, 1);
            bytes[32..36].copy_from_slice(&number.to_le_bytes());
            format::protection::seal(&mut bytes);
            bytes
        };
        let sound: Vec<[u8; PAGE_BYTES]> = (0..SMALL as u32 * 2).map(page).collect();
        for every in [2, 3, 8, 16] {
            let hurt = |at: usize| (at / 8).is_multiple_of(every);
            let bytes = sound.iter().enumerate().map(|(at, bytes)| if hurt(at) { [0xA7; PAGE_BYTES] } else { *bytes });
            assert_eq!(of(bytes.collect::<Vec<_>>().concat()), Remains::InPlace(1), "{every}");
        }
    }

    #[test]
    fn one_page_that_names_another_file_decides_nothing() {
        let mut bytes = sample();
        bytes[..128 * PAGE_BYTES].fill(0);
        let last: &mut PageBytes = bytes[200 * PAGE_BYTES..].first_chunk_mut().unwrap();
        last[36] = 2;
        format::protection::seal(last);
        assert_eq!(of(bytes), Remains::InPlace(1));
    }

    #[test]
    fn moved_pages_are_known_with_their_distance() {
        let sound = sample();
        for by in [1usize, 512, 836, PAGE_BYTES, 100_001] {
            assert_eq!(of([vec![7; by], sound.clone()].concat()), Remains::Moved { file_id: 1, by: by as i64 }, "{by}");
            assert_eq!(of(sound[by..].to_vec()), Remains::Moved { file_id: 1, by: -(by as i64) }, "{by}");
        }
    }

    #[test]
    fn phases_are_those_of_the_pages_in_a_file() {
        let sound = sample();
        let of = |bytes: Vec<u8>| phases(&Bytes(bytes.clone()), bytes.len() as u64, 512);
        assert_eq!(of(sound.clone()), [0]);
        assert_eq!(of([vec![7; 100_001], sound.clone()].concat()), [0, 161]);
        assert_eq!(of(sound[1..].to_vec()), [0, 511]);
        assert_eq!(of([&sound[..], &[7; 3], &sound, &[7; 1024 + 8], &sound].concat()), [0, 3, 11]);
        assert_eq!(of(vec![1; 1 << 20]), [0]);
    }

    #[test]
    fn other_files_have_no_remains() {
        for bytes in [vec![], vec![1; 1 << 20], vec![0; 1 << 20], (0..1u32 << 18).flat_map(u32::to_le_bytes).collect()]
        {
            assert_eq!(of(bytes), Remains::Nothing);
        }
    }
}
