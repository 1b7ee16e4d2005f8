//! Heaps: rows that moved, and the stubs that lead to them (8971, 8972, 8993, 8994). Each stub and each moved row adds the pair to a sum
//! of its own; where the sums differ, a second look names the rows.

mod pinpoint;

use format::record::RecordKind;
use format::slots::Span;
use format::{Page, PageId, RecordId};

use crate::audit::PageContent;
use crate::context::Context;
use crate::forwarding::{Forwarding, forwarding, is_unexplained_forward};
use crate::tallies::UnitTally;
use crate::units::{Shape, Unit};

pub(crate) use pinpoint::forwarding as pinpoint;

/// Adds the stubs and moved rows of a sound page, whose records are `spans`, to the sums of its unit.
pub(crate) fn page(
    context: &Context<'_>,
    id: PageId,
    page: Page<'_>,
    unit: &Unit,
    content: &PageContent,
    spans: &[Span],
    tally: &mut UnitTally,
) {
    if unit.compressed {
        // What forwarded rows and their stubs look like under compression is undocumented.
        tally.unexplained_forwards += u64::from(content.forwarded + content.stubs);
        return;
    }
    let has_any = content.stubs + content.forwarded + content.ghosts > 0;
    if unit.shape != Shape::Heap || !content.records_are_audited || !has_any {
        return;
    }
    let is_primary = |bytes: &[u8]| bytes.first().is_some_and(|byte| RecordKind::of(*byte) == RecordKind::Primary);
    let records = (0..).zip(spans).map(|(slot, span)| (slot, span.of(page)));
    for (slot, bytes) in records.filter(|(_, bytes)| !is_primary(bytes)) {
        let here = RecordId { page: id, slot };
        match forwarding(bytes) {
            Some(Forwarding::Stub(row)) => tally.stubs.add(context.hash.forward(here, row)),
            Some(Forwarding::Row(stub)) => tally.forwards.add(context.hash.forward(stub, here)),
            None if is_unexplained_forward(bytes) => tally.unexplained_forwards += 1,
            None => {}
        }
    }
}
