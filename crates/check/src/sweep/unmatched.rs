//! Finds the rows on each of two sides that have no counterpart on the other side. Compares hashes of rows in bounded
//! memory.
//!
//! The first pass assigns each row to a cell by its hash, and adds the hash to the sum of the cell. Rows that exist on
//! both sides cancel each other out. So the sum of a cell differs from 0 only if the cell contains a row without a
//! counterpart. The next pass collects the rows of the cells that differ, which are a small share of all rows, and
//! compares them one by one. If these rows do not fit into memory, they are compared in batches, in the order in which
//! they are read. So the result depends neither on the memory grant nor on the key of the hashes.

use std::collections::HashMap;

use format::RecordId;
use sums::hash::{RowHash, Sum};

use crate::sweep::pinpoint::Unread;

/// The side of the comparison to which a row belongs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Side {
    /// The heap or clustered index.
    Table,
    /// The nonclustered index.
    Index,
}

/// The average number of rows per cell, if there is enough memory for the cells.
const ROWS_PER_CELL: u64 = 64;
const MIN_CELLS: u64 = 1 << 12;
/// The minimum and maximum number of rows in a batch, for each side.
const BATCH_ROWS: std::ops::RangeInclusive<u64> = 1 << 12..=1 << 20;
/// The number of bytes that are planned for each cell, from the memory for facts. The next constant is the number of
/// bytes for each row of a batch. Both numbers include hashes and counts, and are twice the necessary size, because a
/// hash table doubles its size when it grows.
const FACT_BYTES_PER_CELL: u64 = 64;
const FACT_BYTES_PER_ROW: u64 = 512;

/// Sizes that bound the memory.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// The number of cells, which is a power of two.
    cells: usize,
    /// The maximum number of rows per batch on each side.
    batch_rows: usize,
    /// The maximum number of rows listed for each side.
    listed: usize,
}

impl Bounds {
    /// The sizes for a total of `rows` rows on both sides, if facts may use `bytes` bytes.
    pub(crate) fn within(bytes: usize, rows: u64, listed: usize) -> Self {
        let bytes = bytes as u64;
        let most_cells = (bytes / FACT_BYTES_PER_CELL).max(MIN_CELLS);
        let batch_rows = (bytes / FACT_BYTES_PER_ROW).clamp(*BATCH_ROWS.start(), *BATCH_ROWS.end()) as usize;
        Self { cells: 1 << (rows / ROWS_PER_CELL).clamp(MIN_CELLS, most_cells).ilog2(), batch_rows, listed }
    }
}

/// Rows without a counterpart.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Unmatched {
    /// The rows of each side, in the order in which they were read.
    pub(crate) rows: [Vec<RecordId>; 2],
    /// Whether there are more unmatched rows than are listed.
    pub(crate) has_more: bool,
}

/// For each cell, the sum of the table rows minus the sum of the index rows.
struct Cells(Vec<Sum>);

impl Cells {
    fn place(&self, hash: RowHash) -> usize {
        hash.0 as usize & self.0.len().wrapping_sub(1)
    }

    fn add(&mut self, side: Side, hash: RowHash) {
        let place = self.place(hash);
        match (self.0.get_mut(place), side) {
            (Some(cell), Side::Table) => cell.add(hash.into()),
            (Some(cell), Side::Index) => cell.remove(hash.into()),
            (None, _) => {}
        }
    }

    fn differs(&self, hash: RowHash) -> bool {
        self.0.get(self.place(hash)).is_some_and(|sum| *sum != Sum::default())
    }
}

/// Numbers of rows that have the same hash, for each side. `rows` counts all rows with this hash, and `before` counts
/// those that were read before the current row.
#[derive(Clone, Copy, Default)]
struct Alike {
    rows: [u64; 2],
    before: [u64; 2],
}

/// Finds the rows of each side that have no counterpart. If one side has more rows with the same hash than the other
/// side, the surplus rows count as rows without a counterpart; these are the rows that `each` passes last. `each` must
/// call its argument with all rows of both sides, in the same order every time.
///
/// # Errors
/// The first error of `each`.
#[expect(clippy::indexing_slicing, reason = "a side is 0 or 1")]
pub(crate) fn unmatched(
    bounds: Bounds,
    each: impl Fn(&mut dyn FnMut(Side, RecordId, RowHash)) -> Result<(), Unread>,
) -> Result<Unmatched, Unread> {
    let mut cells = Cells(vec![Sum::default(); bounds.cells]);
    each(&mut |side, _, hash| cells.add(side, hash))?;
    if cells.0.iter().all(|sum| *sum == Sum::default()) {
        return Ok(Unmatched { rows: [Vec::new(), Vec::new()], has_more: false });
    }
    let mut listed = [Vec::new(), Vec::new()];
    let mut has_more = [false; 2];
    let mut done = [0; 2];
    loop {
        // The next batch: rows in differing cells that follow the rows of earlier batches.
        let mut batch: [Vec<(RowHash, RecordId)>; 2] = [Vec::new(), Vec::new()];
        let mut suspects = [0; 2];
        each(&mut |side, at, hash| {
            let side = side as usize;
            if cells.differs(hash) {
                if suspects[side] >= done[side] && batch[side].len() < bounds.batch_rows && !has_more[side] {
                    batch[side].push((hash, at));
                }
                suspects[side] += 1;
            }
        })?;
        let hashes = batch.iter().flatten();
        let mut alike: HashMap<RowHash, Alike> = hashes.map(|(hash, _)| (*hash, Alike::default())).collect();
        let is_all = done == [0; 2] && [0, 1].iter().all(|&side| batch[side].len() == suspects[side]);
        let mut seen = [0; 2];
        let mut count = |side: usize, hash: RowHash| {
            if let Some(alike) = alike.get_mut(&hash) {
                alike.rows[side] += 1;
                alike.before[side] += u64::from(seen[side] < done[side]);
            }
            seen[side] += 1;
        };
        if is_all {
            for (side, rows) in batch.iter().enumerate() {
                rows.iter().for_each(|(hash, _)| count(side, *hash));
            }
        } else {
            each(&mut |side, _, hash| {
                if cells.differs(hash) {
                    count(side as usize, hash);
                }
            })?;
        }
        for (side, rows) in batch.iter().enumerate() {
            for (hash, at) in rows {
                let Some(alike) = alike.get_mut(hash) else { continue };
                let has_counterpart = alike.before[side] < alike.rows[1 - side];
                alike.before[side] += 1;
                if !has_counterpart {
                    match listed[side].len() < bounds.listed {
                        true => listed[side].push(*at),
                        false => has_more[side] = true,
                    }
                }
            }
            done[side] += rows.len();
        }
        // If the batches of both sides are empty, this pass has found fewer rows in differing cells than earlier
        // passes. This means that the file changes while it is read.
        let is_stuck = batch.iter().all(Vec::is_empty);
        if is_stuck || [0, 1].iter().all(|&side| done[side] == suspects[side] || has_more[side]) {
            return Ok(Unmatched { rows: listed, has_more: has_more[0] || has_more[1] });
        }
    }
}

