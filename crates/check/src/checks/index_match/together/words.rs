//! Rows with a few words to hash, the same number in each row. They are hashed in one pass that keeps the words in
//! registers.

use format::PageId;
use format::same_shape::Rows;
use sums::hash::{FactHash, INNER, Role, Sum};

use super::{BatchPlan, Place, Together};
use crate::checks::index_match::form::Normalization;
use crate::checks::index_match::hash::locator_bytes;
use crate::values::integers::IntegerScratch;
use crate::values::vectors::VectorColumn;

/// The maximum number of words per row. Each number of words has its own compiled loops.
const MOST: usize = 6;

/// Number of bytes in a word.
const BYTES: u16 = 8;

/// A value of up to eight bytes, or a piece of a longer value. All pieces of a value have eight bytes, except the last
/// piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Word {
    /// Offset of the word's end in a row.
    end: u16,
    /// Number of bytes that belong to the word; the bytes before them are read but ignored.
    length: u16,
    role: Role,
}

/// The words to hash for each row. Most are non-NULL values in the fixed part. The first word may be a computed
/// integer, or a value in the sparse vector if the index lacks rows in which this value is NULL. The last word may be
/// the address of the row.
#[derive(Clone, Debug)]
pub(super) struct Words {
    words: Vec<Word>,
    has_address: bool,
}

impl Word {
    /// A word that is not stored in the row. The bytes that are read from the row in its place are ignored.
    fn elsewhere(length: u16) -> Self {
        Self { end: BYTES, length, role: length.into() }
    }

    /// The words of a value in the fixed part: eight bytes each, except the last word.
    fn of(offset: u16, length: u16) -> impl Iterator<Item = Self> {
        let last = length.saturating_sub(1) / BYTES * BYTES;
        let inner = (BYTES..=last).step_by(BYTES.into()).map(|end| (end, BYTES, INNER));
        let words = inner.chain([(length, length - last, (length - last).into())]);
        words.map(move |(end, length, role)| Self { end: offset.saturating_add(end), length, role })
    }
}

impl Words {
    /// The words of these places. `None` if some place has a kind of value that cannot be a word, or if there are too
    /// many words.
    pub(super) fn of(places: &[Place]) -> Option<Self> {
        let mut found = Self { words: Vec::new(), has_address: false };
        for (at, place) in places.iter().enumerate() {
            let place = match place {
                Place::Formed(place, _) => place,
                place => place,
            };
            match *place {
                Place::Fixed { offset, length: length @ 1.., .. } => {
                    // One word above the maximum is enough to detect that there are too many words.
                    found.words.extend(Word::of(offset, length).take(MOST + 1));
                }
                Place::Locator if at > 0 && at + 1 == places.len() => {
                    found.words.push(Word::elsewhere(BYTES));
                    found.has_address = true;
                }
                Place::Computed(ref formula) if at == 0 && (1..=BYTES).contains(&formula.length) => {
                    found.words.push(Word::elsewhere(formula.length));
                }
                Place::InVector(VectorColumn { length: Some(length @ 1..=BYTES), .. }, Normalization::AsStored)
                    if at == 0 =>
                {
                    found.words.push(Word::elsewhere(length));
                }
                _ => return None,
            }
        }
        (1..=MOST).contains(&found.words.len()).then_some(found)
    }

    /// Hashes these words of each row, and returns the sum of the hashes; `None` if one pass cannot compute it.
    pub(super) fn sum(
        &self,
        plan: &BatchPlan,
        hash: &FactHash,
        page: PageId,
        rows: Rows<'_>,
        integers: &mut IntegerScratch,
    ) -> Option<Together> {
        let sum = match (self.words.len(), self.has_address) {
            (1, _) => Self::sum_of::<1, false>,
            (2, false) => Self::sum_of::<2, false>,
            (2, true) => Self::sum_of::<2, true>,
            (3, false) => Self::sum_of::<3, false>,
            (3, true) => Self::sum_of::<3, true>,
            (4, false) => Self::sum_of::<4, false>,
            (4, true) => Self::sum_of::<4, true>,
            (5, false) => Self::sum_of::<5, false>,
            (5, true) => Self::sum_of::<5, true>,
            (MOST, false) => Self::sum_of::<MOST, false>,
            (MOST, true) => Self::sum_of::<MOST, true>,
            _ => return None,
        };
        sum(self, plan, hash, page, rows, integers)
    }

