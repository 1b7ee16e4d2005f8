//! The fragments of one rowset's off-row values that are missing, surplus or wrong: 8961, 8964, 8965, 8974, 8925, and 8929
//! for the rows that own them.
//!
//! Passes over the rowset's pages only. The first spreads fragments and references over cells, of which those stay whose
//! two sides differ; the second keeps what lies in them, a small share however many values there are; the third, if a
//! damaged fragment has no row for its parent, finds the rows by the id of the value.

use std::collections::{BTreeMap, BTreeSet};

use format::lob::Fragment;
use format::{PageId, RecordId};

use super::{Stretch, for_each_sound, stretches};
use crate::context::Context;
use crate::finding::{Finding, Owner};
use crate::hash::Sum;
use crate::lob::{Held, InRow, Kind, Reference, RowsetPlan, held, is_live, links};
use crate::registry;
use crate::sweep::is_leaf_of;
use crate::units::UnitIndex;

/// Fragments a cell holds on average, at most while the number of cells is within its bounds.
const FRAGMENTS_A_CELL: u64 = 64;
/// Bounds of the number of cells; a cell takes 32 bytes.
const CELLS: std::ops::RangeInclusive<u64> = 1 << 12..=1 << 20;
/// State of message 8961 for ids that differ.
const ID_DIFFERS: u8 = 1;

/// Something that a page says.
enum Fact {
    TextPage(PageId),
    Fragment { unit: UnitIndex, at: RecordId, held: Held },
    Reference { from: From, live: bool, to: Reference },
}

/// Where a reference stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct From {
    at: RecordId,
    unit: UnitIndex,
}

/// A place that its two sides see differently, or that shares a cell with one.
#[derive(Default)]
struct Suspect {
    fragment: Option<(UnitIndex, Held)>,
    references: Vec<(From, Reference)>,
    /// Ids that deleted rows have for it.
    ghosts: Vec<u64>,
}

struct Look<'a> {
    context: &'a Context<'a>,
    plan: &'a RowsetPlan,
    stretches: BTreeMap<UnitIndex, Stretch>,
    /// Text pages that passed their audit.
    sound: BTreeSet<PageId>,
    suspects: BTreeMap<RecordId, Suspect>,
    /// Values of which a node was lost: what hung below it cannot be told from an orphan.
    lost: BTreeSet<u64>,
    /// Values in which something is wrong that another node, not a row, refers to.
    wrong: BTreeSet<u64>,
    /// Rows, and ids of their values in which something is wrong.
    owners: BTreeSet<(RecordId, u64)>,
    findings: Vec<Finding>,
}

/// Names what is wrong with a rowset's off-row values. `is_whole`: all its rows were seen, so that what no row refers to
/// is an orphan. Also the number of fragments to which only deleted rows refer.
pub(crate) fn lob(context: &Context<'_>, plan: &RowsetPlan, weight: u64, is_whole: bool) -> (Vec<Finding>, u64) {
    let units: BTreeSet<UnitIndex> = plan.text_units.iter().copied().chain([plan.in_row]).collect();
    let mut look = Look {
        context,
        plan,
        stretches: stretches(context, &units),
        sound: BTreeSet::new(),
        suspects: BTreeMap::new(),
        lost: BTreeSet::new(),
        wrong: BTreeSet::new(),
        owners: BTreeSet::new(),
        findings: Vec::new(),
    };
    look.gather(weight);
    let suspects = std::mem::take(&mut look.suspects);
    for (at, suspect) in suspects.iter().filter(|(_, suspect)| !suspect.references.is_empty()) {
        look.referenced(*at, suspect);
    }
    let mut doubts = 0;
    for (at, suspect) in suspects.iter().filter(|(_, suspect)| is_whole && suspect.references.is_empty()) {
        let Some((unit, held)) = suspect.fragment else { continue };
        if suspect.ghosts.contains(&held.id) {
            doubts += 1;
        } else if held.kind != Kind::Unknown && !look.lost.contains(&held.id) {
            look.report(&registry::LOB_UNREFERENCED, unit, *at, held.id);
        }
    }
    look.name_owners();
    (look.findings, doubts)
}

