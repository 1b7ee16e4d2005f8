//! Builds the log records of page changes as SQL Server writes them.

use crate::bytes::put;
use crate::ids::{PageId, UnitId};
use crate::log::operation;

/// Contexts of log records, which name the kind of page or of change.
pub(super) mod context {
    #![allow(missing_docs)]
    pub(crate) const NONE: u8 = 0;
    pub(crate) const HEAP: u8 = 1;
    pub(crate) const CLUSTERED: u8 = 2;
    pub(crate) const INDEX_LEAF: u8 = 3;
    pub(crate) const INDEX_INTERIOR: u8 = 4;
    pub(crate) const TEXT_MIX: u8 = 5;
    pub(crate) const TEXT_TREE: u8 = 6;
    pub(crate) const GAM: u8 = 8;
    pub(crate) const SGAM: u8 = 9;
    pub(crate) const IAM: u8 = 10;
    pub(crate) const PFS: u8 = 11;
    pub(crate) const FILE_HEADER: u8 = 17;
    pub(crate) const MARK_AS_GHOST: u8 = 19;
    pub(crate) const BOOT: u8 = 20;
    pub(crate) const DIFFERENTIAL_MAP: u8 = 24;
}

/// The slot number in records that do not concern a row.
const NO_SLOT: u16 = 0xFFFF;
/// Bit at offset 0x3A of INSERT_ROWS: the row replaces the ghost in the slot.
pub(super) const OVER_GHOST: u16 = 2;

/// The log record of a change to a page.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) page: PageId,
    /// The allocation unit that the record names, if it is not the page's own unit. For a change of a map page, this is
    /// the unit for which the map changes.
    pub(super) owner: Option<UnitId>,
    /// The fixed part of the record. The fields that all records have are set when the record is appended to the log.
    pub(super) fixed: Vec<u8>,
    pub(super) elements: Vec<Vec<u8>>,
}

impl Entry {
    fn new((operation, context): (u8, u8), page: PageId, slot: u16, length: usize) -> Self {
        let mut fixed = vec![0; length];
        put(&mut fixed, 0x16, &[operation, context]);
        put(&mut fixed, 0x18, &page.bytes());
        put(&mut fixed, 0x1E, &slot.to_le_bytes());
        Self { page, owner: None, fixed, elements: Vec::new() }
    }

    /// Creates a record that changes rows. The record stores the ID of the rowset, and the offset and the length of the
    /// change in the row.
    fn rows(kind: (u8, u8), page: PageId, slot: u16, (rowset, offset, length): (u64, u16, u16)) -> Self {
        let mut entry = Self::new(kind, page, slot, 62);
        put(&mut entry.fixed, 0x30, &rowset.to_le_bytes());
        put(&mut entry.fixed, 0x38, &offset.to_le_bytes());
        put(&mut entry.fixed, 0x3A, &length.to_le_bytes());
        entry
    }

    fn with(mut self, elements: Vec<Vec<u8>>) -> Self {
        self.elements = elements;
        self
    }

    pub(super) fn insert(
        context: u8,
        (page, slot): (PageId, u16),
        rowset: u64,
        flags: u16,
        image: &[u8],
        lock: Vec<u8>,
    ) -> Self {
        let entry = Self::rows((operation::INSERT_ROWS, context), page, slot, (rowset, 0, flags));
        entry.with(vec![image.to_vec(), Vec::new(), lock])
    }

    /// A record that inserts the rows which a page split moves.
    pub(super) fn insert_all(context: u8, page: PageId, images: Vec<Vec<u8>>) -> Self {
        let mut elements = images;
        elements.extend([Vec::new(), Vec::new()]);
        Self::rows((operation::INSERT_ROWS, context), page, 0, (0, 0, 0)).with(elements)
    }

    /// Creates a record that deletes a row. With the context `MARK_AS_GHOST`, the record makes the row a ghost instead.
    pub(super) fn delete(context: u8, (page, slot): (PageId, u16), rowset: u64, image: &[u8], lock: Vec<u8>) -> Self {
        let entry = Self::rows((operation::DELETE_ROWS, context), page, slot, (rowset, 1, 0));
        entry.with(vec![image.to_vec(), lock])
    }

