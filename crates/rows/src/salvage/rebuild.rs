//! Rebuilds rows of lost pages from nonclustered indexes.
//!
//! Each index row contains the locator of its table row. A row is lost if an index contains its locator but the table
//! does not contain the row. [`Difference`] finds the locators of lost rows in memory that grows with the loss, not
//! with the size of the table. If the memory is too small for all of them, the range of locator hashes is split, and
//! each part is searched in a separate pass. The rows are delivered in the order of their hashes, so the order does not
//! depend on the memory.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;

use catalog::{Database, Rowset};
use format::protection::{undo_torn_bits, verify};
use format::{AllocUnitId, Page, PageBytes, PageId, PageType, RecordId};
use source::PageSource;

use super::difference::{Difference, Hash};
use super::identity::{Identity, each_index_row};
use super::owned::Owned;
use super::strays::each_leaf_page;
use super::{ReadPage, Which};
use crate::index_columns::{Origin, Source, sources};
use crate::leaf::{LeafScratch, Slot, each_slot};
use crate::maps::{InUse, Maps};
use crate::page_set::PageSet;
use crate::scan::in_row_unit;
use crate::table::{Column, Table};
use crate::value::Value;

/// The most passes over the table and its indexes to find lost rows.
const MOST_PASSES: u32 = 100;
/// The memory in bytes for the entry of one lost row, without its values.
const ENTRY_BYTES: usize = 64;

/// A nonclustered index, described like a table that has the columns of the index.
pub(crate) struct IndexTable<'a> {
    source: Source<'a>,
    /// The index, described in the form that the row reader needs.
    pub(crate) table: Table,
    /// For each column of the index, the position of the column in the table.
    targets: Vec<usize>,
}

/// The readable nonclustered indexes of a table, each described like a table.
pub(crate) fn index_tables<'a>(database: &'a Database, table: &Table) -> Vec<IndexTable<'a>> {
    sources(database, table.object_id).into_iter().filter_map(|source| of_source(database, table, source)).collect()
}

fn of_source<'a>(database: &Database, table: &Table, source: Source<'a>) -> Option<IndexTable<'a>> {
    let first = database.rowsets.get(*source.partitions.first()?)?;
    let (mut columns, mut targets) = (Vec::new(), Vec::new());
    for (id, origin) in &source.origins {
        let Origin::Column(wanted) = *origin else { continue };
        let Some(at) = table.columns.iter().position(|column| column.id == wanted) else { continue };
        let own = first.layout.columns.iter().find(|column| column.id == *id)?;
        let like = table.columns.get(at)?;
        columns.push(Column { id: *id, info: own.info, place: crate::table::Place::Stored, ..like.clone() });
        targets.push(at);
    }
    let table = Table { columns, partitions: source.partitions.clone(), ..table.clone() };
    Some(IndexTable { source, table, targets })
}

/// The result of rebuilding rows.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Rebuilt {
    /// The number of rows delivered.
    pub rows: u64,
    /// The names of the indexes from which rows were rebuilt.
    pub indexes: Vec<String>,
    /// Reasons why further rows may be missing, as text.
    pub missing: Vec<String>,
}

/// A function that reduces a damaged page of a partition to its proven rows.
pub(crate) type Mended<'a> = dyn Fn(PageId, usize, &PageBytes) -> Option<Box<PageBytes>> + 'a;

/// The indexes from which rows are rebuilt, and the known facts about the table's own rows.
pub(crate) struct Rebuild<'a> {
    pub(crate) pages: &'a dyn PageSource,
    pub(crate) database: &'a Database,
    pub(crate) table: &'a Table,
    pub(crate) indexes: &'a [IndexTable<'a>],
    /// The pages that the normal reading reached.
    pub(crate) reached: &'a PageSet,
    /// The damaged pages of the table, each with its partition.
    pub(crate) damaged: &'a BTreeMap<PageId, usize>,
    /// Reduces a damaged page to its proven rows.
    pub(crate) mended: &'a Mended<'a>,
    /// The most memory that the rebuild may use, in bytes.
    pub(crate) memory: usize,
}

/// An allocation unit of the table or of one of its indexes.
#[derive(Clone, Copy)]
struct Part<'a> {
    rowset: &'a Rowset,
    partition: usize,
    /// The position of the index; `None` for the table itself.
    index: Option<usize>,
}

/// The values of a lost row, by column position in the table, and the indexes that contain the row.
#[derive(Default)]
struct Entry {
    values: Vec<Option<Owned>>,
    indexes: Vec<usize>,
}

/// A function that receives a rebuilt row: the names of its indexes, and its values.
pub(crate) type EachRow<'s> = dyn FnMut(&str, &[Value<'_>]) -> io::Result<()> + 's;

