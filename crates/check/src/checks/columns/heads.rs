//! Off-row values that cannot be validated by their pointer alone. For an XML document, the signature must be read. For
//! an sql_variant or spatial value, the whole value must be read. For a text value whose pointer lacks the length, the
//! root must be read, because it stores the length. The sweep only records where these values are. If there are few
//! enough of them, they are read after the sweep.

use format::domain::{Domain, Pieces};
use format::lob::Pointer;
use format::{PageId, RecordId};
use sums::wire::{Input, Output, SumsError, Wire, wire};
use sums::{ByPlan, Merge};

use super::program::{Column, Plans};
use super::{Sums, purity_finding};
use crate::basis::ledger::FindingCollector;
use crate::basis::units::UnitIndex;
use crate::page::off_row::Reader;
use crate::sweep::any_in_scope;
use crate::sweep::context::Context;

/// Limit on the number of values that are read. Reading more would cost as much as a second pass over all off-row data.
const MOST: usize = 1 << 14;
/// Length of the longest pointer that is kept: a root with five links.
const MAX_POINTER_BYTES: usize = 72;
/// Limit on the bytes that are read for all values together.
const MOST_BYTES: u64 = 64 << 20;

/// The values to be read, up to a limit. Whether their number exceeds the limit does not depend on how the values are
/// distributed over threads.
#[derive(Default)]
pub(super) struct DeferredValues {
    list: Vec<Head>,
    /// The number of values of each column, including values that are not in the list. The index is the column's
    /// counter.
    seen: ByPlan<u64>,
    /// The number of values of all columns.
    count: u64,
}

/// A value to be read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    unit: UnitIndex,
    row: RecordId,
    /// Index of the value's column in the unit's program.
    column: u16,
    pointer: Box<[u8]>,
}

wire!(DeferredValues { list, seen, count });

impl Merge for DeferredValues {
    fn merge(&mut self, other: Self) {
        let Self { list, seen, count } = other;
        self.seen.merge(seen);
        self.count.merge(count);
        if self.is_whole() {
            self.list.extend(list);
        }
    }
}

impl Wire for Head {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        let Self { unit, row, column, pointer } = self;
        (*unit, *row, *column).write(to)?;
        pointer.write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let (unit, row, column) = Wire::read(from)?;
        Ok(Self { unit: from.unit(unit)?, row, column, pointer: Wire::read(from)? })
    }
}

/// The most bytes that a thread needs for this number of values.
pub(super) fn bytes_at_most(values: u64) -> u64 {
    values.min(MOST as u64) * (2 * size_of::<Head>() + MAX_POINTER_BYTES) as u64
}

impl DeferredValues {
    /// Adds a value, given its column, the column's counter, its row and its pointer. Returns false if the pointer has
    /// no known form.
    pub(super) fn add(
        &mut self,
        unit: UnitIndex,
        (column, counter): (u16, usize),
        row: RecordId,
        pointer: &[u8],
    ) -> bool {
        if pointer.len() > MAX_POINTER_BYTES
            || matches!(Pointer::read(pointer), Pointer::Malformed | Pointer::Undescribed)
        {
            return false;
        }
        *self.seen.get_mut(counter) += 1;
        self.count += 1;
        if self.list.len() < MOST {
            self.list.push(Head { unit, row, column, pointer: pointer.into() });
        }
        true
    }

    /// Returns the number of values of each column, indexed by the column's counter.
    pub(super) fn seen(&self) -> &ByPlan<u64> {
        &self.seen
    }

    /// Sorts the list, or empties it if there were too many values.
    pub(super) fn put_in_order(&mut self) {
        if !self.is_whole() {
            self.list.clear();
        }
        self.list.sort_unstable();
    }

    fn is_whole(&self) -> bool {
        self.count <= MOST as u64
    }
}

/// Reads the values and checks them. Values that cannot be checked are counted as not verified.
pub(super) fn settle(plans: &Plans, context: &Context<'_>, sums: &mut Sums, findings: &mut FindingCollector) {
    let mut heads = std::mem::take(&mut sums.heads);
    if !heads.is_whole() {
        return sums.unverified.merge(heads.seen);
    }
    heads.list.sort_unstable();
    let mut reader = Reader::default();
    for head in heads.list {
        let program = plans.get(head.unit as usize);
        let Some(column) = program.and_then(|program| program.columns.get(usize::from(head.column))) else { continue };
        let settled = context.settled.as_ref();
        let is_in_scope = |page: &PageId| any_in_scope(context, *page, 1);
        // All values together have a limit, so a value counts even if it is not read again.
        let left = MOST_BYTES.saturating_sub(reader.bytes_read);
        if let Some(bytes) = settled.and_then(|settled| settled.is_verified((head.row, head.column), left, is_in_scope))
        {
            reader.bytes_read += bytes;
            continue;
        }
        reader.used = settled.map(|_| Vec::new());
        let before = reader.bytes_read;
        match judge(context, &mut reader, &head, column) {
            Some(true) => {
                if let Some((settled, pages)) = settled.zip(reader.used.take()) {
                    settled.verified((head.row, head.column), pages, reader.bytes_read - before);
                }
            }
            Some(false) => findings.push(purity_finding(context, head.unit, head.row, column)),
            None => sums.not_verified(column),
        }
    }
}

fn judge(context: &Context<'_>, reader: &mut Reader, head: &Head, column: &Column) -> Option<bool> {
    if column.domain == Some(Domain::Utf16) {
        // A value encrypted by the client may have an odd length, so an odd length proves nothing.
        return reader.length(context.source, &head.pointer)?.is_multiple_of(2).then_some(true);
    }
    let mut pieces = Pieces::of(column.domain?);
    reader.read(context.source, &head.pointer, MOST_BYTES, |piece| pieces.add(piece))?;
    pieces.are_value()
}