    pub(super) fn expunge(context: u8, page: PageId, slot: u16) -> Self {
        Self::rows((operation::EXPUNGE_ROWS, context), page, slot, (0, 0, 0))
    }

    /// A record that replaces bytes of the page header.
    pub(super) fn header(context: u8, page: PageId, at: usize, old: Vec<u8>, new: &[u8]) -> Self {
        let place = (0, at as u16, 0);
        Self::rows((operation::MODIFY_HEADER, context), page, 0, place).with(vec![old, new.to_vec()])
    }

    /// A log record that replaces bytes of a page's record on a map page, boot page or IAM page.
    pub(super) fn bytes(context: u8, (page, slot): (PageId, u16), at: usize, old: Vec<u8>, new: &[u8]) -> Self {
        let place = (UnitId::FIXED_PAGES.0, at as u16, old.len() as u16);
        Self::rows((operation::MODIFY_ROW, context), page, slot, place).with(vec![old, new.to_vec(), Vec::new()])
    }

    /// A log record that sets a bit of a map to `value`. Bit numbers count from the start of the map's record on the
    /// page, so the four header bytes of this record have the first 32 numbers.
    pub(super) fn bit(context: u8, (page, slot): (PageId, u16), bit: u32, value: bool, elements: usize) -> Self {
        let mut entry = Self::new((operation::SET_BITS, context), page, slot, 54);
        put(&mut entry.fixed, 0x30, &(bit as u16).to_le_bytes());
        put(&mut entry.fixed, 0x32, &1u16.to_le_bytes());
        put(&mut entry.fixed, 0x34, &u16::from(value).to_le_bytes());
        entry.with(vec![Vec::new(); elements])
    }

