//! Collects the findings of a check in bounded memory. Findings beyond the memory limit are sorted and written to
//! temporary files.

use std::collections::{BTreeSet, HashMap};

use findings::{Finding, registry};
use format::AllocUnitId;
use sums::spill::{Item, Sorter, TempStore};

/// Collects the findings of all phases and threads, which arrive in any order.
pub(crate) struct FindingCollector {
    findings: Sorter<Finding>,
    space: TempStore,
    limit_bytes: usize,
    /// Whether the changes in the log are in the pages ([`Database::is_recovered`](catalog::Database::is_recovered)).
    is_recovered: bool,
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
        let space = space.clone();
        Self { findings, space, limit_bytes, is_recovered: true, units: HashMap::new(), objects: BTreeSet::new() }
    }

    /// The collector for a database. `is_recovered` says whether the changes in the log are in the pages.
    pub(crate) fn recovered(self, is_recovered: bool) -> Self {
        Self { is_recovered, ..self }
    }

    /// Adds a finding. Drops the finding if a page proves it only after recovery: the sweep records such a finding in
    /// every database, so that the result of a sweep depends on the pages alone.
    pub(crate) fn push(&mut self, finding: Finding) {
        if !self.is_recovered && finding.check == &registry::PAGE_IN_SYSXACT {
            return;
        }
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

#[cfg(test)]
mod tests {
    use catalog::UnitKind;
    use findings::Owner;
    use format::PageId;

    use super::*;

    #[test]
    fn an_open_system_transaction_is_an_error_only_after_recovery() {
        let owner = Owner { object_id: 5, kind: Some(UnitKind::InRow), ..Owner::unknown(AllocUnitId(7)) };
        let of = |check| Finding::new(check).owner(owner).page(PageId::new(1, 200));
        for (is_recovered, check, is_kept) in [
            (true, &registry::PAGE_IN_SYSXACT, true),
            (false, &registry::PAGE_IN_SYSXACT, false),
            (false, &registry::PAGE_FREE_COUNT, true),
        ] {
            let mut findings = FindingCollector::new(1 << 20, &TempStore::default()).recovered(is_recovered);
            findings.push(of(check));
            assert_eq!(findings.units(|_| true).count(), usize::from(is_kept), "the unit counts as damaged");
            assert_eq!(findings.objects().len(), usize::from(is_kept));
            assert_eq!(findings.into_sorted().count(), usize::from(is_kept));
        }
    }
}
