//! Which extent an extent of a backup is, according to the headers of its pages. Extents that were allocated and not
//! written yet hold old pages, which name other extents.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::mem::offset_of;

use format::allocation::EXTENT_PAGES;
use format::bytes::{u16_at, u32_at};
use format::page::PAGE_BYTES;
use format::{PageHeader, PageType};

use super::media::Media;

/// Bytes of a page that identify it.
const ID_BYTES: usize = 40;
const ID_AT: usize = offset_of!(PageHeader, page_id);
const TYPE_AT: usize = offset_of!(PageHeader, page_type);
/// First bytes of the pages that pad the end of a region.
const FILLER: [u8; 2] = [1, 0x65];

/// Removes the names of extents that break the ascending order of a region: as few as possible. Such names are those of
/// old pages in extents that were allocated and not written yet.
pub(crate) fn keep_ascending(frames: &mut [Identity]) {
    let named = |identity: &Identity| match identity {
        Identity::Named(index, extent) => Some((*index, *extent)),
        _ => None,
    };
    if frames.iter().filter_map(named).is_sorted_by(|a, b| a < b) {
        return;
    }
    // The longest ascending subsequence: by length, the frame with the smallest name that ends one; and each frame's
    // predecessor.
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

/// The extent that its pages name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Identity {
    /// Index of the file, and extent.
    Named(u16, u32),
    /// Nothing.
    Nameless,
    /// The pages cannot be read.
    Unreadable,
    /// Padding at the end of a region.
    Filler,
}

/// The names found in the pages of an extent.
pub(crate) struct Names {
    /// Index of the file, and extent; each once.
    pub(crate) found: Vec<(u16, u32)>,
    is_unreadable: bool,
    pub(crate) is_filler: bool,
}

impl Names {
    /// If there are several names, one is the extent's own and the others come from old pages: the first after the
    /// extent `before` counts.
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

/// The data files of a set, in their order in a region.
#[derive(Debug, Default)]
pub(crate) struct SetFiles {
    /// File ids and sizes in extents. If two files have one id, which no server writes, the first.
    in_order: Vec<(u16, u32)>,
    /// File ids, ascending, and indexes in `in_order`.
    by_id: Vec<(u16, u16)>,
}

impl SetFiles {
    /// By file id and size in extents.
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

    /// The id of the file with this index.
    pub(crate) fn id(&self, index: u16) -> Option<u16> {
        self.in_order.get(usize::from(index)).map(|(file_id, _)| *file_id)
    }

    /// The index of the file with this id.
    pub(crate) fn index(&self, file_id: u16) -> Option<u16> {
        let at = self.by_id.binary_search_by_key(&file_id, |(id, _)| *id).ok()?;
        self.by_id.get(at).map(|(_, index)| *index)
    }

    /// The index of the file with this id, if it can have this extent.
    fn index_with(&self, file_id: u16, extent: u32) -> Option<u16> {
        let index = self.index(file_id)?;
        self.in_order.get(usize::from(index)).filter(|(_, extents)| extent < *extents).map(|_| index)
    }
}

/// The names in the pages of the extent at `at` that can be extents of `files`.
pub(crate) fn names(media: &Media, at: u64, files: &SetFiles) -> io::Result<Names> {
    let mut names = Names { found: Vec::new(), is_unreadable: false, is_filler: true };
    for index in 0..EXTENT_PAGES {
        let mut bytes = [0; ID_BYTES];
        match media.read_at(&mut bytes, at + u64::from(index) * PAGE_BYTES as u64) {
            Ok(read) => names.is_unreadable |= read < ID_BYTES,
            // Damage to the container: these pages have no names.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => names.is_unreadable = true,
            Err(error) => return Err(error),
        }
        names.is_filler &= bytes.starts_with(&FILLER);
        let (Some(page), Some(id)) = (u32_at(&bytes, ID_AT), u16_at(&bytes, ID_AT + 4)) else { continue };
        let is_page = bytes[0] == 1 && PageType::from_byte(bytes[TYPE_AT]).is_some() && page % EXTENT_PAGES == index;
        let extent = page / EXTENT_PAGES;
        if let Some(file) = files.index_with(id, extent).filter(|_| is_page)
            && !names.found.contains(&(file, extent))
        {
            names.found.push((file, extent));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

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