    /// A record that changes several byte ranges of a map; `None` if nothing changes.
    pub(super) fn map_change(context: u8, (page, slot): (PageId, u16), old: &[u8], new: &[u8]) -> Option<Self> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut at = 0;
        while let Some(from) = (at..old.len()).find(|&at| old[at] != new[at]) {
            let to = (from..old.len()).find(|&at| old[at..].iter().zip(&new[at..]).take(8).all(|(a, b)| a == b));
            let to = to.unwrap_or(old.len());
            pieces.push(Piece { old_at: from, new_at: from, old: old[from..to].to_vec(), new: new[from..to].to_vec() });
            at = to;
        }
        if pieces.is_empty() {
            return None;
        }
        Some(columns((operation::SET_GAM_BITS, context), (page, slot), 0, &pieces, [Vec::new(), Vec::new()]))
    }

    /// A record that replaces the record on the header page of a file.
    pub(super) fn file_header(page: PageId, old: Vec<u8>, new: Vec<u8>) -> Self {
        Self::rows((operation::FILE_HEADER, context::FILE_HEADER), page, 0, (0, 0, 0)).with(vec![old, new])
    }

    /// A record that sets the fullness of a page in its PFS byte.
    pub(super) fn free_space(page: PageId, at: usize, old: u8, new: u8) -> Self {
        let mut entry = Self::new((operation::SET_FREE_SPACE, context::PFS), page, 0, 52);
        put(&mut entry.fixed, 0x30, &(at as u16).to_le_bytes());
        put(&mut entry.fixed, 0x32, &[new, old]);
        entry
    }

    pub(super) fn format(
        context: u8,
        page: PageId,
        (kind, level): (u8, u8),
        fixed_length: u16,
        links: (PageId, PageId),
    ) -> Self {
        let mut entry = Self::new((operation::FORMAT_PAGE, context), page, NO_SLOT, 80);
        put(&mut entry.fixed, 0x30, &[kind, 0, level]);
        put(&mut entry.fixed, 0x34, &links.0.bytes());
        put(&mut entry.fixed, 0x3A, &fixed_length.to_le_bytes());
        put(&mut entry.fixed, 0x3C, &links.1.bytes());
        entry
    }

    /// Creates a record that marks the start or the end of the changes that a system transaction makes to a page.
    pub(super) fn bracket(context: u8, page: PageId, begins: bool) -> Self {
        let mut entry = Self::new((operation::IN_SYSTEM_TRANSACTION, context), page, NO_SLOT, 50);
        put(&mut entry.fixed, 0x30, &[u8::from(begins)]);
        let mut element = Vec::new();
        if begins {
            element.extend([2, 2, 1, 10]);
            element.extend(page.bytes());
        }
        entry.with(vec![element])
    }

    /// A record that removes all rows from one slot to the end of the page, because these rows were moved to another
    /// page.
    pub(super) fn delete_split(
        context: u8,
        (page, slot): (PageId, u16),
        receiver: PageId,
        rows: u16,
        bytes: u16,
    ) -> Self {
        let mut entry = Self::new((operation::DELETE_SPLIT, context), page, slot, 60);
        put(&mut entry.fixed, 0x30, &receiver.bytes());
        put(&mut entry.fixed, 0x36, &rows.to_le_bytes());
        put(&mut entry.fixed, 0x38, &bytes.to_le_bytes());
        entry
    }

    /// A record that sets a page pointer in the catalog row of an allocation unit.
    pub(super) fn root_change(
        (page, slot): (PageId, u16),
        rowset: u64,
        unit: UnitId,
        (new, old): (PageId, PageId),
        at: u32,
    ) -> Self {
        let mut entry = Self::new((operation::ROOT_CHANGE, context::CLUSTERED), page, slot, 96);
        put(&mut entry.fixed, 0x38, &rowset.to_le_bytes());
        put(&mut entry.fixed, 0x40, &unit.object().to_le_bytes());
        put(&mut entry.fixed, 0x46, &unit.index().to_le_bytes());
        put(&mut entry.fixed, 0x48, &new.bytes());
        put(&mut entry.fixed, 0x50, &old.bytes());
        put(&mut entry.fixed, 0x58, &at.to_le_bytes());
        entry
    }

    /// Creates a log record that sets counters in a catalog row. For each counter, the log record contains the new
    /// value in eight bytes, the counter's offset in the row, and its length. For a row of sysrowsets (kind 1), the
    /// stored length is 0.
    pub(super) fn counts((page, slot): (PageId, u16), kind: u32, rowset: u64, values: &[(i64, u32)]) -> Self {
        let mut entry = Self::new((operation::COUNT_DELTA, context::CLUSTERED), page, slot, 208);
        put(&mut entry.fixed, 0x30, &kind.to_le_bytes());
        put(&mut entry.fixed, 0x38, &rowset.to_le_bytes());
        for (number, (value, at)) in values.iter().enumerate() {
            let place = 0x50 + 16 * number;
            put(&mut entry.fixed, place, &value.to_le_bytes());
            put(&mut entry.fixed, place + 8, &at.to_le_bytes());
            put(&mut entry.fixed, place + 12, &if kind == 1 { 0u32 } else { 8 }.to_le_bytes());
        }
        entry
    }
}

/// A changed part of a row: its offsets and bytes before and after the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    old_at: usize,
    new_at: usize,
    old: Vec<u8>,
    new: Vec<u8>,
}

/// The pieces that change one row into another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit(Vec<Piece>);

impl Edit {
    /// Finds the change from one row to another. Each of the three parts of the rows is compared separately: the
    /// fixed-length part, the null bitmap with the column offsets, and the variable-length part. `old_parts` and
    /// `new_parts` have the boundaries of these parts.
    pub(super) fn between((old, old_parts): (&[u8], [usize; 2]), (new, new_parts): (&[u8], [usize; 2])) -> Self {
        let bounds = |parts: [usize; 2], length: usize| [0, parts[0].min(length), parts[1].min(length), length];
        let (old_bounds, new_bounds) = (bounds(old_parts, old.len()), bounds(new_parts, new.len()));
        let mut pieces: Vec<Piece> = Vec::new();
        for (from, to) in old_bounds.windows(2).zip(new_bounds.windows(2)) {
            let Some(piece) = piece((from[0], &old[from[0]..from[1]]), (to[0], &new[to[0]..to[1]])) else { continue };
            match pieces.last_mut() {
                // Combine pieces that are close together.
                Some(last) if piece.old_at < last.old_at + last.old.len() + 4 => {
                    last.old = old[last.old_at..piece.old_at + piece.old.len()].to_vec();
                    last.new = new[last.new_at..piece.new_at + piece.new.len()].to_vec();
                }
                _ => pieces.push(piece),
            }
        }
        Self(pieces)
    }

