//! Off-row values (messages 8929, 8961 to 8965, 8974). For each pointer of a live row and each link of a node, the
//! fragment that it refers to is added to one sum. Each fragment that is found is added to another sum. If the two sums
//! are equal, every fragment is referenced exactly once, from within its own value, and all stored lengths are correct.

mod facts;
mod free_space;
mod parity;
mod pinpoint;
mod pinpoint_facts;
mod plan;

use catalog::Database;
use findings::Finding;
use findings::registry::limits::{self, Limit};
use findings::registry::{self};
use format::lob::{Fragment, NULL_ROOT, Node, SMALL_ROOT};
use format::types::xtype;
use format::{Page, PageType, RecordId};
use sums::hash::Sum;
use sums::spill::TempStore;
use sums::{CheckSums, PerUnit, sums};

use crate::basis::meaning::Meaning;
use crate::basis::outcome::Results;
use crate::basis::tallies::Tallies;
use crate::basis::units::{Shape, UnitIndex};
use crate::page::rowsets::may_have_off_row;
use crate::sweep::context::Context;
use crate::sweep::pinpoint::{Unread, note_unread};
use crate::sweep::row_check::{Handled, Row, RowCheck, RowPage, TextPage};

use facts::{Expects, InRow, Kind, Reference, held, links};
pub(crate) use free_space::FreeSpace;
pub(crate) use plan::{Plans, RowsetPlan};

sums! {
    /// The sums that one thread adds up, or the merged sums of all threads, indexed by unit ordinal.
    pub(crate) struct Sums {
        units: PerUnit<UnitSums>,
        parity: parity::Parity,
    }
}

sums! {
    /// The sums of a unit with off-row values: the fragments to which references point, and the fragments that were found.
    #[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
    pub(crate) struct UnitSums {
        /// Fragments that pointers and links refer to, each with the value ID stored with the pointer or link.
        named: Sum,
        /// Fragments that were found, each with the value ID stored in it.
        found: Sum,
        /// Sizes and levels that links expect.
        expected: Sum,
        /// Sizes and levels of fragments other than roots.
        actual: Sum,
        /// Number of pointers and links.
        pub(crate) references: u64,
        /// Number of fragments.
        pub(crate) fragments: u64,
        /// In a text unit, the number of fragments in an undocumented form; in an in-row unit, the number of complex
        /// columns in an undocumented form.
        undescribed: u64,
    }
}

impl Sums {
    /// Empty sums.
    pub(crate) fn new(units: usize) -> Self {
        Self { units: PerUnit::new(units), parity: parity::Parity::default() }
    }

    fn get(&self, unit: UnitIndex) -> UnitSums {
        self.units.get(unit as usize).copied().unwrap_or_default()
    }

    fn refer(&mut self, context: &Context<'_>, reference: &Reference) {
        let Some(sums) = self.units.get_mut(reference.unit as usize) else { return };
        sums.references += 1;
        sums.named.add(context.hash.fragment(reference.target, reference.id));
        if let Some((size, level)) = reference.expects.part() {
            sums.expected.add(context.hash.part(reference.target, size, level));
        }
        if let Expects::Root { ntext: Some(_) } = reference.expects {
            self.parity.ntext(reference.target);
        }
    }
}

impl CheckSums for Sums {
    fn put_in_order(&mut self, _: &TempStore) {
        self.parity.put_in_order();
    }

    fn facts(&self, _: &TempStore) -> impl std::fmt::Debug + '_ {
        &self.units
    }
}

impl RowCheck for Plans {
    type Sums = Sums;
    type Scratch = ();
    type Rest = ();

    fn bytes_per_thread(database: &Database) -> u64 {
        let has_ntext = database.rowsets.iter().any(|rowset| may_have_off_row(rowset, &[xtype::NTEXT]));
        if has_ntext { parity::BYTES_PER_THREAD } else { 0 }
    }

    fn sums(&self, units: usize) -> Sums {
        Sums::new(units)
    }

    fn wants(&self, _context: &Context<'_>, unit: UnitIndex) -> bool {
        self.rows(unit).is_some()
    }

