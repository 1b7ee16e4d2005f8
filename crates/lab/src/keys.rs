//! In which order rows go into an index, without sorting what does not fit in memory.
//!
//! Up to a million rows are sorted. For more, the values of the leading key column must tell the order: serial or grouped
//! values rise with the row, and a shuffle of scattered ones can be undone. Rows of equal leading value are few; they are
//! sorted group by group.

use crate::description::{Index, Table, Values};
use crate::disk::LabError;
use crate::ids::RowId;
use crate::layout::{Layout, Source};
use crate::order::push_sort_key;
use crate::row::Row;
use crate::values::Rows;

/// Rows that are sorted in memory.
const MOST_SORTED: u64 = 1 << 20;
/// Rows of equal leading value that are sorted in memory.
const LARGEST_GROUP: u64 = 1 << 16;

/// The order of a table's rows, and what tells those of equal key apart.
pub(crate) struct KeyOrder {
    /// Row numbers in order; none: as they are.
    rows: Option<Vec<u32>>,
    uniquifiers: Uniquifiers,
}

enum Uniquifiers {
    /// All keys differ.
    None,
    /// Rows come in runs of this length with equal keys.
    Runs(u64),
    /// By row number.
    Stored(Vec<u32>),
}

impl KeyOrder {
    /// The order of the table's own rows.
    pub(crate) fn clustered(table: &Table, rows: &Rows) -> Result<Self, LabError> {
        let Some(index) = &table.clustered else { return Ok(Self { rows: None, uniquifiers: Uniquifiers::None }) };
        if let Some(uniquifiers) = natural_order(table, index) {
            return Ok(Self { rows: None, uniquifiers });
        }
        if rows.count() > MOST_SORTED {
            let name = &table.name;
            return Err(LabError::Description(format!("table {name} is too long for its clustering key: use serial values")));
        }
        let mut row = Row::default();
        let mut keyed: Vec<(Vec<u8>, u32)> = Vec::with_capacity(rows.count() as usize);
        for n in 0..rows.count() {
            rows.fill(n, &mut row);
            let mut key = Vec::new();
            for &(column, descending) in &index.keys {
                push_sort_key(table.columns[column].ty, row.value(column), descending, &mut key);
            }
            keyed.push((key, n as u32));
        }
        keyed.sort();
        let uniquifiers = if index.unique {
            if keyed.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return Err(LabError::Description(format!("keys of unique index {} repeat", index.name)));
            }
            Uniquifiers::None
        } else {
            let mut stored = vec![0; keyed.len()];
            for pair in 1..keyed.len() {
                if keyed[pair].0 == keyed[pair - 1].0 {
                    stored[keyed[pair].1 as usize] = stored[keyed[pair - 1].1 as usize] + 1;
                }
            }
            Uniquifiers::Stored(stored)
        };
        Ok(Self { rows: Some(keyed.into_iter().map(|(_, n)| n).collect()), uniquifiers })
    }

    /// The row at a place of the order.
    pub(crate) fn row(&self, place: u64) -> u64 {
        self.rows.as_ref().and_then(|rows| rows.get(place as usize)).map_or(place, |&n| u64::from(n))
    }

    /// The number of a row among those of equal key, from 0.
    pub(crate) fn uniquifier(&self, n: u64) -> u32 {
        match &self.uniquifiers {
            Uniquifiers::None => 0,
            Uniquifiers::Runs(length) => (n % length) as u32,
            Uniquifiers::Stored(stored) => stored.get(n as usize).copied().unwrap_or(0),
        }
    }
}

/// Whether rows are in key order as they are numbered.
fn natural_order(table: &Table, index: &Index) -> Option<Uniquifiers> {
    let values = |at: usize| {
        let &(column, descending) = index.keys.get(at)?;
        let column = table.columns.get(column)?;
        (!descending && wide(column.ty.xtype) && !(column.nullable && column.nulls > 0)).then_some(&column.values)
    };
    match (values(0)?, values(1)) {
        (Values::Serial { step, .. }, _) if *step > 0 => Some(Uniquifiers::None),
        (Values::Grouped { per, .. }, None) if index.keys.len() == 1 => Some(Uniquifiers::Runs(*per)),
        (Values::Grouped { per, .. }, Some(Values::Within { per: within, .. })) if per == within => {
            Some(Uniquifiers::None)
        }
        _ => None,
    }
}

/// Types whose values rise with the number behind them over its whole range.
fn wide(xtype: u8) -> bool {
    matches!(xtype, 56 | 127 | 60 | 106 | 108 | 42 | 61 | 189 | 231 | 239 | 167 | 175)
}

