//! A page that the lab damages, and what its header says about it.

use crate::ids::{PAGE, PageId};
use crate::page::{self, PageVerify, page_type};

/// The index ID in the page headers of all allocation units that SQL Server has made for user tables since 2005. A few
/// system tables have it, too.
const MADE_SINCE_2005: u16 = 0x100;
/// Base tables have object IDs up to this one. A page header with a lower index ID than [`MADE_SINCE_2005`] and a higher
/// object ID belongs to a user table that SQL Server 2000 made: its pages name the table and the index.
const LAST_BASE_TABLE: u32 = 0xFF;
/// The base tables without which the catalog cannot be read: sysrscols, sysrowsets, sysallocunits and sysfiles1. Damage
/// to one of them would hide all other tables.
const NEEDED_TO_READ: [u32; 4] = [3, 5, 7, 8];
/// The number of slots that a page has at most if its header is sound.
const MOST_SLOTS: u16 = 2_000;
/// Size of the page header in bytes.
const HEADER: u16 = 96;

/// How well a page suits a kind of damage: the lower, the better. `None` means that the page is unsuitable.
pub(super) type Rank = Option<u8>;

/// A page as stored in the file, but with its torn-page protection undone.
pub(super) struct Image {
    pub(super) id: PageId,
    pub(super) bytes: Box<[u8; PAGE]>,
}

impl Image {
    pub(super) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    pub(super) fn put_u16(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    pub(super) fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.bytes[at..at + N]);
        field
    }

    pub(super) fn slots(&self) -> u16 {
        self.u16(22)
    }

    pub(super) fn slot(&self, number: u16) -> u16 {
        self.u16(PAGE - 2 - 2 * usize::from(number)).min(PAGE as u16 - 100)
    }

    pub(super) fn set_slot(&mut self, number: u16, offset: u16) {
        self.put_u16(PAGE - 2 - 2 * usize::from(number), offset);
    }

    /// The free data pointer: the offset of the first byte after the last row.
    pub(super) fn end(&self) -> u16 {
        self.u16(30)
    }

    /// Whether the free data pointer is after the page header and within the page.
    pub(super) fn end_is_sound(&self) -> bool {
        (97..=PAGE).contains(&usize::from(self.end()))
    }

    /// Whether the rows are on the page in the order of their slots, without ghosts and without gaps. Then the last row
    /// extends from its offset to the free data pointer.
    pub(super) fn is_without_gaps(&self) -> bool {
        let offsets = (0..self.slots()).map(|slot| self.slot(slot));
        let free = u32::from(self.u16(28)) + 2 * u32::from(self.slots()) + u32::from(self.end());
        self.u16(58) == 0
            && self.end_is_sound()
            && free == PAGE as u32
            && offsets.clone().next() >= Some(HEADER)
            && offsets.clone().zip(offsets.skip(1)).all(|(one, next)| one < next)
            && self.end() > self.slot(self.slots() - 1)
    }

    fn object(&self) -> u32 {
        u32::from_le_bytes(self.field(24))
    }

    /// The index that the page header names: 1 is a clustered index. Only pages of base tables and of tables that SQL
    /// Server 2000 made name an index.
    pub(super) fn names_clustered_index(&self) -> bool {
        self.u16(6) == 1
    }

    /// Whether the page belongs to a user table, according to its header.
    pub(super) fn is_user(&self) -> bool {
        match self.u16(6) {
            MADE_SINCE_2005 => true,
            index => index < MADE_SINCE_2005 && self.object() > LAST_BASE_TABLE,
        }
    }

    /// Whether the page belongs to a base table without which the catalog cannot be read.
    pub(super) fn is_needed_to_read(&self) -> bool {
        !self.is_user() && NEEDED_TO_READ.contains(&self.object())
    }

    /// Prefers user tables to base tables. Pages of other owners are unsuitable.
    pub(super) fn by_owner(&self) -> Rank {
        let is_base_table = self.u16(6) < MADE_SINCE_2005 && (1..=LAST_BASE_TABLE).contains(&self.object());
        match self.is_user() {
            true => Some(0),
            false => (is_base_table && !self.is_needed_to_read()).then_some(2),
        }
    }

    fn has_slots(&self, least: u16) -> bool {
        (least..MOST_SLOTS).contains(&self.slots())
    }

    /// Prefers data pages to leaf pages of nonclustered indexes, and user tables to base tables. Other pages are
    /// unsuitable.
    pub(super) fn by_leaf(&self) -> Rank {
        let by_type = match (self.bytes[1], self.bytes[3]) {
            (page_type::DATA, _) => 0,
            (page_type::INDEX, 0) => 1,
            _ => return None,
        };
        if self.has_slots(5) { self.by_owner().map(|rank| rank + by_type) } else { None }
    }

    /// Whether this is a page of an index above the leaf level, with at least this number of rows.
    pub(super) fn is_upper(&self, slots: u16) -> bool {
        self.bytes[1] == page_type::INDEX && self.bytes[3] > 0 && self.has_slots(slots)
    }

    pub(super) fn is_index(&self) -> bool {
        self.bytes[1] == page_type::INDEX
    }

    pub(super) fn has_previous(&self) -> bool {
        self.field::<6>(8) != [0; 6]
    }

    pub(super) fn has_next(&self) -> bool {
        self.field::<6>(16) != [0; 6]
    }

    pub(super) fn has_siblings(&self) -> bool {
        self.has_previous() && self.has_next()
    }

    /// The kind of page protection that the page header indicates.
    pub(super) fn verify(&self) -> PageVerify {
        match self.u16(4) & 0x300 {
            0x100 => PageVerify::Torn,
            0x200 => PageVerify::Checksum,
            _ => PageVerify::None,
        }
    }

    /// Recomputes the page protection that the page header indicates.
    pub(super) fn protect(&mut self) {
        let verify = self.verify();
        page::protect(&mut self.bytes, verify);
    }

    /// The numbers of the set bits on an IAM page, one for each extent.
    pub(super) fn map_bits(&self) -> Vec<usize> {
        let from = usize::from(self.slot(1)) + 4;
        let bits = self.bytes.get(from..from + 188).unwrap_or_default();
        (0..bits.len() * 8).filter(|bit| bits[bit / 8] >> (bit % 8) & 1 == 1).collect()
    }

    /// The offsets of the addresses of single pages on an IAM page, without the null pointers.
    pub(super) fn single_pages(&self) -> Vec<usize> {
        let from = usize::from(self.slot(0)) + 46;
        let places = (0..8).map(|number| from + 6 * number);
        places.filter(|&at| at + 6 <= PAGE && self.field::<6>(at) != [0; 6]).collect()
    }
}