    fn meaning(&self, unit: UnitIndex, to: &mut Meaning<'_>) {
        self.add_meaning(unit, to);
    }

    fn page(&self, _: &Context<'_>, page: &RowPage<'_>, _: &mut Sums, (): &mut ()) -> Handled<()> {
        // Rows without complex columns have no off-row values.
        match self.rows(page.unit).is_some_and(|plan| plan.has_vectors_alone(page.rows)) {
            true => Handled::ALL,
            false => Handled::PLAIN,
        }
    }

    fn row(
        &self,
        context: &Context<'_>,
        of_row: &Row<'_>,
        (): (),
        (sums, ()): (&mut Sums, &mut ()),
        findings: &mut Vec<Finding>,
    ) {
        row(self, context, of_row, sums, findings);
    }

    fn text_page(&self, context: &Context<'_>, page: &TextPage<'_>, sums: &mut Sums, findings: &mut Vec<Finding>) {
        text_page(self, context, page, sums, findings);
    }

    fn settle(&self, context: &Context<'_>, swept: &mut Tallies, sums: &mut Sums, to: &mut Results<'_>) {
        reckon(self, context, swept, sums, to);
    }
}

fn row(plans: &Plans, context: &Context<'_>, row: &Row<'_>, sums: &mut Sums, findings: &mut Vec<Finding>) {
    let Row { unit, at, ref record, .. } = *row;
    let Some(plan) = plans.rows(unit).filter(|_| record.variable_count() > 0) else { return };
    plan.each(record, |seen| match seen {
        InRow::Reference(reference) => sums.refer(context, &reference),
        InRow::Undescribed => {
            if let Some(sums) = sums.units.get_mut(unit as usize) {
                sums.undescribed += 1;
            }
        }
        InRow::Invalid { column } => {
            if let Some(unit) = context.units.get(unit) {
                let finding = Finding::new(&registry::COMPLEX_COLUMN).owner(unit.owner).at_record(at);
                findings.push(finding.number("column", column));
            }
        }
    });
}

/// Adds a sound page of a LOB or row-overflow unit.
fn text_page(plans: &Plans, context: &Context<'_>, page: &TextPage<'_>, sums: &mut Sums, findings: &mut Vec<Finding>) {
    let TextPage { unit, page, spans } = *page;
    let has_ntext = plans.has_ntext(unit);
    for (slot, span) in spans.iter().enumerate() {
        let Ok(fragment) = Fragment::read(span.of(page)) else { continue };
        let at = RecordId { page: page.header().page_id(), slot: slot as u16 };
        let held = held(&fragment);
        if let Some(sums) = sums.units.get_mut(unit as usize) {
            sums.fragments += 1;
            match held.kind {
                Kind::Undescribed => sums.undescribed += 1,
                // The fragment is not added to the sum, so the sums differ, and the pages are read again to find the
                // row that owns the fragment.
                Kind::Unknown | Kind::Malformed => {}
                _ => sums.found.add(context.hash.fragment(at, held.id)),
            }
            if let Kind::Part { size, level } = held.kind {
                sums.actual.add(context.hash.part(at, size, level));
            }
        }
        if matches!(held.kind, Kind::Root { size } if has_ntext && size % 2 == 1) {
            sums.parity.odd(at);
        }
        if let Some(unit) = context.units.get(unit).filter(|_| fragment.is_live()) {
            findings.extend(misplaced(&fragment, page).map(|finding| finding.owner(unit.owner).at_record(at)));
        }
        links(unit, &fragment, |reference| sums.refer(context, &reference));
    }
}

/// Returns the finding for a fragment whose type is unknown or cannot occur on a page of this type; `None` if the type
/// is allowed.
fn misplaced(fragment: &Fragment<'_>, page: Page<'_>) -> Option<Finding> {
    let page_type = page.header().page_type;
    let finding = match fragment.node() {
        Node::Unknown(_) => Finding::new(&registry::LOB_NODE_TYPE),
        // Small values share pages of type 3; a page of type 4 belongs to the tree of one large value.
        _ if matches!(fragment.node_type(), SMALL_ROOT | NULL_ROOT) && page_type == PageType::TextTree as u8 => {
            Finding::new(&registry::LOB_PAGE_TYPE).number("page_type", page_type)
        }
        _ => return None,
    };
    Some(finding.number("text_id", fragment.blob_id().cast_signed()).number("node_type", fragment.node_type()))
}

