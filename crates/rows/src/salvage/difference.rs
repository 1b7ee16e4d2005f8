//! Finds the rows that only one of two sets contains. The memory depends only on the number of these rows.
//!
//! Each row is represented by a hash of 128 bits, which selects three cells. A cell has a count, the XOR of the hashes,
//! and the XOR of a second hash of each row. Rows that are in both sets cancel out. A cell with a single remaining row
//! reveals the hash of this row. The row is then removed from its other two cells, each of which may now contain a
//! single row, and so on (Goodrich and Mitzenmacher, "Invertible Bloom lookup tables", 2011). This procedure empties
//! all cells if the number of differing rows is at most two thirds of the number of cells.

/// The hash that represents a row.
pub(crate) type Hash = u128;

/// The number of cells for each row.
const PLACES: usize = 3;
/// The size of a cell in bytes.
pub(crate) const CELL_BYTES: usize = size_of::<Cell>();

/// A cell: the number of its rows, and the XORs of their hashes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(C)]
struct Cell {
    rows: Hash,
    proof: u64,
    count: i64,
}

/// The difference of two sets of rows.
pub(crate) struct Difference {
    cells: Vec<Cell>,
}

/// The rows that only one of the two sets contains.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Sides {
    /// The rows that were added but not subtracted, in ascending order.
    pub(crate) added: Vec<Hash>,
    /// The number of rows that were subtracted but not added.
    pub(crate) taken: u64,
}

impl Difference {
    /// Creates an empty difference that uses about this number of bytes.
    pub(crate) fn within(bytes: usize) -> Self {
        // Each of the three cells of a row is in a different third of the array, so the cells are always different.
        let third = (bytes / CELL_BYTES / PLACES).max(64);
        Self { cells: vec![Cell::default(); third * PLACES] }
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, row: Hash) {
        self.put(row, 1);
    }

    /// Subtracts a row.
    pub(crate) fn take(&mut self, row: Hash) {
        self.put(row, -1);
    }

    fn put(&mut self, row: Hash, count: i64) {
        let proof = proof(row);
        for place in places(row, self.cells.len()) {
            if let Some(cell) = self.cells.get_mut(place) {
                cell.rows ^= row;
                cell.proof ^= proof;
                cell.count = cell.count.wrapping_add(count);
            }
        }
    }

    /// The rows that remain; `None` if the difference has too many rows for the cells.
    pub(crate) fn sides(mut self) -> Option<Sides> {
        let mut sides = Sides::default();
        let mut pending: Vec<usize> = (0..self.cells.len()).collect();
        while let Some(place) = pending.pop() {
            let Some(&cell) = self.cells.get(place) else { continue };
            if !matches!(cell.count, 1 | -1) || cell.proof != proof(cell.rows) {
                continue;
            }
            match cell.count {
                1 => sides.added.push(cell.rows),
                _ => sides.taken += 1,
            }
            self.put(cell.rows, -cell.count);
            pending.extend(places(cell.rows, self.cells.len()));
        }
        let is_empty = self.cells.iter().all(|cell| *cell == Cell::default());
        sides.added.sort_unstable();
        is_empty.then_some(sides)
    }
}

/// The three cells of a row.
fn places(row: Hash, cells: usize) -> [usize; PLACES] {
    let third = (cells / PLACES).max(1);
    let mut word = (row >> 64) as u64 ^ (row as u64).rotate_left(32);
    let mut at = [0; PLACES];
    for (number, place) in at.iter_mut().enumerate() {
        word = mix(word.wrapping_add(number as u64));
        *place = number * third + ((u128::from(word) * third as u128) >> 64) as usize;
    }
    at
}

/// A second hash of a row. It distinguishes a cell with a single row from a cell with the sum of several rows.
fn proof(row: Hash) -> u64 {
    mix((row as u64) ^ mix((row >> 64) as u64 ^ 0x5DEE_CE66))
}

/// The finalizer of SplitMix64.
pub(crate) fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}

/// The hash of some bytes.
pub(crate) fn hash(bytes: &[u8]) -> Hash {
    let (mut low, mut high) = (bytes.len() as u64, 0x9E37_79B9_7F4A_7C15);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        let word = u64::from_le_bytes(word);
        low = mix(low ^ word).wrapping_add(high);
        high = mix(high.rotate_left(29) ^ word.wrapping_mul(0xD6E8_FEB8_6659_FD93));
    }
    u128::from(mix(low)) << 64 | u128::from(mix(high ^ low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64) -> Hash {
        hash(&number.to_le_bytes())
    }

    #[test]
    fn rows_of_one_side_are_found_among_any_number_of_both() {
        let mut difference = Difference::within(1000 * CELL_BYTES);
        (0..100_000).for_each(|number| difference.add(row(number)));
        (0..100_100).rev().filter(|number| number % 250 != 7).for_each(|number| difference.take(row(number)));
        let sides = difference.sides().expect("few rows");
        let mut expected: Vec<Hash> = (0..100_000).filter(|number| number % 250 == 7).map(row).collect();
        expected.sort_unstable();
        // The filter leaves out one of the 100 extra numbers (100,007), so 99 were subtracted but not added.
        assert!(sides == Sides { added: expected, taken: 99 });
    }

    #[test]
    fn too_many_rows_are_noticed() {
        let mut difference = Difference::within(300 * CELL_BYTES);
        (0..5_000).for_each(|number| difference.add(row(number)));
        assert_eq!(difference.sides(), None);
    }

    #[test]
    fn a_row_that_is_there_twice_does_not_pass_for_another() {
        let mut difference = Difference::within(300 * CELL_BYTES);
        difference.add(row(1));
        difference.add(row(1));
        assert_eq!(difference.sides(), None);
    }
}
