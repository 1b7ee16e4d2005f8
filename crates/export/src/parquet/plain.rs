//! The values of a column in PLAIN encoding, and a bit per row that says whether the row has a value.

use super::schema::Part;

/// The size of the length that precedes each value of a variable-length type, in bytes.
pub(super) const LENGTH_BYTES: usize = 4;

/// The values that are not NULL, one after another. A bit value occupies one byte.
pub(super) struct Plain {
    pub(super) bytes: Vec<u8>,
    /// The length of each value in bytes; `None` if the values have variable length and each is preceded by its length.
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

    /// Removes all values. Also frees the memory if the values have variable length.
    pub(super) fn clear(&mut self) {
        match self.length {
            Some(_) => self.bytes.clear(),
            None => self.bytes = Vec::new(),
        }
    }

    /// Iterates over the values as stored: a variable-length value includes its length prefix.
    pub(super) fn values(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let (value, after) = rest.split_at_checked(extent(rest, self.length)?)?;
            rest = after;
            Some(value)
        })
    }

    /// The total length of the first `count` values from `offset` on, in bytes.
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

/// The length of the first value in bytes; `None` if there is no value.
#[inline]
fn extent(bytes: &[u8], length: Option<usize>) -> Option<usize> {
    match length {
        Some(length) => Some(length),
        None => bytes.first_chunk().map(|length| LENGTH_BYTES + u32::from_le_bytes(*length) as usize),
    }
}

/// Records which rows of a column have a value: one bit per row, the lowest bit of a byte first. Until the first NULL
/// is recorded, no bits are stored.
#[derive(Default)]
pub(super) struct Presence {
    bits: Vec<u8>,
    /// The number of rows without a value.
    pub(super) nulls: usize,
    rows: usize,
}

impl Presence {
    /// Records that `row` has no value. All earlier rows without a value must already be recorded.
    pub(super) fn null(&mut self, row: usize) {
        if self.bits.len() <= row / 8 {
            self.bits.resize(row / 8 + 1, 0xFF);
        }
        if let Some(byte) = self.bits.last_mut() {
            *byte &= !(1 << (row % 8));
        }
        self.nulls += 1;
    }

    /// Sets the number of rows, after all NULLs are recorded.
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

    /// The bits of `rows`, which must begin at a multiple of eight; `None` if the column has no NULL.
    pub(super) fn bits(&self, rows: std::ops::Range<usize>) -> Option<&[u8]> {
        self.bits.get(rows.start / 8..rows.end.div_ceil(8)).filter(|_| self.nulls > 0)
    }

    /// The number of rows with a value among the eight rows from `row` on; `row` is a multiple of eight.
    pub(super) fn present(&self, row: usize) -> usize {
        match self.bits.get(row / 8) {
            Some(byte) if self.nulls > 0 => byte.count_ones() as usize,
            _ => self.rows.saturating_sub(row).min(8),
        }
    }
}
