//! A page during its recovery. Records change the header and the rows one by one. At the end, the rows are written into
//! the bytes of the page.
//!
//! The log does not contain the offset of a row on its page. If the number or the length of a page's rows has changed,
//! all rows get new offsets; otherwise, the rows keep their offsets. The records of allocation maps always keep their
//! offsets.

mod kept;

use format::allocation::INTERVAL_PAGES;
use format::fields::{Structure, offset};
use format::log::change::{Change, NewPage, Piece};
use format::page::{HEADER_BYTES, PAGE_BYTES, page_flags, type_flags};
use format::protection::seal;
use format::record::{RecordKind, VERSION_TAG_BYTES};
use format::slots::MAX_SLOTS;
use format::{Lsn, Page, PageBytes, PageId, PageType};

use crate::layout::{FRAGMENT_LENGTH, has_rows, is_same_row, logged_length, pointer, row_length, row_of_image};
use crate::misfit::Misfit;

/// Offset of the page header field `name`, which must have `bytes` bytes.
const fn at(name: &str, bytes: u32) -> usize {
    offset(Structure::PageHeader, name, bytes)
}

/// The bits of a record's first byte that hold its type.
const KIND_MASK: u8 = 0b1110;
/// The record type of a row and of its ghost, on data pages and on index pages.
const GHOSTS: [(u8, u8); 2] = [(0, 6 << 1), (3 << 1, 5 << 1)];
/// The context numbers of heaps and LOB pages, on which rows keep their slots.
pub(crate) const KEEPS_SLOTS: [u8; 3] = [1, 5, 6];
/// The first bytes and the lengths of the two records on an IAM page (docs/format/log.md#changes).
const IAM_HEADER_RECORD: [u8; 4] = [0, 0, 0x5E, 0];
const IAM_BITMAP_RECORD: [u8; 4] = [0, 0, 0x38, 0x1F];
const IAM_HEADER_BYTES: usize = 94;
const IAM_BITMAP_BYTES: usize = 7992;
/// Offset of the pointer to the first page of the GAM interval, in the header record of an IAM page.
const IAM_START_AT: usize = 40;
/// The smallest length of a new heap or LOB row, in bytes. It is the length of a forwarding stub.
const MIN_HEAP_ROW_BYTES: usize = 9;

/// A page on which log records are redone or undone.
#[derive(Clone, Debug)]
pub(crate) struct WorkingPage {
    bytes: Box<PageBytes>,
    rows: Vec<Option<Row>>,
    /// Whether all rows must get new offsets.
    is_moved: bool,
    /// Whether the page header was changed. The header contains the length of the fixed part of index rows.
    is_header_changed: bool,
}

/// A row. It is stored in the page's bytes until its length changes; a new row has bytes of its own.
#[derive(Clone, Debug)]
struct Row {
    /// Offset of the row on the page.
    offset: u16,
    /// Length of the row on the page.
    length: u16,
    /// The bytes of the row, if they are not stored on the page.
    own: Option<Vec<u8>>,
    /// Whether the row's bytes may now state a different length.
    is_changed: bool,
    /// Whether the bytes are not a valid row. The bytes of an invalid row stay unchanged at their offset.
    is_damaged: bool,
}

impl Row {
    fn new(bytes: Vec<u8>) -> Self {
        Self { offset: 0, length: 0, own: Some(bytes), is_changed: true, is_damaged: false }
    }

    fn bytes<'a>(&'a self, page: &'a PageBytes) -> &'a [u8] {
        let start = usize::from(self.offset);
        let on_page = || page.get(start..start + usize::from(self.length)).unwrap_or_default();
        self.own.as_deref().unwrap_or_else(on_page)
    }
}

