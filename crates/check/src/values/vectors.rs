//! The values of a sparse column in all rows of a page that have the same form.

use std::ops::Range;

use catalog::RowsetColumn;
use format::same_shape::{Rows, Vectors};
use format::sparse::SparseVector;
use format::types::fixed_length;

use crate::values::Column;

/// A sparse column of a table, whose values are stored in the sparse vectors of the rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorColumn {
    id: u16,
    /// The length of a value in bytes, if the type has a fixed length.
    pub(crate) length: Option<u16>,
    is_bit: bool,
}

/// The value of a sparse column in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InVector<'a> {
    Null,
    Value(&'a [u8]),
    /// A value that cannot be decoded, such as an off-row value.
    Unknown,
}

impl VectorColumn {
    /// Creates the description of a sparse column; `None` if the column ID is too large for a sparse vector.
    pub(crate) fn of(column: &Column) -> Option<Self> {
        let RowsetColumn { id, info, .. } = column.column;
        Some(Self { id: u16::try_from(id).ok()?, length: fixed_length(info), is_bit: column.bit().is_some() })
    }

    /// The value of the column in each row.
    pub(crate) fn values<'a>(self, rows: Rows<'a>) -> impl Iterator<Item = InVector<'a>> {
        rows.last_variables().map(move |(bytes, is_complex)| match SparseVector::read(bytes).filter(|_| is_complex) {
            Some(vector) => self.value(vector),
            None => InVector::Null,
        })
    }

    /// Returns the sparse vectors of the rows, and the range of the value within each vector. The result is `None` if
    /// the vectors of the live rows do not all store the value at the same position, or if the value has more than
    /// eight bytes.
    pub(crate) fn short_in(self, rows: Rows<'_>) -> Option<(Vectors<'_>, Range<u16>)> {
        let vectors = rows.vectors()?;
        let common = vectors.common_form()?;
        match self.value(common) {
            InVector::Value(bytes) if !self.is_bit && (1..=8).contains(&bytes.len()) => {
                Some((vectors, common.place_of(self.id)?))
            }
            _ => None,
        }
    }

    fn value(self, vector: SparseVector<'_>) -> InVector<'_> {
        match vector.value(self.id) {
            Ok(None) => InVector::Null,
            Ok(Some(value)) if !value.is_complex && self.is_whole(value.bytes) => match value.bytes {
                [byte] if self.is_bit => InVector::Value(if byte & 1 != 0 { &[1] } else { &[0] }),
                bytes => InVector::Value(bytes),
            },
            Ok(Some(_)) | Err(_) => InVector::Unknown,
        }
    }

    fn is_whole(self, bytes: &[u8]) -> bool {
        self.length.is_none_or(|length| bytes.len() == usize::from(length))
    }

    /// Sets each entry of `are_null` to whether the column is NULL in the row with the same index. The entries of
    /// deleted rows are meaningless. Returns false if it is unknown for some live row whether the column is NULL.
    pub(crate) fn nulls(self, rows: Rows<'_>, are_null: &mut [bool]) -> bool {
        let Some(are_live) = rows.are_live().filter(|_| rows.has_complex()) else {
            are_null.fill(true);
            return true;
        };
        // The common form of the vectors includes the lengths of the values. So one vector shows whether the column has
        // a value in all rows that have a vector.
        let common = rows.vectors().and_then(|vectors| Some((vectors, self.value(vectors.common_form()?))));
        if let Some((vectors, InVector::Value(_))) = common {
            are_null.iter_mut().zip(vectors.are_there()).for_each(|(is_null, is_there)| *is_null = !is_there);
            return true;
        }
        let values = self.values(rows).zip(are_live).zip(are_null);
        values.fold(true, |all, ((value, is_live), is_null)| {
            *is_null = value == InVector::Null;
            all & (!is_live || value != InVector::Unknown)
        })
    }
}
