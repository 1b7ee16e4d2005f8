//! Finds the missing, surplus and wrong fragments of one rowset's off-row values (8961, 8964, 8965, 8974, 8925), and
//! the rows that own them (8929).
//!
//! Reads only the pages of the rowset, in up to three passes. The first pass distributes fragments and references over
//! cells; only cells whose two sums differ are examined further. The second pass collects the facts in these cells.
//! They are a small share of all facts, and are sorted by address, so that each address can be checked independently.
//! The check of the addresses produces facts about whole values, which are sorted by value ID. The third pass finds the
//! rows that own these values.

use std::collections::{BTreeMap, BTreeSet};

use findings::{Finding, Owner, registry};
use format::lob::Fragment;
use format::{PageId, RecordId};
use sums::hash::Sum;
use sums::spill::Sorter;

use super::facts::{Held, InRow, Kind, Reference, held, links};
use super::pinpoint_facts::{FragmentFact, FragmentFactKind, From, Known, OfValue};
use super::plan::{Plans, RowsetPlan};
use crate::basis::ledger::FindingCollector;
use crate::basis::units::UnitIndex;
use crate::page::forwarding::is_live;
use crate::survey::PageSet;
use crate::sweep::context::Context;
use crate::sweep::pinpoint::{PageRange, Unread, for_each_sound, stretches};

/// The intended average number of fragments per cell. The limits in `CELLS` may cause a different average.
const FRAGMENTS_PER_CELL: u64 = 64;
/// The minimum and maximum number of cells. The memory for facts may lower the maximum.
const CELLS: std::ops::RangeInclusive<u64> = 1 << 12..=1 << 20;
/// State of message 8961 if the value IDs differ.
const ID_DIFFERS: u8 = 1;

/// A fact from a page.
enum Fact {
    TextPage(PageId),
    Fragment { unit: UnitIndex, at: RecordId, held: Held },
    Reference { from: From, live: bool, to: Reference },
}

/// The two sums of a cell: the fragments that were found, and the fragments that references point to.
type Bucket = (Sum, Sum);

struct Look<'a> {
    context: &'a Context<'a>,
    plans: &'a Plans,
    plan: &'a RowsetPlan,
    stretches: BTreeMap<UnitIndex, PageRange>,
    /// Text pages that passed their audit.
    sound: PageSet,
    /// Facts about values.
    values: Sorter<OfValue>,
    /// Whether there is a fault at an address that is referenced by a node rather than a row.
    has_wrong: bool,
    findings: &'a mut FindingCollector,
}

/// The facts about one address in a cell whose sums differ. The facts arrive in the order of [`FragmentFactKind`].
#[derive(Default)]
struct Place {
    at: RecordId,
    fragment: Option<(UnitIndex, Held)>,
    is_referenced: bool,
    /// Whether a deleted row points to this address.
    has_ghost: bool,
    /// The first reference that fits the fragment.
    fitting: Option<(From, Reference)>,
    /// Whether a second reference fits the fragment too.
    is_shared: bool,
}