#[cfg(test)]
mod tests {
    use format::PageId;
    use sums::hash::FactHash;

    use super::*;

    /// For each row, its side and the number from which its hash is computed.
    type Rows = Vec<(Side, u32)>;

    fn place(number: usize) -> RecordId {
        RecordId { page: PageId::new(1, number as u32 / 100), slot: (number % 100) as u16 }
    }

    fn found(rows: &Rows, seed: u64, bounds: Bounds) -> Unmatched {
        let hash = FactHash::new(Some(seed));
        unmatched(bounds, |visit| {
            for (number, (side, value)) in rows.iter().enumerate() {
                let mut hasher = hash.hasher();
                hasher.add_bytes(&value.to_le_bytes());
                visit(*side, place(number), hasher.finish());
            }
            Ok(())
        })
        .expect("all is read")
    }

    /// The expected result, computed with all rows in memory.
    fn expected(rows: &Rows, listed: usize) -> Unmatched {
        let mut has_more = false;
        let rows = [Side::Table, Side::Index].map(|side| {
            let mut counterparts: HashMap<u32, i64> = HashMap::new();
            rows.iter().filter(|row| row.0 != side).for_each(|row| *counterparts.entry(row.1).or_default() += 1);
            let mut lone = Vec::new();
            for (number, row) in rows.iter().enumerate().filter(|(_, row)| row.0 == side) {
                let left = counterparts.entry(row.1).or_default();
                *left -= 1;
                if *left < 0 {
                    lone.push(place(number));
                }
            }
            has_more |= lone.len() > listed;
            lone.truncate(listed);
            lone
        });
        Unmatched { rows, has_more }
    }

    #[test]
    fn what_is_found_depends_neither_on_memory_nor_on_the_key() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for share in [0, 1, 20, 1000] {
            // The rows of both sides. Some values occur often, and some values are changed on one side.
            let mut rows = Rows::new();
            for number in 0..2000u32 {
                let value = if random(10) == 0 { 7 } else { number };
                rows.push((Side::Table, value));
                let other = if random(1000) < share { value + 10_000 } else { value };
                rows.push((Side::Index, other));
            }
            rows.sort_by_key(|row| (row.0 as u8, row.1.wrapping_mul(2_654_435_761)));
            for listed in [5, 100_000] {
                let expected = expected(&rows, listed);
                for batch_rows in [1 << 20, 301, 64] {
                    let bounds = Bounds { cells: 256, batch_rows, listed };
                    assert_eq!(found(&rows, share + 1, bounds), expected, "{share} {batch_rows}");
                }
                let bounds = Bounds { cells: 4096, batch_rows: 1000, listed };
                assert_eq!(found(&rows, 99, bounds), expected, "another key and number of cells");
            }
        }
    }

    #[test]
    fn rows_that_go_away_between_two_passes_end_it_too() {
        let hash = FactHash::new(Some(1));
        let passes = std::cell::Cell::new(0);
        unmatched(Bounds { cells: 16, batch_rows: 10, listed: 1000 }, |visit| {
            passes.set(passes.get() + 1);
            assert!(passes.get() < 100, "it does not end");
            // The first pass sees all rows; later passes see fewer and fewer rows, and finally none.
            let rows: u32 =
                if passes.get() < 2 { 100 } else { 100_u32.checked_shr(passes.get() - 1).unwrap_or_default() };
            for value in 0..rows {
                let mut hasher = hash.hasher();
                hasher.add_bytes(&value.to_le_bytes());
                visit(Side::Table, place(value as usize), hasher.finish());
            }
            Ok(())
        })
        .expect("all is read");
    }

    #[test]
    fn a_pass_that_cannot_be_read_leaves_no_row_without_counterpart() {
        let hash = FactHash::new(Some(1));
        let mut hasher = hash.hasher();
        hasher.add_bytes(&[1]);
        let row = hasher.finish();
        for unread in 0..3 {
            let passes = std::cell::Cell::new(0);
            let found = unmatched(Bounds { cells: 16, batch_rows: 1, listed: 10 }, |visit| {
                passes.set(passes.get() + 1);
                (0..5).for_each(|number| visit(Side::Table, place(number), row));
                if passes.get() > unread { Err(Unread) } else { Ok(()) }
            });
            assert!(found.is_err(), "{found:?}");
        }
    }
}
