//! The parts of the survey that a process needs to sweep ranges of files: the facts common to all ranges, and the maps
//! of each range.

use findings::FileRange;
use format::AllocUnitId;
use format::allocation::INTERVAL_PAGES;
use source::PageSource;
use sums::wire::{Input, Output, SumsError, Wire, wire};

use super::Survey;
use super::claims::{Interval, Intervals};
use super::maps::{FileMap, pages_of};
use crate::basis::units::{UnitIndex, Units};

wire!(Interval { unit, start, page });

impl Survey {
    /// Writes the facts that are common to all ranges.
    pub(crate) fn write_common(&self, units: &Units, to: &mut Output<'_>) -> Result<(), SumsError> {
        let strays: Vec<i64> = units.strays().map(|id| id.0.cast_signed()).collect();
        strays.write(to)?;
        let with_pages = (0..).zip(&self.iam_pages).filter(|(_, pages)| **pages > 0);
        let iam_pages: Vec<(UnitIndex, u64)> = with_pages.map(|(unit, pages)| (unit, *pages)).collect();
        iam_pages.write(to)?;
        self.broken_chains.write(to)?;
        self.partial_units.write(to)?;
        self.sharing.write(to)?;
        self.files.write(to)
    }

    /// Reads the output of [`Self::write_common`] in a process that has read the same catalog. Adds to `units` the
    /// units that only the maps name.
    pub(crate) fn read_common(
        source: &dyn PageSource,
        units: &mut Units,
        from: &mut Input<'_>,
    ) -> Result<Self, SumsError> {
        for id in Vec::<i64>::read(from)? {
            let next = units.list().len() as UnitIndex;
            if units.index_of_iam(AllocUnitId(id.cast_unsigned())) != Some(next) {
                return Err(from.damaged("a unit"));
            }
        }
        from.units = units.list().len();
        let mut iam_pages = vec![0; from.units];
        for (unit, pages) in Vec::<(UnitIndex, u64)>::read(from)? {
            *iam_pages.get_mut(unit as usize).ok_or_else(|| from.damaged("the ordinal of a unit"))? = pages;
        }
        let (broken_chains, partial_units, sharing) = Wire::read(from)?;
        let files = Vec::<FileMap>::read(from)?;
        // If one of these file sizes were too small, the pages beyond it would count as free, and no check would
        // notice.
        let sizes = files.iter().map(|file| (file.file_id, file.pages));
        if !sizes.eq(source.files().iter().map(|file| (file.file_id, pages_of(file)))) {
            return Err(from.damaged("the files or their sizes"));
        }
        Ok(Self {
            files,
            iam_pages,
            broken_chains,
            partial_units,
            sharing,
            intervals: Intervals::default(),
            unread: Vec::new(),
            totals: Vec::new(),
        })
    }

    /// Writes the maps of a range.
    pub(crate) fn write_stretch(&self, range: FileRange, to: &mut Output<'_>) -> Result<(), SumsError> {
        let Some(file) = self.file(range.file_id).filter(|file| file.has_stretch(range)) else { return Ok(()) };
        file.write_stretch(range, to)?;
        self.unread.iter().filter(|page| range.contains(**page)).copied().collect::<Vec<_>>().write(to)?;
        // If several units claim an extent, the owner of a page is determined with the IAM pages of these units. So the
        // addresses of these IAM pages are written too.
        let intervals = match file.has_shared(range) {
            true => self.intervals.within(FileRange {
                first: range.first - range.first % INTERVAL_PAGES,
                pages: range.pages + range.first % INTERVAL_PAGES,
                ..range
            }),
            false => Vec::new(),
        };
        intervals.write(to)
    }

    /// Reads the output of [`Self::write_stretch`]. Its maps replace the maps of any other range.
    pub(crate) fn read_stretch(&mut self, range: FileRange, from: &mut Input<'_>) -> Result<(), SumsError> {
        self.files.iter_mut().for_each(FileMap::forget_maps);
        let file = self.files.iter_mut().find(|file| file.file_id == range.file_id && file.has_stretch(range));
        let file = file.ok_or_else(|| from.damaged("the stretch"))?;
        file.read_stretch(range, from)?;
        self.unread = Wire::read(from)?;
        self.intervals = Intervals::new(Wire::read(from)?);
        Ok(())
    }
}