impl WorkingPage {
    /// Reads the page in `bytes`. Before the call, the bits that torn-page protection replaced must already be
    /// restored.
    pub(crate) fn load(bytes: &PageBytes) -> Result<Self, Misfit> {
        let page = Page::new(bytes);
        let header = page.header();
        let count = header.slot_count.get();
        if usize::from(count) > MAX_SLOTS || header.is_encrypted() {
            return Err(Misfit::PageDamaged);
        }
        if header.type_flags & type_flags::COMPRESSION_INFO != 0 {
            return Err(Misfit::Compressed);
        }
        let mut places: Vec<u16> = (0..count).filter_map(|slot| page.slot_offset(slot)).filter(|&at| at != 0).collect();
        places.sort_unstable();
        let mut rows = Vec::with_capacity(count.into());
        for slot in 0..count {
            let offset = page.slot_offset(slot).ok_or(Misfit::PageDamaged)?;
            if offset == 0 {
                rows.push(None);
                continue;
            }
            let after = places.partition_point(|&at| at <= offset);
            let end = places.get(after).copied().map_or(PAGE_BYTES - 2 * usize::from(count), usize::from);
            let start = usize::from(offset);
            let space = bytes.get(start..end).filter(|_| start >= HEADER_BYTES).ok_or(Misfit::PageDamaged)?;
            let end = usize::from(header.free_data.get()).saturating_sub(start);
            let (length, is_damaged) = match row_length(page, space, end) {
                Ok(length) if length <= space.len() => (length, false),
                Err(Misfit::Compressed) => return Err(Misfit::Compressed),
                _ => (1, true),
            };
            rows.push(Some(Row { offset, length: length as u16, own: None, is_changed: false, is_damaged }));
        }
        Ok(Self { bytes: Box::new(*bytes), rows, is_moved: false, is_header_changed: false })
    }

