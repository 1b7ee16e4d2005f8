//! Off-row values (docs/format/lob.md): the fragments on text pages, and the in-row pointers to them.

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::fields::{Structure, offset, series};
use crate::ids::RecordId;
use crate::record::{GHOST_VERSION_BYTES, RecordFault, RecordKind, RecordTest, VERSION_TAG_BYTES, status};

/// The length in bytes of a fragment's header: status, u16 length, u64 blob ID, u16 type.
pub const FRAGMENT_HEADER_BYTES: usize = TYPE_AT + 2;
pub(crate) const LENGTH_AT: usize = offset(Structure::LobFragment, "length", 2);
const BLOB_ID_AT: usize = offset(Structure::LobFragment, "blobId", 8);
pub(crate) const TYPE_AT: usize = offset(Structure::LobFragment, "type", 2);

/// The node type of a small root, which contains a whole short value.
pub const SMALL_ROOT: u16 = 0;
/// The node type of a root without a value.
pub const NULL_ROOT: u16 = 8;

/// A fragment of an off-row value, proven to be inside its space.
#[derive(Clone, Copy)]
pub struct Fragment<'a> {
    bytes: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// Reads the fragment at the start of `space`. The length that a fragment stores does not include its version tag.
    pub fn read(space: &'a [u8]) -> Result<Self, RecordFault> {
        let fault =
            |test, value: usize, against: usize| RecordFault { test, value: value as i64, against: against as i64 };
        let status = *space.first().ok_or(fault(RecordTest::ColumnOffsets, FRAGMENT_HEADER_BYTES, 0))?;
        if status & (status::COMPRESSED | status::RESERVED) != 0 {
            return Err(fault(RecordTest::StatusA, status.into(), usize::from(status::COMPRESSED | status::RESERVED)));
        }
        if RecordKind::is_tag_alone(status) {
            let over = fault(RecordTest::VersionTag, GHOST_VERSION_BYTES, space.len());
            return Ok(Self { bytes: space.get(..GHOST_VERSION_BYTES).ok_or(over)? });
        }
        // A fragment has neither columns nor a null bitmap, and does not use its second status byte.
        let columns = status & (status::NULL_BITMAP | status::VARIABLE);
        if columns != 0 {
            return Err(fault(RecordTest::StatusA, status.into(), columns.into()));
        }
        let status_b = space.get(1).copied().unwrap_or_default();
        if status_b != 0 && RecordKind::of(status) == RecordKind::BlobFragment {
            return Err(fault(RecordTest::StatusB, status_b.into(), 0));
        }
        let length = usize::from(u16_at(space, LENGTH_AT).ok_or(fault(
            RecordTest::ColumnOffsets,
            LENGTH_AT + 2,
            space.len(),
        ))?);
        if length < FRAGMENT_HEADER_BYTES {
            return Err(fault(RecordTest::FixedLength, length, FRAGMENT_HEADER_BYTES));
        }
        let tag = if status & status::VERSION_TAG != 0 { VERSION_TAG_BYTES } else { 0 };
        let bytes = space.get(..length + tag).ok_or(fault(RecordTest::LastOffset, length + tag, space.len()))?;
        Ok(Self { bytes })
    }

    /// The bytes of the record, including the version tag.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The ID of the value, which all its fragments share.
    pub fn blob_id(&self) -> u64 {
        u64_at(self.bytes, BLOB_ID_AT).unwrap_or_default()
    }

    /// The type of the fragment: 0 small root, 1 large root, 2 internal, 3 data, 4 and 5 roots, 6 super large root, 8
    /// null.
    pub fn node_type(&self) -> u16 {
        u16_at(self.bytes, TYPE_AT).unwrap_or_default()
    }

    /// Whether the fragment is part of a value and not a ghost.
    pub fn is_live(&self) -> bool {
        self.bytes.first().is_some_and(|status| RecordKind::of(*status) == RecordKind::BlobFragment)
    }

    /// The record without its version tag.
    pub fn content(&self) -> &'a [u8] {
        let length = u16_at(self.bytes, LENGTH_AT).map_or(0, usize::from);
        self.bytes.get(..length).unwrap_or_default()
    }

    /// The bytes of the value in this fragment: a piece (type 3) or the whole value (types 0 and 8); `None` for other
    /// types.
    pub fn data(&self) -> Option<&'a [u8]> {
        let content = self.content();
        match self.node_type() {
            0 => {
                let size = usize::from(u16_at(content, SIZE_AT)?);
                content.get(SMALL_ROOT_HEADER_BYTES..SMALL_ROOT_HEADER_BYTES + size)
            }
            3 => content.get(FRAGMENT_HEADER_BYTES..),
            8 => Some(&[]),
            _ => None,
        }
    }

    /// Decodes the fragment. A deleted fragment may have no content left.
    pub fn node(&self) -> Node<'a> {
        if !self.is_live() {
            return Node::Undescribed(self.node_type());
        }
        let content = self.content();
        match self.node_type() {
            SMALL_ROOT => {
                let is_inside = |size: &u16| SMALL_ROOT_HEADER_BYTES + usize::from(*size) <= content.len();
                match u16_at(content, SIZE_AT).filter(is_inside) {
                    Some(size) => Node::Root { size: size.into() },
                    None => Node::Malformed,
                }
            }
            2 => {
                inner(content, INTERNAL_LINKS).map_or(Node::Malformed, |(level, links)| Node::Internal { level, links })
            }
            3 => Node::Data { size: (content.len() - FRAGMENT_HEADER_BYTES) as u64 },
            4 | 5 => inner(content, ROOT_LINKS).map_or(Node::Malformed, |(level, links)| Node::Tree { level, links }),
            NULL_ROOT => Node::Root { size: 0 },
            kind @ (1 | 6) => Node::Undescribed(kind),
            kind => Node::Unknown(kind),
        }
    }
}

