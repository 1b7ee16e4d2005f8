//! Identifies the extents of a backup by the page IDs in their page headers, here called names. Extents that were
//! allocated but not yet written contain old pages, which name other extents.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::mem::offset_of;

use format::allocation::EXTENT_PAGES;
use format::bytes::{u16_at, u32_at};
use format::page::PAGE_BYTES;
use format::{PageHeader, PageType};

use super::media::Media;
use super::places::FRAME_BYTES;
use super::sets::Region;

/// The number of bytes to read of a page in order to identify it: the start of its header.
const ID_BYTES: usize = 40;
const ID_AT: usize = offset_of!(PageHeader, page_id);
const TYPE_AT: usize = offset_of!(PageHeader, page_type);
/// Bytes per read when finding the names of a region's extents.
const READ_BYTES: u64 = 16 * FRAME_BYTES;
/// The first bytes of the filler pages at the end of a region.
const FILLER: [u8; 2] = [1, 0x65];

/// Removes as few names as possible so that the remaining names of a region are in ascending order. The removed names
/// come from old pages in extents that were allocated but not yet written.
pub(crate) fn keep_ascending(frames: &mut [Identity]) {
    let named = |identity: &Identity| match identity {
        Identity::Named(index, extent) => Some((*index, *extent)),
        _ => None,
    };
    if frames.iter().filter_map(named).is_sorted_by(|a, b| a < b) {
        return;
    }
    // Finds the longest ascending subsequence. `ends` holds, for each length, the frame with the smallest name that
    // ends a subsequence of that length; `previous` holds the predecessor of each frame.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = vec![usize::MAX; frames.len()];
    for (at, name) in frames.iter().enumerate().filter_map(|(at, frame)| Some((at, named(frame)?))) {
        let length = ends.partition_point(|&end| frames.get(end).and_then(named) < Some(name));
        if let (Some(slot), Some(end)) = (previous.get_mut(at), length.checked_sub(1).and_then(|at| ends.get(at))) {
            *slot = *end;
        }
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut kept = vec![false; frames.len()];
    let mut at = ends.last().copied();
    while let Some(flag) = at.and_then(|at| kept.get_mut(at)) {
        *flag = true;
        at = at.and_then(|at| previous.get(at).copied());
    }
    for (frame, kept) in frames.iter_mut().zip(kept) {
        if !kept && named(frame).is_some() {
            *frame = Identity::Nameless;
        }
    }
}

/// The identity of an extent, according to its pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Identity {
    /// Index of the file, and number of the extent.
    Named(u16, u32),
    /// The pages name no extent.
    Nameless,
    /// The pages cannot be read.
    Unreadable,
    /// The extent is padding at the end of a region.
    Filler,
}

/// The names found in the pages of one extent. A name is the extent to which a page ID belongs.
pub(crate) struct Names {
    /// Each distinct name: index of the file, and number of the extent.
    pub(crate) found: Vec<(u16, u32)>,
    is_unreadable: bool,
    pub(crate) is_filler: bool,
}

impl Names {
    /// Determines the identity of the extent; `before` is the name of the previous extent. The name of the extent is
    /// the smallest of its names that is greater than `before`. If no name is greater, and the extent has only one
    /// name, this name is used. Other names come from old pages.
    pub(crate) fn identity(&self, before: Option<(u16, u32)>) -> Identity {
        let in_order = self.found.iter().filter(|name| before.is_none_or(|before| **name > before));
        match (in_order.min(), self.found.as_slice()) {
            (Some(&(file, extent)), _) => Identity::Named(file, extent),
            (None, &[(file, extent)]) => Identity::Named(file, extent),
            _ if self.is_filler => Identity::Filler,
            _ if self.is_unreadable => Identity::Unreadable,
            _ => Identity::Nameless,
        }
    }
}

/// The data files of a set, in the order in which a region stores them.
#[derive(Debug, Default)]
pub(crate) struct SetFiles {
    /// The ID and size in extents of each file. If two files have the same ID (no server writes such a set), the first
    /// is used.
    in_order: Vec<(u16, u32)>,
    /// The file IDs in ascending order, each with its index in `in_order`.
    by_id: Vec<(u16, u16)>,
}

