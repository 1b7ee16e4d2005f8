//! Collects the findings of a check in bounded memory. Findings beyond the memory limit are sorted and written to
//! temporary files.

use std::collections::{BTreeSet, HashMap};

use findings::Finding;
use format::AllocUnitId;
use sums::spill::{Item, Sorter, TempStore};

/// Collects the findings of all phases and threads, which arrive in any order.
pub(crate) struct FindingCollector {
    findings: Sorter<Finding>,
    space: TempStore,
    limit_bytes: usize,
    /// For each unit of the catalog that has findings, what they say about the unit.
    units: HashMap<AllocUnitId, UnitDamage>,
    /// Objects that have findings.
    objects: BTreeSet<i32>,
}

/// What the findings of a unit say about comparisons of its rows.
#[derive(Clone, Copy, Default)]
pub(crate) struct UnitDamage {
    /// Rows of the unit may be missing or wrong.
    pub(crate) hides_rows: bool,
    /// The fragments of off-row values contradict the pointers to them.
    pub(crate) is_off_row: bool,
}

impl FindingCollector {
    /// Keeps findings of up to about `limit_bytes` in memory.
    pub(crate) fn new(limit_bytes: usize, space: &TempStore) -> Self {
        let findings = Sorter::new(limit_bytes, space);
        Self { findings, space: space.clone(), limit_bytes, units: HashMap::new(), objects: BTreeSet::new() }
    }

    /// Adds a finding.
    pub(crate) fn push(&mut self, finding: Finding) {
        // Units that are named only by damaged headers are excluded, because there may be one per damaged page.
        if let Some(owner) = finding.owner.filter(|owner| owner.kind.is_some()) {
            let unit = self.units.entry(owner.alloc_unit).or_default();
            unit.hides_rows |= finding.check.hides_rows();
            unit.is_off_row |= finding.check.is_of_off_row_values();
        }
        self.objects.extend(finding.object_id());
        self.findings.push(finding);
    }

    /// The objects that have findings.
    pub(crate) fn objects(&self) -> &BTreeSet<i32> {
        &self.objects
    }

    /// The units of the catalog whose findings are of the kind that `asked` selects.
    pub(crate) fn units(&self, asked: fn(UnitDamage) -> bool) -> impl Iterator<Item = AllocUnitId> + '_ {
        self.units.iter().filter(move |(_, damage)| asked(**damage)).map(|(unit, _)| *unit)
    }

    /// The approximate number of bytes that findings may use in memory.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// A sorter for other items, with the same memory limit.
    pub(crate) fn sorter<T: Item>(&self) -> Sorter<T> {
        Sorter::new(self.limit_bytes, &self.space)
    }

    /// All findings in listing order, without duplicates.
    pub(crate) fn into_sorted(self) -> impl Iterator<Item = Finding> {
        let mut last: Option<Finding> = None;
        self.findings.into_sorted().filter(move |finding| {
            let is_new = last.as_ref().is_none_or(|last| !last.is_same(finding));
            if is_new {
                last = Some(finding.clone());
            }
            is_new
        })
    }
}

impl Extend<Finding> for FindingCollector {
    fn extend<I: IntoIterator<Item = Finding>>(&mut self, findings: I) {
        findings.into_iter().for_each(|finding| self.push(finding));
    }
}
