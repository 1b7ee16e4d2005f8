//! Reconstructs earlier states of pages. The records of a page are undone one by one, from the newest to the oldest,
//! whatever their transaction (docs/format/log.md#redo). The bytes before a change come from the record, the page, or
//! earlier records. If none of these contains the bytes, undo stops.

use format::log::LogRecord;
use format::log::change::Change;
use format::page::PAGE_BYTES;
use format::{Lsn, PageBytes, PageId};

use crate::misfit::Misfit;
use crate::on_disk::on_disk;
use crate::page::{KEEPS_SLOTS, WorkingPage};

/// A page that is changed back to its earlier states, one record at a time.
#[derive(Clone, Debug)]
pub struct PastPage {
    /// The page; `None` if all its records, including FORMAT_PAGE, are undone.
    page: Option<WorkingPage>,
}

impl PastPage {
    /// Starts with the stored page.
    ///
    /// # Errors
    /// [`Misfit`] if the page is damaged, compressed or encrypted.
    pub fn new(id: PageId, stored: &PageBytes) -> Result<Self, Misfit> {
        Ok(Self { page: Some(on_disk(id, stored)?) })
    }

    /// LSN of the page; zero if all its records, including FORMAT_PAGE, are undone.
    pub fn lsn(&self) -> Lsn {
        self.page.as_ref().map(WorkingPage::lsn).unwrap_or_default()
    }

    /// Undoes the last record of the page. `earlier` contains the earlier records of the page, from the oldest to the
    /// newest. If the record to undo is a DELETE_SPLIT, `moved` contains the rows that this record removed. These rows
    /// are stored in the INSERT_ROWS record before the DELETE_SPLIT.
    ///
    /// # Errors
    ///
    /// [`Misfit`] if the page does not contain the record's change, or if the state before the change is unknown. The
    /// page can then no longer be used.
    pub fn take_back(
        &mut self,
        lsn: Lsn,
        record: &LogRecord<'_>,
        earlier: &[LogRecord<'_>],
        moved: &[&[u8]],
    ) -> Result<(), Misfit> {
        let (place, change) = record.on_page().zip(record.change()).ok_or(Misfit::RecordUnknown)?;
        let page = self.page.as_mut().filter(|page| page.lsn() == lsn).ok_or(Misfit::OtherMoment)?;
        let (slot, context) = (place.slot, record.context());
        match &change {
            Change::Format(_) => {
                self.page = None;
                return Ok(());
            }
            Change::Expunge | Change::Delete { marks_ghost: false, image: [] } => {
                let image = row_before(earlier, slot)?.ok_or(Misfit::RowMissing)?;
                page.put_back(slot, context, image, matches!(change, Change::Expunge))?;
            }
            Change::Delete { marks_ghost: true, image: [] } => page.revive(slot)?,
            Change::Insert { images, over_ghost: true } => {
                page.undo(slot, context, &change, moved, true)?;
                // Before the insert, the ghost may have been another row with the same key.
                if let (Some(ghost), [_]) = (row_before(earlier, slot)?, images.as_slice()) {
                    page.replace_ghost(slot, ghost)?;
                }
            }
            Change::SetCounters(counters) => {
                if !page.has_counters(slot, counters) {
                    return Err(Misfit::RowMissing);
                }
                // If no earlier record contains the counters, no further undo needs them, so they stay unchanged.
                if let Some(before) = counters_before(earlier, slot, counters)? {
                    page.redo(slot, context, &Change::SetCounters(before))?;
                }
            }
            change => page.undo(slot, context, change, moved, true)?,
        }
        page.set_lsn(place.page_lsn);
        Ok(())
    }

    /// Returns the bytes of the page, with a checksum. If all its records, including FORMAT_PAGE, are undone, the bytes
    /// are zeros.
    ///
    /// # Errors
    ///
    /// [`Misfit`] if the rows do not fit on the page or are invalid.
    pub fn finish(self) -> Result<Box<PageBytes>, Misfit> {
        self.page.map_or_else(|| Ok(Box::new([0; PAGE_BYTES])), WorkingPage::finish)
    }
}

/// The slot that a row had before `record`. `slot` is the slot of the row after the record. `None` if the record
/// inserted the row.
fn slot_before(record: &LogRecord<'_>, change: &Change<'_>, slot: u16) -> Option<u16> {
    let at = record.on_page()?.slot;
    if KEEPS_SLOTS.contains(&record.context()) {
        return Some(slot);
    }
    match change {
        Change::Insert { images, over_ghost: false } => {
            let count = images.len() as u16;
            if slot < at { Some(slot) } else { slot.checked_sub(count).filter(|before| *before >= at) }
        }
        Change::Delete { marks_ghost: false, .. } | Change::Expunge if slot >= at => slot.checked_add(1),
        Change::DropMoved { rows, .. } if slot >= at => slot.checked_add(*rows),
        _ => Some(slot),
    }
}

/// The bytes that a row had after the last record in `earlier`; `None` if no record contains the bytes.
fn row_before<'a>(earlier: &[LogRecord<'a>], mut slot: u16) -> Result<Option<&'a [u8]>, Misfit> {
    for record in earlier.iter().rev() {
        let (place, change) = record.on_page().zip(record.change()).ok_or(Misfit::RecordUnknown)?;
        match &change {
            // The image of the page in this record may have contained the row.
            Change::Format(new) if !new.start.is_empty() => return Err(Misfit::RowMissing),
            Change::Format(_) => break,
            Change::Delete { marks_ghost: true, image } if place.slot == slot && !image.is_empty() => {
                return Ok(Some(image));
            }
            // The record contains only a part of the row.
            Change::ModifyRow(_) | Change::ModifyColumns(_) if place.slot == slot => return Err(Misfit::RowMissing),
            Change::Insert { images, .. } => {
                if let Some(image) = slot.checked_sub(place.slot).and_then(|index| images.get(usize::from(index))) {
                    return Ok(Some(image));
                }
            }
            _ => {}
        }
        let Some(before) = slot_before(record, &change, slot) else { break };
        slot = before;
    }
    Ok(None)
}

