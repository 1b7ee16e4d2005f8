//! Encodes the maps of a range of a file, for a process that does not read the allocation pages itself.

use findings::FileRange;
use format::allocation::{EXTENT_PAGES, INTERVAL_PAGES, PFS_PAGES};
use sums::spill::Paged;
use sums::wire::{Input, Output, SumsError, Wire, wire};

use super::{FileMap, Single};

wire!(Single { unit, is_iam });

/// Writes the bytes of a map from `number` on, a few at a time.
fn write_bytes(map: &Paged<u8>, number: u32, length: usize, to: &mut Output<'_>) -> Result<(), SumsError> {
    let mut written = Ok(());
    map.any(number as usize..number as usize + length, |piece| {
        written = to.put(piece);
        written.is_err()
    });
    written
}

/// The number of entries in each map of a range.
struct Lengths {
    pfs: usize,
    pfs_pages: usize,
    extents: usize,
    intervals: usize,
}

impl Lengths {
    fn of(range: FileRange) -> Self {
        let (first, end) = (range.first as usize, range.end() as usize);
        let entries = |pages: u32| end.div_ceil(pages as usize) - first / pages as usize;
        let extents = entries(EXTENT_PAGES);
        let pfs = extents * EXTENT_PAGES as usize;
        Self { pfs, pfs_pages: entries(PFS_PAGES), extents, intervals: entries(INTERVAL_PAGES) }
    }
}

impl FileMap {
    /// Drops the maps of all pages. The facts about the whole file remain.
    pub(in crate::survey) fn forget_maps(&mut self) {
        let Self { file_id, pages, lost_from_header, config, .. } = *self;
        *self = Self { file_id, pages, lost_from_header, config, ..Self::default() };
    }

    /// Whether a range is inside the file and begins at the start of an extent, so that its maps can be written.
    pub(in crate::survey) fn has_stretch(&self, range: FileRange) -> bool {
        let is_inside = range.file_id == self.file_id && range.pages > 0 && range.end() <= self.pages;
        is_inside && range.first.is_multiple_of(EXTENT_PAGES)
    }

    /// Whether a range contains an extent that several units claim.
    pub(in crate::survey) fn has_shared(&self, range: FileRange) -> bool {
        (range.first / EXTENT_PAGES..range.end().div_ceil(EXTENT_PAGES)).any(|extent| self.is_shared(extent))
    }

    /// Writes the maps of a range of the file.
    pub(in crate::survey) fn write_stretch(&self, range: FileRange, to: &mut Output<'_>) -> Result<(), SumsError> {
        let lengths = Lengths::of(range);
        let flags = |map: &[bool], number: u32, length: usize| -> Vec<u8> {
            map.iter().skip(number as usize).take(length).map(|flag| u8::from(*flag)).collect()
        };
        write_bytes(&self.pfs, range.first, lengths.pfs, to)?;
        to.put(&flags(&self.pfs_is_sound, range.first / PFS_PAGES, lengths.pfs_pages))?;
        write_bytes(&self.extents, range.first / EXTENT_PAGES, lengths.extents, to)?;
        to.put(&flags(&self.gam_is_sound, range.first / INTERVAL_PAGES, lengths.intervals))?;
        let first = (range.first / EXTENT_PAGES) as usize;
        let mut owners = self.owners.values(first..first + lengths.extents).peekable();
        while let Some(owner) = owners.next() {
            let mut count = 1_u64;
            while owners.next_if_eq(&owner).is_some() {
                count += 1;
            }
            (count, owner).write(to)?;
        }
        // A page beyond the end of the file may be claimed as a single page. So the search goes to the end of the last
        // extent.
        let end = range.end().checked_next_multiple_of(EXTENT_PAGES).unwrap_or(u32::MAX);
        let singles: Vec<(u32, Single)> =
            self.singles.range(range.first..end).map(|(page, single)| (*page, *single)).collect();
        singles.write(to)
    }

    /// Reads the output of [`Self::write_stretch`].
    pub(in crate::survey) fn read_stretch(&mut self, range: FileRange, from: &mut Input<'_>) -> Result<(), SumsError> {
        let lengths = Lengths::of(range);
        let mut piece = |length: usize| {
            // No capacity is reserved: damaged input could declare a huge length.
            let mut map = Vec::new();
            from.take(length, |piece| map.extend_from_slice(piece)).map(|()| map)
        };
        let pfs = piece(lengths.pfs)?;
        let pfs_is_sound = piece(lengths.pfs_pages)?;
        let extents = piece(lengths.extents)?;
        let gam_is_sound = piece(lengths.intervals)?;
        let flags = |map: Vec<u8>| map.into_iter().map(|flag| flag != 0).collect();
        let mut owners = Vec::new();
        while owners.len() < lengths.extents {
            let (count, owner): (u64, u32) = Wire::read(from)?;
            if count == 0 || count > (lengths.extents - owners.len()) as u64 || owner as usize > from.units {
                return Err(from.damaged("the owners of extents"));
            }
            owners.resize(owners.len() + count as usize, owner);
        }
        let singles = Vec::<(u32, Single)>::read(from)?;
        if singles.iter().any(|(_, single)| single.unit as usize >= from.units) {
            return Err(from.damaged("the owner of a page"));
        }
        (self.first, self.singles) = (range.first, singles.into_iter().collect());
        (self.pfs, self.pfs_is_sound) = (pfs.into(), flags(pfs_is_sound));
        (self.extents, self.gam_is_sound, self.owners) = (extents.into(), flags(gam_is_sound), owners.into());
        Ok(())
    }
}

/// Encodes only the facts about the whole file. The maps are encoded range by range with `write_stretch`.
impl Wire for FileMap {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        ((self.file_id, self.pages), self.lost_from_header, self.config).write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let ((file_id, pages), lost_from_header, config) = Wire::read(from)?;
        Ok(Self { file_id, pages, lost_from_header, config, ..Self::default() })
    }
}
