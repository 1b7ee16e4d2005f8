//! The hash of the indexed columns of a row, read in place from a row of the table or of the index.

use catalog::Stored;
use expr::Undecided;
use format::RecordId;
use format::page::PAGE_BYTES;
use format::record::Record;
use format::types::fixed_length;
use sums::hash::{Hasher, Pieces, RowHash, RowHashes};

use super::form::Normalization;
use super::plan::{ComparedColumn, UnitPlan};
use crate::page::off_row::Reader;
use crate::sweep::context::Context;
use crate::values::budget::Purse;
use crate::values::integers::IntegerScratch;
use crate::values::{Column, ValueScratch, is_zero_decimal};

/// Whether an index must have an entry for a row of its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IndexedAs {
    /// The index has an entry for the row, with this hash.
    Indexed(RowHash),
    /// The filter excludes the row.
    LeftOut,
    /// A value cannot be read, or the result of an expression is uncertain.
    Unknown,
    /// An expression needs more steps than allowed.
    TooExpensive,
}

impl From<Undecided> for IndexedAs {
    fn from(undecided: Undecided) -> Self {
        if undecided.is_too_expensive() { Self::TooExpensive } else { Self::Unknown }
    }
}

/// Buffers for hashing rows, reused from row to row.
#[derive(Default)]
pub(crate) struct HashScratch {
    pub(crate) room: ValueScratch,
    pub(super) purse: Purse,
    /// Hashes of all rows of a page.
    pub(super) hashes: RowHashes,
    pub(super) integers: IntegerScratch,
    pub(super) present: Vec<bool>,
    /// Reads off-row values.
    pub(crate) reader: Reader,
    /// Whether the current row has an off-row value.
    pub(crate) has_off_row: bool,
}

/// Whether the index of `work` must have an entry for the row at `locator`, and with which hash. `indexes` is the
/// number of indexes that the run compares.
pub(crate) fn standing(
    context: &Context<'_>,
    work: &UnitPlan,
    record: &Record<'_>,
    locator: RecordId,
    (desk, indexes): (&mut HashScratch, usize),
) -> IndexedAs {
    desk.has_off_row = false;
    if let Some(filter) = work.filter.as_ref().filter(|_| !work.wants_first) {
        match filter.matches(record, &mut desk.room) {
            Ok(true) => {}
            Ok(false) => return IndexedAs::LeftOut,
            Err(undecided) => return undecided.into(),
        }
    }
    let mut hasher = context.hash.hasher();
    for (at, (cell, form)) in work.cells.iter().zip(&work.forms).enumerate() {
        match add(&mut hasher, context, (cell, *form), record, locator, (desk, indexes)) {
            Ok(Hashed::Null) if at == 0 && work.wants_first => return IndexedAs::LeftOut,
            Ok(_) => {}
            Err(standing) => return standing,
        }
    }
    IndexedAs::Indexed(hasher.finish())
}

/// Whether the value added to a hash was NULL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hashed {
    Null,
    Value,
}

/// Adds a value to the hash of its row. If the value is unknown, returns an error, which is the result for the row.
#[inline]
fn add(
    hasher: &mut Hasher<'_>,
    context: &Context<'_>,
    (cell, form): (&ComparedColumn, Normalization),
    record: &Record<'_>,
    locator: RecordId,
    (desk, indexes): (&mut HashScratch, usize),
) -> Result<Hashed, IndexedAs> {
    const UNKNOWN: IndexedAs = IndexedAs::Unknown;
    match cell {
        ComparedColumn::Column(column) => match column.value(record) {
            Stored::Null => {
                hasher.add_null();
                return Ok(Hashed::Null);
            }
            Stored::Plain(bytes) if column.is_computed && is_zero_decimal(column.column.info, bytes) => {
                hasher.add_bytes(&[]);
            }
            Stored::Plain(bytes) => form.add(hasher, bytes).ok_or(UNKNOWN)?,
            Stored::Absent => return Err(UNKNOWN),
            Stored::Complex(pointer) => {
                add_off_row(hasher, context, column, pointer, (desk, indexes)).ok_or(UNKNOWN)?
            }
        },
        ComparedColumn::Computed(formula) => match formula.value(record, &mut desk.room)? {
            Some(bytes) if is_zero_decimal(formula.target, bytes) => hasher.add_bytes(&[]),
            Some(bytes) => form.add(hasher, bytes).ok_or(UNKNOWN)?,
            None => {
                hasher.add_null();
                return Ok(Hashed::Null);
            }
        },
        ComparedColumn::Locator => hasher.add_bytes(&locator_bytes(locator)),
    }
    Ok(Hashed::Value)
}

/// The address of a heap row, as indexes store it.
pub(super) fn locator_bytes(locator: RecordId) -> [u8; 8] {
    let page = u64::from(locator.page.page) | u64::from(locator.page.file) << 32 | u64::from(locator.slot) << 48;
    page.to_le_bytes()
}

/// Adds an off-row value. The table may store the value in the row while the index stores it in its LOB pages, or vice
/// versa. So the hash of an off-row value equals the hash of the same value stored in the row.
#[cold]
fn add_off_row(
    hasher: &mut Hasher<'_>,
    context: &Context<'_>,
    column: &Column,
    pointer: &[u8],
    (desk, indexes): (&mut HashScratch, usize),
) -> Option<()> {
    desk.has_off_row = true;
    // It is undocumented how a fixed-length value is stored off-row, so such a value is unknown.
    if fixed_length(column.column.info).is_some() {
        return None;
    }
    let mut pieces = Pieces::default();
    desk.reader.read(context.source, pointer, most_bytes_off_row(context, indexes), |piece| {
        pieces.add(hasher, piece);
        true
    })?;
    pieces.end(hasher);
    Some(())
}

/// An upper limit on the bytes read from off-row values, enough to read each value once per index. Without a limit,
/// rows that share a value, or values that share a fragment, could make a run endless.
pub(crate) fn most_bytes_off_row(context: &Context<'_>, indexes: usize) -> u64 {
    let pages: u64 = context.survey.files.iter().map(|file| u64::from(file.pages)).sum();
    pages * PAGE_BYTES as u64 * (indexes as u64 + 1)
}
