//! The findings of a report in listing order. A few findings are kept in memory; if there are more, they are stored in
//! a file.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::OnceLock;

use sums::spill::{Item, Reader, TempStore, read_item, write_item};

use crate::finding::Finding;
use crate::registry::{Class, Repair};

/// Numbers of errors, by the categories of CHECKDB's summary lines.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ErrorCounts {
    /// Allocation errors.
    pub allocation: u64,
    /// Consistency errors.
    pub consistency: u64,
}

impl ErrorCounts {
    /// Whether there is any error.
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

/// All findings of a report, in groups.
#[derive(Default)]
pub struct Findings {
    groups: Vec<Group>,
    /// A file with the first findings, if not all findings fit into memory.
    file: Option<Stored>,
    /// The findings in memory; in listing order, they follow those in the file.
    kept: Vec<Finding>,
    error: OnceLock<String>,
}

/// Findings in a file.
struct Stored {
    file: File,
    bytes: u64,
    count: usize,
}

/// Findings that are listed together.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Whether the findings of this group come from the pre-checks. Their group is listed first.
    pub is_primitive: bool,
    /// The object that the findings of this group belong to; `None` if they belong to no single object.
    pub object_id: Option<i32>,
    /// Numbers of errors of this group in the summary.
    pub counts: ErrorCounts,
    /// The highest of the minimum repair levels of the findings in this group.
    pub repair: Repair,
    range: Range<usize>,
    /// Offset of the group's first finding in the file.
    offset: u64,
}

impl Group {
    /// The number of findings.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether the group is empty.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The sort key of a finding's group. Groups are listed in the order of their keys.
    pub fn key(finding: &Finding) -> (bool, Option<i32>) {
        match finding.check.is_primitive() {
            true => (false, None),
            false => (true, finding.object_id()),
        }
    }

    fn count(&mut self, finding: &Finding) {
        self.range.end += 1;
        self.repair = self.repair.max(finding.repair());
        match finding.class() {
            Class::Allocation => self.counts.allocation += 1,
            Class::Consistency => self.counts.consistency += 1,
            Class::Uncounted => {}
        }
    }
}

impl Findings {
    /// The number of findings.
    pub fn len(&self) -> usize {
        self.groups.last().map_or(0, |group| group.range.end)
    }

    /// Whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The groups in listing order. No group is empty.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// All findings.
    pub fn iter(&self) -> Iter<'_> {
        self.stretch(0..self.len(), 0)
    }

    /// The findings of a group.
    pub fn of(&self, group: &Group) -> Iter<'_> {
        self.stretch(group.range.clone(), group.offset)
    }

    /// The first finding.
    pub fn first(&self) -> Option<Cow<'_, Finding>> {
        self.iter().next()
    }

    /// One line that says why some findings could not be read back from their file; `None` if all could be read.
    /// Findings that could not be read back are still counted.
    pub fn error(&self) -> Option<&str> {
        self.error.get().map(String::as_str)
    }

    /// Numbers of errors of all groups in the summary.
    pub fn counts(&self) -> ErrorCounts {
        self.groups.iter().fold(ErrorCounts::default(), |sum, group| ErrorCounts {
            allocation: sum.allocation + group.counts.allocation,
            consistency: sum.consistency + group.counts.consistency,
        })
    }

    /// The highest of the minimum repair levels of all findings; [`Repair::None`] if none of them can be repaired.
    pub fn repair(&self) -> Repair {
        self.groups.iter().map(|group| group.repair).max().unwrap_or_default()
    }

    fn stretch(&self, range: Range<usize>, offset: u64) -> Iter<'_> {
        let stored = self.file.as_ref().filter(|stored| range.start < stored.count);
        let in_file = self.file.as_ref().map_or(0, |stored| stored.count);
        let kept = self.kept.get(range.start.max(in_file) - in_file..range.end.max(in_file) - in_file);
        Iter {
            findings: self,
            reader: stored.map(|stored| Reader::new(&stored.file, offset, stored.bytes, BUFFER_BYTES)),
            in_file: range.end.min(in_file).saturating_sub(range.start),
            kept: kept.unwrap_or_default().iter(),
        }
    }
}

/// The number of bytes per write to the file and per read from it.
const BUFFER_BYTES: usize = 1 << 16;

/// An iterator over findings.
pub struct Iter<'a> {
    findings: &'a Findings,
    reader: Option<Reader<&'a File, Finding>>,
    /// The number of findings that remain to be read from the file.
    in_file: usize,
    kept: std::slice::Iter<'a, Finding>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Cow<'a, Finding>;

    fn next(&mut self) -> Option<Cow<'a, Finding>> {
        if let Some(reader) = self.reader.as_mut().filter(|_| self.in_file > 0) {
            match reader.read_next().and_then(|finding| finding.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())) {
                Ok(finding) => {
                    self.in_file -= 1;
                    return Some(Cow::Owned(finding));
                }
                Err(error) => {
                    self.findings
                        .error
                        .get_or_init(|| format!("the temporary file of the findings cannot be read: {error}"));
                    self.in_file = 0;
                }
            }
        }
        self.kept.next().map(Cow::Borrowed)
    }
}

impl<'a> IntoIterator for &'a Findings {
    type Item = Cow<'a, Finding>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl From<Vec<Finding>> for Findings {
    /// Sorts the findings by group. Within a group, they keep their order.
    fn from(mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(Group::key);
        let space = TempStore::default();
        let mut list = List::new(usize::MAX, &space);
        findings.into_iter().for_each(|finding| list.push(finding));
        list.finish()
    }
}

/// Collects findings that arrive in listing order.
pub struct List {
    findings: Findings,
    space: TempStore,
    limit_bytes: usize,
    kept_bytes: usize,
    /// Encoded findings that are not yet written to the file. `pending_count` is their number.
    pending: Vec<u8>,
    pending_count: usize,
}