/// The rows of a nonclustered index, in its order.
pub(crate) struct IndexOrder<'a> {
    table: &'a Table,
    index: &'a Index,
    layout: &'a Layout,
    rows: &'a Rows<'a>,
    order: &'a KeyOrder,
    addresses: &'a [RowId],
    groups: Groups,
    /// Groups still to come: from the front, or from the back of a descending key.
    next: u64,
    count: u64,
    /// Rows of the group at hand, last first.
    ready: Vec<u64>,
}

/// Rows of equal leading value, one group after the other.
#[derive(Clone, Copy)]
enum Groups {
    /// All rows are one group.
    One,
    /// So many rows each, as they are numbered.
    Runs(u64),
    /// So many rows each, through the shuffle of this column.
    Scattered(u64, usize),
}

impl<'a> IndexOrder<'a> {
    /// The order of an index. `addresses` are those of the rows of a heap.
    pub(crate) fn new(
        (table, index, layout): (&'a Table, &'a Index, &'a Layout),
        rows: &'a Rows<'a>,
        order: &'a KeyOrder,
        addresses: &'a [RowId],
    ) -> Result<Self, LabError> {
        let groups = groups(table, index, rows.count()).ok_or_else(|| {
            let text = format!("index {} is too long to sort: lead it with serial or scattered values", index.name);
            LabError::Description(text)
        })?;
        let count = match groups {
            Groups::One => 1,
            Groups::Runs(per) | Groups::Scattered(per, _) => rows.count().div_ceil(per),
        };
        Ok(Self { table, index, layout, rows, order, addresses, groups, next: 0, count, ready: Vec::new() })
    }

    /// The members of a group, sorted, last first.
    fn sorted_group(&self, group: u64) -> Vec<u64> {
        let count = self.rows.count();
        let span = |per: u64| group * per..((group + 1) * per).min(count);
        let members: Vec<u64> = match self.groups {
            Groups::One => (0..count).collect(),
            Groups::Runs(per) => span(per).collect(),
            Groups::Scattered(per, column) => match self.rows.shuffle(column) {
                Some(shuffle) => span(per).map(|place| shuffle.from(place)).collect(),
                None => Vec::new(),
            },
        };
        let passes = |&n: &u64| self.index.filter.as_ref().is_none_or(|filter| self.rows.passes(filter, n));
        let members: Vec<u64> = members.into_iter().filter(passes).collect();
        if members.len() < 2 {
            return members;
        }
        let mut row = Row::default();
        let mut keyed: Vec<(Vec<u8>, u64)> = Vec::with_capacity(members.len());
        for n in members {
            self.rows.fill(n, &mut row);
            keyed.push((self.key(n, &row), n));
        }
        keyed.sort_by(|a, b| b.cmp(a));
        keyed.into_iter().map(|(_, n)| n).collect()
    }

    /// Key and locator as bytes that compare.
    fn key(&self, n: u64, row: &Row) -> Vec<u8> {
        let mut key = Vec::new();
        for column in self.layout.columns.iter() {
            let included = |at| self.index.included.contains(&at) && !self.index.keys.iter().any(|&(own, _)| own == at);
            match column.source {
                Source::Column(at) if !included(at) => {
                    push_sort_key(self.table.columns[at].ty, row.value(at), column.descending, &mut key);
                }
                Source::Uniquifier => key.extend(self.order.uniquifier(n).to_be_bytes()),
                // A binary(8): compared byte by byte.
                Source::RowId => key.extend(self.addresses.get(n as usize).copied().unwrap_or_default().bytes()),
                Source::Column(_) | Source::SparseVector => {}
            }
        }
        key
    }
}

impl Iterator for IndexOrder<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if let Some(n) = self.ready.pop() {
                return Some(n);
            }
            if self.next == self.count {
                return None;
            }
            let descending = self.index.keys.first().is_some_and(|&(_, descending)| descending);
            let group = if descending { self.count - 1 - self.next } else { self.next };
            self.next += 1;
            self.ready = self.sorted_group(group);
        }
    }
}

fn groups(table: &Table, index: &Index, rows: u64) -> Option<Groups> {
    if rows <= MOST_SORTED {
        return Some(Groups::One);
    }
    let &(at, _) = index.keys.first()?;
    let column = table.columns.get(at)?;
    if !wide(column.ty.xtype) || column.computed.is_some() || column.nullable && column.nulls > 0 {
        return None;
    }
    let groups = match column.values {
        Values::Serial { step, .. } if step > 0 => Groups::Runs(1),
        Values::Grouped { per, .. } => Groups::Runs(per.max(1)),
        Values::Scattered { per } => Groups::Scattered(per.max(1), at),
        _ => return None,
    };
    match groups {
        Groups::Runs(per) | Groups::Scattered(per, _) if per > LARGEST_GROUP => None,
        groups => Some(groups),
    }
}
