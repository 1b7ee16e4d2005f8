//! Stores off-row values in LOB units and row-overflow units.

use crate::disk::LabError;
use crate::ids::{PageId, RowId};
use crate::page::{Page, page_type};
use crate::space::{Space, Unit, fullness};

/// A header flag that nearly all LOB pages in real files have. Its meaning is unknown.
const MET_ON_TEXT_PAGES: u16 = 0x8000;
/// The most data bytes in a fragment.
pub(crate) const FRAGMENT: usize = 8040;
/// The maximum number of links in a root. The root of a value is in its row or in a record of its own.
pub(crate) const ROOT_LINKS: usize = 5;
/// The most links in a tree node.
pub(crate) const NODE_LINKS: usize = 501;
/// The length in bytes of the longest value that the lab writes: as many full fragments as one tree node below the root
/// can link.
pub(crate) const LONGEST: usize = FRAGMENT * NODE_LINKS;
/// A text, ntext or image value of up to this many bytes is stored inside its root record.
const SMALL: usize = 64;
/// Length of every root record of a text, ntext or image value.
const ROOT_RECORD: usize = 84;

const SMALL_ROOT: u16 = 0;
pub(crate) const NODE: u16 = 2;
pub(crate) const DATA: u16 = 3;
const LARGE_ROOT: u16 = 5;

/// The first byte of a pointer in the row. `OVERFLOW_POINTER` marks a pointer to a row-overflow value, `ROOT_POINTER`
/// marks the root of a LOB value.
const OVERFLOW_POINTER: u8 = 2;
pub(crate) const ROOT_POINTER: u8 = 4;

/// A LOB or row-overflow unit under construction.
pub(crate) struct LobStore {
    unit: Unit,
    page: Option<(Page, PageId)>,
}

/// Assigns blob IDs, which are unique in the database.
#[derive(Clone, Default)]
pub(crate) struct BlobIds(u64);

impl BlobIds {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0 << 16
    }
}

impl LobStore {
    /// Creates an empty store in `unit`.
    pub(crate) fn new(unit: Unit) -> Self {
        Self { unit, page: None }
    }

    /// Stores a (max) value and returns the root for its row.
    pub(crate) fn store_max(
        &mut self,
        space: &mut Space,
        ids: &mut BlobIds,
        value: &[u8],
    ) -> Result<Vec<u8>, LabError> {
        let blob = ids.next();
        let (level, links) = self.store_tree(space, blob, value)?;
        Ok(pointer(ROOT_POINTER, level as u8, blob, &links))
    }

    /// Stores a text, ntext or image value and returns its 16-byte pointer.
    pub(crate) fn store_text(
        &mut self,
        space: &mut Space,
        ids: &mut BlobIds,
        value: &[u8],
    ) -> Result<Vec<u8>, LabError> {
        let blob = ids.next();
        let mut record = if value.len() <= SMALL {
            let mut record = header(blob, SMALL_ROOT);
            record.extend((value.len() as u16).to_le_bytes());
            record.extend([0; 4]);
            record.extend(value);
            record
        } else {
            let (level, links) = self.store_tree(space, blob, value)?;
            let mut record = header(blob, LARGE_ROOT);
            record.extend((ROOT_LINKS as u16).to_le_bytes());
            record.extend((links.len() as u16).to_le_bytes());
            record.extend(level.to_le_bytes());
            record.extend([0; 4]);
            for (end, at) in links {
                record.extend((end as u32).to_le_bytes());
                record.extend(at.bytes());
            }
            record
        };
        record.resize(ROOT_RECORD, 0);
        let at = self.put(space, page_type::TEXT_MIX, record)?;
        Ok([&blob.to_le_bytes()[..], &at.bytes()[..]].concat())
    }

    /// Stores the value of a variable-length column that does not fit in its row, and returns the pointer for the row.
    pub(crate) fn store_overflow(
        &mut self,
        space: &mut Space,
        ids: &mut BlobIds,
        value: &[u8],
    ) -> Result<Vec<u8>, LabError> {
        let blob = ids.next();
        let at = self.put(space, page_type::TEXT_MIX, [&header(blob, DATA)[..], value].concat())?;
        Ok(pointer(OVERFLOW_POINTER, 0, blob, &[(value.len() as u64, at)]))
    }

