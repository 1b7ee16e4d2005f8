//! Counts pages that were changed after the last checkpoint. In a database that was shut down cleanly, no page is newer
//! than the checkpoint that the boot page names (docs/format/boot-and-file-headers.md#boot-page). But the clean
//! shutdown bit may also be set in a file that was copied while a server used it. So a newer page is no proof of
//! damage; it only shows that the files may be from different points in time.

use catalog::Database;
use format::Lsn;
use source::PageSource;

use crate::context::Context;
use crate::finding::Finding;
use crate::outcome::Results;
use crate::page_check::{PageCheck, SoundPage};
use crate::registry::limits;
use crate::spill::TempStore;
use crate::sums::CheckSums;
use crate::tallies::Tallies;
use crate::units::{Unit, UnitIndex};
use crate::wire::wire;

/// The last checkpoint, if newer pages are counted. The default is `None`, for a database that was not shut down
/// cleanly or whose checkpoint is unknown.
#[derive(Default)]
pub(crate) struct LastCheckpoint(Option<Lsn>);

/// Pages that were changed after the checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Newer {
    pages: u64,
}

wire! { Newer { pages } }

impl CheckSums for Newer {
    fn merge(&mut self, other: Self) {
        self.pages += other.pages;
    }

    fn facts(&self, _: &TempStore) -> impl std::fmt::Debug + '_ {
        self
    }
}

impl LastCheckpoint {
    /// Returns the last checkpoint of a database that was shut down cleanly. The result is `None` for a backup, because
    /// a backup contains pages that were changed after its checkpoint. It is also `None` for a snapshot, because a
    /// snapshot records itself which pages of its source database are newer.
    pub(crate) fn of(database: &Database, source: &dyn PageSource) -> Self {
        let is_at_rest = source.backup().is_none() && source.snapshot().is_none();
        let is_known = |boot: &&catalog::Boot| is_at_rest && boot.clean_shutdown();
        Self(database.boot.as_ref().filter(is_known).map(|boot| boot.checkpoint_lsn))
    }
}

impl PageCheck for LastCheckpoint {
    type Sums = Newer;
    type Scratch = ();

    fn sums(&self, _units: usize) -> Newer {
        Newer::default()
    }

    fn wants(&self, _context: &Context<'_>, _unit: &Unit) -> bool {
        self.0.is_some()
    }

    fn page(&self, _: &Context<'_>, sound: &SoundPage<'_>, (sums, ()): (&mut Newer, &mut ()), _: &mut Vec<Finding>) {
        sums.pages += u64::from(self.0.is_some_and(|checkpoint| sound.page.header().lsn() > checkpoint));
    }

    fn settle(&self, _: &Context<'_>, _: &[UnitIndex], _: &mut Tallies, sums: &mut Newer, to: &mut Results<'_>) {
        if sums.pages > 0 {
            to.coverage.note(&limits::PAGES_AFTER_CHECKPOINT, "database", sums.pages);
        }
    }
}
