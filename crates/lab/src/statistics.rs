//! Writes the statistics of a column as the blob that SQL Server stores (docs/format/statistics.md).

use std::collections::BTreeMap;

use crate::build::table_seed;
use crate::description::Description;
use crate::order::push_sort_key;
use crate::row::Row;
use crate::values::Rows;

/// The maximum number of histogram steps that the lab writes. It is lower than SQL Server's limit of 200, so that the
/// row with the statistics fits on one page.
const MOST_STEPS: usize = 40;

/// For each sort key, the value of the column and the number of rows with this value.
type Groups = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

/// The statistics blob of a column.
pub(crate) fn blob(description: &Description, table: usize, column: usize) -> Vec<u8> {
    let described = &description.tables[table];
    let ty = described.columns[column].ty;
    let rows = Rows::new(described, table_seed(description, table));
    let (mut groups, mut nulls, mut row) = (Groups::new(), 0, Row::default());
    for number in 0..rows.count() {
        rows.fill_only(number, |at| at == column, &mut row);
        let Some(value) = row.value(column) else {
            nulls += 1;
            continue;
        };
        let mut key = Vec::new();
        push_sort_key((ty, description.collation), Some(value), false, &mut key);
        groups.entry(key).or_insert_with(|| (value.to_vec(), 0)).1 += 1;
    }
    let is_variable = ty.fixed_bytes() <= 0;
    let steps: Vec<Vec<u8>> = steps(&groups).iter().map(|step| step.record(is_variable)).collect();
    let values = groups.len() as u64 + u64::from(nulls > 0);
    let fixed_bytes = if is_variable { 0 } else { ty.fixed_bytes().unsigned_abs() };
    Header { rows: rows.count(), nulls, values, steps: steps.len(), fixed_bytes }.blob(&steps)
}

/// A step of a histogram.
struct Step<'a> {
    value: &'a [u8],
    equal: u64,
    range: u64,
    /// The number of distinct values between the value of the previous step and the value of this step.
    range_values: u64,
}

/// The steps of the histogram: the first value, the last value, and some values between them.
fn steps(groups: &Groups) -> Vec<Step<'_>> {
    let every = groups.len().div_ceil(MOST_STEPS - 1).max(1);
    let (mut steps, mut range, mut range_values) = (Vec::new(), 0, 0);
    for (at, (value, count)) in groups.values().enumerate() {
        if at % every == 0 || at + 1 == groups.len() {
            steps.push(Step { value, equal: *count, range, range_values });
            (range, range_values) = (0, 0);
        } else {
            (range, range_values) = (range + count, range_values + 1);
        }
    }
    steps
}

impl Step<'_> {
    fn record(&self, is_variable: bool) -> Vec<u8> {
        let end = if is_variable { 16 } else { 16 + self.value.len() as u16 };
        let average = if self.range_values == 0 { 1.0 } else { self.range as f32 / self.range_values as f32 };
        let mut record = vec![if is_variable { 0x30 } else { 0x10 }, 0];
        record.extend(end.to_le_bytes());
        [self.equal as f32, self.range as f32, average].iter().for_each(|count| record.extend(count.to_le_bytes()));
        if !is_variable {
            record.extend(self.value);
        }
        record.extend([4, 0, 0]);
        if is_variable {
            record.extend(1u16.to_le_bytes());
            record.extend((record.len() as u16 + 2 + self.value.len() as u16).to_le_bytes());
            record.extend(self.value);
        }
        record
    }
}

/// The values of the header, which precedes the steps.
struct Header {
    rows: u64,
    nulls: u64,
    /// The number of distinct values, including NULL.
    values: u64,
    steps: usize,
    /// The length in bytes of each step's value; 0 if the type has a variable length.
    fixed_bytes: u16,
}

impl Header {
    fn blob(&self, steps: &[Vec<u8>]) -> Vec<u8> {
        const HEADER_BYTES: usize = 340;
        /// The time of the last update: 2018-01-15 12:00 as a datetime.
        const UPDATED: [u8; 8] = [0x00, 0xC1, 0xC5, 0x00, 0x69, 0xA8, 0x00, 0x00];
        const HISTOGRAM: u32 = 1;
        let mut bytes = vec![0; HEADER_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &7u32.to_le_bytes());
        put(4, &UPDATED);
        put(12, &self.rows.to_le_bytes());
        put(20, &self.rows.to_le_bytes());
        put(32, &(1.0 / self.values.max(1) as f32).to_le_bytes());
        put(164, &(self.steps as u32).to_le_bytes());
        put(168, &(self.steps as u32).to_le_bytes());
        put(172, &1u32.to_le_bytes());
        put(176, &(16 + u32::from(self.fixed_bytes)).to_le_bytes());
        put(180, &f32::from(self.fixed_bytes).to_le_bytes());
        put(184, &(self.rows as f32).to_le_bytes());
        put(188, &(self.nulls as f32).to_le_bytes());
        put(192, &f32::from(self.fixed_bytes).to_le_bytes());
        put(324, &(if steps.is_empty() { 0 } else { HISTOGRAM }).to_le_bytes());
        if steps.is_empty() {
            return bytes;
        }
        let mut at = 8 * steps.len();
        let all: usize = steps.iter().map(Vec::len).sum();
        bytes.extend((at as u64 + all as u64).to_le_bytes());
        for step in steps {
            bytes.extend((at as u64).to_le_bytes());
            at += step.len();
        }
        steps.iter().for_each(|step| bytes.extend(step));
        bytes
    }
}
