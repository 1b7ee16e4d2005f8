//! Finds unmatched rows with the help of tasks, each of which reads one range of pages. Each row belongs to a cell,
//! which its hash determines. The tasks first sum all rows by cell, then list the rows of the cells whose sums differ.
//! In all other cells, the rows of the table and of the index cancel each other, so the result is the same as if one
//! process read all rows.

use std::collections::BTreeSet;

use format::RecordId;
use sums::hash::{RowHash, Sum};
use sums::wire::{Output, SumsError, Wire};

use super::pinpoint::Look;
use crate::basis::units::UnitIndex;
use crate::sweep::context::Context;
use crate::sweep::pinpoint::{PageRange, Unread, ask, each_answer};
use crate::sweep::rounds::{Of, Rounds};
use crate::sweep::unmatched::{Bounds, Side, Unmatched, unmatched};

/// The number of cells over which rows are distributed. It does not depend on the memory grant, because all tasks must
/// use the same number.
const CELLS: usize = 1 << 16;

fn cell_of(hash: RowHash) -> usize {
    hash.0 as usize % CELLS
}

/// The unmatched rows of a plan; `None` if tasks must answer another question first.
///
/// # Errors
/// [`Unread`] if a task could not read a page.
pub(super) fn find(
    (rounds, context): (&Rounds<'_>, &Context<'_>),
    plan: usize,
    (units, bytes): (&BTreeSet<UnitIndex>, u64),
    bounds: Bounds,
) -> Result<Option<Unmatched>, Unread> {
    if let Some(asked) = rounds.asked(|of| matches!(of, Of::Rows { plan: of, .. } if *of == plan)) {
        let each = |visit: &mut dyn FnMut(Side, RecordId, RowHash)| {
            each_answer(context, (rounds, asked), |from| {
                while bool::read(from)? {
                    let (side, at, sum): (bool, RecordId, Sum) = Wire::read(from)?;
                    visit(if side { Side::Index } else { Side::Table }, at, sum.parts());
                }
                Ok(())
            })
        };
        return unmatched(bounds, each).map(Some);
    }
    let Some(asked) = rounds.asked(|of| *of == Of::Cells { plan }) else {
        ask(context, rounds, Of::Cells { plan }, (units, bytes));
        return Ok(None);
    };
    let mut cells = vec![Sum::default(); CELLS];
    each_answer(context, (rounds, asked), |from| {
        while bool::read(from)? {
            let (at, sum): (u32, Sum) = Wire::read(from)?;
            cells.get_mut(at as usize).ok_or_else(|| from.damaged("a cell"))?.add(sum);
        }
        Ok(())
    })?;
    let bit = |place: usize, sum: &Sum| u8::from(*sum != Sum::default()) << place;
    let byte = |cells: &[Sum]| cells.iter().enumerate().fold(0, |byte, (place, sum)| byte | bit(place, sum));
    let differing: Box<[u8]> = cells.chunks(8).map(byte).collect();
    if differing.iter().all(|byte| *byte == 0) {
        return Ok(Some(Unmatched { rows: [Vec::new(), Vec::new()], has_more: false }));
    }
    ask(context, rounds, Of::Rows { plan, differing }, (units, bytes));
    Ok(None)
}

/// Answers a question about the rows of an index and of its table in one range.
pub(super) fn answer(look: &Look<'_>, of: &Of, range: PageRange, to: &mut Output<'_>) -> Result<(), SumsError> {
    let mut written = Ok(());
    let read = match of {
        Of::Cells { .. } => {
            let mut cells = vec![Sum::default(); CELLS];
            let read = look.each(range, &mut |side, _, hash| {
                if let Some(cell) = cells.get_mut(cell_of(hash)) {
                    match side {
                        Side::Table => cell.add(hash.into()),
                        Side::Index => cell.remove(hash.into()),
                    }
                }
            });
            for (at, sum) in (0u32..).zip(&cells).filter(|(_, sum)| **sum != Sum::default()) {
                true.write(to)?;
                (at, *sum).write(to)?;
            }
            read
        }
        Of::Rows { differing, .. } => look.each(range, &mut |side, at, hash| {
            let cell = cell_of(hash);
            let differs = differing.get(cell / 8).is_some_and(|byte| byte & 1 << (cell % 8) != 0);
            if differs && written.is_ok() {
                written = true.write(to).and_then(|()| (side == Side::Index, at, Sum::from(hash)).write(to));
            }
        }),
    };
    written?;
    false.write(to)?;
    read.is_err().write(to)
}
