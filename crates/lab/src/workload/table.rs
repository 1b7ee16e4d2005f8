//! The tables of a workload, with their rowsets and rows.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::chain::RowChange;
use super::key::KeyLayout;
use super::{TableTruth, Values};
use crate::catalogue::TableIds;
use crate::description::Table;
use crate::ids::{PageId, RowId, UnitId};
use crate::random::Random;
use crate::row::{Extra, Row};
use crate::values::Rows;

/// A heap or an index.
#[derive(Clone)]
pub(super) struct Rowset {
    pub(super) id: u64,
    pub(super) unit: UnitId,
    pub(super) object: i32,
    pub(super) root: PageId,
    pub(super) iam: PageId,
    pub(super) keys: KeyLayout,
    /// Whether the leaf rows are data records, as in a heap or clustered index.
    pub(super) is_base: bool,
    pub(super) is_heap: bool,
    /// Whether the pages have fragments of long values instead of rows. Fragments are inserted like the rows of a heap.
    pub(super) is_lob: bool,
    /// Whether the rowset was dropped, or never came into being because its transaction was rolled back.
    pub(super) is_gone: bool,
    /// The pages, if the rowset is a heap or a LOB unit.
    pub(super) pages: Vec<PageId>,
    /// The uniform extents of the rowset.
    pub(super) extents: Vec<u32>,
    pub(super) counts: Counts,
    /// The places of the catalog rows for this rowset: in sysallocunits (`unit_row`) and in sysrowsets (`rowset_row`).
    pub(super) unit_row: (PageId, u16),
    pub(super) rowset_row: (PageId, u16),
}

/// The counters of a rowset that the catalog stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) rows: i64,
    pub(super) data: i64,
    pub(super) used: i64,
    pub(super) reserved: i64,
}

/// A row that was not deleted.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) values: Row,
    pub(super) uniquifier: u32,
    pub(super) at: RowId,
    /// The pointer in the row to the long value; `None` if the value is in the row.
    pub(super) pointer: Option<Vec<u8>>,
}

/// A table.
#[derive(Clone)]
pub(super) struct TableState<'a> {
    pub(super) table: Cow<'a, Table>,
    pub(super) source: Rows<'a>,
    pub(super) ids: TableIds,
    pub(super) is_dropped: bool,
    pub(super) base: usize,
    /// The nonclustered indexes, as positions among the rowsets.
    pub(super) indexes: Vec<usize>,
    /// The rowset of the LOB unit, and the column whose long values are stored in this unit.
    pub(super) lob: Option<(usize, usize)>,
    /// The current rows, by row number.
    pub(super) rows: BTreeMap<u64, Live>,
    /// The committed rows, by row number.
    pub(super) settled: BTreeMap<u64, Live>,
    /// The number that the next new row gets.
    pub(super) next: u64,
    /// Deleted rows that may be inserted again: the row numbers with their uniquifiers.
    pub(super) gone: BTreeMap<u64, u32>,
    /// The next uniquifier for each key.
    pub(super) uniquifiers: BTreeMap<Vec<u8>, u32>,
}

impl TableState<'_> {
    /// Makes the current state of a row the committed state; returns the row before and after, if it changed.
    pub(super) fn settle(&mut self, table: usize, row: u64) -> Option<RowChange> {
        let before = match self.rows.get(&row) {
            Some(live) => self.settled.insert(row, live.clone()),
            None => self.settled.remove(&row),
        };
        let before = before.map(|live| self.values(&live));
        let after = self.settled.get(&row).map(|live| self.values(live));
        (before != after).then_some(RowChange { table, before, after })
    }

    /// The values of a row, one for each column.
    pub(super) fn values(&self, live: &Live) -> Values {
        let columns = self.table.columns.iter().enumerate().filter(|(_, column)| !column.is_dropped());
        columns.map(|(at, _)| live.values.value(at).map(<[u8]>::to_vec)).collect()
    }

    /// The table without its rows.
    pub(super) fn without_rows(&self) -> TableTruth {
        TableTruth { name: self.table.name.clone(), columns: self.names(), rows: Vec::new() }
    }

    /// The names of the columns.
    pub(super) fn names(&self) -> Vec<String> {
        let kept = self.table.columns.iter().filter(|column| !column.is_dropped());
        kept.map(|column| column.name.clone()).collect()
    }

    /// Returns a row to its committed state when a transaction is rolled back.
    pub(super) fn return_to_settled(&mut self, row: u64) {
        match self.settled.get(&row) {
            Some(live) => self.rows.insert(row, live.clone()),
            None => self.rows.remove(&row),
        };
    }

    /// The uniquifier of a new row. It is the number of earlier rows with the same key.
    pub(super) fn uniquifier(&mut self, row: u64) -> u32 {
        let Some(index) = self.table.clustered.as_ref().filter(|index| !index.unique) else { return 0 };
        let mut values = Row::default();
        self.source.fill(row, &mut values);
        let key: Vec<u8> =
            index.keys.iter().flat_map(|&(at, _)| values.value(at).unwrap_or_default().to_vec()).collect();
        let next = self.uniquifiers.entry(key).or_default();
        *next += 1;
        *next - 1
    }

    /// Whether a column belongs to the clustering key.
    pub(super) fn is_key(&self, column: usize) -> bool {
        self.table.clustered.iter().any(|index| index.keys.iter().any(|&(key, _)| key == column))
    }

    /// A copy of the row `old` in which some values are replaced by the values of the row `other`. Key columns are not
    /// changed.
    pub(super) fn blend(&self, old: &Row, other: u64, dice: &mut Random) -> Row {
        let (mut fresh, mut row) = (Row::default(), Row::default());
        self.source.fill(other, &mut fresh);
        let columns = self.table.columns.len();
        let must = dice.below(columns as u64) as usize;
        for at in 0..columns {
            let changes = (at == must || dice.chance(30)) && at > 0 && !self.is_key(at);
            match if changes { fresh.value(at) } else { old.value(at) } {
                Some(bytes) => row.push(bytes),
                None => row.push_null(),
            }
        }
        row
    }
}

impl Live {
    /// The values as the row stores them, with a pointer instead of a long value that does not fit.
    pub(super) fn stored(&self, lob_column: Option<usize>) -> Row {
        let mut row = self.values.clone();
        if let (Some(pointer), Some(at)) = (&self.pointer, lob_column) {
            row.replace_by_pointer(at, pointer);
        }
        row
    }

    pub(super) fn extra(&self) -> Extra {
        let mut extra = Extra::default();
        extra.set_uniquifier(self.uniquifier);
        extra.set_row_id(self.at);
        extra
    }
}
