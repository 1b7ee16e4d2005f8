//! Reads off-row values piece by piece. Only a few rows of an index have off-row values, which may be anywhere in the
//! files.

use format::lob::{Fragment, Links, Node, Pointer};
use format::protection::undo_torn_bits;
use format::{Page, PageBytes, PageId, PageType, RecordId};
use source::PageSource;

use crate::page::audit;

/// The number of cached pages. The fragments of a value and of the values next to it are usually stored close together.
const KEPT_PAGES: usize = 16;
/// The maximum number of levels of a tree. Three levels are enough for 2 GB, the maximum size of a value.
const MAX_LEVELS: u16 = 8;
/// The smallest fragment in real files has 8 bytes, so a shorter piece of a value may be padded to this length.
const SMALLEST_PIECE: u64 = 8;

/// A fragment to be read.
#[derive(Clone, Copy)]
struct Part {
    at: RecordId,
    expects: Expects,
}

/// The expected kind of a fragment.
#[derive(Clone, Copy)]
enum Expects {
    /// The root of the value, or a single fragment with the whole value.
    Root,
    /// A fragment with this many bytes of the value.
    Data(u64),
    /// A node of this level, with this many bytes of the value below it.
    Node(u16, u64),
}

/// Reads off-row values, and caches recently read pages.
#[derive(Default)]
pub(crate) struct Reader {
    pages: Vec<(PageId, Option<Box<PageBytes>>)>,
    next: usize,
    parts: Vec<Part>,
    /// Bytes of values read so far.
    pub(crate) bytes_read: u64,
    /// The pages of the values since this list was set.
    pub(crate) used: Option<Vec<PageId>>,
}

impl Reader {
    /// Calls `each` with the pieces of a value, in order, until it returns false. `pointer` contains the bytes of a
    /// complex column. Returns `None` if the value cannot be read to its end, or if a fragment differs from what its
    /// reference describes; the check of off-row values reports this damage.
    pub(crate) fn read(
        &mut self,
        source: &dyn PageSource,
        pointer: &[u8],
        most_bytes: u64,
        mut each: impl FnMut(&[u8]) -> bool,
    ) -> Option<()> {
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        let id = match Pointer::read(pointer) {
            Pointer::Text { id, root } => {
                parts.push(Part { at: root, expects: Expects::Root });
                id
            }
            Pointer::InlineRoot { id, level, links } | Pointer::Overflow { id, level, links } => {
                below(&mut parts, level, links)?;
                id
            }
            Pointer::Malformed | Pointer::Undescribed => return None,
        };
        while let Some(part) = parts.pop() {
            let page = self.page(source, part.at.page)?;
            let fragment = Fragment::read(Page::new(page).slot_bytes(part.at.slot)?).ok()?;
            if !fragment.is_live() || fragment.blob_id() != id {
                return None;
            }
            let data = match (part.expects, fragment.node()) {
                (Expects::Data(size), Node::Data { size: actual } | Node::Root { size: actual }) => {
                    let is_padded = actual == SMALLEST_PIECE && size < actual;
                    let data = fragment.data().filter(|_| actual == size || is_padded)?;
                    data.get(..usize::try_from(size).ok()?)?
                }
                (Expects::Root, Node::Root { .. }) => fragment.data()?,
                (Expects::Root, Node::Tree { level, links }) => {
                    below(&mut parts, level, links)?;
                    continue;
                }
                (Expects::Node(level, size), Node::Internal { level: actual, links })
                    if level == actual && links.size() == size =>
                {
                    below(&mut parts, level, links)?;
                    continue;
                }
                _ => return None,
            };
            let length = data.len() as u64;
            if !each(data) {
                break;
            }
            self.bytes_read = self.bytes_read.saturating_add(length);
            if self.bytes_read > most_bytes {
                return None;
            }
        }
        self.parts = parts;
        Some(())
    }

    /// The length of the value that a text pointer points to, as stored in the root fragment. Returns `None` in the
    /// same cases as [`Self::read`].
    pub(crate) fn length(&mut self, source: &dyn PageSource, pointer: &[u8]) -> Option<u64> {
        let Pointer::Text { id, root } = Pointer::read(pointer) else { return None };
        let page = self.page(source, root.page)?;
        let fragment = Fragment::read(Page::new(page).slot_bytes(root.slot)?).ok()?;
        match fragment.node() {
            _ if !fragment.is_live() || fragment.blob_id() != id => None,
            Node::Root { size } => Some(size),
            Node::Tree { links, .. } => Some(links.size()),
            _ => None,
        }
    }