impl SetFiles {
    /// Lists files that are given by their IDs and sizes in extents.
    pub(crate) fn new(files: impl Iterator<Item = (u16, u32)>) -> Self {
        let mut this = Self::default();
        let mut known = BTreeMap::new();
        for (file_id, extents) in files {
            let index = u16::try_from(this.in_order.len()).unwrap_or(u16::MAX);
            if let Entry::Vacant(entry) = known.entry(file_id) {
                entry.insert(index);
                this.in_order.push((file_id, extents));
            }
        }
        this.by_id = known.into_iter().collect();
        this
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = u16> + '_ {
        self.in_order.iter().map(|(file_id, _)| *file_id)
    }

    pub(crate) fn len(&self) -> usize {
        self.in_order.len()
    }

    /// The ID of the file with this index.
    pub(crate) fn id(&self, index: u16) -> Option<u16> {
        self.in_order.get(usize::from(index)).map(|(file_id, _)| *file_id)
    }

    /// The index of the file with this ID.
    pub(crate) fn index(&self, file_id: u16) -> Option<u16> {
        let at = self.by_id.binary_search_by_key(&file_id, |(id, _)| *id).ok()?;
        self.by_id.get(at).map(|(_, index)| *index)
    }

    /// Returns the index of the file with this ID; `None` if there is no such file, or if the file is too small to
    /// contain the extent.
    fn index_with(&self, file_id: u16, extent: u32) -> Option<u16> {
        let index = self.index(file_id)?;
        self.in_order.get(usize::from(index)).filter(|(_, extents)| extent < *extents).map(|_| index)
    }
}

impl Names {
    const NONE: Self = Self { found: Vec::new(), is_unreadable: false, is_filler: true };

    /// Adds the page ID in the first bytes of a page as a name, if the page belongs to an extent of one of `files`.
    fn add(&mut self, index: u32, bytes: &[u8; ID_BYTES], files: &SetFiles) {
        self.is_filler &= bytes.starts_with(&FILLER);
        let (Some(page), Some(id)) = (u32_at(bytes, ID_AT), u16_at(bytes, ID_AT + 4)) else { return };
        let is_page = bytes[0] == 1 && PageType::from_byte(bytes[TYPE_AT]).is_some() && page % EXTENT_PAGES == index;
        let extent = page / EXTENT_PAGES;
        if let Some(file) = files.index_with(id, extent).filter(|_| is_page)
            && !self.found.contains(&(file, extent))
        {
            self.found.push((file, extent));
        }
    }
}

/// The names in the pages of the extent at tape offset `at`. Names that cannot belong to one of `files` are ignored.
pub(crate) fn names(media: &Media, at: u64, files: &SetFiles) -> io::Result<Names> {
    let mut names = Names::NONE;
    for index in 0..EXTENT_PAGES {
        let mut bytes = [0; ID_BYTES];
        match media.read_at(&mut bytes, at + u64::from(index) * PAGE_BYTES as u64) {
            Ok(read) => names.is_unreadable |= read < ID_BYTES,
            // The container is damaged, so this page has no name.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => names.is_unreadable = true,
            Err(error) => return Err(error),
        }
        names.add(index, &bytes, files);
    }
    Ok(names)
}

/// Finds the names of a region's extents in order, and reads many extents at once. If such a read fails, the page
/// headers in its range are read one by one, so that unreadable bytes between the headers do no harm.
pub(crate) struct NamesOfRegion<'a> {
    media: &'a Media,
    files: &'a SetFiles,
    end: u64,
    /// `extents` holds the extents of the last read; `start` is the tape offset of the first of these extents.
    extents: Vec<u8>,
    start: u64,
    /// The tape offset up to which page headers are read one by one, because a read of many extents failed.
    apart_until: u64,
}

impl<'a> NamesOfRegion<'a> {
    pub(crate) fn new(media: &'a Media, region: Region, files: &'a SetFiles) -> Self {
        let end = region.at.saturating_add(region.length);
        Self { media, files, end, extents: Vec::new(), start: 0, apart_until: 0 }
    }

    /// Number of bytes kept in memory while a region is read.
    pub(crate) fn held_bytes(region: Region) -> usize {
        region.length.min(READ_BYTES) as usize
    }

    /// The names in the extent at tape offset `at`. Extents must be requested in ascending order.
    pub(crate) fn next(&mut self, at: u64) -> io::Result<Names> {
        if self.extent(at).is_none() && at >= self.apart_until {
            self.read(at);
        }
        let Some(extent) = self.extent(at) else { return names(self.media, at, self.files) };
        let mut names = Names::NONE;
        for (index, page) in (0..EXTENT_PAGES).zip(extent.chunks(PAGE_BYTES)) {
            if let Some(bytes) = page.first_chunk() {
                names.add(index, bytes, self.files);
            }
        }
        Ok(names)
    }

