//! Counts pages without protection in a database that has page protection enabled. A page receives its checksum when
//! the page is written. So pages that were written before the option was enabled have no checksum
//! (docs/format/checksums-and-torn-pages.md). No check can detect a changed value on these pages.

use catalog::Database;
use findings::Finding;
use findings::registry::limits;
use format::boot::status;
use format::page::page_flags;
use sums::spill::TempStore;
use sums::{CheckSums, sums};

use crate::basis::meaning::Meaning;
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::{Unit, UnitIndex};
use crate::sweep::context::Context;
use crate::sweep::page_check::{PageCheck, SoundPage};

/// Whether pages without protection are reported; by default they are not.
#[derive(Default)]
pub(crate) struct Unprotected(bool);

sums! {
    /// The number of sound pages, and the number of sound pages that have neither a checksum nor torn bits.
    #[derive(Debug, Default)]
    pub(crate) struct Pages {
        all: u64,
        unprotected: u64,
    }
}

impl CheckSums for Pages {
    fn facts(&self, _: &TempStore) -> impl std::fmt::Debug + '_ {
        self
    }
}

impl Unprotected {
    /// Reports pages if the PAGE_VERIFY option of the database is CHECKSUM or TORN_PAGE_DETECTION.
    pub(crate) fn of(database: &Database) -> Self {
        let protects = |boot: &catalog::Boot| boot.status & (status::CHECKSUM | status::TORN_PAGE) != 0;
        Self(database.boot.as_ref().is_some_and(protects))
    }
}

impl PageCheck for Unprotected {
    type Sums = Pages;
    type Scratch = ();

    fn sums(&self, _units: usize) -> Pages {
        Pages::default()
    }

    /// The check counts the pages of every database, so that the counts depend on the pages alone.
    fn wants(&self, _context: &Context<'_>, _unit: &Unit) -> bool {
        true
    }

    fn meaning(&self, _: &mut Meaning<'_>) {}

    fn page(&self, _: &Context<'_>, sound: &SoundPage<'_>, (sums, ()): (&mut Pages, &mut ()), _: &mut Vec<Finding>) {
        let is_protected = sound.page.header().flags.get() & (page_flags::CHECKSUM | page_flags::TORN_BITS) != 0;
        sums.all += 1;
        sums.unprotected += u64::from(!is_protected);
    }

    fn settle(&self, _: &Context<'_>, _: &[UnitIndex], _: &mut Tallies, sums: &mut Pages, to: &mut Results<'_>) {
        if self.0 && sums.unprotected > 0 {
            let limit = limits::PAGES_UNPROTECTED.with(&[&sums.unprotected, &sums.all]);
            to.coverage.note(limit, "database", sums.unprotected);
        }
    }
}