    /// A change that replaces the whole row.
    pub(super) fn whole(old: &[u8], new: &[u8]) -> Self {
        Self::bytes(0, old, new)
    }

    /// A change that inserts bytes at an offset.
    pub(super) fn addition(at: usize, new: &[u8]) -> Self {
        Self::bytes(at, &[], new)
    }

    /// A change that replaces bytes at an offset.
    pub(super) fn bytes(at: usize, old: &[u8], new: &[u8]) -> Self {
        Self(vec![Piece { old_at: at, new_at: at, old: old.to_vec(), new: new.to_vec() }])
    }

    /// Whether the row does not change.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The change in the opposite direction.
    pub(super) fn inverse(&self) -> Self {
        let back = |piece: &Piece| Piece {
            old_at: piece.new_at,
            new_at: piece.old_at,
            old: piece.new.clone(),
            new: piece.old.clone(),
        };
        Self(self.0.iter().map(back).collect())
    }

    /// Applies the change to a row.
    pub(super) fn apply(&self, row: &[u8]) -> Vec<u8> {
        let (mut out, mut at) = (Vec::new(), 0);
        for piece in &self.0 {
            out.extend(&row[at..piece.old_at]);
            out.extend(&piece.new);
            at = piece.old_at + piece.old.len();
        }
        out.extend(&row[at..]);
        out
    }

    /// Creates the log record of the change: MODIFY_ROW if the change has a single piece, otherwise MODIFY_COLUMNS. The
    /// caller must ensure that a single piece starts at the same offset in the old and the new row.
    pub(super) fn entry(&self, context: u8, place: (PageId, u16), rowset: u64, key: Vec<u8>, lock: Vec<u8>) -> Entry {
        let (page, slot) = place;
        if let [piece] = &self.0[..] {
            let place = (rowset, piece.old_at as u16, piece.old.len() as u16);
            let entry = Entry::rows((operation::MODIFY_ROW, context), page, slot, place);
            return entry.with(vec![piece.old.clone(), piece.new.clone(), key, lock, Vec::new(), Vec::new()]);
        }
        columns((operation::MODIFY_COLUMNS, context), place, rowset, &self.0, [key, lock])
    }
}

/// A log record with several pieces. Its elements are the offsets before and after the change, the lengths of the bytes
/// to replace, the key, the lock, and then the pieces.
fn columns(kind: (u8, u8), (page, slot): (PageId, u16), rowset: u64, pieces: &[Piece], rest: [Vec<u8>; 2]) -> Entry {
    let (mut places, mut lengths) = (Vec::new(), Vec::new());
    for piece in pieces {
        places.extend((piece.old_at as u16).to_le_bytes());
        places.extend((piece.new_at as u16).to_le_bytes());
        lengths.extend((piece.old.len() as u16).to_le_bytes());
    }
    let [key, lock] = rest;
    let mut elements = vec![places, lengths, key, lock];
    elements.extend(pieces.iter().flat_map(|piece| [piece.old.clone(), piece.new.clone()]));
    Entry::rows(kind, page, slot, (rowset, 0, 0)).with(elements)
}

impl Entry {
    /// Empties the elements that a compensation record does not have: before-images, keys and locks.
    pub(super) fn compensating(mut self) -> Self {
        let keep: &[usize] = match self.fixed[0x16] {
            operation::INSERT_ROWS => &[0],
            operation::MODIFY_ROW => &[1],
            operation::MODIFY_COLUMNS => &[0, 1, 5, 7, 9, 11],
            _ => &[],
        };
        for (number, element) in self.elements.iter_mut().enumerate() {
            if !keep.contains(&number) {
                element.clear();
            }
        }
        self
    }
}

/// The difference between two byte strings; `None` if they are equal. `old_at` and `new_at` are the offsets of the byte
/// strings in their rows.
fn piece((old_at, old): (usize, &[u8]), (new_at, new): (usize, &[u8])) -> Option<Piece> {
    if old == new {
        return None;
    }
    let front = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[front..], &new[front..]);
    let back = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - back], &new[..new.len() - back]);
    Some(Piece { old_at: old_at + front, new_at: new_at + front, old: old.to_vec(), new: new.to_vec() })
}
