//! Integers and expressions of integers, of all rows of a same-shape page at once.

use catalog::RowsetColumn;
use expr::{Integers, Selection};
use format::same_shape::Rows;
use format::types::xtype;

use crate::values::{Column, Formula};
use crate::vectors::VectorColumn;

/// What evaluations need; kept from page to page.
pub(crate) use expr::IntegerScratch;

/// A column of integers in the fixed part of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntegerColumn {
    offset: u16,
    length: u16,
    is_signed: bool,
    null_bit: u16,
}

impl IntegerColumn {
    pub(crate) fn of(column: &Column) -> Option<Self> {
        let RowsetColumn { info, leaf_offset, leaf_null_bit, .. } = column.column;
        let is_signed = match (info.xtype, info.length) {
            (xtype::TINYINT, 1) => false,
            (xtype::SMALLINT, 2) | (xtype::INT, 4) | (xtype::BIGINT, 8) => true,
            _ => return None,
        };
        let length = column.fixed_length?;
        Some(Self { offset: leaf_offset.unsigned_abs(), length, is_signed, null_bit: leaf_null_bit })
    }

    /// Reads the value of each row; false if it is NULL in some, or is not there.
    pub(crate) fn read(self, rows: Rows<'_>, values: &mut [i64]) -> bool {
        if rows.nulls_of(self.null_bit).is_some() || !rows.has_fixed(self.offset, self.length) {
            return false;
        }
        let values = values.iter_mut();
        match (self.length, self.is_signed) {
            (1, false) => fill(values, rows.fixed(self.offset).map(|bytes| u8::from_le_bytes(bytes).into())),
            (2, true) => fill(values, rows.fixed(self.offset).map(|bytes| i16::from_le_bytes(bytes).into())),
            (4, true) => fill(values, rows.fixed(self.offset).map(|bytes| i32::from_le_bytes(bytes).into())),
            (8, true) => fill(values, rows.fixed(self.offset).map(i64::from_le_bytes)),
            _ => return false,
        }
        true
    }
}

#[inline(always)]
fn fill<'a>(places: impl Iterator<Item = &'a mut i64>, values: impl Iterator<Item = i64>) {
    places.zip(values).for_each(|(place, value)| *place = value);
}

/// An expression of integers over columns of the fixed part.
#[derive(Clone, Debug)]
pub(crate) struct IntegerFormula {
    integers: Integers,
    /// The columns that it names.
    operands: Vec<IntegerColumn>,
    /// Bytes of the type of its value.
    pub(crate) length: u16,
}

impl IntegerFormula {
    /// `None` if something is not an integer, or is not in the fixed part.
    pub(crate) fn of(formula: &Formula) -> Option<Self> {
        let integers = formula.integers()?;
        let operands = formula.columns().map(|(_, column)| IntegerColumn::of(column)).collect::<Option<_>>()?;
        Some(Self { integers, operands, length: formula.target.length })
    }

    /// The value for each row; `None` if it is NULL or not certain in some.
    pub(crate) fn values<'r>(&self, rows: Rows<'_>, room: &'r mut IntegerScratch) -> Option<&'r [i64]> {
        self.integers.evaluate(rows.count(), room, |index, values| {
            self.operands.get(index).is_some_and(|operand| operand.read(rows, values))
        })
    }
}

/// A filter of an index over integers, and over columns that are NULL or not.
#[derive(Clone, Debug)]
pub(crate) struct IntegerFilter {
    selection: Selection,
    /// The columns that it names.
    operands: Vec<Operand>,
}

/// A column of a filter.
#[derive(Clone, Copy, Debug)]
struct Operand {
    null_bit: u16,
    /// Place and length, if it is in the fixed part.
    fixed: Option<(u16, u16)>,
    integer: Option<IntegerColumn>,
    /// If its values are in the vectors of rows.
    vector: Option<VectorColumn>,
}

impl Operand {
    fn of(column: &Column) -> Option<Self> {
        let RowsetColumn { info, leaf_offset, leaf_null_bit: null_bit, .. } = column.column;
        if column.is_in_vector() {
            return Some(Self { null_bit, fixed: None, integer: None, vector: Some(VectorColumn::of(column)?) });
        }
        if column.column.is_sparse() || leaf_offset == 0 || null_bit == 0 {
            return None;
        }
        let fixed = (leaf_offset > 0).then_some((leaf_offset.unsigned_abs(), info.length));
        Some(Self { null_bit, fixed, integer: IntegerColumn::of(column), vector: None })
    }

    /// Whether it is NULL in each row; false if the null bitmap alone does not show it. `has_complex` becomes false if it is
    /// known of plain rows only.
    fn nulls(self, rows: Rows<'_>, are_null: &mut [bool], has_complex: &mut bool) -> bool {
        if let Some(vector) = self.vector {
            *has_complex &= vector.nulls(rows, are_null);
            return true;
        }
        if self.null_bit > rows.column_count() || self.fixed.is_some_and(|(at, length)| !rows.has_fixed(at, length)) {
            return false;
        }
        match rows.nulls_of(self.null_bit) {
            None => are_null.fill(false),
            Some((words, bit)) => are_null.iter_mut().zip(words).for_each(|(is_null, word)| *is_null = word & bit != 0),
        }
        true
    }
}

impl IntegerFilter {
    /// `None` if it is of another kind.
    pub(crate) fn of(formula: &Formula) -> Option<Self> {
        let selection = formula.selection()?;
        let operands = formula.columns().map(|(_, column)| Operand::of(column)).collect::<Option<_>>()?;
        Some(Self { selection, operands })
    }

    /// Which rows satisfy it, and whether that is certain also of rows with a complex column; `None` if it is not certain of all
    /// plain ones.
    pub(crate) fn select<'r>(&self, rows: Rows<'_>, room: &'r mut IntegerScratch) -> Option<(&'r [bool], bool)> {
        let operand = |index: usize| self.operands.get(index).copied();
        let mut has_complex = true;
        let nulls = |index, are_null: &mut [bool]| {
            operand(index).is_some_and(|operand| operand.nulls(rows, are_null, &mut has_complex))
        };
        let values = |index, values: &mut [i64]| {
            operand(index).and_then(|operand| operand.integer).is_some_and(|integer| integer.read(rows, values))
        };
        let selected = self.selection.evaluate(rows.count(), room, values, nulls)?;
        Some((selected, has_complex))
    }
}
