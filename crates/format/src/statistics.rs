//! Reads the blob of a statistics object: header, densities and histogram (docs/format/statistics.md).

mod order;

use crate::bytes::{u16_at, u32_at, u64_at};

pub use order::StepOrder;

/// The most steps that a histogram can have.
pub const MAX_STEPS: usize = 200;

/// The largest number of densities that a blob can store: one for each prefix of the column list.
const MAX_PREFIXES: usize = 33;

/// The offsets of fields in the header, in bytes.
mod place {
    pub(super) const VERSION: usize = 0;
    pub(super) const UPDATED: usize = 4;
    pub(super) const ROWS: usize = 12;
    pub(super) const ROWS_READ: usize = 20;
    pub(super) const DENSITIES: usize = 32;
    pub(super) const STEPS: usize = 164;
    /// Version 4: the number of steps that fit into the table of steps.
    pub(super) const CAPACITY: usize = 168;
    pub(super) const PREFIXES: usize = 172;
    pub(super) const FIXED_END: usize = 176;
    pub(super) const NULL_ROWS: usize = 188;
    /// Version 7: a word with a bit for each part that follows.
    pub(super) const PARTS: usize = 324;
    /// Version 4: the table of steps.
    pub(super) const STEPS_OF_4: usize = 324;
    /// Version 7: the end offsets of the parts.
    pub(super) const ENDS: usize = 340;
}

/// The bits of the parts that a version 7 blob may have: the histogram, a summary of strings, and three parts with
/// unknown content.
const KNOWN_PARTS: u32 = 0x41B;
const HISTOGRAM: u32 = 0x1;

/// The reason why a statistics blob cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The version of the blob, or one of its parts, is unknown.
    Unknown,
    /// The version is known, but the parts of the blob do not fit together.
    Broken(&'static str),
}

/// A statistics blob whose parts fit together.
#[derive(Clone, PartialEq, Debug)]
pub struct StatisticsBlob<'a> {
    /// The time at which the statistics were updated: ticks of 1/300 second, and days since 1900-01-01.
    pub updated: (u32, i32),
    /// The number of rows that the statistics describe.
    pub rows: u64,
    /// The number of rows with NULL in the first column. No step of the histogram counts these rows.
    pub null_rows: f32,
    /// The densities of the first column, of the first two columns, and so on. A density is 1 divided by the number of
    /// different values. In a nonclustered index, the columns of the clustering key follow the index's own columns.
    pub densities: Vec<f32>,
    /// The steps of the histogram, in order.
    pub steps: Vec<Step<'a>>,
    /// Whether all rows were read, not only a sample.
    is_of_all_rows: bool,
}

/// A step of a histogram.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step<'a> {
    /// The highest value of the step; `None` for NULL.
    pub value: Option<&'a [u8]>,
    /// The number of rows with this value.
    pub equal_rows: f32,
    /// The number of rows with values between the value of the previous step and the value of this step.
    pub range_rows: f32,
    /// The average number of rows for each different value between the value of the previous step and the value of this
    /// step.
    pub average_range_rows: f32,
}