/// Compares the sums after the sweep.
fn reckon(plans: &Plans, context: &Context<'_>, swept: &mut Tallies, sums: &Sums, to: &mut Results<'_>) {
    let mut planned = vec![false; context.units.list().len()];
    let suspects = sums.parity.suspects();
    for plan in plans.rowsets() {
        for unit in &plan.text_units {
            if let Some(planned) = planned.get_mut(*unit as usize) {
                *planned = true;
            }
        }
        if rowset((plans, plan), context, swept, (sums, suspects.as_deref()), to).is_err() {
            // If some unit had unreadable pages, all units of the rowset are noted, because some pointers to the values
            // in these units are unknown.
            for unit in plan.text_units.iter().chain([&plan.in_row]) {
                note_unread(context, *unit, swept, to.coverage);
            }
        }
    }
    for (at, tally) in swept.units.touched() {
        let Some(unit) = context.units.list().get(at) else { continue };
        if unit.shape == Shape::Heap && unit.compressed && tally.data_pages > 0 && context.in_scope(unit) {
            to.coverage.note(&limits::PFS_FREE_SPACE_COMPRESSED, context.place_of(unit), tally.data_pages);
        }
    }
    let unplanned = swept.units.touched().filter(|(at, _)| planned.get(*at) == Some(&false));
    for (at, tally) in unplanned.filter(|(_, tally)| tally.text_pages > 0) {
        let Some(unit) = context.units.list().get(at) else { continue };
        to.coverage.note(&limits::LOB_UNIT_UNKNOWN, context.place_of(unit), tally.text_pages);
    }
}

fn rowset(
    (plans, plan): (&Plans, &RowsetPlan),
    context: &Context<'_>,
    swept: &Tallies,
    (of_rows, suspects): (&Sums, Option<&[RecordId]>),
    Results { findings, coverage, .. }: &mut Results<'_>,
) -> Result<(), Unread> {
    let sums = |unit: &UnitIndex| of_rows.get(*unit);
    let differs = |sums: UnitSums| sums.named != sums.found || sums.expected != sums.actual;
    let weight: u64 = plan.text_units.iter().map(|unit| sums(unit).fragments.max(sums(unit).references)).sum();
    let lost: u64 =
        plan.text_units.iter().filter_map(|unit| swept.units.get(*unit as usize)).map(|t| t.bad_pages).sum();
    let Some(unit) = context.units.get(plan.in_row).filter(|_| weight + lost > 0) else { return Ok(()) };
    let mut units = plan.text_units.iter().chain([&plan.in_row]).filter_map(|unit| context.units.get(*unit));
    if context.leaves_out(unit) || !units.any(|unit| context.in_scope(unit)) {
        return Ok(());
    }
    if let Some(limit) = why_not(context, plan, swept, of_rows) {
        coverage.note_as(limits::LOB_GHOSTS.what, limit, context.place_of(unit), weight);
    } else if plan.text_units.iter().any(|unit| differs(sums(unit))) {
        let is_whole = swept.units.get(plan.in_row as usize).is_some_and(|tally| tally.lost_pages() == 0);
        let doubts = self::pinpoint::lob((context, plans), plan, weight, is_whole, findings)?;
        if doubts > 0 {
            coverage.note(&limits::LOB_GHOSTS, context.place_of(unit), doubts);
        }
        parity::note_damaged(context, plans, plan, coverage);
    } else {
        parity::reckon(context, (plans, plan), suspects, findings, coverage)?;
    }
    Ok(())
}