/// The length in bytes of a small root's header: the fragment header, a u16 length, and four bytes without a known use.
pub const SMALL_ROOT_HEADER_BYTES: usize = offset(Structure::LobSmallRoot, "unused", 4) + 4;
pub(crate) const SIZE_AT: usize = offset(Structure::LobSmallRoot, "size", 2);

/// The places of a node's links. A link consists of a cumulative length of `end_bytes` bytes and a RID; `stride` is the
/// distance to the next link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LinkLayout {
    first: usize,
    stride: usize,
    end_bytes: usize,
}

const INTERNAL_LINKS: LinkLayout = LinkLayout::of(Structure::LobInternal, 8);
const ROOT_LINKS: LinkLayout = LinkLayout::of(Structure::LobRoot, 4);
const POINTER_LINKS: LinkLayout = LinkLayout::of(Structure::InRowRoot, 4);
// The format of a row-overflow pointer is that of an in-row root with one link.
const _: () = assert!(POINTER_LINKS.first == offset(Structure::OverflowPointer, "length", 4));
const _: () = assert!(POINTER_LINKS.first + 4 == offset(Structure::OverflowPointer, "link", 8));
const _: () = assert!(POINTER_LEVEL_AT == offset(Structure::OverflowPointer, "level", 1));
const _: () = assert!(POINTER_ID_AT == offset(Structure::OverflowPointer, "blobId", 6));

impl LinkLayout {
    const fn of(structure: Structure, end_bytes: usize) -> Self {
        let (first, stride) = series(structure, "linkEnd", end_bytes as u32);
        let (link, link_stride) = series(structure, "link", 8);
        assert!(first + end_bytes == link && stride == link_stride && stride == end_bytes + 8);
        Self { first, stride, end_bytes }
    }

    /// Reads the link at `position`. Returns the end of the bytes below the link's target, as an offset in the whole
    /// value, and the address of the target.
    fn read(self, bytes: &[u8], position: usize) -> Option<(u64, RecordId)> {
        let at = self.first.checked_add(position.checked_mul(self.stride)?)?;
        let end = if self.end_bytes == 8 { u64_at(bytes, at)? } else { u32_at(bytes, at)?.into() };
        Some((end, RecordId::read(bytes, at + self.end_bytes)?))
    }
}

/// The offset of a field that internal nodes and roots share.
pub(crate) const fn node_at(name: &str) -> usize {
    let at = offset(Structure::LobInternal, name, 2);
    assert!(at == offset(Structure::LobRoot, name, 2));
    at
}

/// The level and the links of an internal node or root; `None` if a link ends outside the node.
fn inner(content: &[u8], layout: LinkLayout) -> Option<(u16, Links<'_>)> {
    let (places, used) =
        (u16_at(content, const { node_at("maxLinks") })?, u16_at(content, const { node_at("curLinks") })?);
    let level = u16_at(content, const { node_at("level") })?;
    let end = layout.first + usize::from(used) * layout.stride;
    (used <= places && end <= content.len()).then_some((level, Links { bytes: content, layout, count: used }))
}