impl<'a> StatisticsBlob<'a> {
    /// Reads a blob, which must be complete.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn read(bytes: &'a [u8]) -> Result<Self, Fault> {
        let cut = || Fault::Broken("it is shorter than its header");
        let version = u32_at(bytes, place::VERSION).ok_or_else(cut)?;
        let number = |at: usize| u32_at(bytes, at).ok_or_else(cut);
        let long = |at: usize| u64_at(bytes, at).ok_or_else(cut);
        let (is_of_4, first_part) = match version {
            4 => (true, place::STEPS_OF_4),
            7 => (false, place::ENDS),
            _ => return Err(Fault::Unknown),
        };
        if bytes.len() < first_part {
            return Err(cut());
        }
        if !is_of_4 && number(place::PARTS)? & !KNOWN_PARTS != 0 {
            return Err(Fault::Unknown);
        }
        let steps = number(place::STEPS)? as usize;
        let prefixes = number(place::PREFIXES)? as usize;
        if steps > MAX_STEPS || prefixes > MAX_PREFIXES {
            return Err(Fault::Broken("it counts more steps or columns than statistics have"));
        }
        let places = match is_of_4 {
            true => Places::of_version_4(bytes, steps, number(place::CAPACITY)?)?,
            false => Places::of_version_7(bytes, steps, number(place::PARTS)?)?,
        };
        let fixed_end = number(place::FIXED_END)?;
        let density = |at: usize| float_at(bytes, place::DENSITIES + 4 * at).ok_or_else(cut);
        let rows = long(place::ROWS)?;
        Ok(Self {
            updated: (number(place::UPDATED)?, number(place::UPDATED + 4)?.cast_signed()),
            rows,
            null_rows: float_at(bytes, place::NULL_ROWS).ok_or_else(cut)?,
            densities: (0..prefixes).map(density).collect::<Result<_, _>>()?,
            steps: places.read(bytes, fixed_end)?,
            is_of_all_rows: rows == long(place::ROWS_READ)?,
        })
    }

    /// Whether the counts are possible: no count is negative or NaN, and no row has a value below the value of the
    /// first step. If the statistics were computed from all rows, the rows of the steps and the rows with NULL must
    /// also add up to the number of rows.
    pub fn has_possible_counts(&self) -> bool {
        /// The relative tolerance for the sum of the counts: each count is rounded to the 24 bits of a `real` (`f32`).
        const ROUNDING: f64 = 1e-4;
        let is_count = |count: f32| count.is_finite() && count >= 0.0;
        let counts = |step: &Step<'_>| [step.equal_rows, step.range_rows, step.average_range_rows];
        let are_counts = self.steps.iter().flat_map(counts).chain([self.null_rows]).all(is_count);
        let starts_with_its_value = self.steps.first().is_none_or(|step| step.range_rows == 0.0);
        let in_steps: f64 = self.steps.iter().map(|step| f64::from(step.equal_rows) + f64::from(step.range_rows)).sum();
        let rows = self.rows as f64;
        let adds_up = (in_steps + f64::from(self.null_rows) - rows).abs() <= 1.0 + rows * ROUNDING;
        are_counts && starts_with_its_value && (adds_up || !self.is_of_all_rows)
    }

    /// Whether each density is possible: the number of different values is at least one, and at most the number of
    /// rows.
    pub fn has_possible_densities(&self) -> bool {
        // The tolerance allows for rows that were added or removed while SQL Server counted the rows. Such a difference
        // may be legal.
        const ROUNDING: f64 = 1e-4;
        let least = (1.0 - ROUNDING) / (self.rows.max(1) as f64);
        self.rows == 0 || self.densities.iter().all(|&density| (least..=1.0).contains(&f64::from(density)))
    }
}

/// The places of the steps, relative to `base`. A step ends where the next step begins; the last one ends with the
/// histogram.
struct Places {
    base: usize,
    starts: Vec<u64>,
    end: u64,
}

impl Places {
    /// Reads the layout of version 7. The header is followed by the ends of all parts, the 8-byte offsets of the steps,
    /// the steps, and the other parts.
    fn of_version_7(bytes: &[u8], steps: usize, parts: u32) -> Result<Self, Fault> {
        let count = parts.count_ones() as usize;
        let base = place::ENDS + 8 * count;
        let end_of_part = |part: usize| u64_at(bytes, place::ENDS + 8 * part);
        let ends: Option<Vec<u64>> = (0..count).map(end_of_part).collect();
        let ends = ends.ok_or(Fault::Broken("it is shorter than its header"))?;
        let length = bytes.len().checked_sub(base).map(|length| length as u64);
        if !ends.is_sorted() || length != Some(ends.last().copied().unwrap_or_default()) {
            return Err(Fault::Broken("its parts do not end where it ends"));
        }
        if (parts & HISTOGRAM != 0) != (steps > 0) {
            return Err(Fault::Broken("it has a histogram without steps, or steps without a histogram"));
        }
        let end = if steps > 0 { ends.first().copied().unwrap_or_default() } else { 0 };
        let start = |step: usize| u64_at(bytes, base + 8 * step);
        let starts: Option<Vec<u64>> = (0..steps).map(start).collect();
        let starts = starts.ok_or(Fault::Broken("it is shorter than its table of steps"))?;
        if starts.first().is_some_and(|first| *first != 8 * steps as u64) {
            return Err(Fault::Broken("its first step does not begin behind the table of steps"));
        }
        Ok(Self { base, starts, end })
    }

