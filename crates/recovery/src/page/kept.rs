//! A page between two records, as bytes: exactly as it is in memory, because rows get their final places and lengths only
//! at the end.
//!
//! | bytes | content |
//! |---|---|
//! | 2 | flags of the page |
//! | 2 | number of slots |
//! | 2 | number of bytes of the page that follow; the rest are zeros |
//! | | for each slot: a byte of flags; if it has a row, the offset and the length on the page (2 + 2); if the row has bytes of its own, their number and the bytes (2 + n) |
//! | | the bytes of the page |

use format::page::PAGE_BYTES;
use format::record::VERSION_TAG_BYTES;
use format::slots::MAX_SLOTS;

use super::{Row, WorkingPage};

const IS_MOVED: u16 = 1;
const IS_HEADER_CHANGED: u16 = 2;
const HAS_ROW: u8 = 1;
const HAS_OWN: u8 = 2;
const IS_CHANGED: u8 = 4;
const IS_DAMAGED: u8 = 8;
/// The most bytes of a row.
const MOST_ROW_BYTES: usize = PAGE_BYTES + VERSION_TAG_BYTES;

impl WorkingPage {
    /// The page as bytes.
    pub(crate) fn to_kept(&self) -> Vec<u8> {
        let used = self.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let flags =
            if self.is_moved { IS_MOVED } else { 0 } | if self.is_header_changed { IS_HEADER_CHANGED } else { 0 };
        let mut kept = Vec::with_capacity(6 + 5 * self.rows.len() + used);
        for number in [flags, self.rows.len() as u16, used as u16] {
            kept.extend(number.to_le_bytes());
        }
        for row in &self.rows {
            let Some(row) = row else {
                kept.push(0);
                continue;
            };
            let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
            let own = flag(row.own.is_some(), HAS_OWN);
            kept.push(HAS_ROW | own | flag(row.is_changed, IS_CHANGED) | flag(row.is_damaged, IS_DAMAGED));
            kept.extend(row.offset.to_le_bytes());
            kept.extend(row.length.to_le_bytes());
            if let Some(own) = &row.own {
                kept.extend((own.len() as u16).to_le_bytes());
                kept.extend(own);
            }
        }
        kept.extend(self.bytes.iter().take(used));
        kept
    }

    /// The page that [`Self::to_kept`] has written; `None` if the bytes are none.
    pub(crate) fn of_kept(kept: &[u8]) -> Option<Self> {
        let mut rest = kept;
        let (flags, slots, used) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
        if usize::from(slots) > MAX_SLOTS || flags & !(IS_MOVED | IS_HEADER_CHANGED) != 0 {
            return None;
        }
        let mut rows = Vec::with_capacity(slots.into());
        for _ in 0..slots {
            rows.push(row(&mut rest)?);
        }
        let mut bytes = Box::new([0; PAGE_BYTES]);
        if rest.len() != usize::from(used) {
            return None;
        }
        bytes.get_mut(..rest.len())?.copy_from_slice(rest);
        let (is_moved, is_header_changed) = (flags & IS_MOVED != 0, flags & IS_HEADER_CHANGED != 0);
        Some(Self { bytes, rows, is_moved, is_header_changed })
    }
}

fn number(rest: &mut &[u8]) -> Option<u16> {
    let (number, after) = rest.split_first_chunk::<2>()?;
    *rest = after;
    Some(u16::from_le_bytes(*number))
}

fn row(rest: &mut &[u8]) -> Option<Option<Row>> {
    let (flags, after) = rest.split_first()?;
    *rest = after;
    if *flags == 0 {
        return Some(None);
    }
    if flags & HAS_ROW == 0 || flags & !(HAS_ROW | HAS_OWN | IS_CHANGED | IS_DAMAGED) != 0 {
        return None;
    }
    let (offset, length) = (number(rest)?, number(rest)?);
    if usize::from(offset) + usize::from(length) > PAGE_BYTES {
        return None;
    }
    let mut own = None;
    if flags & HAS_OWN != 0 {
        let bytes = usize::from(number(rest)?);
        let (bytes, after) = rest.split_at_checked(bytes).filter(|_| bytes <= MOST_ROW_BYTES)?;
        *rest = after;
        own = Some(bytes.to_vec());
    }
    Some(Some(Row { offset, length, own, is_changed: flags & IS_CHANGED != 0, is_damaged: flags & IS_DAMAGED != 0 }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TAGGED, with_row};
    use super::*;
    use format::PageType;
    use format::log::change::{Change, Piece};

    #[test]
    fn a_page_between_two_records_is_the_same_after_it_was_kept() {
        let mut page = with_row(PageType::Data, 8, &TAGGED);
        assert_eq!(format!("{page:?}"), format!("{:?}", WorkingPage::of_kept(&page.to_kept()).unwrap()));
        let row = [0x10, 0, 8, 0, 1, 2, 3, 4, 1, 0, 0];
        page.redo(1, 2, &Change::Insert { images: vec![&row], over_ghost: false }).unwrap();
        let piece = Piece { old_offset: 4, new_offset: 4, old_length: 1, before: &[9], after: &[7] };
        page.redo(0, 2, &Change::ModifyRow(piece)).unwrap();
        let kept = page.to_kept();
        let again = WorkingPage::of_kept(&kept).unwrap();
        assert_eq!(format!("{page:?}"), format!("{again:?}"));
        assert_eq!(page.finish().unwrap(), again.finish().unwrap());
        // Bytes that are cut or go on are no page; changed bytes may be another page, but nothing else.
        assert!((0..kept.len()).all(|length| WorkingPage::of_kept(&kept[..length]).is_none()));
        assert!(WorkingPage::of_kept(&[&kept[..], &[0]].concat()).is_none());
        for at in 0..kept.len() {
            for bit in 0..8 {
                let mut changed = kept.clone();
                changed[at] ^= 1 << bit;
                if let Some(page) = WorkingPage::of_kept(&changed) {
                    let _ = page.finish();
                }
            }
        }
    }
}
