//! A page in memory: the header, and the records by slot. Log records do not contain the offsets of records on a page,
//! so every write of the page assigns new offsets.

use crate::ids::{PAGE, PageId, UnitId};
use crate::page::{self, Lsn, Page, PageVerify, page_type};

const HEADER: usize = 96;

/// A page in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    header: [u8; HEADER],
    /// The records by slot. An empty slot has an empty record.
    pub(super) records: Vec<Vec<u8>>,
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from(word(bytes, at)) | u32::from(word(bytes, at + 2)) << 16
}

impl Frame {
    /// Parses the bytes of a page on disk.
    pub(super) fn read(bytes: &[u8; PAGE]) -> Self {
        let mut bytes = *bytes;
        page::unprotect(&mut bytes);
        let mut header = [0; HEADER];
        header.copy_from_slice(&bytes[..HEADER]);
        let slots = usize::from(word(&bytes, 22));
        let places: Vec<usize> = (0..slots).map(|slot| usize::from(word(&bytes, PAGE - 2 - 2 * slot))).collect();
        // On pages that the lab writes, there are no gaps between records.
        let mut ends = places.clone();
        ends.push(usize::from(word(&bytes, 30)));
        ends.sort_unstable();
        let end = |from: usize| ends.iter().copied().find(|&end| end > from).unwrap_or(from);
        let records = places.iter().map(|&from| if from == 0 { Vec::new() } else { bytes[from..end(from)].to_vec() });
        Self { header, records: records.collect() }
    }

    /// Creates an empty page.
    pub(super) fn fresh(
        id: PageId,
        (kind, level): (u8, u8),
        unit: UnitId,
        fixed_length: u16,
        verify: PageVerify,
    ) -> Self {
        let mut page = Page::new(kind, level, unit, fixed_length);
        Self::read(page.finish(id, Default::default(), Lsn::default(), verify))
    }

    /// The bytes of the page as written to disk.
    pub(super) fn bytes(&self) -> Box<[u8; PAGE]> {
        debug_assert!(self.filled() <= PAGE - HEADER, "rows need {} bytes", self.filled());
        let mut bytes = Box::new([0; PAGE]);
        bytes[..HEADER].copy_from_slice(&self.header);
        let mut at = HEADER;
        for (slot, record) in self.records.iter().enumerate() {
            let place = if record.is_empty() { 0 } else { at as u16 };
            bytes[at..at + record.len()].copy_from_slice(record);
            bytes[PAGE - 2 - 2 * slot..PAGE - 2 * slot].copy_from_slice(&place.to_le_bytes());
            at += record.len();
        }
        let mut field = |place: usize, value: u16| bytes[place..place + 2].copy_from_slice(&value.to_le_bytes());
        field(22, self.records.len() as u16);
        field(28, (PAGE - HEADER - self.filled()) as u16);
        field(30, at as u16);
        field(58, self.ghosts() as u16);
        let verify = match word(&self.header, 4) & 0x300 {
            0x100 => PageVerify::Torn,
            0x200 => PageVerify::Checksum,
            _ => PageVerify::None,
        };
        page::protect(&mut bytes, verify);
        bytes
    }

    /// The page as the record of a fully logged index build has it: from the header to the end of the rows, and the slot
    /// array.
    pub(super) fn image(&self) -> Vec<Vec<u8>> {
        let mut bytes = self.bytes();
        page::unprotect(&mut bytes);
        let (end, slots) = (usize::from(word(&bytes[..], 30)), PAGE - 2 * self.records.len());
        vec![bytes[..end].to_vec(), bytes[slots..].to_vec()]
    }

    /// The number of bytes that records and their slots use.
    pub(super) fn filled(&self) -> usize {
        self.records.iter().map(|record| record.len() + 2).sum()
    }

    /// The number of free bytes.
    pub(super) fn room(&self) -> usize {
        (PAGE - HEADER).saturating_sub(self.filled())
    }

    /// Number of ghosts on the page.
    pub(super) fn ghosts(&self) -> usize {
        let has_ghosts = matches!(self.kind(), page_type::DATA | page_type::INDEX);
        if has_ghosts { self.records.iter().filter(|record| is_ghost(record)).count() } else { 0 }
    }

    pub(super) fn kind(&self) -> u8 {
        self.header[1]
    }

    pub(super) fn level(&self) -> u8 {
        self.header[3]
    }

    pub(super) fn unit(&self) -> UnitId {
        UnitId(u64::from(word(&self.header, 6)) << 48 | u64::from(long(&self.header, 24)) << 16)
    }

    pub(super) fn lsn(&self) -> Lsn {
        Lsn(long(&self.header, 40), long(&self.header, 44), word(&self.header, 48))
    }

    pub(super) fn set_lsn(&mut self, lsn: Lsn) {
        self.header[40..50].copy_from_slice(&lsn.bytes());
    }

    /// The `length` bytes of the header at offset `at`.
    pub(super) fn header(&self, at: usize, length: usize) -> Vec<u8> {
        self.header[at..at + length].to_vec()
    }

    /// Overwrites bytes of the header.
    pub(super) fn set_header(&mut self, at: usize, bytes: &[u8]) {
        self.header[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// The addresses of the previous and the next page.
    pub(super) fn links(&self) -> (PageId, PageId) {
        let link = |at: usize| PageId::new(word(&self.header, at + 4), long(&self.header, at));
        (link(PREVIOUS), link(NEXT))
    }
}

/// Offset of the address of the previous page in the header. `NEXT` is the offset of the address of the next page.
pub(super) const PREVIOUS: usize = 8;
pub(super) const NEXT: usize = 16;
/// Offset of the type flags.
pub(super) const TYPE_FLAGS: usize = 2;

/// Whether a record is a ghost: type 6 for data records, type 5 for index records.
pub(super) fn is_ghost(record: &[u8]) -> bool {
    record.first().is_some_and(|status| matches!(status >> 1 & 7, 5 | 6))
}

/// A copy of the record, marked as a ghost or as a live row.
pub(super) fn with_ghost(record: &[u8], ghost: bool) -> Vec<u8> {
    let mut record = record.to_vec();
    if let Some(status) = record.first_mut() {
        let kind = match (*status >> 1 & 7, ghost) {
            (0, true) => 6,
            (3, true) => 5,
            (6, false) => 0,
            (5, false) => 3,
            (kind, _) => kind,
        };
        *status = *status & !0x0E | kind << 1;
    }
    record
}