    /// Like `sum`, for `N` words. If `HAS_ADDRESS` is set, the last word is the address of the row.
    #[inline(never)]
    fn sum_of<const N: usize, const HAS_ADDRESS: bool>(
        &self,
        plan: &BatchPlan,
        hash: &FactHash,
        page: PageId,
        rows: Rows<'_>,
        integers: &mut IntegerScratch,
    ) -> Option<Together> {
        let words: &[Word; N] = self.words.first_chunk()?;
        let roles = words.map(|word| word.role);
        if let Some(Place::InVector(column, _)) = plan.places.first() {
            let (vectors, place) = column.short_in(rows).filter(|_| plan.wants_first)?;
            let values = values::<N, HAS_ADDRESS, true>(words, page, rows, vectors.words(place.end))?;
            let (sum, rows) = hash.sum_of_words(roles, values.zip(vectors.are_there()));
            return Some(Together { sum, rows, has_complex: true });
        }
        let computed = match plan.places.first() {
            Some(Place::Computed(formula)) => Some(formula),
            _ => None,
        };
        let (selected, has_complex) = match &plan.filter {
            None => (None, true),
            // A filter and a computed value would need the same buffer. A filter on a page with deleted or complex rows
            // would need two selections.
            Some(_) if computed.is_some() || rows.are_live().is_some() => return None,
            Some(filter) => {
                let (selected, is_known_of_complex) = filter.select(rows, integers)?;
                (Some(selected), is_known_of_complex)
            }
        };
        let counted = if has_complex { rows.are_live() } else { rows.are_plain() };
        // The code below can apply only one selection.
        if selected.is_some() && counted.is_some() {
            return None;
        }
        let (sum, rows) = match computed {
            None => {
                let none = std::iter::repeat(0);
                let values = values::<N, HAS_ADDRESS, false>(words, page, rows, none)?;
                sum_of_those::<N, false>(hash, roles, values, selected.or(counted))
            }
            Some(formula) => {
                let shift = 8 * u32::from(BYTES.saturating_sub(formula.length));
                if let Some(computed) = formula.values_of_two_ints(rows) {
                    // Overflow is tested once at the end instead of in each row, because on nearly all pages all
                    // results are ints.
                    let mut beyond_ints = 0;
                    let computed = computed.map(|value| {
                        beyond_ints |= value ^ i64::from(value as i32);
                        value.cast_unsigned() << shift
                    });
                    let values = values::<N, HAS_ADDRESS, true>(words, page, rows, computed)?;
                    let sum = sum_of_those::<N, true>(hash, roles, values, counted);
                    if beyond_ints != 0 {
                        return None;
                    }
                    sum
                } else {
                    let computed = formula.values(rows, integers)?.iter().map(|value| value.cast_unsigned() << shift);
                    let values = values::<N, HAS_ADDRESS, true>(words, page, rows, computed)?;
                    sum_of_those::<N, true>(hash, roles, values, counted)
                }
            }
        };
        Some(Together { sum, rows, has_complex })
    }
}

/// Returns the sum of the hashes of the selected rows, and the number of these rows. If `which` is `None`, all rows are
/// selected. `HAS_FIRST` tells whether the first word of each row comes from a separate iterator that was joined to the
/// stored words of the row. It only decides which of two loops is used; the result is the same.
#[inline(always)]
fn sum_of_those<const N: usize, const HAS_FIRST: bool>(
    hash: &FactHash,
    roles: [Role; N],
    rows: impl Iterator<Item = [u64; N]>,
    which: Option<&[bool]>,
) -> (Sum, u64) {
    match (which, HAS_FIRST) {
        (None, false) => hash.sum_of_words(roles, rows.zip(std::iter::repeat(true))),
        (None, true) => hash.sum_of_joined_words(roles, rows.zip(std::iter::repeat(true))),
        (Some(which), false) => hash.sum_of_words(roles, rows.zip(which.iter().copied())),
        (Some(which), true) => hash.sum_of_joined_words(roles, rows.zip(which.iter().copied())),
    }
}

/// The words of each row. If `HAS_FIRST` is set, the first word is taken from the highest bytes of the values of
/// `first`.
#[inline(always)]
fn values<const N: usize, const HAS_ADDRESS: bool, const HAS_FIRST: bool>(
    words: &[Word; N],
    page: PageId,
    rows: Rows<'_>,
    first: impl Iterator<Item = u64>,
) -> Option<impl Iterator<Item = [u64; N]>> {
    let shifts = words.map(|word| 8 * u32::from(BYTES - word.length));
    let locator = move |slot| u64::from_le_bytes(locator_bytes(format::RecordId { page, slot }));
    let rows = (0u16..).zip(rows.words(words.map(|word| word.end))?).zip(first);
    Some(rows.map(move |((row, mut values), first)| {
        for (at, (value, shift)) in values.iter_mut().zip(shifts).enumerate() {
            if HAS_FIRST && at == 0 {
                *value = first;
            }
            *value = if HAS_ADDRESS && at + 1 == N { locator(row) } else { *value >> shift };
        }
        values
    }))
}
