//! Hashes all rows of a page together, column by column and in place, if all rows have the same layout.

mod words;

use format::PageId;
use format::bytes::unsigned;
use format::same_shape::Rows;
use sums::hash::{FactHash, Hasher, RowHashes, Sum};

use super::form::Normalization;
use super::hash::{HashScratch, locator_bytes};
use super::plan::{ComparedColumn, UnitPlan};
use crate::values::Column;
use crate::values::integers::{IntegerFilter, IntegerFormula, IntegerScratch};
use crate::values::vectors::{InVector, VectorColumn};

use words::Words;

/// Where all rows store a value, or how it is computed.
#[derive(Clone, Debug)]
enum Place {
    /// Bytes in the fixed part of the row.
    Fixed { offset: u16, length: u16, null_bit: u16 },
    /// One bit of a byte in the fixed part of the row.
    Bit { offset: u16, bit: u8, null_bit: u16 },
    /// A variable-length column; numbers begin at 1.
    Variable { number: u16, null_bit: u16 },
    /// A value that is not hashed as stored. The value is in the fixed part or in a variable-length column.
    Formed(Box<Place>, Normalization),
    /// The uniquifier: four bytes in a variable-length column, or 0 if the row does not store it.
    Uniquifier { number: u16, null_bit: u16 },
    /// A value in the sparse vector, hashed in this form. Rows without complex columns have no vector, so their value
    /// is NULL.
    InVector(VectorColumn, Normalization),
    /// The address of the row.
    Locator,
    /// A computed column that the table does not store.
    Computed(IntegerFormula),
}

/// Where the rows of a unit store the values that a [`UnitPlan`] compares.
#[derive(Clone, Debug)]
pub(crate) struct BatchPlan {
    filter: Option<IntegerFilter>,
    /// Whether the first value is in the sparse vector and the index has no entry for rows in which this value is NULL.
    /// If this is true, the filter has no other condition.
    wants_first: bool,
    places: Vec<Place>,
    /// The words to hash for each row, if all rows have the same number of words.
    words: Option<Words>,
}

/// The sum over the rows of a page.
pub(super) struct Together {
    pub(super) sum: Sum,
    /// Number of rows that the index must have.
    pub(super) rows: u64,
    /// Whether the sum includes the rows that have a complex column. If not, it includes only rows without complex
    /// columns.
    pub(super) has_complex: bool,
}

impl BatchPlan {
    /// Makes the batch plan for `work`; `None` if rows must be hashed one by one. This is necessary if the filter tests
    /// anything other than integers and NULLs, if a computed value is not an integer, or if a decimal has variable
    /// length.
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
        let places = work.cells.iter().zip(&work.forms).map(place).collect::<Option<Vec<_>>>()?;
        let wants_first = work.wants_first && matches!(places.first(), Some(Place::InVector(..)));
        // A value in the vector counts as a word only if the index lacks the rows in which the value is NULL.
        let has_words = wants_first || !matches!(places.first(), Some(Place::InVector(..)));
        let words = Words::of(&places).filter(|_| has_words);
        Some(Self { filter, wants_first, places, words })
    }

    /// Sums the hashes of the live rows for which the index must have an entry. The sum may be limited to rows without
    /// complex columns (see [`Together::has_complex`]). `None` if a value is not in its expected place.
    pub(super) fn sum(
        &self,
        hash: &FactHash,
        page: PageId,
        rows: Rows<'_>,
        desk: &mut HashScratch,
    ) -> Option<Together> {
        // Most indexes have only a few words per row, which can be hashed in one pass.
        if let Some(words) = &self.words
            && self.places.iter().all(|place| place.is_words(rows))
            && let Some(together) = words.sum(self, hash, page, rows, &mut desk.integers)
        {
            return Some(together);
        }
        let HashScratch { hashes, integers, present, .. } = desk;
        hashes.start(hash, rows.count());
        let mut has_complex = true;
        for (at, place) in self.places.iter().enumerate() {
            let present = (at == 0 && self.wants_first).then_some(&mut *present);
            has_complex &= place.add(page, rows, (&mut *hashes, present), integers)?;
        }
        let selected = match &self.filter {
            None => None,
            Some(_) if self.wants_first => Some(&present[..]),
            Some(filter) => {
                let (selected, is_known_of_complex) = filter.select(rows, integers)?;
                has_complex &= is_known_of_complex;
                Some(selected)
            }
        };
        let counted = if has_complex { rows.are_live() } else { rows.are_plain() };
        let (sum, rows) = match (selected, counted) {
            (None, None) => (hashes.sum(), rows.count() as u64),
            (Some(rows), None) | (None, Some(rows)) => hashes.sum_of(rows.iter().copied()),
            (Some(selected), Some(counted)) => {
                hashes.sum_of(selected.iter().zip(counted).map(|(is_selected, is_counted)| is_selected & is_counted))
            }
        };
        Some(Together { sum, rows, has_complex })
    }
}

