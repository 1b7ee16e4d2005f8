//! Findings and counts in the order in which DBCC lists them (docs/format/checkdb.md#order-of-lines).

use std::collections::BTreeMap;

use findings::{Group, Report, RowsetCounts};

use crate::message::{self, Message};

/// A report, grouped as DBCC lists it.
#[derive(Default)]
pub(crate) struct Listing<'a> {
    /// Findings of the pre-checks, which come before the heading.
    pub(crate) before_heading: Group,
    /// Findings that belong to no single object.
    pub(crate) unattributed: Group,
    /// The objects to list, by ascending object id: objects with rowsets in the scope of the check, and objects that
    /// findings name.
    pub(crate) objects: Vec<ObjectListing<'a>>,
}

/// One object.
pub(crate) struct ObjectListing<'a> {
    pub(crate) id: i32,
    /// The rowsets in the scope of the check; empty if only findings name the object.
    pub(crate) rowsets: Vec<&'a RowsetCounts>,
    pub(crate) findings: Group,
}

impl<'a> Listing<'a> {
    pub(crate) fn of(report: &'a Report) -> Self {
        let mut listing = Self::default();
        let mut objects: BTreeMap<i32, ObjectListing<'a>> = BTreeMap::new();
        let empty = |id| ObjectListing { id, rowsets: Vec::new(), findings: Group::default() };
        for rowset in &report.rowsets {
            let id = rowset.object_id;
            objects.entry(id).or_insert_with(|| empty(id)).rowsets.push(rowset);
        }
        for group in report.findings.groups() {
            let place = match group.object_id {
                _ if group.is_primitive => &mut listing.before_heading,
                None => &mut listing.unattributed,
                Some(id) => &mut objects.entry(id).or_insert_with(|| empty(id)).findings,
            };
            place.clone_from(group);
        }
        listing.objects = objects.into_values().collect();
        listing
    }
}

impl ObjectListing<'_> {
    /// The object's name, as messages use it.
    pub(crate) fn name(&self) -> String {
        match self.rowsets.first() {
            Some(rowset) if !rowset.name.is_empty() => rowset.display_name(),
            _ => format!("object ID {}", self.id),
        }
    }

    /// The name with its schema, even if the schema is dbo; `None` if the catalog does not have the names.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        self.rowsets
            .first()
            .filter(|rowset| !rowset.name.is_empty())
            .map(|rowset| format!("{}.{}", rowset.schema, rowset.name))
    }

    /// The line that ends an object's messages: its rows and pages, or that it was skipped. `None` for an object
    /// without a heap or clustered index. Also `None` if the object has pages in a file that was not given, or that are left for
    /// later windows, because its rows could not be counted.
    pub(crate) fn counted(&self, name: &str) -> Option<Message> {
        if self.rowsets.iter().any(|rowset| rowset.memory_optimized) {
            return Some(message::memory_optimized(self.id, name));
        }
        self.rows_and_pages().map(|counted| message::rows_in_pages(counted, name))
    }

    /// Rows and in-row data pages of the heap or clustered index, over all partitions. `None` if the object has neither
    /// a heap nor a clustered index, or if not all of its pages could be counted.
    pub(crate) fn rows_and_pages(&self) -> Option<(u64, u64)> {
        let mut base = self.rowsets.iter().filter(|rowset| rowset.index_id <= 1).peekable();
        base.peek().filter(|_| {
            !self.rowsets.iter().any(|rowset| rowset.index_id <= 1 && (rowset.lacks_file || rowset.is_open))
        })?;
        Some(base.fold((0, 0), |(rows, pages), rowset| (rows + rowset.rows, pages + rowset.data_pages)))
    }
}
