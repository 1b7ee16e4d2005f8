//! Integers and integer expressions, computed for all rows of a page together if all rows have the same layout.

use catalog::RowsetColumn;
use expr::{Integers, OfTwoInts, Selection};
use format::same_shape::Rows;
use format::types::xtype;

use crate::values::vectors::VectorColumn;
use crate::values::{Column, Formula};

/// Scratch space for evaluations, reused from page to page.
pub(crate) use expr::IntegerScratch;

/// An integer column in the fixed part of the row.
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

    /// Whether all rows store the column with a value that is not NULL.
    fn is_in(self, rows: Rows<'_>) -> bool {
        rows.has_column(self.null_bit)
            && rows.nulls_of(self.null_bit).is_none()
            && rows.has_fixed(self.offset, self.length)
    }

    fn is_int(self) -> bool {
        self.length == 4 && self.is_signed
    }

    /// The value of each row; `None` if the column is not an int, is NULL in some row, or is not stored.
    #[inline(always)]
    pub(crate) fn ints<'a>(self, rows: Rows<'a>) -> Option<impl Iterator<Item = i32> + 'a> {
        (self.is_int() && self.is_in(rows)).then(|| rows.fixed(self.offset).map(i32::from_le_bytes))
    }

    /// Reads the value of each row; false if the column is NULL in some row or is not stored.
    pub(crate) fn read(self, rows: Rows<'_>, values: &mut [i64]) -> bool {
        if !self.is_in(rows) {
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

/// An integer expression over columns of the fixed part.
#[derive(Clone, Debug)]
pub(crate) struct IntegerFormula {
    integers: Integers,
    /// The columns that the expression refers to.
    operands: Vec<IntegerColumn>,
    /// The operation and its two columns, if the expression is an operation on two columns whose result is an int.
    /// Whether the two columns are ints is tested only when they are read.
    of_two_ints: Option<(OfTwoInts, [IntegerColumn; 2])>,
    /// Length of the result's type in bytes.
    pub(crate) length: u16,
}

impl IntegerFormula {
    /// The integer expression for a formula; `None` if a part of the formula is not an integer or is not stored in the
    /// fixed part.
    pub(crate) fn of(formula: &Formula) -> Option<Self> {
        let integers = formula.integers()?;
        let operands: Vec<_> = formula.columns().map(|(_, column)| IntegerColumn::of(column)).collect::<Option<_>>()?;
        let of_two_ints = integers.of_two_ints().and_then(|operation| {
            let [left, right] = operation.columns.map(|index| operands.get(index).copied());
            Some((operation, [left?, right?]))
        });
        Some(Self { integers, operands, of_two_ints, length: formula.target.length })
    }

    /// The result for each row, if the expression is an operation on two ints, which is the most frequent kind. A
    /// result outside the range of int means that the expression overflows in this row. `None` for any other
    /// expression, or if the result is NULL or uncertain in some row.
    #[inline(always)]
    pub(crate) fn values_of_two_ints(&self, rows: Rows<'_>) -> Option<impl Iterator<Item = i64>> {
        let (operation, [left, right]) = self.of_two_ints?;
        let [left, right] = [left.ints(rows)?, right.ints(rows)?];
        Some(left.zip(right).map(move |(left, right)| operation.value(left, right)))
    }

    /// The result for each row; `None` if the result is NULL or uncertain in some row.
    pub(crate) fn values<'r>(&self, rows: Rows<'_>, room: &'r mut IntegerScratch) -> Option<&'r [i64]> {
        self.integers.evaluate(rows.count(), room, |index, values| {
            self.operands.get(index).is_some_and(|operand| operand.read(rows, values))
        })
    }
}

/// The filter of an index, if it only compares integers and tests for NULL.
#[derive(Clone, Debug)]
pub(crate) struct IntegerFilter {
    selection: Selection,
    /// The columns that the filter refers to.
    operands: Vec<Operand>,
}

/// A column in a filter.
#[derive(Clone, Copy, Debug)]
struct Operand {
    null_bit: u16,
    /// Offset and length in the fixed part; `None` if the column is not stored there.
    fixed: Option<(u16, u16)>,
    integer: Option<IntegerColumn>,
    /// Where the values are in the sparse vectors of rows; `None` if the column is not stored in vectors.
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

    /// Sets `are_null` to whether the column is NULL in each row. Returns false if the null bitmap alone does not show
    /// which rows have a NULL. Clears `has_complex` if the result is certain only for rows without complex columns.
    fn nulls(self, rows: Rows<'_>, are_null: &mut [bool], has_complex: &mut bool) -> bool {
        if let Some(vector) = self.vector {
            *has_complex &= vector.nulls(rows, are_null);
            return true;
        }
        if !rows.has_null_bit(self.null_bit) || self.fixed.is_some_and(|(at, length)| !rows.has_fixed(at, length)) {
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
    /// The filter for a formula; `None` if the formula does anything but compare integers and test for NULL.
    pub(crate) fn of(formula: &Formula) -> Option<Self> {
        let selection = formula.selection()?;
        let operands = formula.columns().map(|(_, column)| Operand::of(column)).collect::<Option<_>>()?;
        Some(Self { selection, operands })
    }

    /// Selects the rows that satisfy the filter. The returned flag says whether the selection is also certain for rows
    /// with a complex column. Returns `None` if the selection is uncertain for some row without a complex column.
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

/// An expression over the int columns `[a]` and `[b]`, given by their offsets and null bits.
#[cfg(test)]
pub(crate) fn formula_of_ints(text: &str, columns: [(u16, u16); 2]) -> IntegerFormula {
    let info = format::types::TypeInfo::from_ti(xtype::INT.into());
    let int = expr::ColumnType { info, nullable: true, ..expr::ColumnType::default() };
    let program = expr::compile(text, &|_| Some(int)).unwrap();
    let integers = Integers::of(&program).unwrap();
    let [a, b] = columns.map(|(offset, null_bit)| IntegerColumn { offset, length: 4, is_signed: true, null_bit });
    let column = |name: &String| if name == "a" { a } else { b };
    let operands: Vec<_> = program.columns().iter().map(column).collect();
    let of_two_ints =
        integers.of_two_ints().map(|operation| (operation, operation.columns.map(|index| operands[index])));
    IntegerFormula { integers, operands, of_two_ints, length: 4 }
}

#[cfg(test)]
mod tests {
    use format::same_shape::SameShapeRows;
    use format::{Page, PageType};

    use super::*;
    use crate::test_pages::TestPage;

    const KINDS: [(u16, bool); 4] = [(1, false), (2, true), (4, true), (8, true)];

    /// One column of each integer type, stored next to each other in the fixed part.
    fn columns() -> [IntegerColumn; 4] {
        let mut offset = 4;
        KINDS.map(|(length, is_signed)| {
            offset += length;
            IntegerColumn { offset: offset - length, length, is_signed, null_bit: length }
        })
    }

    /// A page with the lowest and highest value of each type and the values next to zero. If `null_bit` is set, the
    /// column with this null bit is NULL in every row.
    fn page(null_bit: Option<u16>) -> Box<format::PageBytes> {
        let fixed = [0u64, 1, u64::MAX, i64::MAX.cast_unsigned(), i64::MIN.cast_unsigned(), 0x8070_6050_4030_2010];
        fixed
            .iter()
            .flat_map(|first| fixed.map(|second| [*first, second]))
            .fold(TestPage::new(PageType::Data), |page, values| {
                let highest: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).take(15).collect();
                let nulls = null_bit.map_or(0, |bit| 1 << (bit - 1));
                page.record(&[&[0x10, 0, 19, 0], &highest[..], &[8, 0, nulls]].concat())
            })
            .finish()
    }

    #[test]
    fn an_int_is_what_reading_gives() {
        let bytes = page(None);
        let (page, mut same_shape) = (Page::new(&bytes), SameShapeRows::default());
        assert!(same_shape.load(page, false));
        let rows = same_shape.of(page);
        for column in columns() {
            let mut values = vec![0; rows.count()];
            assert!(column.read(rows, &mut values));
            let ints = column.ints(rows).map(|ints| ints.map(i64::from).collect());
            assert_eq!(ints, (column.length == 4).then_some(values), "{column:?}");
        }
    }

    #[test]
    fn an_operation_on_two_ints_has_no_values_where_one_is_null_or_not_there() {
        let [_, small, int, _] = columns();
        let beyond = IntegerColumn { offset: 16, ..int };
        let count = |null_bit, columns: [IntegerColumn; 2]| {
            let bytes = page(null_bit);
            let (page, mut same_shape) = (Page::new(&bytes), SameShapeRows::default());
            assert!(same_shape.load(page, false));
            let mut formula = formula_of_ints("[a]*[b]", [(0, 0); 2]);
            formula.of_two_ints.as_mut().unwrap().1 = columns;
            formula.values_of_two_ints(same_shape.of(page)).map(Iterator::count)
        };
        assert!(count(None, [int, int]).is_some());
        assert!(count(Some(int.null_bit), [int, int]).is_none());
        for columns in [[small, int], [int, small], [int, beyond], [beyond, int]] {
            assert!(count(None, columns).is_none(), "{columns:?}");
        }
    }
}
