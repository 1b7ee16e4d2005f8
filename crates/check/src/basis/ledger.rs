//! Collects the findings of a check in bounded memory. Findings beyond the memory limit are sorted and written to
//! temporary files.

use std::collections::{BTreeSet, HashMap};

use findings::Finding;
use findings::registry::Phase;
use format::AllocUnitId;
use sums::spill::{Item, Sorter, TempStore};

/// Collects the findings of all phases and threads, which arrive in any order.
pub(crate) struct FindingCollector {
    findings: Sorter<Finding>,
    space: TempStore,
    limit_bytes: usize,
    /// For each unit of the catalog, the phases that have findings, one bit per phase.
    phases: HashMap<AllocUnitId, u32>,
    /// Objects that have findings.
    objects: BTreeSet<i32>,
}

impl FindingCollector {
    /// Keeps findings of up to about `limit_bytes` in memory.
    pub(crate) fn new(limit_bytes: usize, space: &TempStore) -> Self {
        let findings = Sorter::new(limit_bytes, space);
        Self { findings, space: space.clone(), limit_bytes, phases: HashMap::new(), objects: BTreeSet::new() }
    }

    /// Adds a finding.
    pub(crate) fn push(&mut self, finding: Finding) {
        // Units that are named only by damaged headers are excluded, because there may be one per damaged page.
        if let Some(owner) = finding.owner.filter(|owner| owner.kind.is_some()) {
            *self.phases.entry(owner.alloc_unit).or_default() |= 1 << finding.check.phase as u32;
        }
        self.objects.extend(finding.object_id());
        self.findings.push(finding);
    }

    /// The objects that have findings.
    pub(crate) fn objects(&self) -> &BTreeSet<i32> {
        &self.objects
    }

    /// The units of the catalog that have findings in any phase for which `asked` returns true.
    pub(crate) fn units(&self, asked: fn(Phase) -> bool) -> impl Iterator<Item = AllocUnitId> + '_ {
        let mask = Phase::ALL.iter().filter(|phase| asked(**phase)).fold(0, |mask, phase| mask | 1 << *phase as u32);
        self.phases.iter().filter(move |(_, phases)| **phases & mask != 0).map(|(unit, _)| *unit)
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