/// Reports the faults in the off-row values of a rowset. `is_whole` says that all rows of the rowset were seen, so that
/// a fragment to which no row refers is an orphan. Returns the number of fragments to which only deleted rows refer.
///
/// # Errors
///
/// [`Unread`] if a page cannot be read. Then either nothing was reported, or everything was reported except the rows
/// that own faulty values.
pub(crate) fn lob(
    (context, plans): (&Context<'_>, &Plans),
    plan: &RowsetPlan,
    weight: u64,
    is_whole: bool,
    findings: &mut FindingCollector,
) -> Result<u64, Unread> {
    let units: BTreeSet<UnitIndex> = plan.text_units.iter().copied().chain([plan.in_row]).collect();
    let mut look = Look {
        context,
        plans,
        plan,
        stretches: stretches(context, &units),
        sound: PageSet::new(&context.survey.files),
        values: Sorter::new(context.bytes_for_facts() / 4, context.space),
        has_wrong: false,
        findings,
    };
    let cells = look.cells(weight)?;
    let mut doubts = 0;
    let mut place = Place::default();
    for FragmentFact { about, what } in look.suspects(&cells)?.into_sorted() {
        if about != place.at {
            doubts += look.close(&place, is_whole);
            place = Place { at: about, ..Place::default() };
        }
        look.hear(&mut place, what);
    }
    doubts += look.close(&place, is_whole);
    look.judge_values()?;
    Ok(doubts)
}

impl Look<'_> {
    fn owner(&self, unit: UnitIndex) -> Owner {
        let unknown = Owner::unknown(format::AllocUnitId(0));
        self.context.units.get(unit).map_or(unknown, |unit| unit.owner)
    }

    fn finding(&self, check: &'static registry::Check, unit: UnitIndex, at: RecordId, id: u64) -> Finding {
        Finding::new(check).owner(self.owner(unit)).at_record(at).number("text_id", id.cast_signed())
    }

    /// Calls `visit` with all facts from the rowset's sound pages.
    fn each(&self, units: &[UnitIndex], visit: &mut dyn FnMut(Fact)) -> Result<(), Unread> {
        for (&unit, &stretch) in self.stretches.iter().filter(|(unit, _)| units.contains(unit)) {
            if unit == self.plan.in_row {
                self.each_row(stretch, visit)?;
                continue;
            }
            for_each_sound(self.context, unit, stretch, |id, page, records| {
                visit(Fact::TextPage(id));
                for (slot, span) in records.spans().iter().enumerate() {
                    let Ok(fragment) = Fragment::read(span.of(page)) else { continue };
                    let at = RecordId { page: id, slot: slot as u16 };
                    visit(Fact::Fragment { unit, at, held: held(&fragment) });
                    let from = From { at, unit };
                    links(unit, &fragment, |to| visit(Fact::Reference { from, live: true, to }));
                }
            })?;
        }
        Ok(())
    }

    fn each_row(&self, stretch: PageRange, visit: &mut dyn FnMut(Fact)) -> Result<(), Unread> {
        let unit = self.plan.in_row;
        let Some(plan) = self.plans.rows(unit) else { return Ok(()) };
        for_each_sound(self.context, unit, stretch, |id, page, records| {
            if !self.context.is_leaf(unit, page) {
                return;
            }
            for slot in 0..records.spans().len() {
                let Some(record) = records.record(page, slot) else { continue };
                let from = From { at: RecordId { page: id, slot: slot as u16 }, unit };
                let live = is_live(&record);
                plan.each(&record, |seen| {
                    if let InRow::Reference(to) = seen {
                        visit(Fact::Reference { from, live, to });
                    }
                });
            }
        })
    }

    fn place_of(&self, cells: &[Bucket], at: RecordId) -> usize {
        self.context.hash.spread(at) as usize & cells.len().wrapping_sub(1)
    }

    /// Distributes the facts over cells.
    fn cells(&mut self, weight: u64) -> Result<Vec<Bucket>, Unread> {
        let context = self.context;
        let most =
            (context.bytes_for_facts() as u64 / 4 / size_of::<Bucket>() as u64).clamp(*CELLS.start(), *CELLS.end());
        let wanted = 1 << (weight / FRAGMENTS_PER_CELL).clamp(*CELLS.start(), most).ilog2();
        let mut cells = vec![Bucket::default(); wanted];
        let mut sound = PageSet::new(&context.survey.files);
        let units: Vec<UnitIndex> = self.stretches.keys().copied().collect();
        self.each(&units, &mut |fact| match fact {
            Fact::TextPage(page) => sound.insert(page),
            Fact::Fragment { at, held, .. } => {
                let place = self.place_of(&cells, at);
                if let Some((found, _)) = cells.get_mut(place) {
                    if !matches!(held.kind, Kind::Unknown | Kind::Malformed) {
                        found.add(context.hash.fragment(at, held.id));
                    }
                    if let Kind::Part { size, level } = held.kind {
                        found.add(context.hash.part(at, size, level));
                    }
                }
            }
            Fact::Reference { live: true, to, .. } => {
                let place = self.place_of(&cells, to.target);
                if let Some((_, named)) = cells.get_mut(place) {
                    named.add(context.hash.fragment(to.target, to.id));
                    if let Some((size, level)) = to.expects.part() {
                        named.add(context.hash.part(to.target, size, level));
                    }
                }
            }
            Fact::Reference { .. } => {}
        })?;
        self.sound = sound;
        Ok(cells)
    }

    /// All facts about addresses in cells whose sums differ.
    fn suspects(&self, cells: &[Bucket]) -> Result<Sorter<FragmentFact>, Unread> {
        let differs = |at| cells.get(self.place_of(cells, at)).is_some_and(|(found, named)| found != named);
        let mut said = Sorter::new(self.context.bytes_for_facts() / 2, self.context.space);
        let units: Vec<UnitIndex> = self.stretches.keys().copied().collect();
        self.each(&units, &mut |fact| match fact {
            Fact::Fragment { unit, at, held } if differs(at) => {
                said.push(FragmentFact { about: at, what: FragmentFactKind::Fragment { unit, held } });
            }
            Fact::Reference { from, live, to } if differs(to.target) => {
                let what =
                    if live { FragmentFactKind::Reference { from, to } } else { FragmentFactKind::Ghost { id: to.id } };
                said.push(FragmentFact { about: to.target, what });
            }
            _ => {}
        })?;
        Ok(said)
    }

    fn know(&mut self, id: u64, what: Known) {
        self.values.push(OfValue { id, what });
    }

    /// Notes a fault in the value that this reference belongs to.
    fn blame(&mut self, from: From, id: u64) {
        if from.unit == self.plan.in_row {
            self.own(from.at, id);
        } else {
            self.has_wrong = true;
            self.know(id, Known::Wrong);
        }
    }

    /// Reports 8929 for a row that owns a faulty value. Duplicates are dropped later.
    fn own(&mut self, row: RecordId, id: u64) {
        let owner = self.owner(self.plan.in_row);
        let kind = if owner.index_id > 1 { "index" } else { "data" };
        let finding = Finding::new(&registry::LOB_OWNER).owner(owner).at_record(row);
        let finding = finding.number("text_id", id.cast_signed()).text_value("record_kind", kind);
        self.findings.push(finding.text_value("record", format!("RID = {row}")));
    }

    /// Checks one fact about an address against the facts that arrived before.
    fn hear(&mut self, place: &mut Place, what: FragmentFactKind) {
        match (what, place.fragment) {
            (FragmentFactKind::Fragment { unit, held }, _) => place.fragment = Some((unit, held)),
            (FragmentFactKind::Ghost { id }, fragment) => {
                place.has_ghost |= fragment.is_some_and(|(_, held)| held.id == id)
            }
            (FragmentFactKind::Reference { from, to }, None) => {
                place.is_referenced = true;
                self.unseen(place.at, from, &to);
            }
            (FragmentFactKind::Reference { from, to }, Some((unit, held))) => {
                place.is_referenced = true;
                if (to.unit, to.id) != (unit, held.id) {
                    self.misfit(place.at, (unit, held), from, &to);
                } else if held.kind == Kind::Unknown {
                    self.blame(from, to.id);
                } else if let Some((first, _)) = place.fitting {
                    if !place.is_shared {
                        place.is_shared = true;
                        let finding = self.finding(&registry::LOB_TWO_PARENTS, unit, place.at, held.id);
                        let finding = finding.ref_at(first.at.page, first.at.slot);
                        let finding = finding.page_value("other_page", from.at.page).number("other_slot", from.at.slot);
                        self.findings.push(finding);
                        self.blame(first, to.id);
                    }
                    self.blame(from, to.id);
                } else {
                    place.fitting = Some((from, to));
                }
            }
        }
    }

    /// Checks an address after its last fact. Returns 1 if only deleted rows refer to it.
    fn close(&mut self, place: &Place, is_whole: bool) -> u64 {
        let Some((unit, held)) = place.fragment else { return 0 };
        if !place.is_referenced {
            if is_whole && place.has_ghost {
                return 1;
            }
            if is_whole && held.kind != Kind::Unknown {
                self.know(held.id, Known::Orphan { unit, at: place.at });
            }
            return 0;
        }
        if held.kind == Kind::Unknown {
            // Message 8962 already reports this fragment.
            self.know(held.id, Known::Lost);
        } else if let Some((from, to)) = place.fitting.filter(|_| !place.is_shared)
            && let Some(state) = to.expects.mismatch(held.kind)
        {
            let finding = self.finding(&registry::LOB_MISMATCH, unit, place.at, held.id).state(state);
            self.findings.push(finding.ref_at(from.at.page, from.at.slot));
            self.blame(from, to.id);
            // The correct content of this fragment is unknown, and so are the fragments below it.
            if !matches!(held.kind, Kind::Part { level: 1.., .. } | Kind::Root { .. }) {
                self.know(held.id, Known::Lost);
            }
        }
        0
    }

    /// Reports a reference that points to a fragment of another value or unit.
    fn misfit(&mut self, at: RecordId, (unit, held): (UnitIndex, Held), from: From, to: &Reference) {
        self.blame(from, to.id);
        let finding = if to.unit == unit {
            self.finding(&registry::LOB_MISMATCH, unit, at, held.id).state(ID_DIFFERS)
        } else {
            let finding = Finding::new(&registry::LOB_CROSS_UNIT).owner(self.owner(from.unit)).at_record(at);
            finding.other_owner(self.owner(unit))
        };
        self.findings.push(finding.ref_at(from.at.page, from.at.slot));
    }

    /// Reports a reference to an address without a fragment.
    fn unseen(&mut self, at: RecordId, from: From, to: &Reference) {
        self.blame(from, to.id);
        let owner = self.context.unit_of(at.page);
        if let Some(other) = owner.filter(|owner| !self.plan.text_units.contains(owner)) {
            let finding = Finding::new(&registry::LOB_CROSS_UNIT).owner(self.owner(from.unit)).at_record(at);
            self.findings.push(finding.ref_at(from.at.page, from.at.slot).other_owner(self.owner(other)));
            return;
        }
        // An IAM page has never contained a node, so no node is lost.
        let is_iam = self.context.survey.file(at.page.file).is_some_and(|file| file.is_iam(at.page.page));
        if owner.is_some() && !is_iam && !self.sound.contains(at.page) {
            self.know(to.id, Known::Lost);
        }
        let finding = self.finding(&registry::LOB_UNSEEN, to.unit, at, to.id);
        self.findings.push(finding.ref_at(from.at.page, from.at.slot));
    }

    /// Reports orphans of values without lost nodes, and rows that own a faulty value.
    fn judge_values(mut self) -> Result<(), Unread> {
        let mut read = Ok(());
        let empty = Sorter::new(0, self.context.space);
        let mut values = std::mem::replace(&mut self.values, empty);
        if self.has_wrong {
            read = self.each(&[self.plan.in_row], &mut |fact| {
                if let Fact::Reference { from, live: true, to } = fact {
                    values.push(OfValue { id: to.id, what: Known::Owner { at: from.at } });
                }
            });
        }
        let (mut lost, mut wrong) = (None, None);
        for OfValue { id, what } in values.into_sorted() {
            match what {
                Known::Lost => lost = Some(id),
                Known::Wrong => wrong = Some(id),
                Known::Orphan { unit, at } if lost != Some(id) => {
                    let finding = self.finding(&registry::LOB_UNREFERENCED, unit, at, id);
                    self.findings.push(finding);
                }
                Known::Owner { at } if wrong == Some(id) => self.own(at, id),
                Known::Orphan { .. } | Known::Owner { .. } => {}
            }
        }
        read
    }
}