    /// The page that a FORMAT_PAGE record creates.
    pub(crate) fn format(id: PageId, unit: (u16, u32), new: &NewPage<'_>) -> Result<Self, Misfit> {
        if !new.start.is_empty() {
            return Self::of_image(id, new);
        }
        let mut bytes = Box::new([0; PAGE_BYTES]);
        let mut put = |at: usize, field: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + field.len()) {
                place.copy_from_slice(field);
            }
        };
        put(const { at("m_headerVersion", 1) }, &[1]);
        put(const { at("m_type", 1) }, &[new.kind]);
        put(const { at("m_level", 1) }, &[new.level]);
        put(const { at("m_indexId", 2) }, &unit.0.to_le_bytes());
        put(const { at("m_prevPage", 6) }, &pointer(new.previous));
        put(const { at("pminlen", 2) }, &new.pminlen.to_le_bytes());
        put(const { at("m_nextPage", 6) }, &pointer(new.next));
        put(const { at("m_objId", 4) }, &unit.1.to_le_bytes());
        put(const { at("m_pageId", 6) }, &pointer(id));
        let mut this = Self { bytes, rows: Vec::new(), is_moved: true, is_header_changed: false };
        match PageType::from_byte(new.kind) {
            Some(PageType::Iam) => {
                let mut header = [0; IAM_HEADER_BYTES];
                header[..4].copy_from_slice(&IAM_HEADER_RECORD);
                let start = id.page - id.page % INTERVAL_PAGES;
                header[IAM_START_AT..IAM_START_AT + 6].copy_from_slice(&pointer(PageId::new(id.file, start)));
                let mut bitmap = vec![0; IAM_BITMAP_BYTES];
                bitmap.splice(..4, IAM_BITMAP_RECORD);
                this.rows.extend([header.to_vec(), bitmap].map(|record| Some(Row::new(record))));
            }
            Some(
                PageType::Data
                | PageType::Index
                | PageType::TextMix
                | PageType::TextTree
                | PageType::ReorgTemporary
                | PageType::BulkPreallocated,
            ) => {}
            _ => return Err(Misfit::RecordUnknown),
        }
        Ok(this)
    }

    /// Creates a page from a record that contains the image of the page with its rows.
    fn of_image(id: PageId, new: &NewPage<'_>) -> Result<Self, Misfit> {
        let mut bytes = Box::new([0; PAGE_BYTES]);
        let gap = PAGE_BYTES.checked_sub(new.start.len() + new.end.len()).ok_or(Misfit::RecordUnknown)?;
        let parts = new.start.iter().chain(std::iter::repeat_n(&0, gap)).chain(new.end);
        bytes.iter_mut().zip(parts).for_each(|(byte, part)| *byte = *part);
        let header = Page::new(&bytes).header();
        if new.start.len() < HEADER_BYTES || header.page_id() != id || header.page_type != new.kind {
            return Err(Misfit::RecordUnknown);
        }
        Self::load(&bytes)
    }

    fn page(&self) -> Page<'_> {
        Page::new(&self.bytes)
    }

    /// Whether the page has no rows, although a page of its type can contain rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && has_rows(self.page().header().kind())
    }

    /// The LSN of the page.
    pub(crate) fn lsn(&self) -> Lsn {
        self.page().header().lsn()
    }

    /// Sets the LSN of the page.
    pub(crate) fn set_lsn(&mut self, lsn: Lsn) {
        const LSN: usize = at("m_lsn", 10);
        self.put(LSN, &lsn.vlf.to_le_bytes());
        self.put(LSN + 4, &lsn.block.to_le_bytes());
        self.put(LSN + 8, &lsn.slot.to_le_bytes());
    }

    fn put(&mut self, at: usize, field: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at + field.len()) {
            place.copy_from_slice(field);
        }
    }

    fn keeps_slots(&self, context: u8) -> bool {
        matches!(self.page().header().kind(), Some(PageType::TextMix | PageType::TextTree))
            || KEEPS_SLOTS.contains(&context)
    }

    /// The row in a slot.
    fn row(&self, slot: u16) -> Result<&[u8], Misfit> {
        let row = self.rows.get(usize::from(slot)).and_then(Option::as_ref);
        row.filter(|row| !row.is_damaged).map(|row| row.bytes(&self.bytes)).ok_or(Misfit::RowMissing)
    }

    /// The bytes of the row in a slot, to be changed in place.
    fn row_in_place(&mut self, slot: u16) -> Result<&mut [u8], Misfit> {
        let row = self.rows.get_mut(usize::from(slot)).and_then(Option::as_mut);
        let row = row.filter(|row| !row.is_damaged).ok_or(Misfit::RowMissing)?;
        row.is_changed = true;
        let start = usize::from(row.offset);
        match &mut row.own {
            Some(own) => Ok(own),
            None => self.bytes.get_mut(start..start + usize::from(row.length)).ok_or(Misfit::RowMissing),
        }
    }

    /// Replaces the bytes of the row in a slot.
    fn set_row(&mut self, slot: u16, bytes: Vec<u8>) -> Result<(), Misfit> {
        let old = self.row_in_place(slot)?;
        if old.len() == bytes.len() {
            old.copy_from_slice(&bytes);
            return Ok(());
        }
        self.is_moved = true;
        let row = self.rows.get_mut(usize::from(slot)).ok_or(Misfit::RowMissing)?;
        *row = Some(Row::new(bytes));
        Ok(())
    }

    /// Whether the row in the slot equals the image in a log record.
    fn has_row(&self, slot: u16, image: &[u8]) -> bool {
        self.row(slot).is_ok_and(|row| is_same_row(self.page(), row, image))
    }

    /// Applies a change other than FORMAT_PAGE.
    pub(crate) fn redo(&mut self, slot: u16, context: u8, change: &Change<'_>) -> Result<(), Misfit> {
        match change {
            Change::Format(_) => Err(Misfit::RecordUnknown),
            Change::Insert { images, over_ghost: true } => {
                self.unghost(slot, images.first().ok_or(Misfit::RecordUnknown)?)
            }
            Change::Insert { images, over_ghost: false } => self.insert(slot, images, context),
            Change::Delete { marks_ghost: true, .. } => self.mark_ghost(slot),
            Change::Delete { marks_ghost: false, .. } | Change::Expunge => self.remove(slot, 1, context),
            Change::DropMoved { rows, .. } => self.remove(slot, *rows, context),
            Change::ModifyRow(piece) => self.replace(slot, std::slice::from_ref(piece), true),
            Change::ModifyColumns(pieces) => self.replace(slot, pieces, true),
            Change::ModifyHeader(piece) => self.replace_in_header(piece.old_offset, piece.after),
            Change::SetBits { first, count, value } => self.set_bits(slot, *first, *count, *value),
            Change::SetFreeSpace { offset, new, .. } => self.set_byte(slot, usize::from(*offset), &[*new]),
            Change::ReplaceRecord { new, .. } => self.replace_record(slot, new),
            Change::SetCounters(counters) => counters.iter().try_for_each(|(offset, value, length)| {
                let bytes = value.to_le_bytes();
                let bytes = bytes.get(..*length as usize).ok_or(Misfit::RecordUnknown)?;
                self.set_byte(slot, *offset as usize, bytes)
            }),
            Change::SetPointer { offset, new, .. } => self.set_byte(slot, *offset as usize, new),
            Change::Touch => Ok(()),
        }
    }

    /// Undoes a change. `moved` contains the rows that a DELETE_SPLIT removed from the page. `as_a_whole` is set for
    /// structural changes: rows that the change inserted into an index are then removed. Otherwise these rows become
    /// ghosts, as in SQL Server.
    pub(crate) fn undo(
        &mut self,
        slot: u16,
        context: u8,
        change: &Change<'_>,
        moved: &[&[u8]],
        as_a_whole: bool,
    ) -> Result<(), Misfit> {
        match change {
            Change::Insert { images, over_ghost } => {
                for (index, image) in images.iter().enumerate() {
                    let slot = slot.checked_add(index as u16).ok_or(Misfit::RowMissing)?;
                    if !self.has_row(slot, image) {
                        return Err(Misfit::RowMissing);
                    }
                }
                match !*over_ghost && (as_a_whole || self.keeps_slots(context)) {
                    true => self.remove(slot, images.len() as u16, context),
                    false => self.mark_ghost(slot),
                }
            }
            Change::Delete { image: [], .. } => Err(Misfit::RowMissing),
            Change::Delete { marks_ghost: true, image } => self.unghost(slot, image),
            Change::Delete { marks_ghost: false, image } => self.insert(slot, &[image], context),
            Change::DropMoved { rows, .. } => match moved.len() == usize::from(*rows) {
                true => self.insert(slot, moved, context),
                false => Err(Misfit::RowMissing),
            },
            Change::ModifyRow(piece) => self.replace(slot, std::slice::from_ref(piece), false),
            Change::ModifyColumns(pieces) => self.replace(slot, pieces, false),
            Change::ModifyHeader(piece) => self.replace_in_header(piece.old_offset, piece.before),
            Change::SetBits { first, count, value } => self.set_bits(slot, *first, *count, !*value),
            Change::SetFreeSpace { offset, old, .. } => self.set_byte(slot, usize::from(*offset), &[*old]),
            Change::ReplaceRecord { old, .. } => self.replace_record(slot, old),
            Change::SetPointer { offset, old, .. } => self.set_byte(slot, *offset as usize, old),
            Change::Format(_) | Change::Expunge | Change::SetCounters(_) | Change::Touch => Ok(()),
        }
    }

    fn insert(&mut self, slot: u16, images: &[&[u8]], context: u8) -> Result<(), Misfit> {
        self.is_moved = true;
        if images.len() + self.rows.len() > MAX_SLOTS || usize::from(slot) >= MAX_SLOTS {
            return Err(Misfit::TooFull);
        }
        let row = |image: &&[u8]| Some(Row::new(row_of_image(self.page(), image)));
        let rows: Vec<Option<Row>> = images.iter().map(row).collect();
        let at = usize::from(slot);
        if self.keeps_slots(context) {
            for (at, row) in (at..).zip(rows) {
                if at >= self.rows.len() {
                    self.rows.resize(at + 1, None);
                }
                match self.rows.get_mut(at) {
                    Some(place @ None) => *place = row,
                    _ => return Err(Misfit::RowMissing),
                }
            }
            return Ok(());
        }
        if at > self.rows.len() {
            return Err(Misfit::RowMissing);
        }
        self.rows.splice(at..at, rows);
        Ok(())
    }

    fn remove(&mut self, slot: u16, count: u16, context: u8) -> Result<(), Misfit> {
        self.is_moved = true;
        let range = usize::from(slot)..usize::from(slot) + usize::from(count);
        let rows = self.rows.get_mut(range.clone()).ok_or(Misfit::RowMissing)?;
        if rows.iter().any(Option::is_none) {
            return Err(Misfit::RowMissing);
        }
        match self.keeps_slots(context) {
            true => self.rows.iter_mut().skip(range.start).take(range.len()).for_each(|row| *row = None),
            false => drop(self.rows.drain(range)),
        }
        Ok(())
    }

    fn mark_ghost(&mut self, slot: u16) -> Result<(), Misfit> {
        self.change_type(slot, |row| GHOSTS.iter().find(|(live, _)| *live == row).map(|(_, ghost)| *ghost))
    }

    /// Turns a ghost back into a row.
    pub(crate) fn revive(&mut self, slot: u16) -> Result<(), Misfit> {
        self.change_type(slot, |row| GHOSTS.iter().find(|(_, ghost)| *ghost == row).map(|(live, _)| *live))
    }

    fn change_type(&mut self, slot: u16, to: impl FnOnce(u8) -> Option<u8>) -> Result<(), Misfit> {
        let status = self.row_in_place(slot)?.first_mut().ok_or(Misfit::RowMissing)?;
        *status = *status & !KIND_MASK | to(*status & KIND_MASK).ok_or(Misfit::RowMissing)?;
        Ok(())
    }

    /// Puts a removed row back into its slot. If `is_ghost` is set, the row becomes a ghost.
    pub(crate) fn put_back(&mut self, slot: u16, context: u8, image: &[u8], is_ghost: bool) -> Result<(), Misfit> {
        self.insert(slot, &[image], context)?;
        if is_ghost { self.mark_ghost(slot) } else { Ok(()) }
    }

    /// Replaces the bytes of the ghost in the slot. The row stays a ghost.
    pub(crate) fn replace_ghost(&mut self, slot: u16, image: &[u8]) -> Result<(), Misfit> {
        self.unghost(slot, image)?;
        self.mark_ghost(slot)
    }

    /// Whether the row in the slot contains these counter values.
    pub(crate) fn has_counters(&self, slot: u16, counters: &[(u32, i64, u32)]) -> bool {
        let Ok(row) = self.row(slot) else { return false };
        counters.iter().all(|(offset, value, length)| {
            let place = row.get(*offset as usize..).and_then(|rest| rest.get(..*length as usize));
            place.is_some() && place == value.to_le_bytes().get(..*length as usize)
        })
    }

    /// Replaces the ghost in the slot with a row that is not a ghost.
    fn unghost(&mut self, slot: u16, image: &[u8]) -> Result<(), Misfit> {
        if !self.row(slot)?.first().is_some_and(|status| RecordKind::of(*status).is_ghost()) {
            return Err(Misfit::RowMissing);
        }
        self.set_row(slot, image.to_vec())
    }

    fn replace(&mut self, slot: u16, pieces: &[Piece<'_>], forward: bool) -> Result<(), Misfit> {
        let kind = self.page().header().kind();
        if !forward && !has_rows(kind) {
            return self.take_back_bits(slot, pieces);
        }
        let is_lob = matches!(kind, Some(PageType::TextMix | PageType::TextTree));
        // The usual case: there is only one piece, and it replaces bytes with the same number of new bytes.
        if let [piece] = pieces
            && self.replace_in_place(slot, piece, forward)?
        {
            return Ok(());
        }
        let mut row = self.row(slot)?.to_vec();
        let logged = logged_length(self.page(), &row);
        let length = row.len();
        // Pieces are replaced from the last to the first, so that the offsets of the remaining pieces stay valid.
        for piece in pieces.iter().rev() {
            let (at, gone, put) = replacement(piece, forward)?;
            let end = at + gone;
            // The piece may reach into the version tag, which is not logged.
            if end > row.len() && end <= row.len() + VERSION_TAG_BYTES {
                row.resize(end, 0);
            }
            let place = row.get(at..end).ok_or(Misfit::RowMissing)?;
            if !forward && !is_as_logged(place, piece, at, logged) {
                return Err(Misfit::RowMissing);
            }
            row.splice(at..end, put.iter().copied());
        }
        if is_lob && row.len() != length {
            let size = (row.len() as u16).to_le_bytes();
            row.get_mut(FRAGMENT_LENGTH).ok_or(Misfit::RowMissing)?.copy_from_slice(&size);
        }
        self.set_row(slot, row)
    }

    /// Replaces bytes in place if the old and the new bytes have the same length. Returns `false` if the lengths
    /// differ.
    fn replace_in_place(&mut self, slot: u16, piece: &Piece<'_>, forward: bool) -> Result<bool, Misfit> {
        let (at, gone, put) = replacement(piece, forward)?;
        let row = self.row(slot)?;
        let Some(place) = row.get(at..at + gone).filter(|_| gone == put.len()) else { return Ok(false) };
        if !forward && !is_as_logged(place, piece, at, logged_length(self.page(), row)) {
            return Err(Misfit::RowMissing);
        }
        let place = self.row_in_place(slot)?.get_mut(at..at + gone).ok_or(Misfit::RowMissing)?;
        place.copy_from_slice(put);
        Ok(true)
    }

    /// Undoes the changes of single bits in an allocation map. Later records may have changed other bits of the same
    /// bytes. Therefore, only the bits that the pieces changed are set back to their old values.
    fn take_back_bits(&mut self, slot: u16, pieces: &[Piece<'_>]) -> Result<(), Misfit> {
        let row = self.row_in_place(slot)?;
        for piece in pieces {
            let at = usize::from(piece.new_offset);
            let place = row.get_mut(at..at + piece.after.len()).ok_or(Misfit::RowMissing)?;
            if piece.before.len() != piece.after.len() {
                return Err(Misfit::RowMissing);
            }
            for ((byte, before), after) in place.iter_mut().zip(piece.before).zip(piece.after) {
                let changed = before ^ after;
                *byte = *byte & !changed | before & changed;
            }
        }
        Ok(())
    }

    fn replace_in_header(&mut self, offset: u16, bytes: &[u8]) -> Result<(), Misfit> {
        let at = usize::from(offset);
        if at + bytes.len() > HEADER_BYTES || bytes.is_empty() {
            return Err(Misfit::RecordUnknown);
        }
        self.put(at, bytes);
        self.is_header_changed = true;
        Ok(())
    }

    fn set_bits(&mut self, slot: u16, first: u16, count: u16, value: bool) -> Result<(), Misfit> {
        let row = self.row_in_place(slot)?;
        for bit in usize::from(first)..usize::from(first) + usize::from(count) {
            let byte = row.get_mut(bit / 8).ok_or(Misfit::RowMissing)?;
            let mask = 1 << (bit % 8);
            *byte = if value { *byte | mask } else { *byte & !mask };
        }
        Ok(())
    }

    fn set_byte(&mut self, slot: u16, at: usize, bytes: &[u8]) -> Result<(), Misfit> {
        let place = at.checked_add(bytes.len()).and_then(|end| self.row_in_place(slot).ok()?.get_mut(at..end));
        place.ok_or(Misfit::RowMissing)?.copy_from_slice(bytes);
        Ok(())
    }

    fn replace_record(&mut self, slot: u16, new: &[u8]) -> Result<(), Misfit> {
        // If the slot number is invalid, the change concerns the only record of the page.
        let slot = if usize::from(slot) < self.rows.len() { slot } else { 0 };
        self.set_row(slot, new.to_vec())
    }

    /// Returns the bytes of the page as the server would write them, with a checksum.
    pub(crate) fn finish(mut self) -> Result<Box<PageBytes>, Misfit> {
        let has_rows = has_rows(self.page().header().kind());
        if has_rows {
            self.settle_rows()?;
        }
        if has_rows {
            let is_ghost =
                |row: &&Row| row.bytes(&self.bytes).first().is_some_and(|status| RecordKind::of(*status).is_ghost());
            let ghosts = self.rows.iter().flatten().filter(is_ghost).count() as u16;
            self.put(const { at("m_ghostRecCnt", 2) }, &ghosts.to_le_bytes());
        }
        if self.is_moved {
            // A damaged row has an unknown length, so it cannot get a new offset.
            if self.rows.iter().flatten().any(|row| row.is_damaged) {
                return Err(Misfit::PageDamaged);
            }
            self.lay_out()?;
        }
        // The flag IN_SYSXACT marks a page in an unfinished structural change. After recovery, no structural change is
        // unfinished.
        let flags = self.page().header().flags.get();
        let flags = flags & !(page_flags::IN_SYSXACT | page_flags::TORN_BITS) | page_flags::CHECKSUM;
        self.put(const { at("m_flagBits", 2) }, &flags.to_le_bytes());
        seal(&mut self.bytes);
        Ok(self.bytes)
    }

    /// Sets the length of each changed row to the length that its bytes state.
    fn settle_rows(&mut self) -> Result<(), Misfit> {
        let all = self.is_header_changed;
        for slot in 0..self.rows.len() {
            let Some(Some(row)) = self
                .rows
                .get(slot)
                .filter(|row| row.as_ref().is_some_and(|row| (all || row.is_changed) && !row.is_damaged))
            else {
                continue;
            };
            let mut space = row.bytes(&self.bytes).to_vec();
            let before = space.len();
            space.resize(before + VERSION_TAG_BYTES, 0);
            let length = row_length(self.page(), &space, before)?;
            let is_heap_stub = length < MIN_HEAP_ROW_BYTES && before == MIN_HEAP_ROW_BYTES;
            if length == before || is_heap_stub {
                continue;
            }
            if length > space.len() {
                return Err(Misfit::RowMissing);
            }
            space.truncate(length);
            self.set_row(slot as u16, space)?;
        }
        Ok(())
    }

    fn lay_out(&mut self) -> Result<(), Misfit> {
        let old = self.bytes.clone();
        let rows = std::mem::take(&mut self.rows);
        let used: usize = rows.iter().flatten().map(|row| row.bytes(&old).len()).sum();
        let free = (PAGE_BYTES - HEADER_BYTES).checked_sub(used + 2 * rows.len()).ok_or(Misfit::TooFull)?;
        if let Some(body) = self.bytes.get_mut(HEADER_BYTES..) {
            body.fill(0);
        }
        let mut end = HEADER_BYTES;
        for (slot, row) in rows.iter().enumerate() {
            let offset = match row {
                Some(row) => {
                    let bytes = row.bytes(&old);
                    self.put(end, bytes);
                    end += bytes.len();
                    (end - bytes.len()) as u16
                }
                None => 0,
            };
            self.put(PAGE_BYTES - 2 * (slot + 1), &offset.to_le_bytes());
        }
        self.put(const { at("m_slotCnt", 2) }, &(rows.len() as u16).to_le_bytes());
        self.put(const { at("m_freeCnt", 2) }, &(free as u16).to_le_bytes());
        self.put(const { at("m_freeData", 2) }, &(end as u16).to_le_bytes());
        Ok(())
    }
}

/// The offset at which a piece replaces bytes, the number of replaced bytes, and the new bytes.
fn replacement<'p>(piece: &Piece<'p>, forward: bool) -> Result<(usize, usize, &'p [u8]), Misfit> {
    let (at, gone, put) = match forward {
        true => (piece.old_offset, usize::from(piece.old_length), piece.after),
        false => (piece.new_offset, piece.after.len(), piece.before),
    };
    if !forward && piece.before.is_empty() && piece.old_length != 0 {
        return Err(Misfit::RowMissing);
    }
    Ok((at.into(), gone, put))
}