impl Look<'_> {
    fn owner(&self, unit: UnitIndex) -> Owner {
        let unknown = Owner::unknown(format::AllocUnitId(0));
        self.context.units.get(unit).map_or(unknown, |unit| unit.owner)
    }

    fn report(&mut self, check: &'static registry::Check, unit: UnitIndex, at: RecordId, id: u64) {
        self.findings.push(self.finding(check, unit, at, id));
    }

    fn finding(&self, check: &'static registry::Check, unit: UnitIndex, at: RecordId, id: u64) -> Finding {
        Finding::new(check).owner(self.owner(unit)).at_record(at).number("text_id", id.cast_signed())
    }

    /// Calls `visit` with all that the rowset's sound pages say.
    fn each(&self, units: &[UnitIndex], visit: &mut dyn FnMut(Fact)) {
        for (&unit, &stretch) in self.stretches.iter().filter(|(unit, _)| units.contains(unit)) {
            if unit == self.plan.in_row {
                self.each_row(stretch, visit);
                continue;
            }
            for_each_sound(self.context, unit, stretch, |id, page, target| {
                visit(Fact::TextPage(id));
                for (slot, span) in target.spans().iter().enumerate() {
                    let Ok(fragment) = Fragment::read(span.of(page)) else { continue };
                    let at = RecordId { page: id, slot: slot as u16 };
                    visit(Fact::Fragment { unit, at, held: held(&fragment) });
                    let from = From { at, unit };
                    links(unit, &fragment, |to| visit(Fact::Reference { from, live: true, to }));
                }
            });
        }
    }

    fn each_row(&self, stretch: Stretch, visit: &mut dyn FnMut(Fact)) {
        let unit = self.plan.in_row;
        let Some(plan) = self.context.lob.rows(unit) else { return };
        for_each_sound(self.context, unit, stretch, |id, page, target| {
            if !is_leaf_of(self.context, unit, page) {
                return;
            }
            for slot in 0..target.spans().len() {
                let Some(record) = target.record(page, slot) else { continue };
                let from = From { at: RecordId { page: id, slot: slot as u16 }, unit };
                let live = is_live(&record);
                plan.each(&record, |seen| {
                    if let InRow::Reference(to) = seen {
                        visit(Fact::Reference { from, live, to });
                    }
                });
            }
        });
    }

    /// Keeps what is said of places that the two sides see differently.
    fn gather(&mut self, weight: u64) {
        let context = self.context;
        let units: Vec<UnitIndex> = self.stretches.keys().copied().collect();
        let wanted = (weight / FRAGMENTS_A_CELL).clamp(*CELLS.start(), *CELLS.end()).next_power_of_two();
        let cell_of = |at: RecordId| (context.hash.spread(at) & (wanted - 1)) as usize;
        let mut cells = vec![(Sum::default(), Sum::default()); wanted as usize];
        let mut sound = BTreeSet::new();
        self.each(&units, &mut |fact| match fact {
            Fact::TextPage(page) => _ = sound.insert(page),
            Fact::Fragment { at, held, .. } => {
                if let Some((found, _)) = cells.get_mut(cell_of(at)) {
                    if !matches!(held.kind, Kind::Unknown | Kind::Malformed) {
                        found.add(context.hash.fragment(at, held.id));
                    }
                    if let Kind::Part { size, level } = held.kind {
                        found.add(context.hash.part(at, size, level));
                    }
                }
            }
            Fact::Reference { live: true, to, .. } => {
                if let Some((_, named)) = cells.get_mut(cell_of(to.target)) {
                    named.add(context.hash.fragment(to.target, to.id));
                    if let Some((size, level)) = to.expects.part() {
                        named.add(context.hash.part(to.target, size, level));
                    }
                }
            }
            Fact::Reference { .. } => {}
        });
        let differs = |at: RecordId| cells.get(cell_of(at)).is_some_and(|(found, named)| found != named);
        let mut suspects: BTreeMap<RecordId, Suspect> = BTreeMap::new();
        self.each(&units, &mut |fact| match fact {
            Fact::Fragment { unit, at, held } if differs(at) => {
                suspects.entry(at).or_default().fragment = Some((unit, held));
            }
            Fact::Reference { from, live, to } if differs(to.target) => {
                let suspect = suspects.entry(to.target).or_default();
                if live { suspect.references.push((from, to)) } else { suspect.ghosts.push(to.id) }
            }
            _ => {}
        });
        for suspect in suspects.values_mut() {
            suspect.references.sort_by_key(|(from, _)| *from);
        }
        (self.suspects, self.sound) = (suspects, sound);
    }

    /// Something is wrong with the value to which this reference belongs.
    fn blame(&mut self, from: From, id: u64) {
        if from.unit == self.plan.in_row {
            self.owners.insert((from.at, id));
        } else {
            self.wrong.insert(id);
        }
    }

    /// A place to which something refers.
    fn referenced(&mut self, at: RecordId, suspect: &Suspect) {
        let Some((unit, held)) = suspect.fragment else {
            for (from, to) in &suspect.references {
                self.unseen(at, *from, to);
            }
            return;
        };
        let fits = |to: &Reference| to.unit == unit && to.id == held.id;
        let fitting: Vec<&(From, Reference)> = suspect.references.iter().filter(|(_, to)| fits(to)).collect();
        for (from, to) in suspect.references.iter().filter(|(_, to)| !fits(to)) {
            self.blame(*from, to.id);
            let refer = |finding: Finding| finding.ref_at(from.at.page, from.at.slot);
            let finding = if to.unit == unit {
                self.finding(&registry::LOB_MISMATCH, unit, at, held.id).state(ID_DIFFERS)
            } else {
                let finding = Finding::new(&registry::LOB_CROSS_UNIT).owner(self.owner(from.unit)).at_record(at);
                finding.other_owner(self.owner(unit))
            };
            self.findings.push(refer(finding));
        }
        if held.kind == Kind::Unknown {
            // 8962 says so.
            self.lost.insert(held.id);
            for (from, to) in fitting {
                self.blame(*from, to.id);
            }
        } else if let [(first, to), (second, _), ..] = fitting.as_slice() {
            let finding = self.finding(&registry::LOB_TWO_PARENTS, unit, at, held.id);
            let finding = finding.ref_at(first.at.page, first.at.slot);
            let finding = finding.page_value("other_page", second.at.page).number("other_slot", second.at.slot);
            self.findings.push(finding);
            let id = to.id;
            for (from, _) in &fitting {
                self.blame(*from, id);
            }
        } else if let [(from, to)] = fitting.as_slice()
            && let Some(state) = to.expects.mismatch(held.kind)
        {
            let finding = self.finding(&registry::LOB_MISMATCH, unit, at, held.id).state(state);
            self.findings.push(finding.ref_at(from.at.page, from.at.slot));
            self.blame(*from, to.id);
            // What it was, and what hung below it, is not known.
            if !matches!(held.kind, Kind::Part { level: 1.., .. } | Kind::Root { .. }) {
                self.lost.insert(held.id);
            }
        }
    }

    /// A place where nothing is to which something refers.
    fn unseen(&mut self, at: RecordId, from: From, to: &Reference) {
        self.blame(from, to.id);
        let owner = self.context.survey.owner(at.page);
        if let Some(other) = owner.filter(|owner| !self.plan.text_units.contains(owner)) {
            let finding = Finding::new(&registry::LOB_CROSS_UNIT).owner(self.owner(from.unit)).at_record(at);
            self.findings.push(finding.ref_at(from.at.page, from.at.slot).other_owner(self.owner(other)));
            return;
        }
        if owner.is_some() && !self.sound.contains(&at.page) {
            self.lost.insert(to.id);
        }
        let finding = self.finding(&registry::LOB_UNSEEN, to.unit, at, to.id);
        self.findings.push(finding.ref_at(from.at.page, from.at.slot));
    }

    /// 8929 for each row that owns a value in which something is wrong.
    fn name_owners(&mut self) {
        let mut owners = std::mem::take(&mut self.owners);
        if !self.wrong.is_empty() {
            self.each(&[self.plan.in_row], &mut |fact| {
                if let Fact::Reference { from, live: true, to } = fact
                    && self.wrong.contains(&to.id)
                {
                    owners.insert((from.at, to.id));
                }
            });
        }
        let owner = self.owner(self.plan.in_row);
        let kind = if owner.index_id > 1 { "index" } else { "data" };
        for (row, id) in owners {
            let finding = Finding::new(&registry::LOB_OWNER).owner(owner).at_record(row);
            let finding = finding.number("text_id", id.cast_signed()).text_value("record_kind", kind);
            self.findings.push(finding.text_value("record", format!("RID = {row}")));
        }
    }
}