/// The reason why nothing can be proven about the off-row values of a rowset, if there is one.
fn why_not(context: &Context<'_>, plan: &RowsetPlan, swept: &Tallies, sums: &Sums) -> Option<&'static Limit> {
    let tally = |unit: &UnitIndex| swept.units.get(*unit as usize);
    let in_row = tally(&plan.in_row)?;
    let mut units = plan.text_units.iter().chain([&plan.in_row]);
    let is_partly_known = |unit: &UnitIndex| {
        let is_whole = tally(unit).is_none_or(|tally| tally.lost_pages() == tally.bad_pages);
        !is_whole || context.survey.broken_chains.contains(unit)
    };
    if let Some(limit) = plan.why_not.filter(|_| in_row.pages() > 0 || plan.is_unknown) {
        Some(limit)
    } else if in_row.unaudited_rows > 0 {
        Some(&limits::LOB_ROWS_UNKNOWN)
    } else if units.clone().any(|unit| context.units.get(*unit).is_some_and(|unit| !context.in_scope(unit))) {
        Some(&limits::LOB_OUT_OF_SCOPE)
    } else if units.clone().any(|unit| tally(unit).is_some_and(|tally| tally.open_pages > 0)) {
        Some(&limits::WINDOW_TABLE_OPEN)
    } else if units.clone().any(|unit| context.survey.partial_units.contains(unit)) {
        Some(&limits::LOB_FILE_NOT_GIVEN)
    } else if units.any(is_partly_known) {
        Some(&limits::LOB_PAGES_UNKNOWN)
    } else if sums.get(plan.in_row).undescribed > 0 {
        Some(&limits::LOB_VALUES_FORM)
    } else if plan.text_units.iter().any(|unit| sums.get(*unit).undescribed > 0) {
        Some(&limits::LOB_FRAGMENTS_FORM)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use catalog::UnitKind;
    use findings::{Names, Owner};
    use format::{AllocUnitId, PageId};

    use super::*;

    #[test]
    fn texts_equal_published_transcripts() {
        // docs/format/cases.md#case-31.
        let names = Names { database: "BizTalkDTADb", database_id: 7, command: "CHECKDB" };
        let owner = |unit, kind| Owner {
            object_id: 18_099_105,
            index_id: 1,
            partition_id: 72_057_594_046_185_472,
            alloc_unit: AllocUnitId(unit),
            kind: Some(kind),
        };
        let lob = owner(72_057_594_047_889_408, UnitKind::Lob);
        let page = PageId::new(1, 18_447);
        let finding = Finding::new(&registry::PFS_FREE_SPACE).owner(lob).page(page);
        let finding = finding.text_value("expected", " 95_PCT_FULL").text_value("actual", "100_PCT_FULL");
        assert_eq!(
            finding.text(&names),
            "Incorrect PFS free space information for page (1:18447) in object ID 18099105, index ID 1, partition ID \
             72057594046185472, alloc unit ID 72057594047889408 (type LOB data). Expected value  95_PCT_FULL, actual value \
             100_PCT_FULL."
        );
        let finding = Finding::new(&registry::LOB_UNSEEN).owner(lob).at(page, 13).ref_at(PageId::new(1, 9222), 32);
        assert_eq!(
            finding.number("text_id", 45_249_724_416i64).text(&names),
            "Table error: Object ID 18099105, index ID 1, partition ID 72057594046185472, alloc unit ID 72057594047889408 \
             (type LOB data). The off-row data node at page (1:18447), slot 13, text ID 45249724416 is referenced by page \
             (1:9222), slot 32, but was not seen in the scan."
        );
        let row = RecordId { page: PageId::new(1, 8160), slot: 33 };
        let in_row = owner(72_057_594_048_741_376, UnitKind::InRow);
        let finding =
            Finding::new(&registry::LOB_OWNER).owner(in_row).at_record(row).number("text_id", 45_249_789_952i64);
        let finding = finding.text_value("record_kind", "data").text_value("record", format!("RID = {row}"));
        assert_eq!(
            finding.text(&names),
            "Object ID 18099105, index ID 1, partition ID 72057594046185472, alloc unit ID 72057594048741376 (type In-row \
             data): Errors found in off-row data with ID 45249789952 owned by data record identified by RID = (1:8160:33)"
        );
    }
}
