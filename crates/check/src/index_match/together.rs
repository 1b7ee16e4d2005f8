//! The hashes of all rows of a same-shape page at once: column by column, in place.

use format::PageId;
use format::same_shape::Rows;

use super::form::Normalization;
use super::hash::{HashScratch, locator_bytes};
use super::plan::{ComparedColumn, UnitPlan};
use crate::hash::{FactHash, Hasher, RowHashes, Sum};
use crate::integers::{IntegerFilter, IntegerFormula, IntegerScratch};
use crate::values::Column;

/// Where all rows have the value.
#[derive(Clone, Debug)]
enum Place {
    /// Bytes of the fixed part.
    Fixed { offset: u16, length: u16, null_bit: u16 },
    /// One bit of a byte of the fixed part.
    Bit { offset: u16, bit: u8, null_bit: u16 },
    /// A variable column, counted from 1.
    Variable { number: u16, null_bit: u16 },
    /// One of the others, hashed in a form of its own.
    Formed(Box<Place>, Normalization),
    /// Four bytes; 0 where they are not stored.
    Uniquifier { number: u16, null_bit: u16 },
    /// A value in a sparse vector, which plain rows do not have: NULL.
    InVector,
    /// The address of the row.
    Locator,
    /// A computed column that the table does not store.
    Computed(IntegerFormula),
}

/// The places of the values of a unit plan's cells.
#[derive(Clone, Debug)]
pub(crate) struct BatchPlan {
    filter: Option<IntegerFilter>,
    places: Vec<Place>,
}

impl BatchPlan {
    /// `None` for rows that must be checked one by one: with a filter, with computed values other than integers, or
    /// with decimals of variable length.
    pub(super) fn of(work: &UnitPlan) -> Option<Self> {
        let filter = match &work.filter {
            Some(filter) => Some(IntegerFilter::of(filter)?),
            None => None,
        };
        let place = |(cell, form): (&ComparedColumn, &Normalization)| match cell {
            ComparedColumn::Column(column) => Place::of(column)?.formed(*form),
            ComparedColumn::Locator => Some(Place::Locator),
            ComparedColumn::Computed(formula) => IntegerFormula::of(formula).map(Place::Computed),
        };
        let places = work.cells.iter().zip(&work.forms).map(place).collect::<Option<_>>()?;
        Some(Self { filter, places })
    }

    /// The sum of the hashes of the rows that the index has, exceptions aside, and their number; `None` if some value
    /// is not where it is expected.
    pub(super) fn sum(
        &self,
        hash: &FactHash,
        page: PageId,
        rows: Rows<'_>,
        desk: &mut HashScratch,
    ) -> Option<(Sum, u64)> {
        let HashScratch { hashes, integers, .. } = desk;
        hashes.start(hash, rows.count());
        for place in &self.places {
            place.add(page, rows, hashes, integers)?;
        }
        match &self.filter {
            None => Some(match rows.are_plain() {
                None => (hashes.sum(), rows.count() as u64),
                Some(are_plain) => hashes.sum_of(are_plain.iter().copied()),
            }),
            Some(filter) => {
                let selected = filter.select(rows, integers)?.iter().copied();
                Some(match rows.are_plain() {
                    None => hashes.sum_of(selected),
                    Some(are_plain) => {
                        hashes.sum_of(selected.zip(are_plain).map(|(is_selected, plain)| is_selected & plain))
                    }
                })
            }
        }
    }
}

impl Place {
    fn of(column: &Column) -> Option<Self> {
        let stored = &column.column;
        if column.is_in_vector() {
            return Some(Self::InVector);
        }
        // A computed zero is hashed without its sign.
        if column.is_computed && format::types::is_decimal(stored.info) {
            return None;
        }
        let (offset, null_bit) = (stored.leaf_offset.unsigned_abs(), stored.leaf_null_bit);
        match (stored.leaf_offset, column.bit()) {
            (i16::MIN..=-1, None) if column.is_uniquifier => Some(Self::Uniquifier { number: offset, null_bit }),
            (i16::MIN..=-1, None) => Some(Self::Variable { number: offset, null_bit }),
            (1.., None) if !column.is_uniquifier => Some(Self::Fixed { offset, length: stored.info.length, null_bit }),
            (1.., Some(bit @ 0..8)) => Some(Self::Bit { offset, bit, null_bit }),
            _ => None,
        }
    }

    /// The place of values that are hashed in this form.
    fn formed(self, form: Normalization) -> Option<Self> {
        match (form, &self) {
            (Normalization::AsStored, _) | (_, Self::InVector) => Some(self),
            (Normalization::Trimmed(_) | Normalization::Decimal, Self::Fixed { .. } | Self::Variable { .. }) => {
                Some(Self::Formed(Box::new(self), form))
            }
            _ => None,
        }
    }

    /// The column's null bit; 0 if it has none.
    fn null_bit(&self) -> u16 {
        match *self {
            Self::Formed(ref place, _) => place.null_bit(),
            Self::Fixed { null_bit, .. }
            | Self::Bit { null_bit, .. }
            | Self::Variable { null_bit, .. }
            | Self::Uniquifier { null_bit, .. } => null_bit,
            Self::Computed(_) | Self::InVector | Self::Locator => 0,
        }
    }

