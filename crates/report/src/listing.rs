//! Findings and counts in the order in which DBCC lists them (checkdb.md 3.1).

use std::collections::BTreeMap;

use check::registry::{Class, Phase, Repair};
use check::{ErrorCounts, Finding, Report, RowsetCounts};

use crate::message::{self, Message};

/// A report, grouped as DBCC lists it.
pub(crate) struct Listing<'a> {
    /// Findings of the pre-checks: they stand in front of the heading.
    pub(crate) before_heading: Vec<&'a Finding>,
    /// Findings that belong to no single object.
    pub(crate) unattributed: Vec<&'a Finding>,
    /// Objects that have something to say, by ascending object id.
    pub(crate) objects: Vec<ObjectListing<'a>>,
}

/// One object.
pub(crate) struct ObjectListing<'a> {
    pub(crate) id: i32,
    /// Its rowsets in scope; none for an object that only findings name.
    pub(crate) rowsets: Vec<&'a RowsetCounts>,
    pub(crate) findings: Vec<&'a Finding>,
}

impl<'a> Listing<'a> {
    pub(crate) fn of(report: &'a Report) -> Self {
        let (mut before_heading, mut unattributed) = (Vec::new(), Vec::new());
        let mut objects: BTreeMap<i32, ObjectListing<'a>> = BTreeMap::new();
        let empty = |id| ObjectListing { id, rowsets: Vec::new(), findings: Vec::new() };
        for rowset in &report.rowsets {
            let id = rowset.object_id;
            objects.entry(id).or_insert_with(|| empty(id)).rowsets.push(rowset);
        }
        for finding in &report.findings {
            match finding.object_id() {
                _ if finding.check.phase == Phase::Primitive => before_heading.push(finding),
                None => unattributed.push(finding),
                Some(id) => objects.entry(id).or_insert_with(|| empty(id)).findings.push(finding),
            }
        }
        Self { before_heading, unattributed, objects: objects.into_values().collect() }
    }
}

impl ObjectListing<'_> {
    /// The name that messages print.
    pub(crate) fn name(&self) -> String {
        match self.rowsets.first() {
            Some(rowset) if !rowset.name.is_empty() => rowset.display_name(),
            _ => format!("object ID {}", self.id),
        }
    }

    /// Schema and name, dbo included; `None` when the catalogue does not tell.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        self.rowsets
            .first()
            .filter(|rowset| !rowset.name.is_empty())
            .map(|rowset| format!("{}.{}", rowset.schema, rowset.name))
    }

    /// The line that ends an object's messages: how much it holds, or that it was left out; `None` for an object without
    /// heap or clustered index.
    pub(crate) fn counted(&self, name: &str) -> Option<Message> {
        if self.rowsets.iter().any(|rowset| rowset.memory_optimized) {
            return Some(message::memory_optimized(self.id, name));
        }
        self.rows_and_pages().map(|counted| message::rows_in_pages(counted, name))
    }

    /// Rows and in-row data pages of the heap or clustered index, over all partitions; `None` for an object without.
    fn rows_and_pages(&self) -> Option<(u64, u64)> {
        let mut base = self.rowsets.iter().filter(|rowset| rowset.index_id <= 1).peekable();
        base.peek()?;
        Some(base.fold((0, 0), |(rows, pages), rowset| (rows + rowset.rows, pages + rowset.data_pages)))
    }
}

/// How the summary messages count `findings`.
pub(crate) fn counts(findings: &[&Finding]) -> ErrorCounts {
    let of = |class| findings.iter().filter(|finding| finding.class() == class).count() as u64;
    ErrorCounts { allocation: of(Class::Allocation), consistency: of(Class::Consistency) }
}

/// The minimum repair level of `findings`.
pub(crate) fn repair(findings: &[&Finding]) -> Repair {
    findings.iter().map(|finding| finding.repair()).max().unwrap_or(Repair::None)
}