impl List {
    /// An empty list. It keeps up to about `limit_bytes` of findings in memory.
    pub fn new(limit_bytes: usize, space: &TempStore) -> Self {
        let (findings, space) = (Findings::default(), space.clone());
        Self { findings, space, limit_bytes, kept_bytes: 0, pending: Vec::new(), pending_count: 0 }
    }

    /// Adds the next finding.
    pub fn push(&mut self, finding: Finding) {
        let (behind_primitives, object_id) = Group::key(&finding);
        let is_primitive = !behind_primitives;
        let at = self.findings.len();
        let offset = self.findings.file.as_ref().map_or(0, |stored| stored.bytes) + self.pending.len() as u64;
        let groups = &mut self.findings.groups;
        let is_last =
            groups.last().is_some_and(|last| (last.is_primitive, last.object_id) == (is_primitive, object_id));
        if !is_last {
            groups.push(Group { is_primitive, object_id, range: at..at, offset, ..Group::default() });
        }
        if let Some(group) = groups.last_mut() {
            group.count(&finding);
        }
        if self.findings.file.is_some() && self.findings.kept.is_empty() {
            self.store(&finding);
            return;
        }
        self.kept_bytes += finding.bytes();
        self.findings.kept.push(finding);
        if self.kept_bytes > self.limit_bytes && self.findings.file.is_none() {
            self.open();
        }
    }

    /// Moves the findings in memory to a file, which will also receive all later findings. If no file can be opened,
    /// all findings stay in memory, so none is lost.
    fn open(&mut self) {
        match self.space.file() {
            Ok(file) => {
                self.findings.file = Some(Stored { file, bytes: 0, count: 0 });
                // The file offset of a group is computed here, because it depends on the encoded lengths of the
                // findings before it.
                let kept = std::mem::take(&mut self.findings.kept);
                let mut group = 0;
                for (at, finding) in kept.into_iter().enumerate() {
                    while let Some(next) = self.findings.groups.get_mut(group).filter(|next| next.range.start <= at) {
                        next.offset =
                            self.findings.file.as_ref().map_or(0, |stored| stored.bytes) + self.pending.len() as u64;
                        group += 1;
                    }
                    match self.findings.kept.is_empty() {
                        true => self.store(&finding),
                        false => self.findings.kept.push(finding),
                    }
                }
            }
            Err(error) => {
                self.space.failed(&error);
                self.limit_bytes = usize::MAX;
            }
        }
    }

    fn store(&mut self, finding: &Finding) {
        write_item(finding, &mut self.pending);
        self.pending_count += 1;
        if self.pending.len() >= BUFFER_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let Some(stored) = &mut self.findings.file else { return };
        match stored.file.write_all(&self.pending) {
            Ok(()) => {
                stored.bytes += self.pending.len() as u64;
                stored.count += self.pending_count;
                self.space.wrote(self.pending.len() as u64);
            }
            Err(error) => {
                self.space.failed(&error);
                // The findings that could not be written stay in memory, and so do all later findings.
                let mut rest = self.pending.as_slice();
                while let Some(Ok((finding, length))) = read_item(rest) {
                    self.findings.kept.push(finding);
                    rest = rest.get(length..).unwrap_or_default();
                }
            }
        }
        self.pending.clear();
        self.pending_count = 0;
    }

    /// Returns all findings.
    pub fn finish(mut self) -> Findings {
        self.flush();
        self.findings
    }
}

#[cfg(test)]
mod tests {
    use format::{AllocUnitId, PageId};

    use super::*;
    use crate::finding::Owner;
    use crate::registry;

    /// Findings of several objects, and one that belongs to no object.
    fn made() -> Vec<Finding> {
        let mut findings = vec![Finding::new(&registry::PRIMITIVE_LOOP).page(PageId::new(1, 9))];
        for page in 0..20_000 {
            let object_id = (page / 3000) as i32;
            let owner = Owner { object_id, index_id: 1, partition_id: 1, alloc_unit: AllocUnitId(1), kind: None };
            findings.push(Finding::new(&registry::TREE_PARENT_UNSEEN).owner(owner).page(PageId::new(1, page)));
        }
        findings
    }

    #[test]
    fn every_finding_is_listed_in_its_group_whether_in_memory_or_in_a_file() {
        let expected: Vec<String> = made().iter().map(|finding| format!("{finding:?}")).collect();
        for (limit, can_write) in [(usize::MAX, true), (1 << 20, true), (1000, true), (1 << 20, false)] {
            let space = TempStore::new((!can_write).then(|| "/nowhere/at/all".into()), 0);
            let mut list = List::new(limit, &space);
            made().into_iter().for_each(|finding| list.push(finding));
            let findings = list.finish();
            assert_eq!(findings.file.is_some(), limit != usize::MAX && can_write, "limit {limit}");
            assert_eq!(findings.len(), expected.len());
            let listed: Vec<String> = findings.iter().map(|finding| format!("{finding:?}")).collect();
            assert!(listed == expected, "limit {limit}");
            let groups = findings.groups().iter().flat_map(|group| findings.of(group).map(move |found| (group, found)));
            let listed: Vec<String> = groups.map(|(_, finding)| format!("{finding:?}")).collect();
            assert!(listed == expected, "limit {limit}, by group");
            assert_eq!(findings.groups().len(), 8);
            assert_eq!(findings.groups()[3].object_id, Some(2));
            assert_eq!(findings.groups()[3].counts, ErrorCounts { allocation: 0, consistency: 3000 });
            assert_eq!((space.error().is_none(), findings.error()), (can_write, None));
        }
    }
}
