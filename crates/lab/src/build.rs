//! Builds a table: the heap or clustered index with its off-row values, then the nonclustered indexes.

use std::ops::Range;

use crate::description::{Compression, Description, Index, Table};
use crate::disk::LabError;
use crate::heap::Heap;
use crate::ids::{RowId, UnitId};
use crate::keys::{IndexOrder, KeyOrder};
use crate::layout::{Layout, Source};
use crate::lob::{BlobIds, LobStore};
use crate::off_row::OffRow;
use crate::random::mix;
use crate::row::{Extra, Kind, Row};
use crate::rowset;
use crate::space::{Space, Unit};
use crate::tree::Tree;
use crate::values::Rows;
use crate::version::Version;

/// Kinds of allocation units, with their numbers in sysallocunits.
pub(crate) mod unit_kind {
    #![allow(missing_docs)]
    pub(crate) const IN_ROW: u8 = 1;
    pub(crate) const LOB: u8 = 2;
    pub(crate) const OVERFLOW: u8 = 3;
}

/// A rowset that has been written.
pub(crate) struct BuiltRowset {
    /// Object ID of the table.
    pub object: i32,
    /// Index ID.
    pub index: i32,
    /// Partition number, from 1.
    pub partition: u32,
    /// Rowset ID.
    pub id: u64,
    /// sysrowsets.status.
    pub status: i64,
    /// Fill factor.
    pub fill_factor: u8,
    /// Compression level.
    pub compression: u8,
    /// The layout of the records.
    pub layout: Layout,
    /// The allocation units, each with its kind.
    pub units: Vec<(u8, Unit)>,
    /// Number of rows.
    pub rows: u64,
}

/// Assigns IDs that are unique within the database.
#[derive(Clone)]
pub(crate) struct Ids {
    next_unit: u64,
    next_rowset: u64,
    next_object: i32,
    /// Blob ids.
    pub blobs: BlobIds,
}

impl Ids {
    /// Starts all sequences of IDs at their first value.
    pub(crate) fn new() -> Self {
        Self { next_unit: 1, next_rowset: 1, next_object: 245_575_913, blobs: BlobIds::default() }
    }

    /// The next allocation unit ID. Its high word is 0x100.
    pub(crate) fn unit(&mut self) -> u64 {
        self.next_unit += 1;
        0x100 << 48 | (self.next_unit - 1) << 16
    }

    /// The next rowset ID, from a separate sequence.
    pub(crate) fn rowset(&mut self) -> u64 {
        self.next_rowset += 1;
        0x100 << 48 | (self.next_rowset - 1) << 16
    }

    /// The object ID that was assigned last.
    pub(crate) fn last_object(&self) -> i32 {
        self.next_object
    }

    /// The sequence number from which the ID of the next allocation unit is made.
    pub(crate) fn unit_sequence(&self) -> u64 {
        self.next_unit
    }

    /// The next object ID for which `taken` returns false. SQL Server also assigns object IDs in steps of 16,000,057.
    pub(crate) fn object(&mut self, taken: impl Fn(i32) -> bool) -> i32 {
        loop {
            self.next_object = match self.next_object.checked_add(16_000_057) {
                Some(next) => next,
                None => self.next_object % 16_000_057 + 100_000,
            };
            if !taken(self.next_object) {
                return self.next_object;
            }
        }
    }
}

impl Default for Ids {
    fn default() -> Self {
        Self::new()
    }
}

/// The seed from which the rows of a table are generated.
pub(crate) fn table_seed(description: &Description, number: usize) -> u64 {
    mix(description.seed ^ mix(number as u64 + 0xABCD))
}

/// Builds the rowsets of one table.
pub(crate) struct TableBuilder<'a> {
    /// The description of the database.
    pub description: &'a Description,
    /// The description of the table.
    pub table: &'a Table,
    /// The object ID of the table.
    pub object: i32,
    /// The rows of the table.
    pub rows: Rows<'a>,
    /// The order in which the rows are stored.
    pub order: KeyOrder,
    /// The addresses of heap rows, by row number.
    addresses: Vec<RowId>,
}

