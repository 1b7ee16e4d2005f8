//! Compares the forwarding stubs of one heap with its forwarded rows: 8971, 8972, 8993, 8994.
//!
//! The facts from stubs and rows are sorted by the forwarded row that they are about, so that each row can be checked
//! independently.

use std::cmp::Ordering;

use findings::{Finding, registry};
use format::RecordId;
use sums::spill::{Item, Sorter, record_to};

use crate::basis::ledger::FindingCollector;
use crate::basis::units::UnitIndex;
use crate::page::forwarding::{Forwarding, forwarding as forwarding_of};
use crate::sweep::context::Context;
use crate::sweep::pinpoint::{PageRange, Unread, for_each_sound};

/// One fact about a forwarded row, or about an address to which a stub points.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ForwardFact {
    row: RecordId,
    what: ForwardFactKind,
    other: RecordId,
}

/// The kind of a fact. Facts are sorted in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ForwardFactKind {
    /// The row exists and points back to this stub.
    Is,
    /// This stub points to the row. Each stub is added twice: `Named` collects all stubs of a row, then `Judged` checks
    /// each stub.
    Named,
    Judged,
}

const BYTES: usize = 17;

impl Item for ForwardFact {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.what as u8);
        record_to(out, self.row);
        record_to(out, self.other);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let what = match bytes.first()? {
            0 => ForwardFactKind::Is,
            1 => ForwardFactKind::Named,
            _ => ForwardFactKind::Judged,
        };
        Some(Self { what, row: RecordId::read(bytes, 1)?, other: RecordId::read(bytes, 9)? })
    }
}

/// The facts about the current row.
#[derive(Default)]
struct Row {
    at: RecordId,
    back: Option<RecordId>,
    /// Whether the stub to which the row points back also points to the row.
    back_agrees: bool,
    is_named: bool,
}

/// Reports the stubs and forwarded rows that do not match.
///
/// # Errors
///
/// [`Unread`] if a page cannot be read. In this case, nothing is reported.
pub(crate) fn forwarding(
    context: &Context<'_>,
    unit: UnitIndex,
    stretch: PageRange,
    findings: &mut FindingCollector,
) -> Result<(), Unread> {
    let Some(owner) = context.units.get(unit).map(|unit| unit.owner) else { return Ok(()) };
    let mut sorter = Sorter::new(context.bytes_for_facts(), context.space);
    for_each_sound(context, unit, stretch, |id, page, records| {
        for (slot, span) in records.spans().iter().enumerate() {
            let here = RecordId { page: id, slot: slot as u16 };
            match forwarding_of(span.of(page)) {
                Some(Forwarding::Stub(row)) => {
                    for what in [ForwardFactKind::Named, ForwardFactKind::Judged] {
                        sorter.push(ForwardFact { row, what, other: here });
                    }
                }
                Some(Forwarding::Row(stub)) => {
                    sorter.push(ForwardFact { row: here, what: ForwardFactKind::Is, other: stub })
                }
                None => {}
            }
        }
    })?;
    let lone = |row: &Row| {
        let back = row.back.filter(|_| !row.is_named)?;
        let finding = Finding::new(&registry::HEAP_ROW_WITHOUT_STUB).owner(owner);
        Some(finding.at_record(row.at).ref_at(back.page, back.slot))
    };
    let mut row = Row::default();
    for ForwardFact { row: at, what, other } in sorter.into_sorted() {
        if at != row.at {
            findings.extend(lone(&row));
            row = Row { at, ..Row::default() };
        }
        match what {
            ForwardFactKind::Is => row.back = Some(other),
            ForwardFactKind::Named => {
                row.is_named = true;
                row.back_agrees |= row.back == Some(other);
            }
            ForwardFactKind::Judged => {
                let stub = |check| Finding::new(check).owner(owner).at_record(other).ref_at(at.page, at.slot);
                match row.back {
                    None => findings.push(stub(&registry::HEAP_STUB_WITHOUT_ROW)),
                    Some(back) if back == other => {}
                    Some(back) => {
                        let check = match row.back_agrees {
                            true => &registry::HEAP_FORWARD_SHARED,
                            false => &registry::HEAP_FORWARD_MISMATCH,
                        };
                        findings.push(stub(check).page_value("back_page", back.page).number("back_slot", back.slot));
                    }
                }
            }
        }
    }
    findings.extend(lone(&row));
    Ok(())
}