/// A decoded fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node<'a> {
    /// A root that contains a whole value, or NULL.
    Root {
        /// The length of the value in bytes.
        size: u64,
    },
    /// The root of a tree.
    Tree {
        /// The level of the node; 0 directly above the data.
        level: u16,
        /// The children of the node.
        links: Links<'a>,
    },
    /// A node below a root.
    Internal {
        /// The level of the node; 0 directly above the data.
        level: u16,
        /// The children of the node.
        links: Links<'a>,
    },
    /// A piece of the value.
    Data {
        /// The length of the piece in bytes.
        size: u64,
    },
    /// A node with a part that ends outside the fragment.
    Malformed,
    /// A node of a type that is documented by name only.
    Undescribed(u16),
    /// A node of a type that does not exist.
    Unknown(u16),
}

/// A link to a child, from a node or from an in-row pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The address of the child.
    pub target: RecordId,
    /// The number of bytes of the value below the child, according to the parent. If the lengths in the parent do not
    /// ascend, this number is larger than the length of any value.
    pub size: u64,
}

/// The links of a node or pointer, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Links<'a> {
    bytes: &'a [u8],
    layout: LinkLayout,
    count: u16,
}

impl<'a> Links<'a> {
    /// Iterates over the links.
    pub fn iter(self) -> impl Iterator<Item = Link> + 'a {
        let mut begin = 0u64;
        (0..usize::from(self.count)).map_while(move |position| {
            let (end, target) = self.layout.read(self.bytes, position)?;
            let size = end.wrapping_sub(begin);
            begin = end;
            Some(Link { target, size })
        })
    }

    /// The number of bytes of the value below all children.
    pub fn size(self) -> u64 {
        let last = usize::from(self.count).checked_sub(1);
        last.and_then(|last| self.layout.read(self.bytes, last)).map_or(0, |(end, _)| end)
    }
}

/// The content of a complex column, which a row stores instead of the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pointer<'a> {
    /// A text pointer, which contains the address of the root. Used for text, ntext and image values, and for all
    /// values of a table that stores large values off row.
    Text {
        /// The ID of the value.
        id: u64,
        /// The address of the root.
        root: RecordId,
    },
    /// An in-row root of a value of a (max) type.
    InlineRoot {
        /// The ID of the value.
        id: u64,
        /// The level of the root; 0 if the children are data.
        level: u16,
        /// The children of the root.
        links: Links<'a>,
    },
    /// A row-overflow pointer: the value has a type of limited length, but did not fit into the row.
    Overflow {
        /// The ID of the value.
        id: u64,
        /// The level of the pointer; 0 if the children are data.
        level: u16,
        /// The children of the pointer.
        links: Links<'a>,
    },
    /// The first byte is that of a pointer, but the length is impossible for a pointer.
    Malformed,
    /// Any other content: a sparse vector, FILESTREAM, or an undocumented layout.
    Undescribed,
}

const TEXT_ID_AT: usize = offset(Structure::TextPointer, "blobId", 8);
const TEXT_ROOT_AT: usize = offset(Structure::TextPointer, "root", 8);
const POINTER_LEVEL_AT: usize = offset(Structure::InRowRoot, "level", 1);
/// The ID fills the upper six of eight bytes. The lower two bytes belong to another field.
const POINTER_ID_AT: usize = offset(Structure::InRowRoot, "blobId", 6);

