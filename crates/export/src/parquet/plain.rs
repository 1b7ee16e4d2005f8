//! The values of a column in the form of a page of encoding PLAIN, and which rows have a value.

use super::schema::Part;

/// Bytes of the length before each value of a type with variable length.
pub(super) const LENGTH_BYTES: usize = 4;

/// Values one after another, without NULLs. Each bit value is stored in a byte.
pub(super) struct Plain {
    pub(super) bytes: Vec<u8>,
    /// The length of each value; `None` if each value is preceded by its length.
    pub(super) length: Option<usize>,
}

impl Plain {
    /// A column without values.
    pub(super) fn new(part: Part) -> Self {
        let length = match part {
            Part::Bool => Some(1),
            Part::Int32 | Part::Date | Part::Rest | Part::Offset | Part::Real => Some(4),
            Part::Int64 | Part::TimeMicros | Part::Moment | Part::Float => Some(8),
            Part::Fixed(bytes) => Some(bytes),
            Part::Guid => Some(16),
            Part::Text | Part::Bytes => None,
        };
        Self { bytes: Vec::new(), length }
    }

    /// Removes all values; frees the memory of long ones.
    pub(super) fn clear(&mut self) {
        match self.length {
            Some(_) => self.bytes.clear(),
            None => self.bytes = Vec::new(),
        }
    }

    /// Each value as stored, with its length if the length precedes it.
    pub(super) fn values(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let (value, after) = rest.split_at_checked(extent(rest, self.length)?)?;
            rest = after;
            Some(value)
        })
    }

    /// Bytes of the first `count` values from `offset` on.
    pub(super) fn extent_of(&self, offset: usize, count: usize) -> usize {
        if let Some(length) = self.length {
            return length * count;
        }
        let mut end = offset;
        for _ in 0..count {
            end += self.bytes.get(end..).and_then(|rest| extent(rest, None)).unwrap_or(0);
        }
        end - offset
    }
}

/// Bytes of the first value; `None` if there is none.
#[inline]
fn extent(bytes: &[u8], length: Option<usize>) -> Option<usize> {
    match length {
        Some(length) => Some(length),
        None => bytes.first_chunk().map(|length| LENGTH_BYTES + u32::from_le_bytes(*length) as usize),
    }
}

/// Which rows of a column have a value: one bit per row, from the lowest. Nothing is stored until the first NULL.
#[derive(Default)]
pub(super) struct Presence {
    bits: Vec<u8>,
    /// Rows without a value.
    pub(super) nulls: usize,
    rows: usize,
}

impl Presence {
    /// Records that the row has no value. All earlier rows must be recorded already.
    pub(super) fn null(&mut self, row: usize) {
        if self.bits.len() <= row / 8 {
            self.bits.resize(row / 8 + 1, 0xFF);
        }
        if let Some(byte) = self.bits.last_mut() {
            *byte &= !(1 << (row % 8));
        }
        self.nulls += 1;
    }

    /// Sets the number of rows.
    pub(super) fn end(&mut self, rows: usize) {
        self.rows = rows;
        if self.nulls > 0 {
            self.bits.resize(rows.div_ceil(8), 0xFF);
            if let Some(byte) = self.bits.last_mut().filter(|_| !rows.is_multiple_of(8)) {
                *byte &= (1 << (rows % 8)) - 1;
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.bits.clear();
        (self.nulls, self.rows) = (0, 0);
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The bits of these rows, which begin at a multiple of eight; `None` if all have a value.
    pub(super) fn bits(&self, rows: std::ops::Range<usize>) -> Option<&[u8]> {
        self.bits.get(rows.start / 8..rows.end.div_ceil(8)).filter(|_| self.nulls > 0)
    }

    /// The number of rows with a value among the eight rows from `row` on, a multiple of eight.
    pub(super) fn present(&self, row: usize) -> usize {
        match self.bits.get(row / 8) {
            Some(byte) if self.nulls > 0 => byte.count_ones() as usize,
            _ => self.rows.saturating_sub(row).min(8),
        }
    }
}