/// The maximum number of rows in a heap that has nonclustered indexes. There is such a limit, because the addresses of
/// all rows are kept in memory, in eight bytes each.
const MOST_ADDRESSES: u64 = 20_000_000;

impl<'a> TableBuilder<'a> {
    /// Prepares the builder of a table.
    pub(crate) fn new(description: &'a Description, number: usize, object: i32) -> Result<Self, LabError> {
        let table = &description.tables[number];
        let rows = Rows::new(table, table_seed(description, number));
        let order = KeyOrder::clustered(table, description.collation, &rows)?;
        if table.partitions > 1 && !order.is_natural() {
            let name = &table.name;
            return Err(LabError::Description(format!(
                "table {name} has partitions: its key must be of serial values"
            )));
        }
        Ok(Self { description, table, object, rows, order, addresses: Vec::new() })
    }

    /// Builds all rowsets of the table.
    pub(crate) fn build(mut self, space: &mut Space, ids: &mut Ids) -> Result<Vec<BuiltRowset>, LabError> {
        let mut built = Vec::new();
        for part in 0..self.parts() {
            built.push(self.build_base(space, ids, part)?);
        }
        for number in 0..self.table.indexes.len() {
            for part in 0..self.parts() {
                built.push(self.build_index(space, ids, number, part)?);
            }
        }
        Ok(built)
    }

    fn parts(&self) -> u32 {
        self.table.partitions.max(1)
    }

    /// The row numbers of a partition. Each partition has an equal share of the rows, in the order of their numbers.
    fn span(&self, part: u32) -> Range<u64> {
        let (count, parts) = (self.rows.count(), u64::from(self.parts()));
        let part = u64::from(part);
        count * part / parts..count * (part + 1) / parts
    }

    /// Returns the index of a partition's filegroup. The partitions use the filegroups in turn: partition 0 uses the
    /// filegroup `first`, the next partition the next filegroup.
    fn group(&self, first: usize, part: u32) -> usize {
        (first + part as usize) % self.description.filegroups.len()
    }

    fn unit(&self, id: u64, group: usize) -> Unit {
        let mut unit = Unit::new(UnitId(id), group as u16 + 1);
        // From SQL Server 2016 on, user databases allocate uniform extents even for the first pages of a table.
        unit.mixed_first = self.description.version < Version::V852;
        unit.fragmented = self.table.fragmented;
        unit
    }

    /// The share of the table in the extents that are reserved without pages in use.
    fn share(&self) -> Option<(u32, u32)> {
        let with_reserve = || self.description.tables.iter().filter(|table| table.has_reserve);
        let number = with_reserve().position(|table| std::ptr::eq(table, self.table))?;
        Some((number as u32, with_reserve().count() as u32))
    }

    fn is_versioned(&self, n: u64) -> bool {
        let every = self.table.versioned_every;
        every > 0 && n.is_multiple_of(every)
    }

    fn is_ghost(&self, n: u64) -> bool {
        let every = self.table.ghost_every;
        every > 0 && n % every == every - 1
    }

    fn build_base(&mut self, space: &mut Space, ids: &mut Ids, part: u32) -> Result<BuiltRowset, LabError> {
        let layout = rowset::base(self.table, self.description.collation, self.description.version);
        let id = ids.rowset();
        let group = self.group(self.table.filegroup, part);
        let mut in_row = self.unit(ids.unit(), group);
        in_row.share = self.share();
        let has_lobs = self.table.columns.iter().any(|column| column.is_stored() && column.ty.is_lob());
        let mut off_row = OffRow {
            lob: has_lobs.then(|| LobStore::new(self.unit(ids.unit(), group))),
            overflow: layout.can_overflow().then(|| LobStore::new(self.unit(ids.unit(), group))),
        };
        let (unit, rows) = if self.table.clustered.is_some() {
            self.fill_tree((space, ids), &layout, in_row, &mut off_row, self.span(part))?
        } else {
            self.fill_heap((space, ids), &layout, in_row, &mut off_row, self.span(part))?
        };
        let mut units = vec![(unit_kind::IN_ROW, unit)];
        if let Some(store) = off_row.lob {
            units.push((unit_kind::LOB, store.finish(space)?));
        }
        if let Some(store) = off_row.overflow {
            units.push((unit_kind::OVERFLOW, store.finish(space)?));
        }
        let index = self.table.clustered.as_ref();
        Ok(BuiltRowset {
            object: self.object,
            index: i32::from(index.is_some()),
            partition: part + 1,
            id,
            status: rowset_status(
                (self.description.version, self.table),
                true,
                index.is_some_and(|index| index.unique),
            ),
            fill_factor: index.map_or(0, |index| index.fill_factor),
            compression: level(self.table.compression),
            layout,
            units,
            rows,
        })
    }