impl Place {
    fn of(column: &Column) -> Option<Self> {
        let stored = &column.column;
        if column.is_in_vector() {
            return Some(Self::InVector(VectorColumn::of(column)?, Normalization::AsStored));
        }
        // A computed zero may have either sign in the index, so computed decimals are hashed row by row.
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

    /// The place for values that are hashed in this form; `None` if the place and the form cannot be combined.
    fn formed(self, form: Normalization) -> Option<Self> {
        match (form, &self) {
            (Normalization::AsStored, _) => Some(self),
            (form, Self::InVector(column, _)) => Some(Self::InVector(*column, form)),
            (Normalization::Trimmed(_) | Normalization::Decimal, Self::Fixed { .. } | Self::Variable { .. }) => {
                Some(Self::Formed(Box::new(self), form))
            }
            _ => None,
        }
    }

    /// Whether, in each row, the words of this place ([`Words`]) are exactly the bytes to hash.
    fn is_words(&self, rows: Rows<'_>) -> bool {
        match *self {
            Self::Fixed { offset, length, null_bit } => {
                let is_in_rows = rows.has_fixed(offset, length) && rows.has_column(null_bit);
                is_in_rows && rows.nulls_of(null_bit).is_none()
            }
            Self::Formed(ref place, form) => {
                let Self::Fixed { offset, length, .. } = **place else { return false };
                place.is_words(rows) && rows.slices(offset, length).all(|value| form.is_as_stored(value))
            }
            Self::Locator => rows.slots().is_none(),
            // `Words::sum` itself detects rows without a computed value or without a value in the sparse vector.
            Self::Computed(_) | Self::InVector(..) => true,
            Self::Bit { .. } | Self::Variable { .. } | Self::Uniquifier { .. } => false,
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
            Self::Computed(_) | Self::InVector(..) | Self::Locator => 0,
        }
    }

    /// Adds the value of each row. Returns whether the results are also correct for rows with a complex column; `None`
    /// if a value is not in its expected place. For values in vectors, sets `present` to true in each row whose value
    /// is not NULL.
    fn add(
        &self,
        page: PageId,
        rows: Rows<'_>,
        (hashes, present): (&mut RowHashes, Option<&mut Vec<bool>>),
        integers: &mut IntegerScratch,
    ) -> Option<bool> {
        // If the rows were written before the column was added, the bytes at its place may belong to another column.
        if !rows.has_column(self.null_bit()) {
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
                    return Some(!rows.may_be_complex(number));
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
                return Some(!rows.may_be_complex(number));
            }
            Self::Uniquifier { null_bit, .. } if rows.nulls_of(null_bit).is_some() => return None,
            Self::Uniquifier { number, .. } => {
                hashes.add(rows.variable(number), |hasher, bytes| match bytes {
                    [] => hasher.add_bytes(&[0; 4]),
                    bytes => hasher.add_bytes(bytes),
                });
                return Some(!rows.may_be_complex(number));
            }
            Self::Computed(ref formula) => {
                let length = formula.length;
                let mask = u64::MAX >> (64 - 8 * length.clamp(1, 8));
                let values = formula.values(rows, integers)?.iter().map(|value| value.cast_unsigned() & mask);
                hashes.add_short(length.into(), values);
            }
            Self::InVector(column, form) => return in_vector(rows, (hashes, present), column, form),
            Self::Locator => {
                let locator = |slot| u64::from_le_bytes(locator_bytes(format::RecordId { page, slot }));
                match rows.slots() {
                    None => hashes.add_short(8, (0..).map(locator)),
                    Some(slots) => hashes.add_short(8, slots.iter().copied().map(locator)),
                }
            }
        }
        Some(true)
    }
}

/// Adds the values from sparse vectors. Returns whether the value of every live row is known; `None` if vectors never
/// contain values of this form.
fn in_vector(
    rows: Rows<'_>,
    (hashes, present): (&mut RowHashes, Option<&mut Vec<bool>>),
    column: VectorColumn,
    form: Normalization,
) -> Option<bool> {
    let mut none = Vec::new();
    let present = present.unwrap_or(&mut none);
    present.clear();
    let Some(are_live) = rows.are_live().filter(|_| rows.has_complex()) else {
        present.resize(rows.count(), false);
        hashes.add_null();
        return Some(true);
    };
    let mut are_known = true;
    let values = column.values(rows).zip(are_live).map(|(value, is_live)| {
        present.push(value != InVector::Null);
        match value {
            InVector::Null => None,
            InVector::Value(bytes) => Some(bytes),
            InVector::Unknown => {
                are_known &= !is_live;
                None
            }
        }
    });
    match (form, column.length) {
        (Normalization::AsStored, Some(length @ 1..=8)) => {
            hashes.add_short_or_null(length.into(), values.map(|value| value.map(unsigned)));
        }
        (Normalization::Vardecimal(_), _) => return None,
        _ => hashes.add(values, |hasher, value| match value {
            // Hashing can fail only for the form vardecimal, and the arm above has already returned for this form.
            Some(bytes) => _ = form.add(hasher, bytes),
            None => hasher.add_null(),
        }),
    }
    Some(are_known)
}

/// Whether the value of a variable-length column is certain in all rows. If a row does not store the column, only the
/// null bitmap distinguishes an empty value from NULL.
fn is_told(rows: Rows<'_>, number: u16, null_bit: u16) -> bool {
    rows.has_null_bit(null_bit) || number <= rows.fewest_variables()
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
    match rows.nulls_of(null_bit) {
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
    // Hashing can fail only for the form vardecimal, which values in these places never have.
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
    match rows.nulls_of(null_bit) {
        None => hashes.add(values, add),
        Some((nulls, bit)) => hashes.add(values.zip(nulls), |hasher, (bytes, nulls)| match nulls & bit {
            0 => add(hasher, bytes),
            _ => hasher.add_null(),
        }),
    }
}

#[cfg(test)]
mod tests;
