//! Reads short values of base tables that are stored off the row, such as the texts of modules.

use format::lob::{Fragment, Links, Node, Pointer};
use format::slots::SlotOrder;
use format::{Page, PageType, RecordId};
use source::PageSource;

use crate::chain::{Fetched, fetch};

/// The maximum number of levels of the tree in which a value is stored. A value has at most 2 GB, and a node below the
/// root links to more than 400 other fragments.
const MAX_LEVELS: usize = 5;

/// The smallest allowed average size of a value's fragments, in bytes. The nodes above the fragments count as fragments
/// too. A value with smaller fragments is damaged.
const LEAST_PIECE_BYTES: usize = 256;

/// Reads the off-row value that `pointer` points to. `pointer` is the content of the column in the row. `None` if a
/// fragment of the value is not sound, or if the value is longer than `max_bytes`.
pub fn off_row_value(source: &dyn PageSource, pointer: &[u8], max_bytes: usize) -> Option<Vec<u8>> {
    let mut reader =
        Reader { source, blob_id: 0, value: Vec::new(), max_bytes, pieces_left: max_bytes / LEAST_PIECE_BYTES + 16 };
    let size = match Pointer::read(pointer) {
        Pointer::Text { id, root } => {
            reader.blob_id = id;
            reader.piece(root, None, MAX_LEVELS)?;
            return Some(reader.value);
        }
        Pointer::InlineRoot { id, links, .. } | Pointer::Overflow { id, links, .. } => {
            reader.blob_id = id;
            reader.links(links, MAX_LEVELS)?;
            links.size()
        }
        Pointer::Malformed | Pointer::Undescribed => return None,
    };
    (reader.value.len() as u64 == size).then_some(reader.value)
}

/// Joins the fragments of a value.
struct Reader<'a> {
    source: &'a dyn PageSource,
    /// The ID that every fragment of the value must have.
    blob_id: u64,
    value: Vec<u8>,
    max_bytes: usize,
    /// The number of fragments that may still be read, so that a cycle of links ends.
    pieces_left: usize,
}

impl Reader<'_> {
    /// Appends the fragments that `links` point to. `None` if a fragment is not sound, or if the value becomes too
    /// long.
    fn links(&mut self, links: Links<'_>, levels: usize) -> Option<()> {
        if links.size() > self.max_bytes as u64 {
            return None;
        }
        let mut all = links.iter();
        all.try_for_each(|link| self.piece(link.target, Some(link.size), levels))
    }

    /// Appends the fragment at `place` and all fragments below it. `size` is the expected number of bytes, if known.
    /// `None` if a fragment is not sound or has another size, or if the value becomes too long.
    fn piece(&mut self, place: RecordId, size: Option<u64>, levels: usize) -> Option<()> {
        let below = levels.checked_sub(1)?;
        self.pieces_left = self.pieces_left.checked_sub(1)?;
        let Fetched::Sound(bytes) = fetch(self.source, place.page) else { return None };
        let page = Page::new(&bytes);
        if !matches!(page.header().kind(), Some(PageType::TextMix | PageType::TextTree)) {
            return None;
        }
        let mut order = SlotOrder::default();
        order.load(page);
        let position = order.entries().iter().position(|entry| entry.slot == place.slot)?;
        let fragment = Fragment::read(order.space(page, position)).ok()?;
        if !fragment.is_live() || fragment.blob_id() != self.blob_id {
            return None;
        }
        let before = self.value.len();
        match fragment.node() {
            Node::Tree { links, .. } | Node::Internal { links, .. } => self.links(links, below)?,
            _ => {
                let data = fragment.data()?;
                if before.checked_add(data.len())? > self.max_bytes {
                    return None;
                }
                self.value.extend_from_slice(data);
            }
        }
        let added = (self.value.len() - before) as u64;
        size.is_none_or(|size| size == added).then_some(())
    }
}