    /// Returns page `id` if it is a sound text page; `None` otherwise. The bits that torn-page protection replaced are
    /// restored.
    fn page(&mut self, source: &dyn PageSource, id: PageId) -> Option<&PageBytes> {
        if let Some(used) = self.used.as_mut().filter(|used| used.last() != Some(&id)) {
            used.push(id);
        }
        let kept = self.pages.iter().position(|(kept, _)| *kept == id);
        let at = kept.unwrap_or_else(|| {
            let place = (id, sound_page(source, id));
            if self.pages.len() < KEPT_PAGES {
                self.pages.push(place);
                return self.pages.len() - 1;
            }
            self.next = (self.next + 1) % KEPT_PAGES;
            if let Some(kept) = self.pages.get_mut(self.next) {
                *kept = place;
            }
            self.next
        });
        self.pages.get(at)?.1.as_deref()
    }
}

fn sound_page(source: &dyn PageSource, id: PageId) -> Option<Box<PageBytes>> {
    let mut page = source.read_page(id)?;
    if audit::identity(&page, id).is_some() {
        return None;
    }
    undo_torn_bits(&mut page);
    matches!(Page::new(&page).header().kind(), Some(PageType::TextMix | PageType::TextTree)).then_some(page)
}

/// Pushes the children of a node of `level` onto the stack, with the first child on top. Each child must be one level
/// lower, and empty children are left out, so reading a tree always ends.
fn below(parts: &mut Vec<Part>, level: u16, links: Links<'_>) -> Option<()> {
    if level > MAX_LEVELS {
        return None;
    }
    let first = parts.len();
    for link in links.iter().filter(|link| link.size > 0) {
        let expects = match level.checked_sub(1) {
            None => Expects::Data(link.size),
            Some(level) => Expects::Node(level, link.size),
        };
        parts.push(Part { at: link.target, expects });
    }
    parts.get_mut(first..)?.reverse();
    Some(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use format::page::PAGE_BYTES;
    use source::{DataFile, ReadError};

    use super::*;

    const ID: u64 = 0x52_0000;

    /// Text pages with one fragment each.
    struct Pages {
        files: Vec<DataFile>,
        pages: Vec<PageBytes>,
    }

    impl PageSource for Pages {
        fn files(&self) -> &[DataFile] {
            &self.files
        }

        fn read(&self, first: PageId, buffer: &mut [u8]) -> Result<usize, ReadError> {
            let Some(page) = self.pages.get(first.page as usize) else { return Ok(0) };
            buffer.copy_from_slice(page);
            Ok(1)
        }
    }

    fn pages(fragments: &[Vec<u8>]) -> Pages {
        let page = |(number, content): (usize, &Vec<u8>)| {
            let mut page = [0; PAGE_BYTES];
            (page[0], page[1]) = (1, 3);
            page[22] = 1;
            page[32..36].copy_from_slice(&(number as u32).to_le_bytes());
            page[36] = 1;
            page[96..96 + content.len()].copy_from_slice(content);
            page[PAGE_BYTES - 2] = 96;
            page
        };
        let file = DataFile {
            path: PathBuf::new(),
            file_id: 1,
            filegroup: 1,
            logical_name: String::new(),
            pages: fragments.len() as u32,
            header_pages: None,
            tail_bytes: 0,
            binding_guid: None,
            header_is_sound: true,
        };
        Pages { files: vec![file], pages: fragments.iter().enumerate().map(page).collect() }
    }

    fn fragment(kind: u16, content: &[u8]) -> Vec<u8> {
        let length = (14 + content.len()) as u16;
        [&[8, 0][..], &length.to_le_bytes(), &ID.to_le_bytes(), &kind.to_le_bytes(), content].concat()
    }

    fn link(end: u64, page: u32, wide: bool) -> Vec<u8> {
        let end = end.to_le_bytes();
        [&end[..if wide { 8 } else { 4 }], &page.to_le_bytes(), &[1, 0, 0, 0]].concat()
    }

    /// Builds a node. `kind` is 2 for a node inside a tree, and 5 for the root.
    fn node(kind: u16, level: u8, links: &[(u64, u32)]) -> Vec<u8> {
        let count = links.len() as u8;
        let mut content = vec![count, 0, count, 0, level, 0];
        content.extend(vec![0; if kind == 5 { 4 } else { 0 }]);
        links.iter().for_each(|(end, page)| content.extend(link(*end, *page, kind == 2)));
        fragment(kind, &content)
    }

    fn pointer(level: u8, links: &[(u64, u32)]) -> Vec<u8> {
        let mut pointer = vec![4, 0, level, 0, 1, 0];
        pointer.extend(&ID.to_le_bytes()[..6]);
        links.iter().for_each(|(end, page)| pointer.extend(link(*end, *page, false)));
        pointer
    }

    fn text_pointer(page: u32) -> Vec<u8> {
        [&ID.to_le_bytes()[..], &page.to_le_bytes(), &[1, 0, 0, 0]].concat()
    }

    fn value(pages: &Pages, pointer: &[u8]) -> Option<Vec<u8>> {
        let (mut reader, mut value) = (Reader::default(), Vec::new());
        let each = |piece: &[u8]| {
            value.extend_from_slice(piece);
            true
        };
        reader.read(pages, pointer, 10_000, each)?;
        Some(value)
    }

    #[test]
    fn values_are_read_through_every_kind_of_tree() {
        let pages = pages(&[
            fragment(3, b"first piece, "),
            fragment(3, b"second piece"),
            node(2, 0, &[(13, 0), (25, 1)]),
            node(5, 1, &[(25, 2)]),
            fragment(0, &[&[5, 0, 0, 0, 0, 0][..], b"small"].concat()),
            fragment(3, b"tail\0\0\0\0"),
        ]);
        let whole = Some(b"first piece, second piece".to_vec());
        assert_eq!(value(&pages, &pointer(0, &[(13, 0), (25, 1)])), whole);
        assert_eq!(value(&pages, &pointer(1, &[(25, 2)])), whole);
        assert_eq!(value(&pages, &text_pointer(3)), whole);
        assert_eq!(value(&pages, &text_pointer(4)), Some(b"small".to_vec()));
        assert_eq!(value(&pages, &pointer(0, &[(4, 5)])), Some(b"tail".to_vec()), "padded to the smallest piece");
    }

    #[test]
    fn the_length_of_a_value_whose_pointer_lacks_it_is_read_from_its_root() {
        let pages = pages(&[
            fragment(3, b"piece"),
            node(5, 0, &[(5, 0)]),
            fragment(0, &[&[5, 0, 0, 0, 0, 0][..], b"small"].concat()),
        ]);
        let length = |pointer: &[u8]| Reader::default().length(&pages, pointer);
        assert_eq!([1, 2].map(|root| length(&text_pointer(root))), [Some(5); 2]);
        assert_eq!([0, 7].map(|no_root| length(&text_pointer(no_root))), [None; 2]);
        assert_eq!(length(&pointer(0, &[(5, 0)])), None, "this one has it");
    }

    #[test]
    fn what_is_not_as_described_has_no_value() {
        let mut pages = pages(&[
            fragment(3, b"piece"),
            node(2, 0, &[(5, 1)]),
            node(2, 1, &[(5, 2)]),
            node(5, 200, &[(5, 3)]),
            node(5, 1, &[(9, 1)]),
        ]);
        for (pointer, why) in [
            (pointer(0, &[(4, 0)]), "another size"),
            (pointer(0, &[(5, 9)]), "outside of the file"),
            (pointer(1, &[(5, 1)]), "a node that is its own child"),
            (pointer(2, &[(5, 2)]), "a node of the same level below"),
            (text_pointer(3), "more levels than a tree has"),
            (text_pointer(4), "sizes that differ from level to level"),
            (text_pointer(0), "data as root"),
            (vec![9; 20], "no pointer"),
        ] {
            assert_eq!(value(&pages, &pointer), None, "{why}");
        }
        let good = pointer(0, &[(5, 0)]);
        assert!(value(&pages, &good).is_some());
        assert_eq!(
            value(&pages, &pointer(0, &(1..=2001).map(|end| (end * 5, 0)).collect::<Vec<_>>())),
            None,
            "too much"
        );
        pages.pages[0][96 + 4] ^= 1;
        assert_eq!(value(&pages, &good), None, "of another value");
        pages.pages[0][96 + 4] ^= 1;
        pages.pages[0][1] = 1;
        assert_eq!(value(&pages, &good), None, "no text page");
    }
}
