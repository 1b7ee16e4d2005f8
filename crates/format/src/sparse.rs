//! The sparse vector of a row (docs/format/sparse.md): all sparse values that are not NULL, in one complex variable
//! column.

use std::ops::Range;

use crate::bytes::u16_at;
use crate::fields::{self, Structure};
use crate::record::{COMPLEX, Record, RecordKind};

/// The first word of a sparse vector.
const SPARSE: u16 = 5;
/// The length in bytes of the header of a vector: its first word and the number of values.
const HEADER_BYTES: usize = fields::series(Structure::SparseVector, "columnId", 2).0;

/// A rule that a sparse vector breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SparseFault {
    /// The rule that is broken.
    pub test: &'static str,
    /// The value that was tested.
    pub value: i64,
    /// The value or limit with which the tested value was compared.
    pub against: i64,
}

impl SparseFault {
    #[cold]
    fn new(test: &'static str, value: usize, against: usize) -> Self {
        Self { test, value: value as i64, against: against as i64 }
    }
}

/// The sparse values of a row. Only the vector's first word has been verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SparseVector<'a> {
    bytes: &'a [u8],
    count: usize,
}

/// A sparse value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SparseValue<'a> {
    /// The ID of the column.
    pub column: u16,
    /// The stored bytes.
    pub bytes: &'a [u8],
    /// Whether the stored bytes are not the plain value.
    pub is_complex: bool,
}