/// Whether the bytes of a row are the bytes that a piece wrote. Only the bytes before the version tag are compared,
/// because the tag is not logged.
fn is_as_logged(place: &[u8], piece: &Piece<'_>, at: usize, logged: usize) -> bool {
    let compared = logged.saturating_sub(at).min(place.len());
    place.get(..compared) == piece.after.get(..compared)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: PageId = PageId::new(1, 100);

    /// A page of this type with one row.
    pub(super) fn with_row(kind: PageType, pminlen: u16, row: &[u8]) -> WorkingPage {
        let none = PageId::NONE;
        let new = NewPage { kind: kind as u8, level: 0, previous: none, next: none, pminlen, start: &[], end: &[] };
        let mut page = WorkingPage::format(PAGE, (1, 7), &new).unwrap();
        let insert = Change::Insert { images: vec![row], over_ghost: false };
        page.redo(0, 2, &insert).unwrap();
        WorkingPage::load(&page.finish().unwrap()).unwrap()
    }

    /// A table row with one column of four bytes and the status bit for a version tag.
    pub(super) const TAGGED: [u8; 11] = [0x50, 0, 8, 0, 9, 9, 9, 9, 1, 0, 0];

    #[test]
    fn a_change_that_reaches_into_the_version_tag_is_taken_back_whatever_the_tag_is() {
        let mut page = with_row(PageType::Data, 8, &TAGGED);
        let tag: Vec<u8> = (1..15).collect();
        page.replace(
            0,
            &[Piece { old_offset: 11, new_offset: 11, old_length: 14, before: &[0; 14], after: &tag }],
            true,
        )
        .unwrap();
        // The piece covers the column count, the NULL bitmap, and two bytes of the version tag. For the tag, the piece
        // contains the bytes that the tag had at the time of the change.
        let piece = Piece {
            old_offset: 8,
            new_offset: 8,
            old_length: 5,
            before: &[1, 0, 1, 0, 0],
            after: &[1, 0, 0, 0xEE, 0xEE],
        };
        page.undo(0, 2, &Change::ModifyRow(piece), &[], false).unwrap();
        assert_eq!(page.row(0).unwrap()[8..11], [1, 0, 1]);
        // Outside the version tag, the bytes of the row must equal those of the record. The undo above changed the NULL
        // bitmap, so a second undo of the same record must fail.
        let other = Piece { after: &[1, 0, 0, 0xEE, 0xEE], ..piece };
        assert_eq!(page.undo(0, 2, &Change::ModifyRow(other), &[], false), Err(Misfit::RowMissing));
    }

    #[test]
    fn a_damaged_row_hinders_only_what_needs_to_know_how_long_it_is() {
        let mut page = with_row(PageType::Data, 8, &[0x10, 0, 8, 0, 9, 9, 9, 9, 1, 0, 0]);
        let row = [0x10, 0, 8, 0, 1, 2, 3, 4, 1, 0, 0];
        page.redo(1, 2, &Change::Insert { images: vec![&row], over_ghost: false }).unwrap();
        let mut bytes = page.finish().unwrap();
        // The row in slot 0 now states a length that extends beyond the page.
        bytes[HEADER_BYTES + 2..HEADER_BYTES + 4].copy_from_slice(&9000u16.to_le_bytes());
        let piece = Piece { old_offset: 4, new_offset: 4, old_length: 1, before: &[1], after: &[7] };
        let mut page = WorkingPage::load(&bytes).unwrap();
        assert_eq!(page.redo(0, 2, &Change::ModifyRow(piece)), Err(Misfit::RowMissing));
        page.redo(1, 2, &Change::ModifyRow(piece)).unwrap();
        let changed = page.clone().finish().unwrap();
        let differs: Vec<usize> =
            (0..PAGE_BYTES).filter(|at| bytes[*at] != changed[*at] && !(0x3C..0x40).contains(at)).collect();
        assert_eq!(differs, [HEADER_BYTES + 11 + 4], "one byte, and nothing of the damaged row");
        page.redo(1, 2, &Change::Expunge).unwrap();
        assert_eq!(page.finish(), Err(Misfit::PageDamaged));
    }

    #[test]
    fn a_page_is_made_with_the_rows_that_its_record_has() {
        let page = with_row(PageType::Data, 8, &TAGGED).finish().unwrap();
        let end = Page::new(&page).header().free_data.get().into();
        let none = PageId::NONE;
        let new = |start, end| NewPage { kind: 1, level: 0, previous: none, next: none, pminlen: 8, start, end };
        for (start, end) in [(&page[..end], &page[PAGE_BYTES - 2..]), (&page[..], &[][..])] {
            let made = WorkingPage::format(PAGE, (1, 7), &new(start, end)).unwrap();
            assert_eq!(made.row(0).unwrap()[..11], TAGGED);
            assert_eq!(made.finish().unwrap(), page);
        }
        let misfits = [
            WorkingPage::format(PageId::new(1, 101), (1, 7), &new(&page[..end], &page[PAGE_BYTES - 2..])),
            WorkingPage::format(PAGE, (1, 7), &new(&page[..], &[0])),
            WorkingPage::format(PAGE, (1, 7), &new(&page[..50], &[])),
        ];
        assert!(misfits.into_iter().all(|made| made.is_err()));
    }

    #[test]
    fn inserted_rows_with_version_tags_are_found_on_pages_of_every_kind() {
        let index: &[u8] = &[0x46, 1, 2, 3, 4];
        let lob: &[u8] = &[0x48, 0, 5, 0, 1, 2, 3, 4, 5, 6, 7, 8, 3, 0, b'v', b'a', b'l', b'u', b'e'];
        for (kind, pminlen, image) in
            [(PageType::Data, 8, &TAGGED[..]), (PageType::Index, 5, index), (PageType::TextMix, 0, lob)]
        {
            let mut page = with_row(kind, pminlen, image);
            let row = page.row_in_place(0).unwrap();
            assert_eq!(row.len(), image.len() + VERSION_TAG_BYTES, "{kind:?}");
            row[image.len()..].fill(0xD7);
            let insert = Change::Insert { images: vec![image], over_ghost: false };
            page.undo(0, 5, &insert, &[], true).unwrap();
            assert!(page.rows.iter().all(Option::is_none), "{kind:?}");
        }
    }
}
