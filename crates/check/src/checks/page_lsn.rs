//! Counts pages that were changed after the last checkpoint that the boot page names.
//!
//! In a database that was shut down cleanly, no page is newer than this checkpoint
//! (docs/format/boot-and-file-headers.md#boot-page). But the clean shutdown bit may also be set in a file that was copied
//! while a server used it. So a newer page is no proof of damage; it only shows that the files may be from different
//! points in time.
//!
//! If the database was not shut down cleanly and the check reads its files without the changes in the log, newer pages
//! are normal. The log of the time after the checkpoint has the changes that were made to them last, and says which of
//! these changes were committed. Without the log, each of these pages may have half of a transaction.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use catalog::Database;
use findings::registry::limits;
use findings::{Finding, Place};
use format::Lsn;
use source::PageSource;
use sums::spill::TempStore;
use sums::wire::{Input, Output, SumsError, Wire};
use sums::{CheckSums, Merge, PerUnit, sums};

use crate::basis::meaning::Meaning;
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::{Unit, UnitIndex};
use crate::sweep::context::Context;
use crate::sweep::page_check::{PageCheck, SoundPage};
use crate::sweep::warnings;

/// Maximum number of objects with newer pages that are named. The other objects are counted together.
const MOST_NAMED: usize = 100;

/// The last checkpoint, if newer pages are counted. The default is `None`, for a database whose checkpoint is unknown.
#[derive(Default)]
pub(crate) struct LastCheckpoint {
    lsn: Option<Lsn>,
    /// Whether the database was shut down cleanly.
    is_clean: bool,
}

sums! {
    /// The number of pages of each unit that were changed after the checkpoint.
    #[derive(Debug, Default)]
    pub(crate) struct Newer {
        units: PerUnit<u64>,
        /// The last change of any page, so that a later check with another checkpoint can tell whether the counts stand.
        highest: Highest,
    }
}

/// The highest of many LSNs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Highest(Lsn);

impl Merge for Highest {
    fn merge(&mut self, other: Self) {
        self.0 = self.0.max(other.0);
    }
}

impl Wire for Highest {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        self.0.write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        Wire::read(from).map(Self)
    }
}

impl CheckSums for Newer {
    fn facts(&self, _: &TempStore) -> impl std::fmt::Debug + '_ {
        self
    }
}

impl LastCheckpoint {
    /// Returns the last checkpoint of a database that was shut down cleanly, or whose files are read as they are. The
    /// result has no checkpoint for a backup, because a backup contains pages that were changed after its checkpoint. It
    /// also has none for a snapshot, because a snapshot records itself which pages of its source database are newer, and
    /// none for pages from different points in time.
    pub(crate) fn of(database: &Database, source: &dyn PageSource) -> Self {
        let is_at_rest = source.backup().is_none() && source.snapshot().is_none() && source.has_one_moment();
        let Some(boot) = database.boot.as_ref().filter(|_| is_at_rest) else { return Self::default() };
        let is_clean = boot.clean_shutdown();
        let is_counted = is_clean || warnings::is_as_stored(source, database);
        Self { lsn: is_counted.then_some(boot.checkpoint_lsn), is_clean }
    }

    /// Whether no page of these sums is newer than the checkpoint. Sums for which this is true with the checkpoint of
    /// their sweep are also the sums of a sweep with any other checkpoint for which it is true.
    pub(crate) fn has_all(&self, sums: &Newer) -> bool {
        self.lsn.is_none_or(|checkpoint| sums.highest.0 <= checkpoint)
    }
}

impl PageCheck for LastCheckpoint {
    type Sums = Newer;
    type Scratch = ();

    fn sums(&self, units: usize) -> Newer {
        Newer { units: PerUnit::new(units), highest: Highest::default() }
    }

    /// The check notes the highest LSN even if this run has no checkpoint, because a later run may have one.
    fn wants(&self, _context: &Context<'_>, _unit: &Unit) -> bool {
        true
    }

    fn meaning(&self, _: &mut Meaning<'_>) {
        // The checkpoint moves all the time. `has_all` tells whether sums follow from the pages alone.
    }

    fn page(&self, _: &Context<'_>, sound: &SoundPage<'_>, (sums, ()): (&mut Newer, &mut ()), _: &mut Vec<Finding>) {
        let lsn = sound.page.header().lsn();
        sums.highest.merge(Highest(lsn));
        if self.lsn.is_some_and(|checkpoint| lsn > checkpoint)
            && let Some(pages) = sums.units.get_mut(sound.index as usize)
        {
            *pages += 1;
        }
    }

    fn settle(&self, context: &Context<'_>, _: &[UnitIndex], _: &mut Tallies, sums: &mut Newer, to: &mut Results<'_>) {
        let mut objects: BTreeMap<i32, u64> = BTreeMap::new();
        for (unit, pages) in sums.units.touched().filter(|(_, pages)| **pages > 0) {
            let object = u32::try_from(unit).ok().and_then(|unit| Some(context.units.get(unit)?.owner.object_id));
            *objects.entry(object.unwrap_or_default()).or_default() += pages;
        }
        if objects.is_empty() {
            return;
        }
        if self.is_clean {
            to.coverage.note(&limits::PAGES_AFTER_CHECKPOINT, "database", objects.values().sum());
            return;
        }
        let mut objects: Vec<(i32, u64)> = objects.into_iter().collect();
        objects.sort_by_key(|&(object, pages)| (Reverse(pages), object));
        for (number, (object, pages)) in objects.into_iter().enumerate() {
            let place = match object {
                0 => "unknown objects".into(),
                object if number < MOST_NAMED => Place::of(object, context.database.object_name(object)),
                _ => "other objects".into(),
            };
            to.coverage.note(&limits::RECOVERY_NEWER_PAGES, place, pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_with_each_checkpoint_that_is_not_older_than_the_last_change() {
        let lsn = |vlf, block| Lsn { vlf, block, slot: 1 };
        let of = |lsn| Newer { units: PerUnit::new(1), highest: Highest(lsn) };
        let mut sums = of(lsn(5, 10));
        sums.merge(of(lsn(4, 99)));
        let has_all = |checkpoint| LastCheckpoint { lsn: checkpoint, is_clean: true }.has_all(&sums);
        assert_eq!(
            [lsn(5, 10), lsn(6, 0), lsn(5, 9), lsn(4, 99)].map(|lsn| has_all(Some(lsn))),
            [true, true, false, false]
        );
        assert!(has_all(None), "nothing is counted");
    }
}
