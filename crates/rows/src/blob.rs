//! Reads values that are stored off the row, piece by piece (docs/format/lob.md).

use std::io;

use catalog::{Fetched, fetch};
use format::lob::{Fragment, Links, Node, Pointer};
use format::slots::SlotOrder;
use format::{PAGE_BYTES, Page, PageBytes, PageId, PageType, RecordId};
use source::PageSource;

use crate::Unreadable;

/// The maximum number of levels in the tree of a value. Real trees have fewer levels: a value has at most 2 GB, and a
/// node below the root links to more than 400 other nodes.
const MAX_LEVELS: usize = 8;

/// A value that is stored off the row: its ID, its length, and the place where its pieces begin.
#[derive(Clone, Debug)]
pub(crate) struct Blob {
    id: u64,
    bytes: u64,
    root: Root,
}

#[derive(Clone, Debug)]
enum Root {
    /// The whole value is in one fragment.
    Whole(RecordId),
    Tree(Branch),
}

/// A node of the tree: its level, and its children, each with the number of bytes below it.
#[derive(Clone, Debug)]
struct Branch {
    level: u16,
    links: Vec<(RecordId, u64)>,
}

impl Branch {
    fn of(level: u16, links: Links<'_>) -> Self {
        Self { level, links: links.iter().map(|link| (link.target, link.size)).collect() }
    }
}

impl Blob {
    /// The length of the value, as stored.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Reads values that are stored off the row. Keeps the most recently read page in memory, because short values share
/// pages.
pub(crate) struct Blobs<'a> {
    source: &'a dyn PageSource,
    page: Option<(PageId, Box<PageBytes>)>,
    order: SlotOrder,
    /// The size of all pages in bytes. No value can be longer.
    most: u64,
}

impl<'a> Blobs<'a> {
    pub(crate) fn new(source: &'a dyn PageSource) -> Self {
        let most = source.files().iter().map(|file| u64::from(file.pages) * PAGE_BYTES as u64).sum();
        Self { source, page: None, order: SlotOrder::default(), most }
    }

    pub(crate) fn source(&self) -> &'a dyn PageSource {
        self.source
    }

    /// Opens the value that a complex column points to.
    pub(crate) fn open(&mut self, pointer: &[u8]) -> Result<Blob, Unreadable> {
        let (id, bytes, root) = match Pointer::read(pointer) {
            Pointer::Text { id, root } => {
                let fragment = self.fragment(root, id)?;
                match fragment.node() {
                    Node::Tree { level, links } => (id, links.size(), Root::Tree(Branch::of(level, links))),
                    Node::Root { size } => (id, size, Root::Whole(root)),
                    _ => return Err(Unreadable::Lost(root.page)),
                }
            }
            Pointer::InlineRoot { id, level, links } | Pointer::Overflow { id, level, links } => {
                (id, links.size(), Root::Tree(Branch::of(level, links)))
            }
            Pointer::Malformed => return Err(Unreadable::Impossible),
            Pointer::Undescribed => return Err(Unreadable::Undocumented),
        };
        if bytes > self.most { Err(Unreadable::Impossible) } else { Ok(Blob { id, bytes, root }) }
    }

    /// Calls `each` with the pieces of a value in order.
    ///
    /// Every piece must have the length that its parent states, and each level must be lower than the level above it.
    /// The lengths must add up to the length of the value, which is at most the size of all pages. These rules prevent
    /// an endless loop through circular links.
    pub(crate) fn pieces(
        &mut self,
        blob: &Blob,
        each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Result<(), Unreadable>> {
        let root = match &blob.root {
            Root::Tree(root) => root.clone(),
            Root::Whole(at) => {
                let data = match self.fragment(*at, blob.id) {
                    Ok(fragment) => fragment.data(),
                    Err(why) => return Ok(Err(why)),
                };
                let Some(data) = data else { return Ok(Err(Unreadable::Lost(at.page))) };
                return each(data).map(Ok);
            }
        };
        let mut stack = vec![(root, 0)];
        while let Some((node, next)) = stack.last_mut() {
            let Some(&(target, size)) = node.links.get(*next) else {
                stack.pop();
                continue;
            };
            *next += 1;
            let (level, depth) = (node.level, stack.len());
            let fragment = match self.fragment(target, blob.id) {
                Ok(fragment) => fragment,
                Err(why) => return Ok(Err(why)),
            };
            match fragment.node() {
                Node::Internal { level: below, links } | Node::Tree { level: below, links } => {
                    if below >= level || links.size() != size || size == 0 || depth >= MAX_LEVELS {
                        return Ok(Err(Unreadable::Lost(target.page)));
                    }
                    let child = Branch::of(below, links);
                    stack.push((child, 0));
                }
                _ => match fragment.data().filter(|data| data.len() as u64 == size) {
                    Some(data) => each(data)?,
                    None => return Ok(Err(Unreadable::Lost(target.page))),
                },
            }
        }
        Ok(Ok(()))
    }

    /// The fragment at `place`, if the fragment is sound and belongs to the value `id`.
    fn fragment(&mut self, place: RecordId, id: u64) -> Result<Fragment<'_>, Unreadable> {
        let lost = Unreadable::Lost(place.page);
        if self.page.as_ref().is_none_or(|(page, _)| *page != place.page) {
            let Fetched::Sound(bytes) = fetch(self.source, place.page) else { return Err(lost) };
            self.order.load(Page::new(&bytes));
            self.page = Some((place.page, bytes));
        }
        let Some((_, bytes)) = &self.page else { return Err(lost) };
        let page = Page::new(bytes);
        if !matches!(page.header().kind(), Some(PageType::TextMix | PageType::TextTree)) {
            return Err(lost);
        }
        let position = self.order.entries().iter().position(|entry| entry.slot == place.slot).ok_or(lost)?;
        let fragment = Fragment::read(self.order.space(page, position)).map_err(|_| lost)?;
        if fragment.is_live() && fragment.blob_id() == id { Ok(fragment) } else { Err(lost) }
    }
}
