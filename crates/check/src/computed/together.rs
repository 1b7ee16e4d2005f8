//! The computed columns of all rows of a uniform page at once, where they are integers.

use catalog::RowsetColumn;
use expr::{IntegerRoom, Integers};
use format::types::xtype;
use format::uniform::Rows;

use super::{Persisted, Sums};
use crate::context::Context;
use crate::units::UnitIndex;
use crate::values::{Column, Formula};

/// How a column is computed for many rows at a time.
pub(super) struct Together {
    integers: Integers,
    /// The columns that it names.
    operands: Vec<Place>,
    stored: Place,
}

/// An integer that lies at the same place in all rows.
#[derive(Clone, Copy)]
struct Place {
    offset: u16,
    length: u16,
    is_signed: bool,
    null_bit: u16,
}

/// What pages need; kept from page to page.
#[derive(Default)]
pub(super) struct Room {
    integers: IntegerRoom,
    stored: Vec<i64>,
}

impl Place {
    fn of(column: &Column) -> Option<Self> {
        let RowsetColumn { info, leaf_offset, leaf_null_bit, .. } = column.column;
        let is_signed = match (info.xtype, info.length) {
            (xtype::TINYINT, 1) => false,
            (xtype::SMALLINT, 2) | (xtype::INT, 4) | (xtype::BIGINT, 8) => true,
            _ => return None,
        };
        let length = column.fixed_length?;
        Some(Self { offset: leaf_offset.unsigned_abs(), length, is_signed, null_bit: leaf_null_bit })
    }

    /// Reads the value of each row; false if some row has none.
    fn read(self, rows: Rows<'_>, values: &mut [i64]) -> bool {
        let null = u32::from(self.null_bit).checked_sub(1).and_then(|bit| 1u64.checked_shl(bit)).unwrap_or_default();
        if rows.nulls() & null != 0 || !rows.has_fixed(self.offset, self.length) {
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

impl Together {
    /// `None` if something is not an integer of the fixed part of rows.
    pub(super) fn of(column: &Column, formula: &Formula) -> Option<Self> {
        let integers = formula.integers()?;
        let operands = formula.columns().map(|(_, column)| Place::of(column)).collect::<Option<_>>()?;
        Some(Self { integers, operands, stored: Place::of(column)? })
    }

    /// Whether each row stores what the definition gives.
    fn holds(&self, rows: Rows<'_>, room: &mut Room) -> bool {
        let Room { integers, stored } = room;
        stored.resize(rows.count(), 0);
        let computed = self.integers.evaluate(rows.count(), integers, |index, values| {
            self.operands.get(index).is_some_and(|place| place.read(rows, values))
        });
        computed.is_some_and(|computed| self.stored.read(rows, stored) && computed == stored)
    }
}

/// Whether all computed columns of the page's rows are right for certain; then they are counted.
pub(crate) fn page(context: &Context<'_>, unit: UnitIndex, rows: Rows<'_>, sums: &mut Sums) -> bool {
    let columns = context.computed.of(unit);
    let mut holds = |column: &Persisted| column.together.as_ref().is_some_and(|plan| plan.holds(rows, &mut sums.page));
    if !columns.iter().all(&mut holds) {
        return false;
    }
    if !columns.is_empty() {
        sums.values.resize(context.computed.counters, (0, 0));
    }
    for column in columns {
        if let Some(values) = sums.values.get_mut(column.counter) {
            values.0 += rows.count() as u64;
        }
    }
    true
}