impl Rebuild<'_> {
    /// Delivers the rows that are in an index but not in the table, ordered by the hash of their locators.
    pub(crate) fn run(&self, reader: &mut dyn ReadPage, each: &mut EachRow<'_>) -> io::Result<Rebuilt> {
        let mut rebuilt = Rebuilt::default();
        if self.indexes.is_empty() {
            return Ok(rebuilt);
        }
        let mut passes = 0;
        let mut pending = vec![0..=Hash::MAX];
        while let Some(range) = pending.pop() {
            passes += 1;
            if passes > MOST_PASSES {
                rebuilt.missing.push(
                    "the nonclustered indexes and the table differ in more rows than fit in memory: a larger --memory \
                     shows all"
                        .to_owned(),
                );
                break;
            }
            let found = match self.lost(&range)? {
                Found::Lost(lost) => self.collect(&lost, reader)?,
                Found::Nameless => {
                    rebuilt.missing.push(
                        "rows of the table do not show their address, so surplus rows of the indexes cannot be found"
                            .to_owned(),
                    );
                    break;
                }
                Found::TooMany => None,
            };
            let Some(found) = found else {
                let (low, high) = (*range.start(), *range.end());
                let middle = low + (high - low) / 2;
                pending.extend([middle + 1..=high, low..=middle].into_iter().filter(|half| !half.is_empty()));
                continue;
            };
            for entry in found.into_values() {
                self.hand_out(&entry, &mut rebuilt, each)?;
            }
        }
        rebuilt.indexes.sort_unstable();
        rebuilt.indexes.dedup();
        Ok(rebuilt)
    }

    fn hand_out(&self, entry: &Entry, rebuilt: &mut Rebuilt, each: &mut EachRow<'_>) -> io::Result<()> {
        let names: Vec<&str> = entry
            .indexes
            .iter()
            .filter_map(|index| self.indexes.get(*index))
            .map(|index| index.source.index.name.as_str())
            .collect();
        let missing = Value::Unreadable(crate::value::Unreadable::NotInAnyIndex);
        let values: Vec<Value<'_>> =
            entry.values.iter().map(|value| value.as_ref().map_or(missing, Owned::value)).collect();
        rebuilt.rows += 1;
        for name in &names {
            if !rebuilt.indexes.iter().any(|known| known == name) {
                rebuilt.indexes.push((*name).to_owned());
            }
        }
        each(&names.join(", "), &values)
    }

    /// The allocation units of the table and of its indexes.
    fn parts(&self) -> (Vec<AllocUnitId>, Vec<Part<'_>>) {
        let of = |partition: usize, index: Option<usize>| {
            let rowset = self.database.rowsets.get(partition)?;
            let unit = in_row_unit(self.database, rowset)?;
            Some((unit.id, Part { rowset, partition, index }))
        };
        let base = self.table.partitions.iter().filter_map(|partition| of(*partition, None));
        let indexes = self.indexes.iter().enumerate();
        let indexes = indexes.flat_map(|(at, index)| index.table.partitions.iter().map(move |part| (*part, at)));
        base.chain(indexes.filter_map(|(partition, at)| of(partition, Some(at)))).unzip()
    }

    /// Finds the locators whose hash is in `range` and that are in an index but not in the table.
    fn lost(&self, range: &RangeInclusive<Hash>) -> io::Result<Found> {
        let (units, parts) = self.parts();
        let Some(base) = parts.iter().find(|part| part.index.is_none()).map(|part| part.rowset) else {
            return Ok(Found::Lost(Vec::new()));
        };
        let share = self.memory / 2 / self.indexes.len().max(1);
        let mut differences: Vec<Difference> = self.indexes.iter().map(|_| Difference::within(share)).collect();
        let (mut scratch, mut bytes) = (LeafScratch::default(), Vec::new());
        let mut is_nameless = false;
        self.each_part(&units, &parts, &mut |part, page, sound| {
            match part.index {
                None => {
                    let identity = Identity::of_table(part.rowset);
                    each_slot(Page::new(sound), part.rowset, &mut scratch, &mut |slot, content| {
                        let Slot::Record(record) = content else { return };
                        match identity.hash(&record, RecordId { page, slot }, &mut bytes) {
                            Some(hash) if range.contains(&hash) => {
                                differences.iter_mut().for_each(|difference| difference.take(hash));
                            }
                            Some(_) => {}
                            None => is_nameless |= crate::leaf::is_row(&record),
                        }
                    });
                }
                Some(index) => {
                    let Some(own) = self.indexes.get(index) else { return Ok(()) };
                    let identity = Identity::of_index(base, part.rowset, &own.source.origins);
                    if let (Some(identity), Some(difference)) = (identity, differences.get_mut(index)) {
                        each_index_row(Page::new(sound), page, part.rowset, &identity, &mut |_, hash| {
                            if range.contains(&hash) {
                                difference.add(hash);
                            }
                        });
                    }
                }
            }
            Ok(())
        })?;
        if is_nameless {
            return Ok(Found::Nameless);
        }
        let mut lost = Vec::new();
        for difference in differences {
            let Some(sides) = difference.sides() else { return Ok(Found::TooMany) };
            lost.extend(sides.added);
        }
        lost.sort_unstable();
        lost.dedup();
        Ok(Found::Lost(lost))
    }

    /// Collects the values that the indexes have for the lost rows; `None` if the values exceed the memory.
    fn collect(&self, lost: &[Hash], reader: &mut dyn ReadPage) -> io::Result<Option<BTreeMap<Hash, Entry>>> {
        let mut entries: BTreeMap<Hash, Entry> = BTreeMap::new();
        if lost.is_empty() {
            return Ok(Some(entries));
        }
        let (units, parts) = self.parts();
        let Some(base) = parts.iter().find(|part| part.index.is_none()).map(|part| part.rowset) else {
            return Ok(Some(entries));
        };
        let each_bytes = ENTRY_BYTES + self.table.columns.len() * size_of::<Option<Owned>>();
        let mut used = 0;
        self.each_part(&units, &parts, &mut |part, page, sound| {
            let Some((index, own)) = part.index.and_then(|index| Some((index, self.indexes.get(index)?))) else {
                return Ok(());
            };
            let Some(identity) = Identity::of_index(base, part.rowset, &own.source.origins) else { return Ok(()) };
            let mut wanted: BTreeMap<u16, Hash> = BTreeMap::new();
            each_index_row(Page::new(sound), page, part.rowset, &identity, &mut |slot, hash| {
                if lost.binary_search(&hash).is_ok() {
                    wanted.insert(slot, hash);
                }
            });
            // When the values exceed the memory, further values are useless, because the range of hashes will be split
            // and searched again.
            if wanted.is_empty() || used > self.memory / 2 {
                return Ok(());
            }
            reader.rows(Which::Index(index), part.partition, page, &mut |place, values| {
                let Some(hash) = wanted.get(&place.slot) else { return Ok(()) };
                let entry = entries.entry(*hash).or_insert_with(|| {
                    used += each_bytes;
                    Entry { values: self.table.columns.iter().map(|_| None).collect(), indexes: Vec::new() }
                });
                for (value, target) in values.iter().zip(&own.targets) {
                    if let Some(room @ None) = entry.values.get_mut(*target) {
                        let value = Owned::of(value);
                        used += value.heap_bytes();
                        *room = Some(value);
                    }
                }
                if !entry.indexes.contains(&index) {
                    entry.indexes.push(index);
                }
                Ok(())
            })
        })?;
        let is_one = lost.len() == 1;
        Ok((used <= self.memory / 2 || is_one).then_some(entries))
    }

    /// Calls `each` with the pages of these allocation units: first the sound pages that are in use, then the damaged
    /// pages of the table, reduced to their proven rows.
    fn each_part(
        &self,
        units: &[AllocUnitId],
        parts: &[Part<'_>],
        each: &mut dyn FnMut(&Part<'_>, PageId, &PageBytes) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut maps = Maps::default();
        let is_wanted = |page| !self.damaged.contains_key(&page);
        each_leaf_page(self.pages, units, &is_wanted, &mut |unit, page, raw| {
            let Some(part) = parts.get(unit) else { return Ok(()) };
            // An index page that may have been freed is no evidence for current rows.
            let is_today = match (maps.in_use(self.pages, page), part.index) {
                (InUse::Yes, _) | (InUse::Unknown, None) => true,
                (InUse::Unknown, Some(_)) => false,
                // A map may mark a page as free although the B-tree contains the page. In this case, the normal scan
                // has already delivered the rows of the page, so they are not lost.
                (InUse::Freed, None) => self.reached.contains(page),
                (InUse::Freed, Some(_)) => false,
            };
            // In a clustered index, the lowest pages above the leaves may have level 0 like the leaves. Only the page
            // type shows the difference.
            let is_index = Page::new(raw).header().kind() == Some(PageType::Index);
            if !is_today || is_index != part.index.is_some() || verify(raw).is_err() {
                return Ok(());
            }
            let mut bytes = Box::new(*raw);
            undo_torn_bits(&mut bytes);
            each(part, page, &bytes)
        })?;
        // The header of a damaged page may name another table, so the damaged pages are read by their addresses.
        for (page, partition) in self.damaged {
            let part = parts.iter().find(|part| part.index.is_none() && part.partition == *partition);
            let raw = self.pages.read_page(*page);
            if let (Some(part), Some(raw)) = (part, raw)
                && let Some(bytes) = (self.mended)(*page, *partition, &raw)
            {
                each(part, *page, &bytes)?;
            }
        }
        Ok(())
    }
}

/// The result of comparing locators.
enum Found {
    /// The hashes of the locators of lost rows, in ascending order.
    Lost(Vec<Hash>),
    /// The difference has more rows than the memory allows.
    TooMany,
    /// The locators of some rows in the table are unknown, so the difference is unknown too.
    Nameless,
}