    /// Adds the value of each row.
    fn add(&self, page: PageId, rows: Rows<'_>, hashes: &mut RowHashes, integers: &mut IntegerScratch) -> Option<()> {
        // If the rows do not have the column yet, the bytes in its place may belong to another.
        if (1..self.null_bit()).contains(&rows.column_count()) {
            return None;
        }
        match *self {
            Self::Fixed { offset, length, null_bit } => {
                if !rows.has_fixed(offset, length) {
                    return None;
                }
                match length {
                    1 => short::<1>(rows, hashes, offset, null_bit),
                    2 => short::<2>(rows, hashes, offset, null_bit),
                    3 => short::<3>(rows, hashes, offset, null_bit),
                    4 => short::<4>(rows, hashes, offset, null_bit),
                    5 => short::<5>(rows, hashes, offset, null_bit),
                    6 => short::<6>(rows, hashes, offset, null_bit),
                    7 => short::<7>(rows, hashes, offset, null_bit),
                    8 => short::<8>(rows, hashes, offset, null_bit),
                    _ => long(rows, hashes, rows.slices(offset, length), null_bit),
                }
            }
            Self::Formed(ref place, form) => match **place {
                Self::Fixed { offset, length, null_bit } if rows.has_fixed(offset, length) => {
                    formed(rows, hashes, rows.slices(offset, length), null_bit, form);
                }
                Self::Variable { number, null_bit } if is_told(rows, number, null_bit) => {
                    formed(rows, hashes, rows.variable(number), null_bit, form);
                }
                _ => return None,
            },
            Self::Bit { offset, bit, null_bit } => {
                if !rows.has_fixed(offset, 1) {
                    return None;
                }
                let values = rows.fixed(offset).map(|[byte]: [u8; 1]| u64::from(byte >> bit & 1));
                add_short(rows, hashes, 1, values, null_bit);
            }
            Self::Variable { number, null_bit } => {
                if !is_told(rows, number, null_bit) {
                    return None;
                }
                long(rows, hashes, rows.variable(number), null_bit);
            }
            Self::Uniquifier { null_bit, .. } if nulls(rows, null_bit).is_some() => return None,
            Self::Uniquifier { number, .. } => {
                hashes.add(rows.variable(number), |hasher, bytes| match bytes {
                    [] => hasher.add_bytes(&[0; 4]),
                    bytes => hasher.add_bytes(bytes),
                });
            }
            Self::Computed(ref formula) => {
                let length = formula.length;
                let mask = u64::MAX >> (64 - 8 * length.clamp(1, 8));
                let values = formula.values(rows, integers)?.iter().map(|value| value.cast_unsigned() & mask);
                hashes.add_short(length.into(), values);
            }
            Self::InVector => hashes.add_null(),
            Self::Locator => {
                let locators = (0..).map(|slot| u64::from_le_bytes(locator_bytes(format::RecordId { page, slot })));
                hashes.add_short(8, locators);
            }
        }
        Some(())
    }
}

/// Whether all rows determine the value of a variable column. If it is not stored, only the null bitmap distinguishes
/// an empty value from NULL.
fn is_told(rows: Rows<'_>, number: u16, null_bit: u16) -> bool {
    null_bit <= rows.column_count() || number <= rows.fewest_variables()
}

/// The null bitmaps of the rows and the column's bit in them, if the column is NULL in some row.
fn nulls(rows: Rows<'_>, null_bit: u16) -> Option<(&[u64], u64)> {
    let bit = 1u64.checked_shl(u32::from(null_bit).checked_sub(1)?)?;
    (rows.nulls() & bit != 0).then(|| (rows.nulls_of_each(), bit))
}

#[inline(always)]
fn short<const N: usize>(rows: Rows<'_>, hashes: &mut RowHashes, offset: u16, null_bit: u16) {
    let values = rows.fixed::<N>(offset).map(|bytes| {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(bytes) {
            *to = from;
        }
        u64::from_le_bytes(word)
    });
    add_short(rows, hashes, N, values, null_bit);
}

#[inline(always)]
fn add_short(rows: Rows<'_>, hashes: &mut RowHashes, length: usize, values: impl Iterator<Item = u64>, null_bit: u16) {
    match nulls(rows, null_bit) {
        None => hashes.add_short(length, values),
        Some((nulls, bit)) => {
            let values = values.zip(nulls).map(|(value, nulls)| (nulls & bit == 0).then_some(value));
            hashes.add_short_or_null(length, values);
        }
    }
}

#[inline(always)]
fn long<'a>(rows: Rows<'_>, hashes: &mut RowHashes, values: impl Iterator<Item = &'a [u8]>, null_bit: u16) {
    values_or_nulls(rows, hashes, values, null_bit, |hasher, bytes| hasher.add_bytes(bytes));
}

fn formed<'a>(
    rows: Rows<'_>,
    hashes: &mut RowHashes,
    values: impl Iterator<Item = &'a [u8]>,
    null_bit: u16,
    form: Normalization,
) {
    // These forms accept all values.
    values_or_nulls(rows, hashes, values, null_bit, |hasher, bytes| _ = form.add(hasher, bytes));
}

#[inline(always)]
fn values_or_nulls<'a>(
    rows: Rows<'_>,
    hashes: &mut RowHashes,
    values: impl Iterator<Item = &'a [u8]>,
    null_bit: u16,
    add: impl Fn(&mut Hasher<'_>, &[u8]),
) {
    match nulls(rows, null_bit) {
        None => hashes.add(values, add),
        Some((nulls, bit)) => hashes.add(values.zip(nulls), |hasher, (bytes, nulls)| match nulls & bit {
            0 => add(hasher, bytes),
            _ => hasher.add_null(),
        }),
    }
}
