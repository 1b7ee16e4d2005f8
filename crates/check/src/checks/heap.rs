//! Heaps: forwarded rows and the stubs that point to them (messages 8971, 8972, 8993, 8994). The addresses of stub and
//! row form a pair. Stubs add their pairs to one sum, forwarded rows to another. If the two sums of a heap differ, its
//! pages are read again to find the rows that cause the difference.

mod pinpoint;

use findings::Finding;
use findings::registry::limits;
use format::RecordId;
use format::record::RecordKind;
use sums::hash::Sum;
use sums::spill::TempStore;
use sums::{CheckSums, PerUnit, sums};

use crate::basis::meaning::Meaning;
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::{Shape, Unit, UnitIndex};
use crate::page::forwarding::{Forwarding, forwarding, is_unexplained_forward};
use crate::sweep::context::Context;
use crate::sweep::page_check::{PageCheck, SoundPage};
use crate::sweep::pinpoint::second_look;

/// The check of forwarded rows.
#[derive(Default)]
pub(crate) struct Heaps;

sums! {
    /// The sums that one thread adds up, or the merged sums of all threads, indexed by unit ordinal.
    pub(crate) struct Sums {
        units: PerUnit<HeapSums>,
    }
}

sums! {
    #[derive(Clone, Copy, Default, Debug)]
    struct HeapSums {
        /// Sum of the pairs from forwarding stubs.
        stubs: Sum,
        /// Sum of the pairs from the back pointers of forwarded rows.
        forwards: Sum,
        /// Number of forwarded rows whose back pointer does not have the known form.
        unexplained: u64,
    }
}

impl CheckSums for Sums {
    fn facts(&self, _: &TempStore) -> impl std::fmt::Debug + '_ {
        &self.units
    }
}

impl PageCheck for Heaps {
    type Sums = Sums;
    type Scratch = ();

    fn sums(&self, units: usize) -> Sums {
        Sums { units: PerUnit::new(units) }
    }

    fn wants(&self, _context: &Context<'_>, unit: &Unit) -> bool {
        unit.compressed || unit.shape == Shape::Heap
    }

    fn meaning(&self, _: &mut Meaning<'_>) {}

    fn page(
        &self,
        context: &Context<'_>,
        page: &SoundPage<'_>,
        (sums, ()): (&mut Sums, &mut ()),
        _: &mut Vec<Finding>,
    ) {
        if page.content.stubs + page.content.forwarded + page.content.ghosts > 0
            && let Some(sums) = sums.units.get_mut(page.index as usize)
        {
            add(context, page, sums);
        }
    }

    fn settle(
        &self,
        context: &Context<'_>,
        judged: &[UnitIndex],
        swept: &mut Tallies,
        sums: &mut Sums,
        to: &mut Results<'_>,
    ) {
        for (at, heap) in sums.units.touched().filter(|(_, heap)| heap.unexplained > 0) {
            if let Some(tally) = swept.units.get_mut(at) {
                tally.unexplained_forwards = heap.unexplained;
            }
            if let Some(unit) = context.units.get(at as UnitIndex).filter(|unit| context.in_scope(unit)) {
                to.coverage.note(&limits::HEAP_FORWARDING, context.place_of(unit), heap.unexplained);
            }
        }
        let differs = |unit: &UnitIndex| {
            let is_known = |heap: &&HeapSums| heap.unexplained == 0;
            let is_plain = context.units.get(*unit).is_some_and(|unit| unit.shape == Shape::Heap && !unit.compressed);
            let heap = sums.units.get(*unit as usize).filter(is_known);
            is_plain && heap.is_some_and(|heap| heap.stubs != heap.forwards)
        };
        if !context.options.physical_only {
            let suspects = judged.iter().copied().filter(differs).collect();
            second_look(context, &suspects, swept, to, pinpoint::forwarding);
        }
    }
}

/// Adds the stubs and forwarded rows of a sound page.
fn add(context: &Context<'_>, sound: &SoundPage<'_>, sums: &mut HeapSums) {
    let SoundPage { unit, id, page, content, records, .. } = *sound;
    if unit.compressed {
        // In compressed heaps, the form of forwarded rows and of their stubs is undocumented, so these records are only
        // counted.
        sums.unexplained += u64::from(content.forwarded + content.stubs);
        return;
    }
    if !content.records_are_audited {
        return;
    }
    let is_primary = |bytes: &[u8]| bytes.first().is_some_and(|byte| RecordKind::of(*byte) == RecordKind::Primary);
    let records = (0..).zip(records.spans()).map(|(slot, span)| (slot, span.of(page)));
    for (slot, bytes) in records.filter(|(_, bytes)| !is_primary(bytes)) {
        let here = RecordId { page: id, slot };
        match forwarding(bytes) {
            Some(Forwarding::Stub(row)) => sums.stubs.add(context.hash.forward(here, row)),
            Some(Forwarding::Row(stub)) => sums.forwards.add(context.hash.forward(stub, here)),
            None if is_unexplained_forward(bytes) => sums.unexplained += 1,
            None => {}
        }
    }
}