/// Counters as in a COUNT_DELTA record. Each has its offset in the row, its value, and its length in bytes.
type Counters = Vec<(u32, i64, u32)>;

/// The counters of a row before a COUNT_DELTA record. They come from the previous COUNT_DELTA or from the inserted row.
/// `None` if `earlier` contains neither of these records.
fn counters_before(
    earlier: &[LogRecord<'_>],
    mut slot: u16,
    counters: &[(u32, i64, u32)],
) -> Result<Option<Counters>, Misfit> {
    for record in earlier.iter().rev() {
        let (place, change) = record.on_page().zip(record.change()).ok_or(Misfit::RecordUnknown)?;
        match &change {
            // The image of the page in this record may have contained the row.
            Change::Format(new) if !new.start.is_empty() => return Err(Misfit::RowMissing),
            Change::Format(_) => break,
            Change::SetCounters(before) if place.slot == slot => return Ok(Some(before.clone())),
            // The record may have changed the counters too.
            Change::ModifyRow(_) | Change::ModifyColumns(_) if place.slot == slot => return Err(Misfit::RowMissing),
            Change::Insert { images, .. } => {
                if let Some(image) = slot.checked_sub(place.slot).and_then(|index| images.get(usize::from(index))) {
                    let of_row = |(offset, _, length): &(u32, i64, u32)| {
                        let place = image.get(*offset as usize..)?.get(..*length as usize)?;
                        let mut value = [0; 8];
                        value.get_mut(..place.len())?.copy_from_slice(place);
                        Some((*offset, i64::from_le_bytes(value), *length))
                    };
                    return counters
                        .iter()
                        .map(of_row)
                        .collect::<Option<Counters>>()
                        .map(Some)
                        .ok_or(Misfit::RowMissing);
                }
            }
            _ => {}
        }
        let Some(before) = slot_before(record, &change, slot) else { break };
        slot = before;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record for page (1:100) with this operation, context, slot and elements.
    fn record(operation: u8, context: u8, slot: u16, elements: &[&[u8]]) -> Vec<u8> {
        const FIXED_BYTES: usize = 62;
        let mut bytes = vec![0; FIXED_BYTES];
        bytes[2..4].copy_from_slice(&(FIXED_BYTES as u16).to_le_bytes());
        (bytes[0x16], bytes[0x17]) = (operation, context);
        bytes[0x18..0x1E].copy_from_slice(&[100, 0, 0, 0, 1, 0]);
        bytes[0x1E..0x20].copy_from_slice(&slot.to_le_bytes());
        // The record changes a page of a rowset. Each element of the record is one row.
        bytes[0x30] = 1;
        bytes.extend((elements.len() as u16).to_le_bytes());
        elements.iter().for_each(|element| bytes.extend((element.len() as u16).to_le_bytes()));
        for element in elements {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.extend(*element);
        }
        bytes
    }

    const INSERT: u8 = 2;
    const DELETE: u8 = 3;
    const MODIFY: u8 = 4;
    const EXPUNGE: u8 = 13;
    const CLUSTERED: u8 = 2;
    const GHOST: u8 = 19;

    fn row_before_of(records: &[Vec<u8>], slot: u16) -> Result<Option<Vec<u8>>, Misfit> {
        let views: Vec<LogRecord<'_>> = records.iter().map(|bytes| LogRecord::new(bytes)).collect();
        row_before(&views, slot).map(|row| row.map(<[u8]>::to_vec))
    }

    #[test]
    fn a_row_is_followed_back_over_the_slots_that_it_had() {
        let row = [0x10, 0, 8, 0, 1, 2, 3, 4];
        let other = [0x10, 0, 8, 0, 9, 9, 9, 9];
        let records = [
            record(INSERT, CLUSTERED, 3, &[&row]),
            record(INSERT, CLUSTERED, 1, &[&other]),
            record(DELETE, GHOST, 4, &[&row]),
            record(EXPUNGE, CLUSTERED, 0, &[]),
        ];
        // The row is in slot 3 now. When it became a ghost, it was in slot 4. The DELETE_ROWS record for slot 4
        // contains its image.
        assert_eq!(row_before_of(&records, 3), Ok(Some(row.to_vec())));
        assert_eq!(row_before_of(&records, 0), Ok(Some(other.to_vec())), "slot 1 before slot 0 was removed");
        assert_eq!(row_before_of(&records[..2], 4), Ok(Some(row.to_vec())));
        assert_eq!(row_before_of(&records, 7), Ok(None), "no record has it");
    }

    #[test]
    fn a_row_of_which_only_a_part_was_logged_last_is_not_known() {
        let row = [0x10, 0, 8, 0, 1, 2, 3, 4];
        let records = [record(INSERT, CLUSTERED, 3, &[&row]), record(MODIFY, CLUSTERED, 3, &[&[1], &[7]])];
        assert_eq!(row_before_of(&records, 3), Err(Misfit::RowMissing));
        assert_eq!(row_before_of(&records, 2), Ok(None));
    }
}
