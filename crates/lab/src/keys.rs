//! Finds the order of the rows in an index without sorting more rows than fit in memory.
//!
//! An index of up to a million rows is simply sorted. A larger index is divided into groups of rows with the same value
//! in the leading key column. The order of these groups must follow from the way in which the values are generated.
//! This is so for serial and grouped values, which rise with the row number, and for scattered values, whose shuffle
//! can be inverted. The rows of each group are sorted in memory.

use crate::description::{Index, Table, Values};
use crate::disk::LabError;
use crate::ids::RowId;
use crate::layout::{Layout, Source};
use crate::order::push_sort_key;
use crate::row::Row;
use crate::types::SqlType;
use crate::values::Rows;

/// The maximum number of rows in an index that is sorted in memory as a whole.
const MOST_SORTED: u64 = 1 << 20;
/// The maximum number of rows with the same leading value. These rows are sorted in memory together.
const LARGEST_GROUP: u64 = 1 << 16;

/// The order of the rows in a table, and the uniquifiers of rows with the same key.
pub(crate) struct KeyOrder {
    /// Row numbers in key order; `None` if the rows are in the order of their numbers.
    rows: Option<Vec<u32>>,
    uniquifiers: Uniquifiers,
}

enum Uniquifiers {
    /// All keys differ.
    None,
    /// Consecutive rows have the same key, in groups of this many rows.
    Runs(u64),
    /// The uniquifier of each row, by row number.
    Stored(Vec<u32>),
}

