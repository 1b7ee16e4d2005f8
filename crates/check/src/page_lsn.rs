//! Pages from after the last checkpoint: in a database that was shut down cleanly, no page was changed after the checkpoint that
//! the boot page names (docs/format/boot-and-file-headers.md#boot-page). A page that was is of another time than the boot page:
//! one of them is a copy from before or after, or a write to the boot page was lost.

use catalog::Database;
use format::Lsn;

use crate::context::Context;
use crate::finding::Finding;
use crate::outcome::Results;
use crate::page_check::{PageCheck, SoundPage};
use crate::registry;
use crate::tallies::Tallies;
use crate::units::{Unit, UnitIndex};

/// Internal version of SQL Server 2019, from which on the clean shutdown bit alone is no proof
/// (docs/format/boot-and-file-headers.md#status-bits).
const VERSION_2019: u16 = 904;

/// The checkpoint that no page may be from after; the default is that of a database of which none is known.
#[derive(Default)]
pub(crate) struct LastCheckpoint(Option<Lsn>);

impl LastCheckpoint {
    /// That of a database at rest, of a release whose clean shutdown bit is a proof; a backup has pages from after its
    /// checkpoint.
    pub(crate) fn of(database: &Database, is_backup: bool) -> Self {
        let is_known = |boot: &&catalog::Boot| !is_backup && boot.clean_shutdown() && boot.version < VERSION_2019;
        Self(database.boot.as_ref().filter(is_known).map(|boot| boot.checkpoint_lsn))
    }
}

impl PageCheck for LastCheckpoint {
    type Sums = ();
    type Scratch = ();

    fn sums(&self, _units: usize) {}

    fn wants(&self, _context: &Context<'_>, _unit: &Unit) -> bool {
        self.0.is_some()
    }

    fn page(&self, _: &Context<'_>, sound: &SoundPage<'_>, _: (&mut (), &mut ()), findings: &mut Vec<Finding>) {
        let lsn = sound.page.header().lsn();
        if let Some(checkpoint) = self.0.filter(|checkpoint| lsn > *checkpoint) {
            let finding = Finding::new(&registry::PAGE_AFTER_CHECKPOINT).owner(sound.unit.owner).page(sound.id);
            findings.push(finding.text_value("lsn", lsn.to_string()).text_value("checkpoint", checkpoint.to_string()));
        }
    }

    fn settle(&self, _: &Context<'_>, _: &[UnitIndex], _: &mut Tallies, (): &mut (), _: &mut Results<'_>) {}
}