    fn fill_tree(
        &mut self,
        (space, ids): (&mut Space, &mut Ids),
        layout: &Layout,
        unit: Unit,
        off_row: &mut OffRow,
        span: Range<u64>,
    ) -> Result<(Unit, u64), LabError> {
        let fill_factor = self.table.clustered.as_ref().map_or(0, |index| index.fill_factor);
        let mut tree = Tree::new(layout, unit, fill_factor);
        let (mut row, mut extra, mut live) = (Row::default(), Extra::default(), 0);
        for place in span {
            let n = self.order.row(place);
            let kind = if self.is_ghost(n) { Kind::Ghost } else { Kind::Primary };
            self.prepare(space, ids, layout, (n, kind), (&mut row, &mut extra), off_row)?;
            live += u64::from(kind == Kind::Primary);
            tree.push(space, &row, &extra, kind)?;
        }
        Ok((tree.finish(space)?, live))
    }

    fn fill_heap(
        &mut self,
        (space, ids): (&mut Space, &mut Ids),
        layout: &Layout,
        unit: Unit,
        off_row: &mut OffRow,
        span: Range<u64>,
    ) -> Result<(Unit, u64), LabError> {
        let keep = !self.table.indexes.is_empty();
        if keep && self.rows.count() > MOST_ADDRESSES {
            let name = &self.table.name;
            return Err(LabError::Description(format!("heap {name} is too long to have nonclustered indexes")));
        }
        let page_compression = self.table.compression == Compression::Page;
        let mut heap = Heap::new(layout, unit, page_compression, keep);
        let (mut row, mut extra, mut live) = (Row::default(), Extra::default(), 0);
        let every = |every: u64, n: u64| every > 0 && n % every == every - 1;
        for n in span {
            let kind = if self.is_ghost(n) { Kind::Ghost } else { Kind::Primary };
            self.prepare(space, ids, layout, (n, kind), (&mut row, &mut extra), off_row)?;
            live += u64::from(kind == Kind::Primary);
            if kind == Kind::Primary && every(self.table.moved_every, n) {
                heap.push_moved(space, &row, &extra)?;
            } else {
                heap.push(space, &row, &extra, kind)?;
            }
            if every(self.table.hole_every, n) {
                heap.push_hole();
            }
            if heap.has_many_moved() {
                heap.settle(space)?;
            }
        }
        let (unit, addresses) = heap.finish(space)?;
        self.addresses.extend(addresses);
        Ok((unit, live))
    }

    /// Generates row `n` and stores its off-row values. These include values that must be moved off the row because the
    /// row would be too long.
    fn prepare(
        &self,
        space: &mut Space,
        ids: &mut Ids,
        layout: &Layout,
        (n, kind): (u64, Kind),
        (row, extra): (&mut Row, &mut Extra),
        off_row: &mut OffRow,
    ) -> Result<(), LabError> {
        self.rows.fill(n, row);
        extra.set_uniquifier(self.order.uniquifier(n));
        extra.set_row_id(self.addresses.get(n as usize).copied().unwrap_or_default());
        sparse_vector(self.table, row, &mut extra.sparse);
        (extra.versioned, extra.number) = (self.is_versioned(n), n);
        if kind == Kind::Ghost {
            // When SQL Server turns a row into a ghost, it frees the off-row values of the row. So a ghost gets no
            // off-row values.
            off_row.drop_values(self.table, layout, row);
            return Ok(());
        }
        off_row.settle(space, &mut ids.blobs, layout, row, extra)
    }

