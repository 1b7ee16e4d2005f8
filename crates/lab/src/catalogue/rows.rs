//! Collects the rows of base tables before they are written. All rows of a base table are in one buffer, because a
//! database with many tables has millions of rows.

use crate::row::Row;

/// The length byte that means NULL.
const NULL: u8 = 255;
/// The length byte which means that the length is stored in the next four bytes.
const LONG: u8 = 254;

/// The rows of a base table.
#[derive(Default)]
pub(crate) struct SystemRows {
    bytes: Vec<u8>,
    /// The end offset of each row in the buffer.
    ends: Vec<usize>,
}

impl SystemRows {
    /// Adds a row. `values` has one value for each column, in column order.
    pub(super) fn push(&mut self, values: impl Iterator<Item = Option<Vec<u8>>>) {
        for value in values {
            match (&value, value.as_ref().map(|value| u8::try_from(value.len()))) {
                (None, _) => self.bytes.push(NULL),
                (Some(_), Some(Ok(length))) if length < LONG => self.bytes.push(length),
                (Some(value), _) => {
                    self.bytes.push(LONG);
                    self.bytes.extend((value.len() as u32).to_le_bytes());
                }
            }
            self.bytes.extend(value.iter().flatten());
        }
        self.ends.push(self.bytes.len());
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Keeps the first `rows` rows and removes the others.
    pub(super) fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Reads a row.
    pub(crate) fn read(&self, number: usize, row: &mut Row) {
        row.clear();
        let from = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        let mut rest = &self.bytes[from..self.ends[number]];
        while let Some((&length, behind)) = rest.split_first() {
            if length == NULL {
                row.push_null();
                rest = behind;
                continue;
            }
            let (length, values) = match behind.split_first_chunk::<4>() {
                Some((long, values)) if length == LONG => (u32::from_le_bytes(*long) as usize, values),
                _ => (usize::from(length), behind),
            };
            let (value, behind) = values.split_at(length);
            row.push(value);
            rest = behind;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_with_nulls_and_values_of_any_length() {
        let rows: [Vec<Option<Vec<u8>>>; 4] = [
            vec![None, Some(Vec::new()), Some(vec![7; 253])],
            vec![Some(vec![1; 254]), None],
            vec![Some(vec![2; 255]), Some(vec![3; 70_000])],
            vec![],
        ];
        let mut kept = SystemRows::default();
        rows.iter().for_each(|row| kept.push(row.iter().cloned()));
        kept.push([Some(vec![9])].into_iter());
        kept.truncate(rows.len());
        assert_eq!(kept.len(), rows.len());
        let mut row = Row::default();
        for (number, values) in rows.iter().enumerate() {
            kept.read(number, &mut row);
            let read: Vec<_> = (0..values.len()).map(|at| row.value(at).map(<[u8]>::to_vec)).collect();
            assert_eq!(&read, values);
        }
    }
}