    /// Stores the fragments of a value and, if necessary, the tree nodes above them. Returns the level and the links
    /// for the root of the value.
    fn store_tree(&mut self, space: &mut Space, blob: u64, value: &[u8]) -> Result<(u16, Vec<(u64, RowId)>), LabError> {
        if value.len() > LONGEST {
            return Err(LabError::Description(format!("a value of {} bytes is longer than {LONGEST}", value.len())));
        }
        let mut links = Vec::new();
        let mut end = 0;
        for fragment in value.chunks(FRAGMENT) {
            end += fragment.len() as u64;
            let record = [&header(blob, DATA)[..], fragment].concat();
            links.push((end, self.put(space, page_type::TEXT_MIX, record)?));
        }
        if links.len() <= ROOT_LINKS {
            return Ok((0, links));
        }
        let mut node = header(blob, NODE);
        node.extend((NODE_LINKS as u16).to_le_bytes());
        node.extend((links.len() as u16).to_le_bytes());
        node.extend(0u16.to_le_bytes());
        for (end, at) in links {
            node.extend(end.to_le_bytes());
            node.extend(at.bytes());
        }
        let at = self.put(space, page_type::TEXT_TREE, node)?;
        Ok((1, vec![(end, at)]))
    }

    fn put(&mut self, space: &mut Space, kind: u8, mut record: Vec<u8>) -> Result<RowId, LabError> {
        let length = record.len() as u16;
        record[2..4].copy_from_slice(&length.to_le_bytes());
        let fits = |(page, _): &(Page, PageId)| page.room() >= record.len() && page.bytes()[1] == kind;
        if !self.page.as_ref().is_some_and(fits) {
            self.write(space)?;
            let id = space.page(&mut self.unit, 0)?;
            if self.unit.first == PageId::NONE {
                (self.unit.first, self.unit.root) = (id, id);
            }
            let mut page = Page::new(kind, 0, self.unit.id, 0);
            page.set_flags(MET_ON_TEXT_PAGES);
            self.page = Some((page, id));
        }
        let Some((page, id)) = &mut self.page else { return Ok(RowId::default()) };
        let slot = page.push(&record);
        Ok(RowId { page: *id, slot })
    }

    fn write(&mut self, space: &mut Space) -> Result<(), LabError> {
        if let Some((mut page, id)) = self.page.take() {
            // PFS pages mark tree pages as full, regardless of the number of bytes on the tree page.
            let tree = page.bytes()[1] == page_type::TEXT_TREE;
            space.mark(id, if tree { 4 } else { fullness(page.filled()) })?;
            space.disk.write(&mut page, id, Default::default())?;
        }
        Ok(())
    }

    /// Writes the last page and the IAM chain.
    pub(crate) fn finish(mut self, space: &mut Space) -> Result<Unit, LabError> {
        self.write(space)?;
        space.close(&mut self.unit)?;
        Ok(self.unit)
    }
}

/// The first 14 bytes of a blob record. The length field is set later, when the length is known.
pub(crate) fn header(blob: u64, kind: u16) -> Vec<u8> {
    let mut record = vec![0x08, 0, 0, 0];
    record.extend(blob.to_le_bytes());
    record.extend(kind.to_le_bytes());
    record
}

/// Returns a pointer for the row: the kind, a zero byte, the level, the update sequence 1, the blob ID, and the links.
/// If the links point to tree nodes, the level is 1; the format for higher levels is not published.
pub(crate) fn pointer(kind: u8, level: u8, blob: u64, links: &[(u64, RowId)]) -> Vec<u8> {
    let mut bytes = vec![kind, 0, level, 0, 1, 0];
    bytes.extend(&blob.to_le_bytes()[..6]);
    for (end, at) in links {
        bytes.extend((*end as u32).to_le_bytes());
        bytes.extend(at.bytes());
    }
    bytes
}