impl<'a> SparseVector<'a> {
    /// Reads the vector in the bytes of a complex column. `None` if the bytes do not begin like a vector.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        const fn at(name: &str) -> usize {
            fields::offset(Structure::SparseVector, name, 2)
        }
        (u16_at(bytes, const { at("id") }) == Some(SPARSE))
            .then(|| Self { bytes, count: u16_at(bytes, const { at("count") }).map_or(usize::MAX, usize::from) })
    }

    /// The vector of a record in a table with sparse columns; `None` if the record has no vector. The vector is the
    /// last variable column, except in a forwarded row, where a back pointer follows the vector.
    pub fn of(record: &Record<'a>) -> Option<Self> {
        let behind = u16::from(record.kind() == RecordKind::Forwarded);
        match record.variable(record.variable_count().checked_sub(behind)?)? {
            (bytes, true) => Self::read(bytes),
            (_, false) => None,
        }
    }

    /// The bytes of the vector.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The first rule that the vector breaks. There are four rules: the column IDs and end offsets are inside the
    /// vector, the column IDs ascend, the offsets ascend, and the last offset is the length of the vector.
    pub fn fault(&self) -> Option<SparseFault> {
        let mut end = match self.values_at() {
            Ok(at) => at,
            Err(fault) => return Some(fault),
        };
        for position in 0..self.count {
            if position > 0 && self.id(position) <= self.id(position - 1) {
                let (id, before) = (self.id(position), self.id(position - 1));
                return Some(SparseFault::new("sparse vector: column IDs ascend", id.into(), before.into()));
            }
            let (offset, _) = self.end(position);
            if offset < end {
                return Some(SparseFault::new("sparse vector: offsets ascend", offset, end));
            }
            end = offset;
        }
        (end != self.bytes.len())
            .then(|| SparseFault::new("sparse vector: last offset == length", end, self.bytes.len()))
    }

    /// The value of the column with this ID; `None` if it is NULL. Only the entry of this column is verified.
    pub fn value(&self, column: u16) -> Result<Option<SparseValue<'a>>, SparseFault> {
        self.position(column)?.map(|position| self.entry(position)).transpose()
    }

    /// The range of this column's value in the bytes of the vector; `None` if the value is NULL, or if its entry is
    /// impossible.
    pub fn place_of(&self, column: u16) -> Option<Range<u16>> {
        let position = self.position(column).ok()??;
        let (value, (end, _)) = (self.entry(position).ok()?, self.end(position));
        Some(end.checked_sub(value.bytes.len())? as u16..end as u16)
    }

    /// The index of this column's value among the values; `None` if the value is NULL.
    fn position(&self, column: u16) -> Result<Option<usize>, SparseFault> {
        self.values_at()?;
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            match self.id(middle).cmp(&column) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(Some(middle)),
            }
        }
        Ok(None)
    }

    /// The bytes before the values; `None` if the vector breaks a rule.
    pub(crate) fn sound_head(&self) -> Option<&'a [u8]> {
        self.fault().is_none().then_some(self.bytes.get(..self.values_at().ok()?)?)
    }

    /// The values, up to the first one with an impossible entry.
    pub fn values(self) -> impl Iterator<Item = SparseValue<'a>> {
        let count = if self.values_at().is_ok() { self.count } else { 0 };
        (0..count).map_while(move |position| self.entry(position).ok())
    }

    /// The start of the values, after the column IDs and the end offsets.
    fn values_at(&self) -> Result<usize, SparseFault> {
        let at = self.count.saturating_mul(4).saturating_add(HEADER_BYTES);
        match at <= self.bytes.len() {
            true => Ok(at),
            false => Err(SparseFault::new("sparse vector: columns <= length", at, self.bytes.len())),
        }
    }

    fn word(&self, at: usize) -> u16 {
        u16_at(self.bytes, at).unwrap_or_default()
    }

    fn id(&self, position: usize) -> u16 {
        self.word(HEADER_BYTES + 2 * position)
    }

    /// The end offset of a value, and whether the value is complex. The highest bit marks a complex value, as in the
    /// end offsets of variable columns.
    fn end(&self, position: usize) -> (usize, bool) {
        let word = self.word(HEADER_BYTES + 2 * self.count + 2 * position);
        (usize::from(word & !COMPLEX), word & COMPLEX != 0)
    }

    fn entry(&self, position: usize) -> Result<SparseValue<'a>, SparseFault> {
        let start = match position.checked_sub(1) {
            Some(before) => self.end(before).0,
            None => self.values_at()?,
        };
        let (end, is_complex) = self.end(position);
        let bytes = self.bytes.get(start..end).filter(|_| start >= HEADER_BYTES + 4 * self.count);
        let bytes = bytes.ok_or_else(|| SparseFault::new("sparse vector: offsets ascend", end, start))?;
        Ok(SparseValue { column: self.id(position), bytes, is_complex })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values B = 3 and E = 1234 of the published example (docs/format/sparse.md).
    const VECTOR: [u8; 20] = [5, 0, 2, 0, 3, 0, 6, 0, 0x10, 0, 0x14, 0, 3, 0, 0, 0, 0xD2, 4, 0, 0];

    fn fault(bytes: &[u8]) -> Option<&'static str> {
        SparseVector::read(bytes).expect("a vector").fault().map(|fault| fault.test)
    }

    fn plain(column: u16, bytes: &[u8]) -> SparseValue<'_> {
        SparseValue { column, bytes, is_complex: false }
    }

    #[test]
    fn the_published_vector_is_sound_and_has_its_values() {
        let vector = SparseVector::read(&VECTOR).expect("a vector");
        assert_eq!(vector.fault(), None);
        let (b, e) = (plain(3, &[3, 0, 0, 0]), plain(6, &[0xD2, 4, 0, 0]));
        assert_eq!(vector.values().collect::<Vec<_>>(), [b, e]);
        for (column, value) in [(1, None), (3, Some(b)), (4, None), (6, Some(e)), (7, None), (u16::MAX, None)] {
            assert_eq!(vector.value(column), Ok(value), "{column}");
            let place = vector.place_of(column).map(|place| &VECTOR[usize::from(place.start)..usize::from(place.end)]);
            assert_eq!(place, value.map(|value| value.bytes), "{column}");
        }
        assert_eq!(SparseVector::read(&[2, 0, 1, 0]), None);
    }

    #[test]
    fn each_rule_is_checked() {
        let with = |at: usize, byte: u8| {
            let mut bytes = VECTOR;
            bytes[at] = byte;
            fault(&bytes)
        };
        assert_eq!(with(6, 3), Some("sparse vector: column IDs ascend"));
        assert_eq!(with(8, 0x15), Some("sparse vector: offsets ascend"));
        assert_eq!(with(8, 0x0B), Some("sparse vector: offsets ascend"));
        assert_eq!(with(10, 0x13), Some("sparse vector: last offset == length"));
        assert_eq!(with(2, 5), Some("sparse vector: columns <= length"));
        assert_eq!(fault(&[5, 0]), Some("sparse vector: columns <= length"));
    }

    #[test]
    fn a_value_with_an_impossible_entry_is_a_fault_of_its_own() {
        let mut bytes = VECTOR;
        bytes[8] = 0x15;
        let vector = SparseVector::read(&bytes).expect("a vector");
        assert!(vector.value(3).is_err() && vector.value(6).is_err());
        assert_eq!((vector.value(5), vector.values().count()), (Ok(None), 0));
        bytes[8..10].copy_from_slice(&[0x10, 0x80]);
        let vector = SparseVector::read(&bytes).expect("a vector");
        assert_eq!(
            (vector.fault(), vector.value(3).map(|value| value.is_some_and(|v| v.is_complex))),
            (None, Ok(true))
        );
    }

    #[test]
    fn the_vector_of_a_record_is_its_last_variable_column() {
        // The published row: ID = 1, then the vector, which has the end offset 0x8023.
        let mut row = vec![0x30, 0, 8, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0x23, 0x80];
        row.extend(VECTOR);
        let record = Record::data(&row).expect("a record");
        assert_eq!(SparseVector::of(&record), SparseVector::read(&VECTOR));
        // A published row of a table that has only sparse columns. All of them are NULL, so the row has no null bitmap
        // and no variable part.
        let row = [0, 0, 4, 0, 1, 0, 8, 0, 0];
        assert_eq!(SparseVector::of(&Record::data(&row).expect("a record")), None);
        // A row of the same table in which one column has a value: the row has a variable part, but no null bitmap.
        let mut row = vec![0x20, 0, 4, 0, 1, 0, 0x14, 0x80, 5, 0, 1, 0, 1, 0, 12, 0, 5, 0, 0, 0];
        let value =
            |row: &[u8]| SparseVector::of(&Record::data(row).expect("a record"))?.value(1).ok()?.map(|v| v.bytes[0]);
        assert_eq!(value(&row), Some(5));
        // In a forwarded row, the back pointer follows the vector.
        row[0] = 0x22;
        row.splice(4..8, [2, 0, 22, 0x80, 32, 0x80]);
        row.extend([0, 4, 9, 0, 0, 0, 1, 0, 3, 0]);
        assert_eq!(value(&row), Some(5));
    }
}