    /// Reads the layout of version 4. The header is followed by the 2-byte offsets of the steps, spare offsets up to
    /// the capacity, one offset that is never used, and the steps.
    fn of_version_4(bytes: &[u8], steps: usize, capacity: u32) -> Result<Self, Fault> {
        let capacity = capacity as usize;
        if capacity < steps || capacity > MAX_STEPS {
            return Err(Fault::Broken("it has no room for its steps"));
        }
        let base = place::STEPS_OF_4 + 2 * (capacity + 1);
        let start = |step: usize| u16_at(bytes, place::STEPS_OF_4 + 2 * step).map(u64::from);
        let starts: Option<Vec<u64>> = (0..steps).map(start).collect();
        let starts = starts.ok_or(Fault::Broken("it is shorter than its table of steps"))?;
        let end = bytes.len().checked_sub(base).ok_or(Fault::Broken("it is shorter than its table of steps"))? as u64;
        if starts.first().is_some_and(|first| *first != 0) || steps == 0 && end != 0 {
            return Err(Fault::Broken("its first step does not begin behind the table of steps"));
        }
        Ok(Self { base, starts, end })
    }

    fn read<'a>(&self, bytes: &'a [u8], fixed_end: u32) -> Result<Vec<Step<'a>>, Fault> {
        let ends = self.starts.iter().skip(1).copied().chain([self.end]);
        let step = |(start, end): (u64, u64)| {
            let at = |place: u64| usize::try_from(place).ok()?.checked_add(self.base);
            let record = bytes.get(at(start)?..at(end)?)?;
            Step::read(record, fixed_end)
        };
        let steps: Option<Vec<Step<'a>>> = self.starts.iter().copied().zip(ends).map(step).collect();
        steps.ok_or(Fault::Broken("a step of the histogram is no record"))
    }
}

impl<'a> Step<'a> {
    /// Reads a step. `record` must be exactly one record of four columns: three floats and the value.
    fn read(record: &'a [u8], fixed_end: u32) -> Option<Self> {
        const FIXED: [u8; 2] = [0x10, 0];
        const VARIABLE: [u8; 2] = [0x30, 0];
        const COLUMNS: u16 = 4;
        const VALUE_IS_NULL: u8 = 0x8;
        const AFTER_COUNTS: usize = 16;
        let end = u16_at(record, 2)?;
        if u32::from(end) != fixed_end || usize::from(end) < AFTER_COUNTS {
            return None;
        }
        let end = usize::from(end);
        let nulls = *record.get(end + 2)?;
        if u16_at(record, end)? != COLUMNS || nulls & !VALUE_IS_NULL != 0 {
            return None;
        }
        let rest = end + 3;
        let value = match *record.first_chunk()? {
            FIXED if record.len() == rest => record.get(AFTER_COUNTS..end)?,
            VARIABLE if end == AFTER_COUNTS => {
                let is_whole = u16_at(record, rest)? == 1 && usize::from(u16_at(record, rest + 2)?) == record.len();
                record.get(rest + 4..).filter(|_| is_whole)?
            }
            _ => return None,
        };
        Some(Self {
            value: (nulls == 0).then_some(value),
            equal_rows: float_at(record, 4)?,
            range_rows: float_at(record, 8)?,
            average_range_rows: float_at(record, 12)?,
        })
    }
}

fn float_at(bytes: &[u8], at: usize) -> Option<f32> {
    u32_at(bytes, at).map(f32::from_bits)
}

#[cfg(test)]
mod tests;