impl<'a> Pointer<'a> {
    /// Reads the bytes of a complex column.
    pub fn read(bytes: &'a [u8]) -> Self {
        if bytes.len() == TEXT_ROOT_AT + 8 {
            return match (u64_at(bytes, TEXT_ID_AT), RecordId::read(bytes, TEXT_ROOT_AT)) {
                (Some(id), Some(root)) => Self::Text { id, root },
                _ => Self::Malformed,
            };
        }
        let (Some(&kind @ (2 | 4)), Some(id)) = (bytes.first(), u64_at(bytes, POINTER_ID_AT - 2)) else {
            return Self::Undescribed;
        };
        let links = bytes.len().saturating_sub(POINTER_LINKS.first);
        let stride = POINTER_LINKS.stride;
        if bytes.len() == POINTER_LINKS.first {
            // A pointer without links is not treated as malformed, because the value may have been emptied.
            return Self::Undescribed;
        }
        if links == 0 || !links.is_multiple_of(stride) {
            return Self::Malformed;
        }
        let links = Links { bytes, layout: POINTER_LINKS, count: (links / stride) as u16 };
        // The level is in the third byte: it was 1 in all 41 known roots above internal nodes, and 0 in all 373 known
        // roots above data.
        let (id, level) = (id >> 16, u16::from(bytes.get(POINTER_LEVEL_AT).copied().unwrap_or_default()));
        match kind {
            2 => Self::Overflow { id, level, links },
            _ => Self::InlineRoot { id, level, links },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageId;

    #[test]
    fn pointers_as_published() {
        // The examples of docs/format/lob.md#pointers-in-rows.
        let overflow = [2, 0, 0, 0, 1, 0, 0, 0, 0x29, 0, 0, 0, 0x40, 0x1F, 0, 0, 0x75, 0x46, 3, 0, 1, 0, 0, 0];
        let Pointer::Overflow { id, level, links } = Pointer::read(&overflow) else { panic!("row-overflow pointer") };
        assert_eq!((id, level, links.size()), (0x29_0000, 0, 8000));
        let target = RecordId { page: PageId::new(1, 0x3_4675), slot: 0 };
        assert_eq!(links.iter().collect::<Vec<_>>(), [Link { target, size: 8000 }]);
        let root = [4, 0, 1, 0, 1, 0, 0, 0, 0x52, 0x69, 0, 0, 0x50, 0xC3, 0, 0, 0x96, 3, 0, 0, 1, 0, 3, 0];
        let Pointer::InlineRoot { id, level, links } = Pointer::read(&root) else { panic!("in-row root") };
        assert_eq!((id, level, links.size()), (0x6952_0000, 1, 50_000));
        assert_eq!(Pointer::read(&root[..20]), Pointer::Malformed);
        assert_eq!(Pointer::read(&root[..12]), Pointer::Undescribed, "no links");
        assert_eq!(Pointer::read(&[5, 0, 1, 0, 1, 0, 10, 0]), Pointer::Undescribed);
        assert!(matches!(Pointer::read(&[0; 16]), Pointer::Text { id: 0, .. }));
    }

    #[test]
    fn nodes_and_their_links() {
        let mut bytes = vec![8, 0, 84, 0, 0, 0, 7, 0, 0, 0, 0, 0, 5, 0, 5, 0, 2, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([0x68, 0x1F, 0, 0, 9, 0, 0, 0, 1, 0, 3, 0]);
        bytes.extend([0x70, 0x1F, 0, 0, 10, 0, 0, 0, 1, 0, 4, 0]);
        bytes.resize(84, 0xEE);
        let node = |bytes: &[u8]| Fragment::read(bytes).map(|fragment| format!("{:?}", fragment.node())).unwrap();
        let fragment = Fragment::read(&bytes).unwrap();
        assert_eq!((fragment.blob_id(), fragment.is_live()), (0x7_0000, true));
        let Node::Tree { level: 0, links } = fragment.node() else { panic!("root") };
        assert_eq!(links.iter().map(|link| (link.target.slot, link.size)).collect::<Vec<_>>(), [(3, 8040), (4, 8)]);
        assert_eq!(links.size(), 8048);
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            node(&bytes)
        };
        assert_eq!(with(16, 6), "Malformed", "more links than places");
        assert_eq!(with(12, 3), "Data { size: 70 }");
        assert_eq!(with(12, 7), "Unknown(7)");
        assert_eq!(with(12, 1), "Undescribed(1)");
        assert_eq!(with(12, 8), "Root { size: 0 }");
        assert_eq!(with(12, 0), "Root { size: 5 }");
    }

    #[test]
    fn a_ghost_version_holds_nothing() {
        for tag in [0, 3, 0xA7] {
            let mut bytes = [tag; 20];
            bytes[0] = 0x4E;
            let fragment = Fragment::read(&bytes).unwrap();
            assert_eq!((fragment.bytes().len(), fragment.is_live()), (15, false));
            assert!(matches!(fragment.node(), Node::Undescribed(_)));
            assert!(Fragment::read(&bytes[..14]).is_err());
        }
    }
}