    fn build_index(&self, space: &mut Space, ids: &mut Ids, number: usize, part: u32) -> Result<BuiltRowset, LabError> {
        let index: &Index = &self.table.indexes[number];
        let layout = rowset::nonclustered(self.table, index, self.description);
        let id = ids.rowset();
        let first = index.filegroup.unwrap_or(self.table.filegroup);
        let unit = self.unit(ids.unit(), self.group(first, part));
        let span = self.span(part);
        let mut tree = Tree::new(&layout, unit, index.fill_factor);
        let order = IndexOrder::new((self.table, index, &layout), &self.rows, &self.order, &self.addresses)?;
        let (mut row, mut extra, mut live) = (Row::default(), Extra::default(), 0);
        let mut wanted = vec![false; self.table.columns.len()];
        for column in &layout.columns {
            if let Source::Column(at) = column.source {
                wanted[at] = true;
            }
        }
        for n in order.filter(|n| span.contains(n)) {
            let kind = if self.is_ghost(n) { Kind::Ghost } else { Kind::Primary };
            self.rows.fill_only(n, |at| wanted[at], &mut row);
            extra.set_uniquifier(self.order.uniquifier(n));
            extra.set_row_id(self.addresses.get(n as usize).copied().unwrap_or_default());
            (extra.versioned, extra.number) = (self.is_versioned(n), n);
            live += u64::from(kind == Kind::Primary);
            tree.push(space, &row, &extra, kind)?;
        }
        let unit = tree.finish(space)?;
        Ok(BuiltRowset {
            object: self.object,
            index: number as i32 + 2,
            partition: part + 1,
            id,
            status: rowset_status((self.description.version, self.table), false, index.unique),
            fill_factor: index.fill_factor,
            compression: level(index.compression),
            layout,
            units: vec![(unit_kind::IN_ROW, unit)],
            rows: live,
        })
    }
}

/// Returns the value of sysrowsets.status, as seen in real files for the rowsets of user tables. Only the meaning of the
/// bit for unique indexes is known.
pub(crate) fn rowset_status((version, table): (Version, &Table), is_table: bool, is_unique: bool) -> i64 {
    let of_tables = if is_table && version > Version::V611 { 0x200 } else { 0 };
    let of_trees = if !is_table || table.clustered.is_some() { 0x40 } else { 0 };
    let since = match version {
        Version::V957 => 0x1004_0000 | of_trees,
        Version::V904 => 0x4_0000 | of_trees,
        _ => 0,
    };
    0x2 | of_tables | since | if is_unique { 4 } else { 0 }
}

fn level(compression: Compression) -> u8 {
    match compression {
        Compression::None => 0,
        Compression::Row => 1,
        Compression::Page => 2,
    }
}

/// Appends the sparse vector of a row: the column IDs in ascending order, then the end offsets, then the values.
fn sparse_vector(table: &Table, row: &Row, out: &mut Vec<u8>) {
    out.clear();
    let values = || table.columns.iter().enumerate().filter(|(_, column)| column.sparse);
    let present = values().filter_map(|(at, _)| Some((at as u16 + 1, row.value(at)?)));
    let present: Vec<(u16, &[u8])> = present.collect();
    if present.is_empty() {
        return;
    }
    out.extend(5u16.to_le_bytes());
    out.extend((present.len() as u16).to_le_bytes());
    out.extend(present.iter().flat_map(|(id, _)| id.to_le_bytes()));
    let mut end = 4 + 4 * present.len();
    for (_, value) in &present {
        end += value.len();
        out.extend((end as u16).to_le_bytes());
    }
    out.extend(present.iter().flat_map(|(_, value)| value.iter()));
}