impl KeyOrder {
    /// The order of the rows in the heap or clustered index.
    pub(crate) fn clustered(table: &Table, collation: u32, rows: &Rows) -> Result<Self, LabError> {
        let Some(index) = &table.clustered else { return Ok(Self { rows: None, uniquifiers: Uniquifiers::None }) };
        if let Some(uniquifiers) = natural_order(table, index) {
            return Ok(Self { rows: None, uniquifiers });
        }
        if rows.count() > MOST_SORTED {
            let name = &table.name;
            return Err(LabError::Description(format!(
                "table {name} is too long for its clustering key: use serial values"
            )));
        }
        let mut row = Row::default();
        let mut keyed: Vec<(Vec<u8>, u32)> = Vec::with_capacity(rows.count() as usize);
        for n in 0..rows.count() {
            rows.fill(n, &mut row);
            let mut key = Vec::new();
            for &(column, descending) in &index.keys {
                push_sort_key((table.columns[column].ty, collation), row.value(column), descending, &mut key);
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

    /// Whether the rows are in the order of their numbers.
    pub(crate) fn is_natural(&self) -> bool {
        self.rows.is_none()
    }

    /// The number of the row at this position in the order.
    pub(crate) fn row(&self, place: u64) -> u64 {
        self.rows.as_ref().and_then(|rows| rows.get(place as usize)).map_or(place, |&n| u64::from(n))
    }

    /// The uniquifier of row `n`: its position among the rows with the same key, from 0.
    pub(crate) fn uniquifier(&self, n: u64) -> u32 {
        match &self.uniquifiers {
            Uniquifiers::None => 0,
            Uniquifiers::Runs(length) => (n % length) as u32,
            Uniquifiers::Stored(stored) => stored.get(n as usize).copied().unwrap_or(0),
        }
    }
}

/// Returns the uniquifiers of the rows if the key order is the order of the row numbers; otherwise `None`.
fn natural_order(table: &Table, index: &Index) -> Option<Uniquifiers> {
    let values = |at: usize| {
        let &(column, descending) = index.keys.get(at)?;
        let column = table.columns.get(column)?;
        (!descending && wide(column.ty) && !(column.nullable && column.nulls > 0) && column.life.since == 0)
            .then_some(&column.values)
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

/// The minimum precision of a decimal type whose values can hold any row number without wrapping around.
/// `ENOUGH_CHARACTERS` is the minimum length of a string type for this purpose, because string values are numbers in
/// base 36.
const ENOUGH_DIGITS: u8 = 10;
const ENOUGH_CHARACTERS: u16 = 7;

/// Whether a greater number always gives a greater value of this type. In a type with too few bytes or digits, the
/// values wrap around.
fn wide(ty: SqlType) -> bool {
    match ty.xtype {
        56 | 127 | 60 | 42 | 61 | 189 => true,
        106 | 108 => ty.precision >= ENOUGH_DIGITS,
        167 | 175 => ty.length >= ENOUGH_CHARACTERS,
        231 | 239 => ty.length / 2 >= ENOUGH_CHARACTERS,
        _ => false,
    }
}

/// Iterates over the rows of a nonclustered index in key order.
pub(crate) struct IndexOrder<'a> {
    index: &'a Index,
    layout: &'a Layout,
    rows: &'a Rows<'a>,
    order: &'a KeyOrder,
    addresses: &'a [RowId],
    /// The columns of the key and of the row locator.
    key_columns: Vec<usize>,
    groups: Groups,
    /// The number of groups that the iterator has started. If the leading key column is descending, the iterator takes
    /// the groups from the last to the first.
    next: u64,
    count: u64,
    /// The rows of the current group that the iterator has not returned yet, in reverse order.
    ready: Vec<u64>,
}

/// How the rows are divided into groups with the same leading value. The groups are in key order.
#[derive(Clone, Copy)]
enum Groups {
    /// A single group with all rows.
    One,
    /// Groups of consecutive row numbers. Each group has this many rows.
    Runs(u64),
    /// Groups of rows whose leading column has scattered values. The fields are the number of rows in a group, and the
    /// position of this column.
    Scattered(u64, usize),
}

impl<'a> IndexOrder<'a> {
    /// Prepares the iteration over an index. `addresses` has the row addresses if the table is a heap.
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
        let key_columns = layout.columns.iter().filter_map(|column| match column.source {
            Source::Column(at) if !index.included.contains(&at) => Some(at),
            _ => None,
        });
        let key_columns = key_columns.collect();
        Ok(Self { index, layout, rows, order, addresses, key_columns, groups, next: 0, count, ready: Vec::new() })
    }

    /// Returns the only row of a group; `None` if groups may have several rows.
    fn only_member(&self, group: u64) -> Option<u64> {
        match self.groups {
            Groups::Runs(1) => Some(group),
            Groups::Scattered(1, column) => self.rows.shuffle(column).map(|shuffle| shuffle.from(group)),
            _ => None,
        }
    }

    /// Returns the rows of a group that satisfy the filter of the index, in reverse key order.
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
        let passes = |&n: &u64| self.passes(n);
        let members: Vec<u64> = members.into_iter().filter(passes).collect();
        if members.len() < 2 {
            return members;
        }
        let mut row = Row::default();
        let mut keys = Keys::default();
        for n in members {
            self.rows.fill_only(n, |at| self.key_columns.contains(&at), &mut row);
            keys.push(n, |out| self.push_key(n, &row, out));
        }
        keys.into_descending()
    }

    fn passes(&self, n: u64) -> bool {
        self.index.filter.as_ref().is_none_or(|filter| self.rows.passes(filter, n))
    }

    /// Appends the key and the row locator of a row, as bytes whose order is the key order.
    fn push_key(&self, n: u64, row: &Row, key: &mut Vec<u8>) {
        for column in &self.layout.columns {
            match column.source {
                Source::Column(at) if self.key_columns.contains(&at) => {
                    push_sort_key((column.ty, column.collation), row.value(at), column.descending, key);
                }
                Source::Uniquifier => key.extend(self.order.uniquifier(n).to_be_bytes()),
                // This order assumes that SQL Server compares a row address like a binary(8), byte by byte.
                Source::RowId => key.extend(self.addresses.get(n as usize).copied().unwrap_or_default().bytes()),
                Source::Column(_) | Source::SparseVector => {}
            }
        }
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
            if let Some(only) = self.only_member(group) {
                if self.passes(only) {
                    return Some(only);
                }
                continue;
            }
            self.ready = self.sorted_group(group);
        }
    }
}

/// The sort keys of several rows, in one buffer.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    /// For each key: its first eight bytes, its start and end in the buffer, and its row number.
    entries: Vec<(u64, u32, u32, u64)>,
}

impl Keys {
    fn push(&mut self, n: u64, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.bytes.len();
        write(&mut self.bytes);
        let mut head = [0; 8];
        for (to, &byte) in head.iter_mut().zip(&self.bytes[from..]) {
            *to = byte;
        }
        self.entries.push((u64::from_be_bytes(head), from as u32, self.bytes.len() as u32, n));
    }

    /// The row numbers, from the greatest key to the smallest.
    fn into_descending(mut self) -> Vec<u64> {
        let key = |from: u32, to: u32| &self.bytes[from as usize..to as usize];
        self.entries.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| key(b.1, b.2).cmp(key(a.1, a.2))));
        self.entries.into_iter().map(|(.., n)| n).collect()
    }
}

/// Returns the groups by which the order of an index is found: the groups of the leading column if they are known,
/// otherwise a single group. `None` if the index is too large to be sorted as a single group.
fn groups(table: &Table, index: &Index, rows: u64) -> Option<Groups> {
    let all = (rows <= MOST_SORTED).then_some(Groups::One);
    leading_groups(table, index).or(all)
}

fn leading_groups(table: &Table, index: &Index) -> Option<Groups> {
    let &(at, _) = index.keys.first()?;
    let column = table.columns.get(at)?;
    if !wide(column.ty) || column.computed.is_some() || column.nullable && column.nulls > 0 || column.life.since > 0 {
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
