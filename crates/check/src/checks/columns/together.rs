//! Checks the columns of all rows of a page together, if the rows have the same layout. This can only prove that all
//! rows are valid. If the proof fails, the rows are checked one by one to find what is wrong.

use format::domain::{Domain, ShortDecimals};
use format::same_shape::Rows;

use super::program::{FixedCheck, Plans, Program, VariableCheck};
use super::{Part, Sums, is_possible, present};
use crate::basis::units::UnitIndex;
use crate::sweep::context::Context;
use crate::sweep::row_check::{Done, Handled};

/// Checks the columns of the page's live rows, and counts the rows if there is nothing to report. In rows with a
/// complex column, the variable columns may remain unchecked.
pub(super) fn page(
    plans: &Plans,
    context: &Context<'_>,
    unit: UnitIndex,
    rows: Rows<'_>,
    sums: &mut Sums,
) -> Handled<Part> {
    let (Some(program), Some(tally)) = (plans.get(unit as usize), sums.units.get_mut(unit as usize)) else {
        return Handled::ALL;
    };
    let checks_purity = context.options.checks_purity();
    if !program.fits(rows, checks_purity) {
        return Handled::NOTHING;
    }
    tally.rows += rows.live_count() as u64;
    tally.values += rows.live_count() as u64 * present(program, |null_bit| rows.has_column(null_bit));
    match program.values_in_vectors(rows, checks_purity) {
        Some(values) => {
            tally.values += values;
            Handled::ALL
        }
        None => Handled { plain: Done::All, complex: Done::Except(Part::Variables) },
    }
}

impl Program {
    fn fits(&self, rows: Rows<'_>, checks_purity: bool) -> bool {
        // Indexes with an anti-matter column are rare, so their rows are checked one by one.
        self.anti_matter.is_none()
            && (!rows.has_versions() || !self.version_tags_are_known || rows.version_tags().all(is_possible))
            && self.has_shape(rows)
            && self.not_null.iter().all(|(word, mask)| rows.null_word(*word) & mask == 0)
            && self
                .variable
                .iter()
                .zip(1..=rows.most_variables())
                .all(|(check, number)| check.is_none_or(|check| check.holds(rows, number, checks_purity)))
            && (!checks_purity || self.fixed.iter().all(|check| check.holds(rows, self)))
    }

    /// The same check as `RowLook::shape`, for all rows together.
    fn has_shape(&self, rows: Rows<'_>) -> bool {
        let count = rows.column_count();
        (!rows.is_index() || count == 0 || count >= self.null_bits)
            && count <= self.max_null_bit
            && rows.most_variables() <= self.max_variable
            && rows.fixed_end() <= self.max_fixed_end
            && (self.fixed_reach <= rows.fixed_end() || self.has_no_column_after(rows))
    }

    /// Whether every column that would end beyond the fixed part of the rows is absent from the rows. It is absent if
    /// the rows were written before the column was added.
    #[cold]
    fn has_no_column_after(&self, rows: Rows<'_>) -> bool {
        self.columns.iter().filter(|column| column.offset > 0).all(|column| {
            let end = column.offset.unsigned_abs().saturating_add(column.info.length);
            end <= rows.fixed_end() || !rows.has_null_bit(column.null_bit)
        })
    }
}

impl VariableCheck {
    /// Whether the column's values are valid in all live rows. If some row may have a complex value in this column,
    /// only the values of rows without complex columns are checked.
    fn holds(self, rows: Rows<'_>, number: u16, checks_purity: bool) -> bool {
        let domain = self.domain.filter(|_| checks_purity);
        let values = rows.variable(number);
        let are_counted = if rows.may_be_complex(number) { rows.are_plain() } else { rows.are_live() };
        if let Some(are_counted) = are_counted {
            let (words, bit) = rows.nulls_of(self.null_bit).unwrap_or_default();
            let nulls = words.iter().copied().chain(std::iter::repeat(0));
            return values.zip(are_counted).zip(nulls).all(|((value, is_counted), nulls)| match nulls & bit {
                _ if !is_counted => true,
                0 => self.is_value(value, domain),
                _ => true,
            });
        }
        if let Some((words, bit)) = rows.nulls_of(self.null_bit) {
            return values.zip(words).all(|(value, nulls)| match nulls & bit {
                0 => self.is_value(value, domain),
                _ => true,
            });
        }
        // For most domains, only the length of a value matters.
        let lengths = rows.variable_lengths(number);
        let lengths = lengths.fold((0, 0), |(longest, odd), length| (length.max(longest), length & 1 | odd));
        match domain {
            None | Some(Domain::Any) => lengths.0 <= self.max_length.into(),
            Some(Domain::Utf16) => lengths.0 <= self.max_length.into() && lengths.1 == 0,
            Some(_) => rows.variable(number).all(|value| self.is_value(value, domain)),
        }
    }

    fn is_value(self, value: &[u8], domain: Option<Domain>) -> bool {
        value.len() <= self.max_length.into()
            && (value.is_empty() || domain.is_none_or(|domain| domain.contains(value) == Some(true)))
    }
}

impl FixedCheck {
    /// Whether the values of all rows are in the column's domain. The bytes of a NULL have no meaning.
    fn holds(self, rows: Rows<'_>, program: &Program) -> bool {
        let Some(column) = program.columns.get(usize::from(self.column)) else { return false };
        // Rows that do not have the column have no value to check.
        if !rows.has_fixed(self.offset, self.length) || !rows.has_column(column.null_bit) {
            return true;
        }
        let nulls = rows.nulls_of(column.null_bit);
        // Specialized loops make the most common domains faster.
        match (self.domain, self.length) {
            (Domain::DateTime, 8) => all(rows.fixed::<8>(self.offset), nulls, |v| Domain::DateTime.contains(&v)),
            (Domain::SmallDateTime, 4) => {
                all(rows.fixed::<4>(self.offset), nulls, |v| Domain::SmallDateTime.contains(&v))
            }
            (Domain::Date, 3) => all(rows.fixed::<3>(self.offset), nulls, |v| Domain::Date.contains(&v)),
            (Domain::Float, 8) => all(rows.fixed::<8>(self.offset), nulls, |v| Domain::Float.contains(&v)),
            (Domain::Decimal(precision), 5) => {
                let domain = ShortDecimals::of(precision);
                all(rows.fixed::<5>(self.offset), nulls, |[sign, magnitude @ ..]| {
                    Some(domain.contains(sign, u32::from_le_bytes(magnitude).into()))
                })
            }
            (Domain::Decimal(precision), 9) => {
                let domain = ShortDecimals::of(precision);
                all(rows.fixed::<9>(self.offset), nulls, |[sign, magnitude @ ..]| {
                    Some(domain.contains(sign, u64::from_le_bytes(magnitude)))
                })
            }
            (domain, _) => all(rows.slices(self.offset, self.length), nulls, |value| domain.contains(value)),
        }
    }
}

/// Whether `holds` is true for all values that are not NULL.
#[inline(always)]
fn all<T>(values: impl Iterator<Item = T>, nulls: Option<(&[u64], u64)>, holds: impl Fn(T) -> Option<bool>) -> bool {
    match nulls {
        None => values.fold(true, |all, value| all & (holds(value) == Some(true))),
        Some((nulls, bit)) => {
            values.zip(nulls).fold(true, |all, (value, nulls)| all & (nulls & bit != 0 || holds(value) == Some(true)))
        }
    }
}