    fn extent(&self, at: u64) -> Option<&[u8]> {
        let skipped = usize::try_from(at.checked_sub(self.start)?).ok()?;
        self.extents.get(skipped..)?.get(..FRAME_BYTES as usize)
    }

    /// Reads several complete extents from tape offset `at`.
    fn read(&mut self, at: u64) {
        let left = self.end.saturating_sub(at);
        let wanted = left.min(READ_BYTES) / FRAME_BYTES * FRAME_BYTES;
        self.start = at;
        self.extents.resize(wanted as usize, 0);
        let read = self.media.try_read_at(&mut self.extents, at);
        if read < self.extents.len() {
            self.extents.clear();
            self.apart_until = at.saturating_add(wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SharedFile;
    use crate::backup::room::Room;

    fn named(extents: &[u32]) -> Vec<Identity> {
        extents.iter().map(|&extent| Identity::Named(0, extent)).collect()
    }

    #[test]
    fn old_names_that_break_the_order_are_dropped() {
        let mut frames = named(&[0, 1, 90, 3, 4, 2, 6]);
        keep_ascending(&mut frames);
        let kept: Vec<bool> = frames.iter().map(|frame| matches!(frame, Identity::Named(..))).collect();
        assert_eq!(kept, [true, true, false, true, true, false, true]);
        let mut ordered = named(&[0, 1, 7]);
        ordered.insert(1, Identity::Nameless);
        ordered.push(Identity::Named(1, 0));
        let before = ordered.clone();
        keep_ascending(&mut ordered);
        assert_eq!(ordered, before, "the next file starts again");
    }

    #[test]
    fn a_region_that_is_read_at_once_has_the_names_that_its_pages_have_one_by_one() {
        // The page IDs in the headers belong to the page's own extent, to the next extent, to the first extent, or to
        // no extent of the file. The last extent of the region is incomplete.
        let pages = 37 * EXTENT_PAGES + 3;
        let mut tape = vec![0; 512 + pages as usize * PAGE_BYTES];
        for page in 0..pages {
            let at = 512 + page as usize * PAGE_BYTES;
            let named = [page, page + EXTENT_PAGES, page, page + 1, 7][page as usize % 5];
            tape[at] = 1;
            tape[at + TYPE_AT] = [1, 1, 2, 0x65, 255][page as usize % 7 % 5];
            tape[at + ID_AT..at + ID_AT + 4].copy_from_slice(&named.to_le_bytes());
            tape[at + ID_AT + 4] = 1;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tape");
        std::fs::write(&path, &tape).unwrap();
        let file = SharedFile::open(&path).unwrap();
        let media = Media::open(&path, file, &Room::new(None, 0)).unwrap().unwrap();
        let files = SetFiles::new(std::iter::once((1, 30)));
        // The first pass uses the region as it is in the tape. In the second pass, the region extends three extents
        // beyond the end of the tape.
        for lost in [0, 3 * FRAME_BYTES] {
            let region = Region { at: 512, length: tape.len() as u64 - 512 + lost, checksum: None };
            let mut at_once = NamesOfRegion::new(&media, region, &files);
            for at in (512..512 + region.length).step_by(FRAME_BYTES as usize) {
                let (one, other) = (at_once.next(at).unwrap(), names(&media, at, &files).unwrap());
                assert_eq!(one.found, other.found, "at {at}");
                assert_eq!((one.is_filler, one.is_unreadable), (other.is_filler, other.is_unreadable), "at {at}");
            }
        }
    }

    #[test]
    fn among_several_names_the_next_in_order_counts() {
        let names = |found: &[u32]| Names {
            found: found.iter().map(|&extent| (0, extent)).collect(),
            is_unreadable: false,
            is_filler: false,
        };
        assert_eq!(names(&[909, 36]).identity(Some((0, 35))), Identity::Named(0, 36));
        assert_eq!(names(&[2, 42]).identity(Some((0, 41))), Identity::Named(0, 42));
        assert_eq!(names(&[5, 6]).identity(Some((0, 9))), Identity::Nameless, "none is in order");
        assert_eq!(names(&[5]).identity(Some((0, 9))), Identity::Named(0, 5), "left to the order of the whole region");
        assert_eq!(names(&[]).identity(None), Identity::Nameless);
    }
}
